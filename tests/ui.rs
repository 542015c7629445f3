//! How things look: safe text, glyphs, themes, tables and charts, seen from outside.

#[path = "ui/text.rs"]
mod text;
