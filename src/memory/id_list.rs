//! Changes ids in a stored list and leaves all other characters as written: JSON lists, and PostgreSQL arrays.

use std::collections::HashSet;

use serde_json::value::RawValue;

/// Spelling of ids in a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IdSpelling {
    /// Each is a string.
    Texts,
    /// Integers are ids too.
    Numbers,
}

/// Adds an id at the end of the list. `None` (SQL NULL), `null` and `[]` are empty lists.
///
/// # Errors
/// The reason why the text is not a list to which an id can be added.
pub fn with(text: Option<&str>, id: &str, spelling: IdSpelling) -> Result<String, String> {
    let text = text.filter(|t| t.trim() != "null").unwrap_or("[]");
    let items = elements(text)?;
    Ok(respelled(text, &items, &as_they_are(&items), [spelling.item(id, &items)]))
}

/// Removes an id from the list, at every position; `None` if it is not there.
///
/// # Errors
/// The reason why the text is not a list.
pub fn without(text: Option<&str>, id: &str, spelling: IdSpelling) -> Result<Option<String>, String> {
    let Some(text) = text.filter(|t| t.trim() != "null") else { return Ok(None) };
    let items = elements(text)?;
    Ok(left(text, &items, |item| spelling.text(item).as_deref() == Some(id)))
}

/// A new list of some ids.
pub fn of(ids: &[&str], spelling: IdSpelling) -> String {
    format!("[{}]", ids.iter().map(|id| spelling.item(id, &[])).collect::<Vec<_>>().join(","))
}

impl IdSpelling {
    /// The text of an element of a JSON list that is one.
    fn text(self, item: &str) -> Option<String> {
        let number = || item.parse::<i64>().ok().filter(|_| self == IdSpelling::Numbers);
        json_text(item).or_else(|| number().map(|number| number.to_string()))
    }

    /// An id in the spelling of the other elements of a JSON list.
    fn item(self, id: &str, others: &[&str]) -> String {
        let is_number = self == IdSpelling::Numbers && id.parse::<i64>().is_ok_and(|number| number.to_string() == id);
        if is_number && !others.iter().any(|other| other.starts_with('"')) { id.to_owned() } else { json_item(id) }
    }
}

/// Changes the texts of a JSON list or an array to the wanted ones, in their order; other elements stay. `None` if it
/// is neither.
pub fn relisted(text: &str, wanted: &[&str], spelling: IdSpelling) -> Option<String> {
    let is_array = text.starts_with('{');
    let items = if is_array { array_items(text) } else { elements(text) }.ok()?;
    let text_of = |item: &&str| if is_array { array_text(item) } else { spelling.text(item) };
    let texts: Vec<Option<String>> = items.iter().map(text_of).collect();
    let (becomes, used) = places(&texts, wanted);
    let spelled = |id: &&str| if is_array { array_item(id) } else { spelling.item(id, &items) };
    let mut kept: Vec<Option<String>> = Vec::with_capacity(items.len());
    for ((item, own), new) in items.iter().zip(&texts).zip(becomes) {
        let is_same = |new: &str| own.as_deref().is_none_or(|own| own == new);
        kept.push(new.map(|new| if is_same(new) { (*item).to_owned() } else { spelled(&new) }));
    }
    Some(respelled(text, &items, &kept, wanted[used..].iter().map(spelled)))
}

/// Replaces or removes elements of a list, an array or an object, and adds `more` after the last; the rest stays as
/// written.
pub(super) fn respelled<S: AsRef<str>>(
    text: &str,
    items: &[&str],
    becomes: &[Option<S>],
    more: impl IntoIterator<Item = String>,
) -> String {
    let place = |item: &str| {
        let start = item.as_ptr() as usize - text.as_ptr() as usize;
        start..start + item.len()
    };
    let open = text.find(['[', '{']).map_or(0, |at| at + 1);
    let begin = items.first().map_or(open, |first| place(first).start);
    let parting = match items {
        [.., before, last] => &text[place(before).end..place(last).start],
        _ if text.starts_with('{') => ",",
        _ => ", ",
    };
    let mut list = text[..begin].to_owned();
    let (mut end, mut kept) = (begin, false);
    for (item, becomes) in items.iter().zip(becomes) {
        let place = place(item);
        if let Some(new) = becomes {
            // Includes the comma before it, unless it is now the first.
            list.push_str(if kept { &text[end..place.start] } else { "" });
            list.push_str(new.as_ref());
            kept = true;
        }
        end = place.end;
    }
    for new in more {
        list.push_str(if kept { parting } else { "" });
        list.push_str(&new);
        kept = true;
    }
    list.push_str(&text[end..]);
    list
}

