//! Consent: what a supplier asks its users for, by version, and what each of them has granted. A
//! grant comes with a receipt that anybody can check with the keys of the service. Where a supplier
//! enforces it, hubs of users who have not granted what is required report no BLE events. The
//! consent of the owner decides; whoever a hub is only delegated to is not asked.

pub mod http;
pub mod retention;
mod store;

use std::collections::BTreeSet;

use hub_base::db::{Conn, Tx};
use hub_base::error::{Error, Result};
use hub_base::sealing;
use hub_core::audit::Audit;
use hub_identity::authn::{self, keys};
use hub_identity::authz::{Scope, UserScope};
use hub_people::tenants;
use hub_protocol::{HubUuid, TenantUuid, Timestamp, UserUuid, text_enum};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::hubs::{self, Concerned, Hubs};
use store::{RecordRow, SettingRow};
pub use store::{WithdrawnConsent, withdrawn_since};
pub use store::{forget_person, suppliers_of};

/// Versions of one tenant, and records of one person.
const MAX_VERSIONS: i64 = 1000;
const MAX_RECORDS: i64 = 1000;
const MAX_RETENTION_DAYS: i64 = 3650;
/// The audience of receipts, so that none of them is taken for a token.
const RECEIPT_AUDIENCE: &str = "hub-cloud/consent-receipts";

/// The state of a consent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum ConsentStatus {
    /// The consent is in force.
    Granted,
    /// The person has withdrawn it.
    Withdrawn,
    /// The supplier asks for another version, or the person has granted something else since. It is
    /// not in force.
    Outdated,
}

text_enum!(ConsentStatus { Granted = "GRANTED", Withdrawn = "WITHDRAWN", Outdated = "OUTDATED" });

/// A purpose of the use of data.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Purpose {
    /// The key by which grants name it.
    #[schemars(length(min = 1, max = 64), regex(pattern = "^[A-Za-z0-9._-]{1,64}$"))]
    pub key: String,
    /// The title for users.
    #[schemars(length(min = 1, max = 200), regex(pattern = hub_protocol::patterns::FILLED_LINE))]
    pub title: String,
    /// Whether consent requires it.
    pub required: bool,
    /// The retention of BLE events in days when a person grants it and sets nothing else; of
    /// several purposes the shortest counts.
    #[schemars(range(min = 1, max = MAX_RETENTION_DAYS))]
    pub default_retention_days: Option<i64>,
}

/// A version to put in force.
struct NewSetting {
    version: String,
    text: String,
    url: Option<String>,
    purposes: Vec<Purpose>,
    self_pairing: bool,
    enforce: bool,
}

impl SettingRow {
    fn purposes(&self) -> Result<Vec<Purpose>> {
        serde_json::from_str(&self.purposes).map_err(Error::internal)
    }

    /// The representation in the audit log.
    fn state(&self) -> Value {
        json!({
            "version": self.version,
            "textSha256": hex::encode(sealing::hash(&self.text)),
            "purposesSha256": hex::encode(sealing::hash(&self.purposes)),
            "selfPairing": self.self_pairing,
            "enforce": self.enforce,
        })
    }
}

impl RecordRow {
    fn purposes(&self) -> Result<Vec<String>> {
        serde_json::from_str(&self.purposes).map_err(Error::internal)
    }

    fn status(&self) -> ConsentStatus {
        match self.status {
            ConsentStatus::Granted if self.current_version.as_ref() != Some(&self.version) => {
                ConsentStatus::Outdated
            }
            status => status,
        }
    }
}

/// Locks the tenant, so that what hubs have to withhold is decided by one at a time.
async fn lock_tenant(tx: &mut Tx, tenant_uuid: TenantUuid) -> Result<()> {
    match tenants::lock_exclusively(tx, tenant_uuid).await? {
        true => Ok(()),
        false => Err(Error::not_found("supplier")),
    }
}

