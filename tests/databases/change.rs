//! Changes with a plan: what is written, that it can be taken back to the byte, that nothing is written by halves, and
//! that the audit trail shows tampering. On each layout that can hold feedback, on both engines.

use std::collections::{BTreeMap, BTreeSet};

use crate::support::block_on;
use crate::support::fixtures::{Layout, build_sqlite};
use crate::support::postgres::Database;
use crate::support::world::*;
use mnemoscope::change::operation::{FeedbackFields, ImportFormat, Operation, SeenFeedback};
use mnemoscope::change::{self, ChangeError, Plan, audit, feedback, import, migrate, remove, undo};
use mnemoscope::change::{chain, profile, record, reward, signal};
use mnemoscope::memory::utility::{self, Signal};
use mnemoscope::memory::{Entity, Row};
use mnemoscope::store::fetched::FetchedValue;
use mnemoscope::store::stored::{Mutation, StoredRows, TableName};
use mnemoscope::store::{OpenOptions, Store, Target};
use proptest::prelude::*;
use serde_json::json;

/// A step of a random history.
#[derive(Debug, Clone)]
enum Step {
    Add(usize, &'static str, Option<i64>),
    Edit(usize, &'static str, Option<i64>),
    Correct(usize, String),
    Remove(usize),
    Undo(usize),
}

fn any_kind() -> impl Strategy<Value = (&'static str, Option<i64>)> {
    prop_oneof![
        Just(("thumbs_up", None)),
        Just(("thumbs_down", None)),
        (1_i64..=5).prop_map(|rating| ("rating", Some(rating))),
    ]
}

fn any_step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (any::<usize>(), any_kind()).prop_map(|(n, (kind, rating))| Step::Add(n, kind, rating)),
        2 => (any::<usize>(), any_kind()).prop_map(|(n, (kind, rating))| Step::Edit(n, kind, rating)),
        1 => (any::<usize>(), "[a-zé'\" ]{0,12}").prop_map(|(n, text)| Step::Correct(n, text)),
        2 => any::<usize>().prop_map(Step::Remove),
        1 => any::<usize>().prop_map(Step::Undo),
    ]
}

/// Plans a step against the database as it is.
async fn plan(world: &World, step: &Step, seqs: &[i64]) -> Option<Result<Plan, ChangeError>> {
    let store = &world.store;
    let pick = |ids: Vec<String>, n: usize| (!ids.is_empty()).then(|| ids[n % ids.len()].clone());
    Some(match step {
        Step::Add(n, kind, rating) => {
            let episode = pick(ids(world, Entity::Episode).await, *n)?;
            feedback::add(store, &episode, &said(kind, *rating, None)).await
        }
        Step::Edit(n, kind, rating) => {
            let id = pick(ids(world, Entity::Feedback).await, *n)?;
            let said = FeedbackFields { user: None, ..said(kind, *rating, None) };
            feedback::edit(store, &id, &said, None).await
        }
        Step::Correct(n, text) => {
            let id = pick(ids(world, Entity::Feedback).await, *n)?;
            feedback::edit(store, &id, &FeedbackFields { correction: Some(text.clone()), ..Default::default() }, None)
                .await
        }
        Step::Remove(n) => feedback::remove(store, &pick(ids(world, Entity::Feedback).await, *n)?).await,
        Step::Undo(n) => undo::undo(store, *seqs.get(n % seqs.len().max(1))?).await,
    })
}

/// Plays a history; each step leaves the aggregates right and the trail sound. Then everything is undone, the last
/// first, and the database is to the byte what it was.
async fn play(world: &World, steps: &[Step]) {
    let before = dump(world).await;
    let (mut state, mut seqs) = (before.clone(), Vec::<i64>::new());
    for step in steps {
        let Some(planned) = plan(world, step, &seqs).await else { continue };
        let planned = match planned {
            Ok(planned) => planned,
            Err(ChangeError::Refused(_) | ChangeError::Conflict { .. } | ChangeError::Usage(_)) => {
                assert_eq!(dump(world).await, state);
                continue;
            }
            Err(error) => panic!("{step:?}: {error}"),
        };
        let receipt = match change::apply(&world.store, &planned, &author()).await {
            Ok(receipt) => receipt,
            // A foreign key that the server enforces.
            Err(ChangeError::Refused(_)) => {
                assert_eq!(dump(world).await, state);
                continue;
            }
            Err(error) => panic!("{step:?}: {error}"),
        };
        state = dump(world).await;
        seqs.extend(receipt.audit_seq);
        for change in receipt.changes.iter().filter(|c| c.entity == "episode" && receipt.operation != "undo") {
            assert_mean(world, &change.id).await;
        }
    }
    assert_sound(world).await;
    for seq in seqs.iter().rev() {
        done(world, undo::undo(&world.store, *seq).await).await;
    }
    assert_eq!(dump(world).await, before);
    assert_sound(world).await;
}

fn histories(count: u32, steps: usize) -> Vec<Vec<Step>> {
    drawn(&prop::collection::vec(any_step(), 1..steps), count)
}

/// Values of a strategy, the same in every run.
fn drawn<S: Strategy>(strategy: &S, count: u32) -> Vec<S::Value> {
    use proptest::strategy::ValueTree as _;
    use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[7; 32]);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    (0..count).map(|_| strategy.new_tree(&mut runner).expect("a value").current()).collect()
}

#[test]
fn random_histories_are_undone_to_the_byte_on_sqlite() {
    block_on(async {
        for world in [small().await, on_sqlite(Layout::Atom).await, on_sqlite(Layout::Atom2026).await] {
            with_user(&world).await;
            for steps in histories(6, 14) {
                play(&world, &steps).await;
            }
        }
    });
}

#[test]
fn random_histories_are_undone_to_the_byte_on_postgres() {
    block_on(async {
        for world in [native_on_postgres().await, on_postgres(Layout::Atom).await, on_postgres(Layout::Atom2026).await]
        {
            let Some(world) = world else { return };
            with_user(&world).await;
            for steps in histories(4, 12) {
                play(&world, &steps).await;
            }
        }
    });
}

#[test]
fn writers_at_the_same_time_leave_one_chain_and_right_aggregates() {
    const WRITERS: usize = 8;
    const EACH: usize = 3;
    block_on(async {
        for world in worlds().await {
            with_user(&world).await;
            let episode = some_episode(&world).await;
            let before = world.store.contexts().episode(&episode).await.unwrap().unwrap().feedback.len();
            let writer = |number: usize| {
                let (target, episode) = (world.target.clone(), episode.clone());
                async move {
                    let store = open(&target).await;
                    for turn in 0..EACH {
                        let rating = ((number + turn) % 5 + 1) as i64;
                        let said = said("rating", Some(rating), None);
                        let plan = || feedback::add(&store, &episode, &said);
                        change::plan_and_apply(&store, &author(), plan).await.unwrap_or_else(|error| panic!("{error}"));
                    }
                }
            };
            let entered = audit::list(&world.store, 0, 1_000).await.expect("a trail").len();
            futures::future::join_all((0..WRITERS).map(writer)).await;
            let entries = audit::list(&world.store, 0, 1_000).await.expect("a trail");
            let seqs: Vec<i64> = entries.iter().map(|e| e.seq).collect();
            assert_eq!(seqs, (1..=(entered + WRITERS * EACH) as i64).collect::<Vec<_>>());
            assert_sound(&world).await;
            assert_mean(&world, &episode).await;
            let after = world.store.contexts().episode(&episode).await.unwrap().unwrap().feedback.len();
            assert_eq!(after, before + WRITERS * EACH);
        }
    });
}

