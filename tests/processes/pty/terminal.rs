//! A terminal for the program to run in: a pty, an emulator that shows what is on the screen, and every byte written.

use std::fmt::Write as _;
use std::io::{Read as _, Write as _};
use std::num::NonZeroU16;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};
use rustix::fs::{Mode, OFlags};
use tempfile::TempDir;

use crate::support::signal;

/// Maximum time that anything may take before a test fails. Only a failure waits that long.
const DEADLINE: Duration = Duration::from_secs(30);

/// The program under test.
pub const PROGRAM: &str = env!("CARGO_BIN_EXE_mnemoscope");

/// A folder with everything of the program in it: databases, settings, state, home.
pub struct Home(TempDir);

impl Home {
    pub fn new() -> Self {
        Home(TempDir::new().unwrap())
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// A demo database of 250 episodes.
    pub fn demo(&self) -> PathBuf {
        self.demo_of(250)
    }

    /// A demo database of that many episodes.
    pub fn demo_of(&self, episodes: u64) -> PathBuf {
        let path = self.path().join("demo.db");
        let options = mnemoscope::demo::DemoOptions { episodes, ..mnemoscope::demo::DemoOptions::default() };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(mnemoscope::demo::build(&path, &options, |_| ())).unwrap();
        path
    }

    /// The program's surroundings, as name and value.
    pub fn surroundings(&self) -> Vec<(&'static str, String)> {
        let at = |name: &str| self.path().join(name).display().to_string();
        vec![
            ("HOME", at("home")),
            ("MNEMOSCOPE_STATE", at("state")),
            ("MNEMOSCOPE_CONFIG", at("config.toml")),
            ("TMPDIR", self.path().display().to_string()),
            ("PATH", std::env::var("PATH").unwrap_or_default()),
            ("TERM", "xterm-256color".to_owned()),
            ("COLORTERM", "truecolor".to_owned()),
            ("LANG", "C.UTF-8".to_owned()),
        ]
    }
}

/// Answer of the terminal when it is asked for its colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Background {
    /// Nothing: not every terminal knows the question.
    Silent,
    /// A white background; the first text is typed just before the answer, the second one ends the answer.
    Light(&'static str, &'static str),
}

struct Seen {
    emulator: vt100::Parser,
    raw: Vec<u8>,
    /// Bytes whose questions were answered.
    answered: usize,
    closed: bool,
    /// The reader is to let go of the terminal.
    leaving: bool,
}

type Shared = Arc<(Mutex<Seen>, Condvar)>;

/// The program in its terminal.
pub struct Terminal {
    child: Box<dyn Child + Send + Sync>,
    master: Option<Box<dyn MasterPty + Send>>,
    keys: Keyboard,
    seen: Shared,
    /// The terminal's modes before the program came, written down.
    modes: String,
    reading: Option<JoinHandle<()>>,
}

type Keyboard = Arc<Mutex<Option<Box<dyn std::io::Write + Send>>>>;

/// Settings with which the program is started.
pub struct Start<'a> {
    home: &'a Home,
    program: &'static str,
    arguments: Vec<String>,
    variables: Vec<(&'static str, String)>,
    /// Keys that were typed before the program runs.
    typed: &'static str,
    background: Background,
    size: (u16, u16),
}

impl<'a> Start<'a> {
    pub fn new(home: &'a Home, arguments: &[&str]) -> Self {
        let arguments = arguments.iter().map(|a| (*a).to_owned()).collect();
        let background = Background::Silent;
        Start { home, program: PROGRAM, arguments, variables: Vec::new(), typed: "", background, size: (120, 40) }
    }

    pub fn typed(mut self, keys: &'static str) -> Self {
        self.typed = keys;
        self
    }

