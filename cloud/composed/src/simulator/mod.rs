//! The simulator: what would become of an event. Nothing is stored, activated or delivered, and it
//! owns no table.

pub mod http;
mod presets;

use hub_adverts::catalog::Catalog;
use hub_base::error::{Error, Result};
use hub_devices::ble::{
    Checked, RouteDecisionResponse, Trace, check_event, member_at_fault, trace,
};
use hub_devices::ble_routes::{Facts, Route};
use hub_protocol::HubUuid;
use hub_protocol::ble::BleEvent;

/// An event to simulate.
pub struct Simulated {
    pub event: BleEvent,
    checked: Checked,
}

impl Simulated {
    /// An event as a hub uploads it. The error names the member at fault below `place`.
    pub fn of(text: &str, place: &str) -> Result<Self> {
        let refused = |message: String| match member_at_fault(&message) {
            Some((path, problem)) => Error::field(format!("{place}.{path}"), problem),
            None => Error::field(place, message),
        };
        let checked = check_event(text).map_err(refused)?;
        let event =
            serde_json::from_str(text).map_err(|error| Error::field(place, error.to_string()))?;
        Ok(Self { event, checked })
    }

    /// The same event, received later.
    pub fn later(&self, micros: i64) -> BleEvent {
        BleEvent {
            observed_at: self.event.observed_at.plus_micros(micros),
            ..self.event.clone()
        }
    }
}

/// The predicted processing of an event.
pub struct Outcome {
    pub trace: Trace,
    pub hub_route: RouteDecisionResponse,
    pub cloud_route: RouteDecisionResponse,
}

/// Recognises and reads an event, and tries the route on it. Without a hub, no rule of a hub fits.
pub fn simulate(
    catalog: &Catalog,
    route: &Route,
    hub_uuid: Option<HubUuid>,
    simulated: &Simulated,
) -> Outcome {
    let checked = &simulated.checked;
    checked.frame.with(|frame| {
        let trace = trace(catalog, &checked.frame, frame);
        let facts = Facts {
            device_uuid: trace.reading.as_ref().map(|reading| reading.device_uuid),
            device_instance_id: trace.device_instance_id,
            hub_uuid: hub_uuid.unwrap_or(HubUuid(uuid::Uuid::nil())),
            rssi_dbm: checked.rssi_dbm,
            frame,
        };
        let hub_route = RouteDecisionResponse::new(route, route.hub_decision(&facts));
        let cloud_route = RouteDecisionResponse::new(route, route.cloud_decision(&facts));
        Outcome {
            trace,
            hub_route,
            cloud_route,
        }
    })
}
