//! Every format yields the reports that its file was made of, and damaged ones end where they end.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test that meets what it does not expect fails"
)]

mod samples;

use std::io::Cursor;

use hub_adverts::advertisement::frame_of;
use hub_adverts::library::read;
use hub_recordings::{Format, PassedOver, Recording, RecordingError, Report};
use samples::{
    ADDRESS, HEARD, LITTLE_MICROS, RSSI_DBM, START_US, TIMES_US, air, all, btsnoop, extended_event,
    joined, legacy_event, nordic, pcap, pcapng, sent_address, with_header,
};

/// The reports, the error that ends them, and what was passed over.
fn outcome(file: Vec<u8>) -> (Vec<Report>, Option<RecordingError>, PassedOver) {
    let mut recording = match Recording::open(Cursor::new(file)) {
        Ok(recording) => recording,
        Err(error) => return (Vec::new(), Some(error), PassedOver::default()),
    };
    let mut reports = Vec::new();
    let mut failure = None;
    for report in recording.by_ref() {
        match report {
            Ok(report) => reports.push(report),
            Err(error) => failure = Some(error),
        }
    }
    (reports, failure, recording.passed_over())
}

#[track_caller]
fn reports(file: Vec<u8>) -> (Vec<Report>, PassedOver) {
    let (reports, failure, passed) = outcome(file);
    assert!(failure.is_none(), "{failure:?}");
    (reports, passed)
}

#[track_caller]
fn refusal(file: Vec<u8>) -> String {
    outcome(file).1.expect("it is refused").to_string()
}

#[test]
fn every_format_yields_the_same_reports() {
    for (name, file) in all() {
        let (reports, passed) = reports(file);
        assert_eq!(passed, PassedOver::default(), "{name}");
        let times: Vec<u64> = reports.iter().map(|report| report.time_us).collect();
        assert_eq!(times, TIMES_US, "{name}");
        let is_capture = !matches!(name, "diagnostics.json" | "trace.jsonl");
        for (report, (is_scan_response, _)) in reports.iter().zip(HEARD) {
            let heard = &report.advertisement;
            assert_eq!(heard.address, ADDRESS, "{name}");
            let rssi = (name != "251.pcap").then_some(i16::from(RSSI_DBM));
            assert_eq!(heard.rssi, rssi, "{name}");
            let kind = is_capture.then_some("random");
            assert_eq!(heard.address_type.as_deref(), kind, "{name}");
            let day_us = is_capture.then_some(START_US + report.time_us);
            let received_at = report.received_at.map(|at| at.as_micros().unsigned_abs());
            assert_eq!(received_at, day_us, "{name}");
            assert_eq!(
                report.is_scan_response,
                is_scan_response && is_capture,
                "{name}"
            );
            match is_scan_response {
                true => assert_eq!(heard.name.as_deref(), Some("Ruuvi 884F"), "{name}"),
                false => {
                    let reading = frame_of(heard).with(read).expect("a model").to_string();
                    assert!(reading.contains("temperature 24.3 °C"), "{name}: {reading}");
                }
            }
        }
    }
}

#[test]
fn the_format_is_told_by_the_content() {
    for (name, file) in all() {
        let format = Recording::open(Cursor::new(file))
            .expect("a recording")
            .format();
        let expected = match name.split_once('.').expect("an extension").1 {
            "btsnoop" | "btsnoop.zst" => Format::Btsnoop,
            "pcap" => Format::Pcap,
            "pcapng" => Format::PcapNg,
            "json" => Format::HomeAssistant,
            _ => Format::Trace,
        };
        assert_eq!(format, expected, "{name}");
    }
}

