//! `hub-cloud login`: logs a user in at the external issuer from a terminal (authorization code
//! with PKCE for native apps, RFC 8252) and prints access tokens for other commands. It
//! communicates with the issuer only, never opens the database, and prints tokens only with
//! `--print-token`.

mod callback;
mod session;

use std::io::Write;
use std::process::Stdio;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hub_protocol::Timestamp;

use crate::authn::oidc::client::{Issuer, LoginRequest};
use crate::config::{Config, OidcConfig};
use callback::Callback;
use session::{Session, Store};

/// Time for the user to complete the login in the browser.
const LOGIN_TIMEOUT: Duration = Duration::from_secs(5 * 60);
/// A token that expires sooner is refreshed before it is printed.
const MIN_VALIDITY_SECS: i64 = 60;

pub const HELP: &str = "\
Opens the login page of the issuer in a browser and stores the session in
$XDG_CONFIG_HOME/hub-cloud/session.json, readable by you only. With --print-token it prints a valid
access token of that session, and refreshes it first if it expires within a minute.

Requires the settings oidc-issuer, oidc-audience and oidc-client-id, as flags, as HUB_CLOUD_...
variables or in the file of --config. Register the client at the issuer as a public client (native
app, no secret) with the redirect URI http://127.0.0.1/callback on any port, and allow the
authorization code and refresh token grants.

Examples:
  hub-cloud login --oidc-issuer https://login.example.com \\
      --oidc-audience https://hubs.example.com --oidc-client-id hub-cloud-cli
  curl -H \"Authorization: Bearer $(hub-cloud login --print-token)\" \\
      https://hubs.example.com/tenant/tenants";

#[derive(Debug, clap::Args)]
pub struct Options {
    /// Scopes to request; `offline_access` yields a refresh token
    #[arg(
        long,
        value_name = "SCOPES",
        default_value = "openid profile email offline_access"
    )]
    scope: String,

    /// Print a valid access token of the last login, and nothing else
    #[arg(long)]
    print_token: bool,
}

/// Why the command failed, with a message that says what to do.
#[derive(Debug)]
pub enum Failure {
    WrongSetting(String),
    Failed(String),
}

impl From<String> for Failure {
    fn from(message: String) -> Self {
        Self::Failed(message)
    }
}

/// Logs in, or prints a token with `--print-token`.
pub async fn run(
    config: &Config,
    options: &Options,
    now: impl Fn() -> Timestamp,
) -> Result<(), Failure> {
    let store = Store::open()?;
    if options.print_token {
        let token = token(&store, config.oidc.as_ref(), &now).await?;
        // A closed pipe is not an error.
        let _ = writeln!(std::io::stdout(), "{token}");
        return Ok(());
    }
    let (oidc, client_id) = settings(config)?;
    log_in(&store, oidc, client_id, &options.scope, now).await
}

fn settings(config: &Config) -> Result<(&OidcConfig, &str), Failure> {
    let missing = |keys: &str| {
        let message = format!("login requires {keys}; see `hub-cloud login --help`");
        Failure::WrongSetting(message)
    };
    let oidc = config
        .oidc
        .as_ref()
        .ok_or_else(|| missing("the settings oidc-issuer, oidc-audience and oidc-client-id"))?;
    let client_id = oidc
        .client_id
        .as_deref()
        .ok_or_else(|| missing("the setting oidc-client-id"))?;
    Ok((oidc, client_id))
}

async fn log_in(
    store: &Store,
    oidc: &OidcConfig,
    client_id: &str,
    scope: &str,
    now: impl Fn() -> Timestamp,
) -> Result<(), Failure> {
    let issuer = Issuer::find(&oidc.issuer).await?;
    let mut callback = Callback::listen(&issuer).await?;
    let (verifier, nonce) = (secret(), secret());
    let login = LoginRequest {
        client_id,
        client_secret: None,
        audience: &oidc.audience,
        scope,
    };
    let redirect_uri = callback.redirect_uri();
    let url = issuer.login_url(&login, &redirect_uri, callback.state(), &nonce, &verifier)?;
    eprintln!("To log in, open this page in a browser on this machine:\n\n  {url}\n");
    open_browser(url.as_str());
    let redirect = tokio::time::timeout(LOGIN_TIMEOUT, callback.redirect()).await;
    let redirect = redirect
        .map_err(|_| "no login within five minutes; run `hub-cloud login` again".to_owned())?;
    let outcome = async {
        let code = redirect.code?;
        let tokens = issuer
            .redeem(&login, &code, &redirect_uri, &verifier)
            .await
            .map_err(again)?;
        issuer
            .check_id_token(&login, &tokens, &nonce, now())
            .await?;
        let session = Session::new(&oidc.issuer, &login, tokens, now())?;
        store.lock()?.write(&session)?;
        Ok(session)
    };
    let outcome: Result<Session, String> = outcome.await;
    redirect.page.show(outcome.is_ok());
    callback.finish().await;
    let session = outcome?;
    eprintln!(
        "You are logged in at {}; the session is stored in {}.",
        oidc.issuer,
        store.file().display()
    );
    if !session.can_be_refreshed() {
        eprintln!(
            "The issuer sent no refresh token: log in again after the token expired, or add the scope offline_access."
        );
    }
    eprintln!(
        "Use it with: curl -H \"Authorization: Bearer $(hub-cloud login --print-token)\" URL/tenant/tenants"
    );
    Ok(())
}

/// An access token that stays valid for at least `MIN_VALIDITY_SECS`.
async fn token(
    store: &Store,
    oidc: Option<&OidcConfig>,
    now: &impl Fn() -> Timestamp,
) -> Result<String, Failure> {
    // Locked during the refresh: a refresh token works once, so a concurrent command must read the
    // tokens that this one stores.
    let locked = store.lock()?;
    let session = locked
        .read()?
        .ok_or_else(|| "there is no session; run `hub-cloud login`".to_owned())?;
    if oidc.is_some_and(|oidc| !session.is_for(oidc)) {
        let message = "the stored session is for another issuer, audience or client than the settings; run `hub-cloud login`";
        return Err(Failure::Failed(message.to_owned()));
    }
    if session.is_valid_at(now().plus_secs(MIN_VALIDITY_SECS)) {
        return Ok(session.access_token().to_owned());
    }
    let issuer = Issuer::find(session.issuer()).await?;
    let Some(refresh_token) = session.refresh_token() else {
        let reason = "the access token has expired and the issuer sent no refresh token";
        return Err(again(reason.to_owned()).into());
    };
    let tokens = issuer
        .refresh(&session.login_request(), refresh_token)
        .await
        .map_err(again)?;
    let session = session.refreshed(tokens, now())?;
    locked.write(&session)?;
    Ok(session.access_token().to_owned())
}

fn again(reason: String) -> String {
    format!("{reason}; run `hub-cloud login` again")
}

/// 256 random bits as URL-safe text.
fn secret() -> String {
    URL_SAFE_NO_PAD.encode(crate::sealing::random::<32>())
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
