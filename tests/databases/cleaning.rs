//! Secrets and hidden characters wherever they may stand: in free text, in keys of JSON, in names and lists, in event
//! logs; removed where that may be, said by number where not, and never printed. Through the program, on both engines.

use std::process::{Command, Output, Stdio};

use crate::support::world::*;
use crate::support::{block_on, told as said};
use mnemoscope::change::import::message_hash;
use mnemoscope::store::Target;
use serde_json::Value;

const SECRET: &str = "ghp_abcdefghijklmnopqrstuvwxyz0123456789";

fn run(world: &World, arguments: &[&str]) -> Output {
    let state = tempfile::tempdir().expect("a folder");
    let mut command = Command::new(env!("CARGO_BIN_EXE_mnemoscope"));
    command.args(["-d", &address(world), "--format", "json"]).args(arguments);
    command.env("MNEMOSCOPE_STATE", state.path()).stdin(Stdio::null()).output().expect("the program")
}

fn count(world: &World, from: &str) -> i64 {
    let counted = block_on(texts(world, &format!("SELECT CAST(count(*) AS TEXT) FROM {from}")));
    counted[0].parse().expect("a count")
}

/// Puts a text into a key, a member, a list, a name and a log.
fn plant(world: &World, text: &str) {
    let json = |value: &str| match world.target {
        Target::File(_) => format!("'{value}'"),
        Target::Postgres(_) => format!("'{value}'::jsonb"),
    };
    let (keyed, listed) =
        (json(&format!("{{\"{text}\": 1, \"{text}x\": 2}}")), json(&format!("[\"{text}\", \"plain\"]")));
    let logged = json(&format!("{{\"said\": \"{text}\"}}"));
    let sql = format!(
        "UPDATE episodes SET metadata = {keyed}, tags = {listed} WHERE id = (SELECT min(id) FROM episodes); \
         INSERT INTO canvas_audit (id, component_name, action, created_at) \
           VALUES ('planted', 'chart {text}', 'present', '2026-01-01T00:00:00.000000Z'); \
         INSERT INTO workflow_events (id, run_id, sequence, kind, data, created_at) \
           VALUES ('planted', 'run-planted', 1, 'said', {logged}, '2026-01-01T00:00:00.000000Z')"
    );
    block_on(meddle(world, &sql));
}

fn holds(world: &World, column: &str, table: &str, text: &str) -> i64 {
    count(world, &format!("{table} WHERE CAST({column} AS TEXT) LIKE '%{text}%'"))
}

fn check<'v>(receipt: &'v Value, what: &str) -> &'v Value {
    let checks = receipt["verification"].as_array().expect("checks");
    checks.iter().find(|check| check["what"] == what).unwrap_or(&Value::Null)
}

#[test]
fn secrets_are_taken_out_of_keys_names_and_lists_and_counted_where_they_stay() {
    for world in block_on(natives()) {
        plant(&world, SECRET);
        let member =
            "UPDATE episodes SET context = '{\"Password\": \"Hunter22\"}' WHERE id = (SELECT max(id) FROM episodes)";
        block_on(meddle(&world, member));
        let planned = run(&world, &["backfill", "secrets"]);
        assert!(planned.status.success() && !said(&planned).contains(SECRET), "{}", said(&planned));
        let columns = withheld(&planned);
        for column in ["metadata", "tags", "context", "component_name"] {
            assert!(columns.iter().any(|told| told == column), "{column}: {}", said(&planned));
        }
        let done = run(&world, &["backfill", "secrets", "--apply"]);
        assert!(!said(&done).contains(SECRET) && !said(&done).contains("Hunter22"), "{}", said(&done));
        assert_eq!(done.status.code(), Some(0), "{}", said(&done));
        for (column, table) in [("metadata", "episodes"), ("tags", "episodes"), ("component_name", "canvas_audit")] {
            assert_eq!(holds(&world, column, table, SECRET), 0, "{table}.{column}");
        }
        assert_eq!(holds(&world, "context", "episodes", "Hunter22"), 0);
        assert_eq!(holds(&world, "metadata", "episodes", "secret removed] 2"), 1, "no member was lost");
        assert_eq!(holds(&world, "data", "workflow_events", SECRET), 1, "a log is never rewritten");
        let receipt: Value = serde_json::from_slice(&done.stdout).expect("a receipt");
        assert_ne!(check(&receipt, "rows that still need it")["found"], "none");
        let logs = check(&receipt, "event logs and audit trails")["found"].as_str().expect("words");
        assert!(logs.starts_with("1 row holds secrets"), "{logs}");
        for table in ["memory_audit", "memory_audit_private", "memory_jobs"] {
            let column = if table == "memory_jobs" {
                "counts"
            } else if table == "memory_audit" {
                "public"
            } else {
                "value"
            };
            assert_eq!(holds(&world, column, table, SECRET), 0, "{table}.{column}");
        }
    }
}

