//! Opens the console, and offers the demo where no database is named.

use std::io::{IsTerminal as _, Write as _};
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use futures::future::BoxFuture;

use super::context::{Damage, NO_DATABASE, Session};
use super::demo::{self, DemoArgs};
use super::doing::login;
use super::failure::CommandFailure;
use super::ink::ColourSurroundings;
use super::log::HeldLines;
use super::options::{Global, When};
use crate::config::{self, Config, DatabaseProfile};
use crate::console::core::KeyMap;
use crate::console::core::request::KnownDatabase;
use crate::memory::mask::Mask;
use crate::memory::nearest::unknown;
use crate::memory::vector::CONSOLE_BYTES;
use crate::shell;
use crate::store::{OpenOptions, Store, Target};
use crate::ui::{SafeText, Theme};

/// Name of the demo where databases are chosen.
const DEMO: &str = "the demo";
/// Time after which a read for the screen is given up.
const SCREEN_TIMEOUT: Duration = Duration::from_secs(5);

/// Options for the look of the console.
#[derive(Debug, Clone, Default, Args)]
pub struct Look {
    /// Theme: dark, light, contrast, mono or one of your own; follows the terminal's background by default.
    #[arg(long)]
    pub theme: Option<String>,
    /// Draw with ASCII only.
    #[arg(long)]
    pub ascii: bool,
    /// Leave the mouse to the terminal.
    #[arg(long)]
    pub no_mouse: bool,
    /// Print changes line by line instead of drawing the screen, for screen readers and where TERM is dumb.
    #[arg(long)]
    pub plain: bool,
}

/// Opens the console; without a database it offers the demo.
///
/// # Errors
/// A database that cannot be opened, an unknown theme, no terminal.
pub async fn open(session: &Session<'_>, named: Option<&str>, look: &Look) -> Result<(), CommandFailure> {
    if named.is_some() && session.database.is_some() {
        return Err(CommandFailure::usage("the console opens one database at first: name it once, with or without -d"));
    }
    let Some(door) = door(session, named)? else { return offer_demo(session, look).await };
    let own_themes = own_themes()?;
    let shown = shell::ConsoleOptions {
        theme: theme(session, look, &own_themes)?,
        own_themes,
        keys: keys(session)?,
        ascii: look.ascii || session.config.ascii,
        mouse: !(look.no_mouse || session.config.no_mouse),
        plain: look.plain || ColourSurroundings::here().dumb,
        colour: match session.global.color {
            When::Auto => None,
            When::Always => Some(true),
            When::Never => Some(false),
        },
        mask: Mask::new(config::mask_key()),
        actor: login(),
        vector_bytes: session.config.vector_cache_mb.map_or(CONSOLE_BYTES, |mb| mb as usize * (1 << 20)),
    };
    let held = HeldLines::begin();
    let ended = Box::pin(shell::run(door, doors(session), shown)).await;
    drop(held);
    match ended? {
        0 => Ok(()),
        code => Err(CommandFailure::new(code, "")),
    }
}

/// The door to a database that is named, or to the one that is meant; none when nothing says which.
///
/// # Errors
/// A profile that is not in the settings.
fn door(session: &Session<'_>, named: Option<&str>) -> Result<Option<shell::Door>, CommandFailure> {
    let Some((target, options)) = session.target(named)? else { return Ok(None) };
    let options = OpenOptions { connections: 3, statement_timeout: Some(SCREEN_TIMEOUT), ..options };
    let past_damage = OpenOptions { reads_past_damage: true, ..options.clone() };
    Ok(Some(shell::Door {
        open: opener(target.clone(), options),
        past_damage: opener(target, past_damage),
        masked: session.global.mask || session.profile_named(named).is_some_and(|p| p.mask),
        profile: session.profile_name(named),
        production: session.profile_named(named).is_some_and(|p| p.production),
        embedding: session.endpoint(named),
    }))
}

fn opener(target: Target, options: OpenOptions) -> shell::Opener {
    let opening = Arc::new((target, options));
    Arc::new(move || {
        let opening = Arc::clone(&opening);
        Box::pin(async move { Store::open(&opening.0, &opening.1).await })
    })
}

/// The databases that can be opened from the console: each by what it is called alone, without this command's options.
fn doors(session: &Session<'_>) -> shell::Doors {
    let commands = session.commands;
    let global = Arc::new(Global { profile: None, layout: Vec::new(), quiet: true, ..session.global.clone() });
    let config = Arc::new(session.config.clone());
    let known = Arc::clone(&config);
    let make = move |named: String| {
        let (global, config) = (Arc::clone(&global), Arc::clone(&config));
        let opened = async move {
            let told = |failure: CommandFailure| failure.message;
            let named = if named == DEMO {
                demo::make(&DemoArgs::default(), &global).await.map_err(told)?.display().to_string()
            } else {
                named
            };
            let session = Session {
                global: &global,
                commands,
                database: None,
                config: &config,
                changes: false,
                looks: false,
                suits_standby: false,
                damage: Damage::default(),
            };
            door(&session, Some(&named)).map_err(told)?.ok_or_else(|| "no database is named".to_owned())
        };
        Box::pin(opened) as BoxFuture<'static, Result<shell::Door, String>>
    };
    shell::Doors { door: Arc::new(make), known: Arc::new(move |here| known_databases(&known, here)) }
}

