//! Cloned cards: two machines with the same credentials, such as two copies of one image. Each
//! token replaces the one before, so the two take turns: one refreshes, the other is refused and
//! refreshes in turn. The process of a hub shows the token that it got for the one it showed
//! before, or that one once more. A token from another branch shows that a second process has the
//! credentials, or that the hub's state went back in time. The latter happens once, and usually
//! with a boot that was not seen before; processes that take turns do so again and again.

use hub_base::db::{Conn, Tx};
use hub_base::error::Result;
use hub_core::Core;
use hub_core::audit::{self, Audit};
use hub_core::http::client_address;
use hub_identity::authz::Scope;
use hub_ingest::CLONE_QUIET_SECS;
use hub_protocol::{HubUuid, Timestamp};
use serde_json::json;
use uuid::Uuid;

use super::store::Credentials;
use super::store::clones::{self as store, Appearance, Suspected};

/// So many turns are no accident. The index `hubs_turns` and its statements have the same number.
const SUSPICIOUS: i64 = 3;
/// Hubs that one run notes.
const AT_ONCE: i64 = 100;

/// Whether two processes have this hub's credentials, as far as is known.
pub fn is_suspected(turns: i64, turned_at: Option<Timestamp>, now: Timestamp) -> bool {
    turns >= SUSPICIOUS && turned_at.is_some_and(|at| at > quiet_since(now))
}

fn quiet_since(now: Timestamp) -> Timestamp {
    now.plus_secs(-CLONE_QUIET_SECS)
}

/// Whether this token is of another branch than the one that the hub showed last.
pub fn is_of_other_branch(stored: &Credentials, shown: Uuid) -> bool {
    match (stored.shown_access_token_id, stored.shown_after_token_id) {
        (Some(last), Some(after)) => shown != last && shown <= after,
        _ => false,
    }
}

/// The newest token when `shown` was first shown; `newest` is it if that is now.
pub fn shown_after(stored: &Credentials, shown: Uuid, newest: Uuid) -> Uuid {
    stored
        .shown_after_token_id
        .filter(|_| stored.shown_access_token_id == Some(shown))
        .unwrap_or(newest)
}

/// Notes from where the hub refreshes, and counts the turn if it is one.
pub async fn note_refresh(
    tx: &mut Tx,
    hub_uuid: HubUuid,
    boot_id: Option<&str>,
    is_other_branch: bool,
    now: Timestamp,
) -> Result<()> {
    let address = client_address::current().map(|address| address.to_string());
    let (boot_id, address) = (boot_id.unwrap_or(""), address.as_deref().unwrap_or(""));
    let known = store::appearances(tx, hub_uuid).await?;
    let is_known = known
        .iter()
        .any(|known| known.boot_id == boot_id && known.address == address);
    if is_other_branch {
        let turns = turns(&known, boot_id, address);
        if turns > 0 {
            store::count_turns(tx, hub_uuid, turns, quiet_since(now), now).await?;
        }
    }
    store::appear(tx, hub_uuid, boot_id, address, !is_known, now).await
}

/// What a token of another branch counts. With a boot that was never seen before, the hub's state
/// may merely have gone back in time. From another address, which was seen before, it is clearer.
fn turns(known: &[Appearance], boot_id: &str, address: &str) -> i64 {
    let is_booted_anew = !boot_id.is_empty() && known.iter().all(|seen| seen.boot_id != boot_id);
    let returns_to_address = !address.is_empty()
        && known.first().is_some_and(|last| last.address != address)
        && known.iter().any(|seen| seen.address == address);
    match (is_booted_anew, returns_to_address) {
        (true, _) => 0,
        (false, true) => 2,
        (false, false) => 1,
    }
}

