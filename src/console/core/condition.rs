//! The filter line: conditions as a person writes them in one line, checked while they are written.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Utc};

use crate::console::core::columns::title_column;
use crate::console::core::zone::ShownZone;
use crate::memory::Entity;
use crate::memory::entity::{Column, Personal, ValueKind};
use crate::memory::filter::{self, Expression, Filter, Operand, Operator};
use crate::memory::query::CanvasFilter;
use crate::memory::search::Search;

/// Conditions that select the listed rows of an entity.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Conditions {
    /// Filters, all of which must hold.
    pub filters: Vec<Filter>,
    /// Episodes with such a canvas event.
    pub canvas: Option<CanvasFilter>,
}

impl Conditions {
    /// Rows whose column equals the text.
    pub fn equal(column: &'static str, text: &str) -> Self {
        let filter = Filter::new(column, Operator::Equal, Operand::Text(text.to_owned()));
        Conditions { filters: vec![filter], canvas: None }
    }

    /// Rows whose list contains the text.
    pub fn has(column: &'static str, text: &str) -> Self {
        let filter = Filter::new(column, Operator::Has, Operand::Text(text.to_owned()));
        Conditions { filters: vec![filter], canvas: None }
    }

    /// Whether every row is listed.
    pub fn is_empty(&self) -> bool {
        self.filters.is_empty() && self.canvas.is_none()
    }

    /// Parses a line: conditions of the command line joined by ` and ` or commas, `canvas TYPE[:ACTION]` for episodes,
    /// or other words, all of which the title must contain. ` or ` joins only its two neighbours.
    ///
    /// # Errors
    /// A message for people if the line is not valid.
    pub fn parse(entity: Entity, line: &str, now: DateTime<Utc>, zone: &ShownZone) -> Result<Self, String> {
        let mut conditions = Conditions::default();
        if line.trim().is_empty() {
            return Ok(conditions);
        }
        if !looks_like_conditions(entity, line) {
            if let Some(instead) = spelled_as_sql(entity, line) {
                return Err(instead);
            }
            // Words in any order; quotes keep words together.
            let words = Search::parse(line)?;
            conditions.filters = titles(entity, words.terms());
            return Ok(conditions);
        }
        let parts = split(entity, line);
        check_brackets(entity, &parts)?;
        for part in parts {
            match canvas_part(entity, part) {
                Some("") => return Err("write `canvas TYPE` or `canvas TYPE:ACTION`".to_owned()),
                Some(_) if conditions.canvas.is_some() => return Err("one canvas condition at a time".to_owned()),
                Some(canvas) => conditions.canvas = Some(CanvasFilter::parse(canvas)),
                None => {
                    let parts = filter::alternatives(entity, part);
                    let parts: Vec<_> = parts.into_iter().map(|part| by_clock(entity, part, zone)).collect();
                    let part = parts.join(" or ");
                    conditions.filters.push(Filter::parse(entity, &part, now).map_err(|e| e.to_string())?);
                }
            }
        }
        Ok(conditions)
    }

    /// The line that parses to the same conditions.
    pub fn line(&self) -> String {
        let canvas = self.canvas.as_ref().map(|c| format!("canvas {}", canvas_text(c)));
        let filters = self.filters.iter().map(Filter::to_string);
        canvas.into_iter().chain(filters).collect::<Vec<_>>().join(" and ")
    }
}

/// Refuses two ambiguous forms: `and` within brackets, which hold alternatives, and alternatives on several columns
/// next to other conditions without brackets.
fn check_brackets(entity: Entity, parts: &[&str]) -> Result<(), String> {
    let opens = |part: &str| part.trim_start().starts_with('(');
    let closes = |part: &str| part.trim_end().ends_with(')');
    let open = parts.iter().position(|part| opens(part) && !closes(part));
    if open.is_some_and(|open| parts[open + 1..].iter().any(|part| part.contains(')'))) {
        return Err("brackets can only hold conditions joined by `or`; join others with `and` outside them".to_owned());
    }
    let is_mixed = |part: &&str| {
        let columns = filter::alternatives(entity, part).into_iter().filter_map(|part| Expression::parse(part).ok());
        !opens(part) && columns.map(|said| said.name).collect::<BTreeSet<_>>().len() > 1
    };
    if parts.len() > 1 && parts.iter().any(is_mixed) {
        return Err("put conditions joined by `or` in brackets, as in `A and (B or C)`".to_owned());
    }
    Ok(())
}

