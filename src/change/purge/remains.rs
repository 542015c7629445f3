//! Searches every value after the deletion for mentions of the person and references to deleted rows, and checks which
//! of them were left by choice.

use std::collections::{HashMap, HashSet};

use super::desk::{Desk, KeptSession};
use super::effects::KeptRows;
use super::graph::Graph;
use super::id_set::{IdSet, LostIds};
use super::live_traces::LiveTraces;
use super::made_ids::MadeIds;
use super::matcher::Matcher;
use super::mention::Mention;
use super::prove::{Proof, telling};
use super::row_ids::RowIds;
use super::scan;
use super::scan_findings::ScanFindings;
use super::search::{KnownTables, PersonSearch};
use super::subject::PersonHandle;
use super::unowned;
use super::verdict::{Remain, RemainKind};
use crate::change::ChangeError;
use crate::memory::agreeing;
use crate::store::Store;
use crate::store::aside::ColumnStatistics;
use crate::store::proof::values::ValueWatch;
use crate::store::stored::TableName;

/// Searches every value. Returns the hits of each handle to be searched in bytes, and the findings of the watch.
///
/// # Errors
/// The engine's refusal.
pub async fn logical(
    store: &Store,
    desk: &Desk<'_>,
    kept: &KeptSession,
    watch: Option<&ValueWatch>,
    proof: &mut Proof,
) -> Result<(Vec<usize>, LiveTraces), ChangeError> {
    let mut snapshot = store.snapshot().await?;
    let relations = snapshot.relations().await?;
    let erasure = &store.recognised().erasure;
    let about = KnownTables::of(&mut snapshot, &relations).await?;
    let mut graph = Graph::new(store, &erasure.rules, relations.clone(), kept.options.account);
    graph.owning.clone_from(&kept.subject.owning);
    graph.close(&mut snapshot, &kept.subject.ids).await?;
    graph.spare(&kept.subject.ids);
    graph.take_late(&mut snapshot, &kept.deletes).await?;
    let owned = std::mem::take(&mut graph.owned);
    let late = owned.iter().map(|(table, owned)| (table, owned.count));
    let late = graph.tables.iter().map(|(table, taken)| (table, taken.len())).chain(late);
    for (table, rows) in late.filter(|(_, rows)| *rows > 0) {
        let title = table.title();
        proof.find(
            RemainKind::Rows,
            agreeing(
                rows,
                &format!("{{#}} {{row of|rows of}} {title}{{ is | are }}the person's: written during the erasure"),
            ),
        );
    }
    graph.tables.clear();
    for words in unowned::anybodys(&mut snapshot, &graph).await? {
        proof.find(RemainKind::Elsewhere, words);
    }
    for (table, reason) in &relations.unread {
        proof.find(RemainKind::Unread, format!("{}: {reason}", table.title()));
    }
    for (table, reason) in &relations.elsewhere {
        proof.find(RemainKind::Elsewhere, format!("{} was not searched: {reason}", table.title()));
    }
    let copies: Vec<String> = relations.copies.iter().map(TableName::title).collect();
    let account = Graph::of_account(&mut snapshot, relations, kept.options.account, &kept.subject.ids).await?;
    let handles: Vec<&PersonHandle> = kept.subject.searched().collect();
    let ids = LostIds::new(&kept.ids, IdSet::new(graph.pages()));
    let matcher = Matcher::new(handles.iter().copied(), RowIds::new(&kept.ids), &kept.subject.others)?;
    // The plan decided which ids may be other people's words.
    let made = MadeIds::default();
    // Triggers have fired by now.
    let follows = HashSet::new();
    let search = PersonSearch {
        graph: &graph,
        account: &account,
        subject: &kept.subject.ids,
        handles: &handles,
        matcher: &matcher,
        ids: &ids,
        made: &made,
        listed: &HashMap::new(),
        decisions: kept.options.decisions(),
        about: &about,
        follows: &follows,
        watch,
        progress: desk.progress,
    };
    let mut found = scan::everything(&mut snapshot, &search, None, &mut KeptRows::new(graph.pages())).await?.0;
    // Unreadable ids were not searched for.
    kept.ids.check()?;
    proof.account = found.account;
    let stuck = [&found.stuck, &found.parts];
    let places = found.counted.keys().chain(stuck.iter().flat_map(|left| left.keys())).chain(found.unread.keys());
    proof.places = places.cloned().collect();
    let left = stuck.iter().flat_map(|left| left.values());
    proof.logical = found.counted.values().chain(found.loosened.values()).chain(left).sum();
    let known: Vec<String> = about.tables.iter().map(TableName::title).collect();
    let findings = judged(&found, kept, &known, &copies);
    proof.left = findings
        .iter()
        .filter(|(f, _)| f.kind.allows() != super::verdict::PurgeStatus::Incomplete)
        .map(|(_, n)| n)
        .sum();
    proof.findings.extend(findings.into_iter().map(|(finding, _)| finding));
    for statistics in learned(store, kept).await? {
        let ColumnStatistics { table, within, column, .. } = statistics;
        // Partitions hold rows that are read through the whole table.
        let own: Vec<&TableName> = within.iter().chain([&table]).collect();
        let leads = erasure.rules.iter().filter(|rule| own.contains(&&TableName::of(&rule.table)));
        let leads = leads.filter_map(|rule| rule.of.as_ref()).map(|of| TableName::of(of).title());
        let tables: Vec<String> = leads.chain(own.iter().map(|table| table.title())).collect();
        let held = found.counted.keys().any(|place| is_of(place, &tables));
        if held || own.iter().any(|table| account.taken(table).is_some_and(|taken| !taken.is_empty())) {
            continue;
        }
        let table = table.title();
        let what = format!("the statistics of {table} ({column}) still name the person: ANALYZE it, and resume");
        proof.find(RemainKind::Mention, what);
    }
    let told = telling(kept).map(|h| handles.iter().position(|other| other.value == h.value));
    let named = told.map(|at| at.and_then(|at| found.control.get(at)).copied().unwrap_or_default()).collect();
    Ok((named, std::mem::take(&mut found.live)))
}

