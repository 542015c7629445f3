//! Exports everything stored about a person, for that person: one JSON line per row, by table, and a manifest with
//! hashes.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::File;
use std::io::{self, Seek as _, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

use super::disclose;
use super::graph::Graph;
use super::plan::PurgeOptions;
use super::sealed::{SealedReader, SealedWriter};
use super::shared;
use super::staying::Staying;
use super::subject;
use super::taken::GoingRows;
use crate::change::plan::{canonical, digest_of};
use crate::change::suppress::Key;
use crate::change::{ChangeError, now};
use crate::ground::private_file::{self, PrivateFile};
use crate::ground::scratch_file::scratch_file;
use crate::ground::unfinished::UnfinishedPath;
use crate::layout::{BoundSource, Engine};
use crate::memory::{Row, UnreadRows};
use crate::store::Store;
use crate::store::container::readable;
use crate::store::encode::plain_column;
use crate::store::fetched::{FetchedValue, as_text};
use crate::store::foreign_keys::ForeignKey;
use crate::store::row_number::is_row_number;
use crate::store::shape::TableShape;
use crate::store::snapshot::{Snapshot, WantedRows};
use crate::store::stored::{Image, TableName};

/// Rows in the first read. Later reads take more, as long as they need few bytes.
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

/// Writes the bundle of a person, from one snapshot of the database, with the account, with the rows that an erasure
/// with the same options deletes for what they name in other databases, and with the person's part of those that it keeps.
/// Returns the manifest and its SHA-256.
///
/// # Errors
/// As resolving the person; [`ChangeError::Failed`] if the bundle cannot be written.
pub async fn bundle(
    store: &Store,
    given: &str,
    options: &PurgeOptions,
    mut sink: Sink<'_>,
) -> Result<(Value, String), ChangeError> {
    let mut snapshot = store.snapshot().await?;
    let relations = snapshot.relations().await?;
    let mut graph = Graph::new(store, &store.recognised().erasure.rules, relations, true);
    graph.take_carried(&mut snapshot, &options.carried).await?;
    let subject = match subject::resolve(&mut snapshot, given, &options.aliases).await {
        Err(ChangeError::NotFound(_)) if graph.going() > 0 => subject::by_words(given, &options.aliases)?,
        found => found?,
    };
    graph.close(&mut snapshot, &subject.ids).await?;
    let staying = Staying::find(&mut snapshot, &graph, &subject.ids).await?;
    let mut left_out = left_out(&snapshot, &graph, &staying);
    let of_several = shared::told(&mut snapshot, &graph, &subject.ids).await?;
    left_out.extend(of_several.into_iter().map(|(table, words)| entry(&table.title(), false, &words)));
    let mut folder = match &sink {
        Sink::Folder(folder) => Some(BundleFolder::begin(folder)?),
        Sink::Stream(_) => None,
    };
    let mut held = match &sink {
        Sink::Folder(_) => None,
        Sink::Stream(_) => Some(HeldLines::begin().map_err(|e| failed(&e))?),
    };
    let mut tables = Vec::new();
    for table in tables_of(&graph, &staying) {
        let shape = snapshot.shape(&table).await?;
        let mut lines = TableLines::begin(&table, &shape, folder.as_ref(), held.as_mut())?;
        if let Some(taken) = graph.taken(&table) {
            write_rows(&mut snapshot, &taken.going(table.clone()), &mut lines, |_| false).await?;
        }
        write_keyless(&mut snapshot, &graph, &mut lines).await?;
        if let Some(stay) = staying.tables.get(&table) {
            let reduce = |image: &mut Image| stay.reduce(image, &subject.ids);
            write_rows(&mut snapshot, &stay.rows, &mut lines, reduce).await?;
        }
        graph.check()?;
        tables.extend(lines.finish(folder.as_mut())?);
    }
    drop(snapshot);
    drop(staying);
    drop(graph);
    let mut kinds: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    subject.handles.iter().for_each(|h| kinds.entry(&h.kind).or_default().push(&h.value));
    let mut manifest = json!({
        "format": "mnemoscope subject bundle 1", "subject": subject.ids, "handles": kinds, "made_at": now(),
        "layouts": store.recognised().layouts.iter().map(|l| l.name.clone()).collect::<Vec<_>>(), "tables": tables,
        "left_out": left_out,
    });
    let shared = disclose::namesakes(store, &subject.ids).await?;
    if !shared.is_empty() {
        manifest["namesakes"] = json!(shared);
    }
    if let Some(tables) = store.unread().filter(|tables| !tables.is_empty()) {
        manifest["damaged"] = json!(tables.iter().map(UnreadRows::told).collect::<Vec<_>>());
    }
    let hash = digest_of(&manifest);
    if let Some(folder) = folder {
        folder.finish(&canonical(&manifest))?;
    }
    if let (Some(held), Sink::Stream(stream)) = (held, &mut sink) {
        let end = format!("{{\"manifest\":{manifest},\"manifest_sha256\":{}}}", Value::from(&*hash));
        let written =
            held.write_to(&mut **stream).and_then(|()| writeln!(stream, "{end}")).and_then(|()| stream.flush());
        written.map_err(|e| failed(&e))?;
    }
    Ok((manifest, hash))
}

/// The tables with rows for the bundle; those whose rows have no key may turn out to have none.
fn tables_of(graph: &Graph, staying: &Staying) -> BTreeSet<TableName> {
    let going = graph.tables.iter().filter(|(_, taken)| !taken.is_empty()).map(|(table, _)| table);
    let leads = |key: &&ForeignKey| graph.taken(&key.to).is_some_and(|taken| !taken.is_empty());
    let carried = graph.relations.carrying().filter(leads).map(|key| &key.from);
    going.chain(carried).chain(graph.owned.keys()).chain(staying.tables.keys()).cloned().collect()
}

/// Writes rows by their keys. `reduce` reduces a row to the person's part, and returns whether it did.
async fn write_rows(
    snapshot: &mut Snapshot<'_>,
    rows: &GoingRows,
    lines: &mut TableLines<'_>,
    reduce: impl Fn(&mut Image) -> bool + Send,
) -> Result<(), ChangeError> {
    let (mut from, mut stride) = (0, FEWEST);
    while from < rows.len() {
        let range = from..rows.len().min(from + stride);
        from = range.end;
        let images = snapshot.images(lines.shape, &rows.stored(range)).await?;
        let bytes: usize = images.iter().map(Image::size).sum();
        stride = if bytes * 2 > TOGETHER { FEWEST } else { MOST.min(stride * 2) };
        let shown = shown(snapshot.store, lines.table, &images).await?;
        for (mut image, shown) in images.into_iter().zip(shown) {
            let shown = if reduce(&mut image) { None } else { Some(shown) };
            lines.add(image, shown).map_err(|e| failed(&e))?;
        }
    }
    Ok(())
}

/// Writes the rows of a table without a key that are deleted for their owner, or by cascade.
async fn write_keyless(
    snapshot: &mut Snapshot<'_>,
    graph: &Graph,
    lines: &mut TableLines<'_>,
) -> Result<(), ChangeError> {
    let (table, shape) = (lines.table, lines.shape);
    if graph.relations.keys.get(table).is_some_and(|key| !key.is_empty()) {
        return Ok(());
    }
    let columns: Vec<String> = shape.columns.iter().map(|column| column.name.clone()).collect();
    let names: Vec<Arc<str>> = columns.iter().map(|name| name.as_str().into()).collect();
    let mut written = Ok(());
    let mut take = |row: &[FetchedValue]| {
        if written.is_ok() {
            let image = Image(names.iter().cloned().zip(row.iter().cloned()).collect());
            written = lines.add(image, Some(Map::new()));
        }
    };
    if let Some(owned) = graph.owned.get(table) {
        let wanted = WantedRows { table, columns: &columns, when: None, subject: &[] };
        snapshot.each_of_keys(wanted, &owned.rows.by, &owned.rows.keys, |row| take(&row)).await?;
    }
    graph.each_carried(snapshot, table, &columns, take).await?;
    written.map_err(|e| failed(&e))
}

/// Values that the layouts show of each row from the tables joined to its own, such as the words that numbers in it stand for.
async fn shown(store: &Store, table: &TableName, images: &[Image]) -> Result<Vec<Map<String, Value>>, ChangeError> {
    let mut all = vec![Map::new(); images.len()];
    let is_joined = |source: &&BoundSource| source.from.is_join() && TableName::of(&source.table) == *table;
    for source in store.recognised().sources.iter().filter(is_joined) {
        let Some((id, _)) = plain_column(source, "id") else { continue };
        let id_of = |image: &Image| image.get(id).and_then(as_text);
        let ids: Vec<String> = images.iter().filter_map(id_of).collect();
        let rows = store.related_in(source, "id", &ids, &[], None).await?;
        let rows: HashMap<&str, &Row> = rows.iter().map(|row| (row.id(), row)).collect();
        let joined: Vec<&str> = source.columns_joined().collect();
        for (image, shown) in images.iter().zip(&mut all) {
            let Some(row) = id_of(image).and_then(|id| rows.get(&*id).copied()) else { continue };
            let values = joined.iter().map(|name| (*name, row.get(name))).filter(|(_, value)| !value.is_null());
            shown.extend(values.map(|(name, value)| (name.to_owned(), value.clone())));
        }
    }
    Ok(all)
}

/// Tables that may hold more about the person: those that our role may not read, those outside the layout, and those
/// with rows that stay and have no key.
fn left_out(snapshot: &Snapshot<'_>, graph: &Graph, staying: &Staying) -> Vec<Value> {
    let relations = &graph.relations;
    let may_hold = |(table, _): &&(TableName, &str)| disclose::may_be_personal(snapshot, table);
    let unread = relations.unread.iter().chain(&relations.elsewhere).filter(may_hold);
    let unread = unread.map(|(table, reason)| entry(&table.title(), true, reason));
    let held: Vec<String> = tables_of(graph, staying).iter().map(TableName::title).collect();
    let strange = disclose::strangers(snapshot, graph).into_iter().filter(|(table, _)| !held.contains(table));
    let strange = strange.map(|(table, columns)| {
        let reason = format!("it is outside the layout and looks personal ({columns}): check it yourself");
        entry(&table, false, &reason)
    });
    let keyless = staying.keyless.iter().map(|table| {
        let reason = "rows of it name the person, and it has no key that identifies them: check it yourself";
        entry(&table.title(), false, reason)
    });
    unread.chain(strange).chain(keyless).collect()
}

/// An entry of what a bundle leaves out.
fn entry(table: &str, is_unread: bool, reason: &str) -> Value {
    json!({ "table": table, "unread": is_unread, "reason": reason })
}

fn failed(error: &io::Error) -> ChangeError {
    ChangeError::Failed(format!("the bundle could not be written: {error}"))
}

/// An unfinished bundle in a folder that only its owner can read. It is removed if dropped before it is finished.
struct BundleFolder {
    folder: PathBuf,
    /// The folder, if it was created here.
    made: Option<UnfinishedPath>,
    files: Vec<UnfinishedPath>,
}

impl BundleFolder {
    /// Creates the folder; fails if it exists and is not empty.
    fn begin(folder: &Path) -> Result<Self, ChangeError> {
        let holds = std::fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_some());
        if holds {
            return Err(ChangeError::Usage(format!(
                "{} is not empty: name a new folder for the bundle",
                folder.display()
            )));
        }
        let made = folder.symlink_metadata().is_err().then(|| UnfinishedPath::new(folder));
        private_file::folder(folder).map_err(|e| failed(&e))?;
        Ok(BundleFolder { folder: folder.to_owned(), made, files: Vec::new() })
    }

    fn file(&self, name: &str) -> Result<PrivateFile, ChangeError> {
        PrivateFile::begin(&self.folder.join(name)).map_err(|e| failed(&e))
    }

    /// Gives a finished file its name.
    fn keep(&mut self, name: &str, file: PrivateFile) -> Result<(), ChangeError> {
        let path = UnfinishedPath::new(&self.folder.join(name));
        file.create().map_err(|e| failed(&e))?;
        self.files.push(path);
        Ok(())
    }

    /// Writes the manifest, which completes the bundle.
    fn finish(mut self, manifest: &str) -> Result<(), ChangeError> {
        let mut file = self.file("manifest.json")?;
        file.write_all(manifest.as_bytes()).map_err(|e| failed(&e))?;
        self.keep("manifest.json", file)?;
        (self.made, self.files) = (None, Vec::new());
        Ok(())
    }
}

