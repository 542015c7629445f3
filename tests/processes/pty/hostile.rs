//! A database of the native layout in which every column of every table holds what could do harm on a terminal.

use std::path::Path;

use mnemoscope::store::bulk::NATIVE_SCHEMA;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{ConnectOptions as _, Connection as _, Row as _};

/// Stored values, each harmful in a different way.
pub const PIECES: &[&[u8]] = &[
    b"\x1b[5;31;43mcolours\x1b[8m",
    b"\x1b[2J\x1b[H\x1b[3Jcleared",
    b"\x1bcreset\x1b7\x1b8\x1bM",
    b"\x1b]52;c;bW5lbW8tcHduZWQ=\x07clipboard",
    b"\x1b]8;;http://pwned.example\x1b\\link\x1b]8;;\x1b\\",
    b"\x1b]0;pwned\x07\x1b]2;pwned\x1b\\title",
    b"\xc2\x9b5;31mc1\xc2\x9d52;c;bW5lbW8tcHduZWQ=\xc2\x9c",
    b"\x9b5;31mraw\x9d0;pwned\x9c\x90",
    "\u{202e}turned\u{2066}\u{2069}\u{200f}\u{61c}".as_bytes(),
    "zero\u{200b}\u{200d}\u{feff}\u{2060}\u{ad}width".as_bytes(),
    "tag\u{e0001}\u{e0041}\u{e007f}".as_bytes(),
    b"tab\tback\x08bell\x07del\x7fnul\0return\rbreak\nshift\x0e",
    b"broken\xff\xc3\x28\xed\xa0\x80\xf0\x9f",
    "private\u{e000}\u{f0000}\u{10fffd}\u{2028}\u{2029}".as_bytes(),
    b"\x1bP+q544e\x1b\\device\x1b_apc\x1b\\\x1b[c\x1b[6n",
    "pile\u{301}\u{301}\u{301}\u{301}\u{301}\u{301}\u{301}\u{301}\u{301}\u{301}".as_bytes(),
];

/// Rows of each table: each begins with another piece.
const ROWS: usize = PIECES.len();

/// All pieces, beginning with another one for each row.
fn text(row: usize) -> Vec<u8> {
    let mut text = Vec::new();
    for offset in 0..PIECES.len() {
        text.extend_from_slice(PIECES[(row + offset) % PIECES.len()]);
    }
    text
}

/// An id: one piece, and the row's number.
fn id(row: usize) -> Vec<u8> {
    let harmless_nul = |byte: &u8| if *byte == 0 { 0x1b } else { *byte };
    let mut id: Vec<u8> = PIECES[row % PIECES.len()].iter().map(harmless_nul).collect();
    id.extend_from_slice(format!("-{row}").as_bytes());
    id
}

fn json(text: &[u8]) -> serde_json::Value {
    String::from_utf8_lossy(text).into_owned().into()
}

/// Builds the SQL for the value of one column in one row.
fn value(column: &str, kind: &str, is_list: bool, row: usize) -> String {
    let quoted = |bytes: &[u8]| format!("CAST(X'{}' AS TEXT)", hex::encode(bytes));
    let is_time = column.ends_with("_at") || column == "last_seen";
    match column {
        "parent_id" if row == 0 => "NULL".to_owned(),
        "parent_id" | "consolidated_into" => quoted(&id(row.saturating_sub(1))),
        _ if kind == "BLOB" => "X'0000803F00000000'".to_owned(),
        _ if column == "id" || column.ends_with("_id") => quoted(&id(row)),
        _ if column.ends_with("ids") => {
            quoted(serde_json::json!([json(&id(row)), json(&id(row + 1))]).to_string().as_bytes())
        }
        // The rest may be of another type than declared, or no JSON, in some of the rows.
        _ if kind != "TEXT" && !row.is_multiple_of(3) => (row + 1).to_string(),
        _ if is_time && row % 4 < 2 => format!("'2026-06-15T10:00:{row:02}.000000Z'"),
        _ if is_list && row % 2 == 1 => {
            quoted(serde_json::json!([json(&text(row)), {"x": json(&text(row))}]).to_string().as_bytes())
        }
        _ if !is_time && row % 4 == 3 => {
            let key = String::from_utf8_lossy(&text(row)).into_owned();
            quoted(serde_json::json!({ key: json(&text(row)), "list": [json(&text(row))] }).to_string().as_bytes())
        }
        _ => quoted(&text(row)),
    }
}

/// Makes the database.
pub fn build(path: &Path) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let options = SqliteConnectOptions::new().filename(path).create_if_missing(true).foreign_keys(false);
        let mut link = options.connect().await.unwrap();
        sqlx::raw_sql(NATIVE_SCHEMA.as_str()).execute(&mut link).await.unwrap();
        for table in [
            "agents", "subjects", "episodes", "episode_embeddings", "episode_segments", "canvas_audit",
            "agent_feedback", "utility_events", "memories", "episode_memories", "agent_memory_profiles",
            "agent_memory_cases", "agent_memory_embeddings", "agent_memory_policies", "agent_memory_audit",
            "workflow_events", "memory_access",
        ] {
            fill(&mut link, table).await;
        }
        link.close().await.unwrap();
    });
}

async fn fill(link: &mut SqliteConnection, table: &str) {
    let told = sqlx::AssertSqlSafe(format!("PRAGMA table_info({table})"));
    let columns = sqlx::query(told).fetch_all(&mut *link).await.unwrap();
    for row in 0..ROWS {
        let values: Vec<String> = columns
            .iter()
            .map(|column| {
                let default: Option<String> = column.get("dflt_value");
                value(column.get("name"), column.get("type"), default.as_deref() == Some("'[]'"), row)
            })
            .collect();
        let insert = format!("INSERT INTO {table} VALUES ({})", values.join(","));
        sqlx::query(sqlx::AssertSqlSafe(insert)).execute(&mut *link).await.unwrap();
    }
}
