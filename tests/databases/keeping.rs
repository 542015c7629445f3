//! Data kept next to the memory itself: anchors of the trail outside the database, and the companion database of a
//! palace, which alone is written.

use crate::support::block_on;
use crate::support::fixtures::{Layout, build_sqlite};
use crate::support::world::*;
use mnemoscope::change::operation::ImportFormat;
use mnemoscope::change::purge::{self, PurgeOptions};
use mnemoscope::change::{self, ChangeError, anchor, audit, feedback, import, migrate, record, signal, undo};
use mnemoscope::memory::Entity;
use mnemoscope::memory::utility::Signal;
use mnemoscope::store::{OpenOptions, Store, Target};
use serde_json::json;
use std::path::{Path, PathBuf};

async fn with_anchors(target: &Target, folder: &Path) -> Store {
    let options = OpenOptions { anchors: Some(folder.to_owned()), ..crate::support::options() };
    Store::open(target, &options).await.unwrap_or_else(|error| panic!("{error}"))
}

async fn rated(store: &Store, rating: i64) {
    let episode = store.page(&mnemoscope::memory::query::Query::new(Entity::Episode)).await.expect("episodes").rows;
    let said = said("rating", Some(rating), None);
    let plan = || feedback::add(store, episode[0].id(), &said);
    change::plan_and_apply(store, &author(), plan).await.unwrap_or_else(|error| panic!("{error}"));
}

#[cfg(unix)]
#[test]
fn an_acceptance_is_in_the_trail_before_the_anchors_end() {
    block_on(async {
        let (world, folder) = (small().await, tempfile::tempdir().expect("a folder"));
        let store = with_anchors(&world.target, folder.path()).await;
        rated(&store, 3).await;
        rated(&store, 4).await;
        anchor::keep(&store).await.expect("kept");
        let cut = "DELETE FROM memory_audit_private WHERE seq > 2; DELETE FROM memory_audit WHERE seq > 2; \
            UPDATE memory_audit_head SET seq = 2, hash = (SELECT hash FROM memory_audit WHERE seq = 2)";
        meddle(&world, cut).await;
        // The file of what was accepted cannot be written: as if it was killed before.
        let file = folder.path().join("accepted.jsonl");
        std::os::unix::fs::symlink(folder.path().join("nowhere/file"), &file).expect("a link");
        let by = change::Author { reason: Some("a restored backup".to_owned()), ..author() };
        anchor::accept(&store, &by).await.expect_err("there is no such folder");
        std::fs::remove_file(&file).expect("removed");
        assert!(!anchor::verify(&store, &[]).await.expect("a verdict").ok, "the anchors have not ended");
        let accepted = anchor::accept(&store, &by).await.expect("accepted");
        assert_eq!((accepted.status, accepted.audit_seq), ("accepted", Some(4)), "{accepted:?}");
        assert!(anchor::verify(&store, &[]).await.expect("a verdict").ok);
    });
}

#[test]
fn an_anchor_that_was_kept_sees_what_the_chain_alone_cannot_show() {
    block_on(async {
        for world in [Some(small().await), native_on_postgres().await].into_iter().flatten() {
            let folder = tempfile::tempdir().expect("a folder");
            let store = with_anchors(&world.target, folder.path()).await;
            let unknown = anchor::verify(&store, &[]).await.expect("a verdict");
            assert!(unknown.ok && unknown.anchored.is_none());
            assert!(unknown.notes.iter().any(|n| n.starts_with("without an anchor")), "{:?}", unknown.notes);
            rated(&store, 3).await;
            rated(&store, 4).await;
            let kept = anchor::keep(&store).await.expect("kept").expect("an anchor");
            assert_eq!(kept.seq, 3);
            let known = anchor::verify(&store, &[]).await.expect("a verdict");
            assert!(known.ok && known.anchored == Some(3) && known.notes.is_empty(), "{known:?}");
            rated(&store, 5).await;
            let newer = anchor::verify(&store, &[]).await.expect("a verdict");
            assert!(newer.ok && newer.notes[0].contains("after 3"), "{newer:?}");
            let cut = "DELETE FROM memory_audit_private WHERE seq > 2; DELETE FROM memory_audit WHERE seq > 2; \
                UPDATE memory_audit_head SET seq = 2, hash = (SELECT hash FROM memory_audit WHERE seq = 2)";
            meddle(&world, cut).await;
            assert!(audit::verify(&store, &[]).await.expect("a verdict").ok, "the chain alone shows nothing");
            let seen = anchor::verify(&store, &[]).await.expect("a verdict");
            assert_eq!(seen.faults.iter().map(|f| f.kind).collect::<Vec<_>>(), ["truncated"]);
            // A change after the cut keeps an anchor of its own, and hides nothing.
            rated(&store, 1).await;
            rated(&store, 2).await;
            anchor::keep(&store).await.expect("kept");
            let seen = anchor::verify(&store, &[]).await.expect("a verdict");
            assert_eq!(seen.faults.iter().map(|f| f.kind).collect::<Vec<_>>(), ["rewritten"]);
        }
    });
}

