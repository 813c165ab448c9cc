//! Calls of the service with the hub's credentials: which token and certificate are in use, what to
//! do when one is refused, and whether the service answers. Credentials are on disk before they are
//! used.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hub_protocol::Timestamp;
use hub_protocol::claim::{HubAccess, HubRefreshRequest};
use hub_protocol::job::is_near;
use hub_trust::FilesNow;
use reqwest::Url;
use reqwest::header::{AUTHORIZATION, HeaderValue};
use secrecy::{ExposeSecret, SecretString};
use tokio::sync::watch;
use tokio::time::Instant;

use super::certificate::{self, Certificate};
use super::http::{Answer, CallError, Request, http_client};
use super::reach::is_before_certificate;
use super::service_time;
use super::tls::Identity;
use crate::clock::{Clock, since_boot_micros};
use crate::config::{self, ServiceArgs};
use crate::error::Failure;
use crate::hold::HELD_AT_LEAST;
use crate::identity::{Credentials, StateDir};
use crate::moved::{self, InForce};

/// The service's error codes for a call without a certificate, and with one that has expired.
const NO_CERTIFICATE: &str = "CLIENT_CERTIFICATE_REQUIRED";
const EXPIRED_CERTIFICATE: &str = "CLIENT_CERTIFICATE_EXPIRED";

/// The number of consecutive failures after which the certificate is suspected: a service that does
/// not accept it may end the connection without an answer.
const SUSPECT_CERTIFICATE_AFTER: u32 = 5;

/// How often the files of the trusted authorities are looked at, and how often the service's time
/// is asked for while the clock is before its certificate.
const LOOK_AT_AUTHORITIES_EVERY: Duration = Duration::from_secs(10);
const LEARN_TIME_EVERY: Duration = Duration::from_secs(10);

/// The slowest connection on which an upload does not time out.
const SLOWEST_BYTES_PER_SEC: u64 = 4 << 10;

/// Whether the service accepts this hub.
#[derive(Clone, Debug)]
pub enum Access {
    /// Never claimed.
    Unclaimed,
    Granted(Credentials),
    /// The hub was blocked or revoked, or its credentials expired. A new claim code restores
    /// access.
    Refused {
        credentials: Credentials,
        reason: String,
    },
}

/// The state of the connection.
#[derive(Clone, Debug, Default)]
pub struct Contact {
    /// When the service last answered anything.
    pub last_answer_at: Option<Timestamp>,
    /// Why it cannot be reached, while that is so.
    pub unreachable: Option<String>,
    /// How long the path to the service holds a request, where that is less than wanted.
    pub path_hold: Option<Duration>,
    /// Why the last claim failed.
    pub claim_refused: Option<String>,
    /// Why the service issues no client certificate, although it requires one.
    pub certificate_refused: Option<String>,
    /// The refusal of this hub was logged.
    is_refusal_logged: bool,
}

pub struct Service {
    /// Replaced when the hub's certificate or the trusted authorities change.
    http: Mutex<reqwest::Client>,
    /// The authorities that it trusts, and when their files were last looked at.
    authorities: Mutex<(FilesNow, Instant)>,
    /// When the service's time was last asked for.
    time_asked_at: Mutex<Option<Instant>>,
    pub(super) args: ServiceArgs,
    base: Url,
    /// The configured service, if a job moved the hub from it.
    moved_from: Option<Url>,
    /// Whether the credentials on disk are of another service, to which alone they may be shown.
    has_foreign_credentials: AtomicBool,
    certificate: watch::Sender<Option<Certificate>>,
    /// Incremented whenever another certificate, or none, comes into use.
    certificate_version: AtomicU32,
    /// The service did not accept the last one.
    certificate_refused: AtomicBool,
    /// A certificate that is not accepted with ordinary calls, and is kept because it may still get
    /// the hub another one.
    set_aside: Mutex<Option<Certificate>>,
    /// The number of failures since the service's last answer.
    failures: AtomicU32,
    pub request_timeout: Duration,
    pub(super) state_dir: Arc<StateDir>,
    pub(super) clock: Arc<Clock>,
    access: watch::Sender<Access>,
    /// A lock that is held while credentials are being replaced.
    /// It has the time before which the service accepts no further refresh.
    pub(super) renewal: tokio::sync::Mutex<Option<Instant>>,
    contact: Mutex<Contact>,
    /// The credentials in use are not on disk.
    unsaved: AtomicBool,
    device_instance_id: String,
    pub(super) hub_identifier: Option<String>,
}

