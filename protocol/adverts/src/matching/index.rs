//! Finds the identifiers that a frame fits.

use std::collections::HashMap;

use uuid::Uuid;

use super::conditions::{Carrier, Identifier, Name};
use crate::frame::Frame;

/// An identifier that a frame fits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Recognised {
    /// The caller's number of the model.
    pub model: usize,
    /// Place of the identifier in the list that the recogniser was built from.
    pub identifier: usize,
    pub specificity: u32,
}

/// Two identifiers of different models, of which a frame that fits both would fit neither better.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tie {
    /// Places in the list that the recogniser was built from.
    pub first: usize,
    pub second: usize,
}

type ByBytes = HashMap<Box<[u8]>, Vec<usize>>;

/// Identifiers by the first bytes of something, for each number of bytes that occurs.
#[derive(Debug, Clone, Default)]
struct Prefixes {
    by_length: Vec<(usize, ByBytes)>,
}

impl Prefixes {
    fn add(&mut self, prefix: &[u8], identifier: usize) {
        let known = self
            .by_length
            .iter_mut()
            .find(|(length, _)| *length == prefix.len());
        if let Some((_, map)) = known {
            map.entry(prefix.into()).or_default().push(identifier);
        } else {
            self.by_length.push((
                prefix.len(),
                HashMap::from([(prefix.into(), vec![identifier])]),
            ));
        }
    }

    fn find(&self, bytes: &[u8], found: &mut impl FnMut(usize)) {
        for (length, map) in &self.by_length {
            if let Some(identifiers) = bytes.get(..*length).and_then(|prefix| map.get(prefix)) {
                identifiers.iter().for_each(|identifier| found(*identifier));
            }
        }
    }
}

/// The identifiers of all models, by what is cheapest to look for.
#[derive(Debug, Clone, Default)]
pub struct Recogniser {
    identifiers: Vec<(usize, Identifier)>,
    companies: HashMap<u16, Prefixes>,
    service_data: HashMap<Uuid, Prefixes>,
    services: HashMap<Uuid, Vec<usize>>,
    names: HashMap<String, Vec<usize>>,
    name_prefixes: Prefixes,
    addresses: Prefixes,
    /// Identifiers that fix nothing that is looked up, such as bits in the middle of an address.
    others: Vec<usize>,
}

impl Recogniser {
    /// Builds a recogniser from pairs of a model's number and one of its identifiers.
    pub fn new(identifiers: Vec<(usize, Identifier)>) -> Recogniser {
        let mut recogniser = Recogniser::default();
        for (at, (_, identifier)) in identifiers.iter().enumerate() {
            recogniser.add(at, identifier);
        }
        recogniser.identifiers = identifiers;
        recogniser
    }

    /// Files an identifier under what sets it apart most: an address, a payload, a name, a service.
    fn add(&mut self, at: usize, identifier: &Identifier) {
        let payload = identifier
            .payloads
            .iter()
            .max_by_key(|payload| payload.bits.leading().len());
        let address = identifier.address.leading();
        let payload_bytes = payload.map_or(0, |payload| payload.bits.leading().len() + 2);
        if !address.is_empty() && address.len() >= payload_bytes {
            self.addresses.add(address, at);
        } else if let Some(name) = &identifier.name
            && payload_bytes <= 2
        {
            match name {
                Name::Exact(name) => self.names.entry(name.clone()).or_default().push(at),
                Name::Prefix(prefix) => self.name_prefixes.add(prefix.as_bytes(), at),
            }
        } else if let Some(payload) = payload {
            let prefixes = match payload.carrier {
                Carrier::Manufacturer(company) => self.companies.entry(company).or_default(),
                Carrier::Service(uuid) => self.service_data.entry(uuid).or_default(),
            };
            prefixes.add(payload.bits.leading(), at);
        } else if let Some(uuid) = identifier.services.first() {
            self.services.entry(*uuid).or_default().push(at);
        } else {
            self.others.push(at);
        }
    }

