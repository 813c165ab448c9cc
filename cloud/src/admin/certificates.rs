//! `hub-cloud ca`: looking at the authorities that issue hubs' certificates, and replacing the root while the service serves.

use crate::app::App;
use crate::domain::certificates;
use crate::error::Result;

/// One line an authority, the newest first.
pub async fn list(app: &App) -> Result<String> {
    let now = app.clock.now();
    let mut lines = String::new();
    for authority in certificates::list_authorities(app).await? {
        let role = match (authority.is_signing, authority.signs_from > now) {
            (true, _) => "in use".to_owned(),
            (false, true) => format!("in use from {}", authority.signs_from),
            (false, false) => "replaced".to_owned(),
        };
        let (name, not_after) = (authority.name, authority.not_after);
        match authority.is_root {
            true => lines.push_str(&format!("{name}  root, {role}, ends {not_after}\n")),
            false => lines.push_str(&format!(
                "{name}  issues, {role}, ends {not_after}, {} certificates of hubs have not expired\n",
                authority.certificates
            )),
        }
    }
    if lines.is_empty() {
        lines.push_str("there is no authority yet; the first certificate that a hub asks for makes it\n");
    }
    Ok(lines)
}

/// Makes a new root and an authority below it.
pub async fn rotate(app: &App) -> Result<String> {
    Ok(match certificates::rotate_root(app).await? {
        true => "a new root is in the bundle, and certificates come from it in a minute; those of the old root stay valid until \
                 they expire\n"
            .to_owned(),
        false => "a new root is waiting to take over already; nothing was changed\n".to_owned(),
    })
}
