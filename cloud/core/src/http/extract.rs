//! The extractors for the content of a request: path, query and JSON body. Invalid content is a 400
//! that names the field.

use aide::OperationInput;
use aide::generate::GenContext;
use aide::openapi::{Operation, ReferenceOr};
use axum::body::HttpBody;
use axum::extract::path::ErrorKind;
use axum::extract::rejection::{PathRejection, RawPathParamsRejection};
use axum::extract::{FromRef, FromRequest, FromRequestParts, RawPathParams, Request};
use axum::http::request::Parts;
use hub_base::bodies::INLINE_BYTES;
use hub_base::error::{Error, Result};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use super::body;
use super::describe::may_fail;
use super::file::hold_arriving;
use super::strict::Strict;
use crate::Core;

/// Path parameters: one of the structures of `paths`.
#[derive(Debug)]
pub struct Path<T>(pub T);

impl<T: DeserializeOwned + Send, S: Send + Sync> FromRequestParts<S> for Path<T> {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self> {
        match axum::extract::Path::<T>::from_request_parts(parts, state).await {
            Ok(axum::extract::Path(value)) => Ok(Self(value)),
            Err(rejection) => Err(path_error(rejection, parts, state).await),
        }
    }
}

/// A parameter of the path as it was sent, for extractors that read one of them by name.
pub async fn path_parameter<S: Send + Sync>(
    parts: &mut Parts,
    state: &S,
    name: &str,
) -> Result<Option<String>> {
    match RawPathParams::from_request_parts(parts, state).await {
        Ok(params) => Ok(params
            .iter()
            .find(|(other, _)| *other == name)
            .map(|(_, value)| value.to_owned())),
        Err(RawPathParamsRejection::InvalidUtf8InPathParam(error)) => Err(Error::field(
            quoted_name(&error.body_text()).unwrap_or("path"),
            "must be UTF-8",
        )),
        // The path has no parameters.
        Err(_) => Ok(None),
    }
}

async fn path_error<S: Send + Sync>(
    rejection: PathRejection,
    parts: &mut Parts,
    state: &S,
) -> Error {
    let PathRejection::FailedToDeserializePathParams(error) = rejection else {
        return Error::internal(rejection);
    };
    let field = match error.kind() {
        ErrorKind::ParseErrorAtKey { key, .. }
        | ErrorKind::DeserializeError { key, .. }
        | ErrorKind::InvalidUtf8InPathParam { key } => key.clone(),
        // The error of a uuid does not name the parameter, so this looks for the one that is not a
        // uuid.
        _ => first_bad_uuid(parts, state)
            .await
            .unwrap_or_else(|| "path".to_owned()),
    };
    Error::field(field, "is not a valid value")
}

async fn first_bad_uuid<S: Send + Sync>(parts: &mut Parts, state: &S) -> Option<String> {
    let params = RawPathParams::from_request_parts(parts, state).await.ok()?;
    params
        .iter()
        .find(|(name, value)| {
            name.to_lowercase().ends_with("uuid") && uuid::Uuid::parse_str(value).is_err()
        })
        .map(|(name, _)| name.to_owned())
}

impl<T: JsonSchema> OperationInput for Path<T> {
    fn operation_input(ctx: &mut GenContext, operation: &mut Operation) {
        axum::extract::Path::<T>::operation_input(ctx, operation);
    }
}

/// Query parameters.
#[derive(Debug)]
pub struct Query<T>(pub T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Query<T> {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self> {
        let query = parts.uri.query().unwrap_or_default();
        let pairs = form_urlencoded::parse(query.as_bytes());
        // `from=` is the same as no `from`.
        let pairs = pairs.filter(|(_, value)| !value.is_empty());
        let deserializer =
            serde::de::value::MapDeserializer::new(pairs.map(|(name, value)| (name, Text(value))));
        serde_path_to_error::deserialize(deserializer)
            .map(Self)
            .map_err(|error| {
                let field = error.path().to_string();
                let message = error.into_inner().to_string();
                match field.as_str() {
                    "." => Error::field(quoted_name(&message).unwrap_or("query"), message.clone()),
                    _ => Error::field(field, message),
                }
            })
    }
}

/// The name in a message such as "missing field `category`".
fn quoted_name(message: &str) -> Option<&str> {
    message.split('`').nth(1)
}

/// A query value: text that is converted to the type of the field.
struct Text<'a>(std::borrow::Cow<'a, str>);

impl<'de> serde::de::IntoDeserializer<'de, serde::de::value::Error> for Text<'de> {
    type Deserializer = Self;
    fn into_deserializer(self) -> Self {
        self
    }
}

/// Parses the text as the requested type; the error names the accepted form.
macro_rules! parse_as {
    ($($method:ident => $visit:ident: $type:ty, $expected:literal);* $(;)?) => {$(
        fn $method<V: serde::de::Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
            match self.0.parse::<$type>() {
                Ok(value) => visitor.$visit(value),
                Err(_) => Err(serde::de::Error::custom(concat!("must be ", $expected))),
            }
        }
    )*};
}

