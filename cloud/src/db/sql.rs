//! One text of SQL for both databases: `$1` placeholders, typed arguments, rows that decode on either.
//! Text comes from the program alone, values only through `bind`.

use std::fmt::Write;

use futures_util::future::BoxFuture;
use hub_protocol::{
    AppUuid, BatchUuid, HubJobUuid, HubUuid, PersonaUuid, ReleaseUuid, TenantUuid, Timestamp, UserUuid,
};
use sqlx::error::BoxDynError;
use sqlx::postgres::{PgArguments, PgRow};
use sqlx::sqlite::{SqliteArguments, SqliteRow};
use sqlx::{Arguments, AssertSqlSafe, FromRow};
use uuid::Uuid;

use super::{Conn, Raw};
use crate::error::Result;

/// A value on its way into the database. Every variant is an Option, so that NULL keeps its type.
#[derive(Clone, Debug)]
pub enum Arg {
    Bool(Option<bool>),
    Int(Option<i64>),
    Text(Option<String>),
    Bytes(Option<Vec<u8>>),
    Uuid(Option<Uuid>),
    Time(Option<Timestamp>),
    /// JSON is opaque to the database: what is filtered on has a column of its own.
    Json(Option<serde_json::Value>),
}

/// Conversions for a type, its reference-free Option included.
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
    String => Text(std::convert::identity),
    &str => Text(str::to_owned),
    Vec<u8> => Bytes(std::convert::identity),
    &[u8] => Bytes(<[u8]>::to_vec),
    Uuid => Uuid(std::convert::identity),
    Timestamp => Time(std::convert::identity),
    serde_json::Value => Json(std::convert::identity),
    HubUuid => Uuid(|id: HubUuid| id.0),
    TenantUuid => Uuid(|id: TenantUuid| id.0),
    UserUuid => Uuid(|id: UserUuid| id.0),
    PersonaUuid => Uuid(|id: PersonaUuid| id.0),
    BatchUuid => Uuid(|id: BatchUuid| id.0),
    HubJobUuid => Uuid(|id: HubJobUuid| id.0),
    AppUuid => Uuid(|id: AppUuid| id.0),
    ReleaseUuid => Uuid(|id: ReleaseUuid| id.0),
}

/// A row type that decodes on both databases.
pub trait DbRow: Send + Unpin + for<'r> FromRow<'r, PgRow> + for<'r> FromRow<'r, SqliteRow> {}
impl<T: Send + Unpin + for<'r> FromRow<'r, PgRow> + for<'r> FromRow<'r, SqliteRow>> DbRow for T {}

/// A statement being built.
#[must_use]
#[derive(Debug)]
pub struct Sql {
    text: String,
    args: Vec<Arg>,
}

pub fn sql(text: &str) -> Sql {
    Sql { text: text.to_owned(), args: Vec::new() }
}

impl Sql {
    /// The value of the next `$n` already in the text.
    pub fn bind(mut self, value: impl Into<Arg>) -> Self {
        self.args.push(value.into());
        self
    }

    pub fn push(mut self, text: &str) -> Self {
        self.text.push_str(text);
        self
    }

    /// A value, and its placeholder appended to the text.
    pub fn push_bind(mut self, value: impl Into<Arg>) -> Self {
        self.args.push(value.into());
        // Writing to a String does not fail.
        let _ = write!(self.text, "${}", self.args.len());
        self
    }

    /// `(v1, v2, ...)`; the caller keeps the list short and not empty.
    pub fn push_list(mut self, values: impl IntoIterator<Item = impl Into<Arg>>) -> Self {
        self.text.push('(');
        for (index, value) in values.into_iter().enumerate() {
            if index > 0 {
                self.text.push_str(", ");
            }
            self = self.push_bind(value);
        }
        self.text.push(')');
        self
    }

    // What is awaited below is boxed: whatever awaits it in turn would otherwise hold all of the driver's state, and the compiler would prove for each
    // handler anew that it may change threads.

    pub fn all<'c, T: DbRow + 'c>(self, conn: &'c mut Conn) -> BoxFuture<'c, Result<Vec<T>>> {
        Box::pin(async move {
            let text = AssertSqlSafe(self.text);
            Ok(match conn.raw() {
                Raw::Postgres(conn) => {
                    sqlx::query_as_with::<_, T, _>(text, postgres_args(self.args)?).fetch_all(conn).await?
                }
                Raw::Sqlite(conn) => {
                    sqlx::query_as_with::<_, T, _>(text, sqlite_args(self.args)?).fetch_all(conn).await?
                }
            })
        })
    }

    pub fn optional<'c, T: DbRow + 'c>(self, conn: &'c mut Conn) -> BoxFuture<'c, Result<Option<T>>> {
        Box::pin(async move {
            let text = AssertSqlSafe(self.text);
            Ok(match conn.raw() {
                Raw::Postgres(conn) => {
                    sqlx::query_as_with::<_, T, _>(text, postgres_args(self.args)?).fetch_optional(conn).await?
                }
                Raw::Sqlite(conn) => {
                    sqlx::query_as_with::<_, T, _>(text, sqlite_args(self.args)?).fetch_optional(conn).await?
                }
            })
        })
    }

    /// The one row there must be.
    pub async fn one<T: DbRow>(self, conn: &mut Conn) -> Result<T> {
        self.optional(conn).await?.ok_or_else(|| sqlx::Error::RowNotFound.into())
    }

    /// Runs the statement; answers how many rows it changed.
    pub fn execute(self, conn: &mut Conn) -> BoxFuture<'_, Result<u64>> {
        Box::pin(async move {
            let text = AssertSqlSafe(self.text);
            Ok(match conn.raw() {
                Raw::Postgres(conn) => {
                    sqlx::query_with(text, postgres_args(self.args)?).execute(conn).await?.rows_affected()
                }
                Raw::Sqlite(conn) => {
                    sqlx::query_with(text, sqlite_args(self.args)?).execute(conn).await?.rows_affected()
                }
            })
        })
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
