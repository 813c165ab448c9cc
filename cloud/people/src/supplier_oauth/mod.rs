//! The configuration of a supplier's own authorization server, and of the system that receives its
//! registrations. One configuration of a tenant is in force. Where the platform approves changes,
//! those of a tenant wait beside it. Secrets are sealed and never leave this module but for a call
//! to the supplier.

pub mod http;
mod post;
mod store;

use hub_base::db::{Conn, Tx};
use hub_base::error::{Error, Result};
use hub_base::sealing::stored::{SUPPLIER_CLIENT_SECRET, SUPPLIER_REGISTRATION_SECRET};
use hub_core::Core;
use hub_core::audit::Audit;
use hub_identity::authn::user::User;
use hub_identity::authz::Scope;
use hub_protocol::{TenantUuid, Timestamp, text_enum};
use schemars::JsonSchema;
use secrecy::SecretString;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::tenants;
pub use post::{Message, Refused, post, schemes};
use store::{Change, Live, Sealed};

/// The decided changes of a tenant that are kept.
const MAX_DECIDED: i64 = 20;

/// The part of a configuration that is not secret, as it is stored and returned.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Config {
    /// The issuer of the authorization server.
    pub issuer: Option<String>,
    /// The URL at which a user agrees to the link.
    pub authorize_url: String,
    /// The URL at which codes and refresh tokens are exchanged for tokens.
    pub token_url: String,
    /// The URL at which tokens are revoked (RFC 7009).
    pub revoke_url: Option<String>,
    /// The URL of the user's id at the supplier.
    pub userinfo_url: Option<String>,
    /// The client that this service is at the authorization server.
    pub client_id: String,
    /// The scope that is asked for.
    pub scope: String,
    /// The text that users read before they agree.
    pub consent_text: Option<String>,
    /// The URL that registration events are sent to.
    pub registration_url: Option<String>,
    /// The URLs that users may return to.
    pub return_urls: Vec<String>,
}

/// A configuration as it is asked for. A secret that is None keeps its value.
#[derive(Debug)]
pub struct Given {
    pub config: Config,
    pub client_secret: Option<String>,
    pub registration_shared_secret: Option<String>,
}

/// The state of the last change of a configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum ApprovalStatus {
    /// The change waits for the platform; the previous configuration stays in force.
    Pending,
    /// The configuration is in force.
    Approved,
    /// The platform refused it.
    Rejected,
    /// A later change took its place before it was decided.
    Superseded,
}

text_enum!(ApprovalStatus {
    Pending = "PENDING",
    Approved = "APPROVED",
    Rejected = "REJECTED",
    Superseded = "SUPERSEDED",
});

/// A configuration as its tenant and the platform see it.
#[derive(Debug)]
pub struct Shown {
    pub tenant_uuid: TenantUuid,
    pub config: Config,
    pub has_client_secret: bool,
    pub has_registration_secret: bool,
    pub approval_status: ApprovalStatus,
    pub updated_at: Timestamp,
}

impl Shown {
    fn live(tenant_uuid: TenantUuid, live: Live, approval_status: ApprovalStatus) -> Result<Self> {
        Ok(Self {
            tenant_uuid,
            config: live.config()?,
            has_client_secret: live.sealed.client_secret.is_some(),
            has_registration_secret: live.sealed.registration_secret.is_some(),
            approval_status,
            updated_at: live.updated_at,
        })
    }

    /// A change as it will be once it is in force.
    fn change(change: &Change, live: Option<&Live>) -> Result<Self> {
        let stays = |secret: fn(&Sealed) -> &Option<Vec<u8>>| {
            live.is_some_and(|live| secret(&live.sealed).is_some())
        };
        Ok(Self {
            tenant_uuid: change.tenant_uuid,
            config: change.config()?,
            has_client_secret: change.sealed.client_secret.is_some()
                || stays(|sealed| &sealed.client_secret),
            has_registration_secret: change.sealed.registration_secret.is_some()
                || stays(|sealed| &sealed.registration_secret),
            approval_status: change.status,
            updated_at: change.created_at,
        })
    }
}

/// A change that waits for the platform, and what is in force.
#[derive(Debug)]
pub struct Approval {
    pub id: i64,
    pub change: Shown,
    pub changes_client_secret: bool,
    pub changes_registration_secret: bool,
    pub live: Option<Shown>,
}

