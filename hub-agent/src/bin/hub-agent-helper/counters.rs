//! The highest counter of a committed release, by kind and name: lower ones are refused.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::PathBuf;

use hub_agent::helper_api::{Reason, Refusal};
use hub_protocol::release::{ReleaseKind, ReleaseManifest};

use crate::durable;
use crate::refusal::{internal, refuse};
use crate::root::Root;

fn file(root: &Root) -> PathBuf {
    root.join("var/lib/hub-agent-helper/counters.json")
}

/// An app may have the agent's name.
fn key(manifest: &ReleaseManifest) -> String {
    match manifest.kind {
        ReleaseKind::Agent => format!("agent/{}", manifest.name),
        ReleaseKind::App => format!("app/{}", manifest.name),
    }
}

fn read(root: &Root) -> Result<BTreeMap<String, u64>, Refusal> {
    let path = file(root);
    match std::fs::read(&path) {
        Ok(json) => serde_json::from_slice(&json).map_err(|error| {
            refuse(
                Reason::Internal,
                format!("{} is damaged: {error}", path.display()),
            )
        }),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(BTreeMap::new()),
        Err(error) => Err(internal("cannot read the counters")(error)),
    }
}

/// Refuses a release with a lower counter.
pub fn check(root: &Root, manifest: &ReleaseManifest) -> Result<(), Refusal> {
    let highest = read(root)?.get(&key(manifest)).copied().unwrap_or(0);
    if manifest.counter < highest && !manifest.downgrade {
        let found = format!(
            "{} {} has counter {}",
            manifest.name, manifest.version, manifest.counter
        );
        let message = format!(
            "{found}, and this hub has had {highest}; the release is not marked as a downgrade"
        );
        return Err(refuse(Reason::CounterTooLow, message));
    }
    Ok(())
}

/// Records a committed release. A downgrade does not lower the counter.
pub fn raise(root: &Root, manifest: &ReleaseManifest) -> Result<(), Refusal> {
    let mut counters = read(root)?;
    let highest = counters.entry(key(manifest)).or_default();
    if manifest.counter <= *highest {
        return Ok(());
    }
    *highest = manifest.counter;
    let json = serde_json::to_vec(&counters).map_err(|error| refuse(Reason::Internal, error))?;
    durable::replace(&file(root), &json, 0o600)
        .map(drop)
        .map_err(internal("cannot write the counters"))
}

/// Removes what a killed helper left unfinished.
pub fn clean_up(root: &Root) -> Result<(), Refusal> {
    durable::remove_unfinished(&root.join("var/lib/hub-agent-helper"))
        .map_err(internal("cannot clean up"))
}
