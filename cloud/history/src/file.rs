//! The files: Parquet, with a column for each member of an event. `event` and `reading` are the
//! texts of the log, byte for byte, so that a row says what the API says. The events of a row group
//! follow those of the one before it in time. Within a group they are sorted by device and time:
//! what one device said is in one place, next to what is like it.

use std::sync::Arc;

use hub_protocol::Timestamp;
use parquet::basic::{Compression, Encoding, LogicalType, Repetition, TimeUnit, Type, ZstdLevel};
use parquet::data_type::{ByteArray, ByteArrayType, FixedLenByteArrayType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::SortingColumn;
use parquet::file::properties::{WriterProperties, WriterPropertiesPtr};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::{ColumnPath, Type as SchemaType, TypePtr};

use crate::event::StoredEvent;

/// Rows of a page: the least that is read of a column.
pub const PAGE_ROWS: usize = 1024;
/// Files are written once and read often.
const ZSTD_LEVEL: i32 = 9;
const UUID_BYTES: i32 = 16;

/// The columns, in their order.
pub const ID: usize = 0;
pub const HUB: usize = 1;
pub const DEVICE: usize = 2;
pub const STATUS: usize = 3;
pub const OBSERVATION: usize = 4;
pub const WINDOW_START: usize = 5;
pub const WINDOW_END: usize = 6;
pub const REPROCESSED: usize = 7;
pub const EVENT: usize = 8;
pub const READING: usize = 9;
pub const EVENT_BYTES: usize = 10;
const NAMES: [&str; 11] = [
    "ble_event_id",
    "hub_uuid",
    "device_instance_id",
    "processing_status",
    "observation_id",
    "window_started_at",
    "window_ended_at",
    "reprocessed_at",
    "event",
    "reading",
    "event_bytes",
];

fn schema() -> Result<TypePtr, ParquetError> {
    let column = |index: usize| {
        let name = NAMES.get(index).copied().unwrap_or_default();
        let (physical, logical, length) = match index {
            HUB => (
                Type::FIXED_LEN_BYTE_ARRAY,
                Some(LogicalType::Uuid),
                UUID_BYTES,
            ),
            STATUS | EVENT | READING => (Type::BYTE_ARRAY, Some(LogicalType::String), -1),
            WINDOW_START | WINDOW_END | REPROCESSED => {
                let logical = LogicalType::timestamp(true, TimeUnit::MICROS);
                (Type::INT64, Some(logical), -1)
            }
            _ => (Type::INT64, None, -1),
        };
        let repetition = match index {
            ID | HUB | STATUS | EVENT | EVENT_BYTES => Repetition::REQUIRED,
            _ => Repetition::OPTIONAL,
        };
        SchemaType::primitive_type_builder(name, physical)
            .with_logical_type(logical)
            .with_length(length)
            .with_repetition(repetition)
            .build()
            .map(Arc::new)
    };
    let columns = (0..NAMES.len()).map(column).collect::<Result<_, _>>()?;
    let schema = SchemaType::group_type_builder("ble_event").with_fields(columns);
    schema.build().map(Arc::new)
}

fn properties() -> Result<WriterPropertiesPtr, ParquetError> {
    let path = |index: usize| ColumnPath::from(NAMES.get(index).copied().unwrap_or_default());
    let sorted_by = |index: usize| SortingColumn {
        column_idx: i32::try_from(index).unwrap_or(i32::MAX),
        descending: false,
        nulls_first: false,
    };
    let texts = |properties: parquet::file::properties::WriterPropertiesBuilder, index: usize| {
        properties.set_column_dictionary_enabled(path(index), false)
    };
    let properties = WriterProperties::builder()
        .set_created_by("hub-cloud".to_owned())
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(ZSTD_LEVEL)?))
        .set_data_page_row_count_limit(PAGE_ROWS)
        .set_write_batch_size(PAGE_ROWS)
        .set_max_row_group_row_count(None)
        .set_sorting_columns(Some(vec![sorted_by(DEVICE), sorted_by(ID)]))
        .set_column_dictionary_enabled(path(ID), false)
        .set_column_encoding(path(ID), Encoding::DELTA_BINARY_PACKED)
        .set_column_bloom_filter_enabled(path(DEVICE), true)
        .set_column_bloom_filter_enabled(path(HUB), true);
    Ok(Arc::new(texts(texts(properties, EVENT), READING).build()))
}

