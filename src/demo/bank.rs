//! Banks of cases: question, plan, actions and reward, with vectors, policies and an audit trail.

use std::collections::{BTreeMap, VecDeque};

use serde_json::{Value as Json, json};
use sha2::{Digest, Sha256};

use super::calendar::{DAY, HOUR, stamp};
use super::chance::Chance;
use super::ids::Ids;
use super::log::summary;
use super::moment::{EpisodeEnd, EpisodeFacts};
use super::rows::{AUDIT, CASE_VECTORS, CASES, DemoRow, POLICIES, PROFILES, list};
use super::vectors;
use super::world::{AGENTS, DemoPerson};
use crate::memory::reward::reward;

/// Most cases of a story, however long it is.
const MOST_CASES: f64 = 20_000.0;

/// Most people with banks.
const MOST_OWNERS: usize = 120;

/// Number of the newest cases of a bank that can be referred to.
const REMEMBERED: usize = 8;

#[derive(Debug)]
struct DemoProfile {
    id: String,
    created: i64,
    updated: i64,
    cases: u64,
    positive: u64,
    recent: VecDeque<String>,
    message: String,
}

#[derive(Debug)]
pub struct DemoBanks {
    seed: u64,
    share: f64,
    owners: usize,
    /// By the positions of the person and the agent.
    profiles: BTreeMap<(usize, usize), DemoProfile>,
}

impl DemoBanks {
    /// Creates banks for a story of this many episodes; `owned` is the share (0..=1) of them whose people have banks.
    pub fn new(seed: u64, episodes: u64, owned: f64) -> DemoBanks {
        let share = (MOST_CASES / (episodes as f64 * owned).max(1.0)).min(0.6);
        DemoBanks { seed, share, owners: MOST_OWNERS, profiles: BTreeMap::new() }
    }

    /// Returns how many of this many people have banks.
    pub fn owners(people: usize) -> usize {
        people.min(MOST_OWNERS)
    }

    /// Newest cases of a person and an agent, oldest first.
    pub fn recent(&self, person: usize, agent: usize) -> Vec<String> {
        self.profiles.get(&(person, agent)).map(|p| p.recent.iter().cloned().collect()).unwrap_or_default()
    }

    /// The rows of the case that an episode leaves, if it leaves one.
    pub fn retain(
        &mut self,
        moment: &EpisodeFacts<'_>,
        person: usize,
        score: Option<f64>,
        ids: &mut Ids,
    ) -> Vec<DemoRow> {
        let mut chance = moment.chance("case");
        let Some(value) = reward(moment.outcome.word(), score) else { return Vec::new() };
        let wanted = chance.is(self.share) || moment.rich;
        if person >= self.owners || !wanted || moment.ended > moment.anchor {
            return Vec::new();
        }
        let profile = self.profiles.entry((person, moment.topic.agent)).or_insert_with(|| DemoProfile {
            id: ids.next("bank"),
            created: moment.ended,
            updated: moment.ended,
            cases: 0,
            positive: 0,
            recent: VecDeque::new(),
            message: String::new(),
        });
        // People ask the same question twice: such cases are duplicates by hash.
        if profile.message.is_empty() || !chance.is(0.06) {
            let ask = moment.words.say(&moment.topic.asks, &mut chance);
            profile.message = format!("{}. {ask}", moment.title);
        }
        let id = ids.next("case");
        let references: Vec<String> = {
            let recent: Vec<String> = profile.recent.iter().cloned().collect();
            let count = chance.weighted(&[0.3, 0.25, 0.2, 0.15, 0.1]);
            chance.some(&recent, count).into_iter().cloned().collect()
        };
        let mut rows = vec![case(moment, profile, &id, &references, value, &mut chance)];
        if !chance.is(0.06) {
            let number = moment.number | 1 << 40;
            let vector = vectors::vector(self.seed, moment.topic.agent, moment.topic_number, moment.story, number);
            rows.push(DemoRow::new(&CASE_VECTORS).with("case_id", &id).with("embedding", vector));
        }
        let payload = json!({"caseId": id, "profileId": profile.id, "reward": value, "references": references.len()});
        rows.push(audit(ids, &moment.person.id, moment.topic.agent, "insert_case", payload, moment.ended));
        if score.is_some() && chance.is(0.4) {
            let at = moment.ended + chance.between(1, 40) * HOUR;
            let payload = json!({"caseId": id, "reward": value, "cause": "feedback"});
            if at < moment.anchor {
                rows.push(audit(ids, &moment.person.id, moment.topic.agent, "update_case", payload, at));
            }
        }
        profile.updated = profile.updated.max(moment.ended);
        profile.cases += 1;
        profile.positive += u64::from(value >= 0.5);
        profile.recent.push_back(id);
        if profile.recent.len() > REMEMBERED {
            profile.recent.pop_front();
        }
        rows
    }

