//! Whether what hubs run reaches the tenant's server of Dependency-Track. That the server fails is
//! one incident for as long as it does, and that it refuses documents is another one.

use hub_base::db::Conn;
use hub_base::error::Result;
use hub_core::mail::format_time;
use hub_exposure::dependency_track::{self, Trouble};
use hub_identity::authz::Scope;
use hub_protocol::Timestamp;

use super::conditions::Found;
use super::words::name_of;

/// The subjects of incidents.
const FAILS: &str = "server";
const REFUSES: &str = "refused";

/// Whether an incident is that the server refuses documents.
pub fn is_refusal(subject: &str) -> bool {
    subject == REFUSES
}

/// What is wrong with the server now. A failure that began at `due` or before is notified at once;
/// a refusal is, too, because the server does not get the document later either.
pub async fn failing(conn: &mut Conn, scope: &Scope, due: Timestamp) -> Result<Vec<Found>> {
    let Some((project, troubles)) = dependency_track::troubles(conn, scope).await? else {
        return Ok(Vec::new());
    };
    let name = name_of(Some(&project), "without a name");
    let found = troubles.into_iter().map(|trouble| {
        let (subject, detail, since) = match trouble {
            Trouble::Fails { since, error } => {
                let detail = format!("It has taken nothing since {}: {error}", format_time(since));
                (FAILS, detail, since)
            }
            Trouble::Refuses { documents, error } => {
                let detail = format!("Documents that it does not have: {documents}. {error}");
                (REFUSES, detail, due)
            }
        };
        Found {
            subject: subject.to_owned(),
            name: name.clone(),
            detail,
            hub_uuid: None,
            device_instance_id: None,
            since,
        }
    });
    Ok(found.collect())
}
