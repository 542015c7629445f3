//! Identity of the person: from any handle to the person's ids, and from these to every known handle.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fmt::{self, Display, Formatter};
use std::ops::Deref;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use unicode_normalization::UnicodeNormalization as _;

use super::owners;
use crate::change::ChangeError;
use crate::layout::erase::{BoundRule, BoundValue, EraseAction};
use crate::memory::digest::wide_digest;
use crate::memory::json;
use crate::memory::mention::{binary_forms, folded, is_plain};
use crate::memory::name_words::is_word_in;
use crate::memory::nearest::nearest;
use crate::memory::{agreeing, thousands};
use crate::store::fetched::FetchedValue;
use crate::store::proof::spelling::forms;
use crate::store::snapshot::{HANDLES, HandlesWanted, Snapshot, WantedRows};
use crate::store::stored::TableName;

/// Least characters of a subject; in scripts that write a word as one character, each counts as two.
const LEAST: usize = 3;
/// Least letters of a name to search for.
const LEAST_OF_NAME: usize = 2;
/// Most bytes of a handle: longer values are not handles, and take too long to search for.
const LONGEST: usize = 1_000;
/// Most handles compared for near matches.
const NEAR: usize = 5_000;
/// Reason why it is uncertain whom a handle means.
const OTHERS_TOO: &str = "other people have it too";
/// Reason why texts are not searched for a handle.
const TOO_SHORT: &str = "too short to tell";
/// Most near matches shown.
const NEAR_SHOWN: usize = 8;

/// A string that very many handles share.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SharedWord(Arc<str>);

impl SharedWord {
    /// Creates the string, shared with another one if equal.
    fn with(word: &str, other: Option<&SharedWord>) -> Self {
        other.filter(|other| ***other == *word).cloned().unwrap_or_else(|| word.into())
    }
}

impl From<&str> for SharedWord {
    fn from(word: &str) -> Self {
        SharedWord(word.into())
    }
}

impl Deref for SharedWord {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl Display for SharedWord {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(self)
    }
}

impl Serialize for SharedWord {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self)
    }
}

impl<'de> Deserialize<'de> for SharedWord {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(SharedWord(String::deserialize(deserializer)?.into()))
    }
}

/// A handle: one value by which the person is known.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PersonHandle {
    /// Kind: id, e-mail, name, phone, session, profile, alias.
    pub kind: SharedWord,
    /// The value.
    pub value: String,
    /// Source of the handle: table and column, or `given`.
    pub source: SharedWord,
    /// Reason why texts are not searched for the handle; `None` if they are.
    pub unsearched: Option<String>,
    /// Reason why the handle in a text may not mean the person: it is a number, a common word, or too short. `None` if
    /// it is certain.
    pub common: Option<String>,
}

impl PersonHandle {
    /// Whether other people have the handle too: no text in which it occurs is certain to mean the person.
    pub fn is_shared(&self) -> bool {
        self.common.as_deref() == Some(OTHERS_TOO)
    }
}

/// A person.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PurgeSubject {
    /// Handle that the operator gave.
    pub given: String,
    /// Ids by which rows name the person; the first one is the main one.
    pub ids: Vec<String>,
    /// Every handle, including the ids.
    #[serde(deserialize_with = "handles")]
    pub handles: Vec<PersonHandle>,
    /// Similar handles of other people: kind and value.
    pub near: Vec<(String, String)>,
    /// Other people's handles that contain a handle of the person: `bob-smith` if the person is `bob`, `ANN` if the
    /// person is `ann`. They are not changed.
    pub others: Vec<String>,
    /// Places where the person owned rows when the erasure was planned, and other people's ids may also be.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub owning: BTreeSet<String>,
    /// Places with more values for the person than are searched for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub too_many: Vec<String>,
    /// Number of ids that are other spellings of one of them, in columns that name owners.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spellings: Option<usize>,
    /// Number of the person's row ids that are also other people's words, and are not searched for in texts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usual_ids: Option<usize>,
    /// Number of other owners whose id is another spelling of the person's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub respelled: Option<usize>,
}

/// Deserializes the handles of a session file, with shared strings.
fn handles<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<PersonHandle>, D::Error> {
    let mut handles = Vec::<PersonHandle>::deserialize(deserializer)?;
    for n in 1..handles.len() {
        let (before, rest) = handles.split_at_mut(n);
        if let (Some(before), Some(handle)) = (before.last(), rest.first_mut()) {
            handle.kind = SharedWord::with(&handle.kind, Some(&before.kind));
            handle.source = SharedWord::with(&handle.source, Some(&before.source));
        }
    }
    Ok(handles)
}

