//! Recall: rankings with terms that sum, nearest cases as an exhaustive search finds them, the same on both engines with
//! and without pgvector, and vectors of texts from an endpoint that may be dead.

use std::fmt::Write as _;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::ops::ControlFlow;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::support::block_on;
use crate::support::fixtures::Layout;
use crate::support::postgres::Database;
use crate::support::world::{ids_in, meddle, natives, on_postgres, tester as author};
use mnemoscope::change::findings::{FindingNews, FindingRequest, look};
use mnemoscope::change::operation::Pruning;
use mnemoscope::change::{self, Plan, migrate, prune, purge, quarantine, reward, what_if};
use mnemoscope::lab::parents::{self, EarliestStarts};
use mnemoscope::lab::{self, RecallRequest, RecalledItem};
use mnemoscope::memory::findings::Finding;
use mnemoscope::memory::vector::cosine_of;
use mnemoscope::memory::{Entity, time};
use mnemoscope::recall::answer::NO_POLICY;
use mnemoscope::recall::inquiry::Inquiry;
use mnemoscope::recall::rank::{NEAR_DUPLICATE, RankedRow, Ranking};
use mnemoscope::recall::what_if::{PlaceMove, WhatIf};
use mnemoscope::store::vector::{ComparedBy, ComparedVectors};
use mnemoscope::store::{Store, Target};
use serde_json::{Value, json};
use sqlx::{AssertSqlSafe, Connection as _, PgConnection, SqliteConnection};

const SQLITE: &str = include_str!("../../assets/migrations/mnemoscope/sqlite/0001_native.sql");
const POSTGRES: &str = include_str!("../../assets/migrations/mnemoscope/postgres/0001_native.sql");
const NOW: &str = "2026-03-01T12:00:00.000000Z";
const PROFILES: usize = 3;
const CASES: usize = 40;

/// Ways in which a database keeps vectors.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Kept {
    SqliteBlob,
    Pgvector,
    PostgresBytes,
}

/// Numbers that look like chance and are the same everywhere.
fn noise(seed: usize) -> f32 {
    let mixed = (seed as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(31).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    (mixed >> 40) as f32 / 8_388_608.0 - 1.0
}

/// The vector of a case; every fifth is nearly that of the one before it.
fn vector(case: usize) -> Vec<f32> {
    let of = if case % 5 == 4 { case - 1 } else { case };
    (0..12).map(|i| noise(of * 12 + i) + if of == case { 0.0 } else { 0.001 * i as f32 }).collect()
}

fn literal(kept: Kept, vector: &[f32]) -> String {
    let bytes: Vec<u8> = vector.iter().flat_map(|v| v.to_le_bytes()).collect();
    match kept {
        Kept::SqliteBlob => format!("x'{}'", hex::encode(bytes)),
        Kept::PostgresBytes => format!("'\\x{}'::bytea", hex::encode(bytes)),
        Kept::Pgvector => format!("'[{}]'::vector", vector.iter().map(f32::to_string).collect::<Vec<_>>().join(",")),
    }
}

/// Three banks of cases; some without a vector, of length 0, of other dimensions, quarantined. Episodes with canvas counts
/// and feedback; memories that they used.
fn rows(kept: Kept) -> String {
    let (truth, no, json) = if kept == Kept::SqliteBlob { ("1", "0", "") } else { ("true", "false", "::jsonb") };
    let mut sql = String::new();
    for profile in 0..PROFILES {
        let _ = writeln!(
            sql,
            "INSERT INTO agent_memory_profiles (id, user_id, agent_id, created_at) VALUES ('p{profile}', 'user-{profile}', 'a', '{NOW}');"
        );
        for n in 0..CASES {
            let case = profile * CASES + n;
            let held = if n == 7 { truth } else { no };
            let at = format!("2026-02-{:02}T10:00:00.000000Z", n % 28 + 1);
            let _ = writeln!(
                sql,
                "INSERT INTO agent_memory_cases (id, profile_id, user_id, agent_id, prompt, outcome, reward, tags, created_at, quarantined) \
                 VALUES ('c{case:03}', 'p{profile}', 'user-{profile}', 'a', '{{\"message\": \"task {} number {n}\"}}'{json}, '{}', 0.5, '[\"tag{}\"]'{json}, '{at}', {held});",
                ["tax", "visa", "invoice"][n % 3],
                ["success", "failure"][n % 2],
                n % 4,
            );
            let vector = match n {
                3 => continue,
                5 => vec![0.0; 12],
                6 => vec![1.0, 0.5],
                _ => vector(case),
            };
            let _ =
                writeln!(sql, "INSERT INTO agent_memory_embeddings VALUES ('c{case:03}', {});", literal(kept, &vector));
        }
    }
    let _ = writeln!(
        sql,
        "INSERT INTO agent_memory_policies (id, profile_id, version, weights, status, trained_at) VALUES ('pol', 'p1', 1, \
         '{{\"bias\": -0.5, \"similarity\": 2, \"outcome\": 1.5, \"recency\": 0.25, \"tag_overlap\": 0.75}}'{json}, 'active', '{NOW}');"
    );
    for n in 0..24_usize {
        let feedback = ["NULL", "0.5", "-0.25", "0"][n % 4];
        let (start, end) =
            (format!("2026-02-{:02}T08:00:00.000000Z", n + 1), format!("2026-02-{:02}T09:00:00.000000Z", n + 1));
        let _ = writeln!(
            sql,
            "INSERT INTO episodes (id, agent_id, user_id, title, domain, topic, outcome, started_at, ended_at, canvas_action_count, feedback_score, utility, tags) \
             VALUES ('e{n:02}', 'a', 'user-0', 'Report of the {} number {n}', 'work', '{}', '{}', '{start}', '{end}', {}, {feedback}, {}, '[]'{json});",
            ["sales", "stock"][n % 2],
            ["sales report", "stock report"][n % 2],
            ["success", "failure"][n % 2],
            n % 3,
            (n % 11) as f32 / 10.0,
        );
        let _ =
            writeln!(sql, "INSERT INTO episode_embeddings VALUES ('e{n:02}', {});", literal(kept, &vector(n / 2 * 5)));
        let _ = writeln!(
            sql,
            "INSERT INTO episode_memories (episode_id, memory_id, kind) VALUES ('e{n:02}', 'm0', 'drawer');"
        );
    }
    for (id, room) in [("m0", "stock report"), ("m1", "food")] {
        let _ = writeln!(
            sql,
            "INSERT INTO memories (id, kind, title, text, metadata, created_at) VALUES ('{id}', 'drawer', 't', 't', '{{\"wing\": \"WORK\", \"room\": \"{room}\"}}'{json}, '{NOW}');"
        );
    }
    sql
}

struct World {
    kept: Kept,
    store: Store,
    folder: tempfile::TempDir,
    database: Option<Database>,
}

fn built(kept: Kept) -> Option<World> {
    let folder = tempfile::tempdir().expect("a folder");
    let database = if kept == Kept::SqliteBlob { None } else { Some(on_server(kept)?) };
    let path = folder.path().join("memory.db");
    let store = block_on(async {
        let options = crate::support::options();
        if let Some(database) = &database {
            Store::open(&Target::Postgres(database.url().to_owned()), &options).await.unwrap()
        } else {
            let mut link = SqliteConnection::connect(&format!("sqlite:{}?mode=rwc", path.display())).await.unwrap();
            sqlx::raw_sql(SQLITE).execute(&mut link).await.unwrap();
            sqlx::raw_sql(AssertSqlSafe(rows(kept))).execute(&mut link).await.unwrap();
            Store::open(&Target::File(path), &options).await.unwrap()
        }
    });
    Some(World { kept, store, folder, database })
}

/// The rows on a server, made the first time and copied after that.
fn on_server(kept: Kept) -> Option<Database> {
    let what = format!("vectors of {kept:?}");
    if let Some(database) = Database::copy_of(&what) {
        return Some(database);
    }
    let database = Database::fresh()?;
    if kept == Kept::Pgvector && !database.has_vector() {
        let _ = writeln!(std::io::stderr(), "SKIPPED with pgvector: the server does not have it");
        return None;
    }
    block_on(async {
        let mut link = PgConnection::connect(database.url()).await.unwrap();
        sqlx::raw_sql(POSTGRES).execute(&mut link).await.unwrap();
        if kept == Kept::PostgresBytes && database.has_vector() {
            let sql = "ALTER TABLE agent_memory_embeddings ALTER embedding TYPE bytea USING NULL; \
                 ALTER TABLE episode_embeddings ALTER embedding TYPE bytea USING NULL";
            sqlx::raw_sql(sql).execute(&mut link).await.unwrap();
        }
        sqlx::raw_sql(AssertSqlSafe(rows(kept))).execute(&mut link).await.unwrap();
        link.close().await.unwrap();
    });
    Some(database.keep_as(&what))
}

fn worlds() -> Vec<World> {
    [Kept::SqliteBlob, Kept::Pgvector, Kept::PostgresBytes].into_iter().filter_map(built).collect()
}

fn asked(world: &World, inquiry: &Inquiry) -> Value {
    let answer = block_on(answered(&world.store, &inquiry.request(NOW)));
    for row in answer["rows"].as_array().unwrap() {
        let sum: f64 = row["terms"].as_array().unwrap().iter().map(|t| t["contribution"].as_f64().unwrap()).sum();
        assert!((sum - row["score"].as_f64().unwrap()).abs() < 1e-9, "{row}");
        for term in row["terms"].as_array().unwrap() {
            let product = term["value"].as_f64().unwrap() * term["weight"].as_f64().unwrap();
            assert!((product - term["contribution"].as_f64().unwrap()).abs() < 1e-12);
        }
    }
    answer
}

fn ids(answer: &Value) -> Vec<&str> {
    answer["rows"].as_array().unwrap().iter().map(|r| r["id"].as_str().unwrap()).collect()
}

fn left<'a>(answer: &'a Value, reason: &str) -> Vec<&'a str> {
    let left = answer["left_out"].as_array().unwrap().iter().filter(|l| l["reason"] == reason);
    left.map(|l| l["id"].as_str().unwrap()).collect()
}

