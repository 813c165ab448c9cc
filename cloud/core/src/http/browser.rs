//! What only browsers need: cookies, and the proof that a request comes from a page of this
//! service. Requests with a cookie for a credential have to prove that, since browsers add cookies
//! to the requests of any page. No other endpoint reads a cookie.

use aide::OperationInput;
use aide::OperationOutput;
use aide::generate::GenContext;
use aide::openapi::{Operation, ReferenceOr, Response as ApiResponse};
use axum::extract::{FromRef, FromRequestParts};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use hub_base::error::Error;
use reqwest::Url;

use super::describe::{headers, may_fail};
use crate::Core;
use crate::config::Config;

/// The sender is a page of this service, or a program that claims to be one: no page of another
/// site can (Fetch Metadata, and `Origin` for browsers without it).
pub struct SameOrigin;

impl<S: Send + Sync> FromRequestParts<S> for SameOrigin
where
    Core: FromRef<S>,
{
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Error> {
        let core = Core::from_ref(state);
        let is_own = match parts.headers.get("sec-fetch-site") {
            Some(site) => site == "same-origin",
            None => {
                let origin = parts
                    .headers
                    .get(header::ORIGIN)
                    .and_then(|origin| origin.to_str().ok());
                origin.is_some_and(|origin| is_own_origin(&core.config, host_of(parts), origin))
            }
        };
        match is_own {
            true => Ok(Self),
            false => {
                let message = "only pages of this service may call this: send `Sec-Fetch-Site: same-origin`, \
                               or the service's own URL as `Origin`";
                Err(Error::forbidden("OTHER_ORIGIN", message))
            }
        }
    }
}

impl OperationInput for SameOrigin {
    fn operation_input(_: &mut GenContext, operation: &mut Operation) {
        may_fail(operation, &[403]);
    }
}

/// HTTP/2 names the host in the request's target.
fn host_of(parts: &Parts) -> Option<&str> {
    let host = parts
        .headers
        .get(header::HOST)
        .and_then(|host| host.to_str().ok());
    host.or_else(|| parts.uri.authority().map(|authority| authority.as_str()))
}

/// The origin is that of the public URL, or the host that the request was sent to.
fn is_own_origin(config: &Config, host: Option<&str>, origin: &str) -> bool {
    let public = config
        .public_url
        .as_deref()
        .and_then(|url| Url::parse(url).ok());
    if public.is_some_and(|url| url.origin().ascii_serialization() == origin) {
        return true;
    }
    let named = origin
        .strip_prefix("https://")
        .or_else(|| origin.strip_prefix("http://"));
    named
        .zip(host)
        .is_some_and(|(named, host)| named.eq_ignore_ascii_case(host))
}

/// A cookie that scripts cannot read. Where the service is reached over TLS, its name has the
/// prefix that makes browsers refuse it from other hosts and over plain HTTP.
#[derive(Clone, Copy, Debug)]
pub struct Cookie {
    pub name: &'static str,
    pub secure_name: &'static str,
    /// Whether links of other sites that lead here carry it.
    pub follows_links: bool,
}

impl Cookie {
    fn name(self, config: &Config) -> &'static str {
        if config.is_https() {
            self.secure_name
        } else {
            self.name
        }
    }

    /// The value that a request has.
    pub fn read(self, config: &Config, headers: &HeaderMap) -> Option<String> {
        let name = self.name(config);
        let lines = headers
            .get_all(header::COOKIE)
            .iter()
            .filter_map(|line| line.to_str().ok());
        let mut pairs = lines
            .flat_map(|line| line.split(';'))
            .filter_map(|pair| pair.trim().split_once('='));
        pairs
            .find(|(other, value)| *other == name && !value.is_empty())
            .map(|(_, value)| value.to_owned())
    }

    /// Has the browser keep the value, which has no special characters, for so long.
    pub fn set(self, config: &Config, value: &str, max_age_secs: i64) -> HeaderValue {
        let same_site = if self.follows_links { "Lax" } else { "Strict" };
        let secure = if config.is_https() { "; Secure" } else { "" };
        let name = self.name(config);
        let text = format!(
            "{name}={value}; Path=/; Max-Age={max_age_secs}; HttpOnly; SameSite={same_site}{secure}"
        );
        HeaderValue::try_from(text).unwrap_or_else(|_| HeaderValue::from_static(""))
    }

    /// Has the browser forget it.
    pub fn clear(self, config: &Config) -> HeaderValue {
        self.set(config, "", 0)
    }
}

