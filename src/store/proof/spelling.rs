//! Spellings of a word in stored text: composed and decomposed, in lower and upper case, and escaped as in JSON, URLs
//! and HTML.

use std::collections::BTreeSet;

use unicode_normalization::UnicodeNormalization as _;

use crate::memory::mention::binary_forms;

/// Levels of JSON within JSON strings that are searched.
const DEPTH: usize = 3;

/// Every spelling of a text, including itself. ASCII letters are not changed to the other case.
pub fn spellings(text: &str) -> Vec<String> {
    let forms = forms(text);
    let mut all: BTreeSet<String> = forms.iter().cloned().chain(binary_forms(text)).collect();
    for form in &forms {
        all.extend(json_escapes(form));
        all.extend(percent_escapes(form));
        all.extend(html_escapes(form));
    }
    all.retain(|text| !text.is_empty());
    all.into_iter().collect()
}

/// A text as given, composed, decomposed, and each in lower and upper case.
pub fn forms(text: &str) -> Vec<String> {
    let (composed, decomposed): (String, String) = (text.nfc().collect(), text.nfd().collect());
    let mut all = BTreeSet::from([text.to_owned(), composed.clone(), decomposed.clone()]);
    for form in [text, &composed, &decomposed] {
        all.extend([form.to_lowercase(), form.to_uppercase()]);
    }
    all.into_iter().collect()
}

/// A text as it may appear in JSON: with and without escaped slashes; beyond ASCII literally or as `\u`; special
/// characters of HTML, all punctuation, or everything as `\u`. Also each of these within JSON strings, some levels
/// deep.
pub fn json_escapes(text: &str) -> Vec<String> {
    let mut all = BTreeSet::new();
    let marks = |c: char| matches!(c, '<' | '>' | '&' | '\'' | '+' | '"' | '`');
    for slash in ["/", "\\/"] {
        all.insert(escape(text, slash, |_| false, false));
        for capitals in [false, true] {
            all.insert(escape(text, slash, |c| !c.is_ascii(), capitals));
            all.insert(escape(text, slash, |c| !c.is_ascii() || marks(c), capitals));
            all.insert(escape(text, slash, |c| !c.is_ascii() || c == '@', capitals));
            all.insert(escape(text, slash, |c| !c.is_ascii_alphanumeric(), capitals));
            all.insert(escape(text, slash, |_| true, capitals));
        }
    }
    let mut level: Vec<String> = all.iter().cloned().collect();
    for _ in 1..DEPTH {
        level = level.iter().map(|inner| escape(inner, "/", |_| false, false)).collect();
        all.extend(level.iter().cloned());
    }
    all.into_iter().collect()
}

fn escape(text: &str, slash: &str, coded: impl Fn(char) -> bool, capitals: bool) -> String {
    let mut out = String::with_capacity(text.len());
    let mut buffer = [0; 2];
    for c in text.chars() {
        match c {
            c if coded(c) => {
                for unit in c.encode_utf16(&mut buffer).iter() {
                    out.push_str(&if capitals { format!("\\u{unit:04X}") } else { format!("\\u{unit:04x}") });
                }
            }
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '/' => out.push_str(slash),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c.is_ascii_control() => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => out.push(c),
        }
    }
    out
}

/// A text as it may appear in a URL: as a component, as a form field, and with the punctuation that a whole URL keeps.
pub fn percent_escapes(text: &str) -> Vec<String> {
    let mut all = BTreeSet::new();
    let part = |b: u8| b.is_ascii_alphanumeric() || b"-_.~".contains(&b);
    let component = |b: u8| part(b) || b"!*'()".contains(&b);
    let whole = |b: u8| component(b) || b";,/?:@&=+$#".contains(&b);
    for capitals in [true, false] {
        all.insert(percent(text, part, capitals));
        all.insert(percent(text, component, capitals));
        all.insert(percent(text, whole, capitals));
        all.insert(percent(text, part, capitals).replace("%20", "+"));
    }
    all.into_iter().collect()
}

fn percent(text: &str, kept: impl Fn(u8) -> bool, capitals: bool) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            byte if kept(byte) => out.push(char::from(byte)),
            byte if capitals => out.push_str(&format!("%{byte:02X}")),
            byte => out.push_str(&format!("%{byte:02x}")),
        }
    }
    out
}

/// A text as it may appear in HTML, if it has characters that are escaped there.
fn html_escapes(text: &str) -> Vec<String> {
    let escaped = |apostrophe: &str, quote: &str| {
        let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
        text.replace('\'', apostrophe).replace('"', quote)
    };
    vec![
        escaped("'", "\""),
        escaped("&#39;", "&quot;"),
        escaped("&#x27;", "&quot;"),
        escaped("&apos;", "&quot;"),
        escaped("&#039;", "&#34;"),
    ]
}
