//! The form for any row: the texts of its columns, the changed ones, and their errors. Several marked rows get the same
//! values, in one plan.

mod draw;

use serde_json::{Map, Value};

use crate::change::operation::{Operation, set_by};
use crate::console::core::text::TextField;
use crate::console::core::{ClickTarget, Code, Context, Key, Layer, LayerStep, Proposal, ToastTone};
use crate::console::view::Canvas;
use crate::memory::assign::{read_value, write_value};
use crate::memory::entity::Column;
use crate::memory::{Entity, Personal, Row};
use crate::ui::figures;

/// Most bytes of a value.
const LONGEST: usize = 1_000_000;

/// A column in the form.
#[derive(Debug, Clone, PartialEq)]
pub struct RowField {
    /// The column.
    pub column: &'static Column,
    /// The original value; `None` for several rows, which may differ.
    before: Option<Value>,
    /// The edited text.
    pub text: TextField,
}

impl RowField {
    /// Whether it differs from the original.
    pub fn is_changed(&self) -> bool {
        match &self.before {
            Some(before) => self.text.text() != written(self.column, before),
            None => !self.text.text().is_empty(),
        }
    }

    /// The edited value. An empty text is null; for texts of marked rows it means no change.
    fn value(&self, cx: &Context) -> Result<Value, String> {
        let text = self.text.text();
        if text.is_empty() {
            return Ok(Value::Null);
        }
        if text.len() > LONGEST {
            return Err(format!("{} has {} bytes; the maximum is {LONGEST}", self.column.name, text.len()));
        }
        let wrong = |what: &str| format!("{} takes {what}", self.column.name.replace('_', " "));
        read_value(self.column, &text, cx.now).map_err(wrong)
    }
}

/// A value as text in the form. An unedited value keeps all its digits.
fn written(column: &Column, value: &Value) -> String {
    let real = value.as_f64().filter(|_| value.is_f64());
    real.map_or_else(|| write_value(column, value), figures::real)
}

/// Whether a column of an entity can be edited here.
pub fn is_offered(entity: Entity, column: &Column, cx: &Context) -> bool {
    let key = (entity, column.name);
    let lacks = cx.opened.unfilled.contains(&key) || cx.opened.fixed.contains(&key);
    column.name != "id" && set_by(entity, column.name).is_none() && !lacks
}

/// The form.
#[derive(Debug, Clone, PartialEq)]
pub struct RowForm {
    /// Entity of the rows.
    pub entity: Entity,
    /// Their ids.
    pub ids: Vec<String>,
    /// The columns that can be set.
    pub fields: Vec<RowField>,
    /// Position of the focused column.
    pub at: usize,
    /// Whether masking is on: columns of people are left out, as pseudonyms must not be written back.
    pub masked: bool,
    /// Whether closing, which would lose the text, was requested once.
    pub closing: bool,
}

impl RowForm {
    /// A form on one row, or on several of the kind of this one.
    pub fn new(row: &Row, ids: Vec<String>, cx: &Context) -> Self {
        let masked = cx.masking.is_on();
        let can_set = |column: &&'static Column| {
            is_offered(row.entity, column, cx) && !(masked && column.personal != Personal::No)
        };
        let is_whole = matches!(&ids[..], [id] if id == row.id());
        let field = |column: &'static Column| {
            let before = is_whole.then(|| row.get(column.name).clone());
            let text = before.as_ref().map_or_else(String::new, |value| written(column, value));
            RowField { column, text: TextField::holding(&text), before }
        };
        let fields = row.entity.columns().iter().filter(can_set).map(field).collect();
        RowForm { entity: row.entity, ids, fields, at: 0, masked, closing: false }
    }

    /// Returns the changed columns with their new values.
    ///
    /// # Errors
    /// The error, or a note that nothing was changed.
    fn set(&self, cx: &Context) -> Result<Map<String, Value>, String> {
        let changed = self.fields.iter().filter(|field| field.is_changed());
        let set: Map<String, Value> =
            changed.map(|field| Ok((field.column.name.to_owned(), field.value(cx)?))).collect::<Result<_, String>>()?;
        if set.is_empty() { Err("nothing is changed yet".to_owned()) } else { Ok(set) }
    }

    /// The changed columns with their original values, if known.
    fn instead_of(&self) -> Map<String, Value> {
        let changed = self.fields.iter().filter(|field| field.is_changed());
        changed.filter_map(|field| Some((field.column.name.to_owned(), field.before.clone()?))).collect()
    }

    fn plan(&self, cx: &mut Context) {
        match self.set(cx) {
            Err(reason) => cx.say(ToastTone::Warn, reason),
            Ok(set) => {
                let edit = |id: &String| Operation::Edit {
                    entity: self.entity,
                    id: id.clone(),
                    set: set.clone(),
                    instead_of: self.instead_of(),
                };
                cx.propose(Proposal::Changes(self.ids.iter().map(edit).collect()));
            }
        }
    }

    fn next_field(&mut self, by: isize) {
        let count = self.fields.len().max(1) as isize;
        self.at = (self.at as isize + by).rem_euclid(count) as usize;
    }
}

impl Layer for RowForm {
    fn opened(&mut self, cx: &mut Context) {
        cx.read_names_of(self.entity, self.ids.iter().take(1).map(String::as_str));
    }

    fn key(&mut self, key: Key, cx: &mut Context) -> LayerStep {
        let asked = std::mem::take(&mut self.closing);
        let one_line = self.fields.get(self.at).is_some_and(|field| field.column.is_one_line());
        match key.code {
            Code::Esc if !asked && self.fields.iter().any(RowField::is_changed) => self.closing = true,
            Code::Esc => {
                cx.say(ToastTone::Info, "nothing was changed");
                return LayerStep::Closes;
            }
            Code::Char('s') if key.ctrl => self.plan(cx),
            Code::Tab => self.next_field(1),
            Code::BackTab => self.next_field(-1),
            Code::Enter | Code::Down if one_line => self.next_field(1),
            Code::Up if one_line => self.next_field(-1),
            _ => {
                if let Some(field) = self.fields.get_mut(self.at) {
                    field.text.press(key);
                }
            }
        }
        LayerStep::Stays
    }

    fn paste(&mut self, text: &str, cx: &mut Context) {
        match self.fields.get_mut(self.at) {
            Some(field) if text.len() <= LONGEST && field.column.is_one_line() => {
                field.text.insert(&text.replace(['\r', '\n', '\t'], " "));
            }
            Some(field) if text.len() <= LONGEST => field.text.insert(text),
            _ => cx.say_too_long(text.len()),
        }
    }

    /// A click on a column goes there; one beside the form does not lose the text.
    fn click(&mut self, target: &ClickTarget, _cx: &mut Context) -> LayerStep {
        if let ClickTarget::MenuItem(at) = target {
            self.at = (*at).min(self.fields.len().saturating_sub(1));
        }
        LayerStep::Stays
    }

    fn scroll_by(&mut self, by: isize, _cx: &Context) {
        self.next_field(by.signum());
    }

    fn draw(&self, cx: &Context, canvas: &mut Canvas<'_>) {
        draw::draw(self, cx, canvas);
    }
}
