//! SQL of hubs.

pub mod adapters;
pub mod clones;
pub mod consent;
pub mod departure;
pub mod floods;
pub mod list;
pub mod paces;
pub mod refreshes;
pub mod watch;

use std::collections::BTreeMap;

use hub_base::db::bulk::{Bulk, Column};
use hub_base::db::{Conn, Slice, Tx, sql};
use hub_base::error::Result;
use hub_identity::authz::Scope;
use hub_protocol::claim::OperatingSystem;
use hub_protocol::{HubUuid, TenantUuid, Timestamp, UserUuid};
use serde_json::Value;
use sqlx::types::Json;
use uuid::Uuid;

use super::changes::HubVersion;

/// The state that decides whether a known hub may be claimed.
#[derive(sqlx::FromRow)]
pub struct KnownHub {
    pub tenant_uuid: TenantUuid,
    pub blocked_at: Option<Timestamp>,
    pub claimed_at: Timestamp,
    pub claim_key_hash: Option<Vec<u8>>,
    pub claim_proof_hash: Option<Vec<u8>>,
    pub access_token_id: Option<Uuid>,
    pub refresh_token_hash: Option<Vec<u8>>,
    pub refreshed_at: Option<Timestamp>,
    pub readmitted_until: Option<Timestamp>,
}

const KNOWN_HUB: &str = "SELECT tenant_uuid, blocked_at, claimed_at, claim_key_hash, \
    claim_proof_hash, access_token_id, refresh_token_hash, refreshed_at, readmitted_until \
    FROM hubs WHERE device_instance_id = $1 AND released_at IS NULL";

/// The hub of a device, in any tenant: one device is one hub, whichever tenant claims it. Released
/// hubs are not found.
pub async fn by_device_instance(
    conn: &mut Conn,
    device_instance_id: &str,
) -> Result<Option<KnownHub>> {
    sql(KNOWN_HUB).bind(device_instance_id).optional(conn).await
}

/// Locks the hub of a device, if it has one, until the transaction ends.
pub async fn lock_device_instance(tx: &mut Tx, device_instance_id: &str) -> Result<()> {
    sql("SELECT hub_uuid FROM hubs WHERE device_instance_id = $1 AND released_at IS NULL")
        .for_update(tx)
        .bind(device_instance_id)
        .run(tx)
        .await
}

/// Whether the device was a hub that was blocked when it was released, and has not been unblocked.
pub async fn is_hardware_blocked(conn: &mut Conn, device_instance_id: &str) -> Result<bool> {
    sql(
        "SELECT 1 FROM hubs WHERE device_instance_id = $1 AND blocked_at IS NOT NULL \
         AND released_at IS NOT NULL LIMIT 1",
    )
    .bind(device_instance_id)
    .exists(conn)
    .await
}

/// The number of hubs of the tenant, counted up to `limit`.
pub async fn count(conn: &mut Conn, tenant_uuid: TenantUuid, limit: i64) -> Result<i64> {
    sql("SELECT COUNT(*) FROM (SELECT 1 AS one FROM hubs \
         WHERE tenant_uuid = $1 AND released_at IS NULL LIMIT $2) AS counted")
    .bind((tenant_uuid, limit))
    .scalar(conn)
    .await
}

/// The values that a claim writes.
pub struct Claim<'a> {
    /// The id of a new hub.
    pub hub_uuid: HubUuid,
    pub tenant_uuid: TenantUuid,
    pub device_instance_id: &'a str,
    /// The label on the claim code; it takes precedence.
    pub code_identifier: Option<&'a str>,
    /// The label that the hub reports; used if there is no other.
    pub own_identifier: Option<&'a str>,
    pub agent_version: Option<&'a str>,
    pub hostname: Option<&'a str>,
    pub os: Option<Value>,
    pub owner_user_uuid: Option<UserUuid>,
    pub token_id: Uuid,
    pub refresh_token_hash: Vec<u8>,
    /// The hash of the key and the code, and that of the key alone.
    pub claim_key_hash: Option<Vec<u8>>,
    pub claim_proof_hash: Option<Vec<u8>>,
    pub now: Timestamp,
}

