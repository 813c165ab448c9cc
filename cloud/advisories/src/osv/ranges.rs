//! Which versions of a package an advisory is about, and whether one is among them. Evaluated as
//! OSV's schema says.

use std::cmp::Ordering;

use serde::{Deserialize, Serialize};

use crate::versions::{Ecosystem, Version};

/// Versions that an advisory names one by one, and ranges of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ranges {
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    versions: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    ranges: Vec<Vec<Event>>,
}

/// What happens at a version of a range.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Event {
    /// Affected from here on. `0` is before every version.
    Introduced(String),
    Fixed(String),
    /// Affected up to here, and not beyond.
    LastAffected(String),
    /// The range says nothing from here on.
    Limit(String),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    NotAffected,
    Affected {
        /// The next version that is not affected, where the advisory names one.
        fixed_in: Option<String>,
    },
    /// A version, or one of the advisory's, that the ecosystem does not order.
    Undecided,
}

impl Event {
    pub(super) fn version(&self) -> &str {
        match self {
            Self::Introduced(at) | Self::Fixed(at) | Self::LastAffected(at) | Self::Limit(at) => at,
        }
    }
}

impl Ranges {
    /// Without the versions that a range has anyway: some advisories name hundreds of them.
    pub(super) fn new(
        ecosystem: Option<Ecosystem>,
        mut versions: Vec<String>,
        ranges: Vec<Vec<Event>>,
    ) -> Self {
        if let Some(ecosystem) = ecosystem {
            let ordered = ordered(ecosystem, &ranges);
            versions.retain(|text| {
                let version = Version::read(ecosystem, text);
                !version.is_some_and(|version| ordered.iter().any(|range| range.has(&version)))
            });
        }
        Self { versions, ranges }
    }

    pub(super) fn version_count(&self) -> usize {
        self.versions.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.versions.is_empty() && self.ranges.is_empty()
    }

    /// Whether this version is affected. The answer to a range that contradicts itself is that of
    /// its events in the order of their versions.
    pub fn judge(&self, ecosystem: Ecosystem, version: &str) -> Verdict {
        let Some(version) = Version::read(ecosystem, version) else {
            return self.judge_unordered(version);
        };
        let ranges = ordered(ecosystem, &self.ranges);
        let named = self.versions.iter();
        let mut named: Vec<Version> = named
            .filter_map(|text| Version::read(ecosystem, text))
            .collect();
        named.sort_by(order);
        let is_affected = |version: &Version| {
            named.binary_search_by(|one| order(one, version)).is_ok()
                || ranges.iter().any(|range| range.has(version))
        };
        if !is_affected(&version) {
            return if ranges.len() == self.ranges.len() {
                Verdict::NotAffected
            } else {
                Verdict::Undecided
            };
        }
        let fixes = ranges.iter().flat_map(Range::fixes);
        let mut fixes: Vec<(&Version, &str)> = fixes
            .filter(|(fix, _)| is(fix, Ordering::Greater, &version))
            .collect();
        fixes.sort_by(|(one, _), (other, _)| order(one, other));
        // What one range fixes, another one may still have.
        let fix = fixes.into_iter().find(|(fix, _)| !is_affected(fix));
        Verdict::Affected {
            fixed_in: fix.map(|(_, text)| text.to_owned()),
        }
    }

    fn judge_unordered(&self, version: &str) -> Verdict {
        let is_named = self.versions.iter().any(|text| text == version);
        if is_named || self.ranges.iter().any(|events| has_everything(events)) {
            Verdict::Affected { fixed_in: None }
        } else if self.ranges.is_empty() {
            Verdict::NotAffected
        } else {
            Verdict::Undecided
        }
    }
}

/// Whether every version is affected, whatever its order.
fn has_everything(events: &[Event]) -> bool {
    let is_start = |event: &Event| matches!(event, Event::Introduced(at) if at == "0");
    !events.is_empty() && events.iter().all(is_start)
}

/// A range whose versions the ecosystem orders.
struct Range<'a> {
    /// By version.
    points: Vec<Point<'a>>,
    /// The latest one: the range says something of all versions before it.
    limit: Option<Version>,
}

