//! All details of a row: its tabs, the loaded data, and the scroll position.

use super::follow;
use super::whereabouts::Whereabouts;
use crate::console::core::command::ChainStep;
use crate::console::core::{
    Conditions, Content, Context, Destination, LayerOpening, Menu, MenuChoice, MenuItem, Purpose, Related, Relation,
    Renewal, Reply, Request, RequestFailure, RowKey, Ticket, ToastTone, row_name,
};
use crate::memory::filter::Filter;
use crate::memory::invocation::filled;
use crate::memory::query::Query;
use crate::memory::story::{self, MomentSource, Story};
use crate::memory::{Entity, Row};

/// Most related rows read for a detail.
const RELATED_ROWS: usize = 50;
/// Most ids looked up for a detail.
const RELATED_IDS: usize = 200;

/// A tab of a detail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DetailTab {
    /// The most important facts.
    Overview,
    /// All that happened, in lanes on one time line.
    Story,
    /// The chain as a tree on a time line.
    Chain,
    /// The pieces.
    Segments,
    /// Events on canvases.
    Canvas,
    /// Feedback of users.
    Feedback,
    /// Changes of the utility.
    Utility,
    /// Memories that were retrieved.
    Memories,
    /// The event log.
    Events,
    /// Accesses to the row by recall.
    Accesses,
    /// Presence of a person in the database.
    Where,
    /// Related rows.
    Related,
    /// The row as JSON.
    Raw,
}

impl DetailTab {
    /// Returns the title of the tab.
    pub fn title(self) -> &'static str {
        match self {
            DetailTab::Overview => "overview",
            DetailTab::Story => "story",
            DetailTab::Chain => "chain",
            DetailTab::Segments => "segments",
            DetailTab::Canvas => "canvas",
            DetailTab::Feedback => "feedback",
            DetailTab::Utility => "utility",
            DetailTab::Memories => "memories",
            DetailTab::Events => "events",
            DetailTab::Accesses => "accesses",
            DetailTab::Where => "where",
            DetailTab::Related => "related",
            DetailTab::Raw => "JSON",
        }
    }

    /// Counts the entries of the tab; `None` if the tab has no count.
    pub fn count(self, detail: &Detail) -> Option<usize> {
        if self == DetailTab::Related {
            return Some(detail.related.iter().map(|r| r.rows.len()).sum());
        }
        let Some(Content::Episode(context)) = &detail.content else { return None };
        Some(match self {
            DetailTab::Story => detail.story.moments.len(),
            // Includes the episode itself, which the tab shows too.
            DetailTab::Chain => match context.chain_total() {
                0 => 0,
                others => others + 1,
            },
            DetailTab::Segments => context.total(Entity::Segment),
            DetailTab::Canvas => context.total(Entity::CanvasEvent),
            DetailTab::Feedback => context.total(Entity::Feedback),
            DetailTab::Utility => context.total(Entity::UtilityEvent),
            DetailTab::Memories => context.total(Entity::MemoryLink),
            DetailTab::Events => context.total(Entity::WorkflowEvent),
            DetailTab::Accesses => context.total(Entity::Access),
            DetailTab::Overview | DetailTab::Where | DetailTab::Related | DetailTab::Raw => return None,
        })
    }
}

/// The tabs of an entity's details.
pub fn tabs(entity: Entity) -> &'static [DetailTab] {
    match entity {
        Entity::Episode => &[
            DetailTab::Overview,
            DetailTab::Story,
            DetailTab::Chain,
            DetailTab::Segments,
            DetailTab::Canvas,
            DetailTab::Feedback,
            DetailTab::Utility,
            DetailTab::Memories,
            DetailTab::Events,
            DetailTab::Accesses,
            DetailTab::Raw,
        ],
        Entity::Subject => &[DetailTab::Overview, DetailTab::Where, DetailTab::Related, DetailTab::Raw],
        _ => &[DetailTab::Overview, DetailTab::Related, DetailTab::Raw],
    }
}

