//! The special screens with their keys: everything that can be done here besides viewing lists.

use super::{HomeEntry, plain, section};
use crate::console::core::command::{CommandId, command};
use crate::console::core::context::Context;
use crate::console::core::screen::ScreenKind;
use crate::ui::{Align, Look, SafeText, StyleRole, TextLine};

/// The screens, each with a short description.
const SCREENS: [(CommandId, &str); 12] = [
    (CommandId::Panel(ScreenKind::Findings), "what is wrong or suspicious"),
    (CommandId::Panel(ScreenKind::Inbox), "feedback that needs a look"),
    (CommandId::Panel(ScreenKind::Recall), "why something is remembered"),
    (CommandId::Panel(ScreenKind::Replay), "a topic as it happened"),
    (CommandId::Panel(ScreenKind::Agents), "what is used, who is ready, what fades"),
    (CommandId::Panel(ScreenKind::Evaluation), "how good recall is"),
    (CommandId::Panel(ScreenKind::Policies), "learned rankings, and which is in use"),
    (CommandId::Panel(ScreenKind::Prune), "remove cases by rules"),
    (CommandId::Erase, "who, where, and what erasing would do"),
    (CommandId::Panel(ScreenKind::Jobs), "backfills, in batches"),
    (CommandId::Panel(ScreenKind::Migrations), "what the database lacks"),
    (CommandId::Panel(ScreenKind::Receipts), "what was changed here, to be undone"),
];
/// Columns of a key.
const KEY: usize = 5;
/// Columns of a title.
const TITLE: usize = 18;
/// Least columns for a line with the description of each.
const TOLD: usize = 64;

/// A screen as listed.
struct ShownScreen<'k> {
    id: CommandId,
    key: &'k str,
    title: String,
    told: &'static str,
    off: bool,
}

fn shown(cx: &Context) -> Vec<ShownScreen<'_>> {
    let screens = SCREENS.iter().filter_map(|(id, told)| {
        let command = command(*id)?;
        let title = command.title.split(':').next().unwrap_or_default().to_lowercase();
        let off = command.needs().is_some_and(|entity| cx.holds(entity).is_err());
        Some(ShownScreen { id: *id, key: cx.settings.keys.keys(command).next()?, title, told, off })
    });
    screens.collect()
}

/// The listed screens, in order.
pub(in crate::console) fn screens(cx: &Context) -> Vec<CommandId> {
    shown(cx).into_iter().map(|screen| screen.id).collect()
}

/// A line for each with its description if `told`; else several on a line. The first is entry number `first`.
pub(in crate::console) fn lines(cx: &Context, told: bool, first: usize, width: usize, look: &Look) -> Vec<HomeEntry> {
    let shown = shown(cx);
    let mut lines: Vec<HomeEntry> = section("screens", width, look).into();
    let columns = if told && width >= TOLD { 1 } else { (width / (KEY + TITLE)).max(1) };
    for row in 0..shown.len().div_ceil(columns) {
        let mut line = plain(TextLine::default());
        for column in 0..columns {
            let number = column * shown.len().div_ceil(columns) + row;
            let Some(screen) = shown.get(number) else { continue };
            let place = (line.line.width() as u16, (KEY + TITLE) as u16);
            line.leads.push((place.0, place.1, first + number));
            line.commands.push((place.0, place.1, screen.id));
            line.line.append(cell(screen, look));
            if columns == 1 {
                let room = width.saturating_sub(KEY + TITLE);
                line.line.push(SafeText::from(screen.told).cut(room), StyleRole::Muted);
            }
        }
        lines.push(line);
    }
    lines
}

fn cell(screen: &ShownScreen<'_>, look: &Look) -> TextLine {
    let (key, title) =
        if screen.off { (StyleRole::Stale, StyleRole::Stale) } else { (StyleRole::Key, StyleRole::Text) };
    TextLine::of(look.pad(&SafeText::from(screen.key), KEY, Align::Left), key)
        .with(look.pad(&SafeText::limited(&screen.title, TITLE - 2), TITLE, Align::Left), title)
}
