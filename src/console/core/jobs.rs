//! Jobs that run and ran in this console.

use super::ticket::Ticket;
use crate::job::plan::{JobOffer, JobProgress, JobReceipt};

/// Most lines kept of a log.
const LOG: usize = 200;

/// A job that this console runs.
#[derive(Debug, Clone, PartialEq)]
pub struct LiveJob {
    /// Number of the request.
    pub ticket: Ticket,
    /// Name of the job.
    pub name: String,
    /// The reason that was given.
    pub reason: Option<String>,
    /// Progress of the job; `None` before any was reported.
    pub progress: Option<Box<JobProgress>>,
}

/// Jobs that run in this console, and those that ran in it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RunningJobs {
    /// Running jobs.
    pub live: Vec<LiveJob>,
    /// Job names with the messages about them, newest last.
    pub log: Vec<(String, String)>,
    /// Receipts of ended jobs, newest last.
    pub receipts: Vec<(String, JobReceipt)>,
    /// Whether the console ends as soon as the last job has stopped.
    pub leaving: bool,
}

impl RunningJobs {
    /// A job that runs here.
    pub fn of(&self, name: &str) -> Option<&LiveJob> {
        self.live.iter().find(|live| live.name == name)
    }

    /// Returns the progress of a job's latest run: the run in this console, else the stored one.
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

/// Choice of how to leave the console while a job runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeavingChoice {
    /// Not yet.
    Wait,
    /// Jobs pause first.
    Pause,
    /// Pause the jobs, and print the command that resumes them.
    Hand,
}
