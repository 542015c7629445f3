//! Pruning banks: which cases go by the rules, what hangs on them and what names them, in one plan.

pub(super) mod loosen;

use std::collections::{BTreeMap, HashMap, HashSet};

use serde_json::{Map, Value, json};

use super::draft::Draft;
use super::feedback::writable;
use super::operation::Pruning;
use super::plan::{ChangeDanger, Plan, SHOWN};
use super::reward::trail;
use super::{ChangeError, now};
use crate::layout::BoundSource;
use crate::memory::agreeing;
use crate::memory::prune::{Candidate, PruneReason, PruneWindow, Rules, SUGGESTED_WINDOW, judge, newest_first};
use crate::memory::query::{PageStart, Query};
use crate::memory::{Entity, Row, time};
use crate::store::Store;
use crate::store::beside::Hanging;
use crate::store::encode::{plain_column, table_of};
use crate::store::fetched::FetchedValue;
use crate::store::stored::{Cell, Image, Mutation, StoredRows};

/// Rows read at a time.
const PAGE: usize = 5_000;
/// Cases up to which a prune keeps what an undo needs.
pub const UNDO_CASES: usize = 2_000;
/// Characters of stored rows up to which it does.
pub const UNDO_SIZE: usize = 64 << 20;
/// Characters of a prompt that the plan shows.
const PROMPT: usize = 200;
/// Banks that the plan tells of one by one.
const TOLD: usize = 20;

/// The cases of one user and agent.
#[derive(Debug, Default)]
struct PrunedBank {
    /// Id of the profile, where there is one.
    profile: Option<String>,
    user: Option<String>,
    agent: Option<String>,
    /// Window of this bank itself, as stored.
    window: Option<i64>,
    cases: Vec<Candidate>,
    /// Cases whose likeness was asked for and cannot be told.
    without_vector: usize,
    /// Verdict on each case, in order: the reason to prune it; `None` when it stays.
    verdicts: Vec<Option<PruneReason>>,
}

impl PrunedBank {
    /// The bank for people, without saying whose it is.
    fn title(&self) -> String {
        let agent = self.agent.as_deref().unwrap_or("no agent");
        match &self.profile {
            Some(profile) => format!("bank {profile} ({agent})"),
            None => format!("cases without a bank ({agent})"),
        }
    }

    fn doomed(&self) -> impl Iterator<Item = (&Candidate, PruneReason)> {
        self.cases.iter().zip(&self.verdicts).filter_map(|(case, verdict)| Some((case, (*verdict)?)))
    }

    fn count(&self) -> usize {
        self.verdicts.iter().flatten().count()
    }
}

/// Plans a prune. Looking needs no right to write and no trail; applying asks for both.
///
/// # Errors
/// [`ChangeError::Usage`] for a window that keeps nothing, [`ChangeError::NotFound`] for a user or agent without a bank,
/// [`ChangeError::Refused`] where cases cannot be written.
pub async fn plan(store: &Store, ask: &Pruning) -> Result<Plan, ChangeError> {
    let rules = rules(ask)?;
    let mut draft = Draft::look(store, "prune", ChangeDanger::Guarded).await?;
    let source = case_source(store)?;
    let mut banks = banks(store, ask).await?;
    let hanging = match plain_column(source, "id") {
        Some((id, _)) => store.shapes().hanging_on(source, id).await?,
        None => return Err(ChangeError::Refused("the layout does not say which column is a case's id".to_owned())),
    };
    for bank in &mut banks {
        decide(&mut draft, (ask.window, &rules), bank, &hanging).await?;
    }
    tell(&mut draft, (ask.window, &rules), &banks);
    let doomed: HashSet<&str> = banks.iter().flat_map(PrunedBank::doomed).map(|(case, _)| case.id.as_str()).collect();
    if doomed.is_empty() {
        return Ok(draft.seal());
    }
    watch_windows(&mut draft, &banks).await?;
    loosen::references(&mut draft, source, &doomed).await?;
    loosen::links(&mut draft, &doomed).await?;
    remove(&mut draft, source, &hanging, &banks).await?;
    note(&mut draft, &banks).await?;
    Ok(draft.seal())
}

/// The rules as they hold now; ages count from now.
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
    let moment = |text: &String| {
        let moment = time::parse_moment(text, chrono::Utc::now());
        moment.ok_or_else(|| {
            let words = "give an age such as 90d or 12h, or a time such as 2026-02-04";
            ChangeError::Usage(format!("--older-than {text}: {words}"))
        })
    };
    Ok(Rules {
        older_than: ask.older_than.as_ref().map(moment).transpose()?,
        below_reward: ask.below_reward,
        duplicates: ask.duplicates,
        keep_diverse: ask.keep_diverse,
    })
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

