//! Dashboards: a tenant's own pages of values, charts and states of devices that it chose. They say
//! what is shown; the values are read from the devices.

pub mod http;
mod store;

use hub_base::db::{Conn, Tx};
use hub_base::error::{Error, Result};
use hub_core::Core;
use hub_core::audit::Audit;
use hub_core::http::check::Check;
use hub_identity::authz::Scope;
use hub_people::tenants;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sqlx::types::Json;
use uuid::Uuid;

use crate::device_instances::{self, MAX_QUANTITY_CHARS};
use store::Dashboard;
pub use store::delete_all;

const MAX_DASHBOARDS: i64 = 50;
const MAX_TILES: usize = 40;
const MAX_NAME_CHARS: usize = 200;

/// What a tile shows of its device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum TileKind {
    /// The last value of a quantity.
    Value,
    /// A quantity over the last day.
    Chart,
    /// Whether the device is heard, and its battery.
    State,
}

/// A tile of a dashboard.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Tile {
    /// What is shown.
    kind: TileKind,
    /// The device. One that was deleted meanwhile stays until the tile is removed.
    #[schemars(range(min = 1))]
    device_instance_id: i64,
    /// The quantity, or one of several as `quantity[index]`; null for STATE.
    #[schemars(length(max = MAX_QUANTITY_CHARS), regex(pattern = hub_protocol::patterns::LINE))]
    quantity: Option<String>,
}

/// The values given for a dashboard.
struct Given {
    name: String,
    is_on_overview: bool,
    tiles: Vec<Tile>,
}

impl Given {
    fn check(&self) -> Result<()> {
        let mut check = Check::new();
        check.required("name", &self.name, MAX_NAME_CHARS);
        let too_many = format!("must have at most {MAX_TILES} tiles");
        check.that(self.tiles.len() <= MAX_TILES, "tiles", too_many);
        for (at, tile) in self.tiles.iter().take(MAX_TILES).enumerate() {
            let field = format!("tiles[{at}].quantity");
            match (tile.kind, &tile.quantity) {
                (TileKind::State, quantity) => {
                    check.that(quantity.is_none(), field, "must be absent for STATE");
                }
                (_, Some(quantity)) => check.required(&field, quantity, MAX_QUANTITY_CHARS),
                (_, None) => check.that(false, field, "is required for VALUE and CHART"),
            }
        }
        check.done()
    }
}

impl Dashboard {
    /// The representation in the audit log. Tiles are counted.
    fn state(&self) -> Value {
        json!({
            "name": self.name,
            "onOverview": self.is_on_overview,
            "tiles": self.tiles.len(),
        })
    }
}

fn not_found() -> Error {
    Error::not_found("dashboard")
}

async fn list(conn: &mut Conn, scope: &Scope) -> Result<Vec<Dashboard>> {
    store::list(conn, scope, MAX_DASHBOARDS).await
}

async fn get(conn: &mut Conn, scope: &Scope, id: Uuid) -> Result<Dashboard> {
    store::get(conn, scope, id).await?.ok_or_else(not_found)
}

/// 400 naming each new tile whose device is not the tenant's. Those that were there before may
/// stay, so that a device that was deleted meanwhile keeps nobody from changing the rest.
async fn require_own(tx: &mut Tx, scope: &Scope, tiles: &[Tile], before: &[Tile]) -> Result<()> {
    let ids: Vec<i64> = tiles.iter().map(|tile| tile.device_instance_id).collect();
    let own = device_instances::existing(tx, scope.tenant_uuid(), &ids).await?;
    let mut check = Check::new();
    for (at, tile) in tiles.iter().enumerate() {
        let is_known = own.contains(&tile.device_instance_id) || before.contains(tile);
        let field = format!("tiles[{at}].deviceInstanceId");
        check.that(is_known, field, "is no device of this tenant");
    }
    check.done()
}

async fn create(core: &Core, scope: &Scope, given: Given) -> Result<Dashboard> {
    given.check()?;
    let now = core.clock.now();
    // The lock makes concurrent creations count each other.
    let (mut tx, _) = tenants::lock(core, scope)
        .await?
        .ok_or_else(|| Error::not_found("tenant"))?;
    if store::count(&mut tx, scope).await? >= MAX_DASHBOARDS {
        let message =
            format!("a tenant may have at most {MAX_DASHBOARDS} dashboards; delete one first");
        return Err(Error::conflict("TOO_MANY_DASHBOARDS", message));
    }
    require_own(&mut tx, scope, &given.tiles, &[]).await?;
    let dashboard = Dashboard {
        dashboard_uuid: Uuid::now_v7(),
        name: given.name.trim().to_owned(),
        is_on_overview: given.is_on_overview,
        tiles: Json(given.tiles),
        created_at: now,
        updated_at: now,
    };
    put(&mut tx, scope, &dashboard).await?;
    let audit = Audit::new(scope, "dashboard.create", dashboard.dashboard_uuid, now);
    tx.commit(audit.changed(None, Some(dashboard.state())))
        .await?;
    Ok(dashboard)
}

async fn replace(core: &Core, scope: &Scope, id: Uuid, given: Given) -> Result<Dashboard> {
    let now = core.clock.now();
    // Of two changes that put a dashboard on the overview, the later one stays there.
    let (mut tx, _) = tenants::lock(core, scope).await?.ok_or_else(not_found)?;
    let before = store::lock(&mut tx, scope, id)
        .await?
        .ok_or_else(not_found)?;
    given.check()?;
    require_own(&mut tx, scope, &given.tiles, &before.tiles).await?;
    let mut after = Dashboard {
        name: given.name.trim().to_owned(),
        is_on_overview: given.is_on_overview,
        tiles: Json(given.tiles),
        ..before.clone()
    };
    if after == before {
        return Ok(before);
    }
    after.updated_at = now;
    put(&mut tx, scope, &after).await?;
    let audit = Audit::new(scope, "dashboard.update", id, now);
    tx.commit(audit.changed(Some(before.state()), Some(after.state())))
        .await?;
    Ok(after)
}

async fn put(tx: &mut Tx, scope: &Scope, dashboard: &Dashboard) -> Result<()> {
    store::put(tx, scope, dashboard).await?;
    if dashboard.is_on_overview {
        store::clear_overview(tx, scope, dashboard.dashboard_uuid).await?;
    }
    Ok(())
}

async fn delete(core: &Core, scope: &Scope, id: Uuid) -> Result<()> {
    let mut tx = core.db.begin().await?;
    let before = store::lock(&mut tx, scope, id)
        .await?
        .ok_or_else(not_found)?;
    store::delete(&mut tx, id).await?;
    let audit = Audit::new(scope, "dashboard.delete", id, core.clock.now());
    tx.commit(audit.changed(Some(before.state()), None)).await
}
