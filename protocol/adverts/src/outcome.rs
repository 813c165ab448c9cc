//! The result of a built-in decoder for a frame, and the keys that it decrypts with.

use crate::frame::Address;
use uuid::Uuid;

/// The result of decoding a frame.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Outcome {
    /// The frame is not of the format, or of a version that the decoder does not know.
    NotMine,
    /// The frame was read. Its content may have no measurement.
    Decoded(Facts),
    /// The frame is of the format, but cut short or against its rules.
    Invalid,
    /// The frame is encrypted, and the key or the address that its nonce needs was not given.
    NeedsKey(Facts),
    /// The frame is encrypted, and not with the key that was given.
    WrongKey(Facts),
}

/// The facts in a frame beside its measurements.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Facts {
    pub identity: Option<Identity>,
    pub sequence: Option<Sequence>,
    /// The model that the payload names.
    pub model: Option<&'static str>,
    /// The frame is encrypted with the device's key, or a signature was checked with it.
    pub encrypted: bool,
}

/// An identity that the payload carries, independent of the advertiser's address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Identity {
    /// The whole address.
    Mac(Address),
    /// The last three bytes of the address.
    MacTail([u8; 3]),
    Beacon {
        uuid: Uuid,
        major: u16,
        minor: u16,
    },
    Eddystone {
        namespace: [u8; 10],
        instance: [u8; 6],
    },
}

/// A number that distinguishes frames or measurements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Sequence {
    pub value: u32,
    /// Width in bits, after which the number starts over.
    pub bits: u8,
    /// The number is under the protection of a key, so that one that goes back is a replay.
    pub authenticated: bool,
}

/// The keys that decoders decrypt with.
#[derive(Clone, Copy, Default)]
pub struct Keys<'a> {
    pub bind_key: Option<BindKey<'a>>,
}

/// A bind key, without `Debug`, so that it is never logged.
#[derive(Clone, Copy)]
pub enum BindKey<'a> {
    Full(&'a [u8; 16]),
    /// A key of MiBeacon versions 2 and 3; the format adds four fixed bytes.
    Short(&'a [u8; 12]),
}

impl<'a> Keys<'a> {
    /// Keys with a bind key of 16 bytes, or of 12 bytes for old MiBeacon; `None` for other lengths.
    pub fn with_bind_key(key: &'a [u8]) -> Option<Self> {
        let bind_key = match key.len() {
            16 => BindKey::Full(key.try_into().ok()?),
            12 => BindKey::Short(key.try_into().ok()?),
            _ => return None,
        };
        Some(Self {
            bind_key: Some(bind_key),
        })
    }
}
