//! A decision for each mention: by its id, or for all in a column; kept in a plan file; refused where it cannot be done.

use std::collections::BTreeMap;

use mnemoscope::change::ChangeError;
use mnemoscope::change::apply::apply;
use mnemoscope::change::purge::{self, Mentions, NewDecisions, PurgeOptions};
use mnemoscope::change::{audit, hold};
use serde_json::{Value, json};

use super::{Target, World, author, everything, finished, on_postgres, on_sqlite, planted};
use crate::support::block_on;
use crate::support::fixtures::Layout;

/// Three rows of someone else that name the person.
const PLANTS: &str = "INSERT INTO episodes (id, title, summary, agent_id, user_id, workspace_id, status, maturity_at_time, \
     human_intervention_count, access_count) SELECT p.id, p.title, 'nobody', 'agent-ledger', 'user-ben', 'w', 'completed', 'student', 0, 0 \
     FROM (SELECT 'plant-1' AS id, 'ask ana.ruiz@initech.example first' AS title UNION ALL \
     SELECT 'plant-2', 'ask ana.ruiz@initech.example second' UNION ALL \
     SELECT 'plant-3', 'ask ana.ruiz@initech.example third') p";

async fn planned(world: &World, options: &PurgeOptions) -> Value {
    let plan = purge::plan(&world.open().await, "user-ana", options, &|_, _| {}).await;
    json!(plan.unwrap_or_else(|error| panic!("{error}")).printed())
}

/// The id of the mention in a column of a row.
fn id_of(plan: &Value, column: &str, key: &str) -> String {
    let mentions = plan["mentions"].as_array().expect("mentions");
    let found = mentions.iter().find(|m| m["column"] == column && m["key"] == key);
    found.unwrap_or_else(|| panic!("no mention in {column} of {key}: {mentions:#?}"))["id"]
        .as_str()
        .expect("an id")
        .into()
}

fn each(decisions: &[(&str, Mentions)]) -> PurgeOptions {
    let each: BTreeMap<String, Mentions> = decisions.iter().map(|(id, what)| ((*id).to_owned(), *what)).collect();
    PurgeOptions { each, account: true, ..PurgeOptions::default() }
}

#[test]
fn a_mention_says_whose_row_it_is_in() {
    block_on(async {
        for world in planted(PLANTS).await {
            let store = world.open().await;
            let plan = purge::plan(&store, "user-ana", &PurgeOptions::default(), &|_, _| {}).await.expect("a plan");
            let preview = purge::preview(&store, &plan).await.expect("a preview");
            let planted = preview.named.iter().filter(|mention| mention.key.starts_with("plant-"));
            let owners: Vec<&str> = planted.map(|mention| &*mention.owner).collect();
            assert_eq!(owners, ["user-ben"; 3]);
        }
    });
}

#[test]
fn each_mention_gets_what_was_decided_for_it() {
    block_on(async {
        for world in planted(PLANTS).await {
            let shown = planned(&world, &PurgeOptions::default()).await;
            let [one, two, three] = ["plant-1", "plant-2", "plant-3"].map(|key| id_of(&shown, "title", key));
            let first = shown["mentions"].as_array().and_then(|all| all.iter().find(|m| m["id"] == one.as_str()));
            let first = first.expect("the first one");
            assert_eq!(first["options"], json!(["leave", "redact", "delete"]));
            assert_eq!((&first["decision"], &first["certainty"]), (&json!("leave"), &json!("certain")));
            assert_eq!(first["sample"], "ask […] first");
            let options = each(&[(&one, Mentions::Redact), (&two, Mentions::Delete), (&three, Mentions::Leave)]);
            let (plan, receipt) = world.purge("user-ana", &options).await.expect("a receipt");
            assert_ne!(plan["plan_id"], shown["plan_id"]);
            assert_eq!(plan["counts"], receipt["counts"]);
            assert_eq!(receipt["status"], "verified with disclosures", "{receipt:#}");
            let titles = world.texts("SELECT title FROM episodes WHERE id LIKE 'plant-%' ORDER BY id").await;
            assert_eq!(titles, ["ask [erased] first", "ask ana.ruiz@initech.example third"]);
        }
    });
}

