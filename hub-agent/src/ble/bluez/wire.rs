//! D-Bus messages as bytes, in both directions. Values borrow from the buffer, and variants are
//! unwrapped, so a value of an unexpected type is a value, not an error. Every length is checked,
//! and no allocation exceeds the received bytes.

use std::fmt;

/// Longer messages are refused; the largest real ones list every device that BlueZ remembers.
const MAX_MESSAGE_BYTES: usize = 32 << 20;
/// The nesting of arrays and structures that the D-Bus specification allows.
const MAX_DEPTH: usize = 64;
const LITTLE_ENDIAN: u8 = b'l';
const BIG_ENDIAN: u8 = b'B';
const PROTOCOL_VERSION: u8 = 1;
/// The flag of a message to which no answer is expected.
pub const NO_REPLY_EXPECTED: u8 = 0x1;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Call,
    Return,
    Error,
    Signal,
}

/// One message, borrowed from the buffer it arrived in.
#[derive(Debug)]
pub struct Message<'a> {
    pub kind: Kind,
    pub flags: u8,
    pub serial: u32,
    pub reply_serial: u32,
    pub path: &'a str,
    pub interface: &'a str,
    pub member: &'a str,
    pub error_name: &'a str,
    pub sender: &'a str,
    signature: &'a str,
    body: &'a [u8],
    big_endian: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Value<'a> {
    Bool(bool),
    /// An integer of any size; the largest unsigned ones saturate.
    Int(i64),
    Double(f64),
    /// A string, an object path or a signature.
    Str(&'a str),
    Bytes(&'a [u8]),
    Array(Vec<Value<'a>>),
    Dict(Vec<(Value<'a>, Value<'a>)>),
    Struct(Vec<Value<'a>>),
    /// Only for writing: the signature and the value.
    Variant(&'a str, Box<Value<'a>>),
}

impl<'a> Value<'a> {
    pub fn as_str(&self) -> Option<&'a str> {
        if let Self::Str(text) = self {
            Some(text)
        } else {
            None
        }
    }

    pub fn as_bool(&self) -> Option<bool> {
        if let Self::Bool(value) = self {
            Some(*value)
        } else {
            None
        }
    }

    pub fn as_int(&self) -> Option<i64> {
        if let Self::Int(value) = self {
            Some(*value)
        } else {
            None
        }
    }

    pub fn as_bytes(&self) -> Option<&'a [u8]> {
        if let Self::Bytes(bytes) = self {
            Some(bytes)
        } else {
            None
        }
    }

    /// The entries of a dictionary; none of any other value.
    pub fn entries(&self) -> &[(Value<'a>, Value<'a>)] {
        if let Self::Dict(entries) = self {
            entries
        } else {
            &[]
        }
    }

    /// The items of an array; none of any other value.
    pub fn items(&self) -> &[Value<'a>] {
        if let Self::Array(items) = self {
            items
        } else {
            &[]
        }
    }

    /// The value under `key` in a dictionary with strings as keys.
    pub fn get(&self, key: &str) -> Option<&Value<'a>> {
        self.entries()
            .iter()
            .find(|(name, _)| name.as_str() == Some(key))
            .map(|(_, value)| value)
    }

    pub fn string(text: &'a str) -> Self {
        Self::Variant("s", Box::new(Self::Str(text)))
    }

    pub fn boolean(value: bool) -> Self {
        Self::Variant("b", Box::new(Self::Bool(value)))
    }
}

/// The received data is not D-Bus. The connection cannot continue and has to be replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed(&'static str);

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "malformed D-Bus message: {}", self.0)
    }
}

impl std::error::Error for Malformed {}

