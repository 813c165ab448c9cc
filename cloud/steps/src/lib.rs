//! The language of pipelines: steps that choose and shape events, expressions, templates, and the
//! forms in which people write or draw a pipeline. Knows neither the database nor where events go;
//! it takes events and returns the result of each. What it does depends on the events and its state
//! alone, never on a clock: the same events from the same state give the same again.
//!
//! A definition is compiled once, which finds its errors with their places. Running
//! it never panics and takes bounded time and memory for each event.

mod definition;
mod destination;
mod expression;
#[cfg(test)]
mod fuzz;
pub mod graph;
mod hints;
mod program;
mod run;
mod size;
mod state;
mod template;
#[cfg(test)]
mod tests;
pub mod text;
mod trace;
mod wire;

use std::fmt;

use hub_protocol::{HubUuid, Timestamp};
use serde_json::Value;

pub use destination::{DestinationForm, OptionForm};
pub use expression::EVENT_MEMBERS;
pub use program::Program;
pub use state::State;
pub use template::Template;
pub use trace::StepTrace;

/// Steps of a pipeline.
pub const MAX_STEPS: usize = 32;
/// Bytes of an event after any step, and of the text of a template.
pub const MAX_EVENT_BYTES: usize = 256 * 1024;
/// Objects and lists in each other in an event.
pub const MAX_DEPTH: usize = 32;

/// An event on its way: the JSON object of `BleEventResponse`.
pub type Event = serde_json::Map<String, Value>;

/// The output of the steps.
#[derive(Clone, Debug, PartialEq)]
pub enum Body {
    Event(Event),
    /// The text of a `template` step.
    Text(String),
}

/// An event as it enters, with what stateful steps need.
#[derive(Clone, Debug, PartialEq)]
pub struct Input {
    pub event: Event,
    pub received_at: Timestamp,
    pub observed_at: Timestamp,
    pub hub_uuid: HubUuid,
    pub device_instance_id: Option<i64>,
    pub address: String,
    /// The id of the first reception, if this is a further reception of an observation.
    pub observation_id: Option<i64>,
    pub ble_event_id: i64,
}

/// One delivery.
#[derive(Clone, Debug, PartialEq)]
pub struct Output {
    pub body: Body,
    /// The event after all steps; of a body that is an event, the same. Topics are made of it.
    pub event: Event,
}

/// The outcome of an event.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// Several only after a script that returned a list.
    Passed(Vec<Output>),
    Dropped {
        step: usize,
    },
    /// For people.
    Failed {
        step: usize,
        problem: String,
    },
    /// There was no time for a script. The state is as if the event had not been there.
    NotRun {
        problem: String,
    },
}

/// An error in a definition, and its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// A JSON pointer, relative to the list of steps: `/3/when`.
    pub pointer: String,
    pub message: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.pointer, self.message)
    }
}

impl std::error::Error for Problem {}
