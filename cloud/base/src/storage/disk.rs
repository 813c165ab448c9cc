//! The file system of an SQLite database: how much room there is, and a file that keeps a part of
//! it free.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{FallocateFlags, fallocate, statvfs};

/// The reserve is at most this part of the file system.
const LEAST_PART: u64 = 16;

/// The state of the reserve and of growth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Level {
    pub is_full: bool,
    pub holds_reserve: bool,
}

/// Bytes that are free: in the file system, and inside of the database.
#[derive(Clone, Copy, Debug)]
pub struct Room {
    pub disk: u64,
    pub inside: u64,
}

#[derive(Clone, Debug)]
pub struct Disk {
    dir: PathBuf,
    reserve: PathBuf,
    /// 0 for no reserve.
    pub reserve_bytes: u64,
}

impl Disk {
    /// The disk of this database file, with a reserve of `wanted_bytes` unless the disk is small.
    pub fn of(file: &Path, wanted_bytes: u64) -> Self {
        let dir = match file.parent() {
            Some(dir) if !dir.as_os_str().is_empty() => dir.to_owned(),
            _ => PathBuf::from("."),
        };
        let mut name = file.file_name().unwrap_or_default().to_owned();
        name.push("-reserve");
        let part = statvfs(&dir).map_or(0, |disk| {
            disk.f_blocks.saturating_mul(disk.f_frsize) / LEAST_PART
        });
        Self {
            reserve: dir.join(name),
            dir,
            reserve_bytes: wanted_bytes.min(part),
        }
    }

    /// Free bytes for an unprivileged process.
    pub fn free_bytes(&self) -> io::Result<u64> {
        let disk = statvfs(&self.dir)?;
        Ok(disk.f_bavail.saturating_mul(disk.f_frsize))
    }

    pub fn holds_reserve(&self) -> bool {
        self.reserve_bytes > 0
            && fs::metadata(&self.reserve).is_ok_and(|file| file.len() >= self.reserve_bytes)
    }

    /// Takes the reserve. A file system that cannot allocate a file in advance has none.
    pub fn hold_reserve(&self) -> io::Result<()> {
        let file = File::create(&self.reserve)?;
        let allocated = fallocate(&file, FallocateFlags::empty(), 0, self.reserve_bytes);
        if allocated.is_err() {
            self.release_reserve();
        }
        allocated.map_err(io::Error::from)
    }

    pub fn release_reserve(&self) {
        if let Err(error) = fs::remove_file(&self.reserve)
            && error.kind() != io::ErrorKind::NotFound
        {
            tracing::error!(%error, file = %self.reserve.display(), "the reserve of the disk cannot be released");
        }
    }

    /// The decision for the given room. Growth ends before the reserve is touched, and resumes when
    /// the reserve can be held again with some room left.
    pub fn decide(&self, now: Level, room: Room, is_reported: bool) -> Level {
        let least = self.reserve_bytes / 4;
        let all = room.disk.saturating_add(room.inside);
        // Without the reserve, its size has to remain free.
        let kept = if now.holds_reserve {
            0
        } else {
            self.reserve_bytes
        };
        // Pages that are free inside need room in the write-ahead log to be written.
        let is_full = match now.is_full {
            false => is_reported || all < kept + least || room.disk < least / 2,
            true => is_reported || all < kept + 2 * least || room.disk < least,
        };
        let can_hold = room.disk >= self.reserve_bytes + least;
        let holds_reserve = !is_full && self.reserve_bytes > 0 && (now.holds_reserve || can_hold);
        Level {
            is_full,
            holds_reserve,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIB: u64 = 1024;

    fn disk() -> Disk {
        Disk {
            dir: PathBuf::new(),
            reserve: PathBuf::new(),
            reserve_bytes: 64 * KIB,
        }
    }

    fn level(is_full: bool, holds_reserve: bool) -> Level {
        Level {
            is_full,
            holds_reserve,
        }
    }

    fn room(disk: u64, inside: u64) -> Room {
        Room {
            disk: disk * KIB,
            inside: inside * KIB,
        }
    }

    #[test]
    fn growth_ends_before_the_reserve_and_goes_on_when_it_is_held_again() {
        let decide = |now, room| disk().decide(now, room, false);
        assert_eq!(
            decide(level(false, false), room(1000, 0)),
            level(false, true),
            "at the start"
        );
        assert_eq!(decide(level(false, true), room(16, 0)), level(false, true));
        assert_eq!(
            decide(level(false, true), room(15, 0)),
            level(true, false),
            "the reserve is released"
        );
        assert_eq!(
            decide(level(true, false), room(15 + 64, 0)),
            level(true, false),
            "that is the reserve"
        );
        assert_eq!(
            decide(level(true, false), room(95, 0)),
            level(true, false),
            "not back and forth"
        );
        assert_eq!(decide(level(true, false), room(96, 0)), level(false, true));
    }

    #[test]
    fn pages_that_are_free_inside_are_room() {
        let decide = |now, room| disk().decide(now, room, false);
        assert_eq!(
            decide(level(false, true), room(15, 100)),
            level(false, true)
        );
        assert_eq!(
            decide(level(false, true), room(7, 100)),
            level(true, false),
            "the log has no room"
        );
        assert_eq!(
            decide(level(true, false), room(60, 100)),
            level(false, false),
            "without a reserve"
        );
        assert_eq!(
            decide(level(false, false), room(60, 10)),
            level(true, false)
        );
    }

    #[test]
    fn a_failed_write_says_that_the_disk_is_full() {
        assert_eq!(
            disk().decide(level(false, true), room(1000, 0), true),
            level(true, false)
        );
        assert_eq!(
            disk().decide(level(true, false), room(1000, 0), false),
            level(false, true)
        );
        let none = Disk {
            reserve_bytes: 0,
            ..disk()
        };
        assert_eq!(
            none.decide(level(false, false), room(0, 0), false),
            level(false, false)
        );
        assert_eq!(
            none.decide(level(false, false), room(0, 0), true),
            level(true, false)
        );
        assert_eq!(
            none.decide(level(true, false), room(0, 0), false),
            level(false, false),
            "until it fails again"
        );
    }

    #[test]
    fn the_reserve_is_a_file_of_its_size() {
        let dir = tempfile::tempdir().expect("a directory");
        let disk = Disk::of(&dir.path().join("x.sqlite"), 1 << 20);
        assert!(!disk.holds_reserve());
        disk.hold_reserve().expect("a file");
        assert!(disk.holds_reserve());
        assert!(dir.path().join("x.sqlite-reserve").exists());
        disk.release_reserve();
        disk.release_reserve();
        assert!(!disk.holds_reserve() && disk.free_bytes().is_ok_and(|free| free > 0));
    }
}
