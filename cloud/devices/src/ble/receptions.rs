//! Receptions of devices: stored events reduced to what the API shows of a device, and the SQL that
//! reads them.

use hub_base::db::{Conn, Direction, sql};
use hub_base::error::Result;
use hub_identity::authz::Scope;
use hub_protocol::{HubUuid, TenantUuid, Timestamp};
use serde::Deserialize;

use super::ReceptionResponse;

/// Bluetooth's value for an unknown signal strength.
const UNKNOWN_DBM: i16 = 127;

/// The signal strengths of receptions, in dBm.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Strength {
    pub min: i16,
    pub max: i16,
    pub mean: f64,
}

/// One event of a device.
#[derive(Debug)]
pub struct Reception {
    pub ble_event_id: i64,
    pub device_instance_id: i64,
    pub hub_uuid: HubUuid,
    /// When the hub received it; of a window, the last time. Never after the service received it.
    pub observed_at: Timestamp,
    /// The number of advertisements; more than one for a window alone.
    pub count: i64,
    pub strength: Option<Strength>,
    /// Whether another hub's reception of the same frame came first.
    pub is_repeat: bool,
    /// The values, by key as in [`super::Reading`].
    pub values: serde_json::Map<String, serde_json::Value>,
}

impl Reception {
    /// The signal strength in dBm; of a window, the mean.
    pub fn rssi_dbm(&self) -> Option<i64> {
        self.strength.map(|strength| strength.mean.round() as i64)
    }
}

#[derive(sqlx::FromRow)]
struct Row {
    ble_event_id: i64,
    device_instance_id: i64,
    hub_uuid: HubUuid,
    window_start: Option<Timestamp>,
    reading: Option<String>,
    observation_id: Option<i64>,
    event: String,
}

const COLUMNS: &str = "ble_event_id, device_instance_id, hub_uuid, window_start, reading, \
    observation_id, event";

impl Row {
    /// None for data that no version could have stored; such a row is left out.
    fn reception(self) -> Option<Reception> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Single {
            observed_at: Timestamp,
            rssi: Option<i16>,
        }
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Window {
            last_seen_at: Timestamp,
            count: i64,
            rssi_min: i16,
            rssi_max: i16,
            rssi_mean: f64,
        }
        #[derive(Deserialize)]
        struct Values {
            #[serde(default)]
            values: serde_json::Map<String, serde_json::Value>,
        }
        let (observed_at, count, strength) = match self.window_start {
            None => {
                let event: Single = serde_json::from_str(&self.event).ok()?;
                let strength = event.rssi.map(|dbm| Strength {
                    min: dbm,
                    max: dbm,
                    mean: f64::from(dbm),
                });
                (event.observed_at, 1, strength)
            }
            Some(_) => {
                let window: Window = serde_json::from_str(&self.event).ok()?;
                let strength = Strength {
                    min: window.rssi_min,
                    max: window.rssi_max,
                    mean: window.rssi_mean,
                };
                (window.last_seen_at, window.count, Some(strength))
            }
        };
        let values: Option<Values> = self
            .reading
            .and_then(|reading| serde_json::from_str(&reading).ok());
        Some(Reception {
            ble_event_id: self.ble_event_id,
            device_instance_id: self.device_instance_id,
            hub_uuid: self.hub_uuid,
            observed_at: observed_at.min(Timestamp::from_micros(self.ble_event_id)),
            count: count.max(1),
            strength: strength.filter(|strength| strength.max != UNKNOWN_DBM),
            is_repeat: self.observation_id.is_some(),
            values: values.map(|values| values.values).unwrap_or_default(),
        })
    }
}

/// Some receptions, and the id of the last event that was read; None when all were.
pub struct Batch {
    pub receptions: Vec<Reception>,
    pub last_id: Option<i64>,
}