/// Every bank that was asked for, its cases newest first.
async fn banks(store: &Store, ask: &Pruning) -> Result<Vec<PrunedBank>, ChangeError> {
    let mut banks: BTreeMap<String, PrunedBank> = BTreeMap::new();
    let wanted = |row: &Row| {
        let fits = |column: &str, asked: &Option<String>| asked.as_deref().is_none_or(|a| row.text(column) == Some(a));
        fits("user_id", &ask.user) && fits("agent_id", &ask.agent)
    };
    let owned = |row: &Row, column: &str| row.text(column).map(str::to_owned);
    if store.sources_of(Entity::Profile).is_ok() {
        let columns = vec!["id", "user_id", "agent_id", "window_size"];
        each(store, Entity::Profile, columns, |row| {
            if wanted(&row) {
                let bank = PrunedBank {
                    profile: Some(row.id().to_owned()),
                    user: owned(&row, "user_id"),
                    agent: owned(&row, "agent_id"),
                    window: row.get("window_size").as_i64(),
                    ..PrunedBank::default()
                };
                banks.insert(row.id().to_owned(), bank);
            }
        })
        .await?;
    }
    let columns = vec!["id", "profile_id", "user_id", "agent_id", "created_at", "reward", "message_hash"];
    each(store, Entity::Case, columns, |row| {
        let case = Candidate {
            id: row.id().to_owned(),
            created_at: owned(&row, "created_at"),
            reward: row.number("reward"),
            hash: owned(&row, "message_hash"),
            vector: None,
        };
        if let Some(bank) = row.text("profile_id").and_then(|profile| banks.get_mut(profile)) {
            bank.cases.push(case);
        } else if wanted(&row) {
            // Cases whose profile is gone, or that never had one.
            let key = format!("\u{0}{}\u{0}{}", row.get("user_id"), row.get("agent_id"));
            let bank = banks.entry(key).or_default();
            (bank.user, bank.agent) = (owned(&row, "user_id"), owned(&row, "agent_id"));
            bank.cases.push(case);
        }
    })
    .await?;
    if banks.is_empty() && (ask.user.is_some() || ask.agent.is_some()) {
        let of = |what: &str, name: &Option<String>| name.as_ref().map(|name| format!("{what} {name}"));
        let of: Vec<String> = [of("user", &ask.user), of("agent", &ask.agent)].into_iter().flatten().collect();
        return Err(ChangeError::NotFound(format!("there is no bank of {} in {}", of.join(" and "), store.location())));
    }
    let mut banks: Vec<PrunedBank> = banks.into_values().collect();
    banks.iter_mut().for_each(|bank| bank.cases.sort_by(newest_first));
    Ok(banks)
}

/// Hands every row of an entity to `take`, page by page.
pub(super) async fn each(
    store: &Store,
    entity: Entity,
    columns: Vec<&'static str>,
    mut take: impl FnMut(Row),
) -> Result<(), ChangeError> {
    let mut query = Query { columns: Some(columns), limit: PAGE, ..Query::new(entity) }.in_parts();
    loop {
        let page = store.page(&query).await?;
        page.rows.into_iter().for_each(&mut take);
        match page.next {
            Some(next) => query.start = PageStart::After(next),
            None => return Ok(()),
        }
    }
}

async fn decide(
    draft: &mut Draft<'_>,
    (window, rules): (PruneWindow, &Rules),
    bank: &mut PrunedBank,
    hanging: &[Hanging],
) -> Result<(), ChangeError> {
    let window = match window.of(bank.window, rules) {
        Some(window) if window < 1 => {
            draft.disclosures.push(format!(
                "{}: its window of {window} is a mistake and was passed over; `{}` fixes it",
                bank.title(),
                draft.store.invocation().about(
                    &["profile", "set"],
                    &[bank.profile.as_deref().unwrap_or_default()],
                    &["--window", &SUGGESTED_WINDOW.to_string(), "--apply"]
                )
            ));
            None
        }
        window => window.and_then(|window| usize::try_from(window).ok()),
    };
    if rules.keep_diverse && window.is_some_and(|window| window < bank.cases.len()) {
        let ids: Vec<String> = bank.cases.iter().map(|case| case.id.clone()).collect();
        let mut vectors = HashMap::new();
        for table in hanging {
            vectors.extend(draft.store.shapes().vectors_beside(table, &ids).await?);
        }
        bank.cases.iter_mut().for_each(|case| case.vector = vectors.remove(&case.id));
        bank.without_vector = bank.cases.iter().filter(|case| case.vector.is_none()).count();
    }
    bank.verdicts = judge(&bank.cases, window, rules);
    bank.cases.iter_mut().for_each(|case| case.vector = None);
    Ok(())
}

