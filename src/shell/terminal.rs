//! The terminal: taken at the beginning, given back at the end whatever happens.

use std::backtrace::{Backtrace, BacktraceStatus};
use std::io::{self, BufWriter, IsTerminal as _, Stdout, StdoutLock, Write as _};
use std::mem::ManuallyDrop;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

use crossterm::event::{DisableBracketedPaste, EnableBracketedPaste};
use crossterm::terminal::{
    BeginSynchronizedUpdate, EndSynchronizedUpdate, EnterAlternateScreen, LeaveAlternateScreen, SetTitle,
    disable_raw_mode, enable_raw_mode,
};
use crossterm::{cursor, execute, queue, style};
use ratatui::Terminal;
use ratatui::backend::{Backend as _, CrosstermBackend};
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use tokio::signal::unix::{Signal as Listener, SignalKind, signal};

use crate::ui::SafeText;

/// Bytes gathered before they are written.
const BUFFER: usize = 64 * 1024;
/// Clicks and the wheel, in the form without limits; movement is not asked for.
const MOUSE_ON: &str = "\x1b[?1000h\x1b[?1006h";
const MOUSE_OFF: &str = "\x1b[?1006l\x1b[?1000l";
/// Keeps and brings back the window's title, where the terminal can.
const TITLE_KEEP: &str = "\x1b[22;2t";
const TITLE_BACK: &str = "\x1b[23;2t";

/// Whether the terminal is ours now; whoever sets it to false gives it back.
static TAKEN: AtomicBool = AtomicBool::new(false);

/// Says clearly that a terminal is needed.
pub fn require() -> io::Result<()> {
    if io::stdin().is_terminal() && io::stdout().is_terminal() {
        return Ok(());
    }
    let message = "the console needs a terminal; in a script use a command such as `mnemoscope -d DATABASE status`";
    Err(io::Error::new(io::ErrorKind::Unsupported, message))
}

/// Gives the terminal back, once; from any thread.
fn give_back() {
    give_back_through(&mut io::stdout().lock());
}

fn give_back_through(out: &mut StdoutLock<'_>) {
    if !TAKEN.swap(false, Ordering::SeqCst) {
        return;
    }
    let _ = write!(out, "{MOUSE_OFF}");
    let _ = execute!(
        out,
        EndSynchronizedUpdate,
        DisableBracketedPaste,
        style::ResetColor,
        LeaveAlternateScreen,
        cursor::Show
    );
    let _ = write!(out, "{TITLE_BACK}");
    let _ = out.flush();
    let _ = disable_raw_mode();
}

/// From now on a panic is told without the power of what it tells over the terminal: it may quote stored text. One in
/// any thread while the terminal is ours gives that back first and ends the program.
pub fn guard_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        std::panic::set_hook(Box::new(move |panic| {
            // Kept until the end, so that no other thread draws over what is told.
            let mut out = io::stdout().lock();
            let ours = TAKEN.load(Ordering::SeqCst);
            give_back_through(&mut out);
            let message = panic.payload_as_str().unwrap_or("no message");
            let place = panic.location().map(ToString::to_string).unwrap_or_default();
            // Not by `eprintln!`: where nobody hears it, that would panic again, and abort.
            let mut told = io::stderr().lock();
            let _ = writeln!(told, "mnemoscope: a mistake in the program, at {place}");
            for line in SafeText::block(message) {
                let _ = writeln!(told, "mnemoscope: {line}");
            }
            let trace = Backtrace::capture();
            if trace.status() == BacktraceStatus::Captured {
                let _ = writeln!(told, "{trace}");
            }
            if ours {
                std::process::exit(101);
            }
        }));
    });
}

/// Panics when `MNEMOSCOPE_PANIC` names this place, with what follows the name as the message. Not in a release build:
/// it is there to show that the terminal is given back.
pub fn panic_if_asked(place: &str) {
    if cfg!(debug_assertions)
        && let Ok(asked) = std::env::var("MNEMOSCOPE_PANIC")
        && let Some(message) = asked.strip_prefix(place)
    {
        panic!("{message}");
    }
}

/// The screen while it is ours.
pub struct Screen {
    /// Never dropped: it would show the cursor when the terminal is no longer ours, tell of a failure to where nobody
    /// hears it, and write what is left of a broken frame.
    terminal: ManuallyDrop<Terminal<CrosstermBackend<BufWriter<Stdout>>>>,
    mouse: bool,
    forgotten: bool,
}

impl Screen {
    /// Takes the terminal.
    pub fn open(mouse: bool) -> io::Result<Self> {
        let backend = CrosstermBackend::new(BufWriter::with_capacity(BUFFER, io::stdout()));
        let mut screen = Screen { terminal: ManuallyDrop::new(Terminal::new(backend)?), mouse, forgotten: true };
        screen.enter()?;
        Ok(screen)
    }

