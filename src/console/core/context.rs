//! The screen's view of the console around it, and its means to request what has to be done outside itself.
//!
//! A screen reads facts here (the clock, what is opened, what may be changed) and leaves actions, which the core carries
//! out once the screen is done. So no screen needs the model, or another screen.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};

use super::change::Changing;
use super::columns::{ListColumn, any_column, list_columns, stands_in, title_column};
use super::command::{CommandId, command};
use super::health::Health;
use super::jobs::RunningJobs;
use super::key::Key;
use super::live::{LiveTail, PlaceWatch, Renewal};
use super::masking::Masking;
use super::menu::{Menu, MenuChoice, Purpose};
use super::message::{Destination, Effect, Measures, RequestFailure, Ticket};
use super::names::{NAMED, NameBook, referred};
pub use super::opened::{ConsoleSettings, OpenBeside, OpenedDatabase};
use super::proposal::Proposal;
use super::request::Request;
use super::router::{Asker, Router};
use super::screen::ScreenKind;
use crate::change::plan::Change;
use crate::change::plan::migration::PendingMigration;
use crate::change::plan::past::AsOf;
use crate::console::view::words;
use crate::memory::mask::Mask;
use crate::memory::query::{Capability, CountKind, Query, StoreStatus};
use crate::memory::{Entity, Row};

/// Tone of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToastTone {
    /// Success.
    Good,
    /// Worth knowing.
    Info,
    /// A refusal: the request was not carried out.
    Warn,
}

/// A message in the footer that goes on its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToastMessage {
    /// Text that says what happened.
    pub text: String,
    /// Tone of the message.
    pub tone: ToastTone,
    /// A command that may be given about it, and what that does.
    pub hint: Option<(CommandId, &'static str)>,
    /// The time after which it goes.
    pub ticket: Ticket,
}

/// Columns and rows below which nothing useful fits.
pub const LEAST: (u16, u16) = (40, 10);

/// Whether a terminal of so many columns and rows is too small: nothing is drawn in it but a card that says so.
#[must_use]
pub fn is_too_small((width, height): (u16, u16)) -> bool {
    width < LEAST.0 || height < LEAST.1
}

/// Reason why something cannot be done, and what would help.
pub type Lack = (String, Option<String>);

/// An action that a screen or an overlay wants carried out by the core, outside itself.
#[derive(Debug, Clone, PartialEq)]
pub enum ScreenAction {
    /// Do this outside of the core.
    Perform(Effect),
    /// Go there; `followed` when something here leads there.
    Go(Destination, bool),
    /// Give a command.
    Command(CommandId),
    /// Have an operation planned.
    Propose(Proposal),
    /// Lay something over the screen.
    Show(LayerOpening),
    /// The content of the screen has a new name.
    Rename,
    /// Press a key that the layer in front kept until it knew what that means.
    Press(Key),
    /// An entry of a menu was chosen.
    Choose(MenuChoice),
    /// A line was written: what for, the row that it is about, the text.
    Write(Purpose, String, String),
    /// A line that is being written stands still: what for, its text, and whether it can be taken.
    Try(Purpose, String, bool),
    /// Ask for completions at the cursor of a line: its purpose, and the text before the cursor.
    Complete(Purpose, String),
    /// A plan was confirmed.
    Apply(Box<ConfirmedPlan>),
    /// A plan is not wanted: the number of the request that made it.
    Abandon(Ticket),
    /// A form on this feedback row is planned.
    Edited(String),
    /// Unlocking was confirmed.
    Unlock,
    /// Migrations were confirmed, the optional ones of these names among them; whether they stood in the way of unlocking.
    Migrate(Vec<String>, bool),
    /// The last question was answered with a yes.
    Erase(Option<String>),
    /// Close all that lies over the screen, and read again what it shows.
    StartOver,
    /// The database can be read again: close what says that it could not be.
    Recovered(RequestFailure),
}

