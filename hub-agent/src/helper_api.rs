//! The interface between the agent and `hub-agent-helper`, its part that runs as root: a request is
//! one line of JSON, the answer is one line, then the connection ends. The client blocks, so tasks
//! call it within `spawn_blocking`. The helper trusts nothing in a request: it verifies every
//! release itself. Every request can be repeated, for example after a lost answer.
//!
//! The life of an app's release: `stage_app`, `activate_app` (the unit runs the new release), then
//! `commit_app` to keep it, or `rollback_app` to restore the committed release. After a first
//! installation there is none, and the app is removed.

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use hub_protocol::{AppUuid, ReleaseUuid};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// Where systemd listens for the helper.
pub const SOCKET: &str = "/run/hub-agent-helper/socket";
/// The most bytes of a request, and of an answer.
pub const MAX_LINE_BYTES: u64 = 512 << 10;

/// Copying, checking and unpacking take as long as the disk needs.
const STAGE_PATIENCE: Duration = Duration::from_secs(3_600);
/// Starting and stopping units may take up to their own time limits, and other requests may come
/// first.
const PATIENCE: Duration = Duration::from_secs(600);
/// Files of the kernel are read at once, unless other requests come first.
const READ_PATIENCE: Duration = Duration::from_secs(30);

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(
    tag = "request",
    rename_all = "camelCase",
    rename_all_fields = "camelCase",
    deny_unknown_fields
)]
pub enum Request {
    /// Checks a release and unpacks it beside the running one: [`Staged`]. Removes staged releases
    /// that are neither active nor committed.
    StageApp {
        app_uuid: AppUuid,
        release_uuid: ReleaseUuid,
        /// Byte for byte as it was signed.
        manifest: String,
        signature: String,
        /// The downloaded file: a path relative to the agent's state directory, without links in
        /// it.
        file: PathBuf,
    },
    /// Has the app's unit run a staged release, and starts it: [`Done`]. After
    /// [`Reason::StartFailed`] the release stays active: roll it back.
    ActivateApp {
        app_uuid: AppUuid,
        release_uuid: ReleaseUuid,
    },
    /// Restarts the committed release; if there is none, removes the app: [`Done`]. Staged releases
    /// are removed. Does nothing if the committed release is active.
    RollbackApp { app_uuid: AppUuid },
    /// Keeps the active release: raises the hub's minimum counter to the release's, and removes all
    /// other releases: [`Done`].
    CommitApp { app_uuid: AppUuid },
    /// Stops the app and removes its unit, its releases and its files: [`Done`], also if there is
    /// no such app.
    RemoveApp { app_uuid: AppUuid },
    /// Every app on this hub: [`AppStates`].
    AppStates {},
    /// The firmware of Bluetooth adapters: [`AdapterFirmware`].
    AdapterFirmware {},
    /// Checks a release of the agent and stores it beside the others: [`StagedAgent`].
    StageAgent {
        manifest: String,
        signature: String,
        /// The downloaded file, as for an app.
        file: PathBuf,
        /// Directories of versions that must stay: the running one, the confirmed one, one on
        /// trial.
        in_use: Vec<String>,
    },
    /// Removes all other versions of the agent: [`Done`].
    CleanAgent {
        in_use: Vec<String>,
        /// The version that works: its counter becomes the hub's minimum.
        #[serde(default)]
        confirmed: Option<String>,
    },
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Answer<T> {
    Ok(T),
    Refused(Refusal),
}

/// The request is done, and on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Done {}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Staged {
    pub name: String,
    pub version: String,
    /// How long it has to run before it is kept.
    pub health_secs: u32,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StagedAgent {
    /// The version's directory in `/var/lib/hub-agent-versions`: `<version>-<first 12 digits of its
    /// sha256>`. It contains `hub-agent`.
    pub dir: String,
    pub version: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AppStates {
    pub apps: Vec<AppState>,
}

/// The firmware of adapters, as one line of text, by the names of the adapters, such as `hci0`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AdapterFirmware {
    pub adapters: BTreeMap<String, String>,
}

/// An app as it is on this hub.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AppState {
    pub app_uuid: AppUuid,
    pub name: String,
    /// The release that its unit runs; `None` while its first release is only staged.
    pub active: Option<AppRelease>,
    /// The release that a rollback restores: `active`, unless that is on trial.
    pub committed: Option<AppRelease>,
    /// Staged releases that are neither active nor committed.
    pub staged: Vec<ReleaseUuid>,
    /// The unit's state, if there is an active release. `None` if the helper works on a root
    /// directory that is not running.
    pub unit: Option<UnitState>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AppRelease {
    pub release_uuid: ReleaseUuid,
    pub version: String,
    pub health_secs: u32,
}

/// A unit, in systemd's terms.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UnitState {
    /// `active`, `activating` (also while it waits for its restart), `deactivating`, `inactive` or
    /// `failed`.
    pub active_state: String,
    /// The state in detail, such as `running`, `auto-restart`, `dead` or `failed`.
    pub sub_state: String,
    /// Why it last ended: `success`, `exit-code`, `signal`, `oom-kill`, `start-limit-hit` and
    /// others.
    pub result: String,
    /// How its main process last ended, such as `exit status 1` or `signal 9`; `None` before that.
    pub exit: Option<String>,
    /// How often systemd has restarted it since it was last activated.
    pub restarts: u64,
    /// How long it has been in `sub_state`.
    pub for_secs: u64,
}

