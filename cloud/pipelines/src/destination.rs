//! Where a pipeline sends to, and the secrets for it: what is stored of them, what is shown, and
//! what of them a change keeps.

use hub_base::error::{Error, Result};
use hub_base::sealing::stored::PIPELINE_AUTH;
use hub_core::Core;
use hub_destinations::{self as destinations, Problem};
use secrecy::{ExposeSecret, SecretString};
use serde_json::{Map, Value};
use uuid::Uuid;

use super::members::{refused, require_small};

/// The destination of a stored revision.
pub struct Stored {
    /// As it is shown, without secrets.
    pub shown: Value,
    /// `auth` as it was given, as JSON.
    pub auth: Option<SecretString>,
}

impl Stored {
    pub fn open(
        core: &Core,
        revision_uuid: Uuid,
        shown: Value,
        sealed: Option<&[u8]>,
    ) -> Result<Self> {
        let open = |sealed| {
            core.sealer
                .open(PIPELINE_AUTH, &revision_uuid.to_string(), sealed)
        };
        let auth = sealed.map(open).transpose().map_err(Error::internal)?;
        let auth = auth
            .map(String::from_utf8)
            .transpose()
            .map_err(Error::internal)?;
        Ok(Self {
            shown,
            auth: auth.map(SecretString::from),
        })
    }

    /// Compiles it. A stored destination may be refused by a later version, or by other settings.
    pub fn compile(&self, core: &Core) -> Result<destinations::Definition, String> {
        let problem =
            |problem: Problem| format!("/destination{}: {}", problem.pointer, problem.message);
        destinations::parse_stored(&self.shown, &core.outgoing).map_err(problem)
    }
}

/// A destination that was checked.
pub struct Destination {
    /// As it is shown, without secrets.
    pub shown: Value,
    pub definition: destinations::Definition,
    /// `auth` as it was given, as JSON.
    pub auth: Option<SecretString>,
}

impl Destination {
    /// Reads the destination of a definition at `at`. `before` is what it replaces: secrets that
    /// are not given again are kept for the same receiver.
    pub fn read(
        core: &Core,
        at: &str,
        given: &Map<String, Value>,
        before: Option<&Stored>,
    ) -> Result<Self> {
        let part = "/destination";
        let Some(Value::Object(members)) = given.get("destination") else {
            return Err(refused(at, part, "must be an object"));
        };
        let mut whole = Value::Object(members.clone());
        require_small(at, part, &whole)?;
        if let Some(kept) = kept_auth(at, members, before)?
            && let Some(members) = whole.as_object_mut()
        {
            let auth = serde_json::from_str(kept.expose_secret()).map_err(Error::internal)?;
            members.insert("auth".to_owned(), auth);
        }
        let problem =
            |problem: Problem| refused(at, &format!("{part}{}", problem.pointer), problem.message);
        let (definition, auth) = destinations::parse(&whole, &core.outgoing).map_err(problem)?;
        let shown = serde_json::to_value(&definition).map_err(Error::internal)?;
        Ok(Self {
            shown,
            definition,
            auth,
        })
    }

    /// What is stored of the secrets.
    pub fn sealed_auth(&self, core: &Core, revision_uuid: Uuid) -> Option<Vec<u8>> {
        let auth = self.auth.as_ref()?.expose_secret();
        Some(
            core.sealer
                .seal(PIPELINE_AUTH, &revision_uuid.to_string(), auth.as_bytes()),
        )
    }
}

/// The stored secrets, where `auth` is absent or what is shown of it.
fn kept_auth<'a>(
    at: &str,
    given: &Map<String, Value>,
    before: Option<&'a Stored>,
) -> Result<Option<&'a SecretString>> {
    let Some(Stored {
        shown,
        auth: Some(auth),
    }) = before
    else {
        return Ok(None);
    };
    let is_kept = given
        .get("auth")
        .is_none_or(|given| Some(given) == shown.get("auth"));
    if !is_kept || given.get("kind") != shown.get("kind") {
        return Ok(None);
    }
    // Whoever may change a pipeline could otherwise have its secrets sent to a server of theirs.
    if receiver(given) != shown.as_object().map(receiver).unwrap_or_default() {
        let message = "must be given again, since the destination is another server; null for none";
        return Err(refused(at, "/destination/auth", message));
    }
    Ok(Some(auth))
}

/// What tells servers apart. Of S3, `auth` names the server.
fn receiver(destination: &Map<String, Value>) -> String {
    let url = destination
        .get("url")
        .and_then(Value::as_str)
        .unwrap_or_default();
    match reqwest::Url::parse(url) {
        Ok(url) => format!(
            "{}://{}:{:?}",
            url.scheme(),
            url.host_str().unwrap_or_default(),
            url.port()
        ),
        Err(_) => url.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn stored() -> Stored {
        let auth = json!({"type": "BASIC", "username": "u"});
        let shown = json!({"kind": "HTTP", "url": "https://a.example/in", "auth": auth});
        Stored {
            shown,
            auth: Some("{}".into()),
        }
    }

    fn kept(given: Value) -> Result<bool> {
        let before = stored();
        kept_auth("", given.as_object().expect("an object"), Some(&before))
            .map(|auth| auth.is_some())
    }

    #[test]
    fn secrets_are_kept_for_their_server_alone() {
        let shown = json!({"type": "BASIC", "username": "u"});
        let same = json!({"kind": "HTTP", "url": "https://a.example/other"});
        assert!(kept(same).expect("an answer"));
        assert!(
            kept(json!({"kind": "HTTP", "url": "https://a.example/in", "auth": shown}))
                .expect("an answer")
        );
        assert!(
            !kept(json!({"kind": "HTTP", "url": "https://b.example/in", "auth": null}))
                .expect("an answer")
        );
        assert!(!kept(json!({"kind": "MQTT", "url": "mqtts://a.example"})).expect("an answer"));
        for url in [
            "https://b.example/in",
            "http://a.example/in",
            "https://a.example:8443/in",
        ] {
            let error = kept(json!({"kind": "HTTP", "url": url}))
                .expect_err("another server")
                .to_string();
            assert!(error.contains("/destination/auth"), "{error}");
        }
    }
}
