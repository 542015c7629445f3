//! Carrying out what screens and overlays ask for, and moving from place to place.

use super::model::Model;
use crate::change::plan::ChangeDanger;
use crate::console::core::columns::plural;
use crate::console::core::command::CommandId;
use crate::console::core::context::{LayerOpening, ScreenAction, ToastTone};
use crate::console::core::menu::MenuChoice;
use crate::console::core::message::{Destination, Effect, RequestFailure};
use crate::console::core::screen::ScreenKind;
use crate::console::overlays::failure::FailureLayer;
use crate::console::overlays::form::Form;
use crate::console::overlays::last_question::LastQuestion;
use crate::console::overlays::menu::MenuLayer;
use crate::console::overlays::note::NoteLayer;
use crate::console::overlays::picker::Picker;
use crate::console::overlays::row_form::RowForm;
use crate::console::overlays::unlock::Unlock;
use crate::console::screens::AnyScreen;

impl Model {
    pub(super) fn act(&mut self, action: ScreenAction) {
        match action {
            ScreenAction::Perform(effect) => self.context.perform(effect),
            ScreenAction::Command(id) => self.command(id),
            ScreenAction::Go(to, followed) => self.go(&to, followed),
            ScreenAction::Propose(proposal) => self.context.plan(proposal),
            ScreenAction::Show(opening) => self.open(opening),
            ScreenAction::Rename => self.name_window(),
            ScreenAction::Choose(choice) => self.choose(choice),
            ScreenAction::Write(purpose, subject, text) => self.written(purpose, subject, &text),
            ScreenAction::Try(purpose, text, true) => {
                self.at_screen(|screen, cx| screen.tried(purpose, &text, cx));
                self.judge_prompt();
            }
            ScreenAction::Try(_, _, false) => {}
            ScreenAction::Complete(purpose, before) => {
                self.at_screen(|screen, cx| screen.completes(purpose, &before, cx));
            }
            ScreenAction::Apply(confirmed) => self.confirmed(*confirmed),
            ScreenAction::Abandon(planned) => {
                self.context.cancel([planned]);
                self.at_screen(|screen, _| screen.refused());
            }
            ScreenAction::Edited(id) => self.at_screen(|screen, _| screen.edited(&id)),
            ScreenAction::Unlock => self.context.unlock(),
            ScreenAction::Migrate(optional, unlocks) => self.context.migrate(optional, unlocks),
            ScreenAction::Erase => self.at_screen(|screen, cx| screen.confirmed(cx)),
            ScreenAction::StartOver => {
                self.overlays.retain(|_| false);
                self.context.changing.epoch += 1;
            }
        }
    }

    fn open(&mut self, opening: LayerOpening) {
        match opening {
            LayerOpening::Failure(failure) => self.show(FailureLayer { failure }),
            LayerOpening::Note(title, sentences) => self.show(NoteLayer { title, sentences, scroll: 0 }),
            LayerOpening::Menu(menu) => self.show(MenuLayer { menu, is_palette: false }),
            LayerOpening::Prompt(purpose, subject, text) => self.open_prompt(purpose, subject, &text),
            LayerOpening::Edit(row) => self.show(Form::edit(&row, self.context.masking.is_on())),
            LayerOpening::EditRow(row, ids) => {
                let form = RowForm::new(&row, ids, &self.context);
                self.show(form);
            }
            LayerOpening::Add(episode) => self.show(Form::add(&episode)),
            LayerOpening::Pick(child) => self.show(Picker::new(child)),
            LayerOpening::Unlock(asked) => {
                let question = Unlock::new(asked, &mut self.context);
                self.show(question);
            }
            LayerOpening::Erase(id, words) => {
                let gate = self.context.gate(ChangeDanger::Grave, &id);
                self.show(LastQuestion { gate, words });
            }
        }
    }

    fn choose(&mut self, choice: MenuChoice) {
        match choice {
            MenuChoice::Command(id) => self.command(id),
            MenuChoice::Go(to) => self.go(&to, true),
            MenuChoice::Propose(operation) => self.context.plan((*operation).into()),
            MenuChoice::Place(place) => self.go_to_kept(&place),
            MenuChoice::ForgetPlace(name) => self.forget_place(&name),
            MenuChoice::OpenDatabase(name) => self.try_database(&name),
            MenuChoice::NameDatabase => self.name_database(),
            MenuChoice::Edit(row) => self.open(LayerOpening::Edit(row)),
            MenuChoice::Theme(name) => {
                name.clone_into(&mut self.context.settings.theme);
                self.context.settings.theme_chosen = true;
            }
            MenuChoice::Leave(how) => self.context.quit_so(how),
            MenuChoice::Sort(_) | MenuChoice::Recall(_) => self.at_screen(|screen, cx| screen.chosen(choice, cx)),
        }
    }

