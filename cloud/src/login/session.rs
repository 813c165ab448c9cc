//! The session of `hub-cloud login`: tokens in one private file, read and replaced atomically under
//! a lock.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hub_protocol::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::authn::oidc::client::{LoginRequest, Tokens};
use crate::config::OidcConfig;

/// Lifetime of a token for which neither the token nor the issuer states an expiry.
const DEFAULT_LIFETIME_SECS: i64 = 5 * 60;

/// The tokens of a login, and the request they answer.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Session {
    issuer: String,
    client_id: String,
    audience: String,
    scope: String,
    access_token: String,
    expires_at: Timestamp,
    refresh_token: Option<String>,
}

impl Session {
    pub fn new(
        issuer: &str,
        login: &LoginRequest<'_>,
        tokens: Tokens,
        now: Timestamp,
    ) -> Result<Self, String> {
        let session = Self {
            issuer: issuer.to_owned(),
            client_id: login.client_id.to_owned(),
            audience: login.audience.to_owned(),
            scope: login.scope.to_owned(),
            access_token: String::new(),
            expires_at: now,
            refresh_token: None,
        };
        session.refreshed(tokens, now)
    }

    /// Replaces the tokens. If the issuer sends no new refresh token, the old one stays in use.
    pub fn refreshed(self, tokens: Tokens, now: Timestamp) -> Result<Self, String> {
        let claims = claims(&tokens.access_token).ok_or_else(|| {
            let audience = &self.audience;
            format!(
                "the issuer sent an opaque access token, which the service cannot verify; \
                 configure `{audience}` at the issuer as an API (resource) with JWT access tokens"
            )
        })?;
        if !includes_audience(claims.get("aud"), &self.audience) {
            let given = claims.get("aud").unwrap_or(&Value::Null);
            return Err(format!(
                "the issuer sent an access token for {given} instead of `{}`; \
                 set oidc-audience to the identifier of the service at the issuer",
                self.audience
            ));
        }
        let lifetime = tokens
            .expires_in
            .map(|secs| now.plus_secs(secs.clamp(0, 366 * 24 * 3600)));
        let in_token = claims
            .get("exp")
            .and_then(Value::as_i64)
            .and_then(|secs| secs.checked_mul(1_000_000));
        let expires_at = in_token.map(Timestamp::from_micros).or(lifetime);
        Ok(Self {
            access_token: tokens.access_token,
            expires_at: expires_at.unwrap_or_else(|| now.plus_secs(DEFAULT_LIFETIME_SECS)),
            refresh_token: tokens.refresh_token.or(self.refresh_token),
            ..self
        })
    }

    pub fn issuer(&self) -> &str {
        &self.issuer
    }

    pub fn access_token(&self) -> &str {
        &self.access_token
    }

    pub fn refresh_token(&self) -> Option<&str> {
        self.refresh_token.as_deref()
    }

    pub fn can_be_refreshed(&self) -> bool {
        self.refresh_token.is_some()
    }

    pub fn login_request(&self) -> LoginRequest<'_> {
        let Self {
            client_id,
            audience,
            scope,
            ..
        } = self;
        LoginRequest {
            client_id,
            client_secret: None,
            audience,
            scope,
        }
    }

    /// Whether the access token is still valid at `time`.
    pub fn is_valid_at(&self, time: Timestamp) -> bool {
        self.expires_at > time
    }

    /// Whether the session matches the settings.
    pub fn is_for(&self, oidc: &OidcConfig) -> bool {
        let is_client = oidc
            .client_id
            .as_ref()
            .is_none_or(|client_id| *client_id == self.client_id);
        self.issuer == oidc.issuer && self.audience == oidc.audience && is_client
    }
}

/// The claims of the token, unverified: they serve to report a wrong setup early. The service
/// verifies the token.
fn claims(token: &str) -> Option<Value> {
    let mut parts = token.split('.');
    let (payload, rest) = (parts.nth(1)?, parts.count());
    let payload = URL_SAFE_NO_PAD.decode(payload).ok().filter(|_| rest == 1)?;
    serde_json::from_slice(&payload).ok()
}

fn includes_audience(aud: Option<&Value>, audience: &str) -> bool {
    match aud {
        Some(Value::Array(names)) => names.iter().any(|name| name == audience),
        Some(name) => name == audience,
        None => false,
    }
}

/// The directory of the session file.
pub struct Store {
    dir: PathBuf,
}

/// The store, locked against other processes.
pub struct LockedStore<'a> {
    store: &'a Store,
    _lock: File,
}

impl Store {
    /// `$XDG_CONFIG_HOME/hub-cloud`, or `~/.config/hub-cloud`.
    pub fn open() -> Result<Self, String> {
        let folder = |name: &str| {
            std::env::var_os(name)
                .map(PathBuf::from)
                .filter(|path| path.is_absolute())
        };
        let config =
            folder("XDG_CONFIG_HOME").or_else(|| folder("HOME").map(|home| home.join(".config")));
        let config =
            config.ok_or("no directory for the session; set HOME or XDG_CONFIG_HOME".to_owned())?;
        Ok(Self {
            dir: config.join("hub-cloud"),
        })
    }

    pub fn file(&self) -> PathBuf {
        self.dir.join("session.json")
    }

    /// Locks the store; waits while another process holds the lock.
    pub fn lock(&self) -> Result<LockedStore<'_>, String> {
        let failed = |path: &Path, error| {
            format!(
                "{} is not usable: {error}; check its permissions",
                path.display()
            )
        };
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&self.dir)
            .map_err(|error| failed(&self.dir, error))?;
        let path = self.dir.join("session.lock");
        let lock = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(&path);
        let lock = lock
            .and_then(|file| file.lock().map(|()| file))
            .map_err(|error| failed(&path, error))?;
        Ok(LockedStore {
            store: self,
            _lock: lock,
        })
    }
}

impl LockedStore<'_> {
    /// The session, or none if no login took place.
    pub fn read(&self) -> Result<Option<Session>, String> {
        let file = self.store.file();
        let text = match std::fs::read(&file) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(format!("cannot read {}: {error}", file.display())),
        };
        let session = serde_json::from_slice(&text);
        session.map(Some).map_err(|_| {
            format!(
                "{} is not a session file; run `hub-cloud login` to replace it",
                file.display()
            )
        })
    }

    /// Replaces the file atomically: after a crash it holds the old or the new session.
    pub fn write(&self, session: &Session) -> Result<(), String> {
        let (file, new) = (self.store.file(), self.store.dir.join("session.json.new"));
        let write = || {
            // A file left over from a crash could be readable by others.
            match std::fs::remove_file(&new) {
                Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
                _ => {}
            }
            let mut opened = OpenOptions::new()
                .write(true)
                .create_new(true)
                .mode(0o600)
                .open(&new)?;
            opened.write_all(&serde_json::to_vec_pretty(session)?)?;
            opened.sync_all()?;
            std::fs::rename(&new, &file)
        };
        write().map_err(|error| format!("cannot write {}: {error}", file.display()))
    }
}
