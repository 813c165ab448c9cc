//! What a hub had of what a vulnerability affects, from its reports in their order: from when until
//! when, and what it had instead afterwards.

use std::collections::{BTreeMap, BTreeSet};

use hub_protocol::{HubUuid, Timestamp};
use serde::Serialize;

use super::super::view::AffectedPackage;

/// The versions of packages by name that a list has.
pub type Versions = BTreeMap<String, BTreeSet<String>>;

/// What a hub ran from one report of it until the next.
#[derive(Clone, Debug, sqlx::FromRow)]
pub struct Ran {
    pub hub_uuid: HubUuid,
    pub began_at: Timestamp,
    pub ended_at: Option<Timestamp>,
    pub list_sha256: Vec<u8>,
}

/// Something that follows for a hub.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Finding {
    Exposure(Exposure),
    Fixed(Fixed),
}

/// A hub had an affected package.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Exposure {
    hub_uuid: HubUuid,
    ecosystem: String,
    name: String,
    version: String,
    fixed_in: Option<String>,
    from: Timestamp,
    /// None while it has it.
    until: Option<Timestamp>,
}

impl Exposure {
    pub fn new(
        hub_uuid: HubUuid,
        package: &AffectedPackage,
        from: Timestamp,
        until: Option<Timestamp>,
    ) -> Self {
        Self {
            hub_uuid,
            ecosystem: package.ecosystem.clone(),
            name: package.name.clone(),
            version: package.version.clone(),
            fixed_in: package.fixed_in.clone(),
            from,
            until,
        }
    }
}

/// A hub had no affected version of a package any more.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Fixed {
    hub_uuid: HubUuid,
    ecosystem: String,
    name: String,
    /// The versions that it had instead; none if the package has gone.
    versions: BTreeSet<String>,
    since: Timestamp,
}

/// The history of one hub.
#[derive(Debug)]
pub struct History {
    hub_uuid: HubUuid,
    /// Since when it has what it has.
    open: BTreeMap<AffectedPackage, Timestamp>,
    ended_at: Option<Timestamp>,
}

impl History {
    pub const fn new(hub_uuid: HubUuid) -> Self {
        Self {
            hub_uuid,
            open: BTreeMap::new(),
            ended_at: None,
        }
    }

    pub const fn hub_uuid(&self) -> HubUuid {
        self.hub_uuid
    }

    /// Whether a package that the hub has so far is not among those of its next report.
    pub fn ends(&self, next: &BTreeSet<AffectedPackage>) -> bool {
        self.open.keys().any(|package| !next.contains(package))
    }

    /// Adds the next report: what of it is affected, and which versions it has.
    pub fn add(
        &mut self,
        ran: &Ran,
        affected: &BTreeSet<AffectedPackage>,
        versions: &Versions,
    ) -> Vec<Finding> {
        let mut findings = Vec::new();
        // The hub was away in between.
        if self
            .ended_at
            .is_some_and(|ended_at| ended_at < ran.began_at)
        {
            findings.extend(self.close(self.ended_at));
        }
        let ended: Vec<AffectedPackage> = self
            .open
            .keys()
            .filter(|package| !affected.contains(package))
            .cloned()
            .collect();
        let mut fixed = BTreeSet::new();
        for package in ended {
            if let Some(from) = self.open.remove(&package) {
                findings.push(self.exposure(&package, from, Some(ran.began_at)));
            }
            let is_other = |other: &AffectedPackage| {
                (&other.ecosystem, &other.name) == (&package.ecosystem, &package.name)
            };
            if !affected.iter().any(is_other) {
                fixed.insert((package.ecosystem, package.name));
            }
        }
        findings.extend(fixed.into_iter().map(|(ecosystem, name)| {
            Finding::Fixed(Fixed {
                hub_uuid: self.hub_uuid,
                versions: versions.get(&name).cloned().unwrap_or_default(),
                ecosystem,
                name,
                since: ran.began_at,
            })
        }));
        for package in affected {
            self.open.entry(package.clone()).or_insert(ran.began_at);
        }
        self.ended_at = ran.ended_at;
        findings
    }

