//! Predictions about recall come true: random changes are planned, looked at, applied, and recalled again.

use crate::support::block_on;
use crate::support::fixtures::{Layout, build_sqlite};
use crate::support::postgres::Database;
use crate::support::world::{
    World, author, by, done, meddle, native, native_on_postgres, on_postgres, on_sqlite, small, world,
};
use mnemoscope::change::operation::{FeedbackFields, ImportFormat, Pruning};
use mnemoscope::change::what_if::{self, KeptQuestion};
use mnemoscope::change::{
    self, ChangeError, Plan, chain, feedback, policy, prune, quarantine, record, reward, signal, undo,
};
use mnemoscope::change::{import, migrate};
use mnemoscope::lab::{self, RecallAnswer, RecallRequest};
use mnemoscope::memory::prune::PruneWindow;
use mnemoscope::memory::query::Query;
use mnemoscope::memory::utility::Signal;
use mnemoscope::memory::{Entity, Row};
use mnemoscope::recall::inquiry::Inquiry;
use mnemoscope::recall::rank::Ranking;
use mnemoscope::recall::what_if::WhatIf;
use mnemoscope::store::{OpenOptions, Store, Target};
use serde_json::json;
use std::collections::BTreeMap;
use std::time::Duration;

/// Place and score of a row that is recalled.
type Ranked = Option<(usize, f64)>;

/// Changes in each database, unless the variable says another number.
const CHANGES: usize = 3;
/// The variable that says how many.
const VARIABLE: &str = "MNEMOSCOPE_WHAT_IF_CHANGES";
/// Time for a look in which everything is looked at.
const PATIENCE: Duration = Duration::from_mins(10);
/// Scores move by this while time passes between a look and what then happens.
const SAME: f64 = 1e-5;

/// Numbers that look like chance and are the same in every run.
struct Chance(u64);

impl Chance {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % n.max(1)
    }

    fn of<'a, T>(&mut self, all: &'a [T]) -> Option<&'a T> {
        all.get(self.below(all.len()))
    }
}

/// Feedback of the episode's own user.
fn said(kind: &str, rating: Option<i64>) -> FeedbackFields {
    FeedbackFields { kind: Some(kind.to_owned()), rating, ..FeedbackFields::default() }
}

fn now() -> String {
    change::now()
}

async fn rows(store: &Store, entity: Entity) -> Vec<Row> {
    match store.page(&Query { limit: 300, ..Query::new(entity) }).await {
        Ok(page) => page.rows,
        Err(_) => Vec::new(),
    }
}

