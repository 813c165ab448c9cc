//! How a person signs in at the issuer with a browser (authorization code with PKCE, RFC 7636): the
//! page that the browser is sent to, and who came back from there. Nothing of the issuer is kept:
//! no refresh token, and its access token only until it has been looked at.

use hub_base::error::{Error, Result};
use hub_core::Core;
use hub_protocol::Timestamp;

use super::client::{Issuer, LoginRequest};
use super::{Oidc, id_token};
use crate::authn::principal::User;

const MAX_CODE_BYTES: usize = 8 * 1024;
const SCOPE: &str = "openid profile email";

/// What the browser has to bring back, and what the exchange of its code takes.
pub struct Callback<'a> {
    pub redirect_uri: &'a str,
    pub nonce: &'a str,
    pub verifier: &'a str,
}

impl Oidc {
    /// Whether browsers can sign in: the service is a client of the issuer.
    pub fn is_for_browsers(&self) -> bool {
        self.config.client_id.is_some()
    }

    /// The address of the issuer's login page.
    pub async fn login_page(&self, callback: &Callback<'_>, state: &str) -> Result<String> {
        let (issuer, login) = (self.known_issuer().await?, self.login()?);
        let url = issuer.login_url(
            &login,
            callback.redirect_uri,
            state,
            callback.nonce,
            callback.verifier,
        );
        url.map(String::from)
            .map_err(|reason| unavailable().with_cause(reason))
    }

    /// Whether the issuer says who it is when it sends a browser back (RFC 9207).
    pub async fn sends_iss(&self) -> Result<bool> {
        Ok(self.known_issuer().await?.sends_iss())
    }

    /// The person whom the code stands for, with what an access token of theirs would open here.
    /// The error has the reason as its cause.
    pub async fn who_came_back(
        &self,
        core: &Core,
        callback: &Callback<'_>,
        code: &str,
        now: Timestamp,
    ) -> Result<User> {
        if code.is_empty() || code.len() > MAX_CODE_BYTES {
            return Err(failed("the code is empty, or too long"));
        }
        let (issuer, login) = (self.known_issuer().await?, self.login()?);
        let tokens = {
            let busy = || Error::unavailable("BUSY", "too many people sign in; try again shortly");
            let _exchange = self.exchanges.try_acquire().map_err(|_| busy())?;
            issuer
                .redeem(&login, code, callback.redirect_uri, callback.verifier)
                .await
                .map_err(failed)?
        };
        let id_token = tokens
            .id_token
            .ok_or_else(|| failed("the issuer sent no ID token"))?;
        let header = jsonwebtoken::decode_header(&id_token)
            .map_err(|_| failed("the ID token is not a signed JWT"))?;
        let (signed, _) = self
            .signed(&header, &id_token)
            .await
            .map_err(|error| refused_token(error, "the ID token"))?;
        let subject = id_token::check(
            &signed,
            &self.config.issuer,
            login.client_id,
            callback.nonce,
            now,
        )
        .map_err(|reason| {
            failed(format!(
                "the ID token does not belong to this sign-in: {reason}"
            ))
        })?;
        // Rights and profile are those that the access token gives, by one set of rules.
        let (claims, _) = self
            .accepted(&tokens.access_token, now)
            .await
            .map_err(|error| refused_token(error, "the access token"))?;
        if claims.subject != subject {
            return Err(failed(
                "the ID token and the access token are of two people",
            ));
        }
        self.user(core, &claims, now).await
    }

    async fn known_issuer(&self) -> Result<Issuer> {
        let discovery = self.keys.discovery().await.ok_or_else(unavailable)?;
        Ok(Issuer::known(
            self.http.clone(),
            &self.config.issuer,
            discovery,
        ))
    }

    fn login(&self) -> Result<LoginRequest<'_>> {
        let client_id = self
            .config
            .client_id
            .as_deref()
            .ok_or_else(|| Error::internal("there is no oidc-client-id"))?;
        let client_secret = self.config.client_secret.as_ref();
        Ok(LoginRequest {
            client_id,
            client_secret,
            audience: &self.config.audience,
            scope: SCOPE,
        })
    }
}

fn unavailable() -> Error {
    let message =
        "the issuer cannot be reached now, or does not support this sign-in; try again shortly";
    Error::unavailable("ISSUER_UNAVAILABLE", message)
}

fn failed(reason: impl Into<String>) -> Error {
    let message = "the issuer did not confirm this sign-in; begin again";
    Error::unauthorized("SIGN_IN_FAILED", message).with_cause(reason.into())
}

/// As [`failed`], where a token of the issuer is not one that the service accepts.
fn refused_token(error: Error, what: &str) -> Error {
    match error.status().is_server_error() {
        true => error,
        false => failed(format!(
            "{what} is not acceptable here; see docs/api/identity.md on the external issuer"
        )),
    }
}
