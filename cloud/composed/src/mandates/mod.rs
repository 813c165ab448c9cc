//! Mandates: a person lets somebody else have data of the devices that they own. The recipient
//! reads it with a credential that reads nothing else (PULL), or gets it sent (PUSH). What a
//! mandate allows is asked each time: never more than the person has at that moment. It ends with
//! its time, by the person, when they withdraw their consent to the supplier, and when nothing of
//! it is theirs any more. The supplier sees it, and has no way to end it. A grant comes with a
//! receipt that anybody can check with the keys of the service.

pub mod access;
pub mod http;
pub mod push;
mod store;
mod trade_secrets;
pub mod upkeep;

use hub_base::db::Conn;
use hub_base::error::{Error, Result};
use hub_base::sealing::{self, stored::MANDATE_SIGNING_SECRET};
use hub_core::audit::Audit;
use hub_identity::authn::{self, Authn, keys};
use hub_identity::authz::UserScope;
use hub_outgoing::signing::new_signing_secret;
use hub_people::accounts;
use hub_protocol::{HubUuid, TenantUuid, Timestamp, UserUuid, text_enum};
use schemars::JsonSchema;
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::end_users;
use store::{MandateRow, NewSecrets};
pub use store::{end_all, forget_person};

/// Mandates of a person that have no end yet, and all that are kept.
const MAX_IN_FORCE: i64 = 100;
const MAX_KEPT: i64 = 1000;
/// Devices that one mandate is of.
const MAX_DEVICES: usize = 500;
/// The audience of receipts, so that none of them is taken for a token.
const RECEIPT_AUDIENCE: &str = "hub-cloud/mandate-receipts";
/// What a credential begins with.
const CREDENTIAL_PREFIX: &str = "hmd_";

/// How the recipient gets the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Form {
    /// The recipient reads it under `/mandate/v1`.
    Pull,
    /// It is sent to the recipient's URL.
    Push,
}

text_enum!(Form { Pull = "PULL", Push = "PUSH" });

/// Why a mandate has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum EndReason {
    /// The person ended it.
    Person,
    /// Its time is over.
    Expired,
    /// The person withdrew their consent to the supplier.
    ConsentWithdrawn,
    /// None of its hubs and devices is the person's any more.
    OwnershipEnded,
    /// The supplier was deleted.
    SupplierDeleted,
}

text_enum!(EndReason {
    Person = "PERSON",
    Expired = "EXPIRED",
    ConsentWithdrawn = "CONSENT_WITHDRAWN",
    OwnershipEnded = "OWNERSHIP_ENDED",
    SupplierDeleted = "SUPPLIER_DELETED",
});

/// Who gets the data.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct RecipientName {
    /// The name, for the person and the supplier.
    #[schemars(length(min = 1, max = 200), regex(pattern = hub_protocol::patterns::FILLED_LINE))]
    pub name: String,
    /// The e-mail.
    #[schemars(length(max = 254), regex(pattern = hub_protocol::patterns::LINE))]
    pub email: Option<String>,
    /// The web site, with `https` or `http`.
    #[schemars(length(max = 2000), regex(pattern = hub_protocol::patterns::LINE))]
    pub url: Option<String>,
}

/// A mandate to be granted.
struct NewMandate {
    recipient: RecipientName,
    hub_uuid: Option<HubUuid>,
    device_instance_ids: Option<Vec<i64>>,
    quantities: Option<Vec<String>>,
    from: Option<Timestamp>,
    until: Timestamp,
    form: Form,
    push_url: Option<String>,
}

/// A mandate that was just granted, with the secret that is shown once.
struct Granted {
    row: MandateRow,
    credential: Option<SecretString>,
    signing_secret: Option<SecretString>,
}

impl MandateRow {
    fn device_instance_ids(&self) -> Result<Option<Vec<i64>>> {
        listed(self.device_instance_ids.as_deref())
    }

    fn quantities(&self) -> Result<Option<Vec<String>>> {
        listed(self.quantities.as_deref())
    }

    /// When and why it ended, if it has. A withdrawn consent and the time count before they are
    /// noted.
    fn end(&self, now: Timestamp) -> Option<(Timestamp, EndReason)> {
        let noted = self.end_reason.as_deref().and_then(EndReason::from_name);
        if let (Some(at), Some(reason)) = (self.ended_at, noted) {
            return Some((at, reason));
        }
        if let Some(at) = self.consent_withdrawn_at {
            return Some((at, EndReason::ConsentWithdrawn));
        }
        (self.until_at <= now).then_some((self.until_at, EndReason::Expired))
    }

