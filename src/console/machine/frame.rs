//! Frame around every screen: current place, available screens, and keys.

use ratatui::{buffer::Buffer, layout::Rect};

use super::model::Model;
use crate::console::core::command::command;
use crate::console::core::context::{self};
use crate::console::core::jobs::LiveJob;
use crate::console::core::{
    COMMANDS, ClickTarget, CommandId, CommandScope, ConsoleCommand, Key, KeyMeaning, OpenBeside,
};
use crate::console::view::live::new_rows;
use crate::console::view::{Drawn, hint_of, jobs, key_name, words};
use crate::memory::agreeing;
use crate::ui::scroll::LineWindow;
use crate::ui::{
    Align, Badge, Breadcrumbs, CardTone, Footer, Glyph, KeyHint, Look, PaneFrame, SafeText, StyleRole, TabLabel, Tabs,
    TextLine, ToastLine,
};

/// Draws the frame. Returns the area left for the screen.
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
    let told = told(model).map(|toast| toast.width(look) as u16).filter(|told| fits_beside(*told, last));
    footer(model, look, Rect { width: last.width - told.unwrap_or(0), ..last }, buf, drawn);
    Rect { y: area.y + used, height: area.height - used - 1, ..area }
}

fn top(model: &Model, look: &Look, line: Rect, buf: &mut Buffer) {
    /// Characters of a layout's name.
    const LAYOUT: usize = 30;
    let mut crumbs = vec![SafeText::limited(model.context.database_name(), 40)];
    crumbs.extend(model.crumbs().iter().map(|crumb| SafeText::limited(crumb, 80)));
    let mut badges = Vec::new();
    badges.extend(beside(&model.context.beside, usize::from(line.width) / 3, look));
    if let Some(past) = &model.context.past {
        let at = words::moment(&past.at);
        let (lead, role) = if model.screen().shows_past() {
            ("as of ", StyleRole::Warn)
        } else {
            ("now, not as of ", StyleRole::Muted)
        };
        badges.push(Badge::new(SafeText::join(&[lead.into(), at], ""), role));
    }
    if model.context.watch.is_aged {
        badges.push(Badge::new(
            signed(look.glyphs.arrow_up, &format!("written since: {}", model.context.key_for(CommandId::Refresh))),
            StyleRole::Accent,
        ));
    }
    if model.context.unread.is_some() {
        badges.push(Badge::new(
            signed(look.glyphs.warning, &format!("cannot be read: {}", model.context.key_for(CommandId::Refresh))),
            StyleRole::Warn,
        ));
    }
    if model.context.opened.unread.is_some() {
        badges.push(Badge::new(signed(look.glyphs.warning, "damaged: private copy"), StyleRole::Bad));
    }
    if line.width >= 60 {
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
    } else if model.still_writes().is_some() {
        Badge::new(signed(look.glyphs.edit, "still writing"), StyleRole::Writable)
    } else {
        Badge::new(signed(look.glyphs.lock, "read-only"), StyleRole::ReadOnly)
    });
    let mut shown = Breadcrumbs { crumbs, badges };
    // The names of layouts are dropped first. A variant that would be cut is not named.
    let layout = |name: &String| {
        let short = if name.chars().count() > LAYOUT { name.split(" (").next().unwrap_or(name) } else { name };
        SafeText::limited(short, LAYOUT)
    };
    let layouts = model.context.opened.layouts.iter().map(layout);
    let layouts: Vec<Badge> = layouts.map(|name| Badge::new(name, StyleRole::Label)).collect();
    let with_layouts = Breadcrumbs { badges: [layouts, shown.badges.clone()].concat(), ..shown.clone() };
    if line.width >= 90 && with_layouts.fits(line, look) {
        shown = with_layouts;
    }
    shown.render(line, buf, look);
}

