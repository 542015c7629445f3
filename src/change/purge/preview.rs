//! The console's view of an erasure.

mod around;

use std::collections::BTreeMap;

use super::desk::KeptSession;
use super::disclose::STANDING;
use super::mention::Mention;
use super::plan::{PurgePlan, told_silent};
use super::receipt::{ByteHits, ControlFound, PurgeReceipt};
use super::subject::PurgeSubject;
use super::taken::GoingRows;
use crate::change::audit::NO_TRAIL;
use crate::change::plan::erasure::{Branch, ErasureCheck, ErasureHandle, ErasureOutcome, Preview, ShownMention};
use crate::change::suppress::hmac;
use crate::change::{ChangeError, purge};
use crate::layout::Engine;
use crate::memory::{agreeing, thousands};
use crate::store::stored::TableName;
use crate::store::{Store, StoreError};

/// Builds the view of a plan, with the reason if it cannot be applied.
///
/// # Errors
/// The engine's refusal.
pub async fn preview(store: &Store, plan: &PurgePlan) -> Result<Preview, ChangeError> {
    let (held, refused) = refusal(store, &plan.subject).await?;
    let unfinished = match store.records().secret().filter(|_| store.records().can_erase()) {
        Some(key) => {
            let session = store.records().purge_of(&hmac(key, &plan.subject.given)).await?;
            session.is_some_and(|s| matches!(s.status.as_str(), "running" | "incomplete"))
        }
        None => false,
    };
    let standing = STANDING.iter().map(ToString::to_string);
    Ok(Preview {
        plan_id: plan.plan_id.clone(),
        id: plan.subject.ids.first().cloned().unwrap_or_default(),
        known: known(&plan.subject),
        near: plan.subject.near.clone(),
        tree: tree(plan),
        counts: plan.counts.clone(),
        gone_for_mentions: plan.gone_for_mentions,
        mentions: plan.mentioned.iter().map(|(place, count)| (place.clone(), *count)).collect(),
        named: named(store, plan).await?,
        effects: plan.effects.clone(),
        disclosures: plan.particular.iter().cloned().chain(plan.shown_notes()).chain(standing).collect(),
        refused,
        held,
        locks: store.engine() == Engine::Postgres,
        unfinished,
        began: None,
    })
}

/// Mentions, grouped by column.
async fn named(store: &Store, plan: &PurgePlan) -> Result<Vec<ShownMention>, ChangeError> {
    let mut mentions: Vec<&Mention> = plan.mentions.iter().collect();
    mentions.sort_by_cached_key(|mention| mention.place());
    around::shown(store, plan, &mentions).await
}

/// Whether the person is under a legal hold, and the reason why nothing may be erased.
async fn refusal(store: &Store, subject: &PurgeSubject) -> Result<(bool, Option<String>), ChangeError> {
    match purge::check_hold(store, subject).await {
        Err(ChangeError::Refused(reason)) => return Ok((true, Some(reason))),
        Err(ChangeError::Store(StoreError::Denied { reason, remedy })) => {
            return Ok((false, Some(format!("{reason}; {remedy}"))));
        }
        other => other?,
    }
    match super::run::ready(store).await.map(drop).and_then(|()| super::planning::owners(store)) {
        Err(ChangeError::Refused(reason)) if reason.contains(NO_TRAIL) => {
            Ok((false, Some(format!("the database is read-only: it {NO_TRAIL}; U adds it"))))
        }
        Err(ChangeError::Refused(reason)) => Ok((false, Some(reason))),
        Err(ChangeError::Store(StoreError::Denied { reason, remedy })) => {
            Ok((false, Some(format!("{reason}; {remedy}"))))
        }
        other => other.map(|()| (false, None)),
    }
}

fn known(subject: &PurgeSubject) -> Vec<ErasureHandle> {
    let known = subject.handles.iter().map(|h| ErasureHandle {
        kind: h.kind.to_string(),
        value: h.value.clone(),
        unsearched: h.unsearched.clone(),
    });
    known.collect()
}

/// Builds the view of an unfinished erasure from its original plan: the person may not be found any more.
///
/// # Errors
/// The engine's refusal.
pub async fn begun(store: &Store, kept: &KeptSession) -> Result<Preview, ChangeError> {
    let (held, refused) = refusal(store, &kept.subject).await?;
    let silent = kept.silent.iter().map(told_silent);
    let branch = |(table, verbs): (&String, &BTreeMap<String, usize>)| {
        let rows = verbs.get("delete").copied().unwrap_or_default();
        (rows > 0).then(|| Branch { depth: 0, table: table.clone(), rows })
    };
    let standing = STANDING.iter().map(ToString::to_string);
    Ok(Preview {
        plan_id: kept.plan_id.clone(),
        id: kept.subject.given.clone(),
        known: known(&kept.subject),
        near: kept.subject.near.clone(),
        tree: kept.planned.iter().filter_map(branch).collect(),
        counts: kept.planned.clone(),
        gone_for_mentions: 0,
        mentions: Vec::new(),
        named: Vec::new(),
        effects: kept.effects.clone(),
        disclosures: kept.particular.iter().chain(&kept.notes).cloned().chain(silent).chain(standing).collect(),
        refused,
        held,
        locks: store.engine() == Engine::Postgres,
        unfinished: true,
        began: Some(kept.choice()),
    })
}

