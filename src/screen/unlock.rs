//! Making changes possible: what unlocking means, or the tables that must be added before.

use ratatui::{buffer::Buffer, layout::Rect};

use super::Drawn;
use super::changes::sentences;
use super::confirm::Dialog;
use crate::app::Model;
use crate::app::lock::{Pending, Unlock};
use crate::change::plan::Danger;
use crate::ui::{KeyHint, Look, Role, SafeText, Section, TextLine};

/// Draws it.
pub fn draw(model: &Model, unlock: &Unlock, look: &Look, area: Rect, buf: &mut Buffer, drawn: &mut Drawn) {
    let migrates = !unlock.migrations.is_empty();
    let title = if migrates { "Add the audit trail" } else { "Unlock" };
    let mut note = TextLine::of(SafeText::limited(model.database_name(), 60), Role::Muted);
    if model.opened.production {
        note = note.with(" ", Role::Text).with(" PRODUCTION ", Role::Production);
    }
    let mut hints = Vec::new();
    if migrates {
        let key = if unlock.gate.step == Danger::Grave { "ctrl-y" } else { "y c" };
        hints.push(KeyHint::new(key, "copy command"));
    }
    let verb = if migrates { "apply" } else { "unlock" };
    let dialog = Dialog { title: title.into(), note, verb, gate: &unlock.gate, hints, scroll: unlock.scroll };
    let lines = |width: usize| {
        if migrates { migration_lines(&unlock.migrations, width, look) } else { unlock_lines(model, width, look) }
    };
    dialog.draw(lines, look, area, buf, drawn);
}

fn unlock_lines(model: &Model, width: usize, look: &Look) -> Vec<TextLine> {
    let mut texts = vec![
        format!("Changes to {} become possible, until U locks again or the console ends.", model.database_name()),
        "Each change is planned and shown before it is made, and is written down in the audit trail.".to_owned(),
    ];
    if model.opened.production {
        texts.push("Others depend on this database: each change asks for one step more care.".to_owned());
    }
    sentences(&texts, Role::Muted, width, look)
}

fn migration_lines(migrations: &[Pending], width: usize, look: &Look) -> Vec<TextLine> {
    let intro =
        ["This database has no audit trail, without which nothing is changed. These statements add it; no table of \
                  the memory is touched."
            .to_owned()];
    let mut lines = sentences(&intro, Role::Muted, width, look);
    for migration in migrations {
        lines.push(TextLine::default());
        lines.push(Section::new(SafeText::limited(&migration.name, 60)).line(width, look));
        let words = [migration.effect.clone(), format!("lock risk: {}", migration.lock_risk)];
        lines.extend(sentences(&words, Role::Muted, width, look));
        lines.push(TextLine::default());
        for line in migration.sql.lines() {
            lines.push(
                TextLine::of("  ", Role::Text).with(SafeText::limited(line, width.saturating_sub(2)), Role::String),
            );
        }
    }
    lines
}
