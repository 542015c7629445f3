//! The filter expression `column OP value` of `--where` and of the console's filter line.

use std::cmp::Ordering;
use std::fmt;

use chrono::{DateTime, Utc};
use serde_json::Value;

use super::entity::{Column, Entity, ValueKind};
use super::nearest::nearest;
use super::row::Row;
use super::time;

/// Operator that compares a column with a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operator {
    /// `=`
    Equal,
    /// `!=`
    NotEqual,
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterOrEqual,
    /// `~`: contains, ignoring case.
    Contains,
    /// `has`: a list contains exactly this element.
    Has,
}

impl Operator {
    /// Every operator, in the order of the help.
    pub const ALL: &'static [Operator] = &[
        Operator::Equal,
        Operator::NotEqual,
        Operator::Less,
        Operator::LessOrEqual,
        Operator::Greater,
        Operator::GreaterOrEqual,
        Operator::Contains,
        Operator::Has,
    ];

    /// The operator as written.
    pub fn sign(self) -> &'static str {
        match self {
            Operator::Equal => "=",
            Operator::NotEqual => "!=",
            Operator::Less => "<",
            Operator::LessOrEqual => "<=",
            Operator::Greater => ">",
            Operator::GreaterOrEqual => ">=",
            Operator::Contains => "~",
            Operator::Has => "has",
        }
    }

    /// Parses an operator.
    pub fn parse(sign: &str) -> Option<Operator> {
        Operator::ALL.iter().copied().find(|op| op.sign().eq_ignore_ascii_case(sign))
    }

    /// Whether values in that order satisfy it; always false for `~` and `has`, which know no order.
    pub fn accepts(self, ordering: Ordering) -> bool {
        match self {
            Operator::Equal => ordering.is_eq(),
            Operator::NotEqual => ordering.is_ne(),
            Operator::Less => ordering.is_lt(),
            Operator::LessOrEqual => ordering.is_le(),
            Operator::Greater => ordering.is_gt(),
            Operator::GreaterOrEqual => ordering.is_ge(),
            Operator::Contains | Operator::Has => false,
        }
    }
}

/// Value that a column is compared with, already of the column's kind.
#[derive(Debug, Clone, PartialEq)]
pub enum Operand {
    /// `null`, unquoted, with `=` or `!=`: tests for presence.
    Null,
    /// Value for a text column; also the needle of `~` and the element of `has`.
    Text(String),
    /// Value for an integer column.
    Integer(i64),
    /// Value for a real column, or for an integer column when it has a fraction. Finite.
    Real(f64),
    /// Value for a boolean column.
    Boolean(bool),
    /// Value for a time column, in the canonical spelling.
    Time(String),
}

impl fmt::Display for Operand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Operand::Null => f.write_str("null"),
            Operand::Text(text) => write!(f, "'{}'", text.replace('\'', "''")),
            Operand::Integer(number) => write!(f, "{number}"),
            Operand::Real(number) => write!(f, "{number}"),
            Operand::Boolean(truth) => write!(f, "{truth}"),
            Operand::Time(time) => f.write_str(time),
        }
    }
}

/// One condition on rows of an entity, or several of which one must hold. Its `Display` is an expression that parses to
/// the same filter.
#[derive(Debug, Clone, PartialEq)]
pub struct Filter {
    /// Canonical column of the entity for which it was parsed.
    pub column: &'static str,
    /// Operator of the comparison.
    pub op: Operator,
    /// Value to compare with.
    pub value: Operand,
    /// Alternative conditions; these have none of their own.
    pub or: Vec<Filter>,
}

