//! Selects what is reported of all advertisements: de-duplicates them, and aggregates them over
//! windows by device. Bounded in memory, and never reads a clock: the time is that of the
//! advertisements, and of the caller of `flush`.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::sync::Arc;
use std::sync::atomic::AtomicI64;

use hub_protocol::ble::{Advertisement, Payload};
use hub_protocol::{Timestamp, TraceContext};
use uuid::Uuid;

use super::events::Events;
use super::health::Health;
use super::queue::HeardSender;
use super::routes::{Decision, Router};
use super::types::{Heard, RadioConfig, Selections};
use super::windows::{Dedup, Window};

/// The most payloads that are remembered for de-duplication.
const MAX_REMEMBERED: usize = 16_384;

/// Accepts every advertisement of one source and delivers what the configuration selects.
#[derive(Debug)]
pub struct Pipeline {
    single_events: bool,
    dedup: Dedup,
    window: Option<Window>,
    selection: Option<Selections>,
    /// Applies the selection, where it has rules.
    router: Option<Router>,
    least_window_micros: Arc<AtomicI64>,
    hasher: RandomState,
    /// The buffer of the bytes that are hashed.
    hashed: Vec<u8>,
    /// The share of events with which a trace begins.
    trace_ratio: f64,
    /// Events that are not in `ready` yet.
    events: Events,
    ready: Vec<Heard>,
    /// Advertisements by adapter since the last flush. There are few adapters: a list is the
    /// fastest map.
    counts: Vec<(String, u64)>,
    health: Health,
    sender: HeardSender,
}

/// The trace that begins with an event, of so many of them.
fn begin_trace(ratio: f64) -> Option<TraceContext> {
    if ratio <= 0.0 {
        return None;
    }
    let context = TraceContext {
        trace_id: Uuid::new_v4().as_u128(),
        // Not zero: it has the version of the id.
        span_id: Uuid::new_v4().as_u64_pair().0,
        is_sampled: true,
    };
    context.is_within(ratio).then_some(context)
}

impl Pipeline {
    pub fn new(config: &RadioConfig, health: Health, sender: HeardSender) -> Self {
        let mut pipeline = Self {
            single_events: config.single_events,
            dedup: Dedup::new(config.dedup_window, MAX_REMEMBERED),
            window: config
                .report_window
                .map(|length| Window::new(length, config.least_window_micros.clone())),
            selection: config.selection.clone(),
            router: None,
            least_window_micros: config.least_window_micros.clone(),
            hasher: RandomState::new(),
            hashed: Vec::new(),
            trace_ratio: config.trace_ratio,
            events: Events::default(),
            ready: Vec::new(),
            counts: Vec::new(),
            health,
            sender,
        };
        pipeline.select(Timestamp::from_micros(0));
        pipeline
    }

    /// Begins to apply the selection that is in force now.
    fn select(&mut self, now: Timestamp) {
        let Some(selection) = &mut self.selection else {
            return;
        };
        let selection = selection
            .borrow_and_update()
            .clone()
            .filter(|selection| selection.is_selective());
        if let Some(before) = &mut self.router {
            before.finish(now, &mut self.ready);
        }
        self.router = selection.map(|selection| Router::new(selection, &self.least_window_micros));
    }

    pub fn health(&self) -> &Health {
        &self.health
    }

    pub fn heard(&mut self, at: Timestamp, advertisement: &Advertisement) {
        let adapter = advertisement.adapter_address.as_deref().unwrap_or_default();
        match self
            .counts
            .iter_mut()
            .find(|(address, _)| address == adapter)
        {
            Some((_, count)) => *count += 1,
            None => self.counts.push((adapter.to_owned(), 1)),
        }
        let (device, payload) = hashes(&self.hasher, &mut self.hashed, adapter, advertisement);
        let decision = match &mut self.router {
            None => Decision::Reported,
            Some(router) => router.pass(at, advertisement, device, payload, &mut self.ready),
        };
        let is_event = match decision {
            Decision::Reported => self.single_events && self.dedup.is_new(payload, at),
            Decision::Selected => self.single_events,
            Decision::Event => true,
            Decision::Withheld => false,
        };
        if is_event {
            self.events
                .push(at, begin_trace(self.trace_ratio), advertisement);
            if self.events.is_full() {
                self.end_list();
            }
        }
        if let Some(window) = &mut self.window
            && matches!(decision, Decision::Reported | Decision::Selected)
        {
            self.ready
                .extend(window.close_if_due(at).map(Heard::Window));
            window.add(device, payload, at, advertisement);
        }
    }

    fn end_list(&mut self) {
        // The next list is probably as long.
        let next = Events::with_capacity(self.events.len());
        self.ready
            .push(Heard::Events(std::mem::replace(&mut self.events, next)));
    }