    /// Takes the terminal, at the beginning or again; also when somebody may have changed it while we were stopped.
    pub fn enter(&mut self) -> io::Result<()> {
        // A mode that we believe to be set already would not be set.
        disable_raw_mode()?;
        enable_raw_mode()?;
        let kept = TAKEN.swap(true, Ordering::SeqCst);
        let out = self.terminal.backend_mut();
        if !kept {
            // What these keep, the terminal keeps as often as it is told to.
            write!(out, "{TITLE_KEEP}")?;
            queue!(out, EnterAlternateScreen)?;
        }
        queue!(out, EnableBracketedPaste, cursor::Hide)?;
        if self.mouse {
            write!(out, "{MOUSE_ON}")?;
        }
        io::Write::flush(out)?;
        self.forget();
        Ok(())
    }

    /// Gives the terminal back for a while.
    pub fn leave(&mut self) -> io::Result<()> {
        io::Write::flush(self.terminal.backend_mut())?;
        give_back();
        Ok(())
    }

    /// Gives the terminal back for good.
    pub fn close(&mut self) {
        let _ = self.leave();
    }

    /// Columns and rows.
    pub fn size(&self) -> io::Result<(u16, u16)> {
        let size = self.terminal.backend().size()?;
        Ok((size.width, size.height))
    }

    /// Forgets what is on the screen, so that the next frame draws all of it.
    pub fn forget(&mut self) {
        self.forgotten = true;
    }

    /// Writes a sequence at once.
    pub fn write(&mut self, sequence: &str) -> io::Result<()> {
        let out = self.terminal.backend_mut();
        write!(out, "{sequence}")?;
        io::Write::flush(out)
    }

    /// Where escape sequences go.
    pub fn output(&mut self) -> &mut impl io::Write {
        self.terminal.backend_mut()
    }

    /// Names the window; what the name holds cannot become a sequence.
    pub fn set_title(&mut self, title: &str) -> io::Result<()> {
        const WIDEST: usize = 120;
        let out = self.terminal.backend_mut();
        queue!(out, SetTitle(SafeText::limited(title, WIDEST).as_str()))?;
        io::Write::flush(out)
    }

    /// Takes the mouse or leaves it to the terminal.
    pub fn use_mouse(&mut self, ours: bool) -> io::Result<()> {
        self.mouse = ours;
        self.write(if ours { MOUSE_ON } else { MOUSE_OFF })
    }

    /// Draws a frame; only what changed is written, all at once.
    pub fn draw(&mut self, paint: impl FnOnce(&mut Buffer)) -> io::Result<()> {
        queue!(self.terminal.backend_mut(), BeginSynchronizedUpdate)?;
        if std::mem::take(&mut self.forgotten) {
            // Not by `clear`, which asks the terminal where its cursor is and fails when there is no answer.
            let size = self.terminal.size()?;
            self.terminal.resize(Rect::from((Position::ORIGIN, size)))?;
        }
        self.terminal.draw(|frame| paint(frame.buffer_mut()))?;
        let out = self.terminal.backend_mut();
        queue!(out, EndSynchronizedUpdate)?;
        io::Write::flush(out)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        give_back();
    }
}

/// Stops this process as the terminal's stop key would; returns when it is continued.
pub fn stop() -> io::Result<()> {
    signal_hook::low_level::emulate_default_handler(signal_hook::consts::SIGTSTP)
}

/// A signal that means something to the console.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    /// It shall end; the signal's number.
    End(i32),
    /// It shall stop.
    Stop,
    /// It was continued after somebody stopped it without asking.
    Continued,
}

/// Listens for signals.
pub struct Signals {
    terminate: Listener,
    hangup: Listener,
    interrupt: Listener,
    quit: Listener,
    stop: Listener,
    continued: Listener,
}

impl Signals {
    /// Begins to listen.
    pub fn listen() -> io::Result<Self> {
        use signal_hook::consts::{SIGCONT, SIGTSTP};
        Ok(Signals {
            terminate: signal(SignalKind::terminate())?,
            hangup: signal(SignalKind::hangup())?,
            interrupt: signal(SignalKind::interrupt())?,
            quit: signal(SignalKind::quit())?,
            stop: signal(SignalKind::from_raw(SIGTSTP))?,
            continued: signal(SignalKind::from_raw(SIGCONT))?,
        })
    }

    /// The next signal.
    pub async fn next(&mut self) -> Signal {
        use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
        tokio::select! {
            _ = self.terminate.recv() => Signal::End(SIGTERM),
            _ = self.hangup.recv() => Signal::End(SIGHUP),
            _ = self.interrupt.recv() => Signal::End(SIGINT),
            _ = self.quit.recv() => Signal::End(SIGQUIT),
            _ = self.stop.recv() => Signal::Stop,
            _ = self.continued.recv() => Signal::Continued,
        }
    }
}
