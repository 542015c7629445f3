//! Changes that can be requested, as plain data that can be stored and read back: the same for commands, console and
//! files. Each operation has a description for users and a command line; [`super::plan()`] plans it.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::plan::Change;
use crate::memory::Entity;
use crate::memory::agreeing;
use crate::memory::prune::PruneWindow;
use crate::memory::retention::RetentionRules;
use crate::memory::utility::Signal;

/// Fields of a feedback row to change; `None` keeps the stored value.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FeedbackFields {
    /// `thumbs_up`, `thumbs_down` or `rating`.
    pub kind: Option<String>,
    /// 1 to 5, with the kind `rating`.
    pub rating: Option<i64>,
    /// The answer that the user wanted.
    pub correction: Option<String>,
    /// Person who gave the feedback; `None` means the episode's user when feedback is added.
    pub user: Option<String>,
    /// Add it even if the episode has equal feedback by the same person already.
    pub again: bool,
}

/// Rules for deleting cases from their banks.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Pruning {
    /// Only this user's banks.
    pub user: Option<String>,
    /// Only this agent's banks.
    pub agent: Option<String>,
    /// Number of newest cases that each bank keeps.
    pub window: PruneWindow,
    /// Cases older than a time, or than an age such as `90d` at the time of planning.
    pub older_than: Option<String>,
    /// Cases with a reward below this, 0 to 1.
    pub below_reward: Option<f64>,
    /// Cases whose message is repeated by a newer case of the bank.
    pub duplicates: bool,
    /// A window is filled with cases that differ first.
    pub keep_diverse: bool,
}

impl Pruning {
    /// Whether a rule is named that applies alone, without the banks' own windows.
    pub fn names_one(&self) -> bool {
        self.older_than.is_some() || self.below_reward.is_some() || self.duplicates
    }

    /// The command's arguments.
    pub fn words(&self) -> Vec<String> {
        let window = match self.window {
            PruneWindow::Unsaid => None,
            PruneWindow::Own => Some("own".to_owned()),
            PruneWindow::Newest(window) => Some(window.to_string()),
        };
        let options = [
            ("--user", self.user.clone()),
            ("--agent", self.agent.clone()),
            ("--window", window),
            ("--older-than", self.older_than.clone()),
            ("--below-reward", self.below_reward.map(|reward| reward.to_string())),
        ];
        let switches = [("--duplicates", self.duplicates), ("--keep-diverse", self.keep_diverse)];
        words(["prune"]).into_iter().chain(with_options(options)).chain(with_switches(switches)).collect()
    }
}

/// Default seed for splitting pairs into training and held-out queries.
pub const TRAINING_SEED: u64 = 1;

/// A file of pairs to learn from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PairsFile {
    /// Name of the file.
    pub name: String,
    /// Text of the file: one pair per line.
    pub text: String,
}

/// Formats of files that can be imported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ImportFormat {
    /// A τ-bench result file: a JSON list of trajectories.
    TauBench,
    /// A memento memory: one case a line.
    Memento,
    /// Our own export: one row a line.
    Jsonl,
}

impl ImportFormat {
    /// Every format.
    pub const ALL: [ImportFormat; 3] = [ImportFormat::TauBench, ImportFormat::Memento, ImportFormat::Jsonl];

    /// The format's name.
    pub fn word(self) -> &'static str {
        match self {
            ImportFormat::TauBench => "tau-bench",
            ImportFormat::Memento => "memento",
            ImportFormat::Jsonl => "jsonl",
        }
    }

    /// The unit of a file that is imported or skipped as a whole.
    pub fn unit(self) -> &'static str {
        match self {
            ImportFormat::TauBench => "trajectory",
            ImportFormat::Memento | ImportFormat::Jsonl => "line",
        }
    }

    /// Parses a format's name.
    pub fn parse(word: &str) -> Option<ImportFormat> {
        ImportFormat::ALL.into_iter().find(|format| format.word() == word)
    }
}

/// Feedback as its reader saw it, from which a signal follows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SeenFeedback {
    /// Id of the feedback.
    pub id: String,
    /// Values that decide about the signal, by canonical column.
    pub values: Map<String, Value>,
}

