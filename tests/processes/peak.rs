//! Memory that whole reads take: it depends on what is asked for, not on how many rows there are.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use mnemoscope::memory::thousands;
use sqlx::{AssertSqlSafe, Connection as _, SqliteConnection};
use tempfile::TempDir;

use crate::pty::terminal::{Home, Start};
use crate::support::block_on;
use crate::support::fixtures::{Layout, build_sqlite};

/// Most memory that a command had, in kilobytes, and what it printed; none when the system does not tell.
fn peak(state: &Path, words: &[&str]) -> Option<(u64, String)> {
    peak_with(state, words, 0)
}

/// The same of a command that ends with some code; what it refused is what it printed.
fn peak_with(state: &Path, words: &[&str], code: i32) -> Option<(u64, String)> {
    let [printed, refused] = ["printed", "refused"].map(|name| state.join(name));
    let mut child = Command::new(env!("CARGO_BIN_EXE_mnemoscope"))
        .env_clear()
        .env("HOME", state)
        .env("MNEMOSCOPE_STATE", state.join("state"))
        .args(words)
        .stdin(Stdio::null())
        .stdout(fs::File::create(&printed).unwrap())
        .stderr(if code == 0 { Stdio::inherit() } else { fs::File::create(&refused).unwrap().into() })
        .spawn()
        .unwrap();
    let mut most = 0;
    let status = loop {
        // The system keeps the highest mark on its own; it is gone with the process.
        if let Ok(status) = fs::read_to_string(format!("/proc/{}/status", child.id())) {
            let mark =
                status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB")?.parse().ok());
            most = most.max(mark.unwrap_or(0));
        }
        match child.try_wait().unwrap() {
            Some(status) => break status,
            None => std::thread::sleep(Duration::from_millis(2)),
        }
    };
    assert_eq!(status.code(), Some(code), "{words:?}");
    (most > 0).then(|| (most, fs::read_to_string(if code == 0 { printed } else { refused }).unwrap()))
}

fn demo(folder: &Path, episodes: &str) -> String {
    let path = folder.join(format!("{episodes}.db")).display().to_string();
    let words = ["demo", &path, "--episodes", episodes, "--no-console", "--at", "2026-06-15T16:00:00Z", "-q"];
    peak(folder, &words);
    path
}

#[test]
fn whole_reads_take_no_more_memory_of_more_rows() {
    let folder = TempDir::new().unwrap();
    let [small, large] = ["1500", "12000"].map(|episodes| demo(folder.path(), episodes));
    let newest = |path: &str| {
        let rows = peak(folder.path(), &["-d", path, "list", "episode", "--limit", "1", "--format", "jsonl"])?.1;
        let row: serde_json::Value = serde_json::from_str(rows.lines().next()?).ok()?;
        Some(row["id"].as_str()?.to_owned())
    };
    let commands: &[&[&str]] = &[
        &["recall", "late invoice refund", "--ranking", "boosted"],
        &["recall", "late invoice refund", "--ranking", "similar"],
        &["recall", "--ranking", "boosted", "--like", "NEWEST"],
        &["recall", "--ranking", "proven", "--topic", "invoice questions"],
        &["replay", "invoice questions"],
    ];
    for words in commands {
        let of = |path: &str| {
            let newest = newest(path)?;
            let words = words.iter().map(|word| if *word == "NEWEST" { newest.as_str() } else { word });
            peak(folder.path(), &["-d", path, "--format", "json"].into_iter().chain(words).collect::<Vec<_>>())
        };
        let (Some((few, _)), Some((many, printed))) = (of(&small), of(&large)) else { return };
        assert!(printed.starts_with('{'), "{words:?}: {printed}");
        // Eight times the rows: keeping whole rows of all takes 40 to 60 MB more, and two runs of one command differ by 10.
        assert!(many < few + 24_000, "{words:?}: {few} kB of 1,500 episodes, {many} kB of 12,000");
    }
}

/// Gives each of the first episodes a text of so many bytes, which ends in some words.
async fn lengthen(path: &str, rows: i64, bytes: usize, end: &str) {
    let mut link = SqliteConnection::connect(path).await.expect("the file");
    let long = "no invoice stands in here; ".repeat(bytes / 27) + end;
    let set = "UPDATE episodes SET detail = $1 WHERE rowid IN (SELECT rowid FROM episodes LIMIT $2)";
    sqlx::query(set).bind(long).bind(rows).execute(&mut link).await.expect("long rows");
    link.close().await.expect("closed");
}

#[test]
fn long_rows_are_not_held_together() {
    let folder = TempDir::new().unwrap();
    let path = demo(folder.path(), "100");
    let commands: &[&[&str]] = &[
        &["findings"],
        &["recall", "late invoice refund", "--ranking", "boosted"],
        &["replay", "month-end close"],
        &["find", "nobody.at.all"],
        &["list", "episode", "--limit", "300"],
        &["table", "episodes", "--limit", "300"],
        &["export", "episode"],
        &["purge", "dana.whitfield"],
    ];
    let of = |words: &&[&str]| {
        peak(
            folder.path(),
            &["-d", &path, "--format", "json"].into_iter().chain(words.iter().copied()).collect::<Vec<_>>(),
        )
    };
    let before: Option<Vec<u64>> = commands.iter().map(|words| Some(of(words)?.0)).collect();
    let Some(before) = before else { return };
    block_on(lengthen(&path, 96, 512 << 10, ""));
    for (words, few) in commands.iter().zip(before) {
        let Some((many, _)) = of(words) else { return };
        // 48 MB of texts. A command that holds them takes them once more as it prints.
        assert!(many < few + 44_000, "{words:?}: {few} kB with short rows, {many} kB with long ones");
    }
}

/// Gives an episode of a person a text of 12 MB that is not all ASCII.
async fn write_at_length(path: &str, user: &str) {
    let mut link = SqliteConnection::connect(path).await.expect("the file");
    let long = "Zürich zählt 日本 once more; ".repeat((12 << 20) / 32);
    let set = "UPDATE episodes SET detail = $1 WHERE id = (SELECT max(id) FROM episodes WHERE user_id = $2)";
    sqlx::query(set).bind(long).bind(user).execute(&mut link).await.expect("a long text");
    link.close().await.expect("closed");
}

#[test]
fn one_long_text_is_held_a_few_times_only() {
    let folder = TempDir::new().unwrap();
    let path = demo(folder.path(), "60");
    let of = |words: &[&str]| {
        peak(folder.path(), &["-d", &path, "--format", "json"].into_iter().chain(words.to_vec()).collect::<Vec<_>>())
    };
    let user = "dana.whitfield";
    let owner = format!("user_id = {user}");
    let commands: [&[&str]; 3] = [
        &["list", "episode", "--where", &owner],
        &["export", "subject", user],
        &["purge", user, "--mentions", "redact"],
    ];
    let before: Vec<u64> = commands.iter().map(|words| of(words).map_or(0, |(most, _)| most)).collect();
    block_on(write_at_length(&path, user));
    for (words, few) in commands.iter().zip(before) {
        let Some((many, _)) = of(words) else { return };
        // SQLite has one, and we have one; a search compares with another one.
        assert!(many < few + 48_000, "{words:?}: {few} kB before, {many} kB with a text of 12 MB");
    }
}

