//! The API's description of itself (OpenAPI 3.1), made from the handlers when the router is built, and the page that shows it.

use aide::openapi::{
    ApiKeyLocation, Info, OpenApi, Operation, Parameter, ParameterData, ParameterSchemaOrContent, PathStyle,
    ReferenceOr, SchemaObject, SecurityScheme,
};
use aide::swagger::Swagger;
use axum::Extension;
use axum::http::header;
use axum::response::{Html, IntoResponse, Response};
use bytes::Bytes;
use serde_json::json;

use crate::authz::TENANT_HEADER;

use crate::authz::Public;

/// A description with no paths yet.
pub fn base() -> OpenApi {
    let mut api = OpenApi {
        info: Info {
            title: "hub-cloud".to_owned(),
            version: "1.0.0".to_owned(),
            description: Some(
                "Manages BLE hubs in the field: their identity, what they hear, and who may see it. Answers are `{\"data\": ...}`; \
                 failures are `{\"message\", \"code\", \"requestId\", \"errors\"?}`."
                    .to_owned(),
            ),
            ..Info::default()
        },
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
        components.security_schemes.insert(name.to_owned(), ReferenceOr::Item(scheme));
    }
    let api_key = SecurityScheme::ApiKey {
        location: ApiKeyLocation::Header,
        name: "X-API-Key".to_owned(),
        description: Some("A tenant's key, from `POST /tenant/api-keys`.".to_owned()),
        extensions: Default::default(),
    };
    components.security_schemes.insert("apiKey".to_owned(), ReferenceOr::Item(api_key));
    api
}

/// Adds what handlers do not say themselves: path parameters, from each path's template.
pub fn complete(api: &mut OpenApi) {
    let Some(paths) = &mut api.paths else { return };
    for (path, item) in &mut paths.paths {
        let ReferenceOr::Item(item) = item else { continue };
        let names: Vec<&str> = path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}')).collect();
        let operations =
            [&mut item.get, &mut item.post, &mut item.put, &mut item.patch, &mut item.delete].into_iter().flatten();
        for operation in operations {
            for name in &names {
                add_path_parameter(operation, name);
            }
            if names.contains(&"tenantUuid") {
                make_tenant_header_optional(operation);
            }
        }
    }
}

/// The path names the tenant already.
fn make_tenant_header_optional(operation: &mut Operation) {
    for parameter in &mut operation.parameters {
        if let ReferenceOr::Item(Parameter::Header { parameter_data, .. }) = parameter {
            parameter_data.required &= !parameter_data.name.eq_ignore_ascii_case(TENANT_HEADER);
        }
    }
}

fn add_path_parameter(operation: &mut Operation, name: &str) {
    let lower = name.to_ascii_lowercase();
    let schema = if lower.ends_with("uuid") {
        json!({"type": "string", "format": "uuid"})
    } else if lower.ends_with("id") {
        json!({"type": "integer", "format": "int64"})
    } else {
        json!({"type": "string"})
    };
    // Both arms above are objects, which every schema may be.
    let Ok(json_schema) = schemars::Schema::try_from(schema) else { return };
    operation.parameters.insert(
        0,
        ReferenceOr::Item(Parameter::Path {
            parameter_data: ParameterData {
                name: name.to_owned(),
                description: None,
                required: true,
                deprecated: None,
                format: ParameterSchemaOrContent::Schema(SchemaObject {
                    json_schema,
                    external_docs: None,
                    example: None,
                }),
                example: None,
                examples: Default::default(),
                explode: None,
                extensions: Default::default(),
            },
            style: PathStyle::Simple,
        }),
    );
}

/// The finished document, as it is sent.
#[derive(Clone)]
pub struct Document(pub Bytes);

pub async fn document(_: Public, Extension(document): Extension<Document>) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], document.0).into_response()
}

/// The browsable page. Everything it needs is in it: it works where there is no internet.
pub async fn page(_: Public) -> Html<String> {
    Html(Swagger::new("/openapi.json").with_title("hub-cloud API").html())
}
