//! Statements of a plan and a receipt to users: effects on rows that stay, what remains, what cannot be determined.

use std::collections::{BTreeMap, BTreeSet};

use super::column_words::looks_personal;
use super::graph::Graph;
use super::id_set::IdSet;
use super::mention::Mentions;
use super::owners::known_tables;
use super::plan::PurgePlan;
use super::scan_findings::{PlaceTally, ScanFindings};
use super::shared;
use super::taken::ranges;
use super::unowned;
use crate::change::ChangeError;
use crate::layout::erase::TableKey;
use crate::memory::Entity;
use crate::memory::{agreeing, counted};
use crate::store::Store;
use crate::store::encode::{plain_column, table_of};
use crate::store::fetched::{RawRow, as_text};
use crate::store::relations::TableTrigger;
use crate::store::snapshot::Snapshot;
use crate::store::stored::TableName;

/// Disclosures that are on every receipt.
pub const STANDING: &[&str] = &[
    "backups, point-in-time recovery and archived WAL keep the data until they expire",
    "replicas that were not reached, and logs of servers and agents, may hold copies",
    "exports, and prompts already sent to model providers, are not reached",
    "the storage cells of an SSD may keep old blocks",
    "models trained earlier keep what they learned",
    "a first name alone, and a handle that is too short or too common, are not searched for in texts",
    "values in an encoding that docs/reliability.md does not list are not searched",
];

/// Adds messages about what happens to rows that stay.
pub fn effects(plan: &mut PurgePlan, follows: &[TableKey], triggers: &[TableTrigger]) {
    let mut counted: BTreeMap<&str, usize> = BTreeMap::new();
    for row in &plan.updates {
        row.update.why.iter().for_each(|why| *counted.entry(why).or_default() += 1);
    }
    let spellings = plan.subject.spellings.unwrap_or_default();
    let people = plan.subject.ids.len().saturating_sub(spellings);
    let together = format!(
        "{people} people of this database are erased together: an alias is the id or name of \
     another one"
    );
    let mut effects: Vec<String> =
        counted.into_iter().map(|(why, rows)| agreeing(rows, &format!("{why} ({{#}} {{row|rows}})"))).collect();
    if let Some(account) = &plan.nameless {
        effects.push(format!("{} gets one nameless account that pseudonyms refer to", account.table.title()));
    }
    for table in follows.iter().filter(|_| !plan.is_empty()) {
        effects.push(format!("{} is kept in step by triggers: its rows are not counted", TableName::of(table).title()));
    }
    effects.extend(triggered(plan, follows, triggers));
    if !plan.redacts.is_empty() {
        effects.push(agreeing(plan.redacts.len(), "{#} private {value|values} of our audit trail{ is | are }redacted"));
    }
    let alike =
        "{#} more {spelling of the id is|spellings of the id are} the same person to the columns that name owners";
    effects.splice(0..0, (spellings > 0).then(|| agreeing(spellings, alike)));
    effects.splice(0..0, (people > 1).then_some(together));
    plan.effects = effects;
}

/// Messages about what triggers of the database do when the rows are deleted or changed, except triggers that keep a
/// table known to the layout in step.
fn triggered(plan: &PurgePlan, follows: &[TableKey], triggers: &[TableTrigger]) -> Vec<String> {
    let is_known =
        |trigger: &&TableTrigger| follows.iter().any(|table| trigger.text.contains(&*TableName::of(table).name));
    let words = |trigger: &TableTrigger| {
        let TableTrigger { name, table, .. } = trigger;
        format!("the {name} of {} runs: no count includes what it does to other rows", table.title())
    };
    plan.running(triggers).filter(|trigger| !is_known(trigger)).map(words).collect()
}

