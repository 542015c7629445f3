//! Rows of `recall` and `replay` with their dependent rows, printed as they are read.

use std::io;

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::document::{Document, RowsDocument};
use super::{CommandFailure, Format, Session, output, shown};
use crate::lab::recall::{RowInContext, RowsInContext, told};
use crate::memory::Row;
use crate::memory::json::JsonPart;
use crate::memory::mask::Mask;
use crate::recall::context::ToldRows;
use crate::recall::rank::RankedRow;
use crate::store::Store;
use crate::store::context::RecalledContext;
use crate::store::hanging::HangingRows;

/// Members of a row that come before its dependent rows.
pub type Head = fn(&RankedRow) -> Vec<(&'static str, HeadValue<'_>)>;

#[derive(Serialize)]
#[serde(untagged)]
pub enum HeadValue<'r> {
    Known(Value),
    Row(&'r Row),
    Part(JsonPart<'r>),
}

impl HeadValue<'_> {
    /// The value of a table's cell: a row or a long document as JSON text, which takes less memory than its values.
    fn cell(&self) -> Value {
        match self {
            HeadValue::Known(value) => value.clone(),
            HeadValue::Part(JsonPart::Value(value)) => (*value).clone(),
            HeadValue::Part(part) => Value::from(part.to_string()),
            HeadValue::Row(row) => serde_json::to_string(row).map_or(Value::Null, Value::from),
        }
    }
}

/// Context for reading and printing rows.
pub struct RecalledRows<'a> {
    store: &'a Store,
    mask: Option<Mask>,
    format: Format,
    rows: RowsInContext<'a>,
}

impl<'a> RecalledRows<'a> {
    pub fn new(session: &Session<'_>, store: &'a Store, rows: RowsInContext<'a>) -> Self {
        RecalledRows { store, mask: session.mask(), format: session.format(), rows }
    }

    /// The next row, as it may be shown.
    pub async fn next(&mut self) -> Result<Option<RowInContext>, CommandFailure> {
        let mut next = self.rows.next().await?;
        if let (Some(mask), Some(row)) = (&self.mask, &mut next) {
            mask.row(&mut row.ranked.row);
        }
        Ok(next)
    }

    /// Canvas events and feedback of a row, as far as they fit in this many characters.
    pub async fn told(
        &self,
        around: Option<RecalledContext>,
        room: usize,
    ) -> Result<(ToldRows, ToldRows), CommandFailure> {
        let Some(RecalledContext { canvas, feedback, .. }) = around else { return Ok(Default::default()) };
        let canvas = told(self.store, canvas, room, |row| self.hide(row)).await?;
        Ok((canvas, told(self.store, feedback, room, |row| self.hide(row)).await?))
    }

    fn hide(&self, row: &mut Row) {
        self.mask.iter().for_each(|mask| mask.row(row));
    }

    /// Prints all rows as JSON or CSV; one JSON document ends with `rest`.
    pub async fn print(mut self, head: Head, rest: Value) -> Result<(), CommandFailure> {
        match self.format {
            Format::Csv => self.print_table(head).await,
            Format::Json => {
                let mut rows = RowsDocument::begin();
                while let Some(row) = self.next().await?.filter(|_| rows.document().is_read()) {
                    rows.document().item();
                    self.members(rows.document(), head, row).await?;
                    rows.document().end();
                }
                rows.end(&rest)
            }
            _ => {
                let mut lines = Document::lines();
                while let Some(row) = self.next().await?.filter(|_| lines.is_read()) {
                    lines.item();
                    self.members(&mut lines, head, row).await?;
                    lines.end_line()?;
                }
                lines.print()
            }
        }
    }

    async fn members(&self, document: &mut Document, head: Head, row: RowInContext) -> Result<(), CommandFailure> {
        let RowInContext { ranked, around } = row;
        head(&ranked).iter().try_for_each(|(name, value)| document.member(name, value))?;
        let Some(RecalledContext { canvas, feedback, findings }) = around else { return Ok(()) };
        let surroundings = (self.store, self.mask.as_ref());
        shown::list(document, "canvas_context", surroundings, canvas).await?;
        shown::list(document, "feedback_context", surroundings, feedback).await?;
        document.member("findings", &findings)
    }

    /// A cell holds all dependent rows of a kind.
    async fn print_table(mut self, head: Head) -> Result<(), CommandFailure> {
        let mut rows = Vec::new();
        while let Some(RowInContext { ranked, around }) = self.next().await? {
            let cells = head(&ranked).into_iter().map(|(name, value)| (name.to_owned(), value.cell()));
            let mut row: Map<String, Value> = cells.collect();
            if let Some(RecalledContext { canvas, feedback, findings }) = around {
                row.insert("canvas_context".to_owned(), self.whole(canvas).await?);
                row.insert("feedback_context".to_owned(), self.whole(feedback).await?);
                row.insert("findings".to_owned(), json!(findings));
            }
            rows.push(Value::Object(row));
        }
        output::csv_table(&rows)
    }

    /// Rows as the text of a JSON list, which takes less memory than their values.
    async fn whole(&self, rows: HangingRows) -> Result<Value, CommandFailure> {
        let (mut text, mut parts) = (b"[".to_vec(), self.store.contexts().parts(rows));
        loop {
            let mut rows = parts.next().await?;
            if rows.is_empty() {
                text.push(b']');
                return Ok(Value::from(String::from_utf8(text).map_err(io::Error::other)?));
            }
            for row in &mut rows {
                self.hide(row);
                text.extend((text.len() > 1).then_some(b','));
                serde_json::to_writer(&mut text as &mut dyn io::Write, row).map_err(io::Error::from)?;
            }
        }
    }
}
