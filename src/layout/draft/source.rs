//! Contents of each table, and the match of its columns with the canonical ones.

use std::collections::BTreeSet;

use super::document::{every, usable};
use super::evidence::{Clock, Evidence, ValueShape};
use super::names::{self, TableWords};
use super::owner;
use super::{SampledColumn, SampledReference, SampledTable, Sure};
use crate::layout::Engine;
use crate::memory::Entity;

/// Most tables in a draft.
const TABLES: usize = 16;
/// Points from which a table counts as one of memories or messages.
const ENOUGH: i32 = 10;
/// Points from which a column counts as a text.
const IS_TEXT: i32 = 4;

/// A table with its evidence.
pub struct KnownTable<'t> {
    pub table: &'t SampledTable,
    pub words: TableWords,
    pub evidence: Vec<Evidence>,
    /// Another table, or this one, lists people who are not tenants.
    pub has_people: bool,
}

/// Place from which a canonical column is read.
#[derive(Debug, Clone, PartialEq)]
pub enum ReadPlace {
    Column(String),
    Tuple(Vec<String>),
    RowNumber(String),
    Uuid(String, u8),
    KeyOf(SampledReference, String),
    /// A key, with the name of its table.
    Tagged(String, String),
    /// Texts with a blank between them.
    Joined(Vec<String>),
    /// Members of an object, each with its column.
    Fields(Vec<(&'static str, String)>),
}

/// One way to read a canonical column.
#[derive(Debug, Clone, PartialEq)]
pub struct ColumnReading {
    pub place: ReadPlace,
    pub path: Option<String>,
    pub part: Option<(char, usize)>,
    pub stored: Option<&'static str>,
}

/// A guessed canonical column.
#[derive(Debug, Clone, PartialEq)]
pub struct ColumnGuess {
    pub name: &'static str,
    pub ways: Vec<ColumnReading>,
    pub why: String,
    pub sure: Sure,
}

/// Location of a table's vectors: in a column of its own, or in another table, by that key column.
#[derive(Debug, Clone, PartialEq)]
pub enum VectorGuess {
    Own(String),
    Beside { table: String, key: String, column: String },
}

/// A guessed source.
pub struct DraftedSource<'t> {
    pub entity: Entity,
    pub known: &'t KnownTable<'t>,
    pub why: String,
    pub sure: Sure,
    pub columns: Vec<ColumnGuess>,
    pub vectors: Option<VectorGuess>,
    /// Stored columns that no guess uses, with their contents.
    pub unused: Vec<String>,
    /// Name of the stored column with the text.
    pub text: Option<String>,
}

/// Kind of values of a canonical column.
#[derive(Clone, Copy, PartialEq)]
enum Fit {
    Word,
    Whole,
    Number,
    Time,
    List,
    Json,
    Any,
}

/// Canonical columns that are matched by name: words that a stored name must contain, best first.
const RULES: &[(&str, &[&str], Fit)] = &[
    (
        "agent_id",
        &["agent id", "agent name", "assistant id", "bot id", "agent", "bot", "process id", "app name"],
        Fit::Word,
    ),
    ("session_id", &["session id", "conversation id", "thread id", "chat id", "run id"], Fit::Word),
    ("kind", &["role", "author", "sender", "type", "kind", "category", "event"], Fit::Word),
    ("parent_id", &["parent id", "parent"], Fit::Word),
    ("title", &["title", "heading", "subtitle", "subject", "label", "name"], Fit::Any),
    ("summary", &["summary"], Fit::Any),
    ("collection", &["namespace", "prefix", "collection", "project", "bank id", "archive id", "scope"], Fit::Word),
    ("status", &["status", "state"], Fit::Word),
    ("outcome", &["outcome", "result"], Fit::Word),
    ("tags", &["tags", "topics", "labels", "keywords", "concepts"], Fit::List),
    ("metadata", &["metadata", "meta", "attributes", "properties", "payload", "state"], Fit::Json),
    ("ended_at", &["ended", "end", "completed", "finished", "closed"], Fit::Time),
    ("updated_at", &["updated", "modified", "update"], Fit::Time),
    ("expires_at", &["expires", "expiration", "expiry"], Fit::Time),
    ("importance", &["importance", "salience"], Fit::Number),
    ("confidence", &["confidence"], Fit::Number),
    ("uses", &["num times", "access count", "use count", "usage count", "hits", "uses", "relevance count"], Fit::Whole),
    ("sequence", &["sequence", "seq", "idx", "index", "position", "ordinal", "number"], Fit::Whole),
];

/// Words for the time of creation, with their points.
const MADE: &[(&str, i32)] = &[
    ("created", 9),
    ("create", 9),
    ("timestamp", 8),
    ("ts", 8),
    ("started", 8),
    ("inserted", 7),
    ("added", 7),
    ("date", 5),
    ("time", 5),
    ("occurred", 4),
    ("mentioned", 4),
    ("at", 3),
    ("seen", 2),
    ("updated", 2),
    ("last", 2),
    ("update", 2),
];

impl<'t> KnownTable<'t> {
    /// Collects the known facts about a table.
    pub fn of(table: &'t SampledTable, engine: Engine) -> Self {
        let evidence = table.columns.iter().map(|column| Evidence::of(column, engine)).collect();
        KnownTable { table, words: names::of_table(&table.name), evidence, has_people: false }
    }

