//! Erasing a person: the current step, its place among the others, and the choices.

mod choices;
mod mentions;
mod outcome;
mod steps;

use ratatui::{buffer::Buffer, layout::Rect};

use crate::console::core::{CommandId, Context, RequestFailure};
use crate::console::screens::erase::messages::EraseChoice;
use crate::console::screens::erase::{EraseScreen, STEPS};
use crate::console::view::{Drawn, hint_of, told};
use crate::memory::Entity;
use crate::ui::scroll::LineWindow;
use crate::ui::{Card, CardTone, KeyHint, Look, PaneFrame, SafeText, StyleRole, TextLine, figures, look as lay};

pub(super) use choices::{chosen_words, last_words};

/// Least columns to show the choices beside the step.
const BESIDE: u16 = 120;
/// Columns of the choices.
const SIDE: u16 = 46;

pub fn draw(cx: &Context, erasure: &EraseScreen, look: &Look, body: Rect, buf: &mut Buffer, drawn: &mut Drawn) {
    let width = if look.is_beside(body.width, BESIDE) { body.width - SIDE } else { body.width };
    let is_beside = width < body.width;
    draw_step(cx, (erasure, is_beside), look, Rect { width, ..body }, buf, drawn);
    if is_beside {
        draw_choices(erasure, look, lay::right_of(body, width), buf);
    }
}

fn draw_step(
    cx: &Context,
    (erasure, is_beside): (&EraseScreen, bool),
    look: &Look,
    body: Rect,
    buf: &mut Buffer,
    drawn: &mut Drawn,
) {
    let mut title = SafeText::join(&["erase ".into(), SafeText::limited(&erasure.given, 60)], "");
    let known = erasure.preview.iter().flat_map(|preview| &preview.known);
    if let Some(name) = known.into_iter().find(|known| known.kind == "name" && known.value != erasure.given) {
        title = SafeText::join(&[title, SafeText::limited(&name.value, 40)], "  ");
    }
    let pane = PaneFrame { focused: true, tone: Some(StyleRole::Danger), ..PaneFrame::new(title) };
    let inside = lay::padded(pane.render(body, buf, look));
    steps_line(erasure, usize::from(inside.width), look).render(lay::row(inside, 0), buf, look);
    if !is_beside && erasure.failure.is_none() && !erasure.given.is_empty() {
        choices::line_of_all(erasure, look).render(lay::row(inside, 1), buf, look);
    }
    let area = lay::below(inside, 2);
    let width = usize::from(area.width.saturating_sub(2));
    if let Some(card) = card(cx, erasure) {
        drawn.measures.detail_lines = 0;
        card.render(area, buf, look);
        return;
    }
    if let Some(preview) = erasure.preview.as_deref().filter(|_| erasure.is_at_mentions()) {
        mentions::draw((cx, erasure), preview, look, area, buf, drawn);
        return;
    }
    let lines = match (&erasure.running, &erasure.outcome, &erasure.preview) {
        (Some(run), ..) => outcome::under_way(run, erasure.preview.as_deref(), width, look),
        (None, Some(outcome), _) => outcome::lines(outcome, width, look),
        (None, None, Some(preview)) => steps::lines((cx, erasure), preview, width, look),
        (None, None, None) => Vec::new(),
    };
    drawn.measures.detail_rows = usize::from(area.height);
    drawn.measures.detail_lines = lines.len();
    let last = lines.len().saturating_sub(usize::from(area.height));
    LineWindow::scrolled(&lines, erasure.scroll.min(last)).render(area, buf, look);
}

fn draw_choices(erasure: &EraseScreen, look: &Look, area: Rect, buf: &mut Buffer) {
    let inside = lay::padded(PaneFrame::new("as chosen").render(area, buf, look));
    let lines = choices::side(erasure, usize::from(inside.width), look);
    LineWindow::scrolled(&lines, 0).render(inside, buf, look);
}

/// Builds the card shown in place of a step: no person is named, the search is running, or it failed.
fn card(cx: &Context, erasure: &EraseScreen) -> Option<Card> {
    if erasure.running.is_some() || erasure.outcome.is_some() {
        return None;
    }
    if let Some(failure) = &erasure.failure {
        return Some(failed(cx, failure));
    }
    if erasure.preview.is_some() {
        return None;
    }
    if erasure.given.is_empty() {
        let card =
            Card::new(CardTone::Plain, "Nobody is named").line("Name a person, or choose one among the subjects.");
        return Some(card.hint(hint_of(cx, CommandId::Turn(EraseChoice::Other), "name a person")).hint(hint_of(
            cx,
            CommandId::List(Entity::Subject),
            "subjects",
        )));
    }
    let card = Card::new(CardTone::Info, "Looking everywhere");
    let card = match &erasure.looking {
        Some((table, values)) => card.line(SafeText::join(
            &[SafeText::limited(table, 40), ": ".into(), figures::count(*values), " values read so far".into()],
            "",
        )),
        None => card.line("Every table is searched for everything that the person is known by."),
    };
    Some(card.line("Nothing is written, and no transaction stays open.").hint(KeyHint::new("esc", "stop")))
}

fn failed(cx: &Context, failure: &RequestFailure) -> Card {
    let card = Card::new(CardTone::Bad, SafeText::limited(&failure.what, 60))
        .line(SafeText::limited(&told(&failure.message), 600));
    let card = failure.remedy.iter().fold(card, |card, remedy| card.line(SafeText::limited(&told(remedy), 300)));
    card.hint(hint_of(cx, CommandId::Refresh, "look again")).hint(hint_of(
        cx,
        CommandId::Turn(EraseChoice::Other),
        "somebody else",
    ))
}

/// All steps with the current one highlighted; only the current one if there is no room.
fn steps_line(erasure: &EraseScreen, width: usize, look: &Look) -> TextLine {
    let mut line = TextLine::default();
    for (position, name) in STEPS.iter().enumerate() {
        // Numbers would look like keys.
        let (glyph, role) = match position.cmp(&erasure.step) {
            std::cmp::Ordering::Less => (look.glyphs.check, StyleRole::Good),
            std::cmp::Ordering::Equal => (look.glyphs.dot, StyleRole::Heading),
            std::cmp::Ordering::Greater => (look.glyphs.ring, StyleRole::Muted),
        };
        if position > 0 {
            line = line
                .with(" ", StyleRole::Text)
                .with_glyph(look.glyphs.separator, StyleRole::Muted)
                .with(" ", StyleRole::Text);
        }
        line = line.with_glyph(glyph, role).with(format!(" {name}"), role);
    }
    if line.width() <= width {
        return line;
    }
    let name = STEPS.get(erasure.step).copied().unwrap_or_default();
    TextLine::of(format!("step {} of {}  ", erasure.step + 1, STEPS.len()), StyleRole::Muted)
        .with(name, StyleRole::Heading)
}
