//! `/tenant/vulnerabilities`.

use aide::axum::ApiRouter;
use aide::axum::routing::{get_with, put_with};
use axum::extract::State;
use hub_base::error::Result;
use hub_core::Core;
use hub_core::http::answer::Answer;
use hub_core::http::check::{Check, searched};
use hub_core::http::extract::{Json, Path, Query};
use hub_core::http::operation::{operation, operation_failing};
use hub_core::http::page::{Listed, Page};
use hub_fleet::releases::NamedRelease;
use hub_identity::authz::{Authorized, permission as perm};
use hub_protocol::{AppUuid, HubUuid, ReleaseUuid, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::counts::Counts;
use super::own::Devices;
use super::standing::Standing;
use super::statements::{self, Given, MAX_TEXT_CHARS, Statement, VexJustification, VexStatus};
use super::store::{Filters, VulnerabilitySource};
use super::view::{self, AffectedPackage, HubShown, MAX_PACKAGES, MAX_RELEASES, Shown};
use super::{MAX_ID_CHARS, own_view};
use crate::Parts;
use crate::severity::VulnerabilitySeverity;

const TAG: &str = "tenant-vulnerabilities";
/// Longest text to search for.
const MAX_SEARCH_CHARS: usize = 200;

pub fn routes() -> ApiRouter<Parts> {
    ApiRouter::new()
        .merge(super::platform::routes())
        .merge(super::evidence::http::routes())
        .merge(super::openvex::routes())
        .merge(super::own::http::routes())
        .api_route(
            "/tenant/vulnerabilities",
            get_with(
                list,
                operation_failing(
                    &[404],
                    "vulnerabilities.list",
                    TAG,
                    "Vulnerabilities of what hubs run, the worst first",
                ),
            ),
        )
        .api_route(
            "/tenant/vulnerabilities/{vulnerabilityId}/hubs",
            get_with(
                list_hubs,
                operation(
                    "vulnerabilities.listHubs",
                    TAG,
                    "How hubs stand to a vulnerability",
                ),
            ),
        )
        .api_route(
            "/tenant/vulnerabilities/{vulnerabilityId}/statement",
            put_with(
                put_statement,
                operation(
                    "vulnerabilities.putStatement",
                    TAG,
                    "State what a vulnerability means here",
                ),
            ),
        )
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VulnerabilityPath {
    /// The id of the vulnerability, such as `CVE-2024-3094`.
    pub vulnerability_id: String,
}

impl VulnerabilityPath {
    pub fn checked(self) -> Result<String> {
        let mut check = Check::new();
        check.required("vulnerabilityId", &self.vulnerability_id, MAX_ID_CHARS);
        check.done()?;
        Ok(self.vulnerability_id)
    }
}

/// Filters of the list.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VulnerabilityQuery {
    /// Part of the id or of the title in any case, or the name of a package.
    #[schemars(length(max = MAX_SEARCH_CHARS), regex(pattern = hub_protocol::patterns::LINE))]
    q: Option<String>,
    /// Only those that affect what this hub runs.
    hub_uuid: Option<HubUuid>,
    /// Only those that affect hubs which run this release of an app.
    release_uuid: Option<ReleaseUuid>,
    /// Only those of this severity.
    severity: Option<VulnerabilitySeverity>,
    /// Only those that are known to be exploited, or only the others.
    exploited: Option<bool>,
    /// Only those that are published, or only own advisories.
    source: Option<VulnerabilitySource>,
}

impl VulnerabilityQuery {
    fn checked(self) -> Result<Filters> {
        Ok(Filters {
            search: searched(self.q.as_deref(), MAX_SEARCH_CHARS)?.map(str::to_owned),
            hub_uuid: self.hub_uuid,
            release_uuid: self.release_uuid,
            severity: self.severity,
            exploited: self.exploited,
            source: self.source,
            own: Vec::new(),
        })
    }
}

/// A package that a vulnerability affects.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AffectedPackageResponse {
    /// Where the package is from, such as `Debian:12`.
    ecosystem: String,
    /// Its name; of Debian that of the source package.
    name: String,
    /// The version that hubs have.
    version: String,
    /// The first version that is not affected; null while there is none.
    fixed_in: Option<String>,
}

