//! The places that one was at, and the way through them.

use crate::console::core::context::Context;
use crate::console::core::message::Destination;
use crate::console::core::screen::{Screen, ScreenOrigin};
use crate::console::screens::AnyScreen;
use crate::memory::{Entity, Row};

/// Places that can be gone back to at most.
const HISTORY: usize = 40;

/// A place: a screen, and how it was reached.
#[derive(Debug, Clone, PartialEq)]
pub struct ScreenPlace {
    /// Its number: replies find their way by it.
    pub id: u64,
    /// What it shows.
    pub screen: AnyScreen,
    /// It was reached by following something.
    pub followed: bool,
    /// Changes that had been made when it was read last.
    pub epoch: u64,
}

impl ScreenPlace {
    /// The screen.
    #[must_use]
    pub fn screen(&self) -> &dyn Screen {
        self.screen.get()
    }

    /// Kind and id of the selected row.
    #[must_use]
    pub fn selected(&self) -> Option<(Entity, &str)> {
        self.screen().selected()
    }

    /// The selected row, as far as it is known.
    #[must_use]
    pub fn row(&self) -> Option<&Row> {
        self.screen().row()
    }

    /// The person that the place is about: the selected subject, or whom the row belongs to.
    #[must_use]
    pub fn person(&self) -> Option<String> {
        if let Some(person) = self.screen().person() {
            return Some(person.to_owned());
        }
        self.origin_row().id_of(Entity::Subject, "user_id")
    }

    fn origin_row(&self) -> ScreenOrigin {
        let selected = self.selected().map(|(entity, id)| (entity, id.to_owned()));
        ScreenOrigin { selected, row: self.row().cloned(), person: None }
    }

    /// What is selected, for a screen that is opened from here.
    #[must_use]
    pub fn origin(&self) -> ScreenOrigin {
        ScreenOrigin { person: self.person(), ..self.origin_row() }
    }
}

/// The places on the way, and where on it we are.
#[derive(Debug, Clone, PartialEq)]
pub struct History {
    places: Vec<ScreenPlace>,
    at: usize,
    next: u64,
}

impl Default for History {
    fn default() -> Self {
        let screen = AnyScreen::at(&Destination::Home);
        History { places: vec![ScreenPlace { id: 0, screen, followed: false, epoch: 0 }], at: 0, next: 1 }
    }
}

impl History {
    /// The place we are at.
    #[must_use]
    pub fn here(&self) -> &ScreenPlace {
        &self.places[self.at]
    }

    /// The place we are at.
    pub fn here_mut(&mut self) -> &mut ScreenPlace {
        &mut self.places[self.at]
    }

    /// Goes to a new place; those ahead are forgotten.
    pub fn push(&mut self, screen: AnyScreen, followed: bool, epoch: u64) {
        self.places.truncate(self.at + 1);
        self.places.push(ScreenPlace { id: self.next, screen, followed, epoch });
        self.next += 1;
        let surplus = self.places.len().saturating_sub(HISTORY);
        self.places.drain(..surplus);
        self.at = self.places.len() - 1;
    }

    /// Goes that many places back (negative) or forward; whether that is another place.
    pub fn go(&mut self, by: isize) -> bool {
        match self.at.checked_add_signed(by).filter(|at| *at < self.places.len() && by != 0) {
            Some(at) => {
                self.at = at;
                true
            }
            None => false,
        }
    }

    /// Whether there is a place that many places away.
    #[must_use]
    pub fn has(&self, by: isize) -> bool {
        self.at.checked_add_signed(by).is_some_and(|at| at < self.places.len())
    }

    /// The titles of the places that led here by following, this one last.
    #[must_use]
    pub fn crumbs(&self, cx: &Context) -> Vec<String> {
        let mut first = self.at;
        while first > 0 && self.places[first].followed {
            first -= 1;
        }
        self.places[first..=self.at].iter().map(|place| place.screen().title(cx)).collect()
    }

    /// Every screen, the one that was opened last at the end.
    #[must_use]
    pub fn screens(&self) -> impl DoubleEndedIterator<Item = &AnyScreen> {
        self.places.iter().map(|place| &place.screen)
    }

    /// Every place.
    pub fn places_mut(&mut self) -> impl Iterator<Item = &mut ScreenPlace> {
        self.places.iter_mut()
    }
}
