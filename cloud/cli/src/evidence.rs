//! The files of `hub vulnerabilities evidence`: what the service states, its signature and the keys
//! that verify it.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::Path;

use hub_client::{Client, operations};
use serde::Deserialize;

use crate::failure::Failure;
use crate::terminal::print;
use crate::text::printable;

/// The lines that the signature is about.
const LINES: &str = "evidence.ndjson";
/// A JWS in its compact form, with the SHA-256 of the lines.
const SIGNATURE: &str = "evidence.jws";
/// The keys of the service (RFC 7517).
const KEYS: &str = "keys.json";
/// No line with a signature is longer.
const MAX_SIGNATURE_LINE: u64 = 16 * 1024;

#[derive(Deserialize)]
struct Line {
    #[serde(rename = "type")]
    kind: String,
    data: Signature,
}

#[derive(Deserialize)]
struct Signature {
    jws: String,
}

/// Writes the files into a folder, which is created if it is not there.
pub async fn write(client: &Client, id: String, folder: &Path) -> Result<(), Failure> {
    let failed = |error: std::io::Error| {
        Failure::failed(format!("{}: {error}", folder.display())).about("the evidence")
    };
    std::fs::create_dir_all(folder).map_err(failed)?;
    let part = folder.join(format!("{LINES}.part"));
    let mut file = File::options()
        .create(true)
        .truncate(true)
        .read(true)
        .write(true)
        .open(&part)
        .map_err(failed)?;
    let call = operations::VULNERABILITY_EVIDENCE
        .call()
        .path("vulnerabilityId", id);
    client.download(call, &mut file).await?;
    let (lines, jws) = signature(&mut file).map_err(failed)?.ok_or_else(|| {
        Failure::failed("the evidence was cut off: it has no signature; try again")
    })?;
    file.set_len(lines).map_err(failed)?;
    file.flush().map_err(failed)?;
    let keys = client.file(operations::KEY_SET.call()).await?;
    std::fs::write(folder.join(SIGNATURE), jws).map_err(failed)?;
    std::fs::write(folder.join(KEYS), keys).map_err(failed)?;
    std::fs::rename(&part, folder.join(LINES)).map_err(failed)?;
    print(&format!(
        "{} has {LINES}, {SIGNATURE} and {KEYS}\n",
        printable(&folder.display().to_string())
    ))
}

/// The number of bytes before the last line, and the signature in it; None if it has none.
fn signature(file: &mut File) -> std::io::Result<Option<(u64, String)>> {
    let size = file.seek(SeekFrom::End(0))?;
    let start = size.saturating_sub(MAX_SIGNATURE_LINE);
    file.seek(SeekFrom::Start(start))?;
    let mut tail = Vec::new();
    file.take(MAX_SIGNATURE_LINE).read_to_end(&mut tail)?;
    let Some(lines) = tail.strip_suffix(b"\n") else {
        return Ok(None);
    };
    let before = lines.iter().rposition(|byte| *byte == b'\n');
    let before = before.map_or(0, |position| position + 1);
    let last = lines.get(before..).unwrap_or_default();
    let line: Option<Line> = serde_json::from_slice(last).ok();
    let jws = line.filter(|line| line.kind == "signature");
    Ok(jws.map(|line| (start + before as u64, line.data.jws)))
}
