//! Jobs: available batch work, its progress, and starting, pausing and ending it.

pub(in crate::console) mod draw;
pub mod messages;

pub use messages::JobAsk;

use crate::console::core::command::hinted;
use crate::console::core::twin::words;
use crate::console::core::{
    CommandId, CommandScope, Context, Effect, Fetched, Lack, LayerOpening, ListCursor, Menu, MenuChoice, MenuItem,
    Proposal, Reply, Request, RequestFailure, Screen, ScreenFace, ScreenKind, Ticket, ToastTone,
};
use crate::console::view::Canvas;
use crate::job::plan::{JobOffer, JobState, JobWish};

/// The screen.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct JobsScreen {
    /// Jobs on offer, those that cannot be done here last.
    pub listed: Fetched<Vec<JobOffer>>,
    /// The selected one.
    pub cursor: ListCursor,
    /// Whether starting the selected one would resume it.
    resumes: bool,
}

impl JobsScreen {
    /// The jobs that were read.
    pub fn offers(&self) -> &[JobOffer] {
        self.listed.value.as_deref().unwrap_or_default()
    }

    /// The selected one.
    pub fn current(&self) -> Option<&JobOffer> {
        self.offers().get(self.cursor.selected)
    }

    /// Takes the list; the same job stays selected.
    fn take(&mut self, result: Result<Vec<JobOffer>, RequestFailure>) {
        let selected = self.current().map(|offer| offer.name.clone());
        self.listed.take(result.map(|mut offers| {
            offers.sort_by_key(|offer| offer.reason.is_some());
            offers
        }));
        let again = self.offers().iter().position(|offer| Some(&offer.name) == selected.as_ref());
        self.cursor.stay(again, self.offers().len());
    }

    /// Executes a request on the selected job.
    fn ask(&self, ask: JobAsk, cx: &mut Context) {
        let Some(offer) = self.current() else { return };
        let here = cx.running.of(&offer.name).map(|live| live.ticket);
        let run = cx.running.run_of(offer).filter(|run| !run.state.is_over());
        match (ask, here, run) {
            (JobAsk::Start, Some(_), _) => cx.say(ToastTone::Info, format!("{} is running", offer.name)),
            (JobAsk::Start, None, Some(run)) if run.state.is_active() && run.alive => {
                let by = run.owner.unwrap_or_default();
                cx.say(ToastTone::Warn, format!("{} is already running, started by {by}", offer.name));
            }
            (JobAsk::Start, None, run) => match &offer.reason {
                Some(reason) => cx.say(ToastTone::Warn, format!("{}: {reason}", offer.name)),
                None => cx.propose(Proposal::Backfill { name: offer.name.clone(), resume: run.is_some() }),
            },
            (_, None, None) => cx.say(ToastTone::Info, format!("{} is not running", offer.name)),
            (JobAsk::Pause, ..) => self.pass_on(JobAsk::Pause, cx),
            (JobAsk::Cancel, ..) => {
                let key = |ask| cx.key_for(CommandId::Job(ask));
                let keep = format!("{} pauses it, {} resumes it later", key(JobAsk::Pause), key(JobAsk::Start));
                let item = |label: &str, note: &str, ends| MenuItem::new(label, note, MenuChoice::EndJob(ends));
                let items = vec![
                    item("Keep it", &keep, false),
                    item("End it", "what it did stays; it starts from the beginning next time", true),
                ];
                cx.show(LayerOpening::Menu(Menu::new(format!("End {}?", offer.name), items)));
            }
        }
    }

    /// Asks the runner of the selected job to pause or end, in this process or through the database.
    fn pass_on(&self, ask: JobAsk, cx: &mut Context) {
        let Some(offer) = self.current() else { return };
        let wish = if ask == JobAsk::Pause { JobWish::Pause } else { JobWish::Cancel };
        match cx.running.of(&offer.name).map(|live| live.ticket) {
            Some(ticket) => cx.perform(Effect::WishJob(ticket, wish)),
            None => {
                cx.ask_for_all(Request::AskJob(offer.name.clone(), ask));
            }
        }
    }
}

