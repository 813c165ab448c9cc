//! How a hub obtains its credentials and refreshes them.

use serde::{Deserialize, Deserializer, Serialize};

use crate::{HubUuid, TenantUuid, Timestamp};

/// `POST /v1/hubs/claim`: exchanges a claim code for the credentials of a hub.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct HubClaimRequest {
    /// The claim code: 16 letters and digits such as `7K3M-9QXT-0V4B-HD2R`. Case, dashes and blanks
    /// are ignored.
    #[cfg_attr(feature = "schema", schemars(regex(pattern = crate::patterns::CLAIM_CODE)))]
    pub claim_code: String,
    /// The stable hardware identity of the hub, 1 to 200 characters. A number is read as its
    /// digits.
    #[serde(deserialize_with = "string_or_integer")]
    #[cfg_attr(feature = "schema", schemars(with = "StringOrInteger"))]
    pub device_instance_id: String,
    /// A label for people, which the tenant can change later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(length(max = 200), regex(pattern = crate::patterns::LINE)))]
    pub hub_identifier: Option<String>,
    /// The version of the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(length(max = 100), regex(pattern = crate::patterns::LINE)))]
    pub agent_version: Option<String>,
    /// The host name of the machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(length(max = 255), regex(pattern = crate::patterns::LINE)))]
    pub hostname: Option<String>,
    /// The operating system of the machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub os: Option<OperatingSystem>,
    /// The refresh token of the hub's last claim, if it still has one: proof that it is the hub
    /// whose credentials a claim replaces.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(length(max = 200), regex(pattern = crate::patterns::LINE)))]
    pub refresh_token: Option<String>,
}

/// Text, or a whole number that is read as its digits.
#[cfg(feature = "schema")]
#[derive(schemars::JsonSchema)]
#[serde(untagged)]
#[allow(dead_code, reason = "describes the JSON; never built")]
enum StringOrInteger {
    /// Text.
    #[cfg_attr(feature = "schema", schemars(extend("minLength" = 1, "maxLength" = 200, "pattern" = crate::patterns::FILLED_LINE)))]
    Text(String),
    /// A whole number.
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

/// An operating system.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct OperatingSystem {
    /// Its name, such as `Debian GNU/Linux`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(length(max = 100), regex(pattern = crate::patterns::LINE)))]
    pub name: Option<String>,
    /// Its version, such as `12`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(length(max = 100), regex(pattern = crate::patterns::LINE)))]
    pub version: Option<String>,
    /// The architecture of the machine as `uname -m` names it, such as `aarch64`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(length(max = 100), regex(pattern = crate::patterns::LINE)))]
    pub arch: Option<String>,
}

/// The answer to a claim. The refresh token is returned here and never again.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct HubCredentials {
    /// The hub.
    pub hub_uuid: HubUuid,
    /// The tenant that the hub belongs to now.
    pub tenant_uuid: TenantUuid,
    /// Sent as `Authorization: Bearer ...`.
    pub access_token: String,
    /// Gets a new access token when this one has expired.
    pub refresh_token: String,
    /// When the access token expires.
    pub expires_at: Timestamp,
}

/// `POST /v1/hubs/refresh`, with the current access token, even an expired one, in the
/// `Authorization` header.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct HubRefreshRequest {
    /// The refresh token from the claim.
    pub refresh_token: String,
    /// The kernel's id of the machine's boot, by which two machines with the same credentials are
    /// distinguished.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boot_id: Option<String>,
}

/// The answer to a refresh. The refresh token stays as it was.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct HubAccess {
    /// The hub.
    pub hub_uuid: HubUuid,
    /// Replaces the access token before it.
    pub access_token: String,
    /// When the access token expires.
    pub expires_at: Timestamp,
}
