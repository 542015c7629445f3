//! Imports trajectories, case banks and our own export. Ids are computed from the contents, so that importing twice
//! changes nothing; text is checked for secrets and suspicious wording.

mod collisions;
mod export;
mod memento;
mod references;
mod tau_bench;

pub use references::ImportProgress;
pub use tau_bench::{ListError, trajectory_lines};

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::ChangeError;
use super::batch::{self, ImportTally, NewRow};
use super::draft::{Draft, KEPT};
use super::feedback::addable;
use super::operation::ImportFormat;
use super::plan::{ChangeDanger, Plan, json_length};
use crate::layout::BoundSource;
use crate::memory::prune::copies::message_of;
use crate::memory::text_check::{self, TextOddities};
use crate::memory::{Entity, Row};
use crate::memory::{agreeing, thousands};
use crate::store::Store;
use crate::store::encode::plain_column;

/// Order of insertion: referenced rows first.
pub const ORDER: [Entity; 14] = [
    Entity::Agent,
    Entity::Subject,
    Entity::Profile,
    Entity::Episode,
    Entity::Segment,
    Entity::CanvasEvent,
    Entity::Feedback,
    Entity::UtilityEvent,
    Entity::Memory,
    Entity::MemoryLink,
    Entity::Case,
    Entity::Policy,
    Entity::WorkflowEvent,
    Entity::Access,
];

/// Bytes of memory for one plan while it is made and applied.
const HELD: usize = 84 << 20;

/// Copies of a row, in its several forms, while it is planned and written.
const COPIES: usize = 2;

/// Bytes per row in addition to its values: its key in several lists, and facts about its table.
const ROW: usize = 600;

/// Most further copies of one that the plan and the trail show.
const COPIES_SHOWN: usize = 8;

/// Replaces a line that is not UTF-8; never valid JSON.
const NOT_TEXT: &str = "\0not UTF-8\0";

/// Converts a line's bytes to text. One that is not UTF-8 becomes a line that is reported as bad at its position.
pub fn line_of(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap_or_else(|error| {
        let end = if error.as_bytes().ends_with(b"\n") { "\n" } else { "" };
        format!("{NOT_TEXT}{end}")
    })
}

/// Checks that a line was UTF-8.
fn check_text(line: &str) -> Result<(), String> {
    if line == NOT_TEXT { Err("it is not UTF-8 text".to_owned()) } else { Ok(()) }
}

/// Contents of an imported file.
#[derive(Debug, Default)]
pub(super) struct ImportContents {
    rows: Vec<NewRow>,
    /// Position of the reader: line or place, from 1.
    place: usize,
    /// Unreadable parts: line or place, from 1, and the reason.
    bad: Vec<(usize, String)>,
    /// Names of the rows that the database cannot store, by their place.
    unfit: BTreeMap<usize, String>,
    /// Facts to know about the import, for users.
    notes: Vec<String>,
    found: TextOddities,
}

impl ImportContents {
    fn add(&mut self, row: NewRow) {
        self.rows.push(NewRow { place: self.place, ..row });
    }

    /// Notes that the current line or place cannot be read, and why.
    fn is_bad(&mut self, why: String) {
        self.bad.push((self.place, why));
    }

    /// A text, without secrets.
    fn text(&mut self, text: &str) -> String {
        let (clean, found) = text_check::check(text);
        self.found.add(&found);
        clean
    }

    /// A value, without secrets in its texts.
    fn value(&mut self, value: &Value) -> Value {
        text_check::check_value(value, &mut self.found)
    }
}

/// Plans the import of a file's lines; for τ-bench files those of [`trajectory_lines`]. `name` is the file's name,
/// which names the agent if the file does not.
///
/// # Errors
/// [`ChangeError::Usage`] naming the first bad line, unless they are to be skipped.
pub async fn plan(
    store: &Store,
    format: ImportFormat,
    name: &str,
    text: &str,
    skip_bad: bool,
) -> Result<Plan, ChangeError> {
    let part = ImportPart { text, first_line: 1, progress: &ImportProgress::default(), is_last: true };
    plan_part(store, format, name, part, skip_bad).await
}

