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
    /// None for what holds while nobody has set it.
    pub updated_at: Option<Timestamp>,
}

impl Setting {
    /// Notices in the app are on unless somebody has turned them off.
    fn in_app(tenant_uuid: TenantUuid, notice_type: NoticeType) -> Self {
        Self {
            tenant_uuid,
            notice_type,
            channel: Channel::InApp,
            enabled: true,
            target: None,
            threshold: None,
            device_cursor: 0,
            updated_at: None,
        }
    }

    /// When occurrences begin to count: not before somebody has set it.
    pub fn counts_from(&self, from: Timestamp) -> Timestamp {
        self.updated_at.map_or(from, |at| from.max(at))
    }

    pub fn threshold(&self) -> Option<Threshold> {
        self.threshold
            .as_deref()
            .and_then(|json| serde_json::from_str(json).ok())
    }
}

const COLUMNS: &str =
    "tenant_uuid, type, channel, enabled, target, threshold, device_cursor, updated_at";

/// All settings of the tenant, and those that hold while nobody has set them: one for each type and
/// channel at most.
pub async fn list(conn: &mut Conn, tenant_uuid: TenantUuid) -> Result<Vec<Setting>> {
    let mut settings: Vec<Setting> = sql("SELECT ")
        .push(COLUMNS)
        .push(" FROM notification_settings WHERE tenant_uuid = $1")
        .bind(tenant_uuid)
        .all(conn)
        .await?;
    for notice_type in NoticeType::ALL {
        let is_set = settings
            .iter()
            .any(|setting| (setting.notice_type, setting.channel) == (notice_type, Channel::InApp));
        if !is_set && notice_type.is_on_by_default() {
            settings.push(Setting::in_app(tenant_uuid, notice_type));
        }
    }
    settings.sort_by_key(|setting| (setting.notice_type.name(), setting.channel.name()));
    Ok(settings)
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

/// Stores how far the devices of a setting were examined, also of one that nobody has set.
pub async fn set_device_cursor(
    tx: &mut Tx,
    setting: &Setting,
    cursor: i64,
    now: Timestamp,
) -> Result<()> {
    sql(
        "INSERT INTO notification_settings (tenant_uuid, type, channel, enabled, device_cursor, \
         created_at) VALUES ($1, $2, $3, TRUE, $4, $5) \
         ON CONFLICT (tenant_uuid, type, channel) DO UPDATE SET device_cursor = $4",
    )
    .bind((
        setting.tenant_uuid,
        setting.notice_type.name(),
        setting.channel.name(),
        cursor,
        now,
    ))
    .run(tx)
    .await
}
