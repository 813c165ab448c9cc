//! Creates a client from the arguments, the environment and the stored logins.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use hub_client::{AccessTokens, Client, Credential, Error, ServiceUrl, Tenant, now, operations};
use hub_protocol::TenantUuid;

use crate::failure::Failure;
use crate::global::Global;
use crate::profiles::{Profile, Store, StoredCredential};
use crate::text::printable;

/// The service that is given, or that of the stored login.
pub fn service_of(global: &Global) -> Result<Option<ServiceUrl>, Failure> {
    let stored = Store::open()?.read()?.profiles.remove(&global.profile);
    let url = global
        .service_url
        .clone()
        .or(stored.and_then(|profile| profile.service_url));
    Ok(match url {
        Some(url) => Some(ServiceUrl::parse(&url, global.insecure_http)?),
        None => None,
    })
}

/// The service that a login is for.
pub fn service_to_log_in(global: &Global) -> Result<ServiceUrl, Failure> {
    service_of(global)?.ok_or_else(|| {
        Failure::usage(
            "give --service-url, such as https://hubs.example.com, or set HUB_SERVICE_URL",
        )
    })
}

/// The stored login. Its credential goes to its own service and to no other.
fn profile(global: &Global) -> Result<Profile, Failure> {
    let name = &global.profile;
    let stored = Store::open()?.read()?.profiles.remove(name);
    let profile = stored.ok_or_else(|| {
        let named = match name.as_str() {
            "default" => String::new(),
            name => format!(" --profile {}", printable(name)),
        };
        Failure::failed(format!(
            "you are not logged in; run `hub login{named}`, or set HUB_API_KEY"
        ))
    })?;
    if let (Some(given), Some(own)) = (&global.service_url, &profile.service_url) {
        let given = ServiceUrl::parse(given, true)?;
        if given != ServiceUrl::parse(own, true)? {
            return Err(Failure::configuration(format!(
                "the login `{}` is for {}, not for {given}; run `hub login --profile NAME --service-url {given}`",
                printable(name),
                printable(own)
            )));
        }
    }
    Ok(profile)
}

/// A client that acts in no tenant, and the tenant that the login is for.
fn client(global: &Global) -> Result<(Client, Option<TenantUuid>), Failure> {
    if let Some(key) = global.api_key.clone() {
        // The key goes to the service of the environment, else to that of the login.
        let url = match (
            &global.service_url,
            Store::open().and_then(|store| store.read()),
        ) {
            (Some(url), _) => Some(url.clone()),
            (None, Ok(mut stored)) => stored
                .profiles
                .remove(&global.profile)
                .and_then(|profile| profile.service_url),
            (None, Err(_)) => None,
        };
        let missing = || Failure::usage("set HUB_SERVICE_URL to the service of HUB_API_KEY");
        let service = ServiceUrl::parse(&url.ok_or_else(missing)?, global.insecure_http)?;
        return Ok((Client::new(service, Credential::ApiKey(key))?, None));
    }
    let profile = profile(global)?;
    let service = profile.service(global.insecure_http)?;
    let credential = match profile.credential {
        StoredCredential::ApiKey(key) => Credential::ApiKey(key),
        StoredCredential::Session(_) | StoredCredential::Issuer(_) => {
            Credential::User(Arc::new(StoredTokens {
                profile: global.profile.clone(),
                insecure_http: global.insecure_http,
            }))
        }
    };
    Ok((Client::new(service, credential)?, profile.tenant_uuid))
}

/// An access token of the stored login, refreshed if it expires soon.
pub async fn access_token(global: &Global) -> Result<String, Failure> {
    if let StoredCredential::ApiKey(_) = profile(global)?.credential {
        return Err(Failure::failed(
            "this login is an API key, which has no access token; send the key as X-API-Key",
        ));
    }
    let tokens = StoredTokens {
        profile: global.profile.clone(),
        insecure_http: global.insecure_http,
    };
    Ok(tokens.token(None).await?)
}

