//! The service under test: the real program, in a process of its own, on a database of its own.

use std::time::{Duration, Instant};

use hub_tests::Backend;
use hub_tests::postgres::Database;
use hub_tests::process::Process;

pub struct Service {
    process: Process,
    pub url: String,
    pub backend: Backend,
    pub dir: tempfile::TempDir,
    pub database: Option<Database>,
}

impl Service {
    pub async fn start(backend: Backend) -> Self {
        Self::start_with(backend, &[]).await
    }

    pub async fn start_with(backend: Backend, flags: &[&str]) -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let database = match backend {
            Backend::Sqlite => None,
            Backend::Postgres => Some(Database::create().await),
        };
        let (process, url) = start(&dir, database.as_ref(), flags).await;
        Self {
            process,
            url,
            backend,
            dir,
            database,
        }
    }

    /// The same service with other flags, at another address.
    pub async fn restart(&mut self, flags: &[&str]) {
        self.process.kill().await;
        (self.process, self.url) = start(&self.dir, self.database.as_ref(), flags).await;
    }

    pub fn sqlite_file(&self) -> std::path::PathBuf {
        self.dir.path().join("hub-cloud.sqlite")
    }

    /// CPU time of the service so far; not that of a database in another process.
    pub fn cpu_time(&self) -> Duration {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.process.id()))
            .expect("the service's times");
        // After the name, which may contain blanks, user and system time are the 12th and 13th
        // fields, in hundredths of a second.
        let (_, fields) = stat.rsplit_once(')').expect("a name in parentheses");
        let times = fields.split_whitespace().skip(11).take(2);
        Duration::from_millis(
            times
                .map(|ticks| ticks.parse::<u64>().expect("a number") * 10)
                .sum(),
        )
    }

    /// What the database has on disk.
    pub async fn stored_bytes(&self) -> u64 {
        let Some(database) = &self.database else {
            let wal = self.dir.path().join("hub-cloud.sqlite-wal");
            return [self.sqlite_file(), wal]
                .iter()
                .filter_map(|file| file.metadata().ok())
                .map(|file| file.len())
                .sum();
        };
        let mut conn = <sqlx_postgres::PgConnection as sqlx::Connection>::connect(&database.url)
            .await
            .expect("a connection");
        let bytes: (i64,) = sqlx::query_as("SELECT pg_database_size(current_database())")
            .fetch_one(&mut conn)
            .await
            .expect("a size");
        bytes.0.unsigned_abs()
    }

    pub fn resident_bytes(&self) -> u64 {
        self.process.resident_bytes()
    }
}

async fn start(
    dir: &tempfile::TempDir,
    database: Option<&Database>,
    flags: &[&str],
) -> (Process, String) {
    let mut arguments = vec![
        "serve",
        "--listen",
        "127.0.0.1:0",
        "--upload-limit-per-minute",
        "4000000000",
    ];
    let path = dir.path().to_str().expect("a path in UTF-8");
    arguments.extend(["--data-dir", path]);
    if let Some(database) = database {
        arguments.extend(["--database-url", &database.url]);
    }
    arguments.extend(flags);
    let mut process = Process::start("hub-cloud", &arguments, &[]);
    let url = process.url().await;
    (process, url)
}

/// The time from the start of the service to its first response, on an existing database.
pub async fn measure_start(backend: Backend) {
    let Service {
        mut process,
        dir,
        database,
        ..
    } = Service::start(backend).await;
    process.kill().await;
    let mut times = Vec::new();
    for _ in 0..10 {
        let started_at = Instant::now();
        let (mut process, _) = start(&dir, database.as_ref(), &[]).await;
        times.push(started_at.elapsed());
        process.kill().await;
    }
    times.sort();
    let median: Duration = times[times.len() / 2];
    println!(
        "start {backend:?}: median {median:?} of {} starts on an existing database",
        times.len()
    );
}

/// Thousands of connections need as many open files.
pub fn raise_file_limit() {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    let _ = setrlimit(Resource::Nofile, limit);
}
