//! Releases of a tenant's apps.

use hub_protocol::AppUuid;
use hub_protocol::ReleaseUuid;
use hub_protocol::release::{ReleaseKind, ReleaseOffer};
use serde_json::json;

use super::store::app_releases::{self as store, AppReleaseRow};
use super::store::apps as app_store;
use super::urls::{self, FileName, SignedUrl};
use super::{Signed, Status, apps, checked_numbers, require_new, trusted_keys};
use crate::app::App;
use crate::authz::Scope;
use crate::domain::audit::Audit;
use crate::error::{Error, Result};

/// Releases of an app.
const MAX_RELEASES: i64 = 10_000;

/// Takes a release in, whose file is to follow; answers where to, unless it is here already.
pub async fn create(
    app: &App,
    scope: &Scope,
    app_uuid: AppUuid,
    signed: Signed,
) -> Result<(AppReleaseRow, Option<SignedUrl>)> {
    // Of another tenant's app nothing is said, whatever else is wrong.
    let name = apps::get(&mut app.db.read().await?, scope, app_uuid).await?.name;
    let manifest = trusted_keys::verified(app, ReleaseKind::App, &signed.manifest, &signed.signature).await?;
    if manifest.name != name {
        return Err(Error::field("manifest.name", format!("must be {name}, the app's name")));
    }
    let (size_bytes, counter) = checked_numbers(&manifest)?;
    let now = app.clock.now();
    let mut tx = app.db.begin().await?;
    app_store::lock(&mut tx, scope, app_uuid).await?.ok_or_else(|| Error::not_found("app"))?;
    let alike = store::alike(&mut tx, app_uuid, &manifest, counter).await?;
    let highest = store::highest_counter(&mut tx, app_uuid, &manifest.architecture).await?;
    let file_of = |release_uuid| FileName::of(release_uuid, &manifest);
    if let Some(release_uuid) = require_new(&manifest, &signed, &alike, highest)? {
        store::renew(&mut tx, release_uuid, now).await?;
        let row = store::of_any_tenant(&mut tx, release_uuid).await?.ok_or_else(|| Error::not_found("release"))?;
        tx.commit_unaudited("asks for another URL to upload to").await?;
        let is_awaited = row.status == Status::AwaitingFile;
        return Ok((row, is_awaited.then(|| urls::upload_url(app, &file_of(release_uuid)))));
    }
    if store::count(&mut tx, scope, app_uuid).await? >= MAX_RELEASES {
        let message = format!("an app may have {MAX_RELEASES} releases and no more");
        return Err(Error::conflict("TOO_MANY_RELEASES", message));
    }
    let row = AppReleaseRow {
        release_uuid: ReleaseUuid::new(),
        tenant_uuid: scope.tenant_uuid(),
        app_uuid,
        version: manifest.version.clone(),
        architecture: manifest.architecture.clone(),
        counter,
        size_bytes,
        sha256: manifest.sha256.clone(),
        downgrade: manifest.downgrade,
        manifest: signed.manifest,
        signature: signed.signature,
        status: Status::AwaitingFile,
        created_at: now,
        ready_at: None,
    };
    store::insert(&mut tx, &row).await?;
    let state = json!({
        "appUuid": app_uuid, "version": row.version, "architecture": row.architecture, "counter": counter,
        "sha256": row.sha256,
    });
    let audit = Audit::new(scope, "app_release.create", row.release_uuid, now);
    tx.commit(audit.changed(None, Some(state))).await?;
    let upload = urls::upload_url(app, &file_of(row.release_uuid));
    Ok((row, Some(upload)))
}

/// The release as a hub of the tenant is to get it.
pub async fn offer(app: &App, scope: &Scope, release_uuid: ReleaseUuid) -> Result<ReleaseOffer> {
    let mut conn = app.db.read().await?;
    let found = store::ready(&mut conn, scope, release_uuid).await?;
    let row = found.ok_or_else(|| Error::not_found("release"))?;
    let name = apps::get(&mut conn, scope, row.app_uuid).await?.name;
    drop(conn);
    let file = FileName::new(release_uuid, &name, &row.version, &row.architecture);
    let download = urls::download_url(app, release_uuid, &file).await?;
    Ok(ReleaseOffer {
        release_uuid,
        app_uuid: Some(row.app_uuid),
        version: row.version,
        manifest: row.manifest,
        signature: row.signature,
        download_url: download.url,
        download_url_expires_at: download.expires_at,
    })
}
