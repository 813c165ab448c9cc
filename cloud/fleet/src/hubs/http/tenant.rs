//! `/tenant/hubs`: a tenant's own hubs and their adapters.

use aide::axum::ApiRouter;
use aide::axum::routing::{get_with, patch_with, post_with};
use axum::extract::State;
use hub_base::error::Result;
use hub_core::config::Config;
use hub_core::http::answer::Answer;
use hub_core::http::check::{Check, filled};
use hub_core::http::extract::{Json, JsonOrNothing, Path, Query};
use hub_core::http::operation::{operation, operation_failing};
use hub_core::http::page::{Listed, Page};
use hub_core::http::patch;
use hub_identity::authz::{Authorized, Scope, permission as perm};
use hub_protocol::claim::OperatingSystem;
use hub_protocol::hub::AdapterRole;
use hub_protocol::{HubUuid, TenantUuid, Timestamp, UserUuid};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::super::adapters::{self, AdapterUpdate, AdapterView};
use super::super::store::HubRow;
use super::super::store::clones::Appearance;
use super::super::store::list::{Filters, Status};
use super::super::versions::VersionFilter;
use super::super::{
    self as hubs, MAX_IDENTIFIER_CHARS, clones, countries, floods, readmit, refresh, store,
};
use crate::Parts;
use crate::hubs::Hubs;
use crate::hubs::http::HubPath;

pub fn routes() -> ApiRouter<Parts> {
    ApiRouter::new()
        .api_route(
            "/tenant/hubs",
            get_with(
                list,
                operation("hubs.list", "tenant-hubs", "Hubs, newest first"),
            ),
        )
        .api_route(
            "/tenant/hubs/{hubUuid}",
            get_with(get, operation("hubs.get", "tenant-hubs", "One hub")).patch_with(
                update,
                operation("hubs.update", "tenant-hubs", "Label or describe a hub"),
            ),
        )
        .api_route(
            "/tenant/hubs/{hubUuid}/readmit",
            post_with(
                readmit,
                operation_failing(
                    &[409],
                    "hubs.readmit",
                    "tenant-hubs",
                    "Let a hub that was away for too long refresh its token",
                ),
            ),
        )
        .api_route(
            "/tenant/hubs/{hubUuid}/adapters",
            get_with(
                list_adapters,
                operation(
                    "hubs.listAdapters",
                    "tenant-hubs",
                    "A hub's Bluetooth adapters",
                ),
            ),
        )
        .api_route(
            "/tenant/hubs/{hubUuid}/adapters/{address}",
            patch_with(
                update_adapter,
                operation(
                    "hubs.updateAdapter",
                    "tenant-hubs",
                    "Set the role of an adapter",
                ),
            ),
        )
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AdapterPath {
    /// The hub.
    pub hub_uuid: HubUuid,
    /// The address of the adapter, such as `00:1A:7D:DA:71:13`.
    pub address: String,
}

/// Longest description of a hub.
const MAX_DESCRIPTION_CHARS: usize = 2000;

/// Longest text to search for.
const MAX_SEARCH_CHARS: usize = 200;
/// Longest version to compare with.
const MAX_VERSION_CHARS: usize = 64;

/// Filters of a list.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HubQuery {
    /// Only hubs with this status.
    status: Option<HubStatus>,
    /// Part of the label, in any case.
    #[schemars(length(max = MAX_SEARCH_CHARS), regex(pattern = hub_protocol::patterns::LINE))]
    label: Option<String>,
    /// Part of the label, the host name or the hardware identity, in any case.
    #[schemars(length(max = MAX_SEARCH_CHARS), regex(pattern = hub_protocol::patterns::LINE))]
    q: Option<String>,
    /// The version of the agent: `1.4` for it and those that begin with it, or `<1.4`, `<=1.4.2`,
    /// `>1.4`, `>=1.4`.
    #[schemars(length(max = MAX_VERSION_CHARS), regex(pattern = hub_protocol::patterns::LINE))]
    version: Option<String>,
    /// Only hubs that were last seen at this time or later.
    seen_from: Option<Timestamp>,
    /// Only hubs that were last seen before this time, or never.
    seen_to: Option<Timestamp>,
}

