//! Agents, policies, evaluation: what is asked when, what is shown, and what a change of mind stops.

use std::collections::BTreeMap;

use mnemoscope::change::operation::{Operation, TRAINING_SEED};
use mnemoscope::console::core::{Effect, Reply, Request, RequestFailure};
use mnemoscope::console::screens::study::{StudyAnswer, StudyQuestion};
use mnemoscope::memory::Entity;
use mnemoscope::recall::judge::latency::{AccessTally, TimedAccess};
use mnemoscope::recall::judge::ranked::{GradedRanking, estimate, quality};
use mnemoscope::recall::judge::report::{Evaluation, NonsenseControl, SelfReturn, StoredRecalls, TokenCounts};
use mnemoscope::recall::judge::spread::{QueryRecall, RecalledRow, spread};
use mnemoscope::recall::learn::TrainingExample;
use mnemoscope::recall::learn::assess::train_and_hold_out;
use mnemoscope::recall::learn::measured::MeasuredAssessment;
use mnemoscope::recall::learn::version::{PurgedCases, Version};
use mnemoscope::recall::policy::{Policy, WeightSpelling};
use mnemoscope::recall::understand::canvas::{self, CanvasStudy, CanvasUse};
use mnemoscope::recall::understand::forgetting::{AgeTally, AgedEpisode};
use mnemoscope::recall::understand::report::{CanvasPattern, Graduation, InsightRule, Insights};
use mnemoscope::recall::understand::usefulness::MemoryJudge;
use mnemoscope::recall::understand::{graduation, quality as work};
use mnemoscope::store::scratch::scratch;
use serde_json::{Value, json};

use super::changes::{planned, unlock};
use super::fake::{Console, learned, row, world};

/// Answers a study question as a memory would, by the rules themselves.
pub fn answer(question: &StudyQuestion) -> StudyAnswer {
    match question {
        StudyQuestion::Agents => StudyAnswer::Agents(vec![
            row(
                Entity::Agent,
                &[
                    ("id", json!("ag-1")),
                    ("name", json!("Billing desk")),
                    ("status", json!("intern")),
                    ("episodes", json!(12)),
                    ("last_seen", json!("2026-02-04T10:00:00.000000Z")),
                ],
            ),
            row(
                Entity::Agent,
                &[
                    ("id", json!("ag-2")),
                    ("name", json!("\u{1b}[31mScout\u{7}")),
                    ("status", json!("student")),
                    ("episodes", json!(3)),
                ],
            ),
        ]),
        StudyQuestion::Agent(id) => StudyAnswer::Agent(Box::new(insights(Some(id))), Some(Box::new(Ok(graduated(id))))),
        StudyQuestion::Everyone => StudyAnswer::Agent(Box::new(insights(None)), None),
        StudyQuestion::Policies => StudyAnswer::Policies(
            vec![
                version("po-2", 2, "training", Ok(false)),
                version("po-1", 1, "active", Ok(true)),
                version("po-0", 0, "failed", Err("no readable weights are stored")),
            ],
            7,
        ),
        StudyQuestion::Policy(id) => StudyAnswer::Policy(Box::new(measured(id))),
        StudyQuestion::Recall => StudyAnswer::Recall(Box::new(evaluation())),
    }
}

