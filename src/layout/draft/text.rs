//! Writes a draft as a layout file: every guess has a comment with its reason and certainty.

use std::fmt::Write as _;

use super::owner::{self, OwnerGuess, PeopleTable};
use super::source::{self, ColumnGuess, ColumnReading, DraftedSource, KnownTable, ReadPlace, VectorGuess};
use super::{DraftSql, SampledTable, Sure};
use crate::memory::Entity;
use crate::memory::text_check::is_hidden;

/// Letters of a comment.
const COMMENT: usize = 200;

/// Drafts a layout of this name for a database with these sampled tables; `title` is one line for people.
///
/// # Errors
/// A message with the tables examined if none could hold memories, messages or sessions.
pub fn draft(name: &str, title: &str, tables: &[SampledTable], sql: &dyn DraftSql) -> Result<String, String> {
    let mut known: Vec<KnownTable<'_>> = tables.iter().map(|table| KnownTable::of(table, sql.engine())).collect();
    let has_people = known.iter().any(|table| table.lists_people() && !table.words.tenants);
    known.iter_mut().for_each(|table| table.has_people = has_people);
    let known = known;
    let sources = source::choose(&known);
    if sources.is_empty() {
        return Err(format!(
            "none of the {} tables contains texts that could be memories or messages; `tables` lists them all",
            tables.len()
        ));
    }
    let owners = owner::owners(&known);
    let mut out = String::new();
    head(&mut out, name, title, &sources, sql);
    for source in &sources {
        write_source(&mut out, source, &owners, sql);
    }
    write_owners(&mut out, &owners, &owner::people(&known), sql);
    write_rest(&mut out, &known, &sources);
    Ok(out)
}

/// A TOML string; invisible characters are escaped.
fn quoted(text: &str) -> String {
    if !text.chars().any(is_hidden) {
        return toml::Value::String(text.to_owned()).to_string();
    }
    let spelled = |c: char| match c {
        '"' | '\\' => format!("\\{c}"),
        c if c.is_control() || is_hidden(c) => format!("\\U{:08X}", c as u32),
        c => c.to_string(),
    };
    format!("\"{}\"", text.chars().map(spelled).collect::<String>())
}

/// One comment line, whatever characters the text contains.
fn comment(text: &str) -> String {
    let plain: String = text.chars().map(|c| if c.is_control() || is_hidden(c) { ' ' } else { c }).collect();
    match plain.char_indices().nth(COMMENT) {
        Some((end, _)) => format!("# {}…", &plain[..end]),
        None => format!("# {plain}"),
    }
}

