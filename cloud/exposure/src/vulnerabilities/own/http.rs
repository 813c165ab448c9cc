//! `/tenant/advisories`.

use aide::axum::ApiRouter;
use aide::axum::routing::get_with;
use axum::extract::State;
use hub_advisories::osv;
use hub_base::error::Result;
use hub_core::Core;
use hub_core::http::answer::{Answer, Created, NoContent};
use hub_core::http::check::{Check, filled, is_web_address};
use hub_core::http::extract::{Json, Path};
use hub_core::http::operation::{operation, operation_failing};
use hub_core::http::page::{Listed, Page};
use hub_identity::authz::{Authorized, permission as perm};
use hub_protocol::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::super::MAX_ID_CHARS;
use super::{Advisory, Affected, Given};
use crate::Parts;
use crate::severity::VulnerabilitySeverity;

pub const TAG: &str = "tenant-advisories";
const MAX_TITLE_CHARS: usize = 200;
const MAX_DESCRIPTION_CHARS: usize = 5000;
const MAX_VECTOR_CHARS: usize = 300;
/// Aliases, and references.
const MAX_OTHERS: usize = 20;
const MAX_URL_CHARS: usize = 2000;
const MAX_AFFECTED: usize = 20;

pub fn routes() -> ApiRouter<Parts> {
    ApiRouter::new()
        .api_route(
            "/tenant/advisories",
            get_with(
                list,
                operation("advisories.list", TAG, "Own advisories, newest first"),
            )
            .post_with(
                create,
                operation_failing(
                    &[409],
                    "advisories.create",
                    TAG,
                    "Publish an advisory about apps or device models",
                ),
            ),
        )
        .api_route(
            "/tenant/advisories/{advisoryId}",
            get_with(get, operation("advisories.get", TAG, "One advisory"))
                .put_with(
                    replace,
                    operation("advisories.replace", TAG, "Replace an advisory"),
                )
                .delete_with(
                    delete,
                    operation(
                        "advisories.delete",
                        TAG,
                        "Delete an advisory with the statements about it",
                    ),
                ),
        )
        .merge(super::history::routes())
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AdvisoryPath {
    /// The id of the advisory.
    pub advisory_id: String,
}

impl AdvisoryPath {
    pub fn checked(self) -> Result<String> {
        let mut check = Check::new();
        check.required("advisoryId", &self.advisory_id, MAX_ID_CHARS);
        check.done()?;
        Ok(self.advisory_id)
    }
}

/// An advisory of the tenant.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AdvisoryRequest {
    /// Its id: letters, digits, dots, dashes and underscores. It gets one when absent; of one that
    /// is replaced it is ignored.
    #[schemars(length(max = MAX_ID_CHARS), regex(pattern = "^[A-Za-z0-9][A-Za-z0-9._-]*$"))]
    id: Option<String>,
    /// What it is, in one line.
    #[schemars(length(min = 1, max = MAX_TITLE_CHARS), regex(pattern = hub_protocol::patterns::FILLED_LINE))]
    title: String,
    /// More about it.
    #[schemars(length(max = MAX_DESCRIPTION_CHARS), regex(pattern = hub_protocol::patterns::LINES))]
    description: Option<String>,
    /// The severity, unless there is a `cvssVector`; UNKNOWN when both are absent.
    severity: Option<VulnerabilitySeverity>,
    /// A vector of CVSS 3.0, 3.1 or 4.0, which gives the severity.
    #[schemars(length(max = MAX_VECTOR_CHARS), regex(pattern = hub_protocol::patterns::LINE))]
    cvss_vector: Option<String>,
    /// Other ids of the same vulnerability, such as a CVE.
    #[schemars(length(max = MAX_OTHERS), inner(length(min = 1, max = MAX_ID_CHARS), regex(pattern = hub_protocol::patterns::FILLED_LINE)))]
    aliases: Option<Vec<String>>,
    /// URLs with `https` or `http`.
    #[schemars(length(max = MAX_OTHERS), inner(length(min = 1, max = MAX_URL_CHARS), regex(pattern = hub_protocol::patterns::FILLED_LINE)))]
    references: Option<Vec<String>>,
    /// What it affects.
    #[schemars(length(min = 1, max = MAX_AFFECTED))]
    affected: Vec<Affected>,
}