/// The details of a row.
#[derive(Debug, Clone, PartialEq)]
pub struct Detail {
    /// Kind of row.
    pub entity: Entity,
    /// Key of the wanted row (only its id on a card); `None` if the list is empty.
    pub key: Option<RowKey>,
    /// Key of the row that was read last.
    pub shown: Option<RowKey>,
    /// Position of the tab among [`tabs`].
    pub tab: usize,
    /// First line shown.
    pub scroll: usize,
    /// Text searched for in the details; empty for none.
    pub sought: String,
    /// Position of the current match among the lines that contain the searched text.
    pub sought_at: usize,
    /// Whether the view goes to the match as soon as its line is known.
    pub(in crate::console) seeking: bool,
    /// Content that was read last; it is another row's while the wanted one is being read.
    pub content: Option<Content>,
    /// Story of the row, when it is an episode.
    pub story: Story,
    /// The moment of the story that the cursor is on, by position.
    pub moment: usize,
    /// Whether the view goes to the moment as soon as its line is known.
    pub(in crate::console) to_moment: bool,
    /// Rows related to it.
    pub related: Vec<Related>,
    /// Whereabouts of the person that the row is about.
    pub whereabouts: Whereabouts,
    /// Incremented with every visible change, so that drawings can be cached.
    pub version: u64,
    /// The wanted row is being waited for.
    pub pending: Option<Ticket>,
    /// The related rows are being waited for.
    pub pending_related: Option<Ticket>,
    /// Whether the related rows were read unrequested, so that a failure is not reported.
    pub(in crate::console) quiet: bool,
    /// Rereading of the row after others wrote.
    pub(in crate::console) renewal: Renewal,
    /// Reason why the row could not be read.
    pub failure: Option<RequestFailure>,
    /// Whether the wanted row does not exist.
    pub gone: bool,
}

impl Detail {
    /// Creates empty details.
    pub fn new(entity: Entity) -> Self {
        Detail {
            entity,
            key: None,
            shown: None,
            tab: 0,
            scroll: 0,
            sought: String::new(),
            sought_at: 0,
            seeking: false,
            content: None,
            story: Story::default(),
            moment: 0,
            to_moment: false,
            related: Vec::new(),
            whereabouts: Whereabouts::default(),
            version: 0,
            pending: None,
            pending_related: None,
            quiet: false,
            renewal: Renewal::default(),
            failure: None,
            gone: false,
        }
    }

    /// The current tab.
    pub fn current_tab(&self) -> DetailTab {
        tabs(self.entity).get(self.tab).copied().unwrap_or(DetailTab::Overview)
    }

    /// The shown row, if it is the wanted one.
    pub fn row(&self) -> Option<&Row> {
        self.content.as_ref().map(Content::row).filter(|_| self.shown == self.key)
    }

    /// Whether another row than the wanted one is shown, or the row is being read again.
    pub fn is_stale(&self) -> bool {
        self.content.is_some() && (self.row().is_none() || self.failure.is_some())
    }

    /// Turns by `by` tabs, wrapping around at the ends.
    pub fn turn(&mut self, by: isize) {
        let count = tabs(self.entity).len() as isize;
        self.show_tab((self.tab as isize + by).rem_euclid(count) as usize);
    }

    /// Shows a tab.
    pub fn show_tab(&mut self, tab: usize) {
        if tab < tabs(self.entity).len() && tab != self.tab {
            self.tab = tab;
            self.scroll = 0;
            self.version += 1;
        }
    }

    /// The id of the wanted row; empty if it has none.
    pub fn id(&self) -> &str {
        self.key.as_ref().map_or("", RowKey::id)
    }

    /// Shows the tab of this title. False if there is none.
    pub fn show_named_tab(&mut self, title: &str) -> bool {
        let tab = tabs(self.entity).iter().position(|tab| tab.title() == title);
        tab.into_iter().for_each(|tab| self.show_tab(tab));
        tab.is_some()
    }

    /// Takes the details.
    pub fn receive(&mut self, result: Result<Option<Content>, RequestFailure>) {
        self.pending = None;
        self.version += 1;
        self.failure = None;
        self.gone = false;
        match result {
            Ok(Some(content)) => {
                if self.shown != self.key {
                    self.shown.clone_from(&self.key);
                    (self.scroll, self.moment) = (0, 0);
                    self.related.clear();
                    self.whereabouts = Whereabouts::default();
                }
                self.story = match &content {
                    Content::Episode(context) => Story::of(context),
                    Content::Row(_) => Story::default(),
                };
                self.moment = self.moment.min(self.story.moments.len().saturating_sub(1));
                self.content = Some(content);
            }
            Ok(None) => {
                self.content = None;
                self.gone = true;
            }
            Err(failure) => {
                // Another row's details would be taken for this one's.
                if self.shown != self.key {
                    self.content = None;
                }
                self.failure = Some(failure);
            }
        }
    }

    /// Requests the wanted row; `listed` is the row as held by a list.
    pub fn ask(&mut self, listed: Option<&Row>, cx: &mut Context) {
        let Some(key) = self.key.clone().filter(|key| !key.id().is_empty()) else {
            // For a row without an id, the list's row is all that can be known.
            if let Some(row) = listed {
                self.receive(Ok(Some(Content::Row(Box::new(row.clone())))));
                self.ask_related(false, cx);
            }
            return;
        };
        cx.cancel(self.pending.take().into_iter().chain(self.renewal.release()));
        self.pending = Some(cx.ask(Request::LoadDetail(self.entity, key)));
    }

