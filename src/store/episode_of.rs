//! Derives the episode of a feedback row whose columns do not name one: the only episode of its execution, otherwise
//! the one that lists it. Only rows that are shown, listed or exported are completed this way; changes follow stored
//! links.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::Value;
use tokio::sync::OnceCell;

use super::dialect::{self, PgType};
use super::encode::plain_column;
use super::page::named_ids;
use super::select::{Projection, SelectStatement, any_of};
use super::walk::{NarrowCondition, RowWalk};
use super::{ContextReader, StoreError, codec};
use crate::layout::{BoundColumn, BoundSource, Derivation, Engine, EpisodeLink, LinkBy, StoredAs};
use crate::memory::filter::{Filter, Operand, Operator};
use crate::memory::{Entity, Row};

/// Values per IN list.
const IN_LIST: usize = 400;

/// Ids per statement.
const AT_ONCE: usize = 2_000;

/// Most episodes, executions and ids held in memory.
const MOST_HELD: usize = 2_000_000;

/// Columns of episodes to read, in addition to their lists.
const EPISODE: [&str; 4] = ["id", "agent_id", "execution_ids", "started_at"];

/// Conditions for the rows of an episode: by stored back-link, by id, by execution.
#[derive(Debug, Default)]
pub(super) struct EpisodeBelonging {
    episode: String,
    ids: Vec<String>,
    executions: Vec<String>,
}

impl EpisodeBelonging {
    /// Adds the condition; does nothing if the database cannot evaluate it.
    pub fn narrow(&self, source: &BoundSource, statement: &mut SelectStatement) {
        let before = statement.params.len();
        let ways = [
            ("episode_id", std::slice::from_ref(&self.episode)),
            ("id", &self.ids),
            ("execution_id", &self.executions),
        ];
        let mut conditions = Vec::new();
        for (column, values) in ways.into_iter().filter(|(c, v)| !v.is_empty() && !source.column(c).is_empty()) {
            match any_of(source, column, values, statement) {
                Some(condition) => conditions.push(condition),
                None => return statement.params.truncate(before),
            }
        }
        let condition = if conditions.is_empty() { "1 = 0".to_owned() } else { conditions.join(" OR ") };
        let _ = write!(statement.sql, " AND ({condition})");
    }
}

impl<'a> ContextReader<'a> {
    /// Reads the list filters about the episode, if that is not a stored column; `None` if they do not narrow the rows.
    ///
    /// # Errors
    /// The engine's refusal.
    pub(super) async fn belonging(
        self,
        source: &BoundSource,
        filters: &[Filter],
    ) -> Result<Option<EpisodeBelonging>, StoreError> {
        let asked = filters.iter().find_map(|f| match &f.value {
            Operand::Text(id) if f.column == "episode_id" && f.op == Operator::Equal && f.or.is_empty() => Some(id),
            _ => None,
        });
        let Some(episode) = asked.filter(|_| source.derive == Some(Derivation::EpisodeLinks)) else { return Ok(None) };
        let links = self.episode_links();
        let mut belonging = EpisodeBelonging { episode: episode.clone(), ..EpisodeBelonging::default() };
        for row in self
            .store
            .related_columns(Entity::Episode, "id", std::slice::from_ref(episode), Some(&columns(&links)))
            .await?
        {
            belonging.ids.extend(named_ids(&row, &links, source.entity).into_iter().map(Cow::into_owned));
            belonging.executions.extend(row.list("execution_ids").into_iter().map(str::to_owned));
        }
        Ok(Some(belonging))
    }

