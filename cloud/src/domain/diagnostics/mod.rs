//! What the service takes a caller for, and what it remembers about callers: for whoever wonders why they are refused. Tells a caller nothing that is
//! not their own.

pub mod http;
mod store;

use crate::app::App;
use crate::authn::user::User;
use crate::authz::Statistics;
use crate::domain::audit::Audit;
use crate::error::Result;

/// Has every replica read anew who may do what.
async fn forget_permissions(app: &App, admin: &User) -> Result<Statistics> {
    let tx = app.db.begin().await?;
    let forgotten = app.permissions.statistics();
    tx.commit(Audit::by_user(admin, "permission_cache.clear", "permission-cache", app.clock.now())).await?;
    app.permissions.settle().await;
    Ok(forgotten)
}
