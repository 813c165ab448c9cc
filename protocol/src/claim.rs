//! How a hub obtains its credentials and keeps them fresh.

use serde::{Deserialize, Deserializer, Serialize};

use crate::{HubUuid, TenantUuid, Timestamp};

/// `POST /v1/hubs/claim`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct HubClaimRequest {
    /// `XXXX-XXXX-XXXX-XXXX`; case and dashes do not matter.
    pub claim_code: String,
    /// The hub's stable hardware identity, 1 to 200 characters. A number is read as its digits.
    #[serde(deserialize_with = "string_or_integer")]
    #[cfg_attr(feature = "schema", schemars(with = "StringOrInteger"))]
    pub device_instance_id: String,
    /// A label for people, changed later by the supplier.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hub_identifier: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_version: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hostname: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub os: Option<OperatingSystem>,
}

#[cfg(feature = "schema")]
#[derive(schemars::JsonSchema)]
#[serde(untagged)]
#[allow(dead_code, reason = "describes the JSON; never built")]
enum StringOrInteger {
    Text(String),
    Integer(i64),
}

fn string_or_integer<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    struct Visitor;
    impl serde::de::Visitor<'_> for Visitor {
        type Value = String;
        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("a string or an integer")
        }
        fn visit_str<E>(self, text: &str) -> Result<String, E> {
            Ok(text.to_owned())
        }
        fn visit_i64<E>(self, number: i64) -> Result<String, E> {
            Ok(number.to_string())
        }
        fn visit_u64<E>(self, number: u64) -> Result<String, E> {
            Ok(number.to_string())
        }
    }
    deserializer.deserialize_any(Visitor)
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct OperatingSystem {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arch: Option<String>,
}

/// The answer to a claim. The refresh token is given here and never again.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct HubCredentials {
    pub hub_uuid: HubUuid,
    pub tenant_uuid: TenantUuid,
    pub access_token: String,
    pub refresh_token: String,
    /// When the access token expires.
    pub expires_at: Timestamp,
}

/// `POST /v1/hubs/refresh`, with the current access token in the `Authorization` header.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct HubRefreshRequest {
    pub refresh_token: String,
}

/// The answer to a refresh. The refresh token stays as it was.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct HubAccess {
    pub hub_uuid: HubUuid,
    pub access_token: String,
    pub expires_at: Timestamp,
}