impl PurgeSubject {
    /// Sentences about handles that are not searched for. Ids of conversations and banks that are too short are listed
    /// by [`Self::untold`].
    pub fn not_looked_for(&self) -> impl Iterator<Item = String> {
        let most = thousands(HANDLES);
        let too_many = self.too_many.iter().map(move |place| {
            format!(
                "{place} knows the person by more than {most} values: beyond these, texts that contain one are not \
                 found"
            )
        });
        let words = "{#} {id of a deleted row is|ids of deleted rows are} also {a word|words} in other texts, and \
         {is|are} left in texts";
        let usual = self.usual_ids.map(|ids| agreeing(ids, words));
        let words = "{#} {id|ids} of other people {is|are} the person's but for case, composition, width, blanks at the ends or \
             characters that nobody sees: their rows are left; if it is the same person, erase {that id|those ids} too";
        let respelled = self.respelled.map(|ids| agreeing(ids, words));
        let words = "{#} {id, name or address by which other people are known contains|ids, names or addresses by which other people \
             are known contain} one of the person: {it is|they are} left wherever {it occurs|they occur}; if one is the \
             person's, erase that too";
        let containing = Some(self.containing()).filter(|count| *count > 0).map(|others| agreeing(others, words));
        let unsearched = self.unsearched(|kind| !is_many(kind));
        too_many.chain(usual).chain(respelled).chain(containing).chain(self.fixed_words()).chain(unsearched)
    }

    /// Sentences about handles that are like no word by their form, and are fixed words in this database.
    fn fixed_words(&self) -> impl Iterator<Item = String> {
        let fixed = self.searched().filter(|h| !h.is_shared() && !is_many(&h.kind) && !is_plain(&h.value));
        fixed.filter_map(|h| {
            let why = h.common.as_ref()?;
            Some(format!(
                "a handle of the kind {} is a common word here, and a possible mention in texts: {why}",
                h.kind
            ))
        })
    }

    /// Number of [`Self::others`] that contain a handle of the person as whole words.
    fn containing(&self) -> usize {
        let own: HashSet<String> = self.handles.iter().map(|handle| folded(&handle.value)).collect();
        let words = self.telling();
        let others: HashSet<String> = self.others.iter().map(|other| folded(other)).collect();
        others.iter().filter(|other| !own.contains(*other) && holds_word(other, &words)).count()
    }

    /// Handles that mean nobody else, as they are compared.
    fn telling(&self) -> Vec<String> {
        let names = |handle: &&PersonHandle| handle.common.is_none() && !is_many(&handle.kind);
        self.searched().filter(names).map(|handle| folded(&handle.value)).collect()
    }

    /// Sentences about ids of conversations and banks that are not searched for.
    pub fn untold(&self) -> impl Iterator<Item = String> {
        self.unsearched(is_many)
    }

    fn unsearched(&self, is_wanted: fn(&str) -> bool) -> impl Iterator<Item = String> {
        let mut counts: BTreeMap<(&str, &str), u64> = BTreeMap::new();
        for handle in self.handles.iter().filter(|handle| is_wanted(&handle.kind)) {
            if let Some(why) = &handle.unsearched {
                *counts.entry((&handle.kind, why)).or_default() += 1;
            }
        }
        let words = |((kind, why), count): ((&str, &str), u64)| {
            let what = format!(
                "{{#}} {{handle|handles}} of the kind {kind} {{is|are}} not searched for in texts: \
             {why}"
            );
            agreeing(count, &what)
        };
        counts.into_iter().map(words).collect::<Vec<_>>().into_iter()
    }

    /// The handles to search for.
    pub fn searched(&self) -> impl Iterator<Item = &PersonHandle> {
        self.handles.iter().filter(|h| h.unsearched.is_none())
    }

    /// Whether nobody else has a handle, in any case and Unicode composition.
    pub fn is_alone(&self, handle: &PersonHandle) -> bool {
        handle.unsearched.is_none() && !self.others.iter().any(|other| folded(other) == folded(&handle.value))
    }

    /// Whether another person's handle contains a word.
    pub fn shares(&self, word: &str) -> bool {
        self.others.iter().any(|other| folded(other).contains(&folded(word)))
    }
}

/// Refuses a text that cannot identify one person.
///
/// # Errors
/// [`ChangeError::Usage`].
pub fn check(text: &str) -> Result<&str, ChangeError> {
    let trimmed = text.trim();
    let refuse = |words: &str| Err(ChangeError::Usage(format!("{words}; give a person's id, e-mail, name or session")));
    if trimmed.is_empty() {
        return refuse("the subject is empty");
    }
    if trimmed.chars().all(is_wildcard) {
        return refuse("a subject has no wildcards: one person is erased at a time");
    }
    if is_short(trimmed) && (trimmed.chars().nth(1).is_none() || letters(trimmed) == 0) {
        return refuse("the subject is too short to mean one person");
    }
    if trimmed.len() > LONGEST || trimmed.contains('\0') {
        return refuse(&format!("this cannot be a person's handle: it is longer than {LONGEST} bytes or contains NUL"));
    }
    Ok(trimmed)
}

