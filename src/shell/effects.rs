//! Slow effects run as tasks, one for each ticket; dropping a task's future stops its query on the server.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::change::{self, Plans};
use super::damage::{PastPlace, Salvage};
use super::erase::Erasures;
use super::live::RenewalPace;
use super::replies::ReplySender;
use super::{
    ConsoleOptions, Door, Doors, Embedding, Opener, desk, erase, export, health, home, job, live, load, recall, replay,
    study, tables,
};
use crate::change::Author;
use crate::change::plan::past::{AsOf, Moment};
use crate::config::Kept as _;
use crate::console::core::request::TriedDatabase;
use crate::console::core::{Effect, Message, Proposal, Reply, Request, RequestFailure, Ticket};
use crate::job::backfill::BackfillArguments;
use crate::job::plan::JobWish;
use crate::lab::people;
use crate::memory::Entity;
use crate::memory::findings::Mute;
use crate::memory::kept::KeptPlace;
use crate::memory::mask::Mask;
use crate::recall::inquiry::SavedQuestion;
use crate::store::{EngineFault, Store, Target};

/// Context of a task: the database, plans, settings, and the request that it answers.
#[derive(Clone)]
struct Worker {
    /// The database at the start of the task.
    store: Arc<Store>,
    /// The database for showing rows: as of a moment of the past, or current.
    seen: Arc<Store>,
    /// The database for reading: a standby, if there is one.
    looked: Arc<Store>,
    /// Whether the rows shown are those of a moment in the past, which does not change.
    past: bool,
    /// Place of the database of the past.
    view: PastPlace,
    plans: Plans,
    erasures: Erasures,
    actor: String,
    mask: Mask,
    embedding: Arc<Embedding>,
    pace: RenewalPace,
    salvage: Salvage,
    /// The request that it answers.
    ticket: Ticket,
    replies: ReplySender,
}

impl Worker {
    fn author(&self, reason: Option<String>) -> Author {
        Author { actor: self.actor.clone(), reason, ticket: None }
    }

    /// Plans a proposal, and keeps the plan until it is applied or dropped.
    async fn plan(&self, store: &Store, proposal: Proposal) -> Reply {
        let author = self.author(None);
        let idle = |positions| self.tell(Reply::NothingToDo(positions));
        Reply::Planned(change::plan(store, &self.plans, self.ticket, proposal, &author, idle).await)
    }

    /// Reports the progress of the task.
    fn tell(&self, reply: Reply) {
        self.replies.send(Message::Reply(self.ticket, reply));
    }

    /// The database for showing rows of an entity.
    fn seen_of(&self, entity: Entity) -> Arc<Store> {
        if self.past { Arc::clone(&self.seen) } else { self.store.looking_at(entity) }
    }

    fn mask(&self, masked: bool) -> Option<&Mask> {
        masked.then_some(&self.mask)
    }

    /// As [`Worker::answer`]. A read that meets a damaged page is repeated on a copy of what can be read.
    async fn answer_past_damage(mut self, request: Request) -> Reply {
        let mut reply = self.answer(request.clone()).await;
        if !reply.failure_mut().is_some_and(|failure| failure.is_damage) {
            return reply;
        }
        let Some(copy) = self.salvage.instead(&self.store).await else { return reply };
        (self.seen, self.looked, self.past) = (copy.looking(), copy.looking(), false);
        self.store = copy;
        self.answer(request).await
    }

    /// Shows rows as of a moment from now on, or the current ones.
    async fn look_back(&self, moment: Option<Moment>) -> Result<Option<Box<AsOf>>, RequestFailure> {
        let (view, as_of) = change::look_back(&self.store, moment).await?.unzip();
        *self.view.lock().unwrap_or_else(PoisonError::into_inner) = view.map(Arc::new);
        Ok(as_of.map(Box::new))
    }

