//! The address of a service.

use std::net::IpAddr;

use reqwest::Url;

use crate::Error;

/// A URL that credentials may be sent to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceUrl {
    url: Url,
    is_loopback: bool,
}

impl ServiceUrl {
    /// Plain HTTP is accepted for this machine only, unless the caller accepts that others can read
    /// the credentials.
    pub fn parse(text: &str, accepts_plain_http: bool) -> Result<Self, Error> {
        let wrong =
            |problem: &str| Error::Configuration(format!("the service URL `{text}` {problem}"));
        let mut url = Url::parse(text.trim())
            .map_err(|_| wrong("is no URL; give one such as https://hubs.example.com"))?;
        let is_loopback = is_loopback(&url);
        match url.scheme() {
            "https" => {}
            "http" if is_loopback || accepts_plain_http => {}
            "http" => {
                return Err(wrong(
                    "would send credentials unencrypted; use https://, or accept it with --insecure-http",
                ));
            }
            _ => return Err(wrong("must begin with https://")),
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(wrong("must not have a user name or a password"));
        }
        if url.query().is_some() || url.fragment().is_some() {
            return Err(wrong("must end with its path"));
        }
        let path = url.path().trim_end_matches('/').to_owned();
        url.set_path(&path);
        Ok(Self { url, is_loopback })
    }

    /// The address of a service on this machine, which may listen at any of its addresses.
    pub fn on_this_machine(text: &str) -> Result<Self, Error> {
        Ok(Self {
            is_loopback: true,
            ..Self::parse(text, true)?
        })
    }

    pub fn is_loopback(&self) -> bool {
        self.is_loopback
    }

    /// The URL of a path that begins with a slash.
    pub fn join(&self, path: &str) -> Url {
        let mut url = self.url.clone();
        url.set_path(&format!("{}{path}", self.url.path().trim_end_matches('/')));
        url
    }

    /// A URL from the service: absolute, or a path.
    pub fn resolve(&self, given: &str) -> Option<Url> {
        match given.strip_prefix('/') {
            Some(rest) => Url::parse(&format!("{self}/{rest}")).ok(),
            None => Url::parse(given).ok(),
        }
    }
}

/// Whether a URL points to this machine.
pub fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    host == "localhost"
        || host
            .parse()
            .is_ok_and(|address: IpAddr| address.is_loopback())
}

impl std::fmt::Display for ServiceUrl {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.url.as_str().trim_end_matches('/'))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_http_is_for_this_machine() {
        for text in [
            "http://127.0.0.1:8080",
            "http://localhost",
            "http://[::1]:80/",
            "https://a.example/base/",
        ] {
            assert!(ServiceUrl::parse(text, false).is_ok(), "{text}");
        }
        for text in [
            "http://hubs.example.com",
            "http://127.0.0.1.example.com",
            "http://10.0.0.1",
        ] {
            assert!(ServiceUrl::parse(text, false).is_err(), "{text}");
            assert!(ServiceUrl::parse(text, true).is_ok(), "{text}");
        }
        for text in [
            "ftp://a",
            "hubs.example.com",
            "https://me:secret@a.example",
            "https://a.example/?x=1",
        ] {
            assert!(ServiceUrl::parse(text, true).is_err(), "{text}");
        }
    }

    #[test]
    fn paths_are_appended() {
        let url = ServiceUrl::parse("https://a.example/base/", false).expect("a URL");
        assert_eq!(url.to_string(), "https://a.example/base");
        assert_eq!(
            url.join("/tenant/hubs").as_str(),
            "https://a.example/base/tenant/hubs"
        );
    }
}
