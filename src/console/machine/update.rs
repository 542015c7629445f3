//! The one function that handles every message: it changes the model and requests effects.

use super::model::Model;
use crate::console::core::command::command;
use crate::console::core::context::is_too_small;
use crate::console::core::router::Asker;
use crate::console::core::{
    ClickTarget, Code, CommandId, ConfirmGate, ConsoleCommand, Context, Effect, Key, KeyMeaning, Layer, LayerStep,
    Message, Reply, Screen, ScreenAction, Ticket, ToastTone,
};
use crate::console::overlays::Overlay;

/// Handles a message. Returns the effects to perform.
pub fn update(model: &mut Model, message: Message) -> Vec<Effect> {
    let (told, before) = (model.context.toast.as_ref().map(|toast| toast.ticket), model.in_front());
    model.take(message);
    let mut effects = model.carry_out();
    while model.take_early() {
        effects.extend(model.carry_out());
    }
    let in_front = model.in_front();
    if in_front.0 != before.0 || in_front.1 > before.1 {
        // The message was about a place or overlay that is no longer shown.
        model.context.toast.take_if(|toast| Some(toast.ticket) == told);
    }
    effects.into_iter().map(|effect| model.send(effect)).collect()
}

impl Model {
    /// Numbers of the place and of the topmost overlay.
    fn in_front(&self) -> (u64, Option<u64>) {
        (self.history.here().id, self.overlays.top())
    }

    fn take(&mut self, message: Message) {
        match message {
            Message::Start(now) => {
                (self.context.now, self.context.started) = (now, true);
                self.history.name_window(&mut self.context);
            }
            Message::Tick(now) => self.context.now = now,
            Message::Key(key) if self.is_esc_and(key) => {
                self.typed(Key::plain(Code::Esc), false);
                self.typed(Key { alt: false, ..key }, false);
            }
            Message::Key(key) => self.typed(key, false),
            Message::Held(key) => self.typed(key, true),
            Message::Releases => self.context.changing.releases = true,
            Message::Reply(ticket, reply) => self.replied(ticket, reply),
            Message::People(handles) => self.context.masking.meet_people(handles),
            Message::Elapsed(ticket) => self.elapsed(ticket),
            Message::Paste(_) | Message::Click(..) | Message::Wheel(..) if self.is_unseen() => {}
            Message::Paste(_) if self.form_waits() => {}
            Message::Paste(text) => self.at_top(|layer, cx| layer.paste(&text, cx)),
            Message::Click(target, twice) => self.click(&target, twice),
            Message::Wheel(target, up) => self.wheel(&target, up),
            Message::Resize(width, height) => self.resized((width, height)),
            Message::Drawn(measures) => {
                self.context.measures = measures;
                self.at_screen(|screen, cx| screen.drawn(cx));
            }
            Message::Copied(Ok(what)) => {
                self.context.say(ToastTone::Good, format!("{what} sent to the terminal's clipboard"));
            }
            Message::Copied(Err(failure)) | Message::Viewed(Err(failure)) | Message::Failed(failure) => {
                self.context.fail(failure);
            }
            Message::Damaged(None) => {
                let words = "a page of the database is damaged: what can be read is being copied";
                self.context.say(ToastTone::Warn, words);
            }
            Message::Damaged(Some(opened)) => self.read_past_damage(*opened),
            Message::Viewed(Ok(end)) => self.edited(end),
            Message::Beside(open) => self.context.beside = open,
            Message::Arrived(arrival) => self.arrive(*arrival),
        }
    }

    /// Handles a new terminal size: earlier measures are void. If the terminal is too small to draw anything, waiting
    /// keys are dropped.
    fn resized(&mut self, size: (u16, u16)) {
        self.context.size = size;
        self.context.measures.gate = None;
        if self.is_unseen() {
            self.pressed.clear();
            self.early.clear();
        }
    }

    /// Whether the terminal is too small to draw anything: then the only possible action is to leave.
    pub(super) fn is_unseen(&self) -> bool {
        is_too_small(self.context.size)
    }

    /// Executes the requested actions, then requests missing data, until nothing is left. Returns the effects to
    /// perform.
    fn carry_out(&mut self) -> Vec<Effect> {
        let mut effects = Vec::new();
        let mut settled = false;
        loop {
            let actions = self.context.take_actions();
            if actions.is_empty() && settled {
                return effects;
            }
            if actions.is_empty() {
                self.settle();
                settled = true;
            }
            for action in actions {
                match action {
                    ScreenAction::Perform(effect) => effects.push(effect),
                    action => {
                        self.act(action);
                        settled = false;
                    }
                }
            }
        }
    }

    /// Exit of effects: registers the asker, and replaces pseudonyms by names.
    fn send(&mut self, effect: Effect) -> Effect {
        match effect {
            Effect::Ask(ticket, mut request) => {
                self.context.router.expect(ticket, Asker::Core);
                self.context.masking.outbound(&mut request);
                Effect::Ask(ticket, request)
            }
            Effect::Cancel(ticket) => {
                self.context.router.forget(ticket);
                Effect::Cancel(ticket)
            }
            mut other => {
                self.context.masking.leaving(&mut other);
                other
            }
        }
    }

