//! Undo after rows have gone or moved: no reference to an erased row, nothing in a row of someone else.

use mnemoscope::change::{self, ChangeError, chain, undo};

use super::{author, everything, native};
use crate::support::block_on;
use crate::support::world::{run, sqlite};

#[test]
fn an_undo_brings_back_no_reference_to_an_erased_row() {
    block_on(async {
        let world = native(20).await;
        world
            .run(
                "INSERT INTO subjects (id, name) VALUES ('quirin-7', 'Quirin Zahradnik'); \
                 INSERT INTO episodes (id, user_id, title, started_at, parent_id) VALUES \
                   ('ep-own', 'quirin-7', 'his', '2026-03-01T10:00:00.000000Z', NULL), \
                   ('ep-child', 'keeper-a', 'theirs', '2026-03-02T10:00:00.000000Z', 'ep-own')",
            )
            .await;
        let store = world.open().await;
        let plan = chain::unlink(&store, "ep-child").await.expect("a plan");
        let seq = change::apply(&store, &plan, &author()).await.expect("a receipt").audit_seq.expect("a number");
        world.purge("quirin-7", &everything()).await.expect("a receipt");
        let refused = undo::undo(&world.open().await, seq).await;
        let told = "1 value of episodes.parent_id would name a row of episodes that is missing";
        assert!(
            matches!(&refused, Err(ChangeError::Conflict { rows, .. }) if rows.iter().any(|row| row.contains(told))),
            "{refused:?}"
        );
    });
}

/// A layout whose notes have no key.
const KEYLESS: &str = r#"
name = "keyless"
title = "notes without a key"
requires = ["eps/title", "notes/ep"]
writable = true
[[episode]]
table = "eps"
write = {}
[episode.columns]
id = "id"
title = "title"
user_id = "owner"
started_at = "at"
[[erase]]
table = "eps"
column = "owner"
[[erase]]
table = "notes"
column = "who"
[[erase]]
table = "notes"
column = "ep"
of = "eps"
action = "empty"
"#;

#[test]
fn a_row_that_only_its_number_tells_is_not_taken_for_another_one() {
    let folder = tempfile::tempdir().expect("a folder");
    let (path, layout) = (folder.path().join("notes.db"), folder.path().join("keyless.toml"));
    std::fs::write(&layout, KEYLESS).expect("a layout");
    std::fs::File::create(&path).expect("a file");
    let meddle = |statements: &[&'static str]| {
        block_on(async {
            let mut link = sqlite(&path).await;
            for sql in statements {
                sqlx::raw_sql(*sql).execute(&mut link).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
            }
        });
    };
    meddle(&[
        "CREATE TABLE eps (id TEXT NOT NULL PRIMARY KEY, owner TEXT, title TEXT, at TEXT)",
        "CREATE TABLE notes (ep TEXT, who TEXT, t TEXT)",
        "INSERT INTO eps VALUES ('e-one', 'bob-12', 'one', '2026-01-01T00:00:00Z')",
        "INSERT INTO notes VALUES (NULL, 'ann-3', 'a note'), ('e-one', 'bob-12', 'about one'), (NULL, 'cleo-9', 'of nothing')",
    ]);
    let (database, layout) = (path.display().to_string(), layout.display().to_string());
    let told = |arguments: &[&str]| {
        run(folder.path(), &[&["-d", &database, "--layout", &layout, "--format", "json"], arguments].concat())
    };
    let (code, _, words) = told(&["migrate", "--apply"]);
    assert_eq!(code, Some(0), "{words}");
    let (code, receipt, words) = told(&["remove", "episode", "e-one", "--apply"]);
    assert_eq!(code, Some(0), "{words}");
    let seq = receipt["audit_seq"].to_string();
    assert_eq!(told(&["undo", &seq]).0, Some(0), "the row is where it was");
    meddle(&["DELETE FROM notes WHERE who = 'ann-3'", "VACUUM"]);
    let (code, _, words) = told(&["undo", &seq, "--apply"]);
    assert_eq!(code, Some(4), "{words}");
    let left = block_on(async {
        let mut link = sqlite(&path).await;
        let all = "SELECT count(*) FROM notes WHERE ep IS NULL";
        sqlx::query_scalar::<_, i64>(all).fetch_one(&mut link).await.expect("a count")
    });
    assert_eq!(left, 2);
}
