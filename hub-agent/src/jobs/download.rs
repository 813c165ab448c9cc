//! Brings a release's file here: goes on where it was cut off, also after a restart, never takes more than the manifest says, and vouches
//! for the digest of what is on the disk at the end. Sends no credentials: the file may lie with somebody else.

use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

use aws_lc_rs::digest;
use hub_protocol::release::ReleaseManifest;
use reqwest::header::{CONTENT_RANGE, ETAG, HeaderMap, IF_RANGE, RANGE};
use reqwest::{Client, Url};
use tokio::io::{AsyncWriteExt, BufWriter};
use tokio::sync::watch;

use super::{Failed, Trouble, reason};
use crate::error::chain;

/// Below the state directory.
pub const FOLDER: &str = "downloads";

/// What a power cut costs at most.
const SYNC_EVERY_BYTES: u64 = 4 << 20;

/// Pieces reach the disk in so many bytes: small ones would each wake a thread.
const BUFFER_BYTES: usize = 128 << 10;

/// A file on its way here.
#[derive(Clone, Debug)]
pub struct PartFile {
    path: PathBuf,
    etag_path: PathBuf,
    size_bytes: u64,
    sha256: String,
}

/// How one request for the file, or the rest of it, ended short.
#[derive(Debug, PartialEq, Eq)]
pub enum Cut {
    /// The place is no longer good: ask for another.
    StaleUrl(String),
    /// Nobody answers who knows of the file: the line is down, or the store.
    Unreachable(String),
    /// The file began to come, or another answer did that is of no use.
    Again(String),
    /// What came is not the file.
    WrongContent(String),
    Fatal(Failed),
}

impl Cut {
    pub fn into_message(self) -> String {
        match self {
            Self::StaleUrl(message)
            | Self::Unreachable(message)
            | Self::Again(message)
            | Self::WrongContent(message) => message,
            Self::Fatal(failed) => failed.message,
        }
    }
}

