//! Versions of the agent itself, beside the package's:
//! `/var/lib/hub-agent-versions/<version>-<sha256>/hub-agent`. The launcher decides which of them
//! runs.

use std::fs::{self, DirBuilder};
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

use hub_agent::helper_api::{Reason, Refusal, StagedAgent};
use hub_protocol::release::{ReleaseKind, ReleaseManifest};

use crate::apps::read_manifest;
use crate::refusal::{internal, refuse};
use crate::root::Root;
use crate::{counters, durable, release};

const VERSIONS: &str = "var/lib/hub-agent-versions";
const STAGING: &str = "var/lib/hub-agent-versions/.staging";

/// The running version, the previous one, and a new one.
const MAX_VERSIONS: usize = 3;

pub fn stage(
    root: &Root,
    headroom: u64,
    manifest_text: &str,
    signature: &str,
    file: &Path,
    in_use: &[String],
) -> Result<StagedAgent, Refusal> {
    let manifest = release::check(root, ReleaseKind::Agent, manifest_text, signature)?;
    let dir = format!(
        "{}-{}",
        manifest.version,
        manifest.sha256.get(..12).unwrap_or_default()
    );
    let version = root.join(VERSIONS).join(&dir);
    let staged = StagedAgent {
        dir: dir.clone(),
        version: manifest.version.clone(),
    };
    // The same file under another manifest is the same program. Once it has been confirmed, the
    // newest manifest counts.
    if version.exists() {
        if !read_manifest(&version).is_ok_and(|found| found.counter >= manifest.counter) {
            durable::replace(
                &version.join("manifest.json"),
                manifest_text.as_bytes(),
                0o644,
            )
            .map_err(internal("cannot write the manifest"))?;
        }
        return Ok(staged);
    }
    clear_staging(root)?;
    let placed = fill(root, headroom, &manifest, manifest_text, file)
        .and_then(|()| remove_unused(root, in_use))
        .and_then(|()| {
            durable::rename(&root.join(STAGING).join("tree"), &version)
                .map_err(internal("cannot put it in place"))
        });
    clear_staging(root)?;
    placed.map(|()| staged)
}

fn fill(
    root: &Root,
    headroom: u64,
    manifest: &ReleaseManifest,
    manifest_text: &str,
    file: &Path,
) -> Result<(), Refusal> {
    let cannot = || internal("cannot put the agent into staging");
    let tree = root.join(STAGING).join("tree");
    durable::create_dir(&tree).map_err(cannot())?;
    release::copy_file(
        root,
        headroom,
        file,
        manifest,
        &tree.join("hub-agent"),
        0o755,
    )?;
    fs::write(tree.join("manifest.json"), manifest_text).map_err(cannot())?;
    durable::sync_tree(&tree).map_err(cannot())
}

/// Removes the oldest versions that are not in use, until one more fits.
fn remove_unused(root: &Root, in_use: &[String]) -> Result<(), Refusal> {
    let mut versions = versions(root)?;
    versions.sort_by_cached_key(|name| {
        fs::metadata(root.join(VERSIONS).join(name))
            .and_then(|found| found.modified())
            .ok()
    });
    let mut unused = versions.iter().filter(|name| !in_use.contains(name));
    for _ in MAX_VERSIONS..=versions.len() {
        let message = format!("{} versions of the agent are in use", versions.len());
        discard(
            root,
            unused
                .next()
                .ok_or_else(|| refuse(Reason::Conflict, message))?,
        )?;
    }
    Ok(())
}

/// Removes versions that are not in use, and records the counter of a confirmed version.
pub fn clean(root: &Root, in_use: &[String], confirmed: Option<&str>) -> Result<(), Refusal> {
    let versions = versions(root)?;
    if let Some(confirmed) = confirmed {
        // Only existing names become part of a path.
        if !versions.iter().any(|name| name == confirmed) {
            return Err(refuse(
                Reason::NotStaged,
                format!("there is no version {confirmed:?}"),
            ));
        }
        counters::raise(root, &read_manifest(&root.join(VERSIONS).join(confirmed))?)?;
    }
    for name in &versions {
        if !in_use.contains(name) && Some(name.as_str()) != confirmed {
            discard(root, name)?;
        }
    }
    Ok(())
}

/// Removes what a killed helper left unfinished.
pub fn clean_up(root: &Root) -> Result<(), Refusal> {
    clear_staging(root)
}

fn versions(root: &Root) -> Result<Vec<String>, Refusal> {
    let mut names =
        durable::names(&root.join(VERSIONS)).map_err(internal("cannot list the versions"))?;
    names.retain(|name| !name.starts_with('.'));
    Ok(names)
}

/// Moves a version away first, then removes it: half a version would look like a whole one.
fn discard(root: &Root, name: &str) -> Result<(), Refusal> {
    let gone = root.join(STAGING).join("discarded");
    durable::rename(&root.join(VERSIONS).join(name), &gone)
        .and_then(|()| durable::remove(&gone))
        .map_err(internal(format!("cannot remove version {name}")))
}

fn clear_staging(root: &Root) -> Result<(), Refusal> {
    let cannot = || internal("cannot clear the staging directory");
    durable::create_dir(&root.join(VERSIONS)).map_err(cannot())?;
    durable::remove(&root.join(STAGING)).map_err(cannot())?;
    DirBuilder::new()
        .mode(0o700)
        .create(root.join(STAGING))
        .map_err(cannot())
}
