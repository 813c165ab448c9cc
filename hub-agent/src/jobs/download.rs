//! Downloads a release's file: resumes where it was interrupted, also after a restart, never stores
//! more bytes than the manifest states, and verifies the digest of what is on disk at the end.
//! Sends no credentials: the file may be on another party's server.
//!
//! Between the hub and that server there may be a proxy with a login page, a full disk or a server
//! that is down. None of that is final, and none costs a byte that was downloaded: a whole answer
//! replaces the file on disk only once it is longer. Final is only a digest that is not the one in
//! the manifest, of a file that came whole in one answer of the announced length.

use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

use aws_lc_rs::digest;
use hub_agent::durable;
use hub_protocol::release::{ReleaseManifest, ReleaseOffer};
use reqwest::header::{CONTENT_RANGE, CONTENT_TYPE, ETAG, HeaderMap, IF_RANGE, RANGE};
use reqwest::{Client, Url};
use tokio::fs;
use tokio::io::{AsyncSeekExt, AsyncWriteExt, BufWriter};
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
/// Files whose parts did not belong together before the job is: each is a whole download.
const MAX_MIXED: u32 = 10;

/// How much of a file has been downloaded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Downloaded {
    pub bytes: u64,
    pub size_bytes: u64,
}

/// Why one request for the file, or the rest of it, did not complete it.
#[derive(Debug, PartialEq, Eq)]
pub enum Cut {
    /// The URL is no longer valid: request another.
    StaleUrl(String),
    /// A passing cause: the network, the server, the disk, or an answer that is not the file.
    Passing(Failed),
    /// The server does not have this rest of the file: request the whole one.
    NoRange(String),
    /// The parts on disk did not make the file: start anew.
    Mixed,
    /// The file came whole, and is not the one in the manifest.
    WrongContent,
}

impl Cut {
    fn download(message: impl Into<String>) -> Self {
        Self::Passing(Failed::new(reason::DOWNLOAD_FAILED, message))
    }

    /// The failure of the job if this was the last request before its deadline.
    pub fn into_failed(self) -> Failed {
        match self {
            Self::Passing(failed) => failed,
            Self::StaleUrl(message) | Self::NoRange(message) => {
                Failed::new(reason::DOWNLOAD_FAILED, message)
            }
            Self::Mixed => Failed::new(
                reason::DOWNLOAD_FAILED,
                "the downloaded parts do not make the file in the manifest",
            ),
            Self::WrongContent => Failed::new(
                reason::DOWNLOAD_FAILED,
                "the digest of the file is not the one in the manifest",
            ),
        }
    }

    /// Whether the service's offer is of no more use.
    pub fn needs_new_offer(&self) -> bool {
        matches!(self, Self::StaleUrl(_) | Self::WrongContent)
    }
}

/// The attempts of one job to download its file.
#[derive(Clone, Copy, Debug, Default)]
pub struct Attempts {
    wrong_contents: u32,
    mixed: u32,
    /// The next request is for the whole file.
    asks_whole: bool,
}

