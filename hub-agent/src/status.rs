//! The running agent's status as one value: as text, as JSON, and for systemd's status line. Only
//! reads what other parts store.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::PathBuf;
use std::sync::Arc;

use hub_protocol::job::{InstalledApp, InstalledAppState};
use hub_protocol::telemetry::{ScanHealth, ScanState, SpoolHealth};
use hub_protocol::{HubUuid, TenantUuid, Timestamp};
use serde::{Deserialize, Serialize};

use crate::ble::{Health, Selections};
use crate::clock::{self, Clock};
use crate::cloud::{Access, Service};
use crate::heartbeat::Heartbeats;
use crate::jobs::{JobShown, View};
use crate::spool::{Kind, Spool};
use crate::update::{Update, UpdateShown};
use crate::uplink::Uploads;

/// How far back the status reports times in which the hub was blind.
const BLIND_SINCE_SECS: i64 = 3_600;

/// The parts of the running agent that the status reads.
pub struct Agent {
    pub service: Arc<Service>,
    pub spool: Spool,
    pub clock: Arc<Clock>,
    pub health: Health,
    pub heartbeats: Heartbeats,
    pub uploads: Arc<Uploads>,
    pub spool_dir: PathBuf,
    /// Time since boot when the agent started.
    pub started_micros: i64,
    pub jobs: View,
    pub update: Arc<Update>,
    pub selections: Selections,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Status {
    pub version: String,
    pub process_id: u32,
    pub uptime_secs: u64,
    pub service_url: String,
    /// The configured service, if a job moved the hub from it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub moved_from: Option<String>,
    /// The hardware identity that a claim sends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device_instance_id: Option<String>,
    pub access: AccessState,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hub_uuid: Option<HubUuid>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant_uuid: Option<TenantUuid>,
    /// Why the service refuses the hub.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub access_reason: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_expires_in_secs: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_contact_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_contact_secs_ago: Option<i64>,
    /// Why the service cannot be reached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unreachable: Option<String>,
    /// How long the path to the service holds a request, where that is less than wanted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path_holds_secs: Option<u64>,
    /// The reasons, by kind of upload, why the service answers and does not accept it.
    #[serde(
        default,
        rename = "uploadsNotTaken",
        skip_serializing_if = "BTreeMap::is_empty"
    )]
    pub uploads_not_accepted: BTreeMap<String, UploadsNotAccepted>,
    pub spool: SpoolHealth,
    /// Records that the service refused: in uploads that it accepted, or with a whole upload.
    pub refused_records: u64,
    /// Why nothing can be written to disk.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spool_trouble: Option<String>,
    pub delivered_records: u64,
    pub advertisements: u64,
    pub advertisements_per_sec: f64,
    /// Scan health by adapter address.
    pub adapters: BTreeMap<String, ScanHealth>,
    /// A part of the agent that has stalled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stalled: Option<String>,
    #[serde(default)]
    pub update: UpdateShown,
    /// The current job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<JobShown>,
    /// Absent where no helper answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub installed_apps: Option<Vec<InstalledApp>>,
    /// The revision of the scan configuration in force.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scan_config_revision: Option<i64>,
    /// The number of rules of the scan configuration in force.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scan_config_rules: Option<u64>,
    /// When the hub's client certificate expires.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub certificate_not_after: Option<Timestamp>,
    /// Why the service issues no client certificate, although it requires one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub certificate_refused: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UploadsNotAccepted {
    pub reason: String,
    pub since: Timestamp,
    pub since_secs_ago: i64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum AccessState {
    Unclaimed,
    Claimed,
    Refused,
}

impl Agent {
    pub fn uptime_secs(&self) -> u64 {
        u64::try_from((clock::since_boot_micros() - self.started_micros) / 1_000_000).unwrap_or(0)
    }

