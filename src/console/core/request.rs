//! Requests of the console to the world outside, and the replies: plain data, each with the number of its request.

use super::change::{AppliedPlan, Refusal};
use super::opened::OpenedDatabase;
use super::proposal::Proposal;
use super::ticket::{RequestFailure, Ticket};
use super::window::RowKey;
use crate::change::operation::Operation;
use crate::change::plan::Plan;
use crate::change::plan::erasure::{ErasureChoice, ErasureOutcome, Preview, UnfinishedErasure};
use crate::change::plan::past::{AsOf, Moment};
use crate::change::plan::trail::{AuditVerdict, ListedEntry};
use crate::console::overlays::unlock::messages::WriteState;
use crate::console::screens::find::messages::FoundRows;
use crate::console::screens::findings::messages::LookNews;
use crate::console::screens::home::messages::WaitingWork;
use crate::console::screens::jobs::messages::JobAsk;
use crate::console::screens::migrations::messages::MigrationList;
use crate::console::screens::replay::messages::{ReplaySubject, ReplayedTopic};
use crate::console::screens::study::messages::{StudyAnswer, StudyQuestion};
use crate::console::screens::tables::messages::{TableEntry, TablePage};
use crate::job::plan::{JobBeat, JobOffer, JobProgress, JobReceipt};
use crate::memory::findings::{Mute, OffendingQuote};
use crate::memory::growth::TableGrowth;
use crate::memory::kept::KeptPlace;
use crate::memory::query::{EpisodeContext, Page, Query, StoreStatus};
use crate::memory::search::Search;
use crate::memory::{Entity, Row};
use crate::recall::answer::{RecallAnswer as Recalled, StageTimes};
use crate::recall::inquiry::{Inquiry, SavedQuestion};
use crate::recall::what_if::WhatIf;

/// A related section of a detail view.
#[derive(Debug, Clone, PartialEq)]
pub struct Related {
    /// Relation of the rows to the one shown, such as `referenced by`.
    pub title: String,
    /// The rows.
    pub rows: Vec<Row>,
    /// Whether there are more.
    pub more: bool,
    /// Ids that were named and are not there.
    pub dangling: Vec<String>,
}

/// A database that can be opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownDatabase {
    /// Name of the database: its profile, or its path or address without a password.
    pub name: String,
    /// More about it.
    pub note: String,
    /// Time of the last visit, canonical; `None` if unknown.
    pub looked: Option<String>,
    /// Whether others depend on it.
    pub production: bool,
    /// Profile, path or address that opens the database.
    pub open: String,
}

/// A database that was opened next to the current one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TriedDatabase {
    /// Path or URL, without a password.
    pub location: String,
    /// Whether it replaces the current one, because another file took its path.
    pub replaces: bool,
}

/// Number of rows in a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowCount {
    /// At least this many rows.
    pub rows: u64,
    /// Whether there are more; counting stopped here.
    pub more: bool,
}

/// Way to find related rows.
#[derive(Debug, Clone, PartialEq)]
pub enum Relation {
    /// The rows with these ids.
    Ids(Entity, Vec<String>),
    /// The first rows of a list.
    List(Box<Query>),
}

/// Result of a request for details.
#[derive(Debug, Clone, PartialEq)]
pub enum Content {
    /// An episode with its context.
    Episode(Box<EpisodeContext>),
    /// Any other row.
    Row(Box<Row>),
}

impl Content {
    /// The row that it is about.
    pub fn row(&self) -> &Row {
        match self {
            Content::Episode(context) => &context.episode,
            Content::Row(row) => row,
        }
    }
}

/// Export of rows to a file.
#[derive(Debug, Clone, PartialEq)]
pub struct Export {
    /// The rows; limit and start are ignored.
    pub query: Query,
    /// Only the rows with these keys, when some are marked.
    pub only: Option<Vec<RowKey>>,
    /// The file, which must not exist yet.
    pub path: String,
    /// Personal values are replaced.
    pub masked: bool,
}

