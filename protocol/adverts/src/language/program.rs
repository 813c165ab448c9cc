//! The compiled form of a definition. Steps refer to variables by slot and to quantities directly;
//! nothing is looked up by name while a frame is read.

use std::ops::RangeInclusive;

use uuid::Uuid;

use super::expression::{Expression, Integer, Place};
use super::number::Linear;
use crate::measurement::Kind;
use crate::quantity::Quantity;

/// A way in which a device fills its advertisements.
#[derive(Debug, Clone)]
pub struct Format {
    pub test: Test,
    pub steps: Vec<Step>,
}

/// The test for the frames that a format reads.
#[derive(Debug, Clone, Default)]
pub struct Test {
    /// Whole names and beginnings of names, one of which must fit if there is one.
    pub names: Vec<String>,
    pub name_prefixes: Vec<String>,
    /// Services of which one must be advertised if there is one.
    pub service_uuids: Vec<Uuid>,
    /// The payload that is read. `None` if the format is recognised without a payload.
    pub payload: Option<PayloadTest>,
    /// Further payloads of the frame that must be there.
    pub also: Vec<PayloadTest>,
    pub condition: Option<Expression>,
}

/// A payload of a frame and what it looks like.
#[derive(Debug, Clone)]
pub struct PayloadTest {
    pub carrier: Carrier,
    /// Empty for any length.
    pub lengths: Vec<RangeInclusive<usize>>,
    pub bytes: Vec<BytesTest>,
}

#[derive(Debug, Clone)]
pub enum Carrier {
    /// The data of one of these companies.
    Manufacturer(Vec<u16>),
    /// The data of any company, with the identifier's two bytes before it as they are sent.
    AnyManufacturer,
    /// The data of one of these services.
    Service(Vec<Uuid>),
}

/// Bytes under a mask of the same length.
#[derive(Debug, Clone)]
pub struct BytesTest {
    pub at: i32,
    pub bytes: Vec<u8>,
    pub mask: Vec<u8>,
}

/// Bytes of a payload.
#[derive(Debug, Clone)]
pub struct Range {
    /// The index of the payload, as in [`Expression::Read`].
    pub payload: usize,
    pub at: Place,
    /// The number of bytes; `None` is to the end of the payload, a negative number ends that far
    /// before it.
    pub size: Option<i32>,
}

#[derive(Debug, Clone)]
pub enum Step {
    Measure(Box<Measure>),
    Let {
        slot: usize,
        value: Expression,
    },
    If {
        condition: Expression,
        then: Vec<Step>,
        otherwise: Vec<Step>,
    },
    Switch {
        on: Expression,
        cases: Table<Vec<Step>>,
        otherwise: Vec<Step>,
    },
    Items(Box<Items>),
    Repeat(Box<Repeat>),
    Xor {
        range: Range,
        with: Vec<Part>,
        steps: Vec<Step>,
    },
    Decrypt(Box<Decrypt>),
    Authenticate(Box<Authenticate>),
    Checksum {
        range: Range,
        kind: Checksum,
        equals: Expression,
    },
    Valid(Expression),
    /// `counter` says that the number is part of what a key protects.
    Sequence {
        value: Expression,
        bits: u8,
        counter: bool,
    },
    Address {
        range: Range,
        reversed: bool,
    },
}

/// A value of a frame.
#[derive(Debug, Clone)]
pub struct Measure {
    pub quantity: &'static Quantity,
    pub kind: Kind,
    pub index: Index,
    pub condition: Option<Expression>,
    pub source: Source,
    /// Raw integers that mean "not available".
    pub missing: Vec<i128>,
    pub output: Output,
}

#[derive(Debug, Clone)]
pub enum Index {
    None,
    Computed(Expression),
    /// Numbered in frame order.
    Order,
}

