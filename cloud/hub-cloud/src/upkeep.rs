//! Names all background work and its lanes, and performs the periodic work that keeps tables small
//! and creates partitions. Each kind of periodic work is one task that reschedules itself. It
//! deletes in small batches, so that no other statement waits long for its locks.

use hub_base::db::{Db, partitions};
use hub_base::error::{Error, Result};
use hub_composed::retention;
use hub_composed::{account_deletion, bundles, dashboard, device_commands, mandates, notices};
use hub_core::tasks::{self, Done, Lane, NewTask, Task};
use hub_core::{mail, outbox};
use hub_devices::{
    ble_reprocess, device_history, device_instances, recognition, unknown_advertisers,
};
use hub_exposure::{dependency_track, release_documents, software, vulnerabilities};
use hub_fleet::releases::contents;
use hub_fleet::{certificates, claim_codes, hubs, jobs, releases, update_policies};
use hub_identity::authn::oidc;
use hub_ingest::{self as ingest, history};
use hub_people::{accounts, supplier_links, tenants};
use hub_pipelines as pipelines;
use hub_protocol::{TenantUuid, Timestamp};
use serde_json::json;
use uuid::Uuid;

use crate::app::App;

const UPLOAD_KEYS: &str = "upkeep.upload_keys";
const LOGINS: &str = "upkeep.logins";
const LOGIN_FAILURES: &str = "upkeep.login_failures";
const PASSWORD_RESETS: &str = "upkeep.password_resets";
const PARTITIONS: &str = "upkeep.partitions";
const SIGNING_KEYS: &str = "upkeep.signing_keys";
const CERTIFICATES: &str = "upkeep.certificates";
const RELEASES: &str = "upkeep.releases";
const HUB_JOBS: &str = "upkeep.hub_jobs";
const HUB_CLONES: &str = "upkeep.hub_clones";
const HUB_REFRESHES: &str = "upkeep.hub_refreshes";
const UPDATE_POLICIES: &str = "upkeep.update_policies";
const SENSOR_ROLLUPS: &str = "upkeep.sensor_rollups";
const OLD_ROLLUPS: &str = "upkeep.old_rollups";
const UNKNOWN_ADVERTISERS: &str = "upkeep.unknown_advertisers";
const UPLOAD_PACES: &str = "upkeep.upload_paces";
const NOTICES: &str = "upkeep.notices";
const OLD_NOTICES: &str = "upkeep.old_notices";
const BLE_MINUTES: &str = "upkeep.ble_minutes";
const OLD_BLE_MINUTES: &str = "upkeep.old_ble_minutes";
const SUPPLIER_LINKS: &str = "upkeep.supplier_links";
const PAIRING_CODES: &str = "upkeep.pairing_codes";
const DELETED_SUBJECTS: &str = "upkeep.deleted_subjects";
const DEVICE_COMMANDS: &str = "upkeep.device_commands";
const MANDATES: &str = "upkeep.mandates";
const MANDATE_PUSHES: &str = "upkeep.mandate_pushes";

const KINDS: &[&str] = &[
    UPLOAD_KEYS,
    LOGINS,
    LOGIN_FAILURES,
    PASSWORD_RESETS,
    PARTITIONS,
    SIGNING_KEYS,
    CERTIFICATES,
    RELEASES,
    HUB_JOBS,
    HUB_CLONES,
    HUB_REFRESHES,
    UPDATE_POLICIES,
    UPLOAD_PACES,
    SENSOR_ROLLUPS,
    OLD_ROLLUPS,
    UNKNOWN_ADVERTISERS,
    NOTICES,
    OLD_NOTICES,
    BLE_MINUTES,
    OLD_BLE_MINUTES,
    SUPPLIER_LINKS,
    PAIRING_CODES,
    DELETED_SUBJECTS,
    DEVICE_COMMANDS,
    MANDATES,
    MANDATE_PUSHES,
];

