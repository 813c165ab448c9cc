//! Signing in at the external issuer with a browser. What has to be remembered meanwhile is in a
//! cookie of this browser, sealed: nothing is stored for somebody who may never come back, and the
//! answer is good for nobody else. The issuer accepts each code once. Afterwards the person has a
//! login of this service, which ends as all others do; no token of the issuer is kept.

use aws_lc_rs::constant_time::verify_slices_are_equal;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hub_base::error::{Error, Result};
use hub_identity::authn::oidc::redirect::Parameters;
use hub_identity::authn::oidc::{Callback, Oidc};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::browser::{self, SignedIn};
use super::origin::Origin;
use super::throttle::{self, Subject};
use super::{Accounts, browser_store, new_token};

pub const CALLBACK_PATH: &str = "/auth/oidc/callback";
/// The time that a person has at the issuer.
pub const VALID_SECS: i64 = 600;
const PURPOSE: &str = "oidc-sign-in";
/// The pages to return to, and those below them.
const PAGES: [&str; 2] = ["/console", "/app/pair"];
const MAX_PATH_BYTES: usize = 500;

/// The state of a sign-in while the person is at the issuer.
#[derive(Serialize, Deserialize)]
struct Pending {
    state: String,
    nonce: String,
    verifier: String,
    redirect_uri: String,
    return_to: String,
    expires_at_secs: i64,
}

/// A sign-in that has begun.
pub struct Begun {
    /// The issuer's page.
    pub page: String,
    pub cookie: String,
}

/// The redirect after the issuer returned the browser.
pub struct Finished {
    pub return_to: String,
    pub outcome: Result<SignedIn>,
}

/// A path on this service, and so plain that browsers read it in one way only.
fn checked_path(path: &str) -> Result<()> {
    let is_below = |page: &str| {
        path.strip_prefix(page)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/') || rest.starts_with('?'))
    };
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~/?=&".contains(&byte);
    let is_path = path.len() <= MAX_PATH_BYTES && path.bytes().all(is_plain);
    if !is_path || path.contains("..") || path.contains("//") || !PAGES.into_iter().any(is_below) {
        let message = format!(
            "must be the path of a page below {}, without a fragment, at most {MAX_PATH_BYTES} characters",
            PAGES.join(" or ")
        );
        return Err(Error::field("returnTo", message));
    }
    Ok(())
}

/// The issuer at which browsers sign in, and where it sends them back to.
pub fn issuer(accounts: &Accounts) -> Option<(&Oidc, String)> {
    let oidc = accounts
        .authn
        .oidc
        .as_deref()
        .filter(|oidc| oidc.is_for_browsers())?;
    Some((
        oidc,
        format!("{}{CALLBACK_PATH}", accounts.core.config.own_url()?),
    ))
}

pub async fn begin(accounts: &Accounts, return_to: String) -> Result<Begun> {
    checked_path(&return_to)?;
    let (oidc, redirect_uri) = issuer(accounts).ok_or_else(|| {
        let message =
            "nobody signs in here at an issuer; set oidc-issuer, oidc-audience, oidc-client-id and public-url";
        Error::unavailable("OIDC_NOT_CONFIGURED", message).with_retry_after(60)
    })?;
    let expires_at_secs = accounts.core.clock.now().plus_secs(VALID_SECS).as_secs();
    let (state, nonce, verifier) = (new_token(), new_token(), new_token());
    let callback = Callback {
        redirect_uri: &redirect_uri,
        nonce: &nonce,
        verifier: &verifier,
    };
    let page = oidc.login_page(&callback, &state).await?;
    let pending = Pending {
        state,
        nonce,
        verifier,
        redirect_uri,
        return_to,
        expires_at_secs,
    };
    let pending = serde_json::to_vec(&pending).map_err(Error::internal)?;
    Ok(Begun {
        page,
        cookie: URL_SAFE_NO_PAD.encode(accounts.core.sealer.seal(PURPOSE, "", &pending)),
    })
}