/// The tenant's configuration in force, with the state of its last change.
async fn get(core: &Core, scope: &Scope) -> Result<Shown> {
    let mut conn = core.db.read().await?;
    let tenant_uuid = scope.tenant_uuid();
    let last = store::last_status(&mut conn, tenant_uuid).await?;
    let Some(live) = store::live(&mut conn, tenant_uuid).await? else {
        return Err(match last {
            Some(ApprovalStatus::Pending) => {
                let message = "there is no such supplier OAuth configuration in force; yours waits for the platform";
                Error::new(axum::http::StatusCode::NOT_FOUND, "NOT_FOUND", message)
            }
            _ => Error::not_found("supplier OAuth configuration"),
        });
    };
    Shown::live(tenant_uuid, live, last.unwrap_or(ApprovalStatus::Approved))
}

/// Whether the tenant has a configuration in force.
pub async fn is_set_up(conn: &mut Conn, scope: &Scope) -> Result<bool> {
    let live = store::live(conn, scope.tenant_uuid()).await?;
    Ok(live.is_some())
}

/// Creates or replaces the tenant's configuration, or asks the platform to.
async fn put_by_tenant(core: &Core, scope: &Scope, given: Given) -> Result<Shown> {
    let now = core.clock.now();
    let mut tx = begin(core, scope.tenant_uuid()).await?;
    if !core.config.require_approval {
        return apply(core, tx, scope.tenant_uuid(), given, |action| {
            Audit::new(scope, action, scope.tenant_uuid(), now)
        })
        .await;
    }
    let tenant_uuid = scope.tenant_uuid();
    let live = store::live(&mut tx, tenant_uuid).await?;
    let waiting = store::lock_pending(&mut tx, tenant_uuid).await?;
    let change_uuid = Uuid::now_v7();
    // The secrets of an earlier change that still waits are kept.
    let mut sealed = match &waiting {
        Some(waiting) => moved(
            core,
            &waiting.sealed,
            &waiting.change_uuid.to_string(),
            &change_uuid.to_string(),
        )?,
        None => Sealed::default(),
    };
    seal_given(core, &given, &change_uuid.to_string(), &mut sealed);
    if let Some(waiting) = &waiting {
        store::decide(
            &mut tx,
            waiting.supplier_oauth_change_id,
            ApprovalStatus::Superseded,
            now,
        )
        .await?;
    }
    let change = store::insert_change(
        &mut tx,
        tenant_uuid,
        change_uuid,
        &given.config,
        sealed,
        now,
    )
    .await?;
    store::forget_decided(&mut tx, tenant_uuid, MAX_DECIDED).await?;
    let audit = Audit::new(
        scope,
        "supplier_oauth_config.request",
        change.supplier_oauth_change_id,
        now,
    );
    let before = live.as_ref().map(|live| live.config()).transpose()?;
    tx.commit(
        audit
            .changed(audited(before.as_ref()), audited(Some(&given.config)))
            .with(secrets_given(&given)),
    )
    .await?;
    Shown::change(&change, live.as_ref())
}

/// Creates or replaces a tenant's configuration by the platform, which needs no approval.
async fn put_by_platform(
    core: &Core,
    admin: &User,
    tenant_uuid: TenantUuid,
    given: Given,
) -> Result<Shown> {
    let now = core.clock.now();
    let tx = begin(core, tenant_uuid).await?;
    apply(core, tx, tenant_uuid, given, |action| {
        Audit::new(admin, action, tenant_uuid, now).in_tenant(tenant_uuid)
    })
    .await
}

/// Locks the tenant, so that its configuration has one writer at a time.
async fn begin(core: &Core, tenant_uuid: TenantUuid) -> Result<Tx> {
    let mut tx = core.db.begin().await?;
    match tenants::lock_exclusively(&mut tx, tenant_uuid).await? {
        true => Ok(tx),
        false => Err(Error::not_found("tenant")),
    }
}

