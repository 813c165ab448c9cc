//! What operators do with pipelines.

use hub_base::db::{Conn, Tx};
use hub_base::error::{Error, Result};
use hub_base::sealing::stored::PIPELINE_SIGNING_SECRET;
use hub_core::Core;
use hub_core::audit::Audit;
use hub_destinations::is_signed;
use hub_identity::authz::Scope;
use hub_ingest::{self as ingest, Kind};
use hub_outgoing::signing::new_signing_secret;
use hub_people::tenants;
use hub_protocol::Timestamp;
use secrecy::{ExposeSecret, SecretString};
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::definition::StoredDefinition;
use super::destination::Stored;
use super::draft::{Draft, StartAt};
use super::store::operators::NewLane;
use super::store::revisions::NewRevision;
use super::store::{self, NewPipeline, PipelineRow, SealedSecret, operators, revisions};
use super::{LIVE, LaneStatus, MAX_PIPELINES, Pipelines, secrets, withdrawal};

/// Characters of a signing secret that are shown.
const HINT_CHARS: usize = 4;

fn not_found() -> Error {
    Error::not_found("pipeline")
}

pub async fn get(conn: &mut Conn, scope: &Scope, pipeline_uuid: Uuid) -> Result<PipelineRow> {
    store::get(conn, scope, pipeline_uuid)
        .await?
        .ok_or_else(not_found)
}

/// 404 unless the pipeline is the tenant's.
pub async fn require(conn: &mut Conn, scope: &Scope, pipeline_uuid: Uuid) -> Result<()> {
    if store::exists(conn, scope, pipeline_uuid).await? {
        Ok(())
    } else {
        Err(not_found())
    }
}

/// A pipeline of the tenant, locked until the transaction ends.
pub async fn locked(core: &Core, scope: &Scope, pipeline_uuid: Uuid) -> Result<(Tx, PipelineRow)> {
    let mut tx = core.db.begin().await?;
    if !store::lock(&mut tx, scope, pipeline_uuid).await? {
        return Err(not_found());
    }
    let row = get(&mut tx, scope, pipeline_uuid).await?;
    Ok((tx, row))
}

impl PipelineRow {
    pub fn stored_definition(&self) -> Result<StoredDefinition> {
        StoredDefinition::of(&self.definition)
    }

    /// The destination with its secrets.
    pub fn stored_destination(&self, core: &Core, definition: &StoredDefinition) -> Result<Stored> {
        Stored::open(
            core,
            self.revision_uuid,
            definition.destination.clone(),
            self.sealed_auth.as_deref(),
        )
    }

    /// The representation in the audit log. A URL or a header may hold a secret, and is left out.
    pub fn state(&self) -> Value {
        let definition = self.stored_definition().ok();
        let destination = definition
            .as_ref()
            .map(|definition| &definition.destination);
        let url = destination.and_then(|destination| destination.get("url")?.as_str());
        let url = url.and_then(|url| reqwest::Url::parse(url).ok());
        json!({
            "name": self.name,
            "description": self.description,
            "enabled": self.enabled,
            "revision": self.revision,
            "source": definition.as_ref().map(|definition| &definition.source),
            "delivery": definition.as_ref().map(|definition| &definition.delivery),
            "destinationKind": destination.and_then(|destination| destination.get("kind")),
            "destinationHost": url.as_ref().and_then(|url| url.host_str()),
            "status": self.status.of_pipeline(self.enabled),
        })
    }
}

/// A pipeline, and its signing secret if one was made.
pub struct Written {
    pub row: PipelineRow,
    pub secret: Option<SecretString>,
}

fn sealed(core: &Core, pipeline_uuid: Uuid, secret: &SecretString) -> SealedSecret {
    let text = secret.expose_secret();
    let sealed = core.sealer.seal(
        PIPELINE_SIGNING_SECRET,
        &pipeline_uuid.to_string(),
        text.as_bytes(),
    );
    let hidden = text.chars().count().saturating_sub(HINT_CHARS);
    SealedSecret {
        sealed,
        hint: text.chars().skip(hidden).collect(),
    }
}

fn new_revision(core: &Core, pipeline_uuid: Uuid, revision: i64, draft: &Draft) -> NewRevision {
    let revision_uuid = Uuid::now_v7();
    NewRevision {
        revision_uuid,
        pipeline_uuid,
        revision,
        definition: draft.definition().to_string(),
        sealed_auth: draft.destination.sealed_auth(core, revision_uuid),
    }
}

