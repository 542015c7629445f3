//! A topic as a timeline from top to bottom, with gaps, parents and suggested parents, and the selected episode beside
//! it.

use ratatui::{buffer::Buffer, layout::Rect};

use crate::console::core::{ClickTarget, CommandId, Context, NameBook, row_name};
use crate::console::screens::replay::{ReplayScreen, ReplayStep, ReplaySubject, ReplayedTopic};
use crate::console::view::{Drawn, draw_detail_lines, failure_card, halves, hint_of, words};
use crate::memory::{Row, time};
use crate::recall::parents::Suggestion;
use crate::ui::scroll::LineWindow;
use crate::ui::{
    Align, Card, CardTone, Look, NamedValue, PaneFrame, SafeText, Section, StyleRole, TextLine, figures, key_values,
    look as lay,
};

/// Least columns for full times and for utilities.
const ROOMY: usize = 64;

pub fn draw(cx: &Context, replay: &ReplayScreen, look: &Look, body: Rect, buf: &mut Buffer, drawn: &mut Drawn) {
    let (list, detail) = halves(body, look);
    draw_line(cx, replay, look, list, buf, drawn);
    draw_detail(replay, &cx.names, look, detail, buf, drawn);
}

fn title(replay: &ReplayScreen) -> SafeText {
    let (lead, name) = match (&replay.about, &replay.told.value) {
        (Some(ReplaySubject::Topic(topic)), _) => ("replay ", topic.as_str()),
        (Some(ReplaySubject::Episode(id)), None) => ("replay around ", id.as_str()),
        (Some(ReplaySubject::Episode(_)), Some(told)) => ("replay around an episode of ", told.topic.as_str()),
        (None, _) => ("replay", ""),
    };
    SafeText::join(&[lead.into(), SafeText::limited(name, 60)], "")
}

fn note(replay: &ReplayScreen) -> TextLine {
    match &replay.told.value {
        Some(told) if replay.told.is_known() => {
            let candidates = figures::count(told.candidates as u64);
            let shown = format!("{} of ", told.steps.len());
            let by = SafeText::limited(&told.used, 10);
            let mut words = vec![shown.into(), candidates, " episodes, by ".into(), by];
            if told.more > 0 {
                words.extend(["; ".into(), figures::count(told.more as u64), " not shown".into()]);
            }
            TextLine::of(SafeText::join(&words, ""), StyleRole::Muted)
        }
        _ if replay.told.pending.is_some() => TextLine::of("reading", StyleRole::Warn),
        _ => TextLine::default(),
    }
}

fn card(cx: &Context, replay: &ReplayScreen) -> Option<Card> {
    if let Some(failure) = &replay.told.failure {
        return Some(failure_card(cx, failure));
    }
    match (&replay.about, &replay.told.value) {
        (None, _) => Some(Card::new(CardTone::Plain, "No topic yet").hint(hint_of(cx, CommandId::Topic, "names one"))),
        (Some(_), None) => Some(Card::new(CardTone::Plain, "Reading")),
        (Some(_), Some(told)) if told.steps.is_empty() => {
            let card = Card::new(CardTone::Plain, "No episode matches")
                .line("An episode belongs to a topic when it has that name, or contains more than half of its words.");
            Some(card.hint(hint_of(cx, CommandId::Topic, "names another")))
        }
        _ => None,
    }
}

fn draw_line(cx: &Context, replay: &ReplayScreen, look: &Look, area: Rect, buf: &mut Buffer, drawn: &mut Drawn) {
    let pane = PaneFrame { focused: true, note: note(replay), ..PaneFrame::new(title(replay)) };
    let inside = lay::padded(pane.render(area, buf, look));
    if let Some(card) = card(cx, replay) {
        card.render(inside, buf, look);
        return;
    }
    let Some(told) = &replay.told.value else { return };
    let line = TimeLine::of(told, usize::from(inside.width.saturating_sub(2)), look);
    let at = line.entries.iter().position(|entry| *entry == Some(replay.cursor.selected)).unwrap_or_default();
    let height = usize::from(inside.height);
    let first = at.saturating_sub(height / 2).min(line.lines.len().saturating_sub(height));
    let shown = LineWindow { selected: at.checked_sub(first), ..LineWindow::scrolled(&line.lines, first) };
    shown.render(inside, buf, look);
    for (entry, y) in line.entries.iter().skip(first).zip(inside.top()..inside.bottom()) {
        if let Some(entry) = entry {
            drawn.hits.add(Rect { y, height: 1, ..inside }, ClickTarget::PanelRow(*entry));
        }
    }
}

