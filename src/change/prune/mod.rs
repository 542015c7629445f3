//! Prunes banks: the cases to delete by the rules, their dependents and references to them, in one plan.

mod choose;
pub(super) mod loosen;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use serde_json::{Map, Value, json};

use self::choose::{PruneChoice, PrunedBank};
use super::draft::{Draft, FULL};
use super::feedback::writable;
use super::operation::Pruning;
use super::plan::{ChangeDanger, Plan, SHOWN};
use super::reward::trail;
use super::{ChangeError, now, policy, remove};
use crate::layout::BoundSource;
use crate::memory::prune::banks::JudgedCase;
use crate::memory::prune::{PruneReason, PruneWindow, Rules, SUGGESTED_WINDOW};
use crate::memory::query::{PageStart, Query};
use crate::memory::{Entity, Row, time};
use crate::memory::{agreeing, counted, thousands};
use crate::recall::features::case_text;
use crate::store::Store;
use crate::store::beside::Hanging;
use crate::store::encode::{plain_column, table_of};
use crate::store::fetched::FetchedValue;
use crate::store::row_list::row_digest;
use crate::store::stored::{Cell, Image, Mutation, StoredRows};

/// Rows read at a time.
const PAGE: usize = 5_000;
/// Rows per query by id.
const ASKED: usize = 500;
/// The same if their prompts are read too.
const PROMPTS: usize = 50;
/// Most cases of one plan; the next one continues.
const MOST: usize = 20_000;
/// Most cases for which a prune stores undo data.
pub const UNDO_CASES: usize = 2_000;
/// Characters of a prompt that the plan shows.
const PROMPT: usize = 200;
/// Most banks that the plan lists individually.
const TOLD: usize = 20;

/// Plans a prune. A preview needs neither write access nor a trail; applying needs both. If there are very many cases,
/// or very many rows name them, one plan takes the first.
///
/// # Errors
/// [`ChangeError::Usage`] for a window that keeps nothing, [`ChangeError::NotFound`] for a user or agent without a
/// bank, [`ChangeError::Refused`] if cases cannot be written, [`ChangeError::Conflict`] if someone changed them
/// meanwhile.
pub async fn plan(store: &Store, ask: &Pruning) -> Result<Plan, ChangeError> {
    let rules = rules(ask)?;
    let source = case_source(store)?;
    let hanging = match plain_column(source, "id") {
        Some((id, _)) => store.shapes().dependents_of(source, id).await?,
        None => return Err(ChangeError::Refused("the layout does not say which column holds a case's id".to_owned())),
    };
    let mut choice = choose::choose(store, ask, &rules, &hanging).await?;
    choice.leave_repeated(store).await?;
    choice.leave_untold(store).await?;
    let mut aside = Vec::new();
    let mut some = choice.clone();
    loop {
        let draft = Draft::look(store, remove::PRUNE, ChangeDanger::Guarded).await?;
        let mut draft = if some.count() > 1 { draft.limited() } else { draft.limited_for_one() };
        if !some.banks.is_empty() {
            take(&mut draft, source, &hanging, &mut some).await?;
        }
        if !draft.is_full() {
            tell(&mut draft, (ask.window, &rules), &some);
            draft.disclosures.extend(aside);
            return Ok(draft.seal());
        }
        if some.count() > 1 {
            some.leave_half();
            continue;
        }
        // Only the case itself: the others are not affected.
        if let Some(case) = some.doomed().next() {
            remove::set_aside(&mut aside, Entity::Case, case)?;
            choice.set_aside(&BTreeSet::from([case.to_owned()]));
        }
        some.clone_from(&choice);
    }
}

/// Adds the deletion of the chosen cases to a plan, until it is full.
async fn take(
    draft: &mut Draft<'_>,
    source: &BoundSource,
    hanging: &[Hanging],
    choice: &mut PruneChoice,
) -> Result<(), ChangeError> {
    watch_windows(draft, &choice.banks).await?;
    let doomed: HashSet<&str> = choice.doomed().collect();
    loosen::references(draft, source, &doomed).await?;
    loosen::links(draft, &doomed).await?;
    if !draft.is_full() {
        remove_cases(draft, source, hanging, choice).await?;
    }
    if !draft.is_full() {
        note(draft, choice).await?;
    }
    Ok(())
}

