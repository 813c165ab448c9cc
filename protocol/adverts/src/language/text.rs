//! Reads the text of an expression: `select(raw & 0x8000, -(raw & 0x7fff), raw)`.

use super::expression::{Binary, Expression, Integer, Place, Unary};

/// Bytes of the text of one expression.
const TEXT: usize = 500;
/// Parts of one expression.
const PARTS: usize = 100;
/// How deep parts may stand in parts.
const DEPTH: usize = 24;

/// The names that an expression may use.
#[derive(Debug, Clone, Default)]
pub struct Names {
    /// Variables in order of definition, with their slots. Names are unique.
    pub variables: Vec<(String, usize)>,
    /// Names of payloads: of the one at index 1, and so on.
    pub payloads: Vec<String>,
    pub big_endian: bool,
    /// Whether `key(i)` may be used.
    pub key: bool,
}

/// Parses an expression; the error describes the mistake in the text. `parts` is raised by the
/// number of the expression's parts.
pub fn parse(text: &str, names: &Names, parts: &mut usize) -> Result<Expression, String> {
    if text.len() > TEXT {
        return Err(format!("must not be longer than {TEXT} characters"));
    }
    let mut parser = Parser {
        tokens: tokens(text)?,
        at: 0,
        depth: 0,
        parts: 0,
        names,
    };
    let expression = parser.binary(0)?;
    if let Some((at, token)) = parser.peek() {
        return Err(format!("column {at}: {token:?} is not expected here"));
    }
    *parts += parser.parts;
    Ok(expression)
}

/// The type of an integer by its name: `u8`, `i24`, `u16be`, `i32le`.
pub fn integer(name: &str, big_endian: bool) -> Option<Integer> {
    let (name, big_endian) = match (name.strip_suffix("be"), name.strip_suffix("le")) {
        (Some(name), _) => (name, true),
        (_, Some(name)) => (name, false),
        _ => (name, big_endian),
    };
    let (signed, width) = match (name.strip_prefix('u'), name.strip_prefix('i')) {
        (Some(width), _) => (false, width),
        (_, Some(width)) => (true, width),
        _ => return None,
    };
    let widths = ["8", "16", "24", "32", "40", "48", "56", "64"];
    let bytes = widths.iter().position(|known| *known == width)? + 1;
    Some(Integer {
        bytes,
        signed,
        big_endian,
    })
}

/// A number as it is written in definitions: decimal, `0x..` or `0b..`.
pub fn number(text: &str) -> Option<i128> {
    let (text, radix) = match (text.strip_prefix("0x"), text.strip_prefix("0b")) {
        (Some(digits), _) => (digits, 16),
        (_, Some(digits)) => (digits, 2),
        _ => (text, 10),
    };
    // A sign is no digit here, although the standard library accepts one.
    if !text.starts_with(|first: char| first.is_ascii_alphanumeric()) {
        return None;
    }
    let value = i128::from_str_radix(text, radix).ok()?;
    (value <= i128::from(u64::MAX)).then_some(value)
}

#[derive(Debug, Clone, PartialEq)]
enum Token {
    Number(i128),
    Name(String),
    Sign(&'static str),
}

/// Longer signs stand before those that begin them.
const SIGNS: &[&str] = &[
    "<<", ">>", "==", "!=", "<=", ">=", "&&", "||", "+", "-", "*", "&", "|", "^", "~", "!", "<",
    ">", "(", ")", ",",
];

/// The tokens of a text and their columns, from 1.
fn tokens(text: &str) -> Result<Vec<(usize, Token)>, String> {
    let mut found = Vec::new();
    let mut rest = text;
    loop {
        rest = rest.trim_start_matches([' ', '\t', '\n', '\r']);
        let column = text.len() - rest.len() + 1;
        let Some(first) = rest.chars().next() else {
            return Ok(found);
        };
        let token = if first.is_ascii_alphanumeric() || first == '_' {
            let end = rest
                .find(|next: char| !next.is_ascii_alphanumeric() && next != '_')
                .unwrap_or(rest.len());
            let (word, after) = rest.split_at(end);
            rest = after;
            if first.is_ascii_digit() {
                let value = number(word)
                    .ok_or_else(|| format!("column {column}: {word} is not a number of 64 bits"))?;
                Token::Number(value)
            } else {
                Token::Name(word.to_owned())
            }
        } else {
            let sign = SIGNS.iter().find(|sign| rest.starts_with(**sign));
            let sign = sign.ok_or_else(|| {
                format!("column {column}: {first:?} is not part of an expression")
            })?;
            rest = rest.get(sign.len()..).unwrap_or_default();
            Token::Sign(sign)
        };
        found.push((column, token));
    }
}

struct Parser<'n> {
    tokens: Vec<(usize, Token)>,
    at: usize,
    depth: usize,
    parts: usize,
    names: &'n Names,
}

