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

/// A related piece of what a detail shows.
#[derive(Debug, Clone, PartialEq)]
pub struct Related {
    /// Relation of the rows to the one shown, such as `referenced by`.
    pub title: String,
    /// The rows.
    pub rows: Vec<Row>,
    /// There are more than those.
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
    /// Time when it was last looked at, canonical; `None` when unknown.
    pub looked: Option<String>,
    /// Others depend on it.
    pub production: bool,
    /// Profile, path or address that opens the database.
    pub open: String,
}

/// A database that was opened next to the one that is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TriedDatabase {
    /// Path or URL, without a password.
    pub location: String,
    /// It replaces the one that is shown: another file has replaced its path.
    pub replaces: bool,
}

/// Number of rows in a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowCount {
    /// So many at least.
    pub rows: u64,
    /// There are more; nobody counted further.
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
    #[must_use]
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

/// A request to read, look for or do something outside. It is answered by a [`Reply`].
#[derive(Debug, Clone, PartialEq)]
pub enum Request {
    /// Read the state of the database.
    LoadStatus,
    /// Read which tables there are.
    LoadTables,
    /// Read rows of a table, after a page with that cursor.
    LoadTableRows(String, Option<String>),
    /// Count the rows of a table by the day of their creation.
    LoadGrowth(String),
    /// Draft a layout for the database.
    DraftLayout,
    /// Read the places that are kept.
    LoadPlaces,
    /// Keep a place.
    KeepPlace(Box<KeptPlace>),
    /// Forget the place of that name.
    ForgetPlace(String),
    /// Find out which databases there are to open.
    LoadDatabases,
    /// Find out whether a text is the path of a file or a folder, or an address, and so names a database on its own.
    NamesDatabase(String),
    /// Open a database, by its profile, path or address, next to this one.
    TryDatabase(String),
    /// Show rows as they were at a moment from now on; none shows them as they are.
    LookBack(Option<Moment>),
    /// Look for words in the texts of one kind of row, after a page with that cursor.
    Find(Box<Search>, Entity, Option<String>),
    /// Count the rows of a list, as far as that is quick.
    Count(Box<Query>),
    /// Read the values that the newest rows of a kind hold in a column.
    LoadValues(Entity, &'static str),
    /// Read a page.
    LoadPage(Box<Query>),
    /// Read a row with everything about it: its id, and its key where several rows have that id.
    LoadDetail(Entity, RowKey),
    /// Read rows that are related to one.
    LoadRelated(Vec<(String, Relation)>),
    /// Read what rows are called that other rows refer to, by their ids.
    LoadNames(Vec<(Entity, Vec<String>)>),
    /// Look each second whether something was written, and tell the newest rows of a list when it was.
    Watch(Box<Query>),
    /// Read who is under a legal hold.
    LoadHolds,
    /// Read something again that nobody asked for: no sooner than that costs little.
    Renew(Box<Request>),
    /// Find out what waits for someone.
    LoadWork,
    /// Plan what is proposed, and keep the plan under that number until it is applied or cancelled.
    Plan(Box<Proposal>),
    /// Plan what nobody has asked for yet, to look at what it would come to. Answered and kept as a plan.
    PlanAhead(Box<Operation>),
    /// Apply a plan that was made before, or plan and apply each of several operations.
    Apply {
        /// Number of the request that made the plan.
        planned: Ticket,
        /// Reason for the change.
        reason: Option<String>,
    },
    /// Find out what an operation would come to.
    Preview(Box<Operation>),
    /// Find out how recall would change by what was planned.
    WhatIf {
        /// Number of the request that made the plan.
        planned: Ticket,
        /// True when the look ahead may take its time.
        patient: bool,
    },
    /// Read a topic, or what is around an episode, in order of time.
    Replay {
        /// Subject of the replay.
        about: ReplaySubject,
        /// Maximum number of episodes.
        limit: usize,
    },
    /// Ask whether and how the database can be written.
    CheckWritable,
    /// Apply the pending migrations, and the optional ones of these names, and open the database again.
    Migrate(Vec<String>),
    /// Find out what erasing a person would do.
    PlanErasure(String, ErasureChoice),
    /// Find out where a person is: the reply is [`Reply::ErasurePlanned`].
    LoadWhereabouts(String),
    /// Find out which erasures have not ended verified.
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
    /// Look through the database for findings; no longer than is fit next to other work when `brief`.
    Look {
        /// On a huge database some is left for later.
        brief: bool,
    },
    /// Read the text that a finding is about: its kind, and one of its rows.
    Quote(&'static str, Entity, String),
    /// Read what is muted.
    LoadMutes,
    /// Mute a kind of finding, or a row by its id, for that reason.
    Mute(String, String),
    /// Hear of a kind of finding, or of a row, again.
    Unmute(String),
    /// Read how the migrations stand.
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
        /// True when something may have been written: what is kept in memory is read again.
        fresh: bool,
    },
    /// Read the questions that are kept.
    LoadSaved,
    /// Keep a question.
    SaveQuery(Box<SavedQuestion>),
    /// Forget the saved question of that name.
    ForgetQuery(String),
    /// Read which jobs there are.
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
    /// Ask a job that runs elsewhere to stop.
    AskJob(String, JobAsk),
    /// Write rows to a file.
    Export(Box<Export>),
    /// Walk the chain of our audit trail from its beginning, and compare it with the anchors that are kept.
    VerifyTrail,
}

/// A reply to a request. Some only report progress; the last one ends the request.
#[derive(Debug, Clone, PartialEq)]
pub enum Reply {
    /// Tables of the database.
    Tables(Result<Vec<TableEntry>, RequestFailure>),
    /// Rows of a table.
    TableRows(Result<TablePage, RequestFailure>),
    /// Rows of a table by the day of their creation, or the reason why that is not known.
    Grown(Result<Result<TableGrowth, String>, RequestFailure>),
    /// A drafted layout, as the text of its file.
    Drafted(Result<String, RequestFailure>),
    /// The places that are kept.
    Places(Result<Vec<KeptPlace>, RequestFailure>),
    /// Databases that can be opened.
    Databases(Vec<KnownDatabase>),
    /// Whether a text names a database on its own.
    NamesDatabase(bool),
    /// Whether a database was opened.
    Tried(Result<TriedDatabase, RequestFailure>),
    /// Rows are shown as they were at a moment, or as they are.
    LookedBack(Result<Option<Box<AsOf>>, RequestFailure>),
    /// Rows that hold what was looked for.
    Found(Result<FoundRows, RequestFailure>),
    /// The state of the database.
    Status(Result<Box<StoreStatus>, RequestFailure>),
    /// Number of rows in a list.
    Counted(Result<RowCount, RequestFailure>),
    /// Values of a column, the most frequent first.
    Values(Result<Vec<String>, RequestFailure>),
    /// A page of a list.
    Page(Result<Page, RequestFailure>),
    /// The details of a row; none when it is not there.
    Detail(Result<Option<Content>, RequestFailure>),
    /// Rows related to the row in the detail.
    Related(Result<Vec<Related>, RequestFailure>),
    /// Work that waits for someone.
    Work(Result<Box<WaitingWork>, RequestFailure>),
    /// Rows that others refer to, with what names them.
    Named(Result<Vec<Row>, RequestFailure>),
    /// Ids of the people under a legal hold.
    Holds(Result<Vec<String>, RequestFailure>),
    /// The newest rows of a list that is watched are these now, the newest first.
    News(Vec<Row>),
    /// Reason why the watched rows cannot be read. The next news take it back.
    Unread(String),
    /// Rows were written: how many, to which file.
    Exported(Result<(usize, String), RequestFailure>),
    /// So many rows were written so far.
    Exporting(usize),
    /// Positions of those proposed changes that have nothing to do: they are left out of the plan that follows.
    NothingToDo(Vec<usize>),
    /// Plan of what was proposed.
    Planned(Result<Box<Plan>, Refusal>),
    /// A plan was applied with that reason, as far as it came.
    Applied(Option<String>, AppliedPlan),
    /// Plan that previews an operation; it is not kept.
    Previewed(Result<Box<Plan>, RequestFailure>),
    /// So many situations were asked for a look ahead at recall.
    LookingAhead(usize),
    /// Changes that recall would undergo.
    LookedAhead(Result<Box<WhatIf>, RequestFailure>),
    /// A topic as it happened.
    Replayed(Result<Box<ReplayedTopic>, RequestFailure>),
    /// Whether and how the database can be written.
    Writable(Result<WriteState, RequestFailure>),
    /// Migrations were applied, with their names, and the database was opened again.
    Migrated(Result<(Vec<String>, Box<OpenedDatabase>), RequestFailure>),
    /// Preview of erasing a person.
    ErasurePlanned(Result<Box<Preview>, RequestFailure>),
    /// A person is being erased, or that is planned: what is being done, and how far it is.
    Erasing(String, u64),
    /// Erasures that have not ended verified.
    Unfinished(Vec<UnfinishedErasure>),
    /// Outcome of erasing a person.
    Erased(Result<Box<ErasureOutcome>, RequestFailure>),
    /// Entries of our audit trail, newest first.
    Trail(Result<Vec<ListedEntry>, RequestFailure>),
    /// News of a look for findings.
    Finding(Result<LookNews, RequestFailure>),
    /// The text that a finding is about, where it is about one.
    Quoted(Result<Option<OffendingQuote>, RequestFailure>),
    /// Findings that are muted now.
    Mutes(Result<Vec<Mute>, RequestFailure>),
    /// State of the migrations.
    Migrations(Result<Box<MigrationList>, RequestFailure>),
    /// Answer to a question about the memory.
    Answer(Result<StudyAnswer, RequestFailure>),
    /// Rows that a situation recalls, and how long that took.
    Recalled(Result<Box<(Recalled, StageTimes)>, RequestFailure>),
    /// Current stage of ranking a situation.
    Recalling(&'static str),
    /// The questions that are kept.
    Saved(Result<Vec<SavedQuestion>, RequestFailure>),
    /// For an answer, this many rows of an entity were read so far.
    Told(Entity, usize),
    /// The jobs that there are.
    Jobs(Result<Vec<JobOffer>, RequestFailure>),
    /// Progress of a job that runs here.
    JobBeat(JobBeat),
    /// A job that ran here has stopped: its receipt.
    JobEnded(Result<Box<JobReceipt>, RequestFailure>),
    /// So many entries of the audit trail were read.
    WalkingTrail(u64),
    /// Verdict on the audit trail.
    TrailVerified(Result<Box<AuditVerdict>, RequestFailure>),
    /// A job of another process was asked to stop: how it stands now.
    JobAsked(Result<JobProgress, RequestFailure>),
}

impl Reply {
    /// Whether no further reply follows to the same request.
    #[must_use]
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

