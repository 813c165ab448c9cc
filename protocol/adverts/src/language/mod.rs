//! Decoders that are described in JSON: see `docs/decoders.md` for the language.
//!
//! A definition is compiled once. Mistakes in it are reported then, with their place. A compiled
//! decoder reads any frame without a panic, in bounded time, and allocates for its output alone.

mod checksum;
mod cipher;
mod compile;
mod expression;
mod measure;
mod node;
mod number;
mod program;
mod run;
mod text;
mod units;
mod values;

pub(crate) use compile::uuid_of;
pub use node::DefinitionError;
pub(crate) use node::{Node, hex_bytes};
pub(crate) use units::{between as between_units, in_own_unit, known as known_units};

use crate::frame::{Frame, Payloads};
use crate::measurement::Measurement;
use crate::outcome::{Keys, Outcome};

/// The JSON Schema of definitions, for editors.
pub const SCHEMA: &str = include_str!("../../schema/decoder.json");

/// A compiled definition.
#[derive(Debug, Clone)]
pub struct Decoder {
    formats: Vec<program::Format>,
    /// Whether a format reads the manufacturer data of any company.
    any_company: bool,
}

impl Decoder {
    /// Compiles a definition. Everything in it must be known and used as the language has it: a
    /// member that is misspelt is an error.
    pub fn compile(definition: &serde_json::Value) -> Result<Decoder, DefinitionError> {
        let formats = compile::Compiler::default().definition(&Node::root(definition))?;
        let any =
            |test: &program::PayloadTest| matches!(test.carrier, program::Carrier::AnyManufacturer);
        let any_company = formats
            .iter()
            .any(|format| format.test.payload.iter().chain(&format.test.also).any(any));
        Ok(Decoder {
            formats,
            any_company,
        })
    }

    /// Reads a frame and adds what it measures to `output`. All formats of the definition that the
    /// frame has are read, in order.
    pub fn decode(
        &self,
        frame: &Frame<'_>,
        keys: Keys<'_>,
        output: &mut Vec<Measurement>,
    ) -> Outcome {
        run::decode(&self.formats, self.any_company, frame, keys, output)
    }

    /// Whether a format reads the manufacturer data of one of several companies.
    pub fn takes_several_companies(&self) -> bool {
        let several = |test: &program::PayloadTest| matches!(&test.carrier, program::Carrier::Manufacturer(companies) if companies.len() > 1);
        let mut tests = self
            .formats
            .iter()
            .flat_map(|format| format.test.payload.iter().chain(&format.test.also));
        self.any_company || tests.any(several)
    }

    /// The payloads of a frame that a format of the definition reads, or requires.
    pub fn payloads(&self, frame: &Frame<'_>) -> Payloads {
        run::payloads(&self.formats, self.any_company, frame)
    }
}
