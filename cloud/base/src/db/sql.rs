//! One text of SQL for both databases: `$1` placeholders, typed arguments, rows that decode on
//! either. Text is `'static`, so it comes from the program alone; values go through `bind` only.

use std::borrow::Cow;
use std::fmt::Write;

use futures_util::future::BoxFuture;
use hub_protocol::{
    AppUuid, BatchUuid, HubJobUuid, HubUuid, PersonaUuid, ReleaseUuid, TenantUuid, Timestamp,
    UserUuid,
};
use sqlx::error::BoxDynError;
use sqlx::{Arguments, AssertSqlSafe, FromRow, SqlSafeStr, SqlStr};
use sqlx_postgres::{PgArguments, PgRow};
use sqlx_sqlite::{SqliteArguments, SqliteRow};
use uuid::Uuid;

use super::{Conn, Raw, storable};
use crate::error::Result;

/// A bound value. Every variant is an Option, so that NULL keeps its type.
#[derive(Clone, Debug)]
pub enum Arg {
    Bool(Option<bool>),
    Int(Option<i64>),
    Text(Option<String>),
    Bytes(Option<Vec<u8>>),
    Uuid(Option<Uuid>),
    Time(Option<Timestamp>),
    /// JSON is opaque to the database: a filtered value has its own column.
    Json(Option<serde_json::Value>),
}

/// Conversions from a type and from its Option.
macro_rules! arg_from {
    ($($type:ty => $variant:ident($convert:expr)),* $(,)?) => {$(
        impl From<$type> for Arg {
            fn from(value: $type) -> Self {
                Arg::$variant(Some($convert(value)))
            }
        }
        impl From<Option<$type>> for Arg {
            fn from(value: Option<$type>) -> Self {
                Arg::$variant(value.map($convert))
            }
        }
    )*};
}

arg_from! {
    bool => Bool(std::convert::identity),
    i64 => Int(std::convert::identity),
    String => Text(storable::text),
    &str => Text(|text: &str| storable::text(text.to_owned())),
    Vec<u8> => Bytes(std::convert::identity),
    &[u8] => Bytes(<[u8]>::to_vec),
    Uuid => Uuid(std::convert::identity),
    Timestamp => Time(std::convert::identity),
    serde_json::Value => Json(storable::json),
    HubUuid => Uuid(|id: HubUuid| id.0),
    TenantUuid => Uuid(|id: TenantUuid| id.0),
    UserUuid => Uuid(|id: UserUuid| id.0),
    PersonaUuid => Uuid(|id: PersonaUuid| id.0),
    BatchUuid => Uuid(|id: BatchUuid| id.0),
    HubJobUuid => Uuid(|id: HubJobUuid| id.0),
    AppUuid => Uuid(|id: AppUuid| id.0),
    ReleaseUuid => Uuid(|id: ReleaseUuid| id.0),
}

/// The values of one or more placeholders, in their order.
pub trait Values {
    fn push_to(self, args: &mut Vec<Arg>);
}

impl<A: Into<Arg>> Values for A {
    fn push_to(self, args: &mut Vec<Arg>) {
        args.push(self.into());
    }
}

macro_rules! values_of_tuples {
    ($(($($type:ident $index:tt),*))*) => {$(
        impl<$($type: Into<Arg>),*> Values for ($($type,)*) {
            fn push_to(self, args: &mut Vec<Arg>) {
                args.extend([$(self.$index.into()),*]);
            }
        }
    )*};
}

values_of_tuples! {
    (A 0, B 1)
    (A 0, B 1, C 2)
    (A 0, B 1, C 2, D 3)
    (A 0, B 1, C 2, D 3, E 4)
    (A 0, B 1, C 2, D 3, E 4, F 5)
    (A 0, B 1, C 2, D 3, E 4, F 5, G 6)
    (A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7)
    (A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8)
    (A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9)
    (A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9, K 10)
    (A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9, K 10, L 11)
    (A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9, K 10, L 11, M 12)
    (A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9, K 10, L 11, M 12, N 13)
    (A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9, K 10, L 11, M 12, N 13, O 14)
    (A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9, K 10, L 11, M 12, N 13, O 14, P 15)
}

/// A row type that decodes on both databases.
pub trait DbRow:
    Send + Unpin + for<'r> FromRow<'r, PgRow> + for<'r> FromRow<'r, SqliteRow>
{
}
impl<T: Send + Unpin + for<'r> FromRow<'r, PgRow> + for<'r> FromRow<'r, SqliteRow>> DbRow for T {}

/// A statement being built. Its text consists of literals of the program, numbers and the
/// placeholders of values; a statement that is one literal is never copied.
#[must_use]
#[derive(Debug)]
pub struct Sql {
    text: Cow<'static, str>,
    args: Vec<Arg>,
}

pub const fn sql(text: &'static str) -> Sql {
    Sql {
        text: Cow::Borrowed(text),
        args: Vec::new(),
    }
}

