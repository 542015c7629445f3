//! Context of a command: the global options, the settings, and the database that they name.

use std::collections::HashSet;
use std::io::IsTerminal as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use strsim::osa_distance;

use super::options::{Format, Global};
use super::{CommandFailure, output, progress};
use crate::config::{self, Config, DatabaseProfile, Embedding};
use crate::lab::embed::Endpoint;
use crate::lab::people;
use crate::memory::invocation::Invocation;
use crate::memory::mask::Mask;
use crate::memory::nearest::{nearest, unknown};
use crate::memory::veil::Veil;
use crate::store::{OpenError, OpenOptions, Store, StoreError, Target};

/// Letters of a word of which one may be wrong, for it to be taken for a handle that was misspelt.
const MISSPELT: usize = 4;

pub(super) const NO_DATABASE: &str = "no database is named: use -d DATABASE, MNEMOSCOPE_DATABASE, DATABASE_URL or a default \
     profile; `mnemoscope demo` makes one to try";

/// A command's surroundings.
pub struct Session<'a> {
    /// Options for every command.
    pub global: &'a Global,
    pub commands: fn() -> Vec<String>,
    /// The database, as far as the command line names one.
    pub database: Option<&'a str>,
    pub config: &'a Config,
    /// The command changes a database, or plans to.
    pub changes: bool,
    /// The command shows what is there: damaged pages are read past.
    pub looks: bool,
    /// The command reads rows from a standby, if there is one.
    pub suits_standby: bool,
    /// Damage that the command met.
    pub damage: Damage,
}

/// Damage of a database that a command met.
#[derive(Debug, Default)]
pub struct Damage {
    /// A page is damaged: what can be read is read past it.
    pub is_met: AtomicBool,
    /// Rows are missing in the answer.
    takes_rows: AtomicBool,
}

