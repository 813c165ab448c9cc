//! The OpenAPI document (version 3.1), built from the handlers together with the router, and the
//! page that shows it.

mod responses;
mod schemas;

use std::sync::Arc;

use aide::OperationOutput;
use aide::axum::ApiRouter;
use aide::axum::routing::get_with;
use aide::generate::GenContext;
use aide::openapi::{
    ApiKeyLocation, Info, License, OpenApi, Operation, Parameter, ParameterData, PathStyle,
    ReferenceOr, Response as ApiResponse, SecurityScheme, Server, Tag,
};
use aide::swagger::Swagger;
use axum::Extension;
use axum::response::{IntoResponse, Response};
use hub_core::Core;
use hub_core::http::answer::typed_response;
use hub_core::http::asset::{Asset, cacheable};
use hub_core::http::compression::Accepted;
use hub_core::http::describe::parameter;
use hub_core::http::etag::IfNoneMatch;
use hub_core::http::operation::operation;
use hub_identity::authz::Public;
use schemars::json_schema;
use serde_json::{Value, json};

/// The tags that group the operations.
const TAGS: [(&str, &str); 38] = [
    (
        "service",
        "The service itself: health, metrics, this description.",
    ),
    (
        "auth",
        "Accounts, logins and the keys that verify access tokens.",
    ),
    (
        "public",
        "What a link or a signed URL opens, for anyone who has it.",
    ),
    (
        "library",
        "Device models, quantities and schemas that are the same for everyone.",
    ),
    (
        "hub-api",
        "What a hub calls: its credentials, its uploads, its desired state.",
    ),
    (
        "tenant-hubs",
        "The hubs of a tenant: claim codes, adapters, jobs, apps, logs, telemetry, delegations.",
    ),
    (
        "tenant-monitoring",
        "Jobs, logs and telemetry of a hub, as page objects.",
    ),
    (
        "tenant-devices",
        "The devices of a tenant: what identifies them, their keys and their status.",
    ),
    (
        "tenant-ble",
        "BLE events that the hubs of a tenant uploaded.",
    ),
    ("tenant-simulator", "What would become of BLE events."),
    (
        "tenant-catalog",
        "Device models of a tenant: how they are recognised, read, shown and operated.",
    ),
    (
        "tenant-external-endpoints",
        "Servers of a tenant that its forms and actions call.",
    ),
    (
        "tenant-vulnerabilities",
        "Published vulnerabilities of what the hubs of a tenant run.",
    ),
    (
        "tenant-advisories",
        "Advisories of a tenant about its apps and device models.",
    ),
    (
        "tenant-dashboards",
        "A tenant's pages of values, charts and states of chosen devices.",
    ),
    (
        "tenant-floor-plans",
        "Images of where the hubs of a tenant are.",
    ),
    (
        "tenant-streams",
        "Records as they arrive, as server-sent events.",
    ),
    ("tenant-apps", "Apps of a tenant and their signed releases."),
    (
        "tenant-releases",
        "Releases of the agent, and the policies that decide which hubs get them.",
    ),
    ("tenant-downloads", "Files to install hubs from."),
    ("tenant-tenants", "Tenants and their members."),
    (
        "tenant-pipelines",
        "Data pipelines: what leaves the platform, how and where to.",
    ),
    (
        "tenant-bundles",
        "Bundles of a supplier: what hubs get when they are claimed.",
    ),
    (
        "tenant-personas",
        "Members of a tenant, and invitations to it.",
    ),
    (
        "tenant-transfers",
        "Transfers of a tenant to another owner.",
    ),
    ("tenant-keys", "API keys of a tenant."),
    ("tenant-audit", "Who changed what in a tenant."),
    (
        "tenant-diagnostics",
        "The caller as the service identifies it.",
    ),
    ("app", "What a person does in an app."),
    (
        "mandate",
        "What a recipient reads that a person has granted a mandate.",
    ),
    (
        "tenant-consent",
        "What a tenant asks its users to consent to, and what they have granted.",
    ),
    (
        "tenant-billing",
        "What a tenant owes and may use, as the billing service says.",
    ),
    ("tenant-dashboard", "The numbers of a tenant on one page."),
    (
        "tenant-notifications",
        "Which notices the members of a tenant get, and how.",
    ),
    (
        "tenant-supplier-oauth",
        "The OAuth server of a tenant, and the URL that receives its registrations.",
    ),
    (
        "webhooks",
        "What the systems of suppliers and of the partner tell, in signed messages.",
    ),
    ("platform", "What platform administrators do."),
    (
        "dev",
        "What helps to develop against the service; served with the setting `dev-endpoints` alone.",
    ),
];

