//! SQL of the notice settings of tenants.

use hub_base::db::{Conn, Tx, sql};
use hub_base::error::{Error, Result};
use hub_core::http::check::filled;
use hub_protocol::{TenantUuid, Timestamp};

use super::{Channel, Given, NoticeType, Threshold};

/// A setting as stored.
#[derive(Clone, Debug, sqlx::FromRow)]
pub struct Setting {
    pub tenant_uuid: TenantUuid,
    #[sqlx(rename = "type", try_from = "String")]
    pub notice_type: NoticeType,
    #[sqlx(try_from = "String")]
    pub channel: Channel,
    pub enabled: bool,
    pub target: Option<String>,
    threshold: Option<String>,
    /// The last device that was examined.
    pub device_cursor: i64,
    pub updated_at: Timestamp,
}

impl Setting {
    pub fn threshold(&self) -> Option<Threshold> {
        self.threshold
            .as_deref()
            .and_then(|json| serde_json::from_str(json).ok())
    }
}

const COLUMNS: &str =
    "tenant_uuid, type, channel, enabled, target, threshold, device_cursor, updated_at";

/// All settings of the tenant: one for each type and channel at most.
pub async fn list(conn: &mut Conn, tenant_uuid: TenantUuid) -> Result<Vec<Setting>> {
    sql("SELECT ")
        .push(COLUMNS)
        .push(" FROM notification_settings WHERE tenant_uuid = $1 ORDER BY type, channel")
        .bind(tenant_uuid)
        .all(conn)
        .await
}

/// The setting of one type and channel.
pub async fn find(
    conn: &mut Conn,
    tenant_uuid: TenantUuid,
    notice_type: NoticeType,
    channel: Channel,
) -> Result<Option<Setting>> {
    sql("SELECT ")
        .push(COLUMNS)
        .push(" FROM notification_settings WHERE tenant_uuid = $1 AND type = $2 AND channel = $3")
        .bind((tenant_uuid, notice_type.name(), channel.name()))
        .optional(conn)
        .await
}

pub async fn put(
    tx: &mut Tx,
    tenant_uuid: TenantUuid,
    given: &Given,
    now: Timestamp,
) -> Result<Setting> {
    let threshold = given
        .threshold
        .as_ref()
        .map(serde_json::to_string)
        .transpose()
        .map_err(Error::internal)?;
    sql(
        "INSERT INTO notification_settings (tenant_uuid, type, channel, enabled, target, \
         threshold, device_cursor, created_at, updated_at) \
         VALUES ($1, $2, $3, $4, $5, $6, 0, $7, $7) \
         ON CONFLICT (tenant_uuid, type, channel) DO UPDATE SET enabled = excluded.enabled, \
         target = excluded.target, threshold = excluded.threshold, device_cursor = 0, \
         updated_at = excluded.updated_at RETURNING ",
    )
    .push(COLUMNS)
    .bind((
        tenant_uuid,
        given.notice_type.name(),
        given.channel.name(),
        given.enabled,
        filled(given.target.as_deref()).map(str::to_owned),
        threshold,
        now,
    ))
    .one(tx)
    .await
}

pub async fn delete_all(tx: &mut Tx, tenant_uuid: TenantUuid) -> Result<()> {
    sql("DELETE FROM notification_settings WHERE tenant_uuid = $1")
        .bind(tenant_uuid)
        .run(tx)
        .await
}

/// The next tenants with settings of notices.
pub async fn tenants_after(
    conn: &mut Conn,
    after: TenantUuid,
    limit: i64,
) -> Result<Vec<TenantUuid>> {
    sql("SELECT DISTINCT tenant_uuid FROM notification_settings \
         WHERE enabled AND tenant_uuid > $1 ORDER BY tenant_uuid LIMIT $2")
    .bind((after, limit))
    .scalars(conn)
    .await
}

pub async fn set_device_cursor(tx: &mut Tx, setting: &Setting, cursor: i64) -> Result<()> {
    sql("UPDATE notification_settings SET device_cursor = $4 \
         WHERE tenant_uuid = $1 AND type = $2 AND channel = $3")
    .bind((
        setting.tenant_uuid,
        setting.notice_type.name(),
        setting.channel.name(),
        cursor,
    ))
    .run(tx)
    .await
}
