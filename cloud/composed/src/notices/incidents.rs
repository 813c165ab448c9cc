//! Incidents: a row for each condition that holds, or held a while ago. It says whether a
//! notice was sent, and when the condition was over.

use std::collections::HashMap;
use std::sync::Arc;

use hub_base::db::bulk::{Bulk, Column};
use hub_base::db::{Conn, Tx, sql};
use hub_base::error::Result;
use hub_protocol::{HubUuid, TenantUuid, Timestamp};

use super::conditions::Found;
use super::settings_store::Setting;

#[derive(Clone, Debug, sqlx::FromRow)]
pub struct Incident {
    pub subject: String,
    pub name: String,
    pub detail: String,
    pub hub_uuid: Option<HubUuid>,
    pub device_instance_id: Option<i64>,
    pub opened_at: Timestamp,
    pub raised_at: Option<Timestamp>,
    pub over_at: Option<Timestamp>,
    pub closed_at: Option<Timestamp>,
}

impl Incident {
    pub fn open(found: Found, now: Timestamp) -> Self {
        Self {
            subject: found.subject,
            name: found.name,
            detail: found.detail,
            hub_uuid: found.hub_uuid,
            device_instance_id: found.device_instance_id,
            opened_at: found.since.min(now),
            raised_at: None,
            over_at: None,
            closed_at: None,
        }
    }
}

const COLUMNS: &str = "subject, name, detail, hub_uuid, device_instance_id, opened_at, raised_at, \
    over_at, closed_at";

/// The open incidents of a setting by subject, up to `limit`.
pub async fn open(
    conn: &mut Conn,
    setting: &Setting,
    limit: i64,
) -> Result<HashMap<String, Incident>> {
    let incidents: Vec<Incident> = sql("SELECT ")
        .push(COLUMNS)
        .push(
            " FROM notice_incidents WHERE tenant_uuid = $1 AND type = $2 AND channel = $3 \
             AND closed_at IS NULL LIMIT $4",
        )
        .bind((
            setting.tenant_uuid,
            setting.notice_type.name(),
            setting.channel.name(),
            limit,
        ))
        .all(conn)
        .await?;
    Ok(incidents
        .into_iter()
        .map(|incident| (incident.subject.clone(), incident))
        .collect())
}

/// The given subjects that have an incident, open or not. The list must not be empty.
pub async fn known(conn: &mut Conn, setting: &Setting, subjects: &[String]) -> Result<Vec<String>> {
    sql(
        "SELECT subject FROM notice_incidents WHERE tenant_uuid = $1 AND type = $2 \
         AND channel = $3 AND subject IN ",
    )
    .bind((
        setting.tenant_uuid,
        setting.notice_type.name(),
        setting.channel.name(),
    ))
    .push_list(subjects.iter().cloned())
    .scalars(conn)
    .await
}

/// Stores incidents. A closed one of the same subject is reopened.
pub async fn put(tx: &mut Tx, setting: &Setting, incidents: &[Incident]) -> Result<()> {
    let count = incidents.len();
    let text = |value: fn(&Incident) -> &str| {
        Column::Text(
            incidents
                .iter()
                .map(|incident| Arc::from(value(incident)))
                .collect(),
        )
    };
    let time = |value: fn(&Incident) -> Option<Timestamp>| {
        Column::OptionalTime(incidents.iter().map(value).collect())
    };
    Bulk {
        head: "INSERT INTO notice_incidents (tenant_uuid, type, channel, subject, name, detail, \
               hub_uuid, device_instance_id, opened_at, raised_at, over_at, closed_at)",
        columns: vec![
            Column::Uuid(vec![setting.tenant_uuid.0; count]),
            Column::Word(vec![setting.notice_type.name(); count]),
            Column::Word(vec![setting.channel.name(); count]),
            text(|incident| &incident.subject),
            text(|incident| &incident.name),
            text(|incident| &incident.detail),
            Column::OptionalUuid(
                incidents
                    .iter()
                    .map(|incident| incident.hub_uuid.map(|hub| hub.0))
                    .collect(),
            ),
            Column::OptionalInt(
                incidents
                    .iter()
                    .map(|incident| incident.device_instance_id)
                    .collect(),
            ),
            Column::Time(
                incidents
                    .iter()
                    .map(|incident| incident.opened_at)
                    .collect(),
            ),
            time(|incident| incident.raised_at),
            time(|incident| incident.over_at),
            time(|incident| incident.closed_at),
        ],
        tail: "ON CONFLICT (tenant_uuid, type, channel, subject) DO UPDATE SET \
               name = excluded.name, detail = excluded.detail, opened_at = excluded.opened_at, \
               raised_at = excluded.raised_at, over_at = excluded.over_at, \
               closed_at = excluded.closed_at",
    }
    .execute(tx)
    .await
    .map(|_| ())
}

/// Deletes the incidents of a tenant that is being deleted.
pub async fn delete_all(tx: &mut Tx, tenant_uuid: TenantUuid) -> Result<()> {
    sql("DELETE FROM notice_incidents WHERE tenant_uuid = $1")
        .bind(tenant_uuid)
        .run(tx)
        .await
}

/// Deletes incidents that were closed before `before`, up to `limit`, and returns how many.
pub async fn delete_closed_before(tx: &mut Tx, before: Timestamp, limit: i64) -> Result<u64> {
    sql(
        "DELETE FROM notice_incidents WHERE (tenant_uuid, type, channel, subject) IN \
         (SELECT tenant_uuid, type, channel, subject FROM notice_incidents \
         WHERE closed_at < $1 ORDER BY closed_at LIMIT $2)",
    )
    .bind((before, limit))
    .execute(tx)
    .await
}

/// The scan's own row.
#[derive(Clone, Copy, Debug, sqlx::FromRow)]
pub struct ScanRow {
    pub last_scan_at: Timestamp,
    pub quiet_until: Timestamp,
    pub next_tenant_uuid: Option<TenantUuid>,
}

pub async fn scan_row(conn: &mut Conn) -> Result<Option<ScanRow>> {
    sql("SELECT last_scan_at, quiet_until, next_tenant_uuid FROM notice_scans WHERE scan_id = 1")
        .optional(conn)
        .await
}

pub async fn put_scan_row(tx: &mut Tx, row: &ScanRow) -> Result<()> {
    sql(
        "INSERT INTO notice_scans (scan_id, last_scan_at, quiet_until, next_tenant_uuid) \
         VALUES (1, $1, $2, $3) ON CONFLICT (scan_id) DO UPDATE SET \
         last_scan_at = excluded.last_scan_at, quiet_until = excluded.quiet_until, \
         next_tenant_uuid = excluded.next_tenant_uuid",
    )
    .bind((row.last_scan_at, row.quiet_until, row.next_tenant_uuid))
    .run(tx)
    .await
}