/// A change that may make sense here; none when it does not.
async fn some_plan(store: &Store, chance: &mut Chance, applied: &mut Vec<i64>) -> Option<(&'static str, Plan)> {
    let kinds = [
        "up", "down", "rating", "edit", "remove", "signal", "signal", "signal", "retract", "reward", "reward", "hold",
        "release", "prune", "case", "episode", "undo", "undo", "activate", "link",
    ];
    let kind = *chance.of(&kinds)?;
    let pick = async |chance: &mut Chance, entity: Entity| {
        let rows = rows(store, entity).await;
        chance.of(&rows).cloned()
    };
    let plan: Result<Plan, ChangeError> = match kind {
        "up" | "down" | "rating" => {
            let episode = pick(chance, Entity::Episode).await?;
            let rating = (kind == "rating").then(|| 1 + chance.below(5) as i64);
            let word = match kind {
                "up" => "thumbs_up",
                "down" => "thumbs_down",
                _ => "rating",
            };
            feedback::add(store, episode.id(), &said(word, rating)).await
        }
        "edit" => {
            let row = pick(chance, Entity::Feedback).await?;
            let word = *chance.of(&["thumbs_up", "thumbs_down"])?;
            feedback::edit(store, row.id(), &said(word, None), None).await
        }
        "remove" => feedback::remove(store, pick(chance, Entity::Feedback).await?.id()).await,
        "signal" => {
            // Most telling where memories were used.
            let links = rows(store, Entity::MemoryLink).await;
            let linked = chance.of(&links).and_then(|l| l.text("episode_id")).map(str::to_owned);
            let episode = match linked.filter(|_| chance.below(3) > 0) {
                Some(id) => id,
                None => pick(chance, Entity::Episode).await?.id().to_owned(),
            };
            let word = *chance.of(&["confirmed", "corrected", "rejected", "undone", "ignored"])?;
            signal::add(store, &episode, Signal::parse(word).expect("a signal"), by("tester", None)).await
        }
        "retract" => signal::retract(store, pick(chance, Entity::UtilityEvent).await?.id()).await,
        "reward" => {
            let value = chance.below(101) as f64 / 100.0;
            reward::set(store, pick(chance, Entity::Case).await?.id(), value, None).await
        }
        "hold" | "release" => {
            let ids =
                [pick(chance, Entity::Case).await?.id().to_owned(), pick(chance, Entity::Case).await?.id().to_owned()];
            quarantine::hold(store, &ids, kind == "hold").await
        }
        "prune" => {
            let bank = pick(chance, Entity::Profile).await?;
            let (user, agent) = (bank.text("user_id").map(str::to_owned), bank.text("agent_id").map(str::to_owned));
            let window = PruneWindow::Newest(2 + chance.below(12) as i64);
            prune::plan(store, &Pruning { user, agent, window, ..Pruning::default() }).await
        }
        "case" => {
            let like = pick(chance, Entity::Case).await?;
            let prompt = format!("{} {}", mnemoscope::recall::features::case_text(&like), chance.below(1_000_000));
            let case = json!({"profile_id": like.get("profile_id"), "prompt": {"message": prompt}, "plan": {"steps": []},
                "outcome": chance.of(&["success", "failure", "partial"]), "tags": like.get("tags")});
            record::case(store, &case.to_string()).await
        }
        "episode" => {
            let like = pick(chance, Entity::Episode).await?;
            let mut episode = json!({"title": format!("{} again", like.text("title").unwrap_or("Talk")), "outcome": "success",
                "started_at": "2026-11-01T10:00:00Z", "ended_at": "2026-11-01T11:00:00Z"});
            for column in ["agent_id", "user_id", "summary", "domain", "topic", "session_id"] {
                if !like.get(column).is_null() {
                    episode[column] = like.get(column).clone();
                }
            }
            record::episode(store, &episode.to_string()).await
        }
        "undo" => {
            let seq = applied.pop()?;
            undo::undo(store, seq).await
        }
        "activate" => policy::activate(store, pick(chance, Entity::Policy).await?.id()).await,
        _ => {
            let (child, parent) = (pick(chance, Entity::Episode).await?, pick(chance, Entity::Episode).await?);
            chain::link(store, child.id(), parent.id()).await
        }
    };
    plan.ok().filter(|plan| !plan.is_empty()).map(|plan| (kind, plan))
}

/// Questions that are kept here: one of each kind that the database can be asked.
async fn kept(store: &Store) -> Vec<KeptQuestion> {
    let text = |ranking, text: &str| Inquiry { text: Some(text.to_owned()), ..Inquiry::new(ranking) };
    let mut asked = vec![];
    if store.sources_of(Entity::Episode).is_ok() {
        asked.push(("boosted", text(Ranking::Boosted, "report again")));
        asked.push(("proven", Inquiry { domain: Some("Work".into()), k: Some(9), ..Inquiry::new(Ranking::Proven) }));
    }
    if let Some(bank) = rows(store, Entity::Profile).await.first() {
        let owner = |column| bank.text(column).map(str::to_owned);
        let mine =
            Inquiry { user: owner("user_id"), agent: owner("agent_id"), ..text(Ranking::Cases, "clean the list") };
        asked.push(("cases", mine));
    }
    let at = now();
    asked.into_iter().map(|(name, inquiry)| KeptQuestion { name: name.into(), request: inquiry.request(&at) }).collect()
}

