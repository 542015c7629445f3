//! Meanings of the names of tables and columns.

use crate::memory::name_words::name_words;

/// Words for a person.
const PERSON: &[&str] = &[
    "user", "person", "customer", "client", "owner", "member", "patient", "participant", "contact", "human", "student",
    "employee", "identity", "account", "peer", "principal", "visitor", "guest", "caller", "subscriber", "uid",
    "username", "nick", "nickname", "login", "tenant", "benutzer", "nutzer", "kunde", "mitglied", "utilisateur",
    "cliente", "usuario", "utente",
];

/// Abbreviations of words, with the full word.
const SHORT: &[(&str, &str)] = &[
    ("usr", "user"),
    ("cust", "customer"),
    ("acct", "account"),
    ("cli", "client"),
    ("ppl", "people"),
    ("msg", "message"),
    ("conv", "conversation"),
    ("convo", "conversation"),
    ("sess", "session"),
    ("mem", "memory"),
    ("obs", "observation"),
    ("evt", "event"),
    ("hist", "history"),
    ("doc", "document"),
    ("txt", "text"),
    ("cntnt", "content"),
    ("ttl", "title"),
    ("nm", "name"),
    ("eml", "email"),
    ("ident", "id"),
    ("crt", "created"),
    ("cts", "created"),
    ("uts", "updated"),
    ("upd", "updated"),
    ("dt", "date"),
    ("tm", "time"),
];

/// Words for whoever said something: a person, or only a role.
const SPEAKER: &[&str] = &["author", "sender", "speaker", "from", "who", "by"];

/// Roles in a conversation.
const ROLES: &[&str] = &["user", "assistant", "system", "human", "ai", "bot", "agent", "model", "tool", "function"];

/// Words that follow a word for a person if the column names the person rather than describing them.
const NAMING: &[&str] = &["id", "uid", "uuid", "key", "sub", "ref", "handle", "identifier", "email", "mail", "name"];

/// Words for memories, with their weight.
const MEMORY: &[(&str, i32)] = &[
    ("memory", 6),
    ("fact", 6),
    ("observation", 6),
    ("passage", 6),
    ("learning", 6),
    ("belief", 5),
    ("insight", 5),
    ("knowledge", 5),
    ("preference", 5),
    ("reflection", 5),
    ("unit", 4),
    ("note", 4),
    ("summary", 4),
    ("store", 4),
    ("block", 4),
    ("notebook", 4),
    ("recollection", 6),
    ("document", 4),
    ("state", 3),
    ("history", 3),
    ("attribute", 3),
    ("profile", 2),
];

/// Words for messages and events, with their weight.
const MESSAGE: &[(&str, i32)] = &[
    ("message", 6),
    ("event", 6),
    ("turn", 6),
    ("utterance", 6),
    ("checkpoint", 5),
    ("prompt", 5),
    ("segment", 5),
    ("write", 4),
    ("chunk", 4),
    ("step", 4),
    ("item", 4),
    ("reply", 4),
    ("log", 3),
];

/// Words for the sessions of messages.
const SESSION: &[(&str, i32)] =
    &[("session", 6), ("conversation", 6), ("thread", 6), ("episode", 6), ("chat", 6), ("run", 5), ("task", 4)];

/// Words for tables of internal bookkeeping.
const BOOKS: &[&str] = &[
    "migration", "schema", "version", "config", "setting", "metadata", "alembic", "token", "oauth", "auth", "cache",
    "queue", "cursor", "webhook", "credential", "api", "fts", "secret", "lock", "job", "sync", "outbox", "trace",
    "provider", "tool", "function", "template", "permission", "grant", "migrations",
];

/// Words for texts, with their weight.
const TEXT: &[(&str, i32)] = &[
    ("content", 5),
    ("text", 5),
    ("memory", 5),
    ("message", 5),
    ("fact", 5),
    ("narrative", 5),
    ("observation", 5),
    ("body", 4),
    ("note", 4),
    ("summary", 4),
    ("description", 4),
    ("statement", 4),
    ("prompt", 4),
    ("utterance", 4),
    ("learned", 4),
    ("value", 3),
    ("data", 3),
    ("payload", 3),
    ("document", 3),
    ("input", 3),
    ("output", 3),
    ("state", 3),
    ("checkpoint", 3),
    ("blob", 3),
    ("event", 2),
    ("response", 3),
    ("answer", 3),
    ("question", 3),
];

/// Words that are evidence against a text: for copies, measures or metadata of texts.
const NO_TEXT: &[&str] = &[
    "hash", "embedding", "vector", "search", "lemmatized", "old", "previous", "id", "type", "path", "url", "token",
    "tokens", "error", "config", "settings", "model", "tool", "role", "format", "schema", "status", "version", "rev",
    "metadata", "meta", "signals",
];