    /// Reads the row again after others wrote; the old one is kept until then.
    pub fn renew(&mut self, cx: &mut Context) {
        let key = self.key.clone().filter(|key| !key.id().is_empty() && self.pending.is_none());
        if let Some(key) = key
            && self.renewal.is_wanted()
        {
            let ticket = cx.renew(Request::LoadDetail(self.entity, key));
            self.renewal.begin(ticket);
        }
    }

    /// Takes the reread row. After a failure the old one is kept.
    fn take_renewed(&mut self, result: Result<Option<Content>, RequestFailure>, cx: &mut Context) {
        let is_news = match &result {
            Ok(found) => *found != self.content || self.failure.is_some(),
            Err(_) => false,
        };
        if is_news {
            self.receive(result);
            cx.read_names(self.row());
        }
        if self.renewal.is_due() {
            self.renew(cx);
        } else if self.row().is_some() {
            self.ask_related(true, cx);
        }
    }

    fn ask_related(&mut self, again: bool, cx: &mut Context) {
        self.quiet = again;
        let mut wanted = self.row().map(relations).unwrap_or_default();
        wanted.retain(|(_, relation)| can_relate(relation, cx));
        wanted.dedup_by(|next, before| next.0 == before.0);
        cx.cancel(self.pending_related.take());
        let load = |wanted| {
            if again { Request::Renew(Box::new(Request::LoadRelated(wanted))) } else { Request::LoadRelated(wanted) }
        };
        self.pending_related = (!wanted.is_empty()).then(|| cx.ask(load(wanted)));
    }

    /// Takes a reply.
    pub fn take(&mut self, ticket: Ticket, reply: Reply, cx: &mut Context) {
        match reply {
            Reply::Detail(result) if self.renewal.end(ticket) => self.take_renewed(result, cx),
            Reply::Detail(result) => {
                self.receive(result);
                cx.read_names(self.row());
                self.ask_related(false, cx);
            }
            Reply::Related(result) => {
                self.pending_related = None;
                match result {
                    Ok(related) if related == self.related => {}
                    Ok(related) => {
                        self.related = related;
                        self.version += 1;
                    }
                    Err(_) if self.quiet => {}
                    Err(failure) => cx.fail(failure),
                }
            }
            Reply::Erasing(table, values) => self.looking_in(table, values),
            Reply::ErasurePlanned(result) => self.take_whereabouts(result),
            _ => {}
        }
    }

    /// Rows of an episode's context.
    pub fn context_rows(&self, entity: Entity) -> &[Row] {
        match (&self.content, self.row()) {
            (Some(Content::Episode(context)), Some(_)) => match entity {
                Entity::Feedback => &context.feedback,
                Entity::UtilityEvent => &context.utility,
                _ => &[],
            },
            _ => &[],
        }
    }

    /// Asks for words to search, or goes to the next or previous match.
    pub fn seek(&mut self, onward: bool, cx: &mut Context) {
        if onward || self.sought.is_empty() {
            // Words typed right after must not be taken for commands.
            return cx.prompt(Purpose::Within, "");
        }
        self.seek_beside(false, cx);
    }

    /// Goes to the next match, or to the previous one.
    fn seek_beside(&mut self, onward: bool, cx: &mut Context) {
        let count = cx.measures.sought_count;
        if count == 0 {
            return cx.say(ToastTone::Info, format!("nothing here says {}", self.sought));
        }
        let by = if onward { 1 } else { count - 1 };
        self.sought_at = (self.sought_at + by) % count;
        self.seeking = true;
        if count == 1 {
            self.show_sought(cx);
        }
    }

    /// Takes words to search for; an empty text goes to the next match of the current words.
    pub fn seek_words(&mut self, text: &str, cx: &mut Context) {
        if !text.is_empty() {
            text.clone_into(&mut self.sought);
            (self.sought_at, self.seeking) = (0, true);
        } else if !self.sought.is_empty() {
            self.seek_beside(true, cx);
        }
    }

    /// Ends the search. False if there was none.
    pub fn end_seeking(&mut self) -> bool {
        self.seeking = false;
        !std::mem::take(&mut self.sought).is_empty()
    }

