//! SQL of device instances and of what was last heard of them.

use std::collections::{BTreeMap, HashSet};

use hub_base::db::{Conn, Slice, Sql, Tx, sql};
use hub_base::error::{Error, Result};
use hub_identity::authz::Scope;
use hub_protocol::{HubUuid, TenantUuid, Timestamp};
use serde_json::json;
use sqlx::types::Json;
use uuid::Uuid;

use super::display_name::Named;
use super::states::{self, DeviceState};
use super::{
    ActivationStatus, AddressType, Beacon, BindKeyStatus, Calibration, Heard, Instance, LastValue,
};

/// An instance as stored.
#[derive(sqlx::FromRow)]
struct Row {
    device_instance_id: i64,
    device_uuid: Uuid,
    device_version_uuid: Option<Uuid>,
    name: Option<String>,
    address: Option<String>,
    address_type: Option<String>,
    beacon: Option<String>,
    serial_number: Option<String>,
    labels: Json<BTreeMap<String, String>>,
    calibration: Json<BTreeMap<String, Calibration>>,
    #[sqlx(try_from = "String")]
    activation_status: ActivationStatus,
    #[sqlx(try_from = "String")]
    bind_key_status: BindKeyStatus,
    identity_resolving_key_hash: Option<Vec<u8>>,
    created_at: Timestamp,
    activated_at: Option<Timestamp>,
    retired_at: Option<Timestamp>,
}

const COLUMNS: &str = "i.device_instance_id, i.device_uuid, i.device_version_uuid, i.name, \
    i.address, i.address_type, i.beacon, i.serial_number, i.labels, i.calibration, \
    i.activation_status, i.bind_key_status, i.identity_resolving_key_hash, i.created_at, \
    i.activated_at, i.retired_at";

impl Row {
    fn into_instance(self) -> Result<Instance> {
        let beacon = self.beacon.map(|text| {
            Beacon::from_text(&text)
                .ok_or_else(|| Error::internal(format!("a stored beacon is malformed: {text:?}")))
        });
        Ok(Instance {
            device_instance_id: self.device_instance_id,
            device_uuid: self.device_uuid,
            device_version_uuid: self.device_version_uuid,
            name: self.name,
            address: self.address,
            address_type: self
                .address_type
                .map(AddressType::try_from)
                .transpose()
                .map_err(Error::internal)?,
            beacon: beacon.transpose()?,
            serial_number: self.serial_number,
            labels: self.labels.0,
            calibration: self.calibration.0,
            activation_status: self.activation_status,
            bind_key_status: self.bind_key_status,
            has_identity_resolving_key: self.identity_resolving_key_hash.is_some(),
            created_at: self.created_at,
            activated_at: self.activated_at,
            retired_at: self.retired_at,
        })
    }
}

/// An instance as stored, with the name of its model and its last reception.
#[derive(sqlx::FromRow)]
struct ShownRow {
    #[sqlx(flatten)]
    instance: Row,
    device_name: String,
    last_seen_at: Option<Timestamp>,
    last_rssi_dbm: Option<i64>,
    nearest_hub_uuid: Option<HubUuid>,
    nearest_rssi_dbm: Option<i64>,
    nearest_since: Option<Timestamp>,
    online_until: Option<Timestamp>,
    state: Option<String>,
}

/// The name of the model is looked up for the rows of a page alone, not for all that are counted.
const SHOWN_COLUMNS: &str = "i.device_instance_id, i.device_uuid, i.device_version_uuid, i.name, \
    i.address, i.address_type, i.beacon, i.serial_number, i.labels, i.calibration, \
    i.activation_status, i.bind_key_status, i.identity_resolving_key_hash, i.created_at, \
    i.activated_at, i.retired_at, m.name AS device_name, s.last_seen_at, s.last_rssi_dbm, \
    s.nearest_hub_uuid, s.nearest_rssi_dbm, s.nearest_since, s.online_until, s.state";

