//! The keys that sign user and hub tokens (ES256, RFC 7518). They are stored sealed in the
//! database, so that all replicas sign and verify alike. A new key is published some time before it
//! signs. A replaced key verifies until every token it signed has expired; at the refresh of a hub,
//! whose proof is another token, for as long as it is kept. Verified tokens are cached, since
//! verifying a signature is the most expensive step of a request.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hub_base::db::{Conn, Db, Tx, sql};
use hub_base::error::{Error, Result};
use hub_base::sealing::{self, Sealer, stored::SIGNING_KEY};
use hub_core::audit::Audit;
use hub_protocol::Timestamp;
use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey, Header, Validation};
use quick_cache::sync::Cache;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::bearer::invalid_token;
use super::claims::{self, HubClaims, ISSUER, UserClaims};

/// An unknown `kid` makes the service look for a key of another replica, at most this often.
const RELOAD_INTERVAL: Duration = Duration::from_secs(5);
/// The keys are read again at least this often, so that every replica knows a new key before it
/// signs.
const REFRESH_INTERVAL: Duration = Duration::from_secs(60);
/// The time from publishing a key to signing with it. Clients that cache the key set have fetched
/// it again by then.
const PUBLISHED_AHEAD_SECS: i64 = 15 * 60;
/// How long a key signs.
const SIGNS_FOR_SECS: i64 = 90 * 24 * 3600;
/// How long a replaced key is kept, so that a hub that was away for years can name itself.
const KEPT_SECS: i64 = 5 * 365 * 24 * 3600;
/// The most verified tokens in the cache, about 32 bytes and the claims each.
const CACHED_TOKENS: usize = 50_000;

#[derive(Clone)]
pub struct Keys(Arc<Inner>);

struct Inner {
    sealer: Sealer,
    /// How long a replaced key verifies.
    tokens_live_secs: i64,
    ring: RwLock<Ring>,
    hub_tokens: Cache<[u8; 32], HubClaims>,
    user_tokens: Cache<[u8; 32], UserClaims>,
}

#[derive(Default)]
struct Ring {
    /// The newest key first.
    keys: Vec<Key>,
    loaded_at: Option<Instant>,
}

struct Key {
    kid: String,
    signs_from: Timestamp,
    /// None for the newest key.
    verifies_until: Option<Timestamp>,
    has_signed_receipts: bool,
    encoding: EncodingKey,
    decoding: DecodingKey,
    public: PublicKey,
}

impl Key {
    fn verifies(&self, now: Timestamp) -> bool {
        self.verifies_until.is_none_or(|until| until > now)
    }
}

/// Whether the keys have to be read again.
enum Reload {
    No,
    Due,
    /// The key of the token is not in the ring.
    Needed,
}

/// One key of the JSON Web Key Set (RFC 7517).
#[derive(Clone, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct PublicKey {
    /// The type of the key: `EC`.
    pub kty: String,
    /// The curve: `P-256`.
    pub crv: String,
    /// The algorithm: `ES256`.
    pub alg: String,
    /// What the key is for: `sig`, signatures.
    #[serde(rename = "use")]
    pub usage: String,
    /// The id of the key, which tokens name.
    pub kid: String,
    /// The x coordinate, in base64url.
    pub x: String,
    /// The y coordinate, in base64url.
    pub y: String,
}

#[derive(sqlx::FromRow)]
struct Row {
    kid: String,
    sealed_private_key: Vec<u8>,
    public_x: String,
    public_y: String,
    signs_from: Timestamp,
    has_signed_receipts: bool,
}

impl Keys {
    /// A replaced key verifies for `tokens_live_secs`.
    pub fn new(sealer: Sealer, tokens_live_secs: i64) -> Self {
        let (hub_tokens, user_tokens) = (Cache::new(CACHED_TOKENS), Cache::new(CACHED_TOKENS));
        Self(Arc::new(Inner {
            sealer,
            tokens_live_secs,
            ring: RwLock::default(),
            hub_tokens,
            user_tokens,
        }))
    }

    /// Reads the keys, and creates the first one if there is none.
    pub async fn load(&self, db: &Db, now: Timestamp) -> Result<()> {
        let mut conn = db.read().await?;
        let mut rows = rows(&mut conn).await?;
        drop(conn);
        if rows.is_empty() {
            self.create(db, now, now, None).await?;
            rows = self::rows(&mut db.read().await?).await?;
        }
        let mut replaced_at: Option<Timestamp> = None;
        let mut keys = Vec::with_capacity(rows.len());
        for row in rows {
            let verifies_until = replaced_at.map(|at| at.plus_secs(self.0.tokens_live_secs));
            replaced_at = Some(row.signs_from);
            keys.push(self.key(row, verifies_until)?);
        }
        *self.0.ring.write().unwrap_or_else(PoisonError::into_inner) = Ring {
            keys,
            loaded_at: Some(Instant::now()),
        };
        Ok(())
    }

