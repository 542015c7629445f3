//! Reads every text of the database once, row by row: what names the person elsewhere, and what names rows that go.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::ControlFlow;

use serde::Serialize;

use super::effects::{New, Updates, is_required};
use super::graph::{Graph, as_text, name};
use super::matcher::{Hit, Matcher, What};
use super::scrub;
use super::subject::Handle;
use crate::change::ChangeError;
pub use crate::change::plan::erasure::Mentions;
use crate::layout::Engine;
use crate::layout::erase::{Action, BoundRule, Recompute};
use crate::memory::json;
use crate::store::session::Raw;
use crate::store::snapshot::{Snapshot, Wanted};
use crate::store::stored::TableName;

/// Mentions that are kept with their sample; all are counted.
const KEPT: usize = 10_000;
/// Characters around a mention that a sample shows.
const AROUND: usize = 24;

/// A place outside the person's own rows where the person is named.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Mention {
    /// Table.
    pub table: TableName,
    /// Key of the row.
    pub key: Vec<Raw>,
    /// Column.
    pub column: String,
    /// Kinds of the handles that stand there.
    pub kinds: Vec<String>,
    /// How many times.
    pub hits: usize,
    /// The text around the first one, with the handle masked.
    pub sample: String,
    /// The layout knows the table: the row can be changed.
    pub known: bool,
}

/// What the pass over everything found.
#[derive(Debug, Default)]
pub struct Found {
    /// Mentions in rows that stay.
    pub mentions: Vec<Mention>,
    /// How many there are, by table and column; also those that are not kept.
    pub counted: BTreeMap<String, usize>,
    /// Hits of each handle anywhere, also in the person's own rows: the positive control.
    pub control: Vec<usize>,
    /// References to rows that go which cannot be taken out, by table and column.
    pub stuck: BTreeMap<String, usize>,
    /// References that go, by table and column.
    pub loosened: BTreeMap<String, usize>,
    /// Rows whose aggregate is to be made anew.
    pub recompute: Vec<(Recompute, TableName, Vec<Raw>)>,
    /// Elements taken out of a canvas list, by row.
    pub removed: BTreeMap<String, usize>,
    /// Private values of our own audit trail that name the person or a row that goes.
    pub redacts: Vec<(i64, String)>,
    /// Hits in other tables of ours, which hold no personal values.
    pub ours: BTreeMap<String, usize>,
    /// Hits in the account that is kept.
    pub account: usize,
    /// Values read.
    pub values: u64,
}

/// What the pass needs to know.
pub struct Search<'a> {
    /// Rows that go.
    pub graph: &'a Graph,
    /// Rows of the person's account that are kept, by table.
    pub account: &'a Graph,
    /// Handles, in the order of the matcher.
    pub handles: &'a [&'a Handle],
    /// What to look for.
    pub matcher: &'a Matcher,
    /// Ids of rows that go, as far as they can be told in texts.
    pub ids: &'a HashSet<String>,
    /// The ids that lists of the layout may lose, by table and column: short ones too.
    pub listed: &'a HashMap<(TableName, String), HashSet<String>>,
    /// What becomes of mentions.
    pub mentions: Mentions,
    /// Schema of our own tables.
    pub own: Option<&'a str>,
    /// Tables that the layout knows.
    pub known: &'a HashSet<TableName>,
    /// Tables that triggers keep in step.
    pub follows: &'a HashSet<TableName>,
    /// Told how many values have been read, now and then.
    pub progress: &'a (dyn Fn(&str, u64) + Sync),
}

/// Reads everything.
///
/// # Errors
/// The engine's refusal.
pub async fn everything(
    snapshot: &mut Snapshot<'_>,
    search: &Search<'_>,
    updates: &mut Updates,
) -> Result<Found, ChangeError> {
    let mut found = Found { control: vec![0; search.handles.len()], ..Found::default() };
    for table in search.graph.relations.tables.clone() {
        let key = search.graph.relations.keys.get(&table).cloned().unwrap_or_default();
        let shape = snapshot.store.shape(&table).await?;
        let engine = snapshot.store.engine();
        let texts: Vec<(String, String)> = shape
            .columns
            .iter()
            .filter(|c| engine == Engine::Sqlite || holds_text(&c.declared))
            .map(|c| (c.name.clone(), c.declared.clone()))
            .collect();
        if texts.is_empty() {
            continue;
        }
        let mut read = key.clone();
        read.extend(texts.iter().map(|(name, _)| name.clone()));
        let required: Vec<bool> = texts.iter().map(|(c, _)| is_required(snapshot, &table, c)).collect();
        let mut place =
            Place { search, table: &table, key_length: key.len(), texts: &texts, required: &required, key: &key };
        let wanted = Wanted { table: &table, columns: &read, when: None, subject: &[] };
        let title = table.title();
        snapshot
            .stream(wanted, |row| {
                place.row(&row, &mut found, updates);
                if found.values % 8_192 < texts.len() as u64 {
                    (search.progress)(&title, found.values);
                }
                ControlFlow::Continue(())
            })
            .await?;
    }
    Ok(found)
}

