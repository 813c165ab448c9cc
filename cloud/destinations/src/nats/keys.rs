//! Credentials of NATS that are keys: the client signs a challenge of the server (NATS, ADR-14). A
//! seed is `S`, the type of its key, and 32 bytes with a checksum, in base32; a credentials file
//! has a token of a user and such a seed.

use aws_lc_rs::signature::{Ed25519KeyPair, KeyPair};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use data_encoding::BASE32_NOPAD;
use secrecy::{ExposeSecret, SecretString};
use serde_json::json;

use crate::auth::{Form, MAX_SECRET_BYTES, ShownAuth};

/// The prefix of a seed, and that of a user's key.
const SEED_PREFIX: u8 = 18 << 3;
const USER_PREFIX: u8 = 20 << 3;
const SEED_BYTES: usize = 32;

pub const NKEY: Form = Form {
    name: "NKEY",
    members: &["type", "seed"],
    check: |fields| {
        fields.secret("seed")?;
        if let Some(seed) = fields.members.text("seed", MAX_SECRET_BYTES)?
            && UserKey::of_seed(seed).is_none()
        {
            let message = "must be the seed of a user's NKEY, which begins with SU";
            return Err(fields.members.problem("seed", message));
        }
        Ok(ShownAuth::new(json!({"type": "NKEY"})))
    },
};

pub const CREDENTIALS: Form = Form {
    name: "CREDENTIALS",
    members: &["type", "credentials"],
    check: |fields| {
        // A file of several lines.
        let Some(text) = fields.members.text("credentials", MAX_SECRET_BYTES)? else {
            return match fields.is_stored {
                true => Ok(ShownAuth::new(json!({"type": "CREDENTIALS"}))),
                false => Err(fields.members.problem("credentials", "is missing")),
            };
        };
        if CredentialsFile::parse(text).is_none() {
            let message = "must be the content of a credentials file: a user's JWT and seed between their BEGIN and END \
                           lines";
            return Err(fields.members.problem("credentials", message));
        }
        Ok(ShownAuth::new(json!({"type": "CREDENTIALS"})))
    },
};

/// The key of a user.
pub struct UserKey(Ed25519KeyPair);

impl UserKey {
    pub fn of_seed(seed: &str) -> Option<Self> {
        let bytes = BASE32_NOPAD.decode(seed.trim().as_bytes()).ok()?;
        let (content, checksum) = bytes.split_last_chunk::<2>()?;
        if crc16(content) != u16::from_le_bytes(*checksum) {
            return None;
        }
        let [first, second, key @ ..] = content else {
            return None;
        };
        // The first byte ends with the three highest bits of the type, and the second begins with
        // the others.
        let is_seed = first & 0b1111_1000 == SEED_PREFIX;
        let key_type = (first & 0b0000_0111) << 5 | (second & 0b1111_1000) >> 3;
        if !is_seed || key_type != USER_PREFIX || key.len() != SEED_BYTES {
            return None;
        }
        Ed25519KeyPair::from_seed_unchecked(key).ok().map(Self)
    }

    /// The user's public key.
    pub fn public(&self) -> String {
        let mut content = vec![USER_PREFIX];
        content.extend_from_slice(self.0.public_key().as_ref());
        content.extend_from_slice(&crc16(&content).to_le_bytes());
        BASE32_NOPAD.encode(&content)
    }

    pub fn sign(&self, challenge: &str) -> String {
        URL_SAFE_NO_PAD.encode(self.0.sign(challenge.as_bytes()).as_ref())
    }
}

/// A token of a user, which names the key that it belongs to, and the seed of that key.
pub struct CredentialsFile {
    pub jwt: SecretString,
    pub key: UserKey,
}

impl CredentialsFile {
    pub fn parse(text: &str) -> Option<Self> {
        // The number of dashes before BEGIN and END differs.
        let block = |name: &str| {
            let begin = format!("BEGIN {name}---");
            let mut lines = text
                .lines()
                .skip_while(|line| !line.contains(&begin))
                .skip(1);
            let content = lines.find(|line| !line.trim().is_empty())?.trim();
            (!content.starts_with("---")).then(|| content.to_owned())
        };
        let jwt = block("NATS USER JWT")?;
        let is_token = |c: char| c.is_ascii_alphanumeric() || "-_.=".contains(c);
        if jwt.split('.').count() != 3 || !jwt.chars().all(is_token) {
            return None;
        }
        let seed = SecretString::from(block("USER NKEY SEED")?);
        let key = UserKey::of_seed(seed.expose_secret())?;
        Some(Self {
            jwt: jwt.into(),
            key,
        })
    }
}

/// CRC-16/XMODEM.
pub fn crc16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |crc, byte| {
        (0..8).fold(crc ^ u16::from(*byte) << 8, |crc, _| {
            if crc & 0x8000 == 0 {
                crc << 1
            } else {
                crc << 1 ^ 0x1021
            }
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A user's seed with its public key, as `nsc generate nkey --user` prints them.
    const SEED: &str = "SUACSSL3UAHUDXKFSNVUZRF5UHPMWZ6BFDTJ7M6USDXIEDNPPQYYYCU3VY";
    const PUBLIC: &str = "UDXU4RCSJNZOIQHZNWXHXORDPRTGNJAHAHFRGZNEEJCPQTT2M7NLCNF4";

    #[test]
    fn the_checksum_is_that_of_the_standard() {
        assert_eq!(crc16(b"123456789"), 0x31c3);
    }

    #[test]
    fn seeds_of_users_are_read_and_nothing_else() {
        let key = UserKey::of_seed(SEED).unwrap_or_else(|| panic!("a key"));
        assert!(key.public().starts_with('U') && key.public().len() == PUBLIC.len());
        assert_eq!(key.sign("challenge").len(), 86);
        for wrong in [
            "",
            PUBLIC,
            "SUACSSL3UAHUDXKFSNVUZRF5UHPMWZ6BFDTJ7M6USDXIEDNPPQYYYCU3VX",
            &SEED.to_lowercase(),
        ] {
            assert!(UserKey::of_seed(wrong).is_none(), "{wrong}");
        }
    }
}
