//! SQL of what is a person's: their hubs, and through these their devices and suppliers.

use hub_base::db::{Conn, Slice, Sql, sql};
use hub_base::error::Result;
use hub_protocol::{HubUuid, TenantUuid, Timestamp};

use super::{EndUserNow, MAX_SUPPLIERS};

/// A hub of a person.
#[derive(Clone, Debug, sqlx::FromRow)]
pub struct OwnHub {
    pub hub_uuid: HubUuid,
    pub tenant_uuid: TenantUuid,
    pub hub_identifier: Option<String>,
    pub supplier_name: String,
    pub last_seen_at: Option<Timestamp>,
    pub last_telemetry_at: Option<Timestamp>,
    /// The time since which it is the person's.
    pub since: Timestamp,
    /// 1 if it is only delegated to the person.
    pub delegated: i64,
    pub device_count: i64,
}

/// A device of a person.
#[derive(Clone, Copy, Debug, sqlx::FromRow)]
pub struct OwnDevice {
    pub device_instance_id: i64,
    pub tenant_uuid: TenantUuid,
    /// The hub of the person that hears it best.
    pub hub_uuid: HubUuid,
    /// The time since which that hub is the person's.
    pub since: Timestamp,
}

/// The hubs of the person ($1 the account, $2 its e-mail, $3 the present time), each once.
const MINE: &str = "FROM (SELECT o.hub_uuid, MIN(o.since) AS since, \
    MIN(o.delegated) AS delegated FROM (\
    SELECT hub_uuid, COALESCE(owner_since, claimed_at) AS since, CAST(0 AS BIGINT) AS delegated \
    FROM hubs WHERE owner_user_uuid = $1 AND released_at IS NULL \
    UNION ALL SELECT hub_uuid, created_at, CAST(1 AS BIGINT) FROM setup_delegations \
    WHERE user_uuid = $1 AND (expires_at IS NULL OR expires_at > $3) \
    UNION ALL SELECT hub_uuid, created_at, CAST(1 AS BIGINT) FROM setup_delegations \
    WHERE email = $2 AND (expires_at IS NULL OR expires_at > $3)) o GROUP BY o.hub_uuid) mine \
    JOIN hubs h ON h.hub_uuid = mine.hub_uuid AND h.released_at IS NULL \
    JOIN tenants t ON t.tenant_uuid = h.tenant_uuid AND t.deleted_at IS NULL";

/// The devices whose nearest hub is one of these, and that were heard since the hub is the
/// person's. COALESCE keeps PostgreSQL from reading the index of all devices of the tenant besides.
const DEVICES: &str = " JOIN device_states s ON s.nearest_hub_uuid = h.hub_uuid \
    AND COALESCE(s.tenant_uuid, NULL) = h.tenant_uuid AND s.last_seen_at >= mine.since";

const HUB_COLUMNS: &str = "h.hub_uuid, h.tenant_uuid, h.hub_identifier, \
    t.name AS supplier_name, h.last_seen_at, h.last_telemetry_at, mine.since, mine.delegated, \
    (SELECT COUNT(*) FROM device_states s WHERE s.nearest_hub_uuid = h.hub_uuid \
    AND COALESCE(s.tenant_uuid, NULL) = h.tenant_uuid AND s.last_seen_at >= mine.since) \
    AS device_count";

const DEVICE_COLUMNS: &str = "s.device_instance_id, h.tenant_uuid, h.hub_uuid, mine.since";

/// The FROM of [`hubs_of`] again, and what adds the devices near the hubs, `s`.
pub const HUBS: &str = MINE;
pub const DEVICES_NEAR: &str = DEVICES;

/// The person's hubs, `h`, each with `mine.since`. The statement is a FROM with three values.
pub fn hubs_of(person: &EndUserNow) -> Sql {
    mine(person)
}

fn mine(person: &EndUserNow) -> Sql {
    sql(MINE).bind((person.user_uuid, person.email.clone(), person.now))
}

fn devices(person: &EndUserNow, hub_uuid: Option<HubUuid>) -> Sql {
    let devices = mine(person).push(DEVICES);
    match hub_uuid {
        Some(hub_uuid) => devices.push(" WHERE h.hub_uuid = ").push_bind(hub_uuid),
        None => devices,
    }
}

/// One page, newest first, and the total number.
pub async fn hubs(
    conn: &mut Conn,
    person: &EndUserNow,
    slice: Slice,
) -> Result<(Vec<OwnHub>, i64)> {
    mine(person)
        .page(
            conn,
            HUB_COLUMNS,
            &["h.created_at DESC, h.hub_uuid DESC"],
            slice,
        )
        .await
}

pub async fn hub(
    conn: &mut Conn,
    person: &EndUserNow,
    hub_uuid: HubUuid,
) -> Result<Option<OwnHub>> {
    sql("SELECT ")
        .push(HUB_COLUMNS)
        .push(" ")
        .append(&mine(person))
        .push(" WHERE h.hub_uuid = ")
        .push_bind(hub_uuid)
        .optional(conn)
        .await
}

/// The given hubs that belong to the person. The list must not be empty.
pub async fn own_hubs(
    conn: &mut Conn,
    person: &EndUserNow,
    hubs: &[HubUuid],
) -> Result<Vec<HubUuid>> {
    sql("SELECT h.hub_uuid ")
        .append(&mine(person))
        .push(" WHERE h.hub_uuid IN ")
        .push_list(hubs.iter().copied())
        .scalars(conn)
        .await
}

/// One page, newest first, and the total number: of one hub, or of all.
pub async fn list_devices(
    conn: &mut Conn,
    person: &EndUserNow,
    hub_uuid: Option<HubUuid>,
    slice: Slice,
) -> Result<(Vec<OwnDevice>, i64)> {
    devices(person, hub_uuid)
        .page(conn, DEVICE_COLUMNS, &["s.device_instance_id DESC"], slice)
        .await
}

pub async fn device(
    conn: &mut Conn,
    person: &EndUserNow,
    device_instance_id: i64,
) -> Result<Option<OwnDevice>> {
    sql("SELECT ")
        .push(DEVICE_COLUMNS)
        .push(" ")
        .append(&devices(person, None))
        .push(" WHERE s.device_instance_id = ")
        .push_bind(device_instance_id)
        .optional(conn)
        .await
}

pub async fn has_supplier(
    conn: &mut Conn,
    person: &EndUserNow,
    supplier: TenantUuid,
) -> Result<bool> {
    sql("SELECT 1 ")
        .append(&mine(person))
        .push(" WHERE h.tenant_uuid = ")
        .push_bind(supplier)
        .exists(conn)
        .await
}

/// The suppliers of the person's hubs.
pub async fn suppliers(conn: &mut Conn, person: &EndUserNow) -> Result<Vec<TenantUuid>> {
    sql("SELECT DISTINCT h.tenant_uuid ")
        .append(&mine(person))
        .push(" ORDER BY h.tenant_uuid LIMIT ")
        .push_bind(MAX_SUPPLIERS)
        .scalars(conn)
        .await
}