/// Creates the hub, or sets new credentials of the known hub. Returns None when the hub is blocked
/// or belongs to another tenant.
pub async fn claim(tx: &mut Tx, claim: Claim<'_>) -> Result<Option<HubUuid>> {
    sql(
        "INSERT INTO hubs (hub_uuid, tenant_uuid, device_instance_id, hub_identifier, \
         agent_version, hostname, os, owner_user_uuid, claimed_at, created_at, \
         access_token_id, refresh_token_hash, refreshed_at, claim_key_hash, \
         claim_proof_hash, desired_revision, owner_since) \
         VALUES ($1, $2, $3, COALESCE($4, $5), $6, $7, $8, $9, $10, $10, \
         $11, $12, $10, $13, $14, 1, $10) \
         ON CONFLICT (device_instance_id) WHERE released_at IS NULL DO UPDATE SET \
         hub_identifier = COALESCE($4, hubs.hub_identifier, $5), \
         agent_version = COALESCE(excluded.agent_version, hubs.agent_version), \
         hostname = COALESCE(excluded.hostname, hubs.hostname), \
         os = COALESCE(excluded.os, hubs.os), \
         owner_user_uuid = COALESCE(excluded.owner_user_uuid, hubs.owner_user_uuid), \
         owner_since = CASE WHEN excluded.owner_user_uuid = hubs.owner_user_uuid \
         OR excluded.owner_user_uuid IS NULL THEN hubs.owner_since \
         ELSE excluded.owner_since END, \
         claimed_at = excluded.claimed_at, \
         access_token_id = excluded.access_token_id, shown_access_token_id = NULL, \
         refresh_token_hash = excluded.refresh_token_hash, \
         refreshed_at = excluded.refreshed_at, readmitted_until = NULL, \
         shown_after_token_id = NULL, turns = 0, turned_at = NULL, cloned_at = NULL, \
         claim_key_hash = excluded.claim_key_hash, \
         claim_proof_hash = excluded.claim_proof_hash, \
         desired_revision = hubs.desired_revision + 1 \
         WHERE hubs.tenant_uuid = excluded.tenant_uuid AND hubs.blocked_at IS NULL \
         RETURNING hub_uuid",
    )
    .bind((
        claim.hub_uuid,
        claim.tenant_uuid,
        claim.device_instance_id,
        claim.code_identifier,
        claim.own_identifier,
        claim.agent_version,
        claim.hostname,
        claim.os,
        claim.owner_user_uuid,
        claim.now,
        claim.token_id,
        claim.refresh_token_hash,
        claim.claim_key_hash,
        claim.claim_proof_hash,
    ))
    .optional_scalar(tx)
    .await
}

/// The state that a refresh is checked against.
#[derive(sqlx::FromRow)]
pub struct Credentials {
    pub tenant_uuid: TenantUuid,
    pub blocked_at: Option<Timestamp>,
    pub access_token_id: Option<Uuid>,
    pub shown_access_token_id: Option<Uuid>,
    pub shown_after_token_id: Option<Uuid>,
    pub refresh_token_hash: Option<Vec<u8>>,
    pub refreshed_at: Option<Timestamp>,
    pub readmitted_until: Option<Timestamp>,
}

const CREDENTIALS: &str = "SELECT tenant_uuid, blocked_at, access_token_id, \
    shown_access_token_id, shown_after_token_id, refresh_token_hash, refreshed_at, \
    readmitted_until FROM hubs WHERE hub_uuid = $1";

pub async fn credentials(conn: &mut Conn, hub_uuid: HubUuid) -> Result<Option<Credentials>> {
    sql(CREDENTIALS).bind(hub_uuid).optional(conn).await
}

