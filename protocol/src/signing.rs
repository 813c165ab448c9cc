//! Signs the manifests of releases, with keys in the format of minisign. Reads no file and no
//! clock: the caller has the key's text and the time.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use minisign::{SecretKey, SecretKeyBox};

/// The secret key in a key file, opened with its password, or without one.
pub fn secret_key(text: &str, password: Option<String>) -> Result<SecretKey, String> {
    let Some(password) = password else {
        let key = SecretKeyBox::from(text.to_owned()).into_unencrypted_secret_key();
        return key
            .or_else(|error| without_checksum(text).ok_or(error))
            .map_err(|error| error.to_string());
    };
    SecretKeyBox::from(text.to_owned())
        .into_secret_key(Some(password))
        .map_err(|error| error.to_string())
}

/// Reads a key without a password as the minisign program writes it: with an empty checksum, which
/// the library rejects as corrupt.
fn without_checksum(text: &str) -> Option<SecretKey> {
    let bytes = STANDARD.decode(text.lines().nth(1)?.trim()).ok()?;
    let (_, checksum) = bytes.split_last_chunk::<32>()?;
    let key = SecretKey::from_bytes(&bytes).ok()?;
    (*checksum == [0; 32] && !key.is_encrypted()).then_some(key)
}

/// The signature of a manifest's exact text. The file name and the time, in seconds since 1970, are
/// signed with it, for a reader of the signature.
pub fn sign(
    key: &SecretKey,
    manifest: &str,
    file_name: &str,
    now_secs: i64,
) -> Result<String, String> {
    let name = file_name.replace(char::is_control, "?");
    let trusted = format!("timestamp:{now_secs}\tfile:{name}\thashed");
    let comment = "signature of a release's manifest";
    let signature = minisign::sign(
        None,
        key,
        manifest.as_bytes(),
        Some(&trusted),
        Some(comment),
    );
    signature
        .map(|signature| signature.into_string())
        .map_err(|error| error.to_string())
}