#[test]
fn a_column_is_decided_at_once_and_one_in_it_otherwise() {
    block_on(async {
        for world in planted(PLANTS).await {
            let plan = planned(&world, &PurgeOptions::default()).await;
            let options =
                each(&[("episodes.title", Mentions::Redact), (&id_of(&plan, "title", "plant-2"), Mentions::Leave)]);
            world.purge("user-ana", &options).await.expect("a receipt");
            let titles = world.texts("SELECT title FROM episodes WHERE id LIKE 'plant-%' ORDER BY id").await;
            assert_eq!(titles, ["ask [erased] first", "ask ana.ruiz@initech.example second", "ask [erased] third"]);
        }
    });
}

#[test]
fn a_decision_about_nothing_or_that_cannot_be_done_is_refused() {
    block_on(async {
        for world in planted(PLANTS).await {
            world.run("CREATE TABLE crm_notes (id INTEGER PRIMARY KEY, note TEXT); INSERT INTO crm_notes VALUES (1, 'ask user-ana')").await;
            let plan = planned(&world, &PurgeOptions::default()).await;
            let known = id_of(&plan, "title", "plant-1");
            let near = format!("{}0", &known[..known.len() - 1]);
            let near = if near == known { format!("{}1", &known[..known.len() - 1]) } else { near };
            let error =
                world.purge("user-ana", &each(&[(&near, Mentions::Redact)])).await.expect_err("no such mention");
            assert!(matches!(&error, ChangeError::Usage(words) if words.contains(&known)), "{error}");
            let outside = id_of(&plan, "note", "1");
            let error = world.purge("user-ana", &each(&[(&outside, Mentions::Delete)])).await.expect_err("outside");
            let words = error.to_string();
            assert!(matches!(error, ChangeError::Refused(_)) && words.contains("outside the layout"), "{words}");
            assert!(words.ends_with("leave"), "{words}");
            assert_eq!(
                world.count("episodes WHERE user_id = 'user-ana'").await,
                plan_rows(&plan),
                "nothing was erased"
            );
        }
    });
}

fn plan_rows(plan: &Value) -> i64 {
    plan["counts"]["episodes"]["delete"].as_i64().expect("rows")
}

#[test]
fn the_command_takes_decisions_and_a_plan_file_keeps_them() {
    let world = block_on(async { planted(PLANTS).await.remove(0) });
    let purge = |more: &[&str]| {
        let arguments: Vec<&str> = ["purge", "user-ana", "--account", "erase"].iter().chain(more).copied().collect();
        finished(&world, &arguments)
    };
    let shown: Value = serde_json::from_slice(&purge(&[]).stdout).expect("a plan");
    assert_eq!(shown["mentions_total"], json!(shown["mentions"].as_array().map(Vec::len)));
    let one = id_of(&shown, "title", "plant-1");
    assert_eq!(purge(&["--mention", "m_0000000000=redact"]).status.code(), Some(2));
    assert_eq!(purge(&["--mention", &format!("{one}=burn")]).status.code(), Some(2));
    let file = world.folder.path().join("plan.json").display().to_string();
    let kept = purge(&["--mentions", "redact", "--mention", &format!("{one}=leave"), "--plan-out", &file]);
    assert_eq!(kept.status.code(), Some(0), "{}", String::from_utf8_lossy(&kept.stderr));
    let title =
        |title: &str| block_on(world.run(&format!("UPDATE episodes SET title = '{title}' WHERE id = 'plant-1'")));
    title("nobody is named");
    assert_eq!(finished(&world, &["apply", &file]).status.code(), Some(4), "the mention is gone");
    title("ask ana.ruiz@initech.example first");
    let done = finished(&world, &["apply", &file]);
    assert_eq!(done.status.code(), Some(0), "{}", String::from_utf8_lossy(&done.stderr));
    let titles = block_on(world.texts("SELECT title FROM episodes WHERE id LIKE 'plant-%' ORDER BY id"));
    assert_eq!(titles, ["ask ana.ruiz@initech.example first", "ask [erased] second", "ask [erased] third"]);
}

/// Gives two episodes of someone else a value that is read and not written: CBOR that names the person.
async fn with_cbor(world: &World) {
    let cbor = |text: &str| format!("a1616e78{:02x}{}", text.len(), hex::encode(text));
    let (kind, literal): (&str, fn(&str) -> String) = match world.target {
        Target::File(_) => ("BLOB", |hex| format!("x'{hex}'")),
        Target::Postgres(_) => ("bytea", |hex| format!("'\\x{hex}'::bytea")),
    };
    world.run(&format!("ALTER TABLE episodes ADD COLUMN packed {kind}")).await;
    for plant in ["plant-1", "plant-2"] {
        let value = literal(&cbor("user-ana told"));
        world.run(&format!("UPDATE episodes SET packed = {value} WHERE id = '{plant}'")).await;
    }
}