/// The row is locked until the transaction ends, so that of two refreshes one waits for the other.
pub async fn lock_credentials(tx: &mut Tx, hub_uuid: HubUuid) -> Result<Option<Credentials>> {
    sql(CREDENTIALS)
        .for_update(tx)
        .bind(hub_uuid)
        .optional(tx)
        .await
}

/// A token that a hub has shown.
pub struct Shown {
    pub token_id: Uuid,
    /// The newest token at that time.
    pub after: Uuid,
}

/// Sets the new token, and counts the lifetime of the refresh token from now on.
pub async fn replace_token(
    tx: &mut Tx,
    hub_uuid: HubUuid,
    token_id: Uuid,
    shown: Shown,
    now: Timestamp,
) -> Result<()> {
    sql(
        "UPDATE hubs SET access_token_id = $2, shown_access_token_id = $3, \
         shown_after_token_id = $4, refreshed_at = $5, \
         readmitted_until = NULL WHERE hub_uuid = $1",
    )
    .bind((hub_uuid, token_id, shown.token_id, shown.after, now))
    .run(tx)
    .await
}

/// A hub that has not used its refresh token for long.
#[derive(sqlx::FromRow)]
pub struct ExpiringRow {
    pub hub_uuid: HubUuid,
    pub hub_identifier: Option<String>,
    pub refreshed_at: Timestamp,
    pub readmitted_until: Option<Timestamp>,
}

/// Hubs of the tenant that refreshed before `refreshed_before` and were not readmitted beyond
/// `readmitted_before`; up to `limit`.
pub async fn expiring(
    conn: &mut Conn,
    scope: &Scope,
    refreshed_before: Timestamp,
    readmitted_before: Timestamp,
    limit: i64,
) -> Result<Vec<ExpiringRow>> {
    sql(
        "SELECT hub_uuid, hub_identifier, refreshed_at, readmitted_until FROM hubs \
         WHERE tenant_uuid = $1 AND released_at IS NULL AND refreshed_at < $2 \
         AND (readmitted_until IS NULL OR readmitted_until < $3) \
         ORDER BY created_at, hub_uuid LIMIT $4",
    )
    .bind((
        scope.tenant_uuid(),
        refreshed_before,
        readmitted_before,
        limit,
    ))
    .all(conn)
    .await
}

/// Lets the hub refresh until then.
pub async fn readmit(tx: &mut Tx, hub_uuid: HubUuid, until: Timestamp) -> Result<()> {
    sql("UPDATE hubs SET readmitted_until = $2 WHERE hub_uuid = $1")
        .bind((hub_uuid, until))
        .run(tx)
        .await
}

pub async fn exists(conn: &mut Conn, scope: &Scope, hub_uuid: HubUuid) -> Result<bool> {
    sql("SELECT 1 FROM hubs WHERE hub_uuid = $1 AND tenant_uuid = $2 AND released_at IS NULL")
        .bind((hub_uuid, scope.tenant_uuid()))
        .exists(conn)
        .await
}

/// As [`exists`], also for a hub that the tenant has released.
pub async fn existed(conn: &mut Conn, scope: &Scope, hub_uuid: HubUuid) -> Result<bool> {
    sql("SELECT 1 FROM hubs WHERE hub_uuid = $1 AND tenant_uuid = $2")
        .bind((hub_uuid, scope.tenant_uuid()))
        .exists(conn)
        .await
}

/// The given hubs of the tenant, released ones included. The list must not be empty.
pub async fn own(conn: &mut Conn, scope: &Scope, hubs: &[HubUuid]) -> Result<Vec<HubUuid>> {
    sql("SELECT hub_uuid FROM hubs WHERE tenant_uuid = $1 AND hub_uuid IN ")
        .bind(scope.tenant_uuid())
        .push_list(hubs.iter().copied())
        .scalars(conn)
        .await
}

