//! People who were erased: no backfill brings them back, and what is left out for that is counted.

use mnemoscope::job::{backfill::BackfillKind, look};
use serde_json::json;

use super::world::{World, on_both};
use crate::support::block_on;

/// Returns what a backfill would do and its words on the rows that it leaves out, and checks that the run does the
/// same.
async fn left_out(world: &World, name: &str) -> (String, String) {
    let job = BackfillKind::named(name).unwrap().job(&world.store).expect("it can be done");
    let plan = look(&world.store, &*job).await.expect("a plan");
    let outcome = world.backfill(name, 7).await;
    assert!(outcome.is_complete(), "{name}: {:?}", outcome.checks);
    assert_eq!(outcome.counts, plan.counts, "{name}");
    let said = |effects: &[String]| effects.iter().find(|e| e.contains("erased here")).cloned().unwrap_or_default();
    assert_eq!(said(&outcome.effects), said(&plan.effects), "{name}");
    (json!(outcome.counts).to_string(), said(&outcome.effects))
}

#[test]
fn their_episodes_and_events_are_not_linked_again() {
    block_on(async {
        for world in on_both(30).await {
            world.execute("UPDATE episodes SET user_id = 'anna@example.org' WHERE id = 'ep-0000007'").await;
            // Someone else's episode, and one event of it that is hers.
            world.execute("UPDATE canvas_audit SET user_id = 'Anna@example.org' WHERE id = 'ca-2-1'").await;
            let world = world.erased("anna@example.org").await;
            let (_, said) = left_out(&world, "canvas-links").await;
            assert!(said.starts_with("1 row is left unchanged"), "{said}");
            let links = world.links().await;
            assert!(links.iter().any(|l| l.starts_with("ep-0000007 - ")), "{links:?}");
            assert!(links.iter().any(|l| l == "ca-2-1 -"), "{links:?}");
            let other = links.iter().find(|l| l.starts_with("ep-0000002 ")).cloned().unwrap_or_default();
            assert_eq!(other, "ep-0000002 [\"ca-2-2\"] 1");
        }
    });
}

#[test]
fn their_runs_become_no_episodes_and_texts_that_name_them_no_metadata() {
    block_on(async {
        for world in on_both(10).await {
            let data = |user: &str| format!("{{\"workflow_name\": \"w\", \"user_id\": \"{user}\"}}");
            let is_postgres = matches!(world.target, mnemoscope::store::Target::Postgres(_));
            let cast = if is_postgres { "::jsonb" } else { "" };
            for (run, user) in [("run-a", "anna@example.org"), ("run-b", "bert@example.org")] {
                world
                    .execute(&format!(
                        "INSERT INTO workflow_events (id, run_id, sequence, kind, data, created_at) VALUES \
                         ('{run}-1', '{run}', 1, 'workflow.started', '{}'{cast}, '2026-02-01T00:00:00.000000Z'), \
                         ('{run}-2', '{run}', 2, 'workflow.completed', '{{}}'{cast}, '2026-02-01T00:01:00.000000Z')",
                        data(user)
                    ))
                    .await;
            }
            world
                .execute(
                    "UPDATE episodes SET detail = 'Invoice sent to anna@example.org by mail' WHERE id = 'ep-0000004'; \
                     UPDATE episodes SET user_id = 'anna@example.org' WHERE id = 'ep-0000005'",
                )
                .await;
            let world = world.erased("anna@example.org").await;
            let (counts, said) = left_out(&world, "episodes-from-events").await;
            assert_eq!(counts, "{\"episodes\":{\"insert\":1}}");
            assert!(said.starts_with("1 row is"), "{said}");
            let hers = world
                .texts("SELECT id FROM episodes WHERE user_id = 'anna@example.org' AND id NOT LIKE 'ep-00%'")
                .await;
            assert!(hers.is_empty(), "{hers:?}");
            let (_, said) = left_out(&world, "metadata").await;
            assert!(said.contains("left unchanged"), "{said}");
            let left = world.texts("SELECT id FROM episodes WHERE metadata IS NULL ORDER BY id").await;
            assert!(left.contains(&"ep-0000005".to_owned()), "{left:?}");
            let named = world.texts("SELECT id FROM episodes WHERE CAST(metadata AS TEXT) LIKE '%anna@%'").await;
            assert!(named.is_empty(), "{named:?}");
        }
    });
}
