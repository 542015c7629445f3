//! The impure edge of the console: the terminal, its input, the effects that the core asks for.

mod background;
mod change;
mod clipboard;
mod damage;
mod desk;
mod editor;
mod effects;
mod erase;
mod export;
mod health;
mod home;
mod input;
mod job;
mod live;
mod load;
mod look;
mod open;
mod parting;
mod recall;
mod replay;
mod replies;
mod study;
mod tables;
mod terminal;
mod zone;

use std::collections::{BTreeSet, VecDeque};
use std::io::{self, Write as _};
use std::sync::Arc;
use std::time::{Duration, Instant};

use chrono::Utc;
use crossterm::event::{Event, EventStream};
use futures::StreamExt as _;
use futures::future::{BoxFuture, join_all};
use tokio::sync::mpsc;

use crate::console::core::request::KnownDatabase;
use crate::console::core::{
    ConsoleSettings, EditorEnd, Effect, KeyMap, Message, OpenedDatabase, RequestFailure, SwitchStep,
};
use crate::console::{Drawn, Model, Painter, update};
use crate::layout::BoundSource;
use crate::layout::recognise::Attachment;
use crate::memory::Entity;
use crate::memory::mask::Mask;
use crate::memory::time::spell_utc;
use crate::store::encode::{can_set, table_of};
use crate::store::{OpenError, Store};
use crate::ui::{SafeText, Theme};
use background::{Background, Listener, QUESTION};
use desk::FoundDesk;
use effects::Tasks;
use input::Pointer;
use look::LookChoices;
use open::OpenDatabases;
use replies::ReplySender;
use terminal::{SignalListener, TerminalScreen, TerminalSignal};

pub use erase::desk as erasure_desk;
pub use home::kept as looked_at;
pub use recall::Embedding;
pub use terminal::end_on_panic;

/// Least time between two frames; those for keys and those for replies are counted separately.
const FRAME: Duration = Duration::from_millis(16);
/// Time after the editor closes in which an interrupt may still come from a key typed there.
const LATE: Duration = Duration::from_millis(250);
/// Time that lines wait after a key for its effect.
const SETTLE: Duration = Duration::from_millis(150);
/// Interval at which the core gets the time.
const TICK: Duration = Duration::from_secs(30);

/// Options of the console.
#[derive(Debug)]
pub struct ConsoleOptions {
    /// Name of the theme; `None` asks the terminal for its background.
    pub theme: Option<String>,
    /// The user's own themes.
    pub own_themes: Vec<Theme>,
    /// Keys and their commands.
    pub keys: KeyMap,
    /// Only ASCII is drawn.
    pub ascii: bool,
    /// The mouse is used.
    pub mouse: bool,
    /// Whether changes are output as lines instead of drawing the screen.
    pub plain: bool,
    /// Whether colours are used; `None` follows the environment and the terminal.
    pub colour: Option<bool>,
    /// The mask that replaces personal values.
    pub mask: Mask,
    /// Person who makes the changes, for the audit trail.
    pub actor: String,
    /// Most bytes of vectors cached between recalls.
    pub vector_bytes: usize,
}

/// An opener of a database, and the settings of its profile.
#[derive(Clone)]
pub struct Door {
    /// Opens it.
    pub open: Opener,
    /// Opens a private copy of all rows that can be read, if pages are damaged.
    pub past_damage: Opener,
    /// Personal values are masked at the beginning.
    pub masked: bool,
    /// Name of the profile that the database was named by.
    pub profile: Option<String>,
    /// Whether others depend on the database: every change needs one step more care.
    pub production: bool,
    /// Endpoint for vectors of texts, or the reason why the profile's is not usable; `None` if the profile names none.
    pub embedding: Embedding,
}

impl Door {
    /// Opens the database; if it is damaged, what can be read of it.
    ///
    /// # Errors
    /// As [`Store::open`].
    async fn store(&self) -> Result<Store, OpenError> {
        match (self.open)().await {
            Err(damaged @ OpenError::Damaged(..)) => (self.past_damage)().await.map_err(|_| damaged),
            opened => opened,
        }
    }
}

