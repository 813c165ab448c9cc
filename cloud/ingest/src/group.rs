//! One transaction of the writer. Each step is one statement for the whole group: check the tokens;
//! count the minute's requests and issue record ids; store idempotency keys; store the records and
//! count their bytes; mark the hubs as seen. Rows that several replicas lock are locked in key
//! order.
//!
//! The id of a record is its time of receipt in microseconds, and strictly increases within a
//! tenant. The clock row that issues it stays locked until the commit, so that records are
//! committed in the order of their ids, also across replicas: whoever reads a log up to an id has
//! read all of it.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use hub_base::db::bulk::{Bulk, Column};
use hub_base::db::{Tx, sql};
use hub_base::error::Result;
use hub_core::Core;
use hub_protocol::{HubUuid, TenantUuid, Timestamp};
use uuid::Uuid;

use super::batches::{self, Batches, FirstReception};
use super::commits::{Commit, CommittedRecord};
use super::day_shares::{self, DayShares};
use super::derived::{Derived, Due, HeardUpload};
use super::kinds::Kind;
use super::observations::{NewFrames, Observations};
use super::queue::{Exhausted, Pending};
use super::quota::{self, Charge, Limits, Usage, Usages};
use super::receipt::{RateLimit, Receipt, Refusal, minute_of, secs_left};
use super::shares::{self, Shared, Shares};
use super::touches::Touches;
use super::upload::Upload;

pub(super) struct Outcome {
    /// One for each upload, in the order of the group.
    pub verdicts: Vec<std::result::Result<Receipt, Refusal>>,
    pub committed: Vec<Commit>,
    pub touched: Vec<(HubUuid, Kind)>,
    /// Tenants and hubs that may upload no more in this minute.
    pub exhausted: Vec<Exhausted>,
    /// What the tenants of the group use now.
    pub usages: HashMap<TenantUuid, Usage>,
    pub at: Timestamp,
    pub records: u64,
    pub frames: NewFrames,
}

/// The state of an upload while its group is checked.
enum Verdict {
    Store(Place),
    /// Known from an earlier request, or from an earlier upload of this group.
    Duplicate(RateLimit, String),
    /// Nothing of it is stored, for want of consent.
    Withheld(Place),
    /// Refused, unless an earlier request stored it.
    OverQuota(Place, Refusal),
    Refuse(Refusal),
}

/// What an accepted upload was assigned.
#[derive(Clone, Copy)]
struct Place {
    rate_limit: RateLimit,
    /// The id of its first record. Every upload gets at least one id, even without records.
    first_id: i64,
}

/// Turns that two processes with one hub's credentials take are counted until there were none for
/// this long.
pub const CLONE_QUIET_SECS: i64 = 24 * 3600;

/// How many ids an upload gets.
fn ids_of(pending: &Pending) -> i64 {
    i64::try_from(pending.upload.records.len())
        .unwrap_or(i64::MAX)
        .max(1)
}

/// What the writer remembers of earlier groups.
pub(super) struct Memory<'a> {
    pub touches: &'a Touches,
    pub usages: &'a Usages,
    pub observations: &'a Observations,
    /// None if it cannot be written.
    pub derived: Option<(&'a dyn Derived, Due)>,
}

pub(super) async fn commit(core: &Core, group: &[Pending], memory: Memory<'_>) -> Result<Outcome> {
    let mut tx = core.db.begin_first().await?;
    let now = core.clock.now();
    let noted = noted_tokens(&mut tx, group).await?;
    let in_force: Vec<bool> = group
        .iter()
        .map(|pending| noted.get(&token_of(pending)) != Some(&Noted::Over))
        .collect();
    let ranges = advance_clocks(core, &mut tx, group, &in_force, now).await?;
    let tenants = ranges.keys().map(|(tenant_uuid, _)| *tenant_uuid);
    let mut usages = quota::usages(&mut tx, memory.usages, tenants, now).await?;
    let mut shares = load_shares(core, &mut tx, group, &ranges, now).await?;
    let mut day_shares = load_day_shares(core, &mut tx, group, &ranges, &usages, now).await?;
    let admission = Admission {
        core,
        noted: &noted,
        ranges: &ranges,
        shares: &mut shares,
        day_shares: &mut day_shares,
        now,
    };
    let (mut verdicts, limited) = admission.admit(group, usages.clone());
    shares::store(&mut tx, &shares, minute_of(now)).await?;
    day_shares::store(&mut tx, &day_shares, now).await?;
    shares::note_reached(&mut tx, &limited.reached, minute_of(now)).await?;
    store_keys(&mut tx, group, &mut verdicts).await?;
    let (committed, records, frames) =
        store_records(&mut tx, group, &verdicts, &ranges, memory.observations).await?;
    let charges = charges(group, &verdicts);
    quota::record(&mut tx, &charges, now).await?;
    let heard = heard(group, &verdicts);
    if let Some((derived, due)) = memory.derived {
        derived.write(&mut tx, &heard, due, now).await?;
    }
    let touched = touch_hubs(&mut tx, group, &verdicts, memory.touches, now).await?;
    tx.commit_unaudited("uploads are data, not changes by an actor")
        .await?;
    if let Some((derived, _)) = memory.derived {
        derived.committed(now);
    }

    for ((tenant_uuid, _), charge) in charges {
        usages
            .entry(tenant_uuid)
            .and_modify(|usage| usage.add(charge));
    }
    let verdicts = group
        .iter()
        .zip(verdicts)
        .map(|(pending, verdict)| receipt(pending, verdict))
        .collect();
    Ok(Outcome {
        verdicts,
        committed,
        touched,
        exhausted: limited.exhausted,
        usages,
        at: now,
        records,
        frames,
    })
}

