//! Plays a recorded trace as if its advertisements were received now. The whole file is checked
//! before the first advertisement is delivered, and is never held in memory.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek};
use std::path::{Path, PathBuf};
use std::time::Duration;

use hub_protocol::ble::{Advertisement, Payload};
use hub_protocol::hub::Adapter;
use serde::Deserialize;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::reports::Pipeline;
use super::types::{RadioError, Replay, is_address, now};

/// The adapter of a trace.
const ADAPTER_ADDRESS: &str = "00:00:00:00:00:00";
const ZSTD_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
/// The most advertisements that a real scan delivers at once.
const BATCH: usize = 500;
/// Prevents a repeated trace without length from spinning.
const BETWEEN_ROUNDS: Duration = Duration::from_millis(100);
/// Gaps in a trace must not keep a window open.
const LONGEST_SLEEP: Duration = Duration::from_secs(1);

pub fn start(
    replay: Replay,
    pipeline: Pipeline,
    adapters: watch::Sender<Vec<Adapter>>,
    cancel: CancellationToken,
) -> Result<(), RadioError> {
    if !(replay.speed.is_finite() && replay.speed >= 0.0) {
        return Err(RadioError::ReplaySpeed(replay.speed));
    }
    let length_ms = check(&replay.file)?;
    adapters.send_replace(vec![Adapter {
        address: ADAPTER_ADDRESS.into(),
        name: "replay".into(),
        alias: replay
            .file
            .file_name()
            .map(|name| name.to_string_lossy().into_owned()),
        powered: true,
        discovering: Some(true),
        address_type: None,
        manufacturer: None,
        modalias: None,
    }]);
    pipeline.health().listening(ADAPTER_ADDRESS, now());
    tokio::spawn(play(replay, length_ms, pipeline, adapters, cancel));
    Ok(())
}

async fn play(
    replay: Replay,
    length_ms: u64,
    mut pipeline: Pipeline,
    adapters: watch::Sender<Vec<Adapter>>,
    cancel: CancellationToken,
) {
    let played = async {
        loop {
            play_once(&replay, length_ms, &mut pipeline).await?;
            if !replay.repeat {
                return Ok::<_, RadioError>(());
            }
            tokio::time::sleep(BETWEEN_ROUNDS).await;
        }
    };
    let outcome = cancel.run_until_cancelled(played).await;
    // The last advertisements are delivered before the failure is noted.
    pipeline.finish(now());
    if let Some(Err(error)) = outcome {
        // The trace was valid when it was checked: the file has changed since.
        tracing::error!(%error, "the replay stopped");
        pipeline
            .health()
            .blind(ADAPTER_ADDRESS, now(), &error.to_string());
    }
    adapters.send_replace(Vec::new());
}

async fn play_once(
    replay: &Replay,
    length_ms: u64,
    pipeline: &mut Pipeline,
) -> Result<(), RadioError> {
    let started = Instant::now();
    let is_unpaced = replay.speed == 0.0;
    // The trace of an unpaced replay has just ended; any other begins now.
    let epoch = if is_unpaced {
        now().plus_micros(-micros(length_ms as f64))
    } else {
        now()
    };
    let pace = if is_unpaced { 1.0 } else { replay.speed };
    let mut waiting = 0;
    for line in Lines::open(&replay.file)? {
        let line = line?;
        let offset = micros(line.t_ms as f64 / pace);
        if !is_unpaced {
            let due = started + Duration::from_micros(offset.unsigned_abs());
            while due > Instant::now() {
                pipeline.flush(now());
                waiting = 0;
                tokio::time::sleep_until(due.min(Instant::now() + LONGEST_SLEEP)).await;
            }
        }
        pipeline.heard(epoch.plus_micros(offset), &line.advertisement);
        waiting += 1;
        if waiting == BATCH {
            pipeline.flush(now());
            waiting = 0;
            if is_unpaced {
                pipeline.room().await;
            } else {
                // A replay that is behind never sleeps, and must still be stoppable.
                tokio::task::yield_now().await;
            }
        }
    }
    pipeline.flush(now());
    if is_unpaced {
        pipeline.room().await;
    }
    Ok(())
}

fn micros(ms: f64) -> i64 {
    // Saturates, like every cast from a float.
    (ms * 1000.0) as i64
}