/// Puts a version in force. The text of a version is fixed once it was granted: another text is
/// another version.
async fn put_setting(hubs: &Hubs, scope: &Scope, new: NewSetting) -> Result<SettingRow> {
    let (now, tenant_uuid) = (hubs.core.clock.now(), scope.tenant_uuid());
    let purposes = serde_json::to_string(&new.purposes).map_err(Error::internal)?;
    let mut tx = hubs.core.db.begin().await?;
    lock_tenant(&mut tx, tenant_uuid).await?;
    let before = store::setting(&mut tx, tenant_uuid, Some(&new.version)).await?;
    let current = store::setting(&mut tx, tenant_uuid, None).await?;
    let after = SettingRow {
        version: new.version,
        text: new.text,
        url: new.url,
        purposes,
        self_pairing: new.self_pairing,
        enforce: new.enforce,
        created_at: before.as_ref().map_or(now, |before| before.created_at),
        updated_at: now,
    };
    match &before {
        Some(before) => {
            let is_same = (&before.text, &before.url, &before.purposes)
                == (&after.text, &after.url, &after.purposes);
            if !is_same && store::is_granted(&mut tx, tenant_uuid, &after.version).await? {
                let message =
                    "people have granted this version already; give the new text another version";
                return Err(Error::conflict("CONSENT_VERSION_GRANTED", message));
            }
        }
        None if store::count_settings(&mut tx, tenant_uuid).await? >= MAX_VERSIONS => {
            let message = format!("a tenant may have at most {MAX_VERSIONS} versions");
            return Err(Error::conflict("TOO_MANY_CONSENT_VERSIONS", message));
        }
        None => {}
    }
    store::put_setting(&mut tx, tenant_uuid, &after).await?;
    let changed =
        hubs::settle_consent(&mut tx, &hubs.changes, tenant_uuid, Concerned::AllHubs).await?;
    let audit = Audit::new(scope, "consent_setting.put", &after.version, now)
        .with(json!({"hubsChanged": changed}));
    tx.commit(audit.changed(current.map(|current| current.state()), Some(after.state())))
        .await?;
    Ok(after)
}

/// The version in force, or another one.
async fn setting(
    conn: &mut Conn,
    tenant_uuid: TenantUuid,
    version: Option<&str>,
) -> Result<SettingRow> {
    let setting = store::setting(conn, tenant_uuid, version).await?;
    setting.ok_or_else(|| Error::not_found("consent setting"))
}

/// A grant of consent.
struct Grant {
    supplier_uuid: TenantUuid,
    version: String,
    purposes: Vec<String>,
    hub_uuid: Option<HubUuid>,
}

/// The purposes in the order of the setting, each once. All that are required have to be there.
fn granted_purposes(offered: &[Purpose], granted: &[String]) -> Result<Vec<String>> {
    for (index, key) in granted.iter().enumerate() {
        if !offered.iter().any(|purpose| purpose.key == *key) {
            return Err(Error::field(
                format!("purposes[{index}]"),
                "is no purpose of this version",
            ));
        }
    }
    let keys: BTreeSet<&str> = granted.iter().map(String::as_str).collect();
    if let Some(missing) = offered
        .iter()
        .find(|purpose| purpose.required && !keys.contains(purpose.key.as_str()))
    {
        return Err(Error::field(
            "purposes",
            format!("must contain `{}`, which is required", missing.key),
        ));
    }
    Ok(offered
        .iter()
        .filter(|purpose| keys.contains(purpose.key.as_str()))
        .map(|purpose| purpose.key.clone())
        .collect())
}

/// The claims of a receipt. It is a JWT (RFC 7519) whose audience no token has.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Receipt<'a> {
    iss: &'a str,
    aud: &'a str,
    sub: String,
    iat: i64,
    consent_id: i64,
    supplier_uuid: TenantUuid,
    user_uuid: UserUuid,
    hub_uuid: Option<HubUuid>,
    version: &'a str,
    text_sha256: String,
    purposes: &'a [String],
    status: ConsentStatus,
    granted_at: Timestamp,
}