fn receipt(pending: &Pending, verdict: Verdict) -> std::result::Result<Receipt, Refusal> {
    match verdict {
        Verdict::Store(Place { rate_limit, .. }) => Ok(Receipt {
            answer: pending.upload.answer.clone(),
            duplicate: false,
            withheld: false,
            rate_limit,
        }),
        Verdict::Duplicate(rate_limit, answer) => Ok(Receipt {
            answer,
            duplicate: true,
            withheld: false,
            rate_limit,
        }),
        Verdict::Withheld(Place { rate_limit, .. }) => Ok(Receipt {
            answer: String::new(),
            duplicate: false,
            withheld: true,
            rate_limit,
        }),
        Verdict::OverQuota(_, refusal) | Verdict::Refuse(refusal) => Err(refusal),
    }
}

/// A hub and the token it presented.
type Token = (HubUuid, Uuid);

fn token_of(pending: &Pending) -> Token {
    (pending.upload.hub.hub_uuid, pending.upload.hub.token_id)
}

/// What is to be noted of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Noted {
    /// It is not in force.
    Over,
    /// Its hub withholds BLE events.
    Withholds,
}

#[derive(sqlx::FromRow)]
struct NotedRow {
    hub_uuid: HubUuid,
    token_id: Uuid,
    is_over: bool,
}

/// The group's tokens that are not in force, and those of hubs that withhold their events; nearly
/// always none.
async fn noted_tokens(tx: &mut Tx, group: &[Pending]) -> Result<HashMap<Token, Noted>> {
    let (hubs, tokens) = group
        .iter()
        .map(token_of)
        .collect::<HashSet<_>>()
        .into_iter()
        .map(|(hub, id)| (hub.0, id))
        .unzip();
    let rows: Vec<NotedRow> = Bulk {
        head: "WITH given (hub_uuid, token_id) AS (",
        columns: vec![Column::Uuid(hubs), Column::Uuid(tokens)],
        tail: ") SELECT given.hub_uuid, given.token_id, \
               hubs.access_token_id IS DISTINCT FROM given.token_id AS is_over FROM given \
               LEFT JOIN hubs ON hubs.hub_uuid = given.hub_uuid \
               WHERE hubs.access_token_id IS DISTINCT FROM given.token_id OR hubs.withholds_events",
    }
    .returning(tx)
    .await?;
    let noted = |row: NotedRow| {
        (
            (row.hub_uuid, row.token_id),
            if row.is_over {
                Noted::Over
            } else {
                Noted::Withholds
            },
        )
    };
    Ok(rows.into_iter().map(noted).collect())
}

type ClockKey = (TenantUuid, Kind);

/// What a tenant's clock issued to this group.
struct Range {
    /// The last id issued before this group, by any replica.
    previous_id: i64,
    /// The group's own ids.
    first_id: i64,
    last_id: i64,
    /// The minute's requests before this group.
    requests_before: i64,
    /// The tenant's own limits, where it has them.
    upload_limit: Option<i64>,
    limits: Limits,
    shared: Shared,
}

impl Range {
    fn limit(&self, core: &Core) -> i64 {
        self.upload_limit
            .unwrap_or(core.config.upload_limit_per_minute)
    }
}

