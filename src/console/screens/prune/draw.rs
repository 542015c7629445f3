//! Pruning banks: the rules on one side, their effect on the other.

use ratatui::{buffer::Buffer, layout::Rect};

use crate::change::plan::{Change, Plan};
use crate::console::core::{ClickTarget, Context};
use crate::console::screens::prune::{PruneRule, PruneScreen, RULES};
use crate::console::view::{Drawn, count_lines, fetched_card, sentences, words};
use crate::memory::prune::PruneWindow;
use crate::ui::scroll::LineWindow;
use crate::ui::{Align, Look, PaneFrame, SafeText, Section, StyleRole, TextLine, figures, look as lay};

/// Width of the rules if both are side by side.
const RULES_WIDE: u16 = 48;
/// Most cases shown.
const SAMPLES: usize = 30;

/// Characters of a case's prompt.
const PROMPT: usize = 200;

pub fn draw(cx: &Context, prune: &PruneScreen, look: &Look, body: Rect, buf: &mut Buffer, drawn: &mut Drawn) {
    const BESIDE: u16 = 96;
    let (rules, preview) = if look.is_beside(body.width, BESIDE) {
        let width = (body.width / 4).clamp(RULES_WIDE, 2 * RULES_WIDE);
        lay::side_by_side(body, width)
    } else {
        let height = (RULES.len() as u16 + 2).min(body.height / 2);
        lay::stacked(body, height)
    };
    draw_rules(cx, prune, look, rules, buf, drawn);
    draw_preview(cx, prune, look, preview, buf, drawn);
}

fn draw_rules(cx: &Context, prune: &PruneScreen, look: &Look, area: Rect, buf: &mut Buffer, drawn: &mut Drawn) {
    let pane = PaneFrame { focused: true, ..PaneFrame::new("rules") };
    let inside = lay::padded(pane.render(area, buf, look));
    let mut lines: Vec<TextLine> =
        RULES.iter().map(|rule| rule_line(cx, prune, *rule, usize::from(inside.width), look)).collect();
    let height = usize::from(inside.height);
    if height > RULES.len() + 3 {
        lines.push(TextLine::default());
        let mut told = vec![
            "A case is removed when any rule says so.".to_owned(),
            "Rows that name it are corrected; its vector is removed with it.".to_owned(),
        ];
        if prune.rule() == PruneRule::Window {
            told.push(window_words(prune.rules.window).to_owned());
        }
        lines.extend(sentences(&told, StyleRole::Muted, usize::from(inside.width), look));
    }
    let first = (prune.selected + 1).saturating_sub(height);
    let shown = LineWindow { selected: Some(prune.selected - first), ..LineWindow::scrolled(&lines, first) };
    shown.render(inside, buf, look);
    for (position, y) in (first..RULES.len()).zip(inside.top()..inside.bottom()) {
        drawn.hits.add(Rect { y, height: 1, ..inside }, ClickTarget::PanelRow(position));
    }
}

fn rule_line(cx: &Context, prune: &PruneScreen, rule: PruneRule, width: usize, look: &Look) -> TextLine {
    const NAME: usize = 24;
    let rules = &prune.rules;
    let on = |on: bool| (if on { "yes" } else { "no" }.to_owned(), on);
    let (name, (value, set)) = match rule {
        PruneRule::Window => (
            "newest kept",
            match rules.window {
                PruneWindow::Unsaid if rules.names_one() => ("all: a rule is set".to_owned(), false),
                PruneWindow::Unsaid => ("each bank's own".to_owned(), false),
                PruneWindow::Own => ("own, with any rule".to_owned(), true),
                PruneWindow::Newest(window) => (window.to_string(), true),
            },
        ),
        PruneRule::Diverse => ("prefer different ones", on(rules.keep_diverse)),
        PruneRule::Age => (
            "older than",
            match rules.older_than.as_deref() {
                None => ("off".to_owned(), false),
                Some("1d") => ("1 day".to_owned(), true),
                Some(age) => (age.strip_suffix('d').map_or(age.to_owned(), |days| format!("{days} days")), true),
            },
        ),
        PruneRule::Reward => (
            "reward below",
            rules.below_reward.map_or_else(|| ("off".to_owned(), false), |reward| (reward.to_string(), true)),
        ),
        PruneRule::Duplicates => ("duplicate messages", on(rules.duplicates)),
        PruneRule::Person => ("only this person", only(rules.user.as_ref(), prune.of.0.as_ref())),
        PruneRule::Agent => ("only this agent", only(rules.agent.as_ref(), prune.of.1.as_ref())),
    };
    let label = look.pad(&SafeText::from(name), NAME, Align::Left);
    let value = cx.in_title(&value);
    let role = if set { StyleRole::Warn } else { StyleRole::Muted };
    TextLine::of(label, StyleRole::Label).with(SafeText::limited(&value, width.saturating_sub(NAME).max(8)), role)
}

