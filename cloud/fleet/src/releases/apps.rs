//! A tenant's apps. An app is a name that releases are signed for.

use hub_base::db::Conn;
use hub_base::error::{Error, Result};
use hub_core::audit::Audit;
use hub_identity::authz::Scope;
use hub_protocol::{AppUuid, release};
use serde_json::json;

use super::store::apps::{self as store, AppRow};
use crate::releases::Releases;

/// Apps of one tenant.
const MAX_APPS: i64 = 1000;

pub async fn get(conn: &mut Conn, scope: &Scope, app_uuid: AppUuid) -> Result<AppRow> {
    store::get(conn, scope, app_uuid)
        .await?
        .ok_or_else(|| Error::not_found("app"))
}

/// Creates an app. Its name must be valid in a manifest, and unique in the tenant.
pub async fn create(
    releases: &Releases,
    scope: &Scope,
    name: String,
    description: Option<String>,
) -> Result<AppRow> {
    if !release::is_name(&name) {
        return Err(Error::field("name", release::NAME_FORM));
    }
    let now = releases.core.clock.now();
    let row = AppRow {
        app_uuid: AppUuid::new(),
        name,
        description,
        created_at: now,
    };
    let mut tx = releases.core.db.begin().await?;
    if store::count(&mut tx, scope).await? >= MAX_APPS {
        return Err(Error::conflict(
            "TOO_MANY_APPS",
            format!("a tenant may have at most {MAX_APPS} apps; use an existing one"),
        ));
    }
    if !store::insert(&mut tx, scope, &row).await? {
        return Err(Error::conflict(
            "APP_EXISTS",
            format!(
                "an app named {} exists already; choose another name",
                row.name
            ),
        ));
    }
    let audit = Audit::new(scope, "app.create", row.app_uuid, now);
    tx.commit(audit.changed(
        None,
        Some(json!({"name": row.name, "description": row.description})),
    ))
    .await?;
    Ok(row)
}
