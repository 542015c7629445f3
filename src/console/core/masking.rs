//! The single passage for rows: rows that enter the model are masked if masking is on, and requests get real ids. Every
//! other text, such as an error, passes a veil that knows the people of the database.

use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;
use std::sync::Arc;

use serde_json::Value;

use crate::change::plan::erasure::{MentionWords, Preview};
use crate::change::plan::{Change, Plan};
use crate::console::core::change::Refusal;
use crate::console::core::condition::Conditions;
use crate::console::core::message::{Effect, RequestFailure};
use crate::console::core::request::{Content, Related, Relation, Reply, Request};
use crate::console::core::window::RowKey;
use crate::job::plan::JobBeat;
use crate::memory::filter::{Filter, Operand};
use crate::memory::mask::Mask;
use crate::memory::query::Query;
use crate::memory::veil::Veil;
use crate::memory::{Personal, Row};
use crate::recall::inquiry::Inquiry;

/// Most names remembered. A person beyond them cannot be followed while masking is on.
const NAMES: usize = 20_000;
/// Most names that came with rows and that the veil does not know. They are hidden in other texts too; the latest are
/// kept.
const MET: usize = 2_000;

/// State of masking, and the pseudonyms in use.
#[derive(Clone, PartialEq)]
pub struct Masking {
    mask: Mask,
    on: bool,
    /// Names by pseudonym, so that a person can be followed without being seen.
    names: BTreeMap<String, String>,
    /// Hides the people of the database, as far as they are known.
    veil: Option<Arc<Veil>>,
    /// Names that rows brought since.
    met: VecDeque<String>,
    /// Hides those.
    second_veil: Option<Arc<Veil>>,
}

impl std::fmt::Debug for Masking {
    /// Without the key and the names: neither belongs into a report.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Masking").field("on", &self.on).field("names", &self.names.len()).finish_non_exhaustive()
    }
}

impl Masking {
    /// Creates masking that is on or off.
    pub fn new(mask: Mask, on: bool) -> Self {
        Masking { mask, on, names: BTreeMap::new(), veil: None, met: VecDeque::new(), second_veil: None }
    }

    /// Whether personal values are replaced.
    pub fn is_on(&self) -> bool {
        self.on
    }

    /// Toggles masking; rows held must be read again.
    pub fn toggle(&mut self) {
        self.on = !self.on;
        self.names.clear();
        (self.veil, self.second_veil) = (None, None);
        self.met.clear();
    }

    /// Takes the names of the people in the database.
    pub fn meet_people(&mut self, handles: Vec<String>) {
        if self.on {
            self.veil = Veil::new(&self.mask, handles).map(Arc::new);
        }
    }

    /// Returns the function that hides people's names in drawn texts; `None` while they are shown.
    pub fn hiding(&self) -> Option<crate::ui::text::Hiding> {
        let veils: Vec<Arc<Veil>> = [&self.veil, &self.second_veil].into_iter().flatten().cloned().collect();
        let hide = move |text: &str| {
            let over =
                |veiled: Option<String>, veil: &Arc<Veil>| veil.change(veiled.as_deref().unwrap_or(text)).or(veiled);
            veils.iter().fold(None, over)
        };
        self.on.then(|| Rc::new(hide) as crate::ui::text::Hiding)
    }

    /// Hides names in a text that leaves the screen, for example for the clipboard.
    fn veil_over(&self, text: &mut String) {
        if let Some(veiled) = self.hiding().and_then(|hide| hide(text)) {
            *text = veiled;
        }
    }

    /// Replaces a text whose content is unknown.
    fn stand_in(&self, text: &mut String) {
        let mut value = Value::from(std::mem::take(text));
        self.mask.unknown(&mut value);
        if let Value::String(masked) = value {
            *text = masked;
        }
    }

