//! Why a request did not reach the service, and what to do about it.

use rustls::CertificateError;

use crate::error::chain;

/// Why a request has no answer.
pub struct Unreached {
    /// The cause, without the URL.
    pub reason: String,
    /// The remedy.
    pub fix: &'static str,
}

impl Unreached {
    pub fn by(error: &reqwest::Error) -> Self {
        if let Some(rustls::Error::InvalidCertificate(reason)) = tls_error(error) {
            let (reason, fix) = refused_certificate(reason);
            return Self {
                reason: format!("its certificate is refused: {reason}"),
                fix,
            };
        }
        let text = causes(error);
        match tls_error(error) {
            // A server without TLS answers in plain HTTP, which is no TLS message.
            Some(rustls::Error::InvalidMessage(_)) => Self {
                reason: "TLS fails: what answers there does not speak TLS".to_owned(),
                fix: "check the port of service-url; if the port is for http, write the URL with http://",
            },
            Some(reason) => Self {
                reason: format!("TLS fails: {reason}"),
                fix: "check that the port is for https; old proxies in between also break TLS",
            },
            None if error.is_timeout() && !error.is_connect() => Self {
                reason: "the connection is accepted, and no answer comes".to_owned(),
                fix: "the service or a proxy in between hangs: try again, then ask its operator",
            },
            // A server that expects TLS answers a plain request with a TLS alert.
            None if text.contains("invalid HTTP version parsed") => Self {
                reason: "what answers there does not speak HTTP".to_owned(),
                fix: "check the port of service-url; if the port is for https, write the URL with https://",
            },
            None => Self {
                reason: text,
                fix: "check service-url, the network and that the service is running",
            },
        }
    }
}

/// Whether the service's certificate is refused for nothing but its beginning.
pub fn is_before_certificate(error: &reqwest::Error) -> bool {
    use CertificateError::{NotValidYet, NotValidYetContext};
    matches!(
        tls_error(error),
        Some(rustls::Error::InvalidCertificate(
            NotValidYet | NotValidYetContext { .. }
        ))
    )
}

/// The causes of an error that the HTTP client wraps in its own.
fn causes(error: &reqwest::Error) -> String {
    match std::error::Error::source(error) {
        Some(cause) => chain(cause),
        None => chain(error),
    }
}

fn refused_certificate(reason: &CertificateError) -> (String, &'static str) {
    use CertificateError as Error;
    let fix = match reason {
        Error::NotValidYet | Error::NotValidYetContext { .. } => {
            "check this machine's clock; the running agent learns the service's time by itself"
        }
        Error::Expired | Error::ExpiredContext { .. } => {
            "check this machine's clock; if it is right, the service has to renew its certificate"
        }
        Error::UnknownIssuer => {
            "update ca-certificates; set ca-file to the certificate of a private authority"
        }
        Error::NotValidForName | Error::NotValidForNameContext { .. } => {
            "use the certificate's host name in service-url"
        }
        // The verifier has no error of its own for it.
        Error::Other(other) if format!("{other:?}").contains("CaUsedAsEndEntity") => {
            let fix = "if the service's operator made it, copy it here and set ca-file to it";
            return ("it is self-signed".to_owned(), fix);
        }
        _ => {
            "the connection may be intercepted between this machine and the service: ask the service's operator"
        }
    };
    (reason.to_string(), fix)
}

/// The TLS library's error, however deep it is wrapped.
fn tls_error<'e>(error: &'e (dyn std::error::Error + 'static)) -> Option<&'e rustls::Error> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(found) = error.downcast_ref::<rustls::Error>() {
            return Some(found);
        }
        // An I/O error omits its inner error from `source`.
        let inner = error
            .downcast_ref::<std::io::Error>()
            .and_then(|error| error.get_ref());
        next = match inner {
            Some(inner) => Some(inner),
            None => error.source(),
        };
    }
    None
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpListener;

    use super::*;

    /// Why a client does not reach a server that answers everything with these bytes.
    async fn by_server(scheme: &str, answer: &'static [u8]) -> Unreached {
        crate::cloud::install_crypto();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("{scheme}://{}", listener.local_addr().unwrap());
        std::thread::spawn(move || {
            let (mut peer, _) = listener.accept().unwrap();
            let _ = peer.read(&mut [0; 4096]);
            let _ = peer.write_all(answer);
        });
        let error = reqwest::Client::builder()
            .tls_certs_only([])
            .build()
            .unwrap()
            .get(url)
            .send()
            .await
            .unwrap_err();
        Unreached::by(&error)
    }

    #[tokio::test]
    async fn http_and_https_are_told_apart() {
        let unreached = by_server("https", b"HTTP/1.1 400 Bad Request\r\n\r\n").await;
        assert!(
            unreached.fix.contains("with http://"),
            "{} {}",
            unreached.reason,
            unreached.fix
        );
        // A TLS alert: decode_error (RFC 8446, 6).
        let unreached = by_server("http", b"\x15\x03\x03\x00\x02\x02\x32").await;
        assert!(
            unreached.fix.contains("with https://"),
            "{} {}",
            unreached.reason,
            unreached.fix
        );
    }

    #[test]
    fn a_tls_error_is_found_inside_an_io_error() {
        let tls = rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer);
        let wrapped = std::io::Error::other(std::io::Error::other(tls));
        assert!(matches!(
            tls_error(&wrapped),
            Some(rustls::Error::InvalidCertificate(
                CertificateError::UnknownIssuer
            ))
        ));
        assert!(tls_error(&std::io::Error::other("x")).is_none());
    }
}
