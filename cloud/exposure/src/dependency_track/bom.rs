//! A list of packages, or of the components of a release, as a CycloneDX document.

use hub_protocol::packages::{Package, PackageList};
use serde_json::{Value, json};

use crate::purl::encoded;
use crate::software::components::ListedComponent;

const SPEC_VERSION: &str = "1.5";
/// Digits of a list's hash that name it.
const DIGITS: usize = 12;

/// The version of the project that a list is, such as `debian-12-9f86d081884c`.
pub fn version_of(list: &PackageList, sha256: &[u8]) -> String {
    let digits: String = hex::encode(sha256).chars().take(DIGITS).collect();
    [&list.distribution, &list.distribution_version, &digits]
        .into_iter()
        .filter(|part| !part.is_empty())
        .cloned()
        .collect::<Vec<_>>()
        .join("-")
}

/// The document.
pub fn document(list: &PackageList, project: &str, version: &str) -> Value {
    let component = |(index, package): (usize, &Package)| {
        json!({
            "type": "library",
            "bom-ref": format!("package-{index}"),
            "name": package.name,
            "version": package.version,
            "purl": purl(list, package),
        })
    };
    let components: Vec<Value> = list.packages.iter().enumerate().map(component).collect();
    json!({
        "bomFormat": "CycloneDX",
        "specVersion": SPEC_VERSION,
        "version": 1,
        "metadata": {"component": {
            "type": "operating-system",
            "bom-ref": "image",
            "name": project,
            "version": version,
        }},
        "components": components,
    })
}

/// The document of a release, of which the components are known.
pub fn of_components(components: &[ListedComponent], name: &str, version: &str) -> Value {
    let component = |(index, component): (usize, &ListedComponent)| {
        let mut written = json!({
            "type": "library",
            "bom-ref": format!("component-{index}"),
            "name": component.name,
            "version": component.version,
        });
        if let (Some(purl), Some(members)) = (component_purl(component), written.as_object_mut()) {
            members.insert("purl".to_owned(), json!(purl));
        }
        written
    };
    let components: Vec<Value> = components.iter().enumerate().map(component).collect();
    json!({
        "bomFormat": "CycloneDX",
        "specVersion": SPEC_VERSION,
        "version": 1,
        "metadata": {"component": {
            "type": "application",
            "bom-ref": "release",
            "name": name,
            "version": version,
        }},
        "components": components,
    })
}

/// The package URL of a component: as its document has it, or else by its ecosystem.
fn component_purl(component: &ListedComponent) -> Option<String> {
    if component.purl.is_some() {
        return component.purl.clone();
    }
    // Slashes separate the parts of a name.
    let name: Vec<String> = component.name.split('/').map(encoded).collect();
    let (name, version) = (name.join("/"), encoded(&component.version));
    let kind = match component.ecosystem.as_deref()? {
        "crates.io" => "cargo",
        "PyPI" => "pypi",
        "npm" => "npm",
        "Go" => "golang",
        debian => {
            let release = debian.strip_prefix("Debian")?;
            let mut purl = format!("pkg:deb/debian/{name}@{version}");
            let distro = release
                .strip_prefix(':')
                .map(|release| format!("debian-{release}"));
            let upstream = component.source.as_ref().map(|(source, version)| {
                let version = version.as_deref().unwrap_or(&component.version);
                format!("{source}@{version}")
            });
            let qualifiers = [("distro", distro), ("upstream", upstream)];
            let qualifiers: Vec<String> = qualifiers
                .into_iter()
                .filter_map(|(key, value)| Some(format!("{key}={}", encoded(&value?))))
                .collect();
            if !qualifiers.is_empty() {
                purl.push('?');
                purl.push_str(&qualifiers.join("&"));
            }
            return Some(purl);
        }
    };
    Some(format!("pkg:{kind}/{name}@{version}"))
}

