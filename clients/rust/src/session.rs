//! Credentials: API keys, and sessions of users.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use hub_protocol::{PersonaUuid, Timestamp, UserUuid};
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::sync::Mutex;

use crate::{Client, Error, ServiceUrl, operations};

/// The credential of calls.
#[derive(Clone)]
pub enum Credential {
    Anonymous,
    ApiKey(String),
    User(Arc<dyn AccessTokens>),
}

/// A source of access tokens.
pub trait AccessTokens: Send + Sync {
    /// A valid token that differs from `refused`, which the service did not accept.
    fn get<'a>(
        &'a self,
        refused: Option<&'a str>,
    ) -> Pin<Box<dyn Future<Output = Result<String, Error>> + Send + 'a>>;
}

/// A login, as the service returns it after registration, login and refresh. The refresh token
/// works once.
#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Session {
    pub user_uuid: UserUuid,
    pub persona_uuid: PersonaUuid,
    pub access_token: String,
    pub refresh_token: String,
    pub expires_at: Timestamp,
}

/// A token that expires sooner is refreshed before it is used.
const MIN_VALIDITY_SECS: i64 = 60;

impl Session {
    pub async fn register(
        service: &ServiceUrl,
        email: &str,
        password: &str,
    ) -> Result<Self, Error> {
        let call = operations::REGISTER
            .call()
            .body(json!({"email": email, "password": password}));
        Client::new(service.clone(), Credential::Anonymous)?
            .call(call)
            .await
    }

    /// `otp` is a code of the second factor, for an account that has one.
    pub async fn log_in(
        service: &ServiceUrl,
        email: &str,
        password: &str,
        otp: Option<&str>,
    ) -> Result<Self, Error> {
        let call = operations::LOG_IN
            .call()
            .body(json!({"email": email, "password": password, "otp": otp}));
        Client::new(service.clone(), Credential::Anonymous)?
            .call(call)
            .await
    }

    /// The session that replaces this one.
    pub async fn refresh(&self, service: &ServiceUrl) -> Result<Self, Error> {
        let call = operations::REFRESH
            .call()
            .body(json!({"refreshToken": self.refresh_token}));
        let refreshed = Client::new(service.clone(), Credential::Anonymous)?
            .call(call)
            .await;
        refreshed.map_err(|error: Error| match error.status() {
            Some(400 | 401) => Error::NoSession("the session has ended".to_owned()),
            _ => error,
        })
    }

    pub async fn log_out(&self, service: &ServiceUrl) -> Result<(), Error> {
        let call = operations::LOG_OUT
            .call()
            .body(json!({"refreshToken": self.refresh_token}));
        Client::new(service.clone(), Credential::Anonymous)?
            .run(call)
            .await
    }

    /// Whether the access token is valid at this time, and is not `refused`.
    pub fn is_usable(&self, now: Timestamp, refused: Option<&str>) -> bool {
        self.expires_at > now.plus_secs(MIN_VALIDITY_SECS)
            && refused != Some(self.access_token.as_str())
    }
}

/// A session in memory, for a program that stores none.
pub struct SessionTokens {
    service: ServiceUrl,
    session: Mutex<Session>,
}

impl SessionTokens {
    pub fn new(service: ServiceUrl, session: Session) -> Self {
        Self {
            service,
            session: Mutex::new(session),
        }
    }
}

impl AccessTokens for SessionTokens {
    fn get<'a>(
        &'a self,
        refused: Option<&'a str>,
    ) -> Pin<Box<dyn Future<Output = Result<String, Error>> + Send + 'a>> {
        Box::pin(async move {
            let mut session = self.session.lock().await;
            if !session.is_usable(crate::client::now(), refused) {
                *session = session.refresh(&self.service).await?;
            }
            Ok(session.access_token.clone())
        })
    }
}
