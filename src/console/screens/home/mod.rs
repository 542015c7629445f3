//! The first screen: its data, its highlights, and the destinations of its entries.

pub(in crate::console) mod draw;
pub mod messages;

use std::collections::BTreeMap;
use std::iter;

use crate::change::plan::erasure::UnfinishedErasure;
use crate::console::core::columns::{naming_columns, read_columns};
use crate::console::core::command::{CommandId, CommandScope};
use crate::console::core::condition::Conditions;
use crate::console::core::context::Context;
use crate::console::core::live::{COUNTED, LiveTail, Renewal};
use crate::console::core::menu::Purpose;
use crate::console::core::message::{Destination, RequestFailure, Ticket};
use crate::console::core::request::{Reply, Request};
use crate::console::core::screen::{Screen, ScreenFace, ScreenKind};
use crate::console::core::twin::words;
use crate::console::core::window::RowKey;
use crate::console::view::words::age;
use crate::console::view::{Canvas, health};
use crate::job::plan::JobProgress;
use crate::memory::filter::{Filter, Operand, Operator};
use crate::memory::findings::{DAMAGED, Finding, kind_named};
use crate::memory::query::{Page, Query};
use crate::memory::time;
use crate::memory::{Entity, Row, UnreadRows, agreeing};
use crate::ui::StyleRole;
use messages::{WaitingFeedback, WaitingWork};

/// Candidates for the entity of the first screen: the first one that the database holds is shown.
const LOOKED_AT: [Entity; 4] = [Entity::Episode, Entity::Case, Entity::Memory, Entity::WorkflowEvent];
/// Number of rows read.
pub const RECENT: usize = 400;
/// Number of the recent rows that the first screen lists.
pub const RECENT_SHOWN: usize = 100;
/// Number of tables with rows on damaged pages that the first screen names.
const UNREAD_SHOWN: usize = 3;
/// Number of feedback rows checked for tasks.
const FEEDBACK_LOOKED_AT: usize = 500;
/// A utility or reward below this is low: for a utility, more than one rejection away from the initial value.
const LOW: f64 = 0.2;
/// Microseconds of a day.
const DAY: i64 = 86_400_000_000;

/// The Monday of a day's week; days are counted from 1970-01-01, which was a Thursday.
fn monday(day: i64) -> i64 {
    day - (day + 3).rem_euclid(7)
}

/// A group of rows worth looking at first.
#[derive(Debug, Clone, PartialEq)]
pub struct Standout {
    /// Number of such rows among the newest.
    pub count: usize,
    /// Description of the rows.
    pub text: String,
    /// Destination that lists the rows.
    pub to: Destination,
}

/// The query for the newest rows.
pub fn recent_query(entity: Entity) -> Query {
    const PREVIEW: usize = 120;
    let columns = match entity {
        Entity::Episode => {
            let own = ["id", "started_at", "outcome", "status", "feedback_score", "utility", "agent_id", "user_id"];
            own.iter().chain(naming_columns(entity)).copied().collect()
        }
        _ => read_columns(entity),
    };
    Query { limit: RECENT, columns: Some(columns), preview: Some(PREVIEW), ..Query::new(entity) }
}

/// The first screen.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct HomeScreen {
    /// The newest rows.
    pub recent: Option<Page>,
    /// They are being waited for.
    pub pending: Option<Ticket>,
    /// Reason why the rows could not be read.
    pub failure: Option<RequestFailure>,
    /// Work that waits for someone; `None` until read.
    pub work: Option<Box<WaitingWork>>,
    /// Pending request for the waiting work.
    pub pending_work: Option<Ticket>,
    /// Reason why the waiting work could not be read.
    pub work_failure: Option<RequestFailure>,
    /// Rows added by others meanwhile.
    pub live: LiveTail,
    /// Rereading of the newest rows after others wrote.
    renewal: Renewal,
    /// So is the work that waits.
    work_renewal: Renewal,
    /// Position of the selected entry.
    pub selected: usize,
    /// Destination of the selected entry, which stays selected when others come before it.
    at: Option<Destination>,
    /// Number of entries before the screens.
    listed: usize,
    /// Whether the rows are those of an earlier visit, until they are read again.
    pub aged: bool,
    /// So is the work that waits.
    pub work_aged: bool,
    /// Moment of the past that the rows show, canonical; `None` for now.
    moment: Option<String>,
}

