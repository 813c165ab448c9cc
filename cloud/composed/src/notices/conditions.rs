//! Which conditions hold now, by type. What is read is committed, bounded, and the tenant's own.

use std::collections::HashSet;

use hub_base::db::Conn;
use hub_base::error::Result;
use hub_core::config::Config;
use hub_core::mail::format_time;
use hub_devices::device_instances::{self, ActivationStatus, LastValue, Watched};
use hub_exposure::vulnerabilities;
use hub_fleet::{certificates, consent, hubs, jobs, telemetry, update_policies};
use hub_identity::authz::Scope;
use hub_people::api_keys;
use hub_protocol::{HubUuid, TenantUuid, Timestamp};
use uuid::Uuid;

use super::kinds::Bounds;
use super::settings_store::Setting;
use super::words::name_of;
use super::{NoticeType, dependency_track, support};

/// Conditions of one type that are looked at in one run.
pub const MAX_FOUND: i64 = 10_000;
/// Devices that one run examines for one setting; the others follow with the next runs.
const DEVICES: i64 = 2000;
/// Reports of hubs that one run reads for one tenant.
const REPORTS: i64 = 30_000;
/// The most jobs of one run.
const JOBS: i64 = 500;
/// The age from which on an ended job causes no notice.
const JOBS_SECS: i64 = 3600;
/// A hub that has been silent for longer explains why its devices are.
const HUB_SILENT_SECS: i64 = 600;
const DAY_SECS: i64 = 24 * 3600;

/// A pipeline that does not deliver, as reported by its own subject.
#[derive(Clone, Debug)]
pub struct FailingPipeline {
    pub tenant_uuid: TenantUuid,
    pub pipeline_uuid: Uuid,
    pub name: String,
    pub trouble: Trouble,
}

/// The reason why a pipeline does not deliver.
#[derive(Clone, Debug)]
pub enum Trouble {
    /// Its receiver fails.
    Fails { since: Timestamp, error: String },
    /// Events received in this time were deleted before they were sent.
    HasLost { from: Timestamp, to: Timestamp },
}

/// The suffix of the subjects of losses.
const LOSS: &str = ":lost";

/// Whether an incident is that a pipeline has lost events.
pub fn is_loss(subject: &str) -> bool {
    subject.ends_with(LOSS)
}

/// A condition that holds.
#[derive(Clone, Debug)]
pub struct Found {
    /// The subject of the condition, which is constant while the condition holds.
    pub subject: String,
    pub name: String,
    /// A sentence about it.
    pub detail: String,
    pub hub_uuid: Option<HubUuid>,
    pub device_instance_id: Option<i64>,
    pub since: Timestamp,
}

/// The open incidents that are over unless their condition was found.
#[derive(Clone, Debug)]
pub enum Examined {
    All,
    Only(HashSet<String>),
    /// The devices after one, and through another, except those whose state is not known.
    Devices {
        after: i64,
        through: Option<i64>,
        skipped: HashSet<String>,
    },
    /// The condition is an occurrence without a duration.
    Once,
}

/// The observations of one run for one setting.
pub struct Observed {
    pub found: Vec<Found>,
    pub examined: Examined,
    /// The device to go on after.
    pub device_cursor: Option<i64>,
}

impl Observed {
    fn all(found: Vec<Found>) -> Self {
        let is_cut = i64::try_from(found.len()).unwrap_or(i64::MAX) >= MAX_FOUND;
        let examined = if is_cut {
            Examined::Only(HashSet::new())
        } else {
            Examined::All
        };
        Self {
            found,
            examined,
            device_cursor: None,
        }
    }
}

/// When something is looked at, and what has changed since.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    pub now: Timestamp,
    pub last_scan_at: Timestamp,
}

