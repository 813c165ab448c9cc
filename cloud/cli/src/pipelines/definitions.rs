//! Definitions of pipelines: compared with what the service has, and without their secrets.

use hub_client::operations;
use reqwest::Url;
use serde_json::{Map, Value, json};

use crate::diff::canonical;
use crate::failure::Failure;
use crate::text::printable;

/// The definition in a record of the service, without the members that the service adds.
pub fn definition(record: &Value) -> Value {
    let member = |name: &&str| Some(((*name).to_owned(), record.get(*name)?.clone()));
    complete(Value::Object(
        operations::PIPELINE_MEMBERS
            .iter()
            .filter_map(member)
            .collect(),
    ))
}

/// A definition with its defaults filled in, so that two can be compared.
pub fn complete(definition: Value) -> Value {
    let Value::Object(mut members) = canonical(definition) else {
        return Value::Null;
    };
    let fill = |object: &mut Map<String, Value>, defaults: Value| {
        if let Value::Object(defaults) = defaults {
            for (name, value) in defaults {
                object.entry(name).or_insert(value);
            }
        }
    };
    if members.get("description").and_then(Value::as_str) == Some("") {
        members.remove("description");
    }
    fill(
        &mut members,
        json!({"enabled": true, "source": {}, "steps": [], "delivery": {}}),
    );
    let kind = members
        .get("destination")
        .and_then(|to| to.get("kind"))
        .and_then(Value::as_str)
        .unwrap_or_default();
    let kind = kind.to_owned();
    if let Some(Value::Object(destination)) = members.get_mut("destination") {
        fill(
            destination,
            match kind.as_str() {
                "HTTP" => json!({"format": "JSON"}),
                "MQTT" => {
                    json!({"version": "3.1.1", "qos": 1, "retain": false, "homeAssistantDiscovery": false})
                }
                "NATS" => json!({}),
                "S3" => json!({"everySeconds": 60}),
                _ => json!({}),
            },
        );
        // The service normalises URLs: with a slash after the host.
        if let Some(url) = destination
            .get("url")
            .and_then(Value::as_str)
            .and_then(|url| url.parse::<Url>().ok())
            && matches!(url.scheme(), "http" | "https")
        {
            destination.insert("url".to_owned(), Value::from(url.as_str()));
        }
        // The default is false.
        destination.retain(|name, value| name != "tlsFirst" || *value != Value::Bool(false));
    }
    let every = members
        .get("destination")
        .and_then(|to| to.get("everySeconds"))
        .and_then(Value::as_u64)
        .unwrap_or(60);
    if let Some(Value::Object(source)) = members.get_mut("source") {
        source.retain(|name, value| {
            let is_empty = value.as_array().is_some_and(Vec::is_empty)
                || *value == Value::Bool(false) && name != "known";
            !is_empty && name != "startAt"
        });
    }
    if let Some(Value::Object(delivery)) = members.get_mut("delivery") {
        let is_alone = delivery
            .get("concurrency")
            .and_then(Value::as_u64)
            .unwrap_or(1)
            == 1;
        fill(
            delivery,
            match kind.as_str() {
                "S3" => json!({"batchEvents": 1000, "batchMillis": every * 1000}),
                _ => json!({"batchEvents": 1, "batchMillis": 1000}),
            },
        );
        fill(
            delivery,
            json!({"concurrency": 1, "ordered": is_alone, "timeoutSeconds": 15}),
        );
    }
    canonical(Value::Object(members))
}

/// The name of the secret member of `auth`.
fn secret_member(auth: &Value) -> Option<&'static str> {
    match auth.get("type")?.as_str()? {
        "BEARER" => Some("token"),
        "BASIC" => Some("password"),
        "HEADER" => Some("value"),
        "S3" => Some("secretAccessKey"),
        _ => None,
    }
}

fn auth_of(definition: &mut Value) -> Option<&mut Map<String, Value>> {
    definition
        .get_mut("destination")?
        .get_mut("auth")?
        .as_object_mut()
}

/// The definition as the service shows it: without secrets.
pub fn without_secrets(mut definition: Value) -> Value {
    if let Some(auth) = auth_of(&mut definition)
        && let Some(secret) = secret_member(&Value::Object(auth.clone()))
    {
        auth.remove(secret);
    }
    definition
}

