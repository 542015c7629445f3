//! Quality of recall: metrics with intervals, values of K side by side, controls, spread, latency.

use super::{cell, number, share};
use crate::console::core::Context;
use crate::console::screens::study::RECALLED;
use crate::console::view::Sheet;
use crate::memory::{agreeing, thousands};
use crate::recall::judge::latency::LatencyTimes;
use crate::recall::judge::ranked::MeanEstimate;
use crate::recall::judge::report::Evaluation;
use crate::recall::judge::spread::RecallSpread;
use crate::ui::chart::meter;
use crate::ui::{Align, Look, NamedValue, SafeText, StyleRole, TextLine, figures};

pub fn sheet(cx: &Context, sheet: &mut Sheet<'_>, found: &Evaluation) {
    let rows = SafeText::join(
        &[
            figures::count(found.rows as u64),
            format!(" {} rows, ", found.kind).into(),
            figures::count(found.with_vector as u64),
            " with a vector".into(),
        ],
        "",
    );
    sheet.pairs(&[
        NamedValue::new("judged", rows),
        NamedValue::new("ranking", SafeText::new(&format!("{}: {}", found.ranking, found.formula))),
        NamedValue::new("judged by", SafeText::limited(&found.judged_by, 400)),
    ]);
    for note in &found.notes {
        sheet.text(note, StyleRole::Muted);
    }
    quality(sheet, found);
    controls(sheet, found);
    spread(cx, sheet, "rankings here", &found.spread);
    stored(cx, sheet, found);
}

/// Columns of a bar beside its numbers.
fn bar_width(width: usize) -> usize {
    if width >= 72 { 20 } else { 8 }
}

fn estimate(name: &str, value: &MeanEstimate, bar: usize, look: &Look) -> TextLine {
    let mut line = TextLine::of(cell(SafeText::new(name), 16, Align::Left, look), StyleRole::Label);
    if let Some(mean) = value.value {
        line.append(meter(mean, bar, StyleRole::Series1, look));
    }
    line.push(" ", StyleRole::Text);
    line.push(number(value.value), StyleRole::Number);
    if let Some([low, high]) = value.interval {
        line.push(format!("  {low:.3} to {high:.3}"), StyleRole::Muted);
    }
    line.push(format!("  n {}", figures::count(value.n as u64)), StyleRole::Muted);
    line
}

fn quality(sheet: &mut Sheet<'_>, found: &Evaluation) {
    let look = sheet.look();
    let bar = bar_width(sheet.width());
    let quality = &found.quality;
    sheet.section("on judged queries");
    let k = quality.k;
    for (name, value) in quality.named() {
        sheet.line(estimate(&name, value, bar, look));
    }
    if quality.without_relevant > 0 {
        sheet.text(
            &agreeing(quality.without_relevant, "{#} more {query has|queries have} nothing relevant"),
            StyleRole::Muted,
        );
    }
    if quality.sweep.is_empty() {
        return;
    }
    sheet.section("with other numbers of rows (K)");
    sheet.line(TextLine::of("  K  hit rate    nDCG  precision", StyleRole::Header));
    for at in &quality.sweep {
        let role = if at.k == k { StyleRole::Accent } else { StyleRole::Number };
        let numbers = format!("{:>3}{:>10.3}{:>8.3}{:>11.3}  ", at.k, at.hit_rate, at.ndcg, at.precision);
        let mut line = TextLine::of(SafeText::new(&numbers), role);
        line.append(meter(at.precision, bar, StyleRole::Series1, look));
        sheet.line(line);
    }
    sheet.text(
        "Each from 0 to 1, 1 is best. Hit rate: queries with a relevant row among the first K. Precision: relevant \
         rows among the first K. nDCG: higher when relevant rows come first. MRR: 1 divided by the rank of the first \
         relevant row. n: queries.",
        StyleRole::Muted,
    );
}

fn controls(sheet: &mut Sheet<'_>, found: &Evaluation) {
    sheet.section("controls");
    for back in found.self_retrieval.iter().filter(|b| b.n > 0) {
        let all = back.found == back.n;
        let own = format!(
            "queried with its own {}: {} of {{#}} {{row comes|rows come}} back",
            back.by,
            thousands(back.found)
        );
        let words = agreeing(back.n, &own);
        sheet.text(&words, if all { StyleRole::Good } else { StyleRole::Warn });
    }
    for control in &found.negative_controls {
        let highest = control.highest.unwrap_or_default();
        let words = format!(
            "nonsense by {}: {} of {} get an answer above {:.2}, highest {highest:.3}",
            control.by, control.answered, control.n, control.threshold
        );
        sheet.text(&words, if control.answered == 0 { StyleRole::Good } else { StyleRole::Warn });
    }
}