    /// What is still to be said at the end of its reports.
    pub fn finish(mut self) -> Vec<Finding> {
        let ended_at = self.ended_at;
        self.close(ended_at)
    }

    fn close(&mut self, until: Option<Timestamp>) -> Vec<Finding> {
        let open = std::mem::take(&mut self.open);
        open.iter()
            .map(|(package, from)| self.exposure(package, *from, until))
            .collect()
    }

    fn exposure(
        &self,
        package: &AffectedPackage,
        from: Timestamp,
        until: Option<Timestamp>,
    ) -> Finding {
        Finding::Exposure(Exposure::new(self.hub_uuid, package, from, until))
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    fn at(secs: i64) -> Timestamp {
        Timestamp::from_micros(secs * 1_000_000)
    }

    fn ran(from: i64, until: Option<i64>) -> Ran {
        Ran {
            hub_uuid: HubUuid(Uuid::from_u128(7)),
            began_at: at(from),
            ended_at: until.map(at),
            list_sha256: Vec::new(),
        }
    }

    fn openssl(version: &str) -> BTreeSet<AffectedPackage> {
        let package = AffectedPackage {
            ecosystem: "Debian:12".to_owned(),
            name: "openssl".to_owned(),
            version: version.to_owned(),
            fixed_in: Some("3".to_owned()),
        };
        BTreeSet::from([package])
    }

    fn versions(version: &str) -> Versions {
        let of = BTreeSet::from([version.to_owned()]);
        Versions::from([("openssl".to_owned(), of)])
    }

    fn shown(findings: &[Finding]) -> Vec<(String, i64, Option<i64>)> {
        let secs = |time: Timestamp| time.as_secs();
        let shown = findings.iter().map(|finding| match finding {
            Finding::Exposure(one) => (one.version.clone(), secs(one.from), one.until.map(secs)),
            Finding::Fixed(fixed) => {
                let versions: Vec<&str> = fixed.versions.iter().map(String::as_str).collect();
                (
                    format!("fixed {}", versions.join(" ")),
                    secs(fixed.since),
                    None,
                )
            }
        });
        shown.collect()
    }

    #[test]
    fn history_says_from_when_until_when_and_what_came_instead() {
        let hub_uuid = HubUuid(Uuid::from_u128(7));
        let mut history = History::new(hub_uuid);
        let none = Versions::new();
        assert!(
            history
                .add(&ran(1, Some(2)), &openssl("1"), &none)
                .is_empty()
        );
        // Another report with the same package goes on.
        assert!(
            history
                .add(&ran(2, Some(3)), &openssl("1"), &none)
                .is_empty()
        );
        assert!(!history.ends(&openssl("1")) && history.ends(&openssl("2")));
        let found = history.add(&ran(3, Some(4)), &openssl("2"), &none);
        assert_eq!(shown(&found), [("1".to_owned(), 1, Some(3))]);
        let found = history.add(&ran(4, None), &BTreeSet::new(), &versions("3"));
        let expected = [
            ("2".to_owned(), 3, Some(4)),
            ("fixed 3".to_owned(), 4, None),
        ];
        assert_eq!(shown(&found), expected);
        assert!(history.finish().is_empty());
    }

    #[test]
    fn hub_that_was_away_had_nothing_meanwhile() {
        let mut history = History::new(HubUuid(Uuid::from_u128(7)));
        let none = Versions::new();
        history.add(&ran(1, Some(2)), &openssl("1"), &none);
        let found = history.add(&ran(5, None), &openssl("1"), &none);
        assert_eq!(shown(&found), [("1".to_owned(), 1, Some(2))]);
        assert_eq!(shown(&history.finish()), [("1".to_owned(), 5, None)]);
    }
}
