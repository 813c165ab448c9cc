//! A hub asks which device it sees. Asking activates a registered device, as being heard does. It
//! owns no table.

pub mod http;

use hub_base::error::{Error, Result};
use hub_core::Core;
use hub_identity::authn::hub::Hub;
use hub_protocol::ble::{Advertisement, BleEvent};
use uuid::Uuid;

use crate::ble::{Checked, check_event, member_at_fault};
use crate::device_instances::heard::Changes;
use crate::device_instances::{ActivationKind, ActivationStatus};
use crate::recognition::{Recognition, TenantCatalog};

/// The device that a hub sees.
pub struct Found {
    pub device_instance_id: i64,
    pub device_uuid: Uuid,
    pub activation_status: ActivationStatus,
    /// Whether it became active because the hub asked.
    pub activated: bool,
}

/// The device that sent an advertisement; None if it is not registered, and not of a model whose
/// devices are registered when they are seen. It is checked like an event of an upload.
pub async fn query(
    core: &Core,
    recognition: &Recognition,
    hub: &Hub,
    advertisement: Advertisement,
) -> Result<Option<Found>> {
    let event = BleEvent {
        event_uuid: None,
        observed_at: core.clock.now(),
        traceparent: None,
        payload: advertisement,
    };
    let text = serde_json::to_string(&event).map_err(Error::internal)?;
    let checked = check_event(&text).map_err(|message| match member_at_fault(&message) {
        Some((path, problem)) => Error::field(path, problem),
        None => Error::field("body", message),
    })?;
    let mut changes = Changes::default();
    let catalog = recognition.catalog(hub.tenant_uuid).await?;
    let known = read(&catalog, &checked, &mut changes);
    if changes.is_empty() {
        return Ok(known.map(|(id, device_uuid)| found(&catalog, id, device_uuid, false)));
    }
    recognition
        .apply(hub, ActivationKind::Query, &changes)
        .await?;
    // The event with today's catalog, and with the device if it was registered.
    let catalog = recognition.catalog(hub.tenant_uuid).await?;
    let known = read(&catalog, &checked, &mut Changes::default());
    Ok(known.map(|(id, device_uuid)| {
        let is_new = !changes.register.is_empty() || changes.activate.contains(&id);
        found(&catalog, id, device_uuid, is_new)
    }))
}

/// The device and its model.
fn read(catalog: &TenantCatalog, checked: &Checked, changes: &mut Changes) -> Option<(i64, Uuid)> {
    checked.frame.with(|frame| {
        let read = catalog.catalog.read(frame, &mut Vec::new());
        catalog.note(frame, &read, changes);
        read.instance
            .map(|instance| (instance.device_instance_id, instance.device_uuid))
    })
}

fn found(
    catalog: &TenantCatalog,
    device_instance_id: i64,
    device_uuid: Uuid,
    activated: bool,
) -> Found {
    let activation_status = catalog
        .activation_status(device_instance_id)
        .unwrap_or(ActivationStatus::Registered);
    Found {
        device_instance_id,
        device_uuid,
        activation_status,
        activated,
    }
}