/// Whether a text only means a person as their complete id. This holds for numbers of any length.
fn is_short(text: &str) -> bool {
    letters(text) < LEAST && !text.bytes().all(|b| b.is_ascii_digit())
}

/// Whether a handle is long enough to search for if it leads to no id.
pub fn tells(handle: &str) -> bool {
    check(handle).is_ok_and(|handle| !is_short(handle))
}

/// Whether an id means the person as any part of a value, such as a conversation's name: a short number or word may be
/// a counter there.
pub(super) fn tells_anywhere(id: &str) -> bool {
    const DIGITS: usize = 6;
    if id.bytes().all(|b| b.is_ascii_digit()) { id.len() >= DIGITS } else { !is_short(id) }
}

/// Counts letters and digits; those of non-European scripts count twice.
fn letters(text: &str) -> usize {
    let letters = text.chars().filter(|c| c.is_alphanumeric());
    letters.map(|c| if c > '\u{7ff}' { 2 } else { 1 }).sum()
}

fn is_wildcard(c: char) -> bool {
    matches!(c, '*' | '%' | '?')
}

/// Refuses an unknown handle that looks like a pattern.
fn no_pattern(given: &str) -> Result<(), ChangeError> {
    if !given.contains(is_wildcard) {
        return Ok(());
    }
    Err(ChangeError::Usage(format!(
        "no person is known as `{given}`, and a subject has no wildcards: one person is erased at a time; give a \
         person's id, e-mail, name or session"
    )))
}

/// Finds the person behind a handle, with all their other handles.
///
/// # Errors
/// [`ChangeError::Usage`] for a text that cannot identify one person or matches several, [`ChangeError::NotFound`] with
/// near matches.
pub async fn resolve(
    snapshot: &mut Snapshot<'_>,
    given: &str,
    aliases: &[String],
) -> Result<PurgeSubject, ChangeError> {
    let given = meant(snapshot, given).await?;
    let mut ids = ids_behind(snapshot, given, aliases).await?;
    let mut known = KnownHandles::default();
    let led_to = ids_of_aliases(snapshot, aliases, &mut ids).await?;
    add_owner_of_address(snapshot, given, &mut ids).await?;
    let spellings = add_spellings(snapshot, &mut ids).await?;
    ids.iter().for_each(|id| known.add("id", id.clone(), "owner"));
    led_to.iter().for_each(|alias| known.add(kind_of("alias", alias), (*alias).to_owned(), "given"));
    known.add(kind_of("alias", given), given.to_owned(), "given");
    described(snapshot, given, (ids, known), spellings).await
}

/// Describes somebody who owns no rows, and whom texts may name, by a handle and aliases.
///
/// # Errors
/// [`ChangeError::Usage`] for a text that cannot identify one person.
pub async fn talked_about(
    snapshot: &mut Snapshot<'_>,
    given: &str,
    aliases: &[String],
) -> Result<PurgeSubject, ChangeError> {
    let known = KnownHandles::of_words(given, aliases)?;
    let given = given.trim();
    described(snapshot, given, (vec![given.to_owned()], known), 0).await
}

