//! The table that says that a target is unfinished. It holds what the move needs when it
//! continues: which source it is of, and the definitions of the indexes that are left out while
//! rows are copied, since an index is built in half the time once all rows are there.

use sha2::{Digest, Sha256};
use tokio::sync::watch;

use super::rows::Rows;
use super::side::Side;
use super::tables::Table;
use super::{MoveError, Progress, Step, start};
use crate::db::dialect::Dialect;
use crate::db::migrate::UNFINISHED_MOVE;
use crate::db::sql::quoted;
use crate::db::{Db, sql};
use crate::error::Result as DbResult;

/// What differs between services, and changes with each start of one.
const IDENTIFYING: [&str; 4] = ["signing_keys", "task_runners", "tasks", "upload_clocks"];

const SOURCE: &str = "source";
const INDEX: &str = "index";

/// Creates the table in a database without a schema.
pub async fn create(db: &Db) -> DbResult<()> {
    let mut tx = db.begin().await?;
    sql("CREATE TABLE ")
        .push(UNFINISHED_MOVE)
        .push(" (kind TEXT NOT NULL, value TEXT NOT NULL)")
        .run(&mut tx)
        .await?;
    tx.commit_unaudited("a move begins").await
}

/// Removes the table: a service may start on the database.
pub async fn remove(target: &mut Side) -> Result<(), MoveError> {
    target.run(format!("DROP TABLE {UNFINISHED_MOVE}")).await
}

async fn values(target: &mut Side, kind: &str) -> Result<Vec<String>, MoveError> {
    let rows: Vec<(String,)> = target
        .all(format!(
            "SELECT value FROM {UNFINISHED_MOVE} WHERE kind = '{kind}'"
        ))
        .await?;
    Ok(rows.into_iter().map(|(value,)| value).collect())
}

async fn add(target: &mut Side, kind: &str, value: &str) -> Result<(), MoveError> {
    let value = value.replace('\'', "''");
    target
        .run(format!(
            "INSERT INTO {UNFINISHED_MOVE} (kind, value) VALUES ('{kind}', '{value}')"
        ))
        .await
}

/// Notes the source and sets the indexes of the target aside. Returns true if an earlier call has
/// done so; fails if that was for another source, or for this one before it was used again.
pub async fn claim(
    source: &mut Side,
    target: &mut Side,
    tables: &[Table],
) -> Result<bool, MoveError> {
    let identity = identity(source, tables).await?;
    if let Some(noted) = values(target, SOURCE).await?.first() {
        return match *noted == identity {
            true => Ok(true),
            false => Err(MoveError::OtherMove {
                from: source.name.clone(),
                target: target.name.clone(),
            }),
        };
    }
    let indexes: Vec<(String, String, String)> = target
        .all(
            match target.dialect() {
                Dialect::Postgres => {
                    "SELECT t.relname::text, c.relname::text, \
                     replace(pg_get_indexdef(i.indexrelid), ' ON ONLY ', ' ON ') \
                     FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid \
                     JOIN pg_class t ON t.oid = i.indrelid \
                     WHERE t.relnamespace = current_schema()::regnamespace \
                     AND NOT t.relispartition AND NOT i.indisunique"
                }
                Dialect::Sqlite => {
                    "SELECT tbl_name, name, sql FROM sqlite_schema \
                     WHERE type = 'index' AND sql LIKE 'CREATE INDEX %'"
                }
            }
            .to_owned(),
        )
        .await?;
    target.run("BEGIN".to_owned()).await?;
    for (table, index, definition) in indexes {
        if tables.iter().any(|ours| ours.name == table) {
            add(target, INDEX, &definition).await?;
            target.run(format!("DROP INDEX {}", quoted(&index))).await?;
        }
    }
    add(target, SOURCE, &identity).await?;
    target.run("COMMIT".to_owned()).await?;
    Ok(false)
}

/// Creates the indexes that were set aside, one in each commit.
pub async fn restore_indexes(
    target: &mut Side,
    progress: &watch::Sender<Progress>,
) -> Result<(), MoveError> {
    let definitions = values(target, INDEX).await?;
    start(progress, Step::Indexing, 0, definitions.len() as u64);
    for definition in definitions {
        let value = definition.replace('\'', "''");
        target.run("BEGIN".to_owned()).await?;
        target.run(definition).await?;
        target
            .run(format!(
                "DELETE FROM {UNFINISHED_MOVE} WHERE kind = '{INDEX}' AND value = '{value}'"
            ))
            .await?;
        target.run("COMMIT".to_owned()).await?;
        progress.send_modify(|shown| shown.done += 1);
    }
    Ok(())
}

/// A hash of rows that no two services share.
async fn identity(source: &mut Side, tables: &[Table]) -> Result<String, MoveError> {
    let mut hash = Sha256::new();
    for table in tables {
        if !IDENTIFYING.contains(&table.name.as_str()) {
            continue;
        }
        let mut rows = Rows::read(source, table, None).await?;
        while rows.advance().await? {
            hash.update(rows.row());
        }
    }
    Ok(hex::encode(hash.finalize()))
}
