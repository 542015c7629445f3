//! What commands do, and whether they can be given here and now.

use super::columns::{plural, title_column};
use super::command::{COMMANDS, Command, CommandId, Scope, command};
use super::condition::Conditions;
use super::follow::{links, row_name};
use super::menu::{Choice, Item, Menu, Overlay, Prompt, Purpose};
use super::message::{Destination, Effect, Export, Failure};
use super::model::{Model, Tone};
use super::place::{Pane, Place, View};
use super::twin::command_line;
use super::window::{Want, row_key};
use crate::memory::query::{Order, Query};
use crate::memory::{Entity, Kind, Row};

/// Themes that can be chosen.
pub const THEMES: &[(&str, &str)] = &[
    ("dark", "for dark backgrounds"),
    ("light", "for light backgrounds"),
    ("contrast", "strong colours"),
    ("mono", "no colours"),
];

impl Model {
    /// Whether a command can be given here and now; else why not, and what would help.
    ///
    /// # Errors
    /// The reason, with a remedy where there is one.
    pub fn available(&self, command: &Command) -> Result<(), (String, Option<String>)> {
        let no = |reason: &str| Err((reason.to_owned(), None));
        if let Some(entity) = command.needs()
            && let Err(missing) = self.holds(entity)
        {
            let reason = missing.reason.clone().unwrap_or_else(|| format!("there are no {} here", plural(entity)));
            return Err((reason, missing.remedy.clone()));
        }
        let (browse, here) = (self.browse(), self.history.here());
        match command.scope {
            Scope::List if browse.is_none() => return no("only in a list"),
            Scope::Rows if matches!(here.view, View::Home(_)) => return no("only where rows are shown"),
            _ => {}
        }
        match command.id {
            CommandId::Back if !self.history.has(-1) => no("there is nothing to go back to"),
            CommandId::Forward if !self.history.has(1) => no("there is nothing to go forward to"),
            CommandId::ClearFilter if browse.is_some_and(|b| b.conditions.is_empty()) => no("there is no filter"),
            CommandId::Unmark if browse.is_some_and(|b| b.marks.is_empty()) => no("nothing is marked"),
            CommandId::CopyId | CommandId::CopyJson | CommandId::CopyText | CommandId::View | CommandId::Mark
                if here.row().is_none() =>
            {
                no("no row is selected")
            }
            CommandId::Follow if here.detail().is_none_or(|d| d.row().is_none()) => no("no row is loaded"),
            CommandId::Export if self.exporting.is_some() => no("an export is still running"),
            CommandId::Focus | CommandId::Zoom if browse.is_none() => no("there is one pane only"),
            _ => Ok(()),
        }
    }

    /// Gives a command.
    pub(super) fn command(&mut self, id: CommandId) -> Vec<Effect> {
        let Some(command) = command(id) else { return Vec::new() };
        if let Err((reason, remedy)) = self.available(command) {
            if let (Some(_), Some(remedy)) = (command.needs(), remedy) {
                self.complain(Failure::new(format!("{} cannot be shown", command.title), reason, remedy));
                return Vec::new();
            }
            return self.say(Tone::Warn, format!("{}: {reason}", command.title));
        }
        match id {
            CommandId::Up => self.move_by(-1),
            CommandId::Down => self.move_by(1),
            CommandId::PageUp => self.move_by(-self.page()),
            CommandId::PageDown => self.move_by(self.page()),
            CommandId::First => self.go_to_end(false),
            CommandId::Last => self.go_to_end(true),
            CommandId::Open => self.open(),
            CommandId::Close => self.close(),
            CommandId::Back => self.travel(-1),
            CommandId::Forward => self.travel(1),
            CommandId::Home => self.go(&Destination::Home, false),
            CommandId::List(entity) => self.go(&Destination::List(entity, Conditions::default()), false),
            CommandId::Filter => self.open_filter(),
            CommandId::ClearFilter => self.narrow(Conditions::default()),
            CommandId::Sort => self.open_sort(),
            CommandId::SortLeft => self.sort_beside(-1),
            CommandId::SortRight => self.sort_beside(1),
            CommandId::Reverse => self.reverse(),
            CommandId::Mark => self.mark(),
            CommandId::Unmark => self.unmark(),
            CommandId::Export => self.open_export(),
            CommandId::Focus => self.other_pane(),
            CommandId::TabLeft => self.turn_tab(-1),
            CommandId::TabRight => self.turn_tab(1),
            CommandId::Zoom => self.zoom(),
            CommandId::Follow => self.open_follow(),
            CommandId::CopyId => self.copy("id", |row| row.id().to_owned()),
            CommandId::CopyJson => self.copy("JSON", pretty),
            CommandId::CopyText => self.copy("text", row_text),
            CommandId::CopyCommand => vec![Effect::Copy("command".to_owned(), command_line(self))],
            CommandId::View => {
                let text = self.history.here().row().map(pretty);
                text.map(|text| Effect::View("json", text)).into_iter().collect()
            }
            CommandId::Wrap => self.wrap(),
            CommandId::Refresh => self.refresh(),
            CommandId::Mask => self.toggle_mask(),
            CommandId::Theme => self.open_themes(),
            CommandId::Mouse => self.toggle_mouse(),
            CommandId::Palette => self.open_palette(),
            CommandId::Help => self.show(Overlay::Help { scroll: 0 }),
            CommandId::Redraw => vec![Effect::Redraw],
            CommandId::Suspend => vec![Effect::Suspend],
            CommandId::Quit => vec![Effect::Quit],
        }
    }

