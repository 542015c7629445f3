//! From a request to a receipt: an operation is planned, confirmed according to its danger, applied, and reported.

use super::model::Model;
use crate::change::operation::Operation;
use crate::change::plan::{Change, ChangeDanger, NO_ANCHOR, Plan, Receipt, SHOWN};
use crate::console::core::change::{PendingOperation, many, rows_written};
use crate::console::core::context::ConfirmedPlan;
use crate::console::core::gate::REPEATS;
use crate::console::core::{
    AppliedPlan, CommandId, Context, DoneChange, DoneWork, Proposal, Refusal, Request, ScreenKind, Ticket, ToastTone,
};
use crate::console::overlays::Overlay;
use crate::console::overlays::confirm::Confirmation;
use crate::console::overlays::conflict::{Conflict, three_way};
use crate::console::view::keys::in_keys;
use crate::console::view::told;

/// Most entries undone at once, as many as rows are changed at once: all are planned before one is shown.
const UNDONE_AT_ONCE: usize = 200;

impl Model {
    /// Takes a plan: a safe one is applied at once, any other waits for confirmation.
    pub(super) fn planned(&mut self, ticket: Ticket, result: Result<Box<Plan>, Refusal>) {
        let Some(pending) = self.context.changing.pending.take_if(|p| p.ticket == ticket && !p.applying) else {
            return self.context.cancel([ticket]);
        };
        let proposal = pending.proposal;
        let plan = match result {
            Ok(plan) => *plan,
            Err(refusal) => return self.refused(&proposal, &proposal.wished(), refusal),
        };
        self.context.read_names_of_changes(plan.changes.iter().take(SHOWN));
        let empty = plan.is_empty() && plan.counts.is_empty();
        if let Proposal::Backfill { name, resume: true } = &proposal
            && empty
        {
            // Nothing is left to write, but the run has not ended yet.
            self.context.cancel([ticket]);
            return self.context.start_job(name.clone(), true, None);
        }
        if empty {
            self.at_screen(|screen, _| screen.refused());
            self.context.cancel([ticket]);
            let title = self.context.in_title(&proposal.title());
            // The effects of a backfill describe its work, not why nothing is left.
            let is_backfill = matches!(proposal, Proposal::Backfill { .. });
            let effects = if is_backfill { Vec::new() } else { self.context.in_titles(&plan.effects) };
            let why = effects.first().map(|why| format!(": {}", told_by(&self.context, why)));
            let words = format!("{title}: there is nothing to do{}", why.unwrap_or_default());
            return self.context.say(ToastTone::Info, words);
        }
        let rows = plan.counts.values().flat_map(|verbs| verbs.values()).sum::<usize>();
        let subject = proposal.subject().map_or_else(|| rows.to_string(), |id| to_type(id, plan.danger));
        if self.context.care(plan.danger) == ChangeDanger::Safe {
            let reason = proposal.reason().map(str::to_owned);
            return self.context.apply(ConfirmedPlan { proposal, planned: ticket, changes: plan.changes, reason });
        }
        let gate = self.context.gate(plan.danger, &subject);
        let reason = proposal.reason().or(self.screen().reason()).unwrap_or_default().to_owned();
        self.show(Confirmation::of(proposal, plan, ticket, gate, reason));
    }

    pub(super) fn confirmed(&mut self, confirmed: ConfirmedPlan) {
        if let Proposal::Backfill { name, resume } = confirmed.proposal {
            self.context.cancel([confirmed.planned]);
            self.context.start_job(name, resume, confirmed.reason);
        } else {
            self.context.apply(confirmed);
        }
    }