/// A condition whose time is given with its zone: people write times as lists show them.
fn by_clock<'p>(entity: Entity, part: &'p str, zone: &ShownZone) -> Cow<'p, str> {
    let is_time = |name: &str| entity.column(name).is_some_and(|column| column.kind == ValueKind::Time);
    match Expression::parse(part) {
        Ok(said) if is_time(said.name) && !matches!(said.op, Operator::Contains | Operator::Has) => {
            Cow::Owned(format!("{} {} {}", said.name, said.op.sign(), zone.spelled(&said.value)))
        }
        _ => Cow::Borrowed(part),
    }
}

/// `TYPE` or `TYPE:ACTION`.
pub fn canvas_text(canvas: &CanvasFilter) -> String {
    match &canvas.action {
        Some(action) => format!("{}:{action}", canvas.canvas_type),
        None => canvas.canvas_type.clone(),
    }
}

/// Filters for titles that contain all of these words; one filter for words joined by `or`.
fn titles(entity: Entity, words: &[String]) -> Vec<Filter> {
    let mut filters: Vec<Filter> = Vec::new();
    let mut either = false;
    for word in words.iter().filter(|word| !word.eq_ignore_ascii_case("and")) {
        if word.eq_ignore_ascii_case("or") && !filters.is_empty() {
            either = true;
            continue;
        }
        let filter = Filter::new(title_column(entity), Operator::Contains, Operand::Text(word.clone()));
        match filters.last_mut().filter(|_| std::mem::take(&mut either)) {
            Some(last) => last.or.push(filter),
            None => filters.push(filter),
        }
    }
    filters
}

/// Whether a line holds conditions: its first word is a column, or an operator follows it.
fn looks_like_conditions(entity: Entity, line: &str) -> bool {
    let line = line.trim().trim_start_matches('(');
    let end = line.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(line.len());
    let (word, rest) = (&line[..end], line[end..].trim_start());
    let operator = rest.starts_with(['=', '!', '<', '>', '~']);
    let has = rest.strip_prefix("has").is_some_and(|r| r.is_empty() || r.starts_with(' '));
    let known = entity.column(word).is_some();
    canvas_part(entity, line).is_some() || (operator && !word.is_empty()) || (known && (has || rest.is_empty()))
}

/// Message that gives the spelling of an SQL operator that follows a column; `None` if there is no such operator.
fn spelled_as_sql(entity: Entity, line: &str) -> Option<String> {
    let mut words = line.trim().trim_start_matches('(').split_whitespace().map(str::to_lowercase);
    let (first, second) = (words.next()?, words.next()?);
    let third = words.next().unwrap_or_default();
    if first == "not" && entity.column(&second).is_some() && third.starts_with(['=', '!', '<', '>', '~']) {
        return Some(format!("filters have no `not`: write `{second} != VALUE`"));
    }
    let column = entity.column(&first)?.name;
    let negated = second == "not" && ["in", "like", "ilike", "between", "null"].contains(&third.as_str());
    let after = if negated { words.next().unwrap_or_default() } else { third.clone() };
    let operator = if negated { &third } else { &second };
    let instead = match operator.as_str() {
        "is" | "null" if negated || ["null", "not"].contains(&after.as_str()) => {
            format!("`{column} = null` or `{column} != null`")
        }
        "like" | "ilike" if !after.is_empty() => format!("`{column} ~ TEXT`"),
        "between" if !after.is_empty() => format!("`{column} >= LEAST and {column} <= MOST`"),
        word if word.starts_with("in(") || word == "in" && after.starts_with('(') => {
            format!("`{column} = ONE or {column} = OTHER`")
        }
        _ => return None,
    };
    Some(format!("filters have no operator `{}`: write {instead}", operator.split('(').next().unwrap_or_default()))
}

