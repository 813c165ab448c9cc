//! Bodies that other systems sign with a secret that they share with the service.

use std::convert::Infallible;
use std::marker::PhantomData;

use aide::OperationInput;
use aide::generate::GenContext;
use aide::openapi::Operation;
use axum::extract::{FromRequest, Request};
use axum::http::{HeaderMap, StatusCode};
use hub_base::budget::Holder;
use hub_base::error::{Error, Result};
use hub_outgoing::signing::is_service_signature;
use schemars::JsonSchema;
use secrecy::{ExposeSecret, SecretString};
use serde::de::DeserializeOwned;

use super::body;
use super::client_address;
use super::extract::{Json, parse_json};
use crate::Core;

const SIGNATURE_HEADER: &str = "x-service-signature";

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

impl<T: DeserializeOwned> SignedJson<T> {
    /// The body, if the secret signed exactly these bytes; else 401.
    pub async fn verified(self, core: &Core, secret: &SecretString) -> Result<T> {
        let Self(request, _) = self;
        let headers = request.headers().clone();
        let mut held = core
            .bodies
            .arriving
            .hold(Holder::address(client_address::current()));
        let bytes = body::read_json(request, &mut held).await?;
        verify(secret, &headers, &bytes)?;
        parse_json(&bytes)
    }
}

fn verify(secret: &SecretString, headers: &HeaderMap, body: &[u8]) -> Result<()> {
    let mut signatures = headers.get_all(SIGNATURE_HEADER).iter();
    let signature = signatures
        .next()
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    let is_signed = is_service_signature(secret.expose_secret().as_bytes(), body, signature);
    match is_signed && signatures.next().is_none() {
        true => Ok(()),
        false => {
            let message = "`X-Service-Signature` is missing, or is not the signature of this body";
            let error = Error::new(StatusCode::UNAUTHORIZED, "INVALID_SIGNATURE", message);
            Err(error.with_header("www-authenticate", "X-Service-Signature"))
        }
    }
}
