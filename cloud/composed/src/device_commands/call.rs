//! Commands that an external endpoint carries out: one call each, in bounded time, never repeated.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::http::{HeaderMap, HeaderValue, Method, header};
use hub_base::error::{Error, Result};
use hub_core::Core;
use hub_destinations::auth_header;
use hub_devices::device_pages::EndpointMethod;
use hub_devices::external_endpoints::Callable;
use hub_outgoing::{CallErrorKind, OutgoingRequest, OutgoingResponse};
use hub_people::supplier_oauth::schemes;
use hub_protocol::TenantUuid;
use reqwest::Url;
use secrecy::{ExposeSecret, SecretString};
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::store::End;

/// The time limit of a whole call.
const WITHIN: Duration = Duration::from_secs(15);
/// The bytes of a response that are kept.
const MAX_RESPONSE_BYTES: usize = 16 * 1024;
/// Calls of this process at a time, and of one tenant.
const MAX_CALLS: usize = 64;
const MAX_CALLS_OF_TENANT: usize = 16;

/// The calls that run now. Cheap to clone.
#[derive(Clone, Default)]
pub struct Calls(Arc<Mutex<HashMap<TenantUuid, usize>>>);

/// The place of a call, given up when it ends in whichever way.
pub struct Place(Calls, TenantUuid);

impl Drop for Place {
    fn drop(&mut self) {
        let mut running = self.0.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = running.get_mut(&self.1) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                running.remove(&self.1);
            }
        }
    }
}

impl Calls {
    /// 503 while too many calls run.
    pub fn place(&self, tenant_uuid: TenantUuid) -> Result<Place> {
        let mut running = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let of_tenant = running.get(&tenant_uuid).copied().unwrap_or(0);
        if of_tenant >= MAX_CALLS_OF_TENANT || running.values().sum::<usize>() >= MAX_CALLS {
            let message = "too many commands are being carried out; try again shortly";
            return Err(Error::unavailable("BUSY", message));
        }
        running.insert(tenant_uuid, of_tenant + 1);
        Ok(Place(self.clone(), tenant_uuid))
    }
}

/// A call to make.
pub struct Call {
    pub method: Method,
    pub url: Url,
    pub headers: HeaderMap,
    pub body: String,
}

/// The parameters of a call.
pub struct Parameters<'a> {
    pub command_uuid: Uuid,
    pub device_instance_id: i64,
    pub serial_number: Option<&'a str>,
    pub address: Option<&'a str>,
    pub action_id: &'a str,
    pub parameters: &'a Map<String, Value>,
}

/// The call of an endpoint in the name of a user, or with the endpoint's own credentials.
pub fn call(
    core: &Core,
    endpoint: &Callable,
    path: &str,
    method: EndpointMethod,
    bearer: Option<&SecretString>,
    sent: &Parameters<'_>,
) -> Result<Call> {
    let unusable = |reason: String| {
        let message = format!("the external endpoint of this action cannot be called: {reason}");
        Error::conflict("ENDPOINT_NOT_USABLE", message)
    };
    let text = format!("{}{path}", endpoint.base_url.trim_end_matches('/'));
    // The settings may allow less than when the URL was stored.
    let mut url = core
        .outgoing
        .check_url(&text, schemes(core))
        .map_err(|reason| unusable(format!("its URL {reason}")))?;
    let base = Url::parse(&endpoint.base_url).map_err(Error::internal)?;
    if url.origin() != base.origin() {
        return Err(unusable("its path leads to another server".to_owned()));
    }
    let mut headers = HeaderMap::new();
    let id = HeaderValue::from_str(&sent.command_uuid.to_string()).map_err(Error::internal)?;
    headers.insert("idempotency-key", id);
    headers.insert("x-device-instance-id", sent.device_instance_id.into());
    headers.insert(header::ACCEPT, HeaderValue::from_static("application/json"));
    if let Some((name, value)) = endpoint
        .auth
        .as_ref()
        .map(auth_header)
        .transpose()
        .map_err(unusable)?
    {
        headers.insert(name, value);
    }
    // The user's own credentials take precedence.
    if let Some(bearer) = bearer {
        let text = format!("Bearer {}", bearer.expose_secret());
        let mut value = HeaderValue::from_str(&text)
            .map_err(|_| unusable("the token is malformed".to_owned()))?;
        value.set_sensitive(true);
        headers.insert(header::AUTHORIZATION, value);
    }
    let mut body = String::new();
    if !method.has_body() {
        for (name, value) in sent.parameters {
            let text = value
                .as_str()
                .map_or_else(|| value.to_string(), str::to_owned);
            url.query_pairs_mut().append_pair(name, &text);
        }
    } else {
        headers.insert(
            header::CONTENT_TYPE,
            HeaderValue::from_static("application/json"),
        );
        body = json!({
            "commandUuid": sent.command_uuid,
            "deviceInstanceId": sent.device_instance_id,
            "serialNumber": sent.serial_number,
            "address": sent.address,
            "actionId": sent.action_id,
            "parameters": sent.parameters,
        })
        .to_string();
    }
    Ok(Call {
        method: method.http(),
        url,
        headers,
        body,
    })
}

/// Makes the call, once.
pub async fn make(core: &Core, call: Call) -> End {
    let request = OutgoingRequest {
        method: call.method,
        url: call.url,
        headers: call.headers,
        body: call.body.into(),
        within: WITHIN,
        max_response_bytes: MAX_RESPONSE_BYTES,
        tls: None,
    };
    match core.outgoing.send(request).await {
        Ok(answer) => answered(&answer),
        Err(error) => {
            let (code, more) = match error.kind {
                CallErrorKind::Forbidden => ("ENDPOINT_FORBIDDEN", ""),
                CallErrorKind::Dns | CallErrorKind::Connect | CallErrorKind::Tls => {
                    ("ENDPOINT_UNREACHABLE", "")
                }
                CallErrorKind::TimedOut => (
                    "ENDPOINT_TIMED_OUT",
                    "; the command may have been carried out",
                ),
                CallErrorKind::Broken => {
                    ("ENDPOINT_BROKEN", "; the command may have been carried out")
                }
            };
            let message = format!("the supplier's endpoint: {}{more}", error.message);
            End {
                result: None,
                error_code: Some(code),
                error_message: Some(message),
            }
        }
    }
}

fn answered(answer: &OutgoingResponse) -> End {
    let text = String::from_utf8_lossy(&answer.body);
    let body = match serde_json::from_slice(&answer.body) {
        Ok(body) if !answer.is_cut => body,
        _ => Value::String(text.into_owned()),
    };
    let result = Some(json!({"status": answer.status, "body": body}).to_string());
    match answer.status {
        200..=299 => End {
            result,
            error_code: None,
            error_message: None,
        },
        status => {
            let message = format!("the supplier's endpoint answered {status}");
            End {
                result,
                error_code: Some("ENDPOINT_REFUSED"),
                error_message: Some(message),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_tenant_does_not_take_all_places() {
        let (calls, one, other) = (Calls::default(), TenantUuid::new(), TenantUuid::new());
        let mut places: Vec<Place> = (0..MAX_CALLS_OF_TENANT)
            .filter_map(|_| calls.place(one).ok())
            .collect();
        assert_eq!(places.len(), MAX_CALLS_OF_TENANT);
        assert!(calls.place(one).is_err() && calls.place(other).is_ok());
        places.pop();
        assert!(calls.place(one).is_ok());
        drop(places);
        assert!(calls.0.lock().expect("not poisoned").is_empty());
    }
}
