//! The device catalog of a tenant, compiled: the model and the registered device that sent a frame,
//! and the content of the frame. The service compiles it from its database and a hub from its scan
//! configuration, so that both read a frame with the same result.

mod advertisers;
mod instances;
mod models;
mod scan_config;

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

pub use advertisers::{Advertisers, Before};
pub use instances::{Calibration, Instance, beacon_of};
pub use models::{Candidate, Model, Models, Protocol, Reader};

use crate::frame::{Address, Frame};
use crate::measurement::{Measurement, Value};
use crate::outcome::{Facts, Identity, Keys, Outcome};
use instances::Instances;

/// A compiled catalog.
#[derive(Debug, Default)]
pub struct Catalog {
    models: Arc<Models>,
    instances: Instances,
}

/// How far a frame could be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// No model fits.
    Unmatched,
    /// The model is known. Nothing reads the frame: there is no protocol, no key, or the device
    /// sends frames of other formats as well.
    Matched,
    /// The frame was read. Its content may have no measurement.
    Decoded,
    /// The frame is cut short or against the rules of its format, or the key is not the device's.
    Failed,
}

/// The result of decrypting a frame with the device's bind key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyUse {
    /// The key reads it.
    Verified,
    /// The key does not.
    Wrong,
    /// There is no key.
    Missing,
}

/// The result of reading a frame.
#[derive(Debug, Clone, Copy)]
pub struct Read<'c> {
    pub status: Status,
    /// The model of the device, else the one that is recognised.
    pub model: Option<&'c Model>,
    /// The identifier that the frame fits best, if it is one of the model.
    pub identifier: Option<Candidate>,
    pub instance: Option<&'c Instance>,
    pub protocol: Option<&'c Protocol>,
    pub facts: Facts,
    /// The use of the bind key for an encrypted frame.
    pub key: Option<KeyUse>,
    /// Why the status is `Failed`.
    pub error: Option<&'static str>,
    /// The address that the payload names, where it is not that of the advertiser.
    pub payload_address: Option<Address>,
}

/// The identity of a frame: equal for two receptions of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Observation {
    pub hash: u64,
    /// The frame has a number that distinguishes it from others with the same payload.
    pub has_sequence: bool,
}

impl Catalog {
    pub fn new(models: Arc<Models>, instances: Vec<Instance>) -> Catalog {
        Catalog {
            models,
            instances: Instances::new(instances),
        }
    }

    /// A catalog with the same models and other devices: `changed` replace those of the same ids,
    /// `removed` go.
    pub fn with(&self, changed: Vec<Instance>, removed: &[i64]) -> Catalog {
        Catalog {
            models: self.models.clone(),
            instances: self.instances.with(changed, removed),
        }
    }

    pub fn models(&self) -> &Models {
        &self.models
    }

    pub fn instance(&self, device_instance_id: i64) -> Option<&Instance> {
        self.instances.get(device_instance_id)
    }

    /// Whether there is no model, so that nothing is recognised.
    pub fn is_empty(&self) -> bool {
        self.models.is_empty()
    }

    /// Recognises and reads a frame. Its measurements are added to `out`. A device is found by the
    /// identity in its payload, else by its identity resolving key, else by its address.
    pub fn read<'c>(&'c self, frame: &Frame<'_>, out: &mut Vec<Measurement>) -> Read<'c> {
        let start = out.len();
        let recognised = self.models.recognise(frame);
        let found = self
            .instances
            .by_beacon(frame)
            .or_else(|| self.instances.by_sender(frame));
        let mut read = self.read_as(found, recognised, frame, out);
        if let Some(Identity::Mac(mac)) = read.facts.identity
            && frame.address != Some(mac)
        {
            read.payload_address = Some(mac);
        }
        if let Some(Identity::Mac(mac)) = read.facts.identity
            && let Some(named) = self.instances.by_address(mac)
            && found.is_none_or(|found| found.device_instance_id != named.device_instance_id)
        {
            out.truncate(start);
            let payload_address = read.payload_address;
            read = self.read_as(Some(named), recognised, frame, out);
            read.payload_address = payload_address;
        }
        if read.status == Status::Decoded
            && frame.manufacturer_data.len() + frame.service_data.len() > 1
        {
            self.read_rest(&read, frame, start, out);
        }
        read
    }

    /// Reads the payloads of a frame that the protocol of its model leaves, as those of other
    /// models that the frame fits: a sensor may send the frame of a beacon beside its own. Of two
    /// values of one quantity, the more exact one stays.
    fn read_rest(
        &self,
        read: &Read<'_>,
        frame: &Frame<'_>,
        start: usize,
        out: &mut Vec<Measurement>,
    ) {
        let Some(own) = read.protocol.and_then(Protocol::decoder) else {
            return;
        };
        let mut done = own.payloads(frame);
        for candidate in self.models.candidates(frame) {
            let model = self.models.model(candidate.device_uuid);
            let protocol = model.and_then(|model| self.models.protocol(model.device_protocol_id?));
            let Some(decoder) = protocol.and_then(Protocol::decoder) else {
                continue;
            };
            let payloads = decoder.payloads(frame).without(done);
            if payloads.is_empty() {
                continue;
            }
            let (manufacturer_data, service_data) = frame.rest(done);
            let rest = Frame {
                manufacturer_data: &manufacturer_data,
                service_data: &service_data,
                ..*frame
            };
            let mut more = Vec::new();
            if let Outcome::Decoded(_) = decoder.decode(&rest, Keys::default(), &mut more) {
                done = done.with(payloads);
                join(out, start, more);
            }
        }
    }

