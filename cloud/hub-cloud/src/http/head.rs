//! What the head of every request has to be: of a bounded size, for one host, and without two
//! values where only one can count. A proxy and the service could otherwise choose different ones.

use axum::extract::Request;
use axum::http::uri::Authority;
use axum::http::{HeaderValue, StatusCode, Version, header};
use hub_base::error::{Error, Result};

/// hyper itself reads at most 100 headers and 64 KiB, and answers more with 431 and no body.
const MAX_HEADERS: usize = 64;
const MAX_HEAD_BYTES: usize = 48 * 1024;

/// Headers that have one value. A reader of credentials refuses a second one with 401.
const SINGLE: [&str; 7] = [
    "Content-Encoding",
    "Content-Length",
    "Content-Type",
    "Idempotency-Key",
    "Last-Event-ID",
    "X-Request-Id",
    "X-Tenant-UUID",
];

pub fn check(request: &Request) -> Result<()> {
    let headers = request.headers();
    let target = request
        .uri()
        .path_and_query()
        .map_or(0, |target| target.as_str().len());
    let bytes = headers
        .iter()
        .map(|(name, value)| name.as_str().len() + value.len())
        .sum::<usize>()
        + target;
    if headers.len() > MAX_HEADERS || bytes > MAX_HEAD_BYTES {
        return Err(Error::new(
            StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
            "HEAD_TOO_LARGE",
            format!(
                "a request may have at most {MAX_HEADERS} headers, and {} KiB of them",
                MAX_HEAD_BYTES / 1024
            ),
        ));
    }
    if headers.len() > headers.keys_len() {
        for name in SINGLE {
            let mut values = headers.get_all(name).iter();
            let first = values.next();
            if values.any(|value| Some(value) != first) {
                return Err(Error::field(name, "has two values; send one"));
            }
        }
    }
    check_host(request)
}

fn check_host(request: &Request) -> Result<()> {
    let mut hosts = request.headers().get_all(header::HOST).iter();
    match (hosts.next(), hosts.next()) {
        (Some(_), Some(_)) => Err(Error::field("Host", "is given more than once")),
        (Some(host), None) if !is_host(host) => Err(Error::field(
            "Host",
            "must be a name or an address, and a port if it is not the usual one",
        )),
        // HTTP/2 names the host in the request's target, and HTTP/1.0 need not name one.
        (None, _) if request.version() == Version::HTTP_11 => {
            Err(Error::field("Host", "is missing; HTTP/1.1 requires it"))
        }
        _ => Ok(()),
    }
}

fn is_host(value: &HeaderValue) -> bool {
    let Some(authority) = value
        .to_str()
        .ok()
        .and_then(|text| text.parse::<Authority>().ok())
    else {
        return false;
    };
    let Some(port) = authority.as_str().strip_prefix(authority.host()) else {
        return false;
    };
    // A proxy joins several values with a comma.
    !authority.host().is_empty()
        && !authority.host().contains(',')
        && (port.is_empty() || authority.port_u16().is_some())
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use axum::http::request::Builder;

    use super::*;

    fn refused(build: impl FnOnce(Builder) -> Builder) -> Option<u16> {
        let request = build(Request::builder())
            .body(Body::empty())
            .expect("a request");
        check(&request).err().map(|error| error.status().as_u16())
    }

    #[test]
    fn one_host_is_required() {
        for host in [
            "a",
            "hubs.example:8443",
            "127.0.0.1:80",
            "[::1]",
            "[::1]:8080",
        ] {
            assert_eq!(
                refused(|request| request.header("host", host)),
                None,
                "{host}"
            );
        }
        for host in [
            "", " ", "a b", "a:b", "a:99999", "user@a", "http://a", "a/b", "a,b", "[::1",
        ] {
            assert_eq!(
                refused(|request| request.header("host", host)),
                Some(400),
                "{host}"
            );
        }
        assert_eq!(
            refused(|request| request.header("host", "a").header("host", "a")),
            Some(400)
        );
        assert_eq!(refused(|request| request), Some(400));
        assert_eq!(refused(|request| request.version(Version::HTTP_10)), None);
        assert_eq!(
            refused(|request| request.version(Version::HTTP_2).uri("https://a/")),
            None
        );
    }

    #[test]
    fn a_single_header_has_one_value() {
        let twice = |name, first, second| {
            refused(|request| {
                request
                    .header("host", "a")
                    .header(name, first)
                    .header(name, second)
            })
        };
        for name in SINGLE {
            assert_eq!(twice(name, "1", "2"), Some(400), "{name}");
            assert_eq!(twice(name, "1", "1"), None, "{name}");
        }
        assert_eq!(twice("accept", "1", "2"), None);
    }

    #[test]
    fn a_head_has_a_largest_size() {
        let many = |count: usize| {
            refused(|request| {
                (0..count).fold(request.header("host", "a"), |request, number| {
                    request.header(format!("x-{number}"), "")
                })
            })
        };
        assert_eq!(
            (many(MAX_HEADERS - 1), many(MAX_HEADERS)),
            (None, Some(431))
        );
        let large =
            |bytes| refused(|request| request.header("host", "a").header("x", "y".repeat(bytes)));
        assert_eq!(
            (large(MAX_HEAD_BYTES - 100), large(MAX_HEAD_BYTES)),
            (None, Some(431))
        );
    }
}