/// Reason why an expression is not a valid filter.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FilterError {
    /// The entity has no such column.
    #[error(
        "{entity} has no column `{column}`{} Its columns are: {columns}",
        nearest.map_or_else(|| ".".to_owned(), |n| format!("; did you mean `{n}`?"))
    )]
    UnknownColumn {
        /// The entity.
        entity: Entity,
        /// Column name as written.
        column: String,
        /// The column that was probably meant.
        nearest: Option<&'static str>,
        /// All of them, separated by spaces.
        columns: String,
    },
    /// A condition is missing.
    #[error("a condition is missing: write `column OP value`")]
    MissingCondition,
    /// An opening parenthesis before alternatives is not closed.
    #[error("`{expression}` lacks its closing bracket: write `(column OP value or column OP value)`")]
    Unclosed {
        /// Expression as written.
        expression: String,
    },
    /// The expression is only a column.
    #[error("`{expression}` lacks an operator: write `column OP value` with one of {}", signs())]
    MissingOperator {
        /// Expression as written.
        expression: String,
    },
    /// The operator is unknown.
    #[error("unknown operator `{operator}`; operators are {}", signs())]
    UnknownOperator {
        /// Operator as written.
        operator: String,
    },
    /// The value is missing.
    #[error("`{expression}` lacks a value after the operator (write '' for an empty text)")]
    MissingValue {
        /// Expression as written.
        expression: String,
    },
    /// A further condition is joined by an unsupported word.
    #[error("`{joint}` cannot join conditions: give each its own --where, or quote the value that it is part of")]
    Joined {
        /// The word.
        joint: &'static str,
    },
    /// A quoted value is not closed, or something follows it.
    #[error("the value {value} does not end with its quote (double a quote inside it)")]
    BadQuotes {
        /// Value as written.
        value: String,
    },
    /// The column cannot have this value.
    #[error("`{column}` {expected}, which `{value}` is not")]
    WrongValue {
        /// The column.
        column: &'static str,
        /// Description of the column's values, with examples.
        expected: &'static str,
        /// Value as written.
        value: String,
    },
    /// The operator does not apply to values of this kind.
    #[error("`{op}` does not fit `{column}`, which {holds}; use {fitting}", op = op.sign())]
    WrongOperator {
        /// The column.
        column: &'static str,
        /// The operator.
        op: Operator,
        /// Description of the column's values.
        holds: &'static str,
        /// Operators that fit.
        fitting: &'static str,
    },
}

fn signs() -> String {
    Operator::ALL.iter().map(|op| op.sign()).collect::<Vec<_>>().join(" ")
}

/// A parsed condition, before its value is checked against the column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expression<'t> {
    /// Text before the operator.
    pub name: &'t str,
    /// Operator of the comparison.
    pub op: Operator,
    /// Value to compare with, without its quotes.
    pub value: String,
    /// Whether the value was quoted: `'null'` is a word, `null` tests for presence.
    pub quoted: bool,
}

impl<'t> Expression<'t> {
    /// Splits `column OP value` at its operator.
    ///
    /// # Errors
    /// An operator or a value is missing or unknown, or the quotes do not match.
    pub fn parse(text: &'t str) -> Result<Self, FilterError> {
        let text = text.trim();
        let (name, rest) = split_name(text);
        let (op, raw) = split_operator(text, rest.trim_start())?;
        let (value, quoted) = unquote(raw)?;
        if raw.is_empty() {
            return Err(FilterError::MissingValue { expression: text.to_owned() });
        }
        Ok(Expression { name, op, value, quoted })
    }

    /// Whether it tests for presence or absence of a value.
    pub fn asks_presence(&self) -> bool {
        !self.quoted
            && self.value.eq_ignore_ascii_case("null")
            && matches!(self.op, Operator::Equal | Operator::NotEqual)
    }
}

impl Filter {
    /// A single condition.
    pub fn new(column: &'static str, op: Operator, value: Operand) -> Filter {
        Filter { column, op, value, or: Vec::new() }
    }

    /// Iterates over the conditions of the filter, at least one of which must hold.
    pub fn alternatives(&self) -> impl Iterator<Item = &Filter> {
        std::iter::once(self).chain(&self.or)
    }

