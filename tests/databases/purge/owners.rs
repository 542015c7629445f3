//! Owners that are a part, a path or a tag: a later check, the findings and near matches know them as an
//! erasure does. Small databases of such layouts, on both engines.

use std::collections::BTreeSet;

use mnemoscope::change::apply::apply;

use super::*;

/// Tables with a row of `ada-1` and one of `bo-22`, in SQL that both engines take but for `$json`; and rows that bring Ada
/// back, each with the number of rows that are then Ada's.
struct OwnedStore {
    on: &'static [&'static str],
    tables: &'static str,
    back: &'static [&'static str],
}

const BOTH: &[&str] = &["sqlite", "postgres"];

const CHECKPOINTS: &str = "CREATE TABLE checkpoints (thread_id text NOT NULL, checkpoint_ns text NOT NULL DEFAULT '', \
       checkpoint_id text NOT NULL, parent_checkpoint_id text, type text, checkpoint $json NOT NULL, \
       metadata $json NOT NULL DEFAULT '{}', PRIMARY KEY (thread_id, checkpoint_ns, checkpoint_id)); \
     CREATE TABLE $writes (thread_id text NOT NULL, checkpoint_ns text NOT NULL DEFAULT '', checkpoint_id text NOT NULL, \
       task_id text NOT NULL, task_path text, idx int NOT NULL, channel text NOT NULL, type text, $value, \
       PRIMARY KEY (thread_id, checkpoint_ns, checkpoint_id, task_id, idx)); \
     INSERT INTO checkpoints VALUES ('t1', '', 'c1', NULL, 'json', '{}', '{\"user_id\":\"ada-1\"}'), \
       ('t2', '', 'c1', NULL, 'json', '{}', '{\"user_id\":\"bo-22\"}')";

const STORES: &[OwnedStore] = &[
    OwnedStore {
        on: BOTH,
        tables: "CREATE TABLE store_migrations (v int PRIMARY KEY); \
             CREATE TABLE store (prefix text NOT NULL, key text NOT NULL, value $json NOT NULL, created_at timestamp, \
               updated_at timestamp, expires_at timestamp, ttl_minutes int, PRIMARY KEY (prefix, key)); \
             INSERT INTO store (prefix, key, value) VALUES ('memories.ada-1', 'k1', '{\"text\":\"likes tea\"}'), \
               ('memories.bo-22', 'k1', '{\"text\":\"likes coffee\"}')",
        back: &[
            "INSERT INTO store (prefix, key, value) VALUES ('memories.ada-1', 'k9', '{\"text\":\"likes seats\"}')",
            "INSERT INTO store (prefix, key, value) VALUES ('ada-1.profile', 'k9', '{}')",
        ],
    },
    OwnedStore {
        on: BOTH,
        tables: "CREATE TABLE agent_sessions (session_id text PRIMARY KEY, created_at timestamp, updated_at timestamp); \
             CREATE TABLE agent_messages (id integer PRIMARY KEY, session_id text NOT NULL, message_data text NOT NULL, \
               created_at timestamp, FOREIGN KEY (session_id) REFERENCES agent_sessions (session_id) ON DELETE CASCADE); \
             INSERT INTO agent_sessions VALUES ('chat:ada-1:1', NULL, NULL), ('chat:bo-22:1', NULL, NULL)",
        back: &["INSERT INTO agent_sessions VALUES ('chat:ada-1:9', NULL, NULL)"],
    },
    OwnedStore {
        on: BOTH,
        tables: CHECKPOINTS,
        back: &[
            "INSERT INTO checkpoints VALUES ('t9', '', 'c1', NULL, 'json', '{}', '{\"user_id\":\"ada-1\"}')",
            "INSERT INTO checkpoints VALUES ('ada-1:5', '', 'c1', NULL, 'json', '{}', '{}')",
        ],
    },
    OwnedStore {
        on: &["sqlite"],
        tables: "CREATE TABLE memories (id integer PRIMARY KEY, content_hash text UNIQUE NOT NULL, content text NOT NULL, tags text, \
               memory_type text, metadata text, created_at real, updated_at real, created_at_iso text, updated_at_iso text, \
               deleted_at real, superseded_by text); \
             INSERT INTO memories (content_hash, content, tags, metadata) VALUES ('a', 'likes tea', 'food,user:ada-1', '{}'), \
               ('b', 'likes coffee', '', '{\"user_id\":\"bo-22\"}')",
        back: &[
            "INSERT INTO memories (content_hash, content, tags, metadata) VALUES ('p', 'x', 'food,user:ada-1', '{}')",
            "INSERT INTO memories (content_hash, content, tags, metadata) VALUES ('q', 'x', '', '{\"user_id\":[\"cy\",\"ada-1\"]}')",
        ],
    },
    OwnedStore {
        on: BOTH,
        tables: AGNO,
        back: &[
            "INSERT INTO agno_memories (memory_id, memory, user_id, created_at) VALUES ('m9', '\"x\"', 'ada-1', 1)",
        ],
    },
];