/// The other open databases, each with its news; their number if that is wider than `room`.
fn beside(open: &[OpenBeside], room: usize, look: &Look) -> Vec<Badge> {
    let badge = |words: &str, production: bool| {
        if production {
            Badge::new(signed(look.glyphs.warning, words), StyleRole::Production)
        } else {
            Badge::new(SafeText::new(words), StyleRole::Label)
        }
    };
    // The badge is about another database, which may be unlocked while the current one is locked.
    let words = |open: &OpenBeside| {
        let unlocked = if open.unlocked { "unlocked" } else { "" };
        let parts = [SafeText::limited(&open.name, 20).to_string(), unlocked.to_owned(), new_rows(open.news)];
        let said: Vec<&str> = parts.iter().map(String::as_str).filter(|part| !part.is_empty()).collect();
        format!("+ {}", said.join(" "))
    };
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

/// A sign and a word, so that neither colour nor word alone carries the meaning.
fn signed(sign: Glyph, word: &str) -> SafeText {
    SafeText::join(&[SafeText::glyphs(sign, 1), word.into()], " ")
}

/// Commands in the line of screens: those with a digit.
fn screens() -> impl Iterator<Item = &'static ConsoleCommand> {
    let digit =
        |command: &&ConsoleCommand| command.keys.iter().any(|key| key.len() == 1 && key.as_bytes()[0].is_ascii_digit());
    COMMANDS.iter().filter(|command| command.scope == CommandScope::Everywhere).filter(digit)
}

fn navigation(model: &Model, look: &Look, line: Rect, buf: &mut Buffer, drawn: &mut Drawn) {
    const GAP: usize = 3;
    let here = model.screen().leads_here();
    let tabs = |whole: bool| Tabs {
        tabs: screens().map(|command| tab(model, command, whole)).collect(),
        active: screens().position(|command| command.id == here).unwrap_or(usize::MAX),
    };
    let whole = tabs(true);
    let tabs = if whole.width(GAP) + 2 <= usize::from(line.width) { whole } else { tabs(false) };
    tabs.render(line, buf, look);
    for (index, place) in tabs.places(line) {
        if let Some(command) = screens().nth(index) {
            drawn.hits.add(place, ClickTarget::Command(command.id));
        }
    }
}

/// A screen in the line of screens: its key and its title, whole or the first word.
fn tab(model: &Model, command: &ConsoleCommand, whole: bool) -> TabLabel {
    let key = model.context.settings.keys.keys(command).next().unwrap_or_default();
    let title = command.title.to_lowercase();
    let title = if whole { title.as_str() } else { title.split(' ').next().unwrap_or_default() };
    // If the key has another meaning here, only the name leads to the screen.
    let leads = Key::parse(key).map(|key| model.meaning(&[key])) == Some(KeyMeaning::Command(command.id));
    TabLabel {
        title: if leads { format!("{key} {title}").into() } else { title.into() },
        count: None,
        off: command.needs().is_some_and(|entity| model.context.holds(entity).is_err()),
    }
}

fn footer(model: &Model, look: &Look, line: Rect, buf: &mut Buffer, drawn: &mut Drawn) {
    let hint = |id: &CommandId| {
        let command = COMMANDS.iter().find(|c| c.id == *id)?;
        let key = model.context.settings.keys.keys(command).next()?;
        let own = model.screen().hint_word(*id).or(Some(command.hint).filter(|hint| !hint.is_empty()));
        let does = own.map_or_else(|| command.title.to_lowercase(), str::to_owned);
        Some((*id, KeyHint::new(key_name(key, look), does)))
    };
    // An overlay has the keys, and names its own.
    let has_keys = model.overlays.is_empty();
    // Commands that are not available here and now are left out.
    let fits = |id: &CommandId| COMMANDS.iter().any(|command| command.id == *id && model.fits(command).is_ok());
    let scrolls = |id: &CommandId| {
        use CommandId::{PageDown, ScrollDetail, ScrollJob, ScrollPreview};
        let scroll = matches!(id, ScrollDetail(_) | ScrollJob(_) | ScrollPreview(_) | PageDown);
        !scroll || model.context.last_line() > 0
    };
    let of_screen = model.screen().hints().into_iter().filter(|id| has_keys && fits(id) && scrolls(id));
    let shown: Vec<(CommandId, KeyHint)> = of_screen.filter_map(|id| hint(&id)).collect();
    let always = [CommandId::Help, CommandId::Quit].iter().filter(|_| has_keys).filter_map(hint);
    let always: Vec<KeyHint> = always.map(|(_, hint)| hint).collect();
    let hints: Vec<KeyHint> = shown.iter().map(|(_, hint)| hint.clone()).collect();
    let wide = |hint: &KeyHint| (hint.key.width() + hint.does.width() + 4) as u16;
    let kept = shown.iter().map(|(_, hint)| hint).chain(&always).map(wide).sum::<u16>() + 1;
    // Running work gets the room left by the keys, and at least half of the line. No key is cut within a word.
    let room = line.width.saturating_sub(kept).max(line.width / 2);
    let continues = continues(model).map(|text| {
        let text = SafeText::limited(&text, usize::from(room).saturating_sub(4));
        ToastLine { text, tone: CardTone::Info, hint: None }
    });
    let taken = continues.as_ref().map_or(0, |toast| toast.width(look) as u16).min(line.width);
    let keys = Rect { width: line.width - taken, ..line };
    let mut x = keys.x + 1;
    for (id, hint) in &shown {
        let width = wide(hint) - 3;
        if x + width < keys.right() {
            drawn.hits.add(Rect { x, width, ..keys }, ClickTarget::Command(*id));
        }
        x += width + 3;
    }
    Footer { hints, always }.render(keys, buf, look);
    if let Some(toast) = continues {
        toast.render(line, buf, look);
    }
}

