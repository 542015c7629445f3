//! A screen's view of the console, and its way to request actions.
//!
//! A screen reads facts here, such as the clock, the open database and what may be changed, and queues actions, which
//! the core executes once the screen is done. So no screen needs the model or another screen.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};

use super::change::Changing;
use super::columns::{ListColumn, any_column, list_columns, stands_in, title_column};
use super::command::{CommandId, ConsoleCommand, command};
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

/// A temporary message in the footer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToastMessage {
    /// Text of the message.
    pub text: String,
    /// Tone of the message.
    pub tone: ToastTone,
    /// A command related to the message, and a description of its effect.
    pub hint: Option<(CommandId, &'static str)>,
    /// Timer after which the message disappears.
    pub ticket: Ticket,
}

/// Least number of columns and rows in which anything useful fits.
pub const LEAST: (u16, u16) = (40, 10);

/// Whether a terminal of this many columns and rows is too small: then only a card that says so is drawn.
pub fn is_too_small((width, height): (u16, u16)) -> bool {
    width < LEAST.0 || height < LEAST.1
}

/// Reason why something is impossible, and a remedy if there is one.
pub type Lack = (String, Option<String>);

/// An action that a screen or an overlay requests from the core.
#[derive(Debug, Clone, PartialEq)]
pub enum ScreenAction {
    /// Do this outside of the core.
    Perform(Effect),
    /// Go to a destination; true if it is linked from here.
    Go(Destination, bool),
    /// Execute a command.
    Command(CommandId),
    /// Plan an operation.
    Propose(Proposal),
    /// Open a layer over the screen.
    Show(LayerOpening),
    /// The content of the screen has a new name.
    Rename,
    /// Press a key that the topmost layer had held back.
    Press(Key),
    /// An entry of a menu was chosen.
    Choose(MenuChoice),
    /// A line was submitted: its purpose, the id of its row, and its text.
    Write(Purpose, String, String),
    /// A line being written has not changed for a while: its purpose, its text, and whether it is valid.
    Try(Purpose, String, bool),
    /// Ask for completions at the cursor of a line: its purpose, and the text before the cursor.
    Complete(Purpose, String),
    /// A plan was confirmed.
    Apply(Box<ConfirmedPlan>),
    /// Drop a plan: the number of the request that made it.
    Abandon(Ticket),
    /// A form on this feedback row is planned.
    Edited(String),
    /// Unlocking was confirmed.
    Unlock,
    /// Migrations were confirmed, with these optional ones. The flag is true if they had prevented unlocking.
    Migrate(Vec<String>, bool),
    /// The last question was answered with a yes.
    Erase(Option<String>),
    /// Close all layers, and read the shown data again.
    StartOver,
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
    /// A line to write: its purpose, the id of its row, and its initial text.
    Prompt(Purpose, String, String),
    /// The form on a feedback row.
    Edit(Box<Row>),
    /// The form for a row, and for the other marked rows by their ids.
    EditRow(Box<Row>, Vec<String>),
    /// The form for new feedback on this episode.
    Add(String),
    /// The choice of a parent for this episode.
    Pick(String),
    /// A notice: a title, and sentences.
    Note(String, Vec<String>),
    /// The question whether to apply migrations, or to unlock if there are none.
    Unlock(UnlockStep),
    /// The last question before the person of this id is erased, and further sentences for it.
    Erase(String, Vec<String>),
}

