//! Parses a theme file and reports its errors.

use ratatui::style::Modifier;
use toml::{Spanned, de::DeTable, de::DeValue};

use super::{RoleInk, StyleRole, ThemeError, ThemeInk};
use crate::memory::nearest::nearest;
use crate::ui::colour::{ANSI, Tint};

/// Reads the file's entry for each role, in the order of [`StyleRole::ALL`].
pub(super) fn read(file: &str, text: &str) -> Result<Vec<Option<RoleInk>>, ThemeError> {
    let reader = ThemeReader { file, text };
    let root = DeTable::parse(text)
        .map_err(|error| reader.error(error.span().map_or(0, |span| span.start), error.message().to_owned()))?;
    let mut palette: Vec<(&str, Tint)> = Vec::new();
    let mut inks = vec![None; StyleRole::ALL.len()];
    for (key, _) in root.get_ref() {
        reader.known(key, &["palette", "roles"], "section")?;
    }
    if let Some(section) = root.get_ref().get("palette") {
        for (name, value) in reader.table(section)? {
            palette.push((name.get_ref(), reader.palette_colour(value)?));
        }
    }
    if let Some(section) = root.get_ref().get("roles") {
        let names: Vec<&str> = StyleRole::ALL.iter().map(|role| role.name()).collect();
        for (name, value) in reader.table(section)? {
            let index = reader.known(name, &names, "role")?;
            inks[index] = Some(reader.role(value, &palette)?);
        }
    }
    Ok(inks)
}

type Field<'a, 'i> = (&'a Spanned<std::borrow::Cow<'i, str>>, &'a Spanned<DeValue<'i>>);

/// Reader of a theme file's values that reports errors with their place.
struct ThemeReader<'t> {
    file: &'t str,
    text: &'t str,
}

impl ThemeReader<'_> {
    fn error(&self, offset: usize, problem: String) -> ThemeError {
        let before = self.text.get(..offset).unwrap_or(self.text);
        ThemeError { file: self.file.to_owned(), line: before.matches('\n').count() + 1, problem }
    }

    fn table<'a, 'i>(&self, value: &'a Spanned<DeValue<'i>>) -> Result<Vec<Field<'a, 'i>>, ThemeError> {
        match value.get_ref() {
            DeValue::Table(table) => Ok(table.iter().collect()),
            other => Err(self.error(value.span().start, format!("a table is needed here, not a {}", other.type_str()))),
        }
    }

    /// The place of a key among the `known` ones.
    fn known(&self, key: &Spanned<std::borrow::Cow<'_, str>>, known: &[&str], kind: &str) -> Result<usize, ThemeError> {
        known.iter().position(|name| *name == key.get_ref()).ok_or_else(|| {
            let problem = format!("there is no {kind} \"{}\"{}", key.get_ref(), hint(key.get_ref(), known));
            self.error(key.span().start, problem)
        })
    }

    fn text_of<'a>(&self, value: &'a Spanned<DeValue<'_>>, what: &str) -> Result<&'a str, ThemeError> {
        match value.get_ref() {
            DeValue::String(text) => Ok(text),
            other => Err(self.error(value.span().start, format!("{what} is a string, not a {}", other.type_str()))),
        }
    }

    /// A colour of the palette: `"#rrggbb"`, a name of the sixteen, or `{ rgb, ansi }`.
    fn palette_colour(&self, value: &Spanned<DeValue<'_>>) -> Result<Tint, ThemeError> {
        if !matches!(value.get_ref(), DeValue::Table(_)) {
            return self.colour(value, &[]);
        }
        let (mut rgb, mut ansi) = (None, None);
        for (key, value) in self.table(value)? {
            match self.known(key, &["rgb", "ansi"], "key")? {
                0 => rgb = Some(self.colour(value, &[])?),
                _ => ansi = Some(self.colour(value, &[])?),
            }
        }
        match (rgb, ansi) {
            (Some(rgb), Some(ansi)) => Ok(Tint { rgb: rgb.rgb, ansi: ansi.ansi }),
            (Some(only), None) | (None, Some(only)) => Ok(only),
            (None, None) => Err(self.error(value.span().start, "a colour needs rgb = \"#rrggbb\"".to_owned())),
        }
    }

    fn colour(&self, value: &Spanned<DeValue<'_>>, palette: &[(&str, Tint)]) -> Result<Tint, ThemeError> {
        let text = self.text_of(value, "a colour")?;
        let from_palette = palette.iter().find(|(name, _)| *name == text).map(|(_, tint)| *tint);
        from_palette.or_else(|| Tint::from_hex(text)).or_else(|| Tint::from_name(text)).ok_or_else(|| {
            let names: Vec<&str> = palette.iter().map(|(name, _)| *name).chain(ANSI.map(|(name, _)| name)).collect();
            let hint = if text.starts_with('#') { "; write \"#rrggbb\"".to_owned() } else { hint(text, &names) };
            self.error(value.span().start, format!("\"{text}\" is not a colour{hint}"))
        })
    }

    /// A role's style, and the one for sixteen colours, if defined.
    fn role(&self, value: &Spanned<DeValue<'_>>, palette: &[(&str, Tint)]) -> Result<RoleInk, ThemeError> {
        let ansi = match value.get_ref() {
            DeValue::Table(table) => table.get("ansi"),
            _ => None,
        };
        let ansi = ansi.map(|value| self.ink(value, palette)).transpose()?;
        Ok(RoleInk { ink: self.ink(value, palette)?, ansi })
    }

    /// A style: a colour, or a table of colours and modifiers.
    fn ink(&self, value: &Spanned<DeValue<'_>>, palette: &[(&str, Tint)]) -> Result<ThemeInk, ThemeError> {
        if !matches!(value.get_ref(), DeValue::Table(_)) {
            return Ok(ThemeInk { fg: Some(self.colour(value, palette)?), ..ThemeInk::default() });
        }
        let mut ink = ThemeInk::default();
        for (key, value) in self.table(value)? {
            match self.known(key, &KEYS, "key")? {
                0 => ink.fg = Some(self.colour(value, palette)?),
                1 => ink.bg = Some(self.colour(value, palette)?),
                2 => {}
                flag => {
                    let DeValue::Boolean(on) = value.get_ref() else {
                        let problem = format!("{} is true or false", key.get_ref());
                        return Err(self.error(value.span().start, problem));
                    };
                    let flags = if *on { &mut ink.on } else { &mut ink.off };
                    flags.insert(FLAGS[flag - 3]);
                }
            }
        }
        Ok(ink)
    }
}

/// Valid keys of a role's table: colours, the style for sixteen colours, the [`FLAGS`].
const KEYS: [&str; 8] = ["fg", "bg", "ansi", "bold", "dim", "italic", "underline", "reverse"];

/// The modifiers a theme may set, in the order of their keys.
const FLAGS: [Modifier; 5] =
    [Modifier::BOLD, Modifier::DIM, Modifier::ITALIC, Modifier::UNDERLINED, Modifier::REVERSED];

/// `; did you mean "x"?` if a known name is similar, else the list of all.
fn hint(wrong: &str, known: &[&str]) -> String {
    match nearest(wrong, known.iter().copied()) {
        Some(name) => format!("; did you mean \"{name}\"?"),
        None => format!("; known: {}", known.join(", ")),
    }
}