    /// The rows of the banks, of their policies, and of the audit trail of both.
    pub fn rows(&self, people: &[DemoPerson], anchor: i64, ids: &mut Ids) -> Vec<DemoRow> {
        let mut rows = Vec::new();
        for (number, ((person, agent), profile)) in self.profiles.iter().enumerate() {
            let mut chance = Chance::new(self.seed, "bank", number as u64);
            let owner = people.get(*person).map_or("", |p| p.id.as_str());
            let window = *chance.pick(&[None, None, Some(200), Some(200), Some(100), Some(25)]);
            rows.push(
                DemoRow::new(&PROFILES)
                    .with("id", &profile.id)
                    .with("user_id", owner.to_owned())
                    .with("agent_id", AGENTS[*agent].id)
                    .with("window_size", window)
                    .with("created_at", stamp(profile.created))
                    .with("updated_at", stamp(profile.updated)),
            );
            if profile.cases >= 12 && chance.is(0.6) {
                policies(&mut rows, profile, *agent, anchor, ids, &mut chance);
            }
            if profile.cases > 60 {
                let payload = json!({"profileId": profile.id, "pruned": chance.between(1, 12), "rule": "window"});
                rows.push(audit(ids, "system", *agent, "prune_case", payload, profile.updated));
            }
        }
        rows
    }
}

/// The versions that were learned from a bank: the newest may still be training, older ones stay active.
fn policies(
    rows: &mut Vec<DemoRow>,
    profile: &DemoProfile,
    agent: usize,
    anchor: i64,
    ids: &mut Ids,
    chance: &mut Chance,
) {
    let versions = chance.between(1, 4);
    for version in 1..=versions {
        let at = (profile.updated - (versions - version) * 9 * DAY - chance.between(0, DAY)).max(profile.created);
        let skill = 0.58 + 0.06 * version as f64 + chance.unit() * 0.08;
        let metrics = json!({
            "loss": round(0.75 - skill * 0.4), "auc": round(skill), "brier": round(0.32 - skill * 0.2),
            "ece": round(0.02 + chance.unit() * 0.08), "n": profile.cases * version as u64 / versions as u64,
            "positives": profile.positive * version as u64 / versions as u64,
        });
        let mut weight = |mean: f64| round(mean + chance.unit() * 0.6 - 0.3);
        let weights = json!({
            "bias": weight(-1.1), "similarity": weight(2.4), "reward": weight(1.3), "outcome": weight(0.6),
            "recency": weight(0.3), "text_overlap": weight(0.8), "tag_overlap": weight(0.5),
        });
        let status = match chance.weighted(&[0.75, 0.15, 0.1]) {
            1 if version == versions => "training",
            2 => "failed",
            _ => "active",
        };
        let id = ids.next("pol");
        rows.push(
            DemoRow::new(&POLICIES)
                .with("id", &id)
                .with("profile_id", &profile.id)
                .with("version", version)
                .with("weights", weights)
                .with("metrics", metrics)
                .with("status", status)
                .with("trained_at", stamp(at.min(anchor))),
        );
        let payload = json!({"profileId": profile.id, "policyId": id, "version": version, "status": status});
        rows.push(audit(ids, "system", agent, "train_policy", payload, at.min(anchor)));
    }
}

fn round(number: f64) -> f64 {
    (number * 10_000.0).round() / 10_000.0
}

fn audit(ids: &mut Ids, actor: &str, agent: usize, action: &'static str, payload: Json, at: i64) -> DemoRow {
    DemoRow::new(&AUDIT)
        .with("id", ids.next("aud"))
        .with("actor", actor.to_owned())
        .with("agent_id", AGENTS[agent].id)
        .with("action", action)
        .with("payload", payload)
        .with("created_at", stamp(at))
}

fn case(
    moment: &EpisodeFacts<'_>,
    profile: &DemoProfile,
    id: &str,
    references: &[String],
    reward: f64,
    chance: &mut Chance,
) -> DemoRow {
    let (words, topic) = (moment.words, moment.topic);
    let prompt = json!({
        "message": profile.message,
        "context": {"user": moment.person.name, "customer": words.word("customer"), "topic": topic.name},
        "locale": "en",
    });
    let step = |(position, step): (usize, &super::topics::TopicStep)| {
        let named = if position == 0 { references } else { &[] };
        json!({"id": position + 1, "description": step.name.replace('_', " "), "tool": step.name,
            "referenceCaseIds": named})
    };
    let plan = json!({
        "goal": moment.title,
        "steps": topic.steps.iter().enumerate().map(step).collect::<Vec<_>>(),
    });
    let last = topic.steps.len().saturating_sub(1);
    let traces: Vec<Json> = topic
        .steps
        .iter()
        .enumerate()
        .map(|(position, step)| {
            let failed = position == last && moment.outcome == EpisodeEnd::Failure;
            let output = words.fill(if failed { step.error } else { step.result }, chance);
            json!({"tool": step.name, "input": {"reference": words.word("ref")},
                "status": if failed { "error" } else { "ok" }, "durationMs": chance.between(20, 9_000), "output": output})
        })
        .collect();
    let traces = json!({"steps": traces, "answer": summary(moment, chance)});
    DemoRow::new(&CASES)
        .with("id", id.to_owned())
        .with("profile_id", &profile.id)
        .with("user_id", &moment.person.id)
        .with("agent_id", moment.agent().id)
        .with("message_hash", hex::encode(Sha256::digest(profile.message.as_bytes())))
        .with("prompt", prompt)
        .with("plan", plan)
        .with("traces", traces)
        .with("outcome", moment.outcome.word())
        .with("reward", reward)
        .with("tags", list(&[moment.agent().domain, topic.name, *chance.pick(&topic.tags)]))
        .with("reference_case_ids", list(references))
        .with("created_at", stamp(moment.ended))
        .with("quarantined", chance.is(0.004))
}
