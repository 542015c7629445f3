//! `insights` and `graduation`: statistics of the memory about agents.

use std::io::{self, Write};

use serde_json::json;

use super::table::{self, CellShape, PrintedColumn};
use super::{CommandFailure, Format, Session, hints, output};
use crate::change;
use crate::lab::{silent, understand};
use crate::memory::{Entity, agreeing};
use crate::recall::understand::WeightedMean;
use crate::recall::understand::canvas::Engagement;
use crate::recall::understand::report::{Graduation, Insights, insights_json};
use crate::recall::understand::usefulness::Usefulness;
use crate::ui::text::SafeText;

pub async fn insights(session: &Session<'_>, agent: Option<&str>) -> Result<(), CommandFailure> {
    let store = session.store().await?;
    let mask = session.mask();
    // An agent without episodes has no insights: its id may be misspelt.
    hints::options(session, &store, Entity::Episode, &[("agent_id", agent)]).await;
    let found = understand::insights(&store, agent, &change::now(), mask.as_ref(), &silent).await?;
    match session.format() {
        Format::Table => output::piped(|out| print_insights(out, &found)),
        _ => output::shape(session.format(), &insights_json(&found)),
    }
}

pub async fn graduation(session: &Session<'_>, agent: &str) -> Result<(), CommandFailure> {
    let store = session.store().await?;
    let found = understand::graduation(&store, agent, &change::now(), &silent).await?;
    match session.format() {
        Format::Table => output::piped(|out| print_graduation(out, &found)),
        _ => output::shape(session.format(), &json!(found)),
    }
}

fn print_insights(out: &mut dyn Write, found: &Insights) -> io::Result<()> {
    for note in &found.notes {
        writeln!(out, "note: {}", SafeText::new(note))?;
    }
    for (title, groups) in [("by canvas type", &found.types), ("by component", &found.components)] {
        writeln!(out, "\n{title}")?;
        let rows: Vec<Vec<SafeText>> = groups.iter().map(engagement).collect();
        let words = [("Canvas", CellShape::Word, 0), ("Component", CellShape::Word, 0), ("Is", CellShape::Text, 1)];
        let counts = ["Shown", "Quick", "Slow", "Submit", "Dwell", "Feedback", "Reward"];
        let counts = (2..).zip(counts).map(|(rank, title)| PrintedColumn::new(title, CellShape::Number, rank));
        let words = words.into_iter().map(|(title, shape, rank)| PrintedColumn::new(title, shape, rank));
        output::table(out, &words.chain(counts).collect::<Vec<_>>(), &rows)?;
    }
    writeln!(out, "\nrules")?;
    for rule in &found.rules {
        writeln!(out, "  {}: {}", rule.name, SafeText::new(&rule.rule))?;
    }
    writeln!(out, "\nobservations")?;
    for seen in &found.observations {
        let reward = seen.reward.map_or("no stated reward".to_owned(), |r| format!("{r:+.1}"));
        writeln!(out, "  {}: {} ({reward})", seen.observation, seen.n)?;
    }
    if let Some(curve) = &found.forgetting {
        writeln!(out, "\nforgetting: {} stale, {} overdue for archiving ({})", curve.stale, curve.overdue, curve.rule)?;
        let number = |x: Option<f64>| SafeText::new(&x.map_or("·".to_owned(), |x| format!("{x:.2}")));
        let row = |p: &crate::recall::understand::forgetting::CurvePoint| {
            let age = p.to_days.map_or(format!("{:.0}+", p.from_days), |to| format!("{:.0}-{to:.0}", p.from_days));
            let counts = [age, p.episodes.to_string(), p.put_away.to_string()];
            let mut cells: Vec<SafeText> = counts.iter().map(|c| SafeText::new(c)).collect();
            cells.extend([number(p.by_rule), number(p.stored), number(p.accesses)]);
            cells
        };
        let rows: Vec<_> = curve.points.iter().map(row).collect();
        let titles = ["Days", "Episodes", "Put away", "By rule", "Stored", "Recalls"];
        output::table(out, &titles.map(|title| PrintedColumn::new(title, CellShape::Number, 0)), &rows)?;
    }
    if let Some(judged) = &found.memories {
        writeln!(out, "\nmemories: {} of {} used ones can be judged ({})", judged.judged, judged.used, judged.rule)?;
        for (word, total, memories) in
            [("mislead", judged.mislead_total, &judged.mislead), ("help", judged.help_total, &judged.help)]
        {
            writeln!(out, "  {total} {word}")?;
            memories.iter().try_for_each(|m| print_memory(out, m))?;
        }
    }
    Ok(())
}

