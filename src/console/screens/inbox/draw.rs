//! The inbox: feedback that needs a look, with the episode that it is about, until none is left.

use ratatui::{buffer::Buffer, layout::Rect};

use crate::console::core::columns::row_name;
use crate::console::screens::inbox::{InboxScreen, InboxVerdict, LOOKED_THROUGH, meant, worth_a_look};
use crate::console::view::Drawn;
use crate::console::view::panel_list::PanelList;
use crate::console::view::panes::draw_detail_lines;
use crate::console::view::words;
use crate::memory::Row;
use crate::ui::chart::meter;
use crate::ui::{
    Card, CardTone, KeyHint, Look, NamedValue, PaneFrame, SafeText, Section, StyleRole, TableColumn, TableRow,
    TextLine, Total, Width, figures, key_values, look as lay,
};

/// Draws the screen.
pub fn draw(inbox: &InboxScreen, look: &Look, body: Rect, buf: &mut Buffer, drawn: &mut Drawn) {
    const BESIDE: u16 = 120;
    const LOW: u16 = 20;
    progress(inbox, look).render(
        Rect { x: body.x + 1, width: body.width.saturating_sub(2), ..lay::row(body, 0) },
        buf,
        look,
    );
    let body = lay::below(body, 1);
    let (list, detail) = if body.width >= BESIDE {
        let width = body.width / 2;
        (Rect { width, ..body }, Rect { x: body.x + width, width: body.width - width, ..body })
    } else {
        let height = if body.height < LOW { body.height / 2 } else { body.height * 2 / 5 };
        (Rect { height, ..body }, Rect { y: body.y + height, height: body.height - height, ..body })
    };
    draw_list(inbox, look, list, buf, drawn);
    draw_detail(inbox, look, detail, buf, drawn);
}

/// `3 of 40 looked at`, as a bar and in words.
fn progress(inbox: &InboxScreen, look: &Look) -> TextLine {
    let (judged, total) = inbox.progress();
    if total == 0 {
        return TextLine::default();
    }
    let mut line = meter(judged as f64 / total as f64, 20, StyleRole::Good, look);
    let words =
        [" ".into(), figures::count(judged as u64), " of ".into(), figures::count(total as u64), " looked at".into()];
    line.push(SafeText::join(&words, ""), StyleRole::Text);
    if inbox.more {
        let limit = figures::count(LOOKED_THROUGH as u64);
        let words = ["   of the newest ".into(), limit, " rows of feedback".into()];
        line.push(SafeText::join(&words, ""), StyleRole::Muted);
    }
    line
}

fn card(inbox: &InboxScreen) -> Option<Card> {
    if let Some(failure) = &inbox.failure {
        let card = Card::new(CardTone::Bad, SafeText::limited(&failure.what, 60))
            .line(SafeText::limited(&failure.message, 400));
        let card = failure.remedy.iter().fold(card, |card, remedy| card.line(SafeText::limited(remedy, 300)));
        return Some(card.hint(KeyHint::new("r", "try again")));
    }
    if !inbox.items.is_empty() {
        return None;
    }
    if !inbox.filled {
        return Some(Card::new(CardTone::Plain, "Reading"));
    }
    let card = Card::new(CardTone::Good, "Nothing waits for a look");
    let card = match inbox.judged.len() {
        0 => card.line("No feedback complains, corrects or contradicts itself without its episode having been told."),
        judged => card.line(summary(inbox, judged)).hint(KeyHint::new("Z", "undo the last")),
    };
    Some(card.hint(KeyHint::new("esc", "back")))
}

/// How many got which verdict.
fn summary(inbox: &InboxScreen, judged: usize) -> SafeText {
    let kinds = [
        InboxVerdict::Right,
        InboxVerdict::Flipped,
        InboxVerdict::Rated(0),
        InboxVerdict::Edited,
        InboxVerdict::Removed,
        InboxVerdict::Later,
    ];
    let same = |a: InboxVerdict, b: InboxVerdict| std::mem::discriminant(&a) == std::mem::discriminant(&b);
    let counted = kinds.into_iter().filter_map(|kind| {
        let count = inbox.judged.iter().filter(|judged| same(judged.verdict, kind)).count();
        (count > 0).then(|| format!("{count} {}", kind.word()))
    });
    format!("{judged} looked at: {}.", counted.collect::<Vec<_>>().join(", ")).into()
}

fn draw_list(inbox: &InboxScreen, look: &Look, area: Rect, buf: &mut Buffer, drawn: &mut Drawn) {
    let inside = PaneFrame { focused: true, ..PaneFrame::new("inbox") }.render(area, buf, look);
    let columns = [
        TableColumn::new("time", Width::Fixed(11)).priority(3),
        TableColumn::new("kind", Width::Fixed(13)),
        TableColumn::new("rating", Width::Fixed(6)).right().priority(2),
        TableColumn::new("correction", Width::Grow { min: 12, weight: 3 }),
        TableColumn::new("user", Width::Grow { min: 8, weight: 1 }).priority(4),
    ];
    let card = card(inbox);
    let list = PanelList {
        columns: &columns,
        count: inbox.items.len(),
        more: false,
        total: Total::Exact(inbox.items.len() as u64),
        selected: inbox.selected,
        focused: true,
        card,
    };
    list.draw(|at| inbox.items.get(at).map(|row| table_row(row, look)), look, inside, buf, drawn);
}