/// The request that the arguments of `recall` make.
fn request(words: &[String], kept: &[KeptQuestion]) -> RecallRequest {
    let mut inquiry = Inquiry::new(Ranking::Boosted);
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let mut value = || words.next().cloned().expect("a value");
        match word.as_str() {
            "--ranking" => {
                let name = value();
                inquiry.ranking = Ranking::ALL.into_iter().find(|r| r.name() == name).expect("a ranking");
            }
            "--saved" => {
                let name = value();
                let kept = kept.iter().find(|kept| kept.name == name).expect("a saved question");
                inquiry = kept.request.inquiry.clone();
            }
            "--like" => inquiry.like = Some(value()),
            "--policy" => inquiry.policy = Some(value()),
            "--agent" => inquiry.agent = Some(value()),
            "--user" => inquiry.user = Some(value()),
            "--domain" => inquiry.domain = Some(value()),
            "--topic" => inquiry.topic = Some(value()),
            "-k" => inquiry.k = value().parse().ok(),
            text => inquiry.text = Some(text.to_owned()),
        }
    }
    inquiry.request(&now())
}

type Places = BTreeMap<String, (usize, f64)>;

fn places(answer: &RecallAnswer) -> Places {
    let place = |(at, item): (usize, &lab::RecalledItem)| {
        let row = &item.ranked.row;
        (format!("{} {}", row.entity, row.id()), (at + 1, item.ranked.score.total))
    };
    answer.rows.iter().enumerate().map(place).collect()
}

async fn recalled(store: &Store, found: &WhatIf, kept: &[KeptQuestion], policies: bool) -> Vec<Places> {
    let mut answers = Vec::new();
    for asked in &found.asked {
        let mut request = request(&asked.recall, kept);
        // Before a change another policy may be in use than after it.
        request.inquiry.policy.take_if(|_| !policies);
        let answer = lab::recall(store, &request).await;
        answers.push(answer.map_or_else(|error| panic!("{asked:?}: {error}"), |answer| places(&answer)));
    }
    answers
}

/// Holds what was foretold against what was recalled before and is recalled now.
fn held(what: &str, found: &WhatIf, before: &[Places], after: &[Places]) {
    for ((asked, before), after) in found.asked.iter().zip(before).zip(after) {
        let of_it = |moved: &&mnemoscope::recall::what_if::PlaceMove| {
            moved.situation == asked.situation && moved.recall == asked.recall
        };
        let mut foretold: BTreeMap<&str, (Ranked, Ranked)> = BTreeMap::new();
        for moved in found.moves.iter().chain(&found.rescored).filter(of_it) {
            foretold.insert(&moved.id, (moved.before.zip(moved.score_before), moved.after.zip(moved.score_after)));
        }
        let all: std::collections::BTreeSet<&String> = before.keys().chain(after.keys()).collect();
        for key in all {
            let id = key.split_once(' ').expect("an id").1;
            let (was, is) = (before.get(key).copied(), after.get(key).copied());
            let same = |a: Option<(usize, f64)>, b: Option<(usize, f64)>| match (a, b) {
                (Some(a), Some(b)) => a.0 == b.0 && (a.1 - b.1).abs() < SAME,
                (a, b) => a.is_none() && b.is_none(),
            };
            match foretold.remove(id) {
                Some((before, after)) => {
                    assert!(
                        same(before, was) && same(after, is),
                        "{what}: {asked:?} {id}: foretold {before:?} to {after:?}, was {was:?}, is {is:?}"
                    );
                }
                None => assert!(same(was, is), "{what}: {asked:?} {id}: nothing was foretold, was {was:?}, is {is:?}"),
            }
        }
        assert!(foretold.is_empty(), "{what}: {asked:?}: {foretold:?} did not happen");
    }
}

