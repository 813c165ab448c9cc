//! The authorities: a root, and below it one that issues. They are made when first needed, replace themselves long before they end, and live sealed in the
//! database, so that all replicas issue alike. A new one is published for a while before it signs: by then every replica knows it.

use hub_protocol::Timestamp;
use serde_json::json;
use uuid::Uuid;

use super::store::{self, Authority};
use super::x509::{self, Signer, Validity};
use super::{BACKDATED_SECS, HUB_SECS};
use crate::app::App;
use crate::domain::audit::Audit;
use crate::error::{Error, Result};
use crate::sealing::stored::CERTIFICATE_AUTHORITY;

const DAY_SECS: i64 = 24 * 3600;
const ROOT_SECS: i64 = 10 * 365 * DAY_SECS;
const ISSUER_SECS: i64 = 365 * DAY_SECS;
/// Each is replaced while it still has what it signs to outlive, and this much more.
const MARGIN_SECS: i64 = 30 * DAY_SECS;
/// From publishing an authority to signing with it. Replicas read the authorities every few seconds.
const PUBLISHED_AHEAD_SECS: i64 = 60;

/// What makes a new authority due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// That there is none which lives long enough.
    Living,
    /// That somebody asked for a new root.
    NewRoot,
}

/// What has to be made.
#[derive(Debug, PartialEq, Eq)]
enum Plan {
    Nothing,
    /// An issuing authority, under this root.
    Issuer(Uuid),
    Both,
}

fn plan(authorities: &[Authority], wanted: Wanted, now: Timestamp) -> Plan {
    let newest_root = authorities.iter().find(|authority| authority.root_uuid.is_none());
    let lives = |authority: &Authority, secs: i64| authority.not_after >= now.plus_secs(secs + MARGIN_SECS);
    match newest_root {
        // One that was just asked for is waiting to sign.
        Some(root) if wanted == Wanted::NewRoot && root.signs_from > now => Plan::Nothing,
        Some(root) if wanted == Wanted::Living && lives(root, ISSUER_SECS) => {
            let below = authorities.iter().filter(|authority| authority.root_uuid == Some(root.authority_uuid));
            match below.max_by_key(|issuer| issuer.signs_from) {
                Some(issuer) if lives(issuer, HUB_SECS) => Plan::Nothing,
                _ => Plan::Issuer(root.authority_uuid),
            }
        }
        _ => Plan::Both,
    }
}

/// The one that signs now: the newest that has begun to. The oldest stands in when the clock was set back to before all of them.
pub fn signing(authorities: &[Authority], now: Timestamp) -> Option<&Authority> {
    let issuers = || authorities.iter().filter(|authority| authority.root_uuid.is_some());
    let begun = issuers().find(|issuer| issuer.signs_from <= now);
    begun.or(issuers().next_back()).filter(|issuer| issuer.not_after >= now.plus_secs(HUB_SECS))
}

/// Makes the authorities that are due; answers whether any was. Of replicas that do it together one does.
pub async fn renew(app: &App, wanted: Wanted) -> Result<bool> {
    let now = app.clock.now();
    let mut conn = app.db.read().await?;
    let authorities = store::authorities(&mut conn).await?;
    drop(conn);
    if plan(&authorities, wanted, now) == Plan::Nothing {
        return Ok(false);
    }
    let mut tx = app.db.begin().await?;
    store::lock_authorities(&mut tx).await?;
    let authorities = store::authorities(&mut tx).await?;
    // While none signs there is nothing to wait for.
    let signs_from = match signing(&authorities, now) {
        Some(_) => now.plus_secs(PUBLISHED_AHEAD_SECS),
        None => now,
    };
    let root = match plan(&authorities, wanted, now) {
        Plan::Nothing => return Ok(false),
        Plan::Issuer(root_uuid) => authorities.into_iter().find(|root| root.authority_uuid == root_uuid),
        Plan::Both => None,
    };
    let is_new_root = root.is_none();
    let root = match root {
        Some(root) => root,
        None => {
            let root = seal(app, None, signs_from, now, x509::make_root)?;
            store::insert_authority(&mut tx, &root, now).await?;
            root
        }
    };
    let opened = open(app, &root)?;
    let issuer = seal(app, Some(&root), signs_from, now, |name, validity| x509::make_issuer(name, validity, &opened))?;
    store::insert_authority(&mut tx, &issuer, now).await?;
    let audit = Audit::by_system("CERTIFICATES", "certificate_authority.create", issuer.authority_uuid, now);
    let detail = json!({"rootUuid": root.authority_uuid, "isNewRoot": is_new_root, "signsFrom": signs_from});
    tx.commit(audit.with(detail)).await?;
    Ok(true)
}

/// Makes an authority and seals its key; a root when there is none above it.
fn seal(
    app: &App,
    root: Option<&Authority>,
    signs_from: Timestamp,
    now: Timestamp,
    make: impl FnOnce(&str, Validity) -> Result<Signer>,
) -> Result<Authority> {
    let authority_uuid = Uuid::now_v7();
    let name = match root {
        None => format!("hub-cloud root {authority_uuid}"),
        Some(_) => format!("hub-cloud hubs {authority_uuid}"),
    };
    let not_after = match root {
        None => now.plus_secs(ROOT_SECS),
        Some(root) => now.plus_secs(ISSUER_SECS).min(root.not_after),
    };
    let validity = Validity::seconds(now.plus_secs(-BACKDATED_SECS), not_after);
    let Signer { certificate, private_key } = make(&name, validity)?;
    Ok(Authority {
        authority_uuid,
        root_uuid: root.map(|root| root.authority_uuid),
        certificate,
        sealed_private_key: app.sealer.seal(CERTIFICATE_AUTHORITY, &authority_uuid.to_string(), &private_key),
        not_before: validity.not_before,
        not_after: validity.not_after,
        signs_from,
    })
}

