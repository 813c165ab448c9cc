//! What a package URL says of a package.

use packageurl::PackageUrl;

use crate::versions::Ecosystem;

/// Debian's releases by name, as some programs write them.
const DEBIAN_RELEASES: [(&str, &str); 8] = [
    ("jessie", "8"),
    ("stretch", "9"),
    ("buster", "10"),
    ("bullseye", "11"),
    ("bookworm", "12"),
    ("trixie", "13"),
    ("forky", "14"),
    ("duke", "15"),
];

/// A package of an ecosystem.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Package {
    pub ecosystem: Ecosystem,
    /// Such as `Debian:12`.
    pub distribution: Option<String>,
    pub name: String,
    pub version: Option<String>,
    /// Name and version of the source package of Debian.
    pub source: Option<(String, Option<String>)>,
}

/// The name that a package URL of any kind has, in lower case, and its version. None: it is none.
pub fn name_of(text: &str) -> Option<(String, Option<String>)> {
    let url: PackageUrl = text.parse().ok()?;
    Some((url.name().to_lowercase(), url.version().map(str::to_owned)))
}

/// None: no package URL, or not of an ecosystem whose versions have an order here.
pub fn read(text: &str) -> Option<Package> {
    let url: PackageUrl = text.parse().ok()?;
    let ecosystem = match (url.ty(), url.namespace()) {
        ("cargo", _) => Ecosystem::CratesIo,
        ("pypi", _) => Ecosystem::PyPi,
        ("npm", _) => Ecosystem::Npm,
        ("golang", _) => Ecosystem::Go,
        ("deb", Some("debian")) => Ecosystem::Debian,
        _ => return None,
    };
    let name = match url.namespace() {
        Some(namespace) if matches!(ecosystem, Ecosystem::Npm | Ecosystem::Go) => {
            format!("{namespace}/{}", url.name())
        }
        _ => url.name().to_owned(),
    };
    let package = Package {
        ecosystem,
        distribution: None,
        name: ecosystem.package_name(&name),
        version: url.version().map(str::to_owned),
        source: None,
    };
    Some(match ecosystem {
        Ecosystem::Debian => package.with_qualifiers(&url),
        _ => package,
    })
}

impl Package {
    /// Debian's `distro=debian-12.5&epoch=1&upstream=glibc@2.36-9`.
    fn with_qualifiers(mut self, url: &PackageUrl) -> Self {
        let qualifier = |key: &str| url.qualifiers().get(key).map(|value| value.as_ref());
        if let (Some(epoch), Some(version)) = (qualifier("epoch"), &mut self.version)
            && !version.contains(':')
        {
            *version = format!("{epoch}:{version}");
        }
        self.distribution = qualifier("distro").and_then(debian_release);
        self.source = qualifier("upstream").map(|upstream| match upstream.split_once('@') {
            Some((name, version)) => (name.to_owned(), Some(version.to_owned())),
            None => (upstream.to_owned(), None),
        });
        self
    }
}

fn debian_release(distro: &str) -> Option<String> {
    let release = distro.strip_prefix("debian-").unwrap_or(distro);
    let named = DEBIAN_RELEASES.iter().find(|(name, _)| *name == release);
    let number = match named {
        Some((_, number)) => number,
        None => release.split('.').next()?,
    };
    let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| format!("Debian:{number}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_have_the_names_of_their_ecosystem() {
        for (url, ecosystem, name, version) in [
            (
                "pkg:cargo/serde@1.0.200",
                Ecosystem::CratesIo,
                "serde",
                Some("1.0.200"),
            ),
            (
                "pkg:pypi/Zope.Interface@5",
                Ecosystem::PyPi,
                "zope-interface",
                Some("5"),
            ),
            (
                "pkg:npm/%40Angular/core@16.0.0",
                Ecosystem::Npm,
                "@angular/core",
                Some("16.0.0"),
            ),
            ("pkg:npm/left-pad", Ecosystem::Npm, "left-pad", None),
            (
                "pkg:golang/github.com/Masterminds/goutils@v1.1.0#cmd",
                Ecosystem::Go,
                "github.com/masterminds/goutils",
                Some("v1.1.0"),
            ),
        ] {
            let package = read(url).expect("a package");
            let found = (
                package.ecosystem,
                package.name.as_str(),
                package.version.as_deref(),
            );
            assert_eq!(found, (ecosystem, name, version), "{url}");
        }
        for url in [
            "",
            "serde",
            "pkg:",
            "pkg:cargo",
            "pkg:deb/ubuntu/curl@7",
            "pkg:rpm/fedora/curl@7",
        ] {
            assert!(read(url).is_none(), "{url}");
        }
    }

    #[test]
    fn a_package_of_debian_has_release_and_source() {
        let release = |distro: &str| {
            let package = read(&format!("pkg:deb/debian/curl@7.88.1-10?distro={distro}"));
            package.expect("a package").distribution
        };
        for distro in ["debian-12", "debian-12.5", "bookworm", "12"] {
            assert_eq!(release(distro).as_deref(), Some("Debian:12"));
        }
        for distro in ["sid", "debian-", "ubuntu-22.04", "%0A12"] {
            assert_eq!(release(distro), None);
        }
        for (qualifiers, version, source) in [
            ("", "2.36-9%2Bdeb12u4", None),
            ("?upstream=glibc", "2.36-9%2Bdeb12u4", Some(("glibc", None))),
            (
                "?arch=amd64&epoch=1&upstream=glibc%401:2.36-9&distro=debian-12",
                "2.36-9%2Bdeb12u4",
                Some(("glibc", Some("1:2.36-9"))),
            ),
        ] {
            let url = format!("pkg:deb/debian/libc6@{version}{qualifiers}");
            let package = read(&url).expect("a package");
            let epoch = if url.contains("epoch") { "1:" } else { "" };
            assert_eq!(package.version, Some(format!("{epoch}2.36-9+deb12u4")));
            let found = package.source.as_ref();
            let found = found.map(|(name, version)| (name.as_str(), version.as_deref()));
            assert_eq!(found, source);
        }
    }
}