    /// Entry of replies: a reply is masked and passed to its asker. A reply to a cancelled request is ignored.
    pub(super) fn route(&mut self, ticket: Ticket, mut reply: Reply) {
        let Some(asker) = self.context.router.asker(ticket, reply.is_last()) else {
            if matches!(reply, Reply::Planned(_)) {
                // The plan kept outside is no longer needed.
                self.context.cancel([ticket]);
            }
            return;
        };
        if matches!(reply, Reply::Erased(Ok(_))) {
            // They may name the person.
            self.filters.clear();
        }
        let mut recovered = None;
        match &reply {
            Reply::Unread(why) => self.context.unread = Some(why.clone()),
            Reply::News(_) => {
                if self.context.unread.take().is_some() {
                    recovered = self.context.failure.take();
                }
                for id in self.overlays.ids() {
                    self.at_layer(id, |overlay, cx| overlay.get_mut().others_wrote(cx));
                }
            }
            _ => {}
        }
        self.context.masking.inbound(&mut reply);
        let failure = reply.failure_mut().cloned();
        if let Some(from) = recovered {
            // The card that says so is no longer true.
            let tells =
                |overlay: &Overlay| matches!(overlay, Overlay::Failure(layer) if layer.failure.has_cause_of(&from));
            self.overlays.retain(|overlay| !tells(overlay));
            self.refresh();
        }
        match asker {
            Asker::Core => self.heard(ticket, reply),
            Asker::Screen(id) if self.history.here().id == id => {
                if failure.is_some() {
                    self.context.failure = failure;
                }
                self.at_screen(|screen, cx| screen.reply(ticket, reply, cx));
                self.judge_prompt();
            }
            // A place that was left has no pending requests.
            Asker::Screen(_) => {}
            Asker::Layer(id) => {
                self.at_layer(id, |overlay, cx| overlay.get_mut().reply(ticket, reply, cx));
            }
        }
    }

    fn elapsed(&mut self, ticket: Ticket) {
        match self.context.router.asker(ticket, true) {
            Some(Asker::Screen(id)) if self.history.here().id == id => {
                self.at_screen(|screen, cx| screen.elapsed(ticket, cx));
            }
            None | Some(Asker::Screen(_)) => {}
            Some(Asker::Layer(id)) => {
                self.at_layer(id, |overlay, cx| overlay.get_mut().elapsed(ticket, cx));
            }
            Some(Asker::Core) => {
                self.context.toast.take_if(|toast| toast.ticket == ticket);
                self.context.health.elapsed(ticket);
                self.context.changing.recent.take_if(|(_, timer)| *timer == ticket);
                let mut gates = self.overlays.iter_mut().filter_map(|overlay| overlay.get_mut().gate_mut());
                if let Some(gate) = gates.find(|gate: &&mut ConfirmGate| gate.timer == ticket) {
                    gate.armed = true;
                }
            }
        }
    }

    /// Requests missing data of the current place. Called after every message; nothing is requested twice.
    fn settle(&mut self) {
        if !self.context.started {
            return;
        }
        if self.history.here().epoch != self.context.changing.epoch {
            self.history.here_mut().epoch = self.context.changing.epoch;
            // Our own writes are not news.
            self.context.watch_place(self.history.here().id, false);
            self.refresh();
        }
        if !self.screen().shows_findings() {
            // No screen shows findings. The look is restarted when one does.
            let looking = self.context.health.left();
            self.context.cancel(looking);
        }
        self.at_screen(Screen::settle);
        let selected = self.history.here().screen().selected();
        self.context
            .changing
            .then
            .take_if(|(_, row)| row.as_ref().map(|(entity, id)| (*entity, id.as_str())) != selected);
        let may_age = self.screen().may_age() && self.context.past.is_none();
        self.context.watch_place(self.history.here().id, may_age);
        if !self.screen().is_reading() {
            self.context.read_status();
        }
    }

    /// Calls a function on the topmost overlay, if there is one.
    fn at_top(&mut self, does: impl FnOnce(&mut dyn Layer, &mut Context)) {
        if let Some((id, _)) = self.overlays.last_mut() {
            self.at_layer(id, |overlay, cx| does(overlay.get_mut(), cx));
            self.judge_prompt();
        }
    }

    /// The same for a function that may close the overlay; returns its result.
    fn step_top(&mut self, does: impl FnOnce(&mut dyn Layer, &mut Context) -> LayerStep) -> LayerStep {
        let Some((id, _)) = self.overlays.last_mut() else { return LayerStep::Stays };
        let step = self.at_layer(id, |overlay, cx| does(overlay.get_mut(), cx)).unwrap_or(LayerStep::Stays);
        if step != LayerStep::Stays {
            self.overlays.close(id);
        }
        self.judge_prompt();
        step
    }

