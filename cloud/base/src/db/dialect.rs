//! The few places where the two databases differ in SQL. A difference that is neither here nor in
//! `bulk` is a mistake.

use super::{Conn, Sql, sql};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    Postgres,
    Sqlite,
}

impl Dialect {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Postgres => "postgres",
            Self::Sqlite => "sqlite",
        }
    }

    /// Locks a table, so that a rule over all of its rows can be checked: no other transaction
    /// writes to it until this one ends. SQLite has one writer and needs no lock.
    pub fn lock_table(self, table: &'static str) -> Option<Sql> {
        match self {
            Self::Postgres => Some(
                sql("LOCK TABLE ")
                    .push(table)
                    .push(" IN SHARE ROW EXCLUSIVE MODE"),
            ),
            Self::Sqlite => None,
        }
    }
}

impl Sql {
    fn push_on_postgres(self, conn: &Conn, text: &'static str) -> Self {
        match conn.dialect() {
            Dialect::Postgres => self.push(text),
            Dialect::Sqlite => self,
        }
    }

    /// Ends a SELECT of due rows: rows that another replica has locked are skipped.
    pub fn skip_locked(self, conn: &Conn) -> Self {
        self.push_on_postgres(conn, " FOR UPDATE SKIP LOCKED")
    }

    /// Ends a SELECT of rows that this transaction then changes.
    pub fn for_update(self, conn: &Conn) -> Self {
        self.push_on_postgres(conn, " FOR UPDATE")
    }

    /// Ends a SELECT of rows that must not change until the transaction ends. Other transactions
    /// may hold them too.
    pub fn for_share(self, conn: &Conn) -> Self {
        self.push_on_postgres(conn, " FOR SHARE")
    }

    /// Follows the name of a table and names the index to read. Only SQLite needs it: PostgreSQL
    /// keeps statistics and picks the index itself.
    pub fn indexed_by(self, conn: &Conn, index: &'static str) -> Self {
        match conn.dialect() {
            Dialect::Postgres => self,
            Dialect::Sqlite => self.push(" INDEXED BY ").push(index),
        }
    }

    /// Joins the rows of a table, which is called `b`, that each row before it finds by an index.
    /// PostgreSQL estimates conditions with ranges badly, and would read the whole table once.
    pub fn join_each(
        self,
        conn: &Conn,
        (table, index): (&'static str, &'static str),
        condition: impl FnOnce(Self) -> Self,
    ) -> Self {
        match conn.dialect() {
            Dialect::Postgres => {
                let query = self.push(" CROSS JOIN LATERAL (SELECT * FROM ").push(table);
                condition(query.push(" b WHERE ")).push(" OFFSET 0) AS b")
            }
            Dialect::Sqlite => {
                let query = self.push(" JOIN ").push(table).push(" b");
                condition(query.indexed_by(conn, index).push(" ON "))
            }
        }
    }

    /// The bytes of a column as hexadecimal digits, in either case.
    pub fn push_hex(self, conn: &Conn, column: &'static str) -> Self {
        match conn.dialect() {
            Dialect::Postgres => self.push("encode(").push(column).push(", 'hex')"),
            Dialect::Sqlite => self.push("hex(").push(column).push(")"),
        }
    }

    /// A condition: the bytes of a column have these among them.
    pub fn push_contains(self, conn: &Conn, column: &'static str, bytes: Vec<u8>) -> Self {
        let position = match conn.dialect() {
            Dialect::Postgres => "pg_catalog.position(",
            Dialect::Sqlite => "instr(",
        };
        self.push(position)
            .push(column)
            .push(", ")
            .push_bind(bytes)
            .push(") > 0")
    }
}