impl Drop for BundleFolder {
    fn drop(&mut self) {
        for file in &self.files {
            let _ = std::fs::remove_file(file.path());
        }
        if let Some(made) = &self.made {
            let _ = std::fs::remove_dir(made.path());
        }
    }
}

/// Buffers lines of a bundle until all are read, so that a slow reader of the stream does not keep the database
/// waiting. On disk they are unreadable.
struct HeldLines {
    lines: SealedWriter<File>,
    key: Key,
}

impl HeldLines {
    fn begin() -> io::Result<Self> {
        let key = rand::random();
        Ok(HeldLines { lines: SealedWriter::begin(scratch_file()?, &key)?, key })
    }

    fn write_to(self, stream: &mut (dyn Write + Send)) -> io::Result<()> {
        let mut file = self.lines.finish()?;
        file.rewind()?;
        io::copy(&mut SealedReader::begin(file, &self.key)?, stream).map(drop)
    }
}

/// The lines of a table: in a file of the folder, or among those of the other tables.
struct TableLines<'l> {
    table: &'l TableName,
    shape: &'l TableShape,
    name: String,
    file: Option<PrivateFile>,
    held: Option<&'l mut HeldLines>,
    hasher: Sha256,
    /// Number of rows, and of those that are only the person's part.
    rows: usize,
    parts: usize,
}