/// The tenant's events of one device with ids from `first` to `last`, in the order of their ids; at
/// most `limit`.
pub async fn receptions_of(
    conn: &mut Conn,
    tenant_uuid: TenantUuid,
    device_instance_id: i64,
    (first, last): (i64, i64),
    direction: Direction,
    limit: i64,
) -> Result<Batch> {
    let rows: Vec<Row> = sql("SELECT ")
        .push(COLUMNS)
        .push(" FROM ble_events")
        .indexed_by(conn, "ble_events_device")
        .push(
            " WHERE tenant_uuid = $1 AND device_instance_id = $2 \
             AND ble_event_id >= $3 AND ble_event_id <= $4 ORDER BY ble_event_id ",
        )
        .bind((tenant_uuid, device_instance_id, first, last))
        .push(direction.sql())
        .push(" LIMIT ")
        .push_bind(limit)
        .all(conn)
        .await?;
    Ok(batch(rows, limit))
}

/// Events that one page of observations reads of further receptions.
const MAX_FURTHER: i64 = 2000;

/// Receptions of frames whose first receptions have these ids, oldest first, with the id of the
/// first one. The list must not be empty.
pub async fn further_receptions(
    conn: &mut Conn,
    scope: &Scope,
    first_ids: &[i64],
) -> Result<Vec<(i64, ReceptionResponse)>> {
    // The strength is in the text, which few events fill.
    let rows: Vec<Row> = sql(
        "SELECT ble_event_id, CAST(0 AS BIGINT) AS device_instance_id, \
         hub_uuid, window_start, CAST(NULL AS TEXT) AS reading, observation_id, \
         CASE WHEN OCTET_LENGTH(event) <= 4096 THEN event ELSE '' END AS event FROM ble_events \
         WHERE tenant_uuid = $1 AND observation_id IN ",
    )
    .bind(scope.tenant_uuid())
    .push_list(first_ids.iter().copied())
    .push(" ORDER BY observation_id, ble_event_id LIMIT ")
    .push_bind(MAX_FURTHER)
    .all(conn)
    .await?;
    let response = |row: Row| {
        let (ble_event_id, hub_uuid) = (row.ble_event_id, row.hub_uuid);
        let first_id = row.observation_id?;
        let rssi_dbm = row.reception().and_then(|reception| reception.rssi_dbm());
        let received_at = Timestamp::from_micros(ble_event_id);
        Some((
            first_id,
            ReceptionResponse {
                ble_event_id,
                hub_uuid,
                rssi_dbm,
                received_at,
            },
        ))
    };
    Ok(rows.into_iter().filter_map(response).collect())
}

/// The tenant's events of devices with ids above `after`, up to `last`, oldest first; of at most
/// `limit` events.
pub async fn receptions_after(
    conn: &mut Conn,
    tenant_uuid: TenantUuid,
    (after, last): (i64, i64),
    limit: i64,
) -> Result<Batch> {
    let end: Option<i64> = sql(
        "SELECT MAX(id) FROM (SELECT ble_event_id AS id FROM ble_events \
         WHERE tenant_uuid = $1 AND ble_event_id > $2 AND ble_event_id <= $3 \
         ORDER BY ble_event_id LIMIT $4) AS next",
    )
    .bind((tenant_uuid, after, last, limit))
    .scalar(conn)
    .await?;
    let Some(end) = end else {
        return Ok(Batch {
            receptions: Vec::new(),
            last_id: None,
        });
    };
    let rows: Vec<Row> = sql("SELECT ")
        .push(COLUMNS)
        .push(
            " FROM ble_events WHERE tenant_uuid = $1 AND ble_event_id > $2 AND ble_event_id <= $3 \
             AND device_instance_id IS NOT NULL ORDER BY ble_event_id",
        )
        .bind((tenant_uuid, after, end))
        .all(conn)
        .await?;
    Ok(Batch {
        receptions: rows.into_iter().filter_map(Row::reception).collect(),
        last_id: Some(end),
    })
}

fn batch(rows: Vec<Row>, limit: i64) -> Batch {
    let is_full = i64::try_from(rows.len()).unwrap_or(i64::MAX) >= limit;
    let last_id = rows.last().filter(|_| is_full).map(|row| row.ble_event_id);
    Batch {
        receptions: rows.into_iter().filter_map(Row::reception).collect(),
        last_id,
    }
}
