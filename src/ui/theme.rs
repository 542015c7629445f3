//! Styles by meaning: roles, and the themes that assign a style to each role.

use super::colour::Tint;
use crate::ground::assets;
use ratatui::style::{Color, Modifier, Style};

mod file;

pub use super::colour::Depth;

/// Turns `Variant "name" <- Fallback` rows into the enum, its names and its fallback chain.
macro_rules! roles {
    ($($(#[$meta:meta])+ $variant:ident $name:literal $(<- $fallback:ident)?;)+) => {
        /// Meaning of a part of the screen. Every theme has a style for each.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
        pub enum StyleRole {
            $($(#[$meta])+ $variant,)+
        }

        impl StyleRole {
            /// Every role, in the order of the theme files.
            pub const ALL: &[Self] = &[$(Self::$variant,)+];

            /// The name in theme files.
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)+ }
            }

            /// The role whose style is used if a theme does not define this one.
            fn fallback(self) -> Option<Self> {
                match self { $(Self::$variant => None $(.or(Some(Self::$fallback)))?,)+ }
            }
        }
    };
}

roles! {
    /// Ordinary text.
    #[default]
    Text "text";
    /// Less important text.
    Muted "muted" <- Text;
    /// An active element, or one that leads on.
    Accent "accent" <- Text;
    /// The title of a section.
    Heading "heading" <- Text;
    /// A frame without the focus.
    Border "border" <- Muted;
    /// The focused frame.
    BorderFocused "border-focused" <- Accent;
    /// The titles of columns.
    Header "header" <- Muted;
    /// The name of a value.
    Label "label" <- Muted;
    /// The selected row, patched over the row's own colours.
    Selection "selection";
    /// The same in a pane without the focus.
    SelectionIdle "selection-idle" <- Selection;
    /// Text without a colour of its own on the ground of a selection: the terminal's own may be the ground's.
    OnSelection "on-selection" <- Text;
    /// Went well.
    Good "good" <- Text;
    /// Needs attention.
    Warn "warn" <- Text;
    /// Went wrong.
    Bad "bad" <- Text;
    /// A text that replaced another one.
    Added "added" <- Good;
    /// Neither; worth knowing.
    Info "info" <- Text;
    /// A key to press.
    Key "key" <- Accent;
    /// An irreversible action.
    Danger "danger" <- Bad;
    /// A pseudonym in place of a personal value.
    Masked "masked" <- Muted;
    /// The badge of a session that cannot write.
    ReadOnly "read-only" <- Good;
    /// The badge of a session that can.
    Writable "writable" <- Warn;
    /// The badge of a database that others depend on.
    Production "production" <- Danger;
    /// A mark for a character that cannot be drawn, patched over the text's own style.
    Mark "mark" <- Warn;
    /// A match of a search, patched over the text's own style.
    Hit "hit" <- Selection;
    /// Out of date, soon replaced.
    Stale "stale" <- Muted;
    /// The empty part of a bar; grids.
    Track "track" <- Border;
    /// A link.
    Link "link" <- Accent;
    /// A number, in data.
    Number "number" <- Text;
    /// A text, in data.
    String "string" <- Text;
    /// True, false, null, in data.
    Word "word" <- Muted;
    /// The name of a field, in data.
    Name "name" <- Accent;
    /// The first series of a chart.
    Series1 "series-1" <- Accent;
    /// The second series of a chart.
    Series2 "series-2" <- Warn;
    /// The third series of a chart.
    Series3 "series-3" <- Good;
    /// The fourth series of a chart.
    Series4 "series-4" <- Masked;
    /// The fifth series of a chart.
    Series5 "series-5" <- Info;
    /// The sixth series of a chart.
    Series6 "series-6" <- Bad;
    /// Nothing happened.
    Heat0 "heat-0" <- Track;
    /// A little happened.
    Heat1 "heat-1" <- Muted;
    /// Some happened.
    Heat2 "heat-2" <- Text;
    /// Much happened.
    Heat3 "heat-3" <- Accent;
    /// Most happened.
    Heat4 "heat-4" <- Heading;
}

impl StyleRole {
    /// The role of a chart's series, counted from 0; they repeat after six.
    pub fn series(index: usize) -> Self {
        const SERIES: [StyleRole; 6] = [
            StyleRole::Series1,
            StyleRole::Series2,
            StyleRole::Series3,
            StyleRole::Series4,
            StyleRole::Series5,
            StyleRole::Series6,
        ];
        SERIES[index % SERIES.len()]
    }

    /// The role of an intensity from 0 (none) to 4 (most).
    pub fn heat(level: usize) -> Self {
        const HEAT: [StyleRole; 5] =
            [StyleRole::Heat0, StyleRole::Heat1, StyleRole::Heat2, StyleRole::Heat3, StyleRole::Heat4];
        HEAT[level.min(HEAT.len() - 1)]
    }
}

/// An error in a theme file, with its place and a correction.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}: {problem}")]
pub struct ThemeError {
    /// The file's name, as given.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// Description of the error, and of valid values.
    pub problem: String,
}

/// The style of every role.
#[derive(Clone, Debug, PartialEq)]
pub struct Theme {
    name: String,
    depth: Depth,
    /// Theme's entry for each role, in the order of [`StyleRole::ALL`].
    inks: Vec<Option<RoleInk>>,
    /// Styles for the terminal's colour depth, without gaps.
    styles: Vec<Style>,
}

/// A style as a theme writes it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct ThemeInk {
    fg: Option<Tint>,
    bg: Option<Tint>,
    on: Modifier,
    off: Modifier,
}

