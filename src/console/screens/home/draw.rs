//! The first screen: the database, its contents, missing capabilities with reasons, and recent events.

mod work;

pub(super) use work::screens;

use ratatui::{buffer::Buffer, layout::Rect};

use crate::console::core::ClickTarget;
use crate::console::core::columns::row_name;
use crate::console::core::command::CommandId;
use crate::console::core::context::Context;
use crate::console::screens::home::RECENT_SHOWN;
use crate::console::screens::home::{DAY, HomeScreen, NeededStep, Standout, looked_at, monday};
use crate::console::view::{Drawn, live, words};
use crate::memory::query::{Capability, Page, StoreStatus};
use crate::memory::{Entity, Row, agreeing, time};
use crate::ui::chart::{CalendarHeat, StackedBar, StackedBars, meter};
use crate::ui::{
    Align, Look, NamedValue, PaneFrame, SafeText, Section, StyleRole, TextLine, figures, key_values, look as lay,
};

/// A line of the screen, with its click targets: first column and width.
struct HomeEntry {
    line: TextLine,
    leads: Vec<(u16, u16, usize)>,
    commands: Vec<(u16, u16, CommandId)>,
}

fn plain(line: TextLine) -> HomeEntry {
    HomeEntry { line, leads: Vec::new(), commands: Vec::new() }
}

fn entry(line: TextLine, number: usize) -> HomeEntry {
    HomeEntry { line, leads: vec![(0, u16::MAX, number)], commands: Vec::new() }
}

/// Dims lines of an earlier visit until they have been read again.
fn dimmed(mut lines: Vec<HomeEntry>, is_aged: bool) -> Vec<HomeEntry> {
    if is_aged {
        lines.iter_mut().flat_map(|entry| &mut entry.line.runs).for_each(|run| run.role = StyleRole::Stale);
    }
    lines
}

/// Draws the first screen: recent events and tasks above, the newest rows below or beside them.
pub fn draw(cx: &Context, home: &HomeScreen, look: &Look, area: Rect, buf: &mut Buffer, drawn: &mut Drawn) {
    const TWO_COLUMNS_FROM: u16 = 110;
    let parts = home.parts(cx);
    let first_screen: usize = parts.iter().map(Vec::len).sum();
    drawn.measures.home_entries = first_screen + screens(cx).len();
    let first_recent: usize = parts[..3].iter().map(Vec::len).sum();
    let news = live::news(&home.live, cx, look);
    if !look.is_beside(area.width, TWO_COLUMNS_FROM) || looked_at(cx).is_none() {
        let pane = PaneFrame { focused: true, note: news, ..PaneFrame::new("home") };
        let inside = padded(pane.render(area, buf, look));
        let width = usize::from(inside.width);
        let mut lines = first_lines(cx, home, width, look);
        lines.extend(dimmed(recent(cx, home, first_recent, width, look), home.aged));
        lines.extend(tables(cx, width, look));
        lines.extend(section("this database", width, look));
        lines.extend(about(cx, width, look));
        lines.extend(work::lines(cx, false, first_screen, width, look));
        lines.extend(missing(cx, width, look));
        column(&lines, home.selected, look, inside, buf, drawn);
        return;
    }
    let width = area.width * 9 / 20;
    let (left, right) = (Rect { width, ..area }, lay::right_of(area, width));
    let is_left = home.selected < first_recent || home.selected >= first_screen;
    let pane = PaneFrame { focused: is_left, ..PaneFrame::new(SafeText::limited(cx.database_name(), 40)) };
    let inside = padded(pane.render(left, buf, look));
    let width = usize::from(inside.width);
    let mut lines = first_lines(cx, home, width, look);
    lines.extend(section("this database", width, look));
    lines.extend(about(cx, width, look));
    lines.extend(work::lines(cx, true, first_screen, width, look));
    lines.extend(tables(cx, width, look));
    lines.extend(missing(cx, width, look));
    column(&lines, home.selected, look, inside, buf, drawn);
    let pane = PaneFrame { focused: !is_left, note: news, ..PaneFrame::new("lately") };
    let inside = padded(pane.render(right, buf, look));
    let used = lately(cx, home, look, inside, buf);
    let rest = lay::below(inside, used);
    let lines = dimmed(recent(cx, home, first_recent, usize::from(rest.width), look), home.aged);
    column(&lines, home.selected, look, rest, buf, drawn);
}

