//! How extractors, responses and routes describe themselves: parameters, and the failures and
//! headers that operations reference, each described once.

use aide::openapi::{
    Header, HeaderStyle, Operation, Parameter, ParameterData, ParameterSchemaOrContent,
    ReferenceOr, SchemaObject, StatusCode,
};
use schemars::Schema;

/// A failure that operations reference.
pub struct Failure {
    pub status: u16,
    pub name: &'static str,
    pub description: &'static str,
    pub headers: &'static [&'static str],
}

const fn failure(status: u16, name: &'static str, description: &'static str) -> Failure {
    Failure {
        status,
        name,
        description,
        headers: &[],
    }
}

const RATE_LIMIT: [&str; 3] = ["RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset"];

/// Every kind of failure.
pub const FAILURES: [Failure; 18] = [
    failure(
        400,
        "BadRequest",
        "The request is malformed, or `errors` names the fields that are not valid.",
    ),
    Failure {
        headers: &["WWW-Authenticate"],
        ..failure(
            401,
            "Unauthorized",
            "The credential is missing, malformed, expired or revoked.",
        )
    },
    failure(403, "Forbidden", "The caller is known and may not do this."),
    failure(
        404,
        "NotFound",
        "The object does not exist, or belongs to another tenant.",
    ),
    failure(
        408,
        "RequestTimeout",
        "The body did not arrive in time; send the request again.",
    ),
    failure(
        409,
        "Conflict",
        "The state of the object, or a rule over several objects, forbids this.",
    ),
    failure(410, "Gone", "The object existed and can no longer be used."),
    failure(
        412,
        "PreconditionFailed",
        "A setting that this request depends on is missing.",
    ),
    failure(
        413,
        "ContentTooLarge",
        "The body is too large, as sent or once decompressed.",
    ),
    failure(
        415,
        "UnsupportedMediaType",
        "The body has another media type or encoding than the operation accepts.",
    ),
    Failure {
        headers: &["Content-Range"],
        ..failure(
            416,
            "RangeNotSatisfiable",
            "The range starts beyond the end of the file.",
        )
    },
    failure(423, "Locked", "The hub is blocked."),
    Failure {
        headers: &["Retry-After", RATE_LIMIT[0], RATE_LIMIT[1], RATE_LIMIT[2]],
        ..failure(
            429,
            "TooManyRequests",
            "A limit is reached; wait for as long as `Retry-After` says.",
        )
    },
    failure(
        500,
        "InternalServerError",
        "A fault of the service; its log has the cause under the request id.",
    ),
    failure(
        502,
        "BadGateway",
        "A server that somebody else runs failed, or answered what it should not.",
    ),
    Failure {
        headers: &["Retry-After"],
        ..failure(
            503,
            "ServiceUnavailable",
            "A component that the service requires is unavailable; try again after `Retry-After`.",
        )
    },
    failure(
        504,
        "GatewayTimeout",
        "A server that somebody else runs did not answer in time.",
    ),
    Failure {
        headers: &["Retry-After"],
        ..failure(
            507,
            "InsufficientStorage",
            "The tenant's quota of stored bytes is full, or the service's disk is.",
        )
    },
];

/// Name, JSON type and description of the headers that operations reference.
pub const HEADERS: [(&str, &str, &str); 17] = [
    (
        "Accept-Ranges",
        "string",
        "`bytes`: the file can be fetched in pieces with `Range`.",
    ),
    (
        "Cache-Control",
        "string",
        "Who may cache the response, and for how long; `no-store` unless the operation says otherwise.",
    ),
    (
        "Content-Disposition",
        "string",
        "The name to store the file under.",
    ),
    (
        "Content-Range",
        "string",
        "Which bytes of the file the response contains, and how many the file has.",
    ),
    (
        "ETag",
        "string",
        "The version of the response. Send it as `If-None-Match` to get 304 while it is unchanged.",
    ),
    (
        "Link",
        "string",
        "URLs of the `first`, `prev`, `next` and `last` page (RFC 8288).",
    ),
    ("Location", "string", "Where to go next."),
    ("RateLimit-Limit", "integer", "Requests allowed a minute."),
    (
        "RateLimit-Remaining",
        "integer",
        "Requests left in the current minute.",
    ),
    (
        "RateLimit-Reset",
        "integer",
        "Seconds until the next minute begins.",
    ),
    (
        "Retry-After",
        "integer",
        "Seconds to wait before the next attempt.",
    ),
    (
        "Set-Cookie",
        "string",
        "A cookie that scripts cannot read, to keep or to forget.",
    ),
    (
        "WWW-Authenticate",
        "string",
        "The scheme of the required credential.",
    ),
    (
        "X-Accel-Buffering",
        "string",
        "`no`: proxies must forward events at once.",
    ),
    (
        "X-Request-Id",
        "string",
        "The id of the request, which the service's log has too.",
    ),
    (
        "X-Total-Count",
        "integer",
        "Items in the whole list, exact up to 100,000.",
    ),
    (
        "X-Upstream-Status",
        "integer",
        "The status with which the supplier's endpoint answered.",
    ),
];

/// References to described headers, for a response's description.
pub fn headers<M: FromIterator<(String, ReferenceOr<Header>)>>(names: &[&str]) -> M {
    let reference = |name: &&str| ReferenceOr::Reference {
        reference: format!("#/components/headers/{name}"),
        summary: None,
        description: None,
    };
    names
        .iter()
        .map(|name| ((*name).to_owned(), reference(name)))
        .collect()
}

/// The headers that state a rate limit.
pub fn rate_limit_headers<M: FromIterator<(String, ReferenceOr<Header>)>>() -> M {
    headers(&RATE_LIMIT)
}

/// Describes that the operation may fail with these statuses. Each must be one of [`FAILURES`].
pub fn may_fail(operation: &mut Operation, statuses: &[u16]) {
    let responses = operation.responses.get_or_insert_default();
    for failure in FAILURES
        .iter()
        .filter(|failure| statuses.contains(&failure.status))
    {
        let reference = ReferenceOr::Reference {
            reference: format!("#/components/responses/{}", failure.name),
            summary: None,
            description: None,
        };
        responses
            .responses
            .insert(StatusCode::Code(failure.status), reference);
    }
}

/// Describes a header of the request.
pub fn header_parameter(operation: &mut Operation, name: &str, description: &str, schema: Schema) {
    let parameter_data = parameter(name, description, schema);
    operation
        .parameters
        .push(ReferenceOr::Item(Parameter::Header {
            parameter_data,
            style: HeaderStyle::Simple,
        }));
}

/// An optional parameter.
pub fn parameter(name: &str, description: &str, json_schema: Schema) -> ParameterData {
    ParameterData {
        name: name.to_owned(),
        description: Some(description.to_owned()),
        required: false,
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
    }
}
