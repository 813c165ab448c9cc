//! Bodies that other systems sign with a secret that they share with the service.

use std::convert::Infallible;
use std::marker::PhantomData;

use aide::OperationInput;
use aide::generate::GenContext;
use aide::openapi::Operation;
use axum::extract::{FromRequest, Request};
use axum::http::{HeaderMap, StatusCode};
use hub_base::error::{Error, Result};
use hub_base::sealing;
use hub_outgoing::signing::{is_service_signature, is_standard_webhook};
use hub_protocol::Timestamp;
use schemars::JsonSchema;
use secrecy::{ExposeSecret, SecretString};
use serde::de::DeserializeOwned;

use super::body;
use super::extract::{Json, parse_json};
use super::file::hold_arriving;
use crate::Core;

const SIGNATURE_HEADER: &str = "x-service-signature";
const TIMESTAMP_HEADER: &str = "x-service-timestamp";
/// The largest difference between the clocks of sender and service.
const MAX_SKEW_SECS: i64 = 300;

/// A body that is read once it is known who has to have signed it.
pub struct SignedJson<T>(Request, PhantomData<fn() -> T>);

impl<T, S: Send + Sync> FromRequest<S> for SignedJson<T> {
    type Rejection = Infallible;

    async fn from_request(request: Request, _: &S) -> Result<Self, Infallible> {
        Ok(Self(request, PhantomData))
    }
}

impl<T: JsonSchema> OperationInput for SignedJson<T> {
    fn operation_input(ctx: &mut GenContext, operation: &mut Operation) {
        Json::<T>::operation_input(ctx, operation);
    }
}

/// A body that the secret has signed.
pub struct Verified<T> {
    pub body: T,
    /// A hash of its bytes, by which a repeated body is known.
    pub hash: Vec<u8>,
}

impl<T: DeserializeOwned> SignedJson<T> {
    /// The body, if the secret signed exactly these bytes; else 401.
    pub async fn verified(self, core: &Core, secret: &SecretString) -> Result<Verified<T>> {
        let Self(request, _) = self;
        let headers = request.headers().clone();
        let mut held = hold_arriving(core);
        let bytes = body::read_json(request, &mut held).await?;
        verify(secret, &headers, &bytes, core.clock.now())?;
        Ok(Verified {
            body: parse_json(&bytes)?,
            hash: sealing::digest(&bytes),
        })
    }
}

/// A body is signed in `X-Service-Signature`, or as Standard Webhooks have it. Times that are sent
/// with it are judged.
fn verify(secret: &SecretString, headers: &HeaderMap, body: &[u8], now: Timestamp) -> Result<()> {
    let one = |name: &str| {
        let mut values = headers.get_all(name).iter();
        let value = values.next().and_then(|value| value.to_str().ok());
        value.filter(|_| values.next().is_none())
    };
    let is_present = |at: Timestamp| (now.as_secs() - at.as_secs()).abs() <= MAX_SKEW_SECS;
    if headers.contains_key(TIMESTAMP_HEADER)
        && !one(TIMESTAMP_HEADER).and_then(time).is_some_and(is_present)
    {
        let message = "`X-Service-Timestamp` is not within five minutes of this service's clock; check the clock of the sender";
        return Err(invalid(message));
    }
    let is_signed = one(SIGNATURE_HEADER).is_some_and(|signature| {
        is_service_signature(secret.expose_secret().as_bytes(), body, signature)
    });
    let standard = || {
        let secs = one("webhook-timestamp")?.parse().ok()?;
        let (id, signatures) = (one("webhook-id")?, one("webhook-signature")?);
        let is_signed = is_standard_webhook(secret, id, secs, body, signatures);
        let at = Timestamp::from_micros(secs.checked_mul(1_000_000)?);
        (is_signed && is_present(at)).then_some(())
    };
    match is_signed || standard().is_some() {
        true => Ok(()),
        false => Err(invalid(
            "neither `X-Service-Signature` nor `webhook-signature` is a signature of this body, and of the present time",
        )),
    }
}

/// RFC 3339, or seconds since 1970.
fn time(text: &str) -> Option<Timestamp> {
    let secs = text.parse().ok();
    let micros = secs.and_then(|secs: i64| secs.checked_mul(1_000_000));
    micros
        .map(Timestamp::from_micros)
        .or_else(|| text.parse().ok())
}

fn invalid(message: &'static str) -> Error {
    let error = Error::new(StatusCode::UNAUTHORIZED, "INVALID_SIGNATURE", message);
    error.with_header("www-authenticate", "X-Service-Signature")
}
