//! The Bluetooth adapters of hubs: what a hub reports about them, and what operators decide. A
//! report never changes the decisions.

use std::collections::HashSet;

use hub_base::error::{Error, Result};
use hub_core::audit::Audit;
use hub_core::http::check::Check;
use hub_identity::authn::hub::Hub;
use hub_identity::authz::Scope;
use hub_ingest::{store_answer, stored_answer};
use hub_protocol::hub::{Adapter, AdapterRole, AdapterSnapshot, AdapterSnapshotResult};
use hub_protocol::{HubUuid, TenantUuid, Timestamp};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

use super::{Hubs, refusals, store::adapters as store};

const MAX_ADAPTERS: usize = 64;
/// The kind under which `upload_keys` stores snapshots.
const SNAPSHOT: &str = "ADAPTERS";
/// Adapters stored for a hub, so that a hub that invents addresses cannot fill the database.
const MAX_REMEMBERED: i64 = 256;
/// A snapshot that equals the stored one is stored again after this time only.
const UNCHANGED_SECS: i64 = 60;

/// A Bluetooth adapter of a hub.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AdapterView {
    /// The address of the adapter, which identifies it.
    #[schemars(regex(pattern = hub_protocol::patterns::ADDRESS))]
    pub address: String,
    /// The kernel's name, such as `hci0`.
    pub name: String,
    /// The name that it advertises.
    pub alias: Option<String>,
    /// Whether it is switched on.
    pub powered: bool,
    /// Whether it is scanning.
    pub discovering: Option<bool>,
    /// `public` or `random`.
    pub address_type: Option<String>,
    /// Company identifier of the maker of the controller, or its name.
    pub manufacturer: Option<String>,
    /// The hardware as the kernel names it.
    pub modalias: Option<String>,
    /// The role that an operator set; an adapter without a role scans.
    pub role: Option<AdapterRole>,
    /// The tenant, if an operator set it.
    #[serde(rename = "supplier_uuid")]
    pub supplier_uuid: Option<TenantUuid>,
    /// When the hub first reported it.
    pub first_seen_at: Timestamp,
    /// When the hub last reported it.
    pub last_seen_at: Timestamp,
}

/// An operator's changes to an adapter; absent fields keep their value.
#[derive(Clone, Copy, Debug)]
pub struct AdapterUpdate {
    pub role: Option<AdapterRole>,
    pub supplier_uuid: Option<TenantUuid>,
}

/// The address in upper case (`AA:BB:CC:DD:EE:FF`), if the text is one.
pub fn normalized_address(text: &str) -> Option<String> {
    let groups = text
        .split(':')
        .filter(|group| group.len() == 2 && group.bytes().all(|byte| byte.is_ascii_hexdigit()));
    (text.len() == 17 && groups.count() == 6).then(|| text.to_ascii_uppercase())
}

/// Stores a snapshot of the hub's adapters. A snapshot is stored once for an idempotency key;
/// repeating it returns the same result. A snapshot without a key that changes nothing is not
/// stored. Adapters that are missing from the snapshot are marked as powered off. They and their
/// roles are kept, since they may return.
///
/// An entry that is not valid costs none of the others: they are stored, and the error names it.
pub async fn store_snapshot(
    hubs: &Hubs,
    hub: &Hub,
    key: Option<&str>,
    snapshot: AdapterSnapshot,
) -> Result<AdapterSnapshotResult> {
    let (adapters, refused) = checked(snapshot)?;
    let now = hubs.core.clock.now();
    if let Err(error) = refused {
        if !adapters.is_empty() {
            let mut tx = hubs.core.db.begin().await?;
            super::store::touch(&mut tx, hub.tenant_uuid, hub.hub_uuid, now).await?;
            store::upsert(&mut tx, hub, &adapters, now).await?;
            store::forget_oldest(&mut tx, hub.hub_uuid, MAX_REMEMBERED).await?;
            tx.commit_unaudited("a hub's report about itself").await?;
        }
        refusals::note_report(&hubs.core, hub, "adapters", &error, now).await?;
        return Err(error);
    }
    if let Some(result) = known_result(hubs, hub, key, &adapters, now).await? {
        return Ok(result);
    }
    let mut tx = hubs.core.db.begin().await?;
    // This locks the hub's row, so that two snapshots of one hub are serialized.
    super::store::touch(&mut tx, hub.tenant_uuid, hub.hub_uuid, now).await?;
    if let Some(key) = key
        && let Some(answer) = stored_answer(&mut tx, hub, SNAPSHOT, key).await?
    {
        return serde_json::from_str(&answer).map_err(Error::internal);
    }
    let powered_off = store::power_off_others(&mut tx, hub.hub_uuid, &adapters).await?;
    store::upsert(&mut tx, hub, &adapters, now).await?;
    store::forget_oldest(&mut tx, hub.hub_uuid, MAX_REMEMBERED).await?;
    let result = AdapterSnapshotResult {
        upserted: adapters.len().try_into().unwrap_or(i64::MAX),
        powered_off,
    };
    if let Some(key) = key {
        let answer = serde_json::to_string(&result).map_err(Error::internal)?;
        store_answer(&mut tx, hub, SNAPSHOT, key, &answer, now).await?;
    }
    tx.commit_unaudited("a hub's report about itself").await?;
    Ok(result)
}