    /// How long the path to the service holds a request, where that is less than wanted.
    pub fn path_holds_secs(&self) -> Option<u64> {
        let limit = self.service.contact().path_hold;
        limit.map(|limit| limit.as_secs())
    }

    pub fn spool_health(&self) -> SpoolHealth {
        let stats = self.spool.stats();
        let total = stats.total();
        let age_secs = stats.oldest.map_or(0, |oldest| {
            clock::machine_now().as_secs() - oldest.as_secs()
        });
        SpoolHealth {
            batches: total.segments,
            events: total.records,
            bytes: total.bytes,
            oldest_age_secs: u64::try_from(age_secs).unwrap_or(0),
            dropped_events: stats.counters.dropped_events,
            lost_events: stats.counters.lost_events,
            discarded_records: stats.counters.discarded_records,
            set_aside_bytes: stats.set_aside_bytes,
            trouble: stats.trouble,
        }
    }

    pub fn status(&self) -> Status {
        let now = self.clock.now();
        let contact = self.service.contact();
        let access = self.service.access().borrow().clone();
        let (state, credentials, reason) = match access {
            Access::Unclaimed => (AccessState::Unclaimed, None, contact.claim_refused),
            Access::Granted(credentials) => (AccessState::Claimed, Some(credentials), None),
            Access::Refused {
                credentials,
                reason,
            } => {
                let reason = match contact.claim_refused {
                    Some(refused) => format!("{reason}; the last claim failed: {refused}"),
                    None => reason,
                };
                (AccessState::Refused, Some(credentials), Some(reason))
            }
        };
        let stats = self.spool.stats();
        let not_accepted = self.uploads.not_accepted();
        let uploads_not_accepted = Kind::ALL.into_iter().filter_map(|kind| {
            let found = not_accepted.get(kind).as_ref()?;
            let shown = UploadsNotAccepted {
                reason: found.reason.clone(),
                since: found.since,
                since_secs_ago: now.as_secs() - found.since.as_secs(),
            };
            Some((kind.name().to_owned(), shown))
        });
        let machine_now = clock::machine_now();
        let adapters = self
            .health
            .report(machine_now.plus_secs(-BLIND_SINCE_SECS), machine_now);
        let jobs = self.jobs.get();
        let selection = self.selections.borrow().clone();
        Status {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            process_id: std::process::id(),
            uptime_secs: self.uptime_secs(),
            service_url: self.service.url().to_string(),
            moved_from: self.service.moved_from().map(ToString::to_string),
            device_instance_id: Some(self.service.device_instance_id().to_owned()),
            access: state,
            hub_uuid: credentials.as_ref().map(|credentials| credentials.hub_uuid),
            tenant_uuid: credentials
                .as_ref()
                .map(|credentials| credentials.tenant_uuid),
            access_reason: reason,
            token_expires_in_secs: credentials
                .map(|credentials| credentials.expires_at.as_secs() - now.as_secs()),
            last_contact_at: contact.last_answer_at,
            last_contact_secs_ago: contact
                .last_answer_at
                .map(|at| now.as_secs() - at.as_secs()),
            unreachable: contact.unreachable,
            path_holds_secs: self.path_holds_secs(),
            uploads_not_accepted: uploads_not_accepted.collect(),
            spool: self.spool_health(),
            refused_records: stats.counters.refused_records + stats.counters.rejected_records,
            spool_trouble: stats.trouble,
            delivered_records: self.uploads.delivered(),
            advertisements: self.health.advertisements(),
            advertisements_per_sec: adapters
                .values()
                .map(|adapter| adapter.advertisements_per_sec)
                .sum(),
            adapters,
            stalled: self.heartbeats.stalled().map(str::to_owned),
            update: self.update.shown(),
            job: jobs.job,
            installed_apps: jobs.installed,
            scan_config_revision: selection.as_ref().map(|selection| selection.revision),
            scan_config_rules: selection
                .as_ref()
                .map(|selection| selection.rules.len() as u64),
            certificate_not_after: self.service.certificate_not_after(),
            certificate_refused: contact.certificate_refused,
        }
    }
}

