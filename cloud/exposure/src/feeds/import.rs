//! An import: stores what is newer than what is there, in transactions that hold the writer for a
//! moment only. One that was killed is continued by the next one.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::str::FromStr;

use hub_advisories::kev::Catalog;
use hub_advisories::osv::Advisory;
use hub_advisories::versions::Ecosystem;
use hub_base::error::Error;
use hub_core::Core;
use hub_core::pace::{Held, Pace};
use hub_core::tasks;
use hub_protocol::Timestamp;
use tokio::sync::mpsc;

use super::source::{self, Batch};
use super::store::{self, Record};
use super::{ImportError, KEV};
use crate::software;

/// Batches that wait for the database.
const WAITING: usize = 2;
/// The rest after a batch, as a multiple of its duration: uploads come in between.
const REST: f64 = 1.0;
/// Records that cannot be read of which the reason is told.
const MAX_REASONS: usize = 3;
/// The feed of records that are about no ecosystem.
const OTHER: &str = "OSV";

/// How far an import is.
#[derive(Clone, Debug, Default)]
pub struct Progress {
    pub read: usize,
    /// None until it is known.
    pub total: Option<usize>,
    pub stored: usize,
}

/// What has come of an import.
#[derive(Clone, Debug, Default)]
pub struct Imported {
    /// Records that were read, by their feed.
    pub feeds: BTreeMap<String, usize>,
    /// Those that were newer than what was there.
    pub stored: usize,
    /// Those that cannot be read.
    pub refused: usize,
    /// Why, for some of them.
    pub reasons: Vec<String>,
}

/// A feed of which records were seen.
#[derive(Default)]
struct Seen {
    newest_at: Option<Timestamp>,
    records: usize,
    /// Whether it is noted that records were stored.
    is_noted: bool,
}

/// Brings in a file or a directory.
pub async fn import(
    core: &Core,
    path: &Path,
    mut progress: impl FnMut(&Progress),
) -> Result<Imported, ImportError> {
    let (sender, mut batches) = mpsc::channel(WAITING);
    let file = path.to_owned();
    let reader = tokio::task::spawn_blocking(move || source::read(&file, &sender));
    let mut run = Run::new(core);
    while let Some(batch) = batches.recv().await {
        match batch {
            Batch::Total(total) => run.progress.total = Some(total),
            Batch::Refused(reason) => run.refuse(reason),
            Batch::Advisories(advisories) => run.advisories(advisories).await?,
            Batch::Known(catalog) => run.known(&catalog).await?,
        }
        progress(&run.progress);
    }
    let read = reader.await.map_err(Error::internal)?;
    // What was stored counts, also of a file that is damaged further on.
    let imported = run.finish().await?;
    read.map_err(ImportError::Unreadable)?;
    Ok(imported)
}

struct Run<'a> {
    core: &'a Core,
    pace: Pace,
    seen: BTreeMap<String, Seen>,
    progress: Progress,
    refused: usize,
    reasons: Vec<String>,
}

impl<'a> Run<'a> {
    fn new(core: &'a Core) -> Self {
        let duration = core.metrics.retention_batch_duration.clone();
        Self {
            core,
            pace: Pace::new(core, REST, duration),
            seen: BTreeMap::new(),
            progress: Progress::default(),
            refused: 0,
            reasons: Vec::new(),
        }
    }

    fn refuse(&mut self, reason: String) {
        self.progress.read += 1;
        self.refused += 1;
        if self.reasons.len() < MAX_REASONS {
            self.reasons.push(reason);
        }
    }

    async fn advisories(&mut self, advisories: Vec<Advisory>) -> Result<(), Error> {
        let mut records = Vec::with_capacity(advisories.len());
        for advisory in advisories {
            self.progress.read += 1;
            let Ok(modified_at) = Timestamp::from_str(&advisory.modified) else {
                self.progress.read -= 1;
                self.refuse(format!("{}: `modified` is no time", advisory.id));
                continue;
            };
            let feed = feed_of(&advisory);
            let seen = self.seen.entry(feed.clone()).or_default();
            seen.records += 1;
            seen.newest_at = seen.newest_at.max(Some(modified_at));
            records.push(Record::new(advisory, feed, modified_at));
        }
        let known = store::modified(&mut self.core.db.read().await?, &records).await?;
        records.retain(|record| is_news(record, &known));
        // Of two versions of one record in an archive, the newest is stored.
        let mut newest: HashMap<String, Record> = HashMap::new();
        for record in records {
            let is_older = newest
                .get(&record.advisory_id)
                .is_some_and(|other| other.modified_at >= record.modified_at);
            if !is_older {
                newest.insert(record.advisory_id.clone(), record);
            }
        }
        let mut records: Vec<Record> = newest.into_values().collect();
        records.sort_by(|one, other| one.advisory_id.cmp(&other.advisory_id));
        while !records.is_empty() {
            let rest = records.split_off(self.fitting(&records));
            self.store(records).await?;
            records = rest;
        }
        Ok(())
    }