/// Reads the whole file, for its mistakes and its length in milliseconds.
fn check(file: &Path) -> Result<u64, RadioError> {
    let mut last = None;
    for line in Lines::open(file)? {
        last = Some(line?.t_ms);
    }
    last.ok_or_else(|| RadioError::TraceEmpty {
        file: file.to_owned(),
    })
}

struct Line {
    t_ms: u64,
    advertisement: Advertisement,
}

struct Lines {
    file: PathBuf,
    reader: Box<dyn BufRead + Send>,
    text: String,
    number: usize,
    t_ms: u64,
}

impl Lines {
    fn open(file: &Path) -> Result<Self, RadioError> {
        let reader = open(file).map_err(|error| RadioError::TraceUnreadable {
            file: file.to_owned(),
            error,
        })?;
        Ok(Self {
            file: file.to_owned(),
            reader,
            text: String::new(),
            number: 0,
            t_ms: 0,
        })
    }

    fn read(&mut self) -> Result<Option<Line>, String> {
        loop {
            self.text.clear();
            self.number += 1;
            if self
                .reader
                .read_line(&mut self.text)
                .map_err(|error| error.to_string())?
                == 0
            {
                return Ok(None);
            }
            if !self.text.trim().is_empty() {
                break;
            }
        }
        let line = parse(&self.text)?;
        if line.t_ms < self.t_ms {
            return Err(format!(
                "t_ms is {}, but the line before it has {}",
                line.t_ms, self.t_ms
            ));
        }
        self.t_ms = line.t_ms;
        Ok(Some(line))
    }
}

impl Iterator for Lines {
    type Item = Result<Line, RadioError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.read()
            .map_err(|message| RadioError::TraceLine {
                file: self.file.clone(),
                line: self.number,
                message,
            })
            .transpose()
    }
}

