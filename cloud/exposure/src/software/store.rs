//! SQL of lists of packages, and of what hubs run.

use hub_base::db::{Conn, Tx, sql};
use hub_base::error::Result;
use hub_protocol::packages::SoftwareReport;
use hub_protocol::{HubUuid, ReleaseUuid, TenantUuid, Timestamp};

use super::list::StoredList;

/// Names a list.
#[derive(Clone, Debug, PartialEq, Eq, sqlx::FromRow)]
pub struct ListKey {
    pub tenant_uuid: TenantUuid,
    pub list_sha256: Vec<u8>,
}

/// What a hub runs.
#[derive(Clone, Debug, sqlx::FromRow)]
pub struct Running {
    pub began_at: Timestamp,
    pub list_sha256: Vec<u8>,
    pub kernel: Option<String>,
    pub bluez: Option<String>,
    pub agent: String,
    /// JSON.
    pub adapter_firmware: String,
}

impl Running {
    pub fn reported(report: &SoftwareReport, list_sha256: Vec<u8>) -> Self {
        Self {
            began_at: Timestamp::from_micros(0),
            list_sha256,
            kernel: report.kernel.clone(),
            bluez: report.bluez.clone(),
            agent: report.agent.clone(),
            // A map of texts is always JSON.
            adapter_firmware: serde_json::to_string(&report.adapter_firmware).unwrap_or_default(),
        }
    }

    /// Whether both say the same, whenever they began.
    pub fn equals(&self, other: &Self) -> bool {
        self.list_sha256 == other.list_sha256
            && self.kernel == other.kernel
            && self.bluez == other.bluez
            && self.agent == other.agent
            && self.adapter_firmware == other.adapter_firmware
    }
}

pub async fn current(
    conn: &mut Conn,
    tenant_uuid: TenantUuid,
    hub_uuid: HubUuid,
) -> Result<Option<Running>> {
    sql(
        "SELECT began_at, list_sha256, kernel, bluez, agent, adapter_firmware FROM hub_software \
         WHERE tenant_uuid = $1 AND hub_uuid = $2 AND ended_at IS NULL",
    )
    .bind((tenant_uuid, hub_uuid))
    .optional(conn)
    .await
}

pub async fn end(
    tx: &mut Tx,
    tenant_uuid: TenantUuid,
    hub_uuid: HubUuid,
    at: Timestamp,
) -> Result<()> {
    sql("UPDATE hub_software SET ended_at = $3 \
         WHERE tenant_uuid = $1 AND hub_uuid = $2 AND ended_at IS NULL")
    .bind((tenant_uuid, hub_uuid, at))
    .run(tx)
    .await
}

pub async fn begin(
    tx: &mut Tx,
    tenant_uuid: TenantUuid,
    hub_uuid: HubUuid,
    running: &Running,
    at: Timestamp,
) -> Result<()> {
    sql(
        "INSERT INTO hub_software (tenant_uuid, hub_uuid, began_at, list_sha256, kernel, bluez, \
         agent, adapter_firmware) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
    )
    .bind((
        tenant_uuid,
        hub_uuid,
        at,
        running.list_sha256.as_slice(),
        running.kernel.as_deref(),
        running.bluez.as_deref(),
        running.agent.as_str(),
        running.adapter_firmware.as_str(),
    ))
    .run(tx)
    .await
}

/// Stores a list, unless it is there.
pub async fn put_list(
    tx: &mut Tx,
    tenant_uuid: TenantUuid,
    list: &StoredList,
    now: Timestamp,
) -> Result<()> {
    sql(
        "INSERT INTO package_lists (tenant_uuid, list_sha256, distribution, distribution_version, \
         package_count, packages, created_at, matched_revision) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, 0) ON CONFLICT (tenant_uuid, list_sha256) DO NOTHING",
    )
    .bind((
        tenant_uuid,
        list.sha256.as_slice(),
        list.distribution.as_str(),
        list.distribution_version.as_str(),
        list.package_count,
        list.packed.as_slice(),
        now,
    ))
    .run(tx)
    .await
}

pub async fn has_list(conn: &mut Conn, tenant_uuid: TenantUuid, sha256: &[u8]) -> Result<bool> {
    sql("SELECT 1 FROM package_lists WHERE tenant_uuid = $1 AND list_sha256 = $2")
        .bind((tenant_uuid, sha256))
        .exists(conn)
        .await
}

/// As [`has_list`]. The list, if it is there, stays until the transaction ends.
pub async fn lock_list(tx: &mut Tx, tenant_uuid: TenantUuid, sha256: &[u8]) -> Result<bool> {
    sql("SELECT 1 FROM package_lists WHERE tenant_uuid = $1 AND list_sha256 = $2")
        .for_share(tx)
        .bind((tenant_uuid, sha256))
        .exists(tx)
        .await
}

