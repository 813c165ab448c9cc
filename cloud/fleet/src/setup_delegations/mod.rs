//! Setup delegations: a tenant delegates a hub to a person, who may set it up with the app while
//! the delegation is valid. The person can be named before they have an account, and responses
//! never reveal whether they have one.

pub mod http;
mod store;

use hub_base::db::Tx;
use hub_base::error::{Error, Result};
use hub_core::Core;
use hub_core::audit::Audit;
use hub_identity::authz::Scope;
use hub_protocol::{HubUuid, Timestamp, UserUuid};
use serde_json::{Value, json};

use crate::hubs;
pub use store::{delete_all, delete_all_of_tenant};

/// The most valid delegations of one hub.
const MAX_LIVE: i64 = 100;

/// The person that a hub is delegated to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Person {
    User(UserUuid),
    /// The e-mail in lower case.
    Email(String),
}

#[derive(Clone, Debug, sqlx::FromRow)]
pub struct Delegation {
    pub setup_delegation_id: i64,
    pub hub_uuid: HubUuid,
    pub user_uuid: Option<UserUuid>,
    pub email: Option<String>,
    pub expires_at: Option<Timestamp>,
    pub created_at: Timestamp,
}

impl Delegation {
    /// The representation in the audit log.
    fn state(&self) -> Value {
        json!({
            "hubUuid": self.hub_uuid,
            "userUuid": self.user_uuid,
            "email": self.email,
            "expiresAt": self.expires_at,
        })
    }
}

/// Delegates the hub to the person. An existing delegation gets the new expiry time.
async fn create(
    core: &Core,
    scope: &Scope,
    hub_uuid: HubUuid,
    person: Person,
    expires_at: Option<Timestamp>,
) -> Result<Delegation> {
    let mut tx = core.db.begin().await?;
    // The lock serializes two requests that name the same person.
    hubs::lock(&mut tx, scope, hub_uuid).await?;
    let now = core.clock.now();
    store::forget_expired(&mut tx, scope, hub_uuid, now).await?;
    let before = store::find_by_person(&mut tx, scope, hub_uuid, &person).await?;
    let after = match &before {
        Some(before) => {
            store::set_end(&mut tx, scope, before.setup_delegation_id, expires_at).await?
        }
        None if store::count(&mut tx, scope, hub_uuid).await? >= MAX_LIVE => {
            let message = format!("this hub has {MAX_LIVE} delegations already; delete one first");
            return Err(Error::conflict("TOO_MANY_DELEGATIONS", message));
        }
        None => store::insert(&mut tx, scope, hub_uuid, &person, expires_at, now).await?,
    };
    let audit = Audit::new(
        scope,
        "setup_delegation.create",
        after.setup_delegation_id,
        now,
    );
    tx.commit(audit.changed(before.map(|before| before.state()), Some(after.state())))
        .await?;
    Ok(after)
}

/// Ends the delegation.
async fn delete(
    core: &Core,
    scope: &Scope,
    hub_uuid: HubUuid,
    setup_delegation_id: i64,
) -> Result<()> {
    let mut tx = core.db.begin().await?;
    hubs::lock(&mut tx, scope, hub_uuid).await?;
    let before = store::delete(&mut tx, scope, hub_uuid, setup_delegation_id).await?;
    let before = before.ok_or_else(|| Error::not_found("setup delegation"))?;
    let audit = Audit::new(
        scope,
        "setup_delegation.delete",
        setup_delegation_id,
        core.clock.now(),
    );
    tx.commit(audit.changed(Some(before.state()), None)).await
}

/// Deletes the delegations to a person.
pub async fn forget_person(tx: &mut Tx, user_uuid: UserUuid, email: &str) -> Result<()> {
    store::delete_of_person(tx, user_uuid, email).await
}
