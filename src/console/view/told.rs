//! Messages from lower layers as shown in the console: times by the zone's clock, and keys in place of options.

use crate::change::plan::erasure::Mentions;
use crate::console::core::CommandId;
use crate::console::screens::erase::messages::EraseChoice;
use crate::console::screens::recall::messages::RecallCommand;
use crate::console::view::keys::drawn_key;
use crate::console::view::words::with_moments;

const ERASE: CommandId = CommandId::Erase;
const MENTIONS: CommandId = CommandId::Turn(EraseChoice::Mentions);
const REDACT: CommandId = CommandId::Turn(EraseChoice::Decide(Mentions::Redact, false));
const ACCOUNT: CommandId = CommandId::Turn(EraseChoice::Account);
const USER: CommandId = CommandId::Recall(RecallCommand::User);
const AGENT: CommandId = CommandId::Recall(RecallCommand::Agent);

/// Remedies in terms of the command line, and their replacements in the console: `{}` is the key of the next command.
const SPELLED: [(&str, &str, &[CommandId]); 16] = [
    (
        "--mentions redact removes the words, --mention ID=redact those of one mention",
        "at the step about mentions, {} decides about all, and {} removes the words of one",
        &[MENTIONS, REDACT],
    ),
    (
        "--mention ID=redact removes the words of one mention",
        "at the step about mentions, {} removes the words of one",
        &[REDACT],
    ),
    ("by --mention", "at the step about mentions", &[]),
    ("--account erase deletes it", "{} erases it too", &[ACCOUNT]),
    ("--user and --agent name another", "{} and {} name another", &[USER, AGENT]),
    ("--again adds another", "change that one, or say something else", &[]),
    ("say --user", "name the user", &[]),
    ("repeat the command with --resume to continue", "{} on the person resumes it", &[ERASE]),
    ("--resume plans the rest again", "{} on the person plans the rest again", &[ERASE]),
    ("--resume continues or starts it", "{} on the person resumes or starts it", &[ERASE]),
    ("--resume continues", "{} on the person resumes it", &[ERASE]),
    ("--resume continues it", "{} on the person resumes it", &[ERASE]),
    ("resume it with --resume", "{} on the person resumes it", &[ERASE]),
    ("--keep-diverse fills a window", "preferring different ones fills a window", &[]),
    ("name it by --window N or --window own", "set `newest kept`", &[]),
    ("--reason or --ticket names the person, and both are", "the reason names the person, and it is", &[]),
];

/// A message as shown.
pub fn told(text: &str) -> String {
    let spelled = |text: String, (option, words, keys): &(&str, &str, &[CommandId])| {
        if !text.contains(option) {
            return text;
        }
        let keyed = |words: String, id: &CommandId| words.replacen("{}", &drawn_key(*id), 1);
        text.replace(option, &keys.iter().fold((*words).to_owned(), keyed))
    };
    SPELLED.iter().fold(with_moments(text), spelled)
}
