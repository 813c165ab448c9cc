//! Releases of a tenant's apps.

use hub_base::error::{Error, Result};
use hub_core::audit::Audit;
use hub_identity::authz::Scope;
use hub_protocol::AppUuid;
use hub_protocol::ReleaseUuid;
use hub_protocol::release::{ReleaseKind, ReleaseOffer};
use serde_json::json;

use super::store::app_releases::{self as store, AppReleaseRow};
use super::store::apps as app_store;
use super::store::shared::{self, Series};
use super::urls::{self, FileName, SignedUrl};
use super::{Arrived, Signed, Status, apps, checked_numbers, require_new, trusted_keys};
use crate::releases::Releases;

/// Releases of one app.
const MAX_RELEASES: i64 = 10_000;

/// Creates a release whose file is uploaded next. Returns the upload URL, unless the file is
/// present.
pub async fn create(
    releases: &Releases,
    scope: &Scope,
    app_uuid: AppUuid,
    signed: Signed,
) -> Result<(AppReleaseRow, Option<SignedUrl>)> {
    // The app is checked first: a request about another tenant's app must not reveal anything about
    // it.
    let name = apps::get(&mut releases.core.db.read().await?, scope, app_uuid)
        .await?
        .name;
    let manifest = trusted_keys::verified(
        releases,
        ReleaseKind::App,
        &signed.manifest,
        &signed.signature,
    )
    .await?;
    if manifest.name != name {
        return Err(Error::field(
            "manifest.name",
            format!("must be {name}, the app's name"),
        ));
    }
    let (size_bytes, counter) = checked_numbers(&manifest)?;
    let now = releases.core.clock.now();
    let mut tx = releases.core.db.begin().await?;
    app_store::lock(&mut tx, scope, app_uuid)
        .await?
        .ok_or_else(|| Error::not_found("app"))?;
    let series = Series::App(app_uuid);
    let similar = shared::similar(&mut tx, series, &manifest, counter).await?;
    let highest = shared::highest_counter(&mut tx, series, &manifest.architecture).await?;
    let file_of = |release_uuid| FileName::of(release_uuid, &manifest);
    if let Some(release_uuid) = require_new(&manifest, &signed, &similar, highest)? {
        store::renew(&mut tx, release_uuid, now).await?;
        let row = store::of_any_tenant(&mut tx, release_uuid)
            .await?
            .ok_or_else(|| Error::not_found("release"))?;
        tx.commit_unaudited("only issues another upload URL")
            .await?;
        let is_awaited = row.status == Status::AwaitingFile;
        return Ok((
            row,
            is_awaited.then(|| urls::upload_url(releases, &file_of(release_uuid))),
        ));
    }
    if store::count(&mut tx, scope, app_uuid).await? >= MAX_RELEASES {
        let message =
            format!("an app may have at most {MAX_RELEASES} releases; create another app");
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
        supported_until: None,
        arrived: Arrived::default(),
    };
    store::insert(&mut tx, &row).await?;
    let state = json!({
        "appUuid": app_uuid, "version": row.version, "architecture": row.architecture, "counter": counter,
        "sha256": row.sha256,
    });
    let audit = Audit::new(scope, "app_release.create", row.release_uuid, now);
    tx.commit(audit.changed(None, Some(state))).await?;
    let upload = urls::upload_url(releases, &file_of(row.release_uuid));
    Ok((row, Some(upload)))
}

/// A release of the tenant's app.
pub async fn get(
    releases: &Releases,
    scope: &Scope,
    (app_uuid, release_uuid): (AppUuid, ReleaseUuid),
) -> Result<AppReleaseRow> {
    let mut conn = releases.core.db.read().await?;
    let found = store::get(&mut conn, scope, app_uuid, release_uuid).await?;
    found.ok_or_else(|| Error::not_found("release"))
}

/// The release with the URL of its file; 404 while the file is awaited.
pub async fn file_url(
    releases: &Releases,
    scope: &Scope,
    (app_uuid, release_uuid): (AppUuid, ReleaseUuid),
) -> Result<(AppReleaseRow, SignedUrl)> {
    let mut conn = releases.core.db.read().await?;
    let name = apps::get(&mut conn, scope, app_uuid).await?.name;
    let found = store::get(&mut conn, scope, app_uuid, release_uuid).await?;
    let row = found
        .filter(|row| row.status == Status::Ready)
        .ok_or_else(|| Error::not_found("file of the release"))?;
    drop(conn);
    let file = FileName::new(release_uuid, &name, &row.version, &row.architecture);
    let url = urls::download_url(releases, release_uuid, &file).await?;
    Ok((row, url))
}

/// Sets the last day on which a release is supported, or removes it.
pub async fn set_supported_until(
    releases: &Releases,
    scope: &Scope,
    (app_uuid, release_uuid): (AppUuid, ReleaseUuid),
    supported_until: Option<String>,
) -> Result<AppReleaseRow> {
    let now = releases.core.clock.now();
    let mut tx = releases.core.db.begin().await?;
    let before = store::lock(&mut tx, scope, app_uuid, release_uuid).await?;
    let before = before.ok_or_else(|| Error::not_found("release"))?;
    if before.supported_until == supported_until {
        return Ok(before);
    }
    store::set_supported_until(&mut tx, release_uuid, supported_until.as_deref()).await?;
    let state = |day: &Option<String>| Some(json!({"supportedUntil": day}));
    let audit = Audit::new(scope, "app_release.update", release_uuid, now);
    tx.commit(audit.changed(state(&before.supported_until), state(&supported_until)))
        .await?;
    Ok(AppReleaseRow {
        supported_until,
        ..before
    })
}

/// The release as it is offered to a hub of the tenant.
pub async fn offer(
    releases: &Releases,
    scope: &Scope,
    release_uuid: ReleaseUuid,
) -> Result<ReleaseOffer> {
    let mut conn = releases.core.db.read().await?;
    let found = store::ready(&mut conn, scope, release_uuid).await?;
    let row = found.ok_or_else(|| Error::not_found("release"))?;
    let name = apps::get(&mut conn, scope, row.app_uuid).await?.name;
    drop(conn);
    let file = FileName::new(release_uuid, &name, &row.version, &row.architecture);
    let download = urls::download_url(releases, release_uuid, &file).await?;
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
