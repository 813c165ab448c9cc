//! The extractors that decide who may call: a handler's signature carries one of them, or one of `authn`'s. Each writes itself into the API
//! description, which is what the contract tests read.

use std::convert::Infallible;
use std::marker::PhantomData;
use std::sync::Arc;

use aide::OperationInput;
use aide::generate::GenContext;
use aide::openapi::{Operation, ReferenceOr, SecurityRequirement};
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use hub_protocol::{PersonaUuid, TenantUuid};

use super::permission::{KeyAccess, Permission, Role};
use super::scope::Scope;
use crate::app::App;
use crate::authn::api_key::{self, ApiKey};
use crate::authn::hub::{EnrollingHub, Hub, RefreshingHub, UploadingHub};
use crate::authn::user::{self, User};
use crate::error::{Error, Result};
use crate::http::extract::path_parameter;

pub const TENANT_HEADER: &str = "x-tenant-uuid";

/// A member of the tenant that the request names, whose role grants `P`, or an API key of the tenant with the scope for `P`. The tenant is the
/// `{tenantUuid}` of the path, which `X-Tenant-UUID` may repeat but not contradict; where the path has none, the header alone names it.
pub struct Authorized<P> {
    pub scope: Scope,
    pub caller: Caller,
    permission: PhantomData<fn() -> P>,
}

/// Who was let in.
#[derive(Clone, Debug)]
pub enum Caller {
    Member { user: User, persona_uuid: PersonaUuid, role: Role },
    ApiKey(Arc<ApiKey>),
}

impl Caller {
    /// Whether the caller would be let in again, for what goes on after its request. A database that is away is no reason to end it.
    pub async fn may_go_on<P: Permission>(&self, app: &App, tenant_uuid: TenantUuid) -> bool {
        let welcome = match self {
            Self::Member { user, .. } => {
                let member = app.permissions.member(&app.db, user, tenant_uuid).await;
                member.map(|member| member.is_some_and(|member| member.role.allows(P::BIT)))
            }
            Self::ApiKey(key) => {
                let scopes = api_key::present_scopes(app, key).await;
                scopes.map(|scopes| scopes.is_some_and(|scopes| P::KEY.is_met_by(&scopes)))
            }
        };
        welcome.unwrap_or_else(|error| error.status().is_server_error())
    }
}

/// As [`Authorized`], for what only a person may do.
pub struct Member<P> {
    pub scope: Scope,
    pub user: User,
    pub role: Role,
    permission: PhantomData<fn() -> P>,
}

impl<P: Permission> FromRequestParts<App> for Authorized<P> {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self> {
        // A key goes before a user token, and what is picked has to do: there is no falling through from one to the other.
        let (scope, caller) = match api_key::is_present(parts) {
            true => authorize_key(parts, app, P::KEY).await?,
            false => authorize_member(parts, app, P::BIT).await?,
        };
        Ok(Self { scope, caller, permission: PhantomData })
    }
}

impl<P: Permission> FromRequestParts<App> for Member<P> {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self> {
        let Authorized { scope, caller, permission } = Authorized::<P>::from_request_parts(parts, app).await?;
        match caller {
            Caller::Member { user, role, .. } => Ok(Self { scope, user, role, permission }),
            Caller::ApiKey(_) => Err(user::keys_are_nobody()),
        }
    }
}

async fn authorize_member(parts: &mut Parts, app: &App, bit: u8) -> Result<(Scope, Caller)> {
    let user = user::verify(app, parts).await?;
    // Whose login has ended is told so, whatever else is wrong with the request.
    let tenant = match named_tenant(parts, app).await {
        Ok(tenant) => tenant,
        Err(error) => {
            app.permissions.require_session(&app.db, &user).await?;
            return Err(error);
        }
    };
    let Some(member) = app.permissions.member(&app.db, &user, tenant.uuid).await? else {
        return Err(tenant.not_accessible());
    };
    require(member.role, bit)?;
    let scope = Scope::of_member(tenant.uuid, user.user_uuid, member.persona_uuid);
    Ok((scope, Caller::Member { user, persona_uuid: member.persona_uuid, role: member.role }))
}

