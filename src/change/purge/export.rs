//! Everything that is kept about a person, for the person: a line of JSON a row, by table, and a manifest with hashes.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::Path;

use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

use super::disclose;
use super::graph::Graph;
use super::subject;
use crate::change::plan::{canonical, digest_of};
use crate::change::{ChangeError, now};
use crate::ground::private_file::{self, PrivateFile};
use crate::layout::Engine;
use crate::store::Store;
use crate::store::container::readable;
use crate::store::fetched::FetchedValue;
use crate::store::row_number::is_row_number;
use crate::store::shape::TableShape;
use crate::store::snapshot::Snapshot;
use crate::store::stored::{Image, TableName};

/// Rows that are read at a time: few at first, and more while they take few bytes together.
const FEWEST: usize = 16;
const MOST: usize = 512;
const TOGETHER: usize = 2 << 20;

/// Destination of a bundle.
pub enum Sink<'a> {
    /// A new folder: a file for each table and `manifest.json`.
    Folder(&'a Path),
    /// One stream: the rows of all tables, each with its table, and the manifest as the last line.
    Stream(&'a mut (dyn Write + Send)),
}

/// Writes the bundle of a person. Gives the manifest and its SHA-256.
///
/// # Errors
/// As resolving the person; [`ChangeError::Failed`] where it cannot be written.
pub async fn bundle(
    store: &Store,
    given: &str,
    aliases: &[String],
    mut sink: Sink<'_>,
) -> Result<(Value, String), ChangeError> {
    let mut snapshot = store.snapshot().await?;
    let subject = subject::resolve(&mut snapshot, given, aliases).await?;
    let relations = snapshot.relations().await?;
    let mut graph = Graph::new(store, &store.recognised().erasure.rules, relations, true);
    graph.close(&mut snapshot, &subject.ids).await?;
    let left_out = left_out(&snapshot, &graph);
    drop(snapshot);
    if let Sink::Folder(folder) = &sink {
        create(folder)?;
    }
    let mut tables = Vec::new();
    for (table, taken) in graph.tables.iter().filter(|(_, t)| !t.is_empty()) {
        let rows = taken.going(table.clone());
        let mut hasher = Sha256::new();
        let file = format!("{}.jsonl", table.title().replace(['/', '\\'], "_"));
        let mut out = match &sink {
            Sink::Folder(folder) => Some(PrivateFile::begin(&folder.join(&file)).map_err(|e| failed(&e))?),
            Sink::Stream(_) => None,
        };
        let mut count = 0;
        // What PostgreSQL has is read as text.
        let numbers = match store.engine() {
            Engine::Sqlite => None,
            Engine::Postgres => Some(store.shapes().shape(table).await?),
        };
        let (mut from, mut stride) = (0, FEWEST);
        while from < taken.len() {
            let range = from..taken.len().min(from + stride);
            from = range.end;
            let images = store.shapes().images(&rows.stored(range)).await?;
            let bytes: usize = images.iter().map(Image::size).sum();
            stride = if bytes * 2 > TOGETHER { FEWEST } else { MOST.min(stride * 2) };
            for image in images {
                let mut row = row_json(image, numbers.as_deref());
                if out.is_none() {
                    row.insert("table".to_owned(), Value::from(table.title()));
                }
                let written = match (&mut out, &mut sink) {
                    (Some(file), _) => put(&Value::Object(row), &mut hasher, file),
                    (None, Sink::Stream(stream)) => put(&Value::Object(row), &mut hasher, *stream),
                    (None, Sink::Folder(_)) => Ok(()),
                };
                written.map_err(|e| failed(&e))?;
                count += 1;
            }
        }
        graph.check()?;
        if let Some(file) = out {
            file.create().map_err(|e| failed(&e))?;
        }
        tables.push(
            json!({ "table": table.title(), "file": file, "rows": count, "sha256": hex::encode(hasher.finalize()) }),
        );
    }
    drop(graph);
    let mut kinds: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    subject.handles.iter().for_each(|h| kinds.entry(&h.kind).or_default().push(&h.value));
    let manifest = json!({
        "format": "mnemoscope subject bundle 1", "subject": subject.ids, "handles": kinds, "made_at": now(),
        "layouts": store.recognised().layouts.iter().map(|l| l.name.clone()).collect::<Vec<_>>(), "tables": tables,
        "left_out": left_out,
    });
    let hash = digest_of(&manifest);
    match &mut sink {
        Sink::Folder(folder) => {
            private_file::create(&folder.join("manifest.json"), canonical(&manifest).as_bytes())
                .map_err(|e| failed(&e))?;
        }
        Sink::Stream(stream) => {
            let end = writeln!(stream, "{{\"manifest\":{manifest},\"manifest_sha256\":{}}}", Value::from(&*hash));
            end.and_then(|()| stream.flush()).map_err(|e| failed(&e))?;
        }
    }
    Ok((manifest, hash))
}

/// Tables that may hold more of the person: what our role may not read, and what no layout speaks of.
fn left_out(snapshot: &Snapshot<'_>, graph: &Graph) -> Vec<Value> {
    let relations = &graph.relations;
    let may_hold = |(table, _): &&(TableName, &str)| disclose::may_be_personal(snapshot, table);
    let unread = relations.unread.iter().chain(&relations.elsewhere).filter(may_hold);
    let unread = unread.map(|(table, reason)| json!({ "table": table.title(), "unread": true, "reason": reason }));
    let goes: Vec<String> =
        graph.tables.iter().filter(|(_, taken)| !taken.is_empty()).map(|(t, _)| t.title()).collect();
    let strange = disclose::strangers(snapshot, graph).into_iter().filter(|(table, _)| !goes.contains(table));
    let strange = strange.map(|(table, columns)| {
        let reason = format!("it is outside the layout and looks personal ({columns}): look there yourself");
        json!({ "table": table, "unread": false, "reason": reason })
    });
    unread.chain(strange).collect()
}

fn failed(error: &io::Error) -> ChangeError {
    ChangeError::Failed(format!("the bundle could not be written: {error}"))
}

/// A new folder that nobody else reads; one that holds something is left alone.
fn create(folder: &Path) -> Result<(), ChangeError> {
    let holds = std::fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_some());
    if holds {
        return Err(ChangeError::Usage(format!(
            "{} holds something: name a new folder for the bundle",
            folder.display()
        )));
    }
    private_file::folder(folder).map_err(|e| failed(&e))
}