/// A task that waits for the user.
#[derive(Debug, Clone, PartialEq)]
pub struct NeededStep {
    /// Command that leads there from everywhere.
    pub by: CommandId,
    /// Number of items that wait; 0 for a single named one.
    pub count: u64,
    /// More may wait than were counted.
    pub more: bool,
    /// Name of the items that wait.
    pub text: String,
    /// More about it: how old, how bad.
    pub note: String,
    /// Style that shows how much the task matters.
    pub role: StyleRole,
    /// Destination for the task.
    pub to: Destination,
}

/// Rows since the last visit, compared with those of an equally long time before.
#[derive(Debug, Clone, PartialEq)]
pub struct SinceLook {
    /// Time of the last visit; `None` on the first one.
    pub looked: Option<String>,
    /// Rows since.
    pub count: usize,
    /// Whether there are more than were read.
    pub more: bool,
    /// Number of failed rows since the last visit.
    pub failed: usize,
    /// Their mean utility or reward.
    pub mean: Option<f64>,
    /// Failures and the mean in as long a time before, as far as those rows were read.
    pub before: Option<(usize, Option<f64>)>,
}

impl HomeScreen {
    /// Lists the destinations of the entries, part by part: waiting tasks, standouts, entities held, the newest rows.
    pub fn parts(&self, cx: &Context) -> [Vec<Destination>; 4] {
        let held = cx.held().map(|entity| Destination::List(entity, Conditions::default()));
        let recent = self.rows().iter().take(RECENT_SHOWN);
        [
            self.needs(cx).into_iter().map(|need| need.to).collect(),
            self.standouts().into_iter().map(|standout| standout.to).collect(),
            held.collect(),
            recent.map(|row| Destination::Row(row.entity, row.id().to_owned())).collect(),
        ]
    }

    /// Lists the destinations of all entries except for the screens, which come after them.
    pub fn entries(&self, cx: &Context) -> Vec<Destination> {
        self.parts(cx).concat()
    }

    /// Lists the tasks that wait for the user, most pressing first; none for the past.
    pub fn needs(&self, cx: &Context) -> Vec<NeededStep> {
        if cx.past.is_some() {
            return Vec::new();
        }
        let mut needs: Vec<NeededStep> = cx.changing.begun().iter().map(|begun| unfinished(begun, cx)).collect();
        needs.extend(cx.opened.unread.iter().flat_map(|tables| of_unread(tables)));
        let work = self.work.as_deref();
        if let Some(feedback) = work.and_then(|work| work.feedback.as_ref()).filter(|feedback| feedback.count > 0) {
            needs.push(to_judge(feedback, cx));
        }
        // The rows that are missing in a private copy are told already.
        let is_told = |finding: &Finding| finding.kind == DAMAGED && cx.opened.unread.is_some();
        let worst = cx.health.worst().into_iter().filter(|(finding, _)| !is_told(finding));
        needs.extend(worst.map(|(finding, count)| of_finding(finding, count, cx)));
        let more = cx.health.more();
        if more > 0 {
            let text = if more == 1 { "more kind of findings" } else { "more kinds of findings" };
            needs.push(NeededStep { role: StyleRole::Muted, ..step(more, text, "", ScreenKind::Findings) });
        }
        let is_unfit = cx.opened.layouts.is_empty() && cx.status.is_some() && !cx.is_blank();
        if is_unfit {
            let note = "o there drafts one from its tables";
            needs.insert(0, step(0, "no known layout fits this database", note, ScreenKind::Tables));
        }
        let pending = cx.status.as_ref().map_or(&[][..], |status| status.migrations.pending.as_slice());
        if !pending.is_empty() && !is_unfit {
            let text = if pending.len() == 1 { "migration pending" } else { "migrations pending" };
            needs.push(step(pending.len(), text, &touched_by(pending, cx.is_blank()), ScreenKind::Migrations));
        }
        needs.extend(work.into_iter().flat_map(|work| &work.jobs).map(of_job));
        if let Some(holds) = work.map(|work| work.holds).filter(|holds| *holds > 0) {
            let text = if holds == 1 { "person on hold" } else { "people on hold" }.to_owned();
            let to = Destination::List(Entity::Subject, Conditions::default());
            let note = "nobody can erase them".to_owned();
            needs.push(NeededStep {
                by: CommandId::List(Entity::Subject),
                count: holds as u64,
                more: false,
                text,
                note,
                role: StyleRole::Muted,
                to,
            });
        }
        if let Some((seq, at)) = work.and_then(|work| work.trail.as_ref()) {
            let note = format!(
                "the newest {}; {} verifies the trail",
                ago(at, cx),
                cx.key_for(CommandId::Panel(ScreenKind::Trail))
            );
            let seq = usize::try_from(*seq).unwrap_or_default();
            let text = if seq == 1 { "change made here" } else { "changes made here" };
            needs.push(NeededStep { role: StyleRole::Muted, ..step(seq, text, &note, ScreenKind::Receipts) });
        }
        needs
    }

