//! Replay: the episodes of a topic, or around one episode, in order of time, with probable parents.

pub(in crate::console) mod draw;
pub mod messages;

pub use messages::{ReplayStep, ReplaySubject, ReplayedTopic};

use crate::change::operation::Operation;
use crate::console::core::twin::words;
use crate::console::core::{
    CommandId, CommandScope, Context, Destination, Fetched, Judged, Lack, ListCursor, Prompt, Purpose, Reply, Request,
    Screen, ScreenFace, ScreenKind, ScreenOrigin, Ticket, ToastTone,
};
use crate::console::view::Canvas;
use crate::memory::invocation::filled;
use crate::memory::{Entity, Row};
use crate::recall::parents::Suggestion;

/// Maximum numbers of episodes to choose from, in ascending order.
const LIMITS: [usize; 4] = [10, 20, 50, 100];

/// A selectable entry of the time line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimelineEntry {
    /// An episode by its position.
    Step(usize),
    /// A possible parent, by the position of the episode and its own.
    Parent(usize, usize),
}

/// The screen.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ReplayScreen {
    /// Subject of the replay; `None` until a topic is named.
    pub about: Option<ReplaySubject>,
    /// Position among [`LIMITS`].
    more: usize,
    /// The replay on the screen.
    pub told: Fetched<Box<ReplayedTopic>>,
    /// The selected entry.
    pub cursor: ListCursor,
}

impl ReplayScreen {
    /// Returns the maximum number of episodes shown.
    pub fn limit(&self) -> usize {
        LIMITS.get(self.more).copied().unwrap_or(LIMITS[0])
    }

    /// Everything that can be selected, from above.
    pub fn entries(&self) -> Vec<TimelineEntry> {
        self.told.value.as_deref().map(entries).unwrap_or_default()
    }

    /// The selected episode, or the one of the selected parent.
    pub fn step(&self) -> Option<&ReplayStep> {
        let at = match self.entries().get(self.cursor.selected)? {
            TimelineEntry::Step(at) | TimelineEntry::Parent(at, _) => *at,
        };
        self.told.value.as_ref()?.steps.get(at)
    }

    /// The selected parent.
    pub fn parent(&self) -> Option<&Suggestion> {
        match self.entries().get(self.cursor.selected)? {
            TimelineEntry::Parent(_, parent) => self.step()?.parents.get(*parent),
            TimelineEntry::Step(_) => None,
        }
    }

    fn turn_to(&mut self, about: ReplaySubject, cx: &mut Context) {
        cx.cancel(self.release());
        *self = ReplayScreen { about: Some(about), more: self.more, ..ReplayScreen::default() };
    }

    fn ask_topic(&self, cx: &mut Context) {
        let text = match (&self.about, &self.told.value) {
            (Some(ReplaySubject::Topic(topic)), _) => topic,
            (_, Some(told)) => &told.topic,
            _ => "",
        };
        cx.prompt(Purpose::Topic, text);
    }

    /// Shows more episodes, or fewer.
    fn show_more(&mut self, more: bool, cx: &mut Context) {
        let before = self.more;
        self.more = if more { before + 1 } else { before.saturating_sub(1) }.min(LIMITS.len() - 1);
        if self.more == before {
            let end = if more { "more" } else { "fewer" };
            cx.say(ToastTone::Info, format!("{} episodes are shown: no {end} can be", self.limit()));
        } else {
            self.forget();
            cx.cancel(self.release());
        }
    }

    /// Takes the topic; the same episode stays selected.
    fn fill(&mut self, told: Box<ReplayedTopic>) {
        let known = self.step().map(|step| step.row.id().to_owned());
        let known = known.or_else(|| match &self.about {
            Some(ReplaySubject::Episode(id)) => Some(id.clone()),
            _ => None,
        });
        let same = |entry: &TimelineEntry| match entry {
            TimelineEntry::Step(at) => told.steps.get(*at).map(|step| step.row.id()) == known.as_deref(),
            TimelineEntry::Parent(..) => false,
        };
        let entries = entries(&told);
        let again = entries.iter().position(same);
        self.told.take(Ok(told));
        self.select(again.unwrap_or(self.cursor.selected));
    }
}

fn entries(told: &ReplayedTopic) -> Vec<TimelineEntry> {
    let entries = told.steps.iter().enumerate().flat_map(|(at, step)| {
        let parents = (0..step.parents.len()).map(move |parent| TimelineEntry::Parent(at, parent));
        std::iter::once(TimelineEntry::Step(at)).chain(parents)
    });
    entries.collect()
}

