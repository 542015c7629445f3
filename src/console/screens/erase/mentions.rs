//! Decisions about mentions of a person to be erased, one by one or for a whole column. The search is repeated only
//! when the step is left.

use std::collections::HashSet;

use crate::change::plan::erasure::{Mentions, ShownMention};
use crate::console::core::{Context, ToastTone};
use crate::console::screens::erase::{EraseScreen, STEPS};

/// Position of the step among [`STEPS`].
pub const STEP: usize = 2;
const _: () = assert!(STEP < STEPS.len());

impl EraseScreen {
    /// Whether the current step is about mentions.
    pub fn is_at_mentions(&self) -> bool {
        let looked_at = self.running.is_none() && self.outcome.is_none() && self.failure.is_none();
        self.step == STEP && looked_at && self.preview.is_some()
    }

    /// The mention that the cursor is on.
    pub fn mention(&self) -> Option<&ShownMention> {
        let named = &self.preview.as_ref()?.named;
        named.get(self.mention.min(named.len().checked_sub(1)?))
    }

    /// Moves the cursor among mentions.
    pub(super) fn select_mention(&mut self, by: isize) {
        let last = self.preview.as_ref().map_or(0, |preview| preview.named.len().saturating_sub(1));
        self.mention = self.mention.min(last).saturating_add_signed(by).min(last);
    }

    fn decide(&mut self, decision: Mentions) -> Result<(), String> {
        let Some(mention) = self.mention() else { return Err("nobody else names the person".to_owned()) };
        if !mention.options.contains(&decision) {
            return Err(refusal(mention));
        }
        let id = mention.id.clone();
        self.stale |= self.choice.each.insert(id, decision) != Some(decision);
        self.select_mention(1);
        Ok(())
    }

    /// Decides about all mentions in the column of the selected one.
    fn decide_place(&mut self, decision: Mentions) -> Result<(), String> {
        let Some(mention) = self.mention() else { return Err("nobody else names the person".to_owned()) };
        if !mention.options.contains(&decision) {
            return Err(refusal(mention));
        }
        let place = mention.place.clone();
        let named = self.preview.iter().flat_map(|preview| &preview.named);
        let ids: HashSet<String> = named.filter(|m| m.place == place).map(|m| m.id.clone()).collect();
        self.choice.each.retain(|name, _| !ids.contains(name));
        self.choice.each.insert(place, decision);
        self.stale = true;
        Ok(())
    }

    /// Decides about the selected mention, or about all in its column.
    pub(super) fn decide_here(&mut self, decision: Mentions, all: bool, cx: &mut Context) {
        if !self.is_at_mentions() {
            return cx.say(ToastTone::Info, "decide at the step about mentions");
        }
        let done = if all { self.decide_place(decision) } else { self.decide(decision) };
        if let Err(reason) = done {
            cx.say(ToastTone::Warn, reason);
        }
    }

    /// Forgets decisions about mentions that no longer exist.
    pub(super) fn forget_missing(&mut self) {
        let Some(preview) = &self.preview else { return };
        let there: HashSet<&str> = preview.named.iter().flat_map(|m| [m.id.as_str(), m.place.as_str()]).collect();
        self.choice.each.retain(|name, _| there.contains(name.as_str()));
    }
}

fn refusal(mention: &ShownMention) -> String {
    mention.refused.clone().unwrap_or_else(|| "that is not possible there".to_owned())
}