impl HubQuery {
    fn checked(self) -> Result<Filters> {
        let mut check = Check::new();
        check.line("label", self.label.as_deref(), MAX_SEARCH_CHARS);
        check.line("q", self.q.as_deref(), MAX_SEARCH_CHARS);
        check.line("version", self.version.as_deref(), MAX_VERSION_CHARS);
        let version = filled(self.version.as_deref()).map(VersionFilter::parse);
        check.that(
            !matches!(version, Some(None)),
            "version",
            "must be a version, or one of its first numbers, after `<`, `<=`, `>`, `>=` or nothing",
        );
        check.done()?;
        let status = self.status.map(|status| match status {
            HubStatus::Blocked => Status::Blocked,
            HubStatus::Online => Status::Online,
            HubStatus::Offline => Status::Offline,
        });
        let text = |given: Option<String>| filled(given.as_deref()).map(str::to_owned);
        Ok(Filters {
            status,
            label: text(self.label),
            search: text(self.q),
            version: version.flatten(),
            seen_from: self.seen_from,
            seen_to: self.seen_to,
        })
    }
}

/// The status of a hub: the first that applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum HubStatus {
    /// A platform administrator has blocked it.
    Blocked,
    /// Telemetry arrived within the last 10 minutes.
    Online,
    /// No telemetry arrived within the last 10 minutes.
    Offline,
}

/// A hub.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HubSummaryResponse {
    /// The hub.
    hub_uuid: HubUuid,
    /// The display label of the hub.
    hub_identifier: Option<String>,
    /// The hardware identity of the hub.
    device_instance_id: String,
    /// The version of its agent, as last reported.
    agent_version: Option<String>,
    /// The host name of the machine.
    hostname: Option<String>,
    /// The status of the hub.
    status: HubStatus,
    /// Whether telemetry arrived within the last 10 minutes.
    online: bool,
    /// The last upload, report, claim or refresh.
    last_seen_at: Option<Timestamp>,
    /// The last telemetry.
    last_telemetry_at: Option<Timestamp>,
    /// The last claim.
    claimed_at: Timestamp,
    /// The first claim.
    created_at: Timestamp,
    /// When the hub cannot refresh its token any more, unless it does before. Null when its tokens
    /// were revoked.
    refresh_expires_at: Option<Timestamp>,
    /// Whether two machines seem to have the credentials of this hub.
    suspected_clone: bool,
    /// Whether it uploads far more than its share of the tenant's limit.
    flooding: bool,
}

/// From where the hub has refreshed its token.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AppearanceResponse {
    /// The boot of the machine; null where its agent does not say.
    boot_id: Option<String>,
    /// The address; null where it is not known.
    address: Option<String>,
    /// The first refresh from there.
    first_at: Timestamp,
    /// The last refresh from there.
    last_at: Timestamp,
}

impl From<Appearance> for AppearanceResponse {
    fn from(seen: Appearance) -> Self {
        let known = |text: String| Some(text).filter(|text| !text.is_empty());
        Self {
            boot_id: known(seen.boot_id),
            address: known(seen.address),
            first_at: seen.first_at,
            last_at: seen.last_at,
        }
    }
}

/// A hub with its adapters.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HubDetailResponse {
    #[serde(flatten)]
    summary: HubSummaryResponse,
    /// Free-text description.
    description: Option<String>,
    /// The country that it is in (ISO 3166-1 alpha-2), as somebody has set it.
    country: Option<String>,
    /// The operating system of the machine.
    os: Option<OperatingSystem>,
    /// The app user that the hub belongs to.
    owner_user_uuid: Option<UserUuid>,
    /// The time of the block; null without one.
    blocked_at: Option<Timestamp>,
    /// Its Bluetooth adapters.
    adapters: Vec<AdapterView>,
    /// From where it has refreshed its token in the last day, the last first, while two machines
    /// seem to have its credentials; else empty. The one that was seen first is the original.
    clones: Vec<AppearanceResponse>,
}