/// Counts by bank and rule, and what should be known.
fn tell(draft: &mut Draft<'_>, (window, rules): (PruneWindow, &Rules), banks: &[PrunedBank]) {
    let mut pruned: Vec<&PrunedBank> = banks.iter().filter(|bank| bank.count() > 0).collect();
    pruned.sort_by_key(|bank| std::cmp::Reverse(bank.count()));
    for bank in pruned.iter().take(TOLD) {
        let mut by_rule: BTreeMap<PruneReason, usize> = BTreeMap::new();
        bank.doomed().for_each(|(_, why)| *by_rule.entry(why).or_default() += 1);
        let by_rule: Vec<String> = by_rule.iter().map(|(why, count)| format!("{count} {}", why.word())).collect();
        let (all, goes) = (bank.cases.len(), bank.count());
        draft.effects.push(agreeing(
            goes,
            &format!(
                "{}: {{#}} of {all} {{cases goes,|cases go,}} {} stay ({})",
                bank.title(),
                all - goes,
                by_rule.join(", ")
            ),
        ));
    }
    if let Some(rest) = pruned.get(TOLD..).filter(|rest| !rest.is_empty()) {
        let count: usize = rest.iter().map(|bank| bank.count()).sum();
        draft.effects.push(format!(
            "{}: {}",
            agreeing(rest.len(), "{#} more {bank|banks}"),
            agreeing(count, "{#} {case goes|cases go}")
        ));
    }
    let by_own = match window {
        PruneWindow::Newest(_) => false,
        PruneWindow::Own => true,
        PruneWindow::Unsaid => !rules.names_one(),
    };
    let open = banks.iter().filter(|bank| bank.window.is_none() && bank.profile.is_some()).count();
    if open > 0 && by_own {
        draft.disclosures.push(agreeing(
            open,
            &format!(
                "{{#}} {{bank has|banks have}} no window of {{its|their}} own: every case is kept there unless a window is \
                 given; {SUGGESTED_WINDOW} is suggested"
            ),
        ));
    }
    let without: usize = banks.iter().map(|bank| bank.without_vector).sum();
    if without > 0 {
        draft.disclosures.push(agreeing(
            without,
            "{#} {case has|cases have} no vector that could be read: {it counts|they count} as different",
        ));
    }
    draft.facts.insert("banks".to_owned(), Value::from(pruned.len()));
}

