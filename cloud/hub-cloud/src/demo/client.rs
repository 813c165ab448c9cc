//! The API calls of the demo: it logs in, creates a tenant and a claim code, and reads what is
//! stored, with the rights of an ordinary user.

use std::pin::Pin;
use std::sync::Arc;

use hub_client::{
    AccessTokens, ClaimCode, Client, Credential, Hub, ServiceUrl, Session, Stream, Tenant,
    operations,
};
use hub_protocol::ble::Advertisement;
use hub_protocol::{TenantUuid, Timestamp, UserUuid};
use serde::Deserialize;
use serde_json::json;
use tokio::sync::Mutex;

use super::Failure;
use super::demo_dir::Account;

/// The hardware identity of the demo's hub.
pub const DEVICE_INSTANCE_ID: &str = "demo-hub";
const TENANT_NAME: &str = "Demo";

#[derive(Clone)]
pub struct Api {
    pub client: Client,
    pub account: Account,
    pub tenant_uuid: TenantUuid,
    user_uuid: UserUuid,
    login: Arc<Login>,
}

/// A login whose access token is used until the service refuses it: while the history is made, the
/// clock of the service is not that of this process.
struct Login {
    service: ServiceUrl,
    session: Mutex<Session>,
}

impl AccessTokens for Login {
    fn get<'a>(
        &'a self,
        refused: Option<&'a str>,
    ) -> Pin<Box<dyn Future<Output = Result<String, hub_client::Error>> + Send + 'a>> {
        Box::pin(async move {
            let mut session = self.session.lock().await;
            if refused == Some(session.access_token.as_str()) {
                *session = session.refresh(&self.service).await?;
            }
            Ok(session.access_token.clone())
        })
    }
}

/// One event of the stream.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Event {
    pub observed_at: Timestamp,
    #[serde(flatten)]
    pub advertisement: Advertisement,
}

impl From<hub_client::Error> for Failure {
    fn from(error: hub_client::Error) -> Self {
        Self(error.to_string())
    }
}

impl Api {
    /// Logs in, or registers if the account does not exist yet; then selects or creates the tenant.
    pub async fn connect(url: &str, account: Account) -> Result<Self, Failure> {
        let service = ServiceUrl::on_this_machine(url)?;
        let Account { email, password } = &account;
        let session = match Session::log_in(&service, email, password, None).await {
            Err(error) if error.status() == Some(401) => {
                Session::register(&service, email, password).await?
            }
            session => session?,
        };
        let user_uuid = session.user_uuid;
        let login = Arc::new(Login {
            service: service.clone(),
            session: Mutex::new(session),
        });
        let client = Client::new(service, Credential::User(login.clone()))?;
        let tenants: Vec<Tenant> = client.list(operations::TENANTS.call()).await?;
        let tenant = match tenants.into_iter().next_back() {
            Some(oldest) => oldest,
            None => {
                let body = json!({"name": TENANT_NAME});
                client
                    .call(operations::CREATE_TENANT.call().body(body))
                    .await?
            }
        };
        Ok(Self {
            client: client.in_tenant(tenant.tenant_uuid),
            account,
            tenant_uuid: tenant.tenant_uuid,
            user_uuid,
            login,
        })
    }

    /// An access token of the account.
    pub async fn access_token(&self) -> Result<String, Failure> {
        Ok(self.login.get(None).await?)
    }

    /// An unused claim code, for the demo's hub or for another hub of the account.
    pub async fn claim_code(&self) -> Result<String, Failure> {
        let newest: Vec<ClaimCode> = self.client.first(operations::CLAIM_CODES.call(), 1).await?;
        let code = match newest.into_iter().find(|code| code.status == "PENDING") {
            Some(unused) => unused,
            None => {
                let body = json!({
                    "note": "created by hub-cloud demo", "ownerUserUuid": self.user_uuid,
                });
                self.client
                    .call(operations::CREATE_CLAIM_CODE.call().body(body))
                    .await?
            }
        };
        Ok(code.claim_code)
    }

    /// The demo's hub, if it is claimed, and the number of stored events (at most 100,000).
    pub async fn statistics(&self) -> Result<(Option<Hub>, u64), Failure> {
        let hubs: Vec<Hub> = self.client.list(operations::HUBS.call()).await?;
        let hub = hubs
            .into_iter()
            .find(|hub| hub.device_instance_id == DEVICE_INSTANCE_ID);
        let stored = self.client.count(operations::BLE_EVENTS.call()).await?;
        Ok((hub, stored))
    }

    /// Opens the live stream of BLE events from now on.
    pub async fn open_stream(&self) -> Result<Stream, Failure> {
        let mut stream = self.client.follow(operations::BLE_EVENT_STREAM.call());
        stream.open().await?;
        Ok(stream)
    }
}
