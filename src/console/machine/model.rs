//! The whole state of the console.

use std::any::Any;

use super::early::EarlyKeys;
use super::history::History;
use super::kept::KeptPlaces;
use super::past::LookBack;
use super::switch::DatabaseSwitch;
use crate::console::core::router::Asker;
use crate::console::core::{ConsoleSettings, Context, Key, OpenedDatabase, Screen};
use crate::console::overlays::{Overlay, OverlayStack};
use crate::memory::Entity;
use crate::memory::mask::Mask;

/// The state.
#[derive(Debug, Clone, PartialEq)]
pub struct Model {
    /// State that every screen sees.
    pub context: Context,
    /// The places on the way.
    pub history: History,
    /// Overlays over the screen; the last one receives the keys.
    pub overlays: OverlayStack,
    /// The beginning of a sequence of keys.
    pub pressed: Vec<Key>,
    /// Filters written before, the newest last.
    pub filters: Vec<(Entity, String)>,
    pub(super) early: EarlyKeys,
    pub(super) kept: KeptPlaces,
    pub(super) look_back: LookBack,
    pub(super) switch: DatabaseSwitch,
}

impl Model {
    /// The state at the beginning.
    pub fn new(opened: OpenedDatabase, settings: ConsoleSettings, mask: Mask, masked: bool) -> Self {
        Model {
            context: Context::new(opened, settings, mask, masked),
            history: History::default(),
            overlays: OverlayStack::default(),
            pressed: Vec::new(),
            filters: Vec::new(),
            early: EarlyKeys::default(),
            kept: KeptPlaces::default(),
            look_back: LookBack::default(),
            switch: DatabaseSwitch::default(),
        }
    }

    /// The screen that we are at.
    pub fn screen(&self) -> &dyn Screen {
        self.history.here().screen()
    }

    /// Calls a function on the current screen; its requests are answered to it.
    pub(super) fn at_screen<R>(&mut self, does: impl FnOnce(&mut dyn Screen, &mut Context) -> R) -> R {
        self.history.at_screen(&mut self.context, does)
    }

    pub(super) fn show(&mut self, overlay: impl Into<Overlay>) {
        let id = self.overlays.push(overlay.into());
        self.at_layer(id, |overlay, cx| overlay.get_mut().opened(cx));
        self.judge_prompt();
    }

    /// Calls a function on an overlay; its requests are answered to it.
    pub(super) fn at_layer<R>(&mut self, id: u64, does: impl FnOnce(&mut Overlay, &mut Context) -> R) -> Option<R> {
        let overlay = self.overlays.find_mut(id)?;
        self.context.asker = Asker::Layer(id);
        let done = does(overlay, &mut self.context);
        self.context.asker = Asker::Core;
        Some(done)
    }

    /// The path to the current place, as it may be shown.
    pub fn crumbs(&self) -> Vec<String> {
        self.history.crumbs(&self.context)
    }

    /// The screen that we are at, when it is an `S`.
    pub fn at<S: Screen>(&self) -> Option<&S> {
        let screen: &dyn Any = self.history.here().screen.get();
        screen.downcast_ref()
    }
}
