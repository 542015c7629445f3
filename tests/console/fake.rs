//! A console over rows in memory, which answers what the core asks for as the shell would.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use chrono::{DateTime, Utc};
use mnemoscope::change::plan::erasure::UnfinishedErasure;
use mnemoscope::console::core::zone::ShownZone;
use mnemoscope::console::core::{
    ClickTarget, ConsoleSettings, Content, Destination, Effect, Key, KeyMap, Message, OpenedDatabase, Related,
    Relation, Reply, Request, RequestFailure, RowKey, Ticket,
};
use mnemoscope::console::screens::findings::LookNews;
use mnemoscope::console::screens::home::messages::WaitingWork;
use mnemoscope::console::{Drawn, Painter};
use mnemoscope::console::{Model, update};
use mnemoscope::memory::chain::ParentLinks;
use mnemoscope::memory::invocation::Invocation;
use mnemoscope::memory::mask::Mask;
use mnemoscope::memory::query::{
    Capability, CountKind, DatabaseStatus, EntityStatus, EpisodeContext, LayoutStatus, Migrations, Page, PageStart,
    Query, ShownFinding, StoreStatus,
};
use mnemoscope::memory::{Entity, Row};
use mnemoscope::recall::inquiry::SavedQuestion;
use mnemoscope::ui::{Glyphs, Look, Theme};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use serde_json::{Value, json};

/// The time at which everything happens.
pub fn now() -> DateTime<Utc> {
    DateTime::from_timestamp(1_770_202_800, 0).expect("a time")
}

/// A row with these values.
pub fn row(entity: Entity, values: &[(&str, Value)]) -> Row {
    let mut row = Row::empty(entity);
    for (column, value) in values {
        assert!(entity.column(column).is_some(), "{entity} has no {column}");
        row.set(column, value.clone());
    }
    row
}

/// Canvas events that come with an episode.
const SHOWN: usize = 200;

/// Rows in memory.
#[derive(Default, Clone)]
pub struct Database {
    pub rows: BTreeMap<Entity, Vec<Row>>,
}

fn cursor_of(row: &Row) -> String {
    format!("{:?}", RowKey::of(row))
}

impl Database {
    fn of(&self, entity: Entity) -> &[Row] {
        self.rows.get(&entity).map_or(&[], Vec::as_slice)
    }

    fn page(&self, query: &Query) -> Page {
        let (column, descending) = match &query.order {
            Some(order) => (order.column, order.descending),
            None => (query.entity.time_column(), true),
        };
        let wanted = |row: &&Row| query.filters.iter().all(|filter| filter.matches(row));
        let mut rows: Vec<&Row> = self.of(query.entity).iter().filter(wanted).collect();
        let key = |row: &Row| (row.get(column).to_string(), row.id().to_owned());
        rows.sort_by(|a, b| if descending { key(b).cmp(&key(a)) } else { key(a).cmp(&key(b)) });
        let at = |cursor: &str| rows.iter().position(|row| cursor_of(row) == cursor).expect("a row of this list");
        let (from, to) = match &query.start {
            PageStart::First => (0, query.limit),
            PageStart::Last => (rows.len().saturating_sub(query.limit), rows.len()),
            PageStart::After(cursor) => (at(cursor) + 1, at(cursor) + 1 + query.limit),
            PageStart::Before(cursor) => (at(cursor).saturating_sub(query.limit), at(cursor)),
        };
        let to = to.min(rows.len());
        let page: Vec<Row> = rows[from.min(to)..to].iter().map(|row| (*row).clone()).collect();
        Page {
            next: page.last().filter(|_| to < rows.len()).map(cursor_of),
            previous: page.first().filter(|_| from > 0).map(cursor_of),
            rows: page,
        }
    }

