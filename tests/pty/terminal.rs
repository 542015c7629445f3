//! A terminal for tests: runs a program in a pseudo-terminal, always reads what it writes, answers what it asks, and
//! waits for what is to be seen.

use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};
use std::io::{Read, Write};
use std::num::NonZeroU16;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// After this time what is waited for is taken to never come.
const PATIENCE: Duration = Duration::from_secs(30);

/// What the program wrote, and what a terminal makes of it.
pub struct Seen {
    pub raw: Vec<u8>,
    parser: vt100::Parser<Terminal>,
    closed: bool,
}

impl Seen {
    pub fn screen(&self) -> &vt100::Screen {
        self.parser.screen()
    }

    pub fn text(&self) -> String {
        self.screen().contents()
    }

    /// The screen for people: without what is empty.
    fn picture(&self) -> String {
        let text = self.text();
        let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
        lines.join("\n").replace(&" ".repeat(20), "    ")
    }

    /// What was handed to the clipboard, in base64.
    pub fn copied(&self) -> &[Vec<u8>] {
        &self.parser.callbacks().copied
    }

    pub fn title(&self) -> String {
        String::from_utf8_lossy(&self.parser.callbacks().title).into_owned()
    }
}

/// What a terminal does beside drawing.
#[derive(Default)]
struct Terminal {
    answers: Vec<u8>,
    copied: Vec<Vec<u8>>,
    title: Vec<u8>,
}

impl vt100::Callbacks for Terminal {
    fn unhandled_csi(&mut self, _: &mut vt100::Screen, i1: Option<u8>, _: Option<u8>, params: &[&[u16]], c: char) {
        match (i1, params, c) {
            (None, [[6]], 'n') => self.answers.extend(b"\x1b[1;1R"),
            (None, [] | [[0]], 'c') => self.answers.extend(b"\x1b[?62;22c"),
            _ => {}
        }
    }

    fn copy_to_clipboard(&mut self, _: &mut vt100::Screen, _: &[u8], data: &[u8]) {
        self.copied.push(data.to_vec());
    }

    fn set_window_title(&mut self, _: &mut vt100::Screen, title: &[u8]) {
        self.title = title.to_vec();
    }
}

/// A program in a terminal.
pub struct Session {
    master: Box<dyn MasterPty + Send>,
    child: Box<dyn Child + Send + Sync>,
    input: Arc<Mutex<Box<dyn Write + Send>>>,
    seen: Arc<(Mutex<Seen>, Condvar)>,
    modes: String,
}

/// How to run a program.
pub struct Launch {
    command: CommandBuilder,
    size: (u16, u16),
}

impl Launch {
    /// The program of this package, with an environment of its own; `folder` is its home.
    pub fn mnemoscope(folder: &Path, arguments: &[&str]) -> Self {
        Self::program(Path::new(env!("CARGO_BIN_EXE_mnemoscope")), folder, arguments)
    }

    pub fn program(program: &Path, folder: &Path, arguments: &[&str]) -> Self {
        let mut command = CommandBuilder::new(program);
        command.env_clear();
        command.args(arguments);
        command.cwd(folder);
        let path = std::env::var("PATH").unwrap_or_default();
        for (name, value) in [
            ("PATH", path.as_str()),
            ("TERM", "xterm-256color"),
            ("COLORTERM", "truecolor"),
            ("LANG", "C.UTF-8"),
            ("PS1", "ready> "),
        ] {
            command.env(name, value);
        }
        for name in ["HOME", "TMPDIR", "MNEMOSCOPE_STATE"] {
            command.env(name, folder);
        }
        command.env("MNEMOSCOPE_CONFIG", folder.join("config.toml"));
        Launch { command, size: (120, 40) }
    }

    pub fn with(mut self, name: &str, value: &str) -> Self {
        self.command.env(name, value);
        self
    }

    /// Columns and rows.
    pub fn size(mut self, columns: u16, rows: u16) -> Self {
        self.size = (columns, rows);
        self
    }

    pub fn start(self) -> Session {
        let (columns, rows) = self.size;
        let size = PtySize { rows, cols: columns, pixel_width: 0, pixel_height: 0 };
        let pair = native_pty_system().openpty(size).expect("a pseudo-terminal");
        let modes = modes(pair.master.as_ref());
        let child = pair.slave.spawn_command(self.command).expect("the program starts");
        drop(pair.slave);
        let reader = pair.master.try_clone_reader().expect("a reader");
        let input = Arc::new(Mutex::new(pair.master.take_writer().expect("a writer")));
        let parser =
            vt100::Parser::new_with_callbacks(at_least_one(rows), at_least_one(columns), 0, Terminal::default());
        let seen = Arc::new((Mutex::new(Seen { raw: Vec::new(), parser, closed: false }), Condvar::new()));
        let (shared, answers) = (Arc::clone(&seen), Arc::clone(&input));
        std::thread::spawn(move || drain(reader, &shared, &answers));
        Session { master: pair.master, child, input, seen, modes }
    }
}

