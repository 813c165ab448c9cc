//! SQL of unknown advertisers.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use hub_base::db::bulk::{Bulk, Column};
use hub_base::db::{Conn, Slice, Sql, Tx, sql};
use hub_base::error::{Error, Result};
use hub_identity::authz::Scope;
use hub_protocol::{HubUuid, TenantUuid, Timestamp};
use uuid::Uuid;

use super::{MAX_ADVERTISERS, MAX_HUBS, Seen};

/// Keys that one statement looks for.
const KEYS: usize = 500;

/// An advertiser as stored.
#[derive(Debug, sqlx::FromRow)]
pub struct Row {
    pub key: String,
    pub address: String,
    pub address_type: Option<String>,
    pub name: Option<String>,
    pub company_id: Option<i64>,
    pub service_uuids: String,
    pub count: i64,
    pub hub_uuids: String,
    pub rssi_max: Option<i64>,
    pub first_seen_at: Timestamp,
    pub last_seen_at: Timestamp,
    pub sample: String,
    pub device_uuid: Option<Uuid>,
    pub unread_reason: Option<String>,
}

const COLUMNS: &str = "key, address, address_type, name, company_id, service_uuids, count, \
    hub_uuids, rssi_max, first_seen_at, last_seen_at, sample, device_uuid, unread_reason";

impl Row {
    fn into_seen(self) -> Result<Seen> {
        Ok(Seen {
            key: self.key,
            address: self.address,
            address_type: self.address_type,
            name: self.name,
            company_id: self.company_id.and_then(|id| u16::try_from(id).ok()),
            service_uuids: serde_json::from_str(&self.service_uuids).map_err(Error::internal)?,
            count: self.count,
            hub_uuids: serde_json::from_str(&self.hub_uuids).map_err(Error::internal)?,
            rssi_max: self.rssi_max.and_then(|dbm| i16::try_from(dbm).ok()),
            first_seen_at: self.first_seen_at,
            last_seen_at: self.last_seen_at,
            sample: self.sample,
            device_uuid: self.device_uuid,
            unread_reason: self.unread_reason,
        })
    }
}

/// Adds what was seen of a tenant's unknown advertisers, in a few statements. Those that were seen
/// longest ago make room when a tenant has too many.
pub async fn record(tx: &mut Tx, tenant: TenantUuid, seen: Vec<Seen>) -> Result<()> {
    let mut by_key: BTreeMap<String, Seen> = BTreeMap::new();
    for one in seen {
        match by_key.get_mut(&one.key) {
            Some(other) => other.join(one),
            None => {
                by_key.insert(one.key.clone(), one);
            }
        }
    }
    let mut seen: Vec<Seen> = by_key.into_values().collect();
    if seen.len() > MAX_ADVERTISERS {
        seen.sort_by_key(|one| std::cmp::Reverse(one.last_seen_at.as_micros()));
        seen.truncate(MAX_ADVERTISERS);
        seen.sort_by(|one, other| one.key.cmp(&other.key));
    }
    if seen.is_empty() {
        return Ok(());
    }
    let mut known = known(tx, tenant, &seen).await?;
    for one in &mut seen {
        if let Some(mut before) = known.remove(&one.key) {
            std::mem::swap(one, &mut before);
            one.join(before);
        }
        one.hub_uuids.truncate(MAX_HUBS);
    }
    upsert(tx, tenant, &seen).await?;
    let most = i64::try_from(MAX_ADVERTISERS).unwrap_or(i64::MAX);
    sql(
        "DELETE FROM unknown_advertisers WHERE tenant_uuid = $1 AND key IN \
         (SELECT key FROM unknown_advertisers WHERE tenant_uuid = $1 \
         ORDER BY last_seen_at DESC, key DESC LIMIT ",
    )
    .bind(tenant)
    // PostgreSQL and SQLite differ in the syntax of OFFSET without LIMIT.
    .push_number(2 * most)
    .push(" OFFSET ")
    .push_number(most)
    .push(")")
    .run(tx)
    .await
}

/// The given advertisers that are stored, locked until the transaction ends.
async fn known(tx: &mut Tx, tenant: TenantUuid, seen: &[Seen]) -> Result<HashMap<String, Seen>> {
    let mut known = HashMap::new();
    for some in seen.chunks(KEYS) {
        let rows: Vec<Row> = sql("SELECT ")
            .push(COLUMNS)
            .push(" FROM unknown_advertisers WHERE tenant_uuid = $1 AND key IN ")
            .bind(tenant)
            .push_list(some.iter().map(|one| one.key.as_str()))
            .push(" ORDER BY key")
            .for_update(tx)
            .all(tx)
            .await?;
        for row in rows {
            known.insert(row.key.clone(), row.into_seen()?);
        }
    }
    Ok(known)
}

