//! Builds X.509 certificates, and reads the few fields that decide something. A certificate request
//! determines nothing but the key.

use hub_base::error::{Error, Result};
use hub_base::sealing;
use hub_protocol::{HubUuid, Timestamp};
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose, PKCS_ECDSA_P256_SHA256, SanType, SerialNumber,
    SubjectPublicKeyInfo,
};
use rustls::pki_types::PrivatePkcs8KeyDer;
use time::OffsetDateTime;

const SERIAL_BYTES: usize = 16;

/// The validity of a certificate, in whole seconds, the resolution of X.509.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Validity {
    pub not_before: Timestamp,
    pub not_after: Timestamp,
}

impl Validity {
    pub fn seconds(not_before: Timestamp, not_after: Timestamp) -> Self {
        let whole = |time: Timestamp| Timestamp::from_micros(time.as_secs() * 1_000_000);
        Self {
            not_before: whole(not_before),
            not_after: whole(not_after),
        }
    }
}

/// An authority that can sign: its certificate in PEM form, and its private key (PKCS#8).
pub struct Signer {
    pub certificate: String,
    pub private_key: Vec<u8>,
}

/// Creates a self-signed certificate that may sign issuing authorities, which in turn may sign only
/// certificates of hubs.
pub fn create_root(name: &str, validity: Validity) -> Result<Signer> {
    let key = KeyPair::generate().map_err(Error::internal)?;
    let certificate = authority(name, validity, 1)?
        .self_signed(&key)
        .map_err(Error::internal)?;
    Ok(Signer {
        certificate: certificate.pem(),
        private_key: key.serialize_der(),
    })
}

/// Creates an authority below `root` that may sign client certificates, and no further authorities.
pub fn create_issuer(name: &str, validity: Validity, root: &Signer) -> Result<Signer> {
    let key = KeyPair::generate().map_err(Error::internal)?;
    let mut params = authority(name, validity, 0)?;
    params.use_authority_key_identifier_extension = true;
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    let certificate = params
        .signed_by(&key, &issuer(root)?)
        .map_err(Error::internal)?;
    Ok(Signer {
        certificate: certificate.pem(),
        private_key: key.serialize_der(),
    })
}

fn authority(name: &str, validity: Validity, path_length: u8) -> Result<CertificateParams> {
    let mut params = params(name, validity)?;
    params.serial_number = Some(new_serial().1);
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(path_length));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    Ok(params)
}

fn params(name: &str, validity: Validity) -> Result<CertificateParams> {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    params.not_before = to_x509(validity.not_before)?;
    params.not_after = to_x509(validity.not_after)?;
    Ok(params)
}

fn to_x509(time: Timestamp) -> Result<OffsetDateTime> {
    OffsetDateTime::from_unix_timestamp(time.as_secs()).map_err(Error::internal)
}

fn issuer(authority: &Signer) -> Result<Issuer<'static, KeyPair>> {
    let key = PrivatePkcs8KeyDer::from(authority.private_key.as_slice());
    let key = KeyPair::from_pkcs8_der_and_sign_algo(&key, &PKCS_ECDSA_P256_SHA256)
        .map_err(Error::internal)?;
    Issuer::from_ca_cert_pem(&authority.certificate, key).map_err(Error::internal)
}

/// Issues a hub's certificate. Returns its serial number in hex and its PEM form.
pub fn issue_hub_certificate(
    hub_uuid: HubUuid,
    key: &SubjectPublicKeyInfo,
    validity: Validity,
    signer: &Signer,
) -> Result<(String, String)> {
    let (serial_number, serial) = new_serial();
    let mut params = params(&hub_uuid.to_string(), validity)?;
    params.serial_number = Some(serial);
    params.subject_alt_names = vec![
        SanType::DnsName(hub_uuid.to_string().try_into().map_err(Error::internal)?),
        SanType::URI(
            format!("urn:uuid:{hub_uuid}")
                .try_into()
                .map_err(Error::internal)?,
        ),
    ];
    params.is_ca = IsCa::ExplicitNoCa;
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    params.use_authority_key_identifier_extension = true;
    let certificate = params
        .signed_by(key, &self::issuer(signer)?)
        .map_err(Error::internal)?;
    Ok((serial_number, certificate.pem()))
}

/// 126 random bits. Serial numbers are positive and of equal length: the first byte is neither
/// negative nor zero.
fn new_serial() -> (String, SerialNumber) {
    let mut bytes = sealing::random::<SERIAL_BYTES>();
    if let Some(first) = bytes.first_mut() {
        *first = (*first & 0x3f) | 0x40;
    }
    (hex::encode(bytes), SerialNumber::from_slice(&bytes))
}
