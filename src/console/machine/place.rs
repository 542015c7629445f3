//! A place on the way through the console: a screen, and how it was reached.

use crate::console::core::{COMMANDS, CommandId, Screen, ScreenKind, ScreenOrigin};
use crate::console::screens::AnyScreen;
use crate::memory::kept::KeptPlace;
use crate::memory::{Entity, Row};

/// A place: a screen, and how it was reached.
#[derive(Debug, Clone, PartialEq)]
pub struct ScreenPlace {
    /// Number of the place, by which replies reach it.
    pub id: u64,
    /// Screen that the place shows.
    pub screen: AnyScreen,
    /// True when the place was reached by following something.
    pub followed: bool,
    /// Number of changes made when it was last read.
    pub epoch: u64,
}

impl ScreenPlace {
    /// The screen.
    pub fn screen(&self) -> &dyn Screen {
        self.screen.get()
    }

    /// Kind and id of the selected row.
    pub fn selected(&self) -> Option<(Entity, &str)> {
        self.screen().selected()
    }

    /// The selected row, if known.
    pub fn row(&self) -> Option<&Row> {
        self.screen().row()
    }

    /// The person that the place concerns: the selected subject, or the owner of the row.
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

    /// Returns the current selection, for a screen that is opened from here.
    pub fn origin(&self) -> ScreenOrigin {
        ScreenOrigin { person: self.person(), ..self.origin_row() }
    }

    /// Returns the kind of the screen, if it is one with its own command.
    pub fn kind(&self) -> Option<ScreenKind> {
        match self.screen().leads_here() {
            CommandId::Panel(kind) => Some(kind),
            _ => None,
        }
    }

    /// Returns the record to save the place, without a name; `None` if it cannot be saved.
    pub fn to_keep(&self) -> Option<KeptPlace> {
        let here = self.screen();
        here.kept().or_else(|| {
            let leads = COMMANDS.iter().find(|command| command.id == here.leads_here())?;
            let is_screen = matches!(leads.id, CommandId::Panel(_) | CommandId::Home);
            is_screen.then(|| KeptPlace { screen: Some(leads.title.to_owned()), ..KeptPlace::default() })
        })
    }

    /// Returns the place at which the next session resumes; `None` for the first screen, which opens anyway.
    pub fn to_resume(&self) -> Option<KeptPlace> {
        self.to_keep().filter(|_| self.screen().leads_here() != CommandId::Home)
    }
}