    pub fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.variables.push((name, value.into()));
        self
    }

    pub fn on(mut self, background: Background) -> Self {
        self.background = background;
        self
    }

    pub fn sized(mut self, columns: u16, rows: u16) -> Self {
        self.size = (columns, rows);
        self
    }

    /// Starts another program, which starts ours.
    pub fn program(mut self, program: &'static str) -> Self {
        self.program = program;
        self
    }

    pub fn run(self) -> Terminal {
        let pair = native_pty_system().openpty(pty_size(self.size)).unwrap();
        let modes = format!("{:?}", pair.master.get_termios());
        let mut writer = pair.master.take_writer().unwrap();
        writer.write_all(self.typed.as_bytes()).unwrap();
        let mut command = CommandBuilder::new(self.program);
        command.args(&self.arguments);
        command.cwd(self.home.path());
        command.env_clear();
        for (name, value) in self.home.surroundings().into_iter().chain(self.variables) {
            command.env(name, value);
        }
        let child = pair.slave.spawn_command(command).unwrap();
        drop(pair.slave);
        let (columns, rows) = self.size;
        let emulator = vt100::Parser::new(cells(rows), cells(columns), 0);
        let seen: Shared = Arc::new((
            Mutex::new(Seen { emulator, raw: Vec::new(), answered: 0, closed: false, leaving: false }),
            Condvar::new(),
        ));
        let keys: Keyboard = Arc::new(Mutex::new(Some(writer)));
        let mut reader = pair.master.try_clone_reader().unwrap();
        let (to, answers, background) = (Arc::clone(&seen), Arc::clone(&keys), self.background);
        let reading = Some(std::thread::spawn(move || {
            let mut buffer = [0; 16 * 1024];
            loop {
                // A pty whose other side has gone gives an error on some systems, an end on others.
                let count = reader.read(&mut buffer).unwrap_or(0);
                let (answer, leaving) = {
                    let mut seen = lock(&to.0);
                    seen.closed |= count == 0;
                    seen.raw.extend_from_slice(&buffer[..count]);
                    seen.emulator.process(&shown(&buffer[..count]));
                    let answer = answer(&mut seen, background);
                    to.1.notify_all();
                    (answer, seen.leaving)
                };
                if let Some(keys) = lock(&answers).as_mut() {
                    let _ = keys.write_all(answer.as_bytes());
                }
                if count == 0 || leaving {
                    break;
                }
            }
        }));
        Terminal { child, master: Some(pair.master), keys, seen, modes, reading }
    }
}

/// Output with another character for U+FFFD, which the emulator leaves out, so that all after it would stand too far
/// left. (One that is split between two reads is missed: only the picture suffers.)
fn shown(output: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(output.len());
    let mut rest = output;
    while let Some((first, more)) = rest.split_first() {
        if let Some(after) = rest.strip_prefix("\u{fffd}".as_bytes()) {
            out.push(b'?');
            rest = after;
        } else {
            out.push(*first);
            rest = more;
        }
    }
    out
}

/// Answers what was asked and not answered yet.
fn answer(seen: &mut Seen, background: Background) -> String {
    let mut out = String::new();
    let mut at = seen.answered;
    while let Some(found) = seen.raw[at..].iter().position(|b| *b == 0x1b) {
        at += found;
        let rest = &seen.raw[at..];
        let asks = |question: &str| rest.starts_with(question.as_bytes());
        if asks("\x1b[6n") {
            let (row, column) = seen.emulator.screen().cursor_position();
            let _ = write!(out, "\x1b[{};{}R", row + 1, column + 1);
        } else if asks("\x1b[c") {
            out.push_str("\x1b[?62;22c");
        } else if (asks("\x1b]11;?") || asks("\x1b]10;?"))
            && let Background::Light(typed, end) = background
        {
            let (what, colour) = if asks("\x1b]11;?") { (11, "ffff/ffff/ffff") } else { (10, "0000/0000/0000") };
            let _ = write!(out, "{typed}\x1b]{what};rgb:{colour}{end}");
        } else if rest.len() < 6 {
            // Perhaps the beginning of a question.
            break;
        }
        at += 1;
        seen.answered = at;
    }
    out
}

/// The console at the list of episodes of a demo database.
pub fn episodes(start: Start) -> Terminal {
    let terminal = start.run();
    terminal.shows("newest episodes");
    terminal.press("2");
    terminal.shows("row 1 of 250");
    terminal.settle();
    terminal
}

/// Ends the console by its key, and looks that the terminal is given back.
pub fn quit(mut terminal: Terminal) {
    terminal.press("q");
    assert_eq!(terminal.ended_and_read(), 0);
    terminal.is_given_back();
}

