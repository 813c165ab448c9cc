//! Reads a frame by a compiled definition. Every step goes forward, and all of them spend one
//! budget, so that a frame is done within a fraction of a millisecond whatever the definition.

use std::cell::Cell;

use super::cipher::{Aes, BLOCK};
use super::expression::{Expression, PAYLOADS, Scene, VARIABLES};
use super::program::{
    Authenticate, BytesTest, Carrier, Cipher, Decrypt, Format, Items, Key, Length, Part,
    PayloadTest, Range, Repeat, Step, Test,
};
use crate::frame::{Address, Frame, LONGEST_PAYLOAD, Payloads};
use crate::measurement::Measurement;
use crate::outcome::{BindKey, Facts, Identity, Keys, Outcome, Sequence};

/// The cost that the decoding of a frame may have, in parts of expressions.
const BUDGET: u32 = 20_000;
const STEP_COST: u32 = 4;
const BLOCK_COST: u32 = 40;
/// Measurements of one frame.
const MEASUREMENTS: usize = 64;

/// The reasons why reading ends early. Of several formats in one frame, the later counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stop {
    Invalid,
    NeedsKey,
    WrongKey,
}

type Done = Result<(), Stop>;

/// The state of reading a format, without payloads: a decrypted payload lives in the step that made
/// it.
pub struct Run<'f> {
    frame: &'f Frame<'f>,
    /// Manufacturer data with the company identifier before it.
    joined: &'f [&'f [u8]],
    keys: Keys<'f>,
    named: [&'f [u8]; PAYLOADS - 1],
    variables: [Option<i128>; VARIABLES],
    budget: Cell<u32>,
    /// Whether a key was used that nothing has confirmed.
    unconfirmed: bool,
    /// Whether a tag under the device's key fitted.
    authenticated: bool,
    facts: Facts,
    /// Where this frame's measurements begin in the output.
    pub first: usize,
    /// The measurements, as bits by number, whose index is their order.
    pub ordered: u64,
}

/// Reads the formats of a frame; what each finds is added to the output. `any_company` says that a
/// format takes the data of any company.
pub fn decode(
    formats: &[Format],
    any_company: bool,
    frame: &Frame<'_>,
    keys: Keys<'_>,
    output: &mut Vec<Measurement>,
) -> Outcome {
    if !any_company {
        return read(formats, frame, &[], keys, output);
    }
    let payloads = joined(frame);
    let payloads: Vec<&[u8]> = payloads.iter().map(Vec::as_slice).collect();
    read(formats, frame, &payloads, keys, output)
}

/// The manufacturer data of each company with the identifier's two bytes before it.
fn joined(frame: &Frame<'_>) -> Vec<Vec<u8>> {
    let data = frame.manufacturer_data.iter();
    data.map(|(company, data)| [&company.to_le_bytes(), *data].concat())
        .collect()
}

/// The payloads of a frame that one of the formats reads, or requires.
pub fn payloads(formats: &[Format], any_company: bool, frame: &Frame<'_>) -> Payloads {
    let joined = match any_company {
        true => joined(frame),
        false => Vec::new(),
    };
    let mut payloads = Payloads::default();
    for format in formats
        .iter()
        .filter(|format| is_named(frame, &format.test))
    {
        let tests = format.test.payload.iter().chain(&format.test.also);
        for test in tests {
            for (place, (company, data)) in frame.manufacturer_data.iter().enumerate() {
                let data = match &test.carrier {
                    Carrier::Manufacturer(companies) if companies.contains(company) => *data,
                    Carrier::AnyManufacturer => joined.get(place).map_or(*data, Vec::as_slice),
                    Carrier::Manufacturer(_) | Carrier::Service(_) => continue,
                };
                if fits(data, test) {
                    payloads.add_manufacturer(place);
                }
            }
            for (place, (uuid, data)) in frame.service_data.iter().enumerate() {
                let is_carrier =
                    matches!(&test.carrier, Carrier::Service(uuids) if uuids.contains(uuid));
                if is_carrier && fits(data, test) {
                    payloads.add_service(place);
                }
            }
        }
    }
    payloads
}