    fn detail(&self, entity: Entity, key: &RowKey) -> Option<Content> {
        let found = self
            .of(entity)
            .iter()
            .find(|row| row.id() == key.id() && (key.is_id() || RowKey::of(row) == *key))?
            .clone();
        if entity != Entity::Episode {
            return Some(Content::Row(Box::new(found)));
        }
        let id = key.id();
        let of = |entity: Entity| -> Vec<Row> {
            self.of(entity).iter().filter(|row| row.text("episode_id") == Some(id)).cloned().collect()
        };
        let episodes = self.of(Entity::Episode);
        let links =
            ParentLinks::new(episodes.iter().map(|e| (e.id().to_owned(), e.text("parent_id").map(str::to_owned))));
        let chain = links.chain(id).expect("it is there");
        let mut related = chain.children.clone();
        let mut read = 0;
        while let Some(parent) = related.get(read).cloned() {
            let fresh: Vec<String> = links.children(&parent).into_iter().filter(|c| !related.contains(c)).collect();
            related.extend(fresh);
            read += 1;
        }
        related.extend(chain.ids.iter().filter(|other| *other != id).cloned());
        let relatives =
            related.into_iter().filter_map(|id| Some((id.clone(), episodes.iter().find(|e| e.id() == id)?.clone())));
        let canvas = of(Entity::CanvasEvent);
        let findings = if canvas.is_empty() {
            let message = "no canvas context: its session has no canvas events".to_owned();
            vec![ShownFinding { kind: "no_canvas_context".to_owned(), message, ids: Vec::new() }]
        } else {
            Vec::new()
        };
        let mut canvas = canvas;
        let others = canvas.len().saturating_sub(SHOWN);
        canvas.truncate(SHOWN);
        let more = (others > 0).then_some((Entity::CanvasEvent, others));
        Some(Content::Episode(Box::new(EpisodeContext {
            segments: of(Entity::Segment),
            canvas,
            feedback: of(Entity::Feedback),
            relatives: relatives.collect(),
            is_cut: false,
            chain,
            utility: of(Entity::UtilityEvent),
            links: of(Entity::MemoryLink),
            memories: self.of(Entity::Memory).to_vec(),
            events: Vec::new(),
            accesses: Vec::new(),
            more: more.into_iter().collect(),
            findings,
            episode: found,
        })))
    }

    fn related(&self, relations: &[(String, Relation)]) -> Vec<Related> {
        let group = |(title, relation): &(String, Relation)| match relation {
            Relation::Ids(entity, ids) => {
                let rows: Vec<Row> =
                    self.of(*entity).iter().filter(|row| ids.iter().any(|id| id == row.id())).cloned().collect();
                let there: BTreeSet<&str> = rows.iter().map(Row::id).collect();
                let dangling = ids.iter().filter(|id| !there.contains(id.as_str())).cloned().collect();
                Related { title: title.clone(), rows, more: false, dangling }
            }
            Relation::List(query) => {
                let page = self.page(query);
                Related { title: title.clone(), more: page.next.is_some(), rows: page.rows, dangling: Vec::new() }
            }
        };
        relations.iter().map(group).collect()
    }

    fn named(&self, wanted: &[(Entity, Vec<String>)]) -> Vec<Row> {
        let of = |(entity, ids): &(Entity, Vec<String>)| {
            let named = self.of(*entity).iter().filter(|row| ids.iter().any(|id| id == row.id()));
            named.cloned().collect::<Vec<_>>()
        };
        wanted.iter().flat_map(of).collect()
    }

    fn status(&self) -> StoreStatus {
        let entity = |(entity, rows): (&Entity, &Vec<Row>)| {
            let source = format!("table_of_{entity}");
            (
                entity.name(),
                EntityStatus {
                    source,
                    count: Some(rows.len() as i64),
                    count_kind: CountKind::Exact,
                    count_reason: None,
                },
            )
        };
        let layout = LayoutStatus {
            name: "made-up".to_owned(),
            variant: None,
            entities: self.rows.iter().map(entity).collect(),
            missing: Vec::new(),
        };
        StoreStatus {
            database: DatabaseStatus {
                engine: "sqlite".to_owned(),
                version: "3.51.3".to_owned(),
                location: "memory/made-up.db".to_owned(),
                read_only: true,
                notes: Vec::new(),
            },
            layouts: vec![layout],
            capabilities: self.capabilities(),
            migrations: Migrations::default(),
            tables: Vec::new(),
        }
    }