/// Step to confirm before the database, or another part of it, can be changed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct UnlockStep {
    /// Migrations to apply; if there are none, the session is unlocked.
    pub migrations: Vec<PendingMigration>,
    /// Words for `--optional`: the migrations among them that are applied only by name.
    pub optional: Vec<String>,
    /// Whether they prevent unlocking, which follows.
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
    /// Whether the console has begun and knows the time.
    pub started: bool,
    /// The time, as last reported.
    pub now: DateTime<Utc>,
    /// The state of the database; `None` until read.
    pub status: Option<Box<StoreStatus>>,
    /// Whether the status must be read again; the old one is kept until then.
    pub status_aged: bool,
    /// Pending request for the status.
    pub status_pending: Option<Ticket>,
    /// Reason why the status could not be read.
    pub status_failure: Option<RequestFailure>,
    /// Rereading of the status after others wrote.
    pub status_renewal: Renewal,
    /// Watch for writes by others since the shown place was read.
    pub watch: PlaceWatch,
    /// Reason why the database cannot be read now.
    pub unread: Option<String>,
    /// The last failure of a request of the shown place since it was read.
    pub failure: Option<RequestFailure>,
    /// Measures of the last drawing.
    pub measures: Measures,
    /// The message in the footer.
    pub toast: Option<ToastMessage>,
    /// Change state of the session.
    pub changing: Changing,
    /// Jobs that run and ran in this console.
    pub running: RunningJobs,
    /// Wrong or suspicious things found so far.
    pub health: Health,
    /// Names of rows that other rows refer to.
    pub names: NameBook,
    /// The moment of the past that is shown; `None` for now.
    pub past: Option<Box<AsOf>>,
    /// Number of steps by which lists were enlarged (or shrunk, if negative).
    pub pane_steps: i16,
    /// Chosen columns of lists, in order. A list that is missing here shows its default columns.
    pub columns: BTreeMap<Entity, Vec<&'static str>>,
    /// The export under way and how many rows it wrote.
    pub exporting: Option<(Ticket, usize)>,
    /// Routes each reply to its asker.
    pub(in crate::console) router: Router,
    /// Asker on whose behalf requests are currently made.
    pub(in crate::console) asker: Asker,
    actions: Vec<ScreenAction>,
    next_ticket: u64,
}

impl Context {
    /// Creates the context of the first screen.
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
            failure: None,
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

    /// Makes a request; its reply goes to the current asker.
    pub fn ask(&mut self, request: Request) -> Ticket {
        let ticket = self.ticket();
        self.router.expect(ticket, self.asker);
        self.perform(Effect::Ask(ticket, request));
        ticket
    }

    /// Makes a request for the whole console: its reply goes to the core.
    pub fn ask_for_all(&mut self, request: Request) -> Ticket {
        let asker = std::mem::replace(&mut self.asker, Asker::Core);
        let ticket = self.ask(request);
        self.asker = asker;
        ticket
    }

    /// Begins to look for findings, unless that was done; a brief look skips slow checks.
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

    /// Reads something again because others wrote; its reply goes to the current asker.
    pub fn renew(&mut self, request: Request) -> Ticket {
        self.ask(Request::Renew(Box::new(request)))
    }

    /// Reports that a pasted text of this many bytes is too long.
    pub fn say_too_long(&mut self, bytes: usize) {
        self.say(ToastTone::Warn, format!("what was pasted is too long: {bytes} bytes"));
    }