/// Writes a row as a line, and into the hash of its file.
fn put(row: &Value, hasher: &mut Sha256, out: &mut dyn Write) -> io::Result<()> {
    let mut line = HashedLine(out, hasher);
    serde_json::to_writer(&mut line, row)?;
    line.write_all(b"\n")
}

/// A line on its way to a file: its text is nowhere whole, since a value may be long.
struct HashedLine<'a>(&'a mut dyn Write, &'a mut Sha256);

impl Write for HashedLine<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.0.write(bytes)?;
        self.1.update(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// A stored row with its own columns. Numbers and truth values that were read as text are those of the `shape`. Bytes that are no text are hexadecimal digits, with the text that is packed in them.
fn row_json(image: Image, shape: Option<&TableShape>) -> Map<String, Value> {
    let number = |name: &str, text: &str| {
        shape?.column(name).filter(|column| column.counts())?;
        serde_json::from_str::<Value>(text)
            .ok()
            .filter(|value| serde_json::to_string(value).is_ok_and(|again| again == text))
    };
    let value = |name: &str, raw: FetchedValue| match raw {
        FetchedValue::Null => Value::Null,
        FetchedValue::Integer(i) => Value::from(i),
        FetchedValue::Real(x) => Value::from(x),
        // PostgreSQL's bytes.
        FetchedValue::Text(text) => match text.strip_prefix("\\x").and_then(|digits| hex::decode(digits).ok()) {
            Some(bytes) => of_bytes(bytes),
            None => number(name, &text).unwrap_or(Value::String(text)),
        },
        FetchedValue::Bytes(bytes) | FetchedValue::BadText(bytes) => of_bytes(bytes),
    };
    let columns = image.0.into_iter().filter(|(name, _)| !is_row_number(name));
    columns.map(|(name, raw)| (name.to_string(), value(&name, raw))).collect()
}

fn of_bytes(bytes: Vec<u8>) -> Value {
    let bytes = match String::from_utf8(bytes) {
        Ok(text) => return Value::from(text),
        Err(none) => none.into_bytes(),
    };
    let mut shown = json!({ "hex": hex::encode(&bytes) });
    if let Some(text) = readable(&FetchedValue::Bytes(bytes)) {
        shown["text"] = Value::from(text);
    }
    shown
}
