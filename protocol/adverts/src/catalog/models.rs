//! The models of a catalog, how they are recognised and read.

use std::collections::HashMap;
use std::sync::Arc;

use uuid::Uuid;

use crate::frame::Frame;
use crate::library;
use crate::matching::{Identifier, Recognised, Recogniser};

/// A device model.
#[derive(Debug, Clone, Default)]
pub struct Model {
    pub device_uuid: Uuid,
    pub name: String,
    /// Seconds between two advertisements of a device.
    pub expected_interval_secs: Option<i64>,
    /// Devices of the model are registered when they are heard.
    pub auto_register: bool,
    /// The protocol that reads its frames.
    pub device_protocol_id: Option<i64>,
}

/// A protocol: the reader of frames.
#[derive(Debug, Clone)]
pub struct Protocol {
    pub device_protocol_id: i64,
    pub revision: i64,
    pub reader: Reader,
}

/// The means by which frames are read.
#[derive(Debug, Clone)]
pub enum Reader {
    Decoder(library::Protocol),
    /// The source of a script. Nothing here runs it: its frames are `Matched`, and the service goes
    /// on from there.
    Script(Arc<str>),
}

impl Protocol {
    /// The decoder, if it is none of a script.
    pub fn decoder(&self) -> Option<&library::Protocol> {
        match &self.reader {
            Reader::Decoder(decoder) => Some(decoder),
            Reader::Script(_) => None,
        }
    }

    /// The source, if it is a script.
    pub fn script(&self) -> Option<&Arc<str>> {
        match &self.reader {
            Reader::Script(source) => Some(source),
            Reader::Decoder(_) => None,
        }
    }
}

/// An identifier that a frame fits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Candidate {
    pub identifier_id: i64,
    pub device_uuid: Uuid,
    pub specificity: u32,
}

/// All models of a catalog.
#[derive(Debug, Default)]
pub struct Models {
    models: Vec<Model>,
    places: HashMap<Uuid, usize>,
    protocols: HashMap<i64, Protocol>,
    recogniser: Recogniser,
    /// The ids of the identifiers, in the order of the recogniser.
    identifier_ids: Vec<i64>,
    takes_several_companies: bool,
}

impl Models {
    /// Identifiers are given with their ids and the models that they belong to. An identifier
    /// without its model is left out.
    pub fn new(
        models: Vec<Model>,
        identifiers: Vec<(i64, Uuid, Identifier)>,
        protocols: Vec<Protocol>,
    ) -> Models {
        let places: HashMap<Uuid, usize> = models
            .iter()
            .enumerate()
            .map(|(place, model)| (model.device_uuid, place))
            .collect();
        let mut identifier_ids = Vec::with_capacity(identifiers.len());
        let mut placed = Vec::with_capacity(identifiers.len());
        for (id, device_uuid, identifier) in identifiers {
            if let Some(place) = places.get(&device_uuid) {
                identifier_ids.push(id);
                placed.push((*place, identifier));
            }
        }
        let takes_several_companies = protocols
            .iter()
            .filter_map(Protocol::decoder)
            .any(library::Protocol::takes_several_companies);
        let protocols = protocols
            .into_iter()
            .map(|protocol| (protocol.device_protocol_id, protocol))
            .collect();
        Models {
            models,
            places,
            protocols,
            recogniser: Recogniser::new(placed),
            identifier_ids,
            takes_several_companies,
        }
    }

    pub fn is_empty(&self) -> bool {
        self.models.is_empty()
    }

    /// Whether a protocol reads the data of one of several companies.
    pub fn takes_several_companies(&self) -> bool {
        self.takes_several_companies
    }

    pub fn model(&self, device_uuid: Uuid) -> Option<&Model> {
        self.models.get(*self.places.get(&device_uuid)?)
    }

    pub fn protocol(&self, device_protocol_id: i64) -> Option<&Protocol> {
        self.protocols.get(&device_protocol_id)
    }

    /// The most specific identifier that a frame fits.
    pub fn recognise(&self, frame: &Frame<'_>) -> Option<Candidate> {
        self.recogniser
            .recognise(frame)
            .and_then(|found| self.candidate(found))
    }

    /// All identifiers that a frame fits, the most specific first.
    pub fn candidates(&self, frame: &Frame<'_>) -> Vec<Candidate> {
        self.recogniser
            .candidates(frame)
            .into_iter()
            .filter_map(|found| self.candidate(found))
            .collect()
    }

    fn candidate(&self, found: Recognised) -> Option<Candidate> {
        Some(Candidate {
            identifier_id: *self.identifier_ids.get(found.identifier)?,
            device_uuid: self.models.get(found.model)?.device_uuid,
            specificity: found.specificity,
        })
    }
}