/// A change that can be planned. Its name in files is that of its plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "operation", rename_all = "lowercase", deny_unknown_fields)]
pub enum Operation {
    /// Add feedback to an episode.
    #[serde(rename = "feedback.add")]
    AddFeedback {
        /// The episode's id.
        episode: String,
        /// Content of the new feedback.
        fields: FeedbackFields,
    },
    /// Give an episode a utility signal.
    Signal {
        /// The episode's id.
        episode: String,
        /// Signal to give.
        signal: Signal,
        /// Reason, for those who read the episode's history of signals.
        reason: Option<String>,
        /// Feedback that it follows from.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        feedback: Option<SeenFeedback>,
    },
    /// Retract a utility signal.
    #[serde(rename = "signal.retract")]
    Retract {
        /// The signal's id.
        id: String,
    },
    /// Make an episode follow another one.
    Link {
        /// The later episode.
        child: String,
        /// The earlier episode.
        parent: String,
    },
    /// Remove an episode's parent.
    Unlink {
        /// The episode's id.
        child: String,
    },
    /// Set the reward of a case, and perhaps its outcome.
    Reward {
        /// The case's id.
        case: String,
        /// From 0 to 1.
        reward: f64,
        /// New outcome of the case, when that changes too.
        outcome: Option<String>,
    },
    /// Set the number of cases that a bank keeps.
    #[serde(rename = "profile.set")]
    Window {
        /// The profile's id.
        profile: String,
        /// Number of newest cases to keep; `None` keeps all.
        window: Option<i64>,
    },
    /// Put a policy version to use.
    #[serde(rename = "policy.activate")]
    ActivatePolicy {
        /// Id of the policy version.
        id: String,
    },
    /// Train a new policy version.
    #[serde(rename = "policy.train")]
    TrainPolicy {
        /// The profile's id.
        bank: String,
        /// Pairs to learn from; `None` means the recalls of the bank's cases.
        pairs: Option<PairsFile>,
        /// Seed of the split into training and held-out queries.
        seed: u64,
    },
    /// Remove cases from banks by rules.
    Prune(Pruning),
    /// Exclude cases from recall.
    Quarantine {
        /// Their ids.
        cases: Vec<String>,
    },
    /// Return cases to recall.
    Release {
        /// Their ids.
        cases: Vec<String>,
    },
    /// Put a legal hold on a person: nobody can erase them while it is active.
    Hold {
        /// The person: id, e-mail, name, session or profile.
        person: String,
        /// Reason for the hold.
        reason: Option<String>,
    },
    /// Lift a legal hold.
    Unhold {
        /// The person whose hold is lifted.
        person: String,
    },
    /// Add one curated memory.
    Record {
        /// Entity of the memory.
        entity: Entity,
        /// The memory as JSON, in canonical columns.
        text: String,
    },
    /// Add the rows of a file.
    Import {
        /// Format of the file.
        format: ImportFormat,
        /// Name of the file.
        name: String,
        /// Lines of the file: rows, cases, or trajectories.
        text: String,
        /// Skip unreadable rows.
        skip_bad: bool,
    },
    /// Set columns of a row.
    Edit {
        /// Entity of the row.
        entity: Entity,
        /// Id of the row.
        id: String,
        /// Canonical columns and their new values.
        set: Map<String, Value>,
        /// Values to be replaced, by column, as the editor saw them; a column without one replaces any value.
        #[serde(default)]
        instead_of: Map<String, Value>,
    },
    /// Delete rows, with their dependents.
    Remove {
        /// Entity of the rows.
        entity: Entity,
        /// Their ids.
        ids: Vec<String>,
    },
    /// Replace a memory with a new one; the old one stays.
    Supersede {
        /// The id of the one that stays, marked.
        memory: String,
        /// Text of the new memory.
        text: String,
    },
    /// Merge copies into a memory.
    Merge {
        /// The id of the one that stays.
        memory: String,
        /// The ids of the copies to delete.
        copies: Vec<String>,
    },
    /// Delete rows that retention rules no longer keep.
    Retain {
        /// Name of the file with the rules.
        file: String,
        /// The rules.
        rules: RetentionRules,
    },
    /// Undo a change.
    Undo {
        /// Number of its audit entry.
        seq: i64,
    },
}

