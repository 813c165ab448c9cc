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
    /// The time since which it is the person's.
    pub since: Timestamp,
    /// 1 if it is only delegated to the person.
    pub delegated: i64,
    /// None of a hub that was never in contact.
    #[sqlx(skip)]
    pub contact: Option<Contact>,
    /// The devices that it hears best.
    #[sqlx(skip)]
    pub device_count: i64,
}

/// When a hub was last in contact.
#[derive(Clone, Copy, Debug, sqlx::FromRow)]
pub struct Contact {
    pub hub_uuid: HubUuid,
    pub last_seen_at: Timestamp,
    pub last_telemetry_at: Option<Timestamp>,
}

/// Hubs whose contacts one statement reads.
const HUBS_AT_A_TIME: usize = 100;

/// A hub of a person, and its supplier.
#[derive(Clone, Copy, Debug, sqlx::FromRow)]
pub struct HubOfPerson {
    pub hub_uuid: HubUuid,
    pub tenant_uuid: TenantUuid,
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
/// person's.
const DEVICES: &str = " JOIN device_states s ON s.tenant_uuid = h.tenant_uuid \
    AND s.nearest_hub_uuid = h.hub_uuid AND s.last_seen_at >= mine.since";

const HUB_COLUMNS: &str = "h.hub_uuid, h.tenant_uuid, h.hub_identifier, \
    t.name AS supplier_name, mine.since, mine.delegated";

const DEVICE_COLUMNS: &str = "s.device_instance_id, h.tenant_uuid, h.hub_uuid, mine.since";

/// The FROM of [`hubs_of`] again, and what adds the devices near the hubs, `s`.
pub const HUBS: &str = MINE;
pub const DEVICES_NEAR: &str = DEVICES;

/// The person's hubs, `h`, each with `mine.since`. The statement is a FROM with three values.
pub fn hubs_of(person: &EndUserNow) -> Sql {
    mine(person)
}

fn mine(person: &EndUserNow) -> Sql {
    let mine = sql(MINE).bind((person.user_uuid, person.email.clone(), person.now));
    match person.owned_only {
        true => mine.push(" AND mine.delegated = 0"),
        false => mine,
    }
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
    let (mut hubs, total): (Vec<OwnHub>, i64) = mine(person)
        .page(
            conn,
            HUB_COLUMNS,
            &["h.created_at DESC, h.hub_uuid DESC"],
            slice,
        )
        .await?;
    for some in hubs.chunks_mut(HUBS_AT_A_TIME) {
        add_contacts(conn, some).await?;
    }
    Ok((hubs, total))
}

/// Adds what uploads say of the hubs, since they are the person's. The list must be short and not
/// empty.
async fn add_contacts(conn: &mut Conn, hubs: &mut [OwnHub]) -> Result<()> {
    let mut contacts =
        sql("SELECT hub_uuid, last_seen_at, last_telemetry_at FROM hub_contacts WHERE ");
    let mut devices = sql("SELECT nearest_hub_uuid, COUNT(*) FROM device_states WHERE ");
    for (at, hub) in hubs.iter().enumerate() {
        let or = if at > 0 { " OR " } else { "" };
        contacts = contacts
            .push(or)
            .push("(tenant_uuid = ")
            .push_bind(hub.tenant_uuid)
            .push(" AND hub_uuid = ")
            .push_bind(hub.hub_uuid)
            .push(")");
        devices = devices
            .push(or)
            .push("(tenant_uuid = ")
            .push_bind(hub.tenant_uuid)
            .push(" AND nearest_hub_uuid = ")
            .push_bind(hub.hub_uuid)
            .push(" AND last_seen_at >= ")
            .push_bind(hub.since)
            .push(")");
    }
    let contacts: Vec<Contact> = contacts.all(conn).await?;
    let devices: Vec<(HubUuid, i64)> = devices.push(" GROUP BY nearest_hub_uuid").all(conn).await?;
    for hub in hubs {
        let known = contacts.iter().find(|one| one.hub_uuid == hub.hub_uuid);
        hub.contact = known.copied();
        let count = devices
            .iter()
            .find(|(hub_uuid, _)| *hub_uuid == hub.hub_uuid);
        hub.device_count = count.map_or(0, |(_, devices)| *devices);
    }
    Ok(())
}

pub async fn hub(
    conn: &mut Conn,
    person: &EndUserNow,
    hub_uuid: HubUuid,
) -> Result<Option<OwnHub>> {
    let mut hub: Option<OwnHub> = sql("SELECT ")
        .push(HUB_COLUMNS)
        .push(" ")
        .append(&mine(person))
        .push(" WHERE h.hub_uuid = ")
        .push_bind(hub_uuid)
        .optional(conn)
        .await?;
    if let Some(hub) = &mut hub {
        add_contacts(conn, std::slice::from_mut(hub)).await?;
    }
    Ok(hub)
}

/// Some, newest first, or the given one.
pub async fn some_hubs(
    conn: &mut Conn,
    person: &EndUserNow,
    hub_uuid: Option<HubUuid>,
    limit: i64,
) -> Result<Vec<HubOfPerson>> {
    let hubs = sql("SELECT h.hub_uuid, h.tenant_uuid ").append(&mine(person));
    let hubs = match hub_uuid {
        Some(hub_uuid) => hubs.push(" WHERE h.hub_uuid = ").push_bind(hub_uuid),
        None => hubs.push(" ORDER BY h.created_at DESC, h.hub_uuid DESC"),
    };
    hubs.push(" LIMIT ").push_bind(limit).all(conn).await
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

/// Some, newest first: of one hub, or of all.
pub async fn some_devices(
    conn: &mut Conn,
    person: &EndUserNow,
    hub_uuid: Option<HubUuid>,
    limit: i64,
) -> Result<Vec<OwnDevice>> {
    sql("SELECT ")
        .push(DEVICE_COLUMNS)
        .push(" ")
        .append(&devices(person, hub_uuid))
        .push(" ORDER BY s.device_instance_id DESC LIMIT ")
        .push_bind(limit)
        .all(conn)
        .await
}

/// The given devices that are the person's. The list must not be empty.
pub async fn own_devices(
    conn: &mut Conn,
    person: &EndUserNow,
    ids: &[i64],
) -> Result<Vec<OwnDevice>> {
    sql("SELECT ")
        .push(DEVICE_COLUMNS)
        .push(" ")
        .append(&devices(person, None))
        .push(" WHERE s.device_instance_id IN ")
        .push_list(ids.iter().copied())
        .all(conn)
        .await
}

pub async fn device(
    conn: &mut Conn,
    person: &EndUserNow,
    device_instance_id: i64,
) -> Result<Option<OwnDevice>> {
    let own = own_devices(conn, person, &[device_instance_id]).await?;
    Ok(own.into_iter().next())
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