    /// Watches for writes by others if the shown place can become out of date; else ends the watch.
    pub fn watch_place(&mut self, place: u64, may_age: bool) {
        if self.watch.place != place {
            // The new place finds out on its own.
            (self.unread, self.failure) = (None, None);
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

    /// Handles that others wrote: the state of the database is read again. The old state is kept until then, and so are
    /// findings, which are marked as older.
    pub fn renew_status(&mut self) {
        self.health.aged = true;
        self.status_failure = None;
        if self.status.is_some() && self.status_renewal.is_wanted() {
            let ticket = self.ask_for_all(Request::Renew(Box::new(Request::LoadStatus)));
            self.status_renewal.begin(ticket);
        }
    }

    /// Reads the names of the rows that these refer to, unless known. Pseudonyms need no names. For people, the legal
    /// holds are read each time.
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

    /// Reads the names of these rows, unless known.
    pub fn read_names_of<'i>(&mut self, entity: Entity, ids: impl IntoIterator<Item = &'i str>) {
        if !self.masking.is_on() {
            let ids = self.names.unknown_of(entity, ids);
            self.ask_names(vec![(entity, ids)]);
        }
    }

    /// Reads the names of the rows of a plan and of those they refer to, unless known.
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

    /// A title with names in place of ids, as far as they may be shown.
    pub fn in_title(&self, title: &str) -> String {
        if self.masking.is_on() { title.to_owned() } else { self.names.in_title(title) }
    }

    /// Sentences with names in place of ids.
    pub fn in_titles(&self, texts: &[String]) -> Vec<String> {
        texts.iter().map(|text| self.in_title(text)).collect()
    }

    fn ask_names(&mut self, mut wanted: Vec<(Entity, Vec<String>)>) {
        wanted.retain(|(entity, ids)| !ids.is_empty() && self.holds(*entity).is_ok());
        if !wanted.is_empty() {
            self.names.waiting = Some(self.ask_for_all(Request::LoadNames(wanted)));
        }
    }

    /// Reads the list of unfinished erasures, unless known.
    pub fn read_unfinished(&mut self) {
        if self.changing.unfinished.is_none() && self.changing.unfinished_asked.is_none() {
            self.changing.unfinished_asked = Some(self.ask_for_all(Request::LoadUnfinished));
        }
    }

    /// Starts a timer of this many milliseconds for the current asker.
    pub fn wait(&mut self, millis: u64) -> Ticket {
        let ticket = self.ticket();
        self.router.expect(ticket, self.asker);
        self.perform(Effect::After(ticket, millis));
        ticket
    }

    /// Starts a timer of this many milliseconds for the core.
    pub fn wait_for_all(&mut self, millis: u64) -> Ticket {
        let asker = std::mem::replace(&mut self.asker, Asker::Core);
        let ticket = self.wait(millis);
        self.asker = asker;
        ticket
    }

    /// Cancels these requests.
    pub fn cancel(&mut self, tickets: impl IntoIterator<Item = Ticket>) {
        for ticket in tickets {
            self.perform(Effect::Cancel(ticket));
        }
    }

    /// Requests an effect outside of the core.
    pub fn perform(&mut self, effect: Effect) {
        self.actions.push(ScreenAction::Perform(effect));
    }

    /// The moment shown, in canonical form: now, or the moment of the past.
    pub fn moment(&self) -> String {
        let now = || crate::memory::time::spell_utc(self.now).unwrap_or_default();
        self.past.as_ref().map_or_else(now, |past| past.at.clone())
    }

    /// A text with its canonical times as they are shown: by the clock of the zone.
    pub fn with_moments(&self, text: &str) -> String {
        words::in_zone(&self.settings.zone, self.now, || words::with_moments(text))
    }

    /// Goes to a linked place.
    pub fn follow(&mut self, to: Destination) {
        self.actions.push(ScreenAction::Go(to, true));
    }

    /// Requests an action.
    pub fn act(&mut self, action: ScreenAction) {
        self.actions.push(action);
    }

    /// Issues a command, as its key would.
    pub fn command(&mut self, id: CommandId) {
        self.actions.push(ScreenAction::Command(id));
    }

    /// Requests a plan, to be confirmed according to its danger.
    pub fn propose(&mut self, proposal: impl Into<Proposal>) {
        self.actions.push(ScreenAction::Propose(proposal.into()));
    }

    /// Opens a layer over the screen.
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

    /// Goes to a place that is not linked from here.
    pub fn go(&mut self, to: Destination) {
        self.actions.push(ScreenAction::Go(to, false));
    }

    /// Enlarges lists at the expense of their details, or shrinks them.
    pub fn resize_panes(&mut self, larger: bool) {
        const MOST: i16 = 30;
        let by = if larger { 1 } else { -1 };
        self.pane_steps = (self.pane_steps + by).clamp(-MOST, MOST);
    }

    /// Shows a failure.
    pub fn fail(&mut self, failure: RequestFailure) {
        self.show(LayerOpening::Failure(failure));
    }

    /// Shows a message in the footer for some seconds.
    pub fn say(&mut self, tone: ToastTone, text: impl Into<String>) {
        const SHOWN_FOR: u64 = 4_000;
        let ticket = self.wait_for_all(SHOWN_FOR);
        self.toast = Some(ToastMessage { text: text.into(), tone, hint: None, ticket });
    }

    pub(in crate::console) fn take_actions(&mut self) -> Vec<ScreenAction> {
        std::mem::take(&mut self.actions)
    }

    /// Checks that the database holds an entity.
    ///
    /// # Errors
    /// The missing capability, with the reason and a remedy.
    pub fn holds(&self, entity: Entity) -> Result<(), &Capability> {
        let missing = self.opened.capabilities.iter().find(|c| c.name == entity.name() && !c.available);
        missing.map_or(Ok(()), Err)
    }

    /// Checks that the database has what a command shows or sets.
    ///
    /// # Errors
    /// The reason why not, with a remedy.
    pub fn supports(&self, command: &ConsoleCommand) -> Result<(), Lack> {
        if let Some(entity) = command.needs()
            && let Err(missing) = self.holds(entity)
        {
            let reason = missing.reason.clone().unwrap_or_else(|| format!("there are no {} here", entity.plural()));
            return Err((reason, self.remedy(missing)));
        }
        match command.sets().filter(|set| self.opened.fixed.contains(set)) {
            Some((_, column)) => Err((format!("this database cannot set the {}", column.replace('_', " ")), None)),
            None => Ok(()),
        }
    }

    /// Returns the remedy for a missing capability: actions in the console come before commands.
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

    /// Whether the database is known to have no tables at all.
    pub fn is_blank(&self) -> bool {
        self.held().next().is_none() && self.status.as_ref().is_some_and(|status| status.tables.is_empty())
    }

    /// The entities that the database holds.
    pub fn held(&self) -> impl Iterator<Item = Entity> + '_ {
        Entity::ALL.iter().copied().filter(|entity| self.holds(*entity).is_ok())
    }