/// 403 unless the role reaches so far.
pub fn require(role: Role, bit: u8) -> Result<()> {
    match role.allows(bit) {
        true => Ok(()),
        false => {
            let message = format!("your role {} does not allow this", role.name());
            Err(Error::forbidden("PERMISSION_DENIED", message))
        }
    }
}

async fn authorize_key(parts: &mut Parts, app: &App, access: KeyAccess) -> Result<(Scope, Caller)> {
    let key = api_key::authenticate(app, parts).await?;
    if access == KeyAccess::Never {
        return Err(user::keys_are_nobody());
    }
    let tenant = named_tenant(parts, app).await?;
    if tenant.uuid != key.tenant_uuid {
        return Err(tenant.not_accessible());
    }
    if let KeyAccess::Scope(scope) = access
        && !access.is_met_by(&key.scopes)
    {
        let message = format!("this needs an API key with the scope `{scope}`");
        return Err(Error::forbidden("PERMISSION_DENIED", message));
    }
    Ok((Scope::of_api_key(key.tenant_uuid, key.api_key_id), Caller::ApiKey(key)))
}

/// The tenant a request is about.
struct NamedTenant {
    uuid: TenantUuid,
    is_in_header: bool,
}

impl NamedTenant {
    /// Where the path alone names the tenant, it is a thing like any other that the caller cannot see.
    fn not_accessible(&self) -> Error {
        match self.is_in_header {
            true => Error::forbidden("TENANT_NOT_ACCESSIBLE", "the tenant in `X-Tenant-UUID` is not yours to act in"),
            false => Error::not_found("tenant"),
        }
    }
}

async fn named_tenant(parts: &mut Parts, app: &App) -> Result<NamedTenant> {
    let in_header = tenant_in_header(parts)?;
    let uuid = match (tenant_in_path(parts, app).await?, in_header) {
        (Some(in_path), Some(in_header)) if in_path != in_header => {
            let message = "the header `X-Tenant-UUID` names another tenant than the path";
            return Err(Error::forbidden("OTHER_TENANT", message));
        }
        (Some(tenant_uuid), _) | (None, Some(tenant_uuid)) => tenant_uuid,
        (None, None) => {
            return Err(Error::forbidden("TENANT_REQUIRED", "name the tenant in the header `X-Tenant-UUID`"));
        }
    };
    require_same_in_query(parts, uuid)?;
    Ok(NamedTenant { uuid, is_in_header: in_header.is_some() })
}

fn tenant_in_header(parts: &Parts) -> Result<Option<TenantUuid>> {
    let value = parts.headers.get(TENANT_HEADER).filter(|value| !value.as_bytes().trim_ascii().is_empty());
    let Some(value) = value else { return Ok(None) };
    match value.to_str().ok().and_then(|value| value.trim().parse().ok()) {
        Some(tenant_uuid) => Ok(Some(tenant_uuid)),
        None => Err(Error::field("X-Tenant-UUID", "must be a uuid")),
    }
}

/// The tenant may be named in the query too, under either of its names, and then it has to be the same.
fn require_same_in_query(parts: &Parts, tenant_uuid: TenantUuid) -> Result<()> {
    let query = parts.uri.query().unwrap_or_default();
    for (name, value) in form_urlencoded::parse(query.as_bytes()) {
        if !matches!(&*name, "tenantUuid" | "supplierUuid") || value.is_empty() {
            continue;
        }
        match value.parse::<TenantUuid>() {
            Ok(named) if named == tenant_uuid => {}
            Ok(_) => {
                return Err(Error::forbidden(
                    "OTHER_TENANT",
                    format!("`{name}` names another tenant than the request"),
                ));
            }
            Err(_) => return Err(Error::field(name, "must be a uuid")),
        }
    }
    Ok(())
}

