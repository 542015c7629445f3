//! How things look: safe text, glyphs, themes, tables and charts. No domain words, no IO, no state.

mod clean;
pub mod text;

pub use text::SafeText;