    pub(super) fn applied(&mut self, ticket: Ticket, reason: Option<&str>, applied: AppliedPlan) {
        let Some(pending) = self.context.changing.pending.take_if(|p| p.ticket == ticket && p.applying) else {
            return;
        };
        let count = applied.receipts.len();
        for (position, receipt) in &applied.receipts {
            let Some(operation) = pending.proposal.changes().get(*position) else { continue };
            let places = self.history.places_mut();
            places.for_each(|place| place.screen.get_mut().changed(operation, receipt.audit_seq));
            if receipt.audit_seq.is_some() {
                let batch = (count > 1).then_some(ticket);
                self.context.changing.note(DoneChange { batch, ..DoneChange::of(operation.clone(), reason, receipt) });
            }
        }
        if let Some((_, receipt)) = applied.receipts.last() {
            self.context.changing.epoch += 1;
            self.overlays
                .retain(|overlay| !matches!(overlay, Overlay::Form(_) | Overlay::RowForm(_) | Overlay::Picker(_)));
            self.at_screen(|screen, _| screen.carried_out(&pending.proposal));
            self.context.report_of(&pending.proposal, receipt, count);
        }
        if let Some(refusal) = applied.refusal {
            self.refused(&pending.proposal, &pending.changes, refusal);
        }
    }

    /// Shows why something was not done; `changes` are those that the plan had.
    fn refused(&mut self, proposal: &Proposal, changes: &[Change], refusal: Refusal) {
        self.at_screen(|screen, _| screen.refused());
        match refusal {
            Refusal::Failed(mut failure) => {
                failure.what = self.context.in_title(&failure.what);
                self.context.fail(failure);
            }
            Refusal::Conflict { message, rows, now } => {
                let moved = three_way(changes, &now);
                let proposal = proposal.clone();
                self.show(Conflict { proposal, message, rows, moved, scroll: 0, copying: false });
            }
        }
    }

    /// Whether the operation of the topmost form is running.
    pub(super) fn is_form_busy(&self) -> bool {
        let is_form = matches!(self.overlays.last(), Some(Overlay::Form(_) | Overlay::RowForm(_) | Overlay::Picker(_)));
        is_form && self.context.changing.pending.is_some()
    }

    /// The same, and reports that the form takes no input meanwhile.
    pub(super) fn form_waits(&mut self) -> bool {
        let waits = self.is_form_busy();
        if waits {
            self.context.say(ToastTone::Warn, "ignored: the previous request is still running");
        }
        waits
    }

    /// Stops planning, if something is being planned; whether it was.
    pub(super) fn stop_planning(&mut self) -> bool {
        let Some(pending) = self.context.changing.pending.take_if(|p| !p.applying) else { return false };
        self.at_screen(|screen, _| screen.refused());
        self.context.cancel([pending.ticket]);
        self.context.say(ToastTone::Info, "stopped; nothing was changed");
        true
    }
}

impl Context {
    /// Requests a plan. The next step depends on its danger: see [`Model::planned`].
    pub(super) fn plan(&mut self, proposal: Proposal) {
        let cx = self;
        if let Err((reason, remedy)) = cx.may_change() {
            let remedy = remedy.map(|remedy| format!("; {remedy}")).unwrap_or_default();
            return cx.say(ToastTone::Warn, format!("{}: {reason}{remedy}", cx.in_title(&proposal.title())));
        }
        if let Some(pending) = &cx.changing.pending {
            let text = format!("{} is under way", cx.in_title(&pending.proposal.title()));
            return cx.say(ToastTone::Warn, text);
        }
        let ticket = cx.ask(Request::Plan(Box::new(proposal.clone())));
        cx.changing.pending = Some(PendingOperation { ticket, proposal, applying: false, changes: Vec::new() });
    }

    pub(super) fn apply(&mut self, confirmed: ConfirmedPlan) {
        let ConfirmedPlan { proposal, planned, changes, reason } = confirmed;
        let ticket = self.ask(Request::Apply { planned, reason });
        self.changing.pending = Some(PendingOperation { ticket, proposal, applying: true, changes });
    }

