//! The one function through which everything passes: a message changes the model and asks for effects.

use super::model::Model;
use crate::console::core::command::{CommandId, ConsoleCommand, command};
use crate::console::core::context::{Context, ScreenAction, ToastTone, is_too_small};
use crate::console::core::gate::ConfirmGate;
use crate::console::core::key::{Code, Key};
use crate::console::core::key_map::KeyMeaning;
use crate::console::core::layer::{Layer, LayerStep};
use crate::console::core::message::{ClickTarget, Effect, Message, Ticket};
use crate::console::core::request::Reply;
use crate::console::core::router::Asker;
use crate::console::core::screen::Screen;

/// Takes a message; what is to be done outside.
pub fn update(model: &mut Model, message: Message) -> Vec<Effect> {
    let (told, before) = (model.context.toast.as_ref().map(|toast| toast.ticket), model.in_front());
    model.take(message);
    let mut effects = model.carry_out();
    while model.take_early() {
        effects.extend(model.carry_out());
    }
    let in_front = model.in_front();
    if in_front.0 != before.0 || in_front.1 > before.1 {
        // What was said was about what is not in front any more.
        model.context.toast.take_if(|toast| Some(toast.ticket) == told);
    }
    effects.into_iter().map(|effect| model.send(effect)).collect()
}

impl Model {
    /// Numbers of the place and of what lies over it.
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
            Message::Viewed(Ok(end)) => self.edited(end),
            Message::Beside(open) => self.context.beside = open,
            Message::Arrived(arrival) => self.arrive(*arrival),
        }
    }

    /// The terminal has another size: what was drawn before does not count. Where nothing can be drawn any more, keys that wait
    /// are dropped.
    fn resized(&mut self, size: (u16, u16)) {
        self.context.size = size;
        self.context.measures.gate = None;
        if self.is_unseen() {
            self.pressed.clear();
            self.early.clear();
        }
    }

    /// Whether the terminal is too small for anything to be drawn: then nothing is done but to leave.
    pub(super) fn is_unseen(&self) -> bool {
        is_too_small(self.context.size)
    }

    /// Carries out what was asked for, and asks for what is missing then, until nothing is left; what is to be done
    /// outside.
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

    /// The door out: who waits for a reply is noted, and names are in the place of pseudonyms.
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

    /// The door in: a reply is masked, and goes to whoever waits for it. A reply that nobody waits for changes nothing.
    pub(super) fn route(&mut self, ticket: Ticket, mut reply: Reply) {
        let Some(asker) = self.context.router.asker(ticket, reply.is_last()) else {
            if matches!(reply, Reply::Planned(_)) {
                // The plan that is kept outside is needed no more.
                self.context.cancel([ticket]);
            }
            return;
        };
        if matches!(reply, Reply::Erased(Ok(_))) {
            // They may name the person.
            self.filters.clear();
        }
        match &reply {
            Reply::Unread(why) => self.context.unread = Some(why.clone()),
            Reply::News(_) => {
                self.context.unread = None;
                for id in self.overlays.ids() {
                    self.at_layer(id, |overlay, cx| overlay.get_mut().others_wrote(cx));
                }
            }
            _ => {}
        }
        self.context.masking.inbound(&mut reply);
        match asker {
            Asker::Core => self.heard(ticket, reply),
            Asker::Screen(id) if self.history.here().id == id => {
                self.at_screen(|screen, cx| screen.reply(ticket, reply, cx));
                self.judge_prompt();
            }
            // A place that was left waits for nothing.
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

    /// Asks for what is missing where we are. Called after every message; asks nothing twice.
    fn settle(&mut self) {
        if !self.context.started {
            return;
        }
        if self.history.here().epoch != self.context.changing.epoch {
            self.history.here_mut().epoch = self.context.changing.epoch;
            // What was written here is not news.
            self.context.watch_place(self.history.here().id, false);
            self.refresh();
        }
        if !self.screen().shows_findings() {
            // Nobody sees what is looked for. It begins again when we come back.
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

    /// Has the topmost overlay do something, if there is one.
    fn at_top(&mut self, does: impl FnOnce(&mut dyn Layer, &mut Context)) {
        if let Some((id, _)) = self.overlays.last_mut() {
            self.at_layer(id, |overlay, cx| does(overlay.get_mut(), cx));
            self.judge_prompt();
        }
    }

    /// The same, for what may close it; gives what became of it.
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
                // Next to the keys that may follow, a key does not mean what it means alone.
                if keys.len() > 1 {
                    self.context.say(ToastTone::Info, format!("{} means nothing here", keys.join(" ")));
                }
            }
        }
    }

    /// Whether a key with alt is `esc` and that key: terminals send both alike, and over a slow line both arrive at once.
    fn is_esc_and(&self, key: Key) -> bool {
        let tells = self.context.changing.releases;
        let is_letter = matches!(key.code, Code::Char(_));
        key.alt && is_letter && !tells && self.overlays.is_empty() && self.meaning(&[key]) == KeyMeaning::Nothing
    }

    /// Closes what is open over the screen, as `esc` does; where nothing is, or someone insists, ends the console.
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

    /// A key that repeats itself because it is held down: it never reaches what changes something.
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
    #[must_use]
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
