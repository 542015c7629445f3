//! How things look: safe text, glyphs, themes, tables and charts, seen from outside.

#[path = "ui/parts.rs"]
mod parts;
#[path = "ui/pictures.rs"]
mod pictures;
#[path = "ui/screen.rs"]
mod screen;
#[path = "ui/text.rs"]
mod text;
#[path = "ui/theme.rs"]
mod theme;