/// Makes the opener of a named database, or returns an error message.
pub type MakeDoor = Arc<dyn Fn(String) -> BoxFuture<'static, Result<Door, String>> + Send + Sync>;

/// Lists the known databases besides the one at a location.
pub type ListDatabases = Arc<dyn Fn(&str) -> Vec<KnownDatabase> + Send + Sync>;

/// The databases that can be opened instead of this one.
#[derive(Clone)]
pub struct Doors {
    /// Makes the opener of a database from its profile, path or URL.
    pub door: MakeDoor,
    /// The known databases besides the one at a location, last visited first.
    pub known: ListDatabases,
}

/// Opens the database; called again after our tables were added.
pub type Opener = Arc<dyn Fn() -> BoxFuture<'static, Result<Store, OpenError>> + Send + Sync>;

/// Reason why the console did not start, or why it broke off.
#[derive(Debug, thiserror::Error)]
pub enum ConsoleError {
    /// Standard input or output is not a terminal.
    #[error("the console needs a terminal; in a script use a command such as `mnemoscope -d DATABASE status`")]
    NoTerminal,
    /// The database was not opened; the terminal was not touched.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The terminal failed.
    #[error("the terminal: {0}")]
    Terminal(#[from] io::Error),
}

/// Reason why the console ended.
enum End {
    Quit,
    Signal(i32),
}

impl End {
    /// 0, or 128 and the number of the signal.
    fn code(&self) -> u8 {
        match self {
            End::Quit => 0,
            End::Signal(number) => 128_u8.saturating_add(u8::try_from(*number).unwrap_or(0)),
        }
    }
}

/// Runs the console on a database, and on those opened from there, until it is quit. Returns the exit code: 0, or 128
/// plus the number of the signal that ended it.
///
/// # Errors
/// There is no terminal, it failed, or the database could not be opened.
pub async fn run(door: Door, doors: Doors, options: ConsoleOptions) -> Result<u8, ConsoleError> {
    if !terminal::is_there() {
        // A database error is reported in scripts too, so it comes first.
        (door.open)().await?;
        return Err(ConsoleError::NoTerminal);
    }
    let mut signals = SignalListener::listen()?;
    let theme = options.theme.clone().or_else(|| crate::config::desk::looks().theme);
    let mut looks =
        LookChoices::new(theme.as_deref(), options.own_themes.clone(), options.ascii, options.colour, options.plain);
    let store = match signals.beside(door.store(), true).await {
        Ok(store) => store?,
        Err(signal) => return Ok(End::Signal(signal).code()),
    };
    let mut screen = TerminalScreen::open(options.mouse, options.plain)?;
    let console = Console::new(store, door, doors, &options, &mut looks, &mut screen, &mut signals);
    let ended = Box::pin(console.run()).await;
    screen.close();
    let (end, told) = ended?;
    for line in told {
        // Not `eprintln!`, which panics if standard error is closed.
        let _ = writeln!(io::stderr(), "{}", SafeText::new(&line));
    }
    Ok(end.code())
}

/// Describes the opened database for the core.
fn opened(store: &Store, profile: Option<&String>, production: bool) -> OpenedDatabase {
    let named = |layout: &Attachment| match &layout.variant {
        Some(variant) => format!("{} ({variant})", layout.name),
        None => layout.name.clone(),
    };
    OpenedDatabase {
        location: store.location().to_owned(),
        place: crate::config::place_of(store.location()),
        invocation: store.invocation().clone(),
        layouts: store.recognised().layouts.iter().map(named).collect(),
        capabilities: store.report().capabilities(),
        blocked: store.why_not_writable().map(str::to_owned),
        profile: profile.cloned(),
        production,
        looked: home::looked(store),
        found_before: crate::config::desk::last_findings(store.location()),
        unread: store.unread().map(<[_]>::to_vec),
        tables: store.recognised().sources.iter().map(|source| (source.entity, table_of(source).title())).collect(),
        unfilled: columns_without(store, |source, name| source.derives(name) || !source.column(name).is_empty()),
        fixed: columns_without(store, can_set),
    }
}

/// Columns that no source of the database's entities has.
fn columns_without(store: &Store, has: fn(&BoundSource, &str) -> bool) -> BTreeSet<(Entity, &'static str)> {
    let mut lacking = BTreeSet::new();
    for entity in Entity::ALL {
        let sources: Vec<_> = store.recognised().sources.iter().filter(|s| s.entity == *entity).collect();
        let missing =
            entity.columns().iter().filter(|c| !sources.is_empty() && !sources.iter().any(|s| has(s, c.name)));
        lacking.extend(missing.map(|c| (*entity, c.name)));
    }
    lacking
}

/// Creates the console of a database: its model, its saved state, and its tasks.
fn made(
    store: Store,
    door: Door,
    doors: Doors,
    options: &ConsoleOptions,
    settings: ConsoleSettings,
    replies: ReplySender,
) -> (Model, FoundDesk, Tasks) {
    let seen = opened(&store, door.profile.as_ref(), door.production);
    let mut model = Model::new(seen, settings, options.mask.clone(), door.masked);
    let found = desk::restore(&mut model);
    (model, found, Tasks::new(Arc::new(store), doors, door, options, replies))
}

struct Console<'s> {
    open: OpenDatabases,
    /// Pending steps, each with the number of the database that requested it.
    steps: VecDeque<(u64, SwitchStep)>,
    /// Number of the database that was opened last.
    newest: u64,
    doors: Doors,
    options: &'s ConsoleOptions,
    looks: &'s mut LookChoices,
    painter: Painter,
    drawn: Drawn,
    pointer: Pointer,
    sender: mpsc::UnboundedSender<(u64, Message)>,
    replies: mpsc::UnboundedReceiver<(u64, Message)>,
    screen: &'s mut TerminalScreen,
    signals: &'s mut SignalListener,
    /// `None` while the terminal is not ours.
    events: Option<EventStream>,
    /// Hears the terminal's answer about its background among the keys.
    listener: Listener,
    /// Earliest time for the next frame.
    frame_at: Instant,
    /// Earliest time of the next frame for a key: frames for replies do not delay it.
    key_frame_at: Instant,
    /// No frame was drawn yet.
    fresh: bool,
    /// A key was pressed since the last frame.
    pressed: bool,
    /// The core knows more than the screen shows.
    dirty: bool,
    /// Time at which the editor was closed: an interrupt shortly after may still come from a key typed there.
    edited: Option<Instant>,
    ended: Option<End>,
    /// Lines to print after the terminal has been restored.
    told: Vec<String>,
}

