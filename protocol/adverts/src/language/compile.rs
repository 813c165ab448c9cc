//! Compiles formats and steps. Everything that a frame cannot change is decided here: names, sizes
//! of keys, constants, and how much a definition may cost.

use std::ops::RangeInclusive;

use uuid::Uuid;

use super::expression::{Expression, PAYLOADS, VARIABLES};
use super::node::{Node, Object, Result};
use super::program::{
    Authenticate, BytesTest, Carrier, Checksum, Cipher, Crc, Decrypt, Format, Items, Key, Length,
    PayloadTest, Range, Repeat, Step, Test,
};
use super::text::Names;
use crate::frame::{LONGEST_PAYLOAD, uuid16};

/// Ways in which one device fills its advertisements.
const FORMATS: usize = 16;
/// Steps of all formats together.
const STEPS: usize = 400;
/// Parts of all expressions together.
const PARTS: usize = 5_000;
/// Entries of all tables and lists together.
const ENTRIES: usize = 2_000;
/// How deep steps may stand in steps.
const DEPTH: usize = 8;
const LONGEST: i64 = LONGEST_PAYLOAD as i64;

/// The payload as the format found it, from anywhere inside `tlv`, `xor` and `decrypt`.
const WHOLE: &str = "frame";
/// Words that an expression reads in another way.
const RESERVED: &[&str] = &["length", "div", "mod", WHOLE];

const STEP_KINDS: &[&str] = &[
    "quantity",
    "let",
    "if",
    "switch",
    "tlv",
    "repeat",
    "xor",
    "decrypt",
    "authenticate",
    "checksum",
    "valid",
    "sequence",
    "counter",
    "address",
];

/// The state of compiling a definition.
#[derive(Default)]
pub struct Compiler {
    names: Names,
    steps: usize,
    parts: usize,
    entries: usize,
    depth: usize,
}

impl Compiler {
    pub fn names(&self) -> &Names {
        &self.names
    }

    pub fn big_endian(&self) -> bool {
        self.names.big_endian
    }

    pub fn spend_parts(&mut self, node: &Node<'_>, parts: usize) -> Result<()> {
        self.parts += parts;
        if self.parts > PARTS {
            return Err(node.error(format!(
                "the expressions have more than {PARTS} parts together"
            )));
        }
        Ok(())
    }

    pub fn spend_entries(&mut self, node: &Node<'_>, entries: usize) -> Result<()> {
        self.entries += entries;
        if self.entries > ENTRIES {
            return Err(node.error(format!(
                "tables and lists have more than {ENTRIES} entries together"
            )));
        }
        Ok(())
    }

    /// A format by itself, or several of them.
    pub fn definition(&mut self, node: &Node<'_>) -> Result<Vec<Format>> {
        if !node.map()?.has("formats") {
            return Ok(vec![self.format(node)?]);
        }
        let object = node.object(&["comment", "formats"])?;
        let list = object.required("formats")?;
        let formats = list.array()?;
        if formats.is_empty() || formats.len() > FORMATS {
            return Err(list.error(format!("must have 1 to {FORMATS} formats")));
        }
        formats.iter().map(|format| self.format(format)).collect()
    }

    fn format(&mut self, node: &Node<'_>) -> Result<Format> {
        let object = node.object(&["comment", "endian", "match", "read"])?;
        self.names = Names {
            payloads: vec![WHOLE.to_owned()],
            ..Names::default()
        };
        if let Some(endian) = object.get("endian") {
            self.names.big_endian = endian.choice(&["little", "big"])? == 1;
        }
        let test = self.test(&object.required("match")?)?;
        let steps = match object.get("read") {
            None => Vec::new(),
            Some(read) => self.block(&read)?,
        };
        Ok(Format { test, steps })
    }

