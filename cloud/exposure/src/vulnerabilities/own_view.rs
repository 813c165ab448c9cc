//! Advisories of the tenant as they are shown among its vulnerabilities.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use hub_base::db::{Conn, Slice};
use hub_base::error::Result;
use hub_fleet::{hubs, releases};
use hub_identity::authz::Scope;
use hub_protocol::{AppUuid, HubUuid};

use super::counts::{Counts, InCountry, in_countries};
use super::own::{self, Advisory, Devices, Exposed, Running};
use super::standing::{Affected, Standing, Stated, standing};
use super::statements::Statement;
use super::store::{self, Filters, Listed, VulnerabilitySource};
use super::view::{AffectedPackage, HubShown, MAX_PACKAGES};

type Seen = (BTreeSet<AffectedPackage>, Counts, Option<Devices>);

/// Which of the tenant's advisories fit the hub and the release that a list is narrowed by.
pub async fn narrow(conn: &mut Conn, scope: &Scope, filters: &mut Filters) -> Result<()> {
    if filters.hub_uuid.is_none() && filters.release_uuid.is_none() {
        return Ok(());
    }
    let mut running: Vec<_> = match filters.hub_uuid {
        Some(hub_uuid) => store::own::of_hub(conn, scope, hub_uuid).await?,
        None => Vec::new(),
    };
    if let Some(release_uuid) = filters.release_uuid {
        let release = releases::app_release_for_job(conn, scope, release_uuid).await?;
        let of = release.map(|release| (release.app_uuid, release_uuid));
        let fits = |one: &(AppUuid, _)| filters.hub_uuid.is_none() || running.contains(one);
        running = of.into_iter().filter(fits).collect();
    }
    let uuids: Vec<_> = running.iter().map(|(_, release)| *release).collect();
    let named = releases::named(conn, scope, &uuids).await?;
    let all = match named.is_empty() {
        true => Vec::new(),
        false => own::all(conn, scope).await?,
    };
    for advisory in all {
        let mut is_affected = false;
        for (app_uuid, release_uuid) in &running {
            if let Some(release) = named.get(release_uuid) {
                is_affected |= advisory.affects(*app_uuid, &release.version)?;
            }
        }
        if is_affected {
            filters.own.push(advisory.advisory_id);
        }
    }
    Ok(())
}

/// What those of the listed that are the tenant's own affect.
pub async fn shown(
    conn: &mut Conn,
    scope: &Scope,
    listed: &[Listed],
    statements: &[Statement],
) -> Result<HashMap<String, Seen>> {
    let ids: Vec<&str> = listed
        .iter()
        .filter(|one| one.source == VulnerabilitySource::Own)
        .map(|one| one.vulnerability_id.as_str())
        .collect();
    let mut shown = HashMap::new();
    if ids.is_empty() {
        return Ok(shown);
    }
    let advisories = store::own::some(conn, scope, &ids).await?;
    let of: Vec<&Advisory> = advisories.iter().collect();
    let running = Running::read(conn, scope, &of).await?;
    for advisory in &advisories {
        let about: Vec<Statement> = statements
            .iter()
            .filter(|statement| statement.vulnerability_id == advisory.advisory_id)
            .cloned()
            .collect();
        let (mut packages, mut counts) = (BTreeSet::new(), Counts::default());
        for hub in running.exposed(advisory)?.into_values() {
            counts.add(stands(&about, &hub).0, 1);
            packages.extend(hub.packages);
        }
        let devices = own::devices(conn, scope, advisory).await?;
        shown.insert(advisory.advisory_id.clone(), (packages, counts, devices));
    }
    Ok(shown)
}

/// One page of the hubs that run what one of the tenant's advisories affects, and how many there
/// are.
pub async fn hubs_of(
    conn: &mut Conn,
    scope: &Scope,
    advisory_id: &str,
    slice: Slice,
) -> Result<(Vec<HubShown>, i64)> {
    let advisory = own::get(conn, scope, advisory_id).await?;
    let ids = [advisory_id.to_owned()];
    let statements = store::statements::list(conn, scope, &ids).await?;
    let exposed = Running::read(conn, scope, &[&advisory])
        .await?
        .exposed(&advisory)?;
    let count = |number: i64| usize::try_from(number).unwrap_or(0);
    let total = i64::try_from(exposed.len()).unwrap_or(i64::MAX);
    let page: Vec<_> = exposed
        .into_iter()
        .skip(count(slice.offset))
        .take(count(slice.size))
        .collect();
    let uuids: Vec<HubUuid> = page.iter().map(|(hub_uuid, _)| *hub_uuid).collect();
    let mut labels = hubs::labels(conn, scope, &uuids).await?;
    let shown = page.into_iter().map(|(hub_uuid, hub)| {
        let (standing, statement) = stands(&statements, &hub);
        HubShown {
            hub_uuid,
            hub_identifier: labels.remove(&hub_uuid).flatten(),
            standing,
            statement: statement.cloned(),
            packages: hub.packages.into_iter().take(MAX_PACKAGES).collect(),
            since: hub.since,
        }
    });
    Ok((shown.collect(), total))
}

/// How the hubs of each country stand that run what one of the tenant's advisories affects.
pub async fn countries(
    conn: &mut Conn,
    scope: &Scope,
    advisory_id: &str,
) -> Result<Vec<InCountry>> {
    let advisory = own::get(conn, scope, advisory_id).await?;
    let ids = [advisory_id.to_owned()];
    let statements = store::statements::list(conn, scope, &ids).await?;
    let running = Running::read(conn, scope, &[&advisory]).await?;
    let countries: HashMap<HubUuid, String> = store::fleet::countries(conn, scope)
        .await?
        .into_iter()
        .collect();
    let mut counted: BTreeMap<Option<&str>, Counts> = BTreeMap::new();
    for (hub_uuid, hub) in running.exposed(&advisory)? {
        let country = countries.get(&hub_uuid).map(String::as_str);
        let counts = counted.entry(country).or_default();
        counts.add(stands(&statements, &hub).0, 1);
    }
    Ok(in_countries(counted))
}

/// How a hub stands that runs an affected release. Only the tenant states something of it, who is
/// the maker.
fn stands<'a>(own: &'a [Statement], hub: &Exposed) -> (Standing, Option<&'a Statement>) {
    let stated = Stated { own, makers: &[] };
    let affected = Affected {
        machine: false,
        releases: &hub.releases,
    };
    standing(&stated, &hub.releases, affected, hub.is_updating)
}
