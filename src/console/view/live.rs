//! Count of rows that others wrote meanwhile, beside the heading of their list.

use crate::console::core::live::COUNTED;
use crate::console::core::{Context, LiveTail};
use crate::ui::{Look, SafeText, StyleRole, TextLine};

/// Builds the note on new rows, and on whether the list follows them; no list does while the database cannot be read.
pub(in crate::console) fn news(live: &LiveTail, cx: &Context, look: &Look) -> TextLine {
    let count: SafeText = new_rows(live.fresh).into();
    match (live.follows, live.fresh) {
        _ if cx.unread.is_some() => TextLine::of("not followed: the database cannot be read", StyleRole::Warn),
        (true, _) => TextLine::default().with_glyph(look.glyphs.dot, StyleRole::Good).with(" live", StyleRole::Good),
        (false, 0) => TextLine::default(),
        (false, _) => TextLine::default()
            .with_glyph(look.glyphs.arrow_up, StyleRole::Accent)
            .with(" ", StyleRole::Text)
            .with(count, StyleRole::Accent)
            .with(", space shows them", StyleRole::Muted),
    }
}

/// The number of new rows in words; empty for none.
pub(in crate::console) fn new_rows(fresh: usize) -> String {
    match fresh {
        0 => String::new(),
        fresh if fresh > COUNTED => format!("over {COUNTED} new"),
        fresh => format!("{fresh} new"),
    }
}
