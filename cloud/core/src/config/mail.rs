//! The settings `smtp-url` and `mail-from`.

use std::net::IpAddr;

use lettre::message::Mailbox;
use percent_encoding::percent_decode_str;
use secrecy::SecretString;

use super::ConfigError;

/// The mail server and sender.
#[derive(Clone, Debug)]
pub struct MailConfig {
    pub host: String,
    pub port: u16,
    pub encryption: Encryption,
    /// User name and password.
    pub credentials: Option<(String, SecretString)>,
    pub from: Mailbox,
}

/// Encryption of the connection to the mail server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encryption {
    /// TLS from the first byte.
    Wrapped,
    /// STARTTLS required.
    StartTls,
    /// STARTTLS if the server offers it.
    IfOffered,
    None,
}

pub fn mail(
    smtp_url: Option<String>,
    from: Option<String>,
) -> Result<Option<MailConfig>, ConfigError> {
    let (smtp_url, from) = match (smtp_url, from) {
        (Some(smtp_url), Some(from)) => (smtp_url, from),
        (None, None) => return Ok(None),
        (Some(_), None) => {
            return Err(ConfigError(
                "smtp-url is set without mail-from; set both or neither".into(),
            ));
        }
        (None, Some(_)) => {
            return Err(ConfigError(
                "mail-from is set without smtp-url; set both or neither".into(),
            ));
        }
    };
    let from = from.parse::<Mailbox>().map_err(|_| {
        ConfigError(
            "mail-from must be an address such as `hubs@example.com` or `Hubs <hubs@example.com>`"
                .into(),
        )
    })?;
    // The URL may contain a password, so no message repeats it.
    let refused = |reason: &str| ConfigError(format!("smtp-url {reason}"));
    let url = reqwest::Url::parse(&smtp_url).map_err(|_| {
        refused("must be a URL such as `smtp://USER:PASSWORD@HOST:587?tls=required`")
    })?;
    let query: Vec<(String, String)> = url
        .query_pairs()
        .map(|(name, value)| (name.into_owned(), value.into_owned()))
        .collect();
    let query: Vec<(&str, &str)> = query
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .collect();
    let (encryption, default_port) = match (url.scheme(), query.as_slice()) {
        ("smtps", []) => (Encryption::Wrapped, 465),
        ("smtp", [("tls", "required")]) => (Encryption::StartTls, 587),
        ("smtp", [("tls", "opportunistic")]) => (Encryption::IfOffered, 587),
        ("smtp", []) => (Encryption::None, 25),
        ("smtp", _) => {
            return Err(refused(
                "may have no query but `?tls=required` or `?tls=opportunistic`",
            ));
        }
        ("smtps", _) => {
            return Err(refused("may have no query: `smtps://` is always encrypted"));
        }
        _ => return Err(refused("must begin with `smtp://` or `smtps://`")),
    };
    // Sockets and certificates use an IPv6 address without brackets.
    let host = url
        .host_str()
        .map(|host| host.trim_matches(['[', ']']).to_owned())
        .filter(|host| !host.is_empty());
    let host = host.ok_or_else(|| refused("must name a host"))?;
    let port = url.port().unwrap_or(default_port);
    if port == 0 || !matches!(url.path(), "" | "/") || url.fragment().is_some() {
        return Err(refused(
            "must have the form `smtp://USER:PASSWORD@HOST:PORT?tls=required`",
        ));
    }
    let decoded = |text: &str| {
        let text = percent_decode_str(text)
            .decode_utf8()
            .map(|text| text.into_owned());
        text.map_err(|_| refused("must have user and password in UTF-8, percent-encoded"))
    };
    let credentials = match (url.username(), url.password()) {
        ("", None) => None,
        (name, Some(password)) if !name.is_empty() => {
            Some((decoded(name)?, SecretString::from(decoded(password)?)))
        }
        _ => return Err(refused("must have both a user and a password, or neither")),
    };
    let is_loopback = host == "localhost"
        || host
            .parse::<IpAddr>()
            .is_ok_and(|address| address.is_loopback());
    if credentials.is_some()
        && matches!(encryption, Encryption::None | Encryption::IfOffered)
        && !is_loopback
    {
        return Err(refused(
            "would send its password unencrypted; add `?tls=required` or use `smtps://`",
        ));
    }
    Ok(Some(MailConfig {
        host,
        port,
        encryption,
        credentials,
        from,
    }))
}

#[cfg(test)]
mod tests {
    use secrecy::ExposeSecret;

    use super::*;
    use crate::config::{Config, Settings};

    #[test]
    fn smtp_url_yields_host_port_encryption_and_credentials() {
        let mail = |url: &str| {
            let (smtp_url, mail_from) = (
                Some(url.to_owned()),
                Some("Hubs <hubs@example.com>".to_owned()),
            );
            let settings = Settings {
                smtp_url,
                mail_from,
                ..Settings::default()
            };
            Config::load(settings, None).expect(url).mail.expect("mail")
        };
        for (url, host, port, encryption) in [
            ("smtp://localhost", "localhost", 25, Encryption::None),
            (
                "smtp://relay.internal:2525/",
                "relay.internal",
                2525,
                Encryption::None,
            ),
            (
                "smtp://mail.example.com?tls=required",
                "mail.example.com",
                587,
                Encryption::StartTls,
            ),
            (
                "smtp://mail.example.com:25?tls=opportunistic",
                "mail.example.com",
                25,
                Encryption::IfOffered,
            ),
            (
                "smtps://[2001:db8::1]",
                "2001:db8::1",
                465,
                Encryption::Wrapped,
            ),
        ] {
            let mail = mail(url);
            assert_eq!(
                (mail.host.as_str(), mail.port, mail.encryption),
                (host, port, encryption),
                "{url}"
            );
            assert!(mail.credentials.is_none());
        }
        let (name, password) = mail("smtps://ada%40example.com:p%3A+%25@mail.example.com")
            .credentials
            .expect("both");
        assert_eq!(
            (name.as_str(), password.expose_secret()),
            ("ada@example.com", "p:+%")
        );
    }
}
