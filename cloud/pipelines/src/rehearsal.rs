//! What the tenant's pipelines would make of events that are simulated.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Instant;

use hub_base::error::Result;
use hub_core::Core;
use hub_devices::ble::RouteDecisionResponse;
use hub_identity::authz::Scope;
use hub_protocol::scan_config::RouteAction;
use hub_scripts::TRIAL_TIME;
use hub_steps::{Input, Outcome, State, StepTrace};
use serde_json::Value;
use uuid::Uuid;

use super::definition::{self, Compiled};
use super::test_run::shown;
use super::{bound, operations, store};

/// What a pipeline makes of an event.
pub struct Rehearsed {
    pub pipeline_uuid: Uuid,
    /// None if nothing is left.
    pub output: Option<Value>,
    pub steps: Vec<StepTrace>,
    /// Why it could not be tried.
    pub error: Option<String>,
}

/// A revision with a state of its own, or why it cannot be compiled.
type Loaded = Result<(Arc<Compiled>, State), String>;

/// Pipelines with a state of their own.
pub struct Rehearsal {
    pipelines: Vec<(Uuid, Loaded)>,
    ends_at: Instant,
}

/// Of one pipeline, or of all that are not paused.
pub async fn rehearsal(
    core: &Core,
    scope: &Scope,
    pipeline_uuid: Option<Uuid>,
) -> Result<Rehearsal> {
    let mut conn = core.db.read().await?;
    let rows = match pipeline_uuid {
        Some(pipeline_uuid) => vec![operations::get(&mut conn, scope, pipeline_uuid).await?],
        None => store::list(&mut conn, scope)
            .await?
            .into_iter()
            .filter(|row| row.enabled)
            .collect(),
    };
    drop(conn);
    let wanted: Vec<(Uuid, i64)> = rows
        .iter()
        .map(|row| (row.pipeline_uuid, row.revision))
        .collect();
    let mut loaded = definition::load(core, &wanted).await?;
    let with_state = |compiled: Arc<Compiled>| {
        let state = compiled.program.new_state();
        (compiled, state)
    };
    let pipelines = wanted
        .into_iter()
        .filter_map(|key| Some((key.0, loaded.remove(&key)?.map(with_state))));
    Ok(Rehearsal {
        pipelines: pipelines.collect(),
        ends_at: Instant::now() + TRIAL_TIME,
    })
}

impl Rehearsal {
    /// What the pipelines that take an event make of it.
    pub async fn run(
        &mut self,
        core: &Core,
        input: Input,
        route: &RouteDecisionResponse,
    ) -> Result<Vec<Rehearsed>> {
        let mut all = Vec::new();
        if route.action == RouteAction::Drop {
            return Ok(all);
        }
        for (pipeline_uuid, pipeline) in &mut self.pipelines {
            let pipeline_uuid = *pipeline_uuid;
            if route
                .pipeline_uuids
                .as_ref()
                .is_some_and(|named| !named.contains(&pipeline_uuid))
            {
                continue;
            }
            let failed = |error: String| Rehearsed {
                pipeline_uuid,
                output: None,
                steps: Vec::new(),
                error: Some(error),
            };
            let bound = match pipeline {
                Ok((compiled, _)) if compiled.source.is_limited_to_hubs() => {
                    let hubs = std::iter::once(input.hub_uuid);
                    bound::among(
                        &mut core.db.read().await?,
                        pipeline_uuid,
                        &compiled.source,
                        hubs,
                    )
                    .await?
                }
                _ => HashSet::new(),
            };
            match pipeline {
                Err(problem) => all.push(failed(problem.clone())),
                Ok((compiled, _))
                    if !compiled.source.selects(
                        input.hub_uuid,
                        &bound,
                        input.device_instance_id,
                        &input.event,
                    ) => {}
                Ok(_) if Instant::now() >= self.ends_at => {
                    all.push(failed("there was no time to try it".to_owned()))
                }
                Ok((compiled, state)) => {
                    let scripts = Some(&core.scripts);
                    let traced = compiled.program.trace_to_end(
                        state,
                        input.clone(),
                        scripts,
                        compiled.tenant_uuid,
                    );
                    let (steps, outcome) = traced.await;
                    let (output, error) = match outcome {
                        Outcome::Passed(outputs) => (shown(&outputs), None),
                        Outcome::Dropped { .. } => (None, None),
                        Outcome::Failed { problem, .. } | Outcome::NotRun { problem } => {
                            (None, Some(problem))
                        }
                    };
                    all.push(Rehearsed {
                        pipeline_uuid,
                        output,
                        steps,
                        error,
                    });
                }
            }
        }
        Ok(all)
    }
}
