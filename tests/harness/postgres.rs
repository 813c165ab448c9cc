//! PostgreSQL databases of a test's own. The schema is built once a run, in a template; each test
//! gets a copy and drops it.

use std::net::{TcpStream, ToSocketAddrs};
use std::path::Path;
use std::str::FromStr;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::Sender;
use std::time::Duration;

use hub_base::clock::Clock;
use hub_base::db::{Db, citus, migrate};
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, Executor};
use sqlx_postgres::{PgConnectOptions, PgConnection};
use tokio::sync::OnceCell;

/// The server that holds the test databases. The user must be allowed to create them.
pub static SERVER: LazyLock<String> = LazyLock::new(|| {
    let given = std::env::var("HUB_TESTS_POSTGRES_URL")
        .ok()
        .filter(|url| !url.is_empty());
    given.unwrap_or_else(|| "postgres://postgres@127.0.0.1:5432/postgres".to_owned())
});

/// The tablespace of the tests' databases: in memory, creating and dropping one takes half of the
/// time.
static TABLESPACE: LazyLock<Option<String>> = LazyLock::new(|| {
    let given = std::env::var("HUB_TESTS_POSTGRES_TABLESPACE").ok();
    given.filter(|name| !name.is_empty())
});

/// The connections of a service in a test, besides those in the background. PostgreSQL accepts
/// about a hundred, of the services of all tests that run at a time.
pub const CONNECTIONS: u32 = 8;

/// The workers, where the server is the coordinator of a cluster of Citus: `HOST:PORT`, separated
/// by commas. The user, who needs no password, must be allowed to create extensions.
static WORKERS: LazyLock<Vec<(String, u16)>> = LazyLock::new(|| {
    let given = std::env::var("HUB_TESTS_CITUS_WORKERS").unwrap_or_default();
    let workers = given.split(',').filter(|worker| !worker.is_empty());
    let parsed = workers.map(|worker| {
        let (host, port) = worker.rsplit_once(':').expect("HOST:PORT");
        (host.to_owned(), port.parse().expect("a port"))
    });
    parsed.collect()
});

/// Whether a PostgreSQL server accepts connections there.
pub fn is_reachable() -> bool {
    static REACHABLE: LazyLock<bool> = LazyLock::new(|| {
        let options = options(&SERVER);
        let addresses = (options.get_host(), options.get_port()).to_socket_addrs();
        let mut addresses = addresses.into_iter().flatten();
        addresses
            .any(|address| TcpStream::connect_timeout(&address, Duration::from_secs(2)).is_ok())
    });
    *REACHABLE
}

/// Where PostgreSQL was expected, for people.
pub fn place() -> String {
    let options = options(&SERVER);
    format!(
        "PostgreSQL at {}:{} (HUB_TESTS_POSTGRES_URL)",
        options.get_host(),
        options.get_port()
    )
}

/// A database that is dropped after this value.
pub struct Database {
    name: String,
    pub url: String,
}

impl Database {
    /// With the schema.
    pub async fn create() -> Self {
        Self::copy_of(template().await).await
    }

    /// Without a schema.
    pub async fn empty() -> Self {
        Self::copy_of("template0").await
    }

    async fn copy_of(template: &str) -> Self {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let name = format!(
            "hub_tests_{}_{}",
            std::process::id(),
            COUNT.fetch_add(1, Ordering::Relaxed)
        );
        let mut statement = format!("CREATE DATABASE {name} TEMPLATE {template}");
        if let Some(tablespace) = &*TABLESPACE {
            statement.push_str(&format!(" TABLESPACE {tablespace}"));
        }
        run(&statement).await;
        // No test stops this server, so a commit that is not yet on its disk is as good as one that
        // is.
        run(&format!(
            "ALTER DATABASE {name} SET synchronous_commit = off"
        ))
        .await;
        let url = url_of(&name);
        Self { name, url }
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        // A drop waits for a checkpoint of the whole server, so a test does not wait for the drop.
        let _ = DROPPED.send(std::mem::take(&mut self.name));
    }
}

