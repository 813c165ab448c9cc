//! Deletion of a person's account. With the request nobody gets in any more, and nothing is the
//! person's any more. What is stored of them is deleted as background work in small transactions,
//! which continues where it was after a process died: their hubs are released and what these heard
//! while they were theirs is deleted, devices that nobody else ever heard, consents, links and what
//! names the person anywhere. In the audit log a pseudonym takes their place. The log of changes
//! says that an account was deleted, and not whose.

pub mod http;
mod store;
mod worker;

use std::net::IpAddr;

use hub_base::error::{Error, Result};
use hub_core::audit::Audit;
use hub_core::http::client_address;
use hub_core::tasks::{self, NewTask};
use hub_fleet::{claim_codes, consent, setup_delegations};
use hub_identity::authn::user::User;
use hub_people::accounts::departure::{self, Ended};
use hub_people::accounts::{self, Accounts};
use hub_people::{supplier_links, tenants};
use hub_protocol::{PersonaUuid, TenantUuid, Timestamp, UserUuid, text_enum};
use serde::{Deserialize, Serialize};
use serde_json::json;
use uuid::Uuid;

use crate::mandates;
pub use worker::perform;

/// The lane of this work.
pub const LANE: &str = "account_deletion";
/// The kind of its tasks.
pub const DELETE: &str = "account.delete";
/// The actor in the audit log.
const ACTOR: &str = "ACCOUNT_DELETION";
/// Suppliers of one person that are looked through.
const MAX_SUPPLIERS: i64 = 1000;

/// The next step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// Hubs are released, and the records of their receptions are deleted.
    Hubs,
    /// Rows that name the person.
    Records,
    /// The audit log.
    Audit,
    /// Suppliers are notified and revoke tokens, for a limited time; then the rest is deleted.
    Farewell,
}

text_enum!(Step { Hubs = "HUBS", Records = "RECORDS", Audit = "AUDIT", Farewell = "FAREWELL" });

/// The person's data that is searched for.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Traces {
    /// The e-mail; empty without one.
    email: String,
    /// The subject at another issuer.
    subject: Option<String>,
    personas: Vec<PersonaUuid>,
    /// The person's ids at suppliers.
    subs: Vec<String>,
    /// The tenants with a membership, hubs, consents or linked accounts of the person.
    tenants: Vec<TenantUuid>,
}

/// A deletion that is under way.
#[derive(Debug)]
struct Deletion {
    deletion_uuid: Uuid,
    user_uuid: UserUuid,
    traces: Traces,
    step: Step,
    position: i64,
    last_position: i64,
    begun_at: Timestamp,
}

/// The confirmation of a deletion.
struct Confirmation {
    password: Option<String>,
    user_uuid: Option<UserUuid>,
}

/// Ends the account. When this returns, it grants no access on any replica.
async fn begin(
    accounts: &Accounts,
    user: &User,
    address: Option<IpAddr>,
    confirmation: Confirmation,
) -> Result<()> {
    let Confirmation {
        password,
        user_uuid: named,
    } = confirmation;
    let core = &accounts.core;
    if user.is_platform_admin {
        let message = "this account is a platform administrator; have that role removed first";
        return Err(Error::conflict("PLATFORM_ADMIN", message));
    }
    let proof = departure::prove(accounts, user, address, password, named).await?;
    let (user_uuid, deletion_uuid, now) = (user.user_uuid, Uuid::new_v4(), core.clock.now());
    let mut tx = core.db.begin().await?;
    // Tenants are locked before users.
    let left = tenants::leave_all(&mut tx, user_uuid).await?;
    accounts::lock_user(&mut tx, user_uuid).await?;
    let Ended { email, subject } =
        departure::end(accounts, &mut tx, user_uuid, &proof, deletion_uuid, now).await?;
    // A claim with a code of theirs is over by now, or finds none.
    claim_codes::forget_owner(&mut tx, user_uuid, now).await?;
    setup_delegations::forget_person(&mut tx, user_uuid, &email).await?;
    mandates::forget_person(&mut tx, user_uuid).await?;
    let hubs = store::take_hubs(&mut tx, deletion_uuid, user_uuid).await?;
    let linked = supplier_links::subs_of(&mut tx, user_uuid).await?;
    let ended_links = supplier_links::unlink_all(core, &mut tx, user_uuid, now).await?;
    let mut tenants = left.tenants;
    tenants.extend(linked.iter().map(|(tenant_uuid, _)| *tenant_uuid));
    tenants.extend(consent::suppliers_of(&mut tx, user_uuid, MAX_SUPPLIERS).await?);
    tenants.extend(store::tenants_of_hubs(&mut tx, deletion_uuid, MAX_SUPPLIERS).await?);
    tenants.sort();
    tenants.dedup();
    let subs = linked.into_iter().filter_map(|(_, sub)| sub).collect();
    let traces = Traces {
        email,
        subject,
        personas: left.personas,
        subs,
        tenants,
    };
    let deletion = Deletion {
        deletion_uuid,
        user_uuid,
        traces,
        step: Step::Hubs,
        position: 0,
        last_position: 0,
        begun_at: now,
    };
    store::insert(&mut tx, &deletion).await?;
    let task = NewTask {
        lane: LANE,
        kind: DELETE,
        payload: json!({"deletionUuid": deletion_uuid}),
        due_at: now,
        dedup_key: Some(format!("{DELETE} {deletion_uuid}")),
    };
    tasks::enqueue(core, &mut tx, task, now).await?;
    let audit = Audit::by_system(ACTOR, "user.delete", deletion_uuid, now);
    let audit = audit.with(json!({"hubs": hubs, "supplierLinks": ended_links}));
    // The entry has no client address either.
    client_address::with(None, tx.commit(audit)).await
}
