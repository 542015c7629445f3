//! How things look: safe text, glyphs, themes, tables and charts. No domain words, no IO, no state.
//!
//! Everything is drawn with a [`Look`], handed over explicitly. Text comes in as [`SafeText`] only; small pictures are
//! [`TextLine`]s, so that they fit into tables and lists; large ones have `render(area, buf, look)`.

pub mod card;
pub mod chart;
pub mod chrome;
mod clean;
mod colour;
mod escape;
pub mod figures;
pub mod frame;
pub mod glyphs;
pub mod json;
pub mod keyvalue;
pub mod line;
pub mod look;
pub mod scroll;
pub mod table;
pub mod text;
pub mod theme;

pub use card::{Card, Tone};
pub use chrome::{Badge, Breadcrumbs, Footer, HintKind, KeyHint, Section, Tab, Tabs, Toast};
pub use escape::escaped;
pub use frame::{Modal, Pane};
pub use glyphs::{Glyph, Glyphs};
pub use json::{JsonLine, JsonView};
pub use keyvalue::{Pair, key_values};
pub use line::{Run, TextLine};
pub use look::Look;
pub use scroll::Lines;
pub use table::{Body, Column, Extent, Sort, Table, TableRow, Total, Width};
pub use text::{Align, SafeText};
pub use theme::{Depth, Role, Theme, ThemeError};