/// The only place where assembled text becomes SQL. It is safe because every caller, here and in
/// `bulk`, assembles it from `'static` text, numbers and placeholders: the types allow nothing
/// else. `moves` also has names and definitions of indexes from the databases' catalogs, which it
/// quotes, and values as numbers, times and hexadecimal digits.
pub(super) fn assembled(text: Cow<'static, str>) -> SqlStr {
    AssertSqlSafe(text).into_sql_str()
}

/// A name of a catalog as SQL has it: that of a column may be a word of SQL.
pub(super) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

impl Sql {
    /// The values of the next `$n` already in the text: one, or a tuple of them.
    pub fn bind(mut self, values: impl Values) -> Self {
        values.push_to(&mut self.args);
        self
    }

    pub fn push(mut self, text: &'static str) -> Self {
        if !text.is_empty() {
            self.text.to_mut().push_str(text);
        }
        self
    }

    /// Appends a number as text, for the places where SQL accepts no placeholder.
    pub fn push_number(mut self, number: i64) -> Self {
        // Writing to a String does not fail.
        let _ = write!(self.text.to_mut(), "{number}");
        self
    }

    /// A value, and its placeholder appended to the text.
    pub fn push_bind(mut self, value: impl Into<Arg>) -> Self {
        self.args.push(value.into());
        let _ = write!(self.text.to_mut(), "${}", self.args.len());
        self
    }

    /// `(v1, v2, ...)`; the caller keeps the list short and not empty.
    pub fn push_list(mut self, values: impl IntoIterator<Item = impl Into<Arg>>) -> Self {
        self = self.push("(");
        for (index, value) in values.into_iter().enumerate() {
            self = self
                .push(if index > 0 { ", " } else { "" })
                .push_bind(value);
        }
        self.push(")")
    }

    /// A condition: the text of a column, or of an expression, contains this part, whose case is
    /// that of the text.
    pub fn push_contains_text(self, column: &'static str, part: &str) -> Self {
        let escaped = part
            .replace('!', "!!")
            .replace('%', "!%")
            .replace('_', "!_");
        self.push(column)
            .push(" LIKE ")
            .push_bind(format!("%{escaped}%"))
            .push(" ESCAPE '!'")
    }

    // The futures below are boxed. Otherwise every future that awaits one would contain the whole
    // state of the driver, and the compiler would prove again for each handler that it is Send.

    pub fn all<'c, T: DbRow + 'c>(self, conn: &'c mut Conn) -> BoxFuture<'c, Result<Vec<T>>> {
        Box::pin(async move {
            let text = assembled(self.text);
            Ok(match conn.raw() {
                Raw::Postgres(conn) => {
                    sqlx::query_as_with::<_, T, _>(text, postgres_args(self.args)?)
                        .fetch_all(conn)
                        .await?
                }
                Raw::Sqlite(conn) => {
                    sqlx::query_as_with::<_, T, _>(text, sqlite_args(self.args)?)
                        .fetch_all(conn)
                        .await?
                }
            })
        })
    }

    pub fn optional<'c, T: DbRow + 'c>(
        self,
        conn: &'c mut Conn,
    ) -> BoxFuture<'c, Result<Option<T>>> {
        Box::pin(async move {
            let text = assembled(self.text);
            Ok(match conn.raw() {
                Raw::Postgres(conn) => {
                    sqlx::query_as_with::<_, T, _>(text, postgres_args(self.args)?)
                        .fetch_optional(conn)
                        .await?
                }
                Raw::Sqlite(conn) => {
                    sqlx::query_as_with::<_, T, _>(text, sqlite_args(self.args)?)
                        .fetch_optional(conn)
                        .await?
                }
            })
        })
    }

    /// The only row of the result, which must exist.
    pub async fn one<T: DbRow>(self, conn: &mut Conn) -> Result<T> {
        self.optional(conn)
            .await?
            .ok_or_else(|| sqlx::Error::RowNotFound.into())
    }

    /// The only column of the only row, which must exist.
    pub async fn scalar<T>(self, conn: &mut Conn) -> Result<T>
    where
        (T,): DbRow,
    {
        Ok(self.one::<(T,)>(conn).await?.0)
    }

    /// The only column of the row, if there is a row.
    pub async fn optional_scalar<T>(self, conn: &mut Conn) -> Result<Option<T>>
    where
        (T,): DbRow,
    {
        Ok(self.optional::<(T,)>(conn).await?.map(|(value,)| value))
    }

    /// The only column of all rows.
    pub async fn scalars<T>(self, conn: &mut Conn) -> Result<Vec<T>>
    where
        (T,): DbRow,
    {
        Ok(self
            .all::<(T,)>(conn)
            .await?
            .into_iter()
            .map(|(value,)| value)
            .collect())
    }

