//! Running jobs: who may, how they stop and continue, what a zombie may not.

use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};

use futures::future::BoxFuture;
use mnemoscope::change::apply::apply;
use mnemoscope::change::operation::FeedbackFields;
use mnemoscope::change::{ChangeDanger, ChangeError, Draft, feedback, hold};
use mnemoscope::job::plan::{JobBeat, JobMove, JobSettings, JobState, JobWish};
use mnemoscope::job::{self, BatchAsk, Job, JobBatch, JobEntry, record};
use mnemoscope::store::stored::TableName;
use mnemoscope::store::{Store, Target};
use sqlx::{Connection, PgConnection};
use tokio::sync::watch;

use super::world::{World, author, on_both, on_postgres, on_sqlite, open};
use crate::support::world::address_of;
use crate::support::{block_on, block_on_aside};

async fn resume(world: &World, batch: usize) -> job::JobOutcome {
    let (_wish, heard) = watch::channel(JobWish::GoOn);
    let job = job::backfill::BackfillKind::named("canvas-links").unwrap().job(&world.store).unwrap();
    let settings = JobSettings { batch: Some(batch), ..JobSettings::default() };
    job::run(&world.store, &*job, &author(), &settings, JobEntry::Resume, heard, &mut |_| ()).await.expect("resumed")
}

#[test]
fn paused_between_any_two_batches_and_resumed_it_comes_to_the_same() {
    block_on(async {
        for (world, straight) in on_both(40).await.into_iter().zip(on_both(40).await) {
            straight.backfill("canvas-links", 4).await;
            let (wish, heard) = watch::channel(JobWish::GoOn);
            let mut batches = 0;
            let mut each = |beat: JobBeat| {
                if let JobBeat::Progress(progress) = beat
                    && progress.batches > batches
                {
                    batches = progress.batches;
                    wish.send(JobWish::Pause).unwrap();
                }
            };
            let paused = world.backfill_while("canvas-links", 4, heard, &mut each).await.expect("paused");
            assert_eq!(paused.progress.state, JobState::Paused);
            assert!(!paused.is_complete() && paused.progress.batches < 10, "{:?}", paused.progress);
            // Starting it again is not what was meant.
            let (_wish, heard) = watch::channel(JobWish::GoOn);
            let refused = world.backfill_while("canvas-links", 4, heard, &mut |_| ()).await;
            assert!(matches!(&refused, Err(ChangeError::Conflict { .. })), "{refused:?}");
            let done = resume(&world, 4).await;
            assert!(done.is_complete());
            assert_eq!(done.progress.id, paused.progress.id);
            assert_eq!(world.links().await, straight.links().await);
        }
    });
}

#[test]
fn undoing_a_run_by_the_line_of_its_receipt_leaves_what_others_wrote() {
    block_on(async {
        for world in on_both(40).await {
            let before = world.links().await;
            let (wish, heard) = watch::channel(JobWish::GoOn);
            let mut each = |beat: JobBeat| {
                if matches!(&beat, JobBeat::Progress(progress) if progress.batches == 2) {
                    wish.send(JobWish::Pause).unwrap();
                }
            };
            world.backfill_while("canvas-links", 4, heard, &mut each).await.expect("paused");
            // Someone else gives feedback between two batches.
            let fields = FeedbackFields { kind: Some("thumbs_up".to_owned()), ..FeedbackFields::default() };
            let store = open(&world.target).await;
            let plan = feedback::add(&store, "ep-0000001", &fields).await.expect("a plan");
            let receipt = apply(&store, &plan, &author()).await.expect("applied");
            let other = receipt.audit_seq.expect("an entry");
            let done = resume(&world, 4).await;
            let (first, last) = done.entries.expect("entries");
            assert!(first < other && other < last, "{first} {other} {last}");
            let line = done.receipt().receipt.undo.expect("a command");
            let folder = std::path::Path::new(env!("CARGO_BIN_EXE_mnemoscope")).parent().expect("a folder");
            let path = format!("{}:{}", folder.display(), std::env::var("PATH").expect("a path"));
            let mut shell = Command::new("/bin/sh");
            shell.args(["-c", &line]).env("PATH", path).env("MNEMOSCOPE_DATABASE", address_of(&world.target));
            let output = shell.output().expect("a shell");
            assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
            assert_eq!(world.links().await, before, "{line}");
            assert_eq!(world.texts("SELECT kind FROM agent_feedback").await, ["thumbs_up"], "{line}");
        }
    });
}