impl Session<'_> {
    /// The output format: the requested one, else a table on a terminal and JSON in a pipe.
    pub fn format(&self) -> Format {
        let default = if std::io::stdout().is_terminal() { Format::Table } else { Format::Json };
        self.global.format.unwrap_or(default)
    }

    /// The mask, when personal values are not to be shown.
    pub fn mask(&self) -> Option<Mask> {
        let by_profile = self.profile_named(None).is_some_and(|p| p.mask);
        (self.global.mask || by_profile).then(|| Mask::new(config::mask_key()))
    }

    /// A cursor for output: sealed if values are masked, since it contains values of a row. `None` if there is none, or
    /// if it cannot be sealed.
    pub fn printed_cursor(&self, cursor: Option<String>) -> Option<String> {
        match self.mask() {
            Some(mask) => mask.sealed(&cursor?),
            None => cursor,
        }
    }

    /// Reads a cursor that was printed, masked or not.
    ///
    /// # Errors
    /// Code 2 for one that was sealed with another key.
    pub fn typed_cursor(typed: Option<&str>) -> Result<Option<String>, CommandFailure> {
        match typed {
            Some(sealed) if Mask::is_sealed(sealed) => {
                Mask::new(config::mask_key()).opened(sealed).map(Some).ok_or_else(|| StoreError::Cursor.into())
            }
            plain => Ok(plain.map(str::to_owned)),
        }
    }

    /// Whether a bar or a line of progress is shown on standard error.
    pub fn shows_progress(&self) -> bool {
        std::io::stderr().is_terminal() && !self.global.no_progress && !self.global.quiet
    }

    /// Returns the endpoint for vectors of texts, or the reason why the profile's is not usable; `None` if no profile
    /// names one.
    pub fn endpoint(&self, named: Option<&str>) -> Option<Result<Endpoint, String>> {
        Some(endpoint(self.profile_named(named)?.embedding.as_ref()?))
    }

    /// Returns the database that the operator means: the named one, else the one from the environment, else the default
    /// profile.
    fn chosen(&self, named: Option<&str>) -> Option<String> {
        let variable = |name: &str| std::env::var(name).ok().filter(|v| !v.is_empty());
        named
            .or(self.database)
            .map(str::to_owned)
            .or_else(|| self.global.profile.clone())
            .or_else(|| variable("MNEMOSCOPE_DATABASE"))
            .or_else(|| variable("DATABASE_URL"))
            .or_else(|| self.config.default.clone())
    }

    /// The profile whose settings apply: `--profile`, else the one that the database is named by.
    pub(super) fn profile_named(&self, named: Option<&str>) -> Option<&DatabaseProfile> {
        self.config.profile.get(&self.profile_name(named)?)
    }

    /// Returns the name of the database's profile, if it is in the settings.
    pub(super) fn profile_name(&self, named: Option<&str>) -> Option<String> {
        let name = self.global.profile.clone().or_else(|| self.chosen(named))?;
        self.config.profile.contains_key(&name).then_some(name)
    }

    /// Finds the database to open: the named one, else the one from the environment, else the default profile; `None`
    /// if nothing names one.
    ///
    /// # Errors
    /// A profile that is not in the settings.
    pub(super) fn target(&self, named: Option<&str>) -> Result<Option<(Target, OpenOptions)>, CommandFailure> {
        let global = self.global;
        if let Some(name) = global.profile.as_ref().filter(|name| !self.config.profile.contains_key(*name)) {
            let known = self.config.profile.keys().map(String::as_str);
            return Err(CommandFailure::not_found(unknown("profile in the settings", name, known)));
        }
        let Some(text) = self.chosen(named) else { return Ok(None) };
        let profile = self.profile_named(named);
        let standby = self.config.profile.get(&text).and_then(|profile| profile.read.clone());
        let database = match self.config.profile.get(&text) {
            Some(profile) if profile.database.is_empty() || profile.write.is_some() => {
                let many = if profile.write.is_some() { "two databases" } else { "no database" };
                return Err(CommandFailure::usage(format!(
                    "the profile `{text}` of the settings names {many}: give it `database`, or `write` next to `read`"
                )));
            }
            Some(profile) => profile.database.clone(),
            None => text,
        };
        let password =
            profile.map(DatabaseProfile::password).transpose().map_err(|e| CommandFailure::failed(format!("{e:#}")))?;
        let password = password.flatten();
        let located = |words: &str| match &password {
            Some(password) => Target::parse(words).with_password(password),
            None => Target::parse(words),
        };
        let (target, replica) = (located(&database), standby.as_deref().map(located));
        let companion = match &target {
            Target::File(path) if path.is_dir() => config::companion(path),
            _ => None,
        };
        let layouts = match &global.layout[..] {
            [] => profile.map(|p| p.layout.clone()).unwrap_or_default(),
            named => named.to_vec(),
        };
        let secret = config::erasure_key(false).ok().flatten();
        let anchors = config::anchor_folder();
        let connect_timeout = profile.and_then(|p| p.connect_timeout).map(Duration::from_secs);
        let invocation = Some(self.invocation(named));
        let options = OpenOptions {
            layouts,
            own_layouts: config::layouts(),
            invocation,
            connect_timeout,
            password_command: profile.and_then(|p| p.password_command.clone()),
            replica,
            companion,
            anchors,
            secret,
            ..OpenOptions::default()
        };
        Ok(Some((target, options)))
    }

    /// Builds the database argument for suggested commands: the operator's own words, without a password.
    fn invocation(&self, named: Option<&str>) -> Invocation {
        let global = self.global;
        let mut words = Vec::new();
        let mut add = |option: &str, value: &str| words.extend([option.to_owned(), value.to_owned()]);
        let typed = named.or(self.database);
        match (typed, &global.profile, self.chosen(named)) {
            (Some(text), ..) => add("-d", &Target::parse(text).shown()),
            (None, None, Some(text)) => {
                let shown = Target::parse(&text).shown();
                // A password that comes only from the environment is available to the next command too.
                if shown == text || !text.contains("://") {
                    add("-d", &shown);
                }
            }
            _ => {}
        }
        global.profile.iter().for_each(|name| add("--profile", name));
        global.layout.iter().for_each(|name| add("--layout", name));
        Invocation::of(words)
    }

    /// Opens the database of a command.
    ///
    /// # Errors
    /// No database was named, or it cannot be opened.
    pub async fn store(&self) -> Result<Store, CommandFailure> {
        let store = self.described_store().await?;
        Session::tell_damage(&store);
        Ok(store)
    }

    /// The same for an answer that contains the notes on the database.
    ///
    /// # Errors
    /// As [`Session::store`].
    pub async fn described_store(&self) -> Result<Store, CommandFailure> {
        let Some((target, options)) = self.target(None)? else {
            return Err(CommandFailure::usage(NO_DATABASE));
        };
        let store = self.opened(&target, options).await?;
        if let Some(reason) = store.recognised().closed().filter(|_| self.changes) {
            return Err(CommandFailure::refused(reason));
        }
        if let Some(veil) = self.veil(&store).await? {
            output::veil(veil);
        }
        let layouts: Vec<_> = store.recognised().layouts.iter().map(|l| l.name.as_str()).collect();
        tracing::info!(database = store.location(), layouts = layouts.join(", "), "opened");
        for gap in store.report().gaps() {
            output::afterwards(format!("note: {gap}"));
        }
        progress::begin(self);
        Ok(store)
    }

    /// Opens a database, or what can be read of it once a damaged page was met.
    ///
    /// # Errors
    /// It cannot be opened.
    pub(super) async fn opened(&self, target: &Target, options: OpenOptions) -> Result<Store, CommandFailure> {
        // What looks needs no other server than the one where rows are looked at; what does not needs that one alone.
        let options = OpenOptions { reads_past_damage: self.damage.is_met.load(Ordering::Relaxed), ..options };
        let opened = Store::open_for(self.suits_standby, target, &options).await;
        let store = opened.map_err(|error| self.unopened(error))?;
        let takes_rows = store.unread().is_some_and(|tables| !tables.is_empty());
        self.damage.takes_rows.store(takes_rows, Ordering::Relaxed);
        Ok(store)
    }

    /// Says which rows are missing if damaged pages are read past.
    pub(super) fn tell_damage(store: &Store) {
        if store.unread().is_some() {
            store.notes().iter().for_each(|note| output::afterwards(format!("note: {note}")));
        }
    }

    /// Whether a failure is the first damaged page of a command that reads past it, as it does from now on.
    pub(super) fn meets(&self, failure: &CommandFailure) -> bool {
        self.looks && failure.is_damage && !self.damage.is_met.swap(true, Ordering::Relaxed)
    }

    /// Opens the database again where an answer meets a damaged page: all rows that can be read are in it.
    ///
    /// # Errors
    /// The failure itself where it is another one, or no rows are looked at; as [`Session::store`].
    pub async fn past(&self, failure: CommandFailure) -> Result<Store, CommandFailure> {
        if self.meets(&failure) { self.store().await.map_err(|_| failure) } else { Err(failure) }
    }

    /// Says that rows are missing in an answer that was read past a damaged page.
    ///
    /// # Errors
    /// Code 6 for such an answer.
    pub(super) fn complete(&self) -> Result<(), CommandFailure> {
        if !self.damage.takes_rows.load(Ordering::Relaxed) {
            return Ok(());
        }
        let words = "the answer is not complete: a page of the database is damaged, and rows on it cannot be read";
        Err(CommandFailure::incomplete(words).with_damage())
    }

    /// Names the tables of which a page is damaged in the failure that it caused.
    pub(super) async fn named_damage(&self, mut failure: CommandFailure) -> CommandFailure {
        if failure.is_damage
            && let Ok(store) = self.store().await
            && let Ok(tables) = store.raw().damaged(&[]).await
            && !tables.is_empty()
        {
            failure.message = format!(
                "{}: not every row of {} can be read: {}",
                store.location(),
                tables.join(", "),
                failure.message
            );
        }
        failure
    }

    /// Explains why a database was not opened; if a profile has a similar name, suggests that profile.
    fn unopened(&self, error: OpenError) -> CommandFailure {
        let near = match (&error, self.chosen(None)) {
            (OpenError::NoFile(_), Some(word)) if !word.contains(['/', '.']) => {
                nearest(&word, self.config.profile.keys().map(String::as_str)).map(str::to_owned)
            }
            _ => None,
        };
        let failure = CommandFailure::from(error);
        let near = near.map(|name| format!("did you mean the profile `{name}`?"));
        CommandFailure { remedy: near.or(failure.remedy), ..failure }
    }

    /// Makes the veil that hides the handles of the people in a database; `None` if values are not masked.
    async fn veil(&self, store: &Store) -> Result<Option<Veil>, CommandFailure> {
        let Some(mask) = self.mask() else { return Ok(None) };
        let mut handles = people::handles(store).await?;
        let misspelt = misspelt_handles(super::typed(), &(self.commands)(), &handles);
        handles.extend(misspelt);
        Ok(Veil::new(&mask, handles))
    }
}

