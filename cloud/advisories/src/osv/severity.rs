//! How severe a vulnerability is: of its CVSS vector, or of a word.

use std::fmt;

/// The longest vector of CVSS 4.0 with all its metrics is shorter.
const MAX_VECTOR_BYTES: usize = 300;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    #[default]
    Unknown,
    None,
    Low,
    Medium,
    High,
    Critical,
}

impl Severity {
    pub fn name(self) -> &'static str {
        match self {
            Self::Unknown => "UNKNOWN",
            Self::None => "NONE",
            Self::Low => "LOW",
            Self::Medium => "MEDIUM",
            Self::High => "HIGH",
            Self::Critical => "CRITICAL",
        }
    }

    /// Of the words of databases, among them the urgencies of Debian.
    pub(super) fn of_word(word: &str) -> Self {
        // Debian's stars say that nobody has looked at it.
        match word.trim_end_matches('*').to_ascii_lowercase().as_str() {
            "none" | "unimportant" => Self::None,
            "low" => Self::Low,
            "medium" | "moderate" => Self::Medium,
            "high" | "important" => Self::High,
            "critical" => Self::Critical,
            _ => Self::Unknown,
        }
    }
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The severity of a vector of CVSS 3.0, 3.1 or 4.0; None if it is none.
pub fn of_vector(vector: &str) -> Option<Severity> {
    score(vector).map(rating)
}

/// The score of a vector of CVSS 3.0, 3.1 or 4.0, from 0 to 10: for 3.x that of its base metrics.
pub(super) fn score(vector: &str) -> Option<f64> {
    if vector.len() > MAX_VECTOR_BYTES {
        return None;
    }
    match vector.parse().ok()? {
        cvss::Cvss::CvssV30(mut vector) | cvss::Cvss::CvssV31(mut vector) => {
            // The library reads vectors without some of the base metrics, too.
            vector.av?;
            vector.ac?;
            vector.pr?;
            vector.ui?;
            vector.s?;
            vector.c?;
            vector.i?;
            vector.a?;
            // The rounding of 3.1 differs from that of 3.0 only in being exact.
            vector.minor_version = 1;
            Some(vector.base_score().value())
        }
        cvss::Cvss::CvssV40(vector) => Some(vector.score().value()),
        _ => None,
    }
}