    fn show(&mut self, overlay: Overlay) -> Vec<Effect> {
        self.overlays.push(overlay);
        Vec::new()
    }

    // ---- moving

    fn detail_has_keys(&self) -> bool {
        match &self.history.here().view {
            View::Home(_) => false,
            View::Browse(browse) => browse.pane == Pane::Detail,
            View::Card(_) => true,
        }
    }

    fn page(&self) -> isize {
        let rows = match &self.history.here().view {
            View::Home(_) => 10,
            _ if self.detail_has_keys() => self.measures.detail_rows,
            _ => self.measures.list_rows,
        };
        rows.saturating_sub(1).max(1) as isize
    }

    fn move_by(&mut self, by: isize) -> Vec<Effect> {
        if self.detail_has_keys() {
            self.scroll_detail(by);
        } else if let Some(browse) = self.browse_mut() {
            browse.window.move_by(by);
        } else {
            self.move_home(by);
        }
        Vec::new()
    }

    pub(super) fn move_home(&mut self, by: isize) {
        let last = self.measures.home_entries.saturating_sub(1);
        if let View::Home(home) = &mut self.history.here_mut().view {
            home.selected = home.selected.saturating_add_signed(by).min(last);
        }
    }

    pub(super) fn scroll_detail(&mut self, by: isize) {
        let last = self.measures.detail_lines.saturating_sub(self.measures.detail_rows);
        if let Some(detail) = self.history.here_mut().detail_mut() {
            detail.scroll = detail.scroll.saturating_add_signed(by).min(last);
        }
    }

    fn go_to_end(&mut self, last: bool) -> Vec<Effect> {
        if self.detail_has_keys() {
            self.scroll_detail(if last { isize::MAX } else { isize::MIN });
            return Vec::new();
        }
        let Some(browse) = self.browse_mut() else {
            self.move_home(if last { isize::MAX } else { isize::MIN });
            return Vec::new();
        };
        let want = if last { browse.window.last() } else { browse.window.first() };
        want.map_or_else(Vec::new, |want| self.ask(want))
    }

    // ---- going

    /// Goes somewhere; `followed` when something here leads there.
    pub(super) fn go(&mut self, destination: &Destination, followed: bool) -> Vec<Effect> {
        let entity = match destination {
            Destination::Home => None,
            Destination::Row(entity, _) | Destination::List(entity, _) => Some(*entity),
        };
        if let Some(Err(missing)) = entity.map(|entity| self.holds(entity)) {
            let reason = missing.reason.clone().unwrap_or_default();
            let remedy = missing.remedy.clone().unwrap_or_else(|| "nothing can be done here".to_owned());
            let what = format!("{} cannot be shown", entity.map(plural).unwrap_or_default());
            self.complain(Failure::new(what, reason, remedy));
            return Vec::new();
        }
        let place = Place::of(destination, followed);
        if place == *self.history.here() {
            return Vec::new();
        }
        let mut effects = self.leave();
        self.history.push(place);
        effects.extend(self.arrive());
        effects
    }

    /// Goes back or forward.
    pub(super) fn travel(&mut self, by: isize) -> Vec<Effect> {
        if !self.history.has(by) || by == 0 {
            return Vec::new();
        }
        let mut effects = self.leave();
        self.history.go(by);
        effects.extend(self.arrive());
        effects
    }

