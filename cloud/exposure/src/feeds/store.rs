//! SQL of what is published.

use std::collections::HashMap;
use std::sync::Arc;

use hub_advisories::kev::KnownExploited;
use hub_advisories::osv::Advisory;
use hub_advisories::versions::Ecosystem;
use hub_base::db::bulk::{Bulk, Column};
use hub_base::db::{Conn, Tx, sql};
use hub_base::error::Result;
use hub_protocol::Timestamp;

use crate::severity::VulnerabilitySeverity;

/// Ids or names that one query asks for.
const AT_ONCE: usize = 500;

/// An advisory as it is stored.
#[derive(Clone, Debug)]
pub struct Record {
    pub advisory_id: String,
    pub feed: String,
    vulnerability_id: String,
    title: String,
    severity: VulnerabilitySeverity,
    published_at: Option<Timestamp>,
    pub modified_at: Timestamp,
    pub withdrawn: bool,
    /// Ecosystem, name, and JSON of the ranges.
    pub packages: Vec<(String, String, String)>,
}

impl Record {
    pub fn new(advisory: Advisory, feed: String, modified_at: Timestamp) -> Self {
        let vulnerability_id = advisory.vulnerability_id().to_owned();
        let packages = advisory.affected.into_iter().filter_map(|affected| {
            Ecosystem::of(&affected.ecosystem)?;
            // Ranges are a structure of texts, which is always JSON.
            let ranges = serde_json::to_string(&affected.ranges).ok()?;
            Some((affected.ecosystem, affected.package, ranges))
        });
        Self {
            vulnerability_id,
            feed,
            title: advisory.title,
            severity: advisory.severity.into(),
            published_at: advisory.published.and_then(|time| time.parse().ok()),
            modified_at,
            withdrawn: advisory.withdrawn,
            packages: packages.collect(),
            advisory_id: advisory.id,
        }
    }

    /// The rows that it takes to store it.
    pub fn rows(&self) -> usize {
        1 + self.packages.len()
    }
}

/// When those of the records that are there were last modified.
pub async fn modified(conn: &mut Conn, records: &[Record]) -> Result<HashMap<String, Timestamp>> {
    let mut found = HashMap::new();
    for some in records.chunks(AT_ONCE) {
        let rows: Vec<(String, Timestamp)> =
            sql("SELECT advisory_id, modified_at FROM advisories WHERE advisory_id IN ")
                .push_list(some.iter().map(|record| record.advisory_id.as_str()))
                .all(conn)
                .await?;
        found.extend(rows);
    }
    Ok(found)
}

/// Stores records in place of their older versions.
pub async fn put(tx: &mut Tx, records: &[Record]) -> Result<()> {
    for some in records.chunks(AT_ONCE) {
        sql("DELETE FROM advisory_packages WHERE advisory_id IN ")
            .push_list(some.iter().map(|record| record.advisory_id.as_str()))
            .run(tx)
            .await?;
    }
    let text = |value: fn(&Record) -> &str| {
        Column::Text(
            records
                .iter()
                .map(|record| Arc::from(value(record)))
                .collect(),
        )
    };
    Bulk {
        head: "INSERT INTO advisories (advisory_id, vulnerability_id, title, severity, \
            published_at, modified_at, withdrawn)",
        columns: vec![
            text(|record| &record.advisory_id),
            text(|record| &record.vulnerability_id),
            text(|record| &record.title),
            text(|record| record.severity.name()),
            Column::OptionalTime(records.iter().map(|record| record.published_at).collect()),
            Column::Time(records.iter().map(|record| record.modified_at).collect()),
            Column::Bool(records.iter().map(|record| record.withdrawn).collect()),
        ],
        tail: "ON CONFLICT (advisory_id) DO UPDATE SET \
            vulnerability_id = excluded.vulnerability_id, title = excluded.title, \
            severity = excluded.severity, published_at = excluded.published_at, \
            modified_at = excluded.modified_at, withdrawn = excluded.withdrawn",
    }
    .execute(tx)
    .await?;
    let mut columns: [Vec<Arc<str>>; 4] = Default::default();
    let mut places = Vec::new();
    let [ecosystems, packages, advisories, ranges] = &mut columns;
    for record in records {
        let advisory_id: Arc<str> = Arc::from(record.advisory_id.as_str());
        for (place, (ecosystem, package, range)) in (0..).zip(&record.packages) {
            ecosystems.push(Arc::from(ecosystem.as_str()));
            packages.push(Arc::from(package.as_str()));
            advisories.push(Arc::clone(&advisory_id));
            places.push(place);
            ranges.push(Arc::from(range.as_str()));
        }
    }
    let [ecosystems, packages, advisories, ranges] = columns;
    Bulk {
        head: "INSERT INTO advisory_packages (ecosystem, package, advisory_id, place, ranges)",
        columns: vec![
            Column::Text(ecosystems),
            Column::Text(packages),
            Column::Text(advisories),
            Column::Int(places),
            Column::Text(ranges),
        ],
        tail: "",
    }
    .execute(tx)
    .await?;
    Ok(())
}