#[test]
fn a_world_that_moved_is_a_conflict_and_nothing_is_written() {
    block_on(async {
        for world in worlds().await {
            with_user(&world).await;
            let episode = some_episode(&world).await;
            let receipt =
                done(&world, feedback::add(&world.store, &episode, &said("thumbs_up", None, None)).await).await;
            let id = receipt.changes[0].id.clone();
            let plan = feedback::edit(&world.store, &id, &said("thumbs_down", None, None), None).await.expect("a plan");
            let twice = plan.clone();
            meddle(&world, &format!("UPDATE agent_feedback SET rating = 3 WHERE id = '{id}'")).await;
            let before = dump(&world).await;
            let refused = change::apply(&world.store, &plan, &author()).await;
            assert!(matches!(refused, Err(ChangeError::Conflict { .. })), "{refused:?}");
            assert_eq!(dump(&world).await, before);
            let undone = undo::undo(&world.store, receipt.audit_seq.unwrap()).await;
            assert!(matches!(undone, Err(ChangeError::Conflict { .. })), "{undone:?}");
            meddle(&world, &format!("UPDATE agent_feedback SET rating = NULL WHERE id = '{id}'")).await;
            done(&world, Ok(plan)).await;
            let again = change::apply(&world.store, &twice, &author()).await;
            assert!(matches!(again, Err(ChangeError::Conflict { .. })), "a plan is applied once: {again:?}");
            assert_sound(&world).await;
        }
    });
}

