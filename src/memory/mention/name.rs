//! Forms of a name: both orders, with initials, shortened, joined.

use super::Certainty;

/// Fewest letters of a joined name: shorter ones occur within other words.
const RUN_TOGETHER: usize = 8;

/// A folded form of a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrittenName {
    /// The words.
    pub text: String,
    /// Certainty that the words mean the person.
    pub certainty: Certainty,
    /// Whether the first letter is an initial without a dot: only a capital counts.
    pub capital: bool,
}

/// Every form of a folded name; the name itself first.
pub fn written(name: &str) -> Vec<WrittenName> {
    let mut all: Vec<WrittenName> = Vec::new();
    let mut add = |text: String, certainty: Certainty, capital: bool| {
        if !text.is_empty() && !all.iter().any(|w| w.text == text) {
            all.push(WrittenName { text, certainty, capital });
        }
    };
    add(name.to_owned(), Certainty::Certain, false);
    let ordered = in_order(name);
    let parts: Vec<&str> = ordered.split(' ').filter(|part| !part.is_empty()).collect();
    let ([first, ..], [rest @ .., last]) = (&parts[..], &parts[..]) else { return all };
    if rest.is_empty() {
        return all;
    }
    let given = rest.join(" ");
    for text in
        [format!("{given} {last}"), format!("{last}, {given}"), format!("{last},{given}"), format!("{last} , {given}")]
    {
        add(text, Certainty::Certain, false);
    }
    add(format!("{last} {given}"), Certainty::Possible("in another order"), false);
    if rest.len() > 1 {
        let short = Certainty::Possible("without a middle name");
        add(format!("{first} {last}"), short, false);
        add(format!("{last}, {first}"), short, false);
    }
    let initials = Certainty::Possible("with initials");
    if let (Some(f), Some(l)) = (first.chars().next(), last.chars().next()) {
        for text in [
            format!("{f}. {last}"),
            format!("{f}.{last}"),
            format!("{last}, {f}."),
            format!("{last} {f}."),
            format!("{first} {l}."),
        ] {
            add(text, initials, false);
        }
        add(format!("{f} {last}"), initials, true);
        if let [_, middle @ .., _] = &parts[..]
            && !middle.is_empty()
        {
            let middle: Vec<String> = middle.iter().filter_map(|m| m.chars().next()).map(|m| format!("{m}.")).collect();
            add(format!("{first} {} {last}", middle.join(" ")), initials, false);
            add(format!("{f}. {} {last}", middle.join(" ")), initials, false);
        }
    }
    let respelled = Certainty::Possible("without its apostrophe or hyphen");
    let bare = ordered.replace('\'', "");
    let apart = ordered.replace("' ", "").replace('\'', " ");
    for text in [bare.clone(), apart.clone(), ordered.replace('-', " "), ordered.replace('-', "")] {
        add(text, respelled, false);
    }
    let joined = Certainty::Possible("run together");
    let letters = ordered.chars().filter(|c| c.is_alphabetic()).count();
    for spelled in [&ordered, &bare, &apart, &bare.replace('-', " "), &bare.replace('-', "")] {
        let parts: Vec<&str> = spelled.split(' ').filter(|part| !part.is_empty()).collect();
        let [rest @ .., last] = &parts[..] else { continue };
        for order in [&parts[..], &[&[*last], rest].concat()[..]] {
            for mark in ["_", ".", "-", "+"] {
                add(order.join(mark), joined, false);
            }
            if letters >= RUN_TOGETHER {
                add(order.concat(), joined, false);
            }
        }
    }
    all
}

/// A text with its apostrophes unchanged, and quoted as in SQL and shells.
pub fn quoted(text: String) -> impl Iterator<Item = String> {
    let marks: &[&str] = if text.contains('\'') { &["'", "''", r"'\''", r#"'"'"'"#] } else { &[""] };
    marks.iter().map(move |mark| if mark.is_empty() { text.clone() } else { text.replace('\'', mark) })
}

/// Converts `last, first` to the usual order.
fn in_order(name: &str) -> String {
    match name.split_once(',') {
        Some((last, first)) if !first.trim().is_empty() => format!("{} {}", first.trim(), last.trim()),
        _ => name.to_owned(),
    }
}

/// Whether a folded text is a name of several words: letters, with punctuation of names.
pub fn is_name(text: &str) -> bool {
    let fits = |c: char| c.is_alphabetic() || unicode_normalization::char::is_combining_mark(c) || " '-.,".contains(c);
    text.contains(' ') && text.chars().all(fits) && text.split(' ').count() <= 6
}

/// The first and the last part of a name, between which a further word may occur.
pub fn ends_of(name: &str) -> Option<(String, String)> {
    let ordered = in_order(name);
    let (first, last) = (ordered.split(' ').next()?, ordered.rsplit(' ').next()?);
    (!last.is_empty() && ordered.contains(' ') && first.chars().count() > 1)
        .then(|| (first.to_owned(), last.to_owned()))
}