fn table_row(row: &Row, look: &Look) -> TableRow {
    let rating = row.get("rating").as_i64().map_or_else(
        || TextLine::default().with_glyph(look.glyphs.separator, StyleRole::Muted),
        |rating| TextLine::of(rating.to_string(), StyleRole::Number),
    );
    let cells = vec![
        TextLine::of(row.text("created_at").map(words::short_time).unwrap_or_default(), StyleRole::Muted),
        words::state(row.text("kind").unwrap_or("no kind"), look),
        rating,
        TextLine::of(SafeText::limited(row.text("correction").unwrap_or_default(), 200), StyleRole::Text),
        TextLine::of(SafeText::limited(row.text("user_id").unwrap_or_default(), 60), StyleRole::Muted),
    ];
    TableRow { cells, marked: false, stale: false }
}

fn draw_detail(inbox: &InboxScreen, look: &Look, area: Rect, buf: &mut Buffer, drawn: &mut Drawn) {
    let Some(row) = inbox.current() else {
        PaneFrame::new("feedback").render(area, buf, look);
        return;
    };
    let pane = PaneFrame {
        note: TextLine::of(SafeText::limited(row.id(), 60), StyleRole::Muted),
        ..PaneFrame::new("feedback")
    };
    let inside = pane.render(area, buf, look);
    let inside = Rect { x: inside.x + 1, width: inside.width.saturating_sub(2), ..inside };
    let lines = detail_lines(inbox, row, usize::from(inside.width.saturating_sub(2)), look);
    draw_detail_lines(&lines, inbox.scroll, inside, look, buf, drawn);
}

fn detail_lines(inbox: &InboxScreen, row: &Row, width: usize, look: &Look) -> Vec<TextLine> {
    let mut lines = Vec::new();
    if let Some(correction) = row.text("correction").filter(|text| !text.trim().is_empty()) {
        const SHOWN: usize = 8;
        let wrapped = SafeText::rows(correction, width.max(8)).take(SHOWN);
        lines.extend(wrapped.map(|part| TextLine::of(look.spelled(&part).into_owned(), StyleRole::Heading)));
        lines.push(TextLine::default());
    }
    let text = |column: &str| SafeText::limited(row.text(column).unwrap_or_default(), 200);
    let rating = row.get("rating").as_i64().map(|rating| rating.to_string()).unwrap_or_default();
    let told = if inbox.untold {
        "noted for this session: no signals are kept here".to_owned()
    } else {
        format!("tells the episode: {}", meant(row).word())
    };
    let mut pairs = vec![
        NamedValue::line("why here", TextLine::of(worth_a_look(row).unwrap_or_default(), StyleRole::Warn)),
        NamedValue::line("kind", words::state(row.text("kind").unwrap_or("no kind"), look)),
        NamedValue::new("rating", rating),
        NamedValue::new("by", text("user_id")),
        NamedValue::new("at", words::time(row.text("created_at").unwrap_or_default(), true)),
        NamedValue::new("a: it is right", told),
    ];
    if !inbox.note.is_empty() {
        pairs.push(NamedValue::line("note", TextLine::of(SafeText::limited(&inbox.note, 300), StyleRole::Accent)));
    }
    lines.extend(key_values(&pairs, width, look));
    let Some((id, content)) = &inbox.episode else { return lines };
    lines.push(TextLine::default());
    let title = SafeText::join(&["episode ".into(), SafeText::limited(id, 60)], "");
    lines.push(Section::new(title).line(width, look));
    let Some(content) = content else {
        lines.push(TextLine::of("reading", StyleRole::Muted));
        return lines;
    };
    let episode = content.row();
    let number = |column: &str| episode.number(column);
    let pairs = [
        NamedValue::line("title", TextLine::of(SafeText::limited(&row_name(episode), 300), StyleRole::Text)),
        NamedValue::line("outcome", words::state(episode.text("outcome").unwrap_or("unknown"), look)),
        NamedValue::new("started", words::time(episode.text("started_at").unwrap_or_default(), false)),
        NamedValue::line("feedback score", number("feedback_score").map(words::score).unwrap_or_default()),
        NamedValue::new("utility", number("utility").map(|utility| format!("{utility:.2}")).unwrap_or_default()),
    ];
    lines.extend(key_values(&pairs, width, look));
    if let Some(summary) = episode.text("summary").filter(|text| !text.trim().is_empty()) {
        lines.push(TextLine::default());
        let wrapped = SafeText::rows(summary, width.max(8)).take(40);
        lines.extend(wrapped.map(|part| TextLine::of(look.spelled(&part).into_owned(), StyleRole::Text)));
    }
    lines
}
