//! One transaction of the writer. Its steps, each one statement for the whole group: are the tokens in force; count the minute and hand out record
//! ids; remember idempotency keys; store the records; mark the hubs as seen. Rows that several replicas want are locked in key order.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use hub_protocol::{HubUuid, TenantUuid, Timestamp};
use uuid::Uuid;

use super::writer::Touches;
use super::{Kind, Pending, RateLimit, Receipt, Record, Refusal, minute_of, secs_left};
use crate::app::App;
use crate::db::Tx;
use crate::db::bulk::{Bulk, Column};
use crate::domain::streams::{Published, PublishedRecord};
use crate::error::Result;

pub(super) struct Outcome {
    /// One for each upload, in the group's order.
    pub verdicts: Vec<std::result::Result<Receipt, Refusal>>,
    pub published: Vec<Published>,
    pub touched: Vec<(HubUuid, Kind)>,
    /// Tenants that used their minute up.
    pub exhausted: Vec<Exhausted>,
    pub at: Timestamp,
    pub records: u64,
}

/// A tenant may upload no more of this kind in this minute.
pub(super) struct Exhausted {
    pub tenant_uuid: TenantUuid,
    pub kind: Kind,
    pub minute: i64,
    pub limit: i64,
}

/// Where an upload stands while its group is decided.
enum Verdict {
    Store(RateLimit),
    /// Known from an earlier request, or from an earlier upload of this group.
    Duplicate(RateLimit, String),
    Refuse(Refusal),
}

pub(super) async fn commit(app: &App, group: &[Pending], touches: &Touches) -> Result<Outcome> {
    let mut tx = app.db.begin().await?;
    let now = app.clock.now();
    let hubs = hubs(&mut tx, group).await?;
    let limits: Vec<Option<i64>> = group
        .iter()
        .map(|pending| {
            let hub = hubs.get(&pending.upload.hub.hub_uuid)?;
            let in_force = hub.access_token_id == Some(pending.upload.hub.token_id);
            in_force.then(|| hub.upload_limit.unwrap_or(app.config.upload_limit_per_minute))
        })
        .collect();
    let ranges = advance_clocks(&mut tx, group, &limits, now).await?;
    let (mut verdicts, exhausted) = admit(group, &limits, &ranges, now);
    remember_keys(&mut tx, group, &mut verdicts, now).await?;
    let (published, records) = store_records(&mut tx, group, &verdicts, &ranges).await?;
    let touched = touch_hubs(&mut tx, group, &verdicts, touches, now).await?;
    tx.commit_unaudited("what hubs upload is data, not a change someone made").await?;

    let verdicts = group.iter().zip(verdicts).map(|(pending, verdict)| receipt(pending, verdict)).collect();
    Ok(Outcome { verdicts, published, touched, exhausted, at: now, records })
}

fn receipt(pending: &Pending, verdict: Verdict) -> std::result::Result<Receipt, Refusal> {
    match verdict {
        Verdict::Store(rate_limit) => {
            Ok(Receipt { answer: pending.upload.answer.clone(), duplicate: false, rate_limit })
        }
        Verdict::Duplicate(rate_limit, answer) => Ok(Receipt { answer, duplicate: true, rate_limit }),
        Verdict::Refuse(refusal) => Err(refusal),
    }
}

#[derive(sqlx::FromRow)]
struct HubRow {
    hub_uuid: HubUuid,
    access_token_id: Option<Uuid>,
    upload_limit: Option<i64>,
}

/// What has to be known of the group's hubs.
async fn hubs(tx: &mut Tx, group: &[Pending]) -> Result<HashMap<HubUuid, HubRow>> {
    let uuids: HashSet<Uuid> = group.iter().map(|pending| pending.upload.hub.hub_uuid.0).collect();
    let rows: Vec<HubRow> = Bulk {
        head: "SELECT h.hub_uuid, h.access_token_id, t.upload_limit_per_minute AS upload_limit \
               FROM hubs h JOIN tenants t ON t.tenant_uuid = h.tenant_uuid WHERE h.hub_uuid IN (",
        columns: vec![Column::Uuid(uuids.into_iter().collect())],
        tail: ")",
    }
    .returning(tx)
    .await?;
    Ok(rows.into_iter().map(|row| (row.hub_uuid, row)).collect())
}

type ClockKey = (TenantUuid, Kind);

/// What a tenant's clock gave this group.
struct Range {
    /// The last id handed out before this group, by any replica.
    previous_id: i64,
    /// The group's own ids.
    first_id: i64,
    last_id: i64,
    /// Requests of the minute before this group's.
    requests_before: i64,
}