/// The architecture that the hub reported when it was claimed, as in `uname -m`.
pub async fn architecture(conn: &mut Conn, hub_uuid: HubUuid) -> Result<Option<String>> {
    let os: Option<Option<Json<OperatingSystem>>> = sql("SELECT os FROM hubs WHERE hub_uuid = $1")
        .bind(hub_uuid)
        .optional_scalar(conn)
        .await?;
    Ok(os.flatten().and_then(|os| os.0.arch))
}

/// Records that the hub was in contact, and locks it like [`lock`].
pub async fn touch(
    tx: &mut Tx,
    tenant_uuid: TenantUuid,
    hub_uuid: HubUuid,
    now: Timestamp,
) -> Result<()> {
    lock_all(tx, &[hub_uuid]).await?;
    note_contact(tx, tenant_uuid, hub_uuid, now).await
}

/// Records that the hub was in contact. The caller has locked it: hubs are locked before what is
/// known of their contacts.
pub async fn note_contact(
    tx: &mut Tx,
    tenant_uuid: TenantUuid,
    hub_uuid: HubUuid,
    now: Timestamp,
) -> Result<()> {
    sql(
        "INSERT INTO hub_contacts (tenant_uuid, hub_uuid, last_seen_at) VALUES ($1, $2, $3) \
         ON CONFLICT (tenant_uuid, hub_uuid) DO UPDATE SET last_seen_at = excluded.last_seen_at",
    )
    .bind((tenant_uuid, hub_uuid, now))
    .run(tx)
    .await
}

/// Returns the new revision, or None when there is no such hub.
pub async fn bump_desired_revision(tx: &mut Tx, hub_uuid: HubUuid) -> Result<Option<i64>> {
    sql(
        "UPDATE hubs SET desired_revision = desired_revision + 1 WHERE hub_uuid = $1 \
         RETURNING desired_revision",
    )
    .bind(hub_uuid)
    .optional_scalar(tx)
    .await
}

/// As [`bump_desired_revision`], by several revisions.
pub async fn bump_desired_revision_by(
    tx: &mut Tx,
    hub_uuid: HubUuid,
    count: i64,
) -> Result<Option<i64>> {
    sql(
        "UPDATE hubs SET desired_revision = desired_revision + $2 WHERE hub_uuid = $1 \
         RETURNING desired_revision",
    )
    .bind((hub_uuid, count))
    .optional_scalar(tx)
    .await
}

/// The state that decides whether a hub may be given a job.
#[derive(sqlx::FromRow)]
pub struct Addressee {
    pub hub_uuid: HubUuid,
    pub tenant_uuid: TenantUuid,
    pub blocked_at: Option<Timestamp>,
    pub os: Option<Json<OperatingSystem>>,
}

/// The hub, locked until the transaction ends. Without a scope: of any tenant. A released hub is
/// not found.
pub async fn lock(
    tx: &mut Tx,
    scope: Option<&Scope>,
    hub_uuid: HubUuid,
) -> Result<Option<Addressee>> {
    let mut statement = sql("SELECT hub_uuid, tenant_uuid, blocked_at, os FROM hubs \
         WHERE hub_uuid = $1 AND released_at IS NULL")
    .bind(hub_uuid);
    if let Some(scope) = scope {
        statement = statement
            .push(" AND tenant_uuid = ")
            .push_bind(scope.tenant_uuid());
    }
    statement.for_update(tx).optional(tx).await
}

/// The tenant of a hub, for the platform and for callers that compare it with their own tenant.
pub async fn owner(conn: &mut Conn, hub_uuid: HubUuid) -> Result<Option<TenantUuid>> {
    sql("SELECT tenant_uuid FROM hubs WHERE hub_uuid = $1 AND released_at IS NULL")
        .bind(hub_uuid)
        .optional_scalar(conn)
        .await
}

