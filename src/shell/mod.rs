//! The impure edge of the console: the terminal, its input, the effects that the core asks for.

mod background;
mod change;
mod clipboard;
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
mod recall;
mod replay;
mod study;
mod tables;
mod terminal;
mod zone;

use std::collections::BTreeSet;
use std::io::{self, Write as _};
use std::sync::Arc;
use std::time::{Duration, Instant};

use chrono::Utc;
use crossterm::event::{Event, EventStream};
use futures::StreamExt as _;
use futures::future::BoxFuture;
use tokio::sync::mpsc;

use crate::config::looks;
use crate::console::core::key_map::KeyMap;
use crate::console::core::request::KnownDatabase;
use crate::console::core::{ConsoleSettings, Effect, Message, OpenedDatabase, RequestFailure};
use crate::console::{Drawn, Model, Painter, update};
use crate::layout::recognise::Attachment;
use crate::memory::Entity;
use crate::memory::mask::Mask;
use crate::memory::time::spell_utc;
use crate::store::{OpenError, Store};
use crate::ui::{SafeText, Theme};
use background::{Background, Listener, QUESTION};
use effects::Tasks;
use input::Pointer;
use look::LookChoices;
use terminal::{SignalListener, TerminalScreen, TerminalSignal};

pub use home::kept as looked_at;
pub use recall::Embedding;

/// Frames are drawn at most this often.
const FRAME: Duration = Duration::from_millis(16);
/// How late a signal may be heard.
const LATE: Duration = Duration::from_millis(250);
/// How long lines wait after a key for what it leads to.
const SETTLE: Duration = Duration::from_millis(150);
/// How often the core is told the time.
const TICK: Duration = Duration::from_secs(30);

/// How to show it.
#[derive(Debug)]
pub struct ConsoleOptions {
    /// Name of the theme; none asks the terminal for its background.
    pub theme: Option<String>,
    /// Themes that the user made.
    pub own_themes: Vec<Theme>,
    /// Which keys give which command.
    pub keys: KeyMap,
    /// Only ASCII is drawn.
    pub ascii: bool,
    /// The mouse is used.
    pub mouse: bool,
    /// Changes are told in lines instead of being drawn.
    pub plain: bool,
    /// Whether colours are used; none follows the environment and the terminal.
    pub colour: Option<bool>,
    /// The mask under which personal values are replaced.
    pub mask: Mask,
    /// Who makes changes, for the audit trail.
    pub actor: String,
    /// Bytes of vectors that are kept between recalls.
    pub vector_bytes: usize,
}

/// A database that is opened, and what its profile says of it.
#[derive(Clone)]
pub struct Door {
    /// Opens it.
    pub open: Opener,
    /// Personal values are masked at the beginning.
    pub masked: bool,
    /// Name of the profile that the database was named by.
    pub profile: Option<String>,
    /// Others depend on the database: every change asks for one step more care.
    pub production: bool,
    /// Where vectors of texts come from, as the profile says; else why they come from nowhere.
    pub embedding: Embedding,
}

/// Makes the door to a database that is named, or says why there is none.
pub type MakeDoor = Arc<dyn Fn(String) -> BoxFuture<'static, Result<Door, String>> + Send + Sync>;

/// Lists the databases that are known beside the one at a location.
pub type ListDatabases = Arc<dyn Fn(&str) -> Vec<KnownDatabase> + Send + Sync>;

/// The databases that can be opened instead of this one.
#[derive(Clone)]
pub struct Doors {
    /// The door to one of them by its profile, path or address.
    pub door: MakeDoor,
    /// Those that are known beside the one at a location, those first that were looked at last.
    pub known: ListDatabases,
}

/// Opens the database; again after tables of ours were added to it.
pub type Opener = Arc<dyn Fn() -> BoxFuture<'static, Result<Store, OpenError>> + Send + Sync>;