    /// Reads the handles of the people in the database, for a console that masks them.
    async fn people(&self) -> Message {
        let mut read = people::handles(&self.store).await;
        if read.as_ref().is_err_and(|error| error.fault() == Some(EngineFault::Damaged))
            && let Some(copy) = self.salvage.instead(&self.store).await
        {
            read = people::handles(&copy).await;
        }
        match read {
            Ok(handles) => Message::People(handles),
            Err(error) => Message::Failed(RequestFailure::new(
                "The names of people could not be read",
                format!("{error}; rows are masked, but an error may name someone"),
                "turn masking off and on to try again",
            )),
        }
    }

    /// Executes a request and returns its last reply.
    async fn answer(&self, request: Request) -> Reply {
        let (store, seen) = (&*self.store, &*self.seen);
        let location = store.location();
        let erasing = |what: &str, count| self.tell(Reply::Erasing(what.to_owned(), count));
        match request {
            Request::LoadStatus => Reply::Status(load::status(store).await),
            Request::LoadPage(query) => Reply::Page(load::page(&self.seen_of(query.entity), &query).await),
            Request::Count(query) => Reply::Counted(load::count(&self.seen_of(query.entity), &query).await),
            Request::LoadValues(entity, column) => {
                Reply::Values(load::values(&self.seen_of(entity), entity, column).await)
            }
            Request::LoadDetail(entity, key) => Reply::Detail(load::detail(&self.seen_of(entity), entity, &key).await),
            Request::LoadWork => Reply::Work(home::work(store).await),
            Request::LoadNames(wanted) => Reply::Named(load::names(seen, wanted).await),
            Request::LookBack(moment) => Reply::LookedBack(self.look_back(moment).await),
            Request::LoadHolds => Reply::Holds(load::holds(store).await),
            Request::Watch(_) if self.past => std::future::pending().await,
            Request::Watch(query) => {
                // The copy that is read instead of a damaged database does not change.
                let tell = |reply| {
                    if !self.salvage.is_read() {
                        self.tell(reply);
                    }
                };
                match live::watch(&self.store.looking_at(query.entity), &query, tell).await {}
            }
            Request::Renew(request) => {
                self.pace.wait(&request).await;
                let (kind, begun) = (std::mem::discriminant(&*request), Instant::now());
                let reply = Box::pin(self.answer(*request)).await;
                self.pace.took(kind, begun.elapsed());
                reply
            }
            Request::LoadRelated(relations) => Reply::Related(load::related(seen, relations).await),
            Request::Find(search, entity, after) => Reply::Found(load::found(seen, &search, entity, after).await),
            Request::Plan(proposal) => self.plan(store, *proposal).await,
            Request::PlanAhead(operation) => self.plan(store, (*operation).into()).await,
            Request::Apply { planned, reason } => {
                let (kept, author) = (self.plans.take(planned), self.author(reason.clone()));
                let applied = change::apply(store, kept, &author).await;
                store.wait_for_standby().await;
                Reply::Applied(reason, applied)
            }
            Request::Preview(operation) => {
                Reply::Previewed(change::preview(store, &operation, &self.author(None)).await)
            }
            Request::WhatIf { planned, patient } => {
                let kept = recall::kept(store, &self.embedding, patient).await;
                let told = |situations| self.tell(Reply::LookingAhead(situations));
                let plans = (&self.plans, &self.erasures);
                let found = change::what_if(store, plans, planned, &kept, patient, &told).await;
                Reply::LookedAhead(found)
            }
            Request::Replay { about, limit } => Reply::Replayed(replay::told(seen, &about, limit).await),
            Request::CheckWritable => Reply::Writable(change::writable(store).await),
            Request::PlanErasure(given, choice) => {
                let planned = erase::plan(store, &self.erasures, self.ticket, &given, &choice, &erasing).await;
                Reply::ErasurePlanned(planned)
            }
            Request::LoadWhereabouts(given) => Reply::ErasurePlanned(erase::whereabouts(store, &given, &erasing).await),
            Request::LoadUnfinished => Reply::Unfinished(erase::unfinished(store).await),
            Request::Erase { given, choice, resume, reason } => {
                Reply::Erased(erase::run(store, &given, &choice, resume, &self.author(reason), &erasing).await)
            }
            Request::LoadTrail(before) => Reply::Trail(change::trail(store, before).await),
            Request::VerifyTrail => {
                let told = |walked| self.tell(Reply::WalkingTrail(walked as u64));
                Reply::TrailVerified(change::verify_trail(store, &told).await)
            }
            Request::Look { brief } => Reply::Finding(health::look(store, brief, |news| self.tell(news)).await),
            Request::LoadTables => Reply::Tables(tables::tables(&self.looked).await),
            Request::LoadTableRows(name, after) => {
                Reply::TableRows(tables::rows(&self.store.looking_into(&name), &name, after).await)
            }
            Request::LoadGrowth(name) => Reply::Grown(tables::growth(store, &name).await),
            Request::DraftLayout => Reply::Drafted(tables::draft(store).await),
            Request::LoadPlaces => Reply::Places(desk::kept("Saved places", KeptPlace::load(location))),
            Request::KeepPlace(place) => Reply::Places(desk::kept("Saved places", place.keep(location))),
            Request::ForgetPlace(name) => Reply::Places(desk::kept("Saved places", KeptPlace::forget(location, &name))),
            Request::Quote(kind, entity, id) => Reply::Quoted(health::quoted(store, kind, entity, &id).await),
            Request::LoadMutes => Reply::Mutes(desk::kept("What is muted could not be read", Mute::load(location))),
            Request::Mute(what, reason) => {
                let mute = Mute { what, reason, actor: self.actor.clone(), at: crate::change::now() };
                Reply::Mutes(desk::kept("It was not muted", mute.keep(location)))
            }
            Request::Unmute(what) => Reply::Mutes(desk::kept("It is still muted", Mute::forget(location, &what))),
            Request::LoadMigrations => Reply::Migrations(health::migrations(store).await),
            Request::LoadJobs => Reply::Jobs(job::offers(store, self.plans.given()).await),
            Request::AskJob(name, ask) => Reply::JobAsked(job::ask(store, &name, ask).await),
            other => self.answer_at_length(other).await,
        }
    }

