//! The reading of an advertisement for `hub-agent scan`: the name of its device and its
//! measurements.

use hub_adverts::Measurement;
use hub_adverts::advertisement::frame_of;
use hub_adverts::library::read;
use hub_protocol::ble::Advertisement;

use crate::ble::selection::{KnownDevice, Selection};

#[derive(Debug, Default)]
pub struct Reading {
    /// A device of the hub's owner.
    pub known: Option<KnownDevice>,
    /// The key of the library's model, such as `ruuvi/ruuvitag`.
    pub model: Option<&'static str>,
    /// The name of the device, of its model, or of the library's model.
    name: Option<String>,
    pub measurements: Vec<Measurement>,
}

/// Reads with the models and devices of the hub's owner, else with those of the library.
pub fn reading_of(advertisement: &Advertisement, selection: Option<&Selection>) -> Reading {
    let mut measurements = Vec::new();
    if let Some(known) =
        selection.and_then(|selection| selection.known(advertisement, &mut measurements))
    {
        return Reading {
            name: Some(known.device_name.clone()),
            known: Some(known),
            model: None,
            measurements,
        };
    }
    match frame_of(advertisement).with(read) {
        Some(found) => Reading {
            known: None,
            model: Some(found.model.key.as_str()),
            name: Some(found.model.name.clone()),
            measurements: found.measurements,
        },
        None => Reading::default(),
    }
}

impl Reading {
    /// The reading as one line of text, such as `RuuviTag: temperature 23.4 °C, humidity 53 %`.
    pub fn described(&self) -> Option<String> {
        let values: Vec<String> = self.measurements.iter().map(ToString::to_string).collect();
        Some(printable(&format!(
            "{}: {}",
            self.name.as_deref()?,
            values.join(", ")
        )))
    }
}

/// Replaces control characters, which a terminal would execute, and those that change the direction
/// of writing.
pub fn printable(text: &str) -> String {
    text.chars()
        .map(|char| match char {
            '\u{200b}'..='\u{200f}'
            | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{feff}' => '\u{fffd}',
            char if char.is_control() => '\u{fffd}',
            char => char,
        })
        .collect()
}
