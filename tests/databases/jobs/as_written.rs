//! Data that backfills leave alone: columns that they do not fill, unreadable lists, rows listed by others.

use mnemoscope::change::{self, undo};
use mnemoscope::job::plan::{JobSettings, JobWish};
use mnemoscope::job::{self, JobEntry, JobOutcome, backfill::BackfillKind};
use mnemoscope::memory::Entity;
use tokio::sync::watch;

use super::world::on_both;
use crate::support::block_on;
use crate::support::fixtures::Layout;
use crate::support::world::{self, World, author, dump, meddle};

/// Runs a backfill on a database of another system, a row a batch.
async fn backfill(world: &World, name: &str) -> JobOutcome {
    let job = BackfillKind::named(name).expect("a backfill").job(&world.store).expect("it can be done here");
    let (_wish, heard) = watch::channel(JobWish::GoOn);
    let settings = JobSettings { batch: Some(1), ..JobSettings::default() };
    job::run(&world.store, &*job, &author(), &settings, JobEntry::Begin, heard, &mut |_| ())
        .await
        .unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn taken_back_every_row_of_another_system_is_what_it_was() {
    block_on(async {
        for layout in [Layout::Atom, Layout::Atom2026] {
            for world in [Some(world::on_sqlite(layout).await), world::on_postgres(layout).await].into_iter().flatten()
            {
                let episodes = if layout == Layout::Atom { "agent_episodes" } else { "episodes" };
                meddle(&world, &format!("UPDATE {episodes} SET updated_at = '2026-01-02 03:04:05.678901'")).await;
                let before = dump(&world).await;
                let mut entries = Vec::new();
                for name in ["canvas-links", "feedback-links", "aggregates"] {
                    entries.extend(backfill(&world, name).await.entries);
                }
                let after = dump(&world).await;
                assert_ne!(after, before, "something was linked");
                let stamp = "2026-01-02 03:04:05.678901";
                let hex = hex::encode_upper(stamp);
                for row in &after[episodes] {
                    assert!(row.contains(stamp) || row.contains(&hex), "the time of the last change moved: {row}");
                }
                for (first, last) in entries.into_iter().rev() {
                    for seq in (first..=last).rev() {
                        let plan = undo::undo(&world.store, seq).await.expect("it can be undone");
                        change::apply(&world.store, &plan, &author()).await.expect("undone");
                    }
                }
                assert_eq!(dump(&world).await, before, "{layout:?}");
            }
        }
    });
}

#[test]
fn a_list_that_cannot_be_read_leaves_count_and_score_as_they_are() {
    block_on(async {
        for world in on_both(3).await {
            world.execute("DELETE FROM canvas_audit").await;
            for (id, canvas, feedback) in [(1, "\"ca-1\"", "[]"), (2, "[]", "{\"a\": 1}"), (3, "7", "\"fb\"")] {
                let set = format!(
                    "UPDATE episodes SET canvas_ids = '{canvas}', feedback_ids = '{feedback}', canvas_action_count = 4, \
                     feedback_score = 0.5 WHERE id = 'ep-000000{id}'"
                );
                world.execute(&set).await;
            }
            let outcome = world.backfill("aggregates", 2).await;
            let counts = "SELECT CAST(canvas_action_count AS TEXT) FROM episodes ORDER BY id";
            assert_eq!(world.texts(counts).await, ["4", "0", "4"]);
            let scores = "SELECT coalesce(CAST(feedback_score AS TEXT), '-') FROM episodes ORDER BY id";
            assert_eq!(world.texts(scores).await, ["-", "0.5", "0.5"]);
            let told = outcome.effects.iter().any(|e| e.starts_with("1 row is left unchanged: the deciding value"));
            assert!(told, "{:?}", outcome.effects);
        }
    });
}

#[test]
fn feedback_that_an_episode_of_another_execution_lists_still_goes_to_its_own() {
    block_on(async {
        for world in on_both(2).await {
            for sql in [
                "UPDATE episodes SET execution_ids = '[\"run-1\"]', feedback_ids = '[\"fb-2\"]' WHERE id = 'ep-0000001'",
                "UPDATE episodes SET execution_ids = '[\"run-2\"]', feedback_ids = '[]' WHERE id = 'ep-0000002'",
                "INSERT INTO agent_feedback (id, execution_id, user_id, kind, created_at) VALUES \
                 ('fb-1', 'run-1', 'u', 'thumbs_up', '2026-01-01T00:00:00.000000Z'), \
                 ('fb-2', 'run-2', 'u', 'thumbs_up', '2026-01-01T00:00:00.000000Z')",
            ] {
                world.execute(sql).await;
            }
            // A third names both executions, so that one batch reads the lists of all.
            world
                .execute(
                    "INSERT INTO episodes (id, execution_ids, feedback_ids, started_at) VALUES \
                     ('ep-0000003', '[\"run-1\", \"run-3\"]', '[]', '2027-01-01T00:00:00.000000Z')",
                )
                .await;
            world.backfill("feedback-links", 100).await;
            let linked = "SELECT id || ' ' || CAST(feedback_ids AS TEXT) FROM episodes ORDER BY id";
            let linked: Vec<String> = world.texts(linked).await;
            assert_eq!(linked[1], "ep-0000002 [\"fb-2\"]", "{linked:?}");
        }
    });
}

#[test]
fn an_episode_stored_back_into_a_log_is_its_run_of_the_time_when_that_began() {
    block_on(async {
        let sqlite = Some(world::on_sqlite(Layout::Pyworkflow).await);
        for world in [sqlite, world::on_postgres(Layout::Pyworkflow).await].into_iter().flatten() {
            backfill(&world, "episodes-from-events").await;
            let mut found = 0;
            for run in world::ids(&world, Entity::Episode).await {
                let run = [run];
                let log = world.store.related(Entity::WorkflowEvent, "run_id", &run).await.expect("its log");
                let episode = world.store.row(Entity::Episode, &run[0]).await.expect("an answer").expect("the run");
                for event in log.iter().filter(|event| event.text("kind") == Some("episode_created")) {
                    assert_eq!(event.get("data")["episode_id"], run[0].as_str());
                    assert_eq!(&event.get("data")["timestamp"], episode.get("started_at"));
                    found += 1;
                }
            }
            assert!(found > 0, "some run has ended");
        }
    });
}