#[test]
fn cases_are_the_nearest_of_an_exhaustive_search_near_duplicates_aside() {
    for world in worlds() {
        for profile in 0..PROFILES {
            let query = profile * CASES + 9;
            let mut all: Vec<(f64, usize)> = (0..CASES)
                .filter(|n| ![3, 5, 6, 7, 9].contains(n))
                .map(|n| (cosine_of(&vector(query), &vector(profile * CASES + n)).unwrap(), profile * CASES + n))
                .collect();
            all.sort_by(|a, b| b.0.total_cmp(&a.0));
            let (mut chosen, mut aside): (Vec<usize>, Vec<usize>) = (Vec::new(), Vec::new());
            for (_, case) in all {
                if chosen.len() == 4 {
                    break;
                }
                let twin = chosen.iter().any(|c| cosine_of(&vector(*c), &vector(case)).unwrap() > NEAR_DUPLICATE);
                if twin { aside.push(case) } else { chosen.push(case) }
            }
            let named = |cases: &[usize]| cases.iter().map(|c| format!("c{c:03}")).collect::<Vec<_>>();
            let like = Some(format!("c{query:03}"));
            let policy = Some(NO_POLICY.to_owned());
            let answer = asked(&world, &Inquiry { like, policy, ..Inquiry::new(Ranking::Cases) });
            assert_eq!(ids(&answer), named(&chosen), "{:?}", world.kept);
            assert_eq!(left(&answer, "near_duplicate"), named(&aside), "{:?}", world.kept);
            assert_eq!(answer["query"]["used"], "vector");
            let vectors = &answer["query"]["vectors"];
            let told = ["rows", "compared", "missing", "no_direction", "other_dimensions"]
                .map(|k| vectors[k].as_u64().unwrap());
            assert_eq!(told, [40, 37, 1, 1, 1], "{:?}", world.kept);
        }
    }
}

#[test]
fn both_engines_give_the_same_rows_scores_and_reasons() {
    let text = |ranking, text: &str| Inquiry { text: Some(text.to_owned()), ..Inquiry::new(ranking) };
    let like = |ranking, id: &str| Inquiry { like: Some(id.to_owned()), ..Inquiry::new(ranking) };
    let inquiries = [
        text(Ranking::Boosted, "stock report 7"),
        like(Ranking::Boosted, "e05"),
        Inquiry { k: Some(30), ..Inquiry::new(Ranking::Boosted) },
        Inquiry {
            domain: Some("work".into()),
            topic: Some("Stock Report".into()),
            k: Some(9),
            ..Inquiry::new(Ranking::Proven)
        },
        text(Ranking::Cases, "visa task"),
        Inquiry { user: Some("user-2".into()), agent: Some("a".into()), ..text(Ranking::Cases, "visa task") },
        Inquiry { policy: Some("pol".into()), ..like(Ranking::Cases, "c050") },
        Inquiry { policy: Some("pol".into()), ..text(Ranking::Cases, "a tax task with tag1") },
        text(Ranking::Similar, "sales"),
        Inquiry { all_outcomes: true, ..like(Ranking::Similar, "e05") },
    ];
    let worlds = worlds();
    for inquiry in &inquiries {
        let answers: Vec<Value> = worlds.iter().map(|world| asked(world, inquiry)).collect();
        assert!(!ids(&answers[0]).is_empty(), "{inquiry:?}");
        assert_eq!(answers[0], asked(&worlds[0], inquiry), "the same inputs give the same answer");
        for answer in &answers[1..] {
            assert_eq!(answer["rows"], answers[0]["rows"], "{inquiry:?}");
            assert_eq!(answer["left_out"], answers[0]["left_out"], "{inquiry:?}");
        }
    }
}