fn spread(cx: &Context, sheet: &mut Sheet<'_>, title: &str, spread: &RecallSpread) {
    let look = sheet.look();
    sheet.section(title);
    let bar = |name: &str, value: Option<f64>, note: SafeText, role: StyleRole| {
        let mut line = TextLine::of(cell(SafeText::new(name), 20, Align::Left, look), StyleRole::Label);
        line.append(meter(value.unwrap_or_default(), 16, role, look));
        line.push(share(value).pad(9, Align::Right), StyleRole::Number);
        line.push_apart(note, StyleRole::Muted);
        line
    };
    let swamped = spread.top_1_percent_share.zip(spread.top_1_percent_even).is_some_and(|(s, even)| s > even * 20.0);
    let most = spread.most_recalled.as_ref().map_or_else(SafeText::default, |(id, n)| {
        let name = RECALLED.iter().find_map(|kind| cx.names.of(*kind, id)).unwrap_or(id);
        let room = sheet.width().saturating_sub(64).clamp(16, 60);
        SafeText::join(&["most: ".into(), SafeText::limited(name, room), agreeing(*n, ", {#} {time|times}").into()], "")
    });
    let age = spread.age_days.map_or("age unknown".to_owned(), |days| format!("mean age {days:.1} days"));
    let lines = [
        bar(
            "coverage",
            spread.coverage,
            format!("{} of {} rows", thousands(spread.recalled), thousands(spread.candidates)).into(),
            StyleRole::Series1,
        ),
        bar(
            "top 1 % get",
            spread.top_1_percent_share,
            most,
            if swamped { StyleRole::Warn } else { StyleRole::Series1 },
        ),
        bar("alike", spread.redundancy, format!("of {} pairs", thousands(spread.pairs)).into(), StyleRole::Series1),
        bar("older than 90 days", spread.stale_share, age.into(), StyleRole::Series1),
        bar("bad feedback", spread.bad_share, format!("of {} known", thousands(spread.bad_n)).into(), StyleRole::Bad),
    ];
    let width = sheet.width();
    sheet.lines(lines.into_iter().flat_map(|line| line.flow(width, look)));
}

fn stored(cx: &Context, sheet: &mut Sheet<'_>, found: &Evaluation) {
    let Some(stored) = &found.stored else { return };
    let look = sheet.look();
    let bar = bar_width(sheet.width());
    spread(cx, sheet, "recalls as they happened", &stored.spread);
    sheet.line(estimate("hit rate", &stored.hit_rate, bar, look));
    sheet.line(estimate("precision", &stored.precision_at_k, bar, look));
    let trail = &stored.trail;
    let mean = |x: Option<f64>| x.map_or("unknown".to_owned(), |x| format!("{x:.1}"));
    sheet.text(
        &format!(
            "{} tokens a recall (n {}), {} rows a recall",
            mean(trail.tokens),
            thousands(trail.tokens_n),
            mean(trail.rows)
        ),
        StyleRole::Text,
    );
    sheet.section("latency of the four stages, ms");
    sheet.line(TextLine::of("stage or kind           n      mean       p50       p95", StyleRole::Header));
    let slowest = trail.stages.iter().chain(&trail.kinds).filter_map(|t| t.p95_ms).fold(0.0, f64::max);
    sheet.lines(trail.stages.iter().map(|t| times(t, slowest, StyleRole::Text, look)));
    sheet.lines(trail.kinds.iter().map(|t| times(t, slowest, StyleRole::Muted, look)));
}

fn times(times: &LatencyTimes, slowest: f64, role: StyleRole, look: &Look) -> TextLine {
    let mut line = TextLine::of(cell(SafeText::limited(&times.name, 40), 18, Align::Left, look), role);
    if times.n == 0 {
        return line.with("none is recorded", StyleRole::Stale);
    }
    line.push(figures::column(times.n as u64, 7), StyleRole::Number);
    let ms = |x: Option<f64>| SafeText::new(&x.map_or("-".to_owned(), |x| format!("{x:.1}"))).pad(10, Align::Right);
    line.push(ms(times.mean_ms), StyleRole::Number);
    line.push(ms(times.p50_ms), StyleRole::Number);
    line.push(ms(times.p95_ms), StyleRole::Number);
    line.push("  ", StyleRole::Text);
    if let Some(p95) = times.p95_ms.filter(|_| slowest > 0.0) {
        line.append(meter(p95 / slowest, 12, StyleRole::Series1, look));
    }
    line
}