/// The time line, with the entry that each line is.
struct TimeLine<'a> {
    told: &'a ReplayedTopic,
    look: &'a Look,
    width: usize,
    lines: Vec<TextLine>,
    entries: Vec<Option<usize>>,
}

impl<'a> TimeLine<'a> {
    fn of(told: &'a ReplayedTopic, width: usize, look: &'a Look) -> Self {
        let mut line = TimeLine { told, look, width, lines: Vec::new(), entries: Vec::new() };
        let mut entry = 0;
        for (at, step) in told.steps.iter().enumerate() {
            if let Some(before) = at.checked_sub(1).and_then(|before| told.steps.get(before)) {
                line.gap(&before.row, &step.row);
            }
            line.episode(at, step, entry);
            entry += 1;
            line.continues(step);
            for parent in &step.parents {
                line.suggestion(parent, entry);
                entry += 1;
            }
        }
        line
    }

    fn push(&mut self, line: TextLine, entry: Option<usize>) {
        self.lines.push(line);
        self.entries.push(entry);
    }

    /// Columns before the line itself.
    fn lead(&self) -> usize {
        if self.width >= ROOMY { 22 } else { 16 }
    }

    fn episode(&mut self, at: usize, step: &ReplayStep, entry: usize) {
        let (look, row) = (self.look, &step.row);
        let is_roomy = self.width >= ROOMY;
        let started = row.text("started_at");
        let when = match started {
            Some(text) if is_roomy => words::time(text, false),
            Some(text) => words::short_time(text),
            None => "no time".into(),
        };
        let outcome = row.text("outcome").unwrap_or("unknown");
        let mut line = TextLine::of(look.pad(&(at + 1).to_string().into(), 3, Align::Right), StyleRole::Muted);
        line.push(" ", StyleRole::Text);
        line.push(look.pad(&when, self.lead() - 5, Align::Left), StyleRole::Muted);
        line.push_blanks(self.lead().saturating_sub(line.width()));
        let node = if row.text("parent_id").is_some() { look.glyphs.dot } else { look.glyphs.diamond };
        line = line.with_glyph(node, words::state_role(outcome)).with(" ", StyleRole::Text);
        let mut tail = words::state(outcome, look);
        tail.push_blanks(10_usize.saturating_sub(tail.width()));
        if let Some(utility) = row.number("utility").filter(|_| is_roomy) {
            tail.push(format!(" {utility:.2}"), StyleRole::Number);
        } else if is_roomy {
            tail.push_blanks(5);
        }
        let room = self.width.saturating_sub(line.width() + tail.width() + 1);
        line.push(look.pad(&SafeText::limited(&row_name(row), room), room, Align::Left), StyleRole::Text);
        line.push(" ", StyleRole::Text);
        line.append(tail);
        self.push(line, Some(entry));
    }

    /// The parent of an episode: its number if shown here, else its id.
    fn continues(&mut self, step: &ReplayStep) {
        let Some(parent) = step.row.text("parent_id") else { return };
        let shown = self.told.steps.iter().position(|other| other.row.id() == parent);
        let name = match shown {
            Some(at) => format!("continues {}", at + 1),
            None => format!("continues {parent}, which is not among these"),
        };
        let mut line = self.rail(false);
        line = line.with_glyph(self.look.glyphs.last_branch, StyleRole::Border).with(" ", StyleRole::Text);
        let room = self.width.saturating_sub(line.width());
        self.push(line.with(SafeText::limited(&name, room), StyleRole::Muted), None);
    }

    fn suggestion(&mut self, parent: &Suggestion, entry: usize) {
        let mut line = self.rail(true);
        line =
            line.with_glyph(self.look.glyphs.hollow_diamond, StyleRole::Info).with(" may continue ", StyleRole::Info);
        let shown = self.told.steps.iter().position(|other| other.row.id() == parent.id);
        let name = match (shown, &parent.title) {
            (Some(at), _) => (at + 1).to_string(),
            (None, Some(title)) => title.clone(),
            (None, None) => parent.id.clone(),
        };
        let ago = figures::duration(parent.hours_before * 3600.0);
        let why = SafeText::join(&[format!("  cosine {:.3}, ended ", parent.cosine).into(), ago, " before".into()], "");
        let room = self.width.saturating_sub(line.width() + why.width()).max(4);
        line.push(SafeText::limited(&name, room), StyleRole::Text);
        line.push(why, StyleRole::Muted);
        self.push(line, Some(entry));
    }

