//! A kind of destination: everything that the rest needs to know of it.

use std::fmt::Debug;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use hub_outgoing::Outgoing;
use hub_steps::DestinationForm;
use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;

use super::attempt::{Failure, Sent, credentials_missing};
use super::auth::{Auth, ShownAuth};
use super::connections::{Connections, Key};
use super::members::Problem;
use super::message::{Message, Preview, Signing};
use super::source::Source;

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
    pub has_auth: bool,
}

impl Checked {
    pub fn new(
        destination: impl Destination + 'static,
        mut shown: Value,
        auth: Option<ShownAuth>,
    ) -> Self {
        let has_auth = auth.is_some();
        if let (Some(auth), Some(shown)) = (auth, shown.as_object_mut()) {
            shown.insert("auth".to_owned(), auth.value);
        }
        Self {
            destination: Arc::new(destination),
            shown,
            has_auth,
        }
    }
}

pub type SendFuture<'a> = Pin<Box<dyn Future<Output = Sent> + Send + 'a>>;

/// Where messages go.
pub trait Destination: Debug + Send + Sync {
    fn send<'a>(&'a self, sending: Sending<'a>) -> SendFuture<'a>;

    /// Fails if the message would not be sent.
    fn preview(&self, message: &Message) -> Result<Preview, Failure>;

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

impl Sending<'_> {
    pub fn auth(&self) -> Result<Option<Auth>, Failure> {
        self.secrets
            .map(|secrets| Auth::open(secrets).ok_or_else(credentials_missing))
            .transpose()
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
