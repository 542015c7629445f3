//! Findings about duplicate memories and contradictory facts. Pure: memories go in, groups of ids come out.

use std::collections::{BTreeMap, HashSet};

use super::FindingTally;
use crate::memory::digest::digest;
use crate::memory::{Row, time};

/// Memories of one person and collection up to which they are compared with one another: the work grows with their square.
const COMPARED: usize = 2_000;
/// Memories whose words are held at once.
const HELD: usize = 200_000;
/// Words of a text that are looked at.
const WORDS: usize = 200;
/// Words below which a text is too short to be a copy of another one in other words.
const FEW: usize = 4;
/// Share of all words of two texts that both have, from which they say the same.
const SHARED: f64 = 0.9;

/// A memory that stands as it is: neither superseded nor deleted.
#[derive(Debug)]
pub struct StandingMemory {
    /// Id.
    pub id: String,
    /// Stands for its words in order, without case and punctuation.
    pub text: u64,
    created: i64,
    words: Vec<u64>,
}

/// Statement of one memory about a subject.
#[derive(Debug)]
struct Statement {
    id: String,
    object: String,
    created: i64,
    from: Option<i64>,
    to: Option<i64>,
}

/// Memories by whose they are and where, and the facts among them.
#[derive(Debug, Default)]
pub struct StandingMemories {
    groups: BTreeMap<[String; 2], Vec<StandingMemory>>,
    facts: BTreeMap<[String; 3], Vec<Statement>>,
    held: usize,
}

impl StandingMemories {
    /// Takes a memory; one that another has taken the place of says nothing any more.
    pub fn add(&mut self, row: &Row) {
        let metadata = row.get("metadata");
        let is_gone = matches!(row.text("status"), Some("superseded" | "deleted" | "expired" | "merged" | "archived"));
        if is_gone || metadata["superseded_by"].is_string() {
            return;
        }
        let own = |column: &str| row.text(column).unwrap_or_default().to_owned();
        let created = row.text("created_at").and_then(time::epoch_micros).unwrap_or_default();
        let said =
            |name: &str| metadata[name].as_str().map(|text| text.trim().to_lowercase()).filter(|t| !t.is_empty());
        if let (Some(subject), Some(predicate), Some(object)) = (said("subject"), said("predicate"), said("object")) {
            let moment =
                |name: &str| metadata[name].as_str().and_then(time::canonical).as_deref().and_then(time::epoch_micros);
            let (from, to) = (moment("valid_from"), moment("valid_to"));
            let fact = Statement { id: row.id().to_owned(), object, created, from, to };
            self.facts.entry([own("user_id"), subject, predicate]).or_default().push(fact);
            return;
        }
        let text = row.text("text").unwrap_or_default().to_lowercase();
        let words = || text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
        if words().next().is_none() {
            return;
        }
        let group = self.groups.entry([own("user_id"), own("collection")]).or_default();
        let holds = group.len() < COMPARED && self.held < HELD;
        let mut held: Vec<u64> = if holds { words().take(WORDS).map(digest).collect() } else { Vec::new() };
        held.sort_unstable();
        held.dedup();
        self.held += usize::from(holds);
        let text = digest(&words().collect::<Vec<_>>().join(" "));
        group.push(StandingMemory { id: row.id().to_owned(), text, created, words: held });
    }

    /// The memories of one person and collection, where they are few enough to be compared with one another.
    pub fn groups(&self) -> impl Iterator<Item = &[StandingMemory]> {
        self.groups.values().filter(|group| group.len() > 1 && group.len() <= COMPARED).map(Vec::as_slice)
    }

    /// Pairs of facts about the same subject by the same predicate with another object that hold at the same time: the
    /// older one first.
    #[must_use]
    pub fn contradictions(&self, most: usize) -> FindingTally {
        let mut tally = FindingTally::default();
        for facts in self.facts.values() {
            let mut facts: Vec<&Statement> = facts.iter().collect();
            facts.sort_by(|a, b| (a.from.unwrap_or(a.created), &a.id).cmp(&(b.from.unwrap_or(b.created), &b.id)));
            for (at, newer) in facts.iter().enumerate() {
                let against = |older: &&&Statement| older.object != newer.object && overlap(older, newer);
                if let Some(older) = facts[..at].iter().rev().find(against) {
                    tally.group(vec![older.id.clone(), newer.id.clone()], most);
                }
            }
        }
        tally
    }
}