    fn capabilities(&self) -> Vec<Capability> {
        let capability = |entity: &Entity| {
            let available = self.rows.contains_key(entity);
            Capability {
                name: entity.name().to_owned(),
                available,
                reason: (!available).then(|| format!("made-up has no {}", entity.title())),
                remedy: (!available).then(|| "use another layout".to_owned()),
            }
        };
        Entity::ALL.iter().map(capability).collect()
    }
}

/// A console whose effects are answered.
pub struct Console {
    pub database: Database,
    pub model: Model,
    /// Effects that nothing here answers, in order.
    pub asked: Vec<Effect>,
    /// Effects that read, as long as answers are held back.
    pub held: VecDeque<Effect>,
    /// Answers are held back.
    pub holding: bool,
    /// A brief look for findings is told about by the test; else nothing is found.
    pub looked: bool,
    /// Failure that answers give instead of rows.
    pub failure: Option<RequestFailure>,
    /// Questions that are kept.
    pub saved: Vec<SavedQuestion>,
    /// Erasures that have not ended verified.
    pub unfinished: Vec<UnfinishedErasure>,
    /// People under a legal hold.
    pub legal_holds: Vec<String>,
    /// Work that waits for the user.
    pub work: WaitingWork,
    /// Files that are there.
    pub files: Vec<String>,
    /// Lists that are watched, with the number of the request.
    pub watched: Vec<(Ticket, Query)>,
    painter: Painter,
    pub drawn: Drawn,
}

impl Console {
    /// A console on its first screen.
    pub fn new(database: Database, width: u16, height: u16) -> Self {
        Console::with(database, width, height, false)
    }

    /// The same with personal values masked.
    pub fn masked(database: Database, width: u16, height: u16) -> Self {
        Console::with(database, width, height, true)
    }

    fn with(database: Database, width: u16, height: u16, masked: bool) -> Self {
        let opened = OpenedDatabase {
            location: "memory/made-up.db".to_owned(),
            invocation: Invocation::at("memory/made-up.db", &[]),
            layouts: vec!["made-up".to_owned()],
            capabilities: database.capabilities(),
            ..OpenedDatabase::default()
        };
        let settings = ConsoleSettings {
            theme: "dark".to_owned(),
            theme_chosen: false,
            own_themes: Vec::new(),
            keys: KeyMap::default(),
            mouse: true,
            wrap: true,
            zone: ShownZone::default(),
            vector_bytes: 256 << 20,
        };
        let mut console = Console {
            model: Model::new(opened, settings, Mask::new([7; 32]), masked),
            database,
            asked: Vec::new(),
            held: VecDeque::new(),
            holding: false,
            looked: false,
            failure: None,
            saved: Vec::new(),
            unfinished: Vec::new(),
            legal_holds: Vec::new(),
            work: WaitingWork::default(),
            files: Vec::new(),
            watched: Vec::new(),
            painter: Painter::default(),
            drawn: Drawn::default(),
        };
        console.tell(Message::Resize(width, height));
        console.tell(Message::Start(now()));
        console.draw();
        console
    }

    /// A message, and every answer that follows from it.
    pub fn tell(&mut self, message: Message) {
        let effects = update(&mut self.model, message);
        self.held.extend(effects);
        if !self.holding {
            self.answer();
        }
    }

    /// The reply to a request, and every answer that follows from it.
    pub fn reply(&mut self, ticket: Ticket, reply: Reply) {
        self.tell(Message::Reply(ticket, reply));
    }

