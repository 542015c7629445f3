//! The chain of an episode: a tree on a time line.

use crate::console::core::row_name;
use crate::console::screens::browse::draw::episode::and_more;
use crate::console::screens::browse::follow::other_children;
use crate::console::view::{DocumentWriter, words};
use crate::memory::query::EpisodeContext;
use crate::memory::{Row, time};
use crate::ui::chart::{Timeline, TimelineRow, guides};
use crate::ui::{Look, SafeText, StyleRole, TextLine};

fn seconds(row: &Row, column: &str) -> Option<f64> {
    row.text(column).and_then(time::epoch_micros).map(|micros| micros as f64 / 1e6)
}

/// The way from the root, this episode, its children: a tree on a time line.
pub fn write(writer: &mut DocumentWriter<'_>, context: &EpisodeContext) {
    let (chain, look) = (&context.chain, writer.look);
    let g = look.glyphs;
    if chain.cycle {
        writer.line(
            TextLine::default()
                .with_glyph(g.warning, StyleRole::Warn)
                .with(" The parents form a cycle: the first row below is its own ancestor.", StyleRole::Text),
        );
    }
    if let Some(missing) = &chain.missing_parent {
        let line = TextLine::default().with_glyph(g.warning, StyleRole::Warn).with(" The parent ", StyleRole::Text);
        writer.line(line.with(SafeText::limited(missing, 80), StyleRole::Warn).with(" is not there.", StyleRole::Text));
    }
    let rest = other_children(context);
    let mut tree = ChainTree { context, look, width: writer.width, rows: Vec::new(), ids: Vec::new() };
    for (depth, id) in chain.ids.iter().enumerate() {
        tree.add(id, vec![false; depth]);
    }
    tree.add_below(context.children().collect(), &vec![false; chain.ids.len().saturating_sub(1)], rest.is_some());
    let ChainTree { rows, ids, .. } = tree;
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
        and_more(writer, chain.children.len() - context.children().count(), rest);
    }
    if context.is_cut {
        writer.text("More episodes follow: they are shown in the chain of the last ones here.", StyleRole::Warn);
    }
    writer.text("f goes to one of them, and so does a click", StyleRole::Muted);
}

/// The rows of the tree, from top to bottom.
struct ChainTree<'c> {
    context: &'c EpisodeContext,
    look: &'c Look,
    width: usize,
    rows: Vec<TimelineRow>,
    ids: Vec<String>,
}

impl<'c> ChainTree<'c> {
    /// Adds episodes with the same parent, each with its descendants.
    fn add_below(&mut self, siblings: Vec<&'c Row>, levels: &[bool], are_more: bool) {
        let last = siblings.len().saturating_sub(1);
        for (index, row) in siblings.into_iter().enumerate() {
            // Parents may run in a circle.
            if self.ids.iter().any(|id| id == row.id()) {
                continue;
            }
            let levels = [levels, &[index < last || are_more]].concat();
            self.add(row.id(), levels.clone());
            self.add_below(self.context.followers(row.id()), &levels, false);
        }
    }

    fn add(&mut self, id: &str, levels: Vec<bool>) {
        let row = self.context.relative(id);
        let mut label = TextLine::default();
        let is_own = id == self.context.episode.id();
        if is_own {
            label.push_glyphs(self.look.glyphs.diamond, 1, StyleRole::Accent);
            label.push(" ", StyleRole::Text);
        }
        let name = row.map_or_else(|| id.to_owned(), row_name);
        let before = row.and_then(|row| self.context.relative(row.text("parent_id")?)).map(row_name);
        let room = Timeline::label_room(self.width).saturating_sub(guides(&levels, self.look).width() + label.width());
        let name = words::told_apart(&name, before.as_deref(), room, self.look);
        label.push(name, if is_own { StyleRole::Heading } else { StyleRole::Text });
        let role = words::state_role(row.and_then(|row| row.text("outcome")).unwrap_or_default());
        self.ids.push(id.to_owned());
        self.rows.push(TimelineRow {
            levels,
            label,
            from: row.and_then(|row| seconds(row, "started_at")),
            to: row.and_then(|row| seconds(row, "ended_at").or_else(|| seconds(row, "started_at"))),
            role: if role == StyleRole::Muted { StyleRole::Accent } else { role },
        });
    }
}
