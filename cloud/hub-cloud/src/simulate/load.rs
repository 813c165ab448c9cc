//! The uploads of the fleet. Each is due at a time that does not depend on the service, and its
//! latency counts from that time: a service that falls behind cannot hide it.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hub_base::clock::Clock;
use hub_logging::say;
use hub_protocol::Timestamp;
use reqwest::Client;
use reqwest::header::{CONTENT_ENCODING, CONTENT_TYPE};
use tokio::sync::Semaphore;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use uuid::Uuid;

use super::fleet::Hub;
use super::profile::Profile;

/// Uploads that are sent at a time. More wait, which shows in their latency.
const IN_FLIGHT: usize = 512;
/// How often the progress is shown.
const PROGRESS: Duration = Duration::from_secs(5);
/// As the agent compresses.
const ZSTD_LEVEL: i32 = 1;

/// What was sent, and what the service answered.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    pub stored_events: u64,
    pub sent_bytes: u64,
    /// Uploads that were not stored, by the status, or by the reason why there was none.
    pub refused: BTreeMap<String, u64>,
    /// How many uploads were stored after this many milliseconds, to two digits.
    latencies_ms: BTreeMap<u64, u64>,
}

impl Tally {
    fn add_latency(&mut self, latency: Duration) {
        let ms = u64::try_from(latency.as_millis()).unwrap_or(u64::MAX);
        let unit = 10_u64.pow(ms.checked_ilog10().unwrap_or(0).saturating_sub(1));
        *self
            .latencies_ms
            .entry(ms.div_ceil(unit) * unit)
            .or_default() += 1;
    }

    /// The milliseconds that this share of the stored uploads, in percent, took at most.
    pub fn latency_ms(&self, percent: u64) -> u64 {
        let wanted = (self.stored_uploads() * percent).div_ceil(100);
        let mut passed = 0;
        let found = self.latencies_ms.iter().find(|(_, uploads)| {
            passed += **uploads;
            passed >= wanted
        });
        found.map_or(0, |(ms, _)| *ms)
    }

    pub fn stored_uploads(&self) -> u64 {
        self.latencies_ms.values().sum()
    }

    pub fn refused_uploads(&self) -> u64 {
        self.refused.values().sum()
    }
}

/// The uploads of a run.
#[derive(Clone)]
struct Run {
    http: Client,
    url: Arc<str>,
    tally: Arc<Mutex<Tally>>,
}

impl Run {
    fn tally(&self) -> MutexGuard<'_, Tally> {
        self.tally.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn upload(&self, access_token: &str, body: Vec<u8>, events: u64, due_at: Instant) {
        let bytes = body.len() as u64;
        let sent = self
            .http
            .post(format!("{}/v1/ble/events", self.url))
            .bearer_auth(access_token)
            .header(CONTENT_TYPE, "application/json")
            .header(CONTENT_ENCODING, "zstd")
            .body(body)
            .send()
            .await;
        let refusal = match sent {
            Ok(response) if response.status().is_success() => None,
            Ok(response) => Some(response.status().as_u16().to_string()),
            Err(error) if error.is_timeout() => Some("no answer in time".to_owned()),
            Err(_) => Some("no connection".to_owned()),
        };
        let mut tally = self.tally();
        tally.sent_bytes += bytes;
        match refusal {
            None => {
                tally.stored_events += events;
                tally.add_latency(due_at.elapsed());
            }
            Some(reason) => *tally.refused.entry(reason).or_default() += 1,
        }
    }
}

/// Uploads until the time is over or `stop` is cancelled. Returns what was sent, and for how long.
pub async fn run(
    http: Client,
    url: &str,
    hubs: Vec<Hub>,
    profile: &Profile,
    stop: &CancellationToken,
) -> (Tally, Duration) {
    let run = Run {
        http,
        url: url.into(),
        tally: Arc::default(),
    };
    let (started_at, mut shown_at) = (Instant::now(), Instant::now());
    let ends_at = started_at + Duration::from_secs(profile.seconds);
    let (slots, uploads) = (Arc::new(Semaphore::new(IN_FLIGHT)), TaskTracker::new());
    let pause = Duration::from_secs_f64(profile.upload_every_secs / f64::from(profile.hubs));
    let hubs: Vec<Arc<Hub>> = hubs.into_iter().map(Arc::new).collect();
    let mut next_event = vec![0_u64; hubs.len()];
    'uploading: for round in 1_u32.. {
        for (number, (hub, next_event)) in (0_u32..).zip(hubs.iter().zip(&mut next_event)) {
            let due_at = started_at
                + Duration::from_secs_f64(profile.upload_every_secs) * (round - 1)
                + pause * number;
            if due_at >= ends_at || Instant::now() >= ends_at {
                break 'uploading;
            }
            let slot = tokio::select! {
                () = stop.cancelled() => break 'uploading,
                slot = async {
                    tokio::time::sleep_until(due_at).await;
                    slots.clone().acquire_owned().await
                } => slot,
            };
            let first = *next_event;
            *next_event = events_before(hub, profile, round);
            if first == *next_event {
                // Nothing was heard.
                continue;
            }
            let (sender, hub, profile) = (run.clone(), Arc::clone(hub), profile.clone());
            let events = first..*next_event;
            uploads.spawn(async move {
                let _slot = slot;
                let now = Clock::System.now();
                let (count, body) = (events.end - events.start, body(&hub, &profile, events, now));
                sender.upload(&hub.access_token, body, count, due_at).await;
            });
            if shown_at.elapsed() >= PROGRESS {
                shown_at = Instant::now();
                show(&run.tally(), started_at.elapsed());
            }
        }
    }
    let took = started_at.elapsed();
    uploads.close();
    uploads.wait().await;
    let tally = run.tally().clone();
    (tally, took)
}

