//! `hub login`, `register` and `logout`.

mod callback;
pub mod issuer;

use hub_client::{
    Client, Credential, Error, ServiceUrl, Session, SignInMethods, Tenant, operations,
};
use hub_protocol::TenantUuid;

use crate::args::{Global, LoginOptions, RegisterOptions};
use crate::connect::{as_person, service_to_log_in};
use crate::failure::Failure;
use crate::profiles::{Profile, Store, Stored};
use crate::terminal::{note, printable, secret};

pub async fn log_in(global: &Global, options: LoginOptions) -> Result<(), Failure> {
    let service = service_to_log_in(global)?;
    if options.with_api_key {
        return store_api_key(global, &service).await;
    }
    if let (Some(client_id), Some(audience)) = (&options.client_id, &options.audience) {
        let issuer = match options.issuer {
            Some(issuer) => issuer,
            None => issuer_of(&service).await?,
        };
        let session = issuer::log_in(&issuer, client_id, audience).await?;
        return finish(global, &service, Stored::Issuer(session)).await;
    }
    let Some(email) = options.email else {
        return Err(what_to_give(&service).await);
    };
    let password = secret("Password", options.password_stdin)?;
    let session =
        Session::log_in(&service, &email, &password)
            .await
            .map_err(|error| match error.code() {
                Some("BUILTIN_LOGIN_OFF") => Failure::failed(format!(
                    "{}; log in there: {WITH_BROWSER}",
                    printable(&error.to_string())
                )),
                Some("LOGIN_FAILED") => Failure::failed(format!(
                    "{}; check both, or run `hub register`",
                    printable(&error.to_string())
                )),
                _ => Failure::from(error),
            })?;
    finish(global, &service, Stored::Session(session)).await
}

const WITH_BROWSER: &str = "hub login --client-id ID --audience AUDIENCE";

async fn methods(service: &ServiceUrl) -> Result<SignInMethods, Error> {
    Client::new(service.clone(), Credential::Nobody)?
        .call(operations::SIGN_IN_METHODS.call())
        .await
}

/// The issuer at which people of the service log in.
async fn issuer_of(service: &ServiceUrl) -> Result<String, Failure> {
    let named = methods(service).await?.oidc.map(|oidc| oidc.issuer);
    named.ok_or_else(|| {
        Failure::usage(format!(
            "{service} names no issuer; give --issuer, or --email"
        ))
    })
}

/// How people log in there, for somebody who did not say it.
async fn what_to_give(service: &ServiceUrl) -> Failure {
    match methods(service).await {
        Ok(SignInMethods {
            password: false,
            oidc: Some(oidc),
        }) => {
            let issuer = printable(&oidc.issuer);
            Failure::usage(format!(
                "people of {service} log in at {issuer}: {WITH_BROWSER}; or give --api-key"
            ))
        }
        Ok(SignInMethods {
            oidc: Some(oidc), ..
        }) => {
            let issuer = printable(&oidc.issuer);
            Failure::usage(format!(
                "give --email; or log in at {issuer}: {WITH_BROWSER}; or give --api-key"
            ))
        }
        Err(error) if error.status() != Some(404) => error.into(),
        // A service that does not tell has passwords.
        Ok(SignInMethods { oidc: None, .. }) | Err(_) => {
            Failure::usage("give --email, or --api-key")
        }
    }
}

pub async fn register(global: &Global, options: &RegisterOptions) -> Result<(), Failure> {
    let service = service_to_log_in(global)?;
    let password = secret("Password (8 characters or more)", options.password_stdin)?;
    let session = Session::register(&service, &options.email, &password).await?;
    finish(global, &service, Stored::Session(session)).await
}