    fn test(&mut self, node: &Node<'_>) -> Result<Test> {
        let known = [
            "manufacturer",
            "service",
            "length",
            "bytes",
            "name",
            "namePrefix",
            "serviceUuid",
            "also",
            "where",
        ];
        let object = node.object(&known)?;
        let mut test = Test {
            names: self.texts(&object, "name")?,
            name_prefixes: self.texts(&object, "namePrefix")?,
            ..Test::default()
        };
        if let Some(uuids) = object.get("serviceUuid") {
            test.service_uuids = uuids
                .one_or_list()?
                .iter()
                .map(service_uuid)
                .collect::<Result<_>>()?;
            self.spend_entries(&uuids, test.service_uuids.len())?;
        }
        test.payload = self.payload_test(&object)?;
        if test.payload.is_none()
            && let Some(extra) = ["length", "bytes"]
                .into_iter()
                .find_map(|key| object.get(key))
        {
            return Err(extra.error("goes with manufacturer or service"));
        }
        if let Some(also) = object.get("also") {
            for (name, node) in also.map()?.entries() {
                self.new_name(&node, name)?;
                self.names.payloads.push(name.to_owned());
                if self.names.payloads.len() >= PAYLOADS {
                    return Err(
                        also.error(format!("must not name more than {} payloads", PAYLOADS - 2))
                    );
                }
                let payload = self.payload_test(&node.object(&[
                    "manufacturer",
                    "service",
                    "length",
                    "bytes",
                ])?)?;
                test.also
                    .push(payload.ok_or_else(|| node.error("needs manufacturer or service"))?);
            }
        }
        test.condition = self.optional_expression(&object, "where")?;
        let empty =
            test.names.is_empty() && test.name_prefixes.is_empty() && test.service_uuids.is_empty();
        if empty && test.payload.is_none() {
            return Err(node.error("needs manufacturer, service, name, namePrefix or serviceUuid"));
        }
        Ok(test)
    }

    fn texts(&mut self, object: &Object<'_>, key: &str) -> Result<Vec<String>> {
        let Some(node) = object.get(key) else {
            return Ok(Vec::new());
        };
        let mut texts = Vec::new();
        for item in node.one_or_list()? {
            let text = item.text()?;
            if text.is_empty() || text.len() > 248 {
                return Err(item.error("must be 1 to 248 characters"));
            }
            texts.push(text.to_owned());
        }
        self.spend_entries(&node, texts.len())?;
        Ok(texts)
    }

    fn payload_test(&mut self, object: &Object<'_>) -> Result<Option<PayloadTest>> {
        let carrier = match (object.get("manufacturer"), object.get("service")) {
            (None, None) => return Ok(None),
            (Some(_), Some(service)) => {
                return Err(service.error("does not go with manufacturer: use also"));
            }
            (Some(company), None) if company.value == "any" => Carrier::AnyManufacturer,
            (Some(company), None) => Carrier::Manufacturer(
                company
                    .one_or_list()?
                    .iter()
                    .map(company_id)
                    .collect::<Result<_>>()?,
            ),
            (None, Some(service)) => Carrier::Service(
                service
                    .one_or_list()?
                    .iter()
                    .map(service_uuid)
                    .collect::<Result<_>>()?,
            ),
        };
        let lengths = match object.get("length") {
            None => Vec::new(),
            Some(lengths) => lengths
                .one_or_list()?
                .iter()
                .map(length)
                .collect::<Result<_>>()?,
        };
        let bytes = match object.get("bytes") {
            None => Vec::new(),
            Some(bytes) => bytes
                .one_or_list()?
                .iter()
                .map(bytes_test)
                .collect::<Result<Vec<_>>>()?,
        };
        let carriers = match &carrier {
            Carrier::Manufacturer(ids) => ids.len(),
            Carrier::Service(uuids) => uuids.len(),
            Carrier::AnyManufacturer => 1,
        };
        self.spend_entries(&object.node, carriers + lengths.len() + bytes.len())?;
        Ok(Some(PayloadTest {
            carrier,
            lengths,
            bytes,
        }))
    }

    /// Steps, whose variables end with them.
    pub fn block(&mut self, node: &Node<'_>) -> Result<Vec<Step>> {
        let outer = self.names.variables.len();
        let key = std::mem::take(&mut self.names.key);
        self.depth += 1;
        if self.depth > DEPTH {
            return Err(node.error(format!("steps must not be nested deeper than {DEPTH}")));
        }
        let steps = node
            .array()?
            .iter()
            .map(|step| self.step(step))
            .collect::<Result<_>>()?;
        self.depth -= 1;
        self.names.key = key;
        self.names.variables.truncate(outer);
        Ok(steps)
    }

    fn optional_block(&mut self, object: &Object<'_>, key: &str) -> Result<Vec<Step>> {
        object
            .get(key)
            .map_or(Ok(Vec::new()), |node| self.block(&node))
    }