    /// Reports changes by the receipt of the last one.
    fn report_of(&mut self, proposal: &Proposal, receipt: &Receipt, count: usize) {
        let text = match proposal.changes() {
            [_, _, ..] => format!("{count} of {} changes made", proposal.changes().len()),
            [single] if receipt.audit_seq.is_some() => self.done_words(single, receipt),
            _ => format!("{}: there was nothing to do", self.in_title(&proposal.title())),
        };
        let no_anchor = receipt.disclosures.iter().find(|words| words.starts_with(NO_ANCHOR)).cloned();
        let is_undo = proposal.changes().iter().all(|change| matches!(change, Operation::Undo { .. }));
        let can_undo = receipt.undo.is_some() && !is_undo;
        match no_anchor {
            Some(words) => self.say(ToastTone::Warn, format!("{text}, but {words}")),
            None => self.say(ToastTone::Good, text),
        }
        if let (true, Some(toast)) = (can_undo, &mut self.toast) {
            toast.hint = Some((CommandId::UndoLast, "undo"));
        }
    }

    /// Describes a change: the operation, the row's name or the number of rows, and the number of rows written.
    fn done_words(&self, operation: &Operation, receipt: &Receipt) -> String {
        let title = self.in_title(&operation.title());
        let name = receipt.changes.iter().filter(|_| !self.masking.is_on()).find_map(|change| {
            let own = || change.after["title"].as_str().or(change.before["title"].as_str()).map(str::to_owned);
            self.names.of_change(change).or_else(own)
        });
        let total = Some(receipt.changes_total);
        let about = many(&receipt.changes, total, &receipt.counts, &self.opened.tables).or(name);
        // It is left out if the title contains it.
        let about = about.filter(|about| !title.contains(about.as_str()));
        let more: Vec<String> = about.into_iter().chain(rows_written(&receipt.counts)).collect();
        let more = if more.is_empty() { String::new() } else { format!(" ({})", more.join(", ")) };
        format!("{title}: done{more}")
    }

    /// Undoes the last change of this session: all entries of a job, newest first.
    pub(super) fn undo_last(&mut self) {
        let receipts = self.key_for(CommandId::Panel(ScreenKind::Receipts)).to_owned();
        let Some(last) = self.changing.last_standing() else {
            let text = format!("nothing that was done in this session can be undone; {receipts} lists earlier changes");
            return self.say(ToastTone::Info, text);
        };
        let entries = self.changing.standing_with(last);
        let what = match &last.work {
            DoneWork::Change(_) if entries.len() > 1 => "The last changes".to_owned(),
            DoneWork::Change(operation) => self.in_title(&operation.title()),
            DoneWork::Job { name, .. } => format!("Run {name}"),
            DoneWork::Migrations(_) => "Migrations".to_owned(),
            DoneWork::Erasure => "Erase a person".to_owned(),
        };
        match &*entries {
            [] => {
                self.say(
                    ToastTone::Info,
                    format!("{what}, the last change, cannot be undone; {receipts} lists earlier changes"),
                );
            }
            many if many.len() > UNDONE_AT_ONCE => {
                let text =
                    format!("{what}: {} entries are too many to undo at once; {receipts} undoes each", many.len());
                self.say(ToastTone::Info, text);
            }
            entries => {
                let undos = entries.iter().rev().map(|seq| Operation::Undo { seq: *seq }).collect();
                self.propose(Proposal::Changes(undos));
            }
        }
    }

    /// Whether a command that changes something is only the repetition of a held key, as far as that can be known.
    pub(super) fn is_repeated(&mut self, id: CommandId) -> bool {
        if self.changing.releases {
            return false;
        }
        let timer = self.wait_for_all(REPEATS);
        self.changing.recent.replace((id, timer)).is_some_and(|(before, _)| before == id)
    }
}

/// A message from a lower layer, with the keys of the commands it names.
fn told_by(cx: &Context, text: &str) -> String {
    in_keys(&cx.settings.keys, || told(&cx.with_moments(text)))
}

/// Returns the text to type for an id. When only the database makes a change grave, the beginning of a long id is
/// enough.
fn to_type(id: &str, danger: ChangeDanger) -> String {
    const LONG: usize = 24;
    const ENOUGH: usize = 8;
    let is_long = danger < ChangeDanger::Grave && id.chars().count() > LONG;
    if is_long { id.chars().take(ENOUGH).collect() } else { id.to_owned() }
}
