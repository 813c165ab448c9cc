//! The packets of MQTT 3.1.1 and 5 that a publisher needs, and those with which it finds what it
//! has retained. A broker that a tenant chose may send
//! anything: a packet is bounded before it is read, and what is not understood is an error.
//!
//! `mqtt-proto`, a codec of both versions, does not replace this: of a refusal without properties,
//! as a broker of 3.1.1 refuses version 5, and of a reason it does not know, it loses the code.

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt};

/// A publisher gets short answers only.
pub const MAX_PACKET: usize = 16 * 1024;
/// Announced to the broker. Idle connections are closed before it ends.
const KEEP_ALIVE_SECS: u16 = 60;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    V3,
    V5,
}

/// What a broker says to a publisher.
#[derive(Debug, PartialEq, Eq)]
pub enum Packet {
    Connected {
        code: u8,
        limits: Limits,
    },
    /// PUBACK, PUBREC and PUBCOMP.
    Acknowledged {
        step: Step,
        id: u16,
        code: u8,
    },
    /// Version 5: why the connection ends.
    Disconnected {
        code: u8,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    Ack,
    Received,
    Complete,
}

/// What a broker of version 5 allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    pub in_flight: u16,
    pub qos: u8,
    pub retain: bool,
    pub packet: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            in_flight: u16::MAX,
            qos: 2,
            retain: true,
            packet: MAX_REMAINING,
        }
    }
}

/// The longest rest of a packet that its length can say.
const MAX_REMAINING: usize = 268_435_455;

pub fn connect(
    version: Version,
    client_id: &str,
    credentials: Option<(&str, &str)>,
) -> Option<Vec<u8>> {
    let mut body = Vec::new();
    text(&mut body, "MQTT")?;
    body.push(if version == Version::V5 { 5 } else { 4 });
    // A clean session: nothing of this client is to be kept.
    body.push(0x02 | if credentials.is_some() { 0xc0 } else { 0 });
    body.extend(KEEP_ALIVE_SECS.to_be_bytes());
    if version == Version::V5 {
        let packet = u32::try_from(MAX_PACKET).ok()?.to_be_bytes();
        // Maximum packet size, and no reasons in words.
        body.extend([7, 0x27]);
        body.extend(packet);
        body.extend([0x17, 0]);
    }
    text(&mut body, client_id)?;
    if let Some((name, password)) = credentials {
        text(&mut body, name)?;
        text(&mut body, password)?;
    }
    packet(0x10, &body)
}

pub struct Publish<'a> {
    pub topic: &'a str,
    pub payload: &'a [u8],
    pub qos: u8,
    pub retain: bool,
    pub id: u16,
}

/// None if it is too long for the protocol.
pub fn publish(version: Version, publish: &Publish<'_>) -> Option<Vec<u8>> {
    let mut body = Vec::with_capacity(publish.topic.len() + publish.payload.len() + 8);
    text(&mut body, publish.topic)?;
    if publish.qos > 0 {
        body.extend(publish.id.to_be_bytes());
    }
    if version == Version::V5 {
        body.push(0);
    }
    body.extend(publish.payload);
    packet(0x30 | publish.qos << 1 | u8::from(publish.retain), &body)
}

/// Asks for what is published under a filter, with the quality of service 0.
pub fn subscribe(version: Version, filter: &str, id: u16) -> Option<Vec<u8>> {
    let mut body = id.to_be_bytes().to_vec();
    if version == Version::V5 {
        body.push(0);
    }
    text(&mut body, filter)?;
    body.push(0);
    packet(0x82, &body)
}

pub const PING: [u8; 2] = [0xc0, 0];

/// What a broker says to a subscriber.
#[derive(Debug, PartialEq, Eq)]
pub enum Heard {
    Published {
        topic: String,
        payload: Vec<u8>,
    },
    /// The subscription was refused.
    Refused,
    /// All that was retained has come.
    Pong,
    Nothing,
}

