//! The places on the way through the console, and moving from one to another.

use super::place::ScreenPlace;
use crate::console::core::router::Asker;
use crate::console::core::{Context, Destination, Effect, RequestFailure, Screen, ScreenKind, ToastTone};
use crate::console::screens::AnyScreen;

/// Most places to go back to.
const HISTORY: usize = 40;

/// The visited places, and the position among them.
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
    pub fn here(&self) -> &ScreenPlace {
        &self.places[self.at]
    }

    /// The place we are at.
    pub fn here_mut(&mut self) -> &mut ScreenPlace {
        &mut self.places[self.at]
    }

    /// Goes to a new place; the places ahead are dropped.
    fn push(&mut self, screen: AnyScreen, followed: bool, epoch: u64) {
        self.places.truncate(self.at + 1);
        self.places.push(ScreenPlace { id: self.next, screen, followed, epoch });
        self.next += 1;
        let surplus = self.places.len().saturating_sub(HISTORY);
        self.places.drain(..surplus);
        self.at = self.places.len() - 1;
    }

    /// Whether there is a place at this distance.
    pub fn has(&self, by: isize) -> bool {
        self.at.checked_add_signed(by).is_some_and(|at| at < self.places.len())
    }

    /// The titles of the places that led here by following, this one last.
    pub fn crumbs(&self, cx: &Context) -> Vec<String> {
        let mut first = self.at;
        while first > 0 && self.places[first].followed {
            first -= 1;
        }
        self.places[first..=self.at].iter().map(|place| place.screen().title(cx)).collect()
    }

    /// Every place.
    pub fn places_mut(&mut self) -> impl Iterator<Item = &mut ScreenPlace> {
        self.places.iter_mut()
    }

    /// Calls a function on the current screen; its requests are answered to it.
    pub(super) fn at_screen<R>(
        &mut self,
        cx: &mut Context,
        does: impl FnOnce(&mut dyn Screen, &mut Context) -> R,
    ) -> R {
        let here = self.here_mut();
        cx.asker = Asker::Screen(here.id);
        let done = does(here.screen.get_mut(), cx);
        cx.asker = Asker::Core;
        done
    }

    /// Goes to a destination; `followed` if it is linked from here.
    pub(super) fn go(&mut self, destination: &Destination, followed: bool, cx: &mut Context) {
        if let Some(entity) = destination.entity()
            && let Err(missing) = cx.holds(entity)
        {
            let reason = missing.reason.clone().unwrap_or_default();
            let remedy = cx.remedy(missing).unwrap_or_else(|| "nothing can be done here".to_owned());
            let what = format!("{} cannot be shown", entity.plural());
            return cx.fail(RequestFailure::absent(what, reason, remedy));
        }
        if matches!(destination, Destination::Panel(kind) if self.here().kind() == Some(*kind)) {
            return;
        }
        let mut screen = AnyScreen::at(destination);
        if screen == self.here().screen {
            return;
        }
        if !self.may_leave(cx) {
            return;
        }
        self.inherit(&mut screen);
        self.leave(cx);
        self.push(screen, followed, cx.changing.epoch);
        self.name_window(cx);
    }

    /// Opens a screen of its own kind from the current selection.
    pub(super) fn open(&mut self, kind: ScreenKind, cx: &mut Context) {
        let origin = self.here().origin();
        let is_here = self.here().kind() == Some(kind);
        if is_here && !self.here().screen().opens_again(&origin, cx) {
            return self.at_screen(cx, |screen, cx| screen.enter_again(&origin, cx));
        }
        if !self.may_leave(cx) {
            return;
        }
        let mut screen = AnyScreen::new(kind);
        self.leave(cx);
        let before = is_here.then(|| self.here().screen.clone());
        self.inherit(&mut screen);
        // Its requests are made under its own number, so it is added before it is entered.
        self.push(screen, false, cx.changing.epoch);
        let followed = self.at_screen(cx, |screen, cx| screen.enter(&origin, cx));
        let here = self.here_mut();
        here.followed = followed;
        if let Some(before) = before {
            here.screen.inherit(&before, true);
        }
        self.name_window(cx);
    }

    /// Passes state to a new screen from the latest one of its kind. A list that was linked to keeps its own.
    fn inherit(&self, screen: &mut AnyScreen) {
        let of_its_own = |place: &&ScreenPlace| place.followed && place.screen().lists().is_some();
        let mut earlier = self.places.iter().rev().filter(|place| !of_its_own(place));
        let _ = earlier.any(|earlier| screen.inherit(&earlier.screen, false));
    }

    /// Goes this many places back (negative) or forward, if possible.
    pub(super) fn travel(&mut self, by: isize, cx: &mut Context) {
        if self.has(by) && by != 0 && self.may_leave(cx) {
            self.step_to(by, cx);
        }
    }

    /// Leaves the place; anything running there stops.
    pub(super) fn step_out(&mut self, cx: &mut Context) {
        if self.has(-1) {
            self.step_to(-1, cx);
        }
    }

    fn step_to(&mut self, by: isize, cx: &mut Context) {
        self.leave(cx);
        self.at = self.at.saturating_add_signed(by);
        self.name_window(cx);
    }

    /// Whether the place can be left or read again. False, with a message, while something runs that must not be
    /// interrupted.
    pub(super) fn may_leave(&self, cx: &mut Context) -> bool {
        match self.here().screen().busy() {
            Some(reason) => cx.say(ToastTone::Warn, reason),
            None => return true,
        }
        false
    }

    /// Stops the requests of the place. It makes them again on return.
    fn leave(&mut self, cx: &mut Context) {
        self.at_screen(cx, |screen, cx| {
            screen.left(cx);
            let waited = screen.release();
            cx.cancel(waited);
        });
    }

    /// Marks all places as out of date. Requests that must not be interrupted continue.
    pub(super) fn forget(&mut self, cx: &mut Context) {
        if self.here().screen().busy().is_none() {
            self.leave(cx);
        }
        for place in &mut self.places {
            place.screen.get_mut().forget();
        }
    }

    /// Sets the window title to the current place.
    pub(super) fn name_window(&self, cx: &mut Context) {
        let here = self.here().screen().title(cx);
        cx.perform(Effect::SetTitle(format!("{here} - mnemoscope")));
    }
}
