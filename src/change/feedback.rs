//! Adds, edits, and removes feedback, with everything that depends on it: the episode's id list, the back-link, the
//! aggregate score.

use serde_json::{Map, Value};

use super::draft::{Draft, check_id};
use super::edit::check_seen;
use super::operation::FeedbackFields;
use super::plan::{ChangeDanger, Plan};
use super::{ChangeError, new_id};
use crate::layout::{BoundSource, LinkBy};
use crate::memory::filter::{Filter, Operand, Operator};
use crate::memory::id_list::{self, IdSpelling};
use crate::memory::json::{self, ListReading};
use crate::memory::nearest::unknown;
use crate::memory::query::{PageStart, Query};
use crate::memory::{Entity, Row, agreeing, feedback, score, text_check};
use crate::store::codec;
use crate::store::encode::{GivenValue, LocatedRow, plain_column, spelling_of_ids, table_of};
use crate::store::fetched::FetchedValue;
use crate::store::hanging::HangingRows;
use crate::store::stored::{Cell, Mutation, StoredRows};
use crate::store::{Store, StoreError, named_ids};

/// Most bytes of a correction.
pub const CORRECTION: usize = 100_000;

/// Kinds that can be given.
const KINDS: [&str; 3] = [feedback::THUMBS_UP, feedback::THUMBS_DOWN, feedback::RATING];

impl FeedbackFields {
    /// Checks the fields by themselves.
    ///
    /// # Errors
    /// [`ChangeError::Usage`] with the error.
    fn check(&self) -> Result<(), ChangeError> {
        let usage = |words: String| Err(ChangeError::Usage(words));
        if let Some(kind) = self.kind.as_deref().filter(|k| !KINDS.contains(k)) {
            return usage(unknown("kind of feedback", kind, KINDS));
        }
        if let Some(rating) = self.rating.filter(|r| !(1..=5).contains(r)) {
            return usage(format!("a rating is 1 to 5, not {rating}"));
        }
        if let Some(length) = self.correction.as_ref().map(String::len).filter(|n| *n > CORRECTION) {
            return usage(format!("the correction has {length} bytes or more; the maximum is {CORRECTION}"));
        }
        match &self.user {
            Some(user) => check_id(Entity::Subject, user),
            None => Ok(()),
        }
    }
}

/// Plans a new row for an episode.
///
/// # Errors
/// [`ChangeError::Usage`], [`ChangeError::NotFound`], or [`ChangeError::Refused`] if the layout cannot store it.
pub async fn add(store: &Store, episode: &str, said: &FeedbackFields) -> Result<Plan, ChangeError> {
    said.check()?;
    let Some(kind) = &said.kind else {
        return Err(ChangeError::Usage(format!("say which --kind of feedback it is: {}", KINDS.join(", "))));
    };
    check_rating(kind, said.rating, said.rating.is_some())?;
    let mut draft = Draft::new(store, "feedback.add", ChangeDanger::Safe).await?;
    let target = target(store, kind)?;
    addable(target)?;
    let found = draft.locate(Entity::Episode, episode).await?;
    let mut row = Row::empty(Entity::Feedback);
    let id = new_id();
    let user = said.user.clone().or_else(|| found.row.text("user_id").map(str::to_owned));
    let correction = said.correction.as_deref().map(|text| checked(&mut draft, text));
    row.set("id", Value::from(id.clone()));
    row.set("agent_id", found.row.get("agent_id").clone());
    row.set("user_id", user.map_or(Value::Null, Value::from));
    row.set("kind", Value::from(kind.clone()));
    row.set("rating", said.rating.map_or(Value::Null, Value::from));
    row.set("correction", correction.map_or(Value::Null, Value::from));
    codec::score(&mut row, target);
    if !said.again
        && let Some(there) = says_the_same(&mut draft, &found, &row).await?
    {
        let words = format!("feedback {there} already says the same about this episode; --again adds another");
        draft.effects.push(words);
        return Ok(draft.seal());
    }
    if plain_column(target, "execution_id").is_some() {
        row.set("execution_id", found.row.list("execution_ids").first().map_or(Value::Null, |id| Value::from(*id)));
    }
    if plain_column(target, "episode_id").is_some() {
        row.set("episode_id", Value::from(episode));
    } else if feedback_list(found.source).is_none() {
        return Err(ChangeError::Refused(format!(
            "feedback cannot be linked to an episode here: {} has neither a list of feedback nor a back-link",
            found.table().title()
        )));
    }
    if row.get("user_id").is_null() && required(store, target, "user_id").await? {
        return Err(ChangeError::Refused(format!(
            "{} needs a user, and the episode names none: give --user",
            table_of(target).title()
        )));
    }
    known_user(store, target, &row).await?;
    let columns = ["id", "episode_id", "execution_id", "agent_id", "user_id", "kind", "rating", "correction"];
    let mut values: Vec<(&str, GivenValue)> = columns
        .into_iter()
        .filter(|c| !row.get(c).is_null() || plain_column(target, c).is_some())
        .map(|c| (c, GivenValue::Is(row.get(c).clone())))
        .collect();
    values.push(("created_at", GivenValue::Now));
    let insertion = store.encoder().insertion(target, &values, Some(&found.image)).await?;
    draft.adds(&row);
    draft.push(insertion);
    follow(&mut draft, &found, ListChange::With(&id), (None, Some(&row))).await?;
    Ok(draft.seal())
}

