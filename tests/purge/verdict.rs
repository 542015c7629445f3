//! What an erasure ends on when something is left that no plan named, or could not be looked at: each planted by plain
//! SQL in a small database.

use serde_json::Value;
use sqlx::{AssertSqlSafe, Connection, PgConnection};

use super::*;

/// Whether some disclosure of a receipt says all of these words.
fn says(receipt: &Value, words: &[&str]) -> bool {
    let texts = receipt["disclosures"].as_array().into_iter().flatten().filter_map(Value::as_str);
    texts.into_iter().any(|text| words.iter().all(|word| text.contains(word)))
}

async fn atoms() -> Vec<World> {
    [Some(on_sqlite(Layout::Atom).await), on_postgres(Layout::Atom).await].into_iter().flatten().collect()
}

#[test]
fn copies_that_a_trigger_makes_while_rows_go_are_found() {
    block_on(async {
        for world in atoms().await {
            world.run("CREATE TABLE graveyard (id INTEGER, who TEXT)").await;
            world
                .run(match world.target {
                    Target::File(_) => {
                        "CREATE TRIGGER bury AFTER DELETE ON chat_sessions BEGIN INSERT INTO graveyard VALUES (1, old.user_id); END"
                    }
                    Target::Postgres(_) => {
                        "CREATE FUNCTION bury() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
                         INSERT INTO graveyard VALUES (1, old.user_id); RETURN old; END $$; \
                         CREATE TRIGGER bury AFTER DELETE ON chat_sessions FOR EACH ROW EXECUTE FUNCTION bury()"
                    }
                })
                .await;
            let (_, receipt) = world.purge("user-ana", &everything()).await.expect("a receipt");
            let copies = world.count("graveyard WHERE who = 'user-ana'").await;
            assert!(copies > 0);
            assert_eq!(receipt["status"], "incomplete", "{receipt:#}");
            assert!(says(&receipt, &["graveyard.who", &copies.to_string()]), "{receipt:#}");
            // Taken away by whoever has the table, the erasure ends well.
            world.run("DELETE FROM graveyard").await;
            let again = world.carry_out("user-ana", &everything(), true).await.expect("a receipt");
            assert_eq!(again["status"], world.best(), "{again:#}");
        }
    });
}

/// A role of its own that may do everything on all tables but what is taken away then.
async fn as_role(world: &World, sql: &str) -> (World, String) {
    let Target::Postgres(url) = &world.target else { panic!("a server") };
    let role = format!("officer_{}", rand::random::<u32>());
    let grant = format!(
        "CREATE ROLE {role} LOGIN PASSWORD 'x'; GRANT USAGE, CREATE ON SCHEMA public TO {role}; \
         GRANT ALL ON ALL TABLES IN SCHEMA public TO {role}; {}",
        sql.replace("$role", &role)
    );
    let mut link = PgConnection::connect(url).await.expect("the server");
    sqlx::raw_sql(AssertSqlSafe(grant)).execute(&mut link).await.expect("a role");
    let mut url = url::Url::parse(url).expect("a URL");
    url.set_username(&role).and_then(|()| url.set_password(Some("x"))).expect("a user");
    let target = Target::Postgres(url.to_string());
    (World { target, folder: tempfile::tempdir().expect("a folder"), _database: None }, role)
}

async fn drop_role(world: &World, role: &str) {
    world.run(&format!("DROP OWNED BY {role}; DROP ROLE {role}")).await;
}

#[test]
fn rows_that_policies_hide_are_not_called_searched() {
    block_on(async {
        let Some(world) = on_postgres(Layout::Atom).await else { return };
        let hide = "ALTER TABLE chat_sessions ENABLE ROW LEVEL SECURITY; \
             CREATE POLICY own ON chat_sessions USING (user_id = 'user-ana'); \
             UPDATE chat_sessions SET title = 'ask user-ana' WHERE user_id = 'user-ben'";
        let (seen, role) = as_role(&world, hide).await;
        let (plan, receipt) = seen.purge("user-ana", &everything()).await.expect("a receipt");
        assert_eq!(receipt["status"], "incomplete", "{receipt:#}");
        assert!(says(&receipt, &["chat_sessions", "row-level security"]), "{receipt:#}");
        assert!(says(&plan, &["chat_sessions", "row-level security"]), "{plan:#}");
        drop_role(&world, &role).await;
    });
}