/// Gives an episode a JSON document of 2.5 MB in very many small parts.
async fn document(path: &str, id: &str) {
    let mut link = SqliteConnection::connect(path).await.expect("the file");
    let parts = (0..60_000).map(|n| format!("{{\"step\": {n}, \"said\": \"parcel {n}\"}}"));
    let document = format!("{{\"list\": [{}]}}", parts.collect::<Vec<_>>().join(", "));
    let set = "UPDATE episodes SET result = $1 WHERE id = $2";
    sqlx::query(set).bind(document).bind(id).execute(&mut link).await.expect("a long document");
    link.close().await.expect("closed");
}

#[test]
fn a_long_document_is_printed_and_searched_as_its_text() {
    let folder = TempDir::new().unwrap();
    let path = demo(folder.path(), "60");
    let of = |words: &[&str]| {
        peak(folder.path(), &["-d", &path, "--format", "json"].into_iter().chain(words.to_vec()).collect::<Vec<_>>())
    };
    let Some((_, listed)) = of(&["list", "episode", "--limit", "1"]) else { return };
    let listed: serde_json::Value = serde_json::from_str(&listed).unwrap();
    let id = listed["rows"][0]["id"].as_str().unwrap();
    let commands: [&[&str]; 8] = [
        &["show", "episode", id],
        &["list", "episode"],
        &["table", "episodes"],
        &["export", "episode"],
        &["chain", id],
        &["findings"],
        &["backfill", "secrets"],
        &["backfill", "hidden-characters"],
    ];
    let before: Vec<u64> = commands.iter().map(|words| of(words).map_or(0, |(most, _)| most)).collect();
    block_on(document(&path, id));
    for (words, few) in commands.iter().zip(before) {
        let Some((many, _)) = of(words) else { return };
        // Its values would take 60 MB.
        assert!(many < few + 30_000, "{words:?}: {few} kB before, {many} kB with the document");
    }
    let shown: serde_json::Value = serde_json::from_str(&of(&["show", "episode", id]).unwrap().1).unwrap();
    assert_eq!(shown["episode"]["result"]["list"][59_999]["said"], "parcel 59999");
    for (words, hits) in [("\"parcel 59999\"", 1), ("\"said\"", 0)] {
        let found: serde_json::Value = serde_json::from_str(&of(&["find", words]).unwrap().1).unwrap();
        assert_eq!(found["rows"].as_array().unwrap().len(), hits, "{words}");
    }
}

/// As [`document`], for all of some statements, each of which sets one text.
async fn documents(path: &str, statements: &[&str]) {
    let mut link = SqliteConnection::connect(path).await.expect("the file");
    let parts = (0..60_000).map(|n| format!("{{\"step\": {n}, \"said\": \"parcel {n}\"}}"));
    let document = format!("{{\"list\": [{}]}}", parts.collect::<Vec<_>>().join(", "));
    for set in statements {
        sqlx::query(AssertSqlSafe((*set).to_owned()))
            .bind(&document)
            .execute(&mut link)
            .await
            .expect("a long document");
    }
    link.close().await.expect("closed");
}

#[test]
fn long_documents_are_compared_and_ranked_as_their_texts() {
    let folder = TempDir::new().unwrap();
    let path = demo(folder.path(), "60");
    let of = |words: &[&str]| {
        peak(folder.path(), &["-d", &path, "--format", "json"].into_iter().chain(words.to_vec()).collect::<Vec<_>>())
    };
    let Some((_, listed)) = of(&["list", "episode", "--limit", "2"]) else { return };
    let listed: serde_json::Value = serde_json::from_str(&listed).unwrap();
    let [first, second] = [0, 1].map(|at| listed["rows"][at]["id"].as_str().unwrap());
    let commands: [&[&str]; 2] =
        [&["compare", "episode", first, second], &["recall", "parcel 59999", "--ranking", "cases", "-k", "1"]];
    let before: Vec<u64> = commands.iter().map(|words| of(words).map_or(0, |(most, _)| most)).collect();
    let [first, second] = [(first, ""), (second, "|| ' '")]
        .map(|(id, end)| format!("UPDATE episodes SET result = $1 {end} WHERE id = '{id}'"));
    let case = "UPDATE agent_memory_cases SET prompt = $1 WHERE rowid = (SELECT min(rowid) FROM agent_memory_cases)";
    block_on(documents(&path, &[&first, &second, case]));
    let printed: Vec<serde_json::Value> = commands
        .iter()
        .zip(before)
        .filter_map(|(words, few)| {
            let (many, printed) = of(words)?;
            // The values of one would take 60 MB.
            assert!(many < few + 40_000, "{words:?}: {few} kB before, {many} kB with long documents");
            serde_json::from_str(&printed).ok()
        })
        .collect();
    let result = printed[0]["fields"].as_array().unwrap().iter().find(|field| field["column"] == "result").unwrap();
    assert_eq!((&result["same"], &result["values"][1]["list"][59_999]["step"]), (&true.into(), &59_999.into()));
    assert_eq!(printed[1]["rows"][0]["row"]["prompt"]["list"][59_999]["said"], "parcel 59999");
}

#[test]
fn a_long_document_is_put_in_and_its_row_changed_as_its_text() {
    let folder = TempDir::new().unwrap();
    let path = demo(folder.path(), "60");
    peak(folder.path(), &["-d", &path, "migrate", "--apply"]);
    let file = folder.path().join("rows.jsonl");
    let of = |words: &[&str]| {
        let words: Vec<&str> = ["-d", &path, "--format", "json"].iter().chain(words).copied().collect();
        let (most, printed) = peak(folder.path(), &words)?;
        Some((most, serde_json::from_str::<serde_json::Value>(&printed).unwrap()))
    };
    let change = |id: &str, count: usize| {
        let parts: Vec<String> = (0..count).map(|n| format!("{{\"step\": {n}, \"said\": \"parcel {n}\"}}")).collect();
        let list = parts.join(", ");
        let line = format!(
            "{{\"entity\": \"episode\", \"id\": \"{id}\", \"result\": {{\"list\": [{list}]}}, \"title\": \"x\"}}"
        );
        fs::write(&file, line).unwrap();
        let import = ["import", "jsonl", file.to_str().unwrap(), "--apply"];
        let (planned, applied) = (of(&import[..3])?, of(&import)?);
        let result = &applied.1["changes"][0]["after"]["result"];
        assert_eq!(result["list"][count - 1]["said"], format!("parcel {}", count - 1), "{id}");
        let plan = folder.path().join(id);
        let plan = plan.to_str().unwrap();
        let edited = of(&["edit", "episode", id, "title=y"])?;
        let (removed, gone) = (of(&["remove", "episode", id, "--plan-out", plan])?, of(&["apply", plan])?);
        assert_eq!(edited.1["changes"][0]["after"], serde_json::json!({ "title": "y" }));
        let (listed, undone) = (of(&["audit", "list"])?, of(&["undo", &gone.1["audit_seq"].to_string(), "--apply"])?);
        let sides = [
            &planned.1["changes"][0]["after"],
            &removed.1["changes"][0]["before"],
            &listed.1["rows"][0]["changes"][0]["before"],
            &undone.1["changes"][0]["after"],
        ];
        assert!(sides.iter().all(|side| side["result"] == *result), "{id}");
        Some([planned.0, applied.0, edited.0, removed.0, gone.0, listed.0, undone.0])
    };
    let (Some(few), Some(many)) = (change("short", 10), change("long", 60_000)) else { return };
    // Its values would take 55 to 97 MB.
    assert!(
        few.iter().zip(many).all(|(few, many)| many < few + 48_000),
        "{few:?} kB of a short one, {many:?} of a long one"
    );
}

