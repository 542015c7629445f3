//! What others wrote meanwhile, beside the heading of what shows it.

use crate::console::core::live::{COUNTED, LiveTail};
use crate::ui::{Look, SafeText, StyleRole, TextLine};

/// What others wrote since the rows were read, and whether that is followed.
pub(in crate::console) fn news(live: &LiveTail, look: &Look) -> TextLine {
    let count: SafeText = match live.fresh {
        fresh if fresh > COUNTED => format!("over {COUNTED} new").into(),
        fresh => format!("{fresh} new").into(),
    };
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