const DESCRIPTION: &str = "Manages BLE gateways (hubs) in the field: their identity, the advertisements they upload, \
    the jobs they run, and who may see and change them.\n\n\
    A success is `{\"data\": ...}`; a failure is a `Problem`. Every answer has `X-Request-Id`, which a request may set. \
    Answers of 1 KiB and more are compressed with gzip or zstd when `Accept-Encoding` allows it. \
    A method that a path does not have is answered with 405 and `Allow`, a path that does not exist with 404. \
    More than 64 headers or 48 KiB of them are answered with 431; beyond 100 headers or 64 KiB, that answer has no body.";

/// A document without paths.
pub fn base() -> OpenApi {
    let license = License {
        identifier: Some("Apache-2.0".to_owned()),
        ..License::default()
    };
    let tag = |(name, description): (&str, &str)| Tag {
        name: name.to_owned(),
        description: Some(description.to_owned()),
        ..Tag::default()
    };
    let server = Server {
        url: "/".to_owned(),
        description: Some("The service that this document came from.".to_owned()),
        ..Server::default()
    };
    let mut api = OpenApi {
        info: Info {
            title: "hub-cloud".to_owned(),
            version: "1.0.0".to_owned(),
            description: Some(DESCRIPTION.to_owned()),
            license: Some(License {
                name: "Apache License 2.0".to_owned(),
                ..license
            }),
            ..Info::default()
        },
        servers: vec![server],
        tags: TAGS.into_iter().map(tag).collect(),
        ..OpenApi::default()
    };
    let components = api.components.get_or_insert_default();
    for (name, description) in [
        ("user", "Access token of a person, from `POST /auth/login`."),
        ("hub", "Access token of a hub, from `POST /v1/hubs/claim`."),
    ] {
        let scheme = SecurityScheme::Http {
            scheme: "bearer".to_owned(),
            bearer_format: Some("JWT".to_owned()),
            description: Some(description.to_owned()),
            extensions: Default::default(),
        };
        components
            .security_schemes
            .insert(name.to_owned(), ReferenceOr::Item(scheme));
    }
    let mandate = SecurityScheme::Http {
        scheme: "bearer".to_owned(),
        bearer_format: None,
        description: Some("Credential of a mandate, from `POST /app/mandates`.".to_owned()),
        extensions: Default::default(),
    };
    components
        .security_schemes
        .insert("mandate".to_owned(), ReferenceOr::Item(mandate));
    let api_key = SecurityScheme::ApiKey {
        location: ApiKeyLocation::Header,
        name: "X-API-Key".to_owned(),
        description: Some("A tenant's key, from `POST /tenant/api-keys`.".to_owned()),
        extensions: Default::default(),
    };
    components
        .security_schemes
        .insert("apiKey".to_owned(), ReferenceOr::Item(api_key));
    let signature = SecurityScheme::ApiKey {
        location: ApiKeyLocation::Header,
        name: "X-Service-Signature".to_owned(),
        description: Some(
            "`sha256=` and the HMAC-SHA256 of the body under the shared secret, in hex.".to_owned(),
        ),
        extensions: Default::default(),
    };
    components
        .security_schemes
        .insert("signature".to_owned(), ReferenceOr::Item(signature));
    api
}

/// Adds what a crate's routes describe. Two crates may have methods of one path.
pub fn add<S>(api: &mut OpenApi, routes: ApiRouter<S>)
where
    S: Clone + Send + Sync + 'static,
{
    let known = api.paths.take().unwrap_or_default();
    let _ = routes.finish_api(api);
    let paths = &mut api.paths.get_or_insert_default().paths;
    for (path, item) in known.paths {
        match (paths.get_mut(&path), item) {
            (Some(ReferenceOr::Item(methods)), ReferenceOr::Item(item)) => methods.merge_with(item),
            (_, item) => drop(paths.insert(path, item)),
        }
    }
}

