//! The definition of a destination: what may be in it, checked when it is given and not when the
//! first message is sent.

use std::time::Duration;

use reqwest::Url;
use secrecy::SecretString;
use serde_json::{Value, json};

use super::auth::{self, ShownAuth};
use super::http::{Format, Http, headers};
use super::members::Members;
use super::mqtt::{Mqtt, Version};
use super::nats::Nats;
use super::s3::S3;
use super::template::Template;
use super::{Definition, Problem};
use crate::outgoing::{MAX_URL_BYTES, Outgoing};

#[derive(Clone, Debug)]
pub enum Kind {
    Http(Http),
    Mqtt(Mqtt),
    Nats(Nats),
    S3(S3),
}

/// How a destination wants its messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchDefaults {
    /// Events are collected for this long.
    pub every: Duration,
}

const MAX_TEMPLATE_BYTES: usize = 1_024;

/// Checks a destination as a tenant gives it. Its secrets are separate: whoever stores the
/// definition seals them.
pub fn parse(
    value: &Value,
    outgoing: &Outgoing,
) -> Result<(Definition, Option<SecretString>), Problem> {
    let definition = read(value, outgoing, false)?;
    let secrets = value
        .get("auth")
        .filter(|auth| !auth.is_null())
        .map(|auth| auth.to_string().into());
    Ok((definition, secrets))
}

/// A destination as it was stored, without its secrets.
pub fn parse_stored(value: &Value, outgoing: &Outgoing) -> Result<Definition, Problem> {
    read(value, outgoing, true)
}

fn read(value: &Value, outgoing: &Outgoing, is_stored: bool) -> Result<Definition, Problem> {
    let known: &[&str] = match value.get("kind").and_then(Value::as_str) {
        Some("HTTP") => &["kind", "url", "headers", "auth", "format"],
        Some("MQTT") => &[
            "kind",
            "url",
            "version",
            "topic",
            "qos",
            "retain",
            "auth",
            "homeAssistantDiscovery",
        ],
        Some("NATS") => &["kind", "url", "tlsFirst", "subject", "auth"],
        Some("S3") => &["kind", "url", "auth", "everySeconds"],
        _ if value.is_object() => {
            return Err(Problem::new("/kind", "must be one of HTTP, MQTT, NATS, S3"));
        }
        _ => &[],
    };
    let members = Members::new(value, "", known)?;
    let source = Source {
        members,
        outgoing,
        is_stored,
    };
    match value.get("kind").and_then(Value::as_str) {
        Some("HTTP") => source.http(),
        Some("MQTT") => source.mqtt(),
        Some("NATS") => source.nats(),
        _ => source.s3(),
    }
}

struct Source<'a> {
    members: Members<'a>,
    outgoing: &'a Outgoing,
    is_stored: bool,
}