/// The binary operator of a token and how strongly it binds.
fn operator(token: &Token) -> Option<(u8, Binary)> {
    let sign = match token {
        Token::Sign(sign) => sign,
        Token::Name(name) => name.as_str(),
        Token::Number(_) => return None,
    };
    Some(match sign {
        "||" => (1, Binary::Either),
        "&&" => (2, Binary::Both),
        "==" => (3, Binary::Equal),
        "!=" => (3, Binary::NotEqual),
        "<" => (3, Binary::Less),
        "<=" => (3, Binary::LessOrEqual),
        ">" => (3, Binary::Greater),
        ">=" => (3, Binary::GreaterOrEqual),
        "|" => (4, Binary::Or),
        "^" => (5, Binary::Xor),
        "&" => (6, Binary::And),
        "<<" => (7, Binary::ShiftLeft),
        ">>" => (7, Binary::ShiftRight),
        "+" => (8, Binary::Add),
        "-" => (8, Binary::Subtract),
        "*" => (9, Binary::Multiply),
        "div" => (9, Binary::Divide),
        "mod" => (9, Binary::Modulo),
        _ => return None,
    })
}

impl Parser<'_> {
    fn peek(&self) -> Option<(usize, &Token)> {
        self.tokens
            .get(self.at)
            .map(|(column, token)| (*column, token))
    }

    fn take(&mut self, sign: &'static str) -> bool {
        let found = self
            .peek()
            .is_some_and(|(_, token)| *token == Token::Sign(sign));
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, sign: &'static str) -> Result<(), String> {
        if self.take(sign) {
            return Ok(());
        }
        Err(match self.peek() {
            Some((column, _)) => format!("column {column}: {sign} is expected here"),
            None => format!("ends where {sign} is expected"),
        })
    }

    fn part(&mut self) -> Result<(), String> {
        self.parts += 1;
        if self.parts > PARTS {
            Err(format!("must not have more than {PARTS} parts"))
        } else {
            Ok(())
        }
    }

    /// Operators that bind at least as strongly as `least`.
    fn binary(&mut self, least: u8) -> Result<Expression, String> {
        self.depth += 1;
        if self.depth > DEPTH {
            return Err(format!("must not be nested deeper than {DEPTH}"));
        }
        let mut left = self.unary()?;
        while let Some((column, (strength, operator))) = self
            .peek()
            .and_then(|(column, token)| Some((column, operator(token)?)))
            && strength >= least
        {
            self.at += 1;
            self.part()?;
            let right = self.binary(strength + 1)?;
            left = combine(operator, left, right)
                .map_err(|problem| format!("column {column}: {problem}"))?;
        }
        self.depth -= 1;
        Ok(left)
    }

    fn unary(&mut self) -> Result<Expression, String> {
        let signs = [
            ("-", Unary::Negate),
            ("~", Unary::Invert),
            ("!", Unary::Not),
        ];
        for (sign, operator) in signs {
            if self.take(sign) {
                self.part()?;
                self.depth += 1;
                if self.depth > DEPTH {
                    return Err(format!("must not be nested deeper than {DEPTH}"));
                }
                let of = self.unary()?;
                self.depth -= 1;
                return Ok(apply(operator, of));
            }
        }
        self.primary()
    }

    fn primary(&mut self) -> Result<Expression, String> {
        self.part()?;
        let Some((column, token)) = self.tokens.get(self.at).cloned() else {
            return Err("ends where a value is expected".to_owned());
        };
        self.at += 1;
        match token {
            Token::Number(value) => Ok(Expression::Constant(value)),
            Token::Sign("(") => {
                let inner = self.binary(0)?;
                self.expect(")")?;
                Ok(inner)
            }
            Token::Name(name) => {
                if self.take("(") {
                    return self.call(&name).map_err(|problem| {
                        match problem.starts_with("column") {
                            true => problem,
                            false => format!("column {column}: {problem}"),
                        }
                    });
                }
                if name == "length" {
                    return Ok(Expression::Length);
                }
                let variable = self
                    .names
                    .variables
                    .iter()
                    .find(|(known, _)| *known == name);
                let (_, slot) = variable
                    .ok_or_else(|| format!("column {column}: {name} is not defined before"))?;
                Ok(Expression::Variable(*slot))
            }
            Token::Sign(sign) => Err(format!(
                "column {column}: a value is expected here, not {sign}"
            )),
        }
    }

    /// A call whose opening parenthesis was read.
    fn call(&mut self, name: &str) -> Result<Expression, String> {
        let mut payload = 0;
        let reading = integer(name, self.names.big_endian);
        if reading.is_some()
            && let Some((_, Token::Name(first))) = self.peek()
            && let Some(index) = self.names.payloads.iter().position(|known| known == first)
        {
            payload = index + 1;
            self.at += 1;
            self.expect(",")?;
        }
        let mut arguments = Vec::new();
        if !self.take(")") {
            loop {
                arguments.push(self.binary(0)?);
                if !self.take(",") {
                    break;
                }
            }
            self.expect(")")?;
        }
        if let Some(integer) = reading {
            let [at] = exactly(name, arguments)?;
            return Ok(Expression::Read {
                payload,
                at: place(at)?,
                integer,
            });
        }
        function(name, arguments, self.names.key)
    }
}

