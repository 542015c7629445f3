//! Tasks of the whole session: unlocking, jobs that run here, exports, and replies that are facts for every screen.

use super::model::Model;
use crate::console::core::context::UnlockStep;
use crate::console::core::jobs::{LeavingChoice, LiveJob};
use crate::console::core::twin::resume_line;
use crate::console::core::{
    CommandId, Context, DoneChange, DoneWork, Effect, LayerOpening, Menu, MenuChoice, MenuItem, OpenBeside,
    OpenedDatabase, Reply, Request, RequestFailure, Screen, ScreenKind, Ticket, ToastTone,
};
use crate::console::overlays::Overlay;
use crate::console::overlays::menu::MenuLayer;
use crate::console::overlays::unlock::WriteState;
use crate::console::screens::findings::LookNews;
use crate::console::screens::jobs::JobAsk;
use crate::job::plan::{JobBeat, JobProgress, JobReceipt, JobState, JobWish};
use crate::memory::Entity;
use crate::memory::agreeing;

/// Milliseconds until the next look for findings after a lock or a lost connection.
const LOOKS_AGAIN: u64 = 5_000;

impl Model {
    /// Takes a reply to a request of the core itself.
    pub(super) fn heard(&mut self, ticket: Ticket, reply: Reply) {
        match reply {
            Reply::Status(result) if self.context.status_renewal.end(ticket) => {
                if let Ok(status) = result {
                    self.context.status = Some(status);
                }
                if self.context.status_renewal.is_due() {
                    self.context.renew_status();
                }
            }
            Reply::Status(result) => {
                self.context.status_pending = None;
                self.context.status_aged = false;
                match result {
                    Ok(status) => {
                        self.context.opened.capabilities.clone_from(&status.capabilities);
                        self.context.status = Some(status);
                    }
                    Err(failure) => {
                        if !failure.passes {
                            self.context.status = None;
                        }
                        self.context.status_failure = Some(failure);
                    }
                }
            }
            Reply::News(_) if self.context.watch.hears(ticket) => {
                let follows = self.at_screen(Screen::others_wrote);
                self.context.watch.is_aged |= !follows;
                self.context.health.aged = true;
            }
            Reply::Places(result) => self.kept.take(ticket, result, &mut self.context),
            Reply::Databases(known) => self.switch.choose(&known, &mut self.context),
            Reply::Tried(result) => self.switch.tried(result, &mut self.context),
            Reply::LookedBack(result) => self.look_back.take(ticket, result, &mut self.context),
            Reply::Unfinished(found) => {
                (self.context.changing.unfinished, self.context.changing.unfinished_asked) = (Some(found), None);
            }
            Reply::Named(result) => {
                self.context.names.waiting.take_if(|waiting| *waiting == ticket);
                // Without names, ids are shown. If they were masked meanwhile, they are not names.
                if let Ok(rows) = result
                    && !self.context.masking.is_on()
                {
                    self.context.names.take(&rows);
                    // A bank is named by its owner and by the name it has.
                    self.context.read_names(rows.iter().filter(|row| row.entity == Entity::Profile));
                }
            }
            Reply::Holds(result) => self.context.names.take_held(result.ok()),
            Reply::Finding(result) => self.context.take_finding(ticket, result),
            Reply::Exporting(rows) => {
                if let Some((_, written)) = &mut self.context.exporting {
                    *written = rows;
                }
            }
            Reply::Exported(result) => {
                self.context.exporting = None;
                match result {
                    Ok((rows, path)) => self
                        .context
                        .say(ToastTone::Good, format!("{} written to {path}", agreeing(rows as u64, "{#} {row|rows}"))),
                    Err(failure) => self.context.fail(failure),
                }
            }
            Reply::NothingToDo(positions) => {
                if let Some(pending) = self.context.changing.pending.as_mut().filter(|p| p.ticket == ticket) {
                    pending.proposal.leave_out(&positions);
                }
            }
            Reply::Planned(result) => self.planned(ticket, result),
            Reply::Applied(reason, applied) => self.applied(ticket, reason.as_deref(), applied),
            Reply::Writable(result) => self.context.take_writable(result),
            Reply::Migrated(result) => self.context.migrated(result),
            Reply::JobBeat(beat) => self.context.take_beat(ticket, beat),
            Reply::JobEnded(result) => self.context.job_ended(ticket, result),
            Reply::JobAsked(result) => self.job_asked(result),
            _ => {}
        }
    }