#[test]
fn a_masked_timed_run_prints_no_texts_of_rows() {
    block_on(async {
        for world in on_both(20).await {
            world.execute("UPDATE episodes SET title = 'Jonas\u{200b} asks'").await;
            let (wish, heard) = watch::channel(JobWish::GoOn);
            let mut each = |beat: JobBeat| {
                if matches!(&beat, JobBeat::Progress(progress) if progress.batches == 1) {
                    wish.send(JobWish::Leave).unwrap();
                }
            };
            let left = world.backfill_while("hidden-characters", 4, heard, &mut each).await.expect("left");
            assert_eq!(left.progress.state, JobState::Queued);
            let address = address_of(&world.target);
            let mut timed = Command::new(env!("CARGO_BIN_EXE_mnemoscope"));
            timed.args(["-d", &address, "--mask", "--format", "json", "jobs", "run"]);
            let output = timed.stdin(Stdio::null()).output().expect("the binary");
            let printed = String::from_utf8(output.stdout).expect("text");
            let told: serde_json::Value = serde_json::from_str(&printed).expect("an answer");
            assert_eq!(told["jobs"][0]["status"], "applied", "{printed}");
            assert!(told["jobs"][0]["changes"][0]["before"]["title"].is_string(), "{printed}");
            assert!(!printed.contains("Jonas"), "{printed}");
        }
    });
}

/// Databases on the server whose episodes another session keeps from being written.
async fn with_locked_episodes() -> Vec<(World, PgConnection)> {
    let mut locked = Vec::new();
    for world in on_both(40).await {
        let Target::Postgres(url) = &world.target else { continue };
        let mut other = PgConnection::connect(url).await.expect("the server");
        sqlx::raw_sql("BEGIN; LOCK TABLE episodes IN SHARE MODE").execute(&mut other).await.expect("a lock");
        locked.push((world, other));
    }
    locked
}

/// Ends the session's lock: the run is resumed to its end then.
async fn resumed_without_lock(world: &World, other: &mut PgConnection) {
    sqlx::raw_sql("ROLLBACK").execute(other).await.expect("no lock");
    assert!(resume(world, 4).await.is_complete());
}

#[test]
fn a_lock_that_is_kept_ends_the_run_and_it_is_resumed_later() {
    block_on(async {
        for (world, mut other) in with_locked_episodes().await {
            let (_wish, heard) = watch::channel(JobWish::GoOn);
            let began = std::time::Instant::now();
            let ended = world.backfill_while("canvas-links", 4, heard, &mut |_| ()).await;
            let words = ended.expect_err("someone is in the way").to_string();
            assert!(words.contains("12 s") && words.contains("resume"), "{words}");
            assert!(began.elapsed() < std::time::Duration::from_mins(1));
            resumed_without_lock(&world, &mut other).await;
        }
    });
}

#[test]
fn told_to_stop_while_it_writes_it_pauses_where_it_was() {
    block_on(async {
        for (world, mut other) in with_locked_episodes().await {
            let (wish, heard) = watch::channel(JobWish::GoOn);
            let waits = "SELECT count(*) FROM pg_locks l JOIN pg_database d ON d.oid = l.database \
                         WHERE NOT granted AND datname = current_database()";
            let told = async {
                while sqlx::query_scalar::<_, i64>(waits).fetch_one(&mut other).await.expect("a count") == 0 {
                    tokio::task::yield_now().await;
                }
                wish.send(JobWish::Pause).unwrap();
            };
            let mut each = |_: JobBeat| ();
            let both = async { tokio::join!(world.backfill_while("canvas-links", 4, heard, &mut each), told) };
            let (ended, ()) = tokio::time::timeout(std::time::Duration::from_mins(1), both).await.expect("an end");
            let paused = ended.expect("paused next to the lock").progress;
            assert_eq!((paused.state, paused.batches), (JobState::Paused, 0));
            resumed_without_lock(&world, &mut other).await;
        }
    });
}

