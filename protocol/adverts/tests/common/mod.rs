//! Advertisements that own their bytes. Each test uses a part of this.
#![allow(dead_code)]

use hub_adverts::{Address, Frame};
use serde_json::Value as Json;
use std::path::Path;
use uuid::Uuid;

#[derive(Debug, Clone, Default)]
pub struct Advertisement {
    pub address: Option<Address>,
    pub name: Option<String>,
    pub manufacturer_data: Vec<(u16, Vec<u8>)>,
    pub service_data: Vec<(Uuid, Vec<u8>)>,
    pub service_uuids: Vec<Uuid>,
}

impl Advertisement {
    pub fn of(vector: &Json) -> Self {
        let entries = |member: &str| vector[member].as_object().cloned().unwrap_or_default();
        let bytes = |value: &Json| hex::decode(value.as_str().unwrap()).unwrap();
        Self {
            address: vector["address"].as_str().map(address),
            name: vector["name"].as_str().map(str::to_owned),
            manufacturer_data: entries("manufacturerData")
                .iter()
                .map(|(company, data)| (u16::from_str_radix(company, 16).unwrap(), bytes(data)))
                .collect(),
            service_data: entries("serviceData")
                .iter()
                .map(|(id, data)| (uuid(id), bytes(data)))
                .collect(),
            service_uuids: vector["serviceUuids"]
                .as_array()
                .into_iter()
                .flatten()
                .map(|id| uuid(id.as_str().unwrap()))
                .collect(),
        }
    }

    pub fn service(id: u16, data: &[u8], address: Option<Address>) -> Self {
        let service_data = vec![(hub_adverts::frame::uuid16(id), data.to_vec())];
        Self {
            address,
            service_data,
            ..Self::default()
        }
    }

    pub fn manufacturer(company: u16, data: &[u8]) -> Self {
        Self {
            manufacturer_data: vec![(company, data.to_vec())],
            ..Self::default()
        }
    }

    pub fn with_frame<T>(&self, read: impl FnOnce(&Frame) -> T) -> T {
        let manufacturer: Vec<_> = self
            .manufacturer_data
            .iter()
            .map(|(id, data)| (*id, data.as_slice()))
            .collect();
        let service: Vec<_> = self
            .service_data
            .iter()
            .map(|(id, data)| (*id, data.as_slice()))
            .collect();
        read(&Frame {
            address: self.address,
            name: self.name.as_deref(),
            manufacturer_data: &manufacturer,
            service_data: &service,
            service_uuids: &self.service_uuids,
            ..Frame::default()
        })
    }

    /// The length of the longest payload.
    pub fn longest(&self) -> usize {
        let manufacturer = self.manufacturer_data.iter().map(|(_, data)| data.len());
        manufacturer
            .chain(self.service_data.iter().map(|(_, data)| data.len()))
            .max()
            .unwrap_or(0)
    }

    /// All payloads cut to a length.
    pub fn cut(&self, length: usize) -> Self {
        let mut cut = self.clone();
        cut.manufacturer_data
            .iter_mut()
            .for_each(|(_, data)| data.truncate(length));
        cut.service_data
            .iter_mut()
            .for_each(|(_, data)| data.truncate(length));
        cut
    }
}

pub fn address(text: &str) -> Address {
    hex::decode(text.replace(':', ""))
        .unwrap()
        .try_into()
        .unwrap()
}

pub fn uuid(text: &str) -> Uuid {
    match u16::from_str_radix(text, 16) {
        Ok(short) => hub_adverts::frame::uuid16(short),
        Err(_) => text.parse().unwrap(),
    }
}

pub fn vectors() -> Vec<Json> {
    lines("../../tests/data/ble/vectors.jsonl")
}

/// The lines of a file of JSON objects, by its path from the crate.
pub fn lines(path: &str) -> Vec<Json> {
    let text = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// Whether numbers agree to 1e-6, relative to the larger one.
pub fn close(left: f64, right: f64) -> bool {
    (left - right).abs() <= 1e-6 * left.abs().max(right.abs()).max(1.0)
}
