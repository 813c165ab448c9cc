//! `hub-cloud keys`: lists and replaces the master keys and the token signing key while the service
//! runs.

use hub_base::error::{Error, Result};
use hub_base::sealing::stored;
use serde::Serialize;
use serde_json::json;

use super::printed;
use crate::app::Base;

/// A master key in the JSON form of the list.
#[derive(Serialize)]
struct MasterKey {
    id: String,
    /// Whether new secrets are sealed with it. Every listed key opens.
    seals: bool,
    /// The number of secrets that are sealed with it.
    secrets: i64,
}

/// Lists the master keys, one per line with the number of secrets sealed with it, then the token
/// signing keys; or both as one JSON object.
pub async fn list(base: &Base, as_json: bool) -> Result<String> {
    let mut conn = base.db.read().await?;
    let mut master_keys = Vec::new();
    for (index, id) in base.sealer.key_ids().into_iter().enumerate() {
        let secrets = stored::count_sealed_with(&mut conn, &id).await?;
        master_keys.push(MasterKey {
            id,
            seals: index == 0,
            secrets,
        });
    }
    drop(conn);
    let signing_keys = base.authn.keys.public(base.clock.now());
    if as_json {
        let signing_keys: Vec<_> = signing_keys
            .iter()
            .map(|key| json!({"id": key.kid}))
            .collect();
        return printed(&json!({"masterKeys": master_keys, "signingKeys": signing_keys}));
    }
    let mut lines = String::new();
    for MasterKey { id, seals, secrets } in master_keys {
        let role = if seals { "seals and opens" } else { "opens" };
        lines.push_str(&format!("{id}  {role}, {secrets} secrets sealed with it\n"));
    }
    for key in signing_keys {
        lines.push_str(&format!(
            "{}  token signing key, published in the JWKS\n",
            key.kid
        ));
    }
    Ok(lines)
}

/// Replaces the master key (if a file holds it) and the signing key, and reseals every secret. The
/// command may be interrupted and repeated at any time.
pub async fn rotate(base: &Base) -> Result<String> {
    let now = base.clock.now();
    // A key that an interrupted rotation has left is used, so that none is ever without secrets.
    let is_continued = base.sealer.file().is_some() && is_interrupted(base).await?;
    if base.sealer.file().is_some() && !is_continued {
        base.sealer.add_key().map_err(Error::internal)?;
    }
    let ids = base.sealer.key_ids();
    let active = ids.first().cloned().unwrap_or_default();
    stored::register(&base.db, &active, now).await?;
    let count = stored::reseal(&base.db, &base.sealer, |done| {
        hub_logging::say(format_args!("{done} secrets resealed"))
    })
    .await?;
    let has_new_signing_key = base.authn.keys.rotate(&base.db, now, true).await?;
    let mut report = format!(
        "{count} secrets resealed; all secrets are now sealed with the master key {active}\n"
    );
    if is_continued {
        report.push_str(
            "(this completes a rotation that was interrupted; run it again for another new key)\n",
        );
    }
    if base.sealer.file().is_none() {
        report.push_str(
            "(the setting master-key holds the keys and its first key seals; to replace it, put a new key first)\n",
        );
    }
    report.push_str(match has_new_signing_key {
        true => {
            "a new signing key is in the JWKS and signs in 15 minutes; \
             the old key is removed when its last token has expired\n"
        }
        false => "a new signing key is already published and about to sign\n",
    });
    for old in ids.iter().skip(1) {
        report.push_str(&format!(
            "the master key {old} can still decrypt: keep it while backups need it, then run `hub-cloud keys forget {old}`\n"
        ));
    }
    Ok(report)
}

/// Whether secrets are sealed with an older key than the first.
async fn is_interrupted(base: &Base) -> Result<bool> {
    let mut conn = base.db.read().await?;
    for id in base.sealer.key_ids().iter().skip(1) {
        if stored::count_sealed_with(&mut conn, id).await? > 0 {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Removes a master key that no secret is sealed with.
pub async fn forget(base: &Base, id: &str) -> Result<String> {
    let ids = base.sealer.key_ids();
    if ids.first().is_some_and(|active| active == id) {
        return Err(Error::conflict(
            "KEY_IN_USE",
            format!(
                "{id} is the active master key; run `hub-cloud keys rotate` first to replace it"
            ),
        ));
    }
    let is_registered = stored::registered(&mut base.db.read().await?)
        .await?
        .iter()
        .any(|known| known == id);
    if !ids.iter().any(|known| known == id) && !is_registered {
        return Err(Error::field(
            "ID",
            format!("there is no master key {id}; `hub-cloud keys list` shows the existing keys"),
        ));
    }
    let count = stored::count_sealed_with(&mut base.db.read().await?, id).await?;
    if count > 0 {
        let message = format!(
            "{count} secrets are still sealed with {id}; run `hub-cloud keys rotate` first"
        );
        return Err(Error::conflict("KEY_IN_USE", message));
    }
    stored::unregister(&base.db, id).await?;
    match base.sealer.file() {
        Some(file) => {
            base.sealer.remove_key(id).map_err(Error::internal)?;
            Ok(format!(
                "the master key {id} was removed from {}\n",
                file.display()
            ))
        }
        None => Ok(format!(
            "the master key {id} is no longer needed: remove it from the setting master-key\n"
        )),
    }
}
