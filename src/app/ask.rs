//! What the commands that change something are about: the selected row, or one of its own.

use super::command::Ask;
use super::menu::{Choice, Item, Menu, Overlay};
use super::message::{Content, Effect};
use super::model::{Model, Tone};
use super::operation::Operation;
use crate::memory::{Entity, Row};

impl Model {
    /// The id of the selected row, when it is one of those.
    fn selected_id(&self, entity: Entity) -> Option<String> {
        let (found, id) = self.history.here().selected()?;
        (found == entity && !id.is_empty()).then(|| id.to_owned())
    }

    /// The episode that the selected row is, or belongs to.
    fn selected_episode(&self) -> Option<String> {
        let of_row = || self.history.here().row().and_then(|row| row.text("episode_id")).map(str::to_owned);
        self.selected_id(Entity::Episode).or_else(of_row).filter(|id| !id.is_empty())
    }

    /// Rows of the selected episode's context.
    fn context_rows(&self, entity: Entity) -> &[Row] {
        match self.history.here().detail().map(|detail| (&detail.content, detail.row())) {
            Some((Some(Content::Episode(context)), Some(_))) => match entity {
                Entity::Feedback => &context.feedback,
                Entity::UtilityEvent => &context.utility,
                _ => &[],
            },
            _ => &[],
        }
    }

    /// Whether a change can be asked for here and now.
    ///
    /// # Errors
    /// What is lacking.
    pub(super) fn can_ask(&self, ask: Ask) -> Result<(), String> {
        let no = |reason: &str| Err(reason.to_owned());
        match ask {
            Ask::RemoveFeedback if self.rows_of(Entity::Feedback).is_empty() => no("no feedback is selected"),
            Ask::Retract if self.rows_of(Entity::UtilityEvent).is_empty() => no("no signal is selected"),
            Ask::Signal(_) if self.selected_episode().is_none() => no("no episode is selected"),
            Ask::Unlink if self.selected_id(Entity::Episode).is_none() => no("no episode is selected"),
            Ask::Unlink if self.history.here().row().is_some_and(|row| row.text("parent_id").is_none()) => {
                no("the episode follows no other one")
            }
            _ => Ok(()),
        }
    }

    /// The rows of that kind that a change could be about: the selected one, else those of the selected episode. Each with
    /// its id and what it is called.
    fn rows_of(&self, entity: Entity) -> Vec<(String, String)> {
        if let Some(id) = self.selected_id(entity) {
            return vec![(id, String::new())];
        }
        let rows = self.context_rows(entity).iter().filter(|row| !row.id().is_empty());
        rows.map(|row| (row.id().to_owned(), super::follow::row_name(row))).collect()
    }

    /// Asks for a change of the selected row.
    pub(super) fn ask_change(&mut self, ask: Ask) -> Vec<Effect> {
        match ask {
            Ask::Signal(signal) => match self.selected_episode() {
                Some(episode) => self.propose(Operation::Signal { episode, signal }),
                None => Vec::new(),
            },
            Ask::Unlink => match self.selected_id(Entity::Episode) {
                Some(child) => self.propose(Operation::Unlink { child }),
                None => Vec::new(),
            },
            Ask::RemoveFeedback => {
                self.propose_one(Entity::Feedback, "Remove feedback", |id| Operation::RemoveFeedback { id })
            }
            Ask::Retract => self.propose_one(Entity::UtilityEvent, "Retract signal", |id| Operation::Retract { id }),
        }
    }

    /// Proposes an operation on a row, which is chosen where there are several.
    fn propose_one(&mut self, entity: Entity, title: &str, operation: impl Fn(String) -> Operation) -> Vec<Effect> {
        let mut rows = self.rows_of(entity);
        match rows.len() {
            0 => self.say(Tone::Warn, format!("{title}: there is none")),
            1 => self.propose(operation(rows.remove(0).0)),
            _ => {
                let items = rows.into_iter().map(|(id, name)| Item {
                    label: if name.is_empty() { id.clone() } else { name },
                    note: id.clone(),
                    keys: String::new(),
                    choice: Choice::Propose(Box::new(operation(id))),
                    unavailable: None,
                });
                self.show(Overlay::Menu(Menu::new(title, items.collect())))
            }
        }
    }
}
