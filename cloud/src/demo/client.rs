//! The demo's API client: logs in, creates a tenant and a claim code, and reads what is stored,
//! with the rights of an ordinary user.

use std::sync::Arc;
use std::time::Duration;

use hub_protocol::ble::Advertisement;
use hub_protocol::{Data, HubUuid, Problem, TenantUuid, Timestamp};
use reqwest::{Method, RequestBuilder, Response, StatusCode};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::json;
use tokio::sync::RwLock;

use super::Failure;
use super::demo_dir::Account;

/// The hardware identity of the demo's hub.
pub const DEVICE_INSTANCE_ID: &str = "demo-hub";
const TENANT_NAME: &str = "Demo";
/// Above the heartbeat interval of streams, 20 seconds.
const READ_TIMEOUT: Duration = Duration::from_secs(40);

#[derive(Clone)]
pub struct Api {
    http: reqwest::Client,
    url: String,
    pub account: Account,
    pub tenant_uuid: TenantUuid,
    /// Access token, valid for 15 minutes; replaced when it is refused.
    token: Arc<RwLock<String>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Session {
    access_token: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Tenant {
    tenant_uuid: TenantUuid,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ClaimCode {
    claim_code: String,
    status: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Hub {
    pub hub_uuid: HubUuid,
    device_instance_id: String,
    pub status: String,
    pub last_seen_at: Option<Timestamp>,
}

/// One event of the stream.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Event {
    pub observed_at: Timestamp,
    #[serde(flatten)]
    pub advertisement: Advertisement,
}

impl Api {
    /// Logs in, or registers if the account does not exist yet; then selects or creates the tenant.
    pub async fn connect(url: &str, account: Account) -> Result<Self, Failure> {
        let client = reqwest::Client::builder()
            .no_proxy()
            .read_timeout(READ_TIMEOUT)
            .build();
        let http =
            client.map_err(|error| Failure(format!("cannot create an HTTP client: {error}")))?;
        let token = Arc::new(RwLock::new(String::new()));
        let mut api = Self {
            http,
            url: url.to_owned(),
            account,
            tenant_uuid: TenantUuid::default(),
            token,
        };
        match api
            .auth_request("login")
            .send()
            .await
            .map_err(|error| failed(&error))?
        {
            refused if refused.status() == StatusCode::UNAUTHORIZED => {
                api.store_token(send(api.auth_request("register")).await?)
                    .await?;
            }
            response => api.store_token(check_status(response).await?).await?,
        }
        let tenants: Vec<Tenant> = api.data(Method::GET, "/tenant/tenants", None).await?;
        let tenant = match tenants.into_iter().next_back() {
            Some(oldest) => oldest,
            None => {
                api.data(
                    Method::POST,
                    "/tenant/tenants",
                    Some(json!({"name": TENANT_NAME})),
                )
                .await?
            }
        };
        api.tenant_uuid = tenant.tenant_uuid;
        Ok(api)
    }

    fn auth_request(&self, endpoint: &str) -> RequestBuilder {
        let Account { email, password } = &self.account;
        self.http
            .post(format!("{}/auth/{endpoint}", self.url))
            .json(&json!({"email": email, "password": password}))
    }

    async fn store_token(&self, response: Response) -> Result<(), Failure> {
        let session: Data<Session> = parse(response).await?;
        *self.token.write().await = session.data.access_token;
        Ok(())
    }

    /// An unused claim code, for the demo's hub or for another hub.
    pub async fn claim_code(&self) -> Result<String, Failure> {
        const PATH: &str = "/tenant/hubs/claim-codes";
        let newest: Vec<ClaimCode> = self
            .data(Method::GET, &format!("{PATH}?size=1"), None)
            .await?;
        let code = match newest.into_iter().find(|code| code.status == "PENDING") {
            Some(unused) => unused,
            None => {
                self.data(
                    Method::POST,
                    PATH,
                    Some(json!({"note": "created by hub-cloud demo"})),
                )
                .await?
            }
        };
        Ok(code.claim_code)
    }

    /// The demo's hub, if it is claimed, and the number of stored events (at most 100,000).
    pub async fn statistics(&self) -> Result<(Option<Hub>, i64), Failure> {
        let hubs: Vec<Hub> = self
            .data(Method::GET, "/tenant/hubs?size=100", None)
            .await?;
        let hub = hubs
            .into_iter()
            .find(|hub| hub.device_instance_id == DEVICE_INSTANCE_ID);
        let events = self
            .call(Method::GET, "/tenant/ble/events?size=1", None)
            .await?;
        let stored = events
            .headers()
            .get("x-total-count")
            .and_then(|count| count.to_str().ok()?.parse().ok());
        Ok((hub, stored.unwrap_or(0)))
    }

    /// Opens the live stream of BLE events after `last_id`, or from now on.
    pub async fn open_stream(&self, last_id: Option<&str>) -> Result<Response, Failure> {
        self.call(Method::GET, "/tenant/stream/ble/events", last_id)
            .await
    }

    pub async fn call(
        &self,
        method: Method,
        path: &str,
        last_id: Option<&str>,
    ) -> Result<Response, Failure> {
        let mut request = self.http.request(method, format!("{}{path}", self.url));
        if let Some(last_id) = last_id {
            request = request.header("last-event-id", last_id);
        }
        self.authorized(request).await
    }

    pub async fn data<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: Option<serde_json::Value>,
    ) -> Result<T, Failure> {
        let mut request = self.http.request(method, format!("{}{path}", self.url));
        if let Some(body) = body {
            request = request.json(&body);
        }
        let data: Data<T> = parse(self.authorized(request).await?).await?;
        Ok(data.data)
    }

    /// Sends with the access token; on 401 logs in again and retries once.
    async fn authorized(&self, request: RequestBuilder) -> Result<Response, Failure> {
        let request = request.header("x-tenant-uuid", self.tenant_uuid.to_string());
        let retry = request.try_clone();
        let token = self.token.read().await.clone();
        let response = request
            .bearer_auth(&token)
            .send()
            .await
            .map_err(|error| failed(&error))?;
        match retry {
            Some(retry) if response.status() == StatusCode::UNAUTHORIZED => {
                self.store_token(send(self.auth_request("login")).await?)
                    .await?;
                let token = self.token.read().await.clone();
                send(retry.bearer_auth(&token)).await
            }
            _ => check_status(response).await,
        }
    }
}

async fn send(request: RequestBuilder) -> Result<Response, Failure> {
    check_status(request.send().await.map_err(|error| failed(&error))?).await
}

/// The response, or a failure if its status is not a success.
async fn check_status(response: Response) -> Result<Response, Failure> {
    let status = response.status();
    if status.is_success() {
        return Ok(response);
    }
    let path = response.url().path().to_owned();
    let message = match response.json::<Problem>().await {
        Ok(problem) => problem.message,
        Err(_) => "no reason given".to_owned(),
    };
    Err(Failure(format!(
        "the service returned {} for {path}: {message}",
        status.as_u16()
    )))
}

async fn parse<T: DeserializeOwned>(response: Response) -> Result<T, Failure> {
    response.json().await.map_err(|error| failed(&error))
}

pub fn failed(error: &reqwest::Error) -> Failure {
    Failure(format!("request to the service failed: {error}"))
}