/// Changes a database at random, each time holding the look against what happens.
async fn random_changes(name: &str, store: &Store, changes: usize, seed: u64) {
    let (mut chance, mut applied) = (Chance(seed), Vec::new());
    let (mut made, mut moved, mut kinds) = (0, 0, BTreeMap::new());
    for _ in 0..changes * 12 {
        if made == changes {
            break;
        }
        let Some((kind, plan)) = some_plan(store, &mut chance, &mut applied).await else { continue };
        let kept = kept(store).await;
        let found = what_if::of_plan(store, &plan, &kept, PATIENCE, &|_| {}).await;
        let found = found.unwrap_or_else(|error| panic!("{name} {kind}: {error}"));
        assert!(found.complete, "{name} {kind}: {:?}", found.notes);
        if found.moves.len() + found.rescored.len() >= 200 {
            continue;
        }
        let before = recalled(store, &found, &kept, kind != "activate" && kind != "undo").await;
        // What the database does not accept, such as a parent that is gone meanwhile, is nothing that a look foretells.
        let Ok(receipt) = change::apply(store, &plan, &author()).await else { continue };
        let after = recalled(store, &found, &kept, true).await;
        held(&format!("{name} {kind} ({made})"), &found, &before, &after);
        applied.extend(receipt.audit_seq);
        made += 1;
        moved += usize::from(found.changed > 0);
        *kinds.entry(kind).or_insert(0) += 1;
    }
    let mut out = std::io::stderr();
    let _ = std::io::Write::write_fmt(
        &mut out,
        format_args!("{name}: {made} changes, {moved} move something: {kinds:?}\n"),
    );
    assert!(made > 0, "{name}: nothing can be changed");
}

async fn worlds_on_sqlite() -> Vec<(String, World)> {
    let mut all = vec![("demo".to_owned(), small().await)];
    for layout in [Layout::Atom, Layout::Atom2026] {
        all.push((format!("{layout:?} on SQLite"), on_sqlite(layout).await));
    }
    all.extend(shared_files().await);
    all
}

async fn worlds_on_postgres() -> Vec<(String, World)> {
    let mut all = Vec::new();
    all.extend(native_on_postgres().await.map(|world| ("native on PostgreSQL".to_owned(), world)));
    for layout in [Layout::EnnubeVectors, Layout::EnnubeJson, Layout::NousPlanned, Layout::Atom] {
        let Some(database) = Database::fresh() else { continue };
        if layout == Layout::EnnubeVectors && !database.has_vector() {
            continue;
        }
        all.extend(on_postgres(layout).await.map(|world| (format!("{layout:?} on PostgreSQL"), world)));
    }
    all.extend(shared_on_postgres().await);
    all
}

/// The folder of the databases that are handed around with the product's description, where they are there.
fn shared() -> std::path::PathBuf {
    std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/fixtures")
}

fn say_if_skipped(shared: &[(String, World)]) {
    if shared.is_empty() {
        let _ = std::io::Write::write_all(
            &mut std::io::stderr(),
            b"SKIPPED with the shared databases: they are not there\n",
        );
    }
}

async fn shared_files() -> Vec<(String, World)> {
    let (folder, mut all) = (shared(), Vec::new());
    for name in ["atom.db", "atom-2026-02.db"] {
        let own = tempfile::tempdir().expect("a folder");
        let path = own.path().join(name);
        if std::fs::copy(folder.join(name), &path).is_ok() {
            let mut rights = std::fs::metadata(&path).expect("the copy").permissions();
            #[allow(clippy::permissions_set_readonly_false, reason = "a copy of our own")]
            rights.set_readonly(false);
            std::fs::set_permissions(&path, rights).expect("rights");
            all.push((name.to_owned(), world(Target::File(path), own, None).await));
        }
    }
    say_if_skipped(&all);
    all
}

