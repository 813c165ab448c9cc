//! SQL of rollups, and of how far they go.

use std::sync::Arc;

use hub_base::db::bulk::{Bulk, Column};
use hub_base::db::{Conn, Tx, sql};
use hub_base::error::{Error, Result};
use hub_protocol::{HubUuid, TenantUuid, Timestamp};

use super::hour::{Hour, hour_of};

/// Hours that one statement looks for.
const HOURS: usize = 250;

/// An hour as stored.
#[derive(sqlx::FromRow)]
struct Row {
    device_instance_id: i64,
    hour: i64,
    first_id: i64,
    last_id: i64,
    minutes: i64,
    quantities: String,
    hubs: String,
}

impl Row {
    fn into_hour(self) -> Result<((i64, i64), Hour)> {
        let hour = Hour {
            first_id: self.first_id,
            last_id: self.last_id,
            minutes: self.minutes,
            quantities: serde_json::from_str(&self.quantities).map_err(Error::internal)?,
            hubs: serde_json::from_str(&self.hubs).map_err(Error::internal)?,
        };
        Ok(((self.device_instance_id, self.hour), hour))
    }
}

/// The part of an hour that is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The range of its events.
    Ids,
    /// The times of receptions, and their hubs.
    Heard,
}

/// The hours of a device from `from_hour` up to, and without, `to_hour`, and the last event that is
/// in them. Both are read at once, so that they fit.
pub async fn hours(
    conn: &mut Conn,
    tenant_uuid: TenantUuid,
    device_instance_id: i64,
    (from_hour, to_hour): (i64, i64),
    part: Part,
) -> Result<(i64, Vec<(i64, Hour)>)> {
    #[derive(sqlx::FromRow)]
    struct Joined {
        cursor: i64,
        hour: Option<i64>,
        first_id: Option<i64>,
        last_id: Option<i64>,
        minutes: Option<i64>,
        content: Option<String>,
    }
    let rows: Vec<Joined> = sql(
        "SELECT c.last_id AS cursor, r.hour, r.first_id, r.last_id, \
         r.minutes, ",
    )
    .push(match part {
        Part::Ids => "'' AS content",
        Part::Heard => "r.hubs AS content",
    })
    .push(
        " FROM sensor_rollup_cursors c LEFT JOIN sensor_rollups r \
             ON r.tenant_uuid = c.tenant_uuid AND r.device_instance_id = $2 \
             AND r.hour >= $3 AND r.hour < $4 WHERE c.tenant_uuid = $1 ORDER BY r.hour",
    )
    .bind((tenant_uuid, device_instance_id, from_hour, to_hour))
    .all(conn)
    .await?;
    let cursor = rows.first().map_or(0, |row| row.cursor);
    let mut hours = Vec::with_capacity(rows.len());
    for row in rows {
        let (Some(start), Some(first_id), Some(last_id)) = (row.hour, row.first_id, row.last_id)
        else {
            continue;
        };
        let mut hour = Hour {
            first_id,
            last_id,
            minutes: row.minutes.unwrap_or_default(),
            ..Hour::default()
        };
        let content = row.content.unwrap_or_default();
        match part {
            Part::Ids => {}
            Part::Heard => hour.hubs = serde_json::from_str(&content).map_err(Error::internal)?,
        }
        hours.push((start, hour));
    }
    Ok((cursor, hours))
}

/// The hours of a device, joined for buckets.
pub struct Joined {
    /// The last event that is in them.
    pub cursor: i64,
    /// Hours that are in no bucket as a whole, with the range of their events.
    pub edges: Vec<(i64, Hour)>,
    /// The measurements of the other hours, by bucket: a JSON object for each hour, in a line
    /// of its own.
    pub measured: Vec<(i64, String)>,
}

