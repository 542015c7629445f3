//! Places that are kept under names: keeping the one that we are at, going to one, forgetting one.

use super::model::Model;
use crate::console::core::command::{COMMANDS, CommandId};
use crate::console::core::condition::Conditions;
use crate::console::core::context::{KeptStep, LayerOpening, ToastTone};
use crate::console::core::menu::{Menu, MenuChoice, MenuItem, Purpose};
use crate::console::core::message::{Destination, RequestFailure};
use crate::console::core::request::Request;
use crate::console::core::screen::Screen as _;
use crate::console::screens::AnyScreen;
use crate::memory::Entity;
use crate::memory::kept::KeptPlace;
use crate::memory::query::Order;

impl Model {
    /// Asks for a name to keep the place under.
    pub(super) fn name_place(&mut self) {
        if self.context.masking.is_on() {
            let words = "a place is kept with what it really says: M shows personal values first";
            return self.context.say(ToastTone::Warn, words);
        }
        match self.place() {
            None => self.context.say(ToastTone::Warn, "this place cannot be kept"),
            Some(place) => {
                let name = place.filter.or(place.id).or(place.screen).unwrap_or_default();
                self.context.prompt(Purpose::Place, &name);
            }
        }
    }

    /// The place to go on at another time: not the first screen, which comes by itself.
    #[must_use]
    pub fn place_to_resume(&self) -> Option<KeptPlace> {
        self.place().filter(|_| self.screen().leads_here() != CommandId::Home)
    }

    /// The place that we are at, without a name.
    pub(super) fn place(&self) -> Option<KeptPlace> {
        let here = self.screen();
        here.kept().or_else(|| {
            let leads = COMMANDS.iter().find(|command| command.id == here.leads_here())?;
            let is_screen = matches!(leads.id, CommandId::Panel(_) | CommandId::Home);
            is_screen.then(|| KeptPlace { screen: Some(leads.title.to_owned()), ..KeptPlace::default() })
        })
    }

    pub(super) fn keep_place(&mut self, name: &str) {
        let Some(place) = self.place() else { return };
        let place = KeptPlace { name: name.to_owned(), ..place };
        let ticket = self.context.ask_for_all(Request::KeepPlace(Box::new(place)));
        self.context.kept = Some((ticket, KeptStep::Say(format!("kept as {name}; b b goes there"))));
    }

    pub(super) fn read_places(&mut self, step: KeptStep) {
        let ticket = self.context.ask_for_all(Request::LoadPlaces);
        self.context.kept = Some((ticket, step));
    }

    pub(super) fn forget_place(&mut self, name: &str) {
        let ticket = self.context.ask_for_all(Request::ForgetPlace(name.to_owned()));
        self.context.kept = Some((ticket, KeptStep::Say(format!("{name} is forgotten"))));
    }

    /// Takes the places that are kept.
    pub(super) fn take_places(&mut self, result: Result<Vec<KeptPlace>, RequestFailure>) {
        let Some((_, step)) = self.context.kept.take() else { return };
        let places = match (result, step) {
            (Err(failure), _) => return self.context.fail(failure),
            (Ok(_), KeptStep::Say(words)) => return self.context.say(ToastTone::Good, words),
            (Ok(places), _) if places.is_empty() => {
                return self.context.say(ToastTone::Info, "no place is kept yet; b k keeps this one");
            }
            (Ok(places), KeptStep::Go) => (places, "Go to", true),
            (Ok(places), KeptStep::Forget) => (places, "Forget", false),
        };
        let (places, title, goes) = places;
        let item = |place: KeptPlace| MenuItem {
            label: place.name.clone(),
            note: told(&place),
            keys: String::new(),
            choice: if goes { MenuChoice::Place(Box::new(place)) } else { MenuChoice::ForgetPlace(place.name) },
            unavailable: None,
        };
        self.context.show(LayerOpening::Menu(Menu::new(title, places.into_iter().map(item).collect())));
    }

    /// Goes to a kept place.
    pub(super) fn go_to_kept(&mut self, place: &KeptPlace) {
        let title = place.screen.as_deref();
        if let Some(command) = title.and_then(|title| COMMANDS.iter().find(|command| command.title == title)) {
            return self.command(command.id);
        }
        let Some(entity) = place.entity else { return };
        if let Some(id) = &place.id {
            return self.go(&Destination::Row(entity, id.clone()), false);
        }
        match Conditions::parse(entity, place.filter.as_deref().unwrap_or_default(), self.context.now) {
            Err(wrong) => self.context.say(ToastTone::Warn, format!("{}: {wrong}", place.name)),
            Ok(conditions) => {
                self.go(&Destination::List(entity, conditions), false);
                self.order_so(entity, place.order.as_deref());
            }
        }
    }

    /// Orders the list that was gone to as it was when it was kept.
    fn order_so(&mut self, entity: Entity, order: Option<&str>) {
        let order = order.and_then(|order| Order::parse(entity, order).ok());
        if let AnyScreen::List(list) = &mut self.history.here_mut().screen
            && list.lists() == Some(entity)
            && list.order != order
        {
            list.order = order;
            list.restart();
        }
    }
}

/// What a place is, in a few words.
fn told(place: &KeptPlace) -> String {
    let entity = place.entity.map(crate::console::core::columns::plural).unwrap_or_default();
    match (&place.screen, &place.id, &place.filter) {
        (Some(screen), ..) => format!("the screen {}", screen.to_lowercase()),
        (_, Some(id), _) => format!("{} {id}", place.entity.map(Entity::title).unwrap_or_default()),
        (_, _, Some(filter)) => format!("{entity} where {filter}"),
        _ => format!("all {entity}"),
    }
}
