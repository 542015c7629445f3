//! Looking at the past: every list, row and recall is shown as of a moment, until one returns to the present.

use crate::change::plan::past::{AsOf, Moment};
use crate::console::core::{Context, LayerOpening, Request, RequestFailure, Ticket, ToastTone};

/// The pending change to another moment. The moment shown is in [`Context::past`].
#[derive(Debug, Clone, PartialEq, Default)]
pub struct LookBack {
    waiting: Option<Ticket>,
}

impl LookBack {
    /// Goes to a moment of the past, or to the present if the text is empty.
    pub(super) fn ask(&mut self, text: &str, cx: &mut Context) {
        cx.cancel(self.waiting.take());
        if text.is_empty() && cx.past.is_none() {
            return cx.say(ToastTone::Info, "rows are shown as they are now");
        }
        let moment = Moment::parse(&cx.settings.zone.spelled(text), cx.now);
        self.waiting = Some(cx.ask_for_all(Request::LookBack(moment)));
    }

    /// Handles that rows of another moment are shown: everything is read again.
    pub(super) fn take(&mut self, ticket: Ticket, result: Result<Option<Box<AsOf>>, RequestFailure>, cx: &mut Context) {
        if self.waiting.take_if(|waiting| *waiting == ticket).is_none() {
            return;
        }
        match result {
            Ok(past) => {
                cx.past = past;
                cx.changing.epoch += 1;
                tell(cx);
                cx.renamed();
            }
            Err(failure) => cx.fail(failure),
        }
    }
}

/// Reports the moment shown from now on, and what is unknown about it.
fn tell(cx: &mut Context) {
    let Some(past) = &cx.past else {
        return cx.say(ToastTone::Good, "rows are shown as they are now");
    };
    let at = cx.with_moments(&past.at);
    let taken_back = match past.taken_back {
        0 => "No change that was made here is reverted.".to_owned(),
        1 => "One change that was made here is reverted.".to_owned(),
        n => format!("{n} changes that were made here are reverted."),
    };
    let unknown = past.unknown.iter().map(|words| format!("Note: {words}."));
    let back = "Nothing can be changed meanwhile; @ with an empty line returns to now.".to_owned();
    let sentences = [taken_back].into_iter().chain(unknown).chain([back]).collect();
    cx.show(LayerOpening::Note(format!("As of {at}"), sentences));
}
