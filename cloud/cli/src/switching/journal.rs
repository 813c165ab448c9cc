//! The journal of an import: which objects it has begun to create, and which ids they have here.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, OpenOptions, TryLockError};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

use serde_json::{Value, json};

use super::archive::failed;
use crate::failure::Failure;

pub struct Journal {
    path: PathBuf,
    /// What the import is of; the first line.
    head: Value,
    file: Option<File>,
    complete_bytes: u64,
    begun: BTreeSet<String>,
    done: BTreeMap<String, Value>,
}

impl Journal {
    /// Reads a journal, if there is one. `head` says what the import is of, and another import has
    /// another journal.
    pub fn read(path: PathBuf, head: Value) -> Result<Self, Failure> {
        let mut journal = Self {
            path,
            head,
            file: None,
            complete_bytes: 0,
            begun: BTreeSet::new(),
            done: BTreeMap::new(),
        };
        if !journal.path.exists() {
            return Ok(journal);
        }
        let text = std::fs::read(&journal.path).map_err(|error| failed(&journal.path, error))?;
        // The last line may be cut: a process was killed while it wrote it.
        for (number, line) in text.split_inclusive(|byte| *byte == b'\n').enumerate() {
            if !line.ends_with(b"\n") {
                break;
            }
            let entry: Value = serde_json::from_slice(line)
                .map_err(|_| failed(&journal.path, format!("line {} is damaged", number + 1)))?;
            journal.complete_bytes += line.len() as u64;
            if number == 0 {
                if entry != journal.head {
                    return Err(Failure::usage(format!(
                        "{} is of another export or tenant; move it away to begin anew",
                        journal.path.display()
                    )));
                }
                continue;
            }
            if let Some(key) = entry.get("begun").and_then(Value::as_str) {
                journal.begun.insert(key.to_owned());
            }
            if let Some(key) = entry.get("done").and_then(Value::as_str) {
                let id = entry.get("id").cloned().unwrap_or_default();
                journal.done.insert(key.to_owned(), id);
            }
        }
        Ok(journal)
    }

    /// From now on entries are written. Keeps a second import of the same export out.
    pub fn start(&mut self) -> Result<(), Failure> {
        let opened = OpenOptions::new()
            .append(true)
            .create(true)
            .mode(0o600)
            .open(&self.path);
        let file = opened.map_err(|error| failed(&self.path, error))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(Failure::usage("another import of this export is running"));
            }
            Err(TryLockError::Error(error)) => return Err(failed(&self.path, error)),
        }
        file.set_len(self.complete_bytes)
            .map_err(|error| failed(&self.path, error))?;
        self.file = Some(file);
        match self.complete_bytes {
            0 => self.append(&self.head.clone()),
            _ => Ok(()),
        }
    }

    fn append(&mut self, entry: &Value) -> Result<(), Failure> {
        let Some(file) = &mut self.file else {
            return Ok(());
        };
        file.write_all(format!("{entry}\n").as_bytes())
            .map_err(|error| failed(&self.path, error))
    }

    /// Whether this import began to create an object, which may or may not be there.
    pub fn has_begun(&self, key: &str) -> bool {
        self.begun.contains(key)
    }

    /// The id of an object that is done.
    pub fn id(&self, key: &str) -> Option<&Value> {
        self.done.get(key)
    }

    /// The ids of all objects of a kind that are done.
    pub fn ids(&self, kind: &str) -> impl Iterator<Item = &Value> {
        self.done
            .iter()
            .filter(move |(key, _)| key.split('/').next() == Some(kind))
            .map(|(_, id)| id)
    }

    pub fn begin(&mut self, key: &str) -> Result<(), Failure> {
        match self.begun.insert(key.to_owned()) {
            true => self.append(&json!({"begun": key})),
            false => Ok(()),
        }
    }

    pub fn done(&mut self, key: &str, id: Value) -> Result<(), Failure> {
        self.append(&json!({"done": key, "id": id}))?;
        self.done.insert(key.to_owned(), id);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_was_cut_does_not_count() {
        let folder = std::env::temp_dir().join(format!("hub-journal-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let path = folder.join("journal.ndjson");
        let _ = std::fs::remove_file(&path);
        let head = json!({"manifest": "a"});
        let mut journal = Journal::read(path.clone(), head.clone()).expect("none yet");
        journal.begin("device/1").expect("it is not written yet");
        assert!(!path.exists());
        journal.start().expect("a file");
        journal.begin("device/2").expect("a line");
        journal.done("device/2", json!(7)).expect("a line");
        drop(journal);
        let mut text = std::fs::read_to_string(&path).expect("lines");
        text.push_str("{\"done\":\"device/3\",\"id\":");
        std::fs::write(&path, &text).expect("a cut line");

        let mut journal = Journal::read(path.clone(), head).expect("it is read");
        assert_eq!(journal.id("device/2"), Some(&json!(7)));
        assert!(journal.has_begun("device/2") && !journal.has_begun("device/1"));
        assert_eq!(journal.id("device/3"), None);
        assert_eq!(journal.ids("device").count(), 1);
        journal.start().expect("it goes on");
        journal.done("device/3", json!(8)).expect("a line");
        drop(journal);
        let text = std::fs::read_to_string(&path).expect("lines");
        assert!(
            text.ends_with("{\"done\":\"device/3\",\"id\":8}\n"),
            "{text}"
        );
        assert_eq!(text.lines().count(), 4);

        let other = Journal::read(path, json!({"manifest": "b"}));
        assert!(other.err().is_some_and(|failure| failure.exit_code == 2));
        let _ = std::fs::remove_dir_all(&folder);
    }
}
