//! The extractors that decide who may call. A handler's signature contains one of these, or one of
//! `authn`'s. Each documents itself in the OpenAPI description, which the contract tests read.

use std::convert::Infallible;
use std::marker::PhantomData;
use std::sync::Arc;

use aide::OperationInput;
use aide::generate::GenContext;
use aide::openapi::{Operation, Parameter, ReferenceOr, SecurityRequirement};
use axum::extract::{FromRef, FromRequestParts};
use axum::http::request::Parts;
use futures_util::future::BoxFuture;
use hub_base::error::{Error, Result};
use hub_core::http::describe::header_parameter;
use hub_core::http::extract::path_parameter;
use hub_protocol::{PersonaUuid, TenantUuid};
use schemars::json_schema;
use secrecy::SecretString;

use super::permission::{KeyAccess, Permission, READ, Role};
use super::scope::{Scope, UserScope};
use crate::authn::api_key::{self, ApiKey};
use crate::authn::hub::{EnrollingHub, Hub, RefreshingHub, UploadingHub};
use crate::authn::user::{self, Enrolling, User};
use crate::authn::{Authn, bearer};

pub const TENANT_HEADER: &str = "x-tenant-uuid";
/// Paths that begin so name the tenant themselves, and need no header.
const NAMES_TENANT: &str = "/tenant/tenants/";

/// A member of the tenant that the request names, whose role grants `P`, or an API key of the
/// tenant with the scope for `P`. `X-Tenant-UUID` names the tenant, and must not contradict a
/// `{tenantUuid}` in the path. It may be left out under `/tenant/tenants/{tenantUuid}`.
pub struct Authorized<P> {
    pub scope: Scope,
    pub caller: Caller,
    permission: PhantomData<fn() -> P>,
}

impl<P> Authorized<P> {
    /// 403 unless the caller may do what `Q` allows too.
    pub fn require<Q: Permission>(&self) -> Result<()> {
        match &self.caller {
            Caller::Member { role, .. } => require(*role, Q::BIT),
            Caller::ApiKey(key) if Q::KEY.is_met_by(&key.scopes) => Ok(()),
            Caller::ApiKey(_) => Err(scope_missing(Q::KEY)),
        }
    }
}

/// The caller that was admitted.
#[derive(Clone, Debug)]
pub enum Caller {
    Member {
        user: User,
        persona_uuid: PersonaUuid,
        role: Role,
    },
    ApiKey(Arc<ApiKey>),
}

impl Caller {
    /// Whether the caller, as admitted, also has another permission.
    pub fn may<P: Permission>(&self) -> bool {
        match self {
            Self::Member { role, .. } => role.allows(P::BIT),
            Self::ApiKey(key) => P::KEY.is_met_by(&key.scopes),
        }
    }

    /// Whether the caller still has access, for work that continues after the request. An
    /// unavailable database does not revoke access.
    pub async fn is_still_allowed<P: Permission>(
        &self,
        authn: &Authn,
        tenant_uuid: TenantUuid,
    ) -> bool {
        let welcome = match self {
            Self::Member { user, .. } => {
                let member = authn
                    .permissions
                    .member(&authn.core.db, user, tenant_uuid)
                    .await;
                member.map(|member| member.is_some_and(|member| member.role.allows(P::BIT)))
            }
            Self::ApiKey(key) => {
                let scopes = api_key::current_scopes(authn, key).await;
                scopes.map(|scopes| scopes.is_some_and(|scopes| P::KEY.is_met_by(&scopes)))
            }
        };
        welcome.unwrap_or_else(|error| error.status().is_server_error())
    }
}

/// As [`Authorized`], for operations that only a person may do.
pub struct Member<P> {
    pub scope: Scope,
    pub user: User,
    pub role: Role,
    permission: PhantomData<fn() -> P>,
}