const AGNO: &str = "CREATE TABLE agno_memories (memory_id text PRIMARY KEY, memory $json NOT NULL, input text, agent_id text, \
       team_id text, user_id text, topics $json, feedback text, created_at bigint NOT NULL, updated_at bigint); \
     INSERT INTO agno_memories (memory_id, memory, user_id, created_at) VALUES ('m1', '\"likes tea\"', 'ada-1', 1772461855), \
       ('m2', '\"likes coffee\"', 'bo-22', 1772461856)";

/// Databases of some tables, one on each engine.
async fn worlds(tables: &str, on: &[&str]) -> Vec<World> {
    let mut worlds = Vec::new();
    for engine in on {
        let folder = tempfile::tempdir().expect("a folder");
        let (target, database) = if *engine == "sqlite" {
            (Target::File(folder.path().join("memory.db")), None)
        } else {
            let Some(database) = Database::fresh() else { continue };
            (Target::Postgres(database.url().to_owned()), Some(database))
        };
        let (json, writes, value) = match target {
            Target::File(_) => ("text", "writes", "value blob"),
            Target::Postgres(_) => ("jsonb", "checkpoint_writes", "blob bytea"),
        };
        if let Target::File(path) = &target {
            std::fs::File::create(path).expect("a file");
        }
        let world = World { target, folder, _database: database };
        let tables = tables.replace("$json", json).replace("$writes", writes).replace("$value", value);
        world.run(&tables).await;
        worlds.push(world.ready().await);
    }
    worlds
}

/// Checks a receipt later; gives the exit code and the answer.
fn checked(world: &World, receipt: &Value) -> (Option<i32>, Value) {
    let looked = finished(world, &["purge", "verify", receipt["receipt_id"].as_str().expect("an id")]);
    let words = String::from_utf8_lossy(&looked.stderr).into_owned();
    (looked.status.code(), serde_json::from_slice(&looked.stdout).unwrap_or_else(|error| panic!("{error}: {words}")))
}

fn resurrected(world: &World) -> Value {
    let looked = finished(world, &["findings", "--kind", "resurrected"]);
    assert!(looked.status.success(), "{}", String::from_utf8_lossy(&looked.stderr));
    let found: Value = serde_json::from_slice(&looked.stdout).expect("findings");
    assert_eq!(found["not_applicable"], json!([]), "{found:#}");
    found["findings"][0]["examples"].clone()
}

#[test]
fn rows_that_are_back_are_found_wherever_the_layout_has_their_owner() {
    block_on(async {
        for (number, store) in STORES.iter().enumerate() {
            for world in worlds(store.tables, store.on).await {
                let done = finished(&world, &["purge", "ada-1", "--mentions", "redact", "--apply"]);
                let words = String::from_utf8_lossy(&done.stderr).into_owned();
                assert_eq!(done.status.code(), Some(0), "{words}");
                let receipt: Value = serde_json::from_slice(&done.stdout).expect("a receipt");
                if number == 0 {
                    let (code, answer) = checked(&world, &receipt);
                    assert_eq!((code, answer["status"].as_str()), (Some(0), Some(world.best())), "{answer:#}");
                }
                assert_eq!(resurrected(&world), Value::Null, "{}", store.tables);
                for (rows, back) in (1..).zip(store.back) {
                    world.run(back).await;
                    let (code, answer) = checked(&world, &receipt);
                    assert_eq!((code, answer["status"].as_str()), (Some(6), Some("incomplete")), "{back}: {answer:#}");
                    let found = &answer["verification"]["logical"];
                    assert_eq!((&found["owned"], &found["hits"]), (&json!(rows), &json!(rows)), "{back}: {answer:#}");
                    assert_eq!(resurrected(&world), json!(["ada-1"]), "{back}");
                }
            }
        }
    });
}