/// Plans a changed row.
///
/// # Errors
/// As [`add`]; [`ChangeError::Conflict`] if the `seen` values have changed.
pub async fn edit(
    store: &Store,
    id: &str,
    said: &FeedbackFields,
    seen: Option<&Map<String, Value>>,
) -> Result<Plan, ChangeError> {
    said.check()?;
    if *said == FeedbackFields::default() && seen.is_none() {
        return Err(ChangeError::Usage("say what to change: --kind, --rating, --correction or --user".to_owned()));
    }
    let mut draft = Draft::new(store, "feedback.edit", ChangeDanger::Guarded).await?;
    let found = draft.locate(Entity::Feedback, id).await?;
    let write = writable(found.source)?;
    seen.map_or(Ok(()), |seen| check_seen(&found.row, seen))?;
    let mut row = found.row.clone();
    if said.kind.is_some() || said.rating.is_some() {
        let kind = said.kind.clone().or_else(|| row.text("kind").map(str::to_owned)).unwrap_or_default();
        let rating = said.rating.or_else(|| row.get("rating").as_i64());
        check_rating(&kind, rating, said.rating.is_some())?;
        if write.kinds.as_ref().is_some_and(|kinds| !kinds.contains(&kind)) {
            return Err(ChangeError::Refused(cannot_hold(found.source, &kind)));
        }
        row.set("kind", Value::from(kind.clone()));
        row.set("rating", rating.map_or(Value::Null, Value::from));
        if let Some(rating) = rating.filter(|_| kind != feedback::RATING) {
            draft
                .effects
                .push(format!("the row keeps its rating {rating}, which does not count together with a thumb"));
        }
    }
    if let Some(text) = &said.correction {
        let clean = checked(&mut draft, text);
        row.set("correction", Value::from(clean));
    }
    if let Some(user) = &said.user {
        row.set("user_id", Value::from(user.clone()));
        known_user(store, found.source, &row).await?;
    }
    codec::score(&mut row, found.source);
    let differs = |column: &&str| found.row.get(column) != row.get(column);
    let columns: Vec<&str> = ["kind", "rating", "correction", "user_id"].into_iter().filter(differs).collect();
    if columns.is_empty() {
        return Ok(draft.seal());
    }
    let values: Vec<(&str, GivenValue)> =
        columns.into_iter().map(|c| (c, GivenValue::Is(row.get(c).clone()))).collect();
    draft.sets(&found, &values, &row).await?;
    for episode in hanging(&mut draft, &found).await? {
        follow(&mut draft, &episode, ListChange::None, (Some(&found.row), Some(&row))).await?;
    }
    Ok(draft.seal())
}

