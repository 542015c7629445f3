//! Evaluation of recall on a memory, by the judged queries of a file or by stored outcomes, and of its effect on the
//! memory. Rows are ranked by the same code as in recall.

mod bank;
mod trials;

use std::cmp::Reverse;
use std::collections::hash_map::{Entry, HashMap};
use std::collections::{BTreeMap, HashSet};

use super::banked::{BankedCases, UnusablePolicy};
use super::situation::ResolvedQuestion;
use super::{LabError, RecallRequest, Told, each, kind_of, recall};
use crate::layout::StoredAs;
use crate::memory::first_of::FirstOf;
use crate::memory::query::Query;
use crate::memory::{Entity, Row, agreeing, thousands, time};
use crate::recall::answer::{NO_POLICY, PolicyChoice, choice};
use crate::recall::context::{self, Budget, ContextRow, ContextText, ContextWriter, LineLength};
use crate::recall::inquiry::Inquiry;
use crate::recall::judge::file;
use crate::recall::judge::latency::{AccessTally, TimedAccess};
use crate::recall::judge::ranked::{GradedRanking, estimate, quality};
use crate::recall::judge::report::{Evaluation, StoredRecalls, TokenCounts};
use crate::recall::judge::spread::{QueryRecall, spread};
use crate::recall::rank::Ranking;
use crate::store::Store;
use crate::store::scratch::scratch;

use bank::{BankItem, HELD, OwnerBank, POOL};
use trials::{QUERIES, QueryOwners, owners_of, pairs, recalled};

/// Most recorded recalls judged: the latest.
const RECALLS: usize = 10_000;

/// Recalls whose text is built to count its tokens.
const TEXTS: usize = 50;

/// Rows read together for that.
const TOGETHER: usize = 8;

/// Parameters of an evaluation.
#[derive(Debug, Clone, PartialEq)]
pub struct EvaluationRequest {
    /// Cases, or the episodes or memories that recall returns here; determined from the data if `None`.
    pub kind: Option<Entity>,
    /// The ranking to judge; if `None`, `cases` for cases and `boosted` for others.
    pub ranking: Option<Ranking>,
    /// Policy that ranks cases, by its id, or `none`; if unset, those in use.
    pub policy: Option<String>,
    /// Rows that count.
    pub k: usize,
    /// Seed of samples, controls and intervals.
    pub seed: u64,
    /// Judged queries; stored outcomes are used if there are none.
    pub judged: Option<Vec<file::JudgedQuery>>,
}

impl EvaluationRequest {
    /// An evaluation by stored outcomes with the ranking that agents get.
    pub fn stored(k: usize, seed: u64) -> Self {
        EvaluationRequest { kind: None, ranking: None, policy: None, k, seed, judged: None }
    }

    /// The entity implied by the ranking and the policy.
    fn named_kind(&self, store: &Store) -> Result<Option<Entity>, LabError> {
        let by_ranking = match (self.ranking, self.kind) {
            (Some(ranking), _) => Some(kind_of(store, ranking)),
            (None, Some(kind)) if kind != Entity::Case => Some(kind_of(store, Ranking::Boosted)),
            (None, _) => self.policy.as_deref().filter(|id| *id != NO_POLICY).map(|_| Entity::Case),
        };
        match (self.kind, by_ranking) {
            (Some(kind), Some(other)) if kind != other => {
                let (kind, other) = (kind.title(), other.title());
                Err(LabError::Usage(format!("that ranking is over {other} rows here, not over {kind} rows")))
            }
            _ if matches!(choice(self.policy.as_deref()), PolicyChoice::Named(_))
                && by_ranking != Some(Entity::Case) =>
            {
                Err(LabError::Usage("a policy ranks cases: leave out the other ranking".to_owned()))
            }
            (kind, other) => Ok(kind.or(other)),
        }
    }
}

/// The entity of the judgements: that of the first existing relevant id; else cases if there are any.
async fn find_kind(store: &Store, ask: &EvaluationRequest) -> Result<Entity, LabError> {
    if let Some(kind) = ask.named_kind(store)? {
        store.sources_of(kind)?;
        return Ok(kind);
    }
    let kinds = [Entity::Case, kind_of(store, Ranking::Boosted)];
    let there: Vec<Entity> = kinds.into_iter().filter(|kind| store.sources_of(*kind).is_ok()).collect();
    let named = ask.judged.iter().flatten().flat_map(|q| q.relevant.keys()).take(20);
    for id in named {
        for kind in &there {
            if store.row(*kind, id).await?.is_some() {
                return Ok(*kind);
            }
        }
    }
    for kind in &there {
        let mut query = Query::new(*kind);
        (query.limit, query.columns) = (1, Some(vec!["id"]));
        if !store.page(&query).await?.rows.is_empty() {
            return Ok(*kind);
        }
    }
    Err(LabError::Refused("there are neither cases, episodes nor memories to judge recall by".to_owned()))
}

