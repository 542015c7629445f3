//! The filter line: conditions as a person writes them in one line, checked while they are written.

use chrono::{DateTime, Utc};

use crate::console::core::columns::title_column;
use crate::memory::Entity;
use crate::memory::filter::{Filter, Operand, Operator};
use crate::memory::query::CanvasFilter;

/// Which rows of an entity are listed.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Conditions {
    /// All of these hold.
    pub filters: Vec<Filter>,
    /// Episodes with such a canvas event.
    pub canvas: Option<CanvasFilter>,
}

impl Conditions {
    /// Rows whose column is that text.
    #[must_use]
    pub fn equal(column: &'static str, text: &str) -> Self {
        let filter = Filter { column, op: Operator::Equal, value: Operand::Text(text.to_owned()) };
        Conditions { filters: vec![filter], canvas: None }
    }

    /// Rows whose list holds that text.
    #[must_use]
    pub fn has(column: &'static str, text: &str) -> Self {
        let filter = Filter { column, op: Operator::Has, value: Operand::Text(text.to_owned()) };
        Conditions { filters: vec![filter], canvas: None }
    }

    /// Whether every row is listed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.filters.is_empty() && self.canvas.is_none()
    }

    /// Reads a line: conditions of the command line joined by ` and `, `canvas TYPE[:ACTION]` for episodes, or any other
    /// text, which is looked for in the entity's title.
    ///
    /// # Errors
    /// What is wrong, for people.
    pub fn parse(entity: Entity, line: &str, now: DateTime<Utc>) -> Result<Self, String> {
        let mut conditions = Conditions::default();
        if line.trim().is_empty() {
            return Ok(conditions);
        }
        if !looks_like_conditions(entity, line) {
            let column = title_column(entity);
            conditions.filters.push(Filter {
                column,
                op: Operator::Contains,
                value: Operand::Text(line.trim().into()),
            });
            return Ok(conditions);
        }
        for part in split(line) {
            match canvas_part(entity, part) {
                Some("") => return Err("write `canvas TYPE` or `canvas TYPE:ACTION`".to_owned()),
                Some(_) if conditions.canvas.is_some() => return Err("one canvas condition at a time".to_owned()),
                Some(canvas) => conditions.canvas = Some(CanvasFilter::parse(canvas)),
                None => conditions.filters.push(Filter::parse(entity, part, now).map_err(|e| e.to_string())?),
            }
        }
        Ok(conditions)
    }

    /// The line that reads to the same conditions.
    #[must_use]
    pub fn line(&self) -> String {
        let canvas = self.canvas.as_ref().map(|c| format!("canvas {}", canvas_text(c)));
        let filters = self.filters.iter().map(Filter::to_string);
        canvas.into_iter().chain(filters).collect::<Vec<_>>().join(" and ")
    }
}

/// `TYPE` or `TYPE:ACTION`.
#[must_use]
pub fn canvas_text(canvas: &CanvasFilter) -> String {
    match &canvas.action {
        Some(action) => format!("{}:{action}", canvas.canvas_type),
        None => canvas.canvas_type.clone(),
    }
}

/// Whether a line means conditions: its first word is a column, or an operator follows it.
fn looks_like_conditions(entity: Entity, line: &str) -> bool {
    let line = line.trim();
    let end = line.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(line.len());
    let (word, rest) = (&line[..end], line[end..].trim_start());
    let operator = rest.starts_with(['=', '!', '<', '>', '~']);
    let has = rest.strip_prefix("has").is_some_and(|r| r.is_empty() || r.starts_with(' '));
    let known = entity.column(word).is_some();
    canvas_part(entity, line).is_some() || (operator && !word.is_empty()) || (known && (has || rest.is_empty()))
}

fn canvas_part(entity: Entity, part: &str) -> Option<&str> {
    let rest = part.trim().strip_prefix("canvas")?;
    (entity == Entity::Episode && (rest.is_empty() || rest.starts_with(' '))).then(|| rest.trim())
}

/// The parts between ` and `, outside of quotes.
fn split(line: &str) -> Vec<&str> {
    let (mut parts, mut start, mut quote) = (Vec::new(), 0, None);
    for (at, c) in line.char_indices() {
        match quote {
            Some(open) if c == open => quote = None,
            Some(_) => {}
            None if c == '\'' || c == '"' => quote = Some(c),
            None => {
                let joint = line.get(at..at + 5).is_some_and(|s| s.eq_ignore_ascii_case(" and "));
                if joint && at >= start {
                    parts.push(&line[start..at]);
                    start = at + 5;
                }
            }
        }
    }
    parts.push(line.get(start..).unwrap_or_default());
    parts
}

/// What may stand where the cursor is: the word being written (to be replaced) and its completions, best first.
#[must_use]
pub fn completions(entity: Entity, before_cursor: &str) -> (String, Vec<String>) {
    let part = split(before_cursor).last().copied().unwrap_or_default().trim_start();
    let words: Vec<&str> = part.split_whitespace().collect();
    let ended = part.ends_with(' ') || part.is_empty();
    match (words.as_slice(), ended) {
        ([], _) => (String::new(), column_names(entity, "")),
        ([word], false) if !word.contains(['=', '<', '>', '~', '!']) => {
            ((*word).to_owned(), column_names(entity, word))
        }
        ([word], true) => (String::new(), operators(entity, word)),
        _ => (String::new(), Vec::new()),
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
    use crate::memory::ValueKind;
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
        Conditions::parse(Entity::Episode, line, now())
    }

    #[test]
    fn a_line_holds_several_conditions() {
        let conditions = parse("outcome = failure and title ~ 'salt and pepper' and canvas sheets:present").unwrap();
        assert_eq!(conditions.filters.len(), 2);
        assert_eq!(conditions.canvas.as_ref().map(canvas_text).as_deref(), Some("sheets:present"));
        assert_eq!(parse(&conditions.line()).unwrap(), conditions);
    }

    #[test]
    fn plain_words_search_the_title() {
        let conditions = parse("quarterly report and more").unwrap();
        assert_eq!(conditions.line(), "title ~ 'quarterly report and more'");
        assert!(parse("  ").unwrap().is_empty());
    }

    #[test]
    fn a_mistake_is_told() {
        assert!(parse("outcom = failure").unwrap_err().contains("outcome"));
        assert!(parse("utility > high").is_err());
        assert!(parse("outcome").is_err());
        assert!(parse("canvas").is_err());
    }

    #[test]
    fn columns_and_operators_are_completed() {
        assert_eq!(completions(Entity::Episode, "outcome = failure and ut").1[0], "utility");
        assert_eq!(completions(Entity::Episode, "tags ").1[0], "has");
        assert!(completions(Entity::Episode, "outcome = fa").1.is_empty());
    }
}