/// The columns of which a plan shows what was there before, but for a secret. Each column that changes is one of them.
fn withheld(planned: &Output) -> Vec<String> {
    let plan: Value = serde_json::from_slice(&planned.stdout).expect("a plan");
    let mut columns = Vec::new();
    for change in plan["changes"].as_array().expect("changes") {
        for (column, after) in change["after"].as_object().expect("columns") {
            let before = change["before"][column].to_string();
            assert!(before.contains("[secret not shown]") && !before.contains("[secret removed]"), "{change}");
            assert!(after.to_string().contains("[secret removed]"), "{change}");
            if !columns.contains(column) {
                columns.push(column.clone());
            }
        }
    }
    columns
}

#[test]
fn the_hash_of_a_prompt_and_its_vector_do_not_tell_the_secret_that_was_in_it() {
    for world in block_on(natives()) {
        let case = format!(
            "INSERT INTO agent_memory_cases (id, user_id, agent_id, message_hash, prompt, created_at) VALUES ('planted', 'u', \
             'a', 'of the secret', '{{\"query\": \"use {SECRET}\"}}', '2026-01-01T00:00:00.000000Z')"
        );
        block_on(meddle(&world, &case));
        if matches!(world.target, Target::File(_)) {
            let vector =
                "INSERT INTO agent_memory_embeddings (case_id, embedding) VALUES ('planted', x'0000803F0000803F')";
            block_on(meddle(&world, vector));
        }
        let done = run(&world, &["backfill", "secrets", "--apply"]);
        assert_eq!(done.status.code(), Some(0), "{}", said(&done));
        let hash = message_hash("use [secret removed]");
        assert_eq!(count(&world, &format!("agent_memory_cases WHERE message_hash = '{hash}'")), 1);
        if matches!(world.target, Target::File(_)) {
            assert_eq!(count(&world, "agent_memory_embeddings WHERE case_id = 'planted'"), 0);
            assert!(said(&done).contains("1 vector of earlier texts goes"), "{}", said(&done));
        }
    }
}

