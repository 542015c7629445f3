//! Overlays, the layers over a screen: each has a file or a folder with its state, keys and drawing. This file is their
//! only list.

pub mod confirm;
pub mod conflict;
pub mod failure;
pub mod form;
pub mod help;
pub mod last_question;
pub mod menu;
pub mod note;
pub mod picker;
pub mod prompt;
pub mod row_form;
pub mod tour;
pub mod unlock;

use super::core::layer::Layer;
use confirm::Confirmation;
use conflict::Conflict;
use failure::FailureLayer;
use form::Form;
use help::HelpLayer;
use last_question::LastQuestion;
use menu::MenuLayer;
use note::NoteLayer;
use picker::Picker;
use prompt::PromptLayer;
use row_form::RowForm;
use tour::TourLayer;
use unlock::Unlock;

/// Defines the enum of all overlays from their list.
macro_rules! overlays {
    ($($name:ident($layer:ty)),* $(,)?) => {
        /// Overlay over the screen; it receives the keys.
        #[derive(Debug, Clone, PartialEq)]
        #[allow(missing_docs)]
        pub enum Overlay {
            $($name(Box<$layer>)),*
        }

        impl Overlay {
            /// Returns the layer as the interface that the core uses.
            pub fn get(&self) -> &dyn Layer {
                match self {
                    $(Overlay::$name(layer) => &**layer),*
                }
            }

            /// Returns the layer as the interface that the core uses, mutably.
            pub fn get_mut(&mut self) -> &mut dyn Layer {
                match self {
                    $(Overlay::$name(layer) => &mut **layer),*
                }
            }
        }

        $(impl From<$layer> for Overlay {
            fn from(layer: $layer) -> Self {
                Overlay::$name(Box::new(layer))
            }
        })*
    };
}

overlays! {
    Help(HelpLayer),
    Menu(MenuLayer),
    Prompt(PromptLayer),
    Failure(FailureLayer),
    Confirm(Confirmation),
    Form(Form),
    RowForm(RowForm),
    Picker(Picker),
    Conflict(Conflict),
    Unlock(Unlock),
    Erase(LastQuestion),
    Note(NoteLayer),
    Tour(TourLayer),
}

/// The stack of overlays: the topmost one receives the keys. Each has a number, by which replies reach it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct OverlayStack {
    stack: Vec<(u64, Overlay)>,
    next: u64,
}

impl OverlayStack {
    /// Whether there is no overlay.
    pub fn is_empty(&self) -> bool {
        self.stack.is_empty()
    }

    /// The topmost.
    pub fn last(&self) -> Option<&Overlay> {
        self.stack.last().map(|(_, overlay)| overlay)
    }

    /// Number of the topmost.
    pub fn top(&self) -> Option<u64> {
        self.stack.last().map(|(id, _)| *id)
    }

    /// The topmost, with its number.
    pub fn last_mut(&mut self) -> Option<(u64, &mut Overlay)> {
        self.stack.last_mut().map(|(id, overlay)| (*id, overlay))
    }

    /// All, from the bottom.
    pub fn iter(&self) -> impl Iterator<Item = &Overlay> {
        self.stack.iter().map(|(_, overlay)| overlay)
    }

    /// All, from the bottom.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Overlay> {
        self.stack.iter_mut().map(|(_, overlay)| overlay)
    }

    /// Numbers of all, from the bottom.
    pub fn ids(&self) -> Vec<u64> {
        self.stack.iter().map(|(id, _)| *id).collect()
    }

    /// The overlay with this number.
    pub fn find_mut(&mut self, id: u64) -> Option<&mut Overlay> {
        self.stack.iter_mut().find(|(number, _)| *number == id).map(|(_, overlay)| overlay)
    }

    /// Pushes an overlay, and returns its number.
    pub fn push(&mut self, overlay: Overlay) -> u64 {
        self.next += 1;
        self.stack.push((self.next, overlay));
        self.next
    }

    /// Closes the overlay with this number.
    pub fn close(&mut self, id: u64) {
        self.stack.retain(|(number, _)| *number != id);
    }

    /// Closes the overlays for which `keep` is false.
    pub fn retain(&mut self, keep: impl Fn(&Overlay) -> bool) {
        self.stack.retain(|(_, overlay)| keep(overlay));
    }
}