#[test]
fn another_process_can_pause_and_cancel_it() {
    block_on(async {
        for world in on_both(40).await {
            let store = open(&world.target).await;
            let (_wish, heard) = watch::channel(JobWish::GoOn);
            let (mut asked, target) = (false, world.target.clone());
            // The job waits for its progress to be told, so it is asked between two batches.
            let mut each = |beat: JobBeat| {
                if !asked && matches!(&beat, JobBeat::Progress(progress) if progress.batches > 0) {
                    asked = true;
                    let asking = async { job::ask(&open(&target).await, "canvas-links", JobMove::AskPause).await };
                    block_on_aside(asking).expect("asked");
                }
            };
            let paused = world.backfill_while("canvas-links", 1, heard, &mut each).await.expect("paused");
            assert_eq!(paused.progress.state, JobState::Paused);
            let cancelled = job::ask(&store, "canvas-links", JobMove::AskCancel).await.expect("cancelled");
            assert_eq!(record::progress(&cancelled).state, JobState::Cancelled);
            let nothing = job::ask(&store, "canvas-links", JobMove::AskPause).await;
            assert!(matches!(nothing, Err(ChangeError::NotFound(_))));
            // What was done stays, and a new run does the rest.
            assert!(world.backfill("canvas-links", 50).await.is_complete());
        }
    });
}

#[test]
fn a_hold_between_two_batches_protects_every_row_from_then_on() {
    block_on(async {
        for world in on_both(40).await {
            let secret = "ghp_abcdefghijklmnopqrstuvwxyz0123456789";
            // Episodes of one person, what depends on them, and memories that they used; and the same of someone else.
            let rows = format!(
                "INSERT INTO episodes (id, title) VALUES ('zz-free', 'x'); \
                 UPDATE episodes SET title = '{secret}', user_id = CASE id WHEN 'zz-free' THEN 'free' ELSE 'held' END; \
                 INSERT INTO episode_segments (id, episode_id, sequence, kind, content) \
                   SELECT 's-' || id, id, 1, 'message', '{secret}' FROM episodes; \
                 INSERT INTO memories (id, kind, text) SELECT 'm-' || id, 'fact', '{secret}' FROM episodes; \
                 INSERT INTO episode_memories (episode_id, memory_id) SELECT id, 'm-' || id FROM episodes"
            );
            world.execute(&rows).await;
            let with_secret = "SELECT id FROM episodes WHERE title LIKE 'ghp%' \
                 UNION ALL SELECT id FROM episode_segments WHERE content LIKE 'ghp%' \
                 UNION ALL SELECT id FROM memories WHERE text LIKE 'ghp%' ORDER BY 1";
            let (_wish, heard) = watch::channel(JobWish::GoOn);
            let (mut left, target) = (None, world.target.clone());
            let mut each = |beat: JobBeat| {
                if left.is_none() && matches!(&beat, JobBeat::Progress(progress) if progress.batches == 1) {
                    left = Some(block_on_aside(async {
                        let other = World::view(&target).await;
                        let plan = hold::hold(&other.store, "held", None, "officer").await.expect("a plan");
                        apply(&other.store, &plan, &author()).await.expect("a hold");
                        other.texts(with_secret).await
                    }));
                }
            };
            let outcome = world.backfill_while("secrets", 10, heard, &mut each).await.expect("done");
            assert!(outcome.is_complete(), "{:?}", outcome.checks);
            let mut left = left.expect("a first batch");
            assert_eq!(left.len(), 3 * 41 - 10);
            left.retain(|id| !id.ends_with("zz-free"));
            assert_eq!(world.texts(with_secret).await, left);
        }
    });
}

#[test]
fn a_cancelled_run_names_the_command_that_starts_it_anew() {
    let world = block_on(on_sqlite(40));
    let Target::File(path) = &world.target else { panic!("a file") };
    let command = |words: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_mnemoscope"));
        command.arg("-d").arg(path).arg("backfill").args(words).stdout(Stdio::null()).stderr(Stdio::piped());
        command
    };
    let run = command(&["canvas-links", "--apply", "--batch", "1", "--rate", "2"]).spawn().expect("the binary");
    // Refused with 3 until the run has begun.
    while command(&["cancel", "canvas-links"]).output().expect("the binary").status.code() == Some(3) {}
    let output = run.wait_with_output().expect("its end");
    let words = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(6), "{words}");
    assert!(words.contains("is cancelled") && words.contains("backfill canvas-links --apply"), "{words}");
    assert!(!words.contains("resume"), "{words}");
}

