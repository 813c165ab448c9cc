//! `/tenant/mandates` and `/tenant/trade-secrets`: what the supplier of the devices sees, and what
//! it keeps from recipients.

use aide::axum::ApiRouter;
use aide::axum::routing::get_with;
use axum::extract::State;
use hub_base::error::Result;
use hub_core::Core;
use hub_core::http::answer::Answer;
use hub_core::http::check::Check;
use hub_core::http::extract::Json;
use hub_core::http::operation::operation;
use hub_core::http::page::{Listed, Page};
use hub_devices::device_instances::MAX_QUANTITY_CHARS;
use hub_identity::authz::{Authorized, permission as perm};
use schemars::JsonSchema;
use serde::Deserialize;

use super::super::store;
use super::super::trade_secrets;
use super::{MandateResponse, TradeSecretResponse, secrets_of};
use crate::Parts;

const TAG: &str = "tenant-consent";
const MAX_REASON_CHARS: usize = 1000;
const MAX_TRADE_SECRETS: usize = 64;

pub fn routes() -> ApiRouter<Parts> {
    ApiRouter::new()
        .api_route(
            "/tenant/mandates",
            get_with(
                list,
                operation(
                    "mandates.list",
                    TAG,
                    "To whom users have granted data of the tenant's devices, newest first",
                ),
            ),
        )
        .api_route(
            "/tenant/trade-secrets",
            get_with(
                secrets,
                operation(
                    "tradeSecrets.list",
                    TAG,
                    "Quantities that recipients of mandates do not get",
                ),
            )
            .put_with(
                put_secrets,
                operation(
                    "tradeSecrets.put",
                    TAG,
                    "Replace the list of quantities that are trade secrets",
                ),
            ),
        )
}

/// The quantities that are trade secrets.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct TradeSecretsRequest {
    /// All of them.
    #[schemars(length(max = MAX_TRADE_SECRETS))]
    trade_secrets: Vec<TradeSecretRequest>,
}

/// A quantity that is a trade secret.
#[derive(Debug, Deserialize, JsonSchema)]
struct TradeSecretRequest {
    /// The name of the quantity, such as `vibration`; each once.
    #[schemars(length(min = 1, max = MAX_QUANTITY_CHARS), regex(pattern = hub_protocol::patterns::FILLED_LINE))]
    quantity: String,
    /// The reason, for the people whose devices measure it.
    #[schemars(length(min = 1, max = MAX_REASON_CHARS), regex(pattern = hub_protocol::patterns::FILLED_LINE))]
    reason: String,
}

impl TradeSecretsRequest {
    fn checked(self) -> Result<Vec<(String, String)>> {
        let mut check = Check::new();
        let count = self.trade_secrets.len();
        let message = format!("must have at most {MAX_TRADE_SECRETS} items");
        check.that(count <= MAX_TRADE_SECRETS, "tradeSecrets", message);
        let mut marked: Vec<(String, String)> = Vec::new();
        let some = self.trade_secrets.into_iter().take(MAX_TRADE_SECRETS);
        for (index, TradeSecretRequest { quantity, reason }) in some.enumerate() {
            let field = |name: &str| format!("tradeSecrets[{index}].{name}");
            check.required(&field("quantity"), &quantity, MAX_QUANTITY_CHARS);
            check.required(&field("reason"), &reason, MAX_REASON_CHARS);
            let quantity = quantity.trim().to_owned();
            let is_first = !marked.iter().any(|(other, _)| *other == quantity);
            check.that(is_first, field("quantity"), "repeats another quantity");
            marked.push((quantity, reason.trim().to_owned()));
        }
        check.done()?;
        Ok(marked)
    }
}

async fn list(
    auth: Authorized<perm::ConsentRecordsRead>,
    State(core): State<Core>,
    page: Page,
) -> Result<Listed<MandateResponse>> {
    let mut conn = core.db.read().await?;
    let (rows, total) = store::list(&mut conn, &auth.scope, page.slice()).await?;
    let secrets = secrets_of(&mut conn, &rows).await?;
    let now = core.clock.now();
    let response = |row: &store::MandateRow| {
        let of_supplier = secrets.get(&row.tenant_uuid).map_or(&[][..], Vec::as_slice);
        MandateResponse::new(row, of_supplier, now)
    };
    Ok(page.listed(rows.iter().map(response).collect::<Result<_>>()?, total))
}

async fn secrets(
    auth: Authorized<perm::ConsentRead>,
    State(core): State<Core>,
) -> Result<Answer<Vec<TradeSecretResponse>>> {
    let tenant_uuid = auth.scope.tenant_uuid();
    let rows = store::trade_secrets(&mut core.db.read().await?, [tenant_uuid]).await?;
    Ok(Answer(rows.into_iter().map(Into::into).collect()))
}

async fn put_secrets(
    auth: Authorized<perm::ConsentManage>,
    State(core): State<Core>,
    Json(request): Json<TradeSecretsRequest>,
) -> Result<Answer<Vec<TradeSecretResponse>>> {
    let rows = trade_secrets::put(&core, &auth.scope, request.checked()?).await?;
    Ok(Answer(rows.into_iter().map(Into::into).collect()))
}