/// Adds to the known ids and handles of a person what the database lists of them, and the handles of others that are alike.
async fn described(
    snapshot: &mut Snapshot<'_>,
    given: &str,
    (mut ids, mut known): (Vec<String>, KnownHandles),
    mut spellings: usize,
) -> Result<PurgeSubject, ChangeError> {
    let mut shared = add_known(snapshot, &ids, &mut known).await?;
    let addresses = known.handles.iter().filter(|h| is_address(&h.kind) && !shared.contains(&h.value));
    let addresses: Vec<String> = addresses.map(|handle| handle.value.clone()).collect();
    let before = ids.len();
    for address in addresses {
        if !ids.contains(&address) && is_owner(snapshot, &address).await? {
            ids.push(address);
        }
    }
    if ids.len() > before {
        spellings += add_spellings(snapshot, &mut ids).await?;
        ids.iter().for_each(|id| known.add("id", id.clone(), "owner"));
        shared.extend(add_known(snapshot, &ids, &mut known).await?);
    }
    let KnownHandles { mut handles, too_many, .. } = known;
    handles.shrink_to_fit();
    for long in handles.iter_mut().filter(|h| h.value.len() > LONGEST) {
        long.unsearched = Some(format!("it has {} bytes, and at most {LONGEST} can be searched for", long.value.len()));
    }
    let mut subject = PurgeSubject { given: given.to_owned(), ids, handles, too_many, ..PurgeSubject::default() };
    subject.spellings = Some(spellings).filter(|spellings| *spellings > 0);
    let (alike, mut owners) = alike(snapshot, &subject).await?;
    let small = |text: &String| text.to_lowercase();
    let values: HashSet<String> = alike.iter().map(|(_, value)| small(value)).collect();
    let ids: HashSet<String> = alike.iter().map(|(id, _)| small(id)).chain(owners.iter().map(small)).collect();
    for handle in subject.handles.iter_mut().filter(|h| &*h.kind != "id" && h.value.len() <= LONGEST) {
        let (many, small) = (is_many(&handle.kind), handle.value.to_lowercase());
        let is_shared = shared.contains(&handle.value) || values.contains(&small) || many && ids.contains(&small);
        if is_too_short(handle) {
            handle.unsearched = Some(TOO_SHORT.to_owned());
        } else if is_shared && many {
            handle.unsearched = Some(OTHERS_TOO.to_owned());
        } else if is_shared {
            handle.common = Some(OTHERS_TOO.to_owned());
        }
    }
    let mut near = near_owners(snapshot, &subject.ids, &subject.telling(), &subject.ids).await?;
    let accounts = alike.iter().map(|(id, _)| id).filter(|id| !subject.ids.contains(*id));
    near.respelled.extend(accounts.filter(|id| is_respelled(id, &subject.ids)).cloned());
    subject.respelled = Some(near.respelled.len()).filter(|count| *count > 0);
    owners.extend(near.respelled);
    subject.others = others(snapshot, &subject, alike, owners).await?;
    subject.near = near_of(snapshot, &subject, near.ids).await?;
    Ok(subject)
}

/// Returns the text itself if it is someone's id, otherwise without the blanks around it.
async fn meant<'t>(snapshot: &mut Snapshot<'_>, text: &'t str) -> Result<&'t str, ChangeError> {
    let trimmed = check(text)?;
    let is_id = trimmed.len() < text.len() && ids_of(snapshot, text).await?.iter().any(|id| id == text);
    Ok(if is_id { text } else { trimmed })
}

/// Finds the one id that a handle, or else an alias, leads to.
async fn ids_behind(snapshot: &mut Snapshot<'_>, given: &str, aliases: &[String]) -> Result<Vec<String>, ChangeError> {
    let mut ids = ids_of(snapshot, given).await?;
    // A handle may identify the person only through an alias.
    for alias in aliases {
        if ids.is_empty() {
            let alias = meant(snapshot, alias).await?;
            ids = ids_of(snapshot, alias).await?;
        }
    }
    if ids.len() > 1 {
        return Err(ChangeError::Usage(format!("`{given}` is several people: {}; name one by the id", ids.join(", "))));
    }
    if ids.is_empty() {
        no_pattern(given)?;
        let near = near(snapshot, given).await?;
        let hint = match &near[..] {
            [] => String::new(),
            near => format!("; near are {}", near.iter().map(|(_, v)| v.as_str()).collect::<Vec<_>>().join(", ")),
        };
        let place = snapshot.store.location();
        return Err(ChangeError::NotFound(format!("no person in {place} is known as `{given}`{hint}")));
    }
    Ok(ids)
}

/// Adds the ids that the operator's aliases lead to. Returns the aliases in the form to search for.
async fn ids_of_aliases<'a>(
    snapshot: &mut Snapshot<'_>,
    aliases: &'a [String],
    ids: &mut Vec<String>,
) -> Result<Vec<&'a str>, ChangeError> {
    let mut checked = Vec::new();
    for alias in aliases {
        let alias = meant(snapshot, alias).await?;
        let found = ids_of(snapshot, alias).await?;
        match &found[..] {
            [one] if !ids.contains(one) => ids.push(one.clone()),
            [_] | [] => {}
            several => {
                let several = several.join(", ");
                return Err(ChangeError::Usage(format!("the alias `{alias}` is several people: {several}")));
            }
        }
        checked.push(alias);
    }
    Ok(checked)
}

/// Adds the handles that the database lists for the person. Returns the values that other people have too.
async fn add_known(
    snapshot: &mut Snapshot<'_>,
    ids: &[String],
    handles: &mut KnownHandles,
) -> Result<BTreeSet<String>, ChangeError> {
    let mut shared: BTreeSet<String> = BTreeSet::new();
    for handle in &snapshot.store.recognised().erasure.handles {
        let table = TableName::of(&handle.table);
        let column = match &handle.value {
            BoundValue::Column(column) => column,
            BoundValue::Sql(_) => &handle.kind,
        };
        let source = format!("{}.{column}", table.title());
        let found = snapshot.handles(&table, &handle.id, &handle.value, &HandlesWanted::Of(ids)).await?;
        if found.len() >= HANDLES {
            handles.too_many.push(source.clone());
        }
        let stored: Vec<String> = found.into_iter().map(|(_, value)| value).collect();
        let others = HandlesWanted::Shared { values: &stored, ids };
        shared.extend(snapshot.handles(&table, &handle.id, &handle.value, &others).await?.into_iter().map(|(_, v)| v));
        for value in stored.into_iter().flat_map(values) {
            let kind = kind_of(&handle.kind, &value).to_owned();
            handles.add(&kind, value, &source);
        }
    }
    Ok(shared)
}