#[test]
fn what_could_not_be_redacted_is_incomplete_until_it_is_decided_otherwise() {
    block_on(async {
        for world in planted(PLANTS).await {
            with_cbor(&world).await;
            let (plan, receipt) = world.purge("user-ana", &everything()).await.expect("a receipt");
            assert_eq!(plan["mentions_by_column"]["episodes.packed"]["undone"], 2, "{plan:#}");
            assert_eq!(receipt["status"], "incomplete", "{receipt:#}");
            let said = receipt["incomplete"].to_string();
            let [one, two] = ["plant-1", "plant-2"].map(|key| id_of(&plan, "packed", key));
            assert!(said.contains("episodes.packed: 2 values") && said.contains(&one) && said.contains(&two), "{said}");
            // As it was asked for it never ends.
            let same = world.carry_out("user-ana", &everything(), true).await.expect("a receipt");
            assert_eq!(same["status"], "incomplete", "{same:#}");

            let decided = |each: &[(&str, Mentions)]| NewDecisions {
                all: None,
                each: each.iter().map(|(name, what)| ((*name).to_owned(), *what)).collect(),
            };
            let error = world.resume("user-ana", &decided(&[("m_0000000000", Mentions::Leave)])).await;
            assert!(matches!(error, Err(ChangeError::Usage(_))), "{error:?}");
            let error = world.resume("user-ana", &decided(&[(&one, Mentions::Redact)])).await.expect_err("CBOR");
            assert!(matches!(error, ChangeError::Refused(_)), "{error}");

            let half = world.resume("user-ana", &decided(&[(&one, Mentions::Leave)])).await.expect("a receipt");
            assert_eq!(half["status"], "incomplete", "{half:#}");
            assert!(half["incomplete"].to_string().contains("episodes.packed: 1 value"), "{half:#}");
            let ended = world.resume("user-ana", &decided(&[(&two, Mentions::Delete)])).await.expect("a receipt");
            assert_eq!(ended["status"], "verified with disclosures", "{ended:#}");
            assert!(ended["disclosures"].to_string().contains("episodes.packed: 1 value names the person and is left"));
            assert_eq!(world.texts("SELECT id FROM episodes WHERE packed IS NOT NULL").await, ["plant-1"]);
            assert_eq!(world.count("episodes WHERE id = 'plant-2'").await, 0);
            let told = &ended["decisions_on_resume"];
            assert_eq!((&told[0]["each"]["leave"], &told[1]["each"]["delete"]), (&json!(1), &json!(1)), "{told}");
            assert_eq!(told[0]["actor"], "officer");
            let resumed = "SELECT public FROM memory_audit WHERE action = 'purge.resume' ORDER BY seq";
            assert!(world.texts(resumed).await.concat().contains("\"leave\":1"));
            assert!(audit::verify(&world.open().await, &[]).await.expect("a trail").ok);
        }
    });
}

#[test]
fn leaving_all_on_resume_ends_an_erasure_and_does_not_cover_what_is_written_later() {
    block_on(async {
        for world in planted(PLANTS).await {
            with_cbor(&world).await;
            let (_, receipt) = world.purge("user-ana", &everything()).await.expect("a receipt");
            assert_eq!(receipt["status"], "incomplete", "{receipt:#}");
            world
                .run("CREATE TABLE copies (id TEXT, words TEXT); INSERT INTO copies VALUES ('1', 'ask user-ana')")
                .await;
            let column = NewDecisions { all: None, each: [("episodes.packed".to_owned(), Mentions::Leave)].into() };
            let later = world.resume("user-ana", &column).await.expect("a receipt");
            assert_eq!(later["status"], "incomplete", "{later:#}");
            assert!(later["incomplete"].to_string().contains("copies.words"), "{later:#}");
            assert!(!later["incomplete"].to_string().contains("episodes.packed"), "{later:#}");
            let all = NewDecisions { all: Some(Mentions::Leave), each: BTreeMap::new() };
            let ended = world.resume("user-ana", &all).await.expect("a receipt");
            assert_eq!(ended["status"], "verified with disclosures", "{ended:#}");
            assert_eq!(ended["mentions"], "leave");
        }
    });
}

