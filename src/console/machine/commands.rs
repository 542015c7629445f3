//! Effects of commands, and their availability.

use super::ask::ChangeSubject;
use super::copies;
use super::kept::{self, KeptStep};
use super::model::Model;
use super::switch;
use crate::console::core::columns::title_column;
use crate::console::core::command::command;
use crate::console::core::{
    COMMANDS, CommandId, CommandScope, Conditions, ConsoleCommand, Context, Destination, Effect, Lack, LayerOpening,
    Menu, MenuChoice, MenuItem, Purpose, RequestFailure, ScreenKind, ToastTone, row_name,
};
use crate::console::overlays::help::HelpLayer;
use crate::console::overlays::menu::MenuLayer;
use crate::console::overlays::tour::TourLayer;
use crate::memory::{Entity, Row};

/// Themes that can be chosen.
pub const THEMES: &[(&str, &str)] = &[
    ("dark", "for dark backgrounds"),
    ("light", "for light backgrounds"),
    ("contrast", "7:1 and more, on a black background"),
    ("mono", "no colours"),
];

impl Model {
    /// Checks that a command is available here and now.
    ///
    /// # Errors
    /// The reason why not, with a remedy if there is one.
    pub fn available(&self, command: &ConsoleCommand) -> Result<(), Lack> {
        self.fits(command)?;
        if command.needs_unlocking() { self.context.may_change() } else { Ok(()) }
    }

    /// Checks that a command is available here once the session is unlocked.
    ///
    /// # Errors
    /// As [`Model::available`].
    pub fn fits(&self, command: &ConsoleCommand) -> Result<(), Lack> {
        let no = |reason: &str| Err((reason.to_owned(), None));
        self.context.supports(command)?;
        let screen = self.screen();
        if command.id == CommandId::CopyText && screen.copies().is_some() {
            return Ok(());
        }
        match command.scope {
            CommandScope::List if screen.lists().is_none() => return no("only in a list"),
            CommandScope::Rows if screen.selected().is_none() && screen.lists().is_none() => {
                return no("only where rows are shown");
            }
            scope if !scope.is_shared() && screen.scope() != scope => {
                return Err((format!("only among {}", scope.title().to_lowercase()), None));
            }
            _ => {}
        }
        match command.id {
            CommandId::Change(ask) => {
                ChangeSubject { place: self.history.here() }.can_ask(ask).map_err(|reason| (reason, None))
            }
            CommandId::Back if !self.history.has(-1) => no("there is nothing to go back to"),
            CommandId::Forward if !self.history.has(1) => no("there is nothing to go forward to"),
            CommandId::CopyId
            | CommandId::CopyJson
            | CommandId::CopyText
            | CommandId::CopyRows(_)
            | CommandId::View
            | CommandId::Mark
                if screen.row().is_none() =>
            {
                no("no row is selected")
            }
            CommandId::NextDatabase | CommandId::CloseDatabase if self.context.beside.is_empty() => Err((
                "no other database is open".to_owned(),
                Some(format!("{} opens one", self.context.key_for(CommandId::Switch))),
            )),
            CommandId::ShowTab(title) if !screen.has_tab(title) => {
                Err((format!("what is shown here has no tab \"{title}\""), None))
            }
            CommandId::Compare => self.to_compare().map(|_| ()).map_err(|reason| (reason.to_owned(), None)),
            CommandId::Resize(_) if screen.lists().is_none() => no("the panes here have a fixed size"),
            CommandId::Zoom if !screen.zooms() => no("no pane can be zoomed here"),
            CommandId::Tail if self.context.past.is_some() => no("the past gets no new rows"),
            CommandId::Lock if self.context.past.is_some() && !self.context.changing.unlocked => {
                self.context.may_change()
            }
            CommandId::Tail if !screen.is_live() => no("only where the newest rows are shown"),
            CommandId::Focus if !screen.has_panes() => no("no other pane accepts keys here"),
            CommandId::TabLeft | CommandId::TabRight if !screen.has_tabs(&self.context) => no("no tabs are shown here"),
            CommandId::Follow | CommandId::Seek(_) | CommandId::Relative(_) | CommandId::Wrap
                if !screen.has_details() =>
            {
                no("only where the details of a row are shown")
            }
            id => screen.can(id, &self.context),
        }
    }

    pub(super) fn command(&mut self, id: CommandId) {
        let Some(command) = command(id) else { return };
        let is_locked = command.needs_unlocking() && self.context.waits_for_unlocking() && self.fits(command).is_ok();
        if is_locked {
            let selected = self.screen().selected().map(|(entity, id)| (entity, id.to_owned()));
            self.context.changing.then = Some((id, selected));
        } else if id != CommandId::Lock {
            self.context.changing.then = None;
        }
        if let Err((reason, remedy)) = self.available(command) {
            if let (Some(_), Some(remedy), false) = (command.needs(), &remedy, command.changes()) {
                let what = format!("{} cannot be shown", command.title);
                return self.context.fail(RequestFailure::absent(what, reason, remedy.clone()));
            }
            let continues = if is_locked { " and continues with it" } else { "" };
            let remedy = remedy.map(|remedy| format!("; {remedy}{continues}")).unwrap_or_default();
            return self.context.say(ToastTone::Warn, format!("{}: {reason}{remedy}", command.title));
        }
        if !command.changes() {
            self.context.changing.recent = None;
            self.give(id);
        } else if !self.context.is_repeated(id) {
            self.give(id);
        }
    }

