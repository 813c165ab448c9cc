//! The library's reading of a frame.

use std::fmt;
use std::sync::LazyLock;

use super::{Model, library};
use crate::frame::Frame;
use crate::matching::Recogniser;
use crate::measurement::Measurement;
use crate::outcome::{Keys, Outcome};

/// A frame of a device that the library knows.
#[derive(Debug, Clone)]
pub struct Reading {
    pub model: &'static Model,
    /// Empty if the frame is encrypted, or has nothing to measure.
    pub measurements: Vec<Measurement>,
}

static RECOGNISER: LazyLock<Recogniser> = LazyLock::new(|| {
    let models = library().iter().enumerate();
    Recogniser::new(
        models
            .flat_map(|(at, model)| model.identifiers.iter().map(move |one| (at, one.clone())))
            .collect(),
    )
});

/// Recognises the models of the library, by their place in it.
pub fn recogniser() -> &'static Recogniser {
    &RECOGNISER
}

/// The reading as text, such as `RuuviTag: temperature 23.4 °C, humidity 53 %`.
impl fmt::Display for Reading {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let values: Vec<String> = self.measurements.iter().map(ToString::to_string).collect();
        write!(f, "{}: {}", self.model.name, values.join(", "))
    }
}

/// Recognises and reads a frame without any key. Returns `None` if no model fits, or if the frame
/// is not one of the model's device.
pub fn read(frame: &Frame<'_>) -> Option<Reading> {
    let recognised = recogniser().recognise(frame)?;
    let model = library().get(recognised.model)?;
    let mut measurements = Vec::new();
    match model
        .protocol
        .decode(frame, Keys::default(), &mut measurements)
    {
        Outcome::NotMine | Outcome::Invalid => None,
        Outcome::Decoded(_) | Outcome::NeedsKey(_) | Outcome::WrongKey(_) => Some(Reading {
            model,
            measurements,
        }),
    }
}
