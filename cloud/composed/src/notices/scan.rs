//! The periodic scan: one at a time in the whole service. It looks for conditions, opens and closes
//! incidents, and raises notices.
//!
//! Silence that the service itself caused is no incident: after a gap between two scans (the
//! service, or its database, was away) no silence is reported until hubs have had the time to
//! come back.

use std::time::{Duration, Instant};

use hub_base::error::Result;
use hub_core::Core;
use hub_people::tenants;
use hub_protocol::{TenantUuid, Timestamp};
use uuid::Uuid;

use super::conditions::{self, Examined, FailingPipeline, MAX_FOUND, Moment, Observed};
use super::incidents::{self, Incident, ScanRow};
use super::settings_store::{self, Setting};
use super::store::{self, NewNotice};
use super::{Channel, NoticeType, deliver, words};

/// The distance of two scans that means an outage of the service.
const GAP_SECS: i64 = 120;
/// The time after an outage without notices of silence: agents reconnect within minutes.
const QUIET_SECS: i64 = 15 * 60;
/// The time within which a recurring condition counts as continued, so that a flapping one causes
/// one notice.
const CLOSE_AFTER_SECS: i64 = 120;
/// The margin of the end of silence: a reception ends it only if it is later than the threshold by
/// this much.
const SILENCE_MARGIN_SECS: i64 = 60;
/// The most single notices of one setting in one run. More incidents share one notice.
const MAX_SINGLE: usize = 10;
/// The time after which the next run continues.
const RUN_TIME: Duration = Duration::from_secs(20);
/// Incidents that one transaction stores.
const CHUNK: usize = 1000;
/// Tenants that one query reads.
const TENANTS: i64 = 100;

/// Scans the conditions of all tenants. Returns whether tenants are left
/// for another run at once.
pub async fn scan(core: &Core, pipelines: &[FailingPipeline]) -> Result<bool> {
    let now = core.clock.now();
    let before = incidents::scan_row(&mut core.db.read().await?).await?;
    let has_gap = before.is_none_or(|row| now.as_secs() - row.last_scan_at.as_secs() > GAP_SECS);
    let quiet_until = match before {
        Some(row) if !has_gap => row.quiet_until,
        _ => now.plus_secs(QUIET_SECS),
    };
    let moment = Moment {
        now,
        last_scan_at: before.map_or(now, |row| row.last_scan_at),
    };
    let start = before
        .and_then(|row| row.next_tenant_uuid)
        .unwrap_or(TenantUuid(Uuid::nil()));
    let is_quiet = now < quiet_until;
    let next = scan_from(core, start, moment, is_quiet, pipelines).await?;
    let mut tx = core.db.begin().await?;
    incidents::put_scan_row(
        &mut tx,
        &ScanRow {
            last_scan_at: now,
            quiet_until,
            next_tenant_uuid: next,
        },
    )
    .await?;
    tx.commit_unaudited("the scan's own row").await?;
    Ok(next.is_some())
}

/// Returns the tenant after which the next run continues, if the time was too short.
async fn scan_from(
    core: &Core,
    start: TenantUuid,
    moment: Moment,
    is_quiet: bool,
    pipelines: &[FailingPipeline],
) -> Result<Option<TenantUuid>> {
    let ends_at = Instant::now() + RUN_TIME;
    let mut after = start;
    loop {
        let tenants = tenants::live_after(&mut core.db.read().await?, after, TENANTS).await?;
        for tenant_uuid in &tenants {
            // A failed scan of one tenant does not affect the others.
            if let Err(error) = scan_tenant(core, *tenant_uuid, moment, is_quiet, pipelines).await {
                if error.is_database_unavailable() || error.is_storage_full() {
                    return Err(error);
                }
                tracing::error!(%tenant_uuid, %error, "a tenant cannot be examined for notices");
            }
            if Instant::now() >= ends_at || core.shutdown.is_cancelled() {
                return Ok(Some(*tenant_uuid));
            }
        }
        match tenants.last() {
            Some(last) => after = *last,
            None => return Ok(None),
        }
    }
}