impl Status {
    /// The status in one line.
    pub fn summary(&self) -> String {
        let service = match (self.access, &self.unreachable) {
            (AccessState::Unclaimed, _) => "not claimed",
            (AccessState::Refused, _) => "refused by the service",
            (AccessState::Claimed, Some(_)) => "service unreachable",
            (AccessState::Claimed, None) if !self.uploads_not_accepted.is_empty() => {
                "uploads are not accepted"
            }
            (AccessState::Claimed, None) if self.spool_trouble.is_some() => {
                "connected; the disk cannot be written"
            }
            (AccessState::Claimed, None) => "connected",
        };
        format!(
            "{service}; {:.1} advertisements/s; {} records to deliver",
            self.advertisements_per_sec, self.spool.events
        )
    }

    /// The status as text for a terminal. `now` is the machine's own time.
    pub fn to_text(&self, now: Timestamp) -> String {
        let mut text = String::new();
        let mut line = |name: &str, value: String| {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{name:<12}{value}");
        };
        line(
            "Agent",
            format!(
                "version {}, process {}, up {}",
                self.version,
                self.process_id,
                span(self.uptime_secs as i64)
            ),
        );
        let contact = match self.last_contact_secs_ago {
            Some(secs) => format!("last answer {} ago", span(secs)),
            None => "no answer yet".to_owned(),
        };
        line("Service", format!("{}, {contact}", self.service_url));
        if let Some(from) = &self.moved_from {
            line(
                "",
                format!("moved by a job from {from}, which is configured"),
            );
        }
        if let Some(reason) = &self.unreachable {
            line("", format!("UNREACHABLE: {reason}"));
        }
        if let Some(secs) = self.path_holds_secs {
            line(
                "",
                format!(
                    "a proxy or firewall ends requests that wait for more than {secs} s; the agent \
                     polls more often"
                ),
            );
        }
        for (kind, found) in &self.uploads_not_accepted {
            line(
                "",
                format!(
                    "{kind} NOT ACCEPTED for {}: {}",
                    span(found.since_secs_ago),
                    found.reason
                ),
            );
        }
        let uuid = self
            .hub_uuid
            .map(|uuid| uuid.to_string())
            .unwrap_or_default();
        line(
            "Hub",
            match self.access {
                AccessState::Unclaimed => {
                    "NOT CLAIMED: run `hub-agent claim --code CODE`".to_owned()
                }
                AccessState::Refused => {
                    format!("{uuid} REFUSED: claim it again with `hub-agent claim --code CODE`")
                }
                AccessState::Claimed => format!("{uuid}, claimed"),
            },
        );
        if let Some(tenant) = self.tenant_uuid {
            line("Owner", tenant.to_string());
        }
        if let Some(reason) = &self.access_reason {
            line("", reason.clone());
        }
        if let (AccessState::Claimed, Some(secs)) = (self.access, self.token_expires_in_secs) {
            line(
                "Token",
                if secs > 0 {
                    format!("expires in {}", span(secs))
                } else {
                    "EXPIRED, being renewed".to_owned()
                },
            );
        }
        line(
            "Spool",
            format!(
                "{} in {}, {}, oldest {} old",
                counted(self.spool.events, "record", "records"),
                counted(self.spool.batches, "batch", "batches"),
                size(self.spool.bytes),
                span(self.spool.oldest_age_secs as i64)
            ),
        );
        if let Some(trouble) = &self.spool_trouble {
            line("", format!("CANNOT BE WRITTEN: {trouble}"));
        }
        if self.spool.set_aside_bytes > 0 {
            let bytes = size(self.spool.set_aside_bytes);
            line(
                "",
                format!("{bytes} of another version SET ASIDE until such a version runs"),
            );
        }
        line(
            "Delivered",
            format!("{} records since the start", self.delivered_records),
        );
        let spool = &self.spool;
        let lost = [
            (spool.dropped_events, "dropped because the spool was full"),
            (spool.lost_events, "lost because of a too high rate"),
            (spool.discarded_records, "of a previous owner discarded"),
            (self.refused_records, "refused by the service"),
        ];
        let lost = lost.map(|(count, why)| format!("{count} {why}")).join(", ");
        line(
            "Undelivered",
            format!("{lost}, since the spool was created"),
        );
        line(
            "Heard",
            format!(
                "{} advertisements, {:.1} a second",
                self.advertisements, self.advertisements_per_sec
            ),
        );
        if let Some(stalled) = &self.stalled {
            line("", format!("STALLED: {stalled}"));
        }
        for (address, adapter) in &self.adapters {
            let state = match adapter.state {
                ScanState::Listening => "listening",
                ScanState::Silent => "silent: scanning, but no device is advertising",
                ScanState::Blind => "BLIND",
                ScanState::Disabled => "disabled by an operator",
            };
            let mut value = format!("{address} {state}");
            if let Some(reason) = &adapter.reason {
                let _ = write!(value, ": {reason}");
            }
            let _ = write!(value, ", {:.1} a second", adapter.advertisements_per_sec);
            if let Some(at) = adapter.last_heard_at {
                let _ = write!(value, ", last {} ago", span(now.as_secs() - at.as_secs()));
            }
            line("Adapter", value);
        }
        if self.adapters.is_empty() {
            line("Adapter", "NONE: run `hub-agent check`".to_owned());
        }
        if let Some(revision) = self.scan_config_revision {
            let rules = self.scan_config_rules.unwrap_or_default();
            line(
                "Scan config",
                format!(
                    "revision {revision}, {rules} rule{}",
                    if rules == 1 { "" } else { "s" }
                ),
            );
        }
        if let Some(until) = self.certificate_not_after {
            line(
                "Certificate",
                format!("valid for {}", span(until.as_secs() - now.as_secs())),
            );
        }
        if let Some(reason) = &self.certificate_refused {
            line("Certificate", format!("NONE: {reason}"));
        }
        if self.update.on_trial {
            line(
                "Update",
                "this version is ON TRIAL until it has reached the service and received advertisements".to_owned(),
            );
        }
        if let Some(failed) = &self.update.last_failed {
            line(
                "Update",
                format!(
                    "the last one, to {}, FAILED ({}): {}",
                    failed.dir, failed.reason, failed.message
                ),
            );
        }
        if let Some(job) = &self.job {
            line(
                "Job",
                format!(
                    "{:?} {}: {}, {} %",
                    job.job_type, job.hub_job_uuid, job.step, job.progress
                ),
            );
            if let Some(trouble) = &job.trouble {
                line("", trouble.clone());
            }
        }
        for app in self.installed_apps.iter().flatten() {
            let state = match app.state {
                InstalledAppState::Running => "running",
                InstalledAppState::Stopped => "stopped",
                InstalledAppState::Failed => "FAILED",
            };
            let since = span(now.as_secs() - app.since.as_secs());
            let mut value = format!(
                "{} version {} {state} for {since}",
                app.app_uuid, app.version
            );
            if let Some(message) = &app.message {
                let _ = write!(value, ": {message}");
            }
            line("App", value);
        }
        text
    }
}

