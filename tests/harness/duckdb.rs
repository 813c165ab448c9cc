//! What DuckDB reads from the files of the history (`duckdb/rows.py`) and of values.

use std::path::{Path, PathBuf};

use hub_ingest::StoredEvent;
use hub_protocol::Timestamp;
use serde_json::{Value, json};
use tokio::process::Command;

/// An event is in the day in which its batch begins, which is so many microseconds before at most.
const BATCH_MICROS: i64 = 1024;

/// The rows of all files below a directory, in the order of their ids, each in its day; None where
/// DuckDB cannot be installed.
pub async fn rows(dir: &Path) -> Option<Vec<Value>> {
    rows_of(&[dir.join("history/*/*/*.parquet")]).await
}

/// The same of these files.
pub async fn rows_of(files: &[PathBuf]) -> Option<Vec<Value>> {
    let lines = read("rows.py", files).await?;
    let row = |line: &str| {
        let mut row: Vec<Value> = serde_json::from_str(line).expect("JSON");
        let (day, id) = (row.pop(), row[0].as_i64().expect("an id"));
        let days = [id, id - BATCH_MICROS].map(day_of);
        assert!(
            day.is_some_and(|day| days.iter().any(|one| day == **one)),
            "{row:?}"
        );
        Value::Array(row)
    };
    Some(lines.lines().map(row).collect())
}

/// The types of the columns and the rows of a file of values (`duckdb/values.py`).
pub async fn values_of(file: &Path) -> Option<(Value, Vec<Value>)> {
    let lines = read("values.py", &[file.to_owned()]).await?;
    let mut lines = lines
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"));
    Some((lines.next()?, lines.collect()))
}

/// What a script of `duckdb/` prints of these files.
async fn read(script: &str, files: &[PathBuf]) -> Option<String> {
    let harness = concat!(env!("CARGO_MANIFEST_DIR"), "/harness");
    let mut install = Command::new(format!("{harness}/venv"));
    let installed = install.arg(format!("{harness}/duckdb")).output().await;
    let installed = installed.expect("the script starts");
    if !installed.status.success() {
        crate::skip("reading with DuckDB", "python3-venv, and duckdb from PyPI");
        return None;
    }
    let venv = String::from_utf8(installed.stdout).expect("a path");
    let read = Command::new(format!("{}/bin/python", venv.trim()))
        .arg(format!("{harness}/duckdb/{script}"))
        .args(files)
        .output()
        .await
        .expect("the script starts");
    let errors = String::from_utf8_lossy(&read.stderr);
    assert!(read.status.success(), "{errors}");
    Some(String::from_utf8(read.stdout).expect("text"))
}

/// The row of an event, as [`rows`] has it.
pub fn row_of(tenant_uuid: hub_protocol::TenantUuid, event: &StoredEvent) -> Value {
    let micros = |time: Option<Timestamp>| time.map(Timestamp::as_micros);
    json!([
        event.ble_event_id,
        event.hub_uuid,
        event.device_instance_id,
        event.processing_status.name(),
        event.observation_id,
        micros(event.window.map(|window| window.0)),
        micros(event.window.map(|window| window.1)),
        micros(event.reprocessed_at),
        event.event,
        event.reading,
        tenant_uuid,
    ])
}

fn day_of(ble_event_id: i64) -> String {
    Timestamp::from_micros(ble_event_id).to_string()[..10].to_owned()
}
