//! What a tenant owes and may use. Another service knows it: this one asks it for the tenant of the
//! request, and passes its JSON on. It stores nothing, and shows nothing else of what that service
//! says. The operator chose its address, which may be private: it is called by a client of its own,
//! of the same kind as `Core::outgoing`.

pub mod http;

use std::time::Duration;

use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use bytes::Bytes;
use hub_base::budget::Holder;
use hub_base::error::{Error, Result};
use hub_base::metrics::Metrics;
use hub_base::request_id;
use hub_core::Core;
use hub_core::config::BillingConfig;
use hub_core::http::body::no_memory;
use hub_core::http::json;
use hub_identity::authz::Scope;
use hub_outgoing::{
    CallError, CallErrorKind, Outgoing, OutgoingConfig, OutgoingRequest, OutgoingResponse,
    OutgoingSettingsError,
};
use hub_protocol::TenantUuid;
use reqwest::Url;
use secrecy::ExposeSecret;
use serde_json::value::RawValue;

/// The time limit of a whole call.
const WITHIN: Duration = Duration::from_secs(10);
const MAX_RESPONSE_BYTES: usize = 1024 * 1024;
/// A tenant that does not exist, for a check of the connection without effect.
const NO_TENANT: TenantUuid = TenantUuid(uuid::Uuid::nil());

/// The client of the billing service, if one is configured. Cheap to clone.
#[derive(Clone)]
pub struct Billing {
    core: Core,
    outgoing: Outgoing,
}

/// The resource at the billing service, the last part of the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Subject {
    Balance,
    Entitlement,
    Transactions,
}

impl Subject {
    const fn name(self) -> &'static str {
        match self {
            Self::Balance => "balance",
            Self::Entitlement => "entitlement",
            Self::Transactions => "transactions",
        }
    }
}

/// The operator chose the address, so it may be in a private network.
fn client(config: &OutgoingConfig, metrics: Metrics) -> Result<Outgoing, OutgoingSettingsError> {
    Outgoing::new(
        &OutgoingConfig {
            allow_private_targets: true.into(),
            ..config.clone()
        },
        metrics,
    )
}

impl Billing {
    pub fn new(core: Core) -> Result<Self, OutgoingSettingsError> {
        let outgoing = client(&core.config.outgoing, core.metrics.clone())?;
        Ok(Self { core, outgoing })
    }

    fn configured(&self) -> Result<&BillingConfig> {
        self.core.config.billing.as_ref().ok_or_else(|| {
            let message = "this requires a billing service, and none is configured; the operator of the service has \
                           to set billing-url";
            Error::unavailable("BILLING_NOT_CONFIGURED", message).with_retry_after(60)
        })
    }

    /// The JSON object that the billing service answers about the tenant.
    async fn ask(
        &self,
        scope: &Scope,
        subject: Subject,
        query: &[(&str, String)],
    ) -> Result<Box<RawValue>> {
        let config = self.configured()?;
        let tenant_uuid = scope.tenant_uuid();
        self.core
            .turns
            .billing
            .count(tenant_uuid.0, self.core.clock.now())?;
        let holder = Holder {
            group: tenant_uuid.0,
            member: None,
        };
        let _held = self
            .core
            .bodies
            .answers
            .reserve(holder, MAX_RESPONSE_BYTES)
            .map_err(no_memory)?;
        let answered = call(&self.outgoing, config, tenant_uuid, subject, query).await;
        match answered
            .map_err(Fault::from)
            .and_then(|answer| object(&answer))
        {
            Ok(object) => Ok(object),
            Err(fault) => Err(self.failed(subject, fault)),
        }
    }

    fn failed(&self, subject: Subject, fault: Fault) -> Error {
        let (Fault::TimedOut(reason) | Fault::Failed(reason)) = &fault;
        tracing::warn!(
            subject = subject.name(),
            reason,
            "the billing service failed; check billing-url and its log"
        );
        match fault {
            Fault::TimedOut(_) => Error::new(
                StatusCode::GATEWAY_TIMEOUT,
                "BILLING_TIMED_OUT",
                "the billing service did not answer in time; try again later",
            ),
            Fault::Failed(_) => {
                let message = "the billing service failed; try again later";
                Error::new(StatusCode::BAD_GATEWAY, "BILLING_FAILED", message)
            }
        }
    }
}

/// The reason for having no answer, for the log.
#[derive(Debug)]
enum Fault {
    TimedOut(String),
    Failed(String),
}

impl From<CallError> for Fault {
    fn from(error: CallError) -> Self {
        match error.kind {
            CallErrorKind::TimedOut => Self::TimedOut(error.message),
            _ => Self::Failed(error.message),
        }
    }
}

async fn call(
    outgoing: &Outgoing,
    config: &BillingConfig,
    tenant_uuid: TenantUuid,
    subject: Subject,
    query: &[(&str, String)],
) -> Result<OutgoingResponse, CallError> {
    let unusable = || {
        CallError::new(
            CallErrorKind::Broken,
            "billing-url or billing-token cannot be used",
        )
    };
    let text = format!("{}/tenants/{tenant_uuid}/{}", config.url, subject.name());
    let mut url = Url::parse(&text).map_err(|_| unusable())?;
    if !query.is_empty() {
        url.query_pairs_mut().extend_pairs(query);
    }
    let mut headers =
        HeaderMap::from_iter([(header::ACCEPT, HeaderValue::from_static("application/json"))]);
    if let Some(token) = &config.token {
        let text = format!("Bearer {}", token.expose_secret());
        let mut value = HeaderValue::from_str(&text).map_err(|_| unusable())?;
        value.set_sensitive(true);
        headers.insert(header::AUTHORIZATION, value);
    }
    if let Ok(id) = HeaderValue::try_from(request_id::current()) {
        headers.insert("x-request-id", id);
    }
    let request = OutgoingRequest {
        method: Method::GET,
        url,
        headers,
        body: Bytes::new(),
        within: WITHIN,
        max_response_bytes: MAX_RESPONSE_BYTES,
        tls: None,
    };
    outgoing.send(request).await
}

/// The object in an answer. Its text is passed on: amounts of money keep all their digits.
fn object(answer: &OutgoingResponse) -> Result<Box<RawValue>, Fault> {
    if !(200..300).contains(&answer.status) {
        return Err(Fault::Failed(format!(
            "it answered with status {}",
            answer.status
        )));
    }
    if answer.is_cut {
        return Err(Fault::Failed(format!(
            "its answer has more than {MAX_RESPONSE_BYTES} bytes"
        )));
    }
    json::object(&answer.body)
        .ok_or_else(|| Fault::Failed("it did not answer a JSON object".to_owned()))
}

/// Asks for a tenant that does not exist, and returns what is wrong. Needs no database.
pub async fn try_out(config: &BillingConfig, outgoing: &OutgoingConfig) -> Result<(), String> {
    let outgoing = client(outgoing, Metrics::new()).map_err(|error| error.to_string())?;
    let answer = call(&outgoing, config, NO_TENANT, Subject::Balance, &[])
        .await
        .map_err(|error| error.message)?;
    match answer.status {
        401 | 403 => Err(format!(
            "it refuses `billing-token` (status {})",
            answer.status
        )),
        300..=399 => Err(format!("it redirects elsewhere (status {})", answer.status)),
        500.. => Err(format!("it fails (status {})", answer.status)),
        _ => Ok(()),
    }
}