/// The present conditions of a setting; None if this run does not observe it.
pub async fn observe(
    config: &Config,
    conn: &mut Conn,
    setting: &Setting,
    moment: Moment,
    pipelines: &[FailingPipeline],
) -> Result<Option<Observed>> {
    let now = moment.now;
    let scope = Scope::system("notices", setting.tenant_uuid);
    Ok(match setting.notice_type {
        NoticeType::HubOffline | NoticeType::HubOnline => {
            Some(hubs_offline(conn, &scope, setting, now).await?)
        }
        NoticeType::HubBlind => Some(hubs_blind(conn, &scope, moment).await?),
        NoticeType::JobFailed => Some(jobs_failed(conn, &scope, setting, now).await?),
        NoticeType::RolloutHalted => Some(rollouts_halted(conn, &scope).await?),
        NoticeType::DeviceSilent | NoticeType::DeviceBatteryLow | NoticeType::DeviceThreshold => {
            Some(devices(conn, &scope, setting, now).await?)
        }
        NoticeType::CertificateExpiring => {
            certificates_expiring(conn, &scope, setting, moment).await?
        }
        NoticeType::HubCloned => Some(hubs_cloned(conn, &scope, now).await?),
        NoticeType::HubFlooding => Some(hubs_flooding(conn, &scope, now).await?),
        NoticeType::HubCredentialsExpiring => {
            credentials_expiring(config, conn, &scope, setting, moment).await?
        }
        NoticeType::ApiKeyExpiring => keys_expiring(conn, &scope, setting, moment).await?,
        NoticeType::PipelineFailing => {
            let own = pipelines
                .iter()
                .filter(|pipeline| pipeline.tenant_uuid == setting.tenant_uuid);
            let hold_secs = setting.notice_type.hold_secs(setting.threshold().as_ref());
            Some(Observed::all(
                own.map(|pipeline| failing(pipeline, now.plus_secs(-hold_secs)))
                    .collect(),
            ))
        }
        NoticeType::VulnerabilityFound => {
            Some(vulnerabilities_found(conn, &scope, setting, now).await?)
        }
        NoticeType::ConsentWithdrawn => Some(consents_withdrawn(conn, &scope, setting, now).await?),
        NoticeType::DependencyTrackFailing => {
            let hold_secs = setting.notice_type.hold_secs(setting.threshold().as_ref());
            let due = now.plus_secs(-hold_secs);
            let found = dependency_track::failing(conn, &scope, due).await?;
            Some(Observed::all(found))
        }
        NoticeType::SupportEnding => match is_due(moment) {
            true => Some(Observed::all(support::ending(conn, &scope, now).await?)),
            false => None,
        },
    })
}

/// A failure that began at `due` or before is notified at once.
fn failing(pipeline: &FailingPipeline, due: Timestamp) -> Found {
    let pipeline_uuid = pipeline.pipeline_uuid;
    let (subject, detail, since) = match &pipeline.trouble {
        Trouble::Fails { since, error } => {
            let detail = format!("No deliveries since {}: {error}", format_time(*since));
            (pipeline_uuid.to_string(), detail, *since)
        }
        Trouble::HasLost { from, to } => {
            let (from, to) = (format_time(*from), format_time(*to));
            let detail =
                format!("Events received from {from} to {to} were deleted before they were sent.");
            (format!("{pipeline_uuid}{LOSS}"), detail, due)
        }
    };
    let name = name_of(Some(&pipeline.name), "without a name");
    Found {
        subject,
        name,
        detail,
        hub_uuid: None,
        device_instance_id: None,
        since,
    }
}

fn of_hub(hub_uuid: HubUuid, label: Option<&str>, since: Timestamp, detail: String) -> Found {
    Found {
        subject: hub_uuid.to_string(),
        name: name_of(label, &hub_uuid.to_string()),
        detail,
        hub_uuid: Some(hub_uuid),
        device_instance_id: None,
        since,
    }
}

async fn hubs_offline(
    conn: &mut Conn,
    scope: &Scope,
    setting: &Setting,
    now: Timestamp,
) -> Result<Observed> {
    let hold_secs = setting.notice_type.hold_secs(setting.threshold().as_ref());
    let offline = hubs::silent_since(conn, scope, now.plus_secs(-hold_secs), MAX_FOUND).await?;
    let is_online = setting.notice_type == NoticeType::HubOnline;
    let found = offline.into_iter().map(|hub| {
        let at = format_time(hub.last_seen_at);
        let detail = match is_online {
            true => format!("Its previous contact was on {at}."),
            false => format!("Its last contact was on {at}."),
        };
        of_hub(
            hub.hub_uuid,
            hub.hub_identifier.as_deref(),
            hub.last_seen_at,
            detail,
        )
    });
    Ok(Observed::all(found.collect()))
}

