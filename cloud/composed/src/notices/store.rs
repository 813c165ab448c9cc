//! SQL of notices.

use hub_base::db::{Conn, Slice, Sql, Tx, sql};
use hub_base::error::Result;
use hub_identity::authz::UserScope;
use hub_protocol::{HubUuid, TenantUuid, Timestamp, UserUuid};
use uuid::Uuid;

use super::words::Words;
use super::{Channel, NoticeType, Severity};
use crate::end_users::{self, EndUserNow};

/// Notices that the members of a tenant see at most; older ones go.
const MAX_SHOWN: i64 = 1000;

/// A notice as a person sees it.
#[derive(Clone, Debug, sqlx::FromRow)]
pub struct Shown {
    pub notice_id: i64,
    #[sqlx(rename = "type", try_from = "String")]
    pub notice_type: NoticeType,
    pub title: String,
    pub body: String,
    #[sqlx(try_from = "String")]
    pub severity: Severity,
    pub tenant_uuid: TenantUuid,
    pub hub_uuid: Option<HubUuid>,
    pub device_instance_id: Option<i64>,
    pub created_at: Timestamp,
    pub read_at: Option<Timestamp>,
}

/// A person who sees notices.
pub struct Reader<'a> {
    pub person: &'a EndUserNow,
    /// The tenants whose member the person is.
    pub tenants: &'a [TenantUuid],
}

/// The ids of the notices of a reader: all of their tenants, and those of hubs and devices that are
/// theirs, from when they were. The statement has the values of `hubs_of`, and `$1` is the person.
fn visible(reader: &Reader<'_>) -> Sql {
    let hubs = end_users::hubs_of(reader.person);
    let types: Vec<&str> = NoticeType::ALL
        .into_iter()
        .filter(|notice_type| notice_type.is_for_owners())
        .map(NoticeType::name)
        .collect();
    // An outer join here is more than Citus plans.
    let visible = sql(
        "FROM notices n WHERE n.channel = 'IN_APP' AND n.notice_id IN (SELECT o.notice_id FROM (\
         SELECT x.notice_id, x.type ",
    )
    .append(&hubs)
    .push(
        " JOIN notices x ON x.hub_uuid = h.hub_uuid AND x.tenant_uuid = h.tenant_uuid \
         AND x.created_at >= mine.since UNION ALL SELECT x.notice_id, x.type ",
    )
    .push(end_users::HUBS)
    .push(end_users::DEVICES_NEAR)
    .push(
        " JOIN notices x ON x.device_instance_id = s.device_instance_id \
         AND x.tenant_uuid = h.tenant_uuid AND x.created_at >= mine.since) o WHERE o.type IN ",
    )
    .push_list(types);
    match reader.tenants.is_empty() {
        true => visible.push(")"),
        false => visible
            .push(
                " UNION ALL SELECT t.notice_id FROM notices t \
                 WHERE t.channel = 'IN_APP' AND t.tenant_uuid IN ",
            )
            .push_list(reader.tenants.iter().copied())
            .push(")"),
    }
}

/// One page of the notices of a reader, newest first, and the total number.
pub async fn list(conn: &mut Conn, reader: &Reader<'_>, slice: Slice) -> Result<(Vec<Shown>, i64)> {
    visible(reader)
        .page(
            conn,
            "n.notice_id, n.type, n.title, n.body, n.severity, n.tenant_uuid, n.hub_uuid, \
             n.device_instance_id, n.created_at, (SELECT r.read_at FROM notice_reads r \
             WHERE r.notice_id = n.notice_id AND r.user_uuid = $1) AS read_at",
            &["n.notice_id DESC"],
            slice,
        )
        .await
}

/// Whether the notice is one of the reader.
pub async fn is_shown(conn: &mut Conn, reader: &Reader<'_>, notice_id: i64) -> Result<bool> {
    sql("SELECT 1 ")
        .append(&visible(reader))
        .push(" AND n.notice_id = ")
        .push_bind(notice_id)
        .exists(conn)
        .await
}

pub async fn mark_read(
    tx: &mut Tx,
    user: &UserScope,
    notice_id: i64,
    now: Timestamp,
) -> Result<()> {
    sql(
        "INSERT INTO notice_reads (user_uuid, notice_id, read_at) VALUES ($1, $2, $3) \
         ON CONFLICT (notice_id, user_uuid) DO NOTHING",
    )
    .bind((user.user_uuid(), notice_id, now))
    .run(tx)
    .await
}

/// A notice that is still to be stored.
#[derive(Clone, Debug)]
pub struct NewNotice {
    pub notice_type: NoticeType,
    pub channel: Channel,
    pub words: Words,
    pub hub_uuid: Option<HubUuid>,
    pub device_instance_id: Option<i64>,
}

pub async fn insert(
    tx: &mut Tx,
    tenant_uuid: TenantUuid,
    notice: &NewNotice,
    now: Timestamp,
) -> Result<()> {
    sql(
        "INSERT INTO notices (notice_uuid, tenant_uuid, type, channel, title, body, severity, \
         hub_uuid, device_instance_id, created_at, attempts, next_attempt_at) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, 0, $11)",
    )
    .bind((
        Uuid::now_v7(),
        tenant_uuid,
        notice.notice_type.name(),
        notice.channel.name(),
        notice.words.title.as_str(),
        notice.words.body.as_str(),
        notice.notice_type.severity().name(),
        notice.hub_uuid,
        notice.device_instance_id,
        now,
        Some(now).filter(|_| notice.channel != Channel::InApp),
    ))
    .run(tx)
    .await
}