    /// Replaces the signing key if it is old enough, or in any case if `at_once`. Deletes keys
    /// that were replaced long ago. Returns whether a new key was created.
    pub async fn rotate(&self, db: &Db, now: Timestamp, at_once: bool) -> Result<bool> {
        let newest = rows(&mut db.read().await?).await?.into_iter().next();
        let is_due = newest.as_ref().is_none_or(|newest| match at_once {
            true => newest.signs_from <= now,
            false => newest.signs_from.plus_secs(SIGNS_FOR_SECS) <= now,
        });
        let is_created = match newest.map(|newest| newest.kid) {
            newest if is_due => {
                self.create(
                    db,
                    now,
                    now.plus_secs(PUBLISHED_AHEAD_SECS),
                    newest.as_deref(),
                )
                .await?
            }
            _ => false,
        };
        let kept_secs = KEPT_SECS.max(self.0.tokens_live_secs);
        delete_replaced(db, now.plus_secs(-kept_secs)).await?;
        self.load(db, now).await?;
        Ok(is_created)
    }

    /// Creates a key and publishes it, unless the newest key is no longer the one to be replaced.
    /// Of replicas that rotate at the same time, one creates the key.
    async fn create(
        &self,
        db: &Db,
        now: Timestamp,
        signs_from: Timestamp,
        replaced: Option<&str>,
    ) -> Result<bool> {
        use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair};
        let pair =
            EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).map_err(Error::internal)?;
        let private_key = pair.to_pkcs8v1().map_err(Error::internal)?;
        // An uncompressed point: 0x04, x, y (SEC 1, 2.3.3).
        let point = pair.public_key().as_ref();
        let (x, y) = match point {
            [4, coordinates @ ..] if coordinates.len() == 64 => coordinates.split_at(32),
            _ => return Err(Error::internal("the P-256 public key has an unknown form")),
        };
        let kid = hex::encode(hub_base::sealing::random::<8>());
        let mut tx = db.begin().await?;
        sealing::stored::lock(&mut tx).await?;
        let newest = rows(&mut tx)
            .await?
            .into_iter()
            .next()
            .map(|newest| newest.kid);
        if newest.as_deref() != replaced {
            return Ok(false);
        }
        sql(
            "INSERT INTO signing_keys (kid, sealed_private_key, public_x, public_y, created_at, \
             signs_from) VALUES ($1, $2, $3, $4, $5, $6)",
        )
        .bind((
            kid.as_str(),
            self.0.sealer.seal(SIGNING_KEY, &kid, private_key.as_ref()),
            URL_SAFE_NO_PAD.encode(x),
            URL_SAFE_NO_PAD.encode(y),
            now,
            signs_from,
        ))
        .execute(&mut tx)
        .await?;
        tx.commit(Audit::by_system(
            "SIGNING_KEYS",
            "signing_key.create",
            kid,
            now,
        ))
        .await?;
        Ok(true)
    }

    fn key(&self, row: Row, verifies_until: Option<Timestamp>) -> Result<Key> {
        let private_key = self
            .0
            .sealer
            .open(SIGNING_KEY, &row.kid, &row.sealed_private_key)
            .map_err(Error::internal)?;
        let decoding = DecodingKey::from_ec_components(&row.public_x, &row.public_y)
            .map_err(Error::internal)?;
        let public = PublicKey {
            kty: "EC".into(),
            crv: "P-256".into(),
            alg: "ES256".into(),
            usage: "sig".into(),
            kid: row.kid.clone(),
            x: row.public_x,
            y: row.public_y,
        };
        Ok(Key {
            kid: row.kid,
            signs_from: row.signs_from,
            verifies_until,
            has_signed_receipts: row.has_signed_receipts,
            encoding: EncodingKey::from_ec_der(&private_key),
            decoding,
            public,
        })
    }

    /// The public keys of tokens and receipts that may be in use, newest first.
    pub fn public(&self, now: Timestamp) -> Vec<PublicKey> {
        self.read()
            .keys
            .iter()
            .filter(|key| key.verifies(now) || key.has_signed_receipts)
            .map(|key| key.public.clone())
            .collect()
    }

    pub fn sign<T: Serialize>(&self, claims: &T, now: Timestamp) -> Result<String> {
        let ring = self.read();
        // If the clock was set back to before all keys, the oldest one signs.
        let signing = ring.keys.iter().find(|key| key.signs_from <= now);
        let key = signing.or(ring.keys.last()).ok_or_else(keys_unavailable)?;
        let header = Header {
            kid: Some(key.kid.clone()),
            ..Header::new(Algorithm::ES256)
        };
        jsonwebtoken::encode(&header, claims, &key.encoding).map_err(Error::internal)
    }

    /// Verifies signature, issuer and audience, but not the expiry: callers handle that
    /// differently. `verifies` says which keys are good.
    async fn verify<T: DeserializeOwned + Clone>(
        &self,
        db: &Db,
        now: Timestamp,
        token: &str,
        audience: &str,
        verifies: impl Fn(&Key) -> bool,
    ) -> Result<T> {
        let header = jsonwebtoken::decode_header(token).map_err(|_| invalid_token())?;
        let kid = header.kid.ok_or_else(invalid_token)?;
        match self.should_reload(&kid) {
            Reload::Needed => self.load(db, now).await?,
            // The keys that are already loaded remain usable.
            Reload::Due => drop(self.load(db, now).await),
            Reload::No => {}
        }
        let mut validation = Validation::new(Algorithm::ES256);
        validation.validate_exp = false;
        validation.set_audience(&[audience]);
        validation.set_issuer(&[ISSUER]);
        let ring = self.read();
        let key = ring
            .keys
            .iter()
            .find(|key| key.kid == kid && verifies(key))
            .ok_or_else(invalid_token)?;
        let token = jsonwebtoken::decode::<T>(token, &key.decoding, &validation)
            .map_err(|_| invalid_token())?;
        Ok(token.claims)
    }

    /// As [`Keys::verify`] for a token that names a hub at its refresh, signed by any key that is
    /// kept.
    pub async fn verify_refreshing_hub(
        &self,
        db: &Db,
        now: Timestamp,
        token: &str,
    ) -> Result<HubClaims> {
        self.verify(db, now, token, claims::HUBS, |_| true).await
    }

    /// As [`Keys::verify`] for a hub token, with the cache.
    pub async fn verify_hub(&self, db: &Db, now: Timestamp, token: &str) -> Result<HubClaims> {
        cached(
            &self.0.hub_tokens,
            token,
            self.verify(db, now, token, claims::HUBS, |key| key.verifies(now)),
        )
        .await
    }

    /// As [`Keys::verify`] for a user token, with the cache.
    pub async fn verify_user(&self, db: &Db, now: Timestamp, token: &str) -> Result<UserClaims> {
        cached(
            &self.0.user_tokens,
            token,
            self.verify(db, now, token, claims::USERS, |key| key.verifies(now)),
        )
        .await
    }

    fn should_reload(&self, kid: &str) -> Reload {
        let (is_known, age) = {
            let ring = self.read();
            (
                ring.keys.iter().any(|key| key.kid == kid),
                ring.loaded_at.map(|loaded_at| loaded_at.elapsed()),
            )
        };
        match is_known {
            true if age.is_none_or(|age| age > REFRESH_INTERVAL) => {
                // One request reloads the keys; the others continue with the old ones.
                self.0
                    .ring
                    .write()
                    .unwrap_or_else(PoisonError::into_inner)
                    .loaded_at = Some(Instant::now());
                Reload::Due
            }
            false if age.is_none_or(|age| age > RELOAD_INTERVAL) => Reload::Needed,
            _ => Reload::No,
        }
    }

    fn read(&self) -> std::sync::RwLockReadGuard<'_, Ring> {
        self.0.ring.read().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The verified claims of a token, from the cache or by verifying it now.