#[test]
fn texts_that_lose_a_person_are_not_held_together() {
    let folder = TempDir::new().unwrap();
    let path = demo(folder.path(), "300");
    let words = ["-d", &path, "--format", "json", "purge", "dana.whitfield", "--mentions", "redact"];
    let before = peak(folder.path(), &words);
    block_on(lengthen(&path, 160, 256 << 10, "dana.whitfield"));
    let (Some((few, _)), Some((many, printed))) = (before, peak(folder.path(), &words)) else { return };
    assert!(printed.contains("episodes.detail: the person's names"), "{printed}");
    // 40 MB of new texts.
    assert!(many < few + 34_000, "{few} kB with short rows, {many} kB with long ones");
}

#[test]
fn escapes_of_a_document_within_a_document_take_few_bytes_each() {
    let folder = TempDir::new().unwrap();
    let path = demo(folder.path(), "20");
    // Half a million escapes in 4 MB.
    let packed =
        "UPDATE episodes SET metadata = json_object('inner', (SELECT '{' || group_concat('\"k\":' || n, ',') || '}'
        FROM (WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 250000) SELECT n FROM n)))
        WHERE id = (SELECT min(id) FROM episodes WHERE user_id <> 'dana.whitfield')";
    let words = ["-d", &path, "--format", "json", "purge", "dana.whitfield"];
    let Some((before, _)) = peak(folder.path(), &words) else { return };
    block_on(documents(&path, &[packed]));
    let Some((after, _)) = peak(folder.path(), &words) else { return };
    // The stored text, the one within it, and 12 bytes for each escape, twice while their list grows.
    assert!(after < before + 28_000, "{before} kB without the document, {after} kB with it");
}

/// Adds episodes of one person, each with a part.
async fn add_person(path: &str, count: i64) {
    let mut link = SqliteConnection::connect(path).await.expect("the file");
    let episodes = "INSERT INTO episodes (id, agent_id, user_id, started_at) \
         WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < $1) \
         SELECT printf('peak-episode-%08d', n), 'agent', 'peak-person', '2026-02-01T00:00:00.000000Z' FROM n";
    sqlx::query(episodes).bind(count).execute(&mut link).await.expect("episodes");
    let parts = "INSERT INTO episode_segments (id, episode_id, sequence, kind, content) \
         SELECT 'part of ' || id, id, 0, 'note', 'said' FROM episodes WHERE user_id = 'peak-person'";
    sqlx::query(parts).execute(&mut link).await.expect("segments");
    link.close().await.expect("closed");
}

#[test]
fn rows_of_one_person_take_few_bytes_each() {
    let folder = TempDir::new().unwrap();
    let of = |episodes: &str, count: i64| {
        let path = demo(folder.path(), episodes);
        peak(folder.path(), &["-d", &path, "migrate", "--apply"])?;
        block_on(add_person(&path, count));
        let on = |words: &[&str]| peak(folder.path(), &[&["-d", &path, "--format", "json"], words].concat());
        let rows = format!("\"delete\": {count}");
        let exported = on(&["export", "subject", "peak-person"])?;
        assert!(exported.1.lines().count() as i64 == 2 * count + 1);
        let planned = on(&["purge", "peak-person"])?;
        let erased = on(&["purge", "peak-person", "--apply"])?;
        for (_, printed) in [&planned, &erased] {
            assert_eq!(printed.matches(&rows).count(), 2, "{printed}");
        }
        Some([exported.0, planned.0, erased.0])
    };
    let (Some(few), Some(many)) = (of("100", 1_000), of("101", 16_000)) else { return };
    for (few, many) in few.into_iter().zip(many) {
        // 32,000 rows and their ids took 1 to 2 kB each.
        assert!(many < few + 30_000, "{few} kB of 2,000 rows, {many} kB of 32,000");
    }
}

/// Adds memories that all episodes used.
async fn add_core_memories(path: &str) {
    let mut link = SqliteConnection::connect(path).await.expect("the file");
    let memories = "INSERT INTO memories (id, kind, text, uses, utility) \
         WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 10) \
         SELECT 'core-memory-' || n, 'drawer', 'said', 1, 0.123 FROM n; \
         INSERT INTO episode_memories (episode_id, memory_id) SELECT e.id, m.id FROM episodes e, memories m \
         WHERE m.id LIKE 'core-memory-%'";
    sqlx::raw_sql(memories).execute(&mut link).await.expect("memories");
    link.close().await.expect("closed");
}

#[test]
fn uses_of_memories_are_counted_outside_of_memory() {
    let folder = TempDir::new().unwrap();
    let of = |episodes: &str, count: i64| {
        let path = demo(folder.path(), episodes);
        peak(folder.path(), &["-d", &path, "migrate", "--apply"])?;
        block_on(add_person(&path, count));
        block_on(add_core_memories(&path));
        let on = |words: &[&str]| peak(folder.path(), &[&["-d", &path, "--format", "json"], words].concat());
        let purged = on(&["purge", "dana.whitfield"])?;
        let removed = on(&["remove", "episode", "peak-episode-00000001"])?;
        assert!(purged.1.contains("memories: uses is recalculated"), "{}", purged.1);
        let plan: serde_json::Value = serde_json::from_str(&removed.1).unwrap();
        assert_eq!(plan["counts"]["memories"]["update"], 10, "{plan}");
        Some([purged.0, removed.0])
    };
    let (Some(few), Some(many)) = (of("100", 100), of("101", 10_000)) else { return };
    for (few, many) in few.into_iter().zip(many) {
        // 100,000 links took 500 bytes each.
        assert!(many < few + 25_000, "{few} kB of 2,000 links, {many} kB of 101,000");
    }
}

/// Adds a person with many e-mail addresses.
async fn add_handles(path: &str, count: i64) {
    let mut link = SqliteConnection::connect(path).await.expect("the file");
    let person = "INSERT INTO subjects (id, name, handles, created_at) \
         SELECT 'peak.person', 'Peak Person', json_group_array(printf('peak%d@host%d.example', n, n % 97)), \
         '2026-02-01T00:00:00.000000Z' FROM (WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < $1) \
         SELECT n FROM n)";
    sqlx::query(person).bind(count).execute(&mut link).await.expect("a person");
    link.close().await.expect("closed");
}

#[test]
fn handles_of_a_person_take_few_bytes_each() {
    let folder = TempDir::new().unwrap();
    let of = |episodes: &str, count: i64| {
        let path = demo(folder.path(), episodes);
        peak(folder.path(), &["-d", &path, "migrate", "--apply"])?;
        block_on(add_handles(&path, count));
        let (most, printed) =
            peak(folder.path(), &["-d", &path, "--format", "json", "purge", "peak.person", "--apply"])?;
        let receipt: serde_json::Value = serde_json::from_str(&printed).unwrap();
        assert_eq!(receipt["verification"]["control"]["found"], count + 2, "{printed}");
        assert_eq!(receipt["verification"]["bytes"]["hits"], 0, "{printed}");
        Some(most)
    };
    let (Some(few), Some(many)) = (of("20", 10), of("21", 800)) else { return };
    // They took 50 kB each.
    assert!(many < few + 25_000, "{few} kB of 10 addresses, {many} kB of 800");
}