    fn recipient(&self) -> RecipientName {
        RecipientName {
            name: self.recipient_name.clone(),
            email: self.recipient_email.clone(),
            url: self.recipient_url.clone(),
        }
    }

    /// The representation in the audit log.
    fn state(&self) -> Value {
        json!({
            "recipient": self.recipient_name,
            "hubUuid": self.hub_uuid,
            "deviceInstanceIds": self.device_instance_ids,
            "quantities": self.quantities,
            "from": self.from_at,
            "until": self.until_at,
            "form": self.form.name(),
        })
    }
}

fn listed<T: serde::de::DeserializeOwned>(list: Option<&str>) -> Result<Option<Vec<T>>> {
    list.map(serde_json::from_str)
        .transpose()
        .map_err(Error::internal)
}

fn stored<T: Serialize>(list: Option<&Vec<T>>) -> Result<Option<String>> {
    list.map(serde_json::to_string)
        .transpose()
        .map_err(Error::internal)
}

/// The claims of a receipt. It is a JWT (RFC 7519) whose audience no token has.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Receipt<'a> {
    iss: &'a str,
    aud: &'a str,
    sub: String,
    iat: i64,
    mandate_uuid: Uuid,
    supplier_uuid: TenantUuid,
    user_uuid: UserUuid,
    recipient: &'a RecipientName,
    hub_uuid: Option<HubUuid>,
    device_instance_ids: Option<&'a [i64]>,
    quantities: Option<&'a [String]>,
    from: Timestamp,
    until: Timestamp,
    form: Form,
    destination_url: Option<&'a str>,
    granted_at: Timestamp,
}

/// The supplier of what a mandate is for, and its hub, where it is for all devices of one.
struct Subject {
    tenant_uuid: TenantUuid,
    hub_uuid: Option<HubUuid>,
}

/// Checks that the hub or the devices are the person's own.
async fn subject(
    conn: &mut Conn,
    person: &end_users::EndUserNow,
    new: &NewMandate,
) -> Result<Subject> {
    let Some(ids) = &new.device_instance_ids else {
        let hubs = end_users::some_hubs(conn, person, new.hub_uuid, 2).await?;
        return match (hubs.as_slice(), new.hub_uuid) {
            ([hub], _) => Ok(Subject {
                tenant_uuid: hub.tenant_uuid,
                hub_uuid: Some(hub.hub_uuid),
            }),
            (_, Some(_)) => Err(Error::not_found("hub")),
            ([], None) => Err(Error::field("hubUuid", "you own no hub")),
            (_, None) => Err(Error::field(
                "hubUuid",
                "you own several hubs: name one, or devices in `deviceInstanceIds`",
            )),
        };
    };
    let own = end_users::own_devices(conn, person, ids).await?;
    for (index, id) in ids.iter().enumerate() {
        let is_own = own.iter().any(|device| {
            device.device_instance_id == *id
                && new
                    .hub_uuid
                    .is_none_or(|hub_uuid| device.hub_uuid == hub_uuid)
        });
        if !is_own {
            let message = "is no device that a hub of yours hears best";
            return Err(Error::field(format!("deviceInstanceIds[{index}]"), message));
        }
    }
    let mut suppliers = own.iter().map(|device| device.tenant_uuid);
    let tenant_uuid = suppliers
        .next()
        .ok_or_else(|| Error::field("deviceInstanceIds", "must not be empty"))?;
    if suppliers.any(|other| other != tenant_uuid) {
        let message = "are of several suppliers: grant a mandate for each";
        return Err(Error::field("deviceInstanceIds", message));
    }
    Ok(Subject {
        tenant_uuid,
        hub_uuid: new.hub_uuid,
    })
}