/// Refuses to erase a person with a handle too long to search for: its remains could not be found.
///
/// # Errors
/// [`ChangeError::Refused`].
pub fn refuse_long(subject: &PurgeSubject) -> Result<(), ChangeError> {
    match subject.handles.iter().find(|h| h.value.len() > LONGEST) {
        None => Ok(()),
        Some(long) => Err(ChangeError::Refused(format!(
            "a handle of the kind {} in {} has {} bytes, and at most {LONGEST} can be searched for: shorten it there \
             first",
            long.kind,
            long.source,
            long.value.len()
        ))),
    }
}

/// Creates a subject from words alone: the given one, and aliases.
///
/// # Errors
/// [`ChangeError::Usage`] for a text that cannot identify one person.
pub fn by_words(given: &str, aliases: &[String]) -> Result<PurgeSubject, ChangeError> {
    let mut known = KnownHandles::of_words(given, aliases)?;
    for short in known.handles.iter_mut().filter(|h| is_short(&h.value)) {
        short.unsearched = Some(TOO_SHORT.to_owned());
    }
    Ok(PurgeSubject {
        given: given.trim().to_owned(),
        ids: vec![given.trim().to_owned()],
        handles: known.handles,
        ..PurgeSubject::default()
    })
}

/// Parses a stored handle: one value, or a list of them.
fn values(stored: String) -> Vec<String> {
    let mut values = json::listed(&stored).unwrap_or_else(|| vec![stored]);
    values.iter_mut().filter(|value| value.trim() != **value).for_each(|value| *value = value.trim().to_owned());
    values.retain(|value| !value.is_empty());
    values
}

/// A set of handles.
#[derive(Default)]
struct KnownHandles {
    handles: Vec<PersonHandle>,
    /// Places with more handles than are read.
    too_many: Vec<String>,
    /// Hashes of their values.
    values: HashSet<[u64; 2]>,
}

impl KnownHandles {
    /// The words that an operator gave.
    fn of_words(given: &str, aliases: &[String]) -> Result<KnownHandles, ChangeError> {
        let mut known = KnownHandles::default();
        for word in std::iter::once(given).chain(aliases.iter().map(String::as_str)) {
            let word = check(word)?;
            no_pattern(word)?;
            known.add(kind_of("alias", word), word.to_owned(), "given");
        }
        Ok(known)
    }

    fn add(&mut self, kind: &str, value: String, source: &str) {
        if self.values.insert(wide_digest(&value)) {
            let last = self.handles.last();
            let kind = SharedWord::with(kind, last.map(|last| &last.kind));
            let source = SharedWord::with(source, last.map(|last| &last.source));
            self.handles.push(PersonHandle { kind, value, source, unsearched: None, common: None });
        }
    }
}

/// Returns a more specific kind for handles of a general kind.
fn kind_of<'k>(kind: &'k str, value: &str) -> &'k str {
    if !matches!(kind, "alias" | "handle") {
        return kind;
    }
    let digits = value.bytes().filter(u8::is_ascii_digit).count();
    let dialled = |c: char| c.is_ascii_digit() || matches!(c, '+' | '-' | ' ' | '(' | ')' | '.' | '/');
    match value {
        _ if value.contains('@') && !value.contains(' ') => "e-mail",
        _ if digits >= 7 && value.chars().all(dialled) => "phone",
        _ => kind,
    }
}

fn is_too_short(handle: &PersonHandle) -> bool {
    letters(&handle.value) < if &*handle.kind == "name" { LEAST_OF_NAME } else { LEAST }
}

/// Whether one person may have very many handles of this kind: conversations and banks.
pub(super) fn is_many(kind: &str) -> bool {
    matches!(kind, "session" | "profile")
}

/// Whether handles of this kind belong to one person: rows may name their owner by them instead of by an id.
fn is_address(kind: &str) -> bool {
    matches!(kind, "e-mail" | "phone")
}

/// Adds the id of the only person with an address, if rows also name their owner by that address.
async fn add_owner_of_address(
    snapshot: &mut Snapshot<'_>,
    given: &str,
    ids: &mut Vec<String>,
) -> Result<(), ChangeError> {
    if is_address(kind_of("alias", given)) && ids.iter().any(|id| id == given) {
        let known: Vec<String> = known_as(snapshot, given).await?.into_iter().filter(|id| !ids.contains(id)).collect();
        if let [one] = &known[..] {
            ids.push(one.clone());
        }
    }
    Ok(())
}