#[test]
fn the_databases_of_a_fleet_are_not_held_together() {
    let folder = TempDir::new().unwrap();
    let path = demo(folder.path(), "20");
    let of = |count: usize| {
        let mut file = String::new();
        for n in 0..count {
            let copy = folder.path().join(format!("copy-{n}.db"));
            fs::copy(&path, &copy).unwrap();
            file += &format!("[[database]]\nurl = \"{}\"\n", copy.display());
        }
        let fleet = folder.path().join("fleet.toml");
        fs::write(&fleet, file).unwrap();
        let words = ["--format", "json", "purge", "dana.whitfield", "--fleet", fleet.to_str().unwrap()];
        let (most, printed) = peak(folder.path(), &words)?;
        assert_eq!(printed.matches("\"status\": \"planned\"").count(), count + 1, "{printed}");
        Some(most)
    };
    let (Some(few), Some(many)) = (of(2), of(16)) else { return };
    // Each was open to the end, and took 900 kB with its plan.
    assert!(many < few + 9_000, "{few} kB of 2 databases, {many} kB of 16");
}

/// Adds memories of 150 words, each of a person of their own but for the last two, which say the same.
async fn add_memories(path: &str, count: i64) {
    let mut link = SqliteConnection::connect(path).await.expect("the file");
    let add = "WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < $1), \
         w(w) AS (SELECT 1 UNION ALL SELECT w + 1 FROM w WHERE w < 150), \
         said(text) AS (SELECT group_concat('word' || w, ' ') FROM w) \
         INSERT INTO memories (id, kind, text, user_id, created_at) SELECT printf('peak-%08d', n), 'note', text, \
         'peak-' || min(n, $1 - 1), '2026-02-01T00:00:00.000000Z' FROM n, said";
    sqlx::query(add).bind(count).execute(&mut link).await.expect("memories");
    link.close().await.expect("closed");
}

#[test]
fn memories_that_say_the_same_are_found_outside_of_memory() {
    let folder = TempDir::new().unwrap();
    let of = |episodes: &str, count: i64| {
        let path = demo(folder.path(), episodes);
        block_on(add_memories(&path, count));
        peak(folder.path(), &["-d", &path, "--format", "json", "findings", "--kind", "near_duplicate_memory"])
    };
    let (Some((few, _)), Some((many, printed))) = (of("100", 2_000), of("101", 45_000)) else { return };
    assert!(["peak-00044999", "peak-00045000"].iter().all(|id| printed.contains(id)), "{printed}");
    // Numbers for the words of 45,000 memories take 54 MB, of 8 bytes each.
    assert!(many < few + 40_000, "{few} kB of 2,000 memories, {many} kB of 45,000");
}

/// Adds an agent's episodes of one day, each with a vector of 1,536 numbers.
async fn add_busy_agent(path: &str, count: i64) {
    let mut link = SqliteConnection::connect(path).await.expect("the file");
    let add = "INSERT INTO episodes (id, agent_id, started_at, ended_at) \
         WITH RECURSIVE n(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM n WHERE n < $1) \
         SELECT printf('busy-%06d', n), 'busy', strftime('%Y-%m-%dT%H:%M:%S.000000Z', 1770192000 + 10 * n, 'unixepoch'), \
         strftime('%Y-%m-%dT%H:%M:%S.000000Z', 1770192005 + 10 * n, 'unixepoch') FROM n";
    sqlx::query(add).bind(count).execute(&mut link).await.expect("episodes");
    let vector: Vec<u8> = (0..1_536).flat_map(|n| (1.0 + n as f32).to_le_bytes()).collect();
    let add = "INSERT INTO episode_embeddings SELECT id, $1 FROM episodes WHERE agent_id = 'busy'";
    sqlx::query(add).bind(vector).execute(&mut link).await.expect("vectors");
    link.close().await.expect("closed");
}

#[test]
fn parents_of_busy_agents_are_found_without_all_vectors_in_memory() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("episode.json");
    let vector: Vec<f32> = (0..1_536).map(|n| 1.0 + n as f32).collect();
    let new = serde_json::json!({"id": "new", "agent_id": "busy", "title": "new", "embedding": vector,
        "started_at": "2026-02-05T08:00:00.000000Z", "ended_at": "2026-02-05T09:00:00.000000Z"});
    fs::write(&file, new.to_string()).unwrap();
    let of = |count: i64| {
        let path = demo(folder.path(), &(100 + count / 1_000).to_string());
        peak(folder.path(), &["-d", &path, "migrate", "--apply"])?;
        block_on(add_busy_agent(&path, count));
        let last = format!("busy-{count:06}");
        let suggested = peak(folder.path(), &["-d", &path, "--format", "json", "chain", &last, "--suggest-parents"])?;
        let file = file.display().to_string();
        let recorded = peak(folder.path(), &["-d", &path, "--format", "json", "record", "episode", &file])?;
        Some([(suggested, format!("busy-{:06}", count - 1)), (recorded, format!("\"parent_id\": \"{last}\""))])
    };
    let (Some(few), Some(many)) = (of(100), of(8_000)) else { return };
    for (((few, _), _), ((many, printed), parent)) in few.into_iter().zip(many) {
        assert!(printed.contains(&parent), "{parent}: {printed}");
        // The vectors of 8,000 episodes take 49 MB.
        assert!(many < few + 40_000, "{few} kB of 100 episodes, {many} kB of 8,000");
    }
}

/// Adds a bank with long cases and long-winded versions of a policy, of which the last but one is used.
async fn add_bank(path: &str, count: i64) {
    let mut link = SqliteConnection::connect(path).await.expect("the file");
    let bank = "INSERT INTO agent_memory_profiles (id, user_id, agent_id) VALUES ('peak', 'peak-user', 'peak-agent')";
    sqlx::query(bank).execute(&mut link).await.expect("a bank");
    let cases = "INSERT INTO agent_memory_cases (id, profile_id, user_id, agent_id, outcome, created_at) \
         WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < $1) \
         SELECT printf('case-%06d', n), 'peak', 'peak-user', 'peak-agent', $2, '2026-02-04T10:00:00.000000Z' FROM n";
    sqlx::query(cases).bind(count).bind("success ".repeat(1_000)).execute(&mut link).await.expect("cases");
    let versions = "INSERT INTO agent_memory_policies (id, profile_id, version, weights, metrics, status) \
         WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < $1) \
         SELECT 'policy-' || n, 'peak', n, '{\"similarity\": 0.5}', $2, iif(n = $1, 'training', 'active') FROM n";
    let metrics = serde_json::json!({"notes": "loss ".repeat(2_000)}).to_string();
    sqlx::query(versions).bind(count).bind(metrics).execute(&mut link).await.expect("versions");
    link.close().await.expect("closed");
}

