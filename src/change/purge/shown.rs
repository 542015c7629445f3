//! A plan to erase a person, in its printed form.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde_json::json;

use super::disclose;
use super::mention::{Mention, PrintedMention};
use super::plan::PurgePlan;
use super::receipt::AccountFate;
use super::scan_findings::PlaceTally;
use super::subject::PersonHandle;
use crate::change::ChangeSide;
use crate::change::plan::erasure::Mentions;
use crate::change::plan::{Change, Counts};
use crate::memory::mask::Mask;
use crate::store::fetched::{FetchedValue, as_text};

/// Most changes in a printed plan; mentions are limited by the plan.
const SHOWN: usize = 50;

/// Printed form of a plan to erase a person. For other people's rows it contains only masked samples.
#[derive(Debug, Clone, Serialize)]
pub struct PrintedPurgePlan {
    plan_id: String,
    operation: &'static str,
    danger: &'static str,
    /// Rows by table and verb.
    pub counts: Counts,
    changes: Vec<Change>,
    changes_shown: usize,
    changes_total: usize,
    /// Further consequences, as sentences.
    pub effects: Vec<String>,
    /// Known limits of the erasure, as sentences.
    pub disclosures: Vec<String>,
    created_at: String,
    /// The person.
    pub subject: PrintedSubject,
    mentions_shown: usize,
    /// Mentions in other people's rows, up to the plan's limit.
    pub mentions: PrintedMentions,
    /// Number of such mentions.
    pub mentions_total: usize,
    /// Decisions on them, by table and column.
    pub mentions_by_column: BTreeMap<String, PlaceTally>,
    mentions_decision: Mentions,
    control: Vec<KindControl>,
    account: AccountFate,
    audit_values_redacted: usize,
}

/// The person of a printed plan.
#[derive(Debug, Clone, Serialize)]
pub struct PrintedSubject {
    given: String,
    ids: Vec<String>,
    /// All handles of the person.
    pub handles: Vec<PersonHandle>,
    /// Other people with similar handles.
    pub near: Vec<NearHandle>,
}

/// Another person's handle that is similar to one of the person's.
#[derive(Debug, Clone, Serialize)]
pub struct NearHandle {
    id: String,
    value: String,
}

/// Printed mentions, one by one, or as lines grouped by column.
#[derive(Debug, Clone, Serialize)]
#[serde(untagged)]
pub enum PrintedMentions {
    /// For programs.
    Each(Vec<PrintedMention>),
    /// For users.
    Lines(BTreeMap<String, Vec<String>>),
}

/// Handles of one kind: their number, the number found, and the total hits.
#[derive(Debug, Clone, Serialize)]
struct KindControl {
    kind: String,
    of: usize,
    found: usize,
    hits: usize,
}

impl PrintedPurgePlan {
    /// Replaces all handles of the person and of other people by pseudonyms, and samples by `[…]`.
    pub fn mask(&mut self, mask: &Mask) {
        let hide = |text: &mut String| *text = mask.pseudonym("handle", text);
        let subject = &mut self.subject;
        self.changes
            .iter_mut()
            .filter(|change| subject.ids.contains(&change.id))
            .for_each(|change| hide(&mut change.id));
        hide(&mut subject.given);
        subject.ids.iter_mut().for_each(hide);
        subject.handles.iter_mut().for_each(|handle| hide(&mut handle.value));
        subject.near.iter_mut().flat_map(|near| [&mut near.id, &mut near.value]).for_each(hide);
        if let PrintedMentions::Each(mentions) = &mut self.mentions {
            for mention in mentions {
                "[…]".clone_into(&mut mention.sample);
                hide(&mut mention.key);
            }
        }
    }

    /// Groups mentions by column, one line each. Call it after [`PrintedPurgePlan::mask`].
    pub fn group_mentions(&mut self) {
        let PrintedMentions::Each(mentions) = &self.mentions else { return };
        let mut places: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for mention in mentions {
            places.entry(format!("{}.{}", mention.table, mention.column)).or_default().push(mention.line());
        }
        self.mentions = PrintedMentions::Lines(places);
    }
}

impl PurgePlan {
    /// Converts the plan to its printed form.
    pub fn printed(self) -> PrintedPurgePlan {
        let (changes, control) = (self.changes(), self.control());
        let notes: Vec<String> = self.shown_notes().collect();
        let changes_total = self.updates.len() + self.going();
        let near = self.subject.near.into_iter().map(|(id, value)| NearHandle { id, value });
        let standing = disclose::STANDING.iter().map(|words| (*words).to_owned());
        PrintedPurgePlan {
            plan_id: self.plan_id,
            operation: "purge",
            danger: "grave",
            counts: self.counts,
            changes_shown: changes.len(),
            changes,
            changes_total,
            effects: self.effects,
            disclosures: self.particular.into_iter().chain(notes).chain(standing).collect(),
            created_at: self.created_at,
            subject: PrintedSubject {
                given: self.subject.given,
                ids: self.subject.ids,
                handles: self.subject.handles,
                near: near.collect(),
            },
            mentions_shown: self.mentions.len(),
            mentions: PrintedMentions::Each(self.mentions.iter().map(Mention::printed).collect()),
            mentions_total: self.mentioned.values().sum(),
            mentions_by_column: self.tally,
            mentions_decision: self.options.mentions,
            control,
            account: AccountFate::of(self.options.account),
            audit_values_redacted: self.redacts.len(),
        }
    }

    fn control(&self) -> Vec<KindControl> {
        let mut kinds: BTreeMap<&str, KindControl> = BTreeMap::new();
        for (kind, hits) in &self.control {
            let empty = || KindControl { kind: kind.to_string(), of: 0, found: 0, hits: 0 };
            let control = kinds.entry(kind).or_insert_with(empty);
            control.of += 1;
            control.found += usize::from(*hits > 0);
            control.hits += hits;
        }
        kinds.into_values().collect()
    }

    fn changes(&self) -> Vec<Change> {
        let id = |key: &[FetchedValue]| key.iter().filter_map(as_text).collect::<Vec<_>>().join(" ");
        let altered = self.updates.iter().map(|a| {
            let key: Vec<FetchedValue> = a.key.iter().map(|(_, v)| v.clone()).collect();
            let columns: BTreeSet<&str> = a.update.set.iter().map(|update| &*update.column).collect();
            Change {
                entity: a.table.title(),
                id: id(&key),
                before: json!({ "columns": columns }).into(),
                after: json!({ "why": a.update.why.iter().map(|why| &**why).collect::<Vec<_>>() }).into(),
            }
        });
        let gone = self.deletes.iter().flat_map(|rows| {
            let title = rows.table.title();
            rows.all_keys().map(move |key| (title.clone(), key))
        });
        let gone = gone.map(|(entity, key)| Change {
            entity,
            id: id(&key),
            before: json!({ "there": true }).into(),
            after: ChangeSide::default(),
        });
        altered.chain(gone).take(SHOWN).collect()
    }
}
