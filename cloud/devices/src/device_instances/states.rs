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

/// The rows of these devices, locked until the transaction ends. The ids are in order, in which
/// the rows are locked.
pub async fn lock(tx: &mut Tx, ids: &[i64]) -> Result<Vec<DeviceState>> {
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let query = of(ids).push(" ORDER BY device_instance_id").for_update(tx);
    states(query.all(tx).await?)
}

/// The rows of these devices.
pub async fn read(conn: &mut Conn, ids: &[i64]) -> Result<Vec<DeviceState>> {
    match ids {
        [] => Ok(Vec::new()),
        ids => states(of(ids).all(conn).await?),
    }
}

fn of(ids: &[i64]) -> Sql {
    sql("SELECT ")
        .push(COLUMNS)
        .push(" FROM device_states WHERE device_instance_id IN ")
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

/// Stores rows. That of a device that was deleted meanwhile is left out.
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
        head: "WITH given (device_instance_id, last_seen_at, last_rssi_dbm, nearest_hub_uuid, \
               nearest_rssi_dbm, nearest_since, interval_secs, online_until, state, counter, \
               counter_at) AS (",
        columns: vec![
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
        tail: ") INSERT INTO device_states (device_instance_id, tenant_uuid, last_seen_at, \
               last_rssi_dbm, nearest_hub_uuid, nearest_rssi_dbm, nearest_since, interval_secs, \
               online_until, state, counter, counter_at) \
               SELECT given.device_instance_id, device_instances.tenant_uuid, given.last_seen_at, \
               given.last_rssi_dbm, given.nearest_hub_uuid, given.nearest_rssi_dbm, \
               given.nearest_since, given.interval_secs, given.online_until, given.state, \
               given.counter, given.counter_at FROM given JOIN device_instances \
               ON device_instances.device_instance_id = given.device_instance_id WHERE true \
               ON CONFLICT (device_instance_id) DO UPDATE SET \
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
