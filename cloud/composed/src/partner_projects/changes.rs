//! What takes part in a project: tenants and their devices. A list is carried out as a whole or not
//! at all. The project is locked meanwhile, and the tenants and devices that are looked at stay, so
//! that what was judged holds when it is committed.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use axum::http::StatusCode;
use hub_base::db::Tx;
use hub_base::error::{Error, Result};
use hub_core::Core;
use hub_core::audit::{self, Audit, Author};
use hub_devices::device_instances;
use hub_identity::authz::UserScope;
use hub_identity::authz::permission::{MANAGE, Role, WRITE};
use hub_people::tenants;
use hub_protocol::TenantUuid;
use serde_json::{Value, json};

use super::store::{self, ProjectRow};
use super::{BadItems, MAX_DEVICES, MAX_TENANTS, may_change, not_found, of_person};

const TENANTS: &str = "tenantUuids";
const DEVICES: &str = "deviceInstanceIds";

/// The project, locked, if the person may change it.
async fn begin(core: &Core, scope: &UserScope, project_id: &str) -> Result<(Tx, ProjectRow)> {
    // A person who cannot see the project does not wait for its lock.
    of_person(&mut core.db.read().await?, scope, project_id).await?;
    let mut tx = core.db.begin().await?;
    store::lock(&mut tx, project_id)
        .await?
        .ok_or_else(not_found)?;
    let (project, role) = of_person(&mut tx, scope, project_id).await?;
    match may_change(&role) {
        true => Ok((tx, project)),
        false => Err(Error::forbidden(
            "PERMISSION_DENIED",
            format!("your role {role} in the project does not allow this"),
        )),
    }
}

/// Commits with an entry for each tenant concerned.
async fn commit(
    core: &Core,
    mut tx: Tx,
    scope: &UserScope,
    action: &'static str,
    project: &ProjectRow,
    details: BTreeMap<TenantUuid, Value>,
) -> Result<()> {
    let entry = |(tenant_uuid, detail): (TenantUuid, Value)| {
        let author = Author {
            tenant_uuid: Some(tenant_uuid),
            ..Author::from(scope)
        };
        Audit::new(author, action, &project.project_id, core.clock.now()).with(detail)
    };
    let mut entries: Vec<Audit> = details.into_iter().map(entry).collect();
    let Some(last) = entries.pop() else {
        return Ok(());
    };
    for other in entries {
        audit::insert(&mut tx, other).await?;
    }
    tx.commit(last).await
}

/// Fails unless the person has a role in the tenant of every item, and one that allows this.
fn require_roles(
    field: &'static str,
    what: &'static str,
    items: &[(String, Option<TenantUuid>)],
    roles: &HashMap<TenantUuid, Role>,
    bit: u8,
) -> Result<()> {
    let (mut unknown, mut forbidden) = (BadItems::of(field), BadItems::of(field));
    for (at, (item, tenant)) in items.iter().enumerate() {
        match tenant.and_then(|tenant| roles.get(&tenant)) {
            None => unknown.add(at, format!("there is no such {what}: {item}")),
            Some(role) if !role.allows(bit) => {
                forbidden.add(
                    at,
                    format!(
                        "your role {} in the tenant does not allow this",
                        role.name()
                    ),
                );
            }
            Some(_) => {}
        }
    }
    unknown.or(|| Error::not_found(what))?;
    forbidden.or(|| {
        Error::forbidden(
            "PERMISSION_DENIED",
            "your role in a tenant does not allow this",
        )
    })
}

pub async fn join(
    core: &Core,
    scope: &UserScope,
    project_id: &str,
    given: &[TenantUuid],
) -> Result<()> {
    let (mut tx, project) = begin(core, scope, project_id).await?;
    let roles = tenants::held_roles(&mut tx, scope.user_uuid(), given).await?;
    let items: Vec<_> = given
        .iter()
        .map(|tenant| (tenant.to_string(), Some(*tenant)))
        .collect();
    require_roles(TENANTS, "tenant", &items, &roles, MANAGE)?;
    let present = present_tenants(&mut tx, project_id).await?;
    let new: BTreeSet<TenantUuid> = given
        .iter()
        .copied()
        .filter(|tenant| !present.contains_key(tenant))
        .collect();
    if new.is_empty() {
        return Ok(());
    }
    if i64::try_from(present.len() + new.len()).unwrap_or(i64::MAX) > MAX_TENANTS {
        let message = format!("at most {MAX_TENANTS} tenants take part in a project");
        return Err(Error::conflict("TOO_MANY_PROJECT_TENANTS", message));
    }
    let new: Vec<TenantUuid> = new.into_iter().collect();
    store::join(&mut tx, project_id, &new, core.clock.now()).await?;
    let details = new.into_iter().map(|tenant| (tenant, json!({}))).collect();
    commit(core, tx, scope, "partner_project.join", &project, details).await
}

/// The tenants in the project, each with how many devices.
async fn present_tenants(tx: &mut Tx, project_id: &str) -> Result<HashMap<TenantUuid, i64>> {
    let present = store::tenants(tx, &[project_id]).await?;
    Ok(present
        .into_iter()
        .map(|row| (row.tenant_uuid, row.device_count))
        .collect())
}

