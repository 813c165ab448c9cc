//! Hubs that bundles have bound pipelines to. A pipeline that is limited to hubs takes the events
//! of these as well; the definition stays as somebody wrote it. A lane reads these rows after each
//! page of events, so that it misses none of a hub that was bound meanwhile.

use std::collections::HashSet;

use hub_base::db::{Conn, Tx};
use hub_base::error::Result;
use hub_devices::delivery_status::Source;
use hub_identity::authz::Scope;
use hub_protocol::HubUuid;
use uuid::Uuid;

use super::store::bound as store;
pub use super::store::bound::{unbind, unbind_all};

/// Hubs that one statement asks about.
const CHUNK: usize = 500;

/// Binds pipelines to a hub of the tenant, each for a bundle. A pipeline that is gone is left out.
/// Returns what was bound.
pub async fn bind(
    tx: &mut Tx,
    scope: &Scope,
    hub_uuid: HubUuid,
    wanted: &[(Uuid, Uuid)],
) -> Result<Vec<(Uuid, Uuid)>> {
    if wanted.is_empty() {
        return Ok(Vec::new());
    }
    let pipelines: HashSet<Uuid> = wanted
        .iter()
        .map(|(_, pipeline_uuid)| *pipeline_uuid)
        .collect();
    let there: HashSet<Uuid> = store::lock_all(tx, scope, &pipelines)
        .await?
        .into_iter()
        .collect();
    let bound: Vec<(Uuid, Uuid)> = wanted
        .iter()
        .filter(|(_, pipeline)| there.contains(pipeline))
        .copied()
        .collect();
    store::bind(tx, scope, hub_uuid, &bound).await?;
    Ok(bound)
}

/// The pipelines that some bundles bound to a hub, each with its bundle.
pub async fn bound_to(
    conn: &mut Conn,
    scope: &Scope,
    hub_uuid: HubUuid,
    bundles: &[Uuid],
) -> Result<Vec<(Uuid, Uuid)>> {
    match bundles.is_empty() {
        true => Ok(Vec::new()),
        false => store::of_hub(conn, scope, hub_uuid, bundles).await,
    }
}

/// Which of the hubs the pipeline is bound to, as far as that matters to its source.
pub async fn among(
    conn: &mut Conn,
    pipeline_uuid: Uuid,
    source: &Source,
    hubs: impl Iterator<Item = HubUuid>,
) -> Result<HashSet<HubUuid>> {
    let mut bound = HashSet::new();
    if !source.is_limited_to_hubs() {
        return Ok(bound);
    }
    let others: HashSet<HubUuid> = hubs
        .filter(|hub_uuid| !source.hub_uuids.contains(hub_uuid))
        .collect();
    let others: Vec<HubUuid> = others.into_iter().collect();
    for some in others.chunks(CHUNK) {
        bound.extend(store::among(conn, pipeline_uuid, some).await?);
    }
    Ok(bound)
}
