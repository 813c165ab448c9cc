//! Quantities that a supplier calls trade secrets, with the reason. The person reads them as before
//! and sees the reason; recipients of mandates do not get them.

use hub_base::error::Result;
use hub_core::Core;
use hub_core::audit::Audit;
use hub_identity::authz::Scope;
use serde_json::{Value, json};

use super::store::{self, TradeSecretRow};

fn state(rows: &[TradeSecretRow]) -> Value {
    rows.iter()
        .map(|row| json!({"quantity": row.quantity, "reason": row.reason}))
        .collect()
}

/// Replaces the list. One that stays keeps the time since which it is marked.
pub async fn put(
    core: &Core,
    scope: &Scope,
    marked: Vec<(String, String)>,
) -> Result<Vec<TradeSecretRow>> {
    let (now, tenant_uuid) = (core.clock.now(), scope.tenant_uuid());
    let mut tx = core.db.begin().await?;
    let before = store::trade_secrets(&mut tx, [tenant_uuid]).await?;
    for gone in &before {
        if !marked
            .iter()
            .any(|(quantity, _)| *quantity == gone.quantity)
        {
            store::delete_trade_secret(&mut tx, scope, &gone.quantity).await?;
        }
    }
    for (quantity, reason) in marked {
        let is_same = |row: &&TradeSecretRow| row.quantity == quantity && row.reason == reason;
        if before.iter().any(|row| is_same(&row)) {
            continue;
        }
        let row = TradeSecretRow {
            tenant_uuid,
            quantity,
            reason,
            marked_at: now,
        };
        store::put_trade_secret(&mut tx, &row).await?;
    }
    let after = store::trade_secrets(&mut tx, [tenant_uuid]).await?;
    let audit = Audit::new(scope, "trade_secrets.put", tenant_uuid, now);
    tx.commit(audit.changed(Some(state(&before)), Some(state(&after))))
        .await?;
    Ok(after)
}