/// The hubs that have reported since the last run. The others are unchanged.
async fn hubs_blind(conn: &mut Conn, scope: &Scope, moment: Moment) -> Result<Observed> {
    // A report that was committed a moment later than others has an earlier id.
    const OVERLAP_SECS: i64 = 10;
    const LONGEST_SECS: i64 = 120;
    let from = moment
        .last_scan_at
        .plus_secs(-OVERLAP_SECS)
        .max(moment.now.plus_secs(-LONGEST_SECS));
    let sights = telemetry::sights(conn, scope, from, REPORTS).await?;
    let examined = sights
        .iter()
        .map(|sight| sight.hub_uuid.to_string())
        .collect();
    let blind: Vec<(HubUuid, Timestamp, String)> = sights
        .into_iter()
        .filter_map(|sight| {
            sight
                .blind_since
                .map(|(since, reason)| (sight.hub_uuid, since, reason))
        })
        .collect();
    let uuids: Vec<HubUuid> = blind.iter().map(|(hub_uuid, ..)| *hub_uuid).collect();
    let labels = hubs::labels(conn, scope, &uuids).await?;
    let found = blind.into_iter().filter_map(|(hub_uuid, since, reason)| {
        // A released hub has none.
        let label = labels.get(&hub_uuid)?;
        let reason = if reason.is_empty() {
            String::new()
        } else {
            format!(": {}", name_of(Some(&reason), ""))
        };
        let detail = format!(
            "No adapter has received anything since {}{reason}.",
            format_time(since)
        );
        Some(of_hub(hub_uuid, label.as_deref(), since, detail))
    });
    Ok(Observed {
        found: found.collect(),
        examined: Examined::Only(examined),
        device_cursor: None,
    })
}

async fn jobs_failed(
    conn: &mut Conn,
    scope: &Scope,
    setting: &Setting,
    now: Timestamp,
) -> Result<Observed> {
    let from = setting.counts_from(now.plus_secs(-JOBS_SECS));
    let failed = jobs::failed_since(conn, scope, from, JOBS).await?;
    let uuids: Vec<HubUuid> = failed.iter().map(|job| job.hub_uuid).collect();
    let labels = hubs::labels(conn, scope, &uuids).await?;
    let found = failed.into_iter().map(|job| {
        let label = labels.get(&job.hub_uuid).and_then(Option::as_deref);
        let why = name_of(job.detail.as_deref(), "no reason was given");
        let detail = format!("{} {}: {why}.", job.job_type.name(), job.status.name());
        let subject = job.hub_job_uuid.to_string();
        Found {
            subject,
            ..of_hub(job.hub_uuid, label, job.finished_at, detail)
        }
    });
    Ok(Observed {
        found: found.collect(),
        examined: Examined::Once,
        device_cursor: None,
    })
}

/// A first import may find thousands, which are then one notice.
async fn vulnerabilities_found(
    conn: &mut Conn,
    scope: &Scope,
    setting: &Setting,
    now: Timestamp,
) -> Result<Observed> {
    let from = setting.counts_from(now.plus_secs(-JOBS_SECS));
    let new = vulnerabilities::new_since(conn, scope, from, MAX_FOUND).await?;
    let found = new.into_iter().map(|new| {
        let exploited = match new.exploited {
            true => ", known to be exploited",
            false => "",
        };
        let severity = new.severity().name();
        let title = name_of(Some(&new.title), "no title was published");
        Found {
            detail: format!("Severity {severity}{exploited}: {title}"),
            name: new.vulnerability_id.clone(),
            subject: new.vulnerability_id,
            hub_uuid: None,
            device_instance_id: None,
            since: new.first_seen_at,
        }
    });
    Ok(Observed {
        found: found.collect(),
        examined: Examined::Once,
        device_cursor: None,
    })
}

/// People are not named to the tenant, which knows them by their accounts.
async fn consents_withdrawn(
    conn: &mut Conn,
    scope: &Scope,
    setting: &Setting,
    now: Timestamp,
) -> Result<Observed> {
    let from = setting.counts_from(now.plus_secs(-JOBS_SECS));
    let withdrawn = consent::withdrawn_since(conn, scope, from, JOBS).await?;
    let found = withdrawn.into_iter().map(|consent| Found {
        subject: consent.consent_id.to_string(),
        name: format!("User {}", consent.user_uuid),
        detail: format!(
            "The consent to version {:?} was withdrawn.",
            name_of(Some(&consent.version), "")
        ),
        hub_uuid: consent.hub_uuid,
        device_instance_id: None,
        since: consent.withdrawn_at,
    });
    Ok(Observed {
        found: found.collect(),
        examined: Examined::Once,
        device_cursor: None,
    })
}

async fn rollouts_halted(conn: &mut Conn, scope: &Scope) -> Result<Observed> {
    let halted = update_policies::halted(conn, scope, MAX_FOUND).await?;
    let found = halted.into_iter().map(|rollout| Found {
        subject: format!("{}:{}", rollout.policy_uuid, rollout.release_uuid),
        name: name_of(Some(&rollout.version), ""),
        detail: name_of(rollout.reason.as_deref(), "Too many hubs failed."),
        hub_uuid: None,
        device_instance_id: None,
        since: rollout.updated_at,
    });
    Ok(Observed::all(found.collect()))
}

