//! Recordings made byte by byte from the documents of their formats. Each has the same three
//! reports: an advertisement of a RuuviTag, a scan response with its name 0.25 s later, and another
//! advertisement 1.5 s after the first.

/// The address of the advertiser, which is random.
pub const ADDRESS: &str = "CB:B8:33:4C:88:4F";
/// 2026-01-31T08:00:00Z.
pub const START_US: u64 = 1_769_846_400_000_000;
pub const TIMES_US: [u64; 3] = [0, 250_000, 1_500_000];
pub const RSSI_DBM: i8 = -61;

/// From Ruuvi's document of its data format 5: 24.3 °C, 53.49 % and 100044 Pa.
const RUUVI: [u8; 31] = [
    0x02, 0x01, 0x06, 0x1B, 0xFF, 0x99, 0x04, 0x05, 0x12, 0xFC, 0x53, 0x94, 0xC3, 0x7C, 0x00, 0x04,
    0xFF, 0xFC, 0x04, 0x0C, 0xAC, 0x36, 0x42, 0x00, 0xCD, 0xCB, 0xB8, 0x33, 0x4C, 0x88, 0x4F,
];
const NAME: &[u8] = b"\x0B\x09Ruuvi 884F";

/// One report: whether it is a scan response, and its advertising data.
pub type Heard = (bool, &'static [u8]);
pub const HEARD: [Heard; 3] = [(false, &RUUVI), (true, NAME), (false, &RUUVI)];

/// All recordings, by the names of their files.
pub fn all() -> Vec<(&'static str, Vec<u8>)> {
    let events = HEARD.map(|heard| legacy_event(&[heard]));
    let extended = HEARD.map(|heard| extended_event(0x10, heard));
    let h4 = events.each_ref().map(|event| joined(&[&[0x04], event]));
    let with_direction = h4.each_ref().map(|packet| joined(&[&[0, 0, 0, 1], packet]));
    let monitor = extended
        .each_ref()
        .map(|event| joined(&[&[0, 1, 0, 3], event]));
    let air = HEARD.map(|heard| air(&pdu(heard)));
    let with_header = air.each_ref().map(|packet| with_header(0x0C13, packet));
    let nordic = air.each_ref().map(|packet| nordic(1, packet));
    vec![
        ("hci.btsnoop", btsnoop(1001, 3, &events)),
        ("h4.btsnoop", btsnoop(1002, 1, &h4)),
        ("monitor.btsnoop", btsnoop(2001, 3, &extended)),
        ("187.pcap", pcap(BIG_MICROS, 187, &h4)),
        ("201.pcap", pcap(LITTLE_MICROS, 201, &with_direction)),
        ("254.pcap", pcap(BIG_NANOS, 254, &monitor)),
        ("251.pcap", pcap(LITTLE_NANOS, 251, &air)),
        ("256.pcap", pcap(LITTLE_MICROS, 256, &with_header)),
        ("272.pcap", pcap(BIG_MICROS, 272, &nordic)),
        ("201.pcapng", pcapng(true, 201, &with_direction)),
        ("272.pcapng", pcapng(false, 272, &nordic)),
        ("diagnostics.json", home_assistant()),
        ("trace.jsonl", trace()),
        (
            "monitor.btsnoop.zst",
            // Compressing in memory does not fail.
            zstd::encode_all(btsnoop(2001, 3, &extended).as_slice(), 3).unwrap_or_default(),
        ),
    ]
}

pub fn joined(parts: &[&[u8]]) -> Vec<u8> {
    parts.concat()
}

/// The address as it is sent.
pub fn sent_address() -> [u8; 6] {
    [0x4F, 0x88, 0x4C, 0x33, 0xB8, 0xCB]
}

/// LE Advertising Report.
pub fn legacy_event(heard: &[Heard]) -> Vec<u8> {
    let mut parameters = vec![0x02, heard.len() as u8];
    for (is_scan_response, data) in heard {
        parameters.extend([if *is_scan_response { 4 } else { 3 }, 1]);
        parameters.extend(sent_address());
        parameters.push(data.len() as u8);
        parameters.extend(*data);
        parameters.push(RSSI_DBM as u8);
    }
    joined(&[&[0x3E, parameters.len() as u8], &parameters])
}

/// LE Extended Advertising Report with these bits of its event type.
pub fn extended_event(bits: u16, (is_scan_response, data): Heard) -> Vec<u8> {
    let event_type = bits | if is_scan_response { 0x08 } else { 0 };
    let parameters = joined(&[
        &[0x0D, 1],
        &event_type.to_le_bytes(),
        &[1],
        &sent_address(),
        // Physical layers, set, transmit power, strength, interval.
        &[1, 0, 0xFF, 127, RSSI_DBM as u8, 0, 0],
        // The target of a directed advertisement.
        &[0; 7],
        &[data.len() as u8],
        data,
    ]);
    joined(&[&[0x3E, parameters.len() as u8], &parameters])
}

/// ADV_NONCONN_IND or SCAN_RSP.
pub fn pdu((is_scan_response, data): Heard) -> Vec<u8> {
    let kind = if is_scan_response { 0x44 } else { 0x42 };
    joined(&[&[kind, 6 + data.len() as u8], &sent_address(), data])
}

/// A packet of an advertising channel.
pub fn air(pdu: &[u8]) -> Vec<u8> {
    joined(&[&[0xD6, 0xBE, 0x89, 0x8E], pdu, &crc(pdu)])
}

/// The CRC as the specification draws it: a register of 24 bits, whose last bit is sent first.
fn crc(pdu: &[u8]) -> [u8; 3] {
    let mut register: u32 = 0x55_5555;
    for bit in pdu
        .iter()
        .flat_map(|byte| (0..8).map(move |at| byte >> at & 1))
    {
        let feedback = register >> 23 ^ u32::from(bit);
        register = register << 1 & 0xFF_FFFF;
        if feedback == 1 {
            register ^= 0x00_065B;
        }
    }
    let [_, high, middle, low] = register.to_be_bytes();
    [high, middle, low].map(u8::reverse_bits)
}

/// LINKTYPE_BLUETOOTH_LE_LL_WITH_PHDR.
pub fn with_header(flags: u16, packet: &[u8]) -> Vec<u8> {
    let header = [0, RSSI_DBM as u8, 0, 0, 0xD6, 0xBE, 0x89, 0x8E];
    joined(&[&header, &flags.to_le_bytes(), packet])
}

/// LINKTYPE_NORDIC_BLE in its version 3.
pub fn nordic(flags: u8, packet: &[u8]) -> Vec<u8> {
    let length = 10 + packet.len() as u16;
    let board_and_length = [&[7], length.to_le_bytes().as_slice()].concat();
    let rssi = RSSI_DBM.unsigned_abs();
    let header = [3, 1, 0, 2, 10, flags, 37, rssi, 0, 0, 0, 0, 0, 0];
    joined(&[&board_and_length, &header, packet])
}

pub fn btsnoop(datalink: u32, flags: u32, packets: &[Vec<u8>; 3]) -> Vec<u8> {
    let mut file = joined(&[b"btsnoop\0", &1_u32.to_be_bytes(), &datalink.to_be_bytes()]);
    for (packet, time_us) in packets.iter().zip(TIMES_US) {
        let length = (packet.len() as u32).to_be_bytes();
        let time = 0x00DC_DDB3_0F2F_8000 + START_US + time_us;
        file.extend(joined(&[
            &length,
            &length,
            &flags.to_be_bytes(),
            &[0; 4],
            &time.to_be_bytes(),
            packet,
        ]));
    }
    file
}

/// Whether numbers are little-endian, and whether times are in nanoseconds.
pub type PcapForm = (bool, bool);
pub const BIG_MICROS: PcapForm = (false, false);
pub const BIG_NANOS: PcapForm = (false, true);
pub const LITTLE_MICROS: PcapForm = (true, false);
pub const LITTLE_NANOS: PcapForm = (true, true);

fn u16_of(is_little: bool, number: u16) -> [u8; 2] {
    if is_little {
        number.to_le_bytes()
    } else {
        number.to_be_bytes()
    }
}

fn u32_of(is_little: bool, number: u32) -> [u8; 4] {
    if is_little {
        number.to_le_bytes()
    } else {
        number.to_be_bytes()
    }
}

pub fn pcap((is_little, has_nanos): PcapForm, link_type: u32, packets: &[Vec<u8>; 3]) -> Vec<u8> {
    let long = |number| u32_of(is_little, number);
    let short = |number| u16_of(is_little, number);
    let magic = if has_nanos { 0xA1B2_3C4D } else { 0xA1B2_C3D4 };
    let mut file = joined(&[&long(magic), &short(2), &short(4), &[0; 8]]);
    file.extend(joined(&[&long(65_535), &long(link_type)]));
    for (packet, time_us) in packets.iter().zip(TIMES_US) {
        let time_us = START_US + time_us;
        let micros = (time_us % 1_000_000) as u32;
        let length = long(packet.len() as u32);
        file.extend(joined(&[
            &long((time_us / 1_000_000) as u32),
            &long(if has_nanos { micros * 1_000 } else { micros }),
            &length,
            &length,
            packet,
        ]));
    }
    file
}

/// One section, with times in nanoseconds and a block that has nothing to do with packets.
pub fn pcapng(is_little: bool, link_type: u16, packets: &[Vec<u8>; 3]) -> Vec<u8> {
    let long = |number| u32_of(is_little, number);
    let short = |number| u16_of(is_little, number);
    let block = |kind: u32, body: &[u8]| {
        let padding = vec![0; body.len().next_multiple_of(4) - body.len()];
        let length = long(12 + (body.len() + padding.len()) as u32);
        joined(&[&long(kind), &length, body, &padding, &length])
    };
    let section = joined(&[&long(0x1A2B_3C4D), &short(1), &short(0), &[0xFF; 8]]);
    let interface = joined(&[
        &short(link_type),
        &[0; 2],
        &long(0),
        // The name of the interface, the resolution of its times, and the end of the options.
        &short(2),
        &short(3),
        b"ble\0",
        &short(9),
        &short(1),
        &[9, 0, 0, 0],
        &[0; 4],
    ]);
    let mut file = block(0x0A0D_0D0A, &section);
    file.extend(block(1, &interface));
    file.extend(block(5, &[0; 12]));
    for (packet, time_us) in packets.iter().zip(TIMES_US) {
        let nanos = (START_US + time_us) * 1_000;
        let length = long(packet.len() as u32);
        let body = joined(&[
            &long(0),
            &long((nanos >> 32) as u32),
            &long(nanos as u32),
            &length,
            &length,
            packet,
        ]);
        file.extend(block(6, &body));
    }
    file
}

/// Diagnostics of the Bluetooth integration, as a browser stores them. The histories of the manager
/// have what each device sent last, so that reports differ in their times and contents.
pub fn home_assistant() -> Vec<u8> {
    let bytes = r#"{"__type": "<class 'bytes'>", "repr": "b'\\x05\\x12\\xfcS\\x94\\xc3|\\x00\\x04\\xff\\xfc\\x04\\x0c\\xac6B\\x00\\xcd\\xcb\\xb83L\\x88O'"}"#;
    let hex = "0512fc5394c37c0004fffc040cac364200cdcbb8334c884f";
    let entry = |name: &str, data: &str, time: f64| {
        format!(
            r#"{{"name": "{name}", "address": "{ADDRESS}", "rssi": {RSSI_DBM}, "manufacturer_data": {{{data}}},
                "service_data": {{}}, "service_uuids": [], "source": "local", "connectable": false,
                "advertisement": ["", {{}}, {{}}, [], -127, {RSSI_DBM}, [[]]], "time": {time}, "tx_power": -127}}"#
        )
    };
    let first = entry(ADDRESS, &format!(r#""1177": {bytes}"#), 1000.0);
    let name = entry("Ruuvi 884F", "", 1000.25);
    let last = entry(ADDRESS, &format!(r#""1177": "{hex}""#), 1001.5);
    format!(
        r#"{{
  "home_assistant": {{"version": "2026.1.0", "dev": false}},
  "data": {{
    "manager": {{
      "adapters": {{"hci0": {{"address": "00:00:00:00:00:01"}}}},
      "scanners": [{{
        "name": "hci0", "monotonic_time": 1002.5,
        "discovered_devices_and_advertisement_data": [
          {{"name": "Ruuvi 884F", "address": "{ADDRESS}", "rssi": {RSSI_DBM}, "details": null,
           "advertisement_data": ["Ruuvi 884F", {{}}, {{}}, [], -127, {RSSI_DBM}, [[]]]}}
        ]
      }}],
      "connectable_history": [{last}],
      "all_history": [{last}, {first}, {name}]
    }}
  }}
}}
"#
    )
    .into_bytes()
}

/// The project's own format.
pub fn trace() -> Vec<u8> {
    let data = r#""manufacturerData":{"0499":"0512fc5394c37c0004fffc040cac364200cdcbb8334c884f"}"#;
    let line = |time_us: u64, rest: &str| {
        let t_ms = time_us / 1_000;
        format!(r#"{{"t_ms":{t_ms},"address":"{ADDRESS}","rssi":{RSSI_DBM},{rest}}}"#) + "\n"
    };
    let [first, second, third] = TIMES_US;
    let name = r#""name":"Ruuvi 884F""#;
    (line(first, data) + &line(second, name) + &line(third, data)).into_bytes()
}
