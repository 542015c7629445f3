//! The screens that study the memory: a list of agents or policies, and beside it the result.

mod agents;
mod policies;
mod recall;

use ratatui::{buffer::Buffer, layout::Rect};

use crate::console::core::{ClickTarget, CommandAsk, CommandId, Context};
use crate::console::screens::study::{StudyAnswer, StudyKind, StudyScreen, WaitingQuestion};
use crate::console::view::{Drawn, PanelList, Sheet, failure_card, hint_of};
use crate::memory::Entity;
use crate::ui::{
    Align, Card, CardTone, KeyHint, Look, PaneFrame, SafeText, StyleRole, TextLine, Total, figures, look as lay,
};

pub fn draw(cx: &Context, study: &StudyScreen, look: &Look, body: Rect, buf: &mut Buffer, drawn: &mut Drawn) {
    let (list, found) = panes(study, body, look);
    if let Some(area) = list {
        draw_list(cx, study, look, area, buf, drawn);
    }
    if let Some(area) = found {
        draw_found(cx, study, look, area, buf, drawn);
    }
}

/// List and result: side by side, above each other, else the focused one.
fn panes(study: &StudyScreen, body: Rect, look: &Look) -> (Option<Rect>, Option<Rect>) {
    const BESIDE: u16 = 120;
    const HIGH: u16 = 26;
    // Columns in which the list drops none of its own.
    let least = if study.kind == StudyKind::Agents { 58 } else { 72 };
    if study.kind == StudyKind::Recall {
        return (None, Some(body));
    }
    if look.is_beside(body.width, BESIDE) {
        let width = (body.width * 2 / 5).clamp(least, 72);
        let left = Rect { width, ..body };
        return (Some(left), Some(lay::right_of(body, width)));
    }
    if body.height >= HIGH {
        let height = (study.entries() as u16 + 4).clamp(6, body.height / 3);
        return (Some(Rect { height, ..body }), Some(lay::below(body, height)));
    }
    if study.reads { (None, Some(body)) } else { (Some(body), None) }
}

fn draw_list(cx: &Context, study: &StudyScreen, look: &Look, area: Rect, buf: &mut Buffer, drawn: &mut Drawn) {
    let title = if study.kind == StudyKind::Agents { "agents" } else { "versions" };
    let note = (study.left > 0).then(|| format!("and {} more, not listed", figures::count(study.left)));
    let note = note.map_or_else(TextLine::default, |note| TextLine::of(note, StyleRole::Muted));
    let inside = PaneFrame { focused: !study.reads, note, ..PaneFrame::new(title) }.render(area, buf, look);
    let columns = if study.kind == StudyKind::Agents { agents::columns() } else { policies::columns() };
    let card = match (study.list_failure(), study.entries()) {
        (Some(failure), _) => Some(failure_card(cx, failure)),
        (None, 0) if !study.filled => Some(waiting_card(study.waiting.as_ref())),
        (None, 0) => Some(nothing_card(cx)),
        _ => None,
    };
    let total = Total::Exact(study.entries() as u64 + study.left);
    let list = PanelList::of(&columns, study.entries(), study.selected, card);
    let list = PanelList { total, focused: !study.reads, ..list };
    let row = |at| match study.kind {
        StudyKind::Agents => Some(agents::row(study, cx, at, look)),
        _ => policies::row(cx, study, at, look),
    };
    list.draw(row, look, inside, buf, drawn);
}

/// Policies are trained from the cases of a bank.
fn nothing_card(cx: &Context) -> Card {
    let card = Card::new(CardTone::Plain, "No policy was trained here");
    match cx.holds(Entity::Profile) {
        Ok(()) => card.hint(hint_of(cx, CommandId::Palette, "profiles")).hint(hint_of(
            cx,
            CommandId::Change(CommandAsk::TrainPolicy),
            "trains one for the bank selected there",
        )),
        Err(_) => card,
    }
}

