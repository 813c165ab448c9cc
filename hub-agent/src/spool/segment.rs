//! The unit of the spool: consecutive records of one kind, as comma-separated JSON in one zstd
//! frame. Frames can be concatenated, so an upload is a concatenation of frames: nothing is
//! compressed or parsed twice. Only a batch that is too large, or whose clock was wrong, is
//! decompressed.

use std::io::{self, Read};

use hub_protocol::ble::{BleDeviceWindow, BleEvent};
use hub_protocol::{BatchUuid, Timestamp};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::value::RawValue;
use uuid::Uuid;

/// Level 1 needs a third of the CPU of the default level and produces a tenth more bytes.
const ZSTD_LEVEL: i32 = 1;

/// A segment is closed at this many records or bytes of JSON, which bounds the memory that
/// decompressing one needs.
const MAX_SEGMENT_RECORDS: u32 = 2_000;
const MAX_SEGMENT_JSON_BYTES: usize = 256 << 10;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    BleEvents = 1,
    BleWindows = 2,
    Telemetry = 3,
    Logs = 4,
    /// Events of jobs: each is an upload of its own, and none is ever dropped.
    JobEvents = 5,
}

impl Kind {
    pub const ALL: [Self; 5] = [
        Self::BleEvents,
        Self::BleWindows,
        Self::Telemetry,
        Self::Logs,
        Self::JobEvents,
    ];

    pub fn from_code(code: i64) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.code() == code)
    }

    pub fn code(self) -> i64 {
        self as i64
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::BleEvents => "bleEvents",
            Self::BleWindows => "bleWindows",
            Self::Telemetry => "telemetry",
            Self::Logs => "logs",
            Self::JobEvents => "jobEvents",
        }
    }

    /// Whether it is dropped first when the spool is full.
    pub fn is_ble(self) -> bool {
        matches!(self, Self::BleEvents | Self::BleWindows)
    }

    /// The most records of one upload.
    pub fn max_records(self) -> u64 {
        match self {
            Self::BleEvents | Self::BleWindows => hub_protocol::ble::MAX_EVENTS_PER_UPLOAD as u64,
            Self::Telemetry | Self::Logs => 1_000,
            Self::JobEvents => 1,
        }
    }
}

/// A value for each kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PerKind<T>([T; 5]);

impl<T> PerKind<T> {
    pub fn from_fn(make: impl Fn(Kind) -> T) -> Self {
        Self(Kind::ALL.map(make))
    }

    pub fn get(&self, kind: Kind) -> &T {
        let [events, windows, telemetry, logs, job_events] = &self.0;
        match kind {
            Kind::BleEvents => events,
            Kind::BleWindows => windows,
            Kind::Telemetry => telemetry,
            Kind::Logs => logs,
            Kind::JobEvents => job_events,
        }
    }

    pub fn get_mut(&mut self, kind: Kind) -> &mut T {
        let [events, windows, telemetry, logs, job_events] = &mut self.0;
        match kind {
            Kind::BleEvents => events,
            Kind::BleWindows => windows,
            Kind::Telemetry => telemetry,
            Kind::Logs => logs,
            Kind::JobEvents => job_events,
        }
    }

    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.0.iter()
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// The order within the spool.
    pub id: i64,
    pub kind: Kind,
    /// Segments with the same batch are one upload.
    pub batch: BatchUuid,
    /// The batch may have been sent as it is: it must not change any more.
    pub fixed: bool,
    pub records: u64,
    /// First and last time in it.
    pub from: Timestamp,
    pub to: Timestamp,
    /// The boot of the machine in which it was recorded, and the offset that was then added to the
    /// time since boot to get the time of day.
    pub boot: Uuid,
    pub clock_offset_micros: i64,
    pub body: Vec<u8>,
}