/// Planner statistics that contain a handle.
///
/// # Errors
/// The engine's refusal.
pub async fn learned(store: &Store, kept: &KeptSession) -> Result<Vec<ColumnStatistics>, ChangeError> {
    let handles: Vec<&PersonHandle> = kept.subject.searched().collect();
    let matcher = Matcher::new(handles.iter().copied(), RowIds::default(), &kept.subject.others)?;
    let mut all = store.snapshot().await?.statistics().await?;
    all.retain(|statistics| matcher.names(&statistics.values));
    Ok(all)
}

/// Judges the findings. Returns each with its number of values: as many left by choice as were chosen, and the rest
/// left without a choice.
fn judged(found: &ScanFindings, kept: &KeptSession, known: &[String], copies: &[String]) -> Vec<(Remain, usize)> {
    let mut all = mentions_left(found, kept, known, copies);
    all.extend(references_left(found, kept));
    for (place, count) in &found.ours {
        let what = "of our own tables names the person";
        let what = format!("{place} {what} {count} {{time|times}}: the audit trail would break without it");
        all.extend(counted(RemainKind::Trail, *count, &what));
    }
    let none = |kind, what: String| (Remain::new(kind, what), 0);
    let redacts = found.redacts.len();
    let what = format!("{redacts} private {{value|values}} of the audit trail {{still names|still name}} the person");
    all.extend(counted(RemainKind::Private, redacts, &what).map(|(remain, _)| (remain, 0)));
    let account = found.account;
    let what = format!("the account is kept: {account} {{value of it names|values of it name}} the person");
    all.extend(counted(RemainKind::Account, account, &what).map(|(remain, _)| (remain, 0)));
    for object in &found.structure {
        all.push(none(RemainKind::Structure, format!("{object}; the database's structure is not changed")));
    }
    all.extend(kept.shared.iter().map(|words| none(RemainKind::Shared, words.clone())));
    all.extend(kept.old_hashes.iter().map(|words| none(RemainKind::OldHash, words.clone())));
    all.extend(kept.old_vectors.iter().map(|words| none(RemainKind::OldVector, words.clone())));
    let opaque = found.unread_words().chain(kept.subject.not_looked_for());
    all.extend(opaque.map(|words| none(RemainKind::Opaque, words)));
    all
}

