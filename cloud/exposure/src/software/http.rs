//! `POST /v1/hubs/{hubUuid}/packages`, and what a hub runs under `/tenant/hubs`.

use std::collections::BTreeMap;

use aide::axum::ApiRouter;
use aide::axum::routing::{get_with, post_with};
use axum::extract::State;
use hub_base::db::Slice;
use hub_base::error::Result;
use hub_core::Core;
use hub_core::http::answer::Answer;
use hub_core::http::check::searched;
use hub_core::http::extract::{Path, Query};
use hub_core::http::operation::operation;
use hub_core::http::page::{PageOf, Pageable};
use hub_fleet::hubs::http::HubPath;
use hub_identity::authn::hub::Hub;
use hub_identity::authz::{Authorized, permission as perm};
use hub_ingest::UploadBody;
use hub_protocol::Timestamp;
use hub_protocol::packages::{Package, PackageList, SoftwareReport, SoftwareReportResult};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Packed, Running};
use crate::Parts;

/// The largest report: a list of the most packages.
const MAX_REPORT_BYTES: usize = 4 * 1024 * 1024;
/// Longest text to search for.
const MAX_SEARCH_CHARS: usize = 200;

pub fn routes() -> ApiRouter<Parts> {
    ApiRouter::new()
        .api_route(
            "/v1/hubs/{hubUuid}/packages",
            post_with(
                report,
                operation(
                    "hub.reportPackages",
                    "hub-api",
                    "Report the packages of the machine, and what else it runs",
                ),
            ),
        )
        .api_route(
            "/tenant/hubs/{hubUuid}/packages",
            get_with(
                packages,
                operation("hubs.listPackages", "tenant-hubs", "What a hub runs"),
            ),
        )
}

/// The packages to show.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct PackagesQuery {
    /// Part of the name of a package or of its source package, in any case.
    #[schemars(length(max = MAX_SEARCH_CHARS), regex(pattern = hub_protocol::patterns::LINE))]
    q: Option<String>,
}

/// What a hub runs.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HubPackagesResponse {
    /// The machine; null before the first report of the hub.
    system: Option<SystemResponse>,
    /// The packages by name.
    packages: PageOf<Package>,
}

/// The machine of a hub, as it reports it.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SystemResponse {
    /// `ID` of os-release, such as `debian`.
    distribution: String,
    /// `VERSION_ID` of os-release, such as `12`; empty where there is none.
    distribution_version: String,
    /// The SHA-256 of the list of packages, which hubs that are alike share.
    packages_sha256: String,
    /// The release of the running kernel.
    kernel: Option<String>,
    /// The version of `bluetoothd`.
    bluez: Option<String>,
    /// The version of the agent.
    agent: String,
    /// The firmware of adapters by their addresses.
    adapter_firmware: BTreeMap<String, String>,
    /// Since when the hub runs exactly this.
    since: Timestamp,
}

async fn report(
    hub: Hub,
    Path(HubPath { hub_uuid: _ }): Path<HubPath>,
    State(core): State<Core>,
    body: UploadBody<SoftwareReport>,
) -> Result<Answer<SoftwareReportResult>> {
    let turns = &core.turns.reports;
    let (report, _turn) = body
        .report_up_to(MAX_REPORT_BYTES, &core, turns, &hub)
        .await?;
    super::report(&core, &hub, report).await.map(Answer)
}

async fn packages(
    auth: Authorized<perm::HubsRead>,
    State(core): State<Core>,
    Path(HubPath { hub_uuid }): Path<HubPath>,
    page: Pageable,
    Query(query): Query<PackagesQuery>,
) -> Result<Answer<HubPackagesResponse>> {
    let part = searched(query.q.as_deref(), MAX_SEARCH_CHARS)?.map(str::to_lowercase);
    let mut conn = core.db.read().await?;
    let Some((running, packed)) = super::of_hub(&mut conn, &auth.scope, hub_uuid).await? else {
        return Ok(Answer(HubPackagesResponse {
            system: None,
            packages: page.page_of(Vec::new(), 0),
        }));
    };
    drop(conn);
    let slice = page.slice();
    let found = core.bodies.work(move || found(&packed, part, slice));
    let (list, total) = found.await??;
    Ok(Answer(HubPackagesResponse {
        system: Some(system(
            running,
            list.distribution,
            list.distribution_version,
        )),
        packages: page.page_of(list.packages, total),
    }))
}

/// A list with a page of the packages whose name, or that of whose source package, has a part in
/// it; and how many there are.
fn found(packed: &Packed, part: Option<String>, slice: Slice) -> Result<(PackageList, i64)> {
    let mut list = packed.packages()?;
    let fits = |package: &Package| {
        part.as_deref().is_none_or(|part| {
            let contains = |text: &str| text.to_lowercase().contains(part);
            contains(&package.name) || package.source.as_deref().is_some_and(contains)
        })
    };
    list.packages.retain(fits);
    let total = i64::try_from(list.packages.len()).unwrap_or(i64::MAX);
    let count = |number: i64| usize::try_from(number).unwrap_or(0);
    let page = list.packages.into_iter().skip(count(slice.offset));
    list.packages = page.take(count(slice.size)).collect();
    Ok((list, total))
}

fn system(running: Running, distribution: String, distribution_version: String) -> SystemResponse {
    SystemResponse {
        distribution,
        distribution_version,
        packages_sha256: hex::encode(&running.list_sha256),
        kernel: running.kernel,
        bluez: running.bluez,
        agent: running.agent,
        adapter_firmware: serde_json::from_str(&running.adapter_firmware).unwrap_or_default(),
        since: running.began_at,
    }
}