fn exactly<const N: usize>(
    name: &str,
    arguments: Vec<Expression>,
) -> Result<[Expression; N], String> {
    let given = arguments.len();
    arguments
        .try_into()
        .map_err(|_| format!("{name} takes {N} arguments, not {given}"))
}

/// A place in a payload: a constant may be negative, which counts from the end.
pub fn place(at: Expression) -> Result<Place, String> {
    match at {
        Expression::Constant(at) => {
            let at = i32::try_from(at).ok().filter(|at| at.abs() <= MAX_PLACE);
            at.map(Place::Fixed)
                .ok_or_else(|| format!("must be a place from -{MAX_PLACE} to {MAX_PLACE}"))
        }
        at => Ok(Place::Computed(Box::new(at))),
    }
}

/// A place beyond this is in no payload.
const MAX_PLACE: i32 = 1_650;

fn function(name: &str, arguments: Vec<Expression>, key: bool) -> Result<Expression, String> {
    let width = |of: &Expression| match of {
        Expression::Constant(value) => u8::try_from(*value).ok().filter(|value| *value <= 64),
        _ => None,
    };
    match name {
        "min" | "max" => {
            let operator = if name == "min" {
                Binary::Minimum
            } else {
                Binary::Maximum
            };
            let [left, right] = exactly(name, arguments)?;
            combine(operator, left, right)
        }
        "abs" | "bcd" | "available" => {
            let [of] = exactly(name, arguments)?;
            Ok(apply(
                if name == "abs" {
                    Unary::Absolute
                } else if name == "bcd" {
                    Unary::Bcd
                } else {
                    Unary::Available
                },
                of,
            ))
        }
        "select" => Ok(Expression::Select(Box::new(exactly(name, arguments)?))),
        "otherwise" => Ok(Expression::Otherwise(Box::new(exactly(name, arguments)?))),
        "bits" => {
            let [of, low, high] = exactly(name, arguments)?;
            match (width(&low), width(&high)) {
                (Some(low), Some(high)) if low <= high && high < 64 => Ok(Expression::Bits {
                    of: Box::new(of),
                    low,
                    high,
                }),
                _ => Err(
                    "bits takes a value, the lowest bit and the highest bit, from 0 to 63"
                        .to_owned(),
                ),
            }
        }
        "signed" => {
            let [of, bits] = exactly(name, arguments)?;
            match width(&bits) {
                Some(bits) if bits > 0 => Ok(Expression::Signed {
                    of: Box::new(of),
                    bits,
                }),
                _ => Err("signed takes a value and its number of bits, from 1 to 64".to_owned()),
            }
        }
        "address" => {
            let [of] = exactly(name, arguments)?;
            Ok(Expression::Address(Box::new(of)))
        }
        "key" if key => {
            let [of] = exactly(name, arguments)?;
            Ok(Expression::Key(Box::new(of)))
        }
        "key" => Err("key can be used in the check of decrypt alone".to_owned()),
        _ => Err(format!("there is no function {name}")),
    }
}

fn apply(operator: Unary, of: Expression) -> Expression {
    match of {
        Expression::Constant(value) if operator != Unary::Available => {
            match operator.apply(value) {
                Some(value) => Expression::Constant(value),
                None => Expression::Unary(operator, Box::new(of)),
            }
        }
        of => Expression::Unary(operator, Box::new(of)),
    }
}

/// Refuses what can never give a value; computes what is constant.
fn combine(operator: Binary, left: Expression, right: Expression) -> Result<Expression, String> {
    if let Expression::Constant(right) = right {
        match operator {
            Binary::Divide | Binary::Modulo if right == 0 => {
                return Err("divides by zero".to_owned());
            }
            Binary::ShiftLeft | Binary::ShiftRight if !(0..64).contains(&right) => {
                return Err("shifts by 0 to 63 bits only".to_owned());
            }
            _ => {}
        }
        if let Expression::Constant(left) = left {
            let value = operator.apply(left, right).ok_or("is beyond 128 bits")?;
            return Ok(Expression::Constant(value));
        }
    }
    Ok(Expression::Binary(
        operator,
        Box::new(left),
        Box::new(right),
    ))
}