async fn scan_tenant(
    core: &Core,
    tenant_uuid: TenantUuid,
    moment: Moment,
    is_quiet: bool,
    pipelines: &[FailingPipeline],
) -> Result<()> {
    let settings = settings_store::list(&mut core.db.read().await?, tenant_uuid).await?;
    for setting in settings.iter().filter(|setting| setting.enabled) {
        if is_quiet && setting.notice_type.is_of_silence() {
            continue;
        }
        let mut conn = core.db.read().await?;
        let Some(observed) =
            conditions::observe(&core.config, &mut conn, setting, moment, pipelines).await?
        else {
            continue;
        };
        let device_cursor = observed
            .device_cursor
            .filter(|cursor| *cursor != setting.device_cursor);
        let open = match &observed.examined {
            Examined::Once => once(&mut conn, setting, observed, moment.now).await?,
            Examined::All | Examined::Only(_) | Examined::Devices { .. } => {
                let open = incidents::open(&mut conn, setting, MAX_FOUND).await?;
                lasting(setting, observed, open.into_values().collect(), moment.now)
            }
        };
        drop(conn);
        store_step(core, setting, &open, device_cursor, moment.now).await?;
    }
    deliver::send_mail(core, tenant_uuid, moment.now).await
}

/// The changes of one run for one setting.
#[derive(Debug, Default)]
struct Step {
    /// New, changed and closed incidents.
    incidents: Vec<Incident>,
    /// The incidents that are notified now.
    raised: Vec<usize>,
}

impl Step {
    fn add(&mut self, incident: Incident, is_raised: bool) {
        if is_raised {
            self.raised.push(self.incidents.len());
        }
        self.incidents.push(incident);
    }
}

/// Notifies an occurrence once.
async fn once(
    conn: &mut hub_base::db::Conn,
    setting: &Setting,
    observed: Observed,
    now: Timestamp,
) -> Result<Step> {
    let mut step = Step::default();
    let subjects: Vec<String> = observed
        .found
        .iter()
        .map(|found| found.subject.clone())
        .collect();
    if subjects.is_empty() {
        return Ok(step);
    }
    let known = incidents::known(conn, setting, &subjects).await?;
    for found in observed.found {
        if known.contains(&found.subject) {
            continue;
        }
        let incident = Incident::open(found, now);
        step.add(
            Incident {
                raised_at: Some(now),
                over_at: Some(now),
                closed_at: Some(now),
                ..incident
            },
            true,
        );
    }
    Ok(step)
}