/// Whether the frame has the name and the services of a test.
fn is_named(frame: &Frame<'_>, test: &Test) -> bool {
    let has_name = test.names.is_empty() && test.name_prefixes.is_empty()
        || frame.name.is_some_and(|name| {
            let prefixes = &test.name_prefixes;
            test.names.iter().any(|known| known == name)
                || prefixes
                    .iter()
                    .any(|known| name.starts_with(known.as_str()))
        });
    let advertised = |uuid| frame.service_uuids.contains(uuid);
    has_name && (test.service_uuids.is_empty() || test.service_uuids.iter().any(advertised))
}

/// Reads the formats one after another.
fn read(
    formats: &[Format],
    frame: &Frame<'_>,
    joined: &[&[u8]],
    keys: Keys<'_>,
    output: &mut Vec<Measurement>,
) -> Outcome {
    let mut run = Run {
        frame,
        joined,
        keys,
        named: [&[]; PAYLOADS - 1],
        variables: [None; VARIABLES],
        budget: Cell::new(BUDGET),
        unconfirmed: false,
        authenticated: false,
        facts: Facts::default(),
        first: output.len(),
        ordered: 0,
    };
    let mut decoded = false;
    let mut stopped: Option<Stop> = None;
    for format in formats {
        let Some(payload) = run.matched(&format.test) else {
            continue;
        };
        let begin = output.len();
        let before = run.facts;
        run.authenticated = false;
        run.unconfirmed = false;
        let mut ended = run.block(&format.steps, payload, output);
        if run.budget.get() == 0 {
            ended = Err(Stop::Invalid);
        }
        // Measurements in the clear stay when a key is missing; those of a damaged frame are
        // removed.
        if ended == Err(Stop::Invalid) {
            output.truncate(begin);
            run.facts = before;
        }
        decoded |= ended.is_ok();
        stopped = stopped.max(ended.err());
    }
    run.number(output);
    match stopped {
        Some(Stop::WrongKey) => Outcome::WrongKey(run.facts),
        Some(Stop::NeedsKey) => Outcome::NeedsKey(run.facts),
        _ if decoded => Outcome::Decoded(run.facts),
        Some(Stop::Invalid) => Outcome::Invalid,
        None => Outcome::NotMine,
    }
}

impl<'f> Run<'f> {
    fn scene<'s>(&'s self, payload: &'s [u8]) -> Scene<'s> {
        let [whole, second, third] = self.named;
        Scene {
            frame: self.frame,
            payloads: [payload, whole, second, third],
            variables: &self.variables,
            key: &[],
            budget: &self.budget,
        }
    }

    /// Spends a part of the budget. Returns whether that much was left.
    pub fn spend(&self, cost: u32) -> bool {
        self.scene(&[]).spend(cost)
    }

    pub fn evaluate(&self, expression: &Expression, payload: &[u8]) -> Option<i128> {
        expression.evaluate(&self.scene(payload))
    }