/// An authority that can sign.
pub fn open(app: &App, authority: &Authority) -> Result<Signer> {
    let row = authority.authority_uuid.to_string();
    let private_key = app.sealer.open(CERTIFICATE_AUTHORITY, &row, &authority.sealed_private_key);
    Ok(Signer { certificate: authority.certificate.clone(), private_key: private_key.map_err(Error::internal)? })
}

/// Whom certificates are checked against: the roots that count, and what issues below them.
pub fn trusted(authorities: &[Authority], roots_in_use: &[Uuid], now: Timestamp) -> (Vec<Authority>, Vec<Authority>) {
    let newest_root = authorities.iter().find(|authority| authority.root_uuid.is_none());
    let current =
        [signing(authorities, now).and_then(|issuer| issuer.root_uuid), newest_root.map(|root| root.authority_uuid)];
    let counts = |root_uuid: Uuid| current.contains(&Some(root_uuid)) || roots_in_use.contains(&root_uuid);
    let living = authorities.iter().filter(|authority| {
        authority.not_after > now && counts(authority.root_uuid.unwrap_or(authority.authority_uuid))
    });
    living.cloned().partition(|authority| authority.root_uuid.is_none())
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::from_micros(1_800_000_000_000_000);

    fn authority(root_uuid: Option<Uuid>, signs_in_secs: i64, lives_days: i64) -> Authority {
        Authority {
            authority_uuid: Uuid::now_v7(),
            root_uuid,
            certificate: String::new(),
            sealed_private_key: Vec::new(),
            not_before: NOW,
            not_after: NOW.plus_secs(lives_days * DAY_SECS),
            signs_from: NOW.plus_secs(signs_in_secs),
        }
    }

    #[test]
    fn what_is_due_is_made() {
        let plan = |authorities: &[&Authority], wanted| {
            let authorities: Vec<Authority> = authorities.iter().copied().cloned().collect();
            super::plan(&authorities, wanted, NOW)
        };
        assert_eq!(plan(&[], Wanted::Living), Plan::Both);
        assert_eq!(plan(&[], Wanted::NewRoot), Plan::Both);
        let root = authority(None, -10, 3000);
        let issuer = authority(Some(root.authority_uuid), -10, 300);
        assert_eq!(plan(&[&issuer, &root], Wanted::Living), Plan::Nothing);
        assert_eq!(plan(&[&issuer, &root], Wanted::NewRoot), Plan::Both);
        assert_eq!(plan(&[&root], Wanted::Living), Plan::Issuer(root.authority_uuid));
        let ends_soon = authority(Some(root.authority_uuid), -10, 100);
        assert_eq!(plan(&[&ends_soon, &root], Wanted::Living), Plan::Issuer(root.authority_uuid));
        let old_root = authority(None, -20, 380);
        let below_old = authority(Some(old_root.authority_uuid), -20, 300);
        assert_eq!(plan(&[&below_old, &old_root], Wanted::Living), Plan::Both);
        let waits = authority(None, 60, 3000);
        let below_waiting = authority(Some(waits.authority_uuid), 60, 365);
        assert_eq!(plan(&[&below_waiting, &waits, &issuer, &root], Wanted::NewRoot), Plan::Nothing);
        assert_eq!(plan(&[&below_waiting, &waits, &issuer, &root], Wanted::Living), Plan::Nothing);
    }

    #[test]
    fn the_newest_that_has_begun_signs() {
        let root = authority(None, -10, 3000);
        let waits = authority(Some(root.authority_uuid), 60, 365);
        let signs = authority(Some(root.authority_uuid), -10, 300);
        let older = authority(Some(root.authority_uuid), -20, 300);
        let all = [waits.clone(), signs.clone(), root.clone(), older];
        assert_eq!(signing(&all, NOW).map(|issuer| issuer.authority_uuid), Some(signs.authority_uuid));
        assert_eq!(
            signing(&[waits.clone(), root.clone()], NOW).map(|one| one.authority_uuid),
            Some(waits.authority_uuid)
        );
        let ends = authority(Some(root.authority_uuid), -10, 89);
        assert!(signing(&[ends, root.clone()], NOW).is_none(), "what it signs would outlive it");
        assert!(signing(&[root], NOW).is_none());
    }

    #[test]
    fn a_root_counts_while_it_is_needed() {
        let old_root = authority(None, -20, 3000);
        let below_old = authority(Some(old_root.authority_uuid), -20, 300);
        let new_root = authority(None, -10, 3000);
        let below_new = authority(Some(new_root.authority_uuid), -10, 300);
        let all = [below_new, new_root.clone(), below_old, old_root.clone()];
        let uuids = |roots_in_use: &[Uuid]| {
            let (roots, issuers) = trusted(&all, roots_in_use, NOW);
            assert_eq!(roots.len(), issuers.len());
            roots.into_iter().map(|root| root.authority_uuid).collect::<Vec<_>>()
        };
        assert_eq!(uuids(&[]), [new_root.authority_uuid]);
        assert_eq!(uuids(&[old_root.authority_uuid]), [new_root.authority_uuid, old_root.authority_uuid]);
    }
}
