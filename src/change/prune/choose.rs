//! Choice of the cases that a prune removes: banks are read in order, and the rules judge one after the other.

use std::collections::{BTreeSet, HashMap, HashSet};

use serde_json::{Value, json};

use super::{ASKED, MOST, TOLD, each};
use crate::change::ChangeError;
use crate::change::held::HeldRows;
use crate::change::operation::Pruning;
use crate::change::reward::trail;
use crate::memory::agreeing;
use crate::memory::digest::digest;
use crate::memory::prune::banks::{BankStream, JudgedCase, PruneBanks, SortedBank, SortedBanks};
use crate::memory::prune::verdicts::BankVerdicts;
use crate::memory::prune::{PruneReason, Rules, SUGGESTED_WINDOW};
use crate::memory::{Entity, Row};
use crate::store::beside::Hanging;
use crate::store::scratch::scratch;
use crate::store::{Store, StoreError};

/// Cases whose vectors are read at a time.
const VECTORS: usize = 400;

/// A case to delete.
#[derive(Debug, Clone)]
pub struct GoingCase {
    /// Id of the case.
    pub id: String,
    /// Reason for deleting it.
    pub why: PruneReason,
    /// Reading of the case that the rules saw.
    pub case: JudgedCase,
}

/// A bank with cases to delete.
#[derive(Debug, Clone)]
pub struct PrunedBank {
    /// The bank.
    pub bank: SortedBank,
    /// Id of the profile, if there is one.
    pub profile: Option<String>,
    /// Id of a missing profile that its cases name, once owners were read.
    pub missing: Option<String>,
    /// User of the bank, once owners were read.
    pub user: Option<String>,
    /// Agent of the bank, once owners were read.
    pub agent: Option<String>,
    /// Number of newest cases that it keeps, by its own window or the given one; `None` if other rules select.
    pub window: Option<i64>,
    /// Number of cases of the bank.
    pub cases: usize,
    /// Further cases of the bank to delete, left to a later plan.
    pub left: usize,
    /// The cases to delete, newest first.
    pub goes: Vec<GoingCase>,
}

impl PrunedBank {
    /// The bank for people, without saying who owns it.
    pub fn title(&self) -> String {
        match &self.missing {
            Some(missing) => format!("bank {missing}, which has no row of its own"),
            None => title(self.profile.as_deref(), self.agent.as_deref()),
        }
    }

    /// A row with the owner of the bank.
    pub fn owner(&self) -> Row {
        Row::with(Entity::Case, [("user_id", json!(self.user)), ("agent_id", json!(self.agent))])
    }

    /// Id of the profile that its cases name.
    pub fn named(&self) -> Option<&str> {
        self.profile.as_deref().or(self.missing.as_deref())
    }
}

fn title(profile: Option<&str>, agent: Option<&str>) -> String {
    let agent = agent.unwrap_or("no agent");
    match profile {
        Some(profile) => format!("bank {profile} ({agent})"),
        None => format!("cases without a bank ({agent})"),
    }
}

/// The cases to delete, and facts found on the way.
#[derive(Debug, Clone, Default)]
pub struct PruneChoice {
    /// Banks with cases to delete.
    pub banks: Vec<PrunedBank>,
    /// Further cases to delete, left to a later plan.
    pub rest: usize,
    /// Banks with no window of their own.
    pub open: usize,
    /// Cases that cannot be deleted because they have no id.
    pub unnamed: usize,
    /// Cases of people under a legal hold: they stay.
    pub held: usize,
    /// Reason why holds could not be checked.
    pub unchecked: Option<String>,
    /// Cases that should be compared but have no usable vector.
    pub without_vector: usize,
    /// Cases that stay and that others were not compared with.
    pub uncompared: usize,
    /// Cases that stay because their age is unknown.
    pub undated: usize,
    /// Cases that stay because others with their message hash have another prompt.
    pub unclear: usize,
    /// Cases that stay because they are hidden from recall.
    pub quarantined: usize,
    /// Ids of cases that stay because several rows share them.
    pub repeated: BTreeSet<String>,
    /// Banks that stay because their owner is unknown, which the application's own trail requires.
    pub untold: Vec<PrunedBank>,
    /// Columns of a case that the rules used.
    pub columns: Vec<&'static str>,
    /// Profiles with an invalid window: the first ones, and their number.
    zero: Vec<Row>,
    zeros: usize,
}