    /// The columns that it uses.
    pub fn columns(&self) -> impl Iterator<Item = &'static str> {
        self.alternatives().map(|filter| filter.column)
    }

    /// Iterates over the filter's columns, each with the value that it is compared with.
    pub fn values_mut(&mut self) -> impl Iterator<Item = (&'static str, &mut Operand)> {
        let own = (self.column, &mut self.value);
        std::iter::once(own).chain(self.or.iter_mut().map(|filter| (filter.column, &mut filter.value)))
    }

    /// Parses `column OP value`, or several joined by ` or `, in parentheses or not. An `or` without a condition after
    /// it is part of the value.
    ///
    /// The value may be quoted with `'…'` or `"…"`, the quote doubled inside; spaces around the operator are free,
    /// but `has` needs them. Times take an age before `now`, see [`time::parse_moment`]; a date alone is its midnight.
    /// Booleans take true, false, 1 and 0.
    pub fn parse(entity: Entity, text: &str, now: DateTime<Utc>) -> Result<Filter, FilterError> {
        check_joined(text, &["and", "&&"], |name| entity.column(name).is_some())?;
        let mut parsed = alternatives(entity, text).into_iter().map(|part| Filter::parse_one(entity, part, now));
        let first = parsed.next().unwrap_or_else(|| Filter::parse_one(entity, text, now))?;
        Ok(Filter { or: parsed.collect::<Result<_, _>>()?, ..first })
    }

    fn parse_one(entity: Entity, text: &str, now: DateTime<Utc>) -> Result<Filter, FilterError> {
        let (name, rest) = split_name(text.trim());
        if name.is_empty() && rest.is_empty() {
            return Err(FilterError::MissingCondition);
        }
        if name.is_empty() && rest.starts_with('(') {
            return Err(FilterError::Unclosed { expression: rest.to_owned() });
        }
        let column = entity.column(name).ok_or_else(|| unknown_column(entity, name, rest))?;
        let expression = Expression::parse(text)?;
        let op = expression.op;
        let value = if expression.asks_presence() {
            Operand::Null
        } else {
            check_operator(column, op)?;
            operand(column, op, &expression.value, now)?
        };
        Ok(Filter::new(column.name, op, value))
    }

    /// Whether a row satisfies one of its conditions.
    ///
    /// As in SQL a null satisfies no comparison, not even `!=`; only `= null` and `!= null` ask for presence. Texts
    /// compare by code point, numbers by value, times by their canonical text. `~` looks into the text, of JSON and
    /// lists into their JSON text; case is ignored for ASCII letters only when the needle is ASCII, else for all. `has`
    /// wants an element that is that text, or a number or boolean that is written so.
    pub fn matches(&self, row: &Row) -> bool {
        self.alternatives().any(|filter| filter.holds(row))
    }

    fn holds(&self, row: &Row) -> bool {
        let stored = row.get(self.column);
        if self.value == Operand::Null {
            return stored.is_null() == (self.op == Operator::Equal);
        }
        match (self.op, &self.value) {
            _ if stored.is_null() => false,
            (Operator::Has, Operand::Text(element)) => has(stored, element),
            (Operator::Contains, Operand::Text(needle)) => match stored {
                Value::String(text) => contains(text, needle),
                other => contains(&other.to_string(), needle),
            },
            (op, operand) => compare(stored, operand).is_some_and(|ordering| op.accepts(ordering)),
        }
    }
}

impl fmt::Display for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let one = |filter: &Filter| format!("{} {} {}", filter.column, filter.op.sign(), filter.value);
        if self.or.is_empty() {
            return f.write_str(&one(self));
        }
        write!(f, "({})", self.alternatives().map(one).collect::<Vec<_>>().join(" or "))
    }
}

/// The conditions of an expression: the parts between ` or ` outside of quotes, each followed by a condition on a
/// column.
pub fn alternatives(entity: Entity, text: &str) -> Vec<&str> {
    const OR: &str = " or ";
    let text = text.trim();
    let text = text.strip_prefix('(').and_then(|inner| inner.strip_suffix(')')).unwrap_or(text);
    parts_between(text, OR, |rest| begins_condition(rest, OR, |name| entity.column(name).is_some()))
}

