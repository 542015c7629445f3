//! The other backfills: each does what its rules say, and a second run finds nothing to do.

use std::ops::ControlFlow;

use mnemoscope::change::findings::{self, FindingNews, FindingRequest};
use mnemoscope::change::{self, undo};
use mnemoscope::demo;
use mnemoscope::job::backfill::{BackfillArguments, BackfillKind};
use mnemoscope::job::plan::{JobSettings, JobWish};
use mnemoscope::job::{self, JobEntry, JobOutcome, look};
use mnemoscope::store::Target;

use super::world::{World, author, on_both, open};
use crate::support::block_on;

/// A demo database: every entity, awkward rows included.
async fn demo_world() -> (World, tempfile::TempDir) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("demo.db");
    let options = demo::DemoOptions { episodes: 80, ..demo::DemoOptions::default() };
    demo::build(&path, &options, |_| {}).await.expect("the demo");
    let target = Target::File(path);
    let store = open(&target).await;
    mnemoscope::change::migrate::apply(&store, &author(), None).await.expect("our tables");
    (World::view(&target).await, folder)
}

/// Runs a backfill; its plan says beforehand what it does, and afterwards that nothing is left.
async fn run(world: &World, name: &str) -> JobOutcome {
    let job = BackfillKind::named(name).unwrap().job(&world.store).unwrap();
    let plan = look(&world.store, &*job).await.expect("a plan");
    let outcome = world.backfill(name, 7).await;
    assert!(outcome.is_complete(), "{name}: {:?}", outcome.checks);
    assert_eq!(outcome.counts, plan.counts, "{name}");
    let again = look(&world.store, &*job).await.expect("a plan");
    assert!(again.counts.is_empty(), "{name} again: {:?}", again.changes);
    outcome
}

#[test]
fn feedback_goes_to_the_episode_of_its_execution_with_its_mean() {
    block_on(async {
        for world in on_both(12).await {
            let list = if matches!(world.target, Target::File(_)) { "'[\"run-1\"]'" } else { "'[\"run-1\"]'::jsonb" };
            world
                .execute(&format!(
                    "UPDATE episodes SET execution_ids = {list} WHERE id IN ('ep-0000004', 'ep-0000008')"
                ))
                .await;
            world
                .execute(
                    "INSERT INTO agent_feedback (id, execution_id, user_id, kind, rating, created_at) VALUES \
                     ('fb-1', 'run-1', 'u', 'thumbs_up', NULL, '2026-01-01T02:10:00.000000Z'), \
                     ('fb-2', 'run-1', 'u', 'rating', 2, '2026-01-01T04:05:00.000000Z'), \
                     ('fb-3', 'run-1', 'u', 'thumbs_up', NULL, '2026-01-01T05:00:00.000000Z'), \
                     ('fb-4', 'run-9', 'u', 'thumbs_up', NULL, '2026-01-01T05:00:00.000000Z')",
                )
                .await;
            run(&world, "feedback-links").await;
            let said =
                world.texts("SELECT id || ' ' || coalesce(episode_id, '-') FROM agent_feedback ORDER BY id").await;
            assert_eq!(said, ["fb-1 ep-0000004", "fb-2 ep-0000008", "fb-3 ep-0000008", "fb-4 -"]);
            let scores = world
                .texts("SELECT CAST(feedback_score AS TEXT) FROM episodes WHERE feedback_score IS NOT NULL ORDER BY id")
                .await;
            let scores: Vec<f64> = scores.iter().map(|s| s.parse().unwrap()).collect();
            assert_eq!(scores, [1.0, 0.25]);
            // More of it is given later.
            world
                .execute(
                    "INSERT INTO agent_feedback (id, execution_id, user_id, kind, created_at) VALUES \
                     ('fb-0', 'run-1', 'u', 'thumbs_down', '2026-01-01T05:10:00.000000Z')",
                )
                .await;
            assert_eq!(left(&world, "feedback_not_linked").await, 1);
            run(&world, "feedback-links").await;
            assert_eq!(left(&world, "feedback_not_linked").await + left(&world, "aggregate_differs").await, 0);
            let listed = "SELECT replace(CAST(feedback_ids AS TEXT), ' ', '') FROM episodes WHERE id = 'ep-0000008'";
            assert_eq!(world.texts(listed).await, ["[\"fb-2\",\"fb-3\",\"fb-0\"]"]);
        }
    });
}