#[derive(sqlx::FromRow)]
struct ClockRow {
    tenant_uuid: TenantUuid,
    kind: String,
    requests: i64,
    last_id: i64,
    previous_id: i64,
}

/// Counts the requests, and takes ids for all records that may be stored. An id that is then not used leaves a gap, which nobody minds.
async fn advance_clocks(
    tx: &mut Tx,
    group: &[Pending],
    limits: &[Option<i64>],
    now: Timestamp,
) -> Result<HashMap<ClockKey, Range>> {
    // In key order, which is the order in which the rows get locked.
    let mut wanted: BTreeMap<ClockKey, (i64, i64)> = BTreeMap::new();
    for (pending, _) in group.iter().zip(limits).filter(|(_, limit)| limit.is_some()) {
        let (requests, records) = wanted.entry((pending.upload.hub.tenant_uuid, pending.upload.kind)).or_default();
        *requests += 1;
        *records += i64::try_from(pending.upload.records.len()).unwrap_or(i64::MAX);
    }
    let now_micros = now.as_micros();
    let columns = vec![
        Column::Uuid(wanted.keys().map(|(tenant, _)| tenant.0).collect()),
        Column::Word(wanted.keys().map(|(_, kind)| kind.name()).collect()),
        Column::Int(vec![minute_of(now); wanted.len()]),
        Column::Int(wanted.values().map(|(requests, _)| *requests).collect()),
        Column::Int(vec![now_micros; wanted.len()]),
        Column::Int(wanted.values().map(|(_, records)| now_micros - records).collect()),
    ];
    // A group's ids end at the present time, unless the last ones handed out reach further already.
    let rows: Vec<ClockRow> = Bulk {
        head: "INSERT INTO upload_clocks (tenant_uuid, kind, minute, requests, last_id, previous_id)",
        columns,
        tail: "ON CONFLICT (tenant_uuid, kind) DO UPDATE SET \
               requests = CASE WHEN upload_clocks.minute >= excluded.minute \
                               THEN upload_clocks.requests + excluded.requests ELSE excluded.requests END, \
               minute = CASE WHEN upload_clocks.minute >= excluded.minute \
                             THEN upload_clocks.minute ELSE excluded.minute END, \
               previous_id = upload_clocks.last_id, \
               last_id = CASE WHEN upload_clocks.last_id > excluded.previous_id \
                              THEN upload_clocks.last_id + excluded.last_id - excluded.previous_id \
                              ELSE excluded.last_id END \
               RETURNING tenant_uuid, kind, requests, last_id, previous_id",
    }
    .returning(tx)
    .await?;
    let mut ranges = HashMap::with_capacity(rows.len());
    for row in rows {
        let Some(kind) = Kind::from_name(&row.kind) else { continue };
        let key = (row.tenant_uuid, kind);
        let Some((requests, records)) = wanted.get(&key) else { continue };
        let range = Range {
            previous_id: row.previous_id,
            first_id: row.last_id - records + 1,
            last_id: row.last_id,
            requests_before: row.requests - requests,
        };
        ranges.insert(key, range);
    }
    Ok(ranges)
}

/// Who is let in: a hub whose token is in force, as long as its tenant's minute lasts.
fn admit(
    group: &[Pending],
    limits: &[Option<i64>],
    ranges: &HashMap<ClockKey, Range>,
    now: Timestamp,
) -> (Vec<Verdict>, Vec<Exhausted>) {
    let mut counted: HashMap<ClockKey, i64> = HashMap::new();
    let mut exhausted = HashMap::new();
    let mut verdicts = Vec::with_capacity(group.len());
    for (pending, limit) in group.iter().zip(limits) {
        let key = (pending.upload.hub.tenant_uuid, pending.upload.kind);
        let (Some(limit), Some(range)) = (*limit, ranges.get(&key)) else {
            verdicts.push(Verdict::Refuse(Refusal::TokenNotInForce));
            continue;
        };
        let count = counted.entry(key).or_insert(range.requests_before);
        *count += 1;
        let rate_limit = RateLimit { limit, remaining: (limit - *count).max(0), reset_secs: secs_left(now) };
        if *count >= limit {
            exhausted.insert(key, limit);
        }
        verdicts.push(match *count <= limit {
            true => Verdict::Store(rate_limit),
            false => Verdict::Refuse(Refusal::RateLimited(rate_limit)),
        });
    }
    let minute = minute_of(now);
    let exhausted = exhausted
        .into_iter()
        .map(|((tenant_uuid, kind), limit)| Exhausted { tenant_uuid, kind, minute, limit })
        .collect();
    (verdicts, exhausted)
}

type UploadKey<'a> = (HubUuid, Kind, &'a str);

