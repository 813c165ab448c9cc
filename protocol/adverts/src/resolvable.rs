//! Kinds of random addresses, and the resolution of private ones (Bluetooth Core Specification,
//! Vol 6, Part B, 1.3.2, and Vol 3, Part H, 2.2.2). All of it holds for random addresses only: a
//! public address may have any bits.

use std::fmt;

use aes::Aes128;
use aes::cipher::{BlockCipherEncrypt, KeyInit};

use crate::frame::Address;

/// Whether a random address is a resolvable private one: its two highest bits are 01.
pub fn is_resolvable(address: Address) -> bool {
    kind(address) == 0b01
}

/// Whether a random address is a static one: its two highest bits are 11.
pub fn is_static(address: Address) -> bool {
    kind(address) == 0b11
}

/// Whether a random address is a non-resolvable private one: its two highest bits are 00.
pub fn is_non_resolvable(address: Address) -> bool {
    kind(address) == 0b00
}

fn kind([first, ..]: Address) -> u8 {
    first >> 6
}

/// An identity resolving key, prepared to be tried on any number of addresses. The type has no
/// `Debug` that would show the key.
#[derive(Clone)]
pub struct Resolver(Aes128);

impl Resolver {
    /// The key is in the order in which the specification writes it, the most significant byte
    /// first.
    pub fn new(irk: &[u8; 16]) -> Resolver {
        Resolver(Aes128::new(irk.into()))
    }

    /// Whether an address was made with the key. Returns false for an address that is not
    /// resolvable. An address of another device resolves by chance once in 16 million.
    pub fn resolves(&self, address: Address) -> bool {
        let [p0, p1, p2, hash @ ..] = address;
        is_resolvable(address) && self.hash([p0, p1, p2]) == hash
    }

    /// The random address hash function `ah`: the last 24 bits of the encrypted 24 bits of `prand`.
    fn hash(&self, [r0, r1, r2]: [u8; 3]) -> [u8; 3] {
        let mut block = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, r0, r1, r2].into();
        self.0.encrypt_block(&mut block);
        let [.., h0, h1, h2]: [u8; 16] = block.into();
        [h0, h1, h2]
    }
}

impl fmt::Debug for Resolver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Resolver")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sample data of Vol 3, Part H, appendix D.7.
    const IRK: [u8; 16] = [
        0xEC, 0x02, 0x34, 0xA3, 0x57, 0xC8, 0xAD, 0x05, 0x34, 0x10, 0x10, 0xA6, 0x0A, 0x39, 0x7D,
        0x9B,
    ];

    #[test]
    fn the_sample_of_the_specification_resolves() {
        assert_eq!(
            Resolver::new(&IRK).hash([0x70, 0x81, 0x94]),
            [0x0D, 0xFB, 0xAA]
        );
        assert!(Resolver::new(&IRK).resolves([0x70, 0x81, 0x94, 0x0D, 0xFB, 0xAA]));
        assert!(!Resolver::new(&IRK).resolves([0x70, 0x81, 0x94, 0x0D, 0xFB, 0xAB]));
        assert!(!Resolver::new(&[0; 16]).resolves([0x70, 0x81, 0x94, 0x0D, 0xFB, 0xAA]));
    }

    #[test]
    fn the_highest_bits_tell_the_kind() {
        assert!(is_resolvable([0x70, 0, 0, 0, 0, 0]) && !is_static([0x70, 0, 0, 0, 0, 0]));
        assert!(is_static([0xC4, 0, 0, 0, 0, 0]) && !is_resolvable([0xC4, 0, 0, 0, 0, 0]));
        assert!(is_non_resolvable([0x3F, 0, 0, 0, 0, 0]) && !is_resolvable([0x3F, 0, 0, 0, 0, 0]));
        let reserved = [0x80, 0, 0, 0, 0, 0];
        assert!(!is_resolvable(reserved) && !is_static(reserved) && !is_non_resolvable(reserved));
    }
}
