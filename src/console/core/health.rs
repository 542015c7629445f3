//! Wrong or suspicious things found so far, shared by the first screen and the screen of findings.

use std::collections::BTreeSet;

use super::ticket::{RequestFailure, Ticket};
use crate::console::screens::findings::messages::LookNews;
use crate::memory::findings::{Finding, NotApplicable, Severity, kind_named};

/// Findings that the first screen lists.
const WORST: usize = 5;

/// Wrong or suspicious things found so far, shared by the first screen and the screen of findings.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Health {
    /// Findings so far, worst first.
    pub found: Vec<Finding>,
    /// Kinds that were not checked, with the reason.
    pub skipped: Vec<NotApplicable>,
    /// Kinds that a brief look skipped.
    pub left: Vec<&'static str>,
    /// Number of rows read so far, and their entity.
    pub read: Option<(u64, &'static str)>,
    /// Whether the look is complete.
    pub done: bool,
    /// Pending request of the look.
    pub pending: Option<Ticket>,
    /// Reason why the look ended early.
    pub failure: Option<RequestFailure>,
    /// Timer for another look after a temporary failure.
    retry: Option<Ticket>,
    /// Whether others wrote since the look began: the findings may be out of date.
    pub aged: bool,
    /// Names of the findings that this look reported. At its end, findings known only from an older look are dropped.
    told: BTreeSet<Name>,
    /// Number of changes made when it began.
    epoch: u64,
}

/// Names a finding: its kind, and the entity that it is of.
pub type Name = (&'static str, Option<&'static str>);

/// The name of a finding.
pub fn name(finding: &Finding) -> Name {
    (finding.kind, finding.entity)
}

/// All findings of a kind.
#[derive(Debug, Clone, PartialEq)]
pub struct FindingGroup<'h> {
    /// The kind.
    pub kind: &'static str,
    /// Severity of the kind.
    pub severity: Severity,
    /// Number of rows in all.
    pub count: u64,
    /// One for each entity.
    pub findings: Vec<&'h Finding>,
}

impl FindingGroup<'_> {
    /// Returns the words that follow the count and say what is wrong.
    pub fn what(&self) -> String {
        kind_named(self.kind).map(|kind| kind.what(self.count)).unwrap_or_default()
    }

    /// Returns the command that helps; empty when the group holds nothing.
    pub fn remedy(&self) -> &str {
        self.findings.first().map_or("", |finding| finding.remedy.as_str())
    }

    /// Whether the command only explains, and leads to no row.
    pub fn looks(&self) -> bool {
        let remedy = self.remedy();
        remedy == "migrate"
            || ["audit verify", "policy list", "status", "findings"].iter().any(|word| remedy.starts_with(word))
    }

    /// Whether the command fixes something: others only show the rows.
    pub fn fixes(&self) -> bool {
        !["show ", "compare "].iter().any(|word| self.remedy().starts_with(word))
    }
}

impl Health {
    /// Groups the findings by kind, worst first.
    pub fn groups(&self) -> Vec<FindingGroup<'_>> {
        let mut groups: Vec<FindingGroup<'_>> = Vec::new();
        for finding in &self.found {
            match groups.iter_mut().find(|group| group.kind == finding.kind) {
                Some(group) => {
                    group.count += finding.count;
                    group.findings.push(finding);
                }
                None => groups.push(FindingGroup {
                    kind: finding.kind,
                    severity: finding.severity,
                    count: finding.count,
                    findings: vec![finding],
                }),
            }
        }
        groups
    }

    /// Whether more of a kind may be found than was counted: its rows are still being read, or were not all read.
    pub fn may_grow(&self, kind: &str) -> bool {
        !self.done || self.left.contains(&kind)
    }

    /// The worst kinds of findings, few enough for the first screen: the first finding of each kind, and the number of
    /// rows of that kind.
    pub fn worst(&self) -> Vec<(&Finding, u64)> {
        let first = |group: FindingGroup<'_>| Some((group.findings.first().map(|finding| finding.kind)?, group.count));
        let kinds: Vec<(&'static str, u64)> = self.groups().into_iter().filter_map(first).take(WORST).collect();
        let found = |kind: &str| self.found.iter().find(|finding| finding.kind == kind);
        kinds.into_iter().filter_map(|(kind, count)| Some((found(kind)?, count))).collect()
    }

    /// Kinds that were found and are not among the worst.
    pub fn more(&self) -> usize {
        self.groups().len().saturating_sub(WORST)
    }

    /// Requests a new look and returns the request of the old one, which is given up. Findings are kept until then.
    pub fn forget(&mut self) -> Option<Ticket> {
        (self.done, self.failure, self.retry) = (false, None, None);
        self.pending.take()
    }

    fn keep(&mut self, finding: Finding) {
        self.told.insert(name(&finding));
        let is_known = |f: &&mut Finding| name(f) == name(&finding) && f.severity == finding.severity;
        if let Some(known) = self.found.iter_mut().find(is_known) {
            *known = finding;
            return;
        }
        self.found.retain(|f| name(f) != name(&finding));
        let at = self.found.partition_point(|f| f.severity <= finding.severity);
        self.found.insert(at, finding);
    }

    fn hear(&mut self, news: LookNews) {
        match news {
            LookNews::Found(finding) => self.keep(*finding),
            LookNews::NotApplicable(kind) => self.skipped.push(kind),
            LookNews::Read(rows, entity) => self.read = Some((rows, entity)),
            LookNews::Left(kinds) => self.left = kinds,
            LookNews::Done => {
                let told = std::mem::take(&mut self.told);
                self.found.retain(|f| told.contains(&name(f)));
                (self.done, self.pending) = (true, None);
            }
        }
    }

    /// Whether a look is needed: none is running, and the last one is incomplete or out of date. `epoch` is the number
    /// of changes made.
    pub fn needs_look(&mut self, brief: bool, epoch: u64) -> bool {
        if self.epoch != epoch && self.pending.is_none() {
            self.forget();
        }
        let enough = self.done && (brief || self.left.is_empty());
        self.pending.is_none() && !enough && self.failure.is_none()
    }

    /// Begins a look; earlier findings are kept until it replaces them.
    pub fn begin(&mut self, ticket: Ticket, epoch: u64) {
        let found = std::mem::take(&mut self.found);
        *self = Health { found, pending: Some(ticket), epoch, ..Health::default() };
    }

    /// Takes a reply to a look.
    pub fn take(&mut self, ticket: Ticket, reply: Result<LookNews, RequestFailure>) {
        if self.pending != Some(ticket) {
            return;
        }
        match reply {
            Ok(news) => self.hear(news),
            Err(failure) => (self.failure, self.pending) = (Some(failure), None),
        }
    }

    /// Whether the look failed for a temporary reason, and no timer for the next one runs.
    pub fn needs_retry(&self) -> bool {
        self.retry.is_none() && self.failure.as_ref().is_some_and(|failure| failure.passes)
    }

    /// Sets the timer for the next look.
    pub fn retry_after(&mut self, timer: Ticket) {
        self.retry = Some(timer);
    }

    /// Handles an elapsed timer: a look is needed if the timer was for it.
    pub fn elapsed(&mut self, timer: Ticket) {
        if self.retry.take_if(|retry| *retry == timer).is_some() {
            self.failure = None;
        }
    }

    /// Handles that no screen shows the findings any more: a look is needed when one does. Returns the request to give
    /// up.
    pub fn left(&mut self) -> Option<Ticket> {
        (self.failure, self.retry) = (None, None);
        self.pending.take()
    }
}