impl<'a> Message<'a> {
    /// The first message of the buffer and its length, or `None` while it is incomplete.
    pub fn parse(buffer: &'a [u8]) -> Result<Option<(Self, usize)>, Malformed> {
        let Some(fixed) = buffer.first_chunk::<16>() else {
            return Ok(None);
        };
        let [endian, kind, flags, version, ..] = *fixed;
        let big_endian = match endian {
            LITTLE_ENDIAN => false,
            BIG_ENDIAN => true,
            _ => return Err(Malformed("byte order")),
        };
        if version != PROTOCOL_VERSION {
            return Err(Malformed("protocol version"));
        }
        let kind = match kind {
            1 => Kind::Call,
            2 => Kind::Return,
            3 => Kind::Error,
            4 => Kind::Signal,
            _ => return Err(Malformed("message type")),
        };
        let mut header = Reader {
            data: buffer,
            at: 4,
            big_endian,
        };
        let body_bytes = header.u32()? as usize;
        let serial = header.u32()?;
        let fields_bytes = header.u32()? as usize;
        if body_bytes > MAX_MESSAGE_BYTES || fields_bytes > MAX_MESSAGE_BYTES {
            return Err(Malformed("too long"));
        }
        let fields_end = 16 + fields_bytes;
        let body_start = fields_end.next_multiple_of(8);
        let end = body_start + body_bytes;
        let Some(body) = buffer.get(body_start..end) else {
            return Ok(None);
        };

        let mut message = Self {
            kind,
            flags,
            serial,
            reply_serial: 0,
            path: "",
            interface: "",
            member: "",
            error_name: "",
            sender: "",
            signature: "",
            body,
            big_endian,
        };
        let fields = buffer.get(..fields_end).ok_or(Malformed("header fields"))?;
        let mut reader = Reader {
            data: fields,
            at: 16,
            big_endian,
        };
        while reader.at < fields_end {
            reader.align(8)?;
            let code = reader.u8()?;
            let value = reader.variant(0)?;
            let text = value.as_str().unwrap_or_default();
            match code {
                1 => message.path = text,
                2 => message.interface = text,
                3 => message.member = text,
                4 => message.error_name = text,
                5 => {
                    message.reply_serial = value
                        .as_int()
                        .and_then(|serial| serial.try_into().ok())
                        .unwrap_or(0)
                }
                7 => message.sender = text,
                8 => message.signature = text,
                _ => {}
            }
        }
        Ok(Some((message, end)))
    }

    /// The arguments.
    pub fn body(&self) -> Result<Vec<Value<'a>>, Malformed> {
        let mut reader = Reader {
            data: self.body,
            at: 0,
            big_endian: self.big_endian,
        };
        let mut signature = self.signature.as_bytes();
        let mut values = Vec::with_capacity(3);
        while !signature.is_empty() {
            values.push(reader.value(&mut signature, 0)?);
        }
        Ok(values)
    }
}

struct Reader<'a> {
    data: &'a [u8],
    at: usize,
    big_endian: bool,
}

impl<'a> Reader<'a> {
    fn align(&mut self, to: usize) -> Result<(), Malformed> {
        self.at = self.at.next_multiple_of(to);
        if self.at > self.data.len() {
            Err(Malformed("cut off"))
        } else {
            Ok(())
        }
    }

