//! Reading row groups out of the parts of a file that were fetched.

use std::ops::Range;
use std::sync::Arc;

use bytes::{Buf, Bytes};
use hub_protocol::{HubUuid, Timestamp};
use parquet::column::reader::ColumnReaderImpl;
use parquet::data_type::{
    ByteArray, ByteArrayType, DataType, FixedLenByteArray, FixedLenByteArrayType, Int64Type,
};
use parquet::errors::ParquetError;
use parquet::file::metadata::{PageIndexPolicy, ParquetMetaData, ParquetMetaDataReader};
use parquet::file::page_index::column_index::ColumnIndexMetaData;
use parquet::file::reader::{ChunkReader, Length};
use parquet::file::serialized_reader::SerializedPageReader;
use parquet::file::statistics::Statistics;
use uuid::Uuid;

use crate::event::{ProcessingStatus, StoredEvent};
use crate::file::{
    DEVICE, EVENT, EVENT_BYTES, HUB, ID, OBSERVATION, READING, REPROCESSED, STATUS, WINDOW_END,
    WINDOW_START,
};

/// The columns of [`EventHead`].
const HEAD_COLUMNS: [usize; 6] = [ID, HUB, DEVICE, STATUS, OBSERVATION, EVENT_BYTES];
/// All columns of an event; the device's is known to be one of these.
const EVENT_COLUMNS: [usize; 10] = [
    ID,
    HUB,
    DEVICE,
    STATUS,
    OBSERVATION,
    WINDOW_START,
    WINDOW_END,
    REPROCESSED,
    EVENT,
    READING,
];
/// Parts of a file with less between them are fetched as one.
const GAP_BYTES: u64 = 16 * 1024;

/// What is known of an event without its texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventHead {
    pub ble_event_id: i64,
    /// The event's place in its row group.
    pub row: usize,
    pub hub_uuid: HubUuid,
    pub device_instance_id: Option<i64>,
    pub processing_status: ProcessingStatus,
    pub observation_id: Option<i64>,
    pub event_bytes: usize,
}

/// The ids of the first and the last event of a row group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupIds {
    pub first: i64,
    pub last: i64,
}

/// Reads what says where everything is, out of the end of a file.
pub fn layout(end: Bytes, file_bytes: u64) -> Result<ParquetMetaData, ParquetError> {
    let start = file_bytes.saturating_sub(end.len() as u64);
    let parts = Parts {
        file_bytes,
        parts: vec![(start, end)],
    };
    ParquetMetaDataReader::new()
        .with_page_index_policy(PageIndexPolicy::Required)
        .parse_and_finish(&parts)
}

/// The parts of a file that were fetched.
pub struct Parts {
    pub file_bytes: u64,
    pub parts: Vec<(u64, Bytes)>,
}

impl Length for Parts {
    fn len(&self) -> u64 {
        self.file_bytes
    }
}

impl Parts {
    /// What was fetched from an offset on.
    fn from(&self, start: u64) -> Result<Bytes, ParquetError> {
        let missing = || ParquetError::General(format!("nothing was fetched at byte {start}"));
        let before = self.parts.partition_point(|(offset, _)| *offset <= start);
        let (offset, bytes) = before
            .checked_sub(1)
            .and_then(|index| self.parts.get(index))
            .ok_or_else(missing)?;
        let skipped = usize::try_from(start - offset).map_err(|_| missing())?;
        match skipped < bytes.len() {
            true => Ok(bytes.slice(skipped..)),
            false => Err(missing()),
        }
    }
}

impl ChunkReader for Parts {
    type T = bytes::buf::Reader<Bytes>;