fn insights(agent: Option<&str>) -> Insights {
    let mut study = CanvasStudy::new(scratch);
    for i in 0..12_i64 {
        let (kind, component) =
            if i % 3 == 0 { ("sheets", "table") } else { ("charts", if i % 2 == 0 { "line" } else { "bar" }) };
        let canvas = format!("c{i}");
        let mut add = |id: &str, action: &str, at: i64| {
            study.add(&CanvasUse {
                id,
                canvas: Some(&canvas),
                canvas_type: kind,
                component,
                action,
                at: Some((i * 1_000 + at) * 1_000_000),
                episode: Some(i as u64 + 1),
                ..CanvasUse::default()
            });
        };
        add("0", "present", 0);
        add("1", "close", if i % 3 == 0 { 2 } else { 40 });
        if i % 4 == 1 {
            add("2", "submit", 20);
        }
    }
    let feedback = |episode: u64| (episode < 7).then(|| if episode % 3 == 1 { -0.5 } else { 1.0 });
    let found = study.close(feedback).expect("few events");
    let mut aged = AgeTally::default();
    for i in 0..40 {
        let days = f64::from(i) * 9.0;
        aged.add(&AgedEpisode { days, decay: None, accesses: Some(i64::from(i % 5)), put_away: i > 30 });
    }
    let mut judge = MemoryJudge::default();
    (0..3_u8).for_each(|memory| judge.add(u64::from(memory), &[f64::from(memory) * 0.45; 3]));
    let mut memories = judge.close(&(0..3).map(|memory| (memory, format!("m-{memory}"))).collect(), 10);
    memories.mislead.iter_mut().chain(&mut memories.help).for_each(|m| m.title = Some(format!("What {} says", m.id)));
    Insights {
        agent: agent.map(str::to_owned),
        rules: canvas::RULES
            .iter()
            .map(|(n, r)| InsightRule { name: (*n).to_owned(), rule: (*r).to_owned() })
            .collect(),
        user_interaction_patterns: ["closes_quickly", "engages", "submits"]
            .map(|p| CanvasPattern { pattern: p, canvas_types: found.with(p).into_iter().map(str::to_owned).collect() })
            .to_vec(),
        observations: found.observations(4, 2),
        canvas_events: found.events,
        feedback_rows: 6,
        forgetting: aged.curve(),
        memories: Some(memories),
        notes: Vec::new(),
        types: found.types,
        components: found.components,
    }
}

fn graduated(id: &str) -> Graduation {
    let worked = |i: usize| work::WorkedEpisode {
        outcome: Some(["success", "partial", "success", "failure"][i % 4].to_owned()),
        started_at: Some(format!("2026-02-{:02}", i + 1)),
        feedback: i.is_multiple_of(2).then_some(0.5),
        interventions: Some(i64::from(i.is_multiple_of(3))),
        constitutional: Some(0.9),
        confidence: Some(0.7),
        supervised: i
            .is_multiple_of(4)
            .then_some(work::ProposalDecision { approved: true, followed: i.is_multiple_of(8) }),
        skill: i.is_multiple_of(5).then(|| format!("skill-{i}")),
        ..work::WorkedEpisode::default()
    };
    let mut episodes = work::WorkTally::new(12);
    (0..12).for_each(|i| episodes.add(worked(i)));
    let day = 86_400_000_000;
    let mut success = work::CanvasSuccess::until(Some(70 * day));
    (0..8).for_each(|i| success.add(f64::from(i % 3) / 2.0, Some(i64::from(i) * 10 * day)));
    let quality = work::quality(&episodes, success.all);
    let canvas_periods = success.periods();
    let interventions = work::interventions(&episodes, Some(2), Some(1));
    Graduation {
        agent: id.to_owned(),
        name: None,
        status: Some("intern".to_owned()),
        episodes: 12,
        outcomes: BTreeMap::new(),
        documented: graduation::documented(&quality, &canvas_periods, &interventions),
        coded: Some(graduation::coded(&episodes, Some("intern"))),
        coded_reason: None,
        quality,
        canvas_periods,
        interventions,
    }
}

fn examples() -> Vec<TrainingExample> {
    let one = |i: usize| TrainingExample {
        query: i / 5,
        features: [
            0.0,
            f64::from(u8::from(i.is_multiple_of(2))),
            (i % 7) as f64 / 7.0,
            0.5,
            (i % 11) as f64 / 11.0,
            0.0,
        ],
        label: i.is_multiple_of(2) != (i % 9 == 4),
    };
    (0..300).map(one).collect()
}

fn version(id: &str, number: i64, status: &str, state: Result<bool, &str>) -> Version {
    let metrics = if state.is_ok() { json!({"auc": 0.71, "loss": 0.52}) } else { Value::Null };
    let row = row(
        Entity::Policy,
        &[
            ("id", json!(id)),
            ("profile_id", json!("pr-1")),
            ("version", json!(number)),
            ("status", json!(status)),
            ("metrics", metrics),
            ("trained_at", json!("2026-02-03T09:00:00.000000Z")),
        ],
    );
    let policy = Policy {
        bias: -0.5,
        weights: [0.0, 2.0, 1.0, 0.1, -0.4, 0.3],
        spelling: WeightSpelling::Snake,
        unknown: Vec::new(),
    };
    let purged = PurgedCases { cases: Some(40), gone: Some(10), share: Some(0.25), reason: None };
    Version { row, policy: state.map(|_| policy).map_err(str::to_owned), in_use: state == Ok(true), purged }
}