#[derive(sqlx::FromRow)]
struct ClockRow {
    tenant_uuid: TenantUuid,
    kind: String,
    requests: i64,
    last_id: i64,
    previous_id: i64,
    reached_minute: i64,
    shared_minute: i64,
    share: i64,
    share_rest: i64,
    share_left: i64,
}

/// What is set of a tenant.
#[derive(sqlx::FromRow)]
struct TenantSettings {
    tenant_uuid: TenantUuid,
    upload_limit: Option<i64>,
    stored_bytes_limit: Option<i64>,
    bytes_per_day_limit: Option<i64>,
    catalog_revision: Option<i64>,
}

async fn tenant_settings(
    tx: &mut Tx,
    tenants: BTreeSet<TenantUuid>,
) -> Result<HashMap<TenantUuid, TenantSettings>> {
    if tenants.is_empty() {
        return Ok(HashMap::new());
    }
    let rows: Vec<TenantSettings> = sql(
        "SELECT t.tenant_uuid, t.upload_limit_per_minute AS upload_limit, t.stored_bytes_limit, \
         t.bytes_per_day_limit, c.revision AS catalog_revision FROM tenants t \
         LEFT JOIN catalog_revisions c ON c.tenant_uuid = t.tenant_uuid WHERE t.tenant_uuid IN ",
    )
    .push_list(quota::padded(tenants.into_iter().collect()))
    .all(tx)
    .await?;
    Ok(rows.into_iter().map(|row| (row.tenant_uuid, row)).collect())
}

/// Counts the requests and issues ids for all records that may be stored. An id that is not used
/// leaves a gap, which is harmless. Returns what is set of the tenants too.
async fn advance_clocks(
    core: &Core,
    tx: &mut Tx,
    group: &[Pending],
    in_force: &[bool],
    now: Timestamp,
) -> Result<HashMap<ClockKey, Range>> {
    // In key order, in which the rows are locked.
    let mut requested: BTreeMap<ClockKey, (i64, i64)> = BTreeMap::new();
    for (pending, _) in group
        .iter()
        .zip(in_force)
        .filter(|(_, in_force)| **in_force)
    {
        let (requests, ids) = requested
            .entry((pending.upload.hub.tenant_uuid, pending.upload.kind))
            .or_default();
        *requests += i64::from(pending.is_counted);
        *ids += ids_of(pending);
    }
    let now_micros = now.as_micros();
    let columns = vec![
        Column::Uuid(requested.keys().map(|(tenant, _)| tenant.0).collect()),
        Column::Word(requested.keys().map(|(_, kind)| kind.name()).collect()),
        Column::Int(vec![minute_of(now); requested.len()]),
        Column::Int(requested.values().map(|(requests, _)| *requests).collect()),
        Column::Int(vec![now_micros; requested.len()]),
        Column::Int(
            requested
                .values()
                .map(|(_, ids)| now_micros - ids)
                .collect(),
        ),
    ];
    // A group's ids end at the present time, unless the last issued id is later.
    let rows: Vec<ClockRow> = Bulk {
        head: "INSERT INTO upload_clocks \
               (tenant_uuid, kind, minute, requests, last_id, previous_id)",
        columns,
        tail: "ON CONFLICT (tenant_uuid, kind) DO UPDATE SET \
               requests = CASE WHEN upload_clocks.minute >= excluded.minute \
                               THEN upload_clocks.requests + excluded.requests \
                               ELSE excluded.requests END, \
               minute = CASE WHEN upload_clocks.minute >= excluded.minute \
                             THEN upload_clocks.minute ELSE excluded.minute END, \
               previous_id = upload_clocks.last_id, \
               last_id = CASE WHEN upload_clocks.last_id > excluded.previous_id \
                              THEN upload_clocks.last_id + excluded.last_id - excluded.previous_id \
                              ELSE excluded.last_id END \
               RETURNING tenant_uuid, kind, requests, last_id, previous_id, \
               reached_minute, shared_minute, share, share_rest, share_left",
    }
    .returning(tx)
    .await?;
    let tenants = rows.iter().map(|row| row.tenant_uuid).collect();
    let settings = tenant_settings(tx, tenants).await?;
    let mut ranges = HashMap::with_capacity(rows.len());
    for row in rows {
        let Some(kind) = Kind::from_name(&row.kind) else {
            continue;
        };
        let key = (row.tenant_uuid, kind);
        let Some((requests, ids)) = requested.get(&key) else {
            continue;
        };
        let settings = settings.get(&row.tenant_uuid);
        // Another replica may have changed the catalog: the next upload is read with the new one.
        let catalog_revision = settings.and_then(|of| of.catalog_revision).unwrap_or(0);
        core.catalog_revisions
            .note(row.tenant_uuid, catalog_revision);
        let range = Range {
            previous_id: row.previous_id,
            first_id: row.last_id - ids + 1,
            last_id: row.last_id,
            requests_before: row.requests - requests,
            upload_limit: settings.and_then(|of| of.upload_limit),
            limits: Limits {
                stored_bytes: settings.and_then(|of| of.stored_bytes_limit),
                bytes_per_day: settings.and_then(|of| of.bytes_per_day_limit),
            },
            shared: Shared {
                reached_minute: row.reached_minute,
                shared_minute: row.shared_minute,
                share: row.share,
                rest: row.share_rest,
                left: row.share_left,
            },
        };
        ranges.insert(key, range);
    }
    Ok(ranges)
}

