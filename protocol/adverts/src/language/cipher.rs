//! AES-128 as advertisements use it: CCM (RFC 3610), counter mode and single blocks. Data is
//! decrypted in place; nothing is allocated.

use aes::Aes128;
use aes::cipher::{Array, BlockCipherDecrypt, BlockCipherEncrypt, KeyInit};

/// Bytes of a block, and of a key.
pub const BLOCK: usize = 16;

pub struct Aes(Aes128);

type Block = [u8; BLOCK];

impl Aes {
    pub fn new(key: &[u8; BLOCK]) -> Aes {
        Aes(Aes128::new(&Array::from(*key)))
    }

    fn encrypt(&self, block: Block) -> Block {
        let mut block = Array::from(block);
        self.0.encrypt_block(&mut block);
        block.into()
    }

    /// Whether `tag` is that of `data` under the nonce (7 to 13 bytes). `data` is decrypted, and
    /// says nothing if it is not.
    pub fn open_ccm(&self, nonce: &[u8], associated: &[u8], data: &mut [u8], tag: &[u8]) -> bool {
        let (Some(length_bytes), Ok(length)) =
            (15_usize.checked_sub(nonce.len()), u16::try_from(data.len()))
        else {
            return false;
        };
        let (true, true) = (
            (2..=8).contains(&length_bytes),
            (4..=BLOCK).contains(&tag.len()),
        ) else {
            return false;
        };
        let start = |flags: usize, last: u16| -> Block {
            let mut block = [0; BLOCK];
            let parts = [flags as u8].into_iter().chain(nonce.iter().copied());
            block
                .iter_mut()
                .zip(parts)
                .for_each(|(to, from)| *to = from);
            if let Some(end) = block.last_chunk_mut::<2>() {
                *end = last.to_be_bytes();
            }
            block
        };
        let counters = start(length_bytes - 1, 0);
        let mask = self.encrypt(counters);
        self.apply_ctr(start(length_bytes - 1, 1), false, data);

        let flags = (usize::from(!associated.is_empty()) << 6)
            + (tag.len() - 2) / 2 * 8
            + (length_bytes - 1);
        let mut mac = self.encrypt(start(flags, length));
        if !associated.is_empty() {
            let Ok(length) = u16::try_from(associated.len()) else {
                return false;
            };
            let mut at = 2;
            mac.iter_mut()
                .zip(length.to_be_bytes())
                .for_each(|(to, from)| *to ^= from);
            for byte in associated {
                if at == BLOCK {
                    mac = self.encrypt(mac);
                    at = 0;
                }
                if let Some(to) = mac.get_mut(at) {
                    *to ^= byte;
                }
                at += 1;
            }
            mac = self.encrypt(mac);
        }
        for chunk in data.chunks(BLOCK) {
            mac.iter_mut().zip(chunk).for_each(|(to, from)| *to ^= from);
            mac = self.encrypt(mac);
        }
        let differing = mac
            .iter()
            .zip(mask)
            .zip(tag)
            .fold(0, |all, ((mac, mask), tag)| all | (mac ^ mask ^ tag));
        differing == 0
    }

    /// Counter mode from a first counter block, which is one integer of 128 bits.
    pub fn apply_ctr(&self, first: Block, little_endian: bool, data: &mut [u8]) {
        let mut counter = if little_endian {
            u128::from_le_bytes(first)
        } else {
            u128::from_be_bytes(first)
        };
        for chunk in data.chunks_mut(BLOCK) {
            let block = if little_endian {
                counter.to_le_bytes()
            } else {
                counter.to_be_bytes()
            };
            let stream = self.encrypt(block);
            chunk
                .iter_mut()
                .zip(stream)
                .for_each(|(to, from)| *to ^= from);
            counter = counter.wrapping_add(1);
        }
    }

    /// Decrypts each block by itself. Returns false, with nothing changed, unless there are whole
    /// blocks only.
    pub fn open_ecb(&self, data: &mut [u8]) -> bool {
        let (blocks, []) = data.as_chunks_mut::<BLOCK>() else {
            return false;
        };
        for block in blocks {
            let mut opened = Array::from(*block);
            self.0.decrypt_block(&mut opened);
            *block = opened.into();
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::super::node::hex_bytes;
    use super::*;

    fn bytes(hex: &str) -> Vec<u8> {
        hex_bytes(hex).unwrap()
    }

    fn aes(key: &str) -> Aes {
        Aes::new(&bytes(key).try_into().unwrap())
    }

    /// RFC 3610, packet vectors 1, 2 and 7.
    #[test]
    fn ccm_opens_the_vectors_of_the_rfc() {
        let key = "c0c1c2c3c4c5c6c7c8c9cacbcccdcecf";
        let vectors = [
            (
                "00000003020100a0a1a2a3a4a5",
                8,
                "588c979a61c663d2f066d0c2c0f989806d5f6b61dac384",
                "17e8d12cfdf926e0",
            ),
            (
                "00000004030201a0a1a2a3a4a5",
                8,
                "72c91a36e135f8cf291ca894085c87e3cc15c439c9e43a3b",
                "a091d56e10400916",
            ),
            (
                "00000009080706a0a1a2a3a4a5",
                8,
                "0135d1b2c95f41d5d1d4fec185d166b8094e999dfed96c",
                "048c56602c97acbb7490",
            ),
        ];
        for (nonce, header, sealed, tag) in vectors {
            let mut data = bytes(sealed);
            let expected: Vec<u8> = (0_u8..).skip(header).take(data.len()).collect();
            let associated: Vec<u8> = (0_u8..8).collect();
            assert!(
                aes(key).open_ccm(&bytes(nonce), &associated, &mut data, &bytes(tag)),
                "{nonce}"
            );
            assert_eq!(data, expected);
            let mut data = bytes(sealed);
            let wrong = [0; 8];
            assert!(!aes(key).open_ccm(&bytes(nonce), &associated, &mut data, &wrong));
        }
        for (nonce, tag) in [(6, 8), (14, 8), (13, 3), (13, 17), (0, 0), (99, 4)] {
            assert!(!aes(key).open_ccm(&vec![0; nonce], &[], &mut [1, 2, 3], &vec![0; tag]));
        }
    }

    /// NIST SP 800-38A, F.1.2 and F.5.2.
    #[test]
    fn ctr_and_ecb_open_the_vectors_of_nist() {
        let key = "2b7e151628aed2a6abf7158809cf4f3c";
        let plain = bytes("6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e51");
        let mut data = bytes("3ad77bb40d7a3660a89ecaf32466ef97f5d3d58503b9699de785895a96fdbaaf");
        assert!(aes(key).open_ecb(&mut data));
        assert_eq!(data, plain);
        assert!(!aes(key).open_ecb(&mut data[1..]));
        let first = bytes("f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff")
            .try_into()
            .unwrap();
        let mut data = bytes("874d6191b620e3261bef6864990db6ce9806f66b7970fdff8617187bb9fffdff");
        aes(key).apply_ctr(first, false, &mut data);
        assert_eq!(data, plain);
    }
}