#[test]
fn what_each_ranking_promises() {
    let world = built(Kept::SqliteBlob).unwrap();
    let boosted =
        asked(&world, &Inquiry { text: Some("report".into()), k: Some(99), ..Inquiry::new(Ranking::Boosted) });
    assert_eq!(boosted["rows"].as_array().unwrap().len(), 24);
    for row in boosted["rows"].as_array().unwrap() {
        let count = row["row"]["canvas_action_count"].as_i64().unwrap();
        let feedback = row["row"]["feedback_score"].as_f64().unwrap_or(0.0);
        let expected = if count > 0 { 0.1 } else { 0.0 }
            + if feedback > 0.0 {
                0.2
            } else if feedback < 0.0 {
                -0.3
            } else {
                0.0
            };
        let base = row["terms"][0]["contribution"].as_f64().unwrap();
        assert_eq!(row["terms"][0]["name"], "base");
        assert!(
            (row["score"].as_f64().unwrap() - base - expected).abs() < 1e-9 && (0.0..=1.0).contains(&base),
            "{row}"
        );
    }
    let proven = asked(
        &world,
        &Inquiry { domain: Some("Work".into()), topic: Some("stock report".into()), ..Inquiry::new(Ranking::Proven) },
    );
    // A drawer of today: domain and topic met, both bonuses; utility the mean of the latest twenty that used it.
    let mean = (4..24).map(|n| f64::from(((n % 11) as f32) / 10.0)).sum::<f64>() / 20.0;
    assert_eq!(proven["rows"][0]["id"], "m0");
    assert!((proven["rows"][0]["score"].as_f64().unwrap() - (0.8 + 0.2 * mean)).abs() < 1e-6, "{proven}");
    let nothing = asked(&world, &Inquiry::new(Ranking::Proven));
    assert!(nothing["query"]["notes"][0].as_str().unwrap().contains("no domain and no topic"));
    let policy = asked(
        &world,
        &Inquiry { like: Some("c050".into()), policy: Some("pol".into()), k: Some(99), ..Inquiry::new(Ranking::Cases) },
    );
    let first = &policy["rows"][0];
    let names: Vec<&str> = first["terms"].as_array().unwrap().iter().map(|t| t["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["bias", "similarity", "reward", "outcome", "recency", "text_overlap", "tag_overlap"]);
    assert!(
        policy["rows"]
            .as_array()
            .unwrap()
            .iter()
            .all(|r| r["probability"].as_f64().is_some_and(|p| p > 0.0 && p < 1.0))
    );
    assert_eq!(left(&policy, "quarantined"), ["c047"]);
    for similar in
        asked(&world, &Inquiry { text: Some("report".into()), k: Some(99), ..Inquiry::new(Ranking::Similar) })["rows"]
            .as_array()
            .unwrap()
    {
        assert_eq!(similar["row"]["outcome"], "success");
    }
    let nonsense = asked(&world, &Inquiry { text: Some("qzxv wvut".into()), ..Inquiry::new(Ranking::Cases) });
    assert!(ids(&nonsense).is_empty());
    let itself = asked(
        &world,
        &Inquiry {
            text: Some("task visa number 13".into()),
            user: Some("user-0".into()),
            ..Inquiry::new(Ranking::Cases)
        },
    );
    assert_eq!((ids(&itself)[0], itself["query"]["used"].as_str()), ("c013", Some("keyword")));
}

#[test]
fn kept_vectors_answer_as_stored_ones_do() {
    let world = built(Kept::SqliteBlob).unwrap();
    let nearest = || block_on(world.store.embeddings().nearest(Entity::Case, &[], &vector(9), 5)).unwrap();
    let streamed = nearest();
    world.store.embeddings().keep_vectors(1 << 20);
    let (first, second) = (nearest(), nearest());
    assert_eq!((streamed.by, first.by, second.by), (ComparedBy::Streamed, ComparedBy::Streamed, ComparedBy::Memory));
    assert_eq!((&streamed.near, &streamed.near), (&first.near, &second.near));
    assert_eq!(streamed.tally, second.tally);
    world.store.embeddings().keep_vectors(100);
    assert_eq!(
        (nearest().by, nearest().by),
        (ComparedBy::Streamed, ComparedBy::Streamed),
        "more than the limit is not kept"
    );
}

#[test]
fn likeness_is_that_of_the_vectors_to_the_last_digits() {
    let near = |n: usize| -> Vec<f32> {
        std::iter::once(1e4).chain((1..600).map(|i| noise(i) + 1e-2 * noise(n * 600 + i))).collect()
    };
    let exact = |a: &[f32], b: &[f32]| {
        let sum = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(x, y)| f64::from(*x) * f64::from(*y)).sum::<f64>();
        sum(a, b) / (sum(a, a) * sum(b, b)).sqrt()
    };
    let cluster = |n: usize| -> Vec<f32> { (0..64).map(|i| noise(i) + 2e-3 * noise(n * 64 + i)).collect() };
    for vector in [&near as &dyn Fn(usize) -> Vec<f32>, &cluster] {
        for world in worlds() {
            let mut sql = String::new();
            for n in 0..60 {
                let literal = literal(world.kept, &vector(n));
                let _ = writeln!(
                    sql,
                    "INSERT INTO episodes (id, agent_id, title, outcome, started_at) VALUES ('near {n}', 'a', 't', 'success', '{NOW}'); \
                     INSERT INTO episode_embeddings VALUES ('near {n}', {literal});"
                );
            }
            written(&world, &sql);
            let like = Some("near 0".to_owned());
            let answer = asked(&world, &Inquiry { like, k: Some(20), ..Inquiry::new(Ranking::Similar) });
            let cosine = |id: &str| exact(&vector(0), &vector(id[5..].parse().expect("a number")));
            let found: Vec<f64> = ids(&answer).iter().map(|id| cosine(id)).collect();
            for (row, exact) in answer["rows"].as_array().unwrap().iter().zip(&found) {
                assert!((row["score"].as_f64().unwrap() - exact).abs() < 1e-12, "{:?}: {row}, {exact}", world.kept);
            }
            let mut all: Vec<f64> = (1..60).map(|n| exact(&vector(0), &vector(n))).collect();
            all.sort_by(|a, b| b.total_cmp(a));
            // Scores that are nearer than that are tied.
            let same = found.iter().zip(&all).all(|(found, best)| (found - best).abs() < 1e-9);
            assert!(found.len() == 20 && same, "{:?}: {found:?}, {all:?}", world.kept);
        }
    }
}

#[test]
fn scores_that_differ_by_rounding_alone_are_tied() {
    for world in worlds() {
        written(
            &world,
            "INSERT INTO episodes (id, agent_id, title, topic, utility, outcome, started_at) VALUES \
             ('tied old', 'tied', 't', 'other', 0.75, 'success', '2026-01-01T08:00:00.000000Z'), \
             ('tied new', 'tied', 't', 'zebra stripes', 0.0, 'success', '2026-01-02T08:00:00.000000Z')",
        );
        let (agent, topic) = (Some("tied".to_owned()), Some("zebra".to_owned()));
        let answer = asked(&world, &Inquiry { agent, topic, ..Inquiry::new(Ranking::Proven) });
        let first: Vec<&str> = ids(&answer).into_iter().filter(|id| id.starts_with("tied")).collect();
        assert_eq!(first, ["tied new", "tied old"], "{:?}: {answer}", world.kept);
    }
}

/// Episodes whose vectors are alike, equal, of length 0, of other dimensions, not a number, or not there.
fn many_episodes(kept: Kept) -> String {
    let truth = if kept == Kept::SqliteBlob { ["1", "0"] } else { ["true", "false"] };
    let mut sql = String::new();
    for n in 0..600_usize {
        let id = if n % 3 == 0 { format!("{:08x}-0000-4000-8000-{n:012x}", n * 7_919) } else { format!("many {n}") };
        let started = ["2026-02-03T08:00:00.000000Z", "2026-02-03", "2025-12-01T01:02:03.456789Z"][n % 11 % 3];
        let _ = writeln!(
            sql,
            "INSERT INTO episodes (id, agent_id, title, outcome, success, started_at, canvas_action_count, feedback_score, workflow_name) \
             VALUES ('{id}', '{}', 't', '{}', {}, '{started}', {}, {}, '{}');",
            ["a", "b"][n % 2],
            ["success", "failure"][n % 5 % 2],
            truth[n % 5 % 2],
            n % 3,
            ["NULL", "1", "-1"][n % 7 % 3],
            ["w", "v"][n % 4 % 2],
        );
        let vector: Vec<f32> = match n % 20 {
            3 => continue,
            5 => vec![0.0; 64],
            6 => vec![1.0, 0.5],
            7 if kept != Kept::Pgvector => vec![f32::NAN; 64],
            // Equal ones, and others that differ in the last digits.
            8..12 => (0..64).map(noise).collect(),
            12..16 => (0..64).map(|i| noise(i) + 1e-6 * noise(n * 64 + i)).collect(),
            16 => (0..64).map(|i| 1e17 * noise(n * 64 + i)).collect(),
            _ => (0..64).map(|i| noise(n * 64 + i)).collect(),
        };
        let _ = writeln!(sql, "INSERT INTO episode_embeddings VALUES ('{id}', {});", literal(kept, &vector));
    }
    sql
}

/// The database through a further connection.
fn written(world: &World, sql: &str) {
    block_on(async {
        if let Some(database) = &world.database {
            let mut link = PgConnection::connect(database.url()).await.unwrap();
            sqlx::raw_sql(AssertSqlSafe(sql)).execute(&mut link).await.unwrap();
        } else {
            let path = world.folder.path().join("memory.db");
            let mut link = SqliteConnection::connect(&format!("sqlite:{}", path.display())).await.unwrap();
            sqlx::raw_sql(AssertSqlSafe(sql)).execute(&mut link).await.unwrap();
        }
    });
}

/// The answer, and the party that compared vectors for it.
fn compared_by(store: &Store, request: &RecallRequest) -> (lab::RecallAnswer, Option<ComparedBy>) {
    let mut answer = block_on(lab::recall(store, request)).unwrap();
    let by = answer.compared.map(|(_, by)| by);
    answer.compared = answer.compared.map(|(tally, _)| (tally, ComparedBy::Streamed));
    // Not a number is not equal to itself.
    answer.request.vector = None;
    (answer, by)
}

/// Bytes that may be kept: all, rounded vectors with their rows, rounded vectors alone, nothing.
const LIMITS: &[usize] = &[4 << 20, 128 << 10, 72 << 10, 16 << 10];

#[test]
fn kept_rows_and_vectors_rank_as_stored_ones_do() {
    for (number, world) in worlds().into_iter().enumerate() {
        // What is kept of a server's rows is the same however its vectors are stored.
        let limits = if number < 2 { LIMITS } else { &LIMITS[..2] };
        written(&world, &many_episodes(world.kept));
        let like = |id: &str, ranking| Inquiry { like: Some(id.to_owned()), ..Inquiry::new(ranking) };
        let text = Inquiry { text: Some("t".to_owned()), ..Inquiry::new(Ranking::Boosted) };
        let raw = |vector: Vec<f32>| RecallRequest { vector: Some(vector), ..text.request(NOW) };
        let mut requests = vec![
            raw((0..64).map(noise).collect()),
            raw(vec![0.0; 64]),
            raw(vec![1.0, 0.25]),
            raw(vec![f32::NAN; 64]),
            raw((0..64).map(|i| 1e-20 * noise(i)).collect()),
        ];
        let mut stored = vec![
            Inquiry { k: Some(200), ..like("many 8", Ranking::Boosted) },
            Inquiry { k: Some(900), all_outcomes: true, ..like("many 8", Ranking::Similar) },
            Inquiry { agent: Some("b".to_owned()), ..like("many 13", Ranking::Boosted) },
            Inquiry { workflow: Some("w".to_owned()), ..like("many 8", Ranking::Similar) },
        ];
        for id in ["many 16", "e03"] {
            stored.extend([like(id, Ranking::Boosted), like(id, Ranking::Similar)]);
        }
        requests.extend(stored.iter().map(|inquiry| inquiry.request(NOW)));
        let plain: Vec<_> = requests.iter().map(|request| compared_by(&world.store, request).0).collect();
        for &limit in limits {
            let mut fast = 0;
            for (request, plain) in requests.iter().zip(&plain) {
                world.store.embeddings().keep_vectors(limit);
                for time in 0..2 {
                    let (answer, by) = compared_by(&world.store, request);
                    assert_eq!(&answer, plain, "{:?}, {limit} bytes, time {time}", world.kept);
                    fast += usize::from(by == Some(ComparedBy::Memory));
                }
            }
            // Five queries are of no ordinary length; of one agent and of one workflow there are fewer rows.
            let ordinary = requests.len() - 5;
            let expected = if limit >= 128 << 10 { ordinary..=ordinary } else { 0..=4 };
            assert!(expected.contains(&fast), "{:?}, {limit} bytes: {fast}", world.kept);
            // The rows that one ranking kept serve the other.
            let [boosted, similar] =
                [Ranking::Boosted, Ranking::Similar].map(|ranking| like("many 8", ranking).request(NOW));
            world.store.embeddings().keep_vectors(limit);
            compared_by(&world.store, &boosted);
            let kept = limit >= 128 << 10;
            assert_eq!(compared_by(&world.store, &similar).1 == Some(ComparedBy::Memory), kept);
        }
        world.store.embeddings().keep_vectors(0);
    }
}

/// Findings of a kind, or all.
fn found(world: &World, kind: Option<&'static str>) -> Vec<Finding> {
    let mut found = Vec::new();
    let mut told = |told: FindingNews| {
        if let FindingNews::Found(finding) = told {
            found.push(finding);
        }
        ControlFlow::Continue(())
    };
    let wanted = FindingRequest { kind, examples: 1_000, ..FindingRequest::default() };
    block_on(look(&world.store, &wanted, &mut told)).expect("a look");
    found
}

#[test]
fn vectors_that_cannot_be_compared_for_their_numbers_are_found() {
    const KIND: &str = "vector_no_direction";
    for world in worlds() {
        written(&world, &many_episodes(world.kept));
        let told = |all: &[Finding]| -> Vec<(Option<&'static str>, u64)> {
            all.iter().filter(|f| f.kind == KIND).map(|f| (f.entity, f.count)).collect()
        };
        // Of length 0, and where they can be stored, not a number.
        let episodes = if world.kept == Kept::Pgvector { 30 } else { 60 };
        let all = found(&world, Some(KIND));
        assert_eq!(told(&all), [(Some("episode"), episodes), (Some("case"), 3)], "{:?}", world.kept);
        let case = all.iter().find(|f| f.entity == Some("case")).expect("told");
        assert_eq!(case.examples, ["c005", "c045", "c085"]);
        // A recall by one of them compares words, and each score is a number.
        for id in ["many 5", "many 7"] {
            for ranking in [Ranking::Boosted, Ranking::Similar, Ranking::Cases] {
                asked(&world, &Inquiry { like: Some(id.to_owned()), k: Some(500), ..Inquiry::new(ranking) });
            }
        }
        assert_eq!(told(&found(&world, None)), told(&all), "{:?}", world.kept);
    }
}

#[test]
fn a_large_bank_and_a_quarantined_case_are_looked_through_too() {
    for world in worlds() {
        let (held, json) = if world.kept == Kept::SqliteBlob { ("1", "") } else { ("true", "::jsonb") };
        let numbers = if world.kept == Kept::SqliteBlob {
            "(WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 2100) SELECT n FROM c) AS c"
        } else {
            "generate_series(1, 2100) n"
        };
        let (none, some) = (literal(world.kept, &[0.0; 12]), literal(world.kept, &vector(1)));
        written(
            &world,
            &format!(
                "INSERT INTO agent_memory_profiles (id, user_id, agent_id) VALUES ('large', 'u', 'large'); \
                 INSERT INTO agent_memory_cases (id, profile_id, user_id, agent_id, prompt) \
                   SELECT 'large ' || n, 'large', 'u', 'large', '{{}}'{json} FROM {numbers}; \
                 INSERT INTO agent_memory_embeddings SELECT 'large ' || n, {none} FROM {numbers} WHERE n <= 3; \
                 INSERT INTO agent_memory_embeddings SELECT 'large ' || n, {some} FROM {numbers} WHERE n > 3; \
                 UPDATE agent_memory_cases SET quarantined = {held} WHERE id = 'c005'"
            ),
        );
        let of = |kind| found(&world, kind).into_iter().find(|f| f.kind == "vector_no_direction").expect("told");
        let (all, mut plain) = (of(Some("vector_no_direction")), of(None));
        plain.examples.sort_unstable();
        assert_eq!((plain.count, plain.examples), (6, all.examples), "{:?}", world.kept);
    }
}

#[test]
fn memories_that_are_over_are_left_out_and_told() {
    for world in block_on(natives()) {
        let row = |id: &str, at: &str| {
            format!("INSERT INTO memories (id, kind, text, expires_at) VALUES ('{id}', 'drawer', 't', '{at}')")
        };
        block_on(meddle(&world, &row("past", NOW)));
        block_on(meddle(&world, &row("future", "2026-03-01T12:00:00.000001Z")));
        let inquiry = Inquiry { k: Some(500), ..Inquiry::new(Ranking::Proven) };
        let answer = block_on(answered(&world.store, &inquiry.request(NOW)));
        assert!(!ids(&answer).contains(&"past"), "{answer}");
        assert_eq!(left(&answer, "expired"), ["past"]);
    }
}

#[test]
fn episodes_that_agents_of_a_layout_never_get_are_not_recalled() {
    for layout in [Layout::NousHead, Layout::NousPlanned] {
        let Some(world) = block_on(on_postgres(layout)) else { return };
        let all = block_on(ids_in(&world.store, Entity::Episode));
        let mut never = Vec::new();
        for id in &all {
            let row = block_on(world.store.row(Entity::Episode, id)).unwrap().expect("an episode");
            never.extend((row.text("status") == Some("abandoned")).then(|| id.clone()));
        }
        assert!(!never.is_empty() && never.len() < all.len());
        never.sort_unstable();
        for ranking in [Ranking::Boosted, Ranking::Proven, Ranking::Similar] {
            let inquiry =
                Inquiry { k: Some(500), all_outcomes: true, text: Some("a".to_owned()), ..Inquiry::new(ranking) };
            let answer = block_on(answered(&world.store, &inquiry.request(NOW)));
            assert!(ids(&answer).iter().all(|id| !never.iter().any(|never| never == id)), "{ranking:?}: {answer}");
            if ranking != Ranking::Similar {
                let mut left = left(&answer, "not_live");
                left.sort_unstable();
                assert_eq!(left, never, "{ranking:?}");
            }
        }
        let replayed = block_on(lab::replay::replay(&world.store, "a", None, None, 500)).unwrap();
        assert_eq!(replayed.candidates, all.len() - never.len());
    }
}

#[test]
fn cases_that_are_nearly_the_same_are_the_same_ones_in_whatever_order_they_are_read() {
    for world in worlds() {
        // Each is near the next one, and the first is not near the last.
        let cases = [
            ("za", "2026-02-01", [1.0, 0.0]),
            ("zb", "2026-02-02", [0.966, 0.259]),
            ("zc", "2026-02-03", [0.866, 0.5]),
        ];
        for order in [[0, 1, 2], [1, 0, 2], [0, 2, 1], [2, 1, 0]] {
            let mut sql = "DELETE FROM agent_memory_embeddings WHERE case_id LIKE 'z%'; \
                DELETE FROM agent_memory_cases WHERE id LIKE 'z%';"
                .to_owned();
            for at in order {
                let (id, day, vector) = &cases[at];
                let vector = literal(world.kept, vector);
                let _ = writeln!(
                    sql,
                    "INSERT INTO agent_memory_cases (id, profile_id, user_id, agent_id, created_at) VALUES \
                     ('{id}', 'pz', 'user-z', 'a', '{day}T00:00:00.000000Z'); \
                     INSERT INTO agent_memory_embeddings VALUES ('{id}', {vector});"
                );
            }
            let begin = "INSERT INTO agent_memory_profiles (id, user_id, agent_id) VALUES ('pz', 'user-z', 'a') \
                ON CONFLICT DO NOTHING;";
            written(&world, &format!("{begin} {sql}"));
            let all = found(&world, Some("near_duplicate_case"));
            let near: Vec<&str> =
                all.iter().flat_map(|f| &f.examples).map(String::as_str).filter(|id| id.starts_with('z')).collect();
            assert_eq!(near, ["zb", "zc"], "{:?} {order:?}", world.kept);
        }
    }
}

#[test]
fn kept_rows_that_others_changed_are_read_again() {
    for (number, world) in worlds().into_iter().enumerate() {
        written(&world, &many_episodes(world.kept));
        let inquiry = Inquiry { like: Some("many 17".to_owned()), ..Inquiry::new(Ranking::Boosted) };
        let request = inquiry.request(NOW);
        // The third store keeps its rows as the second does.
        let limits = if number < 2 { &LIMITS[..2] } else { &LIMITS[1..2] };
        for &limit in limits {
            let plain = || {
                let path = world.folder.path().join("memory.db");
                let url = world.database.as_ref().map(|database| Target::Postgres(database.url().to_owned()));
                let target = url.unwrap_or(Target::File(path));
                let fresh = block_on(Store::open(&target, &crate::support::options())).unwrap();
                compared_by(&fresh, &request).0
            };
            let first = |answer: &lab::RecallAnswer| answer.rows[0].ranked.row.id().to_owned();
            world.store.embeddings().keep_vectors(limit);
            compared_by(&world.store, &request);
            let (before, by) = compared_by(&world.store, &request);
            assert_eq!((by, &before), (Some(ComparedBy::Memory), &plain()), "{:?}, {limit} bytes", world.kept);

            // A row that was chosen has another score; then one is gone.
            for change in ["UPDATE episodes SET feedback_score = -1, canvas_action_count = 0", "DELETE FROM episodes"] {
                let chosen = first(&compared_by(&world.store, &request).0);
                written(&world, &format!("{change} WHERE id = '{chosen}'"));
                let (changed, by) = compared_by(&world.store, &request);
                assert_eq!((by, &changed), (Some(ComparedBy::Streamed), &plain()), "{change}");
                assert_eq!(compared_by(&world.store, &request), (changed, Some(ComparedBy::Memory)));
            }

            // What is new is found once what was kept is forgotten.
            let known = compared_by(&world.store, &request).0;
            let vector: Vec<f32> = (0..64).map(|i| noise(17 * 64 + i)).collect();
            written(
                &world,
                &format!(
                    "INSERT INTO episodes (id, agent_id, started_at, feedback_score, canvas_action_count) VALUES ('new {limit}', 'a', '{NOW}', 1, 1); \
                     INSERT INTO episode_embeddings VALUES ('new {limit}', {});",
                    literal(world.kept, &vector)
                ),
            );
            assert_eq!(compared_by(&world.store, &request).0, known);
            world.store.embeddings().forget_vectors();
            let fresh = compared_by(&world.store, &request).0;
            assert_eq!((first(&fresh), &fresh), (format!("new {limit}"), &plain()));
        }
    }
}

#[test]
fn a_vector_that_others_changed_is_seen_where_vectors_are_rounded() {
    for world in worlds() {
        written(&world, &many_episodes(world.kept));
        let inquiry = Inquiry { like: Some("many 17".to_owned()), ..Inquiry::new(Ranking::Similar) };
        let request = inquiry.request(NOW);
        world.store.embeddings().keep_vectors(LIMITS[1]);
        compared_by(&world.store, &request);
        let (before, by) = compared_by(&world.store, &request);
        assert_eq!(by, Some(ComparedBy::Memory));
        let vector: Vec<f32> = (0..64).map(|i| -noise(17 * 64 + i)).collect();
        let (id, vector) = (before.rows[0].ranked.row.id(), literal(world.kept, &vector));
        written(&world, &format!("UPDATE episode_embeddings SET embedding = {vector} WHERE episode_id = '{id}'"));
        let (after, by) = compared_by(&world.store, &request);
        world.store.embeddings().keep_vectors(0);
        assert_eq!((by, &after), (Some(ComparedBy::Streamed), &compared_by(&world.store, &request).0));
        assert_ne!(after.rows[0].ranked.row.id(), id);
    }
}

#[test]
fn more_vectors_than_may_be_kept_are_compared_by_the_database() {
    let Some(world) = built(Kept::Pgvector) else { return };
    let nearest = || block_on(world.store.embeddings().nearest(Entity::Case, &[], &vector(9), 5)).unwrap();
    let there = nearest();
    world.store.embeddings().keep_vectors(1 << 20);
    let (first, second) = (nearest(), nearest());
    assert_eq!((there.by, first.by, second.by), (ComparedBy::Pgvector, ComparedBy::Streamed, ComparedBy::Memory));
    world.store.embeddings().keep_vectors(100);
    let (first, second) = (nearest(), nearest());
    assert_eq!((first.by, second.by), (ComparedBy::Pgvector, ComparedBy::Pgvector));
    let ids = |compared: &ComparedVectors| compared.near.iter().map(|near| near.id.clone()).collect::<Vec<_>>();
    assert_eq!((ids(&first), first.tally), (ids(&there), there.tally), "nothing that was read before counts");
}

#[test]
fn a_question_is_kept_and_asked_again() {
    let world = built(Kept::SqliteBlob).unwrap();
    let folder = world.folder.path();
    let asked = ["recall", "visa task", "--ranking", "cases", "--user", "user-0", "-k", "2", "--at", NOW];
    let (first, words, code) = ran(folder, "", None, &[&asked[..], &["--save", "visa"]].concat());
    assert_eq!(code, 0, "{words}");
    let (again, words, code) = ran(folder, "", None, &["recall", "--saved", "visa", "--at", NOW]);
    assert_eq!((code, &first), (0, &again), "{words}");
    let (other, ..) = ran(folder, "", None, &["recall", "tax", "--saved", "visa", "-k", "1", "--at", NOW]);
    assert_eq!((&other["query"]["text"], &other["query"]["k"]), (&json!("tax"), &json!(1)));
    let (context, ..) = ran(folder, "", None, &["context", "--saved", "visa"]);
    assert!(context["text"].as_str().unwrap().contains("Context: "));
    let (kept, ..) = ran(folder, "", None, &["queries"]);
    assert_eq!(
        kept,
        json!({"queries": [{"name": "visa", "ranking": "cases", "text": "visa task", "user": "user-0", "k": 2}]})
    );
    let (masked, ..) = ran(folder, "", None, &["queries", "--mask"]);
    assert!(!masked.to_string().contains("visa task") && !masked.to_string().contains("user-0"), "{masked}");
    let file = folder.join("queries.toml");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    }
    for (arguments, code, word) in [
        (&["recall", "--saved", "tax"][..], 3, "known are visa"),
        (&["queries", "forget", "tax"], 3, "known are visa"),
        (&["recall", "x"], 2, "--ranking"),
        (&["recall", "x", "--ranking", "cases", "--save", " "], 2, "name the question"),
        (&["queries", "forget", "visa"], 0, ""),
        (&["recall", "--saved", "visa"], 3, "there are none yet"),
    ] {
        let (_, words, found) = ran(folder, "", None, arguments);
        assert!(found == code && words.contains(word), "{arguments:?}: {found} {words}");
    }
    std::fs::write(&file, "[[kept]]\nname = 3\n").unwrap();
    let (_, words, code) = ran(folder, "", None, &["queries"]);
    assert!(code == 1 && words.contains("queries.toml:"), "{words}");
}

