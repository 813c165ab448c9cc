//! Access tokens of another OpenID Connect issuer: checked against its published keys, and mapped to an account here. Never asks the issuer about a single token, and never waits for it where
//! its keys are known: the service starts and goes on serving while the issuer is away.

mod claims;
pub mod discovery;
pub mod id_token;
mod key_set;
mod remote_keys;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hub_protocol::Timestamp;
use jsonwebtoken::Header;
use quick_cache::sync::Cache;
use serde::Deserialize;
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use super::user::{Session, User};
use crate::app::App;
use crate::config::OidcConfig;
use crate::domain::accounts;
use crate::error::{Error, Result};
use remote_keys::{Answer, RemoteKeys};

/// Tokens remembered as good; some 100 bytes each.
const REMEMBERED_TOKENS: usize = 50_000;

/// The issuer that was configured.
pub struct Oidc {
    config: OidcConfig,
    keys: RemoteKeys,
    /// By the digest of the token.
    tokens: Cache<[u8; 32], Remembered>,
}

#[derive(Clone)]
struct Remembered {
    user: User,
    expires_at: i64,
    /// Of the keys it was checked with.
    generation: u64,
}

/// Fetches the issuer's keys once; else says why they cannot be had.
pub async fn try_out(config: &OidcConfig) -> Result<(), String> {
    let http = discovery::client(&config.issuer).map_err(|error| error.to_string())?;
    RemoteKeys::new(config.issuer.clone(), http).try_out().await
}

/// The `iss` a token claims, unchecked: it only says whose keys to check the token with.
pub fn issuer_of(token: &str) -> Option<String> {
    #[derive(Deserialize)]
    struct Issuer {
        iss: String,
    }
    let payload = URL_SAFE_NO_PAD.decode(token.split('.').nth(1)?).ok()?;
    serde_json::from_slice::<Issuer>(&payload).ok().map(|claims| claims.iss)
}

impl Oidc {
    pub fn new(config: OidcConfig) -> reqwest::Result<Self> {
        let keys = RemoteKeys::new(config.issuer.clone(), discovery::client(&config.issuer)?);
        Ok(Self { config, keys, tokens: Cache::new(REMEMBERED_TOKENS) })
    }

    pub fn issuer(&self) -> &str {
        &self.config.issuer
    }

    /// Begins to fetch the keys before the first token needs them, and says in the log when they cannot be had.
    pub fn prepare(&self) {
        drop(self.keys.fetch());
    }

    /// Checks a token of the issuer; who is seen for the first time gets an account.
    pub async fn verify(&self, app: &App, token: &str, now: Timestamp) -> Result<User> {
        let digest: [u8; 32] = Sha256::digest(token.as_bytes()).into();
        if let Some(remembered) = self.tokens.get(&digest) {
            if remembered.expires_at <= now.as_secs() {
                return Err(super::invalid_token());
            }
            // A key that the issuer took back may have been stolen, and what it signed was checked too early.
            if remembered.generation == self.keys.generation() {
                return Ok(remembered.user);
            }
        }
        let header = jsonwebtoken::decode_header(token).map_err(|_| super::invalid_token())?;
        if !claims::is_access_token(&header) {
            return Err(super::invalid_token());
        }
        let (signed, generation) = self.signed(&header, token).await?;
        let claims = claims::check(&header, &signed, &self.config, now).ok_or_else(super::invalid_token)?;
        let known = accounts::of_issuer(app, &self.config.issuer, &claims.subject, &claims.vouched, now).await?;
        let user = User {
            user_uuid: known.user_uuid,
            persona_uuid: known.persona_uuid,
            is_platform_admin: claims.is_platform_admin,
            session: Session::External,
        };
        self.tokens.insert(digest, Remembered { user, expires_at: claims.expires_at, generation });
        Ok(user)
    }

    /// The claims of a token that one of the issuer's keys signed.
    async fn signed(&self, header: &Header, token: &str) -> Result<(Map<String, Value>, u64)> {
        // Without a `kid` every key would have to be tried.
        let kid = header.kid.as_deref().ok_or_else(super::invalid_token)?;
        match self.keys.with(kid).await {
            Answer::Keys(keys, generation) => {
                let claims = keys.verify(header, token).ok_or_else(super::invalid_token)?;
                Ok((claims, generation))
            }
            Answer::Unknown => Err(super::invalid_token()),
            Answer::Unreachable => Err(Error::unavailable(
                "ISSUER_UNAVAILABLE",
                "the access token cannot be checked now: its issuer does not give its keys; try again shortly",
            )),
        }
    }
}