/// Gives all cases one hash, each with a prompt of its own.
async fn give_one_hash(path: &str) {
    let mut link = SqliteConnection::connect(path).await.expect("the file");
    let set = "UPDATE agent_memory_cases SET message_hash = 'unsaid', prompt = json_quote(id)";
    sqlx::query(set).execute(&mut link).await.expect("hashes");
    link.close().await.expect("closed");
}

#[test]
fn cases_and_versions_of_a_bank_are_not_held_whole() {
    let folder = TempDir::new().unwrap();
    let of = |count: i64| {
        let path = demo(folder.path(), &(100 + count / 1_000).to_string());
        peak(folder.path(), &["-d", &path, "migrate", "--apply"])?;
        block_on(add_bank(&path, count));
        let on = |words: &[&str]| peak(folder.path(), &[&["-d", &path, "--format", "json"], words].concat());
        let window = on(&["profile", "set", "peak", "--window", "10"])?;
        let used =
            on(&["recall", "task", "--ranking", "cases", "--user", "peak-user", "--agent", "peak-agent", "-k", "1"])?;
        let [outside, all] = [count - 10, count].map(thousands);
        assert!(window.1.contains(&format!("{outside} of its {all} cases lie outside")), "{}", window.1);
        assert!(used.1.contains(&format!("\"policy-{}\"", count - 1)), "{}", used.1);
        block_on(give_one_hash(&path));
        let case = folder.path().join("case.json").display().to_string();
        fs::write(&case, r#"{"profile_id": "peak", "message_hash": "unsaid", "prompt": "once more"}"#).unwrap();
        let record = ["-d", &path, "--format", "json", "record", "case", &case];
        let recorded = peak(folder.path(), &record)?;
        Some([window.0, used.0, recorded.0])
    };
    let (Some(few), Some(many)) = (of(20), of(8_000)) else { return };
    for (few, many) in few.into_iter().zip(many) {
        // The cases take 64 MB, and the versions 80.
        assert!(many < few + 40_000, "{few} kB of 20 rows, {many} kB of 8,000");
    }
}

/// Adds completed runs with logs of 1 MB each to a database of pyworkflow.
async fn add_runs(path: &Path, runs: i64) {
    let mut link = SqliteConnection::connect(&path.display().to_string()).await.expect("the file");
    let numbers = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < $1)";
    let of_runs = format!(
        "{numbers} INSERT INTO workflow_runs (run_id, workflow_name, status, created_at, updated_at, completed_at)
         SELECT 'run_long_' || i, 'long', 'completed', '2026-11-01T07:00:00+00:00', '2026-11-01T07:00:00+00:00',
         '2026-11-01T07:00:10+00:00' FROM n"
    );
    let of_events = format!(
        "{numbers}, s(j) AS (SELECT 0 UNION ALL SELECT j + 1 FROM s WHERE j < 19)
         INSERT INTO events (event_id, run_id, sequence, type, timestamp, data)
         SELECT 'evt_long_' || i || '_' || j, 'run_long_' || i, j, CASE j WHEN 19 THEN 'workflow.completed' ELSE
         'step.completed' END, '2026-11-01T07:00:05+00:00', json_object('step_name', 'work', 'result', $2) FROM n, s"
    );
    sqlx::query(AssertSqlSafe(of_runs)).bind(runs).execute(&mut link).await.expect("runs");
    let result = "a word ".repeat((50 << 10) / 7);
    sqlx::query(AssertSqlSafe(of_events)).bind(runs).bind(result).execute(&mut link).await.expect("events");
    link.close().await.expect("closed");
}

#[test]
fn long_logs_are_not_held_together() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("runs.db");
    block_on(build_sqlite(Layout::Pyworkflow, &path));
    let of = |words: &[&str]| {
        let start = ["-d", path.to_str().unwrap(), "--format", "json"];
        peak(folder.path(), &start.into_iter().chain(words.iter().copied()).collect::<Vec<_>>())
    };
    let commands: &[&[&str]] = &[
        &["list", "episode", "--limit", "300"],
        &["findings"],
        &["recall", "work", "--ranking", "similar"],
        &["backfill", "episodes-from-events"],
    ];
    let made = |plan: &str| serde_json::from_str::<serde_json::Value>(plan).unwrap()["changes_total"].as_u64().unwrap();
    let before: Option<Vec<(u64, String)>> = commands.iter().map(|words| of(words)).collect();
    let Some(before) = before else { return };
    block_on(add_runs(&path, 100));
    for (words, (few, planned)) in commands.iter().zip(before) {
        let Some((many, printed)) = of(words) else { return };
        // 100 MB of logs.
        assert!(many < few + 80_000, "{words:?}: {few} kB with short logs, {many} kB with long ones");
        if words[0] == "backfill" {
            assert_eq!(made(&printed), made(&planned) + 100, "each of the runs once");
        }
    }
}

/// Adds a run with one event of some kind, whose data is made of a JSON document of 5.6 MB.
async fn add_long_event(path: &Path, kind: &str, data: &str) {
    let mut link = SqliteConnection::connect(&path.display().to_string()).await.expect("the file");
    let run = "INSERT INTO workflow_runs (run_id, workflow_name, status, created_at, updated_at, completed_at) VALUES
        ('run_one', 'one', 'completed', '2026-12-01T07:00:00+00:00', '2026-12-01T07:00:00+00:00', '2026-12-01T07:00:10+00:00')";
    sqlx::query(run).execute(&mut link).await.expect("a run");
    let parts: Vec<String> = (0..130_000).map(|n| format!("{{\"step\": {n}, \"said\": \"parcel {n}\"}}")).collect();
    let event = format!(
        "INSERT INTO events (event_id, run_id, sequence, type, timestamp, data)
         VALUES ('evt_one', 'run_one', 1, '{kind}', '2026-12-01T07:00:05+00:00', {data})"
    );
    let document = format!("{{\"list\": [{}]}}", parts.join(", "));
    sqlx::query(AssertSqlSafe(event)).bind(document).execute(&mut link).await.expect("an event");
    link.close().await.expect("closed");
}

#[test]
fn a_long_payload_of_an_event_is_looked_at_as_its_text() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("runs.db");
    let of = |words: &[&str]| {
        let start = ["-d", path.to_str().unwrap(), "--format", "json"];
        peak(folder.path(), &start.into_iter().chain(words.iter().copied()).collect::<Vec<_>>())
    };
    for (kind, data) in [
        ("hook.received", "json_object('step_id', 's', 'payload', json($1))"),
        ("workflow.completed", "json_object('result', json($1))"),
        ("workflow.completed", "json_object('result', $1)"),
    ] {
        _ = fs::remove_file(&path);
        block_on(build_sqlite(Layout::Pyworkflow, &path));
        let Some((few, _)) = of(&["findings"]) else { return };
        block_on(add_long_event(&path, kind, data));
        let Some((many, _)) = of(&["findings"]) else { return };
        // Its values would take 80 MB, or twice that.
        assert!(many < few + 50_000, "{kind}: {few} kB before, {many} kB with {data}");
    }
    let Some((_, shown)) = of(&["show", "episode", "run_one"]) else { return };
    let shown: serde_json::Value = serde_json::from_str(&shown).unwrap();
    assert_eq!(shown["episode"]["result"]["list"][129_999]["said"], "parcel 129999");
}