    /// Stops what the place waits for. It asks again when we come back.
    fn leave(&mut self) -> Vec<Effect> {
        let here = self.history.here_mut();
        let waited = here.release();
        if let View::Browse(browse) = &mut here.view
            && browse.detail.row().is_none()
        {
            browse.detail.key = None;
        }
        waited.into_iter().map(Effect::Cancel).collect()
    }

    pub(super) fn arrive(&mut self) -> Vec<Effect> {
        let crumbs = self.crumbs();
        let here = crumbs.last().cloned().unwrap_or_default();
        vec![Effect::SetTitle(format!("{here} - mnemoscope"))]
    }

    /// The way here, as it may be shown.
    #[must_use]
    pub fn crumbs(&self) -> Vec<String> {
        self.history.crumbs(|conditions| self.masking.shown(conditions))
    }

    fn open(&mut self) -> Vec<Effect> {
        match &mut self.history.here_mut().view {
            View::Home(_) => {
                let destination = self.home_entry();
                destination.map_or_else(Vec::new, |to| self.go(&to, true))
            }
            View::Browse(browse) if browse.pane == Pane::List => {
                if browse.window.current().is_some() {
                    browse.pane = Pane::Detail;
                }
                Vec::new()
            }
            View::Browse(_) | View::Card(_) => self.open_follow(),
        }
    }

    /// Where the selected entry of the first screen leads.
    fn home_entry(&self) -> Option<Destination> {
        let View::Home(home) = &self.history.here().view else { return None };
        self.home_entries().into_iter().nth(home.selected)
    }

    fn close(&mut self) -> Vec<Effect> {
        let tickets = self.waits_for_rows();
        if !tickets.is_empty() {
            let mut effects = self.leave();
            effects.extend(self.interrupted());
            return effects;
        }
        if let Some(browse) = self.browse_mut() {
            if browse.zoomed {
                browse.zoomed = false;
                return Vec::new();
            }
            if browse.pane == Pane::Detail {
                browse.pane = Pane::List;
                return Vec::new();
            }
        }
        self.travel(-1)
    }

    /// Whether the list waits for a page it cannot show anything without.
    fn waits_for_rows(&self) -> Vec<super::message::Ticket> {
        let pending = self.browse().and_then(|browse| browse.pending.as_ref());
        pending.filter(|(_, want)| want.replaces()).map(|(ticket, _)| *ticket).into_iter().collect()
    }

    fn interrupted(&mut self) -> Vec<Effect> {
        if let Some(browse) = self.browse_mut() {
            let failure = Failure::new("Reading was stopped", "what is shown may be out of date", "r reads again");
            browse.failure = Some(failure);
        }
        self.say(Tone::Info, "stopped")
    }

    // ---- panes and tabs

    fn other_pane(&mut self) -> Vec<Effect> {
        if let Some(browse) = self.browse_mut() {
            browse.pane = if browse.pane == Pane::List { Pane::Detail } else { Pane::List };
        }
        Vec::new()
    }

    fn turn_tab(&mut self, by: isize) -> Vec<Effect> {
        if let Some(detail) = self.history.here_mut().detail_mut() {
            detail.turn(by);
        }
        Vec::new()
    }

    fn zoom(&mut self) -> Vec<Effect> {
        if let Some(browse) = self.browse_mut() {
            browse.zoomed = !browse.zoomed;
        }
        Vec::new()
    }

    // ---- which rows

    /// Lists other rows of the same entity; what was marked stays marked.
    pub(super) fn narrow(&mut self, conditions: Conditions) -> Vec<Effect> {
        let Some(browse) = self.browse_mut() else { return Vec::new() };
        if browse.conditions == conditions {
            return Vec::new();
        }
        browse.conditions = conditions;
        self.relist()
    }

    /// Reads the list from its beginning; the old rows stay, dimmed, until the new ones are there.
    fn relist(&mut self) -> Vec<Effect> {
        let mut effects = self.ask(Want::First);
        effects.extend(self.arrive());
        effects
    }

    fn open_filter(&mut self) -> Vec<Effect> {
        let Some(browse) = self.browse() else { return Vec::new() };
        let line = self.masking.shown(&browse.conditions).line();
        self.open_prompt(Purpose::Filter, &line)
    }

    fn open_prompt(&mut self, purpose: Purpose, text: &str) -> Vec<Effect> {
        let input = super::input::Input::holding(text);
        let prompt = Prompt { purpose, input, verdict: Ok(String::new()), completions: Vec::new(), recalled: None };
        self.overlays.push(Overlay::Prompt(prompt));
        self.judge_prompt();
        Vec::new()
    }