async fn cached<T: Clone>(
    cache: &Cache<[u8; 32], T>,
    token: &str,
    verify: impl Future<Output = Result<T>>,
) -> Result<T> {
    let digest: [u8; 32] = Sha256::digest(token.as_bytes()).into();
    if let Some(claims) = cache.get(&digest) {
        return Ok(claims);
    }
    let claims = verify.await?;
    cache.insert(digest, claims.clone());
    Ok(claims)
}

async fn rows(conn: &mut Conn) -> Result<Vec<Row>> {
    sql(
        "SELECT kid, sealed_private_key, public_x, public_y, signs_from, has_signed_receipts \
         FROM signing_keys ORDER BY signs_from DESC, kid LIMIT 50",
    )
    .all(conn)
    .await
}

/// Deletes the keys whose successor has been signing since `before` or longer.
async fn delete_replaced(db: &Db, before: Timestamp) -> Result<()> {
    let mut tx = db.begin().await?;
    sql("DELETE FROM signing_keys \
        WHERE signs_from < (SELECT MAX(signs_from) FROM signing_keys WHERE signs_from <= $1) \
        AND NOT has_signed_receipts")
    .bind(before)
    .execute(&mut tx)
    .await?;
    tx.commit_unaudited("no valid token was signed with them")
        .await
}

/// Keeps the key of a receipt, which is to be checked for as long as it may matter.
pub async fn keep_for_receipts(tx: &mut Tx, receipt: &str) -> Result<()> {
    let header = jsonwebtoken::decode_header(receipt).map_err(Error::internal)?;
    sql("UPDATE signing_keys SET has_signed_receipts = $2 \
         WHERE kid = $1 AND NOT has_signed_receipts")
    .bind((header.kid, true))
    .run(tx)
    .await
}

fn keys_unavailable() -> Error {
    Error::unavailable(
        "KEYS_UNAVAILABLE",
        "the service has not loaded its signing keys yet; try again shortly",
    )
}