/// A recorded recall of an agent: its time, its id, and the positions of its first rows. Of those at the same time, the
/// one with the least id counts as the latest.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct MadeRecall {
    at: Option<i64>,
    id: Reverse<String>,
    top: Vec<usize>,
}

async fn read_trail(
    store: &Store,
    bank: &OwnerBank,
    ask: &EvaluationRequest,
    told: Told<'_>,
    notes: &mut Vec<String>,
) -> Result<Option<StoredRecalls>, LabError> {
    let (k, seed) = (ask.k, ask.seed);
    // Such a log names one of the rows of a recall.
    let names_one = store
        .sources_of(Entity::Access)
        .unwrap_or_default()
        .iter()
        .any(|source| source.column("ids").iter().any(|way| way.stored == StoredAs::One));
    let mut query = Query::new(Entity::Access);
    query.columns = Some(vec!["ids", "kind", "latency_ms", "tokens", "policy_version", "created_at"]);
    let mut accesses = AccessTally::new(scratch);
    let mut latest: FirstOf<Reverse<MadeRecall>> = FirstOf::new(RECALLS);
    let there = each(store, &query, told, |row| {
        let mut ids = row.list("ids");
        let mut known = HashSet::new();
        ids.retain(|id| known.insert(*id));
        accesses.add(&TimedAccess {
            kind: row.text("kind").unwrap_or_default(),
            latency_ms: row.number("latency_ms"),
            tokens: row.get("tokens").as_i64(),
            rows: (!names_one && row.get("ids").is_array()).then_some(ids.len()),
            policy_version: row.get("policy_version").as_i64(),
        });
        let top: Vec<usize> = ids.iter().take(k).filter_map(|id| bank.by_id.get(*id)).copied().collect();
        if !top.is_empty() {
            let at = row.text("created_at").and_then(time::epoch_micros);
            latest.add(Reverse(MadeRecall { at, id: Reverse(row.id().to_owned()), top }));
        }
    })
    .await?;
    let trail = accesses.close()?;
    if !there || trail.n == 0 {
        return Ok(None);
    }
    if names_one {
        notes.push(
            "the log names one row of each recall: the number of rows, hit rate and precision are unknown".to_owned(),
        );
    }
    if latest.count() > RECALLS as u64 {
        notes.push(format!("of {} recorded recalls of these rows the latest {RECALLS} are judged", latest.count()));
    }
    let (mut hits, mut precisions, mut recalls) = (Vec::new(), Vec::new(), Vec::new());
    for Reverse(made) in latest.in_order() {
        let top: Vec<&BankItem> = made.top.iter().filter_map(|place| bank.item(*place)).collect();
        let well = top.iter().filter(|i| i.went_well()).count();
        if !names_one && top.iter().any(|i| i.went.is_some()) {
            hits.push(if well > 0 { 1.0 } else { 0.0 });
            precisions.push(well as f64 / top.len() as f64);
        }
        recalls.push(QueryRecall { rows: top.iter().map(|i| recalled(i, made.at)).collect(), alike: pairs(&top) });
    }
    Ok(Some(StoredRecalls {
        trail,
        hit_rate: estimate(&hits, seed),
        precision_at_k: estimate(&precisions, seed),
        // Rows that are held back now may have been recalled then.
        spread: spread(&recalls, bank.len()),
    }))
}

/// The text of a row within a budget, and the characters of all lines about its canvas and feedback.
async fn text_of(store: &Store, row: &Row, lessons: bool, room: usize) -> Result<(ContextText, usize), LabError> {
    let (mut told, mut lengths) = (Vec::new(), [LineLength::default(), LineLength::default()]);
    if row.entity == Entity::Episode {
        let contexts = store.contexts();
        for (kind, length) in [Entity::CanvasEvent, Entity::Feedback].into_iter().zip(&mut lengths) {
            for rows in contexts.linked(&[row], &contexts.episode_links(), kind, None).await? {
                told.push(recall::told(store, rows, room, |row| length.add(row)).await?);
            }
        }
    }
    let [canvas, feedback] = [0, 1].map(|at| told.get(at).cloned().unwrap_or_default());
    let text = ContextText::of(&ContextRow { row, canvas: &canvas, feedback: &feedback }, lessons, room);
    let lines = if told.is_empty() { 0 } else { LineLength::lines(&lengths[1], &lengths[0], lessons) };
    Ok((text, lines))
}