fn head(out: &mut String, name: &str, title: &str, sources: &[DraftedSource<'_>], sql: &dyn DraftSql) {
    let mut needs: Vec<String> = Vec::new();
    for source in sources.iter().take(4) {
        let table = &source.known.table.name;
        needs.push(match &source.text {
            // A slash parts table and column, a colon its types: other names are left out.
            Some(column) if !column.contains(['/', ':']) => quoted(&format!("{table}/{column}")),
            _ => quoted(table),
        });
    }
    let _ = writeln!(
        out,
        "# A draft: guessed from names, types, keys and sampled rows. Each guess says why, and how sure: high, medium, \
         low.\n# Read it, correct it, check it with `mnemoscope -d DATABASE layouts check FILE`, and check what it \
         shows:\n# `mnemoscope -d DATABASE --layout FILE list ENTITY`. Nothing can be changed or erased until \
         `writable` is true."
    );
    let _ = writeln!(out, "name = {}", quoted(name));
    let _ = writeln!(out, "title = {}", quoted(title));
    let _ = writeln!(out, "engines = [{}]", quoted(sql.engine().name()));
    let _ = writeln!(out, "writable = false");
    let _ = writeln!(out, "requires = [{}]", needs.join(", "));
    if sources.iter().any(|source| source.entity == Entity::Memory) {
        let _ = writeln!(out, "recall = \"memory\" # sessions are conversations, in which the memories are recalled");
    }
}

fn write_source(out: &mut String, source: &DraftedSource<'_>, owners: &[OwnerGuess], sql: &dyn DraftSql) {
    let table = source.known.table;
    let entity = source.entity.name();
    let why = format!("{}: {} ({}; {} rows sampled)", table.name, source.why, source.sure.word(), table.rows);
    let _ = writeln!(out, "\n{}\n[[{entity}]]\ntable = {}", comment(&why), quoted(&table.name));
    match &source.vectors {
        Some(VectorGuess::Own(column)) => {
            let _ = writeln!(out, "vector = {} # high: the column holds vectors", quoted(column));
        }
        Some(VectorGuess::Beside { table, key, column }) => {
            let (table, key, column) = (quoted(table), quoted(key), quoted(column));
            let _ = writeln!(
                out,
                "vector = {{ table = {table}, key = {key}, column = {column} }} # medium: vectors that refer to its rows"
            );
        }
        None => {}
    }
    let _ = writeln!(out, "[{entity}.columns]");
    for guess in &source.columns {
        let _ = writeln!(
            out,
            "{}\n{} = {}",
            comment(&format!("{}: {}", guess.sure.word(), guess.why)),
            guess.name,
            value(guess, sql)
        );
    }
    for owner in owners.iter().filter(|o| o.table == table.name && o.sure > Sure::Low) {
        let path = owner.path.as_ref().map(|path| format!(", at {path}")).unwrap_or_default();
        let _ = writeln!(
            out,
            "{}",
            comment(&format!("person: {}{path} ({}): see [[erase]] below", owner.column, owner.sure.word()))
        );
    }
    if !source.unused.is_empty() {
        let _ = writeln!(out, "# Columns that no guess uses:");
    }
    for unused in &source.unused {
        let _ = writeln!(out, "{}", comment(&format!("  {unused}")));
    }
}

fn value(guess: &ColumnGuess, sql: &dyn DraftSql) -> String {
    match &guess.ways[..] {
        [one] => way(one, sql),
        several => format!("[{}]", several.iter().map(|one| way(one, sql)).collect::<Vec<_>>().join(", ")),
    }
}

fn way(way: &ColumnReading, sql: &dyn DraftSql) -> String {
    let place = match &way.place {
        // A dot would be taken for an alias.
        ReadPlace::Column(name) if name.contains('.') => ("sql", sql.column(name)),
        ReadPlace::Column(name) => ("column", name.clone()),
        ReadPlace::RowNumber(text) => ("sql", text.clone()),
        ReadPlace::Tuple(columns) => ("sql", sql.tuple(columns)),
        ReadPlace::Uuid(column, version) => ("sql", sql.uuid_time(column, *version)),
        ReadPlace::KeyOf(reference, key) => ("sql", sql.key_of(reference, key)),
        ReadPlace::Tagged(table, column) => ("sql", sql.tagged(table, column)),
        ReadPlace::Joined(columns) => ("sql", sql.joined(columns)),
        ReadPlace::Fields(fields) => {
            let fields: Vec<String> =
                fields.iter().map(|(name, column)| format!("{name} = {}", quoted(column))).collect();
            return format!("{{ fields = {{ {} }} }}", fields.join(", "));
        }
    };
    let path = way.path.as_ref().map(|path| format!(", path = {}", quoted(path))).unwrap_or_default();
    let part =
        way.part.map(|(by, part)| format!(", by = {}, part = {part}", quoted(&by.to_string()))).unwrap_or_default();
    let stored = way.stored.map(|stored| format!(", stored = {}", quoted(stored))).unwrap_or_default();
    match place {
        ("column", name) if path.is_empty() && part.is_empty() && stored.is_empty() => quoted(&name),
        (key, text) => format!("{{ {key} = {}{path}{part}{stored} }}", quoted(&text)),
    }
}

fn write_owners(out: &mut String, owners: &[OwnerGuess], people: &[PeopleTable], sql: &dyn DraftSql) {
    let _ = writeln!(
        out,
        "\n# Owners of rows: one rule for each table. Less certain ones are commented out: remove the `#` if they are \
         correct."
    );
    for list in people {
        let (table, id) = (quoted(&list.table), quoted(&list.id));
        let _ = writeln!(out, "\n{}", comment(&format!("{}: a list of people, by its name (medium)", list.table)));
        let name = list.handles.iter().find(|(_, kind)| *kind == "name").or(list.handles.first());
        let name = name.map(|(column, _)| format!("name = {}\n", quoted(column))).unwrap_or_default();
        let _ = write!(out, "[[subject]]\ntable = {table}\n[subject.columns]\nid = {id}\n{name}");
        for (column, kind) in &list.handles {
            let (column, kind) = (quoted(column), quoted(kind));
            let _ = write!(out, "\n[[handle]]\ntable = {table}\nid = {id}\ncolumn = {column}\nkind = {kind}\n");
        }
        let _ = write!(out, "\n[[erase]]\ntable = {table}\ncolumn = {id}\naccount = true\n");
    }
    let names_somebody = |o: &&OwnerGuess| o.path.is_none() && o.part.is_none() && o.sure > Sure::Low && o.rows > 0;
    let columns = owners.iter().filter(names_somebody);
    if let (Some(most), true) = (columns.max_by_key(|o| o.rows), people.is_empty()) {
        let (table, column) = (quoted(&most.table), quoted(&most.column));
        let _ = writeln!(out, "\n{}", comment(&format!("no table lists people: those that {} names", most.table)));
        let from = quoted(&sql.distinct(&most.table, &most.column));
        let _ = write!(
            out,
            "[[subject]]\nfrom = {from}\ntables = {{ t = {table} }}\n[subject.columns]\nid = {{ sql = \"t.id\" }}\n"
        );
        let _ = write!(out, "\n[[handle]]\ntable = {table}\nid = {column}\ncolumn = {column}\nkind = \"id\"\n");
    }
    for owner in owners {
        let of_table = owners.iter().filter(|other| other.table == owner.table);
        let is_owner = of_table.min_by_key(|other| other.rank()) == Some(owner);
        let sign = if owner.sure == Sure::Low || !is_owner { "# " } else { "" };
        let path = owner.path.as_ref().map(|path| format!("{sign}path = {}\n", quoted(path))).unwrap_or_default();
        let part =
            owner.part.map(|(by, part)| format!("{sign}by = {}\n{sign}part = {part}\n", quoted(&by.to_string())));
        let part = part.unwrap_or_default();
        let _ = writeln!(out, "\n{}", comment(&format!("{}: {}", owner.sure.word(), owner.why)));
        if !is_owner {
            let _ = writeln!(
                out,
                "# With this rule, rows of the owner that another rule finds are deleted with this \
                 person, too."
            );
        }
        let (table, column) = (quoted(&owner.table), quoted(&owner.column));
        let _ = write!(out, "{sign}[[erase]]\n{sign}table = {table}\n{sign}column = {column}\n{path}{part}");
    }
    if owners.is_empty() && people.is_empty() {
        let _ = writeln!(out, "# Nothing names a person here: if rows have owners, add the rules by hand.");
    }
}

fn write_rest(out: &mut String, known: &[KnownTable<'_>], sources: &[DraftedSource<'_>]) {
    let rest: Vec<&KnownTable<'_>> = known
        .iter()
        .filter(|k| !k.lists_people() && !sources.iter().any(|s| s.known.table.name == k.table.name))
        .collect();
    if rest.is_empty() {
        return;
    }
    let _ = writeln!(out, "\n# Tables that no guess uses:");
    for table in rest {
        let columns: Vec<&str> = table.table.columns.iter().map(|c| c.name.as_str()).collect();
        let _ = writeln!(out, "{}", comment(&format!("  {} ({})", table.table.name, columns.join(", "))));
    }
}