    // ---- order

    fn open_sort(&mut self) -> Vec<Effect> {
        let Some(browse) = self.browse() else { return Vec::new() };
        let used = browse.order_used();
        let shown = self.list_columns(browse.entity).into_iter().map(|c| c.column);
        let filled = |name: &&str| !self.opened.unfilled.contains(&(browse.entity, *name));
        let others = browse.entity.columns().iter().map(|c| c.name).filter(filled);
        let mut names: Vec<&'static str> = Vec::new();
        for name in shown.chain(others).filter(|name| sortable(browse.entity, name)) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        let items = names.into_iter().map(|name| Item {
            label: name.replace('_', " "),
            note: match (name == used.column, used.descending) {
                (false, _) => String::new(),
                (true, true) => "descending now".to_owned(),
                (true, false) => "ascending now".to_owned(),
            },
            keys: String::new(),
            choice: Choice::Sort(name),
            unavailable: None,
        });
        let mut menu = Menu::new("Sort by", items.collect());
        menu.selected = menu.items.iter().position(|item| item.choice == Choice::Sort(used.column)).unwrap_or(0);
        self.show(Overlay::Menu(menu))
    }

    /// Orders the list by a column: numbers and times begin with the greatest; the same column again turns round.
    pub(super) fn sort_by(&mut self, column: &'static str) -> Vec<Effect> {
        let Some(browse) = self.browse_mut() else { return Vec::new() };
        if !sortable(browse.entity, column) {
            return self.say(Tone::Warn, format!("rows cannot be put in order by {column}"));
        }
        let used = browse.order_used();
        let kind = browse.entity.column(column).map(|c| c.kind);
        let descending = if used.column == column { !used.descending } else { !matches!(kind, Some(Kind::Text)) };
        browse.order = Some(Order { column, descending });
        self.relist()
    }

    fn sort_beside(&mut self, by: isize) -> Vec<Effect> {
        let Some(browse) = self.browse() else { return Vec::new() };
        let entity = browse.entity;
        let shown = self.list_columns(entity).into_iter().map(|c| c.column);
        let columns: Vec<_> = shown.filter(|c| sortable(entity, c)).collect();
        let used = browse.order_used().column;
        let at = columns.iter().position(|c| *c == used).unwrap_or(0) as isize;
        let next = (at + by).rem_euclid(columns.len().max(1) as isize) as usize;
        columns.get(next).copied().map_or_else(Vec::new, |column| self.sort_by(column))
    }

    fn reverse(&mut self) -> Vec<Effect> {
        let Some(browse) = self.browse_mut() else { return Vec::new() };
        let used = browse.order_used();
        browse.order = Some(Order { descending: !used.descending, ..used });
        self.relist()
    }

    // ---- marks, export

    fn mark(&mut self) -> Vec<Effect> {
        if let Some(browse) = self.browse_mut()
            && let Some(key) = browse.window.current().map(row_key)
        {
            if !browse.marks.remove(&key) {
                browse.marks.insert(key);
            }
            browse.window.move_by(1);
        }
        Vec::new()
    }

    fn unmark(&mut self) -> Vec<Effect> {
        if let Some(browse) = self.browse_mut() {
            browse.marks.clear();
        }
        Vec::new()
    }

    fn open_export(&mut self) -> Vec<Effect> {
        let Some(browse) = self.browse() else { return Vec::new() };
        let path = format!("{}-{}.jsonl", browse.entity.name(), self.now.format("%Y%m%d-%H%M%S"));
        self.open_prompt(Purpose::Export, &path)
    }

    /// Writes the marked rows, else all that the list holds, to a file.
    pub(super) fn export(&mut self, path: String) -> Vec<Effect> {
        let ticket = self.ticket();
        let masked = self.masking.is_on();
        let Some(browse) = self.browse() else { return Vec::new() };
        let query = Query {
            filters: browse.conditions.filters.clone(),
            canvas: browse.conditions.canvas.clone(),
            order: browse.order.clone(),
            ..Query::new(browse.entity)
        };
        let only = (!browse.marks.is_empty()).then(|| browse.marks.iter().cloned().collect());
        self.exporting = Some((ticket, 0));
        vec![Effect::Export(ticket, Box::new(Export { query, only, path, masked }))]
    }

    // ---- the row

