//! The few places where the two databases speak differently. A difference that is not here or in `bulk` is a mistake.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    Postgres,
    Sqlite,
}

impl Dialect {
    /// Appended to the SELECT that picks due rows: another replica's rows are passed over. SQLite has one writer.
    pub const fn skip_locked(self) -> &'static str {
        match self {
            Self::Postgres => " FOR UPDATE SKIP LOCKED",
            Self::Sqlite => "",
        }
    }

    /// Appended to a SELECT by key whose row the transaction goes on to change.
    pub const fn for_update(self) -> &'static str {
        match self {
            Self::Postgres => " FOR UPDATE",
            Self::Sqlite => "",
        }
    }

    /// Follows a table's name where the index to read matters. PostgreSQL keeps statistics and finds it; SQLite has to be told.
    pub fn indexed_by(self, index: &str) -> String {
        match self {
            Self::Postgres => String::new(),
            Self::Sqlite => format!(" INDEXED BY {index}"),
        }
    }

    /// Appended to a SELECT by key whose row must stay as it is until the transaction ends; others may hold it too.
    pub const fn for_share(self) -> &'static str {
        match self {
            Self::Postgres => " FOR SHARE",
            Self::Sqlite => "",
        }
    }

    /// Makes a rule over all rows of a table hold: nobody else writes to it until the transaction ends. SQLite has one writer.
    pub fn lock_table(self, table: &str) -> Option<String> {
        match self {
            Self::Postgres => Some(format!("LOCK TABLE {table} IN SHARE ROW EXCLUSIVE MODE")),
            Self::Sqlite => None,
        }
    }

    pub const fn name(self) -> &'static str {
        match self {
            Self::Postgres => "postgres",
            Self::Sqlite => "sqlite",
        }
    }
}
