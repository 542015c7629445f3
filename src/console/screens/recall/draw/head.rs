//! Head of the recall screen: the situation, the ranking, the owners, and notes on the answer.

use ratatui::{buffer::Buffer, layout::Rect};

use crate::console::core::command::command;
use crate::console::core::{ClickTarget, CommandId, Context, row_name};
use crate::console::screens::recall::{RankingSide, RecallCommand, RecallScreen};
use crate::console::screens::recall::{can_rank, can_rank_any};
use crate::console::view::{Drawn, told, words};
use crate::memory::Entity;
use crate::recall::rank::Ranking;
use crate::ui::{Look, PaneFrame, SafeText, StyleRole, TextLine, look as lay};

/// Least columns for a label of the rankings.
const LABELLED: u16 = 70;
/// Columns of a ranking beside its name: its key, its mark, and blanks.
const KEYED: usize = 8;
/// Most characters of a situation that are considered.
const SHOWN: usize = 400;

/// Draws it. Returns the number of rows used.
pub fn draw(cx: &Context, recall: &RecallScreen, look: &Look, body: Rect, buf: &mut Buffer, drawn: &mut Drawn) -> u16 {
    const FRAMED: u16 = 24;
    let framed = body.height >= FRAMED;
    let (frame, most) = if framed { (2, 4) } else { (0, 2) };
    let notes = note_lines(cx, recall, usize::from(body.width.saturating_sub(2 + frame)), look);
    let told = notes.len().min(most);
    let height = 3 + told as u16 + frame;
    let area = Rect { height: height.min(body.height), ..body };
    let inside = if framed {
        let inside = PaneFrame::new("situation").render(area, buf, look);
        lay::padded(inside)
    } else {
        lay::padded(area)
    };
    situation(cx, recall, usize::from(inside.width)).render(lay::row(inside, 0), buf, look);
    drawn.hits.add(lay::row(inside, 0), ClickTarget::Command(CommandId::Recall(RecallCommand::Write)));
    rankings(cx, recall, look, lay::row(inside, 1), buf, drawn);
    owners(cx, recall, look).render(lay::row(inside, 2), buf, look);
    for (at, note) in notes.iter().take(told).enumerate() {
        let place = lay::row(inside, 3 + at as u16);
        if told < notes.len() && at + 1 == told {
            TextLine::of("  more in the reasons below", StyleRole::Muted).render(place, buf, look);
        } else {
            note.render(place, buf, look);
        }
    }
    area.height
}

/// The notes in lines of this width, each after a sign.
fn note_lines(cx: &Context, recall: &RecallScreen, width: usize, look: &Look) -> Vec<TextLine> {
    let lines = |note: &str| {
        let mut head = TextLine::default().with_glyph(look.glyphs.warning, StyleRole::Warn).with(" ", StyleRole::Text);
        let rows: Vec<SafeText> =
            SafeText::limited(&told(&cx.in_title(note)), SHOWN).wrap(width.saturating_sub(2)).collect();
        let line = move |row: SafeText| {
            std::mem::replace(&mut head, TextLine::of("  ", StyleRole::Text)).with(row, StyleRole::Warn)
        };
        rows.into_iter().map(line).collect::<Vec<_>>()
    };
    recorded(recall).iter().map(String::as_str).chain(notes(recall)).flat_map(lines).collect()
}

/// Says how many of the rows that were recalled then are recalled now.
fn recorded(recall: &RecallScreen) -> Option<String> {
    let (recorded, found) = (&recall.recorded, recall.side().found.as_ref()?);
    let here = found.answer.rows.iter().filter(|item| recorded.holds(item.ranked.row.id())).count();
    let at = words::time(&recorded.at, false);
    let of = recorded.ids.len();
    let marked = if here > 0 { " (marked)" } else { "" };
    (of > 0).then(|| format!("recorded {at}: {of} recalled, {here} of them here{marked}; this is ranked as of now"))
}

/// Collects the notes on the answers, each once.
fn notes(recall: &RecallScreen) -> Vec<&str> {
    let mut notes: Vec<&str> = Vec::new();
    for side in [Some(&recall.left), recall.right.as_ref()].into_iter().flatten() {
        for note in side.found.iter().flat_map(|found| &found.answer.notes) {
            if !notes.contains(&note.as_str()) {
                notes.push(note);
            }
        }
    }
    notes
}

fn situation(cx: &Context, recall: &RecallScreen, width: usize) -> TextLine {
    let asked = &recall.inquiry;
    if let Some(id) = &asked.like {
        let kind = recall.situation().map_or_else(|| "row".to_owned(), |row| row.entity.title());
        let mut line = TextLine::of("as in ", StyleRole::Muted).with(kind, StyleRole::Label).with(" ", StyleRole::Text);
        let id = SafeText::limited(id, 60);
        let Some(row) = recall.situation() else { return line.with(id, StyleRole::Accent) };
        let room = width.saturating_sub(line.width() + id.width() + 2).max(12);
        line.push(SafeText::limited(&row_name(row), room), StyleRole::Accent);
        line.push("  ", StyleRole::Text);
        return line.with(id, StyleRole::Muted);
    }
    match asked.text.as_deref().filter(|text| !text.trim().is_empty()) {
        Some(text) if cx.masking.is_on() => {
            TextLine::of(format!("a text of {} characters", text.chars().count()), StyleRole::Masked)
        }
        Some(text) => TextLine::of(SafeText::limited(text, SHOWN), StyleRole::Text),
        None if !can_rank_any(cx) => TextLine::of("nothing here is recalled", StyleRole::Muted),
        None => TextLine::of("/", StyleRole::Key)
            .with(" writes a situation; ", StyleRole::Muted)
            .with("W", StyleRole::Key)
            .with(" on a row takes its own", StyleRole::Muted),
    }
}

