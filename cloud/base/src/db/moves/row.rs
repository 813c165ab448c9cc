//! A row in the form that both databases are read in: that of PostgreSQL's COPY in its binary
//! format. Two rows are the same if their bytes are, but for JSON, which PostgreSQL writes in its
//! own way.

use hub_protocol::Timestamp;
use serde_json::Value;
use sqlx::error::BoxDynError;
use sqlx::{Arguments, Row};
use sqlx_sqlite::{SqliteArguments, SqliteRow};

use super::tables::{Column, Kind};
use crate::db::copy::{EPOCH_MICROS, write_field};
use crate::db::dialect::Dialect;

/// The version of JSON values, their first byte.
const JSON_VERSION: u8 = 1;
const HAS_NUL: &str = "contains the character U+0000, which PostgreSQL does not store";

/// A value of SQLite that PostgreSQL cannot store.
#[derive(Debug)]
pub struct Unfit {
    pub column: usize,
    pub reason: &'static str,
}

/// The values, each without its length; `None` is NULL.
pub fn fields(row: &[u8]) -> impl Iterator<Item = Option<&[u8]>> {
    let mut rest = row.get(2..).unwrap_or_default();
    std::iter::from_fn(move || {
        let (length, after) = rest.split_first_chunk::<4>()?;
        let Ok(length) = usize::try_from(i32::from_be_bytes(*length)) else {
            rest = after;
            return Some(None);
        };
        let (value, after) = after.split_at_checked(length)?;
        rest = after;
        Some(Some(value))
    })
}

/// The bytes of the first row, or `None` if they are not all there. A row of no columns is the
/// end marker.
pub fn first_length(bytes: &[u8]) -> Option<usize> {
    let count = i16::from_be_bytes(*bytes.first_chunk()?);
    let mut length = 2;
    for _ in 0..count {
        let size = i32::from_be_bytes(*bytes.get(length..)?.first_chunk()?);
        length += 4 + usize::try_from(size).unwrap_or(0);
    }
    (bytes.len() >= length).then_some(length)
}

/// Writes a row of SQLite.
pub fn write(read: &SqliteRow, columns: &[Column], row: &mut Vec<u8>) -> Result<(), Unfit> {
    row.clear();
    row.extend_from_slice(
        &i16::try_from(columns.len())
            .unwrap_or(i16::MAX)
            .to_be_bytes(),
    );
    for (index, column) in columns.iter().enumerate() {
        write_value(read, index, column.kind, row).map_err(|reason| Unfit {
            column: index,
            reason,
        })?;
    }
    Ok(())
}

fn write_value(
    read: &SqliteRow,
    index: usize,
    kind: Kind,
    row: &mut Vec<u8>,
) -> Result<(), &'static str> {
    match kind {
        Kind::Int => {
            let value = get::<Option<i64>>(read, index, "is no number")?;
            write_field(value.map(i64::to_be_bytes), row);
        }
        Kind::Bool => {
            let value = match get::<Option<i64>>(read, index, "is no number")? {
                None => None,
                Some(0) => Some([0]),
                Some(1) => Some([1]),
                Some(_) => return Err("is neither 0 nor 1"),
            };
            write_field(value, row);
        }
        Kind::Text => {
            let value = get::<Option<&str>>(read, index, "is no UTF-8")?;
            if value.is_some_and(|text| text.contains('\0')) {
                return Err(HAS_NUL);
            }
            write_field(value, row);
        }
        Kind::Json => {
            let value = get::<Option<&str>>(read, index, "is no UTF-8")?;
            if value.is_some_and(has_escaped_nul) {
                return Err(HAS_NUL);
            }
            let value = value.map(|text| [&[JSON_VERSION], text.as_bytes()].concat());
            write_field(value, row);
        }
        Kind::Time => {
            let value = get::<Option<&str>>(read, index, "is no UTF-8")?;
            let time = value
                .map(str::parse::<Timestamp>)
                .transpose()
                .map_err(|_| "is no time")?;
            let micros = time.map(|time| (time.as_micros() - EPOCH_MICROS).to_be_bytes());
            write_field(micros, row);
        }
        Kind::Bytes => write_field(get::<Option<&[u8]>>(read, index, "is no BLOB")?, row),
        Kind::Uuid => {
            let value = get::<Option<&[u8]>>(read, index, "is no BLOB")?;
            if value.is_some_and(|bytes| bytes.len() != 16) {
                return Err("is no UUID: it does not have 16 bytes");
            }
            write_field(value, row);
        }
    }
    Ok(())
}