/// The shares of the tenants whose limit is shared in this minute; nearly always none.
async fn load_shares(
    core: &Core,
    tx: &mut Tx,
    group: &[Pending],
    ranges: &HashMap<ClockKey, Range>,
    now: Timestamp,
) -> Result<HashMap<ClockKey, Shares>> {
    let minute = minute_of(now);
    let is_shared = |range: &Range| {
        range.shared.shared_minute == minute || range.shared.reached_minute == minute - 1
    };
    let shared: BTreeMap<ClockKey, &Range> = ranges
        .iter()
        .filter(|(_, range)| is_shared(range))
        .map(|(key, range)| (*key, range))
        .collect();
    if shared.is_empty() {
        return Ok(HashMap::new());
    }
    let mut hubs: BTreeMap<ClockKey, BTreeSet<HubUuid>> = BTreeMap::new();
    for Pending { upload, .. } in group {
        let key = (upload.hub.tenant_uuid, upload.kind);
        if shared.contains_key(&key) {
            hubs.entry(key).or_default().insert(upload.hub.hub_uuid);
        }
    }
    let clocks = shared
        .into_iter()
        .map(|((tenant_uuid, kind), range)| (tenant_uuid, kind, range.shared, range.limit(core)));
    shares::load(tx, clocks, &hubs, minute, now).await
}

/// The shares of the tenants that have used half of their day; nearly always none.
async fn load_day_shares(
    core: &Core,
    tx: &mut Tx,
    group: &[Pending],
    ranges: &HashMap<ClockKey, Range>,
    usages: &HashMap<TenantUuid, Usage>,
    now: Timestamp,
) -> Result<DayShares> {
    let mut day_limits: BTreeMap<TenantUuid, i64> = BTreeMap::new();
    for ((tenant_uuid, _), range) in ranges {
        let limit = range.limits.of_day(&core.config.quotas);
        let used = usages.get(tenant_uuid).map_or(0, |usage| usage.of_day());
        if used >= limit / 2 {
            day_limits.insert(*tenant_uuid, limit);
        }
    }
    let mut hubs: BTreeMap<TenantUuid, BTreeSet<HubUuid>> = BTreeMap::new();
    if !day_limits.is_empty() {
        for Pending { upload, .. } in group {
            let of_tenant = hubs.entry(upload.hub.tenant_uuid).or_default();
            of_tenant.insert(upload.hub.hub_uuid);
        }
    }
    day_shares::load(tx, &day_limits, &hubs, now).await
}

/// Accepts uploads of hubs whose token is in force, up to the tenant's limit for the minute and its
/// quotas.
struct Admission<'a> {
    core: &'a Core,
    noted: &'a HashMap<Token, Noted>,
    ranges: &'a HashMap<ClockKey, Range>,
    shares: &'a mut HashMap<ClockKey, Shares>,
    day_shares: &'a mut DayShares,
    now: Timestamp,
}

/// What is limited after a group.
#[derive(Default)]
struct Limited {
    /// Who may upload no more in this minute.
    exhausted: Vec<Exhausted>,
    /// The tenants and kinds whose limit was reached: the next minute is shared.
    reached: Vec<ClockKey>,
}

