//! The terminal: taken over at the start and restored at the end in every case.

use std::backtrace::{Backtrace, BacktraceStatus};
use std::collections::BTreeMap;
use std::io::{self, BufWriter, IsTerminal as _, Write};
use std::mem::ManuallyDrop;
use std::num::NonZeroU16;
use std::panic::PanicHookInfo;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};

use crossterm::event::{DisableBracketedPaste, EnableBracketedPaste};
use crossterm::terminal::{
    BeginSynchronizedUpdate, EndSynchronizedUpdate, EnterAlternateScreen, LeaveAlternateScreen, SetTitle,
    disable_raw_mode, enable_raw_mode,
};
use crossterm::{cursor, execute, queue, style};
use ratatui::Terminal;
use ratatui::backend::{Backend as _, CrosstermBackend};
use ratatui::buffer::{Buffer, CellDiffOption};
use ratatui::layout::{Position, Rect};
use tokio::signal::unix::{Signal as Listener, SignalKind, signal};
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

use crate::ui::SafeText;
use crate::ui::linear::{LinearMoment, LinearTeller};

/// Bytes gathered before they are written.
const BUFFER: usize = 64 * 1024;
/// Turns on clicks and the wheel, in the form without coordinate limits; movement is not reported.
const MOUSE_ON: &str = "\x1b[?1000h\x1b[?1006h";
const MOUSE_OFF: &str = "\x1b[?1006l\x1b[?1000l";
/// Turns on, and off, unambiguous keys with releases, if the terminal supports that (kitty's keyboard protocol).
const KEYS_ON: &str = "\x1b[>3u";
const KEYS_OFF: &str = "\x1b[<1u";
/// Saves and restores the window's title, if the terminal supports that.
const TITLE_KEEP: &str = "\x1b[22;2t";
const TITLE_BACK: &str = "\x1b[23;2t";

/// Exit code after a panic, as in Rust.
const PANICKED: i32 = 101;

/// Whether we have the terminal; whoever sets it to false restores the terminal.
static TAKEN: AtomicBool = AtomicBool::new(false);

/// Whether changes are output as lines: then only the terminal's mode must be restored.
static PLAIN: AtomicBool = AtomicBool::new(false);

/// Columns and rows of a screen that is output as lines.
const LINEAR: (u16, u16) = (95, 44);

/// Whether both standard input and standard output are a terminal.
pub fn is_there() -> bool {
    io::stdin().is_terminal() && io::stdout().is_terminal()
}

/// Standard output while we have the terminal. Later writes, by a thread that does not know yet that the terminal was
/// restored, are dropped.
struct Output;

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut out = io::stdout().lock();
        if TAKEN.load(Ordering::SeqCst) { out.write(bytes) } else { Ok(bytes.len()) }
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stdout().flush()
    }
}

