//! Subjects of the commands that change something: the selected row, the marked ones, or one of the selected row's
//! own.

use super::place::ScreenPlace;
use crate::change::operation::{Operation, TRAINING_SEED};
use crate::console::core::{
    CommandAsk, Context, LayerOpening, Menu, MenuChoice, MenuItem, Proposal, Purpose, Screen, ToastTone, row_name,
};
use crate::console::overlays::row_form::is_offered;
use crate::console::view::words;
use crate::memory::{Entity, Row, agreeing};
use crate::ui::figures;

/// Most marked rows changed at once: each is planned and applied separately.
const AT_ONCE: usize = 200;

/// Subject of a change: the place where it is requested.
pub(super) struct ChangeSubject<'p> {
    pub place: &'p ScreenPlace,
}

impl ChangeSubject<'_> {
    fn screen(&self) -> &dyn Screen {
        self.place.screen()
    }

    /// Ids of the marked rows of an entity; none while the details have the focus, whose row is meant then.
    fn marked(&self, entity: Entity) -> Vec<String> {
        if self.screen().means_open_row() { Vec::new() } else { self.screen().marked(entity) }
    }

    /// Whether a change applies to the rows marked here.
    fn takes_marks(&self, ask: CommandAsk) -> bool {
        let lists = self.screen().lists();
        let of = match ask {
            CommandAsk::Signal(_) => Some(Entity::Episode),
            CommandAsk::Hold(_) => Some(Entity::Case),
            CommandAsk::Retract => Some(Entity::UtilityEvent),
            CommandAsk::Edit | CommandAsk::Remove => lists,
            _ => None,
        };
        of.is_some() && of == lists && !self.screen().means_open_row()
    }

    /// The id of the selected row, if it is of this entity.
    fn selected_id(&self, entity: Entity) -> Option<String> {
        let (found, id) = self.screen().selected()?;
        (found == entity && !id.is_empty()).then(|| id.to_owned())
    }

    /// The episode that the selected row is, or belongs to.
    fn selected_episode(&self) -> Option<String> {
        self.place.origin().id_of(Entity::Episode, "episode_id")
    }

    /// Checks that a change can be requested here and now.
    ///
    /// # Errors
    /// The reason why not.
    pub(super) fn can_ask(&self, ask: CommandAsk) -> Result<(), String> {
        let no = |reason: &str| Err(reason.to_owned());
        let unseen = if self.takes_marks(ask) { self.screen().unseen_marks() } else { 0 };
        if unseen > 0 {
            let words = "{#} marked {row is|rows are} not visible with this filter: clear the marks or the filter";
            return Err(agreeing(unseen as u64, words));
        }
        match ask {
            CommandAsk::EditFeedback if self.rows_of(Entity::Feedback).is_empty() => no("no feedback is selected"),
            CommandAsk::Edit | CommandAsk::Remove => match self.screen().selected() {
                None => no("no row is selected"),
                Some((_, "")) => no("the row has no id"),
                Some((Entity::UtilityEvent, _)) => no("signals are a history: t x retracts one"),
                Some((Entity::AuditEntry, _)) => no("an audit trail is append-only"),
                Some(_) => Ok(()),
            },
            CommandAsk::Signal(_) | CommandAsk::AddFeedback if self.selected_episode().is_none() => {
                no("no episode is selected")
            }
            CommandAsk::Link | CommandAsk::Unlink if self.selected_id(Entity::Episode).is_none() => {
                no("no episode is selected")
            }
            CommandAsk::Unlink if self.screen().row().is_some_and(|row| row.text("parent_id").is_none()) => {
                no("the episode follows no other one")
            }
            CommandAsk::ActivatePolicy if self.selected_id(Entity::Policy).is_none() => no("no policy is selected"),
            CommandAsk::ActivatePolicy if self.screen().row().is_some_and(|row| row.text("profile_id").is_none()) => {
                no("the policy belongs to no bank: nothing would use it")
            }
            CommandAsk::TrainPolicy if self.selected_bank().is_none() => {
                no("no bank is selected: a profile, a case, or a policy of one")
            }
            CommandAsk::Reward | CommandAsk::Hold(_) if self.selected_id(Entity::Case).is_none() => {
                no("no case is selected")
            }
            CommandAsk::LegalHold(_) if self.place.person().is_none() => no("no person is selected"),
            CommandAsk::Window if self.selected_id(Entity::Profile).is_none() => no("no profile is selected"),
            CommandAsk::Retract if self.rows_of(Entity::UtilityEvent).is_empty() => no("no signal is selected"),
            _ => Ok(()),
        }
    }

    /// The selected bank, or the bank of the selected policy or case.
    fn selected_bank(&self) -> Option<String> {
        let of_bank = |row: &&Row| matches!(row.entity, Entity::Policy | Entity::Case);
        let named = || self.screen().row().filter(of_bank)?.text("profile_id").map(str::to_owned);
        self.selected_id(Entity::Profile).or_else(named)
    }

    /// The rows of an entity that a change could concern: the selected one, else those of the selected episode.
    fn rows_of(&self, entity: Entity) -> Vec<(String, String, String)> {
        if let Some(id) = self.selected_id(entity) {
            return vec![(id.clone(), id, String::new())];
        }
        let rows = self.screen().context_rows(entity).iter().filter(|row| !row.id().is_empty());
        rows.map(choice).collect()
    }

    /// Requests a change of the marked rows, else of the selected one.
    pub(super) fn ask_change(&self, ask: CommandAsk, cx: &mut Context) {
        let operation = match ask {
            CommandAsk::Signal(signal) => {
                let told = |episode: String| Operation::Signal { episode, signal, reason: None, feedback: None };
                let marked = self.marked(Entity::Episode);
                if !marked.is_empty() {
                    return propose_each(marked, told, cx);
                }
                self.selected_episode().map(told)
            }
            CommandAsk::Link => match self.screen().suggests() {
                None => return self.pick_parent(cx),
                link => link,
            },
            CommandAsk::Unlink => self.selected_id(Entity::Episode).map(|child| Operation::Unlink { child }),
            CommandAsk::ActivatePolicy => self.selected_id(Entity::Policy).map(|id| Operation::ActivatePolicy { id }),
            CommandAsk::TrainPolicy => {
                self.selected_bank().map(|bank| Operation::TrainPolicy { bank, pairs: None, seed: TRAINING_SEED })
            }
            CommandAsk::Hold(held) => {
                let marked = self.marked(Entity::Case);
                let selected = self.selected_id(Entity::Case).into_iter().collect();
                let cases = if marked.is_empty() { selected } else { marked };
                Some(if held { Operation::Quarantine { cases } } else { Operation::Release { cases } })
            }
            CommandAsk::LegalHold(false) => self.place.person().map(|person| Operation::Unhold { person }),
            CommandAsk::LegalHold(true) => {
                let person = self.place.person().unwrap_or_default();
                return cx.show(LayerOpening::Prompt(Purpose::Hold, person, String::new()));
            }
            CommandAsk::AddFeedback => {
                if let Some(episode) = self.selected_episode() {
                    cx.show(LayerOpening::Add(episode));
                }
                return;
            }
            CommandAsk::Edit => return self.edit(cx),
            CommandAsk::EditFeedback => return self.edit_feedback(cx),
            CommandAsk::Reward => return self.ask_line(Entity::Case, Purpose::Reward, reward_of, cx),
            CommandAsk::Window => return self.ask_line(Entity::Profile, Purpose::Window, window_of, cx),
            CommandAsk::Remove => return self.remove(cx),
            CommandAsk::Retract => {
                return self.propose_one(Entity::UtilityEvent, "Retract signal", |id| Operation::Retract { id }, cx);
            }
        };
        if let Some(operation) = operation {
            cx.propose(operation);
        }
    }

    fn pick_parent(&self, cx: &mut Context) {
        if let Some(child) = self.selected_id(Entity::Episode) {
            cx.show(LayerOpening::Pick(child));
        }
    }

    /// Opens a line input with the selected row's value.
    fn ask_line(&self, entity: Entity, purpose: Purpose, holds: impl Fn(&Row) -> String, cx: &mut Context) {
        let Some(id) = self.selected_id(entity) else { return };
        let text = self.screen().row().map(holds).unwrap_or_default();
        cx.show(LayerOpening::Prompt(purpose, id, text));
    }

    /// The marked rows of the selected kind, else the selected one.
    fn marked_or_selected(&self) -> Option<(Entity, Vec<String>)> {
        let (entity, id) = self.screen().selected()?;
        let marked = self.marked(entity);
        Some((entity, if marked.is_empty() { vec![id.to_owned()] } else { marked }))
    }

    /// Opens the form on the selected row, or on the marked ones.
    fn edit(&self, cx: &mut Context) {
        let Some((entity, ids)) = self.marked_or_selected() else { return };
        if ids.len() > AT_ONCE {
            return too_many(ids.len(), cx);
        }
        if !entity.columns().iter().any(|column| is_offered(entity, column, cx)) {
            let text = format!("{} are read-only in this database", entity.plural());
            return cx.say(ToastTone::Warn, text);
        }
        // Rows in lists are cut short: only a row that was read as a whole may be edited.
        match self.screen().whole_row().filter(|row| row.entity == entity) {
            None => cx.say(ToastTone::Warn, "not all values of this row are read: open it, or wait a moment"),
            Some(row) if entity == Entity::Feedback && matches!(&ids[..], [id] if id == row.id()) => {
                cx.show(LayerOpening::Edit(Box::new(row.clone())));
            }
            Some(row) => cx.show(LayerOpening::EditRow(Box::new(row.clone()), ids)),
        }
    }

    /// Proposes to delete the selected row, or the marked ones.
    fn remove(&self, cx: &mut Context) {
        match self.marked_or_selected() {
            Some((entity @ Entity::Feedback, ids)) => {
                propose_each(ids, |id| Operation::Remove { entity, ids: vec![id] }, cx);
            }
            Some((entity, ids)) => cx.propose(Operation::Remove { entity, ids }),
            None => {}
        }
    }

    /// Opens the form on the selected feedback, or on one of the selected episode's.
    fn edit_feedback(&self, cx: &mut Context) {
        // Rows in lists are cut short: only a row that was read as a whole may be edited.
        let own = self.screen().whole_row().filter(|row| row.entity == Entity::Feedback);
        let rows: Vec<Row> = match own {
            Some(row) => vec![row.clone()],
            None => self.screen().context_rows(Entity::Feedback).to_vec(),
        };
        match &rows[..] {
            [] => cx.say(ToastTone::Warn, "the feedback is still being read"),
            [row] => cx.show(LayerOpening::Edit(Box::new(row.clone()))),
            rows => {
                let items = rows.iter().map(|row| MenuItem {
                    label: row_name(row),
                    note: row.id().to_owned(),
                    keys: String::new(),
                    choice: MenuChoice::Edit(Box::new(row.clone())),
                    unavailable: None,
                });
                cx.show(LayerOpening::Menu(Menu::new("Edit feedback", items.collect())));
            }
        }
    }

    /// Proposes an operation on the marked rows, or on one row, chosen from a menu if there are several.
    fn propose_one(&self, entity: Entity, title: &str, operation: impl Fn(String) -> Operation, cx: &mut Context) {
        let marked = self.marked(entity);
        if !marked.is_empty() {
            return propose_each(marked, operation, cx);
        }
        let mut rows = self.rows_of(entity);
        match rows.len() {
            0 => cx.say(ToastTone::Warn, format!("{title}: there is none")),
            1 => cx.propose(operation(rows.remove(0).0)),
            _ => {
                let items = rows.into_iter().map(|(id, label, note)| MenuItem {
                    label,
                    note,
                    keys: String::new(),
                    choice: MenuChoice::Propose(Box::new(operation(id))),
                    unavailable: None,
                });
                cx.show(LayerOpening::Menu(Menu::new(title, items.collect())));
            }
        }
    }
}