    fn step(&mut self, node: &Node<'_>) -> Result<Step> {
        self.steps += 1;
        if self.steps > STEPS {
            return Err(node.error(format!("there are more than {STEPS} steps")));
        }
        let object = node.map()?;
        let kind = STEP_KINDS.iter().find(|kind| object.has(kind));
        let Some(kind) = kind else {
            return Err(node.error(format!("needs one of {}", STEP_KINDS.join(", "))));
        };
        match *kind {
            "quantity" => self.measure(node),
            "let" => self.define(node),
            "if" => {
                let object = node.object(&["if", "then", "else", "comment"])?;
                let condition = self.expression(&object.required("if")?)?;
                let then = self.block(&object.required("then")?)?;
                Ok(Step::If {
                    condition,
                    then,
                    otherwise: self.optional_block(&object, "else")?,
                })
            }
            "switch" => {
                let object = node.object(&["switch", "cases", "otherwise", "comment"])?;
                let on = self.expression(&object.required("switch")?)?;
                let cases = self.table(&object.required("cases")?, Compiler::block)?;
                Ok(Step::Switch {
                    on,
                    cases,
                    otherwise: self.optional_block(&object, "otherwise")?,
                })
            }
            "tlv" => self.items(node),
            "repeat" => self.repeat(node),
            "xor" => {
                let object = node.object(&["xor", "read", "comment"])?;
                let options = object
                    .required("xor")?
                    .object(&["at", "size", "in", "with"])?;
                let range = self.range_of(&options)?;
                let with = self.parts(&options.required("with")?, 1, 32)?;
                Ok(Step::Xor {
                    range,
                    with,
                    steps: self.block(&object.required("read")?)?,
                })
            }
            "decrypt" => self.decrypt(node),
            "authenticate" => self.authenticate(node),
            "checksum" => self.checksum(node),
            "valid" => {
                let object = node.object(&["valid", "comment"])?;
                Ok(Step::Valid(self.expression(&object.required("valid")?)?))
            }
            "sequence" | "counter" => {
                let object = node.object(&[kind, "bits", "comment"])?;
                let value = self.expression(&object.required(kind)?)?;
                let bits = match (object.get("bits"), &value) {
                    (Some(bits), _) => u8::try_from(bits.integer(1, 32)?).unwrap_or(32),
                    (None, Expression::Read { integer, .. }) if integer.bytes <= 4 => {
                        (integer.bytes * 8) as u8
                    }
                    _ => return Err(node.error("needs bits: after so many it starts over")),
                };
                Ok(Step::Sequence {
                    value,
                    bits,
                    counter: *kind == "counter",
                })
            }
            _ => {
                let object = node.object(&["address", "comment"])?;
                let options = object
                    .required("address")?
                    .object(&["at", "in", "reversed"])?;
                let mut range = self.range_of(&options)?;
                range.size = Some(6);
                let reversed = options
                    .get("reversed")
                    .map_or(Ok(false), |reversed| reversed.boolean())?;
                Ok(Step::Address { range, reversed })
            }
        }
    }

