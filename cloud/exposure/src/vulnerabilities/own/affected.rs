//! What an advisory affects: versions of an app or of a device model's firmware, in ranges as OSV
//! has them.

use hub_advisories::osv::{Ranges, Verdict};
use hub_advisories::versions::{self, Ecosystem};
use hub_base::error::{Error, Result};
use hub_protocol::AppUuid;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use uuid::Uuid;

/// Ranges of one item.
pub const MAX_RANGES: usize = 50;
/// Longest version.
pub const MAX_VERSION_CHARS: usize = 100;
/// The versions of releases are those of semver, which npm has too; it reads shorter ones as well.
const ORDER: Ecosystem = Ecosystem::Npm;

/// A range of versions, ordered as semver does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AffectedRange {
    /// The first version that is affected; all before the end when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = MAX_VERSION_CHARS), regex(pattern = hub_protocol::patterns::LINE))]
    pub introduced: Option<String>,
    /// The first version that is not affected any more.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = MAX_VERSION_CHARS), regex(pattern = hub_protocol::patterns::LINE))]
    pub fixed: Option<String>,
    /// The last version that is affected, where none is named that fixes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = MAX_VERSION_CHARS), regex(pattern = hub_protocol::patterns::LINE))]
    pub last_affected: Option<String>,
}

/// An app or a device model of the tenant, and which versions of it are affected.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "AdvisoryAffected")]
pub struct Affected {
    /// The app, whose releases are affected. Either this or `deviceUuid`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub app_uuid: Option<AppUuid>,
    /// The device model, whose firmware is affected.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device_uuid: Option<Uuid>,
    /// The versions; all when there are none.
    #[serde(default)]
    #[schemars(length(max = MAX_RANGES))]
    pub versions: Vec<AffectedRange>,
}

impl Affected {
    /// Whether a version is affected, and what fixes it.
    pub fn judge(&self, version: &str) -> Result<Verdict> {
        let events = |range: &AffectedRange| {
            let introduced = range.introduced.as_deref().unwrap_or("0");
            let mut events = vec![json!({"introduced": introduced})];
            if let Some(fixed) = &range.fixed {
                events.push(json!({"fixed": fixed}));
            }
            if let Some(last) = &range.last_affected {
                events.push(json!({"last_affected": last}));
            }
            json!(events)
        };
        let ranges: Vec<_> = match self.versions.is_empty() {
            true => vec![json!([{"introduced": "0"}])],
            false => self.versions.iter().map(events).collect(),
        };
        let ranges: Ranges =
            serde_json::from_value(json!({"ranges": ranges})).map_err(Error::internal)?;
        Ok(ranges.judge(ORDER, version))
    }

    /// Names what is wrong with it; `field` is its own path.
    pub fn check(&self, field: &str) -> Result<()> {
        if self.app_uuid.is_some() == self.device_uuid.is_some() {
            return Err(Error::field(
                field,
                "must have either `appUuid` or `deviceUuid`",
            ));
        }
        if self.versions.len() > MAX_RANGES {
            let message = format!("must have at most {MAX_RANGES} items");
            return Err(Error::field(format!("{field}.versions"), message));
        }
        for (at, range) in self.versions.iter().enumerate() {
            range.check(&format!("{field}.versions[{at}]"))?;
        }
        Ok(())
    }
}

impl AffectedRange {
    fn check(&self, field: &str) -> Result<()> {
        let ends = [
            ("introduced", &self.introduced),
            ("fixed", &self.fixed),
            ("lastAffected", &self.last_affected),
        ];
        for (name, version) in ends {
            let Some(version) = version else { continue };
            let is_version = version.chars().count() <= MAX_VERSION_CHARS
                && versions::compare(ORDER, version, version).is_some();
            if !is_version {
                let message = "must be a version such as 1.2.3";
                return Err(Error::field(format!("{field}.{name}"), message));
            }
        }
        if self.fixed.is_some() && self.last_affected.is_some() {
            let message = "must be absent where `fixed` is given";
            return Err(Error::field(format!("{field}.lastAffected"), message));
        }
        let introduced = self.introduced.as_deref().unwrap_or("0.0.0-0");
        let order = |end: &Option<String>| {
            let end = end.as_deref()?;
            versions::compare(ORDER, introduced, end)
        };
        if order(&self.fixed).is_some_and(|order| order.is_ge()) {
            let message = "must be later than `introduced`";
            return Err(Error::field(format!("{field}.fixed"), message));
        }
        if order(&self.last_affected).is_some_and(|order| order.is_gt()) {
            let message = "must not be before `introduced`";
            return Err(Error::field(format!("{field}.lastAffected"), message));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn affected(versions: serde_json::Value) -> Affected {
        let json = json!({"appUuid": Uuid::from_u128(7), "versions": versions});
        serde_json::from_value(json).expect("an app")
    }

    #[test]
    fn versions_are_judged_by_their_ranges() {
        let fixed = |version: &str| Verdict::Affected {
            fixed_in: Some(version.to_owned()),
        };
        let none = Verdict::Affected { fixed_in: None };
        for (versions, version, expected) in [
            (json!([]), "1.0.0", none.clone()),
            (json!([]), "nightly", none.clone()),
            (json!([{"fixed": "1.2.0"}]), "1.10.0", Verdict::NotAffected),
            (json!([{"fixed": "1.2.0"}]), "1.2.0-rc.1", fixed("1.2.0")),
            (
                json!([{"introduced": "1", "lastAffected": "1.2"}]),
                "1.2.0",
                none,
            ),
            (
                json!([{"introduced": "1.1.0"}]),
                "1.0.9",
                Verdict::NotAffected,
            ),
            (
                json!([{"fixed": "1.0.0"}, {"introduced": "2.0.0", "fixed": "2.1.0"}]),
                "2.0.5",
                fixed("2.1.0"),
            ),
            (json!([{"fixed": "1.2.0"}]), "nightly", Verdict::Undecided),
        ] {
            let one = affected(versions.clone());
            one.check("affected[0]").expect("ranges");
            assert_eq!(
                one.judge(version).expect("a verdict"),
                expected,
                "{versions}"
            );
        }
    }

    #[test]
    fn ranges_that_are_none_are_refused() {
        for wrong in [
            json!([{"introduced": "soon"}]),
            json!([{"introduced": "2.0.0", "fixed": "1.0.0"}]),
            json!([{"introduced": "1.0.0", "fixed": "1.0.0"}]),
            json!([{"introduced": "1.0.1", "lastAffected": "1.0.0"}]),
            json!([{"fixed": "1.0.0", "lastAffected": "1.0.0"}]),
            json!([{"fixed": "1".repeat(101)}]),
        ] {
            let one = affected(wrong.clone());
            one.check("affected[0]").expect_err(&wrong.to_string());
        }
        let neither = Affected {
            app_uuid: None,
            ..affected(json!([]))
        };
        neither
            .check("affected[0]")
            .expect_err("no app and no model");
    }
}
