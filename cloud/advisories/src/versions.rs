//! The order of versions in each ecosystem.

use std::cmp::Ordering;

/// Longer texts are no versions: comparing takes time with their length.
const MAX_VERSION_BYTES: usize = 500;

/// Where packages come from, and so how their versions are ordered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Ecosystem {
    Debian,
    CratesIo,
    PyPi,
    Npm,
    Go,
}

impl Ecosystem {
    /// The ecosystem that OSV names so: `Debian:12` is a release of Debian.
    pub fn of(osv_ecosystem: &str) -> Option<Self> {
        Some(match osv_ecosystem {
            "crates.io" => Self::CratesIo,
            "PyPI" => Self::PyPi,
            "npm" => Self::Npm,
            "Go" => Self::Go,
            _ => {
                let release = osv_ecosystem.strip_prefix("Debian")?;
                let is_debian = release.is_empty() || release.starts_with(':');
                is_debian.then_some(Self::Debian)?
            }
        })
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Debian => "Debian",
            Self::CratesIo => "crates.io",
            Self::PyPi => "PyPI",
            Self::Npm => "npm",
            Self::Go => "Go",
        }
    }

    /// A package's name in the form in which all its spellings are equal.
    pub(crate) fn package_name(self, name: &str) -> String {
        match self {
            // PEP 503: runs of separators are one hyphen.
            Self::PyPi => {
                let parts = name.split(['-', '_', '.']).filter(|part| !part.is_empty());
                parts.collect::<Vec<_>>().join("-").to_ascii_lowercase()
            }
            // Package URLs have these in lower case, and not all programs keep to it.
            Self::Npm | Self::Go => name.to_lowercase(),
            Self::Debian | Self::CratesIo => name.to_owned(),
        }
    }
}

/// How one version is to the other. None: one of them is no version of that ecosystem.
pub fn compare(ecosystem: Ecosystem, one: &str, other: &str) -> Option<Ordering> {
    let one = Version::read(ecosystem, one)?;
    one.compare(&Version::read(ecosystem, other)?)
}

/// A version that was read once, to be compared with many.
pub(crate) enum Version {
    Debian(debversion::Version),
    Semantic(semver::Version),
    Python(pep440_rs::Version),
}

impl Version {
    pub fn read(ecosystem: Ecosystem, text: &str) -> Option<Self> {
        let text = text.trim();
        if text.is_empty() || text.len() > MAX_VERSION_BYTES {
            return None;
        }
        match ecosystem {
            Ecosystem::Debian => debian(text).map(Self::Debian),
            Ecosystem::CratesIo | Ecosystem::Npm | Ecosystem::Go => {
                semantic(text).map(Self::Semantic)
            }
            Ecosystem::PyPi => text.parse().ok().map(Self::Python),
        }
    }

    /// None if they are of different ecosystems.
    pub fn compare(&self, other: &Self) -> Option<Ordering> {
        match (self, other) {
            (Self::Debian(one), Self::Debian(other)) => Some(one.cmp(other)),
            (Self::Semantic(one), Self::Semantic(other)) => Some(one.cmp_precedence(other)),
            (Self::Python(one), Self::Python(other)) => Some(one.cmp(other)),
            _ => None,
        }
    }
}

/// `epoch:upstream-revision`. The library's own reader is slower, and accepts empty
/// parts, which dpkg refuses.
fn debian(text: &str) -> Option<debversion::Version> {
    let (epoch, rest) = match text.split_once(':') {
        Some((epoch, rest)) => (Some(epoch), rest),
        None => (None, text),
    };
    let (upstream, revision) = match rest.rsplit_once('-') {
        Some((upstream, revision)) => (upstream, Some(revision)),
        None => (rest, None),
    };
    if epoch.is_some_and(|epoch| !epoch.bytes().all(|byte| byte.is_ascii_digit())) {
        return None;
    }
    Some(debversion::Version {
        epoch: epoch.map(str::parse).transpose().ok()?,
        upstream_version: debian_part(upstream)?,
        debian_revision: match revision {
            Some(revision) => Some(debian_part(revision)?),
            None => None,
        },
    })
}