    /// Whether the table lists people. Tenants are groups if another table lists people.
    pub fn lists_people(&self) -> bool {
        self.words.people && !self.words.books && !(self.has_people && self.words.tenants)
    }

    /// Columns with their evidence.
    pub fn columns(&self) -> impl Iterator<Item = (&'t SampledColumn, &Evidence)> {
        self.table.columns.iter().zip(&self.evidence)
    }

    fn evidence_of(&self, column: &str) -> Option<&Evidence> {
        self.columns().find(|(c, _)| c.name == column).map(|(_, e)| e)
    }

    /// The key column, if the key is a single one.
    pub fn single_key(&self) -> Option<&str> {
        match &self.table.key[..] {
            [one] => Some(one),
            _ => None,
        }
    }

    /// Points of each column for being the text of its row, best first.
    fn texts(&self) -> Vec<(i32, &'t SampledColumn, &Evidence)> {
        let is_bound = |name: &str| {
            self.table.key.iter().any(|k| k == name) || self.table.references.iter().any(|r| r.column == name)
        };
        let mut texts: Vec<_> = self
            .columns()
            .filter(|(column, _)| !is_bound(&column.name) && !names::is_person(&column.name))
            .filter_map(|(column, evidence)| {
                let name = names::of_text(&column.name);
                let shape = match &evidence.shape {
                    ValueShape::Text | ValueShape::Quoted if evidence.is_prose() => {
                        4 + i32::from(evidence.letters >= 40)
                    }
                    ValueShape::Quoted => 3,
                    ValueShape::Document(_) if best_path(evidence).is_some() => 3,
                    ValueShape::Packed if name > 0 => 1,
                    // Short texts under a text's name, as in a small table, or an empty column with a certain name.
                    ValueShape::Text if name >= 4 => 2,
                    ValueShape::Empty if name >= 5 && self.table.rows == 0 => 1,
                    _ => return None,
                };
                let filled = i32::from(evidence.filled * 2 >= evidence.of);
                Some((name + shape + filled, column, evidence))
            })
            .filter(|(points, ..)| *points >= IS_TEXT)
            .collect();
        texts.sort_by_key(|(points, ..)| -points);
        texts
    }

    /// The columns of subject, predicate, and object, if the table holds facts.
    fn triple(&self) -> Option<[&'t str; 3]> {
        let text = |wanted: &[&str]| {
            let is_it = |(column, evidence): &(&SampledColumn, &Evidence)| {
                evidence.shape == ValueShape::Text
                    && matches!(&names::words(&column.name)[..], [word] if wanted.contains(&word.as_str()))
            };
            self.columns().find(is_it).map(|(column, _)| column.name.as_str())
        };
        Some([text(&["subject"])?, text(&["predicate", "relation", "property"])?, text(&["object", "value"])?])
    }

