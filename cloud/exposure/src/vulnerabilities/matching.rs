//! Matching lists of packages with advisories, list by list. A list that was matched with an
//! earlier revision of the advisories is matched again; what it is exposed to is replaced at once.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::time::{Duration, Instant};

use hub_advisories::osv::{Ranges, Verdict};
use hub_advisories::versions::Ecosystem;
use hub_base::error::{Error, Result};
use hub_core::Core;
use hub_core::tasks::Done;
use hub_protocol::TenantUuid;
use hub_protocol::packages::{Package, PackageList};

use super::store::{self, Exposure, Fact};
use crate::feeds::{self, Published};
use crate::severity::VulnerabilitySeverity;
use crate::software::components::{Contents, ListedComponent};
use crate::software::{self, ListKey};

/// Imports by the command line are noticed after this time.
const EVERY_SECS: i64 = 60;
/// The time after which a run goes on as another one.
const RUN_TIME: Duration = Duration::from_secs(20);
/// Lists that one query reads.
const LISTS: i64 = 100;
/// Vulnerabilities that one transaction stores.
const CHUNK: usize = 500;

/// The sources of what Debian signs are named after the machine; the advisories are of `linux`.
const SIGNED_KERNEL: &str = "linux-signed-";

/// Performs the task that matches lists.
pub async fn perform(core: &Core) -> Result<Done> {
    let ends_at = Instant::now() + RUN_TIME;
    let mut tenants = BTreeSet::new();
    let has_more = loop {
        // What is matched waits until there is room for it.
        if core.storage.is_full() || core.shutdown.is_cancelled() {
            break false;
        }
        let mut conn = core.db.read().await?;
        let revision = feeds::revision(&mut conn).await?;
        let behind = software::behind(&mut conn, revision, LISTS).await?;
        drop(conn);
        if behind.is_empty() {
            break false;
        }
        for key in behind {
            match_list(core, &key, revision).await?;
            tenants.insert(key.tenant_uuid.0);
            if Instant::now() >= ends_at {
                break;
            }
        }
        if Instant::now() >= ends_at {
            break true;
        }
    };
    for tenant_uuid in tenants {
        let mut tx = core.db.begin().await?;
        store::forget_gone(&mut tx, TenantUuid(tenant_uuid)).await?;
        tx.commit_unaudited("what follows from what is stored")
            .await?;
    }
    let now = core.clock.now();
    Ok(Done::RunAt(match has_more {
        true => now,
        false => now.plus_secs(EVERY_SECS),
    }))
}

async fn match_list(core: &Core, key: &ListKey, revision: i64) -> Result<()> {
    let mut conn = core.db.read().await?;
    let Some(packed) = software::stored(&mut conn, key).await? else {
        return Ok(());
    };
    let versions = move || packed.contents().map(|contents| versions_of(&contents));
    let versions = tokio::task::spawn_blocking(versions);
    let versions = versions.await.map_err(Error::internal)??;
    let (mut found, mut facts) = (Vec::new(), Vec::new());
    let mut subjects = Vec::new();
    for (ecosystem, versions) in versions {
        let names: Vec<&str> = versions.keys().map(String::as_str).collect();
        let published = feeds::about(&mut conn, &ecosystem, &names).await?;
        if !published.is_empty() {
            subjects.push(Subject {
                ecosystem,
                versions,
                published,
            });
        }
    }
    if !subjects.is_empty() {
        let judged = tokio::task::spawn_blocking(move || judge(subjects));
        (found, facts) = judged.await.map_err(Error::internal)??;
        let ids: Vec<String> = facts
            .iter()
            .map(|fact| fact.vulnerability_id.clone())
            .collect();
        let exploited: HashSet<String> = feeds::exploited(&mut conn, &ids)
            .await?
            .into_iter()
            .map(|exploited| exploited.vulnerability_id)
            .collect();
        for fact in &mut facts {
            fact.is_exploited = exploited.contains(&fact.vulnerability_id);
        }
    }
    let stored: HashSet<Exposure> = store::of_list(&mut conn, key).await?.into_iter().collect();
    drop(conn);
    store_matched(core, key, revision, &stored, found, &facts).await
}