/// Whether there is a moment at which both are so; a bound that is not said leaves that side open.
fn overlap(a: &Statement, b: &Statement) -> bool {
    let ends_before = |a: &Statement, b: &Statement| a.to.zip(b.from).is_some_and(|(to, from)| to <= from);
    !ends_before(a, b) && !ends_before(b, a)
}

/// Groups of memories that say the same, each with its oldest first and its newest last. `near` says of two, by their places,
/// whether their meanings are near; where it does not know, their words decide.
pub fn copies(
    memories: &[StandingMemory],
    near: impl Fn(usize, usize) -> Option<bool>,
    most: usize,
    tally: &mut FindingTally,
) {
    let mut order: Vec<usize> = (0..memories.len()).collect();
    order.sort_by_key(|at| (memories[*at].created, &memories[*at].id));
    let mut taken: HashSet<usize> = HashSet::new();
    for (place, first) in order.iter().enumerate() {
        if taken.contains(first) {
            continue;
        }
        let same = |other: &&usize| {
            let (a, b) = (&memories[*first], &memories[**other]);
            !taken.contains(*other)
                && (a.text == b.text || near(*first, **other).unwrap_or_else(|| share(&a.words, &b.words) >= SHARED))
        };
        let group: Vec<usize> = order[place + 1..].iter().filter(same).copied().collect();
        if !group.is_empty() {
            taken.extend(&group);
            let ids = std::iter::once(first).chain(&group).map(|at| memories[*at].id.clone());
            tally.group(ids.collect(), most);
        }
    }
}

/// The share of the words of two texts that both have; 0 when one is too short to tell.
fn share(a: &[u64], b: &[u64]) -> f64 {
    if a.len().min(b.len()) < FEW {
        return 0.0;
    }
    let both = a.iter().filter(|word| b.binary_search(word).is_ok()).count();
    both as f64 / (a.len() + b.len() - both) as f64
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::memory::Entity;

    fn memory(id: &str, user: &str, day: u8, text: &str, metadata: Value) -> Row {
        let mut row = Row::empty(Entity::Memory);
        let created = format!("2026-02-{day:02}T00:00:00.000000Z");
        for (column, value) in [("id", id), ("user_id", user), ("text", text), ("created_at", &created)] {
            row.set(column, Value::from(value));
        }
        row.set("metadata", metadata);
        row
    }

    #[test]
    fn facts_contradict_where_they_hold_at_the_same_time() {
        let mut all = StandingMemories::default();
        let fact = |object: &str, from: Option<&str>, to: Option<&str>| json!({"subject": "Ada", "predicate": "lives in", "object": object, "valid_from": from, "valid_to": to});
        all.add(&memory("a", "u", 1, "", fact("Bonn", Some("2024-01-01"), Some("2025-01-01"))));
        all.add(&memory("b", "u", 2, "", fact("Leipzig", Some("2025-01-01"), None)));
        assert_eq!(all.contradictions(9).count, 0);
        all.add(&memory("c", "u", 3, "", fact("Dresden", Some("2026-01-01"), None)));
        all.add(&memory("d", "v", 3, "", fact("Kiel", None, None)));
        let mut gone = memory("e", "u", 4, "", fact("Ulm", None, None));
        gone.set("status", Value::from("superseded"));
        all.add(&gone);
        assert_eq!(all.contradictions(9).together, ["b", "c"]);
        assert_eq!(all.contradictions(9).count, 1);
    }

    #[test]
    fn copies_are_grouped_by_person_with_the_oldest_first() {
        let mut all = StandingMemories::default();
        for (id, user, day, text) in [
            ("b", "u", 2, "ADA likes: green tea, in the morning"),
            ("a", "u", 1, "Ada likes green tea in the morning."),
            ("c", "u", 3, "Ada likes black coffee at night"),
            ("d", "v", 1, "Ada likes green tea in the morning"),
        ] {
            all.add(&memory(id, user, day, text, Value::Null));
        }
        let mut tally = FindingTally::default();
        all.groups().for_each(|group| copies(group, |_, _| None, 9, &mut tally));
        assert_eq!((tally.count, tally.together), (1, vec!["a".to_owned(), "b".to_owned()]));
        let mut near = FindingTally::default();
        all.groups().for_each(|group| copies(group, |_, _| Some(true), 9, &mut near));
        assert_eq!(near.together, ["a", "b", "c"]);
    }
}
