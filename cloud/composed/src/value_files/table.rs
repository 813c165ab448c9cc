//! Values as rows: CSV as RFC 4180 has it, and Apache Parquet.

use std::fmt::Write as _;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use hub_devices::device_history::ItemValue;
use hub_history::levels;
use hub_protocol::{HubUuid, Timestamp};
use parquet::basic::{Compression, LogicalType, Repetition, TimeUnit, Type, ZstdLevel};
use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::{Type as SchemaType, TypePtr};
use serde_json::Value;

/// Files are written once, for one reader who waits.
const ZSTD_LEVEL: i32 = 3;
/// The columns, in their order.
const NAMES: [&str; 8] = [
    "observedAt",
    "receivedAt",
    "hubUuid",
    "rssiDbm",
    "quantity",
    "value",
    "text",
    "unit",
];
const OBSERVED: usize = 0;
const RECEIVED: usize = 1;
const HUB: usize = 2;
const RSSI: usize = 3;
const QUANTITY: usize = 4;
const VALUE: usize = 5;
const TEXT: usize = 6;

/// A value of a reception.
pub struct Row<'a> {
    observed_at: Timestamp,
    received_at: Timestamp,
    hub_uuid: HubUuid,
    rssi_dbm: Option<i64>,
    quantity: &'a str,
    /// A number; 1 and 0 of a boolean.
    value: Option<f64>,
    text: Option<&'a str>,
    unit: Option<&'a str>,
}

impl<'a> Row<'a> {
    pub fn new(item: ItemValue<'a>) -> Self {
        let (value, text) = match item.value {
            Value::Number(number) => (number.as_f64(), None),
            Value::Bool(is_true) => (Some(if *is_true { 1.0 } else { 0.0 }), None),
            Value::String(text) => (None, Some(text.as_str())),
            _ => (None, None),
        };
        Self {
            observed_at: item.observed_at,
            received_at: item.received_at,
            hub_uuid: item.hub_uuid,
            rssi_dbm: item.rssi_dbm,
            quantity: item.key,
            value,
            text,
            unit: item.unit,
        }
    }
}

/// Lines of CSV.
pub fn csv(rows: &[Row<'_>], has_header: bool) -> String {
    let mut csv = String::new();
    if has_header {
        csv.push_str(&NAMES.join(","));
        csv.push_str("\r\n");
    }
    for row in rows {
        let number = |number: Option<f64>| number.map(|number| number.to_string());
        let rssi = row.rssi_dbm.map(|rssi| rssi.to_string());
        let _ = write!(
            csv,
            "{},{},{},{},{},{},{},{}\r\n",
            row.observed_at,
            row.received_at,
            row.hub_uuid,
            rssi.unwrap_or_default(),
            field(row.quantity),
            number(row.value).unwrap_or_default(),
            field(row.text.unwrap_or_default()),
            field(row.unit.unwrap_or_default()),
        );
    }
    csv
}

/// A text as a field. One that a spreadsheet would run as a formula gets an apostrophe before it.
fn field(text: &str) -> String {
    let is_formula = text.starts_with(['=', '+', '-', '@', '\t', '\r']);
    let text = if is_formula {
        format!("'{text}")
    } else {
        text.to_owned()
    };
    match text.contains(['"', ',', '\r', '\n']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text,
    }
}

fn schema() -> Result<TypePtr, ParquetError> {
    let column = |(index, name): (usize, &&str)| {
        let (physical, logical) = match index {
            OBSERVED | RECEIVED => {
                let logical = LogicalType::timestamp(true, TimeUnit::MICROS);
                (Type::INT64, Some(logical))
            }
            RSSI => (Type::INT64, None),
            VALUE => (Type::DOUBLE, None),
            _ => (Type::BYTE_ARRAY, Some(LogicalType::String)),
        };
        let repetition = match index {
            OBSERVED | RECEIVED | HUB | QUANTITY => Repetition::REQUIRED,
            _ => Repetition::OPTIONAL,
        };
        SchemaType::primitive_type_builder(name, physical)
            .with_logical_type(logical)
            .with_repetition(repetition)
            .build()
            .map(Arc::new)
    };
    let columns = NAMES
        .iter()
        .enumerate()
        .map(column)
        .collect::<Result<_, _>>()?;
    let schema = SchemaType::group_type_builder("value").with_fields(columns);
    schema.build().map(Arc::new)
}

/// Bytes of a file that were written and not handed out yet.
#[derive(Clone, Default)]
struct Sink(Arc<Mutex<Vec<u8>>>);

impl Sink {
    fn take(&self) -> Bytes {
        let mut written = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *written).into()
    }
}

