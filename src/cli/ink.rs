//! Colours of printed text, out of the sixteen that the operator's terminal defines.

use std::fmt::Display;

use super::options::When;

#[derive(Debug, Clone, Copy, Default)]
pub struct ColourSurroundings {
    /// `NO_COLOR` is set to something.
    pub no_color: bool,
    /// `CLICOLOR_FORCE` is set to something other than 0.
    pub forced: bool,
    /// `TERM` is `dumb`.
    pub dumb: bool,
}

impl ColourSurroundings {
    pub fn here() -> Self {
        let value = |name: &str| std::env::var(name).unwrap_or_default();
        ColourSurroundings {
            no_color: !value("NO_COLOR").is_empty(),
            forced: !matches!(value("CLICOLOR_FORCE").as_str(), "" | "0"),
            dumb: value("TERM") == "dumb",
        }
    }
}

/// Whether colours are used, and which.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OutputInk {
    on: bool,
}

impl OutputInk {
    pub const fn none() -> Self {
        OutputInk { on: false }
    }

    /// Colours for a stream, as requested: `auto` follows `NO_COLOR`, then `CLICOLOR_FORCE`, then whether the stream is
    /// a terminal with colours.
    pub fn of(when: When, is_terminal: bool, here: ColourSurroundings) -> Self {
        let on = match when {
            When::Always => true,
            When::Never => false,
            When::Auto => !here.no_color && (here.forced || is_terminal && !here.dumb),
        };
        OutputInk { on }
    }

    pub fn heading(self, words: impl Display) -> String {
        self.sgr("1", words)
    }

    /// Colours text about an error.
    pub fn bad(self, words: impl Display) -> String {
        self.sgr("38;5;1", words)
    }

    /// Colours text that needs a look.
    pub fn warn(self, words: impl Display) -> String {
        self.sgr("38;5;3", words)
    }

    /// Colours text about a success.
    pub fn good(self, words: impl Display) -> String {
        self.sgr("38;5;2", words)
    }

    /// Dims unimportant text.
    pub fn faint(self, words: impl Display) -> String {
        self.sgr("2", words)
    }

    /// A table's value, `shown` at its width: words for an outcome are coloured.
    pub fn cell(self, value: &str, shown: &str) -> String {
        match value {
            super::table::NOTHING => self.faint(shown),
            "success" | "confirmed" | "thumbs_up" => self.good(shown),
            "failure" | "rejected" | "undone" | "thumbs_down" => self.bad(shown),
            "partial" | "aborted" | "corrected" => self.warn(shown),
            _ => shown.to_owned(),
        }
    }

    fn sgr(self, code: &str, words: impl Display) -> String {
        if self.on { format!("\x1b[{code}m{words}\x1b[0m") } else { words.to_string() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_for_goes_before_what_the_environment_says() {
        let (plain, none) =
            (ColourSurroundings::default(), ColourSurroundings { no_color: true, ..ColourSurroundings::default() });
        let forced = ColourSurroundings { forced: true, ..plain };
        for (when, terminal, here, expected) in [
            (When::Auto, true, plain, true),
            (When::Auto, false, plain, false),
            (When::Auto, true, none, false),
            (When::Auto, false, forced, true),
            (When::Auto, true, ColourSurroundings { no_color: true, ..forced }, false),
            (When::Auto, true, ColourSurroundings { dumb: true, ..plain }, false),
            (When::Always, false, none, true),
            (When::Never, true, forced, false),
        ] {
            assert_eq!(OutputInk::of(when, terminal, here).on, expected, "{when:?} {terminal} {here:?}");
        }
    }
}