/// Restores the terminal, once; from any thread.
fn give_back() {
    // A command never took it, and its output may wait for a reader.
    if !TAKEN.load(Ordering::SeqCst) {
        return;
    }
    // Locked before the change, so that no frame is written in between.
    let mut out = io::stdout().lock();
    if !TAKEN.swap(false, Ordering::SeqCst) {
        return;
    }
    if PLAIN.load(Ordering::SeqCst) {
        let _ = out.flush();
        let _ = disable_raw_mode();
        return;
    }
    let _ = write!(out, "{MOUSE_OFF}{KEYS_OFF}");
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

/// Makes a panic in any thread restore the terminal, print the message, and end the program.
pub fn end_on_panic() {
    std::panic::set_hook(Box::new(|panic| {
        give_back();
        // Not `eprintln!`: if standard error is closed, that would panic again, and abort.
        let mut out = io::stderr().lock();
        let _ = writeln!(out, "{}", told(panic));
        let trace = Backtrace::capture();
        if trace.status() == BacktraceStatus::Captured {
            let _ = writeln!(out, "{trace}");
        }
        std::process::exit(PANICKED);
    }));
}

/// Formats the message of a panic for users. It may quote stored text, which must not act on the terminal.
fn told(panic: &PanicHookInfo<'_>) -> String {
    let place = panic.location().map(ToString::to_string).unwrap_or_default();
    let words = panic.payload_as_str().unwrap_or("no words");
    let lines: Vec<String> = SafeText::block(words).iter().map(ToString::to_string).collect();
    let lines = lines.join("\n");
    let next = if cfg!(stripped) {
        "Report it with what `mnemoscope --version` prints."
    } else {
        "RUST_BACKTRACE=1 shows the call stack."
    };
    format!("mnemoscope: a bug, at {place}:\n{lines}\n{next}")
}

/// Panics if `MNEMOSCOPE_PANIC` names this place; the rest of the variable is the message. Not in a release build: it
/// serves to test that the terminal is restored.
pub fn panic_if_asked(place: &str) {
    if cfg!(development)
        && let Ok(asked) = std::env::var("MNEMOSCOPE_PANIC")
        && let Some(message) = asked.strip_prefix(place)
    {
        panic!("{message}");
    }
}

/// The screen while it is ours.
pub struct TerminalScreen {
    /// Never dropped: that would show the cursor when the terminal is no longer ours, and print failures to a closed
    /// stream.
    terminal: ManuallyDrop<Terminal<CrosstermBackend<BufWriter<Output>>>>,
    mouse: bool,
    /// Output as lines; `Some` if nothing is drawn.
    linear: Option<LinearTeller>,
    title: SafeText,
    /// Positions in the last frame whose symbol has several characters.
    loose: LooseSymbols,
}

impl TerminalScreen {
    /// Takes over the terminal; `plain` outputs changes as lines instead of drawing them, and does not use the mouse.
    pub fn open(mouse: bool, plain: bool) -> io::Result<Self> {
        PLAIN.store(plain, Ordering::SeqCst);
        let backend = CrosstermBackend::new(BufWriter::with_capacity(BUFFER, Output));
        let mut screen = TerminalScreen {
            terminal: ManuallyDrop::new(Terminal::new(backend)?),
            mouse: mouse && !plain,
            linear: plain.then(LinearTeller::default),
            title: SafeText::new("mnemoscope"),
            loose: LooseSymbols::default(),
        };
        screen.enter()?;
        Ok(screen)
    }

    /// Takes over the terminal, at the start or again.
    pub fn enter(&mut self) -> io::Result<()> {
        enable_raw_mode()?;
        TAKEN.store(true, Ordering::SeqCst);
        if self.linear.is_some() {
            return self.forget();
        }
        let out = self.terminal.backend_mut();
        write!(out, "{TITLE_KEEP}")?;
        queue!(out, EnterAlternateScreen, EnableBracketedPaste, cursor::Hide)?;
        // Sent in the alternate screen, which has its own keyboard state.
        write!(out, "{KEYS_ON}")?;
        if self.mouse {
            write!(out, "{MOUSE_ON}")?;
        }
        queue!(out, SetTitle(self.title.as_str()))?;
        Write::flush(out)?;
        self.forget()
    }

    /// Restores the terminal for a while.
    pub fn leave(&mut self) -> io::Result<()> {
        Write::flush(self.terminal.backend_mut())?;
        give_back();
        Ok(())
    }

    /// Restores the terminal for good.
    pub fn close(&mut self) {
        let _ = self.leave();
    }

    /// Columns and rows.
    pub fn size(&self) -> io::Result<(u16, u16)> {
        if self.linear.is_some() {
            return Ok(LINEAR);
        }
        let size = self.terminal.backend().size()?;
        Ok((size.width, size.height))
    }

    /// Drops the known screen content, so that the next frame is drawn in full. Does not use `clear`, which queries the
    /// cursor position and fails without an answer.
    pub fn forget(&mut self) -> io::Result<()> {
        if let Some(teller) = &mut self.linear {
            teller.forget();
            return Ok(());
        }
        self.loose = LooseSymbols::default();
        let size = self.terminal.size()?;
        self.terminal.resize(Rect::from((Position::ORIGIN, size)))
    }

    pub fn write(&mut self, sequence: &str) -> io::Result<()> {
        let out = self.terminal.backend_mut();
        write!(out, "{sequence}")?;
        Write::flush(out)
    }

    /// Returns the writer for escape sequences.
    pub fn output(&mut self) -> &mut impl Write {
        self.terminal.backend_mut()
    }

    /// Sets the window's title; its text cannot contain escape sequences.
    pub fn set_title(&mut self, title: &str) -> io::Result<()> {
        const WIDEST: usize = 120;
        self.title = SafeText::limited(title, WIDEST);
        if self.linear.is_some() {
            return Ok(());
        }
        let out = self.terminal.backend_mut();
        queue!(out, SetTitle(self.title.as_str()))?;
        Write::flush(out)
    }

    /// Captures the mouse, or releases it to the terminal.
    pub fn use_mouse(&mut self, ours: bool) -> io::Result<()> {
        if self.linear.is_some() {
            return Ok(());
        }
        self.mouse = ours;
        let out = self.terminal.backend_mut();
        write!(out, "{}", if ours { MOUSE_ON } else { MOUSE_OFF })?;
        Write::flush(out)
    }

    /// Whether changes are output as lines.
    pub fn is_plain(&self) -> bool {
        self.linear.is_some()
    }

    /// Draws a frame; only changes are written, all at once. `moment` is the trigger of the drawing.
    pub fn draw(&mut self, moment: &LinearMoment, paint: impl FnOnce(&mut Buffer)) -> io::Result<()> {
        if let Some(teller) = &mut self.linear {
            let mut buf = Buffer::empty(Rect::new(0, 0, LINEAR.0, LINEAR.1));
            paint(&mut buf);
            let out = self.terminal.backend_mut();
            for line in teller.tell(&buf, moment) {
                write!(out, "{line}\r\n")?;
            }
            return Write::flush(out);
        }
        queue!(self.terminal.backend_mut(), BeginSynchronizedUpdate)?;
        let loose = &mut self.loose;
        self.terminal.draw(|frame| {
            paint(frame.buffer_mut());
            loose.settle(frame.buffer_mut());
        })?;
        let out = self.terminal.backend_mut();
        queue!(out, EndSynchronizedUpdate)?;
        Write::flush(out)
    }
}

/// Symbols of several characters in the last frame (of Indic scripts, or joined emoji), by column and row. Many
/// terminals show their characters one by one, in more columns than the symbol has: the following text would move to
/// the right, and overwriting the first character would leave the others.
#[derive(Debug, Default)]
struct LooseSymbols {
    last: BTreeMap<(u16, u16), String>,
}

impl LooseSymbols {
    /// Forces the cursor position after such a symbol, and rewrites the columns that it may have covered.
    fn settle(&mut self, buf: &mut Buffer) {
        let loose = buf.content.iter().enumerate().filter(|(_, cell)| cell.symbol().chars().nth(1).is_some());
        let now: BTreeMap<_, _> = loose.map(|(index, cell)| (buf.pos_of(index), cell.symbol().to_owned())).collect();
        let changed = |at: &(u16, u16), symbol: &String, other: &BTreeMap<_, _>| other.get(at) != Some(symbol);
        let gone =
            self.last.iter().filter(|(at, symbol)| changed(at, symbol, &now)).map(|(at, symbol)| (at, symbol, 1));
        let new = now.iter().filter(|(at, symbol)| changed(at, symbol, &self.last));
        let new = new.map(|(at, symbol)| (at, symbol, symbol.width() as u16));
        for ((x, y), symbol, first) in gone.chain(new) {
            let most: usize = symbol.chars().map(|c| c.width().unwrap_or_default().max(1)).sum();
            for right in first..most as u16 {
                if let Some(cell) = buf.cell_mut(Position { x: x.saturating_add(right), y: *y }) {
                    cell.diff_option = CellDiffOption::AlwaysUpdate;
                }
            }
        }
        for ((x, y), symbol) in &now {
            let width = NonZeroU16::new(symbol.width() as u16);
            if let (Some(width), Some(cell)) = (width, buf.cell_mut(Position { x: *x, y: *y })) {
                let end = cursor::MoveTo(x.saturating_add(width.get()), *y);
                cell.set_symbol(&format!("{symbol}{end}")).diff_option = CellDiffOption::ForcedWidth(width);
            }
        }
        self.last = now;
    }
}

impl Drop for TerminalScreen {
    fn drop(&mut self) {
        give_back();
    }
}

/// A signal that means something to the console.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TerminalSignal {
    /// Request to end, with the signal's number.
    End(i32),
    /// The interrupt or quit key of a terminal that is not in raw mode, with its signal number.
    Interrupt(i32),
    /// Request to stop (suspend) the program.
    Stop,
    /// Notice that the program continues after a stop.
    Continued,
}