    /// Delivers what has gathered, and the window if it has ended.
    pub fn flush(&mut self, now: Timestamp) {
        for (adapter, count) in self.counts.iter_mut().filter(|(_, count)| *count > 0) {
            self.health.heard(adapter, now, *count);
            *count = 0;
        }
        if self.events.len() > 0 {
            self.end_list();
        }
        if let Some(window) = &mut self.window {
            self.ready
                .extend(window.close_if_due(now).map(Heard::Window));
        }
        if let Some(router) = &mut self.router {
            router.flush(now, &mut self.ready);
        }
        if self
            .selection
            .as_ref()
            .is_some_and(|selection| selection.has_changed().unwrap_or(false))
        {
            self.select(now);
        }
        self.sender.send(std::mem::take(&mut self.ready));
    }

    /// Delivers everything, including the unfinished window.
    pub fn finish(&mut self, now: Timestamp) {
        self.flush(now);
        if let Some(window) = &mut self.window {
            self.ready.extend(window.close(now).map(Heard::Window));
        }
        if let Some(router) = &mut self.router {
            router.finish(now, &mut self.ready);
        }
        self.sender.send(std::mem::take(&mut self.ready));
    }

    /// Waits until the reader has caught up.
    pub async fn room(&self) {
        self.sender.room().await;
    }
}