    /// Answers what was held back, and what follows.
    pub fn answer(&mut self) {
        while let Some(effect) = self.held.pop_front() {
            if let Some(message) = self.respond(effect) {
                let effects = update(&mut self.model, message);
                self.held.extend(effects);
            }
        }
    }

    fn respond(&mut self, effect: Effect) -> Option<Message> {
        let (ticket, request) = match effect {
            Effect::Ask(ticket, Request::Renew(request)) => (ticket, *request),
            Effect::Ask(ticket, request) => (ticket, request),
            Effect::Cancel(ticket) => {
                self.watched.retain(|(watched, _)| *watched != ticket);
                return None;
            }
            Effect::SetTitle(_) => return None,
            other => {
                self.asked.push(other);
                return None;
            }
        };
        let failed = self.failure.clone();
        let database = &self.database;
        let reply = match request {
            Request::LoadStatus => Reply::Status(Ok(Box::new(database.status()))),
            Request::LoadPage(query) => Reply::Page(failed.map_or_else(|| Ok(database.page(&query)), Err)),
            Request::LoadDetail(entity, key) => {
                Reply::Detail(failed.map_or_else(|| Ok(database.detail(entity, &key)), Err))
            }
            Request::LoadRelated(relations) => Reply::Related(Ok(database.related(&relations))),
            Request::Study { question, .. } => {
                Reply::Answer(failed.map_or_else(|| Ok(super::studies::answer(&question)), Err))
            }
            Request::Recall { inquiry, at, .. } => {
                Reply::Recalled(failed.map_or_else(|| Ok(super::recall::recalled(database, &inquiry, &at)), Err))
            }
            Request::LoadSaved => Reply::Saved(Ok(self.saved.clone())),
            Request::SaveQuery(saved) => {
                self.saved.retain(|other| other.name != saved.name);
                self.saved.push(*saved);
                Reply::Saved(Ok(self.saved.clone()))
            }
            Request::ForgetQuery(name) => {
                self.saved.retain(|other| other.name != name);
                Reply::Saved(Ok(self.saved.clone()))
            }
            Request::Look { brief: true } if !self.looked => Reply::Finding(Ok(LookNews::Done)),
            Request::LoadUnfinished => Reply::Unfinished(self.unfinished.clone()),
            Request::LoadWork => Reply::Work(Ok(Box::new(self.work.clone()))),
            Request::LoadNames(wanted) => Reply::Named(Ok(database.named(&wanted))),
            Request::NamesDatabase(text) => Reply::NamesDatabase(self.files.contains(&text)),
            Request::LoadHolds => Reply::Holds(failed.map_or_else(|| Ok(self.legal_holds.clone()), Err)),
            Request::Watch(query) => {
                self.watched.push((ticket, *query));
                return None;
            }
            other => {
                self.asked.push(Effect::Ask(ticket, other));
                return None;
            }
        };
        Some(Message::Reply(ticket, reply))
    }

    /// Keys, one after the other, as the command table writes them; `'…'` types a text.
    pub fn press(&mut self, keys: &str) {
        let mut rest = keys.trim();
        while !rest.is_empty() {
            let (word, after) = if let Some(text) = rest.strip_prefix('\'') {
                let (text, after) = text.split_once('\'').expect("a closing quote");
                for c in text.chars() {
                    self.key(Key::plain(mnemoscope::console::core::Code::Char(c)));
                }
                ("", after)
            } else {
                rest.split_once(' ').unwrap_or((rest, ""))
            };
            if !word.is_empty() {
                let repeated = word.split_once('*').filter(|(name, _)| !name.is_empty());
                let (name, times) = repeated.map_or((word, 1), |(n, t)| (n, t.parse().expect("a number")));
                let key = Key::parse(name).unwrap_or_else(|| panic!("no key {name}"));
                for _ in 0..times {
                    self.key(key);
                }
            }
            rest = after.trim_start();
        }
        self.draw();
    }

    fn key(&mut self, key: Key) {
        self.tell(Message::Key(key));
        self.draw();
    }