/// Another process changes rows.
fn change(world: &World, sql: &str) {
    block_on(async {
        if let Some(database) = &world.database {
            let mut link = PgConnection::connect(database.url()).await.unwrap();
            sqlx::raw_sql(AssertSqlSafe(sql.to_owned())).execute(&mut link).await.unwrap();
        } else {
            let path = world.folder.path().join("memory.db");
            let mut link = SqliteConnection::connect(&format!("sqlite:{}", path.display())).await.unwrap();
            sqlx::raw_sql(AssertSqlSafe(sql.to_owned())).execute(&mut link).await.unwrap();
        }
    });
}

#[test]
fn parents_ended_within_two_days_and_are_alike() {
    for world in worlds() {
        let suggested = |id: &str| {
            let episode = block_on(world.store.row(Entity::Episode, id)).unwrap().unwrap();
            let starts = block_on(EarliestStarts::read(&world.store)).unwrap();
            let found = block_on(parents::suggest(&world.store, &episode, None, None)).unwrap();
            let quickly = block_on(parents::suggest(&world.store, &episode, None, Some(&starts))).unwrap();
            assert_eq!(found, quickly, "{id} of {:?}", world.kept);
            found.iter().map(|s| (s.id.clone(), s.hours_before)).collect::<Vec<_>>()
        };
        assert_eq!(suggested("e05"), [("e04".to_owned(), 23.0)], "{:?}", world.kept);
        assert_eq!(suggested("e04"), [], "{:?}", world.kept);
        if world.kept == Kept::SqliteBlob {
            // One of which nobody knows when it began comes before all.
            change(&world, "UPDATE episodes SET started_at = 'some day' WHERE id = 'e04'");
            assert_eq!(suggested("e05"), [("e04".to_owned(), 23.0)]);
        }
        // One that took weeks is found too.
        change(&world, "UPDATE episodes SET started_at = '2026-01-10T08:00:00.000000Z' WHERE id = 'e04'");
        assert_eq!(suggested("e05"), [("e04".to_owned(), 23.0)], "{:?}", world.kept);
    }
}

