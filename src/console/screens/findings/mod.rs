//! Findings in the database, errors and suspicious values by kind and worst first: shown as they are found, with the
//! affected rows, the offending words, and the fix. Muted findings come at the end, with the reason.

pub(in crate::console) mod draw;
mod fix;
pub mod messages;

pub use messages::LookNews;

use crate::console::core::command::hinted;
use crate::console::core::health::{FindingGroup, Name};
use crate::console::core::names::NAMED;
use crate::console::core::twin::words;
use crate::console::core::{
    CommandId, CommandScope, Context, Destination, Health, Judged, Lack, LayerOpening, Prompt, Purpose, Reply, Request,
    RequestFailure, Screen, ScreenFace, ScreenKind, Ticket, ToastTone,
};
use crate::console::view::Canvas;
use crate::memory::Entity;
use crate::memory::findings::{Finding, Mute, OffendingQuote};

/// Milliseconds that the cursor rests on a row before its text is read.
const REST: u64 = 80;

/// A row that shows a finding.
#[derive(Debug, Clone, PartialEq)]
pub struct ShownExample<'h> {
    /// The finding.
    pub finding: &'h Finding,
    /// Entity of the row; `None` for a table and the like.
    pub entity: Option<Entity>,
    /// Id or name of the example.
    pub id: &'h str,
}

/// The text of a row that a finding is about.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct QuotedRow {
    /// Kind of finding, kind of row, and its id.
    about: Option<(&'static str, Entity, String)>,
    /// Pending timer until the cursor has rested, or pending read of the row.
    waiting: Option<Ticket>,
    /// The text; `None` if the finding is not about a text.
    pub quote: Option<OffendingQuote>,
}

/// The screen of findings.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct FindingsScreen {
    /// Position of the selected entry: the groups, then the mutes.
    pub selected: usize,
    /// Position of the selected example.
    pub example: usize,
    /// Whether the examples have the focus.
    pub in_examples: bool,
    /// The selected kind: it stays selected when others are added.
    chosen: Option<&'static str>,
    /// Whether the user has moved the selection.
    moved: bool,
    /// The text of the selected example.
    pub quoted: QuotedRow,
    /// Muted kinds and rows; empty until read.
    pub mutes: Vec<Mute>,
    /// Pending request that reads or changes the mutes.
    pending_mutes: Option<Ticket>,
    /// True when the mutes were read.
    mutes_read: bool,
    /// Whether the remedy of the selected group changes something; else it only shows the rows.
    fixes: bool,
    /// Whether the remedy only explains what was found.
    looks: bool,
    /// Kind or id of a row to mute once a reason is given.
    muting: Option<String>,
}

impl FindingsScreen {
    /// The screen that begins at a finding.
    pub fn at((kind, _): Name) -> Self {
        FindingsScreen { chosen: Some(kind), ..FindingsScreen::default() }
    }

