//! `recall`, `context`, and parent suggestions.

use std::io::Write;

use chrono::Utc;
use clap::builder::PossibleValue;
use clap::{Args, ValueEnum};
use serde_json::{Value, json};

use super::queries::saved;
use super::recalled::{HeadValue, RecalledRows};
use super::{CommandFailure, Format, Session, as_of as past, hints, output};
use crate::change::as_of::AsOf;
use crate::change::what_if::KeptQuestion;
use crate::config::Kept as _;
use crate::lab::embed;
use crate::lab::recall::{RankedSituation, RowInContext, RowsInContext};
use crate::lab::{self, RecallAnswer, parents as lab_parents};
use crate::memory::{Entity, agreeing, time};
use crate::recall::context::{Budget, ContextRow, ContextWriter};
use crate::recall::inquiry::{Inquiry, SavedQuestion};
use crate::recall::rank::{RankedRow, Ranking};
use crate::store::Store;
use crate::store::context::RecalledContext;
use crate::ui::text::SafeText;

impl ValueEnum for Ranking {
    fn value_variants<'a>() -> &'a [Self] {
        &Ranking::ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        let help = match self {
            Ranking::Boosted => "Episodes by time and likeness, boosted by canvas and feedback",
            Ranking::Proven => "Memories and episodes by domain, topic, utility and age",
            Ranking::Cases => "Cases by cosine, or by the policy in use",
            Ranking::Similar => "Successful episodes with a similar situation and outcome",
        };
        Some(PossibleValue::new(self.name()).help(help))
    }
}

/// Question of a recall, and its ranking.
#[derive(Debug, Clone, Args)]
pub struct RecallArgs {
    /// The situation in words. Compared by vectors where the profile names an embedding endpoint, else by keywords.
    pub text: Option<String>,
    /// A stored situation: the id of an episode, a case or a memory.
    #[arg(long, value_name = "ID")]
    pub like: Option<String>,
    /// Ranking to use.
    #[arg(long, value_enum, required_unless_present = "saved")]
    pub ranking: Option<Ranking>,
    /// Ask a saved question of this database; options given here override its parts.
    #[arg(long, value_name = "NAME")]
    pub saved: Option<String>,
    /// Keep the question under a name, in your own files.
    #[arg(long, value_name = "NAME")]
    pub save: Option<String>,
    /// Memories of this agent; `--ranking proven` also ranks those of no agent.
    #[arg(long)]
    pub agent: Option<String>,
    /// Memories of this user; `--ranking proven` also ranks those of no user.
    #[arg(long)]
    pub user: Option<String>,
    /// Maximum number of rows, up to 5,000 [default: the bank's setting, else 4; 3 for `similar`].
    #[arg(short, value_name = "N")]
    pub k: Option<usize>,
    /// Domain to look for (proven).
    #[arg(long)]
    pub domain: Option<String>,
    /// Topic to look for (proven).
    #[arg(long)]
    pub topic: Option<String>,
    /// Episodes of this workflow (similar).
    #[arg(long)]
    pub workflow: Option<String>,
    /// Include episodes that did not succeed (similar).
    #[arg(long)]
    pub all_outcomes: bool,
    /// Rank cases by this policy; `none` ranks by similarity alone [default: the policy in use in the bank].
    #[arg(long, value_name = "ID")]
    pub policy: Option<String>,
    /// Take 1 off the score of cases with a low reward that are recalled often, as the finding
    /// `low_reward_often_recalled` names them.
    #[arg(long)]
    pub downweight: bool,
    /// Rank as if it were this moment: RFC 3339 or an age such as 30d. Ages count from here.
    #[arg(long, value_name = "TIME")]
    pub at: Option<String>,
    /// Over the memories as they were: a time, an age such as 7d, or just after an entry of the audit trail.
    #[arg(long, value_name = "TIME|SEQ")]
    pub as_of: Option<String>,
}

impl RecallArgs {
    /// Builds the question: a saved one, overridden by options.
    pub fn inquiry(&self, kept: Option<Inquiry>) -> Inquiry {
        let mut asked = kept.unwrap_or_else(|| Inquiry::new(Ranking::Boosted));
        if let Some(ranking) = self.ranking {
            asked.ranking = ranking;
        }
        // A situation replaces another one as a whole.
        if self.text.is_some() || self.like.is_some() {
            (asked.text, asked.like) = (self.text.clone(), self.like.clone());
        }
        let said = |kept: &mut Option<String>, said: &Option<String>| {
            if said.is_some() {
                kept.clone_from(said);
            }
        };
        said(&mut asked.agent, &self.agent);
        said(&mut asked.user, &self.user);
        said(&mut asked.domain, &self.domain);
        said(&mut asked.topic, &self.topic);
        said(&mut asked.workflow, &self.workflow);
        said(&mut asked.policy, &self.policy);
        asked.k = self.k.or(asked.k);
        asked.all_outcomes |= self.all_outcomes;
        asked.downweight |= self.downweight;
        asked
    }
}