#[derive(sqlx::FromRow)]
struct InsertedKey {
    hub_uuid: HubUuid,
    kind: String,
    idempotency_key: String,
}

#[derive(sqlx::FromRow)]
struct KnownKey {
    hub_uuid: HubUuid,
    kind: String,
    idempotency_key: String,
    answer: String,
}

/// Tells new uploads from repeated ones, and remembers the new.
async fn remember_keys(tx: &mut Tx, group: &[Pending], verdicts: &mut [Verdict], now: Timestamp) -> Result<()> {
    let mut firsts: HashMap<UploadKey<'_>, &Pending> = HashMap::new();
    for (pending, verdict) in group.iter().zip(verdicts.iter_mut()) {
        let (Verdict::Store(rate_limit), Some(key)) = (&*verdict, upload_key(pending)) else { continue };
        match firsts.get(&key) {
            Some(first) => *verdict = Verdict::Duplicate(*rate_limit, first.upload.answer.clone()),
            None => {
                firsts.insert(key, pending);
            }
        }
    }
    if firsts.is_empty() {
        return Ok(());
    }
    let keys: Vec<UploadKey<'_>> = firsts.keys().copied().collect();
    let mut columns = key_columns(&keys);
    let answers = keys.iter().filter_map(|key| Some(Arc::from(firsts.get(key)?.upload.answer.as_str())));
    columns.push(Column::Text(answers.collect()));
    columns.push(Column::Time(vec![now; keys.len()]));
    let inserted: Vec<InsertedKey> = Bulk {
        head: "INSERT INTO upload_keys (hub_uuid, kind, idempotency_key, answer, created_at)",
        columns,
        tail: "ON CONFLICT DO NOTHING RETURNING hub_uuid, kind, idempotency_key",
    }
    .returning(tx)
    .await?;
    if inserted.len() == keys.len() {
        return Ok(());
    }
    let is_new: HashSet<(HubUuid, &str, &str)> =
        inserted.iter().map(|row| (row.hub_uuid, row.kind.as_str(), row.idempotency_key.as_str())).collect();
    let repeated: Vec<UploadKey<'_>> =
        keys.into_iter().filter(|(hub, kind, key)| !is_new.contains(&(*hub, kind.name(), *key))).collect();
    let known: Vec<KnownKey> = Bulk {
        head: "SELECT hub_uuid, kind, idempotency_key, answer FROM upload_keys \
               WHERE (hub_uuid, kind, idempotency_key) IN (",
        columns: key_columns(&repeated),
        tail: ")",
    }
    .returning(tx)
    .await?;
    let known: HashMap<(HubUuid, &str, &str), &str> = known
        .iter()
        .map(|row| ((row.hub_uuid, row.kind.as_str(), row.idempotency_key.as_str()), row.answer.as_str()))
        .collect();
    // All uploads of the group under a known key are repeats, the first one included.
    for (pending, verdict) in group.iter().zip(verdicts) {
        let Some((hub, kind, key)) = upload_key(pending) else { continue };
        let Some(answer) = known.get(&(hub, kind.name(), key)) else { continue };
        if let Verdict::Store(rate_limit) | Verdict::Duplicate(rate_limit, _) = verdict {
            *verdict = Verdict::Duplicate(*rate_limit, (*answer).to_owned());
        }
    }
    Ok(())
}

fn upload_key(pending: &Pending) -> Option<UploadKey<'_>> {
    Some((pending.upload.hub.hub_uuid, pending.upload.kind, pending.upload.key.as_deref()?))
}

