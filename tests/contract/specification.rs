//! `docs/api/endpoints.tsv` lists every endpoint of the API. Each one is described by the service
//! as its row says, or is listed in `not_built.txt`, which may only get shorter.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::document::{Operation, object, operations, resolve};

const ENDPOINTS: &str = include_str!("../../docs/api/endpoints.tsv");
const NOT_BUILT: &str = include_str!("not_built.txt");

/// A row of the list.
struct Endpoint {
    name: String,
    path: &'static str,
    /// `none`, `hub`, `tenant`, `user`, `platform` or `hmac`.
    credential: &'static str,
    query: &'static str,
    body: &'static str,
    status: u16,
    response: &'static str,
}

fn endpoints() -> Vec<Endpoint> {
    let row = |line: &'static str| match line.split('\t').collect::<Vec<_>>()[..] {
        [
            _,
            method,
            path,
            credential,
            query,
            body,
            status,
            response,
            _,
            _,
        ] => Endpoint {
            name: format!("{method} {path}"),
            path,
            credential,
            query,
            body,
            status: status
                .parse()
                .unwrap_or_else(|_| panic!("a status is no number: {line}")),
            response,
        },
        _ => panic!("a row has not ten columns: {line}"),
    };
    ENDPOINTS.lines().skip(1).map(row).collect()
}

fn not_built() -> BTreeSet<&'static str> {
    NOT_BUILT
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .collect()
}

fn built() -> BTreeMap<String, Operation> {
    operations()
        .into_iter()
        .map(|operation| (operation.name(), operation))
        .collect()
}

#[test]
fn every_endpoint_is_built_or_listed_as_not_built() {
    let (built, not_built) = (built(), not_built());
    let mut faults = Vec::new();
    let mut names = BTreeSet::new();
    for endpoint in endpoints() {
        let name = endpoint.name;
        match (built.contains_key(&name), not_built.contains(name.as_str())) {
            (true, true) => faults.push(format!("{name} is built: take it out of not_built.txt")),
            (false, false) => faults.push(format!("{name} is in endpoints.tsv and nowhere else")),
            _ => {}
        }
        names.insert(name);
    }
    let unknown = built
        .keys()
        .map(String::as_str)
        .chain(not_built)
        .filter(|name| !names.contains(*name));
    faults.extend(unknown.map(|name| format!("{name} is not a row of endpoints.tsv")));
    assert!(faults.is_empty(), "{faults:#?}");
}

#[test]
fn every_built_endpoint_is_as_its_row_says() {
    let built = built();
    let mut faults = Vec::new();
    for endpoint in endpoints() {
        let Some(operation) = built.get(&endpoint.name) else {
            continue;
        };
        let checks = [
            check_access(&endpoint, operation),
            check_query(&endpoint, operation),
            check_body(&endpoint, operation),
        ];
        let responses = check_response(&endpoint, operation);
        let found = checks.into_iter().flatten().chain(responses);
        faults.extend(found.map(|fault| format!("{}: {fault}", endpoint.name)));
    }
    assert!(faults.is_empty(), "{faults:#?}");
}

/// Paths under `/tenant` that concern the caller and no single tenant: they name no tenant, and a
/// user token is enough.
fn concerns_the_caller(endpoint: &Endpoint) -> bool {
    endpoint.path == "/tenant/tenants" || endpoint.path.starts_with("/tenant/transfer-requests")
}

fn check_access(endpoint: &Endpoint, operation: &Operation) -> Option<String> {
    let expected = match endpoint.credential {
        "tenant" if concerns_the_caller(endpoint) => "user",
        "none" => "public",
        // People see their own there: their scope limits it.
        "user" if endpoint.path.starts_with("/app/") || endpoint.path == "/me/notifications" => {
            "app"
        }
        other => other,
    };
    let access = operation.access();
    let kind = access.split(':').next().unwrap_or_default();
    (kind != expected).then(|| format!("is for {expected}, its x-access is `{access}`"))
}

fn check_query(endpoint: &Endpoint, operation: &Operation) -> Option<String> {
    let mut expected = BTreeMap::new();
    for name in endpoint.query.split(',').filter(|name| *name != "-") {
        match name.strip_suffix('?') {
            Some("pageable") => {
                expected.extend([("page", false), ("size", false), ("sort", false)])
            }
            Some(name) => drop(expected.insert(name, false)),
            None => drop(expected.insert(name, true)),
        }
    }
    let actual = operation.parameters("query");
    // More that may be left out is an addition a client of the row does not notice.
    let missing: Vec<_> = expected
        .iter()
        .filter(|(name, required)| actual.get(*name) != Some(*required))
        .collect();
    let demanded: Vec<_> = actual
        .iter()
        .filter(|(name, required)| **required && !expected.contains_key(**name))
        .collect();
    let fits = missing.is_empty() && demanded.is_empty();
    (!fits).then(|| format!("takes the query {expected:?}, not {actual:?} (true: required)"))
}

