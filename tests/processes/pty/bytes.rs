//! Strict grammar of what the program may write to a terminal: its own sequences, and harmless text.

/// Output that a stretch may hold in addition to harmless text.
#[derive(Debug, Clone, Copy)]
pub struct Allowed {
    /// Control characters.
    pub controls: &'static str,
    /// Escape sequences.
    pub sequences: Sequences,
    /// The clipboard is set as often as this.
    pub copies: usize,
}

/// Escape sequences that may be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sequences {
    /// Colours and weights only.
    Styles,
    /// All that the console needs.
    Screen,
}

/// For the console.
pub const CONSOLE: Allowed = Allowed { controls: "", sequences: Sequences::Screen, copies: 0 };
/// For commands that print.
pub const COMMAND: Allowed = Allowed { controls: "\r\n", sequences: Sequences::Styles, copies: 0 };

/// Parsed output: text without sequences, titles and the clipboard's contents.
#[derive(Debug, Default)]
pub struct Read {
    pub text: String,
    pub titles: Vec<String>,
    pub copied: Vec<String>,
}

/// Reads output; says where it is not what is allowed.
pub fn read(raw: &[u8], allowed: Allowed) -> Result<Read, String> {
    let text = std::str::from_utf8(raw).map_err(|e| format!("not UTF-8: {e}"))?;
    let mut read = Read::default();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let near = || {
            let at = text.len() - rest.len();
            format!("{:?}", &text[text.floor_char_boundary(at.saturating_sub(60))..text.ceil_char_boundary(at + 40)])
        };
        if c == '\x1b' {
            let is_style =
                || rest.strip_prefix("\x1b[").and_then(|body| body.split_once('m')).is_some_and(|(p, _)| is_style(p));
            if allowed.sequences == Sequences::Styles && !is_style() {
                return Err(format!("a sequence in {}", near()));
            }
            rest = sequence(&rest[1..], &mut read).ok_or_else(|| format!("a strange sequence in {}", near()))?;
            continue;
        }
        if is_harmful(c) && !allowed.controls.contains(c) {
            return Err(format!("{:?} in {}", c, near()));
        }
        read.text.push(c);
        rest = &rest[c.len_utf8()..];
    }
    if read.copied.len() == allowed.copies { Ok(read) } else { Err(format!("copied {:?}", read.copied)) }
}

/// Reads a sequence of the console from the text behind its escape character, and returns the rest.
fn sequence<'a>(text: &'a str, read: &mut Read) -> Option<&'a str> {
    if let Some(body) = text.strip_prefix('[') {
        let end = body.find(|c: char| !matches!(c, '0'..='9' | ';' | '?' | '>' | '<'))?;
        let (parameters, last) = (&body[..end], body[end..].chars().next()?);
        let known = match last {
            'm' => is_style(parameters),
            'H' => matches!(parameters.split(';').collect::<Vec<_>>()[..], [row, column]
                if row.parse::<u16>().is_ok() && column.parse::<u16>().is_ok()),
            'h' | 'l' => ["?25", "?1049", "?2004", "?2026", "?1000", "?1006"].contains(&parameters),
            'J' => parameters == "2",
            'u' => [">3", "<1"].contains(&parameters),
            't' => ["22;2", "23;2"].contains(&parameters),
            _ => false,
        };
        return known.then(|| &body[end + 1..]);
    }
    let body = text.strip_prefix(']')?;
    if let Some(rest) = body.strip_prefix("11;?\x1b\\") {
        return Some(rest);
    }
    let (body, rest) = body.split_once('\x07')?;
    if body.chars().any(is_harmful) {
        return None;
    }
    if let Some(title) = body.strip_prefix("0;") {
        read.titles.push(title.to_owned());
    } else {
        read.copied.push(body.strip_prefix("52;c;")?.to_owned());
    }
    Some(rest)
}

/// Whether these are parameters of the styles that the console has: no blinking, no hiding, no old colours.
fn is_style(parameters: &str) -> bool {
    let mut parameters = parameters.split(';');
    while let Some(parameter) = parameters.next() {
        let plain = ["0", "1", "2", "3", "4", "7", "9", "22", "23", "24", "27", "29", "39", "49", "59"];
        let colour = |parameters: &mut std::str::Split<'_, char>| {
            let count = match parameters.next() {
                Some("5") => 1,
                Some("2") => 3,
                _ => return false,
            };
            (0..count).all(|_| parameters.next().is_some_and(|p| p.parse::<u8>().is_ok()))
        };
        let known = match parameter {
            "38" | "48" | "58" => colour(&mut parameters),
            _ => plain.contains(&parameter),
        };
        if !known {
            return false;
        }
    }
    true
}

/// Characters that act, hide, turn text round, or look different on every terminal.
pub fn is_harmful(c: char) -> bool {
    c.is_control()
        || matches!(c,
            // Soft hyphen, bidi marks and overrides, zero-width characters, separators, invisible operators.
            '\u{ad}' | '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}'
            // Interlinear annotations, tags, private use.
            | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}' | '\u{e000}'..='\u{f8ff}' | '\u{f0000}'..='\u{10ffff}')
}