    fn get_read(&self, start: u64) -> Result<Self::T, ParquetError> {
        Ok(self.from(start)?.reader())
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes, ParquetError> {
        let bytes = self.from(start)?;
        match length <= bytes.len() {
            true => Ok(bytes.slice(..length)),
            false => Err(ParquetError::EOF(format!(
                "{length} bytes at byte {start} were not fetched"
            ))),
        }
    }
}

/// A row group of a file.
#[derive(Clone)]
pub struct Group {
    pub layout: Arc<ParquetMetaData>,
    pub index: usize,
}

fn damaged(what: &str) -> ParquetError {
    ParquetError::General(format!(
        "{what} is missing or not as this service writes it"
    ))
}

impl Group {
    pub fn events(&self) -> usize {
        let groups = self.layout.row_groups();
        let rows = groups.get(self.index).map_or(0, |group| group.num_rows());
        usize::try_from(rows).unwrap_or(0)
    }

    pub fn ids(&self) -> Result<GroupIds, ParquetError> {
        let groups = self.layout.row_groups();
        let chunk = groups
            .get(self.index)
            .and_then(|group| group.columns().get(ID));
        match chunk.and_then(|chunk| chunk.statistics()) {
            Some(Statistics::Int64(ids)) => ids
                .min_opt()
                .zip(ids.max_opt())
                .map(|(first, last)| GroupIds {
                    first: *first,
                    last: *last,
                })
                .ok_or_else(|| damaged("the statistics of ids")),
            _ => Err(damaged("the statistics of ids")),
        }
    }

    /// Which rows may be of a device, by what is known of pages. All rows for no device.
    pub fn rows_of(&self, device_instance_id: Option<i64>) -> Range<usize> {
        let all = 0..self.events();
        let index = self.layout.page_index_for_row_group(self.index);
        let (Some(device), Some(ColumnIndexMetaData::INT64(pages)), Some(locations)) = (
            device_instance_id,
            index.column_index(DEVICE),
            index.page_locations(DEVICE),
        ) else {
            return all;
        };
        let (mut start, mut end) = (None, 0);
        for (page, location) in locations.iter().enumerate() {
            let (Some(min), Some(max)) = (pages.min_value(page), pages.max_value(page)) else {
                continue;
            };
            if (*min..=*max).contains(&device) {
                let first = usize::try_from(location.first_row_index).unwrap_or(0);
                start.get_or_insert(first);
                end = locations
                    .get(page + 1)
                    .and_then(|next| usize::try_from(next.first_row_index).ok())
                    .unwrap_or(all.end);
            }
        }
        start.unwrap_or(end)..end
    }

    /// Which bytes of the file have these rows of these columns.
    fn bytes_of(
        &self,
        columns: &[usize],
        rows: &[Range<usize>],
    ) -> Result<Vec<Range<u64>>, ParquetError> {
        let group = self
            .layout
            .row_groups()
            .get(self.index)
            .ok_or_else(|| damaged("a row group"))?;
        let index = self.layout.page_index_for_row_group(self.index);
        let mut bytes: Vec<Range<u64>> = Vec::new();
        for &column in columns {
            let chunk = group
                .columns()
                .get(column)
                .ok_or_else(|| damaged("a column"))?;
            let pages = index
                .page_locations(column)
                .ok_or_else(|| damaged("the index of pages"))?;
            let (chunk_start, chunk_bytes) = chunk.byte_range();
            let mut has_dictionary = false;
            for (page, location) in pages.iter().enumerate() {
                let first = usize::try_from(location.first_row_index).unwrap_or(0);
                let end = pages
                    .get(page + 1)
                    .and_then(|next| usize::try_from(next.first_row_index).ok())
                    .unwrap_or(usize::MAX);
                if !rows.iter().any(|rows| rows.start < end && first < rows.end) {
                    continue;
                }
                let start = u64::try_from(location.offset).unwrap_or(0);
                if !has_dictionary && chunk_start < start {
                    let first_page = pages.first().map_or(0, |first| first.offset);
                    bytes.push(chunk_start..u64::try_from(first_page).unwrap_or(chunk_start));
                }
                has_dictionary = true;
                let size = u64::try_from(location.compressed_page_size).unwrap_or(0);
                let end = start.saturating_add(size);
                bytes.push(start..end.min(chunk_start.saturating_add(chunk_bytes)));
            }
        }
        bytes.sort_by_key(|range| range.start);
        let mut merged: Vec<Range<u64>> = Vec::new();
        for range in bytes.into_iter().filter(|range| !range.is_empty()) {
            match merged.last_mut() {
                Some(last) if range.start <= last.end.saturating_add(GAP_BYTES) => {
                    last.end = last.end.max(range.end);
                }
                _ => merged.push(range),
            }
        }
        Ok(merged)
    }