/// Gives one session 120 canvas events of 1 MB that no episode is linked to, and an episode of that session.
async fn add_session(path: &str) {
    let mut link = SqliteConnection::connect(path).await.expect("the file");
    let events = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 120)
        INSERT INTO canvas_audit (id, session_id, canvas_id, canvas_type, action, metadata, created_at)
        SELECT 'long-' || i, 'long-session', 'c', 'form', 'present', json_object('said', $1), '2026-06-01T00:00:00.000000Z'
        FROM n";
    sqlx::query(events).bind("at length ".repeat((1 << 20) / 10)).execute(&mut link).await.expect("events");
    let episode = "INSERT INTO episodes (id, session_id, started_at) VALUES ('ep-long', 'long-session', '2026-06-01')";
    sqlx::query(episode).execute(&mut link).await.expect("an episode");
    link.close().await.expect("closed");
}

#[test]
fn why_an_episode_has_no_canvas_is_told_without_its_sessions_rows() {
    let folder = TempDir::new().unwrap();
    let path = demo(folder.path(), "300");
    block_on(add_session(&path));
    let Some((most, printed)) = peak(folder.path(), &["-d", &path, "--format", "json", "show", "episode", "ep-long"])
    else {
        return;
    };
    assert!(printed.contains("its session has 120 canvas events that are not linked to it (showing 100 of 120)"));
    assert!(most < 110_000, "{most} kB");
}

/// Adds a chain of episodes of 1.5 MB, and an episode with as many children.
async fn add_long_chain(path: &str, count: i64) {
    let mut link = SqliteConnection::connect(path).await.expect("the file");
    let numbers = "WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < $1)";
    let detail = "no invoice stands in here; ".repeat((3 << 19) / 27);
    for (name, parent) in [("link", "'link-' || (n - 1)"), ("child", "'link-1'")] {
        let add = format!(
            "{numbers} INSERT INTO episodes (id, agent_id, parent_id, started_at, detail) SELECT '{name}-' || n, 'a', \
             CASE WHEN '{name}-' || n <> 'link-1' THEN {parent} END, '2026-02-01T00:00:00.000000Z', $2 FROM n"
        );
        sqlx::query(AssertSqlSafe(add)).bind(count).bind(&detail).execute(&mut link).await.expect("episodes");
    }
    link.close().await.expect("closed");
}

#[test]
fn long_episodes_of_a_chain_are_printed_as_they_are_read() {
    let folder = TempDir::new().unwrap();
    let of = |count: i64| {
        let path = demo(folder.path(), &(100 + count).to_string());
        block_on(add_long_chain(&path, count));
        let last = format!("link-{count}");
        let commands: [(&str, &[&str]); 4] = [
            ("json", &["chain", &last]),
            ("table", &["chain", &last]),
            ("json", &["chain", "link-1"]),
            ("json", &["show", "episode", &last]),
        ];
        commands
            .iter()
            .map(|(format, words)| peak(folder.path(), &[&["-d", &path, "--format", format], *words].concat()))
            .collect::<Option<Vec<_>>>()
    };
    let (Some(few), Some(many)) = (of(2), of(32)) else { return };
    for ((few, _), (many, printed)) in few.into_iter().zip(many) {
        assert!(printed.len() > 48_000_000 && printed.contains("-32"), "{} bytes", printed.len());
        // 48 MB of texts.
        assert!(many < few + 34_000, "{few} kB of 2 episodes, {many} kB of 32");
    }
}

/// Adds an episode on which many rows of each kind hang, and a memory that all of its children used.
async fn add_hub(path: &str, count: i64) {
    let mut link = SqliteConnection::connect(path).await.expect("the file");
    let hub = "INSERT INTO episodes (id, agent_id, title, started_at, feedback_score)
        VALUES ('hub', 'a', 'zebra', '2027-01-01T00:00:00.000000Z', 1)";
    sqlx::query(hub).execute(&mut link).await.expect("an episode");
    sqlx::query("INSERT INTO memories (id, text) VALUES ('used', 'often')").execute(&mut link).await.expect("a memory");
    let numbers = "WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < $1)";
    let at = "'2026-02-01T00:00:00.000000Z'";
    let said = "hex(zeroblob(100))";
    for into in [
        format!(
            "canvas_audit (id, episode_id, action, metadata, created_at) {numbers} SELECT 'c' || n, 'hub', {said}, '[]', {at}"
        ),
        format!(
            "agent_feedback (id, episode_id, kind, correction, created_at) {numbers} SELECT 'f' || n, 'hub', 'thumbs_up', {said}, {at}"
        ),
        format!(
            "utility_events (id, episode_id, signal, reason, created_at) {numbers} SELECT 'u' || n, 'hub', 'confirmed', {said}, {at}"
        ),
        format!("episode_segments (id, episode_id, sequence, content) {numbers} SELECT 's' || n, 'hub', n, {said}"),
        format!("memories (id, text) {numbers} SELECT 'm' || n, {said}"),
        format!("episode_memories (episode_id, memory_id, rank) {numbers} SELECT 'hub', 'm' || n, n"),
        format!("episodes (id, agent_id, parent_id, started_at) {numbers} SELECT 'e' || n, 'a', 'hub', {at}"),
        format!("episode_memories (episode_id, memory_id) {numbers} SELECT 'e' || n, 'used'"),
    ] {
        let add = format!("INSERT INTO {into} FROM n");
        sqlx::query(AssertSqlSafe(add)).bind(count).execute(&mut link).await.expect("rows");
    }
    link.close().await.expect("closed");
}

#[test]
fn rows_that_hang_on_an_episode_take_few_bytes_each() {
    let folder = TempDir::new().unwrap();
    let of = |count: i64| {
        let path = demo(folder.path(), &(100 + count / 1_000).to_string());
        block_on(add_hub(&path, count));
        let on = |words: &[&str]| peak(folder.path(), &[&["-d", &path, "--format", "json"], words].concat());
        let shown = [on(&["show", "episode", "hub"])?, on(&["chain", "hub"])?, on(&["show", "memory", "used"])?];
        for ((_, printed), id) in shown.iter().zip(["c", "e", "e"]) {
            assert!(printed.contains(&format!("\"{id}{count}\"")), "{id}{count}");
        }
        Some(shown.map(|(most, _)| most))
    };
    let (Some(few), Some(many)) = (of(100), of(12_000)) else { return };
    for (few, many) in few.into_iter().zip(many) {
        // 84,000 rows, of 600 bytes at least where they are held.
        assert!(many < few + 30_000, "{few} kB of 100 rows of each kind, {many} kB of 12,000");
    }
}

#[test]
fn rows_that_hang_on_a_recalled_episode_are_printed_as_they_are_read() {
    let folder = TempDir::new().unwrap();
    let of = |count: i64| {
        let path = demo(folder.path(), &(100 + count / 1_000).to_string());
        block_on(add_hub(&path, count));
        let mut peaks = Vec::new();
        for (words, last) in [
            (&["recall", "zebra", "--ranking", "boosted", "-k", "1"][..], format!("\"f{count}\"")),
            (&["context", "zebra", "--ranking", "boosted", "-k", "1"], "corrected: ".to_owned()),
            (&["replay", "zebra"], format!("\"f{count}\"")),
        ] {
            for format in ["json", "table"] {
                let (most, printed) = peak(folder.path(), &[&["-d", &path, "--format", format], words].concat())?;
                assert!(format == "table" || printed.contains(&last), "{words:?}");
                peaks.push(most);
            }
        }
        Some(peaks)
    };
    let (Some(few), Some(many)) = (of(100), of(10_000)) else { return };
    for (few, many) in few.into_iter().zip(many) {
        // 20,000 rows of canvas and feedback; as values for JSON they take 80 MB.
        assert!(many < few + 50_000, "{few} kB of 100 rows of each kind, {many} kB of 10,000");
    }
}

