//! `/tenant/dashboard/summary`.

use aide::axum::ApiRouter;
use aide::axum::routing::get_with;
use axum::extract::State;
use hub_base::error::Result;
use hub_core::http::answer::Answer;
use hub_core::http::extract::Query;
use hub_core::http::operation::operation;
use hub_identity::authz::{Authorized, permission as perm};
use schemars::JsonSchema;
use serde::Deserialize;

use super::{DashboardSummary, Dashboards};
use crate::Parts;
use crate::notices::Subject;

const DEFAULT_MINUTES: i32 = 60;
const MAX_MINUTES: i32 = 1440;

pub fn routes() -> ApiRouter<Parts> {
    ApiRouter::new().api_route(
        "/tenant/dashboard/summary",
        get_with(
            summary,
            operation(
                "dashboard.summary",
                "tenant-dashboard",
                "The tenant's numbers on one page",
            ),
        ),
    )
}

/// The period of the summary.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SummaryWindow {
    /// Minutes to look back: 60 when absent; below 1 is read as 1, above 1440 as 1440.
    window_minutes: Option<i32>,
}

async fn summary(
    auth: Authorized<perm::DashboardRead>,
    State(dashboards): State<Dashboards>,
    Query(window): Query<SummaryWindow>,
) -> Result<Answer<DashboardSummary>> {
    let minutes = window
        .window_minutes
        .unwrap_or(DEFAULT_MINUTES)
        .clamp(1, MAX_MINUTES);
    let summary = dashboards.summary(&auth.scope, i64::from(minutes)).await?;
    let may_see = |subject| match subject {
        Subject::Hub => true,
        Subject::Device => auth.caller.may::<perm::DevicesRead>(),
        Subject::Pipeline => auth.caller.may::<perm::PipelinesRead>(),
        Subject::Rollout => auth.caller.may::<perm::UpdatePoliciesRead>(),
        Subject::Person => auth.caller.may::<perm::ConsentRecordsRead>(),
        Subject::Vulnerability => auth.caller.may::<perm::VulnerabilitiesRead>(),
        Subject::Product => auth.caller.may::<perm::ReleasesRead>(),
        Subject::ApiKey => auth.caller.may::<perm::ApiKeysManage>(),
    };
    Ok(Answer(summary.only(may_see)))
}