const EVERY_SECS: i64 = 3600;
/// A job expires at most this long after its deadline.
const HUB_JOBS_EVERY_SECS: i64 = 10;
/// The delay of the entry about a hub whose credentials two machines have.
const HUB_CLONES_EVERY_SECS: i64 = 15;
/// The delay after which the hubs of a tenant get larger shares of its limit when others are gone.
const UPLOAD_PACES_EVERY_SECS: i64 = 60;
/// Values of devices that are in no rollup yet are read one by one.
const SENSOR_ROLLUPS_EVERY_SECS: i64 = 600;
/// The longest delay of a notice.
const NOTICES_EVERY_SECS: i64 = 15;
/// The minutes that are not counted yet are read by each summary.
const BLE_MINUTES_EVERY_SECS: i64 = 60;
/// The longest delay of the note that a mandate has ended; nothing is handed out meanwhile.
const MANDATES_EVERY_SECS: i64 = 60;
/// The interval of rollout steps.
const UPDATE_POLICIES_EVERY_SECS: i64 = 3;
/// Jobs that one run expires, each in its own transaction.
const HUB_JOBS_BATCH: i64 = 100;
/// Rows that one transaction deletes.
pub const CHUNK: i64 = 1000;
/// The same for rows whose files are removed too.
const FILES_CHUNK: i64 = 50;
/// The same for rows of which each becomes an audit entry.
const REFRESHES_CHUNK: i64 = 100;
/// The time for which the retry of an upload is recognised.
const UPLOAD_KEYS_SECS: i64 = 7 * 24 * 3600;

const UPKEEP_LANE: &str = "upkeep";
const JOBS_LANE: &str = "jobs";
const ROLLOUTS_LANE: &str = "rollouts";
const ROLLUPS_LANE: &str = "rollups";
const NOTICES_LANE: &str = "notices";
const MINUTES_LANE: &str = "ble_minutes";

/// All lanes of background work. `runners` limits the tasks of a lane that one replica runs at
/// once.
pub const LANES: &[Lane] = &[
    Lane {
        name: UPKEEP_LANE,
        runners: 2,
    },
    Lane {
        name: JOBS_LANE,
        runners: 1,
    },
    Lane {
        name: ROLLOUTS_LANE,
        runners: 1,
    },
    Lane {
        name: ROLLUPS_LANE,
        runners: 1,
    },
    Lane {
        name: NOTICES_LANE,
        runners: 1,
    },
    Lane {
        name: MINUTES_LANE,
        runners: 1,
    },
    Lane {
        name: retention::LANE,
        runners: 1,
    },
    Lane {
        name: history::LANE,
        runners: 1,
    },
    Lane {
        name: ble_reprocess::LANE,
        runners: 1,
    },
    Lane {
        name: software::LANE,
        runners: 1,
    },
    Lane {
        name: contents::LANE,
        runners: 1,
    },
    Lane {
        name: dependency_track::LANE,
        runners: 4,
    },
    Lane {
        name: bundles::LANE,
        runners: 1,
    },
    Lane {
        name: device_instances::LANE,
        runners: 1,
    },
    Lane {
        name: hub_pipelines::WITHDRAWAL_LANE,
        runners: 1,
    },
    Lane {
        name: mail::LANE,
        runners: 4,
    },
    Lane {
        name: accounts::LANE,
        runners: 2,
    },
    Lane {
        name: account_deletion::LANE,
        runners: 1,
    },
    Lane {
        name: outbox::LANE,
        runners: 16,
    },
    Lane {
        name: supplier_links::LANE,
        runners: 8,
    },
    Lane {
        name: mandates::push::LANE,
        runners: 1,
    },
    Lane {
        name: notices::WEBHOOKS_LANE,
        runners: 8,
    },
];

fn lane_of(kind: &str) -> &'static str {
    match kind {
        HUB_JOBS => JOBS_LANE,
        UPDATE_POLICIES => ROLLOUTS_LANE,
        SENSOR_ROLLUPS => ROLLUPS_LANE,
        NOTICES => NOTICES_LANE,
        BLE_MINUTES => MINUTES_LANE,
        MANDATE_PUSHES => mandates::push::LANE,
        kind if retention::KINDS.contains(&kind) => retention::LANE,
        history::LANE => history::LANE,
        _ => UPKEEP_LANE,
    }
}

/// One task for each kind, whichever replica adds it.
fn schedule() -> Vec<NewTask> {
    let task = |kind| NewTask {
        lane: lane_of(kind),
        kind,
        payload: json!({}),
        due_at: Timestamp::from_micros(0),
        dedup_key: Some(kind.to_owned()),
    };
    KINDS
        .iter()
        .copied()
        .chain(retention::KINDS)
        .chain([history::LANE])
        .map(task)
        .chain([software::matching(Timestamp::from_micros(0))])
        .collect()
}

/// Runs background work until the service ends.
pub async fn run(app: App) {
    let core = (*app).clone();
    tasks::runner::run(core, LANES, schedule(), move |task| {
        perform(app.clone(), task)
    })
    .await;
}