/// Whether a condition on a known column ends before the next joining word.
fn begins_condition(rest: &str, joint: &str, known: impl Fn(&str) -> bool) -> bool {
    Expression::parse(rest.split(joint).next().unwrap_or(rest)).is_ok_and(|said| known(said.name))
}

/// Refuses a condition joined by one of some words to another one on a known column, as it would become part of the
/// value.
///
/// # Errors
/// [`FilterError::Joined`].
pub fn check_joined(text: &str, joints: &[&'static str], known: impl Fn(&str) -> bool) -> Result<(), FilterError> {
    for joint in joints {
        let between = format!(" {joint} ");
        let begins = |rest: &str| begins_condition(rest.trim_start_matches('('), &between, &known);
        if parts_between(text, &between, begins).len() > 1 {
            return Err(FilterError::Joined { joint });
        }
    }
    Ok(())
}

/// The parts of a text between joining words, in any case and outside of quotes, if the rest after each is `wanted`. A
/// quote within a word is not an opening quote.
pub fn parts_between<'t>(text: &'t str, joint: &str, wanted: impl Fn(&str) -> bool) -> Vec<&'t str> {
    let (mut parts, mut start, mut quote) = (Vec::new(), 0, None);
    for (at, c) in text.char_indices() {
        match quote {
            Some(open) if c == open => quote = None,
            Some(_) => {}
            None if (c == '\'' || c == '"') && !text[..at].ends_with(char::is_alphanumeric) => quote = Some(c),
            None => {
                let behind = at + joint.len();
                let joins = text.get(at..behind).is_some_and(|s| s.eq_ignore_ascii_case(joint));
                // It may begin with the space that ends the previous one.
                if joins && at >= start && wanted(&text[behind..]) {
                    parts.push(&text[start..at]);
                    start = behind;
                }
            }
        }
    }
    parts.push(&text[start..]);
    parts
}

/// The error for an unknown column, with a suggestion: a comparison with an age suggests the row's time.
fn unknown_column(entity: Entity, name: &str, rest: &str) -> FilterError {
    let names = || entity.columns().iter().map(|c| c.name);
    let is_age = time::parse_age(rest.trim_start_matches(|c: char| !c.is_alphanumeric())).is_some();
    FilterError::UnknownColumn {
        entity,
        column: name.to_owned(),
        nearest: if is_age { Some(entity.time_column()) } else { nearest(name, names()) },
        columns: names().collect::<Vec<_>>().join(" "),
    }
}

/// Splits an expression into the column's name and the rest.
fn split_name(text: &str) -> (&str, &str) {
    text.split_at(text.find(|c: char| !c.is_alphanumeric() && c != '_' && c != '.').unwrap_or(text.len()))
}

/// Splits the rest into operator and value. An operator is the longest run of sign characters, so that a mistyped one
/// is an error and never part of the value.
fn split_operator<'a>(text: &str, rest: &'a str) -> Result<(Operator, &'a str), FilterError> {
    let is_sign = |c: char| "=!<>~".contains(c);
    let end = if rest.starts_with(is_sign) {
        rest.find(|c| !is_sign(c))
    } else {
        rest.find(|c: char| c.is_whitespace() || c == '\'' || c == '"')
    };
    let (sign, value) = rest.split_at(end.unwrap_or(rest.len()));
    match Operator::parse(sign) {
        Some(op) => Ok((op, value.trim_start())),
        None if sign.is_empty() => Err(FilterError::MissingOperator { expression: text.to_owned() }),
        None => Err(FilterError::UnknownOperator { operator: sign.to_owned() }),
    }
}

