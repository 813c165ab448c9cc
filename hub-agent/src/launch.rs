//! The record of which version of the agent runs: the file `<state-dir>/update/state.json`, which
//! the agent and its launcher share. The launcher writes it while no agent runs, the agent writes
//! it while it runs: never both at once. Unknown fields are ignored, because older and newer
//! versions read it.

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::Path;

use aws_lc_rs::digest;
use serde::{Deserialize, Serialize};

use crate::durable;

/// Below the state directory.
pub const FOLDER: &str = "update";
const FILE: &str = "state.json";

/// The version on trial, set only for the process that runs it.
pub const TRIAL_VARIABLE: &str = "HUB_AGENT_TRIAL";
/// Set by the launcher: without one, nothing could restore the previous version.
pub const LAUNCHED_VARIABLE: &str = "HUB_AGENT_LAUNCHED";

/// The most failed trials that are remembered.
const MAX_FAILED: usize = 16;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct LaunchState {
    /// The version that runs when none is on trial: a directory of the versions' directory. The
    /// package's own version when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confirmed: Option<String>,
    /// The package's own binary when `confirmed` was tried. If the package was upgraded since, its
    /// version runs instead.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub packaged: Option<Fingerprint>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trial: Option<Trial>,
    /// Oldest first.
    pub failed: Vec<FailedTrial>,
}

/// The values that distinguish one build of a binary from another. Size and time do not: packages
/// give all their files the time of their changelog's last entry, and two builds may have the same
/// size.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Fingerprint {
    pub bytes: u64,
    pub modified_secs: i64,
    /// `None` where an older version wrote the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
}

impl Fingerprint {
    /// `None` if the file cannot be read.
    pub fn of(path: &Path) -> Option<Self> {
        let mut file = File::open(path).ok()?;
        let metadata = file.metadata().ok()?;
        let mut hash = digest::Context::new(&digest::SHA256);
        let mut buffer = vec![0; 64 << 10];
        loop {
            match file.read(&mut buffer) {
                Ok(0) => break,
                Ok(length) => hash.update(buffer.get(..length).unwrap_or_default()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return None,
            }
        }
        let sha256 = Some(hex::encode(hash.finish()));
        Some(Self {
            bytes: metadata.len(),
            modified_secs: metadata.mtime(),
            sha256,
        })
    }

    /// Compares the digests, or where one is missing, size and time.
    pub fn is_of_the_same_file(&self, other: &Self) -> bool {
        match (&self.sha256, &other.sha256) {
            (Some(one), Some(another)) => one == another,
            _ => (self.bytes, self.modified_secs) == (other.bytes, other.modified_secs),
        }
    }
}

/// A version that has not shown yet that it works.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Trial {
    pub dir: String,
    pub job_uuid: String,
    /// How often it was started.
    #[serde(default)]
    pub boots: u32,
    /// Whether the previous version received advertisements. Only then is silence a fault of the
    /// new one.
    #[serde(default)]
    pub radio_heard: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FailedTrial {
    pub dir: String,
    pub job_uuid: String,
    /// A stable code, such as `NOT_CONFIRMED`.
    pub reason: String,
    pub message: String,
}

impl LaunchState {
    /// The file's content; the default for a hub that was never updated.
    pub fn read(folder: &Path) -> io::Result<Self> {
        match std::fs::read(folder.join(FILE)) {
            Ok(bytes) => serde_json::from_slice(&bytes).map_err(io::Error::other),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Self::default()),
            Err(error) => Err(error),
        }
    }

    /// Replaces the file's content, which is on disk when this returns.
    pub fn write(&self, folder: &Path) -> io::Result<()> {
        std::fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder)?;
        durable::replace(
            folder,
            FILE,
            &serde_json::to_vec_pretty(self).map_err(io::Error::other)?,
        )
    }

    pub fn is_on_trial(&self, trial: &Trial) -> bool {
        self.trial
            .as_ref()
            .is_some_and(|now| (&now.dir, &now.job_uuid) == (&trial.dir, &trial.job_uuid))
    }

    /// Ends the trial: the previous version is restored.
    pub fn fail(&mut self, reason: &str, message: String) {
        let Some(trial) = self.trial.take() else {
            return;
        };
        let failed = FailedTrial {
            dir: trial.dir,
            job_uuid: trial.job_uuid,
            reason: reason.to_owned(),
            message,
        };
        self.failed.push(failed);
        let too_many = self.failed.len().saturating_sub(MAX_FAILED);
        self.failed.drain(..too_many);
    }

    /// Ends the trial: the version on trial is the one that runs from now on.
    pub fn confirm(&mut self) {
        if let Some(trial) = self.trial.take() {
            self.confirmed = Some(trial.dir);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trial() -> Trial {
        Trial {
            dir: "1.2.3-abcdefabcdef".into(),
            job_uuid: "job".into(),
            boots: 1,
            radio_heard: true,
        }
    }

    #[test]
    fn a_missing_file_is_the_default_and_a_damaged_file_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join(FOLDER);
        assert_eq!(LaunchState::read(&folder).unwrap(), LaunchState::default());
        let state = LaunchState {
            trial: Some(trial()),
            ..LaunchState::default()
        };
        state.write(&folder).unwrap();
        assert_eq!(LaunchState::read(&folder).unwrap(), state);
        std::fs::write(folder.join(FILE), b"{\"trial\":").unwrap();
        assert!(LaunchState::read(&folder).is_err());
        std::fs::write(
            folder.join(FILE),
            br#"{"trial": {"dir": "a", "jobUuid": "b"}, "later": 1}"#,
        )
        .unwrap();
        assert_eq!(LaunchState::read(&folder).unwrap().trial.unwrap().boots, 0);
    }

    #[test]
    fn a_trial_ends_once_and_only_the_last_failures_are_kept() {
        let mut state = LaunchState {
            trial: Some(trial()),
            ..LaunchState::default()
        };
        assert!(state.is_on_trial(&trial()));
        state.confirm();
        assert_eq!(
            (state.confirmed.as_deref(), &state.trial),
            (Some("1.2.3-abcdefabcdef"), &None)
        );
        state.fail("NOT_CONFIRMED", String::new());
        assert!(state.failed.is_empty());
        for number in 0..20 {
            state.trial = Some(Trial {
                job_uuid: number.to_string(),
                ..trial()
            });
            state.fail("NOT_CONFIRMED", String::new());
        }
        assert_eq!(
            (state.failed.len(), state.failed[0].job_uuid.as_str()),
            (MAX_FAILED, "4")
        );
    }
}