impl Screen for JobsScreen {
    fn face(&self) -> ScreenFace {
        ScreenFace::own("jobs", ScreenKind::Jobs, CommandScope::Jobs)
    }

    fn twin(&self, _cx: &Context) -> Vec<String> {
        match self.current() {
            Some(offer) => words(["backfill", &offer.name]),
            None => words(["backfill"]),
        }
    }

    fn settle(&mut self, cx: &mut Context) {
        let run = self.current().and_then(|offer| cx.running.run_of(offer));
        self.resumes = run.is_some_and(|run| !run.state.is_over() && (!run.state.is_active() || !run.alive));
        if self.listed.is_wanted() {
            self.listed.pending = Some(cx.ask(Request::LoadJobs));
        }
    }

    fn reply(&mut self, _ticket: Ticket, reply: Reply, _cx: &mut Context) {
        if let Reply::Jobs(result) = reply {
            self.take(result);
        }
    }

    fn hints(&self) -> Vec<CommandId> {
        hinted(CommandScope::Jobs).chain([CommandId::Close, CommandId::Palette, CommandId::Refresh]).collect()
    }

    fn hint_word(&self, id: CommandId) -> Option<&'static str> {
        (self.resumes && id == CommandId::Job(JobAsk::Start)).then_some("resume")
    }

    /// Only a running job can be paused or ended, and only an available one can be started.
    fn can(&self, id: CommandId, cx: &Context) -> Result<(), Lack> {
        let CommandId::Job(ask) = id else { return Ok(()) };
        let offer = self.current().ok_or_else(|| ("no job is selected".to_owned(), None))?;
        let run = cx.running.run_of(offer);
        let is_paused = run.as_ref().is_some_and(|run| run.state == JobState::Paused);
        let runs = cx.running.of(&offer.name).is_some() || run.is_some_and(|run| !run.state.is_over());
        match &offer.reason {
            _ if ask == JobAsk::Pause && is_paused => Err((format!("{} is paused already", offer.name), None)),
            Some(reason) if ask == JobAsk::Start => Err((reason.clone(), None)),
            _ if ask != JobAsk::Start && !runs => Err((format!("{} is not running", offer.name), None)),
            _ => Ok(()),
        }
    }

    fn command(&mut self, id: CommandId, cx: &mut Context) {
        match id {
            CommandId::Job(ask) => self.ask(ask, cx),
            CommandId::ScrollJob(down) => {
                let by = cx.screenful() as isize;
                self.scroll_by(if down { by } else { -by }, cx);
            }
            _ => {}
        }
    }

    fn open(&mut self, cx: &mut Context) {
        cx.command(CommandId::Job(JobAsk::Start));
    }

    fn chosen(&mut self, choice: MenuChoice, cx: &mut Context) {
        if choice == MenuChoice::EndJob(true) {
            self.pass_on(JobAsk::Cancel, cx);
        }
    }

    fn cursor(&mut self) -> Option<(&mut ListCursor, usize)> {
        let entries = self.offers().len();
        Some((&mut self.cursor, entries))
    }

    /// A job began, stopped or was asked to: the list is read again.
    fn job_moved(&mut self) {
        self.forget();
    }

    /// Skipped while a job runs here, as that reports its own progress.
    fn others_wrote(&mut self, cx: &mut Context) -> bool {
        !cx.running.live.is_empty()
    }

    fn release(&mut self) -> Vec<Ticket> {
        self.listed.release()
    }

    fn forget(&mut self) {
        self.listed.forget();
    }

    fn awaits_jump(&self) -> bool {
        self.listed.pending.is_some() && self.current().is_none()
    }

    fn draw(&self, cx: &Context, canvas: &mut Canvas<'_>) {
        draw::draw(cx, self, canvas.look, canvas.area, canvas.buf, canvas.drawn);
    }
}