/// The rankings, that in use marked, those that this database cannot do dimmed.
fn rankings(cx: &Context, recall: &RecallScreen, look: &Look, place: Rect, buf: &mut Buffer, drawn: &mut Drawn) {
    let used = &recall.side().way;
    let label = if place.width >= LABELLED { "ranked  " } else { "" };
    let mut x = place.x + TextLine::of(label, StyleRole::Label).render(place, buf, look);
    let named: usize = Ranking::ALL.into_iter().map(|ranking| KEYED + ranking.name().len()).sum();
    for (at, ranking) in Ranking::ALL.into_iter().enumerate() {
        let (can, on) = (can_rank(cx, ranking).is_ok(), used.ranking == ranking);
        let key_role = if can { StyleRole::Key } else { StyleRole::Stale };
        let role = match (can, on) {
            (false, _) => StyleRole::Stale,
            (true, true) => StyleRole::Accent,
            (true, false) => StyleRole::Text,
        };
        let mark = if on { look.glyphs.dot } else { look.glyphs.ring };
        let mut line =
            TextLine::of(format!("n {}", at + 1), key_role).with(" ", StyleRole::Text).with_glyph(mark, role);
        // If there is no room for all names, the current one is kept.
        if on || named <= usize::from(place.width) {
            line = line.with(" ", StyleRole::Text).with(ranking.name(), role);
        }
        let width = (line.width() as u16).min(place.right().saturating_sub(x));
        let spot = Rect { x, width, ..place };
        line.render(spot, buf, look);
        drawn.hits.add(spot, ClickTarget::Command(CommandId::Recall(RecallCommand::Rank(ranking))));
        x = (x + width + 2).min(place.right());
    }
    let mut more = TextLine::default();
    if let Some(named) = policy(recall.side()) {
        more.push("by policy ", StyleRole::Muted);
        more.push(SafeText::limited(&named, 40), StyleRole::Accent);
        more.push("  ", StyleRole::Text);
    }
    if let Some(other) = recall.other() {
        more.push("next to ", StyleRole::Muted);
        more.push(SafeText::limited(&other.way.name(), 60), StyleRole::Accent);
    } else if let Err((reason, _)) = can_rank(cx, used.ranking) {
        more.push(SafeText::limited(&reason, 120), StyleRole::Warn);
    }
    let room = place.right().saturating_sub(x);
    let help = command(CommandId::Recall(RecallCommand::Rank(used.ranking))).map_or("", |command| command.help);
    if more.width() == 0 && help.chars().count() < usize::from(room) {
        more.push(help, StyleRole::Muted);
    }
    more.render(Rect { x, width: room, ..place }, buf, look);
}

/// The policy that ranked, else the requested one.
fn policy(side: &RankingSide) -> Option<String> {
    if let Some(used) = side.found.as_ref().and_then(|found| found.answer.policy.as_ref()) {
        let named = used.version.map_or_else(|| used.id.clone(), |version| format!("version {version}"));
        return Some(if side.way.policy.is_some() { named } else { format!("{named} (in use)") });
    }
    let asked = side.way.policy.clone()?;
    Some(side.way.version.map_or(asked, |version| format!("version {version}")))
}

/// Names the owners of the ranked memories, their number, and filters.
fn owners(cx: &Context, recall: &RecallScreen, look: &Look) -> TextLine {
    let asked = recall.asked(recall.side());
    let mut line = TextLine::default();
    let mut part = |name: &'static str, value: SafeText, set: bool| {
        if line.width() > 0 {
            line.push("  ", StyleRole::Text);
            line.push_glyphs(look.glyphs.separator, 1, StyleRole::Muted);
            line.push("  ", StyleRole::Text);
        }
        line.push(name, StyleRole::Label);
        line.push(" ", StyleRole::Text);
        line.push(value, if set { StyleRole::Accent } else { StyleRole::Muted });
    };
    let k = recall.side().found.as_ref().map_or_else(|| asked.rows(), |found| found.answer.k);
    part("first", format!("{} rows", asked.k.unwrap_or(k)).into(), asked.k.is_some());
    let all = |what: &'static str| SafeText::from(what);
    let named = |entity: Entity, id: &str| {
        SafeText::limited(cx.names.of(entity, id).filter(|_| !cx.masking.is_on()).unwrap_or(id), 40)
    };
    let agent = asked.agent.as_ref().map(|id| named(Entity::Agent, id));
    let user = asked.user.as_ref().map(|id| named(Entity::Subject, &cx.masking.person(id)));
    let own_bank = recall.situation().is_some_and(|row| row.entity == Entity::Case);
    if own_bank && asked.ranking == Ranking::Cases && agent.is_none() && user.is_none() {
        part("bank", all("that of the case"), false);
    } else {
        part("agent", agent.clone().unwrap_or_else(|| all("all")), agent.is_some());
        part("user", user.clone().unwrap_or_else(|| all("all")), user.is_some());
    }
    match asked.ranking {
        Ranking::Proven => {
            let from_row = if asked.like.is_some() { "as the row" } else { "none" };
            for (name, value) in [("domain", &asked.domain), ("topic", &asked.topic)] {
                part(name, value.as_ref().map_or_else(|| all(from_row), |v| SafeText::limited(v, 40)), value.is_some());
            }
        }
        Ranking::Similar => {
            let workflow = asked.workflow.as_ref().map(|name| SafeText::limited(name, 40));
            part("workflow", workflow.clone().unwrap_or_else(|| all("all")), workflow.is_some());
            part("outcomes", all(if asked.all_outcomes { "all" } else { "successes" }), asked.all_outcomes);
        }
        Ranking::Boosted | Ranking::Cases => {}
    }
    line
}