/// The value without its quotes, and whether it had any.
fn unquote(raw: &str) -> Result<(String, bool), FilterError> {
    let Some(quote) = raw.chars().next().filter(|c| matches!(c, '\'' | '"')) else {
        return Ok((raw.to_owned(), false));
    };
    let doubled = [quote, quote].iter().collect::<String>();
    let inner = raw.strip_prefix(quote).and_then(|r| r.strip_suffix(quote));
    match inner {
        Some(inner) if !inner.replace(&doubled, "").contains(quote) => {
            Ok((inner.replace(&doubled, &quote.to_string()), true))
        }
        _ => Err(FilterError::BadQuotes { value: raw.to_owned() }),
    }
}

fn check_operator(column: &Column, op: Operator) -> Result<(), FilterError> {
    let contains = op == Operator::Contains;
    let (fits, holds, fitting) = match column.kind {
        ValueKind::Text => (op != Operator::Has, "is a text", "= != < <= > >= or ~"),
        ValueKind::Time => (op != Operator::Has, "is a time", "= != < <= > >= or ~"),
        ValueKind::Integer | ValueKind::Real => (!contains && op != Operator::Has, "is a number", "= != < <= > or >="),
        ValueKind::Boolean => (matches!(op, Operator::Equal | Operator::NotEqual), "is true or false", "= or !="),
        ValueKind::List => {
            (contains || op == Operator::Has, "is a list", "`has` for an element or ~ for a part of its text")
        }
        ValueKind::Json => {
            (contains || op == Operator::Has, "is JSON", "~ for a part of its text or `has` for an element")
        }
    };
    if fits { Ok(()) } else { Err(FilterError::WrongOperator { column: column.name, op, holds, fitting }) }
}

fn operand(column: &Column, op: Operator, value: &str, now: DateTime<Utc>) -> Result<Operand, FilterError> {
    if matches!(op, Operator::Contains | Operator::Has) {
        return Ok(Operand::Text(value.to_owned()));
    }
    let (operand, expected) = match column.kind {
        ValueKind::Text | ValueKind::Json | ValueKind::List => (Some(Operand::Text(value.to_owned())), "holds text"),
        ValueKind::Integer => (integer(value), "holds whole numbers"),
        ValueKind::Real => (real(value).map(Operand::Real), "holds numbers"),
        ValueKind::Boolean => (boolean(value).map(Operand::Boolean), "is true or false"),
        ValueKind::Time => (
            time::parse_moment(value, now).map(Operand::Time),
            "takes a time (2026-02-04 or 2026-02-04T10:00:00Z) or an age (30d, 12h, 15m, 45s, 2w)",
        ),
    };
    operand.ok_or_else(|| FilterError::WrongValue { column: column.name, expected, value: value.to_owned() })
}

/// An integer if the value fits in 64 bits, in any notation; otherwise a real to compare with.
fn integer(value: &str) -> Option<Operand> {
    if let Ok(whole) = value.parse() {
        return Some(Operand::Integer(whole));
    }
    let real = real(value)?;
    let is_whole = real.fract() == 0.0 && real.abs() < 9.2e18;
    Some(if is_whole { Operand::Integer(real as i64) } else { Operand::Real(real) })
}

fn real(value: &str) -> Option<f64> {
    value.parse().ok().filter(|number: &f64| number.is_finite())
}

fn boolean(value: &str) -> Option<bool> {
    match value.to_ascii_lowercase().as_str() {
        "true" | "1" => Some(true),
        "false" | "0" => Some(false),
        _ => None,
    }
}

/// Order of a stored value and an operand; `None` if the stored value is not of that kind.
fn compare(stored: &Value, operand: &Operand) -> Option<Ordering> {
    match operand {
        Operand::Null => None,
        Operand::Text(text) | Operand::Time(text) => Some(stored.as_str()?.cmp(text)),
        Operand::Boolean(truth) => Some(stored.as_bool()?.cmp(truth)),
        Operand::Real(number) => stored.as_f64()?.partial_cmp(number),
        Operand::Integer(number) => match stored.as_i64() {
            Some(whole) => Some(whole.cmp(number)),
            None => stored.as_f64()?.partial_cmp(&(*number as f64)),
        },
    }
}