#[test]
fn the_parents_most_alike_are_told_of_very_many() {
    for world in worlds() {
        let mut sql = "BEGIN;".to_owned();
        for n in 0..2_300 {
            let (id, end) =
                (format!("many-{n:04}"), format!("2026-02-05T{:02}:{:02}:00.000000Z", 9 + n / 1_000, n % 60));
            let _ = writeln!(
                sql,
                "INSERT INTO episodes (id, agent_id, started_at, ended_at) VALUES ('{id}', 'a', '2026-02-05T08:00:00.000000Z', '{end}'); \
                 INSERT INTO episode_embeddings SELECT '{id}', embedding FROM episode_embeddings WHERE episode_id = 'e05';"
            );
        }
        change(&world, &(sql + "COMMIT"));
        let episode = block_on(world.store.row(Entity::Episode, "e05")).unwrap().unwrap();
        let starts = block_on(EarliestStarts::read(&world.store)).unwrap();
        let found = block_on(parents::suggest(&world.store, &episode, None, None)).unwrap();
        // All are as much alike: those that ended last come first, and of these the smallest id.
        let mut wanted: Vec<usize> = (0..2_300).collect();
        wanted.sort_by_key(|n| (std::cmp::Reverse((n / 1_000, n % 60)), *n));
        let wanted: Vec<String> = wanted.iter().take(parents::SUGGESTED).map(|n| format!("many-{n:04}")).collect();
        assert_eq!(found.iter().map(|s| s.id.clone()).collect::<Vec<_>>(), wanted, "{:?}", world.kept);
        let of_all = block_on(parents::suggest_all(&world.store, &[(&episode, &vector(10))], &starts)).unwrap();
        assert_eq!(of_all, [found], "{:?}", world.kept);
    }
}

