//! Pieces of pictures that several screens and overlays share.

pub(in crate::console) mod cell;
pub mod changes;
pub(in crate::console) mod dialog;
pub(in crate::console) mod document;
pub(in crate::console) mod field;
pub(in crate::console) mod health;
mod hits;
pub(in crate::console) mod jobs;
pub(in crate::console) mod keys;
pub(in crate::console) mod live;
pub(in crate::console) mod panel_list;
pub(in crate::console) mod panes;
pub(in crate::console) mod person;
pub(in crate::console) mod sheet;
pub(in crate::console) mod tally;
pub(in crate::console) mod told;
pub(in crate::console) mod what_if;
pub mod words;

use ratatui::{buffer::Buffer, layout::Rect};

pub(in crate::console) use changes::{change_lines, count_lines, sentences};
pub(in crate::console) use dialog::Dialog;
pub(in crate::console) use document::DocumentWriter;
pub use hits::Hits;
pub(in crate::console) use keys::{drawn_key, hint_of, input_line, key_name, key_of};
pub(in crate::console) use panel_list::PanelList;
pub(in crate::console) use panes::{draw_detail_lines, failure_card, fetched_card, halves};
pub(in crate::console) use sheet::Sheet;
pub(in crate::console) use told::told;

use super::core::message::Measures;
use crate::ui::Look;

/// Record of a drawing: the areas of click targets, and how much fitted.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Drawn {
    /// Click targets by their areas.
    pub hits: Hits,
    /// Sizes that fitted.
    pub measures: Measures,
}

/// Area in which a screen draws itself, with the means for it.
pub struct Canvas<'a> {
    /// Theme and glyphs in use.
    pub look: &'a Look,
    /// The available area.
    pub area: Rect,
    /// The cells of the terminal.
    pub buf: &'a mut Buffer,
    /// Record of the drawing: click targets, and how much fitted.
    pub drawn: &'a mut Drawn,
    /// Cached details.
    pub documents: &'a mut document::DocumentCache,
}