/// The list or array without the matching elements; `None` if none matches.
fn left(text: &str, items: &[&str], goes: impl Fn(&str) -> bool) -> Option<String> {
    let becomes: Vec<Option<&str>> = items.iter().map(|item| (!goes(item)).then_some(*item)).collect();
    becomes.contains(&None).then(|| respelled(text, items, &becomes, []))
}

fn as_they_are<'t>(items: &[&'t str]) -> Vec<Option<&'t str>> {
    items.iter().copied().map(Some).collect()
}

/// Assigns a wanted text to each text of a list: itself if it stays, or a new one. If the remaining ones are in another
/// order, they are assigned in sequence. Also returns how many wanted texts are assigned.
fn places<'w>(texts: &[Option<String>], wanted: &[&'w str]) -> (Vec<Option<&'w str>>, usize) {
    let known: HashSet<&str> = texts.iter().flatten().map(String::as_str).collect();
    let stays: HashSet<&str> = wanted.iter().copied().filter(|text| known.contains(text)).collect();
    let (mut at, mut in_order) = (0, true);
    let ordered = |text: &Option<String>| {
        let next = wanted.get(at).copied();
        let place = match text.as_deref() {
            None => return Some(""),
            Some(text) if stays.contains(text) => {
                in_order &= next == Some(text);
                next
            }
            Some(_) => next.filter(|wanted| !stays.contains(wanted)),
        };
        at += usize::from(place.is_some());
        place
    };
    let becomes = texts.iter().map(ordered).collect();
    if in_order {
        return (becomes, at);
    }
    let mut next = wanted.iter().copied();
    let becomes = texts.iter().map(|text| if text.is_some() { next.next() } else { Some("") }).collect();
    (becomes, wanted.len() - next.len())
}

/// Adds an id at the end of the array. `None` (SQL NULL) and `{}` are empty.
///
/// # Errors
/// The reason why the text is not a one-dimensional array.
pub fn array_with(text: Option<&str>, id: &str) -> Result<String, String> {
    let text = text.unwrap_or("{}");
    let items = array_items(text)?;
    Ok(respelled(text, &items, &as_they_are(&items), [array_item(id)]))
}

/// Removes an id from the array, at every position; `None` if it is not there.
///
/// # Errors
/// As [`array_with`].
pub fn array_without(text: Option<&str>, id: &str) -> Result<Option<String>, String> {
    let Some(text) = text else { return Ok(None) };
    let items = array_items(text)?;
    Ok(left(text, &items, |item| array_text(item).as_deref() == Some(id)))
}

/// The texts of an array; NULL elements are left out.
///
/// # Errors
/// As [`array_with`].
pub fn array_texts(text: &str) -> Result<Vec<String>, String> {
    Ok(array_items(text)?.into_iter().filter_map(array_text).collect())
}

fn json_item(id: &str) -> String {
    serde_json::Value::from(id).to_string()
}

fn json_text(item: &str) -> Option<String> {
    serde_json::from_str(item).ok()
}

/// An array element in quotes, which the server drops if they are not needed.
fn array_item(id: &str) -> String {
    format!("\"{}\"", id.replace('\\', "\\\\").replace('"', "\\\""))
}

fn array_text(item: &str) -> Option<String> {
    let Some(inner) = item.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) else {
        return (!item.eq_ignore_ascii_case("null")).then(|| item.to_owned());
    };
    let mut text = String::with_capacity(inner.len());
    let mut escaped = false;
    for letter in inner.chars() {
        if letter == '\\' && !escaped {
            escaped = true;
        } else {
            text.push(letter);
            escaped = false;
        }
    }
    Some(text)
}

