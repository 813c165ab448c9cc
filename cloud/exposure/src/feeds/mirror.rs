//! Fetching feeds from a mirror, whose URL the operator has set: `ECOSYSTEM/all.zip`, and KEV's
//! catalog. A file comes in pieces, so that it is never in memory as a whole.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use axum::http::{HeaderMap, HeaderValue, Method, header};
use bytes::Bytes;
use hub_base::error::Error;
use hub_core::Core;
use hub_outgoing::{Outgoing, OutgoingConfig, OutgoingRequest, OutgoingResponse};
use reqwest::Url;

use super::ImportError;

/// The path of KEV's catalog.
const CATALOG: &str = "known_exploited_vulnerabilities.json";
/// The limit of one piece.
const WITHIN: Duration = Duration::from_secs(300);
const PIECE_BYTES: usize = 16 * 1024 * 1024;
/// The largest file.
const MAX_BYTES: u64 = 4 * 1024 * 1024 * 1024;

/// What the feeds are called at the mirror: of an ecosystem, or the catalog where there is none.
pub fn path_of(ecosystem: Option<&str>) -> String {
    ecosystem.map_or_else(|| CATALOG.to_owned(), |name| format!("{name}/all.zip"))
}

/// A file that was fetched, which is removed with this value.
pub struct Fetched(PathBuf);

impl Fetched {
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Fetched {
    fn drop(&mut self) {
        // What cannot be removed is overwritten by the next one.
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Fetches a file below the mirror's URL into the data directory.
pub async fn fetch(core: &Core, mirror: &str, path: &str) -> Result<Fetched, ImportError> {
    let text = format!("{mirror}/{path}");
    let failed = |why: String| ImportError::Unreadable(format!("{text}: {why}"));
    // The operator chose the address, so it may be in a private network.
    let outgoing = Outgoing::new(
        &OutgoingConfig {
            allow_private_targets: true.into(),
            ..core.config.outgoing.clone()
        },
        core.metrics.clone(),
    )
    .map_err(|error| failed(error.to_string()))?;
    let url = outgoing
        .check_url(&text, &["https", "http"])
        .map_err(failed)?;
    let name = format!("vulnerabilities-{}.part", std::process::id());
    let fetched = Fetched(core.config.data_dir.join(name));
    let mut file = File::create(fetched.path()).map_err(|error| failed(error.to_string()))?;
    let mut bytes = 0;
    let mut version: Option<HeaderValue> = None;
    loop {
        let answer = piece(&outgoing, &url, bytes)
            .await
            .map_err(|error| failed(error.to_string()))?;
        let tag = answer.headers.get(header::ETAG).cloned();
        if bytes > 0 && tag != version {
            return Err(failed(
                "has changed while it was fetched; try again".to_owned(),
            ));
        }
        version = tag;
        let total = total(&answer, bytes).map_err(failed)?;
        file.write_all(&answer.body)
            .map_err(|error| failed(error.to_string()))?;
        bytes += u64::try_from(answer.body.len()).unwrap_or(u64::MAX);
        if bytes >= total {
            break;
        }
        if answer.body.is_empty() || bytes > MAX_BYTES {
            return Err(failed("does not come to its end".to_owned()));
        }
    }
    file.flush().map_err(Error::internal)?;
    Ok(fetched)
}

async fn piece(
    outgoing: &Outgoing,
    url: &Url,
    from: u64,
) -> Result<OutgoingResponse, hub_outgoing::CallError> {
    let last = from + u64::try_from(PIECE_BYTES).unwrap_or(u64::MAX) - 1;
    let mut headers = HeaderMap::new();
    if let Ok(range) = HeaderValue::from_str(&format!("bytes={from}-{last}")) {
        headers.insert(header::RANGE, range);
    }
    outgoing
        .send(OutgoingRequest {
            method: Method::GET,
            url: url.clone(),
            headers,
            body: Bytes::new(),
            within: WITHIN,
            max_response_bytes: PIECE_BYTES,
            tls: None,
        })
        .await
}

/// How many bytes the file has of which this is the piece from `from` on.
fn total(answer: &OutgoingResponse, from: u64) -> Result<u64, String> {
    match answer.status {
        200 if from > 0 || answer.is_cut => Err(
            "the mirror sends no ranges of files, which it needs for one that is so large"
                .to_owned(),
        ),
        200 => Ok(u64::try_from(answer.body.len()).unwrap_or(u64::MAX)),
        206 => {
            let range = answer.headers.get(header::CONTENT_RANGE);
            let range = range
                .and_then(|range| range.to_str().ok())
                .unwrap_or_default();
            let begins = format!("bytes {from}-");
            range
                .strip_prefix(begins.as_str())
                .and_then(|rest| rest.split_once('/'))
                .and_then(|(_, total)| total.parse().ok())
                .filter(|_| !answer.is_cut)
                .ok_or_else(|| {
                    format!("the mirror sent another range than was asked for: {range:?}")
                })
        }
        status => Err(format!("the mirror answered {status}")),
    }
}