/// Layouts whose rows repeat the key that names their owner, and rows of `ada-1` and `bo-22` whose parents are gone.
const ORPHANS: &[(usize, &str, &str)] = &[
    (
        0,
        "store_vectors",
        "CREATE TABLE store_vectors (prefix text NOT NULL, key text NOT NULL, field_name text NOT NULL, embedding text, \
           PRIMARY KEY (prefix, key, field_name)); \
         INSERT INTO store_vectors VALUES ('ada-1.profile', 'gone', 'text', '[1]'), ('bo-22.profile', 'gone', 'text', '[1]')",
    ),
    (
        1,
        "turn_usage",
        "CREATE TABLE turn_usage (id integer PRIMARY KEY, session_id text NOT NULL); \
         INSERT INTO turn_usage VALUES (1, 'chat:ada-1:7'), (2, 'chat:bo-22:7')",
    ),
    (
        2,
        "$writes",
        "INSERT INTO $writes (thread_id, checkpoint_id, task_id, idx, channel) VALUES ('chat/ada-1/7', 'c', 't', 1, 'm'), \
           ('bo-22:7', 'c', 't', 1, 'm')",
    ),
];

#[test]
fn rows_whose_parent_is_gone_go_where_their_own_key_names_the_person() {
    block_on(async {
        for (store, table, rows) in ORPHANS {
            for world in worlds(&format!("{}; {rows}", STORES[*store].tables), STORES[*store].on).await {
                let writes = if matches!(world.target, Target::File(_)) { "writes" } else { "checkpoint_writes" };
                let table = table.replace("$writes", writes);
                let done = finished(&world, &["purge", "ada-1", "--apply"]);
                let words = String::from_utf8_lossy(&done.stderr).into_owned();
                assert_eq!(done.status.code(), Some(0), "{words}");
                let receipt: Value = serde_json::from_slice(&done.stdout).expect("a receipt");
                let counts = receipt["counts"].as_object().expect("counts");
                let name = counts.keys().find(|name| name.ends_with(&table));
                assert_eq!(name.map(|name| &counts[name]["delete"]), Some(&json!(1)), "{receipt:#}");
                assert_eq!(world.count(&table).await, 1, "{table}");
            }
        }
    });
}

#[test]
fn a_definition_that_names_the_person_since_is_found() {
    block_on(async {
        for (made, what) in [
            ("CREATE VIEW aside AS SELECT 'Ada O''Malley' AS who", "aside"),
            ("CREATE TABLE later (who text DEFAULT 'ada-1')", "later"),
            ("CREATE TABLE \"ada-1\" (a text)", "the name of the table"),
            ("CREATE TABLE called (a text, \"of Ada O'Malley\" text)", "the name of column 2 of called"),
        ] {
            for world in worlds(AGNO, BOTH).await {
                let purge = ["purge", "ada-1", "--alias", "Ada O'Malley", "--mentions", "redact", "--apply"];
                let done = finished(&world, &purge);
                let receipt: Value = serde_json::from_slice(&done.stdout).expect("a receipt");
                assert_eq!(checked(&world, &receipt).1["verification"]["logical"]["hits"], 0);
                world.run(made).await;
                let answer = checked(&world, &receipt).1;
                let found = &answer["verification"]["logical"];
                assert!(found["hits"].as_u64() > Some(0) && found["places"].to_string().contains(what), "{answer:#}");
                assert_eq!((&found["owned"], &answer["status"]), (&json!(0), &json!("incomplete")), "{answer:#}");
            }
        }
    });
}

