//! The headless twins of the console: standard output is data, standard error is words, exit codes are a contract.

pub mod args;
mod as_of;
mod audit;
pub mod backfill;
mod change;
pub mod change_args;
mod columns;
pub mod compare;
mod demo;
mod evaluate;
pub mod failure;
pub mod find;
pub mod findings;
mod fleet;
mod follow;
mod hints;
pub mod ink;
mod insights;
mod layouts;
pub mod log;
mod look;
mod migrate;
pub mod output;
mod policy;
pub mod prune;
mod purge;
pub mod purge_args;
mod raw;
mod recall;
pub mod recall_args;
pub mod schema;
pub mod table;

use std::io::Write as _;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::{CommandFactory as _, Parser as _, ValueEnum as _};

use crate::config::{self, Config, Profile};
use crate::lab::people;
use crate::memory::invocation::Invocation;
use crate::memory::mask::Mask;
use crate::memory::nearest::{nearest, unknown};
use crate::memory::veil::Veil;
use crate::shell;
use crate::store::{OpenError, OpenOptions, Store, Target};
use crate::ui::Theme;
use args::{Cli, Command, Format, Global, Look, When};
pub use failure::Failure;

/// Time after which a read for the screen is given up.
const SCREEN_TIMEOUT: Duration = Duration::from_secs(5);
const NO_DATABASE: &str = "no database is named: use -d DATABASE, MNEMOSCOPE_DATABASE, DATABASE_URL or a default \
     profile; `mnemoscope demo` makes one to try";

/// Runs the program on the command line's arguments.
#[must_use]
pub fn main() -> ExitCode {
    let (outcome, as_json) = match Cli::try_parse() {
        Ok(cli) => {
            output::speak(&cli.global);
            (logged(&cli), cli.global.format.is_some_and(Format::is_json))
        }
        // Help and version: words of ours only.
        Err(answer) if !answer.use_stderr() => answer.exit(),
        Err(wrong) => {
            let format = asked_format();
            match misspelt(&wrong) {
                None if !format.is_some_and(Format::is_json) => {
                    failure::say("", &wrong.render().to_string());
                    return ExitCode::from(2);
                }
                found => {
                    (Err(found.unwrap_or_else(|| Failure::of_parser(&wrong))), format.is_some_and(Format::is_json))
                }
            }
        }
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            failure.tell(as_json);
            ExitCode::from(failure.code)
        }
    }
}

/// The format that a command line asks for which could not be read.
fn asked_format() -> Option<Format> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let following = words.windows(2).filter(|pair| pair[0] == "--format").map(|pair| pair[1].as_str());
    let mut asked: Vec<&str> = words.iter().filter_map(|word| word.strip_prefix("--format=")).collect();
    asked.extend(following);
    asked.last().and_then(|name| Format::from_str(name, true).ok())
}

/// The failure of a command line that was not read because its first word is no command.
fn misspelt(wrong: &clap::Error) -> Option<Failure> {
    if wrong.kind() != clap::error::ErrorKind::UnknownArgument {
        return None;
    }
    let matches = Cli::command().ignore_errors(true).try_get_matches().ok()?;
    let word = matches.get_one::<String>("positional").filter(|_| matches.subcommand().is_none())?;
    (!std::path::Path::new(word).exists()).then(|| Failure::usage(no_command(word)))
}

/// That there is no such command, with the nearest one.
fn no_command(word: &str) -> String {
    let known = Cli::command();
    let near = nearest(word, known.get_subcommands().map(clap::Command::get_name));
    let hint = near.map_or("; `mnemoscope help` lists them".to_owned(), |n| format!("; did you mean `{n}`?"));
    format!("there is no command `{word}`{hint}")
}

/// Runs, and writes down when and with what end. Arguments may name people: they are not written down.
fn logged(cli: &Cli) -> Result<(), Failure> {
    log::start(&cli.global)?;
    let began = Instant::now();
    tracing::info!(version = env!("CARGO_PKG_VERSION"), "started");
    let outcome = run(cli);
    let (code, error) = outcome.as_ref().err().map_or((0, "none"), |failure| (failure.code, failure.word()));
    tracing::info!(code, error, milliseconds = began.elapsed().as_millis() as u64, "ended");
    outcome
}

