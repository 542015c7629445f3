//! The entities of a memory database and the canonical columns in which every layout shows them.

use std::fmt;

use super::agreeing::agreeing;

/// Kind of value that a canonical column holds once it has been read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValueKind {
    /// Unicode text; ids are text too.
    Text,
    /// A whole number within 64 bits.
    Integer,
    /// A finite floating-point number.
    Real,
    /// True or false.
    Boolean,
    /// RFC 3339 in UTC with six fraction digits.
    Time,
    /// Any JSON value.
    Json,
    /// A JSON list of strings.
    List,
}

impl ValueKind {
    /// Returns the name of the kind for users, with the format in which values are shown.
    pub fn title(self) -> &'static str {
        match self {
            ValueKind::Text => "text",
            ValueKind::Integer => "whole number",
            ValueKind::Real => "number",
            ValueKind::Boolean => "true or false",
            ValueKind::Time => "time (RFC 3339, UTC)",
            ValueKind::Json => "JSON",
            ValueKind::List => "list of texts",
        }
    }
}

/// Degree to which a column is personal, which decides what `--mask` does to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Personal {
    /// Not about a person.
    No,
    /// Names one or more persons: replaced by a stable pseudonym.
    Identity,
    /// Free text or data that may contain anything about a person: replaced by a placeholder that states its size.
    Content,
}

/// One canonical column of an entity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Column {
    /// Name, as in JSON output and in `--where`.
    pub name: &'static str,
    /// Kind of its values.
    pub kind: ValueKind,
    /// Degree to which the values are personal.
    pub personal: Personal,
}

/// Short text columns with words chosen by agents: a secret pasted into them stays there.
const WORDS: &[&str] = &[
    "action", "canvas_type", "component_name", "component_type", "domain", "maturity", "source_type", "topic",
    "workflow_name",
];

impl Column {
    /// Whether its texts are words: prose, documents, lists, and names chosen by agents. Such texts are checked for
    /// secrets on input, searched by findings, and cleaned by backfills. Ids are excluded, as are names of people,
    /// agents and collections, because other rows refer by these.
    pub fn holds_words(&self) -> bool {
        match self.kind {
            ValueKind::List => self.name != "ids" && !self.name.ends_with("_ids") && self.name != "handles",
            _ => self.personal == Personal::Content || WORDS.contains(&self.name),
        }
    }

    /// Whether its values are single lines: names, words, numbers, but not prose or documents.
    pub fn is_one_line(&self) -> bool {
        let is_prose = self.kind == ValueKind::Text && self.personal == Personal::Content && self.name != "title";
        !is_prose && self.kind != ValueKind::Json
    }
}

/// Entity of the rows that an id list refers to, by the list's canonical column; `None` if it may refer to several
/// entities.
pub fn named_in_list(column: &str) -> Option<Entity> {
    match column {
        "feedback_ids" => Some(Entity::Feedback),
        "canvas_ids" => Some(Entity::CanvasEvent),
        "source_ids" => Some(Entity::Memory),
        "reference_case_ids" => Some(Entity::Case),
        _ => None,
    }
}

macro_rules! columns {
    ($($name:ident: $kind:ident $($personal:ident)?),* $(,)?) => {
        &[$(Column { name: stringify!($name), kind: ValueKind::$kind, personal: columns!(@ $($personal)?) }),*]
    };
    (@) => { Personal::No };
    (@ $personal:ident) => { Personal::$personal };
    (@marks $($name:ident: $kind:ident $($personal:ident)?),* $(,)?) => { const { &[$(mark(stringify!($name))),*] } };
}

/// A number from the length and up to seven letters of a name, for a fast column look-up in every row.
const fn mark(name: &str) -> u64 {
    let bytes = name.as_bytes();
    let (mut all, mut at) = (bytes.len() as u64, 0);
    while at < bytes.len() && at < 7 {
        // Alternates between both ends, since many names begin alike.
        let letter = if at % 2 == 0 { bytes[at / 2] } else { bytes[bytes.len() - 1 - at / 2] };
        all = all << 8 | letter as u64;
        at += 1;
    }
    all
}

