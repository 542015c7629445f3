//! Model of the required contents of the database: every text that an acknowledged change wrote, exactly once and in
//! its place.
//!
//! Each change writes a mark (`fire17`) that no other change writes. A slot is a place that holds one text at a time; it
//! knows the texts that may be there: one when the last change was acknowledged or refused, two when whoever made it
//! was killed on the way.

use std::collections::{BTreeMap, BTreeSet};

/// Columns in which marks are written, by table.
pub const MARKED: &[(&str, &str)] = &[
    ("episodes", "title"),
    ("episodes", "summary"),
    ("agent_feedback", "correction"),
    ("utility_events", "reason"),
    ("memories", "text"),
    ("memory_access", "query"),
    ("episode_segments", "content"),
    ("canvas_audit", "component_name"),
];

/// Marks in a text, in order, with a blank between them; empty when there are none.
pub fn marks(text: &str) -> String {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric());
    let is_mark = |word: &&str| {
        word.strip_prefix("fire").is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|b| b.is_ascii_digit()))
    };
    words.filter(is_mark).collect::<Vec<_>>().join(" ")
}

/// Location of a text: table, column, id of the row.
pub type Spot = (String, String, String);

/// A text and where it was found.
type Found<'f> = (&'f Spot, &'f str);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SlotId(usize);

/// Writer of a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Owner {
    Agent(usize),
    /// Operators, by commands or in consoles.
    Operator,
}

#[derive(Debug)]
pub struct Slot {
    pub owner: Owner,
    pub table: &'static str,
    pub column: &'static str,
    /// Id of the row; none while only whoever writes it knows.
    pub id: Option<String>,
    /// Marks that may be there; empty: none or no row.
    allowed: Vec<String>,
    /// True when the slot is being written, or its text is unknown: nobody else touches it.
    busy: bool,
}

#[derive(Debug, Default)]
pub struct Model {
    slots: Vec<Slot>,
    marks: u32,
    /// Changes that were acknowledged.
    pub acknowledged: u32,
}

impl Model {
    /// A text that nobody has written yet.
    pub fn mark(&mut self) -> String {
        self.marks += 1;
        format!("fire{}", self.marks)
    }

    /// A place in which nothing stands so far.
    pub fn slot(&mut self, owner: Owner, table: &'static str, column: &'static str, id: Option<String>) -> SlotId {
        self.slots.push(Slot { owner, table, column, id, allowed: vec![String::new()], busy: false });
        SlotId(self.slots.len() - 1)
    }

    pub fn get(&self, slot: SlotId) -> &Slot {
        &self.slots[slot.0]
    }

    /// Slots that nobody is writing, of one owner, in which something stands or not.
    pub fn idle(&self, owner: Owner, table: Option<&str>, filled: bool) -> Vec<SlotId> {
        let fits = |slot: &Slot| {
            !slot.busy
                && slot.owner == owner
                && slot.id.is_some()
                && table.is_none_or(|table| slot.table == table)
                && slot.allowed.iter().all(|text| text.is_empty() != filled)
        };
        (0..self.slots.len()).filter(|at| fits(&self.slots[*at])).map(SlotId).collect()
    }

    pub fn named(&self, table: &str, column: &str, id: &str) -> Option<SlotId> {
        let same = |slot: &Slot| slot.table == table && slot.column == column && slot.id.as_deref() == Some(id);
        self.slots.iter().position(same).map(SlotId)
    }

    /// Returns the text of the slot; `None` while that is open.
    pub fn text(&self, slot: SlotId) -> Option<&str> {
        let slot = self.get(slot);
        match &slot.allowed[..] {
            [one] if !slot.busy => Some(one),
            _ => None,
        }
    }

    /// Returns the text that the slot held when the last change was settled.
    pub fn settled(&self, slot: SlotId) -> String {
        self.get(slot).allowed.first().cloned().unwrap_or_default()
    }

    pub fn begin(&mut self, slot: SlotId) {
        self.slots[slot.0].busy = true;
    }

    pub fn identify(&mut self, slot: SlotId, id: &str) {
        self.slots[slot.0].id = Some(id.to_owned());
    }

    pub fn acknowledge(&mut self, slot: SlotId, text: &str) {
        let slot = &mut self.slots[slot.0];
        slot.allowed = vec![text.to_owned()];
        slot.busy = false;
    }

    pub fn refuse(&mut self, slot: SlotId) {
        self.slots[slot.0].busy = false;
    }

    /// Whoever wrote was killed or could not tell: before or after, and nobody writes there again.
    pub fn leave_open(&mut self, slot: SlotId, text: &str) {
        self.slots[slot.0].allowed.push(text.to_owned());
    }

    /// Compares with the marks that were found.
    pub fn compare(&self, found: &BTreeMap<Spot, String>) -> Vec<String> {
        let mut wrong = Vec::new();
        let mut places: BTreeMap<&str, Vec<Found>> = BTreeMap::new();
        for (place, text) in found {
            for mark in text.split(' ') {
                places.entry(mark).or_default().push((place, text));
            }
        }
        let mut known = BTreeSet::new();
        for slot in &self.slots {
            let of_slot: BTreeSet<&str> = slot.allowed.iter().flat_map(|text| text.split(' ')).collect();
            let here: BTreeSet<Found> = of_slot.iter().filter_map(|mark| places.get(mark)).flatten().copied().collect();
            known.extend(here.iter().map(|(place, _)| *place));
            let texts: Vec<&str> = here.iter().map(|(_, text)| *text).collect();
            let fine = match texts[..] {
                [] => slot.allowed.iter().any(String::is_empty),
                [one] => slot.allowed.iter().any(|text| text == one),
                _ => false,
            };
            if !fine {
                let Slot { table, column, id, allowed, .. } = slot;
                wrong.push(format!("{table}.{column} of {id:?} must hold one of {allowed:?}, and holds {texts:?}"));
            }
        }
        for (place, text) in found.iter().filter(|(place, _)| !known.contains(place)) {
            wrong.push(format!("{place:?} holds {text:?}, which no acknowledged or open change put there"));
        }
        wrong
    }
}