impl<'s> Console<'s> {
    /// A console on an open database.
    fn new(
        store: Store,
        door: Door,
        doors: Doors,
        options: &'s ConsoleOptions,
        looks: &'s mut LookChoices,
        screen: &'s mut TerminalScreen,
        signals: &'s mut SignalListener,
    ) -> Self {
        let (sender, replies) = mpsc::unbounded_channel();
        let settings = ConsoleSettings {
            theme: looks.name().to_owned(),
            theme_chosen: false,
            own_themes: options.own_themes.iter().map(|theme| theme.name().to_owned()).collect(),
            keys: options.keys.clone(),
            mouse: options.mouse,
            wrap: true,
            zone: zone::local(),
            vector_bytes: options.vector_bytes,
        };
        let heard = ReplySender { database: 0, all: sender.clone() };
        let first = made(store, door, doors.clone(), options, settings, heard);
        Console {
            open: OpenDatabases::new(0, first),
            steps: VecDeque::new(),
            newest: 0,
            doors,
            options,
            looks,
            painter: Painter::of(screen.is_plain()),
            drawn: Drawn::default(),
            pointer: Pointer::default(),
            sender,
            replies,
            screen,
            signals,
            events: None,
            listener: Listener::default(),
            frame_at: Instant::now(),
            key_frame_at: Instant::now(),
            fresh: true,
            pressed: false,
            dirty: true,
            edited: None,
            ended: None,
            told: Vec::new(),
        }
    }

