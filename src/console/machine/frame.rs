//! Frame around every screen: current place, available screens, and keys.

use ratatui::{buffer::Buffer, layout::Rect};

use super::model::Model;
use crate::console::core::command::{COMMANDS, CommandId, CommandScope, ConsoleCommand, command};
use crate::console::core::context::{self, OpenBeside};
use crate::console::core::jobs::LiveJob;
use crate::console::core::key_map::KeyMeaning;
use crate::console::core::{ClickTarget, Key};
use crate::console::view::keys::key_name;
use crate::console::view::live::new_rows;
use crate::console::view::{Drawn, jobs, words};
use crate::ui::scroll::LineWindow;
use crate::ui::{
    Align, Badge, Breadcrumbs, CardTone, Footer, Glyph, KeyHint, Look, PaneFrame, SafeText, StyleRole, TabLabel, Tabs,
    TextLine, ToastLine,
};

/// Draws the frame; what is left for the screen itself.
pub fn draw(model: &Model, look: &Look, area: Rect, buf: &mut Buffer, drawn: &mut Drawn) -> Rect {
    const NAVIGATION_FROM: u16 = 18;
    let line = |y: u16| Rect { y: area.y + y, height: 1, ..area };
    top(model, look, line(0), buf);
    let mut used = 1;
    if area.height >= NAVIGATION_FROM {
        navigation(model, look, line(1), buf, drawn);
        used = 2;
    }
    let last = line(area.height - 1);
    let told = told(model, last).map_or(0, |toast| toast.width(look) as u16);
    footer(model, look, Rect { width: last.width.saturating_sub(told), ..last }, buf, drawn);
    Rect { y: area.y + used, height: area.height - used - 1, ..area }
}

fn top(model: &Model, look: &Look, line: Rect, buf: &mut Buffer) {
    let mut crumbs = vec![SafeText::limited(model.context.database_name(), 40)];
    crumbs.extend(model.crumbs().iter().map(|crumb| SafeText::limited(crumb, 80)));
    let mut badges = beside(&model.context.beside, usize::from(line.width) / 3, look);
    if line.width >= 90 {
        badges.extend(
            model.context.opened.layouts.iter().map(|name| Badge::new(SafeText::limited(name, 30), StyleRole::Label)),
        );
    }
    if let Some(past) = &model.context.past {
        let at = words::time(&past.at, false);
        let (lead, role) = if model.screen().shows_past() {
            ("as of ", StyleRole::Warn)
        } else {
            ("now, not as of ", StyleRole::Muted)
        };
        badges.push(Badge::new(SafeText::join(&[lead.into(), at], ""), role));
    }
    if line.width >= 120 {
        badges.push(Badge::new(model.context.settings.zone.name(model.context.now), StyleRole::Label));
    }
    if model.context.masking.is_on() {
        badges.push(Badge::new("masked", StyleRole::Masked));
    }
    if model.context.opened.production {
        badges.push(Badge::new(signed(look.glyphs.warning, "PRODUCTION"), StyleRole::Production));
    }
    badges.push(if model.context.changing.unlocked {
        Badge::new(signed(look.glyphs.edit, "unlocked"), StyleRole::Writable)
    } else {
        Badge::new(signed(look.glyphs.lock, "read-only"), StyleRole::ReadOnly)
    });
    Breadcrumbs { crumbs, badges }.render(line, buf, look);
}

/// The other databases that are open, each with what is new there; where that is wider than `room`, how many there are.
fn beside(open: &[OpenBeside], room: usize, look: &Look) -> Vec<Badge> {
    let badge = |words: &str, production: bool| {
        if production {
            Badge::new(signed(look.glyphs.warning, words), StyleRole::Production)
        } else {
            Badge::new(SafeText::new(words), StyleRole::Label)
        }
    };
    let words = |open: &OpenBeside| format!("{} {}", SafeText::limited(&open.name, 20), new_rows(open.news));
    let mut by_age: Vec<&OpenBeside> = open.iter().collect();
    by_age.sort_by_key(|open| open.id);
    let badges: Vec<Badge> = by_age.iter().map(|open| badge(words(open).trim_end(), open.production)).collect();
    if badges.iter().map(|badge| badge.word.width() + 3).sum::<usize>() <= room {
        return badges;
    }
    let news = new_rows(open.iter().map(|open| open.news).sum());
    let all = format!("{} more open {news}", open.len());
    vec![badge(all.trim_end(), open.iter().any(|open| open.production))]
}

