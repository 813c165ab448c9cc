//! Plays a recording as if its advertisements were received now. The whole file is checked before
//! the first advertisement is delivered, and is never held in memory.

use std::fs::File;
use std::path::Path;
use std::time::Duration;

use hub_protocol::hub::Adapter;
use hub_recordings::{PassedOver, Recording, RecordingError, Report};
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::reports::Pipeline;
use super::types::{RadioError, Replay, now};

/// The adapter of a recording.
const ADAPTER_ADDRESS: &str = "00:00:00:00:00:00";
/// The most advertisements that a real scan delivers at once.
const BATCH: usize = 500;
/// Prevents a repeated recording without length from spinning.
const BETWEEN_ROUNDS: Duration = Duration::from_millis(100);
/// Gaps in a recording must not keep a window open.
const LONGEST_SLEEP: Duration = Duration::from_secs(1);

/// Returns what is not played, in words, if that is not all.
pub fn start(
    replay: Replay,
    pipeline: Pipeline,
    adapters: watch::Sender<Vec<Adapter>>,
    cancel: CancellationToken,
) -> Result<Option<String>, RadioError> {
    if !(replay.speed.is_finite() && replay.speed >= 0.0) {
        return Err(RadioError::ReplaySpeed(replay.speed));
    }
    let checked = check(&replay.file)?;
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
    let notice = checked.notice(&replay.file);
    tokio::spawn(play(replay, checked.length_us, pipeline, adapters, cancel));
    Ok(notice)
}

async fn play(
    replay: Replay,
    length_us: u64,
    mut pipeline: Pipeline,
    adapters: watch::Sender<Vec<Adapter>>,
    cancel: CancellationToken,
) {
    let played = async {
        loop {
            play_once(&replay, length_us, &mut pipeline).await?;
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
        // The recording was valid when it was checked: the file has changed since.
        tracing::error!(%error, "the replay stopped");
        pipeline
            .health()
            .blind(ADAPTER_ADDRESS, now(), &error.to_string());
    }
    adapters.send_replace(Vec::new());
}

async fn play_once(
    replay: &Replay,
    length_us: u64,
    pipeline: &mut Pipeline,
) -> Result<(), RadioError> {
    let started = Instant::now();
    let is_unpaced = replay.speed == 0.0;
    // The recording of an unpaced replay has just ended; any other begins now.
    let epoch = if is_unpaced {
        now().plus_micros(-micros(length_us, 1.0))
    } else {
        now()
    };
    let pace = if is_unpaced { 1.0 } else { replay.speed };
    let mut waiting = 0;
    for report in open(&replay.file)? {
        let report = match report {
            Ok(report) => report,
            // The log line of the start has it.
            Err(error) if error.is_cut_short() => break,
            Err(error) => return Err(refused(&replay.file, error)),
        };
        let Report {
            time_us,
            mut advertisement,
            ..
        } = report;
        advertisement.adapter_address = Some(ADAPTER_ADDRESS.into());
        let offset = micros(time_us, pace);
        if !is_unpaced {
            let due = started + Duration::from_micros(offset.unsigned_abs());
            while due > Instant::now() {
                pipeline.flush(now());
                waiting = 0;
                tokio::time::sleep_until(due.min(Instant::now() + LONGEST_SLEEP)).await;
            }
        }
        pipeline.heard(epoch.plus_micros(offset), &advertisement);
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

fn micros(time_us: u64, pace: f64) -> i64 {
    // Saturates, like every cast from a float.
    (time_us as f64 / pace) as i64
}

/// What the first reading of a recording has found.
struct Checked {
    length_us: u64,
    /// Where it ends within a part.
    end: Option<RecordingError>,
    passed: PassedOver,
}

impl Checked {
    fn notice(&self, file: &Path) -> Option<String> {
        let losses = self.passed.to_string();
        let losses = (!losses.is_empty()).then(|| format!("packets passed over: {losses}"));
        let end = self
            .end
            .as_ref()
            .map(|end| format!("{end}; what is before is played"));
        let notices: Vec<String> = end.into_iter().chain(losses).collect();
        (!notices.is_empty()).then(|| format!("{}: {}", file.display(), notices.join("; ")))
    }
}

/// Reads the whole file, for its mistakes and its length.
fn check(file: &Path) -> Result<Checked, RadioError> {
    let mut recording = open(file)?;
    let (mut last_us, mut end) = (None, None);
    for report in recording.by_ref() {
        match report {
            Ok(report) => last_us = Some(report.time_us),
            Err(error) if error.is_cut_short() && last_us.is_some() => end = Some(error),
            Err(error) => return Err(refused(file, error)),
        }
    }
    let length_us = last_us.ok_or_else(|| RadioError::RecordingEmpty {
        file: file.to_owned(),
    })?;
    Ok(Checked {
        length_us,
        end,
        passed: recording.passed_over(),
    })
}

fn open(file: &Path) -> Result<Recording, RadioError> {
    let reader = File::open(file).map_err(|error| RadioError::RecordingUnreadable {
        file: file.to_owned(),
        error,
    })?;
    Recording::open(reader).map_err(|error| refused(file, error))
}

fn refused(file: &Path, error: RecordingError) -> RadioError {
    RadioError::RecordingRefused {
        file: file.to_owned(),
        error,
    }
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
                Err(RadioError::RecordingRefused {
                    error: RecordingError::Line { line: 3, fault },
                    ..
                }) => assert!(fault.contains(expected), "{fault}"),
                other => panic!("{bad} gave {other:?}"),
            }
        }
        assert!(matches!(
            play(trace("\n").path(), 1.0, RadioConfig::default()),
            Err(RadioError::RecordingEmpty { .. })
        ));
        assert!(matches!(
            play(Path::new("/nonexistent"), 1.0, RadioConfig::default()),
            Err(RadioError::RecordingUnreadable { .. })
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
