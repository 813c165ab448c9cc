//! External endpoints: servers of a tenant that its forms and actions may call. The tenant proves
//! that it controls the domain, by a DNS record or a file. Credentials of an endpoint are sealed
//! and never shown. An endpoint whose domain is not proved is called for its proof alone.

mod call;
pub mod http;
mod proof;
mod store;

use hub_base::db::Conn;
use hub_base::error::{Error, Result};
use hub_base::sealing;
use hub_base::sealing::stored::EXTERNAL_ENDPOINT_AUTH;
use hub_core::Core;
use hub_core::audit::Audit;
use hub_destinations::Auth;
use hub_identity::authz::Scope;
use hub_people::tenants;
use hub_protocol::{Timestamp, text_enum};
use schemars::JsonSchema;
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::device_pages;
pub use call::{EndpointAnswer, EndpointCall, MAX_ANSWER_BYTES, call};
use store::EndpointRow;
pub use store::forget_auth;

const MAX_ENDPOINTS: i64 = 100;
const MAX_NAME_CHARS: usize = 200;

/// The proof that a domain belongs to the tenant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum VerifyMethod {
    /// A TXT record at `_hub-verify.<domain>`.
    DnsTxt,
    /// The file `/.well-known/hub-verify.txt`.
    WellKnown,
}

text_enum!(VerifyMethod { DnsTxt = "DNS_TXT", WellKnown = "WELL_KNOWN" });

/// The values given for an endpoint; checked.
struct Given {
    name: String,
    base_url: String,
    domain: String,
    verify_method: VerifyMethod,
    /// The kind of the credentials, and their JSON; None keeps what there is.
    auth: Option<(String, SecretString)>,
}

impl EndpointRow {
    /// The representation in the audit log.
    fn state(&self) -> Value {
        json!({
            "name": self.name,
            "baseUrl": self.base_url,
            "verify_method": self.verify_method,
            "domain_verified": self.domain_verified,
            "authType": self.auth_type,
            // Whether the credentials have changed, and nothing about them.
            "authUpdatedAt": self.auth_updated_at,
        })
    }

    fn sealed_with(
        mut self,
        core: &Core,
        auth: Option<(String, SecretString)>,
        now: Timestamp,
    ) -> Self {
        if let Some((kind, secret)) = auth {
            let row = self.external_endpoint_uuid.to_string();
            let sealed = core.sealer.seal(
                EXTERNAL_ENDPOINT_AUTH,
                &row,
                secret.expose_secret().as_bytes(),
            );
            self.auth_type = Some(kind);
            self.sealed_auth = Some(sealed);
            self.auth_updated_at = Some(now);
        }
        self
    }
}

/// A token of 160 random bits.
fn new_token() -> String {
    format!("hub-verify-{}", hex::encode(sealing::random::<20>()))
}

async fn get(conn: &mut Conn, scope: &Scope, id: Uuid) -> Result<EndpointRow> {
    store::get(conn, scope, id)
        .await?
        .ok_or_else(|| Error::not_found("external endpoint"))
}

async fn create(core: &Core, scope: &Scope, given: Given) -> Result<EndpointRow> {
    let now = core.clock.now();
    // The lock makes concurrent creations count each other.
    let (mut tx, _) = tenants::lock(core, scope)
        .await?
        .ok_or_else(|| Error::not_found("tenant"))?;
    if store::count(&mut tx, scope).await? >= MAX_ENDPOINTS {
        let message = format!(
            "a tenant may have at most {MAX_ENDPOINTS} external endpoints; delete one first"
        );
        return Err(Error::conflict("TOO_MANY_EXTERNAL_ENDPOINTS", message));
    }
    let row = EndpointRow {
        external_endpoint_uuid: Uuid::now_v7(),
        name: given.name,
        base_url: given.base_url,
        domain: given.domain,
        verify_method: given.verify_method,
        verify_token: new_token(),
        domain_verified: false,
        verify_error: None,
        verified_at: None,
        auth_type: None,
        sealed_auth: None,
        auth_updated_at: None,
        created_at: now,
        updated_at: now,
    };
    let row = row.sealed_with(core, given.auth, now);
    store::insert(&mut tx, scope, &row).await?;
    let audit = Audit::new(
        scope,
        "external_endpoint.create",
        row.external_endpoint_uuid,
        now,
    );
    tx.commit(audit.changed(None, Some(row.state()))).await?;
    Ok(row)
}

