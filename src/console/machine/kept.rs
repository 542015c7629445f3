//! Saved places: saving the current one, going to one, deleting one.

use super::history::History;
use super::place::ScreenPlace;
use crate::console::core::{
    COMMANDS, CommandId, Conditions, Context, Destination, LayerOpening, Menu, MenuChoice, MenuItem, PageWindow,
    Purpose, Request, RequestFailure, Screen as _, Ticket, ToastTone,
};
use crate::console::screens::AnyScreen;
use crate::memory::Entity;
use crate::memory::kept::KeptPlace;
use crate::memory::query::Order;

/// Next step once the saved places have been read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum KeptStep {
    /// Choose one to go to.
    Go,
    /// One is chosen to be forgotten.
    Forget,
    /// Show this message.
    Say(String),
}

/// The saved places while they are read or changed, and the purpose.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct KeptPlaces {
    waiting: Option<(Ticket, KeptStep)>,
}

impl KeptPlaces {
    pub(super) fn keep(&mut self, here: &ScreenPlace, name: &str, cx: &mut Context) {
        let Some(place) = here.to_keep() else { return };
        let place = KeptPlace { name: name.to_owned(), ..place };
        let done = KeptStep::Say(format!("saved as {name}; b b goes there"));
        self.ask(Request::KeepPlace(Box::new(place)), done, cx);
    }

    /// Reads the saved places, to choose one.
    pub(super) fn offer(&mut self, step: KeptStep, cx: &mut Context) {
        self.ask(Request::LoadPlaces, step, cx);
    }

    pub(super) fn forget(&mut self, name: &str, cx: &mut Context) {
        let done = KeptStep::Say(format!("{name} is forgotten"));
        self.ask(Request::ForgetPlace(name.to_owned()), done, cx);
    }

    fn ask(&mut self, request: Request, step: KeptStep, cx: &mut Context) {
        self.waiting = Some((cx.ask_for_all(request), step));
    }

    pub(super) fn take(&mut self, ticket: Ticket, result: Result<Vec<KeptPlace>, RequestFailure>, cx: &mut Context) {
        let Some((_, step)) = self.waiting.take_if(|(waiting, _)| *waiting == ticket) else { return };
        let places = match result {
            Ok(places) => places,
            Err(failure) => return cx.fail(failure),
        };
        let (title, goes) = match step {
            KeptStep::Say(words) => return cx.say(ToastTone::Good, words),
            _ if places.is_empty() => return cx.say(ToastTone::Info, "no place is saved yet; b k saves this one"),
            KeptStep::Go => ("Go to", true),
            KeptStep::Forget => ("Forget", false),
        };
        let item = |place: KeptPlace| MenuItem {
            label: place.name.clone(),
            note: cx.with_moments(&told(&place)),
            keys: String::new(),
            choice: if goes { MenuChoice::Place(Box::new(place)) } else { MenuChoice::ForgetPlace(place.name) },
            unavailable: None,
        };
        cx.show(LayerOpening::Menu(Menu::new(title, places.into_iter().map(item).collect())));
    }
}

pub(super) fn ask_name(here: &ScreenPlace, cx: &mut Context) {
    if cx.masking.is_on() {
        let mask = cx.key_for(CommandId::Mask);
        let words = format!("a place is saved with its real values: first show personal values with {mask}");
        return cx.say(ToastTone::Warn, words);
    }
    match here.to_keep() {
        None => {
            cx.say(ToastTone::Warn, "this place cannot be saved: only lists, rows, and screens with their own key can");
        }
        Some(place) => {
            let name = place.filter.or(place.id).or(place.screen).unwrap_or_default();
            cx.prompt(Purpose::Place, &name);
        }
    }
}

pub(super) fn go(place: &KeptPlace, history: &mut History, cx: &mut Context) {
    let title = place.screen.as_deref();
    if let Some(command) = title.and_then(|title| COMMANDS.iter().find(|command| command.title == title)) {
        return cx.command(command.id);
    }
    let Some(entity) = place.entity else { return };
    if let Some(id) = &place.id {
        return cx.go(Destination::Row(entity, id.clone()));
    }
    match Conditions::parse(entity, place.filter.as_deref().unwrap_or_default(), cx.now, &cx.settings.zone) {
        Err(wrong) => cx.say(ToastTone::Warn, format!("{}: {wrong}", place.name)),
        Ok(conditions) => {
            history.go(&Destination::List(entity, conditions), false, cx);
            order_as_kept(entity, place.order.as_deref(), history);
        }
    }
}

/// Sorts the list as when it was saved.
fn order_as_kept(entity: Entity, order: Option<&str>, history: &mut History) {
    let order = order.and_then(|order| Order::parse(entity, order).ok());
    if let AnyScreen::List(list) = &mut history.here_mut().screen
        && list.lists() == Some(entity)
        && list.order != order
    {
        list.order = order;
        list.window = PageWindow::default();
        list.failure = None;
    }
}

/// Describes a place in a few words.
fn told(place: &KeptPlace) -> String {
    let entity = place.entity.map(Entity::plural).unwrap_or_default();
    match (&place.screen, &place.id, &place.filter) {
        (Some(screen), ..) => format!("the screen {}", screen.to_lowercase()),
        (_, Some(id), _) => format!("{} {id}", place.entity.map(Entity::title).unwrap_or_default()),
        (_, _, Some(filter)) => format!("{entity} where {filter}"),
        _ => format!("all {entity}"),
    }
}