    fn items(&mut self, node: &Node<'_>) -> Result<Step> {
        let object = node.object(&["tlv", "cases", "otherwise", "comment"])?;
        let options = object.required("tlv")?;
        let options = options.object(&[
            "at", "size", "in", "header", "tag", "length", "lengths", "as",
        ])?;
        let over = self.range_of(&options)?;
        let header = usize::try_from(options.required("header")?.integer(1, 16)?).unwrap_or(1);
        let tag = self.expression(&options.required("tag")?)?;
        let length = match (options.get("length"), options.get("lengths")) {
            (Some(length), None) => Length::Computed(self.expression(&length)?),
            (None, Some(lengths)) => {
                let size = |value: &Node<'_>| {
                    Ok(usize::try_from(value.integer(0, LONGEST)?).unwrap_or_default())
                };
                Length::ByTag(self.table(&lengths, |_, value| size(value))?)
            }
            _ => return Err(options.node.error("needs either length or lengths")),
        };
        let outer = self.names.variables.len();
        let slot = match options.get("as") {
            None => self.new_variable(&options.node, "tag")?,
            Some(name) => self.variable(&name)?,
        };
        let cases = self.table(&object.required("cases")?, Compiler::block)?;
        let otherwise = self.optional_block(&object, "otherwise")?;
        self.names.variables.truncate(outer);
        Ok(Step::Items(Box::new(Items {
            over,
            header,
            tag,
            length,
            slot,
            cases,
            otherwise,
        })))
    }

    fn repeat(&mut self, node: &Node<'_>) -> Result<Step> {
        let object = node.object(&["repeat", "read", "comment"])?;
        let options = object
            .required("repeat")?
            .object(&["at", "size", "in", "every", "as"])?;
        let over = self.range_of(&options)?;
        let every = usize::try_from(options.required("every")?.integer(1, LONGEST)?).unwrap_or(1);
        let outer = self.names.variables.len();
        let slot = options
            .get("as")
            .map(|name| self.variable(&name))
            .transpose()?;
        let steps = self.block(&object.required("read")?)?;
        self.names.variables.truncate(outer);
        Ok(Step::Repeat(Box::new(Repeat {
            over,
            every,
            slot,
            steps,
        })))
    }

    fn decrypt(&mut self, node: &Node<'_>) -> Result<Step> {
        let object = node.object(&["decrypt", "read", "comment"])?;
        let options = object.required("decrypt")?;
        let kind = options
            .map()?
            .required("cipher")?
            .choice(&["AES-CCM", "AES-CTR", "AES-ECB"])?;
        let options = options.object(match kind {
            0 => &[
                "cipher",
                "key",
                "at",
                "size",
                "in",
                "check",
                "nonce",
                "associated",
                "tag",
            ],
            1 => &[
                "cipher", "key", "at", "size", "in", "check", "initial", "counter",
            ],
            _ => &["cipher", "key", "at", "size", "in", "check", "reversed"],
        })?;
        let range = self.range_of(&options)?;
        let key = match options.get("key") {
            None => Key::Bind,
            Some(key) if key.value == "bindKey" => Key::Bind,
            Some(key) => Key::Parts(self.parts(&key, 16, 16)?),
        };
        let cipher = match kind {
            0 => {
                let tag = self.tag(&options.required("tag")?)?;
                let associated = match options.get("associated") {
                    None => Vec::new(),
                    Some(parts) => self.parts(&parts, 1, 32)?,
                };
                Cipher::Ccm {
                    nonce: self.parts(&options.required("nonce")?, 7, 13)?,
                    associated,
                    tag,
                }
            }
            1 => Cipher::Ctr {
                initial: self.parts(&options.required("initial")?, 1, 16)?,
                little_endian: match options.get("counter") {
                    None => false,
                    Some(counter) => counter.choice(&["big", "little"])? == 1,
                },
            },
            _ => Cipher::Ecb {
                reversed: match options.get("reversed") {
                    None => false,
                    Some(reversed) => reversed.boolean()?,
                },
            },
        };
        self.names.key = true;
        let check = self.optional_expression(&options, "check")?;
        self.names.key = false;
        let steps = self.block(&object.required("read")?)?;
        Ok(Step::Decrypt(Box::new(Decrypt {
            cipher,
            key,
            range,
            check,
            steps,
        })))
    }

    /// The place of a tag of AES-CCM.
    fn tag(&mut self, node: &Node<'_>) -> Result<Range> {
        let tag = self.range(node)?;
        match tag.size {
            Some(4 | 6 | 8 | 10 | 12 | 14 | 16) => Ok(tag),
            _ => Err(node.error("needs a size of 4, 6, 8, 10, 12, 14 or 16 bytes")),
        }
    }

    fn authenticate(&mut self, node: &Node<'_>) -> Result<Step> {
        let object = node.object(&["authenticate", "comment"])?;
        let options = object
            .required("authenticate")?
            .object(&["at", "size", "in", "nonce", "prefix", "tag"])?;
        let prefix = match options.get("prefix") {
            None => Vec::new(),
            Some(parts) => self.parts(&parts, 1, 32)?,
        };
        Ok(Step::Authenticate(Box::new(Authenticate {
            nonce: self.parts(&options.required("nonce")?, 7, 13)?,
            prefix,
            range: self.range_of(&options)?,
            tag: self.tag(&options.required("tag")?)?,
        })))
    }

    fn checksum(&mut self, node: &Node<'_>) -> Result<Step> {
        let object = node.object(&["checksum", "comment"])?;
        let options = object.required("checksum")?;
        let kind = options
            .map()?
            .required("kind")?
            .choice(&["sum8", "sum16", "xor8", "crc8", "crc16"])?;
        let options = options.object(match kind {
            0 | 1 => &["kind", "at", "size", "in", "equals", "final"],
            2 => &["kind", "at", "size", "in", "equals", "initial"],
            _ => &[
                "kind",
                "at",
                "size",
                "in",
                "equals",
                "polynomial",
                "initial",
                "final",
                "reflect",
            ],
        })?;
        let bytes = if kind == 1 || kind == 4 { 2 } else { 1 };
        let register = |key: &str| -> Result<u16> {
            let Some(node) = options.get(key) else {
                return Ok(0);
            };
            let value = node.hex(bytes, bytes)?;
            Ok(value
                .iter()
                .fold(0, |value, byte| value << 8 | u16::from(*byte)))
        };
        let kind = match kind {
            0 => Checksum::Sum8 {
                final_xor: register("final")? as u8,
            },
            1 => Checksum::Sum16 {
                final_xor: register("final")?,
            },
            2 => Checksum::Xor8 {
                initial: register("initial")? as u8,
            },
            _ => {
                options.required("polynomial")?;
                let reflect = options
                    .get("reflect")
                    .map_or(Ok(false), |reflect| reflect.boolean())?;
                Checksum::Crc(Crc {
                    bits: if bytes == 1 { 8 } else { 16 },
                    polynomial: register("polynomial")?,
                    initial: register("initial")?,
                    reflect_in: reflect,
                    reflect_out: reflect,
                    final_xor: register("final")?,
                })
            }
        };
        let range = self.range_of(&options)?;
        Ok(Step::Checksum {
            range,
            kind,
            equals: self.expression(&options.required("equals")?)?,
        })
    }

    /// A new variable, by its name.
    pub fn variable(&mut self, node: &Node<'_>) -> Result<usize> {
        let name = node.text()?;
        self.new_variable(node, name)
    }

    fn new_variable(&mut self, node: &Node<'_>, name: &str) -> Result<usize> {
        self.new_name(node, name)?;
        let slot = self.names.variables.len();
        if slot >= VARIABLES {
            return Err(node.error(format!("more than {VARIABLES} variables are in use")));
        }
        self.names.variables.push((name.to_owned(), slot));
        Ok(slot)
    }

    fn new_name(&self, node: &Node<'_>, name: &str) -> Result<()> {
        let word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        if !name.starts_with(|first: char| first.is_ascii_lowercase())
            || !name.bytes().all(word)
            || name.len() > 40
        {
            return Err(node.error(
                "a name has 1 to 40 letters, digits and _, and begins with a small letter",
            ));
        }
        let used = self.names.variables.iter().any(|(known, _)| known == name);
        if used || self.names.payloads.iter().any(|known| known == name) || RESERVED.contains(&name)
        {
            return Err(node.error(format!("the name {name} is in use")));
        }
        Ok(())
    }
}

