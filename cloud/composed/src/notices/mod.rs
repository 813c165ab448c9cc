//! Notices: what happens to a tenant's hubs and devices that somebody should know. Tenants set by
//! type and channel which notices they want. A periodic scan looks for conditions; each condition
//! is an incident, of which there is one notice, however long it lasts.

mod attention;
mod conditions;
mod deliver;
mod dependency_track;
pub mod http;
mod incidents;
mod kinds;
mod scan;
mod settings_store;
mod store;
mod support;
mod words;

use std::collections::BTreeSet;

use hub_base::db::{Conn, Slice, Tx};
use hub_base::error::{Error, Result};
use hub_core::Core;
use hub_core::audit::Audit;
use hub_core::http::check::{Check, filled};
use hub_core::mail;
use hub_identity::authz::{Scope, UserScope};
use hub_people::{accounts, supplier_oauth, tenants};
use hub_protocol::{HubUuid, TenantUuid, Timestamp, UserUuid};
use serde_json::{Value, json};

use crate::end_users;

pub use attention::{AttentionItem, attention};
pub use conditions::{FailingPipeline, Trouble};
pub use deliver::{WEBHOOKS, WEBHOOKS_LANE, perform_webhooks};
pub use kinds::{Channel, NoticeType, Severity, Subject, Threshold};
pub use scan::scan;
use settings_store::Setting;
pub use store::forget_person;
use store::{Reader, Shown};

/// Longest target of a setting.
const MAX_TARGET_CHARS: usize = 2000;
/// One setting for each type and channel.
const MAX_SETTINGS: usize = NoticeType::ALL.len() * Channel::ALL.len();
/// The retention of notices.
const KEPT_SECS: i64 = 30 * 24 * 3600;
/// The time for which an ended incident is kept, so that an occurrence causes one notice.
const REMEMBERED_SECS: i64 = 24 * 3600;

/// A setting as it is asked for.
#[derive(Debug)]
pub struct Given {
    pub notice_type: NoticeType,
    pub channel: Channel,
    pub enabled: bool,
    pub target: Option<String>,
    pub threshold: Option<Threshold>,
}

/// Stores settings of the tenant, all of them or none. `field` names the members of each.
async fn put(
    core: &Core,
    scope: &Scope,
    given: Vec<Given>,
    field: impl Fn(usize, &str) -> String,
) -> Result<Vec<Setting>> {
    let mut check = Check::new();
    let mut seen = BTreeSet::new();
    for (index, given) in given.iter().enumerate() {
        let is_new = seen.insert((given.notice_type, given.channel));
        check.that(
            is_new,
            field(index, "type"),
            "must not be there twice with the same channel",
        );
        let threshold = given.threshold.as_ref();
        given.notice_type.check(
            &mut check,
            &field(index, "threshold"),
            threshold,
            given.enabled,
        );
        check_target(core, &mut check, given, &field(index, "target"));
    }
    check.done()?;
    if given
        .iter()
        .any(|given| given.enabled && given.channel == Channel::Email)
    {
        mail::require(core)?;
    }
    let now = core.clock.now();
    let mut tx = core.db.begin().await?;
    if !tenants::lock_exclusively(&mut tx, scope.tenant_uuid()).await? {
        return Err(Error::not_found("tenant"));
    }
    let before = settings_store::list(&mut tx, scope.tenant_uuid()).await?;
    let mut after = Vec::with_capacity(given.len());
    for given in &given {
        after.push(settings_store::put(&mut tx, scope.tenant_uuid(), given, now).await?);
    }
    let of = |settings: &[Setting]| -> Value {
        let touched = settings
            .iter()
            .filter(|setting| seen.contains(&(setting.notice_type, setting.channel)));
        touched.map(Setting::audited).collect()
    };
    let audit = Audit::new(scope, "notification_setting.set", scope.tenant_uuid(), now);
    tx.commit(audit.changed(Some(of(&before)), Some(of(&after))))
        .await?;
    Ok(after)
}

