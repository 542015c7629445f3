//! The chain of an episode: a tree on a time line.

use crate::console::core::columns::row_name;
use crate::console::screens::browse::draw::episode::and_more;
use crate::console::screens::browse::follow::other_children;
use crate::console::view::document::DocumentWriter;
use crate::console::view::words;
use crate::memory::query::EpisodeContext;
use crate::memory::{Row, time};
use crate::ui::chart::{Timeline, TimelineRow};
use crate::ui::{Look, SafeText, StyleRole, TextLine};

fn seconds(row: &Row, column: &str) -> Option<f64> {
    row.text(column).and_then(time::epoch_micros).map(|micros| micros as f64 / 1e6)
}

/// The way from the root, this episode, its children: a tree on a time line.
pub fn write(writer: &mut DocumentWriter<'_>, context: &EpisodeContext) {
    let (chain, look) = (&context.chain, writer.look);
    let g = look.glyphs;
    if chain.cycle {
        writer.line(TextLine::default().with_glyph(g.warning, StyleRole::Warn).with(
            " The parents run in a circle: the first row below is a parent of itself in the end.",
            StyleRole::Text,
        ));
    }
    if let Some(missing) = &chain.missing_parent {
        let line = TextLine::default().with_glyph(g.warning, StyleRole::Warn).with(" The parent ", StyleRole::Text);
        writer.line(line.with(SafeText::limited(missing, 80), StyleRole::Warn).with(" is not there.", StyleRole::Text));
    }
    let own = context.episode.id();
    let mut rows = Vec::new();
    let mut ids = Vec::new();
    for (depth, id) in chain.ids.iter().enumerate() {
        rows.push(chain_row(context, id, vec![false; depth], *id == own, look));
        ids.push(id.clone());
    }
    let depth = chain.ids.len().saturating_sub(1);
    let rest = other_children(context);
    let children: Vec<&Row> = context.children().collect();
    for (index, child) in children.iter().enumerate() {
        let mut levels = vec![false; depth];
        levels.push(index + 1 < children.len() || rest.is_some());
        rows.push(chain_row(context, child.id(), levels, false, look));
        ids.push(child.id().to_owned());
    }
    if rows.len() <= 1 {
        writer.text("This episode has no parent and no children.", StyleRole::Muted);
        return;
    }
    writer.blank();
    let tick = |at: f64| {
        let text = time::from_epoch_real(at).unwrap_or_default();
        words::short_time(&text)
    };
    let timeline = Timeline { rows: &rows, first: 0, selected: None, tick: &tick };
    let has_ruler = u16::from(writer.width >= 48 && rows.len() >= 2);
    let height = (rows.len() as u16).min(2_000) + has_ruler;
    writer.picture(height, |area, buf| timeline.render(area, buf, look));
    writer.link_rows(&ids, rows.len());
    writer.blank();
    if let Some(rest) = rest {
        and_more(writer, chain.ids.len() + chain.children.len() - ids.len(), rest);
    }
    writer.text("f goes to one of them, and so does a click", StyleRole::Muted);
}

fn chain_row(context: &EpisodeContext, id: &str, levels: Vec<bool>, own: bool, look: &Look) -> TimelineRow {
    let row = context.relative(id);
    let mut label = TextLine::default();
    if own {
        label.push_glyphs(look.glyphs.diamond, 1, StyleRole::Accent);
        label.push(" ", StyleRole::Text);
    }
    let name = row.map_or_else(|| id.to_owned(), row_name);
    label.push(SafeText::limited(&name, 60), if own { StyleRole::Heading } else { StyleRole::Text });
    let outcome = row.and_then(|row| row.text("outcome")).unwrap_or_default();
    let role = words::state_role(outcome);
    TimelineRow {
        levels,
        label,
        from: row.and_then(|row| seconds(row, "started_at")),
        to: row.and_then(|row| seconds(row, "ended_at").or_else(|| seconds(row, "started_at"))),
        role: if role == StyleRole::Muted { StyleRole::Accent } else { role },
    }
}