    /// How many records the next transaction stores.
    fn fitting(&self, records: &[Record]) -> usize {
        let most = usize::try_from(self.pace.size()).unwrap_or(usize::MAX);
        let mut rows = 0;
        let fits = |record: &&Record| {
            rows += record.rows();
            rows <= most
        };
        records.iter().take_while(fits).count().max(1)
    }

    async fn store(&mut self, records: Vec<Record>) -> Result<(), Error> {
        let now = self.core.clock.now();
        let count = records.len();
        let rows: usize = records.iter().map(Record::rows).sum();
        let mut feeds: Vec<&str> = records.iter().map(|record| record.feed.as_str()).collect();
        feeds.sort_unstable();
        feeds.dedup();
        let mut tx = self.core.db.begin().await?;
        let mut held = Held::begin();
        for feed in feeds {
            if let Some(seen) = self.seen.get_mut(feed).filter(|seen| !seen.is_noted) {
                store::note_unfinished(&mut tx, feed, now).await?;
                seen.is_noted = true;
            }
        }
        store::put(&mut tx, &records).await?;
        held.commits();
        tx.commit_unaudited("what others have published").await?;
        self.progress.stored += count;
        let rows = i64::try_from(rows).unwrap_or(i64::MAX);
        let took = self.pace.measure(&held, rows);
        self.pace.rest(self.core, took, rows).await;
        Ok(())
    }

    async fn known(&mut self, catalog: &Catalog) -> Result<(), Error> {
        let now = self.core.clock.now();
        let records = catalog.vulnerabilities.len();
        self.progress.read += records;
        self.progress.total = Some(records);
        let newest_at = Timestamp::from_str(&catalog.released_at).ok();
        let is_older = match store::newest(&mut self.core.db.read().await?, KEV).await? {
            Some(stored) => newest_at.is_none_or(|newest_at| newest_at < stored),
            None => false,
        };
        let seen = self.seen.entry(KEV.to_owned()).or_default();
        (seen.records, seen.newest_at) = (records, newest_at);
        if is_older {
            return Ok(());
        }
        let mut tx = self.core.db.begin().await?;
        let changed = store::put_exploited(&mut tx, &catalog.vulnerabilities).await?;
        if changed > 0 {
            store::note_unfinished(&mut tx, KEV, now).await?;
        }
        tx.commit_unaudited("what others have published").await?;
        self.progress.stored += usize::try_from(changed).unwrap_or(usize::MAX);
        Ok(())
    }

    /// Notes what the feeds have, and has lists matched again if something is new.
    async fn finish(self) -> Result<Imported, Error> {
        let now = self.core.clock.now();
        let mut tx = self.core.db.begin().await?;
        let mut is_new = false;
        for (feed, seen) in &self.seen {
            let records = i64::try_from(seen.records).unwrap_or(i64::MAX);
            is_new |= store::finish(&mut tx, feed, seen.newest_at, records, now).await?;
        }
        if is_new {
            tasks::enqueue(self.core, &mut tx, software::matching(now), now).await?;
        }
        tx.commit_unaudited("what others have published").await?;
        let records = |(feed, seen): (String, Seen)| (feed, seen.records);
        Ok(Imported {
            feeds: self.seen.into_iter().map(records).collect(),
            stored: self.progress.stored,
            refused: self.refused,
            reasons: self.reasons,
        })
    }
}

/// Whether a record is newer than what is there. One that is not there is stored if hubs can have
/// what it is about.
fn is_news(record: &Record, known: &HashMap<String, Timestamp>) -> bool {
    match known.get(&record.advisory_id) {
        Some(stored) => record.modified_at > *stored,
        None => !record.packages.is_empty() && !record.withdrawn,
    }
}

/// The ecosystem of the first package that versions can be compared of.
fn feed_of(advisory: &Advisory) -> String {
    let ecosystem = advisory
        .affected
        .iter()
        .find_map(|affected| Ecosystem::of(&affected.ecosystem));
    ecosystem.map_or(OTHER, Ecosystem::name).to_owned()
}