/// The rating scale is the same in CVSS 3 and 4.
pub(super) fn rating(score: f64) -> Severity {
    match score {
        score if score < 0.1 => Severity::None,
        score if score < 4.0 => Severity::Low,
        score if score < 7.0 => Severity::Medium,
        score if score < 9.0 => Severity::High,
        _ => Severity::Critical,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_vectors_have_their_published_scores() {
        for (vector, expected) in [
            ("CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:U/C:H/I:H/A:H", 9.8),
            ("CVSS:3.1/AV:N/AC:L/PR:N/UI:R/S:C/C:L/I:L/A:N", 6.1),
            ("CVSS:3.1/AV:N/AC:L/PR:L/UI:N/S:C/C:L/I:L/A:N", 6.4),
            ("CVSS:3.1/AV:N/AC:H/PR:N/UI:R/S:U/C:L/I:N/A:N", 3.1),
            ("CVSS:3.1/AV:L/AC:L/PR:N/UI:R/S:U/C:H/I:H/A:H", 7.8),
            ("CVSS:3.1/AV:N/AC:L/PR:L/UI:N/S:C/C:H/I:H/A:H", 9.9),
            ("CVSS:3.1/AV:P/AC:L/PR:N/UI:N/S:U/C:H/I:H/A:H", 6.8),
            ("CVSS:3.0/AV:N/AC:H/PR:N/UI:R/S:C/C:H/I:N/A:N", 6.1),
            ("CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:C/C:H/I:H/A:H", 10.0),
            ("CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:U/C:N/I:N/A:N", 0.0),
            // Only the base counts.
            (
                "CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:U/C:H/I:H/A:H/E:U/RL:O/RC:U",
                9.8,
            ),
            (
                "CVSS:4.0/AV:N/AC:L/AT:N/PR:N/UI:N/VC:H/VI:H/VA:H/SC:N/SI:N/SA:N",
                9.3,
            ),
            (
                "CVSS:4.0/AV:N/AC:L/AT:N/PR:N/UI:N/VC:H/VI:H/VA:H/SC:H/SI:H/SA:H",
                10.0,
            ),
            (
                "CVSS:4.0/AV:L/AC:L/AT:P/PR:L/UI:N/VC:H/VI:H/VA:H/SC:N/SI:N/SA:N",
                7.3,
            ),
            (
                "CVSS:4.0/AV:N/AC:L/AT:N/PR:N/UI:N/VC:N/VI:N/VA:N/SC:N/SI:N/SA:N",
                0.0,
            ),
        ] {
            assert_eq!(score(vector), Some(expected), "{vector}");
        }
    }

    /// The specification's equations, with the rounding of whole numbers of 3.1's appendix A.
    #[test]
    fn every_base_vector_has_the_score_of_the_equations() {
        fn expected(vector: &str) -> f64 {
            let value = |metric: &str| {
                let (_, rest) = vector.split_once(&format!("/{metric}:")).expect("a metric");
                rest.chars().next().expect("a value")
            };
            let is_changed = value("S") == 'C';
            let attack = match value("AV") {
                'N' => 0.85,
                'A' => 0.62,
                'L' => 0.55,
                _ => 0.2,
            };
            let complexity = if value("AC") == 'L' { 0.77 } else { 0.44 };
            let privileges = match (value("PR"), is_changed) {
                ('N', _) => 0.85,
                ('L', false) => 0.62,
                ('L', true) => 0.68,
                (_, false) => 0.27,
                (_, true) => 0.5,
            };
            let interaction = if value("UI") == 'N' { 0.85 } else { 0.62 };
            let kept = ["C", "I", "A"].map(|metric| match value(metric) {
                'H' => 1.0 - 0.56,
                'L' => 1.0 - 0.22,
                _ => 1.0,
            });
            let base = 1.0 - kept.iter().product::<f64>();
            let impact = if is_changed {
                7.52 * (base - 0.029) - 3.25 * (base - 0.02_f64).powi(15)
            } else {
                6.42 * base
            };
            if impact <= 0.0 {
                return 0.0;
            }
            let exploitability = 8.22 * attack * complexity * privileges * interaction;
            let factor = if is_changed { 1.08 } else { 1.0 };
            let exact = (factor * (impact + exploitability)).min(10.0);
            let whole = (exact * 100_000.0).round() as u64;
            whole.div_ceil(10_000) as f64 / 10.0
        }

        let mut vectors = vec![String::new()];
        for (metric, values) in [
            ("AV", "NALP"),
            ("AC", "LH"),
            ("PR", "NLH"),
            ("UI", "NR"),
            ("S", "UC"),
            ("C", "NLH"),
            ("I", "NLH"),
            ("A", "NLH"),
        ] {
            let longer = vectors.iter().flat_map(|vector| {
                values
                    .chars()
                    .map(move |value| format!("{vector}/{metric}:{value}"))
            });
            vectors = longer.collect();
        }
        assert_eq!(vectors.len(), 2_592);
        for vector in vectors {
            for version in ["3.0", "3.1"] {
                let vector = format!("CVSS:{version}{vector}");
                assert_eq!(score(&vector), Some(expected(&vector)), "{vector}");
            }
        }
    }

    #[test]
    fn what_is_no_vector_has_no_score() {
        for text in [
            "",
            "7.5",
            "CVSS:3.1",
            "CVSS:3.1/",
            "CVSS:3.1/AV:N",
            "CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:U/C:H/I:H/A:X",
            "CVSS:3.1/AV:N/AV:N/AC:L/PR:N/UI:N/S:U/C:H/I:H/A:H",
            "CVSS:9.9/AV:N/AC:L/PR:N/UI:N/S:U/C:H/I:H/A:H",
            "CVSS:4.0/AV:N",
            "AV:N/AC:L/Au:N/C:P/I:P/A:P",
        ] {
            assert_eq!(score(text), None, "{text:?}");
        }
    }

    #[test]
    fn words_and_ratings_are_ordered() {
        assert_eq!(Severity::of_word("MODERATE"), Severity::Medium);
        assert_eq!(Severity::of_word("unimportant"), Severity::None);
        assert_eq!(Severity::of_word("low**"), Severity::Low);
        assert_eq!(Severity::of_word("not yet assigned"), Severity::Unknown);
        assert_eq!(Severity::of_word("end-of-life"), Severity::Unknown);
        for (score, expected) in [(0.0, "NONE"), (0.1, "LOW"), (4.0, "MEDIUM"), (8.9, "HIGH")] {
            assert_eq!(rating(score).to_string(), expected);
        }
        assert_eq!(rating(9.0), Severity::Critical);
        assert!(Severity::Unknown < Severity::None && Severity::High < Severity::Critical);
    }
}