/// Reads what the program writes until it closes the terminal.
fn drain(mut reader: impl Read, shared: &(Mutex<Seen>, Condvar), input: &Mutex<Box<dyn Write + Send>>) {
    let mut bytes = [0; 8 * 1024];
    loop {
        let read = reader.read(&mut bytes).unwrap_or(0);
        let Ok(mut seen) = shared.0.lock() else { return };
        seen.raw.extend(&bytes[..read]);
        seen.parser.process(&bytes[..read]);
        seen.closed = read == 0;
        let answers = std::mem::take(&mut seen.parser.callbacks_mut().answers);
        drop(seen);
        shared.1.notify_all();
        if read == 0 {
            return;
        }
        // A program that has just ended takes no answers.
        let _ = input.lock().expect("nobody failed while holding it").write_all(&answers);
    }
}

fn at_least_one(size: u16) -> NonZeroU16 {
    NonZeroU16::new(size).unwrap_or(NonZeroU16::MIN)
}

/// The terminal's modes: echo, line editing, signals of keys and so on.
fn modes(master: &(dyn MasterPty + Send)) -> String {
    format!("{:?}", master.get_termios().expect("the modes can be read"))
}

impl Session {
    pub fn pid(&self) -> u32 {
        self.child.process_id().expect("it runs")
    }

    /// Types or pastes; whatever a terminal would send.
    pub fn send(&self, keys: &str) {
        let mut input = self.input.lock().expect("nobody failed while holding it");
        input.write_all(keys.as_bytes()).expect("the terminal takes input");
        input.flush().expect("the terminal takes input");
    }

    pub fn signal(&self, name: &str) {
        signal(self.pid(), name);
    }

    pub fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.0.lock().expect("nobody failed while holding it")
    }

    /// Waits until that is to be seen; gives what it found.
    pub fn wait<T>(&self, what: &str, found: impl Fn(&Seen) -> Option<T>) -> T {
        let deadline = Instant::now() + PATIENCE;
        let mut seen = self.seen();
        loop {
            if let Some(found) = found(&seen) {
                return found;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            assert!(!left.is_zero() && !seen.closed, "{what} was not to be seen:\n{}", seen.picture());
            seen = self.seen.1.wait_timeout(seen, left).expect("nobody failed while holding it").0;
        }
    }

    /// Waits until the screen shows a text.
    pub fn shows(&self, text: &str) {
        self.wait(text, |seen| seen.text().contains(text).then_some(()));
    }

    /// Waits until the screen shows a text no more.
    pub fn hides(&self, text: &str) {
        self.wait(&format!("no {text}"), |seen| (!seen.text().contains(text)).then_some(()));
    }

    pub fn resize(&self, columns: u16, rows: u16) {
        self.seen().parser.screen_mut().set_size(at_least_one(rows), at_least_one(columns));
        self.master.resize(PtySize { rows, cols: columns, pixel_width: 0, pixel_height: 0 }).expect("another size");
    }

    /// Waits for the end; the exit code and everything that was written.
    pub fn end(&mut self) -> (u32, Vec<u8>) {
        let deadline = Instant::now() + PATIENCE;
        let status = eventually(deadline, "the end", || self.child.try_wait().expect("it can be waited for"));
        let mut seen = self.seen();
        while !seen.closed {
            let left = deadline.saturating_duration_since(Instant::now());
            assert!(!left.is_zero(), "the terminal is still open after the program's end");
            seen = self.seen.1.wait_timeout(seen, left).expect("nobody failed while holding it").0;
        }
        (status.exit_code(), seen.raw.clone())
    }

    /// Waits until the program is stopped, as by the stop key.
    pub fn stopped(&self) {
        let stat = PathBuf::from(format!("/proc/{}/stat", self.pid()));
        eventually(Instant::now() + PATIENCE, "a stop", || {
            let stat = std::fs::read_to_string(&stat).expect("it is there");
            let state = stat.rsplit(") ").next().and_then(|rest| rest.chars().next());
            (state == Some('T')).then_some(())
        });
    }

    /// The terminal is as it was before the program: its modes, the screen, the cursor, the mouse, paste, title.
    pub fn is_given_back(&self) {
        assert_eq!(modes(self.master.as_ref()), self.modes, "the terminal's modes");
        let seen = self.seen();
        let screen = seen.screen();
        assert!(!screen.alternate_screen(), "the alternate screen was left");
        assert!(!screen.hide_cursor(), "the cursor is shown");
        assert!(!screen.bracketed_paste(), "paste is plain");
        assert_eq!(screen.mouse_protocol_mode(), vt100::MouseProtocolMode::None);
        assert_eq!(screen.mouse_protocol_encoding(), vt100::MouseProtocolEncoding::Default);
        assert_eq!(screen.fgcolor(), vt100::Color::Default);
        let count = |sequence: &[u8]| seen.raw.windows(sequence.len()).filter(|part| part == &sequence).count();
        assert_eq!(count(b"\x1b[?2026h"), count(b"\x1b[?2026l").min(count(b"\x1b[?2026h")), "no update is held back");
        assert_eq!(count(b"\x1b[22;2t"), count(b"\x1b[23;2t"), "the title was brought back");
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // Whatever a failed test left behind.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub fn signal(pid: u32, name: &str) {
    let sent = Command::new("kill").args(["-s", name, &pid.to_string()]).status().expect("`kill` is there");
    assert!(sent.success());
}

/// Asks again and again; for what tells nobody when it happens.
pub fn eventually<T>(deadline: Instant, what: &str, mut found: impl FnMut() -> Option<T>) -> T {
    loop {
        if let Some(found) = found() {
            return found;
        }
        assert!(Instant::now() < deadline, "{what} did not come");
        std::thread::yield_now();
    }
}