/// Returns the finding for `count` values, as a sentence in singular or plural; `None` for zero.
fn counted(kind: RemainKind, count: usize, sentence: &str) -> Option<(Remain, usize)> {
    (count > 0).then(|| (Remain::new(kind, agreeing(count, sentence)), count))
}

fn mentions_left(
    found: &ScanFindings,
    kept: &KeptSession,
    known: &[String],
    copies: &[String],
) -> Vec<(Remain, usize)> {
    const NAME: &str = "{value names|values name} the person";
    let mut all = Vec::new();
    for (place, count) in &found.counted {
        if is_of(place, copies) {
            let what = "the materialised {view names|view name} the person; refresh it and resume";
            let what = format!("{place}: {count} {{value of|values of}} {what}");
            all.extend(counted(RemainKind::Mention, *count, &what));
            continue;
        }
        // Values that were to be deleted were not left by choice; nor were more values than existed when it was chosen.
        let tally = found.tally.get(place).copied().unwrap_or_default();
        let together = tally.left_together().min(kept.left.get(place).copied().unwrap_or_default());
        let undone = tally.undone.min(*count);
        let chosen = (tally.singled + together).min(count.saturating_sub(tally.done + undone));
        let rest = count - undone - chosen;
        if is_of(place, known) {
            let what = format!("{place}: {chosen} {NAME} and {{is left|are left}}");
            all.extend(counted(RemainKind::Left, chosen, &what));
        } else {
            let left = "{is left unchanged|are left unchanged}";
            let what = format!("{place} is outside the layout: {chosen} {NAME} and {left}");
            all.extend(counted(RemainKind::Outside, chosen, &what));
        }
        all.extend(counted(RemainKind::Mention, undone, &impossible(found, place, undone)));
        let why = "no choice was made to {leave it|leave them}: written in the meantime, or copied by a trigger";
        all.extend(counted(RemainKind::Mention, rest, &format!("{place}: {rest} {NAME}, and {why}")));
    }
    all
}

fn references_left(found: &ScanFindings, kept: &KeptSession) -> Vec<(Remain, usize)> {
    let mut all = Vec::new();
    for (place, count) in &found.stuck {
        let said = *count.min(kept.left_references.get(place).unwrap_or(&0));
        let what = "{reference to a deleted row|references to deleted rows} cannot be removed";
        all.extend(counted(RemainKind::LeftReference, said, &format!("{place}: {said} {what}")));
        let rest = count - said;
        let what = "{value refers to a row that is|values refer to rows that are} gone";
        all.extend(counted(RemainKind::Reference, rest, &format!("{place}: {rest} {what}")));
    }
    for (place, count) in &found.parts {
        let what = "{value has|values have} the id of a deleted row within a longer id, and {is left|are left}";
        all.extend(counted(RemainKind::LeftReference, *count, &format!("{place}: {count} {what}")));
    }
    for (place, count) in &found.loosened {
        let what = "{value still refers to a row that is|values still refer to rows that are} gone";
        all.extend(counted(RemainKind::Reference, *count, &format!("{place}: {count} {what}")));
    }
    all
}

/// Most mention ids that a receipt shows for one column.
const SHOWN: usize = 10;

/// Advice on mentions for which an impossible decision was requested.
fn impossible(found: &ScanFindings, place: &str, count: usize) -> String {
    let undone: Vec<&Mention> = found.mentions.iter().filter(|m| !m.chosen && m.place() == place).collect();
    let reason =
        undone.iter().find_map(|mention| mention.refusal()).unwrap_or("the requested treatment is not possible there");
    let can_go = undone.iter().all(|mention| mention.refusals.delete.is_none());
    let shown: Vec<&str> = undone.iter().take(SHOWN).map(|mention| mention.id.as_str()).collect();
    agreeing(
        count,
        &format!(
            "{place}: {{#}} {{value names|values name}} the person and {{stays,|stay,}} although another treatment was \
         requested ({reason}); resume with --mention {place}=leave{}, or decide one by one: {}{}",
            if can_go { " or =delete" } else { "" },
            shown.join(", "),
            if count > shown.len() { " and more" } else { "" }
        ),
    )
}

/// Whether a column belongs to one of some tables.
pub(super) fn is_of(place: &str, tables: &[String]) -> bool {
    tables.iter().any(|table| place.strip_prefix(table.as_str()).is_some_and(|rest| rest.starts_with('.')))
}