#[test]
fn two_cannot_run_the_same_job_and_a_zombie_is_refused() {
    block_on(async {
        for world in on_both(40).await {
            let other = open(&world.target).await;
            let (_wish, heard) = watch::channel(JobWish::GoOn);
            let seen = Arc::new(Mutex::new(Vec::new()));
            let mut taken = false;
            let target = world.target.clone();
            let mut each = |beat: JobBeat| {
                let JobBeat::Progress(progress) = beat else { return };
                if progress.batches != 2 || taken {
                    return;
                }
                taken = true;
                let (target, seen) = (target.clone(), Arc::clone(&seen));
                // A second console: refused while the first gives signs of life, and let in when those are old.
                block_on_aside(async move {
                    let store = open(&target).await;
                    let job = job::backfill::BackfillKind::named("canvas-links").unwrap().job(&store).unwrap();
                    let run = |entry| {
                        let (_wish, heard) = watch::channel(JobWish::GoOn);
                        let settings = JobSettings { batch: Some(3), ..JobSettings::default() };
                        let (store, job) = (&store, &job);
                        async move { job::run(store, &**job, &author(), &settings, entry, heard, &mut |_| ()).await }
                    };
                    let refused = run(JobEntry::Begin).await;
                    seen.lock().unwrap().push(format!("{:?}", refused.err().map(|e| e.to_string())));
                    let world = World::view(&target).await;
                    world.execute("UPDATE memory_jobs SET heartbeat_at = '2020-01-01T00:00:00.000000Z'").await;
                    let outcome = run(JobEntry::Resume).await.expect("taken over");
                    seen.lock().unwrap().push(outcome.status().to_owned());
                });
            };
            let zombie = world.backfill_while("canvas-links", 3, heard, &mut each).await;
            let words = zombie.expect_err("it is refused").to_string();
            assert!(words.contains("taken over canvas-links"), "{words}");
            let seen = seen.lock().unwrap().clone();
            assert!(seen[0].contains("already running"), "{seen:?}");
            assert_eq!(seen[1], "applied");
            let straight = if matches!(world.target, mnemoscope::store::Target::File(_)) {
                on_sqlite(40).await
            } else {
                super::world::on_postgres(40).await.expect("PostgreSQL is there")
            };
            straight.backfill("canvas-links", 3).await;
            assert_eq!(world.links().await, straight.links().await);
            assert!(mnemoscope::change::audit::verify(&other, &[]).await.unwrap().ok);
        }
    });
}

#[test]
fn a_checkpoint_is_not_gone_on_from_when_the_columns_changed() {
    block_on(async {
        for world in on_both(40).await {
            let (wish, heard) = watch::channel(JobWish::GoOn);
            let mut each = |beat: JobBeat| {
                if matches!(&beat, JobBeat::Progress(p) if p.batches == 2) {
                    wish.send(JobWish::Pause).unwrap();
                }
            };
            world.backfill_while("canvas-links", 4, heard, &mut each).await.expect("paused");
            world.execute("ALTER TABLE episodes RENAME COLUMN confidence TO certainty").await;
            let store = open(&world.target).await;
            let job = job::backfill::BackfillKind::named("canvas-links").unwrap().job(&store).unwrap();
            let (_wish, heard) = watch::channel(JobWish::GoOn);
            let settings = JobSettings::default();
            let refused = job::run(&store, &*job, &author(), &settings, JobEntry::Resume, heard, &mut |_| ()).await;
            let words = refused.expect_err("it drifted").to_string();
            assert!(words.contains("episodes.confidence") && words.contains("is gone"), "{words}");
            assert!(words.contains("backfill cancel canvas-links"), "{words}");
        }
    });
}