    async fn run(mut self) -> io::Result<(End, Vec<String>)> {
        self.begin(0).await?;
        let mut tick = tokio::time::interval(TICK);
        self.events = Some(EventStream::new());
        if let Some(patience) = self.looks.patience().filter(|_| self.fresh) {
            self.screen.write(QUESTION)?;
            self.listener.expect();
            self.frame_at = Instant::now() + patience;
        }
        loop {
            if let Some(end) = self.ended.take() {
                return Ok((end, self.leave().await));
            }
            while let Some((from, step)) = self.steps.pop_front() {
                self.switch(from, step).await?;
            }
            if self.dirty && Instant::now() >= self.frame_at {
                let shows_key = self.pressed;
                self.draw().await?;
                self.fresh = false;
                self.frame_at = Instant::now() + FRAME;
                if shows_key {
                    self.key_frame_at = self.frame_at;
                }
            }
            let frame = tokio::time::sleep_until(self.frame_at.into());
            let events = self.events.get_or_insert_with(EventStream::new);
            tokio::select! {
                biased;
                signal = self.signals.next() => self.signal(signal).await?,
                event = events.next() => self.event(event).await,
                Some((database, reply)) = self.replies.recv() => self.tell(database, reply).await,
                () = frame, if self.dirty => {}
                _ = tick.tick() => self.tick().await,
            }
            // A reply after the end is printed as a line, as no frame shows it any more.
            if self.ended.is_none() {
                self.drain().await;
            }
        }
    }

    /// Handles the replies that have arrived, so that one frame shows all of them. Events are taken one by one: the
    /// stream loses its waker if it is polled without being awaited.
    async fn drain(&mut self) {
        while let Ok((database, reply)) = self.replies.try_recv() {
            self.tell(database, reply).await;
        }
    }

    async fn tick(&mut self) {
        let all: Vec<u64> = self.open.all().iter().map(|open| open.id).collect();
        for database in all {
            self.tell(database, Message::Tick(Utc::now())).await;
        }
    }

    /// Sends a console its first messages.
    async fn begin(&mut self, database: u64) -> io::Result<()> {
        let (width, height) = self.screen.size()?;
        self.tell(database, Message::Resize(width, height)).await;
        if let Some(open) = self.open.find_mut(database).filter(|open| open.model.context.masking.is_on()) {
            // Before anything is shown.
            let people = open.tasks.people().await;
            self.tell(database, people).await;
        }
        self.tell(database, Message::Start(Utc::now())).await;
        Ok(())
    }

    /// Shows another database, or closes one, as requested by the console of the database `from`.
    async fn switch(&mut self, from: u64, step: SwitchStep) -> io::Result<()> {
        let here = self.open.here().id;
        match step {
            SwitchStep::To(database) => self.show(database).await,
            SwitchStep::Close(database) => self.close(database),
            SwitchStep::Leave => {
                if let Some(before) = self.open.shown_before() {
                    self.show(before).await;
                    self.close(here);
                }
            }
            SwitchStep::Opened | SwitchStep::Replace => {
                let Some((store, door)) = self.open.find_mut(from).and_then(|open| open.tasks.beside()) else {
                    return Ok(());
                };
                let cx = &self.open.here().model.context;
                let (settings, masked) = (cx.settings.clone(), cx.masking.is_on());
                self.newest += 1;
                let replies = ReplySender { database: self.newest, all: self.sender.clone() };
                let door = Door { masked: door.masked || masked, ..door };
                let made = made(store, door, self.doors.clone(), self.options, settings, replies);
                self.open.add(self.newest, made);
                if step == SwitchStep::Replace {
                    self.replace(from, self.newest).await;
                }
                self.begin(self.newest).await?;
                // If another one is shown meanwhile, it stays.
                if from == here && step == SwitchStep::Opened {
                    self.show(self.newest).await;
                }
            }
        }
        let beside = self.open.beside();
        self.tell(self.open.here().id, Message::Beside(beside)).await;
        Ok(())
    }

    async fn show(&mut self, database: u64) {
        let left = self.open.here_mut();
        let arrival = left.model.leave();
        left.tasks.rest();
        self.open.show(database);
        (self.painter, self.drawn, self.pointer) =
            (Painter::of(self.screen.is_plain()), Drawn::default(), Pointer::default());
        self.tell(self.open.here().id, Message::Arrived(Box::new(arrival))).await;
    }