    /// The payload of a frame that a format reads; empty if it reads none.
    fn matched(&mut self, test: &Test) -> Option<&'f [u8]> {
        if !is_named(self.frame, test) {
            return None;
        }
        self.named = [&[]; PAYLOADS - 1];
        let payload = match &test.payload {
            None => &[],
            Some(test) => find(self.frame, self.joined, test)?,
        };
        let [whole, others @ ..] = &mut self.named;
        *whole = payload;
        let (frame, joined) = (self.frame, self.joined);
        for (other, test) in others.iter_mut().zip(&test.also) {
            *other = find(frame, joined, test)?;
        }
        let fits = test
            .condition
            .as_ref()
            .is_none_or(|condition| condition.holds(&self.scene(payload)));
        fits.then_some(payload)
    }

    fn block(&mut self, steps: &[Step], payload: &[u8], output: &mut Vec<Measurement>) -> Done {
        for step in steps {
            if !self.spend(STEP_COST) {
                return Err(Stop::Invalid);
            }
            self.step(step, payload, output)?;
        }
        Ok(())
    }

    fn step(&mut self, step: &Step, payload: &[u8], output: &mut Vec<Measurement>) -> Done {
        match step {
            Step::Measure(measure) => {
                if output.len().saturating_sub(self.first) < MEASUREMENTS {
                    self.measure(measure, payload, output);
                }
            }
            Step::Let { slot, value } => {
                let value = self.evaluate(value, payload);
                self.set(*slot, value);
            }
            Step::If {
                condition,
                then,
                otherwise,
            } => {
                let holds = condition.holds(&self.scene(payload));
                self.block(if holds { then } else { otherwise }, payload, output)?;
            }
            Step::Switch {
                on,
                cases,
                otherwise,
            } => {
                let steps = self
                    .evaluate(on, payload)
                    .and_then(|on| cases.get(on))
                    .unwrap_or(otherwise);
                self.block(steps, payload, output)?;
            }
            Step::Items(items) => self.items(items, payload, output)?,
            Step::Repeat(repeat) => self.repeat(repeat, payload, output)?,
            Step::Xor { range, with, steps } => self.xor(range, with, steps, payload, output)?,
            Step::Decrypt(decrypt) => self.decrypt(decrypt, payload, output)?,
            Step::Authenticate(signed) => self.authenticate(signed, payload)?,
            Step::Checksum {
                range,
                kind,
                equals,
            } => {
                let bytes = self.bytes(range, payload).ok_or(Stop::Invalid)?;
                let scene = self.scene(payload);
                if !scene.spend(cost(bytes.len()).saturating_mul(8)) {
                    return Err(Stop::Invalid);
                }
                if equals.evaluate(&scene) != Some(i128::from(kind.of(bytes))) {
                    return Err(self.failure());
                }
            }
            Step::Valid(condition) => {
                if !condition.holds(&self.scene(payload)) {
                    return Err(self.failure());
                }
            }
            Step::Sequence {
                value,
                bits,
                counter,
            } => {
                let value = self
                    .evaluate(value, payload)
                    .map(|value| value & ((1 << bits) - 1));
                if let Some(value) = value.and_then(|value| u32::try_from(value).ok()) {
                    let authenticated = *counter && self.authenticated;
                    self.facts.sequence = Some(Sequence {
                        value,
                        bits: *bits,
                        authenticated,
                    });
                }
            }
            Step::Address { range, reversed } => {
                let bytes = self.bytes(range, payload).ok_or(Stop::Invalid)?;
                let mut address: Address = bytes.try_into().map_err(|_| Stop::Invalid)?;
                if *reversed {
                    address.reverse();
                }
                self.facts.identity = Some(Identity::Mac(address));
            }
        }
        Ok(())
    }

    /// The meaning of a failed check: behind a cipher that does not authenticate, the key is in
    /// doubt.
    fn failure(&self) -> Stop {
        if self.unconfirmed {
            Stop::WrongKey
        } else {
            Stop::Invalid
        }
    }

    fn set(&mut self, slot: usize, value: Option<i128>) {
        if let Some(variable) = self.variables.get_mut(slot) {
            *variable = value;
        }
    }

    /// The bytes of a range. Returns `None` if the payload ends before.
    pub fn bytes<'p>(&self, range: &Range, payload: &'p [u8]) -> Option<&'p [u8]>
    where
        'f: 'p,
    {
        let source = match range.payload.checked_sub(1) {
            None => payload,
            Some(named) => *self.named.get(named)?,
        };
        let at = range.at.offset(source, &self.scene(payload))?;
        let rest = source.get(at..)?;
        match range.size {
            None => Some(rest),
            Some(size) if size < 0 => rest.get(
                ..rest
                    .len()
                    .checked_sub(usize::try_from(size.unsigned_abs()).ok()?)?,
            ),
            Some(size) => rest.get(..usize::try_from(size).ok()?),
        }
    }

    fn items(&mut self, items: &Items, payload: &[u8], output: &mut Vec<Measurement>) -> Done {
        let mut rest = self.bytes(&items.over, payload).ok_or(Stop::Invalid)?;
        while !rest.is_empty() {
            let scene = self.scene(rest);
            if !scene.spend(STEP_COST) {
                return Err(Stop::Invalid);
            }
            let tag = items.tag.evaluate(&scene).ok_or(Stop::Invalid)?;
            let length = match &items.length {
                Length::Computed(length) => length
                    .evaluate(&scene)
                    .and_then(|length| usize::try_from(length).ok()),
                Length::ByTag(lengths) => match lengths.get(tag) {
                    Some(length) => Some(*length),
                    None => return Ok(()),
                },
            };
            let end = length
                .and_then(|length| items.header.checked_add(length))
                .ok_or(Stop::Invalid)?;
            let (item, after) = rest.split_at_checked(end).ok_or(Stop::Invalid)?;
            let value = item.get(items.header..).ok_or(Stop::Invalid)?;
            self.set(items.slot, Some(tag));
            self.block(
                items.cases.get(tag).unwrap_or(&items.otherwise),
                value,
                output,
            )?;
            rest = after;
        }
        Ok(())
    }

    fn repeat(&mut self, repeat: &Repeat, payload: &[u8], output: &mut Vec<Measurement>) -> Done {
        let over = self.bytes(&repeat.over, payload).ok_or(Stop::Invalid)?;
        for (number, piece) in over.chunks_exact(repeat.every.max(1)).enumerate() {
            if !self.spend(STEP_COST) {
                return Err(Stop::Invalid);
            }
            if let Some(slot) = repeat.slot {
                self.set(slot, i128::try_from(number).ok());
            }
            self.block(&repeat.steps, piece, output)?;
        }
        Ok(())
    }

    fn xor(
        &mut self,
        range: &Range,
        with: &[Part],
        steps: &[Step],
        payload: &[u8],
        output: &mut Vec<Measurement>,
    ) -> Done {
        let mut key = [0; 32];
        let key = self.assemble(with, payload, &mut key)?;
        let bytes = self.bytes(range, payload).ok_or(Stop::Invalid)?;
        let mut copy = [0; LONGEST_PAYLOAD];
        let copy = copied(bytes, &mut copy)?;
        if !self.spend(cost(copy.len())) {
            return Err(Stop::Invalid);
        }
        copy.iter_mut()
            .zip(key.iter().cycle())
            .for_each(|(byte, key)| *byte ^= key);
        self.block(steps, copy, output)
    }

    fn decrypt(
        &mut self,
        decrypt: &Decrypt,
        payload: &[u8],
        output: &mut Vec<Measurement>,
    ) -> Done {
        self.facts.encrypted |= matches!(decrypt.key, Key::Bind);
        let mut assembled = [0; 32];
        let key: &[u8] = match &decrypt.key {
            Key::Bind => self.bind_key()?.ok_or(Stop::NeedsKey)?,
            Key::Parts(parts) => self.assemble(parts, payload, &mut assembled)?,
        };
        let whole: &[u8; BLOCK] = key.try_into().map_err(|_| Stop::Invalid)?;
        if let Some(check) = &decrypt.check {
            let mut scene = self.scene(payload);
            scene.key = key;
            if !check.holds(&scene) {
                return Err(Stop::WrongKey);
            }
        }
        let sealed = self.bytes(&decrypt.range, payload).ok_or(Stop::Invalid)?;
        let mut opened = [0; LONGEST_PAYLOAD];
        let opened = copied(sealed, &mut opened)?;
        let blocks = u32::try_from(opened.len() / BLOCK)
            .unwrap_or(u32::MAX)
            .saturating_add(4);
        if !self.spend(blocks.saturating_mul(BLOCK_COST)) {
            return Err(Stop::Invalid);
        }
        let aes = Aes::new(whole);
        let before = self.unconfirmed;
        let mut room = [0; 32];
        match &decrypt.cipher {
            Cipher::Ccm {
                nonce,
                associated,
                tag,
            } => {
                let nonce = self.assemble(nonce, payload, &mut room)?;
                let mut room = [0; 32];
                let associated = self.assemble(associated, payload, &mut room)?;
                let tag = self.bytes(tag, payload).ok_or(Stop::Invalid)?;
                if !aes.open_ccm(nonce, associated, opened, tag) {
                    return Err(Stop::WrongKey);
                }
                self.authenticated = matches!(decrypt.key, Key::Bind);
                self.unconfirmed = false;
            }
            Cipher::Ctr {
                initial,
                little_endian,
            } => {
                let initial = self.assemble(initial, payload, &mut room)?;
                let mut first = [0; BLOCK];
                first
                    .iter_mut()
                    .zip(initial)
                    .for_each(|(to, from)| *to = *from);
                aes.apply_ctr(first, *little_endian, opened);
                self.unconfirmed = true;
            }
            Cipher::Ecb { reversed } => {
                if *reversed {
                    opened.reverse();
                }
                if !aes.open_ecb(opened) {
                    return Err(Stop::Invalid);
                }
                if *reversed {
                    opened.reverse();
                }
                self.unconfirmed = true;
            }
        }
        let begin = output.len();
        let ended = self.block(&decrypt.steps, opened, output);
        if ended == Err(Stop::WrongKey) {
            output.truncate(begin);
        }
        self.unconfirmed = before;
        ended
    }

    /// The device's key, if it is known.
    fn bind_key(&self) -> Result<Option<&'f [u8; BLOCK]>, Stop> {
        match self.keys.bind_key {
            None => Ok(None),
            Some(BindKey::Short(_)) => Err(Stop::WrongKey),
            Some(BindKey::Full(key)) => Ok(Some(key)),
        }
    }

    /// Checks a signature. What is signed can be read without the key, too.
    fn authenticate(&mut self, signed: &Authenticate, payload: &[u8]) -> Done {
        let Some(key) = self.bind_key()? else {
            return Ok(());
        };
        let mut room = [0; 32];
        let nonce = self.assemble(&signed.nonce, payload, &mut room)?;
        let mut room = [0; 32];
        let prefix = self.assemble(&signed.prefix, payload, &mut room)?;
        let bytes = self.bytes(&signed.range, payload).ok_or(Stop::Invalid)?;
        let mut associated = [0; 32 + LONGEST_PAYLOAD];
        let (before, rest) = associated
            .split_at_mut_checked(prefix.len())
            .ok_or(Stop::Invalid)?;
        before.copy_from_slice(prefix);
        rest.get_mut(..bytes.len())
            .ok_or(Stop::Invalid)?
            .copy_from_slice(bytes);
        let associated = associated
            .get(..prefix.len() + bytes.len())
            .ok_or(Stop::Invalid)?;
        let blocks = u32::try_from(associated.len() / BLOCK).unwrap_or(u32::MAX);
        if !self.spend(blocks.saturating_add(4).saturating_mul(BLOCK_COST)) {
            return Err(Stop::Invalid);
        }
        let tag = self.bytes(&signed.tag, payload).ok_or(Stop::Invalid)?;
        self.facts.encrypted = true;
        if !Aes::new(key).open_ccm(nonce, associated, &mut [], tag) {
            return Err(Stop::WrongKey);
        }
        self.authenticated = true;
        Ok(())
    }

    /// Puts bytes together. A frame that lacks a part is invalid.
    fn assemble<'r>(
        &self,
        parts: &[Part],
        payload: &[u8],
        room: &'r mut [u8; 32],
    ) -> Result<&'r [u8], Stop> {
        let mut length = 0;
        for part in parts {
            let end = length + part.size();
            let to = room.get_mut(length..end).ok_or(Stop::Invalid)?;
            length = end;
            match part {
                Part::Constant(bytes) => to.copy_from_slice(bytes),
                Part::Address { reversed } => {
                    to.copy_from_slice(&self.frame.address.ok_or(Stop::Invalid)?);
                    if *reversed {
                        to.reverse();
                    }
                }
                Part::Bytes {
                    range, reversed, ..
                } => {
                    let bytes = self
                        .bytes(range, payload)
                        .filter(|bytes| bytes.len() == to.len());
                    to.copy_from_slice(bytes.ok_or(Stop::Invalid)?);
                    if *reversed {
                        to.reverse();
                    }
                }
                Part::Value { value, integer } => {
                    let value = self
                        .evaluate(value, payload)
                        .ok_or(Stop::Invalid)?
                        .to_le_bytes();
                    to.iter_mut().zip(value).for_each(|(to, from)| *to = from);
                    if integer.big_endian {
                        to.reverse();
                    }
                }
            }
        }
        Ok(room.get(..length).unwrap_or_default())
    }

    /// Takes the index from quantities that were numbered and occur once.
    fn number(&self, output: &mut [Measurement]) {
        let Some(output) = output.get_mut(self.first..) else {
            return;
        };
        for at in 0..output.len().min(MEASUREMENTS) {
            let alone = |one: &Measurement| {
                output
                    .iter()
                    .filter(|other| std::ptr::eq(other.quantity, one.quantity))
                    .count()
                    == 1
            };
            if self.ordered >> at & 1 == 1
                && output.get(at).is_some_and(alone)
                && let Some(one) = output.get_mut(at)
            {
                one.index = None;
            }
        }
    }
}