    fn give(&mut self, id: CommandId) {
        match id {
            CommandId::Change(ask) => ChangeSubject { place: self.history.here() }.ask_change(ask, &mut self.context),
            CommandId::Lock => self.toggle_lock(),
            CommandId::UndoLast => self.context.undo_last(),
            CommandId::Erase => self.open_erasure(),
            CommandId::Panel(kind) => self.history.open(kind, &mut self.context),
            CommandId::Home => self.context.go(Destination::Home),
            CommandId::List(entity) => self.context.go(Destination::List(entity, Conditions::default())),
            CommandId::Close => self.close(),
            CommandId::Back => self.history.travel(-1, &mut self.context),
            CommandId::Forward => self.history.travel(1, &mut self.context),
            CommandId::Refresh => self.refresh(),
            CommandId::Mask if !self.history.may_leave(&mut self.context) => {}
            CommandId::Mask => self.toggle_mask(),
            CommandId::Theme => self.context.open_themes(),
            CommandId::Mouse => self.context.toggle_mouse(),
            CommandId::Palette => self.open_palette(),
            CommandId::Tour => self.show(TourLayer::default()),
            CommandId::Help => {
                let unfit = COMMANDS.iter().filter(|command| self.fits(command).is_err()).map(|command| command.id);
                let help = HelpLayer::of(self.screen(), unfit.collect(), &self.context);
                self.show(help);
            }
            CommandId::Wrap => self.context.settings.wrap = !self.context.settings.wrap,
            CommandId::Resize(larger) => self.context.resize_panes(larger),
            CommandId::CopyRows(form) => copies::copy_rows(self.history.here().screen(), form, &mut self.context),
            CommandId::CopyRunbook => copies::copy_runbook(&mut self.context),
            CommandId::ShowTab(title) => {
                self.at_screen(|screen, cx| {
                    screen.show_named_tab(title);
                    if screen.can(CommandId::TabRight, cx).is_err() {
                        // The tabs are out of sight.
                        screen.focus(true);
                    }
                });
            }
            CommandId::KeepPlace => kept::ask_name(self.history.here(), &mut self.context),
            CommandId::GoToKept => self.kept.offer(KeptStep::Go, &mut self.context),
            CommandId::ForgetPlace => self.kept.offer(KeptStep::Forget, &mut self.context),
            CommandId::Switch => self.switch.offer(&mut self.context),
            CommandId::NextDatabase => switch::next(&mut self.context),
            CommandId::CloseDatabase => self.close_database(),
            CommandId::Compare => self.compare(),
            CommandId::LookBack => {
                let begins = self.screen().moment().unwrap_or_default();
                self.context.prompt(Purpose::Moment, &begins);
            }
            CommandId::Find => self.context.prompt(Purpose::Find, ""),
            CommandId::Redraw => self.context.perform(Effect::Redraw),
            CommandId::Suspend => self.context.perform(Effect::Suspend),
            CommandId::Quit => self.quit_unless_busy(),
            CommandId::CopyId => {
                let id = self.screen().row().map(|row| row.id().to_owned());
                self.copy("id", id);
            }
            CommandId::CopyJson => {
                let json = self.whole(pretty);
                self.copy("JSON", json);
            }
            CommandId::CopyText => {
                let text = self.screen().copies().or_else(|| self.whole(row_text));
                self.copy("text", text);
            }
            CommandId::CopyCommand => copies::copy_command(self.history.here().screen(), &mut self.context),
            CommandId::View => {
                if let Some(text) = self.whole(pretty) {
                    self.context.perform(Effect::View("json", text));
                }
            }
            moves => self.move_within(moves),
        }
    }

    /// Moves within the screen, or passes the command to it.
    fn move_within(&mut self, id: CommandId) {
        self.at_screen(|screen, cx| {
            let page = screen.page(cx).saturating_sub(1).max(1) as isize;
            match id {
                CommandId::Up => screen.move_by(-1, cx),
                CommandId::Down => screen.move_by(1, cx),
                CommandId::PageUp => screen.move_by(-page, cx),
                CommandId::PageDown => screen.move_by(page, cx),
                CommandId::First => screen.go_to_end(false, cx),
                CommandId::Last => screen.go_to_end(true, cx),
                CommandId::ScrollDetail(down) => {
                    let by = (cx.screenful() / 2).max(1) as isize;
                    screen.scroll_by(if down { by } else { -by }, cx);
                }
                CommandId::Open => screen.open(cx),
                CommandId::Focus => screen.other_pane(cx),
                CommandId::TabLeft => screen.turn_tab(-1),
                CommandId::TabRight => screen.turn_tab(1),
                own => screen.command(own, cx),
            }
        });
    }

