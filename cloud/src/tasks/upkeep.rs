//! Standing work that keeps tables small and partitions ready. Each kind is one row that puts itself back. Deletes in small pieces, so that
//! nobody waits behind it.

use hub_protocol::Timestamp;
use serde_json::json;

use super::{Done, NewTask};
use crate::app::App;
use crate::db::{Db, migrate, sql};
use crate::domain::{accounts, certificates, jobs, policies, releases};
use crate::error::{Error, Result};

const UPLOAD_KEYS: &str = "upkeep.upload_keys";
const LOGINS: &str = "upkeep.logins";
const LOGIN_FAILURES: &str = "upkeep.login_failures";
const PASSWORD_RESETS: &str = "upkeep.password_resets";
const PARTITIONS: &str = "upkeep.partitions";
const SIGNING_KEYS: &str = "upkeep.signing_keys";
const CERTIFICATES: &str = "upkeep.certificates";
const RELEASES: &str = "upkeep.releases";
const HUB_JOBS: &str = "upkeep.hub_jobs";
const HUB_JOB_EVENTS: &str = "upkeep.hub_job_events";
const UPDATE_POLICIES: &str = "upkeep.update_policies";

pub const KINDS: &[&str] = &[
    UPLOAD_KEYS,
    LOGINS,
    LOGIN_FAILURES,
    PASSWORD_RESETS,
    PARTITIONS,
    SIGNING_KEYS,
    CERTIFICATES,
    RELEASES,
    HUB_JOBS,
    HUB_JOB_EVENTS,
    UPDATE_POLICIES,
];

const EVERY_SECS: i64 = 3600;
/// A job ends at most this long after its deadline.
const HUB_JOBS_EVERY_SECS: i64 = 10;
/// So soon a rollout goes on.
const UPDATE_POLICIES_EVERY_SECS: i64 = 3;
/// Jobs that are ended in one go, each in a transaction of its own.
const HUB_JOBS_AT_ONCE: i64 = 100;
/// Rows deleted in one go.
pub const CHUNK: i64 = 1000;
/// The same where each has a file to remove.
const FILES_CHUNK: i64 = 50;
/// What a hub told about a job is kept for so long after the job is over. The job itself stays.
const HUB_JOB_EVENTS_SECS: i64 = 90 * 24 * 3600;
/// A retried upload is recognised for this long.
const UPLOAD_KEYS_SECS: i64 = 7 * 24 * 3600;

/// One row a kind, whichever replica adds it.
pub fn schedule() -> Vec<NewTask> {
    let task = |kind| NewTask {
        kind,
        payload: json!({}),
        due_at: Timestamp::from_micros(0),
        dedup_key: Some(kind.to_owned()),
    };
    KINDS.iter().copied().map(task).collect()
}

pub async fn perform(app: &App, kind: &str) -> Result<Done> {
    let (db, now) = (&app.db, app.clock.now());
    let has_more = match kind {
        UPLOAD_KEYS => forget_upload_keys(db, now.plus_secs(-UPLOAD_KEYS_SECS)).await? >= CHUNK.unsigned_abs(),
        LOGINS => accounts::forget_logins(db, now, CHUNK).await? >= CHUNK.unsigned_abs(),
        LOGIN_FAILURES => accounts::forget_failures(db, now, CHUNK).await? >= CHUNK.unsigned_abs(),
        PASSWORD_RESETS => accounts::forget_resets(db, now, CHUNK).await? >= CHUNK.unsigned_abs(),
        PARTITIONS => {
            migrate::ensure_partitions(db, now).await?;
            false
        }
        RELEASES => releases::forget_abandoned(app, FILES_CHUNK).await? >= FILES_CHUNK.unsigned_abs(),
        SIGNING_KEYS => {
            app.keys.rotate(db, now, false, app.config.tokens_live_secs()).await?;
            false
        }
        CERTIFICATES => certificates::upkeep(app, CHUNK).await?,
        HUB_JOBS => jobs::settle_overdue(app, HUB_JOBS_AT_ONCE).await?,
        HUB_JOB_EVENTS => {
            jobs::forget_events(db, now.plus_secs(-HUB_JOB_EVENTS_SECS), CHUNK).await? >= CHUNK.unsigned_abs()
        }
        UPDATE_POLICIES => policies::advance(app).await?,
        _ => return Err(Error::internal("no such kind of upkeep")),
    };
    let pause_secs = match kind {
        HUB_JOBS => HUB_JOBS_EVERY_SECS,
        UPDATE_POLICIES => UPDATE_POLICIES_EVERY_SECS,
        _ => EVERY_SECS,
    };
    Ok(Done::Again(if has_more { now } else { now.plus_secs(pause_secs) }))
}

async fn forget_upload_keys(db: &Db, before: Timestamp) -> Result<u64> {
    let mut tx = db.begin().await?;
    let deleted = sql("DELETE FROM upload_keys WHERE (idempotency_key, hub_uuid, kind) IN \
         (SELECT idempotency_key, hub_uuid, kind FROM upload_keys WHERE first_id < $1 LIMIT $2)")
    .bind(before.as_micros())
    .bind(CHUNK)
    .execute(&mut tx)
    .await?;
    tx.commit_unaudited("nothing a person did").await?;
    Ok(deleted)
}