impl AdvisoryRequest {
    /// The id, if one is given, and the rest.
    fn checked(self) -> Result<(Option<String>, Given)> {
        let mut check = Check::new();
        check.line("id", self.id.as_deref(), MAX_ID_CHARS);
        check.required("title", &self.title, MAX_TITLE_CHARS);
        let description = self.description.as_deref();
        check.lines("description", description, MAX_DESCRIPTION_CHARS);
        let vector = filled(self.cvss_vector.as_deref());
        check.line("cvssVector", vector, MAX_VECTOR_CHARS);
        let of_vector = vector.map(osv::of_vector);
        let message = "must be a vector of CVSS 3.0, 3.1 or 4.0 with all metrics of its base";
        check.that(of_vector != Some(None), "cvssVector", message);
        let message = "must be absent where `cvssVector` is given, which gives it";
        let has_both = vector.is_some() && self.severity.is_some();
        check.that(!has_both, "severity", message);
        let aliases = self.aliases.unwrap_or_default();
        let references = self.references.unwrap_or_default();
        for (field, others) in [("aliases", &aliases), ("references", &references)] {
            let message = format!("must have at most {MAX_OTHERS} items");
            check.that(others.len() <= MAX_OTHERS, field, message);
        }
        for (at, alias) in aliases.iter().take(MAX_OTHERS).enumerate() {
            check.required(&format!("aliases[{at}]"), alias, MAX_ID_CHARS);
        }
        for (at, reference) in references.iter().take(MAX_OTHERS).enumerate() {
            let field = format!("references[{at}]");
            check.required(&field, reference, MAX_URL_CHARS);
            let is_url = is_web_address(reference);
            check.that(is_url, field, "must be a URL with https or http");
        }
        let count = self.affected.len();
        let message = format!("must have 1 to {MAX_AFFECTED} items");
        check.that((1..=MAX_AFFECTED).contains(&count), "affected", message);
        check.done()?;
        for (at, affected) in self.affected.iter().enumerate() {
            affected.check(&format!("affected[{at}]"))?;
        }
        let severity = match of_vector.flatten() {
            Some(severity) => severity.into(),
            None => self.severity.unwrap_or(VulnerabilitySeverity::Unknown),
        };
        let given = Given {
            title: self.title.trim().to_owned(),
            description: filled(description).map(str::to_owned),
            severity,
            cvss_vector: vector.map(str::to_owned),
            aliases,
            references,
            affected: self.affected,
        };
        Ok((filled(self.id.as_deref()).map(str::to_owned), given))
    }
}

/// An advisory of the tenant.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AdvisoryResponse {
    /// Its id, by which it is one of `/tenant/vulnerabilities`.
    id: String,
    /// What it is, in one line.
    title: String,
    /// More about it.
    description: Option<String>,
    /// The severity.
    severity: VulnerabilitySeverity,
    /// The vector of CVSS, where the severity is from one.
    cvss_vector: Option<String>,
    /// Other ids of the same vulnerability.
    #[schemars(length(max = MAX_OTHERS))]
    aliases: Vec<String>,
    /// URLs.
    #[schemars(length(max = MAX_OTHERS))]
    references: Vec<String>,
    /// What it affects.
    #[schemars(length(max = MAX_AFFECTED))]
    affected: Vec<Affected>,
    /// Who made it or replaced it last, such as `USER:` or `API_KEY:` with an id.
    author: String,
    /// When it was made.
    created_at: Timestamp,
    /// When it was last replaced.
    updated_at: Timestamp,
}

impl From<Advisory> for AdvisoryResponse {
    fn from(advisory: Advisory) -> Self {
        Self {
            id: advisory.advisory_id,
            title: advisory.title,
            description: advisory.description,
            severity: advisory.severity,
            cvss_vector: advisory.cvss_vector,
            aliases: advisory.aliases,
            references: advisory.references,
            affected: advisory.affected,
            author: advisory.author,
            created_at: advisory.created_at,
            updated_at: advisory.updated_at,
        }
    }
}

async fn list(
    auth: Authorized<perm::VulnerabilitiesRead>,
    State(core): State<Core>,
    page: Page,
) -> Result<Listed<AdvisoryResponse>> {
    let mut conn = core.db.read().await?;
    let (advisories, total) = super::list(&mut conn, &auth.scope, page.slice()).await?;
    Ok(page.listed(advisories.into_iter().map(Into::into).collect(), total))
}

async fn create(
    auth: Authorized<perm::VulnerabilitiesOperate>,
    State(core): State<Core>,
    Json(request): Json<AdvisoryRequest>,
) -> Result<Created<AdvisoryResponse>> {
    let (advisory_id, given) = request.checked()?;
    let advisory = super::create(&core, &auth.scope, advisory_id, given).await?;
    Ok(Created(advisory.into()))
}

async fn get(
    auth: Authorized<perm::VulnerabilitiesRead>,
    State(core): State<Core>,
    Path(path): Path<AdvisoryPath>,
) -> Result<Answer<AdvisoryResponse>> {
    let id = path.checked()?;
    let advisory = super::get(&mut core.db.read().await?, &auth.scope, &id).await?;
    Ok(Answer(advisory.into()))
}

async fn replace(
    auth: Authorized<perm::VulnerabilitiesOperate>,
    State(core): State<Core>,
    Path(path): Path<AdvisoryPath>,
    Json(request): Json<AdvisoryRequest>,
) -> Result<Answer<AdvisoryResponse>> {
    let id = path.checked()?;
    let (_, given) = request.checked()?;
    let advisory = super::replace(&core, &auth.scope, &id, given).await?;
    Ok(Answer(advisory.into()))
}

async fn delete(
    auth: Authorized<perm::VulnerabilitiesOperate>,
    State(core): State<Core>,
    Path(path): Path<AdvisoryPath>,
) -> Result<NoContent> {
    let id = path.checked()?;
    super::delete(&core, &auth.scope, &id).await?;
    Ok(NoContent)
}
