//! PostgreSQL databases of a test's own. The schema is built once a run, in a template; each test gets a copy and drops it.

use std::net::{TcpStream, ToSocketAddrs};
use std::path::Path;
use std::str::FromStr;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use hub_cloud::clock::Clock;
use hub_cloud::db::{Db, migrate};
use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, Executor};
use tokio::sync::OnceCell;

/// Where databases are made. The user must be allowed to.
pub static SERVER: LazyLock<String> = LazyLock::new(|| {
    let given = std::env::var("HUB_TESTS_POSTGRES_URL").ok().filter(|url| !url.is_empty());
    given.unwrap_or_else(|| "postgres://postgres@127.0.0.1:5432/postgres".to_owned())
});

/// Whether a PostgreSQL answers there; says so once when none does.
pub fn is_reachable() -> bool {
    static REACHABLE: LazyLock<bool> = LazyLock::new(|| {
        let options = options(&SERVER);
        let address = (options.get_host(), options.get_port());
        let mut addresses = address.to_socket_addrs().into_iter().flatten();
        let reachable = addresses.any(|address| TcpStream::connect_timeout(&address, Duration::from_secs(2)).is_ok());
        if !reachable {
            let server = format!("PostgreSQL at {}:{} (HUB_TESTS_POSTGRES_URL)", address.0, address.1);
            crate::skip("every test on PostgreSQL", &server);
        }
        reachable
    });
    *REACHABLE
}

/// A database that is dropped with this value.
pub struct Database {
    name: String,
    pub url: String,
}

impl Database {
    pub async fn create() -> Self {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let template = template().await;
        let name = format!("hub_tests_{}_{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        run(&format!("CREATE DATABASE {name} TEMPLATE {template}")).await;
        let url = url_of(&name);
        Self { name, url }
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        let statement = format!("DROP DATABASE IF EXISTS {} WITH (FORCE)", self.name);
        // The test's own runtime may be ending, and a destructor cannot wait on it.
        let dropping = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.expect("a runtime").block_on(run(&statement));
        });
        let _ = dropping.join();
    }
}

/// The run's template, made by whoever asks first.
async fn template() -> &'static str {
    static TEMPLATE: OnceCell<String> = OnceCell::const_new();
    let made = TEMPLATE.get_or_init(|| async {
        drop_left_overs().await;
        let name = format!("hub_tests_{}_template", std::process::id());
        run(&format!("CREATE DATABASE {name}")).await;
        let db = Db::open(&url_of(&name)).expect("a database url");
        migrate::run(&db, Clock::System.now()).await.expect("the schema applies to an empty PostgreSQL");
        db.close().await;
        name
    });
    made.await
}

/// Databases of runs that ended without cleaning up; this process's template is always one, since nothing runs after the last test.
async fn drop_left_overs() {
    let mut server = connect().await;
    let query = "SELECT datname FROM pg_database WHERE datname LIKE 'hub\\_tests\\_%'";
    let names: Vec<(String,)> = sqlx::query_as(query).fetch_all(&mut server).await.expect("the list of databases");
    for (name,) in names {
        let pid = name.split('_').nth(2).unwrap_or_default();
        if !Path::new("/proc").join(pid).exists() {
            // Another run that starts at the same time may be faster.
            let _ = server.execute(AssertSqlSafe(format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)"))).await;
        }
    }
}

fn options(url: &str) -> PgConnectOptions {
    PgConnectOptions::from_str(url).expect("HUB_TESTS_POSTGRES_URL is a PostgreSQL URL")
}

fn url_of(database: &str) -> String {
    options(&SERVER).database(database).to_url_lossy().to_string()
}

async fn connect() -> PgConnection {
    PgConnection::connect_with(&options(&SERVER)).await.expect("a connection to PostgreSQL")
}

async fn run(statement: &str) {
    let mut server = connect().await;
    server.execute(AssertSqlSafe(statement)).await.unwrap_or_else(|error| panic!("{statement}: {error}"));
    let _ = server.close().await;
}
