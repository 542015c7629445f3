//! The text that an agent gets from a recall: Context / Actions / Outcome / Reward of each case within a token budget,
//! lessons of similar episodes; for every episode what its canvas showed and what users said about it.

use std::collections::HashMap;

use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::features::{all_text, asked_text};
use crate::memory::digest::{Digest, digest};
use crate::memory::feedback::correction;
use crate::memory::json::{JsonPart, members, read};
use crate::memory::{Entity, Row};

/// Characters of a token: the usual rough count.
pub const CHARACTERS_A_TOKEN: usize = 4;
/// Default token budget of the whole text (ours).
pub const TOKENS: usize = 1_000;

/// A recalled row with its context.
#[derive(Debug, Clone, Copy)]
pub struct ContextRow<'a> {
    /// The row.
    pub row: &'a Row,
    /// Canvas events of an episode.
    pub canvas: &'a ToldRows,
    /// Feedback on an episode.
    pub feedback: &'a ToldRows,
}

/// Canvas events of an episode, or feedback on it, as far as the beginning of a line shows them.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ToldRows {
    /// Rows in time order, each with the number of equal ones; only shown values are kept.
    pub rows: Vec<(Row, usize)>,
    /// Number of all rows.
    pub count: usize,
}

impl ToldRows {
    /// Takes rows in time order, for a line of at most `room` characters.
    pub fn of(rows: &[Row], room: usize) -> Self {
        let mut told = ToldCollector::new(room);
        rows.iter().for_each(|row| told.add(row));
        told.close()
    }
}

/// Collects rows in time order for a line of limited length.
#[derive(Debug)]
pub struct ToldCollector {
    room: usize,
    /// Characters of counted words, and of corrections.
    told: (usize, usize),
    places: HashMap<String, usize>,
    rows: ToldRows,
}

impl ToldCollector {
    /// None yet.
    pub fn new(room: usize) -> Self {
        ToldCollector { room, told: (0, 0), places: HashMap::new(), rows: ToldRows::default() }
    }

    /// Adds the next row. Text beyond the limit is not kept.
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
    pub fn close(self) -> ToldRows {
        self.rows
    }
}

/// Most characters of a kind, which determines its presentation.
const KIND: usize = 32;