/// Stores the vulnerabilities that are known to be exploited. Returns how many are new or changed.
pub async fn put_exploited(tx: &mut Tx, known: &[KnownExploited]) -> Result<u64> {
    let text = |value: fn(&KnownExploited) -> &str| {
        Column::Text(known.iter().map(|known| Arc::from(value(known))).collect())
    };
    Bulk {
        head: "INSERT INTO known_exploited (vulnerability_id, added_on, due_on, ransomware)",
        columns: vec![
            text(|known| &known.vulnerability_id),
            text(|known| &known.added_on),
            Column::OptionalText(
                known
                    .iter()
                    .map(|known| known.due_on.as_deref().map(Arc::from))
                    .collect(),
            ),
            Column::Bool(known.iter().map(|known| known.ransomware).collect()),
        ],
        tail: "ON CONFLICT (vulnerability_id) DO UPDATE SET added_on = excluded.added_on, \
            due_on = excluded.due_on, ransomware = excluded.ransomware \
            WHERE known_exploited.added_on <> excluded.added_on \
            OR COALESCE(known_exploited.due_on, '') <> COALESCE(excluded.due_on, '') \
            OR known_exploited.ransomware <> excluded.ransomware",
    }
    .execute(tx)
    .await
}

/// Notes that records of a feed were stored, for which lists are not matched again yet.
pub async fn note_unfinished(tx: &mut Tx, feed: &str, now: Timestamp) -> Result<()> {
    sql(
        "INSERT INTO advisory_feeds (feed, record_count, imported_at, revision, is_unfinished) \
         VALUES ($1, 0, $2, 0, TRUE) ON CONFLICT (feed) DO UPDATE SET is_unfinished = TRUE",
    )
    .bind((feed, now))
    .run(tx)
    .await
}

/// The newest record of a feed.
pub async fn newest(conn: &mut Conn, feed: &str) -> Result<Option<Timestamp>> {
    let newest: Option<Option<Timestamp>> =
        sql("SELECT newest_at FROM advisory_feeds WHERE feed = $1")
            .bind(feed)
            .optional_scalar(conn)
            .await?;
    Ok(newest.flatten())
}

