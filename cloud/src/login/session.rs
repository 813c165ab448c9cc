//! The session of the command line: tokens in one file of the user's own, read and replaced whole, under a lock.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hub_protocol::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::issuer::{Asked, Tokens};
use crate::config::OidcConfig;

/// Where neither the token nor the issuer says when it ends.
const LIFETIME_SECS: i64 = 5 * 60;

/// A login, and what it was for.
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
    pub fn new(issuer: &str, asked: &Asked<'_>, tokens: Tokens, now: Timestamp) -> Result<Self, String> {
        let session = Self {
            issuer: issuer.to_owned(),
            client_id: asked.client_id.to_owned(),
            audience: asked.audience.to_owned(),
            scope: asked.scope.to_owned(),
            access_token: String::new(),
            expires_at: now,
            refresh_token: None,
        };
        session.refreshed(tokens, now)
    }

    /// With other tokens. An issuer that gives no new refresh token means the old one to go on.
    pub fn refreshed(self, tokens: Tokens, now: Timestamp) -> Result<Self, String> {
        let claims = claims(&tokens.access_token).ok_or_else(|| {
            let audience = &self.audience;
            format!("the issuer gave an access token that is no JWT, which the service cannot check; make `{audience}` an API (resource) whose access tokens are JWTs there")
        })?;
        if !names(claims.get("aud"), &self.audience) {
            let given = claims.get("aud").unwrap_or(&Value::Null);
            return Err(format!(
                "the issuer gave an access token for {given}, not for `{}`; set oidc-audience to what the issuer calls the service",
                self.audience
            ));
        }
        let lifetime = tokens.expires_in.map(|secs| now.plus_secs(secs.clamp(0, 366 * 24 * 3600)));
        let in_token = claims.get("exp").and_then(Value::as_i64).and_then(|secs| secs.checked_mul(1_000_000));
        let expires_at = in_token.map(Timestamp::from_micros).or(lifetime);
        Ok(Self {
            access_token: tokens.access_token,
            expires_at: expires_at.unwrap_or_else(|| now.plus_secs(LIFETIME_SECS)),
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

    pub fn asked(&self) -> Asked<'_> {
        Asked { client_id: &self.client_id, audience: &self.audience, scope: &self.scope }
    }

    /// Whether the access token is still good at `time`.
    pub fn is_fresh(&self, time: Timestamp) -> bool {
        self.expires_at > time
    }

    /// Whether the settings mean this session.
    pub fn is_for(&self, oidc: &OidcConfig) -> bool {
        let is_client = oidc.client_id.as_ref().is_none_or(|client_id| *client_id == self.client_id);
        self.issuer == oidc.issuer && self.audience == oidc.audience && is_client
    }
}

/// What the token says, to tell a misunderstanding early; the service checks it.
fn claims(token: &str) -> Option<Value> {
    let mut parts = token.split('.');
    let (payload, rest) = (parts.nth(1)?, parts.count());
    let payload = URL_SAFE_NO_PAD.decode(payload).ok().filter(|_| rest == 1)?;
    serde_json::from_slice(&payload).ok()
}

fn names(aud: Option<&Value>, audience: &str) -> bool {
    match aud {
        Some(Value::Array(names)) => names.iter().any(|name| name == audience),
        Some(name) => name == audience,
        None => false,
    }
}

/// The place of the session's file.
pub struct Store {
    dir: PathBuf,
}

/// The store while nobody else reads or writes it.
pub struct Locked<'a> {
    store: &'a Store,
    _lock: File,
}

impl Store {
    /// `$XDG_CONFIG_HOME/hub-cloud`, or `~/.config/hub-cloud`.
    pub fn open() -> Result<Self, String> {
        let folder = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let config = folder("XDG_CONFIG_HOME").or_else(|| folder("HOME").map(|home| home.join(".config")));
        let config = config.ok_or("there is no place for the session: set HOME or XDG_CONFIG_HOME".to_owned())?;
        Ok(Self { dir: config.join("hub-cloud") })
    }

    pub fn file(&self) -> PathBuf {
        self.dir.join("session.json")
    }

    /// Waits until nobody else has it.
    pub fn lock(&self) -> Result<Locked<'_>, String> {
        let failed = |path: &Path, error| format!("{} cannot be used: {error}", path.display());
        DirBuilder::new().recursive(true).mode(0o700).create(&self.dir).map_err(|error| failed(&self.dir, error))?;
        let path = self.dir.join("session.lock");
        let lock = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(&path);
        let lock = lock.and_then(|file| file.lock().map(|()| file)).map_err(|error| failed(&path, error))?;
        Ok(Locked { store: self, _lock: lock })
    }
}

impl Locked<'_> {
    /// The session; none where nobody has logged in.
    pub fn read(&self) -> Result<Option<Session>, String> {
        let file = self.store.file();
        let text = match std::fs::read(&file) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(format!("{} cannot be read: {error}", file.display())),
        };
        let session = serde_json::from_slice(&text);
        session
            .map(Some)
            .map_err(|_| format!("{} is no session; run `hub-cloud login` to make a new one", file.display()))
    }

    /// Replaces it whole: a crash leaves the old one or the new one.
    pub fn write(&self, session: &Session) -> Result<(), String> {
        let (file, new) = (self.store.file(), self.store.dir.join("session.json.new"));
        let write = || {
            // Left over from a crash, it might be readable by others.
            match std::fs::remove_file(&new) {
                Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
                _ => {}
            }
            let mut opened = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&new)?;
            opened.write_all(&serde_json::to_vec_pretty(session)?)?;
            opened.sync_all()?;
            std::fs::rename(&new, &file)
        };
        write().map_err(|error| format!("{} cannot be written: {error}", file.display()))
    }
}