/// A device, the name of its model, and its last reception.
pub struct Shown {
    pub instance: Instance,
    pub device_name: String,
    pub heard: Heard,
}

impl Shown {
    /// The name as people see it.
    pub fn display_name(&self) -> String {
        let instance = &self.instance;
        Named {
            name: instance.name.as_deref(),
            model: &self.device_name,
            serial_number: instance.serial_number.as_deref(),
            address: instance.address.as_deref(),
            device_instance_id: instance.device_instance_id,
        }
        .display_name()
    }
}

impl ShownRow {
    fn into_shown(self) -> Result<Shown> {
        let state = self
            .state
            .map(|state| serde_json::from_str(&state).map_err(Error::internal))
            .transpose()?;
        Ok(Shown {
            instance: self.instance.into_instance()?,
            device_name: self.device_name,
            heard: Heard {
                last_seen_at: self.last_seen_at,
                last_rssi_dbm: self.last_rssi_dbm,
                nearest_hub_uuid: self.nearest_hub_uuid,
                nearest_rssi_dbm: self.nearest_rssi_dbm,
                nearest_since: self.nearest_since,
                online_until: self.online_until,
                state: state.unwrap_or_default(),
            },
        })
    }
}

/// Filters of a list.
#[derive(Debug, Default)]
pub struct Filters {
    pub activation_status: Option<ActivationStatus>,
    pub device_uuid: Option<Uuid>,
    /// A short list of devices; empty for all.
    pub device_instance_ids: Vec<i64>,
    /// The hub that hears the device best.
    pub hub_uuid: Option<HubUuid>,
    /// A part of a name, an address or a serial number, in any case.
    pub search: Option<String>,
    pub online: Option<bool>,
}

/// What is shown of devices. Citus plans a join with the models, and no subquery in its place.
const SHOWN_FROM: &str = "FROM device_instances i \
    LEFT JOIN device_models m ON m.device_uuid = i.device_uuid \
    LEFT JOIN device_states s ON s.tenant_uuid = i.tenant_uuid \
    AND s.device_instance_id = i.device_instance_id";

const OF_TENANT: &str = " WHERE i.tenant_uuid = $1";

/// One page, newest first, and the total number.
pub async fn list(
    conn: &mut Conn,
    scope: &Scope,
    filters: Filters,
    now: Timestamp,
    slice: Slice,
) -> Result<(Vec<Shown>, i64)> {
    let mut list = sql(SHOWN_FROM).push(OF_TENANT).bind(scope.tenant_uuid());
    if let Some(status) = filters.activation_status {
        list = list
            .push(" AND i.activation_status = ")
            .push_bind(status.name());
    }
    if let Some(device_uuid) = filters.device_uuid {
        list = list.push(" AND i.device_uuid = ").push_bind(device_uuid);
    }
    if !filters.device_instance_ids.is_empty() {
        list = list
            .push(" AND i.device_instance_id IN ")
            .push_list(filters.device_instance_ids);
    }
    if let Some(hub_uuid) = filters.hub_uuid {
        list = list.push(" AND s.nearest_hub_uuid = ").push_bind(hub_uuid);
    }
    // A part of a text has no index: the devices of the tenant are read, whose number is bounded.
    if let Some(search) = &filters.search {
        list = list
            .push(" AND ")
            .push_contains_text("i.search_text", &search.to_lowercase());
    }
    list = match filters.online {
        Some(true) => list.push(" AND s.online_until > ").push_bind(now),
        Some(false) => list
            .push(" AND (s.online_until IS NULL OR s.online_until <= ")
            .push_bind(now)
            .push(")"),
        None => list,
    };
    let (rows, total): (Vec<ShownRow>, i64) = list
        .page(conn, SHOWN_COLUMNS, &["i.device_instance_id DESC"], slice)
        .await?;
    Ok((
        rows.into_iter()
            .map(ShownRow::into_shown)
            .collect::<Result<_>>()?,
        total,
    ))
}