/// Notes the end of an import. Returns whether it, or one before it that was killed, has stored
/// something.
pub async fn finish(
    tx: &mut Tx,
    feed: &str,
    newest_at: Option<Timestamp>,
    records: i64,
    now: Timestamp,
) -> Result<bool> {
    let is_unfinished: Option<bool> =
        sql("SELECT is_unfinished FROM advisory_feeds WHERE feed = $1")
            .for_update(tx)
            .bind(feed)
            .optional_scalar(tx)
            .await?;
    let is_new = is_unfinished == Some(true);
    let revision = match is_new {
        true => revision(tx).await?.saturating_add(1),
        false => 0,
    };
    sql(
        "INSERT INTO advisory_feeds (feed, newest_at, record_count, imported_at, revision, \
         is_unfinished) VALUES ($1, $2, $3, $4, $5, FALSE) ON CONFLICT (feed) DO UPDATE SET \
         newest_at = CASE WHEN advisory_feeds.newest_at > excluded.newest_at \
         OR excluded.newest_at IS NULL THEN advisory_feeds.newest_at ELSE excluded.newest_at END, \
         record_count = excluded.record_count, imported_at = excluded.imported_at, \
         revision = CASE WHEN advisory_feeds.revision > excluded.revision \
         THEN advisory_feeds.revision ELSE excluded.revision END, is_unfinished = FALSE",
    )
    .bind((feed, newest_at, records, now, revision))
    .run(tx)
    .await?;
    Ok(is_new)
}

/// The revision of all that is published; 0 before the first import.
pub async fn revision(conn: &mut Conn) -> Result<i64> {
    sql("SELECT CAST(COALESCE(MAX(revision), 0) AS BIGINT) FROM advisory_feeds")
        .scalar(conn)
        .await
}

/// A feed.
#[derive(Debug, sqlx::FromRow)]
pub struct FeedRow {
    pub feed: String,
    pub newest_at: Option<Timestamp>,
    pub record_count: i64,
    pub imported_at: Timestamp,
    pub revision: i64,
    pub is_unfinished: bool,
}

pub async fn list(conn: &mut Conn) -> Result<Vec<FeedRow>> {
    sql(
        "SELECT feed, newest_at, record_count, imported_at, revision, is_unfinished \
         FROM advisory_feeds ORDER BY feed",
    )
    .all(conn)
    .await
}

/// What an advisory says about a package.
#[derive(Debug, sqlx::FromRow)]
pub struct Published {
    pub advisory_id: String,
    pub vulnerability_id: String,
    pub title: String,
    #[sqlx(try_from = "String")]
    pub severity: VulnerabilitySeverity,
    pub package: String,
    /// JSON.
    pub ranges: String,
}

/// The advisories about packages of an ecosystem, without those that were withdrawn.
pub async fn about(conn: &mut Conn, ecosystem: &str, packages: &[&str]) -> Result<Vec<Published>> {
    let mut found = Vec::new();
    for some in packages.chunks(AT_ONCE) {
        let rows: Vec<Published> = sql(
            "SELECT a.advisory_id, a.vulnerability_id, a.title, a.severity, p.package, p.ranges \
             FROM advisory_packages p JOIN advisories a ON a.advisory_id = p.advisory_id \
             WHERE p.ecosystem = $1 AND a.withdrawn = FALSE AND p.package IN ",
        )
        .bind(ecosystem)
        .push_list(some.iter().copied())
        .all(conn)
        .await?;
        found.extend(rows);
    }
    Ok(found)
}

/// A vulnerability that is known to be exploited.
#[derive(Clone, Debug, sqlx::FromRow)]
pub struct Exploited {
    pub vulnerability_id: String,
    pub added_on: String,
    pub due_on: Option<String>,
    pub ransomware: bool,
}

/// Those of the vulnerabilities that are known to be exploited.
pub async fn exploited(conn: &mut Conn, vulnerabilities: &[String]) -> Result<Vec<Exploited>> {
    let mut found = Vec::new();
    for some in vulnerabilities.chunks(AT_ONCE) {
        let rows: Vec<Exploited> = sql(
            "SELECT vulnerability_id, added_on, due_on, ransomware FROM known_exploited \
             WHERE vulnerability_id IN ",
        )
        .push_list(some.iter().map(String::as_str))
        .all(conn)
        .await?;
        found.extend(rows);
    }
    Ok(found)
}