/// Finds typed words that are almost a handle: an error that repeats one would reveal who was meant.
fn misspelt_handles(typed: impl Iterator<Item = String>, commands: &[String], handles: &[String]) -> Vec<String> {
    let is_command = |word: &str| commands.iter().any(|command| command == word);
    let handles: HashSet<String> = handles.iter().map(|handle| handle.to_lowercase()).collect();
    let is_near = |word: &String| {
        let word = word.to_lowercase();
        let letters = word.chars().count();
        handles.iter().any(|handle| {
            handle.chars().count().abs_diff(letters) * MISSPELT <= letters
                && osa_distance(&word, handle) * MISSPELT <= letters
        })
    };
    let typed: Vec<String> = typed.collect();
    let parts = typed.iter().flat_map(|word| word.split(['/', '=', ':'])).flat_map(with_stem).map(str::to_owned);
    parts.filter(|word| !word.is_empty() && !is_command(word)).filter(is_near).collect()
}

/// A part of a path, with and without its extension.
fn with_stem(part: &str) -> [&str; 2] {
    [part, part.rsplit_once('.').map_or(part, |(stem, _)| stem)]
}

/// The endpoint in the settings; its key comes from the environment.
///
/// # Errors
/// The variable is not set.
fn endpoint(settings: &Embedding) -> Result<Endpoint, String> {
    const DAY: u64 = 86_400;
    let missing = |name: &String| format!("the key of the embedding endpoint should be in ${name}, which is not set");
    let key = settings.key_env.as_ref().map(|name| std::env::var(name).map_err(|_| missing(name))).transpose()?;
    Ok(Endpoint {
        url: settings.url.clone(),
        model: settings.model.clone(),
        key,
        timeout: Duration::from_secs(settings.timeout_seconds.clamp(1, DAY)),
        retries: settings.retries,
    })
}
