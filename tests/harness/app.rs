//! The service itself, in this process, behind a real socket, on a database of its own.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicI64;

use hub_base::clock::Clock;
use hub_cloud::app::App;
use hub_cloud::http::router;
use hub_cloud::http::serve::Server;
use hub_cloud::upkeep;
use hub_core::config::{Config, PasswordCost, Settings};
use hub_core::tasks::{Done, Task};
use hub_protocol::Timestamp;
use secrecy::ExposeSecret;
use serde_json::Value;
use tempfile::TempDir;
use uuid::Uuid;

use crate::client::Client;
use crate::databases::Backend;
use crate::postgres::{self, Database};
use crate::secrets;

/// How the service is set up, where a test cares.
#[derive(Clone, Default)]
pub struct Options {
    pub clock: Option<Clock>,
    /// Settings that differ from their defaults. Address, database, data directory and master key
    /// are the harness's.
    pub settings: Settings,
}

/// A clock that stays at `time` until the test moves it. The number is microseconds since 1970.
pub fn set_clock(time: Timestamp) -> (Clock, Arc<AtomicI64>) {
    let micros = Arc::new(AtomicI64::new(time.as_micros()));
    (Clock::Set(micros.clone()), micros)
}

/// Does background work of a kind at once, as a worker would.
pub async fn perform(app: &App, kind: &str, payload: Value) -> Done {
    let task = Task {
        task_uuid: Uuid::new_v4(),
        kind: kind.to_owned(),
        payload,
        attempts: 1,
    };
    upkeep::perform(app.clone(), task)
        .await
        .expect("the work is done")
}

/// What keeps the database's place, until the last service on it is gone.
enum Storage {
    /// The file lies in the data directory.
    Sqlite,
    /// Whoever gave the URL sees to it.
    Elsewhere,
    Postgres(#[expect(dead_code, reason = "held, and dropped last")] Database),
}

/// A running service. Dropping it ends the service and removes what it stored.
pub struct TestApp {
    pub app: App,
    pub url: String,
    pub backend: Backend,
    data_dir: Arc<TempDir>,
    storage: Arc<Storage>,
}

/// One for all services of all tests, so that replicas share it.
pub const MASTER_KEY: &str = "6d61737465726b65796f6674686574657374736d61737465726b65796f667468";

impl TestApp {
    pub async fn new(backend: Backend) -> Self {
        Self::with(backend, Options::default()).await
    }

    pub async fn with(backend: Backend, options: Options) -> Self {
        Self::configured(backend, options, |_| ()).await
    }

    /// With what is no setting changed too.
    pub async fn configured(
        backend: Backend,
        options: Options,
        change: impl FnOnce(&mut Config),
    ) -> Self {
        let data_dir = Arc::new(tempfile::tempdir().expect("a directory"));
        let (url, storage) = match backend {
            Backend::Sqlite => (
                format!("sqlite:{}", sqlite_file(&data_dir).display()),
                Storage::Sqlite,
            ),
            Backend::Postgres => {
                let database = Database::create().await;
                (database.url.clone(), Storage::Postgres(database))
            }
        };
        Self::start(backend, options, change, url, data_dir, Arc::new(storage)).await
    }

    /// With the SQLite database, and all else, in this directory.
    pub async fn on_sqlite_in(dir: TempDir, options: Options) -> Self {
        let url = format!("sqlite:{}", sqlite_file(&dir).display());
        Self::start(
            Backend::Sqlite,
            options,
            |_| {},
            url,
            Arc::new(dir),
            Arc::new(Storage::Sqlite),
        )
        .await
    }

    /// On a PostgreSQL database that is the test's own.
    pub async fn on_postgres(
        url: &str,
        options: Options,
        change: impl FnOnce(&mut Config),
    ) -> Self {
        let data_dir = Arc::new(tempfile::tempdir().expect("a directory"));
        let storage = Arc::new(Storage::Elsewhere);
        Self::start(
            Backend::Postgres,
            options,
            change,
            url.to_owned(),
            data_dir,
            storage,
        )
        .await
    }

    /// A second service on the same database, as if on another machine.
    pub async fn replica_of(other: &TestApp, options: Options) -> Self {
        let url = other.app.config.database_url.expose_secret().to_owned();
        Self::start(
            other.backend,
            options,
            |_| (),
            url,
            other.data_dir.clone(),
            other.storage.clone(),
        )
        .await
    }

    async fn start(
        backend: Backend,
        options: Options,
        change: impl FnOnce(&mut Config),
        database_url: String,
        data_dir: Arc<TempDir>,
        storage: Arc<Storage>,
    ) -> Self {
        crate::client::install_tls();
        let settings = Settings {
            listen: Some(([127, 0, 0, 1], 0).into()),
            database_url: Some(database_url),
            database_connections: options
                .settings
                .database_connections
                .or(Some(postgres::CONNECTIONS)),
            data_dir: Some(data_dir.path().to_owned()),
            master_key: Some(MASTER_KEY.to_owned()),
            // Callers may say where they come from.
            trusted_proxies: options
                .settings
                .trusted_proxies
                .or_else(|| Some("127.0.0.1".to_owned())),
            // Hundreds of services share the disk; a test of the reserve asks for one.
            storage_reserve_bytes: options.settings.storage_reserve_bytes.or(Some(0)),
            ..options.settings
        };
        let mut config = Config::load(settings, None).expect("a configuration");
        // This process is a test and not the service.
        config.script_program = crate::process::program("hub-cloud");
        // What pipelines do by themselves would change what most tests look at.
        config.delivers = false;
        // Most tests begin with new accounts, and would wait for nothing else.
        config.password_cost = PasswordCost {
            memory_kib: 8,
            passes: 1,
        };
        change(&mut config);
        let app = App::start(config, options.clock.unwrap_or(Clock::System))
            .await
            .expect("the service starts");
        let server = Server::bind(&app).await.expect("the service listens");
        let url = server.url();
        secrets::forget(&url);
        let serving = app.clone();
        tokio::spawn(async move { server.run(&serving, router::router(&serving)).await });
        Self {
            app,
            url,
            backend,
            data_dir,
            storage,
        }
    }

    /// A caller without credentials.
    pub fn client(&self) -> Client {
        Client::new(&self.url)
    }

    /// Where it keeps what is not in the database.
    pub fn data_dir(&self) -> &Path {
        self.data_dir.path()
    }

    /// The database file, where it is one.
    pub fn sqlite_file(&self) -> Option<PathBuf> {
        matches!(*self.storage, Storage::Sqlite).then(|| sqlite_file(&self.data_dir))
    }
}

impl Drop for TestApp {
    fn drop(&mut self) {
        self.app.shutdown.cancel();
        if let Some(file) = self.sqlite_file().filter(|_| !std::thread::panicking()) {
            secrets::search_sqlite(&self.url, &file);
        }
    }
}

fn sqlite_file(data_dir: &TempDir) -> PathBuf {
    data_dir.path().join("hub-cloud.sqlite")
}