/// The rules at the current time, from which ages count.
fn rules(ask: &Pruning) -> Result<Rules, ChangeError> {
    if let PruneWindow::Newest(window) = ask.window
        && !(1..=i64::from(i32::MAX)).contains(&window)
    {
        return Err(ChangeError::Usage(format!(
            "a window of {window} is a mistake: it would keep nothing; give 1 or more ({SUGGESTED_WINDOW} is usual)"
        )));
    }
    if let Some(reward) = ask.below_reward.filter(|reward| !(0.0..=1.0).contains(reward)) {
        return Err(ChangeError::Usage(format!("a reward is a number from 0 to 1, not {reward}")));
    }
    let now = chrono::Utc::now();
    let moment = |text: &String| {
        let words = "give an age such as 90d or 12h, or a time such as 2026-02-04";
        let moment =
            time::parse_moment(text, now).ok_or_else(|| ChangeError::Usage(format!("--older-than {text}: {words}")))?;
        if Some(&moment) >= time::spell_utc(now).as_ref() {
            let mistake = "is a mistake: every case is older than that";
            return Err(ChangeError::Usage(format!("--older-than {text} {mistake}; {words}")));
        }
        Ok(moment)
    };
    let rules = Rules {
        older_than: ask.older_than.as_ref().map(moment).transpose()?,
        below_reward: ask.below_reward,
        duplicates: ask.duplicates,
        keep_diverse: ask.keep_diverse,
    };
    if rules.keep_diverse && ask.window == PruneWindow::Unsaid && rules.names_one() {
        return Err(ChangeError::Usage(
            "--keep-diverse fills a window, and the other rules have no window: name one by --window N or --window own"
                .to_owned(),
        ));
    }
    Ok(rules)
}

/// Finds the source that holds the cases, and checks that it is writable.
pub(super) fn case_source(store: &Store) -> Result<&BoundSource, ChangeError> {
    let sources = store.sources_of(Entity::Case)?;
    match &sources[..] {
        [source] => writable(source).map(|_| *source),
        _ => Err(ChangeError::Refused(
            "this database keeps cases in several tables, which `prune` does not support".to_owned(),
        )),
    }
}

/// Passes every row of an entity to `take`, page by page.
pub(super) async fn each(
    store: &Store,
    entity: Entity,
    columns: Vec<&'static str>,
    mut take: impl FnMut(Row),
) -> Result<(), ChangeError> {
    let mut query = Query { columns: Some(columns), limit: PAGE, ..Query::new(entity).in_parts() };
    loop {
        let page = store.page(&query).await?;
        page.rows.into_iter().for_each(&mut take);
        match page.next {
            Some(next) => query.start = PageStart::After(next),
            None => return Ok(()),
        }
    }
}