/// A client without a tenant: for the user's own objects, and for the platform.
pub async fn without_tenant(global: &Global) -> Result<Client, Failure> {
    Ok(client(global)?.0)
}

/// A client for the selected tenant.
pub async fn in_tenant(global: &Global) -> Result<Client, Failure> {
    let (client, stored) = client(global)?;
    let given = global.tenant.as_deref();
    let uuid = match (given.map(str::parse::<TenantUuid>), stored) {
        (Some(Ok(uuid)), _) => uuid,
        (None, Some(uuid)) => uuid,
        (given_name, _) => {
            if global.api_key.is_some() {
                return Err(Failure::usage(
                    "give the uuid of the key's tenant: --tenant UUID, or HUB_TENANT",
                ));
            }
            let tenants: Vec<Tenant> = client.list(operations::TENANTS.call()).await?;
            chosen(&tenants, given_name.and(given))?.tenant_uuid
        }
    };
    Ok(client.in_tenant(uuid))
}

/// The tenant with a name or a uuid; the only one, if none is given.
pub fn chosen<'a>(tenants: &'a [Tenant], named: Option<&str>) -> Result<&'a Tenant, Failure> {
    let is_named = |tenant: &&Tenant| {
        named.is_none_or(|name| {
            tenant.name == name || tenant.tenant_uuid.to_string() == name.to_lowercase()
        })
    };
    let mut found = tenants.iter().filter(is_named);
    match (found.next(), found.next(), named) {
        (Some(tenant), None, _) => Ok(tenant),
        (None, _, None) => Err(Failure::failed(
            "you have no tenant yet; run `hub tenants create NAME`",
        )),
        (None, _, Some(name)) => Err(Failure::failed(format!(
            "you have no tenant `{}`; run `hub tenants`",
            printable(name)
        ))),
        (Some(_), Some(_), None) => Err(Failure::usage(
            "you have several tenants; choose one with --tenant, or `hub tenants use NAME`",
        )),
        (Some(_), Some(_), Some(name)) => Err(Failure::usage(format!(
            "several of your tenants are called `{}`; give the uuid that `hub tenants` shows",
            printable(name)
        ))),
    }
}

/// The stored session, refreshed under the lock of its file: a refresh token works once, so a
/// command that runs at the same time must read the tokens that this one stores.
struct StoredTokens {
    profile: String,
    insecure_http: bool,
}

impl AccessTokens for StoredTokens {
    fn get<'a>(
        &'a self,
        refused: Option<&'a str>,
    ) -> Pin<Box<dyn Future<Output = Result<String, Error>> + Send + 'a>> {
        Box::pin(self.token(refused))
    }
}

impl StoredTokens {
    async fn token(&self, refused: Option<&str>) -> Result<String, Error> {
        let failed = |failure: Failure| Error::Configuration(failure.message);
        let store = Store::open().map_err(failed)?;
        let locked = store.lock().map_err(failed)?;
        let mut profiles = locked.read().map_err(failed)?;
        let ended = || Error::NoSession("you have logged out".to_owned());
        let profile = profiles.profiles.get_mut(&self.profile).ok_or_else(ended)?;
        let service = profile.service(self.insecure_http);
        let token = match &mut profile.credential {
            StoredCredential::ApiKey(_) => return Err(ended()),
            StoredCredential::Session(session) if session.is_usable(now(), refused) => {
                return Ok(session.access_token.clone());
            }
            StoredCredential::Session(session) => {
                *session = session.refresh(&service.map_err(failed)?).await?;
                session.access_token.clone()
            }
            StoredCredential::Issuer(session) if session.is_usable(now(), refused) => {
                return Ok(session.access_token.clone());
            }
            StoredCredential::Issuer(session) => {
                *session = session.refresh(now()).await?;
                session.access_token.clone()
            }
        };
        locked.write(&profiles).map_err(failed)?;
        Ok(token)
    }
}