fn canvas_part(entity: Entity, part: &str) -> Option<&str> {
    let rest = part.trim().strip_prefix("canvas")?;
    let asked = rest.trim_start().strip_prefix('=').unwrap_or(rest);
    (entity == Entity::Episode && (rest.is_empty() || rest.starts_with([' ', '=']))).then(|| asked.trim())
}

/// Splits a line into the parts that must all hold: at ` and `, and at a comma or blank followed by a condition.
fn split<'l>(entity: Entity, line: &'l str) -> Vec<&'l str> {
    let condition = |rest: &str| {
        let known = |said: Expression<'_>| entity.column(said.name).is_some();
        let next = filter::parts_between(rest, ",", |_| true).first().copied().unwrap_or(rest);
        canvas_part(entity, next).is_some() || Expression::parse(next).is_ok_and(known)
    };
    let parts = filter::parts_between(line, " and ", |_| true).into_iter();
    let parts = parts.flat_map(|part| filter::parts_between(part, ",", condition));
    let blanks = |part: &'l str| {
        let complete = |before: &str| {
            let before = before.trim_end().to_lowercase();
            !before.is_empty() && !before.ends_with(['(', ',']) && !before.ends_with(" or")
        };
        // An unknown column is reported, not searched for as a part of the value.
        let signed =
            |rest: &str| Expression::parse(rest).is_ok_and(|said| !said.name.is_empty() && said.op != Operator::Has);
        let begins = |rest: &str| {
            let rest = rest.trim_start_matches('(');
            !rest.starts_with(' ') && (condition(rest) || signed(rest))
        };
        filter::parts_between(part, " ", |rest| complete(&part[..part.len() - rest.len()]) && begins(rest))
    };
    parts.flat_map(blanks).collect()
}

/// Values that columns of an entity hold, by the column; those of canvas conditions under `canvas` and `canvas action`.
pub type KnownValues = BTreeMap<&'static str, Vec<String>>;

/// Keys of [`KnownValues`] for the canvas types and for the actions of canvas conditions.
pub const CANVAS: (&str, &str) = ("canvas", "canvas action");

/// Values that are offered at most.
const OFFERED: usize = 12;

/// Part of a condition that is being written at the cursor.
#[derive(Debug, Clone, PartialEq)]
enum WrittenPart<'l> {
    /// A column, as far as it is written.
    Column(&'l str),
    /// An operator after a column.
    Operator(&'l str),
    /// A value: of what, and how far it is written.
    Value(&'static str, &'l str),
    /// Anything else.
    Other,
}

fn written(entity: Entity, before_cursor: &str) -> WrittenPart<'_> {
    let part = split(entity, before_cursor).last().copied().unwrap_or_default().trim_start();
    // After an `or` another condition begins.
    let part = part.rfind(" or ").map_or(part, |at| &part[at + 4..]).trim_start().trim_start_matches('(');
    if let Some(canvas) = canvas_part(entity, part).filter(|_| part.contains(' ')) {
        return match canvas.split_once(':') {
            Some((_, action)) => WrittenPart::Value(CANVAS.1, action),
            None => WrittenPart::Value(CANVAS.0, canvas),
        };
    }
    let end = part.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(part.len());
    let (word, rest) = part.split_at(end);
    let Some(column) = entity.column(word).filter(|_| !rest.is_empty()) else {
        return if rest.is_empty() { WrittenPart::Column(word) } else { WrittenPart::Other };
    };
    let rest = rest.trim_start();
    let sign = ["!=", "<=", ">=", "=", "~", "<", ">", "has "].into_iter().find(|sign| rest.starts_with(sign));
    match sign {
        Some(sign) => WrittenPart::Value(column.name, rest[sign.len()..].trim_start().trim_start_matches('\'')),
        None if rest.is_empty() => WrittenPart::Operator(column.name),
        None => WrittenPart::Other,
    }
}