/// The finished document: what the handlers state, and what follows from it.
pub fn finish(mut api: OpenApi) -> Value {
    for (path, item) in api.paths.iter_mut().flat_map(|paths| &mut paths.paths) {
        let ReferenceOr::Item(item) = item else {
            continue;
        };
        let operations = [
            &mut item.get,
            &mut item.post,
            &mut item.put,
            &mut item.patch,
            &mut item.delete,
        ];
        operations
            .into_iter()
            .flatten()
            .for_each(|operation| describe_named_callers(path, operation));
    }
    // A document of strings and maps always serialises.
    let mut document = serde_json::to_value(&api).unwrap_or_default();
    responses::complete(&mut document);
    schemas::normalize(&mut document);
    schemas::remove_unused_components(&mut document);
    document
}

/// The access extractors read the tenant and the hub that a path names, even if the handler does
/// not.
fn describe_named_callers(path: &str, operation: &mut Operation) {
    if path.contains("{tenantUuid}") {
        add_path_parameter(operation, "tenantUuid", "The tenant.");
        // The header would only repeat the path.
        for parameter in &mut operation.parameters {
            if let ReferenceOr::Item(Parameter::Header { parameter_data, .. }) = parameter {
                parameter_data.required &= !parameter_data
                    .name
                    .eq_ignore_ascii_case(hub_identity::authz::TENANT_HEADER);
            }
        }
    }
    if path.contains("{hubUuid}") {
        add_path_parameter(operation, "hubUuid", "The hub.");
    }
}

/// Adds a uuid of the path, unless the handler described it.
fn add_path_parameter(operation: &mut Operation, name: &str, description: &str) {
    let is_it = |parameter: &ReferenceOr<Parameter>| matches!(parameter, ReferenceOr::Item(Parameter::Path { parameter_data, .. }) if parameter_data.name == name);
    if !operation.parameters.iter().any(is_it) {
        let schema = json_schema!({"type": "string", "format": "uuid"});
        let parameter_data = ParameterData {
            required: true,
            ..parameter(name, description, schema)
        };
        operation.parameters.insert(
            0,
            ReferenceOr::Item(Parameter::Path {
                parameter_data,
                style: PathStyle::Simple,
            }),
        );
    }
}

pub fn routes() -> ApiRouter<Core> {
    ApiRouter::new()
        .api_route(
            "/openapi.json",
            get_with(
                document,
                operation(
                    "service.openapi",
                    "service",
                    "This description (OpenAPI 3.1)",
                ),
            ),
        )
        .api_route(
            "/docs",
            get_with(
                page,
                operation("service.docs", "service", "This description, as a page"),
            ),
        )
}

/// The document and its page as they are sent. They are built once and compressed once.
#[derive(Clone)]
pub struct Documentation {
    document: Arc<Asset>,
    page: Arc<Asset>,
}

impl Documentation {
    pub fn new(document: &Value) -> Self {
        let page = Swagger::new("/openapi.json")
            .with_title("hub-cloud API")
            .html();
        Self {
            document: Arc::new(Asset::new("application/json", document.to_string())),
            page: Arc::new(Asset::new("text/html; charset=utf-8", page)),
        }
    }
}

/// The document.
pub struct DocumentAnswer(Response);

/// The page that shows it.
pub struct PageAnswer(Response);

impl IntoResponse for DocumentAnswer {
    fn into_response(self) -> Response {
        self.0
    }
}

impl IntoResponse for PageAnswer {
    fn into_response(self) -> Response {
        self.0
    }
}

impl OperationOutput for DocumentAnswer {
    type Inner = ();
    fn inferred_responses(
        _: &mut GenContext,
        _: &mut Operation,
    ) -> Vec<(Option<u16>, ApiResponse)> {
        cacheable(typed_response(
            "application/json",
            "An OpenAPI 3.1 document.",
            json!({"type": "object"}),
        ))
    }
}

impl OperationOutput for PageAnswer {
    type Inner = ();
    fn inferred_responses(
        _: &mut GenContext,
        _: &mut Operation,
    ) -> Vec<(Option<u16>, ApiResponse)> {
        cacheable(typed_response(
            "text/html",
            "A page that loads nothing from other servers.",
            json!({"type": "string"}),
        ))
    }
}

async fn document(
    _: Public,
    accepted: Accepted,
    known: IfNoneMatch,
    Extension(documentation): Extension<Documentation>,
) -> DocumentAnswer {
    DocumentAnswer(documentation.document.answer(accepted, &known).await)
}

/// The page that shows the document. It contains everything it needs, so it works without internet
/// access.
async fn page(
    _: Public,
    accepted: Accepted,
    known: IfNoneMatch,
    Extension(documentation): Extension<Documentation>,
) -> PageAnswer {
    PageAnswer(documentation.page.answer(accepted, &known).await)
}