/// Ends the session at the service and forgets it, also if the service does not answer.
pub async fn log_out(global: &Global) -> Result<(), Failure> {
    let store = Store::open()?;
    let locked = store.lock()?;
    let mut profiles = locked.read()?;
    let Some(profile) = profiles.profiles.remove(&global.profile) else {
        note("There is no login to end.");
        return Ok(());
    };
    locked.write(&profiles)?;
    let service = ServiceUrl::parse(
        &profile.service_url,
        global.insecure_http || profile.insecure_http,
    )?;
    match profile.credential {
        Stored::Session(session) => session.log_out(&service).await.map_err(|error| {
            let advice = "the session is forgotten here, but valid until it expires at the service";
            Failure::failed(format!("{advice}: {}", Failure::from(error).message))
        })?,
        Stored::ApiKey(_) => {
            note(
                "The key is forgotten here. It stays valid: a person with the role ADMIN ends it.",
            );
            return Ok(());
        }
        Stored::Issuer(_) => {
            note("The session is forgotten here. The issuer may remember the browser.");
            return Ok(());
        }
    }
    note(&format!("You are logged out of {service}."));
    Ok(())
}

async fn store_api_key(global: &Global, service: &ServiceUrl) -> Result<(), Failure> {
    let tenant = global
        .tenant
        .as_deref()
        .and_then(|tenant| tenant.parse::<TenantUuid>().ok());
    let tenant = tenant
        .ok_or_else(|| Failure::usage("an API key acts in its own tenant: give --tenant UUID"))?;
    let key = match global.api_key.clone() {
        Some(key) => key,
        None => secret("API key", false)?,
    };
    let client = Client::new(service.clone(), Credential::ApiKey(key.clone()))?.in_tenant(tenant);
    let refused = |error: Error| match error.status() {
        Some(401) => Failure::failed(format!(
            "{}; create another key",
            printable(&error.to_string())
        )),
        _ => Failure::from(error),
    };
    client
        .run(operations::CALLER.call())
        .await
        .map_err(refused)?;
    store(global, service, Stored::ApiKey(key), Some(tenant))?;
    note(&format!(
        "The key is stored as the login `{}` at {service}.",
        printable(&global.profile)
    ));
    Ok(())
}

/// Stores a session, with the tenant that was chosen before, or the only one.
async fn finish(global: &Global, service: &ServiceUrl, credential: Stored) -> Result<(), Failure> {
    let before = Store::open()?.read()?.profiles.remove(&global.profile);
    let before = before.filter(|profile| profile.service_url == service.to_string());
    store(global, service, credential, None)?;
    // The stored login shall be used, not a key of the environment.
    let global = Global {
        api_key: None,
        service_url: None,
        ..global.clone()
    };
    let client = as_person(&global).await?;
    let tenants: Vec<Tenant> = client.list(operations::TENANTS.call()).await?;
    note(&format!("You are logged in at {service}."));
    let was_chosen = |tenant: &&Tenant| {
        before
            .as_ref()
            .is_some_and(|profile| profile.tenant_uuid == Some(tenant.tenant_uuid))
    };
    let chosen = tenants
        .iter()
        .find(was_chosen)
        .or(tenants.first().filter(|_| tenants.len() == 1));
    match (chosen, tenants.len()) {
        (Some(tenant), _) => {
            let store = Store::open()?;
            store.lock()?.change(&global.profile, |profile| {
                profile.tenant_uuid = Some(tenant.tenant_uuid)
            })?;
            note(&format!("You act in {}.", printable(&tenant.name)));
        }
        (None, 0) => note("You have no tenant yet: hub tenants create NAME"),
        (None, number) => note(&format!(
            "You have {number} tenants; choose one: hub tenants use NAME"
        )),
    }
    Ok(())
}

fn store(
    global: &Global,
    service: &ServiceUrl,
    credential: Stored,
    tenant_uuid: Option<TenantUuid>,
) -> Result<(), Failure> {
    let store = Store::open()?;
    let locked = store.lock()?;
    let mut profiles = locked.read()?;
    let insecure_http = global.insecure_http;
    let profile = Profile {
        service_url: service.to_string(),
        insecure_http,
        tenant_uuid,
        credential,
    };
    profiles.profiles.insert(global.profile.clone(), profile);
    locked.write(&profiles)
}