/// Reports counts by bank and rule, and facts to know.
fn tell(draft: &mut Draft<'_>, (window, rules): (PruneWindow, &Rules), choice: &PruneChoice) {
    let mut pruned: Vec<&PrunedBank> = choice.banks.iter().collect();
    pruned.sort_by_key(|bank| (std::cmp::Reverse(bank.goes.len()), bank.profile.as_deref()));
    let mut effects = Vec::new();
    for bank in pruned.iter().take(TOLD) {
        let mut by_rule: BTreeMap<PruneReason, usize> = BTreeMap::new();
        bank.goes.iter().for_each(|case| *by_rule.entry(case.why).or_default() += 1);
        let by_rule: Vec<String> =
            by_rule.iter().map(|(why, count)| format!("{} {}", thousands(*count), why.word())).collect();
        let (all, goes) = (bank.cases, bank.goes.len());
        effects.push(agreeing(
            goes,
            &format!(
                "{}: {{#}} of {} {{cases goes,|cases go,}} {} stay{} ({})",
                bank.title(),
                thousands(all),
                thousands(all - goes),
                if bank.left > 0 { " for now" } else { "" },
                by_rule.join(", ")
            ),
        ));
    }
    if let Some(rest) = pruned.get(TOLD..).filter(|rest| !rest.is_empty()) {
        let count: usize = rest.iter().map(|bank| bank.goes.len()).sum();
        effects.push(format!(
            "{}: {}",
            agreeing(rest.len(), "{#} more {bank|banks}"),
            agreeing(count, "{#} {case goes|cases go}")
        ));
    }
    draft.effects.splice(0..0, effects);
    draft.disclosures.extend(counted(
        choice.rest,
        "{#} more {case goes|cases go} by these rules: one plan takes as many as fit; run it again",
    ));
    draft.disclosures.extend(choice.mistaken(draft.store));
    let by_own = match window {
        PruneWindow::Newest(_) => false,
        PruneWindow::Own => true,
        PruneWindow::Unsaid => !rules.names_one(),
    };
    if choice.open > 0 && by_own {
        draft.disclosures.push(agreeing(
            choice.open,
            &format!(
                "{{#}} {{bank has|banks have}} no window: every case is kept there unless you give a window; \
                 {SUGGESTED_WINDOW} is suggested"
            ),
        ));
    }
    draft.disclosures.extend(choice.unchecked.clone());
    draft.disclosures.extend(counted(
        choice.held,
        "{#} {case stays: its person is|cases stay: their people are} under a legal hold",
    ));
    draft
        .disclosures
        .extend(counted(choice.unnamed, "{#} {case has|cases have} no id: {it stays as it is|they stay as they are}"));
    draft.disclosures.extend(counted(
        choice.quarantined,
        "{#} quarantined {case stays: it takes|cases stay: they take} no place in a window, and no other case is a \
             duplicate of {it|them}; `--older-than` and `--below-reward` remove {it|them}",
    ));
    if let Some(first) = choice.repeated.first() {
        draft.disclosures.push(agreeing(
            choice.repeated.len(),
            &format!("{{#}} {{case id is|case ids are}} on several rows, such as {first}: these rows stay"),
        ));
    }
    for bank in choice.untold.iter().take(TOLD) {
        draft.disclosures.push(agreeing(
            bank.goes.len() + bank.left,
            &format!(
                "{}: {{#}} {{case stays|cases stay}}, because the memory's own trail records whose bank is pruned, and nothing \
                 says that",
                bank.title()
            ),
        ));
    }
    if choice.untold.len() > TOLD {
        draft.disclosures.push(agreeing(choice.untold.len() - TOLD, "{#} more such {bank stays|banks stay}"));
    }
    draft.disclosures.extend(counted(choice.undated,
            "{#} {case has|cases have} no time that can be read: {its age is|their ages are} unknown, so {it stays and takes|they \
             stay and take} no place in a window",
        ));
    draft.disclosures.extend(counted(choice.unclear,
            "{#} {case stays: its message hash is|cases stay: their message hashes are} of no digest and {stands|stand} for \
             different prompts, so {it does|they do} not say what is a duplicate",
        ));
    draft.disclosures.extend(counted(
        choice.without_vector,
        "{#} {case has|cases have} no vector that could be read: {it counts|they count} as different",
    ));
    draft.disclosures.extend(counted(choice.uncompared,
            "{#} {case that stays was|cases that stay were} not compared with others: {its vector does|their vectors do} not \
             fit in memory",
        ));
    draft.facts.insert("banks".to_owned(), Value::from(pruned.len()));
}

/// A window changed meanwhile would select other cases.
async fn watch_windows(draft: &mut Draft<'_>, banks: &[PrunedBank]) -> Result<(), ChangeError> {
    let Ok(sources) = draft.store.sources_of(Entity::Profile) else { return Ok(()) };
    let of_pruned = banks.iter().filter_map(|bank| bank.profile.clone());
    let keys: Vec<Vec<FetchedValue>> = of_pruned.map(|id| vec![FetchedValue::Text(id)]).collect();
    for source in sources {
        if let (Some((id, _)), Some((window, _))) = (plain_column(source, "id"), plain_column(source, "window_size"))
            && !keys.is_empty()
        {
            let rows = StoredRows { table: table_of(source), by: vec![id.to_owned()], keys: keys.clone() };
            draft.watch_columns(rows, vec![id.to_owned(), window.to_owned()]).await?;
        }
    }
    Ok(())
}

