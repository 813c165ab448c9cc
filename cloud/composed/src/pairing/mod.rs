//! How a person makes a hub theirs: they get a claim code made out to them, enter it on the hub,
//! and follow on a page until the hub is there. The hub claims itself with the code, as with any
//! other. What a code offers is shown to the person it is made out to and to nobody else; all
//! others hear that there is no such code.

pub mod http;
mod page;

use std::net::IpAddr;

use hub_base::error::{Error, Result};
use hub_core::Core;
use hub_fleet::claim_codes::{self, ClaimCode, Status, StoredCode};
use hub_fleet::consent;
use hub_identity::authn::user::User;
use hub_identity::authz::Scope;
use hub_people::{accounts, tenants};
use hub_protocol::TenantUuid;

/// Creates a claim code made out to the person, if the supplier allows that.
async fn create(
    core: &Core,
    user: &User,
    supplier_uuid: TenantUuid,
) -> Result<(ClaimCode, StoredCode)> {
    let mut conn = core.db.read().await?;
    if tenants::name(&mut conn, supplier_uuid).await?.is_none() {
        return Err(Error::not_found("supplier"));
    }
    if !consent::allows_pairing(&mut conn, supplier_uuid).await? {
        let message = "this supplier makes out claim codes itself; ask it for one";
        return Err(Error::forbidden("SELF_PAIRING_OFF", message));
    }
    drop(conn);
    let mut tx = core.db.begin().await?;
    if !tenants::lock_shared(&mut tx, supplier_uuid).await? {
        return Err(Error::not_found("supplier"));
    }
    accounts::lock_user(&mut tx, user.user_uuid).await?;
    claim_codes::create_pairing(
        core,
        tx,
        &Scope::of_person(user, supplier_uuid),
        user.user_uuid,
    )
    .await
}

/// The offer of a code to its owner.
struct Offer {
    code: StoredCode,
    supplier_name: String,
}

/// A code that does not exist, has ended or is somebody else's is not found, and counted as a
/// guess.
async fn offer(
    core: &Core,
    user: &User,
    address: Option<IpAddr>,
    code: &ClaimCode,
) -> Result<Offer> {
    let now = core.clock.now();
    let mut conn = core.db.read().await?;
    accounts::check_code_guesses(&mut conn, user.user_uuid, address, now).await?;
    let found = claim_codes::find(&mut conn, code).await?;
    let own = found.filter(|found| found.owner_user_uuid == Some(user.user_uuid));
    let live =
        own.filter(|own| own.claimed_hub_uuid.is_some() || own.status(now) == Status::Pending);
    if let Some(code) = live
        && let Some(supplier_name) = tenants::name(&mut conn, code.tenant_uuid).await?
    {
        return Ok(Offer {
            code,
            supplier_name,
        });
    }
    drop(conn);
    accounts::count_code_guess(core, user.user_uuid, address).await?;
    Err(Error::not_found("claim code"))
}
