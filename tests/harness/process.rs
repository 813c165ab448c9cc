//! The real programs, started, killed and started again. They are taken from where cargo put them
//! beside the tests, so whoever runs the tests builds them first (`tests/run` does).

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};
use tokio::sync::watch;

use crate::databases::Backend;
use crate::ports;
use crate::postgres::{CONNECTIONS, Database};

/// The longest time a start may need.
const START_TIMEOUT: Duration = Duration::from_secs(240);
/// Lines kept to show when something goes wrong.
const KEPT_LINES: usize = 400;

/// A program that runs until it is killed, or dropped.
pub struct Process {
    name: String,
    child: Child,
    lines: Arc<Mutex<VecDeque<String>>>,
    listening: watch::Receiver<Option<String>>,
}

/// A program built from this workspace.
pub fn program(name: &str) -> PathBuf {
    let tests = std::env::current_exe().expect("this program's path");
    // Tests lie in a folder below the programs, benches beside them.
    let path = tests
        .ancestors()
        .skip(1)
        .take(2)
        .map(|folder| folder.join(name))
        .find(|path| path.exists());
    path.unwrap_or_else(|| panic!("{name} is not built; run: cargo build --bins"))
}

impl Process {
    /// Starts a program of this workspace.
    pub fn start(name: &str, arguments: &[&str], environment: &[(&str, &str)]) -> Self {
        let mut command = Command::new(program(name));
        command
            .args(arguments)
            .envs(environment.iter().copied())
            .stdin(Stdio::null());
        Self::spawn(name, command)
    }

    /// Starts any program; what it reads from is the caller's choice.
    pub fn spawn(name: &str, mut command: Command) -> Self {
        command
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        let mut child = command
            .spawn()
            .unwrap_or_else(|error| panic!("{name} does not start: {error}"));
        let mut stderr =
            BufReader::new(child.stderr.take().expect("standard error is piped")).lines();
        let lines = Arc::new(Mutex::new(VecDeque::new()));
        let (announce, listening) = watch::channel(None);
        let kept = lines.clone();
        tokio::spawn(async move {
            while let Ok(Some(line)) = stderr.next_line().await {
                // With `log-format = "json"`, it is the message of a line.
                if let Some((before, url)) = line.split_once("listening on ")
                    && (before.is_empty() || before.ends_with("\"message\":\""))
                {
                    let _ =
                        announce.send(Some(url.split('"').next().unwrap_or_default().to_owned()));
                }
                let mut kept = kept.lock().expect("the lines");
                if kept.len() == KEPT_LINES {
                    kept.pop_front();
                }
                kept.push_back(line);
            }
        });
        Self {
            name: name.to_owned(),
            child,
            lines,
            listening,
        }
    }

    /// The URL it listens on, from its log.
    pub async fn url(&mut self) -> String {
        let url = async {
            Some(
                self.listening
                    .wait_for(Option::is_some)
                    .await
                    .ok()?
                    .clone()
                    .unwrap_or_default(),
            )
        };
        let url = tokio::time::timeout(START_TIMEOUT, url)
            .await
            .ok()
            .flatten();
        url.unwrap_or_else(|| {
            panic!(
                "{} did not begin to listen:\n{}",
                self.name,
                self.last_lines()
            )
        })
    }

    /// `SIGKILL`: no destructor runs, nothing is flushed.
    pub async fn kill(&mut self) {
        self.child
            .kill()
            .await
            .unwrap_or_else(|error| panic!("{} cannot be killed: {error}", self.name));
    }

    /// Waits until it ends by itself; returns its exit code, if no signal ended it.
    pub async fn ended(&mut self) -> Option<i32> {
        self.child.wait().await.expect("it is a child").code()
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: Signal) {
        let id = i32::try_from(self.id())
            .ok()
            .and_then(Pid::from_raw)
            .expect("a process id");
        kill_process(id, signal)
            .unwrap_or_else(|error| panic!("{} gets no signal: {error}", self.name));
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.child.id().expect("it was not waited for")
    }

    /// Memory that is its own. Pages of the program are not: they become private whenever another
    /// process that runs it ends.
    pub fn resident_bytes(&self) -> u64 {
        let path = format!("/proc/{}/smaps_rollup", self.id());
        let text = std::fs::read_to_string(path).expect("the process's memory");
        let kib = |name: &str| -> u64 {
            let line = text
                .lines()
                .find(|line| line.starts_with(name))
                .expect("a known line");
            line.split_whitespace()
                .nth(1)
                .and_then(|number| number.parse().ok())
                .expect("a number")
        };
        kib("Anonymous:") * 1024
    }

