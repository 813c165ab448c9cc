//! Downloads a release's file: resumes where it was interrupted, also after a restart, never stores
//! more bytes than the manifest states, and verifies the digest of what is on disk at the end.
//! Sends no credentials: the file may be on another party's server.

use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

use aws_lc_rs::digest;
use hub_agent::durable;
use hub_protocol::release::{ReleaseManifest, ReleaseOffer};
use reqwest::header::{CONTENT_RANGE, ETAG, HeaderMap, IF_RANGE, RANGE};
use reqwest::{Client, Url};
use tokio::fs;
use tokio::io::{AsyncWriteExt, BufWriter};
use tokio::sync::watch;

use super::job::{Failed, Trouble, reason};
use crate::cloud::Service;
use crate::error::chain;

/// Below the state directory.
const FOLDER: &str = "downloads";

/// A power cut costs at most this many bytes of a download.
const SYNC_EVERY_BYTES: u64 = 4 << 20;

/// The download is written in blocks of this size: each write wakes a thread.
const BUFFER_BYTES: usize = 128 << 10;

/// Files with wrong content before the release is abandoned.
const MAX_WRONG_CONTENTS: u32 = 3;
/// Consecutive answers that added nothing to the file before it is abandoned.
const MAX_WITHOUT_PROGRESS: u32 = 10;

/// How much of a file has been downloaded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Downloaded {
    pub bytes: u64,
    pub size_bytes: u64,
}

/// How one request for the file, or the rest of it, was interrupted.
#[derive(Debug, PartialEq, Eq)]
pub enum Cut {
    /// The URL is no longer valid: request another.
    StaleUrl(String),
    /// Nothing that knows the file answered: the connection or the server is down.
    Unreachable(String),
    /// A part of the file came, or an answer that cannot be used.
    Again(String),
    /// The content that came is not the file.
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

    /// Whether the service's offer is of no more use.
    pub fn needs_new_offer(&self) -> bool {
        matches!(self, Self::StaleUrl(_) | Self::WrongContent(_))
    }
}

/// The attempts of one job to download its file.
#[derive(Debug, Default)]
pub struct Attempts {
    without_progress: u32,
    wrong_contents: u32,
}

impl Attempts {
    /// The failure of the job, if this interruption was one too many.
    pub fn exhausted_by(&mut self, cut: &Cut, has_progressed: bool) -> Option<Failed> {
        if has_progressed {
            self.without_progress = 0;
        }
        match cut {
            Cut::Fatal(failed) => Some(failed.clone()),
            // Outages end, or the job's deadline does.
            Cut::Unreachable(_) => None,
            Cut::Again(message) | Cut::StaleUrl(message) => {
                self.without_progress += u32::from(!has_progressed);
                (self.without_progress >= MAX_WITHOUT_PROGRESS).then(|| {
                    let message =
                        format!("{MAX_WITHOUT_PROGRESS} consecutive requests added nothing to the file: {message}");
                    Failed::new(reason::DOWNLOAD_FAILED, message)
                })
            }
            Cut::WrongContent(message) => {
                self.wrong_contents += 1;
                (self.wrong_contents >= MAX_WRONG_CONTENTS).then(|| {
                    let message =
                        format!("{MAX_WRONG_CONTENTS} times the file was not the one in the manifest: {message}");
                    Failed::new(reason::DIGEST_MISMATCH, message)
                })
            }
        }
    }
}

/// One request for what is missing of the offered file. `Ok(Err(_))` is an interruption: the bool
/// is whether the file grew.
pub async fn attempt(
    service: &Service,
    offer: &ReleaseOffer,
    file: &PartFile,
    progress: &watch::Sender<Downloaded>,
) -> io::Result<Result<(), (Cut, bool)>> {
    let bytes_before = file.bytes().await;
    let fetched = match file_url(service.url(), &offer.download_url) {
        Ok(url) => match service.download_client(&url) {
            Ok(http) => {
                file.fetch(&http, url, service.request_timeout, progress)
                    .await
            }
            Err(error) => Err(Cut::Again(error.to_string())),
        },
        Err(message) => Err(Cut::StaleUrl(message)),
    };
    let has_progressed = file.bytes().await > bytes_before;
    let cut = match fetched {
        Ok(()) if file.is_complete().await? => return Ok(Ok(())),
        Ok(()) => Cut::WrongContent("its digest is not the one in the manifest".to_owned()),
        Err(cut) => cut,
    };
    if matches!(cut, Cut::WrongContent(_)) {
        file.discard().await?;
    }
    Ok(Err((cut, has_progressed)))
}

