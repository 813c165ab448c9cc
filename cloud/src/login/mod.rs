//! `hub-cloud login`: logs a person in at the external issuer from a terminal (authorization code with PKCE, as RFC 8252 has it for native apps), and prints access tokens for other commands. Talks to the
//! issuer alone: it never opens the database, and shows no token but with `--print-token`.

mod callback;
mod issuer;
mod session;

use std::io::Write;
use std::process::Stdio;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hub_protocol::Timestamp;
use sha2::{Digest, Sha256};

use crate::config::{Config, OidcConfig};
use callback::Callback;
use issuer::{Asked, Issuer};
use session::{Session, Store};

/// How long the browser may take.
const PATIENCE: Duration = Duration::from_secs(5 * 60);
/// A token that ends sooner is exchanged before it is printed.
const FRESH_SECS: i64 = 60;

pub const HELP: &str = "\
Opens the issuer's login page in a browser, and keeps what comes of it in $XDG_CONFIG_HOME/hub-cloud/session.json, for you alone. Then:

  curl -H \"Authorization: Bearer $(hub-cloud login --print-token)\" https://hubs.example.com/tenant/tenants

prints a good token each time, and asks the issuer for a new one when the old one is about to end.

Needs the settings oidc-issuer, oidc-audience and oidc-client-id, as flags, HUB_CLOUD_... variables or in the file of --config. At the issuer, the client is a public one (a native app,
no secret) with the redirect URI http://127.0.0.1/callback on any port, and may use authorization codes and refresh tokens.

Example: hub-cloud login --oidc-issuer https://login.example.com --oidc-audience https://hubs.example.com --oidc-client-id hub-cloud-cli";

#[derive(Debug, clap::Args)]
pub struct Options {
    /// What to ask the issuer for; `offline_access` gives a refresh token
    #[arg(long, value_name = "SCOPES", default_value = "openid profile email offline_access")]
    scope: String,

    /// Print a good access token, and nothing else, from the last login
    #[arg(long)]
    print_token: bool,
}

/// Why there is no login, or no token; says what to do.
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

/// Logs in, or prints a token.
pub async fn run(config: &Config, options: &Options, now: impl Fn() -> Timestamp) -> Result<(), Failure> {
    let store = Store::open()?;
    if options.print_token {
        let token = token(&store, config.oidc.as_ref(), &now).await?;
        // A pipe that is closed has nobody to be told.
        let _ = writeln!(std::io::stdout(), "{token}");
        return Ok(());
    }
    let (oidc, client_id) = settings(config)?;
    log_in(&store, oidc, client_id, &options.scope, now).await
}

fn settings(config: &Config) -> Result<(&OidcConfig, &str), Failure> {
    let missing = |keys: &str| {
        let message = format!("login needs {keys}; see `hub-cloud login --help`");
        Failure::WrongSetting(message)
    };
    let oidc =
        config.oidc.as_ref().ok_or_else(|| missing("the settings oidc-issuer, oidc-audience and oidc-client-id"))?;
    let client_id = oidc.client_id.as_deref().ok_or_else(|| missing("the setting oidc-client-id"))?;
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
    let asked = Asked { client_id, audience: &oidc.audience, scope };
    let challenge = URL_SAFE_NO_PAD.encode(Sha256::digest(verifier.as_bytes()));
    let redirect_uri = callback.redirect_uri();
    let url = issuer.login_url(&asked, &redirect_uri, callback.state(), &nonce, &challenge)?;
    eprintln!("To log in, open this page in a browser on this machine:\n\n  {url}\n");
    open_browser(url.as_str());
    let arrival = tokio::time::timeout(PATIENCE, callback.arrival()).await;
    let arrival =
        arrival.map_err(|_| "nobody logged in within five minutes; run `hub-cloud login` again".to_owned())?;
    let outcome = async {
        let code = arrival.code?;
        let answer = issuer.redeem(&asked, &code, &redirect_uri, &verifier).await?;
        issuer.check_id_token(&asked, &answer, &nonce, now()).await?;
        let session = Session::new(&oidc.issuer, &asked, answer, now())?;
        store.lock()?.write(&session)?;
        Ok(session)
    };
    let outcome: Result<Session, String> = outcome.await;
    arrival.page.show(outcome.is_ok());
    callback.finish().await;
    let session = outcome?;
    eprintln!("You are logged in at {}; the session is kept in {}.", oidc.issuer, store.file().display());
    if !session.can_be_refreshed() {
        eprintln!(
            "The issuer gave no refresh token: log in again once the token has ended, or ask for the scope offline_access."
        );
    }
    eprintln!("Use it with: curl -H \"Authorization: Bearer $(hub-cloud login --print-token)\" URL/tenant/tenants");
    Ok(())
}

/// A token that is good for a while yet.
async fn token(store: &Store, oidc: Option<&OidcConfig>, now: &impl Fn() -> Timestamp) -> Result<String, Failure> {
    // Held over the exchange: a refresh token works once, and of two commands at once the second is to find what the first got.
    let locked = store.lock()?;
    let session = locked.read()?.ok_or_else(|| "nobody is logged in; run `hub-cloud login`".to_owned())?;
    if oidc.is_some_and(|oidc| !session.is_for(oidc)) {
        let message = "the last login was at another issuer, or for another audience or client, than the settings name; run `hub-cloud login`";
        return Err(Failure::Failed(message.to_owned()));
    }
    if session.is_fresh(now().plus_secs(FRESH_SECS)) {
        return Ok(session.access_token().to_owned());
    }
    let issuer = Issuer::find(session.issuer()).await?;
    let session = issuer.refresh(session, now()).await?;
    locked.write(&session)?;
    Ok(session.access_token().to_owned())
}

/// 256 random bits, as text that goes into a URL.
fn secret() -> String {
    URL_SAFE_NO_PAD.encode(crate::sealing::random::<32>())
}

/// Tries to; the URL was printed too.
fn open_browser(url: &str) {
    let mut command = std::process::Command::new("xdg-open");
    let _ = command.arg(url).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
}