    fn to_compare(&self) -> Result<(Entity, [String; 2]), &'static str> {
        let screen = self.screen();
        let (entity, id) = screen.selected().filter(|(_, id)| !id.is_empty()).ok_or("no row is selected")?;
        let parent = screen.row().filter(|_| entity == Entity::Episode).and_then(|row| row.text("parent_id"));
        match (&screen.marked(entity)[..], parent) {
            ([first, second], _) => Ok((entity, [first.clone(), second.clone()])),
            ([marked], _) if marked != id => Ok((entity, [marked.clone(), id.to_owned()])),
            ([], Some(parent)) => Ok((entity, [parent.to_owned(), id.to_owned()])),
            ([_, _, _, ..], _) => Err("more than two rows are marked"),
            _ => Err("mark two rows with v, or one and go to the other"),
        }
    }

    fn compare(&mut self) {
        if let Ok((entity, ids)) = self.to_compare() {
            self.context.follow(Destination::Compare(entity, Box::new(ids)));
        }
    }

    /// Copies a text, if there is one.
    fn copy(&mut self, what: &str, text: Option<String>) {
        if let Some(text) = text {
            self.context.perform(Effect::Copy(what.to_owned(), text));
        }
    }

    /// Makes a text of the selected row; without all its values, says that they are not read.
    fn whole(&mut self, text: impl Fn(&Row) -> String) -> Option<String> {
        let text = self.screen().whole_row().map(text);
        if text.is_none() {
            self.context.say(ToastTone::Info, "not all values of this row are read: open it, or wait a moment");
        }
        text
    }

    fn quit_unless_busy(&mut self) {
        if self.context.changing.pending.as_ref().is_some_and(|pending| pending.applying) {
            let text = "a change is being made: q when it is done; ctrl-c ends anyway";
            return self.context.say(ToastTone::Warn, text);
        }
        if self.history.may_leave(&mut self.context) {
            self.quit();
        }
    }

    /// Shows what erasing the selected person would do; asks for the person if none is selected.
    fn open_erasure(&mut self) {
        match self.history.here().person() {
            Some(person) => self.erase_person(&person),
            None if !self.history.may_leave(&mut self.context) => {}
            None => self.context.prompt(Purpose::Person, ""),
        }
    }

    /// Shows what erasing this person would do; on the current screen if it is the erasure screen.
    pub(super) fn erase_person(&mut self, given: &str) {
        if !self.history.may_leave(&mut self.context) {
        } else if self.screen().leads_here() == CommandId::Panel(ScreenKind::Erase) {
            self.at_screen(|screen, cx| screen.written(Purpose::Person, given, cx));
        } else {
            self.context.go(Destination::Erase(given.to_owned()));
        }
    }

    fn open_palette(&mut self) {
        // Commands of other screens are left out; those that the database does not support are shown with the reason.
        let scope = self.screen().scope();
        let is_here = |command: &&ConsoleCommand| match command.scope {
            CommandScope::Everywhere => true,
            CommandScope::List => self.screen().lists().is_some(),
            CommandScope::Rows => self.screen().lists().is_some() || self.screen().selected().is_some(),
            own => own == scope,
        };
        let keys = &self.context.settings.keys;
        // Searching from here is the same command as searching.
        let is_other = |command: &&ConsoleCommand| command.id != CommandId::FindHere;
        let items = COMMANDS.iter().filter(is_here).filter(is_other).map(|command| {
            let unavailable = self.available(command).err().map(|(reason, _)| reason);
            MenuItem {
                label: command.title.to_owned(),
                note: command.help.to_owned(),
                keys: keys.keys(command).collect::<Vec<_>>().join("  "),
                choice: MenuChoice::Command(command.id),
                unavailable,
            }
        });
        let menu = Menu::new("Go to a screen or a row, or run a command", items.collect());
        self.show(MenuLayer::palette(menu));
    }
}

impl Context {
    fn toggle_mouse(&mut self) {
        let ours = !self.settings.mouse;
        self.settings.mouse = ours;
        let text = if ours { "the console uses the mouse" } else { "the terminal has the mouse: select text with it" };
        self.say(ToastTone::Info, text);
        self.perform(Effect::Mouse(ours));
    }

    fn open_themes(&mut self) {
        let own = self.settings.own_themes.iter().map(|name| (name.as_str(), "your own"));
        let is_own = |name: &str| self.settings.own_themes.iter().any(|own| own == name);
        let themes: Vec<(&str, &str)> = THEMES.iter().copied().filter(|(name, _)| !is_own(name)).chain(own).collect();
        let items = themes.iter().map(|(name, note)| MenuItem {
            label: (*name).to_owned(),
            note: (*note).to_owned(),
            keys: String::new(),
            choice: MenuChoice::Theme((*name).to_owned()),
            unavailable: None,
        });
        let mut menu = Menu::new("Theme", items.collect());
        menu.selected = themes.iter().position(|(name, _)| *name == self.settings.theme).unwrap_or(0);
        self.show(LayerOpening::Menu(menu));
    }
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