/// Puts what was given in force.
async fn apply(
    core: &Core,
    mut tx: Tx,
    tenant_uuid: TenantUuid,
    given: Given,
    audit: impl FnOnce(&'static str) -> Audit,
) -> Result<Shown> {
    let now = core.clock.now();
    let before = store::live(&mut tx, tenant_uuid).await?;
    let mut sealed = before
        .as_ref()
        .map(|before| before.sealed.clone())
        .unwrap_or_default();
    seal_given(core, &given, &tenant_uuid.to_string(), &mut sealed);
    let live = store::put(&mut tx, tenant_uuid, &given.config, sealed, now).await?;
    let old = before.map(|before| before.config()).transpose()?;
    let audit = audit("supplier_oauth_config.set").with(secrets_given(&given));
    tx.commit(audit.changed(audited(old.as_ref()), audited(Some(&given.config))))
        .await?;
    Shown::live(tenant_uuid, live, ApprovalStatus::Approved)
}

/// Deletes the tenant's configuration, and a change that waits.
async fn delete(core: &Core, scope: &Scope) -> Result<()> {
    let now = core.clock.now();
    let mut tx = begin(core, scope.tenant_uuid()).await?;
    let before = store::live(&mut tx, scope.tenant_uuid()).await?;
    let waiting = store::lock_pending(&mut tx, scope.tenant_uuid()).await?;
    if before.is_none() && waiting.is_none() {
        return Ok(());
    }
    if let Some(waiting) = waiting {
        store::decide(
            &mut tx,
            waiting.supplier_oauth_change_id,
            ApprovalStatus::Superseded,
            now,
        )
        .await?;
    }
    store::delete(&mut tx, scope.tenant_uuid()).await?;
    let old = before.map(|before| before.config()).transpose()?;
    let audit = Audit::new(
        scope,
        "supplier_oauth_config.delete",
        scope.tenant_uuid(),
        now,
    );
    tx.commit(audit.changed(audited(old.as_ref()), None)).await
}

/// Puts a change that waits in force.
async fn approve(core: &Core, admin: &User, id: i64) -> Result<Shown> {
    let (mut tx, change) = lock_change(core, id).await?;
    let now = core.clock.now();
    let tenant_uuid = change.tenant_uuid;
    let before = store::live(&mut tx, tenant_uuid).await?;
    let row = tenant_uuid.to_string();
    let moved = moved(core, &change.sealed, &change.change_uuid.to_string(), &row)?;
    let kept = before
        .as_ref()
        .map(|before| before.sealed.clone())
        .unwrap_or_default();
    let sealed = Sealed {
        client_secret: moved.client_secret.or(kept.client_secret),
        registration_secret: moved.registration_secret.or(kept.registration_secret),
    };
    let config = change.config()?;
    let live = store::put(&mut tx, tenant_uuid, &config, sealed, now).await?;
    store::decide(&mut tx, id, ApprovalStatus::Approved, now).await?;
    let old = before.map(|before| before.config()).transpose()?;
    let audit = Audit::new(admin, "supplier_oauth_config.approve", id, now).in_tenant(tenant_uuid);
    tx.commit(audit.changed(audited(old.as_ref()), audited(Some(&config))))
        .await?;
    Shown::live(tenant_uuid, live, ApprovalStatus::Approved)
}

/// Refuses a change that waits.
async fn reject(core: &Core, admin: &User, id: i64) -> Result<Shown> {
    let (mut tx, mut change) = lock_change(core, id).await?;
    let now = core.clock.now();
    store::decide(&mut tx, id, ApprovalStatus::Rejected, now).await?;
    let live = store::live(&mut tx, change.tenant_uuid).await?;
    let audit =
        Audit::new(admin, "supplier_oauth_config.reject", id, now).in_tenant(change.tenant_uuid);
    tx.commit(audit.with(json!({"config": change.config()?})))
        .await?;
    change.status = ApprovalStatus::Rejected;
    Shown::change(&change, live.as_ref())
}

/// A change that waits, with its tenant locked. 409 if it was decided before.
async fn lock_change(core: &Core, id: i64) -> Result<(Tx, Change)> {
    let not_found = || Error::not_found("change of a supplier OAuth configuration");
    let tenant_uuid = store::tenant_of_change(&mut core.db.read().await?, id)
        .await?
        .ok_or_else(not_found)?;
    let mut tx = begin(core, tenant_uuid).await?;
    let change = store::find_change(&mut tx, id)
        .await?
        .ok_or_else(not_found)?;
    match change.status {
        ApprovalStatus::Pending => Ok((tx, change)),
        status => {
            let message = format!("this change was decided before: it is {}", status.name());
            Err(Error::conflict("ALREADY_DECIDED", message))
        }
    }
}

/// The changes that wait, oldest first, and how many there are.
async fn approvals(core: &Core, slice: hub_base::db::Slice) -> Result<(Vec<Approval>, i64)> {
    let mut conn = core.db.read().await?;
    let (changes, total) = store::pending(&mut conn, slice).await?;
    let mut lives =
        store::lives(&mut conn, changes.iter().map(|change| change.tenant_uuid)).await?;
    let mut approvals = Vec::with_capacity(changes.len());
    for change in changes {
        let live = lives.remove(&change.tenant_uuid);
        approvals.push(Approval {
            id: change.supplier_oauth_change_id,
            changes_client_secret: change.sealed.client_secret.is_some(),
            changes_registration_secret: change.sealed.registration_secret.is_some(),
            change: Shown::change(&change, live.as_ref())?,
            live: live
                .map(|live| Shown::live(change.tenant_uuid, live, ApprovalStatus::Approved))
                .transpose()?,
        });
    }
    Ok((approvals, total))
}

fn seal_given(core: &Core, given: &Given, row: &str, sealed: &mut Sealed) {
    if let Some(secret) = &given.client_secret {
        sealed.client_secret = Some(core.sealer.seal(
            SUPPLIER_CLIENT_SECRET,
            row,
            secret.as_bytes(),
        ));
    }
    if let Some(secret) = &given.registration_shared_secret {
        sealed.registration_secret = Some(core.sealer.seal(
            SUPPLIER_REGISTRATION_SECRET,
            row,
            secret.as_bytes(),
        ));
    }
}

/// The secrets of one row, sealed for another one.
fn moved(core: &Core, sealed: &Sealed, from: &str, to: &str) -> Result<Sealed> {
    let reseal = |purpose: &str, sealed: &Option<Vec<u8>>| -> Result<Option<Vec<u8>>> {
        let Some(sealed) = sealed else {
            return Ok(None);
        };
        let secret = core
            .sealer
            .open(purpose, from, sealed)
            .map_err(Error::internal)?;
        Ok(Some(core.sealer.seal(purpose, to, &secret)))
    };
    Ok(Sealed {
        client_secret: reseal(SUPPLIER_CLIENT_SECRET, &sealed.client_secret)?,
        registration_secret: reseal(SUPPLIER_REGISTRATION_SECRET, &sealed.registration_secret)?,
    })
}

fn audited(config: Option<&Config>) -> Option<Value> {
    config.map(|config| json!(config))
}

fn secrets_given(given: &Given) -> Value {
    json!({
        "clientSecretChanged": given.client_secret.is_some(),
        "registrationSharedSecretChanged": given.registration_shared_secret.is_some(),
    })
}

/// The URL that receives registration events of a tenant, and the secret that signs them.
pub struct RegistrationTarget {
    pub url: Option<String>,
    pub secret: Option<SecretString>,
}

/// The tenant's own, of the configuration in force; None if it has no configuration.
pub async fn registration_target(
    core: &Core,
    conn: &mut Conn,
    tenant_uuid: TenantUuid,
) -> Result<Option<RegistrationTarget>> {
    let Some(live) = store::live(conn, tenant_uuid).await? else {
        return Ok(None);
    };
    let secret = opened(
        core,
        SUPPLIER_REGISTRATION_SECRET,
        tenant_uuid,
        live.sealed.registration_secret.as_deref(),
    )?;
    Ok(Some(RegistrationTarget {
        url: live.config()?.registration_url,
        secret,
    }))
}

/// The client that this service is at a supplier's authorization server.
pub struct OauthClient {
    pub config: Config,
    pub secret: Option<SecretString>,
}

/// The client of the configuration in force.
pub async fn client(
    core: &Core,
    conn: &mut Conn,
    tenant_uuid: TenantUuid,
) -> Result<Option<OauthClient>> {
    let Some(live) = store::live(conn, tenant_uuid).await? else {
        return Ok(None);
    };
    let secret = opened(
        core,
        SUPPLIER_CLIENT_SECRET,
        tenant_uuid,
        live.sealed.client_secret.as_deref(),
    )?;
    Ok(Some(OauthClient {
        config: live.config()?,
        secret,
    }))
}

/// The configuration in force, without its secrets.
pub async fn config(conn: &mut Conn, tenant_uuid: TenantUuid) -> Result<Option<Config>> {
    store::live(conn, tenant_uuid)
        .await?
        .map(|live| live.config())
        .transpose()
}

fn opened(
    core: &Core,
    purpose: &str,
    tenant_uuid: TenantUuid,
    sealed: Option<&[u8]>,
) -> Result<Option<SecretString>> {
    let Some(sealed) = sealed else {
        return Ok(None);
    };
    let secret = core
        .sealer
        .open(purpose, &tenant_uuid.to_string(), sealed)
        .map_err(Error::internal)?;
    Ok(Some(SecretString::from(
        String::from_utf8(secret).map_err(Error::internal)?,
    )))
}

/// Deletes the secrets of a tenant that is being deleted, with its configuration.
pub async fn forget(tx: &mut Tx, scope: &Scope) -> Result<()> {
    store::delete(tx, scope.tenant_uuid()).await?;
    store::forget_changes(tx, scope.tenant_uuid()).await
}
