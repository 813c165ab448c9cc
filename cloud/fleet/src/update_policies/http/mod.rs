//! Requests and responses of update policies, for operators and for hubs.

mod operators;
mod protocol;

use aide::axum::ApiRouter;

use crate::Parts;

pub fn routes() -> ApiRouter<Parts> {
    ApiRouter::new()
        .merge(operators::routes())
        .merge(protocol::routes())
}