/// Words for times.
const TIME: &[&str] = &[
    "at", "time", "timestamp", "date", "created", "updated", "modified", "started", "ended", "completed", "ts",
    "epoch", "last", "seen", "expires", "when", "on", "inserted", "occurred", "mentioned", "deleted",
];

/// The words of a name in lower case, abbreviations expanded: `usr_id` and `userId` are both `user`, `id`.
pub fn words(name: &str) -> Vec<String> {
    name_words(name).into_iter().flat_map(|word| written_out(&word)).collect()
}

/// A word in full; compounds such as `userid` and `custname` are split.
fn written_out(word: &str) -> Vec<String> {
    let full = |word: &str| {
        let plural = word.strip_suffix('s').filter(|one| one.len() >= 3).unwrap_or(word);
        let is_it = |(short, _): &&(&str, &str)| *short == word || *short == plural;
        SHORT.iter().find(is_it).map_or_else(|| word.to_owned(), |(_, full)| (*full).to_owned())
    };
    let person = |end: &str| word.strip_suffix(end).map(full).filter(|rest| PERSON.contains(&rest.as_str()));
    let ends = ["id", "name", "key"].into_iter().filter(|_| !PERSON.contains(&word));
    ends.map(|end| (person(end), end))
        .find_map(|(person, end)| Some(vec![person?, end.to_owned()]))
        .unwrap_or_else(|| vec![full(word)])
}

fn singular(word: &str) -> String {
    match word {
        _ if word.ends_with("ies") && word.len() > 4 => format!("{}y", &word[..word.len() - 3]),
        _ if word.ends_with("ss") || word.len() < 4 => word.to_owned(),
        _ => word.strip_suffix('s').unwrap_or(word).to_owned(),
    }
}

/// Words of a name, each in the singular.
pub fn singulars(name: &str) -> Vec<String> {
    words(name).iter().map(|word| singular(word)).collect()
}

/// Contents of a table, as suggested by its name.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TableWords {
    /// Points for memories.
    pub memory: i32,
    /// Points for messages.
    pub message: i32,
    /// Points for sessions.
    pub session: i32,
    /// Whether the table is internal bookkeeping.
    pub books: bool,
    /// True when the table lists people.
    pub people: bool,
    /// Whether it lists tenants, which may be people or groups of them.
    pub tenants: bool,
}

/// Interprets a table's name. The last word describes a row; those before it are only hints.
pub fn of_table(name: &str) -> TableWords {
    let name = name.rsplit('.').next().unwrap_or(name);
    let mut words = singulars(name);
    // An item of memory is a memory.
    if let [.., what, "item" | "entry" | "record"] = words.iter().map(String::as_str).collect::<Vec<_>>()[..]
        && MEMORY.iter().any(|(known, _)| *known == what)
    {
        words.pop();
    }
    let Some((last, before)) = words.split_last() else { return TableWords::default() };
    let points = |list: &[(&str, i32)]| {
        let found = |word: &str| list.iter().find(|(known, _)| *known == word).map_or(0, |(_, points)| *points);
        found(last).max(before.iter().map(|word| found(word) / 3).max().unwrap_or(0))
    };
    TableWords {
        memory: points(MEMORY),
        message: points(MESSAGE),
        session: points(SESSION),
        books: words.iter().any(|word| BOOKS.contains(&word.as_str())),
        people: PERSON.contains(&last.as_str()) || matches!(last.as_str(), "people" | "account"),
        tenants: last == "tenant",
    }
}

/// Points of a column's name for being the text of its row.
pub fn of_text(name: &str) -> i32 {
    let words = singulars(name);
    let found = |word: &String| TEXT.iter().find(|(known, _)| known == word).map_or(0, |(_, points)| *points);
    let points = words.iter().map(found).max().unwrap_or(0);
    let against = words.iter().any(|word| NO_TEXT.contains(&word.as_str()));
    points - if against { 4 } else { 0 }
}

/// Whether a column's name suggests that it names a person.
pub fn is_person(name: &str) -> bool {
    let words = words(name);
    let is_one = |word: &String| PERSON.contains(&word.as_str());
    match &words[..] {
        [one] => is_one(one) && one != "contact",
        [.., who, what] if NAMING.contains(&what.as_str()) => is_one(who),
        [first, .., who] => {
            ["user", "customer", "client", "person"].contains(&who.as_str()) && !["is", "has"].contains(&first.as_str())
        }
        [] => false,
    }
}

