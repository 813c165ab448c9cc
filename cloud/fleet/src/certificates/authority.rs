//! The certificate authorities: a root, and an issuing authority below it. They are created when
//! first needed and replaced long before they expire. Their keys are sealed in the database, so
//! that all replicas issue with the same authority. A new authority is published before it signs,
//! so that every replica knows it by then.

use hub_base::error::{Error, Result};
use hub_base::sealing::stored::{self, CERTIFICATE_AUTHORITY};
use hub_core::Core;
use hub_core::audit::Audit;
use hub_protocol::Timestamp;
use serde_json::json;
use uuid::Uuid;

use super::store::{self, Authority};
use super::x509::{self, Signer, Validity};
use super::{BACKDATED_SECS, HUB_SECS};

const DAY_SECS: i64 = 24 * 3600;
const ROOT_SECS: i64 = 10 * 365 * DAY_SECS;
const ISSUER_SECS: i64 = 365 * DAY_SECS;
/// An authority is replaced when its remaining lifetime is less than that of what it signs plus
/// this margin.
const MARGIN_SECS: i64 = 30 * DAY_SECS;
/// Time between publishing an authority and signing with it. Replicas read the authorities every
/// few seconds.
const PUBLISHED_AHEAD_SECS: i64 = 60;

/// The reason of a renewal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RenewalReason {
    /// The current authorities all expire too soon.
    Expiry,
    /// An operator requested a new root.
    RootRotation,
}

/// The authorities to create.
#[derive(Debug, PartialEq, Eq)]
enum Plan {
    Nothing,
    /// An issuing authority below this root.
    Issuer(Uuid),
    Both,
}

fn plan(authorities: &[Authority], reason: RenewalReason, now: Timestamp) -> Plan {
    let newest_root = authorities
        .iter()
        .find(|authority| authority.root_uuid.is_none());
    let lives =
        |authority: &Authority, secs: i64| authority.not_after >= now.plus_secs(secs + MARGIN_SECS);
    match newest_root {
        // A requested root already exists and waits for its time to sign.
        Some(root) if reason == RenewalReason::RootRotation && root.signs_from > now => {
            Plan::Nothing
        }
        Some(root) if reason == RenewalReason::Expiry && lives(root, ISSUER_SECS) => {
            let below = authorities
                .iter()
                .filter(|authority| authority.root_uuid == Some(root.authority_uuid));
            match below.max_by_key(|issuer| issuer.signs_from) {
                Some(issuer) if lives(issuer, HUB_SECS) => Plan::Nothing,
                _ => Plan::Issuer(root.authority_uuid),
            }
        }
        _ => Plan::Both,
    }
}

/// The authority that signs now: the newest one whose signing time has come. If the clock was set
/// back to before all of them, the oldest one signs.
pub fn signing(authorities: &[Authority], now: Timestamp) -> Option<&Authority> {
    let issuers = || {
        authorities
            .iter()
            .filter(|authority| authority.root_uuid.is_some())
    };
    let begun = issuers().find(|issuer| issuer.signs_from <= now);
    begun
        .or(issuers().next_back())
        .filter(|issuer| issuer.not_after >= now.plus_secs(HUB_SECS))
}

/// Creates the authorities that are due. Returns whether there were any. Of concurrent replicas
/// only one creates them.
pub async fn renew(core: &Core, reason: RenewalReason) -> Result<bool> {
    let now = core.clock.now();
    let mut conn = core.db.read().await?;
    let authorities = store::authorities(&mut conn).await?;
    drop(conn);
    if plan(&authorities, reason, now) == Plan::Nothing {
        return Ok(false);
    }
    let mut tx = core.db.begin().await?;
    stored::lock(&mut tx).await?;
    let authorities = store::authorities(&mut tx).await?;
    // Without an authority that signs, waiting has no purpose.
    let signs_from = match signing(&authorities, now) {
        Some(_) => now.plus_secs(PUBLISHED_AHEAD_SECS),
        None => now,
    };
    let root = match plan(&authorities, reason, now) {
        Plan::Nothing => return Ok(false),
        Plan::Issuer(root_uuid) => authorities
            .into_iter()
            .find(|root| root.authority_uuid == root_uuid),
        Plan::Both => None,
    };
    let is_new_root = root.is_none();
    let root = match root {
        Some(root) => root,
        None => {
            let root = seal(core, None, signs_from, now, x509::create_root)?;
            store::insert_authority(&mut tx, &root, now).await?;
            root
        }
    };
    let opened = open(core, &root)?;
    let issuer = seal(core, Some(&root), signs_from, now, |name, validity| {
        x509::create_issuer(name, validity, &opened)
    })?;
    store::insert_authority(&mut tx, &issuer, now).await?;
    let audit = Audit::by_system(
        "CERTIFICATES",
        "certificate_authority.create",
        issuer.authority_uuid,
        now,
    );
    let detail =
        json!({"rootUuid": root.authority_uuid, "isNewRoot": is_new_root, "signsFrom": signs_from});
    tx.commit(audit.with(detail)).await?;
    Ok(true)
}

/// Creates an authority and seals its key. Without `root` it creates a root.
fn seal(
    core: &Core,
    root: Option<&Authority>,
    signs_from: Timestamp,
    now: Timestamp,
    create: impl FnOnce(&str, Validity) -> Result<Signer>,
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
    let Signer {
        certificate,
        private_key,
    } = create(&name, validity)?;
    Ok(Authority {
        authority_uuid,
        root_uuid: root.map(|root| root.authority_uuid),
        certificate,
        sealed_private_key: core.sealer.seal(
            CERTIFICATE_AUTHORITY,
            &authority_uuid.to_string(),
            &private_key,
        ),
        not_before: validity.not_before,
        not_after: validity.not_after,
        signs_from,
    })
}

