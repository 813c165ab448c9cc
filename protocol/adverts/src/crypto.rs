//! AES-128 as the formats use it.

use aes::Aes128;
use aes::cipher::{BlockCipherEncrypt, KeyInit};
use ccm::aead::AeadInOut;
use ccm::aead::array::ArraySize;
use ccm::consts::{U4, U12, U13};
use ccm::{Ccm, NonceSize};

/// The most that is decrypted: an advertisement's data is shorter.
const CAPACITY: usize = 255;

/// Something that was decrypted, kept on the stack.
pub struct Plain {
    buffer: [u8; CAPACITY],
    length: usize,
}

impl Plain {
    fn holding(text: &[u8]) -> Option<Self> {
        let mut plain = Self {
            buffer: [0; CAPACITY],
            length: text.len(),
        };
        plain.buffer.get_mut(..text.len())?.copy_from_slice(text);
        Some(plain)
    }

    pub fn bytes(&self) -> &[u8] {
        self.buffer.get(..self.length).unwrap_or_default()
    }
}

/// AES-CCM with a tag of 4 bytes (NIST SP 800-38C). The nonce has 12 or 13 bytes. Returns `None`
/// where the tag is not that of the text, or the text is too long.
pub fn ccm(
    key: &[u8; 16],
    nonce: &[u8],
    associated: &[u8],
    text: &[u8],
    tag: [u8; 4],
) -> Option<Plain> {
    match nonce.len() {
        12 => ccm_sized::<U12>(key, nonce, associated, text, tag),
        13 => ccm_sized::<U13>(key, nonce, associated, text, tag),
        _ => None,
    }
}

fn ccm_sized<N: NonceSize + ArraySize>(
    key: &[u8; 16],
    nonce: &[u8],
    associated: &[u8],
    text: &[u8],
    tag: [u8; 4],
) -> Option<Plain> {
    let mut plain = Plain::holding(text)?;
    let cipher = Ccm::<Aes128, U4, N>::new(key.into());
    let part = plain.buffer.get_mut(..text.len())?;
    cipher
        .decrypt_inout_detached(nonce.try_into().ok()?, associated, part.into(), &tag.into())
        .ok()?;
    Some(plain)
}

/// The key stream of AES-CCM with a nonce of 13 bytes over a text whose tag is not sent. Only the
/// decrypted text shows whether the key was right. Returns `None` where the text is too long.
pub fn ccm_without_tag(key: &[u8; 16], nonce: &[u8; 13], text: &[u8]) -> Option<Plain> {
    let cipher = Aes128::new(key.into());
    let mut plain = Plain::holding(text)?;
    let part = plain.buffer.get_mut(..text.len())?;
    // A counter block: the width of the counter less one, the nonce, the counter from 1 upwards.
    for (count, chunk) in (1_u16..).zip(part.chunks_mut(16)) {
        let mut block = [0; 16];
        let [flags, middle @ .., high, low] = &mut block;
        *flags = 1;
        *middle = *nonce;
        [*high, *low] = count.to_be_bytes();
        let mut block = block.into();
        cipher.encrypt_block(&mut block);
        for (byte, mask) in chunk.iter_mut().zip(block) {
            *byte ^= mask;
        }
    }
    Some(plain)
}