#[test]
fn a_copy_of_a_database_that_goes_its_own_way_does_not_fit_the_anchors_of_the_other() {
    block_on(async {
        let world = small().await;
        let folder = tempfile::tempdir().expect("a folder");
        let store = with_anchors(&world.target, folder.path()).await;
        rated(&store, 3).await;
        anchor::keep(&store).await.expect("kept");
        let path = folder.path().join("copy.db");
        meddle(&world, &format!("VACUUM INTO '{}'", path.display())).await;
        let copy = with_anchors(&Target::File(path), folder.path()).await;
        let fresh = anchor::verify(&copy, &[]).await.expect("a verdict");
        assert!(fresh.ok && fresh.anchored == Some(2) && fresh.notes.is_empty(), "the anchor fits both: {fresh:?}");
        rated(&store, 4).await;
        rated(&copy, 5).await;
        anchor::keep(&store).await.expect("kept");
        anchor::keep(&copy).await.expect("kept");
        for one in [&store, &copy] {
            let verdict = anchor::verify(one, &[]).await.expect("a verdict");
            assert_eq!(verdict.faults.iter().map(|f| f.kind).collect::<Vec<_>>(), ["rewritten"], "{verdict:?}");
            assert!(verdict.notes.iter().any(|n| n.contains("audit accept")), "{verdict:?}");
        }
        // Another database knows nothing of these.
        let other = native().await;
        let other = with_anchors(&other.target, folder.path()).await;
        assert_eq!(anchor::verify(&other, &[]).await.expect("a verdict").anchored, None);
    });
}

#[test]
fn every_hundredth_entry_is_anchored_and_a_folder_that_cannot_be_written_stops_no_change() {
    block_on(async {
        let world = small().await;
        let folder = tempfile::tempdir().expect("a folder");
        let store = with_anchors(&world.target, folder.path()).await;
        let episode = some_episode(&world).await;
        for turn in 2..=100 {
            assert_eq!(anchor::verify(&store, &[]).await.expect("a verdict").anchored, None, "entry {turn}");
            let plan = signal::add(&store, &episode, Signal::Ignored, by("me", None)).await.expect("a plan");
            change::apply(&store, &plan, &author()).await.expect("applied");
        }
        assert_eq!(anchor::verify(&store, &[]).await.expect("a verdict").anchored, Some(100));
        let nowhere = world.target.clone();
        let Target::File(file) = &nowhere else { return };
        let blocked = with_anchors(&nowhere, file).await;
        assert!(matches!(anchor::keep(&blocked).await, Err(ChangeError::Failed(_))));
        rated(&blocked, 3).await;
    });
}

async fn palace(folder: &Path, companion: &Path) -> Store {
    let options = OpenOptions { companion: Some(companion.to_owned()), ..crate::support::options() };
    Store::open(&Target::File(folder.to_owned()), &options).await.unwrap_or_else(|error| panic!("{error}"))
}

/// Every file of a folder with its bytes; what SQLite keeps there while someone reads does not count.
fn contents(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(folder).expect("the folder").map(|entry| entry.expect("a file").path()).collect();
    files.retain(|path| path.is_file() && !path.to_string_lossy().ends_with("-shm"));
    files.sort();
    files.into_iter().map(|path| (path.clone(), std::fs::read(&path).expect("its bytes"))).collect()
}

