//! Serves one request after the other: checks the peer and reads the request, within bounds of size
//! and time. Executes nothing itself: `Helper` does.

use std::fs;
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::time::{Duration, Instant};

use hub_agent::helper_api::{Answer, MAX_LINE_BYTES, Reason, Refusal, Request};

use crate::refusal::{internal, refuse};
use crate::root::Root;
use crate::{Helper, log};

/// A request must arrive, and its answer be read, within this time: others are waiting.
const PATIENCE: Duration = Duration::from_secs(5);

/// The agent's user.
const AGENT_USER: &str = "hub-agent";

/// Serves until no client has connected for the listener's timeout, if it has one.
pub fn serve(listener: &UnixListener, helper: &mut Helper) -> io::Result<()> {
    loop {
        match listener.accept() {
            Ok((mut stream, _)) => {
                let answer = match serve_request(&mut stream, helper) {
                    Ok(answer) => Answer::Ok(answer),
                    Err(refusal) => Answer::Refused(refusal),
                };
                if let Err(error) = send_answer(&mut stream, &answer) {
                    log(format_args!("the answer could not be sent: {error}"));
                }
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

fn serve_request(
    stream: &mut UnixStream,
    helper: &mut Helper,
) -> Result<serde_json::Value, Refusal> {
    let peer = rustix::net::sockopt::socket_peercred(&*stream)
        .map_err(|error| internal("cannot identify the client")(error.into()))?;
    let user_id = peer.uid.as_raw();
    if user_id != 0 && Some(user_id) != agent_user_id(&helper.root) {
        log(format_args!(
            "refused: user {user_id} may not serve_request"
        ));
        return Err(refuse(
            Reason::Forbidden,
            "only root and the agent's user may call the helper",
        ));
    }
    let line = read_line(stream)?;
    let request: Request = serde_json::from_slice(&line)
        .map_err(|error| refuse(Reason::BadRequest, format!("not a request: {error}")))?;
    let subject = subject(&request);
    let answer = helper.answer(request);
    match (&answer, subject) {
        (Err(refusal), subject) => {
            log(format_args!(
                "refused: {}: {refusal}",
                subject.unwrap_or_else(|| "states".to_owned())
            ));
        }
        (Ok(_), Some(subject)) => log(format_args!("done: {subject}")),
        (Ok(_), None) => {}
    }
    answer
}

/// The subject of a request, for the log; `None` for one that changes nothing.
fn subject(request: &Request) -> Option<String> {
    match request {
        Request::StageApp {
            app_uuid,
            release_uuid,
            ..
        } => Some(format!("stage {release_uuid} of app {app_uuid}")),
        Request::ActivateApp {
            app_uuid,
            release_uuid,
        } => Some(format!("activate {release_uuid} of app {app_uuid}")),
        Request::RollbackApp { app_uuid } => Some(format!("roll back app {app_uuid}")),
        Request::CommitApp { app_uuid } => Some(format!("commit app {app_uuid}")),
        Request::RemoveApp { app_uuid } => Some(format!("remove app {app_uuid}")),
        Request::StageAgent { .. } => Some("stage a version of the agent".to_owned()),
        Request::CleanAgent { .. } => Some("remove old versions of the agent".to_owned()),
        Request::AppStates {} | Request::AdapterFirmware {} => None,
    }
}

fn read_line(stream: &mut UnixStream) -> Result<Vec<u8>, Refusal> {
    let deadline = Instant::now() + PATIENCE;
    let mut line = Vec::new();
    let mut buffer = vec![0; 16 << 10];
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(refuse(
                Reason::BadRequest,
                "the request did not arrive in time",
            ));
        }
        // A client that sends a byte now and then does not get more time.
        stream
            .set_read_timeout(Some(left))
            .map_err(internal("cannot read the request"))?;
        let length = match stream.read(&mut buffer) {
            Ok(0) => {
                return Err(refuse(
                    Reason::BadRequest,
                    "the request ends before the end of its line",
                ));
            }
            Ok(length) => length,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                continue;
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => return Err(internal("cannot read the request")(error)),
        };
        let read = buffer.get(..length).unwrap_or_default();
        if let Some(end) = read.iter().position(|byte| *byte == b'\n') {
            line.extend_from_slice(read.get(..end).unwrap_or_default());
            return Ok(line);
        }
        line.extend_from_slice(read);
        if line.len() as u64 > MAX_LINE_BYTES {
            return Err(refuse(
                Reason::BadRequest,
                format!("the request is longer than {MAX_LINE_BYTES} bytes"),
            ));
        }
    }
}

fn send_answer(stream: &mut UnixStream, answer: &Answer<serde_json::Value>) -> io::Result<()> {
    let mut line = serde_json::to_vec(answer)?;
    line.push(b'\n');
    stream.set_write_timeout(Some(PATIENCE))?;
    stream.write_all(&line)
}

/// The agent's user according to the system's own file: the helper must not need a network for
/// this.
fn agent_user_id(root: &Root) -> Option<u32> {
    let users = fs::read_to_string(root.join("etc/passwd")).ok()?;
    let line = users
        .lines()
        .find(|line| line.split(':').next() == Some(AGENT_USER))?;
    line.split(':').nth(2)?.parse().ok()
}
