//! Where events of the log are: in a batch of the database, or in a file.

use std::sync::Arc;

use hub_history::{File, ProcessingStatus};
use hub_protocol::HubUuid;

use crate::batches;

/// Where an event is in the files: in which row of which row group.
#[derive(Clone, Debug)]
pub struct Row {
    pub file: Arc<File>,
    pub group: usize,
    pub row: usize,
}

/// An event that a walk came to.
pub struct Found<'a> {
    pub ble_event_id: i64,
    pub hub_uuid: HubUuid,
    pub device_instance_id: Option<i64>,
    pub processing_status: ProcessingStatus,
    pub observation_id: Option<i64>,
    /// Bytes of the JSON object as the hub sent it.
    pub event_bytes: usize,
    pub(crate) at: At<'a>,
}

#[derive(Clone, Copy)]
pub(crate) enum At<'a> {
    Batch(batches::Place),
    File {
        file: &'a Arc<File>,
        group: usize,
        row: usize,
    },
}

impl<'a> Found<'a> {
    pub fn of_batch(found: batches::Found<'_>) -> Self {
        Self {
            ble_event_id: found.place.ble_event_id(),
            hub_uuid: found.hub_uuid,
            device_instance_id: found.head.device_instance_id,
            processing_status: found.head.processing_status,
            observation_id: found.head.observation_id,
            event_bytes: found.head.event_bytes,
            at: At::Batch(found.place),
        }
    }

    /// Where to load the event from.
    pub fn place(&self) -> Place {
        let ble_event_id = self.ble_event_id;
        match self.at {
            At::Batch(place) => Place::Batch(place),
            At::File { file, group, row } => Place::File(
                ble_event_id,
                Row {
                    file: Arc::clone(file),
                    group,
                    row,
                },
            ),
        }
    }
}

/// Where an event is.
#[derive(Clone, Debug)]
pub enum Place {
    Batch(batches::Place),
    /// With its id.
    File(i64, Row),
}

impl Place {
    pub fn ble_event_id(&self) -> i64 {
        match self {
            Self::Batch(place) => place.ble_event_id(),
            Self::File(ble_event_id, _) => *ble_event_id,
        }
    }

    pub(crate) fn at(&self) -> At<'_> {
        match self {
            Self::Batch(place) => At::Batch(*place),
            Self::File(_, Row { file, group, row }) => At::File {
                file,
                group: *group,
                row: *row,
            },
        }
    }
}
