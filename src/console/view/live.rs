//! Count of rows that others wrote meanwhile, beside the heading of the list that shows them.

use crate::console::core::live::{COUNTED, LiveTail};
use crate::ui::{Look, SafeText, StyleRole, TextLine};

/// Builds the note on rows that others wrote since the rows were read, and on whether these are followed.
pub(in crate::console) fn news(live: &LiveTail, look: &Look) -> TextLine {
    let count: SafeText = new_rows(live.fresh).into();
    match (live.follows, live.fresh) {
        (true, _) => TextLine::default().with_glyph(look.glyphs.dot, StyleRole::Good).with(" live", StyleRole::Good),
        (false, 0) => TextLine::default(),
        (false, _) => TextLine::default()
            .with_glyph(look.glyphs.arrow_up, StyleRole::Accent)
            .with(" ", StyleRole::Text)
            .with(count, StyleRole::Accent)
            .with(", space shows them", StyleRole::Muted),
    }
}

/// Rows that came, in words; nothing where none did.
pub(in crate::console) fn new_rows(fresh: usize) -> String {
    match fresh {
        0 => String::new(),
        fresh if fresh > COUNTED => format!("over {COUNTED} new"),
        fresh => format!("{fresh} new"),
    }
}