/// Deletes the cases and their dependents, the latter first.
async fn remove_cases(
    draft: &mut Draft<'_>,
    source: &BoundSource,
    hanging: &[Hanging],
    choice: &PruneChoice,
) -> Result<(), ChangeError> {
    let Some((id, _)) = plain_column(source, "id") else { return Ok(()) };
    let keys: Vec<Vec<FetchedValue>> = choice.doomed().map(|case| vec![FetchedValue::Text(case.to_owned())]).collect();
    let follows = hanging.iter().any(|table| table.bound && table.referred);
    if keys.len() > UNDO_CASES {
        draft.undo_reason = Some(format!("it removes more than {UNDO_CASES} cases: too many to keep for an undo"));
    }
    let mut going = Vec::new();
    for table in hanging {
        let rows = drop_dependents(draft, table, &keys).await?.filter(|rows| !rows.keys.is_empty());
        // A vector deleted with its case needs no mention.
        if let Some(rows) = rows.as_ref().filter(|_| table.vector.is_none()) {
            draft.effects.push(remove::removed_along(rows));
        }
        going.extend(rows.map(|rows| (rows, table)));
        if draft.is_full() {
            return Ok(());
        }
        if !follows {
            for (rows, table) in going.drain(..) {
                draft.take_away(&rows, &watched_columns(table)).await?;
            }
        }
    }
    if !going.is_empty() {
        let going: Vec<StoredRows> = going.into_iter().map(|(rows, _)| rows).collect();
        remove::take_dependents(draft, &going).await?;
    }
    let rows = StoredRows { table: table_of(source), by: vec![id.to_owned()], keys };
    let looked_at = choice.columns.iter().filter(|column| **column != "id");
    let columns = looked_at.filter_map(|column| Some(plain_column(source, column)?.0.to_owned())).collect::<Vec<_>>();
    Ok(draft.take_away(&rows, &columns).await?)
}

/// Requires that no further rows refer to the deleted ones: a row added later would be left behind.
async fn rely_on_number(draft: &mut Draft<'_>, naming: &StoredRows) -> Result<(), ChangeError> {
    if !draft.only_looks() {
        let watch = draft.store.snapshot().await?.number(naming.clone()).await?;
        watch.into_iter().for_each(|watch| draft.rely(watch));
    }
    Ok(())
}

/// The columns of a dependent row that show whether it still depends on the case.
fn watched_columns(table: &Hanging) -> Vec<String> {
    table.key.iter().chain([&table.column]).cloned().collect()
}

/// Handles rows that depend on the cases: they are deleted if they make no sense alone or by their foreign key,
/// otherwise they lose the reference. Returns the deleted ones.
async fn drop_dependents(
    draft: &mut Draft<'_>,
    table: &Hanging,
    cases: &[Vec<FetchedValue>],
) -> Result<Option<StoredRows>, ChangeError> {
    if table.key.is_empty() {
        return Err(ChangeError::Refused(format!(
            "rows of {} depend on cases and have no key to change them by",
            table.table.title()
        )));
    }
    let columns = watched_columns(table);
    let key =
        |image: &Image| table.key.iter().filter_map(|column| image.get(column).cloned()).collect::<Vec<FetchedValue>>();
    let mut exact = StoredRows { table: table.table.clone(), by: table.key.clone(), keys: Vec::new() };
    let mut naming = StoredRows { table: table.table.clone(), by: vec![table.column.clone()], keys: Vec::new() };
    for cases in cases.chunks(ASKED) {
        let place = (&table.table, table.column.as_str());
        naming.keys.extend(draft.store.shapes().spelled(place, table.compared.clone(), cases).await?);
    }
    rely_on_number(draft, &naming).await?;
    for keys in naming.keys.chunks(ASKED) {
        let rows = StoredRows { keys: keys.to_vec(), ..naming.without_keys() };
        let room = draft.store.plan_room(FULL);
        let (mut found, is_broken_off) = match draft.store.shapes().images_within(&rows, &columns, room).await {
            Err(error) if error.is_denied() && draft.only_looks() => {
                let table = table.table.title();
                draft.disclosures.push(format!(
                    "rows of {table} that are deleted with the cases are not counted: you may not read \
                     it"
                ));
                return Ok(None);
            }
            found => found?,
        };
        if is_broken_off {
            draft.overfill();
            return Ok(None);
        }
        if table.compared.is_some() {
            // The column may treat other values as equal.
            let named: HashSet<[u64; 2]> = rows.keys.iter().map(|key| row_digest(key)).collect();
            let value = |image: &Image| image.get(&table.column).map(|value| row_digest(std::slice::from_ref(value)));
            found.retain(|image| value(image).is_some_and(|value| named.contains(&value)));
        }
        if table.bound {
            exact.keys.extend(found.iter().map(key));
        } else {
            for image in &found {
                let key = key(image);
                let rows = StoredRows { keys: vec![key.clone()], ..exact.without_keys() };
                draft.watched(rows, image, columns.clone());
                let key = table.key.iter().cloned().zip(key).collect();
                let set = vec![(table.column.clone(), Cell::Is(FetchedValue::Null))];
                draft.push(Mutation::Update { table: table.table.clone(), key, set });
            }
        }
        if draft.fills_with(&exact) {
            return Ok(None);
        }
    }
    Ok(Some(exact))
}

