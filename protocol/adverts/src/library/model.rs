//! A model file.

use super::test::ModelTest;
use crate::builtin::Builtin;
use crate::frame::{Frame, Payloads};
use crate::language::{Decoder, DefinitionError, Node};
use crate::matching::Identifier;
use crate::measurement::{Kind, Measurement};
use crate::outcome::{Keys, Outcome};
use crate::quantity::{Quantity, quantity};

/// A device model.
#[derive(Debug, Clone)]
pub struct Model {
    /// `<brand>/<model>`, as the file is called.
    pub key: String,
    pub name: String,
    pub brand: String,
    pub model: String,
    pub category: String,
    pub description: Option<String>,
    /// Other names under which the device is sold.
    pub aliases: Vec<String>,
    /// Alternatives.
    pub identifiers: Vec<Identifier>,
    /// The identifiers as the file has them.
    pub identifier_definitions: Vec<serde_json::Value>,
    pub protocol: Protocol,
    /// The protocol as the file has it.
    pub protocol_definition: serde_json::Value,
    pub metrics: Vec<Metric>,
    pub expected_interval_seconds: Option<u32>,
    pub tests: Vec<ModelTest>,
    /// Where the format is published.
    pub source: String,
}

/// How a model's frames are read.
#[derive(Debug, Clone)]
pub enum Protocol {
    Builtin(Builtin),
    Declarative(Decoder),
}

impl Protocol {
    /// Parses `{"kind": "BUILTIN", "definition": {"decoder"}}` or `{"kind": "DECLARATIVE",
    /// "definition"}`. The error names the member at fault.
    pub fn parse(value: &serde_json::Value) -> Result<Protocol, DefinitionError> {
        let object = Node::root(value).object(&["kind", "definition"])?;
        let definition = object.required("definition")?;
        match object
            .required("kind")?
            .choice(&["BUILTIN", "DECLARATIVE"])?
        {
            0 => {
                let name = definition.object(&["decoder"])?.required("decoder")?;
                let known = || Builtin::ALL.map(Builtin::name).join(", ");
                let decoder = Builtin::named(name.text()?);
                Ok(Protocol::Builtin(decoder.ok_or_else(|| {
                    name.error(format!("must be one of {}", known()))
                })?))
            }
            _ => match Decoder::compile(definition.value) {
                Ok(decoder) => Ok(Protocol::Declarative(decoder)),
                Err(error) => Err(definition.within(error)),
            },
        }
    }

    /// The payloads of a frame that this reads, if it reads the frame.
    pub fn payloads(&self, frame: &Frame<'_>) -> Payloads {
        match self {
            Protocol::Builtin(decoder) => decoder.payloads(frame),
            Protocol::Declarative(decoder) => decoder.payloads(frame),
        }
    }

    /// Whether the manufacturer data that this reads may be of one of several companies.
    pub fn takes_several_companies(&self) -> bool {
        match self {
            Protocol::Builtin(_) => false,
            Protocol::Declarative(decoder) => decoder.takes_several_companies(),
        }
    }

    /// Reads a frame and adds what it measures to `output`.
    pub fn decode(
        &self,
        frame: &Frame<'_>,
        keys: Keys<'_>,
        output: &mut Vec<Measurement>,
    ) -> Outcome {
        match self {
            Protocol::Builtin(decoder) => decoder.decode(frame, &keys, output),
            Protocol::Declarative(decoder) => decoder.decode(frame, keys, output),
        }
    }
}

/// A quantity that a model measures.
#[derive(Debug, Clone, PartialEq)]
pub struct Metric {
    pub quantity: &'static Quantity,
    pub kind: Kind,
    pub min: Option<f64>,
    pub max: Option<f64>,
}

const MEMBERS: &[&str] = &[
    "$schema",
    "name",
    "brand",
    "model",
    "category",
    "description",
    "aliases",
    "identifiers",
    "protocol",
    "metrics",
    "expectedIntervalSeconds",
    "tests",
    "source",
];

impl Model {
    /// Parses a model file. The error names the member at fault, also within the definition and the
    /// identifiers.
    pub fn parse(key: &str, file: &serde_json::Value) -> Result<Model, DefinitionError> {
        let node = Node::root(file);
        let object = node.object(MEMBERS)?;
        let text = |key: &str| {
            object
                .required(key)
                .and_then(|node| node.text().map(str::to_owned))
        };
        let protocol_node = object.required("protocol")?;
        let protocol =
            Protocol::parse(protocol_node.value).map_err(|error| protocol_node.within(error))?;
        let identifier_nodes = object.required("identifiers")?.array()?;
        let mut identifiers = Vec::new();
        for node in &identifier_nodes {
            identifiers.push(Identifier::parse(node.value).map_err(|error| node.within(error))?);
        }
        let expected_interval_seconds = match object.get("expectedIntervalSeconds") {
            None => None,
            Some(seconds) => u32::try_from(seconds.integer(1, 7 * 86_400)?).ok(),
        };
        let aliases = match object.get("aliases") {
            None => Vec::new(),
            Some(aliases) => aliases
                .array()?
                .iter()
                .map(|alias| alias.text().map(str::to_owned))
                .collect::<Result<_, _>>()?,
        };
        Ok(Model {
            key: key.to_owned(),
            name: text("name")?,
            brand: text("brand")?,
            model: text("model")?,
            category: text("category")?,
            description: object
                .get("description")
                .map(|node| node.text().map(str::to_owned))
                .transpose()?,
            aliases,
            identifiers,
            identifier_definitions: identifier_nodes
                .iter()
                .map(|node| node.value.clone())
                .collect(),
            protocol,
            protocol_definition: protocol_node.value.clone(),
            metrics: object
                .required("metrics")?
                .array()?
                .iter()
                .map(metric)
                .collect::<Result<_, _>>()?,
            expected_interval_seconds,
            tests: object
                .required("tests")?
                .array()?
                .iter()
                .map(ModelTest::of)
                .collect::<Result<_, _>>()?,
            source: text("source")?,
        })
    }
}

/// `"temperature"`, or `{"quantity", "kind"?, "min"?, "max"?}`.
fn metric(node: &Node<'_>) -> Result<Metric, DefinitionError> {
    let known = |node: &Node<'_>| -> Result<&'static Quantity, DefinitionError> {
        let name = node.text()?;
        quantity(name).ok_or_else(|| node.error(format!("there is no quantity {name}")))
    };
    if node.value.is_string() {
        let quantity = known(node)?;
        return Ok(Metric {
            quantity,
            kind: quantity.kind,
            min: None,
            max: None,
        });
    }
    let object = node.object(&["quantity", "kind", "min", "max"])?;
    let quantity = known(&object.required("quantity")?)?;
    let kind = match object.get("kind") {
        None => quantity.kind,
        Some(kind) => Kind::of(&kind)?,
    };
    let bound = |key: &str| object.get(key).and_then(|node| node.value.as_f64());
    Ok(Metric {
        quantity,
        kind,
        min: bound("min"),
        max: bound("max"),
    })
}