impl Service {
    pub fn new(
        args: &ServiceArgs,
        state_dir: Arc<StateDir>,
        clock: Arc<Clock>,
    ) -> Result<Self, Failure> {
        let InForce {
            url: base,
            moved_from,
            ..
        } = moved::in_force(state_dir.path(), config::service_url(args)?);
        let device_instance_id =
            state_dir.device_instance_id(args.device_instance_id.as_deref())?;
        let stored = state_dir.load_credentials()?;
        let is_own = |stored: &Credentials| {
            let service = stored.service_url.as_deref();
            service.is_none_or(|service| moved::is_same_service(service, &base))
        };
        let has_foreign_credentials = stored.as_ref().is_some_and(|stored| !is_own(stored));
        let access = match stored.filter(is_own) {
            Some(credentials) => Access::Granted(credentials),
            None => Access::Unclaimed,
        };
        let certificate = match &access {
            Access::Granted(credentials) => Certificate::load(&state_dir, credentials),
            Access::Unclaimed | Access::Refused { .. } => None,
        };
        // Before they are read: a change in between is read again.
        let authorities = FilesNow::of_authorities(args.ca_file.as_deref());
        let identity = certificate
            .as_ref()
            .filter(|_| base.scheme() == "https")
            .and_then(Certificate::identity);
        let http = match identity {
            // A hub without its certificate gets another one; a hub that does not start cannot.
            Some(identity) => http_client(args, &base, Some(identity), &clock)
                .or_else(|_| http_client(args, &base, None, &clock)),
            None => http_client(args, &base, None, &clock),
        }?;
        Ok(Self {
            http: Mutex::new(http),
            authorities: Mutex::new((authorities, Instant::now())),
            time_asked_at: Mutex::new(None),
            args: args.clone(),
            base,
            moved_from,
            has_foreign_credentials: AtomicBool::new(has_foreign_credentials),
            certificate: watch::Sender::new(certificate),
            certificate_version: AtomicU32::new(0),
            certificate_refused: AtomicBool::new(false),
            set_aside: Mutex::new(None),
            failures: AtomicU32::new(0),
            request_timeout: args.request_timeout.0,
            state_dir,
            clock,
            access: watch::Sender::new(access),
            renewal: tokio::sync::Mutex::new(None),
            contact: Mutex::new(Contact::default()),
            unsaved: AtomicBool::new(false),
            device_instance_id,
            hub_identifier: args.hub_identifier.clone(),
        })
    }

    /// Whether tokens cross a network that is not this machine's or a private one in plain text.
    pub fn is_exposed_in_plain_text(&self) -> bool {
        self.base.scheme() == "http" && !is_near(self.base.host_str().unwrap_or_default())
    }

    pub fn url(&self) -> &Url {
        &self.base
    }

    /// The configured service, if a job moved the hub from it.
    pub fn moved_from(&self) -> Option<&Url> {
        self.moved_from.as_ref()
    }

    /// Whether the credentials on disk are of another service. The hub has no access then, and
    /// needs a claim.
    pub fn has_foreign_credentials(&self) -> bool {
        self.has_foreign_credentials.load(Ordering::Relaxed)
    }

    pub fn device_instance_id(&self) -> &str {
        &self.device_instance_id
    }

    pub fn access(&self) -> watch::Receiver<Access> {
        self.access.subscribe()
    }

    pub(super) fn set_access(&self, access: Access) {
        self.access.send_replace(access);
    }

    pub fn contact(&self) -> Contact {
        self.lock_contact().clone()
    }

    /// Notes how long the path holds a request.
    pub fn set_path_hold(&self, limit: Option<Duration>) {
        self.lock_contact().path_hold = limit;
    }

    pub(super) fn set_claim_refused(&self, reason: Option<String>) {
        self.lock_contact().claim_refused = reason;
    }

    /// Logs a refusal once, until a certificate is issued.
    pub(super) fn set_certificate_refused(&self, reason: Option<String>) {
        let before =
            std::mem::replace(&mut self.lock_contact().certificate_refused, reason.clone());
        if let (None, Some(reason)) = (before, reason) {
            tracing::error!(
                reason,
                "the service issues no client certificate to this hub; claim it again (hub-agent claim) if its key is \
                 lost. Records are kept meanwhile"
            );
        }
    }