    /// Sets the episode of rows that name none. With `index`, the second of several calls reads the links of all
    /// episodes, and later calls read none.
    ///
    /// # Errors
    /// The engine's refusal.
    pub(super) async fn fill_episodes(
        self,
        source: &BoundSource,
        rows: Vec<&mut Row>,
        index: Option<&EpisodeIndex>,
    ) -> Result<(), StoreError> {
        let mut open: Vec<&mut Row> = rows.into_iter().filter(|row| row.text("episode_id").is_none()).collect();
        if source.derive != Some(Derivation::EpisodeLinks) || open.is_empty() {
            return Ok(());
        }
        let links = self.episode_links();
        let columns = columns(&links);
        if let Some(index) = index.filter(|index| index.calls.fetch_add(1, Ordering::Relaxed) > 0)
            && let Some(all) = index.all.get_or_try_init(|| self.all_links(&links, source.entity, &columns)).await?
        {
            for row in open {
                if let Some(episode) = all.by_execution(row).or_else(|| all.by_list(row)) {
                    row.set("episode_id", Value::from(episode));
                }
            }
            return Ok(());
        }
        let executions: HashSet<&str> = open.iter().filter_map(|row| row.text("execution_id")).collect();
        let mut executions: Vec<String> = executions.into_iter().map(str::to_owned).collect();
        executions.sort_unstable();
        let mut runs = EpisodeLinks::default();
        for of_runs in self.that_link_to(source.entity) {
            let narrow = vec![NarrowCondition::Names("execution_ids", &executions)];
            let found = self
                .store
                .walks()
                .walk_all(&RowWalk { source: of_runs, columns: &columns, stored: &[], narrow })
                .await?;
            found.iter().for_each(|found| runs.add(&found.row, HashSet::new()));
        }
        open.retain_mut(|row| {
            let Some(episode) = runs.by_execution(row).map(Value::from) else { return true };
            row.set("episode_id", episode);
            false
        });
        for part in open.chunks_mut(AT_ONCE) {
            let ids: Vec<String> = part.iter().map(|row| row.id().to_owned()).collect();
            let naming = self.naming(&links, source.entity, &ids, &columns).await?;
            for row in part {
                if let Some(episode) = naming.by_list(row).map(Value::from) {
                    row.set("episode_id", episode);
                }
            }
        }
        Ok(())
    }

    /// The ids of the feedback that belongs to an episode by its executions, each with the number of its source.
    ///
    /// # Errors
    /// The engine's refusal.
    pub(super) async fn by_execution_of(self, episode: &Row, to: Entity) -> Result<Vec<(u16, String)>, StoreError> {
        let mut executions = episode.list("execution_ids");
        executions.sort_unstable();
        executions.dedup();
        let columns = ["id", "episode_id", "execution_id", "agent_id"];
        let mut found = Vec::new();
        let sources = self.store.sources_of(to).unwrap_or_default().into_iter().enumerate();
        for (number, source) in sources.filter(|(_, s)| s.derive == Some(Derivation::EpisodeLinks)) {
            for executions in executions.chunks(IN_LIST) {
                let mut rows = Vec::new();
                let take = |row, _| {
                    rows.push(row);
                    ControlFlow::Continue(())
                };
                self.store.each_related_in(source, "execution_id", executions, &[], Some(&columns), take).await?;
                self.fill_episodes(source, rows.iter_mut().collect(), None).await?;
                let of_it = rows.into_iter().filter(|row: &Row| row.text("episode_id") == Some(episode.id()));
                found.extend(of_it.map(|row| (number as u16, row.id().to_owned())));
            }
        }
        Ok(found)
    }

