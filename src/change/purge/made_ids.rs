//! Ids that a program generates at random, distinguished from words by the other ids of their table: one such as
//! `ep_hpgxkvwq` may have no digit by chance.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::ControlFlow;

use super::graph::Graph;
use super::matcher::{is_measure, is_random, tells, turns};
use super::row_ids::ID_LENGTH;
use super::taken::GoingRows;
use crate::change::ChangeError;
use crate::store::fetched::{RawRow, as_text};
use crate::store::snapshot::{Snapshot, WantedRows};
use crate::store::stored::TableName;

/// Rows of a table whose ids are looked at.
const ROWS: usize = 1_000;
/// Letters and digits that are made for an id, at least.
const MADE: usize = 6;
/// Changes between letters and digits in a word that few people write.
const MIXED: usize = 2;
/// Ids of one form that are such words, before all of that form are made: at least that many, and one in that many.
const ENOUGH: (usize, usize) = (3, 4);

/// Form of an id: what is before the part that is made, and the length of that part.
type IdForm = (String, usize);

/// The form of an id, and the part of it that may be made; none of one that has no such part, or nothing before it, since each
/// word of that length would be of its form, and of a number.
fn form(id: &str) -> Option<(IdForm, &str)> {
    let is_mark = |c: char| !c.is_ascii_alphanumeric();
    let at = id.char_indices().rfind(|(_, c)| is_mark(*c)).map_or(0, |(at, mark)| at + mark.len_utf8());
    let (before, made) = id.split_at(at);
    let has_letters = id.bytes().any(|byte| byte.is_ascii_alphabetic());
    let is_marked = before.bytes().any(|byte| byte.is_ascii_alphanumeric());
    (id.len() >= ID_LENGTH && made.len() >= MADE && has_letters && is_marked)
        .then(|| ((before.to_owned(), made.len()), made))
}

/// Forms of ids that are made, by table.
#[derive(Debug, Default)]
pub struct MadeIds(BTreeMap<TableName, BTreeSet<IdForm>>);

impl MadeIds {
    /// Adds those of the tables that lose rows whose ids do not look made by themselves; a table is looked at once.
    ///
    /// # Errors
    /// The engine's refusal.
    pub async fn learn(
        &mut self,
        snapshot: &mut Snapshot<'_>,
        graph: &Graph,
        also: &[GoingRows],
    ) -> Result<(), ChangeError> {
        let is_doubtful = |id: &String| !is_random(id) && !is_measure(id) && form(id).is_some();
        let first = |row: RawRow| row.first().and_then(as_text);
        for (table, taken) in &graph.tables {
            let is_new = !self.0.contains_key(table);
            if is_new && taken.rows(0..taken.len()).filter_map(first).any(|id| is_doubtful(&id)) {
                self.look_at(snapshot, table, taken.key.first()).await?;
            }
        }
        for rows in also {
            let is_new = !self.0.contains_key(&rows.table);
            if is_new && rows.all_keys().filter_map(first).any(|id| is_doubtful(&id)) {
                self.look_at(snapshot, &rows.table, rows.by.first()).await?;
            }
        }
        Ok(())
    }

    async fn look_at(
        &mut self,
        snapshot: &mut Snapshot<'_>,
        table: &TableName,
        column: Option<&String>,
    ) -> Result<(), ChangeError> {
        if let Some(column) = column {
            let ids = some_ids(snapshot, table, column.clone()).await?;
            self.0.insert(table.clone(), made_forms(&ids));
        }
        Ok(())
    }

    /// Whether an id of a table can be told in any text: on its own, or as one of those that are made there.
    pub fn tell(&self, table: &TableName, id: &str) -> bool {
        tells(id) || self.0.get(table).is_some_and(|forms| is_of(forms, id))
    }

    /// Whether a word has the form of ids that are made, in whichever table.
    pub fn are_like(&self, word: &str) -> bool {
        self.0.values().any(|forms| is_of(forms, word))
    }
}

fn is_of(forms: &BTreeSet<IdForm>, id: &str) -> bool {
    !is_measure(id) && form(id).is_some_and(|(form, _)| forms.contains(&form))
}

/// The first ids of a table.
async fn some_ids(snapshot: &mut Snapshot<'_>, table: &TableName, column: String) -> Result<Vec<String>, ChangeError> {
    let columns = [column];
    let wanted = WantedRows { table, columns: &columns, when: None, subject: &[] };
    let mut ids = Vec::new();
    let take = |row: RawRow| {
        ids.extend(row.first().and_then(as_text));
        if ids.len() < ROWS { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    };
    snapshot.stream(wanted, take).await?;
    Ok(ids)
}

/// The forms of which so many ids are mixed of letters and digits that the others are made by the same rule.
fn made_forms(ids: &[String]) -> BTreeSet<IdForm> {
    let mut counts: HashMap<IdForm, (usize, usize)> = HashMap::new();
    for (form, made) in ids.iter().filter_map(|id| form(id)) {
        let (mixed, all) = counts.entry(form).or_default();
        *mixed += usize::from(turns(made) >= MIXED);
        *all += 1;
    }
    let is_made = |(mixed, all): &(usize, usize)| *mixed >= ENOUGH.0 && mixed * ENOUGH.1 >= *all;
    counts.into_iter().filter(|(_, count)| is_made(count)).map(|(form, _)| form).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_of_one_form_are_judged_together() {
        let made = |ids: &[&str], id: &str| {
            let ids: Vec<String> = ids.iter().map(|id| (*id).to_owned()).collect();
            form(id).is_some_and(|(form, _)| made_forms(&ids).contains(&form))
        };
        let episodes = ["ep_aqckgy2q", "ep_aq4khvk3", "ep_a0exvwq2", "ep_aqckhpgx"];
        assert!(made(&episodes, "ep_aqckhpgx"));
        assert!(!made(&episodes, "ep_preferences") && !made(&episodes, "to_aqckhpgx"));
        let bare = ["2lolc4ok", "a1b2c3d4", "q9w8e7r6", "birthday"];
        assert!(!made(&bare, "birthday"));
        let words = ["preferences", "workspace-1", "workspace-2", "room_service", "gpt-4o-mini", "accounts2024"];
        assert!(words.iter().all(|word| !made(&words, word)));
    }
}