/// Reads the prompts of the first cases to delete.
async fn prompts(store: &Store, choice: &PruneChoice) -> Result<HashMap<String, String>, ChangeError> {
    let first: Vec<&str> = choice.doomed().take(SHOWN).collect();
    let rows = store.related_columns(Entity::Case, "id", &first, Some(&["id", "created_at", "prompt"])).await?;
    let text = |row: &Row| {
        let asked = case_text(row);
        (!asked.is_empty()).then(|| asked.chars().take(PROMPT).collect::<String>())
    };
    Ok(rows.iter().filter_map(|row| Some((row.id().to_owned(), text(row)?))).collect())
}

/// Records the deleted cases for people, and adds rows to the memory's own trail, one per bank. Rows watched by now are
/// read again: they must match the input of the rules.
async fn note(draft: &mut Draft<'_>, choice: &mut PruneChoice) -> Result<(), ChangeError> {
    let at = time::epoch_micros(&now()).unwrap_or_default() / 1_000;
    let mut prompts = prompts(draft.store, choice).await?;
    choice.read_owners(draft.store).await?;
    for bank in &choice.banks {
        note_cases(draft, bank, &choice.columns, &mut prompts).await?;
        let of_bank = bank.owner();
        let goes = bank.goes.len();
        let kept = bank.cases - goes;
        let window = bank.window.or(bank.bank.window);
        let payload = json!({"timestamp": at, "windowSize": window, "prunedCount": goes, "keptCount": kept});
        draft.trail.extend(trail(draft.store, "prune", &of_bank, &payload).await?);
        let undone = json!({"timestamp": at, "restoredCount": goes, "cause": "undo"});
        draft.undo_trail.extend(trail(draft.store, "record.case", &of_bank, &undone).await?);
    }
    let profiles: Vec<&str> = choice.banks.iter().filter_map(|bank| bank.profile.as_deref()).collect();
    policy::report_trained(draft, &profiles, "these banks").await?;
    Ok(())
}

async fn note_cases(
    draft: &mut Draft<'_>,
    bank: &PrunedBank,
    columns: &[&'static str],
    prompts: &mut HashMap<String, String>,
) -> Result<(), ChangeError> {
    let at_once = if columns.contains(&"prompt") { PROMPTS } else { ASKED };
    for going in bank.goes.chunks(at_once) {
        let ids: Vec<&str> = going.iter().map(|case| case.id.as_str()).collect();
        let rows = draft.store.related_columns(Entity::Case, "id", &ids, Some(columns)).await?;
        let rows: HashMap<&str, &Row> = rows.iter().map(|row| (row.id(), row)).collect();
        for case in going {
            let now = rows.get(case.id.as_str());
            let Some(row) = now.filter(|row| bank.bank.holds(row) && case.case.is_as(&JudgedCase::of(row))) else {
                return Err(ChangeError::Conflict {
                    message: "someone else changed cases while the rules were applied".to_owned(),
                    rows: vec![format!("case {}", case.id)],
                });
            };
            if !draft.wants_more() {
                draft.count(1);
                continue;
            }
            let mut before = Map::new();
            before.insert("profile_id".to_owned(), json!(bank.named()));
            before.insert("user_id".to_owned(), json!(bank.user));
            before.insert("agent_id".to_owned(), json!(bank.agent));
            for column in ["created_at", "reward", "message_hash"] {
                before.insert(column.to_owned(), row.get(column).clone());
            }
            before.insert("why".to_owned(), Value::from(case.why.word()));
            if let Some(prompt) = prompts.remove(&case.id) {
                before.insert("prompt".to_owned(), Value::from(prompt));
            }
            draft.note(Entity::Case, &case.id, Value::Object(before), Value::Null);
        }
    }
    Ok(())
}
