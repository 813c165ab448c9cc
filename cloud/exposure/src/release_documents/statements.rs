//! What the maker of a release states: those statements of its OpenVEX that are about the release,
//! or about a component of it, each by every id that it names the vulnerability with.

use std::collections::{HashMap, HashSet};

use hub_advisories::purl;
use hub_advisories::vex::{self, Product};
use hub_protocol::{ReleaseUuid, Timestamp};

use crate::software::components::ListedComponent;
use crate::vulnerabilities::{Statement, VexJustification, VexStatus};

/// Ids of vulnerabilities that are kept of a document.
const MAX_IDS: usize = 20_000;
/// Texts that are kept with them.
const MAX_BYTES: usize = 32 * 1024 * 1024;

/// A release, and what it consists of.
pub struct Subject<'a> {
    pub release_uuid: ReleaseUuid,
    pub name: &'a str,
    pub version: &'a str,
    components: HashSet<(&'a str, &'a str, &'a str)>,
    /// Without their versions.
    packages: HashSet<(&'a str, &'a str)>,
    urls: HashSet<&'a str>,
    /// What its bill of materials is called by, or names it by: IRIs.
    names: HashSet<&'a str>,
}

impl<'a> Subject<'a> {
    pub fn new(
        release_uuid: ReleaseUuid,
        name: &'a str,
        version: &'a str,
        components: &'a [ListedComponent],
    ) -> Self {
        let mut subject = Self {
            release_uuid,
            name,
            version,
            components: HashSet::new(),
            packages: HashSet::new(),
            urls: HashSet::new(),
            names: HashSet::new(),
        };
        for component in components {
            subject.urls.extend(component.purl.as_deref());
            let Some(ecosystem) = component.ecosystem.as_deref().map(family) else {
                continue;
            };
            let own = (component.name.as_str(), component.version.as_str());
            let source = component.source.as_ref().map(|(name, version)| {
                let version = version.as_deref().unwrap_or(&component.version);
                (name.as_str(), version)
            });
            for (name, version) in std::iter::once(own).chain(source) {
                subject.components.insert((ecosystem, name, version));
                subject.packages.insert((ecosystem, name));
            }
        }
        subject
    }

    /// The same with the names that its bill of materials has.
    pub fn named(mut self, names: &'a [String]) -> Self {
        self.names.extend(names.iter().map(String::as_str));
        self
    }

    /// A product is the release, or of it the parts that it consists of; or is a component.
    fn is(&self, product: &Product) -> bool {
        let is_named = |id: &str| self.names.contains(id);
        let is_release = self.is_release(&product.name)
            || is_named(&product.name)
            || product.id.as_deref().is_some_and(is_named);
        match is_release {
            true => product.parts.is_empty() || product.parts.iter().any(|part| self.has(part)),
            false => self.has(&product.name),
        }
    }

    /// Whether a text names the release: `logger`, `logger@2.0.0`, or a package URL of that name.
    fn is_release(&self, text: &str) -> bool {
        if let Some((name, version)) = purl::name_of(text) {
            return name == self.name && version.is_none_or(|version| version == self.version);
        }
        match text.strip_prefix(self.name) {
            Some("") => true,
            Some(rest) => rest.strip_prefix('@') == Some(self.version),
            None => false,
        }
    }

    /// Whether a package URL names a component.
    fn has(&self, text: &str) -> bool {
        if self.urls.contains(text) {
            return true;
        }
        let Some(package) = purl::read(text) else {
            return false;
        };
        let ecosystem = package.ecosystem.name();
        match &package.version {
            Some(version) => {
                let of = (ecosystem, package.name.as_str(), version.as_str());
                self.components.contains(&of)
            }
            None => self.packages.contains(&(ecosystem, package.name.as_str())),
        }
    }
}

/// `Debian` of `Debian:12`.
fn family(ecosystem: &str) -> &str {
    ecosystem.split(':').next().unwrap_or(ecosystem)
}

/// The statements about a release, one for each id. A later one takes the place of an earlier one.
/// None: there are too many.
pub fn about(document: &vex::Document, subject: &Subject<'_>) -> Option<Vec<Statement>> {
    let mut found: HashMap<&str, Statement> = HashMap::new();
    let mut bytes = 0;
    for stated in &document.statements {
        let is_about =
            stated.products.is_empty() || stated.products.iter().any(|product| subject.is(product));
        if !is_about {
            continue;
        }
        let at = stated.timestamp.as_deref().unwrap_or(&document.timestamp);
        let at: Timestamp = at.parse().unwrap_or(Timestamp::from_micros(0));
        let ids = std::iter::once(&stated.vulnerability_id).chain(&stated.aliases);
        for id in ids {
            if found
                .get(id.as_str())
                .is_some_and(|other| other.updated_at > at)
            {
                continue;
            }
            let one = statement(document, stated, subject.release_uuid, id, at);
            let texts = [
                one.impact.as_deref(),
                one.action.as_deref(),
                Some(one.author.as_str()),
            ];
            bytes += texts.into_iter().flatten().map(str::len).sum::<usize>();
            found.insert(id, one);
            if found.len() > MAX_IDS || bytes > MAX_BYTES {
                return None;
            }
        }
    }
    Some(found.into_values().collect())
}