async fn upsert(tx: &mut Tx, tenant: TenantUuid, seen: &[Seen]) -> Result<()> {
    let text = |text: &str| -> Arc<str> { text.into() };
    let mut hubs = Vec::with_capacity(seen.len());
    let mut services = Vec::with_capacity(seen.len());
    for one in seen {
        hubs.push(text(
            &serde_json::to_string(&one.hub_uuids).map_err(Error::internal)?,
        ));
        services.push(text(
            &serde_json::to_string(&one.service_uuids).map_err(Error::internal)?,
        ));
    }
    let texts =
        |of: fn(&Seen) -> &str| Column::Text(seen.iter().map(|one| text(of(one))).collect());
    let optional = |of: fn(&Seen) -> Option<&str>| {
        Column::OptionalText(seen.iter().map(|one| of(one).map(text)).collect())
    };
    let bulk = Bulk {
        head: "INSERT INTO unknown_advertisers (tenant_uuid, key, address, address_type, name, \
             company_id, service_uuids, count, hub_uuids, rssi_max, first_seen_at, last_seen_at, \
             sample, device_uuid, unread_reason)",
        columns: vec![
            Column::Uuid(vec![tenant.0; seen.len()]),
            texts(|one| &one.key),
            texts(|one| &one.address),
            optional(|one| one.address_type.as_deref()),
            optional(|one| one.name.as_deref()),
            Column::OptionalInt(
                seen.iter()
                    .map(|one| one.company_id.map(i64::from))
                    .collect(),
            ),
            Column::Text(services),
            Column::Int(seen.iter().map(|one| one.count).collect()),
            Column::Text(hubs),
            Column::OptionalInt(seen.iter().map(|one| one.rssi_max.map(i64::from)).collect()),
            Column::Time(seen.iter().map(|one| one.first_seen_at).collect()),
            Column::Time(seen.iter().map(|one| one.last_seen_at).collect()),
            texts(|one| &one.sample),
            Column::OptionalUuid(seen.iter().map(|one| one.device_uuid).collect()),
            optional(|one| one.unread_reason.as_deref()),
        ],
        tail: "ON CONFLICT (tenant_uuid, key) DO UPDATE SET address = excluded.address, \
             address_type = excluded.address_type, name = excluded.name, \
             company_id = excluded.company_id, service_uuids = excluded.service_uuids, \
             count = excluded.count, hub_uuids = excluded.hub_uuids, \
             rssi_max = excluded.rssi_max, first_seen_at = excluded.first_seen_at, \
             last_seen_at = excluded.last_seen_at, sample = excluded.sample, \
             device_uuid = excluded.device_uuid, unread_reason = excluded.unread_reason",
    };
    bulk.execute(tx).await.map(drop)
}

/// Deletes at most `limit` advertisers of a tenant that were last seen before a time.
pub async fn delete_before(
    tx: &mut Tx,
    tenant: TenantUuid,
    before: Timestamp,
    limit: i64,
) -> Result<u64> {
    sql(
        "DELETE FROM unknown_advertisers WHERE tenant_uuid = $1 AND key IN \
         (SELECT key FROM unknown_advertisers WHERE tenant_uuid = $1 AND last_seen_at < $2 \
         ORDER BY last_seen_at LIMIT $3)",
    )
    .bind((tenant, before, limit))
    .execute(tx)
    .await
}

/// Filters of a list.
#[derive(Debug, Default)]
pub struct Filters {
    pub hub_uuid: Option<HubUuid>,
    /// A part of a name or an address.
    pub search: Option<String>,
}

/// The advertisers that were seen since a time, latest first, and how many there are.
pub async fn list(
    conn: &mut Conn,
    scope: &Scope,
    since: Timestamp,
    filters: &Filters,
    slice: Slice,
) -> Result<(Vec<Seen>, i64)> {
    let (rows, total): (Vec<Row>, i64) = narrowed(scope, since, filters)
        .page(conn, COLUMNS, &["last_seen_at DESC, key DESC"], slice)
        .await?;
    Ok((
        rows.into_iter()
            .map(Row::into_seen)
            .collect::<Result<_>>()?,
        total,
    ))
}

/// Parts of texts have no index: the advertisers of the tenant are read, whose number is bounded.
fn narrowed(scope: &Scope, since: Timestamp, filters: &Filters) -> Sql {
    let mut query = sql("FROM unknown_advertisers WHERE tenant_uuid = $1 AND last_seen_at >= $2")
        .bind((scope.tenant_uuid(), since));
    if let Some(hub_uuid) = filters.hub_uuid {
        query = query
            .push(" AND hub_uuids LIKE ")
            .push_bind(format!("%{}%", Uuid::hyphenated(hub_uuid.0)));
    }
    if let Some(search) = &filters.search {
        let lower = search.to_lowercase();
        query = query
            .push(" AND (")
            .push_contains_text("LOWER(address)", &lower)
            .push(" OR ")
            .push_contains_text("LOWER(name)", &lower)
            .push(")");
    }
    query
}

/// The advertiser that was last seen with this address.
pub async fn by_address(
    conn: &mut Conn,
    scope: &Scope,
    since: Timestamp,
    address: &str,
) -> Result<Option<Seen>> {
    let row: Option<Row> = sql("SELECT ")
        .push(COLUMNS)
        .push(
            " FROM unknown_advertisers \
             WHERE tenant_uuid = $1 AND address = $2 AND last_seen_at >= $3 \
             ORDER BY last_seen_at DESC LIMIT 1",
        )
        .bind((scope.tenant_uuid(), address, since))
        .optional(conn)
        .await?;
    row.map(Row::into_seen).transpose()
}

/// Deletes the advertisers that a hub has heard.
pub async fn delete_of_hub(tx: &mut Tx, tenant_uuid: TenantUuid, hub_uuid: HubUuid) -> Result<()> {
    sql("DELETE FROM unknown_advertisers WHERE tenant_uuid = $1 AND hub_uuids LIKE $2")
        .bind((tenant_uuid, format!("%{}%", Uuid::hyphenated(hub_uuid.0))))
        .run(tx)
        .await
}