/// Why a request was not done. Nothing has changed, except after [`Reason::StartFailed`] and
/// [`Reason::Internal`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{message}")]
pub struct Refusal {
    pub reason: Reason,
    /// The reason as text, to display.
    pub message: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Reason {
    /// The peer is neither root nor the agent's user.
    Forbidden,
    /// The request is malformed.
    BadRequest,
    /// No key on this hub signed the manifest, or it is not a manifest.
    Untrusted,
    /// A release of the agent instead of an app's, or the reverse.
    WrongKind,
    WrongArchitecture,
    /// The hub has committed a release with a higher counter, and this one is not marked as a
    /// downgrade.
    CounterTooLow,
    /// The app was installed under another name.
    WrongName,
    /// The file does not exist, or is not a regular file below the agent's state directory.
    FileUnreadable,
    /// The file is not the one the manifest describes.
    DigestMismatch,
    /// The archive contains something that no app may have, or lacks the entry point.
    ArchiveRefused,
    /// The release's uuid is used by another release; or all versions of the agent are in use.
    Conflict,
    /// The disk has too little space.
    NoSpace,
    /// There is no such app, or the release is not staged.
    NotStaged,
    /// systemd could not start it.
    StartFailed,
    /// The helper itself failed: the disk, or systemd. The request may be repeated.
    Internal,
}

impl Reason {
    /// Whether the same release will always be refused.
    pub const fn condemns_release(self) -> bool {
        matches!(
            self,
            Self::Untrusted
                | Self::WrongKind
                | Self::WrongArchitecture
                | Self::DigestMismatch
                | Self::ArchiveRefused
        )
    }
}

#[derive(Debug, thiserror::Error)]
pub enum HelperError {
    /// The request may have been executed: it is to be repeated.
    #[error("hub-agent-helper does not answer: {0}")]
    NoAnswer(#[from] io::Error),
    #[error("hub-agent-helper refuses: {0}")]
    Refused(#[from] Refusal),
}

/// The client.
#[derive(Clone, Debug)]
pub struct Helper {
    socket: PathBuf,
}

impl Helper {
    /// Usually [`SOCKET`].
    pub fn at(socket: &Path) -> Self {
        Self {
            socket: socket.to_owned(),
        }
    }

    /// See [`Request::StageApp`].
    pub fn stage_app(
        &self,
        app_uuid: AppUuid,
        release_uuid: ReleaseUuid,
        manifest: &str,
        signature: &str,
        file: &Path,
    ) -> Result<Staged, HelperError> {
        let (manifest, signature, file) =
            (manifest.to_owned(), signature.to_owned(), file.to_owned());
        self.ask(
            &Request::StageApp {
                app_uuid,
                release_uuid,
                manifest,
                signature,
                file,
            },
            STAGE_PATIENCE,
        )
    }

    /// See [`Request::ActivateApp`].
    pub fn activate_app(
        &self,
        app_uuid: AppUuid,
        release_uuid: ReleaseUuid,
    ) -> Result<(), HelperError> {
        self.done(&Request::ActivateApp {
            app_uuid,
            release_uuid,
        })
    }

    /// See [`Request::RollbackApp`].
    pub fn rollback_app(&self, app_uuid: AppUuid) -> Result<(), HelperError> {
        self.done(&Request::RollbackApp { app_uuid })
    }

    /// See [`Request::CommitApp`].
    pub fn commit_app(&self, app_uuid: AppUuid) -> Result<(), HelperError> {
        self.done(&Request::CommitApp { app_uuid })
    }

    /// See [`Request::RemoveApp`].
    pub fn remove_app(&self, app_uuid: AppUuid) -> Result<(), HelperError> {
        self.done(&Request::RemoveApp { app_uuid })
    }

    /// See [`Request::AppStates`].
    pub fn app_states(&self) -> Result<Vec<AppState>, HelperError> {
        self.app_states_within(PATIENCE)
    }

    /// As [`Request::AppStates`], for callers that prefer no answer to a late one.
    pub fn app_states_within(&self, patience: Duration) -> Result<Vec<AppState>, HelperError> {
        self.ask(&Request::AppStates {}, patience)
            .map(|AppStates { apps }| apps)
    }

    /// See [`Request::AdapterFirmware`].
    pub fn adapter_firmware(&self) -> Result<BTreeMap<String, String>, HelperError> {
        self.ask(&Request::AdapterFirmware {}, READ_PATIENCE)
            .map(|AdapterFirmware { adapters }| adapters)
    }

    /// See [`Request::StageAgent`].
    pub fn stage_agent(
        &self,
        manifest: &str,
        signature: &str,
        file: &Path,
        in_use: &[String],
    ) -> Result<StagedAgent, HelperError> {
        let (manifest, signature, file) =
            (manifest.to_owned(), signature.to_owned(), file.to_owned());
        self.ask(
            &Request::StageAgent {
                manifest,
                signature,
                file,
                in_use: in_use.to_vec(),
            },
            STAGE_PATIENCE,
        )
    }

    /// See [`Request::CleanAgent`].
    pub fn clean_agent(
        &self,
        in_use: &[String],
        confirmed: Option<&str>,
    ) -> Result<(), HelperError> {
        self.done(&Request::CleanAgent {
            in_use: in_use.to_vec(),
            confirmed: confirmed.map(str::to_owned),
        })
    }

    fn done(&self, request: &Request) -> Result<(), HelperError> {
        self.ask(request, PATIENCE).map(|Done {}| ())
    }

    fn ask<T: DeserializeOwned>(
        &self,
        request: &Request,
        patience: Duration,
    ) -> Result<T, HelperError> {
        let mut line = serde_json::to_vec(request).map_err(io::Error::from)?;
        line.push(b'\n');
        let mut stream = UnixStream::connect(&self.socket)?;
        stream.set_read_timeout(Some(patience))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        // A helper that refuses without reading has also answered.
        let sent = stream.write_all(&line);
        let mut answer = Vec::new();
        BufReader::new(stream.take(MAX_LINE_BYTES)).read_until(b'\n', &mut answer)?;
        if answer.is_empty() {
            sent?;
            return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
        }
        match serde_json::from_slice(&answer).map_err(io::Error::from)? {
            Answer::Ok(answer) => Ok(answer),
            Answer::Refused(refusal) => Err(refusal.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_and_answers_look_as_documented() {
        let app_uuid = AppUuid(uuid::Uuid::nil());
        let line = serde_json::to_string(&Request::CommitApp { app_uuid }).unwrap();
        assert_eq!(
            line,
            r#"{"request":"commitApp","appUuid":"00000000-0000-0000-0000-000000000000"}"#
        );
        assert_eq!(
            serde_json::to_string(&Request::AppStates {}).unwrap(),
            r#"{"request":"appStates"}"#
        );
        let refusal = Refusal {
            reason: Reason::CounterTooLow,
            message: "no".into(),
        };
        let refused = serde_json::to_string(&Answer::<Done>::Refused(refusal)).unwrap();
        assert_eq!(
            refused,
            r#"{"refused":{"reason":"COUNTER_TOO_LOW","message":"no"}}"#
        );
        assert_eq!(
            serde_json::to_string(&Answer::Ok(Done {})).unwrap(),
            r#"{"ok":{}}"#
        );
        let unknown = r#"{"request":"appStates","more":1}"#;
        assert!(serde_json::from_str::<Request>(unknown).is_err());
    }
}