    /// The same for requests with progress reports, and for those about state kept outside of the database.
    async fn answer_at_length(&self, request: Request) -> Reply {
        let (location, seen) = (self.store.location(), &*self.seen);
        match request {
            Request::Export(export) => {
                let told = |rows| self.tell(Reply::Exporting(rows));
                let seen = self.seen_of(export.query.entity);
                Reply::Exported(export::write(&seen, &export, self.mask(export.masked), told).await)
            }
            Request::Study { question, masked } => {
                let told = |entity, rows| self.tell(Reply::Told(entity, rows));
                Reply::Answer(study::answer(&self.looked, &question, self.mask(masked), &told).await)
            }
            Request::Recall { inquiry, at, fresh } => {
                if fresh {
                    self.looked.embeddings().forget_vectors();
                }
                let told = |doing| self.tell(Reply::Recalling(doing));
                Reply::Recalled(recall::rank(seen, &self.embedding, &inquiry, &at, told).await)
            }
            Request::SaveQuery(saved) => {
                Reply::Saved(recall::saved("The question was not saved", saved.keep(location)))
            }
            Request::ForgetQuery(name) => {
                let left = SavedQuestion::forget(location, &name);
                Reply::Saved(recall::saved("The question was not forgotten", left))
            }
            _ => Reply::Saved(recall::saved("The saved questions were not read", SavedQuestion::load(location))),
        }
    }
}

