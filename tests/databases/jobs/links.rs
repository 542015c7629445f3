//! Linking by session: which episodes get which events.

use mnemoscope::change::plan::Counts;
use mnemoscope::change::{self, undo};
use mnemoscope::job::plan::{JobBeat, JobWish};
use mnemoscope::job::{backfill::BackfillKind, look};
use mnemoscope::store::Target;

use tokio::sync::watch;

use super::world::{author, on_both};
use crate::support::{block_on, block_on_aside};

#[test]
fn each_event_goes_to_one_episode_and_what_is_linked_stays() {
    block_on(async {
        for world in on_both(60).await {
            let before = world.links().await;
            let job = BackfillKind::named("canvas-links").unwrap().job(&world.store).unwrap();
            let plan = look(&world.store, &*job).await.expect("a plan");
            let outcome = world.backfill("canvas-links", 7).await;
            assert!(outcome.is_complete(), "{:?}", outcome.checks);
            assert_eq!(outcome.counts, plan.counts, "the plan's counts are those of the receipt");
            let after = world.links().await;
            // Session 8 has two episodes: 8 of 04:00 to 04:20 and 9 of 04:30 to 04:50. Episode 8 is open, 9 is filled.
            let open = |line: &&String| line.starts_with("ep-0000008 ");
            assert!(after.iter().any(|l| open(&l) && l.contains("[]")), "8 % 4 = 0: it has no events");
            assert!(after.iter().any(|l| l.starts_with("ep-0000009 [\"kept-9\"] 1")), "a filled list stays");
            assert!(after.iter().any(|l| l == "ca-9-1 -"), "its event belongs to a filled episode, and goes to nobody");
            // Session 28: 28 is open without events of its own, and 29 % 3 = 2: both open, the event of 29 goes to 29.
            let listed = |id: &str, wanted: &str| {
                let line = after.iter().find(|l| l.starts_with(id)).cloned().unwrap_or_default().replace(", ", ",");
                assert_eq!(line, format!("{id} {wanted}"));
            };
            listed("ep-0000029", "[\"ca-29-1\"] 1");
            listed("ep-0000002", "[\"ca-2-1\",\"ca-2-2\"] 2");
            listed("ep-0000007", "[\"ca-7-1\",\"ca-7-2\",\"ca-7-3\"] 3");
            assert!(after.iter().any(|l| l == "ca-2-1 ep-0000002"));
            // Linked ones to the byte as they were.
            for line in before.iter().filter(|l| l.contains("kept-")) {
                assert!(after.contains(line), "{line}");
            }
            let again = look(&world.store, &*job).await.expect("a plan");
            assert!(again.counts.is_empty(), "{:?}", again.counts);
        }
    });
}

/// A session of six open episodes, an hour each, with two events in each hour.
const LONG_SESSION: &str = "INSERT INTO episodes (id, agent_id, user_id, session_id, started_at, ended_at) VALUES \
     ('lo-1', 'a', 'u', 'long', '2026-01-01T01:00:00Z', '2026-01-01T01:59:00Z'), \
     ('lo-2', 'a', 'u', 'long', '2026-01-01T02:00:00Z', '2026-01-01T02:59:00Z'), \
     ('lo-3', 'a', 'u', 'long', '2026-01-01T03:00:00Z', '2026-01-01T03:59:00Z'), \
     ('lo-4', 'a', 'u', 'long', '2026-01-01T04:00:00Z', '2026-01-01T04:59:00Z'), \
     ('lo-5', 'a', 'u', 'long', '2026-01-01T05:00:00Z', '2026-01-01T05:59:00Z'), \
     ('lo-6', 'a', 'u', 'long', '2026-01-01T06:00:00Z', '2026-01-01T06:59:00Z')";

fn event(id: &str, hour: u32) -> String {
    format!(
        "INSERT INTO canvas_audit (id, session_id, canvas_id, canvas_type, action, created_at) \
         VALUES ('{id}', 'long', 'c', 'form', 'present', '2026-01-01T0{hour}:30:00Z')"
    )
}