/// A plan that was confirmed.
#[derive(Debug, Clone, PartialEq)]
pub struct ConfirmedPlan {
    /// Proposal to apply.
    pub proposal: Proposal,
    /// Number of the request that made the plan.
    pub planned: Ticket,
    /// Rows before and after.
    pub changes: Vec<Change>,
    /// Reason for the change.
    pub reason: Option<String>,
}

/// Layer to open over a screen.
#[derive(Debug, Clone, PartialEq)]
pub enum LayerOpening {
    /// A failure.
    Failure(RequestFailure),
    /// A menu to choose from.
    Menu(Menu),
    /// A line to write: what for, the row that it is about, what it begins with.
    Prompt(Purpose, String, String),
    /// The form on a feedback row.
    Edit(Box<Row>),
    /// The form on any row, and on those of these ids as well.
    EditRow(Box<Row>, Vec<String>),
    /// The form for new feedback on this episode.
    Add(String),
    /// The choice of a parent for this episode.
    Pick(String),
    /// A notice: a title, and sentences.
    Note(String, Vec<String>),
    /// The question whether to apply migrations, or to unlock where there are none.
    Unlock(UnlockStep),
    /// The last question before the person of this id is erased, and what else it says.
    Erase(String, Vec<String>),
}

/// Step to be confirmed before the database, or another part of it, can be changed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct UnlockStep {
    /// Migrations that would be applied; none: the session is unlocked.
    pub migrations: Vec<PendingMigration>,
    /// Words for `--optional`: those of them that are applied only by name.
    pub optional: Vec<String>,
    /// They are in the way of unlocking, which follows.
    pub unlocks: bool,
}

/// Surroundings of a screen: everything in the console that it may see or use.
#[derive(Debug, Clone, PartialEq)]
pub struct Context {
    /// The opened database.
    pub opened: OpenedDatabase,
    /// The other open databases, the next one first.
    pub beside: Vec<OpenBeside>,
    /// The user's settings.
    pub settings: ConsoleSettings,
    /// The door for rows.
    pub masking: Masking,
    /// Columns and rows of the terminal.
    pub size: (u16, u16),
    /// The console has begun, and knows the time.
    pub started: bool,
    /// The time, as it was told last.
    pub now: DateTime<Utc>,
    /// The state of the database, once it was read.
    pub status: Option<Box<StoreStatus>>,
    /// The status is to be read again; what is known of it stays until then.
    pub status_aged: bool,
    /// Pending request for the status.
    pub status_pending: Option<Ticket>,
    /// Reason why the status could not be read.
    pub status_failure: Option<RequestFailure>,
    /// The status is read again because others wrote.
    pub status_renewal: Renewal,
    /// Whether others wrote since the place that is shown was read.
    pub watch: PlaceWatch,
    /// The database cannot be read now: why.
    pub unread: Option<String>,
    /// Measures of what was drawn last.
    pub measures: Measures,
    /// The message in the footer.
    pub toast: Option<ToastMessage>,
    /// Whether anything may be changed, what is under way, what was done.
    pub changing: Changing,
    /// Jobs that run and ran in this console.
    pub running: RunningJobs,
    /// Wrong or suspicious things found so far.
    pub health: Health,
    /// Names of rows that other rows refer to.
    pub names: NameBook,
    /// The moment of the past that rows are shown of; none is now.
    pub past: Option<Box<AsOf>>,
    /// By how many steps the list was made larger than it is on its own, or smaller.
    pub pane_steps: i16,
    /// The columns that someone chose for a list, in their order; a list that is not among them shows its own.
    pub columns: BTreeMap<Entity, Vec<&'static str>>,
    /// The export under way and how many rows it wrote.
    pub exporting: Option<(Ticket, usize)>,
    /// Routes each reply to whoever waits for it.
    pub(in crate::console) router: Router,
    /// Asker on whose behalf requests are currently made.
    pub(in crate::console) asker: Asker,
    actions: Vec<ScreenAction>,
    next_ticket: u64,
}

