//! Deletes the oldest records of a tenant from a log, batch by batch. A batch is measured with a
//! reading connection first, so that a transaction only has to delete. The owners of the tables
//! name them.

use hub_protocol::{TenantUuid, Timestamp};

use super::{Conn, Sql, Tx, sql};
use crate::error::Result;

/// Bytes of a record besides its text: its keys, and its entries in indexes.
pub const RECORD_BYTES: i64 = 128;

/// A table of records, each with an id that is its time of receipt in microseconds since 1970. A
/// row has one record, or several with ids that follow each other.
#[derive(Clone, Copy)]
pub struct AgedLog {
    pub table: &'static str,
    /// The id of a row's first record.
    pub id: &'static str,
    /// The id of its last record.
    pub last_id: &'static str,
    /// Expression for the bytes of a row's records, without [`RECORD_BYTES`].
    pub bytes: &'static str,
    /// A further condition for the deletion of records received before a time. It ends where the
    /// time is to follow; a `)` closes it.
    pub only_if: Option<&'static str>,
}

/// The ids of records, the last one included, and what these records count.
#[derive(Clone, Copy, Debug, sqlx::FromRow)]
pub struct Batch {
    pub row_count: i64,
    pub records: i64,
    pub bytes: i64,
    pub first_id: Option<i64>,
    pub last_id: Option<i64>,
}

impl AgedLog {
    /// Appends FROM and WHERE: the tenant's records with ids of at least `from_id`.
    fn push_records(&self, statement: Sql, tenant_uuid: TenantUuid, from_id: i64) -> Sql {
        let statement = statement
            .push("FROM ")
            .push(self.table)
            .push(" WHERE tenant_uuid = ")
            .push_bind(tenant_uuid);
        statement
            .push(" AND ")
            .push(self.id)
            .push(" >= ")
            .push_bind(from_id)
    }

    fn push_condition(&self, statement: Sql, before: Timestamp) -> Sql {
        match self.only_if {
            Some(condition) => statement.push(condition).push_bind(before).push(")"),
            None => statement,
        }
    }

    /// Begins a SELECT that measures rows; FROM and WHERE follow, and [`Self::end_measure`].
    pub fn begin_measure(&self) -> Sql {
        sql(
            "SELECT COUNT(*) AS row_count, CAST(COALESCE(SUM(records), 0) AS BIGINT) AS records, \
             CAST(COALESCE(SUM(size), 0) AS BIGINT) AS bytes, MIN(id) AS first_id, \
             MAX(end_id) AS last_id FROM (SELECT ",
        )
        .push(self.id)
        .push(" AS id, ")
        .push(self.last_id)
        .push(" AS end_id, ")
        .push(self.last_id)
        .push(" - ")
        .push(self.id)
        .push(" + 1 AS records, ")
        .push(self.bytes)
        .push(" + (")
        .push(self.last_id)
        .push(" - ")
        .push(self.id)
        .push(" + 1) * ")
        .push_number(RECORD_BYTES)
        .push(" AS size ")
    }

    /// Ends what [`Self::begin_measure`] began: the oldest `limit` rows.
    pub fn end_measure(&self, statement: Sql, limit: i64) -> Sql {
        statement
            .push(" ORDER BY ")
            .push(self.id)
            .push(" LIMIT ")
            .push_bind(limit)
            .push(") AS oldest")
    }

    /// Measures the oldest of the tenant's records that were received before `before`, up to
    /// `limit` rows: those with ids from `from_id` up to, and without, `end_id`.
    pub async fn measure(
        &self,
        conn: &mut Conn,
        tenant_uuid: TenantUuid,
        (from_id, end_id): (i64, i64),
        before: Timestamp,
        limit: i64,
    ) -> Result<Batch> {
        let statement = self.push_records(self.begin_measure(), tenant_uuid, from_id);
        let statement = statement
            .push(" AND ")
            .push(self.id)
            .push(" < ")
            .push_bind(end_id);
        let statement = self.push_condition(statement, before);
        self.end_measure(statement, limit).one(conn).await
    }

    /// Deletes a measured batch. Returns false if it is not what was measured, because somebody
    /// else is at it: then the transaction must not be committed.
    pub async fn delete(
        &self,
        tx: &mut Tx,
        tenant_uuid: TenantUuid,
        batch: Batch,
        before: Timestamp,
    ) -> Result<bool> {
        let (Some(first_id), Some(last_id)) = (batch.first_id, batch.last_id) else {
            return Ok(false);
        };
        let statement = self.push_records(sql("DELETE "), tenant_uuid, first_id);
        let statement = statement
            .push(" AND ")
            .push(self.id)
            .push(" <= ")
            .push_bind(last_id);
        let deleted = self.push_condition(statement, before).execute(tx).await?;
        Ok(deleted == batch.row_count.unsigned_abs())
    }
}