#[test]
fn a_file_that_ends_early_counts_until_there() {
    for (name, file) in all() {
        let is_text = matches!(name, "diagnostics.json" | "trace.jsonl");
        if is_text || name.ends_with(".zst") {
            continue;
        }
        let length = file.len() as u64 - 3;
        let (reports, failure, _) = outcome(file[..file.len() - 3].to_vec());
        assert_eq!(reports.len(), 2, "{name}");
        match failure {
            Some(RecordingError::CutShort { offset, within }) => {
                assert_eq!(offset, length, "{name}");
                assert!(within.contains("that begins at byte"), "{within}");
            }
            other => panic!("{name} ended with {other:?}"),
        }
    }
    let document = samples::home_assistant();
    let (reports, failure, _) = outcome(document[..document.len() - 12].to_vec());
    assert_eq!(reports.len(), 3);
    assert!(failure.is_some_and(|error| error.is_cut_short()));
    let compressed = all().pop().expect("the compressed one").1;
    let (_, failure, _) = outcome(compressed[..compressed.len() - 9].to_vec());
    assert!(failure.is_some_and(|error| error.is_cut_short()));
}

#[test]
fn what_cannot_be_read_is_refused_with_its_place() {
    let events = HEARD.map(|heard| legacy_event(&[heard]));
    let mut long = btsnoop(1001, 3, &events);
    let second = 16 + 24 + events[0].len();
    long[second + 4..second + 8].copy_from_slice(&1_900_000_u32.to_be_bytes());
    assert_eq!(
        refusal(long),
        format!("byte {second}: a record of 1,900,000 bytes; the longest is 65,535")
    );
    assert_eq!(
        refusal(btsnoop(1004, 3, &events)),
        "byte 12: datalink 1004 (HCI over a serial line, H5); expected 1001, 1002 or 2001"
    );
    assert_eq!(
        refusal(pcap(LITTLE_MICROS, 1, &events)),
        "byte 20: link type 1 (Ethernet); expected 187, 201, 251, 254, 256 or 272"
    );
    assert_eq!(
        refusal(pcapng(true, 195, &events)),
        "byte 28: link type 195 (IEEE 802.15.4); expected 187, 201, 251, 254, 256 or 272"
    );
    let mut block = pcapng(true, 187, &events);
    let last = block.len() - 4;
    block[last] ^= 4;
    assert!(refusal(block).starts_with(&format!("byte {last}: a length of ")));
    assert_eq!(
        refusal(b"\x89PNG\r\n\x1a\n".to_vec()),
        "byte 0: 89504e470d0a1a0a begins no recording; expected btsnoop, pcap, pcapng, diagnostics \
         of Home Assistant, or a trace of JSON lines"
    );
    assert!(refusal(b"{\"data\": {\"manager\": {}}}".to_vec()).starts_with("byte 0: JSON without"));
    assert_eq!(
        refusal(b"{\n \"data\": {\"all_history\":\n[}]}}".to_vec()),
        "byte 28: expected value; expected JSON of Home Assistant's diagnostics"
    );
    let lines = "{\"t_ms\":5,\"address\":\"AA:BB:CC:DD:EE:FF\"}\n{\"t_ms\":4,\"address\":\"AA:BB:CC:DD:EE:FF\"}";
    assert_eq!(
        refusal(lines.into()),
        "line 2: t_ms is 4, but the line before it has 5"
    );
    let line = format!("{{\"t_ms\":5,\"name\":\"{}\"}}", "a".repeat(70_000));
    assert_eq!(
        refusal(line.into()),
        "byte 0: a line of more than 65,535 bytes"
    );
}

#[test]
fn one_event_may_have_several_reports() {
    let event = legacy_event(&[HEARD[1], HEARD[1], HEARD[1]]);
    let (reports, _) = reports(btsnoop(1001, 3, &[event.clone(), event.clone(), event]));
    assert_eq!(reports.len(), 9);
}

#[test]
fn fragments_of_extended_reports_are_joined() {
    // Data status: 1 has more to come, 0 is complete.
    let [advertisement, name, _] = HEARD;
    let more = extended_event(0x20, (false, name.1));
    let last = extended_event(0x00, advertisement);
    let (joined_reports, passed) = reports(btsnoop(2001, 3, &[more.clone(), more.clone(), last]));
    let [report] = &joined_reports[..] else {
        panic!("one report, not {joined_reports:?}")
    };
    assert_eq!(report.advertisement.name.as_deref(), Some("Ruuvi 884F"));
    assert!(report.advertisement.manufacturer_data.contains_key("0499"));
    assert_eq!(passed, PassedOver::default());

    // An end that never comes.
    let (reports, passed) = reports(btsnoop(2001, 3, &[more.clone(), more.clone(), more]));
    assert_eq!((reports.len(), passed.incomplete), (0, 1));
}