/// Another base URL has to be verified again, with another token.
async fn update(core: &Core, scope: &Scope, id: Uuid, given: Given) -> Result<EndpointRow> {
    let now = core.clock.now();
    let mut tx = core.db.begin().await?;
    let before = store::lock(&mut tx, scope, id)
        .await?
        .ok_or_else(|| Error::not_found("external endpoint"))?;
    let mut after = before.clone();
    if !is_same_url(&before.base_url, &given.base_url) {
        after.verify_token = new_token();
        after.domain_verified = false;
        after.verify_error = None;
        after.verified_at = None;
    }
    after.name = given.name;
    after.base_url = given.base_url;
    after.domain = given.domain;
    after.verify_method = given.verify_method;
    let after = after.sealed_with(core, given.auth, now);
    if after == before {
        return Ok(before);
    }
    let after = EndpointRow {
        updated_at: now,
        ..after
    };
    store::update(&mut tx, scope, &after).await?;
    let audit = Audit::new(scope, "external_endpoint.update", id, now);
    tx.commit(audit.changed(Some(before.state()), Some(after.state())))
        .await?;
    Ok(after)
}

fn is_same_url(one: &str, other: &str) -> bool {
    let parsed = |text: &str| reqwest::Url::parse(text).ok();
    parsed(one) == parsed(other)
}

/// Looks for the proof now. What is not found is an outcome and no failure.
async fn verify(core: &Core, scope: &Scope, id: Uuid) -> Result<EndpointRow> {
    let seen = get(&mut core.db.read().await?, scope, id).await?;
    let found = proof::look(&core.outgoing, &seen).await;
    let now = core.clock.now();
    let mut tx = core.db.begin().await?;
    let before = store::lock(&mut tx, scope, id)
        .await?
        .ok_or_else(|| Error::not_found("external endpoint"))?;
    // The token of another URL proves nothing.
    if before.verify_token != seen.verify_token || before.verify_method != seen.verify_method {
        let message = "somebody else changed the endpoint meanwhile; read it and verify again";
        return Err(Error::conflict("CHANGED_MEANWHILE", message));
    }
    let after = EndpointRow {
        domain_verified: found.is_ok(),
        verified_at: found.is_ok().then_some(now),
        verify_error: found.err(),
        updated_at: now,
        ..before.clone()
    };
    store::update(&mut tx, scope, &after).await?;
    let audit = Audit::new(scope, "external_endpoint.verify", id, now);
    tx.commit(audit.changed(Some(before.state()), Some(after.state())))
        .await?;
    Ok(after)
}

async fn delete(core: &Core, scope: &Scope, id: Uuid) -> Result<()> {
    let mut tx = core.db.begin().await?;
    let before = store::lock(&mut tx, scope, id)
        .await?
        .ok_or_else(|| Error::not_found("external endpoint"))?;
    if let Some(user) = device_pages::user_of_endpoint(&mut tx, scope, id).await? {
        let message = format!("{user} uses this endpoint; change or delete it first");
        return Err(Error::conflict("EXTERNAL_ENDPOINT_IN_USE", message));
    }
    store::delete(&mut tx, scope, id).await?;
    let audit = Audit::new(scope, "external_endpoint.delete", id, core.clock.now());
    tx.commit(audit.changed(Some(before.state()), None)).await
}

/// An endpoint of the tenant whose domain is proved; others are not called.
async fn proved(conn: &mut Conn, scope: &Scope, id: Uuid) -> Result<EndpointRow> {
    let row = get(conn, scope, id).await?;
    match row.domain_verified {
        true => Ok(row),
        false => {
            let message = "the domain of the supplier's endpoint is not proved, so it is not called; the supplier \
                           has to verify it first";
            Err(Error::conflict("EXTERNAL_ENDPOINT_NOT_VERIFIED", message))
        }
    }
}

/// The data for a call of an endpoint.
pub struct Callable {
    /// The URL that paths are appended to.
    pub base_url: String,
    pub auth: Option<Auth>,
}

/// An endpoint of the tenant to call. 409 if it is not verified.
pub async fn callable(core: &Core, conn: &mut Conn, scope: &Scope, id: Uuid) -> Result<Callable> {
    let row = proved(conn, scope, id).await?;
    let auth = credentials(core, &row)?;
    Ok(Callable {
        base_url: row.base_url,
        auth,
    })
}

fn credentials(core: &Core, row: &EndpointRow) -> Result<Option<Auth>> {
    let Some(sealed) = &row.sealed_auth else {
        return Ok(None);
    };
    let id = row.external_endpoint_uuid.to_string();
    let opened = core
        .sealer
        .open(EXTERNAL_ENDPOINT_AUTH, &id, sealed)
        .map_err(Error::internal)?;
    Ok(Auth::open(
        &String::from_utf8(opened).map_err(Error::internal)?.into(),
    ))
}