pub async fn recall(session: &Session<'_>, args: &RecallArgs) -> Result<(), CommandFailure> {
    let moment = past::moment(args.as_of.as_deref())?;
    let (store, as_of) = past::store(session, moment.as_ref()).await?;
    let RankedSituation { rows, answer, .. } = ranked(session, &store, args, as_of.as_ref()).await?;
    let rows = recalled(session, &store, &answer, rows);
    match session.format() {
        Format::Table => print_answer(&answer, rows).await,
        Format::Json => {
            let mut rest = answer.rest_json();
            if let Some(as_of) = as_of {
                rest["as_of"] = json!(as_of);
            }
            rows.print(head, rest).await
        }
        Format::Jsonl | Format::Csv => {
            warn_notes(&answer.notes);
            rows.print(head, Value::Null).await
        }
    }
}

/// The rows of an answer, to be printed.
fn recalled<'a>(
    session: &Session<'_>,
    store: &'a Store,
    answer: &RecallAnswer,
    rows: Vec<RankedRow>,
) -> RecalledRows<'a> {
    let owners = (answer.request.inquiry.agent.as_deref(), answer.request.inquiry.user.as_deref());
    RecalledRows::new(session, store, RowsInContext::new(store, rows, owners))
}

pub async fn context(
    session: &Session<'_>,
    args: &RecallArgs,
    tokens: usize,
    per_row: Option<usize>,
) -> Result<(), CommandFailure> {
    let moment = past::moment(args.as_of.as_deref())?;
    let (store, as_of) = past::store(session, moment.as_ref()).await?;
    let RankedSituation { rows, answer, .. } = ranked(session, &store, args, as_of.as_ref()).await?;
    let budget = Budget { tokens, per_row };
    let mut writer = ContextWriter::new(rows.len(), budget, answer.request.inquiry.ranking == Ranking::Similar);
    let mut rows = recalled(session, &store, &answer, rows);
    while let Some(RowInContext { ranked, around }) = rows.next().await? {
        let (canvas, feedback) = rows.told(around, budget.room()).await?;
        writer.add(&ContextRow { row: &ranked.row, canvas: &canvas, feedback: &feedback });
    }
    let made = writer.close();
    if session.format() == Format::Table {
        warn_notes(&answer.notes);
        return output::piped(|out| {
            SafeText::block(&made.text).iter().try_for_each(|line| writeln!(out, "{line}"))?;
            writeln!(out, "\n{}", agreeing(made.tokens, "{#} {token|tokens} (rough: 4 characters each)"))?;
            for (what, ids) in [("cut to fit", &made.cut), ("left out, no space", &made.omitted)] {
                if !ids.is_empty() {
                    writeln!(out, "{what}: {}", SafeText::new(&ids.join(", ")))?;
                }
            }
            Ok(())
        });
    }
    let mut shown = json!({
        "text": made.text,
        "tokens": made.tokens,
        "tokens_are": "rough: 4 characters each",
        "budget": {"tokens": tokens, "tokens_per_row": per_row},
        "rows": made.rows,
        "cut": made.cut,
        "omitted": made.omitted,
        "query": answer.query_json(),
    });
    if let Some(as_of) = as_of {
        shown["as_of"] = json!(as_of);
    }
    output::shape(session.format(), &shown)
}

