//! `hub-cloud release`: what the maker of a release does, on a machine that need not be the service's and may be offline. Keys and signatures are files of the
//! minisign program, which can be used in place of this one. Touches nothing of the service: no database, no network.

mod keygen;
mod sign;
mod verify;

use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

pub const HELP: &str = "\
A release is a file, a manifest that says which file it is, and a minisign signature of the
manifest. Hubs install nothing else.

  hub-cloud release keygen --out agent --password-stdin < password.txt
  hub-cloud release keygen --out app --password-stdin < password.txt
      make agent.key and agent.pub, app.key and app.pub: a pair for the agent and one for apps.
      The .key files are to be kept offline. Put each .pub into the folder of its name, agent/ or
      app/, of the service's release-keys directory and of /etc/hub-agent/release-keys on the hubs.

  hub-cloud release sign --key agent.key --kind agent --name hub-agent --version 1.4.2 \\
      --architecture aarch64 --counter 42 --password-stdin hub-agent < password.txt
      writes hub-agent.manifest.json and hub-agent.manifest.json.minisig: the two texts that a
      release is made of at POST /platform/agent-releases or POST /tenant/apps/{appUuid}/releases.
      hub-publish-release takes them and the file there.

  hub-cloud release verify --keys agent.pub hub-agent
      tells whether file, manifest and signature belong together.";

#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// Make a pair of keys
    #[command(after_help = keygen::HELP)]
    Keygen(keygen::Options),
    /// Write the manifest of a file, and sign it
    #[command(after_help = sign::HELP)]
    Sign(sign::Options),
    /// Check a file against its manifest and signature
    #[command(after_help = verify::HELP)]
    Verify(verify::Options),
}

/// Why a command failed; says what to do.
#[derive(Debug)]
pub enum Failure {
    WrongUsage(String),
    Failed(String),
}

type Result<T> = std::result::Result<T, Failure>;

pub fn run(command: &Command) -> Result<()> {
    let done = match command {
        Command::Keygen(options) => keygen::run(options),
        Command::Sign(options) => sign::run(options),
        Command::Verify(options) => verify::run(options),
    }?;
    // A pipe that is closed has nobody to be told.
    let _ = writeln!(std::io::stdout(), "{done}");
    Ok(())
}

fn failed(path: &Path, what: impl std::fmt::Display) -> Failure {
    Failure::Failed(format!("{}: {what}", path.display()))
}

/// The first line of standard input, where that is asked for.
fn password(from_stdin: bool) -> Result<Option<String>> {
    if !from_stdin {
        return Ok(None);
    }
    let password = crate::admin::read_password(std::io::stdin().lock());
    let password = password.map_err(|error| Failure::WrongUsage(error.to_string()))?;
    match password.is_empty() {
        true => Err(Failure::WrongUsage("the password on standard input is empty".to_owned())),
        false => Ok(Some(password)),
    }
}

/// `release` becomes `release.key`, whatever dots are in it.
fn beside(path: &Path, end: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(end);
    name.into()
}

fn manifest_of(file: &Path) -> PathBuf {
    beside(file, ".manifest.json")
}

fn signature_of(manifest: &Path) -> PathBuf {
    beside(manifest, ".minisig")
}

/// Written beside and moved in place, so that there is all of it or nothing.
fn write_whole(path: &Path, text: &str, mode: u32) -> Result<()> {
    let draft = beside(path, ".new");
    let write = || {
        let mut file = std::fs::OpenOptions::new().write(true).create_new(true).mode(mode).open(&draft)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        std::fs::rename(&draft, path)
    };
    write().map_err(|error| {
        // Another's draft stays.
        if error.kind() != std::io::ErrorKind::AlreadyExists {
            let _ = std::fs::remove_file(&draft);
        }
        failed(path, format!("cannot be written: {error}"))
    })
}

/// A file's size and its SHA-256 in lower-case hex, of a file that need not fit into memory.
fn measure(path: &Path) -> Result<(u64, String)> {
    let read = || {
        let mut file = std::fs::File::open(path)?;
        let mut digest = Sha256::new();
        let mut size_bytes = 0;
        let mut piece = vec![0; 64 * 1024];
        loop {
            let length = file.read(&mut piece)?;
            let Some(bytes) = piece.get(..length).filter(|bytes| !bytes.is_empty()) else { break };
            digest.update(bytes);
            size_bytes += bytes.len() as u64;
        }
        Ok::<_, std::io::Error>((size_bytes, hex::encode(digest.finalize())))
    };
    read().map_err(|error| failed(path, format!("cannot be read: {error}")))
}