impl Admission<'_> {
    fn admit(
        self,
        group: &[Pending],
        mut usages: HashMap<TenantUuid, Usage>,
    ) -> (Vec<Verdict>, Limited) {
        let Self {
            core,
            noted,
            ranges,
            shares,
            day_shares,
            now,
        } = self;
        // Requests of the minute, and the next id.
        let mut counted: HashMap<ClockKey, (i64, i64)> = HashMap::new();
        let mut exhausted: HashMap<(ClockKey, Option<HubUuid>), Exhausted> = HashMap::new();
        let mut reached = HashSet::new();
        let mut verdicts = Vec::with_capacity(group.len());
        for pending in group {
            let hub = &pending.upload.hub;
            let noted = noted.get(&token_of(pending));
            let key = (hub.tenant_uuid, pending.upload.kind);
            let Some(range) = ranges.get(&key).filter(|_| noted != Some(&Noted::Over)) else {
                verdicts.push(Verdict::Refuse(Refusal::TokenNotInForce));
                continue;
            };
            let (count, next_id) = counted
                .entry(key)
                .or_insert((range.requests_before, range.first_id));
            let first_id = *next_id;
            *count += i64::from(pending.is_counted);
            *next_id += ids_of(pending);
            let limit = range.limit(core);
            let (is_admitted, remaining, share) = match shares.get_mut(&key) {
                Some(shares) => {
                    let is_admitted = !pending.is_counted || shares.admit(hub.hub_uuid);
                    let remaining = shares.remaining(hub.hub_uuid);
                    (is_admitted, remaining, Some(shares.share))
                }
                None => (
                    !pending.is_counted || *count <= limit,
                    (limit - *count).max(0),
                    None,
                ),
            };
            let rate_limit = RateLimit {
                limit,
                remaining,
                reset_secs: secs_left(now),
            };
            if remaining == 0 {
                let hub_uuid = share.map(|_| hub.hub_uuid);
                exhausted.entry((key, hub_uuid)).or_insert(Exhausted {
                    tenant_uuid: key.0,
                    kind: key.1,
                    hub_uuid,
                    minute: minute_of(now),
                    limit,
                    share,
                });
            }
            if remaining == 0 && share.is_none() || !is_admitted {
                reached.insert(key);
            }
            if !is_admitted {
                verdicts.push(Verdict::Refuse(match share {
                    Some(share) => Refusal::ShareExceeded {
                        rate_limit,
                        share,
                        hub_uuid: hub.hub_uuid,
                    },
                    None => Refusal::RateLimited(rate_limit),
                }));
                continue;
            }
            let place = Place {
                rate_limit,
                first_id,
            };
            if noted.is_some() && pending.upload.kind == Kind::BleEvents {
                verdicts.push(Verdict::Withheld(place));
                continue;
            }
            let charge = Charge::of(&pending.upload);
            let admitted = usages.get_mut(&key.0).map_or(Ok(()), |usage| {
                usage.admit(charge, range.limits, &core.config.quotas, now)?;
                day_shares.admit(hub, charge, now)
            });
            verdicts.push(match admitted {
                Ok(()) => Verdict::Store(place),
                Err(refusal) => Verdict::OverQuota(place, refusal),
            });
        }
        let limited = Limited {
            exhausted: exhausted.into_values().collect(),
            reached: reached.into_iter().collect(),
        };
        (verdicts, limited)
    }
}

type UploadKey<'a> = (TenantUuid, HubUuid, Kind, &'a str);

#[derive(sqlx::FromRow)]
struct KnownKey {
    hub_uuid: HubUuid,
    kind: String,
    idempotency_key: String,
    answer: String,
    first_id: i64,
}