/// Adds messages about chains of episodes stored only as links. The links of a deleted episode are deleted, and the
/// child follows its strongest remaining link. No link replaces them, because a link says how similar two episodes are.
///
/// # Errors
/// The engine's refusal.
pub async fn chains(store: &Store, plan: &mut PurgePlan, graph: &Graph) -> Result<(), ChangeError> {
    let Ok(sources) = store.sources_of(Entity::Episode) else { return Ok(()) };
    for source in sources {
        let Some(taken) = graph.taken(&table_of(source)) else { continue };
        if source.column("parent_id").is_empty() || plain_column(source, "parent_id").is_some() {
            continue;
        }
        let first = |row: RawRow| as_text(row.first()?);
        let mut gone = IdSet::new(graph.pages());
        taken.rows(0..taken.len()).filter_map(first).for_each(|id| gone.insert(&id));
        let columns = ["id", "parent_id", Entity::Episode.time_column()];
        let mut stay = 0;
        for range in ranges(0..taken.len()) {
            let some: Vec<String> = taken.rows(range).filter_map(first).collect();
            match store.related_columns(Entity::Episode, "parent_id", &some, Some(&columns)).await {
                Err(error) if error.is_denied() => break,
                children => stay += children?.iter().filter(|child| !gone.contains(child.id())).count(),
            }
        }
        plan.effects.extend(counted(
            stay,
            &format!(
                "{}: {{#}} {{row follows|rows follow}} a row to be deleted; {{it \
                 follows|they follow}} the strongest of {{its other|their other}} links then, {{or begins|or begin}} a \
                 chain",
                table_of(source).title()
            ),
        ));
    }
    Ok(())
}

/// Returns the ids that several people of the database have, such as people of two tenants, with their number.
///
/// # Errors
/// The engine's refusal.
pub async fn namesakes(store: &Store, ids: &[String]) -> Result<BTreeMap<String, usize>, ChangeError> {
    // Several sources may each list the same person.
    if store.sources_of(Entity::Subject).map_or(0, |sources| sources.len()) != 1 {
        return Ok(BTreeMap::new());
    }
    let people = match store.related_columns(Entity::Subject, "id", ids, Some(&["id"])).await {
        Err(error) if error.is_denied() => return Ok(BTreeMap::new()),
        people => people?,
    };
    let mut named: BTreeMap<String, usize> = BTreeMap::new();
    people.iter().for_each(|person| *named.entry(person.id().to_owned()).or_default() += 1);
    named.retain(|id, several| *several > 1 && ids.contains(id));
    Ok(named)
}

/// Adds messages about what remains, and what cannot be determined.
///
/// # Errors
/// The engine's refusal.
pub async fn disclosures(
    snapshot: &mut Snapshot<'_>,
    plan: &mut PurgePlan,
    graph: &Graph,
    found: &ScanFindings,
) -> Result<(), ChangeError> {
    plan.particular.extend(counted(
        found.account,
        "the person's account with the application is kept ({#} {value of \
         it names|values of it name} the person): --account erase deletes it",
    ));
    plan.particular.extend(plan.old.hashes.iter().chain(&plan.old.vectors).cloned());
    let unknown = left(plan, found);
    for (place, rows) in &found.stuck {
        plan.particular.push(agreeing(
            *rows,
            &format!(
                "{place}: {{#}} {{reference to a row to be deleted|references to rows to be deleted}} cannot be \
             removed"
            ),
        ));
    }
    for (place, values) in &found.parts {
        plan.particular.push(agreeing(
            *values,
            &format!(
                "{place}: {{#}} {{value has|values have}} the id of a row to be deleted within a longer id, and \
             {{is left|are left}}"
            ),
        ));
    }
    for (place, hits) in &found.ours {
        plan.particular.push(agreeing(
            *hits,
            &format!(
                "{place} of our own tables names the person {{#}} {{time|times}} \
         and is not changed, because the audit trail would break"
            ),
        ));
    }
    for (kind, _) in plan.control.iter().filter(|(_, hits)| *hits == 0) {
        plan.notes
            .push(format!("a handle of the kind {kind} was not found anywhere: its absence afterwards proves nothing"));
    }
    plan.notes.extend(snapshot.store.recognised().erasure.elsewhere.iter().cloned());
    plan.particular.extend(plan.subject.not_looked_for());
    plan.notes.extend(plan.subject.untold());
    for handle in plan.subject.searched() {
        if let Some(why) = &handle.common {
            let place = if handle.is_shared() {
                "is a possible mention wherever it occurs"
            } else {
                "is certain only in columns that name people; in a text it is a possible mention"
            };
            plan.notes.push(format!("a handle of the kind {} {place}: {why}", handle.kind));
        }
    }
    for object in &found.structure {
        plan.particular.push(format!("{object}: names and rules of the database's structure are not changed"));
    }
    plan.particular.extend(found.unread_words());
    let known = known_tables(snapshot.store);
    for (table, taken) in graph.tables.iter().filter(|(table, taken)| !known.contains(*table) && !taken.is_empty()) {
        plan.notes.push(agreeing(
            taken.len(),
            &format!(
                "the table {} is outside the layout: {{#}} {{row is|rows are}} deleted with what {{it refers|they \
                 refer}} to, whoever wrote {{it|them}}",
                table.title()
            ),
        ));
    }
    let uncovered = snapshot.store.uncovered().iter();
    plan.notes.extend(uncovered.map(|store| format!("{}: {}", store.reason, store.remedy)));
    let silent = strangers(snapshot, graph).into_iter().filter(|(table, _)| !unknown.contains(table));
    plan.silent.extend(silent);
    for (table, reason) in &graph.relations.unread {
        let title = table.title();
        plan.particular.push(format!("{title}: {reason}; the erasure cannot end as verified from here"));
    }
    for (table, reason) in &graph.relations.elsewhere {
        plan.particular.push(format!("{} is not searched: {reason}", table.title()));
    }
    for view in &graph.relations.copies {
        plan.particular.push(format!("the materialised view {} keeps copies until it is refreshed", view.title()));
    }
    let of_several = shared::told(snapshot, graph, &plan.subject.ids).await?;
    plan.shared = of_several.into_iter().map(|(_, words)| words).collect();
    plan.particular.extend(plan.shared.iter().cloned());
    unowned::disclose(snapshot, plan, graph).await
}

