//! Objects of a tenant by the names that a command line gives.

use hub_client::{Client, Hub, operations};
use hub_protocol::HubUuid;

use crate::failure::Failure;
use crate::text::printable;

/// The hub that a uuid, a label or a host name means.
pub async fn hub(client: &Client, named: &str) -> Result<HubUuid, Failure> {
    if let Ok(uuid) = named.parse() {
        return Ok(uuid);
    }
    let hubs: Vec<Hub> = client.list(operations::HUBS.call()).await?;
    let is_named = |hub: &&Hub| {
        let names = [
            hub.hub_identifier.as_deref(),
            hub.hostname.as_deref(),
            Some(hub.device_instance_id.as_str()),
        ];
        names.contains(&Some(named))
    };
    let mut found = hubs.iter().filter(is_named);
    match (found.next(), found.next()) {
        (Some(hub), None) => Ok(hub.hub_uuid),
        (None, _) => Err(Failure::failed(format!(
            "no hub is called `{}`; run `hub hubs list`",
            printable(named)
        ))),
        (Some(_), Some(_)) => Err(Failure::usage(format!(
            "several hubs are called `{}`; give the uuid that `hub hubs list` shows",
            printable(named)
        ))),
    }
}