/// Whether a column names someone who acted on the row, or for whom a whole team works, rather than its owner.
pub fn is_beside(name: &str) -> bool {
    let words = words(name);
    let is_group =
        |word: &String| matches!(word.as_str(), "tenant" | "client" | "org" | "organisation" | "organization");
    words.last().is_some_and(|last| last == "by") || words.iter().any(is_group)
}

/// Whether a word precedes a person's name, as in `users/ann`.
pub fn leads_to_person(part: &str) -> bool {
    matches!(&singulars(part)[..], [one] if PERSON.contains(&one.as_str()))
}

/// Whether a path into JSON leads to a person: by its last step, or by the last two together, as in `person.id`.
pub fn is_person_at(path: &str) -> bool {
    let mut steps = path.rsplit('.').filter(|step| *step != "[]").map(|step| step.trim_end_matches("[]"));
    let last = steps.next().unwrap_or_default();
    is_person(last) || steps.next().is_some_and(|before| is_person(&format!("{before}_{last}")))
}

/// Whether a column names whoever said or did something: `author`, `sender_name`, `closed_by`, but not `from_level` or
/// `made_by_agent`.
pub fn is_speaker(name: &str) -> bool {
    let words = words(name);
    let is_one = |word: &String| SPEAKER.contains(&word.as_str());
    match &words[..] {
        [.., who, what] if NAMING.contains(&what.as_str()) => is_one(who),
        [.., who] => is_one(who),
        [] => false,
    }
}

/// Whether a column's name is that of a tenant.
pub fn is_tenant(name: &str) -> bool {
    words(name).iter().any(|word| word == "tenant")
}

/// Whether a value is only a role in a conversation.
pub fn is_role(value: &str) -> bool {
    ROLES.contains(&value.trim().to_lowercase().as_str())
}

/// Whether a column is a scope, whose parts may name people.
pub fn is_scope(name: &str) -> bool {
    const SCOPES: &[&str] =
        &["session", "thread", "conversation", "chat", "scope", "namespace", "prefix", "space", "key", "channel"];
    words(name).iter().any(|word| SCOPES.contains(&word.as_str()))
}

/// Whether a column holds someone's name in another program.
pub fn is_external(name: &str) -> bool {
    let words = words(name);
    let has = |wanted: &str| words.iter().any(|word| word == wanted);
    has("external") && (has("id") || has("key")) || has("email") || has("mail")
}

/// Whether a column's name speaks of a time.
pub fn is_time(name: &str) -> bool {
    words(name).iter().any(|word| TIME.contains(&word.as_str()))
}

/// Whether a name contains all of some words.
pub fn has_all(name: &str, wanted: &[&str]) -> bool {
    let words = words(name);
    wanted.iter().all(|word| words.iter().any(|known| known == word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_parted_into_words() {
        assert_eq!(words("createdAt_epoch"), ["created", "at", "epoch"]);
        assert_eq!(singulars("agent_memories"), ["agent", "memory"]);
        assert_eq!(singulars("status"), ["statu"]);
        assert_eq!(words("usr_msgs"), ["user", "message"]);
        assert_eq!(words("custid"), ["customer", "id"]);
    }

    #[test]
    fn a_person_is_named_and_not_described() {
        for name in [
            "user_id", "userId", "owner", "customer_key", "speaker_user_id", "kundeId", "account_id", "nick", "usr_id",
            "userid", "peer_name", "uid", "from_user",
        ] {
            assert!(is_person(name), "{name}");
        }
        for name in ["user_agent", "user_prompt", "user_turn_number", "subject", "id", "agent_id", "is_user"] {
            assert!(!is_person(name), "{name}");
        }
    }

    #[test]
    fn whoever_says_or_does_something_is_named_last() {
        for name in ["author", "sender_name", "closed_by", "from"] {
            assert!(is_speaker(name), "{name}");
        }
        for name in ["continued_from_run_id", "from_level", "accessed_by_agent", "author_role"] {
            assert!(!is_speaker(name), "{name}");
        }
    }

    #[test]
    fn a_path_names_a_person_by_its_last_steps() {
        for (path, is_one) in [("userId", true), ("person.id", true), ("meta.user", true), ("message.id", false)] {
            assert_eq!(is_person_at(path), is_one, "{path}");
        }
    }

    #[test]
    fn the_last_word_says_what_a_row_is() {
        assert!(of_table("session_messages").message > of_table("session_messages").session);
        assert!(of_table("public.user_memories").memory == 6);
        assert!(of_table("mem_items").memory > of_table("mem_items").message);
        assert!(of_table("store_migrations").books);
        assert!(of_text("content") > of_text("search_text"));
    }
}
