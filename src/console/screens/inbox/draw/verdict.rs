//! Preview of a verdict: its effect on the feedback and its episode, and on recall. One tab for each verdict that can
//! be previewed.

use ratatui::layout::Rect;

use crate::change::plan::{Change, Plan};
use crate::console::core::{ClickTarget, CommandId, Context, NameBook};
use crate::console::screens::inbox::{InboxPane, InboxScreen, InboxVerdict, LOOKED_AT, meant};
use crate::console::view::{Canvas, change_lines, draw_detail_lines, sentences, what_if};
use crate::memory::Row;
use crate::memory::feedback::THUMBS_UP;
use crate::ui::{Look, PaneFrame, SafeText, StyleRole, TabLabel, Tabs, TextLine, look as lay};

pub fn draw(inbox: &InboxScreen, cx: &Context, area: Rect, canvas: &mut Canvas<'_>) {
    let look = canvas.look;
    let frame = PaneFrame { focused: inbox.pane == InboxPane::Verdict, ..PaneFrame::new("what a verdict would do") };
    let inside = frame.render(area, canvas.buf, look);
    let Some(row) = inbox.current() else { return };
    // A verdict that cannot be given is shown without its key.
    let label = |verdict: &InboxVerdict| {
        let off = inbox.can_judge(*verdict, cx).is_err();
        let key = if off { "" } else { cx.key(CommandId::Judge(*verdict)).unwrap_or_default() };
        TabLabel { title: format!("{key} {}", verdict.word()).trim_start().into(), count: None, off }
    };
    let tabs = Tabs { tabs: LOOKED_AT.iter().map(label).collect(), active: inbox.looked_at };
    let line = lay::row(inside, 0);
    tabs.render(line, canvas.buf, look);
    for (tab, place) in tabs.places(line) {
        canvas.drawn.hits.add(place, ClickTarget::Tab(tab));
    }
    let inside = lay::below(inside, 1);
    let inside = lay::padded(inside);
    let width = usize::from(inside.width.saturating_sub(2)).max(8);
    let lines = lines(inbox, row, cx, width, look);
    draw_detail_lines(&lines, inbox.verdict_scroll, inside, look, canvas.buf, canvas.drawn);
}

fn meaning(row: &Row, verdict: InboxVerdict, cx: &Context) -> String {
    match verdict {
        InboxVerdict::Right if cx.holds(crate::memory::Entity::UtilityEvent).is_err() => {
            "The user is right: noted for this session only, because this database keeps no signals.".to_owned()
        }
        InboxVerdict::Right => format!("The user is right: signals \"{}\" for the episode.", meant(row).word()),
        InboxVerdict::Flipped if row.text("kind") == Some(THUMBS_UP) => "Thumbs up becomes thumbs down.".to_owned(),
        InboxVerdict::Flipped => "Thumbs down becomes thumbs up.".to_owned(),
        _ => "Removes the feedback.".to_owned(),
    }
}

fn lines(inbox: &InboxScreen, row: &Row, cx: &Context, width: usize, look: &Look) -> Vec<TextLine> {
    let verdict = inbox.verdict_ahead();
    if let Err(why) = inbox.can_judge(verdict, cx) {
        return sentences(&[format!("This verdict is not possible: {why}.")], StyleRole::Muted, width, look);
    }
    let mut lines = sentences(&[meaning(row, verdict, cx)], StyleRole::Accent, width, look);
    let ahead = &inbox.ahead;
    if ahead.is_waiting() {
        lines.push(TextLine::of("  checking what it would do", StyleRole::Muted));
    }
    match &ahead.plan {
        Some(Ok(plan)) => lines.extend(planned(plan, &cx.names, width, look)),
        Some(Err(why)) => {
            lines.push(TextLine::of("  its effect is unknown", StyleRole::Muted));
            lines.extend(sentences(why, StyleRole::Warn, width, look));
        }
        None => {}
    }
    if let Some(recall) = &ahead.recall {
        lines.extend(what_if::lines(recall, width, look));
    }
    lines
}

/// The changes of a plan, and other effects.
fn planned(plan: &Plan, names: &NameBook, width: usize, look: &Look) -> Vec<TextLine> {
    let mut lines = sentences(&plan.disclosures, StyleRole::Warn, width, look);
    // Inserted and deleted rows need no columns here: the plan shows them before anything is done.
    let (altered, whole): (Vec<Change>, Vec<Change>) =
        plan.changes.iter().cloned().partition(|change| !change.before.is_null() && !change.after.is_null());
    for change in &whole {
        let (word, role) =
            if change.before.is_null() { ("new ", StyleRole::Good) } else { ("removed ", StyleRole::Bad) };
        let entity = SafeText::limited(&change.entity.replace('_', " "), 40);
        lines.push(TextLine::of("  ", StyleRole::Text).with(word, role).with(entity, StyleRole::Text));
    }
    lines.extend(change_lines(&altered, altered.len(), names, width, look));
    lines.extend(sentences(&plan.effects, StyleRole::Muted, width, look));
    lines
}