/// Why there was no console, or why it broke off.
#[derive(Debug, thiserror::Error)]
pub enum ConsoleError {
    /// Nobody sits in front of it.
    #[error("the console needs a terminal; in a script use a command such as `mnemoscope -d DATABASE status`")]
    NoTerminal,
    /// The database was not opened; the terminal is as it was.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The terminal cannot be used any more.
    #[error("the terminal: {0}")]
    Terminal(#[from] io::Error),
}

/// Why the console ended.
enum End {
    Quit,
    Signal(i32),
    /// Another database takes the place of this one.
    Switch(Box<(Store, Door)>),
}

impl End {
    /// 0, or 128 and the number of the signal.
    fn code(&self) -> u8 {
        match self {
            End::Quit | End::Switch(_) => 0,
            End::Signal(number) => 128_u8.saturating_add(u8::try_from(*number).unwrap_or(0)),
        }
    }
}

/// Runs the console on a database, and on those that are opened from there, until it is quit; the exit code: 0, or 128 and
/// the number of the signal that ended it.
///
/// # Errors
/// There is no terminal, it can no longer be used, or the database is not opened.
pub async fn run(door: Door, doors: Doors, options: ConsoleOptions) -> Result<u8, ConsoleError> {
    if !terminal::is_there() {
        // What is wrong with the database is wrong in a script too.
        (door.open)().await?;
        return Err(ConsoleError::NoTerminal);
    }
    let mut signals = SignalListener::listen()?;
    let theme = options.theme.clone().or_else(|| crate::config::desk::looks().theme);
    let mut looks = LookChoices::new(
        if options.plain { Some("mono") } else { theme.as_deref() },
        options.own_themes.clone(),
        options.ascii,
        options.colour,
    );
    let store = match signals.beside((door.open)(), true).await {
        Ok(store) => store?,
        Err(signal) => return Ok(End::Signal(signal).code()),
    };
    let mut screen = TerminalScreen::open(options.mouse, options.plain)?;
    let mut next = Box::new((store, door));
    let (mut told, mut chosen) = (Vec::new(), None);
    let ended = loop {
        let console =
            Console::new(*next, doors.clone(), &options, &mut looks, chosen.take(), &mut screen, &mut signals);
        let (end, model, lines) = match Box::pin(console.run()).await {
            Ok(ended) => ended,
            Err(error) => break Err(error),
        };
        told.extend(lines);
        desk::leave(&model, spell_utc(Utc::now()).as_deref());
        match end {
            End::Switch(other) => {
                next = other;
                chosen = Some(model.context.settings);
            }
            end => break Ok(end),
        }
    };
    screen.close();
    let end = ended?;
    for line in told {
        // Not by `eprintln!`: it panics where nobody hears it any more.
        let _ = writeln!(io::stderr(), "{}", SafeText::new(&line));
    }
    Ok(end.code())
}

/// What was opened, for the core.
fn opened(store: &Store, profile: Option<&String>, production: bool) -> OpenedDatabase {
    let named = |layout: &Attachment| match &layout.variant {
        Some(variant) => format!("{} ({variant})", layout.name),
        None => layout.name.clone(),
    };
    OpenedDatabase {
        location: store.location().to_owned(),
        invocation: store.invocation().clone(),
        layouts: store.recognised().layouts.iter().map(named).collect(),
        capabilities: store.report().capabilities(),
        profile: profile.cloned(),
        production,
        looked: home::looked(store),
        found_before: looks::last(store.location()),
        unfilled: unfilled(store),
    }
}

/// Columns that no source maps. A source that derives its columns may fill any.
fn unfilled(store: &Store) -> BTreeSet<(Entity, &'static str)> {
    let mut unfilled = BTreeSet::new();
    for entity in Entity::ALL {
        let sources: Vec<_> = store.recognised().sources.iter().filter(|s| s.entity == *entity).collect();
        let fills = |column: &str| sources.iter().any(|s| s.derives(column) || !s.column(column).is_empty());
        let missing = entity.columns().iter().filter(|c| !sources.is_empty() && !fills(c.name));
        unfilled.extend(missing.map(|c| (*entity, c.name)));
    }
    unfilled
}

struct Console<'s> {
    model: Model,
    looks: &'s mut LookChoices,
    painter: Painter,
    drawn: Drawn,
    pointer: Pointer,
    tasks: Tasks,
    replies: mpsc::UnboundedReceiver<Message>,
    screen: &'s mut TerminalScreen,
    signals: &'s mut SignalListener,
    /// None while the terminal is not ours.
    events: Option<EventStream>,
    /// Hears the terminal's answer about its background among the keys.
    listener: Listener,
    /// When the next frame may be drawn.
    frame_at: Instant,
    /// No frame was drawn yet.
    fresh: bool,
    /// A key was pressed since the last frame.
    pressed: bool,
    /// The core knows more than the screen shows.
    dirty: bool,
    /// We stopped ourselves: the signal that continued us is no news.
    continued: bool,
    /// When the editor was closed: an interrupt shortly after may still be one of the keys typed there.
    edited: Option<Instant>,
    ended: Option<End>,
    /// Lines to print when the terminal has been given back.
    told: Vec<String>,
}