/// Lists the first entries at every width: news, tasks, notable rows, and contents.
fn first_lines(cx: &Context, home: &HomeScreen, width: usize, look: &Look) -> Vec<HomeEntry> {
    let mut lines = dimmed(since(cx, home, width, look), home.aged);
    lines.extend(dimmed(needs(cx, home, width, look), home.work_aged));
    lines.extend(dimmed(notable(cx, home, width, look), home.aged));
    lines.extend(holdings(cx, home, width, look));
    lines
}

/// Lists the events since the user's last visit.
fn since(cx: &Context, home: &HomeScreen, width: usize, look: &Look) -> Vec<HomeEntry> {
    const APART: usize = 3;
    let Some(since) = home.since(cx) else { return Vec::new() };
    let title = match &since.looked {
        Some(at) => format!("since you looked, {}", words::moment(at).as_str()),
        None => "your first visit (:tour shows you around)".to_owned(),
    };
    let has_outcomes = home.rows().iter().any(|row| !row.get("outcome").is_null());
    let mut line = TextLine::default();
    let is_part = since.looked.is_none() && since.more;
    let sign = match (since.looked.is_some(), since.more) {
        (true, false) => "+",
        (true, true) => "over ",
        (false, true) => newest(home),
        (false, false) => "",
    };
    let all = looked_at(cx).and_then(|entity| cx.count(entity)).filter(|_| is_part);
    let all = all.map(|(all, kind)| words::count(all, kind));
    match all {
        // If nothing computed from the newest rows alone follows, all rows are meant.
        Some(all) if !has_outcomes && since.mean.is_none() => line.push(all, StyleRole::Number),
        all => {
            line.push(sign, if since.looked.is_some() { StyleRole::Number } else { StyleRole::Text });
            line.push(figures::count(since.count as u64), StyleRole::Number);
            if let Some(all) = all {
                line.push(" of ", StyleRole::Text);
                line.push(all, StyleRole::Number);
            }
        }
    }
    let is_one = since.count == 1 && !is_part;
    let name = looked_at(cx)
        .map_or_else(|| "rows".to_owned(), |entity| if is_one { entity.title() } else { entity.plural().to_owned() });
    line.push(format!(" {name}"), StyleRole::Text);
    // A row written at the end of its episode may have started before the last visit.
    if since.looked.is_some() && looked_at(cx) == Some(Entity::Episode) {
        line.push(" started", StyleRole::Text);
    }
    let before = since.before;
    if has_outcomes {
        line.push("   ", StyleRole::Text);
        let role = if since.failed > 0 { StyleRole::Bad } else { StyleRole::Muted };
        line.push(format!("{} failed", since.failed), role);
        if let Some((failed, _)) = before {
            line.push(format!(" ({failed} in the same time before)"), StyleRole::Muted);
        }
    }
    let mut rows = line.flow(width, look);
    if let Some(mean) = since.mean {
        let named = if home.rows().iter().any(|row| row.number("utility").is_some()) { "utility" } else { "reward" };
        let mut worth = TextLine::of(format!("{named} "), StyleRole::Label);
        worth.append(meter(mean, 6, StyleRole::Accent, look));
        worth.push(format!(" {mean:.2}"), StyleRole::Number);
        if let Some((_, Some(then))) = before {
            worth.push(format!(" ({:+.2})", mean - then), StyleRole::Muted);
        }
        // A bar stays with its name and its number.
        match rows.last_mut().filter(|last| last.width() + APART + worth.width() <= width) {
            Some(last) => {
                last.push_blanks(APART);
                last.append(worth);
            }
            None => rows.extend(worth.flow(width, look)),
        }
    }
    let mut lines = vec![plain(Section::new(title.as_str()).line(width, look))];
    lines.extend(rows.into_iter().map(plain));
    lines
}