/// A packet of extended advertising: its header's parts and its data.
fn extended_packet(flags: u8, header: &[u8], data: &[u8]) -> Vec<u8> {
    let length = 1 + header.len() as u8;
    let pdu = joined(&[
        &[0x47, 1 + length + data.len() as u8, length, flags],
        header,
        data,
    ]);
    with_header(0x0C13, &air(&pdu))
}

#[test]
fn extended_advertising_is_followed_through_its_packets() {
    let set = [0x34, 0x12];
    let pointer = [0x05, 0x10, 0x00];
    let [(_, ruuvi), (_, name), _] = HEARD;
    let address_and_pointer = joined(&[&sent_address(), &set, &pointer]);
    let primary = extended_packet(0x19, &address_and_pointer, &[]);
    let auxiliary = extended_packet(0x18, &joined(&[&set, &pointer]), name);
    let chain = extended_packet(0x08, &set, ruuvi);
    let (found, passed) = reports(pcap(LITTLE_MICROS, 256, &[primary, auxiliary, chain]));
    let [report] = &found[..] else {
        panic!("one report, not {found:?}")
    };
    assert_eq!(report.advertisement.address, ADDRESS);
    assert_eq!(report.advertisement.name.as_deref(), Some("Ruuvi 884F"));
    assert!(report.advertisement.manufacturer_data.contains_key("0499"));
    assert_eq!(passed.other, 1);

    // The address and all data in one packet, with a transmit power, on the coded physical layer.
    let parts = joined(&[&sent_address(), &set, &[0xF8]]);
    let pdu = joined(&[&[0x47, 11 + name.len() as u8, 10, 0x49], &parts, name]);
    let mut coded = air(&pdu);
    coded.insert(4, 0);
    let whole = with_header(0x8C13, &coded);
    let anonymous = extended_packet(0x08, &[0x35, 0x12], name);
    let sync = with_header(0x2C93, &air(&[0x47, 2, 1, 0]));
    let (found, passed) = reports(pcap(LITTLE_MICROS, 256, &[whole, anonymous, sync]));
    let [report] = &found[..] else {
        panic!("one report, not {found:?}")
    };
    assert_eq!(report.advertisement.tx_power, Some(-8));
    assert_eq!((passed.without_address, passed.other), (1, 1));
}

#[test]
fn packets_with_errors_are_counted() {
    let good = air(&samples::pdu(HEARD[1]));
    let mut wrong = good.clone();
    wrong[12] ^= 1;
    // Neither the receiver nor the file vouches for the second, and the third was cut.
    let cut = good[..20].to_vec();
    let (found, passed) = reports(pcap(LITTLE_MICROS, 251, &[good.clone(), wrong, cut]));
    assert_eq!((found.len(), passed.bad_crc, passed.malformed), (1, 1, 1));
    assert_eq!(passed.to_string(), "1 with a bad CRC, 1 malformed");

    let flagged = with_header(0x0413, &good);
    let whitened = with_header(0x0C12, &good);
    let connection = with_header(0x0C13, &[1, 2, 3, 4, 0, 0, 0, 0, 0]);
    let (found, passed) = reports(pcap(LITTLE_MICROS, 256, &[flagged, whitened, connection]));
    assert_eq!((found.len(), passed.bad_crc), (0, 1));
    assert_eq!((passed.malformed, passed.other), (1, 1));

    let data = nordic(1, &[1, 2, 3, 4, 0, 0, 0, 0, 0]);
    let mut later = nordic(1, &good);
    later[3] = 4;
    let (found, passed) = reports(pcap(LITTLE_MICROS, 272, &[nordic(0, &good), data, later]));
    assert_eq!((found.len(), passed.bad_crc), (0, 1));
    assert_eq!((passed.malformed, passed.other), (1, 1));
}