    fn read_as<'c>(
        &'c self,
        instance: Option<&'c Instance>,
        recognised: Option<Candidate>,
        frame: &Frame<'_>,
        out: &mut Vec<Measurement>,
    ) -> Read<'c> {
        let own = instance.and_then(|instance| self.models.model(instance.device_uuid));
        let model =
            own.or_else(|| recognised.and_then(|found| self.models.model(found.device_uuid)));
        let mut read = Read {
            status: Status::Unmatched,
            model,
            identifier: None,
            instance,
            protocol: None,
            facts: Facts::default(),
            key: None,
            error: None,
            payload_address: None,
        };
        let Some(model) = model else { return read };
        read.status = Status::Matched;
        read.identifier = recognised.filter(|found| found.device_uuid == model.device_uuid);
        let protocol_id = instance
            .and_then(|instance| instance.device_protocol_id)
            .or(model.device_protocol_id);
        read.protocol = protocol_id.and_then(|id| self.models.protocol(id));
        let Some(Protocol {
            reader: Reader::Decoder(decoder),
            ..
        }) = read.protocol
        else {
            return read;
        };
        let keys = instance
            .and_then(|instance| Keys::with_bind_key(instance.bind_key.as_deref()?))
            .unwrap_or_default();
        let start = out.len();
        match decoder.decode(frame, keys, out) {
            Outcome::NotMine => {}
            Outcome::Decoded(facts) => {
                read.status = Status::Decoded;
                read.facts = facts;
                read.key = (facts.encrypted && keys.bind_key.is_some()).then_some(KeyUse::Verified);
                if let Some(instance) = instance {
                    calibrate(
                        &instance.calibration,
                        out.get_mut(start..).unwrap_or_default(),
                    );
                }
            }
            Outcome::Invalid => {
                read.status = Status::Failed;
                read.error = Some("the payload is cut short, or against the rules of its format");
            }
            Outcome::NeedsKey(facts) => {
                read.facts = facts;
                read.key = Some(KeyUse::Missing);
            }
            Outcome::WrongKey(facts) => {
                read.status = Status::Failed;
                read.facts = facts;
                read.key = Some(KeyUse::Wrong);
                read.error = Some("the bind key of the device does not fit it");
            }
        }
        read
    }
}

/// Adds values of another payload of the frame. `start` is where the frame's values begin.
fn join(out: &mut Vec<Measurement>, start: usize, more: Vec<Measurement>) {
    for measurement in more {
        let mut known = out.get_mut(start..).unwrap_or_default().iter_mut();
        let same = |known: &&mut Measurement| {
            known.quantity.name == measurement.quantity.name && known.index == measurement.index
        };
        match known.find(same) {
            Some(known) if decimals(&measurement.value) > decimals(&known.value) => {
                *known = measurement;
            }
            Some(_) => {}
            None => out.push(measurement),
        }
    }
}

/// How many decimals a number needs; none for what is no number.
fn decimals(value: &Value) -> usize {
    let Value::Number(number) = value else {
        return 0;
    };
    let text = number.to_string();
    text.split_once('.')
        .map_or(0, |(_, decimals)| decimals.len())
}

/// Corrects measured values.
pub fn calibrate(calibration: &BTreeMap<String, Calibration>, measurements: &mut [Measurement]) {
    if calibration.is_empty() {
        return;
    }
    for measurement in measurements {
        if let Some(calibration) = calibration.get(measurement.quantity.name)
            && let Value::Number(value) = &mut measurement.value
        {
            // Rounding removes the remainders of binary fractions, which no sensor resolves.
            let corrected = (*value * calibration.scale + calibration.offset) * 1e9;
            *value = corrected.round() / 1e9;
        }
    }
}

impl Read<'_> {
    /// Why nothing was read of a frame that a model fits; `None` if it was read, and where no model
    /// fits.
    pub fn unread_reason(&self) -> Option<&'static str> {
        if matches!(self.status, Status::Decoded | Status::Unmatched) {
            return None;
        }
        Some(match (self.error, self.key, self.protocol) {
            (Some(error), _, _) => error,
            (None, Some(KeyUse::Missing), _) => {
                "it is encrypted; register the device with its bind key"
            }
            (None, _, None) => "the model has no protocol",
            (None, _, Some(_)) => "the protocol of the model has no format for this frame",
        })
    }

    /// The identity of the frame: its sender, and its sequence number with what was read, or else
    /// its payload. Devices send frames of several kinds under one number.
    pub fn observation(&self, frame: &Frame<'_>, measurements: &[Measurement]) -> Observation {
        let mut hasher = DefaultHasher::new();
        match (self.instance, self.facts.identity) {
            (Some(instance), _) => instance.device_instance_id.hash(&mut hasher),
            (None, Some(identity)) => identity.hash(&mut hasher),
            (None, None) => frame.address.hash(&mut hasher),
        }
        match self.facts.sequence {
            Some(sequence) if self.status == Status::Decoded => {
                (sequence.value, sequence.bits).hash(&mut hasher);
                for measurement in measurements {
                    (measurement.quantity.name, measurement.index).hash(&mut hasher);
                    match &measurement.value {
                        Value::Number(number) => number.to_bits().hash(&mut hasher),
                        Value::Text(text) => text.hash(&mut hasher),
                        Value::Bool(truth) => truth.hash(&mut hasher),
                    }
                }
            }
            _ => {
                frame.manufacturer_data.hash(&mut hasher);
                frame.service_data.hash(&mut hasher);
                frame.name.hash(&mut hasher);
            }
        }
        Observation {
            hash: hasher.finish(),
            has_sequence: self.facts.sequence.is_some(),
        }
    }
}
