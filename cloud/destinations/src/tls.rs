//! The TLS of a receiver of a tenant's own: `tls`, with the authority that the receiver is trusted
//! by, and the certificate that it is shown. It is sealed together with `auth`.

use std::sync::Arc;

use hub_outgoing::OwnTls;
use secrecy::{ExposeSecret, SecretString};
use serde_json::{Map, Value};

use super::members::{Members, Problem};
use super::source::Source;

pub const MEMBER: &str = "tls";
const POINTER: &str = "/tls";
const MAX_PEM_BYTES: usize = 16 * 1024;

/// Checks `tls`. It is shown and stored in the open without its key.
pub fn check(source: &Source<'_>, is_secure: bool) -> Result<Option<Value>, Problem> {
    let Some(value) = source.members.get(MEMBER) else {
        return Ok(None);
    };
    let members = Members::new(value, POINTER, &["ca", "certificate", "key"])?;
    let text = |name| members.text(name, MAX_PEM_BYTES);
    let (ca, certificate, key) = (text("ca")?, text("certificate")?, text("key")?);
    if ca.is_none() && certificate.is_none() && key.is_none() {
        return Err(Problem::new(
            POINTER,
            "must have `ca`, or `certificate` and `key`",
        ));
    }
    if !is_secure {
        return Err(Problem::new(POINTER, "is only for a `url` that is secure"));
    }
    if !source.is_stored {
        let key = key.map(SecretString::from);
        let checked = OwnTls::new(ca, certificate, key.as_ref()).check();
        checked.map_err(|error| members.problem(error.member, error.message))?;
    }
    let named = [("ca", ca), ("certificate", certificate)];
    let shown: Map<String, Value> = named
        .into_iter()
        .filter_map(|(name, text)| Some((name.to_owned(), text?.into())))
        .collect();
    Ok(Some(shown.into()))
}

/// From the JSON text that was sealed.
pub fn open(secrets: &SecretString) -> Option<Arc<OwnTls>> {
    let value: Value = serde_json::from_str(secrets.expose_secret()).ok()?;
    let tls = value.get(MEMBER)?;
    let text = |name: &str| tls.get(name).and_then(Value::as_str);
    let key = text("key").map(SecretString::from);
    Some(Arc::new(OwnTls::new(
        text("ca"),
        text("certificate"),
        key.as_ref(),
    )))
}