async fn store_matched(
    core: &Core,
    key: &ListKey,
    revision: i64,
    stored: &HashSet<Exposure>,
    found: Vec<Exposure>,
    facts: &[Fact],
) -> Result<()> {
    let now = core.clock.now();
    for some in facts.chunks(CHUNK) {
        let mut tx = core.db.begin().await?;
        store::put_facts(&mut tx, key.tenant_uuid, some, now).await?;
        tx.commit_unaudited("what follows from what is stored")
            .await?;
    }
    let found: HashSet<Exposure> = found.into_iter().collect();
    let gone: Vec<&Exposure> = stored.difference(&found).collect();
    let new: Vec<&Exposure> = found.difference(stored).collect();
    let mut tx = core.db.begin().await?;
    if !software::set_matched(&mut tx, key, revision).await? {
        return Ok(());
    }
    store::delete(&mut tx, key, &gone).await?;
    store::insert(&mut tx, key, &new).await?;
    tx.commit_unaudited("what follows from what is stored")
        .await
}

/// The ecosystem of OSV that has the packages of a list; None if no advisories are about them.
fn ecosystem_of(list: &PackageList) -> Option<String> {
    let release = list.distribution_version.split('.').next()?;
    let is_release = !release.is_empty() && release.bytes().all(|byte| byte.is_ascii_digit());
    (list.distribution == "debian" && is_release).then(|| format!("Debian:{release}"))
}

/// The versions of packages by name.
type Versions = BTreeMap<String, BTreeSet<String>>;

/// The packages of an ecosystem, and what is published about them.
struct Subject {
    ecosystem: String,
    versions: Versions,
    published: Vec<Published>,
}

/// The packages of a list by the ecosystem that has advisories about them. Those of Debian are
/// source packages.
fn versions_of(contents: &Contents) -> BTreeMap<String, Versions> {
    let mut found: BTreeMap<String, Versions> = BTreeMap::new();
    let mut add = |ecosystem: &str, (name, version): (String, String)| {
        let versions = found.entry(ecosystem.to_owned()).or_default();
        versions.entry(name).or_default().insert(version);
    };
    match contents {
        Contents::Packages(list) => {
            if let Some(ecosystem) = ecosystem_of(list) {
                for package in &list.packages {
                    add(&ecosystem, source_of(package));
                }
            }
        }
        Contents::Components(components) => {
            for component in components {
                match component.ecosystem.as_deref() {
                    Some(debian) if debian.starts_with("Debian") => {
                        add(debian, source_of_component(component));
                    }
                    Some(other) => {
                        add(other, (component.name.clone(), component.version.clone()));
                    }
                    None => {}
                }
            }
        }
    }
    found
}

/// The versions of the source packages of a list by name.
pub(super) fn sources_of(list: &PackageList) -> BTreeMap<String, BTreeSet<String>> {
    let mut sources: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for package in &list.packages {
        let (name, version) = source_of(package);
        sources.entry(name).or_default().insert(version);
    }
    sources
}

fn source_of(package: &Package) -> (String, String) {
    let name = package.source.as_deref().unwrap_or(&package.name);
    let version = package.source_version.as_deref();
    signed_as(name, version.unwrap_or(&package.version))
}

fn source_of_component(component: &ListedComponent) -> (String, String) {
    match &component.source {
        Some((name, version)) => signed_as(name, version.as_ref().unwrap_or(&component.version)),
        None => signed_as(&component.name, &component.version),
    }
}

/// The source package that has the advisories, and its version.
fn signed_as(name: &str, version: &str) -> (String, String) {
    match name.starts_with(SIGNED_KERNEL) {
        // 6.1.76+1 is the signed form of 6.1.76-1.
        true => {
            let version = match version.rsplit_once('+') {
                Some((upstream, revision)) => format!("{upstream}-{revision}"),
                None => version.to_owned(),
            };
            ("linux".to_owned(), version)
        }
        false => (name.to_owned(), version.to_owned()),
    }
}

/// What the packages are exposed to, and what is known of those vulnerabilities.
fn judge(subjects: Vec<Subject>) -> Result<(Vec<Exposure>, Vec<Fact>)> {
    let mut found = Vec::new();
    let mut facts: BTreeMap<String, Fact> = BTreeMap::new();
    for subject in subjects {
        found.extend(judge_one(subject, &mut facts)?);
    }
    Ok((found, facts.into_values().collect()))
}

