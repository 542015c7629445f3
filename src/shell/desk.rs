//! State that the console keeps from one session to the next, for the core: named places, filters, looks.

use super::home;
use crate::config::Kept as _;
use crate::config::desk::{self, ConsoleLooks, LAST};
use crate::console::Model;
use crate::console::core::RequestFailure;
use crate::memory::Entity;
use crate::memory::kept::{KeptPlace, WrittenFilter};
use crate::store::Store;

fn kept(result: anyhow::Result<Vec<KeptPlace>>) -> Result<Vec<KeptPlace>, RequestFailure> {
    let remedy = "look at the file; MNEMOSCOPE_STATE names another folder";
    result.map_err(|why| RequestFailure::new("Kept places", format!("{why:#}"), remedy))
}

/// The places kept for a database.
pub fn places(store: &Store) -> Result<Vec<KeptPlace>, RequestFailure> {
    kept(KeptPlace::load(store.location()))
}

/// Keeps a place; all that are kept then.
pub fn keep_place(store: &Store, place: &KeptPlace) -> Result<Vec<KeptPlace>, RequestFailure> {
    kept(place.keep(store.location()))
}

/// Forgets a place; all that are kept then.
pub fn forget_place(store: &Store, name: &str) -> Result<Vec<KeptPlace>, RequestFailure> {
    kept(KeptPlace::forget(store.location(), name))
}

/// Gives a new session what an earlier one left.
pub fn restore(model: &mut Model) {
    let written = desk::filters(&model.context.opened.location);
    model.filters = written.into_iter().map(|filter| (filter.entity, filter.text)).collect();
    let looks = desk::looks();
    model.context.pane_steps = looks.pane_steps;
    let known = |entity: &Entity, names: &[String]| -> Vec<&'static str> {
        names.iter().filter_map(|name| entity.column(name)).map(|column| column.name).collect()
    };
    let columns = looks.columns.iter().map(|(entity, names)| (*entity, known(entity, names)));
    model.context.columns = columns.filter(|(_, names)| !names.is_empty()).collect();
}

/// Keeps what the next session is to find. Nothing is kept of what was written while personal values were masked: it may
/// be of pseudonyms.
pub fn leave(model: &Model, now: Option<&str>) {
    let (cx, location) = (&model.context, &model.context.opened.location);
    if let Some(now) = now {
        home::keep_looked(location, now);
    }
    let before = desk::looks();
    let theme = cx.settings.theme_chosen.then(|| cx.settings.theme.clone()).or_else(|| before.theme.clone());
    let columns = cx.columns.iter().map(|(entity, names)| (*entity, names.iter().map(ToString::to_string).collect()));
    let looks = ConsoleLooks { theme, pane_steps: cx.pane_steps, columns: columns.collect() };
    if looks != before {
        desk::keep_looks(&looks);
    }
    if cx.masking.is_on() {
        return;
    }
    let written: Vec<WrittenFilter> =
        model.filters.iter().map(|(entity, text)| WrittenFilter { entity: *entity, text: text.clone() }).collect();
    if written != desk::filters(location) {
        desk::keep_filters(location, &written);
    }
    if let Some(place) = model.history.here().to_resume() {
        let _ = KeptPlace { name: LAST.to_owned(), ..place }.keep(location);
    }
}