async fn shared_on_postgres() -> Vec<(String, World)> {
    let (folder, mut all) = (shared(), Vec::new());
    for name in ["ennube.sql", "nous.sql"] {
        let (Ok(sql), Some(database)) = (std::fs::read_to_string(folder.join(name)), Database::fresh()) else {
            continue;
        };
        if !database.has_vector() {
            continue;
        }
        let sql: String = sql.lines().filter(|line| !line.starts_with('\\')).collect::<Vec<_>>().join("\n");
        let mut link = <sqlx::PgConnection as sqlx::Connection>::connect(database.url()).await.expect("the server");
        let ran = sqlx::raw_sql(sqlx::AssertSqlSafe(sql)).execute(&mut link).await;
        ran.unwrap_or_else(|error| panic!("{name}: {error}"));
        drop(link);
        let target = Target::Postgres(database.url().to_owned());
        all.push((name.to_owned(), world(target, tempfile::tempdir().expect("a folder"), Some(database)).await));
    }
    say_if_skipped(&all);
    all
}

async fn random_changes_in(worlds: Vec<(String, World)>, first_seed: u64) {
    let changes = std::env::var(VARIABLE).ok().and_then(|n| n.parse().ok()).unwrap_or(CHANGES);
    for (seed, (name, world)) in (first_seed..).zip(&worlds) {
        random_changes(name, &world.store, changes, seed).await;
    }
}

#[test]
fn what_is_foretold_of_random_changes_comes_true_on_sqlite() {
    block_on(async { random_changes_in(worlds_on_sqlite().await, 1).await });
}

#[test]
fn what_is_foretold_of_random_changes_comes_true_on_postgres() {
    block_on(async { random_changes_in(worlds_on_postgres().await, 4).await });
}

/// A palace is only read; what we add is in a database next to it, attached under another name.
#[test]
fn what_is_foretold_of_a_palace_comes_true() {
    block_on(async {
        let folder = tempfile::tempdir().expect("a folder");
        let (path, companion) = (folder.path().join("palace"), folder.path().join("state/companion.db"));
        build_sqlite(Layout::Mempalace, &path).await;
        let options = OpenOptions { companion: Some(companion), ..crate::support::options() };
        let open = || async { Store::open(&Target::File(path.clone()), &options).await.expect("the palace") };
        migrate::apply(&open().await, &author(), None).await.expect("the companion");
        let store = open().await;
        let memories = rows(&store, Entity::Memory).await;
        let apply = async |plan: Result<Plan, ChangeError>| {
            change::apply(&store, &plan.expect("a plan"), &author()).await.expect("a receipt");
        };
        for (n, memory) in memories.iter().take(8).enumerate() {
            let episode = json!({"id": format!("ep-{n}"), "title": format!("Call {n}"), "agent_id": "ana",
                "started_at": format!("2026-01-{:02}T10:00:00Z", n + 1), "utility": 0.5});
            apply(record::episode(&store, &episode.to_string()).await).await;
            let link = json!({"entity": "memory_link", "episode_id": format!("ep-{n}"), "memory_id": memory.id()});
            apply(import::plan(&store, ImportFormat::Jsonl, "x", &link.to_string(), false).await).await;
        }
        let plan = signal::add(&store, "ep-0", Signal::Confirmed, by("tester", None)).await.expect("a plan");
        let found = what_if::of_plan(&store, &plan, &[], PATIENCE, &|_| {}).await.expect("an answer");
        let drawer = memories[0].id();
        assert!(found.moves.iter().chain(&found.rescored).any(|m| m.id == drawer), "{found:?}");
        random_changes("palace", &store, 6, 5).await;
    });
}

/// A database with ten drawers in one room, each used by one episode.
async fn rooms() -> World {
    let world = native().await;
    for n in 0..10 {
        meddle(&world, &format!(
            "INSERT INTO episodes (id, agent_id, title, started_at, utility) VALUES ('r{n}', 'ag-r', 'Stay {n}', '2026-01-{:02}T10:00:00.000000Z', 0.5); \
             INSERT INTO memories (id, kind, title, text, metadata, created_at) VALUES ('d{n}', 'drawer', 'Drawer {n}', 't', \
             '{{\"wing\": \"house\", \"room\": \"attic\"}}', '2026-01-{:02}T10:00:00.000000Z'); \
             INSERT INTO episode_memories (episode_id, memory_id, kind) VALUES ('r{n}', 'd{n}', 'drawer')", n + 1, n + 1)).await;
    }
    world
}

