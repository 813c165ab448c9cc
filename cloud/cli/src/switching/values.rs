//! Values of devices by the hour: the service keeps them for longer than events.

use hub_client::{Error, operations};
use hub_protocol::Timestamp;
use serde_json::{Value, json};

use super::archive::{Lines, NewFile};
use super::exporter::Export;
use super::importer::Import;
use crate::config::{members, set, text};
use crate::failure::Failure;

/// How far back the service has values by the hour.
const DAYS: i64 = 400;
const DAY_SECS: i64 = 86_400;
/// An answer has at most 5,000 hours of a quantity.
const LONGEST_SECS: i64 = 200 * DAY_SECS;
const HOUR_SECS: i64 = 3600;
/// Values of a request, which may have 5,000 and 1 MiB.
const MAX_VALUES: usize = 4_000;
const MAX_BYTES: usize = 900_000;
const KIND: &str = "devices with values by the hour";

/// A file for each device that has values, latest first. A file that is there is finished.
pub async fn export(export: &mut Export<'_>, devices: &[String]) -> Result<(), Failure> {
    for device in devices {
        let name = format!("values/{device}.ndjson");
        if export.directory.join(&name).is_file() {
            export.keep_finished(&name)?;
            continue;
        }
        let mut file = NewFile::create(export.directory, &name)?;
        match of_device(export, device, &mut file).await? {
            Some(error) => {
                file.discard();
                return export.leave_out("values", error);
            }
            None if file.records() == 0 => file.discard(),
            None => export.keep(file)?,
        }
    }
    Ok(())
}

/// Writes the values of one device. Returns the error of the service.
async fn of_device(
    export: &Export<'_>,
    device: &str,
    file: &mut NewFile,
) -> Result<Option<Error>, Failure> {
    let began = export.begun.began_at;
    // Only the last hour is cut.
    let hour = hour_of(began);
    let oldest = hour.plus_secs(-DAYS * DAY_SECS);
    let since = export.begun.since.map_or(oldest, |since| since.max(oldest));
    let (mut to, mut span) = (began, LONGEST_SECS);
    while to > since {
        let whole = if to == began { hour } else { to };
        let from = whole.plus_secs(-span).max(since);
        let call = operations::DEVICE_VALUES
            .call()
            .path("deviceInstanceId", device)
            .query("every", Some("1h"))
            .query("from", Some(from))
            .query("to", Some(to));
        match export.client.call::<Vec<Value>>(call).await {
            Ok(buckets) => {
                for bucket in buckets.iter().rev() {
                    file.line(bucket)?;
                }
                to = from;
            }
            // It has too many quantities for so many hours.
            Err(error) if error.status() == Some(400) && span > DAY_SECS => {
                span = span / (2 * HOUR_SECS) * HOUR_SECS;
            }
            Err(error) if error.status() == Some(404) => return Ok(None),
            Err(error) => return Ok(Some(error)),
        }
    }
    Ok(None)
}

/// Adds the values that devices had at the other service.
pub async fn import(import: &mut Import<'_>, began_at: Timestamp) -> Result<(), Failure> {
    let mut left_out = 0;
    for (old, new) in import.devices.clone() {
        let (name, key) = (format!("values/{old}.ndjson"), format!("values/{old}"));
        if !import.directory.join(&name).is_file() {
            continue;
        }
        if import.journal.id(&key).is_some() {
            import.report.there(KIND);
            continue;
        }
        if import.is_plan {
            import.report.created(KIND);
            continue;
        }
        match device(import, (&name, new), began_at).await {
            Ok(number) => {
                left_out += number;
                import.created(KIND);
                import.journal.done(&key, Value::from(new))?;
            }
            // An API key, or somebody who may not manage: the same for every device.
            Err(Stopped::Refused(error)) if error.status() == Some(403) => {
                let todo = "run this import once more, signed in as OWNER or ADMIN: nobody else \
                            imports values by the hour";
                import.report.todo.push(todo.to_owned());
                break;
            }
            Err(Stopped::Refused(error)) => import.refused(KIND, &name, error)?,
            Err(Stopped::Failed(failure)) => return Err(failure),
        }
    }
    if left_out > 0 {
        import.report.left.push(format!(
            "{left_out} values by the hour: there already, or older than the service keeps them"
        ));
    }
    Ok(())
}

/// Why the values of a device are not imported.
enum Stopped {
    Refused(Error),
    Failed(Failure),
}

/// Returns how many values the service left out.
async fn device(
    import: &Import<'_>,
    (name, device): (&str, i64),
    began_at: Timestamp,
) -> Result<u64, Stopped> {
    let mut lines = Lines::open(import.directory, name).map_err(Stopped::Failed)?;
    let mut left_out = 0;
    loop {
        let values = next_values(&mut lines, began_at).map_err(Stopped::Failed)?;
        if values.is_empty() {
            return Ok(left_out);
        }
        let call = operations::IMPORT_DEVICE_VALUES
            .call()
            .path("deviceInstanceId", device)
            .body(json!({"values": values}));
        let answer: Value = import.client.call(call).await.map_err(Stopped::Refused)?;
        left_out += answer.get("leftOut").and_then(Value::as_u64).unwrap_or(0);
    }
}

/// The values of the next request; none at the end. The hour in which the export began was not
/// over, and is left out.
fn next_values(lines: &mut Lines, began_at: Timestamp) -> Result<Vec<Value>, Failure> {
    let (mut values, mut bytes) = (Vec::new(), 0);
    while values.len() < MAX_VALUES && bytes < MAX_BYTES {
        let Some(bucket) = lines.next()? else { break };
        let from: Timestamp = text(&bucket, "from").parse().map_err(|error| {
            Failure::failed(format!("a value by the hour has no time: {error}"))
        })?;
        let hour = hour_of(from);
        if hour.plus_secs(HOUR_SECS) > began_at {
            continue;
        }
        let mut value = members(
            &bucket,
            &["quantity", "count", "min", "max", "mean", "last"],
        );
        set(&mut value, "from", Some(json!(hour)));
        bytes += value.to_string().len();
        values.push(value);
    }
    Ok(values)
}

/// The beginning of an hour: hours begin at multiples of an hour since 1970.
fn hour_of(at: Timestamp) -> Timestamp {
    at.plus_micros(-at.as_micros().rem_euclid(HOUR_SECS * 1_000_000))
}
