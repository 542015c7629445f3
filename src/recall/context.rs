//! The text that an agent would get of what was recalled: Context / Actions / Outcome / Reward of each case within a
//! token budget, lessons of similar episodes; with every episode what was shown on the canvas and what users said about it.

use std::collections::HashMap;

use serde::Serialize;
use serde_json::Value;

use super::features::{all_text, asked_text};
use crate::memory::{Entity, Row};

/// Characters of a token: the usual rough count.
pub const CHARACTERS_A_TOKEN: usize = 4;
/// Tokens of the whole text unless told otherwise (ours).
pub const TOKENS: usize = 1_000;

/// A recalled row with what hangs on it.
#[derive(Debug, Clone, Copy)]
pub struct ContextRow<'a> {
    /// The row.
    pub row: &'a Row,
    /// Canvas events of an episode.
    pub canvas: &'a ToldRows,
    /// Feedback on an episode.
    pub feedback: &'a ToldRows,
}

/// Canvas events of an episode, or feedback on it, as far as the beginning of a line tells them.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ToldRows {
    /// Rows in the order of time, each with the number of rows that tell the same; only what is told of them is there.
    pub rows: Vec<(Row, usize)>,
    /// Number of all rows.
    pub count: usize,
}

impl ToldRows {
    /// Rows in the order of time, for a line of which so many characters are read.
    #[must_use]
    pub fn of(rows: &[Row], room: usize) -> Self {
        let mut told = ToldCollector::new(room);
        rows.iter().for_each(|row| told.add(row));
        told.close()
    }
}

/// Collects rows in the order of time for a line of which so many characters are read.
#[derive(Debug)]
pub struct ToldCollector {
    room: usize,
    /// Characters of the words that are counted, and of corrections.
    told: (usize, usize),
    places: HashMap<String, usize>,
    rows: ToldRows,
}

impl ToldCollector {
    /// None yet.
    #[must_use]
    pub fn new(room: usize) -> Self {
        ToldCollector { room, told: (0, 0), places: HashMap::new(), rows: ToldRows::default() }
    }

    /// Takes the next row. What begins beyond the room is not kept.
    pub fn add(&mut self, row: &Row) {
        self.rows.count += 1;
        let mut row = told_of(row, self.room.saturating_add(1));
        let (words, corrected) = (counted_words(&row), correction(&row).map(|text| text.chars().count()));
        let corrected = corrected.filter(|_| self.told.1 <= self.room);
        let known = words.as_ref().and_then(|words| self.places.get(words)).copied();
        match (known, corrected) {
            (Some(at), None) => return self.rows.rows[at].1 += 1,
            (None, None) if words.is_none() || self.told.0 > self.room => return,
            _ => {}
        }
        match corrected {
            Some(characters) => self.told.1 += characters,
            None => row.set("correction", Value::Null),
        }
        if let Some(words) = words.filter(|_| known.is_none()) {
            self.told.0 += words.chars().count();
            self.places.insert(words, self.rows.rows.len());
        }
        self.rows.rows.push((row, 1));
    }

    /// The rows.
    #[must_use]
    pub fn close(self) -> ToldRows {
        self.rows
    }
}

/// Characters of a kind, which say how it is told.
const KIND: usize = 32;

/// A row with what a line tells of it, and no more than some characters of each text.
fn told_of(row: &Row, most: usize) -> Row {
    let columns: &[&str] = match row.entity {
        Entity::Feedback => &["kind", "rating", "correction"],
        _ => &["canvas_type", "component_type", "component_name", "action"],
    };
    let mut told = Row::empty(row.entity);
    for column in columns {
        let value = match row.get(column) {
            Value::String(text) => {
                // Blanks before it are not told, and must not take the room of what is.
                let (text, most) = match *column {
                    "correction" => (text.trim(), most),
                    "kind" => (&**text, most.max(KIND)),
                    _ => (text.trim_start(), most),
                };
                Value::from(text.chars().take(most).collect::<String>())
            }
            other => other.clone(),
        };
        told.set(column, value);
    }
    told
}