#[test]
fn ids_that_are_nearly_the_same_are_near() {
    block_on(async {
        for world in worlds(AGNO, BOTH).await {
            let ids = [
                "kim-berger", "Kim-Berger", "kim-berger ", "kim_berger", "kim-berg\u{e9}r", "kim-berger2",
                "telegram:kim-berger", "akim-berger",
            ];
            for (row, id) in ids.iter().enumerate() {
                let row = format!("('k{row}', '\"x\"', '{id}', 1)");
                world
                    .run(&format!("INSERT INTO agno_memories (memory_id, memory, user_id, created_at) VALUES {row}"))
                    .await;
            }
            let plan = purge::plan(&world.open().await, "kim-berger", &PurgeOptions::default(), &|_, _| {}).await;
            let plan = json!(plan.expect("a plan").printed());
            let near: Vec<&str> =
                plan["subject"]["near"].as_array().expect("near").iter().filter_map(|n| n["id"].as_str()).collect();
            let alike = ["Kim-Berger", "kim-berger ", "kim-berg\u{e9}r", "kim_berger", "kim-berger2"];
            assert_eq!(near, [&alike[..], &["telegram:kim-berger"]].concat());
            let nobody = finished(&world, &["purge", "KIM-BERGER"]);
            let words = String::from_utf8_lossy(&nobody.stderr).into_owned();
            assert!(nobody.status.code() == Some(3) && words.contains("near are Kim-Berger, kim-berger"), "{words}");
        }
        for world in worlds(STORES[2].tables, BOTH).await {
            let nobody = finished(&world, &["purge", "ADA 1"]);
            assert!(String::from_utf8_lossy(&nobody.stderr).contains("near are ada-1"), "{nobody:?}");
        }
    });
}

#[test]
fn a_uuid_is_found_in_the_forms_in_which_programs_store_it() {
    let id = "3f2504e0-4f89-41d3-9a0c-0305e82c3301";
    let standard = "PyUE4E+JQdOaDAMF6CwzAQ";
    let (digits, url_safe) = (id.replace('-', ""), standard.replace('+', "-"));
    let (padded, capitals) = (format!("{standard}=="), digits.to_uppercase());
    block_on(async {
        for world in worlds(AGNO, BOTH).await {
            world.run("CREATE TABLE profiles (id char(32) PRIMARY KEY)").await;
            world.run(&format!("INSERT INTO profiles VALUES ('{digits}')")).await;
            let rows = [
                ("o1", "own", id),
                ("o2", "by another form", digits.as_str()),
                ("o3", "by another form", padded.as_str()),
                ("k1", &format!("see https://app/u/{digits} there"), "bo-22"),
                ("k2", &format!("see {capitals}, there"), "bo-22"),
                ("k3", &format!("see {standard} there"), "bo-22"),
                ("k4", &format!("see {padded} there"), "bo-22"),
                ("k5", &format!("see {url_safe} there"), "bo-22"),
                ("k6", &format!("see 7{digits} there"), "bo-22"),
            ];
            for (row, text, owner) in rows {
                world
                    .run(&format!(
                        "INSERT INTO agno_memories (memory_id, memory, user_id, created_at) VALUES ('{row}', '\"{text}\"', \
                         '{owner}', 1)"
                    ))
                    .await;
            }
            let done = finished(&world, &["purge", id, "--mentions", "redact", "--apply"]);
            let receipt: Value = serde_json::from_slice(&done.stdout).expect("a receipt");
            assert_eq!(receipt["status"], "verified with disclosures", "{receipt:#}");
            assert!(receipt["findings"].to_string().contains("profiles.id"), "{receipt:#}");
            assert_eq!(world.count("agno_memories WHERE memory_id IN ('o1', 'o2', 'o3')").await, 0);
            let left = world
                .texts("SELECT CAST(memory AS text) FROM agno_memories WHERE memory_id LIKE 'k%' ORDER BY memory_id")
                .await;
            let expected = [
                "\"see https://app/u/[erased] there\"",
                "\"see [erased], there\"",
                "\"see [erased] there\"",
                "\"see [erased] there\"",
                "\"see [erased] there\"",
                &format!("\"see 7{digits} there\""),
            ];
            assert_eq!(left, expected);
        }
    });
}