impl HubSummaryResponse {
    pub fn new(hub: HubRow, config: &Config, now: Timestamp) -> Self {
        let online = hubs::is_online(hub.last_telemetry_at, now);
        let status = match (hub.blocked_at, online) {
            (Some(_), _) => HubStatus::Blocked,
            (None, true) => HubStatus::Online,
            (None, false) => HubStatus::Offline,
        };
        Self {
            hub_uuid: hub.hub_uuid,
            hub_identifier: hub.hub_identifier,
            device_instance_id: hub.device_instance_id,
            agent_version: hub.agent_version,
            hostname: hub.hostname,
            status,
            online,
            last_seen_at: hub.last_seen_at,
            last_telemetry_at: hub.last_telemetry_at,
            claimed_at: hub.claimed_at,
            created_at: hub.created_at,
            refresh_expires_at: refresh::expires_at(config, hub.refreshed_at, hub.readmitted_until),
            suspected_clone: clones::is_suspected(hub.turns, hub.turned_at, now),
            flooding: floods::is_flooding(hub.flooded_at, now),
        }
    }
}

impl HubDetailResponse {
    fn new(
        mut hub: HubRow,
        adapters: Vec<AdapterView>,
        clones: Vec<Appearance>,
        config: &Config,
        now: Timestamp,
    ) -> Self {
        Self {
            description: hub.description.take(),
            country: hub.country.take(),
            os: hub.os.take().map(|os| os.0),
            owner_user_uuid: hub.owner_user_uuid,
            blocked_at: hub.blocked_at,
            adapters,
            clones: clones.into_iter().map(AppearanceResponse::from).collect(),
            summary: HubSummaryResponse::new(hub, config, now),
        }
    }
}

/// Changes to make. An absent or null member leaves the stored value unchanged, and empty text
/// removes it.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HubUpdateRequest {
    /// Display label.
    #[schemars(length(max = MAX_IDENTIFIER_CHARS), regex(pattern = hub_protocol::patterns::LINE))]
    hub_identifier: Option<String>,
    /// Free-text description.
    #[schemars(length(max = MAX_DESCRIPTION_CHARS), regex(pattern = hub_protocol::patterns::LINES))]
    description: Option<String>,
    /// The country that the hub is in: two letters of ISO 3166-1, such as `DE`.
    #[schemars(length(max = 2))]
    country: Option<String>,
    /// The members whose stored values are removed.
    #[schemars(length(max = MAX_CLEAR))]
    clear: Option<Vec<Removable>>,
}

/// A member of a hub that a change can remove.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "HubRemovable")]
enum Removable {
    HubIdentifier,
    Description,
    Country,
}

/// The most members that a change names to remove: each of them once.
const MAX_CLEAR: usize = 3;

impl HubUpdateRequest {
    fn checked(mut self) -> Result<Self> {
        let mut check = Check::new();
        let clear = self.clear.take();
        patch::clear(&mut check, clear, MAX_CLEAR, |member| {
            let value = match member {
                Removable::HubIdentifier => &mut self.hub_identifier,
                Removable::Description => &mut self.description,
                Removable::Country => &mut self.country,
            };
            let has_value = value.as_deref().is_some_and(|text| !text.is_empty());
            // An empty text removes it.
            *value = Some(String::new());
            has_value
        });
        check.line(
            "hubIdentifier",
            self.hub_identifier.as_deref(),
            MAX_IDENTIFIER_CHARS,
        );
        check.lines(
            "description",
            self.description.as_deref(),
            MAX_DESCRIPTION_CHARS,
        );
        let country = self.country.as_deref();
        check.that(
            country.is_none_or(|country| country.is_empty() || countries::is_country(country)),
            "country",
            "must be two capital letters of ISO 3166-1, such as DE",
        );
        check.done().map(|()| self)
    }
}

/// Changes to an adapter. An absent or null member leaves the stored value unchanged.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "HubAdapterUpdateRequest")]
pub struct UpdateRequest {
    /// The role of the adapter.
    role: Option<AdapterRole>,
    /// The tenant itself; no other is accepted.
    #[serde(alias = "supplierUuid")]
    supplier_uuid: Option<TenantUuid>,
}

async fn list(
    auth: Authorized<perm::HubsRead>,
    State(hubs): State<Hubs>,
    page: Page,
    Query(query): Query<HubQuery>,
) -> Result<Listed<HubSummaryResponse>> {
    let filters = query.checked()?;
    let now = hubs.core.clock.now();
    let mut conn = hubs.core.db.read().await?;
    let (rows, total) = hubs::list(&mut conn, &auth.scope, filters, now, page.slice()).await?;
    Ok(page.listed(
        rows.into_iter()
            .map(|hub| HubSummaryResponse::new(hub, &hubs.core.config, now))
            .collect(),
        total,
    ))
}