    /// Whether the statement finds a row.
    pub fn exists(self, conn: &mut Conn) -> BoxFuture<'_, Result<bool>> {
        Box::pin(async move {
            let text = assembled(self.text);
            Ok(match conn.raw() {
                Raw::Postgres(conn) => sqlx::query_with(text, postgres_args(self.args)?)
                    .fetch_optional(conn)
                    .await?
                    .is_some(),
                Raw::Sqlite(conn) => sqlx::query_with(text, sqlite_args(self.args)?)
                    .fetch_optional(conn)
                    .await?
                    .is_some(),
            })
        })
    }

    /// Runs the statement and returns how many rows it changed.
    pub fn execute(self, conn: &mut Conn) -> BoxFuture<'_, Result<u64>> {
        Box::pin(async move {
            let text = assembled(self.text);
            Ok(match conn.raw() {
                Raw::Postgres(conn) => sqlx::query_with(text, postgres_args(self.args)?)
                    .execute(conn)
                    .await?
                    .rows_affected(),
                Raw::Sqlite(conn) => sqlx::query_with(text, sqlite_args(self.args)?)
                    .execute(conn)
                    .await?
                    .rows_affected(),
            })
        })
    }

    /// Runs the statement, however many rows it changes.
    pub async fn run(self, conn: &mut Conn) -> Result<()> {
        self.execute(conn).await.map(drop)
    }

    /// One page of the list that this FROM and WHERE describe, and how many rows the whole list
    /// has. `order` holds the pieces of the ORDER BY.
    pub async fn page<T: DbRow>(
        self,
        conn: &mut Conn,
        columns: &'static str,
        order: &[&'static str],
        Slice { size, offset }: Slice,
    ) -> Result<(Vec<T>, i64)> {
        let mut rows = sql("SELECT ")
            .push(columns)
            .push(" ")
            .append(&self)
            .push(" ORDER BY ");
        for &piece in order {
            rows = rows.push(piece);
        }
        let rows = rows
            .push(" LIMIT ")
            .push_bind(size)
            .push(" OFFSET ")
            .push_bind(offset)
            .all(conn)
            .await?;
        Ok((rows, self.count(conn).await?))
    }

    /// How many bytes of text the column has on one page of the list, for rows that may be large.
    pub async fn page_bytes(
        &self,
        conn: &mut Conn,
        column: &'static str,
        order: &[&'static str],
        Slice { size, offset }: Slice,
    ) -> Result<i64> {
        let mut sizes = sql("SELECT CAST(COALESCE(SUM(size), 0) AS BIGINT) \
             FROM (SELECT OCTET_LENGTH(")
        .push(column)
        .push(") AS size ")
        .append(self)
        .push(" ORDER BY ");
        for &piece in order {
            sizes = sizes.push(piece);
        }
        sizes
            .push(" LIMIT ")
            .push_bind(size)
            .push(" OFFSET ")
            .push_bind(offset)
            .push(") AS page")
            .scalar(conn)
            .await
    }

    /// How many rows this FROM and WHERE find, counted up to [`MAX_COUNT`].
    pub async fn count(self, conn: &mut Conn) -> Result<i64> {
        let counted = sql("SELECT COUNT(*) FROM (SELECT 1 AS one ").append(&self);
        counted
            .push(" LIMIT ")
            .push_bind(MAX_COUNT)
            .push(") AS counted")
            .scalar(conn)
            .await
    }

    /// Appends another statement's text and values. This one has no values yet, so placeholders
    /// keep their numbers.
    pub fn append(mut self, other: &Self) -> Self {
        self.text.to_mut().push_str(&other.text);
        self.args.extend_from_slice(&other.args);
        self
    }
}

/// The part of a list that a page shows.
#[derive(Clone, Copy, Debug)]
pub struct Slice {
    pub size: i64,
    pub offset: i64,
}

/// Counting ends here. To see further back, a client narrows the list with its filters.
pub const MAX_COUNT: i64 = 100_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    Ascending,
    Descending,
}

impl Direction {
    pub const fn sql(self) -> &'static str {
        match self {
            Self::Ascending => "ASC",
            Self::Descending => "DESC",
        }
    }
}

fn postgres_args(args: Vec<Arg>) -> std::result::Result<PgArguments, sqlx::Error> {
    let mut list = PgArguments::default();
    for arg in args {
        let added: std::result::Result<(), BoxDynError> = match arg {
            Arg::Bool(value) => list.add(value),
            Arg::Int(value) => list.add(value),
            Arg::Text(value) => list.add(value),
            Arg::Bytes(value) => list.add(value),
            Arg::Uuid(value) => list.add(value),
            Arg::Time(value) => list.add(value.map(Timestamp::to_datetime)),
            Arg::Json(value) => list.add(value),
        };
        added.map_err(sqlx::Error::Encode)?;
    }
    Ok(list)
}

fn sqlite_args(args: Vec<Arg>) -> std::result::Result<SqliteArguments, sqlx::Error> {
    let mut list = SqliteArguments::default();
    for arg in args {
        let added: std::result::Result<(), BoxDynError> = match arg {
            Arg::Bool(value) => list.add(value),
            Arg::Int(value) => list.add(value),
            Arg::Text(value) => list.add(value),
            Arg::Bytes(value) => list.add(value),
            Arg::Uuid(value) => list.add(value),
            Arg::Time(value) => list.add(value.map(|time| time.to_string())),
            Arg::Json(value) => list.add(value.map(|json| json.to_string())),
        };
        added.map_err(sqlx::Error::Encode)?;
    }
    Ok(list)
}
