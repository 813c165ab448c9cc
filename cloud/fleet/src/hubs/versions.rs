//! Which versions of the agent a list of hubs is narrowed to.

use semver::Version;

/// A condition for versions. `<1.4`, `<=1.4.2`, `>1.4`, `>=1.4`: by precedence, where missing
/// numbers are 0. `1.4` alone: that version, and those that begin with it.
pub struct VersionFilter {
    sign: Sign,
    text: String,
    version: Version,
}

#[derive(Clone, Copy)]
enum Sign {
    Below,
    AtMost,
    Above,
    AtLeast,
    Is,
}

impl VersionFilter {
    /// None for a text that is no version.
    pub fn parse(text: &str) -> Option<Self> {
        const SIGNS: [(&str, Sign); 4] = [
            ("<=", Sign::AtMost),
            (">=", Sign::AtLeast),
            ("<", Sign::Below),
            (">", Sign::Above),
        ];
        let signed = SIGNS
            .iter()
            .find_map(|(written, sign)| Some((*sign, text.strip_prefix(written)?)));
        let (sign, rest) = signed.unwrap_or((Sign::Is, text));
        let rest = rest.trim();
        Some(Self {
            sign,
            text: rest.to_owned(),
            version: padded(rest)?,
        })
    }

    /// Versions that are none fit only what they are equal to.
    pub fn fits(&self, version: &str) -> bool {
        if matches!(self.sign, Sign::Is) {
            let rest = version.strip_prefix(self.text.as_str());
            return rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '-', '+']));
        }
        let Ok(version) = Version::parse(version) else {
            return false;
        };
        let order = version.cmp_precedence(&self.version);
        match self.sign {
            Sign::Below => order.is_lt(),
            Sign::AtMost => order.is_le(),
            Sign::Above => order.is_gt(),
            Sign::AtLeast => order.is_ge(),
            Sign::Is => false,
        }
    }
}

/// A version whose last numbers may be missing.
fn padded(text: &str) -> Option<Version> {
    ["", ".0", ".0.0"]
        .iter()
        .find_map(|rest| Version::parse(&format!("{text}{rest}")).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_by_precedence() {
        let fits =
            |filter: &str, version: &str| VersionFilter::parse(filter).expect(filter).fits(version);
        let cases: [(&str, &[&str], &[&str]); 6] = [
            (
                "<1.4",
                &["1.3.9", "0.9.0", "1.4.0-beta.1"],
                &["1.4.0", "1.10.0", "unknown"],
            ),
            ("<=1.4.2", &["1.4.2", "1.4.2+build"], &["1.4.3"]),
            (">1.4", &["1.4.1", "1.10.0"], &["1.4.0", "1.3.9"]),
            (">= 1.4", &["1.4.0"], &["1.4.0-beta.1"]),
            ("1.4", &["1.4.0", "1.4.7"], &["1.40.0", "1.3.0"]),
            ("1", &["1.4.0"], &["10.0.0", "0.1.0"]),
        ];
        for (filter, fitting, others) in cases {
            for version in fitting {
                assert!(fits(filter, version), "{filter} {version}");
            }
            for version in others {
                assert!(!fits(filter, version), "{filter} {version}");
            }
        }
        for text in ["", "<", "a", "1.x", "1.2.3.4", "=1"] {
            assert!(VersionFilter::parse(text).is_none(), "{text}");
        }
    }
}