#[test]
fn a_topic_is_replayed_in_order_of_time() {
    let world = built(Kept::SqliteBlob).unwrap();
    let found = block_on(lab::replay::replay(&world.store, "stock report", None, None, 3)).unwrap();
    let starts: Vec<&str> = found.rows.iter().map(|r| r.row.text("started_at").unwrap()).collect();
    assert_eq!((starts.len(), found.used), (3, "keyword"));
    assert!(starts.is_sorted() && found.rows.iter().all(|r| r.score.total > 0.5 && r.row.id() > "e18"), "{starts:?}");
}

#[test]
fn a_plan_says_which_recalls_it_would_change() {
    let world = built(Kept::SqliteBlob).unwrap();
    let folder = world.folder.path();
    let (_, words, code) = ran(folder, "", None, &["migrate", "--apply"]);
    assert_eq!(code, 0, "{words}");
    let (plan, words, _) = ran(folder, "", None, &["feedback", "add", "e21", "--kind", "thumbs_down", "--what-if"]);
    let recall = &plan["recall"];
    assert!(recall["complete"] == true && recall["situations"].as_u64() >= Some(8), "{plan} {words}");
    let moves = recall["moves"].as_array().unwrap();
    // It was shown among the first before, and its score falls by what feedback weighs.
    let moved = moves.iter().find(|m| m["id"] == "e21" && m["ranking"] == "boosted").expect("a move");
    assert!(moved["after"].is_null() || moved["after"].as_u64() > moved["before"].as_u64(), "{moved}");
    let (plan, ..) = ran(folder, "", None, &["feedback", "add", "e21", "--kind", "thumbs_down"]);
    assert!(plan["recall"].is_null(), "only when it is asked for");
}

/// The database with our tables, so that plans can be made and applied.
async fn writable(world: &World) -> Store {
    let target = match &world.database {
        Some(database) => Target::Postgres(database.url().to_owned()),
        None => Target::File(world.folder.path().join("memory.db")),
    };
    let open = || async { Store::open(&target, &crate::support::options()).await.unwrap() };
    migrate::apply(&open().await, &author(), None).await.unwrap();
    open().await
}

/// Applies a plan and holds what was foretold against what is then recalled.
async fn comes_true(store: &Store, plan: &Plan, policy: Option<&str>) -> WhatIf {
    let found = what_if::of_plan(store, plan, &[], what_if::PATIENCE, &|_| {}).await.unwrap();
    assert!(found.changed > 0 && !found.stopped, "{found:?}");
    let of_cases: Vec<&PlaceMove> = found.moves.iter().filter(|m| m.ranking == Ranking::Cases).collect();
    let before = places(store, plan, policy, &of_cases).await;
    assert_eq!(before, of_cases.iter().map(|m| m.before).collect::<Vec<_>>());
    change::apply(store, plan, &author()).await.unwrap();
    let after = places(store, plan, policy, &of_cases).await;
    assert_eq!(after, of_cases.iter().map(|m| m.after).collect::<Vec<_>>());
    found
}

/// Finds the rank of each row in what is recalled now, counted from 1; `None` when it is not recalled.
async fn places(store: &Store, plan: &Plan, policy: Option<&str>, moves: &[&PlaceMove]) -> Vec<Option<usize>> {
    let mut places = Vec::new();
    for moved in moves {
        let like = Some(moved.situation.clone());
        let inquiry = Inquiry { like, policy: policy.map(str::to_owned), ..Inquiry::new(moved.ranking) };
        let answer = answered(store, &inquiry.request(&plan.created_at)).await;
        places.push(ids(&answer).iter().position(|id| *id == moved.id).map(|at| at + 1));
    }
    places
}

#[test]
fn what_a_prune_and_a_quarantine_would_change_in_recall_comes_true() {
    for world in worlds() {
        block_on(async {
            let store = writable(&world).await;
            let ask = Pruning {
                user: Some("user-0".to_owned()),
                window: mnemoscope::memory::prune::PruneWindow::Newest(20),
                ..Pruning::default()
            };
            let plan = prune::plan(&store, &ask).await.unwrap();
            let found = comes_true(&store, &plan, None).await;
            assert!(found.moves.iter().any(|m| m.after.is_none()) && found.moves.iter().any(|m| m.before.is_none()));
            // The first bank has its newest cases left; what is held back of the second is ranked by its policy.
            let held: Vec<String> = (0..6).map(|n| format!("c{:03}", CASES + 22 + n)).collect();
            let plan = quarantine::hold(&store, &held, true).await.unwrap();
            let found = comes_true(&store, &plan, Some("pol")).await;
            assert!(found.moves.iter().any(|m| held.contains(&m.id) && m.after.is_none()), "{:?}", world.kept);
        });
    }
}

#[test]
fn a_reward_moves_nothing_by_likeness_and_something_by_a_policy_that_weighs_it() {
    let world = built(Kept::SqliteBlob).unwrap();
    let store = block_on(writable(&world));
    let plan = block_on(reward::set(&store, "c010", 1.0, Some("failure"))).unwrap();
    let found = block_on(what_if::of_plan(&store, &plan, &[], what_if::PATIENCE, &|_| {})).unwrap();
    assert!(found.situations > 0 && found.moves.is_empty() && found.rescored.is_empty(), "{found:?}");
    let plan = block_on(reward::set(&store, "c060", 0.0, Some("failure"))).unwrap();
    let found = block_on(what_if::of_plan(&store, &plan, &[], what_if::PATIENCE, &|_| {})).unwrap();
    // The policy of that bank weighs outcomes: the case falls.
    assert!(!found.moves.is_empty() || !found.rescored.is_empty(), "{found:?}");
}

#[test]
fn what_an_erasure_would_change_is_told_and_so_is_that_nothing_is_left() {
    for world in worlds() {
        let store = block_on(writable(&world));
        let plan = block_on(purge::plan(&store, "user-0", &purge::PurgeOptions::default(), &|_, _| {})).unwrap();
        let found = block_on(what_if::of_purge(&store, &plan, &[], what_if::PATIENCE, &|_| {})).unwrap();
        // Every episode and the whole first bank are that person's: what is left are the rooms, where drawers move up.
        assert!(found.moves.iter().all(|m| m.ranking == Ranking::Proven), "{found:?}");
        assert!(found.moves.iter().any(|m| m.id == "m0" && m.after == Some(1)), "{found:?}");
        assert!(found.notes.iter().any(|note| note.contains("every row of an agent is removed")), "{found:?}");
        assert!(found.notes.iter().any(|note| note.contains("every row of a bank is removed")), "{found:?}");
    }
}

#[test]
fn a_look_without_time_says_so() {
    let world = built(Kept::SqliteBlob).unwrap();
    let store = block_on(writable(&world));
    let plan = block_on(quarantine::hold(&store, &["c001".to_owned()], true)).unwrap();
    let found = block_on(what_if::of_plan(&store, &plan, &[], Duration::ZERO, &|_| {})).unwrap();
    assert!(found.stopped && !found.complete, "{found:?}");
}

