//! Encrypted advertising data, of AD type 0x31 (Bluetooth Core Specification Supplement, Part A,
//! 1.23): a randomizer of five bytes, advertising data under AES-CCM, and a tag of four bytes.

use std::fmt;
use std::str::FromStr;

use crate::crypto::ccm;

const RANDOMIZER: usize = 5;
const TAG: usize = 4;
/// The additional data that the specification fixes.
const ADDITIONAL: &[u8] = &[0xEA];

/// The key of encrypted advertising data, in the order of the characteristic Key Material (0x2B88):
/// the session key, then the initialization vector.
#[derive(Clone, Copy)]
pub struct KeyMaterial {
    session_key: [u8; 16],
    initialization_vector: [u8; 8],
}

impl fmt::Debug for KeyMaterial {
    /// Without the key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeyMaterial")
    }
}

impl FromStr for KeyMaterial {
    type Err = &'static str;

    /// From 48 hexadecimal digits.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const EXPECTED: &str =
            "must be 48 hexadecimal digits: the session key, then the initialization vector";
        let bytes = hex::decode(text).map_err(|_| EXPECTED)?;
        let (key, vector) = bytes.split_at_checked(16).ok_or(EXPECTED)?;
        Ok(Self {
            session_key: key.try_into().map_err(|_| EXPECTED)?,
            initialization_vector: vector.try_into().map_err(|_| EXPECTED)?,
        })
    }
}

impl KeyMaterial {
    /// The advertising data within the value of an AD structure of type 0x31. `None` if the value
    /// is too short or too long, was damaged, or is of another key.
    pub fn decrypt(&self, value: &[u8]) -> Option<Vec<u8>> {
        let (randomizer, rest) = value.split_at_checked(RANDOMIZER)?;
        let (text, tag) = rest.split_at_checked(rest.len().checked_sub(TAG)?)?;
        let nonce = [randomizer, &self.initialization_vector].concat();
        let plain = ccm(
            &self.session_key,
            &nonce,
            ADDITIONAL,
            text,
            tag.try_into().ok()?,
        )?;
        Some(plain.bytes().to_vec())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The sample data of the supplement, Part A, 2.3.
    const KEY: &str = "57a9da12d12e6e131e20612ad10a6a199e7a00efb17ae746";
    const PLAIN: &str = "0f0953686f7274204d696e692d42757303190a8c";
    const SAMPLES: [&str; 2] = [
        "18e157cade74e4dcafdc51c7282810c2217f0e4cef4343181fba0069cc",
        "8d1c976e7a35444076125788c238a58e8bd9cff0defe251a8e7275454c",
    ];

    fn decrypted(value: &[u8]) -> Option<String> {
        let key: KeyMaterial = KEY.parse().expect("a key");
        key.decrypt(value).map(hex::encode)
    }

    #[test]
    fn the_samples_of_the_specification_are_decrypted() {
        for sample in SAMPLES {
            let value = hex::decode(sample).expect("hexadecimal digits");
            assert_eq!(decrypted(&value).as_deref(), Some(PLAIN));
        }
    }

    #[test]
    fn what_was_damaged_or_cut_is_not() {
        let value = hex::decode(SAMPLES[0]).expect("hexadecimal digits");
        for bit in 0..value.len() * 8 {
            let mut damaged = value.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(decrypted(&damaged), None, "bit {bit}");
        }
        for length in 0..value.len() {
            assert_eq!(decrypted(&value[..length]), None, "{length} bytes");
        }
        assert_eq!(decrypted(&[0; 2000]), None);
    }

    #[test]
    fn a_key_has_its_length() {
        for text in ["", "57a9", &KEY[..46], &format!("{KEY}00"), &"g".repeat(48)] {
            assert!(text.parse::<KeyMaterial>().is_err(), "{text}");
        }
    }
}