#[test]
fn a_reward_is_moved_by_the_feedback_of_all_episodes_that_recalled_the_case() {
    block_on(async {
        for world in on_both(12).await {
            let episode = |n: u32| {
                let score = if n % 10 < 7 { "1.0" } else { "-1.0" };
                format!("('of-{n}', 'a', '2026-01-01T00:00:00.000000Z', {score})")
            };
            let episodes: Vec<String> = (0..5_000).map(episode).collect();
            world
                .execute(&format!(
                    "INSERT INTO episodes (id, agent_id, started_at, feedback_score) VALUES {}; \
                     INSERT INTO agent_memory_profiles (id, user_id, agent_id) VALUES ('rp', 'u', 'a'); \
                     INSERT INTO agent_memory_cases (id, profile_id, user_id, agent_id, outcome) VALUES \
                     ('recalled', 'rp', 'u', 'a', 'partial'), ('never', 'rp', 'u', 'a', 'partial'); \
                     INSERT INTO episode_memories (episode_id, memory_id) SELECT id, 'recalled' FROM episodes \
                     WHERE id LIKE 'of-%'",
                    episodes.join(", ")
                ))
                .await;
            run(&world, "rewards").await;
            let rewards =
                "SELECT CAST(reward AS TEXT) FROM agent_memory_cases WHERE id IN ('never', 'recalled') ORDER BY id";
            let rewards: Vec<f64> = world.texts(rewards).await.iter().map(|reward| reward.parse().unwrap()).collect();
            // The mean of 3,500 times 1 and 1,500 times -1 is 0.4.
            assert_eq!(rewards, [0.5, 0.6]);
        }
    });
}

#[test]
fn every_backfill_of_a_native_database_does_its_work_and_then_has_none() {
    block_on(async {
        let (world, _folder) = demo_world().await;
        for sql in [
            "UPDATE episodes SET metadata = NULL WHERE rowid % 3 = 0",
            "UPDATE episodes SET utility = 0.99, canvas_action_count = 77 WHERE rowid % 5 = 0",
            "UPDATE agent_memory_cases SET reward = NULL, message_hash = NULL WHERE rowid % 2 = 0",
            "UPDATE episode_segments SET content = content || ' ghp_abcdefghijklmnopqrstuvwxyz0123456789' WHERE rowid % 9 = 0",
            "DELETE FROM episodes WHERE rowid % 4 = 0",
        ] {
            world.execute(sql).await;
        }
        for name in ["aggregates", "utility", "episodes-from-events", "metadata", "rewards", "hashes", "secrets"] {
            let outcome = run(&world, name).await;
            assert!(!outcome.counts.is_empty(), "{name} had something to do");
        }
        world
            .execute(
                "INSERT INTO episodes (id, agent_id, started_at, ended_at) VALUES \
                 ('pa-1', 'pa', '2026-01-01T00:00:00.000000Z', '2026-01-01T01:00:00.000000Z'), \
                 ('pa-2', 'pa', '2026-01-02T00:00:00.000000Z', '2026-01-02T01:00:00.000000Z'), \
                 ('pa-3', 'pb', '2026-01-02T02:00:00.000000Z', '2026-01-02T03:00:00.000000Z'); \
                 INSERT INTO episode_embeddings (episode_id, embedding) VALUES ('pa-1', x'0000803F0000803F'), \
                 ('pa-2', x'0000803F0000803F'), ('pa-3', x'0000803F0000803F')",
            )
            .await;
        run(&world, "parents").await;
        let parents = "SELECT id || ' ' || coalesce(parent_id, '-') FROM episodes WHERE id LIKE 'pa-%' ORDER BY id";
        assert_eq!(world.texts(parents).await, ["pa-1 -", "pa-2 pa-1", "pa-3 -"]);
        let left = world.texts("SELECT id FROM episode_segments WHERE content LIKE '%ghp_abc%'").await;
        assert!(left.is_empty(), "{left:?}");
        let trail = world.texts("SELECT value FROM memory_audit_private WHERE value LIKE '%ghp_abc%'").await;
        assert!(trail.is_empty(), "a secret is in the trail");
        let words = world.texts("SELECT metadata FROM episodes WHERE metadata IS NULL AND id NOT LIKE 'pa-%'").await;
        assert!(words.is_empty(), "what has nothing to read gets an empty object");
        assert!(mnemoscope::change::audit::verify(&world.store, &[]).await.unwrap().ok);
    });
}

/// Counts the rows of one kind of finding that a backfill can fix.
async fn left(world: &World, kind: &'static str) -> u64 {
    let mut count = 0;
    let wanted = FindingRequest { kind: Some(kind), examples: 9, brief: None, ..FindingRequest::default() };
    let mut told = |told: FindingNews| {
        if let FindingNews::Found(finding) = told
            && finding.remedy.starts_with("backfill")
        {
            count += finding.count;
        }
        ControlFlow::Continue(())
    };
    findings::look(&world.store, &wanted, &mut told).await.expect("a look");
    count
}

