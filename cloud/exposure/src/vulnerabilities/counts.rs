//! How many hubs stand how to a vulnerability. Hubs are counted by their lists of packages, of
//! which there are few.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use hub_base::db::Conn;
use hub_base::error::Result;
use hub_identity::authz::Scope;
use hub_protocol::{HubUuid, ReleaseUuid};

use super::standing::{Affected as HubAffected, Standing, Stated, standing};
use super::statements::Statement;
use super::store;
use super::store::fleet::SharedHistory;

/// A number of hubs for each standing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub exposed: i64,
    pub not_affected: i64,
    pub fixed: i64,
    pub updating: i64,
}

impl Counts {
    pub const fn add(&mut self, standing: Standing, hubs: i64) {
        match standing {
            Standing::Exposed => self.exposed += hubs,
            Standing::NotAffected => self.not_affected += hubs,
            Standing::Fixed => self.fixed += hubs,
            Standing::Updating => self.updating += hubs,
        }
    }

    const fn add_all(&mut self, other: &Self) {
        self.exposed += other.exposed;
        self.not_affected += other.not_affected;
        self.fixed += other.fixed;
        self.updating += other.updating;
    }
}

/// How many hubs of a country stand how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InCountry {
    /// None where nobody has said it.
    pub country: Option<String>,
    pub hubs: Counts,
}

/// The countries that have hubs which stand somehow, by name. Those whose country nobody has said
/// come last.
pub fn in_countries(counts: BTreeMap<Option<&str>, Counts>) -> Vec<InCountry> {
    let mut listed: Vec<InCountry> = counts
        .into_iter()
        .filter(|(_, hubs)| *hubs != Counts::default())
        .map(|(country, hubs)| InCountry {
            country: country.map(str::to_owned),
            hubs,
        })
        .collect();
    listed.sort_by_key(|one| one.country.is_none());
    listed
}

/// Hubs that are being counted.
#[derive(Default)]
struct Tally {
    counts: Counts,
    /// Those that have an affected package, and no release that matters.
    others: i64,
    /// Those of them on which a job that installs a release is open.
    others_updating: i64,
}

/// The hubs of a tenant, as far as they have reported what they run.
pub struct Fleet {
    histories: Vec<SharedHistory>,
    updating: HashMap<HubUuid, Option<Vec<u8>>>,
    /// As far as hubs are counted by them.
    countries: HashMap<HubUuid, String>,
    /// Those with releases that have a component which is affected, or that a statement is about.
    running: HashMap<HubUuid, Running>,
    /// The lists of releases whose components are known.
    lists: HashMap<ReleaseUuid, Vec<u8>>,
}

/// A hub with releases that are looked at.
#[derive(Default)]
struct Running {
    /// Its list of packages.
    list: Option<Vec<u8>>,
    /// Its lists before.
    before: Vec<Vec<u8>>,
    releases: Vec<ReleaseUuid>,
    /// Those that it ran.
    past: Vec<ReleaseUuid>,
    is_present: bool,
}

impl Fleet {
    /// As far as these vulnerabilities and statements concern them; with their countries if
    /// `by_country`.
    pub async fn read(
        conn: &mut Conn,
        scope: &Scope,
        ids: &[String],
        statements: &[Statement],
        by_country: bool,
    ) -> Result<Self> {
        let lists: HashMap<ReleaseUuid, Vec<u8>> = store::fleet::releases(conn, scope, ids)
            .await?
            .into_iter()
            .collect();
        let stated = statements
            .iter()
            .filter_map(|statement| statement.release_uuid);
        let releases: BTreeSet<_> = stated
            .chain(lists.keys().copied())
            .map(|release| release.0)
            .collect();
        let releases: Vec<ReleaseUuid> = releases.into_iter().map(ReleaseUuid).collect();
        let mut running: HashMap<HubUuid, Running> = HashMap::new();
        for row in store::fleet::running(conn, scope, &releases).await? {
            let of = running.entry(row.hub_uuid).or_default();
            of.list = row.list_sha256;
            of.is_present = row.is_present;
            match row.is_running {
                true => of.releases.push(row.release_uuid),
                false => of.past.push(row.release_uuid),
            }
        }
        for (hub_uuid, list) in store::fleet::lists_before(conn, scope, &releases).await? {
            if let Some(running) = running.get_mut(&hub_uuid) {
                running.before.push(list);
            }
        }
        let countries = match by_country {
            true => store::fleet::countries(conn, scope).await?,
            false => Vec::new(),
        };
        Ok(Self {
            histories: store::fleet::histories(conn, scope, by_country).await?,
            countries: countries.into_iter().collect(),
            updating: store::fleet::updating(conn, scope)
                .await?
                .into_iter()
                .collect(),
            running,
            lists,
        })
    }