/// A number of things, such as `1 batch`.
fn counted(number: u64, singular: &str, plural: &str) -> String {
    format!("{number} {}", if number == 1 { singular } else { plural })
}

/// A duration in its two largest units.
fn span(secs: i64) -> String {
    let secs = secs.max(0);
    match secs {
        0..60 => format!("{secs}s"),
        60..3_600 => format!("{}m {}s", secs / 60, secs % 60),
        3_600..86_400 => format!("{}h {}m", secs / 3_600, secs % 3_600 / 60),
        _ => format!("{}d {}h", secs / 86_400, secs % 86_400 / 3_600),
    }
}

fn size(bytes: u64) -> String {
    match bytes {
        0..1_024 => format!("{bytes} B"),
        1_024..1_048_576 => format!("{:.1} KiB", bytes as f64 / 1_024.0),
        _ => format!("{:.1} MiB", bytes as f64 / 1_048_576.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status() -> Status {
        Status {
            version: "0.1.0".into(),
            process_id: 7,
            uptime_secs: 3_725,
            service_url: "https://hubs.example.com/".into(),
            moved_from: Some("https://hubs.old.example/".into()),
            device_instance_id: None,
            access: AccessState::Unclaimed,
            hub_uuid: None,
            tenant_uuid: None,
            access_reason: Some("the claim code was refused".into()),
            token_expires_in_secs: None,
            last_contact_at: None,
            last_contact_secs_ago: None,
            unreachable: Some("connection refused".into()),
            path_holds_secs: Some(8),
            uploads_not_accepted: BTreeMap::from([(
                "telemetry".to_owned(),
                UploadsNotAccepted {
                    reason: "status 502".into(),
                    since: Timestamp::from_micros(0),
                    since_secs_ago: 61,
                },
            )]),
            spool: SpoolHealth {
                batches: 2,
                events: 30,
                bytes: 2_048,
                oldest_age_secs: 90,
                dropped_events: 4,
                lost_events: 3,
                discarded_records: 2,
                set_aside_bytes: 4_096,
                trouble: None,
            },
            refused_records: 1,
            spool_trouble: None,
            delivered_records: 0,
            advertisements: 30,
            advertisements_per_sec: 1.5,
            adapters: BTreeMap::new(),
            stalled: None,
            update: UpdateShown {
                version_dir: Some("1.2.3-abcdefabcdef".into()),
                on_trial: true,
                last_failed: Some(hub_agent::launch::FailedTrial {
                    dir: "1.3.0-123456123456".into(),
                    job_uuid: "job".into(),
                    reason: "NOT_CONFIRMED".into(),
                    message: "it reached no service".into(),
                }),
            },
            job: None,
            installed_apps: Some(vec![InstalledApp {
                app_uuid: hub_protocol::AppUuid::default(),
                release_uuid: hub_protocol::ReleaseUuid::default(),
                version: "2.0.0".into(),
                state: InstalledAppState::Failed,
                message: Some("exit status 1".into()),
                since: Timestamp::from_micros(-5_000_000),
                restarts: 3,
            }]),
            scan_config_revision: Some(7),
            scan_config_rules: Some(2),
            certificate_not_after: Some(Timestamp::from_micros(7_200_000_000)),
            certificate_refused: None,
        }
    }

    #[test]
    fn the_text_names_every_fault_and_its_remedy() {
        let text = status().to_text(Timestamp::from_micros(0));
        for part in [
            "up 1h 2m",
            "UNREACHABLE: connection refused",
            "moved by a job from https://hubs.old.example/",
            "telemetry NOT ACCEPTED for 1m 1s: status 502",
            "NOT CLAIMED: run `hub-agent claim",
            "2.0 KiB",
            "1m 30s old",
            "NONE: run",
            "4.0 KiB of another version SET ASIDE",
            "4 dropped because the spool was full, 3 lost because of a too high rate, 2 of a \
             previous",
            "valid for 2h 0m",
            "ON TRIAL",
            "1.3.0-123456123456, FAILED (NOT_CONFIRMED): it reached no service",
            "version 2.0.0 FAILED for 5s: exit status 1",
        ] {
            assert!(text.contains(part), "{part:?} is missing in\n{text}");
        }
    }

    #[test]
    fn json_is_read_back_unchanged() {
        let status = status();
        let json = serde_json::to_string(&status).unwrap();
        assert_eq!(serde_json::from_str::<Status>(&json).unwrap(), status);
    }
}