/// Databases that were looked at here, the latest first, then profiles, then the demo.
fn known_databases(config: &Config, here: &str) -> Vec<KnownDatabase> {
    const RECENT: usize = 12;
    let looked = shell::looked_at();
    let profile = |(name, profile): (&String, &DatabaseProfile)| KnownDatabase {
        name: name.clone(),
        note: Target::parse(&profile.database).shown(),
        looked: looked.get(&config::place_of(&profile.database)).cloned(),
        production: profile.production,
        open: name.clone(),
    };
    let profiles: Vec<KnownDatabase> = config.profile.iter().map(profile).collect();
    let here = config::place_of(here);
    let of_profiles: Vec<String> = profiles.iter().map(|profile| config::place_of(&profile.note)).collect();
    let mut recent: Vec<(&String, &String)> =
        looked.iter().filter(|(place, _)| **place != here && !of_profiles.contains(place)).collect();
    recent.sort_by(|a, b| b.1.cmp(a.1));
    let of_recent = |(location, at): (&String, &String)| KnownDatabase {
        name: location.clone(),
        note: String::new(),
        looked: Some(at.clone()),
        production: false,
        open: location.clone(),
    };
    let demo = KnownDatabase {
        name: DEMO.to_owned(),
        note: "invented data, to try things".to_owned(),
        looked: None,
        production: false,
        open: DEMO.to_owned(),
    };
    recent.into_iter().take(RECENT).map(of_recent).chain(profiles).chain([demo]).collect()
}

/// Name of the theme that was asked for.
///
/// # Errors
/// There is none of that name.
fn theme(session: &Session<'_>, look: &Look, own: &[Theme]) -> Result<Option<String>, CommandFailure> {
    let name = look.theme.as_ref().or(session.config.theme.as_ref());
    let own = own.iter().map(|theme| theme.name().to_owned());
    let names: Vec<String> = own.chain(Theme::names().map(str::to_owned)).collect();
    match name.filter(|name| !names.contains(name)) {
        Some(name) => Err(CommandFailure::usage(unknown("theme", name, names.iter().map(String::as_str)))),
        None => Ok(name.cloned()),
    }
}

/// The themes that the user made.
///
/// # Errors
/// The first mistake in one of their files.
fn own_themes() -> Result<Vec<Theme>, CommandFailure> {
    let parse = |(file, text): (String, String)| Theme::parse(&file, &text);
    config::themes()
        .into_iter()
        .map(parse)
        .collect::<Result<_, _>>()
        .map_err(|wrong| CommandFailure::usage(wrong.to_string()))
}

/// The keys of commands, those of the settings in the place of the usual ones.
///
/// # Errors
/// The first binding that cannot be, with its line.
fn keys(session: &Session<'_>) -> Result<KeyMap, CommandFailure> {
    KeyMap::with(&session.config.keys).map_err(|wrong| {
        let file = config::path().map(|path| path.display().to_string()).unwrap_or_default();
        CommandFailure::usage(format!("{file}:{}: {wrong}", wrong.line))
    })
}

/// Offers the known databases and the demo to choose from when no database is named.
async fn offer_demo(session: &Session<'_>, look: &Look) -> Result<(), CommandFailure> {
    if !std::io::stdin().is_terminal() || !std::io::stdout().is_terminal() {
        return Err(CommandFailure::usage(NO_DATABASE));
    }
    let known = known_databases(session.config, "");
    let mut err = std::io::stderr();
    let _ = writeln!(err, "No database is named. Open one of these, or enter a path or an address:\n");
    for (number, database) in known.iter().enumerate() {
        let note = [database.note.as_str(), if database.production { "PRODUCTION" } else { "" }].join(" ");
        let line = format!("  {:>2}  {}  {}", number + 1, database.name, note.trim());
        let _ = writeln!(err, "{}", SafeText::new(line.trim_end()));
    }
    let _ = write!(err, "\n[{}, the demo] ", known.len());
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer)?;
    let chosen = match answer.trim() {
        "n" | "no" => return Err(CommandFailure::usage(NO_DATABASE)),
        "" | "y" | "yes" => known.last(),
        text => text.parse::<usize>().ok().and_then(|number| known.get(number.checked_sub(1)?)),
    };
    let named = chosen.map_or_else(|| answer.trim().to_owned(), |database| database.open.clone());
    let named = if named == DEMO {
        demo::make(&DemoArgs::default(), session.global).await?.display().to_string()
    } else {
        named
    };
    Box::pin(open(session, Some(&named), look)).await
}
