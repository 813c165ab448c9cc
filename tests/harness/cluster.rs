//! A PostgreSQL server of a test's own, to be stopped and started. PostgreSQL refuses to run as
//! root; then it runs as its package's user.

use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

pub struct Cluster {
    programs: PathBuf,
    dir: TempDir,
    port: u16,
}

/// How a server ends.
#[derive(Clone, Copy, Debug)]
pub enum Stop {
    /// Connections are closed, all is written.
    Fast,
    /// As a crash: the next start recovers from the log.
    Immediate,
}

impl Cluster {
    /// A server that runs; none where PostgreSQL's server programs are not installed.
    pub fn start() -> Option<Self> {
        let Some(programs) = programs() else {
            crate::skip(
                "tests that stop a PostgreSQL",
                "its server programs (/usr/lib/postgresql/*/bin/initdb)",
            );
            return None;
        };
        let dir = tempfile::tempdir().expect("a directory");
        let port = crate::ports::lasting();
        let cluster = Self {
            programs,
            dir,
            port,
        };
        if is_root() {
            run(Command::new("chown")
                .arg("postgres")
                .arg(cluster.dir.path()));
        }
        cluster.run(
            "initdb",
            &[
                "--auth=trust",
                "--username=postgres",
                "--no-sync",
                "--no-instructions",
            ],
        );
        cluster.go_on();
        Some(cluster)
    }

    pub fn url(&self) -> String {
        format!("postgres://postgres@127.0.0.1:{}/postgres", self.port)
    }

    pub fn go_on(&self) {
        let options = format!(
            "-p {} -k {} -c listen_addresses=127.0.0.1",
            self.port,
            self.dir.path().display()
        );
        let log = self.dir.path().join("log").display().to_string();
        self.run(
            "pg_ctl",
            &[
                "start",
                "--wait",
                "--silent",
                "--log",
                &log,
                "--options",
                &options,
            ],
        );
    }

    /// Restarts it with a setting more, as a line of its configuration file.
    pub fn restart_with(&self, setting: &str) {
        self.stop(Stop::Fast);
        let file = self.dir.path().join("data/postgresql.conf");
        let before = std::fs::read_to_string(&file).expect("its settings");
        // The last line of a setting is in force.
        std::fs::write(&file, format!("{before}\n{setting}\n")).expect("its settings");
        self.go_on();
    }

    pub fn stop(&self, how: Stop) {
        let mode = match how {
            Stop::Fast => "fast",
            Stop::Immediate => "immediate",
        };
        self.run("pg_ctl", &["stop", "--wait", "--silent", "--mode", mode]);
    }

    fn run(&self, program: &str, arguments: &[&str]) {
        let program = self.programs.join(program);
        let mut command = match is_root() {
            true => {
                let mut command = Command::new("runuser");
                command.args(["-u", "postgres", "--"]).arg(program);
                command
            }
            false => Command::new(program),
        };
        run(command
            .args(arguments)
            .env("PGDATA", self.dir.path().join("data"))
            .current_dir("/"));
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if self.dir.path().join("data/postmaster.pid").exists() {
            self.stop(Stop::Immediate);
        }
    }
}

fn run(command: &mut Command) {
    // Not piped: a server that keeps running would hold a pipe open.
    let status = command.stdout(std::process::Stdio::null()).status();
    assert!(
        status.as_ref().is_ok_and(|status| status.success()),
        "{command:?}: {status:?}"
    );
}

fn is_root() -> bool {
    std::os::unix::fs::MetadataExt::uid(&std::fs::metadata("/proc/self").expect("/proc")) == 0
}

/// The newest version's.
fn programs() -> Option<PathBuf> {
    let versions = std::fs::read_dir("/usr/lib/postgresql").ok()?.flatten();
    let mut folders: Vec<(u32, PathBuf)> = versions
        .filter_map(|version| {
            Some((
                version.file_name().to_str()?.parse().ok()?,
                version.path().join("bin"),
            ))
        })
        .filter(|(_, folder): &(u32, PathBuf)| Path::new(folder).join("initdb").exists())
        .collect();
    folders.sort();
    folders.pop().map(|(_, folder)| folder)
}