    pub fn bytes_of_heads(&self, rows: &Range<usize>) -> Result<Vec<Range<u64>>, ParquetError> {
        self.bytes_of(&HEAD_COLUMNS, std::slice::from_ref(rows))
    }

    pub fn bytes_of_events(&self, rows: &[Range<usize>]) -> Result<Vec<Range<u64>>, ParquetError> {
        self.bytes_of(&EVENT_COLUMNS, rows)
    }

    /// Heads of rows, in the order of their ids; those of one device, if one is given.
    pub fn heads(
        &self,
        parts: Parts,
        rows: Range<usize>,
        device_instance_id: Option<i64>,
    ) -> Result<Vec<EventHead>, ParquetError> {
        let parts = Arc::new(parts);
        let rows = std::slice::from_ref(&rows);
        let devices = self.numbers(&parts, DEVICE, rows)?;
        let ids = self.numbers(&parts, ID, rows)?;
        let hubs = self.hubs(&parts, rows)?;
        let statuses = self.texts(&parts, STATUS, rows)?;
        let observations = self.numbers(&parts, OBSERVATION, rows)?;
        let sizes = self.numbers(&parts, EVENT_BYTES, rows)?;
        let members = devices.into_iter().zip(ids).zip(hubs).zip(statuses);
        let members = members.zip(observations).zip(sizes);
        let mut heads = Vec::new();
        let first_row = rows.first().map_or(0, |rows| rows.start);
        for (row, (((((device, id), hub), status), observation_id), size)) in
            (first_row..).zip(members)
        {
            if device_instance_id.is_some() && device != device_instance_id {
                continue;
            }
            heads.push(EventHead {
                ble_event_id: id.ok_or_else(|| damaged("an id"))?,
                row,
                hub_uuid: hub,
                device_instance_id: device,
                processing_status: status_of(status)?,
                observation_id,
                event_bytes: size
                    .and_then(|size| usize::try_from(size).ok())
                    .unwrap_or(0),
            });
        }
        heads.sort_unstable_by_key(|head| head.ble_event_id);
        Ok(heads)
    }

    /// The events of rows, in the order of the rows.
    pub fn events_of(
        &self,
        parts: Parts,
        rows: &[Range<usize>],
    ) -> Result<Vec<StoredEvent>, ParquetError> {
        let parts = Arc::new(parts);
        let numbers = |column| self.numbers(&parts, column, rows);
        let members = numbers(ID)?.into_iter().zip(self.hubs(&parts, rows)?);
        let members = members.zip(numbers(DEVICE)?);
        let members = members.zip(self.texts(&parts, STATUS, rows)?);
        let members = members.zip(numbers(OBSERVATION)?);
        let members = members.zip(numbers(WINDOW_START)?);
        let members = members.zip(numbers(WINDOW_END)?);
        let members = members.zip(numbers(REPROCESSED)?);
        let members = members.zip(self.texts(&parts, EVENT, rows)?);
        let members = members.zip(self.texts(&parts, READING, rows)?);
        let mut events = Vec::new();
        for member in members {
            let (
                (((((((head, device), status), observation_id), start), end), reprocessed), event),
                reading,
            ) = member;
            let (id, hub_uuid) = head;
            let time = Timestamp::from_micros;
            events.push(StoredEvent {
                ble_event_id: id.ok_or_else(|| damaged("an id"))?,
                hub_uuid,
                device_instance_id: device,
                processing_status: status_of(status)?,
                window: start.zip(end).map(|(start, end)| (time(start), time(end))),
                observation_id,
                reprocessed_at: reprocessed.map(time),
                event: text_of(event.ok_or_else(|| damaged("an event"))?)?,
                reading: reading.map(text_of).transpose()?,
            });
        }
        Ok(events)
    }

