//! Conflict overlay: someone else changed the rows meanwhile; your values, theirs and the earlier ones are side by
//! side.

pub(in crate::console) mod draw;

use serde_json::Value;

use crate::change::operation::Operation;
use crate::change::plan::Change;
use crate::console::core::change::columns;
use crate::console::core::layer::{scroll_key, scrolled};
use crate::console::core::twin::change_line;
use crate::console::core::{
    ClickTarget, Code, Context, Effect, Key, Layer, LayerStep, Proposal, ScreenAction, ToastTone,
};
use crate::console::view::Canvas;
use crate::memory::Row;

/// One column of a row that moved.
#[derive(Debug, Clone, PartialEq)]
pub struct MovedColumn {
    /// Name of the column.
    pub name: String,
    /// Value when the change was planned.
    pub before: Value,
    /// Value that your change would set.
    pub yours: Value,
    /// Current value; `None` if the row is gone.
    pub theirs: Option<Value>,
}

impl MovedColumn {
    /// Whether someone else has changed it.
    pub fn has_moved(&self) -> bool {
        self.theirs.as_ref() != Some(&self.before)
    }
}

/// A row that moved.
#[derive(Debug, Clone, PartialEq)]
pub struct MovedRow {
    /// Entity of the row.
    pub entity: String,
    /// Id of the row.
    pub id: String,
    /// True when the row no longer exists.
    pub gone: bool,
    /// Columns that you or they change.
    pub columns: Vec<MovedColumn>,
}

/// A change that met another one.
#[derive(Debug, Clone, PartialEq)]
pub struct Conflict {
    /// Change that was to be made.
    pub proposal: Proposal,
    /// Description of the changes since the plan was made, for users.
    pub message: String,
    /// The rows, for people.
    pub rows: Vec<String>,
    /// The rows, column by column.
    pub moved: Vec<MovedRow>,
    /// First line shown.
    pub scroll: usize,
    /// `y` was pressed: `c` copies.
    pub copying: bool,
}

/// The three sides of each change; `now` holds the current rows in the same order. Rows that neither side changed are
/// left out.
pub fn three_way(changes: &[Change], now: &[Option<Row>]) -> Vec<MovedRow> {
    let moved = changes.iter().zip(now).map(|(change, row)| {
        let column = |(name, before, yours): (String, Value, Value)| {
            let theirs = row.as_ref().map(|row| row.get(&name).clone());
            MovedColumn { name, before, yours, theirs }
        };
        // A new row has no earlier values that could have changed.
        let columns = if change.before.is_null() { Vec::new() } else { columns(change) };
        let columns = columns.into_iter().map(column).collect();
        MovedRow { entity: change.entity.clone(), id: change.id.clone(), gone: row.is_none(), columns }
    });
    moved.filter(|moved| !moved.columns.is_empty()).collect()
}

impl Conflict {
    /// The same proposal based on their values, which the user has seen.
    fn again(&self) -> Proposal {
        let mut proposal = self.proposal.clone();
        if let Proposal::Changes(changes) = &mut proposal {
            changes.iter_mut().for_each(Operation::replace_any);
        }
        proposal
    }
}

impl Layer for Conflict {
    fn key(&mut self, key: Key, cx: &mut Context) -> LayerStep {
        if std::mem::take(&mut self.copying) && key.code == Code::Char('c') {
            let line = change_line(cx, &self.proposal, None);
            cx.perform(Effect::Copy("command".to_owned(), line));
            return LayerStep::Stays;
        }
        match key.code {
            Code::Char('y') => self.copying = true,
            Code::Char('p') if !key.ctrl => {
                cx.propose(self.again());
                return LayerStep::Closes;
            }
            Code::Char('t') => {
                cx.act(ScreenAction::StartOver);
                cx.say(ToastTone::Info, "their change stays; the rows were read again");
                return LayerStep::Closes;
            }
            Code::Esc | Code::Enter | Code::Char('q') => {
                cx.say(ToastTone::Info, "nothing was changed");
                return LayerStep::Closes;
            }
            _ => self.scroll_by(scroll_key(key, cx).unwrap_or_default(), cx),
        }
        LayerStep::Stays
    }

    /// A click beside it does not drop the plan.
    fn click(&mut self, _target: &ClickTarget, _cx: &mut Context) -> LayerStep {
        LayerStep::Stays
    }

    fn scroll_by(&mut self, by: isize, cx: &Context) {
        self.scroll = scrolled(self.scroll, by, cx);
    }

    fn draw(&self, cx: &Context, canvas: &mut Canvas<'_>) {
        draw::draw(cx, self, canvas.look, canvas.area, canvas.buf, canvas.drawn);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::Entity;
    use serde_json::json;

    #[test]
    fn each_column_has_three_sides() {
        let change = Change {
            entity: "feedback".to_owned(),
            id: "fb-1".to_owned(),
            before: json!({"kind": "rating", "rating": 2}).into(),
            after: json!({"kind": "thumbs_up", "rating": 2}).into(),
        };
        let row = Row::with(Entity::Feedback, [("kind", json!("thumbs_down"))]);
        let moved = three_way(&[change.clone(), change], &[Some(row), None]);
        assert_eq!(moved[0].columns.len(), 1);
        assert_eq!(moved[0].columns[0].theirs, Some(json!("thumbs_down")));
        assert!(moved[0].columns[0].has_moved() && !moved[0].gone && moved[1].gone);
    }
}
