//! Several open databases: showing another one, opening one next to the current one, closing the current one. Each has
//! its own model, which continues while another one is shown.

use super::model::Model;
use crate::console::core::opened::Arrival;
use crate::console::core::request::{KnownDatabase, TriedDatabase};
use crate::console::core::{
    CommandId, Context, Effect, LayerOpening, Menu, MenuChoice, MenuItem, OpenBeside, Request, RequestFailure,
    SwitchStep, Ticket, ToastTone,
};
use crate::console::view::live::new_rows;
use crate::console::view::words::age;

/// Most databases open at once: each has its own connections.
const OPEN_AT_MOST: usize = 6;

/// Opening another database.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct DatabaseSwitch {
    /// Pending request that lists the databases, or opens one.
    waiting: Option<Ticket>,
    /// Message for the database that is shown next.
    said: Option<String>,
}

impl DatabaseSwitch {
    pub(super) fn offer(&mut self, cx: &mut Context) {
        cx.cancel(self.waiting.take());
        self.waiting = Some(cx.ask_for_all(Request::LoadDatabases));
    }

    /// Takes the list of databases: open ones come first.
    pub(super) fn choose(&mut self, known: &[KnownDatabase], cx: &mut Context) {
        self.waiting = None;
        let is_open = |known: &KnownDatabase| {
            let is_at = |location: &str| !location.is_empty() && (known.name == location || known.note == location);
            let at = |location: &str, place: &str| is_at(location) || is_at(place);
            let here = &cx.opened;
            at(&here.location, &here.place) || cx.beside.iter().any(|open| at(&open.location, &open.place))
        };
        let closed = known.iter().filter(|known| !is_open(known)).map(|known| {
            let looked = known.looked.as_deref().map(|at| age(at, cx.now).to_string());
            let notes = [known.note.clone(), looked.unwrap_or_default()];
            item(&known.name, &notes, known.production, MenuChoice::OpenDatabase(known.open.clone()))
        });
        let open = cx.beside.iter().map(|open| {
            let notes = ["open".to_owned(), new_rows(open.news), open.under_way.clone().unwrap_or_default()];
            item(&open.name, &notes, open.production, MenuChoice::ShowDatabase(open.id))
        });
        // A database that became unreadable may have been replaced at its path.
        let again = cx.unread.iter().map(|_| {
            let here = cx.opened.profile.as_ref().unwrap_or(&cx.opened.place);
            let note = "this one, opened again".to_owned();
            item(cx.database_name(), &[note], cx.opened.production, MenuChoice::OpenDatabase(here.clone()))
        });
        let file =
            MenuItem::new("a file or an address…", "a path, a folder, or postgres://…", MenuChoice::NameDatabase);
        let items = again.chain(open).chain(closed).chain([file]).collect();
        cx.show(LayerOpening::Menu(Menu::new("Open another database", items)));
    }

    /// Tries to open a database; the current one is shown until that has succeeded.
    pub(super) fn attempt(&mut self, name: &str, cx: &mut Context) {
        cx.cancel(self.waiting.take());
        cx.say(ToastTone::Info, format!("opening {name}"));
        self.waiting = Some(cx.ask_for_all(Request::TryDatabase(name.to_owned())));
    }

    /// Takes a newly opened database, and shows it. If there are too many, the one that was shown longest ago and has
    /// no running work is closed.
    pub(super) fn tried(&mut self, result: Result<TriedDatabase, RequestFailure>, cx: &mut Context) {
        self.waiting = None;
        let TriedDatabase { location, replaces } = match result {
            Ok(tried) => tried,
            Err(failure) => return cx.fail(failure),
        };
        cx.toast = None;
        if replaces {
            self.said = Some("opened again".to_owned());
            return cx.perform(Effect::Switch(SwitchStep::Replace));
        }
        if [&cx.opened.location, &cx.opened.place].contains(&&location) {
            return cx.say(ToastTone::Info, "this is the database that is shown");
        }
        if let Some(open) = cx.beside.iter().find(|open| [&open.location, &open.place].contains(&&location)) {
            return cx.perform(Effect::Switch(SwitchStep::To(open.id)));
        }
        if cx.beside.len() + 1 >= OPEN_AT_MOST {
            let idle = cx.beside.iter().filter(|open| open.under_way.is_none());
            let Some(oldest) = idle.min_by_key(|open| open.shown).cloned() else {
                let what = format!("{location} was not opened");
                let why = format!("{OPEN_AT_MOST} databases are open, and something is running in each of the others");
                let close = format!("close one with {} first", cx.key_for(CommandId::CloseDatabase));
                return cx.fail(RequestFailure::new(what, why, close));
            };
            self.said = Some(format!("closed {}: {OPEN_AT_MOST} databases are open at most", oldest.name));
            cx.perform(Effect::Switch(SwitchStep::Close(oldest.id)));
        }
        cx.perform(Effect::Switch(SwitchStep::Opened));
    }
}