#[test]
fn commands_that_delete_say_which_recalls_would_change() {
    let world = built(Kept::SqliteBlob).unwrap();
    let folder = world.folder.path();
    ran(folder, "", None, &["migrate", "--apply"]);
    let (plan, words, code) = ran(folder, "", None, &["prune", "--window", "10", "--what-if"]);
    assert!(code == 0 && plan["recall"]["changed"].as_u64() > Some(0), "{plan} {words}");
    let (plan, words, code) = ran(folder, "", None, &["purge", "user-1", "--what-if"]);
    assert!(code == 0 && plan["recall"]["complete"] == true, "{plan} {words}");
    let (plan, ..) = ran(folder, "", None, &["purge", "user-1"]);
    assert!(plan["recall"].is_null());
}

/// A server that answers each connection with the next answer, and tells the requests.
fn server(answers: Vec<String>) -> (String, std::thread::JoinHandle<Vec<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/v1/embeddings", listener.local_addr().unwrap());
    let serve = move || {
        let mut heard = Vec::new();
        for answer in answers {
            let (mut link, _) = listener.accept().unwrap();
            let mut request = Vec::new();
            let mut buffer = [0; 4096];
            while !String::from_utf8_lossy(&request).contains("\"input\"") {
                let read = link.read(&mut buffer).unwrap();
                request.extend_from_slice(&buffer[..read]);
            }
            heard.push(String::from_utf8_lossy(&request).into_owned());
            link.write_all(answer.as_bytes()).unwrap();
        }
        heard
    };
    (url, std::thread::spawn(serve))
}

