//! The certificate that a hub shows when it connects, where the service speaks TLS itself and asks for one. It never stands in for the hub's token: it has
//! to belong to the same hub. That it was issued below one of the roots was checked when the hub connected; a connection may outlive the certificate, so
//! what can change is looked at with each request.

use std::sync::Arc;

use axum::http::request::Parts;
use hub_protocol::HubUuid;

use crate::app::App;
use crate::config::ClientCertificates;
use crate::domain::certificates;
use crate::domain::certificates::x509::Shown;
use crate::error::{Error, Result};

/// What the connection's other end showed, as every request of the connection carries it.
#[derive(Clone, Debug)]
pub struct ClientCertificate(pub Option<Arc<Shown>>);

/// 401 unless the hub shows a certificate of its own that is in force, or may do without one and shows none.
pub async fn check(parts: &Parts, app: &App, hub_uuid: HubUuid) -> Result<()> {
    let shown = parts.extensions.get::<ClientCertificate>().and_then(|shown| shown.0.as_deref());
    let Some(shown) = shown else {
        return match app.config.client_certificates {
            ClientCertificates::Required => {
                let message = "this service asks hubs for a client certificate; get one, and connect with it";
                Err(Error::unauthorized("CLIENT_CERTIFICATE_REQUIRED", message))
            }
            ClientCertificates::Off | ClientCertificates::Optional => Ok(()),
        };
    };
    if shown.hub_uuid != Some(hub_uuid) {
        let message = "the client certificate belongs to another hub than the access token";
        return Err(Error::unauthorized("CLIENT_CERTIFICATE_OF_OTHER_HUB", message));
    }
    if shown.validity.not_after <= app.clock.now() {
        let message = "the client certificate has expired; get another one, and connect with it";
        return Err(Error::unauthorized("CLIENT_CERTIFICATE_EXPIRED", message));
    }
    let mut conn = app.db.read().await?;
    match certificates::is_in_force(&mut conn, &shown.serial_number, hub_uuid).await? {
        true => Ok(()),
        false => {
            let message = "the client certificate has been revoked; get another one, and connect with it";
            Err(Error::unauthorized("CLIENT_CERTIFICATE_REVOKED", message))
        }
    }
}
