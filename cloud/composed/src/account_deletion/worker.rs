//! Carries out deletions. Every transaction is small, and repeating one changes nothing; how far a
//! deletion is follows from what is left, so whoever comes next continues.

use std::collections::HashSet;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use hub_base::db::Direction;
use hub_base::db::months::Month;
use hub_base::error::{Error, Result};
use hub_core::Core;
use hub_core::audit::Actor;
use hub_core::audit::redaction::{self, Redaction};
use hub_core::outbox;
use hub_core::pace::{Held, Pace};
use hub_core::tasks::{Done, Task};
use hub_devices::{device_history, device_instances, unknown_advertisers};
use hub_fleet::consent;
use hub_fleet::hubs::{self, Hubs};
use hub_identity::authz::Scope;
use hub_ingest::batches::Wanted;
use hub_ingest::{self as ingest, Kind, history, log};
use hub_people::accounts::departure;
use hub_people::{api_keys, invitations, supplier_links, tenants, transfers};
use hub_pipelines as pipelines;
use hub_protocol::{HubUuid, TenantUuid, Timestamp};
use uuid::Uuid;

use super::store::{self, LeftHub};
use super::{ACTOR, Deletion, Step};
use crate::{device_commands, hub_release, notices, partner_projects};

/// The time after which another deletion continues.
const RUN_TIME: Duration = Duration::from_secs(20);
/// The rest after a batch while no upload runs, as a multiple of the batch's duration.
const IDLE_REST: f64 = 0.5;
/// Entries of the audit log that one transaction looks through.
const ENTRIES: i64 = 2000;
/// The devices, hubs and messages that are read or deleted at once.
const SOME: i64 = 100;
/// The time that suppliers have to revoke tokens and to get the ends of links.
const FAREWELL_SECS: i64 = 600;
const FAREWELL_EVERY_SECS: i64 = 5;
/// The time after a release during which records of the hub may still be received.
const LATE_SECS: i64 = 120;

/// Carries on a deletion, for a while.
pub async fn perform(hubs: &Hubs, task: &Task) -> Result<Done> {
    let core = &hubs.core;
    let deletion_uuid = task
        .payload
        .get("deletionUuid")
        .and_then(|uuid| uuid.as_str()?.parse::<Uuid>().ok());
    let deletion_uuid =
        deletion_uuid.ok_or_else(|| Error::internal("the task names no deletion"))?;
    let Some(deletion) = store::find(&mut core.db.read().await?, deletion_uuid).await? else {
        return Ok(Done::Finished);
    };
    let pace = Pace::new(
        core,
        IDLE_REST,
        core.metrics.retention_batch_duration.clone(),
    );
    let mut work = Work {
        hubs,
        core,
        deletion,
        pace,
        ends_at: Instant::now() + RUN_TIME,
    };
    loop {
        let is_done = match work.deletion.step {
            Step::Hubs => work.leave_hubs().await?,
            Step::Records => work.records().await?,
            Step::Audit => work.audit().await?,
            Step::Farewell => return work.farewell().await,
        };
        if !is_done || work.is_over() {
            return Ok(Done::RunAt(core.clock.now()));
        }
    }
}

struct Work<'a> {
    hubs: &'a Hubs,
    core: &'a Core,
    deletion: Deletion,
    pace: Pace,
    ends_at: Instant,
}

