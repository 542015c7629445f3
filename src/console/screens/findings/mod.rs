//! What is wrong or suspicious in the database, worst first: told as it is found, each with examples to follow and the
//! command that fixes it.

pub(in crate::console) mod draw;
pub mod messages;

pub use messages::LookNews;

use crate::change::operation::{Operation, Pruning};
use crate::console::core::command::{CommandId, CommandScope};
use crate::console::core::context::{Context, ToastTone};
use crate::console::core::health::{Health, Name, name};
use crate::console::core::message::{Destination, Ticket};
use crate::console::core::proposal::Proposal;
use crate::console::core::screen::{Screen, ScreenFace, ScreenKind};
use crate::console::view::Canvas;
use crate::memory::Entity;
use crate::memory::findings::Finding;

/// The screen of findings.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct FindingsScreen {
    /// Position of the selected finding.
    pub selected: usize,
    /// Position of the selected example.
    pub example: usize,
    /// Name of the selected finding: it stays selected, wherever new ones come.
    chosen: Option<Name>,
}

impl FindingsScreen {
    /// The screen that begins at a finding.
    #[must_use]
    pub fn at(finding: Name) -> Self {
        FindingsScreen { chosen: Some(finding), ..FindingsScreen::default() }
    }

    /// The selected finding.
    #[must_use]
    pub fn current<'a>(&self, health: &'a Health) -> Option<&'a Finding> {
        health.found.get(self.selected)
    }

    fn other_example(&mut self, by: isize, cx: &Context) {
        let last = self.current(&cx.health).map_or(0, |f| f.examples.len().saturating_sub(1));
        self.example = self.example.saturating_add_signed(by).min(last);
    }

    /// Does what fixes the finding where the console can, else says how.
    fn fix(&mut self, cx: &mut Context) {
        let Some(finding) = self.current(&cx.health).cloned() else { return };
        let (remedy, example) = (finding.remedy, finding.examples.get(self.example).cloned());
        let words: Vec<&str> = remedy.split(' ').collect();
        match (words.as_slice(), example) {
            (["migrate", ..], _) => cx.follow(Destination::Panel(ScreenKind::Migrations)),
            (["unlink", ..], Some(child)) => cx.propose(Operation::Unlink { child }),
            (["show", ..], Some(_)) => self.open(cx),
            (["quarantine", _] | ["quarantine", "--", _], Some(case)) => {
                cx.propose(Operation::Quarantine { cases: vec![case] });
            }
            (["reward", ..], Some(case)) => cx.propose(Operation::Reward { case, reward: 0.0, outcome: None }),
            (["prune", options @ ..], _) => {
                let duplicates = options.contains(&"--duplicates");
                cx.propose(Operation::Prune(Pruning { duplicates, ..Pruning::default() }));
            }
            (["backfill", name], _) => {
                cx.propose(Proposal::Backfill { name: (*name).to_owned(), resume: false });
            }
            _ => cx.say(ToastTone::Info, format!("{remedy}: y c copies the command")),
        }
    }
}

impl Screen for FindingsScreen {
    fn face(&self) -> ScreenFace {
        ScreenFace::own("findings", ScreenKind::Findings, CommandScope::Findings)
    }

    /// What fixes the finding; its ids are quoted already.
    fn twin(&self, cx: &Context) -> Vec<String> {
        vec![self.current(&cx.health).map_or("findings", |f| f.remedy.as_str()).to_owned()]
    }

    /// Looks for everything, and keeps the selection within what was found.
    fn settle(&mut self, cx: &mut Context) {
        let at = self.chosen.and_then(|chosen| cx.health.position(chosen)).unwrap_or(self.selected);
        self.selected = at.min(cx.health.found.len().saturating_sub(1));
        self.chosen = self.current(&cx.health).map(name).or(self.chosen);
        cx.look(false);
    }

    fn command(&mut self, id: CommandId, cx: &mut Context) {
        match id {
            CommandId::Fix => self.fix(cx),
            CommandId::NextExample => self.other_example(1, cx),
            CommandId::PreviousExample => self.other_example(-1, cx),
            _ => {}
        }
    }

    /// Goes to the selected example.
    fn open(&mut self, cx: &mut Context) {
        let Some(finding) = self.current(&cx.health) else { return };
        let row = finding.entity.and_then(Entity::parse).zip(finding.examples.get(self.example).cloned());
        match row {
            Some((entity, id)) => cx.follow(Destination::Row(entity, id)),
            None => self.fix(cx),
        }
    }

    fn move_by(&mut self, by: isize, _cx: &mut Context) {
        self.select(self.selected.saturating_add_signed(by));
    }

    fn select(&mut self, position: usize) {
        (self.selected, self.example, self.chosen) = (position, 0, None);
    }

    /// The look goes on beside the first screen, and is stopped elsewhere by the core.
    fn release(&mut self) -> Vec<Ticket> {
        Vec::new()
    }

    fn forget(&mut self) {}

    fn shows_findings(&self) -> bool {
        true
    }

    fn draw(&self, cx: &Context, canvas: &mut Canvas<'_>) {
        draw::draw(&cx.health, self, canvas.look, canvas.area, canvas.buf, canvas.drawn);
    }
}
