//! Requests and responses of mandates: of the person, of the supplier, and of the recipient.

mod app;
mod recipient;
mod tenant;

use std::collections::{BTreeSet, HashMap};

use aide::axum::ApiRouter;
use hub_base::db::Conn;
use hub_base::error::Result;
use hub_protocol::{HubUuid, TenantUuid, Timestamp, UserUuid, text_enum};
use schemars::JsonSchema;
use serde::Serialize;
use uuid::Uuid;

pub use app::exported;
pub use recipient::{RecipientDeviceResponse, shown};

use super::store::{self, MandateRow, PushRow};
use super::{EndReason, Form, RecipientName};
use crate::Parts;

pub fn routes() -> ApiRouter<Parts> {
    ApiRouter::new()
        .merge(app::routes())
        .merge(tenant::routes())
        .merge(recipient::routes())
}

/// Whether a mandate is in force.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum MandateStatus {
    /// The recipient gets the data.
    InForce,
    /// The recipient gets nothing any more.
    Ended,
}

text_enum!(MandateStatus { InForce = "IN_FORCE", Ended = "ENDED" });

/// What a person and the supplier see of a mandate.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MandateResponse {
    /// The id of the mandate.
    mandate_uuid: Uuid,
    /// The person.
    user_uuid: UserUuid,
    /// The supplier of the devices.
    supplier_uuid: TenantUuid,
    /// Who gets the data.
    recipient: RecipientName,
    /// The hub, where it is for all devices of one.
    hub_uuid: Option<HubUuid>,
    /// The devices; null for all of the hub.
    device_instance_ids: Option<Vec<i64>>,
    /// The quantities; null for all.
    quantities: Option<Vec<String>>,
    /// Quantities that the recipient does not get, since the supplier calls them trade secrets.
    withheld: Vec<TradeSecretResponse>,
    /// Since when data is handed out.
    from: Timestamp,
    /// Until when it is.
    until: Timestamp,
    /// How the recipient gets it.
    form: Form,
    /// Whether it is in force.
    status: MandateStatus,
    /// When it was granted.
    created_at: Timestamp,
    /// When it ended.
    ended_at: Option<Timestamp>,
    /// Why it ended.
    end_reason: Option<EndReason>,
}

/// A quantity that a supplier calls a trade secret.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TradeSecretResponse {
    /// The quantity.
    quantity: String,
    /// The reason, for the person.
    reason: String,
    /// Since when it is marked.
    marked_at: Timestamp,
}

impl From<store::TradeSecretRow> for TradeSecretResponse {
    fn from(row: store::TradeSecretRow) -> Self {
        Self {
            quantity: row.quantity,
            reason: row.reason,
            marked_at: row.marked_at,
        }
    }
}

impl MandateResponse {
    fn new(row: &MandateRow, secrets: &[TradeSecretResponse], now: Timestamp) -> Result<Self> {
        let end = row.end(now);
        let quantities = row.quantities()?;
        let is_named = |secret: &&TradeSecretResponse| {
            quantities
                .as_ref()
                .is_none_or(|named| named.contains(&secret.quantity))
        };
        Ok(Self {
            mandate_uuid: row.mandate_uuid,
            user_uuid: row.user_uuid,
            supplier_uuid: row.tenant_uuid,
            recipient: row.recipient(),
            hub_uuid: row.hub_uuid,
            device_instance_ids: row.device_instance_ids()?,
            withheld: secrets.iter().filter(is_named).cloned().collect(),
            quantities,
            from: row.from_at,
            until: row.until_at,
            form: row.form,
            status: match end {
                Some(_) => MandateStatus::Ended,
                None => MandateStatus::InForce,
            },
            created_at: row.created_at,
            ended_at: end.map(|(at, _)| at),
            end_reason: end.map(|(_, reason)| reason),
        })
    }
}

/// A mandate as its person sees it.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AppMandateResponse {
    #[serde(flatten)]
    mandate: MandateResponse,
    /// Where PUSH sends to.
    destination: Option<Destination>,
    /// When the recipient last read, or last accepted a message; of reading, within a minute.
    last_used_at: Option<Timestamp>,
    /// The address from which the recipient last read.
    last_used_address: Option<String>,
    /// Why the last message was not accepted; null while messages are.
    last_error: Option<String>,
    /// A JWS of all of it as it was granted, signed with a key of `/.well-known/jwks.json`.
    receipt: String,
}

/// Where PUSH sends to.
#[derive(Debug, Serialize, serde::Deserialize, JsonSchema)]
pub struct Destination {
    /// A URL with `https`. Messages are signed as Standard Webhooks are.
    #[schemars(length(max = 2048), regex(pattern = hub_protocol::patterns::LINE))]
    pub url: String,
}

impl AppMandateResponse {
    fn new(
        row: MandateRow,
        push: Option<&PushRow>,
        secrets: &[TradeSecretResponse],
        now: Timestamp,
    ) -> Result<Self> {
        Ok(Self {
            mandate: MandateResponse::new(&row, secrets, now)?,
            destination: row.push_url.map(|url| Destination { url }),
            last_used_at: row
                .last_used_at
                .max(push.and_then(|push| push.last_sent_at)),
            last_used_address: row.last_used_address,
            last_error: push.and_then(|push| push.last_error.clone()),
            receipt: row.receipt,
        })
    }
}

/// The trade secrets of the suppliers of these mandates.
async fn secrets_of(
    conn: &mut Conn,
    rows: &[MandateRow],
) -> Result<HashMap<TenantUuid, Vec<TradeSecretResponse>>> {
    let suppliers: BTreeSet<TenantUuid> = rows.iter().map(|row| row.tenant_uuid).collect();
    let mut found: HashMap<TenantUuid, Vec<TradeSecretResponse>> = HashMap::new();
    if suppliers.is_empty() {
        return Ok(found);
    }
    for row in store::trade_secrets(conn, suppliers).await? {
        found.entry(row.tenant_uuid).or_default().push(row.into());
    }
    Ok(found)
}