/// The given hubs of the tenant that are not released. The list must not be empty.
pub async fn lock_present(tx: &mut Tx, scope: &Scope, hubs: &[HubUuid]) -> Result<Vec<HubUuid>> {
    sql("SELECT hub_uuid FROM hubs WHERE tenant_uuid = $1 AND released_at IS NULL AND hub_uuid IN ")
        .bind(scope.tenant_uuid())
        .push_list(hubs.iter().copied())
        .push(" ORDER BY hub_uuid")
        .for_update(tx)
        .scalars(tx)
        .await
}

/// Like [`lock`], for some hundred hubs of any tenants, in the common lock order. The list must
/// not be empty.
pub async fn lock_all(tx: &mut Tx, hubs: &[HubUuid]) -> Result<()> {
    sql("SELECT hub_uuid FROM hubs WHERE hub_uuid IN ")
        .push_list(hubs.iter().copied())
        .push(" ORDER BY hub_uuid")
        .for_update(tx)
        .run(tx)
        .await
}

/// The list must not be empty.
pub async fn bump_all(tx: &mut Tx, hubs: &[HubUuid]) -> Result<()> {
    sql("UPDATE hubs SET desired_revision = desired_revision + 1 WHERE hub_uuid IN ")
        .push_list(hubs.iter().copied())
        .run(tx)
        .await
}

/// Increments the desired revision of all hubs of the tenant. The rows are locked in key order, as
/// uploads lock them.
pub async fn bump_tenant(tx: &mut Tx, tenant_uuid: TenantUuid) -> Result<Vec<HubUuid>> {
    sql("UPDATE hubs SET desired_revision = desired_revision + 1 \
         WHERE hub_uuid IN (SELECT hub_uuid FROM hubs \
         WHERE tenant_uuid = $1 AND released_at IS NULL ORDER BY hub_uuid")
    .for_update(tx)
    .push(") RETURNING hub_uuid")
    .bind(tenant_uuid)
    .scalars(tx)
    .await
}

/// Records the version of the agent that the hub runs.
pub async fn set_agent_version(tx: &mut Tx, hub_uuid: HubUuid, version: &str) -> Result<()> {
    sql("UPDATE hubs SET agent_version = $2 WHERE hub_uuid = $1")
        .bind((hub_uuid, version))
        .run(tx)
        .await
}

/// The access token and the desired revision of each of these hubs.
pub async fn versions(
    conn: &mut Conn,
    hubs: Vec<HubUuid>,
) -> Result<Vec<(HubUuid, Option<Uuid>, i64)>> {
    Bulk {
        head: "WITH given (hub_uuid) AS (",
        columns: vec![Column::Uuid(
            hubs.into_iter().map(|hub_uuid| hub_uuid.0).collect(),
        )],
        tail: ") SELECT hubs.hub_uuid, hubs.access_token_id, hubs.desired_revision \
               FROM given JOIN hubs ON hubs.hub_uuid = COALESCE(given.hub_uuid, NULL)",
    }
    .returning(conn)
    .await
}

/// The identity of a hub's desired state.
#[derive(Clone, Copy, Debug, sqlx::FromRow)]
pub struct HubState {
    /// The id of the access token in force.
    #[sqlx(rename = "access_token_id")]
    pub token_id: Option<Uuid>,
    desired_revision: i64,
    pace_revision: i64,
}

impl HubState {
    /// Grows with every change of the desired state.
    pub const fn revision(&self) -> i64 {
        self.desired_revision + self.pace_revision
    }

    /// The part of the state whose change wakes a waiting hub at once. The pace of a tenant is
    /// excluded: it concerns all its hubs, whose requests must not all come at the same moment.
    /// They notice it when their requests have waited to their ends.
    pub const fn version(&self) -> HubVersion {
        (self.token_id, self.desired_revision)
    }
}

/// The identity of the hub's desired state now; None without such a hub.
pub async fn state(conn: &mut Conn, hub_uuid: HubUuid) -> Result<Option<HubState>> {
    sql("SELECT h.access_token_id, h.desired_revision, \
         COALESCE(p.revision, 0) AS pace_revision \
         FROM hubs h LEFT JOIN upload_paces p ON p.tenant_uuid = h.tenant_uuid \
         WHERE h.hub_uuid = $1")
    .bind(hub_uuid)
    .optional(conn)
    .await
}