#[test]
fn a_few_equal_values_of_a_small_table_make_no_id_a_common_word() {
    let values = |other: &str| {
        format!(
            "CREATE TABLE kv (id integer PRIMARY KEY, v text); CREATE VIEW v_joao AS SELECT * FROM agno_memories WHERE \
             user_id = 'joao-silva'; INSERT INTO kv (id, v) VALUES (1, 'joao-silva'), (2, 'joao-silva'), \
             (3, 'joao-silva'){other}; INSERT INTO agno_memories (memory_id, memory, user_id, created_at) VALUES \
             ('j1', '\"likes tea\"', 'joao-silva', 1), ('j2', '\"met joao-silva there\"', 'bo-22', 1)"
        )
    };
    let two = ", (4, 'a note'), (5, 'another note')".to_owned();
    let many = (6..60).map(|n| format!(", ({n}, 'note {n}')")).collect::<Vec<_>>().concat();
    let fixed = (6..30).map(|n| format!(", ({n}, 'queued-up')")).collect::<Vec<_>>().concat();
    block_on(async {
        for (other, is_common) in [(two, false), (many, false), (fixed, true)] {
            for world in worlds(AGNO, BOTH).await {
                world.run(&values(&other)).await;
                let done = finished(&world, &["purge", "joao-silva", "--mentions", "redact", "--apply"]);
                let receipt: Value = serde_json::from_slice(&done.stdout).expect("a receipt");
                let told = receipt["findings"].to_string();
                assert!(
                    told.contains("the definition of the view") && told.contains("v_joao names the person"),
                    "{receipt:#}"
                );
                assert_eq!(told.contains("values in") && told.contains("hold this word alone"), is_common, "{told}");
                let left = world.texts("SELECT CAST(memory AS text) FROM agno_memories WHERE memory_id = 'j2'").await;
                assert_eq!(left[0].contains("joao-silva"), is_common, "{left:?}");
            }
        }
    });
}

#[test]
fn an_owner_whose_id_is_the_persons_in_another_spelling_is_left_and_told() {
    block_on(async {
        let spellings = [
            "QUIR\u{cd}N-7X-4711", "quiri\u{301}n-7x-4711", "quir\u{ed}n-7x-4711 ", "quir\u{ed}n-7x-4711\n",
            "quir\u{ed}n\u{200b}-7x-4711", "\u{ff51}uir\u{ed}n-7x-4711",
        ];
        for spelling in spellings {
            for world in worlds(AGNO, BOTH).await {
                for (row, id) in [("k1", "quir\u{ed}n-7x-4711"), ("k2", spelling)] {
                    let row = format!("('{row}', '\"x\"', '{id}', 1)");
                    world
                        .run(&format!(
                            "INSERT INTO agno_memories (memory_id, memory, user_id, created_at) VALUES {row}"
                        ))
                        .await;
                }
                let (plan, receipt) =
                    world.purge("quir\u{ed}n-7x-4711", &everything()).await.unwrap_or_else(|error| panic!("{error}"));
                assert_eq!(plan["subject"]["near"][0]["id"], spelling);
                assert_eq!(plan["counts"], json!({"agno_memories": {"delete": 1}}), "{spelling:?}");
                assert_eq!(receipt["status"], "verified with disclosures", "{spelling:?}: {receipt:#}");
                let told = receipt["disclosures"].to_string();
                assert!(told.contains("1 id of other people is the person's but for case"), "{told}");
                let owners = "SELECT user_id FROM agno_memories WHERE memory_id = 'k2'";
                assert_eq!(world.texts(owners).await, [spelling]);
            }
        }
    });
}

/// Rows of Ada and of Bo, and rows of Bo in whose keys Ada and Cy are another part.
struct SharedKeys {
    tables: &'static str,
    column: &'static str,
    rows: &'static [&'static str],
    word: &'static str,
}

const SHARED_KEYS: &[SharedKeys] = &[
    SharedKeys {
        tables: "CREATE TABLE store (prefix text NOT NULL, key text NOT NULL, value $json NOT NULL, created_at timestamp, \
               updated_at timestamp, expires_at timestamp, ttl_minutes int, PRIMARY KEY (prefix, key)); \
             INSERT INTO store (prefix, key, value) SELECT p, 'k', '{}' FROM (SELECT 'memories.ada-1' AS p UNION ALL \
               SELECT 'memories.bo-22' UNION ALL SELECT 'memories.bo-22.ada-1' UNION ALL SELECT 'bo-22.cy-333') AS s",
        column: "store.prefix",
        rows: &["bo-22.cy-333", "memories.bo-22", "memories.bo-22.ada-1"],
        word: "memories",
    },
    SharedKeys {
        tables: "CREATE TABLE agent_sessions (session_id text PRIMARY KEY, created_at timestamp, updated_at timestamp); \
             CREATE TABLE agent_messages (id integer PRIMARY KEY, session_id text NOT NULL, message_data text NOT NULL, \
               created_at timestamp, FOREIGN KEY (session_id) REFERENCES agent_sessions (session_id) ON DELETE CASCADE); \
             INSERT INTO agent_sessions (session_id) VALUES ('chat:ada-1:1'), ('bo-22'), ('chat:bo-22:ada-1'), ('bo-22:cy-333')",
        column: "agent_sessions.session_id",
        rows: &["bo-22", "bo-22:cy-333", "chat:bo-22:ada-1"],
        word: "chat",
    },
    SharedKeys {
        tables: CHECKPOINTS_BY_THREAD,
        column: "checkpoints.thread_id",
        rows: &["bo-22", "user/bo-22/ada-1", "user/bo-22/cy-333"],
        word: "user",
    },
];

