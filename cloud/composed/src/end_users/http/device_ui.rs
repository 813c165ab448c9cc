//! `/app/device-ui`.

use aide::OperationOutput;
use aide::axum::ApiRouter;
use aide::axum::routing::{get_with, post_with};
use aide::generate::GenContext;
use aide::openapi::{Operation, Response as ApiResponse};
use axum::extract::State;
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use hub_base::error::{Error, Result};
use hub_core::Core;
use hub_core::http::answer::{Answer, json_response};
use hub_core::http::check::Check;
use hub_core::http::describe::headers;
use hub_core::http::extract::{Json, Path};
use hub_core::http::operation::{operation, operation_failing};
use hub_devices::device_pages::{DeviceUiResponse, of_model};
use hub_devices::external_endpoints::EndpointAnswer;
use hub_fleet::hubs::http::HubPath;
use hub_identity::authz::{EndUser, Scope};
use hub_people::supplier_links::SupplierLinks;
use hub_protocol::{Data, HubUuid, TenantUuid};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::super::device_ui::{Filled, invoke as send};
use super::super::{self as end_users};
use super::TAG;
use crate::Parts;

const MAX_STEP_ID_CHARS: usize = 200;
const MAX_VALUES_BYTES: usize = 64 * 1024;

pub fn routes() -> ApiRouter<Parts> {
    ApiRouter::new()
        .api_route(
            "/app/device-ui/setup/{hubUuid}",
            get_with(
                setup,
                operation(
                    "appDeviceUi.getSetup",
                    TAG,
                    "The forms that set up devices of a hub",
                ),
            ),
        )
        .api_route(
            "/app/device-ui/invoke",
            post_with(
                invoke,
                operation_failing(
                    &[404, 409, 502, 504],
                    "appDeviceUi.invoke",
                    TAG,
                    "Send a step of a form to the supplier of a hub",
                ),
            ),
        )
}

/// The forms that set up devices of a hub.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct DeviceUiSetupResponse {
    /// The hub.
    hub_uuid: HubUuid,
    /// The supplier of the hub, whose forms these are.
    supplier_uuid: TenantUuid,
    /// The newest 100 of kind `SETUP`.
    forms: Vec<DeviceUiResponse>,
}

async fn setup(
    EndUser { scope, user }: EndUser,
    State(core): State<Core>,
    Path(HubPath { hub_uuid }): Path<HubPath>,
) -> Result<Answer<DeviceUiSetupResponse>> {
    let mut conn = core.db.read().await?;
    let person = end_users::of_caller(&core, &mut conn, &scope).await?;
    let hub = end_users::hub(&mut conn, &person, hub_uuid).await?;
    let supplier = Scope::of_person(&user, hub.tenant_uuid);
    let bytes = of_model::setup_form_bytes(&mut conn, &supplier).await?;
    let _held = end_users::hold(&core, hub.tenant_uuid, person.user_uuid, bytes)?;
    let forms = of_model::setup_forms(&mut conn, &supplier).await?;
    match forms.is_empty() {
        true => Err(Error::new(
            StatusCode::NOT_FOUND,
            "NO_DEVICE_UI",
            "the supplier of this hub has no form for it",
        )),
        false => Ok(Answer(DeviceUiSetupResponse {
            hub_uuid,
            supplier_uuid: hub.tenant_uuid,
            forms,
        })),
    }
}

/// A step of a form, filled in.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct DeviceUiInvokeRequest {
    /// A hub of the caller.
    hub_uuid: HubUuid,
    /// A form of the hub's supplier.
    #[schemars(range(min = 1))]
    device_ui_id: i64,
    /// The step of the form.
    #[schemars(length(max = MAX_STEP_ID_CHARS), regex(pattern = hub_protocol::patterns::FILLED_LINE))]
    step_id: String,
    /// The entered values, of 64 KiB at most.
    values: Map<String, Value>,
}

/// An endpoint's response, with its status.
struct Upstream(EndpointAnswer);

/// The response of the supplier's endpoint, unchanged.
#[derive(Serialize, JsonSchema)]
struct DeviceUiAnswer(#[schemars(with = "Map<String, Value>")] Box<RawValue>);

impl IntoResponse for Upstream {
    fn into_response(self) -> Response {
        let Self(EndpointAnswer { status, body }) = self;
        let data = DeviceUiAnswer(body);
        (
            [("x-upstream-status", HeaderValue::from(status.as_u16()))],
            axum::Json(Data { data }),
        )
            .into_response()
    }
}

impl OperationOutput for Upstream {
    type Inner = ();
    fn inferred_responses(
        ctx: &mut GenContext,
        _: &mut Operation,
    ) -> Vec<(Option<u16>, ApiResponse)> {
        let description = "What the supplier's endpoint answered, which may be a refusal: see `X-Upstream-Status`.";
        let response = json_response::<Data<DeviceUiAnswer>>(ctx, description);
        vec![(
            Some(200),
            ApiResponse {
                headers: headers(&["X-Upstream-Status"]),
                ..response
            },
        )]
    }
}

async fn invoke(
    EndUser { scope, user }: EndUser,
    State(core): State<Core>,
    State(links): State<SupplierLinks>,
    Json(request): Json<DeviceUiInvokeRequest>,
) -> Result<Upstream> {
    let DeviceUiInvokeRequest {
        hub_uuid,
        device_ui_id,
        step_id,
        values,
    } = request;
    let mut check = Check::new();
    check.required("stepId", &step_id, MAX_STEP_ID_CHARS);
    let bytes = serde_json::to_string(&values)
        .map_err(Error::internal)?
        .len();
    check.that(
        bytes <= MAX_VALUES_BYTES,
        "values",
        format!("must have at most {} KiB", MAX_VALUES_BYTES / 1024),
    );
    check.done()?;
    let filled = Filled {
        hub_uuid,
        device_ui_id,
        step_id,
        values,
    };
    send(&core, &links, (&scope, &user), filled)
        .await
        .map(Upstream)
}