/// The stored settings of a hub.
#[derive(sqlx::FromRow)]
pub struct SettingsRow {
    pub revision: i64,
    pub hub_identifier: Option<String>,
    pub upload_slot: i64,
    pub withholds_events: bool,
    /// The tenant's pause; None without a pace.
    pub pause_ms: Option<i64>,
}

pub async fn settings(conn: &mut Conn, hub_uuid: HubUuid) -> Result<SettingsRow> {
    sql(
        "SELECT h.desired_revision + COALESCE(p.revision, 0) AS revision, h.hub_identifier, \
         h.upload_slot, h.withholds_events, p.pause_ms \
         FROM hubs h LEFT JOIN upload_paces p ON p.tenant_uuid = h.tenant_uuid \
         WHERE h.hub_uuid = $1",
    )
    .bind(hub_uuid)
    .one(conn)
    .await
}

/// A hub as shown to its tenant.
#[derive(sqlx::FromRow)]
pub struct HubRow {
    pub hub_uuid: HubUuid,
    pub hub_identifier: Option<String>,
    pub device_instance_id: String,
    pub description: Option<String>,
    pub country: Option<String>,
    pub agent_version: Option<String>,
    pub hostname: Option<String>,
    pub os: Option<Json<OperatingSystem>>,
    pub owner_user_uuid: Option<UserUuid>,
    pub claimed_at: Timestamp,
    pub created_at: Timestamp,
    pub blocked_at: Option<Timestamp>,
    pub last_seen_at: Option<Timestamp>,
    pub last_telemetry_at: Option<Timestamp>,
    /// The last use of its refresh token; None without one in force.
    pub refreshed_at: Option<Timestamp>,
    pub readmitted_until: Option<Timestamp>,
    pub turns: i64,
    pub turned_at: Option<Timestamp>,
    pub flooded_at: Option<Timestamp>,
}

/// The columns of [`PlatformHubRow`], of which [`HubRow`] uses all but the first two.
const COLUMNS: &str = "tenant_uuid, released_at, hub_uuid, hub_identifier, \
    device_instance_id, description, country, agent_version, hostname, os, owner_user_uuid, \
    claimed_at, created_at, blocked_at, last_seen_at, last_telemetry_at, refreshed_at, \
    readmitted_until, turns, turned_at, flooded_at";

/// The hubs, each with the columns of its last contact.
const WITH_CONTACTS: &str = "FROM hubs LEFT JOIN hub_contacts USING (tenant_uuid, hub_uuid)";

/// A hub as shown to the platform.
#[derive(sqlx::FromRow)]
pub struct PlatformHubRow {
    pub tenant_uuid: TenantUuid,
    pub released_at: Option<Timestamp>,
    #[sqlx(flatten)]
    pub hub: HubRow,
}

/// Hubs of all tenants, also released ones, newest first, and how many there are. `search` is the
/// uuid of a hub or of a tenant, or the beginning of a hardware identity, a label or a host name.
pub async fn list_all(
    conn: &mut Conn,
    search: Option<&str>,
    slice: Slice,
) -> Result<(Vec<PlatformHubRow>, i64)> {
    let mut list = sql(WITH_CONTACTS);
    if let Some(search) = search {
        if let Ok(uuid) = search.parse::<Uuid>() {
            list = list.push(" WHERE (hub_uuid = ").push_bind(HubUuid(uuid));
            list = list
                .push(" OR tenant_uuid = ")
                .push_bind(TenantUuid(uuid))
                .push(" OR ");
        } else {
            list = list.push(" WHERE (");
        }
        // A text with this prefix is between the prefix and the prefix with the last character
        // appended.
        let last = format!("{search}{}", char::MAX);
        let columns = [
            "device_instance_id >= ",
            "hub_identifier >= ",
            "hostname >= ",
        ];
        let ends = [
            " AND device_instance_id < ",
            " AND hub_identifier < ",
            " AND hostname < ",
        ];
        for (index, (begin, end)) in columns.into_iter().zip(ends).enumerate() {
            list = list.push(if index == 0 { "" } else { " OR " });
            list = list
                .push(begin)
                .push_bind(search.to_owned())
                .push(end)
                .push_bind(last.clone());
        }
        list = list.push(")");
    }
    list.page(conn, COLUMNS, &["created_at DESC, hub_uuid DESC"], slice)
        .await
}