#[test]
fn the_command_resumes_with_other_decisions() {
    let world = block_on(async {
        let world = planted(PLANTS).await.remove(0);
        with_cbor(&world).await;
        world
    });
    let purge = |more: &[&str]| {
        let arguments: Vec<&str> = ["purge", "user-ana", "--account", "erase"].iter().chain(more).copied().collect();
        finished(&world, &arguments)
    };
    let first = purge(&["--mentions", "redact", "--apply"]);
    assert_eq!(first.status.code(), Some(6));
    let receipt: Value = serde_json::from_slice(&first.stdout).expect("a receipt");
    let verify = || {
        let looked = finished(&world, &["purge", "verify", receipt["receipt_id"].as_str().expect("an id")]);
        assert_eq!(looked.status.code(), Some(6));
        let answer: Value = serde_json::from_slice(&looked.stdout).expect("an answer");
        (answer, String::from_utf8_lossy(&looked.stderr).into_owned())
    };
    // What was left then is not said to have been written since, nor nothing to be a reason.
    let (answer, words) = verify();
    let told = "left by the erasure, which ended incomplete, or written since";
    assert!(answer["disclosures"].to_string().contains(told) && words.contains(told), "{answer:#} {words}");
    assert_eq!(purge(&["--resume"]).status.code(), Some(6), "the default is no decision");
    let further = purge(&["--resume", "--alias", "ana.before@example.com"]);
    let words = String::from_utf8_lossy(&further.stderr).into_owned();
    assert!(further.status.code() == Some(2) && words.contains("without --alias ana.before@example.com"), "{words}");
    let ended = purge(&["--resume", "--mention", "episodes.packed=leave"]);
    assert_eq!(ended.status.code(), Some(0), "{}", String::from_utf8_lossy(&ended.stderr));
    block_on(world.run("UPDATE episodes SET packed = NULL"));
    let (answer, words) = verify();
    assert_eq!(answer["verification"]["logical"]["hits"], 0, "{answer:#}");
    assert!(words.contains("ended incomplete: resume it") && !words.contains("0 values"), "{words}");
}

/// Notes by Ben of Ana's episodes, in a table of an application that no layout speaks of.
const PINS: &str = "CREATE TABLE pins (id TEXT PRIMARY KEY, episode_id TEXT NOT NULL REFERENCES episodes (id), by_whom TEXT); \
     INSERT INTO pins SELECT 'pin-' || id, id, 'user-ben' FROM episodes WHERE user_id = 'user-ana'";

#[test]
fn rows_of_others_that_go_along_are_said() {
    block_on(async {
        for world in planted(PLANTS).await {
            world.run(PINS).await;
            let pins = world.count("pins").await;
            let options = PurgeOptions { account: true, ..PurgeOptions::default() };
            let (plan, receipt) = world.purge("user-ana", &options).await.unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(plan["counts"]["pins"]["delete"].as_i64(), Some(pins));
            assert_eq!(world.count("pins").await, 0);
            let told = format!("the table pins is outside the layout: {pins} row");
            assert!(receipt["disclosures"].to_string().contains(&told), "{receipt:#}");
        }
    });
}

#[test]
fn rows_of_somebody_under_a_hold_go_with_nobody_elses() {
    block_on(async {
        for world in [Some(on_sqlite(Layout::Atom).await), on_postgres(Layout::Atom).await].into_iter().flatten() {
            let [(person, other)] = [("user-ana", "user-ben")];
            let shared = "turn_facts WHERE user_id = 'user-ben'";
            world.run("UPDATE turn_facts SET user_id = 'user-ben' WHERE user_id = 'user-ana'").await;
            let facts = world.count(shared).await;
            assert!(facts > 0);
            let store = world.open().await;
            let hold = hold::hold(&store, other, Some("a lawsuit"), "officer").await.expect("a plan");
            apply(&store, &hold, &author()).await.expect("a hold");
            let options = PurgeOptions { account: true, ..PurgeOptions::default() };
            let refused = world.purge(person, &options).await;
            assert!(matches!(&refused, Err(ChangeError::Refused(why)) if why.contains("legal hold")), "{refused:?}");
            assert_eq!(world.count(shared).await, facts);
            let unhold = hold::unhold(&store, other).await.expect("a plan");
            apply(&store, &unhold, &author()).await.expect("no hold");
            let (_, receipt) = world.purge(person, &options).await.unwrap_or_else(|error| panic!("{error}"));
            assert!(receipt["disclosures"].to_string().contains("another owner"), "{receipt:#}");
        }
    });
}