#[test]
fn what_comes_into_a_long_session_between_two_batches_is_linked_too() {
    block_on(async {
        for world in on_both(0).await {
            world.execute(LONG_SESSION).await;
            for hour in 1..=6 {
                world.execute(&event(&format!("ev-{hour}"), hour)).await;
            }
            let mut late = Some(event("late", 5));
            let mut each = |beat: JobBeat| {
                if let JobBeat::Progress(progress) = beat
                    && progress.batches > 0
                    && let Some(sql) = late.take()
                {
                    block_on_aside(world.execute(&sql));
                }
            };
            let (_wish, heard) = watch::channel(JobWish::GoOn);
            let outcome = world.backfill_while("canvas-links", 1, heard, &mut each).await.expect("it ends");
            assert!(outcome.is_complete(), "{:?}", outcome.checks);
            let links = world.links().await;
            let line = |start: &str| links.iter().find(|l| l.starts_with(start)).unwrap().replace(", ", ",");
            assert_eq!(line("lo-4 "), "lo-4 [\"ev-4\"] 1");
            assert_eq!(line("lo-5 "), "lo-5 [\"ev-5\",\"late\"] 2");
            assert_eq!(line("late "), "late lo-5");
        }
    });
}

/// More events of one episode than a batch links.
const WIDE_SESSION: &str = "INSERT INTO episodes (id, agent_id, user_id, session_id, started_at) VALUES \
     ('wide', 'a', 'u', 'wide', '2026-01-01T01:00:00Z'), ('wife', 'a', 'u', 'other', '2026-01-01T01:00:00Z'); \
     WITH RECURSIVE c(n) AS (SELECT 10001 UNION ALL SELECT n + 1 FROM c WHERE n < 30005) \
     INSERT INTO canvas_audit (id, session_id, canvas_id, canvas_type, action, created_at) \
     SELECT 'ev-' || n, 'wide', 'c', 'form', 'present', '2026-01-01T02:00:00Z' FROM c";

#[test]
fn very_many_events_of_an_episode_are_linked_by_several_batches_and_listed_by_the_last() {
    block_on(async {
        for world in on_both(0).await {
            world.execute(WIDE_SESSION).await;
            let job = BackfillKind::named("canvas-links").unwrap().job(&world.store).unwrap();
            let plan = look(&world.store, &*job).await.expect("a plan");
            // What comes late is before all that were linked by then.
            let mut late = Some(
                "INSERT INTO canvas_audit (id, session_id, canvas_id, canvas_type, action, created_at) \
                 VALUES ('late', 'wide', 'c', 'form', 'present', '2026-01-01T01:30:00Z')",
            );
            let mut each = |beat: JobBeat| {
                if let JobBeat::Progress(progress) = beat
                    && progress.batches > 0
                    && let Some(sql) = late.take()
                {
                    block_on_aside(world.execute(sql));
                }
            };
            let (_wish, heard) = watch::channel(JobWish::GoOn);
            let outcome = world.backfill_while("canvas-links", 1, heard, &mut each).await.expect("it ends");
            assert!(outcome.is_complete(), "{:?}", outcome.checks);
            let (first, last) = outcome.entries.expect("entries");
            assert!(last > first, "several batches");
            let of = |counts: &Counts, table: &str| counts[table]["update"];
            let planned = (of(&plan.counts, "canvas_audit"), of(&plan.counts, "episodes"));
            let done = (of(&outcome.counts, "canvas_audit"), of(&outcome.counts, "episodes"));
            assert_eq!((planned.0 + 1, planned.1), done, "and what came late");
            let links = world.links().await;
            let list = links.iter().find(|line| line.starts_with("wide ")).unwrap().replace(", ", ",");
            assert!(list.starts_with("wide [\"late\",\"ev-10001\",\"ev-10002\"") && list.ends_with(" 20006"));
            assert_eq!(links.iter().filter(|line| line.ends_with(" wide")).count(), 20_006);
        }
    });
}

#[test]
fn every_batch_is_an_entry_and_taking_all_back_restores_every_byte() {
    block_on(async {
        for world in on_both(60).await {
            let before = world.links().await;
            let outcome = world.backfill("canvas-links", 9).await;
            let (first, last) = outcome.entries.expect("entries");
            assert!(last > first, "several batches");
            let entries = world
                .texts("SELECT CAST(count(*) AS TEXT) FROM memory_audit WHERE action = 'backfill.canvas-links'")
                .await;
            assert_eq!(entries, [(last - first + 1).to_string()]);
            for seq in (first..=last).rev() {
                let plan = undo::undo(&world.store, seq).await.expect("it can be undone");
                change::apply(&world.store, &plan, &author()).await.expect("undone");
            }
            assert_eq!(world.links().await, before);
            assert!(change::audit::verify(&world.store, &[]).await.expect("a trail").ok);
        }
    });
}

