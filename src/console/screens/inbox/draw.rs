//! The inbox: feedback that needs a look, its conversation, and the preview of a verdict.

mod talk;
mod verdict;

use ratatui::{buffer::Buffer, layout::Rect};

use crate::console::core::{CommandId, Context};
use crate::console::screens::inbox::{InboxPane, InboxScreen, InboxVerdict, LOOKED_THROUGH, meant};
use crate::console::view::{Canvas, Drawn, PanelList, failure_card, hint_of, words};
use crate::memory::{Entity, Row};
use crate::ui::chart::meter;
use crate::ui::{
    Card, CardTone, KeyHint, Look, PaneFrame, SafeText, StyleRole, TableColumn, TableRow, TextLine, Width, figures,
    look as lay,
};

pub fn draw(inbox: &InboxScreen, cx: &Context, canvas: &mut Canvas<'_>) {
    let (look, area) = (canvas.look, canvas.area);
    let head = lay::padded(lay::row(area, 0));
    let (body, card) = (lay::below(area, 1), card(cx, inbox));
    // A card that stays gets all the room: it says why there are no rows, and what to do.
    let stays = card.is_some() && (inbox.filled || inbox.failure.is_some());
    let (list, talk, verdict) =
        if stays { (body, None, None) } else { panes(inbox, body, |least| look.is_beside(body.width, least)) };
    let mut line = progress(inbox, look);
    if let (None, Some(row)) = (verdict, inbox.current()) {
        let does = match cx.holds(Entity::UtilityEvent) {
            Ok(()) => meant(row).word(),
            Err(_) => "noted",
        };
        line.push("  a ", StyleRole::Key);
        line.push(look.arrow(), StyleRole::Muted);
        line.push(" ", StyleRole::Text);
        line.push(does, StyleRole::Text);
    }
    line.render(head, canvas.buf, look);
    draw_list(inbox, card, cx, look, list, canvas.buf, canvas.drawn);
    let focused = inbox.pane == InboxPane::Verdict;
    if let Some(area) = talk.filter(|_| !focused) {
        talk::draw(inbox, cx, area, canvas);
    } else if let Some(area) = talk {
        // The measures are those of the pane that scrolls.
        let measures = canvas.drawn.measures;
        talk::draw(inbox, cx, area, canvas);
        canvas.drawn.measures = measures;
    }
    if let Some(area) = verdict {
        let measures = canvas.drawn.measures;
        verdict::draw(inbox, cx, area, canvas);
        if !focused {
            canvas.drawn.measures = measures;
        }
    }
}

/// Whether there is room for the preview of a verdict.
pub fn shows_verdict(inbox: &InboxScreen, (width, height): (u16, u16)) -> bool {
    /// Rows of the lines around the panes.
    const FRAME: u16 = 4;
    let body = Rect { x: 0, y: 0, width, height: height.saturating_sub(FRAME) };
    panes(inbox, body, |least| width >= least).2.is_some()
}

/// Lays out list, conversation and verdict: side by side, the list above the others, or one of them below it.
fn panes(inbox: &InboxScreen, body: Rect, is_beside: impl Fn(u16) -> bool) -> (Rect, Option<Rect>, Option<Rect>) {
    /// Least columns for the list beside the others, in which none of its columns is dropped.
    const LIST: u16 = 60;
    const BESIDE: u16 = 140;
    const HALVES: u16 = 90;
    const HIGH: u16 = 12;
    const LOW: u16 = 24;
    const ROWS: u16 = 4;
    if is_beside(BESIDE) {
        let third = (body.width * 3 / 10).min((body.width - LIST) / 2);
        let left = body.width - 2 * third;
        let at = |x: u16, width: u16| Rect { x: body.x + x, width, ..body };
        return (at(0, left), Some(at(left, third)), Some(at(left + third, third)));
    }
    // The list takes the rows it needs, up to somewhat more than a third.
    let rows = u16::try_from(inbox.items.len()).unwrap_or(u16::MAX).saturating_add(3);
    let share = if body.height < LOW { body.height / 3 } else { body.height * 2 / 5 };
    let height = rows.clamp(ROWS, share.max(ROWS));
    let (list, below) = lay::stacked(body, height);
    if is_beside(HALVES) {
        let half = below.width / 2;
        let right = Rect { x: below.x + half, width: below.width - half, ..below };
        (list, Some(Rect { width: half, ..below }), Some(right))
    } else if below.height >= HIGH {
        let half = below.height / 2;
        (list, Some(Rect { height: half, ..below }), Some(lay::below(below, half)))
    } else if inbox.pane == InboxPane::Verdict {
        (list, None, Some(below))
    } else {
        (list, Some(below), None)
    }
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

fn card(cx: &Context, inbox: &InboxScreen) -> Option<Card> {
    if let Some(failure) = &inbox.failure {
        return Some(failure_card(cx, failure));
    }
    if !inbox.items.is_empty() {
        return None;
    }
    if !inbox.filled {
        return Some(Card::new(CardTone::Plain, "Reading"));
    }
    let card = Card::new(CardTone::Good, "Nothing waits for a look");
    let card = match inbox.judged.len() {
        0 => card.line("No feedback complains, corrects or contradicts itself without a signal to its episode."),
        judged => card.line(summary(inbox, judged)).hint(hint_of(cx, CommandId::UndoLast, "undo the last")),
    };
    Some(card.hint(KeyHint::new("esc", "back")))
}

/// Counts the verdicts given, by kind.
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

fn draw_list(
    inbox: &InboxScreen,
    card: Option<Card>,
    cx: &Context,
    look: &Look,
    area: Rect,
    buf: &mut Buffer,
    drawn: &mut Drawn,
) {
    let focused = inbox.pane == InboxPane::List;
    let inside = PaneFrame { focused, ..PaneFrame::new("inbox") }.render(area, buf, look);
    let ages = inbox.items.iter().map(|row| age(row, cx).as_str().chars().count());
    let columns = [
        // A date if something is older than a month.
        TableColumn::new("age", Width::Fixed(ages.max().unwrap_or_default().max(6) as u16)).priority(3),
        TableColumn::new("kind", Width::Fixed(13)),
        TableColumn::new("what was said", Width::Grow { min: 16, weight: 3 }),
        TableColumn::new("user", Width::Grow { min: 8, weight: 1 }).priority(4),
    ];
    let list = PanelList { focused, ..PanelList::of(&columns, inbox.items.len(), inbox.selected, card) };
    list.draw(|at| inbox.items.get(at).map(|row| table_row(row, cx, look)), look, inside, buf, drawn);
}

fn age(row: &Row, cx: &Context) -> SafeText {
    row.text("created_at").map(|at| words::age(at, cx.now)).unwrap_or_default()
}

fn table_row(row: &Row, cx: &Context, look: &Look) -> TableRow {
    let named = |column: &str| cx.names.named_by(row, column).or(row.text(column)).unwrap_or_default();
    let what = match row.text("correction").filter(|text| !text.trim().is_empty()) {
        Some(correction) => TextLine::of(SafeText::limited(correction, 200), StyleRole::Text),
        None => TextLine::of("no words", StyleRole::Stale)
            .with("  in ", StyleRole::Muted)
            .with(SafeText::limited(named("episode_id"), 200), StyleRole::Muted),
    };
    let cells = vec![
        TextLine::of(age(row, cx), StyleRole::Muted),
        words::feedback(row, look),
        what,
        TextLine::of(SafeText::limited(named("user_id"), 60), StyleRole::Muted),
    ];
    TableRow { cells, marked: false, stale: false }
}
