//! The parts of an export that grow: jobs, values, telemetry, logs, audit log and events.

use hub_client::{Call, operations};
use hub_protocol::Timestamp;

use super::archive::{self, NewFile};
use super::exporter::Export;
use super::pages::Past;
use super::values;
use crate::failure::Failure;

/// What happened to these hubs and devices.
pub async fn export(
    export: &mut Export<'_>,
    hubs: &[String],
    devices: &[String],
) -> Result<(), Failure> {
    if export.has("jobs") {
        let calls = hubs
            .iter()
            .map(|hub| operations::HUB_JOBS.call().path("hubUuid", hub));
        export.lists("jobs", calls.collect(), "hubJobUuid").await?;
    }
    if export.has("values") {
        values::export(export, devices).await?;
    }
    for (part, operation, id) in [
        ("telemetry", &operations::HUB_TELEMETRY, "hubTelemetryId"),
        ("logs", &operations::HUB_LOGS, "hubLogId"),
    ] {
        if !export.has(part) {
            continue;
        }
        for hub in hubs {
            let call = operation.call().path("hubUuid", hub);
            let name = format!("{part}/{hub}.ndjson");
            if !export.past(part, &name, call, ("receivedAt", id)).await? {
                break;
            }
        }
    }
    if export.has("audit") {
        let call = operations::AUDIT_LOGS.call();
        export
            .days("audit", call, ("createdAt", "auditLogId"))
            .await?;
    }
    if export.has("events") {
        let call = operations::BLE_EVENTS.call();
        export
            .days("events", call, ("receivedAt", "bleEventId"))
            .await?;
    }
    Ok(())
}

impl Export<'_> {
    /// A file of all records of the past, latest first. Returns whether the caller may read them.
    async fn past(
        &mut self,
        part: &str,
        name: &str,
        call: Call,
        members: (&'static str, &'static str),
    ) -> Result<bool, Failure> {
        if self.directory.join(name).is_file() {
            self.keep_finished(name)?;
            return Ok(true);
        }
        let call = call.query("from", self.begun.since);
        let client = self.client.clone();
        let mut past = Past::new(&client, call, members, self.begun.began_at);
        let mut file = NewFile::create(self.directory, name)?;
        loop {
            match past.next().await {
                Ok(None) => break,
                Ok(Some(records)) => records.iter().try_for_each(|(_, one)| file.line(one))?,
                Err(error) if error.status() == Some(404) => break,
                Err(error) => {
                    file.discard();
                    self.leave_out(part, error)?;
                    return Ok(false);
                }
            }
        }
        match file.records() {
            0 => file.discard(),
            _ => self.keep(file)?,
        }
        Ok(true)
    }

    /// A file for each day (UTC), latest first, so that an interrupted export goes on after the
    /// last finished day.
    async fn days(
        &mut self,
        part: &str,
        call: Call,
        members: (&'static str, &'static str),
    ) -> Result<(), Failure> {
        let mut before = self.begun.began_at;
        for name in archive::names(self.directory)? {
            let day = name
                .strip_prefix(part)
                .and_then(|rest| rest.strip_prefix('/')?.strip_suffix(".ndjson"));
            let start = day.and_then(|day| format!("{day}T00:00:00Z").parse::<Timestamp>().ok());
            if let Some(start) = start {
                self.keep_finished(&name)?;
                before = before.min(start);
            }
        }
        let call = call.query("from", self.begun.since);
        let client = self.client.clone();
        let mut past = Past::new(&client, call, members, before);
        let mut open: Option<(String, NewFile)> = None;
        loop {
            let records = match past.next().await {
                Ok(None) => break,
                Ok(Some(records)) => records,
                Err(error) => {
                    if let Some((_, file)) = open.take() {
                        file.discard();
                    }
                    return self.leave_out(part, error);
                }
            };
            for (time, record) in records {
                let day: String = time.to_string().chars().take(10).collect();
                let mut file = match open.take() {
                    Some((of_day, file)) if of_day == day => file,
                    finished => {
                        if let Some((_, file)) = finished {
                            self.keep(file)?;
                        }
                        NewFile::create(self.directory, &format!("{part}/{day}.ndjson"))?
                    }
                };
                file.line(&record)?;
                open = Some((day, file));
            }
        }
        match open {
            Some((_, file)) => self.keep(file),
            None => Ok(()),
        }
    }
}