const CHECKPOINTS_BY_THREAD: &str = "CREATE TABLE checkpoints (thread_id text NOT NULL, checkpoint_ns text NOT NULL DEFAULT '', \
       checkpoint_id text NOT NULL, parent_checkpoint_id text, type text, checkpoint $json NOT NULL, \
       metadata $json NOT NULL DEFAULT '{}', PRIMARY KEY (thread_id, checkpoint_ns, checkpoint_id)); \
     CREATE TABLE $writes (thread_id text NOT NULL, checkpoint_ns text NOT NULL DEFAULT '', checkpoint_id text NOT NULL, \
       task_id text NOT NULL, task_path text, idx int NOT NULL, channel text NOT NULL, type text, $value, \
       PRIMARY KEY (thread_id, checkpoint_ns, checkpoint_id, task_id, idx)); \
     INSERT INTO checkpoints VALUES ('user/ada-1/1', '', 'c1', NULL, 'json', '{}', '{}'), \
       ('user/bo-22/ada-1', '', 'c1', NULL, 'json', '{}', '{\"user_id\":\"bo-22\"}'), \
       ('bo-22', '', 'c1', NULL, 'json', '{}', '{}'), \
       ('user/bo-22/cy-333', '', 'c1', NULL, 'json', '{}', '{\"user_id\":\"bo-22\"}')";

pub(super) async fn held(world: &World, person: &str) {
    let store = world.open().await;
    let hold = hold::hold(&store, person, Some("a lawsuit"), "officer").await.expect("a plan");
    apply(&store, &hold, &author()).await.expect("a hold");
}

pub(super) async fn released(world: &World, person: &str) {
    let store = world.open().await;
    let unhold = hold::unhold(&store, person).await.expect("a plan");
    apply(&store, &unhold, &author()).await.expect("no hold");
}

#[test]
fn a_key_of_somebody_else_that_holds_the_person_is_a_mention() {
    block_on(async {
        for keys in SHARED_KEYS {
            for world in worlds(keys.tables, BOTH).await {
                held(&world, "bo-22").await;
                let (plan, receipt) = world.purge("ada-1", &PurgeOptions::default()).await.expect("a receipt");
                assert_eq!(plan["mentions_by_column"][keys.column]["left"], 1, "{plan:#}");
                assert_eq!(receipt["status"], "verified with disclosures", "{receipt:#}");
                let (table, column) = keys.column.split_once('.').expect("a column");
                let left = format!("SELECT {column} FROM {table} ORDER BY {column}");
                assert_eq!(world.texts(&left).await, keys.rows);
                let word = world.purge(keys.word, &PurgeOptions::default()).await;
                assert!(matches!(word, Err(ChangeError::NotFound(_))), "{word:?}");
            }
        }
    });
}

#[test]
fn a_short_id_is_its_owners_where_ids_stand_in_a_key() {
    block_on(async {
        for (keys, id) in SHARED_KEYS.iter().flat_map(|keys| [(keys, "421"), (keys, "a7")]) {
            for world in worlds(&keys.tables.replace("ada-1", id), BOTH).await {
                let (_, receipt) = world.purge(id, &PurgeOptions::default()).await.expect("a receipt");
                assert!(receipt["status"].as_str().is_some_and(|status| status.starts_with("verified")), "{receipt:#}");
                let (table, column) = keys.column.split_once('.').expect("a column");
                let left =
                    world.texts(&format!("SELECT {column} FROM {table}")).await.into_iter().collect::<BTreeSet<_>>();
                assert_eq!(left, keys.rows.iter().map(|row| row.replace("ada-1", id)).collect::<BTreeSet<_>>());
            }
        }
    });
}