/// Writes an audit entry and a line for each hub whose credentials several processes use, once
/// while that lasts. Returns whether there may be more.
pub async fn note_clones(core: &Core) -> Result<bool> {
    let now = core.clock.now();
    let mut tx = core.db.begin().await?;
    let cloned = store::lock_unnoted(&mut tx, AT_ONCE).await?;
    for hub in &cloned {
        store::note(&mut tx, hub.hub_uuid, now).await?;
        let mut appearances = store::appearances(&mut tx, hub.hub_uuid).await?;
        for boot_id in [&hub.boot_id, &hub.previous_boot_id].into_iter().flatten() {
            if appearances.iter().all(|seen| seen.boot_id != *boot_id) {
                store::appear(&mut tx, hub.hub_uuid, boot_id, "", true, now).await?;
                appearances.push(Appearance {
                    boot_id: boot_id.clone(),
                    address: String::new(),
                    first_at: now,
                    last_at: now,
                });
            }
        }
        let detail = json!({"turns": hub.turns, "appearances": seen_lately(appearances, now)
            .iter()
            .map(|seen| json!({"bootId": seen.boot_id, "address": seen.address, "lastAt": seen.last_at}))
            .collect::<Vec<_>>()});
        let audit = Audit::by_system("CLONES", "hub.clone_suspected", hub.hub_uuid, now);
        audit::insert(&mut tx, audit.in_tenant(hub.tenant_uuid).with(detail)).await?;
        tracing::warn!(
            hub_uuid = %hub.hub_uuid, tenant_uuid = %hub.tenant_uuid, turns = hub.turns,
            "two machines use the credentials of one hub; claim the copy anew with a \
             device-instance-id of its own"
        );
    }
    tx.commit_unaudited("has written an entry for each hub")
        .await?;
    Ok(i64::try_from(cloned.len()).unwrap_or(AT_ONCE) >= AT_ONCE)
}

/// The appearances of the last day.
pub fn seen_lately(mut appearances: Vec<Appearance>, now: Timestamp) -> Vec<Appearance> {
    appearances.retain(|seen| seen.last_at > quiet_since(now));
    appearances
}

/// The tenant's hubs whose credentials several processes use, up to `limit`.
pub async fn suspected(
    conn: &mut Conn,
    scope: &Scope,
    limit: i64,
    now: Timestamp,
) -> Result<Vec<Suspected>> {
    store::suspected(conn, scope.tenant_uuid(), quiet_since(now), limit).await
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the service knows of a hub's tokens, as numbers.
    #[derive(Default)]
    struct Service {
        newest: u128,
        shown: Option<(u128, u128)>,
        turns: i64,
    }

    impl Service {
        /// Returns the new token.
        fn refresh(&mut self, shown: u128) -> u128 {
            let stored = Credentials {
                tenant_uuid: hub_protocol::TenantUuid::new(),
                blocked_at: None,
                access_token_id: Some(Uuid::from_u128(self.newest)),
                shown_access_token_id: self.shown.map(|(shown, _)| Uuid::from_u128(shown)),
                shown_after_token_id: self.shown.map(|(_, after)| Uuid::from_u128(after)),
                refresh_token_hash: None,
                refreshed_at: None,
                readmitted_until: None,
            };
            let token = Uuid::from_u128(shown);
            self.turns += i64::from(is_of_other_branch(&stored, token));
            let after = shown_after(&stored, token, Uuid::from_u128(self.newest));
            self.shown = Some((shown, after.as_u128()));
            self.newest += 1;
            self.newest
        }
    }

    #[test]
    fn a_hub_takes_no_turns_however_many_answers_are_lost() {
        let mut service = Service::default();
        let mut held = 0;
        for round in 0..50 {
            for _ in 0..round % 4 {
                service.refresh(held);
            }
            held = service.refresh(held);
        }
        assert_eq!(service.turns, 0);
    }

    #[test]
    fn a_state_that_went_back_is_one_turn() {
        let mut service = Service::default();
        let image = service.refresh(0);
        let mut held = image;
        for _ in 0..5 {
            held = service.refresh(held);
        }
        held = service.refresh(image);
        for _ in 0..5 {
            held = service.refresh(held);
        }
        assert_eq!(service.turns, 1);
    }

    #[test]
    fn two_processes_with_one_state_take_turns() {
        let mut service = Service::default();
        let (mut one, mut other) = (0, 0);
        for _ in 0..3 {
            one = service.refresh(one);
            other = service.refresh(other);
        }
        assert!(service.turns >= SUSPICIOUS, "{}", service.turns);
    }

    #[test]
    fn a_boot_that_was_never_seen_is_no_turn_and_a_known_address_is_two() {
        let seen = |boot_id: &str, address: &str| Appearance {
            boot_id: boot_id.to_owned(),
            address: address.to_owned(),
            first_at: Timestamp::from_micros(0),
            last_at: Timestamp::from_micros(0),
        };
        let known = [seen("a", "192.0.2.1"), seen("b", "192.0.2.2")];
        assert_eq!(turns(&known, "c", "192.0.2.2"), 0);
        assert_eq!(turns(&known, "b", "192.0.2.2"), 2);
        assert_eq!(turns(&known, "a", "192.0.2.1"), 1);
        assert_eq!(turns(&known, "", "192.0.2.3"), 1);
    }
}