/// Lists the tasks that wait for the user: each line leads to the place for it.
fn needs(cx: &Context, home: &HomeScreen, width: usize, look: &Look) -> Vec<HomeEntry> {
    const COUNT: usize = 6;
    if cx.past.is_some() {
        return Vec::new();
    }
    let needs = home.needs(cx);
    let counted = |need: &NeededStep| match need.count {
        0 => SafeText::default(),
        count => SafeText::join(&[figures::count(count), if need.more { "+" } else { "" }.into()], ""),
    };
    let widest = needs.iter().map(|need| counted(need).width()).max().unwrap_or(0).max(COUNT);
    let mut lines: Vec<HomeEntry> = section("needs you", width, look).into();
    for (index, need) in needs.iter().enumerate() {
        let mut line =
            TextLine::of(look.pad(&SafeText::new(cx.key(need.by).unwrap_or_default()), 4, Align::Left), StyleRole::Key);
        line.push(counted(need).pad(widest, Align::Right), StyleRole::Number);
        line.push("  ", StyleRole::Text);
        line.push(SafeText::limited(&need.text, width.saturating_sub(line.width())), need.role);
        line.push_blanks(2);
        let left = width.saturating_sub(line.width());
        line.push(SafeText::limited(&need.note, left), StyleRole::Muted);
        lines.push(entry(line, index));
    }
    let looking = cx.health.pending.is_some() || home.pending_work.is_some() && home.work.is_none();
    let reading = home.work.is_none() && home.work_failure.is_none();
    if let Some(failure) = &home.work_failure {
        let message = SafeText::limited(&failure.message, 200);
        lines.extend(message.wrap(width).map(|part| plain(TextLine::of(part, StyleRole::Muted))));
    }
    let mut told: Vec<SafeText> = Vec::new();
    if cx.health.aged && !cx.health.found.is_empty() && home.work_failure.is_none() {
        told.push("other processes may have written since: r checks again".into());
    }
    if looking || !cx.health.left.is_empty() || cx.health.failure.is_some() {
        told.push(crate::console::view::health::progress(&cx.health));
    }
    if needs.is_empty() && !looking && !reading {
        told.push("nothing waits".into());
    }
    if told.is_empty() {
        return lines;
    }
    let told = SafeText::join(&told, "; ");
    lines.extend(told.wrap(width).map(|part| plain(TextLine::of(part, StyleRole::Muted))));
    lines
}

/// Lists notable values of the newest rows, in one strip: each entry leads to those rows.
fn notable(cx: &Context, home: &HomeScreen, width: usize, look: &Look) -> Vec<HomeEntry> {
    let first = home.needs(cx).len();
    let cell = |(index, standout): (usize, &Standout)| {
        let line = TextLine::default().with_glyph(look.glyphs.diamond, StyleRole::Warn);
        let line = line.with(format!(" {} ", standout.count), StyleRole::Number);
        let room = width.saturating_sub(line.width());
        (first + index, line.with(SafeText::limited(&standout.text, room), StyleRole::Text))
    };
    let standouts = home.standouts();
    if standouts.is_empty() {
        return Vec::new();
    }
    let title = format!("of {}", seen(cx, home, home.counted().len()).as_str());
    let mut lines: Vec<HomeEntry> = section(&title, width, look).into();
    lines.extend(strip(standouts.iter().enumerate().map(cell), width));
    lines
}

