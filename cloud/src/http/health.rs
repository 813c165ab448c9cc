//! Whether the service lives (`/healthz`) and whether it can serve now (`/readyz`).

use axum::extract::State;
use schemars::JsonSchema;
use serde::Serialize;

use super::answer::Answer;
use crate::app::App;
use crate::authz::Public;
use crate::error::Result;

#[derive(Serialize, JsonSchema)]
pub struct Health {
    pub status: &'static str,
    pub version: &'static str,
}

const OK: Health = Health { status: "ok", version: env!("CARGO_PKG_VERSION") };

/// The process runs and answers.
pub async fn healthz(_: Public) -> Answer<Health> {
    Answer(OK)
}

/// The database answers too; 503 while it does not.
pub async fn readyz(_: Public, State(app): State<App>) -> Result<Answer<Health>> {
    app.db.ping().await?;
    Ok(Answer(OK))
}