/// Makes an episode the newest one.
async fn make_newest(path: &str, id: &str) {
    let mut link = SqliteConnection::connect(path).await.expect("the file");
    let set = "UPDATE episodes SET started_at = '2028-01-01T00:00:00.000000Z' WHERE id = $1";
    sqlx::query(set).bind(id).execute(&mut link).await.expect("the episode");
    link.close().await.expect("closed");
}

#[test]
fn the_console_replays_a_long_chain_without_its_texts() {
    let of = |count: i64| {
        let home = Home::new();
        let path = home.demo_of(100).display().to_string();
        block_on(add_long_chain(&path, count));
        block_on(make_newest(&path, &format!("link-{count}")));
        let terminal = Start::new(&home, &[&path]).sized(160, 50).run();
        terminal.shows("newest episodes");
        terminal.press("2");
        terminal.shows("row 1");
        terminal.press("V");
        terminal.shows(if count > 10 { "40 not shown" } else { "by keyword" });
        let most = terminal.most_memory();
        terminal.press("q");
        most
    };
    let (Some(few), Some(many)) = (of(2), of(50)) else { return };
    // 75 MB of texts.
    assert!(many < few + 40_000, "{few} kB of 2 episodes, {many} kB of 50");
}

#[test]
fn an_episode_with_very_many_rows_is_shown_in_the_console_without_them() {
    let of = |count: i64| {
        let home = Home::new();
        let path = home.demo_of(100);
        block_on(add_hub(path.to_str().unwrap(), count));
        let terminal = Start::new(&home, &[path.to_str().unwrap()]).sized(160, 50).run();
        terminal.shows("newest episodes");
        terminal.press("2");
        // On a busy machine the count of the rows comes late, or not at all.
        terminal.shows("row 1");
        terminal.press("\r");
        terminal.shows("canvas");
        terminal.press(".a");
        terminal.shows(if count > 1_000 { "canvas 30.0k" } else { "canvas 100" });
        let most = terminal.most_memory();
        terminal.press("q");
        most
    };
    let (Some(few), Some(many)) = (of(100), of(30_000)) else { return };
    assert!(many < few + 80_000, "{few} kB of 100 rows of each kind, {many} kB of 30,000");
}

/// Adds a completed run with a log of many steps, 200 bytes each, to a database of pyworkflow.
async fn add_long_run(path: &Path, steps: i64) {
    let mut link = SqliteConnection::connect(&path.display().to_string()).await.expect("the file");
    let run = "INSERT INTO workflow_runs (run_id, workflow_name, status, created_at, updated_at, completed_at) VALUES
        ('run_giant', 'giant', 'completed', '2026-12-01T07:00:00+00:00', '2026-12-01T07:00:00+00:00', '2026-12-01T07:00:10+00:00')";
    sqlx::query(run).execute(&mut link).await.expect("a run");
    let events = "WITH RECURSIVE s(j) AS (SELECT 1 UNION ALL SELECT j + 1 FROM s WHERE j < $1)
         INSERT INTO events (event_id, run_id, sequence, type, timestamp, data)
         SELECT 'evt_' || j, 'run_giant', j, 'step.completed', '2026-12-01T07:00:05+00:00', json_object('step_id',
         'step_work_' || printf('%016x', j), 'step_name', 'work', 'result', hex(zeroblob(62))) FROM s";
    sqlx::query(events).bind(steps).execute(&mut link).await.expect("events");
    link.close().await.expect("closed");
}

#[test]
fn actions_of_one_long_run_are_held_once() {
    let folder = TempDir::new().unwrap();
    let of = |steps: i64| {
        let path = folder.path().join(format!("{steps}.db"));
        block_on(build_sqlite(Layout::Pyworkflow, &path));
        block_on(add_long_run(&path, steps));
        let of = |format: &str, words: &[&str], (name, times): (&str, i64)| {
            let start = ["-d", path.to_str().unwrap(), "--format", format];
            let (most, printed) = peak(folder.path(), &[&start, words].concat())?;
            assert_eq!(printed.matches(name).count() as i64, steps * times, "{words:?}");
            Some(most)
        };
        let listed = of("json", &["list", "episode", "--limit", "1"], ("\"step_name\"", 1))?;
        // Among its actions, its events, and once more in its chain.
        let shown = of("table", &["show", "episode", "run_giant"], ("step_name: ", 3))?;
        Some([listed, shown])
    };
    let (Some(few), Some(many)) = (of(10), of(25_000)) else { return };
    for (few, many) in few.into_iter().zip(many) {
        // An action of 5 members takes about 1 kB; twice that, and its text, where it is copied.
        assert!(many < few + 50_000, "{few} kB of 10 steps, {many} kB of 25,000");
    }
}

/// Writes lines of so many episodes, with a text of so many letters each.
async fn write_export(path: &str, file: &Path, rows: i64, letters: i64) {
    let mut link = SqliteConnection::connect(path).await.expect("the file");
    let made = "WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < $1) \
         SELECT json_object('entity', 'episode', 'id', 'sent-' || n, 'title', 'sent', 'detail', hex(zeroblob($2 / 2))) FROM n";
    let lines: Vec<String> =
        sqlx::query_scalar(made).bind(rows).bind(letters).fetch_all(&mut link).await.expect("lines");
    fs::write(file, lines.join("\n")).unwrap();
    link.close().await.expect("closed");
}

#[test]
fn a_large_export_is_put_in_without_all_of_its_rows_in_memory() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("rows.jsonl").display().to_string();
    for (episodes, rows, letters) in [("100", 4_400, 4_000), ("101", 30_000, 10), ("102", 44, 400_000)] {
        let path = demo(folder.path(), episodes);
        peak(folder.path(), &["-d", &path, "migrate", "--apply"]);
        block_on(write_export(&path, Path::new(&file), rows, letters));
        let words = ["-d", &path, "--format", "json", "import", "jsonl", &file, "--apply"];
        let Some((most, printed)) = peak(folder.path(), &words) else { return };
        let receipt: serde_json::Value = serde_json::from_str(&printed).unwrap();
        assert_eq!(
            (&receipt["status"], receipt["counts"]["episodes"]["insert"].as_i64()),
            (&"applied".into(), Some(rows))
        );
        // 18 MB of lines, or 30,000 rows of 4 kB: one plan of them took 10 times as much.
        assert!(most < 170_000, "{rows} rows of {letters} letters: {most} kB");
    }
}

/// Many rows that go with an episode, or lose its name.
async fn hang(path: &str, table: &str, count: i64) {
    let script = format!(
        "CREATE TABLE tags (id TEXT NOT NULL PRIMARY KEY, episode_id TEXT REFERENCES episodes (id) ON DELETE SET NULL); \
         INSERT INTO episodes (id, title) VALUES ('laden', 'x'); \
         WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < {count}) \
           INSERT INTO {table} (id, episode_id) SELECT printf('row-%08d-%08d', n, n), 'laden' FROM n"
    );
    let mut link = SqliteConnection::connect(path).await.unwrap();
    sqlx::raw_sql(AssertSqlSafe(script)).execute(&mut link).await.unwrap();
}