/// Compares the conditions that hold with the incidents that are open.
fn lasting(setting: &Setting, observed: Observed, open: Vec<Incident>, now: Timestamp) -> Step {
    let hold_secs = setting.notice_type.hold_secs(setting.threshold().as_ref());
    let close_after_secs = match setting.notice_type {
        NoticeType::HubOffline | NoticeType::DeviceSilent => hold_secs + SILENCE_MARGIN_SECS,
        _ => CLOSE_AFTER_SECS,
    };
    let notifies_at_end = setting.notice_type == NoticeType::HubOnline;
    let is_due = |incident: &Incident| {
        incident.raised_at.is_none() && now.as_secs() - incident.opened_at.as_secs() >= hold_secs
    };
    let Observed {
        found, examined, ..
    } = observed;
    let mut found: std::collections::HashMap<String, conditions::Found> = found
        .into_iter()
        .map(|found| (found.subject.clone(), found))
        .collect();
    let mut step = Step::default();
    // The open incidents are not all known beyond this, so that none is opened.
    let is_full = i64::try_from(open.len()).unwrap_or(i64::MAX) >= MAX_FOUND;
    for mut incident in open {
        let is_found = found.remove(&incident.subject);
        let is_examined = match &examined {
            Examined::All => true,
            Examined::Only(subjects) => subjects.contains(&incident.subject),
            Examined::Devices {
                after,
                through,
                skipped,
            } => {
                let is_of_page =
                    |id: i64| id > *after && through.is_none_or(|through| id <= through);
                incident.subject.parse().is_ok_and(is_of_page)
                    && !skipped.contains(&incident.subject)
            }
            Examined::Once => false,
        };
        let holds = is_found.is_some() || !is_examined;
        let was_over = incident.over_at.is_some();
        if let Some(found) = is_found {
            incident.over_at = None;
            (incident.name, incident.detail) = (found.name, found.detail);
        } else if is_examined && !was_over {
            incident.over_at = Some(now);
        }
        match incident.over_at {
            None if holds && is_due(&incident) => {
                incident.raised_at = Some(now);
                step.add(incident, !notifies_at_end);
            }
            None if was_over => step.add(incident, false),
            None => {}
            // The incident caused no notice, and is deleted at once.
            Some(_) if incident.raised_at.is_none() => {
                incident.closed_at = Some(now);
                step.add(incident, false);
            }
            Some(over_at) if now.as_secs() - over_at.as_secs() >= close_after_secs => {
                incident.closed_at = Some(now);
                step.add(incident, notifies_at_end);
            }
            Some(_) if !was_over => step.add(incident, false),
            Some(_) => {}
        }
    }
    for found in found.into_values().filter(|_| !is_full) {
        let mut incident = Incident::open(found, now);
        let is_raised = is_due(&incident);
        incident.raised_at = Some(now).filter(|_| is_raised);
        step.add(incident, is_raised && !notifies_at_end);
    }
    step
}

/// Stores what has changed, and the notices of it.
async fn store_step(
    core: &Core,
    setting: &Setting,
    step: &Step,
    device_cursor: Option<i64>,
    now: Timestamp,
) -> Result<()> {
    if step.incidents.is_empty() && device_cursor.is_none() {
        return Ok(());
    }
    let raised: Vec<&Incident> = step
        .raised
        .iter()
        .filter_map(|index| step.incidents.get(*index))
        .collect();
    let (first, others) = step.incidents.split_at(step.incidents.len().min(CHUNK));
    let mut tx = core.db.begin().await?;
    incidents::put(&mut tx, setting, first).await?;
    if let Some(cursor) = device_cursor {
        settings_store::set_device_cursor(&mut tx, setting, cursor, now).await?;
    }
    for notice in notices_of(setting, &raised) {
        store::insert(&mut tx, setting.tenant_uuid, &notice, now).await?;
    }
    match setting.channel {
        _ if raised.is_empty() => {}
        Channel::InApp => store::keep_newest(&mut tx, setting.tenant_uuid).await?,
        Channel::Webhook => deliver::call_webhooks(core, &mut tx, setting.tenant_uuid, now).await?,
        Channel::Email => {}
    }
    tx.commit_unaudited("notices tell of changes, and are none")
        .await?;
    // Thousands of hubs may go offline at once: other transactions must not wait for all of their
    // rows.
    for some in others.chunks(CHUNK) {
        let mut tx = core.db.begin().await?;
        incidents::put(&mut tx, setting, some).await?;
        tx.commit_unaudited("incidents that one notice reports")
            .await?;
    }
    Ok(())
}

/// One notice for each incident; a single one for many.
fn notices_of(setting: &Setting, raised: &[&Incident]) -> Vec<NewNotice> {
    let (notice_type, channel) = (setting.notice_type, setting.channel);
    if raised.len() > MAX_SINGLE {
        let words = words::summary(notice_type, raised);
        return vec![NewNotice {
            notice_type,
            channel,
            words,
            hub_uuid: None,
            device_instance_id: None,
        }];
    }
    let single = |incident: &&Incident| NewNotice {
        notice_type,
        channel,
        words: words::single(notice_type, incident),
        hub_uuid: incident.hub_uuid,
        device_instance_id: incident.device_instance_id,
    };
    raised.iter().map(single).collect()
}
