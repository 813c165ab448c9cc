//! `/.well-known/security.txt` (RFC 9116): where vulnerabilities of the operator's service are
//! reported.

use aide::OperationOutput;
use aide::axum::ApiRouter;
use aide::axum::routing::get_with;
use aide::generate::GenContext;
use aide::openapi::{Operation, Response as ApiResponse};
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use hub_base::error::{Error, Result};
use hub_core::Core;
use hub_core::http::answer::typed_response;
use hub_core::http::operation::operation_failing;
use hub_identity::authz::Public;
use hub_protocol::Timestamp;
use serde_json::json;

const PATH: &str = "/.well-known/security.txt";
const DAY_SECS: i64 = 24 * 3600;
/// The time for which the text is valid; RFC 9116 recommends less than a year.
const VALID_DAYS: i64 = 180;

pub fn routes() -> ApiRouter<Core> {
    ApiRouter::new().api_route(
        PATH,
        get_with(
            security_txt,
            operation_failing(
                &[404],
                "service.securityTxt",
                "service",
                "Where vulnerabilities are reported",
            ),
        ),
    )
}

/// The fields of the file, a line each.
struct SecurityTxt(String);

impl IntoResponse for SecurityTxt {
    fn into_response(self) -> Response {
        self.0.into_response()
    }
}

impl OperationOutput for SecurityTxt {
    type Inner = String;
    fn inferred_responses(
        _: &mut GenContext,
        _: &mut Operation,
    ) -> Vec<(Option<u16>, ApiResponse)> {
        let description = "The file, as RFC 9116 has it.";
        let response = typed_response("text/plain", description, json!({"type": "string"}));
        vec![(Some(200), response)]
    }
}

async fn security_txt(_: Public, State(core): State<Core>) -> Result<SecurityTxt> {
    let config = &core.config;
    let Some(contact) = &config.security_contact else {
        return Err(Error::new(
            StatusCode::NOT_FOUND,
            "SECURITY_CONTACT_NOT_SET",
            "this service has no `security-contact`; ask its operator where to report a vulnerability",
        ));
    };
    // The same text all day.
    let day = core.clock.now().as_secs() / DAY_SECS;
    let expires_at = Timestamp::from_micros((day + VALID_DAYS) * DAY_SECS * 1_000_000);
    let mut text = format!("Contact: {contact}\nExpires: {expires_at}\n");
    if let Some(policy) = &config.security_policy {
        text.push_str(&format!("Policy: {policy}\n"));
    }
    if let Some(url) = &config.public_url {
        text.push_str(&format!("Canonical: {url}{PATH}\n"));
    }
    Ok(SecurityTxt(text))
}
