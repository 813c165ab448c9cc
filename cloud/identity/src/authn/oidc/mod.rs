//! Access tokens of an external OpenID Connect issuer: verified with its published keys and mapped
//! to an account of this service. The issuer is never asked about a single token, and a request
//! never waits for the issuer if the key is known. The service starts and keeps serving while the
//! issuer is unreachable.

mod claims;
pub mod client;
pub mod discovery;
mod id_token;
mod key_set;
pub mod redirect;
mod remote_keys;
mod sign_in;
mod users;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hub_base::error::{Error, Result};
use hub_core::Core;
use hub_core::config::OidcConfig;
use hub_protocol::Timestamp;
use jsonwebtoken::Header;
use quick_cache::sync::Cache;
use serde::Deserialize;
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};
use tokio::sync::Semaphore;

use super::bearer::invalid_token;
use super::principal::{Session, User};
use claims::Claims;
use remote_keys::{Lookup, RemoteKeys};
pub use sign_in::Callback;
use users::Subject;
pub use users::{forget_deleted, remember_deleted};

/// Codes that are exchanged at a time.
const MAX_EXCHANGES: usize = 32;
/// The most verified tokens in the cache, about 100 bytes each.
const CACHED_TOKENS: usize = 50_000;

/// The configured issuer.
pub struct Oidc {
    config: OidcConfig,
    http: reqwest::Client,
    keys: RemoteKeys,
    /// The codes that are being exchanged.
    exchanges: Semaphore,
    /// By the digest of the token.
    tokens: Cache<[u8; 32], CachedToken>,
}

#[derive(Clone)]
struct CachedToken {
    user: User,
    expires_at: i64,
    /// The generation of the keys that the token was verified with.
    generation: u64,
}

/// Fetches the issuer's keys once, and returns the reason if that fails.
pub async fn try_out(config: &OidcConfig) -> Result<(), String> {
    let http = discovery::client(&config.issuer).map_err(|error| error.to_string())?;
    RemoteKeys::new(config.issuer.clone(), http).try_out().await
}

/// The `iss` of a token, unverified: it only selects the keys to verify the token with.
pub fn issuer_of(token: &str) -> Option<String> {
    #[derive(Deserialize)]
    struct Issuer {
        iss: String,
    }
    let payload = URL_SAFE_NO_PAD.decode(token.split('.').nth(1)?).ok()?;
    serde_json::from_slice::<Issuer>(&payload)
        .ok()
        .map(|claims| claims.iss)
}

impl Oidc {
    pub fn new(config: OidcConfig) -> reqwest::Result<Self> {
        let http = discovery::client(&config.issuer)?;
        let keys = RemoteKeys::new(config.issuer.clone(), http.clone());
        let exchanges = Semaphore::new(MAX_EXCHANGES);
        Ok(Self {
            config,
            http,
            keys,
            exchanges,
            tokens: Cache::new(CACHED_TOKENS),
        })
    }

    pub fn issuer(&self) -> &str {
        &self.config.issuer
    }

    /// Starts to fetch the keys before the first token needs them, and logs a failure.
    pub fn prepare(&self) {
        drop(self.keys.fetch());
    }

    /// Verifies a token of the issuer. A subject without an account gets one. The service trusts
    /// the result for as long as the token is valid.
    pub async fn verify(&self, core: &Core, token: &str, now: Timestamp) -> Result<User> {
        let digest: [u8; 32] = Sha256::digest(token.as_bytes()).into();
        if let Some(cached) = self.tokens.get(&digest) {
            if cached.expires_at <= now.as_secs() {
                return Err(invalid_token());
            }
            // A key that the issuer withdrew may have been stolen, so tokens verified with it are
            // verified again.
            if cached.generation == self.keys.generation() {
                return Ok(cached.user);
            }
        }
        let (claims, generation) = self.accepted(token, now).await?;
        let user = self.user(core, &claims, now).await?;
        self.tokens.insert(
            digest,
            CachedToken {
                user,
                expires_at: claims.expires_at,
                generation,
            },
        );
        Ok(user)
    }

    /// The claims of an access token that is valid now, and the generation of the keys.
    async fn accepted(&self, token: &str, now: Timestamp) -> Result<(Claims, u64)> {
        let header = jsonwebtoken::decode_header(token).map_err(|_| invalid_token())?;
        if !claims::is_access_token(&header) {
            return Err(invalid_token());
        }
        let (signed, generation) = self.signed(&header, token).await?;
        let claims =
            claims::check(&header, &signed, &self.config, now).ok_or_else(invalid_token)?;
        Ok((claims, generation))
    }

    /// The person that the claims are about.
    async fn user(&self, core: &Core, claims: &Claims, now: Timestamp) -> Result<User> {
        let subject = Subject {
            issuer: &self.config.issuer,
            subject: &claims.subject,
            issued_at: claims.issued_at,
        };
        let known = users::of_issuer(core, subject, &claims.vouched, now).await?;
        Ok(User {
            user_uuid: known.user_uuid,
            persona_uuid: known.persona_uuid,
            is_platform_admin: claims.is_platform_admin,
            session: Session::External,
        })
    }

    /// The claims of a token that one of the issuer's keys signed.
    async fn signed(&self, header: &Header, token: &str) -> Result<(Map<String, Value>, u64)> {
        // Without a `kid`, every key would have to be tried.
        let kid = header.kid.as_deref().ok_or_else(invalid_token)?;
        match self.keys.lookup(kid).await {
            Lookup::Keys(keys, generation) => {
                let claims = keys.verify(header, token).ok_or_else(invalid_token)?;
                Ok((claims, generation))
            }
            Lookup::Unknown => Err(invalid_token()),
            Lookup::Unreachable => Err(Error::unavailable(
                "ISSUER_UNAVAILABLE",
                "the access token cannot be verified now, because its issuer's keys cannot be fetched; try again shortly",
            )),
        }
    }
}
