//! Sessions of PostgreSQL, named after their replica. A replica that is paused or cut off in the
//! middle of a transaction keeps its locks. Whoever continues its work ends these sessions first.

use uuid::Uuid;

use super::dialect::Dialect;
use super::{Conn, Db, sql};
use crate::error::Result;

/// The `application_name` of a replica's sessions.
pub fn name(replica_uuid: Uuid) -> String {
    format!("hub-cloud {replica_uuid}")
}

impl Db {
    /// Identifies this process among those that use the database.
    pub fn replica_uuid(&self) -> Uuid {
        match self {
            Self::Postgres { replica_uuid, .. } | Self::Sqlite { replica_uuid, .. } => {
                *replica_uuid
            }
        }
    }
}

/// Ends the sessions in which a stopped replica holds locks or waits for some; returns their
/// number. A statement that makes progress is left alone: its replica is merely slow.
pub async fn end_stuck(conn: &mut Conn, replica_uuid: Uuid) -> Result<i64> {
    if conn.dialect() == Dialect::Sqlite {
        return Ok(0);
    }
    sql(
        "SELECT COUNT(pg_terminate_backend(pid)) FROM pg_stat_activity \
         WHERE application_name = $1 AND datname = current_database() \
         AND usename = current_user AND xact_start IS NOT NULL \
         AND wait_event_type IN ('Client', 'Lock')",
    )
    .bind(name(replica_uuid))
    .scalar(conn)
    .await
}
