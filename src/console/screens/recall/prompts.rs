//! Line inputs of the recall screen: the situation, owners, filters of a ranking, and a name for saving it.

use super::{RecallCommand, RecallScreen, RecordedRecall};
use crate::console::core::{Context, Judged, Purpose, Request};
use crate::memory::Entity;
use crate::recall::inquiry::SavedQuestion;
use crate::recall::rank::Ranking;

/// Most ids offered.
const OFFERED: usize = 8;

impl RecallScreen {
    pub(super) fn write_line(&mut self, ask: RecallCommand, cx: &mut Context) {
        let asked = &self.inquiry;
        let text = |value: &Option<String>| value.clone().unwrap_or_default();
        let (purpose, text) = match ask {
            RecallCommand::Agent => (Purpose::Agent, text(&asked.agent)),
            RecallCommand::User => (Purpose::User, text(&asked.user)),
            RecallCommand::Narrow if self.side().way.ranking == Ranking::Similar => {
                (Purpose::Narrow, text(&asked.workflow))
            }
            RecallCommand::Narrow => (Purpose::Narrow, place(asked.domain.as_deref(), asked.topic.as_deref())),
            RecallCommand::Save => (Purpose::Keep, String::new()),
            _ => (Purpose::Situation, text(&asked.text)),
        };
        let kinds: &[Entity] = match ask {
            RecallCommand::Agent => &[Entity::Agent, Entity::Profile],
            RecallCommand::User => &[Entity::Subject, Entity::Profile],
            _ => &[],
        };
        let unread = kinds.iter().filter(|kind| !self.lists.contains_key(kind));
        self.wanted.extend(unread.copied().collect::<Vec<_>>());
        cx.prompt(purpose, &text);
    }

    pub(super) fn take_line(&mut self, purpose: Purpose, text: &str, cx: &mut Context) {
        let some = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        match purpose {
            Purpose::Situation => {
                (self.inquiry.text, self.inquiry.like) = (some(text), None);
                self.recorded = RecordedRecall::default();
            }
            Purpose::Agent => self.inquiry.agent = some(text),
            Purpose::User => self.inquiry.user = some(text),
            Purpose::Narrow if self.side().way.ranking == Ranking::Similar => self.inquiry.workflow = some(text),
            Purpose::Narrow => (self.inquiry.domain, self.inquiry.topic) = sought(text),
            Purpose::Keep => {
                let told = format!("saved as {text}; b b asks it again");
                let saved = SavedQuestion { name: text.to_owned(), inquiry: self.asked(self.side()) };
                self.keep(Request::SaveQuery(Box::new(saved)), told, cx);
            }
            _ => {}
        }
    }

    /// Judges the line: its meaning or its error, and the ids that may be meant.
    pub(super) fn judge_line(&self, purpose: Purpose, text: &str) -> Option<Judged> {
        use Purpose::{Agent, Keep, Narrow, Situation, User};
        if !matches!(purpose, Situation | Agent | User | Narrow | Keep) {
            return None;
        }
        let empty = text.is_empty();
        let judged = match purpose {
            Purpose::Agent => owner(self, text, "agent_id", Entity::Agent),
            Purpose::User => owner(self, text, "user_id", Entity::Subject),
            Purpose::Narrow if self.side().way.ranking == Ranking::Similar => {
                let told = if empty { "episodes of every workflow" } else { "episodes of this workflow" };
                (Ok(told.to_owned()), Vec::new())
            }
            Purpose::Narrow => {
                let (domain, topic) = sought(text);
                let said = |name: &str, value: Option<String>| {
                    value.map_or_else(|| format!("no {name}"), |value| format!("{name} {value}"))
                };
                (Ok(format!("{}, {}; as in: work / visa", said("domain", domain), said("topic", topic))), Vec::new())
            }
            Purpose::Keep if empty => (Err("name it".to_owned()), Vec::new()),
            Purpose::Keep => {
                let taken = self.saved.iter().flatten().any(|saved| saved.name == text);
                let told = if taken { "replaces the one of that name" } else { "saved in your own files" };
                (Ok(told.to_owned()), Vec::new())
            }
            _ if empty => (Ok("nothing in particular: ranked by time alone".to_owned()), Vec::new()),
            _ => {
                let told = "compared by its vector where the profile names an endpoint for that, else by its words";
                (Ok(told.to_owned()), Vec::new())
            }
        };
        Some(judged)
    }
}

/// Names the agent or user whose memories are used, and lists the ids that may be meant.
fn owner(recall: &RecallScreen, text: &str, column: &str, kind: Entity) -> (Result<String, String>, Vec<String>) {
    let listed = recall.lists.get(&kind).into_iter().flatten().map(|row| (row.id(), row.text("name")));
    let banks = recall.lists.get(&Entity::Profile).into_iter().flatten();
    let mut known: Vec<(&str, Option<&str>)> = Vec::new();
    for (id, name) in listed.chain(banks.filter_map(|row| Some((row.text(column)?, None)))) {
        if !known.iter().any(|(other, _)| *other == id) {
            known.push((id, name));
        }
    }
    let wanted = text.to_lowercase();
    let holds = |text: &str| text.to_lowercase().contains(&wanted);
    let offered: Vec<String> = known
        .iter()
        .filter(|(id, name)| *id != text && (holds(id) || name.is_some_and(holds)))
        .take(OFFERED)
        .map(|(id, _)| (*id).to_owned())
        .collect();
    let who = kind.title();
    let told = match known.iter().find(|(id, _)| *id == text) {
        _ if text.is_empty() => format!("memories of every {}", if kind == Entity::Agent { "agent" } else { "user" }),
        Some((_, Some(name))) => format!("{who} {name}"),
        Some((_, None)) => format!("this {who}"),
        None if known.is_empty() => "the id as the rows contain it".to_owned(),
        None => "not among those listed".to_owned(),
    };
    (Ok(told), offered)
}

/// Domain and topic as they are written: `work / visa`.
fn place(domain: Option<&str>, topic: Option<&str>) -> String {
    match (domain, topic) {
        (None, None) => String::new(),
        (Some(domain), None) => domain.to_owned(),
        (domain, Some(topic)) => format!("{} / {topic}", domain.unwrap_or_default()).trim().to_owned(),
    }
}

fn sought(text: &str) -> (Option<String>, Option<String>) {
    let some = |text: &str| Some(text.trim().to_owned()).filter(|text| !text.is_empty());
    match text.split_once('/') {
        Some((domain, topic)) => (some(domain), some(topic)),
        None => (some(text), None),
    }
}