fn measured(id: &str) -> MeasuredAssessment {
    let trained = train_and_hold_out(&examples(), WeightSpelling::Snake, 1).expect("a policy");
    MeasuredAssessment {
        policy: Some(id.to_owned()),
        version: Some(1),
        profile_id: Some("pr-1".to_owned()),
        what: "this version".to_owned(),
        pairs: "what the cases of the bank pr-1 recalled".to_owned(),
        assessment: trained.held_out,
        all_pairs: None,
        purged: None,
        notes: vec!["3 references lead to cases that are gone".to_owned()],
    }
}

fn evaluation() -> Evaluation {
    let judged: Vec<GradedRanking> = (0..40)
        .map(|i| GradedRanking {
            ranked: vec![f64::from(u8::from(i % 3 == 0)), 1.0, 0.0, f64::from(u8::from(i % 2 == 0))],
            relevant: vec![1.0; 3],
        })
        .collect();
    let recalls: Vec<QueryRecall> = (0..20)
        .map(|i| QueryRecall {
            rows: (0..3)
                .map(|k| RecalledRow {
                    key: (Entity::Case, format!("ca-{}", (i + k) % 15)),
                    age_days: Some(f64::from(i * 6)),
                    bad: Some(i % 4 == 0),
                })
                .collect(),
            alike: vec![0.2, 0.97],
        })
        .collect();
    let mut accesses = AccessTally::new(scratch);
    for i in 0..30 {
        accesses.add(&TimedAccess {
            kind: ["cases", "retain"][i % 2],
            latency_ms: Some(i as f64),
            tokens: Some(300),
            rows: Some(4),
            policy_version: Some(1),
        });
    }
    Evaluation {
        kind: "case",
        rows: 120,
        with_vector: 100,
        ranking: "cases",
        policy: None,
        formula: "cosine; with a policy its bias + weight x feature",
        judged_by: "stored outcomes".to_owned(),
        quality: quality(&judged, 4, 1),
        self_retrieval: vec![SelfReturn { by: "text", n: 50, found: 50, share: Some(1.0) }],
        negative_controls: vec![NonsenseControl {
            by: "vector",
            n: 50,
            answered: 2,
            threshold: 0.5,
            highest: Some(0.53),
        }],
        spread: spread(&recalls, 120),
        tokens: TokenCounts { n: 50, budget: 1_000, mean: Some(640.0), whole: Some(812.5), over_budget: 9 },
        stored: Some(StoredRecalls {
            trail: accesses.close().expect("the sums"),
            hit_rate: estimate(&[1.0, 0.0, 1.0], 1),
            precision_at_k: estimate(&[0.5, 0.25], 1),
            spread: spread(&recalls, 120),
        }),
        notes: Vec::new(),
    }
}

fn at(keys: &str) -> Console {
    let mut console = Console::new(learned(), 180, 48);
    console.press(keys);
    console
}

#[test]
fn agents_are_listed_and_the_selected_one_is_studied() {
    let mut console = at("O");
    for text in
        ["Billing desk", "documented: quality", "as coded: readiness", "what people do with canvases", "closes quickly"]
    {
        console.shows(text);
    }
    console.press("G");
    console.shows("all agents");
    assert!(!console.text().contains("as coded"), "of all together there is no readiness");
    console.press("k enter");
    let before = console.text();
    console.press("pgdn");
    assert_ne!(console.text(), before, "what was found scrolls");
    console.press("pgdn*9");
    console.shows("mislead");
    assert!(!console.text().contains('\u{1b}'), "names do no harm");
    console.press("esc esc");
    console.shows("holds");
}

