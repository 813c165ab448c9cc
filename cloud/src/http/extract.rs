//! What a handler takes out of a request besides who sends it: path, query, JSON body. Whatever does not fit is a 400 that names the field.

use std::convert::Infallible;
use std::marker::PhantomData;

use aide::OperationInput;
use aide::generate::GenContext;
use aide::openapi::Operation;
use axum::extract::path::ErrorKind;
use axum::extract::rejection::{PathRejection, RawPathParamsRejection};
use axum::extract::{FromRequest, FromRequestParts, RawPathParams, Request};
use axum::http::request::Parts;
use bytes::Bytes;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use super::body;
use crate::app::App;
use crate::authn::hub::UploadingHub;
use crate::error::{Error, Result};

/// Path parameters. Documented from the route's template, see `openapi`.
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

/// A parameter of the path as it was sent, for extractors that look at one of them by name.
pub async fn path_parameter<S: Send + Sync>(parts: &mut Parts, state: &S, name: &str) -> Result<Option<String>> {
    match RawPathParams::from_request_parts(parts, state).await {
        Ok(params) => Ok(params.iter().find(|(other, _)| *other == name).map(|(_, value)| value.to_owned())),
        Err(RawPathParamsRejection::InvalidUtf8InPathParam(error)) => {
            Err(Error::field(quoted_name(&error.body_text()).unwrap_or("path"), "must be UTF-8"))
        }
        // The path has no parameters.
        Err(_) => Ok(None),
    }
}

async fn path_error<S: Send + Sync>(rejection: PathRejection, parts: &mut Parts, state: &S) -> Error {
    let PathRejection::FailedToDeserializePathParams(error) = rejection else { return Error::internal(rejection) };
    let names: Vec<String> = match RawPathParams::from_request_parts(parts, state).await {
        Ok(params) => params.iter().map(|(name, _)| name.to_owned()).collect(),
        Err(_) => Vec::new(),
    };
    let name_at = |index: usize| names.get(index).cloned().unwrap_or_else(|| "path".to_owned());
    let field = match error.kind() {
        ErrorKind::ParseErrorAtKey { key, .. } | ErrorKind::InvalidUtf8InPathParam { key } => key.clone(),
        ErrorKind::ParseErrorAtIndex { index, .. } => name_at(*index),
        // A tuple's uuid fails without saying which one it was: find the parameter that is none.
        _ if names.len() > 1 => first_bad_uuid(parts, state).await.unwrap_or_else(|| name_at(0)),
        _ => name_at(0),
    };
    Error::field(field, "is not a valid value here")
}

async fn first_bad_uuid<S: Send + Sync>(parts: &mut Parts, state: &S) -> Option<String> {
    let params = RawPathParams::from_request_parts(parts, state).await.ok()?;
    params
        .iter()
        .find(|(name, value)| name.to_lowercase().ends_with("uuid") && uuid::Uuid::parse_str(value).is_err())
        .map(|(name, _)| name.to_owned())
}

impl<T> OperationInput for Path<T> {}

/// Query parameters.
#[derive(Debug)]
pub struct Query<T>(pub T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Query<T> {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self> {
        let query = parts.uri.query().unwrap_or_default();
        let pairs = form_urlencoded::parse(query.as_bytes());
        // `from=` says the same as no `from`.
        let pairs = pairs.filter(|(_, value)| !value.is_empty());
        let deserializer = serde::de::value::MapDeserializer::new(pairs.map(|(name, value)| (name, Text(value))));
        serde_path_to_error::deserialize(deserializer).map(Self).map_err(|error| {
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

/// A query value: text that becomes whatever type the field has.
struct Text<'a>(std::borrow::Cow<'a, str>);

impl<'de> serde::de::IntoDeserializer<'de, serde::de::value::Error> for Text<'de> {
    type Deserializer = Self;
    fn into_deserializer(self) -> Self {
        self
    }
}

/// Reads the text as the type asked for; the error says what would have fitted.
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

    fn deserialize_any<V: serde::de::Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
        match self.0 {
            std::borrow::Cow::Borrowed(text) => visitor.visit_borrowed_str(text),
            std::borrow::Cow::Owned(text) => visitor.visit_string(text),
        }
    }

    fn deserialize_option<V: serde::de::Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
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
    }
}