/// The first payload of a frame that looks like what is asked for.
/// The payload of a frame that a test is for. Of data that may be of several companies, two may fit
/// where the operating system still reports what was sent before: then it is the only one that has
/// changed, if that is known.
fn find<'f>(frame: &'f Frame<'f>, joined: &'f [&'f [u8]], test: &PayloadTest) -> Option<&'f [u8]> {
    let companies = frame.manufacturer_data.iter();
    match &test.carrier {
        Carrier::Manufacturer(known) if known.len() == 1 => companies
            .filter(|(id, payload)| known.contains(id) && fits(payload, test))
            .map(|(_, payload)| *payload)
            .next(),
        Carrier::Manufacturer(known) => current(
            frame,
            companies
                .map(|(id, payload)| (*id, *payload))
                .filter(|(id, payload)| known.contains(id) && fits(payload, test)),
        ),
        Carrier::AnyManufacturer => current(
            frame,
            companies
                .zip(joined)
                .map(|((id, _), payload)| (*id, *payload))
                .filter(|(_, payload)| fits(payload, test)),
        ),
        Carrier::Service(uuids) => {
            let data = frame.service_data.iter();
            data.filter(|(id, _)| uuids.contains(id))
                .map(|(_, payload)| *payload)
                .find(|payload| fits(payload, test))
        }
    }
}

/// The only payload, or the only one that has changed.
fn current<'f>(
    frame: &Frame<'_>,
    mut fitting: impl Iterator<Item = (u16, &'f [u8])>,
) -> Option<&'f [u8]> {
    let first = fitting.next()?;
    let Some(second) = fitting.next() else {
        return Some(first.1);
    };
    let companies = frame.changed_companies?;
    let mut changed = [first, second]
        .into_iter()
        .chain(fitting)
        .filter(|(id, _)| companies.contains(id));
    let (_, payload) = changed.next()?;
    changed.next().is_none().then_some(payload)
}