    /// Clicks on the first place that shows a text.
    pub fn click(&mut self, text: &str) {
        let lines = self.lines();
        let (y, x) = lines
            .iter()
            .enumerate()
            .find_map(|(y, line)| Some((y, line[..line.find(text)?].chars().count())))
            .unwrap_or_else(|| panic!("no {text:?} in\n{}", lines.join("\n")));
        let target = self.drawn.hits.at(x as u16, y as u16).cloned().unwrap_or(ClickTarget::List);
        self.tell(Message::Click(target, false));
        self.draw();
    }

    /// Draws, and tells the core what fitted, as the shell does.
    pub fn draw(&mut self) -> Buffer {
        let look = Look::new(Theme::dark(), Glyphs::unicode());
        self.draw_with(&look)
    }

    /// Draws in another look.
    pub fn draw_with(&mut self, look: &Look) -> Buffer {
        let (width, height) = self.model.context.size;
        let mut buffer = Buffer::empty(Rect::new(0, 0, width, height));
        self.drawn = self.painter.draw(&self.model, look, &mut buffer);
        if self.drawn.measures != self.model.context.measures {
            self.tell(Message::Drawn(self.drawn.measures));
        }
        buffer
    }

    /// A second passes: whoever watches a list is told of its newest rows.
    pub fn beat(&mut self) {
        for (ticket, query) in self.watched.clone() {
            let newest = self.database.page(&query).rows;
            self.reply(ticket, Reply::News(newest));
        }
        self.draw();
    }

    /// The lines of the screen.
    pub fn lines(&mut self) -> Vec<String> {
        let buffer = self.draw();
        let (width, height) = (buffer.area.width, buffer.area.height);
        let line = |y| (0..width).map(|x| buffer[(x, y)].symbol()).collect::<String>().trim_end().to_owned();
        (0..height).map(line).collect()
    }

    /// The screen as text.
    pub fn text(&mut self) -> String {
        self.lines().join("\n")
    }

    /// Asserts that a text is on the screen.
    #[track_caller]
    pub fn shows(&mut self, text: &str) {
        let screen = self.text();
        assert!(screen.contains(text), "no {text:?} in\n{screen}");
    }

    /// Asserts that a text is not on the screen.
    #[track_caller]
    pub fn hides(&mut self, text: &str) {
        let screen = self.text();
        assert!(!screen.contains(text), "{text:?} in\n{screen}");
    }

    /// The timers that were asked for and are not over.
    pub fn timers(&self) -> Vec<Ticket> {
        let timer = |effect: &Effect| match effect {
            Effect::After(ticket, _) => Some(*ticket),
            _ => None,
        };
        self.asked.iter().filter_map(timer).collect()
    }

    /// All the time passes that someone waits for.
    pub fn wait(&mut self) {
        for timer in self.timers() {
            self.tell(Message::Elapsed(timer));
        }
        self.asked.retain(|effect| !matches!(effect, Effect::After(..)));
        self.draw();
    }

    /// Kind and id of the selected row.
    pub fn selected(&self) -> Option<(Entity, String)> {
        self.model.history.here().selected().map(|(entity, id)| (entity, id.to_owned()))
    }

    /// Id of the selected row.
    #[track_caller]
    pub fn id(&self) -> String {
        self.selected().expect("a selected row").1
    }

    /// Goes somewhere as following a link does.
    pub fn follow(&mut self, entity: Entity, id: &str) {
        self.tell(Message::Click(ClickTarget::Link(Destination::Row(entity, id.to_owned())), false));
        self.draw();
    }

    /// The newest ticket of a page that is held back.
    pub fn held_page(&self) -> Option<Ticket> {
        self.held.iter().rev().find_map(|effect| match effect {
            Effect::Ask(ticket, Request::LoadPage(_)) => Some(*ticket),
            _ => None,
        })
    }
}

