//! State that the console saves between sessions: named places, filters, looks.

use std::collections::BTreeMap;

use super::home;
use super::open::OpenDatabase;
use crate::config::Kept as _;
use crate::config::desk::{self, ConsoleLooks, ErasureSince, FoundFilters, LAST};
use crate::console::Model;
use crate::console::core::{Context, RequestFailure};
use crate::memory::Entity;
use crate::memory::kept::{KeptPlace, WrittenFilter};

/// The outcome of reading or writing what an operator keeps beside databases.
pub fn kept<T>(what: &str, outcome: anyhow::Result<T>) -> Result<T, RequestFailure> {
    let remedy = "check the file, or set MNEMOSCOPE_STATE to another folder";
    outcome.map_err(|why| RequestFailure::new(what, format!("{why:#}"), remedy))
}

/// State that a session found when it began.
pub struct FoundDesk {
    filters: FoundFilters,
    pane_steps: i16,
    columns: BTreeMap<Entity, Vec<&'static str>>,
}

/// Restores the state of the last session.
pub fn restore(model: &mut Model) -> FoundDesk {
    let filters = FoundFilters::load(&model.context.opened.location);
    model.filters = filters.filters.iter().map(|filter| (filter.entity, filter.text.clone())).collect();
    let looks = desk::looks();
    model.context.pane_steps = looks.pane_steps;
    let known = |entity: &Entity, names: &[String]| -> Vec<&'static str> {
        names.iter().filter_map(|name| entity.column(name)).map(|column| column.name).collect()
    };
    let columns = looks.columns.iter().map(|(entity, names)| (*entity, known(entity, names)));
    model.context.columns = columns.filter(|(_, names)| !names.is_empty()).collect();
    FoundDesk { filters, pane_steps: looks.pane_steps, columns: model.context.columns.clone() }
}

/// Saves the state for the next session: the changes of this one, merged with those that others made meanwhile. Text
/// written while values were masked is not saved, as it may contain pseudonyms. The last place is checked too, as it
/// may name someone who was erased in this session.
pub fn leave(open: &OpenDatabase, now: Option<&str>) {
    let (cx, found) = (&open.model.context, &open.found);
    let location = &cx.opened.location;
    if let Some(now) = now {
        home::keep_looked(location, now);
    }
    let before = desk::looks();
    let looks = changed_looks(&before, cx, found);
    if looks != before {
        desk::keep_looks(&looks);
    }
    if cx.masking.is_on() {
        return;
    }
    let written: Vec<WrittenFilter> =
        open.model.filters.iter().map(|(entity, text)| WrittenFilter { entity: *entity, text: text.clone() }).collect();
    desk::keep_filters(location, &found.filters, &written);
    if found.filters.erasure(location) == ErasureSince::None
        && let Some(place) = open.model.history.here().to_resume()
    {
        let _ = KeptPlace { name: LAST.to_owned(), ..place }.keep(location);
    }
}

/// The saved looks, with the changes of this session.
fn changed_looks(kept: &ConsoleLooks, cx: &Context, found: &FoundDesk) -> ConsoleLooks {
    let mut looks = kept.clone();
    if cx.settings.theme_chosen {
        looks.theme = Some(cx.settings.theme.clone());
    }
    if cx.pane_steps != found.pane_steps {
        looks.pane_steps = cx.pane_steps;
    }
    for (entity, names) in &cx.columns {
        if found.columns.get(entity) != Some(names) {
            looks.columns.insert(*entity, names.iter().map(ToString::to_string).collect());
        }
    }
    looks.columns.retain(|entity, _| cx.columns.contains_key(entity) || !found.columns.contains_key(entity));
    looks
}
