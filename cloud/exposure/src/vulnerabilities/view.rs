//! Vulnerabilities as they are shown: with the packages that they affect, and with how many hubs
//! stand how to them.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use hub_base::db::{Conn, Slice};
use hub_base::error::{Error, Result};
use hub_fleet::hubs;
use hub_fleet::releases::{self, NamedRelease};
use hub_identity::authz::Scope;
use hub_protocol::{HubUuid, ReleaseUuid, Timestamp};

use super::counts::{Counts, Fleet, InCountry, in_countries};
use super::own::Devices;
use super::own_view;
use super::standing::{Affected as HubAffected, Standing, Stated, standing};
use super::statements::Statement;
use super::store::fleet::HadRow;
use super::store::{self, Affected, Exposure, Filters, Listed, VulnerabilitySource};

/// Packages of one vulnerability that are shown.
pub const MAX_PACKAGES: usize = 100;
/// Releases of one vulnerability that are shown.
pub const MAX_RELEASES: usize = 100;

/// A package that a vulnerability affects.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct AffectedPackage {
    pub ecosystem: String,
    pub name: String,
    pub version: String,
    pub fixed_in: Option<String>,
}

impl From<&Exposure> for AffectedPackage {
    fn from(exposure: &Exposure) -> Self {
        Self {
            ecosystem: exposure.ecosystem.clone(),
            name: exposure.package.clone(),
            version: exposure.version.clone(),
            fixed_in: exposure.fixed_in.clone(),
        }
    }
}

/// A vulnerability with what it affects.
#[derive(Clone, Debug)]
pub struct Shown {
    pub listed: Listed,
    pub packages: Vec<AffectedPackage>,
    /// Releases that have one of the packages as a component, by app and version.
    pub releases: Vec<NamedRelease>,
    pub hubs: Counts,
    /// Of an advisory of the tenant that is about device models.
    pub devices: Option<Devices>,
}

/// One page of the tenant's vulnerabilities, and how many there are.
pub async fn list(
    conn: &mut Conn,
    scope: &Scope,
    filters: &Filters,
    slice: Slice,
) -> Result<(Vec<Shown>, i64)> {
    if let Some(hub_uuid) = filters.hub_uuid {
        hubs::require(conn, scope, hub_uuid).await?;
    }
    let (listed, total) = store::list(conn, scope, filters, slice).await?;
    Ok((shown(conn, scope, listed).await?, total))
}

/// One vulnerability of the tenant, or 404.
pub async fn one(conn: &mut Conn, scope: &Scope, vulnerability_id: &str) -> Result<Shown> {
    let listed = require(conn, scope, vulnerability_id).await?;
    let shown = shown(conn, scope, vec![listed]).await?;
    shown
        .into_iter()
        .next()
        .ok_or_else(|| Error::not_found("vulnerability"))
}

async fn shown(conn: &mut Conn, scope: &Scope, listed: Vec<Listed>) -> Result<Vec<Shown>> {
    if listed.is_empty() {
        return Ok(Vec::new());
    }
    let ids: Vec<String> = listed
        .iter()
        .map(|one| one.vulnerability_id.clone())
        .collect();
    let mut affected: HashMap<String, Vec<Affected>> = HashMap::new();
    for one in store::affected(conn, scope, &ids).await? {
        let of = affected.entry(one.exposure.vulnerability_id.clone());
        of.or_default().push(one);
    }
    let statements = store::statements::list(conn, scope, &ids).await?;
    let mut makers = of_makers(conn, scope, affected.values().flatten()).await?;
    let fleet = Fleet::read(conn, scope, &ids, &statements, false).await?;
    let named = releases::named(conn, scope, &fleet.releases()).await?;
    let mut owns = own_view::shown(conn, scope, &listed, &statements).await?;
    let mut by_id: HashMap<String, Vec<Statement>> = HashMap::new();
    for statement in statements {
        let of = by_id.entry(statement.vulnerability_id.clone());
        of.or_default().push(statement);
    }
    let shown = listed.into_iter().map(|listed| {
        let id = &listed.vulnerability_id;
        let affected = affected.remove(id).unwrap_or_default();
        let own = by_id.remove(id).unwrap_or_default();
        let makers = makers.remove(id).unwrap_or_default();
        let stated = Stated {
            own: &own,
            makers: &makers,
        };
        let lists = lists_of(&affected);
        let (packages, hubs, devices) = owns.remove(id).unwrap_or_else(|| {
            let packages = affected.iter().map(|one| (&one.exposure).into());
            (packages.collect(), fleet.counts(&lists, &stated), None)
        });
        let releases = fleet.releases_with(&lists);
        let mut releases: Vec<NamedRelease> = releases
            .filter_map(|release| named.get(release).cloned())
            .collect();
        let by = |one: &NamedRelease, two: &NamedRelease| {
            (&one.app_name, &one.version).cmp(&(&two.app_name, &two.version))
        };
        releases.sort_by(by);
        releases.truncate(MAX_RELEASES);
        Shown {
            listed,
            packages: packages.into_iter().take(MAX_PACKAGES).collect(),
            releases,
            hubs,
            devices,
        }
    });
    Ok(shown.collect())
}