/// Entries next to each other, in as many lines as needed.
fn strip(cells: impl Iterator<Item = (usize, TextLine)>, width: usize) -> Vec<HomeEntry> {
    const APART: usize = 3;
    let mut lines = Vec::new();
    let mut line = plain(TextLine::default());
    for (number, cell) in cells {
        let used = line.line.width();
        if used > 0 && used + APART + cell.width() > width {
            lines.push(std::mem::replace(&mut line, plain(TextLine::default())));
        } else if used > 0 {
            line.line.push_blanks(APART);
        }
        line.leads.push((line.line.width() as u16, cell.width() as u16, number));
        line.line.append(cell);
    }
    lines.push(line);
    lines
}

fn padded(area: Rect) -> Rect {
    Rect { x: area.x + 1, width: area.width.saturating_sub(2), ..area }
}

/// Draws lines so that the selected entry is visible.
fn column(lines: &[HomeEntry], selected: usize, look: &Look, area: Rect, buf: &mut Buffer, drawn: &mut Drawn) {
    // The blank line above a part separates it from the part before.
    let is_blank = |line: &HomeEntry| line.line.runs.is_empty();
    let lines = &lines[usize::from(lines.first().is_some_and(is_blank))..];
    let height = usize::from(area.height);
    let leads_to = |line: &HomeEntry| line.leads.iter().any(|(_, _, number)| *number == selected);
    let at = lines.iter().position(leads_to);
    let first = at.map_or(0, |at| (at + 2).saturating_sub(height)).min(lines.len().saturating_sub(height));
    // In the frame, where no text is hidden: marks that there is more.
    let above = (first > 0, area.y, look.glyphs.arrow_up);
    let below = (first + height < lines.len(), area.bottom().saturating_sub(1), look.glyphs.arrow_down);
    for (_, y, glyph) in [above, below].into_iter().filter(|(there, ..)| *there && height > 1) {
        look.glyph(area.right() + 1, y, buf, glyph, StyleRole::Muted);
    }
    for (index, entry) in lines.iter().skip(first).take(height).enumerate() {
        let place = lay::row(area, index as u16);
        entry.line.render(place, buf, look);
        let part =
            |x: u16, width: u16| Rect { x: place.x + x, width: width.min(place.width.saturating_sub(x)), ..place };
        for (x, width, number) in &entry.leads {
            let place = part(*x, *width);
            drawn.hits.add(place, ClickTarget::HomeEntry(*number));
            if *number == selected {
                look.select(place, buf, StyleRole::Selection);
                if place.x > 0 {
                    look.glyph(place.x - 1, place.y, buf, look.glyphs.cursor, StyleRole::Accent);
                }
            }
        }
        // A click gives the command.
        for (x, width, command) in &entry.commands {
            drawn.hits.add(part(*x, *width), ClickTarget::Command(*command));
        }
    }
}

fn section(title: &str, width: usize, look: &Look) -> [HomeEntry; 2] {
    [plain(TextLine::default()), plain(Section::new(title).line(width, look))]
}

fn about(cx: &Context, width: usize, look: &Look) -> Vec<HomeEntry> {
    let layouts: Vec<SafeText> = cx.opened.layouts.iter().map(|name| SafeText::limited(name, 60)).collect();
    let mut pairs = vec![NamedValue::new("location", SafeText::limited(&cx.opened.location, 200))];
    if let Some(status) = &cx.status {
        let engine = format!("{} {}", status.database.engine, status.database.version);
        pairs.push(NamedValue::new("engine", SafeText::limited(&engine, 100)));
    }
    let layouts = if layouts.is_empty() { "no known layout fits".into() } else { SafeText::join(&layouts, ", ") };
    pairs.push(NamedValue::new("layout", layouts));
    let lock = cx.key_for(CommandId::Lock);
    let session = match (cx.changing.unlocked, cx.opened.production) {
        (false, _) => match cx.never_changes() {
            Some((reason, _)) => format!("read-only: {reason}"),
            None => format!("read-only: {lock} unlocks"),
        },
        (true, false) => format!("unlocked: {lock} locks again"),
        (true, true) => format!("unlocked, and others depend on it: {lock} locks again"),
    };
    pairs.push(NamedValue::new("session", SafeText::limited(&session, 200)));
    let mut lines: Vec<HomeEntry> = key_values(&pairs, width, look).into_iter().map(plain).collect();
    let Some(status) = &cx.status else {
        let text = if cx.status_failure.is_some() { "its state could not be read" } else { "counting" };
        lines.push(plain(TextLine::of(text, StyleRole::Muted)));
        return lines;
    };
    let missing = status.layouts.iter().flat_map(|layout| &layout.missing);
    let pending = status.migrations.pending.iter().map(|name| format!("pending migration: {name}"));
    for note in status.database.notes.iter().chain(missing).cloned().chain(pending) {
        let line = TextLine::default().with_glyph(look.glyphs.info, StyleRole::Info).with(" ", StyleRole::Text);
        for part in line.with(SafeText::limited(&note, 400), StyleRole::Text).flow(width, look) {
            lines.push(plain(part));
        }
    }
    lines
}