    /// Handles that a private copy of what can be read is shown from now on: nothing can be changed there.
    pub(super) fn read_past_damage(&mut self, opened: OpenedDatabase) {
        self.stop_planning();
        let cx = &mut self.context;
        let missing = match opened.unread.as_deref().unwrap_or_default() {
            [] => "every row was read".to_owned(),
            [rows] => rows.told(),
            [rows, others @ ..] => {
                format!("{}, nor rows of {}", rows.told(), agreeing(others.len(), "{#} more {table|tables}"))
            }
        };
        cx.say(ToastTone::Warn, format!("view-only, because a page is damaged: {missing}"));
        cx.opened = opened;
        (cx.changing.unlocked, cx.unread, cx.past) = (false, None, None);
        cx.changing.epoch += 1;
    }

    /// Unlocks after a confirmation; locks again at once.
    pub(super) fn toggle_lock(&mut self) {
        if self.context.changing.unlocked {
            self.context.changing.unlocked = false;
            self.stop_planning();
            match self.still_writes() {
                Some(what) => {
                    self.context.say(ToastTone::Warn, format!("read-only for new changes, but still running: {what}"));
                }
                None => self.context.say(ToastTone::Info, "read-only again"),
            }
        } else if self.context.changing.asking.is_none() {
            self.context.changing.asking = Some(self.context.ask(Request::CheckWritable));
        }
    }

    /// Work of this console that still writes to the database, even if no change can be begun any more.
    pub(super) fn still_writes(&self) -> Option<String> {
        let cx = &self.context;
        let names: Vec<&str> = cx.running.live.iter().map(|live| live.name.as_str()).collect();
        if !names.is_empty() {
            let jobs = cx.key_for(CommandId::Panel(ScreenKind::Jobs));
            let pause = cx.key_for(CommandId::Job(JobAsk::Pause));
            return Some(format!("{}; {jobs} leads to it, {pause} pauses it there", names.join(", ")));
        }
        if cx.changing.pending.as_ref().is_some_and(|pending| pending.applying) {
            return Some("the change that is being made".to_owned());
        }
        self.screen().busy().map(str::to_owned)
    }

    /// Handles the result of a request to a job of another process.
    fn job_asked(&mut self, result: Result<JobProgress, RequestFailure>) {
        self.at_screen(|screen, _| screen.job_moved());
        match result {
            Ok(run) => self.context.say(ToastTone::Good, format!("{} is {}", run.name, run.state.word())),
            Err(failure) => self.context.fail(failure),
        }
    }

    /// Whether the console is about to end, or asks how.
    pub(super) fn is_leaving(&self) -> bool {
        let is_leave = |item: &MenuItem| matches!(item.choice, MenuChoice::Leave(_));
        let asked = matches!(self.overlays.last(), Some(Overlay::Menu(layer)) if layer.menu.items.iter().any(is_leave));
        self.context.running.leaving || asked
    }

