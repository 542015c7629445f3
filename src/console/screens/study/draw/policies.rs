//! A policy version: weights, metrics with their intervals, the reliability plot, its bank's versions.

use super::{cell, number, share};
use crate::console::core::{CommandAsk, CommandId, Context};
use crate::console::screens::study::StudyScreen;
use crate::console::view::{Sheet, words};
use crate::memory::{Row, agreeing};
use crate::recall::learn::measured::MeasuredAssessment;
use crate::recall::learn::version::Version;
use crate::recall::policy::FEATURES;
use crate::ui::chart::{Dot, Histogram, Scatter, diverging};
use crate::ui::{Align, Look, NamedValue, SafeText, StyleRole, TableColumn, TableRow, TextLine, Width, figures};

pub fn columns() -> Vec<TableColumn> {
    vec![
        TableColumn::new("bank", Width::Grow { min: 10, weight: 1 }),
        TableColumn::new("version", Width::Fixed(7)).right(),
        TableColumn::new("status", Width::Fixed(11)),
        TableColumn::new("used", Width::Fixed(6)),
        TableColumn::new("AUC then", Width::Fixed(8)).right().priority(2),
        TableColumn::new("trained", Width::Fixed(11)).priority(3),
    ]
}

/// Returns the name of a version's bank, or its id if it has no name.
fn bank(cx: &Context, version: &Row, width: usize) -> SafeText {
    let named = cx.names.named_by(version, "profile_id").or_else(|| version.text("profile_id"));
    SafeText::limited(named.unwrap_or("none"), width)
}

pub fn row(cx: &Context, study: &StudyScreen, at: usize, look: &Look) -> Option<TableRow> {
    let version = study.versions.get(at)?;
    let row = &version.row;
    let auc = row.get("metrics").get("auc").and_then(serde_json::Value::as_f64);
    let used = if version.in_use {
        TextLine::default().with_glyph(look.glyphs.dot, StyleRole::Good).with(" yes", StyleRole::Good)
    } else if row.text("status") == Some("active") {
        TextLine::of("older", StyleRole::Muted)
    } else {
        TextLine::default()
    };
    let cells = vec![
        TextLine::of(bank(cx, row, 60), StyleRole::Text),
        TextLine::of(row.get("version").to_string(), StyleRole::Number),
        row.text("status").map_or_else(TextLine::default, |word| words::state(word, look)),
        used,
        TextLine::of(auc.map_or_else(SafeText::default, |auc| format!("{auc:.2}").into()), StyleRole::Number),
        TextLine::of(row.text("trained_at").map(words::short_time).unwrap_or_default(), StyleRole::Muted),
    ];
    Some(TableRow { cells, marked: false, stale: version.policy.is_err() })
}

/// Draws the facts about a version and its weights.
pub fn weights(cx: &Context, sheet: &mut Sheet<'_>, version: &Version) {
    let row = &version.row;
    let look = sheet.look();
    let state = row.text("status").map_or_else(TextLine::default, |word| words::state(word, look));
    let mut pairs = vec![
        NamedValue::new("id", SafeText::limited(row.id(), 80)),
        NamedValue::new("bank", bank(cx, row, 80)),
        NamedValue::new("bank id", SafeText::limited(row.text("profile_id").unwrap_or("none"), 80)),
        NamedValue::line("status", state),
        NamedValue::line(
            "used",
            if version.in_use {
                TextLine::of("agents use it: it is the highest active version of its bank", StyleRole::Good)
            } else {
                let activates = version.policy.is_ok() && row.text("profile_id").is_some();
                let key = cx.key_for(CommandId::Change(CommandAsk::ActivatePolicy));
                let how = if activates {
                    format!("agents do not use it; {key} activates it")
                } else {
                    "agents do not use it".to_owned()
                };
                TextLine::of(how, StyleRole::Muted)
            },
        ),
    ];
    if let Some(at) = row.text("trained_at") {
        pairs.push(NamedValue::new("trained", words::time(at, false)));
    }
    let gone = match (&version.purged.gone, &version.purged.cases) {
        (Some(gone), Some(cases)) => SafeText::join(
            &[format!("{gone} of {cases} training cases are gone, ").into(), share(version.purged.share)],
            "",
        ),
        _ => SafeText::new(version.purged.reason.unwrap_or("not known")),
    };
    pairs.push(NamedValue::new("since purged", gone));
    sheet.pairs(&pairs);
    sheet.section("weights");
    let policy = match &version.policy {
        Ok(policy) => policy,
        Err(why) => {
            sheet.text(why, StyleRole::Warn);
            return;
        }
    };
    let most = policy.weights.iter().fold(1e-9_f64, |most, w| most.max(w.abs()));
    for (name, weight) in FEATURES.iter().zip(policy.weights).chain([(&"bias", policy.bias)]) {
        let mut line =
            TextLine::of(cell(SafeText::new(&name.replace('_', " ")), 14, Align::Left, look), StyleRole::Label);
        line.append(diverging(weight / most.max(policy.bias.abs()), 25, look));
        line.push(format!(" {weight:+.3}"), StyleRole::Number);
        sheet.line(line);
    }
    if !policy.unknown.is_empty() {
        sheet.text(&format!("not used here: {}", policy.unknown.join(", ")), StyleRole::Muted);
    }
}

