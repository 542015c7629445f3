//! Jobs that run and ran in this console.

use super::ticket::Ticket;
use crate::job::plan::{JobOffer, JobProgress, JobReceipt};

/// Lines of a log that are kept.
const LOG: usize = 200;

/// A job that this console runs.
#[derive(Debug, Clone, PartialEq)]
pub struct LiveJob {
    /// Number of the request.
    pub ticket: Ticket,
    /// Name of the job.
    pub name: String,
    /// How far it is; none before it was heard of.
    pub progress: Option<Box<JobProgress>>,
}

/// What runs and ran in this console.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RunningJobs {
    /// What runs.
    pub live: Vec<LiveJob>,
    /// What was said of each job, the newest last.
    pub log: Vec<(String, String)>,
    /// The receipts of those that ended, the newest last.
    pub receipts: Vec<(String, JobReceipt)>,
    /// When the last one has stopped, the console ends.
    pub leaving: bool,
}

impl RunningJobs {
    /// A job that runs here.
    #[must_use]
    pub fn of(&self, name: &str) -> Option<&LiveJob> {
        self.live.iter().find(|live| live.name == name)
    }

    /// How far a job's latest run is: as it runs here, else as it was read.
    #[must_use]
    pub fn run_of(&self, offer: &JobOffer) -> Option<JobProgress> {
        let here = self.of(&offer.name).and_then(|live| live.progress.as_deref());
        here.or(offer.run.as_ref()).cloned()
    }

    /// Writes a line into the log of a job.
    pub fn note(&mut self, name: &str, line: String) {
        self.log.push((name.to_owned(), line));
        let surplus = self.log.len().saturating_sub(LOG);
        self.log.drain(..surplus);
    }
}

/// How the console is left while a job runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeavingChoice {
    /// Not yet.
    Wait,
    /// Jobs pause first.
    Pause,
    /// Jobs pause first, and the command that resumes them is handed over.
    Hand,
}
