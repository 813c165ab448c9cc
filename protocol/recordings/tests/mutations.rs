//! Recordings that are damaged in 10,000 ways each: always an answer, never a panic, and no more
//! memory than a bound.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a test that meets what it does not expect fails"
)]

mod samples;

use std::io::Cursor;

use hub_recordings::Recording;

const WAYS: u64 = 10_000;
/// What a recording may need: a document of 16 MiB, or the window of a compressed one.
const MOST_BYTES: u64 = 192 << 20;
/// More reports than any change of a short file can lead to.
const MOST_REPORTS: usize = 1_000;

/// SplitMix64: the same numbers in each run.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit.max(1) as u64) as usize
    }
}

/// Flips bits, sets extreme bytes, copies and removes parts, and cuts the end.
fn damage(file: &mut Vec<u8>, random: &mut Random) {
    for _ in 0..=random.below(6) {
        let at = random.below(file.len());
        match (random.below(6), file.get_mut(at)) {
            (0 | 1, Some(byte)) => *byte ^= 1 << random.below(8),
            (2, Some(byte)) => *byte = [0, 0x7F, 0x80, 0xFF][random.below(4)],
            (3, Some(_)) => file.truncate(at),
            (4, Some(_)) => {
                let end = (at + random.below(40)).min(file.len());
                drop(file.drain(at..end));
            }
            _ => {
                let end = (at + random.below(40)).min(file.len());
                let part = file[at..end].to_vec();
                file.splice(at..at, part);
            }
        }
    }
}

/// The most memory that this process has held.
fn peak_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = peak.and_then(|peak| peak.split_whitespace().next()?.parse::<u64>().ok());
    kib.unwrap_or(0) << 10
}

#[test]
fn damaged_recordings_have_an_end() {
    let before = peak_bytes();
    for (name, sample) in samples::all() {
        let mut random = Random(1);
        for way in 0..WAYS {
            let mut file = sample.clone();
            damage(&mut file, &mut random);
            let Ok(mut recording) = Recording::open(Cursor::new(file)) else {
                continue;
            };
            let mut count = 0;
            let mut times = Vec::new();
            for report in recording.by_ref() {
                count += 1;
                assert!(count < MOST_REPORTS, "{name}, way {way}");
                times.extend(report.map(|report| report.time_us));
            }
            assert!(times.is_sorted(), "{name}, way {way}: {times:?}");
            assert!(recording.next().is_none(), "{name}, way {way}");
        }
    }
    let grown = peak_bytes().saturating_sub(before);
    assert!(grown < MOST_BYTES, "{grown} bytes");
}

/// Documents of which each byte costs the most.
#[test]
fn documents_cost_no_more_than_their_bound() {
    let before = peak_bytes();
    let repeated = |part: &str, end: &str| {
        let times = (16 << 20) / part.len() - 64;
        format!(r#"{{"all_history": [{}{end}"#, part.repeat(times))
    };
    for document in [
        repeated("{},", "0]}"),
        repeated(r#"{"service_uuids":["180d","180d","180d"]},"#, "0]}"),
        repeated("[", ""),
        repeated("0,", "0]}"),
        format!(
            r#"{{"all_history": [{{"address": "{}"}}]}}"#,
            "A".repeat(8 << 20)
        ),
        format!("{{{}", " ".repeat(17 << 20)),
    ] {
        let recording = Recording::open(Cursor::new(document.into_bytes()));
        let count = recording.expect("JSON").filter(Result::is_ok).count();
        assert_eq!(count, 0);
    }
    let grown = peak_bytes().saturating_sub(before);
    assert!(grown < MOST_BYTES, "{grown} bytes");
}