#[test]
fn another_selection_stops_what_was_asked() {
    let mut console = at("O");
    console.holding = true;
    console.press("j");
    let asked: Vec<_> =
        console.held.iter().filter(|e| matches!(e, Effect::Ask(_, Request::Study { .. }))).cloned().collect();
    let [Effect::Ask(ticket, Request::Study { question: StudyQuestion::Agent(id), masked: false })] = &asked[..] else {
        panic!("{asked:?}")
    };
    assert_eq!(id, "ag-2");
    console.reply(*ticket, Reply::Told(Entity::CanvasEvent, 4_000));
    console.shows("canvas event rows: 4,000");
    console.press("j");
    assert!(console.held.contains(&Effect::Cancel(*ticket)), "nobody waits for the first any more");
    console.reply(*ticket, Reply::Answer(Ok(answer(&StudyQuestion::Agents))));
    console.holding = false;
    console.answer();
    console.shows("all agents");
    assert!(!console.text().contains("reading"), "an answer that nobody waits for changes nothing");
}

#[test]
fn leaving_stops_what_is_being_read() {
    let mut console = Console::new(world(), 180, 48);
    console.holding = true;
    console.press("E");
    let asked = console
        .held
        .iter()
        .find_map(|e| if let Effect::Ask(ticket, Request::Study { .. }) = e { Some(*ticket) } else { None });
    console.press("esc");
    assert!(console.held.contains(&Effect::Cancel(asked.expect("a question"))));
}

#[test]
fn policies_show_weights_metrics_and_the_reliability_plot() {
    let mut console = at("L j");
    for text in [
        "agents use it",
        "10 of 40 training cases are gone, 25.0 %",
        "weights",
        "better than chance",
        "each feature alone",
    ] {
        console.shows(text);
    }
    console.press("enter pgdn*9");
    console.shows("versions of its bank");
    console.press("esc j");
    console.shows("no readable weights are stored");
    console.press("y c");
    assert!(console.asked.iter().any(|e| matches!(e, Effect::Copy(_, line) if line.contains("policy list"))));
}

#[test]
fn activating_is_a_change_like_any_other() {
    let mut console = at("L c a");
    console.shows("the console is read-only");
    assert!(!console.asked.iter().any(|e| matches!(e, Effect::Ask(_, Request::Plan(..)))));
}

#[test]
fn evaluation_shows_metrics_controls_and_latency() {
    let mut console = at("E");
    for text in
        ["hit rate", "precision@4", "with other numbers of rows", "50 of 50 rows come back", "2 of 50 get an answer"]
    {
        console.shows(text);
    }
    console.press("pgdn*9");
    console.shows("latency of the four stages");
    console.shows("none is recorded");
}

#[test]
fn what_cannot_be_answered_says_why() {
    let mut console = Console::new(learned(), 180, 48);
    console.failure =
        Some(RequestFailure::new("There are no policies to show", "made-up keeps no policies", "use another layout"));
    console.press("L");
    console.shows("made-up keeps no policies");
    console.failure = None;
    console.press("r");
    console.shows("versions");
    console.shows("po-2");
}

#[test]
fn what_the_database_does_not_hold_is_said_calmly_and_nothing_is_read() {
    let mut console = Console::new(world(), 180, 48);
    console.press("L");
    console.shows("made-up has no policy");
    console.hides("try again");
}

#[test]
fn the_first_policy_of_a_bank_is_trained_from_the_bank() {
    let mut database = learned();
    let bank = row(Entity::Profile, &[("id", json!("bank-1")), ("user_id", json!("ada@example.org"))]);
    database.rows.insert(Entity::Profile, vec![bank]);
    let mut console = Console::new(database, 180, 48);
    unlock(&mut console);
    console.press(": 'profiles' enter c t");
    let expected = Operation::TrainPolicy { bank: "bank-1".to_owned(), pairs: None, seed: TRAINING_SEED };
    assert_eq!(planned(&mut console).1, expected);
}

#[test]
fn masking_asks_again() {
    let mut console = at("O");
    console.holding = true;
    console.press("M");
    assert!(console.held.iter().any(|e| matches!(e, Effect::Ask(_, Request::Study { masked: true, .. }))));
}