    fn bytes(&mut self, count: usize) -> Result<&'a [u8], Malformed> {
        let end = self.at.checked_add(count).ok_or(Malformed("cut off"))?;
        let bytes = self.data.get(self.at..end).ok_or(Malformed("cut off"))?;
        self.at = end;
        Ok(bytes)
    }

    /// A fixed-size value, as little-endian bytes.
    fn fixed<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        self.align(N)?;
        let bytes = self.bytes(N)?;
        let mut fixed: [u8; N] = bytes.try_into().map_err(|_| Malformed("cut off"))?;
        if self.big_endian {
            fixed.reverse();
        }
        Ok(fixed)
    }

    fn u8(&mut self) -> Result<u8, Malformed> {
        self.fixed().map(u8::from_le_bytes)
    }

    fn u32(&mut self) -> Result<u32, Malformed> {
        self.fixed().map(u32::from_le_bytes)
    }

    /// Text of this length, with the NUL behind it.
    fn text(&mut self, length: usize) -> Result<&'a str, Malformed> {
        let text = self.bytes(length)?;
        if self.u8()? != 0 {
            return Err(Malformed("unterminated text"));
        }
        std::str::from_utf8(text).map_err(|_| Malformed("text that is not UTF-8"))
    }

    fn variant(&mut self, depth: usize) -> Result<Value<'a>, Malformed> {
        let length = usize::from(self.u8()?);
        let mut signature = self.bytes(length)?;
        if self.u8()? != 0 {
            return Err(Malformed("unterminated signature"));
        }
        let value = self.value(&mut signature, depth + 1)?;
        if signature.is_empty() {
            Ok(value)
        } else {
            Err(Malformed("variant of several types"))
        }
    }

    /// Removes one complete type from the front of the signature and reads its value.
    fn value(&mut self, signature: &mut &[u8], depth: usize) -> Result<Value<'a>, Malformed> {
        if depth > MAX_DEPTH {
            return Err(Malformed("nested too deep"));
        }
        Ok(match take(signature)? {
            b'y' => Value::Int(self.u8()?.into()),
            b'b' => Value::Bool(self.u32()? != 0),
            b'n' => Value::Int(i16::from_le_bytes(self.fixed()?).into()),
            b'q' => Value::Int(u16::from_le_bytes(self.fixed()?).into()),
            b'i' => Value::Int(i32::from_le_bytes(self.fixed()?).into()),
            b'u' | b'h' => Value::Int(self.u32()?.into()),
            b'x' => Value::Int(i64::from_le_bytes(self.fixed()?)),
            b't' => {
                Value::Int(i64::try_from(u64::from_le_bytes(self.fixed()?)).unwrap_or(i64::MAX))
            }
            b'd' => Value::Double(f64::from_le_bytes(self.fixed()?)),
            b's' | b'o' => {
                let length = self.u32()? as usize;
                Value::Str(self.text(length)?)
            }
            b'g' => {
                let length = usize::from(self.u8()?);
                Value::Str(self.text(length)?)
            }
            b'v' => self.variant(depth)?,
            b'(' => {
                self.align(8)?;
                let mut fields = Vec::new();
                while signature.first() != Some(&b')') {
                    fields.push(self.value(signature, depth + 1)?);
                }
                take(signature)?;
                Value::Struct(fields)
            }
            b'a' => self.array(signature, depth)?,
            _ => return Err(Malformed("unknown type")),
        })
    }

    fn array(&mut self, signature: &mut &[u8], depth: usize) -> Result<Value<'a>, Malformed> {
        let length = self.u32()? as usize;
        let element = one_type(signature)?;
        match element.first() {
            Some(b'y') => return self.bytes(length).map(Value::Bytes),
            // The padding before the first element exists even if there is no element.
            Some(b'x' | b't' | b'd' | b'(' | b'{') => self.align(8)?,
            _ => {}
        }
        let end = self
            .at
            .checked_add(length)
            .filter(|end| *end <= self.data.len())
            .ok_or(Malformed("cut off"))?;
        if let Some(entry) = element.strip_prefix(b"{") {
            let mut entries = Vec::new();
            while self.at < end {
                self.align(8)?;
                let mut types = entry;
                entries.push((
                    self.value(&mut types, depth + 1)?,
                    self.value(&mut types, depth + 1)?,
                ));
            }
            return Ok(Value::Dict(entries));
        }
        let mut items = Vec::new();
        while self.at < end {
            let before = self.at;
            items.push(self.value(&mut { element }, depth + 1)?);
            if self.at == before {
                return Err(Malformed("array of nothing"));
            }
        }
        Ok(Value::Array(items))
    }
}

fn take(signature: &mut &[u8]) -> Result<u8, Malformed> {
    let (first, rest) = signature.split_first().ok_or(Malformed("signature"))?;
    *signature = rest;
    Ok(*first)
}

/// Removes one complete type from the front of the signature.
fn one_type<'s>(signature: &mut &'s [u8]) -> Result<&'s [u8], Malformed> {
    let mut open = 0_usize;
    for (at, code) in signature.iter().enumerate() {
        match code {
            b'(' | b'{' => open += 1,
            b')' | b'}' => open = open.checked_sub(1).ok_or(Malformed("signature"))?,
            _ => {}
        }
        if open == 0 && *code != b'a' {
            let (first, rest) = signature
                .split_at_checked(at + 1)
                .ok_or(Malformed("signature"))?;
            *signature = rest;
            return Ok(first);
        }
    }
    Err(Malformed("signature"))
}

/// A message to send. Empty fields are omitted.
#[derive(Clone, Copy, Debug)]
pub struct Outgoing<'a> {
    pub kind: Kind,
    pub flags: u8,
    pub reply_serial: u32,
    pub destination: &'a str,
    pub path: &'a str,
    pub interface: &'a str,
    pub member: &'a str,
    pub error_name: &'a str,
    pub signature: &'a str,
    pub body: &'a [Value<'a>],
}