/// A window that was changed meanwhile would mean other cases.
async fn watch_windows(draft: &mut Draft<'_>, banks: &[PrunedBank]) -> Result<(), ChangeError> {
    let Ok(sources) = draft.store.sources_of(Entity::Profile) else { return Ok(()) };
    let of_pruned = banks.iter().filter(|bank| bank.count() > 0).filter_map(|bank| bank.profile.clone());
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

/// The cases and what hangs on them, the latter first.
async fn remove(
    draft: &mut Draft<'_>,
    source: &BoundSource,
    hanging: &[Hanging],
    banks: &[PrunedBank],
) -> Result<(), ChangeError> {
    let Some((id, _)) = plain_column(source, "id") else { return Ok(()) };
    let keys: Vec<Vec<FetchedValue>> =
        banks.iter().flat_map(PrunedBank::doomed).map(|(case, _)| vec![FetchedValue::Text(case.id.clone())]).collect();
    let few = keys.len() <= UNDO_CASES;
    if !few {
        draft.undo_reason = Some(format!("it takes more than {UNDO_CASES} cases away: too much to keep for an undo"));
    }
    let mut size = 0;
    for table in hanging {
        let rows = StoredRows { table: table.table.clone(), by: vec![table.column.clone()], keys: keys.clone() };
        size += drop_hanging(draft, table, rows, few).await?;
    }
    let rows = StoredRows { table: table_of(source), by: vec![id.to_owned()], keys };
    if few {
        size += draft.watch(rows.clone()).await?.iter().map(weight).sum::<usize>();
    } else {
        // What the rules went by.
        let columns = ["profile_id", "created_at", "reward", "message_hash"];
        let columns = columns.iter().filter_map(|column| Some(plain_column(source, column)?.0.to_owned())).collect();
        draft.watch_columns(rows.clone(), columns).await?;
    }
    if size > UNDO_SIZE {
        draft.undo_reason = Some(format!("its rows are {} MB: too much to keep for an undo", size >> 20));
    }
    draft.push(Mutation::Delete(rows));
    Ok(())
}

/// Rows that hang on the cases: they go where they make no sense alone, else they lose their pointer. Gives how much
/// was read.
async fn drop_hanging(
    draft: &mut Draft<'_>,
    table: &Hanging,
    rows: StoredRows,
    few: bool,
) -> Result<usize, ChangeError> {
    if table.key.is_empty() {
        return Err(ChangeError::Refused(format!(
            "rows of {} hang on cases and have no key by which they could be changed",
            table.table.title()
        )));
    }
    let mut columns = table.key.clone();
    columns.push(table.column.clone());
    let found = match draft.store.shapes().images_of(&rows, &columns).await {
        Err(error) if error.is_denied() && draft.only_looks() => {
            let table = table.table.title();
            draft
                .disclosures
                .push(format!("rows of {table} that go with the cases are not counted: you may not read it"));
            return Ok(0);
        }
        found => found?,
    };
    let key =
        |image: &Image| table.key.iter().filter_map(|column| image.get(column).cloned()).collect::<Vec<FetchedValue>>();
    if found.is_empty() {
        return Ok(0);
    }
    let exact = StoredRows { table: table.table.clone(), by: table.key.clone(), keys: found.iter().map(key).collect() };
    let images =
        if few { draft.watch(exact.clone()).await? } else { draft.watch_columns(exact.clone(), columns).await? };
    if table.bound {
        draft.push(Mutation::Delete(exact));
    } else {
        for image in &images {
            let key: Vec<(String, FetchedValue)> = table.key.iter().cloned().zip(key(image)).collect();
            let (by, values) = key.iter().cloned().unzip();
            draft.watched(StoredRows { table: table.table.clone(), by, keys: vec![values] }, image);
            let set = vec![(table.column.clone(), Cell::Is(FetchedValue::Null))];
            draft.push(Mutation::Update { table: table.table.clone(), key, set });
        }
    }
    Ok(images.iter().map(weight).sum())
}

fn weight(image: &Image) -> usize {
    let size = |raw: &FetchedValue| match raw {
        FetchedValue::Text(text) => text.len(),
        FetchedValue::BadText(bytes) | FetchedValue::Bytes(bytes) => 2 * bytes.len(),
        FetchedValue::Null | FetchedValue::Integer(_) | FetchedValue::Real(_) => 8,
    };
    image.0.iter().map(|(_, raw)| size(raw)).sum()
}

/// The cases that go, for people, and rows for the memory's own trail: one a bank.
/// What the first cases that go were about, for people.
async fn prompts(store: &Store, banks: &[PrunedBank]) -> Result<HashMap<String, String>, ChangeError> {
    let first: Vec<String> =
        banks.iter().flat_map(PrunedBank::doomed).take(SHOWN).map(|(case, _)| case.id.clone()).collect();
    let rows = store.related(Entity::Case, "id", &first).await?;
    let text = |row: &Row| match row.get("prompt") {
        Value::Null => None,
        Value::String(text) => Some(text.chars().take(PROMPT).collect()),
        other => Some(other.to_string().chars().take(PROMPT).collect()),
    };
    Ok(rows.iter().filter_map(|row| Some((row.id().to_owned(), text(row)?))).collect())
}

async fn note(draft: &mut Draft<'_>, banks: &[PrunedBank]) -> Result<(), ChangeError> {
    let at = time::epoch_micros(&now()).unwrap_or_default() / 1_000;
    let mut policies = 0;
    let mut prompts = prompts(draft.store, banks).await?;
    for bank in banks.iter().filter(|bank| bank.count() > 0) {
        for (case, why) in bank.doomed() {
            let mut before = Map::new();
            before.insert("profile_id".to_owned(), json!(bank.profile));
            before.insert("user_id".to_owned(), json!(bank.user));
            before.insert("agent_id".to_owned(), json!(bank.agent));
            before.insert("created_at".to_owned(), json!(case.created_at));
            before.insert("reward".to_owned(), json!(case.reward));
            before.insert("message_hash".to_owned(), json!(case.hash));
            before.insert("why".to_owned(), Value::from(why.word()));
            if let Some(prompt) = prompts.remove(&case.id) {
                before.insert("prompt".to_owned(), Value::from(prompt));
            }
            draft.note(Entity::Case, &case.id, Value::Object(before), Value::Null);
        }
        let mut of_bank = Row::empty(Entity::Case);
        of_bank.set("user_id", json!(bank.user));
        of_bank.set("agent_id", json!(bank.agent));
        let kept = bank.cases.len() - bank.count();
        let payload =
            json!({"timestamp": at, "windowSize": bank.window, "prunedCount": bank.count(), "keptCount": kept});
        draft.trail.extend(trail(draft.store, "prune", &of_bank, &payload).await?);
        let undone = json!({"timestamp": at, "restoredCount": bank.count(), "cause": "undo"});
        draft.undo_trail.extend(trail(draft.store, "record.case", &of_bank, &undone).await?);
        if let Some(profile) = &bank.profile {
            policies += draft.store.related(Entity::Policy, "profile_id", std::slice::from_ref(profile)).await?.len();
        }
    }
    if policies > 0 {
        draft.effects.push(agreeing(
            policies,
            "{#} policy {version|versions} of these banks {was trained|were trained} before this change",
        ));
    }
    Ok(())
}
