//! Decoders of formats that are published as documents and that devices of many makers use.

pub mod bthome;
pub mod eddystone;
pub mod ibeacon;
pub mod mibeacon;
pub mod noise;
pub mod ruuvi;

use uuid::Uuid;

use crate::frame::{Frame, Payloads, uuid16};
use crate::measurement::Measurement;
use crate::outcome::{Keys, Outcome};

/// A built-in decoder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Builtin {
    Ruuvi,
    BtHome,
    MiBeacon,
    Eddystone,
    IBeacon,
}

impl Builtin {
    pub const ALL: [Self; 5] = [
        Self::Ruuvi,
        Self::BtHome,
        Self::MiBeacon,
        Self::Eddystone,
        Self::IBeacon,
    ];

    /// The decoder of a name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|decoder| decoder.name() == name)
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Ruuvi => "ruuvi",
            Self::BtHome => "bthome",
            Self::MiBeacon => "mibeacon",
            Self::Eddystone => "eddystone",
            Self::IBeacon => "ibeacon",
        }
    }

    /// The payloads of a frame that are of the format's company or services.
    pub fn payloads(self, frame: &Frame<'_>) -> Payloads {
        let (companies, services): (&[u16], &[Uuid]) = match self {
            Self::Ruuvi => (&[0x0499], &[uuid16(0xFEAA)]),
            Self::BtHome => (&[], &[uuid16(0xFCD2), uuid16(0x181C), uuid16(0x181E)]),
            Self::MiBeacon => (&[], &[uuid16(0xFE95)]),
            Self::Eddystone => (&[], &[uuid16(0xFEAA)]),
            Self::IBeacon => (&[0x004C], &[]),
        };
        frame.payloads_of(companies, services)
    }

    /// Reads a frame. Its measurements are added to `out`, without values that are outside the
    /// range of their quantity; nothing is added where the frame could not be read.
    pub fn decode(self, frame: &Frame, keys: &Keys, out: &mut Vec<Measurement>) -> Outcome {
        let before = out.len();
        let outcome = match self {
            Self::Ruuvi => ruuvi::decode(frame, keys, out),
            Self::BtHome => bthome::decode(frame, keys, out),
            Self::MiBeacon => mibeacon::decode(frame, keys, out),
            Self::Eddystone => eddystone::decode(frame, keys, out),
            Self::IBeacon => ibeacon::decode(frame, keys, out),
        };
        let mut place = 0;
        out.retain(|measurement| {
            place += 1;
            place <= before || measurement.quantity.allows(&measurement.value)
        });
        outcome
    }
}