impl Terminal {
    fn seen(&self) -> MutexGuard<'_, Seen> {
        lock(&self.seen.0)
    }

    /// Waits until `wanted` holds; fails with what is on the screen when it does not come to that.
    fn wait(&self, what: &str, wanted: impl Fn(&Seen) -> bool) {
        let (seen, timeout) = self
            .seen
            .1
            .wait_timeout_while(self.seen(), DEADLINE, |seen| !wanted(seen))
            .unwrap_or_else(PoisonError::into_inner);
        if timeout.timed_out() {
            let screen = seen.emulator.screen().contents();
            drop(seen);
            panic!("waited without success for {what}; on the screen is\n{screen}");
        }
    }

    /// Waits until the screen shows `text`.
    pub fn shows(&self, text: &str) {
        self.wait(&format!("`{text}`"), |seen| seen.emulator.screen().contents().contains(text));
    }

    /// Waits until what is on the screen is `wanted`.
    pub fn screen_is(&self, what: &str, wanted: impl Fn(&vt100::Screen) -> bool) {
        self.wait(what, |seen| wanted(seen.emulator.screen()));
    }

    /// Whether the program has read all that was typed, or has gone.
    fn is_heard(&self) -> bool {
        let Some(path) = self.master.as_ref().and_then(|master| master.tty_name()) else { return true };
        let opened = rustix::fs::open(path, OFlags::RDONLY | OFlags::NOCTTY, Mode::empty());
        opened.and_then(rustix::io::ioctl_fionread).map_or(true, |waiting| waiting == 0)
    }

    /// Waits until what was typed is read and nothing has been written for a moment: what was asked for is likely drawn.
    /// For going about, never for what a test says.
    pub fn settle(&self) {
        const MOMENT: Duration = Duration::from_millis(40);
        let start = Instant::now();
        // A key that comes while `esc` is not read yet would be read as one key with alt.
        while !self.is_heard() && !self.seen().closed && start.elapsed() < DEADLINE {
            std::thread::sleep(Duration::from_millis(1));
        }
        let mut seen = self.seen();
        let mut length = seen.raw.len();
        while start.elapsed() < DEADLINE {
            let (next, timeout) = self.seen.1.wait_timeout(seen, MOMENT).unwrap_or_else(PoisonError::into_inner);
            seen = next;
            if timeout.timed_out() || seen.closed {
                return;
            }
            if seen.raw.len() == length {
                return;
            }
            length = seen.raw.len();
        }
    }

    /// Shows the screen as it is now.
    pub fn with_screen(&self, look: impl FnOnce(&vt100::Screen)) {
        look(self.seen().emulator.screen());
    }

    /// Draws over what is on the screen, as another program may.
    pub fn spoil(&self) {
        self.seen().emulator.process(b"\x1b[H\x1b[2J\x1b[?25h\x1b[?2004l");
    }

    /// Returns the text on the screen.
    pub fn contents(&self) -> String {
        self.seen().emulator.screen().contents()
    }

    /// Every byte that was written so far.
    pub fn raw(&self) -> Vec<u8> {
        self.seen().raw.clone()
    }

    pub fn press(&self, keys: &str) {
        lock(&self.keys).as_mut().unwrap().write_all(keys.as_bytes()).unwrap();
    }

    pub fn resize(&self, columns: u16, rows: u16) {
        // The emulator first: what the program draws for the new size must not meet the old one.
        self.seen().emulator.set_size(cells(rows), cells(columns));
        self.master.as_ref().unwrap().resize(pty_size((columns, rows))).unwrap();
    }

    pub fn signal(&self, name: &str) {
        assert!(signal(self.child.process_id().unwrap(), name));
    }

    /// Takes the terminal away, as closing its window does; `key` makes the program write something.
    pub fn vanish(&mut self, key: &str) {
        self.seen().leaving = true;
        self.press(key);
        self.reading.take().unwrap().join().unwrap();
        lock(&self.keys).take();
        self.master.take();
    }

    /// Whether the process is in that state: `T` stopped.
    fn state(&self) -> String {
        let id = self.child.process_id().unwrap();
        // Linux tells without `ps`, which not every system has. The state is what follows the name, which is in parentheses.
        if let Ok(told) = std::fs::read_to_string(format!("/proc/{id}/stat")) {
            return told.rsplit_once(") ").map(|(_, state)| state.to_owned()).unwrap_or_default();
        }
        let told = Command::new("ps").args(["-o", "state=", "-p", &id.to_string()]).output().unwrap();
        String::from_utf8_lossy(&told.stdout).trim().to_owned()
    }

    /// Most memory that the process had, in kilobytes; none when the system does not tell.
    pub fn most_memory(&self) -> Option<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.process_id().unwrap())).ok()?;
        status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB")?.parse().ok())
    }

    /// Whether the process has a file open.
    pub fn holds(&self, file: &Path) -> bool {
        let id = self.child.process_id().unwrap();
        let open = std::fs::read_dir(format!("/proc/{id}/fd")).unwrap();
        open.flatten().filter_map(|entry| std::fs::read_link(entry.path()).ok()).any(|opened| opened == file)
    }

    /// Waits until the process has a file open no more.
    pub fn lets_go_of(&self, file: &Path) {
        assert!(comes(|| !self.holds(file)), "{} is still open", file.display());
    }

    /// Waits until the process has stopped.
    pub fn is_stopped(&self) {
        assert!(comes(|| self.state().starts_with('T')), "it did not stop");
    }

    /// Waits for the end; the exit code.
    pub fn ended(&mut self) -> u32 {
        let start = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                assert_eq!(status.signal(), None);
                return status.exit_code();
            }
            assert!(start.elapsed() < DEADLINE, "it did not end; on the screen is\n{}", self.contents());
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// Waits for the end and quits each console that opens meanwhile; the exit code.
    pub fn ended_without_consoles(&mut self) -> u32 {
        let is_open = |seen: &Seen| seen.emulator.screen().alternate_screen();
        loop {
            let (length, open, closed) = {
                let seen = self.seen();
                (seen.raw.len(), is_open(&seen), seen.closed)
            };
            if closed {
                return self.ended();
            } else if open {
                self.press("q");
                self.wait("the end of the console", |seen| seen.closed || !is_open(seen));
            } else {
                self.wait("more", |seen| seen.closed || seen.raw.len() > length);
            }
        }
    }

    /// Waits for the end, whatever brought it about.
    pub fn gone(&mut self) {
        let has_ended = comes(|| self.child.try_wait().unwrap().is_some());
        assert!(has_ended, "it did not end; on the screen is\n{}", self.contents());
    }

    /// Waits for the end and for the last byte; the exit code.
    pub fn ended_and_read(&mut self) -> u32 {
        let code = self.ended();
        self.wait("the last byte", |seen| seen.closed);
        code
    }

    /// The terminal's modes are other than they were before the program came.
    pub fn is_raw(&self) -> bool {
        self.modes != format!("{:?}", self.master.as_ref().unwrap().get_termios())
    }

    /// Waits until the terminal is as it was before the program came.
    pub fn is_given_back(&self) {
        let plain = |screen: &vt100::Screen| {
            !screen.alternate_screen()
                && !screen.hide_cursor()
                && !screen.bracketed_paste()
                && screen.mouse_protocol_mode() == vt100::MouseProtocolMode::None
                && screen.mouse_protocol_encoding() == vt100::MouseProtocolEncoding::Default
                && !screen.application_cursor()
                && !screen.application_keypad()
                && screen.fgcolor() == vt100::Color::Default
                && screen.bgcolor() == vt100::Color::Default
                && !(screen.bold() || screen.inverse() || screen.underline())
        };
        self.screen_is("a terminal that was given back", plain);
        assert!(!self.is_raw(), "the terminal's modes were not restored");
        let raw = String::from_utf8_lossy(&self.raw()).into_owned();
        // Each thing that was begun was ended as often: what the emulator does not know, too.
        for (begin, end) in [("\x1b[22;2t", "\x1b[23;2t"), ("\x1b[?1049h", "\x1b[?1049l"), ("\x1b[>", "\x1b[<")] {
            assert_eq!(raw.matches(begin).count(), raw.matches(end).count(), "{begin:?} and {end:?}");
        }
        assert!(raw.rfind("\x1b[?2026h") < raw.rfind("\x1b[?2026l"), "a synchronised update was left open");
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Whether something comes to hold within the time that anything may take.
fn comes(mut to_hold: impl FnMut() -> bool) -> bool {
    let start = Instant::now();
    while !to_hold() {
        if start.elapsed() >= DEADLINE {
            return false;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    true
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn cells(count: u16) -> NonZeroU16 {
    NonZeroU16::new(count).unwrap_or(NonZeroU16::MIN)
}

fn pty_size((cols, rows): (u16, u16)) -> PtySize {
    PtySize { rows, cols, pixel_width: 0, pixel_height: 0 }
}
