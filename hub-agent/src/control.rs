//! The socket in the state directory through which other commands reach the running agent; only the
//! agent's user and root can connect. A request is one line, the reply is one JSON document.

use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream as BlockingStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use hub_protocol::HubUuid;
use secrecy::{ExposeSecret, SecretString};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};

use crate::cloud::{self, ClaimError};
use crate::error::Failure;
use crate::status::{Agent, Status};

const SOCKET: &str = "control.sock";
const MAX_LINE_BYTES: u64 = 4_096;

/// The agent answers at once.
const STATUS_PATIENCE: Duration = Duration::from_secs(5);
/// A claim includes a call of the service.
const CLAIM_PATIENCE: Duration = Duration::from_secs(120);

/// The outcome of a claim.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "outcome")]
pub enum ClaimReply {
    Claimed { hub_uuid: HubUuid },
    Refused { message: String },
    Later { message: String },
}

impl From<Result<HubUuid, ClaimError>> for ClaimReply {
    fn from(result: Result<HubUuid, ClaimError>) -> Self {
        match result {
            Ok(hub_uuid) => Self::Claimed { hub_uuid },
            Err(error @ (ClaimError::Code(_) | ClaimError::Hub(_))) => Self::Refused {
                message: error.to_string(),
            },
            Err(error @ ClaimError::Later { .. }) => Self::Later {
                message: error.to_string(),
            },
        }
    }
}

impl ClaimReply {
    pub fn into_result(self) -> Result<HubUuid, Failure> {
        match self {
            Self::Claimed { hub_uuid } => Ok(hub_uuid),
            Self::Refused { message } => Err(Failure::Failed(message)),
            Self::Later { message } => Err(Failure::TryAgain(message)),
        }
    }
}

/// The socket's path through an open directory: the path of a socket is limited to 107 bytes, and
/// the state directory's may be longer.
fn socket_path(dir: &File) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}/{SOCKET}", dir.as_raw_fd()))
}

/// Serves until it is dropped. The state directory's lock must be held: a socket that exists is
/// then a dead agent's.
pub async fn serve(state_dir: &Path, agent: Arc<Agent>) -> io::Result<()> {
    let dir = File::open(state_dir)?;
    let path = socket_path(&dir);
    match std::fs::remove_file(&path) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let listener = UnixListener::bind(&path)?;
    // Every client that can connect can claim the hub, and other users may be able to enter the
    // directory.
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600))?;
    loop {
        let (stream, _) = listener.accept().await?;
        let agent = agent.clone();
        tokio::spawn(async move {
            if let Err(error) = answer(stream, &agent).await {
                tracing::debug!(%error, "a command's request could not be answered");
            }
        });
    }
}

async fn answer(stream: UnixStream, agent: &Agent) -> io::Result<()> {
    let (read, mut write) = stream.into_split();
    let mut line = String::new();
    let read_line = async {
        BufReader::new(read.take(MAX_LINE_BYTES))
            .read_line(&mut line)
            .await
    };
    tokio::time::timeout(Duration::from_secs(10), read_line)
        .await
        .map_err(|_| io::Error::from(ErrorKind::TimedOut))??;
    let reply = match line.trim_end().split_once(' ') {
        None if line.trim_end() == "status" => serde_json::to_vec(&agent.status())?,
        Some(("claim", code)) => {
            let code = SecretString::from(code.to_owned());
            let claimed = cloud::claim(&agent.service, &code, &agent.spool)
                .await
                .map(|credentials| credentials.hub_uuid);
            serde_json::to_vec(&ClaimReply::from(claimed))?
        }
        _ => return Err(io::Error::other("unknown request")),
    };
    write.write_all(&reply).await?;
    write.shutdown().await
}

/// The running agent's status; `None` if no agent runs on this state directory.
pub fn request_status(state_dir: &Path) -> Result<Option<Status>, Failure> {
    request(state_dir, "status", STATUS_PATIENCE)
}

/// Has the running agent claim the hub; `None` if no agent runs.
pub fn request_claim(state_dir: &Path, code: &SecretString) -> Result<Option<ClaimReply>, Failure> {
    // A request is one line, and no code contains a line break.
    let code = code.expose_secret().split_whitespace().collect::<String>();
    request(state_dir, &format!("claim {code}"), CLAIM_PATIENCE)
}

fn request<T: DeserializeOwned>(
    state_dir: &Path,
    request_line: &str,
    patience: Duration,
) -> Result<Option<T>, Failure> {
    let reply = match exchange(state_dir, request_line, patience) {
        Ok(reply) => reply,
        Err(error)
            if matches!(
                error.kind(),
                ErrorKind::NotFound | ErrorKind::ConnectionRefused
            ) =>
        {
            return Ok(None);
        }
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {
            return Err(Failure::Failed(format!(
                "{} cannot be read by this user; run this command as root or as the agent's user (sudo -u hub-agent)",
                state_dir.display()
            )));
        }
        // The error of a socket's timeout.
        Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
            return Err(Failure::Failed(format!(
                "an agent is running but does not answer within {} s; restart it (systemctl restart hub-agent)",
                patience.as_secs()
            )));
        }
        Err(error) => {
            return Err(Failure::Failed(format!(
                "the running agent does not answer: {error}"
            )));
        }
    };
    serde_json::from_slice(&reply).map(Some).map_err(|error| {
        Failure::Failed(format!(
            "the running agent's answer is not understood ({error}); it may be another version: restart it"
        ))
    })
}

fn exchange(state_dir: &Path, request_line: &str, patience: Duration) -> io::Result<Vec<u8>> {
    let dir = File::open(state_dir)?;
    let mut stream = BlockingStream::connect(socket_path(&dir))?;
    stream.set_read_timeout(Some(patience))?;
    stream.set_write_timeout(Some(patience))?;
    stream.write_all(format!("{request_line}\n").as_bytes())?;
    let mut reply = Vec::new();
    stream.read_to_end(&mut reply)?;
    Ok(reply)
}
