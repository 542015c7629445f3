//! `import`. Files are read line by line, lists of trajectories item by item. Lines that fit into one plan are one
//! change; a larger file is imported in parts, each a separate change, so that memory use is bounded.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, BufWriter, Read, Seek as _, Write as _};
use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::json;

use super::doing::{Doing, PLAN_BYTES, author, carry_out, mask_changes, standing};
use super::input::unread;
use super::part_totals::PartTotals;
use super::{CommandFailure, Session, output};
use crate::change::import::{self, ImportPart, ImportProgress, ListError, PartSize, line_of};
use crate::change::operation::ImportFormat;
use crate::change::{self, Operation, Plan, ShownPlan};
use crate::ground::input_file::{InputError, InputFile, drop_byte_order_mark};
use crate::ground::scratch_file::scratch_file;
use crate::ground::unfinished::UnfinishedChange;
use crate::memory::agreeing;
use crate::memory::nearest::unknown;
use crate::store::Store;

/// File to import, and options for reading it.
#[derive(Debug, Clone, Args)]
pub struct ImportArgs {
    /// tau-bench, memento or jsonl.
    #[arg(value_name = "FORMAT")]
    pub kind_of_file: String,
    /// The file; `-` for standard input.
    pub file: PathBuf,
    /// Skip what cannot be read or stored, and rows whose ids other rows have.
    #[arg(long)]
    pub skip_bad: bool,
    #[command(flatten)]
    pub doing: Doing,
}

/// Most bytes of lines in one change; fewer if their rows are much larger than their lines.
const PART_BYTES: usize = 16 << 20;

/// Most bytes of a stream.
const STREAM_BYTES: u64 = 1 << 30;

/// Whole lines of a file or a stream, a part at a time.
struct Parts<'f> {
    format: ImportFormat,
    path: &'f Path,
    reader: BufReader<Box<dyn Read + Send>>,
    /// The line that follows; empty at the end.
    line: String,
    next_line: usize,
}

impl<'f> Parts<'f> {
    fn open(format: ImportFormat, path: &'f Path) -> Result<Self, CommandFailure> {
        let reader: Box<dyn Read + Send> = if format == ImportFormat::TauBench {
            Box::new(trajectories(path)?)
        } else if path.is_file() {
            Box::new(InputFile::open(path, u64::MAX - 1).map_err(|error| unread(path, &error))?)
        } else {
            Box::new(whole_stream(path)?)
        };
        let mut parts = Parts { format, path, reader: BufReader::new(reader), line: String::new(), next_line: 1 };
        parts.read_line()?;
        Ok(parts)
    }

    fn is_over(&self) -> bool {
        self.line.is_empty()
    }

    /// The next lines, with the number of the first.
    fn next(&mut self) -> Result<(usize, String), CommandFailure> {
        let (first, mut size, mut text) = (self.next_line, PartSize::new(self.format), String::new());
        while !self.is_over() && text.len() < PART_BYTES && size.takes(&self.line) {
            text.push_str(&self.line);
            self.next_line += 1;
            self.read_line()?;
        }
        Ok((first, text))
    }

    fn read_line(&mut self) -> Result<(), CommandFailure> {
        let mut line = std::mem::take(&mut self.line).into_bytes();
        line.clear();
        let mut limited = (&mut self.reader).take(PLAN_BYTES + 1);
        limited.read_until(b'\n', &mut line).map_err(|error| unread(self.path, &error.into()))?;
        if line.len() as u64 > PLAN_BYTES {
            let (path, line, most) = (self.path.display(), self.next_line, PLAN_BYTES >> 20);
            let unit = self.format.unit();
            return Err(CommandFailure::usage(format!("{path}: {unit} {line} holds more than {most} MB")));
        }
        if self.next_line == 1 {
            drop_byte_order_mark(&mut line);
        }
        self.line = line_of(line);
        Ok(())
    }
}

/// Copies a stream to an unnamed file: a stream that breaks off or exceeds the limit is refused before anything is
/// imported.
fn whole_stream(path: &Path) -> Result<File, CommandFailure> {
    let copied = || {
        let mut copy = scratch_file()?;
        io::copy(&mut InputFile::open(path, STREAM_BYTES)?, &mut copy)?;
        copy.rewind()?;
        Ok(copy)
    };
    copied().map_err(|error: InputError| unread(path, &error))
}

/// Writes the trajectories of a list to an unnamed file, one per line: an invalid list is refused before anything is
/// imported.
fn trajectories(path: &Path) -> Result<File, CommandFailure> {
    let failed = |error: io::Error| unread(path, &error.into());
    let list = InputFile::open(path, STREAM_BYTES).map_err(|error| unread(path, &error))?;
    let mut lines = BufWriter::new(scratch_file().map_err(failed)?);
    match import::trajectory_lines(BufReader::new(list), PLAN_BYTES, &mut lines) {
        Err(ListError::System(error)) if error.kind() == io::ErrorKind::FileTooLarge => {
            let (path, most) = (path.display(), PLAN_BYTES >> 20);
            return Err(CommandFailure::usage(format!("{path}: a trajectory holds more than {most} MB")));
        }
        Err(ListError::System(error)) => return Err(failed(error)),
        Err(error @ ListError::NoList(_)) => {
            return Err(CommandFailure::usage(format!("{}: {error}", path.display())));
        }
        Ok(()) => {}
    }
    lines.flush().map_err(failed)?;
    let mut lines = lines.into_inner().map_err(|error| failed(error.into_error()))?;
    lines.rewind().map_err(failed)?;
    Ok(lines)
}