/// Grants what the person chose, in place of what they granted for the same hubs before. Repeating
/// a grant that is in force changes nothing.
async fn grant(hubs: &Hubs, scope: &UserScope, grant: Grant) -> Result<RecordRow> {
    let (now, tenant_uuid, user_uuid) = (
        hubs.core.clock.now(),
        grant.supplier_uuid,
        scope.user_uuid(),
    );
    let mut tx = hubs.core.db.begin().await?;
    lock_tenant(&mut tx, tenant_uuid).await?;
    let setting = setting(&mut tx, tenant_uuid, None).await?;
    if setting.version != grant.version {
        let message = format!(
            "the version in force is {:?}; show its text and ask again",
            setting.version
        );
        return Err(Error::conflict("CONSENT_OUTDATED", message));
    }
    let offered = setting.purposes()?;
    let purposes = granted_purposes(&offered, &grant.purposes)?;
    if let Some(hub_uuid) = grant.hub_uuid {
        let owned = hubs::owned(&mut tx, tenant_uuid, user_uuid).await?;
        if !owned.contains(&hub_uuid) {
            return Err(Error::not_found("hub"));
        }
    }
    let earlier = store::in_force(&mut tx, tenant_uuid, user_uuid, grant.hub_uuid).await?;
    let purposes_text = serde_json::to_string(&purposes).map_err(Error::internal)?;
    if let Some(earlier) = &earlier
        && (&earlier.version, &earlier.purposes) == (&grant.version, &purposes_text)
    {
        return Ok(earlier.clone());
    }
    if store::count_of(&mut tx, user_uuid).await? >= MAX_RECORDS {
        let message =
            format!("a person may have at most {MAX_RECORDS} consents, withdrawn ones included");
        return Err(Error::conflict("TOO_MANY_CONSENTS", message));
    }
    let default_days = offered
        .iter()
        .filter(|purpose| purposes.contains(&purpose.key));
    let default_days = default_days
        .filter_map(|purpose| purpose.default_retention_days)
        .min();
    let retention_days = earlier
        .as_ref()
        .and_then(|earlier| earlier.retention_days)
        .or(default_days);
    if let Some(earlier) = &earlier {
        store::outdate(&mut tx, earlier.consent_id).await?;
    }
    let mut record = RecordRow {
        consent_id: 0,
        tenant_uuid,
        user_uuid,
        hub_uuid: grant.hub_uuid,
        version: grant.version,
        purposes: purposes_text,
        status: ConsentStatus::Granted,
        granted_at: now,
        withdrawn_at: None,
        receipt: String::new(),
        retention_days,
        retention_from: retention_days.map(|_| now),
        deleted_events: 0,
        current_version: Some(setting.version.clone()),
    };
    record.consent_id = store::insert(&mut tx, &record).await?;
    let receipt = Receipt {
        iss: authn::ISSUER,
        aud: RECEIPT_AUDIENCE,
        sub: user_uuid.to_string(),
        iat: now.as_secs(),
        consent_id: record.consent_id,
        supplier_uuid: tenant_uuid,
        user_uuid,
        hub_uuid: record.hub_uuid,
        version: &record.version,
        text_sha256: hex::encode(sealing::hash(&setting.text)),
        purposes: &purposes,
        status: ConsentStatus::Granted,
        granted_at: now,
    };
    let receipt = hubs.authn.keys.sign(&receipt, now)?;
    keys::keep_for_receipts(&mut tx, &receipt).await?;
    store::set_receipt(&mut tx, record.consent_id, &receipt).await?;
    record.receipt = receipt;
    let changed = hubs::settle_consent(
        &mut tx,
        &hubs.changes,
        tenant_uuid,
        Concerned::HubsOf(user_uuid),
    )
    .await?;
    let detail = json!({
        "version": record.version,
        "purposes": purposes,
        "hubUuid": record.hub_uuid,
        "hubsChanged": changed,
    });
    let audit = Audit::new(scope, "consent.grant", record.consent_id, now).in_tenant(tenant_uuid);
    tx.commit(audit.with(detail)).await?;
    Ok(record)
}

