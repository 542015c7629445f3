//! Names and values below each other, the values aligned and wrapped.

use super::{
    line::TextLine,
    look::Look,
    text::{Align, SafeText},
    theme::StyleRole,
};

/// The widest column of names.
const WIDEST: usize = 28;

/// A name and its value.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NamedValue {
    /// The name.
    pub label: SafeText,
    /// The value; empty shows a dash.
    pub value: TextLine,
}

impl NamedValue {
    /// A pair with an ordinary text.
    pub fn new(label: impl Into<SafeText>, value: impl Into<SafeText>) -> Self {
        Self { label: label.into(), value: TextLine::of(value, StyleRole::Text) }
    }

    /// A pair whose value consists of runs.
    pub fn line(label: impl Into<SafeText>, value: TextLine) -> Self {
        Self { label: label.into(), value }
    }
}

/// The pairs as lines of `width` columns. On narrow places the value is below its name.
pub fn key_values(pairs: &[NamedValue], width: usize, look: &Look) -> Vec<TextLine> {
    let widest = pairs.iter().map(|pair| pair.label.width()).max().unwrap_or(0).min(WIDEST);
    let is_narrow = width < widest + 16;
    let indent = if is_narrow { 2.min(width / 4) } else { widest + 2 };
    let mut lines = Vec::new();
    for pair in pairs {
        let name = look.fit(&pair.label, if is_narrow { width } else { widest });
        let mut line = if is_narrow {
            lines.push(TextLine::of(name, StyleRole::Label));
            TextLine::default()
        } else {
            TextLine::of(name.pad(indent, Align::Left), StyleRole::Label)
        };
        let dash = TextLine::default().with_glyph(look.glyphs.none, StyleRole::Muted);
        let value = if pair.value.runs.is_empty() { &dash } else { &pair.value };
        for part in value.flow(width.saturating_sub(indent), look) {
            if line.runs.is_empty() {
                line.push_blanks(indent);
            }
            line.append(part);
            lines.push(std::mem::take(&mut line));
        }
    }
    lines
}