/// Opens the sealed key of an authority, so that it can sign.
pub fn open(core: &Core, authority: &Authority) -> Result<Signer> {
    let row = authority.authority_uuid.to_string();
    let private_key = core
        .sealer
        .open(CERTIFICATE_AUTHORITY, &row, &authority.sealed_private_key);
    Ok(Signer {
        certificate: authority.certificate.clone(),
        private_key: private_key.map_err(Error::internal)?,
    })
}

/// The trust anchors: the roots in use and the issuing authorities below them.
pub fn trusted(
    authorities: &[Authority],
    roots_in_use: &[Uuid],
    now: Timestamp,
) -> (Vec<Authority>, Vec<Authority>) {
    let newest_root = authorities
        .iter()
        .find(|authority| authority.root_uuid.is_none());
    let current = [
        signing(authorities, now).and_then(|issuer| issuer.root_uuid),
        newest_root.map(|root| root.authority_uuid),
    ];
    let is_used =
        |root_uuid: Uuid| current.contains(&Some(root_uuid)) || roots_in_use.contains(&root_uuid);
    let trusted = authorities.iter().filter(|authority| {
        authority.not_after > now
            && is_used(authority.root_uuid.unwrap_or(authority.authority_uuid))
    });
    trusted
        .cloned()
        .partition(|authority| authority.root_uuid.is_none())
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
    fn missing_and_expiring_authorities_are_due() {
        let plan = |authorities: &[&Authority], reason| {
            let authorities: Vec<Authority> = authorities.iter().copied().cloned().collect();
            super::plan(&authorities, reason, NOW)
        };
        assert_eq!(plan(&[], RenewalReason::Expiry), Plan::Both);
        assert_eq!(plan(&[], RenewalReason::RootRotation), Plan::Both);
        let root = authority(None, -10, 3000);
        let issuer = authority(Some(root.authority_uuid), -10, 300);
        assert_eq!(
            plan(&[&issuer, &root], RenewalReason::Expiry),
            Plan::Nothing
        );
        assert_eq!(
            plan(&[&issuer, &root], RenewalReason::RootRotation),
            Plan::Both
        );
        assert_eq!(
            plan(&[&root], RenewalReason::Expiry),
            Plan::Issuer(root.authority_uuid)
        );
        let ends_soon = authority(Some(root.authority_uuid), -10, 100);
        assert_eq!(
            plan(&[&ends_soon, &root], RenewalReason::Expiry),
            Plan::Issuer(root.authority_uuid)
        );
        let old_root = authority(None, -20, 380);
        let below_old = authority(Some(old_root.authority_uuid), -20, 300);
        assert_eq!(
            plan(&[&below_old, &old_root], RenewalReason::Expiry),
            Plan::Both
        );
        let waits = authority(None, 60, 3000);
        let below_waiting = authority(Some(waits.authority_uuid), 60, 365);
        assert_eq!(
            plan(
                &[&below_waiting, &waits, &issuer, &root],
                RenewalReason::RootRotation
            ),
            Plan::Nothing
        );
        assert_eq!(
            plan(
                &[&below_waiting, &waits, &issuer, &root],
                RenewalReason::Expiry
            ),
            Plan::Nothing
        );
    }

    #[test]
    fn the_newest_authority_whose_time_has_come_signs() {
        let root = authority(None, -10, 3000);
        let waits = authority(Some(root.authority_uuid), 60, 365);
        let signs = authority(Some(root.authority_uuid), -10, 300);
        let older = authority(Some(root.authority_uuid), -20, 300);
        let all = [waits.clone(), signs.clone(), root.clone(), older];
        assert_eq!(
            signing(&all, NOW).map(|issuer| issuer.authority_uuid),
            Some(signs.authority_uuid)
        );
        assert_eq!(
            signing(&[waits.clone(), root.clone()], NOW).map(|one| one.authority_uuid),
            Some(waits.authority_uuid)
        );
        let ends = authority(Some(root.authority_uuid), -10, 89);
        assert!(
            signing(&[ends, root.clone()], NOW).is_none(),
            "what it signs would outlive it"
        );
        assert!(signing(&[root], NOW).is_none());
    }

    #[test]
    fn a_root_is_trusted_while_it_is_in_use() {
        let old_root = authority(None, -20, 3000);
        let below_old = authority(Some(old_root.authority_uuid), -20, 300);
        let new_root = authority(None, -10, 3000);
        let below_new = authority(Some(new_root.authority_uuid), -10, 300);
        let all = [below_new, new_root.clone(), below_old, old_root.clone()];
        let uuids = |roots_in_use: &[Uuid]| {
            let (roots, issuers) = trusted(&all, roots_in_use, NOW);
            assert_eq!(roots.len(), issuers.len());
            roots
                .into_iter()
                .map(|root| root.authority_uuid)
                .collect::<Vec<_>>()
        };
        assert_eq!(uuids(&[]), [new_root.authority_uuid]);
        assert_eq!(
            uuids(&[old_root.authority_uuid]),
            [new_root.authority_uuid, old_root.authority_uuid]
        );
    }
}