/// The elements of an array, as written.
fn array_items(text: &str) -> Result<Vec<&str>, String> {
    let inner = text.strip_prefix('{').and_then(|rest| rest.strip_suffix('}'));
    let inner = inner.ok_or_else(|| "it is not an array that begins at 1".to_owned())?;
    let (mut items, mut start) = (Vec::new(), 0);
    let (mut quoted, mut escaped) = (false, false);
    for (at, letter) in inner.char_indices() {
        match letter {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => quoted = !quoted,
            '{' if !quoted => return Err("it is an array of arrays".to_owned()),
            ',' if !quoted => {
                items.push(&inner[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    if !inner.is_empty() {
        items.push(&inner[start..]);
    }
    Ok(items)
}

/// The elements of a JSON list, as written.
fn elements(text: &str) -> Result<Vec<&str>, String> {
    let strict: Result<Vec<&RawValue>, _> = serde_json::from_str(text);
    let list = strict.map_err(|_| {
        let problems = super::json::read_list(Some(text)).problems;
        problems.into_iter().next().unwrap_or_else(|| "not strict JSON".to_owned())
    })?;
    Ok(list.into_iter().map(RawValue::get).collect())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_id_is_added_in_the_lists_own_spelling() {
        for (before, after) in [
            (None, r#"["x"]"#),
            (Some("null"), r#"["x"]"#),
            (Some("[]"), r#"["x"]"#),
            (Some(" [ ] "), r#" ["x" ] "#),
            (Some(r#"["a"]"#), r#"["a", "x"]"#),
            (Some(r#"["a","b"]"#), r#"["a","b","x"]"#),
            (Some("[\"a\",\n  \"b\"\n]"), "[\"a\",\n  \"b\",\n  \"x\"\n]"),
            (Some(r#"["\u00e9", 5]"#), r#"["\u00e9", 5, "x"]"#),
        ] {
            assert_eq!(with(before, "x", IdSpelling::Texts).as_deref(), Ok(after), "{before:?}");
        }
    }

    #[test]
    fn an_id_is_taken_out_wherever_it_stands() {
        for (before, after) in [
            (r#"["x"]"#, Some("[]")),
            (r#"["x", "a"]"#, Some(r#"["a"]"#)),
            (r#"["a","x","b"]"#, Some(r#"["a","b"]"#)),
            (r#"["x","a","x","\u0078"]"#, Some(r#"["a"]"#)),
            (r#"[ "a" , "x" ]"#, Some(r#"[ "a" ]"#)),
            (r#"["a"]"#, None),
            ("null", None),
        ] {
            assert_eq!(without(Some(before), "x", IdSpelling::Texts), Ok(after.map(str::to_owned)), "{before}");
        }
    }

    #[test]
    fn texts_come_and_go_and_all_else_stays() {
        for (before, wanted, after) in [
            (r#"[5, null,"k" , {"z":1.10},"other"]"#, &["other"][..], Some(r#"[5, null , {"z":1.10},"other"]"#)),
            (r#"[5,"k"]"#, &["heir"], Some(r#"[5,"heir"]"#)),
            (r#"["k","m", "k2"]"#, &["heir", "m"], Some(r#"["heir","m"]"#)),
            ("[]", &["a", "b"], Some(r#"["a", "b"]"#)),
            (r#"["k", 7]"#, &[], Some("[7]")),
            (r#"["a","b"]"#, &["a", "b", "c"], Some(r#"["a","b","c"]"#)),
            (r#"["a"]"#, &[], Some("[]")),
            (r#"["\u0061", "b"]"#, &["a"], Some(r#"["\u0061"]"#)),
            ("{a,NULL,b}", &["b"], Some("{NULL,b}")),
            ("{a,b}", &["x y", "b"], Some(r#"{"x y",b}"#)),
            (r#"["a",5,"b"]"#, &["b", "a"], Some(r#"["b",5,"a"]"#)),
            (r#"["k",5,"m"]"#, &["m", "k"], Some(r#"["m",5,"k"]"#)),
            (r#"["a",5,"a"]"#, &["a"], Some(r#"["a",5]"#)),
            (r#"["a",5,"a"]"#, &["x", "a", "y"], Some(r#"["x",5,"a","y"]"#)),
            (r#"["a""#, &["b"], None),
            ("a, b", &["b"], None),
        ] {
            assert_eq!(relisted(before, wanted, IdSpelling::Texts).as_deref(), after, "{before}");
        }
    }

    #[test]
    fn a_number_is_the_id_of_a_row_that_is_numbered() {
        let numbers = IdSpelling::Numbers;
        for (before, wanted, after) in [
            ("[100, 102]", &["102"][..], "[102]"),
            ("[100, 102]", &["100", "102", "7"], "[100, 102, 7]"),
            (r#"["100", "102"]"#, &["102", "7"], r#"["102", "7"]"#),
            ("[100,null,1.5]", &["x"], r#"["x",null,1.5]"#),
            ("{100,102}", &["102"], "{102}"),
        ] {
            assert_eq!(relisted(before, wanted, numbers).as_deref(), Some(after), "{before}");
        }
        assert_eq!(with(Some("[1]"), "2", numbers).as_deref(), Ok("[1, 2]"));
        assert_eq!(with(None, "2", numbers).as_deref(), Ok("[2]"));
        assert_eq!(without(Some("[1, 2]"), "2", numbers), Ok(Some("[1]".to_owned())));
        assert_eq!(without(Some("[1, 2]"), "2", IdSpelling::Texts), Ok(None));
        assert_eq!(of(&["1", "b"], numbers), r#"[1,"b"]"#);
    }

    #[test]
    fn what_is_no_list_is_refused() {
        for text in ["", "\"x\"", "{\"x\":1}", "['x']", "[NaN]", "[\"x\"", "5"] {
            let texts = IdSpelling::Texts;
            assert!(with(Some(text), "x", texts).is_err() && without(Some(text), "x", texts).is_err(), "{text:?}");
        }
    }

    #[test]
    fn arrays_keep_their_other_elements_as_they_are() {
        for (before, after) in [
            (None, r#"{"x y"}"#),
            (Some("{}"), r#"{"x y"}"#),
            (Some("{a,NULL,\"b,c\",\"d\\\"e\"}"), "{a,NULL,\"b,c\",\"d\\\"e\",\"x y\"}"),
        ] {
            let added = array_with(before, "x y").unwrap();
            assert_eq!(added, after);
            assert_eq!(array_without(Some(&added), "x y").unwrap(), Some(before.unwrap_or("{}").to_owned()));
        }
        assert_eq!(array_without(Some("{x,a,\"x\"}"), "x").unwrap().as_deref(), Some("{a}"));
        assert_eq!(array_without(Some("{a}"), "x").unwrap(), None);
        assert_eq!(array_texts("{a,NULL,\"b,\\\\c\"}").unwrap(), ["a", "b,\\c"]);
        for bad in ["", "[1:2]={a,b}", "{{a},{b}}", "a"] {
            assert!(array_with(Some(bad), "x").is_err() && array_without(Some(bad), "x").is_err(), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn taking_out_what_was_added_gives_the_list_back(ids in prop::collection::vec("[a-w]{1,4}", 0..5), gap in "[ \n]{0,2}") {
            let items: Vec<String> = ids.iter().map(|id| format!("\"{id}\"")).collect();
            let text = format!("[{}]", items.join(&format!(",{gap}")));
            let added = with(Some(&text), "x", IdSpelling::Texts).unwrap();
            prop_assert_eq!(without(Some(&added), "x", IdSpelling::Texts).unwrap(), Some(text));
            let mut expected = ids;
            expected.push("x".to_owned());
            prop_assert_eq!(serde_json::from_str::<Vec<String>>(&added).unwrap(), expected);
        }
    }
}
