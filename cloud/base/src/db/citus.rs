//! PostgreSQL with Citus: a tenant's growing tables are on one of the workers, all others on the
//! coordinator, which the service connects to. Nothing else needs to know: each statement on these
//! tables names its tenant, and they refer to no other table.

use super::distributed::DISTRIBUTED;
use super::{Db, sql};
use crate::error::{Error, Result};

const COLUMN: &str = "tenant_uuid";

/// Distributes the tables that are not, with what they hold. Running it again does nothing.
pub async fn distribute(db: &Db) -> Result<()> {
    if !has_extension(db).await? {
        return Err(Error::internal(
            "the database has no extension citus, which database-layout names",
        ));
    }
    let distributed = distributed(db).await?;
    let [first, ..] = DISTRIBUTED;
    for table in DISTRIBUTED {
        if distributed.iter().any(|(known, _)| known == table) {
            continue;
        }
        let mut tx = db.begin().await?;
        // Replicas that start together distribute a table one after the other.
        sql("SELECT pg_advisory_xact_lock(7310466)")
            .run(&mut tx)
            .await?;
        sql("SET LOCAL statement_timeout = 0").run(&mut tx).await?;
        let is_distributed = sql(DISTRIBUTED_TABLES)
            .push(" AND relname = $1")
            .bind(table)
            .exists(&mut tx)
            .await?;
        if !is_distributed {
            let beside = if table == first { "none" } else { first };
            sql("SELECT create_distributed_table(CAST($1 AS regclass), $2, colocate_with => $3)")
                .bind((table, COLUMN, beside))
                .run(&mut tx)
                .await?;
        }
        tx.commit_unaudited("schema upkeep").await?;
    }
    Ok(())
}

async fn has_extension(db: &Db) -> Result<bool> {
    let Db::Postgres { .. } = db else {
        return Ok(false);
    };
    sql("SELECT 1 FROM pg_extension WHERE extname = 'citus'")
        .exists(&mut db.read().await?)
        .await
}

/// The distributed tables but for partitions, with the text of a row's place.
const DISTRIBUTED_TABLES: &str = "SELECT CAST(relname AS TEXT), \
    column_to_column_name(logicalrelid, partkey) FROM pg_dist_partition \
    JOIN pg_class ON pg_class.oid = logicalrelid WHERE partmethod = 'h' AND NOT relispartition";

async fn distributed(db: &Db) -> Result<Vec<(String, String)>> {
    sql(DISTRIBUTED_TABLES).all(&mut db.read().await?).await
}

/// What is wrong with a database that is to be distributed, and the number of its workers.
pub async fn faults(db: &Db) -> Result<(Vec<String>, usize)> {
    if !has_extension(db).await? {
        let fault = "the extension citus is missing in the database: CREATE EXTENSION citus";
        return Ok((vec![fault.to_owned()], 0));
    }
    let mut faults = Vec::new();
    let distributed = distributed(db).await?;
    for table in DISTRIBUTED {
        match distributed.iter().find(|(known, _)| known == table) {
            None => faults.push(format!("the table {table} is not distributed")),
            Some((_, column)) if column != COLUMN => faults.push(format!(
                "the table {table} is distributed by {column}, not by {COLUMN}"
            )),
            Some(_) => {}
        }
    }
    for (table, _) in &distributed {
        if !DISTRIBUTED.contains(&table.as_str()) {
            faults.push(format!("the table {table} must not be distributed"));
        }
    }
    let workers: Vec<(String, i64, bool)> = sql("SELECT nodename, CAST(nodeport AS BIGINT), \
         COALESCE(citus_check_connection_to_node(nodename, nodeport), FALSE) FROM pg_dist_node \
         WHERE noderole = 'primary' AND isactive AND shouldhaveshards")
    .all(&mut db.read().await?)
    .await?;
    if workers.is_empty() {
        faults.push("no node is active that keeps tables: SELECT citus_add_node(...)".to_owned());
    }
    for (name, port, is_reachable) in &workers {
        if !is_reachable {
            faults.push(format!("the node {name}:{port} cannot be reached"));
        }
    }
    Ok((faults, workers.len()))
}

/// Whether some tables are distributed, although nobody asks for it.
pub async fn is_distributed(db: &Db) -> Result<bool> {
    Ok(has_extension(db).await? && !distributed(db).await?.is_empty())
}