/// Performs one task of any kind.
pub async fn perform(app: App, task: Task) -> Result<Done> {
    match task.kind.as_str() {
        kind if KINDS.contains(&kind) => perform_upkeep(&app, kind).await,
        kind if retention::KINDS.contains(&kind) => retention::perform(&app, kind).await,
        history::LANE => history::perform(&app).await,
        software::MATCH => vulnerabilities::perform(&app).await,
        software::ADOPT => release_documents::adopt(&app, &task.payload).await,
        contents::FIND => release_documents::perform(&app.parts().releases, &task.payload).await,
        dependency_track::SEND => dependency_track::perform(&app, &task.payload).await,
        ble_reprocess::RUN => ble_reprocess::perform(&app, &app.parts().recognition, &task).await,
        bundles::WITHDRAW => {
            bundles::perform_withdrawal(&app, &app.parts().hubs.changes, &task.payload).await
        }
        recognition::UNREAD => ble_reprocess::begin_for_unread(&app, &task.payload).await,
        device_instances::WAS_DELETED => hub_pipelines::withdraw_device(&app, &task.payload).await,
        hub_pipelines::WITHDRAW => hub_pipelines::withdraw(&app, &task).await,
        device_instances::KEY_WAS_SET => ble_reprocess::begin_for_key(&app, &task.payload).await,
        mail::SEND => mail::send(&app, &task.payload).await,
        notices::WEBHOOKS => notices::perform_webhooks(&app, &task).await,
        outbox::PUSH => app.parts().pushes.perform(&task.payload).await,
        supplier_links::REVOKE => supplier_links::perform(&app.parts().supplier_links, &task).await,
        account_deletion::DELETE => account_deletion::perform(&app.parts().hubs, &task).await,
        accounts::FORGOT => accounts::perform_forgot(&app.parts().accounts, &task.payload).await,
        // A newer replica may know this kind and run the task later.
        _ => Err(Error::internal(
            "this version does not know this kind of work",
        )),
    }
}

async fn perform_upkeep(app: &App, kind: &str) -> Result<Done> {
    let (db, now) = (&app.db, app.clock.now());
    let has_more = match kind {
        UPLOAD_KEYS | OLD_ROLLUPS | UNKNOWN_ADVERTISERS | OLD_BLE_MINUTES => {
            delete_of_each_tenant(app, kind, now).await?
        }
        LOGINS => accounts::forget_logins(db, now, CHUNK).await? >= CHUNK.unsigned_abs(),
        LOGIN_FAILURES => accounts::forget_failures(db, now, CHUNK).await? >= CHUNK.unsigned_abs(),
        PASSWORD_RESETS => accounts::forget_resets(db, now, CHUNK).await? >= CHUNK.unsigned_abs(),
        PARTITIONS => {
            partitions::ensure(db, now).await?;
            false
        }
        RELEASES => {
            releases::forget_abandoned(&app.parts().releases, FILES_CHUNK).await?
                >= FILES_CHUNK.unsigned_abs()
        }
        SIGNING_KEYS => {
            app.parts().authn.keys.rotate(db, now, false).await?;
            false
        }
        CERTIFICATES => certificates::upkeep(app, CHUNK).await?,
        HUB_JOBS => jobs::end_overdue(&app.parts().jobs, HUB_JOBS_BATCH).await?,
        HUB_CLONES => hubs::note_clones(app).await?,
        HUB_REFRESHES => {
            hubs::close_refreshes(db, now, REFRESHES_CHUNK).await? >= REFRESHES_CHUNK.unsigned_abs()
        }
        // Jobs wait until there is room for them.
        UPDATE_POLICIES if app.storage.is_full() => false,
        UPDATE_POLICIES => update_policies::advance(&app.parts().policies).await?,
        UPLOAD_PACES => {
            hubs::adjust_paces(app).await?;
            false
        }
        SENSOR_ROLLUPS => device_history::roll_up(app).await?,
        // Notices wait until there is room for them.
        NOTICES if app.storage.is_full() => false,
        // The scan also sends notices of failing pipelines.
        NOTICES => notices::scan(app, &failing_pipelines(app).await?).await?,
        OLD_NOTICES => notices::upkeep(app, now, CHUNK).await?,
        BLE_MINUTES => dashboard::roll_up(app).await?,
        PAIRING_CODES => {
            claim_codes::forget_unused_pairing(db, now, CHUNK).await? >= CHUNK.unsigned_abs()
        }
        DELETED_SUBJECTS => oidc::forget_deleted(db, now, CHUNK).await? >= CHUNK.unsigned_abs(),
        SUPPLIER_LINKS => supplier_links::upkeep(db, now, CHUNK).await?,
        DEVICE_COMMANDS => {
            let kept_secs =
                i64::try_from(app.config.retention.job_events.as_secs()).unwrap_or(i64::MAX);
            device_commands::forget(db, now.plus_secs(-kept_secs), CHUNK).await?
                >= CHUNK.unsigned_abs()
        }
        MANDATES => {
            mandates::upkeep::settle(app).await?;
            false
        }
        MANDATE_PUSHES => return mandates::push::perform(app).await,
        _ => return Err(Error::internal("no such kind of upkeep")),
    };
    let pause_secs = match kind {
        HUB_JOBS => HUB_JOBS_EVERY_SECS,
        MANDATES => MANDATES_EVERY_SECS,
        HUB_CLONES => HUB_CLONES_EVERY_SECS,
        UPDATE_POLICIES => UPDATE_POLICIES_EVERY_SECS,
        UPLOAD_PACES => UPLOAD_PACES_EVERY_SECS,
        SENSOR_ROLLUPS => SENSOR_ROLLUPS_EVERY_SECS,
        NOTICES => NOTICES_EVERY_SECS,
        BLE_MINUTES => BLE_MINUTES_EVERY_SECS,
        _ => EVERY_SECS,
    };
    Ok(Done::RunAt(if has_more {
        now
    } else {
        now.plus_secs(pause_secs)
    }))
}