    /// Goes to the wanted match or moment, whose line is known after drawing.
    pub fn drawn(&mut self, cx: &Context) {
        self.show_sought(cx);
        if self.to_moment && cx.measures.moment_line > 0 {
            self.scroll = cx.measures.moment_line - 1;
            self.to_moment = false;
        }
        self.scroll = self.scroll.min(cx.last_line());
    }

    fn show_sought(&mut self, cx: &Context) {
        const ABOVE: usize = 3;
        if self.seeking && cx.measures.sought_line > 0 {
            self.scroll = cx.measures.sought_line.saturating_sub(ABOVE);
            self.seeking = false;
        }
    }

    /// Moves among the moments of a story; else scrolls.
    pub fn move_by(&mut self, by: isize, cx: &Context) {
        if self.current_tab() == DetailTab::Story {
            self.to(self.moment.saturating_add_signed(by));
        } else {
            self.scroll_by(by, cx);
        }
    }

    /// Goes to a moment of the story, or to the last one.
    pub fn to(&mut self, moment: usize) {
        self.moment = moment.min(self.story.moments.len().saturating_sub(1));
        self.to_moment = true;
    }

    /// Returns the row of the selected moment.
    pub fn moment_row(&self) -> Option<Destination> {
        let Some(Content::Episode(context)) = &self.content else { return None };
        let (entity, id) = story::row_of(self.story.moments.get(self.moment)?, context);
        Some(Destination::Row(entity, id))
    }

    /// Opens the selection: for a moment of the story, the tab of its lane at that moment.
    pub fn open(&mut self, cx: &mut Context) {
        let moment = self.story.moments.get(self.moment).filter(|_| self.current_tab() == DetailTab::Story);
        let Some(moment) = moment else { return follow::offer(self, cx) };
        self.show_named_tab(lane_tab(moment.source).title());
        self.to_moment = true;
    }

    /// Goes along the chain of the episode; the tab is kept.
    pub fn relative(&self, step: ChainStep, cx: &mut Context) {
        let Some(Content::Episode(context)) = &self.content else { return };
        let chain = &context.chain;
        let position = chain.ids.iter().position(|id| id == context.episode.id()).unwrap_or(0);
        let to = |id: &String| Destination::Tab(Entity::Episode, id.clone(), self.current_tab().title());
        match (step, &chain.ids[..position], &chain.children[..]) {
            (ChainStep::Root, [id, ..], _) | (ChainStep::Parent, [.., id], _) | (ChainStep::Children, _, [id]) => {
                cx.follow(to(id));
            }
            (ChainStep::Root | ChainStep::Parent, [], _) => cx.say(ToastTone::Info, "this episode follows none"),
            (ChainStep::Children, _, []) => cx.say(ToastTone::Info, "no episode follows this one"),
            (ChainStep::Children, _, several) => {
                let item = |label: String, note: &str, to: Destination| MenuItem {
                    label,
                    note: note.to_owned(),
                    keys: String::new(),
                    choice: MenuChoice::Go(to),
                    unavailable: None,
                };
                let child =
                    |row: &Row| item(row_name(row), row.text("outcome").unwrap_or_default(), to(&row.id().to_owned()));
                let mut items: Vec<MenuItem> = context.children().map(child).collect();
                if let Some(rest) = follow::other_children(context) {
                    items.push(item(format!("all {}", several.len()), "list", rest));
                }
                cx.show(LayerOpening::Menu(Menu::new("Episodes that follow", items)));
            }
        }
    }

    /// Scrolls within the drawn range.
    pub fn scroll_by(&mut self, by: isize, cx: &Context) {
        self.scroll = self.scroll.saturating_add_signed(by).min(cx.last_line());
    }

    /// Returns all pending requests, and drops them.
    pub fn release(&mut self) -> impl Iterator<Item = Ticket> + use<> {
        let renewal = self.renewal.release();
        [self.pending.take(), self.pending_related.take(), self.whereabouts.found.pending.take(), renewal]
            .into_iter()
            .flatten()
    }

    /// The words of the equivalent command.
    pub fn twin(&self) -> Vec<String> {
        match self.current_tab() {
            DetailTab::Chain => vec![filled("chain $id", &[self.id()])],
            _ => vec![filled(&format!("show {} $id", self.entity.name()), &[self.id()])],
        }
    }

    /// Drops the loaded data.
    pub fn forget(&mut self) {
        self.content = None;
        self.story = Story::default();
        self.shown = None;
        self.related.clear();
        self.whereabouts = Whereabouts::default();
        self.failure = None;
        self.gone = false;
        self.version += 1;
    }
}

