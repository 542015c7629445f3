//! The databases open in this session: each has its model and its tasks, which continue while another one is shown.

use super::desk::FoundDesk;
use super::effects::Tasks;
use crate::console::Model;
use crate::console::core::OpenBeside;

pub struct OpenDatabase {
    /// Number in this session.
    pub id: u64,
    /// Time of the last showing: the larger, the later.
    shown: u64,
    /// State of its console.
    pub model: Model,
    /// State that earlier sessions left.
    pub found: FoundDesk,
    pub tasks: Tasks,
}

/// The open databases in the order of opening; one of them is shown.
pub struct OpenDatabases {
    all: Vec<OpenDatabase>,
    here: usize,
    shown: u64,
}

impl OpenDatabases {
    /// Starts with one database, which is shown.
    pub fn new(id: u64, (model, found, tasks): (Model, FoundDesk, Tasks)) -> Self {
        OpenDatabases { all: vec![OpenDatabase { id, shown: 0, model, found, tasks }], here: 0, shown: 0 }
    }

    pub fn here(&self) -> &OpenDatabase {
        &self.all[self.here]
    }

    /// The database shown, mutable.
    pub fn here_mut(&mut self) -> &mut OpenDatabase {
        &mut self.all[self.here]
    }

    pub fn all(&self) -> &[OpenDatabase] {
        &self.all
    }

    /// The database of a number, unless it was closed.
    pub fn find_mut(&mut self, id: u64) -> Option<&mut OpenDatabase> {
        self.all.iter_mut().find(|open| open.id == id)
    }

    /// The other databases as the shown one lists them, the next one first.
    pub fn beside(&self) -> Vec<OpenBeside> {
        let (before, after) = self.all.split_at(self.here);
        after.iter().skip(1).chain(before).map(|open| open.model.beside(open.id, open.shown)).collect()
    }

    pub fn add(&mut self, id: u64, (model, found, tasks): (Model, FoundDesk, Tasks)) {
        self.all.push(OpenDatabase { id, shown: 0, model, found, tasks });
    }

    /// Shows the database of a number, if it is open.
    pub fn show(&mut self, id: u64) {
        if let Some(at) = self.all.iter().position(|open| open.id == id) {
            self.shown += 1;
            self.here = at;
            self.here_mut().shown = self.shown;
        }
    }

    pub fn take(&mut self, id: u64) -> Option<OpenDatabase> {
        let here = self.here().id;
        let at = self.all.iter().position(|open| open.id == id && id != here)?;
        let taken = self.all.remove(at);
        self.here -= usize::from(at < self.here);
        Some(taken)
    }

    pub fn shown_before(&self) -> Option<u64> {
        let here = self.here().id;
        self.all.iter().filter(|open| open.id != here).max_by_key(|open| open.shown).map(|open| open.id)
    }

    /// All open databases, the shown one last.
    pub fn into_all(mut self) -> Vec<OpenDatabase> {
        let here = self.all.remove(self.here);
        self.all.push(here);
        self.all
    }
}
