//! `GET /tenant/vulnerabilities/{vulnerabilityId}/report`.

use aide::OperationOutput;
use aide::axum::ApiRouter;
use aide::axum::routing::get_with;
use aide::generate::GenContext;
use aide::openapi::{Operation, Response as ApiResponse};
use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use hub_base::error::Result;
use hub_core::Core;
use hub_core::http::answer::typed_response;
use hub_core::http::extract::{Path, Query};
use hub_core::http::operation::operation;
use hub_identity::authz::{Authorized, permission as perm};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::{csaf, markdown};
use crate::Parts;
use crate::vulnerabilities::http::VulnerabilityPath;

const MARKDOWN: &str = "text/markdown; charset=utf-8";
const JSON: &str = "application/json";

pub fn routes() -> ApiRouter<Parts> {
    ApiRouter::new().api_route(
        "/tenant/vulnerabilities/{vulnerabilityId}/report",
        get_with(
            report,
            operation(
                "vulnerabilities.getReport",
                "tenant-vulnerabilities",
                "A draft of a report about a vulnerability",
            ),
        ),
    )
}

/// The form of a report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ReportForm {
    /// Markdown.
    #[default]
    Markdown,
    /// JSON of CSAF 2.0.
    Csaf,
}

/// The form to answer in.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct ReportQuery {
    /// The form; Markdown when absent.
    form: Option<ReportForm>,
}

/// A report as a file.
pub struct Report {
    form: ReportForm,
    text: String,
}

impl IntoResponse for Report {
    fn into_response(self) -> Response {
        let media_type = match self.form {
            ReportForm::Markdown => MARKDOWN,
            ReportForm::Csaf => JSON,
        };
        ([(header::CONTENT_TYPE, media_type)], self.text).into_response()
    }
}

impl OperationOutput for Report {
    type Inner = ();
    fn inferred_responses(
        _: &mut GenContext,
        _: &mut Operation,
    ) -> Vec<(Option<u16>, ApiResponse)> {
        let description = "The draft. It is made of facts, and no legal advice.";
        let markdown = json!({"type": "string", "description": "Markdown."});
        let csaf = json!({"type": "object", "description": "A document of CSAF 2.0."});
        let mut response = typed_response(JSON, description, csaf);
        response
            .content
            .extend(typed_response("text/markdown", description, markdown).content);
        vec![(Some(200), response)]
    }
}

async fn report(
    auth: Authorized<perm::VulnerabilitiesRead>,
    State(core): State<Core>,
    Path(path): Path<VulnerabilityPath>,
    Query(query): Query<ReportQuery>,
) -> Result<Report> {
    let id = path.checked()?;
    let mut conn = core.db.read().await?;
    let facts = super::facts(&core, &mut conn, &auth.scope, &id).await?;
    let form = query.form.unwrap_or_default();
    let text = match form {
        ReportForm::Markdown => markdown::write(&facts),
        ReportForm::Csaf => csaf::document(&facts).to_string(),
    };
    Ok(Report { form, text })
}