/// A row to choose: its id, its name, and a distinguishing note. A signal is identified by its time, its effect on the
/// utility, and its author.
fn choice(row: &Row) -> (String, String, String) {
    let id = row.id().to_owned();
    if row.entity != Entity::UtilityEvent {
        return (id.clone(), row_name(row), id);
    }
    let at = row.text("created_at").map(|at| words::time(at, false).to_string());
    let delta = row.number("delta").map(|delta| format!("{delta:+.2}"));
    let signal = row.text("signal").map(str::to_owned);
    let joined = |parts: [Option<String>; 3]| parts.into_iter().flatten().collect::<Vec<_>>().join("  ");
    let by = row.text("actor").map(|actor| format!("by {actor}"));
    let reason = row.text("reason").map(str::to_owned);
    (id, joined([at, signal, delta]), joined([by, reason, None]))
}

/// Proposes the same operation for several rows.
fn propose_each(ids: Vec<String>, operation: impl Fn(String) -> Operation, cx: &mut Context) {
    if ids.len() > AT_ONCE {
        return too_many(ids.len(), cx);
    }
    cx.propose(Proposal::Changes(ids.into_iter().map(operation).collect()));
}

fn too_many(marked: usize, cx: &mut Context) {
    cx.say(ToastTone::Warn, format!("{marked} rows are marked; at most {AT_ONCE} can be changed at once"));
}

fn reward_of(case: &Row) -> String {
    case.number("reward").map(figures::real).unwrap_or_default()
}

fn window_of(profile: &Row) -> String {
    profile.get("window_size").as_i64().map_or_else(|| "all".to_owned(), |window| window.to_string())
}