/// Whether a column of PostgreSQL can hold a handle or an id.
fn holds_text(declared: &str) -> bool {
    let lower = declared.to_ascii_lowercase();
    let number = [
        "int",
        "numeric",
        "double",
        "real",
        "bool",
        "timestamp",
        "date",
        "time",
        "interval",
        "vector",
        "tsvector",
        "halfvec",
        "sparsevec",
        "money",
        "bit",
        "oid",
        "point",
        "serial",
    ];
    !number.iter().any(|n| lower.starts_with(n)) && !matches!(lower.as_str(), "bigint" | "smallint")
}

/// One value that holds something.
struct Spot<'a> {
    key: &'a [Raw],
    column: usize,
    raw: &'a Raw,
    text: &'a str,
    hits: &'a [Hit],
}

struct Place<'a> {
    search: &'a Search<'a>,
    table: &'a TableName,
    key: &'a [String],
    key_length: usize,
    texts: &'a [(String, String)],
    required: &'a [bool],
}

impl Place<'_> {
    fn row(&mut self, row: &[Raw], found: &mut Found, updates: &mut Updates) {
        let (key, values) = row.split_at(self.key_length.min(row.len()));
        let goes = self.search.graph.has(self.table, key);
        let kept = self.search.account.has(self.table, key);
        for (i, raw) in values.iter().enumerate() {
            if matches!(raw, Raw::Null | Raw::Integer(_) | Raw::Real(_)) {
                continue;
            }
            found.values += 1;
            let text = match raw {
                Raw::Text(text) => std::borrow::Cow::Borrowed(text.as_str()),
                other => match scrub::readable(other) {
                    Some(text) => std::borrow::Cow::Owned(text),
                    None => continue,
                },
            };
            let hits = self.search.matcher.find(text.as_bytes());
            for hit in &hits {
                if let What::Handle(n) = hit.what {
                    found.control[n] += 1;
                }
            }
            if goes {
                continue;
            }
            if kept {
                found.account += hits.iter().filter(|h| h.what != What::Row).count();
                continue;
            }
            if self.is_ours() {
                self.ours(key, i, &hits, found);
                continue;
            }
            if !hits.is_empty() || self.short_list(i, &text) {
                self.value(&Spot { key, column: i, raw, text: &text, hits: &hits }, found, updates);
            }
        }
    }

    fn is_ours(&self) -> bool {
        self.search.own == Some(self.table.schema.as_str())
            && [
                "memory_audit",
                "memory_audit_private",
                "memory_audit_head",
                "memory_migrations",
                "memory_suppressions",
                "memory_holds",
                "memory_purges",
                "memory_jobs",
                "memory_quarantine",
            ]
            .contains(&self.table.name.as_str())
    }

    fn ours(&self, key: &[Raw], column: usize, hits: &[Hit], found: &mut Found) {
        if hits.is_empty() {
            return;
        }
        if self.table.name == "memory_audit_private" {
            let seq = key.first().and_then(as_text).and_then(|t| t.parse().ok());
            if let (Some(seq), Some(Raw::Text(field))) = (seq, key.get(1)) {
                let value = (seq, field.clone());
                if !found.redacts.contains(&value) {
                    found.redacts.push(value);
                }
            }
        } else if hits.iter().any(|h| h.what != What::Row) {
            let place = format!("{}.{}", self.table.title(), self.texts[column].0);
            *found.ours.entry(place).or_default() += hits.len();
        }
    }

    /// Whether a list that the layout names may hold ids too short to be looked for.
    fn short_list(&self, column: usize, text: &str) -> bool {
        let Some(ids) = self.listed(column) else { return false };
        json::read_list(Some(text)).items.iter().any(|item| ids.contains(item))
    }

    /// The ids that a list of the layout may lose.
    fn listed(&self, column: usize) -> Option<&HashSet<String>> {
        self.search.listed.get(&(self.table.clone(), self.texts[column].0.clone()))
    }

    fn recomputed(&self, column: usize) -> Option<Recompute> {
        let listed = |r: &&BoundRule| {
            r.action == Action::Remove && name(&r.table) == *self.table && r.column == self.texts[column].0
        };
        self.search.graph.rules.iter().filter(listed).find_map(|rule| rule.recompute)
    }

    fn value(&self, at: &Spot<'_>, found: &mut Found, updates: &mut Updates) {
        let Spot { key, column: i, raw, text, hits } = *at;
        let (column, declared) = &self.texts[i];
        if updates.get(self.table, key, column).is_some() {
            return;
        }
        let place = format!("{}.{column}", self.table.title());
        let known = self.search.known.contains(self.table) && !self.key.is_empty();
        let changeable = known && !self.key.contains(column);
        let named: Vec<Hit> = hits.iter().filter(|h| h.what != What::Row).copied().collect();
        let mut new = text.to_owned();
        if !named.is_empty() {
            self.mention(key, i, text, &named, changeable, found);
            if changeable && self.search.mentions == Mentions::Redact {
                new = scrub::redacted(text, &named);
            }
        }
        let mut empty = false;
        let rows: Vec<Hit> =
            self.search.matcher.find(new.as_bytes()).into_iter().filter(|h| h.what == What::Row).collect();
        let listed = self.listed(i);
        if !rows.is_empty() || listed.is_some() {
            let ids = listed.unwrap_or(self.search.ids);
            let loosened = match new.as_str() {
                whole if ids.contains(whole) => {
                    empty = changeable && !self.required[i];
                    empty.then(String::new)
                }
                list if declared.ends_with("[]") => scrub::array_without(list, ids),
                other => scrub::without(other, ids, &rows),
            };
            match loosened.filter(|_| changeable) {
                Some(text) => {
                    *found.loosened.entry(place.clone()).or_default() += 1;
                    if let Some(recompute) = self.recomputed(i) {
                        found.recompute.push((recompute, self.table.clone(), key.to_vec()));
                        let count = |t: &str| json::read_list(Some(t)).items.len();
                        let removed = count(&new).saturating_sub(count(&text));
                        found.removed.insert(serde_json::to_string(key).unwrap_or_default(), removed);
                    }
                    new = text;
                }
                None if !rows.is_empty() && !self.search.follows.contains(self.table) => {
                    *found.stuck.entry(place.clone()).or_default() += rows.len();
                }
                None => {}
            }
        }
        if empty {
            updates.set(
                self.table,
                key,
                column,
                raw,
                New::Is(Raw::Null),
                &format!("{place} named a row that goes and is emptied"),
            );
        } else if new != text {
            let why = format!("{place} named the person or rows that go, which is taken out");
            updates.set(self.table, key, column, raw, New::Is(scrub::stored_as(raw, new)), &why);
        }
    }

    fn mention(&self, key: &[Raw], i: usize, text: &str, hits: &[Hit], known: bool, found: &mut Found) {
        let column = &self.texts[i].0;
        *found.counted.entry(format!("{}.{column}", self.table.title())).or_default() += 1;
        if found.mentions.len() >= KEPT && self.search.mentions != Mentions::Delete {
            return;
        }
        let mut kinds = Vec::new();
        for hit in hits {
            if let What::Handle(n) = hit.what
                && let Some(handle) = self.search.handles.get(n)
                && !kinds.contains(&handle.kind)
            {
                kinds.push(handle.kind.clone());
            }
        }
        found.mentions.push(Mention {
            table: self.table.clone(),
            key: key.to_vec(),
            column: column.clone(),
            kinds,
            hits: hits.len(),
            sample: sample(text, hits),
            known,
        });
    }
}

/// The text around the first hit, with every handle masked.
fn sample(text: &str, hits: &[Hit]) -> String {
    let Some(first) = hits.first() else { return String::new() };
    let mut out = String::new();
    let before = text.get(..first.start).unwrap_or_default();
    let from = before.char_indices().rev().nth(AROUND).map_or(0, |(at, _)| at);
    let mut at = first.start.saturating_sub(before.len() - from);
    for hit in hits {
        if hit.start > first.end + AROUND * 2 {
            break;
        }
        out.push_str(text.get(at..hit.start).unwrap_or_default());
        out.push_str("[…]");
        at = hit.end;
    }
    out.extend(text.get(at..).unwrap_or_default().chars().take(AROUND));
    out
}