/// Describes the running work; if there are several kinds, the one that someone waits for.
fn continues(model: &Model) -> Option<String> {
    let cx = &model.context;
    let waiting: Vec<String> = model.early.keys().map(|key| key.to_string()).collect();
    if !waiting.is_empty() {
        return Some(format!("reading; then {}", waiting.join(" ")));
    }
    if let Some(pending) = &cx.changing.pending {
        let doing = if pending.applying { "applying" } else { "planning" };
        return Some(format!("{doing}: {}", cx.in_title(&pending.proposal.title())));
    }
    let exporting = cx.exporting.map(|(_, rows)| agreeing(rows, "exporting: {#} {row|rows}"));
    exporting.or_else(|| cx.running.live.last().map(job_words))
}

/// Whether the last message leaves room for keys on its line.
fn fits_beside(told: u16, line: Rect) -> bool {
    const KEYS: u16 = 36;
    told + KEYS <= line.width
}

/// Draws the last message in the last line: beside the keys of the screen if both fit, alone if there is an overlay. A
/// longer message gets whole lines within the frame: above the keys, or at the top if it would hide those of an
/// overlay.
pub fn said(model: &Model, look: &Look, area: Rect, buf: &mut Buffer) {
    let Some(toast) = told(model) else { return };
    let is_over = !model.overlays.is_empty();
    let width = toast.width(look) as u16;
    if fits_beside(width, area) || is_over && width <= area.width {
        return toast.render(area, buf, look);
    }
    let inside = Rect { x: area.x + 1, y: area.y + 1, width: area.width - 2, height: area.height - 3 };
    let height = toast.height(inside.width, look).min(inside.height);
    let y = if is_over { inside.y } else { inside.bottom() - height };
    toast.render_whole(Rect { y, height, ..inside }, buf, look);
}

/// The line of the last message.
fn told(model: &Model) -> Option<ToastLine> {
    const LONGEST: usize = 400;
    let told = model.context.toast.as_ref()?;
    let tone = match told.tone {
        context::ToastTone::Good => CardTone::Good,
        context::ToastTone::Info => CardTone::Info,
        context::ToastTone::Warn => CardTone::Warn,
    };
    let hint = told.hint.map(|(id, does)| hint_of(&model.context, id, does));
    Some(ToastLine { text: SafeText::limited(&told.text, LONGEST), tone, hint })
}

fn job_words(live: &LiveJob) -> String {
    let Some(run) = &live.progress else { return format!("{}: starting", live.name) };
    let part = run.part().map_or_else(String::new, |part| format!(" {:.0}%", (part * 100.0).floor()));
    let note = jobs::note(run);
    let note = if note.is_empty() { String::new() } else { format!(", {note}") };
    format!("{}{part} {}{note}", live.name, run.state.word())
}

/// The keys that may follow those pressed, except for commands that do not apply to the selection.
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
        let lack = next.iter().find_map(|(_, id)| model.context.supports(command(*id)?).err());
        let why =
            lack.map_or_else(|| "nothing for what is selected".into(), |(reason, _)| SafeText::limited(&reason, 80));
        lines.push(TextLine::of(why, StyleRole::Muted));
    }
    let height = (lines.len() as u16 + 2).min(area.height);
    let widest = lines.iter().map(TextLine::width).max().unwrap_or(0) as u16;
    let width = (widest + 3).max(30).min(area.width);
    let place = Rect { x: area.right() - width, y: area.bottom().saturating_sub(height + 1), width, height };
    Look::clear(place, buf);
    let pressed: Vec<String> = model.pressed.iter().map(ToString::to_string).collect();
    let pane = PaneFrame { focused: true, ..PaneFrame::new(pressed.join(" ")) };
    let inside = pane.render(place, buf, look);
    let inside = Rect { x: inside.x + 1, width: inside.width.saturating_sub(1), ..inside };
    LineWindow::scrolled(&lines, 0).render(inside, buf, look);
}
