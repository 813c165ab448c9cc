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
    /// Who administers the platform; nobody of the issuer's people without it.
    pub administrator: Option<AdministratorClaim>,
}

/// The claim that makes a person of the issuer a platform administrator.
#[derive(Clone, Debug)]
pub struct AdministratorClaim {
    /// Its path: a text, or a list of texts.
    pub path: Vec<String>,
    /// The text that it must be, or have.
    pub value: String,
}

pub fn oidc(
    issuer: Option<String>,
    audience: Option<String>,
    client_id: Option<String>,
    client_secret: Option<String>,
    administrator_claim: Option<String>,
) -> Result<Option<OidcConfig>, ConfigError> {
    let (issuer, audience) = match (issuer, audience) {
        (Some(issuer), Some(audience)) => (issuer, audience),
        (Some(_), None) => {
            return Err(ConfigError(
                "oidc-issuer is set without oidc-audience; set both".into(),
            ));
        }
        (None, None)
            if client_id.is_none() && client_secret.is_none() && administrator_claim.is_none() =>
        {
            return Ok(None);
        }
        (None, _) => {
            let message = "oidc-audience, oidc-client-id, oidc-client-secret and oidc-administrator-claim need oidc-issuer; \
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
    let administrator = administrator_claim
        .map(|text| {
            let (path, value) = text
                .split_once('=')
                .filter(|(path, value)| !path.trim().is_empty() && !value.trim().is_empty())
                .ok_or_else(|| {
                    let message = "oidc-administrator-claim must be CLAIM=VALUE, such as roles=hub-administrators";
                    ConfigError(message.into())
                })?;
            Ok(AdministratorClaim {
                path: path.trim().split('.').map(str::to_owned).collect(),
                value: value.trim().to_owned(),
            })
        })
        .transpose()?;
    Ok(Some(OidcConfig {
        issuer,
        audience,
        client_id,
        client_secret: client_secret.map(SecretString::from),
        administrator,
    }))
}
