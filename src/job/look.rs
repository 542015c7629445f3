//! A preview of a job: plans every batch and applies none.

use std::borrow::Cow;

use serde_json::{Map, Value, json};

use super::first_changes::FirstChanges;
use super::plan::undo_reason;
use super::record::ready;
use super::{BatchAsk, Job};
use crate::change::apply::report_refused;
use crate::change::{ChangeDanger, ChangeError, Plan, not_yet, now};
use crate::memory::counted;
use crate::store::Store;

/// Rows planned at a time.
const STRIDE: usize = 4_000;

/// Plans the changes that a job would make, with the first ones in full.
///
/// # Errors
/// As planning its batches.
pub async fn look(store: &Store, job: &dyn Job) -> Result<Plan, ChangeError> {
    let own = store.records().own().await?.filter(|own| own.unread.is_none());
    let mut place = job.begin();
    let mut sum = empty(job, job.total(store).await?, own.as_ref().map(|o| o.database_id.clone()).unwrap_or_default());
    sum.disclosures.extend(not_yet(ready(store).await)?);
    let (mut sums, mut first) = (Map::new(), FirstChanges::default());
    let (mut seen, mut bad) = (0_u64, 0_u64);
    loop {
        let batch = job.batch(BatchAsk { store, own: own.as_ref(), place: &place, size: STRIDE, dry: true }).await?;
        seen += batch.seen as u64;
        bad += batch.bad.len() as u64;
        add_facts(&mut sums, &batch.plan.facts);
        batch.plan.operation.clone_into(&mut sum.operation);
        sum.danger = sum.danger.max(batch.plan.danger);
        add(&mut sum, &mut first, batch.plan);
        match batch.next {
            Some(next) => place = next,
            None => break,
        }
    }
    sum.changes = first.changes;
    sum.effects.extend(job.summed(&sums));
    sum.facts = json!({ "seen": seen, "bad": bad });
    sum.disclosures.extend(counted(
        bad,
        "{#} {row cannot|rows cannot} be handled: {it is set aside and listed|they are set aside and listed}",
    ));
    sum.plan_id = sum.digest();
    report_refused(store, sum).await
}

fn empty(job: &dyn Job, total: Option<u64>, database_id: String) -> Plan {
    Plan {
        plan_id: String::new(),
        operation: job.name().to_owned(),
        danger: ChangeDanger::Safe,
        counts: crate::change::plan::Counts::new(),
        changes: Vec::new(),
        changes_total: 0,
        effects: job.effects(),
        disclosures: job.disclosures(),
        created_at: now(),
        database_id,
        facts: Value::Null,
        undo_reason: undo_reason(job.undo_reason(), total),
        reason: None,
        ticket: None,
        watches: Vec::new(),
        mutations: Vec::new(),
        trail: Vec::new(),
        undo_trail: Vec::new(),
        rules: None,
    }
}

/// Adds the numbers among the facts of a batch to those of the batches before.
pub fn add_facts(sums: &mut Map<String, Value>, facts: &Value) {
    for (name, value) in facts.as_object().into_iter().flatten() {
        if let Some(number) = value.as_u64() {
            let sum = sums.get(name).and_then(Value::as_u64).unwrap_or_default();
            sums.insert(name.clone(), Value::from(sum.saturating_add(number)));
        }
    }
}

fn add(sum: &mut Plan, first: &mut FirstChanges, batch: Plan) {
    for (table, verbs) in batch.counts {
        for (verb, rows) in verbs {
            *sum.counts.entry(table.clone()).or_default().entry(verb).or_default() += rows;
        }
    }
    first.take(batch.changes.into_iter().map(Cow::Owned));
    sum.changes_total += batch.changes_total;
    for said in batch.effects {
        if !sum.effects.contains(&said) {
            sum.effects.push(said);
        }
    }
    for said in batch.disclosures {
        if !sum.disclosures.contains(&said) {
            sum.disclosures.push(said);
        }
    }
}
