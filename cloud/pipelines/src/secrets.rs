//! The secrets that sign the messages of a pipeline: the one in force, and those that it replaced,
//! each of which signs as well for a day after its replacement.

use hub_base::error::{Error, Result};
use hub_base::sealing::stored::{PIPELINE_PREVIOUS_SECRET, PIPELINE_SIGNING_SECRET};
use hub_core::Core;
use hub_destinations::Signing;
use hub_protocol::Timestamp;
use secrecy::SecretString;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::store::{RevisionRow, SealedPrevious};

/// How long a replaced secret signs as well.
const OVERLAP_SECS: i64 = 24 * 3600;
/// Replaced secrets that sign at once: each of them makes every message longer.
const MAX_PREVIOUS: usize = 8;

/// A replaced secret, as it is sealed in a list.
#[derive(Serialize, Deserialize)]
struct Previous {
    secret: String,
    until: Timestamp,
}

/// The secrets of a pipeline, and when the first of those that were replaced signs no longer.
pub fn open(
    core: &Core,
    row: &RevisionRow,
    now: Timestamp,
) -> Result<(Option<Signing>, Option<Timestamp>)> {
    let Some(current) = &row.sealed_signing_secret else {
        return Ok((None, None));
    };
    let current = open_current(core, row.pipeline_uuid, current)?;
    let sealed = row.sealed_previous_secret.as_deref();
    let previous = open_previous(core, row.pipeline_uuid, sealed, now)?;
    let first_end = previous.iter().map(|previous| previous.until).min();
    let previous = previous
        .into_iter()
        .map(|previous| SecretString::from(previous.secret))
        .collect();
    let current = SecretString::from(current);
    Ok((Some(Signing { current, previous }), first_end))
}

/// What is stored of the replaced secrets when the current one is replaced.
pub fn replaced(
    core: &Core,
    pipeline_uuid: Uuid,
    current: Option<&[u8]>,
    previous: Option<&[u8]>,
    now: Timestamp,
) -> Result<Option<SealedPrevious>> {
    let mut all = open_previous(core, pipeline_uuid, previous, now)?;
    if all.len() >= MAX_PREVIOUS {
        let message = format!(
            "{MAX_PREVIOUS} secrets of the last day still sign; rotate again when the first of \
             them has ended"
        );
        return Err(Error::conflict("TOO_MANY_SECRETS", message));
    }
    if let Some(current) = current {
        let until = now.plus_secs(OVERLAP_SECS);
        let secret = open_current(core, pipeline_uuid, current)?;
        all.insert(0, Previous { secret, until });
    }
    let Some(until) = all.first().map(|newest| newest.until) else {
        return Ok(None);
    };
    let text = serde_json::to_vec(&all).map_err(Error::internal)?;
    let id = pipeline_uuid.to_string();
    let sealed = core.sealer.seal(PIPELINE_PREVIOUS_SECRET, &id, &text);
    Ok(Some(SealedPrevious { sealed, until }))
}

fn open_current(core: &Core, pipeline_uuid: Uuid, sealed: &[u8]) -> Result<String> {
    let id = pipeline_uuid.to_string();
    let secret = core.sealer.open(PIPELINE_SIGNING_SECRET, &id, sealed);
    String::from_utf8(secret.map_err(Error::internal)?).map_err(Error::internal)
}

/// Those that still sign, the newest first.
fn open_previous(
    core: &Core,
    pipeline_uuid: Uuid,
    sealed: Option<&[u8]>,
    now: Timestamp,
) -> Result<Vec<Previous>> {
    let Some(sealed) = sealed else {
        return Ok(Vec::new());
    };
    let id = pipeline_uuid.to_string();
    let text = core.sealer.open(PIPELINE_PREVIOUS_SECRET, &id, sealed);
    let mut all: Vec<Previous> =
        serde_json::from_slice(&text.map_err(Error::internal)?).map_err(Error::internal)?;
    all.retain(|previous| now < previous.until);
    Ok(all)
}
