//! A login in the browser: authorization code with PKCE and a loopback redirect (RFC 8252).

use std::process::Stdio;
use std::time::Duration;

use super::callback::{Callback, Expected};
use crate::failure::Failure;
use crate::issuer::{Issuer, IssuerSession, LoginRequest};
use crate::terminal::note;

/// Time for the user to complete the login in the browser.
const LOGIN_TIMEOUT: Duration = Duration::from_secs(5 * 60);

pub async fn log_in(issuer: &str, login: &LoginRequest) -> Result<IssuerSession, Failure> {
    let issuer = Issuer::discover(issuer).await?;
    let callback = Callback::listen().await?;
    let page = issuer.login_page(login, callback.redirect_uri())?;
    note(&format!(
        "To log in, open this page in a browser on this machine:\n\n  {}\n",
        page.url
    ));
    open_browser(page.url.as_str());
    let expected = Expected {
        state: &page.state,
        issuer: issuer.name(),
        sends_iss: issuer.sends_iss,
    };
    let redirect = tokio::time::timeout(LOGIN_TIMEOUT, callback.redirect(&expected))
        .await
        .map_err(|_| Failure::failed("no login within five minutes; run `hub login` again"))??;
    let session = match redirect.code {
        Ok(code) => issuer.redeem(login, page, code).await,
        Err(failure) => Err(failure),
    };
    redirect.browser.show(session.is_ok()).await;
    session
}

/// Opens the browser if possible. A failure is ignored, because the URL was printed.
fn open_browser(url: &str) {
    let mut command = std::process::Command::new("xdg-open");
    let _ = command
        .arg(url)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
}