impl PruneChoice {
    /// Ids of the cases to delete.
    pub fn doomed(&self) -> impl Iterator<Item = &str> {
        self.banks.iter().flat_map(|bank| &bank.goes).map(|case| case.id.as_str())
    }

    /// Number of the cases to delete.
    pub fn count(&self) -> usize {
        self.banks.iter().map(|bank| bank.goes.len()).sum()
    }

    /// Leaves half of the cases to a later plan, of a bank the newest: the verdict on them does not change when older
    /// ones are deleted.
    pub fn leave_half(&mut self) {
        let all = self.count();
        let mut room = all / 2;
        for bank in &mut self.banks {
            let left = bank.goes.len().saturating_sub(room);
            bank.goes.drain(..left);
            bank.left += left;
            room -= bank.goes.len();
        }
        self.banks.retain(|bank| !bank.goes.is_empty());
        self.rest += all - self.count();
    }

    /// Lets some cases stay.
    pub fn set_aside(&mut self, cases: &BTreeSet<String>) {
        for bank in &mut self.banks {
            let all = bank.goes.len();
            bank.goes.retain(|goes| !cases.contains(&goes.id));
            bank.left += all - bank.goes.len();
        }
        self.banks.retain(|bank| !bank.goes.is_empty());
    }

    /// Keeps cases whose id several rows share, since it is unclear which of them the rules mean.
    pub async fn leave_repeated(&mut self, store: &Store) -> Result<(), ChangeError> {
        let ids: Vec<&str> = self.doomed().collect();
        let (mut once, mut repeated) = (HashSet::new(), BTreeSet::new());
        for ids in ids.chunks(ASKED) {
            for row in store.related_columns(Entity::Case, "id", ids, Some(&["id", "created_at"])).await? {
                if !once.insert(digest(row.id())) {
                    repeated.insert(row.id().to_owned());
                }
            }
        }
        self.set_aside(&repeated);
        self.repeated = repeated;
        Ok(())
    }

    /// Keeps banks whose pruning the application's own trail cannot record: it requires a user or agent, and the bank's
    /// owner is unknown.
    pub async fn leave_untold(&mut self, store: &Store) -> Result<(), ChangeError> {
        self.read_owners(store).await?;
        for bank in std::mem::take(&mut self.banks) {
            match trail(store, "prune", &bank.owner(), &Value::Null).await {
                Err(StoreError::CannotHold(_)) => {
                    self.rest -= bank.left;
                    self.untold.push(bank);
                }
                taken => {
                    taken?;
                    self.banks.push(bank);
                }
            }
        }
        Ok(())
    }

    /// Reports invalid windows.
    pub fn mistaken(&self, store: &Store) -> Vec<String> {
        let set = |profile: &str| {
            let window = SUGGESTED_WINDOW.to_string();
            store.invocation().about(&["profile", "set"], &[profile], &["--window", &window, "--apply"])
        };
        let told = |row: &Row| {
            format!(
                "{}: its window of {} is a mistake and was skipped; `{}` fixes it",
                title(Some(row.id()), row.text("agent_id")),
                row.get("window_size"),
                set(row.id())
            )
        };
        let mut told: Vec<String> = self.zero.iter().map(told).collect();
        if self.zeros > told.len() {
            told.push(agreeing(
                self.zeros - told.len(),
                "{#} more {bank has a window|banks have windows} of 0 or less: skipped",
            ));
        }
        told
    }

    /// Reads the owners of the banks.
    pub async fn read_owners(&mut self, store: &Store) -> Result<(), ChangeError> {
        let (banked, alone): (Vec<&mut PrunedBank>, Vec<&mut PrunedBank>) =
            self.banks.iter_mut().partition(|bank| bank.profile.is_some());
        read_owners_from(store, Entity::Profile, banked).await?;
        read_owners_from(store, Entity::Case, alone).await
    }
}