    /// Goes somewhere; `followed` when something here leads there.
    pub(super) fn go(&mut self, destination: &Destination, followed: bool) {
        if let Some(entity) = destination.entity()
            && let Err(missing) = self.context.holds(entity)
        {
            let reason = missing.reason.clone().unwrap_or_default();
            let remedy = missing.remedy.clone().unwrap_or_else(|| "nothing can be done here".to_owned());
            let what = format!("{} cannot be shown", plural(entity));
            return self.context.fail(RequestFailure::new(what, reason, remedy));
        }
        if matches!(destination, Destination::Panel(kind) if self.kind() == Some(*kind)) {
            return;
        }
        let mut screen = AnyScreen::at(destination);
        if screen == self.history.here().screen {
            return;
        }
        self.inherit(&mut screen);
        self.move_to(screen, followed);
    }

    /// Opens a screen of its own kind from what is selected here.
    pub(super) fn open_screen(&mut self, kind: ScreenKind) {
        let origin = self.history.here().origin();
        if self.kind() == Some(kind) && !self.screen().opens_again(&origin, &self.context) {
            return self.at_screen(|screen, cx| screen.enter_again(&origin, cx));
        }
        let mut screen = AnyScreen::new(kind);
        self.leave();
        let before = (self.kind() == Some(kind)).then(|| self.history.here().screen.clone());
        self.inherit(&mut screen);
        // What it asks for is asked in its own name, so it is there before it is entered.
        self.history.push(screen, false, self.context.changing.epoch);
        let followed = self.at_screen(|screen, cx| screen.enter(&origin, cx));
        let here = self.history.here_mut();
        here.followed = followed;
        if let Some(before) = before {
            here.screen.inherit(&before, true);
        }
        self.name_window();
    }

    /// What a new screen takes over from the latest of its kind.
    fn inherit(&self, screen: &mut AnyScreen) {
        let _ = self.history.screens().rev().any(|earlier| screen.inherit(earlier, false));
    }

    /// Which screen of its own kind we are at.
    fn kind(&self) -> Option<ScreenKind> {
        match self.screen().leads_here() {
            CommandId::Panel(kind) => Some(kind),
            _ => None,
        }
    }

    fn move_to(&mut self, screen: AnyScreen, followed: bool) {
        self.leave();
        self.history.push(screen, followed, self.context.changing.epoch);
        self.name_window();
    }

    /// Goes back or forward.
    pub(super) fn travel(&mut self, by: isize) {
        if self.history.has(by) && by != 0 {
            self.leave();
            self.history.go(by);
            self.name_window();
        }
    }

    /// Stops what the place waits for. It asks again when we come back.
    pub(super) fn leave(&mut self) {
        self.at_screen(|screen, cx| {
            screen.left(cx);
            let waited = screen.release();
            cx.cancel(waited);
        });
    }

    pub(super) fn name_window(&mut self) {
        let here = self.screen().title(&self.context);
        self.context.perform(Effect::SetTitle(format!("{here} - mnemoscope")));
    }

    /// Reads again what is shown.
    pub(super) fn refresh(&mut self) {
        if self.screen().busy().is_some() {
            // Reading again would stop it.
            return;
        }
        let cx = &mut self.context;
        (cx.status, cx.status_failure, cx.changing.unfinished) = (None, None, None);
        cx.names.doubt();
        let waited = cx.status_pending.take();
        cx.cancel(waited);
        if self.screen().shows_findings() {
            let looking = self.context.health.forget();
            self.context.cancel(looking);
        }
        self.at_screen(|screen, cx| screen.refresh(cx));
    }

    /// One step out: stops what is being planned or read, leaves what is open within the screen, else goes back.
    pub(super) fn close(&mut self) {
        if !self.stop_planning() && !self.at_screen(|screen, cx| screen.close(cx)) {
            self.travel(-1);
        }
    }

    /// Personal values are masked, or shown again: everything is read again.
    pub(super) fn toggle_mask(&mut self) {
        self.context.masking.toggle();
        self.context.names.clear();
        self.context.changing.unfinished = None;
        self.leave();
        for place in self.history.places_mut() {
            place.screen.get_mut().forget();
        }
        let masked = self.context.masking.is_on();
        self.context
            .say(ToastTone::Info, if masked { "personal values are masked" } else { "personal values are shown" });
        if masked {
            self.context.perform(Effect::LoadPeople);
        }
        self.name_window();
    }
}
