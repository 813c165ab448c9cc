//! `hub-cloud keys`: lists and replaces the master keys and the token signing key while the service
//! runs.

use crate::app::App;
use crate::error::{Error, Result};
use crate::sealing::stored;

/// Lists the master keys, one per line with the number of secrets sealed with it, then the token
/// signing keys.
pub async fn list(app: &App) -> Result<String> {
    let mut conn = app.db.read().await?;
    let mut lines = String::new();
    for (index, id) in app.sealer.key_ids().into_iter().enumerate() {
        let count = stored::count_sealed_with(&mut conn, &id).await?;
        let role = if index == 0 { "seals and opens" } else { "opens" };
        lines.push_str(&format!("{id}  {role}, {count} secrets sealed with it\n"));
    }
    drop(conn);
    for key in app.parts().authn.keys.public() {
        lines.push_str(&format!("{}  token signing key, published in the JWKS\n", key.kid));
    }
    Ok(lines)
}

/// Replaces the master key (if a file holds it) and the signing key, and reseals every secret. It
/// may be interrupted and run again at any time.
pub async fn rotate(app: &App) -> Result<String> {
    let now = app.clock.now();
    if app.sealer.file().is_some() {
        app.sealer.add_key().map_err(Error::internal)?;
    }
    let ids = app.sealer.key_ids();
    let active = ids.first().cloned().unwrap_or_default();
    stored::register(&app.db, &active, now).await?;
    let count = stored::reseal(&app.db, &app.sealer, |done| eprintln!("{done} secrets resealed")).await?;
    let has_new_signing_key = app.parts().authn.keys.rotate(&app.db, now, true, app.config.tokens_live_secs()).await?;
    let mut report = format!("{count} secrets resealed; all secrets are now sealed with the master key {active}\n");
    if app.sealer.file().is_none() {
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
            "the master key {old} still opens: keep it while backups need it, then run `hub-cloud keys forget {old}`\n"
        ));
    }
    Ok(report)
}

/// Removes a master key that no secret is sealed with.
pub async fn forget(app: &App, id: &str) -> Result<String> {
    let ids = app.sealer.key_ids();
    if ids.first().is_some_and(|active| active == id) {
        return Err(Error::conflict(
            "KEY_IN_USE",
            format!("{id} is the active master key; run `hub-cloud keys rotate` first to replace it"),
        ));
    }
    let is_registered = stored::registered(&mut app.db.read().await?).await?.iter().any(|known| known == id);
    if !ids.iter().any(|known| known == id) && !is_registered {
        return Err(Error::field(
            "ID",
            format!("there is no master key {id}; `hub-cloud keys list` shows the existing keys"),
        ));
    }
    let count = stored::count_sealed_with(&mut app.db.read().await?, id).await?;
    if count > 0 {
        let message = format!("{count} secrets are still sealed with {id}; run `hub-cloud keys rotate` first");
        return Err(Error::conflict("KEY_IN_USE", message));
    }
    stored::unregister(&app.db, id).await?;
    match app.sealer.file() {
        Some(file) => {
            app.sealer.remove_key(id).map_err(Error::internal)?;
            Ok(format!("the master key {id} was removed from {}\n", file.display()))
        }
        None => Ok(format!("the master key {id} is no longer needed: remove it from the setting master-key\n")),
    }
}
