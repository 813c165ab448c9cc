//! What others want to know of pipelines.

use hub_base::db::{Conn, Tx};
use hub_base::error::Result;
use hub_identity::authz::Scope;
use hub_protocol::{TenantUuid, Timestamp};

use super::store::numbers;
pub use numbers::{FailingRow, LosingRow, PipelineCounts};

/// Pipelines that one scan reports as failing, or as having lost events.
const MAX_FAILING: i64 = 10_000;
/// Tenants that are looked at for the greatest lag.
const LOOKED_AT: usize = 100;
/// How long a loss is reported that the pipeline has passed.
const LOSS_SECS: i64 = 3600;

/// What a tenant's pipelines have done since a time.
#[derive(Debug)]
pub struct Numbers {
    pub pipelines: PipelineCounts,
    pub dead_letters: i64,
    pub attempts: i64,
    pub succeeded: i64,
}

pub async fn numbers(conn: &mut Conn, scope: &Scope, from: Timestamp) -> Result<Numbers> {
    let pipelines = numbers::counts(conn, scope).await?;
    let dead_letters = numbers::dead_letters(conn, scope).await?;
    let (attempts, succeeded) = numbers::attempts(conn, scope, from).await?;
    Ok(Numbers {
        pipelines,
        dead_letters,
        attempts,
        succeeded,
    })
}

/// How the pipelines of all tenants do.
#[derive(Debug)]
pub struct Overview {
    pub by_status: [(&'static str, i64); 5],
    /// The age of the oldest event that a running pipeline is not done with.
    pub lag_seconds: i64,
}

impl Overview {
    /// Pipelines that are enabled and do not deliver.
    pub fn failing(&self) -> i64 {
        let fails = |(status, _): &&(&str, i64)| matches!(*status, "OPEN_CIRCUIT" | "INVALID");
        self.by_status
            .iter()
            .filter(fails)
            .map(|(_, count)| count)
            .sum()
    }
}

pub async fn overview(conn: &mut Conn, now: Timestamp) -> Result<Overview> {
    let mut by_status = [
        ("RUNNING", 0),
        ("DISABLED", 0),
        ("OPEN_CIRCUIT", 0),
        ("SUSPENDED", 0),
        ("INVALID", 0),
    ];
    for (enabled, status, count) in numbers::statuses(conn).await? {
        let status = if enabled { status.as_str() } else { "DISABLED" };
        if let Some((_, sum)) = by_status.iter_mut().find(|(name, _)| *name == status) {
            *sum += count;
        }
    }
    let oldest = numbers::oldest_waiting(conn, LOOKED_AT).await?;
    let age = |id| {
        now.as_secs()
            .saturating_sub(Timestamp::from_micros(id).as_secs())
            .max(0)
    };
    Ok(Overview {
        by_status,
        lag_seconds: oldest.map_or(0, age),
    })
}

/// The pipelines of all tenants whose receivers fail.
pub async fn failing(conn: &mut Conn) -> Result<Vec<FailingRow>> {
    numbers::failing(conn, MAX_FAILING).await
}

/// The pipelines of all tenants that retention has overtaken, until they have gone on for a while.
pub async fn losing(conn: &mut Conn, now: Timestamp) -> Result<Vec<LosingRow>> {
    numbers::losing(conn, now.plus_secs(-LOSS_SECS), MAX_FAILING).await
}

/// Notes that retention has deleted a tenant's events up to an id.
pub async fn lose(
    tx: &mut Tx,
    tenant_uuid: TenantUuid,
    last_id: i64,
    now: Timestamp,
) -> Result<()> {
    let lanes = numbers::lose(tx, tenant_uuid, last_id, now).await?;
    tell(tx, lanes);
    Ok(())
}

/// Notes that retention is about to delete the events with these ids, both included, of all
/// tenants.
pub async fn lose_all(tx: &mut Tx, ids: (i64, i64), now: Timestamp) -> Result<()> {
    let lanes = numbers::lose_all(tx, ids, now).await?;
    tell(tx, lanes);
    Ok(())
}

fn tell(tx: &mut Tx, lanes: u64) {
    if lanes > 0 {
        tx.after_commit(async move {
            tracing::warn!(
                lanes,
                "retention has deleted events that pipelines had not sent yet; they show the lost range"
            );
        });
    }
}