/// Lists the counts of the database's contents, in one strip: each count leads to its list.
fn holdings(cx: &Context, home: &HomeScreen, width: usize, look: &Look) -> Vec<HomeEntry> {
    let parts = home.parts(cx);
    if parts[2].is_empty() {
        return Vec::new();
    }
    let first = parts[0].len() + parts[1].len();
    let mut lines: Vec<HomeEntry> = section("what it holds", width, look).into();
    let cell = |(number, entity): (usize, Entity)| {
        let cell = TextLine::of(entity.plural(), StyleRole::Text);
        // The past is not counted.
        if cx.past.is_some() {
            return (first + number, cell);
        }
        let cell = cell.with(" ", StyleRole::Text);
        let cell = match cx.count(entity) {
            Some((0, _)) => cell.with("0", StyleRole::Muted),
            Some((count, kind)) => cell.with(words::count(count, kind), StyleRole::Number),
            None => cell.with_glyph(look.glyphs.none, StyleRole::Muted),
        };
        (first + number, cell)
    };
    lines.extend(dimmed(strip(cx.held().enumerate().map(cell), width), cx.status_failure.is_some()));
    if cx.past.is_some() {
        lines.push(plain(TextLine::of("how many there were then is unknown", StyleRole::Muted)));
    }
    lines
}

/// Lists missing capabilities with reason and remedy; entries with the same reason are grouped.
fn missing(cx: &Context, width: usize, look: &Look) -> Vec<HomeEntry> {
    const INDENT: usize = 17;
    let mut groups: Vec<(&Capability, Vec<&str>)> = Vec::new();
    for capability in cx.opened.capabilities.iter().filter(|c| !c.available) {
        let name = Entity::parse(&capability.name).map_or(capability.name.as_str(), |entity| entity.plural());
        // A table that is named in the reason of its entities is not named again.
        let is_told = |reason: &String| Entity::parse(&capability.name).is_none() && reason.contains(name);
        match groups.iter_mut().find(|(c, _)| (&c.reason, &c.remedy) == (&capability.reason, &capability.remedy)) {
            Some(_) if capability.reason.as_ref().is_some_and(is_told) => {}
            Some((_, names)) => names.push(name),
            None => groups.push((capability, vec![name])),
        }
    }
    if groups.is_empty() {
        return Vec::new();
    }
    let mut lines: Vec<HomeEntry> = section("cannot be shown or done here", width, look).into();
    for (capability, names) in groups {
        let names = SafeText::limited(&names.join(", "), 300);
        if names.width() < INDENT {
            let line = TextLine::of(names.pad(INDENT, Align::Left), StyleRole::Stale);
            let reason = SafeText::limited(capability.reason.as_deref().unwrap_or("not here"), 300);
            lines.extend(hanging(&line.with(reason, StyleRole::Muted), width, INDENT));
        } else {
            lines.extend(names.wrap(width).map(|part| plain(TextLine::of(part, StyleRole::Stale))));
            let mut line = TextLine::default();
            line.push_blanks(INDENT);
            line.push(SafeText::limited(capability.reason.as_deref().unwrap_or("not here"), 300), StyleRole::Muted);
            lines.extend(hanging(&line, width, INDENT));
        }
        if let Some(remedy) = &capability.remedy {
            let mut line = TextLine::default();
            line.push_blanks(INDENT);
            line.push(look.arrow(), StyleRole::Muted);
            line.push(" ", StyleRole::Text);
            line.push(SafeText::limited(remedy, 300), StyleRole::Text);
            lines.extend(hanging(&line, width, INDENT + 2));
        }
    }
    lines
}

