//! The draft of a report about a vulnerability: since when it is known, by when what is due, which
//! hubs are affected, and what was done. A draft of facts, and no legal advice.

mod csaf;
pub mod http;
mod markdown;
#[cfg(test)]
mod tests;

use hub_base::db::Conn;
use hub_base::error::Result;
use hub_core::Core;
use hub_fleet::releases;
use hub_identity::authz::Scope;
use hub_people::tenants;
use hub_protocol::{ReleaseUuid, Timestamp};

use crate::feeds::{self, Exploited};
use crate::vulnerabilities::{self, InCountry, Measure, Shown, Statement};

/// What every form of the report says of itself.
const DRAFT: &str = "This is a draft made from the data of the service, and no legal advice. \
    Check it before it is sent.";
const HOUR_SECS: i64 = 3600;
const DAY_SECS: i64 = 24 * HOUR_SECS;

/// What a report tells.
#[derive(Debug)]
struct Facts {
    tenant_uuid: String,
    tenant: String,
    shown: Shown,
    statements: Vec<Statement>,
    countries: Vec<InCountry>,
    measures: Vec<Done>,
    exploited: Option<Exploited>,
    clock: Clock,
    generated_at: Timestamp,
}

/// What was done on hubs, and with which release.
#[derive(Debug)]
struct Done {
    measure: Measure,
    /// The name of the app, of a release of one.
    app: Option<String>,
}

impl Done {
    /// What it is, without what others have named.
    fn what(&self) -> &'static str {
        match self.measure.job_type.as_str() {
            "APP_INSTALL" => "installation of an app",
            "APP_REMOVE" => "removal of an app",
            _ => "update of the agent",
        }
    }

    /// The app and the version, as far as there are any.
    fn release(&self) -> String {
        let version = self.measure.version.as_deref();
        let parts = [self.app.as_deref(), version].into_iter().flatten();
        parts.collect::<Vec<_>>().join(" ")
    }

    fn progress(&self) -> String {
        let Measure {
            hubs,
            succeeded,
            open,
            ..
        } = &self.measure;
        format!("succeeded on {succeeded} of {hubs} hubs, open on {open}")
    }
}

/// When what is due, counted from the time at which it could be known that what hubs run is
/// affected, and exploited if it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Clock {
    aware_at: Timestamp,
    early_warning_at: Timestamp,
    notification_at: Timestamp,
    final_report_at: Timestamp,
}

impl Clock {
    fn new(first_seen_at: Timestamp, exploited: Option<&Exploited>) -> Self {
        let listed_at = exploited
            .and_then(|exploited| format!("{}T00:00:00Z", exploited.added_on).parse().ok());
        let aware_at = listed_at.map_or(first_seen_at, |at: Timestamp| at.max(first_seen_at));
        Self {
            aware_at,
            early_warning_at: aware_at.plus_secs(24 * HOUR_SECS),
            notification_at: aware_at.plus_secs(72 * HOUR_SECS),
            final_report_at: aware_at.plus_secs(14 * DAY_SECS),
        }
    }
}

async fn facts(
    core: &Core,
    conn: &mut Conn,
    scope: &Scope,
    vulnerability_id: &str,
) -> Result<Facts> {
    let shown = vulnerabilities::one(conn, scope, vulnerability_id).await?;
    let exploited = feeds::exploited_one(conn, vulnerability_id).await?;
    let tenant = tenants::name(conn, scope.tenant_uuid()).await?;
    let measures = vulnerabilities::measures(conn, scope, &shown).await?;
    let of: Vec<ReleaseUuid> = measures
        .iter()
        .filter_map(|measure| measure.release_uuid)
        .collect();
    let apps = releases::named(conn, scope, &of).await?;
    let measures = measures.into_iter().map(|measure| {
        let app = measure.release_uuid.and_then(|release| apps.get(&release));
        Done {
            app: app.map(|one| one.app_name.clone()),
            measure,
        }
    });
    Ok(Facts {
        measures: measures.collect(),
        countries: vulnerabilities::countries(conn, scope, vulnerability_id).await?,
        tenant_uuid: scope.tenant_uuid().to_string(),
        tenant: tenant.unwrap_or_default(),
        statements: vulnerabilities::statements_about(conn, scope, vulnerability_id).await?,
        clock: Clock::new(shown.listed.first_seen_at, exploited.as_ref()),
        shown,
        exploited,
        generated_at: core.clock.now(),
    })
}