fn draw_found(cx: &Context, study: &StudyScreen, look: &Look, area: Rect, buf: &mut Buffer, drawn: &mut Drawn) {
    let title = match study.kind {
        StudyKind::Agents if study.agent().is_none() => SafeText::new("all agents"),
        StudyKind::Agents => name_of(study.agent().and_then(|a| a.text("name").or(a.text("id")))),
        StudyKind::Policies => {
            let version = study.version().and_then(|v| v.row.get("version").as_i64());
            SafeText::new(&version.map_or("version".to_owned(), |v| format!("version {v}")))
        }
        StudyKind::Recall => SafeText::new("how good recall is"),
    };
    let note = study.waiting.as_ref().filter(|w| Some(&w.question) == study.question().as_ref()).map(progress);
    let pane = PaneFrame {
        focused: study.reads,
        note: note.map_or_else(TextLine::default, |text| TextLine::of(text, StyleRole::Muted)),
        ..PaneFrame::new(title)
    };
    let inside = pane.render(area, buf, look);
    let inside = Rect { x: inside.x + 1, width: inside.width.saturating_sub(3), ..inside };
    drawn.hits.add(area, ClickTarget::Detail);
    let mut sheet = Sheet::new(usize::from(inside.width), look);
    let card = match study.answer() {
        Some(Ok(StudyAnswer::Agent(insights, graduation))) => {
            agents::sheet(&mut sheet, insights, graduation.as_deref());
            None
        }
        Some(Ok(StudyAnswer::Policy(measured))) => {
            if let Some(version) = study.version() {
                policies::weights(cx, &mut sheet, version);
            }
            policies::measured(&mut sheet, measured);
            policies::versions(&mut sheet, study);
            None
        }
        Some(Ok(StudyAnswer::Recall(found))) => {
            recall::sheet(cx, &mut sheet, found);
            None
        }
        Some(Err(failure)) if study.kind == StudyKind::Policies && study.version().is_some() => {
            if let Some(version) = study.version() {
                policies::weights(cx, &mut sheet, version);
            }
            sheet.section("on what its bank recalled");
            sheet.text(&failure.message, StyleRole::Warn);
            policies::versions(&mut sheet, study);
            None
        }
        Some(Err(failure)) => Some(failure_card(cx, failure)),
        None if study.kind == StudyKind::Policies && study.version().is_some_and(|v| v.policy.is_err()) => {
            if let Some(version) = study.version() {
                policies::weights(cx, &mut sheet, version);
            }
            policies::versions(&mut sheet, study);
            None
        }
        None if study.waiting.is_some() => Some(waiting_card(study.waiting.as_ref())),
        Some(Ok(_)) | None => None,
    };
    if let Some(card) = card {
        card.render(inside, buf, look);
    }
    sheet.show(inside, study.scroll, study.reads, buf, drawn);
}

fn name_of(text: Option<&str>) -> SafeText {
    SafeText::limited(text.unwrap_or("agent"), 60)
}

fn progress(waiting: &WaitingQuestion) -> SafeText {
    match &waiting.told {
        Some((entity, 0)) => format!("reading {} rows", entity.title()).into(),
        Some((entity, rows)) => SafeText::join(
            &["reading ".into(), entity.title().into(), " rows: ".into(), figures::count(*rows as u64)],
            "",
        ),
        None => "reading".into(),
    }
}

fn waiting_card(waiting: Option<&WaitingQuestion>) -> Card {
    let card = Card::new(CardTone::Plain, waiting.map_or_else(|| "Reading".into(), progress));
    card.hint(KeyHint::new("esc", "leave"))
}

/// A number with three decimals, or a dash.
fn number(value: Option<f64>) -> SafeText {
    value.map_or_else(|| "-".into(), |value| format!("{value:.3}").into())
}

/// A share in per cent, or a dash.
fn share(value: Option<f64>) -> SafeText {
    value.map_or_else(|| "-".into(), |value| format!("{:.1} %", value * 100.0).into())
}

/// A cell of a table in a sheet.
fn cell(text: impl Into<SafeText>, width: usize, align: Align, look: &Look) -> SafeText {
    look.fit(&text.into(), width).pad(width, align)
}