/// The names of databases that are no longer used. A thread drops them one by one; the next run
/// drops what is left when this process ends.
static DROPPED: LazyLock<Sender<String>> = LazyLock::new(|| {
    let (sender, names) = std::sync::mpsc::channel::<String>();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("a runtime");
        for name in names {
            runtime.block_on(run(&format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)")));
        }
    });
    sender
});

/// The run's template, created on first use.
async fn template() -> &'static str {
    static TEMPLATE: OnceCell<String> = OnceCell::const_new();
    let made = TEMPLATE.get_or_init(|| async {
        drop_left_overs().await;
        let name = format!("hub_tests_{}_template", std::process::id());
        run(&format!("CREATE DATABASE {name}")).await;
        if !WORKERS.is_empty() {
            make_cluster(&name).await;
        }
        let db = Db::open(&url_of(&name)).expect("a database url");
        migrate::run(&db, Clock::System.now())
            .await
            .expect("the schema applies to an empty PostgreSQL");
        if !WORKERS.is_empty() {
            citus::distribute(&db).await.expect("tables to distribute");
        }
        db.close().await;
        if !WORKERS.is_empty() {
            // What Citus runs in a database keeps it from being copied.
            run(&format!("ALTER DATABASE {name} ALLOW_CONNECTIONS false")).await;
            run(&format!(
                "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity \
                 WHERE datname = '{name}'"
            ))
            .await;
        }
        name
    });
    made.await
}

/// Makes the databases of this name on all servers a cluster, with few shards.
async fn make_cluster(name: &str) {
    let mut statements = Vec::new();
    for server in servers() {
        run_on(server.clone().database(name), "CREATE EXTENSION citus").await;
        let (host, port) = (server.get_host(), server.get_port());
        let function = if statements.is_empty() {
            "citus_set_coordinator_host"
        } else {
            "citus_add_node"
        };
        statements.push(format!("SELECT {function}('{host}', {port})"));
    }
    statements.push(format!("ALTER DATABASE {name} SET citus.shard_count = 4"));
    for statement in statements {
        run_on(options(&SERVER).database(name), &statement).await;
    }
}

/// Databases of runs that ended without cleaning up; this process's template is always one, since
/// nothing runs after the last test.
async fn drop_left_overs() {
    let mut server = connect().await;
    let query = "SELECT datname FROM pg_database WHERE datname LIKE 'hub\\_tests\\_%'";
    let names: Vec<(String,)> = sqlx::query_as(query)
        .fetch_all(&mut server)
        .await
        .expect("the list of databases");
    for (name,) in names {
        let pid = name.split('_').nth(2).unwrap_or_default();
        if !Path::new("/proc").join(pid).exists() {
            // Another run that starts at the same time may be faster.
            for server in servers() {
                if let Ok(mut server) = PgConnection::connect_with(&server).await {
                    let drop = format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)");
                    let _ = server.execute(AssertSqlSafe(drop)).await;
                }
            }
        }
    }
}

fn options(url: &str) -> PgConnectOptions {
    PgConnectOptions::from_str(url).expect("HUB_TESTS_POSTGRES_URL is a PostgreSQL URL")
}

fn url_of(database: &str) -> String {
    options(&SERVER)
        .database(database)
        .to_url_lossy()
        .to_string()
}

async fn connect() -> PgConnection {
    PgConnection::connect_with(&options(&SERVER))
        .await
        .expect("a connection to PostgreSQL")
}

/// The server, and the workers of a cluster.
fn servers() -> Vec<PgConnectOptions> {
    let mut servers = vec![options(&SERVER)];
    for (host, port) in &*WORKERS {
        servers.push(options(&SERVER).host(host).port(*port));
    }
    servers
}

async fn run(statement: &str) {
    for server in servers() {
        run_on(server, statement).await;
    }
}

async fn run_on(server: PgConnectOptions, statement: &str) {
    let mut server = PgConnection::connect_with(&server)
        .await
        .expect("a connection to PostgreSQL");
    server
        .execute(AssertSqlSafe(statement))
        .await
        .unwrap_or_else(|error| panic!("{statement}: {error}"));
    let _ = server.close().await;
}
