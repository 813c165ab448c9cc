//! A real mail server (`smtp/serve`), and mail that waits in a service to be sent.

use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use hub_base::db::sql;
use hub_base::sealing::stored::MAIL;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};
use uuid::Uuid;

use crate::app::TestApp;

pub const USER: &str = "hubs";
/// Needs escaping in a URL.
pub const PASSWORD: &str = "p@ss:w/rd";
const PASSWORD_IN_URL: &str = "p%40ss%3Aw%2Frd";

/// How long a mail may take: a service that was killed while it sent one has it leased for two
/// minutes.
const PATIENCE: Duration = Duration::from_secs(180);

/// Runs until it is dropped, or stopped.
pub struct MailServer {
    process: Child,
    lines: Lines<BufReader<ChildStdout>>,
    pub port: u16,
    /// It proves to be `localhost` with this one.
    pub certificate: PathBuf,
    is_plain: bool,
}

impl MailServer {
    /// A server that accepts mail over STARTTLS only; none where it cannot be installed.
    pub async fn start() -> Option<Self> {
        Self::started(false).await
    }

    /// One without encryption.
    pub async fn start_plain() -> Option<Self> {
        Self::started(true).await
    }

    async fn started(is_plain: bool) -> Option<Self> {
        let server = Self::spawn(crate::ports::lasting(), is_plain).await;
        if server.is_none() {
            crate::skip(
                "mail tests",
                "a mail server (openssl, python3-venv, and aiosmtpd from PyPI)",
            );
        }
        server
    }

    async fn spawn(port: u16, is_plain: bool) -> Option<Self> {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/harness/smtp/serve");
        let mut command = Command::new(script);
        command.args([
            "--port",
            &port.to_string(),
            "--user",
            USER,
            "--password",
            PASSWORD,
        ]);
        if is_plain {
            command.arg("--plain");
        }
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .kill_on_drop(true);
        let mut process = command.spawn().expect("the mail server's script starts");
        let mut lines =
            BufReader::new(process.stdout.take().expect("standard output is piped")).lines();
        let Some(line) = lines.next_line().await.expect("the mail server's output") else {
            let status = process.wait().await.expect("the mail server ends");
            assert_eq!(status.code(), Some(75), "the mail server failed");
            return None;
        };
        let line: Value = serde_json::from_str(&line).expect("JSON");
        let port = line["listening"]
            .as_u64()
            .and_then(|port| u16::try_from(port).ok())
            .expect("a port");
        let certificate = line["certificate"].as_str().expect("a certificate").into();
        Some(Self {
            process,
            lines,
            port,
            certificate,
            is_plain,
        })
    }

    /// The `smtp-url` of a service that sends its mail here.
    pub fn url(&self) -> String {
        let tls = if self.is_plain { "" } else { "?tls=required" };
        format!(
            "smtp://{USER}:{PASSWORD_IN_URL}@localhost:{}{tls}",
            self.port
        )
    }

    /// It is gone; its address stays its own.
    pub async fn stop(&mut self) {
        self.process.kill().await.expect("the mail server ends");
    }

    pub async fn go_on(&mut self) {
        *self = Self::spawn(self.port, self.is_plain)
            .await
            .expect("the mail server starts again");
    }

    /// The next line it reports: a mail, or a refusal.
    pub async fn next(&mut self) -> Value {
        let line = tokio::time::timeout(PATIENCE, self.lines.next_line())
            .await
            .expect("mail in time");
        let line = line
            .expect("the mail server's output")
            .expect("the mail server runs");
        serde_json::from_str(&line).expect("JSON")
    }

    /// The next mail, to this recipient.
    pub async fn mail_to(&mut self, recipient: &str) -> Value {
        let mail = self.next().await;
        assert_eq!(mail["recipients"], serde_json::json!([recipient]), "{mail}");
        mail
    }
}

/// The token in a mail's text: the first line that is set apart.
pub fn token_in(text: &str) -> String {
    let line = text.lines().find_map(|line| line.strip_prefix("    "));
    line.unwrap_or_else(|| panic!("no token in {text}"))
        .trim()
        .to_owned()
}

/// A mail that waits to be sent.
#[derive(Clone, Debug)]
pub struct WaitingMail {
    pub to: String,
    /// Empty of a mail without one.
    pub token: String,
}

/// All mail that waits, oldest first.
pub async fn waiting(app: &TestApp) -> Vec<WaitingMail> {
    let mut conn = app.app.db.read().await.expect("a connection");
    let rows: Vec<(Uuid, Vec<u8>)> =
        sql("SELECT mail_uuid, sealed_mail FROM mails ORDER BY mail_uuid")
            .all(&mut conn)
            .await
            .expect("rows");
    let opened = rows.into_iter().map(|(mail_uuid, sealed)| {
        let mail = app
            .app
            .sealer
            .open(MAIL, &mail_uuid.to_string(), &sealed)
            .expect("a sealed mail");
        let mail: Value = serde_json::from_slice(&mail).expect("JSON");
        let mut parts = mail["letter"]["parts"].as_array().into_iter().flatten();
        let token = parts
            .find_map(|part| part["Code"].as_str())
            .unwrap_or_default()
            .to_owned();
        WaitingMail {
            to: mail["to"].as_str().expect("a recipient").to_owned(),
            token,
        }
    });
    opened.collect()
}

/// The token that was last mailed to somebody.
pub async fn token_for(app: &TestApp, email: &str) -> String {
    let mails = waiting(app).await;
    let mail = mails.iter().rev().find(|mail| mail.to == email);
    mail.unwrap_or_else(|| panic!("no mail to {email} in {mails:?}"))
        .token
        .clone()
}