fn print_memory(out: &mut dyn Write, memory: &Usefulness) -> io::Result<()> {
    let title = SafeText::new(memory.title.as_deref().unwrap_or("(no title)"));
    writeln!(out, "    {:.2} over {}  {}  {title}", memory.utility, memory.n, SafeText::new(&memory.id))
}

fn engagement(group: &Engagement) -> Vec<SafeText> {
    let stored = |text: &str| SafeText::new(if text.is_empty() { "(none)" } else { text });
    let number = |x: Option<f64>, unit: &str| x.map_or("·".to_owned(), |x| format!("{x:.2}{unit}"));
    let mut cells =
        vec![stored(&group.canvas_type), group.component_type.as_deref().map_or_else(|| SafeText::new("all"), stored)];
    let rest = [
        group.verdicts.join(", "),
        group.presented.to_string(),
        group.closed_quickly.to_string(),
        group.closed_slowly.to_string(),
        group.submitted.to_string(),
        number(group.dwell_seconds, " s"),
        number(group.feedback, ""),
        format!("{:.1}", group.reward),
    ];
    cells.extend(rest.iter().map(|text| SafeText::new(text)));
    cells
}

fn print_graduation(out: &mut dyn Write, found: &Graduation) -> io::Result<()> {
    let name = found.name.as_ref().map(|n| format!(" ({})", SafeText::new(n))).unwrap_or_default();
    let status = found.status.as_deref().unwrap_or("no status");
    let episodes = agreeing(found.episodes, "{#} {episode|episodes}");
    writeln!(out, "{}{name}: {}, {episodes}", SafeText::new(&found.agent), SafeText::new(status))?;
    print_mean(out, "\nquality, by the documented formula", &found.quality)?;
    let number = |x: Option<f64>| x.map_or("unknown".to_owned(), |x| format!("{x:.3}"));
    let periods = &found.canvas_periods;
    writeln!(
        out,
        "  canvas success of the last {} days {} (n {}), of those before {} (n {})",
        periods.days,
        number(periods.last),
        periods.last_n,
        number(periods.previous),
        periods.previous_n
    )?;
    writeln!(out, "  {}", found.documented.note)?;
    let by = &found.interventions;
    let count = |n: Option<usize>| n.map_or("not kept".to_owned(), |n| n.to_string());
    writeln!(out, "\ninterventions per episode {}", number(by.rate))?;
    writeln!(out, "  chat {}, canvas {}, workflow {}", count(by.chat), count(by.canvas), count(by.workflow))?;
    let Some(coded) = &found.coded else { return Ok(()) };
    print_mean(out, "\nreadiness, as coded", &coded.readiness)?;
    writeln!(out, "  {} episodes at most: {}", coded.window, coded.note)?;
    if let Some(next) = &coded.next {
        let words = if next.ready { "ready".to_owned() } else { next.missing.join("; ") };
        writeln!(out, "  to {}: {words}", next.level)?;
    }
    Ok(())
}

fn print_mean(out: &mut dyn Write, title: &str, mean: &WeightedMean) -> io::Result<()> {
    writeln!(out, "{title}: {}", mean.score.map_or("unknown".to_owned(), |s| format!("{s:.3}")))?;
    let row = |t: &crate::recall::understand::WeightedTerm| {
        let value = t.value.map_or_else(|| t.missing.clone().unwrap_or_default(), |v| format!("{v:.3}"));
        let cells = [t.name.to_owned(), value, format!("{:.3}", t.weight_used), format!("{:.3}", t.contribution)];
        let mut cells: Vec<SafeText> = cells.iter().map(|c| SafeText::new(c)).collect();
        cells.push(SafeText::new(&t.n.to_string()));
        cells
    };
    let rows: Vec<_> = mean.terms.iter().map(row).collect();
    let titles = [
        ("Term", CellShape::Word),
        ("Value", CellShape::Text),
        ("Weight", CellShape::Number),
        ("Gives", CellShape::Number),
        ("N", CellShape::Number),
    ];
    output::table(out, &table::columns(&titles), &rows)?;
    if let Some(note) = &mean.note {
        writeln!(out, "  {note}")?;
    }
    Ok(())
}