#[test]
fn a_signal_moves_the_drawer_that_its_episode_used() {
    block_on(async {
        let world = rooms().await;
        let plan = signal::add(&world.store, "r0", Signal::Confirmed, by("tester", None)).await.expect("a plan");
        let found = what_if::of_plan(&world.store, &plan, &[], PATIENCE, &|_| {}).await.expect("an answer");
        let moved =
            found.moves.iter().find(|m| m.id == "d0" && m.situation == "house / attic").expect("the drawer moves");
        assert_eq!((moved.before, moved.after), (None, Some(1)), "{moved:?}");
        done(&world, Ok(plan)).await;
        let answer = lab::recall(&world.store, &request(&moved.recall, &[])).await.expect("an answer");
        assert_eq!(answer.rows[0].ranked.row.id(), "d0");
        assert!(found.rows.iter().any(|row| row.id() == "d0" && row.text("title") == Some("Drawer 0")));
    });
}

#[test]
fn a_kept_question_is_among_the_situations() {
    block_on(async {
        let world = rooms().await;
        let inquiry = Inquiry { domain: Some("house".into()), k: Some(2), ..Inquiry::new(Ranking::Proven) };
        let kept = [KeptQuestion { name: "the house".into(), request: inquiry.request(&now()) }];
        let plan = signal::add(&world.store, "r3", Signal::Confirmed, by("tester", None)).await.expect("a plan");
        let found = what_if::of_plan(&world.store, &plan, &kept, PATIENCE, &|_| {}).await.expect("an answer");
        let moved = found.moves.iter().find(|m| m.situation == "the house" && m.id == "d3").expect("it moves");
        assert_eq!(moved.recall.join(" "), "--saved the house");
    });
}

#[test]
fn nothing_can_be_written_through_a_look() {
    block_on(async {
        let world = native().await;
        let before = crate::support::world::dump(&world).await;
        let plan = signal::add(
            &world.store,
            rows(&world.store, Entity::Episode).await[0].id(),
            Signal::Rejected,
            by("t", None),
        )
        .await
        .expect("a plan");
        let (view, unseen) = world.store.ahead().foreseeing(&plan.mutations, &now()).await.expect("a look");
        assert_eq!(unseen, 0);
        assert!(change::apply(&view, &plan, &author()).await.is_err());
        assert_eq!(before, crate::support::world::dump(&world).await);
    });
}

#[test]
fn the_effect_of_a_purge_on_very_many_rows_is_refused() {
    block_on(async {
        for world in [Some(crate::support::world::small().await), native_on_postgres().await].into_iter().flatten() {
            let rows = "WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 50001) \
                 INSERT INTO canvas_audit (id, user_id, action) SELECT 'many-' || n, 'zoe-1234', 'present' FROM n";
            meddle(&world, rows).await;
            let database = crate::support::world::address(&world);
            let folder = tempfile::tempdir().expect("a folder");
            let told = |more: &[&str]| {
                let words = ["-d", &database, "--format", "json", "purge", "zoe-1234"];
                let output =
                    crate::support::alone_in(folder.path()).args(words).args(more).output().expect("the program");
                (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
            };
            let (code, refused) = told(&["--what-if"]);
            assert_eq!(code, Some(5), "{refused}");
            assert!(
                refused.contains("50,001 rows are deleted or changed") && refused.contains("at most 50,000"),
                "{refused}"
            );
            // The bound is counted from the plan, before an engine is asked.
            if let Target::File(_) = world.target {
                meddle(&world, "DELETE FROM canvas_audit WHERE id = 'many-1'").await;
                assert_eq!(told(&["--what-if"]).0, Some(0));
            }
        }
    });
}
