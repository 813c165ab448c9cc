//! The databases tests run on. A test that runs on several is a function of the database, declared
//! with `on_each_database!`.

use std::fmt;
use std::future::Future;

use crate::postgres;

/// A database a test can run on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backend {
    Sqlite,
    Postgres,
}

impl fmt::Display for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Sqlite => "SQLite",
            Self::Postgres => "PostgreSQL",
        })
    }
}

impl Backend {
    /// SQLite always is. PostgreSQL is where a server accepts connections; elsewhere the running
    /// test reports that it skips it.
    pub fn is_available(self) -> bool {
        let available = self == Self::Sqlite || postgres::is_reachable();
        if !available {
            // The test runner names a test's thread after the test.
            crate::skip(
                std::thread::current().name().unwrap_or("a test"),
                &postgres::place(),
            );
        }
        available
    }
}

/// Declares the tests `NAME::sqlite` and `NAME::postgres`. Each runs the function `NAME` on one
/// database: `async fn NAME(backend: Backend)`.
#[macro_export]
macro_rules! on_each_database {
    ($name:ident) => {
        mod $name {
            #[test]
            fn sqlite() {
                $crate::databases::run($crate::Backend::Sqlite, super::$name);
            }

            #[test]
            fn postgres() {
                $crate::databases::run($crate::Backend::Postgres, super::$name);
            }
        }
    };
}

/// Declares the test `NAME::postgres` alone, for what SQLite cannot do.
#[macro_export]
macro_rules! on_postgres {
    ($name:ident) => {
        mod $name {
            #[test]
            fn postgres() {
                $crate::databases::run($crate::Backend::Postgres, super::$name);
            }
        }
    };
}

/// Runs a test on a database, in a runtime of its own.
pub fn run<F: Future<Output = ()>>(backend: Backend, test: impl FnOnce(Backend) -> F) {
    if backend.is_available() {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .build()
            .expect("a runtime");
        runtime.block_on(Box::pin(test(backend)));
    }
}