fn check_target(core: &Core, check: &mut Check, given: &Given, field: &str) {
    let target = filled(given.target.as_deref());
    check.line(field, target, MAX_TARGET_CHARS);
    match (given.channel, target) {
        (Channel::InApp, Some(_)) => check.that(
            false,
            field,
            "must be absent: the members of the tenant are notified",
        ),
        (Channel::Email, Some(email)) => {
            let is_email = accounts::checked_email(email).is_ok();
            check.that(is_email, field, "must be an e-mail address");
        }
        (Channel::Webhook, Some(url)) => {
            if let Err(message) = core.outgoing.check_url(url, supplier_oauth::schemes(core)) {
                check.that(false, field, message);
            }
        }
        (Channel::Webhook, None) => {
            check.that(!given.enabled, field, "is required: the URL to call")
        }
        (Channel::InApp | Channel::Email, None) => {}
    }
}

impl Setting {
    /// The representation in the audit log. Of a URL it has the origin: the rest may be a secret.
    fn audited(&self) -> Value {
        json!({
            "type": self.notice_type,
            "channel": self.channel,
            "enabled": self.enabled,
            "target": self.shown_target(false),
            "threshold": self.threshold(),
        })
    }

    /// The target as somebody sees it who may change it, or who may not.
    fn shown_target(&self, may_change: bool) -> Option<String> {
        let target = self.target.as_ref()?;
        match self.channel {
            Channel::Webhook if !may_change => Some(
                reqwest::Url::parse(target)
                    .map_or_else(|_| String::new(), |url| url.origin().ascii_serialization()),
            ),
            _ => Some(target.clone()),
        }
    }
}

/// The tenants whose notices a person sees.
async fn tenants_of(conn: &mut Conn, user_uuid: UserUuid) -> Result<Vec<TenantUuid>> {
    let memberships = tenants::memberships(conn, user_uuid).await?;
    Ok(memberships
        .into_iter()
        .map(|membership| membership.tenant_uuid)
        .collect())
}

/// The notices of the person, newest first, and how many there are.
async fn list(core: &Core, user: &UserScope, slice: Slice) -> Result<(Vec<Shown>, i64)> {
    let mut conn = core.db.read().await?;
    let tenants = &tenants_of(&mut conn, user.user_uuid()).await?;
    let person = &end_users::of_caller(core, &mut conn, user).await?;
    store::list(&mut conn, &Reader { person, tenants }, slice).await
}

/// Marks a notice as read by the person. Repeating it changes nothing.
async fn mark_read(core: &Core, user: &UserScope, notice_id: i64) -> Result<()> {
    let mut conn = core.db.read().await?;
    let tenants = &tenants_of(&mut conn, user.user_uuid()).await?;
    let person = &end_users::of_caller(core, &mut conn, user).await?;
    if !store::is_shown(&mut conn, &Reader { person, tenants }, notice_id).await? {
        return Err(Error::not_found("notification"));
    }
    drop(conn);
    let mut tx = core.db.begin().await?;
    store::mark_read(&mut tx, user, notice_id, core.clock.now()).await?;
    tx.commit_unaudited("what a person has read is nobody else's business")
        .await
}

/// Deletes the settings of a tenant that is being deleted.
pub async fn forget(tx: &mut Tx, scope: &Scope) -> Result<()> {
    settings_store::delete_all(tx, scope.tenant_uuid()).await?;
    incidents::delete_all(tx, scope.tenant_uuid()).await
}

/// Deletes old notices and incidents, up to `limit` of each, and returns whether there may be more.
pub async fn upkeep(core: &Core, now: Timestamp, limit: i64) -> Result<bool> {
    let mut tx = core.db.begin().await?;
    let notices = store::delete_before(&mut tx, now.plus_secs(-KEPT_SECS), limit).await?;
    tx.commit_unaudited("notices whose retention has passed")
        .await?;
    let mut tx = core.db.begin().await?;
    let incidents =
        incidents::delete_closed_before(&mut tx, now.plus_secs(-REMEMBERED_SECS), limit).await?;
    tx.commit_unaudited("incidents that are over").await?;
    Ok(notices.max(incidents) >= limit.unsigned_abs())
}

/// Deletes a tenant's notices of a hub.
pub async fn forget_hub(tx: &mut Tx, tenant_uuid: TenantUuid, hub_uuid: HubUuid) -> Result<()> {
    store::delete_about(tx, tenant_uuid, Some(hub_uuid), &hub_uuid.to_string()).await
}

/// Deletes a tenant's notices of a person.
pub async fn forget_mentions(
    tx: &mut Tx,
    tenant_uuid: TenantUuid,
    user_uuid: UserUuid,
) -> Result<()> {
    store::delete_about(tx, tenant_uuid, None, &user_uuid.to_string()).await
}