/// Reads one packet of a subscription. The payload of a long one is left out.
pub async fn hear(stream: &mut (impl AsyncRead + Unpin), version: Version) -> io::Result<Heard> {
    let (head, length) = header(stream).await?;
    if length > MAX_PACKET {
        let mut left = stream.take(length as u64);
        tokio::io::copy(&mut left, &mut tokio::io::sink()).await?;
        return Ok(Heard::Nothing);
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await?;
    let published = || {
        let (topic, mut rest) = body.get(2..)?.split_at_checked(length_at(&body, 0)?)?;
        // With a higher quality of service there would be an id.
        if version == Version::V5 {
            let (properties, after) = variable(rest)?;
            rest = after.get(properties..)?;
        }
        Some(Heard::Published {
            topic: String::from_utf8(topic.to_vec()).ok()?,
            payload: rest.to_vec(),
        })
    };
    match head {
        0xd0 => Ok(Heard::Pong),
        0x90 if body.last().is_some_and(|code| *code >= 0x80) => Ok(Heard::Refused),
        0xe0 => Ok(Heard::Refused),
        head if head & 0xf6 == 0x30 => published().ok_or_else(strange),
        _ => Ok(Heard::Nothing),
    }
}

pub fn release(id: u16) -> Vec<u8> {
    let [high, low] = id.to_be_bytes();
    vec![0x62, 2, high, low]
}

fn text(body: &mut Vec<u8>, text: &str) -> Option<()> {
    body.extend(u16::try_from(text.len()).ok()?.to_be_bytes());
    body.extend(text.as_bytes());
    Some(())
}

fn packet(head: u8, body: &[u8]) -> Option<Vec<u8>> {
    let mut length = body.len();
    if length > MAX_REMAINING {
        return None;
    }
    let mut packet = Vec::with_capacity(length + 5);
    packet.push(head);
    loop {
        let digit = u8::try_from(length % 128).ok()?;
        length /= 128;
        packet.push(if length > 0 { digit | 0x80 } else { digit });
        if length == 0 {
            break;
        }
    }
    packet.extend(body);
    Some(packet)
}

/// Reads one packet.
pub async fn read(stream: &mut (impl AsyncRead + Unpin), version: Version) -> io::Result<Packet> {
    loop {
        let (head, length) = header(stream).await?;
        if length > MAX_PACKET {
            return Err(strange());
        }
        let mut body = vec![0; length];
        stream.read_exact(&mut body).await?;
        // PINGRESP answers nothing that was asked, and does no harm.
        if head != 0xd0 {
            return understood(head, &body, version).ok_or_else(strange);
        }
    }
}

/// The first byte of a packet, and the length of its rest.
async fn header(stream: &mut (impl AsyncRead + Unpin)) -> io::Result<(u8, usize)> {
    let head = stream.read_u8().await?;
    let mut length = 0_usize;
    for place in 0..4 {
        let digit = stream.read_u8().await?;
        length |= usize::from(digit & 0x7f) << (7 * place);
        if digit & 0x80 == 0 {
            return Ok((head, length));
        }
    }
    Err(strange())
}

fn strange() -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidData,
        "not a packet of MQTT that a publisher expects",
    )
}

fn understood(head: u8, body: &[u8], version: Version) -> Option<Packet> {
    let acknowledged = |step| {
        let id = u16::from_be_bytes([*body.first()?, *body.get(1)?]);
        let code = if version == Version::V5 {
            body.get(2).copied().unwrap_or(0)
        } else {
            0
        };
        Some(Packet::Acknowledged { step, id, code })
    };
    match head {
        0x20 => {
            let limits = if version == Version::V5 {
                limits(body.get(2..)?)?
            } else {
                Limits::default()
            };
            Some(Packet::Connected {
                code: *body.get(1)?,
                limits,
            })
        }
        0x40 => acknowledged(Step::Ack),
        0x50 => acknowledged(Step::Received),
        0x70 => acknowledged(Step::Complete),
        0xe0 if version == Version::V5 => Some(Packet::Disconnected {
            code: body.first().copied().unwrap_or(0),
        }),
        _ => None,
    }
}