/// The tables, if no layout describes them.
fn tables(cx: &Context, width: usize, look: &Look) -> Vec<HomeEntry> {
    let unknown = |status: &&StoreStatus| status.layouts.is_empty() && !status.tables.is_empty();
    let Some(status) = cx.status.as_deref().filter(unknown) else { return Vec::new() };
    let mut lines: Vec<HomeEntry> = section("unknown tables", width, look).into();
    for table in &status.tables {
        let mut line = TextLine::of(SafeText::limited(&table.name, 40).pad(40, Align::Left), StyleRole::Text);
        let rows = table.rows.and_then(|rows| u64::try_from(rows).ok());
        line.push(rows.map(figures::count).unwrap_or_default().pad(14, Align::Right), StyleRole::Number);
        lines.push(plain(line));
    }
    lines
}

/// A line in rows of `width` columns, those after the first indented.
fn hanging(line: &TextLine, width: usize, indent: usize) -> Vec<HomeEntry> {
    if line.width() <= width {
        return vec![plain(line.clone())];
    }
    let mut rows: Vec<HomeEntry> = Vec::new();
    let (first, rest) = line.runs.split_at(line.runs.len().saturating_sub(1));
    let head = TextLine { runs: first.to_vec() };
    let text = rest.first();
    for (index, part) in text.iter().flat_map(|run| run.text.wrap(width.saturating_sub(indent).max(8))).enumerate() {
        let mut row = if index == 0 { head.clone() } else { TextLine::default() };
        if index > 0 {
            row.push_blanks(indent);
        }
        row.push(part, text.map_or(StyleRole::Text, |run| run.role));
        rows.push(plain(row));
    }
    rows
}

/// The newest rows.
fn recent(cx: &Context, home: &HomeScreen, first: usize, width: usize, look: &Look) -> Vec<HomeEntry> {
    let mut lines = Vec::new();
    let Some(entity) = looked_at(cx) else { return lines };
    lines.extend(section(&format!("newest {}", entity.plural()), width, look));
    let Some(page) = &home.recent else {
        let text = match &home.failure {
            Some(failure) => SafeText::limited(&failure.message, 300),
            None => "reading".into(),
        };
        lines.push(plain(TextLine::of(text, StyleRole::Muted)));
        return lines;
    };
    if page.rows.is_empty() {
        lines.push(plain(TextLine::of("there are none yet", StyleRole::Muted)));
    }
    let has_outcomes = page.rows.iter().any(|row| !row.get("outcome").is_null());
    let has_states = has_outcomes || page.rows.iter().any(|row| row.text("kind").is_some());
    for (index, row) in page.rows.iter().take(RECENT_SHOWN).enumerate() {
        lines.push(entry(recent_line(cx, row, (has_outcomes, has_states), width, look), first + index));
    }
    lines
}