    /// Ends the console; if jobs run, asks how first.
    pub(super) fn quit(&mut self) {
        let (running, beside) = (&self.context.running, &self.context.beside);
        let elsewhere: Vec<&OpenBeside> = beside.iter().filter(|open| !open.resumes.is_empty()).collect();
        if (running.live.is_empty() && elsewhere.is_empty()) || self.is_leaving() {
            return self.context.perform(Effect::Quit);
        }
        let item = |label: &str, note: &str, how| MenuItem::new(label, note, MenuChoice::Leave(how));
        let here = (!running.live.is_empty()).then(|| {
            let names: Vec<&str> = running.live.iter().map(|live| live.name.as_str()).collect();
            format!("{} is running", names.join(", "))
        });
        let there = elsewhere.iter().filter_map(|open| Some(format!("{}: {}", open.name, open.under_way.as_ref()?)));
        let title: Vec<String> = here.into_iter().chain(there).collect();
        let first = running.live.first().map_or("", |live| live.name.as_str());
        let items = vec![
            item("Wait", "stay until it is done", LeavingChoice::Wait),
            item("Pause and quit", "at its next checkpoint", LeavingChoice::Pause),
            item(format!("Leave: backfill resume {first}").trim_end(), "the line is told", LeavingChoice::Hand),
        ];
        self.show(MenuLayer::new(Menu::new(title.join("; "), items)));
    }
}

impl Context {
    fn take_finding(&mut self, ticket: Ticket, result: Result<LookNews, RequestFailure>) {
        self.health.take(ticket, result);
        if self.health.needs_retry() {
            let timer = self.wait_for_all(LOOKS_AGAIN);
            self.health.retry_after(timer);
        }
    }

    pub(super) fn take_writable(&mut self, result: Result<WriteState, RequestFailure>) {
        self.changing.asking = None;
        let writable = match result {
            Ok(writable) => writable,
            Err(failure) => return self.fail(failure),
        };
        if let Some(reason) = writable.blocked {
            let what = "This database cannot be changed";
            let remedy = writable.remedy.unwrap_or_else(|| "it is still readable".to_owned());
            return self.fail(RequestFailure::new(what, reason, remedy));
        }
        let migrations = if writable.audited { Vec::new() } else { writable.pending };
        self.show(LayerOpening::Unlock(UnlockStep { migrations, optional: Vec::new(), unlocks: true }));
    }

    pub(super) fn unlock(&mut self) {
        self.changing.unlocked = true;
        let words = format!("unlocked: changes can be made until {} locks again", self.key_for(CommandId::Lock));
        self.say(ToastTone::Warn, words);
        if let Some((id, _)) = self.changing.then.take() {
            self.command(id);
        }
    }

    pub(super) fn migrate(&mut self, optional: Vec<String>, unlocks: bool) {
        self.say(ToastTone::Info, "applying what was confirmed");
        self.changing.asking = Some(self.ask(Request::Migrate(optional.clone())));
        self.changing.migrating = (optional, unlocks);
    }

    /// Handles that our tables were added and the database was reopened.
    pub(super) fn migrated(&mut self, result: Result<(Vec<String>, Box<OpenedDatabase>), RequestFailure>) {
        self.changing.asking = None;
        let (optional, unlocks) = std::mem::take(&mut self.changing.migrating);
        let (names, opened) = match result {
            Ok(migrated) => migrated,
            Err(failure) => return self.fail(failure),
        };
        self.opened = *opened;
        self.changing.epoch += 1;
        self.changing.then.take_if(|(id, _)| *id == CommandId::ApplyMigrations);
        if !names.is_empty() {
            self.changing.note(DoneWork::Migrations(optional).into());
        }
        let applied = format!("applied: {}", names.join(", "));
        if unlocks {
            self.unlock();
            let lock = self.key_for(CommandId::Lock).to_owned();
            self.say(ToastTone::Good, format!("{applied}; unlocked until {lock} locks again"));
        } else {
            self.say(ToastTone::Good, applied);
        }
    }

    pub(super) fn start_job(&mut self, name: String, resume: bool, reason: Option<String>) {
        let ticket = self.ask(Request::RunJob { name: name.clone(), resume, reason: reason.clone() });
        let running = &mut self.running;
        running.note(&name, if resume { "resumed" } else { "started" }.to_owned());
        running.live.push(LiveJob { ticket, name, reason, progress: None });
    }