/// A response that sets cookies.
pub struct WithCookies<T> {
    pub answer: T,
    pub cookies: Vec<HeaderValue>,
}

impl<T: IntoResponse> IntoResponse for WithCookies<T> {
    fn into_response(self) -> Response {
        let mut response = self.answer.into_response();
        for cookie in self.cookies {
            response.headers_mut().append(header::SET_COOKIE, cookie);
        }
        response
    }
}

impl<T: OperationOutput> OperationOutput for WithCookies<T> {
    type Inner = T::Inner;
    fn inferred_responses(
        ctx: &mut GenContext,
        operation: &mut Operation,
    ) -> Vec<(Option<u16>, ApiResponse)> {
        let mut responses = T::inferred_responses(ctx, operation);
        for (_, response) in &mut responses {
            let described: Vec<(String, ReferenceOr<_>)> = headers(&["Set-Cookie"]);
            response.headers.extend(described);
        }
        responses
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Settings;

    fn config(public_url: Option<&str>) -> Config {
        let settings = Settings {
            public_url: public_url.map(str::to_owned),
            ..Settings::default()
        };
        Config::load(settings, None).expect("a configuration")
    }

    #[test]
    fn own_origins_are_the_public_url_and_the_host_asked() {
        let behind_a_proxy = config(Some("https://hubs.example.com/"));
        let local = config(None);
        for (config, host, origin, is_own) in [
            (
                &behind_a_proxy,
                Some("10.0.0.7:8080"),
                "https://hubs.example.com",
                true,
            ),
            (
                &behind_a_proxy,
                Some("10.0.0.7:8080"),
                "http://hubs.example.com",
                false,
            ),
            (
                &behind_a_proxy,
                Some("10.0.0.7:8080"),
                "https://hubs.example.com.evil.example",
                false,
            ),
            (
                &behind_a_proxy,
                Some("10.0.0.7:8080"),
                "https://evil.example",
                false,
            ),
            (
                &local,
                Some("127.0.0.1:8080"),
                "http://127.0.0.1:8080",
                true,
            ),
            (
                &local,
                Some("127.0.0.1:8080"),
                "http://127.0.0.1:8081",
                false,
            ),
            (&local, Some("127.0.0.1:8080"), "null", false),
            (&local, Some(""), "", false),
            (&local, None, "http://127.0.0.1:8080", false),
        ] {
            assert_eq!(
                is_own_origin(config, host, origin),
                is_own,
                "{host:?} {origin}"
            );
        }
    }

    #[test]
    fn cookies_are_read_by_their_whole_name() {
        let cookie = Cookie {
            name: "session",
            secure_name: "__Host-session",
            follows_links: false,
        };
        let of = |lines: &[&'static str]| {
            let mut headers = HeaderMap::new();
            for line in lines {
                headers.append(header::COOKIE, HeaderValue::from_static(line));
            }
            (
                cookie.read(&config(None), &headers),
                cookie.read(&config(Some("https://a.example")), &headers),
            )
        };
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(of(&["session=a; __Host-session=b"]), (some("a"), some("b")));
        assert_eq!(
            of(&["x=1", "__Host-session=b"]),
            (None, some("b")),
            "HTTP/2 sends several lines"
        );
        assert_eq!(of(&["session=; mysession=a; session"]), (None, None));
        assert_eq!(
            cookie.set(&config(Some("https://a.example")), "v", 60),
            "__Host-session=v; Path=/; Max-Age=60; HttpOnly; SameSite=Strict; Secure"
        );
        assert_eq!(
            cookie.clear(&config(None)),
            "session=; Path=/; Max-Age=0; HttpOnly; SameSite=Strict"
        );
    }
}
