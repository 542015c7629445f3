//! Looks of the interface: safe text, glyphs, themes, tables and charts, seen from outside.

mod parts;
mod pictures;
mod screen;
mod text;
mod theme;