    /// Sums up the rows since the last visit; `None` for the past.
    pub fn since(&self, cx: &Context) -> Option<SinceLook> {
        let page = self.recent.as_ref().filter(|_| cx.past.is_none())?;
        let began = |row: &Row| row.text(row.entity.time_column()).and_then(time::epoch_micros);
        let of = |rows: &[&Row]| {
            let failed = rows.iter().filter(|row| row.text("outcome") == Some("failure")).count();
            let scores: Vec<f64> =
                rows.iter().filter_map(|row| row.number("utility").or_else(|| row.number("reward"))).collect();
            (failed, (!scores.is_empty()).then(|| scores.iter().sum::<f64>() / scores.len() as f64))
        };
        let more = page.next.is_some();
        let looked = cx.opened.looked.as_deref().and_then(time::epoch_micros);
        let Some(moment) = looked else {
            let rows: Vec<&Row> = self.counted().iter().collect();
            let (failed, mean) = of(&rows);
            return Some(SinceLook { looked: None, count: rows.len(), more, failed, mean, before: None });
        };
        let start = moment - (cx.now.timestamp_micros() - moment).max(0);
        let within = |from: i64, to: i64| -> Vec<&Row> {
            page.rows.iter().filter(|row| began(row).is_some_and(|at| (from..to).contains(&at))).collect()
        };
        let rows = within(moment, i64::MAX);
        let all_since = rows.len() < page.rows.len();
        // Unread rows cannot be compared.
        let is_read = !more || page.rows.last().and_then(began).is_some_and(|oldest| oldest < start);
        let (failed, mean) = of(&rows);
        let before = is_read.then(|| of(&within(start, moment)));
        let looked = cx.opened.looked.clone();
        Some(SinceLook { looked, count: rows.len(), more: more && !all_since, failed, mean, before })
    }

    /// Keeps the entry selected when others come before it, except for the first one.
    fn keep_selected(&mut self, cx: &Context) {
        let entries = self.entries(cx);
        let before = std::mem::replace(&mut self.listed, entries.len());
        if self.selected == 0 {
            self.at = None;
            return;
        }
        if self.at.is_none() && before > 0 && self.selected >= before {
            self.selected = self.selected - before + entries.len();
        }
        match &self.at {
            Some(at) if entries.get(self.selected) != Some(at) => {
                self.selected = entries.iter().position(|to| to == at).unwrap_or(self.selected);
            }
            Some(_) => {}
            None => self.at = entries.get(self.selected).cloned(),
        }
        let screens = if self.at.is_none() { draw::screens(cx).len() } else { 0 };
        self.selected = self.selected.min((entries.len() + screens).saturating_sub(1));
    }

    /// Drops data read for another moment.
    fn keep_moment(&mut self, cx: &Context) {
        let is_other = self.moment.as_deref() != cx.past.as_ref().map(|past| past.at.as_str());
        if is_other && self.aged {
            (self.recent, self.aged) = (None, false);
        }
        if is_other && self.work_aged {
            (self.work, self.work_aged) = (None, false);
        }
    }

    /// Watches for writes by others while it is shown.
    fn watch(&mut self, cx: &mut Context) {
        if let (None, Some(entity)) = (self.live.watching, looked_at(cx)) {
            self.live.watching = Some(cx.ask(Request::Watch(Box::new(LiveTail::query(recent_query(entity))))));
        }
    }

