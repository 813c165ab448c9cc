//! Setup delegations: a tenant lends a hub to a person, who may set it up with the app for as long as the delegation lives. The person may be named before
//! they have an account, and nobody is told whether they have one.

pub mod http;
mod store;

use hub_protocol::{HubUuid, Timestamp, UserUuid};
use serde_json::{Value, json};

use crate::app::App;
use crate::authz::Scope;
use crate::domain::audit::Audit;
use crate::domain::hubs;
use crate::error::{Error, Result};

/// Live delegations of a hub.
const MAX_LIVE: i64 = 100;

/// Whom a hub is lent to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Person {
    User(UserUuid),
    /// In lower case.
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
    /// As the audit log shows it.
    fn state(&self) -> Value {
        json!({
            "hubUuid": self.hub_uuid,
            "userUuid": self.user_uuid,
            "email": self.email,
            "expiresAt": self.expires_at,
        })
    }
}

/// Lends the hub to the person. Who has it already keeps it, until the new end.
async fn create(
    app: &App,
    scope: &Scope,
    hub_uuid: HubUuid,
    person: Person,
    expires_at: Option<Timestamp>,
) -> Result<Delegation> {
    let mut tx = app.db.begin().await?;
    // Of two that name the same person one waits for the other.
    hubs::lock(&mut tx, scope, hub_uuid).await?;
    let now = app.clock.now();
    store::forget_expired(&mut tx, scope, hub_uuid, now).await?;
    let before = store::find_by_person(&mut tx, scope, hub_uuid, &person).await?;
    let after = match &before {
        Some(before) => store::set_end(&mut tx, scope, before.setup_delegation_id, expires_at).await?,
        None if store::count(&mut tx, scope, hub_uuid).await? >= MAX_LIVE => {
            let message = format!("this hub is lent to {MAX_LIVE} people already; take it back from somebody first");
            return Err(Error::conflict("TOO_MANY_DELEGATIONS", message));
        }
        None => store::insert(&mut tx, scope, hub_uuid, &person, expires_at, now).await?,
    };
    let audit = Audit::new(scope, "setup_delegation.create", after.setup_delegation_id, now);
    tx.commit(audit.changed(before.map(|before| before.state()), Some(after.state()))).await?;
    Ok(after)
}

/// Takes the hub back.
async fn delete(app: &App, scope: &Scope, hub_uuid: HubUuid, setup_delegation_id: i64) -> Result<()> {
    let mut tx = app.db.begin().await?;
    hubs::lock(&mut tx, scope, hub_uuid).await?;
    let before = store::delete(&mut tx, scope, hub_uuid, setup_delegation_id).await?;
    let before = before.ok_or_else(|| Error::not_found("setup delegation"))?;
    let audit = Audit::new(scope, "setup_delegation.delete", setup_delegation_id, app.clock.now());
    tx.commit(audit.changed(Some(before.state()), None)).await
}
