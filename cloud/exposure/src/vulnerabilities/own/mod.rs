//! Advisories of a tenant about its own apps and device models. Each is one of the tenant's
//! vulnerabilities, which no feed brings and no list of packages has: whom it affects follows from
//! the releases that hubs report to run, and from the firmware of devices.

mod affected;
mod history;
pub mod http;
mod running;

use hub_advisories::osv::Verdict;
use hub_base::db::{Conn, Slice};
use hub_base::error::{Error, Result};
use hub_core::Core;
use hub_core::audit::Audit;
use hub_devices::device_catalog;
use hub_fleet::releases;
use hub_identity::authz::Scope;
use hub_people::audit_logs::{self, Change};
use hub_people::tenants;
use hub_protocol::{AppUuid, Timestamp};
use serde_json::{Value, json};
use uuid::Uuid;

pub use affected::Affected;
pub use running::{Devices, Exposed, Running, affected_releases, devices};

use super::store::own as store;
use crate::severity::VulnerabilitySeverity;

/// Advisories of one tenant.
const MAX_ADVISORIES: i64 = 1000;
/// The actions of the audit log.
const CREATED: &str = "advisory.create";
const REPLACED: &str = "advisory.replace";
const DELETED: &str = "advisory.delete";
/// Those that change an advisory. One that was deleted may be created again.
pub const CHANGES: [&str; 3] = [CREATED, REPLACED, DELETED];
/// What begins the ids of advisories that others publish.
const OTHERS: [&str; 13] = [
    "CVE-", "GHSA-", "DEBIAN-", "DSA-", "DLA-", "DTSA-", "RUSTSEC-", "PYSEC-", "GO-", "MAL-",
    "OSV-", "EUVD-", "USN-",
];

/// An advisory of a tenant.
#[derive(Clone, Debug)]
pub struct Advisory {
    pub advisory_id: String,
    pub title: String,
    pub description: Option<String>,
    pub severity: VulnerabilitySeverity,
    pub cvss_vector: Option<String>,
    pub aliases: Vec<String>,
    pub references: Vec<String>,
    pub affected: Vec<Affected>,
    /// Such as `API_KEY:7`.
    pub author: String,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

impl Advisory {
    /// The representation in the audit log.
    fn state(&self) -> Value {
        json!({
            "title": self.title,
            "description": self.description,
            "severity": self.severity,
            "cvssVector": self.cvss_vector,
            "aliases": self.aliases,
            "references": self.references,
            "affected": self.affected,
        })
    }

    /// Whether it affects this version of the app.
    pub fn affects(&self, app_uuid: AppUuid, version: &str) -> Result<bool> {
        for affected in &self.affected {
            if affected.app_uuid == Some(app_uuid)
                && matches!(affected.judge(version)?, Verdict::Affected { .. })
            {
                return Ok(true);
            }
        }
        Ok(false)
    }

