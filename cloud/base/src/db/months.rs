//! Calendar months in UTC: what PostgreSQL partitions records by, and what their bytes are counted
//! by.

use chrono::{Datelike, Months, NaiveDate, NaiveTime};
use hub_protocol::Timestamp;

/// A month, by its first day.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Month(NaiveDate);

impl Month {
    /// The month of this time.
    pub fn of(time: Timestamp) -> Self {
        let day = time.to_datetime().date_naive();
        Self::first_of(day.year(), day.month()).unwrap_or(Self(day))
    }

    /// `None` for a month that no calendar has.
    pub fn first_of(year: i32, month: u32) -> Option<Self> {
        NaiveDate::from_ymd_opt(year, month, 1).map(Self)
    }

    /// This many months later.
    pub fn plus(self, months: u32) -> Self {
        Self(
            self.0
                .checked_add_months(Months::new(months))
                .unwrap_or(NaiveDate::MAX),
        )
    }

    /// This many months earlier.
    pub fn minus(self, months: u32) -> Self {
        Self(
            self.0
                .checked_sub_months(Months::new(months))
                .unwrap_or(NaiveDate::MIN),
        )
    }

    /// The month as in 202611.
    pub fn number(self) -> i64 {
        i64::from(self.0.year()) * 100 + i64::from(self.0.month())
    }

    pub fn year(self) -> i32 {
        self.0.year()
    }

    /// The month, counted from 1.
    pub fn month(self) -> u32 {
        self.0.month()
    }

    /// Its beginning, in microseconds since 1970: the first id of its records.
    pub fn start_micros(self) -> i64 {
        self.0.and_time(NaiveTime::MIN).and_utc().timestamp_micros()
    }

    /// The beginning of the next month.
    pub fn end_micros(self) -> i64 {
        self.plus(1).start_micros()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn months_border_on_each_other() {
        let time = |text: &str| text.parse::<Timestamp>().expect("a time");
        let december = Month::of(time("2026-12-31T23:59:59.999999Z"));
        assert_eq!(
            (december.number(), december.plus(1).number()),
            (202_612, 202_701)
        );
        assert_eq!(Month::of(time("2027-01-01T00:00:00Z")), december.plus(1));
        assert_eq!(
            december.start_micros(),
            time("2026-12-01T00:00:00Z").as_micros()
        );
        assert_eq!(
            december.end_micros(),
            time("2027-01-01T00:00:00Z").as_micros()
        );
        assert!(Month::first_of(2026, 13).is_none());
    }
}
