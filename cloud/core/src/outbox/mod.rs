//! The outbox of registration events, which inform a tenant's own system about its hubs and
//! devices. A row is written in the transaction of the change that it reports.
//! `hub_people::registration_events` pushes the rows and shows them; this module calls nobody.

mod store;

use hub_base::db::Tx;
use hub_base::error::{Error, Result};
use hub_protocol::{HubUuid, TenantUuid, Timestamp, UserUuid, text_enum};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use uuid::Uuid;

use crate::Core;
use crate::tasks::{self, NewTask};
pub use store::{
    Claimed, Filters, Settled, Stored, awaits_end_of_link, backlog, claim_due, delete_pending,
    delete_settled_before, delete_with, fail_due, find, has_settled_before, list, next_due, retry,
    settle,
};

/// The lane of pushes. A system of a supplier that does not respond delays nothing else.
pub const LANE: &str = "registration_push";
/// The kind of task that pushes the events of one tenant.
pub const PUSH: &str = "registration.push";

/// The type of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum EventType {
    /// A hub was claimed, for the first time or repeatedly.
    #[serde(rename = "hub.claimed")]
    HubClaimed,
    /// A device was registered.
    #[serde(rename = "device.registered")]
    DeviceRegistered,
    /// A device became active.
    #[serde(rename = "device.activated")]
    DeviceActivated,
    /// A device was retired.
    #[serde(rename = "device.retired")]
    DeviceRetired,
    /// A user linked their account to the supplier.
    #[serde(rename = "supplier_link.created")]
    SupplierLinkCreated,
    /// A user ended such a link.
    #[serde(rename = "supplier_link.revoked")]
    SupplierLinkRevoked,
}

text_enum!(EventType {
    HubClaimed = "hub.claimed",
    DeviceRegistered = "device.registered",
    DeviceActivated = "device.activated",
    DeviceRetired = "device.retired",
    SupplierLinkCreated = "supplier_link.created",
    SupplierLinkRevoked = "supplier_link.revoked",
});

/// The delivery state of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Status {
    /// The event is still to be delivered.
    Pending,
    /// The supplier has accepted it.
    Delivered,
    /// Delivery was given up.
    Failed,
}

text_enum!(Status { Pending = "PENDING", Delivered = "DELIVERED", Failed = "FAILED" });

/// An event that is still to be written.
#[derive(Clone, Debug)]
pub struct Event {
    event_type: EventType,
    hub_uuid: Option<HubUuid>,
    /// The id and the model.
    device: Option<(i64, Uuid)>,
    owner_user_uuid: Option<UserUuid>,
    is_again: Option<bool>,
    link: Option<Link>,
}

/// A user's link to the supplier.
#[derive(Clone, Debug)]
pub struct Link {
    pub supplier_link_id: i64,
    pub user_uuid: UserUuid,
    /// The user's id at the supplier, where it is known.
    pub user_sub: Option<String>,
}

impl Event {
    /// `owner_user_uuid` is the person that the claim code was made out to; `is_again` is true if
    /// the hub was the tenant's before.
    pub const fn hub_claimed(
        hub_uuid: HubUuid,
        owner_user_uuid: Option<UserUuid>,
        is_again: bool,
    ) -> Self {
        let (event_type, is_again) = (EventType::HubClaimed, Some(is_again));
        Self {
            event_type,
            hub_uuid: Some(hub_uuid),
            device: None,
            owner_user_uuid,
            is_again,
            link: None,
        }
    }

    /// An event of a device and its model. `hub_uuid` is the hub that heard it, if that is the
    /// cause.
    pub const fn device(
        event_type: EventType,
        hub_uuid: Option<HubUuid>,
        device_instance_id: i64,
        device_uuid: Uuid,
    ) -> Self {
        let device = Some((device_instance_id, device_uuid));
        Self {
            event_type,
            hub_uuid,
            device,
            owner_user_uuid: None,
            is_again: None,
            link: None,
        }
    }

    pub const fn supplier_link(event_type: EventType, link: Link) -> Self {
        let link = Some(link);
        Self {
            event_type,
            hub_uuid: None,
            device: None,
            owner_user_uuid: None,
            is_again: None,
            link,
        }
    }

    /// The text that is sent.
    fn payload(&self, tenant_uuid: TenantUuid, now: Timestamp) -> Result<String> {
        let mut payload =
            json!({"eventType": self.event_type, "occurredAt": now, "tenantUuid": tenant_uuid});
        let mut add = |name: &str, value: Option<serde_json::Value>| {
            if let (Some(members), Some(value)) = (payload.as_object_mut(), value) {
                members.insert(name.to_owned(), value);
            }
        };
        add("hubUuid", self.hub_uuid.map(|uuid| json!(uuid)));
        add("deviceInstanceId", self.device.map(|(id, _)| json!(id)));
        add("deviceUuid", self.device.map(|(_, uuid)| json!(uuid)));
        add(
            "ownerUserUuid",
            self.owner_user_uuid.map(|uuid| json!(uuid)),
        );
        add("again", self.is_again.map(|again| json!(again)));
        let link = self.link.as_ref();
        add(
            "supplierLinkId",
            link.map(|link| json!(link.supplier_link_id)),
        );
        add("userUuid", link.map(|link| json!(link.user_uuid)));
        add(
            "userSub",
            link.and_then(|link| link.user_sub.as_ref())
                .map(|sub| json!(sub)),
        );
        serde_json::to_string(&payload).map_err(Error::internal)
    }
}

/// Adds events of a tenant, in few statements however many there are. They are pushed after the
/// transaction has committed.
pub async fn insert(
    core: &Core,
    tx: &mut Tx,
    tenant_uuid: TenantUuid,
    events: &[Event],
    now: Timestamp,
) -> Result<()> {
    if events.is_empty() {
        return Ok(());
    }
    store::insert(tx, tenant_uuid, events, now).await?;
    push(core, tx, tenant_uuid, now).await
}

/// Has the events of the tenant that are due pushed, after the transaction has committed. Those of
/// a deleted tenant are deleted then.
pub async fn push(core: &Core, tx: &mut Tx, tenant_uuid: TenantUuid, now: Timestamp) -> Result<()> {
    let task = NewTask {
        lane: LANE,
        kind: PUSH,
        payload: json!({"tenantUuid": tenant_uuid}),
        due_at: now,
        dedup_key: Some(format!("{PUSH}:{tenant_uuid}")),
    };
    tasks::enqueue(core, tx, task, now).await
}
