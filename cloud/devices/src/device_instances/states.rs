//! What was last heard of devices: a row for each device, written with the uploads.

use std::collections::BTreeMap;
use std::sync::Arc;

use hub_base::db::bulk::{Bulk, Column};
use hub_base::db::{Conn, Sql, Tx, sql};
use hub_base::error::{Error, Result};
use hub_protocol::{HubUuid, TenantUuid, Timestamp};

use super::LastValue;

/// A device's row.
#[derive(Clone, Debug, PartialEq)]
pub struct DeviceState {
    pub device_instance_id: i64,
    pub tenant_uuid: TenantUuid,
    pub last_seen_at: Option<Timestamp>,
    pub last_rssi_dbm: Option<i64>,
    pub nearest_hub_uuid: Option<HubUuid>,
    pub nearest_rssi_dbm: Option<i64>,
    pub nearest_since: Option<Timestamp>,
    pub interval_secs: Option<i64>,
    pub online_until: Option<Timestamp>,
    /// The last values by quantity.
    pub values: BTreeMap<String, LastValue>,
    /// The last authenticated counter, and when the device sent it.
    pub counter: Option<i64>,
    pub counter_at: Option<Timestamp>,
}

#[derive(sqlx::FromRow)]
struct Row {
    device_instance_id: i64,
    tenant_uuid: TenantUuid,
    last_seen_at: Option<Timestamp>,
    last_rssi_dbm: Option<i64>,
    nearest_hub_uuid: Option<HubUuid>,
    nearest_rssi_dbm: Option<i64>,
    nearest_since: Option<Timestamp>,
    interval_secs: Option<i64>,
    online_until: Option<Timestamp>,
    state: String,
    counter: Option<i64>,
    counter_at: Option<Timestamp>,
}

const COLUMNS: &str = "device_instance_id, tenant_uuid, last_seen_at, last_rssi_dbm, \
    nearest_hub_uuid, nearest_rssi_dbm, nearest_since, interval_secs, online_until, state, counter, \
    counter_at";

/// The rows of those of a tenant's devices that are there, None of those that have none. They stay
/// as they are until the transaction ends. The ids are in order, in which the rows are locked.
pub async fn lock(
    tx: &mut Tx,
    tenant_uuid: TenantUuid,
    ids: &[i64],
) -> Result<BTreeMap<i64, Option<DeviceState>>> {
    if ids.is_empty() {
        return Ok(BTreeMap::new());
    }
    let query = of(tenant_uuid, ids)
        .push(" ORDER BY device_instance_id")
        .for_update(tx);
    let mut found: BTreeMap<i64, Option<DeviceState>> = states(query.all(tx).await?)?
        .into_iter()
        .map(|state| (state.device_instance_id, Some(state)))
        .collect();
    let without: Vec<i64> = ids
        .iter()
        .copied()
        .filter(|id| !found.contains_key(id))
        .collect();
    let there = super::hold_existing(tx, tenant_uuid, &without).await?;
    found.extend(there.into_iter().map(|id| (id, None)));
    Ok(found)
}

/// The rows of these devices of the tenant.
pub async fn read(
    conn: &mut Conn,
    tenant_uuid: TenantUuid,
    ids: &[i64],
) -> Result<Vec<DeviceState>> {
    match ids {
        [] => Ok(Vec::new()),
        ids => states(of(tenant_uuid, ids).all(conn).await?),
    }
}

fn of(tenant_uuid: TenantUuid, ids: &[i64]) -> Sql {
    sql("SELECT ")
        .push(COLUMNS)
        .push(" FROM device_states WHERE tenant_uuid = $1 AND device_instance_id IN ")
        .bind(tenant_uuid)
        .push_list(ids.iter().copied())
}

fn states(rows: Vec<Row>) -> Result<Vec<DeviceState>> {
    let state = |row: Row| {
        Ok(DeviceState {
            device_instance_id: row.device_instance_id,
            tenant_uuid: row.tenant_uuid,
            last_seen_at: row.last_seen_at,
            last_rssi_dbm: row.last_rssi_dbm,
            nearest_hub_uuid: row.nearest_hub_uuid,
            nearest_rssi_dbm: row.nearest_rssi_dbm,
            nearest_since: row.nearest_since,
            interval_secs: row.interval_secs,
            online_until: row.online_until,
            values: serde_json::from_str(&row.state).map_err(Error::internal)?,
            counter: row.counter,
            counter_at: row.counter_at,
        })
    };
    rows.into_iter().map(state).collect()
}

/// Stores rows of devices that [`lock`] has found.
pub async fn store(tx: &mut Tx, states: &[DeviceState]) -> Result<()> {
    let column = |value: fn(&DeviceState) -> Option<i64>| {
        Column::OptionalInt(states.iter().map(value).collect())
    };
    let time = |value: fn(&DeviceState) -> Option<Timestamp>| {
        Column::OptionalTime(states.iter().map(value).collect::<Vec<_>>())
    };
    let mut texts = Vec::with_capacity(states.len());
    for state in states {
        texts.push(Arc::from(
            serde_json::to_string(&state.values).map_err(Error::internal)?,
        ));
    }
    Bulk {
        head: "INSERT INTO device_states (tenant_uuid, device_instance_id, last_seen_at, \
               last_rssi_dbm, nearest_hub_uuid, nearest_rssi_dbm, nearest_since, interval_secs, \
               online_until, state, counter, counter_at)",
        columns: vec![
            Column::Uuid(states.iter().map(|state| state.tenant_uuid.0).collect()),
            Column::Int(
                states
                    .iter()
                    .map(|state| state.device_instance_id)
                    .collect(),
            ),
            time(|state| state.last_seen_at),
            column(|state| state.last_rssi_dbm),
            Column::OptionalUuid(
                states
                    .iter()
                    .map(|state| state.nearest_hub_uuid.map(|hub| hub.0))
                    .collect(),
            ),
            column(|state| state.nearest_rssi_dbm),
            time(|state| state.nearest_since),
            column(|state| state.interval_secs),
            time(|state| state.online_until),
            Column::Text(texts),
            column(|state| state.counter),
            time(|state| state.counter_at),
        ],
        tail: "ON CONFLICT (tenant_uuid, device_instance_id) DO UPDATE SET \
               last_seen_at = excluded.last_seen_at, last_rssi_dbm = excluded.last_rssi_dbm, \
               nearest_hub_uuid = excluded.nearest_hub_uuid, \
               nearest_rssi_dbm = excluded.nearest_rssi_dbm, \
               nearest_since = excluded.nearest_since, interval_secs = excluded.interval_secs, \
               online_until = excluded.online_until, state = excluded.state, \
               counter = excluded.counter, counter_at = excluded.counter_at",
    }
    .execute(tx)
    .await
    .map(|_| ())
}