/// Adds messages about the mentions that stay, and why. Returns the tables outside the layout that have some.
fn left(plan: &mut PurgePlan, found: &ScanFindings) -> BTreeSet<String> {
    let mut outside: BTreeMap<String, usize> = BTreeMap::new();
    for (place, tally) in found.tally.iter().filter(|(_, tally)| tally.outside > 0) {
        let table = place.rsplit_once('.').map_or(place.as_str(), |(table, _)| table);
        *outside.entry(table.to_owned()).or_default() += tally.outside;
    }
    for (table, rows) in &outside {
        plan.particular.push(agreeing(
            *rows,
            &format!(
                "the table {table} is outside the layout and names the person in {{#}} {{value|values}}: left \
                 unchanged"
            ),
        ));
    }
    let PlaceTally { left, .. } = PlaceTally::all(found.tally.values());
    // A decision for all is about certain mentions only.
    let helps = |tally: &PlaceTally| tally.left > 0 && tally.certain > 0;
    let advice = if plan.options.mentions == Mentions::Leave && found.tally.values().any(helps) {
        "--mentions redact removes the words, --mention ID=redact those of one mention"
    } else {
        "--mention ID=redact removes the words of one mention"
    };
    plan.particular.extend(counted(
        left,
        &format!(
            "{{#}} {{value in|values in}} other people's {{rows names|rows name}} the person, or may, {{and is left|and \
             are left}}: {advice}"
        ),
    ));
    for (place, tally) in found.tally.iter().filter(|(_, tally)| tally.undone > 0) {
        let reason = plan
            .mentions
            .iter()
            .find(|m| !m.chosen && m.place() == *place)
            .and_then(|m| m.refusals.of(plan.options.mentions));
        plan.particular.push(agreeing(
            tally.undone,
            &format!(
                "{place}: {{#}} {{value names|values name}} the person \
             and {{stays,|stay,}} although another treatment was requested: {}; the erasure ends incomplete unless you \
             decide about {{it|them}} with --mention",
                reason.unwrap_or(
                    "it is not possible \
                 there"
                )
            ),
        ));
    }
    outside.into_keys().collect()
}

/// Tables outside the layout, with their columns that look personal.
pub fn strangers(snapshot: &Snapshot<'_>, graph: &Graph) -> Vec<(String, String)> {
    let known = known_tables(snapshot.store);
    let ours = crate::store::own::TABLES;
    let strange = graph.relations.tables.iter().filter(|t| !known.contains(*t) && !ours.contains(&t.name.as_str()));
    let personal = |table: &TableName| personal_columns(snapshot, table);
    let all = strange.map(|table| (table.title(), personal(table).join(", ")));
    all.filter(|(_, columns)| !columns.is_empty()).collect()
}

/// The columns of a table whose names look personal.
fn personal_columns(snapshot: &Snapshot<'_>, table: &TableName) -> Vec<String> {
    let found = snapshot.store.catalog().exactly(&table.schema, &table.name);
    let names = found.into_iter().flat_map(|t| &t.columns).map(|c| c.name.clone());
    names.filter(|name| looks_personal(name)).collect()
}

/// Whether a table may hold personal data: the layout includes it, or its columns look personal.
pub fn may_be_personal(snapshot: &Snapshot<'_>, table: &TableName) -> bool {
    known_tables(snapshot.store).contains(table) || !personal_columns(snapshot, table).is_empty()
}
