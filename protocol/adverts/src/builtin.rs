//! Decoders of formats that are published as documents and that devices of many makers use.

pub mod bthome;
pub mod eddystone;
pub mod ibeacon;
pub mod mibeacon;
pub mod noise;
pub mod ruuvi;

use crate::frame::Frame;
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