/// A row with only the values shown on a line, with at most some characters of each text.
fn told_of(row: &Row, most: usize) -> Row {
    let columns: &[&str] = match row.entity {
        Entity::Feedback => &["kind", "rating", "correction"],
        _ => &["canvas_type", "component_type", "component_name", "action"],
    };
    let mut told = Row::empty(row.entity);
    for column in columns {
        let value = match row.get(column) {
            Value::String(text) => {
                // Leading blanks are not shown, and must not use up the limit.
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
    /// Tokens per row; `None` means an equal share.
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
    /// The parts of the text, in the same order.
    #[serde(skip)]
    pub parts: Vec<String>,
    /// Rows that were cut to fit.
    pub cut: Vec<String>,
    /// Rows that did not fit.
    pub omitted: Vec<String>,
}

/// Tokens of a text, roughly: a quarter of its characters, rounded up.
pub fn tokens(text: &str) -> usize {
    text.chars().count().div_ceil(CHARACTERS_A_TOKEN)
}

/// The text of recalled rows, in order: as lessons if `lessons` is set, otherwise a snippet per row.
pub fn context(rows: &[ContextRow<'_>], budget: Budget, lessons: bool) -> RecallContext {
    let mut writer = ContextWriter::new(rows.len(), budget, lessons);
    rows.iter().for_each(|told| writer.add(told));
    writer.close()
}

impl Budget {
    /// Characters of the whole text.
    pub fn room(self) -> usize {
        self.tokens.saturating_mul(CHARACTERS_A_TOKEN)
    }
}

/// Writes the text of recalled rows one by one.
#[derive(Debug)]
pub struct ContextWriter {
    budget: Budget,
    lessons: bool,
    /// Total number of rows, and of those added.
    rows: (usize, usize),
    made: RecallContext,
}

impl ContextWriter {
    /// Begins the text for a number of rows.
    pub fn new(rows: usize, budget: Budget, lessons: bool) -> Self {
        let text =
            if rows > 0 { cut(&Begun::of(heading(lessons), usize::MAX), budget.room()).0 } else { String::new() };
        let made = RecallContext { text, tokens: 0, rows: vec![], parts: vec![], cut: vec![], omitted: vec![] };
        ContextWriter { budget, lessons, rows: (rows, 0), made }
    }

    /// Adds the next row.
    pub fn add(&mut self, told: &ContextRow<'_>) {
        self.add_text(&ContextText::of(told, self.lessons, self.budget.room()));
    }

    /// Adds the text of the next row, made for this budget.
    pub fn add_text(&mut self, told: &ContextText) {
        let (made, (rows, before)) = (&mut self.made, self.rows);
        self.rows.1 += 1;
        let left = self.budget.room().saturating_sub(made.text.chars().count());
        let share = match self.budget.per_row {
            Some(tokens) => tokens.saturating_mul(CHARACTERS_A_TOKEN),
            None => left / rows.saturating_sub(before).max(1),
        };
        let (part, was_cut) = fitted(&told.behind(before + 1, self.lessons), &told.lines, share.min(left));
        if part.trim().chars().count() < 8 {
            made.omitted.push(told.id.clone());
            return;
        }
        if was_cut {
            made.cut.push(told.id.clone());
        }
        made.rows.push(told.id.clone());
        made.text.push_str(&part);
        made.parts.push(part.trim_start().to_owned());
    }

    /// The text.
    pub fn close(self) -> RecallContext {
        RecallContext { tokens: tokens(&self.made.text), ..self.made }
    }
}

/// The first line of a text of recalled rows.
pub fn heading(lessons: bool) -> &'static str {
    if lessons { "Lessons from past similar situations:" } else { "Relevant past experience:" }
}

/// The beginning of a text, with the total number of characters.
#[derive(Debug, Clone)]
struct Begun {
    text: String,
    characters: usize,
}

impl Begun {
    /// Keeps at most `room` characters.
    fn of(text: &str, room: usize) -> Self {
        let end = text.char_indices().nth(room).map_or(text.len(), |(end, _)| end);
        Begun { text: text[..end].to_owned(), characters: text.chars().count() }
    }
}

/// The text of a recalled row, limited to what fits in a budget.
#[derive(Debug, Clone)]
pub struct ContextText {
    id: String,
    /// Text after the number of the row.
    text: Begun,
    /// Lines about its canvas and feedback.
    lines: Begun,
}

impl ContextText {
    /// The text of a row, for a budget of `room` characters.
    pub fn of(told: &ContextRow<'_>, lessons: bool, room: usize) -> Self {
        let text = if lessons { lesson(told.row) } else { snippet(told.row) };
        let lines = Begun::of(&around(told, indent(lessons)), room);
        ContextText { id: told.row.id().to_owned(), text: Begun::of(&text, room), lines }
    }

    /// The text with its number.
    fn behind(&self, number: usize, lessons: bool) -> Begun {
        let head = if lessons { format!("\n\n{number}") } else { format!("\n\nCase {number}") };
        Begun { characters: head.chars().count() + self.text.characters, text: head + &self.text.text }
    }

    /// Characters of the whole text with its number, without the lines about canvas and feedback.
    pub fn characters(&self, number: usize, lessons: bool) -> usize {
        self.behind(number, lessons).characters
    }
}

/// Measures the complete line about the canvas of an episode, or its feedback, without holding rows.
#[derive(Debug, Default)]
pub struct LineLength {
    /// Number and characters of corrections.
    corrections: (usize, usize),
    /// Characters of the distinct words, and how often they occur.
    words: HashMap<Digest, (usize, usize)>,
}

impl LineLength {
    /// Takes a row.
    pub fn add(&mut self, row: &Row) {
        let row = told_of(row, usize::MAX);
        if let Some(words) = correction(&row) {
            self.corrections.0 += 1;
            self.corrections.1 += corrected(words).chars().count();
        }
        if let Some(words) = counted_words(&row) {
            self.words.entry(digest(&words)).or_insert_with(|| (words.chars().count(), 0)).1 += 1;
        }
    }

    fn characters(&self) -> usize {
        let told = self.words.values().map(|(characters, times)| characters + times_of(*times).len());
        let (parts, characters) = (self.corrections.0 + self.words.len(), self.corrections.1 + told.sum::<usize>());
        if parts == 0 { NONE_RECORDED.len() } else { characters + SEPARATOR.len() * (parts - 1) }
    }

    /// Characters of the lines about feedback and canvas of an episode.
    pub fn lines(feedback: &LineLength, canvas: &LineLength, lessons: bool) -> usize {
        around_lines("", "", indent(lessons)).chars().count() + feedback.characters() + canvas.characters()
    }
}

/// The first `room` characters, the last one an ellipsis if it was cut.
fn cut(begun: &Begun, room: usize) -> (String, bool) {
    if begun.characters <= room {
        return (begun.text.clone(), false);
    }
    let kept: String = begun.text.chars().take(room.saturating_sub(1)).collect();
    (if room == 0 { kept } else { kept + "…" }, true)
}

/// A row's text followed by the lines about its canvas and feedback. If it is too long, those lines keep up to half of
/// the space: corrections matter more than the end of a long text.
fn fitted(text: &Begun, lines: &Begun, room: usize) -> (String, bool) {
    let (long, behind) = (text.characters, lines.characters);
    if long + behind <= room {
        return (format!("{}{}", text.text, lines.text), false);
    }
    let (lines, _) = cut(lines, behind.min((room / 2).max(room.saturating_sub(long))));
    let (text, _) = cut(text, room - lines.chars().count());
    (text + &lines, true)
}

fn indent(lessons: bool) -> &'static str {
    if lessons { "   " } else { "" }
}

/// The lines about an episode's canvas and feedback; empty for other rows.
fn around(told: &ContextRow<'_>, indent: &str) -> String {
    if told.row.entity != Entity::Episode {
        return String::new();
    }
    around_lines(&feedback_line(told.feedback), &canvas_line(told.canvas), indent)
}

fn around_lines(feedback: &str, canvas: &str, indent: &str) -> String {
    format!("\n{indent}Feedback: {feedback}\n{indent}Canvas: {canvas}")
}

/// Summarizes in one line what users said about an episode: corrections first, then thumbs and ratings.
pub fn feedback_line(feedback: &ToldRows) -> String {
    let corrections = feedback.rows.iter().filter_map(|(row, _)| correction(row));
    listed(&corrections.map(corrected).chain(counted(feedback)).collect::<Vec<_>>())
}

fn corrected(words: &str) -> String {
    format!("corrected: \"{words}\"")
}

/// Summarizes in one line what happened on an episode's canvas: each kind of event once, in order, with its number.
pub fn canvas_line(canvas: &ToldRows) -> String {
    listed(&counted(canvas))
}

/// The words of a row that are shown once, with their number.
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

/// Each text once, in the order of its first occurrence, with the number of occurrences if more than one.
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
    seen.into_iter().map(|(text, times)| text + &times_of(times)).collect()
}

/// The number of occurrences as text, if more than one.
fn times_of(times: usize) -> String {
    if times > 1 { format!(" x{times}") } else { String::new() }
}

const NONE_RECORDED: &str = "none recorded";
const UNKNOWN_TIME: &str = "an unknown time";
const SEPARATOR: &str = "; ";

fn listed(parts: &[String]) -> String {
    if parts.is_empty() { NONE_RECORDED.to_owned() } else { parts.join(SEPARATOR) }
}

/// Context / Actions / Outcome / Reward of a case, an episode or a memory, after its number.
fn snippet(row: &Row) -> String {
    let (context, actions, outcome, reward) = match row.entity {
        Entity::Case => {
            let reward = row.number("reward").map_or("unknown".to_owned(), |r| format!("{r:.2}"));
            (asked_text(row.json("prompt")), steps(row.json("plan")), row.text("outcome").map(str::to_owned), reward)
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
            (format!("{title}\n{told}"), names(row.json("actions")), outcome, feedback)
        }
    };
    let actions = if actions.is_empty() { "none recorded".to_owned() } else { actions.join("; ") };
    format!(
        "\nContext: {}\nActions: {actions}\nOutcome: {}\nReward: {reward}",
        context.trim(),
        outcome.as_deref().unwrap_or("unknown")
    )
}

/// A lesson, after its number: for an episode its time, observation, actions, result and insight; for a memory its
/// time, title and text. Missing values are marked as such, never made up.
fn lesson(row: &Row) -> String {
    if row.entity == Entity::Memory {
        let kept = |column: &str| row.text(column).filter(|text| !text.trim().is_empty());
        let title = kept("title").map(|title| format!("\n   Title: {title}")).unwrap_or_default();
        let (when, text) = (kept("created_at").unwrap_or(UNKNOWN_TIME), kept("text").unwrap_or(NONE_RECORDED));
        return format!(". Memory from {when}{title}\n   Text: {text}");
    }
    let text = |column: &str| match row.json(column) {
        JsonPart::Value(Value::Null) => None,
        JsonPart::Value(Value::String(text)) => Some(text.clone()),
        other => Some(other.to_string()),
    };
    let observation = ["observation", "summary", "title"].iter().find_map(|c| text(c));
    let actions = names(row.json("actions"));
    format!(
        ". Episode from {}\n   Observation: {}\n   Actions: {}\n   Result: {}\n   Key insight: {}",
        row.text("started_at").unwrap_or(UNKNOWN_TIME),
        observation.as_deref().unwrap_or(NONE_RECORDED),
        if actions.is_empty() { NONE_RECORDED.to_owned() } else { actions.join(", ") },
        text("result").or_else(|| text("outcome")).as_deref().unwrap_or(NONE_RECORDED),
        text("insight").as_deref().unwrap_or(NONE_RECORDED),
    )
}

/// The steps of a plan: their descriptions in order.
fn steps(plan: JsonPart<'_>) -> Vec<String> {
    let told = |steps: &mut dyn Iterator<Item = String>| steps.filter(|text| !text.is_empty()).collect();
    let found = match plan {
        JsonPart::Value(plan) => ["steps", "plan"].iter().find_map(|key| plan.get(*key)).unwrap_or(plan),
        JsonPart::Document(text) => {
            let members = members(text).unwrap_or_default();
            let member = |key: &&str| members.iter().rev().find(|(name, _)| name == key);
            let found = ["steps", "plan"].iter().find_map(member).map_or(text, |(_, member)| member.get());
            match items(found) {
                Some(steps) => return told(&mut steps.iter().map(|step| step_of(&read(step.get()).value))),
                None => &read(found).value,
            }
        }
    };
    match found {
        Value::Array(steps) => told(&mut steps.iter().map(step_of)),
        Value::Null => Vec::new(),
        other => vec![all_text(other.into())],
    }
}

fn step_of(step: &Value) -> String {
    match step.get("description").or_else(|| step.get("tool")) {
        Some(Value::String(text)) => text.clone(),
        _ => all_text(step.into()),
    }
}

/// The items of a JSON list, each as its text; `None` if the text is not a list.
fn items(text: &str) -> Option<Vec<&RawValue>> {
    serde_json::from_str(text).ok()
}

/// The names of actions in order. A run may have very many, so a long document is read item by item.
fn names(actions: JsonPart<'_>) -> Vec<String> {
    let name = |action: &Value| match action {
        Value::String(text) => text.clone(),
        _ => action.get("step_name").and_then(Value::as_str).map_or_else(|| all_text(action.into()), str::to_owned),
    };
    let names: Vec<String> = match actions {
        JsonPart::Value(actions) => actions.as_array().into_iter().flatten().map(name).collect(),
        JsonPart::Document(text) => {
            items(text).into_iter().flatten().map(|action| name(&read(action.get()).value)).collect()
        }
    };
    names.into_iter().filter(|name| !name.is_empty()).collect()
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
        let row = Row::with(Entity::Episode, [("id", json!("e")), ("title", json!("long ".repeat(400)))]);
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

    #[test]
    fn the_lesson_of_a_memory_is_its_text() {
        let mut row = Row::empty(Entity::Memory);
        row.set("created_at", json!("2026-03-06T00:00:00Z"));
        row.set("text", json!("Coach 21 is quiet on weekdays."));
        let told = |row: &Row| context(&[bare(row)], Budget { tokens: 1000, per_row: None }, true).text;
        let text = "\n   Text: Coach 21 is quiet on weekdays.";
        assert!(told(&row).ends_with(&format!("\n\n1. Memory from 2026-03-06T00:00:00Z{text}")), "{}", told(&row));
        row.set("title", json!("Quiet coaches"));
        assert!(told(&row).ends_with(&format!("\n   Title: Quiet coaches{text}")), "{}", told(&row));
    }

    #[test]
    fn a_long_document_tells_the_same_as_its_value() {
        let actions = json!([{"step_name": "check", "result": 1}, "sent", {"said": "well"}, {"step_name": ""}, 7]);
        let steps_in = [
            json!({"plan": "x", "steps": [{"description": "look"}, {"tool": "send"}, {"note": ["a", "b"]}]}),
            json!({"plan": [{"tool": "send"}]}),
            json!({"steps": {"steps": ["a"]}, "other": 1}),
            json!({"steps": null}),
            json!([{"description": "look"}]),
            json!({"note": "only this"}),
        ];
        let text = actions.to_string();
        assert_eq!(names(JsonPart::Document(&text)), names((&actions).into()));
        assert_eq!(names((&actions).into()), ["check", "sent", "well"]);
        for plan in &steps_in {
            let text = plan.to_string();
            assert_eq!(steps(JsonPart::Document(&text)), steps(plan.into()), "{text}");
        }
        assert_eq!(steps((&steps_in[0]).into()), ["look", "send", "a\nb"]);
    }

    proptest! {
        #[test]
        fn a_text_of_which_only_the_room_is_kept_is_the_same(
            texts in prop::collection::vec(".{0,90}", 1..4), room in 0_usize..40, each in prop::option::of(0_usize..40), lessons: bool
        ) {
            let rows: Vec<Row> = texts.iter().enumerate().map(|(i, t)| case(&i.to_string(), t)).collect();
            let budget = Budget { tokens: room, per_row: each };
            let mut writer = ContextWriter::new(rows.len(), budget, lessons);
            for row in &rows {
                writer.add_text(&ContextText::of(&bare(row), lessons, usize::MAX));
            }
            let rows: Vec<ContextRow<'_>> = rows.iter().map(bare).collect();
            prop_assert_eq!(context(&rows, budget, lessons), writer.close());
            let whole = context(&rows, Budget { tokens: usize::MAX / 8, per_row: None }, lessons);
            let told = rows.iter().zip(1..).map(|(row, number)| ContextText::of(row, lessons, 0).characters(number, lessons));
            prop_assert_eq!(heading(lessons).chars().count() + told.sum::<usize>(), whole.text.chars().count());
        }

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
                let mut length = LineLength::default();
                rows.iter().for_each(|row| length.add(row));
                prop_assert_eq!(length.characters(), line(&all).chars().count());
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