impl PartFile {
    pub fn new(state_dir: &Path, manifest: &ReleaseManifest) -> io::Result<Self> {
        let folder = state_dir.join(FOLDER);
        match std::fs::create_dir(&folder) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        Ok(Self {
            // The digest is 64 hexadecimal digits: the manifest was held to that.
            path: folder.join(format!("{}.part", manifest.sha256)),
            etag_path: folder.join(format!("{}.etag", manifest.sha256)),
            size_bytes: manifest.size_bytes,
            sha256: manifest.sha256.clone(),
        })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Removes what an earlier job left behind.
    pub fn remove_others(&self) -> io::Result<()> {
        let folder = self.path.parent().unwrap_or(Path::new(""));
        for entry in std::fs::read_dir(folder)?.flatten() {
            if ![&self.path, &self.etag_path].contains(&&entry.path()) {
                std::fs::remove_file(entry.path())?;
            }
        }
        Ok(())
    }

    pub fn have_bytes(&self) -> u64 {
        std::fs::metadata(&self.path).map_or(0, |metadata| metadata.len())
    }

    /// Room for what is missing, for the helper's copy of it, and for what is left to others.
    pub fn check_room(&self, headroom_bytes: u64) -> Result<(), Trouble> {
        let folder = self.path.parent().unwrap_or(Path::new("/"));
        let free_bytes = rustix::fs::statvfs(folder).map_or(0, |disk| disk.f_bavail.saturating_mul(disk.f_frsize));
        let missing_bytes = self.size_bytes.saturating_sub(self.have_bytes());
        let needed_bytes = missing_bytes.saturating_add(self.size_bytes).saturating_add(headroom_bytes);
        if needed_bytes <= free_bytes {
            return Ok(());
        }
        let message = format!("it takes {needed_bytes} bytes with its headroom, and the disk has {free_bytes}");
        Err(Trouble::fatal(reason::NO_SPACE, message))
    }

    /// Whether what is on the disk is the file. One that is not is removed.
    pub async fn is_right(&self) -> io::Result<bool> {
        let path = self.path.clone();
        let found = tokio::task::spawn_blocking(move || sha256(&path)).await.map_err(io::Error::other)??;
        if found == self.sha256 {
            return Ok(true);
        }
        remove_download(&self.path, &self.etag_path)?;
        Ok(false)
    }

    /// One request for what is missing. `bytes` shows how much is there. A piece that does not come within `stall` ends it.
    pub async fn fetch(&self, http: &Client, url: Url, stall: Duration, bytes: &watch::Sender<u64>) -> Result<(), Cut> {
        let have_bytes = match self.have_bytes() {
            have if have > self.size_bytes => {
                remove_download(&self.path, &self.etag_path).map_err(disk)?;
                0
            }
            have => have,
        };
        if have_bytes == self.size_bytes {
            return Ok(());
        }
        let mut request = http.get(url);
        if have_bytes > 0 {
            request = request.header(RANGE, format!("bytes={have_bytes}-"));
            // Of a store that gives no strong tag the digest tells, in the end, whether the parts belong together.
            if let Ok(etag) = std::fs::read_to_string(&self.etag_path) {
                request = request.header(IF_RANGE, etag.trim());
            }
        }
        let said = |error: reqwest::Error| chain(&error.without_url());
        let sent = tokio::time::timeout(stall, request.send()).await;
        let sent = sent.map_err(|_| Cut::Unreachable("no answer came in time".to_owned()))?;
        let mut response = sent.map_err(|error| Cut::Unreachable(said(error)))?;
        let status = response.status().as_u16();
        let mut at = match status {
            200 => 0,
            206 if range_start(response.headers()) == Some(have_bytes) => have_bytes,
            206 | 416 => {
                remove_download(&self.path, &self.etag_path).map_err(disk)?;
                return Err(Cut::Again(format!("the store gave another range than was asked for (status {status})")));
            }
            401 | 403 | 404 | 410 => return Err(Cut::StaleUrl(format!("the store answers {status}"))),
            // A store that is down for hours, or a login page.
            300..=399 | 429 | 500.. => return Err(Cut::Unreachable(format!("the store answers {status}"))),
            _ => return Err(Cut::Again(format!("the store answers {status}"))),
        };
        let too_long = |bytes: u64| Cut::WrongContent(format!("{bytes} bytes or more, instead of {}", self.size_bytes));
        if let Some(rest) = response.content_length().filter(|rest| at + rest != self.size_bytes) {
            return Err(Cut::WrongContent(format!("{} bytes, instead of {}", at + rest, self.size_bytes)));
        }
        self.remember_etag(response.headers()).map_err(disk)?;
        let file = tokio::fs::File::options().create(true).write(true).truncate(at == 0).open(&self.path).await;
        let mut file = BufWriter::with_capacity(BUFFER_BYTES, file.map_err(disk)?);
        tokio::io::AsyncSeekExt::seek(&mut file, io::SeekFrom::Start(at)).await.map_err(disk)?;
        let mut synced_at = at;
        let ended = loop {
            let piece = match tokio::time::timeout(stall, response.chunk()).await {
                Err(_) => break Err(Cut::Again("the line has gone quiet".to_owned())),
                Ok(Err(error)) => break Err(Cut::Again(said(error))),
                Ok(Ok(None)) => break Ok(()),
                Ok(Ok(Some(piece))) => piece,
            };
            let after = at + piece.len() as u64;
            if after > self.size_bytes {
                break Err(too_long(after));
            }
            file.write_all(&piece).await.map_err(disk)?;
            at = after;
            if at - synced_at >= SYNC_EVERY_BYTES {
                file.flush().await.map_err(disk)?;
                file.get_ref().sync_data().await.map_err(disk)?;
                synced_at = at;
            }
            bytes.send_replace(at);
        };
        file.flush().await.map_err(disk)?;
        file.get_ref().sync_all().await.map_err(disk)?;
        if ended.is_ok() && at < self.size_bytes {
            return Err(Cut::Again(format!("the line was cut after {at} of {} bytes", self.size_bytes)));
        }
        ended
    }

    /// Kept beside the file before anything of it is: a weak tag does not vouch for single bytes.
    fn remember_etag(&self, headers: &HeaderMap) -> io::Result<()> {
        match headers.get(ETAG).and_then(|etag| etag.to_str().ok()).filter(|etag| etag.starts_with('"')) {
            Some(etag) => std::fs::write(&self.etag_path, etag),
            None => remove(&self.etag_path),
        }
    }

    /// Throws away what was brought here of it.
    pub fn discard(&self) -> io::Result<()> {
        remove_download(&self.path, &self.etag_path)
    }
}

/// Removes everything that was downloaded.
pub fn clear(state_dir: &Path) -> io::Result<()> {
    match std::fs::remove_dir_all(state_dir.join(FOLDER)) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn remove_download(path: &Path, etag_path: &Path) -> io::Result<()> {
    remove(path)?;
    remove(etag_path)
}

fn remove(path: &Path) -> io::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn disk(error: io::Error) -> Cut {
    match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
            Cut::Fatal(Failed { reason: reason::NO_SPACE, message: format!("the download cannot be kept: {error}") })
        }
        _ => Cut::Again(format!("the download cannot be written: {error}")),
    }
}

/// Where a partial answer begins: `bytes 100-199/200`.
fn range_start(headers: &HeaderMap) -> Option<u64> {
    let range = headers.get(CONTENT_RANGE)?.to_str().ok()?.strip_prefix("bytes ")?;
    range.split('-').next()?.trim().parse().ok()
}

fn sha256(path: &Path) -> io::Result<String> {
    let mut file = std::fs::File::open(path)?;
    let mut context = digest::Context::new(&digest::SHA256);
    let mut buffer = vec![0; BUFFER_BYTES];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(hex::encode(context.finish())),
            read => context.update(buffer.get(..read).unwrap_or_default()),
        }
    }
}