/// Plans a row removed.
///
/// # Errors
/// As [`add`].
pub async fn remove(store: &Store, id: &str) -> Result<Plan, ChangeError> {
    let mut draft = Draft::new(store, "feedback.remove", ChangeDanger::Guarded).await?;
    let found = draft.locate(Entity::Feedback, id).await?;
    writable(found.source)?;
    draft.removes(&found.row);
    let shape = store.shapes().shape(&found.table()).await?;
    draft.push(found.removal(&shape).map_err(ChangeError::Refused)?);
    for episode in hanging(&mut draft, &found).await? {
        follow(&mut draft, &episode, ListChange::Without(id), (Some(&found.row), None)).await?;
    }
    Ok(draft.seal())
}

/// The id of equal feedback by the same person on an episode.
async fn says_the_same(
    draft: &mut Draft<'_>,
    episode: &LocatedRow<'_>,
    new: &Row,
) -> Result<Option<String>, ChangeError> {
    let said = |row: &Row, column: &str| row.text(column).unwrap_or_default().trim().to_owned();
    let is_same = |row: &&Row| {
        let equal = ["kind", "user_id", "correction"].iter().all(|column| said(row, column) == said(new, column));
        equal && row.get("rating") == new.get("rating")
    };
    let there = feedback_of(draft, episode, None).await?;
    let mut parts = draft.store.contexts().parts(there);
    loop {
        let rows = parts.next().await?;
        if rows.is_empty() {
            return Ok(None);
        }
        if let Some(row) = rows.iter().find(is_same) {
            return Ok(Some(row.id().to_owned()));
        }
    }
}

/// A rating belongs to the kind `rating`, and that kind needs one.
fn check_rating(kind: &str, rating: Option<i64>, said: bool) -> Result<(), ChangeError> {
    match (kind == feedback::RATING, rating) {
        (true, None) => Err(ChangeError::Usage("a rating needs --rating 1 to 5".to_owned())),
        (true, Some(rating)) if !(1..=5).contains(&rating) => {
            Err(ChangeError::Usage(format!("the stored rating {rating} is out of range: give --rating 1 to 5")))
        }
        (false, Some(_)) if said => Err(ChangeError::Usage(format!(
            "a rating does not count with the kind `{kind}`: say --kind rating as well"
        ))),
        _ => Ok(()),
    }
}

fn checked(draft: &mut Draft<'_>, text: &str) -> String {
    let (clean, found) = text_check::check(text);
    draft.disclosures.extend(found.sentences().into_iter().map(|words| format!("correction: {words}")));
    clean
}

/// The source for new feedback of a kind.
fn target<'s>(store: &'s Store, kind: &str) -> Result<&'s BoundSource, ChangeError> {
    let sources = store.sources_of(Entity::Feedback)?;
    let holds = |source: &&BoundSource| {
        let write = source.write.as_ref().filter(|w| w.refuse.is_none());
        write.is_some_and(|w| w.kinds.as_ref().is_none_or(|kinds| kinds.iter().any(|k| k == kind)))
    };
    if let Some(source) = sources.iter().copied().find(|s| holds(s)) {
        return Ok(source);
    }
    let refused = sources.iter().find_map(|source| writable(source).err());
    let nowhere = || sources.first().map(|s| cannot_hold(s, kind)).unwrap_or_default();
    Err(refused.unwrap_or_else(|| ChangeError::Refused(nowhere())))
}

fn cannot_hold(source: &BoundSource, kind: &str) -> String {
    format!("{} has no place for the kind `{kind}`", table_of(source).title())
}

/// Returns the rules for writing a source.
///
/// # Errors
/// [`ChangeError::Refused`] with the reason why it is not writable.
pub(super) fn writable(source: &BoundSource) -> Result<&crate::layout::Write, ChangeError> {
    match &source.write {
        Some(write) => match &write.refuse {
            None => Ok(write),
            Some(reason) => Err(ChangeError::Refused(reason.clone())),
        },
        None => Err(ChangeError::Refused(format!(
            "the layout {} does not say how to write rows of {}",
            source.layout,
            table_of(source).title()
        ))),
    }
}