impl io::Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut written = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        written.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A Parquet file whose parts are handed out as they are written.
pub struct ParquetFile {
    /// None once the file has its end.
    writer: Option<SerializedFileWriter<Sink>>,
    sink: Sink,
}

impl ParquetFile {
    pub fn new() -> Result<Self, ParquetError> {
        let properties = WriterProperties::builder()
            .set_created_by("hub-cloud".to_owned())
            .set_compression(Compression::ZSTD(ZstdLevel::try_new(ZSTD_LEVEL)?))
            .build();
        let sink = Sink::default();
        let writer = SerializedFileWriter::new(sink.clone(), schema()?, Arc::new(properties))?;
        Ok(Self {
            writer: Some(writer),
            sink,
        })
    }

    /// The bytes that came to the file with these rows, and with its end.
    pub fn write(&mut self, rows: &[Row<'_>], is_last: bool) -> Result<Bytes, ParquetError> {
        let Some(mut writer) = self.writer.take() else {
            return Ok(Bytes::new());
        };
        if !rows.is_empty() {
            let mut group = writer.next_row_group()?;
            write_group(&mut group, rows)?;
            group.close()?;
        }
        if is_last {
            writer.close()?;
        } else {
            writer.flush()?;
            self.writer = Some(writer);
        }
        Ok(self.sink.take())
    }
}

fn write_group(
    group: &mut SerializedRowGroupWriter<'_, Sink>,
    rows: &[Row<'_>],
) -> Result<(), ParquetError> {
    let mut index = 0;
    while let Some(mut column) = group.next_column()? {
        match index {
            OBSERVED | RECEIVED => {
                let at = |row: &Row<'_>| match index {
                    OBSERVED => row.observed_at.as_micros(),
                    _ => row.received_at.as_micros(),
                };
                let times: Vec<i64> = rows.iter().map(at).collect();
                column
                    .typed::<Int64Type>()
                    .write_batch(&times, None, None)?;
            }
            RSSI => {
                let all: Vec<Option<i64>> = rows.iter().map(|row| row.rssi_dbm).collect();
                let present: Vec<i64> = all.iter().flatten().copied().collect();
                column
                    .typed::<Int64Type>()
                    .write_batch(&present, Some(&levels(&all)), None)?;
            }
            VALUE => {
                let all: Vec<Option<f64>> = rows.iter().map(|row| row.value).collect();
                let present: Vec<f64> = all.iter().flatten().copied().collect();
                column
                    .typed::<DoubleType>()
                    .write_batch(&present, Some(&levels(&all)), None)?;
            }
            HUB | QUANTITY => {
                let text = |row: &Row<'_>| match index {
                    HUB => ByteArray::from(row.hub_uuid.to_string().as_str()),
                    _ => ByteArray::from(row.quantity),
                };
                let texts: Vec<ByteArray> = rows.iter().map(text).collect();
                column
                    .typed::<ByteArrayType>()
                    .write_batch(&texts, None, None)?;
            }
            _ => {
                let text = |row: &Row<'_>| match index {
                    TEXT => row.text.map(ByteArray::from),
                    _ => row.unit.map(ByteArray::from),
                };
                let all: Vec<Option<ByteArray>> = rows.iter().map(text).collect();
                let defined = levels(&all);
                let present: Vec<ByteArray> = all.into_iter().flatten().collect();
                column
                    .typed::<ByteArrayType>()
                    .write_batch(&present, Some(&defined), None)?;
            }
        }
        column.close()?;
        index += 1;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_fields_and_no_formulas() {
        assert_eq!(field("temperature"), "temperature");
        assert_eq!(field("=1+1"), "'=1+1");
        assert_eq!(field("a,\"b\""), "\"a,\"\"b\"\"\"");
        assert_eq!(field("%RH"), "%RH");
    }
}