pub async fn leave(
    core: &Core,
    scope: &UserScope,
    project_id: &str,
    given: &[TenantUuid],
) -> Result<()> {
    let (mut tx, project) = begin(core, scope, project_id).await?;
    let present = present_tenants(&mut tx, project_id).await?;
    let mut absent = BadItems::of(TENANTS);
    for (at, tenant) in given
        .iter()
        .enumerate()
        .filter(|(_, tenant)| !present.contains_key(tenant))
    {
        absent.add(
            at,
            format!("there is no such tenant in the project: {tenant}"),
        );
    }
    absent.or(|| Error::not_found("tenant in the project"))?;
    let roles = tenants::held_roles(&mut tx, scope.user_uuid(), given).await?;
    require_own(TENANTS, given.iter().copied(), &roles, MANAGE)?;
    store::leave(&mut tx, project_id, given).await?;
    let detail = |tenant: &TenantUuid| (*tenant, json!({"devices": present.get(tenant)}));
    commit(
        core,
        tx,
        scope,
        "partner_project.leave",
        &project,
        given.iter().map(detail).collect(),
    )
    .await
}

/// As [`require_roles`], for the parts that everybody in the project sees.
fn require_own(
    field: &'static str,
    tenants: impl Iterator<Item = TenantUuid>,
    roles: &HashMap<TenantUuid, Role>,
    bit: u8,
) -> Result<()> {
    let mut forbidden = BadItems::of(field);
    for (at, tenant) in tenants.enumerate() {
        if !roles.get(&tenant).is_some_and(|role| role.allows(bit)) {
            forbidden.add(at, "your role in the tenant does not allow this".to_owned());
        }
    }
    let message =
        "only people of a tenant whose role there allows it take out what is the tenant's";
    forbidden.or(|| Error::forbidden("PERMISSION_DENIED", message))
}

pub async fn add_devices(
    core: &Core,
    scope: &UserScope,
    project_id: &str,
    given: &[i64],
) -> Result<()> {
    let (mut tx, project) = begin(core, scope, project_id).await?;
    let owners = device_instances::held_tenants(&mut tx, given).await?;
    let roles = roles_in(&mut tx, scope, owners.values()).await?;
    let items: Vec<_> = given
        .iter()
        .map(|id| (id.to_string(), owners.get(id).copied()))
        .collect();
    require_roles(DEVICES, "device", &items, &roles, WRITE)?;
    let joined = present_tenants(&mut tx, project_id).await?;
    let mut outside = BadItems::of(DEVICES);
    for (at, (_, tenant)) in items.iter().enumerate() {
        if !tenant.is_some_and(|tenant| joined.contains_key(&tenant)) {
            outside.add(
                at,
                "its tenant does not take part in the project; let the tenant join first"
                    .to_owned(),
            );
        }
    }
    outside.or(|| {
        let message =
            "the tenant of a device does not take part in the project; let the tenant join first";
        Error::new(StatusCode::CONFLICT, "TENANT_NOT_IN_PROJECT", message)
    })?;
    let present = store::present(&mut tx, project_id, given).await?;
    let new: Vec<(i64, TenantUuid)> = owners
        .into_iter()
        .filter(|(id, _)| !present.contains_key(id))
        .collect();
    if new.is_empty() {
        return Ok(());
    }
    let count = store::count_devices(&mut tx, project_id).await?;
    if count.saturating_add(i64::try_from(new.len()).unwrap_or(i64::MAX)) > MAX_DEVICES {
        let message =
            format!("at most {MAX_DEVICES} devices take part in a project; take some out first");
        return Err(Error::conflict("TOO_MANY_PROJECT_DEVICES", message));
    }
    store::add_devices(&mut tx, project_id, &new, core.clock.now()).await?;
    commit(
        core,
        tx,
        scope,
        "partner_project.add_devices",
        &project,
        by_tenant(new),
    )
    .await
}

pub async fn remove_devices(
    core: &Core,
    scope: &UserScope,
    project_id: &str,
    given: &[i64],
) -> Result<()> {
    let (mut tx, project) = begin(core, scope, project_id).await?;
    let present = store::present(&mut tx, project_id, given).await?;
    let mut absent = BadItems::of(DEVICES);
    for (at, id) in given
        .iter()
        .enumerate()
        .filter(|(_, id)| !present.contains_key(id))
    {
        absent.add(at, format!("there is no such device in the project: {id}"));
    }
    absent.or(|| Error::not_found("device in the project"))?;
    let roles = roles_in(&mut tx, scope, present.values()).await?;
    require_own(
        DEVICES,
        given.iter().filter_map(|id| present.get(id)).copied(),
        &roles,
        WRITE,
    )?;
    store::remove_devices(&mut tx, project_id, given).await?;
    let removed = present.into_iter().collect();
    commit(
        core,
        tx,
        scope,
        "partner_project.remove_devices",
        &project,
        by_tenant(removed),
    )
    .await
}

async fn roles_in<'a>(
    tx: &mut Tx,
    scope: &UserScope,
    owners: impl Iterator<Item = &'a TenantUuid>,
) -> Result<HashMap<TenantUuid, Role>> {
    let distinct: HashSet<TenantUuid> = owners.copied().collect();
    let distinct: Vec<TenantUuid> = distinct.into_iter().collect();
    tenants::held_roles(tx, scope.user_uuid(), &distinct).await
}

/// The audit details of each tenant.
fn by_tenant(mut devices: Vec<(i64, TenantUuid)>) -> BTreeMap<TenantUuid, Value> {
    devices.sort_unstable();
    let mut ids: BTreeMap<TenantUuid, Vec<i64>> = BTreeMap::new();
    for (id, tenant) in devices {
        ids.entry(tenant).or_default().push(id);
    }
    ids.into_iter()
        .map(|(tenant, ids)| (tenant, json!({"deviceInstanceIds": ids})))
        .collect()
}
