//! pcap (draft-ietf-opsawg-pcap), in both byte orders, with micro- or nanoseconds.

use crate::error::RecordingError;
use crate::input::Input;
use crate::link::{Link, OtherLink};
use crate::order::Order;
use crate::packet::Packet;

pub struct Pcap {
    input: Input,
    order: Order,
    has_nanos: bool,
    link: Link,
}

/// Byte order, and whether times are in nanoseconds, by the first bytes.
pub fn magic(head: &[u8]) -> Option<(Order, bool)> {
    match head {
        [0xA1, 0xB2, 0xC3, 0xD4, ..] => Some((Order::Big, false)),
        [0xA1, 0xB2, 0x3C, 0x4D, ..] => Some((Order::Big, true)),
        [0xD4, 0xC3, 0xB2, 0xA1, ..] => Some((Order::Little, false)),
        [0x4D, 0x3C, 0xB2, 0xA1, ..] => Some((Order::Little, true)),
        _ => None,
    }
}

impl Pcap {
    pub fn open(
        mut input: Input,
        (order, has_nanos): (Order, bool),
    ) -> Result<Self, RecordingError> {
        let part = input.part("header");
        let _magic: [u8; 4] = input.array(part)?;
        let major = order.u16(input.array(part)?);
        let minor = order.u16(input.array(part)?);
        if major != 2 {
            let fault = format!("version {major}.{minor} of pcap; expected 2.4");
            return Err(RecordingError::malformed(4, fault));
        }
        let _zone_accuracy_and_snap_length: [u8; 12] = input.array(part)?;
        // The upper half is about frame check sequences.
        let link_type = order.u32(input.array(part)?) & 0xFFFF;
        let link = Link::of(link_type).ok_or_else(|| {
            let (other, known) = (OtherLink(link_type), Link::KNOWN);
            RecordingError::malformed(20, format!("{other}; expected {known}"))
        })?;
        Ok(Self {
            input,
            order,
            has_nanos,
            link,
        })
    }

    pub fn next(&mut self, data: &mut Vec<u8>) -> Result<Option<Packet>, RecordingError> {
        if self.input.is_at_end()? {
            return Ok(None);
        }
        let part = self.input.part("record");
        let seconds = i64::from(self.order.u32(self.input.array(part)?));
        let fraction = i64::from(self.order.u32(self.input.array(part)?));
        let length = self.order.u32(self.input.array(part)?);
        let _original_length: [u8; 4] = self.input.array(part)?;
        self.input.record(data, length, part)?;
        let micros = match self.has_nanos {
            true => fraction / 1_000,
            false => fraction,
        };
        Ok(Some(Packet {
            offset: part.start,
            unix_us: Some(seconds * 1_000_000 + micros),
            link: Some(self.link),
        }))
    }
}