/// Parts of an import together.
#[derive(Default)]
struct Together {
    totals: PartTotals,
    first: Option<ShownPlan>,
}

impl Together {
    fn add(&mut self, plan: Plan) {
        self.totals.add(&plan);
        self.first.get_or_insert_with(|| plan.into_shown());
    }

    fn into_shown(self, is_applied: bool, is_whole: bool) -> Option<ShownPlan> {
        let parts = self.totals.parts;
        let effect = if is_whole {
            format!(
                "the file is imported in {parts} parts of up to about {} MB, each a separate change: if one fails, run \
                 the import again, and rows that exist are skipped",
                PART_BYTES >> 20
            )
        } else {
            agreeing(parts as u64, "{#} {part|parts} of the file {is|are} imported, and the rest is not")
        };
        let mut shown = self.first?;
        let mut add = |name: &str, value| shown.more.insert(name.to_owned(), value);
        add("parts", json!(parts));
        if is_applied {
            let status = match (is_whole, self.totals.counts.is_empty()) {
                (false, _) => "incomplete",
                (true, true) => "nothing to do",
                (true, false) => "applied",
            };
            add("status", json!(status));
            add("receipts", json!(self.totals.receipts));
        }
        (shown.effects, shown.disclosures) = (vec![effect], self.totals.disclosures());
        (shown.counts, shown.changes_total) = (self.totals.counts, self.totals.changes);
        Some(shown)
    }
}

pub async fn run(session: &Session<'_>, args: &ImportArgs) -> Result<(), CommandFailure> {
    let ImportArgs { kind_of_file, file, skip_bad, doing } = args;
    let Some(format) = ImportFormat::parse(kind_of_file) else {
        let known = ImportFormat::ALL.map(ImportFormat::word);
        return Err(CommandFailure::usage(unknown("format to import", kind_of_file, known)));
    };
    let name = file.display().to_string();
    let mut parts = Parts::open(format, file)?;
    let next = parts.next()?;
    let store = session.store().await?;
    if parts.is_over() {
        let operation = Operation::Import { format, name, text: next.1, skip_bad: *skip_bad };
        return carry_out(session, &store, doing, &operation).await;
    }
    if doing.plan_out.is_some() || doing.what_if {
        return Err(CommandFailure::usage(format!(
            "{name} is too large for one plan: it is imported in parts, which --plan-out and --what-if do not support"
        )));
    }
    let stays = "the imported parts stay; the same command imports the rest";
    let _unfinished = doing.apply.then(|| UnfinishedChange::new(stays));
    let mut together = Together::default();
    match put_all(session, &store, (format, &name), (&mut parts, next), args, &mut together).await {
        Err(failure) if !together.totals.receipts.is_empty() => {
            let failure = together.totals.stopped(failure, "After that, the same command imports the rest");
            let _ = output::shape(session.format(), &together.into_shown(true, false));
            Err(failure)
        }
        Err(failure) => Err(failure),
        Ok(()) => output::shape(session.format(), &together.into_shown(doing.apply, true)).map_err(|failure| {
            let list = store.invocation().line(["audit", "list"]);
            standing(failure, doing.apply.then(|| format!("the rows are in, and `{list}` shows the entries")))
        }),
    }
}

/// Puts in all parts, or plans them.
async fn put_all(
    session: &Session<'_>,
    store: &Store,
    named: (ImportFormat, &str),
    (parts, mut next): (&mut Parts<'_>, (usize, String)),
    args: &ImportArgs,
    together: &mut Together,
) -> Result<(), CommandFailure> {
    let progress = ImportProgress::default();
    loop {
        let part = ImportPart { text: &next.1, first_line: next.0, progress: &progress, is_last: parts.is_over() };
        put_in(session, store, named, part, args, together).await?;
        progress.advance();
        if parts.is_over() {
            return Ok(());
        }
        // Before the next one is read.
        drop(next);
        next = parts.next()?;
    }
}

async fn put_in(
    session: &Session<'_>,
    store: &Store,
    (format, name): (ImportFormat, &str),
    part: ImportPart<'_>,
    ImportArgs { skip_bad, doing, .. }: &ImportArgs,
    together: &mut Together,
) -> Result<(), CommandFailure> {
    let plan = || import::plan_part(store, format, name, part, *skip_bad);
    if !doing.apply {
        let mut planned = plan().await?;
        mask_changes(session, &mut planned.changes);
        together.add(planned);
        return Ok(());
    }
    let (mut planned, receipt) = change::plan_and_apply(store, &author(&doing.by), plan).await?;
    mask_changes(session, &mut planned.changes);
    together.add(planned);
    together.totals.add_receipt(&receipt, store).await;
    Ok(())
}