impl<'l> TableLines<'l> {
    fn begin(
        table: &'l TableName,
        shape: &'l TableShape,
        folder: Option<&BundleFolder>,
        held: Option<&'l mut HeldLines>,
    ) -> Result<Self, ChangeError> {
        let name = format!("{}.jsonl", table.title().replace(['/', '\\'], "_"));
        let file = folder.map(|folder| folder.file(&name)).transpose()?;
        Ok(TableLines { table, shape, name, file, held, hasher: Sha256::new(), rows: 0, parts: 0 })
    }

    /// Adds a row with the values shown of joined tables; `None` if it is only the person's part of the row.
    fn add(&mut self, image: Image, shown: Option<Map<String, Value>>) -> io::Result<()> {
        // PostgreSQL values are read as text.
        let numbers = (self.shape.engine == Engine::Postgres).then_some(self.shape);
        let mut row = row_json(image, numbers);
        self.rows += 1;
        self.parts += usize::from(shown.is_none());
        if let Some(shown) = shown.filter(|shown| !shown.is_empty()) {
            row.entry("shown").or_insert(Value::Object(shown));
        }
        if self.held.is_some() {
            row.insert("table".to_owned(), Value::from(self.table.title()));
        }
        match (&mut self.file, &mut self.held) {
            (Some(file), _) => put(&Value::Object(row), &mut self.hasher, file),
            (None, Some(held)) => put(&Value::Object(row), &mut self.hasher, &mut held.lines),
            (None, None) => Ok(()),
        }
    }