async fn get(
    auth: Authorized<perm::HubsRead>,
    State(hubs): State<Hubs>,
    Path(HubPath { hub_uuid }): Path<HubPath>,
) -> Result<Answer<HubDetailResponse>> {
    detail(&hubs, &auth.scope, hub_uuid).await
}

async fn detail(
    hubs: &Hubs,
    scope: &Scope,
    hub_uuid: HubUuid,
) -> Result<Answer<HubDetailResponse>> {
    let mut conn = hubs.core.db.read().await?;
    let hub = hubs::get(&mut conn, scope, hub_uuid).await?;
    let adapters = store::adapters::list(&mut conn, scope, hub_uuid).await?;
    let now = hubs.core.clock.now();
    let clones = match clones::is_suspected(hub.turns, hub.turned_at, now) {
        true => {
            let all = store::clones::appearances(&mut conn, hub_uuid).await?;
            clones::seen_lately(all, now)
        }
        false => Vec::new(),
    };
    Ok(Answer(HubDetailResponse::new(
        hub,
        adapters,
        clones,
        &hubs.core.config,
        now,
    )))
}

/// How long the hub may take to come back.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HubReadmitRequest {
    /// Seconds; seven days when absent.
    #[schemars(range(min = readmit::LEAST_SECS, max = readmit::MOST_SECS))]
    valid_for_seconds: Option<i64>,
}

async fn readmit(
    auth: Authorized<perm::HubsOperate>,
    State(hubs): State<Hubs>,
    Path(HubPath { hub_uuid }): Path<HubPath>,
    JsonOrNothing(request): JsonOrNothing<HubReadmitRequest>,
) -> Result<Answer<HubDetailResponse>> {
    let valid_for_secs = request.valid_for_seconds.unwrap_or(readmit::DEFAULT_SECS);
    let mut check = Check::new();
    check.that(
        (readmit::LEAST_SECS..=readmit::MOST_SECS).contains(&valid_for_secs),
        "validForSeconds",
        "must be from 60 seconds to 90 days",
    );
    check.done()?;
    readmit::readmit(&hubs, &auth.scope, hub_uuid, valid_for_secs).await?;
    detail(&hubs, &auth.scope, hub_uuid).await
}

async fn update(
    auth: Authorized<perm::HubsWrite>,
    State(hubs): State<Hubs>,
    Path(HubPath { hub_uuid }): Path<HubPath>,
    Json(request): Json<HubUpdateRequest>,
) -> Result<Answer<HubDetailResponse>> {
    let HubUpdateRequest {
        hub_identifier,
        description,
        country,
        ..
    } = request.checked()?;
    let hub_identifier = hub_identifier.as_deref().map(str::trim);
    let description = description.as_deref().map(str::trim);
    let country = country.as_deref();
    if hub_identifier.is_some() || description.is_some() || country.is_some() {
        let changes = (hub_identifier, description, country);
        hubs::update(&hubs, &auth.scope, hub_uuid, changes).await?;
    }
    detail(&hubs, &auth.scope, hub_uuid).await
}

async fn list_adapters(
    auth: Authorized<perm::HubsRead>,
    State(hubs): State<Hubs>,
    Path(HubPath { hub_uuid }): Path<HubPath>,
) -> Result<Answer<Vec<AdapterView>>> {
    let mut conn = hubs.core.db.read().await?;
    hubs::require(&mut conn, &auth.scope, hub_uuid).await?;
    store::adapters::list(&mut conn, &auth.scope, hub_uuid)
        .await
        .map(Answer)
}

async fn update_adapter(
    auth: Authorized<perm::HubsWrite>,
    State(hubs): State<Hubs>,
    Path(AdapterPath { hub_uuid, address }): Path<AdapterPath>,
    Json(request): Json<UpdateRequest>,
) -> Result<Answer<AdapterView>> {
    let update = AdapterUpdate {
        role: request.role,
        supplier_uuid: request.supplier_uuid,
    };
    adapters::update(&hubs, &auth.scope, hub_uuid, &address, update)
        .await
        .map(Answer)
}