/// Listens for signals.
pub struct SignalListener {
    terminate: Listener,
    hangup: Listener,
    interrupt: Listener,
    quit: Listener,
    stop_asked: Listener,
    continued: Listener,
}

impl SignalListener {
    /// Begins to listen; from then on no signal ends or stops the program by itself.
    pub fn listen() -> io::Result<Self> {
        use signal_hook::consts::{SIGCONT, SIGTSTP};
        Ok(SignalListener {
            terminate: signal(SignalKind::terminate())?,
            hangup: signal(SignalKind::hangup())?,
            interrupt: signal(SignalKind::interrupt())?,
            quit: signal(SignalKind::quit())?,
            stop_asked: signal(SignalKind::from_raw(SIGTSTP))?,
            continued: signal(SignalKind::from_raw(SIGCONT))?,
        })
    }

    /// Stops this process as the terminal's stop key would; returns when it is continued and that signal has arrived. A
    /// later signal belongs to another stop.
    pub async fn stop(&mut self) -> io::Result<()> {
        signal_hook::low_level::emulate_default_handler(signal_hook::consts::SIGTSTP)?;
        self.continued.recv().await;
        Ok(())
    }

    pub async fn next(&mut self) -> TerminalSignal {
        use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
        tokio::select! {
            _ = self.terminate.recv() => TerminalSignal::End(SIGTERM),
            _ = self.hangup.recv() => TerminalSignal::End(SIGHUP),
            _ = self.interrupt.recv() => TerminalSignal::Interrupt(SIGINT),
            _ = self.quit.recv() => TerminalSignal::Interrupt(SIGQUIT),
            _ = self.stop_asked.recv() => TerminalSignal::Stop,
            _ = self.continued.recv() => TerminalSignal::Continued,
        }
    }