#[test]
fn a_person_who_owns_nothing_is_any_part_of_a_key_and_the_owner_is_told() {
    block_on(async {
        for keys in SHARED_KEYS {
            for world in worlds(keys.tables, BOTH).await {
                let rows = world.dump().await;
                held(&world, "bo-22").await;
                let refused = world.purge("cy-333", &PurgeOptions::default()).await;
                assert!(
                    matches!(&refused, Err(ChangeError::Refused(why)) if why.contains("legal hold")),
                    "{refused:?}"
                );
                assert_eq!(world.dump().await, rows);
                released(&world, "bo-22").await;
                let (_, receipt) = world.purge("cy-333", &PurgeOptions::default()).await.expect("a receipt");
                assert!(
                    receipt["disclosures"].to_string().contains("1 row to be deleted names another owner"),
                    "{receipt:#}"
                );
                let (table, column) = keys.column.split_once('.').expect("a column");
                assert_eq!(world.count(&format!("{table} WHERE {column} LIKE '%cy-333'")).await, 0);
            }
        }
    });
}

#[test]
fn a_row_of_two_people_goes_with_either_and_tells_so_unless_one_is_held() {
    let tables = "CREATE TABLE memories (id integer PRIMARY KEY, content_hash text UNIQUE NOT NULL, content text NOT NULL, \
          tags text, memory_type text, metadata text, created_at real, updated_at real, created_at_iso text, \
          updated_at_iso text, deleted_at real, superseded_by text); \
        INSERT INTO memories (content_hash, content, tags, metadata) VALUES \
          ('a', 'likes tea', 'food,user:ada-1', '{\"user_id\":\"bo-22\"}'), \
          ('b', 'likes coffee', '', '{\"user_id\":[\"ada-1\",\"bo-22\"]}'), ('c', 'x', '', '{\"user_id\":\"ada-1\"}')";
    block_on(async {
        for world in worlds(tables, &["sqlite"]).await {
            held(&world, "bo-22").await;
            let refused = world.purge("ada-1", &PurgeOptions::default()).await;
            assert!(matches!(&refused, Err(ChangeError::Refused(why)) if why.contains("legal hold")), "{refused:?}");
            assert_eq!(world.count("memories").await, 3);
            released(&world, "bo-22").await;
            let (_, receipt) = world.purge("ada-1", &PurgeOptions::default()).await.expect("a receipt");
            assert!(
                receipt["disclosures"].to_string().contains("2 rows to be deleted name another owner"),
                "{receipt:#}"
            );
            assert_eq!(world.count("memories").await, 0);
        }
    });
}

/// Pins of Ada's memories by Bo, in a table that no layout speaks of, which go along.
const PINS: &str = "CREATE TABLE pins (id text PRIMARY KEY, memory_id text NOT NULL REFERENCES agno_memories (memory_id) \
     ON DELETE CASCADE, user_id text); INSERT INTO pins VALUES ('p1', 'm1', 'bo-22')";

#[test]
fn a_hold_keeps_rows_that_would_go_along_and_name_the_held_person() {
    block_on(async {
        for world in worlds(&format!("{AGNO}; {PINS}"), BOTH).await {
            held(&world, "bo-22").await;
            let refused = world.purge("ada-1", &PurgeOptions::default()).await;
            assert!(matches!(&refused, Err(ChangeError::Refused(why)) if why.contains("legal hold")), "{refused:?}");
            let refused = finished(&world, &["remove", "memory", "m1", "--apply"]);
            assert_eq!(refused.status.code(), Some(5), "{}", String::from_utf8_lossy(&refused.stderr));
            assert_eq!(world.count("pins").await, 1);
            released(&world, "bo-22").await;
            world.purge("ada-1", &PurgeOptions::default()).await.expect("a receipt");
            assert_eq!(world.count("pins").await, 0);
        }
    });
}