#[test]
fn a_batch_on_which_somebody_built_is_not_undone() {
    block_on(async {
        for world in on_both(30).await {
            let outcome = world.backfill("canvas-links", 100).await;
            let (seq, _) = outcome.entries.expect("entries");
            world.execute("UPDATE canvas_audit SET episode_id = 'ep-0000005' WHERE id = 'ca-2-1'").await;
            let refused = undo::undo(&world.store, seq).await;
            let words = refused.expect_err("it moved").to_string();
            assert!(words.contains("ca-2-1") && words.contains("cannot be undone"), "{words}");
        }
    });
}

/// Two episodes of two people at the same time in one session and of one execution, and one of a third alone.
const SHARED: &str = "INSERT INTO episodes (id, agent_id, user_id, session_id, execution_ids, started_at, ended_at) VALUES \
       ('ep-ann', 'a', 'ann', 'both', '[\"run\"]', '2026-01-01T10:00:00Z', '2026-01-01T12:00:00Z'), \
       ('ep-bob', 'a', 'bob', 'both', '[\"run\"]', '2026-01-01T10:30:00Z', '2026-01-01T11:30:00Z'), \
       ('ep-cat', 'a', 'cat', 'alone', '[\"other\"]', '2026-01-01T10:00:00Z', '2026-01-01T12:00:00Z'); \
     INSERT INTO canvas_audit (id, session_id, user_id, canvas_id, canvas_type, action, created_at) VALUES \
       ('ev-ann', 'both', 'ann', 'c', 'form', 'present', '2026-01-01T11:00:00Z'), \
       ('ev-bob', 'both', 'bob', 'c', 'form', 'present', '2026-01-01T11:00:00Z'), \
       ('ev-early', 'both', 'bob', 'c', 'form', 'present', '2026-01-01T10:15:00Z'), \
       ('ev-zed', 'both', 'zed', 'c', 'form', 'present', '2026-01-01T11:00:00Z'), \
       ('ev-cat', 'alone', 'cat', 'c', 'form', 'present', '2026-01-01T11:00:00Z'), \
       ('ev-before', 'alone', 'cat', 'c', 'form', 'present', '2020-01-01T11:00:00Z'), \
       ('ev-dan', 'alone', 'dan', 'c', 'form', 'present', '2026-01-01T11:00:00Z'); \
     INSERT INTO agent_feedback (id, execution_id, user_id, kind, created_at) VALUES \
       ('fb-ann', 'run', 'ann', 'thumbs_up', '2026-01-01T11:00:00Z'), \
       ('fb-bob', 'run', 'bob', 'thumbs_up', '2026-01-01T13:00:00Z'), \
       ('fb-early', 'run', 'bob', 'thumbs_up', '2026-01-01T10:15:00Z'), \
       ('fb-zed', 'run', 'zed', 'thumbs_up', '2026-01-01T11:00:00Z'), \
       ('fb-dan', 'other', 'dan', 'thumbs_up', '2026-01-01T11:00:00Z')";

#[test]
fn the_own_user_of_a_row_decides_which_episode_gets_it() {
    block_on(async {
        for world in on_both(0).await {
            world.execute(SHARED).await;
            // Episodes of one session and of one execution are in batches of their own.
            for backfill in ["canvas-links", "feedback-links"] {
                assert!(world.backfill(backfill, 1).await.is_complete());
            }
            let events = world
                .texts(
                    "SELECT id || ' ' || coalesce(episode_id, '-') FROM canvas_audit WHERE id LIKE 'ev-%' ORDER BY id",
                )
                .await;
            let told = ["ann ep-ann", "before -", "bob ep-bob", "cat ep-cat", "dan -", "early -", "zed -"];
            assert_eq!(events, told.map(|row| format!("ev-{row}")));
            let said =
                world.texts("SELECT id || ' ' || coalesce(episode_id, '-') FROM agent_feedback WHERE id LIKE 'fb-%' ORDER BY id").await;
            // Others than the users of episodes may rate a run.
            let told = ["ann ep-ann", "bob ep-bob", "dan ep-cat", "early -", "zed ep-bob"];
            assert_eq!(said, told.map(|row| format!("fb-{row}")));
        }
    });
}