impl<'de> serde::Deserializer<'de> for Text<'de> {
    type Error = serde::de::value::Error;

    fn deserialize_any<V: serde::de::Visitor<'de>>(
        self,
        visitor: V,
    ) -> Result<V::Value, Self::Error> {
        match self.0 {
            std::borrow::Cow::Borrowed(text) => visitor.visit_borrowed_str(text),
            std::borrow::Cow::Owned(text) => visitor.visit_string(text),
        }
    }

    fn deserialize_option<V: serde::de::Visitor<'de>>(
        self,
        visitor: V,
    ) -> Result<V::Value, Self::Error> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: serde::de::Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Self::Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: serde::de::Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Self::Error> {
        let deserializer: serde::de::value::StrDeserializer<'_, Self::Error> =
            serde::de::IntoDeserializer::into_deserializer(self.0.as_ref());
        serde::Deserializer::deserialize_enum(deserializer, name, variants, visitor)
    }

    parse_as! {
        deserialize_bool => visit_bool: bool, "true or false";
        deserialize_i32 => visit_i32: i32, "a whole number";
        deserialize_i64 => visit_i64: i64, "a whole number";
        deserialize_u64 => visit_u64: u64, "a whole number of 0 or more";
    }

    serde::forward_to_deserialize_any! {
        i8 i16 i128 u8 u16 u32 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq tuple tuple_struct
        map struct identifier ignored_any
    }
}

impl<T: JsonSchema> OperationInput for Query<T> {
    fn operation_input(ctx: &mut GenContext, operation: &mut Operation) {
        axum::extract::Query::<T>::operation_input(ctx, operation);
        may_fail(operation, &[400]);
    }
}

/// A JSON body of at most [`body::MAX_JSON_BYTES`].
#[derive(Debug)]
pub struct Json<T>(pub T);

impl<T, S> FromRequest<S> for Json<T>
where
    T: DeserializeOwned + Send + 'static,
    S: Send + Sync,
    Core: FromRef<S>,
{
    type Rejection = Error;

    async fn from_request(request: Request, state: &S) -> Result<Self> {
        let core = Core::from_ref(state);
        let mut held = hold_arriving(&core);
        let bytes = body::read_json(request, &mut held).await?;
        let parsed = match bytes.len() {
            ..=INLINE_BYTES => parse_json(&bytes),
            _ => {
                let parse = move || {
                    let _held = held;
                    parse_json(&bytes)
                };
                core.bodies.work(parse).await?
            }
        };
        parsed.map(Self)
    }
}

/// A JSON body that may be absent, which is the same as an empty object.
#[derive(Debug)]
pub struct JsonOrNothing<T>(pub T);

impl<T, S> FromRequest<S> for JsonOrNothing<T>
where
    T: DeserializeOwned + Default + Send + 'static,
    S: Send + Sync,
    Core: FromRef<S>,
{
    type Rejection = Error;

    async fn from_request(request: Request, state: &S) -> Result<Self> {
        if request.body().size_hint().exact() == Some(0) {
            return Ok(Self(T::default()));
        }
        Json::from_request(request, state)
            .await
            .map(|Json(value)| Self(value))
    }
}

impl<T: JsonSchema> OperationInput for JsonOrNothing<T> {
    fn operation_input(ctx: &mut GenContext, operation: &mut Operation) {
        Json::<T>::operation_input(ctx, operation);
        if let Some(ReferenceOr::Item(body)) = &mut operation.request_body {
            body.required = false;
        }
    }
}

/// Parses the body of a request. Distinguishes text that is not JSON from JSON of the wrong shape.
pub fn parse_json<'de, T: serde::Deserialize<'de>>(bytes: &'de [u8]) -> Result<T> {
    // Checked as a whole, since the parser would skip members that are not read.
    let text = std::str::from_utf8(bytes).map_err(|error| {
        Error::bad_request("MALFORMED_JSON", format!("the body is not UTF-8: {error}"))
    })?;
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let value = serde_path_to_error::deserialize(Strict(&mut deserializer)).map_err(|error| {
        let path = error.path().to_string();
        let error = error.into_inner();
        match error.classify() {
            serde_json::error::Category::Data => {
                let message = plain(&error.to_string());
                let missing = message
                    .strip_prefix("missing field")
                    .and_then(|rest| quoted_name(rest));
                let field = match (path.as_str(), missing) {
                    (".", Some(name)) => name.to_owned(),
                    (_, Some(name)) => format!("{path}.{name}"),
                    (".", None) => "body".to_owned(),
                    (_, None) => path,
                };
                Error::field(field, message)
            }
            // serde_json treats a number in place of one of several words as a syntax error. For a
            // client, it is an invalid value.
            _ if serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok() => Error::field(
                if path == "." { "body".to_owned() } else { path },
                "is of the wrong type",
            ),
            _ => malformed(&error),
        }
    })?;
    deserializer.end().map_err(|error| malformed(&error))?;
    Ok(value)
}

fn malformed(error: &serde_json::Error) -> Error {
    Error::bad_request("MALFORMED_JSON", format!("the body is not JSON: {error}"))
}

/// Serde's message, made suitable for clients: without " at line 1 column 2", since the error names
/// the field, and without the names of internal types.
pub fn plain(message: &str) -> String {
    let message = message.split(" at line ").next().unwrap_or(message);
    let Some((found, expected)) = message.split_once(", expected ") else {
        return message.to_owned();
    };
    let expected = match expected.split(' ').next().unwrap_or_default() {
        "struct" => "an object",
        "i8" | "i16" | "i32" | "i64" | "u8" | "u16" | "u32" | "u64" => "a whole number",
        "f32" | "f64" => "a number",
        _ => expected,
    };
    format!("{found}, expected {expected}")
}

/// The failures of reading a body, besides 503, which every operation has.
pub const BODY_FAILURES: [u16; 5] = [400, 408, 413, 415, 429];

impl<T: JsonSchema> OperationInput for Json<T> {
    fn operation_input(ctx: &mut GenContext, operation: &mut Operation) {
        axum::Json::<T>::operation_input(ctx, operation);
        may_fail(operation, &BODY_FAILURES);
    }
}
