//! Integer expressions: their parts, and their values.
//!
//! An expression is total. Its value is computed from the payload and variables, and is an integer
//! or "not available": the value of a read past the end, a division by zero, a shift beyond 0 to 63
//! and an integer beyond 128 bits, and of every operation on such a value.

use std::cell::Cell;

use crate::frame::Frame;

/// Variables that a format may define, the implicit ones included.
pub const VARIABLES: usize = 32;
/// The payload at hand, the whole one that the format reads, and up to two that it names besides.
pub const PAYLOADS: usize = 4;

/// An integer in a payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Integer {
    /// 1 to 8.
    pub bytes: usize,
    pub signed: bool,
    pub big_endian: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Binary {
    Add,
    Subtract,
    Multiply,
    Divide,
    Modulo,
    And,
    Or,
    Xor,
    ShiftLeft,
    ShiftRight,
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Both,
    Either,
    Minimum,
    Maximum,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unary {
    Negate,
    Invert,
    Not,
    Absolute,
    Bcd,
    /// 1 if there is a value, else 0.
    Available,
}

/// Where in a payload: from its start, from its end if a negative number was written, or computed.
#[derive(Debug, Clone, PartialEq)]
pub enum Place {
    Fixed(i32),
    Computed(Box<Expression>),
}

#[derive(Debug, Clone, PartialEq)]
pub enum Expression {
    Constant(i128),
    Variable(usize),
    /// Number of bytes of the payload at hand.
    Length,
    /// A payload is that of [`Scene::payloads`].
    Read {
        payload: usize,
        at: Place,
        integer: Integer,
    },
    /// A byte of the advertiser's address, 0 the first as it is written.
    Address(Box<Expression>),
    /// A byte of the key that is being tried.
    Key(Box<Expression>),
    Unary(Unary, Box<Expression>),
    Binary(Binary, Box<Expression>, Box<Expression>),
    /// Condition, value if it is not zero, value if it is.
    Select(Box<[Expression; 3]>),
    /// The first, or the second if the first is not available.
    Otherwise(Box<[Expression; 2]>),
    /// Bits `low` to `high` of an integer, bit 0 the lowest.
    Bits {
        of: Box<Expression>,
        low: u8,
        high: u8,
    },
    /// The lowest bits of an integer in two's complement.
    Signed {
        of: Box<Expression>,
        bits: u8,
    },
}

/// All that an expression may look at.
#[derive(Clone, Copy)]
pub struct Scene<'a> {
    pub frame: &'a Frame<'a>,
    pub payloads: [&'a [u8]; PAYLOADS],
    pub variables: &'a [Option<i128>; VARIABLES],
    pub key: &'a [u8],
    /// The cost that the decoding of a frame may still have. An expression beyond it is not
    /// available.
    pub budget: &'a Cell<u32>,
}

impl Scene<'_> {
    /// Spends a cost. Returns whether that much was left.
    pub fn spend(&self, cost: u32) -> bool {
        let left = self.budget.get().checked_sub(cost);
        self.budget.set(left.unwrap_or(0));
        left.is_some()
    }
}

impl Expression {
    /// The value; `None` is "not available".
    pub fn evaluate(&self, scene: &Scene<'_>) -> Option<i128> {
        if !scene.spend(1) {
            return None;
        }
        match self {
            Expression::Constant(value) => Some(*value),
            Expression::Variable(slot) => *scene.variables.get(*slot)?,
            Expression::Length => i128::try_from(scene.payloads.first()?.len()).ok(),
            Expression::Read {
                payload,
                at,
                integer,
            } => {
                let payload = scene.payloads.get(*payload)?;
                integer.read(payload, at.offset(payload, scene)?)
            }
            Expression::Address(index) => {
                let index = usize::try_from(index.evaluate(scene)?).ok()?;
                scene.frame.address?.get(index).copied().map(i128::from)
            }
            Expression::Key(index) => {
                let index = usize::try_from(index.evaluate(scene)?).ok()?;
                scene.key.get(index).copied().map(i128::from)
            }
            Expression::Unary(Unary::Available, of) => {
                Some(i128::from(of.evaluate(scene).is_some()))
            }
            Expression::Unary(operator, of) => operator.apply(of.evaluate(scene)?),
            Expression::Binary(operator, left, right) => {
                operator.apply(left.evaluate(scene)?, right.evaluate(scene)?)
            }
            Expression::Select(parts) => {
                let [condition, then, otherwise] = parts.as_ref();
                if condition.evaluate(scene)? != 0 {
                    then.evaluate(scene)
                } else {
                    otherwise.evaluate(scene)
                }
            }
            Expression::Otherwise(parts) => {
                let [first, second] = parts.as_ref();
                first.evaluate(scene).or_else(|| second.evaluate(scene))
            }
            Expression::Bits { of, low, high } => Some(bits(of.evaluate(scene)?, *low, *high)),
            Expression::Signed { of, bits } => Some(signed(of.evaluate(scene)?, *bits)),
        }
    }