fn run(cli: &Cli) -> Result<(), Failure> {
    if cli.command.is_some() && cli.positional.is_some() {
        return Err(Failure::usage("name the database of a command with -d: mnemoscope -d DATABASE COMMAND"));
    }
    if let (Some(word), Some(_), None) = (&cli.positional, &cli.database, &cli.command) {
        return Err(Failure::usage(no_command(word)));
    }
    match &cli.command {
        Some(Command::Completions { shell }) => {
            // Not straight into the pipe: the generator panics where that is closed.
            let mut script = Vec::new();
            clap_complete::generate(*shell, &mut Cli::command(), "mnemoscope", &mut script);
            return output::piped(|out| out.write_all(&script));
        }
        Some(Command::Man) => return output::piped(|out| clap_mangen::Man::new(Cli::command()).render(out)),
        _ => {}
    }
    let config = config::load().map_err(Failure::usage)?;
    if let (Some(word), None) = (&cli.positional, &cli.command) {
        check_meant(word, &config)?;
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(|e| Failure::failed(format!("the runtime did not start: {e}")))?;
    let outcome = runtime.block_on(dispatch(cli, &config));
    // A read that was broken off need not be waited for.
    runtime.shutdown_background();
    outcome
}

/// Refuses a word alone that names no database but resembles a command or a profile.
fn check_meant(word: &str, config: &Config) -> Result<(), Failure> {
    let is_named = config.profile.contains_key(word) || std::path::Path::new(word).exists();
    if is_named || word.contains(['/', '.', ':']) {
        return Ok(());
    }
    let known = Cli::command();
    let names = known.get_subcommands().map(clap::Command::get_name).chain(config.profile.keys().map(String::as_str));
    match nearest(word, names) {
        Some(near) => {
            Err(Failure::usage(format!("there is neither a database nor a command `{word}`; did you mean `{near}`?")))
        }
        None => Ok(()),
    }
}

async fn dispatch(cli: &Cli, config: &Config) -> Result<(), Failure> {
    let session = Session { cli, config };
    match &cli.command {
        None => session.console(cli.positional.as_deref(), &Look::default()).await,
        Some(Command::Console { database, look }) => session.console(database.as_deref(), look).await,
        Some(Command::Demo { path, episodes, seed, at, no_console, look }) => {
            let path = demo::make(path.as_deref(), *episodes, *seed, at.as_deref(), &cli.global).await?;
            if *no_console {
                return Ok(());
            }
            session.console(Some(&path.display().to_string()), look).await
        }
        Some(Command::Status { sizes }) => look::status(&session, *sizes).await,
        Some(Command::List { entity, selection, limit, after, follow: true, .. }) => {
            follow::run(&session, entity, selection, *limit, after.as_deref()).await
        }
        Some(Command::List { entity, selection, limit, after, as_of, .. }) => {
            look::list(&session, entity, selection, *limit, after.as_deref(), as_of.as_deref()).await
        }
        Some(Command::Tables) => raw::tables(&session).await,
        Some(Command::Table { name, selection }) => raw::table(&session, name, selection).await,
        Some(Command::Show { entity, id, as_of }) => look::show(&session, entity, id, as_of.as_deref()).await,
        Some(Command::Insights { agent }) => insights::insights(&session, agent.as_deref()).await,
        Some(Command::Graduation { agent }) => insights::graduation(&session, agent).await,
        Some(Command::Evaluate(args)) => evaluate::run(&session, args).await,
        Some(Command::Findings(asked)) => findings::run(&session, asked).await,
        Some(Command::Schema(asked)) => schema::run(&session, asked),
        Some(Command::Compare(asked)) => compare::run(&session, asked).await,
        Some(Command::Find(asked)) => find::run(&session, asked).await,
        Some(Command::Chain { episode, suggest_parents: true }) => recall::parents(&session, episode).await,
        Some(Command::Chain { episode, .. }) => look::chain(&session, episode).await,
        Some(Command::Queries { command }) => recall::queries(&session, command.as_ref()).await,
        Some(Command::Recall(args)) => recall::recall(&session, args).await,
        Some(Command::Context { recall, tokens, tokens_per_row }) => {
            recall::context(&session, recall, *tokens, *tokens_per_row).await
        }
        Some(Command::Replay { topic, agent, limit }) => {
            recall::replay(&session, topic, agent.as_deref(), *limit).await
        }
        Some(Command::Layouts { command }) => layouts::run(&session, command.as_ref()).await,
        Some(Command::Export { entities, out, selection }) => {
            look::export(&session, entities, selection, out.as_deref()).await
        }
        Some(Command::Change(command)) => change::run(&session, command).await,
        Some(Command::Backfill(asked)) => backfill::run(&session, asked).await,
        Some(Command::Completions { .. } | Command::Man) => Ok(()),
    }
}

/// A command's surroundings: its arguments and the settings.
pub struct Session<'a> {
    cli: &'a Cli,
    config: &'a Config,
}