    /// Whether it still runs.
    pub fn is_running(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// The last of what it wrote to standard error.
    pub fn last_lines(&self) -> String {
        self.lines
            .lock()
            .expect("the lines")
            .iter()
            .fold(String::new(), |all, line| all + line + "\n")
    }
}

/// The service as a process that keeps its address and its data over any number of deaths.
pub struct Cloud {
    process: Process,
    pub url: String,
    data_dir: TempDir,
    settings: Vec<String>,
    environment: Vec<(String, String)>,
    /// Held, and dropped after the process.
    _database: Option<Database>,
}

/// An address of its own, also while it is stopped.
fn address() -> String {
    format!("127.0.0.1:{}", ports::lasting())
}

impl Cloud {
    pub async fn start(backend: Backend, settings: &[&str]) -> Self {
        Self::start_in(backend, settings, &[]).await
    }

    /// With variables of its own.
    pub async fn start_in(
        backend: Backend,
        settings: &[&str],
        environment: &[(&str, &str)],
    ) -> Self {
        let data_dir = tempfile::tempdir().expect("a directory");
        Self::start_on(data_dir, backend, settings, environment).await
    }

    /// With its data in a directory that may lie on a disk of its own.
    pub async fn start_on(
        data_dir: TempDir,
        backend: Backend,
        settings: &[&str],
        environment: &[(&str, &str)],
    ) -> Self {
        let owned = |&(name, value): &(&str, &str)| (name.to_owned(), value.to_owned());
        let environment: Vec<(String, String)> = environment.iter().map(owned).collect();
        let mut settings: Vec<String> =
            settings.iter().map(|&setting| setting.to_owned()).collect();
        let database = match backend {
            Backend::Sqlite => None,
            Backend::Postgres => Some(Database::create().await),
        };
        if let Some(database) = &database {
            settings.extend([
                "--database-url".to_owned(),
                database.url.clone(),
                "--database-connections".to_owned(),
                CONNECTIONS.to_string(),
            ]);
        }
        let mut process = Self::spawn(&data_dir, &settings, &environment, &address());
        let url = process.url().await;
        Self {
            process,
            url,
            data_dir,
            settings,
            environment,
            _database: database,
        }
    }

    fn spawn(
        data_dir: &TempDir,
        settings: &[String],
        environment: &[(String, String)],
        listen: &str,
    ) -> Process {
        let data_dir = data_dir.path().display().to_string();
        let mut arguments = vec!["serve", "--listen", listen, "--data-dir", &data_dir];
        arguments.extend(settings.iter().map(String::as_str));
        let environment: Vec<(&str, &str)> = environment
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect();
        Process::start("hub-cloud", &arguments, &environment)
    }

    /// Another replica on the same database. The environment has the master key that they share.
    pub async fn replica_of(other: &Self) -> Self {
        let data_dir = tempfile::tempdir().expect("a directory");
        let (settings, environment) = (other.settings.clone(), other.environment.clone());
        let mut process = Self::spawn(&data_dir, &settings, &environment, &address());
        let url = process.url().await;
        Self {
            process,
            url,
            data_dir,
            settings,
            environment,
            _database: None,
        }
    }

    /// Where its keys are, and its database if that is SQLite.
    pub fn data_dir(&self) -> &Path {
        self.data_dir.path()
    }

    /// Its database, unless it shares that of another.
    pub fn database_url(&self) -> String {
        match &self._database {
            Some(database) => database.url.clone(),
            None => format!(
                "sqlite:{}",
                self.data_dir().join("hub-cloud.sqlite").display()
            ),
        }
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.process.id()
    }

    pub fn last_lines(&self) -> String {
        self.process.last_lines()
    }

    pub fn resident_bytes(&self) -> u64 {
        self.process.resident_bytes()
    }

    /// Kills it, starts it again on the same data and the same address, and waits until it answers.
    pub async fn crash(&mut self) {
        self.kill().await;
        self.start_again().await;
    }

    /// `SIGKILL`, as [`Process::kill`].
    pub async fn kill(&mut self) {
        self.process.kill().await;
    }

    /// Stops it as an operator does, and waits until it has ended. Returns its exit code.
    pub async fn stop(&mut self) -> Option<i32> {
        self.process.signal(Signal::TERM);
        self.process.ended().await
    }

    /// Starts it again on the same data and the same address, after it was stopped.
    pub async fn start_again(&mut self) {
        let listen = self.url.trim_start_matches("http://").to_owned();
        self.process = Self::spawn(&self.data_dir, &self.settings, &self.environment, &listen);
        self.process.url().await;
    }

    /// Starts it again on the same address, after it was stopped, on the database at this URL.
    pub async fn start_with_database(&mut self, url: &str) {
        if let Some(at) = self.settings.iter().position(|one| one == "--database-url") {
            self.settings.drain(at..at + 2);
        }
        self.settings
            .extend(["--database-url".to_owned(), url.to_owned()]);
        self.start_again().await;
    }

    /// Stops all its threads where they are, and lets them go on after that.
    pub async fn pause(&self, time: Duration) {
        self.process.signal(Signal::STOP);
        tokio::time::sleep(time).await;
        self.process.signal(Signal::CONT);
    }
}