/// A JSON body of at most [`body::MAX_JSON_BYTES`].
#[derive(Debug)]
pub struct Json<T>(pub T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for Json<T> {
    type Rejection = Error;

    async fn from_request(request: Request, _: &S) -> Result<Self> {
        let bytes = body::read_json(request).await?;
        parse_object(&bytes).map(Self)
    }
}

/// [`parse_json`] of an object. Serde would take an array for a structure too, its elements for the members in their order.
pub fn parse_object<'de, T: serde::Deserialize<'de>>(bytes: &'de [u8]) -> Result<T> {
    match bytes.trim_ascii_start().first() {
        Some(b'[') => Err(Error::field("body", "must be an object, not an array")),
        _ => parse_json(bytes),
    }
}

/// Reads JSON, telling text that is no JSON apart from JSON of the wrong shape.
pub fn parse_json<'de, T: serde::Deserialize<'de>>(bytes: &'de [u8]) -> Result<T> {
    // Checked whole: the parser would pass over members that nobody reads.
    let text = std::str::from_utf8(bytes)
        .map_err(|error| Error::bad_request("MALFORMED_JSON", format!("the body is not UTF-8: {error}")))?;
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let value = serde_path_to_error::deserialize(&mut deserializer).map_err(|error| {
        let path = error.path().to_string();
        let error = error.into_inner();
        match error.classify() {
            serde_json::error::Category::Data => {
                let message = plain(&error.to_string());
                let missing = message.strip_prefix("missing field").and_then(|rest| quoted_name(rest));
                let field = match (path.as_str(), missing) {
                    (".", Some(name)) => name.to_owned(),
                    (_, Some(name)) => format!("{path}.{name}"),
                    (".", None) => "body".to_owned(),
                    (_, None) => path,
                };
                Error::field(field, message)
            }
            // A number where one of several words belongs is a syntax error to serde_json; to a client it is a wrong value.
            _ if serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok() => {
                Error::field(if path == "." { "body".to_owned() } else { path }, "is of the wrong type")
            }
            _ => malformed(&error),
        }
    })?;
    deserializer.end().map_err(|error| malformed(&error))?;
    Ok(value)
}

fn malformed(error: &serde_json::Error) -> Error {
    Error::bad_request("MALFORMED_JSON", format!("the body is not JSON: {error}"))
}

/// Serde's message for people: without " at line 1 column 2", since the field is named instead, and without the names of our own types.
pub fn plain(message: &str) -> String {
    let message = message.split(" at line ").next().unwrap_or(message);
    let Some((found, expected)) = message.split_once(", expected ") else { return message.to_owned() };
    let expected = match expected.split(' ').next().unwrap_or_default() {
        "struct" => "an object",
        "i8" | "i16" | "i32" | "i64" | "u8" | "u16" | "u32" | "u64" => "a whole number",
        "f32" | "f64" => "a number",
        _ => expected,
    };
    format!("{found}, expected {expected}")
}

impl<T: JsonSchema> OperationInput for Json<T> {
    fn operation_input(ctx: &mut GenContext, operation: &mut Operation) {
        axum::Json::<T>::operation_input(ctx, operation);
    }
}

/// An upload's body, unpacked, or what is wrong with it, which the handler passes on. `T` is what it holds, for the API description.
pub struct UploadBody<T>(pub Result<Bytes>, PhantomData<fn() -> T>);

impl<T> FromRequest<App> for UploadBody<T> {
    type Rejection = Infallible;

    async fn from_request(request: Request, app: &App) -> std::result::Result<Self, Infallible> {
        Ok(Self(read_upload(request, app).await, PhantomData))
    }
}

async fn read_upload(request: Request, app: &App) -> Result<Bytes> {
    let hub = request.extensions().get::<UploadingHub>().cloned();
    match body::read_upload(request).await? {
        body::Upload::Ready(bytes) => Ok(bytes),
        body::Upload::Packed(packed) => {
            // A few bytes may unpack to many, which is no service to a hub that was blocked.
            if let Some(UploadingHub(hub)) = hub {
                hub.require_in_force(app).await?;
            }
            packed.unpack().await
        }
    }
}

impl<T: JsonSchema> OperationInput for UploadBody<T> {
    fn operation_input(ctx: &mut GenContext, operation: &mut Operation) {
        axum::Json::<T>::operation_input(ctx, operation);
    }
}