fn http(status: &str, body: &Value) -> String {
    let body = body.to_string();
    format!(
        "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    )
}

fn ran(folder: &Path, embedding: &str, key: Option<&str>, arguments: &[&str]) -> (Value, String, i32) {
    let config = folder.join("config.toml");
    let database = folder.join("memory.db");
    std::fs::write(&config, format!("[profile.lab]\ndatabase = {:?}\n{embedding}", database.display().to_string()))
        .unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_mnemoscope"));
    command
        .args(["--profile", "lab"])
        .args(arguments)
        .env("MNEMOSCOPE_CONFIG", &config)
        .env("MNEMOSCOPE_STATE", folder);
    command.env_remove("MNEMOSCOPE_DATABASE").env_remove("DATABASE_URL").env_remove("LAB_KEY");
    if let Some(key) = key {
        command.env("LAB_KEY", key);
    }
    let output = command.output().unwrap();
    let words = String::from_utf8_lossy(&output.stderr).into_owned();
    (serde_json::from_slice(&output.stdout).unwrap_or_default(), words, output.status.code().unwrap())
}

const ASK: &[&str] = &["recall", "any words", "--ranking", "cases", "--user", "user-0", "--at", NOW];

#[test]
fn a_text_is_compared_by_the_vector_of_the_named_endpoint() {
    let world = built(Kept::SqliteBlob).unwrap();
    let folder = world.folder.path();
    let answer = http("200 OK", &json!({"data": [{"embedding": vector(9)}]}));
    let busy = http("503 Service Unavailable", &json!({"error": {"message": "loading"}}));
    let (url, heard) = server(vec![busy, answer]);
    let settings = format!("embedding = {{ url = \"{url}\", model = \"m-1\", key_env = \"LAB_KEY\" }}\n");
    let (shown, words, code) = ran(folder, &settings, Some("secret"), ASK);
    assert_eq!((code, shown["query"]["used"].as_str()), (0, Some("vector")), "{words}");
    assert_eq!((ids(&shown)[0], shown["rows"][0]["terms"][0]["name"].as_str()), ("c009", Some("similarity")));
    let heard = heard.join().unwrap();
    assert_eq!(heard.len(), 2, "a refusal that may pass is tried again");
    let told = heard[1].to_ascii_lowercase();
    assert!(
        told.contains("authorization: bearer secret")
            && told.contains("\"model\":\"m-1\"")
            && told.contains("any words")
    );
    let (_, words, code) = ran(folder, &settings, None, ASK);
    assert!(code == 2 && words.contains("$LAB_KEY"), "{words}");
}

#[test]
fn a_vector_that_fits_no_stored_one_is_told_and_words_are_compared() {
    let world = built(Kept::SqliteBlob).unwrap();
    let folder = world.folder.path();
    let (url, heard) = server(vec![http("200 OK", &json!({"data": [{"embedding": [0.5, 0.5, 0.5]}]}))]);
    let settings = format!("embedding = {{ url = \"{url}\", model = \"m-2\" }}\n");
    let (shown, words, code) = ran(folder, &settings, None, ASK);
    heard.join().unwrap();
    assert_eq!((code, shown["query"]["used"].as_str()), (0, Some("keyword")), "{words}");
    let notes = shown["query"]["notes"].to_string();
    assert!(notes.contains("3 dimensions matches no stored one"), "{notes}");
}

#[test]
fn a_row_whose_own_vector_has_no_direction_is_told_of() {
    let world = built(Kept::SqliteBlob).unwrap();
    written(
        &world,
        &format!(
            "INSERT INTO episodes (id, agent_id, title, outcome, started_at) VALUES ('nil', 'a', 'Report of sales', 'success', '{NOW}'); \
             INSERT INTO episode_embeddings VALUES ('nil', {})",
            literal(Kept::SqliteBlob, &[0.0; 12])
        ),
    );
    let nil = Inquiry { like: Some("nil".to_owned()), ..Inquiry::new(Ranking::Similar) };
    let notes = asked(&world, &nil)["query"]["notes"].to_string();
    assert!(notes.contains("vector of 12 dimensions has no direction"), "{notes}");
}

#[test]
fn any_number_of_rows_may_be_asked_for() {
    let world = built(Kept::SqliteBlob).unwrap();
    for ranking in ["cases", "boosted", "similar", "proven"] {
        let most = u64::MAX.to_string();
        let (shown, words, code) =
            ran(world.folder.path(), "", None, &["recall", "--like", "c001", "--ranking", ranking, "-k", &most]);
        assert!(matches!(code, 0 | 5) && !words.contains("panicked"), "{ranking}: {words}");
        let (_, words, code) =
            ran(world.folder.path(), "", None, &["recall", "words", "--ranking", ranking, "-k", &most]);
        assert!(matches!(code, 0 | 5) && !words.contains("panicked"), "{ranking}: {words}");
        let notes = shown["query"]["notes"].to_string();
        assert!(ranking != "cases" || !ids(&shown).is_empty() && notes.contains("only the first 5000 rows"), "{notes}");
    }
}

#[test]
fn a_question_of_which_no_row_contains_a_word_is_told() {
    let world = built(Kept::SqliteBlob).unwrap();
    let (shown, words, _) = ran(world.folder.path(), "", None, &["recall", "zyxwvuts", "--ranking", "boosted"]);
    let notes = shown["query"]["notes"].to_string();
    assert!(notes.contains("no word of the question occurs in these rows"), "{notes} {words}");
    let (shown, words, _) = ran(world.folder.path(), "", None, &["recall", "--like", "e05", "--ranking", "boosted"]);
    let notes = shown["query"]["notes"].to_string();
    assert!(!notes.contains("no word of the question"), "{notes} {words}");
}

#[test]
fn a_dead_endpoint_costs_its_timeout_and_is_told() {
    let world = built(Kept::SqliteBlob).unwrap();
    // It takes connections and never answers.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/v1/embeddings", silent.local_addr().unwrap());
    let settings = format!("embedding = {{ url = \"{url}\", model = \"m\", timeout_seconds = 1 }}\n");
    let began = Instant::now();
    let (shown, words, code) = ran(world.folder.path(), &settings, None, ASK);
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    assert_eq!((code, shown["query"]["used"].as_str()), (0, Some("keyword")));
    let note = shown["query"]["notes"][0].as_str().unwrap();
    assert!(note.contains("compared by keywords") && words.contains("compared by keywords"), "{note} {words}");
    let (url, _) = server(vec![http("401 Unauthorized", &json!({"error": {"message": "bad key"}}))]);
    let settings = format!("embedding = {{ url = \"{url}\", model = \"m\" }}\n");
    let (shown, words, _) = ran(world.folder.path(), &settings, None, ASK);
    assert!(shown["query"]["used"] == "keyword" && words.contains("401 bad key"), "{words}");
}

#[test]
fn commands_say_what_they_cannot_do() {
    let world = built(Kept::SqliteBlob).unwrap();
    for (arguments, code, word) in [
        (&["recall", "--ranking", "cases"][..], 2, "give a text, or --like"),
        (&["recall", "x", "--ranking", "cases", "-k", "0"], 2, "-k 0"),
        (&["recall", "x", "--ranking", "cases", "--at", "soon"], 2, "--at"),
        (&["recall", "--like", "nobody", "--ranking", "boosted"], 3, "nobody"),
        (&["recall", "x", "--ranking", "cases", "--policy", "no-such"], 3, "no-such"),
    ] {
        let (_, words, found) = ran(world.folder.path(), "", None, arguments);
        assert!(found == code && words.contains(word), "{arguments:?}: {found} {words}");
    }
    let (shown, ..) = ran(
        world.folder.path(),
        "",
        None,
        &["context", "tax", "--ranking", "cases", "--tokens", "200", "--user", "user-0"],
    );
    let text = shown["text"].as_str().unwrap();
    assert!(text.contains("Context: task tax") && text.contains("Outcome: ") && text.chars().count() <= 800, "{text}");
    let (masked, ..) =
        ran(world.folder.path(), "", None, &["--mask", "recall", "tax", "--ranking", "cases", "--user", "user-0"]);
    assert!(!masked.to_string().contains("task tax"), "{masked}");
    assert!(time::canonical(NOW).is_some());
}

/// Runs a recall and returns its answer as JSON.
async fn answered(store: &Store, request: &RecallRequest) -> Value {
    let answer = lab::recall(store, request).await.unwrap();
    let mut shown = answer.rest_json();
    let row = |item: &RecalledItem| {
        let RankedRow { row, score, found_by, probability, .. } = &item.ranked;
        json!({
            "id": row.id(), "entity": row.entity.name(), "score": score.total, "terms": score.terms,
            "found_by": found_by, "probability": probability, "row": row,
        })
    };
    shown["rows"] = answer.rows.iter().map(row).collect();
    shown
}

#[test]
fn the_policy_in_use_ranks_unless_it_is_turned_off_and_the_answer_names_it() {
    for world in worlds() {
        let (path, database) = (world.folder.path().join("memory.db"), &world.database);
        let target = database.as_ref().map_or(Target::File(path), |d| Target::Postgres(d.url().to_owned()));
        block_on(async {
            let store = Store::open(&target, &crate::support::options()).await.unwrap();
            let asked = async |like: &str, policy: Option<&str>| {
                let (like, policy) = (Some(like.to_owned()), policy.map(str::to_owned));
                let inquiry = Inquiry { like, policy, ..Inquiry::new(Ranking::Cases) };
                answered(&store, &inquiry.request(NOW)).await
            };
            let (in_use, named) = (asked("c050", None).await, asked("c050", Some("pol")).await);
            let off = asked("c050", Some(NO_POLICY)).await;
            assert_eq!(in_use["query"]["policy"], "pol", "{:?}", world.kept);
            let because = |answer: &Value| answer["query"]["policy_because"].clone();
            assert_eq!((because(&in_use), because(&named)), (json!("in use"), json!("named")));
            assert_eq!(in_use["rows"], named["rows"]);
            assert!(off["query"]["policy"].is_null() && off["rows"][0]["terms"].as_array().unwrap().len() == 1);
            assert_ne!(ids(&off), ids(&in_use));
            // A bank without a policy is ranked by likeness; so are several banks together.
            assert!(asked("c010", None).await["query"]["policy"].is_null());
            for row in in_use["rows"].as_array().unwrap() {
                let terms = row["terms"].as_array().unwrap();
                let sum: f64 = terms.iter().map(|t| t["contribution"].as_f64().unwrap()).sum();
                assert!((row["score"].as_f64().unwrap() - sum).abs() < 1e-9);
                assert!(row["found_by"].as_array().is_some_and(|by| !by.is_empty()), "{row}");
            }
            let of_all = Inquiry { text: Some("tax".into()), ..Inquiry::new(Ranking::Cases) };
            assert!(answered(&store, &of_all.request(NOW)).await["query"]["policy"].is_null());
            let by_user = Inquiry { user: Some("user-1".into()), ..of_all };
            assert_eq!(answered(&store, &by_user.request(NOW)).await["query"]["policy"], "pol");
        });
    }
}

#[test]
fn a_bank_says_how_many_rows_its_recalls_get() {
    let world = built(Kept::SqliteBlob).unwrap();
    let store = block_on(async {
        let path = world.folder.path().join("memory.db");
        let mut link = SqliteConnection::connect(&format!("sqlite:{}", path.display())).await.unwrap();
        let sql = "ALTER TABLE agent_memory_profiles ADD COLUMN top_k INTEGER; \
            UPDATE agent_memory_profiles SET top_k = 2 WHERE id = 'p0'; UPDATE agent_memory_profiles SET top_k = 0 WHERE id = 'p2'";
        sqlx::raw_sql(sql).execute(&mut link).await.unwrap();
        Store::open(&Target::File(path), &crate::support::options()).await.unwrap()
    });
    let rows = |like: &str, k: Option<usize>| {
        let inquiry = Inquiry { like: Some(like.to_owned()), k, ..Inquiry::new(Ranking::Cases) };
        let answer = block_on(answered(&store, &inquiry.request(NOW)));
        (ids(&answer).len(), answer["query"]["k"].as_u64().unwrap())
    };
    assert_eq!(rows("c010", None), (2, 2));
    assert_eq!(rows("c010", Some(3)), (3, 3), "what is asked for goes before");
    assert_eq!(
        (rows("c050", None), rows("c090", None)),
        ((4, 4), (4, 4)),
        "nothing said, or nothing that can be meant"
    );
}

#[test]
fn what_looks_like_poison_is_weighed_down_when_asked_for() {
    let world = built(Kept::SqliteBlob).unwrap();
    let asked = |like: &str, downweight| {
        let inquiry = Inquiry { like: Some(like.to_owned()), downweight, k: Some(99), ..Inquiry::new(Ranking::Cases) };
        block_on(answered(&world.store, &inquiry.request(NOW)))
    };
    for (like, policy) in [("c010", Value::Null), ("c050", json!("pol"))] {
        let before = asked(like, false);
        let first = ids(&before)[0].to_owned();
        block_on(async {
            let path = world.folder.path().join("memory.db");
            let mut link = SqliteConnection::connect(&format!("sqlite:{}", path.display())).await.unwrap();
            let mut sql = format!("UPDATE agent_memory_cases SET reward = 0.1 WHERE id = '{first}';");
            for n in 0..10 {
                let _ = write!(
                    sql,
                    "INSERT INTO memory_access (id, ids, kind, created_at) VALUES ('x{first}{n}', '[\"{first}\"]', 'recall', '{NOW}');"
                );
            }
            sqlx::raw_sql(AssertSqlSafe(sql)).execute(&mut link).await.unwrap();
        });
        let (plain, weighed) = (asked(like, false), asked(like, true));
        assert_eq!(ids(&plain)[0], first, "only what is asked for is weighed down");
        let row = weighed["rows"].as_array().unwrap().iter().find(|row| row["id"] == first.as_str()).unwrap();
        let term = row["terms"].as_array().unwrap().last().unwrap();
        assert_eq!((&term["name"], &term["contribution"]), (&json!("poison"), &json!(-1.0)));
        assert!(ids(&weighed)[0] != first && weighed["query"]["policy"] == policy, "{weighed}");
        for row in weighed["rows"].as_array().unwrap() {
            let sum: f64 = row["terms"].as_array().unwrap().iter().map(|t| t["contribution"].as_f64().unwrap()).sum();
            assert!((row["score"].as_f64().unwrap() - sum).abs() < 1e-9);
        }
    }
}

#[test]
fn readers_of_ennube_take_the_highest_active_version() {
    let Some(world) = block_on(crate::support::world::on_postgres(crate::support::fixtures::Layout::EnnubeJson)) else {
        return;
    };
    block_on(async {
        let page = world.store.page(&mnemoscope::memory::query::Query::new(Entity::Policy)).await.unwrap();
        let version = |n: i64| page.rows.iter().find(|row| row.get("version") == &json!(n)).unwrap();
        let bank = world.store.row(Entity::Profile, version(2).text("profile_id").unwrap()).await.unwrap().unwrap();
        let owner = |column| bank.text(column).map(str::to_owned);
        let mine = Inquiry { user: owner("user_id"), agent: owner("agent_id"), ..Inquiry::new(Ranking::Cases) };
        let inquiry = Inquiry { text: Some("clean the phone numbers".into()), ..mine };
        let answer = answered(&world.store, &inquiry.request(NOW)).await;
        assert_eq!(answer["query"]["policy"], version(2).id(), "{answer}");
        assert_eq!(answer["query"]["policy_version"], 2);
        let none = Inquiry { policy: Some(NO_POLICY.into()), ..inquiry };
        let answer = answered(&world.store, &none.request(NOW)).await;
        assert!(answer["query"]["policy"].is_null() && !ids(&answer).is_empty(), "{answer}");
    });
}