/// The column whose values complete the text being written; the parts of a canvas condition under their own names.
pub fn wanted_values(entity: Entity, before_cursor: &str) -> Option<&'static str> {
    let WrittenPart::Value(column, _) = written(entity, before_cursor) else { return None };
    let is_short = |column: &Column| {
        column.personal != Personal::Content
            && matches!(column.kind, ValueKind::Text | ValueKind::List | ValueKind::Boolean)
    };
    let is_canvas = column == CANVAS.0 || column == CANVAS.1;
    (is_canvas || entity.column(column).is_some_and(is_short)).then_some(column)
}

/// Lists what may be written at the cursor: the word being written (to be replaced) and its completions, best first.
pub fn completions(entity: Entity, before_cursor: &str, known: &KnownValues) -> (String, Vec<String>) {
    match written(entity, before_cursor) {
        WrittenPart::Column(word) => (word.to_owned(), column_names(entity, word)),
        WrittenPart::Operator(column) => (String::new(), operators(entity, column)),
        WrittenPart::Value(column, word) => {
            let values = known.get(column).map(Vec::as_slice).unwrap_or_default();
            let quote = if before_cursor.ends_with(&format!("'{word}")) { "'" } else { "" };
            (format!("{quote}{word}"), like(values, word).into_iter().map(|value| spelled(value, column)).collect())
        }
        WrittenPart::Other => (String::new(), Vec::new()),
    }
}

/// The values similar to the text, most similar first: those that begin with it, those that contain it, then by the
/// longest common piece. `spreadsheet` finds `sheets`.
fn like<'v>(values: &'v [String], word: &str) -> Vec<&'v str> {
    const TELLING: usize = 3;
    let word = word.to_lowercase();
    let mut found: Vec<(usize, &str)> = Vec::new();
    for value in values {
        let lower = value.to_lowercase();
        let distance = if lower.starts_with(&word) {
            0
        } else if lower.contains(&word) {
            1
        } else {
            let length = common_piece(&lower, &word);
            if length < TELLING {
                continue;
            }
            2 + word.len().saturating_sub(length)
        };
        found.push((distance, value));
    }
    if found.is_empty() {
        // No value is similar: the existing ones may still help.
        found = values.iter().map(|value| (0, value.as_str())).collect();
    }
    found.sort_by_key(|(distance, _)| *distance);
    found.into_iter().map(|(_, value)| value).filter(|value| value.to_lowercase() != word).take(OFFERED).collect()
}

/// Bytes of the longest piece that two short texts have in common.
fn common_piece(a: &str, b: &str) -> usize {
    let starts = a.char_indices().map(|(at, _)| at);
    let pieces = starts.flat_map(|at| {
        let ends = a[at..].char_indices().map(move |(end, c)| end + c.len_utf8());
        ends.take_while(|length| *length <= b.len()).map(move |length| &a[at..at + length])
    });
    pieces.filter(|piece| b.contains(piece)).map(str::len).max().unwrap_or(0)
}

fn spelled(value: &str, column: &str) -> String {
    let is_plain =
        !value.is_empty() && value.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '@'));
    if is_plain || column == CANVAS.0 || column == CANVAS.1 {
        value.to_owned()
    } else {
        format!("'{}'", value.replace('\'', "''"))
    }
}

fn column_names(entity: Entity, word: &str) -> Vec<String> {
    let mut names: Vec<&str> = entity.columns().iter().map(|c| c.name).collect();
    if entity == Entity::Episode {
        names.push("canvas");
    }
    names.retain(|name| name.contains(word) && *name != word);
    names.sort_by_key(|name| !name.starts_with(word));
    names.into_iter().map(str::to_owned).collect()
}

