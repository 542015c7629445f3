//! `replay`: the history of a topic.

use serde_json::{Value, json};

use super::context::Session;
use super::document::RowsDocument;
use super::failure::CommandFailure;
use super::options::Format;
use super::recall::{print_notes, vector_of};
use super::{hints, output};
use crate::lab;
use crate::memory::query::EpisodeContext;
use crate::memory::{Entity, Row};
use crate::recall::context as text;
use crate::recall::score::Score;
use crate::ui::text::SafeText;

/// `replay`.
pub async fn run(session: &Session<'_>, topic: &str, agent: Option<&str>, limit: usize) -> Result<(), CommandFailure> {
    let store = session.store().await?;
    store.sources_of(Entity::Episode)?;
    let (vector, note) = vector_of(session, &store, Entity::Episode, topic).await?;
    let found = lab::replay::replay(&store, topic, vector.as_deref(), agent, limit).await?;
    if found.rows.is_empty() {
        hints::options(&store, Entity::Episode, &[("topic", Some(topic)), ("agent_id", agent)]).await;
    }
    let (used, candidates) = (found.used, found.candidates);
    let (episodes, scores): (Vec<Row>, Vec<Score>) = found.rows.into_iter().map(|r| (r.row, r.score)).unzip();
    let contexts = store.contexts().recalled(episodes).await?;
    let mut rows: Vec<Replayed> = scores.into_iter().zip(contexts).collect();
    if let Some(mask) = session.mask() {
        rows.iter_mut().flat_map(|(_, context)| context.rows_mut()).for_each(|row| mask.row(row));
    }
    let notes: Vec<String> = note.into_iter().collect();
    match session.format() {
        Format::Json => {
            let mut document = RowsDocument::begin();
            document.rows(rows.iter().map(replayed_json))?;
            document.end(&json!({ "query": {
                "topic": topic, "agent": agent, "limit": limit, "used": used, "candidates": candidates,
                "relevance_above": crate::recall::sequence::RELEVANT, "notes": notes,
            }}))
        }
        Format::Jsonl => output::piped(|out| rows.iter().try_for_each(|r| output::json_line(out, &replayed_json(r)))),
        Format::Csv => output::csv_table(&rows.iter().map(replayed_json).collect::<Vec<_>>()),
        Format::Table => output::piped(|out| {
            writeln!(out, "{} episodes of {} by {}", rows.len(), SafeText::new(topic), used)?;
            for (score, context) in &rows {
                let row = &context.episode;
                let text = |column: &str| row.text(column).unwrap_or("·").to_owned();
                let date = text("started_at").get(..10).unwrap_or("·").to_owned();
                let parent = row.text("parent_id").map(|p| format!(" (continues {p})")).unwrap_or_default();
                let line = format!("{date}  {:.3}  {}  {}{parent}", score.total, row.id(), text("title"));
                writeln!(out, "{}", SafeText::new(&line))?;
                if let Some(summary) = row.text("summary") {
                    writeln!(out, "            {}", SafeText::limited(summary, 200))?;
                }
                let tags = row.list("tags").join(", ");
                let line = format!("            outcome {}; tags {tags}", text("outcome"));
                writeln!(out, "{}", SafeText::new(&line))?;
                for (name, words) in [
                    ("feedback", text::feedback_line(&context.feedback)),
                    ("canvas", text::canvas_line(&context.canvas)),
                ] {
                    writeln!(out, "            {name}: {}", SafeText::limited(&words, 200))?;
                }
            }
            print_notes(out, &notes)
        }),
    }
}

/// A replayed episode with its context, and its relevance.
type Replayed = (Score, EpisodeContext);

fn replayed_json((score, context): &Replayed) -> Value {
    let all = |rows: &[Row]| rows.iter().map(Row::to_json).collect::<Vec<_>>();
    let mut value = context.episode.to_json();
    value["relevance"] = json!(score.total);
    value["terms"] = json!(score.terms);
    value["canvas_context"] = json!(all(&context.canvas));
    value["feedback_context"] = json!(all(&context.feedback));
    value["findings"] = json!(context.findings);
    value
}
