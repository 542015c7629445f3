//! Panics on demand, so that it can be tried what becomes of the terminal then. Not part of a release.

/// Panics when the screen is drawn afresh and `MNEMOSCOPE_TEST_PANIC` is set: to `task` in another thread, else here. The
/// words are those of a stored text that means harm.
pub fn panic() {
    const WORDS: &str = "provoked by \u{1b}]52;c;cHduZWQ=\u{7} a \u{202e}text";
    match std::env::var("MNEMOSCOPE_TEST_PANIC").as_deref() {
        Ok("task") => {
            tokio::spawn(async { panic!("{WORDS}") });
        }
        Ok(_) => panic!("{WORDS}"),
        Err(_) => {}
    }
}
