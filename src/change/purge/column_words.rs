//! Meaning of the name of a column or of a JSON key: whether it holds people, names or sessions.

use std::collections::HashSet;

use crate::memory::mention::MentionText;
use crate::store::container::{Leaf, LeafKind};
use crate::store::stored::TableName;

/// Judges by its name what a column, or the value of a JSON key, is about.
#[must_use]
pub fn about(name: &str) -> MentionText {
    let words = words(name);
    let is = |known: &[&str]| words.iter().any(|word| known.contains(&word.as_str()));
    let names =
        is(&["name", "username", "firstname", "lastname", "surname", "fullname", "nickname", "author", "speaker"]);
    MentionText {
        people: names_person(name),
        names: names && !is(&["file", "agent", "table", "tool", "model", "host", "event", "component"]),
        sessions: is(&["session", "sessions", "conversation", "thread", "chat"]),
        profiles: is(&["profile", "profiles", "bank"]),
        number: false,
    }
}

/// Judges by its name and by the layout what a column is about.
#[must_use]
pub fn place_of(table: &TableName, column: &str, of_people: &HashSet<(TableName, String)>) -> MentionText {
    let told = about(column);
    MentionText { people: told.people || of_people.contains(&(table.clone(), column.to_owned())), ..told }
}

/// Judges what a text within a value is about: by the nearest key, and for a list of values by the column.
#[must_use]
pub fn leaf_place(leaf: &Leaf<'_>, column: MentionText) -> MentionText {
    let path = if leaf.layers.is_empty() { String::new() } else { leaf.path() };
    let key = path.rsplit('.').find(|part| !part.is_empty() && part.parse::<usize>().is_err());
    let place = match (leaf.kind, key) {
        (LeafKind::Key, _) => MentionText::default(),
        (_, Some(key)) => about(key),
        (_, None) => column,
    };
    MentionText { number: leaf.kind == LeafKind::Number, ..place }
}

/// The words of a column's name, in small letters: `userId` and `user_ids` are `user` and `id`.
#[must_use]
pub fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut small = false;
    for c in name.chars() {
        let new = !c.is_alphanumeric() || small && c.is_uppercase();
        if new {
            words.push(String::new());
        }
        small = c.is_lowercase();
        if c.is_alphanumeric()
            && let Some(word) = words.last_mut()
        {
            word.extend(c.to_lowercase());
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

/// Whether what is in a column, or behind a key of JSON, is a person: not what a person is like or does.
#[must_use]
pub fn names_person(name: &str) -> bool {
    const OF_A_PERSON: &[&str] = &[
        "status",
        "state",
        "type",
        "kind",
        "role",
        "level",
        "tier",
        "plan",
        "count",
        "score",
        "rating",
        "lang",
        "language",
        "locale",
        "timezone",
        "input",
        "output",
        "message",
        "text",
        "content",
        "correction",
        "feedback",
        "comment",
        "note",
        "action",
        "intent",
        "query",
        "prompt",
        "preferences",
        "settings",
        "metadata",
        "agent",
        "time",
        "at",
        "date",
        "mode",
        "version",
        "source",
        "channel",
        "age",
        "year",
        "country",
        "segment",
        "group",
        "question",
        "answer",
        "request",
        "response",
        "reaction",
        "preference",
        "profile",
        "flag",
        "visible",
        "confirmed",
    ];
    looks_personal(name) && !words(name).iter().any(|word| OF_A_PERSON.contains(&word.as_str()))
}

/// Whether a column's name is that of something about people.
#[must_use]
pub fn looks_personal(column: &str) -> bool {
    let lower = column.to_lowercase();
    let words = words(column);
    // A key of JSON may be a whole sentence: its words say nothing of the value.
    if words.len() > 4 {
        return false;
    }
    let about = |word: &String| {
        let bare = word.strip_suffix("id").unwrap_or(word);
        // One `s` is a plural; two belong to the word, as in `address`.
        let plural = bare.strip_suffix('s').filter(|rest| !rest.ends_with('s'));
        let word = plural.unwrap_or(bare);
        matches!(
            word,
            "user"
                | "person"
                | "people"
                | "customer"
                | "owner"
                | "subject"
                | "account"
                | "author"
                | "member"
                | "contact"
                | "employee"
                | "client"
                | "patient"
                | "email"
                | "mail"
                | "phone"
                | "mobile"
                | "address"
                | "addresse"
                | "username"
                | "birthday"
                | "birthdate"
                | "firstname"
                | "lastname"
                | "surname"
                | "fullname"
                | "sub"
                | "ssn"
                | "participant"
                | "assignee"
                | "reviewer"
                | "approver"
                | "requester"
                | "reporter"
                | "sender"
                | "recipient"
                | "attendee"
                | "speaker"
        )
    };
    // What agents are called is not about people.
    !words.iter().any(|word| word == "agent")
        && (words.iter().any(about)
            || lower.ends_with("_by")
            || lower.contains("first_name")
            || lower.contains("last_name"))
}

#[cfg(test)]
mod tests {
    use super::*;

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