fn key_columns(keys: &[UploadKey<'_>]) -> Vec<Column> {
    vec![
        Column::Uuid(keys.iter().map(|(hub, _, _)| hub.0).collect()),
        Column::Word(keys.iter().map(|(_, kind, _)| kind.name()).collect()),
        Column::Text(keys.iter().map(|(_, _, key)| Arc::from(*key)).collect()),
    ]
}

/// The columns of one table, filled row by row.
#[derive(Default)]
struct Rows {
    tenants: Vec<Uuid>,
    hubs: Vec<Uuid>,
    ids: Vec<i64>,
    texts: Vec<Arc<str>>,
    device_instance_ids: Vec<Option<i64>>,
    window_starts: Vec<Option<Timestamp>>,
    window_ends: Vec<Option<Timestamp>>,
}

impl Rows {
    fn push(&mut self, pending: &Pending, id: i64, record: &Record) {
        self.tenants.push(pending.upload.hub.tenant_uuid.0);
        self.hubs.push(pending.upload.hub.hub_uuid.0);
        self.ids.push(id);
        self.texts.push(record.text.clone());
        if pending.upload.kind == Kind::BleEvents {
            self.device_instance_ids.push(record.device_instance_id);
            self.window_starts.push(record.window.map(|(start, _)| start));
            self.window_ends.push(record.window.map(|(_, end)| end));
        }
    }

    fn has_only_plain_events(&self) -> bool {
        self.device_instance_ids.iter().all(Option::is_none) && self.window_starts.iter().all(Option::is_none)
    }

    fn into_bulk(self, kind: Kind) -> Bulk {
        let is_plain = self.has_only_plain_events();
        let mut columns =
            vec![Column::Uuid(self.tenants), Column::Uuid(self.hubs), Column::Int(self.ids), Column::Text(self.texts)];
        let head = match kind {
            // Most hubs know no devices and send no windows: then these columns cost nothing.
            Kind::BleEvents if is_plain => "INSERT INTO ble_events (tenant_uuid, hub_uuid, ble_event_id, event)",
            Kind::BleEvents => {
                columns.push(Column::OptionalInt(self.device_instance_ids));
                columns.push(Column::OptionalTime(self.window_starts));
                columns.push(Column::OptionalTime(self.window_ends));
                "INSERT INTO ble_events \
                 (tenant_uuid, hub_uuid, ble_event_id, event, device_instance_id, window_start, window_end)"
            }
            Kind::Logs => "INSERT INTO hub_logs (tenant_uuid, hub_uuid, hub_log_id, body)",
            Kind::Telemetry => "INSERT INTO hub_telemetry (tenant_uuid, hub_uuid, hub_telemetry_id, body)",
        };
        Bulk { head, columns, tail: "" }
    }
}

async fn store_records(
    tx: &mut Tx,
    group: &[Pending],
    verdicts: &[Verdict],
    ranges: &HashMap<ClockKey, Range>,
) -> Result<(Vec<Published>, u64)> {
    let mut rows: BTreeMap<Kind, Rows> = BTreeMap::new();
    let mut published: BTreeMap<ClockKey, Published> = BTreeMap::new();
    let stored = group.iter().zip(verdicts).filter(|(_, verdict)| matches!(verdict, Verdict::Store(_)));
    for (pending, _) in stored {
        let kind = pending.upload.kind;
        let key = (pending.upload.hub.tenant_uuid, kind);
        let Some(range) = ranges.get(&key) else { continue };
        let rows = rows.entry(kind).or_default();
        let published = published.entry(key).or_insert_with(|| Published {
            tenant_uuid: key.0,
            kind,
            previous_id: range.previous_id,
            last_id: range.last_id,
            records: Vec::new(),
        });
        for record in &pending.upload.records {
            let id = published.records.last().map_or(range.first_id, |last| last.id + 1);
            rows.push(pending, id, record);
            let hub_uuid = pending.upload.hub.hub_uuid;
            published.records.push(PublishedRecord { id, hub_uuid, record: record.clone() });
        }
    }
    let mut count = 0;
    for (kind, rows) in rows {
        count += rows.into_bulk(kind).execute(tx).await?;
    }
    Ok((published.into_values().collect(), count))
}

/// Marks the hubs as seen, those not marked a moment ago.
async fn touch_hubs(
    tx: &mut Tx,
    group: &[Pending],
    verdicts: &[Verdict],
    touches: &Touches,
    now: Timestamp,
) -> Result<Vec<(HubUuid, Kind)>> {
    let mut due: HashSet<(HubUuid, Kind)> = HashSet::new();
    for (pending, verdict) in group.iter().zip(verdicts) {
        let key = (pending.upload.hub.hub_uuid, pending.upload.kind);
        if !matches!(verdict, Verdict::Refuse(_)) && touches.is_due(key.0, key.1, now.as_micros()) {
            due.insert(key);
        }
    }
    let mut seen: Vec<Uuid> = due.iter().map(|(hub, _)| hub.0).collect();
    seen.sort_unstable();
    seen.dedup();
    let mut with_telemetry: Vec<Uuid> =
        due.iter().filter(|(_, kind)| *kind == Kind::Telemetry).map(|(hub, _)| hub.0).collect();
    with_telemetry.sort_unstable();
    let statements = [
        (seen, ") UPDATE hubs SET last_seen_at = seen.at FROM seen WHERE hubs.hub_uuid = seen.hub_uuid"),
        (with_telemetry, ") UPDATE hubs SET last_telemetry_at = seen.at FROM seen WHERE hubs.hub_uuid = seen.hub_uuid"),
    ];
    for (hubs, tail) in statements {
        let times = vec![now; hubs.len()];
        let columns = vec![Column::Uuid(hubs), Column::Time(times)];
        Bulk { head: "WITH seen (hub_uuid, at) AS (", columns, tail }.execute(tx).await?;
    }
    Ok(due.into_iter().collect())
}