/// The person's record.
async fn own(conn: &mut Conn, scope: &UserScope, consent_id: i64) -> Result<RecordRow> {
    store::own(conn, scope.user_uuid(), consent_id)
        .await?
        .ok_or_else(|| Error::not_found("consent"))
}

/// Withdraws a consent. The hubs concerned stop reporting at once. Repeating it changes nothing.
async fn withdraw(hubs: &Hubs, scope: &UserScope, consent_id: i64) -> Result<()> {
    let now = hubs.core.clock.now();
    let tenant_uuid = own(&mut hubs.core.db.read().await?, scope, consent_id)
        .await?
        .tenant_uuid;
    let mut tx = hubs.core.db.begin().await?;
    lock_tenant(&mut tx, tenant_uuid).await?;
    let before = own(&mut tx, scope, consent_id).await?;
    if before.status == ConsentStatus::Withdrawn {
        return Ok(());
    }
    store::withdraw(&mut tx, consent_id, now).await?;
    let concerned = Concerned::HubsOf(scope.user_uuid());
    let changed = hubs::settle_consent(&mut tx, &hubs.changes, tenant_uuid, concerned).await?;
    let audit = Audit::new(scope, "consent.withdraw", consent_id, now).in_tenant(tenant_uuid);
    let detail =
        json!({"version": before.version, "hubUuid": before.hub_uuid, "hubsChanged": changed});
    // What else depends on the consent, such as a mandate, ends with this answer.
    hubs.authn.permissions.wait_out_lease_after(&mut tx);
    tx.commit(audit.with(detail)).await
}

/// Sets the retention of the BLE events of the hubs concerned. The next upkeep deletes older
/// events.
async fn set_retention(
    hubs: &Hubs,
    scope: &UserScope,
    consent_id: i64,
    days: i64,
) -> Result<RecordRow> {
    let now = hubs.core.clock.now();
    let tenant_uuid = own(&mut hubs.core.db.read().await?, scope, consent_id)
        .await?
        .tenant_uuid;
    let mut tx = hubs.core.db.begin().await?;
    lock_tenant(&mut tx, tenant_uuid).await?;
    let before = own(&mut tx, scope, consent_id).await?;
    if before.status == ConsentStatus::Outdated {
        let message = "a later consent has replaced this one; set its retention instead";
        return Err(Error::conflict("CONSENT_OUTDATED", message));
    }
    if before.status == ConsentStatus::Withdrawn {
        let message = "this consent was withdrawn, and its retention ended with it";
        return Err(Error::conflict("CONSENT_WITHDRAWN", message));
    }
    if before.retention_days == Some(days) {
        return Ok(before);
    }
    store::set_retention(&mut tx, consent_id, days, now).await?;
    let state = |days: Option<i64>| Some(json!({"retentionDays": days}));
    let audit = Audit::new(scope, "consent.set_retention", consent_id, now).in_tenant(tenant_uuid);
    tx.commit(audit.changed(state(before.retention_days), state(Some(days))))
        .await?;
    Ok(RecordRow {
        retention_days: Some(days),
        retention_from: Some(now),
        ..before
    })
}

/// Whether a version is in force.
pub async fn is_set_up(conn: &mut Conn, tenant_uuid: TenantUuid) -> Result<bool> {
    let setting = store::setting(conn, tenant_uuid, None).await?;
    Ok(setting.is_some())
}

/// Whether the supplier allows pairing: claim codes that people make for themselves.
pub async fn allows_pairing(conn: &mut Conn, tenant_uuid: TenantUuid) -> Result<bool> {
    Ok(store::setting(conn, tenant_uuid, None)
        .await?
        .is_some_and(|setting| setting.self_pairing))
}
