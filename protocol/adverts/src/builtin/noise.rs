//! Frames that phones, computers, earphones and trackers send to find each other. The frames
//! measure nothing, and most senders change their address every few minutes. Sources: Bluetooth
//! assigned numbers; Google, Fast Pair and Find Hub Network specifications; Apple and Google,
//! Exposure Notification; Microsoft, MS-CDP and Swift Pair; for Apple's and Samsung's frames, which
//! have no public document, published research on them.

use crate::frame::{Frame, uuid16};
use uuid::Uuid;

/// The kind of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Noise {
    AppleAirDrop,
    AppleAirPlay,
    AppleAirPods,
    AppleContinuity,
    AppleFindMy,
    AppleHandoff,
    AppleHomeKit,
    AppleHotspot,
    AppleNearbyAction,
    AppleNearbyInfo,
    AppleSiri,
    AppleWatch,
    ExposureNotification,
    GoogleFastPair,
    GoogleFindHub,
    GoogleNearby,
    MicrosoftCdp,
    MicrosoftSwiftPair,
    SamsungDevice,
    SamsungSmartTag,
    SamsungSmartThings,
    SeparatedTracker,
}

impl Noise {
    /// The kind in snake_case, such as `apple_nearby_info`.
    pub fn name(self) -> &'static str {
        match self {
            Self::AppleAirDrop => "apple_airdrop",
            Self::AppleAirPlay => "apple_airplay",
            Self::AppleAirPods => "apple_airpods",
            Self::AppleContinuity => "apple_continuity",
            Self::AppleFindMy => "apple_find_my",
            Self::AppleHandoff => "apple_handoff",
            Self::AppleHomeKit => "apple_homekit",
            Self::AppleHotspot => "apple_hotspot",
            Self::AppleNearbyAction => "apple_nearby_action",
            Self::AppleNearbyInfo => "apple_nearby_info",
            Self::AppleSiri => "apple_siri",
            Self::AppleWatch => "apple_watch",
            Self::ExposureNotification => "exposure_notification",
            Self::GoogleFastPair => "google_fast_pair",
            Self::GoogleFindHub => "google_find_hub",
            Self::GoogleNearby => "google_nearby",
            Self::MicrosoftCdp => "microsoft_cdp",
            Self::MicrosoftSwiftPair => "microsoft_swift_pair",
            Self::SamsungDevice => "samsung_device",
            Self::SamsungSmartTag => "samsung_smart_tag",
            Self::SamsungSmartThings => "samsung_smart_things",
            Self::SeparatedTracker => "separated_tracker",
        }
    }
}

const EDDYSTONE: Uuid = uuid16(0xFEAA);

/// Services whose data is noise whatever it holds.
const SERVICES: [(Uuid, Noise); 9] = [
    (uuid16(0xFD5A), Noise::SamsungSmartTag),
    (uuid16(0xFD59), Noise::SamsungSmartTag),
    (uuid16(0xFD69), Noise::SamsungSmartThings),
    (uuid16(0xFD6F), Noise::ExposureNotification),
    (uuid16(0xFCB2), Noise::SeparatedTracker),
    (uuid16(0xFCF1), Noise::GoogleNearby),
    (uuid16(0xFE2C), Noise::GoogleFastPair),
    (uuid16(0xFE9F), Noise::GoogleNearby),
    (uuid16(0xFEF3), Noise::GoogleNearby),
];

/// The kind of a frame that is noise throughout. A frame that carries other data beside, such as an
/// iBeacon or a sensor's, is none, and so is a frame without any data.
pub fn of(frame: &Frame) -> Option<Noise> {
    let mut first = None;
    for (company, payload) in frame.manufacturer_data {
        let noise = manufacturer(*company, payload)?;
        first = first.or(Some(noise));
    }
    for (uuid, payload) in frame.service_data {
        let noise = service(*uuid, payload)?;
        first = first.or(Some(noise));
    }
    first
}

fn manufacturer(company: u16, payload: &[u8]) -> Option<Noise> {
    match company {
        0x004C => apple(payload),
        0x0006 => microsoft(payload),
        // Phones, watches and televisions; the second byte is a kind.
        0x0075 => (payload.first() == Some(&0x42)).then_some(Noise::SamsungDevice),
        _ => None,
    }
}

