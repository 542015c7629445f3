//! Meaning of the name of a column or of a JSON key: whether it holds people, names or sessions.

use std::collections::HashSet;

use crate::memory::mention::MentionText;
use crate::memory::name_words::name_words;
use crate::store::container::{Leaf, LeafKind};
use crate::store::stored::TableName;

/// Judges by its name what a column, or the value of a JSON key, contains.
pub fn about(name: &str) -> MentionText {
    let words = name_words(name);
    let is = |known: &[&str]| words.iter().any(|word| known.contains(&word.as_str()));
    let names =
        is(&["name", "username", "firstname", "lastname", "surname", "fullname", "nickname", "author", "speaker"]);
    MentionText {
        people: names_person(name),
        exact: is_exact(&words),
        names: names && !is(&["file", "agent", "table", "tool", "model", "host", "event", "component"]),
        sessions: is(&["session", "sessions", "conversation", "thread", "chat"]),
        profiles: is(&["profile", "profiles", "bank"]),
        keys: keys_are_people(&words),
        number: false,
    }
}

/// Columns whose contents the layout or a foreign key declares.
#[derive(Debug, Default)]
pub struct NamingColumns {
    /// Columns that hold the id of a person and nothing else: a longer value that contains the id names someone else.
    pub people: HashSet<(TableName, String)>,
    /// Columns that hold the id of something else.
    pub others: HashSet<(TableName, String)>,
    /// Columns that hold the name of an agent or an application: a match there does not mean the person.
    pub agents: HashSet<(TableName, String)>,
}

/// Judges by its name, the layout and foreign keys what a column contains.
pub fn place_of(table: &TableName, column: &str, naming: &NamingColumns) -> MentionText {
    let (told, place) = (about(column), (table.clone(), column.to_owned()));
    let is_known = naming.people.contains(&place);
    let is_other = !is_known && naming.others.contains(&place);
    MentionText {
        people: is_known || told.people && !is_other,
        exact: is_known || told.exact && !is_other,
        keys: is_known || told.keys && !is_other,
        ..told
    }
}

/// Words for people: a place so named holds the person's id.
const PEOPLE: &[&str] = &[
    "user", "person", "people", "customer", "owner", "account", "member", "employee", "client", "patient", "username",
    "sub",
];

/// Whether a name contains a word for people, as the table `app_users` does.
pub fn is_of_people(name: &str) -> bool {
    name_words(name).iter().map(|word| bare(word)).any(|word| PEOPLE.contains(&word))
}

/// Words for people by what they do.
const DOING: &[&str] = &[
    "author", "participant", "assignee", "reviewer", "approver", "requester", "reporter", "sender", "recipient",
    "attendee", "speaker",
];

/// Whether the keys of an object with this name are people: the name is a plural, as `users`, or begins with `by`, as
/// `by_user`.
fn keys_are_people(words: &[String]) -> bool {
    let is_person = |word: &str| PEOPLE.contains(&bare(word)) || DOING.contains(&bare(word));
    let is_several = |word: &String| word == "people" || word.ends_with('s') && is_person(word);
    let by = |two: &[String]| matches!(two, [by, word] if matches!(&**by, "by" | "per") && is_person(word));
    let ids = words.last().is_some_and(|word| word == "ids") && words.iter().any(|word| is_person(word));
    ids || words.iter().any(is_several) || words.windows(2).any(by)
}

/// Whether a name promises ids of one kind and nothing else: `userId` does, `user_turn` does not.
fn is_exact(words: &[String]) -> bool {
    const IDS: &[&str] = &["id", "uid", "uuid", "guid", "key", "ref"];
    let is_id = |word: &str| IDS.contains(&word.strip_suffix('s').unwrap_or(word));
    let told: Vec<&str> = words.iter().filter(|word| !is_id(word)).map(|word| bare(word)).collect();
    let all = |known: &[&str]| !told.is_empty() && told.iter().all(|word| known.contains(word));
    let names_id = words.iter().any(|word| is_id(word) || word.ends_with("id"));
    all(PEOPLE)
        || all(&["session", "conversation", "thread", "chat"])
        || all(&["profile", "bank"])
        || matches!(words, [_, by] if by == "by")
        || names_id && !told.is_empty() && told.iter().all(|word| is_personal(word))
}

/// The singular of a word, without a trailing `id`.
fn bare(word: &str) -> &str {
    let bare = word.strip_suffix("id").unwrap_or(word);
    // One `s` is a plural; a double one belongs to the word, as in `address`.
    bare.strip_suffix('s').filter(|rest| !rest.ends_with('s')).unwrap_or(bare)
}