/// `chain EPISODE --suggest-parents`.
pub async fn parents(session: &Session<'_>, id: &str) -> Result<(), CommandFailure> {
    let store = session.store().await?;
    let missing = || CommandFailure::not_found(format!("there is no episode `{id}` in {}", store.location()));
    let episode = store.row(Entity::Episode, id).await?.ok_or_else(missing)?;
    let has_vector = !store.embeddings().vectors(Entity::Episode, &[id.to_owned()]).await?.is_empty();
    let mut found = lab_parents::suggest(&store, &episode, None, None).await?;
    if session.mask().is_some() {
        found.iter_mut().for_each(|s| s.title = None);
    }
    let commands: Vec<String> =
        found.iter().map(|s| store.invocation().about(&["link"], &[id, &s.id], &["--apply"])).collect();
    let reason = if !has_vector {
        Some("the episode has no vector to compare")
    } else if found.is_empty() {
        Some("no episode of its agent that ended within the 48 h before it started is more similar than 0.85")
    } else if found.len() == lab_parents::SUGGESTED {
        Some("only the most similar are shown")
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
    output::shape(session.format(), &shown)
}

async fn ranked(
    session: &Session<'_>,
    store: &Store,
    args: &RecallArgs,
    as_of: Option<&AsOf>,
) -> Result<RankedSituation, CommandFailure> {
    let now = Utc::now();
    let at = match &args.at {
        Some(text) => time::parse_moment(text, now).ok_or_else(|| {
            CommandFailure::usage(format!("--at: `{text}` is not a time; give RFC 3339 or an age such as 30d"))
        })?,
        None => as_of.map_or_else(|| time::spell_utc(now).unwrap_or_default(), |as_of| as_of.at.clone()),
    };
    if args.k == Some(0) {
        return Err(CommandFailure::usage("-k 0 asks for nothing: ask for at least one row"));
    }
    let kept = match &args.saved {
        Some(name) => Some(saved(store, name)?),
        None => None,
    };
    let asked = args.inquiry(kept);
    if !asked.is_enough() {
        let words = "give a text, or --like with the ID of an episode, a case or a memory";
        return Err(CommandFailure::usage(words));
    }
    let request = request_of(session, store, &asked, &at).await?;
    let (found, _) = lab::recall::ranked(store, &request).await?;
    if found.rows.is_empty() {
        let entity = lab::kind_of(store, asked.ranking);
        hints::options(
            session,
            store,
            entity,
            &[("agent_id", asked.agent.as_deref()), ("user_id", asked.user.as_deref())],
        )
        .await;
    }
    if let Some(name) = &args.save {
        if name.trim().is_empty() {
            return Err(CommandFailure::usage("--save: name the question"));
        }
        SavedQuestion { name: name.clone(), inquiry: asked }.keep(store.location())?;
    }
    Ok(found)
}

/// Builds the request of a question at a moment, with the vector of its text.
async fn request_of(
    session: &Session<'_>,
    store: &Store,
    asked: &Inquiry,
    at: &str,
) -> Result<lab::RecallRequest, CommandFailure> {
    let mut request = asked.request(at);
    if let Some(text) = asked.text_to_embed() {
        let kind = lab::kind_of(store, asked.ranking);
        (request.vector, request.vector_note) = vector_of(session, store, kind, text).await?;
    }
    Ok(request)
}

/// The saved questions of a database, ready to be asked before and after a change. Failures are printed to standard
/// error, and do not prevent the plan.
pub async fn kept(session: &Session<'_>, store: &Store) -> Vec<KeptQuestion> {
    let at = time::spell_utc(Utc::now()).unwrap_or_default();
    let saved = SavedQuestion::load(store.location()).unwrap_or_else(|why| {
        warn_notes(&[format!("saved questions are not evaluated: {why:#}")]);
        Vec::new()
    });
    let mut kept = Vec::new();
    for SavedQuestion { name, inquiry } in saved {
        match request_of(session, store, &inquiry, &at).await {
            Ok(request) => kept.push(KeptQuestion { name, request }),
            Err(why) => warn_notes(&[format!("the saved question {name} is not evaluated: {}", why.message)]),
        }
    }
    kept
}

/// The vector of a text, or the reason why there is none.
pub(super) async fn vector_of(
    session: &Session<'_>,
    store: &Store,
    kind: Entity,
    text: &str,
) -> Result<(Option<Vec<f32>>, Option<String>), CommandFailure> {
    let endpoint = session.endpoint(None);
    if let (true, Some(Err(why))) = (store.embeddings().has_vectors(kind), &endpoint) {
        return Err(CommandFailure::usage(why));
    }
    let named = endpoint.is_some();
    match embed::vector_of(store, kind, endpoint.as_ref(), text).await {
        Ok(vector) => Ok((Some(vector), None)),
        Err(words) => {
            if named && store.embeddings().has_vectors(kind) {
                warn_notes(std::slice::from_ref(&words));
            }
            Ok((None, Some(words)))
        }
    }
}

fn warn_notes(notes: &[String]) {
    notes.iter().for_each(|note| output::tell(&format!("mnemoscope: {note}")));
}

pub(super) fn print_notes(out: &mut dyn Write, notes: &[String]) -> std::io::Result<()> {
    notes.iter().try_for_each(|note| writeln!(out, "! {}", SafeText::new(note)))
}

async fn print_answer(answer: &RecallAnswer, mut rows: RecalledRows<'_>) -> Result<(), CommandFailure> {
    let mut told = Vec::new();
    print_way(&mut told, answer)?;
    let mut number = 0;
    while let Some(row) = rows.next().await? {
        number += 1;
        print_item(&mut told, number, &row)?;
    }
    if number == 0 {
        writeln!(told, "nothing is recalled")?;
    }
    print_rest(&mut told, answer)?;
    output::piped(|out| out.write_all(&told))
}

fn print_way(out: &mut dyn Write, answer: &RecallAnswer) -> std::io::Result<()> {
    let formula = answer.request.inquiry.ranking.formula();
    writeln!(out, "{} by {}: {formula}", answer.request.inquiry.ranking.name(), answer.used)?;
    if answer.request.inquiry.ranking == Ranking::Cases {
        let policy = match &answer.policy {
            Some(used) => {
                let version = used.version.map_or_else(String::new, |version| format!(", version {version}"));
                format!("policy: {}{version} ({})", used.id, used.because)
            }
            None => "policy: none".to_owned(),
        };
        writeln!(out, "{}", SafeText::new(&policy))?;
    }
    Ok(())
}

/// Prints the rows left out, and how rows were compared.
fn print_rest(out: &mut dyn Write, answer: &RecallAnswer) -> std::io::Result<()> {
    for left in &answer.left_out {
        let line = format!("left out: {}: {}", left.id, left.words);
        writeln!(out, "{}", SafeText::new(&line))?;
    }
    if let Some((tally, _)) = &answer.compared {
        let line = format!(
            "{} of {} vectors compared; {}, {} without direction, {} of other dimensions, {} unreadable",
            tally.compared,
            tally.rows,
            agreeing(tally.missing, "{#} {row|rows} without"),
            tally.no_direction,
            tally.other_dimensions,
            tally.unreadable
        );
        writeln!(out, "{line}")?;
    }
    print_notes(out, &answer.notes)
}

fn print_item(out: &mut dyn Write, number: usize, item: &RowInContext) -> std::io::Result<()> {
    let RankedRow { row, score, probability, found_by, .. } = &item.ranked;
    let told = match row.entity {
        Entity::Case => crate::recall::features::case_text(row),
        _ => row.text("title").or(row.text("text")).unwrap_or_default().to_owned(),
    };
    let head = format!("{number}. {:.4}  {} {}  ", score.total, row.entity.title(), row.id());
    writeln!(out, "{}{}", SafeText::new(&head), SafeText::limited(&told, 100))?;
    let terms: Vec<String> = (score.terms.iter())
        .map(|t| format!("{} {:.4} x {:.4} = {:+.4}", t.name, t.value, t.weight, t.contribution))
        .collect();
    writeln!(out, "   {}", terms.join("; "))?;
    if let Some(probability) = probability {
        writeln!(out, "   probability {probability:.4}; a candidate by {}", found_by.join(" and "))?;
    }
    let Some(RecalledContext { canvas, feedback, findings }) = &item.around else { return Ok(()) };
    let canvas = agreeing(canvas.len(), "{#} canvas {event|events}");
    writeln!(out, "   {canvas}, {}", agreeing(feedback.len(), "{#} feedback {row|rows}"))?;
    findings.iter().try_for_each(|f| writeln!(out, "   ! {}", SafeText::new(&f.message)))
}

/// The members of a row in the output of `recall`, besides dependent rows.
fn head(ranked: &RankedRow) -> Vec<(&'static str, HeadValue<'_>)> {
    let RankedRow { row, score, base, probability, found_by, .. } = ranked;
    let mut members = Vec::new();
    let mut add = |name, value| members.push((name, HeadValue::Known(value)));
    add("id", json!(row.id()));
    add("entity", json!(row.entity.name()));
    add("score", json!(score.total));
    add("terms", json!(score.terms));
    if !base.is_empty() {
        add("base_terms", json!(base));
    }
    if let Some(probability) = probability {
        add("probability", json!(probability));
    }
    if !found_by.is_empty() {
        add("found_by", json!(found_by));
    }
    members.push(("row", HeadValue::Row(row)));
    members
}