/// For dpkg an absent number is zero, for the library it is less: a part ends with a number here.
fn debian_part(text: &str) -> Option<String> {
    // Old versions have underscores, which today's rules forbid.
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b".+:~_-".contains(&byte);
    if text.is_empty() || !text.bytes().all(is_part) {
        return None;
    }
    let mut part = text.to_owned();
    if !part.ends_with(|last: char| last.is_ascii_digit()) {
        part.push('0');
    }
    Some(part)
}

/// `v1.2.3`, and the shorter forms that advisories use: `1.2` is `1.2.0`.
fn semantic(text: &str) -> Option<semver::Version> {
    let text = text.strip_prefix(['v', 'V']).unwrap_or(text);
    let numbers = text.split(['-', '+']).next()?;
    let rest = text.strip_prefix(numbers)?;
    let padding = match numbers.matches('.').count() {
        0 => ".0.0",
        1 => ".0",
        _ => "",
    };
    semver::Version::parse(&format!("{numbers}{padding}{rest}")).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Versions in rising order; those of one line are equal.
    fn assert_rising(ecosystem: Ecosystem, lines: &[&[&str]]) {
        let all = || {
            let numbered = lines.iter().enumerate();
            numbered.flat_map(|(line, equal)| equal.iter().map(move |version| (line, *version)))
        };
        for (line, one) in all() {
            for (other_line, other) in all() {
                assert_eq!(
                    compare(ecosystem, one, other),
                    Some(line.cmp(&other_line)),
                    "{one} and {other}"
                );
            }
        }
    }

    #[test]
    fn debian_orders_as_dpkg_does() {
        assert_rising(
            Ecosystem::Debian,
            &[
                &["0~~", "0~~-0"],
                &["0~~a"],
                &["0~"],
                &["0", "0-0", "0:0-00", "000"],
                &["0a", "0a0", "0a-0"],
                &["0+", "0+0"],
                &["0."],
                &["1.0~beta1~svn1245"],
                &["1.0~beta1"],
                &["1.0~rc1"],
                &["1.0", "1.0-0", "0:1.0", "1.00"],
                &["1.0-1~deb12u1"],
                &["1.0-1", "1.0-01"],
                &["1.0-1+b1"],
                &["1.0-1+deb12u1"],
                &["1.0-1+deb12u2"],
                &["1.0-1+deb12u10"],
                &["1.0-1.1"],
                &["1.0-2"],
                &["1.0+dfsg-1"],
                &["1.0-1-1", "1.0-1-01"],
                &["1.0.1"],
                &["1.2_PRE3-1"],
                &["1.10"],
                &["9999999999999999999999999"],
                &["9999999999999999999999999.1"],
                &["1:0.1"],
                &["2:0.0~"],
            ],
        );
        for text in [
            "",
            " ",
            "a b",
            "1:",
            "1-",
            "x:1",
            "1.0-1\n2",
            "ü",
            "99999999999:1",
        ] {
            assert_eq!(compare(Ecosystem::Debian, text, "1"), None, "{text:?}");
        }
    }

    #[test]
    fn debian_versions_of_few_characters_have_one_order() {
        let mut texts = vec![String::new()];
        for _ in 0..3 {
            let longer = texts.iter().flat_map(|text| {
                ["0", "1", "a", "~", "+", ".", "-"].map(|character| format!("{text}{character}"))
            });
            texts = texts
                .iter()
                .cloned()
                .chain(longer.collect::<Vec<_>>())
                .collect();
            texts.sort();
            texts.dedup();
        }
        let read = |text: &String| Version::read(Ecosystem::Debian, text);
        let mut versions: Vec<Version> = texts.iter().filter_map(read).collect();
        assert!(versions.len() > 250);
        versions.sort_by(|one, other| one.compare(other).expect("of one ecosystem"));
        for (at, one) in versions.iter().enumerate() {
            for later in versions.iter().skip(at) {
                let order = one.compare(later).expect("of one ecosystem");
                assert!(order.is_le());
                assert_eq!(later.compare(one), Some(order.reverse()));
            }
        }
    }

    #[test]
    fn semantic_versions_order_by_precedence() {
        let published: [&[&str]; 12] = [
            &["1.0.0-alpha"],
            &["1.0.0-alpha.1"],
            &["1.0.0-alpha.beta"],
            &["1.0.0-beta"],
            &["1.0.0-beta.2"],
            &["1.0.0-beta.11"],
            &["1.0.0-rc.1"],
            &[
                "1.0.0",
                "v1.0.0",
                "1",
                "1.0",
                "1.0.0+20130313144700",
                "1.0.0+incompatible",
            ],
            &["1.9.0"],
            &["1.10.0"],
            &["2.0.0-0", "2-0"],
            &["2.0.0"],
        ];
        for ecosystem in [Ecosystem::CratesIo, Ecosystem::Npm, Ecosystem::Go] {
            assert_rising(ecosystem, &published);
            for text in [
                "", "v", "latest", "1.2.3.4", "01.2.3", "1..2", "-1", "1.2.x", "go1.21",
            ] {
                assert_eq!(compare(ecosystem, text, "1.0.0"), None, "{text:?}");
            }
        }
    }

    #[test]
    fn pseudo_versions_of_go_are_before_the_release_they_lead_to() {
        assert_rising(
            Ecosystem::Go,
            &[
                &["v0.0.0-20190101000000-abcdefabcdef"],
                &["v0.0.0-20200101000000-0123456789ab"],
                &["v1.2.2"],
                &["v1.2.3-0.20191109021931-daa7c04131f5"],
                &["v1.2.3-pre"],
                &["v1.2.3-pre.0.20191109021931-daa7c04131f5"],
                &["v1.2.3"],
            ],
        );
    }

    #[test]
    fn python_orders_as_pep_440_says() {
        assert_rising(
            Ecosystem::PyPi,
            &[
                &["1.dev0", "1.0.dev0", "1.0dev"],
                &["1.0.dev456"],
                &["1.0a1", "1.0alpha1", "1.0-a.1"],
                &["1.0a2.dev456"],
                &["1.0a12.dev456"],
                &["1.0a12"],
                &["1.0b1.dev456"],
                &["1.0b2"],
                &["1.0b2.post345.dev456"],
                &["1.0b2.post345"],
                &["1.0rc1.dev456", "1.0c1.dev456"],
                &["1.0rc1"],
                &["1.0", "1", "1.0.0", "v1.0"],
                &["1.0+abc.5"],
                &["1.0+abc.7"],
                &["1.0+5"],
                &["1.0.post456.dev34"],
                &["1.0.post456", "1.0-456"],
                &["1.0.15"],
                &["1.1.dev1"],
                &["1!0.1"],
            ],
        );
        for text in [
            "",
            "2004d",
            "1.0-SNAPSHOT",
            "latest",
            "99999999999999999999999",
        ] {
            assert_eq!(compare(Ecosystem::PyPi, text, "1"), None, "{text:?}");
        }
    }

    #[test]
    fn a_version_of_any_length_is_compared_or_refused() {
        let digits = "1".repeat(MAX_VERSION_BYTES);
        assert!(compare(Ecosystem::Debian, &digits, "1").is_some());
        for ecosystem in [Ecosystem::Debian, Ecosystem::Npm, Ecosystem::PyPi] {
            assert_eq!(compare(ecosystem, &format!("{digits}1"), "1"), None);
        }
    }

    #[test]
    fn ecosystems_are_named_as_in_osv() {
        for ecosystem in [
            Ecosystem::Debian,
            Ecosystem::CratesIo,
            Ecosystem::PyPi,
            Ecosystem::Npm,
            Ecosystem::Go,
        ] {
            assert_eq!(Ecosystem::of(ecosystem.name()), Some(ecosystem));
        }
        assert_eq!(Ecosystem::of("Debian:12"), Some(Ecosystem::Debian));
        for other in ["DebianX", "debian", "Ubuntu:22.04", "npm:1", ""] {
            assert_eq!(Ecosystem::of(other), None, "{other:?}");
        }
        assert_eq!(
            Ecosystem::PyPi.package_name("Zope.__Interface"),
            "zope-interface"
        );
        assert_eq!(Ecosystem::Npm.package_name("@Scope/a_b"), "@scope/a_b");
    }
}
