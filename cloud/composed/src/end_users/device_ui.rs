//! What a person enters into a form of a supplier goes to the supplier's endpoint, under the token
//! of the account that the person linked there. Nothing of it is stored, and no connection to the
//! database is held meanwhile. Its audit entry is committed before the call.

use hub_base::budget::Holder;
use hub_base::error::{Error, Result};
use hub_core::Core;
use hub_core::audit::{Audit, Author};
use hub_core::http::body::no_memory;
use hub_devices::device_pages::of_model;
use hub_devices::external_endpoints::{self, EndpointAnswer, EndpointCall, MAX_ANSWER_BYTES};
use hub_identity::authn::user::User;
use hub_identity::authz::{Scope, UserScope};
use hub_people::supplier_links::{self, SupplierLinks};
use hub_protocol::HubUuid;
use serde_json::{Map, Value, json};

use super::{hub, of_caller};

/// Names the hub to the endpoint.
const HUB_HEADER: &str = "X-Hub-UUID";

/// A step of a form that a person has filled in, for one of their hubs.
pub struct Filled {
    pub hub_uuid: HubUuid,
    pub device_ui_id: i64,
    pub step_id: String,
    pub values: Map<String, Value>,
}

/// Sends it, and returns what the supplier's endpoint answers.
pub async fn invoke(
    core: &Core,
    links: &SupplierLinks,
    (scope, user): (&UserScope, &User),
    filled: Filled,
) -> Result<EndpointAnswer> {
    core.turns
        .device_ui
        .count(scope.user_uuid().0, core.clock.now())?;
    let _turn = core.turns.device_ui.take(scope.user_uuid().0).await?;
    let mut conn = core.db.read().await?;
    let person = of_caller(core, &mut conn, scope).await?;
    let tenant_uuid = hub(&mut conn, &person, filled.hub_uuid).await?.tenant_uuid;
    let supplier = Scope::of_person(user, tenant_uuid);
    let submission =
        of_model::submission(&mut conn, &supplier, filled.device_ui_id, &filled.step_id).await?;
    drop(conn);
    let values = filled.values;
    let checked = tokio::task::spawn_blocking(move || {
        submission.check(&values).map(|()| (submission, values))
    });
    let (submission, values) = checked.await.map_err(Error::internal)??;
    let holder = Holder {
        group: tenant_uuid.0,
        member: Some(scope.user_uuid().0),
    };
    let _held = core
        .bodies
        .answers
        .reserve(holder, MAX_ANSWER_BYTES)
        .map_err(no_memory)?;
    let bearer = supplier_links::token_for(links, scope, tenant_uuid).await?;
    let endpoint = submission.external_endpoint_id;
    // Every call has an audit entry, whatever its outcome.
    let author = Author {
        tenant_uuid: Some(tenant_uuid),
        ..Author::from(scope)
    };
    let audit = Audit::new(
        author,
        "device_ui.invoke",
        filled.device_ui_id,
        core.clock.now(),
    );
    let detail = json!({"hubUuid": filled.hub_uuid, "stepId": filled.step_id, "externalEndpointId": endpoint});
    core.db.begin().await?.commit(audit.with(detail)).await?;
    let mut headers = submission.headers;
    headers.push((HUB_HEADER.to_owned(), filled.hub_uuid.to_string()));
    let (method, path) = (submission.method, submission.path);
    external_endpoints::call(
        core,
        &supplier,
        endpoint,
        EndpointCall {
            method,
            path,
            headers,
            bearer,
            values,
        },
    )
    .await
}