/// Products that are neither the release nor a component of it, up to `limit`.
pub fn unmatched(document: &vex::Document, subject: &Subject<'_>, limit: usize) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let products = document.statements.iter().flat_map(|one| &one.products);
    for product in products.filter(|product| !subject.is(product)) {
        if found.len() >= limit {
            break;
        }
        if !found.contains(&product.name) {
            found.push(product.name.clone());
        }
    }
    found
}

fn statement(
    document: &vex::Document,
    stated: &vex::Statement,
    release_uuid: ReleaseUuid,
    id: &str,
    at: Timestamp,
) -> Statement {
    let justification = stated.justification.map(vex::Justification::name);
    Statement {
        vulnerability_id: id.to_owned(),
        release_uuid: Some(release_uuid),
        status: match stated.status {
            vex::Status::NotAffected => VexStatus::NotAffected,
            vex::Status::Affected => VexStatus::Affected,
            vex::Status::Fixed => VexStatus::Fixed,
            vex::Status::UnderInvestigation => VexStatus::UnderInvestigation,
        },
        justification: justification.and_then(VexJustification::from_name),
        impact: stated.impact.clone(),
        action: stated.action.clone(),
        author: document.author.clone(),
        updated_at: at,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use uuid::Uuid;

    use super::*;

    fn document(statements: Value) -> vex::Document {
        let text = json!({
            "@context": "https://openvex.dev/ns/v0.2.0", "author": "Example Ltd.",
            "timestamp": "2026-01-01T00:00:00Z", "statements": statements,
        });
        vex::read(text.to_string().as_bytes()).expect("a document")
    }

    fn ids_about(products: &Value) -> usize {
        let components = [
            ListedComponent {
                ecosystem: Some("crates.io".to_owned()),
                name: "serde".to_owned(),
                version: "1.0.1".to_owned(),
                source: None,
                purl: Some("pkg:cargo/serde@1.0.1".to_owned()),
            },
            ListedComponent {
                ecosystem: Some("Debian:12".to_owned()),
                name: "libssl3".to_owned(),
                version: "3.0.11-1".to_owned(),
                source: Some(("openssl".to_owned(), None)),
                purl: None,
            },
        ];
        let names = [
            "urn:uuid:1".to_owned(),
            "https://example.com/app".to_owned(),
        ];
        let subject = Subject::new(ReleaseUuid(Uuid::nil()), "logger", "2.0.0", &components);
        let subject = subject.named(&names);
        let document = document(json!([{
            "vulnerability": {"name": "GHSA-1", "aliases": ["CVE-2026-1"]},
            "products": products, "status": "fixed",
        }]));
        let about = about(&document, &subject).expect("few").len();
        let unmatched = unmatched(&document, &subject, 1);
        assert!(about == 0 || unmatched.is_empty(), "{unmatched:?}");
        about
    }

    #[test]
    fn statement_is_about_the_release_or_a_component_of_it() {
        let product = |name: &str, parts: &[&str]| {
            let parts: Vec<Value> = parts.iter().map(|part| json!({"@id": part})).collect();
            json!([{"@id": name, "subcomponents": parts}])
        };
        for (products, is_about) in [
            (json!([]), true),
            (product("logger", &[]), true),
            (product("logger@2.0.0", &[]), true),
            (product("logger@2.0.1", &[]), false),
            (product("logger2", &[]), false),
            (product("pkg:generic/logger@2.0.0", &[]), true),
            (product("pkg:oci/logger", &[]), true),
            (product("pkg:generic/logger@1.9.9", &[]), false),
            (product("https://example.com/logger", &[]), false),
            (product("https://example.com/app", &[]), true),
            (product("urn:uuid:1", &["pkg:cargo/serde@1.0.1"]), true),
            (product("urn:uuid:1", &["pkg:cargo/serde@1.0.2"]), false),
            (
                json!([{"@id": "urn:uuid:1", "identifiers": {"purl": "pkg:generic/other@1"}}]),
                true,
            ),
            (product("logger", &["pkg:cargo/serde@1.0.1"]), true),
            (product("logger", &["pkg:cargo/serde"]), true),
            (product("logger", &["pkg:cargo/serde@1.0.2"]), false),
            (product("other", &["pkg:cargo/serde@1.0.1"]), false),
            (product("pkg:cargo/serde@1.0.1", &[]), true),
            (product("pkg:npm/serde@1.0.1", &[]), false),
            (product("pkg:deb/debian/openssl@3.0.11-1", &[]), true),
            (
                product("pkg:deb/debian/libssl3?distro=debian-12", &[]),
                true,
            ),
        ] {
            assert_eq!(
                ids_about(&products),
                if is_about { 2 } else { 0 },
                "{products}"
            );
        }
    }

    #[test]
    fn later_statement_counts() {
        let stated = |status: &str, at: &str| json!({"vulnerability": {"name": "CVE-2026-1"}, "status": status, "timestamp": at});
        let (early, late) = (
            stated("under_investigation", "2026-01-01T00:00:00Z"),
            stated("fixed", "2026-01-02T00:00:00Z"),
        );
        let subject = Subject::new(ReleaseUuid(Uuid::nil()), "logger", "2.0.0", &[]);
        for statements in [json!([early, late]), json!([late, early])] {
            let found = about(&document(statements), &subject).expect("few");
            let found: Vec<_> = found
                .iter()
                .map(|one| (one.status, one.author.as_str()))
                .collect();
            assert_eq!(found, [(VexStatus::Fixed, "Example Ltd.")]);
        }
    }
}