async fn failing_pipelines(app: &App) -> Result<Vec<notices::FailingPipeline>> {
    let mut conn = app.db.read().await?;
    let failing = pipelines::failing(&mut conn).await?;
    let losing = pipelines::losing(&mut conn, app.clock.now()).await?;
    let fails = |row: pipelines::FailingRow| notices::FailingPipeline {
        tenant_uuid: row.tenant_uuid,
        pipeline_uuid: row.pipeline_uuid,
        name: row.name,
        trouble: notices::Trouble::Fails {
            since: row.failing_since,
            error: row.last_error.unwrap_or_default(),
        },
    };
    let has_lost = |row: pipelines::LosingRow| notices::FailingPipeline {
        tenant_uuid: row.tenant_uuid,
        pipeline_uuid: row.pipeline_uuid,
        name: row.name,
        trouble: notices::Trouble::HasLost {
            from: Timestamp::from_micros(row.lost_from.saturating_add(1)),
            to: Timestamp::from_micros(row.lost_to.saturating_add(1)),
        },
    };
    Ok(failing
        .into_iter()
        .map(fails)
        .chain(losing.into_iter().map(has_lost))
        .collect())
}

/// Deletes up to [`CHUNK`] rows of each tenant, deleted ones included. Returns whether one may have
/// more. What fails for one tenant is done for the others all the same.
async fn delete_of_each_tenant(app: &App, kind: &str, now: Timestamp) -> Result<bool> {
    let (mut after, mut has_more, mut failure) = (TenantUuid(Uuid::nil()), false, None);
    loop {
        let tenants = tenants::all_after(&mut app.db.read().await?, after, CHUNK).await?;
        for &tenant in &tenants {
            match delete_of_tenant(app, kind, tenant, now).await {
                Ok(deleted) => has_more |= deleted >= CHUNK.unsigned_abs(),
                Err(error) => failure = Some(error),
            }
        }
        match tenants.last() {
            Some(last) if !app.shutdown.is_cancelled() => after = *last,
            _ => return failure.map_or(Ok(has_more), Err),
        }
    }
}

async fn delete_of_tenant(
    app: &App,
    kind: &str,
    tenant: TenantUuid,
    now: Timestamp,
) -> Result<u64> {
    let db = &app.db;
    match kind {
        UPLOAD_KEYS => delete_upload_keys(db, tenant, now.plus_secs(-UPLOAD_KEYS_SECS)).await,
        OLD_ROLLUPS => device_history::forget(app, tenant, now, CHUNK).await,
        UNKNOWN_ADVERTISERS => unknown_advertisers::forget(db, tenant, now, CHUNK).await,
        OLD_BLE_MINUTES => dashboard::forget(db, tenant, now, CHUNK).await,
        _ => Err(Error::internal("no such kind of upkeep")),
    }
}

async fn delete_upload_keys(db: &Db, tenant: TenantUuid, before: Timestamp) -> Result<u64> {
    let mut tx = db.begin().await?;
    let deleted = ingest::delete_keys(&mut tx, tenant, before, CHUNK).await?;
    tx.commit_unaudited("no change made by a person").await?;
    Ok(deleted)
}