/// Columns that are set automatically, and what sets them.
const FOLLOWING: &[(Entity, &str, &str)] = &[
    (Entity::Episode, "utility", "it is derived from the history of signals: `signal EPISODE …` adds one"),
    (
        Entity::Episode,
        "feedback_score",
        "it is the mean of the feedback: `feedback add`, `edit` and `remove` change it",
    ),
    (Entity::Episode, "feedback_ids", "the list is derived from the feedback: `feedback add` and `remove` change it"),
    (
        Entity::Episode,
        "canvas_ids",
        "the list is derived from the canvas events: `record` and `remove canvas_event` change it",
    ),
    (
        Entity::Episode,
        "canvas_action_count",
        "it is the number of canvas events: `backfill canvas-links` counts them again",
    ),
    (Entity::Episode, "duration_seconds", "it is derived from `started_at` and `ended_at`"),
    (Entity::Episode, "parent_id", "chains must stay free of cycles: `link CHILD PARENT` and `unlink CHILD` change it"),
    (
        Entity::CanvasEvent,
        "episode_id",
        "lists and counts of both episodes depend on it: `remove` the event and `record` it for the other episode",
    ),
    (Entity::Case, "message_hash", "it is derived from the prompt"),
    (Entity::Case, "quarantined", "`quarantine CASE` and `release CASE` change it"),
    (Entity::Case, "has_vector", "it says whether a vector is stored: `backfill embeddings` makes them"),
    (Entity::Memory, "uses", "it is the number of episodes that used the memory"),
    (Entity::Memory, "utility", "it is derived from the episodes that used the memory: `signal EPISODE …` changes it"),
    (Entity::Feedback, "score", "it is derived from `kind` and `rating`"),
    (Entity::Feedback, "counts", "it is derived from `kind` and `rating`"),
    (Entity::Feedback, "source", "it is the name of the table"),
    (Entity::Policy, "status", "`policy activate ID` changes it"),
];

/// Explains what sets a column that cannot be set by hand; `None` for other columns.
pub fn set_by(entity: Entity, column: &str) -> Option<&'static str> {
    FOLLOWING.iter().find(|(e, c, _)| *e == entity && *c == column).map(|(_, _, why)| *why)
}

/// An operation for people.
struct Face<'o> {
    /// Short description of the operation.
    title: String,
    /// The id it is about; `None` if it is about a number of rows.
    subject: Option<&'o str>,
    /// The arguments of its command after the database.
    words: Vec<String>,
}

impl<'o> Face<'o> {
    /// An operation about one thing.
    fn about(subject: &'o str, title: String, words: Vec<String>) -> Self {
        Face { title, subject: Some(subject), words }
    }

    /// An operation about some rows.
    fn of_rows(title: String, words: Vec<String>) -> Self {
        Face { title, subject: None, words }
    }
}