impl Outgoing<'_> {
    pub fn encode(&self, serial: u32) -> Vec<u8> {
        let mut body = Writer(Vec::new());
        let mut signature = self.signature.as_bytes();
        for value in self.body {
            body.value(one_type(&mut signature).unwrap_or_default(), value);
        }
        let kind = match self.kind {
            Kind::Call => 1,
            Kind::Return => 2,
            Kind::Error => 3,
            Kind::Signal => 4,
        };
        let mut message = Writer(vec![LITTLE_ENDIAN, kind, self.flags, PROTOCOL_VERSION]);
        message.u32(body.0.len());
        message.0.extend(serial.to_le_bytes());
        message.array(8, |fields| {
            for (code, signature, text) in [
                (1_u8, "o", self.path),
                (2, "s", self.interface),
                (3, "s", self.member),
                (4, "s", self.error_name),
                (6, "s", self.destination),
                (8, "g", self.signature),
            ] {
                if !text.is_empty() {
                    fields.align(8);
                    fields.0.push(code);
                    fields.variant(signature, &Value::Str(text));
                }
            }
            if self.reply_serial != 0 {
                fields.align(8);
                fields.0.push(5);
                fields.variant("u", &Value::Int(self.reply_serial.into()));
            }
        });
        message.align(8);
        message.0.extend(body.0);
        message.0
    }
}

struct Writer(Vec<u8>);

impl Writer {
    fn align(&mut self, to: usize) {
        self.0.resize(self.0.len().next_multiple_of(to), 0);
    }

    fn u32(&mut self, value: usize) {
        self.align(4);
        self.0
            .extend(u32::try_from(value).unwrap_or(u32::MAX).to_le_bytes());
    }

    fn array(&mut self, alignment: usize, write: impl FnOnce(&mut Self)) {
        self.u32(0);
        let length_at = self.0.len() - 4;
        self.align(alignment);
        let start = self.0.len();
        write(self);
        let length = u32::try_from(self.0.len() - start).unwrap_or(u32::MAX);
        if let Some(place) = self.0.get_mut(length_at..length_at + 4) {
            place.copy_from_slice(&length.to_le_bytes());
        }
    }

    fn variant(&mut self, signature: &str, value: &Value<'_>) {
        self.value(b"g", &Value::Str(signature));
        self.value(signature.as_bytes(), value);
    }

    /// The agent's values always fit their signatures; a value that does not is omitted.
    fn value(&mut self, signature: &[u8], value: &Value<'_>) {
        match (signature, value) {
            (b"y", Value::Int(value)) => self.0.push(u8::try_from(*value).unwrap_or_default()),
            (b"b", Value::Bool(value)) => self.u32(usize::from(*value)),
            (b"u", Value::Int(value)) => self.u32(usize::try_from(*value).unwrap_or_default()),
            (b"s" | b"o", Value::Str(text)) => {
                self.u32(text.len());
                self.0.extend(text.as_bytes());
                self.0.push(0);
            }
            (b"g", Value::Str(text)) => {
                self.0.push(u8::try_from(text.len()).unwrap_or_default());
                self.0.extend(text.as_bytes());
                self.0.push(0);
            }
            (b"v", Value::Variant(signature, value)) => self.variant(signature, value),
            (b"ay", Value::Bytes(bytes)) => self.array(1, |array| array.0.extend(*bytes)),
            ([b'a', b'{', key, types @ .., b'}'], Value::Dict(entries)) => self.array(8, |array| {
                for (name, value) in entries {
                    array.align(8);
                    array.value(&[*key], name);
                    array.value(types, value);
                }
            }),
            ([b'a', element @ ..], Value::Array(items)) => {
                self.array(if element.starts_with(b"(") { 8 } else { 4 }, |array| {
                    for item in items {
                        array.value(element, item);
                    }
                });
            }
            ([b'(', types @ .., b')'], Value::Struct(fields)) => {
                self.align(8);
                let mut types = types;
                for field in fields {
                    self.value(one_type(&mut types).unwrap_or_default(), field);
                }
            }
            _ => debug_assert!(
                false,
                "{value:?} is no {}",
                String::from_utf8_lossy(signature)
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn signal<'a>(signature: &'a str, body: &'a [Value<'a>]) -> Vec<u8> {
        Outgoing {
            kind: Kind::Signal,
            flags: 0,
            reply_serial: 7,
            destination: ":1.5",
            path: "/org/bluez/hci0",
            interface: "org.freedesktop.DBus.Properties",
            member: "PropertiesChanged",
            error_name: "",
            signature,
            body,
        }
        .encode(42)
    }

    fn properties() -> Vec<Value<'static>> {
        let data = Value::Dict(vec![(
            Value::Str("0000fcd2-0000-1000-8000-00805f9b34fb"),
            Value::Variant("ay", Box::new(Value::Bytes(&[0, 255, 3]))),
        )]);
        vec![
            Value::Str("org.bluez.Device1"),
            Value::Dict(vec![
                (Value::Str("Connected"), Value::boolean(true)),
                (
                    Value::Str("ServiceData"),
                    Value::Variant("a{sv}", Box::new(data)),
                ),
                (
                    Value::Str("Patterns"),
                    Value::Variant(
                        "a(yyay)",
                        Box::new(Value::Array(vec![Value::Struct(vec![
                            Value::Int(0),
                            Value::Int(255),
                            Value::Bytes(&[4]),
                        ])])),
                    ),
                ),
            ]),
            Value::Array(vec![Value::Str("Name"), Value::Str("RSSI")]),
        ]
    }