/// The result of a snapshot that needs no transaction: it was stored before.
async fn known_result(
    hubs: &Hubs,
    hub: &Hub,
    key: Option<&str>,
    adapters: &[Adapter],
    now: Timestamp,
) -> Result<Option<AdapterSnapshotResult>> {
    let mut conn = hubs.core.db.read().await?;
    if let Some(key) = key {
        let answer = stored_answer(&mut conn, hub, SNAPSHOT, key).await?;
        return answer
            .map(|answer| serde_json::from_str(&answer).map_err(Error::internal))
            .transpose();
    }
    let stored = store::list(&mut conn, &Scope::of_hub(hub), hub.hub_uuid).await?;
    let recently = now.plus_secs(-UNCHANGED_SECS);
    let is_stored = |adapter: &Adapter| {
        let stored = stored
            .iter()
            .find(|stored| stored.address == adapter.address);
        stored
            .is_some_and(|stored| stored.last_seen_at > recently && stored.is_as_reported(adapter))
    };
    let is_present = |stored: &&AdapterView| {
        adapters
            .iter()
            .any(|adapter| adapter.address == stored.address)
    };
    let (present, others): (Vec<_>, Vec<_>) = stored.iter().partition(is_present);
    let is_unchanged = adapters.iter().all(is_stored) && others.iter().all(|other| other.is_off());
    Ok(is_unchanged.then(|| result(present.len(), others.len())))
}

fn result(upserted: usize, powered_off: usize) -> AdapterSnapshotResult {
    let count = |number: usize| number.try_into().unwrap_or(i64::MAX);
    AdapterSnapshotResult {
        upserted: count(upserted),
        powered_off: count(powered_off),
    }
}

impl AdapterView {
    fn is_as_reported(&self, adapter: &Adapter) -> bool {
        self.name == adapter.name
            && self.alias == adapter.alias
            && self.powered == adapter.powered
            && self.discovering == adapter.discovering
            && self.address_type == adapter.address_type
            && self.manufacturer == adapter.manufacturer
            && self.modalias == adapter.modalias
    }

    fn is_off(&self) -> bool {
        !self.powered && self.discovering == Some(false)
    }
}

/// The entries that are valid, and what is wrong with the others.
fn checked(snapshot: AdapterSnapshot) -> Result<(Vec<Adapter>, Result<()>)> {
    let mut check = Check::new();
    check.that(
        snapshot.adapters.len() <= MAX_ADAPTERS,
        "adapters",
        format!("may have at most {MAX_ADAPTERS} entries"),
    );
    check.done()?;
    let mut check = Check::new();
    let mut seen = HashSet::new();
    let mut adapters = Vec::new();
    for (index, mut adapter) in snapshot.adapters.into_iter().enumerate() {
        let errors = check.count();
        let field = |name: &str| format!("adapters[{index}].{name}");
        match normalized_address(&adapter.address) {
            Some(address) => {
                check.that(
                    seen.insert(address.clone()),
                    field("address"),
                    "repeats the address of another entry",
                );
                adapter.address = address;
            }
            None => check.that(
                false,
                field("address"),
                "must be an address such as 00:1A:7D:DA:71:13",
            ),
        }
        check.required(&field("name"), &adapter.name, 64);
        check.line(&field("alias"), adapter.alias.as_deref(), 248);
        check.line(&field("addressType"), adapter.address_type.as_deref(), 32);
        check.line(&field("manufacturer"), adapter.manufacturer.as_deref(), 100);
        check.line(&field("modalias"), adapter.modalias.as_deref(), 100);
        if check.count() == errors {
            adapters.push(adapter);
        }
    }
    Ok((adapters, check.done()))
}

/// Changes what operators decide about an adapter. The role is part of the hub's desired state; the
/// supplier is not.
pub async fn update(
    hubs: &Hubs,
    scope: &Scope,
    hub_uuid: HubUuid,
    address: &str,
    update: AdapterUpdate,
) -> Result<AdapterView> {
    if update
        .supplier_uuid
        .is_some_and(|supplier_uuid| supplier_uuid != scope.tenant_uuid())
    {
        return Err(Error::forbidden(
            "TENANT_NOT_ACCESSIBLE",
            "`supplier_uuid` must be the tenant named in `X-Tenant-UUID`",
        ));
    }
    let address = normalized_address(address).ok_or_else(|| Error::not_found("adapter"))?;
    let now = hubs.core.clock.now();
    let mut tx = hubs.core.db.begin().await?;
    if update.role.is_some() {
        // This also locks the hub's row before the adapter's, the same order as in a snapshot.
        hubs.changes.bump(&mut tx, hub_uuid).await?;
    }
    let before = store::lock(&mut tx, scope, hub_uuid, &address).await?;
    let before = before.ok_or_else(|| Error::not_found("adapter"))?;
    if update.role.is_none() && update.supplier_uuid.is_none() {
        return Ok(before);
    }
    let view = store::update(&mut tx, scope, hub_uuid, &address, update).await?;
    let audit = Audit::new(
        scope,
        "hub_adapter.update",
        format!("{hub_uuid}/{address}"),
        now,
    );
    tx.commit(audit.changed(Some(decisions(&before)), Some(decisions(&view))))
        .await?;
    Ok(view)
}

/// The operator's decisions, as represented in the audit log.
fn decisions(adapter: &AdapterView) -> Value {
    json!({"role": adapter.role, "supplier_uuid": adapter.supplier_uuid})
}

#[cfg(test)]
mod tests {
    use super::normalized_address;

    #[test]
    fn addresses_are_six_pairs_of_hex_digits() {
        assert_eq!(
            normalized_address("00:1a:7d:Da:71:13").as_deref(),
            Some("00:1A:7D:DA:71:13")
        );
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
