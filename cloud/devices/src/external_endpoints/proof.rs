//! The proof that a domain is a tenant's: where it is looked for, and what it says.

use std::time::Duration;

use axum::http::{HeaderMap, Method};
use bytes::Bytes;
use hub_outgoing::{Outgoing, OutgoingRequest};
use reqwest::Url;

use super::VerifyMethod;
use super::store::EndpointRow;

const WITHIN: Duration = Duration::from_secs(10);
const MAX_FILE_BYTES: usize = 4 * 1024;
const FILE: &str = "/.well-known/hub-verify.txt";

/// The missing proof, as a sentence; None if it was found.
pub async fn look(outgoing: &Outgoing, endpoint: &EndpointRow) -> Result<(), String> {
    match endpoint.verify_method {
        VerifyMethod::DnsTxt => {
            let name = format!("_hub-verify.{}", endpoint.domain);
            let texts = outgoing.txt(&name).await.map_err(|error| error.message)?;
            match texts
                .iter()
                .any(|text| text.trim() == endpoint.verify_token)
            {
                true => Ok(()),
                false if texts.is_empty() => Err(format!("there is no TXT record at {name}")),
                false => Err(format!("no TXT record at {name} is the token")),
            }
        }
        VerifyMethod::WellKnown => {
            // The server that will be called, and nothing of its path.
            let base = Url::parse(&endpoint.base_url)
                .map_err(|_| "the base URL is not valid".to_owned())?;
            let url = base
                .join(FILE)
                .map_err(|_| "the base URL is not valid".to_owned())?;
            let shown = url.to_string();
            let (headers, body) = (HeaderMap::new(), Bytes::new());
            let request = OutgoingRequest {
                method: Method::GET,
                url,
                headers,
                body,
                within: WITHIN,
                max_response_bytes: MAX_FILE_BYTES,
                tls: None,
            };
            let answer = outgoing
                .send(request)
                .await
                .map_err(|error| error.message)?;
            if answer.status != 200 {
                return Err(format!("{shown} answered {} and not 200", answer.status));
            }
            let text = String::from_utf8_lossy(&answer.body);
            match text
                .lines()
                .any(|line| line.trim() == endpoint.verify_token)
            {
                true => Ok(()),
                false => Err(format!("{shown} does not contain the token")),
            }
        }
    }
}