/// Reads owners from the banks' profiles, whose windows must not have changed, or otherwise from a case of each.
async fn read_owners_from(store: &Store, entity: Entity, mut banks: Vec<&mut PrunedBank>) -> Result<(), ChangeError> {
    let mut columns = vec!["id", "user_id", "agent_id", entity.time_column()];
    let further = ["window_size", "profile_id"].into_iter().filter_map(|name| entity.column(name));
    columns.extend(further.map(|column| column.name));
    let of = |bank: &PrunedBank| match &bank.profile {
        Some(profile) => profile.clone(),
        None => bank.goes.first().map(|case| case.id.clone()).unwrap_or_default(),
    };
    for banks in banks.chunks_mut(ASKED) {
        let ids: Vec<String> = banks.iter().map(|bank| of(bank)).collect();
        let rows = store.related_columns(entity, "id", &ids, Some(&columns)).await?;
        let rows: HashMap<&str, &Row> = rows.iter().map(|row| (row.id(), row)).collect();
        for (bank, id) in banks.iter_mut().zip(&ids) {
            let is_as_seen =
                |row: &&&Row| entity == Entity::Case || row.get("window_size").as_i64() == bank.bank.window;
            let Some(row) = rows.get(id.as_str()).filter(is_as_seen) else {
                return Err(ChangeError::Conflict {
                    message: "someone else changed a bank while the rules were applied".to_owned(),
                    rows: vec![format!("{} {id}", entity.title())],
                });
            };
            let owned = |column: &str| row.text(column).map(str::to_owned);
            (bank.user, bank.agent) = (owned("user_id"), owned("agent_id"));
            bank.missing = owned("profile_id").filter(|id| !id.is_empty());
        }
    }
    Ok(())
}

/// Columns of a case that the rules use.
fn columns(rules: &Rules) -> Vec<&'static str> {
    let mut columns =
        vec!["id", "profile_id", "user_id", "agent_id", "created_at", "reward", "message_hash", "quarantined"];
    columns.extend(rules.duplicates.then_some("prompt"));
    columns
}

/// Selects the cases to delete.
///
/// # Errors
/// [`ChangeError::NotFound`] for a user or agent without a bank; the engine's refusal; no room for data that does not
/// fit in memory.
pub async fn choose(
    store: &Store,
    ask: &Pruning,
    rules: &Rules,
    hanging: &[Hanging],
) -> Result<PruneChoice, ChangeError> {
    let mut choice = PruneChoice { columns: columns(rules), ..PruneChoice::default() };
    let banks = banks(store, ask, rules, &mut choice).await?;
    let (mut counted, mut judged, mut picked) = (banks.stream()?, banks.stream()?, banks.stream()?);
    let mut room = MOST;
    while let Some(bank) = counted.bank()? {
        let mut cases = 0;
        while counted.next_of(&bank)?.is_some() {
            cases += 1;
        }
        let window = ask.window.of(bank.window, rules).filter(|window| *window >= 1);
        let newest = window.and_then(|window| usize::try_from(window).ok());
        let mut verdicts = BankVerdicts::new(cases, newest, rules, scratch);
        judge(store, &banks, (&mut judged, &bank), &mut verdicts, hanging).await?;
        choice.without_vector += verdicts.without_vector;
        choice.uncompared += verdicts.uncompared;
        let verdicts = verdicts.end()?;
        choice.undated += verdicts.undated;
        choice.unclear += verdicts.unclear;
        choice.quarantined += verdicts.quarantined;
        let picked = pick(&banks, (&mut picked, &bank), verdicts.verdicts, room)?;
        let picked = PrunedBank { window, ..picked };
        room -= picked.goes.len();
        choice.rest += picked.left;
        if !picked.goes.is_empty() {
            choice.banks.push(picked);
        }
    }
    Ok(choice)
}