/// A part of a file that is imported separately.
#[derive(Debug, Clone, Copy)]
pub struct ImportPart<'a> {
    /// Text of the part: whole lines.
    pub text: &'a str,
    /// Number in the file of the part's first line, from 1.
    pub first_line: usize,
    /// Facts that the earlier parts found out.
    pub progress: &'a ImportProgress,
    /// Whether it is the last part.
    pub is_last: bool,
}

/// Size of the lines in one plan. A row costs its columns even if its line is short, and a line of another format may
/// become many rows.
#[derive(Debug)]
pub struct PartSize {
    format: ImportFormat,
    lines: usize,
    rows: usize,
    held: usize,
}

impl PartSize {
    /// The size of no lines.
    pub fn new(format: ImportFormat) -> Self {
        PartSize { format, lines: 0, rows: 0, held: 0 }
    }

    /// Adds a line, unless it does not fit.
    pub fn takes(&mut self, line: &str) -> bool {
        let rows: Vec<(usize, usize)> = match self.format {
            ImportFormat::Jsonl => {
                vec![(line.len(), export::entity(line).map_or(0, |entity| entity.columns().len()))]
            }
            ImportFormat::TauBench => weights(&tau_bench::read("", line, 1)),
            ImportFormat::Memento => weights(&memento::read("", line, 1)),
        };
        let kept = KEPT.saturating_sub(self.rows);
        let shown: usize = rows.iter().take(kept).map(|(length, _)| COPIES_SHOWN * length).sum();
        let held = |(length, columns): &(usize, usize)| {
            ROW + COPIES * (length + size_of::<NewRow>() + columns * size_of::<Value>())
        };
        let more = line.len() + shown + rows.iter().map(held).sum::<usize>();
        let fits = self.lines == 0 || self.held + more <= HELD;
        if fits {
            (self.lines, self.rows, self.held) = (self.lines + 1, self.rows + rows.len(), self.held + more);
        }
        fits
    }
}

/// Bytes and columns of each row.
fn weights(contents: &ImportContents) -> Vec<(usize, usize)> {
    let rows = contents.rows.iter().map(|new| &new.row);
    rows.map(|row| (json_length(&row.to_json()), row.entity.columns().len())).collect()
}

