//! `replay`: the history of a topic.

use std::io::{self, Write};

use serde_json::json;

use super::recall::{print_notes, vector_of};
use super::recalled::{HeadValue, RecalledRows};
use super::{CommandFailure, Format, Session, hints, output};
use crate::lab::recall::{RowInContext, RowsInContext};
use crate::lab::{self, replay::TopicReplay};
use crate::memory::{Entity, agreeing};
use crate::recall::context as text;
use crate::recall::rank::{self, RankedRow};
use crate::ui::text::SafeText;

/// Characters of a line about an episode.
const LINE: usize = 200;

/// `replay`.
pub async fn run(session: &Session<'_>, topic: &str, agent: Option<&str>, limit: usize) -> Result<(), CommandFailure> {
    let store = session.store().await?;
    store.sources_of(Entity::Episode)?;
    let (vector, note) = vector_of(session, &store, Entity::Episode, topic).await?;
    let found = lab::replay::replay(&store, topic, vector.as_deref(), agent, limit).await?;
    if found.rows.is_empty() {
        hints::options(session, &store, Entity::Episode, &[("topic", Some(topic)), ("agent_id", agent)]).await;
    }
    let TopicReplay { rows, used, candidates } = found;
    let limited = (limit > rank::MOST_ROWS).then(rank::limited);
    let notes: Vec<String> = note.into_iter().chain(limited).collect();
    let count = rows.len();
    let mut rows = RecalledRows::new(session, &store, RowsInContext::new(&store, rows, (agent, None)));
    if session.format() != Format::Table {
        let query = json!({ "query": {
            "topic": topic, "agent": agent, "limit": limit, "used": used, "candidates": candidates,
            "relevance_above": crate::recall::sequence::RELEVANT, "notes": notes,
        }});
        return rows.print(head, query).await;
    }
    let mut told = Vec::new();
    writeln!(told, "{} of {} by {used}", agreeing(count, "{#} {episode|episodes}"), SafeText::new(topic))?;
    while let Some(row) = rows.next().await? {
        let RowInContext { ranked, around } = row;
        let (canvas, feedback) = rows.told(around, LINE * 4).await?;
        let around = [("feedback", text::feedback_line(&feedback)), ("canvas", text::canvas_line(&canvas))];
        lines(&mut told, &ranked, &around)?;
    }
    print_notes(&mut told, &notes)?;
    output::piped(|out| out.write_all(&told))
}

/// Writes the lines about an episode.
fn lines(out: &mut Vec<u8>, ranked: &RankedRow, around: &[(&str, String)]) -> io::Result<()> {
    let row = &ranked.row;
    let text = |column: &str| row.text(column).unwrap_or("·").to_owned();
    let date = text("started_at").get(..10).unwrap_or("·").to_owned();
    let parent =
        row.text("parent_id").filter(|id| !id.is_empty()).map(|p| format!(" (continues {p})")).unwrap_or_default();
    let line = format!("{date}  {:.3}  {}  {}{parent}", ranked.score.total, row.id(), text("title"));
    writeln!(out, "{}", SafeText::new(&line))?;
    if let Some(summary) = row.text("summary") {
        writeln!(out, "            {}", SafeText::limited(summary, LINE))?;
    }
    let tags = row.list("tags").join(", ");
    writeln!(out, "{}", SafeText::new(&format!("            outcome {}; tags {tags}", text("outcome"))))?;
    around.iter().try_for_each(|(name, words)| writeln!(out, "            {name}: {}", SafeText::limited(words, LINE)))
}

fn head(ranked: &RankedRow) -> Vec<(&'static str, HeadValue<'_>)> {
    let row = &ranked.row;
    let columns = row.entity.columns().iter().enumerate();
    let mut members: Vec<_> = columns.map(|(at, column)| (column.name, HeadValue::Part(row.part(at)))).collect();
    let mut add = |name, value| members.push((name, HeadValue::Known(value)));
    if !row.problems.is_empty() {
        add("problems", json!(row.problems));
    }
    add("relevance", json!(ranked.score.total));
    add("terms", json!(ranked.score.terms));
    members
}