/// Whether a text of the JSON has U+0000: an escape whose backslash is not escaped itself.
fn has_escaped_nul(json: &str) -> bool {
    json.match_indices("\\u0000").any(|(at, _)| {
        let before = json.as_bytes().get(..at).unwrap_or_default();
        let backslashes = before.iter().rev().take_while(|byte| **byte == b'\\');
        backslashes.count() % 2 == 0
    })
}

/// The tables are STRICT, so a column has values of its type alone.
fn get<'r, T>(read: &'r SqliteRow, index: usize, reason: &'static str) -> Result<T, &'static str>
where
    T: sqlx::Decode<'r, sqlx_sqlite::Sqlite>,
{
    read.try_get_unchecked(index).map_err(|_| reason)
}

/// Adds the values to those of an INSERT into SQLite.
pub fn bind(row: &[u8], columns: &[Column], args: &mut SqliteArguments) -> Result<(), BoxDynError> {
    for (field, column) in fields(row).zip(columns) {
        match column.kind {
            Kind::Int => args.add(field.map(int))?,
            Kind::Bool => args.add(field.map(|value| value == [1]))?,
            Kind::Text => args.add(field.map(text).transpose()?)?,
            Kind::Json => {
                let json = field.map(|value| text(value.get(1..).unwrap_or_default()));
                args.add(json.transpose()?)?;
            }
            Kind::Time => args.add(field.map(|value| time(value).to_string()))?,
            Kind::Bytes | Kind::Uuid => args.add(field.map(<[u8]>::to_vec))?,
        }
    }
    Ok(())
}

fn int(value: &[u8]) -> i64 {
    value.first_chunk().copied().map_or(0, i64::from_be_bytes)
}

fn text(value: &[u8]) -> Result<String, std::str::Utf8Error> {
    Ok(std::str::from_utf8(value)?.to_owned())
}

fn time(value: &[u8]) -> Timestamp {
    Timestamp::from_micros(int(value).saturating_add(EPOCH_MICROS))
}

/// A value of a key as SQL.
pub fn literal(dialect: Dialect, kind: Kind, field: Option<&[u8]>) -> String {
    let Some(value) = field else {
        return "NULL".to_owned();
    };
    let hex = || hex::encode(value);
    match (kind, dialect) {
        (Kind::Int, _) => format!("CAST('{}' AS BIGINT)", int(value)),
        (Kind::Bool, Dialect::Postgres) => format!("{}", value == [1]),
        (Kind::Bool, Dialect::Sqlite) => format!("{}", i64::from(value == [1])),
        (Kind::Time, Dialect::Postgres) => format!("CAST('{}' AS TIMESTAMPTZ)", time(value)),
        (Kind::Time, Dialect::Sqlite) => format!("'{}'", time(value)),
        (Kind::Uuid, Dialect::Postgres) => format!("CAST('{}' AS UUID)", hex()),
        (Kind::Bytes, Dialect::Postgres) => format!("decode('{}', 'hex')", hex()),
        (Kind::Text | Kind::Json, Dialect::Postgres) => {
            format!("convert_from(decode('{}', 'hex'), 'UTF8')", hex())
        }
        (Kind::Uuid | Kind::Bytes, Dialect::Sqlite) => format!("X'{}'", hex()),
        (Kind::Text | Kind::Json, Dialect::Sqlite) => format!("CAST(X'{}' AS TEXT)", hex()),
    }
}