/// The properties of a CONNACK.
fn limits(bytes: &[u8]) -> Option<Limits> {
    let mut limits = Limits::default();
    // A broker that refuses may leave them out.
    let Some((length, mut rest)) = variable(bytes) else {
        return Some(limits);
    };
    rest = rest.get(..length)?;
    while let Some((property, after)) = rest.split_first() {
        let size = match property {
            0x24 | 0x25 | 0x28 | 0x29 | 0x2a => 1,
            0x13 | 0x21 | 0x22 => 2,
            0x11 | 0x27 => 4,
            // Texts and bytes.
            0x12 | 0x15 | 0x16 | 0x1a | 0x1c | 0x1f => 2 + length_at(after, 0)?,
            // A pair of texts.
            0x26 => {
                let first = 2 + length_at(after, 0)?;
                first + 2 + length_at(after, first)?
            }
            _ => return None,
        };
        let value = after.get(..size)?;
        match (property, value) {
            (0x21, [high, low]) => limits.in_flight = u16::from_be_bytes([*high, *low]).max(1),
            (0x24, [qos]) => limits.qos = *qos,
            (0x25, [retain]) => limits.retain = *retain == 1,
            (0x27, [a, b, c, d]) => {
                limits.packet =
                    usize::try_from(u32::from_be_bytes([*a, *b, *c, *d])).unwrap_or(MAX_REMAINING);
            }
            _ => {}
        }
        rest = after.get(size..)?;
    }
    Some(limits)
}

fn length_at(bytes: &[u8], at: usize) -> Option<usize> {
    Some(usize::from(u16::from_be_bytes([
        *bytes.get(at)?,
        *bytes.get(at + 1)?,
    ])))
}

fn variable(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let mut value = 0_usize;
    for (place, digit) in bytes.iter().take(4).enumerate() {
        value |= usize::from(digit & 0x7f) << (7 * place);
        if digit & 0x80 == 0 {
            return Some((value, bytes.get(place + 1..)?));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn packets_of_a_broker_are_understood() {
        let limits = Limits {
            in_flight: 20,
            qos: 1,
            retain: false,
            packet: 1_000,
        };
        let connack = [
            0x20, 15, 0, 0, 12, 0x21, 0, 20, 0x24, 1, 0x25, 0, 0x27, 0, 0, 3, 0xe8,
        ];
        let read_from =
            |bytes: &'static [u8], version| async move { read(&mut &bytes[..], version).await };
        let mut connack = connack.as_slice();
        assert_eq!(
            read(&mut connack, Version::V5).await.expect("a packet"),
            Packet::Connected { code: 0, limits }
        );
        let limits = Limits::default();
        let refused = read_from(&[0x20, 2, 0, 5], Version::V3)
            .await
            .expect("a packet");
        assert_eq!(refused, Packet::Connected { code: 5, limits });
        let puback = read_from(&[0xd0, 0, 0x40, 3, 1, 2, 0x87], Version::V5)
            .await
            .expect("a packet");
        assert_eq!(
            puback,
            Packet::Acknowledged {
                step: Step::Ack,
                id: 258,
                code: 0x87
            }
        );
    }

    #[tokio::test]
    async fn packets_that_no_broker_sends_are_errors() {
        for bytes in [
            &[][..],
            &[0x20],
            &[0x20, 0xff, 0xff, 0xff, 0xff, 1],
            &[0x30, 0xff, 0xff, 0xff, 0x7f],
            &[0x40, 1, 1],
            &[0x20, 2, 0],
            &[0x20, 4, 0, 0, 1, 0x7f],
            &[0x20, 6, 0, 0, 3, 0x12, 0xff, 0xff],
            &[0x82, 0],
            b"HTTP/1.1 400 Bad Request\r\n\r\n",
        ] {
            assert!(
                read(&mut &bytes[..], Version::V5).await.is_err(),
                "{bytes:?}"
            );
        }
    }

    #[test]
    fn length_of_a_packet_takes_as_many_bytes_as_it_needs() {
        for (length, head) in [
            (0, vec![1, 0]),
            (127, vec![1, 127]),
            (128, vec![1, 0x80, 1]),
            (16_384, vec![1, 0x80, 0x80, 1]),
        ] {
            let packet = packet(1, &vec![0; length]).expect("a packet");
            assert_eq!(packet.get(..head.len()), Some(head.as_slice()));
            assert_eq!(packet.len(), head.len() + length);
        }
    }
}
