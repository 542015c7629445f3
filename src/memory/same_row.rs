//! Whether two rows of one id are the same row. Ids of different databases are alike by chance: numbers, `ep_1`. Pure.

use super::{Entity, Row, time};

/// Columns of an entity that say to whom or to what a row belongs. Where a row has a user, the link to its episode may be
/// corrected.
fn owners(entity: Entity) -> impl Iterator<Item = &'static str> {
    let is_fixed = move |name: &&str| *name != "episode_id" || entity.column("user_id").is_none();
    let names = ["user_id", "agent_id", "episode_id", "run_id"].into_iter();
    names.filter(move |name| entity.column(name).is_some()).filter(is_fixed)
}

/// Columns that tell rows of one id apart, and the id.
pub fn columns(entity: Entity) -> Vec<&'static str> {
    let mut columns = vec!["id"];
    columns.extend(owners(entity));
    match entity {
        Entity::Subject => columns.extend(["name", "handles"]),
        // A bank is its user's and agent's, whenever it was made.
        Entity::Profile => {}
        _ => columns.extend(entity.creation_column()),
    }
    columns
}

/// The column by which two rows of one id are different rows; `None` where nothing that both say tells them apart. A row may
/// have changed in everything else.
pub fn difference(a: &Row, b: &Row) -> Option<&'static str> {
    if a.entity == Entity::Subject {
        return is_other_person(a, b).then_some("handles");
    }
    let made = a.entity.creation_column().filter(|_| a.entity != Entity::Profile);
    let is_other_time = |column: &&str| {
        let times = a.text(column).zip(b.text(column));
        times.is_some_and(|(a, b)| time::are_apart(a, b))
    };
    owner_difference(a, b).or_else(|| made.filter(is_other_time))
}

/// The column by which two rows belong to different owners; `None` where nothing that both say tells so.
pub fn owner_difference(a: &Row, b: &Row) -> Option<&'static str> {
    let differs = |column: &&str| {
        let told = |row| Row::text(row, column).filter(|id| !id.is_empty()).map(str::to_lowercase);
        told(a).zip(told(b)).is_some_and(|(a, b)| a != b)
    };
    owners(a.entity).find(differs)
}

/// Whether two people of one id have different names, and no handle in common.
fn is_other_person(a: &Row, b: &Row) -> bool {
    let names = a.text("name").zip(b.text("name"));
    let (handles, others) = (a.list("handles"), b.list("handles"));
    let has_both = !handles.is_empty() && !others.is_empty();
    let shared = || handles.iter().any(|handle| others.iter().any(|other| handle.eq_ignore_ascii_case(other)));
    names.is_some_and(|(a, b)| a != b) && has_both && !shared()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn row(entity: Entity, values: &[(&str, Value)]) -> Row {
        let mut row = Row::empty(entity);
        values.iter().for_each(|(column, value)| row.set(column, value.clone()));
        row
    }

    #[test]
    fn rows_of_one_id_differ_by_their_owner_or_the_time_they_were_made() {
        let ann = [("id", json!("1")), ("user_id", json!("ann")), ("started_at", json!("2026-01-01T00:00:00.000000Z"))];
        let of = |column: &str, value: Value| {
            let mut other = row(Entity::Episode, &ann);
            other.set(column, value);
            difference(&row(Entity::Episode, &ann), &other)
        };
        assert_eq!(of("title", json!("changed since")), None);
        assert_eq!(of("user_id", json!("Ann")), None);
        assert_eq!(of("user_id", Value::Null), None);
        assert_eq!(of("user_id", json!("bob")), Some("user_id"));
        assert_eq!(of("started_at", json!("2026-01-01T00:00:00.400000Z")), None);
        assert_eq!(of("started_at", json!("2026-02-01T00:00:00.000000Z")), Some("started_at"));
        let bank = |at: &str| row(Entity::Profile, &[("user_id", json!("ann")), ("created_at", json!(at))]);
        let times = ["2026-01-01T00:00:00.000000Z", "2026-02-01T00:00:00.000000Z"];
        assert_eq!(difference(&bank(times[0]), &bank(times[1])), None);
    }

    #[test]
    fn a_person_is_another_one_with_another_name_and_other_handles() {
        let person = |name: &str, handles: Value| row(Entity::Subject, &[("name", json!(name)), ("handles", handles)]);
        let ann = person("Ann", json!(["ann@x.org"]));
        assert_eq!(difference(&ann, &person("Bob", json!(["bob@x.org"]))), Some("handles"));
        assert_eq!(difference(&ann, &person("Ann", json!(["new@x.org"]))), None);
        assert_eq!(difference(&ann, &person("Ann Smith", json!(["ANN@x.org"]))), None);
        assert_eq!(difference(&ann, &person("Bob", json!([]))), None);
    }
}