/// The text that a search examines, in lower case: SQLite lowers ASCII only.
fn search_text(instance: &Instance) -> String {
    let texts = [&instance.name, &instance.address, &instance.serial_number];
    texts
        .map(|text| text.as_deref().unwrap_or_default().to_lowercase())
        .join("\n")
}

pub async fn get(conn: &mut Conn, scope: &Scope, device_instance_id: i64) -> Result<Option<Shown>> {
    let row: Option<ShownRow> = sql("SELECT ")
        .push(SHOWN_COLUMNS)
        .push(" ")
        .push(SHOWN_FROM)
        .push(OF_TENANT)
        .push(" AND i.device_instance_id = $2")
        .bind((scope.tenant_uuid(), device_instance_id))
        .optional(conn)
        .await?;
    row.map(ShownRow::into_shown).transpose()
}

/// The given instances that exist, of any tenant. The list must not be empty.
pub async fn shown(conn: &mut Conn, ids: &[i64]) -> Result<Vec<Shown>> {
    let rows: Vec<ShownRow> = sql("SELECT ")
        .push(SHOWN_COLUMNS)
        .push(" ")
        .push(SHOWN_FROM)
        .push(" WHERE i.device_instance_id IN ")
        .push_list(ids.iter().copied())
        .all(conn)
        .await?;
    rows.into_iter().map(ShownRow::into_shown).collect()
}

/// The instance, locked until the transaction ends.
pub async fn lock(tx: &mut Tx, scope: &Scope, device_instance_id: i64) -> Result<Option<Instance>> {
    let row: Option<Row> = sql("SELECT ")
        .push(COLUMNS)
        .push(" FROM device_instances i WHERE i.tenant_uuid = $1 AND i.device_instance_id = $2")
        .bind((scope.tenant_uuid(), device_instance_id))
        .for_update(tx)
        .optional(tx)
        .await?;
    row.map(Row::into_instance).transpose()
}

/// Instances that one statement looks for.
const IDS: usize = 500;

/// The given devices that belong to the tenant.
pub async fn existing(
    conn: &mut Conn,
    tenant_uuid: TenantUuid,
    ids: &[i64],
) -> Result<HashSet<i64>> {
    let mut found = HashSet::new();
    for some in ids.chunks(IDS) {
        let ids: Vec<i64> = some_existing(tenant_uuid, some).scalars(conn).await?;
        found.extend(ids);
    }
    Ok(found)
}

/// The same, in a transaction: they stay until it ends. The ids are in order.
pub async fn hold_existing(
    tx: &mut Tx,
    tenant_uuid: TenantUuid,
    ids: &[i64],
) -> Result<HashSet<i64>> {
    let mut found = HashSet::new();
    for some in ids.chunks(IDS) {
        let ids: Vec<i64> = some_existing(tenant_uuid, some)
            .push(" ORDER BY device_instance_id")
            .for_share(tx)
            .scalars(tx)
            .await?;
        found.extend(ids);
    }
    Ok(found)
}

fn some_existing(tenant_uuid: TenantUuid, ids: &[i64]) -> Sql {
    sql("SELECT device_instance_id FROM device_instances \
         WHERE tenant_uuid = $1 AND device_instance_id IN ")
    .bind(tenant_uuid)
    .push_list(ids.iter().copied())
}

/// The tenants of those of these that exist. They stay until the transaction ends. The list must be
/// short and not empty.
pub async fn held_tenants(tx: &mut Tx, ids: &[i64]) -> Result<Vec<(i64, TenantUuid)>> {
    sql("SELECT device_instance_id, tenant_uuid FROM device_instances WHERE device_instance_id IN ")
        .push_list(ids.iter().copied())
        .push(" ORDER BY device_instance_id")
        .for_share(tx)
        .all(tx)
        .await
}

