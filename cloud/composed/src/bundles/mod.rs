//! Supplier bundles: apps, device models and pipelines that hubs get when they are claimed. A
//! bundle is written as a draft; published, it changes no more; archived, it is applied to no
//! further hub. A claim applies bundles in its own transaction, or is refused. A claim and every
//! change of a bundle lock the tenant's row, so that a claim sees a bundle either published or
//! archived.

mod expansion;
pub mod http;
mod parts;
mod store;
mod withdrawal;

use hub_base::db::{Conn, Tx};
use hub_base::error::{Error, Result};
use hub_core::Core;
use hub_core::audit::Audit;
use hub_core::http::check::changed_text;
use hub_identity::authz::Scope;
use hub_people::tenants;
use hub_pipelines as pipelines;
use hub_protocol::{HubUuid, text_enum};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use uuid::Uuid;

use store::BundleRow;
pub use store::archive_all;
pub use withdrawal::{LANE, WITHDRAW, perform as perform_withdrawal};

const MAX_NAME_CHARS: usize = 200;
const MAX_TEXT_CHARS: usize = 2000;
/// Bundles of a tenant that are not archived, and all of them.
const MAX_IN_USE: i64 = 200;
const MAX_BUNDLES: i64 = 10_000;
/// Bundles that one claim applies by itself.
const MAX_AUTO_APPLIED: i64 = 20;

/// The lifecycle state of a bundle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[schemars(rename = "BundleStatus")]
pub enum Status {
    /// The bundle can be changed, and is applied to no hub.
    Draft,
    /// The bundle is applied to hubs, and cannot be changed.
    Published,
    /// The bundle is applied to no further hub.
    Archived,
}

text_enum!(Status { Draft = "DRAFT", Published = "PUBLISHED", Archived = "ARCHIVED" });

/// The treatment of parts that hubs have of an archived bundle.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[schemars(rename = "BundleAtHubs")]
pub enum AtHubs {
    /// The parts stay.
    #[default]
    Keep,
    /// Apps are removed, unless they were installed again since; device models and pipelines are
    /// detached from the hubs.
    Remove,
}

/// A new bundle; checked.
struct Given {
    name: String,
    description: Option<String>,
    auto_apply: bool,
}

/// The checked changes of a bundle. None keeps the stored value.
struct Changed {
    name: Option<String>,
    description: Option<String>,
    auto_apply: Option<bool>,
}

impl BundleRow {
    /// The representation in the audit log.
    fn state(&self) -> Value {
        json!({
            "name": self.name,
            "description": self.description,
            "status": self.status,
            "autoApply": self.auto_apply,
            "appCount": self.app_count,
            "deviceCount": self.device_count,
            "pipelineCount": self.pipeline_count,
        })
    }

    fn require_draft(&self) -> Result<()> {
        match self.status {
            Status::Draft => Ok(()),
            status => Err(self.in_the_way(
                status,
                "only a DRAFT can be changed or deleted; create another bundle",
            )),
        }
    }

    fn in_the_way(&self, status: Status, message: &str) -> Error {
        Error::conflict(
            "BUNDLE_STATE",
            format!("this bundle is {}; {message}", status.name()),
        )
    }
}

fn not_found() -> Error {
    Error::not_found("bundle")
}

async fn get(conn: &mut Conn, scope: &Scope, bundle_uuid: Uuid) -> Result<BundleRow> {
    store::get(conn, scope, bundle_uuid)
        .await?
        .ok_or_else(not_found)
}

/// A bundle of the tenant, locked until the transaction ends, with the tenant: no hub is claimed
/// meanwhile.
async fn locked(core: &Core, scope: &Scope, bundle_uuid: Uuid) -> Result<(Tx, BundleRow)> {
    let (mut tx, _) = tenants::lock(core, scope)
        .await?
        .ok_or_else(|| Error::not_found("tenant"))?;
    let row = store::lock(&mut tx, scope, bundle_uuid)
        .await?
        .ok_or_else(not_found)?;
    Ok((tx, row))
}

async fn create(core: &Core, scope: &Scope, given: Given) -> Result<BundleRow> {
    let now = core.clock.now();
    // The lock makes concurrent creations count each other.
    let (mut tx, _) = tenants::lock(core, scope)
        .await?
        .ok_or_else(|| Error::not_found("tenant"))?;
    let (all, in_use) = store::count(&mut tx, scope).await?;
    if in_use >= MAX_IN_USE || all >= MAX_BUNDLES {
        let message = format!(
            "a tenant may have at most {MAX_IN_USE} bundles that are not archived, and {MAX_BUNDLES} in all; archive \
             or delete one first"
        );
        return Err(Error::conflict("TOO_MANY_BUNDLES", message));
    }
    let row = BundleRow {
        bundle_uuid: Uuid::now_v7(),
        tenant_uuid: scope.tenant_uuid(),
        name: given.name,
        description: given.description,
        status: Status::Draft,
        auto_apply: given.auto_apply,
        app_count: 0,
        device_count: 0,
        pipeline_count: 0,
        created_at: now,
        published_at: None,
        archived_at: None,
    };
    store::insert(&mut tx, &row).await?;
    let audit = Audit::new(scope, "supplier_bundle.create", row.bundle_uuid, now);
    tx.commit(audit.changed(None, Some(row.state()))).await?;
    Ok(row)
}