    /// Completes rows that were found by stored links, source by source.
    ///
    /// # Errors
    /// The engine's refusal.
    pub(super) async fn fill_all_episodes<'r>(
        self,
        to: Entity,
        rows: impl IntoIterator<Item = &'r mut Row>,
    ) -> Result<(), StoreError> {
        let mut rows: Vec<&mut Row> = rows.into_iter().collect();
        for source in self.store.sources_of(to).unwrap_or_default() {
            let of_source = |row: &&mut Row| to != Entity::Feedback || row.text("source") == Some(&source.label);
            let of_source = rows.iter_mut().map(|row| &mut **row).filter(of_source).collect();
            self.fill_episodes(source, of_source, None).await?;
        }
        Ok(())
    }

    /// The sources of episodes from which a row of `to` may get its episode, without conversations of other layouts.
    fn that_link_to(self, to: Entity) -> impl Iterator<Item = &'a BoundSource> {
        let links = move |source: &&BoundSource| {
            let names = !source.column("execution_ids").is_empty() || source.links.iter().any(|link| link.to == to);
            names && plain_column(source, "id").is_some()
        };
        self.store.sources_of(Entity::Episode).unwrap_or_default().into_iter().filter(links)
    }

    /// The episodes whose lists contain some of the ids, each with those ids.
    async fn naming(
        self,
        links: &[EpisodeLink],
        to: Entity,
        ids: &[String],
        columns: &[&str],
    ) -> Result<EpisodeLinks, StoreError> {
        let wanted: HashSet<&str> = ids.iter().map(String::as_str).collect();
        let mut naming = EpisodeLinks::default();
        for source in self.that_link_to(to) {
            let projection = Projection::new(self.store.engine(), source, Some(columns), None);
            let mut statement = projection.select(source, &[]);
            narrow_to_naming(source, to, ids, &mut statement);
            self.store
                .scan(&statement, |mut raw| {
                    let row = codec::decode(source, &projection, &mut raw);
                    let named = named_ids(&row, links, to).into_iter().filter(|id| wanted.contains(&**id));
                    let named: HashSet<String> = named.map(Cow::into_owned).collect();
                    if !named.is_empty() {
                        naming.add(&row, named);
                    }
                    ControlFlow::Continue(())
                })
                .await?;
        }
        Ok(naming)
    }

    /// The links of all episodes; `None` if they are too many for memory.
    async fn all_links(
        self,
        links: &[EpisodeLink],
        to: Entity,
        columns: &[&str],
    ) -> Result<Option<EpisodeLinks>, StoreError> {
        let mut all = EpisodeLinks::default();
        for source in self.that_link_to(to) {
            let projection = Projection::new(self.store.engine(), source, Some(columns), None);
            self.store
                .scan(&projection.select(source, &[]), |mut raw| {
                    let row = codec::decode(source, &projection, &mut raw);
                    let named = named_ids(&row, links, to).into_iter().map(Cow::into_owned).collect();
                    all.add(&row, named);
                    if all.held > MOST_HELD { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
                })
                .await?;
        }
        Ok((all.held <= MOST_HELD).then_some(all))
    }
}

/// Index of the episodes that rows of a list may belong to, kept from page to page.
#[derive(Debug, Default)]
pub struct EpisodeIndex {
    calls: AtomicUsize,
    all: OnceCell<Option<EpisodeLinks>>,
}

/// Executions and rows listed by some episodes.
#[derive(Debug, Default)]
struct EpisodeLinks {
    episodes: Vec<Linking>,
    of_run: HashMap<String, Vec<usize>>,
    naming: HashMap<String, Vec<usize>>,
    /// Number of episodes, executions and listed ids together.
    held: usize,
}

/// The part of an episode that its links need.
#[derive(Debug)]
struct Linking {
    id: String,
    agent: Option<String>,
    started: Option<String>,
}

impl EpisodeLinks {
    fn add(&mut self, episode: &Row, named: HashSet<String>) {
        let place = self.episodes.len();
        let text = |column| episode.text(column).map(str::to_owned);
        let linking = Linking { id: episode.id().to_owned(), agent: text("agent_id"), started: text("started_at") };
        self.episodes.push(linking);
        let runs: HashSet<&str> = episode.list("execution_ids").into_iter().collect();
        self.held += 1 + runs.len() + named.len();
        for run in runs {
            self.of_run.entry(run.to_owned()).or_default().push(place);
        }
        for id in named {
            self.naming.entry(id).or_default().push(place);
        }
    }

    /// The only episode of the same agent and execution.
    fn by_execution(&self, row: &Row) -> Option<&str> {
        let of_run = self.of_run.get(row.text("execution_id")?)?;
        let mut same = of_run.iter().map(|i| &self.episodes[*i]).filter(|e| e.agent.as_deref() == row.text("agent_id"));
        same.next().filter(|_| same.next().is_none()).map(|e| e.id.as_str())
    }

