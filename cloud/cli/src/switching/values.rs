//! Values of devices by the hour: the service keeps them for longer than events.

use hub_client::{Error, operations};
use serde_json::Value;

use super::archive::NewFile;
use super::exporter::Export;
use crate::failure::Failure;

/// How far back the service has values by the hour.
const DAYS: i64 = 400;
const DAY_SECS: i64 = 86_400;
/// An answer has at most 5,000 hours of a quantity.
const LONGEST_SECS: i64 = 200 * DAY_SECS;

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
    // Hours begin at multiples of an hour; only the last one is cut.
    let hour = began.plus_secs(-began.as_secs().rem_euclid(3600));
    let hour = hour.plus_micros(-hour.as_micros().rem_euclid(1_000_000));
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
                span = span / 7200 * 3600;
            }
            Err(error) if error.status() == Some(404) => return Ok(None),
            Err(error) => return Ok(Some(error)),
        }
    }
    Ok(None)
}