fn judge_one(subject: Subject, facts: &mut BTreeMap<String, Fact>) -> Result<Vec<Exposure>> {
    let Some(order) = Ecosystem::of(&subject.ecosystem) else {
        return Ok(Vec::new());
    };
    let mut found: HashMap<(String, String, String), Exposure> = HashMap::new();
    for advisory in subject.published {
        let ranges: Ranges = serde_json::from_str(&advisory.ranges).map_err(Error::internal)?;
        let versions = subject.versions.get(&advisory.package);
        for version in versions.into_iter().flatten() {
            let Verdict::Affected { fixed_in } = ranges.judge(order, version) else {
                continue;
            };
            note_fact(facts, &advisory);
            let exposure = Exposure {
                vulnerability_id: advisory.vulnerability_id.clone(),
                ecosystem: subject.ecosystem.clone(),
                package: advisory.package.clone(),
                version: version.clone(),
                fixed_in,
                advisory_id: advisory.advisory_id.clone(),
            };
            let of = (
                exposure.vulnerability_id.clone(),
                exposure.package.clone(),
                version.clone(),
            );
            // Of several advisories, the one that names a fix says more; else the order of their
            // ids decides, so that the same is found each time.
            let says_more = |other: &Exposure| {
                let rank = |exposure: &Exposure| exposure.fixed_in.is_none();
                (rank(&exposure), &exposure.advisory_id) < (rank(other), &other.advisory_id)
            };
            if found.get(&of).is_none_or(says_more) {
                found.insert(of, exposure);
            }
        }
    }
    Ok(found.into_values().collect())
}

/// The worst severity counts, and the first title.
fn note_fact(facts: &mut BTreeMap<String, Fact>, advisory: &Published) {
    let fact = facts
        .entry(advisory.vulnerability_id.clone())
        .or_insert_with(|| Fact {
            vulnerability_id: advisory.vulnerability_id.clone(),
            title: advisory.title.clone(),
            severity: VulnerabilitySeverity::Unknown,
            is_exploited: false,
        });
    fact.severity = fact.severity.max(advisory.severity);
    if fact.title.is_empty() {
        fact.title.clone_from(&advisory.title);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(name: &str, version: &str, source: Option<(&str, &str)>) -> Package {
        Package {
            name: name.to_owned(),
            version: version.to_owned(),
            architecture: None,
            source: source.map(|(name, _)| name.to_owned()),
            source_version: source.map(|(_, version)| version.to_owned()),
        }
    }

    #[test]
    fn versions_are_those_of_source_packages() {
        for (binary, expected) in [
            (package("bash", "5.2.15-2", None), ("bash", "5.2.15-2")),
            (
                package("libssl3", "3.0.11-1~deb12u2", Some(("openssl", "3.0.11-1"))),
                ("openssl", "3.0.11-1"),
            ),
            (
                package(
                    "linux-image-6.1.0-18-arm64",
                    "6.1.76-1",
                    Some(("linux-signed-arm64", "6.1.76+1")),
                ),
                ("linux", "6.1.76-1"),
            ),
        ] {
            let (name, version) = source_of(&binary);
            assert_eq!((name.as_str(), version.as_str()), expected);
        }
    }

    #[test]
    fn components_are_sorted_by_ecosystem() {
        let component =
            |ecosystem: Option<&str>, name: &str, source: Option<&str>| ListedComponent {
                ecosystem: ecosystem.map(str::to_owned),
                name: name.to_owned(),
                version: "1.2-3".to_owned(),
                source: source.map(|name| (name.to_owned(), None)),
                purl: None,
            };
        let contents = Contents::Components(vec![
            component(Some("Debian:12"), "libssl3", Some("openssl")),
            component(Some("crates.io"), "serde", None),
            component(Some("npm"), "@a/b", None),
            component(None, "something", None),
        ]);
        let found = versions_of(&contents);
        let found: Vec<(&str, &str)> = found
            .iter()
            .flat_map(|(ecosystem, versions)| {
                versions
                    .keys()
                    .map(move |name| (ecosystem.as_str(), name.as_str()))
            })
            .collect();
        let expected = [
            ("Debian:12", "openssl"),
            ("crates.io", "serde"),
            ("npm", "@a/b"),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn only_releases_of_debian_have_advisories() {
        let list = |distribution: &str, version: &str| PackageList {
            distribution: distribution.to_owned(),
            distribution_version: version.to_owned(),
            packages: Vec::new(),
        };
        for (list, expected) in [
            (list("debian", "12"), Some("Debian:12")),
            (list("debian", "12.5"), Some("Debian:12")),
            (list("debian", ""), None),
            (list("raspbian", "12"), None),
        ] {
            assert_eq!(ecosystem_of(&list).as_deref(), expected, "{list:?}");
        }
    }
}