/// Describes when a window applies.
fn window_words(window: PruneWindow) -> &'static str {
    match window {
        PruneWindow::Unsaid => "Each bank's own window applies only while no other rule is set.",
        PruneWindow::Own => "Each bank's own window applies together with the other rules.",
        PruneWindow::Newest(_) => "This window applies to every bank, whatever its own is.",
    }
}

/// Describes the person or agent that the rules are limited to, else the possible one, else that none is selected; true
/// if limited.
fn only(set: Option<&String>, of: Option<&String>) -> (String, bool) {
    match (set, of) {
        (Some(name), _) => (name.clone(), true),
        (None, Some(name)) => (format!("off ({name})"), false),
        (None, None) => ("none is selected".to_owned(), false),
    }
}

fn draw_preview(cx: &Context, prune: &PruneScreen, look: &Look, area: Rect, buf: &mut Buffer, drawn: &mut Drawn) {
    let note = match (&prune.preview.failure, prune.preview.is_known()) {
        (Some(_), _) => TextLine::default(),
        (None, true) => TextLine::of("nothing is written yet", StyleRole::Muted),
        (None, false) => TextLine::of("counting", StyleRole::Warn),
    };
    let pane = PaneFrame { note, ..PaneFrame::new("what would go") };
    let inside = lay::padded(pane.render(area, buf, look));
    if let Some(card) = fetched_card(cx, &prune.preview, "Counting") {
        drawn.measures.detail_lines = 0;
        card.render(inside, buf, look);
        return;
    }
    let Some(plan) = &prune.preview.value else { return };
    let lines = preview_lines(cx, plan, usize::from(inside.width.saturating_sub(2)), look);
    drawn.measures.detail_rows = usize::from(inside.height);
    drawn.measures.detail_lines = lines.len();
    LineWindow::scrolled(&lines, prune.scroll).render(inside, buf, look);
}

fn preview_lines(cx: &Context, plan: &Plan, width: usize, look: &Look) -> Vec<TextLine> {
    if plan.changes_total == 0 {
        let mut lines = vec![TextLine::of("These rules remove no case.", StyleRole::Good)];
        lines.extend(sentences(&plan.disclosures, StyleRole::Warn, width, look));
        return lines;
    }
    let cases = figures::count(plan.changes_total as u64);
    let noun = if plan.changes_total == 1 { " case goes" } else { " cases go" };
    let mut lines = vec![TextLine::of(SafeText::join(&[cases, noun.into()], ""), StyleRole::Warn)];
    if let Some(reason) = &plan.undo_reason {
        let words = SafeText::join(&["no undo: ".into(), SafeText::limited(reason, 200)], "");
        lines.push(TextLine::of(words, StyleRole::Bad));
    }
    lines.extend(count_lines(&plan.counts, width, look));
    let mut part = |title: &'static str, inner: Vec<TextLine>| {
        if !inner.is_empty() {
            Section::new(title).add_to(&mut lines, width, look);
            lines.extend(inner);
        }
    };
    part("banks", sentences(&cx.in_titles(&plan.effects), StyleRole::Info, width, look));
    part("note", sentences(&plan.disclosures, StyleRole::Warn, width, look));
    part("cases", plan.changes.iter().take(SAMPLES).flat_map(|change| sample(change, width, look)).collect());
    lines
}

/// A deleted case; its prompt gets its own line if there is little room beside the rest.
fn sample(change: &Change, width: usize, look: &Look) -> Vec<TextLine> {
    const ENOUGH: usize = 32;
    let text = |column: &str| change.before[column].as_str().unwrap_or_default();
    let time = words::short_time(text("created_at"));
    let reward =
        change.before["reward"].as_f64().map_or_else(|| "no reward".to_owned(), |reward| format!("{reward:.2}"));
    let prompt = Some(text("prompt")).filter(|prompt| !prompt.is_empty()).unwrap_or(&change.id);
    let prompt = SafeText::limited(prompt, PROMPT);
    let head = TextLine::of("  ", StyleRole::Text)
        .with(look.pad(&time, 11, Align::Left), StyleRole::Muted)
        .with("  ", StyleRole::Text)
        .with(look.pad(&SafeText::limited(&reward, 9), 9, Align::Left), StyleRole::Number)
        .with("  ", StyleRole::Text)
        .with(look.pad(&SafeText::limited(text("why"), 18), 18, Align::Left), StyleRole::Muted);
    if head.width() + 2 + prompt.width().min(ENOUGH) > width {
        return vec![head, TextLine::of("    ", StyleRole::Text).with(prompt, StyleRole::Text)];
    }
    vec![head.with("  ", StyleRole::Text).with(prompt, StyleRole::Text)]
}
