//! The screens: each has a folder with its state, update, drawing and messages. This file is their only list.

pub mod browse;
pub mod compare;
pub mod erase;
pub mod find;
pub mod findings;
pub mod home;
pub mod inbox;
pub mod jobs;
pub mod migrations;
pub mod prune;
pub mod recall;
pub mod receipts;
pub mod replay;
pub mod study;
pub mod tables;
pub mod trail;

use super::core::message::Destination;
use super::core::screen::{Screen, ScreenKind};
use crate::recall::rank::Ranking;
use browse::{CardScreen, ListScreen};
use compare::CompareScreen;
use erase::EraseScreen;
use find::FindScreen;
use findings::FindingsScreen;
use home::HomeScreen;
use inbox::InboxScreen;
use jobs::JobsScreen;
use migrations::MigrationsScreen;
use prune::PruneScreen;
use recall::RecallScreen;
use receipts::ReceiptsScreen;
use replay::ReplayScreen;
use study::{StudyKind, StudyScreen};
use tables::TablesScreen;
use trail::TrailScreen;

/// Makes the one type of all screens from their list: each with the kinds that open it, and how it begins.
macro_rules! screens {
    ($($name:ident($screen:ty) { $($kind:ident => $new:expr),* })*) => {
        /// Any of the screens.
        #[derive(Debug, Clone, PartialEq)]
        #[allow(missing_docs)]
        pub enum AnyScreen {
            $($name(Box<$screen>)),*
        }

        impl AnyScreen {
            /// Creates a screen of its own kind.
            pub fn new(kind: ScreenKind) -> Self {
                match kind {
                    $($(ScreenKind::$kind => AnyScreen::$name(Box::new($new)),)*)*
                }
            }

            /// Borrows the screen as the trait object that the core uses.
            pub fn get(&self) -> &(dyn Screen + 'static) {
                match self {
                    $(AnyScreen::$name(screen) => &**screen),*
                }
            }

            /// Borrows the screen mutably, as the trait object that the core uses.
            pub fn get_mut(&mut self) -> &mut dyn Screen {
                match self {
                    $(AnyScreen::$name(screen) => &mut **screen),*
                }
            }

            /// Takes over the state of an earlier screen of the same kind. False if it has none.
            pub fn inherit(&mut self, earlier: &AnyScreen, here: bool) -> bool {
                match (self, earlier) {
                    $((AnyScreen::$name(screen), AnyScreen::$name(earlier)) => screen.inherit(earlier, here),)*
                    _ => false,
                }
            }
        }
    };
}

screens! {
    Home(HomeScreen) {}
    List(ListScreen) {}
    Card(CardScreen) {}
    Compare(CompareScreen) {}
    Find(FindScreen) {}
    Receipts(ReceiptsScreen) { Receipts => ReceiptsScreen::default() }
    Findings(FindingsScreen) { Findings => FindingsScreen::default() }
    Migrations(MigrationsScreen) { Migrations => MigrationsScreen::default() }
    Study(StudyScreen) {
        Agents => StudyScreen::new(StudyKind::Agents),
        Policies => StudyScreen::new(StudyKind::Policies),
        Evaluation => StudyScreen::new(StudyKind::Recall)
    }
    Inbox(InboxScreen) { Inbox => InboxScreen::default() }
    Jobs(JobsScreen) { Jobs => JobsScreen::default() }
    Prune(PruneScreen) { Prune => PruneScreen::default() }
    Recall(RecallScreen) { Recall => RecallScreen::new(Ranking::Boosted) }
    Erase(EraseScreen) { Erase => EraseScreen::default() }
    Replay(ReplayScreen) { Replay => ReplayScreen::default() }
    Trail(TrailScreen) { Trail => TrailScreen::default() }
    Tables(TablesScreen) { Tables => TablesScreen::default() }
}

impl AnyScreen {
    /// The screen that a destination names.
    pub fn at(destination: &Destination) -> Self {
        match destination {
            Destination::Home => AnyScreen::Home(Box::default()),
            Destination::Panel(kind) => AnyScreen::new(*kind),
            Destination::Erase(given) => AnyScreen::Erase(Box::new(EraseScreen::of(given.clone()))),
            Destination::Finding(kind, entity) => AnyScreen::Findings(Box::new(FindingsScreen::at((kind, *entity)))),
            Destination::List(entity, conditions) => {
                AnyScreen::List(Box::new(ListScreen::new(*entity, conditions.clone())))
            }
            Destination::Compare(entity, ids) => AnyScreen::Compare(Box::new(CompareScreen::of(*entity, ids))),
            Destination::Find(text) => AnyScreen::Find(Box::new(FindScreen::of(text))),
            Destination::Tab(entity, id, tab) => {
                let mut card = CardScreen::of(*entity, id);
                card.detail.show_named_tab(tab);
                AnyScreen::Card(Box::new(card))
            }
            Destination::Row(entity, id) => AnyScreen::Card(Box::new(CardScreen::of(*entity, id))),
        }
    }
}
