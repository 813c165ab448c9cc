//! The file of the hub's client certificate and its key. Only its owner can read it, and it is
//! bound to the hub and the tenant it was issued to.

use hub_protocol::{HubUuid, TenantUuid, Timestamp};
use secrecy::SecretString;
use serde::{Deserialize, Serialize};

use super::tls::Identity;
use crate::identity::{Credentials, StateDir};

pub const FILE: &str = "client-certificate.json";

/// The key of the next certificate, from before it is requested until it is stored.
pub const NEXT_KEY_FILE: &str = "client-certificate.key";

/// A certificate and its key.
#[derive(Clone, Debug)]
pub struct Certificate {
    hub_uuid: HubUuid,
    tenant_uuid: TenantUuid,
    pub not_before: Timestamp,
    pub not_after: Timestamp,
    /// Key, certificate and chain, in the form that TLS needs.
    pem: SecretString,
}

/// The file's content.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct CertificateFile {
    pub hub_uuid: HubUuid,
    pub tenant_uuid: TenantUuid,
    pub serial_number: String,
    pub not_before: Timestamp,
    pub not_after: Timestamp,
    pub pem: String,
}

impl From<CertificateFile> for Certificate {
    fn from(file: CertificateFile) -> Self {
        Self {
            hub_uuid: file.hub_uuid,
            tenant_uuid: file.tenant_uuid,
            not_before: file.not_before,
            not_after: file.not_after,
            pem: file.pem.into(),
        }
    }
}

impl Certificate {
    /// The certificate on disk, if it was issued to the owner of these credentials. A damaged file
    /// counts as none.
    pub fn load(state_dir: &StateDir, credentials: &Credentials) -> Option<Self> {
        let bytes = std::fs::read(state_dir.path().join(FILE)).ok()?;
        let Ok(file) = serde_json::from_slice::<CertificateFile>(&bytes) else {
            tracing::warn!("the file of the client certificate is damaged; a new one is requested");
            return None;
        };
        let certificate = Self::from(file);
        certificate.is_of(credentials).then_some(certificate)
    }

    pub fn is_of(&self, credentials: &Credentials) -> bool {
        (self.hub_uuid, self.tenant_uuid) == (credentials.hub_uuid, credentials.tenant_uuid)
    }

    /// When two thirds of its life are over.
    pub fn renew_at(&self) -> Timestamp {
        let life_micros = self
            .not_after
            .as_micros()
            .saturating_sub(self.not_before.as_micros());
        self.not_before.plus_micros(life_micros / 3 * 2)
    }

    pub fn identity(&self) -> Option<Identity> {
        Identity::from_pem(&self.pem)
            .inspect_err(|error| tracing::warn!(%error, "the client certificate cannot be used"))
            .ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_renewed_at_two_thirds_of_its_life() {
        let certificate = Certificate {
            hub_uuid: HubUuid::new(),
            tenant_uuid: TenantUuid::new(),
            not_before: "2026-11-01T00:00:00Z".parse().unwrap(),
            not_after: "2027-01-30T00:00:00Z".parse().unwrap(),
            pem: "secret".to_owned().into(),
        };
        assert_eq!(
            certificate.renew_at(),
            "2026-12-31T00:00:00Z".parse().unwrap()
        );
        assert!(!format!("{certificate:?}").contains("secret"));
    }
}