async fn update(
    core: &Core,
    scope: &Scope,
    bundle_uuid: Uuid,
    changed: Changed,
) -> Result<BundleRow> {
    let (tx, before) = locked(core, scope, bundle_uuid).await?;
    before.require_draft()?;
    let mut after = before.clone();
    if let Some(name) = changed.name {
        after.name = name;
    }
    after.description = changed_text(&before.description, changed.description);
    after.auto_apply = changed.auto_apply.unwrap_or(after.auto_apply);
    match after == before {
        true => Ok(before),
        false => {
            commit(
                core,
                scope,
                tx,
                "supplier_bundle.update",
                before,
                after,
                json!({}),
            )
            .await
        }
    }
}

async fn delete(core: &Core, scope: &Scope, bundle_uuid: Uuid) -> Result<()> {
    let (mut tx, before) = locked(core, scope, bundle_uuid).await?;
    before.require_draft()?;
    store::delete(&mut tx, bundle_uuid).await?;
    let audit = Audit::new(
        scope,
        "supplier_bundle.delete",
        bundle_uuid,
        core.clock.now(),
    );
    tx.commit(audit.changed(Some(before.state()), None)).await
}

/// Publishes a bundle, which is applied to hubs from now on. An app without any release would
/// refuse every claim.
async fn publish(core: &Core, scope: &Scope, bundle_uuid: Uuid) -> Result<BundleRow> {
    let (mut tx, before) = locked(core, scope, bundle_uuid).await?;
    if before.status != Status::Draft {
        return Err(before.in_the_way(before.status, "only a DRAFT can be published"));
    }
    if before.auto_apply {
        let applied = store::auto_applied(&mut tx, scope, MAX_AUTO_APPLIED).await?;
        if i64::try_from(applied.len()).is_ok_and(|count| count >= MAX_AUTO_APPLIED) {
            let message = format!(
                "a tenant may have at most {MAX_AUTO_APPLIED} published bundles with `autoApply`; archive one first"
            );
            return Err(Error::conflict("TOO_MANY_BUNDLES", message));
        }
    }
    expansion::require_installable(&mut tx, scope, bundle_uuid).await?;
    let now = core.clock.now();
    let after = BundleRow {
        status: Status::Published,
        published_at: Some(now),
        ..before.clone()
    };
    commit(
        core,
        scope,
        tx,
        "supplier_bundle.publish",
        before,
        after,
        json!({}),
    )
    .await
}

/// Archives a bundle, which is applied to no further hub. The parts that hubs have of it are
/// removed in the background, if the caller wants that.
async fn archive(
    core: &Core,
    scope: &Scope,
    bundle_uuid: Uuid,
    at_hubs: AtHubs,
) -> Result<BundleRow> {
    let (mut tx, before) = locked(core, scope, bundle_uuid).await?;
    if before.status != Status::Published {
        return Err(before.in_the_way(before.status, "only a PUBLISHED bundle can be archived"));
    }
    let now = core.clock.now();
    if at_hubs == AtHubs::Remove {
        withdrawal::enqueue(core, &mut tx, scope, bundle_uuid, now).await?;
    }
    let after = BundleRow {
        status: Status::Archived,
        archived_at: Some(now),
        ..before.clone()
    };
    commit(
        core,
        scope,
        tx,
        "supplier_bundle.archive",
        before,
        after,
        json!({"atHubs": at_hubs}),
    )
    .await
}

/// Stores a changed bundle and commits.
async fn commit(
    core: &Core,
    scope: &Scope,
    mut tx: Tx,
    action: &'static str,
    before: BundleRow,
    after: BundleRow,
    detail: Value,
) -> Result<BundleRow> {
    let now = core.clock.now();
    store::update(&mut tx, &after, now).await?;
    let audit = Audit::new(scope, action, after.bundle_uuid, now);
    tx.commit(
        audit
            .changed(Some(before.state()), Some(after.state()))
            .with(detail),
    )
    .await?;
    Ok(after)
}

/// Deletes the bundles of a hub that is released, and returns their number.
pub async fn forget_hub(tx: &mut Tx, hub_uuid: HubUuid) -> Result<u64> {
    pipelines::bound::unbind_all(tx, hub_uuid).await?;
    store::hubs::forget_all(tx, hub_uuid).await
}
