//! The files of an app's releases, and the documents that came with them.

use hub_client::{Call, operations};
use hub_protocol::ReleaseUuid;
use serde_json::Value;

use super::archive::{Lines, NewFile};
use super::exporter::Export;
use super::report::some;
use crate::config::text;
use crate::failure::Failure;

/// The list of releases, from which both follow.
pub const RELEASES: &str = "releases.ndjson";
/// The part that `--skip` leaves out.
pub const FILES: &str = "files";
const DOCUMENTS: &str = "release-documents";

/// The file of a release, in the folder of an export.
pub fn file_name(release: &str) -> String {
    format!("release-files/{release}")
}

/// A document of a release, in the folder of an export.
pub fn document_name(release: &str, document: &str) -> String {
    format!("{DOCUMENTS}/{release}.{document}.json")
}

/// The documents of a release that were uploaded, with their digests.
pub fn documents(release: &Value) -> Vec<(&'static str, String)> {
    let listed = release.get("documents").and_then(Value::as_array);
    let uploaded = |document: &Value| {
        let name = match text(document, "document").as_str() {
            "sbom" => "sbom",
            "vex" => "vex",
            _ => return None,
        };
        let is_there = !text(document, "uploadedAt").is_empty();
        is_there.then(|| (name, text(document, "sha256")))
    };
    listed.into_iter().flatten().filter_map(uploaded).collect()
}

fn path(call: Call, release: &Value) -> Call {
    call.path("appUuid", text(release, "appUuid"))
        .path("releaseUuid", text(release, "releaseUuid"))
}

/// All files and documents of releases that are published. Those that are there are finished.
pub async fn export(export: &mut Export<'_>) -> Result<(), Failure> {
    let (mut has_documents, mut has_files) = (true, export.has(FILES));
    let mut damaged = Vec::new();
    let mut lines = Lines::open(export.directory, RELEASES)?;
    while let Some(release) = lines.next()? {
        let uuid = text(&release, "releaseUuid");
        if text(&release, "status") != "READY" {
            continue;
        }
        if uuid.parse::<ReleaseUuid>().is_err() {
            let message = "the service answered a release without an id";
            return Err(Failure::failed(message));
        }
        for (document, sha256) in documents(&release) {
            if !has_documents {
                break;
            }
            let name = document_name(&uuid, document);
            let call = path(operations::RELEASE_DOCUMENT.call(), &release);
            let call = call.path("document", document);
            let begun = begin(export, &name)?;
            let Some(mut file) = begun else { continue };
            match export.client.file(call).await {
                Ok(bytes) => file.write(&bytes)?,
                Err(error) => {
                    file.discard();
                    export.leave_out(DOCUMENTS, error)?;
                    has_documents = false;
                    break;
                }
            }
            keep(export, file, &sha256, &mut damaged)?;
        }
        if !has_files {
            continue;
        }
        let begun = begin(export, &file_name(&uuid))?;
        let Some(mut file) = begun else { continue };
        let call = path(operations::RELEASE_FILE_URL.call(), &release);
        let received = match export.client.call::<Value>(call).await {
            Ok(asset) => {
                let url = text(&asset, "url");
                export.client.get_file(&url, &mut file).await
            }
            Err(error) => Err(error),
        };
        match received {
            Ok(()) => keep(export, file, &text(&release, "sha256"), &mut damaged)?,
            Err(error) => {
                file.discard();
                export.leave_out(FILES, error)?;
                has_files = false;
            }
        }
    }
    if !damaged.is_empty() {
        let reason = format!(
            "what the service sent is not what was signed: {}",
            some(&damaged)
        );
        export.refuse(FILES, reason);
    }
    Ok(())
}

/// A new file, unless it is there.
fn begin(export: &mut Export<'_>, name: &str) -> Result<Option<NewFile>, Failure> {
    if export.directory.join(name).is_file() {
        export.keep_finished(name)?;
        return Ok(None);
    }
    NewFile::create(export.directory, name).map(Some)
}

/// Gives a file its name, if it is what was signed.
fn keep(
    export: &mut Export<'_>,
    file: NewFile,
    sha256: &str,
    damaged: &mut Vec<String>,
) -> Result<(), Failure> {
    if file.sha256() == sha256 {
        return export.keep(file);
    }
    damaged.push(file.name().to_owned());
    file.discard();
    Ok(())
}
