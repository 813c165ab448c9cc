//! SQL of the hubs that pipelines are bound to.

use std::collections::HashSet;

use hub_base::db::bulk::{Bulk, Column};
use hub_base::db::{Conn, Tx, sql};
use hub_base::error::Result;
use hub_identity::authz::Scope;
use hub_protocol::HubUuid;
use uuid::Uuid;

/// Locks these pipelines of the tenant, as far as they exist. The list must not be empty.
pub async fn lock_all(tx: &mut Tx, scope: &Scope, pipelines: &HashSet<Uuid>) -> Result<Vec<Uuid>> {
    sql("SELECT pipeline_uuid FROM pipelines WHERE tenant_uuid = $1 AND pipeline_uuid IN ")
        .bind(scope.tenant_uuid())
        .push_list(pipelines.iter().copied())
        .push(" ORDER BY pipeline_uuid")
        .for_update(tx)
        .scalars(tx)
        .await
}

/// Each pair is a bundle and a pipeline.
pub async fn bind(
    tx: &mut Tx,
    scope: &Scope,
    hub_uuid: HubUuid,
    bound: &[(Uuid, Uuid)],
) -> Result<()> {
    Bulk {
        head: "INSERT INTO pipeline_hubs (hub_uuid, pipeline_uuid, bundle_uuid, tenant_uuid)",
        columns: vec![
            Column::Uuid(vec![hub_uuid.0; bound.len()]),
            Column::Uuid(
                bound
                    .iter()
                    .map(|(_, pipeline_uuid)| *pipeline_uuid)
                    .collect(),
            ),
            Column::Uuid(bound.iter().map(|(bundle_uuid, _)| *bundle_uuid).collect()),
            Column::Uuid(vec![scope.tenant_uuid().0; bound.len()]),
        ],
        tail: "ON CONFLICT (hub_uuid, pipeline_uuid, bundle_uuid) DO NOTHING",
    }
    .execute(tx)
    .await
    .map(drop)
}

/// Ends what a bundle bound at a hub.
pub async fn unbind(tx: &mut Tx, hub_uuid: HubUuid, bundle_uuid: Uuid) -> Result<u64> {
    sql("DELETE FROM pipeline_hubs WHERE hub_uuid = $1 AND bundle_uuid = $2")
        .bind((hub_uuid, bundle_uuid))
        .execute(tx)
        .await
}

/// Ends all that bundles bound at a hub.
pub async fn unbind_all(tx: &mut Tx, hub_uuid: HubUuid) -> Result<u64> {
    sql("DELETE FROM pipeline_hubs WHERE hub_uuid = $1")
        .bind(hub_uuid)
        .execute(tx)
        .await
}

/// Pairs of a bundle and a pipeline. The list must be short and not empty.
pub async fn of_hub(
    conn: &mut Conn,
    scope: &Scope,
    hub_uuid: HubUuid,
    bundles: &[Uuid],
) -> Result<Vec<(Uuid, Uuid)>> {
    sql(
        "SELECT bundle_uuid, pipeline_uuid FROM pipeline_hubs WHERE hub_uuid = $1 \
         AND tenant_uuid = $2 AND bundle_uuid IN ",
    )
    .bind((hub_uuid, scope.tenant_uuid()))
    .push_list(bundles.iter().copied())
    .push(" ORDER BY pipeline_uuid")
    .all(conn)
    .await
}

/// The name of a published bundle that has the pipeline.
pub async fn published_bundle_with(conn: &mut Conn, pipeline_uuid: Uuid) -> Result<Option<String>> {
    sql(
        "SELECT b.name FROM bundle_pipelines p JOIN supplier_bundles b \
         ON b.bundle_uuid = p.bundle_uuid WHERE p.pipeline_uuid = $1 AND b.status = 'PUBLISHED' \
         ORDER BY b.published_at LIMIT 1",
    )
    .bind(pipeline_uuid)
    .optional_scalar(conn)
    .await
}

/// Which of these hubs the pipeline is bound to. The list must be short and not empty.
pub async fn among(conn: &mut Conn, pipeline_uuid: Uuid, hubs: &[HubUuid]) -> Result<Vec<HubUuid>> {
    sql("SELECT hub_uuid FROM pipeline_hubs WHERE pipeline_uuid = $1 AND hub_uuid IN ")
        .bind(pipeline_uuid)
        .push_list(hubs.iter().copied())
        .scalars(conn)
        .await
}