async fn hubs_cloned(conn: &mut Conn, scope: &Scope, now: Timestamp) -> Result<Observed> {
    let cloned = hubs::suspected_clones(conn, scope, MAX_FOUND, now).await?;
    let found = cloned.into_iter().map(|hub| {
        let detail = "Two machines use its credentials and lock each other out. Claim the copy \
                      again with its own device-instance-id."
            .to_owned();
        let label = hub.hub_identifier.as_deref();
        of_hub(hub.hub_uuid, label, hub.turned_at, detail)
    });
    Ok(Observed::all(found.collect()))
}

async fn hubs_flooding(conn: &mut Conn, scope: &Scope, now: Timestamp) -> Result<Observed> {
    let flooding = hubs::flooding(conn, scope, MAX_FOUND, now).await?;
    let found = flooding.into_iter().map(|hub| {
        let detail = "It uploads far more often than its share of the tenant's limit. Excess \
                      uploads are rejected; other hubs are not affected."
            .to_owned();
        let label = hub.hub_identifier.as_deref();
        of_hub(hub.hub_uuid, label, hub.flooded_at, detail)
    });
    Ok(Observed::all(found.collect()))
}

/// Whether a run looks at what changes rarely: one run in ten minutes does.
const fn is_due(moment: Moment) -> bool {
    const EVERY_SECS: i64 = 600;
    moment.now.as_secs() / EVERY_SECS != moment.last_scan_at.as_secs() / EVERY_SECS
}

/// How many seconds a setting in days looks ahead; None while nothing is due.
fn ahead_secs(setting: &Setting, moment: Moment) -> Option<i64> {
    let days = setting.notice_type.number(setting.threshold().as_ref());
    is_due(moment).then_some((days as i64) * DAY_SECS)
}

async fn credentials_expiring(
    config: &Config,
    conn: &mut Conn,
    scope: &Scope,
    setting: &Setting,
    moment: Moment,
) -> Result<Option<Observed>> {
    let Some(ahead_secs) = ahead_secs(setting, moment) else {
        return Ok(None);
    };
    let now = moment.now;
    let expiring = hubs::expiring(conn, config, scope, ahead_secs, now, MAX_FOUND).await?;
    let found = expiring.into_iter().map(|hub| {
        let at = format_time(hub.expires_at);
        let detail = match hub.expires_at > now {
            true => format!(
                "It has been offline for a long time. If it does not reconnect before {at}, it has \
                 to be readmitted."
            ),
            false => format!("They expired on {at}. Readmit the hub so that it can reconnect."),
        };
        of_hub(hub.hub_uuid, hub.hub_identifier.as_deref(), now, detail)
    });
    Ok(Some(Observed::all(found.collect())))
}

async fn certificates_expiring(
    conn: &mut Conn,
    scope: &Scope,
    setting: &Setting,
    moment: Moment,
) -> Result<Option<Observed>> {
    let Some(ahead_secs) = ahead_secs(setting, moment) else {
        return Ok(None);
    };
    let before = moment.now.plus_secs(ahead_secs);
    let expiring = certificates::expiring(conn, scope, before, MAX_FOUND).await?;
    let uuids: Vec<HubUuid> = expiring.iter().map(|(hub_uuid, _)| *hub_uuid).collect();
    let labels = hubs::labels(conn, scope, &uuids).await?;
    let found = expiring.into_iter().filter_map(|(hub_uuid, not_after)| {
        let label = labels.get(&hub_uuid)?;
        let detail = format!(
            "It is valid until {}, and the hub has not renewed it.",
            format_time(not_after)
        );
        Some(of_hub(hub_uuid, label.as_deref(), moment.now, detail))
    });
    Ok(Some(Observed::all(found.collect())))
}

async fn keys_expiring(
    conn: &mut Conn,
    scope: &Scope,
    setting: &Setting,
    moment: Moment,
) -> Result<Option<Observed>> {
    let Some(ahead_secs) = ahead_secs(setting, moment) else {
        return Ok(None);
    };
    let expiring = api_keys::expiring(conn, scope, moment.now, ahead_secs).await?;
    let found = expiring.into_iter().map(|key| Found {
        subject: key.api_key_id.to_string(),
        name: name_of(Some(&key.name), &key.key_prefix),
        detail: format!(
            "It is valid until {}. Programs that use it are refused then.",
            format_time(key.expires_at)
        ),
        hub_uuid: None,
        device_instance_id: None,
        since: moment.now,
    });
    Ok(Some(Observed::all(found.collect())))
}