    /// The value as a condition: "not available" is false.
    pub fn holds(&self, scene: &Scene<'_>) -> bool {
        self.evaluate(scene).is_some_and(|value| value != 0)
    }
}

impl Place {
    /// The offset in a payload; `None` outside it.
    pub fn offset(&self, payload: &[u8], scene: &Scene<'_>) -> Option<usize> {
        let offset = match self {
            Place::Fixed(at) if *at < 0 => payload
                .len()
                .checked_sub(usize::try_from(at.unsigned_abs()).ok()?)?,
            Place::Fixed(at) => usize::try_from(*at).ok()?,
            Place::Computed(at) => usize::try_from(at.evaluate(scene)?).ok()?,
        };
        (offset <= payload.len()).then_some(offset)
    }
}

impl Integer {
    /// The integer at an offset; `None` if the payload ends before.
    pub fn read(self, payload: &[u8], at: usize) -> Option<i128> {
        let bytes = payload.get(at..at.checked_add(self.bytes)?)?;
        let mut value: u64 = 0;
        if self.big_endian {
            for byte in bytes {
                value = value << 8 | u64::from(*byte);
            }
        } else {
            for byte in bytes.iter().rev() {
                value = value << 8 | u64::from(*byte);
            }
        }
        if !self.signed {
            return Some(i128::from(value));
        }
        let unused = 64_usize.saturating_sub(self.bytes * 8) as u32;
        let value = value.checked_shl(unused)?.cast_signed();
        value.checked_shr(unused).map(i128::from)
    }
}

/// Bits `low` to `high`, both at most 63.
pub fn bits(value: i128, low: u8, high: u8) -> i128 {
    let width = u32::from(high.saturating_sub(low)) + 1;
    (value >> low.min(63)) & ((1 << width.min(64)) - 1)
}

/// The lowest `bits` of a value in two's complement.
pub fn signed(value: i128, bits: u8) -> i128 {
    let unused = 128 - u32::from(bits.clamp(1, 64));
    (value << unused) >> unused
}

impl Unary {
    pub fn apply(self, value: i128) -> Option<i128> {
        match self {
            Unary::Negate => value.checked_neg(),
            Unary::Invert => Some(!value),
            Unary::Not => Some(i128::from(value == 0)),
            Unary::Absolute => value.checked_abs(),
            Unary::Bcd => bcd(value),
            Unary::Available => Some(1),
        }
    }
}

/// The number whose decimal digits are the hexadecimal digits of a value of at most 64 bits.
fn bcd(value: i128) -> Option<i128> {
    let value = u64::try_from(value).ok()?;
    let mut number = 0;
    for digit in value
        .to_be_bytes()
        .iter()
        .flat_map(|byte| [byte >> 4, byte & 15])
    {
        if digit > 9 {
            return None;
        }
        number = number * 10 + i128::from(digit);
    }
    Some(number)
}

impl Binary {
    pub fn apply(self, left: i128, right: i128) -> Option<i128> {
        match self {
            Binary::Add => left.checked_add(right),
            Binary::Subtract => left.checked_sub(right),
            Binary::Multiply => left.checked_mul(right),
            Binary::Divide => divide(left, right),
            Binary::Modulo => left.checked_sub(divide(left, right)?.checked_mul(right)?),
            Binary::And => Some(left & right),
            Binary::Or => Some(left | right),
            Binary::Xor => Some(left ^ right),
            Binary::ShiftLeft => left.checked_mul(1 << shift(right)?),
            Binary::ShiftRight => Some(left >> shift(right)?),
            Binary::Equal => Some(i128::from(left == right)),
            Binary::NotEqual => Some(i128::from(left != right)),
            Binary::Less => Some(i128::from(left < right)),
            Binary::LessOrEqual => Some(i128::from(left <= right)),
            Binary::Greater => Some(i128::from(left > right)),
            Binary::GreaterOrEqual => Some(i128::from(left >= right)),
            Binary::Both => Some(i128::from(left != 0 && right != 0)),
            Binary::Either => Some(i128::from(left != 0 || right != 0)),
            Binary::Minimum => Some(left.min(right)),
            Binary::Maximum => Some(left.max(right)),
        }
    }
}

fn shift(by: i128) -> Option<u32> {
    u32::try_from(by).ok().filter(|by| *by < 64)
}

/// The quotient, rounded towards zero as in C. Nearly all numbers fit 64 bits, whose division is
/// much faster.
fn divide(left: i128, right: i128) -> Option<i128> {
    match (i64::try_from(left), i64::try_from(right)) {
        (Ok(left), Ok(right)) if right != -1 => left.checked_div(right).map(i128::from),
        _ => left.checked_div(right),
    }
}
