//! The headers of a definition.

use axum::http::header::AUTHORIZATION;
use axum::http::{HeaderMap, HeaderValue};
use serde_json::{Map, Value};

use crate::auth::ShownAuth;
use crate::headers::usable;
use crate::members::Problem;

const MAX_HEADERS: usize = 32;
const MAX_HEADER_VALUE: usize = 1_024;

/// Checks the headers of a tenant; also as they are shown.
pub fn check(
    value: Option<&Value>,
    auth: Option<&ShownAuth>,
) -> Result<(HeaderMap, Value), Problem> {
    let auth_header = auth.map(|auth| auth.header.as_deref().unwrap_or(AUTHORIZATION.as_str()));
    if let Some(name) = auth_header.filter(|name| *name != AUTHORIZATION.as_str()) {
        usable(name).map_err(|message| Problem::new("/auth/name", message))?;
    }
    let mut headers = HeaderMap::new();
    let mut shown = Map::new();
    let Some(value) = value else {
        return Ok((headers, shown.into()));
    };
    let given = value
        .as_object()
        .ok_or_else(|| Problem::new("/headers", "must be an object of texts"))?;
    if given.len() > MAX_HEADERS {
        return Err(Problem::new(
            "/headers",
            format!("must have {MAX_HEADERS} members at most"),
        ));
    }
    for (name, value) in given {
        let place: String = name.chars().take(100).collect();
        let problem = |message: &str| {
            Problem::new(
                format!("/headers/{}", place.replace('~', "~0").replace('/', "~1")),
                message,
            )
        };
        let checked = usable(name).map_err(|message| problem(&message))?;
        if auth_header == Some(checked.as_str()) {
            return Err(problem("is set by `auth`: give one of the two"));
        }
        let text = value.as_str().filter(|text| text.len() <= MAX_HEADER_VALUE);
        let text = text.ok_or_else(|| problem("must be a text of 1,024 bytes at most"))?;
        let is_plain = text.bytes().all(|byte| (0x20..0x7f).contains(&byte)) && text.trim() == text;
        let value = HeaderValue::from_str(text).ok().filter(|_| is_plain);
        let value =
            value.ok_or_else(|| problem("must be of ASCII characters, without line breaks"))?;
        if headers.insert(checked, value).is_some() {
            return Err(problem("is there twice"));
        }
        shown.insert(name.clone(), text.into());
    }
    Ok((headers, shown.into()))
}
