//! Completes what responses have in common: failures that follow from access and path, and headers.

use hub_core::http::describe::{FAILURES, Failure, HEADERS};
use serde_json::{Map, Value, json};

use super::schemas::operations;

/// The headers of every response.
const COMMON: [&str; 2] = ["X-Request-Id", "Cache-Control"];

/// Adds what no handler states: the failures that follow from access and path, and the headers of
/// every response.
pub fn complete(document: &mut Value) {
    for (path, operation) in operations(document) {
        let has_body = operation.get("requestBody").is_some();
        let access = operation["x-access"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        let responses = &mut operation["responses"];
        for (_, response) in responses.as_object_mut().into_iter().flatten() {
            if response.get("$ref").is_none() {
                add_headers(response, &COMMON);
            }
        }
        for status in implied(path, &access, has_body) {
            if let Some(failure) = FAILURES.iter().find(|failure| failure.status == status) {
                responses[status.to_string()] =
                    json!({"$ref": format!("#/components/responses/{}", failure.name)});
            }
        }
        if let Some(responses) = responses.as_object_mut() {
            responses.sort_keys();
        }
        if access == "public" {
            operation["security"] = json!([]);
        }
    }
    let components = &mut document["components"];
    components["responses"] = FAILURES.iter().map(described).collect::<Map<_, _>>().into();
    components["headers"] = HEADERS
        .iter()
        .map(|(name, kind, description)| {
            (
                (*name).to_owned(),
                json!({"description": description, "schema": {"type": kind}}),
            )
        })
        .collect::<Map<_, _>>()
        .into();
}

/// The statuses that follow from the access, the path and the body of an operation.
fn implied(path: &str, access: &str, has_body: bool) -> Vec<u16> {
    let has_parameters = path.contains('{');
    let mut statuses = match access.split(':').next().unwrap_or_default() {
        // `X-Tenant-UUID` may be malformed; an API key has a limit.
        "tenant" => vec![400, 401, 403, 429],
        // Under `/tenant` an API key is recognised and refused.
        "user" if path.starts_with("/tenant/") => vec![401, 403, 429],
        // A second factor may be required of the person.
        "user" | "app" => vec![401, 403],
        "platform" => vec![401, 403],
        "hub" if path.contains("{hubUuid}") => vec![401, 403],
        "hub" | "hmac" | "mandate" => vec![401],
        _ => Vec::new(),
    };
    // A hub that names another hub is refused with 403.
    if has_parameters && access != "hub" {
        statuses.push(404);
    }
    // Every request may have a malformed head.
    statuses.extend([400, 500, 503]);
    // A request with a body may find the disk full.
    if has_body {
        statuses.push(507);
    }
    statuses
}

fn described(failure: &Failure) -> (String, Value) {
    let schema = json!({"$ref": "#/components/schemas/Problem"});
    let mut response = json!({
        "description": failure.description,
        "content": {"application/json": {"schema": schema}},
    });
    add_headers(&mut response, &COMMON);
    add_headers(&mut response, failure.headers);
    (failure.name.to_owned(), response)
}

fn add_headers(response: &mut Value, names: &[&str]) {
    let headers = &mut response["headers"];
    for name in names {
        headers[*name] = json!({"$ref": format!("#/components/headers/{name}")});
    }
}