    /// Waits for work while the terminal is not ours, and stops with it on the terminal's stop key. A termination
    /// signal drops the work; interrupt keys do so only if they are meant for us and not for another program that has
    /// the terminal.
    ///
    /// # Errors
    /// The number of the signal that ended it.
    pub async fn beside<T>(&mut self, work: impl Future<Output = T>, keys_are_ours: bool) -> Result<T, i32> {
        let mut work = pin!(work);
        loop {
            let signal = tokio::select! {
                done = &mut work => return Ok(done),
                signal = self.next() => signal,
            };
            match signal {
                TerminalSignal::End(number) => return Err(number),
                TerminalSignal::Interrupt(number) if keys_are_ours => return Err(number),
                TerminalSignal::Stop => {
                    // If stopping fails, the work continues.
                    let _ = self.stop().await;
                }
                TerminalSignal::Interrupt(_) | TerminalSignal::Continued => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ratatui::style::Style;

    const LOOSE: &str = "a\u{0b95}\u{0bca}b\u{27e9}\u{1f3fb}";

    #[test]
    fn nothing_is_left_of_a_symbol_of_several_characters() {
        let mut loose = LooseSymbols::default();
        let mut before = Buffer::empty(Rect::new(0, 0, 12, 1));
        before.set_string(0, 0, LOOSE, Style::new());
        loose.settle(&mut before);
        let mut blank = Buffer::empty(before.area);
        loose.settle(&mut blank);
        let written: Vec<u16> = before.diff(&blank).iter().map(|(x, ..)| *x).collect();
        let drawn = LOOSE.width() as u16;
        assert!((0..drawn).all(|x| written.contains(&x)), "{written:?}");
        assert!(loose.last.is_empty());
    }

    #[test]
    fn what_follows_a_symbol_of_several_characters_is_written_where_it_belongs() {
        let mut loose = LooseSymbols::default();
        let mut before = Buffer::empty(Rect::new(0, 0, 12, 1));
        before.set_string(0, 0, "a  | next", Style::new());
        let mut after = before.clone();
        loose.settle(&mut before);
        after.set_string(0, 0, "\u{1f469}\u{200d}\u{1f4bb} | next", Style::new());
        loose.settle(&mut after);
        let diff = before.diff(&after);
        // Shown one by one, the emoji and the joiner may take up to five columns.
        assert_eq!(diff.iter().map(|(x, ..)| *x).collect::<Vec<_>>(), [0, 2, 3, 4]);
        assert!(diff[0].2.symbol().ends_with(&cursor::MoveTo(2, 0).to_string()));
    }

    #[test]
    fn what_stays_is_not_written_again() {
        let mut loose = LooseSymbols::default();
        let mut before = Buffer::empty(Rect::new(0, 0, 12, 1));
        before.set_string(0, 0, "\u{0b95}\u{0bca} \u{65e5}\u{672c}", Style::new());
        let mut after = before.clone();
        loose.settle(&mut before);
        loose.settle(&mut after);
        assert!(before.diff(&after).is_empty());
    }
}
