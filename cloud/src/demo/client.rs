//! The demo as a client of the service: it logs in, founds a tenant, asks for a claim code and for what is stored, with no more rights than anybody.

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
use super::place::Account;

/// The hardware identity of the demo's hub.
pub const DEVICE_INSTANCE_ID: &str = "demo-hub";
const TENANT_NAME: &str = "Demo";
/// A stream is silent for 20 seconds at most.
const READ_TIMEOUT: Duration = Duration::from_secs(40);

#[derive(Clone)]
pub struct Api {
    http: reqwest::Client,
    url: String,
    pub account: Account,
    pub tenant_uuid: TenantUuid,
    /// Lives 15 minutes; replaced when it is refused.
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
    /// Logs in, registering first where the service does not know the account yet, and finds or founds the tenant.
    pub async fn enter(url: &str, account: Account) -> Result<Self, Failure> {
        let client = reqwest::Client::builder().no_proxy().read_timeout(READ_TIMEOUT).build();
        let http = client.map_err(|error| Failure(format!("cannot make requests: {error}")))?;
        let token = Arc::new(RwLock::new(String::new()));
        let mut api = Self { http, url: url.to_owned(), account, tenant_uuid: TenantUuid::default(), token };
        match api.credentials("login").send().await.map_err(|error| failed(&error))? {
            refused if refused.status() == StatusCode::UNAUTHORIZED => {
                api.keep(send(api.credentials("register")).await?).await?;
            }
            answer => api.keep(succeeded(answer).await?).await?,
        }
        let tenants: Vec<Tenant> = api.data(Method::GET, "/tenant/tenants", None).await?;
        let tenant = match tenants.into_iter().next_back() {
            Some(oldest) => oldest,
            None => api.data(Method::POST, "/tenant/tenants", Some(json!({"name": TENANT_NAME}))).await?,
        };
        api.tenant_uuid = tenant.tenant_uuid;
        Ok(api)
    }

    fn credentials(&self, to: &str) -> RequestBuilder {
        let Account { email, password } = &self.account;
        self.http.post(format!("{}/auth/{to}", self.url)).json(&json!({"email": email, "password": password}))
    }

    async fn keep(&self, response: Response) -> Result<(), Failure> {
        let session: Data<Session> = read(response).await?;
        *self.token.write().await = session.data.access_token;
        Ok(())
    }

    /// A code that the demo's hub, or one more, can claim with.
    pub async fn claim_code(&self) -> Result<String, Failure> {
        const PATH: &str = "/tenant/hubs/claim-codes";
        let newest: Vec<ClaimCode> = self.data(Method::GET, &format!("{PATH}?size=1"), None).await?;
        let code = match newest.into_iter().find(|code| code.status == "PENDING") {
            Some(unused) => unused,
            None => self.data(Method::POST, PATH, Some(json!({"note": "made by hub-cloud demo"}))).await?,
        };
        Ok(code.claim_code)
    }

    /// The demo's hub, once there is one, and how many events are stored; counts end at 100,000.
    pub async fn numbers(&self) -> Result<(Option<Hub>, i64), Failure> {
        let hubs: Vec<Hub> = self.data(Method::GET, "/tenant/hubs?size=100", None).await?;
        let hub = hubs.into_iter().find(|hub| hub.device_instance_id == DEVICE_INSTANCE_ID);
        let events = self.call(Method::GET, "/tenant/ble/events?size=1", None).await?;
        let stored = events.headers().get("x-total-count").and_then(|count| count.to_str().ok()?.parse().ok());
        Ok((hub, stored.unwrap_or(0)))
    }

    /// The live stream of BLE events: those after `last_id`, or from now on.
    pub async fn open_stream(&self, last_id: Option<&str>) -> Result<Response, Failure> {
        self.call(Method::GET, "/tenant/stream/ble/events", last_id).await
    }

    async fn call(&self, method: Method, path: &str, last_id: Option<&str>) -> Result<Response, Failure> {
        let mut request = self.http.request(method, format!("{}{path}", self.url));
        if let Some(last_id) = last_id {
            request = request.header("last-event-id", last_id);
        }
        self.authorized(request).await
    }

    async fn data<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: Option<serde_json::Value>,
    ) -> Result<T, Failure> {
        let mut request = self.http.request(method, format!("{}{path}", self.url));
        if let Some(body) = body {
            request = request.json(&body);
        }
        let data: Data<T> = read(self.authorized(request).await?).await?;
        Ok(data.data)
    }

    /// Sends with the token, and once more with a new one when it is refused.
    async fn authorized(&self, request: RequestBuilder) -> Result<Response, Failure> {
        let request = request.header("x-tenant-uuid", self.tenant_uuid.to_string());
        let again = request.try_clone();
        let token = self.token.read().await.clone();
        let response = request.bearer_auth(&token).send().await.map_err(|error| failed(&error))?;
        match again {
            Some(again) if response.status() == StatusCode::UNAUTHORIZED => {
                self.keep(send(self.credentials("login")).await?).await?;
                let token = self.token.read().await.clone();
                send(again.bearer_auth(&token)).await
            }
            _ => succeeded(response).await,
        }
    }
}

async fn send(request: RequestBuilder) -> Result<Response, Failure> {
    succeeded(request.send().await.map_err(|error| failed(&error))?).await
}

/// The answer, unless it is a refusal.
async fn succeeded(response: Response) -> Result<Response, Failure> {
    let status = response.status();
    if status.is_success() {
        return Ok(response);
    }
    let path = response.url().path().to_owned();
    let message = match response.json::<Problem>().await {
        Ok(problem) => problem.message,
        Err(_) => "no reason given".to_owned(),
    };
    Err(Failure(format!("the service answered {path} with {}: {message}", status.as_u16())))
}

async fn read<T: DeserializeOwned>(response: Response) -> Result<T, Failure> {
    response.json().await.map_err(|error| failed(&error))
}

pub fn failed(error: &reqwest::Error) -> Failure {
    Failure(format!("the service cannot be asked: {error}"))
}