    /// Points of each time column for being the time of creation, best first.
    fn made(&self) -> Vec<(i32, &'t SampledColumn, Clock)> {
        let mut times: Vec<_> = self
            .columns()
            .filter_map(|(column, evidence)| {
                let ValueShape::Time(clock) = evidence.shape else { return None };
                let words = names::words(&column.name);
                let found = |word: &String| MADE.iter().find(|(known, _)| known == word).map_or(0, |(_, p)| *p);
                let points = words.iter().map(found).max().unwrap_or(0) * 4;
                let spelled = match clock {
                    Clock::Typed | Clock::Zoned => 3,
                    Clock::Naive => 2,
                    Clock::Seconds => 1,
                    Clock::Millis => 0,
                };
                let filled = if evidence.filled * 10 >= evidence.of * 9 { 8 } else { 0 };
                Some((points + spelled + filled, column, clock))
            })
            .collect();
        times.sort_by_key(|(points, ..)| -points);
        times
    }
}

/// The paths in a column's documents that lead to the text, in the syntax of layouts, best first.
fn paths(evidence: &Evidence) -> Vec<String> {
    let ValueShape::Document(document) = &evidence.shape else { return Vec::new() };
    let mut found: Vec<(i32, usize, String)> = document
        .leaves
        .iter()
        .filter_map(|(path, leaf)| {
            let last = path.rsplit('.').find(|step| *step != "[]").unwrap_or(path).trim_end_matches("[]");
            let name = names::of_text(last);
            let long = leaf.letters / leaf.texts.max(1);
            let prose = i32::from(leaf.blanks * 2 >= leaf.texts) * 3;
            let depth = path.matches(['.', '[']).count();
            let points = name + prose + i32::from(long >= 16) - i32::try_from(depth).unwrap_or(9) / 2;
            let share = (leaf.texts * 6).checked_div(evidence.filled).unwrap_or(0).min(6);
            let points = points + i32::try_from(share).unwrap_or(0);
            (leaf.texts > 0 && leaf.times == 0 && (name >= 2 || name == 0 && prose > 0) && points >= 5)
                .then_some((points, leaf.texts, path))
        })
        .filter_map(|(points, texts, path)| Some((points, texts, every(path)?)))
        .collect();
    found.sort_by(|a, b| (b.0, b.1).cmp(&(a.0, a.1)).then(a.2.cmp(&b.2)));
    let mut ordered: Vec<String> = Vec::new();
    for (.., path) in found.into_iter().take(4) {
        // If one path continues another, the longer one comes first: the shorter one gives the whole list.
        let shorter =
            ordered.iter().position(|known| path.strip_prefix(known).is_some_and(|rest| rest.starts_with('.')));
        ordered.insert(shorter.unwrap_or(ordered.len()), path);
    }
    ordered
}

fn best_path(evidence: &Evidence) -> Option<String> {
    paths(evidence).into_iter().next()
}

/// Chooses the tables to draft and their entities, most certain first.
pub fn choose<'t>(known: &'t [KnownTable<'t>]) -> Vec<DraftedSource<'t>> {
    let mut chosen: Vec<(i32, Entity, &KnownTable<'t>, String)> =
        known.iter().filter_map(|k| role(k).map(|(points, entity, why)| (points, entity, k, why))).collect();
    if chosen.iter().any(|(points, entity, ..)| *points >= ENOUGH && *entity != Entity::Episode) {
        chosen.retain(|(points, ..)| *points >= ENOUGH);
    } else {
        // The best candidate, marked as uncertain.
        let best = chosen.iter().filter(|(_, entity, ..)| *entity != Entity::Episode).map(|(p, ..)| *p).max();
        chosen.retain(|(points, entity, ..)| *points >= ENOUGH || Some(*points) == best && *entity != Entity::Episode);
    }
    chosen.sort_by(|a, b| b.0.cmp(&a.0).then(a.2.table.name.cmp(&b.2.table.name)));
    chosen.truncate(TABLES);
    let episodes: Vec<&KnownTable<'t>> =
        chosen.iter().filter(|(_, e, ..)| *e == Entity::Episode).map(|(_, _, k, _)| *k).collect();
    // For an entity with several tables with numeric keys, all but the first one: they have the same numbers.
    let mut numbered = BTreeSet::new();
    let is_numbered = |k: &KnownTable<'_>| {
        let evidence = k.single_key().and_then(|key| k.evidence_of(key));
        evidence.is_some_and(|evidence| evidence.shape == ValueShape::Whole)
    };
    let later = chosen.iter().filter(|(_, entity, k, _)| is_numbered(k) && !numbered.insert(*entity));
    let tagged: BTreeSet<&str> = later.map(|(_, _, k, _)| k.table.name.as_str()).collect();
    chosen
        .iter()
        .map(|(points, entity, table, why)| {
            let sure = match points {
                14.. => Sure::High,
                ENOUGH.. => Sure::Medium,
                _ => Sure::Low,
            };
            source(*entity, table, why.clone(), sure, &Others { episodes: &episodes, tagged: &tagged, all: known })
        })
        .collect()
}

/// Points for rows with a question and its answer.
const EXCHANGE: i32 = 12;
/// Points for rows with subject, predicate, and object.
const TRIPLE: i32 = 8;

/// Guesses the entity of a table's rows, with points and reasons; `None` if the table holds neither texts nor sessions,
/// is internal bookkeeping, or lists people.
fn role(known: &KnownTable<'_>) -> Option<(i32, Entity, String)> {
    let TableWords { memory, message, session, books, people, tenants } = known.words;
    if books || people || tenants {
        return None;
    }
    let has_name = |words: &[&str]| known.table.columns.iter().any(|c| names::has_all(&c.name, words));
    let triple = if known.triple().is_some() { TRIPLE } else { 0 };
    let text = known.texts().first().map_or(0, |(points, ..)| *points).max(triple.min(IS_TEXT));
    let time = 2 * i32::from(!known.made().is_empty() || json_time(known).is_some() || uuid_key(known).is_some());
    let key = i32::from(!known.table.key.is_empty());
    // An empty table is drafted only if its names leave no doubt.
    let base = text + time + key - if known.table.rows > 0 { 0 } else { 4 };
    let vector = 3 * i32::from(known.evidence.iter().any(|e| matches!(e.shape, ValueShape::Vector(_))));
    let said = 4 * i32::from(has_name(&["role"]) || has_name(&["author"]) || has_name(&["sender"]));
    let order = 2 * i32::from(has_name(&["sequence"]) || has_name(&["seq"]) || has_name(&["idx"]));
    // A question beside its answer is a part of a conversation, whatever the table's name.
    let one_of = |words: &[&str]| words.iter().any(|word| has_name(&[word]));
    let asked = one_of(&["prompt", "question", "query", "input", "request"]);
    let answered = one_of(&["response", "answer", "reply", "output", "completion"]);
    let exchange = if asked && answered { EXCHANGE } else { 0 };
    let memories = memory + vector + triple;
    let messages = if message > 0 || said > 0 || exchange > 0 { message + said + order + exchange } else { 0 };
    let words = |points: i32, what: &str| if points >= 4 { format!("its name suggests {what}") } else { String::new() };
    let reasons = |first: String, others: &[(i32, &str)]| {
        let others = others.iter().filter(|(points, _)| *points > 0).map(|(_, words)| (*words).to_owned());
        std::iter::once(first).filter(|w| !w.is_empty()).chain(others).collect::<Vec<_>>().join(", ")
    };
    // A session is a container of messages: named so, and without a text as its main content.
    if session > memories.max(messages) && key > 0 {
        let owned = 2 * i32::from(!owner::of_table(known).is_empty());
        return Some((
            session + 2 + time + base / 4 + owned,
            Entity::Episode,
            reasons(words(session, "sessions"), &[(time, "it has times"), (1, "it has a key")]),
        ));
    }
    if text < IS_TEXT {
        return None;
    }
    let others = [
        (text, "it has a column of texts"),
        (time, "it has times"),
        (vector, "it has vectors"),
        (triple, "it has subject, predicate, and object"),
        (said, "it records who spoke"),
        (exchange, "it has questions and answers"),
        (order, "it numbers its rows"),
    ];
    if messages > memories {
        Some((base + messages, Entity::Segment, reasons(words(message, "messages"), &others)))
    } else {
        // Without a word for memories, it is merely a table of texts.
        Some((
            base + memories - if memories == 0 { 5 } else { 0 },
            Entity::Memory,
            reasons(words(memory, "memories"), &others),
        ))
    }
}

/// A time inside a JSON column: the column and the path.
fn json_time(known: &KnownTable<'_>) -> Option<(String, String)> {
    known.columns().find_map(|(column, evidence)| {
        let ValueShape::Document(document) = &evidence.shape else { return None };
        let is_made = |path: &str| MADE.iter().any(|(word, points)| *points >= 7 && names::has_all(path, &[*word]));
        let (path, _) = document.leaves.iter().find(|(path, leaf)| {
            let last = path.rsplit('.').next().unwrap_or(path);
            leaf.times * 2 >= evidence.filled && is_made(last)
        })?;
        Some((column.name.clone(), usable(path)?))
    })
}

/// A key column with time-ordered UUIDs.
fn uuid_key(known: &KnownTable<'_>) -> Option<(String, u8)> {
    known.table.key.iter().find_map(|key| Some((key.clone(), known.evidence_of(key)?.uuid?)))
}

/// The context of a source: the other tables.
struct Others<'a, 't> {
    episodes: &'a [&'a KnownTable<'t>],
    /// Names of tables whose keys are given together with the table's name.
    tagged: &'a BTreeSet<&'t str>,
    all: &'a [KnownTable<'t>],
}

impl Others<'_, '_> {
    /// The id of a table's row, from a column with its key.
    fn id_by(&self, table: &str, column: String) -> ReadPlace {
        if self.tagged.contains(table) {
            ReadPlace::Tagged(table.to_owned(), column)
        } else {
            ReadPlace::Column(column)
        }
    }
}

/// Guesses the columns of a source.
fn source<'t>(
    entity: Entity,
    known: &'t KnownTable<'t>,
    why: String,
    sure: Sure,
    others: &Others<'_, 't>,
) -> DraftedSource<'t> {
    let mut draft = Mapping { entity, known, columns: Vec::new(), used: BTreeSet::new() };
    draft.id(others);
    draft.times();
    let text = draft.text().or_else(|| draft.fact());
    draft.episode(others);
    draft.person();
    draft.by_names();
    let vectors = vectors(known, others.all);
    if let Some(VectorGuess::Own(column)) = &vectors {
        draft.used.insert(column.clone());
    }
    let unused = known
        .columns()
        .filter(|(column, _)| !draft.used.contains(&column.name) && !known.table.key.contains(&column.name))
        .map(|(column, evidence)| {
            let declared = if column.declared.is_empty() { "no type" } else { &column.declared };
            format!("{} ({declared}): {}", column.name, evidence.words())
        })
        .collect();
    DraftedSource { entity, known, why, sure, columns: draft.columns, vectors, unused, text }
}