    pub(super) fn take_beat(&mut self, ticket: Ticket, beat: JobBeat) {
        let running = &mut self.running;
        let Some(live) = running.live.iter_mut().find(|live| live.ticket == ticket) else { return };
        let name = live.name.clone();
        let line = match beat {
            JobBeat::Said(line) => line,
            JobBeat::Progress(progress) => {
                let before = live.progress.as_ref().map(|p| (p.state, p.throttle.clone()));
                let is_news = before != Some((progress.state, progress.throttle.clone()));
                let line = match (&progress.throttle, progress.state) {
                    (Some(why), _) => why.clone(),
                    (None, state) => {
                        agreeing(progress.batches, &format!("{} after {{#}} {{batch|batches}}", state.word()))
                    }
                };
                live.progress = Some(progress);
                if !is_news {
                    return;
                }
                line
            }
        };
        running.note(&name, line);
    }

    pub(super) fn job_ended(&mut self, ticket: Ticket, result: Result<Box<JobReceipt>, RequestFailure>) {
        let running = &mut self.running;
        let Some(at) = running.live.iter().position(|live| live.ticket == ticket) else { return };
        let live = running.live.remove(at);
        self.changing.epoch += 1;
        if let Ok(receipt) = &result
            && !receipt.written.is_empty()
        {
            self.changing.note(job_done(&live, receipt));
        }
        let running = &mut self.running;
        match result {
            Ok(receipt) => {
                let status = receipt.receipt.status.clone();
                running.note(&live.name, status.clone());
                running.receipts.push((live.name.clone(), *receipt));
                let tone = if status == JobState::Failed.word() { ToastTone::Warn } else { ToastTone::Good };
                self.say(tone, format!("{}: {status}", live.name));
            }
            Err(failure) => {
                running.note(&live.name, failure.message.clone());
                if !running.leaving {
                    self.fail(failure);
                }
            }
        }
        if self.running.leaving && self.running.live.is_empty() {
            self.perform(Effect::Quit);
        }
    }

    pub(super) fn resume_lines(&self) -> Vec<String> {
        self.running.live.iter().map(|live| resume_line(self, &live.name)).collect()
    }

    /// Pauses all jobs; the console ends when the last one stops.
    pub(super) fn pause_jobs(&mut self) {
        self.running.leaving = true;
        let tickets: Vec<Ticket> = self.running.live.iter().map(|live| live.ticket).collect();
        for ticket in tickets {
            self.perform(Effect::WishJob(ticket, JobWish::Pause));
        }
        self.say(ToastTone::Info, "pausing at the next checkpoint; ctrl-c does not wait");
    }

    /// Ends the console in the way chosen while jobs run.
    pub(super) fn quit_so(&mut self, how: LeavingChoice) {
        if how == LeavingChoice::Wait {
            return;
        }
        if how == LeavingChoice::Hand {
            let elsewhere = self.beside.iter().flat_map(|open| open.resumes.clone());
            let lines = self.resume_lines().into_iter().chain(elsewhere).collect();
            self.perform(Effect::Tell(lines));
        }
        if self.running.live.is_empty() {
            // Jobs of other databases pause when those are closed.
            return self.perform(Effect::Quit);
        }
        self.pause_jobs();
    }
}

/// A run of a job as a change of this session.
fn job_done(live: &LiveJob, receipt: &JobReceipt) -> DoneChange {
    let can_undo = receipt.receipt.undo.is_some();
    let work = DoneWork::Job {
        name: live.name.clone(),
        run: receipt.job.id.clone(),
        complete: receipt.job.state == JobState::Succeeded,
    };
    let entries = if can_undo { receipt.written.clone() } else { Vec::new() };
    DoneChange { reason: live.reason.clone(), entries, ..work.into() }
}