/// The learned interval, or that of the model; the outer None if there is no such instance.
pub async fn interval_secs(
    conn: &mut Conn,
    scope: &Scope,
    device_instance_id: i64,
) -> Result<Option<Option<i64>>> {
    sql(
        "SELECT COALESCE(s.interval_secs, (SELECT m.expected_interval_secs FROM device_models m \
         WHERE m.device_uuid = i.device_uuid)) FROM device_instances i \
         LEFT JOIN device_states s ON s.tenant_uuid = i.tenant_uuid \
         AND s.device_instance_id = i.device_instance_id \
         WHERE i.tenant_uuid = $1 AND i.device_instance_id = $2",
    )
    .bind((scope.tenant_uuid(), device_instance_id))
    .optional_scalar(conn)
    .await
}

/// The tenant's instances, counted up to a limit.
pub async fn count(conn: &mut Conn, scope: &Scope, limit: i64) -> Result<i64> {
    sql("SELECT COUNT(*) FROM (SELECT 1 FROM device_instances WHERE tenant_uuid = $1 LIMIT $2) c")
        .bind((scope.tenant_uuid(), limit))
        .scalar(conn)
        .await
}

/// The members of a device that recognition uses.
#[derive(sqlx::FromRow)]
pub struct CompiledRow {
    pub device_instance_id: i64,
    pub device_uuid: Uuid,
    pub device_version_uuid: Option<Uuid>,
    pub name: Option<String>,
    pub address: Option<String>,
    pub beacon: Option<String>,
    pub calibration: Json<BTreeMap<String, Calibration>>,
    #[sqlx(try_from = "String")]
    pub activation_status: ActivationStatus,
    #[sqlx(try_from = "String")]
    pub bind_key_status: BindKeyStatus,
    pub sealed_bind_key: Option<Vec<u8>>,
    pub sealed_identity_resolving_key: Option<Vec<u8>>,
}

/// The tenant's devices that changed after a revision of its catalog. At first, those that are
/// retired are left out.
pub async fn compiled(
    conn: &mut Conn,
    scope: &Scope,
    after_revision: i64,
) -> Result<Vec<CompiledRow>> {
    let rows = sql(
        "SELECT device_instance_id, device_uuid, device_version_uuid, name, address, \
         beacon, calibration, activation_status, bind_key_status, sealed_bind_key, \
         sealed_identity_resolving_key FROM device_instances WHERE tenant_uuid = $1",
    )
    .bind(scope.tenant_uuid());
    match after_revision {
        0 => rows.push(" AND retired_at IS NULL"),
        _ => rows
            .push(" AND catalog_revision > ")
            .push_bind(after_revision),
    }
    .all(conn)
    .await
}

/// The members of a device that hubs use.
#[derive(sqlx::FromRow)]
pub struct DescribedRow {
    pub device_instance_id: i64,
    pub device_uuid: Uuid,
    pub device_version_uuid: Option<Uuid>,
    pub name: Option<String>,
    pub address: Option<String>,
    pub beacon: Option<String>,
    pub calibration: Json<BTreeMap<String, Calibration>>,
}

/// The tenant's devices that are registered or active, by their ids.
pub async fn described(conn: &mut Conn, scope: &Scope) -> Result<Vec<DescribedRow>> {
    sql(
        "SELECT device_instance_id, device_uuid, device_version_uuid, name, address, beacon, \
         calibration FROM device_instances WHERE tenant_uuid = $1 \
         AND activation_status IN ('REGISTERED', 'ACTIVE') ORDER BY device_instance_id",
    )
    .bind(scope.tenant_uuid())
    .all(conn)
    .await
}

/// The keys of a device that has some.
#[derive(sqlx::FromRow)]
pub struct SealedKeys {
    pub device_instance_id: i64,
    pub sealed_bind_key: Option<Vec<u8>>,
    pub sealed_identity_resolving_key: Option<Vec<u8>>,
}

