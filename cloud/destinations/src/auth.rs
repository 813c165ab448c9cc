//! The credentials of a destination. They come with a definition, are sealed by whoever stores it,
//! and are shown without what is secret.

use axum::http::HeaderValue;
use axum::http::header::{AUTHORIZATION, HeaderName};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use secrecy::{ExposeSecret, SecretString};
use serde_json::{Value, json};

use super::headers::{secret_value, usable};
use super::members::{Members, Problem};

pub const MAX_SECRET_BYTES: usize = 4_096;
pub const MAX_NAME_BYTES: usize = 256;

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
    /// The seed of a user of NATS.
    Nkey {
        seed: SecretString,
    },
    /// The content of a credentials file of NATS.
    Credentials {
        text: SecretString,
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

/// A form of credentials, by its `type`.
pub struct Form {
    pub name: &'static str,
    pub members: &'static [&'static str],
    pub check: fn(&Fields<'_>) -> Result<ShownAuth, Problem>,
}

/// The members of `auth`.
pub struct Fields<'a> {
    pub members: Members<'a>,
    /// Whether they are without secrets.
    pub is_stored: bool,
}

impl Fields<'_> {
    /// Checks a secret, which is there unless the definition was stored.
    pub fn secret(&self, name: &str) -> Result<(), Problem> {
        match self.members.text(name, MAX_SECRET_BYTES)? {
            None if self.is_stored => Ok(()),
            None => Err(self.members.problem(name, "is missing")),
            Some(text) if text.chars().any(char::is_control) => Err(self
                .members
                .problem(name, "must not have line breaks or control characters")),
            Some(_) => Ok(()),
        }
    }
}

impl ShownAuth {
    pub fn new(value: Value) -> Self {
        Self {
            value,
            header: None,
        }
    }
}

pub const BEARER: Form = Form {
    name: "BEARER",
    members: &["type", "token"],
    check: |fields| {
        fields.secret("token")?;
        Ok(ShownAuth::new(json!({"type": "BEARER"})))
    },
};

pub const BASIC: Form = Form {
    name: "BASIC",
    members: &["type", "username", "password"],
    check: |fields| {
        let username = fields.members.required("username", MAX_NAME_BYTES)?;
        if username.contains(':') || username.chars().any(char::is_control) {
            let message = "must not have a colon or control characters";
            return Err(fields.members.problem("username", message));
        }
        fields.secret("password")?;
        Ok(ShownAuth::new(
            json!({"type": "BASIC", "username": username}),
        ))
    },
};

pub const HEADER: Form = Form {
    name: "HEADER",
    members: &["type", "name", "value"],
    check: |fields| {
        let name = fields.members.required("name", MAX_NAME_BYTES)?;
        fields.secret("value")?;
        Ok(ShownAuth {
            value: json!({"type": "HEADER", "name": name}),
            header: Some(name.to_ascii_lowercase()),
        })
    },
};

/// Checks the shape of `auth`; `is_stored` if it is without its secrets.
pub fn check(value: &Value, forms: &[&Form], is_stored: bool) -> Result<ShownAuth, Problem> {
    let named = value.get("type").and_then(Value::as_str);
    let form = forms.iter().find(|form| named == Some(form.name));
    let Some(form) = form else {
        if !value.is_object() {
            return Err(Problem::new(POINTER, "must be an object"));
        }
        let names: Vec<&str> = forms.iter().map(|form| form.name).collect();
        let message = format!("must be one of {}", names.join(", "));
        return Err(Problem::new("/auth/type", message));
    };
    let members = Members::new(value, POINTER, form.members)?;
    (form.check)(&Fields { members, is_stored })
}

/// The credentials of an external endpoint: their kind, and the JSON text to seal.
pub fn checked_auth(value: &Value) -> Result<(String, SecretString), Problem> {
    let shown = check(value, &[&BEARER, &BASIC, &HEADER], false)?;
    if let Some(name) = &shown.header {
        usable(name).map_err(|message| Problem::new("/auth/name", message))?;
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
    let name = usable(name).ok().filter(|name| *name != AUTHORIZATION)?;
    let mut value = HeaderValue::from_str(value.expose_secret()).ok()?;
    value.set_sensitive(true);
    Some((name, value))
}

/// The header that the credentials are sent in. The error says why they do not fit.
pub fn auth_header(auth: &Auth) -> Result<(HeaderName, HeaderValue), String> {
    Ok(match auth {
        Auth::Bearer { token } => (
            AUTHORIZATION,
            secret_value(&format!("Bearer {}", token.expose_secret()))?,
        ),
        Auth::Basic { username, password } => {
            let pair = STANDARD.encode(format!("{username}:{}", password.expose_secret()));
            (AUTHORIZATION, secret_value(&format!("Basic {pair}"))?)
        }
        Auth::Header { name, value } => (usable(name)?, secret_value(value.expose_secret())?),
        Auth::Nkey { .. } | Auth::Credentials { .. } => {
            return Err("the credentials are none of HTTP".to_owned());
        }
    })
}

impl Auth {
    /// From the JSON text that was sealed.
    pub fn open(secrets: &SecretString) -> Option<Self> {
        Self::of_json(&serde_json::from_str(secrets.expose_secret()).ok()?)
    }

    pub fn of_json(value: &Value) -> Option<Self> {
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
            "NKEY" => Self::Nkey {
                seed: text("seed")?.into(),
            },
            "CREDENTIALS" => Self::Credentials {
                text: text("credentials")?.into(),
            },
            _ => return None,
        })
    }
}
