//! `recall`, `context`, `replay`, and parent suggestions.

// Help texts are shown as they stand: backticks would be.
#![allow(clippy::doc_markdown)]

use std::io::Write;

use chrono::Utc;
use clap::Subcommand;
use serde_json::{Value, json};

use super::context::Session;
use super::failure::CommandFailure;
use super::options::Format;
use super::recall_args::RecallArgs;
use super::{hints, output};
use crate::change::what_if::KeptQuestion;
use crate::config::queries;
use crate::lab::embed;
use crate::lab::{self, RecallAnswer, RecalledItem, parents as lab_parents};
use crate::memory::invocation::quoted;
use crate::memory::nearest::unknown;
use crate::memory::query::EpisodeContext;
use crate::memory::{Entity, Row, time};
use crate::recall::context::{self as text, Budget, ContextRow};
use crate::recall::inquiry::{Inquiry, SavedQuestion};
use crate::recall::rank::{RankedRow, Ranking};
use crate::store::Store;
use crate::ui::text::SafeText;

/// What to do with kept questions.
#[derive(Debug, Clone, Subcommand)]
pub enum QueriesCommand {
    /// Forget one.
    Forget {
        /// Its name.
        name: String,
    },
}

/// `recall`.
pub async fn recall(session: &Session<'_>, args: &RecallArgs) -> Result<(), CommandFailure> {
    let store = session.store().await?;
    let answer = answer(session, &store, args).await?;
    match session.format() {
        Format::Table => output::piped(|out| print_answer(out, &answer)),
        Format::Json => output::json(&answer.to_json()),
        Format::Jsonl => {
            warn_notes(&answer.notes);
            output::piped(|out| answer.rows.iter().try_for_each(|item| output::json_line(out, &item.to_json())))
        }
        Format::Csv => {
            warn_notes(&answer.notes);
            output::csv_table(&answer.rows.iter().map(RecalledItem::to_json).collect::<Vec<_>>())
        }
    }
}

/// `context`.
pub async fn context(
    session: &Session<'_>,
    args: &RecallArgs,
    tokens: usize,
    per_row: Option<usize>,
) -> Result<(), CommandFailure> {
    let store = session.store().await?;
    let answer = answer(session, &store, args).await?;
    let rows: Vec<ContextRow<'_>> = answer.rows.iter().map(RecalledItem::told).collect();
    let lessons = answer.request.ranking == Ranking::Similar;
    let made = text::context(&rows, Budget { tokens, per_row }, lessons);
    if session.format() == Format::Table {
        return output::piped(|out| {
            SafeText::block(&made.text).iter().try_for_each(|line| writeln!(out, "{line}"))?;
            writeln!(out, "\n{} tokens (rough: 4 characters each)", made.tokens)?;
            for (what, ids) in [("cut to fit", &made.cut), ("left out, no room", &made.omitted)] {
                if !ids.is_empty() {
                    writeln!(out, "{what}: {}", SafeText::new(&ids.join(", ")))?;
                }
            }
            Ok(())
        });
    }
    let shown = json!({
        "text": made.text,
        "tokens": made.tokens,
        "tokens_are": "rough: 4 characters each",
        "budget": {"tokens": tokens, "tokens_per_row": per_row},
        "rows": made.rows,
        "cut": made.cut,
        "omitted": made.omitted,
        "query": answer.query_json(),
    });
    output::value(session.format(), &shown)
}