async fn tenant_in_path(parts: &mut Parts, app: &App) -> Result<Option<TenantUuid>> {
    let Some(value) = path_parameter(parts, app, "tenantUuid").await? else { return Ok(None) };
    value.parse().map(Some).map_err(|_| Error::field("tenantUuid", "must be a uuid"))
}

/// A platform administrator.
pub struct PlatformAdmin(pub User);

impl FromRequestParts<App> for PlatformAdmin {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self> {
        let user = user::authenticate(app, parts).await?;
        if !user.is_platform_admin {
            return Err(Error::forbidden("PERMISSION_DENIED", "this needs a platform administrator"));
        }
        Ok(Self(user))
    }
}

/// Anyone may call.
pub struct Public;

impl<S: Sync> FromRequestParts<S> for Public {
    type Rejection = Infallible;

    async fn from_request_parts(_: &mut Parts, _: &S) -> std::result::Result<Self, Infallible> {
        Ok(Self)
    }
}

/// The key under which an operation of the API description says who may call it.
pub const ACCESS_EXTENSION: &str = "x-access";

/// `security` holds the schemes of which any one will do.
fn describe(operation: &mut Operation, access: &str, security: &[&str]) {
    operation.extensions.insert(ACCESS_EXTENSION.to_owned(), access.into());
    operation.security =
        security.iter().map(|scheme| SecurityRequirement::from_iter([((*scheme).to_owned(), Vec::new())])).collect();
}

impl<P: Permission> OperationInput for Authorized<P> {
    fn operation_input(ctx: &mut GenContext, operation: &mut Operation) {
        let security: &[&str] = if P::KEY == KeyAccess::Never { &["user"] } else { &["user", "apiKey"] };
        describe(operation, &format!("tenant:{}", P::NAME), security);
        describe_tenant_header(ctx, operation);
    }
}

impl<P: Permission> OperationInput for Member<P> {
    fn operation_input(ctx: &mut GenContext, operation: &mut Operation) {
        Authorized::<P>::operation_input(ctx, operation);
    }
}

fn describe_tenant_header(ctx: &mut GenContext, operation: &mut Operation) {
    let json_schema = ctx.schema.subschema_for::<TenantUuid>();
    let schema = aide::openapi::SchemaObject { json_schema, external_docs: None, example: None };
    operation.parameters.push(ReferenceOr::Item(aide::openapi::Parameter::Header {
        parameter_data: aide::openapi::ParameterData {
            name: "X-Tenant-UUID".to_owned(),
            description: Some("The tenant to act in; where the path names it, the header may be left out.".to_owned()),
            required: true,
            deprecated: None,
            format: aide::openapi::ParameterSchemaOrContent::Schema(schema),
            example: None,
            examples: Default::default(),
            explode: None,
            extensions: Default::default(),
        },
        style: Default::default(),
    }));
}

impl OperationInput for PlatformAdmin {
    fn operation_input(_: &mut GenContext, operation: &mut Operation) {
        describe(operation, "platform", &["user"]);
    }
}

impl OperationInput for User {
    fn operation_input(_: &mut GenContext, operation: &mut Operation) {
        describe(operation, "user", &["user"]);
    }
}

impl OperationInput for Hub {
    fn operation_input(_: &mut GenContext, operation: &mut Operation) {
        describe(operation, "hub", &["hub"]);
    }
}

impl OperationInput for EnrollingHub {
    fn operation_input(_: &mut GenContext, operation: &mut Operation) {
        describe(operation, "hub", &["hub"]);
    }
}

impl OperationInput for RefreshingHub {
    fn operation_input(_: &mut GenContext, operation: &mut Operation) {
        describe(operation, "hub", &["hub"]);
    }
}

impl OperationInput for UploadingHub {
    fn operation_input(_: &mut GenContext, operation: &mut Operation) {
        describe(operation, "hub", &["hub"]);
    }
}

impl OperationInput for Public {
    fn operation_input(_: &mut GenContext, operation: &mut Operation) {
        describe(operation, "public", &[]);
    }
}