impl<'s> Console<'s> {
    /// A console on an open database; `chosen` is what was chosen on the one before.
    fn new(
        (store, door): (Store, Door),
        doors: Doors,
        options: &ConsoleOptions,
        looks: &'s mut LookChoices,
        chosen: Option<ConsoleSettings>,
        screen: &'s mut TerminalScreen,
        signals: &'s mut SignalListener,
    ) -> Self {
        let (sender, replies) = mpsc::unbounded_channel();
        let fresh = chosen.is_none();
        let settings = chosen.unwrap_or_else(|| ConsoleSettings {
            theme: looks.name().to_owned(),
            theme_chosen: false,
            own_themes: options.own_themes.iter().map(|theme| theme.name().to_owned()).collect(),
            keys: options.keys.clone(),
            mouse: options.mouse,
            wrap: true,
            zone: zone::local(),
            vector_bytes: options.vector_bytes,
        });
        let seen = opened(&store, door.profile.as_ref(), door.production);
        let mut model = Model::new(seen, settings, options.mask.clone(), door.masked);
        desk::restore(&mut model);
        Console {
            model,
            looks,
            painter: Painter::default(),
            drawn: Drawn::default(),
            pointer: Pointer::default(),
            tasks: Tasks::new(Arc::new(store), doors, door, options, sender),
            replies,
            screen,
            signals,
            events: None,
            listener: Listener::default(),
            frame_at: Instant::now(),
            fresh,
            pressed: false,
            dirty: true,
            continued: false,
            edited: None,
            ended: None,
            told: Vec::new(),
        }
    }

    async fn run(mut self) -> io::Result<(End, Model, Vec<String>)> {
        let (width, height) = self.screen.size()?;
        self.tell(Message::Resize(width, height)).await;
        if self.model.context.masking.is_on() {
            // Before anything is shown.
            let people = self.tasks.people().await;
            self.tell(people).await;
        }
        self.tell(Message::Start(Utc::now())).await;
        let mut tick = tokio::time::interval(TICK);
        self.events = Some(EventStream::new());
        if let Some(patience) = self.looks.patience().filter(|_| self.fresh) {
            self.screen.write(QUESTION)?;
            self.listener.expect();
            self.frame_at = Instant::now() + patience;
        }
        loop {
            if let Some(end) = self.ended.take() {
                self.tasks.close().await;
                return Ok((end, self.model, self.told));
            }
            if self.dirty && Instant::now() >= self.frame_at {
                self.draw().await?;
                self.fresh = false;
                self.frame_at = Instant::now() + FRAME;
            }
            let frame = tokio::time::sleep_until(self.frame_at.into());
            let events = self.events.get_or_insert_with(EventStream::new);
            tokio::select! {
                biased;
                signal = self.signals.next() => self.signal(signal)?,
                event = events.next() => self.event(event).await,
                Some(reply) = self.replies.recv() => self.tell(reply).await,
                () = frame, if self.dirty => {}
                _ = tick.tick() => self.tell(Message::Tick(Utc::now())).await,
            }
            self.drain().await;
        }
    }

    /// Takes the replies that have come in meanwhile, so that one frame shows all of them. Events are taken one by one:
    /// the stream forgets whom to wake when it is asked without being waited for.
    async fn drain(&mut self) {
        while let Ok(reply) = self.replies.try_recv() {
            self.tell(reply).await;
        }
    }