async fn grant(authn: &Authn, scope: &UserScope, new: NewMandate) -> Result<Granted> {
    let (core, now, user_uuid) = (&authn.core, authn.core.clock.now(), scope.user_uuid());
    let mut tx = core.db.begin().await?;
    // The lock makes concurrent grants count each other, and waits for the end of the account.
    accounts::lock_user(&mut tx, user_uuid).await?;
    if !accounts::exists(&mut tx, user_uuid).await? {
        return Err(Error::not_found("account"));
    }
    let (in_force, kept) = store::counts(&mut tx, user_uuid).await?;
    if in_force >= MAX_IN_FORCE || kept >= MAX_KEPT {
        let message = format!(
            "a person may have at most {MAX_IN_FORCE} mandates in force, and {MAX_KEPT} with those \
             that have ended; end one first"
        );
        return Err(Error::conflict("TOO_MANY_MANDATES", message));
    }
    let person = end_users::owner(core, user_uuid);
    let Subject {
        tenant_uuid,
        hub_uuid,
    } = subject(&mut tx, &person, &new).await?;
    let mandate_uuid = Uuid::new_v4();
    let from = new.from.unwrap_or(now);
    let receipt = Receipt {
        iss: authn::ISSUER,
        aud: RECEIPT_AUDIENCE,
        sub: user_uuid.to_string(),
        iat: now.as_secs(),
        mandate_uuid,
        supplier_uuid: tenant_uuid,
        user_uuid,
        recipient: &new.recipient,
        hub_uuid,
        device_instance_ids: new.device_instance_ids.as_deref(),
        quantities: new.quantities.as_deref(),
        from,
        until: new.until,
        form: new.form,
        destination_url: new.push_url.as_deref(),
        granted_at: now,
    };
    let receipt = authn.keys.sign(&receipt, now)?;
    keys::keep_for_receipts(&mut tx, &receipt).await?;
    let row = MandateRow {
        mandate_uuid,
        tenant_uuid,
        user_uuid,
        hub_uuid,
        device_instance_ids: stored(new.device_instance_ids.as_ref())?,
        quantities: stored(new.quantities.as_ref())?,
        recipient_name: new.recipient.name,
        recipient_email: new.recipient.email,
        recipient_url: new.recipient.url,
        form: new.form,
        from_at: from,
        until_at: new.until,
        push_url: new.push_url,
        receipt,
        created_at: now,
        last_used_at: None,
        last_used_address: None,
        ended_at: None,
        end_reason: None,
        consent_withdrawn_at: None,
    };
    let (mut credential, mut signing_secret, mut secrets) = (None, None, NewSecrets::default());
    match row.form {
        Form::Pull => {
            let text = format!(
                "{CREDENTIAL_PREFIX}{}",
                hex::encode(sealing::random::<32>())
            );
            secrets.credential_hash = Some(sealing::hash(&text));
            credential = Some(SecretString::from(text));
        }
        Form::Push => {
            let secret = new_signing_secret();
            let id = mandate_uuid.to_string();
            let bytes = secret.expose_secret().as_bytes();
            let sealed = core.sealer.seal(MANDATE_SIGNING_SECRET, &id, bytes);
            secrets.sealed_signing_secret = Some(sealed);
            signing_secret = Some(secret);
        }
    }
    store::insert(&mut tx, &row, secrets).await?;
    if row.form == Form::Push {
        let cursor_id = from.as_micros().saturating_sub(1);
        store::begin_push(&mut tx, mandate_uuid, cursor_id, from.max(now)).await?;
    }
    let audit = Audit::new(scope, "mandate.grant", mandate_uuid, now).in_tenant(tenant_uuid);
    tx.commit(audit.changed(None, Some(row.state()))).await?;
    Ok(Granted {
        row,
        credential,
        signing_secret,
    })
}

/// Ends a mandate of the person. When this returns, no replica hands out anything for it. Repeating
/// it changes nothing.
async fn end(authn: &Authn, scope: &UserScope, mandate_uuid: Uuid) -> Result<()> {
    let now = authn.core.clock.now();
    let mut tx = authn.core.db.begin().await?;
    let row = store::lock_own(&mut tx, scope.user_uuid(), mandate_uuid)
        .await?
        .ok_or_else(|| Error::not_found("mandate"))?;
    if row.ended_at.is_none() {
        let (ended_at, reason) = row.end(now).unwrap_or((now, EndReason::Person));
        store::end(&mut tx, mandate_uuid, ended_at, reason).await?;
        let audit = Audit::new(scope, "mandate.end", mandate_uuid, now).in_tenant(row.tenant_uuid);
        tx.commit(audit.with(json!({"reason": reason.name()})))
            .await?;
    }
    // The wait also applies to an ended one: the request that ended it may still be waiting.
    authn.permissions.wait_out_lease().await;
    Ok(())
}