    /// The most specific identifier that a frame fits; of equal ones the earliest in the list.
    pub fn recognise(&self, frame: &Frame<'_>) -> Option<Recognised> {
        let mut best: Option<Recognised> = None;
        self.each(frame, &mut |found| {
            let better = best.is_none_or(|best| {
                (found.specificity, best.identifier) > (best.specificity, found.identifier)
            });
            if better {
                best = Some(found);
            }
        });
        best
    }

    /// All identifiers that a frame fits, the most specific first.
    pub fn candidates(&self, frame: &Frame<'_>) -> Vec<Recognised> {
        let mut all = Vec::new();
        self.each(frame, &mut |found| all.push(found));
        all.sort_by_key(|found| (std::cmp::Reverse(found.specificity), found.identifier));
        // A frame may have the same company or service twice.
        all.dedup();
        all
    }

    fn each(&self, frame: &Frame<'_>, take: &mut impl FnMut(Recognised)) {
        let mut found = |at: usize| {
            if let Some((model, identifier)) = self.identifiers.get(at)
                && identifier.matches(frame)
            {
                take(Recognised {
                    model: *model,
                    identifier: at,
                    specificity: identifier.specificity(),
                });
            }
        };
        if let Some(address) = &frame.address {
            self.addresses.find(address, &mut found);
        }
        for (company, payload) in frame.manufacturer_data {
            if let Some(prefixes) = self.companies.get(company) {
                prefixes.find(payload, &mut found);
            }
        }
        for (uuid, payload) in frame.service_data {
            if let Some(prefixes) = self.service_data.get(uuid) {
                prefixes.find(payload, &mut found);
            }
        }
        if let Some(name) = frame.name {
            self.names
                .get(name)
                .into_iter()
                .flatten()
                .for_each(|at| found(*at));
            self.name_prefixes.find(name.as_bytes(), &mut found);
        }
        for uuid in frame.service_uuids {
            self.services
                .get(uuid)
                .into_iter()
                .flatten()
                .for_each(|at| found(*at));
        }
        self.others.iter().for_each(|at| found(*at));
    }

    /// All ties among the identifiers, in order. Asked where a set is made or changed.
    pub fn ties(&self) -> Vec<Tie> {
        let mut shapes: HashMap<Identifier, HashMap<&Identifier, Vec<usize>>> = HashMap::new();
        for (at, (_, identifier)) in self.identifiers.iter().enumerate() {
            shapes
                .entry(identifier.shape())
                .or_default()
                .entry(identifier)
                .or_default()
                .push(at);
        }
        let mut ties = Vec::new();
        for equals in shapes.values().flat_map(HashMap::values) {
            for (number, first) in equals.iter().enumerate() {
                ties.extend(
                    equals
                        .iter()
                        .skip(number + 1)
                        .filter_map(|second| self.tie(*first, *second)),
                );
            }
        }
        let shapes: Vec<(&Identifier, Vec<usize>)> = shapes
            .iter()
            .map(|(shape, members)| (shape, members.values().flatten().copied().collect()))
            .collect();
        for (number, (shape, members)) in shapes.iter().enumerate() {
            let rivals = shapes.iter().skip(number + 1);
            for (_, others) in rivals.filter(|(rival, _)| {
                rival.specificity() == shape.specificity() && rival.same_parts(shape)
            }) {
                for first in members {
                    ties.extend(others.iter().filter_map(|second| self.tie(*first, *second)));
                }
            }
        }
        ties.sort_unstable_by_key(|tie| (tie.first, tie.second));
        ties
    }

    fn tie(&self, first: usize, second: usize) -> Option<Tie> {
        let (one, identifier) = self.identifiers.get(first)?;
        let (other, rival) = self.identifiers.get(second)?;
        let tie = Tie {
            first: first.min(second),
            second: first.max(second),
        };
        (one != other && identifier.ties(rival)).then_some(tie)
    }
}