/// The same hours as [`hours`], of which those from `first` up to, and without, `end` are joined in
/// buckets of `every_secs`, which are numbered since 1970.
pub async fn joined_hours(
    conn: &mut Conn,
    tenant_uuid: TenantUuid,
    device_instance_id: i64,
    (from_hour, to_hour): (i64, i64),
    (first, end): (i64, i64),
    every_secs: i64,
) -> Result<Joined> {
    #[derive(sqlx::FromRow)]
    struct Row {
        cursor: i64,
        bucket: Option<i64>,
        hour: Option<i64>,
        first_id: Option<i64>,
        last_id: Option<i64>,
        measured: Option<String>,
    }
    // A row for each of thousands of hours would take longer than its content.
    let rows: Vec<Row> = sql(
        "SELECT c.last_id AS cursor, CASE WHEN r.hour >= $5 AND r.hour < $6 \
         THEN r.hour / $7 END AS bucket, MIN(r.hour) AS hour, MIN(r.first_id) AS first_id, \
         MAX(r.last_id) AS last_id, string_agg(r.quantities, '\n') AS measured \
         FROM sensor_rollup_cursors c LEFT JOIN sensor_rollups r \
         ON r.tenant_uuid = c.tenant_uuid AND r.device_instance_id = $2 \
         AND r.hour >= $3 AND r.hour < $4 WHERE c.tenant_uuid = $1 \
         GROUP BY c.last_id, CASE WHEN r.hour >= $5 AND r.hour < $6 THEN r.hour / $7 END, \
         CASE WHEN r.hour < $5 OR r.hour >= $6 THEN r.hour END",
    )
    .bind((tenant_uuid, device_instance_id, from_hour, to_hour))
    .bind((first, end, every_secs))
    .all(conn)
    .await?;
    let mut joined = Joined {
        cursor: rows.first().map_or(0, |row| row.cursor),
        edges: Vec::new(),
        measured: Vec::with_capacity(rows.len()),
    };
    for row in rows {
        match (row.bucket, row.hour, row.first_id, row.last_id) {
            (Some(bucket), ..) => joined
                .measured
                .extend(row.measured.map(|text| (bucket, text))),
            (None, Some(hour), Some(first_id), Some(last_id)) => {
                let ids = Hour {
                    first_id,
                    last_id,
                    ..Hour::default()
                };
                joined.edges.push((hour, ids));
            }
            // No hour at all.
            _ => {}
        }
    }
    Ok(joined)
}

/// The last hour before a time with a reception of the device.
pub async fn last_hour_before(
    conn: &mut Conn,
    tenant_uuid: TenantUuid,
    device_instance_id: i64,
    hour: i64,
) -> Result<Option<i64>> {
    sql("SELECT MAX(hour) FROM sensor_rollups \
         WHERE tenant_uuid = $1 AND device_instance_id = $2 AND hour < $3 AND minutes <> 0")
    .bind((tenant_uuid, device_instance_id, hour))
    .scalar(conn)
    .await
}

/// A tenant with events that are in no rollup yet.
#[derive(sqlx::FromRow)]
pub struct Behind {
    pub tenant_uuid: TenantUuid,
    /// The last event that is in a rollup; 0 if none is.
    pub cursor: i64,
    /// The last event.
    pub last_id: i64,
}

/// Tenants after this one, in the order of their uuids.
pub async fn behind(conn: &mut Conn, after: uuid::Uuid, limit: i64) -> Result<Vec<Behind>> {
    sql(
        "SELECT u.tenant_uuid, COALESCE(c.last_id, 0) AS cursor, u.last_id FROM upload_clocks u \
         LEFT JOIN sensor_rollup_cursors c ON c.tenant_uuid = u.tenant_uuid \
         WHERE u.kind = $1 AND u.tenant_uuid > $2 AND u.last_id > COALESCE(c.last_id, 0) \
         ORDER BY u.tenant_uuid LIMIT $3",
    )
    .bind((hub_ingest::Kind::BleEvents.name(), after, limit))
    .all(conn)
    .await
}

/// The tenant's cursor, locked until the transaction ends; no other transaction adds to its
/// rollups.
pub async fn lock_cursor(tx: &mut Tx, tenant_uuid: TenantUuid) -> Result<i64> {
    sql(
        "INSERT INTO sensor_rollup_cursors (tenant_uuid, last_id) VALUES ($1, 0) \
         ON CONFLICT (tenant_uuid) DO NOTHING",
    )
    .bind(tenant_uuid)
    .run(tx)
    .await?;
    sql("SELECT last_id FROM sensor_rollup_cursors WHERE tenant_uuid = $1")
        .bind(tenant_uuid)
        .for_update(tx)
        .scalar(tx)
        .await
}

/// The tenant's cursor.
pub async fn cursor(conn: &mut Conn, tenant_uuid: TenantUuid) -> Result<i64> {
    let cursor =
        sql("SELECT last_id FROM sensor_rollup_cursors WHERE tenant_uuid = $1").bind(tenant_uuid);
    Ok(cursor.optional_scalar(conn).await?.unwrap_or(0))
}

pub async fn set_cursor(tx: &mut Tx, tenant_uuid: TenantUuid, last_id: i64) -> Result<()> {
    sql("UPDATE sensor_rollup_cursors SET last_id = $2 WHERE tenant_uuid = $1")
        .bind((tenant_uuid, last_id))
        .run(tx)
        .await
}