impl Segment {
    /// Whether both can be in one upload. An upload of windows has one beginning and one end, to
    /// which its counts refer.
    pub fn can_join(&self, other: &Self) -> bool {
        let window = |segment: &Self| {
            (
                segment.from,
                segment.to,
                segment.boot,
                segment.clock_offset_micros,
            )
        };
        self.kind == other.kind
            && match self.kind {
                Kind::BleWindows => window(self) == window(other),
                Kind::JobEvents => false,
                Kind::BleEvents | Kind::Telemetry | Kind::Logs => true,
            }
    }
}

/// Records of one kind that are not a segment yet.
#[derive(Debug, Default)]
pub struct Gathering {
    json: Vec<u8>,
    records: u32,
    span: Option<(Timestamp, Timestamp)>,
    clock_offset_micros: i64,
}

impl Gathering {
    pub fn is_empty(&self) -> bool {
        self.records == 0
    }

    pub fn records(&self) -> u64 {
        u64::from(self.records)
    }

    /// Whether a record with this clock offset needs a new segment: because this one is full, or
    /// because the clock was set.
    pub fn must_close_before(&self, clock_offset_micros: i64) -> bool {
        !self.is_empty()
            && (self.records >= MAX_SEGMENT_RECORDS
                || self.json.len() >= MAX_SEGMENT_JSON_BYTES
                || (clock_offset_micros - self.clock_offset_micros).abs()
                    > CORRECT_ABOVE_MICROS / 2)
    }

    /// Whether the gathered records belong to another window.
    pub fn is_of_another_window(&self, from: Timestamp, to: Timestamp) -> bool {
        self.span.is_some_and(|span| span != (from, to))
    }

    pub fn push(
        &mut self,
        record: &impl Serialize,
        from: Timestamp,
        to: Timestamp,
        clock_offset_micros: i64,
    ) -> serde_json::Result<()> {
        let before = self.json.len();
        if !self.is_empty() {
            self.json.push(b',');
        }
        if let Err(error) = serde_json::to_writer(&mut self.json, record) {
            self.json.truncate(before);
            return Err(error);
        }
        self.pushed(from, to, clock_offset_micros);
        Ok(())
    }

    /// A record that is JSON already.
    pub fn push_json(
        &mut self,
        record: &[u8],
        from: Timestamp,
        to: Timestamp,
        clock_offset_micros: i64,
    ) {
        if !self.is_empty() {
            self.json.push(b',');
        }
        self.json.extend_from_slice(record);
        self.pushed(from, to, clock_offset_micros);
    }

    fn pushed(&mut self, from: Timestamp, to: Timestamp, clock_offset_micros: i64) {
        if self.is_empty() {
            self.clock_offset_micros = clock_offset_micros;
        }
        self.records += 1;
        let (first, last) = self.span.unwrap_or((from, to));
        self.span = Some((first.min(from), last.max(to)));
    }

    /// Closes the gathered records into a segment, and starts over.
    pub fn close(
        &mut self,
        id: i64,
        kind: Kind,
        boot: Uuid,
        frames: &mut Frames,
    ) -> io::Result<Segment> {
        let (from, to) = self
            .span
            .unwrap_or((Timestamp::from_micros(0), Timestamp::from_micros(0)));
        let segment = Segment {
            id,
            kind,
            batch: BatchUuid::new(),
            fixed: false,
            records: u64::from(self.records),
            from,
            to,
            boot,
            clock_offset_micros: self.clock_offset_micros,
            body: frames.compress(&self.json)?,
        };
        // The buffer is reused, unless it grew beyond the usual.
        self.json.clear();
        self.json.shrink_to(MAX_SEGMENT_JSON_BYTES);
        self.records = 0;
        self.span = None;
        Ok(segment)
    }
}

/// The compressor. Its tables and its buffer are allocated once.
pub struct Frames {
    compressor: zstd::bulk::Compressor<'static>,
    buffer: Vec<u8>,
}

impl Frames {
    pub fn new() -> io::Result<Self> {
        Ok(Self {
            compressor: zstd::bulk::Compressor::new(ZSTD_LEVEL)?,
            buffer: Vec::new(),
        })
    }