impl Context {
    /// Creates the context of the first screen.
    #[must_use]
    pub fn new(opened: OpenedDatabase, settings: ConsoleSettings, mask: Mask, masked: bool) -> Self {
        Context {
            opened,
            beside: Vec::new(),
            settings,
            masking: Masking::new(mask, masked),
            size: (80, 24),
            started: false,
            now: DateTime::default(),
            status: None,
            status_aged: false,
            status_pending: None,
            status_failure: None,
            status_renewal: Renewal::default(),
            watch: PlaceWatch::default(),
            unread: None,
            measures: Measures::default(),
            toast: None,
            changing: Changing::default(),
            running: RunningJobs::default(),
            health: Health::default(),
            names: NameBook::default(),
            past: None,
            pane_steps: 0,
            columns: BTreeMap::new(),
            exporting: None,
            router: Router::default(),
            asker: Asker::Core,
            actions: Vec::new(),
            next_ticket: 0,
        }
    }

    /// A number for a new request.
    pub(in crate::console) fn ticket(&mut self) -> Ticket {
        self.next_ticket += 1;
        Ticket(self.next_ticket)
    }

    /// Asks for something; the reply under this number goes to whoever asks now.
    pub fn ask(&mut self, request: Request) -> Ticket {
        let ticket = self.ticket();
        self.router.expect(ticket, self.asker);
        self.perform(Effect::Ask(ticket, request));
        ticket
    }

    /// Asks for something that is a fact for the whole console: the reply goes to the core, wherever we are then.
    pub fn ask_for_all(&mut self, request: Request) -> Ticket {
        let asker = std::mem::replace(&mut self.asker, Asker::Core);
        let ticket = self.ask(request);
        self.asker = asker;
        ticket
    }

    /// Begins to look for findings, unless that was done; a brief look leaves what would take long.
    pub fn look(&mut self, brief: bool) {
        let epoch = self.changing.epoch;
        if self.health.needs_look(brief, epoch) {
            let ticket = self.ask_for_all(Request::Look { brief });
            self.health.begin(ticket, epoch);
        }
    }

    /// Reads the state of the database, unless that was done.
    pub fn read_status(&mut self) {
        let is_known = self.status.is_some() && !self.status_aged;
        if !is_known && self.status_pending.is_none() && self.status_failure.is_none() {
            self.status_pending = Some(self.ask_for_all(Request::LoadStatus));
        }
    }

    /// Reads something again because others wrote; the reply goes to whoever asks now.
    pub fn renew(&mut self, request: Request) -> Ticket {
        self.ask(Request::Renew(Box::new(request)))
    }

    /// Says that a pasted text of so many bytes was not taken.
    pub fn say_too_long(&mut self, bytes: usize) {
        self.say(ToastTone::Warn, format!("what was pasted is too long: {bytes} bytes"));
    }

    /// Watches what others write as long as a place is shown that what they write makes old; else watches nothing.
    pub fn watch_place(&mut self, place: u64, may_age: bool) {
        if self.watch.place != place {
            // The new place finds out on its own.
            self.unread = None;
        }
        if self.watch.place != place || !may_age {
            let left = self.watch.watching.take();
            self.cancel(left);
            self.watch = PlaceWatch::default();
            self.watch.place = place;
        }
        let watched = self.held().next().filter(|_| may_age && self.watch.watching.is_none());
        if let Some(entity) = watched {
            let query = Query { limit: 1, ..LiveTail::query(Query::new(entity)) };
            self.watch.watching = Some(self.ask_for_all(Request::Watch(Box::new(query))));
        }
    }

    /// Others wrote: the state of the database is read again. What is known of it stays until then, and so do findings, which
    /// are marked as older.
    pub fn renew_status(&mut self) {
        self.health.aged = true;
        self.status_failure = None;
        if self.status.is_some() && self.status_renewal.is_wanted() {
            let ticket = self.ask_for_all(Request::Renew(Box::new(Request::LoadStatus)));
            self.status_renewal.begin(ticket);
        }
    }

