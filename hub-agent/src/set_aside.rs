//! Files of the state directory that this version cannot read: another version of the agent wrote
//! them, as before an update that was taken back, or they are damaged. They are set aside, and used
//! again by a version that reads them.

use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use hub_agent::durable;

fn aside(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!("{name}.set-aside"))
}

/// The content of a file. `None` if there is none, or if it had to be set aside. `parse` says what
/// is wrong with it, without quoting a secret.
pub fn read<T>(
    folder: &Path,
    name: &str,
    parse: impl Fn(&[u8]) -> Result<T, String>,
) -> io::Result<Option<T>> {
    let (path, aside) = (folder.join(name), aside(folder, name));
    let bytes = match std::fs::read(&path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let found = read_aside(folder, name, parse);
            if found.is_some() {
                tracing::info!(file = %path.display(), "the file that was set aside is used again");
                std::fs::rename(&aside, &path)?;
            }
            return Ok(found);
        }
        Err(error) => return Err(error),
    };
    match parse(&bytes) {
        Ok(content) => Ok(Some(content)),
        Err(reason) => {
            tracing::error!(
                file = %path.display(), moved_to = %aside.display(), reason,
                "the file cannot be read: another version wrote it, or it is damaged. It is set aside, and used again \
                 when a version that reads it runs"
            );
            if let Err(error) = std::fs::rename(&path, &aside) {
                tracing::error!(%error, "the file cannot be set aside");
            }
            Ok(None)
        }
    }
}

/// The content of a file that is set aside, if this version can read it.
pub fn read_aside<T>(
    folder: &Path,
    name: &str,
    parse: impl Fn(&[u8]) -> Result<T, String>,
) -> Option<T> {
    let bytes = std::fs::read(aside(folder, name)).ok()?;
    parse(&bytes).ok()
}

/// Removes a file that was set aside and whose content is used.
pub fn discard(folder: &Path, name: &str) {
    if let Err(error) = durable::remove(&aside(folder, name)) {
        tracing::warn!(%error, name, "a file that was set aside cannot be removed");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(bytes: &[u8]) -> Result<u32, String> {
        serde_json::from_slice(bytes).map_err(|error| error.to_string())
    }

    #[test]
    fn a_file_of_another_version_is_used_again_by_that_version() {
        let dir = tempfile::tempdir().unwrap();
        let read = |parse: fn(&[u8]) -> Result<u32, String>| read(dir.path(), "file", parse);
        assert_eq!(read(number).unwrap(), None);
        std::fs::write(dir.path().join("file"), "{\"newer\": 7}").unwrap();
        assert_eq!(read(number).unwrap(), None);
        assert_eq!(read(number).unwrap(), None, "it stays aside");
        let newer = |bytes: &[u8]| {
            let value: serde_json::Value = serde_json::from_slice(bytes).unwrap();
            Ok(value["newer"].as_u64().unwrap() as u32)
        };
        assert_eq!(read(newer).unwrap(), Some(7));
        assert!(dir.path().join("file").exists());
    }
}
