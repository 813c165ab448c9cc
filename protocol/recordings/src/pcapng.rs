//! pcapng (draft-ietf-opsawg-pcapng): sections, interfaces and packets. Other blocks are passed
//! over without being held.

use crate::error::RecordingError;
use crate::input::{Input, Part};
use crate::link::{Link, OtherLink};
use crate::order::Order;
use crate::packet::Packet;

pub const MAGIC: &[u8] = &[0x0A, 0x0D, 0x0D, 0x0A];

const SECTION_HEADER: u32 = 0x0A0D_0D0A;
const INTERFACE_DESCRIPTION: u32 = 1;
const SIMPLE_PACKET: u32 = 3;
const ENHANCED_PACKET: u32 = 6;
/// The bytes of a block around its body: its type, and its length twice.
const FRAME: u32 = 12;
const MOST_INTERFACES: usize = 1_024;
const TIME_RESOLUTION: u16 = 9;
const TIME_OFFSET: u16 = 14;

pub struct PcapNg {
    input: Input,
    order: Order,
    interfaces: Vec<Interface>,
    /// The first interface whose link type has no advertisements: where it stands, and its type.
    other: Option<(u64, u32)>,
    has_known: bool,
}

#[derive(Clone, Copy, Debug)]
struct Interface {
    link: Option<Link>,
    snap_length: u32,
    resolution: Resolution,
    offset_secs: i64,
}

/// The unit of times: a negative power of ten or of two, of seconds.
#[derive(Clone, Copy, Debug)]
enum Resolution {
    Ten(u32),
    Two(u32),
}

impl Interface {
    fn unix_us(&self, time: u64) -> Option<i64> {
        let micros = u128::from(time) * 1_000_000;
        let micros = match self.resolution {
            // No more digits than a time can have.
            Resolution::Ten(digits) => micros.checked_div(10_u128.checked_pow(digits)?)?,
            Resolution::Two(bits) => micros.checked_shr(bits)?,
        };
        let offset_us = self.offset_secs.checked_mul(1_000_000)?;
        i64::try_from(micros).ok()?.checked_add(offset_us)
    }
}

/// A block of which the type and the length are read.
#[derive(Clone, Copy, Debug)]
struct Block {
    part: Part,
    length: u32,
    /// The bytes of the body that are not yet read.
    left: u32,
}

impl PcapNg {
    pub fn new(input: Input) -> Self {
        Self {
            input,
            order: Order::Little,
            interfaces: Vec::new(),
            other: None,
            has_known: false,
        }
    }

    pub fn next(&mut self, data: &mut Vec<u8>) -> Result<Option<Packet>, RecordingError> {
        while !self.input.is_at_end()? {
            if let Some(packet) = self.block(data)? {
                return Ok(Some(packet));
            }
        }
        match self.other {
            Some((offset, link_type)) if !self.has_known => {
                let (other, known) = (OtherLink(link_type), Link::KNOWN);
                let fault = format!("{other}; expected {known}");
                Err(RecordingError::malformed(offset, fault))
            }
            _ => Ok(None),
        }
    }

    /// Reads a block. Only packets lead to something.
    fn block(&mut self, data: &mut Vec<u8>) -> Result<Option<Packet>, RecordingError> {
        let part = self.input.part("block");
        let kind = self.input.array(part)?;
        let length = self.input.array(part)?;
        // The type of a section is the same in both orders, and its order follows its length.
        let is_section = u32::from_be_bytes(kind) == SECTION_HEADER;
        let mut read = 0;
        if is_section {
            let mark: [u8; 4] = self.input.array(part)?;
            self.order = match mark {
                [0x1A, 0x2B, 0x3C, 0x4D] => Order::Big,
                [0x4D, 0x3C, 0x2B, 0x1A] => Order::Little,
                _ => {
                    let fault = format!(
                        "{} for the byte order; expected 1a2b3c4d",
                        hex::encode(mark)
                    );
                    return Err(RecordingError::malformed(part.start + 8, fault));
                }
            };
            self.interfaces.clear();
            read = 4;
        }
        let length = self.order.u32(length);
        let left = length
            .checked_sub(FRAME + read)
            .filter(|_| length.is_multiple_of(4))
            .ok_or_else(|| {
                let fault =
                    format!("a block of {length} bytes; expected a multiple of 4 from 12 on");
                RecordingError::malformed(part.start + 4, fault)
            })?;
        let mut block = Block { part, length, left };
        let packet = match self.order.u32(kind) {
            _ if is_section => {
                self.section(&mut block)?;
                None
            }
            INTERFACE_DESCRIPTION => {
                self.interface(&mut block)?;
                None
            }
            ENHANCED_PACKET => Some(self.enhanced(&mut block, data)?),
            SIMPLE_PACKET => Some(self.simple(&mut block, data)?),
            _ => None,
        };
        self.input.skip(block.left.into(), part)?;
        let repeated = self.order.u32(self.input.array(part)?);
        if repeated != length {
            let at = self.input.offset().saturating_sub(4);
            let fault = format!("a length of {repeated} after a block; expected {length} again");
            return Err(RecordingError::malformed(at, fault));
        }
        Ok(packet)
    }