/// Judges what a text within a value is about: by the nearest key, or by the column for a list of values.
pub fn leaf_place(leaf: &Leaf<'_>, column: MentionText) -> MentionText {
    let place = match (leaf.kind, nearest_key(leaf)) {
        (LeafKind::Class, _) => MentionText::default(),
        (LeafKind::Key, _) => {
            let around = leaf.parent_path();
            let around = around.rsplit('.').next().filter(|part| !part.is_empty());
            let keys = around.map_or(column.keys, |around| about(around).keys);
            MentionText { keys, people: keys, names: keys, exact: keys, ..MentionText::default() }
        }
        (_, Some(key)) => about(&key),
        (_, None) => column,
    };
    MentionText { number: leaf.kind == LeafKind::Number, ..place }
}

/// The name of the nearest key around a text within a value, or of the column.
pub fn leaf_name(leaf: &Leaf<'_>, column: &str) -> String {
    nearest_key(leaf).unwrap_or_else(|| column.to_owned())
}

/// The key nearest to a text within a value; `None` if only lists surround it.
fn nearest_key(leaf: &Leaf<'_>) -> Option<String> {
    let path = if leaf.layers.is_empty() { String::new() } else { leaf.path() };
    path.rsplit('.').find(|part| !part.is_empty() && part.parse::<usize>().is_err()).map(str::to_owned)
}

/// Whether a place with this name holds ids of rows. `whole` says that the id is the entire value.
pub fn names_rows(name: &str, whole: bool) -> bool {
    const IDS: &[&str] = &["id", "ids", "uid", "uids", "uuid", "uuids", "guid", "guids", "ref", "refs", "key", "keys"];
    const ROWS: &[&str] = &[
        "block", "canvas", "case", "chat", "chunk", "conversation", "document", "drawer", "entry", "episode", "event",
        "execution", "feedback", "link", "memorie", "memory", "message", "node", "parent", "policy", "reference",
        "run", "segment", "session", "step", "thread", "turn",
    ];
    name_words(name).iter().any(|word| IDS.contains(&&**word) || whole && ROWS.contains(&bare(word)))
}

/// Whether a column, or the value of a JSON key, is a person, rather than an attribute or an action of one.
pub fn names_person(name: &str) -> bool {
    const OF_A_PERSON: &[&str] = &[
        "status", "state", "type", "kind", "role", "level", "tier", "plan", "count", "score", "rating", "lang",
        "language", "locale", "timezone", "input", "output", "message", "text", "content", "correction", "feedback",
        "comment", "note", "action", "intent", "query", "prompt", "preferences", "settings", "metadata", "agent",
        "time", "at", "date", "mode", "version", "source", "channel", "age", "year", "country", "segment", "group",
        "question", "answer", "request", "response", "reaction", "preference", "profile", "flag", "visible",
        "confirmed", "turn", "index", "sequence", "position", "rank", "total",
    ];
    looks_personal(name) && !name_words(name).iter().any(|word| OF_A_PERSON.contains(&word.as_str()))
}

/// Whether the name of a column suggests data about people.
pub fn looks_personal(column: &str) -> bool {
    let lower = column.to_lowercase();
    let words = name_words(column);
    // A JSON key may be a whole sentence: its words then say nothing about the value.
    if words.len() > 4 {
        return false;
    }
    let about = |word: &String| is_personal(bare(word));
    // Names of agents are not about people.
    !words.iter().any(|word| word == "agent")
        && (words.iter().any(about)
            || lower.ends_with("_by")
            || lower.contains("first_name")
            || lower.contains("last_name"))
}

/// Whether a word means a person, or a way to reach one.
fn is_personal(word: &str) -> bool {
    const MORE: &[&str] = &[
        "subject", "contact", "email", "mail", "phone", "mobile", "address", "addresse", "birthday", "birthdate",
        "firstname", "lastname", "surname", "fullname", "ssn",
    ];
    PEOPLE.contains(&word) || DOING.contains(&word) || MORE.contains(&word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_says_more_than_whose_id_it_is_is_not_exact() {
        for (name, exact) in [
            ("user_id", true),
            ("userIds", true),
            ("userid", true),
            ("customer", true),
            ("created_by", true),
            ("author_id", true),
            ("thread_id", true),
            ("session", true),
            ("author", false),
            ("speaker", false),
            ("user_turn_number", false),
            ("user_session_id", false),
            ("session_type", false),
            ("user_name", false),
            ("id", false),
        ] {
            assert_eq!(about(name).exact, exact, "{name}");
        }
    }

    #[test]
    fn keys_are_people_where_the_name_is_of_several() {
        for (name, keys) in [
            ("users", true),
            ("by_user", true),
            ("scoresPerCustomer", true),
            ("user_ids", true),
            ("people", true),
            ("user", false),
            ("user_settings", false),
            ("addresses", false),
            ("scores", false),
        ] {
            assert_eq!(about(name).keys, keys, "{name}");
        }
    }

    #[test]
    fn columns_that_name_people_are_told_from_those_about_them() {
        for (name, people) in [
            ("user_id", true),
            ("userId", true),
            ("customer", true),
            ("created_by", true),
            ("user_status", false),
            ("user_input", false),
            ("status", false),
            ("agent_id", false),
        ] {
            assert_eq!(about(name).people, people, "{name}");
        }
    }
}
