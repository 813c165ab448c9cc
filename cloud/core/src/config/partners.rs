//! The settings of systems beside the service: `billing-url`, `billing-token`,
//! `vulnerability-mirror`, `partner-projects-secret`.

use axum::http::HeaderValue;
use reqwest::Url;
use secrecy::SecretString;

use super::ConfigError;

/// Shorter secrets can be guessed.
const MIN_SECRET_BYTES: usize = 16;
const MAX_SECRET_BYTES: usize = 4_096;

/// The billing service.
#[derive(Clone, Debug)]
pub struct BillingConfig {
    /// The base URL, to which paths are appended; it ends without a slash.
    pub url: String,
    /// The bearer token.
    pub token: Option<SecretString>,
}

// The URL is not repeated: somebody may have put a password into it.

pub fn billing(
    url: Option<String>,
    token: Option<String>,
) -> Result<Option<BillingConfig>, ConfigError> {
    let Some(text) = url else {
        return match token {
            None => Ok(None),
            Some(_) => Err(ConfigError(
                "billing-token is set without billing-url; set both, or only the URL".into(),
            )),
        };
    };
    let refused = |reason: &str| ConfigError(format!("billing-url {reason}"));
    let form = "must be a URL such as `https://billing.example.com`";
    let url = Url::parse(&text)
        .ok()
        .filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
    let url = url.ok_or_else(|| refused(form))?;
    if !url.username().is_empty()
        || url.password().is_some()
        || url.query().is_some()
        || url.fragment().is_some()
    {
        return Err(refused(
            "must have no user, password, query or fragment; the token is billing-token",
        ));
    }
    let is_loopback = matches!(url.host_str(), Some("localhost" | "127.0.0.1" | "[::1]"));
    if token.is_some() && url.scheme() == "http" && !is_loopback {
        return Err(refused(
            "would send billing-token unencrypted; use `https://`",
        ));
    }
    if token
        .as_ref()
        .is_some_and(|token| token.trim().is_empty() || HeaderValue::from_str(token).is_err())
    {
        return Err(ConfigError("billing-token must be one line of text".into()));
    }
    let url = url.as_str().trim_end_matches('/').to_owned();
    Ok(Some(BillingConfig {
        url,
        token: token.map(SecretString::from),
    }))
}

/// The base URL of the mirror; it ends without a slash.
pub fn vulnerability_mirror(url: Option<String>) -> Result<Option<String>, ConfigError> {
    let Some(text) = url else {
        return Ok(None);
    };
    let url = Url::parse(&text).ok().filter(|url| {
        let is_plain = url.username().is_empty() && url.password().is_none();
        let has_nothing_else = url.query().is_none() && url.fragment().is_none();
        let is_web = matches!(url.scheme(), "http" | "https") && url.has_host();
        is_web && is_plain && has_nothing_else
    });
    let url = url.ok_or_else(|| {
        ConfigError(
            "vulnerability-mirror must be a URL such as `https://mirror.example.com/osv`, without \
             user, password, query or fragment"
                .into(),
        )
    })?;
    Ok(Some(url.as_str().trim_end_matches('/').to_owned()))
}

pub fn partner_projects_secret(
    secret: Option<String>,
) -> Result<Option<SecretString>, ConfigError> {
    match secret {
        Some(secret) if !(MIN_SECRET_BYTES..=MAX_SECRET_BYTES).contains(&secret.len()) => {
            let message = format!(
                "partner-projects-secret must have {MIN_SECRET_BYTES} to {MAX_SECRET_BYTES} bytes"
            );
            Err(ConfigError(message))
        }
        secret => Ok(secret.map(SecretString::from)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn url_of_billing_is_kept_without_its_last_slash() {
        for (url, token, expected) in [
            (
                "https://billing.example.com",
                Some("t"),
                "https://billing.example.com",
            ),
            (
                "https://billing.example.com/v2/",
                None,
                "https://billing.example.com/v2",
            ),
            ("http://127.0.0.1:81/", Some("t"), "http://127.0.0.1:81"),
            ("http://billing.internal", None, "http://billing.internal"),
        ] {
            let config = billing(Some(url.to_owned()), token.map(str::to_owned))
                .expect(url)
                .expect("both");
            assert_eq!(
                (config.url.as_str(), config.token.is_some()),
                (expected, token.is_some())
            );
        }
        assert!(billing(None, None).expect("none").is_none());
    }
}