/// A sign and a word: neither colour nor word alone says it.
fn signed(sign: Glyph, word: &str) -> SafeText {
    SafeText::join(&[SafeText::glyphs(sign, 1), word.into()], " ")
}

/// Commands that are in the line of screens: those with a digit.
fn screens() -> impl Iterator<Item = &'static ConsoleCommand> {
    let digit =
        |command: &&ConsoleCommand| command.keys.iter().any(|key| key.len() == 1 && key.as_bytes()[0].is_ascii_digit());
    COMMANDS.iter().filter(|command| command.scope == CommandScope::Everywhere).filter(digit)
}

fn navigation(model: &Model, look: &Look, line: Rect, buf: &mut Buffer, drawn: &mut Drawn) {
    let here = model.screen().leads_here();
    let wide = line.width >= 110;
    let tabs = screens().map(|command| {
        let key = model.context.settings.keys.keys(command).next().unwrap_or_default();
        let title = command.title.to_lowercase();
        let title = if wide { title.as_str() } else { title.split(' ').next().unwrap_or_default() };
        // Where the key means something else, the screen is reached by its name only.
        let leads = Key::parse(key).map(|key| model.meaning(&[key])) == Some(KeyMeaning::Command(command.id));
        TabLabel {
            title: if leads { format!("{key} {title}").into() } else { title.into() },
            count: None,
            off: command.needs().is_some_and(|entity| model.context.holds(entity).is_err()),
        }
    });
    let active = screens().position(|command| command.id == here);
    let mut tabs = Tabs { tabs: tabs.collect(), active: active.unwrap_or(usize::MAX) };
    shorten(&mut tabs, line);
    tabs.render(line, buf, look);
    for (index, place) in tabs.places(line) {
        if let Some(command) = screens().nth(index) {
            drawn.hits.add(place, ClickTarget::Command(command.id));
        }
    }
}

/// Leaves of the last screens only their keys, until all fit on the line.
fn shorten(tabs: &mut Tabs, line: Rect) {
    for index in (0..tabs.tabs.len()).rev().filter(|index| *index != tabs.active) {
        if tabs.places(line).len() == tabs.tabs.len() {
            return;
        }
        if let Some((key, _)) = tabs.tabs[index].title.as_str().split_once(' ') {
            tabs.tabs[index].title = SafeText::new(key);
        }
    }
}

fn footer(model: &Model, look: &Look, line: Rect, buf: &mut Buffer, drawn: &mut Drawn) {
    let hint = |id: &CommandId| {
        let command = COMMANDS.iter().find(|c| c.id == *id)?;
        let key = model.context.settings.keys.keys(command).next()?;
        let does = if command.hint.is_empty() { command.title.to_lowercase() } else { command.hint.to_owned() };
        Some((*id, KeyHint::new(key_name(key, look), does)))
    };
    let shown: Vec<(CommandId, KeyHint)> = model.screen().hints().iter().filter_map(hint).collect();
    let always: Vec<KeyHint> =
        [CommandId::Help, CommandId::Quit].iter().filter_map(hint).map(|(_, hint)| hint).collect();
    let hints: Vec<KeyHint> = shown.iter().map(|(_, hint)| hint.clone()).collect();
    let mut x = line.x + 1;
    for (id, hint) in &shown {
        let width = (hint.key.width() + hint.does.width() + 1) as u16;
        if x + width < line.right() {
            drawn.hits.add(Rect { x, width, ..line }, ClickTarget::Command(*id));
        }
        x += width + 3;
    }
    Footer { hints, always }.render(line, buf, look);
    for live in &model.context.running.live {
        toast_line(&job_words(live), CardTone::Info, None, line).render(line, buf, look);
    }
    if let Some((_, rows)) = model.context.exporting {
        toast_line(&format!("exporting: {rows} rows"), CardTone::Info, None, line).render(line, buf, look);
    }
    if let Some(pending) = &model.context.changing.pending {
        let doing = if pending.applying { "applying" } else { "planning" };
        toast_line(&format!("{doing}: {}", pending.proposal.title()), CardTone::Info, None, line)
            .render(line, buf, look);
    }
}