    /// The selected group.
    pub fn group<'h>(&self, health: &'h Health) -> Option<FindingGroup<'h>> {
        health.groups().into_iter().nth(self.selected)
    }

    /// Returns the selected mute, when the selection is among the muted ones.
    pub fn muted(&self, health: &Health) -> Option<&Mute> {
        self.mutes.get(self.selected.checked_sub(health.groups().len())?)
    }

    /// The rows that show the selected group.
    pub fn examples<'h>(&self, health: &'h Health) -> Vec<ShownExample<'h>> {
        let group = self.group(health).map(|group| group.findings).unwrap_or_default();
        let of = |finding: &'h Finding| {
            let entity = finding.entity.and_then(Entity::parse);
            finding.examples.iter().map(move |id| ShownExample { finding, entity, id })
        };
        group.into_iter().flat_map(of).collect()
    }

    /// The finding of the selected example, else the first of the group.
    pub fn finding<'h>(&self, health: &'h Health) -> Option<&'h Finding> {
        let shown = self.examples(health).into_iter().nth(self.example).map(|example| example.finding);
        shown.or_else(|| self.group(health)?.findings.into_iter().next())
    }

    fn other_example(&mut self, by: isize, cx: &Context) {
        let last = self.examples(&cx.health).len().saturating_sub(1);
        self.example = self.example.saturating_add_signed(by).min(last);
    }

    /// Reads the text of the selected example, and the names of the examples.
    fn read_example(&mut self, cx: &mut Context) {
        let health = std::mem::take(&mut cx.health);
        let examples = self.examples(&health);
        let about = examples.get(self.example).and_then(|e| Some((e.finding.kind, e.entity?, e.id.to_owned())));
        let around = examples.iter().skip(self.example.saturating_sub(SEEN)).take(2 * SEEN);
        let named: Vec<(Entity, &str)> = around.filter_map(|e| Some((e.entity?, e.id))).collect();
        for entity in NAMED.iter().filter(|entity| named.iter().any(|(of, _)| of == *entity)) {
            cx.read_names_of(*entity, named.iter().filter(|(of, _)| of == entity).map(|(_, id)| *id));
        }
        cx.health = health;
        if self.quoted.about != about {
            cx.cancel(self.quoted.waiting.take());
            let waiting = about.is_some().then(|| cx.wait(REST));
            self.quoted = QuotedRow { about, waiting, quote: None };
        }
    }

    /// Asks for the reason to mute the selected kind or example; unmutes a muted one.
    fn mute(&mut self, cx: &mut Context) {
        if let Some(mute) = self.muted(&cx.health) {
            let what = mute.what.clone();
            cx.cancel(self.pending_mutes.take());
            cx.say(ToastTone::Info, format!("{} is checked again", what.replace('_', " ")));
            self.pending_mutes = Some(cx.ask(Request::Unmute(what)));
            return;
        }
        let example = self.examples(&cx.health).into_iter().nth(self.example).filter(|_| self.in_examples);
        let what = match example {
            Some(example) => Some(example.id.to_owned()),
            None => self.group(&cx.health).map(|group| group.kind.to_owned()),
        };
        self.muting.clone_from(&what);
        if let Some(what) = what {
            cx.show(LayerOpening::Prompt(Purpose::Mute, what, String::new()));
        }
    }

    fn take_mutes(&mut self, result: Result<Vec<Mute>, RequestFailure>, cx: &mut Context) {
        let known = std::mem::replace(&mut self.mutes_read, true);
        self.pending_mutes = None;
        match result {
            Ok(mutes) if known => {
                self.mutes = mutes;
                // A mute applies only from the beginning of a look.
                let looking = cx.health.forget();
                cx.cancel(looking);
            }
            Ok(mutes) => self.mutes = mutes,
            Err(failure) => cx.fail(failure),
        }
    }
}

/// Examples before and after the selected one whose names are read.
const SEEN: usize = 40;

impl Screen for FindingsScreen {
    fn face(&self) -> ScreenFace {
        ScreenFace::own("findings", ScreenKind::Findings, CommandScope::Findings)
    }

    fn hints(&self) -> Vec<CommandId> {
        use CommandId::{Close, Focus, Open, Palette, Refresh, ScrollDetail};
        let shared = [Focus, Close, Palette, ScrollDetail(true), Refresh];
        // If nothing can be fixed, `x` does the same as `enter`.
        let own = hinted(CommandScope::Findings).filter(|id| *id != CommandId::Fix || self.fixes);
        [Open].into_iter().chain(own).chain(shared).collect()
    }

