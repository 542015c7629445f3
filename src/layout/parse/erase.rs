//! Parses the parts of a layout file about erasing a person: `[[handle]]`, `[[erase]]`, `[account]`.

use toml::de::{DeTable, DeValue};

use super::{LayoutReader, Node, join};
use crate::layout::erase::{
    Account, EraseAction, EraseRule, HandleColumn, HandleValue, HeldMember, Recompute, UnownedRows,
};

pub(super) const RULE_KEYS: &[&str] = &[
    "table", "column", "decode", "path", "by", "part", "except", "after", "named", "with", "of", "of_layout", "to",
    "holds", "when", "action", "columns", "value", "account", "erasure_only", "recompute", "never_empty", "requires",
    "forbids",
];

impl LayoutReader<'_> {
    pub(super) fn handles(&mut self, root: &DeTable<'_>) -> Vec<HandleColumn> {
        let mut handles = Vec::new();
        for (i, (at, table)) in self.tables(root, "", "handle").into_iter().enumerate() {
            let prefix = format!("handle[{i}]");
            self.check_keys(table, &prefix, &["table", "id", "column", "sql", "kind", "requires"]);
            let name = self.required_text(table, &prefix, "table");
            let id = self.required_text(table, &prefix, "id");
            let kind = self.required_text(table, &prefix, "kind");
            let column = self.text(table, &prefix, "column");
            let sql = table.get("sql").and_then(|node| self.sql(node, &join(&prefix, "sql")));
            let requires = self.needs(table, &prefix, "requires");
            let value = match (column, sql) {
                (Some(column), None) => HandleValue::Column(column),
                (None, Some(sql)) => HandleValue::Sql(sql),
                _ => {
                    self.error(at, &prefix, "give exactly one of `column` and `sql`");
                    continue;
                }
            };
            if let (Some(table), Some(id), Some(kind)) = (name, id, kind) {
                handles.push(HandleColumn { table, id, value, kind, requires, line: self.line(at) });
            }
        }
        handles
    }

    pub(super) fn rules(&mut self, root: &DeTable<'_>) -> Vec<EraseRule> {
        let mut rules = Vec::new();
        for (i, (at, table)) in self.tables(root, "", "erase").into_iter().enumerate() {
            let prefix = format!("erase[{i}]");
            rules.extend(self.rule(table, &prefix, at));
        }
        rules
    }

    fn rule(&mut self, table: &DeTable<'_>, prefix: &str, at: usize) -> Option<EraseRule> {
        self.check_keys(table, prefix, RULE_KEYS);
        let name = self.required_text(table, prefix, "table");
        let mut columns = self.plain_texts(table, prefix, "column").into_iter();
        let column = columns.next();
        if column.is_none() {
            self.error(at, &join(prefix, "column"), "is missing");
        }
        let action = self.word(table, prefix, "action", "action", EraseAction::WORDS).unwrap_or(EraseAction::Delete);
        let recompute = self.word(table, prefix, "recompute", "aggregate", Recompute::WORDS);
        let of = self.text(table, prefix, "of");
        let mut named = self.plain_texts(table, prefix, "to").into_iter();
        let to = named.next();
        let (columns, named): (Vec<String>, Vec<String>) = (columns.collect(), named.collect());
        if columns.len() != named.len() || of.is_none() && !columns.is_empty() {
            let words = "several columns together name a row of `of`: give as many columns of it in `to`";
            self.error(at, &join(prefix, "to"), words);
            return None;
        }
        if of.is_none()
            && (to.is_some() || matches!(action, EraseAction::Reparent | EraseAction::Remove | EraseAction::Stale))
        {
            self.error(at, &join(prefix, "of"), "give the table whose erased rows the column refers to");
            return None;
        }
        let (inside, of_layout) = (self.inside(table, prefix), self.text(table, prefix, "of_layout"));
        if of_layout.is_some() && (of.is_some() || action != EraseAction::Delete || !inside.is_whole()) {
            self.error(
                at,
                &join(prefix, "of_layout"),
                "applies to rows whose whole column is an id of a row elsewhere",
            );
            return None;
        }
        let holds = self.held(table, prefix);
        if holds.is_some() && (of.is_none() || action != EraseAction::Delete) {
            self.error(at, &join(prefix, "holds"), "applies to rows that are deleted with one of `of`");
            return None;
        }
        Some(EraseRule {
            table: name?,
            column: column?,
            inside,
            of,
            of_layout,
            to,
            also: columns.into_iter().zip(named).collect(),
            holds,
            when: table.get("when").and_then(|node| self.sql(node, &join(prefix, "when"))),
            action,
            columns: self.texts(table, prefix, "columns").into_iter().map(|(_, text)| text).collect(),
            value: table.get("value").and_then(|node| self.constant(node, &join(prefix, "value"))),
            account: self.boolean(table, prefix, "account"),
            erasure_only: self.boolean(table, prefix, "erasure_only"),
            recompute,
            never_empty: self.texts(table, prefix, "never_empty").into_iter().map(|(_, text)| text).collect(),
            requires: self.needs(table, prefix, "requires"),
            forbids: self.needs(table, prefix, "forbids"),
            line: self.line(at),
        })
    }

    fn held(&mut self, table: &DeTable<'_>, prefix: &str) -> Option<HeldMember> {
        let (node, prefix) = (table.get("holds")?, join(prefix, "holds"));
        let table = self.table(node, &prefix)?;
        self.check_keys(table, &prefix, &["column", "path", "key", "value"]);
        let [column, path, key, value] =
            ["column", "path", "key", "value"].map(|name| self.required_text(table, &prefix, name));
        Some(HeldMember { column: column?, path: path?, key: key?, value: value? })
    }

    fn word<T: Copy>(
        &mut self,
        table: &DeTable<'_>,
        prefix: &str,
        key: &str,
        what: &str,
        words: &[(&'static str, T)],
    ) -> Option<T> {
        let word = self.text(table, prefix, key)?;
        if let Some((_, found)) = words.iter().find(|(known, _)| *known == word) {
            return Some(*found);
        }
        let at = table.get(key).map_or(0, |node| node.span().start);
        self.unknown(at, &join(prefix, key), &word, what, words.iter().map(|(known, _)| *known));
        None
    }

    /// Reads tables, each alone or with a condition for its rows.
    pub(super) fn unowned(&mut self, root: &DeTable<'_>) -> Vec<(usize, UnownedRows)> {
        let nodes: Vec<&Node<'_>> = match root.get("unowned").map(|node| (node, node.get_ref())) {
            None => Vec::new(),
            Some((_, DeValue::Array(items))) => items.iter().collect(),
            Some((node, _)) => vec![node],
        };
        let mut unowned = Vec::new();
        for node in nodes {
            let at = node.span().start;
            let rows = match node.get_ref().as_str() {
                Some(name) => Some(UnownedRows { table: name.to_owned(), when: None }),
                None => self.unowned_rows(node),
            };
            unowned.extend(rows.map(|rows| (at, rows)));
        }
        unowned
    }

    fn unowned_rows(&mut self, node: &Node<'_>) -> Option<UnownedRows> {
        let table = self.table(node, "unowned")?;
        self.check_keys(table, "unowned", &["table", "when"]);
        let when = table.get("when").and_then(|node| self.sql(node, "unowned.when"));
        Some(UnownedRows { table: self.required_text(table, "unowned", "table")?, when })
    }

    pub(super) fn account(&mut self, root: &DeTable<'_>) -> Option<Account> {
        let node = root.get("account")?;
        let table = self.table(node, "account")?;
        self.check_keys(table, "account", &["table", "id", "nameless"]);
        let mut nameless = Vec::new();
        if let Some(columns) = table.get("nameless").and_then(|n| self.table(n, "account.nameless")) {
            for (name, node) in columns {
                let key = join("account.nameless", name.get_ref());
                nameless.extend(self.constant(node, &key).map(|value| (name.get_ref().to_string(), value)));
            }
        }
        Some(Account {
            table: self.required_text(table, "account", "table")?,
            id: self.required_text(table, "account", "id")?,
            nameless,
            line: self.line(node.span().start),
        })
    }
}
