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
    /// Its secrets as they were given, as JSON.
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
    /// Its secrets as they were given, as JSON.
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
        if let Some(whole) = whole.as_object_mut() {
            whole.extend(kept_secrets(at, members, before)?);
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

    /// Whether it leaves announcements where another destination is.
    pub fn announces_at(&self, other: &Value) -> bool {
        let of = |destination: &Value| destination.as_object().map(receiver);
        self.definition.announces() && of(&self.shown) == of(other)
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

/// The members with stored secrets, where they are absent or what is shown of them.
fn kept_secrets(
    at: &str,
    given: &Map<String, Value>,
    before: Option<&Stored>,
) -> Result<Map<String, Value>> {
    let Some(Stored {
        shown,
        auth: Some(secrets),
    }) = before
    else {
        return Ok(Map::new());
    };
    let mut kept: Map<String, Value> =
        serde_json::from_str(secrets.expose_secret()).map_err(Error::internal)?;
    kept.retain(|name, _| {
        let given = given.get(name);
        given.is_none_or(|given| Some(given) == shown.get(name))
    });
    if given.get("kind") != shown.get("kind") {
        return Ok(Map::new());
    }
    // Whoever may change a pipeline could otherwise have its secrets sent to a server of theirs.
    if receiver(given) != shown.as_object().map(receiver).unwrap_or_default()
        && let Some(name) = kept.keys().next()
    {
        let message = "must be given again, since the destination is another server; null for none";
        return Err(refused(at, &format!("/destination/{name}"), message));
    }
    Ok(kept)
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
            auth: Some(r#"{"auth": {}}"#.into()),
        }
    }

    fn kept(given: Value) -> Result<bool> {
        let before = stored();
        kept_secrets("", given.as_object().expect("an object"), Some(&before))
            .map(|secrets| !secrets.is_empty())
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