fn lists_of(affected: &[Affected]) -> HashSet<&[u8]> {
    affected
        .iter()
        .map(|one| one.list_sha256.as_slice())
        .collect()
}

/// How the hubs of each country stand to a vulnerability.
pub async fn countries(
    conn: &mut Conn,
    scope: &Scope,
    vulnerability_id: &str,
) -> Result<Vec<InCountry>> {
    let listed = require(conn, scope, vulnerability_id).await?;
    if listed.source == VulnerabilitySource::Own {
        return own_view::countries(conn, scope, vulnerability_id).await;
    }
    let found = Found::read(conn, scope, vulnerability_id).await?;
    let ids = [vulnerability_id.to_owned()];
    let fleet = Fleet::read(conn, scope, &ids, &found.own, true).await?;
    let lists = lists_of(&found.affected);
    Ok(in_countries(fleet.by_country(&lists, &found.stated())))
}

/// A vulnerability of the tenant; 404 if it has none with this id.
async fn require(conn: &mut Conn, scope: &Scope, vulnerability_id: &str) -> Result<Listed> {
    let listed = store::get(conn, scope, vulnerability_id).await?;
    listed.ok_or_else(|| Error::not_found("vulnerability"))
}

/// What a published vulnerability affects, and what is stated of it.
struct Found {
    affected: Vec<Affected>,
    own: Vec<Statement>,
    makers: Vec<Statement>,
}

impl Found {
    async fn read(conn: &mut Conn, scope: &Scope, vulnerability_id: &str) -> Result<Self> {
        let ids = [vulnerability_id.to_owned()];
        let own = store::statements::list(conn, scope, &ids).await?;
        let affected = store::affected(conn, scope, &ids).await?;
        let mut makers = of_makers(conn, scope, affected.iter()).await?;
        Ok(Self {
            affected,
            own,
            makers: makers.remove(vulnerability_id).unwrap_or_default(),
        })
    }

    fn stated(&self) -> Stated<'_> {
        Stated {
            own: &self.own,
            makers: &self.makers,
        }
    }
}

/// What makers of releases state, by vulnerability. They may name it by its own id, or by that of
/// an advisory.
async fn of_makers<'a>(
    conn: &mut Conn,
    scope: &Scope,
    affected: impl Iterator<Item = &'a Affected>,
) -> Result<HashMap<String, Vec<Statement>>> {
    let mut named: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for one in affected {
        let id = one.exposure.vulnerability_id.as_str();
        for name in [id, one.exposure.advisory_id.as_str()] {
            named.entry(name).or_default().insert(id);
        }
    }
    let names: Vec<String> = named.keys().map(|name| (*name).to_owned()).collect();
    let mut found: HashMap<String, Vec<Statement>> = HashMap::new();
    if names.is_empty() {
        return Ok(found);
    }
    for statement in store::statements::of_makers(conn, scope, &names).await? {
        for id in named
            .get(statement.vulnerability_id.as_str())
            .into_iter()
            .flatten()
        {
            let of = found.entry((*id).to_owned()).or_default();
            of.push(statement.clone());
        }
    }
    Ok(found)
}

/// How a hub stands to a vulnerability, and why.
#[derive(Debug)]
pub struct HubShown {
    pub hub_uuid: HubUuid,
    pub hub_identifier: Option<String>,
    pub standing: Standing,
    pub statement: Option<Statement>,
    /// What it has, or had last, that is affected.
    pub packages: Vec<AffectedPackage>,
    /// Since when it stands so, as far as its reports tell.
    pub since: Timestamp,
}

