//! From the arguments, the environment and the stored logins to a client.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use hub_client::{AccessTokens, Client, Credential, Error, ServiceUrl, Tenant, operations};
use hub_protocol::{TenantUuid, Timestamp};

use crate::args::Global;
use crate::failure::Failure;
use crate::profiles::{Profile, Store, Stored};
use crate::terminal::printable;

/// The time of this machine.
pub fn now() -> Timestamp {
    let since = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap_or_default();
    Timestamp::from_micros(i64::try_from(since.as_micros()).unwrap_or(i64::MAX))
}

/// The service that a login is for.
pub fn service_to_log_in(global: &Global) -> Result<ServiceUrl, Failure> {
    let stored = Store::open()?.read()?.profiles.remove(&global.profile);
    let url = global
        .service_url
        .clone()
        .or(stored.map(|profile| profile.service_url));
    let missing = || {
        Failure::usage(
            "give --service-url, such as https://hubs.example.com, or set HUB_SERVICE_URL",
        )
    };
    Ok(ServiceUrl::parse(
        &url.ok_or_else(missing)?,
        global.insecure_http,
    )?)
}

/// The stored login, if there is one. Its credential goes to its own service and to no other.
fn profile(global: &Global) -> Result<Option<Profile>, Failure> {
    let Some(profile) = Store::open()?.read()?.profiles.remove(&global.profile) else {
        return Ok(None);
    };
    if let Some(given) = &global.service_url {
        let given = ServiceUrl::parse(given, true)?;
        if given != ServiceUrl::parse(&profile.service_url, true)? {
            return Err(Failure::configuration(format!(
                "the login `{}` is for {}, not for {given}; run `hub login --profile NAME --service-url {given}`",
                printable(&global.profile),
                printable(&profile.service_url)
            )));
        }
    }
    Ok(Some(profile))
}

/// A client that acts in no tenant, and the tenant that the login is for.
async fn anywhere(global: &Global) -> Result<(Client, Option<TenantUuid>), Failure> {
    if let Some(key) = global.api_key.clone() {
        // The key belongs to whoever set it: it goes where the environment says, else to the
        // service of the login.
        let stored = Store::open().and_then(|store| store.read()).ok();
        let stored = stored.and_then(|mut stored| stored.profiles.remove(&global.profile));
        let url = global
            .service_url
            .clone()
            .or(stored.map(|profile| profile.service_url));
        let missing = || Failure::usage("set HUB_SERVICE_URL to the service of HUB_API_KEY");
        let service = ServiceUrl::parse(&url.ok_or_else(missing)?, global.insecure_http)?;
        return Ok((Client::new(service, Credential::ApiKey(key))?, None));
    }
    let name = &global.profile;
    let profile = profile(global)?.ok_or_else(|| {
        let named = if name == "default" {
            String::new()
        } else {
            format!(" --profile {}", printable(name))
        };
        Failure::failed(format!(
            "you are not logged in; run `hub login{named}`, or set HUB_API_KEY"
        ))
    })?;
    let service = ServiceUrl::parse(
        &profile.service_url,
        global.insecure_http || profile.insecure_http,
    )?;
    let credential = match profile.credential {
        Stored::ApiKey(key) => Credential::ApiKey(key),
        Stored::Session(_) | Stored::Issuer(_) => Credential::Person(Arc::new(StoredTokens {
            service: service.clone(),
            profile: name.clone(),
        })),
    };
    Ok((Client::new(service, credential)?, profile.tenant_uuid))
}

/// A client for what belongs to a person or to the platform.
pub async fn as_person(global: &Global) -> Result<Client, Failure> {
    Ok(anywhere(global).await?.0)
}

/// A client that acts in the tenant that was chosen.
pub async fn in_tenant(global: &Global) -> Result<Client, Failure> {
    let (client, stored) = anywhere(global).await?;
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

/// The tenant of a name or a uuid; the only one, if none is named.
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
/// command that runs beside this one has to read what this one stored.
struct StoredTokens {
    service: ServiceUrl,
    profile: String,
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
        let token = match &mut profile.credential {
            Stored::ApiKey(_) => return Err(ended()),
            Stored::Session(session) if session.is_usable(now(), refused) => {
                return Ok(session.access_token.clone());
            }
            Stored::Session(session) => {
                *session = session.refresh(&self.service).await?;
                session.access_token.clone()
            }
            Stored::Issuer(session) if session.is_usable(now(), refused) => {
                return Ok(session.access_token.clone());
            }
            Stored::Issuer(session) => {
                *session = session.refresh(now()).await?;
                session.access_token.clone()
            }
        };
        locked.write(&profiles).map_err(failed)?;
        Ok(token)
    }
}
