//! Migrations of the database: pending ones with statements, locks and effect, applied ones that differ from this
//! version, and those of other systems. Applying is confirmed in the same way as unlocking.

pub(in crate::console) mod draw;
pub mod messages;

pub use messages::{MigrationItem, MigrationList, MigrationStanding};

use crate::console::core::context::UnlockStep;
use crate::console::core::twin::words;
use crate::console::core::{
    CommandId, CommandScope, Context, Fetched, Lack, LayerOpening, ListCursor, Reply, Request, Screen, ScreenFace,
    ScreenKind, Ticket,
};
use crate::console::view::Canvas;

/// The list of migrations.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct MigrationsScreen {
    /// The migrations.
    pub listed: Fetched<MigrationList>,
    /// The selected one.
    pub cursor: ListCursor,
}

impl MigrationsScreen {
    /// The migrations that were read.
    pub fn items(&self) -> &[MigrationItem] {
        self.listed.value.as_ref().map_or(&[], |l| &l.items)
    }

    /// The selected one.
    pub fn current(&self) -> Option<&MigrationItem> {
        self.items().get(self.cursor.selected)
    }

    /// Asks whether to apply all pending migrations, including the selected one if it is applied only by name.
    fn apply(&self, cx: &mut Context) {
        let optional: Vec<String> = self.chosen().iter().filter_map(|item| item.option.clone()).collect();
        let migrations = self.wanted().map(|item| item.migration.clone()).collect();
        cx.show(LayerOpening::Unlock(UnlockStep { migrations, optional, unlocks: false }));
    }

    fn has_drifted(&self) -> bool {
        self.items().iter().any(|item| item.standing == MigrationStanding::Drifted)
    }

    /// The selected migration if it is applied only by name.
    fn chosen(&self) -> Option<&MigrationItem> {
        self.current().filter(|item| item.standing == MigrationStanding::Optional)
    }

    /// All pending migrations, and those with the name of the chosen one.
    fn wanted(&self) -> impl Iterator<Item = &MigrationItem> {
        let option = self.chosen().and_then(|item| item.option.as_ref());
        let named = move |item: &MigrationItem| {
            item.standing == MigrationStanding::Optional && option.is_some() && item.option.as_ref() == option
        };
        self.items().iter().filter(move |item| item.standing == MigrationStanding::Pending || named(item))
    }
}

impl Screen for MigrationsScreen {
    fn face(&self) -> ScreenFace {
        ScreenFace::own("migrations", ScreenKind::Migrations, CommandScope::Migrations)
    }

    fn twin(&self, _cx: &Context) -> Vec<String> {
        words(["migrate"])
    }

    fn settle(&mut self, cx: &mut Context) {
        if self.listed.is_wanted() {
            self.listed.pending = Some(cx.ask(Request::LoadMigrations));
        }
    }

    fn reply(&mut self, _ticket: Ticket, reply: Reply, _cx: &mut Context) {
        let Reply::Migrations(result) = reply else { return };
        self.listed.take(result.map(|listed| *listed));
        self.cursor.stay(None, self.items().len());
    }

    fn can(&self, id: CommandId, _cx: &Context) -> Result<(), Lack> {
        match id {
            CommandId::ApplyMigrations if self.has_drifted() => {
                Err(("one of the applied migrations has changed: nothing is applied on top of it".to_owned(), None))
            }
            CommandId::ApplyMigrations if self.listed.value.is_some() && self.wanted().next().is_none() => {
                Err(("nothing is pending; an optional one is applied when it is selected".to_owned(), None))
            }
            _ => Ok(()),
        }
    }

    fn command(&mut self, id: CommandId, cx: &mut Context) {
        if id == CommandId::ApplyMigrations {
            self.apply(cx);
        }
    }

    fn open(&mut self, cx: &mut Context) {
        cx.command(CommandId::ApplyMigrations);
    }

    fn cursor(&mut self) -> Option<(&mut ListCursor, usize)> {
        let entries = self.items().len();
        Some((&mut self.cursor, entries))
    }

    fn release(&mut self) -> Vec<Ticket> {
        self.listed.release()
    }

    fn forget(&mut self) {
        self.listed.forget();
    }

    fn draw(&self, cx: &Context, canvas: &mut Canvas<'_>) {
        draw::draw(cx, self, canvas.look, canvas.area, canvas.buf, canvas.drawn);
    }
}
