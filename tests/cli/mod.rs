//! `hub`, the command line for suppliers and operators, as somebody uses it: a process of its own
//! against a real service.

mod apps;
mod catalog;
mod files;
mod first_hour;
mod hostile;
mod hub_moves;
mod operators;
mod refusals;
mod sessions;
mod streams;
mod switching;
mod switching_releases;
mod vulnerabilities;

use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use hub_tests::process::program;
use serde_json::Value;
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStderr, ChildStdout, Command};

/// The longest time any step may need, also on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);
const PASSWORD: &str = "correct horse battery staple";

/// A person's home.
struct Terminal {
    home: TempDir,
    environment: Vec<(String, String)>,
}

struct Output {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

impl Output {
    #[track_caller]
    fn expect(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "{}{}", self.stdout, self.stderr);
        self
    }

    /// It says this to the person.
    #[track_caller]
    fn says(&self, text: &str) -> &Self {
        assert!(
            self.stderr.contains(text),
            "no `{text}` in: {}",
            self.stderr
        );
        self
    }

    #[track_caller]
    fn json(&self) -> Value {
        serde_json::from_str(&self.stdout)
            .unwrap_or_else(|error| panic!("{error}: {}", self.stdout))
    }
}

impl Terminal {
    fn new() -> Self {
        Self {
            home: tempfile::tempdir().expect("a directory"),
            environment: Vec::new(),
        }
    }

    /// Somebody with a new account and a tenant, in whose home the session is.
    async fn of_new_tenant(url: &str) -> Self {
        let terminal = Self::new();
        let email = format!("{}@example.com", uuid::Uuid::new_v4().simple());
        let arguments = [
            "register",
            "--service-url",
            url,
            "--email",
            &email,
            "--password-stdin",
        ];
        terminal.run_with(&arguments, PASSWORD).await.expect(0);
        terminal
            .run(&["tenants", "create", "Warehouse"])
            .await
            .expect(0);
        terminal
    }

    fn with(mut self, name: &str, value: &str) -> Self {
        self.environment.push((name.to_owned(), value.to_owned()));
        self
    }

    fn credentials(&self) -> PathBuf {
        self.home.path().join("hub/credentials.json")
    }

    fn stored(&self) -> Value {
        serde_json::from_slice(&std::fs::read(self.credentials()).expect("a login")).expect("JSON")
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(program("hub"));
        for name in [
            "HUB_SERVICE_URL",
            "HUB_API_KEY",
            "HUB_TENANT",
            "HUB_PROFILE",
        ] {
            command.env_remove(name);
        }
        // No desktop, so no browser of its own.
        command
            .args(arguments)
            .current_dir(self.home.path())
            .env("PATH", "")
            .env("XDG_CONFIG_HOME", self.home.path());
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        command
    }

    async fn run(&self, arguments: &[&str]) -> Output {
        self.run_with(arguments, "").await
    }

    /// With this on standard input.
    async fn run_with(&self, arguments: &[&str], input: &str) -> Output {
        let mut child = self.command(arguments).spawn().expect("hub starts");
        // It may end without reading.
        let _ = child
            .stdin
            .take()
            .expect("its input")
            .write_all(input.as_bytes())
            .await;
        let output = tokio::time::timeout(PATIENCE, child.wait_with_output()).await;
        let output = output
            .unwrap_or_else(|_| panic!("hub {arguments:?} does not end"))
            .expect("it ends");
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
        Output {
            code: output.status.code(),
            stdout: text(output.stdout),
            stderr: text(output.stderr),
        }
    }

    /// The JSON that a command prints.
    async fn json(&self, arguments: &[&str]) -> Value {
        self.run(&[arguments, &["--json"]].concat())
            .await
            .expect(0)
            .json()
    }

    fn follow(&self, arguments: &[&str]) -> Following {
        let mut child = self.command(arguments).spawn().expect("hub starts");
        let lines = BufReader::new(child.stdout.take().expect("its output")).lines();
        let notes = BufReader::new(child.stderr.take().expect("its messages")).lines();
        Following {
            child,
            lines,
            notes,
        }
    }
}

/// A command that goes on until it is ended.
struct Following {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
    notes: Lines<BufReader<ChildStderr>>,
}

impl Following {
    async fn line(&mut self) -> String {
        let line = tokio::time::timeout(PATIENCE, self.lines.next_line())
            .await
            .expect("a line in time");
        line.expect("text").expect("another line")
    }

    async fn json(&mut self) -> Value {
        let line = self.line().await;
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"))
    }

    /// Waits until it tells the person this.
    async fn note(&mut self, text: &str) -> String {
        loop {
            let note = tokio::time::timeout(PATIENCE, self.notes.next_line()).await;
            let note = note
                .unwrap_or_else(|_| panic!("no `{text}`"))
                .expect("text");
            let note = note.unwrap_or_else(|| panic!("it ended without `{text}`"));
            if note.contains(text) {
                return note;
            }
        }
    }

    /// Ctrl-C; answers its exit code.
    async fn interrupt(mut self) -> Option<i32> {
        let id = self
            .child
            .id()
            .and_then(|id| i32::try_from(id).ok())
            .and_then(rustix::process::Pid::from_raw);
        rustix::process::kill_process(id.expect("it runs"), rustix::process::Signal::INT)
            .expect("a signal");
        tokio::time::timeout(PATIENCE, self.child.wait())
            .await
            .expect("it ends")
            .expect("a status")
            .code()
    }
}