    /// Reads the newest rows again; the old ones are shown until then.
    fn renew(&mut self, cx: &mut Context) {
        if let (Some(_), Some(entity)) = (&self.recent, looked_at(cx))
            && self.renewal.is_wanted()
        {
            let ticket = cx.renew(Request::LoadPage(Box::new(recent_query(entity))));
            self.renewal.begin(ticket);
        }
    }

    fn renew_work(&mut self, cx: &mut Context) {
        if self.work.is_some() && self.work_renewal.is_wanted() {
            let ticket = cx.renew(Request::LoadWork);
            self.work_renewal.begin(ticket);
        }
    }

    fn read_recent(&mut self, cx: &mut Context) {
        self.failure = None;
        cx.cancel(self.renewal.release());
        self.live.read_again();
        cx.cancel(self.pending.take());
        self.pending = looked_at(cx).map(|entity| cx.ask(Request::LoadPage(Box::new(recent_query(entity)))));
    }

    /// The newest rows, as far as they were read.
    pub fn rows(&self) -> &[Row] {
        self.recent.as_ref().map_or(&[], |page| &page.rows)
    }

    /// The newest rows that a list can show as well: their number, and the condition that holds only for them; `None`
    /// if all rows were read. Rows of the oldest time are left out if unread ones may have the same time.
    fn window(&self) -> (usize, Option<Filter>) {
        let rows = self.rows();
        let is_whole = self.recent.as_ref().is_none_or(|page| page.next.is_none());
        let began = |row: &Row| row.text(row.entity.time_column()).map(str::to_owned);
        let Some((last, oldest)) = rows.last().and_then(|last| Some((last, began(last)?))).filter(|_| !is_whole) else {
            return (rows.len(), None);
        };
        let as_old = rows.iter().rev().take_while(|row| began(row).as_ref() == Some(&oldest)).count();
        let (count, operator) = match as_old {
            1 => (rows.len(), Operator::GreaterOrEqual),
            all if all == rows.len() => return (rows.len(), None),
            some => (rows.len() - some, Operator::Greater),
        };
        (count, Some(Filter::new(last.entity.time_column(), operator, Operand::Time(oldest))))
    }

    /// The newest rows that the counts are of.
    pub fn counted(&self) -> &[Row] {
        self.rows().get(..self.window().0).unwrap_or_default()
    }

    /// Outcomes of the newest rows, most frequent first; empty if none are known.
    pub fn outcomes(&self) -> Vec<(&str, usize)> {
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for row in self.rows() {
            *counts.entry(row.text("outcome").unwrap_or("unknown")).or_default() += 1;
        }
        let mut counts: Vec<(&str, usize)> = counts.into_iter().collect();
        counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        if matches!(counts.as_slice(), [("unknown", _)]) { Vec::new() } else { counts }
    }

    /// The newest weeks, each by its Monday (month and day), with the numbers of successes, partial successes,
    /// failures, and other rows; empty if no outcome is known. A week with unread rows is left out.
    pub fn weeks(&self) -> Vec<(String, [usize; 4])> {
        if self.outcomes().is_empty() {
            return Vec::new();
        }
        let mut weeks: BTreeMap<i64, [usize; 4]> = BTreeMap::new();
        for row in self.rows() {
            let Some(micros) = row.text(row.entity.time_column()).and_then(time::epoch_micros) else { continue };
            let week = monday(micros.div_euclid(DAY));
            let part = match row.text("outcome") {
                Some("success") => 0,
                Some("partial") => 1,
                Some("failure") => 2,
                _ => 3,
            };
            weeks.entry(week).or_default()[part] += 1;
        }
        if self.recent.as_ref().is_some_and(|page| page.next.is_some()) {
            weeks.pop_first();
        }
        let named = |(week, counts): (i64, [usize; 4])| {
            Some((time::from_epoch(week * DAY, time::EpochUnit::Microseconds)?.get(5..10)?.to_owned(), counts))
        };
        weeks.into_iter().rev().filter_map(named).collect()
    }