/// The tab that shows the lane of a moment on its own.
fn lane_tab(source: MomentSource) -> DetailTab {
    match source {
        MomentSource::Segment(_) => DetailTab::Segments,
        MomentSource::Event(_) => DetailTab::Events,
        MomentSource::Action(_) => DetailTab::Overview,
        MomentSource::Canvas(_) => DetailTab::Canvas,
        MomentSource::Feedback(_) => DetailTab::Feedback,
        MomentSource::Signal(_) => DetailTab::Utility,
        MomentSource::Access(_) => DetailTab::Accesses,
    }
}

/// Whether the database supports a relation: its target entity and the columns it needs.
fn can_relate(relation: &Relation, cx: &Context) -> bool {
    let filled = |entity, column| !cx.opened.unfilled.contains(&(entity, column));
    match relation {
        Relation::Ids(entity, _) => cx.holds(*entity).is_ok(),
        Relation::List(query) => {
            cx.holds(query.entity).is_ok()
                && query.filters.iter().flat_map(Filter::columns).all(|column| filled(query.entity, column))
        }
    }
}

/// Lists the relations of a row. Most of an episode's related rows are in its context.
pub fn relations(row: &Row) -> Vec<(String, Relation)> {
    let id = row.id();
    let text = |column: &str| row.text(column).filter(|t| !t.is_empty()).map(str::to_owned);
    let ids = |title: &str, entity: Entity, ids: Vec<String>| {
        let ids: Vec<String> = ids.into_iter().take(RELATED_IDS).collect();
        (!ids.is_empty()).then(|| (title.to_owned(), Relation::Ids(entity, ids)))
    };
    let one = |title: &str, entity: Entity, column: &str| ids(title, entity, text(column).into_iter().collect());
    let list = |entity: Entity, conditions: Conditions| {
        let query =
            Query { filters: conditions.filters, limit: RELATED_ROWS, preview: Some(200), ..Query::new(entity) };
        (!id.is_empty()).then(|| (entity.plural().to_owned(), Relation::List(Box::new(query))))
    };
    let found = match row.entity {
        Entity::Episode => {
            let into = list(Entity::Episode, Conditions::equal("consolidated_into", id));
            vec![into.map(|(_, relation)| ("episodes consolidated into this one".to_owned(), relation))]
        }
        Entity::Segment | Entity::UtilityEvent | Entity::CanvasEvent | Entity::Feedback => {
            vec![one("episode", Entity::Episode, "episode_id")]
        }
        Entity::MemoryLink => {
            vec![one("episode", Entity::Episode, "episode_id"), one("memory", Entity::Memory, "memory_id")]
        }
        Entity::Memory => vec![list(Entity::MemoryLink, Conditions::equal("memory_id", id))],
        Entity::Case => {
            let named = row.list("reference_case_ids").into_iter().map(str::to_owned).collect();
            let by = list(Entity::Case, Conditions::has("reference_case_ids", id));
            vec![
                ids("refers to", Entity::Case, named),
                by.map(|(_, relation)| ("referred to by".to_owned(), relation)),
                one("profile", Entity::Profile, "profile_id"),
            ]
        }
        Entity::Policy => vec![one("profile", Entity::Profile, "profile_id")],
        Entity::Profile => vec![
            list(Entity::Policy, Conditions::equal("profile_id", id)),
            list(Entity::Case, Conditions::equal("profile_id", id)),
        ],
        Entity::WorkflowEvent => text("run_id").map_or_else(Vec::new, |run| {
            let is_run = Conditions::equal("id", &run);
            let mut of_run = Conditions::has("execution_ids", &run);
            of_run.filters.iter_mut().for_each(|filter| filter.or.clone_from(&is_run.filters));
            let titled = |(_, relation)| ("episodes of the run".to_owned(), relation);
            // The second is for layouts whose episodes do not list their runs.
            [of_run, is_run].map(|conditions| list(Entity::Episode, conditions).map(titled)).into()
        }),
        Entity::Access => {
            let named = row.list("ids").into_iter().map(str::to_owned).collect();
            vec![ids("recalled", Entity::Episode, named)]
        }
        Entity::Agent => vec![
            list(Entity::Episode, Conditions::equal("agent_id", id)),
            list(Entity::Profile, Conditions::equal("agent_id", id)),
        ],
        Entity::Subject => vec![
            list(Entity::Episode, Conditions::equal("user_id", id)),
            list(Entity::Case, Conditions::equal("user_id", id)),
            list(Entity::Feedback, Conditions::equal("user_id", id)),
            list(Entity::Profile, Conditions::equal("user_id", id)),
        ],
        Entity::AuditEntry => vec![one("agent", Entity::Agent, "agent_id")],
    };
    found.into_iter().flatten().collect()
}
