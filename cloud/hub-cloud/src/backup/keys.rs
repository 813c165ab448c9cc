//! The master keys in a backup, sealed with a passphrase: Argon2id makes a key of it, and
//! AES-256-GCM seals with that. Without the passphrase nobody opens them, the service included.

use std::path::Path;

use aes_gcm::aead::{Aead, Payload};
use aes_gcm::{Aes256Gcm, KeyInit};
use argon2::{Algorithm, Argon2, Params, Version};
use hub_base::sealing::{self, Sealer};
use hub_core::config::Config;
use secrecy::{ExposeSecret, SecretString};

use super::{Failure, Result};

/// The format, the salt, the nonce; then ciphertext and tag.
const FORMAT: u8 = 1;
const SALT_BYTES: usize = 16;
const NONCE_BYTES: usize = 12;
/// Guessing is offline and without a limit, so a guess costs more than at a login.
const MEMORY_KIB: u32 = 64 * 1024;
const PASSES: u32 = 3;
const PURPOSE: &[u8] = b"hub-cloud backup of master keys";
const LEAST_PASSPHRASE_CHARS: usize = 12;
/// Longer files were named by mistake.
const MAX_PASSPHRASE_BYTES: usize = 4096;

/// The first line of the file.
pub fn read_passphrase(file: &Path) -> Result<SecretString> {
    let refused = |reason: String| {
        Failure::WrongUsage(format!(
            "backup-passphrase-file {}: {reason}",
            file.display()
        ))
    };
    let text = std::fs::read_to_string(file).map_err(|error| refused(error.to_string()))?;
    let line = text.lines().next().unwrap_or_default();
    if line.chars().count() < LEAST_PASSPHRASE_CHARS || line.len() > MAX_PASSPHRASE_BYTES {
        return Err(refused(format!(
            "its first line must have {LEAST_PASSPHRASE_CHARS} characters or more"
        )));
    }
    Ok(line.to_owned().into())
}

/// The master keys of the service, one on each line, and their ids.
pub fn of_service(config: &Config) -> Result<(SecretString, Vec<String>)> {
    let sealer = Sealer::load(config.master_key.as_ref(), &config.data_dir, false)
        .map_err(|error| Failure::Failed(error.to_string()))?;
    let text = match (sealer.file(), &config.master_key) {
        (Some(file), _) => std::fs::read_to_string(file)
            .map_err(|error| Failure::at(file, "cannot read", error))?,
        (None, Some(setting)) => setting.expose_secret().replace(',', "\n"),
        (None, None) => String::new(),
    };
    Ok((text.into(), sealer.key_ids()))
}

pub fn seal(passphrase: &SecretString, keys: &SecretString) -> Result<Vec<u8>> {
    let salt: [u8; SALT_BYTES] = sealing::random();
    let nonce: [u8; NONCE_BYTES] = sealing::random();
    let payload = Payload {
        msg: keys.expose_secret().as_bytes(),
        aad: PURPOSE,
    };
    let sealed = cipher(passphrase, &salt)?
        .encrypt(&nonce.into(), payload)
        .map_err(|_| Failure::Failed("cannot seal the master keys".to_owned()))?;
    Ok([&[FORMAT][..], &salt[..], &nonce[..], &sealed[..]].concat())
}

pub fn open(passphrase: Option<&SecretString>, sealed: &[u8]) -> Result<SecretString> {
    let passphrase = passphrase.ok_or_else(|| {
        Failure::WrongUsage(
            "the master keys in this backup are sealed; name the file with the passphrase: \
             --backup-passphrase-file FILE"
                .to_owned(),
        )
    })?;
    let refused = || {
        Failure::Failed(
            "the passphrase does not open the master keys of this backup; \
             name the file with the right one in backup-passphrase-file"
                .to_owned(),
        )
    };
    let parts = sealed
        .strip_prefix(&[FORMAT])
        .and_then(|rest| rest.split_first_chunk::<SALT_BYTES>())
        .and_then(|(salt, rest)| Some((salt, rest.split_first_chunk::<NONCE_BYTES>()?)));
    let (salt, (nonce, message)) = parts.ok_or_else(refused)?;
    let payload = Payload {
        msg: message,
        aad: PURPOSE,
    };
    let keys = cipher(passphrase, salt)?
        .decrypt(&(*nonce).into(), payload)
        .map_err(|_| refused())?;
    String::from_utf8(keys)
        .map(SecretString::from)
        .map_err(|_| refused())
}

fn cipher(passphrase: &SecretString, salt: &[u8; SALT_BYTES]) -> Result<Aes256Gcm> {
    let failed = |error: argon2::Error| {
        Failure::Failed(format!("cannot make a key of the passphrase: {error}"))
    };
    let params = Params::new(MEMORY_KIB, PASSES, 1, None).map_err(failed)?;
    let mut key = [0; 32];
    Argon2::new(Algorithm::Argon2id, Version::V0x13, params)
        .hash_password_into(passphrase.expose_secret().as_bytes(), salt, &mut key)
        .map_err(failed)?;
    Ok(Aes256Gcm::new(&key.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_open_with_their_passphrase_alone() {
        let (right, wrong) = (
            "correct horse battery".into(),
            "correct horse Battery".into(),
        );
        let keys: SecretString = "00ff\n".to_owned().into();
        let sealed = seal(&right, &keys).expect("sealed");
        assert!(!sealed.windows(4).any(|bytes| bytes == b"00ff"));
        let opened = open(Some(&right), &sealed).expect("opened");
        assert_eq!(opened.expose_secret(), "00ff\n");
        let error = open(Some(&wrong), &sealed)
            .map(|_| ())
            .expect_err("another passphrase");
        assert!(
            error.to_string().contains("backup-passphrase-file"),
            "{error}"
        );
        let cut = sealed.get(..20).unwrap_or_default();
        open(Some(&right), cut).map(|_| ()).expect_err("cut short");
    }
}
