//! Line inputs over a screen: opening one, judging it, and taking it. Most belong to the screen; those here belong to
//! changes.

use super::model::Model;
use crate::change::operation::Operation;
use crate::change::plan::past::Moment;
use crate::console::core::{Context, Destination, Input, Judged, Prompt, Purpose, ToastTone};
use crate::console::overlays::Overlay;
use crate::console::overlays::prompt::PromptLayer;
use crate::memory::Entity;
use crate::memory::search::Search;

/// Lines remembered for each kind of rows.
const REMEMBERED: usize = 50;
const OUTCOMES: [&str; 4] = ["success", "partial", "failure", "aborted"];

impl Model {
    pub(super) fn open_prompt(&mut self, purpose: Purpose, subject: String, text: &str) {
        let lists = self.screen().lists();
        let earlier =
            self.filters.iter().rev().filter(|(entity, _)| purpose == Purpose::Filter && Some(*entity) == lists);
        let earlier = earlier.map(|(_, text)| text.clone()).collect();
        let (input, verdict) = (Input::holding(text), Ok(String::new()));
        let prompt =
            Prompt { purpose, subject, input, verdict, completions: Vec::new(), earlier, recalled: None, lists };
        self.show(PromptLayer::new(prompt));
    }

    /// Judges the line being written: its meaning, or its error.
    pub(super) fn judge_prompt(&mut self) {
        let Some((_, Overlay::Prompt(layer))) = self.overlays.last_mut() else { return };
        let screen = self.history.here().screen.get();
        let judged = judge_line(&layer.prompt, &self.context).or_else(|| screen.judge(&layer.prompt, &self.context));
        if let Some((verdict, completions)) = judged {
            (layer.prompt.verdict, layer.prompt.completions) = (verdict, completions);
        }
    }

    /// Takes a submitted line.
    pub(super) fn written(&mut self, purpose: Purpose, subject: String, text: &str) {
        match purpose {
            Purpose::Reward => match reward(text) {
                Ok((reward, outcome)) => self.context.propose(Operation::Reward { case: subject, reward, outcome }),
                Err(reason) => self.context.say(ToastTone::Warn, reason),
            },
            Purpose::Window => match window(text) {
                Ok(window) => self.context.propose(Operation::Window { profile: subject, window }),
                Err(reason) => self.context.say(ToastTone::Warn, reason),
            },
            Purpose::Hold => {
                self.context.propose(Operation::Hold { person: subject, reason: Some(text.to_owned()) });
            }
            Purpose::Person => self.erase_person(text),
            Purpose::Moment => self.look_back.ask(text, &mut self.context),
            Purpose::Place => self.kept.keep(self.history.here(), text, &mut self.context),
            Purpose::Database => self.switch.attempt(text, &mut self.context),
            Purpose::Find => self.context.go(Destination::Find(text.to_owned())),
            Purpose::Reason => {
                let reason = match self.overlays.last_mut() {
                    Some((_, Overlay::Confirm(confirmation))) => Some(&mut confirmation.reason),
                    Some((_, Overlay::Erase(question))) => Some(&mut question.reason),
                    _ => None,
                };
                if let Some(reason) = reason {
                    text.clone_into(reason);
                    let told =
                        if text.is_empty() { "no reason is stored" } else { "the reason is stored with the change" };
                    self.context.say(ToastTone::Info, told);
                }
            }
            purpose => {
                if let (Purpose::Filter, Some(entity)) = (purpose, self.screen().lists()) {
                    remember_filter(&mut self.filters, entity, text);
                }
                self.at_screen(|screen, cx| screen.written(purpose, text, cx));
            }
        }
    }
}

fn remember_filter(filters: &mut Vec<(Entity, String)>, entity: Entity, text: &str) {
    filters.retain(|(_, written)| written != text);
    if !text.is_empty() {
        filters.push((entity, text.to_owned()));
    }
    let surplus = filters.len().saturating_sub(REMEMBERED);
    filters.drain(..surplus);
}

/// Judges a line that does not belong to the screen.
fn judge_line(prompt: &Prompt, cx: &Context) -> Option<Judged> {
    let text = prompt.input.text().trim();
    let ok = |told: &str| Ok(told.to_owned());
    let verdict = match prompt.purpose {
        Purpose::Reason => ok("stored among the private values of the audit entry"),
        Purpose::Reward => reward(text).map(|(reward, outcome)| match outcome {
            Some(outcome) => format!("reward {reward}, outcome {outcome}"),
            None => format!("reward {reward}; the outcome stays"),
        }),
        Purpose::Window => window(text).map(|window| match window {
            Some(1) => "keeps the newest case".to_owned(),
            Some(window) => format!("keeps the {window} newest cases"),
            None => "keeps every case".to_owned(),
        }),
        Purpose::Person if text.is_empty() => Err("an id, an e-mail address, a name, a session".to_owned()),
        Purpose::Person => ok("first shows whom that matches and what erasing would do"),
        Purpose::Moment if text.is_empty() => ok("an age such as 7d, a time, or the number of a change; empty is now"),
        Purpose::Moment => match Moment::parse(&cx.settings.zone.spelled(text), cx.now) {
            Some(Moment::Entry(seq)) => Ok(format!("just after change {seq}")),
            Some(Moment::Time(at)) => Ok(format!("as of {}", cx.with_moments(&at))),
            None => Err("an age such as 7d, a time such as 2026-02-04 10:00, or the number of a change".to_owned()),
        },
        Purpose::Within => ok("an empty line goes to the next match, the key , to the previous one"),
        Purpose::Place if text.is_empty() => Err("a name to find it by".to_owned()),
        Purpose::Place => ok("saved in your own files, for this database"),
        Purpose::Database if text.is_empty() => Err("a path, a folder, an address, or a profile".to_owned()),
        Purpose::Database => ok("opened in addition to this one"),
        Purpose::Find => Search::parse(text).map(|_| "in titles, texts, feedback, cases and memories".to_owned()),
        Purpose::Hold if text.is_empty() => Err("say why: a case number, a name, a date".to_owned()),
        Purpose::Hold => ok("stored with the hold, and shown to anyone who tries to erase the person"),
        _ => return None,
    };
    Some((verdict, Vec::new()))
}

/// A reward from 0 to 1, and an outcome when one follows it.
fn reward(text: &str) -> Result<(f64, Option<String>), String> {
    let mut words = text.split_whitespace();
    let reward = words.next().ok_or("a number from 0 to 1, and an outcome if it changes too")?;
    let reward = reward.parse::<f64>().ok().filter(|reward| (0.0..=1.0).contains(reward));
    let reward = reward.ok_or("a reward is a number from 0 to 1")?;
    let outcome = words.next();
    match (outcome, words.next()) {
        (Some(word), _) if !OUTCOMES.contains(&word) => Err(format!("an outcome is one of {}", OUTCOMES.join(", "))),
        (_, Some(_)) => Err("a number, and at most one outcome".to_owned()),
        (outcome, None) => Ok((reward, outcome.map(str::to_owned))),
    }
}

/// Parses the number of cases to keep; `None` keeps all.
fn window(text: &str) -> Result<Option<i64>, String> {
    match text {
        "all" => Ok(None),
        text => match text.parse::<i64>() {
            Ok(window) if window > 0 => Ok(Some(window)),
            Ok(_) => Err("a window keeps at least one case; `all` keeps every one".to_owned()),
            Err(_) => Err("a number of cases, or `all`".to_owned()),
        },
    }
}
