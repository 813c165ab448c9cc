//! The credentials of an S3 bucket, with where it is.

use secrecy::{ExposeSecret, SecretString};
use serde_json::{Value, json};

use crate::auth::{Form, MAX_NAME_BYTES, MAX_SECRET_BYTES, ShownAuth};

pub const FORM: Form = Form {
    name: "S3",
    members: &[
        "type",
        "accessKeyId",
        "secretAccessKey",
        "region",
        "endpoint",
    ],
    check: |fields| {
        let members = &fields.members;
        let id = members.required("accessKeyId", MAX_NAME_BYTES)?;
        if !id.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(members.problem("accessKeyId", "must be of letters, digits and signs"));
        }
        fields.secret("secretAccessKey")?;
        let mut value = json!({"type": "S3", "accessKeyId": id});
        for name in ["region", "endpoint"] {
            if let (Some(text), Some(shown)) =
                (members.text(name, MAX_SECRET_BYTES)?, value.as_object_mut())
            {
                shown.insert(name.to_owned(), text.into());
            }
        }
        Ok(ShownAuth::new(value))
    },
};

pub struct Keys {
    pub access_key_id: String,
    pub secret_access_key: SecretString,
}

impl Keys {
    /// From the JSON text that was sealed.
    pub fn open(secrets: &SecretString) -> Option<Self> {
        let secrets: Value = serde_json::from_str(secrets.expose_secret()).ok()?;
        let value = secrets.get("auth")?;
        let text = |name: &str| Some(value.get(name)?.as_str()?.to_owned());
        if text("type")? != "S3" {
            return None;
        }
        Some(Self {
            access_key_id: text("accessKeyId")?,
            secret_access_key: text("secretAccessKey")?.into(),
        })
    }
}