/// Draws what was said last over everything else: nothing that lies over the screen hides it.
pub fn said(model: &Model, look: &Look, area: Rect, buf: &mut Buffer) {
    let line = Rect { y: area.y + area.height - 1, height: 1, ..area };
    if let Some(toast) = told(model, line) {
        toast.render(line, buf, look);
    }
}

/// The line of what was said last.
fn told(model: &Model, line: Rect) -> Option<ToastLine> {
    let told = model.context.toast.as_ref()?;
    let tone = match told.tone {
        context::ToastTone::Good => CardTone::Good,
        context::ToastTone::Info => CardTone::Info,
        context::ToastTone::Warn => CardTone::Warn,
    };
    Some(toast_line(&told.text, tone, told.hint, line))
}

/// Describes the progress of a job that runs here.
fn job_words(live: &LiveJob) -> String {
    let Some(run) = &live.progress else { return format!("{}: starting", live.name) };
    let part = run.part().map_or_else(String::new, |part| format!(" {:.0}%", (part * 100.0).floor()));
    let note = jobs::note(run);
    let note = if note.is_empty() { String::new() } else { format!(", {note}") };
    format!("{}{part} {}{note}", live.name, run.state.word())
}

fn toast_line(text: &str, tone: CardTone, hint: Option<(&str, &str)>, line: Rect) -> ToastLine {
    let hint = hint.map(|(key, does)| KeyHint::new(key, does));
    let taken = 6 + hint.as_ref().map_or(0, |hint| hint.key.width() + hint.does.width() + 4);
    let text = SafeText::limited(text, usize::from(line.width).saturating_sub(taken));
    ToastLine { text, tone, hint }
}

/// The keys that may follow those pressed, without the commands that are not for what is selected.
pub fn may_follow(model: &Model, look: &Look, area: Rect, buf: &mut Buffer) {
    if model.pressed.is_empty() {
        return;
    }
    let KeyMeaning::Prefix(next) = model.meaning(&model.pressed) else { return };
    let fitting = next.iter().filter_map(|(key, id)| Some((key, command(*id)?)));
    let mut lines: Vec<TextLine> = fitting
        .filter(|(_, command)| model.fits(command).is_ok())
        .map(|(key, command)| {
            let key = key_name(&key.to_string(), look);
            let is_locked = model.available(command).is_err();
            let (key_role, role) =
                if is_locked { (StyleRole::Stale, StyleRole::Stale) } else { (StyleRole::Key, StyleRole::Text) };
            TextLine::of(look.pad(&key, 4, Align::Left), key_role).with(command.title, role)
        })
        .collect();
    if lines.is_empty() {
        lines.push(TextLine::of("nothing for what is selected", StyleRole::Muted));
    }
    let height = (lines.len() as u16 + 2).min(area.height);
    let width = 30.min(area.width);
    let place = Rect { x: area.right() - width, y: area.bottom().saturating_sub(height + 1), width, height };
    Look::clear(place, buf);
    let pressed: Vec<String> = model.pressed.iter().map(ToString::to_string).collect();
    let pane = PaneFrame { focused: true, ..PaneFrame::new(pressed.join(" ")) };
    let inside = pane.render(place, buf, look);
    let inside = Rect { x: inside.x + 1, width: inside.width.saturating_sub(1), ..inside };
    LineWindow::scrolled(&lines, 0).render(inside, buf, look);
}