/// The devices whose turn it is.
async fn devices(
    conn: &mut Conn,
    scope: &Scope,
    setting: &Setting,
    now: Timestamp,
) -> Result<Observed> {
    let page = device_instances::watched(conn, scope, setting.device_cursor, DEVICES).await?;
    let is_last = i64::try_from(page.len()).unwrap_or(i64::MAX) < DEVICES;
    let threshold = setting.threshold();
    let bounds = NoticeType::bounds(threshold.as_ref());
    let percent = NoticeType::DeviceBatteryLow.number(threshold.as_ref());
    let deaf = match setting.notice_type {
        NoticeType::DeviceSilent => silent_hubs(conn, scope, &page, now).await?,
        _ => HashSet::new(),
    };
    let mut skipped = HashSet::new();
    let mut found = Vec::new();
    for device in &page {
        let is_active = device.activation_status == ActivationStatus::Active;
        let condition = match setting.notice_type {
            _ if !is_active => None,
            NoticeType::DeviceSilent => match silent(device, now) {
                // Its hub is the cause, or may be: nothing is known of the device.
                Some(_)
                    if device
                        .nearest_hub_uuid
                        .is_some_and(|hub| deaf.contains(&hub)) =>
                {
                    skipped.insert(device.device_instance_id.to_string());
                    None
                }
                silent => silent,
            },
            NoticeType::DeviceBatteryLow => battery_low(device, percent),
            _ => bounds
                .as_ref()
                .and_then(|bounds| out_of_bounds(device, bounds)),
        };
        found.extend(condition.map(|(since, detail)| Found {
            subject: device.device_instance_id.to_string(),
            name: name_of(
                Some(&device.display_name),
                &device.device_instance_id.to_string(),
            ),
            detail,
            hub_uuid: device.nearest_hub_uuid,
            device_instance_id: Some(device.device_instance_id),
            since,
        }));
    }
    let through = page
        .last()
        .filter(|_| !is_last)
        .map(|device| device.device_instance_id);
    let examined = Examined::Devices {
        after: setting.device_cursor,
        through,
        skipped,
    };
    Ok(Observed {
        found,
        examined,
        device_cursor: Some(through.unwrap_or(0)),
    })
}

/// The hubs that are nearest to some device and have not been in contact.
async fn silent_hubs(
    conn: &mut Conn,
    scope: &Scope,
    page: &[Watched],
    now: Timestamp,
) -> Result<HashSet<HubUuid>> {
    const AT_ONCE: usize = 500;
    let silent = page.iter().filter(|device| silent(device, now).is_some());
    let nearest: HashSet<HubUuid> = silent
        .filter_map(|device| device.nearest_hub_uuid)
        .collect();
    let nearest: Vec<HubUuid> = nearest.into_iter().collect();
    let mut deaf = HashSet::new();
    for some in nearest.chunks(AT_ONCE) {
        let seen = hubs::last_seen(conn, scope, some).await?;
        let is_deaf = |hub: &&HubUuid| {
            seen.get(*hub)
                .is_none_or(|at| *at < now.plus_secs(-HUB_SILENT_SECS))
        };
        deaf.extend(some.iter().filter(is_deaf).copied());
    }
    Ok(deaf)
}

fn silent(device: &Watched, now: Timestamp) -> Option<(Timestamp, String)> {
    let until = device.online_until.filter(|until| *until < now)?;
    let last = device.last_seen_at.unwrap_or(until);
    Some((
        until,
        format!("It was last heard on {}.", format_time(last)),
    ))
}

fn battery_low(device: &Watched, percent: f64) -> Option<(Timestamp, String)> {
    if let Some(LastValue { value, at, .. }) = device.values.get("battery")
        && let Some(battery) = value.as_f64()
    {
        return (battery <= percent).then(|| (*at, format!("It has {battery} % left.")));
    }
    let LastValue { value, at, .. } = device.values.get("battery_low")?;
    (value.as_bool() == Some(true)).then(|| (*at, "The device reports a low battery.".to_owned()))
}

fn out_of_bounds(device: &Watched, bounds: &Bounds) -> Option<(Timestamp, String)> {
    let LastValue { value, unit, at } = device.values.get(&bounds.quantity)?;
    let number = value.as_f64()?;
    let unit = unit.as_deref().unwrap_or_default();
    let quantity = &bounds.quantity;
    let is = |word: &str, bound: f64| {
        (
            *at,
            format!("`{quantity}` is {number} {unit}, {word} {bound}."),
        )
    };
    match (bounds.above, bounds.below) {
        (Some(above), _) if number > above => Some(is("above", above)),
        (_, Some(below)) if number < below => Some(is("below", below)),
        _ => None,
    }
}
