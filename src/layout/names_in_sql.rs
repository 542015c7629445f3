//! Checks the tables and columns named in an SQL text of a layout against those of a database.

use std::collections::BTreeMap;

use super::{Catalog, CatalogTable};

/// Words that may follow a table's name without being an alias.
const NO_ALIAS: &[&str] = &[
    "on", "using", "where", "join", "left", "right", "full", "inner", "outer", "cross", "natural", "group", "order",
    "having", "limit", "union", "except", "intersect", "window", "and", "or", "indexed", "not",
];

/// Hidden columns of every table.
const HIDDEN: &[&str] = &["rowid", "oid", "_rowid_", "ctid", "xmin"];

/// Returns the first table or column in an SQL text that the database lacks. `main` is the table with the alias `t`, if
/// there is one. Names defined by the text itself, and those in other schemas, count as present.
pub(super) fn lacking(sql: &str, main: Option<&CatalogTable>, catalog: &Catalog) -> Option<String> {
    let words = words(sql);
    if words.iter().any(|word| word.eq_ignore_ascii_case("with")) {
        return None;
    }
    let at = |n: usize| words.get(n).map_or("", String::as_str);
    let mut aliases: BTreeMap<&str, Option<&CatalogTable>> = main.map(|table| ("t", Some(table))).into_iter().collect();
    for (n, word) in words.iter().enumerate() {
        let leads = word.eq_ignore_ascii_case("join")
            || word.eq_ignore_ascii_case("from") && !at(n.wrapping_sub(1)).eq_ignore_ascii_case("distinct");
        let name = at(n + 1);
        if !leads
            || !is_name(name)
            || matches!(at(n + 2), "." | "(")
            || name.starts_with("pg_")
            || name.starts_with("sqlite_")
        {
            continue;
        }
        let Some(table) = catalog.table(name) else { return Some(format!("table `{name}` does not exist")) };
        let next = if at(n + 2).eq_ignore_ascii_case("as") { at(n + 3) } else { at(n + 2) };
        let has_alias = is_name(next) && !NO_ALIAS.iter().any(|word| next.eq_ignore_ascii_case(word));
        let known = aliases.entry(if has_alias { next } else { name }).or_insert(Some(table));
        // An alias of two tables in two parts of the text is ambiguous.
        *known = known.filter(|known| known.title() == table.title());
    }
    words.windows(3).find_map(|three| {
        let [alias, dot, column] = three else { return None };
        let table = aliases.get(alias.as_str()).copied().flatten().filter(|_| dot == "." && is_name(column))?;
        let is_there = table.column(column).is_some() || HIDDEN.iter().any(|known| column.eq_ignore_ascii_case(known));
        (!is_there).then(|| format!("column `{column}` is not in {}", table.title()))
    })
}

/// The columns of the table with the alias `t` in an SQL text.
pub(super) fn columns_in(sql: &str) -> Vec<String> {
    let words = words(sql);
    let named = words.windows(3).filter(|three| three[0] == "t" && three[1] == "." && is_name(&three[2]));
    named.map(|three| three[2].clone()).collect()
}

fn is_name(word: &str) -> bool {
    word.starts_with(|c: char| c.is_alphabetic() || c == '_')
}

/// The names and signs of an SQL text, without its literals.
fn words(sql: &str) -> Vec<String> {
    let (mut words, mut letters) = (Vec::new(), sql.chars().peekable());
    while let Some(c) = letters.next() {
        if c == '\'' {
            letters.by_ref().find(|c| *c == '\'');
            words.push("'".to_owned());
        } else if c == '"' {
            words.push(letters.by_ref().take_while(|c| *c != '"').collect());
        } else if c.is_alphanumeric() || c == '_' {
            let mut word = String::from(c);
            while let Some(c) = letters.next_if(|c| c.is_alphanumeric() || *c == '_') {
                word.push(c);
            }
            words.push(word);
        } else if !c.is_whitespace() {
            words.push(c.to_string());
        }
    }
    words
}