pub async fn get(conn: &mut Conn, scope: &Scope, hub_uuid: HubUuid) -> Result<Option<HubRow>> {
    sql("SELECT ")
        .push(COLUMNS)
        .push(" ")
        .push(WITH_CONTACTS)
        .push(" WHERE hub_uuid = $1 AND tenant_uuid = $2 AND released_at IS NULL")
        .bind((hub_uuid, scope.tenant_uuid()))
        .optional(conn)
        .await
}

/// A hub's label, description and country.
pub type Labels = (Option<String>, Option<String>, Option<String>);

/// The hub's label, description and country, locked until the transaction ends.
pub async fn lock_labels(tx: &mut Tx, scope: &Scope, hub_uuid: HubUuid) -> Result<Option<Labels>> {
    sql("SELECT hub_identifier, description, country FROM hubs \
         WHERE hub_uuid = $1 AND tenant_uuid = $2 AND released_at IS NULL")
    .for_update(tx)
    .bind((hub_uuid, scope.tenant_uuid()))
    .optional(tx)
    .await
}

/// Sets what is given and returns the result. Empty text removes what was there.
pub async fn update(
    tx: &mut Tx,
    scope: &Scope,
    hub_uuid: HubUuid,
    (hub_identifier, description, country): (Option<&str>, Option<&str>, Option<&str>),
) -> Result<Labels> {
    sql(
        "UPDATE hubs SET hub_identifier = NULLIF(COALESCE($3, hub_identifier), ''), \
         description = NULLIF(COALESCE($4, description), ''), \
         country = NULLIF(COALESCE($5, country), ''), \
         desired_revision = desired_revision + 1 WHERE hub_uuid = $1 AND tenant_uuid = $2 \
         RETURNING hub_identifier, description, country",
    )
    .bind((
        hub_uuid,
        scope.tenant_uuid(),
        hub_identifier,
        description,
        country,
    ))
    .one(tx)
    .await
}

/// The state that a block changes.
#[derive(sqlx::FromRow)]
pub struct BlockState {
    pub tenant_uuid: TenantUuid,
    pub blocked_at: Option<Timestamp>,
    pub released_at: Option<Timestamp>,
}

/// The hub, locked until the transaction ends. Of any tenant, and also a released one: the platform
/// blocks hubs, and a block outlasts a release.
pub async fn block_state(tx: &mut Tx, hub_uuid: HubUuid) -> Result<Option<BlockState>> {
    sql("SELECT tenant_uuid, blocked_at, released_at FROM hubs WHERE hub_uuid = $1")
        .for_update(tx)
        .bind(hub_uuid)
        .optional(tx)
        .await
}

/// Blocks the hub and deletes its tokens and its claim key.
pub async fn block(tx: &mut Tx, hub_uuid: HubUuid, now: Timestamp) -> Result<()> {
    sql(
        "UPDATE hubs SET blocked_at = $2, access_token_id = NULL, shown_access_token_id = NULL, \
         refresh_token_hash = NULL, refreshed_at = NULL, readmitted_until = NULL, \
         claim_key_hash = NULL, claim_proof_hash = NULL WHERE hub_uuid = $1",
    )
    .bind((hub_uuid, now))
    .run(tx)
    .await
}

