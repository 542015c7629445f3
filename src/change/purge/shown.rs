//! A plan to erase a person as commands print it.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::disclose;
use super::graph::as_text;
use super::mention::Mention;
use super::plan::PurgePlan;
use super::receipt::AccountFate;
use crate::change::plan::Change;
use crate::store::fetched::FetchedValue;

/// Changes that a printed plan shows at most; mentions are shown as far as they are kept.
const SHOWN: usize = 50;

impl PurgePlan {
    /// The shape that commands print. Of other people's rows only masked samples are shown.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let changes = self.changes();
        let total = self.updates.len() + self.deletes.iter().map(|d| d.keys.len()).sum::<usize>();
        let handles: Vec<Value> = self.subject.handles.iter().map(|h| json!(h)).collect();
        let near: Vec<Value> =
            self.subject.near.iter().map(|(id, value)| json!({ "id": id, "value": value })).collect();
        let mentions: Vec<Value> = self.mentions.iter().map(Mention::to_json).collect();
        let disclosures: Vec<&str> = self
            .particular
            .iter()
            .chain(&self.notes)
            .map(String::as_str)
            .chain(disclose::STANDING.iter().copied())
            .collect();
        let shown = changes.len();
        json!({
            "plan_id": self.plan_id,
            "operation": "purge",
            "danger": "grave",
            "counts": self.counts,
            "changes": changes,
            "changes_shown": shown,
            "changes_total": total,
            "effects": self.effects,
            "disclosures": disclosures,
            "created_at": self.created_at,
            "subject": { "given": self.subject.given, "ids": self.subject.ids, "handles": handles, "near": near },
            "mentions_shown": mentions.len(),
            "mentions": mentions,
            "mentions_total": self.mentioned.values().sum::<usize>(),
            "mentions_by_column": self.tally,
            "mentions_decision": self.options.mentions,
            "control": self.control_json(),
            "account": AccountFate::of(self.options.account),
            "audit_values_redacted": self.redacts.len(),
        })
    }

    /// Handles by kind: how many there are, how many of them were found, and how often.
    fn control_json(&self) -> Value {
        let mut kinds: BTreeMap<&str, [usize; 3]> = BTreeMap::new();
        for (kind, hits) in &self.control {
            let [of, found, all] = kinds.entry(kind).or_default();
            (*of, *found, *all) = (*of + 1, *found + usize::from(*hits > 0), *all + hits);
        }
        kinds
            .iter()
            .map(|(kind, [of, found, hits])| json!({ "kind": kind, "of": of, "found": found, "hits": hits }))
            .collect()
    }

    fn changes(&self) -> Vec<Change> {
        let id = |key: &[FetchedValue]| key.iter().filter_map(as_text).collect::<Vec<_>>().join(" ");
        let altered = self.updates.iter().map(|a| {
            let key: Vec<FetchedValue> = a.key.iter().map(|(_, v)| v.clone()).collect();
            let columns: Vec<&String> = a.update.set.keys().collect();
            Change {
                entity: a.table.title(),
                id: id(&key),
                before: json!({ "columns": columns }),
                after: json!({ "why": a.update.why }),
            }
        });
        let gone = self.deletes.iter().flat_map(|rows| {
            let title = rows.table.title();
            rows.keys.iter().map(move |key| (title.clone(), key))
        });
        let gone = gone.map(|(entity, key)| Change {
            entity,
            id: id(key),
            before: json!({ "there": true }),
            after: Value::Null,
        });
        altered.chain(gone).take(SHOWN).collect()
    }
}