/// The keys of the devices that are registered or active, and whose nearest hub this is.
pub async fn keys_near(
    conn: &mut Conn,
    scope: &Scope,
    hub_uuid: HubUuid,
    limit: i64,
) -> Result<Vec<SealedKeys>> {
    sql(
        "SELECT i.device_instance_id, i.sealed_bind_key, i.sealed_identity_resolving_key \
         FROM device_states s JOIN device_instances i \
         ON i.tenant_uuid = s.tenant_uuid AND i.device_instance_id = s.device_instance_id \
         WHERE s.nearest_hub_uuid = $1 AND s.tenant_uuid = $2 \
         AND i.activation_status IN ('REGISTERED', 'ACTIVE') \
         AND (i.sealed_bind_key IS NOT NULL OR i.sealed_identity_resolving_key IS NOT NULL) \
         ORDER BY i.device_instance_id LIMIT $3",
    )
    .bind((hub_uuid, scope.tenant_uuid(), limit))
    .all(conn)
    .await
}

/// The identity of a device in advertisements.
#[derive(Clone, Copy)]
pub enum Identity<'a> {
    /// The beacon in the form of [`Beacon::to_text`].
    Beacon(&'a str),
    /// The hash of an identity resolving key.
    ResolvingKey(&'a [u8]),
    /// The address in upper case.
    Address(&'a str),
}

impl Identity<'_> {
    /// The name in messages.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Beacon(_) => "beacon",
            Self::ResolvingKey(_) => "identity resolving key",
            Self::Address(_) => "address",
        }
    }
}

/// The tenant's device that this identifies.
pub async fn holder(conn: &mut Conn, scope: &Scope, identity: Identity<'_>) -> Result<Option<i64>> {
    let statement = sql("SELECT device_instance_id FROM device_instances \
         WHERE tenant_uuid = $1 AND retired_at IS NULL AND ")
    .bind(scope.tenant_uuid());
    match identity {
        Identity::Beacon(beacon) => statement.push("beacon = ").push_bind(beacon),
        Identity::ResolvingKey(hash) => statement
            .push("identity_resolving_key_hash = ")
            .push_bind(hash),
        Identity::Address(address) => statement.push("address = ").push_bind(address),
    }
    .optional_scalar(conn)
    .await
}

/// Stores an instance without keys, and returns its id.
pub async fn insert(tx: &mut Tx, scope: &Scope, instance: &Instance) -> Result<i64> {
    sql(
        "INSERT INTO device_instances (tenant_uuid, device_uuid, device_version_uuid, name, \
         address, address_type, beacon, serial_number, labels, calibration, activation_status, \
         bind_key_status, search_text, created_at) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14) \
         RETURNING device_instance_id",
    )
    .bind((
        scope.tenant_uuid(),
        instance.device_uuid,
        instance.device_version_uuid,
        instance.name.clone(),
        instance.address.clone(),
        instance.address_type.map(AddressType::name),
        instance.beacon.as_ref().and_then(Beacon::to_text),
        instance.serial_number.clone(),
        json!(instance.labels),
        json!(instance.calibration),
        instance.activation_status.name(),
        BindKeyStatus::None.name(),
        search_text(instance),
        instance.created_at,
    ))
    .scalar(tx)
    .await
}

/// Stores all that can change of an instance, but its keys.
pub async fn update(tx: &mut Tx, scope: &Scope, instance: &Instance) -> Result<()> {
    sql(
        "UPDATE device_instances SET device_version_uuid = $3, name = $4, serial_number = $5, \
         labels = $6, calibration = $7, activation_status = $8, search_text = $9, \
         activated_at = $10, retired_at = $11 \
         WHERE device_instance_id = $1 AND tenant_uuid = $2",
    )
    .bind((
        instance.device_instance_id,
        scope.tenant_uuid(),
        instance.device_version_uuid,
        instance.name.clone(),
        instance.serial_number.clone(),
        json!(instance.labels),
        json!(instance.calibration),
        instance.activation_status.name(),
        search_text(instance),
        instance.activated_at,
        instance.retired_at,
    ))
    .run(tx)
    .await
}