    /// Returns the failure that the reply carries, if any.
    pub fn failure_mut(&mut self) -> Option<&mut RequestFailure> {
        match self {
            Reply::Status(Err(failure))
            | Reply::Places(Err(failure))
            | Reply::Tables(Err(failure))
            | Reply::TableRows(Err(failure))
            | Reply::Grown(Err(failure))
            | Reply::Drafted(Err(failure))
            | Reply::Tried(Err(failure))
            | Reply::Counted(Err(failure))
            | Reply::Values(Err(failure))
            | Reply::LookedBack(Err(failure))
            | Reply::Found(Err(failure))
            | Reply::Page(Err(failure))
            | Reply::Detail(Err(failure))
            | Reply::Related(Err(failure))
            | Reply::Named(Err(failure))
            | Reply::Holds(Err(failure))
            | Reply::Work(Err(failure))
            | Reply::Exported(Err(failure))
            | Reply::Previewed(Err(failure))
            | Reply::LookedAhead(Err(failure))
            | Reply::Replayed(Err(failure))
            | Reply::Writable(Err(failure))
            | Reply::Migrated(Err(failure))
            | Reply::ErasurePlanned(Err(failure))
            | Reply::Erased(Err(failure))
            | Reply::Trail(Err(failure))
            | Reply::Finding(Err(failure))
            | Reply::Quoted(Err(failure))
            | Reply::Mutes(Err(failure))
            | Reply::Migrations(Err(failure))
            | Reply::Answer(Err(failure))
            | Reply::Recalled(Err(failure))
            | Reply::Saved(Err(failure))
            | Reply::Jobs(Err(failure))
            | Reply::JobEnded(Err(failure))
            | Reply::JobAsked(Err(failure))
            | Reply::TrailVerified(Err(failure)) => Some(failure),
            _ => None,
        }
    }
}