#[test]
fn without_the_tables_of_jobs_the_rest_goes_on_and_the_command_is_named() {
    block_on(async {
        for world in on_both(20).await {
            world.execute("DROP TABLE memory_jobs").await;
            world.execute("DROP TABLE memory_job_quarantine").await;
            world.execute("DELETE FROM memory_migrations WHERE version = 2").await;
            let store = open(&world.target).await;
            let refused = record::ready(&store).await.expect_err("not there").to_string();
            assert!(refused.contains("migrate --apply"), "{refused}");
            assert!(store.records().jobs().await.expect("none").is_empty());
            let job = job::backfill::BackfillKind::named("canvas-links").unwrap().job(&store).unwrap();
            assert!(!job::look(&store, &*job).await.expect("a plan").counts.is_empty());
            let row = store.encoder().locate(mnemoscope::memory::Entity::Episode, "ep-0000001").await.unwrap();
            assert!(row.is_some());
            mnemoscope::change::feedback::add(
                &store,
                "ep-0000001",
                &mnemoscope::change::operation::FeedbackFields {
                    kind: Some("thumbs_up".to_owned()),
                    ..Default::default()
                },
            )
            .await
            .expect("changes can still be planned");
        }
    });
}

/// A job over numbers that writes titles; some of them the database does not take.
struct Titles {
    bad: Vec<usize>,
}

impl Job for Titles {
    fn name(&self) -> &'static str {
        "titles"
    }

    fn relies_on<'a>(&'a self, _store: &'a Store) -> Vec<TableName> {
        Vec::new()
    }

    fn total<'a>(&'a self, _store: &'a Store) -> BoxFuture<'a, Result<Option<u64>, ChangeError>> {
        Box::pin(async { Ok(Some(40)) })
    }

    fn is_planned_again(&self) -> bool {
        false
    }

    fn batch<'a>(&'a self, ask: BatchAsk<'a>) -> BoxFuture<'a, Result<JobBatch, ChangeError>> {
        use mnemoscope::store::fetched::FetchedValue;
        use mnemoscope::store::stored::{Mutation, Revision, RowRevisions};
        Box::pin(async move {
            let first = ask.place.as_u64().unwrap_or(1) as usize;
            let last = (first + ask.size - 1).min(40);
            let source = ask.store.sources_of(mnemoscope::memory::Entity::Episode)?[0];
            let table = mnemoscope::store::encode::table_of(source);
            let row = |n: usize| {
                let title = if self.bad.contains(&n) { "refused" } else { "new" };
                Revision(
                    vec![FetchedValue::Text(format!("ep-{n:07}"))],
                    vec![FetchedValue::Text(format!("Episode {n}"))],
                    vec![FetchedValue::Text(format!("{title} {n}"))],
                )
            };
            let mut draft = Draft::batch(ask.store, ask.own, "titles", ChangeDanger::Guarded);
            let rows: Vec<Revision> = (first..=last).map(row).collect();
            for n in first..=last {
                draft.note(
                    mnemoscope::memory::Entity::Episode,
                    &format!("ep-{n:07}"),
                    serde_json::Value::Null,
                    serde_json::Value::Null,
                );
            }
            let (key, columns) = (vec!["id".to_owned()], vec!["title".to_owned()]);
            draft.push(Mutation::Revise(RowRevisions { table, key, columns, rows, touch: Vec::new() }));
            let next = (last < 40).then(|| serde_json::Value::from(last + 1));
            Ok(JobBatch { plan: draft.seal_batch(), next, seen: last + 1 - first, bad: Vec::new() })
        })
    }
}