macro_rules! entities {
    ($($(#[$doc:meta])* $variant:ident $name:literal time $time:ident $columns:tt)*) => {
        /// A kind of thing that a memory database holds.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
        pub enum Entity { $($(#[$doc])* #[serde(rename = $name)] $variant),* }

        impl Entity {
            /// Every entity, in listing order.
            pub const ALL: &'static [Entity] = &[$(Entity::$variant),*];

            /// Name in JSON, on the command line and in layout files: snake case, singular.
            pub fn name(self) -> &'static str {
                match self { $(Entity::$variant => $name),* }
            }

            /// Canonical columns, in the order in which they are shown.
            pub fn columns(self) -> &'static [Column] {
                match self { $(Entity::$variant => entities!(@columns $columns)),* }
            }

            /// A [`mark`] for each of the columns.
            fn marks(self) -> &'static [u64] {
                match self { $(Entity::$variant => entities!(@marks $columns)),* }
            }

            /// The column that orders rows by default.
            pub fn time_column(self) -> &'static str {
                match self { $(Entity::$variant => stringify!($time)),* }
            }
        }
    };
    (@columns { $($t:tt)* }) => { columns!($($t)*) };
    (@marks { $($t:tt)* }) => { columns!(@marks $($t)*) };
}

entities! {
    /// An agent that remembers.
    Agent "agent" time last_seen {
        id: Text, name: Text, status: Text, episodes: Integer, last_seen: Time,
    }
    /// The person that memories are about or belong to; the unit of erasure.
    Subject "subject" time last_seen {
        id: Text Identity, name: Text Identity, handles: List Identity, episodes: Integer, cases: Integer,
        feedback: Integer, last_seen: Time,
    }
    /// One remembered experience: situation, actions, outcome.
    Episode "episode" time started_at {
        id: Text, agent_id: Text, user_id: Text Identity, session_id: Text Identity, execution_ids: List,
        parent_id: Text, title: Text Content, summary: Text Content, detail: Text Content, domain: Text,
        topic: Text, status: Text, outcome: Text, started_at: Time, ended_at: Time, duration_seconds: Real,
        tags: List, participants: List Identity, tools_used: List, entities: List Identity,
        key_decisions: Json Content, metadata: Json Content, canvas_ids: List, canvas_action_count: Integer,
        feedback_ids: List, feedback_score: Real, utility: Real, observation: Text Content,
        thoughts: Json Content, actions: Json Content, result: Json Content, success: Boolean,
        insight: Text Content, workflow_name: Text, context: Json Content, maturity: Text, importance: Real,
        decay_score: Real, access_count: Integer, consolidated_into: Text, archived_at: Time,
        intervention_count: Integer, constitutional_score: Real, confidence: Real,
    }
    /// A piece of an episode in order.
    Segment "segment" time created_at {
        id: Text, episode_id: Text, sequence: Integer, kind: Text, content: Text Content, source_type: Text,
        source_id: Text, created_at: Time,
    }
    /// An item presented to the user on a canvas, or a user action there.
    CanvasEvent "canvas_event" time created_at {
        id: Text, episode_id: Text, session_id: Text Identity, agent_id: Text, user_id: Text Identity,
        canvas_id: Text, canvas_type: Text, component_type: Text, component_name: Text, action: Text,
        metadata: Json Content, created_at: Time,
    }
    /// Feedback of a user on an episode.
    Feedback "feedback" time created_at {
        id: Text, episode_id: Text, execution_id: Text, agent_id: Text, user_id: Text Identity, kind: Text,
        rating: Integer, correction: Text Content, score: Real, counts: Boolean, source: Text,
        created_at: Time,
    }
    /// A signal that moved an episode's utility.
    UtilityEvent "utility_event" time created_at {
        id: Text, episode_id: Text, signal: Text, delta: Real, before: Real, after: Real,
        actor: Text Identity, reason: Text Content, created_at: Time,
    }
    /// A stored and retrieved item: a fact, a note, a drawer.
    Memory "memory" time created_at {
        id: Text, kind: Text, collection: Text, title: Text Content, text: Text Content,
        user_id: Text Identity, agent_id: Text, session_id: Text Identity, tags: List, status: Text,
        importance: Real, source_ids: List, metadata: Json Content, created_at: Time, updated_at: Time,
        expires_at: Time, uses: Integer, utility: Real,
    }
    /// Retrieval of a memory by an episode.
    MemoryLink "memory_link" time episode_id {
        episode_id: Text, memory_id: Text, kind: Text, rank: Integer,
    }
    /// The user-and-agent bank that cases are in.
    Profile "profile" time created_at {
        id: Text, user_id: Text Identity, agent_id: Text, window_size: Integer, k: Integer, created_at: Time,
        updated_at: Time,
    }
    /// A (state, action, reward) tuple.
    Case "case" time created_at {
        id: Text, profile_id: Text, user_id: Text Identity, agent_id: Text, message_hash: Text,
        prompt: Json Content, plan: Json Content, traces: Json Content, outcome: Text, reward: Real,
        tags: List, reference_case_ids: List, created_at: Time, has_vector: Boolean, quarantined: Boolean,
    }
    /// Learned retrieval weights of a profile.
    Policy "policy" time trained_at {
        id: Text, profile_id: Text, version: Integer, weights: Json, metrics: Json, status: Text,
        trained_at: Time,
    }
    /// One entry of a workflow's event log.
    WorkflowEvent "workflow_event" time created_at {
        id: Text, run_id: Text, sequence: Integer, kind: Text, data: Json Content, created_at: Time,
    }
    /// A recall of stored items.
    Access "access" time created_at {
        id: Text, agent_id: Text, user_id: Text Identity, query: Text Content, ids: List, kind: Text,
        latency_ms: Real, policy_version: Integer, tokens: Integer, created_at: Time,
    }
    /// An entry of an audit trail, ours or the system's own.
    AuditEntry "audit_entry" time created_at {
        id: Text, source: Text, actor: Text Identity, agent_id: Text, action: Text, payload: Json Content,
        created_at: Time,
    }
}

impl Column {
    /// Returns the unit of the column's numbers, the accepted words, and the like; `None` if kind and name say it all.
    pub fn unit(&self) -> Option<&'static str> {
        Some(match self.name {
            "duration_seconds" => "seconds",
            "latency_ms" => "milliseconds",
            "feedback_score" | "score" | "constitutional_score" => "-1 to 1",
            "utility" | "importance" | "confidence" | "decay_score" | "reward" | "before" | "after" => "0 to 1",
            "delta" => "-1 to 1, added to the utility",
            "rating" => "1 to 5 stars",
            "tokens" => "tokens",
            "rank" | "sequence" => "position; the smallest comes first",
            "episodes"
            | "cases"
            | "feedback"
            | "uses"
            | "access_count"
            | "canvas_action_count"
            | "intervention_count" => "count",
            "window_size" => "newest cases that are kept; none keeps all",
            "k" => "rows of a recall",
            _ => return None,
        })
    }

    /// An example value in the form of `--format json`.
    pub fn example(&self) -> &'static str {
        match (self.name, self.kind) {
            ("status", _) => "\"active\"",
            ("outcome", _) => "\"success\"",
            ("id" | "parent_id" | "episode_id" | "memory_id" | "profile_id" | "run_id" | "source_id", _) => {
                "\"8f14e45f\""
            }
            ("user_id", _) => "\"ada@example.org\"",
            ("agent_id", _) => "\"travel_desk\"",
            ("rating", _) => "4",
            ("window_size", _) => "50",
            (_, ValueKind::Text) => "\"window seats on morning trains\"",
            (_, ValueKind::Integer) => "3",
            (_, ValueKind::Real) => "0.75",
            (_, ValueKind::Boolean) => "true",
            (_, ValueKind::Time) => "\"2026-02-04T10:00:00.000000Z\"",
            (_, ValueKind::Json) => "{\"source\":\"chat\"}",
            (_, ValueKind::List) => "[\"travel\",\"food\"]",
        }
    }
}

