//! `/app/devices/{deviceInstanceId}/thing-description` and `/value-schema`, and the former for the
//! recipient of a mandate.

use aide::OperationOutput;
use aide::axum::ApiRouter;
use aide::axum::routing::get_with;
use aide::generate::GenContext;
use aide::openapi::{Operation, Response as ApiResponse};
use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use hub_base::db::Conn;
use hub_base::error::{Error, Result};
use hub_core::Core;
use hub_core::http::answer::typed_response;
use hub_core::http::extract::Path;
use hub_core::http::operation::{operation, operation_failing};
use hub_devices::device_instances;
use hub_devices::device_instances::http::DevicePath;
use hub_identity::authz::{EndUser, MandateBearer, Scope};
use serde_json::Value;

use super::{Place, Thing, description, value_schema};
use crate::Parts;
use crate::end_users::{self, OwnDevice};
use crate::mandates::access::{self, Calls};

const DESCRIPTION_TYPE: &str = "application/td+json";
const SCHEMA_TYPE: &str = "application/schema+json";
/// The actor of look-ups.
const ACTOR: &str = "THINGS";

pub fn routes() -> ApiRouter<Parts> {
    ApiRouter::new()
        .api_route(
            "/app/devices/{deviceInstanceId}/thing-description",
            get_with(
                thing_description,
                operation(
                    "appDevices.getThingDescription",
                    "app",
                    "What a device measures, as a W3C Thing Description",
                ),
            ),
        )
        .api_route(
            "/app/devices/{deviceInstanceId}/value-schema",
            get_with(
                schema,
                operation(
                    "appDevices.getValueSchema",
                    "app",
                    "The JSON Schema of the values of a device",
                ),
            ),
        )
        .api_route(
            "/mandate/v1/devices/{deviceInstanceId}/thing-description",
            get_with(
                mandated_description,
                operation_failing(
                    &[429],
                    "mandate.getThingDescription",
                    "mandate",
                    "What a device of the mandate measures, as a W3C Thing Description",
                ),
            ),
        )
}

/// A Thing Description.
struct ThingDescription(Value);

/// A JSON Schema.
struct ValueSchema(Value);

impl IntoResponse for ThingDescription {
    fn into_response(self) -> Response {
        let kind = [(header::CONTENT_TYPE, DESCRIPTION_TYPE)];
        (kind, self.0.to_string()).into_response()
    }
}

impl IntoResponse for ValueSchema {
    fn into_response(self) -> Response {
        ([(header::CONTENT_TYPE, SCHEMA_TYPE)], self.0.to_string()).into_response()
    }
}

fn object() -> Value {
    serde_json::json!({"type": "object"})
}

impl OperationOutput for ThingDescription {
    type Inner = ();
    fn inferred_responses(
        _: &mut GenContext,
        _: &mut Operation,
    ) -> Vec<(Option<u16>, ApiResponse)> {
        let text = "A Thing Description, version 1.1.";
        vec![(Some(200), typed_response(DESCRIPTION_TYPE, text, object()))]
    }
}

impl OperationOutput for ValueSchema {
    type Inner = ();
    fn inferred_responses(
        _: &mut GenContext,
        _: &mut Operation,
    ) -> Vec<(Option<u16>, ApiResponse)> {
        let text = "A JSON Schema, 2020-12.";
        vec![(Some(200), typed_response(SCHEMA_TYPE, text, object()))]
    }
}

/// A device with the values that its reader may see.
async fn thing(conn: &mut Conn, own: OwnDevice, is_seen: impl Fn(&str) -> bool) -> Result<Thing> {
    let device_instance_id = own.device_instance_id;
    let shown = device_instances::shown(conn, &[device_instance_id]).await?;
    let shown = shown.into_iter().next();
    let shown = shown.ok_or_else(|| Error::not_found("device"))?;
    let scope = Scope::system(ACTOR, own.tenant_uuid);
    let interval_secs = device_instances::interval_secs(conn, &scope, device_instance_id).await?;
    let mut state = shown.heard.state.clone();
    state.retain(|key, value| value.at >= own.since && is_seen(key));
    Ok(Thing {
        device_instance_id,
        title: shown.display_name(),
        model_uuid: shown.instance.device_uuid,
        model_name: shown.device_name,
        serial_number: shown.instance.serial_number,
        interval_secs,
        state,
    })
}

async fn own_thing(core: &Core, caller: &EndUser, device_instance_id: i64) -> Result<Thing> {
    let mut conn = core.db.read().await?;
    let person = end_users::of_caller(core, &mut conn, &caller.scope).await?;
    let own = end_users::device(&mut conn, &person, device_instance_id).await?;
    thing(&mut conn, own, |_| true).await
}

async fn thing_description(
    caller: EndUser,
    State(core): State<Core>,
    Path(DevicePath { device_instance_id }): Path<DevicePath>,
) -> Result<ThingDescription> {
    let thing = own_thing(&core, &caller, device_instance_id).await?;
    let path = format!("/app/devices/{device_instance_id}");
    let place = Place {
        base: core.config.own_url(),
        own: format!("{path}/thing-description"),
        values: format!("{path}/sensor-data?size=1&"),
        stream: "/app/stream",
        token: "The access token of the person",
    };
    Ok(ThingDescription(description(&thing, &place)))
}

async fn schema(
    caller: EndUser,
    State(core): State<Core>,
    Path(DevicePath { device_instance_id }): Path<DevicePath>,
) -> Result<ValueSchema> {
    let thing = own_thing(&core, &caller, device_instance_id).await?;
    Ok(ValueSchema(value_schema(&thing)))
}

async fn mandated_description(
    bearer: MandateBearer,
    State(core): State<Core>,
    State(calls): State<Calls>,
    Path(DevicePath { device_instance_id }): Path<DevicePath>,
) -> Result<ThingDescription> {
    let recipient = access::recipient(&core, &calls, &bearer).await?;
    let mut conn = core.db.read().await?;
    let ids = [device_instance_id];
    let permitted = recipient.permitted(&core, &mut conn, Some(&ids)).await?;
    let own = permitted.devices.into_iter().next();
    let own = own.ok_or_else(|| Error::not_found("device"))?;
    let quantities = permitted.quantities;
    let mut thing = thing(&mut conn, own, |key| quantities.allow(key)).await?;
    thing.serial_number = None;
    let place = Place {
        base: core.config.own_url(),
        own: format!("/mandate/v1/devices/{device_instance_id}/thing-description"),
        values: format!("/mandate/v1/sensor-data?deviceInstanceId={device_instance_id}&size=1&"),
        stream: "/mandate/v1/stream",
        token: "The credential of the mandate",
    };
    Ok(ThingDescription(description(&thing, &place)))
}
