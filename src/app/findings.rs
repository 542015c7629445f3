//! What is wrong or suspicious in the database, worst first: told as it is found, each with examples to follow and the
//! command that mends it.

use super::message::{Destination, Effect, Failure, Ticket};
use super::model::{Model, Tone};
use super::operation::Operation;
use super::panel::{Panel, PanelKind};
use super::place::View;
use crate::memory::Entity;
use crate::memory::findings::{Finding, NotApplicable};

/// News of a look through the database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum News {
    /// A finding.
    Found(Box<Finding>),
    /// A kind that cannot be looked for here.
    NotApplicable(NotApplicable),
    /// Rows read so far, and of which entity the last ones were.
    Read(u64, &'static str),
    /// The look is over.
    Done,
}

/// The list of findings.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Findings {
    /// What was found so far, the worst first.
    pub found: Vec<Finding>,
    /// Kinds that were not looked for, with the reason.
    pub skipped: Vec<NotApplicable>,
    /// Position of the selected finding.
    pub selected: usize,
    /// Position of the selected example.
    pub example: usize,
    /// Rows read so far, and of which entity.
    pub read: Option<(u64, &'static str)>,
    /// The look is over.
    pub done: bool,
    /// It is under way.
    pub pending: Option<Ticket>,
    /// Why it ended early.
    pub failure: Option<Failure>,
}

impl Findings {
    /// The selected finding.
    #[must_use]
    pub fn current(&self) -> Option<&Finding> {
        self.found.get(self.selected)
    }

    /// Moves the selection.
    pub fn move_by(&mut self, by: isize) {
        self.select(self.selected.saturating_add_signed(by));
    }

    /// Selects the finding at a position.
    pub fn select(&mut self, position: usize) {
        self.selected = position.min(self.found.len().saturating_sub(1));
        self.example = 0;
    }

    /// Everything is to be looked for again.
    pub fn forget(&mut self) {
        *self = Findings { selected: self.selected, ..Findings::default() };
    }

    /// Keeps a finding in its place; the same one stays selected.
    fn keep(&mut self, finding: Finding) {
        let at = self.found.partition_point(|f| f.severity <= finding.severity);
        if at <= self.selected && !self.found.is_empty() {
            self.selected += 1;
        }
        self.found.insert(at, finding);
    }
}

impl Model {
    fn findings_mut(&mut self) -> Option<&mut Findings> {
        match &mut self.history.here_mut().view {
            View::Panel(panel) => match &mut **panel {
                Panel::Findings(findings) => Some(findings),
                _ => None,
            },
            _ => None,
        }
    }

    /// Begins to look, unless that was done.
    pub(super) fn settle_findings(&mut self) -> Vec<Effect> {
        let ticket = self.ticket();
        let Some(findings) = self.findings_mut() else { return Vec::new() };
        if findings.pending.is_some() || findings.done || findings.failure.is_some() {
            return Vec::new();
        }
        findings.pending = Some(ticket);
        vec![Effect::Look(ticket)]
    }

    pub(super) fn got_finding(&mut self, ticket: Ticket, result: Result<News, Failure>) -> Vec<Effect> {
        let Some(findings) = self.findings_mut().filter(|f| f.pending == Some(ticket)) else { return Vec::new() };
        match result {
            Ok(News::Found(finding)) => findings.keep(*finding),
            Ok(News::NotApplicable(kind)) => findings.skipped.push(kind),
            Ok(News::Read(rows, entity)) => findings.read = Some((rows, entity)),
            Ok(News::Done) => (findings.done, findings.pending) = (true, None),
            Err(failure) => (findings.failure, findings.pending) = (Some(failure), None),
        }
        Vec::new()
    }

    /// Selects another example of the finding.
    pub(super) fn other_example(&mut self, by: isize) -> Vec<Effect> {
        if let Some(findings) = self.findings_mut() {
            let last = findings.current().map_or(0, |f| f.examples.len().saturating_sub(1));
            findings.example = findings.example.saturating_add_signed(by).min(last);
        }
        Vec::new()
    }

    /// Goes to the selected example.
    pub(super) fn open_example(&mut self) -> Vec<Effect> {
        let Some(findings) = self.findings_mut() else { return Vec::new() };
        let Some(finding) = findings.current() else { return Vec::new() };
        let row = finding.entity.and_then(Entity::parse).zip(finding.examples.get(findings.example).cloned());
        match row {
            Some((entity, id)) => self.go(&Destination::Row(entity, id), true),
            None => self.mend(),
        }
    }

    /// Does what mends the finding where the console can, else says how.
    pub(super) fn mend(&mut self) -> Vec<Effect> {
        let Some(findings) = self.findings_mut() else { return Vec::new() };
        let Some(finding) = findings.current() else { return Vec::new() };
        let example = finding.examples.get(findings.example).cloned();
        let remedy = finding.remedy.clone();
        match (remedy.split(' ').next(), example) {
            (Some("migrate"), _) => self.go(&Destination::Panel(PanelKind::Migrations), true),
            (Some("unlink"), Some(child)) => self.propose(Operation::Unlink { child }),
            (Some("show"), Some(_)) => self.open_example(),
            _ => self.say(Tone::Info, format!("{remedy}: y c copies the command")),
        }
    }
}
