//! Reads one table's rows for the search: what a row that stays loses, and what is recorded about it.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::slice;

use super::column_words::{leaf_name, names_rows};
use super::effects::{KeptRows, NewValue, digest};
use super::graph::OwnedRows;
use super::hit::{ByteFind, Hit};
use super::id_set::LostIds;
use super::key_parts;
use super::keys::Keys;
use super::lexemes;
use super::live_traces::WatchedColumn;
use super::matcher::{ValueLook, ValueSighting, is_random};
use super::mention::{self, Mention, MentionRefusals, Mentions, OUTSIDE};
use super::planned_mentions::TellingValue;
use super::scan_findings::{KEPT, ScanFindings};
use super::scrub;
use super::search::PersonSearch;
use super::taken::TakenRows;
use super::trail_images;
use crate::layout::erase::{BoundRule, EraseAction, Recompute};
use crate::memory::id_list;
use crate::memory::json::{self, ListReading};
use crate::memory::mention::{self as people, Certainty};
use crate::store::container::{self, Leaf, Limits, OpenedValue, Rewritten};
use crate::store::fetched::{FetchedValue, as_text};
use crate::store::foreign_keys::ForeignKey;
use crate::store::proof::values::WatchedValue;
use crate::store::stored::TableName;

/// Reason why nothing is removed from a key.
const IN_KEY: &str = "a key: other rows may refer to it";
/// Reason why nothing is removed from a column with a foreign key.
const TIED: &str = "a foreign key ties it to a row that stays";
/// Reason why a row is not deleted.
const IN_FIELD: &str = "only a key of a document names the person: no row is deleted for that";
/// Reason why nothing is removed from a generated column.
const GENERATED: &str = "a generated column: it follows the columns that it is computed from";
const LIKE_A_KEY: Certainty = Certainty::Possible("the same as a key that stays");
const WORDS_ALONE: Certainty = Certainty::Possible("search words of a text that does not name the person");

/// One value with a match.
struct ValueSpot<'a> {
    key: &'a [FetchedValue],
    column: usize,
    raw: &'a FetchedValue,
    /// The value in stored form; `raw` is what is left of it.
    stored: &'a FetchedValue,
    look: &'a ValueLook,
    /// Parts of an id, if the column holds ids.
    parts: &'a [Hit],
    /// It may contain ids of deleted rows.
    refers: bool,
}

/// The new value, and the reason.
struct LeftValue {
    value: NewValue,
    why: String,
    /// It loses words of its own, not only ids of deleted rows.
    loses: bool,
}

/// A value after the search.
#[derive(Debug)]
struct LookedValue {
    look: ValueLook,
    /// Parts of an id, if the column holds ids.
    parts: Vec<Hit>,
    /// It may contain ids of deleted rows; only set for rows that stay.
    refers: bool,
    /// It contains the encoded form of a short handle, and no other mention; only set for rows that stay.
    hides: bool,
}

impl LookedValue {
    fn holds(&self) -> bool {
        self.refers || self.look.rows > 0 || !self.look.sightings.is_empty()
    }
}

/// A row after the search.
#[derive(Debug, Default)]
pub(super) struct RowLook {
    /// The row is deleted.
    goes: bool,
    /// It belongs to the person's account, which is kept.
    kept: bool,
    /// Values with a match, by the number of their column.
    noted: Vec<(usize, LookedValue)>,
    /// Values in which the watch found something.
    watched: Vec<(usize, WatchedValue)>,
}

/// The columns of a table to search, and what is known of each.
pub(super) struct TableTexts<'a> {
    /// The columns, with their types.
    pub texts: Vec<(String, String)>,
    /// Number of stored columns; generated columns follow them.
    pub stored: usize,
    /// For each column of `texts`, whether it cannot be emptied.
    pub required: Vec<bool>,
    /// For each column of `texts`, whether it holds ids and nothing else.
    pub ids_only: Vec<bool>,
    /// For each column of `texts`, whether its values are keys.
    pub keyed: Vec<bool>,
    /// For each column of `texts`, the ids that it may lose as a list of the layout.
    pub listed: Vec<Option<&'a LostIds>>,
    /// For each column of `texts`, whether unreadable bytes in it are worth reporting.
    pub opaque: Vec<bool>,
    /// For each column of `texts`, whether it holds vectors.
    pub vectors: Vec<bool>,
    /// For each column of `texts`, whether it names an agent.
    pub agents: Vec<bool>,
    /// For each column of `texts`, the kind of content that its name and the layout indicate.
    pub about: Vec<people::MentionText>,
}