impl Work<'_> {
    fn is_over(&self) -> bool {
        self.core.shutdown.is_cancelled() || Instant::now() >= self.ends_at
    }

    async fn rest(&mut self, held: &Held, rows: i64) {
        let took = self.pace.measure(held, rows);
        self.pace.rest(self.core, took, rows).await;
    }

    async fn go_on(&mut self, step: Step) -> Result<()> {
        self.deletion.step = step;
        let mut tx = self.core.db.begin().await?;
        store::set_step(&mut tx, &self.deletion).await?;
        tx.commit_unaudited("how far a deletion is").await
    }

    /// Releases the hubs, so that none reports any more, then deletes their records. Returns
    /// whether none is left.
    async fn leave_hubs(&mut self) -> Result<bool> {
        let deletion_uuid = self.deletion.deletion_uuid;
        let mut after = HubUuid(Uuid::nil());
        loop {
            let hubs =
                store::hubs_after(&mut self.core.db.read().await?, deletion_uuid, after, SOME)
                    .await?;
            let Some(last) = hubs.last() else { break };
            after = last.hub_uuid;
            for hub in hubs {
                self.release(&hub).await?;
            }
            if self.is_over() {
                return Ok(false);
            }
        }
        while let Some(hub) =
            store::next_hub(&mut self.core.db.read().await?, deletion_uuid).await?
        {
            if !self.forget_hub(hub).await? {
                return Ok(false);
            }
        }
        self.go_on(Step::Records).await?;
        Ok(true)
    }

    /// Another person may have claimed the hub meanwhile.
    async fn release(&self, hub: &LeftHub) -> Result<()> {
        let ownership = hubs::ownership(&mut self.core.db.read().await?, hub.hub_uuid).await?;
        match ownership.is_some_and(|owned| owned.owner_user_uuid == Some(self.deletion.user_uuid))
        {
            true => hub_release::release_departed(self.hubs, hub.tenant_uuid, hub.hub_uuid).await,
            false => Ok(()),
        }
    }

    /// Returns whether nothing of the hub is left.
    async fn forget_hub(&mut self, hub: LeftHub) -> Result<bool> {
        let ownership = hubs::ownership(&mut self.core.db.read().await?, hub.hub_uuid).await?;
        let until = ownership.map(|owned| match owned.released_at {
            Some(released_at) => released_at.plus_secs(LATE_SECS),
            None => owned.claimed_at,
        });
        let until = until.unwrap_or(self.deletion.begun_at);
        for kind in [Kind::BleEvents, Kind::Logs, Kind::Telemetry] {
            if !self.uploads(&hub, kind, until).await? {
                return Ok(false);
            }
        }
        if !self.devices(&hub).await?
            || !self.hours(&hub, until).await?
            || !self.traces(&hub).await?
        {
            return Ok(false);
        }
        let mut tx = self.core.db.begin().await?;
        unknown_advertisers::forget_hub(&mut tx, hub.tenant_uuid, hub.hub_uuid).await?;
        notices::forget_hub(&mut tx, hub.tenant_uuid, hub.hub_uuid).await?;
        hubs::forget_names(&mut tx, hub.hub_uuid).await?;
        store::forget_hub(&mut tx, self.deletion.deletion_uuid, hub.hub_uuid).await?;
        tx.commit_unaudited("what an account leaves").await?;
        Ok(true)
    }

    /// Deletes what the hub has uploaded while it was the person's.
    async fn uploads(&mut self, hub: &LeftHub, kind: Kind, until: Timestamp) -> Result<bool> {
        match kind {
            // Rows move to files until they are deleted.
            Kind::BleEvents => Ok(self.files(hub, until).await?
                && self.rows(hub, kind, until).await?
                && self.files(hub, until).await?),
            _ => self.rows(hub, kind, until).await,
        }
    }

    /// Writes files of events again without those of the hub.
    async fn files(&mut self, hub: &LeftHub, until: Timestamp) -> Result<bool> {
        let (core, between) = (self.core, (hub.since, until));
        while let Some(file) =
            history::without_hub(core, hub.tenant_uuid, hub.hub_uuid, between).await?
        {
            let mut tx = core.db.begin().await?;
            if !file.apply(&mut tx, core.clock.now()).await? {
                continue;
            }
            file.lower_stored(&mut tx).await?;
            tx.commit_unaudited("what an account leaves").await?;
            if self.is_over() {
                return Ok(false);
            }
        }
        // An event is gone when the file that had it is.
        history::remove_files(core, || self.is_over()).await
    }

    async fn rows(&mut self, hub: &LeftHub, kind: Kind, until: Timestamp) -> Result<bool> {
        let Some(log) = ingest::log_of(kind) else {
            return Ok(true);
        };
        let (tenant_uuid, hub_uuid) = (hub.tenant_uuid, hub.hub_uuid);
        loop {
            if self.is_over() {
                return Ok(false);
            }
            let size = self.pace.size();
            let mut conn = self.core.db.read().await?;
            let open = match kind {
                Kind::BleEvents => history::first_open(&mut conn, tenant_uuid).await?,
                _ => hub.since,
            };
            // A file counts what is in it; its rows are left for a while.
            let closed = (hub.since, until.min(open));
            let mut batch =
                ingest::oldest_of_hub(&mut conn, log, tenant_uuid, hub_uuid, closed, size).await?;
            let is_counted = batch.first_id.is_none();
            if is_counted {
                let between = (hub.since.max(open), until);
                batch = ingest::oldest_of_hub(&mut conn, log, tenant_uuid, hub_uuid, between, size)
                    .await?;
            }
            drop(conn);
            let Some(first_id) = batch.first_id else {
                return Ok(true);
            };
            let mut tx = self.core.db.begin().await?;
            let mut held = Held::begin();
            if !ingest::delete_of_hub(&mut tx, log, tenant_uuid, hub_uuid, batch).await? {
                continue;
            }
            if is_counted {
                if kind == Kind::BleEvents
                    && history::first_open(&mut tx, tenant_uuid).await? != open
                {
                    continue;
                }
                let month = Month::of(Timestamp::from_micros(first_id));
                ingest::lower_stored(&mut tx, tenant_uuid, kind, month, batch.bytes).await?;
            }
            held.commits();
            tx.commit_unaudited("what an account leaves").await?;
            self.rest(&held, batch.row_count).await;
        }
    }

    /// Deletes devices that no other hub has heard.
    async fn devices(&mut self, hub: &LeftHub) -> Result<bool> {
        let scope = Scope::system(ACTOR, hub.tenant_uuid);
        let mut after = 0;
        loop {
            let mut conn = self.core.db.read().await?;
            let devices =
                store::lone_devices(&mut conn, self.deletion.deletion_uuid, hub, after, SOME)
                    .await?;
            let own_hubs = store::left_hubs(&mut conn, self.deletion.deletion_uuid).await?;
            drop(conn);
            let Some(last) = devices.last() else {
                return Ok(true);
            };
            after = *last;
            for device_instance_id in devices {
                let tenant_uuid = hub.tenant_uuid;
                if self
                    .is_heard_by_others(tenant_uuid, device_instance_id, &own_hubs)
                    .await?
                {
                    continue;
                }
                if self.is_over() {
                    return Ok(false);
                }
                let mut tx = self.core.db.begin().await?;
                device_instances::forget(self.core, &mut tx, &scope, device_instance_id).await?;
                redaction::forget_device(&mut tx, device_instance_id).await?;
                tx.commit_unaudited("the deletion of the account has its entry")
                    .await?;
            }
        }
    }

    /// Whether another hub has events of the device, of which files may know alone.
    async fn is_heard_by_others(
        &self,
        tenant_uuid: TenantUuid,
        device_instance_id: i64,
        own_hubs: &HashSet<HubUuid>,
    ) -> Result<bool> {
        let wanted = Wanted {
            device_instance_id: Some(device_instance_id),
            ..Wanted::all_of(tenant_uuid)
        };
        let (log, direction) = (&self.core.event_log, Direction::Descending);
        let mut is_found = false;
        log::walk(log, &wanted, direction, |found| {
            is_found = !own_hubs.contains(&found.hub_uuid);
            match is_found {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        })
        .await?;
        Ok(is_found)
    }

    /// Deletes what is known by the hour of the devices that are left.
    async fn hours(&mut self, hub: &LeftHub, until: Timestamp) -> Result<bool> {
        loop {
            if self.is_over() {
                return Ok(false);
            }
            let size = self.pace.size();
            let mut tx = self.core.db.begin().await?;
            let mut held = Held::begin();
            let deleted = device_history::forget_of_hub(
                &mut tx,
                hub.tenant_uuid,
                hub.hub_uuid,
                until.plus_secs(3600),
                size,
            )
            .await?;
            held.commits();
            tx.commit_unaudited("what an account leaves").await?;
            if deleted.cast_signed() < size {
                return Ok(true);
            }
            self.rest(&held, deleted.cast_signed()).await;
        }
    }

    /// Deletes messages with events of the hub, and where it called from.
    async fn traces(&mut self, hub: &LeftHub) -> Result<bool> {
        loop {
            if self.is_over() {
                return Ok(false);
            }
            let mut tx = self.core.db.begin().await?;
            let (tenant_uuid, hub_uuid) = (hub.tenant_uuid, hub.hub_uuid);
            let letters = pipelines::retention::delete_dead_letters_of_hub(
                &mut tx,
                tenant_uuid,
                hub_uuid,
                hub.since,
                SOME,
            )
            .await?;
            let entries = redaction::forget_addresses(&mut tx, &Actor::Hub(hub_uuid), SOME).await?;
            tx.commit_unaudited("what an account leaves").await?;
            if letters.max(entries) < SOME.unsigned_abs() {
                return Ok(true);
            }
        }
    }

    /// Deletes the rows that name the person, but for what the farewell needs.
    async fn records(&mut self) -> Result<bool> {
        let (user_uuid, traces) = (self.deletion.user_uuid, &self.deletion.traces);
        loop {
            let mut tx = self.core.db.begin().await?;
            let deleted = device_commands::forget_author(&mut tx, user_uuid.0, SOME).await?;
            tx.commit_unaudited("what an account leaves").await?;
            if deleted < SOME.unsigned_abs() {
                break;
            }
            if self.is_over() {
                return Ok(false);
            }
        }
        let mut tx = self.core.db.begin().await?;
        consent::forget_person(&mut tx, user_uuid).await?;
        invitations::forget_person(&mut tx, user_uuid, &traces.email).await?;
        transfers::forget_person(&mut tx, user_uuid).await?;
        api_keys::forget_creator(&mut tx, user_uuid).await?;
        notices::forget_person(&mut tx, user_uuid, &traces.email).await?;
        for persona_uuid in &traces.personas {
            partner_projects::forget_persona(&mut tx, *persona_uuid).await?;
        }
        tx.commit_unaudited("what an account leaves").await?;
        for tenant_uuid in &traces.tenants {
            let mut tx = self.core.db.begin().await?;
            notices::forget_mentions(&mut tx, *tenant_uuid, user_uuid).await?;
            tx.commit_unaudited("what an account leaves").await?;
        }
        self.deletion.position = 0;
        self.deletion.last_position = redaction::last_id(&mut self.core.db.read().await?).await?;
        self.go_on(Step::Audit).await?;
        Ok(true)
    }

    /// Puts a pseudonym in the person's place. Returns whether no entry is left.
    async fn audit(&mut self) -> Result<bool> {
        while self.deletion.position < self.deletion.last_position {
            if self.is_over() {
                return Ok(false);
            }
            let last = self
                .deletion
                .position
                .saturating_add(ENTRIES)
                .min(self.deletion.last_position);
            self.redact(last).await?;
        }
        self.go_on(Step::Farewell).await?;
        Ok(true)
    }

    async fn redact(&mut self, last: i64) -> Result<()> {
        let traces = &self.deletion.traces;
        let subs: Vec<String> = traces.subs.iter().chain(&traces.subject).cloned().collect();
        let redaction = Redaction {
            user_uuid: self.deletion.user_uuid,
            personas: &traces.personas,
            email: Some(traces.email.as_str()).filter(|email| !email.is_empty()),
            subs: &subs,
            pseudonym: self.deletion.deletion_uuid,
        };
        let mut tx = self.core.db.begin().await?;
        let mut held = Held::begin();
        redaction
            .apply(&mut tx, self.deletion.position, last)
            .await?;
        self.deletion.position = last;
        store::set_step(&mut tx, &self.deletion).await?;
        held.commits();
        tx.commit_unaudited("what an account leaves").await?;
        self.rest(&held, ENTRIES).await;
        Ok(())
    }

    /// Waits for suppliers, though not for long; then deletes what is left.
    async fn farewell(&mut self) -> Result<Done> {
        let (user_uuid, now) = (self.deletion.user_uuid, self.core.clock.now());
        let text = user_uuid.to_string();
        let mut conn = self.core.db.read().await?;
        let mut is_waiting = supplier_links::has_tokens(&mut conn, user_uuid).await?;
        for tenant_uuid in &self.deletion.traces.tenants {
            is_waiting |= outbox::awaits_end_of_link(&mut conn, *tenant_uuid, &text).await?;
        }
        drop(conn);
        if is_waiting && now < self.deletion.begun_at.plus_secs(FAREWELL_SECS) {
            return Ok(Done::RunAt(now.plus_secs(FAREWELL_EVERY_SECS)));
        }
        for tenant_uuid in &self.deletion.traces.tenants {
            loop {
                let mut tx = self.core.db.begin().await?;
                let deleted = outbox::delete_with(&mut tx, *tenant_uuid, &text, SOME).await?;
                tx.commit_unaudited("what an account leaves").await?;
                if deleted < SOME.unsigned_abs() {
                    break;
                }
            }
        }
        // The audit entries since then.
        let last = redaction::last_id(&mut self.core.db.read().await?).await?;
        while self.deletion.position < last {
            self.redact(self.deletion.position.saturating_add(ENTRIES).min(last))
                .await?;
        }
        let mut tx = self.core.db.begin().await?;
        supplier_links::forget_person(&mut tx, user_uuid).await?;
        consent::forget_person(&mut tx, user_uuid).await?;
        notices::forget_person(&mut tx, user_uuid, "").await?;
        tenants::forget_person(&mut tx, user_uuid).await?;
        departure::forget(&mut tx, user_uuid).await?;
        store::delete(&mut tx, self.deletion.deletion_uuid).await?;
        tx.commit_unaudited("the deletion of the account has its entry")
            .await?;
        tracing::info!(deletion = %self.deletion.deletion_uuid, "an account was deleted with all that was stored of it");
        Ok(Done::Finished)
    }
}
