//! `hub export tenant`: reads all that a tenant has, and writes it as files.

use std::fs::{File, TryLockError};
use std::path::Path;

use super::archive::{self, BEGUN, Begun, FORMAT, MANIFEST, UNFINISHED, failed};
use super::args::ExportTenantOptions;
use super::exporter::Export;
use super::{caller, parts};
use crate::connect::in_tenant;
use crate::failure::Failure;
use crate::global::Global;
use crate::text::printable;

pub async fn export(global: &Global, options: &ExportTenantOptions) -> Result<(), Failure> {
    let client = in_tenant(global).await?.patient();
    let caller = caller(&client).await?;
    let mut skipped = options.skip.clone();
    skipped.sort();
    skipped.dedup();
    let begun = Begun {
        format: FORMAT,
        service_url: client.service().to_string(),
        tenant_uuid: caller.tenant_uuid,
        tenant_name: caller.tenant_name,
        began_at: caller.server_time,
        since: options.since,
        skipped,
    };
    let (begun, _lock) = begin(&options.out, begun)?;
    let mut export = Export::new(client, &options.out, begun, global.json);
    if let Err(failure) = parts::all(&mut export).await {
        let message = format!(
            "{}; the export is not finished, run the same command again to continue",
            failure.message
        );
        return Err(Failure { message, ..failure });
    }
    export.finish(global).await
}

/// Begins an export, or goes on with an interrupted one of the same tenant. The lock keeps a second
/// export out of the folder.
fn begin(directory: &Path, begun: Begun) -> Result<(Begun, File), Failure> {
    let place = printable(&directory.display().to_string());
    if directory.join(MANIFEST).exists() {
        return Err(Failure::usage(format!(
            "{place} has a finished export; choose another folder"
        )));
    }
    archive::make_folder(directory)?;
    let path = directory.join(BEGUN);
    let begun = match path.is_file() {
        true => {
            let document = archive::read_document(&path)?;
            let before: Begun = serde_json::from_value(document)
                .map_err(|error| failed(&path, format!("damaged: {error}")))?;
            let wanted = Begun {
                began_at: before.began_at,
                tenant_name: before.tenant_name.clone(),
                ..begun
            };
            if wanted != before {
                return Err(Failure::usage(format!(
                    "{place} has an unfinished export of another tenant, or with other options; \
                     choose another folder"
                )));
            }
            before
        }
        false => {
            let unfinished = format!("{BEGUN}{UNFINISHED}");
            let others = archive::names(directory)?;
            if others.iter().any(|name| *name != unfinished) {
                return Err(Failure::usage(format!(
                    "{place} has other files; choose a new folder"
                )));
            }
            archive::write_document(directory, BEGUN, &serde_json::to_value(&begun)?)?;
            begun
        }
    };
    let lock = File::open(&path).map_err(|error| failed(&path, error))?;
    match lock.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            return Err(Failure::usage(format!("another export writes to {place}")));
        }
        Err(TryLockError::Error(error)) => return Err(failed(&path, error)),
    }
    archive::remove_unfinished(directory)?;
    Ok((begun, lock))
}