/// Distinguishes new uploads from repeated ones, and stores the keys of the new.
async fn store_keys(tx: &mut Tx, group: &[Pending], verdicts: &mut [Verdict]) -> Result<()> {
    let mut firsts: HashMap<UploadKey<'_>, (&Pending, i64)> = HashMap::new();
    let mut over_quota: HashSet<UploadKey<'_>> = HashSet::new();
    for (pending, verdict) in group.iter().zip(verdicts.iter_mut()) {
        let Some(key) = upload_key(pending) else {
            continue;
        };
        let (place, is_stored) = match &*verdict {
            Verdict::Store(place) => (*place, true),
            Verdict::OverQuota(place, _) => (*place, false),
            Verdict::Duplicate(..) | Verdict::Withheld(_) | Verdict::Refuse(_) => continue,
        };
        match firsts.get(&key) {
            Some((first, _)) => {
                *verdict = Verdict::Duplicate(place.rate_limit, first.upload.answer.clone())
            }
            None if is_stored => drop(firsts.insert(key, (pending, place.first_id))),
            None => drop(over_quota.insert(key)),
        }
    }
    let keys: Vec<UploadKey<'_>> = firsts.keys().copied().collect();
    let mut columns = key_columns(&keys);
    columns.push(Column::Text(
        firsts
            .values()
            .map(|(first, _)| Arc::from(first.upload.answer.as_str()))
            .collect(),
    ));
    columns.push(Column::Int(
        firsts.values().map(|(_, first_id)| *first_id).collect(),
    ));
    // The rows are counted, since Citus counts those that were in conflict as well.
    let inserted: Vec<(i64,)> = Bulk {
        head: "INSERT INTO upload_keys \
               (tenant_uuid, idempotency_key, hub_uuid, kind, answer, first_id)",
        columns,
        tail: "ON CONFLICT DO NOTHING RETURNING first_id",
    }
    .returning(tx)
    .await?;
    let mut sought: Vec<UploadKey<'_>> = over_quota.into_iter().collect();
    if inserted.len() != keys.len() {
        sought.extend(&keys);
    }
    let mut of_tenants: BTreeMap<TenantUuid, BTreeSet<&str>> = BTreeMap::new();
    for (tenant_uuid, _, _, key) in sought {
        of_tenants.entry(tenant_uuid).or_default().insert(key);
    }
    let mut rows: Vec<KnownKey> = Vec::new();
    for (tenant_uuid, keys) in of_tenants {
        // Those of other hubs are not looked up below.
        let known: Vec<KnownKey> = sql("SELECT hub_uuid, kind, idempotency_key, answer, first_id \
             FROM upload_keys WHERE tenant_uuid = $1 AND idempotency_key IN ")
        .bind(tenant_uuid)
        .push_list(keys)
        .all(tx)
        .await?;
        rows.extend(known);
    }
    // A key with the id of another upload existed before.
    let known: HashMap<(HubUuid, &str, &str), (&str, i64)> = rows
        .iter()
        .map(|row| {
            (
                (
                    row.hub_uuid,
                    row.kind.as_str(),
                    row.idempotency_key.as_str(),
                ),
                (row.answer.as_str(), row.first_id),
            )
        })
        .collect();
    for (pending, verdict) in group.iter().zip(verdicts) {
        let Some(key @ (_, hub, kind, text)) = upload_key(pending) else {
            continue;
        };
        let Some((answer, first_id)) = known.get(&(hub, kind.name(), text)) else {
            continue;
        };
        if firsts.get(&key).is_some_and(|(_, ours)| ours == first_id) {
            continue;
        }
        // All uploads of the group under a known key are repeats, the first one included.
        let rate_limit = match verdict {
            Verdict::Store(place) | Verdict::OverQuota(place, _) => place.rate_limit,
            Verdict::Duplicate(rate_limit, _) => *rate_limit,
            Verdict::Withheld(_) | Verdict::Refuse(_) => continue,
        };
        *verdict = Verdict::Duplicate(rate_limit, (*answer).to_owned());
    }
    Ok(())
}

fn upload_key(pending: &Pending) -> Option<UploadKey<'_>> {
    Some((
        pending.upload.hub.tenant_uuid,
        pending.upload.hub.hub_uuid,
        pending.upload.kind,
        pending.upload.key.as_deref()?,
    ))
}