/// Where a value comes from.
#[derive(Debug, Clone)]
pub enum Source {
    Integer(Expression),
    Float {
        payload: usize,
        at: Place,
        kind: Float,
        big_endian: bool,
    },
    /// Decimal digits in ASCII.
    Digits(Range),
    Text(Range),
    Hex(Range),
    Mac {
        range: Range,
        reversed: bool,
    },
    Constant(Constant),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Float {
    Half,
    Single,
    Double,
    /// IEEE 11073-20601, 16 bits.
    Medical16,
    /// IEEE 11073-20601, 32 bits.
    Medical32,
}

impl Float {
    pub fn bytes(self) -> usize {
        match self {
            Float::Half | Float::Medical16 => 2,
            Float::Single | Float::Medical32 => 4,
            Float::Double => 8,
        }
    }
}

#[derive(Debug, Clone)]
pub enum Output {
    Number(Linear),
    Bool,
    /// A constant for a raw integer.
    Lookup {
        table: Table<Constant>,
        otherwise: Option<Constant>,
    },
}

#[derive(Debug, Clone, PartialEq)]
pub enum Constant {
    Number(f64),
    Bool(bool),
    Text(String),
}

/// Values for integers, by ranges that do not overlap, in order.
#[derive(Debug, Clone)]
pub struct Table<T> {
    /// Lowest and highest key, and which of the values they have.
    ranges: Vec<(i128, i128, usize)>,
    values: Vec<T>,
}

impl<T> Table<T> {
    /// The error is the first key of a range that overlaps another one.
    pub fn new(mut ranges: Vec<(i128, i128, usize)>, values: Vec<T>) -> Result<Table<T>, i128> {
        ranges.sort_unstable();
        for (before, after) in ranges.iter().zip(ranges.iter().skip(1)) {
            if before.1 >= after.0 {
                return Err(after.0);
            }
        }
        Ok(Table { ranges, values })
    }

    pub fn get(&self, key: i128) -> Option<&T> {
        let after = self.ranges.partition_point(|(low, _, _)| *low <= key);
        let (_, high, value) = self.ranges.get(after.checked_sub(1)?)?;
        if key <= *high {
            self.values.get(*value)
        } else {
            None
        }
    }
}

/// A sequence of type, length and value.
#[derive(Debug, Clone)]
pub struct Items {
    pub over: Range,
    /// Bytes before the value, at least one.
    pub header: usize,
    /// The tag is read from the item's own bytes, as the length is.
    pub tag: Expression,
    pub length: Length,
    pub slot: usize,
    pub cases: Table<Vec<Step>>,
    pub otherwise: Vec<Step>,
}

/// Pieces of one size, one after another. The rest at the end is shorter and is not read.
#[derive(Debug, Clone)]
pub struct Repeat {
    pub over: Range,
    pub every: usize,
    /// Variable that has the piece's number, from 0.
    pub slot: Option<usize>,
    pub steps: Vec<Step>,
}

#[derive(Debug, Clone)]
pub enum Length {
    Computed(Expression),
    /// The length by tag. A tag without a length ends the items: the start of the next one is
    /// unknown.
    ByTag(Table<usize>),
}

#[derive(Debug, Clone)]
pub struct Decrypt {
    pub cipher: Cipher,
    pub key: Key,
    pub range: Range,
    /// Read before decrypting; false means that the key does not fit.
    pub check: Option<Expression>,
    pub steps: Vec<Step>,
}

/// Bytes that are signed and not encrypted: AES-CCM without a message.
#[derive(Debug, Clone)]
pub struct Authenticate {
    pub nonce: Vec<Part>,
    /// Put before the bytes of the range.
    pub prefix: Vec<Part>,
    pub range: Range,
    pub tag: Range,
}

#[derive(Debug, Clone)]
pub enum Cipher {
    Ccm {
        nonce: Vec<Part>,
        associated: Vec<Part>,
        tag: Range,
    },
    Ctr {
        initial: Vec<Part>,
        little_endian: bool,
    },
    Ecb {
        /// The bytes are reversed before decrypting, and after.
        reversed: bool,
    },
}

#[derive(Debug, Clone)]
pub enum Key {
    /// The device's bind key.
    Bind,
    /// A key from constants and parts of the frame.
    Parts(Vec<Part>),
}

/// A piece of a nonce, a key or associated data. Its size is known when it is compiled.
#[derive(Debug, Clone)]
pub enum Part {
    Constant(Vec<u8>),
    Address {
        reversed: bool,
    },
    Bytes {
        range: Range,
        size: usize,
        reversed: bool,
    },
    Value {
        value: Expression,
        integer: Integer,
    },
}

impl Part {
    pub fn size(&self) -> usize {
        match self {
            Part::Constant(bytes) => bytes.len(),
            Part::Address { .. } => 6,
            Part::Bytes { size, .. } => *size,
            Part::Value { integer, .. } => integer.bytes,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Checksum {
    /// Sum of all bytes modulo 256, then exclusive or with the constant.
    Sum8 {
        final_xor: u8,
    },
    Sum16 {
        final_xor: u16,
    },
    /// Exclusive or of all bytes, and of a first value.
    Xor8 {
        initial: u8,
    },
    Crc(Crc),
}

/// Parameters of a CRC as catalogues give them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Crc {
    /// 8 or 16.
    pub bits: u8,
    pub polynomial: u16,
    pub initial: u16,
    pub reflect_in: bool,
    pub reflect_out: bool,
    pub final_xor: u16,
}
