//! The settings of backups: where they go, how often, how many are kept, and what seals their keys.

use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use super::files::{FilesConfig, files};
use super::{ConfigError, Settings, lifetime};

const LEAST_INTERVAL: Duration = Duration::from_secs(60);
const DEFAULT_KEEP: u32 = 7;

/// Where a backup is: a file or directory of this machine, or objects of a bucket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BackupPlace {
    Path(PathBuf),
    S3 {
        bucket: String,
        /// The prefix or key, without leading or trailing slash. May be empty.
        key: String,
    },
}

impl FromStr for BackupPlace {
    type Err = ConfigError;

    fn from_str(text: &str) -> Result<Self, ConfigError> {
        let refused = || {
            ConfigError("a backup goes to a file or directory, or to `s3://BUCKET/PREFIX`".into())
        };
        if text.starts_with("s3://") {
            return match files(Some(text), Path::new("")) {
                Ok(FilesConfig::S3 { bucket, prefix }) => Ok(Self::S3 {
                    bucket,
                    key: prefix,
                }),
                _ => Err(refused()),
            };
        }
        match text.is_empty() || text.contains("://") {
            true => Err(refused()),
            false => Ok(Self::Path(PathBuf::from(text))),
        }
    }
}

/// The schedule of backups, and the passphrase of all of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackupConfig {
    /// None if the service makes no backups by itself.
    pub to: Option<BackupPlace>,
    pub every: Duration,
    pub keep: usize,
    pub passphrase_file: Option<PathBuf>,
}

impl BackupConfig {
    pub(super) fn load(flags: &Settings, file: &Settings) -> Result<Self, ConfigError> {
        let to = flags.backup_to.as_ref().or(file.backup_to.as_ref());
        let to = to.map(|to| to.parse::<BackupPlace>()).transpose();
        let to = to.map_err(|ConfigError(reason)| ConfigError(format!("backup-to: {reason}")))?;
        // A directory, also before it exists: it ends with a slash.
        let to = to.map(|to| match to {
            BackupPlace::Path(path) => BackupPlace::Path(path.join("")),
            bucket => bucket,
        });
        let every = lifetime(
            "backup-every",
            flags.backup_every.as_deref(),
            file.backup_every.as_deref().unwrap_or("24h"),
        )?;
        if every < LEAST_INTERVAL {
            return Err(ConfigError("backup-every must be 1m or more".into()));
        }
        let keep = flags.backup_keep.or(file.backup_keep);
        let keep = keep.unwrap_or(DEFAULT_KEEP);
        if keep == 0 {
            return Err(ConfigError("backup-keep must be 1 or more".into()));
        }
        let passphrase_file = flags.backup_passphrase_file.as_ref();
        Ok(Self {
            to,
            every,
            keep: keep as usize,
            passphrase_file: passphrase_file
                .or(file.backup_passphrase_file.as_ref())
                .cloned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_backup_goes_to_a_path_or_a_bucket() {
        let place = |text: &str| text.parse::<BackupPlace>();
        assert_eq!(
            place("/srv/backup").ok(),
            Some(BackupPlace::Path("/srv/backup".into()))
        );
        assert_eq!(
            place("s3://backups/hubs/eu/").ok(),
            Some(BackupPlace::S3 {
                bucket: "backups".into(),
                key: "hubs/eu".into()
            })
        );
        for text in ["", "s3://", "gs://backups", "s3://key:secret@backups/"] {
            let error = place(text).expect_err(text).to_string();
            assert!(!error.contains("secret"), "{error}");
        }
    }
}