/// A sequence of type, length and data. An iBeacon (type 02) is no noise.
fn apple(payload: &[u8]) -> Option<Noise> {
    match payload.first()? {
        0x05 => Some(Noise::AppleAirDrop),
        0x06 | 0x11 => Some(Noise::AppleHomeKit),
        0x07 => Some(Noise::AppleAirPods),
        0x08 => Some(Noise::AppleSiri),
        0x09 | 0x0A => Some(Noise::AppleAirPlay),
        0x0B => Some(Noise::AppleWatch),
        0x0C => Some(Noise::AppleHandoff),
        0x0D | 0x0E => Some(Noise::AppleHotspot),
        0x0F => Some(Noise::AppleNearbyAction),
        0x10 => Some(Noise::AppleNearbyInfo),
        0x12 => Some(Noise::AppleFindMy),
        0x01 | 0x03 | 0x13..=0x1F => Some(Noise::AppleContinuity),
        _ => None,
    }
}

/// The first byte is the scenario.
fn microsoft(payload: &[u8]) -> Option<Noise> {
    match payload.first()? {
        0x01 => Some(Noise::MicrosoftCdp),
        0x03 => Some(Noise::MicrosoftSwiftPair),
        _ => None,
    }
}

fn service(uuid: Uuid, payload: &[u8]) -> Option<Noise> {
    if uuid == EDDYSTONE {
        // Frame types beside those of Eddystone: 41 where the tracker is away from its owner.
        return matches!(payload.first()?, 0x40 | 0x41).then_some(Noise::GoogleFindHub);
    }
    SERVICES
        .iter()
        .find(|(noisy, _)| *noisy == uuid)
        .map(|(_, noise)| *noise)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_manufacturer(company: u16, payload: &[u8]) -> Option<Noise> {
        of(&Frame {
            manufacturer_data: &[(company, payload)],
            ..Frame::default()
        })
    }

    #[test]
    fn frames_of_phones_and_trackers_are_noise() {
        assert_eq!(
            of_manufacturer(0x004C, &[0x10, 0x06, 0x1A]),
            Some(Noise::AppleNearbyInfo)
        );
        assert_eq!(
            of_manufacturer(0x004C, &[0x12, 0x19, 0x00]),
            Some(Noise::AppleFindMy)
        );
        assert_eq!(
            of_manufacturer(0x004C, &[0x07, 0x19, 0x01]),
            Some(Noise::AppleAirPods)
        );
        assert_eq!(
            of_manufacturer(0x0006, &[0x01, 0x09, 0x20]),
            Some(Noise::MicrosoftCdp)
        );
        assert_eq!(
            of_manufacturer(0x0006, &[0x03, 0x00, 0x80]),
            Some(Noise::MicrosoftSwiftPair)
        );
        assert_eq!(
            of_manufacturer(0x0075, &[0x42, 0x04, 0x01]),
            Some(Noise::SamsungDevice)
        );
        let exposure = Frame {
            service_data: &[(uuid16(0xFD6F), &[0; 20])],
            ..Frame::default()
        };
        assert_eq!(of(&exposure), Some(Noise::ExposureNotification));
        let tracker = Frame {
            service_data: &[(EDDYSTONE, &[0x41, 0x0B])],
            ..Frame::default()
        };
        assert_eq!(of(&tracker).map(Noise::name), Some("google_find_hub"));
    }

    #[test]
    fn beacons_and_sensors_are_none() {
        assert_eq!(of_manufacturer(0x004C, &[0x02, 0x15, 0x00]), None);
        assert_eq!(of_manufacturer(0x004C, &[]), None);
        assert_eq!(of_manufacturer(0x0499, &[0x05]), None);
        assert_eq!(of(&Frame::default()), None);
        let url = Frame {
            service_data: &[(EDDYSTONE, &[0x10, 0x00, 0x03])],
            ..Frame::default()
        };
        assert_eq!(of(&url), None);
        let both = Frame {
            manufacturer_data: &[(0x004C, &[0x10, 0x05])],
            service_data: &[(uuid16(0xFCD2), &[0x40])],
            ..Frame::default()
        };
        assert_eq!(of(&both), None);
    }
}
