//! One table's rows as the search reads them: what a row that stays loses, and what is noted of it.

use std::borrow::Cow;
use std::collections::HashSet;

use super::effects::{New, Updates};
use super::graph::{as_text, name};
use super::keys::{self, Keys};
use super::matcher::{Hit, What};
use super::mention::{self, Certainty, Mention, Mentions, Refusals};
use super::scan::{Found, KEPT, Search, looks_personal, sample};
use super::scrub::{self, Opened};
use super::subject::Handle;
use crate::layout::erase::{Action, BoundRule, Recompute};
use crate::memory::json;
use crate::store::own;
use crate::store::session::Raw;
use crate::store::stored::TableName;

/// What a value becomes without the person.
enum Out {
    /// NULL.
    Empty,
    /// These pieces, with a pseudonym between them.
    Around(Vec<String>),
    /// These bytes.
    New(Vec<u8>),
}

/// One value that holds something.
struct Spot<'a> {
    key: &'a [Raw],
    column: usize,
    raw: &'a Raw,
    opened: &'a Opened<'a>,
    hits: &'a [Hit],
}

/// Why nothing is done about a mention in a table of somebody else's.
pub(super) const OUTSIDE: &str = "the table is outside the layout: nothing is written there";

/// Whether a hit is all there is.
fn is_whole(hit: &Hit, value: &[u8]) -> bool {
    hit.start == 0 && hit.end == value.len()
}

/// A value that names the person.
struct Named<'a> {
    key: &'a [Raw],
    column: usize,
    raw: &'a Raw,
    text: &'a [u8],
    hits: &'a [Hit],
}

/// A table that is being read.
pub(super) struct Place<'a> {
    /// What is looked for.
    pub search: &'a Search<'a>,
    /// Table.
    pub table: &'a TableName,
    /// Columns of its key.
    pub key: &'a [String],
    /// Columns that are looked at, with their types.
    pub texts: &'a [(String, String)],
    /// Of each, whether it cannot be emptied.
    pub required: &'a [bool],
    /// Of each, whether it holds ids and nothing else.
    pub ids_only: &'a [bool],
    /// Of each, whether its values are keys.
    pub keyed: &'a [bool],
    /// Keys that hold the person's id.
    pub keys: &'a Keys,
}