/// The error is of an answer that this browser does not wait for.
pub async fn finish(
    accounts: &Accounts,
    origin: &Origin,
    cookie: Option<String>,
    parameters: Parameters,
) -> Result<Finished> {
    let pending = cookie
        .and_then(|cookie| opened(accounts, &cookie))
        .ok_or_else(invalid_state)?;
    let state = parameters.state.as_deref().unwrap_or_default();
    let is_of_state = verify_slices_are_equal(state.as_bytes(), pending.state.as_bytes()).is_ok();
    if !is_of_state || pending.expires_at_secs <= accounts.core.clock.now().as_secs() {
        return Err(invalid_state());
    }
    let outcome = complete(accounts, origin, &pending, parameters).await;
    match &outcome {
        Ok(_) => {}
        Err(error) if error.is_internal() => {
            tracing::error!(%error, "signing in at the issuer failed")
        }
        Err(error) => {
            tracing::info!(%error, code = error.code(), "a person could not sign in at the issuer")
        }
    }
    Ok(Finished {
        return_to: pending.return_to,
        outcome,
    })
}

fn opened(accounts: &Accounts, cookie: &str) -> Option<Pending> {
    let sealed = URL_SAFE_NO_PAD.decode(cookie).ok()?;
    serde_json::from_slice(&accounts.core.sealer.open(PURPOSE, "", &sealed).ok()?).ok()
}

fn invalid_state() -> Error {
    let message = "this browser does not wait for this answer: it took longer than ten minutes, or began another \
                   sign-in since; begin again";
    Error::bad_request("INVALID_STATE", message)
}

async fn complete(
    accounts: &Accounts,
    origin: &Origin,
    pending: &Pending,
    parameters: Parameters,
) -> Result<SignedIn> {
    let core = &accounts.core;
    let (oidc, _) = issuer(accounts)
        .ok_or_else(|| Error::unavailable("OIDC_NOT_CONFIGURED", "oidc-issuer is unset"))?;
    if !parameters.is_from(oidc.issuer(), oidc.sends_iss().await?) {
        let message = "another issuer answered than the one that was asked; begin again";
        return Err(Error::bad_request("OTHER_ISSUER", message));
    }
    if let Some(error) = &parameters.error {
        let reason = hub_identity::authn::oidc::client::refusal(
            error,
            parameters.error_description.as_deref(),
        );
        let message = "the issuer did not let this person sign in, or they changed their mind";
        return Err(Error::forbidden("SIGN_IN_REFUSED", message).with_cause(reason));
    }
    // Codes are counted with wrong passwords: each one is a request to the issuer.
    let subjects: Vec<Subject> = origin.address.map(Subject::address).into_iter().collect();
    throttle::count(&core.db, &subjects, core.clock.now()).await?;
    let Pending {
        redirect_uri,
        nonce,
        verifier,
        ..
    } = pending;
    let callback = Callback {
        redirect_uri,
        nonce,
        verifier,
    };
    let code = parameters.code.as_deref().unwrap_or_default();
    let user = oidc
        .who_came_back(core, &callback, code, core.clock.now())
        .await?;
    let now = core.clock.now();
    let mut tx = core.db.begin().await?;
    // The account may have been deleted in the meantime.
    if !browser_store::lock_of_issuer(&mut tx, &user, oidc.issuer()).await? {
        return Err(hub_identity::authn::invalid_token());
    }
    throttle::record_success(&mut tx, &[], &subjects).await?;
    browser::begin(
        accounts,
        tx,
        &user,
        origin,
        (Uuid::now_v7(), Some(oidc.issuer())),
        now,
    )
    .await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn browsers_come_back_to_pages_of_this_service_only() {
        for path in [
            "/console",
            "/console/",
            "/console/hubs/1?status=online&q=a.b",
            "/app/pair",
            "/console?a=b",
        ] {
            assert!(checked_path(path).is_ok(), "{path}");
        }
        let long = format!("/console/{}", "x".repeat(MAX_PATH_BYTES));
        for path in [
            "",
            "/",
            "console",
            "/consoles",
            "/app/pairs",
            "/app",
            "//evil.example/console",
            "/\\evil.example",
            "/console\\@evil.example",
            "/console//evil.example",
            "/console/../auth/login",
            "/console/%2e%2e/x",
            "/console#code",
            "/console\n",
            "/console/\u{e9}",
            "https://evil.example/console",
            "javascript:alert(1)",
            &long,
        ] {
            assert!(checked_path(path).is_err(), "{path}");
        }
    }
}
