//! A plan to erase a person as commands print it.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::disclose;
use super::graph::as_text;
use super::plan::PurgePlan;
use super::scan::Mention;
use crate::change::plan::Change;
use crate::store::session::Raw;

/// Changes and mentions that a printed plan shows at most.
const SHOWN: usize = 50;

impl PurgePlan {
    /// The shape that commands print. Of rows of others only masked samples are shown.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let changes = self.changes();
        let total = self.updates.len() + self.deletes.iter().map(|d| d.keys.len()).sum::<usize>();
        let handles: Vec<Value> = self.subject.handles.iter().map(|h| json!(h)).collect();
        let near: Vec<Value> =
            self.subject.near.iter().map(|(id, value)| json!({ "id": id, "value": value })).collect();
        let mentions: Vec<Value> = self.mentions.iter().take(SHOWN).map(mention_json).collect();
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
            "mentions": { "action": self.options.mentions, "by_column": self.mentioned, "shown": mentions,
                "total": self.mentioned.values().sum::<usize>() },
            "control": self.control_json(),
            "account": if self.options.account { "erase" } else { "keep" },
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
        let id = |key: &[Raw]| key.iter().filter_map(as_text).collect::<Vec<_>>().join(" ");
        let altered = self.updates.iter().map(|a| {
            let key: Vec<Raw> = a.key.iter().map(|(_, v)| v.clone()).collect();
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

fn mention_json(mention: &Mention) -> Value {
    let key: Vec<String> = mention.key.iter().filter_map(as_text).collect();
    json!({
        "table": mention.table.title(), "id": key.join(" "), "column": mention.column, "kinds": mention.kinds,
        "hits": mention.hits, "sample": mention.sample, "can_be_changed": mention.known,
    })
}