impl From<AffectedPackage> for AffectedPackageResponse {
    fn from(package: AffectedPackage) -> Self {
        Self {
            ecosystem: package.ecosystem,
            name: package.name,
            version: package.version,
            fixed_in: package.fixed_in,
        }
    }
}

/// A release with an affected component.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AffectedReleaseResponse {
    /// The app.
    app_uuid: AppUuid,
    /// The name of the app.
    app_name: String,
    /// The release.
    release_uuid: ReleaseUuid,
    /// Its version.
    version: String,
}

impl From<NamedRelease> for AffectedReleaseResponse {
    fn from(release: NamedRelease) -> Self {
        Self {
            app_uuid: release.app_uuid,
            app_name: release.app_name,
            release_uuid: release.release_uuid,
            version: release.version,
        }
    }
}

/// How many hubs stand how to a vulnerability.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HubCountsResponse {
    /// Those that have an affected package.
    #[schemars(range(min = 0))]
    exposed: i64,
    /// Those that have one, and are not affected as the tenant states.
    #[schemars(range(min = 0))]
    not_affected: i64,
    /// Those that had one, or have one in which it is fixed as the tenant states.
    #[schemars(range(min = 0))]
    fixed: i64,
    /// Those that have one, and on which a job that installs a release is open.
    #[schemars(range(min = 0))]
    updating: i64,
}

impl From<Counts> for HubCountsResponse {
    fn from(counts: Counts) -> Self {
        Self {
            exposed: counts.exposed,
            not_affected: counts.not_affected,
            fixed: counts.fixed,
            updating: counts.updating,
        }
    }
}

/// Devices of the models that an own advisory is about.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeviceCountsResponse {
    /// Those whose firmware is affected.
    #[schemars(range(min = 0))]
    affected: i64,
    /// Those whose firmware is not known, or cannot be compared.
    #[schemars(range(min = 0))]
    unknown: i64,
}

impl From<Devices> for DeviceCountsResponse {
    fn from(devices: Devices) -> Self {
        Self {
            affected: devices.affected,
            unknown: devices.unknown,
        }
    }
}

/// A vulnerability of what hubs run.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VulnerabilityResponse {
    /// The CVE, or the id of the advisory where it has none.
    id: String,
    /// The severity, as those who published it judge it.
    severity: VulnerabilitySeverity,
    /// Whether it is known to be exploited.
    exploited: bool,
    /// What it is, in one line.
    title: String,
    /// What it affects of what hubs have, or had.
    #[schemars(length(max = MAX_PACKAGES))]
    packages: Vec<AffectedPackageResponse>,
    /// The tenant's releases that have one of the packages as a component, by app and version;
    /// none of an own advisory, whose packages are apps.
    #[schemars(length(max = MAX_RELEASES))]
    releases: Vec<AffectedReleaseResponse>,
    /// The hubs of the tenant.
    hubs: HubCountsResponse,
    /// The devices of the models that an own advisory is about; null of all else.
    devices: Option<DeviceCountsResponse>,
    /// Where it is from.
    source: VulnerabilitySource,
    /// When it was first seen here.
    first_seen_at: Timestamp,
}

impl From<Shown> for VulnerabilityResponse {
    fn from(shown: Shown) -> Self {
        Self {
            severity: shown.listed.severity(),
            id: shown.listed.vulnerability_id,
            exploited: shown.listed.exploited,
            title: shown.listed.title,
            packages: shown.packages.into_iter().map(Into::into).collect(),
            releases: shown.releases.into_iter().map(Into::into).collect(),
            hubs: shown.hubs.into(),
            devices: shown.devices.map(Into::into),
            source: shown.listed.source,
            first_seen_at: shown.listed.first_seen_at,
        }
    }
}

/// What the tenant states about a vulnerability.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StatementResponse {
    /// The status, in the words of OpenVEX.
    status: VexStatus,
    /// Why it is not affected.
    justification: Option<VexJustification>,
    /// Why it is not affected, in the words of the tenant.
    impact_statement: Option<String>,
    /// What is to be done.
    action_statement: Option<String>,
    /// The release of an app that it is about; null where it is about all hubs.
    release_uuid: Option<ReleaseUuid>,
    /// Who made it, such as `USER:` or `API_KEY:` with an id.
    author: String,
    /// When it was made.
    updated_at: Timestamp,
}

