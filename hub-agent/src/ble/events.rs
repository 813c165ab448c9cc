//! Single advertisements as the text that is uploaded. An advertisement becomes text once, where it
//! is selected; the queue, the spool and the socket for apps only copy the text.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hub_protocol::ble::{Advertisement, BleEvent, Payload};
use hub_protocol::{Timestamp, TraceContext};

/// The most events of one list.
const MAX_EVENTS: usize = 500;
/// The usual size of an event.
const EVENT_BYTES: usize = 320;

/// Events in the order in which they were received, each a JSON object.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Events {
    json: Vec<u8>,
    /// When each was received, and where its text ends.
    ends: Vec<(Timestamp, usize)>,
}

impl Events {
    pub fn with_capacity(events: usize) -> Self {
        let events = events.min(MAX_EVENTS);
        Self {
            json: Vec::with_capacity(events * EVENT_BYTES),
            ends: Vec::with_capacity(events),
        }
    }

    pub fn len(&self) -> usize {
        self.ends.len()
    }

    pub fn is_full(&self) -> bool {
        self.ends.len() >= MAX_EVENTS
    }

    pub fn push(
        &mut self,
        at: Timestamp,
        trace: Option<TraceContext>,
        advertisement: &Advertisement,
    ) {
        write_event(&mut self.json, at, trace, advertisement);
        self.ends.push((at, self.json.len()));
    }

    /// When each was received, and its text.
    pub fn iter(&self) -> impl Iterator<Item = (Timestamp, &[u8])> {
        let mut start = 0;
        self.ends.iter().map(move |&(at, end)| {
            let json = self.json.get(start..end).unwrap_or_default();
            start = end;
            (at, json)
        })
    }

    /// The events as values.
    pub fn parsed(&self) -> impl Iterator<Item = BleEvent> {
        // Every event of this list was serialized by this module and can be parsed.
        self.iter()
            .filter_map(|(_, json)| serde_json::from_slice(json).ok())
    }
}

/// The text of a `BleEvent`, as its serializer writes it.
fn write_event(
    out: &mut Vec<u8>,
    at: Timestamp,
    trace: Option<TraceContext>,
    advertisement: &Advertisement,
) {
    let Advertisement {
        adapter_address,
        address,
        address_type,
        rssi,
        tx_power,
        name,
        manufacturer_data,
        service_data,
        service_uuids,
        device_instance_id,
    } = advertisement;
    out.extend_from_slice(br#"{"observedAt":"#);
    number(out, at);
    if let Some(trace) = trace {
        out.extend_from_slice(br#","traceparent":"#);
        string(out, &trace.to_string());
    }
    let text = |out: &mut Vec<u8>, key: &str, value: &Option<String>| {
        if let Some(value) = value {
            out.extend_from_slice(key.as_bytes());
            string(out, value);
        }
    };
    text(out, r#","adapterAddress":"#, adapter_address);
    out.extend_from_slice(br#","address":"#);
    string(out, address);
    text(out, r#","addressType":"#, address_type);
    if let Some(rssi) = rssi {
        out.extend_from_slice(br#","rssi":"#);
        number(out, rssi);
    }
    if let Some(tx_power) = tx_power {
        out.extend_from_slice(br#","txPower":"#);
        number(out, tx_power);
    }
    text(out, r#","name":"#, name);
    data(out, r#","manufacturerData":{"#, manufacturer_data);
    data(out, r#","serviceData":{"#, service_data);
    if !service_uuids.is_empty() {
        out.extend_from_slice(br#","serviceUuids":["#);
        for (at, uuid) in service_uuids.iter().enumerate() {
            if at > 0 {
                out.push(b',');
            }
            string(out, uuid);
        }
        out.push(b']');
    }
    if let Some(id) = device_instance_id {
        out.extend_from_slice(br#","deviceInstanceId":"#);
        number(out, id);
    }
    out.push(b'}');
}

fn data(out: &mut Vec<u8>, key: &str, data: &BTreeMap<String, Payload>) {
    if data.is_empty() {
        return;
    }
    out.extend_from_slice(key.as_bytes());
    for (at, (id, Payload(bytes))) in data.iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        string(out, id);
        out.extend_from_slice(b":\"");
        let start = out.len();
        out.resize(start + bytes.len().div_ceil(3) * 4, 0);
        // The space is exactly what the text needs.
        let _ = STANDARD.encode_slice(bytes, out.get_mut(start..).unwrap_or_default());
        out.push(b'"');
    }
    out.push(b'}');
}

/// A number, or a time. Writing to memory does not fail.
fn number(out: &mut Vec<u8>, value: impl serde::Serialize) {
    let _ = serde_json::to_writer(out, &value);
}

fn string(out: &mut Vec<u8>, text: &str) {
    if text
        .bytes()
        .all(|byte| byte >= b' ' && byte != b'"' && byte != b'\\')
    {
        out.push(b'"');
        out.extend_from_slice(text.as_bytes());
        out.push(b'"');
    } else {
        let _ = serde_json::to_writer(out, text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_is_what_the_serializer_writes() {
        let data = |entries: &[(&str, &[u8])]| {
            entries
                .iter()
                .map(|(id, bytes)| ((*id).to_owned(), Payload(bytes.to_vec())))
                .collect::<BTreeMap<_, _>>()
        };
        let whole = Advertisement {
            adapter_address: Some("00:11:22:33:44:55".into()),
            address: "C0:00:00:00:00:01".into(),
            address_type: Some("random".into()),
            rssi: Some(-71),
            tx_power: Some(4),
            name: Some("Küche \"1\" \\ \n \u{1f} 🌡 / \u{7f}".into()),
            manufacturer_data: data(&[("004c", &[]), ("0499", &[5]), ("ffff", &[0xff; 29])]),
            service_data: data(&[
                ("fcd2", &[1, 2]),
                ("6e400001-b5a3-f393-e0a9-e50e24dcca9e", &[1; 3]),
            ]),
            service_uuids: vec!["180d".into(), "a \" quote".into()],
            device_instance_id: Some(7),
        };
        let bare = Advertisement {
            address: String::new(),
            ..Advertisement::default()
        };
        let mut events = Events::default();
        let mut expected = Vec::new();
        for payload in [
            whole.clone(),
            bare,
            Advertisement {
                name: None,
                manufacturer_data: data(&[]),
                ..whole
            },
        ] {
            let event = BleEvent {
                event_uuid: None,
                observed_at: Timestamp::from_micros(1_769_846_400_123_456),
                traceparent: None,
                payload,
            };
            events.push(event.observed_at, event.traceparent, &event.payload);
            expected.push(event);
        }
        for ((at, json), event) in events.iter().zip(&expected) {
            assert_eq!(at, event.observed_at);
            assert_eq!(
                std::str::from_utf8(json).unwrap(),
                serde_json::to_string(event).unwrap()
            );
        }
        assert_eq!(events.len(), 3);
        assert_eq!(events.parsed().collect::<Vec<_>>(), expected);
    }
}
