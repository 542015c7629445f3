//! Appearance of everything on screen: safe text, glyphs, themes, tables and charts. No domain words, no I/O, no state.
//!
//! Everything is drawn with a [`Look`], passed explicitly. Text comes in as [`SafeText`] only; small charts are
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
pub mod linear;
pub mod look;
pub mod scroll;
pub mod table;
pub mod text;
pub mod theme;

pub use card::{Card, CardTone};
pub use chrome::{Badge, Breadcrumbs, Footer, HintKind, KeyHint, Section, TabLabel, Tabs, ToastLine};
pub use escape::escaped;
pub use frame::{Modal, PaneFrame};
pub use glyphs::{Glyph, Glyphs};
pub use json::{JsonLine, JsonView};
pub use keyvalue::{NamedValue, key_values};
pub use line::{TextLine, TextRun};
pub use look::Look;
pub use scroll::LineWindow;
pub use table::{Extent, SortMark, TableBody, TableColumn, TableRow, TableView, Total, Width};
pub use text::{Align, SafeText};
pub use theme::{Depth, StyleRole, Theme, ThemeError};
