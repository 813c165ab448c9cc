//! SQL of telemetry and logs, which `ingest` writes. The two tables have the same columns.

use hub_base::db::{Conn, Direction, Log, LogRange, Slice, Sql, sql};
use hub_base::error::Result;
use hub_identity::authz::Scope;
use hub_protocol::{HubUuid, TenantUuid, Timestamp};

#[derive(Debug, sqlx::FromRow)]
pub struct StoredRecord {
    pub id: i64,
    pub hub_uuid: HubUuid,
    pub body: String,
}

/// The table of a kind of records.
#[derive(Clone, Copy, Debug)]
pub enum Table {
    Logs,
    Telemetry,
}

impl Table {
    const fn name(self) -> &'static str {
        match self {
            Self::Logs => "hub_logs",
            Self::Telemetry => "hub_telemetry",
        }
    }

    const fn id(self) -> &'static str {
        match self {
            Self::Logs => "hub_log_id",
            Self::Telemetry => "hub_telemetry_id",
        }
    }

    const fn columns(self) -> &'static str {
        match self {
            Self::Logs => "hub_log_id AS id, hub_uuid, body",
            Self::Telemetry => "hub_telemetry_id AS id, hub_uuid, body",
        }
    }
}

/// The filters of a list, besides the hub.
#[derive(Clone, Copy, Debug)]
pub struct Between {
    pub from: Option<Timestamp>,
    pub to: Option<Timestamp>,
}

/// A hub's records of one kind, as a list.
#[derive(Clone, Copy, Debug)]
pub struct List<'a> {
    pub table: Table,
    pub scope: &'a Scope,
    pub hub_uuid: HubUuid,
    pub between: Between,
    pub direction: Direction,
}

impl List<'_> {
    /// The size of one page's records.
    pub async fn page_bytes(self, conn: &mut Conn, slice: Slice) -> Result<i64> {
        self.from()
            .page_bytes(conn, "body", &self.order(), slice)
            .await
    }

    /// One page of the records, and their total number.
    pub async fn page(self, conn: &mut Conn, slice: Slice) -> Result<(Vec<StoredRecord>, i64)> {
        self.from()
            .page(conn, self.table.columns(), &self.order(), slice)
            .await
    }

    const fn order(self) -> [&'static str; 3] {
        [self.table.id(), " ", self.direction.sql()]
    }

    fn from(self) -> Sql {
        let Self {
            table,
            scope,
            hub_uuid,
            between,
            ..
        } = self;
        let mut from = sql("FROM ")
            .push(table.name())
            .push(" WHERE tenant_uuid = $1 AND hub_uuid = $2");
        from = from.bind((scope.tenant_uuid(), hub_uuid));
        if let Some(start) = between.from {
            from = from
                .push(" AND ")
                .push(table.id())
                .push(" >= ")
                .push_bind(start.as_micros());
        }
        if let Some(end) = between.to {
            from = from
                .push(" AND ")
                .push(table.id())
                .push(" < ")
                .push_bind(end.as_micros());
        }
        from
    }
}

/// Records that one statement looks for.
const SAMPLES: usize = 50;
/// Larger records are no reports of the agent.
const MAX_SAMPLE_BYTES: i64 = 64 * 1024;

/// The first telemetry record of the tenant's hub in each of these ranges of ids, whose ends are
/// not included.
pub async fn samples(
    conn: &mut Conn,
    tenant_uuid: TenantUuid,
    hub_uuid: HubUuid,
    ranges: &[(i64, i64)],
    mut take: impl FnMut(Timestamp, &str),
) -> Result<()> {
    for some in ranges.chunks(SAMPLES) {
        let mut query = sql("SELECT ")
            .push(Table::Telemetry.columns())
            .push(
                " FROM hub_telemetry \
                 WHERE tenant_uuid = $1 AND hub_uuid = $2 AND hub_telemetry_id IN (",
            )
            .bind((tenant_uuid, hub_uuid));
        for (at, (from, to)) in some.iter().enumerate() {
            query = query
                .push(if at > 0 { ", " } else { "" })
                .push(
                    "(SELECT MIN(hub_telemetry_id) FROM hub_telemetry \
                     WHERE tenant_uuid = $1 AND hub_uuid = $2 AND hub_telemetry_id >= ",
                )
                .push_bind(*from)
                .push(" AND hub_telemetry_id < ")
                .push_bind(*to)
                .push(")");
        }
        let records: Vec<StoredRecord> = query
            .push(") AND OCTET_LENGTH(body) <= ")
            .push_bind(MAX_SAMPLE_BYTES)
            .all(conn)
            .await?;
        for record in records {
            take(Timestamp::from_micros(record.id), &record.body);
        }
    }
    Ok(())
}

/// The log entries of one of the tenant's hubs, or of all, in a range of their ids, oldest first.
pub async fn logs_after(
    conn: &mut Conn,
    tenant_uuid: TenantUuid,
    hub_uuid: Option<HubUuid>,
    range: LogRange,
) -> Result<Vec<StoredRecord>> {
    let table = Table::Logs;
    let log = Log {
        table: table.name(),
        id: table.id(),
        text: "body",
        columns: table.columns(),
    };
    log.read(tenant_uuid, hub_uuid, range).all(conn).await
}

/// A report of a hub. The body is read only if it marks an adapter as blind.
#[derive(Debug, sqlx::FromRow)]
pub struct BlindReport {
    pub id: i64,
    pub hub_uuid: HubUuid,
    pub body: Option<String>,
}

/// The telemetry of the tenant's hubs since `from`, newest first, up to `limit` records.
pub async fn reports_after(
    conn: &mut Conn,
    scope: &Scope,
    from: Timestamp,
    limit: i64,
) -> Result<Vec<BlindReport>> {
    sql(
        "SELECT hub_telemetry_id AS id, hub_uuid, CASE WHEN OCTET_LENGTH(body) <= $4 \
         AND body LIKE '%\"BLIND\"%' THEN body END AS body FROM hub_telemetry \
         WHERE tenant_uuid = $1 AND hub_telemetry_id > $2 \
         ORDER BY hub_telemetry_id DESC LIMIT $3",
    )
    .bind((
        scope.tenant_uuid(),
        from.as_micros(),
        limit,
        MAX_SAMPLE_BYTES,
    ))
    .all(conn)
    .await
}
