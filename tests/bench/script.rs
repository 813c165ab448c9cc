//! *script*: what an advertisement costs a script of a tenant, process and pipes included, beside a
//! decoder of the same frame.

use std::hint::black_box;
use std::time::{Duration, Instant};

use hub_adverts::library::{OwnedFrame, Protocol};
use hub_adverts::{Keys, Measurement};
use hub_base::metrics::Metrics;
use hub_protocol::TenantUuid;
use hub_scripts::{Decoded, Scripts};
use hub_tests::process::program;
use serde_json::json;
use uuid::Uuid;

const SOURCE: &str = "function decode(frame) {
  for (const {companyId, data} of frame.manufacturerData) {
    if (companyId !== 0x0499 || data[0] !== 5 || data.length !== 24) continue;
    const view = new DataView(data.buffer);
    return {
      temperature: view.getInt16(1) * 0.005,
      humidity: view.getUint16(3) * 0.0025,
      pressure: view.getUint16(5) + 50000,
      acceleration_x: view.getInt16(7) * 0.00980665,
      acceleration_y: view.getInt16(9) * 0.00980665,
      acceleration_z: view.getInt16(11) * 0.00980665,
    };
  }
  return null;
}";
const FRAME: &str = "0512fc5394c37c0004fffc040cac364200cdcbb8334c884f";
const TIME: Duration = Duration::from_secs(2);

/// Microseconds of one of `count` that `work` does at a time.
pub async fn micros(count: usize, mut work: impl AsyncFnMut()) -> f64 {
    work().await;
    let (mut done, begun) = (0, Instant::now());
    while begun.elapsed() < TIME {
        work().await;
        done += count;
    }
    begun.elapsed().as_secs_f64() * 1e6 / done as f64
}

pub async fn script() {
    let read = |quantity: &str, at: usize, kind: &str, scale: f64| json!({"quantity": quantity, "at": at, "type": kind, "scale": scale});
    let mut pressure = read("pressure", 5, "u16", 1.0);
    pressure["offset"] = json!(50000);
    let definition = json!({"match": {"manufacturer": "0499", "length": 24}, "endian": "big", "read": [
        read("temperature", 1, "i16", 0.005),
        read("humidity", 3, "u16", 0.0025),
        pressure,
        read("acceleration_x", 7, "i16", 0.00980665),
        read("acceleration_y", 9, "i16", 0.00980665),
        read("acceleration_z", 11, "i16", 0.00980665),
    ]});
    let decoder = Protocol::parse(&json!({"kind": "DECLARATIVE", "definition": definition}))
        .expect("a decoder");
    let frame = OwnedFrame {
        manufacturer_data: vec![(0x0499, hex::decode(FRAME).expect("hexadecimal"))],
        ..OwnedFrame::default()
    };
    let mut expected: Vec<Measurement> = Vec::new();
    frame.with(|frame| decoder.decode(frame, Keys::default(), &mut expected));
    assert_eq!(expected.len(), 6);
    let declared = micros(1000, async || {
        for _ in 0..1000 {
            let mut out = Vec::new();
            frame.with(|frame| black_box(decoder.decode(frame, Keys::default(), &mut out)));
            black_box(out);
        }
    });
    let declared = declared.await;
    println!("script: {declared:.2} us an event by a decoder");
    let scripts = Scripts::new(program("hub-cloud"), 2, Metrics::new());
    let tenant = TenantUuid(Uuid::new_v4());
    for count in [1, 50, 1000] {
        let frames = vec![frame.clone(); count];
        let found = micros(count, async || {
            let decoded = scripts
                .decode(tenant, SOURCE, &frames, Duration::from_secs(5))
                .await;
            assert!(
                decoded
                    .iter()
                    .all(|one| matches!(one, Decoded::Values(all) if all.len() == 6)),
                "{decoded:?}"
            );
        });
        let found = found.await;
        println!(
            "script: {found:.1} us an event by a script, {count} in a batch; ratio {:.0}",
            found / declared
        );
    }
    let fresh = micros(1, async || {
        let tenant = TenantUuid(Uuid::new_v4());
        black_box(
            scripts
                .decode(
                    tenant,
                    SOURCE,
                    std::slice::from_ref(&frame),
                    Duration::from_secs(5),
                )
                .await,
        );
    });
    println!(
        "script: {:.0} us for the first event of a tenant, whose process is started",
        fresh.await
    );
}