/// Returns the rules for writing to a source, for a new row whose id the plan names.
///
/// # Errors
/// As [`writable`]; [`ChangeError::Refused`] if the engine numbers the rows, so that the id is not known before.
pub(super) fn addable(source: &BoundSource) -> Result<&crate::layout::Write, ChangeError> {
    let write = writable(source)?;
    if write.numbered {
        return Err(ChangeError::Refused(format!(
            "{} numbers its rows itself: the id of a new row cannot be planned",
            table_of(source).title()
        )));
    }
    Ok(write)
}

/// Refuses a user that a foreign key of the table would not accept. SQLite may not enforce it, but other readers rely
/// on it.
async fn known_user(store: &Store, source: &BoundSource, row: &Row) -> Result<(), ChangeError> {
    let (Some(user), Some((column, _))) = (row.text("user_id"), plain_column(source, "user_id")) else { return Ok(()) };
    let table = table_of(source);
    for key in store.shapes().column_keys_of(&table).await? {
        if !key.column.eq_ignore_ascii_case(column) {
            continue;
        }
        let rows = StoredRows::with(&key.to, &key.to_column, FetchedValue::Text(user.to_owned()));
        if store.shapes().images(&rows).await.is_ok_and(|images| images.is_empty()) {
            return Err(ChangeError::Refused(format!(
                "{}.{column} refers to {}.{}, which has no `{user}`: name a known user with --user (`list subject` shows \
                 them)",
                table.title(),
                key.to.title(),
                key.to_column
            )));
        }
    }
    Ok(())
}

async fn required(store: &Store, source: &BoundSource, column: &str) -> Result<bool, StoreError> {
    let shape = store.shapes().shape(&table_of(source)).await?;
    let name = plain_column(source, column).map(|(name, _)| name);
    Ok(name.and_then(|name| shape.column(name)).is_some_and(|c| c.required))
}

/// The stored column with an episode's list of feedback.
fn feedback_list(source: &BoundSource) -> Option<&str> {
    let linked = source.links.iter().find_map(|link| match &link.by {
        LinkBy::List(column) if link.to == Entity::Feedback => Some(column),
        _ => None,
    })?;
    plain_column(source, linked).map(|(name, _)| name)
}

/// Every episode that a feedback row depends on: by list and by back-link.
pub(super) async fn hanging<'s>(
    draft: &mut Draft<'s>,
    found: &LocatedRow<'_>,
) -> Result<Vec<LocatedRow<'s>>, ChangeError> {
    let store = draft.store;
    let mut ids: Vec<String> = found.row.text("episode_id").map(str::to_owned).into_iter().collect();
    let Ok(sources) = store.sources_of(Entity::Episode) else { return Ok(Vec::new()) };
    let listed = sources.iter().any(|source| feedback_list(source).is_some());
    if let Some(column) = Entity::Episode.column("feedback_ids").filter(|_| listed) {
        let mut query = Query::new(Entity::Episode);
        query.columns = Some(vec!["id"]);
        query.filters = vec![Filter::new(column.name, Operator::Has, Operand::Text(found.row.id().to_owned()))];
        loop {
            let page = store.page(&query).await?;
            ids.extend(page.rows.iter().map(|row| row.id().to_owned()));
            match page.next {
                Some(next) => query.start = PageStart::After(next),
                None => break,
            }
        }
    }
    ids.sort_unstable();
    ids.dedup();
    let mut episodes = Vec::new();
    for id in ids {
        // A dangling back-link has no aggregate to update.
        episodes.extend(draft.seek(Entity::Episode, &id).await?);
    }
    Ok(episodes)
}