    /// The releases with a component that one of the vulnerabilities affects.
    pub fn releases(&self) -> Vec<ReleaseUuid> {
        self.lists.keys().copied().collect()
    }

    /// Those of them that have one of these lists.
    pub fn releases_with(&self, lists: &HashSet<&[u8]>) -> impl Iterator<Item = &ReleaseUuid> {
        let with = self.lists.iter();
        with.filter(|(_, list)| lists.contains(list.as_slice()))
            .map(|(release, _)| release)
    }

    /// How hubs stand to a vulnerability that affects these lists.
    pub fn counts(&self, lists: &HashSet<&[u8]>, stated: &Stated) -> Counts {
        let mut all = Counts::default();
        for counts in self.by_country(lists, stated).values() {
            all.add_all(counts);
        }
        all
    }

    /// As [`Self::counts`], by the countries that hubs were read with. Hubs are counted by their
    /// lists of packages; those with releases that matter here are taken out and judged one by one.
    pub fn by_country(
        &self,
        lists: &HashSet<&[u8]>,
        stated: &Stated,
    ) -> BTreeMap<Option<&str>, Counts> {
        let is_affected = |list: &Vec<u8>| lists.contains(list.as_slice());
        let is_release_affected =
            |release: &&ReleaseUuid| self.lists.get(*release).is_some_and(is_affected);
        let country = |hub_uuid: &HubUuid| self.countries.get(hub_uuid).map(String::as_str);
        let mut tallies: BTreeMap<Option<&str>, Tally> = BTreeMap::new();
        let own: BTreeSet<_> = stated
            .own
            .iter()
            .filter_map(|statement| statement.release_uuid.map(|release| release.0))
            .collect();
        for history in &self.histories {
            let tally = tallies.entry(history.country.as_deref()).or_default();
            match is_affected(&history.present) {
                true => tally.others += history.hubs,
                false if history.before.iter().any(is_affected) => {
                    tally.counts.fixed += history.hubs;
                }
                false => {}
            }
        }
        for (hub_uuid, list) in &self.updating {
            if list.as_ref().is_some_and(is_affected) {
                let tally = tallies.entry(country(hub_uuid)).or_default();
                tally.others_updating += 1;
            }
        }
        for (hub_uuid, hub) in &self.running {
            let affected: Vec<ReleaseUuid> = hub
                .releases
                .iter()
                .filter(is_release_affected)
                .copied()
                .collect();
            let was_affected = hub.past.iter().any(|release| is_release_affected(&release));
            let is_stated = hub.releases.iter().any(|release| own.contains(&release.0));
            if affected.is_empty() && !was_affected && !is_stated {
                continue;
            }
            let machine = hub.list.as_ref().is_some_and(is_affected);
            let was_machine = hub.list.is_some() && hub.before.iter().any(is_affected);
            let is_updating = self.updating.contains_key(hub_uuid);
            let tally = tallies.entry(country(hub_uuid)).or_default();
            if machine {
                tally.others -= 1;
                tally.others_updating -= i64::from(is_updating);
            } else if was_machine {
                tally.counts.fixed -= 1;
            }
            if machine || !affected.is_empty() {
                let affected = HubAffected {
                    machine,
                    releases: &affected,
                };
                let standing = standing(stated, &hub.releases, affected, is_updating).0;
                tally.counts.add(standing, 1);
            } else if (was_machine || was_affected) && hub.is_present {
                tally.counts.fixed += 1;
            }
        }
        let machine = HubAffected {
            machine: true,
            releases: &[],
        };
        let updating = standing(stated, &[], machine, true).0;
        let idle = standing(stated, &[], machine, false).0;
        let counted = tallies.into_iter().map(|(country, tally)| {
            let (others, others_updating) = (tally.others, tally.others_updating);
            let mut counts = tally.counts;
            counts.add(updating, others_updating);
            counts.add(idle, others - others_updating);
            (country, counts)
        });
        counted.collect()
    }
}