/// Notes the revision of the catalog with which the device has changed.
pub async fn mark_changed(
    tx: &mut Tx,
    scope: &Scope,
    device_instance_id: i64,
    revision: i64,
) -> Result<()> {
    sql("UPDATE device_instances SET catalog_revision = $3 \
         WHERE device_instance_id = $1 AND tenant_uuid = $2")
    .bind((device_instance_id, scope.tenant_uuid(), revision))
    .run(tx)
    .await
}

pub async fn set_bind_key(
    tx: &mut Tx,
    scope: &Scope,
    device_instance_id: i64,
    sealed: Option<Vec<u8>>,
    status: BindKeyStatus,
) -> Result<()> {
    sql(
        "UPDATE device_instances SET sealed_bind_key = $3, bind_key_status = $4 \
         WHERE device_instance_id = $1 AND tenant_uuid = $2",
    )
    .bind((
        device_instance_id,
        scope.tenant_uuid(),
        sealed,
        status.name(),
    ))
    .run(tx)
    .await
}

pub async fn set_bind_key_status(
    tx: &mut Tx,
    scope: &Scope,
    device_instance_id: i64,
    status: BindKeyStatus,
) -> Result<()> {
    sql("UPDATE device_instances SET bind_key_status = $3 \
         WHERE device_instance_id = $1 AND tenant_uuid = $2 AND bind_key_status <> 'NONE'")
    .bind((device_instance_id, scope.tenant_uuid(), status.name()))
    .run(tx)
    .await
}

pub async fn set_identity_resolving_key(
    tx: &mut Tx,
    scope: &Scope,
    device_instance_id: i64,
    sealed: Option<Vec<u8>>,
    hash: Option<Vec<u8>>,
) -> Result<()> {
    sql(
        "UPDATE device_instances SET sealed_identity_resolving_key = $3, \
         identity_resolving_key_hash = $4 WHERE device_instance_id = $1 AND tenant_uuid = $2",
    )
    .bind((device_instance_id, scope.tenant_uuid(), sealed, hash))
    .run(tx)
    .await
}

/// The name that people gave a device.
pub async fn display_name(
    conn: &mut Conn,
    tenant_uuid: TenantUuid,
    device_instance_id: i64,
) -> Result<Option<String>> {
    let row: Option<ShownRow> = sql("SELECT ")
        .push(SHOWN_COLUMNS)
        .push(" ")
        .push(SHOWN_FROM)
        .push(OF_TENANT)
        .push(" AND i.device_instance_id = $2")
        .bind((tenant_uuid, device_instance_id))
        .optional(conn)
        .await?;
    let shown = row.map(ShownRow::into_shown).transpose()?;
    Ok(shown.map(|shown| shown.display_name()))
}

/// Deletes a device that is locked. Its state and its hours are deleted too.
pub async fn delete(tx: &mut Tx, scope: &Scope, device_instance_id: i64) -> Result<()> {
    for statement in [
        "DELETE FROM device_states WHERE tenant_uuid = $1 AND device_instance_id = $2",
        "DELETE FROM sensor_rollups WHERE tenant_uuid = $1 AND device_instance_id = $2",
        "DELETE FROM device_instances WHERE tenant_uuid = $1 AND device_instance_id = $2",
    ] {
        sql(statement)
            .bind((scope.tenant_uuid(), device_instance_id))
            .run(tx)
            .await?;
    }
    Ok(())
}

/// Deletes the keys of all devices of a tenant that is being deleted, and returns how many devices
/// had any.
pub async fn forget_keys(tx: &mut Tx, scope: &Scope) -> Result<u64> {
    sql(
        "UPDATE device_instances SET sealed_bind_key = NULL, bind_key_status = 'NONE', \
         sealed_identity_resolving_key = NULL, identity_resolving_key_hash = NULL \
         WHERE tenant_uuid = $1 \
         AND (sealed_bind_key IS NOT NULL OR sealed_identity_resolving_key IS NOT NULL)",
    )
    .bind(scope.tenant_uuid())
    .execute(tx)
    .await
}

