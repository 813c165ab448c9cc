//! What end users see in their app: the hubs that are theirs, and the devices that those hubs hear
//! best. A hub is a person's if its claim code was made out to them, or while it is delegated to
//! them. Every statement begins with the hubs that are the person's at that moment. It must never
//! show what was heard before the hub was theirs.

mod device_ui;
pub mod export;
pub mod http;
mod store;

use hub_base::budget::{Held, Holder};
use hub_base::db::Conn;
use hub_base::error::{Error, Result};
use hub_core::Core;
use hub_core::http::answer::hold_answer;
use hub_identity::authz::UserScope;
use hub_people::accounts;
use hub_protocol::{HubUuid, TenantUuid, Timestamp, UserUuid};

pub use store::{DEVICES_NEAR, HUBS, HubOfPerson, OwnDevice, OwnHub, hubs_of};

/// Suppliers of one person that are considered.
const MAX_SUPPLIERS: i64 = 500;

/// The person whose hubs are looked for, and when.
pub struct EndUserNow {
    pub user_uuid: UserUuid,
    /// The person's verified e-mail. A person who registers with the e-mail of another one must not
    /// get the delegations to that one.
    email: Option<String>,
    /// Whether only hubs that the person owns count, and none that is delegated to them.
    owned_only: bool,
    now: Timestamp,
}

/// The caller, as of now.
pub async fn of_caller(core: &Core, conn: &mut Conn, scope: &UserScope) -> Result<EndUserNow> {
    let email = accounts::email_of(conn, scope.user_uuid())
        .await?
        .filter(|email| email.is_verified);
    Ok(EndUserNow {
        user_uuid: scope.user_uuid(),
        email: email.map(|email| email.address),
        owned_only: false,
        now: core.clock.now(),
    })
}

/// A person as the owner of hubs, as of now.
pub fn owner(core: &Core, user_uuid: UserUuid) -> EndUserNow {
    EndUserNow {
        user_uuid,
        email: None,
        owned_only: true,
        now: core.clock.now(),
    }
}

async fn hub(conn: &mut Conn, person: &EndUserNow, hub_uuid: HubUuid) -> Result<OwnHub> {
    store::hub(conn, person, hub_uuid)
        .await?
        .ok_or_else(|| Error::not_found("hub"))
}

/// A device of the person.
pub async fn device(
    conn: &mut Conn,
    person: &EndUserNow,
    device_instance_id: i64,
) -> Result<OwnDevice> {
    store::device(conn, person, device_instance_id)
        .await?
        .ok_or_else(|| Error::not_found("device"))
}

/// Fails unless the hub is the person's.
pub async fn require_hub(conn: &mut Conn, person: &EndUserNow, hub_uuid: HubUuid) -> Result<()> {
    hub(conn, person, hub_uuid).await.map(drop)
}

/// Some hubs of the person, newest first, or the given one.
pub async fn some_hubs(
    conn: &mut Conn,
    person: &EndUserNow,
    hub_uuid: Option<HubUuid>,
    limit: i64,
) -> Result<Vec<HubOfPerson>> {
    store::some_hubs(conn, person, hub_uuid, limit).await
}

/// Some devices of the person, newest first: of one hub, or of all.
pub async fn some_devices(
    conn: &mut Conn,
    person: &EndUserNow,
    hub_uuid: Option<HubUuid>,
    limit: i64,
) -> Result<Vec<OwnDevice>> {
    store::some_devices(conn, person, hub_uuid, limit).await
}

/// The given devices that are the person's. The list must be short.
pub async fn own_devices(
    conn: &mut Conn,
    person: &EndUserNow,
    devices: &[i64],
) -> Result<Vec<OwnDevice>> {
    match devices.is_empty() {
        true => Ok(Vec::new()),
        false => store::own_devices(conn, person, devices).await,
    }
}

/// The given hubs that belong to the person.
pub async fn own_hubs(
    conn: &mut Conn,
    person: &EndUserNow,
    hubs: &[HubUuid],
) -> Result<Vec<HubUuid>> {
    match hubs.is_empty() {
        true => Ok(Vec::new()),
        false => store::own_hubs(conn, person, hubs).await,
    }
}

/// Whether a hub of the supplier is the person's.
pub async fn is_customer(
    conn: &mut Conn,
    person: &EndUserNow,
    supplier: TenantUuid,
) -> Result<bool> {
    store::has_supplier(conn, person, supplier).await
}

/// Fails unless a hub of the supplier is the person's.
async fn require_supplier(
    conn: &mut Conn,
    person: &EndUserNow,
    supplier: TenantUuid,
) -> Result<()> {
    match is_customer(conn, person, supplier).await? {
        true => Ok(()),
        false => Err(Error::not_found("supplier")),
    }
}

/// Memory for documents of a supplier that are sent to a person.
fn hold(core: &Core, supplier: TenantUuid, user_uuid: UserUuid, bytes: i64) -> Result<Held> {
    let holder = Holder {
        group: supplier.0,
        member: Some(user_uuid.0),
    };
    let bytes = usize::try_from(bytes)
        .unwrap_or(usize::MAX)
        .saturating_mul(2);
    hold_answer(core, holder, bytes)
}