/// Builds the line of a recent row: its age, outcome or kind, name, agent and user.
fn recent_line(
    cx: &Context,
    row: &Row,
    (has_outcomes, has_states): (bool, bool),
    width: usize,
    look: &Look,
) -> TextLine {
    const PEOPLE_FROM: usize = 60;
    const NAME_LEAST: usize = 24;
    let at = row.text(row.entity.time_column()).unwrap_or_default();
    let mut line =
        TextLine::of(words::age(at, cx.now).pad(10, Align::Left), StyleRole::Muted).with("  ", StyleRole::Text);
    let state = match (row.entity.column("outcome"), row.text("outcome"), row.text("kind")) {
        (Some(_), outcome, _) if has_outcomes => words::state(outcome.unwrap_or("unknown"), look),
        (_, _, kind) => TextLine::of(SafeText::limited(kind.unwrap_or_default(), 16), StyleRole::Accent),
    };
    let used = state.width();
    // Names begin in one column, also that of a row without a kind.
    if has_states {
        line.append(state);
        line.push_blanks(11_usize.saturating_sub(used) + 1);
    }
    let room = width.saturating_sub(line.width());
    let named = |column: &str| {
        let name = cx.names.named_by(row, column).or_else(|| row.text(column));
        SafeText::limited(name.unwrap_or_default(), 18)
    };
    let mut people: Vec<SafeText> = if width < PEOPLE_FROM {
        Vec::new()
    } else {
        ["agent_id", "user_id"].into_iter().map(named).filter(|name| name.width() > 0).collect()
    };
    while !people.is_empty() && SafeText::join(&people, "  ").width() + 2 + NAME_LEAST > room {
        people.pop();
    }
    let people = SafeText::join(&people, "  ");
    // Many memories are titled by the place where they are filed.
    let told = row.text("text").map_or_else(|| row_name(row), str::to_owned);
    let name = SafeText::limited(&told, room.saturating_sub(people.width() + 2));
    line.push(name, StyleRole::Text);
    line.push_blanks(width.saturating_sub(line.width() + people.width()));
    line.with(people, StyleRole::Muted)
}

/// Activity by day and how things went, of the newest rows; the lines used, a blank one included.
fn lately(cx: &Context, home: &HomeScreen, look: &Look, area: Rect, buf: &mut Buffer) -> u16 {
    const HEAT: u16 = 8;
    const LEAST: u16 = 30;
    const OUTCOMES: usize = 6;
    let Some(page) = home.recent.as_ref().filter(|page| !page.rows.is_empty()) else { return 0 };
    if area.height < LEAST {
        return 0;
    }
    look.text(lay::row(area, 0), buf, &seen(cx, home, page.rows.len()), StyleRole::Muted);
    let (days, unknown, labels) = calendar(page);
    let heat = Rect { y: area.y + 1, height: HEAT, ..area };
    CalendarHeat { days: &days, unknown, labels: &labels }.render(heat, buf, look);
    let beside = lay::right_of(heat, (days.len().div_ceil(7) * 2 + 8).min(usize::from(heat.width / 2)) as u16);
    weekly(home, look, beside, buf);
    let mut used = HEAT + 2;
    let outcomes = home.outcomes();
    let shown = if outcomes.len() > OUTCOMES { OUTCOMES - 1 } else { outcomes.len() };
    for (word, count) in &outcomes[..shown] {
        let line = outcome_line(word, *count, page.rows.len(), usize::from(area.width), look);
        line.render(lay::row(area, used), buf, look);
        used += 1;
    }
    if let rest @ [_, ..] = &outcomes[shown..] {
        let rows = figures::count(rest.iter().map(|(_, count)| *count as u64).sum());
        let words = agreeing(rest.len(), &format!("and {{#}} more {{outcome|outcomes}}, of {} rows", rows.as_str()));
        look.text(lay::row(area, used), buf, &words.into(), StyleRole::Muted);
        used += 1;
    }
    used + 1
}

