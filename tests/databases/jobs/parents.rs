//! Parents by likeness: no circle is made whatever is stored already, and the batch size changes nothing.

use std::collections::BTreeMap;

use mnemoscope::store::Target;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};

use super::world::{World, on_both, on_sqlite};
use crate::support::block_on;

/// Ids that reach a circle by their parents, counted in plain SQL's answer and not by the program.
async fn in_circles(world: &World) -> (usize, BTreeMap<String, String>) {
    let rows = world.texts("SELECT id || ' ' || coalesce(parent_id, '-') FROM episodes ORDER BY id").await;
    let parents: BTreeMap<String, String> = rows
        .iter()
        .filter_map(|row| row.split_once(' '))
        .map(|(id, parent)| (id.to_owned(), parent.to_owned()))
        .collect();
    let circular = |start: &String| {
        let mut at = start;
        for _ in 0..=parents.len() {
            match parents.get(at) {
                Some(parent) => at = parent,
                None => return false,
            }
        }
        true
    };
    (parents.keys().filter(|id| circular(id)).count(), parents)
}

/// One value of each episode: start and end in hours (the end may lie before the start), status, stored parent.
type Shape = (i64, i64, &'static str, Option<usize>);

async fn filled(world: &World, shapes: &[Shape]) {
    let postgres = matches!(world.target, Target::Postgres(_));
    let vector = if postgres { "'[1,1]'" } else { "x'0000803F0000803F'" };
    let at = |hours: i64| format!("'2026-01-{:02}T{:02}:00:00.000000Z'", 10 + hours / 24, hours % 24);
    let mut script = String::new();
    for (number, (start, end, status, parent)) in shapes.iter().enumerate() {
        let parent = parent.map_or("NULL".to_owned(), |parent| format!("'pa-{parent:02}'"));
        script.push_str(&format!(
            "INSERT INTO episodes (id, agent_id, status, started_at, ended_at, parent_id) VALUES \
             ('pa-{number:02}', 'pa', '{status}', {}, {}, {parent}); \
             INSERT INTO episode_embeddings (episode_id, embedding) VALUES ('pa-{number:02}', {vector});\n",
            at(*start),
            at(*end)
        ));
    }
    world.execute(&script).await;
}

#[test]
fn two_that_would_choose_each_other_and_a_ring_become_no_circle() {
    block_on(async {
        for batch in [1, 2, 500] {
            for world in on_both(1).await {
                // 0 and 1 begin and end in the same moment; 2 to 5 ended before they began; 6 hangs below the younger 7;
                // 8 was abandoned.
                let ring = [(20, 15, "closed", None), (21, 14, "closed", None), (22, 13, "closed", None)];
                let mut shapes: Vec<Shape> = vec![(5, 5, "closed", None), (5, 5, "closed", None)];
                shapes.extend(ring);
                shapes.push((23, 12, "closed", None));
                shapes.extend([(50, 51, "closed", Some(7)), (52, 53, "closed", None), (53, 54, "abandoned", None)]);
                filled(&world, &shapes).await;
                world.backfill("parents", batch).await;
                let (circular, parents) = in_circles(&world).await;
                assert_eq!(circular, 0, "{batch}: {parents:?}");
                assert!(parents.values().all(|parent| parent != "pa-08"), "abandoned: {parents:?}");
                // What hangs below the episode itself is no parent of it.
                assert_ne!(parents["pa-07"], "pa-06", "{parents:?}");
                assert_eq!((parents["pa-01"].as_str(), parents["pa-00"].as_str()), ("pa-00", "-"), "{parents:?}");
            }
        }
    });
}

#[test]
fn the_batch_size_changes_nothing_and_stored_circles_grow_no_arms() {
    block_on(async {
        let (empty, folder) = (on_sqlite(1).await, tempfile::tempdir().expect("a folder"));
        let copied = async |world: &World, name: String| {
            let path = folder.path().join(name);
            world.execute(&format!("VACUUM INTO '{}'", path.display())).await;
            World::view(&Target::File(path)).await
        };
        for seed in 0..12_u64 {
            let mut chance = StdRng::seed_from_u64(seed);
            let shapes: Vec<Shape> = (0..16)
                .map(|_| {
                    let start = chance.random_range(0..40);
                    let end = start + chance.random_range(-6..6);
                    let status = if chance.random_bool(0.1) { "abandoned" } else { "closed" };
                    (start, end.max(0), status, chance.random_bool(0.3).then(|| chance.random_range(0..16)))
                })
                .collect();
            let full = copied(&empty, format!("{seed}.db")).await;
            filled(&full, &shapes).await;
            let (before, _) = in_circles(&full).await;
            let mut results = Vec::new();
            for batch in [1, 3, 500] {
                let world = copied(&full, format!("{seed}-{batch}.db")).await;
                world.backfill("parents", batch).await;
                let (after, parents) = in_circles(&world).await;
                assert_eq!(before, after, "seed {seed}, batch {batch}: {shapes:?} {parents:?}");
                results.push(parents);
            }
            assert!(results.windows(2).all(|pair| pair[0] == pair[1]), "seed {seed}: {results:?}");
        }
    });
}