    fn copy(&mut self, what: &str, text: impl Fn(&Row) -> String) -> Vec<Effect> {
        let text = self.history.here().row().map(text);
        text.map(|text| Effect::Copy(what.to_owned(), text)).into_iter().collect()
    }

    fn open_follow(&mut self) -> Vec<Effect> {
        let Some(detail) = self.history.here().detail() else { return Vec::new() };
        let items: Vec<Item> = links(detail)
            .into_iter()
            .map(|link| {
                let entity = match &link.to {
                    Destination::Home => None,
                    Destination::Row(entity, _) | Destination::List(entity, _) => Some(*entity),
                };
                let missing = entity.and_then(|entity| self.holds(entity).err());
                Item {
                    label: link.name,
                    note: link.relation,
                    keys: String::new(),
                    choice: Choice::Go(link.to),
                    unavailable: missing.map(|m| m.reason.clone().unwrap_or_default()),
                }
            })
            .collect();
        if items.is_empty() {
            return self.say(Tone::Info, "this row leads nowhere");
        }
        self.show(Overlay::Menu(Menu::new("Follow", items)))
    }

    // ---- the whole

    fn refresh(&mut self) -> Vec<Effect> {
        self.status = None;
        self.status_failure = None;
        let mut effects: Vec<Effect> = self.status_pending.take().map(Effect::Cancel).into_iter().collect();
        let lines = self.measures.list_rows;
        match &mut self.history.here_mut().view {
            View::Home(home) => {
                home.recent = None;
                home.failure = None;
            }
            View::Browse(browse) => {
                let want = browse.window.again(lines);
                let has_row = browse.detail.key.is_some();
                effects.extend(self.ask(want));
                if has_row {
                    effects.extend(self.ask_detail());
                }
            }
            View::Card(_) => effects.extend(self.ask_detail()),
        }
        effects
    }

    fn toggle_mask(&mut self) -> Vec<Effect> {
        self.masking.toggle();
        let mut effects = self.leave();
        for place in self.history.places_mut() {
            place.forget();
        }
        let text = if self.masking.is_on() { "personal values are masked" } else { "personal values are shown" };
        effects.extend(self.say(Tone::Info, text));
        effects.extend(self.arrive());
        effects
    }

    fn toggle_mouse(&mut self) -> Vec<Effect> {
        self.settings.mouse = !self.settings.mouse;
        let ours = self.settings.mouse;
        let text = if ours { "the mouse is the console's" } else { "the mouse is the terminal's: select text with it" };
        let mut effects = self.say(Tone::Info, text);
        effects.push(Effect::Mouse(ours));
        effects
    }

    fn wrap(&mut self) -> Vec<Effect> {
        self.settings.wrap = !self.settings.wrap;
        if let Some(detail) = self.history.here_mut().detail_mut() {
            detail.version += 1;
        }
        Vec::new()
    }

    fn open_themes(&mut self) -> Vec<Effect> {
        let items = THEMES.iter().map(|(name, note)| Item {
            label: (*name).to_owned(),
            note: (*note).to_owned(),
            keys: String::new(),
            choice: Choice::Theme(name),
            unavailable: None,
        });
        let mut menu = Menu::new("Theme", items.collect());
        menu.selected = THEMES.iter().position(|(name, _)| *name == self.settings.theme).unwrap_or(0);
        self.show(Overlay::Menu(menu))
    }

    fn open_palette(&mut self) -> Vec<Effect> {
        let items = COMMANDS.iter().map(|command| {
            let unavailable = self.available(command).err().map(|(reason, _)| reason);
            Item {
                label: command.title.to_owned(),
                note: command.help.to_owned(),
                keys: command.keys.join("  "),
                choice: Choice::Command(command.id),
                unavailable,
            }
        });
        let menu = Menu::new("Go to a screen or a row, give a command", items.collect());
        self.show(Overlay::Palette(menu))
    }
}

/// Whether rows can be put in order by a column.
fn sortable(entity: Entity, column: &str) -> bool {
    entity.column(column).is_some_and(|c| !matches!(c.kind, Kind::Json | Kind::List))
}

fn pretty(row: &Row) -> String {
    serde_json::to_string_pretty(&row.to_json()).unwrap_or_default()
}

/// The text that names a row, whole.
fn row_text(row: &Row) -> String {
    match row.get(title_column(row.entity)) {
        serde_json::Value::String(text) => text.clone(),
        serde_json::Value::Null => row_name(row),
        other => other.to_string(),
    }
}