impl Entity {
    /// The entity with this name; also accepts a plural, and a hyphen or a space for the underscore.
    pub fn parse(text: &str) -> Option<Entity> {
        let name = text.trim().to_ascii_lowercase().replace(['-', ' '], "_");
        let known = |n: &str| Entity::ALL.iter().copied().find(|e| e.name() == n);
        known(&name)
            .or_else(|| known(name.strip_suffix('s')?))
            .or_else(|| known(&format!("{}y", name.strip_suffix("ies")?)))
            .or_else(|| known(name.strip_suffix("es")?))
            .or_else(|| (name == "audit").then_some(Entity::AuditEntry))
    }

    /// Whether its rows are always read from the primary: on a lagging standby a trail would look truncated.
    pub fn is_of_trail(self) -> bool {
        self == Entity::AuditEntry
    }

    /// The column with the creation time of a row; `None` if only its last use is known.
    pub fn creation_column(self) -> Option<&'static str> {
        let column = self.column(self.time_column())?;
        (column.kind == ValueKind::Time && column.name != "last_seen").then_some(column.name)
    }

    /// The canonical column with this name.
    pub fn column(self, name: &str) -> Option<&'static Column> {
        self.position(name).map(|at| &self.columns()[at])
    }

    /// Position of a canonical column among [`Entity::columns`].
    pub fn position(self, name: &str) -> Option<usize> {
        let (sought, columns) = (mark(name), self.columns());
        self.marks()
            .iter()
            .enumerate()
            .find(|(at, mark)| **mark == sought && columns[*at].name == name)
            .map(|(at, _)| at)
    }

    /// Name for people: words instead of an underscore.
    pub fn title(self) -> String {
        self.name().replace('_', " ")
    }

    /// Plural name for people.
    pub fn plural(self) -> &'static str {
        match self {
            Entity::Agent => "agents",
            Entity::Subject => "subjects",
            Entity::Episode => "episodes",
            Entity::Segment => "segments",
            Entity::CanvasEvent => "canvas events",
            Entity::Feedback => "feedback",
            Entity::UtilityEvent => "utility history",
            Entity::Memory => "memories",
            Entity::MemoryLink => "memory links",
            Entity::Profile => "profiles",
            Entity::Case => "cases",
            Entity::Policy => "policies",
            Entity::WorkflowEvent => "workflow events",
            Entity::Access => "accesses",
            Entity::AuditEntry => "audit trails",
        }
    }

    /// A number of its rows in words, such as `3 episodes`.
    pub fn counted(self, number: usize) -> String {
        match self {
            Entity::Feedback => agreeing(number, "{#} {row|rows} of feedback"),
            Entity::UtilityEvent => agreeing(number, "{#} {signal|signals}"),
            Entity::AuditEntry => agreeing(number, "{#} {audit entry|audit entries}"),
            other => agreeing(number, &format!("{{#}} {{{}|{}}}", other.title(), other.plural())),
        }
    }
}

impl fmt::Display for Entity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