struct Point<'a> {
    event: &'a Event,
    /// None is before every version.
    at: Option<Version>,
}

/// Without the ranges that cannot be ordered.
fn ordered(ecosystem: Ecosystem, ranges: &[Vec<Event>]) -> Vec<Range<'_>> {
    let ranges = ranges.iter();
    ranges
        .filter_map(|events| Range::read(ecosystem, events))
        .collect()
}

impl<'a> Range<'a> {
    fn read(ecosystem: Ecosystem, events: &'a [Event]) -> Option<Self> {
        let mut points = Vec::new();
        let mut limit: Option<Version> = None;
        for event in events {
            let at = match event {
                Event::Introduced(at) if at == "0" => None,
                _ => Some(Version::read(ecosystem, event.version())?),
            };
            if !matches!(event, Event::Limit(_)) {
                points.push(Point { event, at });
            } else if limit.as_ref().is_none_or(|limit| {
                at.as_ref()
                    .is_some_and(|at| is(at, Ordering::Greater, limit))
            }) {
                limit = at;
            }
        }
        points.sort_by(|one, other| {
            let by_version = match (&one.at, &other.at) {
                (Some(one), Some(other)) => order(one, other),
                (one, other) => one.is_some().cmp(&other.is_some()),
            };
            // The last affected version is affected, so it ends after all else at its version.
            by_version.then(one.is_last_affected().cmp(&other.is_last_affected()))
        });
        Some(Self { points, limit })
    }

    /// What the last event before a version says counts.
    fn has(&self, version: &Version) -> bool {
        let passed = self
            .points
            .partition_point(|point| point.is_passed(version));
        let last = passed.checked_sub(1).and_then(|last| self.points.get(last));
        let is_affected = last.is_some_and(|last| matches!(last.event, Event::Introduced(_)));
        let limit = self.limit.as_ref();
        is_affected && limit.is_none_or(|limit| is(version, Ordering::Less, limit))
    }

    fn fixes(&self) -> impl Iterator<Item = (&Version, &str)> {
        self.points.iter().filter_map(|point| match point.event {
            Event::Fixed(text) => Some((point.at.as_ref()?, text.as_str())),
            _ => None,
        })
    }
}

impl Point<'_> {
    fn is_passed(&self, version: &Version) -> bool {
        let Some(at) = &self.at else {
            return true;
        };
        match order(version, at) {
            Ordering::Less => false,
            Ordering::Equal => !self.is_last_affected(),
            Ordering::Greater => true,
        }
    }

    fn is_last_affected(&self) -> bool {
        matches!(self.event, Event::LastAffected(_))
    }
}

/// Versions of one ecosystem have an order.
fn order(one: &Version, other: &Version) -> Ordering {
    one.compare(other).unwrap_or(Ordering::Equal)
}