#[test]
fn texts_of_people_under_a_legal_hold_are_not_cleaned() {
    for world in block_on(natives()) {
        let sql = format!(
            "INSERT INTO episodes (id, user_id, title) VALUES ('h-ep', 'held', 'token {SECRET}'), ('f-ep', 'free', 'token {SECRET}'); \
             INSERT INTO episode_segments (id, episode_id, sequence, kind, content) VALUES \
               ('h-seg', 'h-ep', 1, 'message', '{SECRET}'), ('f-seg', 'f-ep', 1, 'message', '{SECRET}'); \
             INSERT INTO memories (id, kind, text, user_id) VALUES ('h-m', 'fact', 'a\u{200b}b', 'held'), \
               ('f-m', 'fact', 'a\u{200b}b', 'free')"
        );
        block_on(meddle(&world, &sql));
        assert_eq!(run(&world, &["hold", "held", "--apply"]).status.code(), Some(0));
        for (backfill, left) in [("secrets", 2), ("hidden-characters", 1)] {
            let planned = run(&world, &["backfill", backfill]);
            let kept = if left == 1 { "row is left unchanged" } else { "rows are left unchanged" };
            assert!(said(&planned).contains(&format!("{left} {kept}: ")), "{}", said(&planned));
            let done = run(&world, &["backfill", backfill, "--apply"]);
            assert_eq!(done.status.code(), Some(0), "{}", said(&done));
            assert!(said(&done).contains(&format!("{left} {kept}: ")), "{}", said(&done));
            let receipt: Value = serde_json::from_slice(&done.stdout).expect("a receipt");
            let found = check(&receipt, "rows of people under a legal hold")["found"].as_str().unwrap_or_default();
            assert!(found.starts_with(&format!("{left} row")), "{}", said(&done));
        }
        let texts = "SELECT id FROM episodes WHERE title LIKE '%ghp_%' UNION \
             SELECT id FROM episode_segments WHERE content LIKE '%ghp_%' UNION \
             SELECT id FROM memories WHERE length(text) = 3 AND id LIKE '%-m' ORDER BY 1";
        assert_eq!(block_on(crate::support::world::texts(&world, texts)), ["h-ep", "h-m", "h-seg"]);
        assert_eq!(run(&world, &["unhold", "held", "--apply"]).status.code(), Some(0));
        assert_eq!(run(&world, &["backfill", "secrets", "--apply"]).status.code(), Some(0));
        assert_eq!(holds(&world, "title", "episodes", SECRET), 0);
    }
}

#[test]
fn a_secret_in_an_id_is_left_named_by_number_and_not_printed() {
    for world in block_on(natives()) {
        let sql = format!("INSERT INTO memories (id, kind, text) VALUES ('{SECRET}', 'drawer', 'token {SECRET}')");
        block_on(meddle(&world, &sql));
        let planned = run(&world, &["backfill", "secrets"]);
        assert!(planned.status.success() && !said(&planned).contains(SECRET), "{}", said(&planned));
        let done = run(&world, &["backfill", "secrets", "--apply"]);
        assert!(!said(&done).contains(SECRET), "{}", said(&done));
        assert_eq!(done.status.code(), Some(6), "{}", said(&done));
        let receipt: Value = serde_json::from_slice(&done.stdout).expect("a receipt");
        let left = check(&receipt, "rows that are left unchanged")["found"].as_str().expect("words");
        assert!(left.contains("1 of memory"), "{left}");
        assert_eq!(holds(&world, "text", "memories", SECRET), 0);
    }
}

#[test]
fn findings_see_secrets_in_keys_names_and_lists() {
    for world in block_on(natives()) {
        let secrets = || {
            let found = run(&world, &["findings", "--kind", "secret"]);
            let found: Value = serde_json::from_slice(&found.stdout).expect("findings");
            let all = found["findings"].as_array().expect("a list").clone();
            all.iter().filter(|f| f["kind"] == "secret").filter_map(|f| f["count"].as_u64()).sum::<u64>()
        };
        let before = secrets();
        plant(&world, SECRET);
        assert_eq!(secrets() - before, 3, "an episode, a canvas event and an entry of the log");
    }
}

#[test]
fn hidden_characters_are_taken_out_of_keys_and_names_too() {
    for world in block_on(natives()) {
        plant(&world, "na\u{200b}me");
        let done = run(&world, &["backfill", "hidden-characters", "--apply"]);
        assert_eq!(done.status.code(), Some(0), "{}", said(&done));
        for (column, table) in [("metadata", "episodes"), ("tags", "episodes"), ("component_name", "canvas_audit")] {
            assert_eq!(holds(&world, column, table, "\u{200b}"), 0, "{table}.{column}");
        }
        let receipt: Value = serde_json::from_slice(&done.stdout).expect("a receipt");
        assert!(
            check(&receipt, "event logs and audit trails")["found"]
                .as_str()
                .is_some_and(|w| w.contains("hidden characters: a log"))
        );
    }
}
