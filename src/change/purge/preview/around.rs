//! Other people's rows that name the person, for the operator to read: the title of each row, and the words around the
//! name.

use std::collections::HashMap;

use super::super::graph;
use super::super::matcher::Matcher;
use super::super::mention::Mention;
use super::super::owners;
use super::super::plan::PurgePlan;
use super::super::row_ids::RowIds;
use crate::change::ChangeError;
use crate::change::plan::erasure::{MentionWords, ShownMention};
use crate::layout::erase::BoundRule;
use crate::store::Store;
use crate::store::container::{self, Leaf, Limits};
use crate::store::fetched::FetchedValue;
use crate::store::snapshot::WantedRows;
use crate::store::stored::TableName;

/// Most mentions whose rows are read; further ones show only the masked sample.
const READ: usize = 500;
/// Characters shown on either side of the name.
const AROUND: usize = 160;
/// Most characters of a title.
const TITLE: usize = 160;
/// Columns that serve as a title, the best first.
const TITLES: [&str; 9] = ["title", "name", "subject", "summary", "topic", "question", "prompt", "content", "text"];

/// Columns of a row and their values.
type NamedRow = HashMap<String, FetchedValue>;

/// Mentions with the words around the name and the titles of their rows, in order.
///
/// # Errors
/// The engine's refusal.
pub(super) async fn shown(
    store: &Store,
    plan: &PurgePlan,
    mentions: &[&Mention],
) -> Result<Vec<ShownMention>, ChangeError> {
    let read = &mentions[..mentions.len().min(READ)];
    let rows = if read.is_empty() { HashMap::new() } else { rows(store, read).await? };
    let matcher = Matcher::new(plan.subject.searched(), RowIds::default(), &plan.subject.others)?;
    let shown = mentions.iter().map(|mention| {
        let mut shown = mention.shown();
        if let Some(row) = rows.get(&(&mention.table, mention.key_text())) {
            shown.title = title(row, &mention.column);
            shown.owner = owner(store, &mention.table, row);
            if let Some(words) = row.get(&mention.column).and_then(|raw| words(&matcher, raw)) {
                shown.words = words;
            }
        }
        shown
    });
    Ok(shown.collect())
}

/// The rows of some mentions, by their table and key.
async fn rows<'m>(
    store: &Store,
    mentions: &[&'m Mention],
) -> Result<HashMap<(&'m TableName, String), NamedRow>, ChangeError> {
    let mut snapshot = store.snapshot().await?;
    let relations = snapshot.relations().await?;
    let mut rows = HashMap::new();
    for of_table in mentions.chunk_by(|a, b| a.table == b.table) {
        let Some(table) = of_table.first().map(|mention| &mention.table) else { continue };
        let Some(by) = relations.keys.get(table).filter(|by| !by.is_empty()) else { continue };
        let shape = store.shapes().shape(table).await?;
        let named = of_table.iter().map(|mention| mention.column.as_str());
        let told = named.chain(TITLES).filter_map(|column| shape.column(column)).map(|column| column.name.clone());
        let owned = owners::of_table(store, table).map(|rule| rule.column.clone());
        let columns: Vec<String> = by.iter().cloned().chain(told).chain(owned).collect();
        let keys: Vec<Vec<FetchedValue>> = of_table.iter().map(|mention| mention.key.clone()).collect();
        let wanted = WantedRows { table, columns: &columns, when: None, subject: &[] };
        for row in snapshot.select_keys(wanted, by, &keys).await? {
            let row: NamedRow = columns.iter().cloned().zip(row).collect();
            let same = |mention: &&&'m Mention| {
                by.iter().zip(&mention.key).all(|(column, value)| row.get(column) == Some(value))
            };
            if let Some(mention) = of_table.iter().find(same) {
                rows.insert((&mention.table, mention.key_text()), row);
            }
        }
    }
    Ok(rows)
}

/// Returns the owner of a row; empty if the row does not say.
fn owner(store: &Store, table: &TableName, row: &NamedRow) -> String {
    let of = |rule: &BoundRule| graph::within(row.get(&rule.column)?, rule).into_iter().next();
    owners::of_table(store, table).find_map(of).unwrap_or_default()
}

/// Title of a row; empty if only the column of the mention has one.
fn title(row: &NamedRow, mentioned: &str) -> String {
    let text = |column: &&str| match row.get(*column) {
        Some(FetchedValue::Text(text)) if *column != mentioned && !text.trim().is_empty() => Some(text),
        _ => None,
    };
    let title = TITLES.iter().find_map(text).map_or("", String::as_str);
    title.chars().take(TITLE).collect()
}

/// The words around the first place that means the person: in the stored value, otherwise in the first text within it.
fn words(matcher: &Matcher, raw: &FetchedValue) -> Option<MentionWords> {
    if let FetchedValue::Text(text) = raw
        && let Some(words) = words_in(matcher, text)
    {
        return Some(words);
    }
    let mut found = None;
    container::read(raw, Limits::default(), &mut |leaf: &Leaf<'_>| {
        if found.is_none() {
            found = words_in(matcher, leaf.text);
        }
    });
    found
}

fn words_in(matcher: &Matcher, text: &str) -> Option<MentionWords> {
    let hits = matcher.find(text);
    let hit = hits.iter().find(|hit| hit.certainty.is_certain()).or_else(|| hits.first())?;
    let (before, name) = (text.get(..hit.start)?, text.get(hit.start..hit.end)?);
    let from = before.char_indices().rev().take(AROUND).last().map_or(hit.start, |(at, _)| at);
    Some(MentionWords {
        before: before[from..].to_owned(),
        name: name.to_owned(),
        after: text[hit.end..].chars().take(AROUND).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::super::super::subject::PersonHandle;
    use super::*;

    fn around(text: &str) -> Option<MentionWords> {
        let handle = PersonHandle {
            kind: "name".into(),
            value: "Siobhán Varga".into(),
            source: "".into(),
            unsearched: None,
            common: None,
        };
        words(&Matcher::new([&handle], RowIds::default(), &[]).unwrap(), &FetchedValue::Text(text.into()))
    }

    #[test]
    fn the_words_around_a_name_are_those_of_the_whole_value() {
        let words = around(r#"["Wei Hartmann","Siobhán Varga"]"#).unwrap();
        assert_eq!(words.before, r#"["Wei Hartmann",""#);
        assert_eq!((words.name.as_str(), words.after.as_str()), ("Siobhán Varga", "\"]"));
    }

    #[test]
    fn a_name_inside_an_encoding_is_found_in_the_decoded_text() {
        let words = around(r#"{"note":"ask Siobh\u00e1n Varga again"}"#).unwrap();
        assert_eq!((words.before.as_str(), words.after.as_str()), ("ask ", " again"));
        assert_eq!(around("nobody"), None);
    }
}