/// The number of all hubs, and of those with telemetry after `online_since`.
pub async fn count_all(conn: &mut Conn, online_since: Timestamp) -> Result<(i64, i64)> {
    sql(
        "SELECT COUNT(*), COUNT(CASE WHEN last_telemetry_at > $1 THEN 1 END) \
         FROM hubs LEFT JOIN hub_contacts USING (tenant_uuid, hub_uuid) \
         WHERE released_at IS NULL",
    )
    .bind(online_since)
    .one(conn)
    .await
}

/// The tokens stay revoked.
pub async fn unblock(tx: &mut Tx, hub_uuid: HubUuid) -> Result<()> {
    sql("UPDATE hubs SET blocked_at = NULL WHERE hub_uuid = $1")
        .bind(hub_uuid)
        .run(tx)
        .await
}

/// A hub that is to be released.
#[derive(sqlx::FromRow)]
pub struct Releasable {
    pub tenant_uuid: TenantUuid,
    pub device_instance_id: String,
    pub hub_identifier: Option<String>,
    pub owner_user_uuid: Option<UserUuid>,
    pub blocked_at: Option<Timestamp>,
    pub released_at: Option<Timestamp>,
}

/// The hub, locked until the transaction ends, whether or not it is released. Without a scope: of
/// any tenant.
pub async fn lock_releasable(
    tx: &mut Tx,
    scope: Option<&Scope>,
    hub_uuid: HubUuid,
) -> Result<Option<Releasable>> {
    let mut statement = sql("SELECT tenant_uuid, device_instance_id, hub_identifier, \
         owner_user_uuid, blocked_at, released_at FROM hubs WHERE hub_uuid = $1")
    .bind(hub_uuid);
    if let Some(scope) = scope {
        statement = statement
            .push(" AND tenant_uuid = ")
            .push_bind(scope.tenant_uuid());
    }
    statement.for_update(tx).optional(tx).await
}

const RELEASE: &str = "UPDATE hubs SET released_at = $2, access_token_id = NULL, \
    shown_access_token_id = NULL, refresh_token_hash = NULL, refreshed_at = NULL, \
    readmitted_until = NULL, claim_key_hash = NULL, claim_proof_hash = NULL, \
    owner_user_uuid = NULL WHERE ";

/// Frees the hub's hardware, and deletes its tokens and its claim key.
pub async fn release(tx: &mut Tx, hub_uuid: HubUuid, now: Timestamp) -> Result<()> {
    sql(RELEASE)
        .push("hub_uuid = $1")
        .bind((hub_uuid, now))
        .run(tx)
        .await
}

/// As [`release`], for all hubs of the tenant. The rows are locked in key order, as uploads lock
/// them. Returns their number.
pub async fn release_all(tx: &mut Tx, scope: &Scope, now: Timestamp) -> Result<u64> {
    sql("DELETE FROM hub_appearances WHERE hub_uuid IN \
         (SELECT hub_uuid FROM hubs WHERE tenant_uuid = $1)")
    .bind(scope.tenant_uuid())
    .run(tx)
    .await?;
    sql(RELEASE)
        .push(
            "hub_uuid IN (SELECT hub_uuid FROM hubs \
             WHERE tenant_uuid = $1 AND released_at IS NULL ORDER BY hub_uuid",
        )
        .for_update(tx)
        .push(")")
        .bind((scope.tenant_uuid(), now))
        .execute(tx)
        .await
}

/// When these hubs were last in contact. The list must not be empty.
pub async fn last_seen(
    conn: &mut Conn,
    scope: &Scope,
    hub_uuids: &[HubUuid],
) -> Result<BTreeMap<HubUuid, Timestamp>> {
    let rows: Vec<(HubUuid, Timestamp)> = sql("SELECT hub_uuid, last_seen_at FROM hub_contacts \
         WHERE tenant_uuid = $1 AND hub_uuid IN ")
    .bind(scope.tenant_uuid())
    .push_list(hub_uuids.iter().copied())
    .all(conn)
    .await?;
    Ok(rows.into_iter().collect())
}
