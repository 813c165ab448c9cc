//! Reading a log of records: the rows of one tenant, in the order of their ids, bounded in rows and
//! in bytes.

use hub_protocol::{HubUuid, TenantUuid};

use super::sql::{Sql, sql};

/// A table of records, with the columns `tenant_uuid` and `hub_uuid`.
#[derive(Clone, Copy, Debug)]
pub struct Log {
    pub table: &'static str,
    pub id: &'static str,
    /// The column of the record itself, whose bytes count.
    pub text: &'static str,
    /// The columns to read.
    pub columns: &'static str,
}

/// Which records to read.
#[derive(Clone, Copy, Debug)]
pub struct LogRange {
    /// Records with ids above this.
    pub after: i64,
    /// The last id to read.
    pub last: i64,
    pub max_rows: i64,
    /// The first record may have more bytes than this, so that each one can be read.
    pub max_bytes: i64,
}

impl Log {
    /// Reads the tenant's records, or those of one hub, oldest first. The lengths are summed up in
    /// the database, which need not load a record for that.
    pub fn read(&self, tenant_uuid: TenantUuid, hub_uuid: Option<HubUuid>, range: LogRange) -> Sql {
        let matching = |query: Sql| {
            let mut query = query
                .push(" FROM ")
                .push(self.table)
                .push(" WHERE tenant_uuid = ")
                .push_bind(tenant_uuid);
            if let Some(hub_uuid) = hub_uuid {
                query = query.push(" AND hub_uuid = ").push_bind(hub_uuid);
            }
            query
                .push(" AND ")
                .push(self.id)
                .push(" > ")
                .push_bind(range.after)
                .push(" AND ")
                .push(self.id)
        };
        let query = matching(sql("SELECT ").push(self.columns));
        let query = query
            .push(
                " <= (SELECT MAX(summed.id) FROM \
                 (SELECT sized.id, SUM(sized.bytes) OVER (ORDER BY sized.id) AS bytes_so_far, \
                 ROW_NUMBER() OVER (ORDER BY sized.id) AS place FROM (SELECT ",
            )
            .push(self.id)
            .push(" AS id, octet_length(")
            .push(self.text)
            .push(") AS bytes");
        matching(query)
            .push(" <= ")
            .push_bind(range.last)
            .push(" ORDER BY ")
            .push(self.id)
            .push(" LIMIT ")
            .push_bind(range.max_rows)
            .push(") AS sized) AS summed WHERE summed.place = 1 OR summed.bytes_so_far <= ")
            .push_bind(range.max_bytes)
            .push(") ORDER BY ")
            .push(self.id)
    }
}
