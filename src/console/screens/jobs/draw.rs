//! Jobs: the available ones, and the state of the selected one: bar, rate, time left, log, receipt.

use ratatui::{buffer::Buffer, layout::Rect};

use crate::console::core::Context;
use crate::console::screens::jobs::JobsScreen;
use crate::console::view::jobs::note;
use crate::console::view::{Drawn, PanelList, count_lines, fetched_card, sentences, words};
use crate::job::plan::{JobOffer, JobProgress, JobReceipt, JobState};
use crate::memory::agreeing;
use crate::ui::chart::Gauge;
use crate::ui::scroll::LineWindow;
use crate::ui::{
    Look, NamedValue, PaneFrame, SafeText, Section, StyleRole, TableColumn, TableRow, TextLine, Width, figures,
    key_values, look as lay,
};

/// Lines of the log.
const LOG: usize = 8;

pub fn draw(cx: &Context, jobs: &JobsScreen, look: &Look, body: Rect, buf: &mut Buffer, drawn: &mut Drawn) {
    const BESIDE: u16 = 120;
    /// Columns of the list with the longest names and states.
    const LIST: u16 = 67;
    let (list, detail) = if look.is_beside(body.width, BESIDE) {
        let width = (body.width * 9 / 20).max(LIST);
        lay::side_by_side(body, width)
    } else {
        let height = (jobs.offers().len() as u16 + 4).min(body.height / 2);
        lay::stacked(body, height)
    };
    draw_list(cx, jobs, look, list, buf, drawn);
    draw_detail(cx, jobs, look, detail, buf, drawn);
}

fn draw_list(cx: &Context, jobs: &JobsScreen, look: &Look, area: Rect, buf: &mut Buffer, drawn: &mut Drawn) {
    let inside = PaneFrame { focused: true, ..PaneFrame::new("jobs") }.render(area, buf, look);
    let names = jobs.offers().iter().map(|offer| offer.name.chars().count() as u16);
    let longest = names.max().unwrap_or(0).clamp(14, 24);
    let states = jobs.offers().iter().map(|offer| state(cx, offer, look).width() as u16);
    let columns = [
        TableColumn::new("job", Width::Grow { min: longest, weight: 2 }),
        TableColumn::new("looks at", Width::Fixed(9)).right().priority(2),
        // The state is never cut.
        TableColumn::new("state", Width::Grow { min: states.max().unwrap_or(0).clamp(12, 24), weight: 1 }),
    ];
    let card = fetched_card(cx, &jobs.listed, "Reading");
    let list = PanelList::of(&columns, jobs.offers().len(), jobs.cursor.selected, card);
    list.draw(|at| jobs.offers().get(at).map(|offer| row(cx, offer, look)), look, inside, buf, drawn);
}

fn state(cx: &Context, offer: &JobOffer, look: &Look) -> TextLine {
    match &cx.running.run_of(offer) {
        Some(run) => state_line(run, look),
        None if cx.running.of(&offer.name).is_some() => TextLine::of("starting", StyleRole::Label),
        None if offer.reason.is_some() => TextLine::of("not here", StyleRole::Muted),
        None => TextLine::of("never run", StyleRole::Muted),
    }
}

fn row(cx: &Context, offer: &JobOffer, look: &Look) -> TableRow {
    let role = if offer.reason.is_some() { StyleRole::Muted } else { StyleRole::Text };
    let rows = offer.looks_at.map_or_else(|| SafeText::new(""), figures::count);
    let name = TextLine::of(SafeText::limited(&offer.name, 40), role);
    let cells = vec![name, TextLine::of(rows, StyleRole::Number), state(cx, offer, look)];
    TableRow { cells, marked: false, stale: false }
}

fn state_line(run: &JobProgress, look: &Look) -> TextLine {
    let g = look.glyphs;
    let (glyph, role) = match run.state {
        JobState::Succeeded => (g.check, StyleRole::Good),
        JobState::Failed | JobState::Cancelled => (g.warning, StyleRole::Warn),
        _ if run.state.is_active() && !run.alive => (g.warning, StyleRole::Warn),
        _ => (g.arrow_right, StyleRole::Label),
    };
    let mut line = TextLine::default().with_glyph(glyph, role).with(" ", StyleRole::Text);
    let gone = run.state.is_active() && !run.alive;
    line.push(SafeText::new(if gone { "runner is gone" } else { run.state.word() }), role);
    if let Some(part) = run.part().filter(|_| run.state != JobState::Succeeded) {
        line.push(SafeText::new(&format!(" {:.0}%", (part * 100.0).floor())), StyleRole::Number);
    }
    line
}