/// Theme's entry for a role: a style, and perhaps another one for terminals with sixteen colours.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct RoleInk {
    ink: ThemeInk,
    ansi: Option<ThemeInk>,
}

impl RoleInk {
    fn at(self, depth: Depth) -> Style {
        match (self.ansi, depth) {
            (Some(ink), Depth::Ansi16) => ink.at(depth),
            _ => self.ink.at(depth),
        }
    }
}

impl ThemeInk {
    fn at(self, depth: Depth) -> Style {
        let style = Style { fg: self.fg.map(|tint| tint.at(depth)), ..Style::new() };
        Style { bg: self.bg.map(|tint| tint.at(depth)), ..style }.add_modifier(self.on).remove_modifier(self.off)
    }
}

/// The built-in themes, the default first.
const BUILT_IN: [&str; 4] = ["dark", "light", "contrast", "mono"];

impl Theme {
    /// The names of the built-in themes.
    pub fn names() -> impl Iterator<Item = &'static str> {
        BUILT_IN.into_iter()
    }

    /// A built-in theme, in true colour.
    pub fn named(name: &str) -> Option<Self> {
        let name = BUILT_IN.into_iter().find(|known| *known == name)?;
        Self::parse(name, assets::text(&format!("themes/{name}.toml"))).ok()
    }

    /// The theme for terminals with a dark background.
    pub fn dark() -> Self {
        Self::named("dark").unwrap_or_else(Self::bare)
    }

    /// The theme for terminals with a light background.
    pub fn light() -> Self {
        Self::named("light").unwrap_or_else(Self::bare)
    }

    /// No colours: bold, underline and reverse only.
    pub fn mono() -> Self {
        Self::named("mono").unwrap_or_else(Self::bare)
    }

    /// No styles at all.
    pub fn bare() -> Self {
        Self::from_inks("bare", vec![None; StyleRole::ALL.len()], Depth::TrueColor)
    }

    /// Reads a theme file. `file` is named in errors and becomes the theme's name, without folders and ending.
    ///
    /// # Errors
    /// The first mistake: bad TOML, an unknown section, role, key or colour (with the nearest known name), a value of
    /// the wrong kind.
    pub fn parse(file: &str, text: &str) -> Result<Self, ThemeError> {
        let inks = file::read(file, text)?;
        let stem = file.rsplit(['/', '\\']).next().unwrap_or(file);
        Ok(Self::from_inks(stem.strip_suffix(".toml").unwrap_or(stem), inks, Depth::TrueColor))
    }

    fn from_inks(name: &str, inks: Vec<Option<RoleInk>>, depth: Depth) -> Self {
        let styles = StyleRole::ALL.iter().map(|role| resolve(&inks, *role).at(depth)).collect();
        Self { name: name.to_owned(), depth, inks, styles }
    }

    /// The same theme for a terminal of this colour depth; without colours it is the mono theme.
    pub fn at(&self, depth: Depth) -> Self {
        if depth == Depth::Mono { Self::mono() } else { Self::from_inks(&self.name, self.inks.clone(), depth) }
    }

    /// The theme's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether the theme has no colours: then distinctions need different glyphs.
    pub fn is_mono(&self) -> bool {
        self.styles.iter().all(|style| style.fg.is_none() && style.bg.is_none())
    }

    /// Whether intensities can be distinguished by the shade of a colour alone.
    pub fn has_shades(&self) -> bool {
        let is_shade = |colour| matches!(colour, Some(Color::Rgb(..) | Color::Indexed(_)));
        (1..=4).all(|level| is_shade(self.style(StyleRole::heat(level)).fg))
    }

    /// The style of a role.
    pub fn style(&self, role: StyleRole) -> Style {
        self.styles.get(role as usize).copied().unwrap_or_default()
    }
}

/// Returns the theme's entry for a role, or that of the nearest role it falls back to.
fn resolve(inks: &[Option<RoleInk>], role: StyleRole) -> RoleInk {
    let mut next = Some(role);
    while let Some(role) = next {
        if let Some(Some(ink)) = inks.get(role as usize) {
            return *ink;
        }
        next = role.fallback();
    }
    RoleInk::default()
}