/// A file that is being downloaded.
#[derive(Clone, Debug)]
pub struct PartFile {
    path: PathBuf,
    etag_path: PathBuf,
    size_bytes: u64,
    sha256: String,
}

impl PartFile {
    /// The part of this file that was downloaded before. Removes the downloads of other jobs.
    pub async fn open(state_dir: &Path, manifest: &ReleaseManifest) -> io::Result<Self> {
        let folder = state_dir.join(FOLDER);
        match fs::create_dir(&folder).await {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        let part = Self {
            // The manifest was checked: the digest is 64 hexadecimal digits.
            path: folder.join(format!("{}.part", manifest.sha256)),
            etag_path: folder.join(format!("{}.etag", manifest.sha256)),
            size_bytes: manifest.size_bytes,
            sha256: manifest.sha256.clone(),
        };
        let mut entries = fs::read_dir(folder).await?;
        while let Some(entry) = entries.next_entry().await? {
            if ![&part.path, &part.etag_path].contains(&&entry.path()) {
                fs::remove_file(entry.path()).await?;
            }
        }
        Ok(part)
    }

    /// The path that the helper accepts: relative to the agent's state directory.
    pub fn path_in(&self, state_dir: &Path) -> PathBuf {
        self.path
            .strip_prefix(state_dir)
            .unwrap_or(&self.path)
            .to_owned()
    }

    async fn bytes(&self) -> u64 {
        fs::metadata(&self.path)
            .await
            .map_or(0, |metadata| metadata.len())
    }

    /// Checks the disk's space for what is missing, for the helper's copy, and for the headroom.
    pub async fn check_space(&self, headroom_bytes: u64) -> Result<(), Trouble> {
        let folder = self.path.parent().unwrap_or(Path::new("/"));
        let free_bytes = rustix::fs::statvfs(folder)
            .map_or(0, |disk| disk.f_bavail.saturating_mul(disk.f_frsize));
        let missing_bytes = self.size_bytes.saturating_sub(self.bytes().await);
        let needed_bytes = missing_bytes
            .saturating_add(self.size_bytes)
            .saturating_add(headroom_bytes);
        if needed_bytes <= free_bytes {
            return Ok(());
        }
        let message = format!(
            "it needs {needed_bytes} bytes with its headroom, and the disk has {free_bytes}"
        );
        Err(Trouble::fatal(reason::NO_SPACE, message))
    }

    /// Whether the file on disk is the one in the manifest. A file with other content is removed.
    async fn is_complete(&self) -> io::Result<bool> {
        let path = self.path.clone();
        let found = tokio::task::spawn_blocking(move || sha256(&path))
            .await
            .map_err(io::Error::other)??;
        if found == self.sha256 {
            return Ok(true);
        }
        self.discard().await?;
        Ok(false)
    }

    /// One request for what is missing. Ends when nothing has come for `stall`.
    async fn fetch(
        &self,
        http: &Client,
        url: Url,
        stall: Duration,
        progress: &watch::Sender<Downloaded>,
    ) -> Result<(), Cut> {
        let have_bytes = match self.bytes().await {
            have if have > self.size_bytes => {
                self.discard().await.map_err(disk)?;
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
            // Where a server sends no strong tag, the digest shows in the end whether the parts
            // belong together.
            if let Ok(etag) = fs::read_to_string(&self.etag_path).await {
                request = request.header(IF_RANGE, etag.trim());
            }
        }
        let text = |error: reqwest::Error| chain(&error.without_url());
        let sent = tokio::time::timeout(stall, request.send()).await;
        let sent = sent.map_err(|_| Cut::Unreachable("no answer came in time".to_owned()))?;
        let mut response = sent.map_err(|error| Cut::Unreachable(text(error)))?;
        let status = response.status().as_u16();
        let mut at = match status {
            200 => 0,
            206 if range_start(response.headers()) == Some(have_bytes) => have_bytes,
            206 | 416 => {
                self.discard().await.map_err(disk)?;
                return Err(Cut::Again(format!(
                    "the server sent another range than requested (status {status})"
                )));
            }
            401 | 403 | 404 | 410 => {
                return Err(Cut::StaleUrl(format!("the server answered {status}")));
            }
            // A server that is down for hours, or a login page.
            300..=399 | 429 | 500.. => {
                return Err(Cut::Unreachable(format!("the server answered {status}")));
            }
            _ => return Err(Cut::Again(format!("the server answered {status}"))),
        };
        let too_long = |bytes: u64| {
            Cut::WrongContent(format!(
                "{bytes} bytes or more, instead of {}",
                self.size_bytes
            ))
        };
        if let Some(rest) = response
            .content_length()
            .filter(|rest| at + rest != self.size_bytes)
        {
            return Err(Cut::WrongContent(format!(
                "{} bytes, instead of {}",
                at + rest,
                self.size_bytes
            )));
        }
        self.remember_etag(response.headers()).await.map_err(disk)?;
        let file = fs::File::options()
            .create(true)
            .write(true)
            .truncate(at == 0)
            .open(&self.path)
            .await;
        let mut file = BufWriter::with_capacity(BUFFER_BYTES, file.map_err(disk)?);
        tokio::io::AsyncSeekExt::seek(&mut file, io::SeekFrom::Start(at))
            .await
            .map_err(disk)?;
        let mut synced_at = at;
        let ended = loop {
            let piece = match tokio::time::timeout(stall, response.chunk()).await {
                Err(_) => break Err(Cut::Again("the connection has stalled".to_owned())),
                Ok(Err(error)) => break Err(Cut::Again(text(error))),
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
            progress.send_replace(Downloaded {
                bytes: at,
                size_bytes: self.size_bytes,
            });
        };
        file.flush().await.map_err(disk)?;
        file.get_ref().sync_all().await.map_err(disk)?;
        if ended.is_ok() && at < self.size_bytes {
            return Err(Cut::Again(format!(
                "the connection was cut after {at} of {} bytes",
                self.size_bytes
            )));
        }
        ended
    }

    /// Stores the tag before any byte of the file it belongs to. A weak tag does not identify
    /// single bytes and is not stored.
    async fn remember_etag(&self, headers: &HeaderMap) -> io::Result<()> {
        match headers
            .get(ETAG)
            .and_then(|etag| etag.to_str().ok())
            .filter(|etag| etag.starts_with('"'))
        {
            Some(etag) => fs::write(&self.etag_path, etag).await,
            None => remove(self.etag_path.clone()).await,
        }
    }

    /// Removes what was downloaded of the file.
    pub async fn discard(&self) -> io::Result<()> {
        remove(self.path.clone()).await?;
        remove(self.etag_path.clone()).await
    }
}

/// Removes all downloads.
pub async fn clear(state_dir: &Path) -> io::Result<()> {
    match fs::remove_dir_all(state_dir.join(FOLDER)).await {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

async fn remove(path: PathBuf) -> io::Result<()> {
    tokio::task::spawn_blocking(move || durable::remove(&path))
        .await
        .map_err(io::Error::other)?
}

fn disk(error: io::Error) -> Cut {
    match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => Cut::Fatal(Failed::new(
            reason::NO_SPACE,
            format!("the download cannot be stored: {error}"),
        )),
        _ => Cut::Again(format!("the download cannot be written: {error}")),
    }
}

/// The URL of a file: a path of the service, or a URL on another server.
fn file_url(service: &Url, download_url: &str) -> Result<Url, String> {
    let joined = match download_url.strip_prefix('/') {
        Some(path) => service.join(path),
        None => Url::parse(download_url),
    };
    let url = joined.map_err(|error| format!("the download URL is malformed: {error}"))?;
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
        return Err("the download URL is neither https nor http".to_owned());
    }
    Ok(url)
}

/// The first byte of a partial answer: `bytes 100-199/200`.
fn range_start(headers: &HeaderMap) -> Option<u64> {
    let range = headers
        .get(CONTENT_RANGE)?
        .to_str()
        .ok()?
        .strip_prefix("bytes ")?;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_without_progress_end_the_job_and_outages_do_not() {
        let mut attempts = Attempts::default();
        let (cut, stale) = (Cut::Again("cut".into()), Cut::StaleUrl("gone".into()));
        for _ in 0..MAX_WITHOUT_PROGRESS - 1 {
            assert_eq!(attempts.exhausted_by(&cut, false), None);
        }
        for _ in 0..1_000 {
            assert_eq!(
                attempts.exhausted_by(&Cut::Unreachable("nobody".into()), false),
                None
            );
        }
        assert_eq!(attempts.exhausted_by(&cut, true), None, "the file grew");
        for _ in 0..MAX_WITHOUT_PROGRESS - 1 {
            assert_eq!(attempts.exhausted_by(&stale, false), None);
        }
        let failed = attempts.exhausted_by(&stale, false).unwrap();
        assert_eq!(failed.reason, reason::DOWNLOAD_FAILED);
        assert!(failed.message.contains("gone"), "{failed:?}");
    }
}
