//! The release of a job and whether it is trusted: the service's offer is verified with the keys
//! that this hub was installed with. Nothing is downloaded before that.

use std::path::{Path, PathBuf};

use hub_protocol::job::{DesiredJob, HubJobType};
use hub_protocol::release::{
    self, Distrust, PublicKey, ReleaseKind, ReleaseManifest, ReleaseOffer,
};

use super::job::{Trouble, reason};
use crate::cloud::{CallError, Request, Service};

/// The name of every release of the agent.
const AGENT_NAME: &str = "hub-agent";

/// A minisign public key has two short lines.
const MAX_KEY_BYTES: u64 = 4_096;

/// Requests the release that a job names from the service, with a new download URL.
pub async fn request(service: &Service, job: &DesiredJob) -> Result<ReleaseOffer, Trouble> {
    let Some(release_uuid) = job.release_uuid else {
        return Err(Trouble::fatal(
            reason::BAD_RELEASE,
            "the job names no release",
        ));
    };
    let path = match job.job_type {
        HubJobType::SelfUpdate => format!("/v1/agent/releases/latest?releaseUuid={release_uuid}"),
        HubJobType::AppInstall
        | HubJobType::AppRemove
        | HubJobType::DeviceCommand
        | HubJobType::Move => {
            format!("/v1/apps/{release_uuid}/manifest")
        }
    };
    let later = |message| Trouble::later(reason::DOWNLOAD_FAILED, message);
    match service.call(&Request::get(path)).await {
        Ok(answer) if answer.is_success() => answer
            .data::<ReleaseOffer>()
            .map_err(|error| later(error.to_string())),
        Ok(answer)
            if matches!(answer.status, 400 | 403 | 404 | 409 | 410)
                && answer.problem().is_some() =>
        {
            let message = format!(
                "the service does not offer the release: {}",
                answer.reason()
            );
            Err(Trouble::fatal(reason::DOWNLOAD_FAILED, message))
        }
        Ok(answer) => Err(later(answer.reason())),
        Err(error @ (CallError::NoAccess | CallError::Unreachable(_))) => {
            Err(later(error.to_string()))
        }
    }
}

/// The digest in a manifest, trusted or not.
pub fn sha256_of(offer: &ReleaseOffer) -> Option<String> {
    release::parse(offer.manifest.as_bytes())
        .ok()
        .map(|manifest| manifest.sha256)
}

/// The manifest of an offer, if a trusted key signed it, the job names it, and this machine can run
/// it.
pub fn verify(
    offer: &ReleaseOffer,
    job: &DesiredJob,
    keys: &Path,
) -> Result<ReleaseManifest, Trouble> {
    let (kind, folder) = match job.job_type {
        HubJobType::SelfUpdate => (ReleaseKind::Agent, "agent"),
        HubJobType::AppInstall
        | HubJobType::AppRemove
        | HubJobType::DeviceCommand
        | HubJobType::Move => (ReleaseKind::App, "app"),
    };
    let folder = keys.join(folder);
    let trusted = read_keys(&folder);
    if trusted.is_empty() {
        let message = format!(
            "{} contains no public key; see --release-keys",
            folder.display()
        );
        return Err(Trouble::fatal(reason::BAD_SIGNATURE, message));
    }
    let manifest = release::verify(offer.manifest.as_bytes(), &offer.signature, &trusted).map_err(
        |distrust| {
            let reason = match distrust {
                Distrust::MalformedSignature(_)
                | Distrust::UnknownKey(_)
                | Distrust::WrongSignature => reason::BAD_SIGNATURE,
                Distrust::MalformedManifest(_) | Distrust::Field { .. } => reason::BAD_RELEASE,
            };
            Trouble::fatal(reason, distrust.to_string())
        },
    )?;
    let wrong = |message: String| Err(Trouble::fatal(reason::BAD_RELEASE, message));
    if Some(offer.release_uuid) != job.release_uuid {
        return wrong(format!(
            "the service offers release {}, which is not the one of the job",
            offer.release_uuid
        ));
    }
    if kind == ReleaseKind::App && offer.app_uuid != job.app_uuid {
        return wrong("the release belongs to another app than the job".to_owned());
    }
    if manifest.kind != kind || (kind == ReleaseKind::Agent && manifest.name != AGENT_NAME) {
        return wrong(format!(
            "{} {} is not the kind of release that the job requests",
            manifest.name, manifest.version
        ));
    }
    let uname = rustix::system::uname();
    let machine = uname.machine().to_string_lossy();
    if !manifest.fits(&machine) {
        let message = format!(
            "the release is for {}, and this hub is {machine}",
            manifest.architecture
        );
        return Err(Trouble::fatal(reason::WRONG_ARCHITECTURE, message));
    }
    Ok(manifest)
}

/// The keys in a folder, read at each use so that a key can be added without a restart. Files that
/// are not keys are logged and skipped.
fn read_keys(folder: &Path) -> Vec<PublicKey> {
    let mut keys = Vec::new();
    for (file, key) in keys_in(folder) {
        match key {
            Ok(key) => keys.push(key),
            Err(error) => {
                tracing::warn!(file = %file.display(), error, "a release key cannot be used")
            }
        }
    }
    keys
}

/// The keys in the files `*.pub`, or why a file is not a key.
pub fn keys_in(folder: &Path) -> Vec<(PathBuf, Result<PublicKey, String>)> {
    let files = std::fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path());
    let keys = files.filter(|path| path.extension().is_some_and(|extension| extension == "pub"));
    keys.map(|path| {
        let bytes = std::fs::metadata(&path).map_or(0, |metadata| metadata.len());
        let read = if bytes > MAX_KEY_BYTES {
            Err("the file is too long".to_owned())
        } else {
            std::fs::read_to_string(&path).map_err(|error| error.to_string())
        };
        (
            path,
            read.and_then(|text| release::public_key(&text).map_err(|error| error.to_string())),
        )
    })
    .collect()
}