    /// Finishes the lines. Returns their entry of the manifest; `None` if there are none.
    fn finish(self, folder: Option<&mut BundleFolder>) -> Result<Option<Value>, ChangeError> {
        if self.rows == 0 {
            return Ok(None);
        }
        if let (Some(folder), Some(file)) = (folder, self.file) {
            folder.keep(&self.name, file)?;
        }
        let sha256 = hex::encode(self.hasher.finalize());
        let mut entry = json!({ "table": self.table.title(), "file": self.name, "rows": self.rows, "sha256": sha256 });
        if self.parts > 0 {
            entry["parts"] = Value::from(self.parts);
        }
        Ok(Some(entry))
    }
}

/// Writes a row as a line, and adds it to the hash of its file.
fn put(row: &Value, hasher: &mut Sha256, out: &mut dyn Write) -> io::Result<()> {
    let mut line = HashedLine(out, hasher);
    serde_json::to_writer(&mut line, row)?;
    line.write_all(b"\n")
}

/// Writes a line to a file and a hash piece by piece: a value may be long, and the line is never in memory as a whole.
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

/// A stored row as JSON. Numbers and booleans that were read as text are converted by `shape`. Bytes that are not text
/// become hexadecimal digits, with the text packed in them, if any.
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
        // PostgreSQL's text form of bytes.
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