    pub(super) fn key(&mut self, key: Key) {
        let held = |letter| Key { code: Code::Char(letter), ctrl: true, alt: false };
        if key == held('c') {
            return self.interrupt();
        }
        if key == held('z') {
            return self.context.perform(Effect::Suspend);
        }
        if !self.overlays.is_empty() {
            let stops = key.code == Code::Esc && self.is_form_busy() && self.stop_planning();
            if !stops && !self.form_waits() && self.step_top(|layer, cx| layer.key(key, cx)) == LayerStep::Passes {
                self.key(key);
            }
            return;
        }
        if key.code == Code::Esc && !self.pressed.is_empty() {
            return self.pressed.clear();
        }
        self.pressed.push(key);
        match self.meaning(&self.pressed) {
            KeyMeaning::Prefix(_) => {}
            KeyMeaning::Command(id) => {
                self.pressed.clear();
                self.command(id);
            }
            KeyMeaning::Nothing => {
                let keys: Vec<String> = self.pressed.drain(..).map(|key| key.to_string()).collect();
                // Within a key sequence, a key does not have its usual meaning.
                if keys.len() > 1 {
                    self.context.say(ToastTone::Info, format!("{} means nothing here", keys.join(" ")));
                }
            }
        }
    }

    /// Whether a key with alt is `esc` followed by that key: terminals send the same for both, and over a slow line
    /// they arrive together.
    fn is_esc_and(&self, key: Key) -> bool {
        let tells = self.context.changing.releases;
        let is_letter = matches!(key.code, Code::Char(_));
        key.alt && is_letter && !tells && self.overlays.is_empty() && self.meaning(&[key]) == KeyMeaning::Nothing
    }

    /// Closes the topmost overlay, as `esc` does. Ends the console if there is none, while a plan is being applied, or
    /// if the console is about to end.
    fn interrupt(&mut self) {
        let applies = self.context.changing.pending.as_ref().is_some_and(|pending| pending.applying);
        if !self.pressed.is_empty() {
            self.pressed.clear();
        } else if self.overlays.is_empty() || applies || self.is_leaving() {
            self.quit();
        } else if !self.stop_planning() {
            self.step_top(|layer, cx| layer.key(Key::plain(Code::Esc), cx));
        }
    }

    /// Handles a key that repeats because it is held down: it never triggers a change.
    pub(super) fn held_key(&mut self, key: Key) {
        if let Some(overlay) = self.overlays.last() {
            let moves = matches!(key.code, Code::Up | Code::Down | Code::PageUp | Code::PageDown | Code::Backspace);
            if overlay.get().gate().is_none() || moves {
                self.key(key);
            }
            return;
        }
        let pressed: Vec<Key> = self.pressed.iter().copied().chain([key]).collect();
        match self.meaning(&pressed) {
            KeyMeaning::Command(id) if command(id).is_some_and(ConsoleCommand::changes) => {}
            _ => self.key(key),
        }
    }

    /// Returns the meaning of pressed keys at the current place.
    pub fn meaning(&self, keys: &[Key]) -> KeyMeaning {
        self.context.settings.keys.meaning(keys, Some(self.screen().scope()).filter(|scope| !scope.is_shared()))
    }

    fn click(&mut self, target: &ClickTarget, twice: bool) {
        if *target == ClickTarget::Cancel {
            return self.key(Key::plain(Code::Esc));
        }
        if !self.overlays.is_empty() {
            self.step_top(|layer, cx| layer.click(target, cx));
            return;
        }
        self.pressed.clear();
        self.early.clear();
        match target {
            ClickTarget::ListRow(position) | ClickTarget::PanelRow(position) | ClickTarget::HomeEntry(position) => {
                let again = matches!(target, ClickTarget::HomeEntry(_)) && self.screen().is_at(*position);
                self.at_screen(|screen, _| screen.select(*position));
                if twice || again {
                    self.command(CommandId::Open);
                }
            }
            ClickTarget::ListHead(column) => self.at_screen(|screen, cx| screen.sort_by(column, cx)),
            ClickTarget::List => self.at_screen(|screen, _| screen.focus(false)),
            ClickTarget::Detail => self.at_screen(|screen, _| screen.focus(true)),
            ClickTarget::Tab(tab) => self.at_screen(|screen, _| {
                screen.show_tab(*tab);
                screen.focus(true);
            }),
            ClickTarget::Moment(moment) => self.at_screen(|screen, _| screen.go_to_moment(*moment)),
            ClickTarget::Link(destination) => self.context.follow(destination.clone()),
            ClickTarget::Command(id) => self.command(*id),
            ClickTarget::Crumb(back) => self.history.travel(-(*back as isize), &mut self.context),
            ClickTarget::MenuItem(_) | ClickTarget::Cancel | ClickTarget::Overlay => {}
        }
    }

    fn wheel(&mut self, target: &ClickTarget, up: bool) {
        const LINES: isize = 3;
        let by = if up { -LINES } else { LINES };
        if !self.overlays.is_empty() {
            return self.at_top(|layer, cx| layer.scroll_by(by, cx));
        }
        self.at_screen(|screen, cx| match target {
            ClickTarget::Detail | ClickTarget::Tab(_) | ClickTarget::Link(_) | ClickTarget::Moment(_) => {
                screen.scroll_by(by, cx);
            }
            _ => screen.scroll_list(by, cx),
        });
    }
}