    /// Reads what the rows that these refer to are called, unless that was done. Pseudonyms stand for themselves. Of people
    /// it is read each time who is under a legal hold.
    pub fn read_names<'r>(&mut self, rows: impl IntoIterator<Item = &'r Row>) {
        let rows: Vec<&Row> = rows.into_iter().collect();
        if rows.iter().any(|row| row.entity == Entity::Subject) {
            self.ask_for_all(Request::LoadHolds);
        }
        if self.masking.is_on() {
            return;
        }
        let wanted = self.names.unknown(rows.iter().copied());
        self.names.learn(&rows);
        self.ask_names(wanted);
    }

    /// Reads what these rows are called, unless that was done.
    pub fn read_names_of<'i>(&mut self, entity: Entity, ids: impl IntoIterator<Item = &'i str>) {
        if !self.masking.is_on() {
            let ids = self.names.unknown_of(entity, ids);
            self.ask_names(vec![(entity, ids)]);
        }
    }

    /// Reads what the rows of a plan and those that they refer to are called, unless that was done.
    pub fn read_names_of_changes<'c>(&mut self, changes: impl IntoIterator<Item = &'c Change>) {
        let of = |change: &Change| Entity::parse(&change.entity).map(|entity| (entity, change.id.clone()));
        let others = |change| referred(change).map(|(entity, id)| (entity, id.to_owned())).collect::<Vec<_>>();
        let wanted: Vec<(Entity, String)> =
            changes.into_iter().flat_map(|change| of(change).into_iter().chain(others(change))).collect();
        for entity in NAMED {
            let ids = wanted.iter().filter(|(of, _)| *of == entity).map(|(_, id)| id.as_str());
            self.read_names_of(entity, ids);
        }
    }

    /// A title with names in the place of ids, as far as they may be shown.
    #[must_use]
    pub fn in_title(&self, title: &str) -> String {
        if self.masking.is_on() { title.to_owned() } else { self.names.in_title(title) }
    }

    /// Sentences with names in the place of ids.
    #[must_use]
    pub fn in_titles(&self, texts: &[String]) -> Vec<String> {
        texts.iter().map(|text| self.in_title(text)).collect()
    }

    fn ask_names(&mut self, mut wanted: Vec<(Entity, Vec<String>)>) {
        wanted.retain(|(entity, ids)| !ids.is_empty() && self.holds(*entity).is_ok());
        if !wanted.is_empty() {
            self.ask_for_all(Request::LoadNames(wanted));
        }
    }

    /// Finds out which erasures are unfinished, unless that was done.
    pub fn read_unfinished(&mut self) {
        if self.changing.unfinished.is_none() && self.changing.unfinished_asked.is_none() {
            self.changing.unfinished_asked = Some(self.ask_for_all(Request::LoadUnfinished));
        }
    }

    /// Waits for this many milliseconds; whoever asks now is told when they are over.
    pub fn wait(&mut self, millis: u64) -> Ticket {
        let ticket = self.ticket();
        self.router.expect(ticket, self.asker);
        self.perform(Effect::After(ticket, millis));
        ticket
    }

    /// Waits for this many milliseconds; the core is told when they are over, wherever we are then.
    pub fn wait_for_all(&mut self, millis: u64) -> Ticket {
        let asker = std::mem::replace(&mut self.asker, Asker::Core);
        let ticket = self.wait(millis);
        self.asker = asker;
        ticket
    }

    /// Waits for these replies no more.
    pub fn cancel(&mut self, tickets: impl IntoIterator<Item = Ticket>) {
        for ticket in tickets {
            self.perform(Effect::Cancel(ticket));
        }
    }

    /// Has something done outside of the core.
    pub fn perform(&mut self, effect: Effect) {
        self.actions.push(ScreenAction::Perform(effect));
    }

    /// The moment of what is shown, canonical: now, or the past that is looked at.
    #[must_use]
    pub fn moment(&self) -> String {
        let now = || crate::memory::time::spell_utc(self.now).unwrap_or_default();
        self.past.as_ref().map_or_else(now, |past| past.at.clone())
    }

    /// A text with its canonical times as they are shown: by the clock of the zone.
    #[must_use]
    pub fn with_moments(&self, text: &str) -> String {
        words::in_zone(&self.settings.zone, self.now, || words::with_moments(text))
    }

    /// Goes to what something here leads to.
    pub fn follow(&mut self, to: Destination) {
        self.actions.push(ScreenAction::Go(to, true));
    }

    /// Has something carried out.
    pub fn act(&mut self, action: ScreenAction) {
        self.actions.push(action);
    }

    /// Issues a command, as its key would.
    pub fn command(&mut self, id: CommandId) {
        self.actions.push(ScreenAction::Command(id));
    }

    /// Has something planned, to be confirmed as its danger asks for.
    pub fn propose(&mut self, proposal: impl Into<Proposal>) {
        self.actions.push(ScreenAction::Propose(proposal.into()));
    }

    /// Lays something over the screen.
    pub fn show(&mut self, opening: LayerOpening) {
        self.actions.push(ScreenAction::Show(opening));
    }

    /// Opens a line to write that begins with a text.
    pub fn prompt(&mut self, purpose: Purpose, text: &str) {
        self.show(LayerOpening::Prompt(purpose, String::new(), text.to_owned()));
    }

    /// Requests a rename: the content of the screen has a new name.
    pub fn renamed(&mut self) {
        self.actions.push(ScreenAction::Rename);
    }

    /// Goes to a place of its own, not to what something here leads to.
    pub fn go(&mut self, to: Destination) {
        self.actions.push(ScreenAction::Go(to, false));
    }

    /// Makes lists larger next to their details, or smaller.
    pub fn resize_panes(&mut self, larger: bool) {
        const MOST: i16 = 30;
        let by = if larger { 1 } else { -1 };
        self.pane_steps = (self.pane_steps + by).clamp(-MOST, MOST);
    }

    /// Shows what went wrong.
    pub fn fail(&mut self, failure: RequestFailure) {
        self.show(LayerOpening::Failure(failure));
    }

    /// Shows a message in the footer for some seconds.
    pub fn say(&mut self, tone: ToastTone, text: impl Into<String>) {
        const SHOWN_FOR: u64 = 4_000;
        let ticket = self.wait_for_all(SHOWN_FOR);
        self.toast = Some(ToastMessage { text: text.into(), tone, hint: None, ticket });
    }

    /// Takes the actions to be carried out.
    pub(in crate::console) fn take_actions(&mut self) -> Vec<ScreenAction> {
        std::mem::take(&mut self.actions)
    }

    /// Whether the database holds an entity; if not, why, and what would help.
    ///
    /// # Errors
    /// The capability that is missing.
    pub fn holds(&self, entity: Entity) -> Result<(), &Capability> {
        let missing = self.opened.capabilities.iter().find(|c| c.name == entity.name() && !c.available);
        missing.map_or(Ok(()), Err)
    }

    /// Returns what would help where something is missing: what can be done here comes before commands.
    #[must_use]
    pub fn remedy(&self, missing: &Capability) -> Option<String> {
        let tables = self.key_for(CommandId::Panel(ScreenKind::Tables));
        if self.is_blank() {
            let migrations = self.key_for(CommandId::Panel(ScreenKind::Migrations));
            Some(format!("{migrations} creates the memory tables"))
        } else if self.opened.layouts.is_empty() && self.held().next().is_none() {
            let draft = self.key_for(CommandId::DraftLayout);
            Some(format!("{tables} shows its tables, and {draft} there drafts a layout for them"))
        } else {
            missing.remedy.clone()
        }
    }

    /// Whether the database has no tables at all, as far as that was read.
    #[must_use]
    pub fn is_blank(&self) -> bool {
        self.held().next().is_none() && self.status.as_ref().is_some_and(|status| status.tables.is_empty())
    }

    /// The entities that the database holds.
    pub fn held(&self) -> impl Iterator<Item = Entity> + '_ {
        Entity::ALL.iter().copied().filter(|entity| self.holds(*entity).is_ok())
    }

    /// The columns of an entity's list, those that were chosen or its own, as far as this database fills them.
    #[must_use]
    pub fn list_columns(&self, entity: Entity) -> Vec<&'static ListColumn> {
        // What replaces a title is in its column.
        let named = |name| name == title_column(entity) && stands_in(entity);
        let filled =
            |column: &&ListColumn| named(column.column) || !self.opened.unfilled.contains(&(entity, column.column));
        match self.columns.get(&entity) {
            Some(names) => names.iter().filter_map(|name| any_column(entity, name)).filter(filled).collect(),
            None => list_columns(entity).iter().filter(filled).collect(),
        }
    }

    /// Rows of an entity, where they were counted, and how. Those of the past were not.
    #[must_use]
    pub fn count(&self, entity: Entity) -> Option<(u64, CountKind)> {
        if self.past.is_some() {
            return None;
        }
        let sources = self.status.as_ref()?.layouts.iter().filter_map(|layout| layout.entities.get(entity.name()));
        let mut total = None;
        for source in sources {
            let count = u64::try_from(source.count?).ok()?;
            let (sum, kind) = total.unwrap_or((0, CountKind::Exact));
            let kind = if source.count_kind == CountKind::About { CountKind::About } else { kind };
            total = Some((sum + count, kind));
        }
        total
    }

    /// Whether changes can be made in this session.
    ///
    /// # Errors
    /// Why not, and what would help.
    pub fn may_change(&self) -> Result<(), Lack> {
        if let Some(past) = &self.past {
            let at = self.with_moments(&past.at);
            let words = format!("rows are shown as of {at}, and the past cannot be changed");
            return Err((words, Some(format!("{} with an empty line returns", self.key_for(CommandId::LookBack)))));
        }
        if self.changing.unlocked {
            return Ok(());
        }
        let locked =
            || ("the console is read-only".to_owned(), Some(format!("{} unlocks", self.key_for(CommandId::Lock))));
        Err(self.never_changes().unwrap_or_else(locked))
    }

    /// Returns why nothing can be changed here, whatever is confirmed, and what would help; `None` where unlocking helps, as
    /// far as that is known.
    #[must_use]
    pub fn never_changes(&self) -> Option<Lack> {
        if let Some(reason) = &self.opened.blocked {
            return Some((reason.clone(), None));
        }
        let is_missing = |capability: &&Capability| capability.name == "write" && !capability.available;
        let missing = self.status.as_ref()?.capabilities.iter().find(is_missing)?;
        // Unlocking offers the migrations itself; without a layout there is nothing to change.
        let migrates = missing.remedy.as_ref() == Some(&self.opened.invocation.line(["migrate", "--apply"]));
        let reason = missing.reason.clone().filter(|_| !migrates && !self.opened.layouts.is_empty())?;
        Some((reason, missing.remedy.clone()))
    }

    /// Whether unlocking is all that a change lacks.
    #[must_use]
    pub fn waits_for_unlocking(&self) -> bool {
        !self.changing.unlocked && self.past.is_none() && self.never_changes().is_none()
    }

    /// The first key that gives a command, if it has one.
    #[must_use]
    pub fn key(&self, id: CommandId) -> Option<&str> {
        command(id).and_then(|command| self.settings.keys.keys(command).next())
    }

    /// The key that gives a command, for a sentence; where it has none, the palette.
    #[must_use]
    pub fn key_for(&self, id: CommandId) -> &str {
        self.key(id).unwrap_or("the palette")
    }

    /// Returns the name of the database here: the profile's name, else the last part of its location.
    #[must_use]
    pub fn database_name(&self) -> &str {
        let location = self.opened.location.split('?').next().unwrap_or_default().trim_end_matches('/');
        let file = location.rsplit('/').next().unwrap_or_default();
        self.opened.profile.as_deref().unwrap_or(file)
    }

    /// Returns the last line that a pane of details can be scrolled to.
    #[must_use]
    pub fn last_line(&self) -> usize {
        self.measures.detail_lines.saturating_sub(self.measures.detail_rows)
    }

    /// Lines of a screenful of details, less one.
    #[must_use]
    pub fn screenful(&self) -> usize {
        self.measures.detail_rows.saturating_sub(1).max(1)
    }
}
