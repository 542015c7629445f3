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

/// A case that goes.
#[derive(Debug, Clone)]
pub struct GoingCase {
    /// Id of the case.
    pub id: String,
    /// Reason why it goes.
    pub why: PruneReason,
    /// Reading of the case that the rules saw.
    pub case: JudgedCase,
}

/// A bank of which cases go.
#[derive(Debug, Clone)]
pub struct PrunedBank {
    /// The bank.
    pub bank: SortedBank,
    /// Id of the profile, where there is one.
    pub profile: Option<String>,
    /// Id of the profile that its cases name, once owners were read, where that has no row.
    pub missing: Option<String>,
    /// User of the bank, once owners were read.
    pub user: Option<String>,
    /// Agent of the bank, once owners were read.
    pub agent: Option<String>,
    /// Number of newest cases that it keeps, by its own window or the one that was given; none where other rules choose.
    pub window: Option<i64>,
    /// Number of cases of the bank.
    pub cases: usize,
    /// Cases of the bank that go by the rules too, and are left to a later plan.
    pub left: usize,
    /// The cases that go, newest first.
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

    /// A row that says whose the bank is.
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

/// The cases that go, and what was seen on the way.
#[derive(Debug, Clone, Default)]
pub struct PruneChoice {
    /// Banks of which cases go.
    pub banks: Vec<PrunedBank>,
    /// Cases that go by the rules too, and are left to a later plan.
    pub rest: usize,
    /// Banks with no window of their own.
    pub open: usize,
    /// Cases without an id, by which alone they could go.
    pub unnamed: usize,
    /// Cases of people under a legal hold: they stay.
    pub held: usize,
    /// Reason why it is not known whether there are such.
    pub unchecked: Option<String>,
    /// Cases whose likeness was asked for and cannot be told.
    pub without_vector: usize,
    /// Cases that stay and that others were not compared with.
    pub uncompared: usize,
    /// Cases that stay because nothing tells how old they are.
    pub undated: usize,
    /// Cases that stay because others of their message hash have another prompt.
    pub unclear: usize,
    /// Cases that stay because they are hidden from recall.
    pub quarantined: usize,
    /// Ids of cases that stay because several rows have them.
    pub repeated: BTreeSet<String>,
    /// Banks that stay because nothing says whose they are, which the application's own trail asks for.
    pub untold: Vec<PrunedBank>,
    /// Columns of a case that the rules looked at.
    pub columns: Vec<&'static str>,
    /// Profiles whose window is a mistake: the first, and their number.
    nought: Vec<Row>,
    noughts: usize,
}

impl PruneChoice {
    /// Ids of the cases that go.
    pub fn doomed(&self) -> impl Iterator<Item = &str> {
        self.banks.iter().flat_map(|bank| &bank.goes).map(|case| case.id.as_str())
    }

    /// Number of the cases that go.
    pub fn count(&self) -> usize {
        self.banks.iter().map(|bank| bank.goes.len()).sum()
    }

    /// Leaves half of the cases to a later plan, the newest of a bank: what the rules say of those does not change when
    /// older ones are gone.
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

    /// Lets the cases stay whose id several rows have: nothing says which of these the rules mean.
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

    /// Lets the banks stay whose prune the application's own trail cannot take: it asks for a user or agent, and nothing
    /// says whose the bank is.
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

    /// Reports windows that are a mistake.
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
        let mut told: Vec<String> = self.nought.iter().map(told).collect();
        if self.noughts > told.len() {
            told.push(agreeing(
                self.noughts - told.len(),
                "{#} more {bank has a window|banks have windows} of 0 or less: skipped",
            ));
        }
        told
    }

    /// Reads whose the banks are.
    pub async fn read_owners(&mut self, store: &Store) -> Result<(), ChangeError> {
        let (banked, alone): (Vec<&mut PrunedBank>, Vec<&mut PrunedBank>) =
            self.banks.iter_mut().partition(|bank| bank.profile.is_some());
        read_owners_from(store, Entity::Profile, banked).await?;
        read_owners_from(store, Entity::Case, alone).await
    }
}

/// Reads owners from the banks' profiles, which must have the windows that the rules saw, or else from a case of each.
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

/// Columns of a case that the rules look at.
fn columns(rules: &Rules) -> Vec<&'static str> {
    let mut columns =
        vec!["id", "profile_id", "user_id", "agent_id", "created_at", "reward", "message_hash", "quarantined"];
    columns.extend(rules.duplicates.then_some("prompt"));
    columns
}

/// Chooses the cases that go.
///
/// # Errors
/// [`ChangeError::NotFound`] for a user or agent without a bank; the engine's refusal; no room for what does not fit in
/// memory.
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

/// Every bank that was asked for, its cases newest first.
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
                choice.noughts += 1;
                if choice.nought.len() < TOLD {
                    choice.nought.push(row);
                }
            }
        })
        .await?;
    }
    banks.profiles_end()?;
    each(store, Entity::Case, choice.columns.clone(), |row| {
        // A case of a bank that is asked for may name another person, or none.
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
    if banks.is_empty() && (ask.user.is_some() || ask.agent.is_some()) {
        let of = |what: &str, name: &Option<String>| name.as_ref().map(|name| format!("{what} {name}"));
        let of: Vec<String> = [of("user", &ask.user), of("agent", &ask.agent)].into_iter().flatten().collect();
        return Err(ChangeError::NotFound(format!("there is no bank of {} in {}", of.join(" and "), store.location())));
    }
    Ok(banks.sorted()?)
}

/// Hands the cases of a bank to the rules, with their vectors where these matter.
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

/// Picks the cases of a bank that go, as many as there is room for. The oldest go first: what the rules say of newer ones
/// does not change by that.
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