/// Tables with rows to delete, each below the first one that leads to it.
fn tree(plan: &PurgePlan) -> Vec<Branch> {
    let mut branches = Vec::new();
    let mut left: Vec<&TableName> = plan.deletes.iter().map(|rows| &rows.table).collect();
    let above = |table: &TableName| {
        let mut hops = plan.hops.iter().filter(|(from, _)| from == table);
        // A table that names the person itself is at the root.
        let named = plan.hops.iter().any(|(from, of)| from == table && of.is_none());
        if named { None } else { hops.find_map(|(_, of)| of.clone().filter(|of| of != table)) }
    };
    let mut stack: Vec<(TableName, usize)> = Vec::new();
    let roots: Vec<TableName> = left.iter().filter(|t| above(t).is_none()).map(|t| (*t).clone()).collect();
    stack.extend(roots.into_iter().rev().map(|table| (table, 0)));
    while let Some((table, depth)) = stack.pop() {
        let Some(at) = left.iter().position(|t| **t == table) else { continue };
        left.remove(at);
        let rows = plan.deletes.iter().find(|d| d.table == table).map_or(0, GoingRows::len);
        branches.push(Branch { depth, table: table.title(), rows });
        let below: Vec<TableName> =
            left.iter().filter(|t| above(t).as_ref() == Some(&table)).map(|t| (*t).clone()).collect();
        stack.extend(below.into_iter().rev().map(|table| (table, depth + 1)));
    }
    branches.extend(left.into_iter().map(|table| Branch {
        depth: 0,
        table: table.title(),
        rows: plan.deletes.iter().find(|d| d.table == *table).map_or(0, GoingRows::len),
    }));
    let owned = plan.owned.iter().map(|owned| (owned.rows.table.title(), owned.count));
    branches.extend(owned.map(|(table, rows)| Branch { depth: 0, table, rows }));
    branches
}

/// Builds the view of a receipt.
pub fn outcome(receipt: PurgeReceipt) -> ErasureOutcome {
    let found = &receipt.verification;
    let check = |name: &str, found: String, good| ErasureCheck { name: name.to_owned(), found, good };
    let mut values = match (found.logical.hits, found.logical.left) {
        (hits, 0) => agreeing(hits, "{#} {hit|hits}"),
        (hits, left) => {
            agreeing(hits, &format!("{{#}} {{hit|hits}}, {} of {{it|them}} left on purpose", thousands(left)))
        }
    };
    let account = found.logical.account;
    if account > 0 {
        values.push_str(&agreeing(account, "; {#} {value|values} of the account, which is kept"));
    }
    let ControlFound { found: there, of } = found.control;
    let index = found.index.hits;
    let verification = vec![
        check(
            "found before",
            format!("{there} of {of} handles: the search finds what it looks for"),
            Some(there == of),
        ),
        check("values", values, Some(found.logical.hits == 0 && account == 0)),
        check("search indexes", agreeing(index, "{#} {hit|hits}"), Some(index == 0)),
        bytes(&found.bytes),
    ];
    ErasureOutcome {
        status: receipt.status.word().to_owned(),
        counts: receipt.counts,
        verification,
        incomplete: receipt.incomplete,
        disclosures: receipt.anchor_problem.into_iter().chain(receipt.disclosures).collect(),
        kept_in: receipt.kept_in.unwrap_or_default(),
        exported_to: None,
        audit_seq: receipt.audit_seq.unwrap_or_default(),
    }
}

fn bytes(found: &ByteHits) -> ErasureCheck {
    let (words, good) = if found.checked {
        let stays = match found.left {
            0 => String::new(),
            left => agreeing(left, "; {#} {belongs|belong} to rows that stay"),
        };
        let (hits, files) =
            (agreeing(found.hits, "{#} {hit|hits}"), agreeing(found.files.len() as u64, "{#} {file|files}"));
        (format!("{hits}, in {files}{stays}"), Some(found.hits == 0 && found.left == 0))
    } else {
        let reason = found.reason.as_deref().unwrap_or("a server's files cannot be read from here");
        (format!("not checked: {reason}"), None)
    };
    ErasureCheck { name: "bytes".to_owned(), found: words, good }
}
