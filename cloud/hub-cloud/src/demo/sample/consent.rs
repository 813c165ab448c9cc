//! The consent of the sample: what the supplier asks the owners of its hubs for, and what the
//! owner of the demo's hubs has granted. Hubs of owners who have not granted it report nothing.

use serde_json::json;

use hub_client::Operation;

use super::super::Failure;
use super::super::client::Api;

const VERSION: &str = "2026-01";
const TEXT: &str = "The sensors near your hub measure temperature, humidity and doors. We store \
these values to show them to you and to warn you, and, if you allow it, to plan the maintenance of \
the sensors. You can withdraw your consent at any time.";

static ASK: Operation = Operation::new("POST", "/tenant/consent-settings");
static GRANT: Operation = Operation::new("POST", "/app/consent");

/// Publishes the version, and grants it for all hubs of the demo's account. Both can be repeated.
pub async fn grant(api: &Api) -> Result<(), Failure> {
    let asked = json!({
        "version": VERSION, "text": TEXT, "enforce": true, "selfPairing": true,
        "purposes": [
            {"key": "monitoring", "title": "Show values and warn about them", "required": true},
            {"key": "maintenance", "title": "Plan the maintenance of sensors", "required": false,
             "defaultRetentionDays": 30},
        ],
    });
    api.client.run(ASK.call().body(asked)).await?;
    let granted = json!({
        "supplierUuid": api.tenant_uuid, "version": VERSION, "purposes": ["monitoring"],
    });
    api.client.run(GRANT.call().body(granted)).await?;
    Ok(())
}
