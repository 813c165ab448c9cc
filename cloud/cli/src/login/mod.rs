//! `hub login`, `token`, `register` and `logout`.

pub mod args;
mod browser;
mod callback;

use std::io::IsTerminal;

use hub_client::{
    Client, Credential, Error, ServiceUrl, Session, SignInMethods, Tenant, operations,
};
use hub_protocol::TenantUuid;
use serde_json::json;

use crate::connect::{access_token, service_of, service_to_log_in, without_tenant};
use crate::failure::Failure;
use crate::global::Global;
use crate::issuer::LoginRequest;
use crate::profiles::{Profile, Store, StoredCredential};
use crate::terminal::{note, print, print_json, secret};
use crate::text::printable;
use args::{LoginOptions, RegisterOptions};

pub async fn log_in(global: &Global, options: LoginOptions) -> Result<(), Failure> {
    if let (Some(client_id), Some(audience)) = (options.client_id, options.audience) {
        let login = LoginRequest {
            client_id,
            audience,
            scope: options.scope,
        };
        return log_in_at_issuer(global, &login, options.issuer).await;
    }
    let service = service_to_log_in(global)?;
    if options.with_api_key {
        return store_api_key(global, &service).await;
    }
    let Some(email) = options.email else {
        return Err(missing_options(&service).await);
    };
    let password = secret("Password", options.password_stdin)?;
    let mut logged_in = Session::log_in(&service, &email, &password, options.otp.as_deref()).await;
    if let Err(error) = &logged_in
        && error.code() == Some("OTP_REQUIRED")
        && std::io::stdin().is_terminal()
    {
        let otp = secret("Code of the authenticator app", false)?;
        logged_in = Session::log_in(&service, &email, &password, Some(&otp)).await;
    }
    let session = logged_in.map_err(|error| match error.code() {
        Some("BUILTIN_LOGIN_OFF") => Failure::failed(format!(
            "{}; log in there: {WITH_BROWSER}",
            printable(&error.to_string())
        )),
        Some("LOGIN_FAILED") => Failure::failed(format!(
            "{}; check both, or run `hub register`",
            printable(&error.to_string())
        )),
        Some("OTP_REQUIRED") => Failure::failed(
            "this account has a second factor; give a code of the authenticator app with --otp",
        ),
        _ => Failure::from(error),
    })?;
    finish(global, &service, StoredCredential::Session(session)).await
}

/// Logs in with a browser. Where the issuer is given, no service is needed.
async fn log_in_at_issuer(
    global: &Global,
    login: &LoginRequest,
    issuer: Option<String>,
) -> Result<(), Failure> {
    let (service, issuer) = match issuer {
        Some(issuer) => (service_of(global)?, issuer),
        None => {
            let service = service_to_log_in(global)?;
            let issuer = issuer_of(&service).await?;
            (Some(service), issuer)
        }
    };
    let session = browser::log_in(&issuer, login).await?;
    if !session.can_be_refreshed() {
        note(
            "The issuer sent no refresh token: log in again after the token expired, or add the \
             scope offline_access.",
        );
    }
    let credential = StoredCredential::Issuer(session);
    match service {
        Some(service) => finish(global, &service, credential).await,
        None => {
            store(global, None, credential, None)?;
            note(&format!(
                "You are logged in at {}; `hub token` prints an access token.",
                printable(&issuer)
            ));
            Ok(())
        }
    }
}

/// Prints an access token for other programs.
pub async fn print_token(global: &Global) -> Result<(), Failure> {
    let token = access_token(global).await?;
    match global.json {
        true => print_json(&json!({"accessToken": token})),
        false => print(&format!("{token}\n")),
    }
}

const WITH_BROWSER: &str = "hub login --client-id ID --audience AUDIENCE";

async fn methods(service: &ServiceUrl) -> Result<SignInMethods, Error> {
    Client::new(service.clone(), Credential::Anonymous)?
        .call(operations::SIGN_IN_METHODS.call())
        .await
}

/// The issuer at which users of the service log in.
async fn issuer_of(service: &ServiceUrl) -> Result<String, Failure> {
    let named = methods(service).await?.oidc.map(|oidc| oidc.issuer);
    named.ok_or_else(|| Failure::usage(format!("{service} has no issuer; use --issuer or --email")))
}

/// The failure of a login without options: names those that the service supports.
async fn missing_options(service: &ServiceUrl) -> Failure {
    match methods(service).await {
        Ok(SignInMethods {
            password: false,
            oidc: Some(oidc),
        }) => {
            let issuer = printable(&oidc.issuer);
            Failure::usage(format!(
                "users of {service} log in at {issuer}: {WITH_BROWSER}; or give --api-key"
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
        // A service without this operation has passwords only.
        Ok(SignInMethods { oidc: None, .. }) | Err(_) => {
            Failure::usage("give --email, or --api-key")
        }
    }
}

pub async fn register(global: &Global, options: &RegisterOptions) -> Result<(), Failure> {
    let service = service_to_log_in(global)?;
    let password = secret("Password (8 characters or more)", options.password_stdin)?;
    let session = Session::register(&service, &options.email, &password).await?;
    finish(global, &service, StoredCredential::Session(session)).await
}

/// Ends the session at the service and removes it, even if the service does not respond.
pub async fn log_out(global: &Global) -> Result<(), Failure> {
    let store = Store::open()?;
    let locked = store.lock()?;
    let mut profiles = locked.read()?;
    let Some(profile) = profiles.profiles.remove(&global.profile) else {
        note("You are not logged in.");
        return Ok(());
    };
    locked.write(&profiles)?;
    match &profile.credential {
        StoredCredential::Session(session) => {
            let service = profile.service(global.insecure_http)?;
            session.log_out(&service).await.map_err(|error| {
                let advice =
                    "the session was removed here, but stays valid at the service until it expires";
                Failure::failed(format!("{advice}: {}", Failure::from(error).message))
            })?;
            note(&format!("You are logged out of {service}."));
        }
        StoredCredential::ApiKey(_) => note(
            "The key was removed here. It stays valid until a member with the role ADMIN revokes \
             it.",
        ),
        StoredCredential::Issuer(_) => {
            note("The session was removed here. The browser may still be logged in at the issuer.");
        }
    }
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
    store(
        global,
        Some(service),
        StoredCredential::ApiKey(key),
        Some(tenant),
    )?;
    note(&format!(
        "The key is stored as the login `{}` at {service}.",
        printable(&global.profile)
    ));
    Ok(())
}

/// Stores a session, with the tenant that was selected before, or the only one.
async fn finish(
    global: &Global,
    service: &ServiceUrl,
    credential: StoredCredential,
) -> Result<(), Failure> {
    let before = Store::open()?.read()?.profiles.remove(&global.profile);
    let before = before.filter(|profile| profile.service_url == Some(service.to_string()));
    store(global, Some(service), credential, None)?;
    // The stored login is used here, not a key of the environment.
    let global = Global {
        api_key: None,
        service_url: None,
        ..global.clone()
    };
    let client = without_tenant(&global).await?;
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
            note(&format!("Using tenant {}.", printable(&tenant.name)));
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
    service: Option<&ServiceUrl>,
    credential: StoredCredential,
    tenant_uuid: Option<TenantUuid>,
) -> Result<(), Failure> {
    let store = Store::open()?;
    let locked = store.lock()?;
    let mut profiles = locked.read()?;
    let insecure_http = global.insecure_http;
    let profile = Profile {
        service_url: service.map(ToString::to_string),
        insecure_http,
        tenant_uuid,
        credential,
    };
    profiles.profiles.insert(global.profile.clone(), profile);
    locked.write(&profiles)
}