pub struct Tasks {
    /// Replaced when the database is reopened.
    store: Arc<Mutex<Arc<Store>>>,
    /// The database of the past, while it is shown.
    past: PastPlace,
    /// Another database, opened in order to show it.
    beside: Arc<Mutex<Option<(Store, Door)>>>,
    doors: Doors,
    open: Opener,
    /// Name of the profile, and whether it is production, for reopening.
    profile: (Option<String>, bool),
    actor: String,
    plans: Plans,
    erasures: Erasures,
    mask: Mask,
    embedding: Arc<Embedding>,
    pace: RenewalPace,
    vector_bytes: usize,
    salvage: Salvage,
    replies: ReplySender,
    running: HashMap<Ticket, JoinHandle<()>>,
    /// Stop switches of the jobs that run here, by ticket.
    jobs: HashMap<Ticket, watch::Sender<JobWish>>,
    /// Tasks that write to the database, jobs aside; each with the number of commits that had begun before.
    writes: HashMap<Ticket, u64>,
}

impl Tasks {
    /// Creates an empty set of tasks; their replies go to `replies`.
    pub fn new(store: Arc<Store>, doors: Doors, door: Door, options: &ConsoleOptions, replies: ReplySender) -> Self {
        store.looking().embeddings().keep_vectors(options.vector_bytes);
        let (store, past) = (Arc::new(Mutex::new(store)), Arc::default());
        let profile = (door.profile, door.production);
        let places = (Arc::clone(&store), Arc::clone(&past));
        let salvage = Salvage::new(door.past_damage, places, profile.clone(), options.vector_bytes, replies.clone());
        Tasks {
            store,
            past,
            beside: Arc::default(),
            doors,
            open: door.open,
            profile,
            actor: options.actor.clone(),
            plans: Plans::new(BackfillArguments::with(door.embedding.clone())),
            erasures: Erasures::default(),
            mask: options.mask.clone(),
            embedding: Arc::new(door.embedding),
            pace: RenewalPace::default(),
            vector_bytes: options.vector_bytes,
            salvage,
            replies,
            running: HashMap::new(),
            jobs: HashMap::new(),
            writes: HashMap::new(),
        }
    }

    pub fn reply(&self, message: Message) {
        self.replies.send(message);
    }

    /// Reads the handles of the people in the database.
    pub async fn people(&self) -> Message {
        self.worker(Ticket::default()).people().await
    }

