//! What is noted of refusals: a claim with a code that exists, and entries of a hub's report. The
//! people of the tenant find them in the audit log, operators in the log; both once an hour for
//! each cause.

use hub_base::error::{Error, Result};
use hub_core::Core;
use hub_core::audit::Audit;
use hub_identity::authn::hub::Hub;
use hub_identity::authz::Scope;
use hub_protocol::Timestamp;
use hub_protocol::claim::HubClaimRequest;
use serde_json::json;

use crate::claim_codes::StoredCode;

/// Notes a claim that is refused, as of an image that was copied to a second machine. The log names
/// a single one.
pub async fn note_claim(
    core: &Core,
    code: &StoredCode,
    request: &HubClaimRequest,
    error: &Error,
    is_single: bool,
    now: Timestamp,
) -> Result<()> {
    let device_instance_id = request.device_instance_id.trim();
    let key = format!(
        "{} {device_instance_id} {}",
        code.claim_code_uuid,
        error.code()
    );
    if !core.refused.is_due(&key) {
        return Ok(());
    }
    if is_single {
        tracing::warn!(
            tenant_uuid = %code.tenant_uuid, claim_code_uuid = %code.claim_code_uuid,
            device_instance_id, hostname = request.hostname, code = error.code(), reason = %error,
            "a claim is refused"
        );
    }
    let detail = json!({"code": error.code(), "message": error.to_string(),
        "deviceInstanceId": device_instance_id, "hostname": request.hostname});
    let audit = Audit::by_system("claim", "hub.claim_refused", code.claim_code_uuid, now);
    let tx = core.db.begin().await?;
    tx.commit(audit.in_tenant(code.tenant_uuid).with(detail))
        .await
}

/// Notes entries of a hub's report that are refused. The error names them.
pub async fn note_report(
    core: &Core,
    hub: &Hub,
    report: &'static str,
    error: &Error,
    now: Timestamp,
) -> Result<()> {
    let errors = error.field_errors();
    let first = errors
        .first()
        .map(|error| format!("{}: {}", error.field, error.message));
    let key = format!(
        "{} {report} {}",
        hub.hub_uuid,
        first.as_deref().unwrap_or_default()
    );
    if !core.refused.is_due(&key) {
        return Ok(());
    }
    tracing::warn!(
        hub_uuid = %hub.hub_uuid, report, refused = errors.len(), first,
        "entries of a hub's report are refused, and the others stored"
    );
    let detail = json!({"report": report, "errors": errors});
    let audit = Audit::new(&Scope::of_hub(hub), "hub.report_refused", hub.hub_uuid, now);
    let tx = core.db.begin().await?;
    tx.commit(audit.with(detail)).await
}