    fn compress(&mut self, bytes: &[u8]) -> io::Result<Vec<u8>> {
        self.buffer.clear();
        self.buffer
            .reserve(zstd::zstd_safe::compress_bound(bytes.len()));
        self.compressor
            .compress_to_buffer(bytes, &mut self.buffer)?;
        let frame = self.buffer.as_slice().to_vec();
        self.buffer.clear();
        self.buffer.shrink_to(2 * MAX_SEGMENT_JSON_BYTES);
        Ok(frame)
    }

    /// The body of the upload of these segments, all of one batch.
    pub fn upload(&mut self, segments: &[Segment]) -> io::Result<Vec<u8>> {
        let Some(first) = segments.first() else {
            return Ok(Vec::new());
        };
        let from = segments
            .iter()
            .map(|segment| segment.from)
            .min()
            .unwrap_or(first.from);
        let to = segments
            .iter()
            .map(|segment| segment.to)
            .max()
            .unwrap_or(first.to);
        let (head, tail) = match first.kind {
            Kind::BleEvents => (
                format!(r#"{{"batchUuid":"{}","events":["#, first.batch),
                "]}",
            ),
            Kind::BleWindows => (
                format!(
                    r#"{{"batchUuid":"{}","windowStart":"{from}","windowEnd":"{to}","devices":["#,
                    first.batch
                ),
                "]}",
            ),
            Kind::Telemetry | Kind::Logs => ("[".to_owned(), "]"),
            Kind::JobEvents => (String::new(), ""),
        };
        let comma = self.compress(b",")?;
        let mut body = self.compress(head.as_bytes())?;
        body.reserve_exact(
            segments
                .iter()
                .map(|segment| segment.body.len() + comma.len())
                .sum::<usize>()
                + 32,
        );
        for (at, segment) in segments.iter().enumerate() {
            if at > 0 {
                body.extend_from_slice(&comma);
            }
            body.extend_from_slice(&segment.body);
        }
        body.extend_from_slice(&self.compress(tail.as_bytes())?);
        Ok(body)
    }

    /// Moves all times in the segment.
    pub fn shift(&mut self, segment: &mut Segment, by_micros: i64) -> io::Result<()> {
        let json = match segment.kind {
            Kind::BleEvents => shift_records(&segment.body, |event: &mut BleEvent| {
                event.observed_at = event.observed_at.plus_micros(by_micros);
            })?,
            Kind::BleWindows => shift_records(&segment.body, |device: &mut BleDeviceWindow| {
                device.first_seen_at = device.first_seen_at.plus_micros(by_micros);
                device.last_seen_at = device.last_seen_at.plus_micros(by_micros);
            })?,
            Kind::Telemetry | Kind::Logs | Kind::JobEvents => {
                shift_records(&segment.body, |record: &mut Value| {
                    shift_times(record, by_micros)
                })?
            }
        };
        segment.body = self.compress(&json)?;
        segment.from = segment.from.plus_micros(by_micros);
        segment.to = segment.to.plus_micros(by_micros);
        segment.clock_offset_micros = segment.clock_offset_micros.saturating_add(by_micros);
        Ok(())
    }

    /// Two segments with half of the records each, which replace these. `None` if there is only one
    /// record.
    pub fn halve(
        &mut self,
        segments: &[Segment],
        next_id: &mut impl FnMut() -> i64,
    ) -> io::Result<Option<[Segment; 2]>> {
        let Some(first) = segments.first() else {
            return Ok(None);
        };
        let texts: Vec<String> = segments
            .iter()
            .map(|segment| unpack(&segment.body))
            .collect::<io::Result<_>>()?;
        let mut records: Vec<&RawValue> = Vec::new();
        for text in &texts {
            records.extend(serde_json::from_str::<Vec<&RawValue>>(text)?);
        }
        if records.len() < 2 {
            return Ok(None);
        }
        let (left, right) = records.split_at(records.len() / 2);
        let mut part = |records: &[&RawValue]| -> io::Result<Segment> {
            let json = records
                .iter()
                .map(|record| record.get())
                .collect::<Vec<_>>()
                .join(",");
            Ok(Segment {
                id: next_id(),
                batch: BatchUuid::new(),
                // Joined, they would be what was refused.
                fixed: true,
                records: records.len() as u64,
                from: segments
                    .iter()
                    .map(|segment| segment.from)
                    .min()
                    .unwrap_or(first.from),
                to: segments
                    .iter()
                    .map(|segment| segment.to)
                    .max()
                    .unwrap_or(first.to),
                body: self.compress(json.as_bytes())?,
                ..*first
            })
        };
        Ok(Some([part(left)?, part(right)?]))
    }
}

/// More than an upload can have: a damaged frame that claims more is refused.
const MAX_UNPACKED_BYTES: u64 = 64 << 20;

/// Smaller differences are not corrected: a network's clock is adjusted in small steps all the
/// time.
pub const CORRECT_ABOVE_MICROS: i64 = 2_000_000;

/// A segment's records as a JSON array.
fn unpack(body: &[u8]) -> io::Result<String> {
    let mut text = String::from("[");
    zstd::stream::read::Decoder::new(body)?
        .take(MAX_UNPACKED_BYTES)
        .read_to_string(&mut text)?;
    text.push(']');
    Ok(text)
}

fn shift_records<R: DeserializeOwned + Serialize>(
    body: &[u8],
    mut shift: impl FnMut(&mut R),
) -> io::Result<Vec<u8>> {
    let mut records: Vec<R> = serde_json::from_str(&unpack(body)?)?;
    let mut json = Vec::new();
    for record in &mut records {
        shift(record);
        if !json.is_empty() {
            json.push(b',');
        }
        serde_json::to_writer(&mut json, record)?;
    }
    Ok(json)
}

/// In the agent's own records, every field with a time is named `at`, `from`, `to` or `...At`.
fn shift_times(value: &mut Value, by_micros: i64) {
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                let is_time = matches!(name.as_str(), "at" | "from" | "to") || name.ends_with("At");
                match field
                    .as_str()
                    .and_then(|text| text.parse::<Timestamp>().ok())
                {
                    Some(time) if is_time => {
                        *field = Value::String(time.plus_micros(by_micros).to_string())
                    }
                    _ => shift_times(field, by_micros),
                }
            }
        }
        Value::Array(items) => items
            .iter_mut()
            .for_each(|item| shift_times(item, by_micros)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hub_protocol::ble::{Advertisement, BleEventUpload, WindowedBleUpload};

    const SECOND: i64 = 1_000_000;

    fn event(at_secs: i64) -> BleEvent {
        BleEvent {
            event_uuid: None,
            observed_at: Timestamp::from_micros(at_secs * SECOND),
            traceparent: None,
            payload: Advertisement {
                address: "AA:BB:CC:DD:EE:FF".into(),
                rssi: Some(-60),
                ..Advertisement::default()
            },
        }
    }

    fn segment(id: i64, times: &[i64], frames: &mut Frames) -> Segment {
        let mut gathering = Gathering::default();
        for &secs in times {
            let event = event(secs);
            gathering
                .push(&event, event.observed_at, event.observed_at, 0)
                .unwrap();
        }
        gathering
            .close(id, Kind::BleEvents, Uuid::nil(), frames)
            .unwrap()
    }

    fn decode<T: DeserializeOwned>(body: &[u8]) -> T {
        serde_json::from_slice(&zstd::stream::decode_all(body).unwrap()).unwrap()
    }

    #[test]
    fn concatenated_frames_are_one_upload() {
        let mut frames = Frames::new().unwrap();
        let segments = [
            segment(1, &[1, 2], &mut frames),
            segment(2, &[3], &mut frames),
        ];
        let upload: BleEventUpload = decode(&frames.upload(&segments).unwrap());
        assert_eq!(upload.batch_uuid, segments[0].batch);
        assert_eq!(upload.events, [event(1), event(2), event(3)]);
    }

    #[test]
    fn an_upload_of_windows_spans_all_its_segments() {
        let mut frames = Frames::new().unwrap();
        let device = BleDeviceWindow {
            count: 3,
            rssi_min: -70,
            rssi_max: -60,
            rssi_mean: -65.5,
            first_seen_at: Timestamp::from_micros(SECOND),
            last_seen_at: Timestamp::from_micros(2 * SECOND),
            payload: event(0).payload,
        };
        let segments = [(0, 10), (10, 20)].map(|(from, to)| {
            let mut gathering = Gathering::default();
            let time = |secs: i64| Timestamp::from_micros(secs * SECOND);
            gathering.push(&device, time(from), time(to), 0).unwrap();
            gathering
                .close(from, Kind::BleWindows, Uuid::nil(), &mut frames)
                .unwrap()
        });
        let upload: WindowedBleUpload = decode(&frames.upload(&segments).unwrap());
        assert_eq!(
            (upload.window_start.as_secs(), upload.window_end.as_secs()),
            (0, 20)
        );
        assert_eq!(upload.devices, [device.clone(), device]);
    }

    #[test]
    fn a_wrong_clock_is_corrected_in_every_record() {
        let mut frames = Frames::new().unwrap();
        let mut moved = segment(1, &[5, 6], &mut frames);
        frames.shift(&mut moved, 100 * SECOND).unwrap();
        let upload: BleEventUpload = decode(&frames.upload(&[moved.clone()]).unwrap());
        assert_eq!(upload.events, [event(105), event(106)]);
        assert_eq!(
            (
                moved.from.as_secs(),
                moved.to.as_secs(),
                moved.clock_offset_micros
            ),
            (105, 106, 100 * SECOND)
        );
    }

    #[test]
    fn times_in_other_records_are_found_by_name() {
        let mut record = serde_json::json!({"observedAt": "1970-01-01T00:00:01.000000Z", "message": "1970-01-01T00:00:01Z",
            "blind": [{"from": "1970-01-01T00:00:01.000000Z", "reason": "gone"}], "at": 3});
        shift_times(&mut record, SECOND);
        assert_eq!(
            record,
            serde_json::json!({"observedAt": "1970-01-01T00:00:02.000000Z", "message": "1970-01-01T00:00:01Z",
                "blind": [{"from": "1970-01-01T00:00:02.000000Z", "reason": "gone"}], "at": 3})
        );
    }

    #[test]
    fn halves_contain_every_record_once_under_new_ids() {
        let mut frames = Frames::new().unwrap();
        let segments = [
            segment(1, &[1, 2], &mut frames),
            segment(2, &[3], &mut frames),
        ];
        let mut id = 10;
        let mut next_id = || {
            id += 1;
            id
        };
        let [left, right] = frames.halve(&segments, &mut next_id).unwrap().unwrap();
        assert!(left.batch != segments[0].batch && left.batch != right.batch);
        assert_eq!((left.records, right.records), (1, 2));
        let events = |part: Segment, frames: &mut Frames| {
            decode::<BleEventUpload>(&frames.upload(&[part]).unwrap()).events
        };
        assert_eq!(events(left, &mut frames), [event(1)]);
        assert_eq!(events(right, &mut frames), [event(2), event(3)]);
        let single = [segment(1, &[1], &mut frames)];
        assert_eq!(frames.halve(&single, &mut next_id).unwrap(), None);
    }

    #[test]
    fn a_clock_that_was_set_closes_the_segment() {
        let mut gathering = Gathering::default();
        let event = event(1);
        assert!(!gathering.must_close_before(0));
        gathering
            .push(&event, event.observed_at, event.observed_at, 0)
            .unwrap();
        assert!(!gathering.must_close_before(1_000));
        assert!(gathering.must_close_before(60 * SECOND));
    }
}
