//! `hub-cloud ca`: lists the authorities that issue hubs' client certificates and replaces the root
//! while the service runs.

use hub_base::error::Result;
use hub_fleet::certificates;
use serde_json::json;

use super::printed;
use crate::app::Base;

/// Lists the authorities, one per line, newest first, or as one JSON object.
pub async fn list(base: &Base, as_json: bool) -> Result<String> {
    let now = base.clock.now();
    let authorities = certificates::list_authorities(base).await?;
    if as_json {
        let authorities: Vec<_> = authorities
            .into_iter()
            .map(|authority| {
                json!({
                    "id": authority.name,
                    "isRoot": authority.is_root,
                    "isSigning": authority.is_signing,
                    "signsFrom": authority.signs_from,
                    "notAfter": authority.not_after,
                    "certificates": authority.certificates,
                })
            })
            .collect();
        return printed(&json!({"authorities": authorities}));
    }
    let mut lines = String::new();
    for authority in authorities {
        let role = match (authority.is_signing, authority.signs_from > now) {
            (true, _) => "in use".to_owned(),
            (false, true) => format!("in use from {}", authority.signs_from),
            (false, false) => "replaced".to_owned(),
        };
        let (name, not_after) = (authority.name, authority.not_after);
        match authority.is_root {
            true => lines.push_str(&format!("{name}  root, {role}, expires {not_after}\n")),
            false => lines.push_str(&format!(
                "{name}  issuing, {role}, expires {not_after}, {} unexpired hub certificates\n",
                authority.certificates
            )),
        }
    }
    if lines.is_empty() {
        lines.push_str(
            "no authority exists yet; the first certificate request of a hub creates it\n",
        );
    }
    Ok(lines)
}

/// Creates a new root and an issuing authority below it.
pub async fn rotate(base: &Base) -> Result<String> {
    Ok(match certificates::rotate_root(base).await? {
        true => "a new root is in the bundle and issues certificates in one minute; certificates of the old root stay valid \
                 until they expire\n"
            .to_owned(),
        false => "a new root is already about to take over; nothing was changed\n".to_owned(),
    })
}