/// What is affected of lists of packages, by their digests.
type Packages<'a> = HashMap<&'a [u8], BTreeSet<AffectedPackage>>;

/// One page of the hubs that have, or had, a package that the vulnerability affects, and how many
/// there are.
pub async fn hubs_of(
    conn: &mut Conn,
    scope: &Scope,
    vulnerability_id: &str,
    slice: Slice,
) -> Result<(Vec<HubShown>, i64)> {
    let listed = require(conn, scope, vulnerability_id).await?;
    if listed.source == VulnerabilitySource::Own {
        return own_view::hubs_of(conn, scope, vulnerability_id, slice).await;
    }
    let (rows, total) = store::fleet::hubs(conn, scope, vulnerability_id, slice).await?;
    if rows.is_empty() {
        return Ok((Vec::new(), total));
    }
    let uuids: Vec<HubUuid> = rows.iter().map(|row| row.hub_uuid).collect();
    let found = Found::read(conn, scope, vulnerability_id).await?;
    let stated = found.stated();
    let updating: HashMap<HubUuid, Option<Vec<u8>>> = store::fleet::updating(conn, scope)
        .await?
        .into_iter()
        .collect();
    let mut labels = hubs::labels(conn, scope, &uuids).await?;
    let mut packages: Packages<'_> = HashMap::new();
    for one in &found.affected {
        let of = packages.entry(&one.list_sha256).or_default();
        of.insert((&one.exposure).into());
    }
    let mut had: HashMap<HubUuid, Vec<HadRow>> = HashMap::new();
    for row in store::fleet::lists_of(conn, scope, &uuids).await? {
        had.entry(row.hub_uuid).or_default().push(row);
    }
    let shown = rows.into_iter().map(|row| {
        let had = had.remove(&row.hub_uuid).unwrap_or_default();
        let (standing, statement) = match row.is_exposed {
            true => of_hub(
                &had,
                &packages,
                &stated,
                updating.contains_key(&row.hub_uuid),
            ),
            false => (Standing::Fixed, None),
        };
        HubShown {
            hub_uuid: row.hub_uuid,
            hub_identifier: labels.remove(&row.hub_uuid).flatten(),
            standing,
            statement: statement.cloned(),
            packages: affected_of(&had, &packages, row.is_exposed),
            since: match (row.is_exposed, row.ended_at) {
                (false, Some(ended_at)) => ended_at,
                _ => row.exposed_at,
            },
        }
    });
    Ok((shown.collect(), total))
}

/// What is affected of what a hub has; of a hub that is fixed, of the last that it had.
fn affected_of(had: &[HadRow], packages: &Packages<'_>, is_exposed: bool) -> Vec<AffectedPackage> {
    let lists = had
        .iter()
        .filter(|row| row.is_current || !is_exposed)
        .filter_map(|row| packages.get(row.list_sha256.as_deref()?));
    let found: BTreeSet<&AffectedPackage> = match is_exposed {
        true => lists.flatten().collect(),
        // The last one comes first.
        false => lists.take(1).flatten().collect(),
    };
    found.into_iter().take(MAX_PACKAGES).cloned().collect()
}

/// How a hub stands that has something which is affected.
fn of_hub<'a>(
    had: &[HadRow],
    packages: &Packages<'_>,
    stated: &Stated<'a>,
    is_updating: bool,
) -> (Standing, Option<&'a Statement>) {
    let current = || had.iter().filter(|row| row.is_current);
    let is_affected = |row: &&HadRow| {
        let list = row.list_sha256.as_deref();
        list.is_some_and(|list| packages.contains_key(list))
    };
    let running: Vec<ReleaseUuid> = current().filter_map(|row| row.release_uuid).collect();
    let releases: Vec<ReleaseUuid> = current()
        .filter(is_affected)
        .filter_map(|row| row.release_uuid)
        .collect();
    let affected = HubAffected {
        machine: current()
            .filter(is_affected)
            .any(|row| row.release_uuid.is_none()),
        releases: &releases,
    };
    standing(stated, &running, affected, is_updating)
}
