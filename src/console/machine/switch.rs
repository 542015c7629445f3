//! Going to another database without leaving: those that were opened here, profiles, a file, the demo. One is tried before
//! this one is left.

use super::model::Model;
use crate::console::core::context::{LayerOpening, ToastTone};
use crate::console::core::menu::{Menu, MenuChoice, MenuItem, Purpose};
use crate::console::core::message::{Effect, RequestFailure};
use crate::console::core::request::{KnownDatabase, Request};
use crate::console::view::words::age;

impl Model {
    /// Whether this database can be left; says why not.
    fn can_leave(&mut self) -> bool {
        let reason = if self.context.changing.pending.is_some() {
            Some("a change is under way")
        } else if !self.context.running.live.is_empty() {
            Some("a job runs here: J pauses it")
        } else {
            self.screen().busy()
        };
        if let Some(reason) = reason {
            self.context.say(ToastTone::Warn, reason);
        }
        reason.is_none()
    }

    /// Asks which databases there are.
    pub(super) fn offer_databases(&mut self) {
        if self.can_leave() {
            let waited = self.context.switching.take();
            self.context.cancel(waited);
            self.context.switching = Some(self.context.ask_for_all(Request::LoadDatabases));
        }
    }

    /// Takes which databases there are.
    pub(super) fn choose_database(&mut self, known: Vec<KnownDatabase>) {
        self.context.switching = None;
        let now = self.context.now;
        let item = |known: KnownDatabase| {
            let looked = known.looked.as_deref().map(|at| age(at, now).to_string());
            let note = [known.note, looked.unwrap_or_default()].into_iter().filter(|part| !part.is_empty());
            MenuItem {
                label: known.name.clone(),
                note: note.collect::<Vec<_>>().join(", "),
                keys: if known.production { "PRODUCTION".to_owned() } else { String::new() },
                choice: MenuChoice::OpenDatabase(known.open),
                unavailable: None,
            }
        };
        let mut items: Vec<MenuItem> = known.into_iter().map(item).collect();
        let file = MenuItem {
            label: "a file or an address…".to_owned(),
            note: "a path, a folder, or postgres://…".to_owned(),
            keys: String::new(),
            choice: MenuChoice::NameDatabase,
            unavailable: None,
        };
        items.push(file);
        self.context.show(LayerOpening::Menu(Menu::new("Open another database", items)));
    }

    pub(super) fn name_database(&mut self) {
        self.context.prompt(Purpose::Database, "");
    }

    /// Tries to open a database; this one stays until that has gone well.
    pub(super) fn try_database(&mut self, name: &str) {
        if self.can_leave() {
            let waited = self.context.switching.take();
            self.context.cancel(waited);
            self.context.say(ToastTone::Info, format!("opening {name}"));
            self.context.switching = Some(self.context.ask_for_all(Request::TryDatabase(name.to_owned())));
        }
    }

    /// Takes whether a database was opened: then it takes the place of this one.
    pub(super) fn tried_database(&mut self, result: Result<(), RequestFailure>) {
        self.context.switching = None;
        match result {
            Ok(()) if self.can_leave() => {
                let masked = self.context.masking.is_on();
                self.context.perform(Effect::Switch { masked });
            }
            Ok(()) => {}
            Err(failure) => self.context.fail(failure),
        }
    }
}
