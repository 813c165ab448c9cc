//! A tenant's apps: names that releases are signed for.

use hub_protocol::{AppUuid, release};
use serde_json::json;

use super::store::apps::{self as store, AppRow};
use crate::app::App;
use crate::authz::Scope;
use crate::db::Conn;
use crate::domain::audit::Audit;
use crate::error::{Error, Result};

/// Apps of a tenant.
const MAX_APPS: i64 = 1000;

pub async fn get(conn: &mut Conn, scope: &Scope, app_uuid: AppUuid) -> Result<AppRow> {
    store::get(conn, scope, app_uuid).await?.ok_or_else(|| Error::not_found("app"))
}

/// Makes an app; its name is one that manifests may have, and the tenant's only one.
pub async fn create(app: &App, scope: &Scope, name: String, description: Option<String>) -> Result<AppRow> {
    if !release::is_name(&name) {
        return Err(Error::field("name", release::NAME_FORM));
    }
    let now = app.clock.now();
    let row = AppRow { app_uuid: AppUuid::new(), name, description, created_at: now };
    let mut tx = app.db.begin().await?;
    if store::count(&mut tx, scope).await? >= MAX_APPS {
        return Err(Error::conflict("TOO_MANY_APPS", format!("a tenant may have {MAX_APPS} apps and no more")));
    }
    if !store::insert(&mut tx, scope, &row).await? {
        return Err(Error::conflict("APP_EXISTS", format!("there is an app named {} already", row.name)));
    }
    let audit = Audit::new(scope, "app.create", row.app_uuid, now);
    tx.commit(audit.changed(None, Some(json!({"name": row.name, "description": row.description})))).await?;
    Ok(row)
}