/// The given hours of the tenant's devices that are stored.
pub async fn stored(
    conn: &mut Conn,
    tenant_uuid: TenantUuid,
    keys: &[(i64, i64)],
) -> Result<Vec<((i64, i64), Hour)>> {
    let mut found = Vec::new();
    for some in keys.chunks(HOURS) {
        let mut query = sql(
            "SELECT device_instance_id, hour, first_id, last_id, minutes, \
             quantities, hubs FROM sensor_rollups \
             WHERE tenant_uuid = $1 AND (device_instance_id, hour) IN (VALUES ",
        )
        .bind(tenant_uuid);
        for (at, (device_instance_id, hour)) in some.iter().enumerate() {
            query = query
                .push(if at > 0 { ", (" } else { "(" })
                .push_bind(*device_instance_id);
            query = query.push(", ").push_bind(*hour).push(")");
        }
        let rows: Vec<Row> = query.push(")").all(conn).await?;
        for row in rows {
            found.push(row.into_hour()?);
        }
    }
    Ok(found)
}

/// Stores hours in place of what is stored of them.
pub async fn put(
    tx: &mut Tx,
    tenant_uuid: TenantUuid,
    hours: Vec<((i64, i64), Hour)>,
) -> Result<()> {
    let mut quantities: Vec<Arc<str>> = Vec::with_capacity(hours.len());
    let mut hubs: Vec<Arc<str>> = Vec::with_capacity(hours.len());
    for (_, hour) in &hours {
        quantities.push(
            serde_json::to_string(&hour.quantities)
                .map_err(Error::internal)?
                .into(),
        );
        hubs.push(
            serde_json::to_string(&hour.hubs)
                .map_err(Error::internal)?
                .into(),
        );
    }
    let numbers = |of: fn(&((i64, i64), Hour)) -> i64| Column::Int(hours.iter().map(of).collect());
    let bulk = Bulk {
        head: "INSERT INTO sensor_rollups (tenant_uuid, device_instance_id, hour, first_id, \
             last_id, minutes, quantities, hubs)",
        columns: vec![
            Column::Uuid(vec![tenant_uuid.0; hours.len()]),
            numbers(|((device_instance_id, _), _)| *device_instance_id),
            numbers(|((_, hour), _)| *hour),
            numbers(|(_, hour)| hour.first_id),
            numbers(|(_, hour)| hour.last_id),
            numbers(|(_, hour)| hour.minutes),
            Column::Text(quantities),
            Column::Text(hubs),
        ],
        tail: "ON CONFLICT (tenant_uuid, device_instance_id, hour) DO UPDATE SET \
             first_id = excluded.first_id, last_id = excluded.last_id, minutes = excluded.minutes, \
             quantities = excluded.quantities, hubs = excluded.hubs",
    };
    bulk.execute(tx).await.map(drop)
}

/// Deletes at most `limit` hours of a tenant's devices before a time.
pub async fn delete_before(
    tx: &mut Tx,
    tenant_uuid: TenantUuid,
    before: Timestamp,
    limit: i64,
) -> Result<u64> {
    sql(
        "DELETE FROM sensor_rollups WHERE tenant_uuid = $1 AND (device_instance_id, hour) IN \
         (SELECT device_instance_id, hour FROM sensor_rollups \
         WHERE tenant_uuid = $1 AND hour < $2 ORDER BY hour LIMIT $3)",
    )
    .bind((tenant_uuid, hour_of(before), limit))
    .execute(tx)
    .await
}

/// Deletes at most `limit` hours that ended before a time, of the devices that a hub hears best.
pub async fn delete_of_hub(
    tx: &mut Tx,
    tenant_uuid: TenantUuid,
    hub_uuid: HubUuid,
    before: Timestamp,
    limit: i64,
) -> Result<u64> {
    sql(
        "DELETE FROM sensor_rollups WHERE tenant_uuid = $1 AND (device_instance_id, hour) IN \
         (SELECT r.device_instance_id, r.hour FROM device_states s JOIN sensor_rollups r \
         ON r.tenant_uuid = s.tenant_uuid AND r.device_instance_id = s.device_instance_id \
         AND r.hour < $3 WHERE s.tenant_uuid = $1 AND s.nearest_hub_uuid = $2 LIMIT $4)",
    )
    .bind((tenant_uuid, hub_uuid, hour_of(before), limit))
    .execute(tx)
    .await
}