fn key_columns(keys: &[UploadKey<'_>]) -> Vec<Column> {
    vec![
        Column::Uuid(keys.iter().map(|(tenant, ..)| tenant.0).collect()),
        Column::Text(keys.iter().map(|(.., key)| Arc::from(*key)).collect()),
        Column::Uuid(keys.iter().map(|(_, hub, ..)| hub.0).collect()),
        Column::Word(keys.iter().map(|(_, _, kind, _)| kind.name()).collect()),
    ]
}

/// The rows of logs or telemetry.
#[derive(Default)]
struct Rows {
    tenants: Vec<Uuid>,
    hubs: Vec<Uuid>,
    ids: Vec<i64>,
    texts: Vec<Arc<str>>,
}

impl Rows {
    fn push(&mut self, (tenant_uuid, hub_uuid): (TenantUuid, HubUuid), id: i64, text: &Arc<str>) {
        self.tenants.push(tenant_uuid.0);
        self.hubs.push(hub_uuid.0);
        self.ids.push(id);
        self.texts.push(text.clone());
    }

    async fn insert(self, tx: &mut Tx, head: &'static str) -> Result<u64> {
        Bulk {
            head,
            columns: vec![
                Column::Uuid(self.tenants),
                Column::Uuid(self.hubs),
                Column::Int(self.ids),
                Column::Text(self.texts),
            ],
            tail: "",
        }
        .execute(tx)
        .await
    }
}

async fn store_records(
    tx: &mut Tx,
    group: &[Pending],
    verdicts: &[Verdict],
    ranges: &HashMap<ClockKey, Range>,
    observations: &Observations,
) -> Result<(Vec<Commit>, u64, NewFrames)> {
    let mut observations = observations.assign();
    let mut rows: BTreeMap<Kind, Rows> = BTreeMap::new();
    let mut batches = Batches::default();
    let mut committed: BTreeMap<ClockKey, Commit> = BTreeMap::new();
    for (pending, verdict) in group.iter().zip(verdicts) {
        let Verdict::Store(place) = verdict else {
            continue;
        };
        let Upload {
            hub, kind, records, ..
        } = &pending.upload;
        let key = (hub.tenant_uuid, *kind);
        let Some(range) = ranges.get(&key) else {
            continue;
        };
        let of = (hub.tenant_uuid, hub.hub_uuid);
        let mut first_receptions = vec![None; records.len()];
        match kind {
            Kind::BleEvents => {
                let mut batch_id = place.first_id;
                for batch in batches::split(records) {
                    let (Some(records), Some(firsts)) = (
                        records.get(batch.clone()),
                        first_receptions.get_mut(batch.clone()),
                    ) else {
                        continue;
                    };
                    for ((id, record), first) in (batch_id..).zip(records).zip(&mut *firsts) {
                        let this = FirstReception { id, batch_id };
                        *first = record.observation.and_then(|observation| {
                            observations.first_of(of.0, of.1, this, observation)
                        });
                    }
                    batches.push(of, batch_id, records, firsts)?;
                    batch_id += i64::try_from(batch.len()).unwrap_or(i64::MAX);
                }
            }
            Kind::Logs | Kind::Telemetry | Kind::JobEvents => {
                let rows = rows.entry(*kind).or_default();
                for (id, record) in (place.first_id..).zip(records) {
                    rows.push(of, id, &record.text);
                }
            }
        }
        let committed = committed.entry(key).or_insert_with(|| Commit {
            tenant_uuid: key.0,
            kind: key.1,
            previous_id: range.previous_id,
            last_id: range.last_id,
            records: Arc::default(),
        });
        let new =
            (place.first_id..)
                .zip(records)
                .zip(first_receptions)
                .map(|((id, record), first)| CommittedRecord {
                    id,
                    hub_uuid: hub.hub_uuid,
                    observation_id: first.map(|first| first.id),
                    record: record.clone(),
                });
        Arc::make_mut(&mut committed.records).extend(new);
    }
    let mut count = batches.insert(tx).await?;
    for (kind, rows) in rows {
        if let Some(head) = kind.description().insert {
            count += rows.insert(tx, head).await?;
        }
    }
    Ok((
        committed.into_values().collect(),
        count,
        observations.finish(),
    ))
}

/// What the stored uploads say of devices.
fn heard<'a>(group: &'a [Pending], verdicts: &[Verdict]) -> Vec<HeardUpload<'a>> {
    let stored = group
        .iter()
        .zip(verdicts)
        .filter(|(_, verdict)| matches!(verdict, Verdict::Store(_)));
    let heard = stored.map(|(Pending { upload, .. }, _)| HeardUpload {
        tenant_uuid: upload.hub.tenant_uuid,
        hub_uuid: upload.hub.hub_uuid,
        heard: &upload.heard,
    });
    heard.collect()
}

/// What the stored uploads count.
fn charges(group: &[Pending], verdicts: &[Verdict]) -> BTreeMap<ClockKey, Charge> {
    let mut charges: BTreeMap<ClockKey, Charge> = BTreeMap::new();
    for (pending, verdict) in group.iter().zip(verdicts) {
        let charge = Charge::of(&pending.upload);
        if matches!(verdict, Verdict::Store(_)) && charge != Charge::default() {
            charges
                .entry((pending.upload.hub.tenant_uuid, pending.upload.kind))
                .or_default()
                .add(charge);
        }
    }
    charges
}

