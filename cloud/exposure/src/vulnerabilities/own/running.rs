//! Whom an advisory of the tenant affects now: hubs by the releases that they report to run, and
//! devices by the firmware of their versions.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use hub_advisories::osv::Verdict;
use hub_base::db::Conn;
use hub_base::error::Result;
use hub_devices::device_catalog;
use hub_fleet::releases::{self, NamedRelease};
use hub_identity::authz::Scope;
use hub_protocol::{AppUuid, HubUuid, ReleaseUuid, Timestamp};

use super::super::view::AffectedPackage;
use super::Advisory;
use crate::vulnerabilities::store::own::{self as store, Installed};

/// The ecosystem of a tenant's own apps.
const APPS: &str = "APP";
/// Releases that hubs run or ran of the apps of one advisory. More are not looked at.
const MAX_RELEASES: i64 = 10_000;

/// Devices of the models that an advisory affects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Devices {
    pub affected: i64,
    /// Those whose firmware is not known, or cannot be compared.
    pub unknown: i64,
}

/// The devices that an advisory affects; None if it is about no device model.
pub async fn devices(
    conn: &mut Conn,
    scope: &Scope,
    advisory: &Advisory,
) -> Result<Option<Devices>> {
    let mut devices = None;
    for affected in &advisory.affected {
        let Some(device_uuid) = affected.device_uuid else {
            continue;
        };
        let found: &mut Devices = devices.get_or_insert_default();
        for (firmware, count) in
            device_catalog::devices_by_firmware(conn, scope, device_uuid).await?
        {
            // Without ranges all versions are affected, also those that nobody knows.
            match affected.judge(firmware.as_deref().unwrap_or_default())? {
                Verdict::Affected { .. } => found.affected += count,
                Verdict::Undecided => found.unknown += count,
                Verdict::NotAffected => {}
            }
        }
    }
    Ok(devices)
}

/// The releases that an advisory affects of those that hubs run or ran.
pub async fn affected_releases(
    conn: &mut Conn,
    scope: &Scope,
    advisory: &Advisory,
) -> Result<Vec<ReleaseUuid>> {
    let apps: BTreeSet<AppUuid> = advisory.apps().collect();
    let apps: Vec<AppUuid> = apps.into_iter().collect();
    let ran = store::ran(conn, scope, &apps, MAX_RELEASES).await?;
    let of: Vec<ReleaseUuid> = ran.iter().map(|(_, release)| *release).collect();
    let named = releases::named(conn, scope, &of).await?;
    let mut affected = Vec::new();
    for (app_uuid, release_uuid) in ran {
        if let Some(release) = named.get(&release_uuid)
            && advisory.affects(app_uuid, &release.version)?
        {
            affected.push(release_uuid);
        }
    }
    Ok(affected)
}

/// What hubs report to run of some apps.
pub struct Running {
    installed: Vec<Installed>,
    named: HashMap<ReleaseUuid, NamedRelease>,
    updating: HashSet<(HubUuid, AppUuid)>,
}

/// A hub that runs an affected release.
#[derive(Clone, Debug)]
pub struct Exposed {
    pub releases: Vec<ReleaseUuid>,
    pub packages: BTreeSet<AffectedPackage>,
    pub is_updating: bool,
    pub since: Timestamp,
}

impl Running {
    /// Of the apps that these advisories are about.
    pub async fn read(conn: &mut Conn, scope: &Scope, advisories: &[&Advisory]) -> Result<Self> {
        let apps: BTreeSet<AppUuid> = advisories
            .iter()
            .flat_map(|advisory| advisory.apps())
            .collect();
        let apps: Vec<AppUuid> = apps.into_iter().collect();
        let installed = store::installed(conn, scope, &apps).await?;
        let updating = store::updating(conn, scope, &apps).await?;
        let of: BTreeSet<ReleaseUuid> = installed.iter().map(|one| one.release_uuid).collect();
        let of: Vec<ReleaseUuid> = of.into_iter().collect();
        Ok(Self {
            installed,
            named: releases::named(conn, scope, &of).await?,
            updating: updating.into_iter().collect(),
        })
    }

    /// All hubs that run any release of the apps.
    pub fn hubs(&self) -> impl Iterator<Item = HubUuid> {
        self.installed.iter().map(|installed| installed.hub_uuid)
    }

    /// The hubs that run something of what an advisory affects.
    pub fn exposed(&self, advisory: &Advisory) -> Result<BTreeMap<HubUuid, Exposed>> {
        // A hub may report a release of another app: that concerns this hub alone.
        let mut verdicts: HashMap<_, Option<AffectedPackage>> = HashMap::new();
        let mut exposed: BTreeMap<HubUuid, Exposed> = BTreeMap::new();
        for installed in &self.installed {
            let of = (installed.app_uuid, installed.release_uuid);
            let package = match verdicts.get(&of) {
                Some(known) => known.clone(),
                None => {
                    let judged = self.judge(advisory, installed)?;
                    verdicts.insert(of, judged.clone());
                    judged
                }
            };
            let Some(package) = package else { continue };
            let hub = exposed.entry(installed.hub_uuid).or_insert(Exposed {
                releases: Vec::new(),
                packages: BTreeSet::new(),
                is_updating: false,
                since: installed.since,
            });
            hub.releases.push(installed.release_uuid);
            hub.packages.insert(package);
            hub.since = hub.since.min(installed.since);
            hub.is_updating |= self
                .updating
                .contains(&(installed.hub_uuid, installed.app_uuid));
        }
        Ok(exposed)
    }

    /// A release as a package, if it is affected.
    fn judge(&self, advisory: &Advisory, installed: &Installed) -> Result<Option<AffectedPackage>> {
        // What hubs report is no release of the tenant's unless the tenant has it.
        let Some(release) = self.named.get(&installed.release_uuid) else {
            return Ok(None);
        };
        for affected in &advisory.affected {
            if affected.app_uuid != Some(installed.app_uuid) {
                continue;
            }
            if let Verdict::Affected { fixed_in } = affected.judge(&release.version)? {
                return Ok(Some(AffectedPackage {
                    ecosystem: APPS.to_owned(),
                    name: release.app_name.clone(),
                    version: release.version.clone(),
                    fixed_in,
                }));
            }
        }
        Ok(None)
    }
}
