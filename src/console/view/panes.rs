//! Layout of panes, and the cards shown in place of rows.

use ratatui::{buffer::Buffer, layout::Rect};

use super::Drawn;
use crate::console::core::{ClickTarget, CommandId, Context, Fetched, RequestFailure};
use crate::console::view::keys::hint_of;
use crate::console::view::told::told;
use crate::ui::scroll::LineWindow;
use crate::ui::{Card, CardTone, Look, SafeText, TextLine, look as lay};

/// A list and its detail: side by side if there is room, else one above the other. Side by side, the list drops no
/// column that it shows in narrower windows.
pub(in crate::console) fn halves(body: Rect, look: &Look) -> (Rect, Rect) {
    const BESIDE: u16 = 120;
    const LIST: u16 = 70;
    if look.is_beside(body.width, BESIDE) {
        let width = (body.width / 2).max(LIST);
        lay::side_by_side(body, width)
    } else {
        let height = body.height / 2;
        lay::stacked(body, height)
    }
}

/// Builds the card for a failure, with its remedy.
pub(in crate::console) fn failure_card(cx: &Context, failure: &RequestFailure) -> Card {
    let tone = if failure.is_absence() { CardTone::Plain } else { CardTone::Bad };
    let card =
        Card::new(tone, SafeText::limited(&failure.what, 60)).line(SafeText::limited(&told(&failure.message), 400));
    let card = failure.remedy.iter().fold(card, |card, remedy| card.line(SafeText::limited(&told(remedy), 300)));
    if failure.is_final() {
        return card;
    }
    card.hint(hint_of(cx, CommandId::Refresh, "try again"))
}

/// Builds the card in place of missing data: the failure, or the running work.
pub(in crate::console) fn fetched_card<T>(cx: &Context, fetched: &Fetched<T>, doing: &'static str) -> Option<Card> {
    match &fetched.failure {
        Some(failure) => Some(failure_card(cx, failure)),
        None => fetched.value.is_none().then(|| Card::new(CardTone::Plain, doing)),
    }
}

/// Draws the lines of a detail from line `scroll` on, and records the scroll range.
pub(in crate::console) fn draw_detail_lines(
    lines: &[TextLine],
    scroll: usize,
    inside: Rect,
    look: &Look,
    buf: &mut Buffer,
    drawn: &mut Drawn,
) {
    let rows = usize::from(inside.height);
    (drawn.measures.detail_rows, drawn.measures.detail_lines) = (rows, lines.len());
    drawn.hits.add(inside, ClickTarget::Detail);
    LineWindow::scrolled(lines, scroll.min(lines.len().saturating_sub(rows))).render(inside, buf, look);
}
