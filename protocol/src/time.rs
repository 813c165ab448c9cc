//! Points in time as sent on the wire: RFC 3339 in UTC with exactly six fractional digits and `Z`.
//! Stored as microseconds since 1970, so that comparing and storing is cheap. Never reads a clock.

use std::fmt;
use std::str::FromStr;

use chrono::{DateTime, Datelike, Timelike, Utc};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// Microseconds since 1970-01-01T00:00:00Z, within the years 0001 to 9999, which is the range of
/// RFC 3339.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(i64);

const MIN_MICROS: i64 = -62_135_596_800_000_000;
const MAX_MICROS: i64 = 253_402_300_799_999_999;

impl Timestamp {
    /// Values outside of the years 0001 to 9999 are clamped.
    pub const fn from_micros(micros: i64) -> Self {
        if micros < MIN_MICROS {
            Self(MIN_MICROS)
        } else if micros > MAX_MICROS {
            Self(MAX_MICROS)
        } else {
            Self(micros)
        }
    }

    pub const fn as_micros(self) -> i64 {
        self.0
    }

    /// Seconds since 1970, rounded down.
    pub const fn as_secs(self) -> i64 {
        self.0.div_euclid(1_000_000)
    }

    pub const fn plus_micros(self, micros: i64) -> Self {
        Self::from_micros(self.0.saturating_add(micros))
    }

    pub const fn plus_secs(self, secs: i64) -> Self {
        self.plus_micros(secs.saturating_mul(1_000_000))
    }

    pub fn to_datetime(self) -> DateTime<Utc> {
        // Every value within the bounds is a date, so the default is never used.
        DateTime::from_timestamp_micros(self.0).unwrap_or_default()
    }
}

impl From<DateTime<Utc>> for Timestamp {
    fn from(time: DateTime<Utc>) -> Self {
        Self::from_micros(time.timestamp_micros())
    }
}

/// The text of a time, such as `2026-01-31T08:00:00.000000Z`.
struct Text([u8; 27]);

impl Text {
    /// Every record has a time or more, and `write!` would take longer than all else of a record.
    fn of(time: Timestamp) -> Self {
        let t = time.to_datetime();
        let mut text = *b"0000-00-00T00:00:00.000000Z";
        let mut set = |first: usize, last: usize, mut value: u32| {
            for digit in text.iter_mut().take(last + 1).skip(first).rev() {
                *digit = b'0' + (value % 10) as u8;
                value /= 10;
            }
        };
        set(0, 3, t.year().unsigned_abs());
        set(5, 6, t.month());
        set(8, 9, t.day());
        set(11, 12, t.hour());
        set(14, 15, t.minute());
        set(17, 18, t.second());
        set(20, 25, t.timestamp_subsec_micros());
        Self(text)
    }

    fn as_str(&self) -> &str {
        // Digits and punctuation are always text.
        std::str::from_utf8(&self.0).unwrap_or_default()
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(Text::of(*self).as_str())
    }
}

impl fmt::Debug for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Timestamp {
    type Err = TimestampError;

    /// Parses any RFC 3339 time with any offset and precision. Digits beyond microseconds are cut
    /// off.
    fn from_str(text: &str) -> Result<Self, TimestampError> {
        let time = DateTime::parse_from_rfc3339(text).map_err(|_| TimestampError)?;
        let micros = time.timestamp_micros();
        if (MIN_MICROS..=MAX_MICROS).contains(&micros) {
            Ok(Self(micros))
        } else {
            Err(TimestampError)
        }
    }
}

/// The text is not an RFC 3339 time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimestampError;

impl fmt::Display for TimestampError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not an RFC 3339 time such as 2026-01-31T08:00:00Z")
    }
}

impl std::error::Error for TimestampError {}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(Text::of(*self).as_str())
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl de::Visitor<'_> for Visitor {
            type Value = Timestamp;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an RFC 3339 time such as 2026-01-31T08:00:00Z")
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Timestamp, E> {
                text.parse().map_err(E::custom)
            }
        }
        deserializer.deserialize_str(Visitor)
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for Timestamp {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Timestamp".into()
    }
    fn inline_schema() -> bool {
        true
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "type": "string",
            "format": "date-time",
            "description": "A point in time (RFC 3339); in answers in UTC, with six decimals.",
            "examples": ["2026-01-31T08:00:00.000000Z"],
        })
    }
}

#[cfg(feature = "database")]
mod database {
    //! `timestamptz` on PostgreSQL. On SQLite, fixed-width text, which sorts like the time.
    use super::{DateTime, Timestamp, Utc};
    use sqlx::error::BoxDynError;
    use sqlx::{Decode, Type};
    use sqlx_postgres::{PgTypeInfo, PgValueRef, Postgres};
    use sqlx_sqlite::{Sqlite, SqliteTypeInfo, SqliteValueRef};

    impl Type<Postgres> for Timestamp {
        fn type_info() -> PgTypeInfo {
            <DateTime<Utc> as Type<Postgres>>::type_info()
        }
    }
    impl<'r> Decode<'r, Postgres> for Timestamp {
        fn decode(value: PgValueRef<'r>) -> Result<Self, BoxDynError> {
            Ok(<DateTime<Utc> as Decode<Postgres>>::decode(value)?.into())
        }
    }
    impl Type<Sqlite> for Timestamp {
        fn type_info() -> SqliteTypeInfo {
            <String as Type<Sqlite>>::type_info()
        }
    }
    impl<'r> Decode<'r, Sqlite> for Timestamp {
        fn decode(value: SqliteValueRef<'r>) -> Result<Self, BoxDynError> {
            Ok(<&str as Decode<Sqlite>>::decode(value)?.parse()?)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_six_digits_and_reads_any_offset() {
        let time: Timestamp = "2026-01-31T10:00:00.5+02:00".parse().expect("a valid time");
        assert_eq!(time.to_string(), "2026-01-31T08:00:00.500000Z");
        assert_eq!(time.to_string().parse(), Ok(time));
    }

    #[test]
    fn invalid_times_are_refused() {
        for text in [
            "",
            "2026-01-31",
            "2026-13-01T00:00:00Z",
            "1769846400",
            "2026-01-31T08:00:00",
        ] {
            assert_eq!(text.parse::<Timestamp>(), Err(TimestampError), "{text}");
        }
    }

    #[test]
    fn text_sorts_like_time() {
        let times =
            [MIN_MICROS, -1, 0, 1, 1_769_846_400_000_000, MAX_MICROS].map(Timestamp::from_micros);
        assert!(
            times
                .windows(2)
                .all(|pair| pair[0].to_string() < pair[1].to_string())
        );
        assert!(times.iter().all(|time| time.to_string().len() == 27));
    }
}
