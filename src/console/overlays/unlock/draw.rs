//! Unlocking: its meaning, or the tables that must be added first.

use ratatui::{buffer::Buffer, layout::Rect};

use crate::change::plan::ChangeDanger;
use crate::console::core::{CommandId, Context};
use crate::console::overlays::unlock::Unlock;
use crate::console::view::changes::is_told;
use crate::console::view::{Dialog, Drawn, sentences};
use crate::ui::{KeyHint, Look, SafeText, Section, StyleRole, TextLine};

pub fn draw(cx: &Context, unlock: &Unlock, look: &Look, area: Rect, buf: &mut Buffer, drawn: &mut Drawn) {
    let migrates = !unlock.asked.migrations.is_empty();
    let title = match (migrates, unlock.asked.unlocks) {
        (true, true) => "Add the audit trail and unlock",
        (true, false) => "Apply migrations",
        (false, _) => "Unlock",
    };
    let mut note = TextLine::of(SafeText::limited(cx.database_name(), 60), StyleRole::Muted);
    if cx.opened.production {
        note = note.with(" ", StyleRole::Text).with(" PRODUCTION ", StyleRole::Production);
    }
    let mut hints = Vec::new();
    if migrates {
        let key = if unlock.gate.step == ChangeDanger::Grave { "ctrl-y" } else { "y c" };
        hints.push(KeyHint::new(key, "copy command"));
    }
    let verb = match (migrates, unlock.asked.unlocks) {
        (true, true) => "apply and unlock",
        (true, false) => "apply",
        (false, _) => "unlock",
    };
    let dialog = Dialog { title: title.into(), note, verb, gate: &unlock.gate, hints, scroll: unlock.scroll };
    let lines = |width: usize| {
        if migrates { migration_lines(cx, unlock, width, look) } else { unlock_lines(cx, width, look) }
    };
    dialog.draw(lines, look, area, buf, drawn);
}

fn unlock_lines(cx: &Context, width: usize, look: &Look) -> Vec<TextLine> {
    let care = if cx.opened.production {
        "Others depend on this database: each change is shown before it is made, and needs one more confirmation."
            .to_owned()
    } else {
        let undo = cx.key_for(CommandId::UndoLast);
        format!(
            "What only adds (a signal, feedback, a trained policy) is applied at once, and {undo} undoes it. Every \
             other change is shown before it is made."
        )
    };
    let texts = [
        format!(
            "Changes to {} become possible, until {} locks again or the console ends.",
            cx.database_name(),
            cx.key_for(CommandId::Lock)
        ),
        "Each change is recorded in the audit trail.".to_owned(),
        care,
    ];
    sentences(&texts, StyleRole::Muted, width, look)
}

fn migration_lines(cx: &Context, unlock: &Unlock, width: usize, look: &Look) -> Vec<TextLine> {
    let intro = if unlock.asked.unlocks && cx.is_blank() {
        "This database is empty. These statements create the memory tables, and the audit trail, which changes \
         require; then the session is unlocked."
    } else if unlock.asked.unlocks {
        "This database has no audit trail, which changes require. These statements add it, with everything else that \
         is pending; then the session is unlocked. No row of the memory is changed."
    } else {
        "These statements are run, each migration with its own entry in the audit trail. If they are stopped, they \
         resume where they stopped. Afterwards all old rows are read again."
    };
    let mut lines = sentences(&[intro.to_owned()], StyleRole::Muted, width, look);
    for migration in &unlock.asked.migrations {
        Section::new(SafeText::limited(&migration.name, 60)).add_to(&mut lines, width, look);
        let words = [migration.effect.clone(), format!("lock risk: {}", migration.lock_risk)];
        lines.extend(sentences(&words, StyleRole::Muted, width, look));
        lines.push(TextLine::default());
        for line in migration.sql.lines().filter(|line| !is_told(line)) {
            let rows = SafeText::rows(line, width.saturating_sub(2).max(8));
            lines.extend(rows.map(|row| TextLine::of("  ", StyleRole::Text).with(row, StyleRole::String)));
        }
    }
    lines
}