/// Plans the import of a part of a file, as [`plan`] does that of a whole one.
///
/// # Errors
/// As [`plan`].
pub async fn plan_part(
    store: &Store,
    format: ImportFormat,
    name: &str,
    part: ImportPart<'_>,
    skip_bad: bool,
) -> Result<Plan, ChangeError> {
    let text = part.text;
    let mut draft = Draft::new(store, "import", ChangeDanger::Guarded).await?;
    let mut contents = match format {
        ImportFormat::TauBench => tau_bench::read(name, text, part.first_line),
        ImportFormat::Memento => memento::read(name, text, part.first_line),
        ImportFormat::Jsonl => export::read(store, text, part.first_line),
    };
    if format != ImportFormat::Jsonl {
        holds_all(store, &contents.rows)?;
    }
    let loose = known_profiles(store, &mut contents.rows, part.progress).await?;
    // What is already there stays as it is, whether or not a new row could be like it. Ids of foreign files are made of their
    // contents: nothing else has them.
    let known = batch::take_known(store, &mut contents.rows, format == ImportFormat::Jsonl).await?;
    let mut present = known.present;
    collisions::leave_out(store, &mut contents, part.progress, known.colliding, &loose).await?;
    unfit(store, &mut contents).await?;
    references::settle(store, &mut contents, part.progress, part.is_last).await?;
    if let Some((place, why)) = contents.bad.first() {
        if !skip_bad {
            return Err(ChangeError::Usage(format!(
                "{name}: {} {place}: {why} ({} bad in all; --skip-bad leaves them out)",
                format.unit(),
                contents.bad.len()
            )));
        }
        let first = || contents.bad.iter().take(20).map(|(place, _)| place);
        let places: Vec<String> = first().map(usize::to_string).collect();
        let names: Vec<&str> = first().filter_map(|place| contents.unfit.get(place)).map(String::as_str).collect();
        let named = if names.is_empty() { String::new() } else { format!(" ({})", names.join(", ")) };
        draft.disclosures.push(agreeing(
            contents.bad.len(),
            &format!("{{#}} {{bad one is|bad ones are}} left out, at {}{named}", places.join(", ")),
        ));
    }
    part.progress.once(&mut contents.rows);
    draft.disclosures.append(&mut contents.notes);
    draft.disclosures.extend(contents.found.sentences());
    let mut by_entity: BTreeMap<Entity, Vec<NewRow>> = BTreeMap::new();
    for row in contents.rows {
        by_entity.entry(row.row.entity).or_default().push(row);
    }
    for entity in &ORDER {
        let (rows, there) = (by_entity.remove(entity), present.remove(entity));
        if rows.is_none() && there.is_none() {
            continue;
        }
        let mut tally = ImportTally { present: there.unwrap_or_default(), ..ImportTally::default() };
        for (source, rows) in batch::by_place(store, rows.unwrap_or_default())? {
            let ImportTally { added, present } = batch::add_to(&mut draft, source, rows, None).await?;
            tally.added += added;
            tally.present += present;
        }
        draft.effects.push(agreeing(
            tally.added,
            &format!(
                "{{#}} {} {{row is new|rows are new}}, {} already exist",
                entity.title(),
                thousands(tally.present)
            ),
        ));
    }
    draft.facts.insert("format".to_owned(), Value::from(format!("{format:?}").to_lowercase()));
    Ok(draft.seal())
}

/// Counts rows that the database cannot store as bad, and leaves out all rows at the same position.
async fn unfit(store: &Store, contents: &mut ImportContents) -> Result<(), ChangeError> {
    let entities: BTreeSet<Entity> = contents.rows.iter().map(|r| r.row.entity).collect();
    for entity in entities {
        let rows: Vec<&NewRow> = contents.rows.iter().filter(|r| r.row.entity == entity).collect();
        let unfit = batch::unfit(store, &rows).await?;
        let places: BTreeSet<usize> = unfit.iter().map(|(place, _)| *place).collect();
        let named = rows.iter().filter(|new| places.contains(&new.place));
        contents.unfit.extend(named.map(|new| (new.place, format!("{} {}", entity.title(), new.row.id()))));
        contents.bad.extend(unfit);
    }
    contents.bad.sort();
    contents.bad.dedup_by_key(|(place, _)| *place);
    let places: BTreeSet<usize> = contents.bad.iter().map(|(place, _)| *place).collect();
    contents.rows.retain(|r| !places.contains(&r.place));
    Ok(())
}

/// Refuses a database without tables for the contents of foreign files, before anything is read.
fn holds_all(store: &Store, rows: &[NewRow]) -> Result<(), ChangeError> {
    let entities: BTreeSet<Entity> = rows.iter().map(|r| r.row.entity).collect();
    // Their ids are texts, which a table with UUID ids cannot store.
    let named = |entity: &Entity, source: &BoundSource| {
        let ids = plain_column(source, "id").map(|(_, way)| way);
        rows.iter()
            .filter(|r| r.row.entity == *entity)
            .all(|r| ids.is_none_or(|way| store.encoder().can_be(way, r.row.id())))
    };
    let placed = |entity: &Entity| {
        batch::target(store, *entity).and_then(|source| addable(source).map(|_| named(entity, source))).unwrap_or(false)
    };
    match entities.iter().find(|e| !placed(e)) {
        None => Ok(()),
        Some(entity) => Err(ChangeError::Refused(format!(
            "{} has no place for a new {}: import such files into a database of the native layout (`mnemoscope demo \
             PATH --episodes 1 --no-console` makes one), or next to a palace",
            store.location(),
            entity.title()
        ))),
    }
}