    fn numbers(
        &self,
        parts: &Arc<Parts>,
        column: usize,
        rows: &[Range<usize>],
    ) -> Result<Vec<Option<i64>>, ParquetError> {
        self.column::<Int64Type>(parts, column, rows)
    }

    fn texts(
        &self,
        parts: &Arc<Parts>,
        column: usize,
        rows: &[Range<usize>],
    ) -> Result<Vec<Option<ByteArray>>, ParquetError> {
        self.column::<ByteArrayType>(parts, column, rows)
    }

    fn hubs(
        &self,
        parts: &Arc<Parts>,
        rows: &[Range<usize>],
    ) -> Result<Vec<HubUuid>, ParquetError> {
        let hubs = self.column::<FixedLenByteArrayType>(parts, HUB, rows)?;
        let hub_of = |hub: Option<FixedLenByteArray>| {
            let uuid = hub.and_then(|hub| Uuid::from_slice(hub.data()).ok());
            uuid.map(HubUuid).ok_or_else(|| damaged("a hub"))
        };
        hubs.into_iter().map(hub_of).collect()
    }

    /// Rows of a column.
    fn column<T: DataType>(
        &self,
        parts: &Arc<Parts>,
        column: usize,
        rows: &[Range<usize>],
    ) -> Result<Vec<Option<T::T>>, ParquetError>
    where
        T::T: Default,
    {
        let group = self
            .layout
            .row_groups()
            .get(self.index)
            .ok_or_else(|| damaged("a row group"))?;
        let chunk = group
            .columns()
            .get(column)
            .filter(|chunk| chunk.column_type() == T::get_physical_type())
            .ok_or_else(|| damaged("a column"))?;
        let index = self.layout.page_index_for_row_group(self.index);
        let pages = index.page_locations(column).cloned();
        let pages = SerializedPageReader::new(Arc::clone(parts), chunk, self.events(), pages)?;
        let descriptor = chunk.column_descr_ptr();
        let may_be_missing = descriptor.max_def_level() > 0;
        let mut reader = ColumnReaderImpl::<T>::new(descriptor, Box::new(pages));
        let mut found = Vec::new();
        let mut position = 0;
        for rows in rows {
            reader.skip_records(rows.start.saturating_sub(position))?;
            let wanted = rows.len();
            let (mut values, mut levels) = (Vec::new(), Vec::new());
            let mut count = 0;
            while count < wanted {
                let levels = may_be_missing.then_some(&mut levels);
                let (records, ..) =
                    reader.read_records(wanted - count, levels, None, &mut values)?;
                if records == 0 {
                    return Err(damaged("a row"));
                }
                count += records;
            }
            position = rows.end;
            let mut values = values.into_iter();
            match may_be_missing {
                true => found.extend(levels.iter().map(|level| match level {
                    0 => None,
                    _ => values.next(),
                })),
                false => found.extend(values.map(Some)),
            }
        }
        Ok(found)
    }
}

fn status_of(name: Option<ByteArray>) -> Result<ProcessingStatus, ParquetError> {
    name.as_ref()
        .and_then(|name| std::str::from_utf8(name.data()).ok())
        .and_then(ProcessingStatus::from_name)
        .ok_or_else(|| damaged("a processing status"))
}

fn text_of(bytes: ByteArray) -> Result<String, ParquetError> {
    String::from_utf8(bytes.data().to_vec()).map_err(|_| damaged("a text"))
}
