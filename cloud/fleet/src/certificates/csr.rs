//! Certificate signing requests (PKCS#10). Only the key is taken from a request, after the request
//! has proved that its sender holds the private key.

use hub_base::error::{Error, Result};
use rcgen::SubjectPublicKeyInfo;
use rustls::pki_types::CertificateSigningRequestDer;
use rustls::pki_types::pem::PemObject;
use x509_parser::certification_request::X509CertificationRequest;
use x509_parser::error::X509Error;
use x509_parser::oid_registry::{OID_PKCS1_SHA1WITHRSA, OID_SHA1_WITH_RSA};
use x509_parser::prelude::FromDer;
use x509_parser::public_key::PublicKey;

/// The limit, above the size of a request for the largest accepted key with many (ignored) names.
const MAX_BYTES: usize = 16 * 1024;
const RSA_BYTES: std::ops::RangeInclusive<usize> = 256..=1024;

const KEYS: &str = "must be for a P-256, P-384, Ed25519 or RSA key (2,048 to 8,192 bits), signed with it and with SHA-256 or SHA-384 \
    (RSA: SHA-512 too)";

/// The public key of the request. An invalid request is refused with 400 on the field `csr`.
pub fn requested_key(csr: &str) -> Result<SubjectPublicKeyInfo> {
    let refused = |message: &str| Error::field("csr", message);
    if csr.len() > MAX_BYTES {
        return Err(refused("may have at most 16 KiB"));
    }
    let malformed = || {
        refused(
            "must be a PKCS#10 request in PEM form, which begins with -----BEGIN CERTIFICATE REQUEST-----",
        )
    };
    // An older label of the same format (RFC 7468, 7), written by keytool and `openssl req
    // -newhdr`.
    let csr = csr
        .replace("-----BEGIN NEW ", "-----BEGIN ")
        .replace("-----END NEW ", "-----END ");
    let der =
        CertificateSigningRequestDer::from_pem_slice(csr.as_bytes()).map_err(|_| malformed())?;
    let (rest, request) = X509CertificationRequest::from_der(&der).map_err(|_| malformed())?;
    if !rest.is_empty() {
        return Err(malformed());
    }
    let key = &request.certification_request_info.subject_pki;
    if let Ok(PublicKey::RSA(rsa)) = key.parsed() {
        let leading_zeros = rsa.modulus.iter().take_while(|byte| **byte == 0).count();
        if !RSA_BYTES.contains(&(rsa.modulus.len() - leading_zeros)) {
            return Err(refused(KEYS));
        }
    }
    let algorithm = &request.signature_algorithm.algorithm;
    if *algorithm == OID_PKCS1_SHA1WITHRSA || *algorithm == OID_SHA1_WITH_RSA {
        return Err(refused(KEYS));
    }
    match request.verify_signature() {
        Ok(()) => SubjectPublicKeyInfo::from_der(key.raw).map_err(|_| refused(KEYS)),
        Err(X509Error::SignatureUnsupportedAlgorithm) => Err(refused(KEYS)),
        Err(_) => Err(refused("is not signed with the key it is for")),
    }
}

#[cfg(test)]
mod tests {
    use rcgen::{
        CertificateParams, KeyPair, PKCS_ECDSA_P384_SHA384, PKCS_ECDSA_P521_SHA512, PKCS_ED25519,
        PKCS_RSA_SHA256,
    };
    use rcgen::{CustomExtension, PublicKeyData, SanType, SignatureAlgorithm};

    use super::*;

    fn request(
        algorithm: &'static SignatureAlgorithm,
    ) -> (KeyPair, rcgen::CertificateSigningRequest) {
        let key = KeyPair::generate_for(algorithm).expect("a key");
        let mut params =
            CertificateParams::new(["router.example.com".to_owned()]).expect("parameters");
        params.subject_alt_names.push(SanType::Rfc822Name(
            "a@example.com".try_into().expect("an address"),
        ));
        // An unknown extension.
        params
            .custom_extensions
            .push(CustomExtension::from_oid_content(
                &[1, 3, 6, 1, 4, 1, 99999, 1],
                vec![5, 0],
            ));
        let request = params.serialize_request(&key).expect("a request");
        (key, request)
    }

    #[test]
    fn only_the_key_is_taken_from_a_request() {
        for algorithm in [
            &rcgen::PKCS_ECDSA_P256_SHA256,
            &PKCS_ECDSA_P384_SHA384,
            &PKCS_ED25519,
            &PKCS_RSA_SHA256,
        ] {
            let (key, request) = request(algorithm);
            let key_info = requested_key(&request.pem().expect("PEM")).expect("a good request");
            assert_eq!(
                key_info.subject_public_key_info(),
                key.subject_public_key_info(),
                "{algorithm:?}"
            );
            let older = request
                .pem()
                .expect("PEM")
                .replace("CERTIFICATE REQUEST", "NEW CERTIFICATE REQUEST");
            let key_info = requested_key(&older).expect("a good request");
            assert_eq!(
                key_info.subject_public_key_info(),
                key.subject_public_key_info(),
                "{algorithm:?}"
            );
        }
    }

    #[test]
    fn errors_name_the_reason_of_a_refused_request() {
        let (_, good) = request(&rcgen::PKCS_ECDSA_P256_SHA256);
        let pem = good.pem().expect("PEM");
        let armoured = |der: &[u8], label: &str| {
            use base64::Engine;
            let text = base64::engine::general_purpose::STANDARD.encode(der);
            format!("-----BEGIN {label}-----\n{text}\n-----END {label}-----\n")
        };
        let der: &[u8] = good.der();
        let mut forged = der.to_vec();
        // The last bytes belong to the signature.
        let last = forged.len() - 1;
        forged[last] ^= 1;
        let mut renamed = der.to_vec();
        let at = renamed
            .windows(6)
            .position(|bytes| bytes == b"router")
            .expect("a name");
        renamed[at] = b'R';
        let label = "CERTIFICATE REQUEST";
        let (_, p521) = request(&PKCS_ECDSA_P521_SHA512);
        for (csr, reason) in [
            (String::new(), "PKCS#10"),
            ("-----BEGIN CERTIFICATE REQUEST-----".to_owned(), "PKCS#10"),
            (pem.replace("CERTIFICATE REQUEST", "CERTIFICATE"), "PKCS#10"),
            (armoured(b"\x30\x00", label), "PKCS#10"),
            (armoured(&[der, &[0]].concat(), label), "PKCS#10"),
            (armoured(&der[..der.len() / 2], label), "PKCS#10"),
            (armoured(&forged, label), "not signed with the key"),
            (armoured(&renamed, label), "not signed with the key"),
            (p521.pem().expect("PEM"), "P-256"),
            (format!("{pem}{}", " ".repeat(MAX_BYTES)), "16 KiB"),
        ] {
            let error = requested_key(&csr).expect_err("a refusal");
            assert_eq!(error.status(), 400);
            assert!(
                error.to_string().contains("csr") && error.to_string().contains(reason),
                "{error}: {csr}"
            );
        }
    }
}