fn is(one: &Version, order: Ordering, other: &Version) -> bool {
    one.compare(other) == Some(order)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ranges(json: &str) -> Ranges {
        serde_json::from_str(json).expect("ranges")
    }

    fn affected(fixed_in: &str) -> Verdict {
        Verdict::Affected {
            fixed_in: (!fixed_in.is_empty()).then(|| fixed_in.to_owned()),
        }
    }

    /// The verdicts for some versions, of an npm package.
    fn assert_verdicts(json: &str, expected: &[(&str, Verdict)]) {
        for (version, verdict) in expected {
            let found = ranges(json).judge(Ecosystem::Npm, version);
            assert_eq!(found, *verdict, "{version} of {json}");
        }
    }

    #[test]
    fn a_range_is_from_introduced_to_before_fixed() {
        assert_verdicts(
            r#"{"ranges":[[{"introduced":"1.0.0"},{"fixed":"1.2.0"},{"introduced":"2.0.0-0"},
                {"fixed":"2.1.0"},{"introduced":"3.0.0"},{"last_affected":"3.5.0"}]]}"#,
            &[
                ("0.9.0", Verdict::NotAffected),
                ("1.0.0-rc.1", Verdict::NotAffected),
                ("1.0.0", affected("1.2.0")),
                ("1.2.0-rc.1", affected("1.2.0")),
                ("1.2.0", Verdict::NotAffected),
                ("2.0.0-alpha", affected("2.1.0")),
                ("2.1.0", Verdict::NotAffected),
                ("3.5.0", affected("")),
                ("3.5.1", Verdict::NotAffected),
            ],
        );
    }

    #[test]
    fn a_fix_is_a_version_that_no_range_has() {
        assert_verdicts(
            r#"{"versions":["1.3.0"],"ranges":[
                [{"introduced":"0"},{"fixed":"1.2.0"}],
                [{"introduced":"1.1.0"},{"fixed":"1.3.0"}],
                [{"introduced":"1.2.0"},{"fixed":"1.4.0"}]]}"#,
            &[
                ("1.0.0", affected("1.4.0")),
                ("1.3.0", affected("1.4.0")),
                ("1.4.0", Verdict::NotAffected),
            ],
        );
    }

    #[test]
    fn named_versions_are_affected_however_they_are_written() {
        assert_verdicts(
            r#"{"versions":["1.0.0","nightly"]}"#,
            &[
                ("v1.0.0", affected("")),
                ("1.0.1", Verdict::NotAffected),
                ("nightly", affected("")),
                ("weekly", Verdict::NotAffected),
            ],
        );
    }

    #[test]
    fn what_cannot_be_ordered_is_undecided() {
        assert_verdicts(
            r#"{"ranges":[[{"introduced":"0"},{"fixed":"1.2.0"}]]}"#,
            &[("latest", Verdict::Undecided), ("1.0.0", affected("1.2.0"))],
        );
        assert_verdicts(
            r#"{"ranges":[[{"introduced":"0"}]]}"#,
            &[("latest", affected("")), ("1.0.0", affected(""))],
        );
        assert_verdicts(
            r#"{"ranges":[[{"introduced":"0"},{"fixed":"soon"}],
                [{"introduced":"2.0.0"},{"fixed":"2.1.0"}]]}"#,
            &[("1.0.0", Verdict::Undecided), ("2.0.0", affected("2.1.0"))],
        );
        assert_verdicts(
            "{}",
            &[
                ("latest", Verdict::NotAffected),
                ("1.0.0", Verdict::NotAffected),
            ],
        );
    }

    #[test]
    fn zero_is_before_every_version_of_debian() {
        let unfixed = ranges(r#"{"ranges":[[{"introduced":"0"}]]}"#);
        let never = ranges(r#"{"ranges":[[{"introduced":"0"},{"fixed":"0~"}]]}"#);
        for version in ["0~~", "0~git2024-1", "0", "1:2"] {
            assert_eq!(unfixed.judge(Ecosystem::Debian, version), affected(""));
        }
        assert_eq!(never.judge(Ecosystem::Debian, "0~~"), affected("0~"));
        assert_eq!(never.judge(Ecosystem::Debian, "0"), Verdict::NotAffected);
    }

    #[test]
    fn a_limit_ends_what_a_range_says() {
        assert_verdicts(
            r#"{"ranges":[[{"introduced":"1.0.0"},{"limit":"1.5.0"},{"limit":"1.2.0"}]]}"#,
            &[("1.4.0", affected("")), ("1.5.0", Verdict::NotAffected)],
        );
    }

    #[test]
    fn ranges_that_contradict_themselves_have_a_verdict() {
        for (json, version, verdict) in [
            // Fixed before it was introduced.
            (
                r#"[{"introduced":"2.0.0"},{"fixed":"1.0.0"}]"#,
                "1.5.0",
                Verdict::NotAffected,
            ),
            (
                r#"[{"introduced":"2.0.0"},{"fixed":"1.0.0"}]"#,
                "2.0.0",
                affected(""),
            ),
            // Introduced twice.
            (
                r#"[{"introduced":"1.0.0"},{"introduced":"2.0.0"}]"#,
                "3.0.0",
                affected(""),
            ),
            // Not in order.
            (
                r#"[{"fixed":"2.0.0"},{"introduced":"1.0.0"}]"#,
                "1.5.0",
                affected("2.0.0"),
            ),
            (
                r#"[{"last_affected":"1.0.0"},{"introduced":"1.0.0"}]"#,
                "1.0.0",
                affected(""),
            ),
            (
                r#"[{"last_affected":"1.0.0"},{"introduced":"1.0.0"}]"#,
                "1.0.1",
                Verdict::NotAffected,
            ),
            // Nothing is between.
            (
                r#"[{"introduced":"1.0.0"},{"fixed":"1.0.0"}]"#,
                "1.0.0",
                Verdict::NotAffected,
            ),
            // Never introduced.
            (r#"[{"fixed":"1.0.0"}]"#, "0.5.0", Verdict::NotAffected),
            (r#"[]"#, "1.0.0", Verdict::NotAffected),
        ] {
            assert_verdicts(&format!("{{\"ranges\":[{json}]}}"), &[(version, verdict)]);
        }
    }

    /// The evaluation as the schema writes it down: event by event, in order.
    fn is_affected_by_schema(events: &[Event], version: &str) -> bool {
        let order_to = |at: &str| {
            let order = crate::versions::compare(Ecosystem::Npm, version, at);
            order.expect("versions")
        };
        let mut events: Vec<&Event> = events.iter().collect();
        events.sort_by(|one, other| {
            let is_start = |event: &Event| matches!(event, Event::Introduced(at) if at == "0");
            let is_last = |event: &Event| matches!(event, Event::LastAffected(_));
            let by_version =
                crate::versions::compare(Ecosystem::Npm, one.version(), other.version());
            (is_start(other).cmp(&is_start(one)))
                .then(by_version.expect("versions"))
                .then(is_last(one).cmp(&is_last(other)))
        });
        let mut is_affected = false;
        for event in events {
            match event {
                Event::Introduced(at) if at == "0" || order_to(at).is_ge() => is_affected = true,
                Event::Fixed(at) if order_to(at).is_ge() => is_affected = false,
                Event::LastAffected(at) if order_to(at).is_gt() => is_affected = false,
                _ => {}
            }
        }
        is_affected
    }

    /// All ranges of up to four events at four versions.
    #[test]
    fn verdicts_are_those_of_the_schema_and_every_fix_is_not_affected() {
        let versions = ["0", "1.0.0", "2.0.0", "3.0.0"];
        let kinds: [fn(String) -> Event; 3] =
            [Event::Introduced, Event::Fixed, Event::LastAffected];
        let events: Vec<Event> = versions
            .iter()
            .flat_map(|version| kinds.map(|kind| kind((*version).to_owned())))
            .collect();
        let mut lists = vec![Vec::new()];
        let mut found = 0;
        for _ in 0..4 {
            let longer = lists.iter().flat_map(|list: &Vec<Event>| {
                events
                    .iter()
                    .map(|event| [list.as_slice(), std::slice::from_ref(event)].concat())
            });
            lists = longer.collect();
            for list in &lists {
                let ranges = Ranges::new(Some(Ecosystem::Npm), vec![], vec![list.clone()]);
                for version in ["0.0.0", "0.5.0", "1.0.0", "1.5.0", "2.5.0", "3.5.0"] {
                    let verdict = ranges.judge(Ecosystem::Npm, version);
                    assert_ne!(verdict, Verdict::Undecided);
                    assert_eq!(
                        verdict != Verdict::NotAffected,
                        is_affected_by_schema(list, version),
                        "{version} of {list:?}"
                    );
                    if let Verdict::Affected {
                        fixed_in: Some(fix),
                    } = verdict
                    {
                        let order = crate::versions::compare(Ecosystem::Npm, &fix, version);
                        assert_eq!(order, Some(Ordering::Greater));
                        assert_eq!(ranges.judge(Ecosystem::Npm, &fix), Verdict::NotAffected);
                        found += 1;
                    }
                }
            }
        }
        assert!(found > 1_000);
    }
}