/// The definition for a file: a variable takes the place of the secret that the service stores.
pub fn with_variables(mut definition: Value, name: &str) -> Value {
    if let Some(auth) = auth_of(&mut definition)
        && let Some(secret) = secret_member(&Value::Object(auth.clone()))
    {
        let upper = |c: char| {
            if c.is_ascii_alphanumeric() {
                c.to_ascii_uppercase()
            } else {
                '_'
            }
        };
        let name: String = name.chars().map(upper).collect();
        let member: String = secret.chars().map(upper).collect();
        auth.insert(
            secret.to_owned(),
            Value::from(format!("${{{VARIABLES}{name}_{member}}}")),
        );
    }
    canonical(definition)
}

/// Prefix of the variables that are read: a file from another source must not be able to send any
/// other variable to a server.
const VARIABLES: &str = "HUB_SECRET_";

/// The definition to send, with the values of the environment variables in `auth`. A secret whose
/// variable is not set is left out if the service stores one already.
pub fn with_secrets(mut definition: Value, is_new: bool) -> Result<Value, Failure> {
    let Some(auth) = auth_of(&mut definition) else {
        return Ok(definition);
    };
    let mut missing = Vec::new();
    for (name, value) in auth.iter_mut() {
        let variable = value
            .as_str()
            .and_then(|text| text.strip_prefix("${")?.strip_suffix('}'))
            .map(str::to_owned);
        let Some(variable) = variable else { continue };
        if !variable.starts_with(VARIABLES) {
            let variable = printable(&variable);
            return Err(Failure::usage(format!(
                "the variable {variable} of `auth` does not begin with {VARIABLES}"
            )));
        }
        match std::env::var(&variable) {
            Ok(secret) => *value = Value::from(secret),
            Err(_) if is_new => {
                return Err(Failure::usage(format!(
                    "set the environment variable {} to the secret",
                    printable(&variable)
                )));
            }
            Err(_) => missing.push(name.clone()),
        }
    }
    for name in missing {
        auth.remove(&name);
    }
    Ok(definition)
}

/// The name of a definition. Unknown members are refused, as they may be misspelt.
pub fn check_definition(definition: &Value, place: &str) -> Result<String, Failure> {
    let members = definition
        .as_object()
        .ok_or_else(|| Failure::usage(format!("{place} is not a JSON object")))?;
    let unknown = members
        .keys()
        .find(|name| !operations::PIPELINE_MEMBERS.contains(&name.as_str()));
    if let Some(unknown) = unknown {
        return Err(Failure::usage(format!(
            "{place} has the unknown member `{}`; allowed are: {}",
            printable(unknown),
            operations::PIPELINE_MEMBERS.join(", ")
        )));
    }
    let name = members
        .get("name")
        .and_then(Value::as_str)
        .filter(|name| !name.trim().is_empty());
    name.map(str::to_owned)
        .ok_or_else(|| Failure::usage(format!("{place} has no `name`")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_absent_is_what_the_service_takes_it_for() {
        let short = json!({"name": "a", "source": {"hubUuids": []}, "destination": {"kind": "HTTP", "url": "https://b"}});
        let long = json!({
            "name": "a", "description": null, "enabled": true, "source": {}, "steps": [],
            "destination": {"kind": "HTTP", "url": "https://b/", "format": "JSON"},
            "delivery": {"batchEvents": 1, "batchMillis": 1000, "concurrency": 1, "ordered": true, "timeoutSeconds": 15},
        });
        assert_eq!(complete(short), complete(long));
    }

    #[test]
    fn secrets_are_neither_compared_nor_written() {
        let given = json!({"destination": {"auth": {"type": "BEARER", "token": "s3cret"}}});
        assert!(
            !without_secrets(given.clone())
                .to_string()
                .contains("s3cret")
        );
        let written = with_variables(without_secrets(given), "to the plant");
        assert_eq!(
            written["destination"]["auth"]["token"],
            "${HUB_SECRET_TO_THE_PLANT_TOKEN}"
        );
        assert!(with_secrets(written.clone(), true).is_err());
        let foreign = json!({"destination": {"auth": {"type": "BEARER", "token": "${HOME}"}}});
        assert!(with_secrets(foreign, false).is_err());
        let sent = with_secrets(written, false).expect("the stored secret is kept");
        assert_eq!(sent["destination"]["auth"], json!({"type": "BEARER"}));
    }
}
