//! Levers that would move the selected row: described with their reasons, and offered as changes to plan.

use super::lists::item;
use super::{RankingSide, RecallScreen, recalled_kinds};
use crate::console::core::command::command;
use crate::console::core::{CommandAsk, CommandId, Context, LayerOpening, Menu, MenuChoice};
use crate::recall::lever::{LeverAct, RecallLever, levers};
use crate::ui::text::SafeText;

/// Most columns of a name.
const NAME: usize = 40;

/// Lists the levers that would move the selected row and that this database has, each with its name and its outcome.
pub fn told(cx: &Context, side: &RankingSide) -> Vec<(RecallLever, String, String)> {
    let Some(found) = &side.found else { return Vec::new() };
    let found = levers(&found.answer, side.selected);
    let is_here = |lever: &RecallLever| command(change(lever.act)).is_some_and(|change| cx.supports(change).is_ok());
    let told = found.into_iter().filter(is_here).map(|lever| {
        let (name, outcome) = (name(lever.act), outcome(cx, side, &lever));
        (lever, name, outcome)
    });
    told.collect()
}

/// The command that plans a lever.
fn change(act: LeverAct) -> CommandId {
    CommandId::Change(match act {
        LeverAct::Thumb(_) => CommandAsk::AddFeedback,
        LeverAct::Signal(signal) => CommandAsk::Signal(signal),
        LeverAct::Quarantine => CommandAsk::Hold(true),
        LeverAct::Remove => CommandAsk::Remove,
    })
}

fn name(act: LeverAct) -> String {
    match act {
        LeverAct::Thumb(true) => "thumbs up".to_owned(),
        LeverAct::Thumb(false) => "thumbs down".to_owned(),
        LeverAct::Signal(signal) => signal.word().to_owned(),
        LeverAct::Quarantine => "quarantine".to_owned(),
        LeverAct::Remove => "remove".to_owned(),
    }
}

fn outcome(cx: &Context, side: &RankingSide, lever: &RecallLever) -> String {
    let score = lever.score.map(|score| format!("{score:.3}, ")).unwrap_or_default();
    let place = match lever.place {
        Some(place) if place == side.selected => format!("place {} still", place + 1),
        Some(place) => format!("place {}", place + 1),
        None if lever.score.is_some() => "below the cut".to_owned(),
        None => "no longer recalled".to_owned(),
    };
    let enters = lever.enters.as_ref().map(|id| {
        let named = recalled_kinds(side.way.ranking).iter().find_map(|kind| cx.names.of(*kind, id));
        let name = named.unwrap_or(id);
        format!("; {} comes in", SafeText::limited(name, NAME))
    });
    format!("{score}{place}{}", enters.unwrap_or_default())
}

impl RecallScreen {
    /// Offers changes that would move the selected row; the chosen one is planned.
    pub(super) fn offer_levers(&self, cx: &mut Context) {
        let told = told(cx, self.side());
        let planned = |lever: &RecallLever| MenuChoice::Command(change(lever.act));
        let mut items: Vec<_> = told.iter().map(|(lever, name, outcome)| item(name, outcome, planned(lever))).collect();
        let edit = "its likeness is computed again from the new text";
        items.push(item("edit", edit, MenuChoice::Command(CommandId::Change(CommandAsk::Edit))));
        cx.show(LayerOpening::Menu(Menu::new(format!("Move place {}", self.side().selected + 1), items)));
    }
}
