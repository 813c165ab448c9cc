//! What is kept of a record.

use super::ranges::Ranges;
use super::severity::Severity;

#[derive(Clone, Debug, PartialEq)]
pub struct Advisory {
    pub id: String,
    /// The ids of the same vulnerability, and of those that it is published for.
    pub aliases: Vec<String>,
    pub title: String,
    pub severity: Severity,
    /// Of its CVSS vector.
    pub score: Option<f64>,
    pub published: Option<String>,
    pub modified: String,
    pub withdrawn: bool,
    /// Packages of which versions are affected, without those that only commits are named of.
    pub affected: Vec<Affected>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Affected {
    /// As in OSV, such as `Debian:12`.
    pub ecosystem: String,
    /// As components name it: of PyPI in its normalized form, of npm and Go in lower case. For
    /// Debian, the source package.
    pub package: String,
    pub ranges: Ranges,
}

impl Advisory {
    /// The CVE that this is an advisory of, else its own id: it may be of several CVEs at once.
    pub fn vulnerability_id(&self) -> &str {
        if let Some(id) = cve(&self.id) {
            return id;
        }
        let mut others = self.aliases.iter().filter_map(|alias| cve(alias));
        match others.next() {
            Some(first) if others.all(|other| other == first) => first,
            _ => &self.id,
        }
    }
}

/// The CVE that an id is or ends with, such as that of `DEBIAN-CVE-2024-1`.
fn cve(id: &str) -> Option<&str> {
    let start = id.find("CVE-")?;
    let (prefix, cve) = id.split_at_checked(start)?;
    let (year, number) = cve.strip_prefix("CVE-")?.split_once('-')?;
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let is_whole = prefix.is_empty() || prefix.ends_with('-');
    (is_whole && year.len() == 4 && is_number(year) && is_number(number)).then_some(cve)
}