    /// Closes an open database that is not shown. Its jobs pause.
    fn close(&mut self, database: u64) {
        if let Some(mut closed) = self.open.take(database) {
            desk::leave(&closed, spell_utc(Utc::now()).as_deref());
            tokio::spawn(async move { closed.tasks.close().await });
        }
    }

    /// Closes a database whose file was replaced before the one opened at its path is read: both have files of the same
    /// name beside them, and closing those drops all locks of this process on them.
    async fn replace(&mut self, old: u64, new: u64) {
        if self.open.here().id == old {
            self.show(new).await;
        }
        if let Some(mut closed) = self.open.take(old) {
            desk::leave(&closed, spell_utc(Utc::now()).as_deref());
            closed.tasks.end().await;
        }
        if let Some(open) = self.open.find_mut(new) {
            open.tasks.reconnect();
        }
    }

    /// Passes the news of the other databases to the one shown.
    fn pass_on(&self) {
        let (here, beside) = (self.open.here(), self.open.beside());
        if here.model.context.beside != beside {
            here.tasks.reply(Message::Beside(beside));
        }
    }

    /// Saves the state for the next session, pauses all jobs, and waits for writes with a time limit. Returns lines to
    /// print.
    async fn leave(mut self) -> Vec<String> {
        let mut all = self.open.into_all();
        join_all(all.iter_mut().map(|open| open.tasks.close())).await;
        let mut broken = Vec::new();
        for open in &mut all {
            broken.push(open.tasks.break_off().await);
        }
        let mut answered = Vec::new();
        while let Ok((database, message)) = self.replies.try_recv() {
            let open = all.iter_mut().find(|open| open.id == database);
            if let (Some(open), Message::Reply(ticket, reply)) = (open, message)
                && let Some(words) = parting::outcome(&mut open.model, ticket, reply)
            {
                answered.push((database, ticket));
                self.told.push(words);
            }
        }
        for (open, broken) in all.iter().zip(broken) {
            let unanswered = broken.into_iter().filter(|(ticket, _)| !answered.contains(&(open.id, *ticket)));
            self.told.extend(unanswered.map(|(ticket, is_begun)| parting::broken_off(&open.model, ticket, is_begun)));
            desk::leave(open, spell_utc(Utc::now()).as_deref());
        }
        self.told
    }

    async fn event(&mut self, event: Option<io::Result<Event>>) {
        match event {
            Some(Ok(event)) => self.heard(event).await,
            // The terminal is gone; its signal may arrive later.
            Some(Err(_)) | None => self.ended = Some(End::Signal(signal_hook::consts::SIGHUP)),
        }
    }

    async fn heard(&mut self, event: Event) {
        let (events, background) = self.listener.hear(event);
        for event in events {
            if self.screen.is_plain() && matches!(event, Event::Resize(..)) {
                continue;
            }
            self.pressed = true;
            if self.screen.is_plain() {
                self.frame_at = Instant::now() + SETTLE;
            } else if !self.fresh {
                self.frame_at = self.frame_at.min(self.key_frame_at);
            }
            if matches!(event, Event::Resize(..)) && self.screen.forget().is_err() {
                self.ended = Some(End::Signal(signal_hook::consts::SIGHUP));
            }
            // Terminals cut or wrap the screen on a resize, even if the size is soon the same again: the frame is drawn
            // again.
            self.dirty |= matches!(event, Event::Resize(..));
            for message in self.pointer.messages(event, &self.drawn.hits) {
                self.tell(self.open.here().id, message).await;
            }
        }
        // After the first frame the theme is kept: a spontaneous change of colours would be startling.
        if let Some(background) = background.filter(|_| self.fresh) {
            if background == Background::Light {
                "light".clone_into(&mut self.open.here_mut().model.context.settings.theme);
            }
            self.frame_at = Instant::now();
        }
    }