#[test]
fn a_hold_keeps_words_of_the_held_person_that_name_somebody_else() {
    let names = "UPDATE agno_memories SET memory = '\"asked Ada Example\"' WHERE memory_id = 'm2'; \
        INSERT INTO agno_memories (memory_id, memory, user_id, created_at) VALUES ('m3', '\"asked Ada Example too\"', 'cy-333', 1)";
    let options = |mentions, each: &[(&str, Mentions)]| {
        let each = each.iter().map(|(place, decision)| ((*place).to_owned(), *decision)).collect();
        PurgeOptions { aliases: vec!["Ada Example".to_owned()], mentions, each, ..PurgeOptions::default() }
    };
    block_on(async {
        for world in worlds(&format!("{AGNO}; {names}"), BOTH).await {
            held(&world, "bo-22").await;
            let before = world.dump().await;
            for mentions in [Mentions::Redact, Mentions::Delete] {
                let refused = world.purge("ada-1", &options(mentions, &[])).await;
                let told = |why: &str| why.contains("legal hold") && why.contains("bo-22");
                assert!(matches!(&refused, Err(ChangeError::Refused(why)) if told(why)), "{refused:?}");
            }
            assert_eq!(world.dump().await, before);
            let plan = purge::plan(&world.open().await, "ada-1", &options(Mentions::Leave, &[]), &|_, _| {}).await;
            let plan = json!(plan.expect("a plan").printed());
            let of_bo = plan["mentions"].as_array().and_then(|all| all.iter().find(|mention| mention["key"] == "m2"));
            let id = of_bo.and_then(|mention| mention["id"].as_str()).expect("an id");
            world.purge("ada-1", &options(Mentions::Redact, &[(id, Mentions::Leave)])).await.expect("a receipt");
            let texts = world.texts("SELECT CAST(memory AS text) FROM agno_memories ORDER BY memory_id").await;
            assert_eq!(texts, ["\"asked Ada Example\"", "\"asked [erased] too\""]);
        }
    });
}

/// A decision of Ana's conversation, which an episode of someone else is linked to as well.
const SHARED_DECISION: &str = "CREATE TABLE brain.decisions (id uuid PRIMARY KEY, agent_id text NOT NULL, session_id text, \
       description text NOT NULL); \
     CREATE TABLE heart.episode_decisions (episode_id uuid NOT NULL REFERENCES heart.episodes (id), \
       decision_id uuid NOT NULL REFERENCES brain.decisions (id), PRIMARY KEY (episode_id, decision_id)); \
     UPDATE heart.episodes SET user_id = 'user-ben' WHERE id = (SELECT max(id::text)::uuid FROM heart.episodes); \
     UPDATE heart.episodes SET session_id = 'ana-only' WHERE user_id = 'user-ana'; \
     INSERT INTO brain.decisions VALUES ('00000000-0000-4000-8000-0000000000d1', 'nous-default', 'ana-only', 'use the log'); \
     INSERT INTO heart.episode_decisions SELECT min(id::text)::uuid, '00000000-0000-4000-8000-0000000000d1' FROM heart.episodes \
       GROUP BY coalesce(user_id, '') = 'user-ana'";

#[test]
fn a_decision_that_somebody_elses_episode_is_linked_to_stays() {
    block_on(async {
        let Some(world) = on_postgres(Layout::NousPlanned).await else { return };
        world.run(SHARED_DECISION).await;
        assert_eq!(world.count("heart.episode_decisions").await, 2);
        let (_, receipt) = world.purge("user-ana", &PurgeOptions::default()).await.expect("a receipt");
        assert_eq!(receipt["status"], "verified with disclosures", "{receipt:#}");
        assert_eq!((world.count("brain.decisions").await, world.count("heart.episode_decisions").await), (1, 1));
    });
}

#[test]
fn rows_whose_owner_is_stored_as_bytes_are_the_persons_too() {
    block_on(async {
        for (world, person, tables) in [
            (native(60).await, "lucia.moreau", &["episodes", "agent_memory_cases", "agent_feedback", "memories"][..]),
            (on_sqlite(Layout::Atom).await, "user-ana", &["agent_feedback"][..]),
        ] {
            for table in tables {
                let one = format!(
                    "UPDATE {table} SET user_id = CAST(user_id AS BLOB) \
                     WHERE rowid = (SELECT min(rowid) FROM {table} WHERE user_id = '{person}')"
                );
                world.run(&one).await;
            }
            let (_, receipt) = world.purge(person, &everything()).await.expect("a receipt");
            assert!(receipt["status"].as_str().is_some_and(|status| status.starts_with("verified")), "{receipt:#}");
            for table in tables {
                let left = world.count(&format!("{table} WHERE CAST(user_id AS TEXT) = '{person}'")).await;
                assert_eq!(left, 0, "{table}");
            }
        }
    });
}