/// The package URL of an installed package, which names its source package, too.
fn purl(list: &PackageList, package: &Package) -> String {
    let mut qualifiers = Vec::new();
    if let Some(architecture) = &package.architecture {
        qualifiers.push(format!("arch={}", encoded(architecture)));
    }
    let release = match list.distribution_version.is_empty() {
        true => list.distribution.clone(),
        false => format!("{}-{}", list.distribution, list.distribution_version),
    };
    qualifiers.push(format!("distro={}", encoded(&release)));
    if package.source.is_some() || package.source_version.is_some() {
        let source = package.source.as_ref().unwrap_or(&package.name);
        let version = package.source_version.as_ref().unwrap_or(&package.version);
        let upstream = encoded(&format!("{source}@{version}"));
        qualifiers.push(format!("upstream={upstream}"));
    }
    format!(
        "pkg:deb/{}/{}@{}?{}",
        encoded(&list.distribution.to_lowercase()),
        encoded(&package.name),
        encoded(&package.version),
        qualifiers.join("&")
    )
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
    fn packages_are_components_with_their_sources() {
        let library = Package {
            source: Some("gcc-12".to_owned()),
            ..package("libstdc++6", "12.2.0-14")
        };
        let list = PackageList {
            distribution: "debian".to_owned(),
            distribution_version: "12".to_owned(),
            packages: vec![package("git", "1:2.39.5-0+deb12u1"), library],
        };
        let version = version_of(&list, &[0x9f; 32]);
        assert_eq!(version, "debian-12-9f9f9f9f9f9f");
        let document = document(&list, "hubs", &version);
        let urls: Vec<&str> = document["components"]
            .as_array()
            .expect("components")
            .iter()
            .filter_map(|one| one["purl"].as_str())
            .collect();
        assert_eq!(
            urls,
            [
                "pkg:deb/debian/git@1%3A2.39.5-0%2Bdeb12u1?arch=arm64&distro=debian-12",
                "pkg:deb/debian/libstdc%2B%2B6@12.2.0-14?arch=arm64&distro=debian-12\
                 &upstream=gcc-12%4012.2.0-14",
            ]
        );
        assert_eq!(document["metadata"]["component"]["version"], version);
    }

    #[test]
    fn components_have_the_url_of_their_ecosystem() {
        let component = |ecosystem: Option<&str>, name: &str| ListedComponent {
            ecosystem: ecosystem.map(str::to_owned),
            name: name.to_owned(),
            version: "1.2-3".to_owned(),
            source: None,
            purl: None,
        };
        let library = ListedComponent {
            source: Some(("openssl".to_owned(), None)),
            ..component(Some("Debian:12"), "libssl3")
        };
        let declared = ListedComponent {
            purl: Some("pkg:cargo/serde@1.0.1".to_owned()),
            ..component(Some("crates.io"), "serde")
        };
        let components = [
            component(Some("npm"), "@a/b"),
            component(Some("Go"), "github.com/a/b"),
            library,
            declared,
            component(None, "something"),
        ];
        let document = of_components(&components, "logger", "1.0.0");
        let urls: Vec<&Value> = document["components"]
            .as_array()
            .expect("components")
            .iter()
            .map(|one| &one["purl"])
            .collect();
        assert_eq!(
            urls,
            [
                &json!("pkg:npm/%40a/b@1.2-3"),
                &json!("pkg:golang/github.com/a/b@1.2-3"),
                &json!("pkg:deb/debian/libssl3@1.2-3?distro=debian-12&upstream=openssl%401.2-3"),
                &json!("pkg:cargo/serde@1.0.1"),
                &Value::Null,
            ]
        );
        assert_eq!(document["metadata"]["component"]["name"], "logger");
    }

    #[test]
    fn list_of_an_unknown_release_has_a_version() {
        let list = PackageList {
            distribution: "debian".to_owned(),
            ..PackageList::default()
        };
        assert_eq!(version_of(&list, &[1, 2]), "debian-0102");
    }
}
