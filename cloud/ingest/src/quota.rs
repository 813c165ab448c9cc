//! How much a tenant may store, and upload in a day (UTC). What it uses is counted in the
//! transaction that stores the records, with one statement for the whole group, and lowered by
//! retention. A repeated upload counts nothing.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::{Duration, Instant};

use hub_base::db::aged::RECORD_BYTES;
use hub_base::db::bulk::{Bulk, Column};
use hub_base::db::months::Month;
use hub_base::db::{Conn, Tx, sql};
use hub_base::error::Result;
use hub_core::config::QuotaConfig;
use hub_protocol::{TenantUuid, Timestamp};

use super::kinds::Kind;
use super::receipt::Refusal;
use super::upload::{Record, Upload};

const DAY_SECS: i64 = 24 * 3600;
/// What other replicas and retention do to a tenant's use is noticed after this long.
const USAGE_AGE: Duration = Duration::from_secs(1);
/// The most tenants whose use is cached.
const MAX_USAGES: usize = 100_000;

/// What records count, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Charge {
    pub stored: i64,
    /// Bytes of the day, with those that do not count as stored.
    pub day: i64,
}

impl Charge {
    pub fn of(upload: &Upload) -> Self {
        let stored = upload.records.iter().map(counted_record).sum();
        // The key is stored for a week, with the response.
        let key = upload
            .key
            .as_ref()
            .map_or(0, |key| counted(key) + counted(&upload.answer));
        Self {
            stored,
            day: stored + key,
        }
    }

    pub fn add(&mut self, other: Self) {
        self.stored += other.stored;
        self.day += other.day;
    }
}

/// With what was read from it.
fn counted_record(record: &Record) -> i64 {
    counted(&record.text)
        + record
            .reading
            .as_deref()
            .map_or(0, |text| i64::try_from(text.len()).unwrap_or(0))
}

fn counted(text: &str) -> i64 {
    i64::try_from(text.len()).unwrap_or(i64::MAX / 2) + RECORD_BYTES
}

/// A tenant's own limits, where it has them.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Limits {
    pub stored_bytes: Option<i64>,
    pub bytes_per_day: Option<i64>,
}

impl Limits {
    /// The most bytes of a day.
    pub fn of_day(self, defaults: &QuotaConfig) -> i64 {
        self.bytes_per_day
            .unwrap_or(defaults.bytes_per_day_per_tenant)
    }
}

/// What a tenant uses, of all kinds together.
#[derive(Clone, Copy, Debug)]
pub(super) struct Usage {
    used: Charge,
    day: i64,
    read_at: Instant,
}

/// What tenants used when it was last read, and what this process has stored since.
#[derive(Default)]
pub(super) struct Usages(HashMap<TenantUuid, Usage>);

impl Usages {
    fn current(&self, tenant_uuid: TenantUuid, day: i64) -> Option<Usage> {
        self.0
            .get(&tenant_uuid)
            .copied()
            .filter(|usage| usage.day == day && usage.read_at.elapsed() < USAGE_AGE)
    }

    /// Remembers what is used after a commit.
    pub fn record(&mut self, usages: HashMap<TenantUuid, Usage>) {
        if self.0.len() + usages.len() > MAX_USAGES {
            self.0.clear();
        }
        self.0.extend(usages);
    }
}

/// As many tenants as a power of two, so that few statements differ by the length of their list:
/// the last one is repeated.
pub(super) fn padded(mut tenants: Vec<TenantUuid>) -> Vec<TenantUuid> {
    if let Some(&last) = tenants.last() {
        tenants.resize(tenants.len().next_power_of_two(), last);
    }
    tenants
}

/// What the tenants use, read from the database where it is not known.
pub(super) async fn usages(
    tx: &mut Tx,
    known: &Usages,
    tenants: impl Iterator<Item = TenantUuid>,
    now: Timestamp,
) -> Result<HashMap<TenantUuid, Usage>> {
    let day = day_of(now);
    let mut usages = HashMap::new();
    let mut unknown = Vec::new();
    let read_at = Instant::now();
    for tenant_uuid in tenants.collect::<HashSet<_>>() {
        let usage = known.current(tenant_uuid, day).unwrap_or_else(|| {
            unknown.push(tenant_uuid);
            let used = Charge::default();
            Usage { used, day, read_at }
        });
        usages.insert(tenant_uuid, usage);
    }
    if unknown.is_empty() {
        return Ok(usages);
    }
    let stored: Vec<(TenantUuid, i64, i64)> = sql("SELECT tenant_uuid, \
         CAST(SUM(bytes) AS BIGINT), \
         CAST(COALESCE(SUM(CASE WHEN day = $1 THEN day_bytes END), 0) AS BIGINT) \
         FROM stored_bytes WHERE tenant_uuid IN ")
    .bind(day)
    .push_list(padded(unknown))
    .push(" GROUP BY tenant_uuid")
    .all(tx)
    .await?;
    for (tenant_uuid, stored_bytes, day_bytes) in stored {
        let used = Charge {
            stored: stored_bytes.max(0),
            day: day_bytes,
        };
        usages.insert(tenant_uuid, Usage { used, day, read_at });
    }
    Ok(usages)
}

