//! The keys that sign user and hub tokens (ES256, RFC 7518). They live sealed in the database, so that all replicas sign and check alike; the newest
//! signs, all check. Verified tokens are remembered, since checking a signature costs more than anything else on a hub's path.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey, Header, Validation};
use quick_cache::sync::Cache;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::db::{Conn, Db, sql};
use crate::error::{Error, Result};
use crate::sealing::Sealer;
use hub_protocol::Timestamp;

const PURPOSE: &str = "signing-key";
/// An unknown `kid` makes us look for a key another replica made, but not more often than this.
const RELOAD_INTERVAL: Duration = Duration::from_secs(5);
/// Tokens remembered as verified; 32 bytes and a claim each.
const REMEMBERED_TOKENS: usize = 50_000;

#[derive(Clone)]
pub struct Keys(Arc<Inner>);

struct Inner {
    sealer: Sealer,
    ring: RwLock<Ring>,
    hub_tokens: Cache<[u8; 32], super::hub::HubClaims>,
}

#[derive(Default)]
struct Ring {
    /// Newest first.
    keys: Vec<Key>,
    loaded_at: Option<Instant>,
}

struct Key {
    kid: String,
    encoding: EncodingKey,
    decoding: DecodingKey,
    public: PublicKey,
}

/// One key of the JSON Web Key Set (RFC 7517).
#[derive(Clone, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct PublicKey {
    pub kty: String,
    pub crv: String,
    pub alg: String,
    #[serde(rename = "use")]
    pub usage: String,
    pub kid: String,
    pub x: String,
    pub y: String,
}

#[derive(sqlx::FromRow)]
struct Row {
    kid: String,
    sealed_private_key: Vec<u8>,
    public_x: String,
    public_y: String,
}

impl Keys {
    pub fn new(sealer: Sealer) -> Self {
        let hub_tokens = Cache::new(REMEMBERED_TOKENS);
        Self(Arc::new(Inner { sealer, ring: RwLock::default(), hub_tokens }))
    }

    /// Reads the keys, and makes the first one when there is none.
    pub async fn load(&self, db: &Db, now: Timestamp) -> Result<()> {
        let mut conn = db.read().await?;
        let mut rows = rows(&mut conn).await?;
        drop(conn);
        if rows.is_empty() {
            self.create(db, now).await?;
            rows = self::rows(&mut db.read().await?).await?;
        }
        let keys = rows.into_iter().map(|row| self.key(row)).collect::<Result<Vec<_>>>()?;
        *self.0.ring.write().unwrap_or_else(PoisonError::into_inner) = Ring { keys, loaded_at: Some(Instant::now()) };
        Ok(())
    }

    /// Makes a new key, which signs from the next [`Keys::load`] on.
    pub async fn create(&self, db: &Db, now: Timestamp) -> Result<()> {
        use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair};
        let pair = EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).map_err(Error::internal)?;
        let private_key = pair.to_pkcs8v1().map_err(Error::internal)?;
        // An uncompressed point: 0x04, x, y (SEC 1, 2.3.3).
        let point = pair.public_key().as_ref();
        let (x, y) = match point {
            [4, coordinates @ ..] if coordinates.len() == 64 => coordinates.split_at(32),
            _ => return Err(Error::internal("a P-256 public key of an unknown form")),
        };
        let kid = hex::encode(crate::sealing::random::<8>());
        let mut tx = db.begin().await?;
        sql("INSERT INTO signing_keys (kid, sealed_private_key, public_x, public_y, created_at) VALUES ($1, $2, $3, $4, $5)")
            .bind(kid)
            .bind(self.0.sealer.seal(PURPOSE, private_key.as_ref()))
            .bind(URL_SAFE_NO_PAD.encode(x))
            .bind(URL_SAFE_NO_PAD.encode(y))
            .bind(now)
            .execute(&mut tx)
            .await?;
        tx.commit_unaudited("the service's own key").await
    }

    fn key(&self, row: Row) -> Result<Key> {
        let private_key = self.0.sealer.open(PURPOSE, &row.sealed_private_key).map_err(Error::internal)?;
        let decoding = DecodingKey::from_ec_components(&row.public_x, &row.public_y).map_err(Error::internal)?;
        let public = PublicKey {
            kty: "EC".into(),
            crv: "P-256".into(),
            alg: "ES256".into(),
            usage: "sig".into(),
            kid: row.kid.clone(),
            x: row.public_x,
            y: row.public_y,
        };
        Ok(Key { kid: row.kid, encoding: EncodingKey::from_ec_der(&private_key), decoding, public })
    }

    /// All public keys, newest first.
    pub fn public(&self) -> Vec<PublicKey> {
        self.read().keys.iter().map(|key| key.public.clone()).collect()
    }

    pub fn sign<T: Serialize>(&self, claims: &T) -> Result<String> {
        let ring = self.read();
        let key = ring.keys.first().ok_or_else(keys_unavailable)?;
        let header = Header { kid: Some(key.kid.clone()), ..Header::new(Algorithm::ES256) };
        jsonwebtoken::encode(&header, claims, &key.encoding).map_err(Error::internal)
    }

    /// Checks signature, issuer and audience, but not the expiry: callers differ in what they do about that.
    pub async fn verify<T: DeserializeOwned + Clone>(
        &self,
        db: &Db,
        now: Timestamp,
        token: &str,
        audience: &str,
    ) -> Result<T> {
        let header = jsonwebtoken::decode_header(token).map_err(|_| super::invalid_token())?;
        let kid = header.kid.ok_or_else(super::invalid_token)?;
        if self.should_reload(&kid) {
            self.load(db, now).await?;
        }
        let mut validation = Validation::new(Algorithm::ES256);
        validation.validate_exp = false;
        validation.set_audience(&[audience]);
        validation.set_issuer(&[ISSUER]);
        let ring = self.read();
        let key = ring.keys.iter().find(|key| key.kid == kid).ok_or_else(super::invalid_token)?;
        let token = jsonwebtoken::decode::<T>(token, &key.decoding, &validation).map_err(|_| super::invalid_token())?;
        Ok(token.claims)
    }

    /// As [`Keys::verify`] for a hub's token, remembering what was verified.
    pub async fn verify_hub(&self, db: &Db, now: Timestamp, token: &str) -> Result<super::hub::HubClaims> {
        let digest: [u8; 32] = Sha256::digest(token.as_bytes()).into();
        if let Some(claims) = self.0.hub_tokens.get(&digest) {
            return Ok(claims);
        }
        let claims: super::hub::HubClaims = self.verify(db, now, token, super::hub::AUDIENCE).await?;
        self.0.hub_tokens.insert(digest, claims.clone());
        Ok(claims)
    }

    fn should_reload(&self, kid: &str) -> bool {
        let ring = self.read();
        !ring.keys.iter().any(|key| key.kid == kid)
            && ring.loaded_at.is_none_or(|loaded_at| loaded_at.elapsed() > RELOAD_INTERVAL)
    }

    fn read(&self) -> std::sync::RwLockReadGuard<'_, Ring> {
        self.0.ring.read().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The `iss` of every token of this service.
pub const ISSUER: &str = "hub-cloud";

async fn rows(conn: &mut Conn) -> Result<Vec<Row>> {
    sql("SELECT kid, sealed_private_key, public_x, public_y FROM signing_keys ORDER BY created_at DESC, kid LIMIT 20")
        .all(conn)
        .await
}

fn keys_unavailable() -> Error {
    Error::unavailable("KEYS_UNAVAILABLE", "the service has not read its signing keys yet; try again shortly")
}