/// `replay`.
pub async fn replay(
    session: &Session<'_>,
    topic: &str,
    agent: Option<&str>,
    limit: usize,
) -> Result<(), CommandFailure> {
    let store = session.store().await?;
    store.sources_of(Entity::Episode)?;
    let (vector, note) = vector_of(session, &store, Entity::Episode, topic).await?;
    let found = lab::replay::replay(&store, topic, vector.as_deref(), agent, limit).await?;
    if found.rows.is_empty() {
        hints::options(&store, Entity::Episode, &[("topic", Some(topic)), ("agent_id", agent)]).await;
    }
    let (used, candidates) = (found.used, found.candidates);
    let contexts = store.recalled(found.rows.iter().map(|r| r.row.clone()).collect()).await?;
    let mut rows: Vec<Replayed> = found.rows.into_iter().zip(contexts).collect();
    if let Some(mask) = session.mask() {
        for (ranked, context) in &mut rows {
            mask.row(&mut ranked.row);
            context.rows_mut().for_each(|row| mask.row(row));
        }
    }
    let notes: Vec<String> = note.into_iter().collect();
    match session.format() {
        Format::Json => output::json(&json!({
            "rows": rows.iter().map(replayed_json).collect::<Vec<_>>(),
            "query": {
                "topic": topic, "agent": agent, "limit": limit, "used": used, "candidates": candidates,
                "relevance_above": crate::recall::sequence::RELEVANT, "notes": notes,
            },
        })),
        Format::Jsonl => output::piped(|out| rows.iter().try_for_each(|r| output::json_line(out, &replayed_json(r)))),
        Format::Csv => output::csv_table(&rows.iter().map(replayed_json).collect::<Vec<_>>()),
        Format::Table => output::piped(|out| {
            writeln!(out, "{} episodes of {} by {}", rows.len(), SafeText::new(topic), used)?;
            for (shown, context) in &rows {
                let row = &shown.row;
                let text = |column: &str| row.text(column).unwrap_or("·").to_owned();
                let date = text("started_at").get(..10).unwrap_or("·").to_owned();
                let parent = row.text("parent_id").map(|p| format!(" (continues {p})")).unwrap_or_default();
                let line = format!("{date}  {:.3}  {}  {}{parent}", shown.score.total, row.id(), text("title"));
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

/// A replayed episode with its context.
type Replayed = (RankedRow, EpisodeContext);

fn replayed_json((shown, context): &Replayed) -> Value {
    let all = |rows: &[Row]| rows.iter().map(Row::to_json).collect::<Vec<_>>();
    let mut value = shown.row.to_json();
    value["relevance"] = json!(shown.score.total);
    value["terms"] = json!(shown.score.terms);
    value["canvas_context"] = json!(all(&context.canvas));
    value["feedback_context"] = json!(all(&context.feedback));
    value["findings"] = json!(context.findings);
    value
}

/// `chain EPISODE --suggest-parents`.
pub async fn parents(session: &Session<'_>, id: &str) -> Result<(), CommandFailure> {
    let store = session.store().await?;
    let missing = || CommandFailure::not_found(format!("there is no episode `{id}` in {}", store.location()));
    let episode = store.row(Entity::Episode, id).await?.ok_or_else(missing)?;
    let has_vector = !store.vectors(Entity::Episode, &[id.to_owned()]).await?.is_empty();
    let mut found = lab_parents::suggest(&store, &episode, None).await?;
    if session.mask().is_some() {
        found.iter_mut().for_each(|s| s.title = None);
    }
    let commands: Vec<String> =
        found.iter().map(|s| store.invocation().about(&["link"], &[id, &s.id], &["--apply"])).collect();
    let reason = if !has_vector {
        Some("the episode has no vector to compare")
    } else if found.is_empty() {
        Some("no episode of its agent that ended within the 48 h before it started is more alike than 0.85")
    } else {
        None
    };
    let suggestions: Vec<Value> = found
        .iter()
        .zip(commands)
        .map(|(suggestion, command)| {
            let mut value = json!(suggestion);
            value["command"] = json!(command);
            value
        })
        .collect();
    let shown = json!({
        "episode": id, "parent_id": episode.get("parent_id"), "suggestions": suggestions, "reason": reason,
    });
    output::value(session.format(), &shown)
}

async fn answer(session: &Session<'_>, store: &Store, args: &RecallArgs) -> Result<RecallAnswer, CommandFailure> {
    let now = Utc::now();
    let at = match &args.at {
        Some(text) => time::parse_moment(text, now).ok_or_else(|| {
            CommandFailure::usage(format!("--at: `{text}` is no time; RFC 3339 or an age such as 30d"))
        })?,
        None => time::spell_utc(now).unwrap_or_default(),
    };
    if args.k == Some(0) {
        return Err(CommandFailure::usage("-k 0 asks for nothing: name one row at least"));
    }
    let kept = match &args.saved {
        Some(name) => Some(saved(store, name)?),
        None => None,
    };
    let asked = args.inquiry(kept);
    if !asked.is_enough() {
        let words = "say what is asked: a text, or --like ID of an episode, a case or a memory";
        return Err(CommandFailure::usage(words));
    }
    let request = request_of(session, store, &asked, &at).await?;
    let mut answer = lab::recall(store, &request).await?;
    if answer.rows.is_empty() {
        let entity = if asked.ranking == Ranking::Cases { Entity::Case } else { Entity::Episode };
        hints::options(store, entity, &[("agent_id", asked.agent.as_deref()), ("user_id", asked.user.as_deref())])
            .await;
    }
    if let Some(mask) = session.mask() {
        answer.rows_mut().for_each(|row| mask.row(row));
    }
    if let Some(name) = &args.save {
        if name.trim().is_empty() {
            return Err(CommandFailure::usage("--save: name the question"));
        }
        let kept = SavedQuestion { name: name.clone(), inquiry: asked };
        queries::save(store.location(), &kept).map_err(CommandFailure::failed)?;
    }
    Ok(answer)
}

/// What a question asks at a moment, with the vector of its text.
async fn request_of(
    session: &Session<'_>,
    store: &Store,
    asked: &Inquiry,
    at: &str,
) -> Result<lab::RecallRequest, CommandFailure> {
    let mut request = asked.request(at);
    if let Some(text) = asked.text_to_embed() {
        let kind = if asked.ranking == Ranking::Cases { Entity::Case } else { Entity::Episode };
        (request.vector, request.vector_note) = vector_of(session, store, kind, text).await?;
    }
    Ok(request)
}

/// The questions that are kept for a database, ready to be asked before and after a change. What cannot be asked is
/// said on standard error, and is no reason to show no plan.
pub async fn kept(session: &Session<'_>, store: &Store) -> Vec<KeptQuestion> {
    let at = time::spell_utc(Utc::now()).unwrap_or_default();
    let saved = queries::load(store.location()).unwrap_or_else(|why| {
        warn_notes(&[format!("kept questions are not looked at: {why}")]);
        Vec::new()
    });
    let mut kept = Vec::new();
    for SavedQuestion { name, inquiry } in saved {
        match request_of(session, store, &inquiry, &at).await {
            Ok(request) => kept.push(KeptQuestion { name, inquiry, request }),
            Err(why) => warn_notes(&[format!("the kept question {name} is not looked at: {}", why.message)]),
        }
    }
    kept
}

/// The question of that name.
fn saved(store: &Store, name: &str) -> Result<Inquiry, CommandFailure> {
    let kept = queries::load(store.location()).map_err(CommandFailure::failed)?;
    let known: Vec<String> = kept.iter().map(|saved| saved.name.clone()).collect();
    let place = store.location();
    kept.into_iter().find(|saved| saved.name == name).map(|saved| saved.inquiry).ok_or_else(|| {
        let what = format!("question kept for {place} with the name");
        CommandFailure::not_found(unknown(&what, name, known.iter().map(String::as_str)))
    })
}

/// `queries`.
pub async fn queries(session: &Session<'_>, command: Option<&QueriesCommand>) -> Result<(), CommandFailure> {
    let store = session.store().await?;
    let mut kept = match command {
        None => queries::load(store.location()).map_err(CommandFailure::failed)?,
        Some(QueriesCommand::Forget { name }) => {
            saved(&store, name)?;
            queries::forget(store.location(), name).map_err(CommandFailure::failed)?
        }
    };
    if let Some(mask) = session.mask() {
        for asked in kept.iter_mut().map(|saved| &mut saved.inquiry) {
            asked.text = asked.text.as_ref().map(|text| format!("‹{} characters›", text.chars().count()));
            asked.user = asked.user.as_ref().map(|user| mask.pseudonym("user_id", user));
        }
    }
    let lines = kept.iter().map(|saved| {
        let words: Vec<String> = saved.inquiry.words().iter().map(|word| quoted(word)).collect();
        format!("{}: recall {}", saved.name, words.join(" "))
    });
    match session.format() {
        Format::Json => output::json(&json!({"queries": kept})),
        Format::Jsonl => output::piped(|out| kept.iter().try_for_each(|saved| output::json_line(out, &json!(saved)))),
        Format::Csv => output::csv_table(&kept.iter().map(|saved| json!(saved)).collect::<Vec<_>>()),
        Format::Table => {
            output::piped(|out| lines.into_iter().try_for_each(|line| writeln!(out, "{}", SafeText::new(&line))))
        }
    }
}

/// The vector of a text, or why there is none.
async fn vector_of(
    session: &Session<'_>,
    store: &Store,
    kind: Entity,
    text: &str,
) -> Result<(Option<Vec<f32>>, Option<String>), CommandFailure> {
    let endpoint = session.endpoint(None);
    if let (true, Some(Err(why))) = (store.has_vectors(kind), &endpoint) {
        return Err(CommandFailure::usage(why));
    }
    let named = endpoint.is_some();
    match embed::vector_of(store, kind, endpoint.as_ref(), text).await {
        Ok(vector) => Ok((Some(vector), None)),
        Err(words) => {
            if named && store.has_vectors(kind) {
                warn_notes(std::slice::from_ref(&words));
            }
            Ok((None, Some(words)))
        }
    }
}

fn warn_notes(notes: &[String]) {
    let mut out = std::io::stderr().lock();
    for note in notes {
        let _ = writeln!(out, "mnemoscope: {}", SafeText::new(note));
    }
}

fn print_notes(out: &mut dyn Write, notes: &[String]) -> std::io::Result<()> {
    notes.iter().try_for_each(|note| writeln!(out, "! {}", SafeText::new(note)))
}

fn print_answer(out: &mut dyn Write, answer: &RecallAnswer) -> std::io::Result<()> {
    let formula = answer.request.ranking.formula();
    writeln!(out, "{} by {}: {formula}", answer.request.ranking.name(), answer.used)?;
    if answer.request.ranking == Ranking::Cases {
        let policy = match &answer.policy {
            Some(used) => {
                let version = used.version.map_or_else(String::new, |version| format!(", version {version}"));
                format!("policy: {}{version} ({})", used.id, used.because)
            }
            None => "policy: none".to_owned(),
        };
        writeln!(out, "{}", SafeText::new(&policy))?;
    }
    for (i, item) in answer.rows.iter().enumerate() {
        print_item(out, i + 1, item)?;
    }
    if answer.rows.is_empty() {
        writeln!(out, "nothing is recalled")?;
    }
    for left in &answer.left_out {
        let line = format!("left out: {}: {}", left.id, left.words);
        writeln!(out, "{}", SafeText::new(&line))?;
    }
    if let Some((tally, _)) = &answer.compared {
        let line = format!(
            "{} of {} vectors compared; {} rows without, {} without direction, {} of other dimensions, {} unreadable",
            tally.compared, tally.rows, tally.missing, tally.no_direction, tally.other_dimensions, tally.unreadable
        );
        writeln!(out, "{line}")?;
    }
    print_notes(out, &answer.notes)
}

fn print_item(out: &mut dyn Write, number: usize, item: &RecalledItem) -> std::io::Result<()> {
    let row = &item.ranked.row;
    let told = match row.entity {
        Entity::Case => crate::recall::features::case_text(row),
        _ => row.text("title").or(row.text("text")).unwrap_or_default().to_owned(),
    };
    let score = item.ranked.score.total;
    let head = format!("{number}. {score:.4}  {} {}  ", row.entity.title(), row.id());
    writeln!(out, "{}{}", SafeText::new(&head), SafeText::limited(&told, 100))?;
    let terms: Vec<String> = (item.ranked.score.terms.iter())
        .map(|t| format!("{} {:.4} x {:.4} = {:+.4}", t.name, t.value, t.weight, t.contribution))
        .collect();
    writeln!(out, "   {}", terms.join("; "))?;
    if let Some(probability) = item.ranked.probability {
        let found_by = item.ranked.found_by.join(" and ");
        writeln!(out, "   probability {probability:.4}; a candidate by {found_by}")?;
    }
    if row.entity == Entity::Episode {
        writeln!(out, "   {} canvas events, {} feedback rows", item.canvas.len(), item.feedback.len())?;
    }
    item.findings.iter().try_for_each(|f| writeln!(out, "   ! {}", SafeText::new(&f.message)))
}