/// The packages of a list as they are stored.
pub async fn packed(conn: &mut Conn, key: &ListKey) -> Result<Option<Vec<u8>>> {
    sql("SELECT packages FROM package_lists WHERE tenant_uuid = $1 AND list_sha256 = $2")
        .bind((key.tenant_uuid, key.list_sha256.as_slice()))
        .optional_scalar(conn)
        .await
}

/// Lists that were matched with an earlier revision, up to `limit`.
pub async fn behind(conn: &mut Conn, revision: i64, limit: i64) -> Result<Vec<ListKey>> {
    sql(
        "SELECT tenant_uuid, list_sha256 FROM package_lists WHERE matched_revision < $1 \
         ORDER BY matched_revision LIMIT $2",
    )
    .bind((revision, limit))
    .all(conn)
    .await
}

/// Returns false if the list has gone.
pub async fn set_matched(tx: &mut Tx, key: &ListKey, revision: i64) -> Result<bool> {
    let changed = sql("UPDATE package_lists SET matched_revision = $3 \
         WHERE tenant_uuid = $1 AND list_sha256 = $2")
    .bind((key.tenant_uuid, key.list_sha256.as_slice(), revision))
    .execute(tx)
    .await?;
    Ok(changed > 0)
}

/// Whether something that hubs ran has ended before this time.
pub async fn has_before(conn: &mut Conn, before: Timestamp) -> Result<bool> {
    sql("SELECT 1 FROM hub_software WHERE ended_at < $1 LIMIT 1")
        .bind(before)
        .exists(conn)
        .await
}

/// Deletes what hubs ran until before this time, up to `limit` rows.
pub async fn forget_before(tx: &mut Tx, before: Timestamp, limit: i64) -> Result<u64> {
    sql(
        "DELETE FROM hub_software WHERE (tenant_uuid, hub_uuid, began_at) IN \
         (SELECT tenant_uuid, hub_uuid, began_at FROM hub_software WHERE ended_at < $1 LIMIT $2)",
    )
    .bind((before, limit))
    .execute(tx)
    .await
}

/// Notes the list of what a release consists of, in place of the one before.
pub async fn put_release(
    tx: &mut Tx,
    tenant_uuid: TenantUuid,
    release_uuid: ReleaseUuid,
    list_sha256: &[u8],
) -> Result<()> {
    sql(
        "INSERT INTO release_software (tenant_uuid, release_uuid, list_sha256) VALUES ($1, $2, $3) \
         ON CONFLICT (tenant_uuid, release_uuid) DO UPDATE SET list_sha256 = excluded.list_sha256",
    )
    .bind((tenant_uuid, release_uuid, list_sha256))
    .run(tx)
    .await
}

/// Deletes what is noted of a release of the platform, for all tenants: it is noted anew.
pub async fn forget_release(tx: &mut Tx, release_uuid: ReleaseUuid) -> Result<()> {
    sql("DELETE FROM release_software WHERE release_uuid = $1")
        .bind(release_uuid)
        .run(tx)
        .await
}

/// Names the list of what a release consists of; None if that is not known.
pub async fn of_release(
    conn: &mut Conn,
    tenant_uuid: TenantUuid,
    release_uuid: ReleaseUuid,
) -> Result<Option<ListKey>> {
    sql("SELECT tenant_uuid, list_sha256 FROM release_software \
         WHERE tenant_uuid = $1 AND release_uuid = $2")
    .bind((tenant_uuid, release_uuid))
    .optional(conn)
    .await
}

/// Deletes lists that neither a hub has or had, nor a release, up to `limit`, with what exposes
/// them.
pub async fn forget_lists(tx: &mut Tx, limit: i64) -> Result<u64> {
    sql(
        "DELETE FROM package_lists WHERE (tenant_uuid, list_sha256) IN \
         (SELECT tenant_uuid, list_sha256 FROM package_lists p WHERE NOT EXISTS \
         (SELECT 1 FROM hub_software h WHERE h.tenant_uuid = p.tenant_uuid \
         AND h.list_sha256 = p.list_sha256) AND NOT EXISTS \
         (SELECT 1 FROM release_software r WHERE r.tenant_uuid = p.tenant_uuid \
         AND r.list_sha256 = p.list_sha256) LIMIT $1)",
    )
    .bind(limit)
    .execute(tx)
    .await
}

/// Deletes all of a tenant that is being deleted.
pub async fn forget_all(tx: &mut Tx, tenant_uuid: TenantUuid) -> Result<u64> {
    let hubs = sql("DELETE FROM hub_software WHERE tenant_uuid = $1")
        .bind(tenant_uuid)
        .execute(tx)
        .await?;
    sql("DELETE FROM release_software WHERE tenant_uuid = $1")
        .bind(tenant_uuid)
        .run(tx)
        .await?;
    sql("DELETE FROM package_lists WHERE tenant_uuid = $1")
        .bind(tenant_uuid)
        .run(tx)
        .await?;
    Ok(hubs)
}