/// Adds the ids that owner columns treat as equal to one of the person's, despite another spelling, and those that are
/// another form of the same binary id: the rows with them are deleted too. Returns how many were added.
async fn add_spellings(snapshot: &mut Snapshot<'_>, ids: &mut Vec<String>) -> Result<usize, ChangeError> {
    let before = ids.len();
    for form in ids.clone().iter().flat_map(|id| binary_forms(id)) {
        if !ids.contains(&form) && is_owner(snapshot, &form).await? {
            ids.push(form);
        }
    }
    let folding = snapshot.folding_columns().await?;
    if folding.is_empty() {
        return Ok(ids.len() - before);
    }
    let relations = snapshot.relations().await?;
    let keys: Vec<Vec<FetchedValue>> = ids.iter().map(|id| vec![FetchedValue::Text(id.clone())]).collect();
    let subject = ids.clone();
    let erasure = &snapshot.store.recognised().erasure;
    let is_owner =
        |rule: &&BoundRule| rule.of.is_none() && rule.inside.is_whole() && rule.action != EraseAction::Remove;
    let owners = erasure.rules.iter().filter(is_owner).map(|r| (TableName::of(&r.table), &r.column, r.when.as_deref()));
    let handles = erasure.handles.iter().map(|handle| (TableName::of(&handle.table), &handle.id, None));
    for (table, column, when) in owners.chain(handles) {
        let compared = relations.comparison_of_owner(&table, column);
        if compared.is_none() && !folding.contains(&(table.clone(), column.clone())) {
            continue;
        }
        let (columns, compared) = ([column.clone()], [compared]);
        let wanted = WantedRows { table: &table, columns: &columns, when, subject: &subject };
        let take = |row: Vec<FetchedValue>| {
            if let Some(FetchedValue::Text(owner)) = row.into_iter().next()
                && !ids.contains(&owner)
            {
                ids.push(owner);
            }
        };
        snapshot.each_compared(wanted, (&columns, &compared), &keys, take).await?;
    }
    Ok(ids.len() - before)
}