    /// Keeps names that the veil does not know, to hide them too.
    fn meet<'n>(&mut self, names: impl IntoIterator<Item = &'n String>) {
        let knows =
            |veil: &Option<Arc<Veil>>, name: &str| veil.as_ref().is_some_and(|veil| veil.change(name).is_some());
        let before = self.met.len();
        for name in names {
            if !knows(&self.veil, name) && !knows(&self.second_veil, name) && !self.met.contains(name) {
                self.met.push_back(name.clone());
            }
        }
        if self.met.len() > before {
            self.met.drain(..self.met.len().saturating_sub(MET));
            self.second_veil = Veil::new(&self.mask, self.met.iter().cloned()).map(Arc::new);
        }
    }

    /// Lets rows in.
    pub fn rows<'r>(&mut self, rows: impl IntoIterator<Item = &'r mut Row>) {
        if !self.on {
            return;
        }
        let mut people = Vec::new();
        for row in rows {
            self.remember(row, &mut people);
            self.mask.row(row);
        }
        self.meet(&people);
    }

    /// Lets the rows of a detail in.
    pub fn content(&mut self, content: &mut Content) {
        match content {
            Content::Row(row) => self.rows([&mut **row]),
            Content::Episode(context) => self.rows(context.rows_mut()),
        }
    }

    /// Lets related rows in.
    pub fn related(&mut self, related: &mut [Related]) {
        for group in related {
            self.rows(&mut group.rows);
        }
    }

    fn remember(&mut self, row: &Row, people: &mut Vec<String>) {
        for (column, value) in row.entity.columns().iter().zip(&row.values) {
            let (Personal::Identity, Value::String(name)) = (column.personal, value) else { continue };
            if self.names.len() < NAMES {
                self.names.insert(self.mask.pseudonym(column.name, name), name.clone());
            }
            if !column.name.starts_with("session") && people.last() != Some(name) {
                people.push(name.clone());
            }
        }
    }

    /// Lets the changes of a plan or receipt in.
    pub fn changes(&mut self, changes: &mut [Change]) {
        if !self.on {
            return;
        }
        for change in changes {
            change.mask(|row| self.rows([row]));
        }
    }

    /// Lets the view of an erasure in.
    pub fn preview(&mut self, preview: &mut Preview) {
        if !self.on {
            return;
        }
        // All names of a person map to one pseudonym.
        let person = self.mask.pseudonym("user_id", &preview.id);
        let mut people = vec![preview.id.clone()];
        self.names.insert(person.clone(), std::mem::replace(&mut preview.id, person.clone()));
        for known in &mut preview.known {
            people.push(known.value.clone());
            let pseudonym = match known.kind.as_str() {
                "session" => self.mask.pseudonym("session_id", &known.value),
                "profile" => self.no_person("bank", &known.value),
                _ => {
                    known.value.clone_from(&person);
                    continue;
                }
            };
            self.names.insert(pseudonym.clone(), std::mem::replace(&mut known.value, pseudonym));
        }
        for (id, name) in &mut preview.near {
            people.extend([id.clone(), std::mem::take(name)]);
            let other = self.mask.pseudonym("user_id", id);
            name.clone_from(&other);
            self.names.insert(other.clone(), std::mem::replace(id, other));
        }
        for mention in &mut preview.named {
            mention.title.clear();
            mention.words = MentionWords { before: "…".to_owned(), ..MentionWords::default() };
            mention.key = self.no_person("row", &mention.key);
        }
        self.meet(&people);
    }

    /// Pseudonym for something that is not a person.
    fn no_person(&self, kind: &str, text: &str) -> String {
        self.mask.pseudonym("user_id", text).replacen("person", kind, 1)
    }

    /// Replaces a pseudonym by the name behind it; other texts are unchanged.
    pub fn real(&self, text: &mut String) {
        if let Some(name) = self.names.get(text.as_str()) {
            text.clone_from(name);
        }
    }

    fn query(&self, query: &mut Query) {
        for (_, value) in query.filters.iter_mut().flat_map(Filter::values_mut) {
            if let Operand::Text(text) = value {
                self.real(text);
            }
        }
    }

    /// Replaces pseudonyms by names in a request that reads or changes rows.
    pub fn outbound(&self, request: &mut Request) {
        if !self.on {
            return;
        }
        match request {
            Request::LoadPage(query) | Request::Watch(query) | Request::Count(query) => self.query(query),
            Request::Renew(request) => self.outbound(request),
            Request::LoadDetail(_, key) => key.texts_mut().for_each(|text| self.real(text)),
            Request::Export(export) => {
                self.query(&mut export.query);
                let keys = export.only.iter_mut().flatten();
                keys.flat_map(RowKey::texts_mut).for_each(|text| self.real(text));
            }
            Request::Recall { inquiry, .. } => self.inquiry(inquiry),
            // A saved question is asked again later: it must hold the person, not the pseudonym.
            Request::SaveQuery(saved) => self.inquiry(&mut saved.inquiry),
            Request::PlanErasure(given, _) | Request::LoadWhereabouts(given) | Request::Erase { given, .. } => {
                self.real(given);
            }
            Request::Plan(proposal) => proposal.persons_mut().into_iter().for_each(|person| self.real(person)),
            Request::Preview(operation) | Request::PlanAhead(operation) => {
                operation.persons_mut().into_iter().for_each(|person| self.real(person));
            }
            Request::LoadRelated(relations) => {
                for (_, relation) in relations {
                    match relation {
                        Relation::Ids(_, ids) => ids.iter_mut().for_each(|id| self.real(id)),
                        Relation::List(query) => self.query(query),
                    }
                }
            }
            _ => {}
        }
    }

    /// Passes a text that leaves the screen through the veil.
    pub fn leaving(&self, effect: &mut Effect) {
        match effect {
            Effect::Copy(_, text) | Effect::View(_, text) | Effect::Edit(_, text) | Effect::SetTitle(text) => {
                self.veil_over(text);
            }
            Effect::Tell(lines) => lines.iter_mut().for_each(|line| self.veil_over(line)),
            _ => {}
        }
    }

    fn inquiry(&self, inquiry: &mut Inquiry) {
        let named = [&mut inquiry.agent, &mut inquiry.user, &mut inquiry.like];
        named.into_iter().flatten().for_each(|name| self.real(name));
    }

    /// Lets a reply in: rows, and every text that may name a person.
    pub fn inbound(&mut self, reply: &mut Reply) {
        if !self.on {
            return;
        }
        if let Some(failure) = reply.failure_mut() {
            self.failure(failure);
        }
        match reply {
            Reply::Page(Ok(page)) => self.rows(&mut page.rows),
            Reply::Detail(Ok(Some(content))) => self.content(content),
            Reply::Related(Ok(related)) => self.related(related),
            Reply::News(rows) | Reply::Named(Ok(rows)) => self.rows(rows),
            Reply::Planned(Ok(plan)) | Reply::Previewed(Ok(plan)) => self.plan(plan),
            Reply::Planned(Err(refusal)) => self.refusal(refusal),
            Reply::Applied(_, applied) => {
                for (_, receipt) in &mut applied.receipts {
                    self.changes(&mut receipt.changes);
                    self.texts(&mut receipt.disclosures);
                }
                if let Some(refusal) = &mut applied.refusal {
                    self.refusal(refusal);
                }
            }
            Reply::LookedAhead(Ok(found)) => {
                self.rows(&mut found.rows);
                self.texts(&mut found.notes);
            }
            Reply::Replayed(Ok(told)) => {
                self.rows(told.steps.iter_mut().map(|step| &mut step.row));
                told.steps.iter_mut().flat_map(|step| &mut step.parents).for_each(|parent| parent.title = None);
            }
            Reply::ErasurePlanned(Ok(preview)) => self.preview(preview),
            Reply::Erased(Ok(outcome)) => {
                self.texts(&mut outcome.disclosures);
            }
            Reply::Erasing(what, _) => self.veil_over(what),
            Reply::Unfinished(found) => found.iter_mut().for_each(|begun| self.name(&mut begun.given)),
            Reply::Holds(Ok(people)) => people.iter_mut().for_each(|person| self.name(person)),
            Reply::Trail(Ok(entries)) => {
                for entry in entries {
                    self.changes(entry.changes.as_deref_mut().unwrap_or_default());
                    entry.reason = None;
                }
            }
            Reply::Recalled(Ok(answered)) => self.rows(answered.0.rows_mut()),
            Reply::TrailVerified(Ok(verdict)) => {
                verdict.faults.iter_mut().for_each(|fault| self.veil_over(&mut fault.message));
            }
            Reply::Found(Ok(found)) => {
                for (row, hit) in &mut found.rows {
                    self.rows([row]);
                    self.stand_in(&mut hit.snippet);
                }
            }
            Reply::LookedBack(Ok(Some(as_of))) => self.texts(&mut as_of.unknown),
            // The content of these columns is unknown: any of them may be personal.
            Reply::TableRows(Ok(page)) => {
                page.rows.iter_mut().flatten().for_each(|value| self.mask.unknown(value));
            }
            Reply::Quoted(Ok(Some(quote))) => quote.parts_mut().into_iter().for_each(|part| self.stand_in(part)),
            Reply::Mutes(Ok(mutes)) => {
                for mute in mutes {
                    self.stand_in(&mut mute.reason);
                    mute.actor = self.mask.pseudonym("actor", &mute.actor);
                }
            }
            Reply::JobBeat(JobBeat::Said(line)) => self.veil_over(line),
            _ => {}
        }
    }

    fn plan(&mut self, plan: &mut Plan) {
        self.changes(&mut plan.changes);
        self.texts(&mut plan.effects);
        self.texts(&mut plan.disclosures);
        plan.undo_reason.iter_mut().for_each(|reason| self.veil_over(reason));
    }

    fn refusal(&mut self, refusal: &mut Refusal) {
        match refusal {
            Refusal::Failed(failure) => self.failure(failure),
            Refusal::Conflict { message, rows, now } => {
                self.rows(now.iter_mut().flatten());
                self.veil_over(message);
                self.texts(rows);
            }
        }
    }

    fn failure(&self, failure: &mut RequestFailure) {
        self.veil_over(&mut failure.what);
        self.veil_over(&mut failure.message);
        failure.remedy.iter_mut().for_each(|remedy| self.veil_over(remedy));
    }

    fn texts(&self, texts: &mut [String]) {
        texts.iter_mut().for_each(|text| self.veil_over(text));
    }

    /// Replaces a person's name by the pseudonym.
    fn name(&mut self, name: &mut String) {
        self.meet([&*name]);
        let pseudonym = self.mask.pseudonym("user_id", name);
        self.names.insert(pseudonym.clone(), std::mem::replace(name, pseudonym));
    }

    /// A person's id as it may be shown.
    pub fn person(&self, id: &str) -> String {
        if self.on && !self.names.contains_key(id) { self.mask.pseudonym("user_id", id) } else { id.to_owned() }
    }

    /// Conditions as they may be shown: names that were remembered become pseudonyms.
    pub fn shown(&self, conditions: &Conditions) -> Conditions {
        let mut shown = conditions.clone();
        if self.on {
            for (name, value) in shown.filters.iter_mut().flat_map(Filter::values_mut) {
                let column = crate::memory::Entity::ALL.iter().find_map(|e| e.column(name));
                if let (Some(Personal::Identity), Operand::Text(text)) = (column.map(|c| c.personal), value)
                    && !self.names.contains_key(text.as_str())
                {
                    *text = self.mask.pseudonym(name, text);
                }
            }
        }
        shown
    }
}