/// A packet of an nRF Sniffer that others published, with what they saw in it.
#[test]
fn a_published_packet_is_read() {
    let digits = "0e310003b933020a01261b0000e8152b11d6be898e461e23a29b6a692b0201040e094e6f7264\
                  69635f426561636f6e05ff59000900d1ea17";
    let packet = hex::decode(digits).expect("digits");
    let packets = [packet.clone(), packet.clone(), packet];
    let (found, passed) = reports(pcap(LITTLE_MICROS, 272, &packets));
    assert_eq!(passed, PassedOver::default());
    let heard = serde_json::to_value(&found[0].advertisement).expect("JSON");
    assert_eq!(
        heard,
        serde_json::json!({
            "address": "2B:69:6A:9B:A2:23", "addressType": "random", "rssi": -27,
            "name": "Nordic_Beacon", "manufacturerData": {"0059": "CQA="},
        })
    );
}

/// The log of a phone. Its controller put an advertisement and its scan response into one event.
#[test]
fn a_published_log_is_read() {
    let (found, passed) = reports(include_bytes!("data/beewi.btsnoop").to_vec());
    assert_eq!((found.len(), passed.other), (59, 37));
    assert_eq!(passed.to_string(), "");
    let began = found[0].received_at.expect("a time").to_string();
    assert_eq!(began, "2015-10-14T07:59:28.004975Z");
    let (sensor, response) = (&found[4], &found[5]);
    assert_eq!(sensor.advertisement.name, None);
    assert_eq!(sensor.offset, response.offset);
    assert!(!sensor.is_scan_response && response.is_scan_response);
    assert_eq!(
        response.advertisement.name.as_deref(),
        Some("BeeWi SmartClim")
    );
    let next = found.iter().skip(6).find(|report| {
        let is_sensor = report.advertisement.address == sensor.advertisement.address;
        is_sensor && !report.is_scan_response
    });
    let heard = serde_json::to_value(&next.expect("another").advertisement).expect("JSON");
    assert_eq!(
        heard,
        serde_json::json!({
            "address": "78:A5:04:5A:87:16", "addressType": "public", "rssi": -55,
            "name": "BeeWi SmartClim", "manufacturerData": {"000d": "BQDcAAIjBwAABk4="},
        })
    );
}

/// The shape of Shelly's diagnostics, whose scanner has a list for each device.
#[test]
fn scanners_of_other_integrations_are_read() {
    let document = r#"{"data": {"entry": {"data": {"host": "**REDACTED**"}}, "bluetooth": {"scanner": {
        "connectable": false, "discovered_device_timestamps": {"AA:BB:CC:DD:EE:FF": 7.5},
        "discovered_devices_and_advertisement_data": [
          {"address": "AA:BB:CC:DD:EE:FF", "details": {"source": "12:34:56:78:9A:BE"}, "name": null, "rssi": -62,
           "advertisement_data": [null,
             {"89": {"__type": "<class 'bytes'>", "repr": "b'\\xd1\\xfb;t\\xc8\\x90'"}},
             {"00000d00-0000-1000-8000-00805f9b34fb": {"__type": "<class 'bytes'>", "repr": "b'H\\x10a'"}},
             ["cba20d00-224d-11e6-9fb8-0002a5d5c51b"], -127, -62, []]},
          {"address": "F4C2D5A0-0000-1111-2222-333344445555", "advertisement_data": []},
          {"address": "**REDACTED**"}, null, 7
        ]}}}}"#;
    let (found, passed) = reports(document.into());
    let json = serde_json::to_value(&found[0].advertisement).expect("JSON");
    assert_eq!(
        json,
        serde_json::json!({
            "address": "AA:BB:CC:DD:EE:FF", "rssi": -62, "manufacturerData": {"0059": "0fs7dMiQ"},
            "serviceData": {"0d00": "SBBh"}, "serviceUuids": ["cba20d00-224d-11e6-9fb8-0002a5d5c51b"],
        })
    );
    assert_eq!((found.len(), passed.without_address), (1, 4));
}