    fn hint_word(&self, id: CommandId) -> Option<&'static str> {
        (id == CommandId::Fix && self.looks).then_some("look into it")
    }

    fn twin(&self, cx: &Context) -> Vec<String> {
        match self.group(&cx.health) {
            Some(group) => words(["findings", "--kind", group.kind]),
            None => words(["findings"]),
        }
    }

    /// Starts a full look, and keeps the selection within the findings.
    fn settle(&mut self, cx: &mut Context) {
        let groups = cx.health.groups();
        let at = self.chosen.and_then(|chosen| groups.iter().position(|group| group.kind == chosen));
        self.selected = at.unwrap_or(self.selected).min((groups.len() + self.mutes.len()).saturating_sub(1));
        // Until the user moves, the worst kind is selected.
        if self.moved {
            self.chosen = groups.get(self.selected).map(|group| group.kind);
        }
        if !self.mutes_read && self.pending_mutes.is_none() {
            self.pending_mutes = Some(cx.ask(Request::LoadMutes));
        }
        let group = self.group(&cx.health);
        self.fixes = group.as_ref().is_some_and(FindingGroup::fixes);
        self.looks = group.as_ref().is_some_and(FindingGroup::looks);
        self.read_example(cx);
        cx.look(false);
    }

    fn reply(&mut self, ticket: Ticket, reply: Reply, cx: &mut Context) {
        match reply {
            Reply::Quoted(result) if self.quoted.waiting == Some(ticket) => {
                self.quoted.waiting = None;
                // A row that cannot be quoted can still be opened.
                self.quoted.quote = result.unwrap_or_default();
            }
            Reply::Mutes(result) => self.take_mutes(result, cx),
            _ => {}
        }
    }

    fn elapsed(&mut self, ticket: Ticket, cx: &mut Context) {
        if self.quoted.waiting == Some(ticket) {
            let asked = self.quoted.about.clone().map(|(kind, entity, id)| Request::Quote(kind, entity, id));
            self.quoted.waiting = asked.map(|request| cx.ask(request));
        }
    }

    fn can(&self, id: CommandId, cx: &Context) -> Result<(), Lack> {
        let nothing = self.group(&cx.health).is_none();
        match id {
            CommandId::Open | CommandId::Mute if nothing && self.muted(&cx.health).is_none() => {
                Err(("no finding is selected".to_owned(), None))
            }
            CommandId::Fix | CommandId::NextExample | CommandId::PreviousExample if nothing => {
                Err(("no finding is selected".to_owned(), None))
            }
            _ => Ok(()),
        }
    }

    fn command(&mut self, id: CommandId, cx: &mut Context) {
        match id {
            CommandId::Fix => self.fix(cx),
            CommandId::Mute => self.mute(cx),
            CommandId::NextExample => self.other_example(1, cx),
            CommandId::PreviousExample => self.other_example(-1, cx),
            _ => {}
        }
    }

    fn written(&mut self, purpose: Purpose, text: &str, cx: &mut Context) {
        if let (Purpose::Mute, Some(what)) = (purpose, self.muting.take()) {
            cx.cancel(self.pending_mutes.take());
            cx.say(ToastTone::Good, format!("{} is muted; m on its line ends that", what.replace('_', " ")));
            self.pending_mutes = Some(cx.ask(Request::Mute(what, text.to_owned())));
        }
    }

    fn judge(&self, prompt: &Prompt, _cx: &Context) -> Option<Judged> {
        (prompt.purpose == Purpose::Mute).then(|| {
            let told = match prompt.input.text().trim() {
                "" => Err("say why nobody needs to see it".to_owned()),
                _ => Ok("stored in your state folder, and listed here with the reason".to_owned()),
            };
            (told, Vec::new())
        })
    }

    /// Goes to the selected example.
    fn open(&mut self, cx: &mut Context) {
        let row = self.examples(&cx.health).into_iter().nth(self.example);
        if let Some(pair) = row.as_ref().and_then(fix::beside) {
            return cx.follow(pair);
        }
        match row.and_then(|example| Some((example.entity?, example.id.to_owned()))) {
            Some((entity, id)) => cx.follow(Destination::Row(entity, id)),
            None if self.group(&cx.health).is_some() => self.fix(cx),
            None => {}
        }
    }

    fn close(&mut self, _cx: &mut Context) -> bool {
        std::mem::take(&mut self.in_examples)
    }

    fn move_by(&mut self, by: isize, cx: &mut Context) {
        if self.in_examples {
            self.other_example(by, cx);
        } else {
            self.select(self.selected.saturating_add_signed(by));
        }
    }

    fn select(&mut self, position: usize) {
        (self.selected, self.example, self.chosen) = (position, 0, None);
        self.moved = true;
    }

    fn page(&self, cx: &Context) -> usize {
        if self.in_examples { cx.measures.detail_rows } else { cx.measures.list_rows }
    }

    fn has_panes(&self) -> bool {
        true
    }

    fn focus(&mut self, detail: bool) {
        self.in_examples = detail;
    }

    fn other_pane(&mut self, cx: &Context) {
        self.in_examples = !self.in_examples && !self.examples(&cx.health).is_empty();
        self.moved = true;
    }

    /// The look continues on the first screen, and is stopped elsewhere by the core.
    fn release(&mut self) -> Vec<Ticket> {
        let waited = [self.quoted.waiting, self.pending_mutes.take()].into_iter().flatten().collect();
        self.quoted = QuotedRow::default();
        waited
    }

    fn forget(&mut self) {
        self.mutes_read = false;
    }

    fn shows_findings(&self) -> bool {
        true
    }

    fn draw(&self, cx: &Context, canvas: &mut Canvas<'_>) {
        draw::draw(self, cx, canvas);
    }
}