/// Every requested bank, its cases newest first.
async fn banks(
    store: &Store,
    ask: &Pruning,
    rules: &Rules,
    choice: &mut PruneChoice,
) -> Result<SortedBanks, ChangeError> {
    let mut banks = PruneBanks::new(scratch);
    let held = match HeldRows::of(store).await {
        Err(StoreError::Denied { reason, remedy }) => {
            choice.unchecked = Some(format!("legal holds cannot be checked: {reason}; {remedy}"));
            HeldRows::default()
        }
        held => held?,
    };
    if let Some(user) = ask.user.as_ref().filter(|user| held.holds(user)) {
        return Err(ChangeError::Refused(format!("{user} is under a legal hold: `unhold` ends that")));
    }
    let wanted = |row: &Row| {
        let fits = |column: &str, asked: &Option<String>| asked.as_deref().is_none_or(|a| row.text(column) == Some(a));
        fits("user_id", &ask.user) && fits("agent_id", &ask.agent)
    };
    if store.sources_of(Entity::Profile).is_ok() {
        let columns = vec!["id", "user_id", "agent_id", "window_size"];
        each(store, Entity::Profile, columns, |row| {
            if !wanted(&row) || held.keeps(&row) {
                return;
            }
            banks.profile(&row);
            let own = row.get("window_size").as_i64();
            choice.open += usize::from(own.is_none());
            if ask.window.of(own, rules).is_some_and(|window| window < 1) {
                choice.zeros += 1;
                if choice.zero.len() < TOLD {
                    choice.zero.push(row);
                }
            }
        })
        .await?;
    }
    banks.profiles_end()?;
    each(store, Entity::Case, choice.columns.clone(), |row| {
        // A case of a requested bank may name another person, or none.
        if !wanted(&row) && !banks.knows(&row) {
            return;
        }
        if held.keeps(&row) {
            choice.held += 1;
        } else if row.id().is_empty() {
            choice.unnamed += 1;
        } else {
            banks.case(&row);
        }
    })
    .await?;
    held.check()?;
    if banks.is_empty() && (ask.user.is_some() || ask.agent.is_some()) {
        let of = |what: &str, name: &Option<String>| name.as_ref().map(|name| format!("{what} {name}"));
        let of: Vec<String> = [of("user", &ask.user), of("agent", &ask.agent)].into_iter().flatten().collect();
        return Err(ChangeError::NotFound(format!("there is no bank of {} in {}", of.join(" and "), store.location())));
    }
    Ok(banks.sorted()?)
}

/// Passes the cases of a bank to the rules, with their vectors if needed.
async fn judge(
    store: &Store,
    banks: &SortedBanks,
    (stream, bank): (&mut BankStream<'_>, &SortedBank),
    verdicts: &mut BankVerdicts<'_>,
    hanging: &[Hanging],
) -> Result<(), ChangeError> {
    loop {
        let (mut some, mut ids) = (Vec::new(), Vec::new());
        let asks = verdicts.asks_vectors();
        while some.len() < VECTORS
            && let Some(case) = stream.next_of(bank)?
        {
            if asks {
                ids.push(banks.id(&case)?);
            }
            some.push(case);
        }
        if some.is_empty() {
            return Ok(());
        }
        let mut vectors = HashMap::new();
        if asks {
            for table in hanging {
                vectors.extend(store.shapes().vectors_beside(table, &ids).await?);
            }
        }
        for (n, case) in some.iter().enumerate() {
            verdicts.take(case, ids.get(n).and_then(|id| vectors.remove(id)));
        }
    }
}

/// Picks the cases of a bank to delete, up to the limit. The oldest come first, since that does not change the verdict
/// on newer ones.
fn pick(
    banks: &SortedBanks,
    (stream, bank): (&mut BankStream<'_>, &SortedBank),
    verdicts: Vec<Option<PruneReason>>,
    room: usize,
) -> std::io::Result<PrunedBank> {
    let doomed = verdicts.iter().flatten().count();
    let left = doomed.saturating_sub(room);
    let (mut passed, cases) = (0, verdicts.len());
    let mut goes = Vec::new();
    for verdict in verdicts {
        let Some(case) = stream.next_of(bank)? else { break };
        let Some(why) = verdict else { continue };
        passed += 1;
        if passed > left {
            goes.push(GoingCase { id: banks.id(&case)?, why, case });
        }
    }
    let profile = banks.profile(bank)?;
    let bank = *bank;
    Ok(PrunedBank { bank, profile, missing: None, user: None, agent: None, window: None, cases, left, goes })
}