/// Counts the tokens in the text of these recalls: cut to the usual budget, and whole.
async fn count_tokens(
    store: &Store,
    recalls: &[QueryRecall],
    kinds: &[Entity],
    lessons: bool,
) -> Result<TokenCounts, LabError> {
    let made: Vec<&QueryRecall> = recalls.iter().filter(|r| !r.rows.is_empty()).take(TEXTS).collect();
    let mut ids: Vec<String> = made.iter().flat_map(|r| &r.rows).map(|row| row.key.1.clone()).collect();
    ids.sort_unstable();
    ids.dedup();
    let budget = Budget { tokens: context::TOKENS, per_row: None };
    let mut texts: BTreeMap<(Entity, String), (ContextText, usize)> = BTreeMap::new();
    for kind in kinds.iter().filter(|kind| store.sources_of(**kind).is_ok()) {
        for ids in ids.chunks(TOGETHER) {
            for row in store.related(*kind, "id", ids).await? {
                let made = text_of(store, &row, lessons, budget.room()).await?;
                texts.insert((row.entity, row.id().to_owned()), made);
            }
        }
    }
    let (mut cut, mut whole, mut over) = (0, 0, 0);
    for recall in &made {
        let told: Vec<&(ContextText, usize)> = recall.rows.iter().filter_map(|row| texts.get(&row.key)).collect();
        let mut writer = ContextWriter::new(told.len(), budget, lessons);
        let mut all = if told.is_empty() { 0 } else { context::heading(lessons).chars().count() };
        for (number, (text, lines)) in (1..).zip(told) {
            all += text.characters(number, lessons) + lines;
            writer.add_text(text);
        }
        let all = all.div_ceil(context::CHARACTERS_A_TOKEN);
        cut += writer.close().tokens;
        over += usize::from(all > context::TOKENS);
        whole += all;
    }
    let mean = |sum: usize| (!made.is_empty()).then(|| sum as f64 / made.len() as f64);
    Ok(TokenCounts { n: made.len(), budget: context::TOKENS, mean: mean(cut), whole: mean(whole), over_budget: over })
}

/// Finds the cases and the policy that recall uses for judged queries over cases.
async fn banked<'a>(
    store: &Store,
    ask: &EvaluationRequest,
    bank: &'a OwnerBank,
    queries: &'a [file::JudgedQuery],
) -> Result<HashMap<QueryOwners<'a>, BankedCases>, LabError> {
    let mut banked = HashMap::new();
    for query in queries.iter().filter(|_| bank.ranking == Ranking::Cases) {
        let owners = owners_of(bank, query);
        if let Entry::Vacant(place) = banked.entry(owners) {
            let inquiry = Inquiry {
                policy: ask.policy.clone(),
                agent: query.agent.clone(),
                user: query.user.clone(),
                ..Inquiry::new(Ranking::Cases)
            };
            let request = RecallRequest { inquiry, ..RecallRequest::default() };
            let row = owners.2.map(|profile| Row::with(Entity::Case, [("profile_id", profile.into())]));
            let mut asked = ResolvedQuestion { row, ..ResolvedQuestion::default() };
            place.insert(BankedCases::of(store, &request, &mut asked).await?);
        }
    }
    Ok(banked)
}