#[test]
fn a_palace_gets_a_companion_that_takes_what_is_recorded_and_stays_as_it_is() {
    block_on(async {
        let folder = tempfile::tempdir().expect("a folder");
        let (path, companion) = (folder.path().join("palace"), folder.path().join("state/companion.db"));
        build_sqlite(Layout::Mempalace, &path).await;
        let before = contents(&path);
        let store = palace(&path, &companion).await;
        let status = store.report().status().await.expect("the status");
        assert_eq!(status.migrations.pending[..2], ["0000_companion", "0001_audit"]);
        for name in ["write", "episode", "feedback"] {
            let capability = status.capabilities.iter().find(|c| c.name == name).expect("the capability");
            let remedy = capability.remedy.as_deref().unwrap_or_default();
            assert!(!capability.available && remedy.ends_with("migrate --apply"), "{capability:?}");
        }
        let episode = json!({"id": "ep-1", "title": "An invoice", "agent_id": "ana", "user_id": "u-1",
            "started_at": "2026-11-21T03:00:00Z", "utility": 0.5});
        let refused = record::episode(&store, &episode.to_string()).await;
        assert!(matches!(refused, Err(ChangeError::Refused(_) | ChangeError::Store(_))), "{refused:?}");
        let pending = migrate::state(&store).await.expect("the state").pending;
        assert!(pending[0].sql.contains("CREATE TABLE IF NOT EXISTS episodes"), "its SQL is shown first");
        let applied = migrate::apply(&store, &author(), None).await.expect("made");
        assert_eq!(applied, status.migrations.pending);

        let store = palace(&path, &companion).await;
        assert!(store.report().status().await.expect("the status").migrations.pending.is_empty());
        assert!(migrate::apply(&store, &author(), None).await.expect("nothing left").is_empty());
        let apply = async |plan: Result<change::Plan, ChangeError>| {
            let plan = plan.unwrap_or_else(|error| panic!("{error}"));
            change::apply(&store, &plan, &author()).await.unwrap_or_else(|error| panic!("{error}"))
        };
        apply(record::episode(&store, &episode.to_string()).await).await;
        let link = json!({"entity": "memory_link", "episode_id": "ep-1", "memory_id": "drawer_ana_billing_01"});
        apply(import::plan(&store, ImportFormat::Jsonl, "x", &link.to_string(), false).await).await;
        let added = apply(feedback::add(&store, "ep-1", &said("thumbs_up", None, None)).await).await;
        apply(signal::add(&store, "ep-1", Signal::Confirmed, by("me", None)).await).await;
        let context = store.contexts().episode("ep-1").await.expect("an answer").expect("the episode");
        assert_eq!(context.episode.number("feedback_score"), Some(1.0));
        let drawer = store.row(Entity::Memory, "drawer_ana_billing_01").await.unwrap().expect("the drawer");
        assert_eq!((drawer.get("uses"), drawer.number("utility")), (&json!(1), Some(0.7)));
        assert_eq!(drawer.text("text"), Some("Ana Ruiz asked for the August invoice"));
        let flags = (&drawer.get("metadata")["pinned"], &drawer.get("metadata")["stale"]);
        assert_eq!(flags, (&json!(true), &json!(false)), "{drawer:?}");
        let own = json!({"entity": "memory", "id": drawer.id(), "text": drawer.get("text")}).to_string();
        let known = import::plan(&store, ImportFormat::Jsonl, "x", &own, false).await.expect("a plan");
        assert!(known.is_empty() && known.effects[0].ends_with("1 already exist"), "{known:?}");
        apply(undo::undo(&store, added.audit_seq.expect("an entry")).await).await;
        assert!(store.contexts().episode("ep-1").await.unwrap().expect("the episode").feedback.is_empty());
        // Nobody has an id in a palace: it is searched as without a companion.
        let plan = purge::plan(&store, "Ana Ruiz", &PurgeOptions::default(), &|_, _| {}).await.expect("a plan");
        let plan = json!(plan.printed());
        assert_eq!(plan["counts"], json!({}), "{plan:#}");
        assert!(plan["mentions_total"].as_u64().is_some_and(|n| n > 0), "{plan:#}");
        let unowned = plan["disclosures"][0].as_str().unwrap_or_default();
        assert!(unowned.starts_with("a palace does not say whom its drawers are about"), "{plan:#}");
        let nobody = purge::plan(&store, "nobody@nowhere.example", &PurgeOptions::default(), &|_, _| {}).await;
        assert!(matches!(nobody, Err(ChangeError::NotFound(_))), "{nobody:?}");
        let verdict = audit::verify(&store, &[]).await.expect("a trail");
        assert!(verdict.ok && verdict.entries == 6, "{verdict:?}");
        assert_eq!(contents(&path), before, "the palace itself is not touched");
    });
}

#[test]
fn no_erasure_begins_in_a_palace_with_a_companion() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("palace");
    block_on(build_sqlite(Layout::Mempalace, &path));
    let run = |words: &[&str]| {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_mnemoscope"));
        command.env("HOME", folder.path()).env("MNEMOSCOPE_STATE", folder.path().join("state"));
        command.arg("-d").arg(&path).args(["--format", "json"]).args(words).output().expect("it runs")
    };
    assert_eq!(run(&["migrate", "--apply"]).status.code(), Some(0));
    assert_eq!(run(&["purge", "Ana Ruiz"]).status.code(), Some(0));
    let refused = run(&["purge", "Ana Ruiz", "--apply"]);
    let words = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(5), "{words}");
    assert!(words.contains("nothing can be erased there, only searched"), "{words}");
    let listed = String::from_utf8(run(&["audit", "list"]).stdout).expect("text");
    assert!(!listed.contains("purge.begin"), "{listed}");
}