    /// The columns of an entity's list, those that were chosen or its own, as far as this database fills them.
    pub fn list_columns(&self, entity: Entity) -> Vec<&'static ListColumn> {
        // The substitute for a title is in its column.
        let named = |name| name == title_column(entity) && stands_in(entity);
        let filled =
            |column: &&ListColumn| named(column.column) || !self.opened.unfilled.contains(&(entity, column.column));
        match self.columns.get(&entity) {
            Some(names) => names.iter().filter_map(|name| any_column(entity, name)).filter(filled).collect(),
            None => list_columns(entity).iter().filter(filled).collect(),
        }
    }

    /// The number of rows of an entity and how it was counted, if known. The past is not counted.
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

    /// Checks that changes are possible in this session.
    ///
    /// # Errors
    /// The reason why not, with a remedy.
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

    /// Returns the reason why nothing can ever be changed here, with a remedy; `None` if unlocking helps, as far as is
    /// known.
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
    pub fn waits_for_unlocking(&self) -> bool {
        !self.changing.unlocked && self.past.is_none() && self.never_changes().is_none()
    }

    /// The first key of a command.
    pub fn key(&self, id: CommandId) -> Option<&str> {
        command(id).and_then(|command| self.settings.keys.keys(command).next())
    }

    /// The key of a command, for a sentence; the palette if it has none.
    pub fn key_for(&self, id: CommandId) -> &str {
        self.key(id).unwrap_or("the palette")
    }

    /// Returns the name of the database here: the profile's name, else the last part of its location.
    pub fn database_name(&self) -> &str {
        let location = self.opened.location.split('?').next().unwrap_or_default().trim_end_matches('/');
        let file = location.rsplit('/').next().unwrap_or_default();
        self.opened.profile.as_deref().unwrap_or(file)
    }

    /// Returns the last line that a pane of details can be scrolled to.
    pub fn last_line(&self) -> usize {
        self.measures.detail_lines.saturating_sub(self.measures.detail_rows)
    }

    /// Lines of a screenful of details, less one.
    pub fn screenful(&self) -> usize {
        self.measures.detail_rows.saturating_sub(1).max(1)
    }
}