    fn section(&mut self, block: &mut Block) -> Result<(), RecordingError> {
        let major = self.order.u16(self.field(block)?);
        let minor = self.order.u16(self.field(block)?);
        if major != 1 {
            let fault = format!("version {major}.{minor} of pcapng; expected 1.0");
            return Err(RecordingError::malformed(block.part.start + 12, fault));
        }
        Ok(())
    }

    fn interface(&mut self, block: &mut Block) -> Result<(), RecordingError> {
        if self.interfaces.len() == MOST_INTERFACES {
            let fault = format!("more than {MOST_INTERFACES} interfaces");
            return Err(RecordingError::malformed(block.part.start, fault));
        }
        let link_type = u32::from(self.order.u16(self.field(block)?));
        let _reserved: [u8; 2] = self.field(block)?;
        let snap_length = self.order.u32(self.field(block)?);
        let mut interface = Interface {
            link: Link::of(link_type),
            snap_length,
            resolution: Resolution::Ten(6),
            offset_secs: 0,
        };
        match interface.link {
            Some(_) => self.has_known = true,
            None => {
                self.other.get_or_insert((block.part.start, link_type));
            }
        }
        while block.left >= 4 {
            let code = self.order.u16(self.field(block)?);
            let length = self.order.u16(self.field(block)?);
            let padded = u32::from(length).next_multiple_of(4);
            match (code, length) {
                (0, _) => break,
                (TIME_RESOLUTION, 1) => {
                    let [resolution, ..]: [u8; 4] = self.field(block)?;
                    let exponent = u32::from(resolution & 0x7F);
                    interface.resolution = match resolution & 0x80 {
                        0 => Resolution::Ten(exponent),
                        _ => Resolution::Two(exponent),
                    };
                }
                (TIME_OFFSET, 8) => interface.offset_secs = self.order.i64(self.field(block)?),
                _ => {
                    self.check(block, padded)?;
                    self.input.skip(padded.into(), block.part)?;
                    block.left -= padded;
                }
            }
        }
        self.interfaces.push(interface);
        Ok(())
    }

    fn enhanced(
        &mut self,
        block: &mut Block,
        data: &mut Vec<u8>,
    ) -> Result<Packet, RecordingError> {
        let number = self.order.u32(self.field(block)?);
        let high = u64::from(self.order.u32(self.field(block)?));
        let low = u64::from(self.order.u32(self.field(block)?));
        let length = self.order.u32(self.field(block)?);
        let _original_length: [u8; 4] = self.field(block)?;
        let interface = self.numbered(block, number)?;
        self.data(block, data, length)?;
        Ok(Packet {
            offset: block.part.start,
            unix_us: interface.unix_us(high << 32 | low),
            link: interface.link,
        })
    }

    /// A packet without a time, of the first interface.
    fn simple(&mut self, block: &mut Block, data: &mut Vec<u8>) -> Result<Packet, RecordingError> {
        let original_length = self.order.u32(self.field(block)?);
        let interface = self.numbered(block, 0)?;
        let length = match interface.snap_length {
            0 => original_length,
            snap_length => original_length.min(snap_length),
        };
        self.data(block, data, length)?;
        Ok(Packet {
            offset: block.part.start,
            unix_us: None,
            link: interface.link,
        })
    }

    fn numbered(&self, block: &Block, number: u32) -> Result<Interface, RecordingError> {
        let interface = self.interfaces.get(number as usize).copied();
        interface.ok_or_else(|| {
            let described = self.interfaces.len();
            let fault = format!("a packet of interface {number}; {described} are described");
            RecordingError::malformed(block.part.start, fault)
        })
    }

    fn data(
        &mut self,
        block: &mut Block,
        data: &mut Vec<u8>,
        length: u32,
    ) -> Result<(), RecordingError> {
        self.check(block, length)?;
        self.input.record(data, length, block.part)?;
        block.left -= length;
        Ok(())
    }

    fn field<const N: usize>(&mut self, block: &mut Block) -> Result<[u8; N], RecordingError> {
        let length = N as u32;
        self.check(block, length)?;
        let field = self.input.array(block.part)?;
        block.left -= length;
        Ok(field)
    }

    /// Refuses a part that is longer than what is left of its block.
    fn check(&self, block: &Block, length: u32) -> Result<(), RecordingError> {
        match length <= block.left {
            true => Ok(()),
            false => {
                let (whole, left) = (block.length, block.left);
                let fault = format!("{length} bytes in a block of {whole} that has {left} left");
                Err(RecordingError::malformed(self.input.offset(), fault))
            }
        }
    }
}
