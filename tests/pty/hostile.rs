//! A database in which every text means harm.

use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{AssertSqlSafe, Connection as _, Row as _, SqliteConnection};
use std::path::Path;

/// Texts that act on a terminal, deceive the reader or are no text.
pub const HARMS: &[&[u8]] = &[
    b"\x1b[31;5mred\x1b[0m",
    b"\x1b]52;c;cHduZWQ=\x07clip",
    b"\x1b]0;pwned\x1b\\title",
    b"\x1b[2J\x1b[1;1Htop",
    b"\x1bcreset",
    b"\x1bP$q\"p\x1b\\dcs",
    b"\x1b[6nask",
    "\u{9b}31mcsi\u{9d}52;c;cHduZWQ=\u{9c}".as_bytes(),
    "\u{202e}bidi\u{202c}\u{2066}isolate\u{2069}\u{200f}".as_bytes(),
    "zero\u{200b}\u{200d}\u{2060}\u{feff}\u{ad}width".as_bytes(),
    "tags\u{e0001}\u{e0041}\u{e007f}".as_bytes(),
    b"\ttab\rreturn\x08back\x07bell\x0bvertical\x0cfeed",
    b"nul\0nul\x7fdel",
    "\u{2028}line\u{2029}paragraph\u{85}next".as_bytes(),
    "pile\u{301}\u{301}\u{301}\u{301}\u{301}\u{301}\u{301}\u{301}\u{301}".as_bytes(),
    "\u{e000}private\u{fffe}none\u{fff9}ruby".as_bytes(),
    b"bad\xff\xfe\xc3\x28\xed\xa0\x80utf",
    b"bare\x9b31m\x9dc1",
    "\u{fe0f}\u{200d}\u{1f3fb}joined".as_bytes(),
];

/// Spoils every text in a native database: in a third of the rows what stands there is preceded by harm, in a third
/// values are JSON whose strings mean harm, a third stays. Ids, wherever they are named, get harm appended when they end
/// in certain letters, so that rows still find each other.
pub async fn spoil(database: &Path) {
    let options = SqliteConnectOptions::new().filename(database).foreign_keys(false);
    let mut link = SqliteConnection::connect_with(&options).await.unwrap();
    run(&mut link, "CREATE TABLE \"evil \u{1b}]0;pwned\u{7} \u{202e} \u{9b}31m table\" (\"a\u{1b}c\" TEXT)", &[]).await;
    let triggers = rows(&mut link, "SELECT name, 'x' FROM sqlite_master WHERE type = 'trigger'").await;
    for (trigger, _) in triggers {
        run(&mut link, &format!("DROP TRIGGER \"{trigger}\""), &[]).await;
    }
    // What an id holds can be named on a command line: UTF-8 without NUL.
    let nameable: Vec<&[u8]> =
        HARMS.iter().copied().filter(|h| std::str::from_utf8(h).is_ok() && !h.contains(&0)).collect();
    let columns = "SELECT m.name, c.name FROM sqlite_master m, pragma_table_info(m.name) c
        WHERE m.type = 'table' AND c.type = 'TEXT' AND m.name NOT LIKE 'evil%' AND m.sql NOT LIKE '%WITHOUT ROWID%'";
    for (at, (table, column)) in rows(&mut link, columns).await.into_iter().enumerate() {
        if column == "id" || column.ends_with("_id") {
            let sql = format!(
                "UPDATE OR IGNORE \"{table}\" SET \"{column}\" = \"{column}\" || CAST(?1 AS TEXT)
                 WHERE unicode(substr(\"{column}\", -1)) % 3 = 0"
            );
            run(&mut link, &sql, &nameable.concat()).await;
            continue;
        }
        for flavour in 0..3 * HARMS.len() {
            // Every row and column begins with another harm.
            let mut harms = HARMS.to_vec();
            harms.rotate_left((at + flavour) % HARMS.len());
            let (sql, value) = match flavour % 3 {
                0 => ("CAST(?1 AS TEXT) || coalesce(\"{column}\", '')", harms.concat()),
                1 => ("CAST(?1 AS TEXT)", json(&harms, flavour)),
                _ => continue,
            };
            let sql = sql.replace("{column}", &column);
            let sql = format!(
                "UPDATE OR IGNORE \"{table}\" SET \"{column}\" = {sql} WHERE rowid % {} = {flavour}",
                3 * HARMS.len()
            );
            run(&mut link, &sql, &value).await;
        }
    }
    link.close().await.unwrap();
}

/// JSON whose names and strings mean harm, written with escapes or as it is.
fn json(harms: &[&[u8]], flavour: usize) -> Vec<u8> {
    let texts: Vec<String> = harms.iter().map(|harm| String::from_utf8_lossy(harm).into_owned()).collect();
    let object: serde_json::Map<_, _> = texts.iter().map(|text| (text.clone(), text.as_str().into())).collect();
    let value = match flavour / 3 % 2 {
        0 => serde_json::Value::Object(object),
        _ => serde_json::Value::from(texts),
    };
    value.to_string().into_bytes()
}

async fn rows(link: &mut SqliteConnection, sql: &str) -> Vec<(String, String)> {
    let rows = sqlx::query(AssertSqlSafe(sql.to_owned())).fetch_all(link).await.unwrap();
    rows.iter().map(|row| (row.get(0), row.get(1))).collect()
}

async fn run(link: &mut SqliteConnection, sql: &str, value: &[u8]) {
    let query = sqlx::query(AssertSqlSafe(sql.to_owned()));
    let query = if value.is_empty() { query } else { query.bind(value) };
    query.execute(link).await.unwrap_or_else(|e| panic!("{sql}: {e}"));
}
