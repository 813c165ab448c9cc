//! The values of a person's device as a file: lines of JSON, CSV or Parquet. A file is read page by
//! page while it is sent, so that neither its size nor a slow receiver costs memory. CSV and
//! Parquet have one row for each value, so that their columns are the same for every device.

pub mod http;
mod table;

use bytes::{BufMut, Bytes, BytesMut};
use hub_base::budget::Held;
use hub_base::db::Direction;
use hub_base::error::{Error, Result};
use hub_core::Core;
use hub_devices::ble::{self, Reception};
use hub_devices::device_history::SensorItemResponse;
use hub_identity::authz::UserScope;
use hub_protocol::Timestamp;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::end_users;
use table::{ParquetFile, Row};

/// Events that are read at once: a row group of Parquet.
const EVENTS: i64 = 5_000;

/// The form of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum FileForm {
    /// One item of `sensor-data` a line.
    Ndjson,
    /// RFC 4180, with a header.
    Csv,
    /// Apache Parquet, compressed with zstd.
    Parquet,
}

impl FileForm {
    const fn media_type(self) -> &'static str {
        match self {
            Self::Ndjson => "application/x-ndjson",
            Self::Csv => "text/csv",
            Self::Parquet => "application/vnd.apache.parquet",
        }
    }

    const fn extension(self) -> &'static str {
        match self {
            Self::Ndjson => "ndjson",
            Self::Csv => "csv",
            Self::Parquet => "parquet",
        }
    }
}

/// What the parts of a file are written with.
enum Writer {
    Ndjson,
    Csv { has_header: bool },
    Parquet(Box<ParquetFile>),
}

/// A file that is being sent.
struct ValueFile {
    core: Core,
    scope: UserScope,
    device_instance_id: i64,
    from: Option<Timestamp>,
    to: Option<Timestamp>,
    writer: Writer,
    /// The last event that was read; None when all were.
    after: Option<i64>,
    /// The memory that limits the number of concurrent files.
    _held: Held,
}

impl ValueFile {
    /// The next part; None at the end. It may be empty.
    async fn next(&mut self) -> Result<Option<Bytes>> {
        let Some(after) = self.after else {
            return Ok(None);
        };
        let mut conn = self.core.db.read().await?;
        let person = end_users::of_caller(&self.core, &mut conn, &self.scope).await?;
        // A device that is not the person's any more cuts the file off.
        let own = end_users::device(&mut conn, &person, self.device_instance_id).await?;
        drop(conn);
        let since = own.since.max(self.from.unwrap_or(own.since));
        let first = after.saturating_add(1).max(own.since.as_micros());
        let batch = ble::receptions_of(
            &self.core,
            own.tenant_uuid,
            self.device_instance_id,
            (first, i64::MAX),
            Direction::Ascending,
            EVENTS,
        )
        .await?;
        self.after = batch.last_id;
        let is_wanted = |reception: &Reception| {
            let at = reception.observed_at;
            at >= since && self.to.is_none_or(|to| at < to) && !reception.values.is_empty()
        };
        let mut receptions = batch.receptions;
        receptions.retain(is_wanted);
        let is_last = self.after.is_none();
        let items = receptions.into_iter().map(SensorItemResponse::new);
        self.write(items.collect(), is_last).map(Some)
    }

    fn write(&mut self, items: Vec<SensorItemResponse>, is_last: bool) -> Result<Bytes> {
        match &mut self.writer {
            Writer::Ndjson => {
                let mut text = BytesMut::new();
                for item in &items {
                    serde_json::to_writer((&mut text).writer(), item).map_err(Error::internal)?;
                    text.put_u8(b'\n');
                }
                Ok(text.freeze())
            }
            Writer::Csv { has_header } => {
                let header = !std::mem::replace(has_header, true);
                Ok(table::csv(&rows(&items), header).into())
            }
            Writer::Parquet(file) => {
                let rows = rows(&items);
                file.write(&rows, is_last).map_err(Error::internal)
            }
        }
    }
}

fn rows(items: &[SensorItemResponse]) -> Vec<Row<'_>> {
    items
        .iter()
        .flat_map(SensorItemResponse::each)
        .map(Row::new)
        .collect()
}