    fn lock_contact(&self) -> std::sync::MutexGuard<'_, Contact> {
        self.contact.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A client for a file on another server, which receives neither token nor certificate.
    pub fn download_client(&self, to: &Url) -> Result<reqwest::Client, Failure> {
        http_client(&self.args, to, None, &self.clock)
    }

    /// The time limit of an upload with so many bytes.
    pub fn time_for(&self, bytes: usize) -> Duration {
        self.request_timeout + Duration::from_secs(bytes as u64 / SLOWEST_BYTES_PER_SEC)
    }

    /// Sends a request with the hub's access token. If the token is refused, it is renewed and the
    /// request is sent once more.
    pub async fn call(&self, request: &Request) -> Result<Answer, CallError> {
        self.call_as(&self.granted()?, request).await
    }

    /// As [`Service::call`], only for the owner of these credentials: data must not reach a tenant
    /// that claims the hub meanwhile.
    pub async fn call_as(
        &self,
        credentials: &Credentials,
        request: &Request,
    ) -> Result<Answer, CallError> {
        let answer = self.call_showing(None, credentials, request).await?;
        if answer.status == 401 {
            // The certificate is refused, or the token right after its renewal: another token would
            // not help.
            return Err(CallError::Unreachable(answer.reason()));
        }
        Ok(answer)
    }

    /// As [`Service::call_as`], over connections that show this certificate instead of the one in
    /// use. Also returns a refusal of the certificate.
    pub(super) async fn call_showing(
        &self,
        certificate: Option<&Certificate>,
        credentials: &Credentials,
        request: &Request,
    ) -> Result<Answer, CallError> {
        let http = match certificate {
            Some(certificate) => {
                let http = self.client_with(certificate.identity());
                Some(http.map_err(|error| CallError::Unreachable(error.to_string()))?)
            }
            None => None,
        };
        let answer = self
            .send_over(http.as_ref(), request, &credentials.access_token)
            .await?;
        if answer.status != 401 || answer.certificate_error().is_some() {
            return Ok(answer);
        }
        let renewed = self.renew(Some(&credentials.access_token)).await?;
        if renewed.tenant_uuid != credentials.tenant_uuid {
            return Err(CallError::NoAccess);
        }
        self.send_over(http.as_ref(), request, &renewed.access_token)
            .await
    }

    async fn send_over(
        &self,
        http: Option<&reqwest::Client>,
        request: &Request,
        token: &SecretString,
    ) -> Result<Answer, CallError> {
        match http {
            Some(http) => self.exchange(http, request, Some(token)).await,
            None => self.send(request, Some(token)).await,
        }
    }

    pub fn granted(&self) -> Result<Credentials, CallError> {
        match &*self.access.borrow() {
            Access::Granted(credentials) => Ok(credentials.clone()),
            Access::Unclaimed | Access::Refused { .. } => Err(CallError::NoAccess),
        }
    }