/// How many events a hub has uploaded after this many uploads.
fn events_before(hub: &Hub, profile: &Profile, uploads: u32) -> u64 {
    let per_upload = f64::from(hub.heard_devices(profile.heard_by)) * profile.upload_every_secs
        / profile.event_every_secs;
    (per_upload * f64::from(uploads)) as u64
}

fn show(tally: &Tally, elapsed: Duration) {
    let secs = elapsed.as_secs_f64();
    say(format_args!(
        "{secs:.0} s: {:.0} events/s stored, p99 {} ms, {} uploads refused",
        tally.stored_events as f64 / secs,
        tally.latency_ms(99),
        tally.refused_uploads(),
    ));
}

/// The body of an upload, as the agent compresses it.
fn body(hub: &Hub, profile: &Profile, events: std::ops::Range<u64>, now: Timestamp) -> Vec<u8> {
    let mut text = format!("{{\"batchUuid\":\"{}\",\"events\":[", Uuid::new_v4());
    let devices = u64::from(hub.heard_devices(profile.heard_by)).max(1);
    let span_micros = profile.upload_every_secs * 1e6;
    let count = (events.end - events.start).max(1) as f64;
    for (at, number) in events.enumerate() {
        if at > 0 {
            text.push(',');
        }
        let index = u32::try_from(number % devices).unwrap_or(0);
        let device = hub.device(index, profile.heard_by);
        let before_micros = span_micros * (1.0 - at as f64 / count);
        let observed_at = Timestamp::from_micros(now.as_micros() - before_micros as i64);
        add_event(&mut text, device, number / devices, observed_at);
    }
    text.push_str("]}");
    zstd::bulk::compress(text.as_bytes(), ZSTD_LEVEL).unwrap_or_default()
}

/// What a RuuviTag advertises (data format 5 of its documentation).
fn add_event(text: &mut String, device: u32, sequence: u64, observed_at: Timestamp) {
    let [a, b, c, d] = device.to_be_bytes();
    let wave = i16::try_from((sequence + u64::from(device)) % 400).unwrap_or(0);
    let temperature = 4000 + (wave - 200).abs();
    let sequence = (sequence % 65_535) as u16;
    let mut payload = vec![5];
    payload.extend(temperature.to_be_bytes());
    // Humidity, pressure, acceleration in three directions, voltage and power, movements.
    payload.extend([
        0x53, 0x94, 0xC3, 0x7C, 0, 4, 0xFF, 0xFC, 4, 0x0C, 0xAC, 0x36, 66,
    ]);
    payload.extend(sequence.to_be_bytes());
    payload.extend([0xC5, 0, a, b, c, d]);
    // Writing to a text does not fail.
    let _ = write!(
        text,
        "{{\"observedAt\":\"{observed_at}\",\"adapterAddress\":\"00:11:22:33:44:55\",\
         \"address\":\"C5:00:{a:02X}:{b:02X}:{c:02X}:{d:02X}\",\"addressType\":\"random\",\
         \"rssi\":{},\"manufacturerData\":{{\"0499\":\"{}\"}}}}",
        -50 - wave % 40,
        STANDARD.encode(payload),
    );
}

#[cfg(test)]
mod tests {
    use hub_protocol::ble::BleEventUpload;

    use super::*;

    #[test]
    fn latencies_are_counted_to_two_digits() {
        let mut tally = Tally::default();
        for ms in 1..=1000 {
            tally.add_latency(Duration::from_millis(ms));
        }
        assert_eq!(
            (
                tally.latency_ms(50),
                tally.latency_ms(99),
                tally.stored_uploads()
            ),
            (500, 990, 1000)
        );
        assert_eq!(Tally::default().latency_ms(50), 0);
    }

    #[test]
    fn an_upload_is_one_of_the_protocol() {
        let profile = Profile {
            hubs: 1,
            devices: 10,
            heard_by: 1,
            event_every_secs: 2.5,
            upload_every_secs: 10.0,
            seconds: 60,
        };
        let hub = Hub {
            access_token: String::new(),
            place: 0,
            places: 1,
            first_device: 0,
            step: 1,
            tenant_devices: 10,
        };
        assert_eq!(events_before(&hub, &profile, 3), 120);
        let now = Clock::System.now();
        let packed = body(&hub, &profile, 40..80, now);
        let text = zstd::bulk::decompress(&packed, 1 << 20).expect("an upload");
        let upload: BleEventUpload = serde_json::from_slice(&text).expect("an upload");
        assert_eq!(upload.events.len(), 40);
        let mut addresses: Vec<&str> = upload
            .events
            .iter()
            .map(|event| event.payload.address.as_str())
            .collect();
        addresses.sort_unstable();
        addresses.dedup();
        assert_eq!(addresses.len(), 10);
        assert!(upload.events.iter().all(|event| event.observed_at <= now));
    }
}
