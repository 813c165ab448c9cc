//! Reading one record.

use chrono::{DateTime, NaiveDate};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::error::FeedError;
use crate::json;
use crate::text;
use crate::versions::Ecosystem;

use super::advisory::{Advisory, Affected};
use super::ranges::{Event, Ranges};
use super::severity::{Severity, rating, score};

pub(super) const MAX_RECORD_BYTES: usize = 16 * 1024 * 1024;
const MAX_ID_CHARS: usize = 200;
const MAX_NAME_CHARS: usize = 500;
const MAX_TITLE_CHARS: usize = 300;
const MAX_ALIASES: usize = 1_000;
const MAX_SCORES: usize = 100;
const MAX_AFFECTED: usize = 20_000;
/// Of one package: judging takes time with their product.
const MAX_RANGES: usize = 200;
const MAX_EVENTS: usize = 2_000;
/// With those of commits, which are left out.
const MAX_LISTED: usize = 20_000;
/// Of a record, together.
const MAX_VERSIONS: usize = 200_000;
const MAX_VERSION_CHARS: usize = 500;

/// Reads a record.
pub fn read(json: &[u8]) -> Result<Advisory, FeedError> {
    if json.len() > MAX_RECORD_BYTES {
        return Err(FeedError::of("", "the record is longer than 16 MiB"));
    }
    let record: Record = json::read(json)?;
    if record.id.is_empty() {
        return Err(FeedError::of("id", "is empty"));
    }
    if let Some(fault) = text::fault(&record.id, MAX_ID_CHARS) {
        return Err(FeedError::of("id", fault));
    }
    for (field, time) in [
        ("modified", Some(&record.modified)),
        ("published", record.published.as_ref()),
    ] {
        if time.is_some_and(|time| !is_time(time)) {
            return Err(FeedError::of(field, "is no time of RFC 3339"));
        }
    }
    let (severity, score) = record.severity();
    let details = record.details.as_deref().unwrap_or_default();
    let title = record.summary.as_deref().map(str::trim);
    let title = title
        .filter(|summary| !summary.is_empty())
        .or_else(|| details.lines().map(str::trim).find(|line| !line.is_empty()))
        .unwrap_or_default();
    let mut aliases = record.aliases;
    for id in record.upstream {
        if !aliases.contains(&id) {
            aliases.push(id);
        }
    }
    let affected = record.affected.into_iter();
    Ok(Advisory {
        title: text::line(title, MAX_TITLE_CHARS),
        severity,
        score,
        withdrawn: record.withdrawn.is_some(),
        affected: affected.filter_map(|package| package.affected).collect(),
        aliases,
        id: record.id,
        published: record.published,
        modified: record.modified,
    })
}

/// Nothing is known of the years before the first CVE.
fn is_time(text: &str) -> bool {
    let begin = NaiveDate::from_ymd_opt(1980, 1, 1);
    text.len() <= 40
        && DateTime::parse_from_rfc3339(text).is_ok_and(|time| Some(time.date_naive()) > begin)
}

#[derive(Deserialize)]
struct Record<'a> {
    id: String,
    modified: String,
    published: Option<String>,
    withdrawn: Option<String>,
    #[serde(default, deserialize_with = "ids")]
    aliases: Vec<String>,
    #[serde(default, deserialize_with = "ids")]
    upstream: Vec<String>,
    summary: Option<String>,
    details: Option<String>,
    #[serde(default, deserialize_with = "best_score")]
    severity: Option<Scored>,
    #[serde(borrow)]
    database_specific: Option<&'a RawValue>,
    #[serde(default, deserialize_with = "packages")]
    affected: Vec<Package>,
}

impl Record<'_> {
    /// The record's own score counts before those of its packages, and scores before words.
    fn severity(&self) -> (Severity, Option<f64>) {
        let packages = || self.affected.iter();
        let worst = || {
            packages()
                .filter_map(|package| package.score)
                .max_by(Scored::by_score)
        };
        if let Some(Scored { score, .. }) = self.severity.or_else(worst) {
            return (rating(score), Some(score));
        }
        let own = word(self.database_specific);
        let worst = packages().map(|package| package.word).max();
        let words = [own, worst.unwrap_or_default()].into_iter();
        let known = words.into_iter().find(|word| *word != Severity::Unknown);
        (known.unwrap_or_default(), None)
    }
}

/// What is kept of an affected package.
struct Package {
    affected: Option<Affected>,
    score: Option<Scored>,
    word: Severity,
}

/// A score, and the version of CVSS that it is of: a later one counts before earlier ones.
#[derive(Clone, Copy)]
struct Scored {
    is_v4: bool,
    score: f64,
}

impl Scored {
    fn by_score(&self, other: &Self) -> std::cmp::Ordering {
        self.score.total_cmp(&other.score)
    }
}

/// Members of which every database makes what it likes.
#[derive(Default, Deserialize)]
struct Words {
    severity: Option<String>,
    urgency: Option<String>,
}

fn word(specific: Option<&RawValue>) -> Severity {
    let words: Option<Words> = specific.and_then(|json| serde_json::from_str(json.get()).ok());
    let words = words.unwrap_or_default();
    let word = words.severity.or(words.urgency);
    word.map(|word| Severity::of_word(&word))
        .unwrap_or_default()
}

