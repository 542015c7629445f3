//! The tests' own PostgreSQL: each test has a database to itself, and none is left behind.

use crate::support::postgres::Database;
use sqlx::{Connection, PgConnection, Row};

async fn databases(url: &str) -> Vec<String> {
    let mut connection = PgConnection::connect(url).await.expect("connects");
    let rows = sqlx::query("SELECT datname FROM pg_database").fetch_all(&mut connection).await.expect("lists");
    rows.iter().map(|row| row.get(0)).collect()
}

#[tokio::test]
async fn each_database_is_new_and_goes_with_its_test() {
    let (Some(kept), Some(dropped)) = (Database::fresh(), Database::fresh()) else { return };
    let name = dropped.url().rsplit('/').next().expect("a name").to_owned();
    assert_ne!(kept.url(), dropped.url());
    assert!(databases(kept.url()).await.contains(&name));
    let mut busy = PgConnection::connect(dropped.url()).await.expect("connects");
    sqlx::query("CREATE TABLE left_behind (id int)").execute(&mut busy).await.expect("creates");
    drop(dropped);
    assert!(!databases(kept.url()).await.contains(&name), "{name} was left behind");
}
