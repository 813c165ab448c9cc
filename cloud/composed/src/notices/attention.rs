//! What needs somebody: the conditions of a tenant that hold and of which there is a notice in the
//! app.

use hub_base::db::{Conn, sql};
use hub_base::error::Result;
use hub_protocol::{HubUuid, TenantUuid, Timestamp};
use schemars::JsonSchema;
use serde::Serialize;
use uuid::Uuid;

use super::incidents::Incident;
use super::{Channel, NoticeType, Severity, words};

/// The latest conditions of a type that are listed.
const OF_ONE_TYPE: i64 = 5;

/// A condition that holds and needs somebody.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AttentionItem {
    /// The type of the notice.
    #[serde(rename = "type")]
    pub notice_type: NoticeType,
    /// The severity of the type.
    severity: Severity,
    /// The condition in a few words.
    title: String,
    /// A sentence about it.
    detail: String,
    /// The hub that it is about, or that hears the device best.
    hub_uuid: Option<HubUuid>,
    /// The device that it is about.
    #[schemars(range(min = 1))]
    device_instance_id: Option<i64>,
    /// The pipeline that it is about.
    pipeline_uuid: Option<Uuid>,
    /// When it began.
    since: Timestamp,
    /// All conditions of this type that hold; the latest five are listed.
    #[schemars(range(min = 1))]
    of_this_type: i64,
}

#[derive(sqlx::FromRow)]
struct Row {
    #[sqlx(rename = "type", try_from = "String")]
    notice_type: NoticeType,
    #[sqlx(flatten)]
    incident: Incident,
    of_this_type: i64,
}

/// What needs somebody now: the most severe first, of these the latest.
pub async fn attention(conn: &mut Conn, tenant_uuid: TenantUuid) -> Result<Vec<AttentionItem>> {
    let rows: Vec<Row> = sql(
        "SELECT type, subject, name, detail, hub_uuid, device_instance_id, opened_at, raised_at, \
         over_at, closed_at, of_this_type FROM (SELECT i.type, i.subject, i.name, i.detail, \
         i.hub_uuid, i.device_instance_id, i.opened_at, i.raised_at, i.over_at, i.closed_at, \
         COUNT(*) OVER (PARTITION BY i.type) AS of_this_type, ROW_NUMBER() OVER \
         (PARTITION BY i.type ORDER BY i.opened_at DESC, i.subject) AS place \
         FROM notice_incidents i LEFT JOIN notification_settings s \
         ON s.tenant_uuid = i.tenant_uuid AND s.type = i.type AND s.channel = i.channel \
         WHERE i.tenant_uuid = $1 AND i.channel = $2 \
         AND i.closed_at IS NULL AND i.raised_at IS NOT NULL AND i.over_at IS NULL \
         AND i.type <> $3 AND (s.enabled IS NULL OR s.enabled = $4)) latest \
         WHERE place <= $5",
    )
    .bind((
        tenant_uuid,
        Channel::InApp.name(),
        // Its condition is that the hub is offline, and its notice comes when that is over.
        NoticeType::HubOnline.name(),
        true,
        OF_ONE_TYPE,
    ))
    .all(conn)
    .await?;
    let mut items: Vec<AttentionItem> = rows.into_iter().map(item).collect();
    items.sort_by_key(|item| {
        let rank = match item.severity {
            Severity::Critical => 0,
            Severity::Warning => 1,
            Severity::Info => 2,
        };
        (rank, std::cmp::Reverse(item.since))
    });
    Ok(items)
}

fn item(row: Row) -> AttentionItem {
    let Row {
        notice_type,
        incident,
        of_this_type,
    } = row;
    let words = words::single(notice_type, &incident);
    let pipeline_uuid = match notice_type {
        NoticeType::PipelineFailing => incident.subject.split(':').next(),
        _ => None,
    };
    AttentionItem {
        notice_type,
        severity: notice_type.severity(),
        title: words.title,
        detail: words.body,
        hub_uuid: incident.hub_uuid,
        device_instance_id: incident.device_instance_id,
        pipeline_uuid: pipeline_uuid.and_then(|uuid| uuid.parse().ok()),
        since: incident.opened_at,
        of_this_type,
    }
}