fn company_id(node: &Node<'_>) -> Result<u16> {
    let text = node.text()?;
    let id = u16::from_str_radix(text, 16)
        .ok()
        .filter(|_| is_hex(text, 4));
    id.ok_or_else(|| node.error("must be a company identifier of 4 hexadecimal digits"))
}

/// A UUID in 4 or 8 hexadecimal digits, or in full.
pub fn service_uuid(node: &Node<'_>) -> Result<Uuid> {
    uuid_of(node.text()?).ok_or_else(|| {
        node.error("must be a service UUID: 4 or 8 hexadecimal digits, or 36 characters")
    })
}

pub fn uuid_of(text: &str) -> Option<Uuid> {
    match text.len() {
        4 if is_hex(text, 4) => u16::from_str_radix(text, 16).ok().map(uuid16),
        8 if is_hex(text, 8) => {
            let short = u32::from_str_radix(text, 16).ok()?;
            Some(Uuid::from_u128(
                uuid16(0).as_u128() | u128::from(short) << 96,
            ))
        }
        36 => Uuid::try_parse(text).ok(),
        _ => None,
    }
}

fn is_hex(text: &str, digits: usize) -> bool {
    text.len() == digits && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// `24`, or `{"min": 3, "max": 20}`.
fn length(node: &Node<'_>) -> Result<RangeInclusive<usize>> {
    let bound = |node: Node<'_>| Ok(usize::try_from(node.integer(0, LONGEST)?).unwrap_or_default());
    if node.value.is_number() {
        let length = bound(node.clone())?;
        return Ok(length..=length);
    }
    let object = node.object(&["min", "max"])?;
    let low = object.get("min").map_or(Ok(0), bound)?;
    let high = object.get("max").map_or(Ok(usize::MAX), bound)?;
    if low > high {
        return Err(node.error("min is above max"));
    }
    Ok(low..=high)
}

/// `{"at": 0, "is": "05", "mask": "0f"}`
fn bytes_test(node: &Node<'_>) -> Result<BytesTest> {
    let object = node.object(&["at", "is", "mask"])?;
    let at = object.required("at")?.integer(-LONGEST, LONGEST)?;
    let bytes = object.required("is")?.hex(1, 64)?;
    let mask = match object.get("mask") {
        None => vec![0xFF; bytes.len()],
        Some(mask) => mask.hex(bytes.len(), bytes.len())?,
    };
    if bytes
        .iter()
        .zip(&mask)
        .any(|(byte, mask)| byte & !mask != 0)
    {
        return Err(object
            .required("is")?
            .error("has bits that the mask leaves out"));
    }
    Ok(BytesTest {
        at: i32::try_from(at).unwrap_or_default(),
        bytes,
        mask,
    })
}