    async fn event(&mut self, event: Option<io::Result<Event>>) {
        match event {
            Some(Ok(event)) => self.heard(event).await,
            // The terminal is gone; the signal that says so may be late.
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
            }
            if matches!(event, Event::Resize(..)) && self.screen.forget().is_err() {
                self.ended = Some(End::Signal(signal_hook::consts::SIGHUP));
            }
            // Terminals cut or fold what they show, even when the size is soon as it was before: the frame is drawn again.
            self.dirty |= matches!(event, Event::Resize(..));
            for message in self.pointer.messages(event, &self.drawn.hits) {
                self.tell(message).await;
            }
        }
        // Once there was a frame, the theme stays: a screen that changes its colours by itself would only startle.
        if let Some(background) = background.filter(|_| self.fresh) {
            if background == Background::Light {
                "light".clone_into(&mut self.model.context.settings.theme);
            }
            self.frame_at = Instant::now();
        }
    }

    fn signal(&mut self, signal: TerminalSignal) -> io::Result<()> {
        match signal {
            TerminalSignal::Interrupt(_) if self.edited.is_some_and(|closed| closed.elapsed() < LATE) => {}
            TerminalSignal::End(number) | TerminalSignal::Interrupt(number) => self.ended = Some(End::Signal(number)),
            TerminalSignal::Stop => self.suspend()?,
            TerminalSignal::Continued if self.continued => self.continued = false,
            TerminalSignal::Continued => {
                // Stopped without being asked: whoever had the terminal meanwhile left it in a state of its own.
                self.screen.leave()?;
                self.resume()?;
            }
        }
        Ok(())
    }

    async fn tell(&mut self, message: Message) {
        self.dirty = true;
        let effects = update(&mut self.model, message);
        for effect in effects {
            if let Err(error) = self.perform(effect).await {
                let failure = RequestFailure::new("That was not done", error.to_string(), "try again");
                let more = update(&mut self.model, Message::Failed(failure));
                self.tasks.start_all(more);
            }
        }
    }

    async fn perform(&mut self, effect: Effect) -> io::Result<()> {
        match effect {
            Effect::Quit => self.ended = Some(End::Quit),
            Effect::Switch { masked } => {
                if let Some((store, door)) = self.tasks.beside() {
                    let door = Door { masked: door.masked || masked, ..door };
                    self.ended = Some(End::Switch(Box::new((store, door))));
                }
            }
            Effect::Suspend => self.suspend()?,
            Effect::Tell(lines) => self.told.extend(lines),
            Effect::Redraw => {
                self.screen.forget()?;
            }
            Effect::SetTitle(title) => self.screen.set_title(&title)?,
            Effect::Mouse(ours) => self.screen.use_mouse(ours)?,
            Effect::Copy(what, text) => {
                let copied = clipboard::copy(self.screen.output(), &what, &text);
                self.tasks.reply(Message::Copied(copied));
            }
            Effect::View(ending, text) => {
                self.events = None;
                self.screen.leave()?;
                match self.signals.beside(editor::view(ending, &text), false).await {
                    Ok(viewed) => {
                        self.edited = Some(Instant::now());
                        self.resume()?;
                        self.tasks.reply(Message::Viewed(viewed));
                    }
                    Err(signal) => self.ended = Some(End::Signal(signal)),
                }
            }
            other => self.tasks.start(other),
        }
        Ok(())
    }

    fn suspend(&mut self) -> io::Result<()> {
        self.events = None;
        self.screen.leave()?;
        let stopped = terminal::stop();
        self.continued = stopped.is_ok();
        self.resume()?;
        stopped
    }

    /// Takes the terminal back as it is now.
    fn resume(&mut self) -> io::Result<()> {
        self.screen.enter()?;
        let (width, height) = self.screen.size()?;
        self.tasks.reply(Message::Resize(width, height));
        Ok(())
    }

    async fn draw(&mut self) -> io::Result<()> {
        self.dirty = false;
        let look = self.looks.named(&self.model.context.settings.theme);
        let (model, painter) = (&self.model, &mut self.painter);
        let mut drawn = Drawn::default();
        let pressed = std::mem::take(&mut self.pressed);
        self.screen.draw(pressed, |buf| drawn = painter.draw(model, look, buf))?;
        terminal::panic_if_asked("draw");
        self.drawn = drawn;
        if self.drawn.measures != self.model.context.measures {
            // What fits decides how far things scroll and which rows are needed.
            self.tell(Message::Drawn(self.drawn.measures)).await;
        }
        Ok(())
    }
}