impl Session<'_> {
    /// Options for every command.
    #[must_use]
    pub fn global(&self) -> &Global {
        &self.cli.global
    }

    /// The output format: what was asked for, else a table on a terminal and JSON in a pipe.
    #[must_use]
    pub fn format(&self) -> Format {
        use std::io::IsTerminal as _;
        let default = if std::io::stdout().is_terminal() { Format::Table } else { Format::Json };
        self.cli.global.format.unwrap_or(default)
    }

    /// The mask, when personal values are not to be shown.
    #[must_use]
    pub fn mask(&self) -> Option<Mask> {
        let by_profile = self.profile_named(None).is_some_and(|p| p.mask);
        (self.cli.global.mask || by_profile).then(|| Mask::new(config::mask_key()))
    }

    /// Where vectors of texts come from, if the profile says so.
    #[must_use]
    pub fn embedding(&self) -> Option<&config::Embedding> {
        self.profile_named(None)?.embedding.as_ref()
    }

    /// What the operator means by "the database": named, else from the environment, else the default profile.
    fn chosen(&self, named: Option<&str>) -> Option<String> {
        let variable = |name: &str| std::env::var(name).ok().filter(|v| !v.is_empty());
        named
            .map(str::to_owned)
            .or_else(|| self.cli.database.clone())
            .or_else(|| self.cli.global.profile.clone())
            .or_else(|| variable("MNEMOSCOPE_DATABASE"))
            .or_else(|| variable("DATABASE_URL"))
            .or_else(|| self.config.default.clone())
    }

    /// The profile whose settings hold: `--profile`, else the one that the database is named by.
    fn profile_named(&self, named: Option<&str>) -> Option<&Profile> {
        self.config.profile.get(&self.profile_name(named)?)
    }

    /// Its name.
    fn profile_name(&self, named: Option<&str>) -> Option<String> {
        let name = self.cli.global.profile.clone().or_else(|| self.chosen(named))?;
        self.config.profile.contains_key(&name).then_some(name)
    }

    /// What to open: named, else from the environment, else the default profile; none when nothing says so.
    ///
    /// # Errors
    /// A profile that is not in the settings.
    fn target(&self, named: Option<&str>) -> Result<Option<(Target, OpenOptions)>, Failure> {
        let global = &self.cli.global;
        if let Some(name) = global.profile.as_ref().filter(|name| !self.config.profile.contains_key(*name)) {
            let known = self.config.profile.keys().map(String::as_str);
            return Err(Failure::usage(unknown("profile in the settings", name, known)));
        }
        let Some(text) = self.chosen(named) else { return Ok(None) };
        let profile = self.profile_named(named);
        let database = match self.config.profile.get(&text) {
            Some(profile) => profile.database.clone(),
            None => text,
        };
        let target = Target::parse(&database);
        let companion = match &target {
            Target::File(path) if path.is_dir() => config::companion(path),
            _ => None,
        };
        let layout = global.layout.clone().or_else(|| profile.and_then(|p| p.layout.clone()));
        let secret = config::erasure_key(false).ok().flatten();
        let anchors = config::anchor_folder();
        let connect_timeout = profile.and_then(|p| p.connect_timeout).map(Duration::from_secs);
        let invocation = Some(self.invocation(named));
        let options = OpenOptions {
            layout,
            own_layouts: config::layouts(),
            invocation,
            connect_timeout,
            companion,
            anchors,
            secret,
            ..OpenOptions::default()
        };
        Ok(Some((target, options)))
    }

    /// How an advised command names the database: as the operator did, without a password.
    fn invocation(&self, named: Option<&str>) -> Invocation {
        let global = &self.cli.global;
        let mut words = Vec::new();
        let mut add = |option: &str, value: &str| words.extend([option.to_owned(), value.to_owned()]);
        let typed = named.or(self.cli.database.as_deref());
        match (typed, &global.profile, self.chosen(named)) {
            (Some(text), ..) => add("-d", &Target::parse(text).shown()),
            (None, None, Some(text)) => {
                let shown = Target::parse(&text).shown();
                // A password that stands in the environment alone is there for the next command too.
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
    /// Nothing said which one, or it cannot be opened.
    pub async fn store(&self) -> Result<Store, Failure> {
        let Some((target, options)) = self.target(None)? else {
            return Err(Failure::usage(NO_DATABASE));
        };
        let store = Store::open(&target, &options).await.map_err(|error| self.unopened(error))?;
        if let Some(reason) = store.recognised().closed().filter(|_| self.changes()) {
            return Err(Failure::refused(reason));
        }
        if let Some(veil) = self.veil(&store).await? {
            output::veil(veil);
        }
        let layouts: Vec<_> = store.recognised().layouts.iter().map(|l| l.name.as_str()).collect();
        tracing::info!(database = store.location(), layouts = layouts.join(", "), "opened");
        for gap in store.gaps() {
            output::afterwards(format!("note: {gap}"));
        }
        Ok(store)
    }

    /// Whether the command is one that changes a database, or plans to.
    fn changes(&self) -> bool {
        match &self.cli.command {
            Some(Command::Change(command)) => command.changes(),
            Some(Command::Backfill(asked)) => asked.names_one(),
            _ => false,
        }
    }

    /// Why a database was not opened; where a profile of nearly that name is known, that one may have been meant.
    fn unopened(&self, error: OpenError) -> Failure {
        let near = match (&error, self.chosen(None)) {
            (OpenError::NoFile(_), Some(word)) if !word.contains(['/', '.']) => {
                nearest(&word, self.config.profile.keys().map(String::as_str)).map(str::to_owned)
            }
            _ => None,
        };
        Failure { remedy: near.map(|name| format!("did you mean the profile `{name}`?")), ..Failure::from(error) }
    }

    /// What hides the handles of the people in a database, where values are masked.
    async fn veil(&self, store: &Store) -> Result<Option<Veil>, Failure> {
        let Some(mask) = self.mask() else { return Ok(None) };
        Ok(Veil::new(&mask, people::handles(store).await?))
    }

    /// Opens the console; without a database it offers the demo.
    async fn console(&self, named: Option<&str>, look: &Look) -> Result<(), Failure> {
        let Some((target, options)) = self.target(named)? else { return self.offer_demo(look).await };
        let options = OpenOptions { connections: 3, statement_timeout: Some(SCREEN_TIMEOUT), ..options };
        let masked = self.cli.global.mask || self.profile_named(named).is_some_and(|p| p.mask);
        let shown = shell::Options {
            theme: self.theme(look)?,
            ascii: look.ascii || self.config.ascii,
            mouse: !(look.no_mouse || self.config.no_mouse),
            colour: match self.cli.global.color {
                When::Auto => None,
                When::Always => Some(true),
                When::Never => Some(false),
            },
            mask: Mask::new(config::mask_key()),
            masked,
            profile: self.profile_name(named),
            production: self.profile_named(named).is_some_and(|p| p.production),
            actor: change::login(),
            embedding: self.profile_named(named).and_then(|p| p.embedding.as_ref()).map(recall::endpoint),
        };
        let opening = Arc::new((target, options));
        let open: shell::Opener = Arc::new(move || {
            let opening = Arc::clone(&opening);
            Box::pin(async move { Store::open(&opening.0, &opening.1).await })
        });
        let held = log::Held::begin();
        let ended = Box::pin(shell::run(open, shown)).await;
        drop(held);
        match ended? {
            0 => Ok(()),
            code => Err(Failure::new(code, "")),
        }
    }

    /// Name of the theme that was asked for.
    ///
    /// # Errors
    /// There is none of that name.
    fn theme(&self, look: &Look) -> Result<Option<String>, Failure> {
        let name = look.theme.as_ref().or(self.config.theme.as_ref());
        match name.filter(|name| Theme::named(name).is_none()) {
            Some(name) => Err(Failure::usage(unknown("theme", name, Theme::names()))),
            None => Ok(name.cloned()),
        }
    }

    async fn offer_demo(&self, look: &Look) -> Result<(), Failure> {
        use std::io::IsTerminal as _;
        if !std::io::stdin().is_terminal() || !std::io::stdout().is_terminal() {
            return Err(Failure::usage(NO_DATABASE));
        }
        let _ = write!(std::io::stderr(), "No database is named. Make a demo database and open that? [Y/n] ");
        let mut answer = String::new();
        std::io::stdin().read_line(&mut answer)?;
        if !matches!(answer.trim().to_ascii_lowercase().as_str(), "" | "y" | "yes") {
            return Err(Failure::usage(NO_DATABASE));
        }
        let path = demo::make(None, demo::EPISODES, demo::SEED, None, &self.cli.global).await?;
        Box::pin(self.console(Some(&path.display().to_string()), look)).await
    }
}