/// The outcomes of the newest weeks, each a bar of its parts.
fn weekly(home: &HomeScreen, look: &Look, area: Rect, buf: &mut Buffer) {
    const LEAST: u16 = 44;
    let weeks = home.weeks();
    if area.width < LEAST || weeks.len() < 2 {
        return;
    }
    let legend = [
        ("success".into(), StyleRole::Good),
        ("partial".into(), StyleRole::Warn),
        ("failure".into(), StyleRole::Bad),
        ("other".into(), StyleRole::Muted),
    ];
    let room = usize::from(area.height).saturating_sub(1);
    let bars: Vec<StackedBar> = weeks
        .iter()
        .take(room)
        .map(|(week, counts)| StackedBar {
            label: format!("from {week}").into(),
            parts: counts.iter().map(|count| *count as f64).collect(),
            total: format!("{}", counts.iter().sum::<usize>()).into(),
        })
        .collect();
    let bars = StackedBars { bars: &bars, legend: &legend, selected: None };
    let lines = bars.legend_lines(usize::from(area.width), look).into_iter().take(1);
    for (index, line) in lines.chain(bars.lines(usize::from(area.width), look)).enumerate() {
        line.render(lay::row(area, index as u16), buf, look);
    }
}

/// An outcome with its share as a bar.
fn outcome_line(word: &str, count: usize, of: usize, width: usize, look: &Look) -> TextLine {
    let mut line = words::state(word, look);
    line.push_blanks(14_usize.saturating_sub(line.width()));
    line.push(figures::column(count as u64, 5), StyleRole::Number);
    line.push("  ", StyleRole::Text);
    let room = width.saturating_sub(line.width()).min(60);
    line.append(meter(count as f64 / of.max(1) as f64, room, words::state_role(word), look));
    line
}

/// Names the rows that the charts and the notable entries are about.
fn seen(cx: &Context, home: &HomeScreen, count: usize) -> SafeText {
    let all = home.recent.as_ref().is_some_and(|page| page.next.is_none());
    let name = looked_at(cx).map_or("rows", Entity::plural);
    let count = figures::count(count as u64);
    format!("{}{} {name}", if all { "all " } else { newest(home) }, count.as_str()).into()
}

/// Words before the number of the rows read, unless newer ones wait to be shown.
fn newest(home: &HomeScreen) -> &'static str {
    if home.live.fresh == 0 { "the newest " } else { "" }
}

/// Rows per day from a Monday on, the number of days before the first one with all rows read, and the months above the
/// weeks.
fn calendar(page: &Page) -> (Vec<u64>, usize, Vec<(usize, SafeText)>) {
    const LONGEST: i64 = 7 * 60;
    let days: Vec<i64> = page
        .rows
        .iter()
        .filter_map(|row| row.text(row.entity.time_column()).and_then(time::epoch_micros))
        .map(|micros| micros.div_euclid(DAY))
        .collect();
    let (Some(last), Some(first)) = (days.iter().max().copied(), days.iter().min().copied()) else {
        return (Vec::new(), 0, Vec::new());
    };
    let is_cut = page.next.is_some() && first >= last - LONGEST;
    let first = first.max(last - LONGEST);
    let monday = monday(first);
    // Some rows of the oldest day were not read; if it is the only day, it is shown all the same.
    let unknown = if is_cut { (first - monday) as usize + usize::from(first < last) } else { 0 };
    let mut counts = vec![0; (last - monday + 1).max(0) as usize];
    for day in days {
        if let Some(count) = usize::try_from(day - monday).ok().and_then(|at| counts.get_mut(at)) {
            *count += 1;
        }
    }
    (counts, unknown, months(monday, last))
}

fn months(monday: i64, last: i64) -> Vec<(usize, SafeText)> {
    const NAMES: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let month = |day: i64| {
        let text = time::from_epoch(day * 86_400, time::EpochUnit::Seconds)?;
        text.get(5..7)?.parse::<usize>().ok()?.checked_sub(1)
    };
    let mut labels = Vec::new();
    let mut before = None;
    for (week, day) in (monday..=last).step_by(7).enumerate() {
        let now = month(day);
        if now != before {
            labels.extend(now.and_then(|m| NAMES.get(m)).map(|name| (week, SafeText::new(name))));
            before = now;
        }
    }
    labels
}