#[test]
fn what_the_database_does_not_take_is_set_aside_and_the_rest_goes_on() {
    block_on(async {
        for world in on_both(40).await {
            world
                .execute(if matches!(world.target, mnemoscope::store::Target::File(_)) {
                    "CREATE TRIGGER no BEFORE UPDATE ON episodes WHEN new.title LIKE 'refused%' BEGIN SELECT raise(ABORT, 'no'); END"
                } else {
                    "ALTER TABLE episodes ADD CONSTRAINT no CHECK (title NOT LIKE 'refused%')"
                })
                .await;
            let (_wish, heard) = watch::channel(JobWish::GoOn);
            let settings = JobSettings { batch: Some(16), ..JobSettings::default() };
            let job = Titles { bad: vec![3, 17, 40] };
            let outcome =
                job::run(&world.store, &job, &author(), &settings, JobEntry::Begin, heard, &mut |_| ()).await.unwrap();
            assert_eq!(outcome.progress.quarantined, 3);
            assert_eq!((outcome.status(), outcome.checks[0].ok), ("incomplete", false), "three rows still need it");
            let aside: Vec<&str> = outcome.set_aside.iter().map(|[_, id, _]| id.as_str()).collect();
            assert_eq!(aside, ["ep-0000003", "ep-0000017", "ep-0000040"]);
            let new = world.texts("SELECT CAST(count(*) AS TEXT) FROM episodes WHERE title LIKE 'new%'").await;
            assert_eq!(new, ["37"]);
            assert_eq!(outcome.progress.changed, 37);
            assert!(mnemoscope::change::audit::verify(&world.store, &[]).await.unwrap().ok);
        }
    });
}

/// The same job, whose planning reads for longer than a sign of life is apart.
struct Reading {
    job: Titles,
    file: std::path::PathBuf,
}

impl Job for Reading {
    fn name(&self) -> &'static str {
        "reading"
    }

    fn relies_on<'a>(&'a self, store: &'a Store) -> Vec<TableName> {
        self.job.relies_on(store)
    }

    fn total<'a>(&'a self, store: &'a Store) -> BoxFuture<'a, Result<Option<u64>, ChangeError>> {
        self.job.total(store)
    }

    fn is_planned_again(&self) -> bool {
        false
    }

    fn batch<'a>(&'a self, ask: BatchAsk<'a>) -> BoxFuture<'a, Result<JobBatch, ChangeError>> {
        use sqlx::Connection as _;
        Box::pin(async move {
            let mut reader =
                sqlx::SqliteConnection::connect(&format!("sqlite:{}", self.file.display())).await.expect("a reader");
            sqlx::raw_sql("BEGIN; SELECT count(*) FROM episodes").execute(&mut reader).await.expect("read");
            tokio::time::sleep(std::time::Duration::from_millis(1_200)).await;
            reader.close().await.expect("closed");
            self.job.batch(ask).await
        })
    }
}

#[test]
fn signs_of_life_do_not_wait_for_the_planning_that_waits_for_them() {
    block_on(async {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("memory.db");
        // As most memory databases are: whoever reads keeps others from committing.
        super::world::build_sqlite_with(&file, 40, "DELETE").await;
        let store = open(&mnemoscope::store::Target::File(file.clone())).await;
        let job = Reading { job: Titles { bad: Vec::new() }, file };
        let (_wish, heard) = watch::channel(JobWish::GoOn);
        let settings = JobSettings { batch: Some(40), ..JobSettings::default() };
        let outcome = job::run(&store, &job, &author(), &settings, JobEntry::Begin, heard, &mut |_| ()).await;
        let outcome = outcome.expect("it continues");
        assert_eq!((outcome.progress.state, outcome.progress.changed), (JobState::Succeeded, 40));
    });
}

#[test]
fn a_batch_of_long_rows_ends_before_it_takes_much_memory() {
    block_on(async {
        for world in [Some(on_sqlite(12).await), on_postgres(9).await].into_iter().flatten() {
            let short = world.backfill("hidden-characters", 1_000).await.progress.batches;
            let long = "a long story\u{200b}; ".repeat((1 << 20) / 17);
            world.execute(&format!("UPDATE episodes SET summary = '{long}'")).await;
            let rows = world.texts("SELECT id FROM episodes").await.len() as u64;
            let done = world.backfill("hidden-characters", 1_000).await;
            assert!(done.is_complete(), "{:?}", done.checks);
            // A row is read as text and as it is stored: 8 MB are three of them and a part of the fourth.
            assert!(done.progress.batches >= short + rows / 5, "{} of {rows} rows", done.progress.batches);
            assert_eq!((Some(done.progress.seen), done.progress.changed), (done.progress.total, rows));
            let left = world.texts("SELECT id FROM episodes WHERE summary LIKE '%\u{200b}%'").await;
            assert!(left.is_empty(), "{left:?}");
        }
    });
}
