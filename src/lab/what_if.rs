//! What-if: recent real situations of the agents and banks that a change touches, ranked before and after it.

use std::collections::{BTreeSet, HashMap};
use std::time::{Duration, Instant};

use serde::Serialize;

use super::{LabError, equal};
use crate::memory::filter::Filter;
use crate::memory::vector::cosine_of;
use crate::memory::{Entity, Row};
use crate::recall::features::words;
use crate::recall::keyword;
use crate::recall::rank::{self, Ranked, Ranking, Sought};
use crate::recall::what_if::{Edit, Move, applied, moves};
use crate::store::Store;

/// Time within which a confirmation has its answer.
pub const BUDGET: Duration = Duration::from_millis(300);
/// Situations of each agent or bank.
const SITUATIONS: usize = 8;
/// Agents and banks that are looked at.
const OWNERS: usize = 4;
/// Rows of an owner that are ranked; of more the newest.
const ROWS: usize = 2_000;

/// What would change in recalls.
#[derive(Debug, Clone, PartialEq, Serialize, Default)]
pub struct WhatIf {
    /// Situations that were ranked before and after.
    pub situations: usize,
    /// Of these, with another answer after.
    pub changed: usize,
    /// Whether all that should be looked at was looked at.
    pub complete: bool,
    /// The rank moves.
    pub moves: Vec<Move>,
    /// What was left out of it, and why.
    pub notes: Vec<String>,
}

/// The rows of one agent or bank.
struct Bench {
    before: Vec<Row>,
    after: Vec<Row>,
    vectors: HashMap<String, Vec<f32>>,
}

/// Ranks recent situations before and after edits, as long as `budget` lasts.
///
/// # Errors
/// The engine's refusal.
pub async fn what_if(store: &Store, edits: &[Edit], at: &str, budget: Duration) -> Result<WhatIf, LabError> {
    let end = Instant::now() + budget;
    let mut found = WhatIf { complete: true, ..WhatIf::default() };
    for (kind, owner, rankings) in [
        (Entity::Episode, "agent_id", &[Ranking::Boosted, Ranking::Proven, Ranking::Similar][..]),
        (Entity::Case, "profile_id", &[Ranking::Cases]),
    ] {
        let ids: Vec<String> = edits.iter().filter(|e| e.entity == kind).map(|e| e.id.clone()).collect();
        if ids.is_empty() || store.sources_of(kind).is_err() {
            continue;
        }
        let edited = store.related(kind, "id", &ids).await?;
        let owners: BTreeSet<&str> = edited.iter().filter_map(|row| row.text(owner)).collect();
        if owners.len() > OWNERS {
            found.complete = false;
            found.notes.push(format!("{} {owner}s are touched: {OWNERS} of them were looked at", owners.len()));
        }
        for name in owners.into_iter().take(OWNERS) {
            if Instant::now() >= end {
                found.complete = false;
                break;
            }
            let bench = bench(store, kind, &[equal(owner, name)], edits, &mut found).await?;
            for situation in bench.before.iter().take(SITUATIONS) {
                if Instant::now() >= end {
                    found.complete = false;
                    break;
                }
                let mut changed = false;
                for ranking in rankings {
                    let before = bench.ranked(*ranking, situation, &bench.before, at);
                    let after = bench.ranked(*ranking, situation, &bench.after, at);
                    let moved = moves(*ranking, situation.id(), &before, &after);
                    changed |= !moved.is_empty();
                    found.moves.extend(moved);
                }
                found.situations += 1;
                found.changed += usize::from(changed);
            }
        }
    }
    if !found.complete {
        found.notes.push(format!("stopped after {} situations within {} ms", found.situations, budget.as_millis()));
    }
    Ok(found)
}

async fn bench(
    store: &Store,
    kind: Entity,
    filters: &[Filter],
    edits: &[Edit],
    found: &mut WhatIf,
) -> Result<Bench, LabError> {
    let columns: &[&'static str] = if kind == Entity::Case {
        &["prompt", "tags", "outcome", "reward", "created_at", "quarantined"]
    } else {
        &[
            "started_at",
            "title",
            "summary",
            "observation",
            "result",
            "success",
            "outcome",
            "domain",
            "topic",
            "utility",
            "feedback_score",
            "canvas_action_count",
        ]
    };
    let mut before = store.candidates(kind, filters, columns, &[]).await?;
    let time = kind.time_column();
    before.sort_by(|a, b| b.text(time).cmp(&a.text(time)).then_with(|| a.id().cmp(b.id())));
    if before.len() > ROWS {
        found.complete = false;
        found.notes.push(format!("of {} rows the newest {ROWS} were ranked", before.len()));
        before.truncate(ROWS);
    }
    let ids: Vec<String> = before.iter().map(|row| row.id().to_owned()).collect();
    let vectors = if store.has_vectors(kind) { store.vectors(kind, &ids).await? } else { HashMap::new() };
    let after = applied(&before, edits);
    Ok(Bench { before, after, vectors })
}

impl Bench {
    /// The rows that a ranking gives for the situation of a row.
    fn ranked(&self, ranking: Ranking, situation: &Row, rows: &[Row], at: &str) -> Vec<Ranked> {
        let others: Vec<&Row> = rows
            .iter()
            .filter(|row| row.id() != situation.id())
            .filter(|row| ranking != Ranking::Cases || row.get("quarantined").as_bool() != Some(true))
            .filter(|row| ranking != Ranking::Similar || row.text("outcome") == Some("success"))
            .collect();
        let likeness =
            if ranking == Ranking::Proven { vec![None; others.len()] } else { self.likeness(situation, &others) };
        let (domain, topic) = rank::place_of(situation);
        let sought = Sought { domain, topic };
        let mut ranked: Vec<Ranked> = others
            .into_iter()
            .zip(likeness)
            .filter_map(|(row, likeness)| match ranking {
                Ranking::Boosted => Some(rank::boosted(row.clone(), likeness.or(Some(0.0)), "similarity", at)),
                Ranking::Proven => Some(rank::proven(row.clone(), &sought, row.number("utility"), at)),
                Ranking::Cases | Ranking::Similar => Some(rank::by_likeness(row.clone(), likeness?, "similarity")),
            })
            .collect();
        rank::sort(&mut ranked);
        let alike = |a: &Row, b: &Row| match (ranking, self.vectors.get(a.id()), self.vectors.get(b.id())) {
            (Ranking::Cases, Some(a), Some(b)) => cosine_of(a, b),
            _ => None,
        };
        rank::choose(ranked, ranking.default_k(), 0, alike).0
    }

    fn likeness(&self, situation: &Row, rows: &[&Row]) -> Vec<Option<f64>> {
        if let Some(vector) = self.vectors.get(situation.id()) {
            return rows.iter().map(|row| cosine_of(vector, self.vectors.get(row.id())?)).collect();
        }
        let texts: Vec<String> = rows.iter().map(|row| keyword::text_of(row)).collect();
        let shares = keyword::shares(&words(&keyword::text_of(situation)), &texts);
        shares.into_iter().map(|share| (share > 0.0).then_some(share)).collect()
    }
}
