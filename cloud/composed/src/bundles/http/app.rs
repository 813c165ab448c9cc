//! `/app/bundle-catalog`: published bundles of all suppliers.

use std::collections::{HashMap, HashSet};

use aide::axum::ApiRouter;
use aide::axum::routing::get_with;
use axum::extract::State;
use hub_base::db::Conn;
use hub_base::error::Result;
use hub_core::Core;
use hub_core::http::answer::Answer;
use hub_core::http::extract::Path;
use hub_core::http::operation::{operation, operation_failing};
use hub_core::http::page::{Listed, Page};
use hub_identity::authz::{EndUser, UserScope};
use hub_people::{supplier_links, tenants};
use hub_protocol::{AppUuid, TenantUuid};
use schemars::JsonSchema;
use serde::Serialize;
use uuid::Uuid;

use super::super::store::catalog;
use super::super::store::parts::{self, AppPart};
use super::super::{BundleRow, not_found};
use super::parts::BundleDeviceResponse;
use super::tenant::BundleResponse;
use crate::Parts;
use crate::bundles::http::BundlePath;

pub fn routes() -> ApiRouter<Parts> {
    ApiRouter::new()
        .api_route(
            "/app/bundle-catalog",
            get_with(
                list,
                operation(
                    "bundleCatalog.list",
                    "app",
                    "Published bundles, the latest first",
                ),
            ),
        )
        .api_route(
            "/app/bundle-catalog/{bundleUuid}",
            get_with(
                get,
                operation_failing(&[404], "bundleCatalog.get", "app", "One published bundle"),
            ),
        )
}

/// A published bundle in the catalog.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BundleCatalogResponse {
    #[serde(flatten)]
    bundle: BundleResponse,
    /// The supplier.
    supplier_uuid: TenantUuid,
    /// The name of the supplier.
    supplier_name: String,
    /// The apps.
    apps: Vec<CatalogAppResponse>,
    /// The device models.
    devices: Vec<BundleDeviceResponse>,
    /// Whether the caller has linked an account with the supplier.
    linked: bool,
}

/// An app of a published bundle.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "BundleCatalogApp")]
pub struct CatalogAppResponse {
    /// The app.
    app_uuid: AppUuid,
    /// The name of the app.
    name: String,
    /// The purpose.
    description: Option<String>,
}

impl From<AppPart> for CatalogAppResponse {
    fn from(part: AppPart) -> Self {
        let AppPart {
            app_uuid,
            name,
            description,
            ..
        } = part;
        Self {
            app_uuid,
            name,
            description,
        }
    }
}

/// The related rows of a page of bundles, in a few statements.
async fn described(
    conn: &mut Conn,
    scope: &UserScope,
    rows: Vec<BundleRow>,
) -> Result<Vec<BundleCatalogResponse>> {
    if rows.is_empty() {
        return Ok(Vec::new());
    }
    let bundles: Vec<Uuid> = rows.iter().map(|row| row.bundle_uuid).collect();
    let suppliers: HashSet<TenantUuid> = rows.iter().map(|row| row.tenant_uuid).collect();
    let suppliers: Vec<TenantUuid> = suppliers.into_iter().collect();
    let names = tenants::names(conn, &suppliers).await?;
    let linked = supplier_links::suppliers(conn, scope, &suppliers).await?;
    let mut apps: HashMap<Uuid, Vec<CatalogAppResponse>> = HashMap::new();
    for app in parts::apps(conn, &bundles).await? {
        apps.entry(app.bundle_uuid).or_default().push(app.into());
    }
    let mut devices: HashMap<Uuid, Vec<BundleDeviceResponse>> = HashMap::new();
    for device in parts::devices(conn, &bundles).await? {
        devices
            .entry(device.bundle_uuid)
            .or_default()
            .push(device.into());
    }
    let shown = |row: BundleRow| {
        Some(BundleCatalogResponse {
            supplier_uuid: row.tenant_uuid,
            supplier_name: names.get(&row.tenant_uuid)?.clone(),
            apps: apps.remove(&row.bundle_uuid).unwrap_or_default(),
            devices: devices.remove(&row.bundle_uuid).unwrap_or_default(),
            linked: linked.contains(&row.tenant_uuid),
            bundle: row.into(),
        })
    };
    Ok(rows.into_iter().filter_map(shown).collect())
}

async fn list(
    EndUser { scope, .. }: EndUser,
    State(core): State<Core>,
    page: Page,
) -> Result<Listed<BundleCatalogResponse>> {
    let mut conn = core.db.read().await?;
    let (rows, total) = catalog::list(&mut conn, page.slice()).await?;
    Ok(page.listed(described(&mut conn, &scope, rows).await?, total))
}

async fn get(
    EndUser { scope, .. }: EndUser,
    State(core): State<Core>,
    Path(BundlePath { bundle_uuid }): Path<BundlePath>,
) -> Result<Answer<BundleCatalogResponse>> {
    let mut conn = core.db.read().await?;
    let row = catalog::get(&mut conn, bundle_uuid)
        .await?
        .ok_or_else(not_found)?;
    let shown = described(&mut conn, &scope, vec![row]).await?;
    shown.into_iter().next().map(Answer).ok_or_else(not_found)
}