    /// The time between the end of an episode and the start of the next.
    fn gap(&mut self, before: &Row, after: &Row) {
        let ended = before.text("ended_at").or(before.text("started_at"));
        let seconds = ended.zip(after.text("started_at")).and_then(|(from, to)| time::seconds_between(from, to));
        let words: SafeText = match seconds {
            Some(seconds) if seconds < 0.0 => "before that one ended".into(),
            Some(seconds) => SafeText::join(&[figures::duration(seconds), " later".into()], ""),
            None => "some time later".into(),
        };
        let line = self.rail(false);
        self.push(line.with(words, StyleRole::Muted), None);
    }

    fn rail(&self, dotted: bool) -> TextLine {
        let g = self.look.glyphs;
        let mut line = TextLine::default();
        line.push_blanks(self.lead());
        line.with_glyph(if dotted { g.dotted } else { g.vertical }, StyleRole::Border).with(" ", StyleRole::Text)
    }
}

fn draw_detail(replay: &ReplayScreen, names: &NameBook, look: &Look, area: Rect, buf: &mut Buffer, drawn: &mut Drawn) {
    let Some(step) = replay.step() else {
        PaneFrame::new("episode").render(area, buf, look);
        return;
    };
    let name = if replay.parent().is_some() { "suggested parent" } else { "episode" };
    let inside = lay::padded(PaneFrame::new(name).render(area, buf, look));
    let width = usize::from(inside.width.saturating_sub(2));
    let lines = match replay.parent() {
        Some(parent) => suggested(step, parent, width, look),
        None => episode(step, names, width, look),
    };
    draw_detail_lines(&lines, replay.cursor.scroll, inside, look, buf, drawn);
}

fn suggested(step: &ReplayStep, parent: &Suggestion, width: usize, look: &Look) -> Vec<TextLine> {
    let title = parent.title.as_deref().unwrap_or(&parent.id);
    let pairs = [
        NamedValue::new("parent", SafeText::limited(title, 120)),
        NamedValue::new("id", SafeText::limited(&parent.id, 80)),
        NamedValue::new("ended", words::time(&parent.ended_at, false)),
        NamedValue::new("of", SafeText::limited(&row_name(&step.row), 120)),
        NamedValue::new("why", SafeText::limited(&parent.evidence, 200)),
        NamedValue::line("link", TextLine::of("c l", StyleRole::Key).with(" plans it", StyleRole::Muted)),
        NamedValue::line("go", TextLine::of("enter", StyleRole::Key).with(" shows the parent", StyleRole::Muted)),
    ];
    key_values(&pairs, width, look)
}

fn episode(step: &ReplayStep, names: &NameBook, width: usize, look: &Look) -> Vec<TextLine> {
    let row = &step.row;
    let mut pairs = vec![NamedValue::new("title", SafeText::limited(&row_name(row), 160))];
    let text = |column: &str| row.text(column).filter(|text| !text.trim().is_empty());
    pairs.extend([("id", row.id())].map(|(name, text)| NamedValue::new(name, SafeText::limited(text, 80))));
    for (name, column) in [("started", "started_at"), ("ended", "ended_at")] {
        pairs.extend(text(column).map(|at| NamedValue::new(name, words::time(at, false))));
    }
    let lasted = text("started_at").zip(text("ended_at")).and_then(|(from, to)| time::seconds_between(from, to));
    pairs.extend(lasted.filter(|s| *s >= 0.0).map(|seconds| NamedValue::new("lasted", figures::duration(seconds))));
    pairs.extend(text("outcome").map(|outcome| NamedValue::line("outcome", words::state(outcome, look))));
    pairs.extend(row.number("utility").map(|utility| NamedValue::new("utility", format!("{utility:.2}"))));
    pairs.extend(step.relevance.map(|relevance| NamedValue::new("relevance", format!("{relevance:.3}"))));
    for (name, column) in [("agent", "agent_id"), ("topic", "topic"), ("continues", "parent_id")] {
        let told = text(column).map(|text| names.named_by(row, column).unwrap_or(text));
        pairs.extend(told.map(|told| NamedValue::new(name, SafeText::limited(told, 120))));
    }
    let mut lines = key_values(&pairs, width, look);
    if let Some(summary) = text("summary").or(text("observation")) {
        Section::new("What happened").add_to(&mut lines, width, look);
        let wrapped = SafeText::limited(summary, 2_000);
        lines.extend(look.spelled(&wrapped).wrap(width.max(8)).map(|part| TextLine::of(part, StyleRole::Text)));
    }
    lines
}