    async fn signal(&mut self, signal: TerminalSignal) -> io::Result<()> {
        match signal {
            TerminalSignal::Interrupt(_) if self.edited.is_some_and(|closed| closed.elapsed() < LATE) => {}
            TerminalSignal::End(number) | TerminalSignal::Interrupt(number) => self.ended = Some(End::Signal(number)),
            TerminalSignal::Stop => self.suspend().await?,
            TerminalSignal::Continued => {
                // The process was stopped by another one: the program that had the terminal meanwhile left it in its
                // own state.
                self.screen.leave()?;
                self.resume()?;
            }
        }
        Ok(())
    }

    /// Sends a message to the console of a database, unless that was closed.
    async fn tell(&mut self, database: u64, message: Message) {
        let is_here = self.open.here().id == database;
        let Some(open) = self.open.find_mut(database) else { return };
        let effects = update(&mut open.model, message);
        for effect in effects {
            if let Err(error) = self.perform(database, effect).await
                && let Some(open) = self.open.find_mut(database)
            {
                let failure = RequestFailure::new("That was not done", error.to_string(), "try again");
                let more = update(&mut open.model, Message::Failed(failure));
                open.tasks.start_all(more);
            }
        }
        if is_here {
            self.dirty = true;
        } else {
            self.pass_on();
        }
    }

    async fn perform(&mut self, database: u64, effect: Effect) -> io::Result<()> {
        match effect {
            Effect::Quit => self.ended = Some(End::Quit),
            Effect::Switch(step) => self.steps.push_back((database, step)),
            Effect::SetTitle(_) if self.open.here().id != database => {}
            Effect::Suspend => self.suspend().await?,
            Effect::Tell(lines) => self.told.extend(lines),
            Effect::Redraw => {
                self.screen.forget()?;
            }
            Effect::SetTitle(title) => self.screen.set_title(&title)?,
            Effect::Mouse(ours) => self.screen.use_mouse(ours)?,
            Effect::Copy(what, text) => {
                let copied = clipboard::copy(self.screen.output(), &what, &text);
                self.open.here().tasks.reply(Message::Copied(copied));
            }
            Effect::View(ending, text) => self.beside_editor(editor::view(ending, &text)).await?,
            Effect::Edit(ending, text) => self.beside_editor(editor::edit(ending, &text)).await?,
            other => {
                if let Some(open) = self.open.find_mut(database) {
                    open.tasks.start(other);
                }
            }
        }
        Ok(())
    }

    /// Leaves the terminal to the user's editor until that is closed.
    async fn beside_editor(
        &mut self,
        editing: impl Future<Output = Result<EditorEnd, RequestFailure>>,
    ) -> io::Result<()> {
        self.events = None;
        self.screen.leave()?;
        match self.signals.beside(editing, false).await {
            Ok(viewed) => {
                self.edited = Some(Instant::now());
                self.resume()?;
                self.open.here().tasks.reply(Message::Viewed(viewed));
            }
            Err(signal) => self.ended = Some(End::Signal(signal)),
        }
        Ok(())
    }

    async fn suspend(&mut self) -> io::Result<()> {
        self.events = None;
        self.screen.leave()?;
        let stopped = self.signals.stop().await;
        self.resume()?;
        stopped
    }

    /// Takes over the terminal in its current state.
    fn resume(&mut self) -> io::Result<()> {
        self.screen.enter()?;
        let (width, height) = self.screen.size()?;
        self.open.here().tasks.reply(Message::Resize(width, height));
        Ok(())
    }

    async fn draw(&mut self) -> io::Result<()> {
        self.dirty = false;
        let (model, painter) = (&self.open.here().model, &mut self.painter);
        let look = self.looks.named(&model.context.settings.theme);
        let mut drawn = Drawn::default();
        let moment = Painter::moment(model, std::mem::take(&mut self.pressed));
        self.screen.draw(&moment, |buf| drawn = painter.draw(model, look, buf))?;
        terminal::panic_if_asked("draw");
        self.drawn = drawn;
        let here = self.open.here();
        if self.drawn.measures != here.model.context.measures {
            // The drawn sizes determine scroll ranges and the rows needed.
            self.tell(here.id, Message::Drawn(self.drawn.measures)).await;
        }
        Ok(())
    }
}
