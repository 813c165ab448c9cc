//! The settings of an external issuer of user tokens.

use secrecy::SecretString;

use super::ConfigError;

/// The external issuer of user tokens.
#[derive(Clone, Debug)]
pub struct OidcConfig {
    /// Compared byte by byte with `iss`.
    pub issuer: String,
    pub audience: String,
    /// The client id for sign-in with a browser, which is off without one.
    pub client_id: Option<String>,
    /// Used by the service only.
    pub client_secret: Option<SecretString>,
    /// Path of the claim that lists roles.
    pub roles_claim: Vec<String>,
}

pub fn oidc(
    issuer: Option<String>,
    audience: Option<String>,
    client_id: Option<String>,
    client_secret: Option<String>,
    roles_claim: Option<String>,
) -> Result<Option<OidcConfig>, ConfigError> {
    let (issuer, audience) = match (issuer, audience) {
        (Some(issuer), Some(audience)) => (issuer, audience),
        (Some(_), None) => {
            return Err(ConfigError(
                "oidc-issuer is set without oidc-audience; set both".into(),
            ));
        }
        (None, None) if client_id.is_none() && client_secret.is_none() && roles_claim.is_none() => {
            return Ok(None);
        }
        (None, _) => {
            let message = "oidc-audience, oidc-client-id, oidc-client-secret and oidc-roles-claim need oidc-issuer; \
                           set it, or remove them";
            return Err(ConfigError(message.into()));
        }
    };
    if client_secret.is_some() && client_id.is_none() {
        return Err(ConfigError(
            "oidc-client-secret is set without oidc-client-id; set both".into(),
        ));
    }
    if client_secret
        .as_ref()
        .is_some_and(|secret| secret.trim().is_empty())
    {
        return Err(ConfigError(
            "oidc-client-secret is empty; set it, or remove it".into(),
        ));
    }
    // Without TLS an attacker on the path could replace the issuer's keys and forge tokens.
    let is_loopback =
        |url: &reqwest::Url| matches!(url.host_str(), Some("localhost" | "127.0.0.1" | "[::1]"));
    match reqwest::Url::parse(&issuer) {
        Ok(url) if url.scheme() == "https" || (url.scheme() == "http" && is_loopback(&url)) => {}
        _ => {
            let message = "oidc-issuer must begin with `https://` (`http://` is allowed for this machine only)";
            return Err(ConfigError(message.into()));
        }
    }
    let roles_claim = roles_claim.unwrap_or_else(|| "roles".to_owned());
    Ok(Some(OidcConfig {
        issuer,
        audience,
        client_id,
        client_secret: client_secret.map(SecretString::from),
        roles_claim: roles_claim.split('.').map(str::to_owned).collect(),
    }))
}
