//! SQL of routes.

use hub_base::db::bulk::{Bulk, Column};
use hub_base::db::{Conn, Tx, sql};
use hub_base::error::{Error, Result};
use hub_identity::authz::Scope;
use hub_protocol::scan_config::Otherwise;
use hub_protocol::{TenantUuid, Timestamp};

use super::Route;

/// A route as stored.
#[derive(sqlx::FromRow)]
pub struct RouteRow {
    rules: String,
    otherwise: String,
    revision: i64,
    updated_at: Timestamp,
}

impl RouteRow {
    pub fn into_route(self) -> Result<Route> {
        let malformed =
            |what: &str| Error::internal(format!("a stored route is malformed: {what}"));
        let rules =
            serde_json::from_str(&self.rules).map_err(|error| malformed(&error.to_string()))?;
        let otherwise = [Otherwise::Forward, Otherwise::Drop, Otherwise::Window];
        let otherwise = otherwise
            .into_iter()
            .find(|otherwise| name(*otherwise) == self.otherwise);
        let otherwise = otherwise.ok_or_else(|| malformed(&self.otherwise))?;
        Ok(Route::new(
            rules,
            otherwise,
            self.revision,
            Some(self.updated_at),
        ))
    }
}

const fn name(otherwise: Otherwise) -> &'static str {
    match otherwise {
        Otherwise::Forward => "FORWARD",
        Otherwise::Drop => "DROP",
        Otherwise::Window => "WINDOW",
    }
}

pub async fn get(conn: &mut Conn, tenant_uuid: TenantUuid) -> Result<Option<RouteRow>> {
    sql("SELECT rules, otherwise, revision, updated_at FROM ble_routes WHERE tenant_uuid = $1")
        .bind(tenant_uuid)
        .optional(conn)
        .await
}

/// The given tenants with a route for which hubs have to know devices.
pub async fn with_known_devices(
    conn: &mut Conn,
    tenants: Vec<TenantUuid>,
) -> Result<Vec<(TenantUuid,)>> {
    Bulk {
        head: "WITH given (tenant_uuid) AS (",
        columns: vec![Column::Uuid(
            tenants
                .into_iter()
                .map(|tenant_uuid| tenant_uuid.0)
                .collect(),
        )],
        tail: ") SELECT r.tenant_uuid FROM given \
               JOIN ble_routes r ON r.tenant_uuid = given.tenant_uuid WHERE r.hubs_know_devices",
    }
    .returning(conn)
    .await
}

/// Stores the route; `rules` are its rules as JSON.
pub async fn replace(
    tx: &mut Tx,
    scope: &Scope,
    route: &Route,
    rules: &str,
    now: Timestamp,
) -> Result<()> {
    sql(
        "INSERT INTO ble_routes (tenant_uuid, rules, otherwise, hubs_know_devices, revision, \
         updated_at) VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (tenant_uuid) DO UPDATE SET \
         rules = excluded.rules, otherwise = excluded.otherwise, \
         hubs_know_devices = excluded.hubs_know_devices, revision = excluded.revision, \
         updated_at = excluded.updated_at",
    )
    .bind((
        scope.tenant_uuid(),
        rules,
        name(route.otherwise),
        route.hubs_know_devices(),
        route.revision,
        now,
    ))
    .run(tx)
    .await
}