impl Operation {
    fn face(&self) -> Face<'_> {
        match self {
            Operation::AddFeedback { episode, fields } => {
                let words = words(["feedback", "add", episode]).into_iter().chain(fields.words()).collect();
                Face::about(episode, format!("Add feedback to episode {episode}"), words)
            }
            Operation::Signal { episode, signal, .. } => {
                let word = signal.word();
                Face::about(episode, format!("Signal {word} for episode {episode}"), words(["signal", episode, word]))
            }
            Operation::Retract { id } => {
                Face::about(id, format!("Retract signal {id}"), words(["signal", "retract", id]))
            }
            Operation::Link { child, parent } => {
                Face::about(child, format!("Link episode {child} to {parent}"), words(["link", child, parent]))
            }
            Operation::Unlink { child } => {
                Face::about(child, format!("Unlink episode {child}"), words(["unlink", child]))
            }
            Operation::Reward { case, reward, outcome } => {
                let words = words(["reward", case, &reward.to_string()]).into_iter();
                let words = words.chain(with_options([("--outcome", outcome.clone())])).collect();
                Face::about(case, format!("Set the reward of case {case} to {reward}"), words)
            }
            Operation::Window { profile, window } => of_window(profile, *window),
            Operation::ActivatePolicy { id } => {
                Face::about(id, format!("Activate policy {id}"), words(["policy", "activate", id]))
            }
            Operation::TrainPolicy { bank, pairs, seed } => {
                of_training(bank, pairs.as_ref().map(|file| &*file.name), *seed)
            }
            Operation::Prune(rules) => Face::of_rows("Prune banks".to_owned(), rules.words()),
            Operation::Quarantine { cases } => of_cases("Quarantine", "quarantine", cases),
            Operation::Release { cases } => of_cases("Release", "release", cases),
            Operation::Hold { person, .. } => Face::about(person, format!("Hold {person}"), words(["hold", person])),
            Operation::Unhold { person } => {
                Face::about(person, format!("End the hold on {person}"), words(["unhold", person]))
            }
            Operation::Record { entity, .. } => {
                Face::of_rows(format!("Record a new {}", entity.title()), words(["record", entity.name(), "-"]))
            }
            Operation::Import { format, name, skip_bad, .. } => {
                let words = words(["import", format.word(), name]).into_iter();
                let words = words.chain(with_switches([("--skip-bad", *skip_bad)])).collect();
                Face::of_rows(format!("Import {name}"), words)
            }
            Operation::Edit { entity, id, set, .. } => {
                let values = set.iter().map(|(column, value)| match value {
                    Value::String(text) if text == "null" => format!("{column}='null'"),
                    Value::String(text) => format!("{column}={text}"),
                    other => format!("{column}={other}"),
                });
                let words = words(["edit", entity.name(), id]).into_iter().chain(values).collect();
                Face::about(id, format!("Edit {} {id}", entity.title()), words)
            }
            Operation::Remove { entity, ids } => {
                let title = match &ids[..] {
                    [id] => format!("Remove {} {id}", entity.title()),
                    ids => format!("Remove {}", entity.counted(ids.len())),
                };
                match (entity, &ids[..]) {
                    (Entity::Feedback, [id]) => Face::about(id, title, words(["feedback", "remove", id])),
                    _ => Face::of_rows(title, with_ids(["remove", entity.name()], ids)),
                }
            }
            Operation::Supersede { memory, text } => {
                Face::about(memory, format!("Supersede memory {memory}"), words(["supersede", memory, "--by", text]))
            }
            Operation::Merge { memory, copies } => {
                let title = agreeing(copies.len(), &format!("Merge {{#}} {{copy|copies}} into memory {memory}"));
                Face::about(memory, title, with_ids(["merge", memory], copies))
            }
            Operation::Retain { file, .. } => {
                Face::of_rows(format!("Apply the rules of {file}"), words(["retain", file]))
            }
            Operation::Undo { seq } => Face::of_rows(format!("Undo change {seq}"), words(["undo", &seq.to_string()])),
        }
    }

    /// Describes the operation in a few words.
    pub fn title(&self) -> String {
        self.face().title
    }

    /// The id to type as confirmation of a grave change; `None` if it is the number of rows.
    pub fn subject(&self) -> Option<&str> {
        self.face().subject
    }

    /// The arguments of its command after the database.
    pub fn words(&self) -> Vec<String> {
        self.face().words
    }

    /// The reason, if the operation has one.
    pub fn reason(&self) -> Option<&str> {
        match self {
            Operation::Signal { reason, .. } | Operation::Hold { reason, .. } => reason.as_deref(),
            _ => None,
        }
    }

    /// The values that the editor saw and wants, if the edit replaces only those.
    pub fn wished(&self) -> Option<Change> {
        let Operation::Edit { entity, id, set, instead_of } = self else { return None };
        (!instead_of.is_empty()).then(|| Change {
            entity: entity.name().to_owned(),
            id: id.clone(),
            before: Value::Object(instead_of.clone()).into(),
            after: Value::Object(set.clone()).into(),
        })
    }

    /// Makes it replace any current value.
    pub fn replace_any(&mut self) {
        if let Operation::Edit { instead_of, .. } = self {
            instead_of.clear();
        }
    }

    /// Whether it can change recalls by itself, rather than only prepare a later change.
    pub fn touches_recall(&self) -> bool {
        !matches!(self, Operation::Window { .. } | Operation::TrainPolicy { .. })
    }

    /// Names of persons in it, to be replaced by pseudonyms and back.
    pub fn persons_mut(&mut self) -> Vec<&mut String> {
        match self {
            Operation::AddFeedback { fields, .. } => fields.user.iter_mut().collect(),
            Operation::Prune(rules) => rules.user.iter_mut().collect(),
            Operation::Hold { person, .. } | Operation::Unhold { person } => vec![person],
            _ => Vec::new(),
        }
    }
}