impl<P: Permission, S: Send + Sync> FromRequestParts<S> for Authorized<P>
where
    Authn: FromRef<S>,
{
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self> {
        let authn = &Authn::from_ref(state);
        // A key takes precedence over a user token. If the key is invalid, the token is not tried.
        let (scope, caller) = match api_key::is_present(parts) {
            true => authorize_key(parts, authn, P::KEY).await?,
            false => authorize_member(parts, authn, P::BIT).await?,
        };
        Ok(Self {
            scope,
            caller,
            permission: PhantomData,
        })
    }
}

impl<P: Permission, S: Send + Sync> FromRequestParts<S> for Member<P>
where
    Authn: FromRef<S>,
{
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self> {
        let Authorized {
            scope,
            caller,
            permission,
        } = Authorized::<P>::from_request_parts(parts, state).await?;
        match caller {
            Caller::Member { user, role, .. } => Ok(Self {
                scope,
                user,
                role,
                permission,
            }),
            Caller::ApiKey(_) => Err(user::person_required()),
        }
    }
}

/// As [`Member`], but every member of the tenant may do it to themselves: the path names their own
/// persona, as `targetPersonaUuid` or `personaUuid`. The operation has to check the role again, as
/// it may change meanwhile.
pub struct MemberOrSelf<P> {
    pub scope: Scope,
    pub user: User,
    permission: PhantomData<fn() -> P>,
}

impl<P: Permission, S: Send + Sync> FromRequestParts<S> for MemberOrSelf<P>
where
    Authn: FromRef<S>,
{
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self> {
        let authn = &Authn::from_ref(state);
        if api_key::is_present(parts) {
            api_key::authenticate(authn, parts).await?;
            return Err(user::person_required());
        }
        let (scope, caller) = authorize_member(parts, authn, READ).await?;
        let Caller::Member {
            user,
            persona_uuid,
            role,
        } = caller
        else {
            return Err(user::person_required());
        };
        let mut named = path_parameter(parts, authn, "targetPersonaUuid").await?;
        if named.is_none() {
            named = path_parameter(parts, authn, "personaUuid").await?;
        }
        let named: Option<PersonaUuid> = named.and_then(|named| named.parse().ok());
        if named != Some(persona_uuid) {
            require(role, P::BIT)?;
        }
        Ok(Self {
            scope,
            user,
            permission: PhantomData,
        })
    }
}

fn authorize_member<'a>(
    parts: &'a mut Parts,
    authn: &'a Authn,
    bit: u8,
) -> BoxFuture<'a, Result<(Scope, Caller)>> {
    Box::pin(async move {
        let user = user::verify(authn, parts).await?;
        // An ended login is reported first, whatever else is wrong with the request.
        let tenant = match named_tenant(parts, authn).await {
            Ok(tenant) => tenant,
            Err(error) => {
                authn
                    .permissions
                    .require_session(&authn.core.db, &user)
                    .await?;
                return Err(error);
            }
        };
        let Some(member) = authn
            .permissions
            .member(&authn.core.db, &user, tenant.uuid)
            .await?
        else {
            return Err(tenant.not_accessible());
        };
        require(member.role, bit)?;
        let scope = Scope::of_member(tenant.uuid, user.user_uuid, member.persona_uuid);
        Ok((
            scope,
            Caller::Member {
                user,
                persona_uuid: member.persona_uuid,
                role: member.role,
            },
        ))
    })
}

/// 403 unless the role includes `bit`.
pub fn require(role: Role, bit: u8) -> Result<()> {
    match role.allows(bit) {
        true => Ok(()),
        false => {
            let message = format!("your role {} does not allow this", role.name());
            Err(Error::forbidden("PERMISSION_DENIED", message))
        }
    }
}

fn authorize_key<'a>(
    parts: &'a mut Parts,
    authn: &'a Authn,
    access: KeyAccess,
) -> BoxFuture<'a, Result<(Scope, Caller)>> {
    Box::pin(async move {
        let key = api_key::authenticate(authn, parts).await?;
        if access == KeyAccess::Never {
            return Err(user::person_required());
        }
        let tenant = named_tenant(parts, authn).await?;
        if tenant.uuid != key.tenant_uuid {
            return Err(tenant.not_accessible());
        }
        if !access.is_met_by(&key.scopes) {
            return Err(scope_missing(access));
        }
        Ok((
            Scope::of_api_key(key.tenant_uuid, key.api_key_id),
            Caller::ApiKey(key),
        ))
    })
}

