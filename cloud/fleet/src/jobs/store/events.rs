//! SQL of the events of jobs.

use hub_base::db::aged::AgedLog;
use hub_base::db::{Conn, Direction, Log, LogRange, Slice, Tx, sql};
use hub_base::error::Result;
use hub_identity::authz::Scope;
use hub_protocol::{HubJobUuid, HubUuid, TenantUuid};
use uuid::Uuid;

/// An event as stored; `body` is JSON.
#[derive(Clone, Debug, sqlx::FromRow)]
pub struct StoredJobEvent {
    pub hub_job_event_id: i64,
    pub hub_uuid: HubUuid,
    pub body: String,
}

const COLUMNS: &str = "hub_job_event_id, hub_uuid, body";
const LOG: Log = Log {
    table: "hub_job_events",
    id: "hub_job_event_id",
    text: "body",
    columns: COLUMNS,
};

pub async fn is_known(conn: &mut Conn, hub_job_uuid: HubJobUuid, event_uuid: Uuid) -> Result<bool> {
    sql("SELECT hub_job_event_id FROM hub_job_events WHERE hub_job_uuid = $1 AND event_uuid = $2")
        .bind((hub_job_uuid, event_uuid))
        .exists(conn)
        .await
}

pub async fn insert(
    tx: &mut Tx,
    scope: &Scope,
    hub_job_uuid: HubJobUuid,
    event_uuid: Uuid,
    event: &StoredJobEvent,
) -> Result<()> {
    sql(
        "INSERT INTO hub_job_events (tenant_uuid, hub_uuid, hub_job_event_id, hub_job_uuid, \
         event_uuid, body) VALUES ($1, $2, $3, $4, $5, $6)",
    )
    .bind((
        scope.tenant_uuid(),
        event.hub_uuid,
        event.hub_job_event_id,
        hub_job_uuid,
        event_uuid,
        event.body.as_str(),
    ))
    .run(tx)
    .await
}

/// The events of a job by time, and how many there are.
pub async fn list(
    conn: &mut Conn,
    scope: &Scope,
    hub_job_uuid: HubJobUuid,
    direction: Direction,
    slice: Slice,
) -> Result<(Vec<StoredJobEvent>, i64)> {
    sql("FROM hub_job_events WHERE hub_job_uuid = $1 AND tenant_uuid = $2")
        .bind((hub_job_uuid, scope.tenant_uuid()))
        .page(
            conn,
            COLUMNS,
            &["hub_job_event_id ", direction.sql()],
            slice,
        )
        .await
}

/// The events of one of the tenant's hubs, or of all, in a range of their ids, oldest first.
pub async fn after(
    conn: &mut Conn,
    tenant_uuid: TenantUuid,
    hub_uuid: Option<HubUuid>,
    range: LogRange,
) -> Result<Vec<StoredJobEvent>> {
    LOG.read(tenant_uuid, hub_uuid, range).all(conn).await
}

/// The events by age. Those of a job go when the job has been over for long; all of them are older
/// than its end.
pub const AGED_LOG: AgedLog = AgedLog {
    table: "hub_job_events",
    id: "hub_job_event_id",
    last_id: "hub_job_event_id",
    bytes: "octet_length(body)",
    only_if: Some(
        " AND EXISTS (SELECT 1 FROM hub_jobs job \
         WHERE job.hub_job_uuid = hub_job_events.hub_job_uuid AND job.finished_at < ",
    ),
};
