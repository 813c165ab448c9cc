//! The credentials of a destination. They come with a definition, are sealed by whoever stores it,
//! and are shown without what is secret.

use axum::http::HeaderValue;
use axum::http::header::{AUTHORIZATION, HeaderName};
use secrecy::{ExposeSecret, SecretString};
use serde_json::{Value, json};

use super::Problem;
use super::members::Members;

const MAX_SECRET_BYTES: usize = 4_096;
const MAX_NAME_BYTES: usize = 256;

/// As it is given, and as it is sealed.
pub enum Auth {
    Bearer {
        token: SecretString,
    },
    Basic {
        username: String,
        password: SecretString,
    },
    Header {
        name: String,
        value: SecretString,
    },
    S3 {
        access_key_id: String,
        secret_access_key: SecretString,
    },
}

/// What is shown of credentials, and stored in the open.
#[derive(Clone, Debug)]
pub struct ShownAuth {
    pub value: Value,
    /// The header that they are sent in, if it is not `authorization`.
    pub header: Option<String>,
}

const POINTER: &str = "/auth";

/// Checks the shape of `auth`; `is_stored` if it is without its secrets.
pub fn check(value: &Value, kinds: &[&'static str], is_stored: bool) -> Result<ShownAuth, Problem> {
    let known: &[&str] = match value.get("type").and_then(Value::as_str) {
        Some("BEARER") => &["type", "token"],
        Some("BASIC") => &["type", "username", "password"],
        Some("HEADER") => &["type", "name", "value"],
        Some("S3") => &[
            "type",
            "accessKeyId",
            "secretAccessKey",
            "region",
            "endpoint",
        ],
        _ => &["type"],
    };
    let kind = value
        .get("type")
        .and_then(Value::as_str)
        .and_then(|kind| kinds.iter().find(|known| **known == kind));
    if value.is_object() && kind.is_none() {
        let message = format!("must be one of {}", kinds.join(", "));
        return Err(Problem::new("/auth/type", message));
    }
    let members = Members::new(value, POINTER, known)?;
    let secret = |name: &str| match members.text(name, MAX_SECRET_BYTES)? {
        None if is_stored => Ok(()),
        None => Err(members.problem(name, "is missing")),
        Some(text) if text.chars().any(char::is_control) => {
            Err(members.problem(name, "must not have line breaks or control characters"))
        }
        Some(_) => Ok(()),
    };
    let shown = |value: Value| ShownAuth {
        value,
        header: None,
    };
    match kind.copied().unwrap_or_default() {
        "BEARER" => {
            secret("token")?;
            Ok(shown(json!({"type": "BEARER"})))
        }
        "BASIC" => {
            let username = members.required("username", MAX_NAME_BYTES)?;
            if username.contains(':') || username.chars().any(char::is_control) {
                return Err(
                    members.problem("username", "must not have a colon or control characters")
                );
            }
            secret("password")?;
            Ok(shown(json!({"type": "BASIC", "username": username})))
        }
        "HEADER" => {
            let name = members.required("name", MAX_NAME_BYTES)?;
            secret("value")?;
            Ok(ShownAuth {
                value: json!({"type": "HEADER", "name": name}),
                header: Some(name.to_ascii_lowercase()),
            })
        }
        _ => {
            let id = members.required("accessKeyId", MAX_NAME_BYTES)?;
            if !id.bytes().all(|byte| byte.is_ascii_graphic()) {
                return Err(members.problem("accessKeyId", "must be of letters, digits and signs"));
            }
            secret("secretAccessKey")?;
            let mut value = json!({"type": "S3", "accessKeyId": id});
            for name in ["region", "endpoint"] {
                if let (Some(text), Some(shown)) =
                    (members.text(name, MAX_SECRET_BYTES)?, value.as_object_mut())
                {
                    shown.insert(name.to_owned(), text.into());
                }
            }
            Ok(shown(value))
        }
    }
}

/// The credentials of an external endpoint: their kind, and the JSON text to seal.
pub fn checked_auth(value: &Value) -> Result<(String, SecretString), Problem> {
    let shown = check(value, &["BEARER", "BASIC", "HEADER"], false)?;
    if let Some(name) = &shown.header {
        super::http::usable(name).map_err(|message| Problem::new("/auth/name", message))?;
    }
    let kind = shown
        .value
        .get("type")
        .and_then(Value::as_str)
        .unwrap_or_default();
    Ok((kind.to_owned(), value.to_string().into()))
}

/// The credentials of an external endpoint that go into a header of their own; None of others,
/// which would take the place of a person's token.
pub fn own_header(auth: &Auth) -> Option<(HeaderName, HeaderValue)> {
    let Auth::Header { name, value } = auth else {
        return None;
    };
    let name = super::http::usable(name)
        .ok()
        .filter(|name| *name != AUTHORIZATION)?;
    let mut value = HeaderValue::from_str(value.expose_secret()).ok()?;
    value.set_sensitive(true);
    Some((name, value))
}

impl Auth {
    /// From the JSON text that was sealed.
    pub fn open(secrets: &SecretString) -> Option<Self> {
        let value: Value = serde_json::from_str(secrets.expose_secret()).ok()?;
        let text = |name: &str| Some(value.get(name)?.as_str()?.to_owned());
        Some(match text("type")?.as_str() {
            "BEARER" => Self::Bearer {
                token: text("token")?.into(),
            },
            "BASIC" => Self::Basic {
                username: text("username")?,
                password: text("password")?.into(),
            },
            "HEADER" => Self::Header {
                name: text("name")?,
                value: text("value")?.into(),
            },
            "S3" => {
                let secret_access_key = text("secretAccessKey")?.into();
                Self::S3 {
                    access_key_id: text("accessKeyId")?,
                    secret_access_key,
                }
            }
            _ => return None,
        })
    }
}