/// Two hashes: of the advertiser and the adapter; and of the advertiser and everything it sent, but
/// not the signal strength or the adapter. Each is of one piece: hashing small pieces takes thrice
/// as long.
fn hashes(
    hasher: &RandomState,
    bytes: &mut Vec<u8>,
    adapter: &str,
    advertisement: &Advertisement,
) -> (u64, u64) {
    let hash = |pieces: &[&[u8]]| {
        let mut state = hasher.build_hasher();
        pieces.iter().for_each(|piece| state.write(piece));
        state.finish()
    };
    let device = hash(&[adapter.as_bytes(), &[0], advertisement.address.as_bytes()]);
    bytes.clear();
    // The length before each part: no two payloads have the same bytes.
    let mut part = |part: &[u8]| {
        bytes.extend_from_slice(&(part.len() as u32).to_le_bytes());
        bytes.extend_from_slice(part);
    };
    part(advertisement.address.as_bytes());
    let is_public = advertisement.address_type.as_deref() == Some("public");
    part(&[
        is_public.into(),
        advertisement.name.is_some().into(),
        advertisement.tx_power.is_some().into(),
    ]);
    part(advertisement.name.as_deref().unwrap_or_default().as_bytes());
    part(&advertisement.tx_power.unwrap_or_default().to_le_bytes());
    for data in [
        &advertisement.manufacturer_data,
        &advertisement.service_data,
    ] {
        part(&data.len().to_le_bytes());
        for (id, Payload(payload)) in data {
            part(id.as_bytes());
            part(payload);
        }
    }
    advertisement
        .service_uuids
        .iter()
        .for_each(|uuid| part(uuid.as_bytes()));
    (device, hash(&[bytes.as_slice()]))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;
    use std::time::Duration;

    use super::super::queue;
    use super::super::windows::{MAX_WINDOW_DEVICES, RSSI_UNKNOWN};
    use super::*;

    fn at(secs: i64) -> Timestamp {
        Timestamp::from_micros(secs * 1_000_000)
    }

    fn heard(address: &str, rssi: i16, data: &[u8]) -> Advertisement {
        Advertisement {
            adapter_address: Some("00:00:00:00:00:01".into()),
            address: address.into(),
            rssi: Some(rssi),
            manufacturer_data: [("0499".to_owned(), Payload(data.to_vec()))].into(),
            ..Advertisement::default()
        }
    }

    fn pipeline(config: RadioConfig) -> (Pipeline, queue::HeardReceiver) {
        let (sender, receiver) = queue::channel();
        (Pipeline::new(&config, Health::new(), sender), receiver)
    }

    async fn events(receiver: &mut queue::HeardReceiver) -> Vec<(i64, Option<i16>)> {
        let mut events = Vec::new();
        while let Some(items) = receiver.next().await {
            for item in items {
                match item {
                    Heard::Events(list) => {
                        events.extend(
                            list.parsed()
                                .map(|event| (event.observed_at.as_secs(), event.payload.rssi)),
                        );
                    }
                    Heard::Window(window) => panic!("no window was requested: {window:?}"),
                }
            }
        }
        events
    }

    #[tokio::test]
    async fn a_payload_is_reported_once_in_its_window_with_its_current_rssi() {
        let (mut pipeline, mut receiver) = pipeline(RadioConfig::default());
        for (time, rssi, data) in [
            (0, -50, 1),
            (1, -60, 1),
            (5, -61, 2),
            (9, -62, 1),
            (10, -63, 1),
            (14, -64, 2),
        ] {
            pipeline.heard(at(time), &heard("AA:00:00:00:00:01", rssi, &[data]));
        }
        pipeline.heard(at(14), &heard("AA:00:00:00:00:02", -70, &[1]));
        assert_eq!(pipeline.health().advertisements(), 0, "counted on delivery");
        let health = pipeline.health().clone();
        pipeline.finish(at(14));
        drop(pipeline);
        assert_eq!(
            events(&mut receiver).await,
            [
                (0, Some(-50)),
                (5, Some(-61)),
                (10, Some(-63)),
                (14, Some(-70))
            ]
        );
        assert_eq!(health.advertisements(), 7);
    }

    #[tokio::test]
    async fn everything_is_reported_without_a_window_or_after_the_clock_was_set_back() {
        let config = RadioConfig {
            dedup_window: Duration::ZERO,
            ..RadioConfig::default()
        };
        let (mut all, mut receiver) = pipeline(config);
        all.heard(at(1), &heard("AA:00:00:00:00:01", -50, &[1]));
        all.heard(at(1), &heard("AA:00:00:00:00:01", -50, &[1]));
        all.finish(at(1));
        drop(all);
        assert_eq!(events(&mut receiver).await.len(), 2);

        let (mut set_back, mut receiver) = pipeline(RadioConfig::default());
        set_back.heard(at(100), &heard("AA:00:00:00:00:01", -50, &[1]));
        set_back.heard(at(3), &heard("AA:00:00:00:00:01", -50, &[1]));
        set_back.finish(at(3));
        drop(set_back);
        assert_eq!(events(&mut receiver).await.len(), 2);
    }

    #[tokio::test]
    async fn windows_aggregate_each_device_and_keep_its_last_payload() {
        let config = RadioConfig {
            single_events: false,
            report_window: Some(Duration::from_secs(60)),
            ..RadioConfig::default()
        };
        let (mut pipeline, mut receiver) = pipeline(config);
        for (time, rssi, data) in [(0, -50, 1), (10, -60, 1), (20, -64, 2), (61, -40, 3)] {
            pipeline.heard(at(time), &heard("AA:00:00:00:00:01", rssi, &[data]));
        }
        pipeline.heard(
            at(62),
            &Advertisement {
                rssi: None,
                ..heard("AA:00:00:00:00:02", 0, &[9])
            },
        );
        pipeline.flush(at(63));
        pipeline.finish(at(70));
        drop(pipeline);

        let windows: Vec<_> = receiver
            .next()
            .await
            .unwrap()
            .into_iter()
            .map(|item| match item {
                Heard::Window(window) => window,
                Heard::Events(events) => panic!("no single event was requested: {events:?}"),
            })
            .collect();
        assert_eq!(receiver.next().await, None);
        assert_eq!(windows.len(), 2);
        assert_eq!((windows[0].start, windows[0].end), (at(0), at(61)));
        let device = &windows[0].devices[0];
        assert_eq!(
            (
                device.count,
                device.rssi_min,
                device.rssi_max,
                device.rssi_mean
            ),
            (3, -64, -50, -58.0)
        );
        assert_eq!((device.first_seen_at, device.last_seen_at), (at(0), at(20)));
        assert_eq!(device.payload.manufacturer_data["0499"], Payload(vec![2]));

        assert_eq!((windows[1].start, windows[1].end), (at(61), at(70)));
        let [first, unknown] = &windows[1].devices[..] else {
            panic!("two devices, not {:?}", windows[1])
        };
        assert_eq!((first.count, first.rssi_mean), (1, -40.0));
        assert_eq!(
            (unknown.payload.rssi, unknown.rssi_min),
            (None, RSSI_UNKNOWN)
        );
    }

    #[tokio::test]
    async fn windows_are_as_long_as_the_pauses_between_their_uploads() {
        let config = RadioConfig {
            single_events: false,
            report_window: Some(Duration::from_secs(60)),
            ..RadioConfig::default()
        };
        let least_micros = config.least_window_micros.clone();
        let (mut pipeline, mut receiver) = pipeline(config);
        least_micros.store(200_000_000, Ordering::Relaxed);
        for time in (0..1_000).step_by(10) {
            pipeline.heard(at(time), &heard("AA:00:00:00:00:01", -50, &[1]));
        }
        pipeline.finish(at(1_000));
        drop(pipeline);
        assert_eq!(receiver.next().await.unwrap().len(), 5);
    }

    #[tokio::test]
    async fn a_window_with_too_many_devices_closes_early() {
        let config = RadioConfig {
            single_events: false,
            report_window: Some(Duration::from_secs(3600)),
            ..RadioConfig::default()
        };
        let (mut pipeline, mut receiver) = pipeline(config);
        for number in 0..=MAX_WINDOW_DEVICES {
            pipeline.heard(
                at(1),
                &heard(
                    &format!("AA:00:00:00:{:02X}:{:02X}", number / 256, number % 256),
                    -50,
                    &[1],
                ),
            );
        }
        pipeline.finish(at(2));
        drop(pipeline);
        let sizes: Vec<_> = receiver
            .next()
            .await
            .unwrap()
            .iter()
            .map(|item| {
                if let Heard::Window(window) = item {
                    window.devices.len()
                } else {
                    0
                }
            })
            .collect();
        assert_eq!(sizes, [MAX_WINDOW_DEVICES, 1]);
    }
}