#[test]
fn links_and_texts_that_findings_name_are_mended_and_that_can_be_taken_back() {
    block_on(async {
        let (world, _folder) = demo_world().await;
        let refers = "UPDATE agent_memory_cases SET reference_case_ids = '[\"gone\"]' WHERE rowid = 1";
        world.execute(refers).await;
        let all = "SELECT hex(id || coalesce(canvas_ids, '') || coalesce(title, '')) FROM episodes ORDER BY id";
        let before = world.texts(all).await;
        let mut entries = Vec::new();
        for (name, kinds) in [
            ("links", &["dangling_id", "repeated_id", "dangling_reference"][..]),
            ("hidden-characters", &["hidden_characters"]),
        ] {
            for kind in kinds {
                assert!(left(&world, kind).await > 0, "{kind} is there to be fixed");
            }
            entries.push(run(&world, name).await.entries.expect("entries"));
            for kind in kinds {
                assert_eq!(left(&world, kind).await, 0, "{kind}");
            }
        }
        assert_ne!(world.texts(all).await, before);
        for (first, last) in entries.into_iter().rev() {
            for seq in (first..=last).rev() {
                let plan = undo::undo(&world.store, seq).await.expect("it can be undone");
                change::apply(&world.store, &plan, &author()).await.expect("undone");
            }
        }
        assert_eq!(world.texts(all).await, before);
    });
}

#[test]
fn where_asked_feedback_gives_the_signals_that_an_episode_lacks() {
    block_on(async {
        for world in on_both(6).await {
            world
                .execute(
                    "INSERT INTO agent_feedback (id, episode_id, user_id, kind, rating, correction, created_at) VALUES \
                     ('fb-1', 'ep-0000001', 'u', 'thumbs_down', NULL, NULL, '2026-01-03T00:00:00.000000Z'), \
                     ('fb-2', 'ep-0000001', 'u', 'rating', 5, NULL, '2026-01-02T00:00:00.000000Z'), \
                     ('fb-3', 'ep-0000001', 'u', 'rating', 3, NULL, '2026-01-02T12:00:00.000000Z'), \
                     ('fb-4', 'ep-0000002', 'u', 'correction', NULL, 'rather so', '2026-01-02T00:00:00.000000Z'), \
                     ('fb-5', 'ep-0000003', 'u', 'thumbs_up', NULL, NULL, '2026-01-02T00:00:00.000000Z'); \
                     INSERT INTO utility_events (id, episode_id, signal, delta, before, after, created_at) VALUES \
                     ('ut-1', 'ep-0000003', 'undone', -0.4, 0.5, 0.1, '2026-01-02T00:00:00.000000Z')",
                )
                .await;
            let kind = BackfillKind::named("utility").unwrap();
            let plain = look(&world.store, &*kind.job(&world.store).unwrap()).await.expect("a plan");
            assert_eq!(plain.counts["episodes"]["update"], 1, "without being asked it derives nothing");
            let given = BackfillArguments { from_feedback: true, ..BackfillArguments::default() };
            let job = kind.job_as(&world.store, &given).unwrap();
            let plan = look(&world.store, &*job).await.expect("a plan");
            assert!(plan.effects.iter().any(|e| e.contains("`confirmed`") && e.contains("a 3 says nothing")));
            let (_wish, heard) = tokio::sync::watch::channel(JobWish::GoOn);
            let settings = JobSettings { batch: Some(2), ..JobSettings::default() };
            let outcome = job::run(&world.store, &*job, &author(), &settings, JobEntry::Begin, heard, &mut |_| ())
                .await
                .expect("done");
            assert!(outcome.is_complete(), "{:?}", outcome.checks);
            assert_eq!(outcome.counts, plan.counts);
            let said = "SELECT episode_id || ' ' || signal || ' ' || coalesce(reason, '-') FROM utility_events ORDER BY episode_id, created_at";
            assert_eq!(
                world.texts(said).await,
                [
                    "ep-0000001 confirmed derived from feedback fb-2",
                    "ep-0000001 rejected derived from feedback fb-1",
                    "ep-0000002 corrected derived from feedback fb-4",
                    "ep-0000003 undone -",
                ]
            );
            let utilities = "SELECT CAST(utility AS TEXT) FROM episodes WHERE id < 'ep-0000004' ORDER BY id";
            let utilities: Vec<f64> = world.texts(utilities).await.iter().map(|u| u.parse().unwrap()).collect();
            let expected = [0.5 + 0.2 - 0.3, 0.4, 0.1];
            assert!(utilities.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-9), "{utilities:?}");
            for job in [kind.job(&world.store).unwrap(), job] {
                let again = look(&world.store, &*job).await.expect("a plan");
                assert!(again.counts.is_empty(), "{:?}", again.changes);
            }
        }
    });
}
