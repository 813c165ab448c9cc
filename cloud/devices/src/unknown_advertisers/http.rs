//! `/tenant/ble/unknown`: advertisers of which no model is known, or that it does not read.

use aide::axum::ApiRouter;
use aide::axum::routing::get_with;
use axum::extract::State;
use hub_base::error::Result;
use hub_core::Core;
use hub_core::http::check::searched;
use hub_core::http::extract::Query;
use hub_core::http::operation::operation;
use hub_core::http::page::{Listed, Page};
use hub_identity::authz::{Authorized, permission as perm};
use hub_protocol::{HubUuid, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use uuid::Uuid;

use super::store::{self, Filters};
use super::{KEPT_SECS, MAX_HUBS, Seen};
use crate::Parts;

pub fn routes() -> ApiRouter<Parts> {
    ApiRouter::new().api_route(
        "/tenant/ble/unknown",
        get_with(
            list,
            operation(
                "unknownAdvertisers.list",
                "tenant-ble",
                "Advertisers of the last 24 hours that no model reads, latest first",
            ),
        ),
    )
}

const MAX_SEARCH_CHARS: usize = 200;

/// Filters of a list.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UnknownQuery {
    /// Only advertisers that this hub received.
    hub_uuid: Option<HubUuid>,
    /// A part of the name or the address, in any case.
    #[schemars(length(max = MAX_SEARCH_CHARS), regex(pattern = hub_protocol::patterns::LINE))]
    q: Option<String>,
}

/// An advertiser that is of no known model. Those whose address changes are counted together by
/// what they advertise.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UnknownAdvertiserResponse {
    /// The address, the last one where it changes. It is the `fromUnknown` of a new device model.
    address: String,
    /// `public` or `random`; null if hubs did not report it.
    address_type: Option<String>,
    /// The name that it advertises.
    name: Option<String>,
    /// The company identifier of its manufacturer data: 4 lower-case hex digits.
    company_id: Option<String>,
    /// The name of the company, where it is known.
    company_name: Option<&'static str>,
    /// The services that it advertises, or has data of.
    service_uuids: Vec<String>,
    /// Advertisements received.
    #[schemars(range(min = 1))]
    count: i64,
    /// Hubs that received it, 64 at most.
    #[schemars(length(max = MAX_HUBS))]
    hub_uuids: Vec<HubUuid>,
    /// The strongest signal, in dBm.
    rssi_max: Option<i16>,
    /// When it was first received.
    first_seen_at: Timestamp,
    /// When it was last received.
    last_seen_at: Timestamp,
    /// One of its advertisements, as a hub sent it.
    sample: Map<String, Value>,
    /// The model of the tenant that fits it and does not read it; null if none fits.
    device_uuid: Option<Uuid>,
    /// Why that model does not read it, as a sentence.
    unread_reason: Option<String>,
    /// Models of the library that fit it, the most specific first: values of `template`.
    suggestions: Vec<&'static str>,
}

impl From<Seen> for UnknownAdvertiserResponse {
    fn from(seen: Seen) -> Self {
        Self {
            company_name: seen.company_id.and_then(hub_adverts::company::company_name),
            company_id: seen.company_id.map(|id| format!("{id:04x}")),
            suggestions: seen.suggestions(),
            sample: serde_json::from_str(&seen.sample).unwrap_or_default(),
            address: seen.address,
            address_type: seen.address_type,
            name: seen.name,
            service_uuids: seen.service_uuids,
            count: seen.count,
            hub_uuids: seen.hub_uuids,
            rssi_max: seen.rssi_max,
            first_seen_at: seen.first_seen_at,
            last_seen_at: seen.last_seen_at,
            device_uuid: seen.device_uuid,
            unread_reason: seen.unread_reason,
        }
    }
}

async fn list(
    auth: Authorized<perm::BleRead>,
    State(core): State<Core>,
    page: Page,
    Query(query): Query<UnknownQuery>,
) -> Result<Listed<UnknownAdvertiserResponse>> {
    let search = searched(query.q.as_deref(), MAX_SEARCH_CHARS)?.map(str::to_owned);
    let filters = Filters {
        hub_uuid: query.hub_uuid,
        search,
    };
    let since = core.clock.now().plus_secs(-KEPT_SECS);
    let mut conn = core.db.read().await?;
    let (seen, total) = store::list(&mut conn, &auth.scope, since, &filters, page.slice()).await?;
    Ok(page.listed(
        seen.into_iter()
            .map(UnknownAdvertiserResponse::from)
            .collect(),
        total,
    ))
}