fn has(stored: &Value, element: &str) -> bool {
    stored.as_array().is_some_and(|elements| {
        elements.iter().any(|e| match e {
            Value::String(text) => text == element,
            Value::Number(number) => number.to_string().as_str() == element,
            Value::Bool(truth) => truth.to_string().as_str() == element,
            _ => false,
        })
    })
}

fn contains(text: &str, needle: &str) -> bool {
    if needle.is_ascii() {
        text.to_ascii_lowercase().contains(&needle.to_ascii_lowercase())
    } else {
        text.to_lowercase().contains(&needle.to_lowercase())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn now() -> DateTime<Utc> {
        DateTime::from_timestamp(1_770_199_200, 0).unwrap()
    }

    fn parse(entity: Entity, text: &str) -> Filter {
        Filter::parse(entity, text, now()).unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    fn error(entity: Entity, text: &str) -> String {
        Filter::parse(entity, text, now()).unwrap_err().to_string()
    }

    fn matches(entity: Entity, column: &str, value: Value, expression: &str) -> bool {
        let row = Row::with(entity, [(column, value)]);
        parse(entity, expression).matches(&row)
    }

    #[test]
    fn and_is_refused_where_a_condition_follows() {
        for text in [
            "outcome != failure and status = active",
            "(title ~ a) AND (status = active)",
            "title != it's && outcome = x",
        ] {
            assert!(error(Entity::Episode, text).contains("cannot join conditions"), "{text}");
        }
        for text in ["title = 'this and status = active'", "title ~ salt and pepper", "title = a and b = c"] {
            parse(Entity::Episode, text);
        }
        assert_eq!(alternatives(Entity::Episode, "title != it's or outcome = failure").len(), 2);
    }

    #[test]
    fn an_expression_is_column_operator_value() {
        let text = |t: &str| Operand::Text(t.to_owned());
        for (expression, column, op, value) in [
            ("outcome = success", "outcome", Operator::Equal, text("success")),
            ("outcome=success", "outcome", Operator::Equal, text("success")),
            ("  outcome  !=  success ", "outcome", Operator::NotEqual, text("success")),
            ("title ~ 'it''s = x'", "title", Operator::Contains, text("it's = x")),
            ("title ~ \"say \"\"no\"\"\"", "title", Operator::Contains, text("say \"no\"")),
            ("title = ''", "title", Operator::Equal, text("")),
            ("title = 'null'", "title", Operator::Equal, text("null")),
            ("title = a b  c", "title", Operator::Equal, text("a b  c")),
            ("title ~ null", "title", Operator::Contains, text("null")),
            ("tags has two words", "tags", Operator::Has, text("two words")),
            ("tags HAS 'x'", "tags", Operator::Has, text("x")),
            ("parent_id = null", "parent_id", Operator::Equal, Operand::Null),
            ("tags != NULL", "tags", Operator::NotEqual, Operand::Null),
            ("canvas_action_count>=3", "canvas_action_count", Operator::GreaterOrEqual, Operand::Integer(3)),
            ("canvas_action_count < 2.5", "canvas_action_count", Operator::Less, Operand::Real(2.5)),
            ("canvas_action_count = 3.0", "canvas_action_count", Operator::Equal, Operand::Integer(3)),
            ("utility > .5", "utility", Operator::Greater, Operand::Real(0.5)),
            ("success = 1", "success", Operator::Equal, Operand::Boolean(true)),
            ("success != False", "success", Operator::NotEqual, Operand::Boolean(false)),
            ("started_at > 30d", "started_at", Operator::Greater, Operand::Time("2026-01-05T10:00:00.000000Z".into())),
            (
                "started_at <= 2026-02-04 12:00+02:00",
                "started_at",
                Operator::LessOrEqual,
                Operand::Time("2026-02-04T10:00:00.000000Z".into()),
            ),
            ("started_at ~ 2026-02", "started_at", Operator::Contains, text("2026-02")),
        ] {
            assert_eq!(parse(Entity::Episode, expression), Filter::new(column, op, value), "{expression}");
        }
    }

    #[test]
    fn errors_say_what_to_write_instead() {
        for (expression, words) in [
            (
                "outcom = success",
                "episode has no column `outcom`; did you mean `outcome`? Its columns are: id agent_id",
            ),
            ("zzz = red", "episode has no column `zzz`. Its columns are: id agent_id"),
            ("age < 7d", "episode has no column `age`; did you mean `started_at`?"),
            ("", "a condition is missing: write `column OP value`"),
            ("(outcome = failure or", "`(outcome = failure or` lacks its closing bracket"),
            ("outcome", "`outcome` lacks an operator: write `column OP value` with one of = != < <= > >= ~ has"),
            ("outcome == success", "unknown operator `==`; operators are = != < <= > >= ~ has"),
            ("outcome like success", "unknown operator `like`"),
            ("outcome =", "`outcome =` lacks a value"),
            ("title = 'abc", "the value 'abc does not end with its quote"),
            ("title = 'a' or 'b'", "the value 'a' or 'b' does not end with its quote"),
            ("canvas_action_count = abc", "`canvas_action_count` holds whole numbers, which `abc` is not"),
            ("canvas_action_count < null", "`canvas_action_count` holds whole numbers, which `null` is not"),
            ("utility = NaN", "`utility` holds numbers, which `NaN` is not"),
            ("success = maybe", "`success` is true or false, which `maybe` is not"),
            ("started_at > tomorrow", "`started_at` takes a time (2026-02-04"),
            ("tags = x", "`=` does not fit `tags`, which is a list; use `has` for an element or ~"),
            ("title has x", "`has` does not fit `title`, which is a text; use = != < <= > >= or ~"),
            ("success > true", "`>` does not fit `success`, which is true or false; use = or !="),
            ("utility ~ 5", "`~` does not fit `utility`, which is a number; use = != < <= > or >="),
        ] {
            let error = error(Entity::Episode, expression);
            assert!(error.contains(words), "{expression}: {error}");
        }
    }

    #[test]
    fn null_matches_only_when_asked_for() {
        for expression in ["title = a", "title != a", "title < a", "title ~ a", "title != null"] {
            assert!(!matches(Entity::Episode, "title", Value::Null, expression), "{expression}");
        }
        assert!(matches(Entity::Episode, "title", Value::Null, "title = null"));
        assert!(matches(Entity::Episode, "title", json!(""), "title != null"));
        assert!(!matches(Entity::Episode, "title", json!(""), "title = null"));
    }

    #[test]
    fn each_kind_compares_in_its_own_way() {
        let episode = |column, value, expression| matches(Entity::Episode, column, value, expression);
        for (column, value, yes, no) in [
            ("canvas_action_count", json!(10), "canvas_action_count > 9", "canvas_action_count < 9"),
            ("canvas_action_count", json!(10), "canvas_action_count > 9.5", "canvas_action_count = 10.5"),
            (
                "canvas_action_count",
                json!(i64::MAX),
                "canvas_action_count = 9223372036854775807",
                "canvas_action_count = 9223372036854775806",
            ),
            ("canvas_action_count", json!(u64::MAX), "canvas_action_count > 1", "canvas_action_count < 1"),
            ("utility", json!(0.5), "utility >= 0.5", "utility > 0.5"),
            ("utility", json!(1), "utility = 1", "utility != 1"),
            ("success", json!(true), "success = true", "success = 0"),
            ("started_at", json!("2026-02-04T10:00:00.000000Z"), "started_at <= 0s", "started_at < 0s"),
            ("title", json!("B"), "title < a", "title > a"),
            ("title", json!("Straße"), "title ~ STRA", "title ~ strasse"),
            ("title", json!("ÉCOLE"), "title ~ école", "title ~ ecole"),
            ("tags", json!(["Ab", "c"]), "tags has Ab", "tags has ab"),
            ("tags", json!(["Ab", "c"]), "tags ~ \"\"\"ab\"\",\"", "tags ~ abc"),
            ("metadata", json!({"Key": "Value"}), "metadata ~ \"\"\"key\"\":\"\"value\"", "metadata has Key"),
            ("metadata", json!([1, true, "x"]), "metadata has 1", "metadata has 2"),
        ] {
            assert!(episode(column, value.clone(), yes), "{value} should match {yes}");
            assert!(!episode(column, value.clone(), no), "{value} should not match {no}");
        }
        assert!(!episode("canvas_action_count", json!("ten"), "canvas_action_count != 9"), "a value of another kind");
    }

    fn any_filter() -> impl Strategy<Value = (Entity, Filter)> {
        let columns: Vec<(Entity, &'static Column)> =
            Entity::ALL.iter().flat_map(|e| e.columns().iter().map(|c| (*e, c))).collect();
        (
            prop::sample::select(columns),
            prop::sample::select(Operator::ALL),
            any::<String>(),
            any::<i64>(),
            any::<f64>(),
        )
            .prop_map(|((entity, column), op, text, whole, real)| {
                let value = match column.kind {
                    _ if matches!(op, Operator::Contains | Operator::Has) => Operand::Text(text),
                    ValueKind::Text => Operand::Text(text),
                    ValueKind::Integer => Operand::Integer(whole),
                    ValueKind::Real => Operand::Real(if real.is_finite() { real } else { 0.25 }),
                    ValueKind::Boolean => Operand::Boolean(whole % 2 == 0),
                    ValueKind::Time => Operand::Time(
                        time::from_epoch(whole.rem_euclid(200_000_000_000), time::EpochUnit::Seconds)
                            .expect("within years 1 to 9999"),
                    ),
                    ValueKind::Json | ValueKind::List => Operand::Null,
                };
                (entity, column, Filter::new(column.name, op, value))
            })
            .prop_filter("the operator fits", |(_, column, filter)| match filter.value {
                Operand::Null => matches!(filter.op, Operator::Equal | Operator::NotEqual),
                _ => check_operator(column, filter.op).is_ok(),
            })
            .prop_map(|(entity, _, filter)| (entity, filter))
    }

    /// A filter, and one with alternatives for the same entity.
    fn any_filters() -> impl Strategy<Value = (Entity, Filter)> {
        (any_filter(), prop::collection::vec(any_filter(), 0..8)).prop_map(|((entity, filter), others)| {
            let or = others.into_iter().filter(|(other, _)| *other == entity).map(|(_, filter)| filter).collect();
            (entity, Filter { or, ..filter })
        })
    }

    proptest! {
        #[test]
        fn what_is_shown_parses_to_the_same((entity, filter) in any_filters()) {
            prop_assert_eq!(Filter::parse(entity, &filter.to_string(), now()), Ok(filter));
        }

        #[test]
        fn any_text_is_survived(text in "(title|tags|utility)? *[=!<>~has]{0,4} *\\PC*") {
            if let Ok(filter) = Filter::parse(Entity::Episode, &text, now()) {
                prop_assert_eq!(Filter::parse(Entity::Episode, &filter.to_string(), now()), Ok(filter));
            }
        }

        #[test]
        fn a_present_value_matches_a_comparison_or_its_opposite(stored in any::<f64>(), asked in any::<f64>()) {
            prop_assume!(stored.is_finite() && asked.is_finite());
            for (op, opposite) in [("=", "!="), ("<", ">="), (">", "<=")] {
                let holds = |op| matches(Entity::Episode, "utility", json!(stored), &format!("utility {op} {asked}"));
                prop_assert_ne!(holds(op), holds(opposite));
            }
        }
    }
}