fn operators(entity: Entity, word: &str) -> Vec<String> {
    let Some(column) = entity.column(word) else { return Vec::new() };
    let fitting: &[&str] = match column.kind {
        ValueKind::List => &["has", "=", "!="],
        ValueKind::Text | ValueKind::Json => &["=", "!=", "~"],
        ValueKind::Boolean => &["=", "!="],
        ValueKind::Integer | ValueKind::Real | ValueKind::Time => &["=", "!=", "<", "<=", ">", ">="],
    };
    fitting.iter().map(|op| (*op).to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now() -> DateTime<Utc> {
        DateTime::from_timestamp(1_770_200_000, 0).unwrap()
    }

    fn parse(line: &str) -> Result<Conditions, String> {
        Conditions::parse(Entity::Episode, line, now(), &ShownZone::default())
    }

    #[test]
    fn a_line_holds_several_conditions() {
        let conditions = parse("outcome = failure and title ~ 'salt and pepper' and canvas sheets:present").unwrap();
        assert_eq!(conditions.filters.len(), 2);
        assert_eq!(conditions.canvas.as_ref().map(canvas_text).as_deref(), Some("sheets:present"));
        for spelled in ["canvas = sheets:present", "canvas=sheets:present"] {
            assert_eq!(parse(spelled).unwrap().canvas, conditions.canvas, "{spelled}");
        }
        assert_eq!(parse(&conditions.line()).unwrap(), conditions);
        let commas = parse("outcome = failure, title ~ 'salt, title = pepper',canvas sheets, utility < 0.3").unwrap();
        assert_eq!(
            commas.line(),
            "canvas sheets and outcome = 'failure' and title ~ 'salt, title = pepper' and utility < 0.3"
        );
        let blanks =
            parse("outcome = failure  started_at > 30d canvas sheets (title ~ salt or title ~ pepper)").unwrap();
        let spelled =
            parse("outcome = failure and started_at > 30d and canvas sheets and (title ~ salt or title ~ pepper)");
        assert_eq!(blanks, spelled.unwrap());
        assert!(parse("outcome = failure age < 30d").unwrap_err().contains("no column `age`"));
        assert_eq!(parse("title ~ the outcome of it").unwrap().line(), "title ~ 'the outcome of it'");
        assert_eq!(parse("title ~ salt, pepper").unwrap().line(), "title ~ 'salt, pepper'");
    }

    #[test]
    fn one_of_several_conditions_is_enough() {
        for line in [
            "outcome = failure or outcome = 'partial' and utility < 0.3",
            "(outcome = failure OR outcome = partial) and utility < 0.3",
        ] {
            let conditions = parse(line).unwrap();
            assert_eq!(conditions.line(), "(outcome = 'failure' or outcome = 'partial') and utility < 0.3");
            assert_eq!(parse(&conditions.line()).unwrap(), conditions);
        }
        // What could be read in two ways is not taken.
        for line in [
            "outcome = failure and utility < 0.3 or tags has billing",
            "tags has billing or utility < 0.3, title ~ salt",
        ] {
            assert!(parse(line).unwrap_err().contains("A and (B or C)"), "{line}");
        }
        assert!(
            parse("(outcome = failure and utility < 0.3) or tags has billing").unwrap_err().contains("outside them")
        );
        assert!(parse("title ~ salt and (outcome = failure").unwrap_err().contains("closing bracket"));
        assert!(parse("outcome = failure or utility < 0.3").is_ok());
        // Without a condition after it, the `or` is a part of the text.
        assert_eq!(parse("title ~ this or that").unwrap().line(), "title ~ 'this or that'");
        let east = ShownZone::new(vec![(0, 7_200)]);
        let read = Conditions::parse(Entity::Episode, "ended_at = null or ended_at > '2026-02-04 10:00'", now(), &east);
        assert_eq!(read.unwrap().line(), "(ended_at = null or ended_at > 2026-02-04T08:00:00.000000Z)");
    }

    #[test]
    fn times_are_meant_as_lists_show_them() {
        let east = ShownZone::new(vec![(0, 7_200)]);
        let read = |line: &str| Conditions::parse(Entity::Episode, line, now(), &east).unwrap().line();
        assert_eq!(read("started_at > '2026-02-04 10:00'"), "started_at > 2026-02-04T08:00:00.000000Z");
        assert_eq!(read("started_at > 2026-02-04"), "started_at > 2026-02-03T22:00:00.000000Z");
        assert_eq!(read(&read("started_at > 2026-02-04")), read("started_at > 2026-02-04"), "the line means the same");
        assert_eq!(read("ended_at = null"), "ended_at = null");
    }

    #[test]
    fn plain_words_search_the_title() {
        let conditions = parse("quarterly report and more").unwrap();
        assert_eq!(conditions.line(), "title ~ 'quarterly' and title ~ 'report' and title ~ 'more'");
        assert_eq!(
            parse("late invoice or refund").unwrap().line(),
            "title ~ 'late' and (title ~ 'invoice' or title ~ 'refund')"
        );
        assert_eq!(parse("\"quarterly report\"").unwrap().line(), "title ~ 'quarterly report'");
        assert!(parse("  ").unwrap().is_empty());
    }

    #[test]
    fn a_mistake_is_told() {
        for (line, instead) in [
            ("utility is null", "`utility = null`"),
            ("utility is not null", "`utility != null`"),
            ("outcome in (failure, partial)", "`outcome = ONE or outcome = OTHER`"),
            ("outcome not in (failure)", "`outcome = ONE or outcome = OTHER`"),
            ("outcome like fail", "`outcome ~ TEXT`"),
            ("utility between 0 and 1", "`utility >= LEAST and utility <= MOST`"),
            ("not outcome = failure", "`outcome != VALUE`"),
        ] {
            assert!(parse(line).is_err_and(|told| told.contains(instead)), "{line}");
        }
        assert!(parse("outcome is better now").is_ok(), "these are words");
        assert!(parse("outcom = failure").unwrap_err().contains("outcome"));
        assert!(parse("utility > high").is_err());
        assert!(parse("outcome").is_err());
        assert!(parse("canvas").is_err());
    }

    #[test]
    fn columns_and_operators_are_completed() {
        let none = KnownValues::new();
        assert_eq!(completions(Entity::Episode, "outcome = failure and ut", &none).1[0], "utility");
        assert_eq!(completions(Entity::Episode, "tags ", &none).1[0], "has");
        assert_eq!(completions(Entity::Episode, "outcome = failure or ut", &none).1[0], "utility");
        assert!(completions(Entity::Episode, "outcome = fa", &none).1.is_empty());
    }

    #[test]
    fn values_are_completed_from_what_the_database_holds() {
        let values = |of: &[&str]| of.iter().map(|value| (*value).to_owned()).collect::<Vec<_>>();
        let known = KnownValues::from([
            ("outcome", values(&["success", "failure", "partial"])),
            ("topic", values(&["late loads", "invoices"])),
            (CANVAS.0, values(&["forms", "sheets"])),
            (CANVAS.1, values(&["present", "submit"])),
        ]);
        let offered = |line: &str| completions(Entity::Episode, line, &known);
        assert_eq!(offered("outcome = fa"), ("fa".to_owned(), values(&["failure"])));
        assert_eq!(offered("outcome =").1.len(), 3);
        assert_eq!(offered("utility > 0.5 and topic = l").1, ["'late loads'"]);
        assert_eq!(offered("topic = 'la"), ("'la".to_owned(), values(&["'late loads'"])));
        assert_eq!(offered("canvas spreadsheet").1, ["sheets"], "what is like it, by another name");
        assert_eq!(offered("canvas sheets:su").1, ["submit"]);
        assert_eq!(wanted_values(Entity::Episode, "outcome = "), Some("outcome"));
        assert_eq!(wanted_values(Entity::Episode, "canvas "), Some(CANVAS.0));
        assert_eq!(wanted_values(Entity::Episode, "title ~ "), None, "free texts are no list of values");
        assert_eq!(wanted_values(Entity::Episode, "outcome"), None);
    }
}