    /// The episode that lists a row. If there are several: that of its execution, otherwise the first.
    fn by_list(&self, row: &Row) -> Option<&str> {
        let of_run = row.text("execution_id").and_then(|run| self.of_run.get(run));
        let best = self.naming.get(row.id())?.iter().min_by_key(|i| {
            let episode = &self.episodes[**i];
            (!of_run.is_some_and(|places| places.contains(i)), episode.started.as_deref(), &episode.id)
        })?;
        Some(&self.episodes[*best].id)
    }
}

/// The columns of an episode that the derivation uses.
fn columns(links: &[EpisodeLink]) -> Vec<&'static str> {
    let mut columns = EPISODE.to_vec();
    for link in links.iter().filter(|l| l.to == Entity::Feedback) {
        if let LinkBy::List(column) | LinkBy::Path(column, _) = &link.by {
            columns.extend(Entity::Episode.column(column).map(|c| c.name));
        }
    }
    columns
}

/// Narrows to the episodes whose lists may contain one of the ids, if the engine can tell.
fn narrow_to_naming(source: &BoundSource, to: Entity, ids: &[String], statement: &mut SelectStatement) {
    let engine = statement.engine;
    let mut places = Vec::new();
    for link in source.links.iter().filter(|l| l.to == to) {
        let (column, path) = match &link.by {
            LinkBy::List(column) => (column, None),
            LinkBy::Path(column, path) => (column, Some(path.as_str())),
            LinkBy::Back => continue,
        };
        let [way] = source.column(column) else { return };
        match list_text(engine, way, path) {
            Some(place) => places.push(place),
            None => return,
        }
    }
    if places.is_empty() {
        let _ = write!(statement.sql, " AND 1 = 0");
        return;
    }
    let mark = statement.bind(super::fetched::FetchedValue::Text(Value::from(ids.to_vec()).to_string()), "text");
    let conditions: Vec<String> = places
        .iter()
        .map(|items| match engine {
            Engine::Sqlite => format!(
                "EXISTS (SELECT 1 FROM json_each({items}) l WHERE CAST(l.value AS TEXT) IN \
                 (SELECT value FROM json_each({mark})))"
            ),
            Engine::Postgres => format!(
                "EXISTS (SELECT 1 FROM json_array_elements_text({items}) AS l(item) WHERE l.item IN \
                 (SELECT jsonb_array_elements_text({mark}::jsonb)))"
            ),
        })
        .collect();
    let _ = write!(statement.sql, " AND ({})", conditions.join(" OR "));
}

/// A stored list, or the list at a path of a stored JSON value, as a JSON array; anything else counts as empty.
fn list_text(engine: Engine, way: &BoundColumn, path: Option<&str>) -> Option<String> {
    let path = match (path, &way.inside.path) {
        (Some(_), Some(_)) => return None,
        (path, own) => path.or(own.as_deref()),
    };
    // Only plain names; others are left to the canonical value.
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let plain_path = path.is_none_or(|p| p.split('.').all(|step| !step.is_empty() && step.chars().all(plain)));
    let is_list = matches!(way.stored, StoredAs::Plain | StoredAs::Numbers);
    if !plain_path || !is_list || !way.inside.decode.is_empty() || way.inside.by.is_some() {
        return None;
    }
    let bare = dialect::expression(&way.origin)?;
    match engine {
        Engine::Sqlite => {
            let text = format!("CAST({bare} AS TEXT)");
            let at = path.map(|p| format!("$.{p}"));
            let list = at.map_or(text.clone(), |at| format!("json_extract({text}, '{at}')"));
            Some(format!("CASE WHEN json_valid({text}) AND json_type({list}) = 'array' THEN {list} ELSE '[]' END"))
        }
        Engine::Postgres => match PgType::of(dialect::declared(&way.origin)) {
            PgType::Json => {
                let value = format!("({bare})::json");
                let list = path.map_or(value.clone(), |p| format!("({value} #> '{{{}}}')", p.replace('.', ",")));
                Some(format!("CASE WHEN json_typeof({list}) = 'array' THEN {list} ELSE '[]'::json END"))
            }
            _ => None,
        },
    }
}