/// A table during the search.
pub(super) struct TablePlace<'a> {
    /// Search that the table is read for.
    pub search: &'a PersonSearch<'a>,
    /// Table.
    pub table: &'a TableName,
    /// The table is one of ours.
    pub ours: bool,
    /// The row sets to delete that may contain rows of this table.
    pub going: Vec<&'a TakenRows>,
    /// Rows without a key that are deleted, with the index of the column that names the person.
    pub owned: Option<(usize, &'a OwnedRows)>,
    /// The row sets of the kept account that may contain rows of this table.
    pub account: Vec<&'a TakenRows>,
    /// Columns of its key.
    pub key: &'a [String],
    /// Columns to search.
    pub columns: &'a TableTexts<'a>,
    /// Keys that contain the person's id.
    pub keys: &'a Keys,
}

/// Reason for leaving a value that contains the encoded form of a short handle.
const SHORT_FORM: &str = "a short word is a handle of the person in base64 or hexadecimal digits";

impl TablePlace<'_> {
    /// Searches the values of a row, and adds their number to `values`. Returns `None` if nothing was found. Rows may
    /// be searched in parallel.
    pub fn look(&self, row: &[FetchedValue], values: &mut u64) -> Option<RowLook> {
        let (key, own) = self.parts(row);
        let is_owned = |(at, owned): (usize, &OwnedRows)| {
            own.get(at).is_some_and(|raw| owned.rows.keys.iter().any(|key| key.first() == Some(raw)))
        };
        let goes = self.going.iter().any(|taken| taken.has(key)) || self.owned.is_some_and(is_owned);
        let kept = self.account.iter().any(|taken| taken.has(key));
        let mut all = RowLook { goes, kept, ..RowLook::default() };
        for (i, raw) in own.iter().enumerate() {
            if *raw == FetchedValue::Null {
                continue;
            }
            *values += 1;
            let mut value = self.look_at(i, raw, !goes && !kept && !self.ours);
            let watched = self.search.watch.and_then(|watch| watch.seen(raw, value.look.bare));
            all.watched.extend(watched.map(|seen| (i, seen)));
            // Bytes of vectors and of indexes contain such words by chance.
            let is_read = self.columns.opaque[i] || !matches!(raw, FetchedValue::Bytes(_));
            value.hides = !goes && is_read && value.look.hides && value.look.sightings.is_empty();
            if self.ours || value.holds() || value.hides || self.unread(i, raw, &value.look).is_some() {
                all.noted.push((i, value));
            }
        }
        self.hold_to_texts(&mut all);
        (!all.noted.is_empty() || !all.watched.is_empty()).then_some(all)
    }

    /// Search vectors are computed from the texts of their row: if none of the texts certainly names the person,
    /// neither does the vector.
    fn hold_to_texts(&self, row: &mut RowLook) {
        let is_vector = |i: usize| self.columns.texts[i].1 == "tsvector";
        let names = |(i, value): &(usize, LookedValue)| !is_vector(*i) && value.look.count(true) > 0;
        if (0..self.columns.texts.len()).all(is_vector) || row.noted.iter().any(names) {
            return;
        }
        for (_, value) in row.noted.iter_mut().filter(|(i, _)| is_vector(*i)) {
            value.look.sightings.iter_mut().for_each(|sighting| sighting.certainty = WORDS_ALONE);
        }
    }

    /// Searches the generated columns of a row whose stored columns have no match. Returns `None` if they have none
    /// either.
    pub fn look_at_generated(&self, row: &[FetchedValue]) -> Option<RowLook> {
        let mut looked = self.look(row, &mut 0)?;
        looked.watched.clear();
        looked.noted.retain(|(_, value)| value.holds());
        let first = looked.noted.first()?.0;
        (first >= self.columns.stored).then_some(looked)
    }

    /// The columns to read: the key, then the columns to search.
    pub fn names(&self) -> Vec<String> {
        self.key.iter().chain(self.columns.texts.iter().map(|(name, _)| name)).cloned().collect()
    }

    fn look_at(&self, i: usize, raw: &FetchedValue, stays: bool) -> LookedValue {
        let matcher = self.search.matcher;
        let mut look = matcher.look(raw, self.columns.about[i]);
        if look.whole && self.columns.agents[i] {
            (look.whole, look.sightings) = (false, Vec::new());
            return LookedValue { look, parts: Vec::new(), refers: false, hides: false };
        }
        let (look, parts) = match raw {
            FetchedValue::Text(vector) if self.columns.texts[i].1 == "tsvector" => {
                let ordered = matcher.look(&FetchedValue::Text(lexemes::in_order(vector)), self.columns.about[i]);
                (if ordered.sightings.is_empty() { look } else { ordered }, Vec::new())
            }
            FetchedValue::Text(text) if self.columns.ids_only[i] && !look.bare => {
                let (look, parts) = matcher.look_at_key(look, text, &self.columns.texts[i].0, self.columns.about[i]);
                if self.ours && !look.whole { (ValueLook::default(), Vec::new()) } else { (look, parts) }
            }
            // Free text in a unique column: the name in it is replaced by a pseudonym.
            FetchedValue::Text(text) if self.columns.keyed[i] && !look.bare => {
                let is_certain = look.count(true) > 0;
                let mut parts = matcher.find(text);
                parts.retain(|hit| matches!(hit.what, ByteFind::Handle(_)) && hit.certainty.is_certain() == is_certain);
                if parts.len() < look.count(true) {
                    // The others are in an encoding.
                    parts.clear();
                }
                (look, parts)
            }
            _ => (look, Vec::new()),
        };
        let named = || container::opened(raw).ok().flatten().is_some_and(|opened| self.refers(i, &opened));
        let refers = stays && (look.rows > 0 || named());
        LookedValue { look, parts, refers, hides: false }
    }

    /// Reason why bytes of a value were not searched, if worth reporting.
    fn unread(&self, i: usize, raw: &FetchedValue, look: &ValueLook) -> Option<&'static str> {
        let told = self.columns.opaque[i] && matches!(raw, FetchedValue::Bytes(_));
        look.contents.opaque.first().filter(|_| told).map(|part| part.why)
    }

    fn parts<'r>(&self, row: &'r [FetchedValue]) -> (&'r [FetchedValue], &'r [FetchedValue]) {
        row.split_at(self.key.len().min(row.len()))
    }

    /// Records the matches in a row. Returns whether it has any.
    pub fn take(
        &self,
        row: &[FetchedValue],
        looked: RowLook,
        found: &mut ScanFindings,
        updates: &mut KeptRows,
    ) -> bool {
        let mut holds = false;
        let mut named = BTreeSet::new();
        let (key, values) = self.parts(row);
        for (i, seen) in looked.watched {
            let is_it = |(at, value): &(usize, LookedValue)| *at == i && !value.look.sightings.is_empty();
            let column = WatchedColumn {
                table: self.table,
                name: &self.columns.texts[i].0,
                is_id: self.columns.ids_only[i],
                is_vector: self.columns.vectors[i],
            };
            found.live.add(column, seen, !self.ours && looked.noted.iter().any(is_it));
        }
        for (i, LookedValue { mut look, parts, refers, hides }) in looked.noted {
            let raw = &values[i];
            let is_key = look.whole || self.columns.keyed[i] || self.columns.ids_only[i];
            if matches!(raw, FetchedValue::Text(text) if !is_key && self.keys.kept.contains(text)) {
                // The text may be the name of the row, whose key stays.
                look.sightings.iter_mut().for_each(|sighting| sighting.certainty = LIKE_A_KEY);
            }
            if let Some(why) = self.unread(i, raw, &look) {
                found.not_looked_into(format!("{}.{}", self.table.title(), self.columns.texts[i].0), why);
                holds = true;
            }
            if hides {
                found.not_looked_into(format!("{}.{}", self.table.title(), self.columns.texts[i].0), SHORT_FORM);
                holds = true;
            }
            holds |= !look.sightings.is_empty() || look.rows > 0;
            for sighting in &look.sightings {
                found.control[sighting.handle] += 1;
                named.insert(sighting.handle);
            }
            if looked.goes {
                continue;
            }
            if looked.kept {
                found.account += look.sightings.len();
                continue;
            }
            let spot = ValueSpot { key, column: i, raw, stored: raw, look: &look, parts: &parts, refers };
            if self.ours {
                self.our_own(&spot, found, updates);
            } else {
                holds |= self.value(&spot, found, updates);
            }
        }
        if !named.is_empty() && updates.loses(self.table, key) {
            self.search_words(key, values, &named, updates);
        }
        holds
    }

    /// Removes the words of handles, and their stems, from the search vectors of a row whose texts lose them. A stem
    /// alone identifies nobody.
    fn search_words(
        &self,
        key: &[FetchedValue],
        values: &[FetchedValue],
        named: &BTreeSet<usize>,
        updates: &mut KeptRows,
    ) {
        let handles: Vec<&str> = named.iter().map(|handle| &*self.search.handles[*handle].value).collect();
        let stored = self.columns.texts.iter().zip(values).take(self.columns.stored);
        for ((column, _), raw) in stored.filter(|((_, declared), _)| declared == "tsvector") {
            let FetchedValue::Text(vector) = raw else { continue };
            let left = lexemes::without(vector, &handles);
            if left != *vector {
                let why = format!("{}.{column} loses the words that its texts lose", self.table.title());
                updates.set(self.table, key, column, raw, NewValue::Is(FetchedValue::Text(left)), &why);
            }
        }
    }

    /// Handles our own records, which must not keep naming anybody: private values of the audit trail are redacted, job
    /// records about a deleted row are deleted with it, and words that jobs stored are removed.
    fn our_own(&self, at: &ValueSpot<'_>, found: &mut ScanFindings, updates: &mut KeptRows) {
        let ValueSpot { key, column, raw, look, .. } = *at;
        let named = look.sightings.len();
        let rows =
            || container::opened(raw).ok().flatten().is_some_and(|o| !self.search.matcher.rows(&o.bytes).is_empty());
        let place = || format!("{}.{}", self.table.title(), self.columns.texts[column].0);
        match self.table.name.as_str() {
            "memory_audit_private" => {
                let seq = key.first().and_then(as_text).and_then(|t| t.parse().ok());
                if let (Some(seq), Some(FetchedValue::Text(field))) = (seq, key.get(1)) {
                    if look.count(true) > 0 || rows() {
                        found.redacts.insert((seq, field.to_owned()));
                    }
                    if trail_images::are_of_person(self.search, field, raw) {
                        found.undone.insert(seq);
                    }
                }
            }
            "memory_job_quarantine" if named > 0 || rows() => {
                let row = (self.table.clone(), key.to_vec());
                if !found.forgotten.contains(&row) {
                    found.forgotten.push(row);
                }
            }
            "memory_jobs" if named > 0 => {
                if let Rewritten::New(new) =
                    self.search.matcher.redacted(raw, self.columns.about[column], |_| false, |_| true)
                {
                    let why = format!("{}: the person's name is removed", place());
                    updates.set(self.table, key, &self.columns.texts[column].0, raw, NewValue::Is(new), &why);
                }
            }
            "memory_job_quarantine" | "memory_jobs" => {}
            _ if look.count(true) > 0 => *found.ours.entry(place()).or_default() += look.count(true),
            _ => {}
        }
    }

    /// Whether a list in the layout may contain ids too short to search for.
    fn short_list(&self, column: usize, text: &[u8]) -> bool {
        let Some(ids) = self.columns.listed[column] else { return false };
        self.listed(column, text).iter().any(|item| ids.contains(item))
    }

    /// The ids in a list: texts and integers.
    fn listed(&self, column: usize, text: &[u8]) -> Vec<String> {
        let Ok(text) = std::str::from_utf8(text) else { return Vec::new() };
        if self.is_array(column) {
            return id_list::array_texts(text).unwrap_or_default();
        }
        ListReading::from(json::read_ids(text)).items
    }

    fn is_array(&self, column: usize) -> bool {
        self.columns.texts[column].1.ends_with("[]")
    }

    fn recomputed(&self, column: usize) -> Option<Recompute> {
        let listed = |r: &&BoundRule| {
            r.action == EraseAction::Remove
                && TableName::of(&r.table) == *self.table
                && r.column == self.columns.texts[column].0
        };
        self.search.graph.rules.iter().filter(listed).find_map(|rule| rule.recompute)
    }

    /// Handles a value of a row that stays. Returns whether it names the person or a deleted row.
    fn value(&self, at: &ValueSpot<'_>, found: &mut ScanFindings, updates: &mut KeptRows) -> bool {
        let ValueSpot { key, column: i, raw, look, refers, .. } = *at;
        let column = &self.columns.texts[i].0;
        let holds = !look.sightings.is_empty() || refers;
        if !holds {
            return false;
        }
        let place = format!("{}.{column}", self.table.title());
        let known = self.search.about.tables.contains(self.table) && !self.key.is_empty();
        let is_generated = i >= self.columns.stored;
        let changeable = known && !is_generated && !self.key.contains(column);
        if let Some(new) = updates.get(self.table, key, column) {
            // Only a reference or a list with a new value needs no second look at its words.
            if let Some(new) = new.known().filter(|_| self.is_within(column))
                && let Some(left) = self.left(at, &new, &place, changeable, found)
            {
                updates.replace(self.table, key, column, left.value, &left.why);
                if left.loses {
                    updates.lose(self.table, key);
                }
            }
            return true;
        }
        if !look.sightings.is_empty() && self.follows(i, raw) {
            return true;
        }
        // An index may compute its values from a document, which is no key.
        let is_document = matches!(raw, FetchedValue::Text(text) if text.trim_start().starts_with('{'));
        let is_keyed = self.columns.keyed[i] && !(is_document && at.parts.is_empty());
        let is_key = !look.sightings.is_empty() && (is_keyed || self.columns.ids_only[i] && !look.whole);
        if is_key && !is_generated {
            self.key(at, &place, known, found, updates);
            return true;
        }
        if let Some(left) = self.left(at, raw, &place, changeable, found) {
            updates.set(self.table, key, column, raw, left.value, &left.why);
            if left.loses {
                updates.lose(self.table, key);
            }
        }
        true
    }

    /// Whether a rule removes the person from within the values of a column.
    fn is_within(&self, column: &str) -> bool {
        let is_within = |rule: &BoundRule| {
            TableName::of(&rule.table) == *self.table && rule.column == *column && !rule.inside.is_whole()
        };
        self.search.graph.rules.iter().any(is_within)
    }

    /// Returns the new value after all changes: renamed keys, removed mentions as decided, and removed references to
    /// deleted rows. `None` if it does not change.
    fn left(
        &self,
        at: &ValueSpot<'_>,
        from: &FetchedValue,
        place: &str,
        changeable: bool,
        found: &mut ScanFindings,
    ) -> Option<LeftValue> {
        let bound = if changeable && !self.is_tied(at.column, at.raw) { self.bound(from) } else { None };
        let start = bound.as_ref().map_or(from, |(blanked, _)| blanked);
        let seen =
            (!std::ptr::eq(start, at.raw)).then(|| self.search.matcher.look(start, self.columns.about[at.column]));
        let look = seen.as_ref().unwrap_or(at.look);
        let spot = ValueSpot { raw: start, look, parts: &[], ..*at };
        let mut left = Cow::Borrowed(start);
        let decided = if look.sightings.is_empty() { None } else { self.decided(&spot, changeable, found) };
        let loses = decided.is_some();
        if let Some(without) = decided {
            left = Cow::Owned(without);
        }
        if at.refers
            && let Some(loosened) = self.loosen(at, place, changeable, &left, found)
        {
            left = Cow::Owned(loosened);
        }
        let left = left.into_owned();
        let (value, why) = match (bound, left, from) {
            (Some((_, hits)), FetchedValue::Text(left), FetchedValue::Text(old)) => {
                let pieces = key_parts::pieces(&left, &hits, old, self.search.handles);
                // The part with the key may have been removed with a reference to a deleted row.
                let value =
                    if pieces.len() > 1 { NewValue::Around(pieces) } else { NewValue::Is(FetchedValue::Text(left)) };
                (value, format!("{place} follows a key that is renamed"))
            }
            (None, left, from) if left == *from => return None,
            (_, FetchedValue::Null, _) => {
                (NewValue::Is(FetchedValue::Null), format!("{place} is emptied: it names the person or a deleted row"))
            }
            // A placeholder must never be written to the database.
            (Some(_), ..) => return None,
            (None, left, _) => {
                (NewValue::Is(left), format!("{place}: the person's names and the ids of deleted rows are removed"))
            }
        };
        Some(LeftValue { value, why, loses })
    }

    /// Handles a key, or an id that contains more than the person's id: it is renamed.
    fn key(&self, at: &ValueSpot<'_>, place: &str, known: bool, found: &mut ScanFindings, updates: &mut KeptRows) {
        let i = at.column;
        if let FetchedValue::Text(text) = at.raw
            && at.refers
        {
            // Other rows refer to it by the rest of its text, which may still name a deleted row.
            let rest = FetchedValue::Text(key_parts::blanked(text, at.parts));
            self.loosen(at, place, false, &rest, found);
        }
        let pieces = match at.raw {
            raw if self.is_tied(i, raw) => Err(TIED),
            FetchedValue::Text(text) if known => {
                key_parts::renamed(&self.columns.texts[i].1, at.raw, text.as_bytes(), at.parts, self.search.handles)
            }
            _ => Err(IN_KEY),
        };
        let (decision, also) = self.mention(at, self.refusals(pieces.as_ref().err().copied()), found);
        let decided = if at.look.certainty().is_certain() { decision } else { also };
        if let Ok(pieces) = pieces
            && decided == Mentions::Redact
        {
            let why = format!("{place} holds the person's id, which is renamed");
            updates.set(self.table, at.key, &self.columns.texts[i].0, at.raw, NewValue::Around(pieces), &why);
            updates.lose(self.table, at.key);
        }
    }

    /// Finds renamed keys within a text. Returns the text with a placeholder for the name in each key, and the places
    /// of these names; `None` if there is no such key.
    fn bound(&self, value: &FetchedValue) -> Option<(FetchedValue, Vec<Hit>)> {
        let FetchedValue::Text(text) = value else { return None };
        if self.keys.renamed.is_empty() && self.keys.labels.is_empty() || text.contains(key_parts::BLANK) {
            return None;
        }
        let named = |hit: &Hit| {
            let token = key_parts::token(text.as_bytes(), hit);
            let is_label = |word: &str| self.keys.labels.contains(word) && key_parts::is_item(text.as_bytes(), &token);
            let word = text.get(token.start..token.end);
            matches!(hit.what, ByteFind::Handle(_))
                && word.is_some_and(|word| self.keys.renamed.contains(word) || is_label(word))
        };
        let mut hits = self.search.matcher.find(text);
        hits.retain(named);
        (!hits.is_empty()).then(|| (FetchedValue::Text(key_parts::blanked(text, &hits)), hits))
    }

    /// Whether a value refers to a key that contains the person's id: it is renamed with the key.
    fn follows(&self, i: usize, raw: &FetchedValue) -> bool {
        let FetchedValue::Text(text) = raw else { return false };
        self.keys.follows(self.table, &self.columns.texts[i].0, text)
    }

    /// Records the mentions of a value. Returns the new value by the decisions about them; `None` if it stays.
    fn decided(&self, at: &ValueSpot<'_>, changeable: bool, found: &mut ScanFindings) -> Option<FetchedValue> {
        let fixed = if at.column < self.columns.stored { IN_KEY } else { GENERATED };
        let told = |certain: Option<bool>| if changeable { self.taken_out(at, certain) } else { Err(fixed) };
        let certain = at.look.count(true) > 0;
        // Uncertain mentions stay unless decided individually.
        let all = told(None);
        let sure = if certain { told(Some(true)) } else { all.clone() };
        let (decision, possible) = self.mention(at, self.refusals(sure.as_ref().err().copied()), found);
        match (decision, possible) {
            (Mentions::Redact, Mentions::Redact) => all.ok(),
            (Mentions::Redact, _) if certain => sure.ok(),
            (_, Mentions::Redact) => told(Some(false)).ok(),
            _ => None,
        }
    }

    /// Whether a foreign key ties a value to a row that stays: the value must not change.
    fn is_tied(&self, i: usize, raw: &FetchedValue) -> bool {
        let (graph, column) = (self.search.graph, &self.columns.texts[i].0);
        let goes = |key: &ForeignKey| {
            graph.relations.keys.get(&key.to) == Some(&key.to_columns) && graph.has(&key.to, slice::from_ref(raw))
        };
        graph.relations.ties(self.table, column).any(|key| !goes(key))
    }

    /// The places of deleted rows' ids in a value, and the number of places that do not count, because there the id is
    /// part of a longer id.
    fn references(&self, i: usize, bytes: &[u8]) -> (Vec<Hit>, usize) {
        let mut rows = self.search.matcher.rows(bytes);
        let all = rows.len();
        if self.holds_ids(i) {
            rows.retain(|hit| key_parts::is_item(bytes, hit));
        }
        let parts = all - rows.len();
        (rows, parts)
    }

    /// Whether the values of a column are ids or keys.
    fn holds_ids(&self, i: usize) -> bool {
        self.columns.ids_only[i] || self.columns.keyed[i]
    }

    /// Whether a value may contain ids of deleted rows.
    fn refers(&self, i: usize, opened: &OpenedValue<'_>) -> bool {
        !self.search.matcher.rows(&opened.bytes).is_empty() || self.short_list(i, &opened.bytes)
    }

    /// Removes references to deleted rows from a value. Returns `None` if nothing changes.
    fn loosen(
        &self,
        at: &ValueSpot<'_>,
        place: &str,
        changeable: bool,
        new: &FetchedValue,
        found: &mut ScanFindings,
    ) -> Option<FetchedValue> {
        let i = at.column;
        let opened = container::opened(new).ok().flatten()?;
        let bytes: &[u8] = &opened.bytes;
        let (rows, parts) = self.references(i, bytes);
        if parts > 0 {
            *found.parts.entry(place.to_owned()).or_default() += 1;
        }
        if rows.len() + parts + at.look.rows > 0 {
            self.note_ids(at, found);
        }
        let listed = self.columns.listed[i];
        let ids = listed.unwrap_or(self.search.ids);
        let changeable = changeable && !self.is_tied(i, at.raw);
        if rows.is_empty() && at.look.rows > 0 {
            let changeable = changeable && !self.holds_ids(i);
            return self.loosen_within(at, place, changeable.then_some(new), ids, found);
        }
        if rows.is_empty() && listed.is_none() {
            return None;
        }
        let mut empty = false;
        let loosened = match std::str::from_utf8(bytes) {
            Ok(whole) if ids.contains(whole) => {
                empty = changeable && !self.columns.required[i];
                empty.then(Vec::new)
            }
            Ok(list) if self.is_array(i) => scrub::array_without(list, |id| ids.contains(id)).map(String::into_bytes),
            Ok(list) if listed.is_some() && list.trim_start().starts_with('[') => {
                let left = scrub::numbers_without(list, &|id| ids.contains(id));
                let left = left.map(String::into_bytes);
                let bytes = left.as_deref().unwrap_or(bytes);
                scrub::without(bytes, ids, &self.references(i, bytes).0).or(left)
            }
            _ => scrub::without(bytes, ids, &rows),
        };
        let Some(left) = loosened.filter(|_| changeable) else {
            if !rows.is_empty() && !self.search.follows.contains(self.table) {
                *found.stuck.entry(place.to_owned()).or_default() += rows.len();
            }
            return None;
        };
        *found.loosened.entry(place.to_owned()).or_default() += 1;
        if let Some(recompute) = self.recomputed(i) {
            found.recompute.push((recompute, self.table.clone(), at.key.to_vec()));
            let removed = self.listed(i, bytes).len().saturating_sub(self.listed(i, &left).len());
            found.removed.insert(serde_json::to_string(at.key).unwrap_or_default(), removed);
        }
        if empty {
            return Some(FetchedValue::Null);
        }
        let packed = scrub::stored_as(new, opened.wrapping, left);
        if packed.is_err() {
            found.not_looked_into(place.to_owned(), "they cannot be compressed again");
        }
        packed.ok()
    }

    /// Records ids of deleted rows in columns that are not declared to hold ids: they may be someone else's words.
    fn note_ids(&self, at: &ValueSpot<'_>, found: &mut ScanFindings) {
        let column = &self.columns.texts[at.column].0;
        if self.columns.ids_only[at.column] || self.columns.listed[at.column].is_some() {
            return;
        }
        let mut seen: BTreeMap<String, bool> = BTreeMap::new();
        container::read(at.raw, Limits::default(), &mut |leaf: &Leaf<'_>| {
            for hit in self.search.matcher.rows(leaf.text.as_bytes()) {
                let is_made = |id: &&str| is_random(id) || self.search.made.are_like(id);
                let Some(id) = leaf.text.get(hit.start..hit.end).filter(|id| !is_made(id)) else { continue };
                let is_whole = leaf.text.trim() == id;
                if !names_rows(&leaf_name(leaf, column), is_whole) {
                    *seen.entry(id.to_owned()).or_default() |= is_whole;
                }
            }
        });
        for (id, is_whole) in seen {
            let word = found.id_words.entry(id).or_default();
            *(if is_whole { &mut word.whole } else { &mut word.texts }) += 1;
        }
    }

    /// Removes references within encodings of the value; `new` is the value if it may be changed.
    fn loosen_within(
        &self,
        at: &ValueSpot<'_>,
        place: &str,
        new: Option<&FetchedValue>,
        ids: &LostIds,
        found: &mut ScanFindings,
    ) -> Option<FetchedValue> {
        match new.map(|new| self.search.matcher.loosened(new, ids)) {
            Some(Rewritten::New(left)) => {
                *found.loosened.entry(place.to_owned()).or_default() += 1;
                return Some(left);
            }
            // Removing the person also removed the references.
            Some(Rewritten::Unchanged) => {}
            Some(Rewritten::Cannot(_)) | None => *found.stuck.entry(place.to_owned()).or_default() += at.look.rows,
        }
        None
    }

    /// Returns the reasons why decisions about a mention here cannot be carried out. `redact` is the reason why its
    /// words cannot be removed.
    fn refusals(&self, redact: Option<&'static str>) -> MentionRefusals {
        if !self.search.about.tables.contains(self.table) {
            return MentionRefusals::both(OUTSIDE);
        }
        if self.key.is_empty() {
            return MentionRefusals::both("the table has no key that identifies its rows");
        }
        MentionRefusals { redact, delete: None }
    }

    /// The value without the person, or the reason why that is impossible. `certain` limits the removal to certain
    /// mentions, or to uncertain ones.
    fn taken_out(&self, at: &ValueSpot<'_>, certain: Option<bool>) -> Result<FetchedValue, &'static str> {
        let column = at.column;
        let declared = self.columns.texts[column].1.to_ascii_lowercase();
        let postgres = self.search.about.postgres;
        if let FetchedValue::Integer(_) | FetchedValue::Real(_) = at.raw {
            return Err("the value is a number alone: the row can be deleted or left");
        }
        if postgres && declared.ends_with("[]") && !declared.starts_with("text") && !declared.contains("char") {
            let names = |item: &str| self.search.handles.iter().any(|handle| handle.value == item);
            let left = match at.raw {
                FetchedValue::Text(text) => scrub::array_without(text, names),
                _ => None,
            };
            return left.map(FetchedValue::Text).ok_or("the column's type accepts no other words");
        }
        if let FetchedValue::Text(vector) = at.raw
            && declared == "tsvector"
        {
            let named = at.look.sightings.iter().map(|sighting| &*self.search.handles[sighting.handle].value);
            return Ok(FetchedValue::Text(lexemes::without(vector, &named.collect::<Vec<_>>())));
        }
        let takes_words =
            !postgres || ["text", "char", "json", "bytea", "citext", "name"].iter().any(|t| declared.contains(t));
        let refers = self.search.graph.relations.is_tied(self.table, &self.columns.texts[column].0);
        if at.look.whole && (refers || !takes_words || declared.starts_with("json")) {
            return if self.columns.required[column] {
                Err("the column accepts no other words and must not be empty")
            } else {
                Ok(FetchedValue::Null)
            };
        }
        if !takes_words {
            return Err("the column's type accepts no other words");
        }
        let wanted = |c: Certainty| certain.is_none_or(|certain| c.is_certain() == certain);
        match self.search.matcher.redacted(at.raw, self.columns.about[column], |_| false, wanted) {
            Rewritten::New(new) => Ok(new),
            Rewritten::Unchanged => Err("nothing can be removed from it"),
            Rewritten::Cannot(_) => Err("its encoding can be read but not written"),
        }
    }

    /// Records a mention. Returns the decisions about its certain and its uncertain places.
    fn mention(&self, at: &ValueSpot<'_>, refusals: MentionRefusals, found: &mut ScanFindings) -> (Mentions, Mentions) {
        let column = &self.columns.texts[at.column].0;
        let place = format!("{}.{column}", self.table.title());
        let id = mention::id(self.table, self.key, at.key, column, at.stored);
        let certainty = at.look.certainty();
        let possible = at.look.count(false);
        let decisions = &self.search.decisions;
        let in_text = |certainty: Certainty| at.look.is_in_text(certainty.is_certain());
        let in_key = !in_text(Certainty::Certain) && !in_text(Certainty::Possible(""));
        let refusals =
            if in_key { MentionRefusals { delete: refusals.delete.or(Some(IN_FIELD)), ..refusals } } else { refusals };
        // A key in a document does not cause its row to be deleted: it is removed from the document.
        let asked_of = |certainty: Certainty| match decisions.of(&id, &place, certainty) {
            Mentions::Delete if !in_text(certainty) && !decisions.each.contains_key(&id) => Mentions::Redact,
            asked => asked,
        };
        let asked = asked_of(certainty);
        let refused = refusals.of(asked);
        let decision = if refused.is_some() { Mentions::Leave } else { asked };
        let also = asked_of(Certainty::Possible(""));
        let also = if refused.is_some() || refusals.of(also).is_some() { Mentions::Leave } else { also };
        if let Some(name) = decisions.named(&id, &place) {
            found.met.names.insert(name.to_owned());
            if let Some(reason) = refused.filter(|_| name == id) {
                found.met.refused.insert(id.clone(), (asked, reason, refusals.options()));
            }
        }
        *found.counted.entry(place.clone()).or_default() += 1;
        let tally = found.tally.entry(place).or_default();
        *(if certainty.is_certain() { &mut tally.certain } else { &mut tally.possible }) += 1;
        *match (decision, refused) {
            (Mentions::Leave, _) if refusals.delete == Some(OUTSIDE) => &mut tally.outside,
            (_, Some(_)) => &mut tally.undone,
            (Mentions::Leave, None) => &mut tally.left,
            (Mentions::Redact | Mentions::Delete, None) => &mut tally.done,
        } += 1;
        tally.singled += usize::from(decisions.each.get(&id) == Some(&Mentions::Leave));
        if certainty.is_certain() && possible > 0 && decision == Mentions::Redact && also == Mentions::Leave {
            // The value loses the certain mentions and keeps the others.
            tally.possible += 1;
            tally.left += 1;
        }
        if decision == Mentions::Delete || also == Mentions::Delete {
            let was = digest(at.stored);
            let value = TellingValue { column: column.clone(), about: self.columns.about[at.column], was };
            found.doomed.push(((self.table.clone(), at.key.to_vec()), value));
        }
        if found.mentions.len() < KEPT {
            found.mentions.push(Mention {
                id,
                table: self.table.clone(),
                key: at.key.to_vec(),
                column: column.clone(),
                certainty,
                possible,
                kinds: self.kinds(&at.look.sightings),
                hits: at.look.sightings.len(),
                sample: at.look.sample.clone(),
                refusals,
                decision,
                chosen: refused.is_none(),
            });
        }
        (decision, also)
    }

    /// Kinds of the handles found.
    fn kinds(&self, sightings: &[ValueSighting]) -> Vec<String> {
        let mut kinds = Vec::new();
        for sighting in sightings {
            if let Some(handle) = self.search.handles.get(sighting.handle)
                && !kinds.iter().any(|kind| *kind == *handle.kind)
            {
                kinds.push(handle.kind.to_string());
            }
        }
        kinds
    }
}