fn fits(payload: &[u8], test: &PayloadTest) -> bool {
    let length = test.lengths.is_empty()
        || test
            .lengths
            .iter()
            .any(|range| range.contains(&payload.len()));
    length && test.bytes.iter().all(|bytes| bytes.holds(payload))
}

impl BytesTest {
    fn holds(&self, payload: &[u8]) -> bool {
        let away = usize::try_from(self.at.unsigned_abs()).unwrap_or(usize::MAX);
        let at = if self.at < 0 {
            payload.len().checked_sub(away)
        } else {
            Some(away)
        };
        let Some(bytes) = at.and_then(|at| payload.get(at..)?.get(..self.bytes.len())) else {
            return false;
        };
        bytes
            .iter()
            .zip(&self.mask)
            .zip(&self.bytes)
            .all(|((byte, mask), wanted)| byte & mask == *wanted)
    }
}

fn cost(bytes: usize) -> u32 {
    u32::try_from(bytes / 4).unwrap_or(u32::MAX)
}

/// The bytes in a buffer of the caller. No payload is longer than the buffer.
fn copied<'b>(bytes: &[u8], buffer: &'b mut [u8; LONGEST_PAYLOAD]) -> Result<&'b mut [u8], Stop> {
    let buffer = buffer.get_mut(..bytes.len()).ok_or(Stop::Invalid)?;
    buffer.copy_from_slice(bytes);
    Ok(buffer)
}