/// The bytes of a file with these events, which must be in the order of their ids.
pub fn write(events: &[StoredEvent], group_events: usize) -> Result<Vec<u8>, ParquetError> {
    let mut writer = SerializedFileWriter::new(Vec::new(), schema()?, properties()?)?;
    for group in events.chunks(group_events) {
        let mut sorted: Vec<&StoredEvent> = group.iter().collect();
        sorted.sort_by_key(|event| {
            let device = event.device_instance_id;
            (device.is_none(), device, event.ble_event_id)
        });
        let mut rows = writer.next_row_group()?;
        write_group(&mut rows, &sorted)?;
        rows.close()?;
    }
    writer.into_inner()
}

fn write_group(
    rows: &mut SerializedRowGroupWriter<'_, Vec<u8>>,
    events: &[&StoredEvent],
) -> Result<(), ParquetError> {
    let numbers = |member: fn(&StoredEvent) -> Option<i64>| -> Vec<Option<i64>> {
        events.iter().map(|event| member(event)).collect()
    };
    let mut index = 0;
    while let Some(mut column) = rows.next_column()? {
        match index {
            ID | EVENT_BYTES => {
                let number = |event: &&StoredEvent| match index {
                    ID => event.ble_event_id,
                    _ => i64::try_from(event.event.len()).unwrap_or(i64::MAX),
                };
                let numbers: Vec<i64> = events.iter().map(number).collect();
                column
                    .typed::<Int64Type>()
                    .write_batch(&numbers, None, None)?;
            }
            HUB => {
                let hubs: Vec<_> = events
                    .iter()
                    .map(|event| ByteArray::from(event.hub_uuid.0.as_bytes().to_vec()).into())
                    .collect();
                column
                    .typed::<FixedLenByteArrayType>()
                    .write_batch(&hubs, None, None)?;
            }
            STATUS | EVENT | READING => {
                let text = |event: &StoredEvent| match index {
                    STATUS => Some(ByteArray::from(event.processing_status.name())),
                    EVENT => Some(ByteArray::from(event.event.as_str())),
                    _ => event.reading.as_deref().map(ByteArray::from),
                };
                let texts: Vec<Option<ByteArray>> =
                    events.iter().map(|event| text(event)).collect();
                let levels = levels(&texts);
                let texts: Vec<ByteArray> = texts.into_iter().flatten().collect();
                let levels = (index == READING).then_some(&*levels);
                column
                    .typed::<ByteArrayType>()
                    .write_batch(&texts, levels, None)?;
            }
            _ => {
                let values = match index {
                    DEVICE => numbers(|event| event.device_instance_id),
                    OBSERVATION => numbers(|event| event.observation_id),
                    WINDOW_START => numbers(|event| Some(event.window?.0.as_micros())),
                    WINDOW_END => numbers(|event| Some(event.window?.1.as_micros())),
                    _ => numbers(|event| event.reprocessed_at.map(Timestamp::as_micros)),
                };
                let levels = levels(&values);
                let values: Vec<i64> = values.into_iter().flatten().collect();
                column
                    .typed::<Int64Type>()
                    .write_batch(&values, Some(&levels), None)?;
            }
        }
        column.close()?;
        index += 1;
    }
    Ok(())
}

/// The definition levels of a column of a Parquet file whose values may be missing.
pub fn levels<T>(values: &[Option<T>]) -> Vec<i16> {
    values
        .iter()
        .map(|value| i16::from(value.is_some()))
        .collect()
}
