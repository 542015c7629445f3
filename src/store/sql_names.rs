//! Tables and columns that a piece of SQL names, to determine whether our role may read them.

/// A word of SQL other than numbers and strings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SqlName {
    /// Position in the text: start, and end (exclusive).
    pub place: (usize, usize),
    /// Dot-separated parts of the name, without quotes.
    pub parts: Vec<String>,
    /// The words before it, the nearest first; four suffice for `LEFT OUTER JOIN LATERAL`.
    before: [String; 4],
}

/// A table that is read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadTable {
    /// Position of the table's name in the text.
    pub place: (usize, usize),
    /// Name of the table as written, without quotes.
    pub table: String,
    /// Alias, which prefixes its columns.
    pub alias: String,
    /// Whether an alias follows its name.
    pub renamed: bool,
    /// True in an outer join: rows are returned even without a row of this table.
    pub outer: bool,
}

const KEYWORDS: &[&str] = &[
    "where", "on", "using", "left", "right", "full", "inner", "cross", "natural", "join", "group", "order", "having",
    "limit", "offset", "union", "except", "intersect", "window", "fetch", "for", "and", "or", "lateral", "tablesample",
];

/// The names in a piece of SQL, in order, without those in strings and comments.
pub fn names(sql: &str) -> Vec<SqlName> {
    let bytes = sql.as_bytes();
    let word = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'$') || b >= 0x80;
    let mut names: Vec<SqlName> = Vec::new();
    let mut before = <[String; 4]>::default();
    let mut joined = false;
    let mut at = 0;
    while at < bytes.len() {
        let begins = at;
        let part = match bytes[at] {
            b'\'' => {
                at = after_quote(bytes, at, b'\'');
                None
            }
            b'-' if bytes.get(at + 1) == Some(&b'-') => {
                at += sql[at..].find('\n').unwrap_or(sql.len() - at);
                continue;
            }
            b'"' => {
                at = after_quote(bytes, at, b'"');
                Some(sql[begins..at].trim_matches('"').replace("\"\"", "\""))
            }
            b if b.is_ascii_digit() => {
                at += bytes[at..].iter().take_while(|b| word(**b)).count();
                None
            }
            b if word(b) => {
                at += bytes[at..].iter().take_while(|b| word(**b)).count();
                Some(sql[begins..at].to_ascii_lowercase())
            }
            b if b.is_ascii_whitespace() => {
                at += 1;
                continue;
            }
            b'.' if !names.is_empty() => {
                joined = names.last().is_some_and(|n| n.place.1 == at);
                at += 1;
                continue;
            }
            b => {
                at += 1;
                before.rotate_right(1);
                before[0] = char::from(b).to_string();
                joined = false;
                continue;
            }
        };
        match (part, names.last_mut()) {
            (Some(part), Some(name)) if joined => {
                name.parts.push(part);
                name.place.1 = at;
            }
            (part, _) => {
                let text = part.clone().unwrap_or_default();
                if let Some(part) = part {
                    names.push(SqlName { place: (begins, at), parts: vec![part], before: before.clone() });
                }
                before.rotate_right(1);
                before[0] = text;
            }
        }
        joined = false;
    }
    names
}

/// The first byte after a quoted piece; a doubled quote is part of it.
fn after_quote(bytes: &[u8], begins: usize, quote: u8) -> usize {
    let mut at = begins + 1;
    while at < bytes.len() {
        match (bytes[at] == quote, bytes.get(at + 1) == Some(&quote)) {
            (true, true) => at += 2,
            (true, false) => return at + 1,
            (false, _) => at += 1,
        }
    }
    at
}

/// The tables that a piece of SQL reads: names after `FROM` or `JOIN`, and the first one if the text follows a `FROM`.
pub fn reads(sql: &str, after_from: bool) -> Vec<ReadTable> {
    let names = names(sql);
    let first = |name: &SqlName| after_from && name.before[0].is_empty() && name.place.0 == names[0].place.0;
    let begins = |name: &SqlName| matches!(name.before[0].as_str(), "from" | "join" | "only") || first(name);
    let mut reads = Vec::new();
    for (at, name) in names.iter().enumerate().filter(|(_, name)| begins(name)) {
        let nothing_between =
            |next: &&SqlName| sql[name.place.1..next.place.0].trim().is_empty() && next.parts.len() == 1;
        let mut after = names[at + 1..].iter().take(2);
        let mut alias = after.next().filter(nothing_between);
        if alias.is_some_and(|next| next.parts[0] == "as") {
            alias = after.next();
        }
        let alias = alias.filter(|next| !KEYWORDS.contains(&next.parts[0].as_str())).map(|next| next.parts[0].clone());
        let outer = name.before[0] == "join"
            && (name.before[1] == "left" || name.before[1] == "outer" && name.before[2] == "left");
        reads.push(ReadTable {
            place: name.place,
            table: name.parts.join("."),
            renamed: alias.is_some(),
            alias: alias.or(name.parts.last().cloned()).unwrap_or_default(),
            outer,
        });
    }
    reads
}

/// The names after a closing bracket: aliases of subqueries and of values.
pub fn derived(sql: &str) -> Vec<String> {
    let after = |name: &&SqlName| name.before[0] == ")" || name.before[0] == "as" && name.before[1] == ")";
    names(sql).iter().filter(after).map(|name| name.parts[0].clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tables(sql: &str, after_from: bool) -> Vec<(String, String, bool)> {
        reads(sql, after_from).into_iter().map(|r| (r.table, r.alias, r.outer)).collect()
    }

    fn is(table: &str, alias: &str, outer: bool) -> (String, String, bool) {
        (table.to_owned(), alias.to_owned(), outer)
    }

    #[test]
    fn tables_are_found_with_their_aliases() {
        assert_eq!(
            tables("agent_memory_cases t LEFT JOIN agent_memory_profiles AS p ON p.id = t.profile_id", true),
            [is("agent_memory_cases", "t", false), is("agent_memory_profiles", "p", true)]
        );
        assert_eq!(
            tables("(SELECT count(*) FROM heart.episodes e WHERE e.note = 'from users')", false),
            [is("heart.episodes", "e", false)]
        );
        assert_eq!(
            tables("EXISTS (SELECT 1 FROM \"Odd Name\" WHERE true)", false),
            [is("Odd Name", "Odd Name", false)]
        );
        assert_eq!(
            tables("(SELECT id FROM a UNION SELECT id FROM b) t", true),
            [is("a", "a", false), is("b", "b", false)]
        );
        assert_eq!(tables("trim(t.first || 'it''s from x')", false), []);
    }

    #[test]
    fn names_keep_their_parts() {
        let found: Vec<String> =
            names("s.user_id = t.\"Session\" -- and x.y\n+ 12").iter().map(|n| n.parts.join("/")).collect();
        assert_eq!(found, ["s/user_id", "t/Session"]);
    }
}
