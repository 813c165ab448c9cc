//! What a tenant states about a vulnerability, as OpenVEX has it: about all of its hubs, or about
//! those that run a release of an app.

use hub_base::error::{Error, Result};
use hub_core::Core;
use hub_core::audit::Audit;
use hub_core::http::check::{Check, filled};
use hub_fleet::releases;
use hub_identity::authz::Scope;
use hub_protocol::{ReleaseUuid, Timestamp, text_enum};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::store;

/// The action of the audit log.
pub const SET: &str = "vulnerability_statement.set";
/// Longest text of a statement.
pub const MAX_TEXT_CHARS: usize = 2000;

/// The status of a statement, in the words of OpenVEX.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum VexStatus {
    /// The vulnerability does no harm here.
    NotAffected,
    /// It does, and something is to be done.
    Affected,
    /// What was wrong is mended, though the version does not show it.
    Fixed,
    /// It is not known yet.
    UnderInvestigation,
}

text_enum!(VexStatus {
    NotAffected = "not_affected",
    Affected = "affected",
    Fixed = "fixed",
    UnderInvestigation = "under_investigation",
});

/// Why something is not affected, in the words of OpenVEX.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum VexJustification {
    /// The component is not there.
    ComponentNotPresent,
    /// The component is there without the vulnerable code.
    VulnerableCodeNotPresent,
    /// The vulnerable code is never run.
    VulnerableCodeNotInExecutePath,
    /// An attacker cannot reach the vulnerable code.
    VulnerableCodeCannotBeControlledByAdversary,
    /// Something else prevents the harm.
    InlineMitigationsAlreadyExist,
}

text_enum!(VexJustification {
    ComponentNotPresent = "component_not_present",
    VulnerableCodeNotPresent = "vulnerable_code_not_present",
    VulnerableCodeNotInExecutePath = "vulnerable_code_not_in_execute_path",
    VulnerableCodeCannotBeControlledByAdversary =
        "vulnerable_code_cannot_be_controlled_by_adversary",
    InlineMitigationsAlreadyExist = "inline_mitigations_already_exist",
});

/// A statement as it is stored.
#[derive(Clone, Debug)]
pub struct Statement {
    pub vulnerability_id: String,
    /// None where it is about all hubs.
    pub release_uuid: Option<ReleaseUuid>,
    pub status: VexStatus,
    pub justification: Option<VexJustification>,
    pub impact: Option<String>,
    pub action: Option<String>,
    /// Such as `API_KEY:7`.
    pub author: String,
    pub updated_at: Timestamp,
}

impl Statement {
    /// The representation in the audit log.
    fn state(&self) -> Value {
        json!({
            "releaseUuid": self.release_uuid,
            "status": self.status,
            "justification": self.justification,
            "impactStatement": self.impact,
            "actionStatement": self.action,
        })
    }
}

/// A statement as it is given.
#[derive(Debug)]
pub struct Given {
    pub release_uuid: Option<ReleaseUuid>,
    pub status: VexStatus,
    pub justification: Option<VexJustification>,
    pub impact: Option<String>,
    pub action: Option<String>,
}

/// Makes a statement in place of the one before it about the same.
pub async fn put(
    core: &Core,
    scope: &Scope,
    vulnerability_id: &str,
    given: Given,
) -> Result<Statement> {
    let text = |text: &Option<String>| filled(text.as_deref()).map(str::to_owned);
    let now = core.clock.now();
    let statement = Statement {
        vulnerability_id: vulnerability_id.to_owned(),
        release_uuid: given.release_uuid,
        status: given.status,
        justification: given.justification,
        impact: text(&given.impact),
        action: text(&given.action),
        author: scope.actor().key(),
        updated_at: now,
    };
    check(&statement)?;
    let mut tx = core.db.begin().await?;
    if !store::has(&mut tx, scope, vulnerability_id).await? {
        return Err(Error::not_found("vulnerability"));
    }
    if let Some(release_uuid) = statement.release_uuid {
        let release = releases::app_release_for_job(&mut tx, scope, release_uuid).await?;
        if release.is_none() {
            return Err(Error::field("releaseUuid", "is no release of your apps"));
        }
    }
    let before = store::statements::list(&mut tx, scope, &[vulnerability_id.to_owned()]).await?;
    let before = before
        .iter()
        .find(|before| before.release_uuid == statement.release_uuid);
    store::statements::put(&mut tx, scope, &statement).await?;
    let audit = Audit::new(scope, SET, vulnerability_id, now);
    let after = Some(statement.state());
    tx.commit(audit.changed(before.map(Statement::state), after))
        .await?;
    Ok(statement)
}

/// The rules of OpenVEX.
fn check(statement: &Statement) -> Result<()> {
    let mut check = Check::new();
    let impact = statement.impact.as_deref();
    let action = statement.action.as_deref();
    check.lines("impactStatement", impact, MAX_TEXT_CHARS);
    check.lines("actionStatement", action, MAX_TEXT_CHARS);
    let is_not_affected = statement.status == VexStatus::NotAffected;
    check.that(
        !is_not_affected || statement.justification.is_some() || impact.is_some(),
        "justification",
        "is required of `not_affected`, unless there is an `impactStatement`",
    );
    check.that(
        is_not_affected || statement.justification.is_none(),
        "justification",
        "must be absent: only `not_affected` has one",
    );
    check.that(
        statement.status != VexStatus::Affected || action.is_some(),
        "actionStatement",
        "is required of `affected`",
    );
    check.done()
}