/// Limits on the length of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    /// Tokens in all.
    pub tokens: usize,
    /// Tokens of each row; none means an equal share.
    pub per_row: Option<usize>,
}

/// A text with its size.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RecallContext {
    /// The text.
    pub text: String,
    /// Tokens by the rough count of four characters each.
    pub tokens: usize,
    /// Rows in it.
    pub rows: Vec<String>,
    /// The part of each of them, in the same order.
    #[serde(skip)]
    pub parts: Vec<String>,
    /// Rows that were cut to fit.
    pub cut: Vec<String>,
    /// Rows that had no room.
    pub omitted: Vec<String>,
}

/// Tokens of a text, roughly: a quarter of its characters, rounded up.
#[must_use]
pub fn tokens(text: &str) -> usize {
    text.chars().count().div_ceil(CHARACTERS_A_TOKEN)
}

/// The text of recalled rows, in their order. Lessons where `lessons` is set, else a snippet a row.
#[must_use]
pub fn context(rows: &[ContextRow<'_>], budget: Budget, lessons: bool) -> RecallContext {
    let mut writer = ContextWriter::new(rows.len(), budget, lessons);
    rows.iter().for_each(|told| writer.add(told));
    writer.close()
}

impl Budget {
    /// Characters of the whole text.
    #[must_use]
    pub fn room(self) -> usize {
        self.tokens.saturating_mul(CHARACTERS_A_TOKEN)
    }
}

/// Writes the text of recalled rows one by one.
#[derive(Debug)]
pub struct ContextWriter {
    budget: Budget,
    lessons: bool,
    /// Rows in all, and those that were taken.
    rows: (usize, usize),
    made: RecallContext,
}

impl ContextWriter {
    /// Begins the text of so many rows.
    #[must_use]
    pub fn new(rows: usize, budget: Budget, lessons: bool) -> Self {
        let heading = if lessons { "Lessons from past similar situations:" } else { "Relevant past experience:" };
        let text = if rows > 0 { cut(heading, budget.room()).0 } else { String::new() };
        let made = RecallContext { text, tokens: 0, rows: vec![], parts: vec![], cut: vec![], omitted: vec![] };
        ContextWriter { budget, lessons, rows: (rows, 0), made }
    }

    /// Takes the next row.
    pub fn add(&mut self, told: &ContextRow<'_>) {
        let (row, made, (rows, before)) = (told.row, &mut self.made, self.rows);
        self.rows.1 += 1;
        let left = self.budget.room().saturating_sub(made.text.chars().count());
        let share = match self.budget.per_row {
            Some(tokens) => tokens.saturating_mul(CHARACTERS_A_TOKEN),
            None => left / rows.saturating_sub(before).max(1),
        };
        let whole = if self.lessons { lesson(before + 1, row) } else { snippet(before + 1, row) };
        let indent = if self.lessons { "   " } else { "" };
        let (part, was_cut) = fitted(&format!("\n\n{whole}"), &around(told, indent), share.min(left));
        if part.trim().chars().count() < 8 {
            made.omitted.push(row.id().to_owned());
            return;
        }
        if was_cut {
            made.cut.push(row.id().to_owned());
        }
        made.rows.push(row.id().to_owned());
        made.text.push_str(&part);
        made.parts.push(part.trim_start().to_owned());
    }

    /// The text.
    #[must_use]
    pub fn close(self) -> RecallContext {
        RecallContext { tokens: tokens(&self.made.text), ..self.made }
    }
}

/// The first `room` characters, the last one an ellipsis where something was cut.
fn cut(text: &str, room: usize) -> (String, bool) {
    if text.chars().count() <= room {
        return (text.to_owned(), false);
    }
    let kept: String = text.chars().take(room.saturating_sub(1)).collect();
    (if room == 0 { kept } else { kept + "…" }, true)
}

/// A row's text with the lines about its canvas and feedback behind it. Where it is too long, those lines keep up to half
/// of the room: what people corrected tells more than the end of a long text.
fn fitted(text: &str, lines: &str, room: usize) -> (String, bool) {
    let (long, behind) = (text.chars().count(), lines.chars().count());
    if long + behind <= room {
        return (format!("{text}{lines}"), false);
    }
    let (lines, _) = cut(lines, behind.min((room / 2).max(room.saturating_sub(long))));
    let (text, _) = cut(text, room - lines.chars().count());
    (text + &lines, true)
}

/// The lines about an episode's canvas and feedback; nothing for other rows.
fn around(told: &ContextRow<'_>, indent: &str) -> String {
    if told.row.entity != Entity::Episode {
        return String::new();
    }
    let (feedback, canvas) = (feedback_line(told.feedback), canvas_line(told.canvas));
    format!("\n{indent}Feedback: {feedback}\n{indent}Canvas: {canvas}")
}

/// Sums up in one line what users said about an episode: the words of their corrections first, then thumbs and ratings.
#[must_use]
pub fn feedback_line(feedback: &ToldRows) -> String {
    let corrections = feedback.rows.iter().filter_map(|(row, _)| correction(row));
    let corrections = corrections.map(|words| format!("corrected: \"{words}\""));
    listed(&corrections.chain(counted(feedback)).collect::<Vec<_>>(), "none recorded")
}

/// Sums up in one line what was done on an episode's canvas: each kind of event once, in order, with its number of
/// occurrences.
#[must_use]
pub fn canvas_line(canvas: &ToldRows) -> String {
    listed(&counted(canvas), "none recorded")
}

/// The words of a correction.
fn correction(row: &Row) -> Option<&str> {
    row.text("correction").map(str::trim).filter(|words| !words.is_empty())
}

/// The words of a row that are told once, with their number.
fn counted_words(row: &Row) -> Option<String> {
    if row.entity != Entity::Feedback {
        let on = ["canvas_type", "component_type", "component_name"].iter().filter_map(|column| row.text(column));
        let on: Vec<&str> = on.filter(|word| !word.is_empty()).collect();
        return Some(format!("{} {}", on.join("/"), row.text("action").unwrap_or("event")).trim().to_owned());
    }
    match (row.text("kind")?, row.get("rating").as_i64()) {
        ("correction", _) => None,
        ("rating", Some(rating)) => Some(format!("rated {rating}")),
        (kind, _) => Some(kind.to_owned()),
    }
}

/// Each text once, in the order in which it first occurs, with how often it occurs where that is more than once.
fn counted(rows: &ToldRows) -> Vec<String> {
    let (mut seen, mut places): (Vec<(String, usize)>, HashMap<String, usize>) = (Vec::new(), HashMap::new());
    for (row, times) in &rows.rows {
        let Some(text) = counted_words(row) else { continue };
        let at = *places.entry(text.clone()).or_insert(seen.len());
        if at == seen.len() {
            seen.push((text, 0));
        }
        seen[at].1 += times;
    }
    seen.into_iter().map(|(text, times)| if times > 1 { format!("{text} x{times}") } else { text }).collect()
}

fn listed(parts: &[String], nothing: &str) -> String {
    if parts.is_empty() { nothing.to_owned() } else { parts.join("; ") }
}

/// Context / Actions / Outcome / Reward of a case, an episode or a memory.
fn snippet(number: usize, row: &Row) -> String {
    let (context, actions, outcome, reward) = match row.entity {
        Entity::Case => {
            let reward = row.number("reward").map_or("unknown".to_owned(), |r| format!("{r:.2}"));
            (asked_text(row.json("prompt")), steps(row.get("plan")), row.text("outcome").map(str::to_owned), reward)
        }
        Entity::Memory => {
            let place = row.text("title").unwrap_or_default();
            let utility = row.number("utility").map_or("unknown".to_owned(), |u| format!("{u:.2}"));
            (format!("{place}\n{}", row.text("text").unwrap_or_default()), Vec::new(), None, utility)
        }
        _ => {
            let told = ["observation", "summary", "detail"].iter().find_map(|c| row.text(c)).unwrap_or_default();
            let feedback = row.number("feedback_score").map_or("unknown".to_owned(), |f| format!("feedback {f:+.2}"));
            let title = row.text("title").unwrap_or_default();
            let outcome = row.text("outcome").map(str::to_owned);
            (format!("{title}\n{told}"), names(row.get("actions")), outcome, feedback)
        }
    };
    let actions = if actions.is_empty() { "none recorded".to_owned() } else { actions.join("; ") };
    format!(
        "Case {number}\nContext: {}\nActions: {actions}\nOutcome: {}\nReward: {reward}",
        context.trim(),
        outcome.as_deref().unwrap_or("unknown")
    )
}

/// A lesson: when, observation, actions, result, insight. What is not recorded says so; nothing is made up.
fn lesson(number: usize, row: &Row) -> String {
    let text = |column: &str| match row.get(column) {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    };
    let observation = ["observation", "summary", "title"].iter().find_map(|c| text(c));
    let actions = names(row.get("actions"));
    format!(
        "{number}. Episode from {}\n   Observation: {}\n   Actions: {}\n   Result: {}\n   Key insight: {}",
        row.text("started_at").unwrap_or("an unknown time"),
        observation.as_deref().unwrap_or("none recorded"),
        if actions.is_empty() { "none recorded".to_owned() } else { actions.join(", ") },
        text("result").or_else(|| text("outcome")).as_deref().unwrap_or("none recorded"),
        text("insight").as_deref().unwrap_or("none recorded"),
    )
}

/// The steps of a plan: their descriptions in order.
fn steps(plan: &Value) -> Vec<String> {
    let found = ["steps", "plan"].iter().find_map(|key| plan.get(*key)).unwrap_or(plan);
    match found {
        Value::Array(steps) => steps
            .iter()
            .map(|step| match step.get("description").or_else(|| step.get("tool")) {
                Some(Value::String(text)) => text.clone(),
                _ => all_text(step.into()),
            })
            .filter(|text| !text.is_empty())
            .collect(),
        Value::Null => Vec::new(),
        other => vec![all_text(other.into())],
    }
}

fn names(actions: &Value) -> Vec<String> {
    let name = |action: &Value| match action {
        Value::String(text) => text.clone(),
        _ => action.get("step_name").and_then(Value::as_str).map_or_else(|| all_text(action.into()), str::to_owned),
    };
    actions.as_array().map(|items| items.iter().map(name).filter(|n| !n.is_empty()).collect()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn case(id: &str, message: &str) -> Row {
        let mut row = Row::empty(Entity::Case);
        row.set("id", json!(id));
        row.set("prompt", json!({"message": message, "systemPrompt": "be good"}));
        row.set("plan", json!({"steps": [{"description": "look"}, {"tool": "send"}]}));
        row.set("outcome", json!("success"));
        row.set("reward", json!(1.0));
        row
    }

    static NOTHING: ToldRows = ToldRows { rows: Vec::new(), count: 0 };

    fn bare(row: &Row) -> ContextRow<'_> {
        ContextRow { row, canvas: &NOTHING, feedback: &NOTHING }
    }

    #[test]
    fn an_episode_always_says_what_was_shown_and_said() {
        let mut row = Row::empty(Entity::Episode);
        row.set("id", json!("e"));
        row.set("title", json!("long ".repeat(400)));
        let event = |action: &str| {
            let mut event = Row::empty(Entity::CanvasEvent);
            event.set("canvas_type", json!("sheets"));
            event.set("component_type", json!("line_chart"));
            event.set("action", json!(action));
            event
        };
        let mut said = Row::empty(Entity::Feedback);
        said.set("kind", json!("thumbs_down"));
        said.set("correction", json!("row 14 counts twice"));
        let canvas = ToldRows::of(&[event("present"), event("close"), event("present")], 400);
        let feedback = ToldRows::of(&[said], 400);
        let told = [ContextRow { row: &row, canvas: &canvas, feedback: &feedback }];
        for (lessons, per_row) in [(false, None), (true, None), (false, Some(80))] {
            let made = context(&told, Budget { tokens: 100, per_row }, lessons);
            assert!(made.text.contains("Feedback: corrected: \"row 14 counts twice\"; thumbs_down"), "{}", made.text);
            assert!(
                made.text.contains("Canvas: sheets/line_chart present x2; sheets/line_chart close"),
                "{}",
                made.text
            );
            assert!(made.tokens <= 100 && made.cut == ["e"], "{made:?}");
        }
        let made = context(&[bare(&row)], Budget { tokens: 1000, per_row: None }, false);
        assert!(made.text.ends_with("Feedback: none recorded\nCanvas: none recorded"));
    }

    #[test]
    fn a_case_says_context_actions_outcome_and_reward() {
        let row = case("a", "clean the list");
        let made = context(&[bare(&row)], Budget { tokens: 1000, per_row: None }, false);
        assert!(
            made.text.ends_with("Case 1\nContext: clean the list\nActions: look; send\nOutcome: success\nReward: 1.00")
        );
        assert_eq!((made.tokens, made.cut.len(), made.rows.len()), (tokens(&made.text), 0, 1));
    }

    #[test]
    fn a_lesson_makes_nothing_up() {
        let mut row = Row::empty(Entity::Episode);
        row.set("observation", json!("asked for a refund"));
        row.set("actions", json!([{"step_name": "check"}]));
        let made = context(&[bare(&row)], Budget { tokens: 1000, per_row: None }, true);
        assert!(made.text.contains("Actions: check\n   Result: none recorded\n   Key insight: none recorded"));
    }

    proptest! {
        #[test]
        fn what_begins_beyond_the_room_is_not_kept_and_the_line_begins_the_same(
            said in prop::collection::vec((0_usize..4, prop::option::of("[a-c ]{0,9}"), 0_usize..3), 0..30), room in 0_usize..60
        ) {
            let row = |(kind, correction, action): &(usize, Option<String>, usize), entity: Entity| {
                let mut row = Row::empty(entity);
                if entity == Entity::Feedback {
                    row.set("kind", json!(["thumbs_up", "correction", "rating", "praise"][*kind]));
                    row.set("rating", json!(action));
                    row.set("correction", json!(correction));
                } else {
                    row.set("action", json!(["present", "close", "submit"][*action]));
                    row.set("canvas_type", json!(correction));
                }
                row
            };
            for (entity, line) in [(Entity::Feedback, feedback_line as fn(&ToldRows) -> String), (Entity::CanvasEvent, canvas_line)] {
                let rows: Vec<Row> = said.iter().map(|said| row(said, entity)).collect();
                let (all, few) = (ToldRows::of(&rows, usize::MAX), ToldRows::of(&rows, room));
                let begins = |told: &ToldRows| line(told).chars().take(room).collect::<String>();
                prop_assert_eq!(begins(&all), begins(&few));
                prop_assert!(few.count == rows.len() && few.rows.len() <= room * 2 + 4);
            }
        }

        #[test]
        fn no_text_exceeds_its_budget(texts in prop::collection::vec(".{0,300}", 0..6), all in 0usize..300, each in prop::option::of(0usize..90)) {
            let rows: Vec<Row> = texts.iter().enumerate().map(|(i, t)| case(&i.to_string(), t)).collect();
            let rows: Vec<ContextRow<'_>> = rows.iter().map(bare).collect();
            let made = context(&rows, Budget { tokens: all, per_row: each }, false);
            prop_assert!(tokens(&made.text) <= all && made.tokens <= all);
            prop_assert_eq!(made.rows.len() + made.omitted.len(), rows.len());
        }
    }
}