enum ListChange<'a> {
    None,
    With(&'a str),
    Without(&'a str),
}

/// Updates an episode's list and aggregate after a change of one feedback row.
async fn follow(
    draft: &mut Draft<'_>,
    episode: &LocatedRow<'_>,
    list: ListChange<'_>,
    (was, is): (Option<&Row>, Option<&Row>),
) -> Result<(), ChangeError> {
    let store = draft.store;
    let rows = feedback_of(draft, episode, Some(feedback::SCORED)).await?;
    let before = rows.score();
    let after = ScoreTally::of(store, &rows, (was, is))?;
    let mut set: Vec<(String, Cell)> = Vec::new();
    let mut shown = episode.row.clone();
    let shape = store.shapes().shape(&episode.table()).await?;
    if let Some(column) = feedback_list(episode.source) {
        let stored = episode.image.get(column).unwrap_or(&FetchedValue::Null);
        let is_array = shape.column(column).is_some_and(|c| c.compared.ends_with("[]"));
        let spelling = (!is_array).then(|| spelling_of_ids(episode.source, "feedback_ids"));
        if let Some((new, ids)) = changed_list(spelling, stored, &list).map_err(|reason| {
            ChangeError::Refused(format!(
                "the list of feedback of episode {} cannot be changed: {reason}. The stored value is {}",
                episode.row.id(),
                quoted(stored)
            ))
        })? {
            shown.set("feedback_ids", Value::from(ids));
            set.push((column.to_owned(), Cell::Is(new)));
        }
    }
    let stored = episode.row.number("feedback_score");
    if plain_column(episode.source, "feedback_score").is_some() && !score::is_same_or_unknown(stored, after.mean) {
        draft.counts_seen(episode, &rows)?;
        shown.set("feedback_score", after.mean.map_or(Value::Null, Value::from));
    }
    if shown == episode.row {
        return Ok(());
    }
    writable(episode.source)?;
    let score = shown.get("feedback_score").clone();
    let values: &[(&str, GivenValue)] =
        if stored == score.as_f64() { &[] } else { &[("feedback_score", GivenValue::Is(score))] };
    let Mutation::Update { table, key, set: scored } = episode.update(&shape, values).map_err(ChangeError::Refused)?
    else {
        return Ok(());
    };
    set.extend(scored);
    explain(draft, episode.row.id(), stored, before, &after);
    draft.alters(&episode.row, &shown);
    draft.push(Mutation::Update { table, key, set });
    Ok(())
}

/// Feedback of an episode after the change.
struct ScoreTally {
    mean: Option<f64>,
    /// Number of rows whose score counts.
    counting: usize,
    rows: usize,
}

impl ScoreTally {
    /// The feedback of an episode with one row changed.
    fn of(
        store: &Store,
        there: &HangingRows,
        (was, is): (Option<&Row>, Option<&Row>),
    ) -> Result<ScoreTally, ChangeError> {
        let sources = store.sources_of(Entity::Feedback)?;
        let number = |row: &Row| sources.iter().position(|source| row.text("source") == Some(&source.label));
        let gone = was.map(|row| (row.id(), number(row)));
        let new = is.filter(|row| row.get("counts") == &Value::Bool(true)).and_then(|row| row.number("score"));
        let kept = there.scores().filter_map(|(id, source, score)| match gone {
            Some(gone) if gone == (&*id, Some(usize::from(source))) => is.map(|_| new),
            _ => Some(score),
        });
        let scores: Vec<Option<f64>> = kept.chain(is.filter(|_| was.is_none()).map(|_| new)).collect();
        let counting = scores.iter().flatten();
        Ok(ScoreTally {
            mean: feedback::aggregate(counting.clone().copied()),
            counting: counting.count(),
            rows: scores.len(),
        })
    }
}

fn explain(draft: &mut Draft<'_>, id: &str, stored: Option<f64>, before: Option<f64>, after: &ScoreTally) {
    let word = |x: Option<f64>| x.map_or("unknown".to_owned(), |x| format!("{x:.3}"));
    let words = format!(
        "episode {id}: the feedback score changes from {} to {}, the mean of {} of {{#}} {{row|rows}}",
        word(stored),
        word(after.mean),
        after.counting
    );
    draft.effects.push(agreeing(after.rows, &words));
    if !score::is_same_or_unknown(stored, before) {
        draft.disclosures.push(format!(
            "episode {id}: the stored score was {}, but its rows averaged {} before this change",
            word(stored),
            word(before)
        ));
    }
    let boost = |x: Option<f64>| match x {
        Some(x) if x > 0.0 => 0.2,
        Some(x) if x < 0.0 => -0.3,
        _ => 0.0,
    };
    let moved: f64 = boost(after.mean) - boost(stored);
    if moved != 0.0 {
        draft.effects.push(format!("episode {id}: its boosted recall score changes by {moved:+.1}"));
    }
}

/// Feedback of an episode, read after its inputs are watched: all columns, or those named.
async fn feedback_of(
    draft: &mut Draft<'_>,
    episode: &LocatedRow<'_>,
    wanted: Option<&[&str]>,
) -> Result<HangingRows, ChangeError> {
    let store = draft.store;
    let named = named_ids(&episode.row, &episode.source.links, Entity::Feedback);
    let back = episode.source.links.iter().any(|l| l.to == Entity::Feedback && l.by == LinkBy::Back);
    for source in store.sources_of(Entity::Feedback)? {
        let table = table_of(source);
        if let Some((column, way)) = plain_column(source, "id").filter(|_| !named.is_empty()) {
            let fitting = named.iter().filter(|id| store.encoder().can_be(way, id));
            let keys: Vec<Vec<FetchedValue>> = fitting.map(|id| vec![FetchedValue::Text(id.to_string())]).collect();
            if !keys.is_empty() {
                draft.watch(StoredRows { table: table.clone(), by: vec![column.to_owned()], keys }).await?;
            }
        }
        if let Some((column, way)) = plain_column(source, "episode_id").filter(|_| back)
            && store.encoder().can_be(way, episode.row.id())
        {
            draft.watch(StoredRows::with(&table, column, FetchedValue::Text(episode.row.id().to_owned()))).await?;
        }
    }
    let links = &episode.source.links;
    let mut found = store.contexts().linked(&[&episode.row], links, Entity::Feedback, wanted).await?;
    found.pop().ok_or_else(|| ChangeError::Failed(format!("feedback of episode {} was not read", episode.row.id())))
}

/// The stored list with or without an id, in its own storage class and spelling, and its ids; `None` if it does not
/// change. A list without a `spelling` is an array.
fn changed_list(
    spelling: Option<IdSpelling>,
    stored: &FetchedValue,
    change: &ListChange<'_>,
) -> Result<Option<(FetchedValue, Vec<String>)>, String> {
    let text = match stored {
        FetchedValue::Null => None,
        FetchedValue::Text(text) => Some(text.as_str()),
        FetchedValue::Bytes(bytes) => {
            Some(std::str::from_utf8(bytes).map_err(|_| "it is compressed or not text".to_owned())?)
        }
        _ => return Err("it is not a list".to_owned()),
    };
    let new = match (change, spelling) {
        (ListChange::None, _) => None,
        (ListChange::With(id), Some(spelling)) => Some(id_list::with(text, id, spelling)?),
        (ListChange::With(id), None) => Some(id_list::array_with(text, id)?),
        (ListChange::Without(id), Some(spelling)) => id_list::without(text, id, spelling)?,
        (ListChange::Without(id), None) => id_list::array_without(text, id)?,
    };
    let Some(new) = new else { return Ok(None) };
    let ids = match spelling {
        None => id_list::array_texts(&new)?,
        Some(IdSpelling::Texts) => json::read_list(Some(&new)).items,
        Some(IdSpelling::Numbers) => ListReading::from(json::read_ids(&new)).items,
    };
    let raw = if matches!(stored, FetchedValue::Bytes(_)) {
        FetchedValue::Bytes(new.into_bytes())
    } else {
        FetchedValue::Text(new)
    };
    Ok(Some((raw, ids)))
}

fn quoted(raw: &FetchedValue) -> String {
    let text = serde_json::to_string(raw).unwrap_or_default();
    match text.char_indices().nth(200) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}