impl From<Statement> for StatementResponse {
    fn from(statement: Statement) -> Self {
        Self {
            status: statement.status,
            justification: statement.justification,
            impact_statement: statement.impact,
            action_statement: statement.action,
            release_uuid: statement.release_uuid,
            author: statement.author,
            updated_at: statement.updated_at,
        }
    }
}

/// How a hub stands to a vulnerability.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VulnerableHubResponse {
    /// The hub.
    hub_uuid: HubUuid,
    /// The display label of the hub.
    hub_identifier: Option<String>,
    /// How it stands.
    status: Standing,
    /// The statement that decides it; null where none does.
    statement: Option<StatementResponse>,
    /// What it has, or had last, that is affected.
    #[schemars(length(max = MAX_PACKAGES))]
    packages: Vec<AffectedPackageResponse>,
    /// Since when it has an affected package; of a hub that has none any more, since when.
    since: Timestamp,
}

impl From<HubShown> for VulnerableHubResponse {
    fn from(hub: HubShown) -> Self {
        Self {
            hub_uuid: hub.hub_uuid,
            hub_identifier: hub.hub_identifier,
            status: hub.standing,
            statement: hub.statement.map(Into::into),
            packages: hub.packages.into_iter().map(Into::into).collect(),
            since: hub.since,
        }
    }
}

/// A statement about a vulnerability, in place of the one before it about the same.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StatementRequest {
    /// The status, in the words of OpenVEX.
    status: VexStatus,
    /// Why it is not affected.
    justification: Option<VexJustification>,
    /// Why it is not affected, in your words; required of `not_affected` without a justification.
    #[schemars(length(max = MAX_TEXT_CHARS), regex(pattern = hub_protocol::patterns::LINES))]
    impact_statement: Option<String>,
    /// What is to be done; required of `affected`.
    #[schemars(length(max = MAX_TEXT_CHARS), regex(pattern = hub_protocol::patterns::LINES))]
    action_statement: Option<String>,
    /// The release of an app whose hubs it is about; all hubs when absent.
    release_uuid: Option<ReleaseUuid>,
}

impl From<StatementRequest> for Given {
    fn from(request: StatementRequest) -> Self {
        Self {
            release_uuid: request.release_uuid,
            status: request.status,
            justification: request.justification,
            impact: request.impact_statement,
            action: request.action_statement,
        }
    }
}

async fn list(
    auth: Authorized<perm::VulnerabilitiesRead>,
    State(core): State<Core>,
    page: Page,
    Query(query): Query<VulnerabilityQuery>,
) -> Result<Listed<VulnerabilityResponse>> {
    let mut filters = query.checked()?;
    let mut conn = core.db.read().await?;
    own_view::narrow(&mut conn, &auth.scope, &mut filters).await?;
    let (shown, total) = view::list(&mut conn, &auth.scope, &filters, page.slice()).await?;
    Ok(page.listed(shown.into_iter().map(Into::into).collect(), total))
}

async fn list_hubs(
    auth: Authorized<perm::VulnerabilitiesRead>,
    State(core): State<Core>,
    Path(path): Path<VulnerabilityPath>,
    page: Page,
) -> Result<Listed<VulnerableHubResponse>> {
    let id = path.checked()?;
    let mut conn = core.db.read().await?;
    let (hubs, total) = view::hubs_of(&mut conn, &auth.scope, &id, page.slice()).await?;
    Ok(page.listed(hubs.into_iter().map(Into::into).collect(), total))
}

async fn put_statement(
    auth: Authorized<perm::VulnerabilitiesOperate>,
    State(core): State<Core>,
    Path(path): Path<VulnerabilityPath>,
    Json(request): Json<StatementRequest>,
) -> Result<Answer<StatementResponse>> {
    let id = path.checked()?;
    let statement = statements::put(&core, &auth.scope, &id, request.into()).await?;
    Ok(Answer(statement.into()))
}
