//! Certificates of receivers are verified with the authorities of the system, and those of the
//! setting `outgoing-ca`.

use std::path::Path;
use std::sync::Arc;

use rustls::crypto::aws_lc_rs;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use rustls_platform_verifier::Verifier;

/// Reads the authorities of the setting.
pub fn authorities(file: Option<&Path>) -> Result<Vec<CertificateDer<'static>>, String> {
    let Some(file) = file else {
        return Ok(Vec::new());
    };
    let unusable = |error: &dyn std::fmt::Display| {
        format!(
            "cannot use the file {} of outgoing-ca: {error}",
            file.display()
        )
    };
    let found = CertificateDer::pem_file_iter(file).map_err(|error| unusable(&error))?;
    let found = found
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| unusable(&error))?;
    let mut roots = RootCertStore::empty();
    let is_usable = found
        .iter()
        .all(|certificate| roots.add(certificate.clone()).is_ok());
    match is_usable && !found.is_empty() {
        true => Ok(found),
        false => Err(unusable(&"it must hold certificates and nothing else")),
    }
}

pub fn client_config(
    authorities: &[CertificateDer<'static>],
) -> Result<ClientConfig, rustls::Error> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let verifier = Verifier::new_with_extra_roots(authorities.iter().cloned(), provider.clone())?;
    let builder =
        ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    Ok(builder
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_no_client_auth())
}