/// Whether rows name their owner by this text, in an owner column.
async fn is_owner(snapshot: &mut Snapshot<'_>, text: &str) -> Result<bool, ChangeError> {
    let rules = &snapshot.store.recognised().erasure.rules;
    for rule in rules.iter().filter(|rule| rule.of.is_none() && rule.inside.is_whole()) {
        let (table, columns) = (TableName::of(&rule.table), [rule.column.clone()]);
        // A condition about the person says which rows go, not which ones name people.
        let when = rule.when.as_deref().filter(|when| !when.contains("$subject"));
        let wanted = WantedRows { table: &table, columns: &columns, when, subject: &[] };
        if snapshot.holds(wanted, FetchedValue::Text(text.to_owned())).await? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Returns the handles of a person that select one of several people with the same id.
///
/// # Errors
/// The engine's refusal.
pub async fn ids_of_one(snapshot: &mut Snapshot<'_>, subject: &PurgeSubject) -> Result<Vec<String>, ChangeError> {
    let mut ids = Vec::new();
    for handle in subject.handles.iter().filter(|h| !is_many(&h.kind) && !subject.ids.contains(&h.value)) {
        if is_owner(snapshot, &handle.value).await? {
            ids.push(handle.value.clone());
        }
    }
    Ok(ids)
}

/// The ids that a text is, or leads to.
async fn ids_of(snapshot: &mut Snapshot<'_>, text: &str) -> Result<Vec<String>, ChangeError> {
    if is_owner(snapshot, text).await? {
        return Ok(vec![text.to_owned()]);
    }
    let erasure = &snapshot.store.recognised().erasure;
    let owners: Vec<&BoundRule> = erasure.rules.iter().filter(|r| r.of.is_none()).collect();
    let found = if is_short(text) { BTreeSet::new() } else { known_as(snapshot, text).await? };
    if found.is_empty() {
        for rule in owners.iter().filter(|r| !r.inside.is_whole()) {
            if super::graph::is_at_path(snapshot, rule, text).await? {
                return Ok(vec![text.to_owned()]);
            }
        }
    }
    Ok(found.into_iter().collect())
}

/// The ids of people with this handle.
async fn known_as(snapshot: &mut Snapshot<'_>, text: &str) -> Result<BTreeSet<String>, ChangeError> {
    let mut found = BTreeSet::new();
    for handle in &snapshot.store.recognised().erasure.handles {
        let table = TableName::of(&handle.table);
        let known = snapshot.handles(&table, &handle.id, &handle.value, &HandlesWanted::Like(text)).await?;
        found.extend(known.into_iter().map(|(id, _)| id));
    }
    Ok(found)
}

/// Finds the person's handles in other people's values.
fn words(subject: &PurgeSubject) -> Vec<String> {
    let told = subject.searched().filter(|h| !is_many(&h.kind));
    let forms = |word: &str| if word.is_ascii() { vec![word.to_lowercase()] } else { forms(word) };
    // A value equal to a handle apart from surrounding blanks may be someone else's id.
    told.flat_map(|handle| forms(handle.value.trim())).collect()
}

/// Ids of other people, their handles that contain a handle of the person, ids of their conversations and banks, and
/// owners of rows by such a name.
async fn alike(
    snapshot: &mut Snapshot<'_>,
    subject: &PurgeSubject,
) -> Result<(BTreeSet<(String, String)>, BTreeSet<String>), ChangeError> {
    let words = words(subject);
    let many = subject.handles.iter().filter(|handle| is_many(&handle.kind));
    let whole: HashSet<String> = many.map(|handle| handle.value.to_lowercase()).collect();
    let holding = HandlesWanted::Holding { words: &words, whole: &whole, ids: &subject.ids };
    let mut found = BTreeSet::new();
    let erasure = &snapshot.store.recognised().erasure;
    for handle in &erasure.handles {
        let table = TableName::of(&handle.table);
        // For conversations and banks only the owner matters.
        let owner = BoundValue::Column(handle.id.clone());
        let known = if is_many(&handle.kind) { &owner } else { &handle.value };
        for (id, value) in snapshot.handles(&table, &handle.id, known, &holding).await? {
            found.extend(values(value).into_iter().map(|value| (id.clone(), value)));
        }
    }
    let mut owners = BTreeSet::new();
    let is_owner = |r: &&BoundRule| r.of.is_none() && r.action != EraseAction::Remove;
    for rule in erasure.rules.iter().filter(is_owner).filter(|r| r.inside.is_whole()) {
        let owner = BoundValue::Column(rule.column.clone());
        let named = snapshot.handles(&TableName::of(&rule.table), &rule.column, &owner, &holding).await?;
        owners.extend(named.into_iter().map(|(id, _)| id));
    }
    Ok((found, owners))
}

/// Finds other people's handles that contain a handle of the person, and the ids of these people wherever rows name
/// them.
async fn others(
    snapshot: &mut Snapshot<'_>,
    subject: &PurgeSubject,
    alike: BTreeSet<(String, String)>,
    owners: BTreeSet<String>,
) -> Result<Vec<String>, ChangeError> {
    let words = words(subject);
    let mut found: BTreeSet<String> = alike.into_iter().flat_map(|(id, value)| [id, value]).chain(owners).collect();
    let rules = &snapshot.store.recognised().erasure.rules;
    let wanted: HashSet<String> = words.iter().map(|word| folded(word)).collect();
    let (shared, own): (Vec<&PersonHandle>, Vec<_>) = subject.handles.iter().partition(|h| h.common.is_some());
    let own: HashSet<&str> = own.into_iter().map(|handle| handle.value.as_str()).collect();
    found.extend(shared.into_iter().map(|handle| handle.value.clone()));
    let is_other = |other: &String| {
        let plain = folded(other);
        !own.contains(other.as_str()) && wanted.iter().any(|word| plain.contains(word.as_str()))
    };
    found.retain(is_other);
    let reads_owner = |rule: &&BoundRule| rule.owner.as_ref().is_none_or(|owner| owner.is_read);
    let within = rules.iter().filter(|r| r.of.is_none() && !r.inside.is_whole() && r.action != EraseAction::Remove);
    for rule in within.filter(reads_owner) {
        super::graph::each_owner(snapshot, rule, |text| {
            if is_other(&text) {
                found.insert(text);
            }
        })
        .await?;
    }
    Ok(found.into_iter().collect())
}

/// Other people with a name, an address or an id similar to the person's.
async fn near_of(
    snapshot: &mut Snapshot<'_>,
    subject: &PurgeSubject,
    owners: Vec<(String, String)>,
) -> Result<Vec<(String, String)>, ChangeError> {
    let others = known_others(snapshot, &subject.ids).await?.concat();
    let own = subject.handles.iter().filter(|h| matches!(&*h.kind, "name" | "e-mail"));
    let own: Vec<String> = own.map(|handle| handle.value.to_lowercase()).collect();
    let (words, mut all): (_, Vec<(String, String)>) = (subject.telling(), Vec::new());
    for (id, value) in others {
        let small = value.to_lowercase();
        let is_near = own.iter().any(|own| small.contains(own)) || holds_word(&folded(&value), &words);
        if is_near && !all.contains(&(id.clone(), value.clone())) {
            all.push((id, value));
        }
        if all.len() == NEAR_SHOWN {
            break;
        }
    }
    all.extend(owners);
    // Those that may be the person come first.
    all.sort_by_key(|(id, _)| !is_respelled(id, &subject.ids));
    all.truncate(NEAR_SHOWN);
    Ok(all)
}

/// Owners of rows with an id similar to some texts.
struct NearOwners {
    /// Ids, each as kind and value, that equal a text or share its beginning, ignoring case, accents, blanks and
    /// punctuation, or that contain a word; the most similar first.
    ids: Vec<(String, String)>,
    /// Ids that are another spelling of a text.
    respelled: BTreeSet<String>,
}

/// Finds owners of rows with ids similar to some texts, or containing one of some words. `ids` are the person's own.
async fn near_owners(
    snapshot: &mut Snapshot<'_>,
    texts: &[String],
    words: &[String],
    ids: &[String],
) -> Result<NearOwners, ChangeError> {
    let wanted: Vec<String> = texts.iter().map(|text| bare(text)).collect();
    let mut near: BTreeSet<(usize, String)> = BTreeSet::new();
    let mut respelled = BTreeSet::new();
    let compare = |owner: String| {
        let plain = bare(&owner);
        if wanted.contains(&plain) && is_respelled(&owner, texts) && !ids.contains(&owner) {
            respelled.insert(owner.clone());
        }
        let is_near = |text: &&String| {
            let (short, long) = if plain.len() < text.len() { (&plain, *text) } else { (*text, &plain) };
            letters(short) >= LEAST && long.starts_with(short.as_str())
        };
        let id = folded(&owner);
        let words = words.iter().filter(|word| is_word_in(&id, word, char::is_alphanumeric));
        let lengths = wanted.iter().filter(is_near).map(String::len).chain(words.map(|word| bare(word).len()));
        let more = lengths.map(|length| plain.len().abs_diff(length)).min();
        if let Some(more) = more.filter(|_| !ids.contains(&owner)) {
            near.insert((more, owner));
            if near.len() > NEAR_SHOWN {
                near.pop_last();
            }
        }
    };
    owners::each(snapshot, compare).await?;
    Ok(NearOwners { ids: near.into_iter().map(|(_, owner)| (owner.clone(), owner)).collect(), respelled })
}

/// Whether a text has one of some words in it, each compared as it is.
fn holds_word(text: &str, words: &[String]) -> bool {
    words.iter().any(|word| is_word_in(text, word, char::is_alphanumeric))
}

/// Whether an id is one of some texts but for what says no two words apart.
fn is_respelled(id: &str, texts: &[String]) -> bool {
    let spelled = |text: &str| folded(text).trim_matches(|c: char| c.is_whitespace() || c.is_control()).to_owned();
    texts.iter().any(|text| spelled(text) == spelled(id))
}

/// The letters and digits of a text, in lower case and without accents.
fn bare(text: &str) -> String {
    text.nfkd().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// Reads the handles of other people, each with the id, place by place.
async fn known_others(snapshot: &mut Snapshot<'_>, ids: &[String]) -> Result<Vec<Vec<(String, String)>>, ChangeError> {
    let mut others = Vec::new();
    let handles = &snapshot.store.recognised().erasure.handles;
    for handle in handles.iter().filter(|h| matches!(h.kind.as_str(), "name" | "e-mail" | "handle")) {
        let table = TableName::of(&handle.table);
        let all = snapshot.handles(&table, &handle.id, &handle.value, &HandlesWanted::Some(NEAR)).await?;
        let of_others = all.into_iter().filter(|(id, _)| !ids.contains(id));
        others
            .push(of_others.flat_map(|(id, value)| values(value).into_iter().map(move |v| (id.clone(), v))).collect());
    }
    Ok(others)
}

/// People who may be meant by an unknown handle.
async fn near(snapshot: &mut Snapshot<'_>, text: &str) -> Result<Vec<(String, String)>, ChangeError> {
    let words: Vec<String> = Some(folded(text)).filter(|word| letters(word) >= LEAST).into_iter().collect();
    let mut near = near_owners(snapshot, &[text.to_owned()], &words, &[]).await?.ids;
    let lower = text.to_lowercase();
    for others in known_others(snapshot, &[]).await? {
        let words = others.iter().flat_map(|(id, value)| [id.as_str(), value.as_str()]);
        let best = nearest(text, words).map(str::to_owned);
        for (id, value) in others {
            let small = value.to_lowercase();
            let alike = small.contains(&lower) || best.as_deref().is_some_and(|b| b == value || b == id);
            if alike && !near.contains(&(id.clone(), value.clone())) {
                near.push((id, value));
            }
        }
    }
    near.truncate(NEAR_SHOWN);
    Ok(near)
}