/// Marks the hubs that sent something as seen, unless they were marked a moment ago, and stores
/// what their agents report of themselves, where it has changed. A boot that returns after another
/// one belongs to a second machine with the same credentials: no machine returns to a boot.
async fn touch_hubs(
    tx: &mut Tx,
    group: &[Pending],
    verdicts: &[Verdict],
    touches: &Touches,
    now: Timestamp,
) -> Result<Vec<(HubUuid, Kind)>> {
    let mut due: HashSet<(HubUuid, Kind)> = HashSet::new();
    // In key order, in which the rows are locked.
    let mut seen: BTreeMap<(TenantUuid, HubUuid), Option<Timestamp>> = BTreeMap::new();
    for (pending, verdict) in group.iter().zip(verdicts) {
        let key = (pending.upload.hub.hub_uuid, pending.upload.kind);
        let has_data = !pending.upload.records.is_empty();
        if has_data
            && !matches!(verdict, Verdict::Refuse(_))
            && touches.is_due(key.0, key.1, now.as_micros())
        {
            due.insert(key);
            let seen = seen
                .entry((pending.upload.hub.tenant_uuid, key.0))
                .or_default();
            if key.1.description().is_telemetry {
                *seen = Some(now);
            }
        }
    }
    // What the hub's last upload says of its agent; empty texts where it says nothing.
    let mut with_telemetry: BTreeMap<Uuid, (Arc<str>, Arc<str>)> = BTreeMap::new();
    for upload in group
        .iter()
        .map(|pending| &pending.upload)
        .filter(|upload| upload.kind.description().is_telemetry)
    {
        if due.contains(&(upload.hub.hub_uuid, Kind::Telemetry)) {
            let (version, boot_id) = with_telemetry.entry(upload.hub.hub_uuid.0).or_default();
            if let Some(reported) = &upload.agent.version {
                version.clone_from(reported);
            }
            if let Some(reported) = &upload.agent.boot_id {
                boot_id.clone_from(reported);
            }
        }
    }
    let count = with_telemetry.len();
    let (hubs, agents): (Vec<_>, Vec<_>) = with_telemetry.into_iter().unzip();
    let (versions, boot_ids) = agents.into_iter().unzip();
    Bulk {
        head: "WITH seen (hub_uuid, at, version, boot_id, quiet_since) AS (",
        columns: vec![
            Column::Uuid(hubs),
            Column::Time(vec![now; count]),
            Column::Text(versions),
            Column::Text(boot_ids),
            Column::Time(vec![now.plus_secs(-CLONE_QUIET_SECS); count]),
        ],
        tail: ") UPDATE hubs SET \
               agent_version = COALESCE(NULLIF(seen.version, ''), hubs.agent_version), \
               turns = CASE WHEN seen.boot_id = hubs.previous_boot_id \
                                 AND seen.boot_id <> hubs.boot_id \
                            THEN CASE WHEN hubs.turned_at > seen.quiet_since \
                                      THEN hubs.turns + 1 ELSE 1 END \
                            ELSE hubs.turns END, \
               cloned_at = CASE WHEN seen.boot_id = hubs.previous_boot_id \
                                     AND seen.boot_id <> hubs.boot_id \
                                     AND hubs.turned_at <= seen.quiet_since THEN NULL \
                                ELSE hubs.cloned_at END, \
               turned_at = CASE WHEN seen.boot_id = hubs.previous_boot_id \
                                     AND seen.boot_id <> hubs.boot_id THEN seen.at \
                                ELSE hubs.turned_at END, \
               previous_boot_id = CASE WHEN seen.boot_id IN ('', hubs.boot_id) \
                                       THEN hubs.previous_boot_id ELSE hubs.boot_id END, \
               boot_id = COALESCE(NULLIF(seen.boot_id, ''), hubs.boot_id) \
               FROM seen WHERE hubs.hub_uuid = COALESCE(seen.hub_uuid, NULL) \
               AND (seen.version NOT IN ('', COALESCE(hubs.agent_version, '')) \
                    OR seen.boot_id NOT IN ('', COALESCE(hubs.boot_id, '')))",
    }
    .execute(tx)
    .await?;
    // Contacts are locked after the hubs, as everywhere.
    Bulk {
        head: "INSERT INTO hub_contacts (tenant_uuid, hub_uuid, last_seen_at, last_telemetry_at)",
        columns: vec![
            Column::Uuid(seen.keys().map(|(tenant, _)| tenant.0).collect()),
            Column::Uuid(seen.keys().map(|(_, hub)| hub.0).collect()),
            Column::Time(vec![now; seen.len()]),
            Column::OptionalTime(seen.into_values().collect()),
        ],
        tail: "ON CONFLICT (tenant_uuid, hub_uuid) DO UPDATE SET \
               last_seen_at = excluded.last_seen_at, last_telemetry_at = \
               COALESCE(excluded.last_telemetry_at, hub_contacts.last_telemetry_at)",
    }
    .execute(tx)
    .await?;
    Ok(due.into_iter().collect())
}