/// An entry for a database; the word for production is at the right, where keys are shown.
fn item(name: &str, notes: &[String], production: bool, choice: MenuChoice) -> MenuItem {
    let notes: Vec<&str> = notes.iter().map(String::as_str).filter(|note| !note.is_empty()).collect();
    let keys = if production { "PRODUCTION".to_owned() } else { String::new() };
    MenuItem { keys, ..MenuItem::new(name, notes.join(", "), choice) }
}

/// Shows the next open database.
pub(super) fn next(cx: &mut Context) {
    if let Some(next) = cx.beside.first().map(|open| open.id) {
        cx.perform(Effect::Switch(SwitchStep::To(next)));
    }
}

impl Model {
    /// This database as the others list it while it is not shown.
    pub fn beside(&self, id: u64, shown: u64) -> OpenBeside {
        OpenBeside {
            unlocked: self.context.changing.unlocked,
            id,
            shown,
            name: self.context.database_name().to_owned(),
            location: self.context.opened.location.clone(),
            place: self.context.opened.place.clone(),
            production: self.context.opened.production,
            news: self.screen().news(),
            under_way: self.under_way(),
            resumes: self.context.resume_lines(),
        }
    }

    /// Work that closing this database would break off.
    fn under_way(&self) -> Option<String> {
        let cx = &self.context;
        let running: Vec<&str> = cx.running.live.iter().map(|live| live.name.as_str()).collect();
        if let Some(pending) = &cx.changing.pending {
            Some(format!("a change is being {}", if pending.applying { "applied" } else { "planned" }))
        } else if !running.is_empty() {
            Some(format!("{} {} running", running.join(", "), if running.len() == 1 { "is" } else { "are" }))
        } else if self.screen().busy().is_some() {
            Some("a person is being erased".to_owned())
        } else if cx.exporting.is_some() {
            Some("an export is being written".to_owned())
        } else {
            let waits = self.overlays.iter().any(|overlay| overlay.get().gate().is_some());
            waits.then(|| "a plan waits for confirmation".to_owned())
        }
    }

    /// Closes this database; work that would be interrupted is named first.
    pub(super) fn close_database(&mut self) {
        let Some(under_way) = self.under_way() else {
            return self.context.perform(Effect::Switch(SwitchStep::Leave));
        };
        if self.context.changing.pending.as_ref().is_some_and(|pending| pending.applying) {
            return self.context.say(ToastTone::Warn, format!("{under_way}: wait until it ends"));
        }
        let next = self.context.key_for(CommandId::NextDatabase);
        let stops =
            if self.context.running.live.is_empty() { "it is stopped" } else { "at its next checkpoint it pauses" };
        let items = vec![
            MenuItem::new(
                "Leave it open",
                format!("{next} shows the next one in the meantime"),
                MenuChoice::CloseDatabase(false),
            ),
            MenuItem::new("Close it", stops, MenuChoice::CloseDatabase(true)),
        ];
        self.context.show(LayerOpening::Menu(Menu::new(under_way, items)));
    }

    /// Choices passed on to the database shown next.
    pub fn leave(&mut self) -> Arrival {
        let cx = &self.context;
        Arrival {
            settings: cx.settings.clone(),
            size: cx.size,
            now: cx.now,
            pane_steps: cx.pane_steps,
            columns: cx.columns.clone(),
            masked: cx.masking.is_on(),
            said: self.switch.said.take(),
        }
    }

    /// Takes over the choices of the database shown before.
    pub(super) fn arrive(&mut self, arrival: Arrival) {
        if arrival.masked && !self.context.masking.is_on() {
            // Overlays that arrived while another one was shown may name someone.
            self.overlays.retain(|_| false);
            self.toggle_mask();
        }
        let cx = &mut self.context;
        (cx.settings, cx.size, cx.now) = (arrival.settings, arrival.size, arrival.now);
        cx.measures.gate = None;
        (cx.pane_steps, cx.columns) = (arrival.pane_steps, arrival.columns);
        if let Some(said) = arrival.said {
            cx.say(ToastTone::Info, said);
        }
        self.history.name_window(cx);
    }
}