/// Deletes what is beyond the newest notices of the tenant.
pub async fn keep_newest(tx: &mut Tx, tenant_uuid: TenantUuid) -> Result<()> {
    sql(
        "DELETE FROM notices WHERE tenant_uuid = $1 AND channel = 'IN_APP' AND notice_id <= \
         (SELECT notice_id FROM notices WHERE tenant_uuid = $1 AND channel = 'IN_APP' \
         ORDER BY notice_id DESC LIMIT 1 OFFSET $2)",
    )
    .bind((tenant_uuid, MAX_SHOWN))
    .run(tx)
    .await
}

/// Deletes notices of before `before`, up to `limit`, and returns how many.
pub async fn delete_before(tx: &mut Tx, before: Timestamp, limit: i64) -> Result<u64> {
    sql(
        "DELETE FROM notices WHERE notice_id IN (SELECT notice_id FROM notices \
         WHERE created_at < $1 ORDER BY created_at LIMIT $2)",
    )
    .bind((before, limit))
    .execute(tx)
    .await
}

/// A notice that is to be sent.
#[derive(Clone, Debug, sqlx::FromRow)]
pub struct Unsent {
    pub notice_uuid: Uuid,
    /// This try included.
    pub attempts: i64,
    #[sqlx(flatten)]
    pub shown: Shown,
}

const UNSENT: &str = "notice_uuid, attempts, notice_id, type, title, body, severity, tenant_uuid, \
    hub_uuid, device_instance_id, created_at, sent_at AS read_at";

/// Notices that are due, the oldest first, up to `limit`.
pub async fn due(
    conn: &mut Conn,
    tenant_uuid: TenantUuid,
    channel: Channel,
    now: Timestamp,
    limit: i64,
) -> Result<Vec<i64>> {
    sql(
        "SELECT notice_id FROM notices WHERE tenant_uuid = $1 AND channel = $2 \
         AND next_attempt_at <= $3 ORDER BY next_attempt_at, notice_id LIMIT $4",
    )
    .bind((tenant_uuid, channel.name(), now, limit))
    .scalars(conn)
    .await
}

/// Begins to send these notices, and returns those that no other process has begun to send. The
/// list must not be empty.
pub async fn begin(
    tx: &mut Tx,
    ids: &[i64],
    now: Timestamp,
    leased_until: Timestamp,
) -> Result<Vec<Unsent>> {
    let mut unsent: Vec<Unsent> = sql("UPDATE notices SET attempts = attempts + 1, \
         next_attempt_at = $1 WHERE next_attempt_at <= $2 AND notice_id IN ")
    .bind((leased_until, now))
    .push_list(ids.iter().copied())
    .push(" RETURNING ")
    .push(UNSENT)
    .all(tx)
    .await?;
    unsent.sort_by_key(|unsent| unsent.shown.notice_id);
    Ok(unsent)
}

/// Stores the outcome of an attempt: sent, due again at `again_at`, or given up.
pub async fn settle(
    tx: &mut Tx,
    notice_id: i64,
    sent_at: Option<Timestamp>,
    again_at: Option<Timestamp>,
    error: Option<&str>,
) -> Result<()> {
    sql(
        "UPDATE notices SET sent_at = $2, next_attempt_at = $3, last_error = $4 \
         WHERE notice_id = $1",
    )
    .bind((notice_id, sent_at, again_at, error))
    .run(tx)
    .await
}

/// When the next notice is due.
pub async fn next_due(
    conn: &mut Conn,
    tenant_uuid: TenantUuid,
    channel: Channel,
) -> Result<Option<Timestamp>> {
    sql(
        "SELECT next_attempt_at FROM notices WHERE tenant_uuid = $1 AND channel = $2 \
         AND next_attempt_at IS NOT NULL ORDER BY next_attempt_at LIMIT 1",
    )
    .bind((tenant_uuid, channel.name()))
    .optional_scalar(conn)
    .await
}

/// When the tenant was last sent a mail, of its latest notices.
pub async fn last_mail(conn: &mut Conn, tenant_uuid: TenantUuid) -> Result<Option<Timestamp>> {
    let latest: Vec<Option<Timestamp>> = sql("SELECT sent_at FROM notices \
         WHERE tenant_uuid = $1 AND channel = 'EMAIL' AND sent_at IS NOT NULL \
         ORDER BY notice_id DESC LIMIT 1")
    .bind(tenant_uuid)
    .scalars(conn)
    .await?;
    Ok(latest.into_iter().flatten().next())
}

/// Deletes notices of a hub, and those that contain the text.
pub async fn delete_about(
    tx: &mut Tx,
    tenant_uuid: TenantUuid,
    hub_uuid: Option<HubUuid>,
    text: &str,
) -> Result<()> {
    sql("DELETE FROM notices WHERE tenant_uuid = $1 \
         AND (hub_uuid = $2 OR title LIKE $3 OR body LIKE $3)")
    .bind((tenant_uuid, hub_uuid, format!("%{text}%")))
    .run(tx)
    .await?;
    sql("DELETE FROM notice_incidents WHERE tenant_uuid = $1 \
         AND (hub_uuid = $2 OR name LIKE $3 OR detail LIKE $3)")
    .bind((tenant_uuid, hub_uuid, format!("%{text}%")))
    .run(tx)
    .await
}

/// Deletes what a person has read, and settings that send mail to them.
pub async fn forget_person(tx: &mut Tx, user_uuid: UserUuid, email: &str) -> Result<()> {
    sql("DELETE FROM notice_reads WHERE user_uuid = $1")
        .bind(user_uuid)
        .run(tx)
        .await?;
    sql("DELETE FROM notification_settings WHERE channel = 'EMAIL' AND target = $1 AND $1 <> ''")
        .bind(email)
        .run(tx)
        .await
}