impl Screen for ReplayScreen {
    fn face(&self) -> ScreenFace {
        ScreenFace::own("replay", ScreenKind::Replay, CommandScope::Replay)
    }

    /// Texts are cut here.
    fn whole_row(&self) -> Option<&Row> {
        None
    }

    fn row(&self) -> Option<&Row> {
        self.step().map(|step| &step.row)
    }

    fn twin(&self, _cx: &Context) -> Vec<String> {
        match (&self.about, self.step()) {
            (Some(ReplaySubject::Topic(topic)), _) => words(["replay", topic, "--limit", &self.limit().to_string()]),
            (_, Some(step)) => vec![filled("chain $id --suggest-parents", &[step.row.id()])],
            (Some(ReplaySubject::Episode(id)), None) => vec![filled("chain $id", &[id])],
            // Refused before: nothing is shown.
            (None, None) => Vec::new(),
        }
    }

    fn can(&self, id: CommandId, _cx: &Context) -> Result<(), Lack> {
        match id {
            CommandId::CopyCommand if self.about.is_none() => Err(("no topic is named yet".to_owned(), None)),
            _ => Ok(()),
        }
    }

    /// Begins around the selected episode; without one, a topic is asked for.
    fn enter(&mut self, origin: &ScreenOrigin, cx: &mut Context) -> bool {
        let episode = origin.id_of(Entity::Episode, "episode_id");
        let followed = episode.is_some();
        match episode {
            Some(id) => self.turn_to(ReplaySubject::Episode(id), cx),
            None if self.about.is_none() => self.ask_topic(cx),
            None => {}
        }
        followed
    }

    fn enter_again(&mut self, origin: &ScreenOrigin, cx: &mut Context) {
        if origin.selected.is_some() {
            self.enter(origin, cx);
        }
    }

    fn settle(&mut self, cx: &mut Context) {
        if let Some(about) = self.about.as_ref().filter(|_| self.told.is_wanted()) {
            self.told.pending = Some(cx.ask(Request::Replay { about: about.clone(), limit: self.limit() }));
        }
    }

    fn reply(&mut self, _ticket: Ticket, reply: Reply, cx: &mut Context) {
        let Reply::Replayed(result) = reply else { return };
        match result {
            Ok(told) => {
                cx.read_names(told.steps.iter().map(|step| &step.row));
                self.fill(told);
            }
            Err(failure) => self.told.take(Err(failure)),
        }
    }

    fn command(&mut self, id: CommandId, cx: &mut Context) {
        match id {
            CommandId::Topic => self.ask_topic(cx),
            CommandId::ReplayMore(more) => self.show_more(more, cx),
            _ => {}
        }
    }

    /// Goes to the selected episode, or to the selected parent.
    fn open(&mut self, cx: &mut Context) {
        let parent = self.parent().map(|parent| parent.id.clone());
        match parent.or_else(|| self.step().map(|step| step.row.id().to_owned())) {
            Some(id) => cx.follow(Destination::Row(Entity::Episode, id)),
            None => self.ask_topic(cx),
        }
    }

    fn cursor(&mut self) -> Option<(&mut ListCursor, usize)> {
        let entries = self.entries().len();
        Some((&mut self.cursor, entries))
    }

    fn written(&mut self, purpose: Purpose, text: &str, cx: &mut Context) {
        if purpose == Purpose::Topic && !text.is_empty() {
            self.turn_to(ReplaySubject::Topic(text.to_owned()), cx);
        }
    }

    fn judge(&self, prompt: &Prompt, _cx: &Context) -> Option<Judged> {
        let verdict = match (prompt.purpose, prompt.input.text().trim()) {
            (Purpose::Topic, "") => Err("name a topic".to_owned()),
            (Purpose::Topic, _) => Ok("its episodes are shown in order of time".to_owned()),
            _ => return None,
        };
        Some((verdict, Vec::new()))
    }

    /// The link that the selected suggestion would make.
    fn suggests(&self) -> Option<Operation> {
        let child = self.step()?.row.id().to_owned();
        Some(Operation::Link { child, parent: self.parent()?.id.clone() })
    }

    fn release(&mut self) -> Vec<Ticket> {
        self.told.release()
    }

    /// Marks the replay as out of date; it stays on screen until it has been read again.
    fn forget(&mut self) {
        self.told.forget();
    }

    fn shows_past(&self) -> bool {
        true
    }

    fn awaits_jump(&self) -> bool {
        self.told.pending.is_some() && self.row().is_none()
    }

    fn draw(&self, cx: &Context, canvas: &mut Canvas<'_>) {
        draw::draw(cx, self, canvas.look, canvas.area, canvas.buf, canvas.drawn);
    }
}