fn check_body(endpoint: &Endpoint, operation: &Operation) -> Option<String> {
    let has_body = operation.value.get("requestBody").is_some();
    match (endpoint.body != "-", has_body) {
        (true, false) => Some(format!(
            "takes a body ({}), and describes none",
            endpoint.body
        )),
        (false, true) => Some("takes no body, and describes one".to_owned()),
        _ => None,
    }
}

fn check_response(endpoint: &Endpoint, operation: &Operation) -> Option<String> {
    let (status, response) = operation.success()?;
    if status != endpoint.status {
        return Some(format!("succeeds with {}, not {status}", endpoint.status));
    }
    let expected = Shape::expected(endpoint);
    let actual = Shape::of(response);
    (!expected.covers(&actual)).then(|| {
        format!(
            "answers {} ({expected:?}), not {actual:?}",
            endpoint.response
        )
    })
}

/// As much of a response as a row tells.
#[derive(Debug, PartialEq)]
enum Shape {
    /// Nothing is said, or anything will do.
    Any,
    /// No body.
    Empty,
    /// Not the envelope: another media type, or JSON as another standard has it.
    Bare(String),
    /// `{"data": null}`
    Null,
    /// `{"data": "..."}`
    Text,
    /// `{"data": [...]}`
    List,
    /// `{"data": {"content": [...], ...}}`
    Page,
    /// `{"data": {...}}` with these members at least.
    Object(BTreeSet<String>),
}

impl Shape {
    fn expected(endpoint: &Endpoint) -> Self {
        let response = endpoint.response;
        match response {
            "-" if endpoint.status == 204 => Self::Empty,
            "-" | "Object" => Self::Any,
            "Void" => Self::Null,
            "job uuid" => Self::Text,
            "event stream" => Self::Bare("text/event-stream".to_owned()),
            "JavaScript, CSS or SVG" => Self::Bare("image/svg+xml".to_owned()),
            "PNG, JPEG or WebP image" => Self::Bare("image/jpeg".to_owned()),
            "CSS" => Self::Bare("text/css".to_owned()),
            "JavaScript" => Self::Bare("text/javascript".to_owned()),
            "NDJSON, CSV or Parquet" => Self::Bare("application/vnd.apache.parquet".to_owned()),
            "NDJSON" => Self::Bare("application/x-ndjson".to_owned()),
            "HTML page" => Self::Bare("text/html".to_owned()),
            "OpenAPI 3.1 document" | "JSON Web Key Set" => {
                Self::Bare("application/json".to_owned())
            }
            "document of a release" => Self::Bare("application/json".to_owned()),
            "CSAF document or Markdown" | "OpenVEX document" => {
                Self::Bare("application/json".to_owned())
            }
            "plain text" => Self::Bare("text/plain".to_owned()),
            "Prometheus text" => Self::Bare("application/openmetrics-text".to_owned()),
            "Thing Description" => Self::Bare("application/td+json".to_owned()),
            "JSON Schema" => Self::Bare("application/schema+json".to_owned()),
            "root CA certificate in PEM" => Self::Bare("application/x-pem-file".to_owned()),
            // The health answers are the envelope, as everything that is JSON.
            "text" => Self::Object(BTreeSet::new()),
            "PageAuditLogResponse" => Self::Page,
            _ if response.starts_with("List") => Self::List,
            _ if response.starts_with("page") => Self::Page,
            _ if response.starts_with('{') => {
                let names = response
                    .trim_matches(['{', '}'])
                    .split(',')
                    .map(|name| name.trim().to_owned());
                Self::Object(names.collect())
            }
            _ => Self::Object(BTreeSet::new()),
        }
    }

    fn of(response: &'static Value) -> Self {
        let Some((media, content)) = object(&response["content"]).iter().next() else {
            return Self::Empty;
        };
        if media != "application/json" {
            return Self::Bare(media.split(';').next().unwrap_or_default().to_owned());
        }
        let Some(data) = properties(resolve(&content["schema"])).get("data").copied() else {
            return Self::Bare(media.clone());
        };
        let members: BTreeSet<String> = properties(data).into_keys().map(str::to_owned).collect();
        match data["type"].as_str() {
            Some("null") => Self::Null,
            Some("array") => Self::List,
            Some("string") => Self::Text,
            Some("object")
                if ["content", "totalElements"]
                    .iter()
                    .all(|name| members.contains(*name)) =>
            {
                Self::Page
            }
            Some("object") => Self::Object(members),
            _ if !members.is_empty() => Self::Object(members),
            _ => Self::Any,
        }
    }

    fn covers(&self, actual: &Self) -> bool {
        match (self, actual) {
            (Self::Any, _) => true,
            (Self::Object(expected), Self::Object(actual)) => expected.is_subset(actual),
            (Self::Object(expected), Self::Any) => expected.is_empty(),
            _ => self == actual,
        }
    }
}

/// The members of an object, those of the schemas it is put together from included.
fn properties(schema: &'static Value) -> BTreeMap<&'static str, &'static Value> {
    let mut found: BTreeMap<_, _> = object(&schema["properties"])
        .iter()
        .map(|(name, value)| (name.as_str(), resolve(value)))
        .collect();
    for part in schema["allOf"].as_array().into_iter().flatten() {
        found.extend(properties(resolve(part)));
    }
    found
}
