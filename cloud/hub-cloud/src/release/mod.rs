//! `hub-cloud release`: creates release keys, signs releases and verifies them, on any machine,
//! also offline. Keys and signatures have the format of the minisign program, which can replace
//! these commands. Uses neither database nor network.

mod keygen;
mod sign;
mod verify;

use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use hub_base::paths::with_suffix;
use sha2::{Digest, Sha256};

pub const HELP: &str = "\
A release consists of a file, a manifest that identifies the file, and a minisign signature of the
manifest. Hubs install signed releases only.

Examples:
  hub-cloud release keygen --out agent --password-stdin < password.txt
  hub-cloud release keygen --out app --password-stdin < password.txt
      Create agent.key and agent.pub, app.key and app.pub: one pair for the agent, one for apps.
      Keep the .key files offline. Copy each .pub file into the subdirectory agent/ or app/ of the
      service's release-keys directory and of /etc/hub-agent/release-keys on the hubs.

  hub-cloud release sign --key agent.key --kind agent --name hub-agent --version 1.4.2 \\
      --architecture aarch64 --counter 42 --password-stdin hub-agent < password.txt
      Write hub-agent.manifest.json and hub-agent.manifest.json.minisig. hub-publish-release sends
      both, and the file, to POST /platform/agent-releases or
      POST /tenant/apps/{appUuid}/releases.

  hub-cloud release verify --keys agent.pub hub-agent
      Check that file, manifest and signature match.";

#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// Create a key pair
    #[command(after_help = keygen::HELP)]
    Keygen(keygen::Options),
    /// Write the manifest of a file and sign it
    #[command(after_help = sign::HELP)]
    Sign(sign::Options),
    /// Verify a file against its manifest and signature
    #[command(after_help = verify::HELP)]
    Verify(verify::Options),
}

/// The reason for a failed command, with a message that names the remedy.
#[derive(Debug)]
pub enum Failure {
    WrongUsage(String),
    Failed(String),
}

type Result<T> = std::result::Result<T, Failure>;

pub fn run(command: &Command) -> Result<()> {
    let report = match command {
        Command::Keygen(options) => keygen::run(options),
        Command::Sign(options) => sign::run(options),
        Command::Verify(options) => verify::run(options),
    }?;
    // A closed pipe is not an error.
    let _ = writeln!(std::io::stdout(), "{report}");
    Ok(())
}

fn failed(path: &Path, what: impl std::fmt::Display) -> Failure {
    Failure::Failed(format!("{}: {what}", path.display()))
}

/// The first line of standard input, if the option requests it.
fn password(from_stdin: bool) -> Result<Option<String>> {
    if !from_stdin {
        return Ok(None);
    }
    let password = crate::admin::read_password(std::io::stdin().lock());
    let password = password.map_err(|error| Failure::WrongUsage(error.to_string()))?;
    match password.is_empty() {
        true => Err(Failure::WrongUsage(
            "the password on standard input is empty; give a password in its first line".to_owned(),
        )),
        false => Ok(Some(password)),
    }
}

fn manifest_of(file: &Path) -> PathBuf {
    with_suffix(file, ".manifest.json")
}

fn signature_of(manifest: &Path) -> PathBuf {
    with_suffix(manifest, ".minisig")
}

/// Writes a temporary file and renames it, so that the target is complete or absent.
fn write_atomically(path: &Path, text: &str, mode: u32) -> Result<()> {
    let draft = with_suffix(path, ".new");
    let write = || {
        let mut file = std::fs::OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(mode)
            .open(&draft)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        std::fs::rename(&draft, path)
    };
    write().map_err(|error| {
        // A draft that existed before belongs to another process.
        if error.kind() != std::io::ErrorKind::AlreadyExists {
            let _ = std::fs::remove_file(&draft);
        }
        failed(path, format!("cannot write: {error}"))
    })
}

/// The size of a file and its SHA-256 in lower-case hex. Reads in chunks, since the file may exceed
/// the memory.
fn size_and_digest(path: &Path) -> Result<(u64, String)> {
    let read = || {
        let mut file = std::fs::File::open(path)?;
        let mut digest = Sha256::new();
        let mut size_bytes = 0;
        let mut chunk = vec![0; 64 * 1024];
        loop {
            let length = file.read(&mut chunk)?;
            let Some(bytes) = chunk.get(..length).filter(|bytes| !bytes.is_empty()) else {
                break;
            };
            digest.update(bytes);
            size_bytes += bytes.len() as u64;
        }
        Ok::<_, std::io::Error>((size_bytes, hex::encode(digest.finalize())))
    };
    read().map_err(|error| failed(path, format!("cannot read: {error}")))
}