    /// Gets a new access token. `refused` is the one that was not accepted: if it has been replaced
    /// meanwhile, the service is not called.
    ///
    /// A lost answer does no harm: for this call alone, the service still accepts the token that it
    /// replaced.
    pub async fn renew(&self, refused: Option<&SecretString>) -> Result<Credentials, CallError> {
        let mut not_before = self.renewal.lock().await;
        let credentials = self.granted()?;
        if refused.is_some_and(|refused| {
            refused.expose_secret() != credentials.access_token.expose_secret()
        }) {
            return Ok(credentials);
        }
        if let Some(left) = not_before.and_then(|at| at.checked_duration_since(Instant::now())) {
            return Err(CallError::Unreachable(format!(
                "the service accepts the next token refresh in {} s",
                left.as_secs() + 1
            )));
        }
        let body = HubRefreshRequest {
            refresh_token: credentials.refresh_token.expose_secret().to_owned(),
            boot_id: Some(self.clock.boot().to_string()),
        };
        let body =
            serde_json::to_vec(&body).map_err(|error| CallError::Unreachable(error.to_string()))?;
        let answer = self
            .send(
                &Request::post_json("/v1/hubs/refresh", body),
                Some(&credentials.access_token),
            )
            .await?;
        *not_before = answer.retry_after.map(|after| Instant::now() + after);
        match answer.status {
            200 => {
                let access: HubAccess = answer.data()?;
                let renewed = Credentials {
                    access_token: access.access_token.into(),
                    expires_at: access.expires_at,
                    ..credentials
                };
                self.accept(renewed.clone())
                    .await
                    .map_err(|error| CallError::Unreachable(error.to_string()))?;
                tracing::debug!(expires_at = %renewed.expires_at, "the access token is renewed");
                Ok(renewed)
            }
            // A proxy's refusal, or one of the certificate, must not cost the hub its credentials.
            401 | 403 if answer.problem().is_some() && answer.certificate_error().is_none() => {
                let reason = answer.reason();
                if !std::mem::replace(&mut self.lock_contact().is_refusal_logged, true) {
                    tracing::error!(
                        hub_uuid = %credentials.hub_uuid, reason,
                        "the service refuses this hub; claim it again (hub-agent claim). Records are kept meanwhile"
                    );
                }
                self.set_access(Access::Refused {
                    credentials,
                    reason,
                });
                Err(CallError::NoAccess)
            }
            _ => Err(CallError::Unreachable(answer.reason())),
        }
    }

    /// Starts to use these credentials, which are on disk first: a token that is used and then lost
    /// in a crash would lock the hub out.
    pub(super) async fn accept(&self, credentials: Credentials) -> std::io::Result<()> {
        let saved = self.save(&credentials).await;
        self.lock_contact().is_refusal_logged = false;
        self.has_foreign_credentials.store(false, Ordering::Relaxed);
        // Used even if they could not be written: the old ones are refused from now on.
        self.set_access(Access::Granted(credentials));
        saved
    }

    async fn save(&self, credentials: &Credentials) -> std::io::Result<()> {
        let saved = self.state_dir.save_credentials(credentials).await;
        let unsaved_before = self.unsaved.swap(saved.is_err(), Ordering::Relaxed);
        match &saved {
            Err(error) if !unsaved_before => {
                tracing::error!(
                    %error, dir = %self.state_dir.path().display(),
                    "the hub's credentials cannot be written, and a restart would lose them; free some disk space"
                );
            }
            Ok(()) if unsaved_before => tracing::info!("the hub's credentials are written"),
            _ => {}
        }
        saved
    }

    /// Writes the credentials in use if that failed before.
    pub(super) async fn save_unsaved(&self, credentials: &Credentials) {
        if self.unsaved.load(Ordering::Relaxed) {
            // The first failure was logged, and so is the success after it.
            let _ = self.save(credentials).await;
        }
    }

    /// Sends a request with this token, or without any.
    pub(super) async fn send(
        &self,
        request: &Request,
        token: Option<&SecretString>,
    ) -> Result<Answer, CallError> {
        let version = self.certificate_version.load(Ordering::Acquire);
        let sent_at = Instant::now();
        let mut result = self.exchange(&self.http(), request, token).await;
        if let Ok(answer) = &result
            && let Some(code) = answer.certificate_error()
            && self.drop_refused_certificate(version, &code).await
        {
            result = self.exchange(&self.http(), request, token).await;
        }
        // The path ends requests that are held for longer than it likes. That is no failure.
        let elapsed = sent_at.elapsed();
        if request.hold > elapsed && elapsed >= HELD_AT_LEAST {
            let is_cut = match &result {
                Ok(answer) => answer.is_of_gateway(),
                Err(error) => *error != CallError::NoAccess,
            };
            if is_cut {
                return Ok(Answer::cut(elapsed));
            }
        }
        let foreign = match &result {
            Ok(answer) if answer.is_foreign() => Some(answer.reason()),
            _ => None,
        };
        if result.is_ok() {
            self.failures.store(0, Ordering::Relaxed);
        } else if self.failures.fetch_add(1, Ordering::Relaxed) % SUSPECT_CERTIFICATE_AFTER
            == SUSPECT_CERTIFICATE_AFTER - 1
        {
            result = self
                .try_without_certificate(request, token)
                .await
                .map_or(result, Ok);
        }
        let mut contact = self.lock_contact();
        match (&result, foreign) {
            (Ok(_), None) => {
                contact.last_answer_at = Some(self.clock.now());
                if contact.unreachable.take().is_some() {
                    tracing::info!(service = %self.base, "the service answers again");
                }
            }
            (Ok(_), Some(reason)) => {
                if contact.unreachable.is_none() {
                    tracing::warn!(service = %self.base, reason, "something else answers in place of the service; records are kept until it answers");
                }
                contact.unreachable = Some(reason);
            }
            (Err(error), _) => {
                if contact.unreachable.is_none() {
                    tracing::warn!(service = %self.base, %error, "the service cannot be reached; records are kept until it can");
                }
                contact.unreachable = Some(error.to_string());
            }
        }
        result
    }