    #[test]
    fn a_written_message_is_read_back_with_unwrapped_variants() {
        let body = properties();
        let bytes = signal("sa{sv}as", &body);
        let (message, length) = Message::parse(&bytes).unwrap().unwrap();
        assert_eq!(length, bytes.len());
        assert_eq!(
            (message.kind, message.serial, message.reply_serial),
            (Kind::Signal, 42, 7)
        );
        assert_eq!(
            (message.path, message.member),
            ("/org/bluez/hci0", "PropertiesChanged")
        );
        let body = message.body().unwrap();
        assert_eq!(body[0].as_str(), Some("org.bluez.Device1"));
        assert_eq!(
            body[1].get("Connected").and_then(Value::as_bool),
            Some(true)
        );
        let data = body[1].get("ServiceData").unwrap().entries();
        assert_eq!(data[0].1.as_bytes(), Some(&[0, 255, 3][..]));
        assert_eq!(
            body[1].get("Patterns"),
            Some(&Value::Array(vec![Value::Struct(vec![
                Value::Int(0),
                Value::Int(255),
                Value::Bytes(&[4])
            ])]))
        );
        assert_eq!(body[2].items().len(), 2);
    }

    #[test]
    fn a_big_endian_message_with_every_number_type_is_read() {
        // A signal with the body "ynqiuxtd", written by hand from the D-Bus specification.
        let mut bytes = vec![b'B', 4, 0, 1, 0, 0, 0, 40, 0, 0, 0, 9, 0, 0, 0, 14];
        bytes.extend([8, 1, b'g', 0, 8]);
        bytes.extend(b"ynqiuxtd\0");
        bytes.extend([0, 0]);
        bytes.extend([200, 0, 0xff, 0xfe, 0x12, 0x34, 0, 0]);
        bytes.extend(i32::MIN.to_be_bytes());
        bytes.extend(u32::MAX.to_be_bytes());
        bytes.extend((-5_i64).to_be_bytes());
        bytes.extend(u64::MAX.to_be_bytes());
        bytes.extend(1.5_f64.to_be_bytes());
        let (message, _) = Message::parse(&bytes).unwrap().unwrap();
        assert_eq!(
            message.body().unwrap(),
            [
                Value::Int(200),
                Value::Int(-2),
                Value::Int(0x1234),
                Value::Int(i32::MIN.into()),
                Value::Int(u32::MAX.into()),
                Value::Int(-5),
                Value::Int(i64::MAX),
                Value::Double(1.5)
            ]
        );
    }

    #[test]
    fn an_incomplete_message_waits_and_a_damaged_one_does_not_panic() {
        let body = properties();
        let bytes = signal("sa{sv}as", &body);
        for length in 0..bytes.len() {
            assert!(
                matches!(Message::parse(&bytes[..length]), Ok(None)),
                "{length} bytes are not a whole message"
            );
        }
        for at in 0..bytes.len() {
            for damage in [0, 1, 2, 7, 31, 63, 64, 97, 127, 128, 254, 255] {
                let mut damaged = bytes.clone();
                damaged[at] = damage;
                if let Ok(Some((message, _))) = Message::parse(&damaged) {
                    let _ = message.body();
                }
            }
        }
    }

    #[test]
    fn endless_nesting_is_refused() {
        let mut bytes = signal("v", &[Value::string("x")]);
        // A variant in a variant in a variant: each is a signature of one byte.
        let body: Vec<u8> = std::iter::repeat_n([1, b'v', 0], 1_000).flatten().collect();
        bytes.truncate(bytes.len() - 10);
        bytes[4..8].copy_from_slice(&u32::try_from(body.len()).unwrap().to_le_bytes());
        bytes.extend(body);
        let (message, _) = Message::parse(&bytes).unwrap().unwrap();
        assert_eq!(message.body(), Err(Malformed("nested too deep")));
    }
}