impl FeedbackFields {
    /// Returns the values that it sets, by column.
    pub fn values(&self) -> Map<String, Value> {
        let values = [
            ("kind", self.kind.clone().map(Value::from)),
            ("rating", self.rating.map(Value::from)),
            ("correction", self.correction.clone().map(Value::from)),
            ("user_id", self.user.clone().map(Value::from)),
        ];
        values.into_iter().filter_map(|(column, value)| Some((column.to_owned(), value?))).collect()
    }

    /// The options of the command.
    fn words(&self) -> impl Iterator<Item = String> {
        let options = [
            ("--kind", self.kind.clone()),
            ("--rating", self.rating.map(|rating| rating.to_string())),
            ("--correction", self.correction.clone()),
            ("--user", self.user.clone()),
        ];
        with_options(options).chain(with_switches([("--again", self.again)]))
    }
}

fn of_window(profile: &str, window: Option<i64>) -> Face<'_> {
    let (kept, size) = match window {
        Some(window) => (agreeing(window, "{#} {case|cases}"), window.to_string()),
        None => ("every case".to_owned(), "all".to_owned()),
    };
    let words = words(["profile", "set", profile, "--window", &size]);
    Face::about(profile, format!("Keep {kept} of profile {profile}"), words)
}

fn of_training<'o>(bank: &'o str, pairs: Option<&str>, seed: u64) -> Face<'o> {
    let seed = Some(seed).filter(|seed| *seed != TRAINING_SEED).map(|seed| seed.to_string());
    let words = words(["policy", "train", bank]).into_iter();
    let words = words.chain(with_options([("--pairs", pairs.map(str::to_owned)), ("--seed", seed)])).collect();
    Face::about(bank, format!("Train a policy for bank {bank}"), words)
}

fn of_cases<'o>(title: &str, command: &str, cases: &[String]) -> Face<'o> {
    let title = match cases {
        [case] => format!("{title} case {case}"),
        cases => format!("{title} {} cases", cases.len()),
    };
    Face::of_rows(title, with_ids([command], cases))
}

fn with_ids<const N: usize>(command: [&str; N], ids: &[String]) -> Vec<String> {
    words(command).into_iter().chain(ids.iter().cloned()).collect()
}

fn words<const N: usize>(words: [&str; N]) -> Vec<String> {
    words.map(str::to_owned).to_vec()
}

fn with_options<const N: usize>(options: [(&'static str, Option<String>); N]) -> impl Iterator<Item = String> {
    options.into_iter().filter_map(|(name, value)| Some([name.to_owned(), value?])).flatten()
}

fn with_switches<const N: usize>(switches: [(&'static str, bool); N]) -> impl Iterator<Item = String> {
    switches.into_iter().filter(|(_, on)| *on).map(|(name, _)| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_operation_is_kept_and_read_back() {
        let fields = FeedbackFields { rating: Some(4), ..FeedbackFields::default() };
        let (entity, set) = (Entity::Feedback, fields.values());
        let pruning =
            Pruning { window: PruneWindow::Newest(5), older_than: Some("90d".to_owned()), ..Pruning::default() };
        let operations = [
            Operation::AddFeedback { episode: "ep-1".to_owned(), fields },
            Operation::Edit { entity, id: "fb-1".to_owned(), set, instead_of: Map::new() },
            Operation::Prune(pruning),
            Operation::Record { entity: Entity::Case, text: "{}".to_owned() },
            Operation::Undo { seq: 3 },
        ];
        for operation in operations {
            let kept = json!(operation);
            assert_eq!(serde_json::from_value::<Operation>(kept.clone()).ok(), Some(operation), "{kept}");
        }
    }

    #[test]
    fn an_operation_with_a_misspelt_field_is_refused() {
        for wrong in [json!({"operation": "undo", "seq": 3, "sq": 4}), json!({"operation": "prune", "windw": "own"})] {
            assert!(serde_json::from_value::<Operation>(wrong.clone()).is_err(), "{wrong}");
        }
    }
}
