//! Execution of the actions that screens and overlays request.

use super::kept;
use super::model::Model;
use crate::change::plan::ChangeDanger;
use crate::console::core::twin::quoted;
use crate::console::core::{
    EditorEnd, Effect, LayerOpening, MenuChoice, Purpose, RequestFailure, Screen, ScreenAction, SwitchStep, ToastTone,
};
use crate::console::overlays::Overlay;
use crate::console::overlays::failure::FailureLayer;
use crate::console::overlays::form::Form;
use crate::console::overlays::last_question::LastQuestion;
use crate::console::overlays::menu::MenuLayer;
use crate::console::overlays::note::NoteLayer;
use crate::console::overlays::picker::Picker;
use crate::console::overlays::row_form::RowForm;
use crate::console::overlays::unlock::Unlock;

impl Model {
    pub(super) fn act(&mut self, action: ScreenAction) {
        match action {
            ScreenAction::Perform(effect) => self.context.perform(effect),
            ScreenAction::Command(id) => self.command(id),
            ScreenAction::Go(to, followed) => self.history.go(&to, followed, &mut self.context),
            ScreenAction::Propose(proposal) => self.context.plan(proposal),
            ScreenAction::Show(opening) => self.open(opening),
            ScreenAction::Rename => self.history.name_window(&mut self.context),
            ScreenAction::Press(key) => self.key(key),
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
            ScreenAction::Erase(reason) => self.at_screen(|screen, cx| screen.confirmed(reason, cx)),
            ScreenAction::StartOver => {
                self.overlays.retain(|_| false);
                self.context.changing.epoch += 1;
            }
        }
    }

    fn open(&mut self, opening: LayerOpening) {
        match opening {
            LayerOpening::Failure(failure) => self.show_failure(failure),
            LayerOpening::Note(title, sentences) => self.show(NoteLayer { title, sentences, scroll: 0 }),
            LayerOpening::Menu(menu) => self.show(MenuLayer::new(menu)),
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
                self.show(LastQuestion { gate, words, reason: String::new(), scroll: 0 });
            }
        }
    }

    /// Shows a failure, unless one with the same cause is shown: a lost server fails every pending request.
    fn show_failure(&mut self, failure: RequestFailure) {
        let shown = self.overlays.iter().any(|overlay| match overlay {
            Overlay::Failure(layer) => layer.failure.has_cause_of(&failure),
            _ => false,
        });
        if !shown {
            self.show(FailureLayer { failure });
        }
    }

    fn choose(&mut self, choice: MenuChoice) {
        match choice {
            MenuChoice::Command(id) => self.command(id),
            MenuChoice::Go(to) => self.context.follow(to),
            MenuChoice::Propose(operation) => self.context.plan((*operation).into()),
            MenuChoice::Place(place) => kept::go(&place, &mut self.history, &mut self.context),
            MenuChoice::ForgetPlace(name) => self.kept.forget(&name, &mut self.context),
            MenuChoice::OpenDatabase(name) => {
                self.switch.attempt(&name, &mut self.context);
            }
            MenuChoice::ShowDatabase(id) => self.context.perform(Effect::Switch(SwitchStep::To(id))),
            MenuChoice::CloseDatabase(true) => self.context.perform(Effect::Switch(SwitchStep::Leave)),
            MenuChoice::CloseDatabase(false) => {}
            MenuChoice::NameDatabase => self.context.prompt(Purpose::Database, ""),
            MenuChoice::Edit(row) => self.open(LayerOpening::Edit(row)),
            MenuChoice::Theme(name) => {
                self.context.settings.theme = name;
                self.context.settings.theme_chosen = true;
            }
            MenuChoice::Leave(how) => self.context.quit_so(how),
            MenuChoice::Sort(_) | MenuChoice::Recall(_) | MenuChoice::EndJob(_) => {
                self.at_screen(|screen, cx| screen.chosen(choice, cx));
            }
        }
    }

    /// Handles the end of the editor. A kept file is named on the screen, and again when the console ends.
    pub(super) fn edited(&mut self, end: EditorEnd) {
        let cx = &mut self.context;
        match end {
            EditorEnd::Read => {}
            EditorEnd::Changed => {
                cx.say(ToastTone::Warn, "you saved a copy, which is discarded: the row is unchanged");
            }
            EditorEnd::Kept(path) => {
                cx.perform(Effect::Tell(vec![format!("The draft is in {path}")]));
                let check = cx.opened.invocation.line(["layouts", "check", &path]);
                let opens = format!("{} --layout {}", cx.opened.invocation.line([]), quoted(&path));
                let sentences = vec![
                    format!("It is in {path}. Move it to where you want it: this folder may be emptied."),
                    format!("This checks it: {check}"),
                    format!("This opens the database with it: {opens}"),
                    "In a profile, `layout` names it.".to_owned(),
                ];
                cx.show(LayerOpening::Note("The draft is kept".to_owned(), sentences));
            }
        }
    }

    /// Reads the shown data again.
    pub(super) fn refresh(&mut self) {
        if self.screen().busy().is_some() {
            // Rereading would stop it.
            return;
        }
        let cx = &mut self.context;
        (cx.status_aged, cx.status_failure, cx.changing.unfinished) = (true, None, None);
        cx.names.doubt();
        (cx.watch.is_aged, cx.failure) = (false, None);
        let waited = cx.status_pending.take().into_iter().chain(cx.status_renewal.release());
        cx.cancel(waited);
        if self.screen().shows_findings() {
            let looking = self.context.health.forget();
            self.context.cancel(looking);
        }
        self.at_screen(Screen::refresh);
    }

    /// One step back: stops planning or reading, closes what is open within the screen, else leaves the place.
    pub(super) fn close(&mut self) {
        if !self.stop_planning() && !self.at_screen(Screen::close) {
            self.history.step_out(&mut self.context);
        }
    }

    /// Toggles masking: everything is read again.
    pub(super) fn toggle_mask(&mut self) {
        self.context.masking.toggle();
        self.context.names.clear();
        self.context.changing.unfinished = None;
        self.history.forget(&mut self.context);
        let masked = self.context.masking.is_on();
        self.context
            .say(ToastTone::Info, if masked { "personal values are masked" } else { "personal values are shown" });
        if masked {
            self.context.perform(Effect::LoadPeople);
        }
        self.history.name_window(&mut self.context);
    }
}