/// Creates a pipeline. Its signing secret cannot be read again.
pub async fn create(
    pipelines: &Pipelines,
    scope: &Scope,
    given: &Map<String, Value>,
) -> Result<Written> {
    let core = &pipelines.core;
    let draft = Draft::of(core, scope, "", given, None).await?;
    let now = core.clock.now();
    let tenant_uuid = scope.tenant_uuid();
    let pipeline_uuid = Uuid::now_v7();
    let mut tx = core.db.begin().await?;
    // Nobody else counts meanwhile.
    if !tenants::lock_exclusively(&mut tx, tenant_uuid).await? {
        return Err(Error::not_found("tenant"));
    }
    if store::count(&mut tx, scope).await? >= MAX_PIPELINES {
        let message =
            format!("a tenant may have at most {MAX_PIPELINES} pipelines; delete one first");
        return Err(Error::conflict("TOO_MANY_PIPELINES", message));
    }
    let secret = is_signed(&draft.destination.shown).then(new_signing_secret);
    let new = NewPipeline {
        pipeline_uuid,
        name: &draft.name,
        description: draft.description.as_deref(),
        enabled: draft.enabled,
        secret: secret
            .as_ref()
            .map(|secret| sealed(core, pipeline_uuid, secret)),
    };
    store::insert(&mut tx, tenant_uuid, new, now).await?;
    revisions::insert(&mut tx, new_revision(core, pipeline_uuid, 1, &draft), now).await?;
    let start_id = start_of(&mut tx, scope, draft.start_at).await?;
    let lane = NewLane {
        pipeline_uuid,
        tenant_uuid,
        kind: LIVE,
        status: LaneStatus::of_new(draft.enabled),
        start_id,
        until_id: None,
        dead_letters_only: false,
    };
    operators::insert(&mut tx, lane, now).await?;
    let row = get(&mut tx, scope, pipeline_uuid).await?;
    pipelines.wake_after(&mut tx);
    let audit = Audit::new(scope, "pipeline.create", pipeline_uuid, now);
    tx.commit(audit.changed(None, Some(row.state()))).await?;
    Ok(Written { row, secret })
}

/// The id after which a lane begins that starts there.
async fn start_of(conn: &mut Conn, scope: &Scope, start_at: StartAt) -> Result<i64> {
    let last_id = ingest::last_id(conn, (scope.tenant_uuid(), Kind::BleEvents)).await?;
    Ok(match start_at {
        StartAt::Now => last_id,
        StartAt::At(time) => time.as_micros().saturating_sub(1).clamp(0, last_id.max(0)),
    })
}

/// Replaces a pipeline. It goes on where it was.
pub async fn replace(
    pipelines: &Pipelines,
    scope: &Scope,
    pipeline_uuid: Uuid,
    given: &Map<String, Value>,
) -> Result<Written> {
    let core = &pipelines.core;
    let before = get(&mut core.db.read().await?, scope, pipeline_uuid).await?;
    let destination = before.stored_destination(core, &before.stored_definition()?)?;
    // Scripts are tried, which takes time: nothing is locked meanwhile.
    let draft = Draft::of(core, scope, "", given, Some(&destination)).await?;
    let now = core.clock.now();
    let (mut tx, current) = locked(core, scope, pipeline_uuid).await?;
    if current.revision != before.revision {
        let message = "somebody else changed this pipeline meanwhile; read it and try again";
        return Err(Error::conflict("CHANGED_MEANWHILE", message));
    }
    let is_new = is_signed(&draft.destination.shown) && current.secret_hint.is_none();
    let secret = is_new.then(new_signing_secret);
    let revision = current.revision + 1;
    revisions::insert(
        &mut tx,
        new_revision(core, pipeline_uuid, revision, &draft),
        now,
    )
    .await?;
    let new = NewPipeline {
        pipeline_uuid,
        name: &draft.name,
        description: draft.description.as_deref(),
        enabled: draft.enabled,
        secret: secret
            .as_ref()
            .map(|secret| sealed(core, pipeline_uuid, secret)),
    };
    // What is announced at the same receiver stays, and is announced anew.
    if !draft.destination.announces_at(&destination.shown) {
        withdrawal::enqueue(core, &mut tx, &current, None, now).await?;
    }
    store::update(&mut tx, new, revision, now).await?;
    revisions::forget_old(&mut tx, pipeline_uuid, revision).await?;
    match (current.enabled, draft.enabled) {
        (_, false) => operators::disable(&mut tx, pipeline_uuid).await?,
        (false, true) => operators::enable(&mut tx, pipeline_uuid).await?,
        // What was wrong may be mended.
        (true, true) => operators::try_now(&mut tx, pipeline_uuid).await?,
    }
    let row = get(&mut tx, scope, pipeline_uuid).await?;
    pipelines.wake_after(&mut tx);
    let audit = Audit::new(scope, "pipeline.update", pipeline_uuid, now);
    tx.commit(audit.changed(Some(current.state()), Some(row.state())))
        .await?;
    Ok(Written { row, secret })
}

