//! Frames that a script of the tenant reads: collected while events are read, run together, and put
//! into the readings as the values of other protocols are.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use hub_adverts::Measurement;
use hub_adverts::catalog::{Calibration, Read, Status, calibrate};
use hub_adverts::library::OwnedFrame;
use hub_ingest::ProcessingStatus;
use hub_protocol::TenantUuid;
use hub_scripts::{Decoded, Scripts};

use super::reading::Recognised;

/// A frame that a script has to read.
#[derive(Clone, Debug)]
pub struct Scripted {
    recognised: Recognised,
    frame: OwnedFrame,
    source: Arc<str>,
    device_protocol_id: i64,
    revision: i64,
    calibration: BTreeMap<String, Calibration>,
}

/// The result of the script.
pub struct Outcome {
    pub status: ProcessingStatus,
    pub measurements: Vec<Measurement>,
    /// Whether the script was run. If there was no time for it, the event has failed for now.
    pub is_run: bool,
    recognised: Recognised,
    error: Option<String>,
    protocol: (i64, i64),
}

impl Scripted {
    /// The frame for a script; None for one that no script reads.
    pub fn of(read: &Read<'_>, frame: &OwnedFrame) -> Option<Self> {
        let protocol = read.protocol.filter(|_| read.status == Status::Matched)?;
        Some(Self {
            recognised: Recognised::of(read)?,
            source: protocol.script()?.clone(),
            frame: frame.clone(),
            device_protocol_id: protocol.device_protocol_id,
            revision: protocol.revision,
            calibration: read
                .instance
                .map(|instance| instance.calibration.clone())
                .unwrap_or_default(),
        })
    }
}

impl Outcome {
    /// The text of the event's reading.
    pub fn reading_text(&self) -> Option<String> {
        let protocol = (self.status != ProcessingStatus::Matched).then_some(self.protocol);
        self.recognised
            .reading_text(protocol, &self.measurements, self.error.as_deref())
    }
}

/// Runs the scripts of frames of one tenant, each script on all of its frames, within a time for
/// all. The outcomes are in the order of the frames.
pub async fn run(
    scripts: &Scripts,
    tenant_uuid: TenantUuid,
    frames: Vec<Scripted>,
    within: Duration,
) -> Vec<Outcome> {
    let deadline = Instant::now() + within;
    let mut by_source: HashMap<Arc<str>, (Vec<usize>, Vec<OwnedFrame>)> = HashMap::new();
    let mut rests = Vec::with_capacity(frames.len());
    for (at, scripted) in frames.into_iter().enumerate() {
        let Scripted {
            recognised,
            frame,
            source,
            device_protocol_id,
            revision,
            calibration,
        } = scripted;
        let (places, frames) = by_source.entry(source).or_default();
        places.push(at);
        frames.push(frame);
        rests.push((recognised, (device_protocol_id, revision), calibration));
    }
    let run_one = async |(source, (places, frames)): (Arc<str>, (Vec<usize>, Vec<OwnedFrame>))| {
        let left = deadline.saturating_duration_since(Instant::now());
        let decoded = scripts.decode(tenant_uuid, &source, &frames, left).await;
        places.into_iter().zip(decoded).collect::<Vec<_>>()
    };
    let mut all: Vec<(usize, Decoded)> = join_all(by_source.into_iter().map(run_one))
        .await
        .into_iter()
        .flatten()
        .collect();
    all.sort_by_key(|(at, _)| *at);
    let mut outcomes = Vec::with_capacity(rests.len());
    for ((_, decoded), (recognised, protocol, calibration)) in all.into_iter().zip(rests) {
        let is_run = !matches!(decoded, Decoded::NotRun(_));
        let (status, mut measurements, error) = match decoded {
            Decoded::Values(measurements) => (ProcessingStatus::Decoded, measurements, None),
            Decoded::NotMine => (ProcessingStatus::Matched, Vec::new(), None),
            Decoded::Failed(problem) | Decoded::NotRun(problem) => {
                (ProcessingStatus::Failed, Vec::new(), Some(problem))
            }
        };
        calibrate(&calibration, &mut measurements);
        outcomes.push(Outcome {
            status,
            measurements,
            is_run,
            recognised,
            error,
            protocol,
        });
    }
    outcomes
}