impl Attempts {
    /// The failure of the job, if this was one too many: a verdict on the file, or too much traffic
    /// for nothing. All else ends with its cause, or with the job's deadline.
    pub fn exhausted_by(&mut self, cut: &Cut) -> Option<Failed> {
        self.asks_whole = matches!(cut, Cut::NoRange(_));
        match cut {
            Cut::StaleUrl(_) | Cut::Passing(_) | Cut::NoRange(_) => None,
            Cut::Mixed => {
                self.mixed += 1;
                (self.mixed >= MAX_MIXED).then(|| {
                    let message = format!(
                        "{MAX_MIXED} times the downloaded parts did not make the file in the manifest"
                    );
                    Failed::new(reason::DOWNLOAD_FAILED, message)
                })
            }
            Cut::WrongContent => {
                self.wrong_contents += 1;
                (self.wrong_contents >= MAX_WRONG_CONTENTS).then(|| {
                    let message = format!(
                        "{MAX_WRONG_CONTENTS} times the whole file was not the one in the manifest"
                    );
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
    attempts: &Attempts,
    progress: &watch::Sender<Downloaded>,
) -> io::Result<Result<(), (Cut, bool)>> {
    let bytes_before = file.bytes().await;
    let fetched = match file_url(service.url(), &offer.download_url) {
        Ok(url) => match service.download_client(&url) {
            Ok(http) => {
                let asks_whole = attempts.asks_whole;
                file.fetch(&http, url, asks_whole, service.request_timeout, progress)
                    .await
            }
            Err(error) => Err(Cut::download(error.to_string())),
        },
        Err(message) => Err(Cut::StaleUrl(message)),
    };
    let has_progressed = file.bytes().await > bytes_before;
    let cut = match fetched {
        Ok(_) if file.is_complete().await? => return Ok(Ok(())),
        Ok(Source::OneFile) => Cut::WrongContent,
        Ok(Source::Parts) => Cut::Mixed,
        Err(cut) => cut,
    };
    Ok(Err((cut, has_progressed)))
}

/// How the file on disk came there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    /// In one answer that announced its length, or in parts that the server's tag holds together.
    OneFile,
    /// In parts that may be of different files.
    Parts,
}

/// A file that is being downloaded.
#[derive(Clone, Debug)]
pub struct PartFile {
    path: PathBuf,
    etag_path: PathBuf,
    /// A whole answer, while it is shorter than what is on disk already.
    fresh_path: PathBuf,
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
            fresh_path: folder.join(format!("{}.fresh", manifest.sha256)),
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

    /// Checks the disk's space for what is missing, for the helper's copy, and for the headroom. Of
    /// a disk that is too small, no space can be freed.
    pub async fn check_space(&self, headroom_bytes: u64) -> Result<(), Trouble> {
        let folder = self.path.parent().unwrap_or(Path::new("/"));
        let Ok(disk) = rustix::fs::statvfs(folder) else {
            return Ok(());
        };
        let free_bytes = disk.f_bavail.saturating_mul(disk.f_frsize);
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
        let failed = Failed::new(reason::NO_SPACE, message);
        Err(
            match self.size_bytes > disk.f_blocks.saturating_mul(disk.f_frsize) {
                true => Trouble::Fatal(failed),
                false => Trouble::Later(failed),
            },
        )
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
        asks_whole: bool,
        stall: Duration,
        progress: &watch::Sender<Downloaded>,
    ) -> Result<Source, Cut> {
        let have_bytes = match self.bytes().await {
            have if have > self.size_bytes => {
                self.discard().await.map_err(disk)?;
                0
            }
            have => have,
        };
        if have_bytes == self.size_bytes {
            return Ok(Source::Parts);
        }
        let mut request = http.get(url);
        let mut etag = None;
        if have_bytes > 0 && !asks_whole {
            request = request.header(RANGE, format!("bytes={have_bytes}-"));
            // Where a server sends no strong tag, the digest shows in the end whether the parts
            // belong together.
            etag = fs::read_to_string(&self.etag_path).await.ok();
            if let Some(etag) = &etag {
                request = request.header(IF_RANGE, etag.trim());
            }
        }
        let text = |error: reqwest::Error| chain(&error.without_url());
        let sent = tokio::time::timeout(stall, request.send()).await;
        let sent = sent.map_err(|_| Cut::download("no answer came in time"))?;
        let mut response = sent.map_err(|error| Cut::download(text(error)))?;
        let status = response.status().as_u16();
        let start = match status {
            200 => 0,
            206 if is_rest(response.headers(), have_bytes, self.size_bytes) => have_bytes,
            401 | 403 | 404 | 410 => {
                return Err(Cut::StaleUrl(format!("the server answered {status}")));
            }
            206 | 416 => {
                return Err(Cut::NoRange(format!(
                    "the server sent another range than requested (status {status})"
                )));
            }
            _ => return Err(Cut::download(format!("the server answered {status}"))),
        };
        if is_page(response.headers()) {
            return Err(Cut::download(
                "a web page came instead of the file: a proxy may ask for a login",
            ));
        }
        let announced = response.content_length();
        if let Some(rest) = announced
            && start + rest != self.size_bytes
        {
            let announced = start + rest;
            return Err(Cut::download(format!(
                "the server announced {announced} bytes, instead of {}",
                self.size_bytes
            )));
        }
        let is_announced = announced.is_some();
        let tag = strong_etag(response.headers());
        let mut target = Target::open(self, start, have_bytes, is_announced, tag)
            .await
            .map_err(disk)?;
        let ended = loop {
            let piece = match tokio::time::timeout(stall, response.chunk()).await {
                Err(_) => break Err(Cut::download("the connection has stalled")),
                Ok(Err(error)) => break Err(Cut::download(text(error))),
                Ok(Ok(None)) => break Ok(()),
                Ok(Ok(Some(piece))) => piece,
            };
            let after = target.at + piece.len() as u64;
            if after > self.size_bytes {
                target.abandon().await.map_err(disk)?;
                return Err(Cut::download(format!(
                    "{after} bytes or more came, instead of {}",
                    self.size_bytes
                )));
            }
            target.write(&piece).await.map_err(disk)?;
            progress.send_replace(Downloaded {
                bytes: target.at.max(have_bytes),
                size_bytes: self.size_bytes,
            });
        };
        let at = target.at;
        if at < self.size_bytes && !is_announced && start == 0 {
            // Nothing says that this was a part of the file.
            target.abandon().await.map_err(disk)?;
        } else {
            target.close().await.map_err(disk)?;
        }
        ended?;
        if at < self.size_bytes {
            return Err(Cut::download(format!(
                "the connection was cut after {at} of {} bytes",
                self.size_bytes
            )));
        }
        Ok(match is_announced && (start == 0 || etag.is_some()) {
            true => Source::OneFile,
            false => Source::Parts,
        })
    }

    /// Stores the tag of what is on disk. A weak tag does not identify single bytes.
    async fn store_etag(&self, etag: Option<&str>) -> io::Result<()> {
        match etag {
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

/// Where an answer is written: to the end of what is on disk, or beside it.
struct Target<'a> {
    part: &'a PartFile,
    file: BufWriter<fs::File>,
    /// The first byte of the answer, and the one after its last.
    start: u64,
    at: u64,
    synced_at: u64,
    /// The length from which on the answer takes the place of what is on disk; None once it has.
    replaces_at: Option<u64>,
    etag: Option<String>,
}

impl<'a> Target<'a> {
    async fn open(
        part: &'a PartFile,
        start: u64,
        have_bytes: u64,
        is_announced: bool,
        etag: Option<String>,
    ) -> io::Result<Self> {
        let replaces_at = match (start, is_announced) {
            (0, false) => Some(part.size_bytes),
            (0, true) if have_bytes > 0 => Some(have_bytes + 1),
            _ => None,
        };
        let path = match replaces_at {
            Some(_) => &part.fresh_path,
            None => &part.path,
        };
        if start == 0 && replaces_at.is_none() {
            // Before any byte of the file it belongs to.
            part.store_etag(etag.as_deref()).await?;
        }
        let mut file = fs::File::options()
            .create(true)
            .write(true)
            .truncate(start == 0)
            .open(path)
            .await?;
        file.seek(io::SeekFrom::Start(start)).await?;
        Ok(Self {
            part,
            file: BufWriter::with_capacity(BUFFER_BYTES, file),
            start,
            at: start,
            synced_at: start,
            replaces_at,
            etag,
        })
    }

    async fn write(&mut self, piece: &[u8]) -> io::Result<()> {
        self.file.write_all(piece).await?;
        self.at += piece.len() as u64;
        if self.at - self.synced_at >= SYNC_EVERY_BYTES {
            self.file.flush().await?;
            self.file.get_ref().sync_data().await?;
            self.synced_at = self.at;
        }
        self.replace().await
    }

    /// Takes the place of what is on disk, if the answer is long enough. A crash in between leaves
    /// a file without a tag.
    async fn replace(&mut self) -> io::Result<()> {
        if self.replaces_at.is_some_and(|length| self.at >= length) {
            self.part.store_etag(None).await?;
            fs::rename(&self.part.fresh_path, &self.part.path).await?;
            self.part.store_etag(self.etag.as_deref()).await?;
            self.replaces_at = None;
        }
        Ok(())
    }

    /// Keeps what came, unless more is on disk already.
    async fn close(mut self) -> io::Result<()> {
        self.file.flush().await?;
        self.file.get_ref().sync_all().await?;
        match self.replaces_at {
            Some(_) => remove(self.part.fresh_path.clone()).await,
            None => Ok(()),
        }
    }

    /// Leaves on disk what was there before.
    async fn abandon(self) -> io::Result<()> {
        match self.replaces_at {
            Some(_) => remove(self.part.fresh_path.clone()).await,
            None => {
                let file = self.file.into_inner();
                file.set_len(self.start).await?;
                file.sync_all().await
            }
        }
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
    let message = format!("the download cannot be written: {error}");
    match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
            Cut::Passing(Failed::new(reason::NO_SPACE, message))
        }
        _ => Cut::download(message),
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

/// Whether a partial answer is the rest of a file of this size: `bytes 100-199/200`. The server may
/// not know the size: `*`.
fn is_rest(headers: &HeaderMap, start: u64, size_bytes: u64) -> bool {
    let range = || {
        let text = headers.get(CONTENT_RANGE)?.to_str().ok()?;
        let (range, size) = text.strip_prefix("bytes ")?.split_once('/')?;
        let (first, _) = range.split_once('-')?;
        Some((first.trim().parse::<u64>().ok()?, size.trim().to_owned()))
    };
    range().is_some_and(|(first, size)| {
        first == start && (size == "*" || size.parse() == Ok(size_bytes))
    })
}

fn strong_etag(headers: &HeaderMap) -> Option<String> {
    let etag = headers.get(ETAG)?.to_str().ok()?;
    etag.starts_with('"').then(|| etag.to_owned())
}

/// No release is a web page, but the answer of a proxy is.
fn is_page(headers: &HeaderMap) -> bool {
    headers
        .get(CONTENT_TYPE)
        .and_then(|kind| kind.to_str().ok())
        .map(str::to_ascii_lowercase)
        .is_some_and(|kind| kind.starts_with("text/html") || kind.starts_with("application/xhtml"))
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
    fn only_whole_files_of_wrong_content_are_a_verdict() {
        let mut attempts = Attempts::default();
        for _ in 0..1_000 {
            for cut in [
                Cut::download("cut"),
                Cut::StaleUrl("gone".into()),
                Cut::NoRange("416".into()),
                Cut::Passing(Failed::new(reason::NO_SPACE, "full")),
            ] {
                assert_eq!(attempts.exhausted_by(&cut), None);
            }
        }
        for _ in 1..MAX_MIXED {
            assert_eq!(attempts.exhausted_by(&Cut::Mixed), None);
        }
        let mixed = attempts.exhausted_by(&Cut::Mixed).unwrap();
        assert_eq!(mixed.reason, reason::DOWNLOAD_FAILED);
        for _ in 1..MAX_WRONG_CONTENTS {
            assert_eq!(attempts.exhausted_by(&Cut::WrongContent), None);
        }
        let wrong = attempts.exhausted_by(&Cut::WrongContent).unwrap();
        assert_eq!(wrong.reason, reason::DIGEST_MISMATCH);
    }

    #[test]
    fn a_partial_answer_has_to_be_the_rest_of_this_file() {
        for (range, is_the_rest) in [
            ("bytes 100-199/200", true),
            ("bytes 100-199/*", true),
            ("bytes 99-199/200", false),
            ("bytes 100-299/300", false),
            ("bytes */200", false),
            ("100-199/200", false),
        ] {
            let headers = HeaderMap::from_iter([(CONTENT_RANGE, range.parse().unwrap())]);
            assert_eq!(is_rest(&headers, 100, 200), is_the_rest, "{range}");
        }
    }
}