#[test]
fn a_table_that_may_not_be_read_is_named_and_does_not_end_the_erasure() {
    block_on(async {
        for table in ["vault", "users"] {
            let Some(world) = on_postgres(Layout::Atom).await else { return };
            world.run("CREATE TABLE vault (id INTEGER PRIMARY KEY, who TEXT)").await;
            let (seen, role) = as_role(&world, &format!("REVOKE ALL ON {table} FROM $role")).await;
            let (plan, receipt) =
                seen.purge("user-ana", &everything()).await.unwrap_or_else(|error| panic!("{table}: {error}"));
            assert_eq!(receipt["status"], "incomplete", "{receipt:#}");
            assert!(says(&receipt, &[table, "no right"]), "{receipt:#}");
            assert!(says(&plan, &[table, "no right"]), "{plan:#}");
            drop_role(&world, &role).await;
        }
    });
}

#[test]
fn rows_are_followed_over_foreign_keys_of_several_columns() {
    block_on(async {
        for world in atoms().await {
            world
                .run(
                    "CREATE TABLE rooms (site TEXT NOT NULL, room TEXT NOT NULL, session TEXT REFERENCES chat_sessions (id) ON DELETE CASCADE, \
                       PRIMARY KEY (site, room)); \
                     CREATE TABLE lines (id INTEGER PRIMARY KEY, site TEXT NOT NULL, room TEXT NOT NULL, said TEXT, \
                       FOREIGN KEY (site, room) REFERENCES rooms (site, room)); \
                     CREATE TABLE marks (id INTEGER PRIMARY KEY, site TEXT NOT NULL, room TEXT, \
                       FOREIGN KEY (site, room) REFERENCES rooms); \
                     INSERT INTO rooms SELECT 'here', id, id FROM chat_sessions; \
                     INSERT INTO rooms VALUES ('there', 'other', NULL); \
                     INSERT INTO lines SELECT row_number() OVER (), site, room, 'a' FROM rooms; \
                     INSERT INTO marks SELECT row_number() OVER (), site, room FROM rooms",
                )
                .await;
            let gone = world.count("chat_sessions WHERE user_id = 'user-ana'").await;
            let (rooms, marks) = (world.count("rooms").await, world.count("marks").await);
            assert!(gone > 0 && rooms > gone + 1);
            let (plan, receipt) = world.purge("user-ana", &everything()).await.expect("a receipt");
            assert_eq!(receipt["status"], world.best(), "{receipt:#}");
            assert_eq!(plan["counts"], receipt["counts"]);
            let dangling = "l WHERE l.room IS NOT NULL AND NOT EXISTS (SELECT 1 FROM rooms r WHERE r.site = l.site AND r.room = l.room)";
            for table in ["lines", "marks"] {
                assert_eq!(world.count(&format!("{table} {dangling}")).await, 0, "{table}");
            }
            assert_eq!(world.count("rooms").await, rooms - gone);
            assert_eq!(world.count("lines").await, rooms - gone, "those of other rooms stay");
            assert_eq!(world.count("marks").await, marks, "what can let go stays");
            assert_eq!(world.count("marks WHERE room IS NULL").await, gone);
        }
    });
}

#[test]
fn rows_of_a_table_in_partitions_are_looked_at_once() {
    block_on(async {
        let Some(world) = on_postgres(Layout::Atom).await else { return };
        world
            .run(
                "CREATE TABLE diary (id INTEGER, day INTEGER, who TEXT, PRIMARY KEY (id, day)) PARTITION BY RANGE (day); \
                 CREATE TABLE diary_1 PARTITION OF diary FOR VALUES FROM (0) TO (10); \
                 CREATE TABLE diary_2 PARTITION OF diary DEFAULT; \
                 INSERT INTO diary VALUES (1, 1, 'user-ana'), (2, 11, 'ask user-ana'), (3, 11, 'user-ben')",
            )
            .await;
        let plan = purge::plan(&world.open().await, "user-ana", &everything(), &|_, _| {}).await.expect("a plan");
        let mentions = plan.to_json()["mentions_by_column"].clone();
        assert_eq!(mentions["diary.who"]["certain"], 2, "{mentions}");
        assert!(!mentions.to_string().contains("diary_"), "{mentions}");
    });
}
