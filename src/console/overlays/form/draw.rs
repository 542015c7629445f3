//! The form for feedback.

use ratatui::layout::Rect;

use crate::change::plan::ChangeDanger;
use crate::console::core::{ClickTarget, CommandId, Context};
use crate::console::overlays::form::{Form, FormField, FormSubject};
use crate::console::view::field::{PLANS, UNSAVED, draw_text, foot};
use crate::console::view::{Canvas, sentences, words};
use crate::memory::agreeing;
use crate::memory::feedback::RATING;
use crate::ui::scroll::LineWindow;
use crate::ui::{KeyHint, Look, Modal, PaneFrame, SafeText, Section, StyleRole, TextLine, look as lay};

pub fn draw(form: &Form, cx: &Context, canvas: &mut Canvas<'_>) {
    let (look, area, buf, drawn) = (canvas.look, canvas.area, &mut *canvas.buf, &mut *canvas.drawn);
    let title = match &form.subject {
        FormSubject::Edit(id) => format!("Edit feedback {id}"),
        FormSubject::Add(id) => format!("Add feedback to {id}"),
    };
    let title = SafeText::limited(&cx.in_title(&title), 80);
    // Adding is safe: it is done at once, unless every change here needs more care.
    let is_at_once = matches!(form.subject, FormSubject::Add(_)) && cx.care(ChangeDanger::Safe) == ChangeDanger::Safe;
    let adds = format!("ctrl-s adds it at once; {} undoes it", cx.key_for(CommandId::UndoLast));
    let (verb, saves) = if is_at_once { ("add", &*adds) } else { ("plan", PLANS) };
    let check = form.check();
    let pane = PaneFrame { tone: check.is_err().then_some(StyleRole::Warn), ..PaneFrame::new(title) };
    let modal = Modal { pane, width: 88.min(area.width), height: 22.min(area.height) };
    drawn.hits.add(modal.area(area), ClickTarget::Overlay);
    let inside = modal.render(area, buf, look);
    let width = usize::from(inside.width);
    kind_line(form, look).render(lay::row(inside, 0), buf, look);
    rating_line(form, look).render(lay::row(inside, 1), buf, look);
    let label = if form.field == FormField::Correction { StyleRole::Accent } else { StyleRole::Heading };
    let mut heading = Section::new("correction").line(width, look);
    if let Some(run) = heading.runs.first_mut() {
        run.role = label;
    }
    heading.render(lay::row(inside, 3), buf, look);
    let oddities = form.oddities();
    let mut told = sentences(&oddities, StyleRole::Warn, width, look);
    // At least one row is left for the text being written.
    let most = (usize::from(inside.height) / 3).min(usize::from(inside.height).saturating_sub(7));
    let is_cut = told.len() > most;
    told.truncate(most);
    let last = 2 + told.len() as u16;
    let body = lay::below(inside, 4);
    let text = Rect { height: body.height.saturating_sub(last), ..body };
    if form.masked {
        let words =
            format!("personal texts are masked: {} shows them so that you can edit", cx.key_for(CommandId::Mask));
        let line = TextLine::of(words, StyleRole::Masked);
        line.render(lay::row(text, 0), buf, look);
    } else {
        draw_text(&form.correction, form.field == FormField::Correction, look, text, buf);
    }
    let below = lay::below(body, text.height);
    LineWindow::scrolled(&told, 0).render(Rect { height: told.len() as u16, ..below }, buf, look);
    let rest = lay::below(below, told.len() as u16);
    let verdict = match &check {
        _ if form.closing => TextLine::of(UNSAVED, StyleRole::Warn),
        Err(reason) => TextLine::of(SafeText::limited(reason, width), StyleRole::Warn),
        Ok(()) if is_cut => {
            let words = "{#} {warning|warnings} about this text; a larger window shows {it|them} in full";
            TextLine::of(agreeing(oddities.len() as u64, words), StyleRole::Warn)
        }
        Ok(()) => TextLine::of(saves, StyleRole::Muted),
    };
    verdict.render(lay::row(rest, 0), buf, look);
    let hints = [
        KeyHint::new("ctrl-s", verb),
        KeyHint::new("tab", "next field"),
        KeyHint::new("1-5", "rating"),
        KeyHint::new("esc", "close"),
    ];
    foot(&hints, width, cx).render(lay::row(rest, 1), buf, look);
}

fn label(text: &str, focused: bool, look: &Look) -> TextLine {
    let role = if focused { StyleRole::Accent } else { StyleRole::Label };
    let mut line = TextLine::default();
    if focused {
        line.push_glyphs(look.glyphs.cursor, 1, StyleRole::Accent);
    } else {
        line.push_blanks(1);
    }
    line.with(look.pad(&SafeText::new(text), 10, crate::ui::Align::Left), role)
}

fn kind_line(form: &Form, look: &Look) -> TextLine {
    let mut line = label("kind", form.field == FormField::Kind, look);
    for (index, kind) in form.kinds.iter().enumerate() {
        let chosen = index == form.kind;
        line.push_glyphs(
            if chosen { look.glyphs.dot } else { look.glyphs.ring },
            1,
            if chosen { StyleRole::Accent } else { StyleRole::Muted },
        );
        line.push(" ", StyleRole::Text);
        let role = if chosen { words::state_role(kind) } else { StyleRole::Muted };
        line.push(SafeText::limited(kind, 30), role);
        line.push("   ", StyleRole::Text);
    }
    line
}

fn rating_line(form: &Form, look: &Look) -> TextLine {
    let mut line = label("rating", form.field == FormField::Rating, look);
    let counts = form.kind() == RATING;
    for rating in 1..=5_i64 {
        let chosen = form.rating == Some(rating);
        let role = match (chosen, counts) {
            (true, true) => StyleRole::Selection,
            (true, false) => StyleRole::Stale,
            _ => StyleRole::Muted,
        };
        line.push(if chosen { format!("[{rating}]") } else { format!(" {rating} ") }, role);
    }
    if form.rating.is_some() && !counts {
        line.push("  does not count with a thumb", StyleRole::Muted);
    }
    line
}