#[test]
fn links_are_mended_without_taking_any_row_from_another_episode() {
    block_on(async {
        for world in on_both(12).await {
            let json = |list: &str| match world.target {
                Target::File(_) => format!("'{list}'"),
                Target::Postgres(_) => format!("'{list}'::jsonb"),
            };
            for (episode, list) in [
                // Repeats one, names one that is not there; nothing points back.
                ("ep-0000001", "[\"ca-1-1\", \"gone\", \"ca-1-1\"]"),
                // Both name the same event: who owns it nobody can tell.
                ("ep-0000002", "[\"ca-2-1\", \"ca-2-2\"]"),
                ("ep-0000003", "[\"ca-2-1\"]"),
                // What it names points back to another one, which does not list it.
                ("ep-0000005", "[\"ca-6-1\"]"),
                ("ep-0000006", "[\"ca-10-1\"]"),
                // An empty list, whose session has events.
                ("ep-0000011", "[]"),
            ] {
                world.execute(&format!("UPDATE episodes SET canvas_ids = {} WHERE id = '{episode}'", json(list))).await;
            }
            world.execute("UPDATE canvas_audit SET episode_id = 'ep-0000006' WHERE id IN ('ca-6-1', 'ca-6-2')").await;
            world.execute("UPDATE canvas_audit SET episode_id = 'ep-0000011' WHERE id = 'ca-11-1'").await;
            world.execute("UPDATE episodes SET canvas_action_count = 9 WHERE id IN ('ep-0000001', 'ep-0000006')").await;
            let outcome = world.backfill("links", 3).await;
            assert!(outcome.is_complete(), "{:?}", outcome.checks);
            let after = world.links().await;
            for line in [
                "ca-1-1 ep-0000001", "ca-2-1 -", "ca-2-2 ep-0000002", "ca-6-1 ep-0000006", "ca-10-1 ep-0000006",
                "ca-10-2 -",
            ] {
                assert!(after.iter().any(|l| l == line), "{line} in {after:?}");
            }
            for (episode, list) in [
                // The count follows the list.
                ("ep-0000001", "[\"ca-1-1\"] 1"),
                ("ep-0000002", "[\"ca-2-1\",\"ca-2-2\"]"),
                ("ep-0000003", "[\"ca-2-1\"]"),
                ("ep-0000005", "[\"ca-6-1\"]"),
                ("ep-0000006", "[\"ca-10-1\",\"ca-6-2\"] 2"),
                ("ep-0000011", "[]"),
                ("ep-0000007", "-"),
                ("ep-0000009", "[]"),
            ] {
                let line =
                    after.iter().find(|l| l.starts_with(episode)).cloned().unwrap_or_default().replace(", ", ",");
                assert!(format!("{line} ").starts_with(&format!("{episode} {list} ")), "{line}, wanted {list}");
            }
            let mut told = outcome.effects.iter().chain(&outcome.disclosures);
            assert!(told.any(|line| line.contains("although another one lists it")), "{:?}", outcome.effects);
            let job = BackfillKind::named("links").unwrap().job(&world.store).unwrap();
            let again = look(&world.store, &*job).await.expect("a plan");
            assert!(again.counts.is_empty(), "{:?}", again.changes);
        }
    });
}

#[test]
fn an_event_that_an_episode_of_another_session_lists_goes_to_nobody_else() {
    block_on(async {
        for world in on_both(0).await {
            let json = |list: &str| match world.target {
                Target::File(_) => format!("'{list}'"),
                Target::Postgres(_) => format!("'{list}'::jsonb"),
            };
            world
                .execute(&format!(
                    "INSERT INTO episodes (id, agent_id, user_id, session_id, started_at, canvas_ids) VALUES \
                       ('open', 'a', 'ann', 'one', '2026-01-01T10:00:00Z', NULL), \
                       ('lists', 'a', 'bob', 'two', '2026-01-01T10:00:00Z', {}); \
                     INSERT INTO canvas_audit (id, session_id, canvas_id, canvas_type, action, created_at) VALUES \
                       ('taken', 'one', 'c', 'form', 'present', '2026-01-01T11:00:00Z'), \
                       ('free', 'one', 'c', 'form', 'present', '2026-01-01T11:00:00Z')",
                    json("[\"taken\"]")
                ))
                .await;
            assert!(world.backfill("canvas-links", 10).await.is_complete());
            let links: Vec<String> = world.links().await.iter().map(|line| line.replace(", ", ",")).collect();
            for line in ["open [\"free\"] 1", "free open", "taken -"] {
                assert!(links.iter().any(|l| l == line), "{line} in {links:?}");
            }
            assert!(world.backfill("links", 10).await.is_complete());
            assert!(world.links().await.iter().any(|line| line == "taken lists"));
        }
    });
}
