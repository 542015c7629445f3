//! What a program wrote to a terminal, taken apart: text, control characters and escape sequences, and which of them may
//! stand there.

/// A piece of what was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Piece<'a> {
    Text(char),
    Control(char),
    /// What stands between `ESC [` and the letter that ends it, and that letter.
    Csi(&'a str, char),
    /// What stands between `ESC ]` and its end.
    Osc(&'a str),
    /// Any other beginning of a sequence.
    Escape(Option<char>),
}

/// Takes text apart.
pub fn pieces(text: &str) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let (piece, length) = piece(rest, first);
        pieces.push(piece);
        rest = &rest[length..];
    }
    pieces
}

fn piece(rest: &str, first: char) -> (Piece<'_>, usize) {
    if first != '\x1b' {
        let piece = if first.is_control() { Piece::Control(first) } else { Piece::Text(first) };
        return (piece, first.len_utf8());
    }
    let after = &rest[1..];
    if let Some(body) = after.strip_prefix('[') {
        let length = body.find(|c: char| !matches!(c, ' '..='?')).unwrap_or(body.len());
        return match body[length..].chars().next() {
            Some(end @ '@'..='~') => (Piece::Csi(&body[..length], end), length + 3),
            other => (Piece::Escape(other), 2),
        };
    }
    if let Some(body) = after.strip_prefix(']') {
        let ends = [body.find('\x07').map(|at| (at, 1)), body.find("\x1b\\").map(|at| (at, 2))];
        if let Some((at, end)) = ends.into_iter().flatten().min() {
            return (Piece::Osc(&body[..at]), 2 + at + end);
        }
    }
    (Piece::Escape(after.chars().next()), 1)
}

/// Whether a character that is drawn deceives or hides: bidi controls, zero width, tags, what is for private use or no
/// character at all.
pub fn deceives(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
            | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e000}'..='\u{f8ff}' | '\u{e0000}'..='\u{e0fff}'
            | '\u{f0000}'.. )
        || u32::from(c) & 0xfffe == 0xfffe
}

/// What the console may write: its own sequences and text that does nothing.
pub fn console_may(piece: Piece<'_>) -> bool {
    match piece {
        Piece::Text(c) => !deceives(c),
        Piece::Csi(body, 'h' | 'l') => ["?25", "?1000", "?1006", "?1049", "?2004", "?2026"].contains(&body),
        Piece::Csi(body, 'H') => body.split(';').all(|number| number.parse::<u16>().is_ok()),
        Piece::Csi(body, 'J') => body == "2",
        Piece::Csi(body, 't') => ["22;2", "23;2"].contains(&body),
        Piece::Csi(body, 'c') => body.is_empty(),
        Piece::Csi(body, 'm') => is_style(body),
        Piece::Control(_) | Piece::Escape(_) | Piece::Csi(..) => false,
        Piece::Osc("10;?" | "11;?") => true,
        Piece::Osc(body) => match body.split_once(';') {
            Some(("0", title)) => !title.chars().any(deceives),
            Some(("52", copy)) => is_harmless_copy(copy),
            _ => false,
        },
    }
}

/// Colours as the themes have them, and attributes but blinking, hidden and crossed out.
fn is_style(body: &str) -> bool {
    let mut codes = body.split(';').map(|code| if code.is_empty() { Ok(0) } else { code.parse::<u16>() });
    while let Some(code) = codes.next() {
        let fine = match code {
            Ok(38 | 48 | 58) => match codes.next() {
                Some(Ok(2)) => codes.by_ref().take(3).flatten().count() == 3,
                Some(Ok(5)) => codes.next().is_some_and(|index| index.is_ok()),
                _ => false,
            },
            Ok(0..=4 | 7 | 22..=24 | 27 | 39 | 49 | 59) => true,
            _ => false,
        };
        if !fine {
            return false;
        }
    }
    true
}

/// A text for the clipboard that cannot act on the terminal it is pasted into.
fn is_harmless_copy(copy: &str) -> bool {
    use base64::Engine as _;
    let text = copy.strip_prefix("c;").and_then(|b| base64::engine::general_purpose::STANDARD.decode(b).ok());
    let text = text.and_then(|bytes| String::from_utf8(bytes).ok());
    text.is_some_and(|text| !text.chars().any(|c| c != '\n' && deceives(c)))
}

/// Fails when something was written that may not be, and shows where.
pub fn assert_only(what: &str, raw: &[u8], may: impl Fn(Piece<'_>) -> bool) {
    let text = std::str::from_utf8(raw).unwrap_or_else(|e| panic!("{what}: no UTF-8 at byte {}", e.valid_up_to()));
    let mut before = String::new();
    for piece in pieces(text) {
        if let Piece::Text(c) = piece {
            before.push(c);
        }
        if !may(piece) {
            let start = before.char_indices().rev().nth(60).map_or(0, |(at, _)| at);
            panic!("{what}: {piece:?} after {:?}", &before[start..]);
        }
    }
}
