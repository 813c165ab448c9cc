//! Where a request to log in comes from, as the owner of the account is shown.

use std::convert::Infallible;
use std::net::IpAddr;

use aide::OperationInput;
use axum::extract::FromRequestParts;
use axum::http::header::USER_AGENT;
use axum::http::request::Parts;
use hub_core::http::client_address;

const MAX_USER_AGENT_CHARS: usize = 200;

/// The client of a request.
#[derive(Clone, Debug)]
pub struct Origin {
    pub address: Option<IpAddr>,
    /// The program, in its own words.
    pub user_agent: Option<String>,
}

impl Origin {
    pub fn address_text(&self) -> Option<String> {
        self.address.map(|address| address.to_string())
    }
}

impl<S: Sync> FromRequestParts<S> for Origin {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        let text = parts
            .headers
            .get(USER_AGENT)
            .map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned());
        let is_shown = |c: &char| !c.is_control();
        let shown = text.map(|text| {
            text.chars()
                .filter(is_shown)
                .take(MAX_USER_AGENT_CHARS)
                .collect::<String>()
        });
        Ok(Self {
            address: client_address::current(),
            user_agent: shown.filter(|text| !text.is_empty()),
        })
    }
}

impl OperationInput for Origin {}