    /// The newest rows that are most worth a look.
    pub fn standouts(&self) -> Vec<Standout> {
        let rows = self.counted();
        let Some(entity) = rows.first().map(|row| row.entity) else { return Vec::new() };
        let within = self.window().1;
        let count = |holds: &dyn Fn(&Row) -> bool| rows.iter().filter(|row| holds(row)).count();
        let listed = |text: &str, count: usize, filter: Filter| {
            let conditions = Conditions { filters: iter::once(filter).chain(within.clone()).collect(), canvas: None };
            Standout { count, text: agreeing(count as u64, text), to: Destination::List(entity, conditions) }
        };
        let below = |text: &str, column: &'static str, limit: f64| {
            let low = |row: &Row| row.number(column).is_some_and(|value| value < limit);
            listed(text, count(&low), Filter::new(column, Operator::Less, Operand::Real(limit)))
        };
        let failure = Filter::new("outcome", Operator::Equal, Operand::Text("failure".to_owned()));
        let mut found = vec![
            listed("failed", count(&|row: &Row| row.text("outcome") == Some("failure")), failure),
            below("{was|were} disliked", "feedback_score", 0.0),
            below("{has|have} a low utility", "utility", LOW),
            below("{has|have} a low reward", "reward", LOW),
        ];
        let unreadable = |row: &&Row| !row.problems.is_empty();
        if let Some(first) = rows.iter().find(unreadable) {
            let count = rows.iter().filter(unreadable).count();
            let to = Destination::Row(entity, first.id().to_owned());
            let (one, several) = (entity.title(), entity.plural());
            let text = format!("{{{one} holds|{several} hold}} a value that cannot be read; see the newest");
            found.push(Standout { count, text: agreeing(count as u64, &text), to });
        }
        found.retain(|standout| standout.count > 0);
        found
    }
}

fn step(count: usize, text: &str, note: &str, kind: ScreenKind) -> NeededStep {
    let (text, note, to) = (text.to_owned(), note.to_owned(), Destination::Panel(kind));
    let by = CommandId::Panel(kind);
    NeededStep { by, count: count as u64, more: false, text, note, role: StyleRole::Warn, to }
}

/// The tables with the most rows on damaged pages, and the number of the others.
fn of_unread(tables: &[UnreadRows]) -> Vec<NeededStep> {
    let (most, others) = tables.split_at(tables.len().min(UNREAD_SHOWN));
    let told = |rows: &UnreadRows| NeededStep {
        role: StyleRole::Bad,
        ..step(0, &rows.told(), "a page is damaged", ScreenKind::Tables)
    };
    let mut needs: Vec<NeededStep> = most.iter().map(told).collect();
    if !others.is_empty() {
        let text = agreeing(others.len(), "more damaged {table|tables}");
        needs.push(NeededStep {
            role: StyleRole::Muted,
            ..step(others.len(), &text, "`status` lists all", ScreenKind::Tables)
        });
    }
    needs
}

/// Names the tables that pending migrations touch: those of the layout, the tables of the memory, or none for ours.
fn touched_by(pending: &[String], is_blank: bool) -> String {
    let of_layouts: Vec<&str> = pending.iter().map(String::as_str).filter(|name| name.contains('/')).collect();
    let (touching, all) = (of_layouts.join(", "), of_layouts.len() == pending.len());
    let others = if all { "" } else { "; the others add tables beside it" };
    match of_layouts.len() {
        _ if is_blank => agreeing(pending.len(), "{creates|create} the memory tables"),
        0 => agreeing(pending.len(), "{adds|add} tables beside the memory"),
        count => format!("{touching} {}{others}", agreeing(count, "{touches|touch} the memory's tables")),
    }
}

fn unfinished(begun: &UnfinishedErasure, cx: &Context) -> NeededStep {
    NeededStep {
        by: CommandId::Erase,
        count: 0,
        more: false,
        text: format!("the erasure of {} is unfinished", begun.given),
        note: format!("begun {}", ago(&begun.started_at, cx)),
        role: StyleRole::Bad,
        to: Destination::Erase(begun.given.clone()),
    }
}

fn to_judge(feedback: &WaitingFeedback, cx: &Context) -> NeededStep {
    let oldest = feedback.oldest.as_deref().map(|at| format!("the oldest {}", ago(at, cx))).unwrap_or_default();
    let more = if feedback.more { format!(", among the newest {FEEDBACK_LOOKED_AT}") } else { String::new() };
    let waits = step(feedback.count, "feedback to judge", &format!("{oldest}{more}"), ScreenKind::Inbox);
    NeededStep { more: feedback.more, ..waits }
}