    /// Sends a request to another service, which gets neither token nor certificate.
    pub(super) async fn send_elsewhere(
        &self,
        to: &Url,
        request: &Request,
    ) -> Result<Answer, CallError> {
        let unreachable = CallError::Unreachable;
        let http = self
            .download_client(to)
            .map_err(|error| unreachable(error.to_string()))?;
        let url = to
            .join(request.path.trim_start_matches('/'))
            .map_err(|error| unreachable(error.to_string()))?;
        let asked_at = since_boot_micros();
        let response = http
            .request(request.method.clone(), url)
            .timeout(request.timeout.unwrap_or(self.request_timeout))
            .headers(request.headers.clone())
            .body(request.body.clone())
            .send()
            .await?;
        Answer::read(response, asked_at, request.longest_answer, &self.clock).await
    }

    fn http(&self) -> reqwest::Client {
        self.follow_authorities();
        self.http
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    fn client_with(&self, identity: Option<Identity>) -> Result<reqwest::Client, Failure> {
        http_client(&self.args, &self.base, identity, &self.clock)
    }

    /// Trusts the authorities of the machine as they are now, if they have changed. Files that
    /// cannot be read, as in the midst of their update, change nothing yet.
    fn follow_authorities(&self) {
        let mut known = self
            .authorities
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if self.base.scheme() == "http" || known.1.elapsed() < LOOK_AT_AUTHORITIES_EVERY {
            return;
        }
        known.1 = Instant::now();
        let now = FilesNow::of_authorities(self.args.ca_file.as_deref());
        if now == known.0 {
            return;
        }
        let in_use = self.certificate.borrow().clone();
        match self.client_with(in_use.as_ref().and_then(Certificate::identity)) {
            Ok(http) => {
                tracing::info!("the trusted authorities have changed and are read again");
                *self.http.lock().unwrap_or_else(PoisonError::into_inner) = http;
                known.0 = now;
            }
            Err(error) => tracing::warn!(%error, "the trusted authorities cannot be read again"),
        }
    }

    /// Learns the time from the service, whose certificate begins later than this clock shows.
    async fn learn_time(&self) -> bool {
        {
            let mut asked_at = self
                .time_asked_at
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            if asked_at.is_some_and(|at| at.elapsed() < LEARN_TIME_EVERY) {
                return false;
            }
            *asked_at = Some(Instant::now());
        }
        match service_time::learn(&self.args, &self.base, &self.clock).await {
            Ok(()) => {
                tracing::warn!(
                    known = %self.clock.known(),
                    "this machine's clock is before the service's certificate; the service's time is used"
                );
                true
            }
            Err(reason) => {
                tracing::warn!(reason, "the service's time cannot be learned");
                false
            }
        }
    }

    async fn exchange(
        &self,
        http: &reqwest::Client,
        request: &Request,
        token: Option<&SecretString>,
    ) -> Result<Answer, CallError> {
        let url = self
            .base
            .join(request.path.trim_start_matches('/'))
            .map_err(|error| CallError::Unreachable(error.to_string()))?;
        let mut call = http
            .request(request.method.clone(), url)
            .timeout(request.timeout.unwrap_or(self.request_timeout))
            .headers(request.headers.clone())
            .body(request.body.clone());
        if let Some(token) = token {
            let mut value = HeaderValue::from_str(&format!("Bearer {}", token.expose_secret()))
                .map_err(|_| {
                    CallError::Unreachable(
                        "the stored access token is malformed; claim this hub again".into(),
                    )
                })?;
            value.set_sensitive(true);
            call = call.header(AUTHORIZATION, value);
        }
        let repeated = call.try_clone();
        let asked_at = since_boot_micros();
        let response = match (call.send().await, repeated) {
            (Err(error), Some(repeated))
                if is_before_certificate(&error) && self.learn_time().await =>
            {
                repeated.send().await
            }
            (sent, _) => sent,
        };
        Answer::read(response?, asked_at, request.longest_answer, &self.clock).await
    }

    /// The certificate in use.
    pub(super) fn certificate(&self) -> watch::Receiver<Option<Certificate>> {
        self.certificate.subscribe()
    }

    /// When the certificate in use expires.
    pub fn certificate_not_after(&self) -> Option<Timestamp> {
        self.certificate
            .borrow()
            .as_ref()
            .map(|certificate| certificate.not_after)
    }

    /// Connects with this certificate from now on.
    pub(super) fn use_certificate(&self, certificate: Certificate) {
        self.set_certificate_refused(None);
        self.switch_certificate(Some(certificate), None);
    }

    fn switch_certificate(&self, certificate: Option<Certificate>, set_aside: Option<Certificate>) {
        *self.lock_set_aside() = set_aside;
        let identity = certificate.as_ref().and_then(Certificate::identity);
        if self.base.scheme() == "https" {
            match self.client_with(identity) {
                Ok(http) => *self.http.lock().unwrap_or_else(PoisonError::into_inner) = http,
                Err(error) => tracing::warn!(%error, "the client certificate cannot be used"),
            }
        }
        self.certificate.send_replace(certificate);
        self.certificate_version.fetch_add(1, Ordering::Release);
    }

    fn lock_set_aside(&self) -> std::sync::MutexGuard<'_, Option<Certificate>> {
        self.set_aside
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// The certificate that was set aside, if it can be shown.
    pub(super) fn set_aside_certificate(&self) -> Option<Certificate> {
        self.lock_set_aside()
            .clone()
            .filter(|_| self.base.scheme() == "https")
    }

    /// Connects without the certificate, which stays on disk.
    fn set_certificate_aside(&self) {
        let in_use = self.certificate.borrow().clone();
        self.switch_certificate(None, in_use);
    }

    /// Whether the service has refused a certificate since the last call of this function.
    pub(super) fn take_certificate_refused(&self) -> bool {
        self.certificate_refused.swap(false, Ordering::Relaxed)
    }

    /// Stops using the certificate of this version, which the service refused with this code;
    /// another one is then requested. An expired one is kept, because the request may have to show
    /// it. Returns whether another one, or none, is in use now, so that the call is worth
    /// repeating.
    async fn drop_refused_certificate(&self, version: u32, code: &str) -> bool {
        let is_in_use = self.certificate_version.load(Ordering::Acquire) == version
            && self.certificate_not_after().is_some();
        if is_in_use && code != NO_CERTIFICATE {
            tracing::warn!(
                code,
                "the service refuses this hub's client certificate; another one is requested"
            );
            self.certificate_refused.store(true, Ordering::Relaxed);
            match code {
                EXPIRED_CERTIFICATE => self.set_certificate_aside(),
                _ => self.remove_certificate().await,
            }
        }
        self.certificate_version.load(Ordering::Acquire) != version
    }

    /// The answer to the same request without the certificate. If there is one, the certificate is
    /// what was not accepted, and another one is requested.
    async fn try_without_certificate(
        &self,
        request: &Request,
        token: Option<&SecretString>,
    ) -> Option<Answer> {
        if self.base.scheme() != "https" || self.certificate_not_after().is_none() {
            return None;
        }
        let http = self.client_with(None).ok()?;
        let answer = self.exchange(&http, request, token).await.ok()?;
        tracing::warn!(
            "the service does not accept this hub's client certificate; another one is requested"
        );
        self.certificate_refused.store(true, Ordering::Relaxed);
        self.set_certificate_aside();
        Some(answer)
    }

    /// Connects without a certificate, and forgets the last one and the key of the next.
    pub(super) async fn remove_certificate(&self) {
        self.switch_certificate(None, None);
        for file in [certificate::FILE, certificate::NEXT_KEY_FILE] {
            if let Err(error) = self.state_dir.remove(file).await {
                tracing::warn!(%error, file, "an old client certificate cannot be removed");
            }
        }
    }
}