/// The key for people: `tenant_uuid 0f…, ble_event_id 17`.
pub fn describe(row: &[u8], key: &[Column]) -> String {
    let values: Vec<String> = fields(row)
        .zip(key)
        .map(|(field, column)| {
            let value = field.unwrap_or_default();
            let shown = match column.kind {
                Kind::Int => int(value).to_string(),
                Kind::Time => time(value).to_string(),
                Kind::Text | Kind::Json => format!("{:?}", String::from_utf8_lossy(value)),
                Kind::Bool | Kind::Bytes | Kind::Uuid => hex::encode(value),
            };
            format!("{} {shown}", column.name)
        })
        .collect();
    values.join(", ")
}

/// The first column in which two rows differ.
pub fn difference<'c>(one: &[u8], other: &[u8], columns: &'c [Column]) -> Option<&'c Column> {
    if one == other {
        return None;
    }
    let mut pairs = fields(one).zip(fields(other)).zip(columns);
    let differing = pairs.find(|((one, other), column)| {
        one != other && !(column.kind == Kind::Json && is_same_json(*one, *other))
    });
    differing.map(|(_, column)| column)
}

fn is_same_json(one: Option<&[u8]>, other: Option<&[u8]>) -> bool {
    let parsed = |field: Option<&[u8]>| {
        let text = field?.get(1..)?;
        serde_json::from_slice::<Value>(text).ok()
    };
    match (parsed(one), parsed(other)) {
        (Some(one), Some(other)) => is_same_value(&one, &other),
        _ => false,
    }
}

/// Whether two JSON values are the same, however their numbers are written: PostgreSQL writes 1e2
/// as 100.
fn is_same_value(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => {
            one == other || (one.is_f64() || other.is_f64()) && one.as_f64() == other.as_f64()
        }
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len()
                && one
                    .iter()
                    .zip(other)
                    .all(|(one, other)| is_same_value(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            one.len() == other.len()
                && one.iter().all(|(name, one)| {
                    other
                        .get(name)
                        .is_some_and(|other| is_same_value(one, other))
                })
        }
        _ => one == other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json_row(text: &str) -> Vec<u8> {
        let mut row = 1_i16.to_be_bytes().to_vec();
        write_field(Some([&[JSON_VERSION], text.as_bytes()].concat()), &mut row);
        row
    }

    #[test]
    fn json_is_compared_by_its_values() {
        let columns = [Column {
            name: "labels".to_owned(),
            kind: Kind::Json,
        }];
        let differs = |one: &str, other: &str| {
            difference(&json_row(one), &json_row(other), &columns).is_some()
        };
        assert!(!differs(
            r#"{"b":[1e2,true],"a":"é"}"#,
            r#"{"a": "é", "b": [100, true]}"#
        ));
        for (one, other) in [
            (r#"{"a":1}"#, r#"{"a":2}"#),
            (r#"{"a":1}"#, r#"{"a":1,"b":null}"#),
            ("[1,2]", "[2,1]"),
            ("9223372036854775807", "9223372036854775806"),
        ] {
            assert!(differs(one, other), "{one} and {other}");
        }
    }

    #[test]
    fn an_escaped_nul_is_found() {
        for json in [r#""\u0000""#, r#"["a\\\u0000"]"#, r#"{"\\u0000\u0000":1}"#] {
            assert!(has_escaped_nul(json), "{json}");
        }
        for json in [r#""\\u0000""#, r#"{"a":"u0000"}"#, r#""\u0001""#] {
            assert!(!has_escaped_nul(json), "{json}");
        }
    }

    #[test]
    fn fields_are_read_as_far_as_they_are_there() {
        let mut row = 3_i16.to_be_bytes().to_vec();
        write_field(Some("one"), &mut row);
        write_field(None::<&str>, &mut row);
        write_field(Some(""), &mut row);
        let values: Vec<Option<&[u8]>> = fields(&row).collect();
        assert_eq!(values, [Some(&b"one"[..]), None, Some(&b""[..])]);
        assert_eq!(first_length(&row), Some(row.len()));
        for end in 0..row.len() {
            assert_eq!(first_length(&row[..end]), None, "{end}");
        }
        assert_eq!(first_length(&(-1_i16).to_be_bytes()), Some(2));
    }
}
