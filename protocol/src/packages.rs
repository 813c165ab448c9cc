//! The software of a hub: its packages, which hubs that are alike share by hash, and what differs
//! from hub to hub.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The most packages of a list.
pub const MAX_PACKAGES: usize = 20_000;

/// `POST /v1/hubs/{hubUuid}/packages`: sent when it differs from what was last reported.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct SoftwareReport {
    /// The SHA-256 of `canonical` of the list, in hexadecimal digits.
    #[cfg_attr(
        feature = "schema",
        schemars(length(min = 64, max = 64), regex(pattern = "^[0-9a-f]{64}$"))
    )]
    pub packages_sha256: String,
    /// The list. It may be absent at first: the answer says whether the service lacks it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub package_list: Option<PackageList>,
    /// The release of the running kernel, such as `6.1.0-18-arm64`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(length(max = 200), regex(pattern = crate::patterns::LINE)))]
    pub kernel: Option<String>,
    /// The version of `bluetoothd`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(length(max = 200), regex(pattern = crate::patterns::LINE)))]
    pub bluez: Option<String>,
    /// The version of the agent.
    #[cfg_attr(feature = "schema", schemars(length(min = 1, max = 200), regex(pattern = crate::patterns::FILLED_LINE)))]
    pub agent: String,
    /// The firmware of adapters by their addresses, as far as the kernel shows it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[cfg_attr(feature = "schema", schemars(length(max = 64)))]
    pub adapter_firmware: BTreeMap<String, String>,
}

/// The packages of an image.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct PackageList {
    /// `ID` of os-release, such as `debian`.
    #[cfg_attr(feature = "schema", schemars(length(min = 1, max = 64), regex(pattern = crate::patterns::FILLED_LINE)))]
    pub distribution: String,
    /// `VERSION_ID` of os-release, such as `12`; empty where there is none.
    #[cfg_attr(feature = "schema", schemars(length(max = 64), regex(pattern = crate::patterns::LINE)))]
    pub distribution_version: String,
    /// The installed packages by name, and by architecture where one is installed for several.
    #[cfg_attr(feature = "schema", schemars(length(max = MAX_PACKAGES)))]
    pub packages: Vec<Package>,
}

/// An installed package of the distribution.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Package {
    /// The name of the binary package.
    #[cfg_attr(feature = "schema", schemars(length(min = 1, max = 200), regex(pattern = crate::patterns::FILLED_LINE)))]
    pub name: String,
    /// The version, with its epoch and revision.
    #[cfg_attr(feature = "schema", schemars(length(min = 1, max = 200), regex(pattern = crate::patterns::FILLED_LINE)))]
    pub version: String,
    /// The architecture.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(length(max = 64), regex(pattern = crate::patterns::LINE)))]
    pub architecture: Option<String>,
    /// The source package, where it has another name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(length(max = 200), regex(pattern = crate::patterns::LINE)))]
    pub source: Option<String>,
    /// The version of the source package, where it is another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(length(max = 200), regex(pattern = crate::patterns::LINE)))]
    pub source_version: Option<String>,
}

/// The answer to a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct SoftwareReportResult {
    /// Whether the service lacks the list, so that the report is to be sent again with it.
    pub package_list_wanted: bool,
}

impl PackageList {
    /// The list as bytes, the same for the same packages in any order: what its hash is of. A line
    /// of the distribution is followed by a line for each package, sorted, whose fields are
    /// separated by tabs.
    pub fn canonical(&self) -> Vec<u8> {
        let mut packages: Vec<&Package> = self.packages.iter().collect();
        packages.sort_unstable();
        packages.dedup();
        let mut text = format!("{}\t{}\n", self.distribution, self.distribution_version);
        for package in packages {
            let fields = [
                Some(&package.name),
                Some(&package.version),
                package.architecture.as_ref(),
                package.source.as_ref(),
                package.source_version.as_ref(),
            ];
            for (at, field) in fields.into_iter().enumerate() {
                if at > 0 {
                    text.push('\t');
                }
                text.push_str(field.map_or("", String::as_str));
            }
            text.push('\n');
        }
        text.into_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(name: &str, version: &str) -> Package {
        Package {
            name: name.to_owned(),
            version: version.to_owned(),
            architecture: Some("arm64".to_owned()),
            source: None,
            source_version: None,
        }
    }

    #[test]
    fn lists_of_the_same_packages_have_the_same_bytes() {
        let list = |packages: Vec<Package>| PackageList {
            distribution: "debian".to_owned(),
            distribution_version: "12".to_owned(),
            packages,
        };
        let one = list(vec![
            package("bluez", "5.66-1"),
            package("bash", "5.2.15-2"),
        ]);
        let other = list(vec![
            package("bash", "5.2.15-2"),
            package("bluez", "5.66-1"),
            package("bash", "5.2.15-2"),
        ]);
        assert_eq!(one.canonical(), other.canonical());
        let text = String::from_utf8(one.canonical()).unwrap_or_default();
        assert_eq!(
            text,
            "debian\t12\nbash\t5.2.15-2\tarm64\t\t\nbluez\t5.66-1\tarm64\t\t\n"
        );
        let newer = list(vec![package("bluez", "5.66-1+deb12u1")]);
        assert_ne!(newer.canonical(), one.canonical());
    }
}