/// Some hundreds of episodes, numbered from the oldest.
pub fn many(total: usize) -> Database {
    let episode = |number: usize| {
        let (day, minute) = (number / 1_440 % 28 + 1, number % 1_440);
        let started = format!("2026-01-{day:02}T{:02}:{:02}:00.000000Z", minute / 60, minute % 60);
        row(
            Entity::Episode,
            &[
                ("id", json!(format!("ep-{number:06}"))),
                ("title", json!(format!("Task number {number}"))),
                ("agent_id", json!("agent-1")),
                ("outcome", json!(if number.is_multiple_of(7) { "failure" } else { "success" })),
                ("status", json!("closed")),
                ("started_at", json!(started)),
                ("utility", json!((number % 11) as f64 / 10.0)),
            ],
        )
    };
    let rows = [(Entity::Episode, (0..total).map(episode).collect()), (Entity::Agent, Vec::new())];
    Database { rows: rows.into_iter().collect() }
}

/// A small world: two chained episodes with all that belongs to them, a case, a subject, awkward texts.
pub fn world() -> Database {
    let mut rows: BTreeMap<Entity, Vec<Row>> = BTreeMap::new();
    let mut add = |entity: Entity, values: &[(&str, Value)]| rows.entry(entity).or_default().push(row(entity, values));
    add(
        Entity::Episode,
        &[
            ("id", json!("ep-1")),
            ("title", json!("Reconcile the October invoices")),
            ("summary", json!("Two invoices were missing; both were found in the archive.")),
            ("agent_id", json!("agent-books")),
            ("user_id", json!("ada@example.org")),
            ("topic", json!("invoices")),
            ("domain", json!("finance")),
            ("outcome", json!("partial")),
            ("status", json!("closed")),
            ("started_at", json!("2026-02-03T09:10:00.000000Z")),
            ("ended_at", json!("2026-02-03T10:40:00.000000Z")),
            ("duration_seconds", json!(5400.0)),
            ("feedback_score", json!(0.25)),
            ("utility", json!(0.6)),
            ("canvas_action_count", json!(2)),
            ("tags", json!(["invoices", "october"])),
            (
                "context",
                json!({"time_of_day": "morning", "day_of_week": "Tuesday", "active_preferences": ["no calls before ten"]}),
            ),
            ("metadata", json!({"raw_status": "completed"})),
        ],
    );
    add(
        Entity::Episode,
        &[
            ("id", json!("ep-2")),
            ("title", json!("Book the missing invoices \u{1b}[31m\u{202e}gpj.exe")),
            ("agent_id", json!("agent-books")),
            ("user_id", json!("ada@example.org")),
            ("parent_id", json!("ep-1")),
            ("outcome", json!("success")),
            ("status", json!("active")),
            ("started_at", json!("2026-02-04T09:00:00.000000Z")),
            ("utility", json!(0.9)),
        ],
    );
    for (number, (kind, rating, score)) in
        [("thumbs_up", None, Some(1.0)), ("rating", Some(2), Some(-0.5)), ("comment", None, None)].iter().enumerate()
    {
        add(
            Entity::Feedback,
            &[
                ("id", json!(format!("fb-{number}"))),
                ("episode_id", json!("ep-1")),
                ("user_id", json!("ada@example.org")),
                ("kind", json!(kind)),
                ("rating", json!(rating)),
                ("score", json!(score)),
                ("counts", json!(score.is_some())),
                ("correction", json!(score.is_none().then_some("Please sort them by date"))),
                ("created_at", json!(format!("2026-02-03T11:0{number}:00.000000Z"))),
            ],
        );
    }
    for (number, (signal, before, after)) in [("confirmed", 0.5, 0.7), ("corrected", 0.7, 0.6)].iter().enumerate() {
        add(
            Entity::UtilityEvent,
            &[
                ("id", json!(format!("ut-{number}"))),
                ("episode_id", json!("ep-1")),
                ("signal", json!(signal)),
                ("before", json!(before)),
                ("after", json!(after)),
                ("delta", json!(after - before)),
                ("reason", json!("told in the chat")),
                ("created_at", json!(format!("2026-02-03T12:0{number}:00.000000Z"))),
            ],
        );
    }
    for (number, action) in ["present", "submit"].iter().enumerate() {
        add(
            Entity::CanvasEvent,
            &[
                ("id", json!(format!("cv-{number}"))),
                ("episode_id", json!("ep-1")),
                ("canvas_type", json!("sheets")),
                ("component_name", json!("ledger")),
                ("action", json!(action)),
                ("metadata", json!({"rows": 12})),
                ("created_at", json!(format!("2026-02-03T09:2{number}:00.000000Z"))),
            ],
        );
    }
    add(
        Entity::Segment,
        &[
            ("id", json!("sg-1")),
            ("episode_id", json!("ep-1")),
            ("sequence", json!(1)),
            ("kind", json!("message")),
            ("content", json!("user: where are the two invoices?\nassistant: in the archive")),
            ("created_at", json!("2026-02-03T09:11:00.000000Z")),
        ],
    );
    add(
        Entity::Memory,
        &[
            ("id", json!("dr-1")),
            ("kind", json!("drawer")),
            ("title", json!("archive")),
            ("text", json!("Old invoices are kept in the archive.")),
            ("created_at", json!("2026-01-10T08:00:00.000000Z")),
        ],
    );
    add(
        Entity::MemoryLink,
        &[("episode_id", json!("ep-1")), ("memory_id", json!("dr-1")), ("kind", json!("drawer")), ("rank", json!(1))],
    );
    for (number, (reward, refers)) in [(1.0, json!(["ca-1", "ca-gone"])), (0.0, json!([]))].iter().enumerate() {
        add(
            Entity::Case,
            &[
                ("id", json!(format!("ca-{number}"))),
                ("user_id", json!("ada@example.org")),
                ("agent_id", json!("agent-books")),
                ("prompt", json!({"message": format!("Find invoice {number}")})),
                ("plan", json!({"steps": ["search", "book"]})),
                ("outcome", json!(if *reward > 0.5 { "success" } else { "failure" })),
                ("reward", json!(reward)),
                ("reference_case_ids", refers.clone()),
                ("has_vector", json!(true)),
                ("created_at", json!(format!("2026-02-03T1{number}:00:00.000000Z"))),
            ],
        );
    }
    add(
        Entity::Subject,
        &[
            ("id", json!("ada@example.org")),
            ("name", json!("Ada Lovelace")),
            ("episodes", json!(2)),
            ("last_seen", json!("2026-02-04T09:00:00.000000Z")),
        ],
    );
    add(Entity::Agent, &[("id", json!("agent-books")), ("name", json!("Bookkeeper")), ("episodes", json!(2))]);
    Database { rows }
}

/// The same, where policies are kept.
pub fn learned() -> Database {
    let mut database = world();
    database.rows.insert(Entity::Policy, Vec::new());
    database
}

/// Takes the newest request of a kind that the console made and that nobody answers on its own.
pub fn asked(console: &mut Console, wanted: impl Fn(&Request) -> bool) -> (Ticket, Request) {
    let found = |effect: &Effect| matches!(effect, Effect::Ask(_, request) if wanted(request));
    let at = console.asked.iter().rposition(found);
    take_asked(console, at)
}

/// Takes the oldest such request.
pub fn oldest_asked(console: &mut Console, wanted: impl Fn(&Request) -> bool) -> (Ticket, Request) {
    let found = |effect: &Effect| matches!(effect, Effect::Ask(_, request) if wanted(request));
    let at = console.asked.iter().position(found);
    take_asked(console, at)
}

fn take_asked(console: &mut Console, at: Option<usize>) -> (Ticket, Request) {
    match at.map(|at| console.asked.remove(at)) {
        Some(Effect::Ask(ticket, request)) => (ticket, request),
        _ => panic!("{:?}", console.asked),
    }
}