/// Judges recall.
///
/// # Errors
/// [`LabError::Refused`] if there is nothing to judge by, [`LabError::Usage`] for a ranking that does not fit,
/// [`LabError::NotFound`] for a missing policy, or an error of the engine.
pub async fn evaluate(store: &Store, ask: &EvaluationRequest, told: Told<'_>) -> Result<Evaluation, LabError> {
    let kind = find_kind(store, ask).await?;
    let ranking = ask.ranking.unwrap_or(if kind == Entity::Case { Ranking::Cases } else { Ranking::Boosted });
    if ask.judged.as_ref().is_some_and(Vec::is_empty) {
        return Err(LabError::Refused("the file holds no judged queries".to_owned()));
    }
    let mut bank = OwnerBank::read(store, ask, ranking, told).await?;
    if !bank.read.contains_key(&kind) {
        return Err(LabError::Refused(format!("there is no {} to judge recall by", kind.title())));
    }
    let mut notes = Vec::new();
    bank.take_vectors(store, kind).await?;
    bank.take_asked(store, ask.judged.as_deref().unwrap_or_default()).await?;
    let with_vector = bank.items.iter().filter(|i| !i.vector.is_empty()).count();
    let (judged_by, trials) = match &ask.judged {
        Some(queries) => (
            agreeing(queries.len(), "{#} judged {query|queries} of the file"),
            trials::judged(&bank, queries, &banked(store, ask, &bank, queries).await?, ask.k, &mut notes),
        ),
        None => (
            format!(
                "stored outcomes: up to {QUERIES} {} rows are asked as queries; older rows of the same owner that went \
                 well and share a tag or topic are relevant",
                kind.title()
            ),
            trials::stored(&bank, ask.k, ask.seed),
        ),
    };
    let (judged, recalls): (Vec<GradedRanking>, Vec<QueryRecall>) =
        trials.into_iter().map(|t| (t.judged, t.recall)).unzip();
    bank.check()?;
    let stored = read_trail(store, &bank, ask, told, &mut notes).await?;
    note(&bank, ask, with_vector, stored.is_some(), &mut notes);
    Ok(Evaluation {
        kind: kind.name(),
        rows: bank.read.get(&kind).copied().unwrap_or_default(),
        with_vector,
        ranking: ranking.name(),
        policy: ask.policy.clone(),
        formula: ranking.formula(),
        judged_by,
        quality: quality(&judged, ask.k, ask.seed),
        self_retrieval: trials::self_retrieval(&bank, ask.k, ask.seed),
        negative_controls: trials::negative_controls(&bank, ask.seed),
        spread: spread(&recalls, bank.candidates),
        tokens: count_tokens(store, &recalls, &bank.kinds, ranking == Ranking::Similar).await?,
        stored,
        notes,
    })
}

/// Notes remarks about an evaluation that users should see.
fn note(bank: &OwnerBank, ask: &EvaluationRequest, with_vector: usize, stored: bool, notes: &mut Vec<String>) {
    if bank.len() > bank.items.len() {
        notes.push(format!(
            "{} of {} rows are searched: the newest {POOL} of an owner, and the newest {HELD} of all",
            thousands(bank.items.len()),
            thousands(bank.len())
        ));
    }
    let held_back = bank.len().saturating_sub(bank.candidates);
    if held_back > 0 {
        let why = match bank.ranking {
            Ranking::Cases => "quarantined",
            Ranking::Similar if bank.kind() != Entity::Memory => "not a success",
            Ranking::Similar | Ranking::Boosted | Ranking::Proven => {
                "memories that were deleted, forgotten or superseded, and episodes that are not live"
            }
        };
        notes.push(agreeing(
            held_back,
            &format!(
                "{{#}} {{row is|rows are}} never recalled by this ranking ({why}) and {{counts|count}} neither as relevant \
                 nor as {{a candidate|candidates}}"
            ),
        ));
    }
    if !bank.in_use.is_empty() {
        let words = "the cases of {#} {bank are ranked by its policy|banks are ranked by their policies} in use, all \
         others by likeness";
        notes.push(agreeing(bank.in_use.len(), words));
    }
    notes.extend(bank.unusable.iter().map(UnusablePolicy::note));
    if bank.kind() == Entity::Memory && ask.judged.is_none() {
        notes
            .push("memories are recalled here, but no outcome of a memory is stored: judge with `--judged`".to_owned());
    }
    let texts = ask.judged.iter().flatten().filter(|q| matches!(q.asked, file::JudgedQuestion::Text(_))).count();
    match bank.ranking {
        Ranking::Proven if bank.kind() == Entity::Memory => notes.push(
            "domain and topic of the query's row are asked for; where it has neither, or a text is asked, 0.6 x the \
             likeness of the text replaces them; self-retrieval and nonsense are not tested"
                .to_owned(),
        ),
        Ranking::Proven => notes.push(
            "domain and topic of the query's row are asked for; a ranking without likeness has no self-retrieval and \
             no nonsense"
                .to_owned(),
        ),
        _ if with_vector == 0 => {
            notes.push("no row has a readable vector: rows are ranked by shared words".to_owned());
        }
        _ if texts > 0 => {
            let words =
                "{#} {query is a text: it is|queries are texts: they are} compared by words, as without an endpoint";
            notes.push(agreeing(texts, words));
        }
        _ => {}
    }
    if bank.ranking == Ranking::Boosted {
        notes.push(
            "boosted recall fills its places whatever is asked: nonsense is judged by likeness alone, without the \
             boosts"
                .to_owned(),
        );
    }
    if !stored {
        notes.push(
            "no recalls are recorded, so latencies, tokens and what agents really recalled are unknown".to_owned(),
        );
    }
}
