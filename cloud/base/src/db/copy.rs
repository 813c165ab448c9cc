//! New rows through COPY of PostgreSQL, in its binary format. The server stores them many at a
//! time, and stores one piece while the next one is written.

use hub_protocol::Timestamp;
use sqlx_postgres::PgConnection;

use super::bulk::Column;

/// With fewer rows, an INSERT is faster: COPY takes one more round trip, and is parsed each time.
pub const MIN_ROWS: usize = 256;

/// Signature, flags, and the length of an extension that is not there.
pub(super) const HEADER: &[u8] = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";
/// The end marker, which takes the place of a row's number of columns.
pub(super) const END: [u8; 2] = (-1_i16).to_be_bytes();
const NULL: [u8; 4] = (-1_i32).to_be_bytes();
/// PostgreSQL counts time from 2000-01-01, in microseconds.
pub(super) const EPOCH_MICROS: i64 = 946_684_800_000_000;
/// Bytes of one network message.
pub(super) const PIECE_BYTES: usize = 256 * 1024;

/// Stores the rows. `target` is a table and its columns: `t (a, b)`.
pub async fn insert(
    conn: &mut PgConnection,
    target: &str,
    columns: &[Column],
) -> Result<u64, sqlx::Error> {
    let statement = format!("COPY {target} FROM STDIN (FORMAT BINARY)");
    let rows = columns.first().map_or(0, Column::len);
    let mut copy = conn.copy_in_raw(&statement).await?;
    let mut piece = Vec::with_capacity(PIECE_BYTES + PIECE_BYTES / 8);
    piece.extend_from_slice(HEADER);
    let column_count = i16::try_from(columns.len())
        .unwrap_or(i16::MAX)
        .to_be_bytes();
    for row in 0..rows {
        piece.extend_from_slice(&column_count);
        for column in columns {
            write_value(column, row, &mut piece);
        }
        if piece.len() >= PIECE_BYTES {
            copy.send(piece.as_slice()).await?;
            piece.clear();
        }
    }
    piece.extend_from_slice(&END);
    copy.send(piece).await?;
    copy.finish().await
}

fn write_value(column: &Column, row: usize, piece: &mut Vec<u8>) {
    match column {
        Column::Uuid(values) => write_field(values.get(row).map(uuid::Uuid::as_bytes), piece),
        Column::OptionalUuid(values) => {
            write_field(
                values
                    .get(row)
                    .and_then(Option::as_ref)
                    .map(uuid::Uuid::as_bytes),
                piece,
            );
        }
        Column::Bool(values) => write_field(values.get(row).map(|value| [u8::from(*value)]), piece),
        Column::Int(values) => write_field(values.get(row).map(|value| value.to_be_bytes()), piece),
        Column::OptionalInt(values) => {
            write_field(
                values.get(row).copied().flatten().map(i64::to_be_bytes),
                piece,
            );
        }
        Column::Word(values) => write_field(values.get(row), piece),
        Column::Text(values) => write_field(values.get(row).map(|text| text.as_bytes()), piece),
        Column::OptionalText(values) => {
            write_field(
                values
                    .get(row)
                    .and_then(Option::as_ref)
                    .map(|text| text.as_bytes()),
                piece,
            );
        }
        Column::Bytes(values) => write_field(values.get(row), piece),
        Column::Time(values) => write_field(values.get(row).copied().map(time), piece),
        Column::OptionalTime(values) => {
            write_field(values.get(row).copied().flatten().map(time), piece)
        }
    }
}

/// A length and that many bytes.
pub(super) fn write_field(value: Option<impl AsRef<[u8]>>, piece: &mut Vec<u8>) {
    let Some(value) = value else {
        return piece.extend_from_slice(&NULL);
    };
    // No upload is near the 2 GiB that a field may have.
    let length = i32::try_from(value.as_ref().len()).unwrap_or(i32::MAX);
    piece.extend_from_slice(&length.to_be_bytes());
    piece.extend_from_slice(value.as_ref());
}

fn time(value: Timestamp) -> [u8; 8] {
    (value.as_micros() - EPOCH_MICROS).to_be_bytes()
}
