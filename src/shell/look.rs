//! Theme, number of colours and glyphs: chosen from the options, the environment and the terminal.

use std::env;
use std::time::Duration;

use crate::ui::{Depth, Glyphs, Look, Theme};

/// Time that the first frame waits for the terminal to report its background; over a network it may take longer.
const ANSWER: Duration = Duration::from_millis(80);
const REMOTE_ANSWER: Duration = Duration::from_millis(400);

/// The looks that can be chosen while the console runs.
pub struct LookChoices {
    name: String,
    own: Vec<Theme>,
    depth: Depth,
    glyphs: &'static Glyphs,
    look: Look,
    guessed: bool,
}

impl LookChoices {
    /// Creates the initial look; without a named theme, one for a dark background. The user's own themes take
    /// precedence over built-in ones of the same name. With `spoken`, it begins without colours.
    pub fn new(theme: Option<&str>, own: Vec<Theme>, ascii: bool, colour: Option<bool>, spoken: bool) -> Self {
        let theme = if spoken { Some("mono") } else { theme };
        let variable = |name: &str| env::var(name).ok();
        let no_color = match colour {
            Some(wanted) => (!wanted).then(|| "1".to_owned()),
            None => variable("NO_COLOR"),
        };
        let (colorterm, term) = (variable("COLORTERM"), variable("TERM"));
        let depth = Depth::detect(no_color.as_deref(), colorterm.as_deref(), term.as_deref());
        let (name, guessed) = match theme.filter(|name| theme_of(name, &own).is_some()) {
            Some(name) => (name, false),
            None if depth == Depth::Mono => ("mono", false),
            None => ("dark", !is_mute(term.as_deref())),
        };
        let glyphs = if ascii || !is_utf8() { Glyphs::ascii() } else { Glyphs::unicode() };
        let look = Look { spoken, ..look_of(name, &own, depth, glyphs) };
        LookChoices { name: name.to_owned(), own, depth, glyphs, look, guessed }
    }

    /// Returns how long to wait for the terminal to report its background; `None` if the theme does not depend on it.
    pub fn patience(&self) -> Option<Duration> {
        let remote = env::var_os("SSH_TTY").is_some() || env::var_os("SSH_CONNECTION").is_some();
        self.guessed.then_some(if remote { REMOTE_ANSWER } else { ANSWER })
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// The look of this name; an unknown name keeps the current look.
    pub fn named(&mut self, name: &str) -> &Look {
        if name != self.name && theme_of(name, &self.own).is_some() {
            self.look = Look { spoken: self.look.spoken, ..look_of(name, &self.own, self.depth, self.glyphs) };
            name.clone_into(&mut self.name);
        }
        &self.look
    }
}

fn look_of(name: &str, own: &[Theme], depth: Depth, glyphs: &'static Glyphs) -> Look {
    let theme = theme_of(name, own).unwrap_or_else(Theme::dark);
    Look::new(theme.at(depth), glyphs)
}

/// The theme of this name; the user's own come first.
fn theme_of(name: &str, own: &[Theme]) -> Option<Theme> {
    own.iter().find(|theme| theme.name() == name).cloned().or_else(|| Theme::named(name))
}

/// Whether the terminal type has no colours to report.
fn is_mute(term: Option<&str>) -> bool {
    matches!(term, None | Some("" | "dumb" | "linux"))
}

/// Whether the locale's characters are UTF-8.
fn is_utf8() -> bool {
    let set = ["LC_ALL", "LC_CTYPE", "LANG"].iter().filter_map(|name| env::var(name).ok()).find(|v| !v.is_empty());
    set.is_some_and(|locale| {
        let locale = locale.to_ascii_lowercase();
        locale.contains("utf-8") || locale.contains("utf8")
    })
}