/// A request to read, search or do something outside of the core. It is answered by a [`Reply`].
#[derive(Debug, Clone, PartialEq)]
pub enum Request {
    /// Read the state of the database.
    LoadStatus,
    /// List the tables.
    LoadTables,
    /// Read rows of a table, after a page with that cursor.
    LoadTableRows(String, Option<String>),
    /// Count the rows of a table by the day of their creation.
    LoadGrowth(String),
    /// Draft a layout for the database.
    DraftLayout,
    /// Read the saved places.
    LoadPlaces,
    /// Save a place.
    KeepPlace(Box<KeptPlace>),
    /// Delete the saved place with this name.
    ForgetPlace(String),
    /// List the databases that can be opened.
    LoadDatabases,
    /// Find out whether a text is the path of a file or a folder, or an address, and so names a database on its own.
    NamesDatabase(String),
    /// Open a database by its profile, path or URL, next to the current one.
    TryDatabase(String),
    /// Show rows as of a moment from now on; `None` for the present.
    LookBack(Option<Moment>),
    /// Search the texts of one entity, after the page with this cursor.
    Find(Box<Search>, Entity, Option<String>),
    /// Count the rows of a list, if that is quick.
    Count(Box<Query>),
    /// Read the values of a column in the newest rows of an entity.
    LoadValues(Entity, &'static str),
    /// Read a page.
    LoadPage(Box<Query>),
    /// Read a row with all its details: its id, and its key if ids repeat.
    LoadDetail(Entity, RowKey),
    /// Read the rows related to a row.
    LoadRelated(Vec<(String, Relation)>),
    /// Read the names of referenced rows by their ids.
    LoadNames(Vec<(Entity, Vec<String>)>),
    /// Check every second for writes, and report the newest rows of a list after each.
    Watch(Box<Query>),
    /// Read the people under a legal hold.
    LoadHolds,
    /// Read something again unrequested, as soon as that costs little.
    Renew(Box<Request>),
    /// Find work that waits for someone.
    LoadWork,
    /// Plan a proposal, and keep the plan under this number until it is applied or cancelled.
    Plan(Box<Proposal>),
    /// Plan an operation that was not requested, to show its effects. It is answered and kept like any plan.
    PlanAhead(Box<Operation>),
    /// Apply a plan, or plan and apply each of several operations.
    Apply {
        /// Number of the request that made the plan.
        planned: Ticket,
        /// Reason for the change.
        reason: Option<String>,
    },
    /// Preview an operation.
    Preview(Box<Operation>),
    /// Compute how a plan would change recall.
    WhatIf {
        /// Number of the request that made the plan.
        planned: Ticket,
        /// Whether the computation may take its time.
        patient: bool,
    },
    /// Read the episodes of a topic, or around an episode, in order of time.
    Replay {
        /// Subject of the replay.
        about: ReplaySubject,
        /// Maximum number of episodes.
        limit: usize,
    },
    /// Check whether and how the database can be written.
    CheckWritable,
    /// Apply the pending migrations, including the optional ones of these names, and reopen the database.
    Migrate(Vec<String>),
    /// Compute what erasing a person would do.
    PlanErasure(String, ErasureChoice),
    /// Find where a person occurs: the reply is [`Reply::ErasurePlanned`].
    LoadWhereabouts(String),
    /// List the erasures that have not ended verified.
    LoadUnfinished,
    /// Erase a person, or resume it.
    Erase {
        /// The person.
        given: String,
        /// Choices for the erasure.
        choice: ErasureChoice,
        /// An earlier run is resumed.
        resume: bool,
        /// Reason for it, for the audit trail.
        reason: Option<String>,
    },
    /// Read entries of our audit trail, newest first, those before a number when one is given.
    LoadTrail(Option<i64>),
    /// Look through the database for findings; if `brief`, only for as long as fits beside other work.
    Look {
        /// On a huge database some is left for later.
        brief: bool,
    },
    /// Read the text that a finding is about: its kind, and one of its rows.
    Quote(&'static str, Entity, String),
    /// Read the muted findings.
    LoadMutes,
    /// Mute a kind of finding, or a row by its id, for that reason.
    Mute(String, String),
    /// Unmute a kind of finding, or a row.
    Unmute(String),
    /// Read the state of the migrations.
    LoadMigrations,
    /// Answer a question about the memory.
    Study {
        /// Question to answer.
        question: StudyQuestion,
        /// Personal values are replaced.
        masked: bool,
    },
    /// Rank a situation.
    Recall {
        /// Inquiry to answer.
        inquiry: Box<Inquiry>,
        /// Moment of the recall, canonical.
        at: String,
        /// Whether others may have written: what is kept in memory is read again.
        fresh: bool,
    },
    /// Read the saved questions.
    LoadSaved,
    /// Save a question.
    SaveQuery(Box<SavedQuestion>),
    /// Delete the saved question with this name.
    ForgetQuery(String),
    /// List the jobs.
    LoadJobs,
    /// Run a job.
    RunJob {
        /// Name of the job.
        name: String,
        /// An unfinished run is resumed.
        resume: bool,
        /// Reason for running the job.
        reason: Option<String>,
    },
    /// Ask a job of another process to stop.
    AskJob(String, JobAsk),
    /// Write rows to a file.
    Export(Box<Export>),
    /// Verify the chain of our audit trail from its beginning, and compare it with the stored anchors.
    VerifyTrail,
}

/// Defines the replies: those that are an answer or the failure to get one, then all others.
macro_rules! replies {
    (
        answers { $($(#[$doc:meta])* $name:ident($answer:ty),)* }
        others { $($others:tt)* }
    ) => {
        /// A reply to a request. Some only report progress; the last one ends the request.
        #[derive(Debug, Clone, PartialEq)]
        pub enum Reply {
            $($(#[$doc])* $name(Result<$answer, RequestFailure>),)*
            $($others)*
        }

        impl Reply {
            /// Returns the failure that the reply carries, if any.
            pub fn failure_mut(&mut self) -> Option<&mut RequestFailure> {
                match self {
                    $(Reply::$name(Err(failure)) => Some(failure),)*
                    _ => None,
                }
            }
        }
    };
}

replies! {
    answers {
        /// Tables of the database.
        Tables(Vec<TableEntry>),
        /// Rows of a table.
        TableRows(TablePage),
        /// Rows of a table by day of creation, or the reason why that is unknown.
        Grown(Result<TableGrowth, String>),
        /// A drafted layout, as the text of its file.
        Drafted(String),
        /// The saved places.
        Places(Vec<KeptPlace>),
        /// Whether a database was opened.
        Tried(TriedDatabase),
        /// Rows are shown as they were at a moment, or as they are.
        LookedBack(Option<Box<AsOf>>),
        /// Rows that match the search.
        Found(FoundRows),
        /// The state of the database.
        Status(Box<StoreStatus>),
        /// Number of rows in a list.
        Counted(RowCount),
        /// Values of a column, the most frequent first.
        Values(Vec<String>),
        /// A page of a list.
        Page(Page),
        /// The details of a row; `None` if it does not exist.
        Detail(Option<Content>),
        /// Rows related to the row in the detail.
        Related(Vec<Related>),
        /// Work that waits for someone.
        Work(Box<WaitingWork>),
        /// Referenced rows, with their names.
        Named(Vec<Row>),
        /// Ids of the people under a legal hold.
        Holds(Vec<String>),
        /// Rows were exported: their number, and the file.
        Exported((usize, String)),
        /// Preview of an operation; the plan is not kept.
        Previewed(Box<Plan>),
        /// Changes that recall would undergo.
        LookedAhead(Box<WhatIf>),
        /// A topic in order of time.
        Replayed(Box<ReplayedTopic>),
        /// Whether and how the database can be written.
        Writable(WriteState),
        /// Migrations were applied, with their names, and the database was reopened.
        Migrated((Vec<String>, Box<OpenedDatabase>)),
        /// Preview of erasing a person.
        ErasurePlanned(Box<Preview>),
        /// Outcome of erasing a person.
        Erased(Box<ErasureOutcome>),
        /// Entries of our audit trail, newest first.
        Trail(Vec<ListedEntry>),
        /// News from a look for findings.
        Finding(LookNews),
        /// The text that a finding is about, if any.
        Quoted(Option<OffendingQuote>),
        /// The current mutes.
        Mutes(Vec<Mute>),
        /// State of the migrations.
        Migrations(Box<MigrationList>),
        /// Answer to a question about the memory.
        Answer(StudyAnswer),
        /// Rows that a situation recalls, and how long that took.
        Recalled(Box<(Recalled, StageTimes)>),
        /// The saved questions.
        Saved(Vec<SavedQuestion>),
        /// The list of jobs.
        Jobs(Vec<JobOffer>),
        /// A job of this console has stopped: its receipt.
        JobEnded(Box<JobReceipt>),
        /// Verdict on the audit trail.
        TrailVerified(Box<AuditVerdict>),
        /// A job of another process was asked to stop: its current state.
        JobAsked(JobProgress),
    }
    others {
        /// Databases that can be opened.
        Databases(Vec<KnownDatabase>),
        /// Whether a text names a database on its own.
        NamesDatabase(bool),
        /// The current newest rows of a watched list, newest first.
        News(Vec<Row>),
        /// Reason why the watched rows cannot be read, valid until the next news.
        Unread(String),
        /// Rows exported so far.
        Exporting(usize),
        /// Positions of the proposed changes that would change nothing; the following plan leaves them out.
        NothingToDo(Vec<usize>),
        /// Plan of the proposal.
        Planned(Result<Box<Plan>, Refusal>),
        /// A plan was applied with this reason, fully or in part.
        Applied(Option<String>, AppliedPlan),
        /// Number of situations for which recall was computed so far.
        LookingAhead(usize),
        /// An erasure is planned or running: its current step, and its progress.
        Erasing(String, u64),
        /// Erasures that have not ended verified.
        Unfinished(Vec<UnfinishedErasure>),
        /// Current stage of ranking a situation.
        Recalling(&'static str),
        /// While an answer is computed: rows of an entity read so far.
        Told(Entity, usize),
        /// Progress of a job that runs here.
        JobBeat(JobBeat),
        /// Entries of the audit trail read so far.
        WalkingTrail(u64),
    }
}

impl Reply {
    /// Whether it is the last reply to its request.
    pub fn is_last(&self) -> bool {
        match self {
            Reply::Exporting(_)
            | Reply::News(_)
            | Reply::Unread(_)
            | Reply::NothingToDo(_)
            | Reply::LookingAhead(_)
            | Reply::Erasing(..)
            | Reply::Recalling(_)
            | Reply::Told(..)
            | Reply::WalkingTrail(..)
            | Reply::JobBeat(_) => false,
            Reply::Finding(Ok(news)) => *news == LookNews::Done,
            _ => true,
        }
    }
}
