//! A file system so small that a test can fill it, for SQLite files and for PostgreSQL's own.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use sqlx::{AssertSqlSafe, Connection, Executor};
use sqlx_postgres::PgConnection;

use crate::cluster::Cluster;

/// A tmpfs. It is unmounted after this value.
pub struct SmallDisk {
    dir: tempfile::TempDir,
}

impl SmallDisk {
    /// `None` where this user may not mount one: then the test reports that it was skipped.
    pub fn mount(mebibytes: u32) -> Option<Self> {
        let dir = tempfile::tempdir().expect("a directory");
        let options = format!("size={mebibytes}m,mode=755");
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &options, "tmpfs"])
            .arg(dir.path())
            .output();
        if mounted.is_ok_and(|done| done.status.success()) {
            return Some(Self { dir });
        }
        crate::skip(
            std::thread::current().name().unwrap_or("a full disk"),
            "root, to mount a tmpfs",
        );
        None
    }

    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    fn filler(&self) -> PathBuf {
        self.path().join("filler")
    }

    /// Takes all that is left.
    pub fn fill(&self) {
        let mut file = File::options()
            .create(true)
            .append(true)
            .open(self.filler())
            .expect("a file");
        for bytes in [&[0_u8; 1 << 16][..], &[0; 512], &[0; 1]] {
            while file.write_all(bytes).is_ok() {}
        }
    }

    pub fn available_bytes(&self) -> u64 {
        let room = rustix::fs::statvfs(self.path()).expect("the room of a disk");
        room.f_bavail * room.f_frsize
    }

    /// Gives it back.
    pub fn free(&self) {
        fs::remove_file(self.filler()).expect("a filler");
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // Lazily: the service may still close its files.
        let _ = Command::new("umount")
            .arg("--lazy")
            .arg(self.path())
            .status();
    }
}

/// A PostgreSQL server of a test's own with a database whose tables lie on a small disk. The log of
/// the server does not.
pub struct SmallDatabase {
    pub url: String,
    /// Dropped before the disk.
    _server: Cluster,
    pub disk: SmallDisk,
}

impl SmallDatabase {
    /// `None` where there is no such server, or no disk can be mounted.
    pub async fn create(mebibytes: u32) -> Option<Self> {
        let disk = SmallDisk::mount(mebibytes)?;
        let server = Cluster::start()?;
        let location = disk.path().join("tables");
        fs::create_dir(&location).expect("a directory");
        let owned = Command::new("chown")
            .arg("postgres")
            .arg(&location)
            .status();
        assert!(
            owned.is_ok_and(|status| status.success()),
            "the server's own directory"
        );
        let mut conn = PgConnection::connect(&server.url())
            .await
            .expect("a connection");
        for statement in [
            format!("CREATE TABLESPACE small LOCATION '{}'", location.display()),
            "CREATE DATABASE small TABLESPACE small".to_owned(),
        ] {
            conn.execute(AssertSqlSafe(statement))
                .await
                .expect("a database on the disk");
        }
        let _ = conn.close().await;
        let url = format!("{}small", server.url().trim_end_matches("postgres"));
        Some(Self {
            url,
            _server: server,
            disk,
        })
    }
}