impl Place<'_> {
    /// Looks at a row: its key, then the columns.
    pub fn row(&self, row: &[Raw], found: &mut Found, updates: &mut Updates) {
        let (key, values) = row.split_at(self.key.len().min(row.len()));
        let goes = self.search.graph.has(self.table, key);
        let kept = self.search.account.has(self.table, key);
        for (i, raw) in values.iter().enumerate() {
            if let Raw::Integer(number) = raw {
                self.number(key, i, *number, goes, kept, found);
            }
            if matches!(raw, Raw::Null | Raw::Integer(_) | Raw::Real(_)) {
                continue;
            }
            found.values += 1;
            let opened = match scrub::opened(raw) {
                Ok(Some(opened)) => opened,
                Ok(None) => continue,
                Err(reason) => {
                    found.unread.insert(format!("{}.{}", self.table.title(), self.texts[i].0), reason);
                    continue;
                }
            };
            let mut hits = self.search.matcher.find(&opened.bytes);
            if self.ids_only[i] {
                hits = keys::parts(&opened.bytes, hits);
            }
            if self.ids_only[i] && self.is_ours() {
                hits.retain(|hit| is_whole(hit, &opened.bytes));
            }
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
            let spot = Spot { key, column: i, raw, opened: &opened, hits: &hits };
            if self.is_ours() {
                self.ours(&spot, found, updates);
            } else if !hits.is_empty() || self.short_list(i, &opened.bytes) {
                self.value(&spot, found, updates);
            }
        }
    }

    /// A number is the person's where its column is about people; elsewhere it only happens to be the same.
    fn number(&self, key: &[Raw], i: usize, number: i64, goes: bool, kept: bool, found: &mut Found) {
        let named = |h: &&Handle| h.kind == "id" && h.value.parse() == Ok(number);
        let Some(handle) = self.search.handles.iter().position(named) else { return };
        let column = &self.texts[i].0;
        if !looks_personal(column) && !((goes || kept) && self.key.contains(column)) {
            return;
        }
        found.control[handle] += 1;
        if goes || self.is_ours() {
            return;
        }
        if kept {
            found.account += 1;
            return;
        }
        let text = number.to_string();
        let hit = Hit { what: What::Handle(handle), start: 0, end: text.len(), fill: None };
        let refusals = self.refusals(Some("a number stands there alone: the row may go, or stay"));
        let named = Named { key, column: i, raw: &Raw::Integer(number), text: text.as_bytes(), hits: &[hit] };
        self.mention(&named, refusals, found);
    }

    fn is_ours(&self) -> bool {
        self.search.own == Some(self.table.schema.as_str()) && own::TABLES.contains(&self.table.name.as_str())
    }

    /// Our own records name nobody for long: private values of the audit trail are redacted, what jobs noted of a row
    /// goes with it, words that they kept are taken out.
    fn ours(&self, at: &Spot<'_>, found: &mut Found, updates: &mut Updates) {
        let Spot { key, column, raw, opened, hits } = *at;
        if hits.is_empty() {
            return;
        }
        let named: Vec<Hit> = hits.iter().filter(|h| h.what != What::Row).copied().collect();
        let place = format!("{}.{}", self.table.title(), self.texts[column].0);
        match self.table.name.as_str() {
            "memory_audit_private" => {
                let seq = key.first().and_then(as_text).and_then(|t| t.parse().ok());
                if let (Some(seq), Some(Raw::Text(field))) = (seq, key.get(1)) {
                    let value = (seq, field.clone());
                    if !found.redacts.contains(&value) {
                        found.redacts.push(value);
                    }
                }
            }
            "memory_job_quarantine" => {
                let row = (self.table.clone(), key.to_vec());
                if !found.forgotten.contains(&row) {
                    found.forgotten.push(row);
                }
            }
            "memory_jobs" if !named.is_empty() => {
                let new = scrub::redacted(&opened.bytes, &named);
                if let Ok(new) = scrub::stored_as(raw, opened.wrapping, new) {
                    let why = format!("{place} named the person, which is taken out");
                    updates.set(self.table, key, &self.texts[column].0, raw, New::Is(new), &why);
                }
            }
            _ if !named.is_empty() => *found.ours.entry(place).or_default() += named.len(),
            _ => {}
        }
    }

    /// Whether a list that the layout names may hold ids too short to be looked for.
    fn short_list(&self, column: usize, text: &[u8]) -> bool {
        let Some(ids) = self.listed(column) else { return false };
        json::read_list(std::str::from_utf8(text).ok()).items.iter().any(|item| ids.contains(item))
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
        let Spot { key, column: i, raw, opened, hits } = *at;
        let old: &[u8] = &opened.bytes;
        let column = &self.texts[i].0;
        if updates.get(self.table, key, column).is_some() {
            return;
        }
        let place = format!("{}.{column}", self.table.title());
        let known = self.search.known.contains(self.table) && !self.key.is_empty();
        let changeable = known && !self.key.contains(column);
        let named: Vec<Hit> = hits.iter().filter(|h| h.what != What::Row).copied().collect();
        let is_key = self.is_key(i, old, &named);
        if !named.is_empty() && self.follows(i, old) {
            return;
        }
        // A name that a key is about to lose goes with it wherever the key stands.
        let (bound, named): (Vec<Hit>, Vec<Hit>) =
            named.into_iter().partition(|hit| changeable && !is_key && self.is_bound(raw, opened, hit));
        let mut new = Cow::Borrowed(old);
        let mut empty = false;
        let mut taken: Vec<Hit> = Vec::new();
        if !named.is_empty() {
            let told = match (is_key, known && changeable) {
                (true, _) => keys::renamed(&self.texts[i].1, raw, old, &named, self.search.handles).map(Out::Around),
                (false, true) => self.taken_out(i, old, &named),
                (false, false) => Err("a key: other rows may refer to it"),
            };
            let at = Named { key, column: i, raw, text: old, hits: &named };
            let decided = self.mention(&at, self.refusals(told.as_ref().err().copied()), found);
            match told.ok().filter(|_| decided == Mentions::Redact) {
                Some(Out::Empty) => empty = true,
                Some(Out::New(bytes)) => (new, taken) = (Cow::Owned(bytes), named),
                Some(Out::Around(pieces)) => {
                    let why = format!("{place} holds the person's id, which gets another name");
                    updates.set(self.table, key, column, raw, New::Around(pieces), &why);
                    return;
                }
                None => {}
            }
        }
        if !bound.is_empty() && !empty {
            let fill = |hit: &Hit| Hit { fill: Some(keys::BLANK), ..*hit };
            taken.extend(bound.iter().map(fill));
            taken.sort_by_key(|hit| hit.start);
            new = Cow::Owned(scrub::redacted(old, &taken));
        }
        if !empty {
            empty = self.loosen(at, &place, changeable, &mut new, found);
        }
        if empty {
            let why = format!("{place} named the person or a row that goes and is emptied");
            updates.set(self.table, key, column, raw, New::Is(Raw::Null), &why);
        } else if !bound.is_empty() {
            let why = format!("{place} follows a key that gets another name");
            updates.set(
                self.table,
                key,
                column,
                raw,
                New::Around(keys::pieces(&new, &bound, old, self.search.handles)),
                &why,
            );
        } else if *new != *old {
            let why = format!("{place} named the person or rows that go, which is taken out");
            match scrub::stored_as(raw, opened.wrapping, new.into_owned()) {
                Ok(new) => updates.set(self.table, key, column, raw, New::Is(new), &why),
                Err(_) => drop(found.unread.insert(place, "cannot be packed again")),
            }
        }
    }

    /// Whether what stands there is a key, or an id with more than the person's in it.
    fn is_key(&self, i: usize, old: &[u8], named: &[Hit]) -> bool {
        self.keyed[i] || self.ids_only[i] && !named.iter().any(|hit| is_whole(hit, old))
    }

    /// Whether a value refers to a key that holds the person's id: what becomes of the key becomes of it.
    fn follows(&self, i: usize, old: &[u8]) -> bool {
        std::str::from_utf8(old).is_ok_and(|text| self.keys.follows(self.table, &self.texts[i].0, text))
    }

    /// Whether a hit is within a key that gets another name, in a text that says it.
    fn is_bound(&self, raw: &Raw, opened: &Opened<'_>, hit: &Hit) -> bool {
        let plain = matches!(raw, Raw::Text(_)) && hit.fill.is_none() && !opened.bytes.contains(&keys::BLANK[0]);
        let token =
            || std::str::from_utf8(keys::token(&opened.bytes, hit)).is_ok_and(|t| self.keys.renamed.contains(t));
        plain && !self.keys.renamed.is_empty() && token()
    }

    /// Takes references to rows that go out of a value. Whether the column is to be emptied.
    fn loosen(&self, at: &Spot<'_>, place: &str, changeable: bool, new: &mut Cow<'_, [u8]>, found: &mut Found) -> bool {
        let i = at.column;
        let rows: Vec<Hit> = self.search.matcher.find(new).into_iter().filter(|h| h.what == What::Row).collect();
        let listed = self.listed(i);
        if rows.is_empty() && listed.is_none() {
            return false;
        }
        let ids = listed.unwrap_or(self.search.ids);
        let mut empty = false;
        let loosened = match std::str::from_utf8(new) {
            Ok(whole) if ids.contains(whole) => {
                empty = changeable && !self.required[i];
                empty.then(Vec::new)
            }
            Ok(list) if self.texts[i].1.ends_with("[]") => scrub::array_without(list, ids).map(String::into_bytes),
            _ => scrub::without(new, ids, &rows),
        };
        match loosened.filter(|_| changeable) {
            Some(left) => {
                *found.loosened.entry(place.to_owned()).or_default() += 1;
                if let Some(recompute) = self.recomputed(i) {
                    found.recompute.push((recompute, self.table.clone(), at.key.to_vec()));
                    let count = |t: &[u8]| json::read_list(std::str::from_utf8(t).ok()).items.len();
                    let removed = count(new).saturating_sub(count(&left));
                    found.removed.insert(serde_json::to_string(at.key).unwrap_or_default(), removed);
                }
                *new = Cow::Owned(left);
            }
            None if !rows.is_empty() && !self.search.follows.contains(self.table) => {
                *found.stuck.entry(place.to_owned()).or_default() += rows.len();
            }
            None => {}
        }
        empty
    }

    /// What cannot be done about a mention here. `redact` is why its words cannot be taken out.
    fn refusals(&self, redact: Option<&'static str>) -> Refusals {
        if !self.search.known.contains(self.table) {
            return Refusals::both(OUTSIDE);
        }
        if self.key.is_empty() {
            return Refusals::both("the table has no key: its rows cannot be told apart");
        }
        Refusals { redact, delete: None }
    }

    /// The value without the person, or why there can be none.
    fn taken_out(&self, column: usize, old: &[u8], named: &[Hit]) -> Result<Out, &'static str> {
        let declared = self.texts[column].1.to_ascii_lowercase();
        let whole = matches!(named, [hit] if hit.start == 0 && hit.end == old.len());
        let postgres = self.search.postgres;
        if postgres && declared.ends_with("[]") && !declared.starts_with("text") && !declared.contains("char") {
            let values = self.search.handles.iter().map(|h| h.value.clone()).collect();
            let left = std::str::from_utf8(old).ok().and_then(|text| scrub::array_without(text, &values));
            return left.map(|t| Out::New(t.into_bytes())).ok_or("the column's type takes no other words");
        }
        let takes_words =
            !postgres || ["text", "char", "json", "bytea", "citext", "name"].iter().any(|t| declared.contains(t));
        let refers = self.search.graph.relations.foreign.iter();
        let refers = refers.filter(|f| f.from == *self.table).any(|f| f.columns.contains(&self.texts[column].0));
        if whole && (refers || !takes_words || declared.starts_with("json")) {
            return if self.required[column] {
                Err("the column takes no other words and must not be empty")
            } else {
                Ok(Out::Empty)
            };
        }
        if takes_words {
            Ok(Out::New(scrub::redacted(old, named)))
        } else {
            Err("the column's type takes no other words")
        }
    }

    /// Notes a mention, and gives what is done about it.
    fn mention(&self, at: &Named<'_>, refusals: Refusals, found: &mut Found) -> Mentions {
        let column = &self.texts[at.column].0;
        let place = format!("{}.{column}", self.table.title());
        let id = mention::id(self.table, self.key, at.key, column, at.raw);
        let certainty = self.certainty(at);
        let decisions = &self.search.decisions;
        let asked = decisions.of(&id, &place, certainty);
        let refused = refusals.of(asked);
        let decision = if refused.is_some() { Mentions::Leave } else { asked };
        if let Some(name) = decisions.named(&id, &place) {
            found.met.names.insert(name.to_owned());
            if let Some(reason) = refused.filter(|_| name == id) {
                found.met.refused.insert(id.clone(), (asked, reason, refusals.options()));
            }
        }
        *found.counted.entry(place.clone()).or_default() += 1;
        let tally = found.tally.entry(place).or_default();
        *(if certainty == Certainty::Certain { &mut tally.certain } else { &mut tally.possible }) += 1;
        *match (decision, refused) {
            (Mentions::Leave, _) if refusals.delete == Some(OUTSIDE) => &mut tally.outside,
            (_, Some(_)) => &mut tally.undone,
            (Mentions::Leave, None) => &mut tally.left,
            (Mentions::Redact | Mentions::Delete, None) => &mut tally.done,
        } += 1;
        if decision == Mentions::Delete {
            found.doomed.push((self.table.clone(), at.key.to_vec()));
        }
        if found.mentions.len() < KEPT {
            found.mentions.push(Mention {
                id,
                table: self.table.clone(),
                key: at.key.to_vec(),
                column: column.clone(),
                certainty,
                kinds: self.kinds(at.hits),
                hits: at.hits.len(),
                sample: sample(at.text, at.hits),
                refusals,
                decision,
                chosen: refused.is_none(),
            });
        }
        decision
    }

    /// How sure it is that the person is meant.
    fn certainty(&self, at: &Named<'_>) -> Certainty {
        if self.ids_only[at.column] {
            return keys::certainty(&self.texts[at.column].0, at.text, at.hits);
        }
        Certainty::Certain
    }

    /// Kinds of the handles that stand somewhere.
    fn kinds(&self, hits: &[Hit]) -> Vec<String> {
        let mut kinds = Vec::new();
        for hit in hits {
            if let What::Handle(n) = hit.what
                && let Some(handle) = self.search.handles.get(n)
                && !kinds.contains(&handle.kind)
            {
                kinds.push(handle.kind.clone());
            }
        }
        kinds
    }
}