#[test]
fn a_column_that_somebody_adds_comes_back_with_its_row() {
    block_on(async {
        for world in natives().await {
            let memory = ids(&world, Entity::Memory).await.swap_remove(0);
            let planned = || remove::plan(&world.store, Entity::Memory, std::slice::from_ref(&memory));
            let before = planned().await.expect("a plan");
            let new = record::plan(&world.store, Entity::Memory, r#"{"text": "A new fact.", "user_id": "zed"}"#);
            let recorded = done(&world, new.await).await;
            let note = format!("SELECT note FROM memories WHERE id = '{memory}'");
            meddle(&world, "ALTER TABLE memories ADD COLUMN note text").await;
            meddle(&world, &format!("UPDATE memories SET note = 'dear' WHERE id = '{memory}'")).await;
            let refused = change::apply(&world.store, &before, &author()).await;
            assert!(
                matches!(&refused, Err(ChangeError::Conflict { rows, .. }) if rows[0].contains("columns")),
                "{refused:?}"
            );
            let receipt = done(&world, planned().await).await;
            assert!(texts(&world, &note).await.is_empty());
            done(&world, undo::undo(&world.store, receipt.audit_seq.expect("an entry")).await).await;
            assert_eq!(texts(&world, &note).await, ["dear"]);
            // A row of before goes, as long as nobody filled the column.
            let back = || undo::undo(&world.store, recorded.audit_seq.expect("an entry"));
            meddle(&world, "UPDATE memories SET note = 'new' WHERE user_id = 'zed'").await;
            let refused = back().await;
            assert!(
                matches!(&refused, Err(ChangeError::Conflict { rows, .. }) if rows[0].contains("the column note")),
                "{refused:?}"
            );
            meddle(&world, "UPDATE memories SET note = NULL WHERE user_id = 'zed'").await;
            done(&world, back().await).await;
            assert!(texts(&world, "SELECT id FROM memories WHERE user_id = 'zed'").await.is_empty());
        }
    });
}

#[test]
fn nothing_goes_along_that_no_undo_could_bring_back() {
    block_on(async {
        for mut world in [Some(native().await), native_on_postgres().await].into_iter().flatten() {
            with_user(&world).await;
            let episode = some_episode(&world).await;
            meddle(
                &world,
                &format!(
                    "CREATE TABLE asides (episode_id TEXT REFERENCES episodes (id) ON DELETE CASCADE, note TEXT); \
                     INSERT INTO asides VALUES ('{episode}', 'a note')"
                ),
            )
            .await;
            world.store = open(&world.target).await;
            let before = dump(&world).await;
            let (folder, place) = (tempfile::tempdir().expect("a folder"), address(&world));
            let (code, receipt, words) = run(folder.path(), &["-d", &place, "remove", "episode", &episode, "--apply"]);
            if matches!(world.target, Target::Postgres(_)) {
                assert!(code == Some(5) && words.contains("asides depend on rows to be deleted"), "{code:?} {words}");
            } else {
                assert_eq!(receipt["counts"]["asides"]["delete"], 1, "{receipt:#} {words}");
                run(folder.path(), &["-d", &place, "undo", &receipt["audit_seq"].to_string(), "--apply"]);
            }
            let after = dump(&world).await;
            assert_eq!(after["asides"], before["asides"]);
            assert_eq!(after["episodes"], before["episodes"]);
        }
    });
}

#[test]
fn a_row_that_comes_to_one_that_goes_is_a_conflict() {
    block_on(async {
        for world in [Some(native().await), native_on_postgres().await].into_iter().flatten() {
            with_user(&world).await;
            let episode = some_episode(&world).await;
            let plan =
                remove::plan(&world.store, Entity::Episode, std::slice::from_ref(&episode)).await.expect("a plan");
            for (column, late) in [
                ("episode_id", "episode_segments (id, episode_id, sequence, content)"),
                ("parent_id", "episodes (id, parent_id, agent_id, title)"),
            ] {
                meddle(&world, &format!("INSERT INTO {late} VALUES ('late', '{episode}', 1, 'came later')")).await;
                let before = dump(&world).await;
                let refused = change::apply(&world.store, &plan, &author()).await;
                let Err(ChangeError::Conflict { rows, .. }) = refused else { panic!("{column}: {refused:?}") };
                assert!(rows.iter().any(|row| row.contains(&format!("{column} = {episode}: "))), "{rows:?}");
                assert_eq!(dump(&world).await, before);
                let table = late.split(' ').next().unwrap();
                meddle(&world, &format!("DELETE FROM {table} WHERE id = 'late'")).await;
            }
            done(&world, Ok(plan)).await;
            assert_sound(&world).await;
        }
    });
}

#[test]
fn a_kept_plan_is_applied_as_it_is_or_not_at_all() {
    block_on(async {
        let (world, other) = (small().await, native().await);
        let episode = some_episode(&world).await;
        let plan =
            feedback::add(&world.store, &episode, &said("rating", Some(4), Some("kürzer\u{0}"))).await.expect("a plan");
        let text = plan.to_file();
        assert_eq!(Plan::from_file(&text).expect("the same plan"), plan);
        for edited in [
            text.replace("\"rating\":4", "\"rating\":5"),
            text.replace(&plan.created_at, "2020-01-01T00:00:00.000000Z"),
            text.replace("feedback.add", "feedback.edit"),
            text.replace("{\"integer\":4}", "{\"integer\":1}"),
            "{}".to_owned(),
            String::new(),
        ] {
            assert_ne!(edited, text);
            assert!(matches!(Plan::from_file(&edited), Err(ChangeError::Usage(_))), "{edited}");
        }
        let elsewhere = change::apply(&other.store, &plan, &author()).await;
        assert!(matches!(elsewhere, Err(ChangeError::Refused(_))), "{elsewhere:?}");
        // Whoever has read what it tells is not to be deceived by an id that fits.
        let with = |more: Mutation| {
            let mut forged = plan.clone();
            forged.mutations.push(more);
            forged
        };
        let table = |name: &str| TableName::new("main", name);
        let other = StoredRows::with(&table("episodes"), "id", FetchedValue::Text("another".to_owned()));
        let first = StoredRows::with(&table("memory_audit"), "seq", FetchedValue::Integer(1));
        for (mut forged, why) in
            [(with(Mutation::Delete(other)), "its counts"), (with(Mutation::Delete(first)), "the audit trail")]
        {
            if why == "the audit trail" {
                forged.counts = Plan::count(forged.mutations.iter().chain(&forged.trail));
            }
            forged.plan_id = forged.digest();
            let refused = Plan::from_file(&forged.to_file());
            assert!(matches!(&refused, Err(ChangeError::Usage(words)) if words.contains(why)), "{refused:?}");
        }
        for (operation, facts) in [
            ("audit.redact", json!({})),
            ("feedback.add", json!({ "redacts": [[1, "changes"]] })),
            ("feedback.add", json!({ "undo_of": 1 })),
            ("purge", json!({})),
        ] {
            let mut forged = Plan { operation: operation.to_owned(), facts, ..plan.clone() };
            forged.plan_id = forged.digest();
            let refused = Plan::from_file(&forged.to_file());
            assert!(matches!(&refused, Err(ChangeError::Usage(words)) if words.contains("own entries")), "{refused:?}");
        }
        done(&world, Plan::from_file(&text)).await;
    });
}

#[test]
fn what_makes_no_sense_is_refused_by_kind() {
    block_on(async {
        let world = small().await;
        let store = &world.store;
        let episode = some_episode(&world).await;
        let before = dump(&world).await;
        let usage = [
            feedback::add(store, &episode, &said("rating", Some(9), None)).await,
            feedback::add(store, &episode, &said("rating", None, None)).await,
            feedback::add(store, &episode, &said("stars", None, None)).await,
            feedback::add(store, &episode, &said("thumbs_up", None, Some(&"x".repeat(10 << 20)))).await,
            feedback::add(store, " ", &said("thumbs_up", None, None)).await,
            profile::set_window(store, "x", Some(0)).await,
            record::plan(store, Entity::Profile, r#"{"id": "x", "window_size": -5}"#).await,
            reward::set(store, "x", 1.5, None).await,
            reward::set(store, "x", f64::NAN, None).await,
        ];
        for (number, plan) in usage.into_iter().enumerate() {
            assert!(matches!(plan, Err(ChangeError::Usage(_))), "{number}: {plan:?}");
        }
        let missing = [
            feedback::edit(store, "none", &said("thumbs_up", None, None), None).await,
            feedback::remove(store, "none").await,
            chain::unlink(store, "none").await,
            undo::undo(store, 99).await,
        ];
        assert!(missing.iter().all(|plan| matches!(plan, Err(ChangeError::NotFound(_)))), "{missing:?}");
        assert!(matches!(undo::undo(store, 1).await, Err(ChangeError::Refused(_))), "a migration cannot be undone");
        assert_eq!(dump(&world).await, before);
    });
}

#[test]
fn signals_and_retractions_equal_a_replay_of_the_history() {
    block_on(async {
        let sqlite = Some(small().await);
        for world in [sqlite, native_on_postgres().await].into_iter().flatten() {
            let before = dump(&world).await;
            let episode = some_episode(&world).await;
            let stored = world.store.row(Entity::Episode, &episode).await.unwrap().unwrap();
            let history =
                world.store.related(Entity::UtilityEvent, "episode_id", std::slice::from_ref(&episode)).await.unwrap();
            let start = history.first().map_or(stored.number("utility"), |e| e.number("before")).unwrap_or(0.5);
            let mut words: Vec<String> = history.iter().map(|e| e.text("signal").unwrap().to_owned()).collect();
            let mut seqs = Vec::new();
            let all = async || {
                let id = std::slice::from_ref(&episode);
                world.store.related(Entity::UtilityEvent, "episode_id", id).await.unwrap()
            };
            // Many of one kind in a row, so that the clamp bites, and retractions anywhere.
            let turns = drawn(&(any::<usize>(), prop::sample::select(vec![0_usize, 0, 0, 2, 3, 3, 9, 9, 9])), 24);
            for (turn, (place, what)) in turns.into_iter().enumerate() {
                let receipt = if what == 9 && !words.is_empty() {
                    let place = place % words.len();
                    words.remove(place);
                    done(&world, signal::retract(&world.store, all().await[place].id()).await).await
                } else {
                    let word = utility::Signal::ALL[what % 5].word();
                    words.push(word.to_owned());
                    done(
                        &world,
                        signal::add(
                            &world.store,
                            &episode,
                            Signal::parse(word).expect("a signal"),
                            by("me", Some("why")),
                        )
                        .await,
                    )
                    .await
                };
                seqs.push(receipt.audit_seq.unwrap());
                let replay = utility::replay(start, words.iter().map(String::as_str));
                let found: Vec<_> =
                    all().await.iter().map(|r| (r.number("before").unwrap(), r.number("after").unwrap())).collect();
                let wanted: Vec<_> = replay.steps.iter().map(|s| (s.before, s.after)).collect();
                assert_eq!(found, wanted, "turn {turn}");
                let row = world.store.row(Entity::Episode, &episode).await.unwrap().unwrap();
                assert_eq!(row.number("utility"), Some(replay.utility()));
            }
            for seq in seqs.into_iter().rev() {
                done(&world, undo::undo(&world.store, seq).await).await;
            }
            assert_eq!(dump(&world).await, before);
            assert_sound(&world).await;
        }
    });
}

/// A memory's utility is the mean of the latest episodes that used it, its uses their number.
async fn assert_memory(world: &World, memory: &str) {
    let store = &world.store;
    let links = store.related(Entity::MemoryLink, "memory_id", &[memory.to_owned()]).await.unwrap();
    let ids: Vec<String> = links.iter().map(|l| l.text("episode_id").unwrap().to_owned()).collect();
    let mut episodes = store.related(Entity::Episode, "id", &ids).await.unwrap();
    episodes
        .sort_by_key(|e| std::cmp::Reverse((e.text("started_at").unwrap_or_default().to_owned(), e.id().to_owned())));
    let latest: Vec<f64> = episodes.iter().map(|e| e.number("utility").unwrap_or(utility::START)).take(20).collect();
    let mean = latest.iter().sum::<f64>() / latest.len() as f64;
    let row = store.row(Entity::Memory, memory).await.unwrap().unwrap();
    assert!((row.number("utility").unwrap() - mean).abs() < 1e-9, "{memory}: {row:?} is not {mean}");
    assert_eq!(row.get("uses"), &json!(ids.len()));
}

#[test]
fn memories_are_promoted_and_demoted_by_the_episodes_that_used_them() {
    block_on(async {
        for world in [Some(native().await), native_on_postgres().await].into_iter().flatten() {
            let before = dump(&world).await;
            let mut seqs = Vec::new();
            let mut moved = 0;
            for (turn, episode) in ids(&world, Entity::Episode).await.into_iter().take(10).enumerate() {
                let word = utility::Signal::ALL[turn % 5].word();
                let receipt = done(
                    &world,
                    signal::add(&world.store, &episode, Signal::parse(word).expect("a signal"), by("me", None)).await,
                )
                .await;
                seqs.extend(receipt.audit_seq);
                for change in receipt.changes.iter().filter(|c| c.entity == "memory") {
                    assert!(receipt.effects.iter().any(|e| e.contains(&change.id)), "{:?}", receipt.effects);
                    assert_memory(&world, &change.id).await;
                    moved += 1;
                }
                if turn % 3 == 0 {
                    let signal = receipt.changes.iter().find(|c| c.entity == "utility_event").expect("the signal");
                    seqs.extend(done(&world, signal::retract(&world.store, &signal.id).await).await.audit_seq);
                }
            }
            assert!(moved > 0);
            for seq in seqs.into_iter().rev() {
                done(&world, undo::undo(&world.store, seq).await).await;
            }
            assert_eq!(dump(&world).await, before);
        }
    });
}

#[test]
fn a_memory_has_one_utility_in_its_row_in_recall_and_in_insights() {
    block_on(async {
        for world in [Some(small().await), native_on_postgres().await].into_iter().flatten() {
            let episodes: Vec<String> = [("1", "1.0"), ("2", "1.0"), ("3", "1.0"), ("4", "NULL")]
                .iter()
                .map(|(n, utility)| {
                    format!("('e-used-{n}', 'a-used', 'u', 'x', '2026-03-0{n}T10:00:00.000000Z', {utility})")
                })
                .collect();
            let links: Vec<String> = (1..5).map(|n| format!("('e-used-{n}', 'm-used')")).collect();
            meddle(
                &world,
                &format!(
                    "INSERT INTO memories (id, kind, text) VALUES ('m-used', 'drawer', 'x'); \
                     INSERT INTO episodes (id, agent_id, user_id, title, started_at, utility) VALUES {}; \
                     INSERT INTO episode_memories (episode_id, memory_id) VALUES {}",
                    episodes.join(", "),
                    links.join(", ")
                ),
            )
            .await;
            done(&world, signal::add(&world.store, "e-used-1", Signal::Rejected, by("me", None)).await).await;
            // 0.7, 1, 1, and where none is stored the 0.5 that a utility starts at.
            let is_mean = |utility: Option<f64>| utility.is_some_and(|utility| (utility - 0.8).abs() < 1e-9);
            let memory = world.store.row(Entity::Memory, "m-used").await.unwrap().expect("the memory");
            assert!(is_mean(memory.number("utility")), "{memory:?}");
            let folder = tempfile::tempdir().expect("a folder");
            let at = address(&world);
            let (_, recalled, words) = run(folder.path(), &["-d", &at, "recall", "--ranking", "proven", "-k", "500"]);
            let rows = recalled["rows"].as_array().unwrap_or_else(|| panic!("{words}"));
            let row = rows.iter().find(|row| row["id"] == "m-used").expect("the memory");
            let term =
                row["terms"].as_array().unwrap().iter().find(|term| term["name"] == "utility").expect("the term");
            assert!(is_mean(term["value"].as_f64()), "{term}");
            let (_, judged, words) = run(folder.path(), &["-d", &at, "insights", "--agent", "a-used"]);
            let helps = &judged["memories"]["help"][0];
            assert!(helps["id"] == "m-used" && is_mean(helps["utility"].as_f64()), "{words}: {judged}");
            assert_eq!(helps["n"], 4);
        }
    });
}

#[test]
fn a_column_of_32_bits_keeps_the_same_scores_as_one_of_64() {
    block_on(async {
        let Some(mut world) = native_on_postgres().await else { return };
        let folder = tempfile::tempdir().expect("a folder");
        let at = address(&world);
        let told = |arguments: &[&str]| run(folder.path(), &[&["-d", at.as_str()], arguments].concat());
        let score = "UPDATE agent_memory_cases SET reward = 0.7; \
                     ALTER TABLE episodes ALTER utility TYPE real, ALTER feedback_score TYPE real; \
                     ALTER TABLE memories ALTER utility TYPE real; \
                     ALTER TABLE agent_memory_cases ALTER reward TYPE real; \
                     ALTER TABLE utility_events ALTER before TYPE real, ALTER after TYPE real, ALTER delta TYPE real";
        meddle(&world, score).await;
        world.store = open(&world.target).await;
        let unmoved = || {
            let (_, found, words) = told(&["findings"]);
            let kinds: Vec<&str> =
                found["findings"].as_array().expect(&words).iter().filter_map(|f| f["kind"].as_str()).collect();
            assert!(!kinds.contains(&"utility_differs") && !kinds.contains(&"aggregate_differs"), "{kinds:?}");
            let (code, plan, words) = told(&["backfill", "utility"]);
            assert_eq!((code, &plan["counts"]), (Some(0), &json!({})), "{words}");
        };
        unmoved();
        for signal in [Signal::Rejected, Signal::Confirmed, Signal::Corrected] {
            let receipt = done(&world, signal::add(&world.store, "ep-7", signal, by("me", None)).await).await;
            // Earlier signals are as a replay has them.
            assert_eq!(receipt.counts["utility_events"].get("update"), None, "{:?}", receipt.counts);
        }
        unmoved();
        assert!(reward::set(&world.store, "ca-1", 0.7, None).await.expect("a plan").is_empty());
        let (_, plan, words) = told(&["prune", "--below-reward", "0.7"]);
        let gone = plan["changes"].as_array().expect(&words).iter().any(|change| change["id"] == "ca-1");
        assert!(!gone, "{plan}");
    });
}

#[test]
fn lists_that_are_arrays_are_kept_like_the_others() {
    block_on(async {
        for (kind, empty) in [("uuid[]", "NULL"), ("text[]", "'{a,NULL,\"b c\"}'")] {
            let Some(mut world) = native_on_postgres().await else { return };
            let sql = format!(
                "DELETE FROM agent_feedback; ALTER TABLE episodes ALTER COLUMN feedback_ids DROP DEFAULT, \
                 ALTER COLUMN feedback_ids TYPE {kind} USING NULL; \
                 UPDATE episodes SET feedback_ids = {empty}, feedback_score = NULL"
            );
            meddle(&world, &sql).await;
            world.store = open(&world.target).await;
            for steps in histories(2, 10) {
                play(&world, &steps).await;
            }
            let receipt =
                done(&world, feedback::add(&world.store, "ep-3", &said("thumbs_down", None, None)).await).await;
            let row = world.store.row(Entity::Episode, "ep-3").await.unwrap().unwrap();
            assert!(row.list("feedback_ids").contains(&receipt.changes[0].id.as_str()), "{row:?}");
            assert_eq!(row.number("feedback_score"), Some(-1.0));
        }
    });
}

#[test]
fn lists_that_are_json_as_written_are_found_by_what_they_hold() {
    block_on(async {
        for kind in ["json", "text"] {
            let Some(mut world) = native_on_postgres().await else { return };
            let sql = format!(
                "DELETE FROM agent_feedback; ALTER TABLE episodes ALTER COLUMN feedback_ids DROP DEFAULT, \
                 ALTER COLUMN feedback_ids TYPE {kind} USING NULL; UPDATE episodes SET feedback_score = NULL"
            );
            meddle(&world, &sql).await;
            world.store = open(&world.target).await;
            for steps in histories(1, 8) {
                play(&world, &steps).await;
            }
            let receipt = done(&world, feedback::add(&world.store, "ep-3", &said("thumbs_up", None, None)).await).await;
            let id = receipt.changes[0].id.clone();
            // Only the list says who owns it.
            meddle(&world, "UPDATE agent_feedback SET episode_id = NULL").await;
            done(&world, feedback::edit(&world.store, &id, &said("rating", Some(2), None), None).await).await;
            let row = world.store.row(Entity::Episode, "ep-3").await.unwrap().unwrap();
            assert_eq!(row.number("feedback_score"), Some(-0.5));
        }
    });
}

#[test]
fn a_signal_follows_from_feedback_only_as_long_as_that_says_the_same() {
    block_on(async {
        for world in natives().await {
            let (store, episode) = (&world.store, some_episode(&world).await);
            done(&world, feedback::add(store, &episode, &said("rating", Some(2), None)).await).await;
            let sql = "SELECT id FROM agent_feedback WHERE rating = 2 ORDER BY created_at DESC LIMIT 1";
            let id = texts(&world, sql).await.remove(0);
            let values = json!({"kind": "rating", "rating": 2}).as_object().expect("values").clone();
            let seen = SeenFeedback { id: id.clone(), values };
            let operation =
                Operation::Signal { episode, signal: Signal::Corrected, reason: None, feedback: Some(seen) };
            let plan = change::plan(store, &operation, &author()).await.expect("a plan");
            meddle(&world, &format!("UPDATE agent_feedback SET rating = 5 WHERE id = '{id}'")).await;
            let refused = change::apply(store, &plan, &author()).await;
            assert!(matches!(refused, Err(ChangeError::Conflict { .. })), "{refused:?}");
            let refused = change::plan(store, &operation, &author()).await;
            assert!(matches!(refused, Err(ChangeError::Conflict { .. })), "{refused:?}");
            meddle(&world, &format!("DELETE FROM agent_feedback WHERE id = '{id}'")).await;
            let refused = change::plan(store, &operation, &author()).await;
            assert!(matches!(refused, Err(ChangeError::NotFound(_))), "{refused:?}");
        }
    });
}

#[test]
fn chains_are_linked_and_unlinked_and_never_closed_to_a_circle() {
    block_on(async {
        let Some(world) = native_on_postgres().await else { return };
        let store = &world.store;
        done(&world, chain::link(store, "ep-2", "ep-1").await).await;
        done(&world, chain::link(store, "ep-3", "ep-2").await).await;
        let circle = chain::link(store, "ep-1", "ep-3").await;
        assert!(
            matches!(&circle, Err(ChangeError::Refused(words)) if words.contains("ep-1 -> ep-3 -> ep-2 -> ep-1")),
            "{circle:?}"
        );
        assert!(matches!(chain::link(store, "ep-1", "ep-1").await, Err(ChangeError::Refused(_))));
        // Two plans that would close a circle together: the second one sees that the world moved.
        let (one, two) =
            (chain::link(store, "ep-4", "ep-5").await.unwrap(), chain::link(store, "ep-5", "ep-4").await.unwrap());
        done(&world, Ok(one)).await;
        assert!(matches!(change::apply(store, &two, &author()).await, Err(ChangeError::Conflict { .. })));
        assert!(chain::link(store, "ep-2", "ep-1").await.unwrap().is_empty(), "it is linked already");
        let receipt = done(&world, chain::unlink(store, "ep-3").await).await;
        assert_eq!(store.row(Entity::Episode, "ep-3").await.unwrap().unwrap().text("parent_id"), None);
        done(&world, undo::undo(store, receipt.audit_seq.unwrap()).await).await;
        assert_eq!(store.row(Entity::Episode, "ep-3").await.unwrap().unwrap().text("parent_id"), Some("ep-2"));
        let unlinked = done(&world, chain::unlink(store, "ep-2").await).await;
        done(&world, chain::link(store, "ep-1", "ep-2").await).await;
        let closed = undo::undo(store, unlinked.audit_seq.unwrap()).await;
        assert!(
            matches!(&closed, Err(ChangeError::Conflict { rows, .. }) if rows[0].contains("ep-2 -> ep-1 -> ep-2")),
            "{closed:?}"
        );
    });
}

#[test]
fn circles_that_stood_before_a_change_come_back_with_its_undo() {
    let sorted = async |world: &World| {
        let mut rows = dump(world).await;
        rows.values_mut().for_each(|rows| rows.sort_unstable());
        rows
    };
    block_on(async {
        for world in [Some(small().await), native_on_postgres().await].into_iter().flatten() {
            let store = &world.store;
            let ids = ids(&world, Entity::Episode).await;
            let [own, one, two, three, last, other] = &ids[..6] else { panic!("{ids:?}") };
            let parents = [(own, own), (one, two), (two, one), (three, last), (last, three)]
                .map(|(child, parent)| format!("UPDATE episodes SET parent_id = '{parent}' WHERE id = '{child}';"));
            meddle(&world, &format!("UPDATE episodes SET parent_id = NULL; {}", parents.concat())).await;
            let before = sorted(&world).await;
            let unlink = |child: &String| Operation::Unlink { child: child.clone() };
            let link = |child: &String| Operation::Link { child: child.clone(), parent: other.clone() };
            let remove = |id: &String| Operation::Remove { entity: Entity::Episode, ids: vec![id.clone()] };
            for step in [unlink(own), unlink(one), link(own), link(two), remove(own), remove(one)] {
                let receipt = done(&world, change::plan(store, &step, &author()).await).await;
                assert_ne!(sorted(&world).await, before, "{step:?}");
                let undo = undo::undo(store, receipt.audit_seq.unwrap()).await;
                let undo = undo.unwrap_or_else(|error| panic!("{step:?}: {error}"));
                let told = undo.disclosures.iter().any(|words| words.contains("run in a circle"));
                assert!(told || step == remove(one), "{step:?}: {:?}", undo.disclosures);
                done(&world, Ok(undo)).await;
                assert_eq!(sorted(&world).await, before, "{step:?}");
            }
            // One after the other, the last first.
            let mut seqs = Vec::new();
            for child in [three, last] {
                seqs.extend(done(&world, chain::unlink(store, child).await).await.audit_seq);
            }
            for seq in seqs.into_iter().rev() {
                done(&world, undo::undo(store, seq).await).await;
            }
            assert_eq!(sorted(&world).await, before);
            // One that a later change would close does not.
            let unlinked = done(&world, chain::unlink(store, one).await).await;
            for (child, parent) in [(two, other), (other, one)] {
                done(&world, chain::link(store, child, parent).await).await;
            }
            let closed = undo::undo(store, unlinked.audit_seq.unwrap()).await;
            let is_told = |message: &str, rows: &[String]| {
                message.contains("later changes depend on it") && rows.iter().any(|row| row.contains("run in a circle"))
            };
            assert!(
                matches!(&closed, Err(ChangeError::Conflict { message, rows, .. }) if is_told(message, rows)),
                "{closed:?}"
            );
            assert_sound(&world).await;
        }
    });
}

#[test]
fn an_empty_parent_is_none() {
    block_on(async {
        for world in [Some(small().await), native_on_postgres().await].into_iter().flatten() {
            let store = &world.store;
            let ids = ids(&world, Entity::Episode).await;
            let [root, child, other] = &ids[..3] else { panic!("{ids:?}") };
            meddle(&world, "UPDATE episodes SET parent_id = ''").await;
            done(&world, chain::link(store, child, root).await).await;
            let context = store.contexts().episode(child).await.unwrap().expect("the child");
            assert_eq!((context.chain.ids.len(), context.chain.missing_parent.as_ref()), (2, None));
            let linked = done(&world, chain::link(store, root, other).await).await;
            done(&world, undo::undo(store, linked.audit_seq.unwrap()).await).await;
            assert_eq!(store.row(Entity::Episode, root).await.unwrap().unwrap().text("parent_id"), Some(""));
        }
    });
}

#[test]
fn all_that_follows_an_episode_is_read_with_its_chain() {
    block_on(async {
        for world in [Some(small().await), native_on_postgres().await].into_iter().flatten() {
            let store = &world.store;
            let ids = ids(&world, Entity::Episode).await;
            let [root, child, below, one, other] = &ids[..5] else { panic!("{ids:?}") };
            for id in &ids {
                if store.row(Entity::Episode, id).await.unwrap().unwrap().text("parent_id").is_some() {
                    done(&world, chain::unlink(store, id).await).await;
                }
            }
            for (child, parent) in [(child, root), (below, child), (one, below), (other, below)] {
                done(&world, chain::link(store, child, parent).await).await;
            }
            let context = store.contexts().episode(root).await.unwrap().expect("the root");
            let after = |id: &str| context.followers(id).into_iter().map(Row::id).collect::<BTreeSet<&str>>();
            assert_eq!(after(child), BTreeSet::from([below.as_str()]));
            assert_eq!(after(below), BTreeSet::from([one.as_str(), other.as_str()]));
            assert_eq!((context.chain_total(), context.is_cut), (4, false));
            // What is printed are the episode's own children.
            assert_eq!(context.to_json()["chain"]["children"].as_array().map(Vec::len), Some(1));
        }
    });
}

#[test]
fn a_receipt_says_that_a_value_which_the_engine_would_refuse_cannot_come_back() {
    block_on(async {
        let Some(world) = native_on_postgres().await else { return };
        let store = &world.store;
        // A foreign key that was added later leaves alone what dangled before.
        for sql in [
            "UPDATE episodes SET parent_id = 'nobody' WHERE id = 'ep-3'",
            "ALTER TABLE episodes ADD FOREIGN KEY (parent_id) REFERENCES episodes (id) NOT VALID",
        ] {
            meddle(&world, sql).await;
        }
        let receipt = done(&world, chain::unlink(store, "ep-3").await).await;
        assert_eq!(receipt.undo, None);
        let reason = receipt.undo_reason.unwrap();
        assert!(reason.contains("parent_id would refer to rows of episodes that do not exist"), "{reason}");
        let refused = undo::undo(store, receipt.audit_seq.unwrap()).await;
        assert!(
            matches!(&refused, Err(ChangeError::Conflict { rows, .. }) if rows.iter().any(|row| reason.contains(row))),
            "{refused:?}"
        );
        assert!(
            matches!(&refused, Err(ChangeError::Conflict { message, .. }) if !message.contains("later changes")),
            "{refused:?}"
        );
        // What refers to a row that is there can come back.
        done(&world, chain::link(store, "ep-2", "ep-1").await).await;
        let receipt = done(&world, chain::unlink(store, "ep-2").await).await;
        assert_eq!(receipt.undo_reason, None);
        done(&world, undo::undo(store, receipt.audit_seq.unwrap()).await).await;
    });
}

#[test]
fn a_reward_leaves_its_row_in_the_memorys_own_trail_where_that_knows_the_action() {
    block_on(async {
        for world in [native_on_postgres().await, on_postgres(Layout::EnnubeJson).await].into_iter().flatten() {
            let store = &world.store;
            let case = ids(&world, Entity::Case).await[0].clone();
            let profile = ids(&world, Entity::Profile).await[0].clone();
            let trail = |rows: Vec<String>| rows.len();
            let before = trail(ids(&world, Entity::AuditEntry).await);
            let receipt = done(&world, reward::set(store, &case, 0.75, Some("success")).await).await;
            assert_eq!(receipt.counts["agent_memory_audit"], BTreeMap::from([("insert".to_owned(), 1)]));
            // Theirs and ours.
            assert_eq!(trail(ids(&world, Entity::AuditEntry).await), before + 2);
            let row = store.row(Entity::Case, &case).await.unwrap().unwrap();
            assert_eq!((row.number("reward"), row.text("outcome")), (Some(0.75), Some("success")));
            done(&world, profile::set_window(store, &profile, Some(17)).await).await;
            assert_eq!(store.row(Entity::Profile, &profile).await.unwrap().unwrap().get("window_size"), &json!(17));
            done(&world, undo::undo(store, receipt.audit_seq.unwrap()).await).await;
            assert_ne!(store.row(Entity::Case, &case).await.unwrap().unwrap().number("reward"), Some(0.75));
            assert_sound(&world).await;
        }
        let Some(world) = on_postgres(Layout::EnnubeJson).await else { return };
        let case = ids(&world, Entity::Case).await[0].clone();
        let rounded = reward::set(&world.store, &case, 0.123, None).await;
        assert!(matches!(&rounded, Err(ChangeError::Refused(words)) if words.contains("decimals")), "{rounded:?}");
    });
}

#[test]
fn a_layout_that_has_no_place_for_something_says_so() {
    block_on(async {
        let mut refused = Vec::new();
        for layout in [Layout::NousPlanned, Layout::Pyworkflow, Layout::EnnubeJson] {
            let Some(world) = on_postgres(layout).await else { return };
            refused.push(feedback::add(&world.store, "x", &said("thumbs_up", None, None)).await);
            refused.push(signal::add(&world.store, "x", Signal::Confirmed, by("me", None)).await);
            let line = "{\"case\": \"a\", \"plan\": \"b\", \"reward\": 1}";
            let imported = import::plan(&world.store, ImportFormat::Memento, "f", line, true).await;
            if layout != Layout::EnnubeJson {
                assert!(imported.as_ref().is_err_and(|e| e.to_string().contains("native layout")), "{imported:?}");
                refused.push(imported);
            }
        }
        let world = on_sqlite(Layout::Atom).await;
        refused.push(
            feedback::edit(
                &world.store,
                "ef-low",
                &FeedbackFields { user: None, ..said("rating", Some(3), None) },
                None,
            )
            .await,
        );
        refused.push(chain::unlink(&world.store, &ids(&world, Entity::Episode).await[0]).await);
        refused.push(feedback::add(&world.store, "ep-cut", &said("thumbs_up", None, None)).await);
        refused.push(feedback::add(&world.store, "ep-empty", &said("thumbs_up", None, None)).await);
        for plan in refused {
            let code = matches!(plan, Err(ChangeError::Refused(_) | ChangeError::Store(_)));
            assert!(code, "{plan:?}");
        }
        let receipt = done(&world, feedback::remove(&world.store, "ef-low").await).await;
        assert_eq!(receipt.counts["episode_feedback"], BTreeMap::from([("delete".to_owned(), 1)]));
    });
}

/// A layout of someone's own, whose feedback is numbered by the engine.
const NUMBERED: &str = r#"
name = "tickets"
title = "Tickets"
requires = ["ticket/words"]
[[episode]]
table = "ticket"
write = {}
links = [{ to = "feedback", back = true }]
[episode.columns]
id = "id"
title = "words"
feedback_score = "score"
started_at = "at"
[[feedback]]
table = "vote"
write = { numbered = true }
[feedback.columns]
id = "id"
episode_id = "ticket_id"
kind = "kind"
rating = "rating"
created_at = "at"
"#;

#[test]
fn rows_that_the_engine_numbers_are_edited_and_taken_away_and_never_guessed() {
    block_on(async {
        let folder = tempfile::tempdir().expect("a folder");
        let layout = folder.path().join("tickets.toml");
        std::fs::write(&layout, NUMBERED).expect("the layout");
        std::fs::write(folder.path().join("tickets.db"), b"").expect("a file");
        let rows = "INSERT INTO ticket VALUES ('t-1', 'x', 1.0, '2026-01-01T00:00:00Z'); \
             INSERT INTO vote OVERRIDING SYSTEM VALUE VALUES (7, 't-1', 'thumbs_up', NULL, '2026-01-01T00:00:00Z')";
        let on_sqlite = "CREATE TABLE ticket (id TEXT PRIMARY KEY, words, score REAL, at); \
             CREATE TABLE vote (id INTEGER PRIMARY KEY, ticket_id, kind, rating, at); ";
        let on_postgres = "CREATE TABLE ticket (id text PRIMARY KEY, words text, score float8, at text); \
             CREATE TABLE vote (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, ticket_id text, kind text, \
               rating bigint, at text); ";
        let server = Database::fresh();
        let file = Target::File(folder.path().join("tickets.db"));
        let worlds = [Some((file, format!("{on_sqlite}{}", rows.replace("OVERRIDING SYSTEM VALUE ", ""))))]
            .into_iter()
            .chain([server.as_ref().map(|d| (Target::Postgres(d.url().to_owned()), format!("{on_postgres}{rows}")))]);
        for (target, script) in worlds.flatten() {
            numbered(&target, &script, &layout).await;
        }
    });
}

async fn numbered(target: &Target, script: &str, layout: &std::path::Path) {
    let mut theirs = Agent::of(target).await;
    theirs.run(script).await;
    let options = OpenOptions { layouts: vec![layout.display().to_string()], ..crate::support::options() };
    let open = async || Store::open(target, &options).await.unwrap_or_else(|error| panic!("{error}"));
    migrate::apply(&open().await, &author(), None).await.expect("our tables");
    let store = open().await;
    let added = feedback::add(&store, "t-1", &said("thumbs_up", None, None)).await;
    assert!(matches!(&added, Err(ChangeError::Refused(words)) if words.contains("numbers its rows")), "{added:?}");
    let score = async || store.row(Entity::Episode, "t-1").await.unwrap().expect("it").number("feedback_score");
    let said = FeedbackFields { kind: Some("thumbs_down".to_owned()), ..FeedbackFields::default() };
    for plan in [feedback::edit(&store, "7", &said, None).await, feedback::remove(&store, "7").await] {
        let Ok(plan) = plan else { panic!("{plan:?}") };
        let receipt = change::apply(&store, &plan, &author()).await.expect("applied");
        assert_ne!(score().await, Some(1.0));
        let back = undo::undo(&store, receipt.audit_seq.unwrap()).await.expect("a plan");
        change::apply(&store, &back, &author()).await.expect("undone");
        assert_eq!(score().await, Some(1.0));
    }
}

/// Each way of tampering, with the word that tells it.
const TAMPERING: &[(&str, &str)] = &[
    ("edited_entry", "UPDATE memory_audit SET actor = 'nobody' WHERE seq = 2"),
    ("edited_entry", "UPDATE memory_audit SET public = '{}' WHERE seq = 3"),
    ("edited_value", "UPDATE memory_audit_private SET value = '\"x\"' WHERE seq = 3 AND field = 'reason'"),
    ("edited_value", "UPDATE memory_audit_private SET salt = replace(salt, 'a', 'b') WHERE seq = 3"),
    ("gap", "DELETE FROM memory_audit WHERE seq = 2"),
    (
        "edited_entry",
        "UPDATE memory_audit SET seq = -2 WHERE seq = 2; UPDATE memory_audit SET seq = 2 WHERE seq = 3; \
         UPDATE memory_audit SET seq = 3 WHERE seq = -2",
    ),
    (
        "moved_head",
        "INSERT INTO memory_audit (seq, at, database_id, actor, action, public, commitments, prev_hash, hash) \
         SELECT 5, at, database_id, actor, action, public, commitments, hash, prev_hash FROM memory_audit WHERE seq = 4",
    ),
    ("moved_head", "UPDATE memory_audit_head SET seq = 3"),
    ("moved_head", "DELETE FROM memory_audit_head"),
    ("silent_redaction", "DELETE FROM memory_audit_private WHERE seq = 3 AND field = 'changes'"),
    ("foreign_chain", "UPDATE memory_migrations SET database_id = 'another'"),
    ("unknown_value", "INSERT INTO memory_audit_private (seq, field, salt, value) VALUES (2, 'extra', '00', '1')"),
    (
        "truncated",
        "DELETE FROM memory_audit_private WHERE seq = 4; DELETE FROM memory_audit WHERE seq = 4; \
         UPDATE memory_audit_head SET seq = 3, hash = (SELECT hash FROM memory_audit WHERE seq = 3)",
    ),
];

async fn with_entries(world: &World) {
    with_user(world).await;
    let episode = some_episode(world).await;
    for rating in 1..=3 {
        done(world, feedback::add(&world.store, &episode, &said("rating", Some(rating), None)).await).await;
    }
}

#[test]
fn every_way_of_tampering_with_the_trail_is_told() {
    block_on(async {
        for (kind, sql) in TAMPERING {
            let world = small().await;
            with_entries(&world).await;
            let anchor = audit::anchor(&world.store).await.expect("an anchor");
            let sound = audit::verify(&world.store, std::slice::from_ref(&anchor)).await.expect("a verdict");
            assert!(sound.ok && sound.notes.is_empty(), "{sound:?}");
            meddle(&world, sql).await;
            let verdict = audit::verify(&world.store, &[anchor]).await.expect("a verdict");
            assert!(verdict.faults.iter().any(|f| f.kind == *kind), "{sql}: {:?}", verdict.faults);
        }
    });
}

#[test]
fn nothing_hides_beyond_the_numbers_of_the_trail() {
    block_on(async {
        for world in [Some(small().await), native_on_postgres().await].into_iter().flatten() {
            with_entries(&world).await;
            for seq in [i64::MIN, -1, i64::MAX] {
                for (kind, sql, back) in [
                    (
                        "gap",
                        format!(
                            "INSERT INTO memory_audit \
                             SELECT {seq}, at, database_id, 'ghost', action, public, commitments, prev_hash, hash \
                             FROM memory_audit WHERE seq = 1"
                        ),
                        format!("DELETE FROM memory_audit WHERE seq = {seq}"),
                    ),
                    (
                        "unknown_value",
                        format!("INSERT INTO memory_audit_private VALUES ({seq}, 'extra', '00', '1')"),
                        format!("DELETE FROM memory_audit_private WHERE seq = {seq}"),
                    ),
                ] {
                    meddle(&world, &sql).await;
                    let verdict = audit::verify(&world.store, &[]).await.expect("a verdict");
                    assert!(verdict.faults.iter().any(|f| f.kind == kind), "{sql}: {:?}", verdict.faults);
                    meddle(&world, &back).await;
                }
            }
            assert!(audit::verify(&world.store, &[]).await.expect("a verdict").ok);
        }
    });
}

#[test]
fn redacted_values_are_accepted_and_returning_ones_told() {
    block_on(async {
        for world in [Some(small().await), native_on_postgres().await].into_iter().flatten() {
            with_entries(&world).await;
            let keep = "CREATE TABLE bomb AS SELECT * FROM memory_audit_private WHERE seq = 3 AND field = 'changes'";
            meddle(&world, keep).await;
            let own = world.store.records().own().await.unwrap().expect("our tables");
            let at = change::now();
            let mut writer = world.store.write(&at).await.expect("a transaction");
            let values = [(3, "changes".to_owned())];
            audit::redact(&mut writer, &own, &at, "tester", &values, &serde_json::Map::new()).await.expect("redacted");
            writer.commit().await.expect("committed");
            let verdict = audit::verify(&world.store, &[]).await.unwrap();
            assert!(verdict.ok && verdict.redacted == 1, "{verdict:?}");
            meddle(&world, "INSERT INTO memory_audit_private SELECT * FROM bomb").await;
            let verdict = audit::verify(&world.store, &[]).await.unwrap();
            assert_eq!(verdict.faults.iter().map(|f| (f.kind, f.seq)).collect::<Vec<_>>(), [("resurrected_value", 3)]);
            if matches!(world.target, Target::File(_)) {
                // Bytes that are read as the same word.
                meddle(&world, "UPDATE memory_audit SET action = CAST(action AS BLOB) WHERE action = 'audit.redact'")
                    .await;
                let verdict = audit::verify(&world.store, &[]).await.unwrap();
                assert!(verdict.faults.iter().any(|f| (f.kind, f.seq) == ("resurrected_value", 3)), "{verdict:?}");
            }
        }
    });
}

#[test]
fn without_our_tables_a_database_is_view_only_and_says_what_helps() {
    block_on(async {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("memory.db");
        build_sqlite(Layout::Atom, &path).await;
        let store = open(&Target::File(path.clone())).await;
        let status = store.report().status().await.expect("the status");
        let write = status.capabilities.iter().find(|c| c.name == "write").expect("the capability");
        assert!(
            !write.available && write.remedy.as_deref().is_some_and(|r| r.ends_with("migrate --apply")),
            "{write:?}"
        );
        let ours = mnemoscope::store::own::migrations(store.engine()).into_iter().map(|m| m.name);
        let expected: Vec<String> = ours.chain(["atom/0001_agent_canvas_index".to_owned()]).collect();
        assert_eq!(status.migrations.pending, expected);
        let refused = feedback::add(&store, "ep-1", &said("thumbs_up", None, None)).await;
        assert!(
            matches!(&refused, Err(ChangeError::Refused(words)) if words.contains("migrate --apply")),
            "{refused:?}"
        );
        assert_eq!(migrate::apply(&store, &author(), None).await.expect("applied"), expected);
        assert!(migrate::apply(&store, &author(), None).await.expect("nothing left").is_empty());
        let status = open(&Target::File(path)).await.report().status().await.expect("the status");
        assert!(status.capabilities.iter().any(|c| c.name == "write" && c.available));
        assert!(status.migrations.pending.is_empty());
    });
}

#[test]
fn a_plan_that_cannot_be_applied_yet_says_what_is_missing() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = crate::support::demo_in(folder.path(), 120).display().to_string();
    let told = |words: &[&str]| {
        let (code, plan, said) = run(folder.path(), &[&["-d", &path, "--format", "json"], words].concat());
        assert_eq!((code, plan["changes"].is_array()), (Some(0), true), "{words:?}: {said}");
        let disclosures = plan["disclosures"].to_string();
        disclosures.contains("not be applied yet") && disclosures.contains("migrate --apply")
    };
    let plans: [&[&str]; 3] = [&["prune", "--window", "1"], &["purge", "felix.abbott"], &["backfill", "links"]];
    assert!(plans.iter().all(|words| told(words)), "a plan without a word");
    let (code, _, words) = run(folder.path(), &["-d", &path, "migrate", "--apply"]);
    assert_eq!(code, Some(0), "{words}");
    assert!(!plans.iter().any(|words| told(words)), "it can be applied");
}

#[test]
fn a_change_whose_rows_the_trail_no_longer_tells_is_not_laid_to_an_agent() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = crate::support::changeable_demo_in(folder.path(), 120);
    let path = path.display().to_string();
    let ran = |words: &[&str]| {
        let mut command = crate::support::alone_in(folder.path());
        command.args(["-d", &path, "--format", "json"]).args(words).output().expect("the program")
    };
    let json = |words: &[&str]| {
        let done = ran(words);
        serde_json::from_slice::<serde_json::Value>(&done.stdout).unwrap_or_else(|e| panic!("{words:?}: {e}: {done:?}"))
    };
    let memories = json(&["list", "memory", "--where", "user_id != felix.abbott", "--limit", "2"]);
    let id = |at: usize| memories["rows"][at]["id"].as_str().expect("an id").to_owned();
    let (named, other) = (id(0), id(1));
    for (memory, title) in [(&named, "title=ask felix.abbott"), (&other, "title=nobody")] {
        json(&["edit", "memory", memory, title, "--apply"]);
    }
    json(&["purge", "felix.abbott", "--mentions", "redact", "--account", "erase", "--apply"]);
    let words = |seq: &str| {
        let undone = ran(&["undo", seq]);
        assert_eq!(undone.status.code(), Some(4), "{undone:?}");
        String::from_utf8_lossy(&undone.stderr).into_owned()
    };
    // Entry 2 changed the row from which the erasure took the name.
    let told = words("2");
    assert!(told.contains("the trail does not say") && !told.contains("change of this program"), "{told}");
    let agent = format!("UPDATE memories SET title = 'theirs' WHERE id = '{named}'");
    crate::support::block_on(async {
        let mut link = crate::support::world::sqlite(std::path::Path::new(&path)).await;
        sqlx::raw_sql(sqlx::AssertSqlSafe(agent)).execute(&mut link).await.expect("written");
        sqlx::Connection::close(link).await.expect("closed");
    });
    json(&["edit", "memory", &named, "title=ours", "--apply"]);
    let told = words("2");
    assert!(told.contains("changed by entry"), "{told}");
}