fn ids<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    let mut ids = Vec::new();
    json::each(deserializer, MAX_ALIASES, |id: String| {
        if let Some(fault) = text::fault(&id, MAX_ID_CHARS) {
            return Err(fault);
        }
        if !id.is_empty() && !ids.contains(&id) {
            ids.push(id);
        }
        Ok(())
    })?;
    Ok(ids)
}

/// Of several vectors, the first one of the latest CVSS.
fn best_score<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Scored>, D::Error> {
    #[derive(Deserialize)]
    struct Entry {
        score: Option<String>,
    }

    let mut best: Option<Scored> = None;
    json::each(deserializer, MAX_SCORES, |entry: Entry| {
        let Some(vector) = entry.score else {
            return Ok(());
        };
        let is_v4 = vector.starts_with("CVSS:4");
        if best.is_none_or(|best| is_v4 && !best.is_v4)
            && let Some(score) = score(&vector)
        {
            best = Some(Scored { is_v4, score });
        }
        Ok(())
    })?;
    Ok(best)
}

fn packages<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Package>, D::Error> {
    let mut packages = Vec::new();
    let mut versions = 0;
    json::each(deserializer, MAX_AFFECTED, |entry: PackageEntry| {
        let package = entry.into_package()?;
        if let Some(affected) = &package.affected {
            versions += affected.ranges.version_count();
        }
        if versions > MAX_VERSIONS {
            return Err(format!("more than {MAX_VERSIONS} versions"));
        }
        packages.push(package);
        Ok(())
    })?;
    Ok(packages)
}

#[derive(Deserialize)]
struct PackageEntry<'a> {
    package: Option<PackageName>,
    #[serde(default, deserialize_with = "ranges")]
    ranges: Vec<Vec<Event>>,
    #[serde(default, deserialize_with = "versions")]
    versions: Vec<String>,
    #[serde(default, deserialize_with = "best_score")]
    severity: Option<Scored>,
    #[serde(borrow)]
    ecosystem_specific: Option<&'a RawValue>,
    #[serde(borrow)]
    database_specific: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct PackageName {
    ecosystem: String,
    name: String,
}

impl PackageEntry<'_> {
    fn into_package(self) -> Result<Package, String> {
        let (ranges, versions) = (self.ranges, self.versions);
        let named = self
            .package
            .map(|package| package.affected(versions, ranges));
        Ok(Package {
            affected: named.transpose()?.flatten(),
            score: self.severity,
            word: word(self.ecosystem_specific).max(word(self.database_specific)),
        })
    }
}

impl PackageName {
    fn affected(
        self,
        versions: Vec<String>,
        ranges: Vec<Vec<Event>>,
    ) -> Result<Option<Affected>, String> {
        for (field, value) in [("ecosystem", &self.ecosystem), ("name", &self.name)] {
            if let Some(fault) = text::fault(value, MAX_NAME_CHARS) {
                return Err(format!("package.{field}: {fault}"));
            }
        }
        let ecosystem = Ecosystem::of(&self.ecosystem);
        let package = match ecosystem {
            Some(ecosystem) => ecosystem.package_name(&self.name),
            None => self.name,
        };
        let ranges = Ranges::new(ecosystem, versions, ranges);
        let is_kept = !ranges.is_empty() && !package.is_empty();
        Ok(is_kept.then_some(Affected {
            ecosystem: self.ecosystem,
            package,
            ranges,
        }))
    }
}

fn versions<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    let mut versions = Vec::new();
    json::each(deserializer, MAX_VERSIONS, |version: String| {
        if let Some(fault) = text::fault(&version, MAX_VERSION_CHARS) {
            return Err(fault);
        }
        if !version.is_empty() {
            versions.push(version);
        }
        Ok(())
    })?;
    Ok(versions)
}

/// Ranges of versions: those of commits are left out.
fn ranges<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Vec<Event>>, D::Error> {
    #[derive(Deserialize)]
    struct Range {
        #[serde(rename = "type")]
        kind: String,
        #[serde(default, deserialize_with = "events")]
        events: Vec<Event>,
    }

    let mut ranges = Vec::new();
    let mut event_count = 0;
    json::each(deserializer, MAX_LISTED, |range: Range| {
        if range.kind == "GIT" || range.events.is_empty() {
            return Ok(());
        }
        event_count += range.events.len();
        if event_count > MAX_EVENTS {
            return Err(format!("more than {MAX_EVENTS} events"));
        }
        if ranges.len() == MAX_RANGES {
            return Err(format!("more than {MAX_RANGES} ranges"));
        }
        ranges.push(range.events);
        Ok(())
    })?;
    Ok(ranges)
}

fn events<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Event>, D::Error> {
    #[derive(Deserialize)]
    struct Entry {
        introduced: Option<String>,
        fixed: Option<String>,
        last_affected: Option<String>,
        limit: Option<String>,
    }

    let mut events = Vec::new();
    json::each(deserializer, MAX_LISTED, |entry: Entry| {
        // A limit of `*` is none.
        let limit = entry.limit.filter(|limit| limit != "*");
        let found = [
            entry.introduced.map(Event::Introduced),
            entry.fixed.map(Event::Fixed),
            entry.last_affected.map(Event::LastAffected),
            limit.map(Event::Limit),
        ];
        for event in found.into_iter().flatten() {
            if let Some(fault) = text::fault(event.version(), MAX_VERSION_CHARS) {
                return Err(fault);
            }
            events.push(event);
        }
        Ok(())
    })?;
    Ok(events)
}
