//! Releases of the agent belong to no tenant, and lists do. The components of a release become a
//! list of each tenant whose hubs have or had it: when the first of them reports it, and when its
//! bill of materials arrives.

use hub_base::error::{Error, Result};
use hub_core::Core;
use hub_core::tasks::{self, Done};
use hub_fleet::releases::contents::{self, ReleaseDocument};
use hub_protocol::{ReleaseUuid, TenantUuid};
use serde::Deserialize;
use serde_json::Value;

use super::statements::Subject;
use super::{Statement, StoredList, store};
use crate::software::components;
use crate::{software, vulnerabilities};

/// Tenants of one run; the next one has the others.
const LIMIT: i64 = 100;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Payload {
    release_uuid: ReleaseUuid,
}

/// A release as each tenant gets it.
struct Adopted {
    release_uuid: ReleaseUuid,
    list: StoredList,
    stated: Vec<Statement>,
}

/// Performs the task that gives tenants the components of a release.
pub async fn adopt(core: &Core, payload: &Value) -> Result<Done> {
    let Payload { release_uuid } = Payload::deserialize(payload).map_err(Error::internal)?;
    let mut conn = core.db.read().await?;
    let tenants = store::without_list(&mut conn, release_uuid, LIMIT).await?;
    drop(conn);
    if tenants.is_empty() {
        return Ok(Done::Finished);
    }
    let adopted = match read(core, release_uuid).await {
        Ok(adopted) => adopted,
        Err(error) if error.is_database_unavailable() => return Err(error),
        // It was read before it was stored: another try reads no more.
        Err(error) => {
            tracing::warn!(%release_uuid, %error, "the components of a release are not read");
            return Ok(Done::Finished);
        }
    };
    for tenant_uuid in &tenants {
        keep(core, *tenant_uuid, &adopted).await?;
    }
    let is_full = i64::try_from(tenants.len()).unwrap_or(i64::MAX) >= LIMIT;
    Ok(match is_full {
        true => Done::RunAt(core.clock.now()),
        false => Done::Finished,
    })
}

async fn read(core: &Core, release_uuid: ReleaseUuid) -> Result<Adopted> {
    let mut conn = core.db.read().await?;
    let release = contents::of_platform(&mut conn, release_uuid).await?;
    let sbom = store::get(&mut conn, release_uuid, ReleaseDocument::Sbom).await?;
    let vex = store::get(&mut conn, release_uuid, ReleaseDocument::Vex).await?;
    drop(conn);
    let unreadable = || Error::internal("a document of a release cannot be read");
    let sbom = sbom.ok_or_else(unreadable)?;
    let read = tokio::task::spawn_blocking(move || {
        let (components, names) = super::declared_in(&sbom)?.ok_or_else(unreadable)?;
        let subject = Subject::new(release_uuid, &release.name, &release.version, &components);
        let subject = subject.named(&names);
        let stated = match vex {
            Some(vex) => super::stated_in(&vex, &subject)?,
            None => None,
        };
        Ok(Adopted {
            release_uuid,
            list: components::pack(&components)?.ok_or_else(unreadable)?,
            stated: stated.unwrap_or_default(),
        })
    });
    read.await.map_err(Error::internal)?
}

async fn keep(core: &Core, tenant_uuid: TenantUuid, adopted: &Adopted) -> Result<()> {
    let Adopted {
        release_uuid,
        list,
        stated,
    } = adopted;
    let now = core.clock.now();
    let mut tx = core.db.begin().await?;
    software::put_of_release(&mut tx, tenant_uuid, *release_uuid, list, now).await?;
    vulnerabilities::put_of_maker(&mut tx, tenant_uuid, *release_uuid, stated).await?;
    tasks::enqueue(core, &mut tx, software::matching(now), now).await?;
    tx.commit_unaudited("what follows from what is stored")
        .await
}
