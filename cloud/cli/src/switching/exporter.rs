//! An export in progress: its files, and what it leaves out.

use std::collections::BTreeSet;
use std::path::Path;

use hub_client::{Client, Error, now, operations};
use serde_json::Value;

use super::archive::{self, BEGUN, Begun, Entry, LeftOut, MANIFEST, Manifest, NewFile, failed};
use crate::config;
use crate::failure::Failure;
use crate::global::Global;
use crate::terminal::{note, print_json};
use crate::text::printable;

/// What is in no file, whoever exports.
const NEVER: [(&str, &str); 8] = [
    (
        "secrets",
        "passwords, tokens and secrets of pipelines, endpoints and suppliers are never shown; enter them anew",
    ),
    (
        "keys of devices",
        "bind keys and identity resolving keys are never shown; devices.ndjson says which devices have one",
    ),
    (
        "API keys",
        "only their names and scopes are here; create new ones",
    ),
    (
        "keys of releases",
        "which signatures are trusted is a setting of the service, not of the tenant",
    ),
    ("claim codes", "they claim hubs for this tenant only"),
    (
        "setup delegations and commands of devices",
        "they name accounts of this service, or are carried out",
    ),
    (
        "dead letters and deliveries",
        "they are of the pipelines of this service",
    ),
    ("billing", "balance and bookings are of this service"),
];

/// An export in progress.
pub struct Export<'a> {
    pub client: Client,
    pub directory: &'a Path,
    pub begun: Begun,
    is_quiet: bool,
    files: Vec<Entry>,
    left_out: Vec<LeftOut>,
    /// Parts that the service refused.
    refused: Vec<String>,
}

impl<'a> Export<'a> {
    pub fn new(client: Client, directory: &'a Path, begun: Begun, is_quiet: bool) -> Self {
        Self {
            client,
            directory,
            begun,
            is_quiet,
            files: Vec::new(),
            left_out: Vec::new(),
            refused: Vec::new(),
        }
    }

    pub fn has(&self, part: &str) -> bool {
        !self.begun.skipped.iter().any(|skipped| skipped == part)
    }

    /// A part that the service does not give is left out, and stated; everything else ends the
    /// export.
    pub fn leave_out(&mut self, part: &str, error: Error) -> Result<(), Failure> {
        match error.status() {
            Some(400 | 403 | 404) => {
                self.refuse(part, error.to_string());
                Ok(())
            }
            _ => Err(Failure::from(error).about(part)),
        }
    }

    /// States that a part could not be read.
    pub fn refuse(&mut self, part: &str, reason: String) {
        note(&format!("# {part}: not read: {}", printable(&reason)));
        self.refused.push(part.to_owned());
        self.left_out.push(LeftOut {
            part: part.to_owned(),
            reason,
        });
    }

    pub fn keep(&mut self, file: NewFile) -> Result<(), Failure> {
        let entry = file.finish()?;
        if !self.is_quiet {
            let records = match entry.records {
                Some(records) => format!(": {records} records"),
                None => String::new(),
            };
            note(&format!("{}{records}", printable(&entry.path)));
        }
        self.files.push(entry);
        Ok(())
    }

    pub fn keep_finished(&mut self, name: &str) -> Result<(), Failure> {
        self.files.push(archive::describe(self.directory, name)?);
        Ok(())
    }

    /// Writes the manifest, which makes the export complete.
    pub async fn finish(mut self, global: &Global) -> Result<(), Failure> {
        let are_read = self
            .files
            .iter()
            .any(|file| !matches!(file.path.as_str(), "tenant.ndjson") && file.records != Some(0));
        if !are_read && !self.refused.is_empty() {
            return Err(Failure::failed(format!(
                "nothing of this tenant but its name could be read: {}",
                self.refused.join(", ")
            )));
        }
        let health: Value = self.client.call(operations::HEALTH.call()).await?;
        let never = NEVER.iter().map(|(part, reason)| LeftOut {
            part: (*part).to_owned(),
            reason: (*reason).to_owned(),
        });
        let skipped = self.begun.skipped.iter().map(|part| LeftOut {
            part: part.clone(),
            reason: "left out with --skip".to_owned(),
        });
        let left_out: Vec<LeftOut> = never.chain(skipped).chain(self.left_out).collect();
        self.files.sort_by(|a, b| a.path.cmp(&b.path));
        let kept: BTreeSet<&str> = self.files.iter().map(|file| file.path.as_str()).collect();
        for name in archive::names(self.directory)? {
            // A part that could be read before the interruption, and cannot any more.
            if name != BEGUN && !kept.contains(name.as_str()) {
                let path = self.directory.join(name);
                std::fs::remove_file(&path).map_err(|error| failed(&path, error))?;
            }
        }
        let manifest = Manifest {
            begun: self.begun,
            finished_at: now(),
            service_version: config::text(&health, "version"),
            program_version: env!("CARGO_PKG_VERSION").to_owned(),
            left_out,
            files: self.files,
        };
        let document = serde_json::to_value(&manifest)?;
        archive::write_document(self.directory, MANIFEST, &document)?;
        let begun = self.directory.join(BEGUN);
        std::fs::remove_file(&begun).map_err(|error| failed(&begun, error))?;
        match global.json {
            true => print_json(&document)?,
            false => {
                let records: u64 = manifest.files.iter().filter_map(|file| file.records).sum();
                note(&format!(
                    "Wrote {} files with {records} records to {}.",
                    manifest.files.len(),
                    printable(&self.directory.display().to_string())
                ));
                for LeftOut { part, reason } in &manifest.left_out {
                    note(&format!(
                        "# not in the files: {}: {}",
                        printable(part),
                        printable(reason)
                    ));
                }
            }
        }
        match self.refused.is_empty() {
            true => Ok(()),
            false => Err(Failure::failed(format!(
                "not everything could be read: {}; the role OWNER can read all parts",
                self.refused.join(", ")
            ))),
        }
    }
}
