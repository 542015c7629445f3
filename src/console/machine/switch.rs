//! Going to another database without leaving: those that were opened here, profiles, a file, the demo. One is tried before
//! this one is left.

use crate::console::core::context::{Context, LayerOpening, ToastTone};
use crate::console::core::menu::{Menu, MenuChoice, MenuItem};
use crate::console::core::message::{Effect, RequestFailure, Ticket};
use crate::console::core::request::{KnownDatabase, Request};
use crate::console::core::screen::Screen;
use crate::console::view::words::age;

/// Going to another database.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct DatabaseSwitch {
    /// Others are being looked for, or one is being opened.
    waiting: Option<Ticket>,
}

impl DatabaseSwitch {
    /// Asks which databases there are.
    pub(super) fn offer(&mut self, screen: &dyn Screen, cx: &mut Context) {
        if can_leave(screen, cx) {
            cx.cancel(self.waiting.take());
            self.waiting = Some(cx.ask_for_all(Request::LoadDatabases));
        }
    }

    /// Takes which databases there are.
    pub(super) fn choose(&mut self, known: Vec<KnownDatabase>, cx: &mut Context) {
        self.waiting = None;
        let now = cx.now;
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
        cx.show(LayerOpening::Menu(Menu::new("Open another database", items)));
    }

    /// Tries to open a database; this one stays until that has gone well.
    pub(super) fn attempt(&mut self, name: &str, screen: &dyn Screen, cx: &mut Context) {
        if can_leave(screen, cx) {
            cx.cancel(self.waiting.take());
            cx.say(ToastTone::Info, format!("opening {name}"));
            self.waiting = Some(cx.ask_for_all(Request::TryDatabase(name.to_owned())));
        }
    }

    /// Takes whether a database was opened: then it takes the place of this one.
    pub(super) fn tried(&mut self, result: Result<(), RequestFailure>, screen: &dyn Screen, cx: &mut Context) {
        self.waiting = None;
        match result {
            Ok(()) if can_leave(screen, cx) => cx.perform(Effect::Switch { masked: cx.masking.is_on() }),
            Ok(()) => {}
            Err(failure) => cx.fail(failure),
        }
    }
}

/// Whether this database can be left; says why not.
fn can_leave(screen: &dyn Screen, cx: &mut Context) -> bool {
    let reason = if cx.changing.pending.is_some() {
        Some("a change is under way")
    } else if !cx.running.live.is_empty() {
        Some("a job runs here: J pauses it")
    } else {
        screen.busy()
    };
    if let Some(reason) = reason {
        cx.say(ToastTone::Warn, reason);
    }
    reason.is_none()
}
