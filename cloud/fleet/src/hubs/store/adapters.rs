//! SQL of hubs' adapters.

use std::collections::BTreeMap;

use hub_base::db::{Conn, Tx, sql};
use hub_base::error::{Error, Result};
use hub_identity::authn::hub::Hub;
use hub_identity::authz::Scope;
use hub_protocol::hub::{Adapter, AdapterRole};
use hub_protocol::{HubUuid, TenantUuid, Timestamp};

use super::super::adapters::{AdapterUpdate, AdapterView};

const COLUMNS: &str = "address, name, alias, powered, discovering, address_type, manufacturer, \
    modalias, role, supplier_uuid, first_seen_at, last_seen_at";

fn role_of(name: String) -> Result<AdapterRole> {
    AdapterRole::try_from(name).map_err(Error::internal)
}

#[derive(sqlx::FromRow)]
struct Row {
    address: String,
    name: String,
    alias: Option<String>,
    powered: bool,
    discovering: Option<bool>,
    address_type: Option<String>,
    manufacturer: Option<String>,
    modalias: Option<String>,
    role: Option<String>,
    supplier_uuid: Option<TenantUuid>,
    first_seen_at: Timestamp,
    last_seen_at: Timestamp,
}

impl Row {
    fn into_view(self) -> Result<AdapterView> {
        Ok(AdapterView {
            role: self.role.map(role_of).transpose()?,
            address: self.address,
            name: self.name,
            alias: self.alias,
            powered: self.powered,
            discovering: self.discovering,
            address_type: self.address_type,
            manufacturer: self.manufacturer,
            modalias: self.modalias,
            supplier_uuid: self.supplier_uuid,
            first_seen_at: self.first_seen_at,
            last_seen_at: self.last_seen_at,
        })
    }
}

/// A hub has few adapters: the present ones, those that [`forget_oldest`] keeps, and those an
/// operator configured.
pub async fn list(conn: &mut Conn, scope: &Scope, hub_uuid: HubUuid) -> Result<Vec<AdapterView>> {
    let rows: Vec<Row> = sql("SELECT ")
        .push(COLUMNS)
        .push(
            " FROM hub_adapters WHERE hub_uuid = $1 AND tenant_uuid = $2 \
             ORDER BY address LIMIT 1000",
        )
        .bind((hub_uuid, scope.tenant_uuid()))
        .all(conn)
        .await?;
    rows.into_iter().map(Row::into_view).collect()
}

/// The roles set by operators, by address.
pub async fn roles(conn: &mut Conn, hub_uuid: HubUuid) -> Result<BTreeMap<String, AdapterRole>> {
    let rows: Vec<(String, String)> =
        sql("SELECT address, role FROM hub_adapters WHERE hub_uuid = $1 AND role IS NOT NULL")
            .bind(hub_uuid)
            .all(conn)
            .await?;
    rows.into_iter()
        .map(|(address, role)| Ok((address, role_of(role)?)))
        .collect()
}

pub async fn delete_all(tx: &mut Tx, hub_uuid: HubUuid) -> Result<()> {
    sql("DELETE FROM hub_adapters WHERE hub_uuid = $1")
        .bind(hub_uuid)
        .run(tx)
        .await
}

/// Marks the hub's adapters that are not in the list as powered off and returns how many.
pub async fn power_off_others(tx: &mut Tx, hub_uuid: HubUuid, adapters: &[Adapter]) -> Result<i64> {
    let mut statement =
        sql("UPDATE hub_adapters SET powered = $1, discovering = $1 WHERE hub_uuid = $2")
            .bind((false, hub_uuid));
    if !adapters.is_empty() {
        statement = statement
            .push(" AND address NOT IN ")
            .push_list(adapters.iter().map(|adapter| adapter.address.as_str()));
    }
    Ok(statement.execute(tx).await?.cast_signed())
}

pub async fn upsert(tx: &mut Tx, hub: &Hub, adapters: &[Adapter], now: Timestamp) -> Result<()> {
    for adapter in adapters {
        sql(
            "INSERT INTO hub_adapters (hub_uuid, tenant_uuid, address, name, alias, powered, \
             discovering, address_type, manufacturer, modalias, first_seen_at, last_seen_at) \
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $11) ON CONFLICT (hub_uuid, \
             address) DO UPDATE SET name = excluded.name, alias = excluded.alias, \
             powered = excluded.powered, discovering = excluded.discovering, \
             address_type = excluded.address_type, manufacturer = excluded.manufacturer, \
             modalias = excluded.modalias, last_seen_at = excluded.last_seen_at",
        )
        .bind((
            hub.hub_uuid,
            hub.tenant_uuid,
            adapter.address.as_str(),
            adapter.name.as_str(),
            adapter.alias.as_deref(),
            adapter.powered,
            adapter.discovering,
            adapter.address_type.as_deref(),
            adapter.manufacturer.as_deref(),
            adapter.modalias.as_deref(),
            now,
        ))
        .execute(tx)
        .await?;
    }
    Ok(())
}

/// Keeps the `keep` adapters seen last and those an operator configured.
pub async fn forget_oldest(tx: &mut Tx, hub_uuid: HubUuid, keep: i64) -> Result<()> {
    sql(
        "DELETE FROM hub_adapters WHERE hub_uuid = $1 AND role IS NULL AND supplier_uuid IS NULL \
         AND address NOT IN (SELECT address FROM hub_adapters WHERE hub_uuid = $1 \
         ORDER BY last_seen_at DESC, address LIMIT $2)",
    )
    .bind((hub_uuid, keep))
    .run(tx)
    .await
}

/// The adapter, locked until the transaction ends.
pub async fn lock(
    tx: &mut Tx,
    scope: &Scope,
    hub_uuid: HubUuid,
    address: &str,
) -> Result<Option<AdapterView>> {
    let row: Option<Row> = sql("SELECT ")
        .push(COLUMNS)
        .push(" FROM hub_adapters WHERE hub_uuid = $1 AND tenant_uuid = $2 AND address = $3")
        .for_update(tx)
        .bind((hub_uuid, scope.tenant_uuid(), address))
        .optional(tx)
        .await?;
    row.map(Row::into_view).transpose()
}

pub async fn update(
    tx: &mut Tx,
    scope: &Scope,
    hub_uuid: HubUuid,
    address: &str,
    update: AdapterUpdate,
) -> Result<AdapterView> {
    let row: Row = sql("UPDATE hub_adapters SET role = COALESCE($4, role), \
         supplier_uuid = COALESCE($5, supplier_uuid) \
         WHERE hub_uuid = $1 AND tenant_uuid = $2 AND address = $3 RETURNING ")
    .push(COLUMNS)
    .bind((
        hub_uuid,
        scope.tenant_uuid(),
        address,
        update.role.map(AdapterRole::name),
        update.supplier_uuid,
    ))
    .one(tx)
    .await?;
    row.into_view()
}