struct Mapping<'t> {
    entity: Entity,
    known: &'t KnownTable<'t>,
    columns: Vec<ColumnGuess>,
    used: BTreeSet<String>,
}

impl Mapping<'_> {
    fn has(&self, name: &str) -> bool {
        self.entity.column(name).is_some() && !self.columns.iter().any(|c| c.name == name)
    }

    fn add(&mut self, name: &str, ways: Vec<ColumnReading>, why: impl Into<String>, sure: Sure) {
        let Some(column) = self.entity.column(name).filter(|_| self.has(name) && !ways.is_empty()) else { return };
        for way in &ways {
            match &way.place {
                ReadPlace::Column(stored) | ReadPlace::Uuid(stored, _) | ReadPlace::Tagged(_, stored) => {
                    self.used.insert(stored.clone());
                }
                ReadPlace::Joined(columns) => self.used.extend(columns.iter().cloned()),
                ReadPlace::Fields(fields) => self.used.extend(fields.iter().map(|(_, column)| column.clone())),
                ReadPlace::Tuple(_) | ReadPlace::RowNumber(_) | ReadPlace::KeyOf(..) => {}
            }
        }
        self.columns.push(ColumnGuess { name: column.name, ways, why: why.into(), sure });
    }

    fn id(&mut self, others: &Others<'_, '_>) {
        let table = self.known.table;
        let is_tagged = others.tagged.contains(&*table.name);
        let (place, why, sure) = match (&table.key[..], &table.row_number) {
            // Messages name a session by its key.
            ([_], _) if is_tagged && self.entity != Entity::Episode && self.unique().is_some() => (
                ReadPlace::Column(self.unique().unwrap_or_default()),
                "all sampled values differ, and the numbers of the key also occur in another table".to_owned(),
                Sure::Medium,
            ),
            ([one], _) if is_tagged => (
                ReadPlace::Tagged(table.name.clone(), one.clone()),
                format!("{one} with the table's name, because the same numbers are keys of another table"),
                Sure::High,
            ),
            ([one], _) => (ReadPlace::Column(one.clone()), "the table's key".to_owned(), Sure::High),
            ([_, ..], _) => {
                let why = format!("the key is {} together: a JSON list of them", table.key.join(", "));
                (ReadPlace::Tuple(table.key.clone()), why, Sure::High)
            }
            ([], _) if self.unique().is_some() => (
                ReadPlace::Column(self.unique().unwrap_or_default()),
                "no key is declared; all sampled values differ".to_owned(),
                Sure::Medium,
            ),
            ([], Some(number)) => {
                let why = "no key is declared: the hidden row number, which a VACUUM may change".to_owned();
                (ReadPlace::RowNumber(number.clone()), why, Sure::Low)
            }
            ([], None) => {
                let all = table.columns.iter().map(|c| c.name.clone()).collect();
                (ReadPlace::Tuple(all), "no key is declared: the whole row".to_owned(), Sure::Low)
            }
        };
        self.add("id", vec![whole(place)], why, sure);
    }

    /// A column named as an id that is filled and distinct in all sampled rows.
    fn unique(&self) -> Option<String> {
        let found = self.known.columns().find(|(column, evidence)| {
            let words = names::words(&column.name);
            words.iter().any(|w| w == "id" || w == "uuid" || w == "key")
                && self.known.single_key() != Some(&column.name)
                && evidence.filled == evidence.of
                && evidence.of > 1
                && evidence.distinct == evidence.of
        });
        found.map(|(column, _)| column.name.clone())
    }

    fn times(&mut self) {
        let made = if self.has("started_at") { "started_at" } else { "created_at" };
        if let Some((points, column, clock)) = self.known.made().first() {
            let sure = if *points >= 28 {
                Sure::High
            } else if *points >= 16 {
                Sure::Medium
            } else {
                Sure::Low
            };
            let way = ColumnReading { stored: clock.stored(), ..whole(ReadPlace::Column(column.name.clone())) };
            self.add(made, vec![way], clock.words(), sure);
        } else if let Some((column, path)) = json_time(self.known) {
            let why = format!("times at {path} of the JSON");
            let way = ColumnReading { path: Some(path), ..whole(ReadPlace::Column(column.clone())) };
            self.add(made, vec![way], why, Sure::Medium);
            self.used.remove(&column);
        } else if let Some((column, version)) = uuid_key(self.known) {
            let way = ColumnReading { stored: Some("epoch"), ..whole(ReadPlace::Uuid(column.clone(), version)) };
            self.add(
                made,
                vec![way],
                format!("no time is stored, but {column} holds UUIDs of version {version}, which contain it"),
                Sure::Medium,
            );
        }
    }

    fn text(&mut self) -> Option<String> {
        let name = ["text", "content", "detail"].into_iter().find(|name| self.has(name))?;
        let texts = self.known.texts();
        let (points, column, evidence) = texts.first()?;
        if self.entity == Entity::Episode && *points < 6 && best_path(evidence).is_none() {
            return None;
        }
        let mut ways: Vec<ColumnReading> = Vec::new();
        let mut whole_too = true;
        let paths = paths(evidence);
        for path in &paths {
            ways.push(ColumnReading { path: Some(path.clone()), ..whole(ReadPlace::Column(column.name.clone())) });
        }
        if evidence.shape == ValueShape::Quoted {
            ways.push(ColumnReading { path: Some(String::new()), ..whole(ReadPlace::Column(column.name.clone())) });
            whole_too = false;
        }
        if whole_too {
            ways.push(whole(ReadPlace::Column(column.name.clone())));
        }
        // For rows without it, the next best text of the row.
        if evidence.filled < evidence.of
            && let Some((_, next, _)) = texts.get(1).filter(|(_, _, e)| e.is_prose())
        {
            ways.push(whole(ReadPlace::Column(next.name.clone())));
        }
        let sure = match points {
            9.. => Sure::High,
            7.. => Sure::Medium,
            _ => Sure::Low,
        };
        let packed = if evidence.shape == ValueShape::Packed { "; compressed: its words cannot be shown" } else { "" };
        self.add(name, ways, format!("{}{packed}", evidence.words()), sure);
        Some(column.name.clone())
    }

    /// The text of a fact, and its parts; returns the stored column that distinguishes facts from other rows.
    fn fact(&mut self) -> Option<String> {
        let triple = self.known.triple().filter(|_| self.entity == Entity::Memory)?;
        let [_, predicate, _] = triple;
        let joined = ReadPlace::Joined(triple.map(str::to_owned).to_vec());
        self.add("text", vec![whole(joined)], "subject, predicate, and object of a fact", Sure::Medium);
        let mut fields: Vec<(&'static str, String)> =
            ["subject", "predicate", "object"].into_iter().zip(triple.map(str::to_owned)).collect();
        for name in ["valid_from", "valid_to"] {
            let stored = self.known.columns().find(|(column, _)| names::words(&column.name).join("_") == name);
            fields.extend(stored.map(|(column, _)| (name, column.name.clone())));
        }
        // A dot would be taken for an alias.
        if fields.iter().all(|(_, column)| !column.contains('.')) {
            let why = "parts of a fact, which reveal contradictions";
            self.add("metadata", vec![whole(ReadPlace::Fields(fields))], why, Sure::Medium);
        }
        Some(predicate.to_owned())
    }

    /// The session that a row belongs to, by the id under which it is listed.
    fn episode(&mut self, others: &Others<'_, '_>) {
        if !self.has("episode_id") {
            return;
        }
        let episodes = others.episodes;
        let references = &self.known.table.references;
        for episode in episodes {
            let to: Vec<&SampledReference> = references.iter().filter(|r| r.table == episode.table.name).collect();
            let by_key: Option<Vec<String>> =
                episode.table.key.iter().map(|key| Some(to.iter().find(|r| r.to == *key)?.column.clone())).collect();
            let why = format!("a foreign key to {}", episode.table.name);
            match (by_key.as_deref(), to.first(), episode.single_key()) {
                (Some([one]), ..) => {
                    let place = others.id_by(&episode.table.name, one.clone());
                    return self.add("episode_id", vec![whole(place)], why, Sure::High);
                }
                (Some(several @ [_, ..]), ..) => {
                    return self.add("episode_id", vec![whole(ReadPlace::Tuple(several.to_vec()))], why, Sure::High);
                }
                (_, Some(reference), Some(key)) if !others.tagged.contains(&*episode.table.name) => {
                    let place = ReadPlace::KeyOf((*reference).clone(), key.to_owned());
                    return self.add("episode_id", vec![whole(place)], why, Sure::High);
                }
                _ => {}
            }
        }
        // A column with the name of the sessions' key is one.
        let alike = |key: &&str| *key != "id" && self.known.columns().any(|(column, _)| column.name == *key);
        let by_key = episodes.iter().filter_map(|episode| Some((&episode.table.name, episode.single_key()?)));
        if let Some((table, key)) = by_key.into_iter().find(|(_, key)| alike(key)) {
            let why = "named like the key of what the row belongs to";
            let place = others.id_by(table, key.to_owned());
            return self.add("episode_id", vec![whole(place)], why, Sure::Medium);
        }
        let named = |words: &[&str]| {
            let fits = |(column, evidence): &(&SampledColumn, &Evidence)| {
                names::has_all(&column.name, words) && fits(evidence, Fit::Word)
            };
            self.known.columns().find(fits).map(|(column, _)| column.name.clone())
        };
        let wanted: [&[&str]; 6] = [
            &["session", "id"],
            &["conversation", "id"],
            &["thread", "id"],
            &["chat", "id"],
            &["episode", "id"],
            &["session"],
        ];
        if let Some(column) = wanted.into_iter().find_map(named) {
            self.add(
                "episode_id",
                vec![whole(ReadPlace::Column(column))],
                "named like what the row belongs to",
                Sure::Medium,
            );
        }
    }

    /// Guesses the column with the owner of a row: a column, a place in JSON, or a part of a scope.
    fn person(&mut self) {
        let mut owners = owner::of_table(self.known);
        let is_tenants = |column: &str| self.known.has_people && names::is_tenant(column);
        owners.retain(|guess| {
            let is_everywhere = guess.rows == self.known.table.rows && !is_tenants(&guess.column);
            guess.sure > Sure::Low || guess.part.is_some() || is_everywhere
        });
        owners.sort_by_key(owner::OwnerGuess::rank);
        let Some(guess) = owners.into_iter().next() else { return };
        let is_whole = guess.path.is_none() && guess.part.is_none();
        let way =
            ColumnReading { path: guess.path, part: guess.part, ..whole(ReadPlace::Column(guess.column.clone())) };
        self.add("user_id", vec![way], guess.why, guess.sure);
        // Other things are in such a value too.
        if !is_whole {
            self.used.remove(&guess.column);
        }
    }

    fn by_names(&mut self) {
        for (name, wanted, fit) in RULES {
            if !self.has(name) {
                continue;
            }
            let free = |column: &&SampledColumn| !self.used.contains(&column.name);
            let chosen = wanted.iter().find_map(|words| {
                let words: Vec<&str> = words.split(' ').collect();
                self.known.columns().find(|(c, e)| {
                    free(c)
                        && (*name != "title" || !self.known.table.key.contains(&c.name))
                        && names::has_all(&c.name, &words)
                        && fits(e, *fit)
                        && !names::is_person(&c.name)
                })
            });
            let Some((column, evidence)) = chosen else { continue };
            let stored = match evidence.shape {
                ValueShape::Time(clock) => clock.stored(),
                _ => None,
            };
            let way = ColumnReading { stored, ..whole(ReadPlace::Column(column.name.clone())) };
            let is_same = names::words(&column.name).join("_") == *name;
            let sure = if is_same { Sure::High } else { Sure::Medium };
            let why = evidence.words();
            self.add(name, vec![way], why, sure);
        }
    }
}

