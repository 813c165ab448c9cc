//! btsnoop (RFC 1761 with the datalinks of Bluetooth): Android's snoop log, and the files of
//! Linux's btmon. All numbers are big-endian.

use crate::error::RecordingError;
use crate::input::Input;
use crate::link::Link;
use crate::packet::Packet;

pub const MAGIC: &[u8] = b"btsnoop\0";

/// 1970 in the times of the format, which are microseconds since the year 0.
const EPOCH_US: i64 = 0x00DC_DDB3_0F2F_8000;
const MONITOR_EVENT: u32 = 3;
/// The flags of a packet that is an event: received, and no data.
const EVENT: u32 = 0b11;

#[derive(Clone, Copy, Debug)]
enum Datalink {
    Hci,
    H4,
    LinuxMonitor,
}

pub struct Btsnoop {
    input: Input,
    datalink: Datalink,
}

impl Btsnoop {
    pub fn open(mut input: Input) -> Result<Self, RecordingError> {
        let part = input.part("header");
        let _magic: [u8; 8] = input.array(part)?;
        let version = u32::from_be_bytes(input.array(part)?);
        if version != 1 {
            let fault = format!("version {version} of btsnoop; expected 1");
            return Err(RecordingError::malformed(8, fault));
        }
        let datalink = match u32::from_be_bytes(input.array(part)?) {
            1001 => Datalink::Hci,
            1002 => Datalink::H4,
            2001 => Datalink::LinuxMonitor,
            other => {
                let name = match other {
                    1003 => " (HCI over BCSP)",
                    1004 => " (HCI over a serial line, H5)",
                    2002 => " (Linux simulator)",
                    _ => "",
                };
                let fault = format!("datalink {other}{name}; expected 1001, 1002 or 2001");
                return Err(RecordingError::malformed(12, fault));
            }
        };
        Ok(Self { input, datalink })
    }

    pub fn next(&mut self, data: &mut Vec<u8>) -> Result<Option<Packet>, RecordingError> {
        if self.input.is_at_end()? {
            return Ok(None);
        }
        let part = self.input.part("record");
        let _original_length: [u8; 4] = self.input.array(part)?;
        let length = u32::from_be_bytes(self.input.array(part)?);
        let flags = u32::from_be_bytes(self.input.array(part)?);
        let _drops: [u8; 4] = self.input.array(part)?;
        let time_us = i64::from_be_bytes(self.input.array(part)?);
        self.input.record(data, length, part)?;
        let link = match self.datalink {
            Datalink::Hci => (flags & EVENT == EVENT).then_some(Link::HciEvent { adapter: 0 }),
            Datalink::H4 => Some(Link::H4),
            // The adapter stands before the opcode.
            Datalink::LinuxMonitor => {
                let adapter = (flags >> 16) as u16;
                (flags & 0xFFFF == MONITOR_EVENT).then_some(Link::HciEvent { adapter })
            }
        };
        Ok(Some(Packet {
            offset: part.start,
            unix_us: time_us.checked_sub(EPOCH_US),
            link,
        }))
    }
}
