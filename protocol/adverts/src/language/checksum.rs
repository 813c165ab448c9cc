//! Checksums over parts of a payload.

use super::program::{Checksum, Crc};

impl Checksum {
    pub fn of(self, bytes: &[u8]) -> u16 {
        match self {
            Checksum::Sum8 { final_xor } => {
                u16::from(bytes.iter().fold(0_u8, |sum, byte| sum.wrapping_add(*byte)) ^ final_xor)
            }
            Checksum::Sum16 { final_xor } => {
                bytes
                    .iter()
                    .fold(0_u16, |sum, byte| sum.wrapping_add(u16::from(*byte)))
                    ^ final_xor
            }
            Checksum::Xor8 { initial } => {
                u16::from(bytes.iter().fold(initial, |all, byte| all ^ byte))
            }
            Checksum::Crc(crc) => crc.of(bytes),
        }
    }
}

impl Crc {
    /// The sum is computed bit by bit, in the upper bits of 16, so that one loop serves both
    /// widths.
    fn of(self, bytes: &[u8]) -> u16 {
        let unused = 16 - u32::from(self.bits.clamp(8, 16));
        let polynomial = self.polynomial << unused;
        let mut register = self.initial << unused;
        for byte in bytes {
            let byte = if self.reflect_in {
                byte.reverse_bits()
            } else {
                *byte
            };
            register ^= u16::from(byte) << 8;
            for _ in 0..8 {
                let carry = register & 0x8000 != 0;
                register <<= 1;
                if carry {
                    register ^= polynomial;
                }
            }
        }
        let value = if self.reflect_out {
            register.reverse_bits()
        } else {
            register >> unused
        };
        value ^ self.final_xor
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The check values of the catalogue of parametrised CRC algorithms: over "123456789".
    #[test]
    fn crcs_give_their_check_values() {
        let crc = |bits, polynomial, initial, reflected, final_xor, check| {
            let crc = Crc {
                bits,
                polynomial,
                initial,
                reflect_in: reflected,
                reflect_out: reflected,
                final_xor,
            };
            assert_eq!(Checksum::Crc(crc).of(b"123456789"), check, "{crc:?}");
        };
        crc(8, 0x07, 0x00, false, 0x00, 0xF4); // CRC-8/SMBUS
        crc(8, 0x31, 0x00, true, 0x00, 0xA1); // CRC-8/MAXIM-DOW
        crc(8, 0x31, 0xFF, false, 0x00, 0xF7); // CRC-8/NRSC-5
        crc(16, 0x1021, 0xFFFF, false, 0x0000, 0x29B1); // CRC-16/IBM-3740
        crc(16, 0x1021, 0x0000, true, 0x0000, 0x2189); // CRC-16/KERMIT
        crc(16, 0x8005, 0xFFFF, true, 0x0000, 0x4B37); // CRC-16/MODBUS
        crc(16, 0x8005, 0x0000, true, 0x0000, 0xBB3D); // CRC-16/ARC
    }

    #[test]
    fn sums_wrap() {
        assert_eq!(Checksum::Sum8 { final_xor: 0 }.of(&[0xFF, 0x02]), 1);
        assert_eq!(Checksum::Sum8 { final_xor: 0xFF }.of(&[0x01]), 0xFE);
        assert_eq!(Checksum::Sum16 { final_xor: 0 }.of(&[0xFF, 0x02]), 0x101);
        assert_eq!(Checksum::Xor8 { initial: 1 }.of(&[0xF0, 0x0F]), 0xFE);
    }
}