impl Usage {
    /// Counts the charge, or says which quota it exceeds.
    pub fn admit(
        &mut self,
        charge: Charge,
        limits: Limits,
        defaults: &QuotaConfig,
        now: Timestamp,
    ) -> std::result::Result<(), Refusal> {
        let stored_limit = limits
            .stored_bytes
            .unwrap_or(defaults.stored_bytes_per_tenant);
        let day_limit = limits.of_day(defaults);
        let mut used = self.used;
        used.add(charge);
        // What stores nothing is refused by neither.
        if charge.stored > 0 && used.stored > stored_limit {
            return Err(Refusal::StoredBytes {
                used: self.used.stored,
                limit: stored_limit,
            });
        }
        if charge.stored > 0 && used.day > day_limit {
            return Err(Refusal::BytesPerDay {
                limit: day_limit,
                reset_secs: secs_of_day_left(now),
            });
        }
        self.used = used;
        Ok(())
    }

    /// The bytes of this day.
    pub fn of_day(&self) -> i64 {
        self.used.day
    }

    /// Counts what was stored.
    pub fn add(&mut self, charge: Charge) {
        self.used.add(charge);
    }
}

/// Counts what was stored, in the order in which the rows are locked.
pub(super) async fn record(
    conn: &mut Conn,
    charges: &BTreeMap<(TenantUuid, Kind), Charge>,
    now: Timestamp,
) -> Result<()> {
    let count = charges.len();
    Bulk {
        head: "INSERT INTO stored_bytes (tenant_uuid, kind, month, bytes, day, day_bytes)",
        columns: vec![
            Column::Uuid(charges.keys().map(|(tenant, _)| tenant.0).collect()),
            Column::Word(charges.keys().map(|(_, kind)| kind.name()).collect()),
            Column::Int(vec![Month::of(now).number(); count]),
            Column::Int(charges.values().map(|charge| charge.stored).collect()),
            Column::Int(vec![day_of(now); count]),
            Column::Int(charges.values().map(|charge| charge.day).collect()),
        ],
        tail: "ON CONFLICT (tenant_uuid, kind, month) DO UPDATE SET \
               bytes = stored_bytes.bytes + excluded.bytes, \
               day_bytes = CASE WHEN stored_bytes.day >= excluded.day \
                                THEN stored_bytes.day_bytes + excluded.day_bytes \
                                ELSE excluded.day_bytes END, \
               day = CASE WHEN stored_bytes.day >= excluded.day \
                          THEN stored_bytes.day ELSE excluded.day END",
    }
    .execute(conn)
    .await
    .map(drop)
}

/// Counts a record that was stored in a transaction of its own.
pub async fn count_stored(
    tx: &mut Tx,
    tenant_uuid: TenantUuid,
    kind: Kind,
    text: &str,
    now: Timestamp,
) -> Result<()> {
    let charge = Charge {
        stored: counted(text),
        day: counted(text),
    };
    record(tx, &BTreeMap::from([((tenant_uuid, kind), charge)]), now).await
}

/// Counts bytes as no longer stored.
pub async fn lower_stored(
    tx: &mut Tx,
    tenant_uuid: TenantUuid,
    kind: Kind,
    month: Month,
    bytes: i64,
) -> Result<()> {
    sql("UPDATE stored_bytes SET bytes = bytes - $4 \
         WHERE tenant_uuid = $1 AND kind = $2 AND month = $3")
    .bind((tenant_uuid, kind.name(), month.number(), bytes))
    .run(tx)
    .await
}

/// Counts nothing as stored of a month that is gone as a whole.
pub async fn forget_month(tx: &mut Tx, kind: Kind, month: Month) -> Result<()> {
    sql("DELETE FROM stored_bytes WHERE kind = $1 AND month = $2")
        .bind((kind.name(), month.number()))
        .run(tx)
        .await
}

/// Whether counts of months before `month` are left, of which nothing is stored any more.
pub async fn has_months_before(conn: &mut Conn, kind: Kind, month: Month) -> Result<bool> {
    sql("SELECT 1 FROM stored_bytes WHERE kind = $1 AND month < $2 LIMIT 1")
        .bind((kind.name(), month.number()))
        .exists(conn)
        .await
}

/// Deletes up to `limit` of them.
pub async fn forget_months_before(
    tx: &mut Tx,
    kind: Kind,
    month: Month,
    limit: i64,
) -> Result<u64> {
    sql(
        "DELETE FROM stored_bytes WHERE (tenant_uuid, kind, month) IN \
         (SELECT tenant_uuid, kind, month FROM stored_bytes \
         WHERE kind = $1 AND month < $2 LIMIT $3)",
    )
    .bind((kind.name(), month.number(), limit))
    .execute(tx)
    .await
}

