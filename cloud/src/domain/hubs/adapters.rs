//! The Bluetooth adapters of hubs: what each hub reports of its own, and what operators decide about them. A report never touches the decisions.

use std::collections::HashSet;

use hub_protocol::hub::{Adapter, AdapterRole, AdapterSnapshot, AdapterSnapshotResult};
use hub_protocol::{HubUuid, TenantUuid, Timestamp};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

use super::{adapter_store as store, desired};
use crate::app::App;
use crate::authn::hub::Hub;
use crate::authz::Scope;
use crate::domain::audit::Audit;
use crate::error::{Error, Result};
use crate::http::check::Check;
use crate::ingest::{known_answer, remember_answer};

const MAX_ADAPTERS: usize = 64;
/// The kind under which `upload_keys` remembers snapshots.
const SNAPSHOT: &str = "ADAPTERS";
/// Adapters remembered for a hub, so that one that invents addresses does not fill the database.
const MAX_REMEMBERED: i64 = 256;

/// A Bluetooth adapter of a hub.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AdapterView {
    pub address: String,
    pub name: String,
    pub alias: Option<String>,
    pub powered: bool,
    pub discovering: Option<bool>,
    pub address_type: Option<String>,
    pub manufacturer: Option<String>,
    pub modalias: Option<String>,
    /// Set by an operator; an adapter without one scans.
    pub role: Option<AdapterRole>,
    /// Set by an operator.
    #[serde(rename = "supplier_uuid")]
    pub supplier_uuid: Option<TenantUuid>,
    pub first_seen_at: Timestamp,
    /// When the hub last reported it.
    pub last_seen_at: Timestamp,
}

/// What an operator decides about an adapter; what is not given stays.
#[derive(Clone, Copy, Debug)]
pub struct AdapterUpdate {
    pub role: Option<AdapterRole>,
    pub supplier_uuid: Option<TenantUuid>,
}

/// `AA:BB:CC:DD:EE:FF` in upper case, if the text is such an address.
pub fn normalized_address(text: &str) -> Option<String> {
    let groups = text.split(':').filter(|group| group.len() == 2 && group.bytes().all(|byte| byte.is_ascii_hexdigit()));
    (text.len() == 17 && groups.count() == 6).then(|| text.to_ascii_uppercase())
}

/// Stores what the hub has now; once for a key, and answered alike from then on. Adapters it had before and does not name are marked as powered off; they stay, as do their roles, since adapters
/// come back.
pub async fn store_snapshot(
    app: &App,
    hub: &Hub,
    key: Option<&str>,
    snapshot: AdapterSnapshot,
) -> Result<AdapterSnapshotResult> {
    let adapters = checked(snapshot)?;
    let now = app.clock.now();
    let mut tx = app.db.begin().await?;
    // The hub's row is locked by this, so that two snapshots of one hub follow each other.
    super::store::touch(&mut tx, hub.hub_uuid, now).await?;
    if let Some(key) = key
        && let Some(answer) = known_answer(&mut tx, hub.hub_uuid, SNAPSHOT, key).await?
    {
        return serde_json::from_str(&answer).map_err(Error::internal);
    }
    let powered_off = store::power_off_others(&mut tx, hub.hub_uuid, &adapters).await?;
    store::upsert(&mut tx, hub, &adapters, now).await?;
    store::forget_oldest(&mut tx, hub.hub_uuid, MAX_REMEMBERED).await?;
    let result = AdapterSnapshotResult { upserted: adapters.len().try_into().unwrap_or(i64::MAX), powered_off };
    if let Some(key) = key {
        let answer = serde_json::to_string(&result).map_err(Error::internal)?;
        remember_answer(&mut tx, hub.hub_uuid, SNAPSHOT, key, &answer, now).await?;
    }
    tx.commit_unaudited("a hub's report about itself").await?;
    Ok(result)
}

fn checked(snapshot: AdapterSnapshot) -> Result<Vec<Adapter>> {
    let mut check = Check::new();
    check.that(snapshot.adapters.len() <= MAX_ADAPTERS, "adapters", format!("may have at most {MAX_ADAPTERS} entries"));
    check.done()?;
    let mut check = Check::new();
    let mut seen = HashSet::new();
    let mut adapters = snapshot.adapters;
    for (index, adapter) in adapters.iter_mut().enumerate() {
        let field = |name: &str| format!("adapters[{index}].{name}");
        match normalized_address(&adapter.address) {
            Some(address) => {
                check.that(seen.insert(address.clone()), field("address"), "is the address of another entry too");
                adapter.address = address;
            }
            None => check.that(false, field("address"), "must be an address such as 00:1A:7D:DA:71:13"),
        }
        check.required(&field("name"), &adapter.name, 64);
        check.line(&field("alias"), adapter.alias.as_deref(), 248);
        check.line(&field("addressType"), adapter.address_type.as_deref(), 32);
        check.line(&field("manufacturer"), adapter.manufacturer.as_deref(), 100);
        check.line(&field("modalias"), adapter.modalias.as_deref(), 100);
    }
    check.done()?;
    Ok(adapters)
}

/// Changes what an operator decides. A role is part of the hub's desired state; the supplier is not.
pub async fn update(
    app: &App,
    scope: &Scope,
    hub_uuid: HubUuid,
    address: &str,
    update: AdapterUpdate,
) -> Result<AdapterView> {
    if update.supplier_uuid.is_some_and(|supplier_uuid| supplier_uuid != scope.tenant_uuid()) {
        return Err(Error::forbidden(
            "TENANT_NOT_ACCESSIBLE",
            "`supplier_uuid` must be the tenant named in `X-Tenant-UUID`",
        ));
    }
    let address = normalized_address(address).ok_or_else(|| Error::not_found("adapter"))?;
    let now = app.clock.now();
    let mut tx = app.db.begin().await?;
    if update.role.is_some() {
        // Also locks the hub's row, before the adapter's, in the order that a snapshot takes them.
        desired::bump(&mut tx, hub_uuid).await?;
    }
    let before = store::lock(&mut tx, scope, hub_uuid, &address).await?;
    let before = before.ok_or_else(|| Error::not_found("adapter"))?;
    if update.role.is_none() && update.supplier_uuid.is_none() {
        return Ok(before);
    }
    let view = store::update(&mut tx, scope, hub_uuid, &address, update).await?;
    let audit = Audit::new(scope, "hub_adapter.update", format!("{hub_uuid}/{address}"), now);
    tx.commit(audit.changed(Some(decisions(&before)), Some(decisions(&view)))).await?;
    desired::changed(app, hub_uuid).await;
    Ok(view)
}

/// What operators decide, as the audit log shows it.
fn decisions(adapter: &AdapterView) -> Value {
    json!({"role": adapter.role, "supplier_uuid": adapter.supplier_uuid})
}

#[cfg(test)]
mod tests {
    use super::normalized_address;

    #[test]
    fn addresses_are_six_pairs_of_hex_digits() {
        assert_eq!(normalized_address("00:1a:7d:Da:71:13").as_deref(), Some("00:1A:7D:DA:71:13"));
        for text in [
            "",
            "00:1A:7D:DA:71",
            "00:1A:7D:DA:71:13:",
            "00-1A-7D-DA-71-13",
            "00:1A:7D:DA:71:1G",
            "0:01A:7D:DA:71:13",
            "é0:1A:7D:DA:71:1",
        ] {
            assert_eq!(normalized_address(text), None, "{text}");
        }
    }
}