fn of_finding(finding: &Finding, count: u64, cx: &Context) -> NeededStep {
    let what = kind_named(finding.kind).map(|kind| kind.what(count)).unwrap_or_default();
    let (word, role) = health::severity(finding.severity);
    NeededStep {
        by: CommandId::Panel(ScreenKind::Findings),
        count,
        more: cx.health.may_grow(finding.kind),
        text: format!("{word}: {what}"),
        note: String::new(),
        role: if cx.health.aged { StyleRole::Stale } else { role },
        to: Destination::Finding(finding.kind, finding.entity),
    }
}

fn of_job(job: &JobProgress) -> NeededStep {
    let part = job.part().map_or_else(String::new, |part| format!(" at {:.0} %", (part * 100.0).floor()));
    step(0, &format!("{} {}{part}", job.name, job.state.word()), "a resumes it there", ScreenKind::Jobs)
}

/// `3d ago`, or the day if that is long ago.
fn ago(at: &str, cx: &Context) -> String {
    match age(at, cx.now).as_str() {
        "now" => "now".to_owned(),
        text if text.len() < 5 => format!("{text} ago"),
        day => format!("on {day}"),
    }
}

/// Finds the entity whose rows the first screen shows; `None` if the database holds none of the candidates.
pub fn looked_at(cx: &Context) -> Option<Entity> {
    LOOKED_AT.into_iter().find(|entity| cx.holds(*entity).is_ok())
}

impl Screen for HomeScreen {
    fn face(&self) -> ScreenFace {
        ScreenFace { title: "home", leads_here: CommandId::Home, scope: CommandScope::Find }
    }

    fn hints(&self) -> Vec<CommandId> {
        vec![
            CommandId::Open,
            CommandId::FindHere,
            CommandId::Focus,
            CommandId::Tail,
            CommandId::Palette,
            CommandId::Refresh,
        ]
    }