fn draw_detail(cx: &Context, jobs: &JobsScreen, look: &Look, area: Rect, buf: &mut Buffer, drawn: &mut Drawn) {
    let Some(offer) = jobs.current() else {
        PaneFrame::new("job").render(area, buf, look);
        return;
    };
    let inside = lay::padded(PaneFrame::new(SafeText::limited(&offer.name, 60)).render(area, buf, look));
    let width = usize::from(inside.width.saturating_sub(2));
    let mut lines = sentences(std::slice::from_ref(&offer.does), StyleRole::Text, width, look);
    if let Some(reason) = &offer.reason {
        lines.push(TextLine::default());
        lines.extend(sentences(&[format!("not here: {reason}")], StyleRole::Warn, width, look));
    }
    if let Some(run) = cx.running.run_of(offer) {
        lines.push(TextLine::default());
        lines.extend(run_lines(&run, width, look));
    }
    let told: Vec<&str> =
        cx.running.log.iter().filter(|(name, _)| *name == offer.name).map(|(_, line)| line.as_str()).collect();
    if !told.is_empty() {
        Section::new("Log").add_to(&mut lines, width, look);
        let shown = &told[told.len().saturating_sub(LOG)..];
        lines.extend(shown.iter().map(|line| TextLine::of(SafeText::limited(line, 200), StyleRole::Muted)));
    }
    let receipt = cx.running.receipts.iter().rev().find(|(name, _)| *name == offer.name);
    if let Some((_, receipt)) = receipt {
        Section::new("Receipt").add_to(&mut lines, width, look);
        lines.extend(receipt_lines(receipt, width, look));
    }
    drawn.measures.detail_rows = usize::from(inside.height);
    drawn.measures.detail_lines = lines.len();
    LineWindow::scrolled(&lines, jobs.cursor.scroll).render(inside, buf, look);
}

/// Formats the number of batches, and the size of the latest.
fn batches(run: &JobProgress) -> SafeText {
    match run.batch {
        0 => figures::count(run.batches),
        rows => SafeText::new(&format!("{}, the latest of {}", run.batches, agreeing(rows as u64, "{#} {row|rows}"))),
    }
}

fn run_lines(run: &JobProgress, width: usize, look: &Look) -> Vec<TextLine> {
    let role = if run.state == JobState::Failed { StyleRole::Warn } else { StyleRole::Good };
    let gauge = Gauge { label: SafeText::new(run.state.word()), ratio: run.part(), note: note(run), role };
    let total = run.total.map_or_else(String::new, |total| format!(" of {}", figures::count(total)));
    let mut pairs = vec![
        NamedValue::new("looked at", SafeText::new(&format!("{}{total}", figures::count(run.seen)))),
        NamedValue::new("changed", figures::count(run.changed)),
        NamedValue::new("batches", batches(run)),
        NamedValue::new("last news", words::time(&run.updated_at, true)),
    ];
    if run.quarantined > 0 {
        pairs.push(NamedValue::line("set aside", TextLine::of(figures::count(run.quarantined), StyleRole::Warn)));
    }
    if let Some(owner) = run.owner.as_ref().filter(|_| run.state.is_active()) {
        let gone = if run.alive { "" } else { ", which is gone: a resumes the job" };
        pairs.push(NamedValue::new("runner", SafeText::limited(&format!("{owner}{gone}"), 120)));
    }
    if let Some(why) = &run.throttle {
        pairs.push(NamedValue::line("slowed", TextLine::of(SafeText::limited(why, 120), StyleRole::Warn)));
    }
    if let Some(problem) = &run.problem {
        pairs.push(NamedValue::line("problem", TextLine::of(SafeText::limited(problem, 300), StyleRole::Warn)));
    }
    let mut lines = vec![gauge.line(width, look), TextLine::default()];
    lines.extend(key_values(&pairs, width, look));
    lines
}

fn receipt_lines(receipt: &JobReceipt, width: usize, look: &Look) -> Vec<TextLine> {
    let change = &receipt.receipt;
    let pairs =
        [("status", Some(&change.status)), ("undo", change.undo.as_ref()), ("undo", change.undo_reason.as_ref())];
    let pair =
        |(name, text): (&'static str, Option<&String>)| Some(NamedValue::new(name, SafeText::limited(text?, 300)));
    let pairs: Vec<NamedValue> = pairs.into_iter().filter_map(pair).collect();
    let mut lines = key_values(&pairs, width, look);
    lines.extend(count_lines(&change.counts, width, look));
    for check in &receipt.verification {
        let role = if check.ok { StyleRole::Good } else { StyleRole::Warn };
        lines.push(TextLine::of(SafeText::limited(&format!("{}: {}", check.what, check.found), 200), role));
    }
    lines
}
