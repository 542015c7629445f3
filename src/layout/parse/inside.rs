//! Parses the parts of a layout file about nested values, tables with variable names, and soft deletes.

use toml::de::{DeTable, DeValue};

use super::{LayoutReader, join, need};
use crate::layout::write::{CopyForm, Removal, StoredCopy};
use crate::layout::{Codec, Inside, TablePattern, TextPart};
use crate::memory::Entity;

impl LayoutReader<'_> {
    /// `decode`, `path`, `by`, `part`, `except`, `after`, `named` and `with`, each of which locates a value within an outer
    /// one.
    pub(super) fn inside(&mut self, table: &DeTable<'_>, prefix: &str) -> Inside {
        let mut decode = Vec::new();
        for (at, word) in self.texts(table, prefix, "decode") {
            match Codec::WORDS.iter().find(|(known, _)| *known == word) {
                Some((_, codec)) => decode.push(*codec),
                None => self.unknown(at, &join(prefix, "decode"), &word, "encoding", Codec::WORDS.iter().map(|w| w.0)),
            }
        }
        let by = self.text(table, prefix, "by");
        let part = self.part(table, prefix);
        let at = |key: &str| table.get(key).map_or(0, |node| node.span().start);
        if by.as_ref().is_some_and(String::is_empty) {
            self.error(at("by"), &join(prefix, "by"), "the text between parts is empty");
        }
        let of_parts = ["part", "except", "after", "named", "with"];
        if let (None, Some(key)) = (&by, of_parts.into_iter().find(|key| table.get(*key).is_some())) {
            self.error(at(key), &join(prefix, key), "give the separator of the parts in `by`");
        }
        let (except, after) = (self.plain_texts(table, prefix, "except"), self.plain_texts(table, prefix, "after"));
        let part = part.unwrap_or_default();
        if !after.is_empty() && !matches!(part, TextPart::At(_)) {
            self.error(at("after"), &join(prefix, "after"), "give in `part` which part it is if there is no such word");
        }
        let (named, with) = (self.plain_texts(table, prefix, "named"), self.channels(table, prefix));
        Inside { decode, path: self.text(table, prefix, "path"), by, part, except, after, named, with }
    }

    /// The channels before ids, with how many parts after each belong to its id.
    fn channels(&mut self, table: &DeTable<'_>, prefix: &str) -> Vec<(String, usize)> {
        let Some(node) = table.get("with") else { return Vec::new() };
        let words = node.get_ref().as_table().into_iter().flatten();
        let number = |node: &DeValue<'_>| node.as_integer()?.as_str().parse().ok().filter(|number| *number > 0);
        let channels: Option<Vec<(String, usize)>> =
            words.map(|(word, node)| Some((word.get_ref().to_string(), number(node.get_ref())?))).collect();
        channels.filter(|channels| !channels.is_empty()).unwrap_or_else(|| {
            let words = "is a table of words, each with the number of parts after it that belong to the id";
            self.error(node.span().start, &join(prefix, "with"), words);
            Vec::new()
        })
    }

    fn part(&mut self, table: &DeTable<'_>, prefix: &str) -> Option<TextPart> {
        let node = table.get("part")?;
        match node.get_ref() {
            DeValue::Integer(number) => match number.as_str().parse() {
                Ok(place) => return Some(TextPart::At(place)),
                Err(_) => self.error(node.span().start, &join(prefix, "part"), "parts are counted from 0"),
            },
            DeValue::String(word) if word == "any" => return Some(TextPart::Any),
            DeValue::String(start) if !start.is_empty() => return Some(TextPart::After(start.to_string())),
            _ => {
                let words = "is a number from 0, `any`, or the text that the part begins with";
                self.error(node.span().start, &join(prefix, "part"), words);
            }
        }
        None
    }

    /// Parses the additional places where values of canonical columns are stored.
    pub(super) fn copies(&mut self, entity: Entity, table: &DeTable<'_>, prefix: &str) -> Vec<StoredCopy> {
        let mut copies = Vec::new();
        for (i, (_, table)) in self.tables(table, prefix, "copies").into_iter().enumerate() {
            let key = format!("{prefix}.copies[{i}]");
            self.check_keys(table, &key, &["of", "column", "decode", "path", "form"]);
            let form = self.text(table, &key, "form").map_or(Some(CopyForm::Same), |word| {
                let known = CopyForm::WORDS.iter().find(|(name, _)| *name == word).map(|(_, form)| *form);
                if known.is_none() {
                    let at = table.get("form").map_or(0, |node| node.span().start);
                    self.unknown(at, &join(&key, "form"), &word, "form of a copy", CopyForm::WORDS.iter().map(|w| w.0));
                }
                known
            });
            let of = self.canonical_of(entity, table, &key);
            let column = self.required_text(table, &key, "column");
            let inside = self.inside(table, &key);
            if let (Some(column), Some(form)) = (column, form) {
                if of.len() > 1 && !form.is_digest() {
                    let at = table.get("of").map_or(0, |node| node.span().start);
                    self.error(
                        at,
                        &join(&key, "of"),
                        "only a digest can be a copy of several columns: give its `form`",
                    );
                }
                if form.spelling().is_some() && !inside.is_whole() {
                    let at = table.get("form").map_or(0, |node| node.span().start);
                    self.error(
                        at,
                        &join(&key, "form"),
                        "a time in another format fills its column: leave out `path` and `decode`",
                    );
                }
                copies.push(StoredCopy { of, column, inside, form });
            }
        }
        copies
    }

    /// The canonical columns of a copy: one, or a list.
    fn canonical_of(&mut self, entity: Entity, table: &DeTable<'_>, prefix: &str) -> Vec<String> {
        let (key, what) = (join(prefix, "of"), format!("column of {}", entity.title()));
        if table.get("of").is_none() {
            let at = table.keys().map(|k| k.span().start).min().unwrap_or(0);
            self.error(at, &key, "is missing");
        }
        let mut known = Vec::new();
        for (at, name) in self.texts(table, prefix, "of") {
            if entity.column(&name).is_some() {
                known.push(name);
            } else {
                self.unknown(at, &key, &name, &what, entity.columns().iter().map(|c| c.name));
            }
        }
        known
    }

    /// Parses the effect of removing a row: a word, or a table of stored columns with their new values.
    pub(super) fn removal(&mut self, table: &DeTable<'_>, prefix: &str) -> Removal {
        let key = join(prefix, "remove");
        let Some(node) = table.get("remove") else { return Removal::Delete };
        match node.get_ref() {
            DeValue::String(word) if word == "delete" => Removal::Delete,
            DeValue::String(word) if word == "empty" => Removal::Empty(Vec::new()),
            DeValue::Table(marks) => {
                if let Some(node) = marks.get("empty") {
                    self.check_keys(marks, &key, &["empty"]);
                    let columns = self.plain_texts(marks, &key, "empty");
                    if columns.is_empty() {
                        self.error(node.span().start, &join(&key, "empty"), "names the columns that are emptied");
                    }
                    return Removal::Empty(columns);
                }
                let mut set = Vec::new();
                for (name, node) in marks {
                    let now = node.get_ref().as_str() == Some("now");
                    let value = if now { None } else { self.constant(node, &join(&key, name.get_ref())) };
                    set.push((name.get_ref().to_string(), value));
                }
                Removal::Mark(set)
            }
            DeValue::String(why) => Removal::Refuse(why.to_string()),
            _ => {
                let words = "is `delete`, `empty`, `{ empty = [COLUMNS] }`, `{ COLUMN = VALUE }`, or a text that says \
                 why it is not possible";
                self.error(node.span().start, &key, words);
                Removal::Delete
            }
        }
    }

    /// Kinds of tables of any name.
    pub(super) fn patterns(&mut self, root: &DeTable<'_>) -> Vec<TablePattern> {
        let mut patterns = Vec::new();
        for (i, (at, table)) in self.tables(root, "", "pattern").into_iter().enumerate() {
            let prefix = format!("pattern[{i}]");
            self.check_keys(table, &prefix, &["name", "has", "only", "like", "unlike", "twin", "stands_for"]);
            let line = self.line(at);
            let column = |text: &String| {
                let need = need(&format!("t/{text}"), line);
                (need.column.unwrap_or_default(), need.types)
            };
            let has: Vec<_> = self.plain_texts(table, &prefix, "has").iter().map(column).collect();
            if has.is_empty() {
                self.error(at, &join(&prefix, "has"), "such a table is recognised by its columns: name them");
            }
            let only = self.boolean(table, &prefix, "only");
            let like = self.text(table, &prefix, "like").unwrap_or_else(|| "*".to_owned());
            let unlike = self.plain_texts(table, &prefix, "unlike");
            let twin = self.text(table, &prefix, "twin");
            let stands_for = self.text(table, &prefix, "stands_for");
            if let Some(name) = self.required_text(table, &prefix, "name") {
                patterns.push(TablePattern { name, has, only, like, unlike, twin, stands_for });
            }
        }
        patterns
    }
}