    pub fn start_all(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            self.start(effect);
        }
    }

    /// Starts an effect; those for the terminal are handled elsewhere.
    pub fn start(&mut self, effect: Effect) {
        if let Effect::Ask(ticket, Request::Apply { .. } | Request::Migrate(_) | Request::Erase { .. }) = &effect {
            let begun = self.worker(*ticket).store.commits_begun();
            self.writes.insert(*ticket, begun);
        }
        match effect {
            Effect::Ask(ticket, Request::Migrate(optional)) => self.migrate(ticket, optional),
            Effect::Ask(ticket, Request::LoadDatabases) => {
                let location = self.worker(ticket).store.location().to_owned();
                self.reply(Message::Reply(ticket, Reply::Databases((self.doors.known)(&location))));
            }
            Effect::Ask(ticket, Request::NamesDatabase(text)) => {
                self.spawn(ticket, async move {
                    let named = names_database(&text).await;
                    Message::Reply(ticket, Reply::NamesDatabase(named))
                });
            }
            Effect::Ask(ticket, Request::TryDatabase(name)) => self.try_database(ticket, name),
            Effect::Ask(ticket, Request::RunJob { name, resume, reason }) => self.run_job(ticket, name, resume, reason),
            Effect::Ask(ticket, request) => {
                let worker = self.worker(ticket);
                self.spawn(ticket, async move { Message::Reply(ticket, worker.answer_past_damage(request).await) });
            }
            Effect::WishJob(ticket, wish) => {
                if let Some(job) = self.jobs.get(&ticket) {
                    // The job does not listen only if it has ended.
                    let _ = job.send(wish);
                }
            }
            Effect::LoadPeople => {
                let (worker, replies) = (self.worker(Ticket::default()), self.replies.clone());
                tokio::spawn(async move { replies.send(worker.people().await) });
            }
            Effect::Cancel(ticket) => {
                if let Some(task) = self.running.remove(&ticket) {
                    task.abort();
                }
                self.plans.take(ticket);
                self.erasures.forget(ticket);
            }
            Effect::After(ticket, millis) => self.spawn(ticket, async move {
                tokio::time::sleep(Duration::from_millis(millis)).await;
                Message::Elapsed(ticket)
            }),
            Effect::Copy(..)
            | Effect::View(..)
            | Effect::Edit(..)
            | Effect::SetTitle(_)
            | Effect::Tell(_)
            | Effect::Mouse(_)
            | Effect::Redraw
            | Effect::Switch(_)
            | Effect::Suspend
            | Effect::Quit => {}
        }
    }

    fn worker(&self, ticket: Ticket) -> Worker {
        let store = Arc::clone(&self.store.lock().unwrap_or_else(PoisonError::into_inner));
        let past = self.past.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Worker {
            past: past.is_some(),
            view: Arc::clone(&self.past),
            seen: past.unwrap_or_else(|| store.looking()),
            looked: store.looking(),
            store,
            plans: self.plans.clone(),
            erasures: self.erasures.clone(),
            actor: self.actor.clone(),
            mask: self.mask.clone(),
            embedding: Arc::clone(&self.embedding),
            pace: self.pace.clone(),
            salvage: self.salvage.clone(),
            ticket,
            replies: self.replies.clone(),
        }
    }

    /// Opens another database beside this one.
    fn try_database(&mut self, ticket: Ticket, name: String) {
        let (doors, place) = (self.doors.clone(), Arc::clone(&self.beside));
        let here = self.worker(ticket).store;
        self.spawn(ticket, async move {
            let failed = |message: String| {
                let remedy = "check the path or the address; this database stays open";
                RequestFailure::new(format!("{name} was not opened"), message, remedy)
            };
            let tried = async {
                let door = (doors.door)(name.clone()).await.map_err(failed)?;
                let store = door.store().await.map_err(|error| failed(error.to_string()))?;
                let location = store.location().to_owned();
                let is_other = here.is_replaced() || here.unread().is_some() || shape(&store) != shape(&here);
                let replaces = store.place() == here.place() && is_other;
                *place.lock().unwrap_or_else(PoisonError::into_inner) = Some((store, door));
                Ok(TriedDatabase { location, replaces })
            };
            Message::Reply(ticket, Reply::Tried(tried.await))
        });
    }

    /// Frees cached vectors when another database is shown, as nobody recalls from this one then.
    pub fn rest(&self) {
        self.store.lock().unwrap_or_else(PoisonError::into_inner).looking().embeddings().forget_vectors();
    }

    /// The database that was opened in addition to this one.
    pub fn beside(&self) -> Option<(Store, Door)> {
        self.beside.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn run_job(&mut self, ticket: Ticket, name: String, resume: bool, reason: Option<String>) {
        let (wish, heard) = watch::channel(JobWish::GoOn);
        self.jobs.insert(ticket, wish);
        let worker = self.worker(ticket);
        let given = self.plans.given().clone();
        let run = job::ShellRun { ticket, name, resume, given, author: worker.author(reason) };
        self.spawn(ticket, async move {
            let ended = job::run(Arc::clone(&worker.store), run, heard, worker.replies.clone()).await;
            Message::Reply(ticket, Reply::JobEnded(ended))
        });
    }

    /// Adds our tables and reopens the database, so that they are recognized.
    fn migrate(&mut self, ticket: Ticket, optional: Vec<String>) {
        let (worker, open, place) = (self.worker(ticket), Arc::clone(&self.open), Arc::clone(&self.store));
        let (profile, production) = self.profile.clone();
        let vector_bytes = self.vector_bytes;
        self.spawn(ticket, async move {
            let migrated = async {
                let names = change::migrate(&worker.store, &worker.author(None), optional).await?;
                let fresh = open().await.map_err(|e| {
                    RequestFailure::new(
                        "The database was not opened again",
                        e.to_string(),
                        "end the console and open it again",
                    )
                })?;
                let fresh = Arc::new(fresh);
                fresh.looking().embeddings().keep_vectors(vector_bytes);
                let opened = Box::new(super::opened(&fresh, profile.as_ref(), production));
                *place.lock().unwrap_or_else(PoisonError::into_inner) = fresh;
                Ok((names, opened))
            };
            Message::Reply(ticket, Reply::Migrated(migrated.await))
        });
    }

    /// Closes idle connections; new ones are opened on demand.
    pub fn reconnect(&self) {
        self.store.lock().unwrap_or_else(PoisonError::into_inner).close_idle();
    }

    /// Stops all tasks, jobs at their next checkpoint, and waits for that, but not for long.
    pub async fn end(&mut self) {
        self.close().await;
        for (_, task) in self.running.drain().filter(|(_, task)| !task.is_finished()) {
            task.abort();
            let _ = tokio::time::timeout(Duration::from_secs(1), task).await;
        }
    }

    /// Asks the jobs to pause at their next checkpoint, and waits for that and for other writes, with a time limit: a
    /// job that is interrupted then is as good as paused.
    pub async fn close(&mut self) {
        const PATIENCE: Duration = Duration::from_secs(2);
        let until = tokio::time::Instant::now() + PATIENCE;
        for wish in self.jobs.values() {
            let _ = wish.send(JobWish::Pause);
        }
        for ticket in self.jobs.keys().chain(self.writes.keys()) {
            if let Some(task) = self.running.get_mut(ticket) {
                let _ = tokio::time::timeout_at(until, task).await;
            }
        }
    }

    /// Stops writes that are still running, except for jobs. Returns the numbers of their requests, each with whether
    /// it may have committed something.
    pub async fn break_off(&mut self) -> Vec<(Ticket, bool)> {
        let mut broken = Vec::new();
        for (ticket, before) in std::mem::take(&mut self.writes) {
            let Some(task) = self.running.get_mut(&ticket).filter(|task| !task.is_finished()) else { continue };
            task.abort();
            // Nothing can be committed any more once it has ended.
            let ended = tokio::time::timeout(Duration::from_millis(200), task).await.is_ok();
            let begun = self.worker(ticket).store.commits_begun();
            broken.push((ticket, !ended || begun != before));
        }
        broken
    }

    fn spawn(&mut self, ticket: Ticket, work: impl Future<Output = Message> + Send + 'static) {
        self.running.retain(|_, task| !task.is_finished());
        self.writes.retain(|write, _| *write == ticket || self.running.contains_key(write));
        let replies = self.replies.clone();
        let task = tokio::spawn(async move {
            super::terminal::panic_if_asked("worker");
            replies.send(work.await);
        });
        self.running.insert(ticket, task);
    }
}

impl Drop for Tasks {
    fn drop(&mut self) {
        self.running.values().for_each(JoinHandle::abort);
    }
}

/// A table: its schema, its name, and its columns with their types.
type TableOutline<'s> = (&'s str, &'s str, Vec<(&'s str, &'s str)>);

/// Tables as they were when a database was opened.
fn shape(store: &Store) -> Vec<TableOutline<'_>> {
    let tables = store.catalog().tables.iter();
    tables.map(|t| (&*t.schema, &*t.name, t.columns.iter().map(|c| (&*c.name, &*c.declared)).collect())).collect()
}

/// Whether a text is a URL, or the path of an existing file or folder. A bare folder name is not enough: it may be
/// meant as a search.
async fn names_database(text: &str) -> bool {
    match Target::parse(text) {
        Target::Postgres(_) => true,
        Target::File(path) => tokio::fs::metadata(path).await.is_ok_and(|it| it.is_file() || text.contains('/')),
    }
}