#[test]
fn a_row_on_which_very_much_hangs_is_refused_before_memory_is_full() {
    let mut refused = Vec::new();
    for (table, count) in [("episode_segments", 150_000), ("episode_segments", 400_000), ("tags", 400_000)] {
        let folder = TempDir::new().unwrap();
        let path = demo(folder.path(), "10");
        peak(folder.path(), &["-d", &path, "migrate", "--apply"]);
        block_on(hang(&path, table, count));
        let Some((most, words)) = peak_with(folder.path(), &["-d", &path, "remove", "episode", "laden"], 5) else {
            return;
        };
        assert!(words.contains(&format!("most of them rows of {table}")) && words.contains("`purge`"), "{words}");
        refused.push((table, count, most));
    }
    assert!(refused.iter().all(|(.., most)| *most < 150_000), "{refused:?}");
}

/// Rows that are due, on one of which very many others hang.
async fn hang_due(path: &str, count: i64) {
    let script = format!(
        "CREATE TABLE votes (id INTEGER PRIMARY KEY, of TEXT NOT NULL REFERENCES agent_memory_cases (id)); \
         INSERT INTO episodes (id, title, started_at) VALUES ('laden', 'x', '2001-01-01T00:00:00Z'), ('light', 'x', '2001-01-01T00:00:00Z'); \
         INSERT INTO agent_memory_profiles (id, user_id, agent_id, window_size) VALUES ('zp', 'zoe', 'zo-bot', 1); \
         INSERT INTO agent_memory_cases (id, profile_id, user_id, agent_id, created_at) VALUES \
           ('zc-1', 'zp', 'zoe', 'zo-bot', '2024-01-01T00:00:00Z'), ('zc-2', 'zp', 'zoe', 'zo-bot', '2024-01-02T00:00:00Z'), \
           ('zc-3', 'zp', 'zoe', 'zo-bot', '2024-01-03T00:00:00Z'); \
         WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < {count}) \
           INSERT INTO episode_segments (id, episode_id) SELECT printf('row-%08d-%08d', n, n), 'laden' FROM n; \
         INSERT INTO votes SELECT rowid, 'zc-1' FROM episode_segments"
    );
    let mut link = SqliteConnection::connect(path).await.unwrap();
    sqlx::raw_sql(AssertSqlSafe(script)).execute(&mut link).await.unwrap();
}

#[test]
fn a_due_row_on_which_very_much_hangs_keeps_no_others_waiting() {
    let mut peaks = Vec::new();
    for count in [150_000, 400_000] {
        let folder = TempDir::new().unwrap();
        let path = demo(folder.path(), "10");
        let rules = folder.path().join("retention.toml").display().to_string();
        fs::write(&rules, "share = 1.0\n[[rule]]\nentity = \"episode\"\nolder_than = \"8000d\"\n").unwrap();
        peak(folder.path(), &["-d", &path, "migrate", "--apply"]);
        block_on(hang_due(&path, count));
        let retain = ["-d", &path, "--format", "json", "retain", &rules, "--apply"];
        let prune = ["-d", &path, "--format", "json", "prune", "--agent", "zo-bot", "--apply"];
        for (words, table, stays) in
            [(&retain[..], "episodes", "episode laden stays"), (&prune[..], "agent_memory_cases", "case zc-1 stays")]
        {
            let Some((most, printed)) = peak(folder.path(), words) else { return };
            let receipt: serde_json::Value = serde_json::from_str(&printed).unwrap();
            assert_eq!(receipt["counts"][table]["delete"], 1, "{printed}");
            assert!(receipt["disclosures"].to_string().contains(stays), "{printed}");
            peaks.push((count, table, most));
        }
    }
    assert!(peaks.iter().all(|(.., most)| *most < 180_000), "{peaks:?}");
}

/// Episodes of one session and of the same executions with long lists; one without any, and what is linked to it.
async fn add_long_lists(path: &str, episodes: i64) {
    let list = |name: &str, first: &str, length: i64| {
        let ids = (0..length).map(|n| format!("{name}-{n:08}"));
        std::iter::once(first.to_owned()).chain(ids).collect::<serde_json::Value>().to_string()
    };
    let mut link = SqliteConnection::connect(path).await.unwrap();
    let script = "INSERT INTO episodes (id, title, started_at, session_id, execution_ids) VALUES ('open', 'x', '2024-01-02T00:00:00Z', 'one', '[\"run\"]'); \
         INSERT INTO episodes (id, title, started_at, canvas_ids) VALUES ('a', 'x', '2024-01-02T00:00:00Z', '[\"loose\"]'); \
         INSERT INTO canvas_audit (id, session_id, action, created_at) VALUES \
           ('event', 'one', 'present', '2024-01-02T00:00:10Z'), ('loose', NULL, 'present', '2024-01-02T00:00:10Z'); \
         INSERT INTO agent_feedback (id, execution_id, kind, created_at) VALUES ('said', 'run', 'thumbs_up', '2024-01-02T00:00:10Z')";
    sqlx::raw_sql(script).execute(&mut link).await.unwrap();
    let long = "INSERT INTO episodes (id, title, started_at, session_id, canvas_ids, execution_ids, feedback_ids) \
         WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < $1) \
         SELECT printf('long-%04d', n), 'x', '2024-01-01T00:00:00Z', 'one', $2, $3, $4 FROM n";
    let lists = [list("event", "loose", 12_000), list("run", "run", 12_000), list("said", "none", 12_000)];
    let [canvas, executions, feedback] = lists;
    sqlx::query(long).bind(episodes).bind(canvas).bind(executions).bind(feedback).execute(&mut link).await.unwrap();
}

#[test]
fn long_lists_of_episodes_beside_those_of_a_batch_are_not_held() {
    let jobs = ["canvas-links", "feedback-links", "links"];
    let of = |episodes| {
        let folder = TempDir::new().unwrap();
        let path = demo(folder.path(), "10");
        peak(folder.path(), &["-d", &path, "migrate", "--apply"]);
        block_on(add_long_lists(&path, episodes));
        let run =
            |job| peak(folder.path(), &["-d", &path, "--format", "json", "backfill", job, "--batch", "20", "--apply"]);
        let peaks: Option<Vec<u64>> = jobs.iter().map(|job| Some(run(job)?.0)).collect();
        let listed = block_on(async {
            let mut link = SqliteConnection::connect(&path).await.unwrap();
            let sql = "SELECT canvas_ids || feedback_ids FROM episodes WHERE id = 'open'";
            sqlx::query_scalar::<_, String>(sql).fetch_one(&mut link).await.unwrap()
        });
        assert_eq!(listed, "[\"event\"][\"said\"]");
        peaks
    };
    let (Some(few), Some(many)) = (of(20), of(60)) else { return };
    for ((job, few), many) in jobs.iter().zip(few).zip(many) {
        assert!(many < few + 40_000, "{job}: {few} kB next to 20 long lists, {many} kB next to 60");
    }
}
