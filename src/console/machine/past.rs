//! Looking at the past: from then on every list, row and recall is shown as it was, until one comes back to now.

use super::model::Model;
use crate::change::plan::past::{AsOf, Moment};
use crate::console::core::context::{Context, LayerOpening, ToastTone};
use crate::console::core::message::{RequestFailure, Ticket};
use crate::console::core::request::Request;
use crate::console::view::words;

impl Model {
    /// Takes that rows are shown of another moment: everything is read again.
    pub(super) fn looked_back(&mut self, ticket: Ticket, result: Result<Option<Box<AsOf>>, RequestFailure>) {
        let cx = &mut self.context;
        if cx.looking_back.take_if(|waiting| *waiting == ticket).is_none() {
            return;
        }
        match result {
            Ok(past) => {
                cx.past = past;
                cx.changing.epoch += 1;
                cx.tell_of_past();
                self.name_window();
            }
            Err(failure) => cx.fail(failure),
        }
    }
}

impl Context {
    /// Goes to a moment of the past, or comes back to now where none is written.
    pub(super) fn look_back(&mut self, text: &str) {
        let waited = self.looking_back.take();
        self.cancel(waited);
        if text.is_empty() && self.past.is_none() {
            return self.say(ToastTone::Info, "rows are shown as they are now");
        }
        let moment = Moment::parse(text, self.now);
        self.looking_back = Some(self.ask_for_all(Request::LookBack(moment)));
    }

    /// Says what is shown from now on, and what of it cannot be known.
    fn tell_of_past(&mut self) {
        let Some(past) = &self.past else {
            return self.say(ToastTone::Good, "rows are shown as they are now");
        };
        let at = words::in_zone(&self.settings.zone, || words::time(&past.at, false));
        let taken_back = match past.taken_back {
            0 => "No change that was made here is taken back.".to_owned(),
            1 => "One change that was made here is taken back.".to_owned(),
            n => format!("{n} changes that were made here are taken back."),
        };
        let unknown = past.unknown.iter().map(|words| format!("Not known: {words}."));
        let back = "Nothing can be changed meanwhile; @ with an empty line comes back to now.".to_owned();
        let sentences = [taken_back].into_iter().chain(unknown).chain([back]).collect();
        self.show(LayerOpening::Note(format!("As of {at}"), sentences));
    }
}
