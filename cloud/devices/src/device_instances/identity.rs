//! What identifies a device on the air, in its normalised form: two devices of a tenant that are
//! not retired never share any of it.

use hub_core::http::check::Check;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

const NAMESPACE_BYTES: usize = 10;
const INSTANCE_BYTES: usize = 6;
const MAX_NUMBER: i64 = 65_535;

/// The content of a beacon. An iBeacon has `uuid`, `major` and `minor`; an Eddystone-UID beacon has
/// `namespace` and `instance`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Beacon {
    /// The proximity UUID of an iBeacon.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uuid: Option<Uuid>,
    /// The major number of an iBeacon.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = MAX_NUMBER))]
    pub major: Option<i64>,
    /// The minor number of an iBeacon.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = MAX_NUMBER))]
    pub minor: Option<i64>,
    /// The namespace of an Eddystone-UID beacon: 10 bytes as hex digits.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = "^[0-9A-Fa-f]{20}$"))]
    pub namespace: Option<String>,
    /// The instance of an Eddystone-UID beacon: 6 bytes as hex digits.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = "^[0-9A-Fa-f]{12}$"))]
    pub instance: Option<String>,
}

impl Beacon {
    /// Adds what is wrong with it.
    pub fn check(&self, check: &mut Check) {
        if self.namespace.is_none() && self.instance.is_none() {
            check.that(
                self.uuid.is_some(),
                "beacon.uuid",
                "is required unless `namespace` and `instance` are given",
            );
            for (field, number) in [("beacon.major", self.major), ("beacon.minor", self.minor)] {
                let fits = number.is_some_and(|number| (0..=MAX_NUMBER).contains(&number));
                check.that(fits, field, format!("must be between 0 and {MAX_NUMBER}"));
            }
            return;
        }
        let hex = [
            ("beacon.namespace", &self.namespace, NAMESPACE_BYTES),
            ("beacon.instance", &self.instance, INSTANCE_BYTES),
        ];
        for (field, text, bytes) in hex {
            let fits = text.as_deref().is_some_and(|text| is_hex(text, bytes));
            check.that(fits, field, format!("must be {} hex digits", 2 * bytes));
        }
        let foreign = [
            ("beacon.uuid", self.uuid.is_some()),
            ("beacon.major", self.major.is_some()),
            ("beacon.minor", self.minor.is_some()),
        ];
        for (field, is_given) in foreign {
            check.that(
                !is_given,
                field,
                "must not be given together with `namespace` or `instance`",
            );
        }
    }

    /// The text `IBEACON <uuid>/<major>/<minor>` or `EDDYSTONE_UID <namespace>/<instance>`, in
    /// lower-case digits; None if the beacon is not valid.
    pub fn to_text(&self) -> Option<String> {
        match self {
            Self {
                uuid: Some(uuid),
                major: Some(major),
                minor: Some(minor),
                ..
            } => Some(format!("IBEACON {uuid}/{major}/{minor}")),
            Self {
                namespace: Some(namespace),
                instance: Some(instance),
                ..
            } => {
                let digits = format!("{namespace}/{instance}").to_ascii_lowercase();
                Some(format!("EDDYSTONE_UID {digits}"))
            }
            _ => None,
        }
    }

    /// The beacon of a normalised text.
    pub fn from_text(text: &str) -> Option<Self> {
        let (kind, parts) = text.split_once(' ')?;
        let mut parts = parts.split('/');
        match kind {
            "IBEACON" => Some(Self {
                uuid: Some(parts.next()?.parse().ok()?),
                major: Some(parts.next()?.parse().ok()?),
                minor: Some(parts.next()?.parse().ok()?),
                namespace: None,
                instance: None,
            }),
            "EDDYSTONE_UID" => Some(Self {
                uuid: None,
                major: None,
                minor: None,
                namespace: Some(parts.next()?.to_owned()),
                instance: Some(parts.next()?.to_owned()),
            }),
            _ => None,
        }
    }
}

fn is_hex(text: &str, bytes: usize) -> bool {
    text.len() == 2 * bytes && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn beacon(json: &str) -> Beacon {
        serde_json::from_str(json).expect("a beacon")
    }

    #[test]
    fn a_beacon_has_one_normalised_text() {
        let eddystone = beacon(r#"{"namespace":"0123456789ABCDEF0123","instance":"ABCDEF012345"}"#);
        let text = eddystone.to_text().expect("a text");
        assert_eq!(text, "EDDYSTONE_UID 0123456789abcdef0123/abcdef012345");
        let read = Beacon::from_text(&text).expect("a beacon");
        assert_eq!(read.to_text().as_deref(), Some(text.as_str()));
        let ibeacon =
            beacon(r#"{"uuid":"E2C56DB5-DFFB-48D2-B060-D0F5A71096E0","major":7,"minor":65535}"#);
        let text = ibeacon.to_text().expect("a text");
        assert_eq!(text, "IBEACON e2c56db5-dffb-48d2-b060-d0f5a71096e0/7/65535");
        assert_eq!(Beacon::from_text(&text), Some(ibeacon));
        assert_eq!(Beacon::from_text("IBEACON 7"), None);
    }

    #[test]
    fn incomplete_and_mixed_beacons_are_refused() {
        for json in [
            "{}",
            r#"{"uuid":"e2c56db5-dffb-48d2-b060-d0f5a71096e0","major":7}"#,
            r#"{"uuid":"e2c56db5-dffb-48d2-b060-d0f5a71096e0","major":-1,"minor":0}"#,
            r#"{"uuid":"e2c56db5-dffb-48d2-b060-d0f5a71096e0","major":0,"minor":65536}"#,
            r#"{"namespace":"0123456789abcdef0123"}"#,
            r#"{"namespace":"0123456789abcdef012","instance":"abcdef012345"}"#,
            r#"{"namespace":"0123456789abcdef0123","instance":"abcdef01234g"}"#,
            r#"{"namespace":"0123456789abcdef0123","instance":"abcdef012345","major":1}"#,
        ] {
            let mut check = Check::new();
            beacon(json).check(&mut check);
            check.done().expect_err(json);
        }
    }
}