fn whole(place: ReadPlace) -> ColumnReading {
    ColumnReading { place, path: None, part: None, stored: None }
}

fn fits(evidence: &Evidence, fit: Fit) -> bool {
    match (fit, &evidence.shape) {
        (Fit::Word, ValueShape::Text) => evidence.is_word() || evidence.letters <= 64,
        (Fit::Word | Fit::Number | Fit::Whole, ValueShape::Whole)
        | (Fit::Number, ValueShape::Real)
        | (Fit::Time, ValueShape::Time(_))
        | (Fit::Any, ValueShape::Text) => true,
        (Fit::List, ValueShape::Document(document)) => document.text_lists > 0 && document.objects == 0,
        (Fit::Json, ValueShape::Document(document)) => document.objects > 0,
        _ => false,
    }
}

fn vectors(known: &KnownTable<'_>, all: &[KnownTable<'_>]) -> Option<VectorGuess> {
    let of = |k: &KnownTable<'_>| {
        k.columns().find(|(_, e)| matches!(e.shape, ValueShape::Vector(_))).map(|(c, _)| c.name.clone())
    };
    if let Some(column) = of(known) {
        return Some(VectorGuess::Own(column));
    }
    let key = known.single_key()?;
    all.iter().find_map(|other| {
        // A table with its own texts keeps its vectors for those.
        let column = of(other).filter(|_| other.texts().is_empty())?;
        let reference = other.table.references.iter().find(|r| r.table == known.table.name && r.to == key)?;
        Some(VectorGuess::Beside { table: other.table.name.clone(), key: reference.column.clone(), column })
    })
}
