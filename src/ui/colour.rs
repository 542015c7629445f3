//! Colours of themes, and their approximations on terminals with fewer colours.

use ratatui::style::Color;

/// Number of colours that the terminal shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Depth {
    /// None: bold, underline and reverse only.
    Mono,
    /// The sixteen that the user's own palette defines.
    Ansi16,
    /// The 6 x 6 x 6 cube and 24 greys.
    Indexed256,
    /// 24 bits.
    #[default]
    TrueColor,
}

impl Depth {
    /// Detects the depth from the environment: the values of `NO_COLOR` (any non-empty value turns colours off),
    /// `COLORTERM` and `TERM`.
    pub fn detect(no_color: Option<&str>, colorterm: Option<&str>, term: Option<&str>) -> Self {
        let term = term.unwrap_or_default();
        if no_color.is_some_and(|value| !value.is_empty()) || term == "dumb" {
            Self::Mono
        } else if matches!(colorterm, Some("truecolor" | "24bit")) || term.ends_with("-direct") {
            Self::TrueColor
        } else if term.contains("256color") || ["kitty", "alacritty", "wezterm", "ghostty", "foot"].contains(&term) {
            Self::Indexed256
        } else {
            Self::Ansi16
        }
    }
}

/// A colour of a theme: exact if the terminal supports it, else one of the sixteen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Tint {
    /// Red, green, blue; `None` if the theme names one of the terminal's own colours.
    pub rgb: Option<(u8, u8, u8)>,
    /// Substitute among the sixteen.
    pub ansi: Color,
}

impl Tint {
    /// From `#rrggbb`; the nearest of the sixteen is in.
    pub fn from_hex(text: &str) -> Option<Self> {
        let digits = text.strip_prefix('#').filter(|digits| digits.len() == 6 && digits.is_ascii())?;
        let channel = |at: usize| u8::from_str_radix(&digits[at..at + 2], 16).ok();
        let rgb = (channel(0)?, channel(2)?, channel(4)?);
        Some(Self { rgb: Some(rgb), ansi: nearest_of_sixteen(rgb) })
    }

    /// Parses the name of one of the terminal's own colours.
    pub fn from_name(name: &str) -> Option<Self> {
        let (_, ansi) = ANSI.iter().find(|(known, _)| *known == name)?;
        Some(Self { rgb: None, ansi: *ansi })
    }

    /// The colour to use on a terminal of this depth.
    pub fn at(self, depth: Depth) -> Color {
        match (self.rgb, depth) {
            (_, Depth::Mono) => Color::Reset,
            (None, _) | (_, Depth::Ansi16) => self.ansi,
            (Some(rgb), Depth::Indexed256) => Color::Indexed(nearest_index(rgb)),
            (Some((r, g, b)), Depth::TrueColor) => Color::Rgb(r, g, b),
        }
    }
}

/// The names a theme may use for the terminal's own colours.
pub(super) const ANSI: [(&str, Color); 17] = [
    ("default", Color::Reset),
    ("black", Color::Black),
    ("red", Color::Red),
    ("green", Color::Green),
    ("yellow", Color::Yellow),
    ("blue", Color::Blue),
    ("magenta", Color::Magenta),
    ("cyan", Color::Cyan),
    ("white", Color::Gray),
    ("bright-black", Color::DarkGray),
    ("bright-red", Color::LightRed),
    ("bright-green", Color::LightGreen),
    ("bright-yellow", Color::LightYellow),
    ("bright-blue", Color::LightBlue),
    ("bright-magenta", Color::LightMagenta),
    ("bright-cyan", Color::LightCyan),
    ("bright-white", Color::White),
];

/// The sixteen as xterm draws them, in the order of [`ANSI`] without `default`.
const XTERM: [(u8, u8, u8); 16] = [
    (0, 0, 0),
    (205, 0, 0),
    (0, 205, 0),
    (205, 205, 0),
    (0, 0, 238),
    (205, 0, 205),
    (0, 205, 205),
    (229, 229, 229),
    (127, 127, 127),
    (255, 0, 0),
    (0, 255, 0),
    (255, 255, 0),
    (92, 92, 255),
    (255, 0, 255),
    (0, 255, 255),
    (255, 255, 255),
];

fn distance(a: (u8, u8, u8), b: (u8, u8, u8)) -> u32 {
    let square = |x: u8, y: u8| u32::from(x.abs_diff(y)).pow(2);
    // Green counts most and blue least, as in the eye.
    3 * square(a.0, b.0) + 4 * square(a.1, b.1) + 2 * square(a.2, b.2)
}

fn nearest_of_sixteen(rgb: (u8, u8, u8)) -> Color {
    let nearest = ANSI[1..].iter().zip(XTERM).min_by_key(|(_, known)| distance(rgb, *known));
    nearest.map_or(Color::Reset, |((_, colour), _)| *colour)
}

/// The nearest of the cube (16 to 231) and the greys (232 to 255).
fn nearest_index((r, g, b): (u8, u8, u8)) -> u8 {
    const LEVELS: [u8; 6] = [0, 95, 135, 175, 215, 255];
    let level = |value: u8| (0..6u8).min_by_key(|&at| LEVELS[usize::from(at)].abs_diff(value)).unwrap_or(0);
    let (lr, lg, lb) = (level(r), level(g), level(b));
    let cube = (LEVELS[usize::from(lr)], LEVELS[usize::from(lg)], LEVELS[usize::from(lb)]);
    let mean = ((u16::from(r) + u16::from(g) + u16::from(b)) / 3) as u8;
    let step = (mean.saturating_sub(3) / 10).min(23);
    let grey = 8 + 10 * step;
    // A distinct colour stays a colour, even if a grey is slightly nearer.
    let is_colourful = r.max(g).max(b) >= 100 && r.max(g).max(b) - r.min(g).min(b) >= 48;
    if !is_colourful && distance((r, g, b), (grey, grey, grey)) < distance((r, g, b), cube) {
        232 + step
    } else {
        16 + 36 * lr + 6 * lg + lb
    }
}