fn open(file: &Path) -> io::Result<Box<dyn BufRead + Send>> {
    let mut file = File::open(file)?;
    let mut magic = Vec::with_capacity(ZSTD_MAGIC.len());
    Read::by_ref(&mut file)
        .take(ZSTD_MAGIC.len() as u64)
        .read_to_end(&mut magic)?;
    file.rewind()?;
    Ok(if magic == ZSTD_MAGIC {
        Box::new(BufReader::new(zstd::stream::read::Decoder::new(file)?))
    } else {
        Box::new(BufReader::new(file))
    })
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Recorded {
    #[serde(rename = "t_ms")]
    t_ms: u64,
    address: String,
    address_type: Option<String>,
    rssi: Option<i16>,
    name: Option<String>,
    tx_power: Option<i16>,
    #[serde(default)]
    manufacturer_data: BTreeMap<String, String>,
    #[serde(default)]
    service_data: BTreeMap<String, String>,
    #[serde(default)]
    service_uuids: Vec<String>,
}

fn parse(text: &str) -> Result<Line, String> {
    let recorded: Recorded = serde_json::from_str(text).map_err(|error| {
        // serde_json also counts lines, and would always report 1.
        let message = error.to_string();
        message
            .split(" at line ")
            .next()
            .unwrap_or_default()
            .to_owned()
    })?;
    let address = recorded.address.to_ascii_uppercase();
    if !is_address(&address) {
        return Err(format!(
            "address {:?} is not of the form AA:BB:CC:DD:EE:FF",
            recorded.address
        ));
    }
    if let Some(kind) = recorded.address_type.as_deref()
        && !matches!(kind, "public" | "random")
    {
        return Err(format!(
            "addressType must be \"public\" or \"random\", not {kind:?}"
        ));
    }
    if let Some(wrong) = recorded
        .manufacturer_data
        .keys()
        .find(|key| !is_short_id(key))
    {
        return Err(format!(
            "manufacturerData key {wrong:?} is not a company identifier of 4 lower-case hex digits"
        ));
    }
    if let Some(wrong) = recorded
        .service_data
        .keys()
        .chain(&recorded.service_uuids)
        .find(|key| !is_uuid(key))
    {
        return Err(format!(
            "{wrong:?} is neither 4 lower-case hex digits nor a UUID in full"
        ));
    }
    Ok(Line {
        t_ms: recorded.t_ms,
        advertisement: Advertisement {
            adapter_address: Some(ADAPTER_ADDRESS.into()),
            address,
            address_type: recorded.address_type,
            rssi: recorded.rssi,
            tx_power: recorded.tx_power,
            name: recorded.name,
            manufacturer_data: payloads("manufacturerData", recorded.manufacturer_data)?,
            service_data: payloads("serviceData", recorded.service_data)?,
            service_uuids: recorded.service_uuids,
            device_instance_id: None,
        },
    })
}

fn payloads(
    field: &str,
    recorded: BTreeMap<String, String>,
) -> Result<BTreeMap<String, Payload>, String> {
    recorded
        .into_iter()
        .map(|(key, digits)| match hex::decode(&digits) {
            Ok(bytes) => Ok((key, Payload(bytes))),
            Err(error) => Err(format!("{field}.{key} is not hex: {error}")),
        })
        .collect()
}

fn is_short_id(text: &str) -> bool {
    text.len() == 4
        && text
            .bytes()
            .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

fn is_uuid(text: &str) -> bool {
    is_short_id(text)
        || (text.len() == 36
            && !text.bytes().any(|byte| byte.is_ascii_uppercase())
            && uuid::Uuid::try_parse(text).is_ok())
}

#[cfg(test)]
mod tests {
    use super::super::types::{Heard, RadioConfig, Source};
    use super::super::{Radio, start};
    use super::*;
    use hub_protocol::ble::BleEvent;
    use std::io::Write;

    const TRACE: &str = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../tests/data/ble/trace.jsonl.zst"
    );

    fn trace(lines: &str) -> tempfile::NamedTempFile {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(lines.as_bytes()).unwrap();
        file
    }

    fn play(file: &Path, speed: f64, config: RadioConfig) -> Result<Radio, RadioError> {
        let replay = Replay {
            file: file.to_owned(),
            speed,
            repeat: false,
        };
        start(Source::Replay(replay), config, CancellationToken::new())
    }

    async fn all(mut radio: Radio) -> Vec<BleEvent> {
        let mut all = Vec::new();
        while let Some(items) = radio.heard.next().await {
            for item in items {
                let Heard::Events(events) = item else {
                    panic!("no window was requested")
                };
                all.extend(events.parsed());
            }
        }
        assert_eq!(radio.heard.dropped(), 0);
        all
    }

    #[tokio::test]
    async fn every_line_of_the_recorded_trace_is_delivered() {
        let everything = RadioConfig {
            dedup_window: Duration::ZERO,
            ..RadioConfig::default()
        };
        let before = now();
        let radio = play(Path::new(TRACE), 0.0, everything).unwrap();
        assert_eq!(radio.adapters.borrow()[0].name, "replay");
        let health = radio.health.clone();
        let heard = all(radio).await;
        assert_eq!(heard.len(), 17_762);
        assert_eq!(health.advertisements(), 17_762);
        let times: Vec<_> = heard.iter().map(|event| event.observed_at).collect();
        assert!(
            times.is_sorted()
                && times[0] < before
                && times[17_761] >= before
                && times[17_761] <= now()
        );

        let deduplicated = all(play(Path::new(TRACE), 0.0, RadioConfig::default()).unwrap()).await;
        assert!(
            (1_000..heard.len()).contains(&deduplicated.len()),
            "{}",
            deduplicated.len()
        );
    }

    #[tokio::test]
    async fn a_line_is_delivered_at_its_time_divided_by_the_speed() {
        let file = trace(concat!(
            r#"{"t_ms":0,"address":"aa:bb:cc:dd:ee:ff","rssi":-40}"#,
            "\n\n",
            r#"{"t_ms":100,"address":"AA:BB:CC:DD:EE:FF","addressType":"random","rssi":-41,"name":"Té","txPower":-4,"#,
            r#""manufacturerData":{"0499":"00ff"},"serviceData":{"fcd2":""},"serviceUuids":["180d"]}"#,
            "\n"
        ));
        let heard = all(play(file.path(), 2.0, RadioConfig::default()).unwrap()).await;
        let [first, second] = &heard[..] else {
            panic!("two events, not {heard:?}")
        };
        assert_eq!(
            second.observed_at.as_micros() - first.observed_at.as_micros(),
            50_000
        );
        assert_eq!(first.payload.address, "AA:BB:CC:DD:EE:FF");
        assert_eq!(
            serde_json::to_value(&second.payload).unwrap(),
            serde_json::json!({
                "adapterAddress": "00:00:00:00:00:00", "address": "AA:BB:CC:DD:EE:FF", "addressType": "random",
                "rssi": -41, "txPower": -4, "name": "Té", "manufacturerData": {"0499": "AP8="},
                "serviceData": {"fcd2": ""}, "serviceUuids": ["180d"],
            })
        );
    }

    #[tokio::test]
    async fn a_malformed_line_is_refused_with_its_number_before_anything_is_delivered() {
        let good = r#"{"t_ms":5,"address":"AA:BB:CC:DD:EE:FF","rssi":-40}"#;
        for (bad, expected) in [
            ("{", "EOF"),
            (
                r#"{"t_ms":9,"address":"AA:BB:CC:DD:EE"}"#,
                "address \"AA:BB:CC:DD:EE\"",
            ),
            (
                r#"{"t_ms":4,"address":"AA:BB:CC:DD:EE:FF"}"#,
                "the line before it has 5",
            ),
            (
                r#"{"t_ms":9,"address":"AA:BB:CC:DD:EE:FF","rsi":1}"#,
                "unknown field `rsi`",
            ),
            (
                r#"{"t_ms":9,"address":"AA:BB:CC:DD:EE:FF","rssi":99999}"#,
                "99999",
            ),
            (
                r#"{"t_ms":9,"address":"AA:BB:CC:DD:EE:FF","addressType":"le"}"#,
                "addressType",
            ),
            (
                r#"{"t_ms":9,"address":"AA:BB:CC:DD:EE:FF","manufacturerData":{"4c":""}}"#,
                "\"4c\"",
            ),
            (
                r#"{"t_ms":9,"address":"AA:BB:CC:DD:EE:FF","serviceData":{"fcd2":"abc"}}"#,
                "serviceData.fcd2",
            ),
            (
                r#"{"t_ms":9,"address":"AA:BB:CC:DD:EE:FF","serviceUuids":["180D"]}"#,
                "\"180D\"",
            ),
        ] {
            let file = trace(&format!("{good}\n\n{bad}\n"));
            match play(file.path(), 1.0, RadioConfig::default()) {
                Err(RadioError::TraceLine {
                    line: 3, message, ..
                }) => assert!(message.contains(expected), "{message}"),
                other => panic!("{bad} gave {other:?}"),
            }
        }
        assert!(matches!(
            play(trace("\n").path(), 1.0, RadioConfig::default()),
            Err(RadioError::TraceEmpty { .. })
        ));
        assert!(matches!(
            play(Path::new("/nonexistent"), 1.0, RadioConfig::default()),
            Err(RadioError::TraceUnreadable { .. })
        ));
        assert!(matches!(
            play(trace(good).path(), -1.0, RadioConfig::default()),
            Err(RadioError::ReplaySpeed(_))
        ));
    }

    #[tokio::test]
    async fn a_trace_that_fails_midway_leaves_the_hub_blind() {
        let line = r#"{"t_ms":0,"address":"AA:BB:CC:DD:EE:FF","rssi":-40}"#;
        let file = trace(line);
        let radio = play(file.path(), 1.0, RadioConfig::default()).unwrap();
        let health = radio.health.clone();
        std::fs::write(file.path(), format!("{line}\nnonsense\n")).unwrap();
        assert_eq!(all(radio).await.len(), 1);
        assert_eq!(
            health.report(now(), now())[ADAPTER_ADDRESS].state,
            hub_protocol::telemetry::ScanState::Blind
        );
    }

    #[tokio::test]
    async fn a_repeated_trace_continues_until_cancelled() {
        let file = trace(r#"{"t_ms":0,"address":"AA:BB:CC:DD:EE:FF","rssi":-40}"#);
        let cancel = CancellationToken::new();
        let replay = Replay {
            file: file.path().to_owned(),
            speed: 0.0,
            repeat: true,
        };
        let config = RadioConfig {
            dedup_window: Duration::ZERO,
            ..RadioConfig::default()
        };
        let mut radio = start(Source::Replay(replay), config, cancel.clone()).unwrap();
        let mut count = 0;
        while count < 3 {
            count += radio.heard.next().await.unwrap().len();
        }
        cancel.cancel();
        while radio.heard.next().await.is_some() {}
    }
}