    pub fn apps(&self) -> impl Iterator<Item = AppUuid> {
        self.affected
            .iter()
            .filter_map(|affected| affected.app_uuid)
    }
}

/// An advisory as it is given.
#[derive(Debug)]
pub struct Given {
    pub title: String,
    pub description: Option<String>,
    pub severity: VulnerabilitySeverity,
    pub cvss_vector: Option<String>,
    pub aliases: Vec<String>,
    pub references: Vec<String>,
    pub affected: Vec<Affected>,
}

impl Given {
    fn advisory(self, advisory_id: String, scope: &Scope, now: Timestamp) -> Advisory {
        Advisory {
            advisory_id,
            title: self.title,
            description: self.description,
            severity: self.severity,
            cvss_vector: self.cvss_vector,
            aliases: self.aliases,
            references: self.references,
            affected: self.affected,
            author: scope.actor().key(),
            created_at: now,
            updated_at: now,
        }
    }
}

/// Whether an id may be that of a tenant's advisory: none that others publish has it.
fn is_own(advisory_id: &str) -> bool {
    let is_char = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    let upper = advisory_id.to_ascii_uppercase();
    advisory_id.bytes().all(is_char)
        && advisory_id.starts_with(|first: char| first.is_ascii_alphanumeric())
        && !["openvex", "feeds"].contains(&advisory_id)
        && !OTHERS.iter().any(|prefix| upper.starts_with(prefix))
}

/// One page of the tenant's advisories, newest first, and how many there are.
pub async fn list(conn: &mut Conn, scope: &Scope, slice: Slice) -> Result<(Vec<Advisory>, i64)> {
    store::list(conn, scope, slice).await
}

/// All of the tenant's advisories.
pub async fn all(conn: &mut Conn, scope: &Scope) -> Result<Vec<Advisory>> {
    let slice = Slice {
        size: MAX_ADVISORIES,
        offset: 0,
    };
    let (all, _) = store::list(conn, scope, slice).await?;
    Ok(all)
}

pub async fn get(conn: &mut Conn, scope: &Scope, advisory_id: &str) -> Result<Advisory> {
    let found = store::get(conn, scope, advisory_id).await?;
    found.ok_or_else(not_found)
}

/// One page of the changes of an advisory, the last first, and how many there are.
pub async fn history(
    conn: &mut Conn,
    scope: &Scope,
    advisory_id: &str,
    slice: Slice,
) -> Result<(Vec<Change>, i64)> {
    get(conn, scope, advisory_id).await?;
    audit_logs::history_of(conn, scope, &CHANGES, advisory_id, slice).await
}

fn not_found() -> Error {
    Error::not_found("advisory")
}

/// Fails unless what is affected is the tenant's.
async fn require_own(conn: &mut Conn, scope: &Scope, affected: &[Affected]) -> Result<()> {
    let apps: Vec<AppUuid> = affected.iter().filter_map(|one| one.app_uuid).collect();
    let models: Vec<Uuid> = affected.iter().filter_map(|one| one.device_uuid).collect();
    let apps = releases::own_apps(conn, scope, &apps).await?;
    let models = device_catalog::own(conn, scope, &models).await?;
    for (at, one) in affected.iter().enumerate() {
        if one.app_uuid.is_some_and(|app| !apps.contains(&app)) {
            let field = format!("affected[{at}].appUuid");
            return Err(Error::field(field, "is no app of yours"));
        }
        if one
            .device_uuid
            .is_some_and(|model| !models.contains(&model))
        {
            let field = format!("affected[{at}].deviceUuid");
            return Err(Error::field(field, "is no device model of yours"));
        }
    }
    Ok(())
}

/// Creates an advisory. Without an id it gets one.
pub async fn create(
    core: &Core,
    scope: &Scope,
    advisory_id: Option<String>,
    given: Given,
) -> Result<Advisory> {
    if advisory_id.as_deref().is_some_and(|id| !is_own(id)) {
        let message = "must be letters, digits, dots, dashes and underscores, and must not begin \
                       as the ids of others do, such as CVE-";
        return Err(Error::field("id", message));
    }
    let now = core.clock.now();
    let advisory_id = advisory_id.unwrap_or_else(|| {
        let id = Uuid::new_v4().simple().to_string();
        format!("OWN-{}", id.get(..12).unwrap_or(&id))
    });
    let locked = tenants::lock(core, scope).await?;
    let (mut tx, _) = locked.ok_or_else(|| Error::not_found("tenant"))?;
    require_own(&mut tx, scope, &given.affected).await?;
    if store::count(&mut tx, scope).await? >= MAX_ADVISORIES {
        let message =
            format!("a tenant may have at most {MAX_ADVISORIES} advisories; delete one first");
        return Err(Error::conflict("TOO_MANY_ADVISORIES", message));
    }
    if super::store::has(&mut tx, scope, &advisory_id).await? {
        let message = "an advisory of this id is there already; choose another id";
        return Err(Error::conflict("ADVISORY_EXISTS", message));
    }
    let advisory = given.advisory(advisory_id, scope, now);
    store::put(&mut tx, scope, &advisory).await?;
    store::put_fact(&mut tx, scope, &advisory).await?;
    let audit = Audit::new(scope, CREATED, &advisory.advisory_id, now);
    tx.commit(audit.changed(None, Some(advisory.state())))
        .await?;
    Ok(advisory)
}

/// Replaces all but the id of an advisory.
pub async fn replace(
    core: &Core,
    scope: &Scope,
    advisory_id: &str,
    given: Given,
) -> Result<Advisory> {
    let now = core.clock.now();
    let locked = tenants::lock(core, scope).await?;
    let (mut tx, _) = locked.ok_or_else(|| Error::not_found("tenant"))?;
    let before = get(&mut tx, scope, advisory_id).await?;
    require_own(&mut tx, scope, &given.affected).await?;
    let after = Advisory {
        created_at: before.created_at,
        ..given.advisory(advisory_id.to_owned(), scope, now)
    };
    store::put(&mut tx, scope, &after).await?;
    store::put_fact(&mut tx, scope, &after).await?;
    let audit = Audit::new(scope, REPLACED, advisory_id, now);
    tx.commit(audit.changed(Some(before.state()), Some(after.state())))
        .await?;
    Ok(after)
}

/// Deletes an advisory with the statements about it.
pub async fn delete(core: &Core, scope: &Scope, advisory_id: &str) -> Result<()> {
    let now = core.clock.now();
    let locked = tenants::lock(core, scope).await?;
    let (mut tx, _) = locked.ok_or_else(|| Error::not_found("tenant"))?;
    let before = get(&mut tx, scope, advisory_id).await?;
    store::delete(&mut tx, scope, advisory_id).await?;
    let audit = Audit::new(scope, DELETED, advisory_id, now);
    tx.commit(audit.changed(Some(before.state()), None)).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_of_others_are_not_own() {
        for own in ["ACME-2026-1", "1", "OWN-a1b2", "x.y_z"] {
            assert!(is_own(own), "{own}");
        }
        for other in [
            "",
            "CVE-2024-1",
            "cve-2024-1",
            "ghsa-x",
            "a b",
            "a/b",
            "-a",
            "openvex",
            "feeds",
        ] {
            assert!(!is_own(other), "{other}");
        }
    }
}
