//! A kind of destination: everything that the rest needs to know of it.

use std::fmt::Debug;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use hub_outgoing::{Outgoing, OwnTls};
use hub_steps::DestinationForm;
use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;

use super::attempt::{Failure, Sent, credentials_missing};
use super::auth::{Auth, ShownAuth};
use super::connections::{Connections, Key};
use super::members::Problem;
use super::message::{Message, Preview, Signing};
use super::source::Source;
use super::tls;

pub struct Kind {
    pub form: DestinationForm,
    /// The members of its definitions.
    pub members: &'static [&'static str],
    /// Whether messages carry signatures.
    pub is_signed: bool,
    pub check: fn(&Source<'_>) -> Result<Checked, Problem>,
    /// The schemes of receivers that need no credentials, as they are named.
    pub plain_schemes: &'static [&'static str],
    /// The definition of such a receiver, by the scheme, the URL, and the name that its topics or
    /// subjects begin with.
    pub plain: fn(&str, &str, &str) -> Option<Value>,
}

/// A definition that was checked.
pub struct Checked {
    pub destination: Arc<dyn Destination>,
    /// Without secrets.
    pub shown: Value,
    pub has_secrets: bool,
}

impl Checked {
    pub fn new(
        destination: impl Destination + 'static,
        mut shown: Value,
        auth: Option<ShownAuth>,
    ) -> Self {
        let has_secrets = auth.is_some();
        if let (Some(auth), Some(shown)) = (auth, shown.as_object_mut()) {
            shown.insert("auth".to_owned(), auth.value);
        }
        Self {
            destination: Arc::new(destination),
            shown,
            has_secrets,
        }
    }

    /// With the TLS of the receiver's own, as it is shown.
    pub fn with_tls(mut self, tls: Option<Value>) -> Self {
        if let (Some(tls), Some(shown)) = (tls, self.shown.as_object_mut()) {
            shown.insert(tls::MEMBER.to_owned(), tls);
            self.has_secrets = true;
        }
        self
    }
}

pub type SendFuture<'a> = Pin<Box<dyn Future<Output = Sent> + Send + 'a>>;

/// Where messages go.
pub trait Destination: Debug + Send + Sync {
    fn send<'a>(&'a self, sending: Sending<'a>) -> SendFuture<'a>;

    /// Fails if the message would not be sent.
    fn preview(&self, message: &Message) -> Result<Preview, Failure>;

    /// Whether it leaves announcements at the receiver, which stay when nothing is sent any more.
    fn announces(&self) -> bool {
        false
    }

    /// Removes such announcements; returns how many.
    fn withdraw<'a>(&'a self, _: Withdrawal<'a>) -> WithdrawFuture<'a> {
        Box::pin(async { Ok(0) })
    }

    /// What it asks for where `delivery` says nothing.
    fn batch_defaults(&self) -> Option<BatchDefaults> {
        None
    }
}

/// How a destination wants its messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchDefaults {
    /// Events are collected for this long.
    pub every: Duration,
}

pub type WithdrawFuture<'a> = Pin<Box<dyn Future<Output = Result<usize, Failure>> + Send + 'a>>;

/// One try to remove what a pipeline announced, of all devices or of one.
pub struct Withdrawal<'a> {
    pub secrets: Secrets<'a>,
    pub pipeline_uuid: uuid::Uuid,
    pub device_instance_id: Option<i64>,
    pub outgoing: &'a Outgoing,
    pub within: Duration,
}

impl Withdrawal<'_> {
    pub fn auth(&self) -> Result<Option<Auth>, Failure> {
        self.secrets.auth()
    }

    pub fn tls(&self) -> Result<Option<Arc<OwnTls>>, Failure> {
        self.secrets.tls()
    }
}

/// The secrets of a definition.
#[derive(Clone, Copy)]
pub struct Secrets<'a> {
    /// The definition without secrets.
    pub shown: &'a Value,
    pub sealed: Option<&'a SecretString>,
}

/// One try to send a message.
pub struct Sending<'a> {
    /// The definition without secrets.
    pub shown: &'a Value,
    pub secrets: Option<&'a SecretString>,
    pub signing: Option<&'a Signing>,
    pub message: &'a Message,
    pub connections: &'a Connections,
    pub outgoing: &'a Outgoing,
    pub within: Duration,
}

impl Secrets<'_> {
    pub fn auth(&self) -> Result<Option<Auth>, Failure> {
        if self.shown.get("auth").is_none() {
            return Ok(None);
        }
        let auth = self.sealed.and_then(|secrets| {
            let secrets: Value = serde_json::from_str(secrets.expose_secret()).ok()?;
            Auth::of_json(secrets.get("auth")?)
        });
        auth.map(Some).ok_or_else(credentials_missing)
    }

    /// The TLS of the receiver's own.
    pub fn tls(&self) -> Result<Option<Arc<OwnTls>>, Failure> {
        if self.shown.get(tls::MEMBER).is_none() {
            return Ok(None);
        }
        let tls = self.sealed.and_then(tls::open);
        tls.map(Some).ok_or_else(credentials_missing)
    }
}

impl Sending<'_> {
    fn secrets(&self) -> Secrets<'_> {
        Secrets {
            shown: self.shown,
            sealed: self.secrets,
        }
    }

    pub fn auth(&self) -> Result<Option<Auth>, Failure> {
        self.secrets().auth()
    }

    /// The TLS of the receiver's own.
    pub fn tls(&self) -> Result<Option<Arc<OwnTls>>, Failure> {
        self.secrets().tls()
    }

    /// For the connections of one tenant and pipeline; a changed definition or secret is another
    /// one.
    pub fn key(&self) -> Key {
        let secret = self
            .secrets
            .map(|secrets| secrets.expose_secret())
            .unwrap_or_default();
        let fingerprint = hub_base::sealing::hash(&format!("{}\n{secret}", self.shown));
        (self.message.pipeline_uuid, fingerprint)
    }
}
