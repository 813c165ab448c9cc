//! A name server that answers what a test says, without the wait of a real one.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};

use tokio::net::UdpSocket;

#[derive(Clone)]
pub enum Record {
    Address(IpAddr),
    Alias(&'static str),
    Text(&'static str),
}

/// The answers of a name, one after the other; the last one stays.
type Zone = HashMap<String, Vec<Vec<Record>>>;

pub struct NameServer {
    pub address: SocketAddr,
}

impl NameServer {
    pub async fn start(zone: &[(&str, Vec<Vec<Record>>)]) -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").await.expect("a socket");
        let address = socket.local_addr().expect("an address");
        let zone: Zone = zone
            .iter()
            .map(|(name, answers)| ((*name).to_owned(), answers.clone()))
            .collect();
        let asked = Arc::new(Mutex::new(HashMap::<(String, u16), usize>::new()));
        tokio::spawn(async move {
            let mut query = [0; 512];
            while let Ok((length, from)) = socket.recv_from(&mut query).await {
                let answer = answer(&query[..length], &zone, &asked);
                let _ = socket.send_to(&answer, from).await;
            }
        });
        Self { address }
    }
}

fn answer(query: &[u8], zone: &Zone, asked: &Mutex<HashMap<(String, u16), usize>>) -> Vec<u8> {
    let (name, end) = name(query);
    let kind = u16::from_be_bytes([query[end], query[end + 1]]);
    let number = {
        let mut asked = asked.lock().expect("a count");
        let count = asked.entry((name.clone(), kind)).or_default();
        *count += 1;
        *count - 1
    };
    let answers = zone.get(&name);
    let records = answers
        .and_then(|answers| answers.get(number).or(answers.last()))
        .cloned()
        .unwrap_or_default();
    let is_of_kind = |record: &Record| match record {
        Record::Alias(_) => true,
        Record::Address(IpAddr::V4(_)) => kind == 1,
        Record::Address(IpAddr::V6(_)) => kind == 28,
        Record::Text(_) => kind == 16,
    };
    let records: Vec<Record> = records.into_iter().filter(is_of_kind).collect();
    let code = if answers.is_some() { 0 } else { 3 };
    let mut message = query[..2].to_vec();
    message.extend([
        0x85,
        0x80 | code,
        0,
        1,
        0,
        u8::try_from(records.len()).expect("few"),
        0,
        0,
        0,
        0,
    ]);
    message.extend(&query[12..end + 4]);
    for record in records {
        let (kind, data) = match record {
            Record::Address(IpAddr::V4(address)) => (1, address.octets().to_vec()),
            Record::Address(IpAddr::V6(address)) => (28, address.octets().to_vec()),
            Record::Alias(name) => (5, labels(name)),
            Record::Text(text) => (
                16,
                [&[u8::try_from(text.len()).expect("short")], text.as_bytes()].concat(),
            ),
        };
        // The name of the question, class IN, not to be kept.
        message.extend([0xc0, 0x0c, 0, kind, 0, 1, 0, 0, 0, 0]);
        message.extend(u16::try_from(data.len()).expect("short").to_be_bytes());
        message.extend(data);
    }
    message
}

/// The name of the question, and where it ends.
fn name(query: &[u8]) -> (String, usize) {
    let mut at = 12;
    let mut labels = Vec::new();
    while query[at] != 0 {
        let length = usize::from(query[at]);
        labels.push(String::from_utf8_lossy(&query[at + 1..=at + length]).to_lowercase());
        at += length + 1;
    }
    (labels.join("."), at + 1)
}

fn labels(name: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    for label in name.split('.') {
        bytes.push(u8::try_from(label.len()).expect("short"));
        bytes.extend(label.as_bytes());
    }
    bytes.push(0);
    bytes
}