/// A watched device, and its last reception.
#[derive(Clone, Debug)]
pub struct Watched {
    pub device_instance_id: i64,
    /// The name as people see it.
    pub display_name: String,
    pub activation_status: ActivationStatus,
    pub last_seen_at: Option<Timestamp>,
    pub online_until: Option<Timestamp>,
    pub nearest_hub_uuid: Option<HubUuid>,
    /// The last values by quantity.
    pub values: BTreeMap<String, LastValue>,
}

#[derive(sqlx::FromRow)]
struct WatchedRow {
    device_instance_id: i64,
    name: Option<String>,
    model: String,
    serial_number: Option<String>,
    address: Option<String>,
    #[sqlx(try_from = "String")]
    activation_status: ActivationStatus,
}

/// The tenant's devices after this one, in the order of their ids.
pub async fn watched(
    conn: &mut Conn,
    scope: &Scope,
    after: i64,
    limit: i64,
) -> Result<Vec<Watched>> {
    let rows: Vec<WatchedRow> = sql("SELECT i.device_instance_id, i.name, i.address, \
         i.serial_number, \
         (SELECT m.name FROM device_models m WHERE m.device_uuid = i.device_uuid) AS model, \
         i.activation_status FROM device_instances i \
         WHERE i.tenant_uuid = $1 AND i.device_instance_id > $2 \
         ORDER BY i.device_instance_id LIMIT $3")
    .bind((scope.tenant_uuid(), after, limit))
    .all(conn)
    .await?;
    let ids: Vec<i64> = rows.iter().map(|row| row.device_instance_id).collect();
    let mut states: BTreeMap<i64, DeviceState> = BTreeMap::new();
    for some in ids.chunks(IDS) {
        let found = states::read(conn, scope.tenant_uuid(), some).await?;
        states.extend(
            found
                .into_iter()
                .map(|state| (state.device_instance_id, state)),
        );
    }
    let watched = |row: WatchedRow| {
        let state = states.remove(&row.device_instance_id);
        Watched {
            device_instance_id: row.device_instance_id,
            display_name: Named {
                name: row.name.as_deref(),
                model: &row.model,
                serial_number: row.serial_number.as_deref(),
                address: row.address.as_deref(),
                device_instance_id: row.device_instance_id,
            }
            .display_name(),
            activation_status: row.activation_status,
            last_seen_at: state.as_ref().and_then(|state| state.last_seen_at),
            online_until: state.as_ref().and_then(|state| state.online_until),
            nearest_hub_uuid: state.as_ref().and_then(|state| state.nearest_hub_uuid),
            values: state.map(|state| state.values).unwrap_or_default(),
        }
    };
    Ok(rows.into_iter().map(watched).collect())
}

/// The number of a tenant's devices that are not retired.
#[derive(Clone, Copy, Debug, Default, sqlx::FromRow)]
pub struct DeviceCounts {
    pub total: i64,
    pub active: i64,
    /// Active devices that are online.
    pub online: i64,
}

pub async fn counts(conn: &mut Conn, scope: &Scope, now: Timestamp) -> Result<DeviceCounts> {
    sql("SELECT COUNT(*) AS total, \
         COUNT(CASE WHEN i.activation_status = 'ACTIVE' THEN 1 END) AS active, \
         COUNT(CASE WHEN i.activation_status = 'ACTIVE' AND s.online_until > $2 THEN 1 END) \
         AS online FROM device_instances i LEFT JOIN device_states s \
         ON s.tenant_uuid = i.tenant_uuid AND s.device_instance_id = i.device_instance_id \
         WHERE i.tenant_uuid = $1 AND i.activation_status <> 'RETIRED'")
    .bind((scope.tenant_uuid(), now))
    .one(conn)
    .await
}