/// Draws the measured quality of a version.
pub fn measured(sheet: &mut Sheet<'_>, measured: &MeasuredAssessment) {
    let found = &measured.assessment;
    let look = sheet.look();
    sheet.section("how good it is now");
    sheet.text(
        &format!(
            "{}, {} ({} positive) of {}",
            measured.pairs,
            agreeing(found.n, "{#} {pair|pairs}"),
            found.positives,
            agreeing(found.queries, "{#} {query|queries}")
        ),
        StyleRole::Muted,
    );
    let role = if found.verdict == "better than chance" { StyleRole::Good } else { StyleRole::Warn };
    sheet.text(&format!("{}: {}", found.verdict, found.advice), role);
    sheet.line(TextLine::default());
    let (m, i) = (&found.metrics, &found.interval);
    for (name, value, interval) in [
        ("AUC", m.auc, i.auc),
        ("Brier score", m.brier, i.brier),
        ("calibration error", m.ece, i.ece),
        ("loss", m.loss, i.loss),
    ] {
        let mut line = TextLine::of(cell(name, 19, Align::Left, look), StyleRole::Label);
        line.push(number(value), StyleRole::Number);
        line.push(between(interval), StyleRole::Muted);
        sheet.line(line);
    }
    sheet.text(
        "AUC: how often a better row is ranked above a worse one; 0.5 is chance, 1 is best. Brier score, calibration error \
         and loss: 0 is best. n: pairs of a query and a row.",
        StyleRole::Muted,
    );
    sheet.section("each feature alone: AUC");
    for single in &found.features {
        let mut line =
            TextLine::of(cell(SafeText::new(&single.name.replace('_', " ")), 14, Align::Left, look), StyleRole::Label);
        match single.auc {
            Some(auc) => {
                line.append(diverging((auc - 0.5) * 2.0, 25, look));
                line.push(format!(" {auc:.3}"), StyleRole::Number);
                line.push(between(single.interval), StyleRole::Muted);
            }
            None => line.push("the same in all pairs", StyleRole::Stale),
        }
        sheet.line(line);
    }
    reliability(sheet, measured);
    for note in &measured.notes {
        sheet.text(note, StyleRole::Muted);
    }
}

fn between(interval: Option<[f64; 2]>) -> SafeText {
    interval.map_or_else(SafeText::default, |[low, high]| format!("  {low:.3} to {high:.3}").into())
}

/// Draws predicted against observed outcomes, and the distribution of the predictions.
fn reliability(sheet: &mut Sheet<'_>, measured: &MeasuredAssessment) {
    let found = &measured.assessment;
    let all = found.n.max(1) as f64;
    let dots: Vec<Dot> = found
        .calibration
        .iter()
        .filter_map(|bin| Some(Dot { x: bin.predicted?, y: bin.observed?, share: bin.n as f64 / all }))
        .collect();
    sheet.section("reliability: observed over predicted");
    let width = sheet.width().min(48) as u16;
    sheet.chart(13, move |area, buf, look| {
        let area = ratatui::layout::Rect { width: width.min(area.width), ..area };
        Scatter { dots: &dots, label: "predicted".into() }.render(area, buf, look);
    });
    let buckets: Vec<u64> = found.calibration.iter().map(|bin| bin.n as u64).collect();
    sheet.text("predictions by their probability", StyleRole::Muted);
    sheet.chart(5, move |area, buf, look| Histogram::new(&buckets).render(area, buf, look));
    let look = sheet.look();
    sheet.line(TextLine::of("probability      n  predicted  observed", StyleRole::Header));
    for bin in found.calibration.iter().filter(|bin| bin.n > 0) {
        let range = format!("{:.1}-{:.1}", bin.from, bin.to);
        let mut line = TextLine::of(cell(SafeText::new(&range), 10, Align::Left, look), StyleRole::Label);
        line.push(figures::column(bin.n as u64, 8), StyleRole::Number);
        line.push(number(bin.predicted).pad(11, Align::Right), StyleRole::Number);
        line.push(number(bin.observed).pad(10, Align::Right), StyleRole::Number);
        sheet.line(line);
    }
}

/// All versions of the same bank, next to each other.
pub fn versions(sheet: &mut Sheet<'_>, study: &StudyScreen) {
    let bank = study.version().map(|v| v.row.get("profile_id"));
    let own: Vec<&Version> = study.versions.iter().filter(|v| Some(v.row.get("profile_id")) == bank).collect();
    sheet.section("versions of its bank, as noted when each was trained");
    let look = sheet.look();
    let wide = sheet.width() >= 76;
    let names = ["simil.", "reward", "outc.", "recent", "text", "tags"].map(|name| format!("{name:>7}")).concat();
    let head = format!("version  status         AUC     loss{}", if wide { names.as_str() } else { "" });
    sheet.line(TextLine::of(look.fit(&SafeText::new(&head), sheet.width()), StyleRole::Header));
    for version in own {
        sheet.line(version_line(version, wide, look));
    }
}

fn version_line(version: &Version, wide: bool, look: &Look) -> TextLine {
    let row = &version.row;
    let metric = |name: &str| number(row.get("metrics").get(name).and_then(serde_json::Value::as_f64));
    let mut line =
        TextLine::of(cell(SafeText::new(&row.get("version").to_string()), 7, Align::Right, look), StyleRole::Number);
    let sign = if version.in_use { look.glyphs.dot } else { look.glyphs.separator };
    line.push_blanks(1);
    line.push_glyphs(sign, 1, if version.in_use { StyleRole::Good } else { StyleRole::Muted });
    line.push_blanks(1);
    let word = row.text("status").unwrap_or("none");
    line.push(cell(SafeText::limited(word, 20), 9, Align::Left, look), words::state_role(word));
    line.push(metric("auc").pad(8, Align::Right), StyleRole::Number);
    line.push(metric("loss").pad(9, Align::Right), StyleRole::Number);
    if wide && let Ok(policy) = &version.policy {
        for weight in policy.weights {
            line.push(SafeText::new(&format!("{weight:+.2}")).pad(7, Align::Right), StyleRole::Muted);
        }
    }
    line
}