fn scope_missing(access: KeyAccess) -> Error {
    match access {
        KeyAccess::Scope(scope) => {
            let message = format!("this requires an API key with the scope `{scope}`");
            Error::forbidden("PERMISSION_DENIED", message)
        }
        KeyAccess::Never | KeyAccess::Any => user::person_required(),
    }
}

/// The tenant of a request.
struct NamedTenant {
    uuid: TenantUuid,
    is_in_header: bool,
}

impl NamedTenant {
    /// If only the path names the tenant, an invisible tenant is a 404, like any other thing that
    /// the caller may not see.
    fn not_accessible(&self) -> Error {
        match self.is_in_header {
            true => Error::forbidden(
                "TENANT_NOT_ACCESSIBLE",
                "you do not have access to this tenant",
            ),
            false => Error::not_found("tenant"),
        }
    }
}

async fn named_tenant(parts: &mut Parts, authn: &Authn) -> Result<NamedTenant> {
    let in_header = tenant_in_header(parts)?;
    // Elsewhere a uuid in the path names a unit, which the header has to repeat.
    let may_omit_header = parts.uri.path().starts_with(NAMES_TENANT);
    let uuid = match (tenant_in_path(parts, authn).await?, in_header) {
        (Some(_), None) if !may_omit_header => return Err(tenant_required()),
        (Some(in_path), Some(in_header)) if in_path != in_header => {
            let message = "the header `X-Tenant-UUID` names another tenant than the path";
            return Err(Error::forbidden("OTHER_TENANT", message));
        }
        (Some(tenant_uuid), _) | (None, Some(tenant_uuid)) => tenant_uuid,
        (None, None) => return Err(tenant_required()),
    };
    require_same_in_query(parts, uuid)?;
    Ok(NamedTenant {
        uuid,
        is_in_header: in_header.is_some(),
    })
}

fn tenant_required() -> Error {
    Error::forbidden(
        "TENANT_REQUIRED",
        "name the tenant in the header `X-Tenant-UUID`",
    )
}

fn tenant_in_header(parts: &Parts) -> Result<Option<TenantUuid>> {
    let value = parts
        .headers
        .get(TENANT_HEADER)
        .filter(|value| !value.as_bytes().trim_ascii().is_empty());
    let Some(value) = value else { return Ok(None) };
    match value
        .to_str()
        .ok()
        .and_then(|value| value.trim().parse().ok())
    {
        Some(tenant_uuid) => Ok(Some(tenant_uuid)),
        None => Err(Error::field("X-Tenant-UUID", "must be a uuid")),
    }
}

/// The query may name the tenant too, under either of its names. It must then be the same tenant.
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

async fn tenant_in_path(parts: &mut Parts, authn: &Authn) -> Result<Option<TenantUuid>> {
    let Some(value) = path_parameter(parts, authn, "tenantUuid").await? else {
        return Ok(None);
    };
    value
        .parse()
        .map(Some)
        .map_err(|_| Error::field("tenantUuid", "must be a uuid"))
}

/// A platform administrator.
pub struct PlatformAdmin(pub User);

impl<S: Send + Sync> FromRequestParts<S> for PlatformAdmin
where
    Authn: FromRef<S>,
{
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self> {
        let authn = &Authn::from_ref(state);
        let user = user::authenticate(authn, parts).await?;
        if !user.is_platform_admin {
            return Err(Error::forbidden(
                "PERMISSION_DENIED",
                "this requires a platform administrator",
            ));
        }
        Ok(Self(user))
    }
}

/// An end user of `/app`: any logged-in person. The scope limits what they see.
pub struct EndUser {
    pub scope: UserScope,
    pub user: User,
}

