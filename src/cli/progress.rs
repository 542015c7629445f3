//! Progress of a command: one line on standard error, on a terminal, that is overwritten, and removed before anything
//! else is printed there.

use std::io::Write as _;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::context::Session;
use crate::memory::thousands;
use crate::store::tally;
use crate::ui::text::SafeText;

/// Time between two lines.
const OFTEN: Duration = Duration::from_millis(250);
/// Time before progress is shown.
const SOON: Duration = Duration::from_secs(1);

#[derive(Default)]
struct ProgressLine {
    is_told: bool,
    /// Whether the line is on the terminal.
    stands: bool,
    /// The current step.
    doing: String,
}

static LINE: Mutex<ProgressLine> = Mutex::new(ProgressLine { is_told: false, stands: false, doing: String::new() });

fn line() -> MutexGuard<'static, ProgressLine> {
    LINE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Shows the number of rows read, the rate, and the expected end of the current reads, until the command prints
/// something.
pub fn begin(session: &Session<'_>) {
    if !session.shows_progress() || std::mem::replace(&mut line().is_told, true) {
        return;
    }
    tally::begin();
    thread::spawn(|| {
        let began = Instant::now();
        thread::sleep(SOON);
        loop {
            let mut line = line();
            if !line.is_told {
                return;
            }
            let words = words(&line.doing, tally::rows(), began.elapsed());
            let _ = write!(std::io::stderr(), "\r\x1b[K{}", SafeText::new(&words));
            line.stands = true;
            drop(line);
            thread::sleep(OFTEN);
        }
    });
}

/// Shows the current step beside the rows.
pub fn doing(words: &str) {
    let mut line = line();
    if line.doing != words {
        words.clone_into(&mut line.doing);
    }
}

/// Removes the line for good.
pub fn end() {
    let mut line = line();
    line.is_told = false;
    if std::mem::take(&mut line.stands) {
        let _ = write!(std::io::stderr(), "\r\x1b[K");
    }
}

fn words(doing: &str, (read, expected): (u64, u64), took: Duration) -> String {
    let rate = read as f64 / took.as_secs_f64();
    let mut words = if doing.is_empty() { String::new() } else { format!("{doing}: ") };
    words.push_str(&thousands(read));
    if expected > read {
        words.push_str(&format!(" of about {}", thousands(expected)));
    }
    words.push_str(&format!(" rows read, {}/s", thousands(rate as u64)));
    if expected > read && rate >= 1.0 {
        words.push_str(&format!(", {:.0} s left", ((expected - read) as f64 / rate).ceil()));
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_is_told_where_one_is_known() {
        let second = Duration::from_secs(1);
        assert_eq!(words("", (2_000, 0), second), "2,000 rows read, 2,000/s");
        assert_eq!(
            words("episode", (2_000, 7_000), second),
            "episode: 2,000 of about 7,000 rows read, 2,000/s, 3 s left"
        );
        assert_eq!(words("", (0, 10), second), "0 of about 10 rows read, 0/s");
    }
}
