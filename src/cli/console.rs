//! Opens the console, and offers the demo where no database is named.

use std::io::{IsTerminal as _, Write as _};
use std::sync::Arc;
use std::time::Duration;

use clap::Args;

use super::context::{NO_DATABASE, Session};
use super::demo;
use super::doing::login;
use super::failure::CommandFailure;
use super::log::HeldLines;
use super::options::When;
use crate::config;
use crate::memory::mask::Mask;
use crate::memory::nearest::unknown;
use crate::memory::vector::CONSOLE_BYTES;
use crate::shell;
use crate::store::{OpenOptions, Store};
use crate::ui::Theme;

/// Time after which a read for the screen is given up.
const SCREEN_TIMEOUT: Duration = Duration::from_secs(5);

/// How the console looks.
#[derive(Debug, Clone, Default, Args)]
pub struct Look {
    /// Theme: dark, light, contrast or mono; asked of the terminal when not said.
    #[arg(long)]
    pub theme: Option<String>,
    /// Draw with ASCII only.
    #[arg(long)]
    pub ascii: bool,
    /// Leave the mouse to the terminal.
    #[arg(long)]
    pub no_mouse: bool,
}

/// Opens the console; without a database it offers the demo.
///
/// # Errors
/// A database that cannot be opened, an unknown theme, no terminal.
pub async fn open(session: &Session<'_>, named: Option<&str>, look: &Look) -> Result<(), CommandFailure> {
    let Some((target, options)) = session.target(named)? else { return offer_demo(session, look).await };
    let options = OpenOptions { connections: 3, statement_timeout: Some(SCREEN_TIMEOUT), ..options };
    let masked = session.global.mask || session.profile_named(named).is_some_and(|p| p.mask);
    let shown = shell::ConsoleOptions {
        theme: theme(session, look)?,
        ascii: look.ascii || session.config.ascii,
        mouse: !(look.no_mouse || session.config.no_mouse),
        colour: match session.global.color {
            When::Auto => None,
            When::Always => Some(true),
            When::Never => Some(false),
        },
        mask: Mask::new(config::mask_key()),
        masked,
        profile: session.profile_name(named),
        production: session.profile_named(named).is_some_and(|p| p.production),
        actor: login(),
        embedding: session.endpoint(named),
        vector_bytes: session.config.vector_cache_mb.map_or(CONSOLE_BYTES, |mb| mb as usize * (1 << 20)),
    };
    let opening = Arc::new((target, options));
    let opener: shell::Opener = Arc::new(move || {
        let opening = Arc::clone(&opening);
        Box::pin(async move { Store::open(&opening.0, &opening.1).await })
    });
    let held = HeldLines::begin();
    let ended = Box::pin(shell::run(opener, shown)).await;
    drop(held);
    match ended? {
        0 => Ok(()),
        code => Err(CommandFailure::new(code, "")),
    }
}

/// Name of the theme that was asked for.
///
/// # Errors
/// There is none of that name.
fn theme(session: &Session<'_>, look: &Look) -> Result<Option<String>, CommandFailure> {
    let name = look.theme.as_ref().or(session.config.theme.as_ref());
    match name.filter(|name| Theme::named(name).is_none()) {
        Some(name) => Err(CommandFailure::usage(unknown("theme", name, Theme::names()))),
        None => Ok(name.cloned()),
    }
}

async fn offer_demo(session: &Session<'_>, look: &Look) -> Result<(), CommandFailure> {
    if !std::io::stdin().is_terminal() || !std::io::stdout().is_terminal() {
        return Err(CommandFailure::usage(NO_DATABASE));
    }
    let _ = write!(std::io::stderr(), "No database is named. Make a demo database and open that? [Y/n] ");
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer)?;
    if !matches!(answer.trim().to_ascii_lowercase().as_str(), "" | "y" | "yes") {
        return Err(CommandFailure::usage(NO_DATABASE));
    }
    let path = demo::make(None, demo::EPISODES, demo::SEED, None, session.global).await?;
    Box::pin(open(session, Some(&path.display().to_string()), look)).await
}