impl<S: Send + Sync> FromRequestParts<S> for EndUser
where
    Authn: FromRef<S>,
{
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self> {
        let user = user::authenticate(&Authn::from_ref(state), parts).await?;
        Ok(Self {
            scope: UserScope::of(&user),
            user,
        })
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

/// A supplier's or partner's system, which signs the body. The handler verifies it with
/// [`hub_core::http::signature::SignedJson`]: it knows whose secret it has to be.
pub struct Signed;

impl<S: Sync> FromRequestParts<S> for Signed {
    type Rejection = Infallible;

    async fn from_request_parts(_: &mut Parts, _: &S) -> std::result::Result<Self, Infallible> {
        Ok(Self)
    }
}

/// The bearer of a mandate. The handler looks it up: the subject of mandates owns their rows.
pub struct MandateBearer(pub SecretString);

impl<S: Sync> FromRequestParts<S> for MandateBearer {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self> {
        Ok(Self(bearer(&parts.headers)?.into()))
    }
}

/// The extension of an operation in the OpenAPI description that says who may call it.
pub const ACCESS_EXTENSION: &str = "x-access";

/// `security` lists alternative schemes: any one of them is sufficient.
fn describe(operation: &mut Operation, access: &str, security: &[&str]) {
    operation
        .extensions
        .insert(ACCESS_EXTENSION.to_owned(), access.into());
    operation.security = security
        .iter()
        .map(|scheme| SecurityRequirement::from_iter([((*scheme).to_owned(), Vec::new())]))
        .collect();
}

impl<P: Permission> OperationInput for Authorized<P> {
    fn operation_input(_: &mut GenContext, operation: &mut Operation) {
        let security: &[&str] = if P::KEY == KeyAccess::Never {
            &["user"]
        } else {
            &["user", "apiKey"]
        };
        describe(operation, &format!("tenant:{}", P::NAME), security);
        describe_tenant_header(operation);
    }
}

impl<P: Permission> OperationInput for MemberOrSelf<P> {
    fn operation_input(ctx: &mut GenContext, operation: &mut Operation) {
        Authorized::<P>::operation_input(ctx, operation);
    }
}

impl<P: Permission> OperationInput for Member<P> {
    fn operation_input(ctx: &mut GenContext, operation: &mut Operation) {
        Authorized::<P>::operation_input(ctx, operation);
    }
}

fn describe_tenant_header(operation: &mut Operation) {
    let description =
        "The tenant to act in. It may be left out under `/tenant/tenants/{tenantUuid}`.";
    // A pattern in place of a format: generated clients would send their own idea of a uuid.
    let schema = json_schema!({"type": "string", "pattern": "^[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}$"});
    header_parameter(operation, "X-Tenant-UUID", description, schema);
    if let Some(ReferenceOr::Item(Parameter::Header { parameter_data, .. })) =
        operation.parameters.last_mut()
    {
        parameter_data.required = true;
    }
}

impl OperationInput for PlatformAdmin {
    fn operation_input(_: &mut GenContext, operation: &mut Operation) {
        describe(operation, "platform", &["user"]);
    }
}

impl OperationInput for Signed {
    fn operation_input(_: &mut GenContext, operation: &mut Operation) {
        describe(operation, "hmac", &["signature"]);
    }
}

impl OperationInput for MandateBearer {
    fn operation_input(_: &mut GenContext, operation: &mut Operation) {
        describe(operation, "mandate", &["mandate"]);
    }
}

impl OperationInput for EndUser {
    fn operation_input(_: &mut GenContext, operation: &mut Operation) {
        describe(operation, "app", &["user"]);
    }
}

impl OperationInput for User {
    fn operation_input(_: &mut GenContext, operation: &mut Operation) {
        describe(operation, "user", &["user"]);
    }
}

impl OperationInput for Enrolling {
    fn operation_input(ctx: &mut GenContext, operation: &mut Operation) {
        User::operation_input(ctx, operation);
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