impl Source<'_> {
    fn url(&self, schemes: &[&str]) -> Result<Url, Problem> {
        let text = self.members.required("url", MAX_URL_BYTES)?;
        self.outgoing
            .check_url(text, schemes)
            .map_err(|message| self.members.problem("url", message))
    }

    /// The URL of a broker: host and port alone.
    fn broker(&self, schemes: &[&str]) -> Result<Url, Problem> {
        let url = self.url(schemes)?;
        match matches!(url.path(), "" | "/") && url.query().is_none() {
            true => Ok(url),
            false => Err(self
                .members
                .problem("url", "must have no path and no query")),
        }
    }

    fn auth(&self, kinds: &[&'static str]) -> Result<Option<ShownAuth>, Problem> {
        self.members
            .get("auth")
            .map(|auth| auth::check(auth, kinds, self.is_stored))
            .transpose()
    }

    fn template(
        &self,
        name: &str,
        check: fn(&str) -> Result<(), String>,
    ) -> Result<Template, Problem> {
        let text = self.members.required(name, MAX_TEMPLATE_BYTES)?;
        let template =
            Template::compile(text).map_err(|message| self.members.problem(name, message))?;
        // What an event will fill in is checked when there is one.
        check(&template.with_places_filled("x"))
            .map_err(|message| self.members.problem(name, message))?;
        Ok(template)
    }

    fn http(&self) -> Result<Definition, Problem> {
        let url = self.url(&["https", "http"])?;
        let auth = self.auth(&["BEARER", "BASIC", "HEADER"])?;
        let (headers, shown_headers) = headers(self.members.get("headers"), auth.as_ref())?;
        let format = self
            .members
            .word("format", &["JSON", "INFLUX_LINE", "TEMPLATE"], "JSON")?;
        let mut shown = json!({"kind": "HTTP", "url": url.as_str(), "format": format});
        if let (false, Some(shown)) = (headers.is_empty(), shown.as_object_mut()) {
            shown.insert("headers".to_owned(), shown_headers);
        }
        let format = match format {
            "INFLUX_LINE" => Format::InfluxLine,
            "TEMPLATE" => Format::Template,
            _ => Format::Json,
        };
        Ok(made(
            Kind::Http(Http {
                url,
                headers,
                format,
            }),
            shown,
            auth,
        ))
    }

    fn mqtt(&self) -> Result<Definition, Problem> {
        let url = self.broker(&["mqtts", "mqtt"])?;
        let auth = self.auth(&["BASIC"])?;
        let topic = self.template("topic", super::mqtt::check_topic)?;
        let qos = self.members.number("qos", 0, 2, 1)?;
        let retain = self.members.flag("retain")?;
        let discovery = self.members.flag("homeAssistantDiscovery")?;
        let version = self.members.word("version", &["3.1.1", "5"], "3.1.1")?;
        let shown = json!({"kind": "MQTT", "url": url.as_str(), "version": version, "topic": topic.text(), "qos": qos,
            "retain": retain, "homeAssistantDiscovery": discovery});
        let version = if version == "5" {
            Version::V5
        } else {
            Version::V3
        };
        let qos = u8::try_from(qos).unwrap_or(1);
        Ok(made(
            Kind::Mqtt(Mqtt {
                url,
                version,
                topic,
                qos,
                retain,
                discovery,
            }),
            shown,
            auth,
        ))
    }

    fn nats(&self) -> Result<Definition, Problem> {
        let url = self.broker(&["tls", "nats"])?;
        let auth = self.auth(&["BEARER", "BASIC"])?;
        let subject = self.template("subject", super::nats::check_subject)?;
        let tls_first = self.members.flag("tlsFirst")?;
        if tls_first && url.scheme() != "tls" {
            return Err(self
                .members
                .problem("tlsFirst", "is only for a `url` that begins with tls://"));
        }
        let mut shown = json!({"kind": "NATS", "url": url.as_str(), "subject": subject.text()});
        if let (true, Some(shown)) = (tls_first, shown.as_object_mut()) {
            shown.insert("tlsFirst".to_owned(), true.into());
        }
        Ok(made(
            Kind::Nats(Nats {
                url,
                tls_first,
                subject,
            }),
            shown,
            auth,
        ))
    }

    fn s3(&self) -> Result<Definition, Problem> {
        let text = self.members.required("url", MAX_URL_BYTES)?;
        let problem = |message: &str| self.members.problem("url", message);
        let (bucket, prefix) = s3_url(text).map_err(|message| problem(&message))?;
        let auth = self
            .auth(&["S3"])?
            .ok_or_else(|| self.members.problem("auth", "is missing"))?;
        let of_auth = |name: &str| auth.value.get(name).and_then(Value::as_str);
        let region = of_auth("region").unwrap_or("us-east-1").to_owned();
        // It becomes a part of a host name.
        let is_word = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        if region.len() > 32 || !region.bytes().all(is_word) {
            return Err(Problem::new(
                "/auth/region",
                "must be a region such as eu-central-1",
            ));
        }
        let endpoint = match of_auth("endpoint") {
            Some(endpoint) => {
                let checked = self.outgoing.check_url(endpoint, &["https", "http"]);
                let url = checked.map_err(|message| Problem::new("/auth/endpoint", message))?;
                if url.path() != "/" || url.query().is_some() {
                    return Err(Problem::new(
                        "/auth/endpoint",
                        "must have no path and no query",
                    ));
                }
                Some(url)
            }
            None => None,
        };
        let every_seconds = self.members.number("everySeconds", 10, 3_600, 60)?;
        let shown = json!({"kind": "S3", "url": text, "everySeconds": every_seconds});
        Ok(made(
            Kind::S3(S3 {
                bucket,
                prefix,
                region,
                endpoint,
                every_seconds,
            }),
            shown,
            Some(auth),
        ))
    }
}

fn made(kind: Kind, mut shown: Value, auth: Option<ShownAuth>) -> Definition {
    let has_auth = auth.is_some();
    if let (Some(auth), Some(shown)) = (auth, shown.as_object_mut()) {
        shown.insert("auth".to_owned(), auth.value);
    }
    Definition {
        kind,
        has_auth,
        shown,
    }
}

fn s3_url(text: &str) -> Result<(String, String), String> {
    let form = "must be a URL such as s3://bucket/prefix".to_owned();
    let Some(rest) = text.strip_prefix("s3://") else {
        return Err(form);
    };
    let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
    let is_bucket = |byte: u8| {
        byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'.')
    };
    let is_named = (3..=63).contains(&bucket.len())
        && bucket.bytes().all(is_bucket)
        && !bucket.starts_with(['.', '-']);
    if !is_named || bucket.contains("..") {
        return Err(form);
    }
    let prefix = prefix.trim_end_matches('/');
    let is_part = |part: &str| !part.is_empty() && part != "." && part != "..";
    let is_plain = prefix
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || b"-_.=!/".contains(&byte));
    if prefix.len() > 512 || !is_plain || !(prefix.is_empty() || prefix.split('/').all(is_part)) {
        return Err(
            "must have a prefix of letters, digits and - _ . = ! between slashes".to_owned(),
        );
    }
    Ok((bucket.to_owned(), prefix.to_owned()))
}