/// The bytes that all tenants store of a kind.
pub async fn stored_of_kind(conn: &mut Conn, kind: Kind) -> Result<i64> {
    sql("SELECT CAST(COALESCE(SUM(bytes), 0) AS BIGINT) FROM stored_bytes WHERE kind = $1")
        .bind(kind.name())
        .scalar(conn)
        .await
}

/// The bytes that all tenants store.
pub async fn stored_in_total(conn: &mut Conn) -> Result<i64> {
    sql("SELECT CAST(COALESCE(SUM(bytes), 0) AS BIGINT) FROM stored_bytes")
        .scalar(conn)
        .await
}

/// What a tenant uses of what it may.
#[derive(sqlx::FromRow)]
pub struct Used {
    pub tenant_uuid: TenantUuid,
    pub name: String,
    pub used: i64,
    pub allowed: i64,
}

/// Tenants that store this much of what they may, in percent, or more. `allowed` is for those
/// without a limit of their own.
pub async fn near_stored_bytes(
    conn: &mut Conn,
    allowed: i64,
    percent: i64,
    limit: i64,
) -> Result<Vec<Used>> {
    sql(
        "SELECT tenant_uuid, name, used, allowed FROM (SELECT t.tenant_uuid, t.name, \
         CAST(SUM(b.bytes) AS BIGINT) AS used, COALESCE(t.stored_bytes_limit, $1) AS allowed \
         FROM stored_bytes b JOIN tenants t ON t.tenant_uuid = b.tenant_uuid \
         WHERE t.deleted_at IS NULL GROUP BY t.tenant_uuid, t.name, t.stored_bytes_limit) tenants \
         WHERE used > 0 AND used / $2 >= allowed / 100 \
         ORDER BY used * 1.0 / (allowed + 1) DESC LIMIT $3",
    )
    .bind((allowed, percent, limit))
    .all(conn)
    .await
}

/// The same of what they have uploaded today (UTC).
pub async fn near_bytes_per_day(
    conn: &mut Conn,
    now: Timestamp,
    allowed: i64,
    percent: i64,
    limit: i64,
) -> Result<Vec<Used>> {
    sql(
        "SELECT tenant_uuid, name, used, allowed FROM (SELECT t.tenant_uuid, t.name, \
         CAST(SUM(b.day_bytes) AS BIGINT) AS used, COALESCE(t.bytes_per_day_limit, $1) AS allowed \
         FROM stored_bytes b JOIN tenants t ON t.tenant_uuid = b.tenant_uuid \
         WHERE t.deleted_at IS NULL AND b.day = $2 \
         GROUP BY t.tenant_uuid, t.name, t.bytes_per_day_limit) tenants \
         WHERE used > 0 AND used / $3 >= allowed / 100 \
         ORDER BY used * 1.0 / (allowed + 1) DESC LIMIT $4",
    )
    .bind((allowed, day_of(now), percent, limit))
    .all(conn)
    .await
}

/// Seconds until the day is over.
pub(super) const fn secs_of_day_left(now: Timestamp) -> i64 {
    DAY_SECS - now.as_secs().rem_euclid(DAY_SECS)
}

/// The day, counted from 1970.
pub(super) const fn day_of(now: Timestamp) -> i64 {
    now.as_secs().div_euclid(DAY_SECS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quota_is_reached_by_the_byte() {
        let now = "2026-03-01T18:00:00Z".parse::<Timestamp>().expect("a time");
        let defaults = QuotaConfig {
            stored_bytes_per_tenant: 100,
            bytes_per_day_per_tenant: 300,
        };
        let mut usage = Usage {
            used: Charge {
                stored: 40,
                day: 200,
            },
            day: day_of(now),
            read_at: Instant::now(),
        };
        let charge = |stored, day| Charge { stored, day };
        let none = Limits::default();
        usage
            .admit(charge(60, 90), none, &defaults, now)
            .expect("just enough");
        let refused = usage
            .admit(charge(1, 1), none, &defaults, now)
            .expect_err("a full quota");
        assert!(
            matches!(
                refused,
                Refusal::StoredBytes {
                    used: 100,
                    limit: 100
                }
            ),
            "{refused:?}"
        );
        Usage::clone(&usage)
            .admit(charge(0, 1000), none, &defaults, now)
            .expect("it stores nothing");
        let own = Limits {
            stored_bytes: Some(1000),
            bytes_per_day: None,
        };
        let refused = usage
            .admit(charge(1, 11), own, &defaults, now)
            .expect_err("a full day");
        assert!(
            matches!(
                refused,
                Refusal::BytesPerDay {
                    limit: 300,
                    reset_secs: 21_600
                }
            ),
            "{refused:?}"
        );
        usage
            .admit(charge(1, 10), own, &defaults, now)
            .expect("just enough");
    }
}
