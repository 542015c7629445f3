//! Sentences from below as the console tells them: times by the clock of the zone, and keys in the place of options.

use crate::console::view::words::with_moments;

/// Remedies that a command line spells, and what the console has in their place.
const SPELLED: [(&str, &str); 12] = [
    (
        "--mentions redact takes the words out, --mention ID=redact those of one",
        "at the step about mentions, c m decides about all, and x takes out the words of one",
    ),
    ("by --mention", "at the step about mentions"),
    ("--account erase takes it", "c a takes it"),
    ("--user and --agent name another", "n u and n a name another"),
    ("--again adds another", "change that one, or say something else"),
    ("say --user", "name the user"),
    ("the same with --resume goes on", "c p on the person resumes it"),
    ("--resume plans the rest again", "c p on the person plans the rest again"),
    ("--resume goes on, or begins it", "c p on the person resumes or begins it"),
    ("--resume goes on", "c p on the person resumes it"),
    ("--resume continues it", "c p on the person resumes it"),
    ("resume it by --resume", "c p on the person resumes it"),
];

/// A sentence as it is shown.
#[must_use]
pub fn told(text: &str) -> String {
    SPELLED.iter().fold(with_moments(text), |text, (option, key)| text.replace(option, key))
}
