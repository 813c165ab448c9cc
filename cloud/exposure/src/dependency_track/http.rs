//! `/tenant/dependency-track`.

use aide::axum::ApiRouter;
use aide::axum::routing::get_with;
use axum::extract::State;
use hub_base::error::Result;
use hub_core::Core;
use hub_core::http::answer::{Answer, NoContent};
use hub_core::http::check::Check;
use hub_core::http::extract::Json;
use hub_core::http::operation::operation;
use hub_identity::authz::{Authorized, permission as perm};
use hub_outgoing::{MAX_URL_BYTES, Outgoing};
use hub_protocol::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::send::schemes;
use super::{Given, Shown};
use crate::Parts;

const TAG: &str = "tenant-vulnerabilities";
const MAX_PROJECT_CHARS: usize = 200;
const MAX_KEY_CHARS: usize = 200;
/// Visible characters of ASCII: it is sent as a header.
const KEY_PATTERN: &str = "^[!-~]+$";

pub fn routes() -> ApiRouter<Parts> {
    ApiRouter::new().api_route(
        "/tenant/dependency-track",
        get_with(
            get,
            operation(
                "dependencyTrack.get",
                TAG,
                "The server of Dependency-Track, and how far it has what hubs run",
            ),
        )
        .put_with(
            set,
            operation(
                "dependencyTrack.set",
                TAG,
                "Set the server of Dependency-Track that gets what hubs run",
            ),
        )
        .delete_with(
            remove,
            operation(
                "dependencyTrack.remove",
                TAG,
                "Send nothing to Dependency-Track any more",
            ),
        ),
    )
}

/// A server of OWASP Dependency-Track, in place of the one before it.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DependencyTrackRequest {
    /// The URL of its API server, such as `https://dtrack.example.com`.
    #[schemars(length(max = MAX_URL_BYTES), extend("format" = "uri"))]
    url: String,
    /// The name of the project there. Each list of packages is a version of it; releases have
    /// projects of their own.
    #[schemars(length(min = 1, max = MAX_PROJECT_CHARS), regex(pattern = hub_protocol::patterns::FILLED_LINE))]
    project: String,
    /// An API key there with the permissions `BOM_UPLOAD` and `PROJECT_CREATION_UPLOAD`. It is
    /// never shown.
    #[schemars(length(min = 1, max = MAX_KEY_CHARS), regex(pattern = KEY_PATTERN))]
    api_key: String,
}

impl DependencyTrackRequest {
    fn checked(self, outgoing: &Outgoing) -> Result<Given> {
        let mut check = Check::new();
        match outgoing.check_url(&self.url, schemes(outgoing)) {
            Ok(url) => check.that(url.query().is_none(), "url", "must have no query"),
            Err(message) => check.that(false, "url", message),
        }
        check.required("project", &self.project, MAX_PROJECT_CHARS);
        let is_key = (1..=MAX_KEY_CHARS).contains(&self.api_key.len())
            && self.api_key.bytes().all(|byte| byte.is_ascii_graphic());
        check.that(
            is_key,
            "apiKey",
            format!("must be 1 to {MAX_KEY_CHARS} visible characters of ASCII"),
        );
        check.done()?;
        Ok(Given {
            url: self.url,
            project: self.project.trim().to_owned(),
            api_key: self.api_key,
        })
    }
}

/// A server of OWASP Dependency-Track, and how far it has what hubs run. All is null, or 0, where
/// no server is set.
#[derive(Debug, Default, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DependencyTrackResponse {
    /// The URL of its API server.
    url: Option<String>,
    /// The name of the project there.
    project: Option<String>,
    /// Lists of packages that hubs run and the server has.
    sent: i64,
    /// Lists that it refuses. They are sent again once a server is set anew.
    refused: i64,
    /// Lists that are still to be sent.
    waiting: i64,
    /// The releases that hubs run, and the newest of each app.
    releases: DependencyTrackReleasesResponse,
    /// When something was last sent.
    last_sent_at: Option<Timestamp>,
    /// What last went wrong.
    last_error: Option<String>,
    /// When that was.
    last_error_at: Option<Timestamp>,
    /// Since when the server takes nothing; null while it does.
    failing_since: Option<Timestamp>,
    /// When the server is tried again, where it failed last.
    retry_at: Option<Timestamp>,
    /// When the server was set.
    updated_at: Option<Timestamp>,
}

/// How far a server has releases.
#[derive(Debug, Default, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DependencyTrackReleasesResponse {
    /// Those that the server has.
    #[schemars(range(min = 0))]
    sent: i64,
    /// Those that it refuses. They are sent again once a server is set anew.
    #[schemars(range(min = 0))]
    refused: i64,
    /// Those that are still to be sent.
    #[schemars(range(min = 0))]
    waiting: i64,
}

impl From<Shown> for DependencyTrackResponse {
    fn from(shown: Shown) -> Self {
        let Shown {
            target,
            lists,
            releases,
        } = shown;
        Self {
            url: Some(target.url),
            project: Some(target.project),
            sent: lists.sent,
            refused: lists.refused,
            waiting: lists.waiting,
            releases: DependencyTrackReleasesResponse {
                sent: releases.sent,
                refused: releases.refused,
                waiting: releases.waiting,
            },
            failing_since: target.failing_since,
            last_sent_at: target.last_sent_at,
            last_error: target.last_error,
            last_error_at: target.last_error_at,
            retry_at: target.retry_at,
            updated_at: Some(target.updated_at),
        }
    }
}

async fn get(
    auth: Authorized<perm::VulnerabilitiesRead>,
    State(core): State<Core>,
) -> Result<Answer<DependencyTrackResponse>> {
    let shown = super::shown(&core, &auth.scope).await?;
    Ok(Answer(shown.map(Into::into).unwrap_or_default()))
}

async fn set(
    auth: Authorized<perm::PipelinesWrite>,
    State(core): State<Core>,
    Json(request): Json<DependencyTrackRequest>,
) -> Result<Answer<DependencyTrackResponse>> {
    let given = request.checked(&core.outgoing)?;
    let shown = super::set(&core, &auth.scope, given).await?;
    Ok(Answer(shown.into()))
}

async fn remove(
    auth: Authorized<perm::PipelinesWrite>,
    State(core): State<Core>,
) -> Result<NoContent> {
    super::remove(&core, &auth.scope).await?;
    Ok(NoContent)
}