/// Deletes a pipeline, with its dead letters. What it delivered stays in the list of deliveries.
pub async fn delete(pipelines: &Pipelines, scope: &Scope, pipeline_uuid: Uuid) -> Result<()> {
    let now = pipelines.core.clock.now();
    let (mut tx, before) = locked(&pipelines.core, scope, pipeline_uuid).await?;
    if let Some(bundle) = store::bound::published_bundle_with(&mut tx, pipeline_uuid).await? {
        let message =
            format!("the published bundle {bundle} has this pipeline; archive the bundle first");
        return Err(Error::conflict("PIPELINE_IN_USE", message));
    }
    withdrawal::enqueue(&pipelines.core, &mut tx, &before, None, now).await?;
    store::delete(&mut tx, pipeline_uuid).await?;
    pipelines.wake_after(&mut tx);
    let audit = Audit::new(scope, "pipeline.delete", pipeline_uuid, now);
    tx.commit(audit.changed(Some(before.state()), None)).await
}

/// Stops a pipeline where it is: it sends nothing, neither replays nor dead letters, until it is
/// resumed.
pub async fn pause(
    pipelines: &Pipelines,
    scope: &Scope,
    pipeline_uuid: Uuid,
) -> Result<PipelineRow> {
    let now = pipelines.core.clock.now();
    let (mut tx, before) = locked(&pipelines.core, scope, pipeline_uuid).await?;
    if !before.enabled {
        return Ok(before);
    }
    store::set_enabled(&mut tx, pipeline_uuid, false, now).await?;
    operators::disable(&mut tx, pipeline_uuid).await?;
    changed(pipelines, tx, scope, "pipeline.pause", before, now).await
}

/// Where a pipeline goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum From {
    Cursor,
    Now,
    At(Timestamp),
}

/// Runs a pipeline, whatever had stopped it.
pub async fn resume(
    pipelines: &Pipelines,
    scope: &Scope,
    pipeline_uuid: Uuid,
    from: From,
) -> Result<PipelineRow> {
    let now = pipelines.core.clock.now();
    let (mut tx, before) = locked(&pipelines.core, scope, pipeline_uuid).await?;
    let cursor = match from {
        From::Cursor => None,
        From::Now => Some(start_of(&mut tx, scope, StartAt::Now).await?),
        From::At(time) => Some(start_of(&mut tx, scope, StartAt::At(time)).await?),
    };
    if let Some(cursor) = cursor {
        operators::jump(&mut tx, pipeline_uuid, cursor).await?;
    }
    if !before.enabled {
        store::set_enabled(&mut tx, pipeline_uuid, true, now).await?;
    }
    operators::resume(&mut tx, pipeline_uuid).await?;
    changed(pipelines, tx, scope, "pipeline.resume", before, now).await
}

/// Ends a change of a pipeline's state.
async fn changed(
    pipelines: &Pipelines,
    mut tx: Tx,
    scope: &Scope,
    action: &'static str,
    before: PipelineRow,
    now: Timestamp,
) -> Result<PipelineRow> {
    let after = get(&mut tx, scope, before.pipeline_uuid).await?;
    pipelines.wake_after(&mut tx);
    let (cursor, to) = (
        Timestamp::from_micros(before.cursor),
        Timestamp::from_micros(after.cursor),
    );
    let audit = Audit::new(scope, action, before.pipeline_uuid, now);
    let audit = audit.changed(Some(before.state()), Some(after.state()));
    tx.commit(audit.with(json!({"cursorBefore": cursor, "cursorAfter": to})))
        .await?;
    Ok(after)
}

/// Makes another signing secret. Those before it sign as well, each for a day.
pub async fn rotate_secret(
    pipelines: &Pipelines,
    scope: &Scope,
    pipeline_uuid: Uuid,
) -> Result<Written> {
    let core = &pipelines.core;
    let now = core.clock.now();
    let (mut tx, before) = locked(core, scope, pipeline_uuid).await?;
    if !is_signed(&before.stored_definition()?.destination) {
        let message = "only messages to a destination of kind HTTP are signed";
        return Err(Error::conflict("NOT_SIGNED", message));
    }
    let (current, previous) = store::sealed_secrets(&mut tx, pipeline_uuid).await?;
    let (current, previous) = (current.as_deref(), previous.as_deref());
    let previous = secrets::replaced(core, pipeline_uuid, current, previous, now)?;
    let secret = new_signing_secret();
    store::set_secret(
        &mut tx,
        pipeline_uuid,
        sealed(core, pipeline_uuid, &secret),
        previous,
        now,
    )
    .await?;
    operators::interrupt(&mut tx, pipeline_uuid).await?;
    let row = get(&mut tx, scope, pipeline_uuid).await?;
    pipelines.wake_after(&mut tx);
    tx.commit(Audit::new(
        scope,
        "pipeline.rotate_secret",
        pipeline_uuid,
        now,
    ))
    .await?;
    Ok(Written {
        row,
        secret: Some(secret),
    })
}
