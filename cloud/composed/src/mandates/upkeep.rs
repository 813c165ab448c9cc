//! Notes the ends of mandates that nobody noted: their time is over, a consent was withdrawn, or
//! nothing of them is the person's any more. Nothing was handed out since; the note is for the
//! person, the supplier and the audit log, and keeps a mandate from coming back with a hub.

use hub_base::error::Result;
use hub_core::Core;
use hub_core::audit::Audit;
use serde_json::json;
use uuid::Uuid;

use super::access::overdue_end;
use super::store;

/// The actor in the audit log.
const ACTOR: &str = "MANDATES";
/// Mandates that one query reads.
const SOME: i64 = 200;

/// Looks at all mandates without an end, and deletes those that ended long ago. Returns how many
/// ends were noted.
pub async fn settle(core: &Core) -> Result<u64> {
    let (mut after, mut ended) = (Uuid::nil(), 0);
    loop {
        let rows = store::without_end(&mut core.db.read().await?, after, SOME).await?;
        for row in &rows {
            after = row.mandate_uuid;
            let reason = overdue_end(core, &mut core.db.read().await?, row).await?;
            let Some(reason) = reason else { continue };
            let now = core.clock.now();
            let at = row.end(now).map_or(now, |(at, _)| at);
            let mut tx = core.db.begin().await?;
            if store::end(&mut tx, row.mandate_uuid, at, reason).await? {
                let audit = Audit::by_system(ACTOR, "mandate.end", row.mandate_uuid, now);
                let audit = audit.in_tenant(row.tenant_uuid);
                tx.commit(audit.with(json!({"reason": reason.name()})))
                    .await?;
                ended += 1;
            }
        }
        if i64::try_from(rows.len()).unwrap_or(SOME) < SOME {
            break;
        }
    }
    let keep_secs = core.config.retention.audit.as_secs().cast_signed();
    let before = core.clock.now().plus_secs(-keep_secs);
    let mut tx = core.db.begin().await?;
    store::delete_ended_before(&mut tx, before, SOME).await?;
    tx.commit_unaudited("mandates are kept as long as the audit log")
        .await?;
    Ok(ended)
}
