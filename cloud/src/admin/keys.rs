//! `hub-cloud keys`: looking at the master keys and replacing them while the service serves, and replacing the key that signs tokens.

use crate::app::App;
use crate::error::{Error, Result};
use crate::sealing::stored;

/// One line a master key: what it does, and how much is sealed with it.
pub async fn list(app: &App) -> Result<String> {
    let mut conn = app.db.read().await?;
    let mut lines = String::new();
    for (index, id) in app.sealer.key_ids().into_iter().enumerate() {
        let count = stored::count_sealed_with(&mut conn, &id).await?;
        let role = if index == 0 { "seals and opens" } else { "opens" };
        lines.push_str(&format!("{id}  {role}, {count} secrets are sealed with it\n"));
    }
    drop(conn);
    for key in app.keys.public() {
        lines.push_str(&format!("{}  signing key of tokens, in the JWKS\n", key.kid));
    }
    Ok(lines)
}

/// Replaces the master key (where a file holds it) and the signing key, and seals everything anew. May be cut off and run again at any time.
pub async fn rotate(app: &App) -> Result<String> {
    let now = app.clock.now();
    if app.sealer.file().is_some() {
        app.sealer.add_key().map_err(Error::internal)?;
    }
    let ids = app.sealer.key_ids();
    let sealing = ids.first().cloned().unwrap_or_default();
    stored::register(&app.db, &sealing, now).await?;
    let count = stored::reseal(&app.db, &app.sealer, |done| eprintln!("{done} secrets sealed anew")).await?;
    let has_new_signing_key = app.keys.rotate(&app.db, now, true, app.config.tokens_live_secs()).await?;
    let mut report = format!("{count} secrets were sealed anew; all are sealed with the master key {sealing} now\n");
    if app.sealer.file().is_none() {
        report.push_str(
            "(the setting master-key holds the keys: the first one seals; put a new key first to replace it)\n",
        );
    }
    report.push_str(match has_new_signing_key {
        true => {
            "a new signing key is in the JWKS and signs in 15 minutes; the old one goes when its last token is gone\n"
        }
        false => "a new signing key is waiting to sign already\n",
    });
    for old in ids.iter().skip(1) {
        report.push_str(&format!(
            "the master key {old} still opens: keep it as long as backups need it, then `hub-cloud keys forget {old}`\n"
        ));
    }
    Ok(report)
}

/// Gives up a master key that nothing is sealed with.
pub async fn forget(app: &App, id: &str) -> Result<String> {
    let ids = app.sealer.key_ids();
    if ids.first().is_some_and(|sealing| sealing == id) {
        return Err(Error::conflict(
            "KEY_IN_USE",
            format!("{id} is the key that seals; `hub-cloud keys rotate` makes another one first"),
        ));
    }
    let is_registered = stored::registered(&mut app.db.read().await?).await?.iter().any(|known| known == id);
    if !ids.iter().any(|known| known == id) && !is_registered {
        return Err(Error::field(
            "ID",
            format!("there is no master key {id}; `hub-cloud keys list` shows those there are"),
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
            Ok(format!("the master key {id} is gone from {}\n", file.display()))
        }
        None => Ok(format!("the master key {id} is not needed any more: take it out of the setting master-key\n")),
    }
}