    fn hint_word(&self, id: CommandId) -> Option<&'static str> {
        match id {
            CommandId::Focus => Some("next part"),
            CommandId::Tail if self.live.follows => Some("pause"),
            _ => None,
        }
    }

    fn twin(&self, _cx: &Context) -> Vec<String> {
        words(["status"])
    }

    /// Shows the data of the last visit until it is read again, so that nothing moves under the selection meanwhile.
    fn inherit(&mut self, earlier: &Self, _here: bool) -> bool {
        self.recent.clone_from(&earlier.recent);
        self.work.clone_from(&earlier.work);
        self.moment.clone_from(&earlier.moment);
        (self.aged, self.work_aged) = (self.recent.is_some(), self.work.is_some());
        true
    }

    fn settle(&mut self, cx: &mut Context) {
        self.keep_moment(cx);
        self.keep_selected(cx);
        if self.pending.is_some() {
            return;
        }
        if (self.recent.is_none() || self.aged) && self.failure.is_none() && looked_at(cx).is_some() {
            return self.read_recent(cx);
        }
        cx.read_status();
        cx.read_unfinished();
        if cx.past.is_some() {
            return;
        }
        if (self.work.is_none() || self.work_aged) && self.pending_work.is_none() && self.work_failure.is_none() {
            self.pending_work = Some(cx.ask(Request::LoadWork));
        }
        self.watch(cx);
        if cx.status.is_some() || cx.status_failure.is_some() {
            cx.look(true);
        }
    }

    fn reply(&mut self, ticket: Ticket, reply: Reply, cx: &mut Context) {
        match reply {
            Reply::Page(result) if self.renewal.end(ticket) => {
                if let (Ok(page), Some(recent)) = (result, &mut self.recent) {
                    cx.read_names(&page.rows);
                    *recent = LiveTail::without_new(page, &recent.rows);
                }
                if self.renewal.is_due() {
                    self.renew(cx);
                }
            }
            Reply::Work(result) if self.work_renewal.end(ticket) => {
                if let Ok(work) = result {
                    self.work = Some(work);
                }
                if self.work_renewal.is_due() {
                    self.renew_work(cx);
                }
            }
            Reply::Page(result) => {
                self.pending = None;
                let was_aged = std::mem::take(&mut self.aged);
                match result {
                    Ok(page) => {
                        cx.read_names(&page.rows);
                        self.recent = Some(page);
                        self.moment = cx.past.as_ref().map(|past| past.at.clone());
                    }
                    Err(failure) => {
                        // After a temporary failure the old data stays, dimmed.
                        self.aged = was_aged && failure.passes;
                        if was_aged && !failure.passes {
                            self.recent = None;
                        }
                        self.live.awaits(Some(&failure), cx);
                        self.failure = Some(failure);
                    }
                }
            }
            Reply::Work(result) => {
                self.pending_work = None;
                let was_aged = std::mem::take(&mut self.work_aged);
                match result {
                    Ok(work) => self.work = Some(work),
                    Err(failure) => {
                        self.work_aged = was_aged && failure.passes;
                        if was_aged && !failure.passes {
                            self.work = None;
                        }
                        self.work_failure = Some(failure);
                    }
                }
            }
            Reply::News(newest) if self.pending.is_none() => {
                let held: Vec<RowKey> = self.rows().iter().take(COUNTED).map(RowKey::of).collect();
                self.live.count(&newest, &held);
                if self.live.follows && self.live.fresh > 0 {
                    self.read_recent(cx);
                } else {
                    self.renew(cx);
                }
                self.work_failure = None;
                if self.live.hears_more() {
                    self.renew_work(cx);
                    cx.renew_status();
                }
            }
            _ => {}
        }
    }

    fn command(&mut self, id: CommandId, cx: &mut Context) {
        if id == CommandId::FindHere {
            cx.prompt(Purpose::Find, "");
        } else if id == CommandId::Tail {
            self.live.follows = !self.live.follows;
            if self.live.follows {
                self.read_recent(cx);
            }
        }
    }

    fn may_age(&self) -> bool {
        false
    }

    fn is_live(&self) -> bool {
        true
    }

    fn news(&self) -> usize {
        self.live.fresh
    }

    fn open(&mut self, cx: &mut Context) {
        let entries = self.entries(cx);
        if let Some(to) = entries.get(self.selected) {
            cx.follow(to.clone());
        } else if let Some(id) = draw::screens(cx).get(self.selected - entries.len()) {
            cx.command(*id);
        }
    }

    fn move_by(&mut self, by: isize, cx: &mut Context) {
        let last = cx.measures.home_entries.saturating_sub(1);
        self.selected = self.selected.saturating_add_signed(by).min(last);
        self.at = None;
    }

    fn has_panes(&self) -> bool {
        true
    }

    /// Goes to the first entry of the next part.
    fn other_pane(&mut self, cx: &Context) {
        let mut first = 0;
        let mut starts = Vec::new();
        for part in self.parts(cx).iter().map(Vec::len).chain([draw::screens(cx).len()]) {
            if part > 0 {
                starts.push(first);
            }
            first += part;
        }
        self.selected = starts.iter().copied().find(|start| *start > self.selected).unwrap_or(0);
        self.at = None;
    }

    fn page(&self, _cx: &Context) -> usize {
        10
    }

    fn select(&mut self, position: usize) {
        self.selected = position;
        self.at = None;
    }

    fn is_at(&self, position: usize) -> bool {
        self.selected == position
    }

    fn release(&mut self) -> Vec<Ticket> {
        let renewals = [self.renewal.release(), self.work_renewal.release()];
        let asked = [self.pending.take(), self.pending_work.take(), self.live.release()];
        asked.into_iter().chain(renewals).flatten().collect()
    }

    fn forget(&mut self) {
        (self.recent, self.failure) = (None, None);
        (self.work, self.work_failure) = (None, None);
        (self.aged, self.work_aged) = (false, false);
        self.live.read_again();
    }

    fn shows_findings(&self) -> bool {
        true
    }

    fn is_reading(&self) -> bool {
        self.pending.is_some()
    }

    fn shows_past(&self) -> bool {
        true
    }

    fn draw(&self, cx: &Context, canvas: &mut Canvas<'_>) {
        draw::draw(cx, self, canvas.look, canvas.area, canvas.buf, canvas.drawn);
    }
}