/// Redirects cases to the existing banks of the same users and agents, whose rows are left out. Gives the ids of banks that cases
/// name and the file does not bring.
async fn known_profiles(
    store: &Store,
    rows: &mut Vec<NewRow>,
    progress: &ImportProgress,
) -> Result<BTreeSet<String>, ChangeError> {
    let of_file = |new: &&NewRow| new.row.entity == Entity::Profile;
    let users: BTreeSet<&str> = rows.iter().filter(of_file).filter_map(|new| new.row.text("user_id")).collect();
    let stored = store.related(Entity::Profile, "user_id", &users.into_iter().collect::<Vec<_>>()).await?;
    let mut banks = progress.banks();
    for new in rows.iter().filter(of_file) {
        let of_owner = |bank: &&Row| {
            ["user_id", "agent_id"].iter().all(|c| new.row.text(c).is_some() && bank.get(c) == new.row.get(c))
        };
        let id = new.row.id();
        let mut known = stored.iter().filter(of_owner).map(Row::id);
        let first = known.clone().next().unwrap_or(id);
        let bank = known.find(|known| *known == id).unwrap_or(first);
        banks.insert(id.to_owned(), bank.to_owned());
    }
    rows.retain(|r| r.row.entity != Entity::Profile || banks.get(r.row.id()).is_none_or(|id| id == r.row.id()));
    let mut loose = BTreeSet::new();
    for new in rows.iter_mut().filter(|r| r.row.entity == Entity::Case) {
        let Some(named) = new.row.text("profile_id").map(str::to_owned) else { continue };
        match banks.get(&named) {
            Some(known) => new.row.set("profile_id", Value::from(known.clone())),
            None => _ = loose.insert(named),
        }
    }
    progress.add_banks(banks);
    Ok(loose)
}

/// The bank of a user and agent.
///
/// # Errors
/// The engine's refusal.
pub(super) async fn bank(store: &Store, user: Option<&str>, agent: Option<&str>) -> Result<Option<Row>, ChangeError> {
    let (Some(user), Some(agent)) = (user, agent) else { return Ok(None) };
    let banks = store.related(Entity::Profile, "user_id", &[user.to_owned()]).await?;
    Ok(banks.into_iter().find(|row| row.text("agent_id") == Some(agent)))
}

/// The first digits of a SHA-256 of texts.
fn digest(parts: &[&str]) -> String {
    let mut hasher = Sha256::new();
    for part in parts {
        hasher.update((part.len() as u64).to_be_bytes());
        hasher.update(part.as_bytes());
    }
    hex::encode(hasher.finalize())[..20].to_owned()
}

/// Hash that identifies a case: SHA-256 of its message, in hexadecimal.
pub fn message_hash(message: &str) -> String {
    hex::encode(Sha256::digest(message.as_bytes()))
}

/// The hash of a prompt's message; without a message, that of its JSON, whatever the order of the keys.
pub fn prompt_hash(prompt: &Value) -> String {
    let of_json = || {
        let mut whole = prompt.clone();
        whole.sort_all_objects();
        message_hash(&whole.to_string())
    };
    message_of(prompt).map_or_else(of_json, message_hash)
}

/// The bank for a user's and agent's imported cases.
fn profile(user: &str, agent: &str) -> NewRow {
    let id = format!("bank-{}", digest(&[user, agent]));
    let values = [("id", Value::from(id)), ("user_id", Value::from(user)), ("agent_id", Value::from(agent))];
    NewRow::new(Entity::Profile, values).at_once("created_at").at_once("updated_at")
}

/// The agent for a file's rows: the file name without its extension.
fn agent_name(name: &str) -> String {
    let base = name.rsplit(['/', '\\']).next().unwrap_or(name);
    let stem = base.rsplit_once('.').map_or(base, |(stem, _)| stem);
    if stem.is_empty() || stem == "-" { "imported".to_owned() } else { stem.to_owned() }
}
