//! One packet of a capture.

use crate::link::Link;

#[derive(Clone, Copy, Debug)]
pub struct Packet {
    /// The byte at which its record begins.
    pub offset: u64,
    /// When it was recorded, in microseconds since 1970.
    pub unix_us: Option<i64>,
    /// How its bytes are read; `None` if they have no advertisement.
    pub link: Option<Link>,
}
