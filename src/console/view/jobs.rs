//! Progress of a job, in a few words.

use crate::job::plan::JobProgress;
use crate::ui::{SafeText, figures};

/// Describes the rate and the remaining time of a run; used in the footer too.
pub fn note(run: &JobProgress) -> SafeText {
    if run.state.is_active() && run.part().is_some_and(|part| part >= 1.0) {
        return "checking the result".into();
    }
    let mut words = Vec::new();
    if let Some(rate) = run.rate {
        words.push(format!("{}/s", figures::count(rate.round() as u64)));
    }
    if let Some(seconds) = run.eta_seconds {
        words.push(format!("{} left", figures::duration(seconds)));
    }
    SafeText::new(&words.join(", "))
}
