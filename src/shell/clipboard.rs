//! The clipboard, through the terminal (OSC 52), which works over a network too.

use std::io::Write;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::console::core::RequestFailure;
use crate::ui::SafeText;

/// Most bytes of text that terminals accept: most reject more than 100,000 bytes of base64.
const LIMIT: usize = 74_000;

/// Copies a text to the clipboard; `what` describes it for people. Control characters in it are made visible.
pub fn copy(out: &mut impl Write, what: &str, text: &str) -> Result<String, RequestFailure> {
    let lines: Vec<String> = SafeText::block(text).iter().map(ToString::to_string).collect();
    let text = lines.join("\n");
    if text.len() > LIMIT {
        let message = format!("the {what} has {} bytes; terminals take {LIMIT}", text.len());
        return Err(RequestFailure::new(
            "It was not copied",
            message,
            "open it in the editor with o, or export it with e",
        ));
    }
    let sequence = format!("\x1b]52;c;{}\x07", STANDARD.encode(&text));
    let written = out.write_all(sequence.as_bytes()).and_then(|()| out.flush());
    let failed = |e: std::io::Error| RequestFailure::new("It was not copied", e.to_string(), "export it with e");
    written.map(|()| what.to_owned()).map_err(failed)
}
