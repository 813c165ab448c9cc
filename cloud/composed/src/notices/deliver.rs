//! Notices on their way: mail, one for all that has happened since the last, and calls of webhooks,
//! which are tried a few times.

use std::collections::BTreeMap;

use hub_base::db::Tx;
use hub_base::error::{Error, Result};
use hub_core::Core;
use hub_core::mail::{self, MailContent, Part};
use hub_core::tasks::{self, Done, NewTask, Task};
use hub_identity::authz::Scope;
use hub_identity::authz::permission::MANAGE;
use hub_people::supplier_oauth::{self, Message};
use hub_people::tenants;
use hub_protocol::{TenantUuid, Timestamp};
use serde_json::{Value, json};

use super::http::NotificationResponse;
use super::settings_store;
use super::store::{self, Unsent};
use super::{Channel, NoticeType};

/// The lane of webhook calls.
pub const WEBHOOKS_LANE: &str = "notice_webhooks";
/// The kind of task that calls the webhooks of one tenant.
pub const WEBHOOKS: &str = "notices.webhooks";

/// A tenant gets no mails that follow each other faster.
const MAIL_EVERY_SECS: i64 = 10 * 60;
/// Notices in one mail, and mails at a time.
const MAX_IN_MAIL: i64 = 100;
const MAX_RECIPIENTS: usize = 50;
/// The age at which an unsent mail is dropped.
const MAIL_USEFUL_SECS: i64 = 24 * 3600;
/// Tries of a webhook, after which a notice is given up.
const TRIES: i64 = 6;
/// Notices that one run of the task sends, one after the other.
const AT_ONCE: i64 = 5;
/// The lease of a delivery, longer than these calls can take.
const LEASE_SECS: i64 = 120;
const FIRST_DELAY_SECS: i64 = 10;
const LONGEST_DELAY_SECS: i64 = 3600;

/// Mails the tenant's new notices, unless the last mail is too recent.
pub async fn send_mail(core: &Core, tenant_uuid: TenantUuid, now: Timestamp) -> Result<()> {
    let mut conn = core.db.read().await?;
    let ids = store::due(&mut conn, tenant_uuid, Channel::Email, now, MAX_IN_MAIL).await?;
    if ids.is_empty() {
        return Ok(());
    }
    let last = store::last_mail(&mut conn, tenant_uuid).await?;
    if last.is_some_and(|last| now.as_secs() - last.as_secs() < MAIL_EVERY_SECS) {
        return Ok(());
    }
    let Some(name) = tenants::name(&mut conn, tenant_uuid).await? else {
        return Ok(());
    };
    let settings = settings_store::list(&mut conn, tenant_uuid).await?;
    let members = members_to_tell(&mut conn, tenant_uuid).await?;
    drop(conn);
    let mut tx = core.db.begin().await?;
    let unsent = store::begin(&mut tx, &ids, now, now.plus_secs(LEASE_SECS)).await?;
    let mut by_recipient: BTreeMap<&str, Vec<&Unsent>> = BTreeMap::new();
    for notice in &unsent {
        let of = |setting: &&settings_store::Setting| {
            (setting.notice_type, setting.channel) == (notice.shown.notice_type, Channel::Email)
        };
        let setting = settings.iter().find(of).filter(|setting| setting.enabled);
        match setting.map(|setting| setting.target.as_deref()) {
            Some(Some(target)) => by_recipient.entry(target).or_default().push(notice),
            Some(None) => {
                for email in &members {
                    by_recipient.entry(email).or_default().push(notice);
                }
            }
            // The channel was switched off meanwhile.
            None => {}
        }
    }
    if core.config.mail.is_some() {
        for (email, notices) in by_recipient.into_iter().take(MAX_RECIPIENTS) {
            let content = content(&name, &notices);
            mail::queue(
                core,
                &mut tx,
                email,
                content,
                now.plus_secs(MAIL_USEFUL_SECS),
                now,
            )
            .await?;
        }
    }
    for notice in &unsent {
        store::settle(&mut tx, notice.shown.notice_id, Some(now), None, None).await?;
    }
    tx.commit_unaudited("notices tell of changes, and are none")
        .await
}

/// The addresses of those who manage the tenant.
async fn members_to_tell(
    conn: &mut hub_base::db::Conn,
    tenant_uuid: TenantUuid,
) -> Result<Vec<String>> {
    let members = tenants::members(conn, &Scope::system("notices", tenant_uuid)).await?;
    let managing = members
        .into_iter()
        .filter(|member| member.role.allows(MANAGE));
    Ok(managing
        .filter_map(|member| member.email)
        .take(MAX_RECIPIENTS)
        .collect())
}

fn content(tenant: &str, notices: &[&Unsent]) -> MailContent {
    let subject = match notices {
        [one] => subject_of(one.shown.notice_type).to_owned(),
        many => format!("{} notices about your hubs and devices", many.len()),
    };
    let mut parts = vec![Part::Text("New notices about the tenant:".to_owned())];
    parts.push(Part::Quote(tenant.to_owned()));
    for notice in notices {
        let shown = &notice.shown;
        let at = mail::format_time(shown.created_at);
        parts.push(Part::Quote(format!(
            "{} ({at}): {}",
            shown.title, shown.body
        )));
    }
    let note = "You receive this e-mail because your address is in the notification settings of \
                the tenant, or because you manage the tenant. A member of the tenant can change \
                the settings.";
    parts.push(Part::Note(note.to_owned()));
    MailContent { subject, parts }
}

/// The subject contains no text of others.
const fn subject_of(notice_type: NoticeType) -> &'static str {
    match notice_type {
        NoticeType::HubOffline => "A hub is offline",
        NoticeType::HubOnline => "A hub is back online",
        NoticeType::HubBlind => "A hub receives no advertisements",
        NoticeType::JobFailed => "A job of a hub failed",
        NoticeType::RolloutHalted => "A rollout was halted",
        NoticeType::DeviceSilent => "A device is silent",
        NoticeType::DeviceBatteryLow => "The battery of a device is low",
        NoticeType::DeviceThreshold => "A value of a device is out of range",
        NoticeType::PipelineFailing => "A pipeline is failing",
        NoticeType::ConsentWithdrawn => "A user withdrew their consent",
        NoticeType::CertificateExpiring => "The certificate of a hub expires soon",
        NoticeType::HubCloned => "A hub may be cloned",
        NoticeType::HubFlooding => "A hub exceeds its upload limit",
        NoticeType::HubCredentialsExpiring => "The credentials of a hub are expiring",
        NoticeType::ApiKeyExpiring => "An API key expires soon",
        NoticeType::VulnerabilityFound => "A vulnerability was found in what hubs run",
        NoticeType::SupportEnding => "The support of a product ends",
        NoticeType::DependencyTrackFailing => "A server of Dependency-Track is failing",
    }
}

/// Has the tenant's webhooks called after the transaction has committed.
pub async fn call_webhooks(
    core: &Core,
    tx: &mut Tx,
    tenant_uuid: TenantUuid,
    now: Timestamp,
) -> Result<()> {
    let task = NewTask {
        lane: WEBHOOKS_LANE,
        kind: WEBHOOKS,
        payload: json!({"tenantUuid": tenant_uuid}),
        due_at: now,
        dedup_key: Some(format!("{WEBHOOKS}:{tenant_uuid}")),
    };
    tasks::enqueue(core, tx, task, now).await
}

/// Calls the webhooks of one tenant with what is due.
pub async fn perform_webhooks(core: &Core, task: &Task) -> Result<Done> {
    let payload = &task.payload;
    let tenant_uuid = payload
        .get("tenantUuid")
        .and_then(Value::as_str)
        .and_then(|uuid| uuid.parse().ok());
    let tenant_uuid: TenantUuid =
        tenant_uuid.ok_or_else(|| Error::internal("the task names no tenant"))?;
    let now = core.clock.now();
    let mut conn = core.db.read().await?;
    let ids = store::due(&mut conn, tenant_uuid, Channel::Webhook, now, AT_ONCE).await?;
    let secret = supplier_oauth::registration_target(core, &mut conn, tenant_uuid)
        .await?
        .and_then(|target| target.secret);
    let is_deleted = tenants::name(&mut conn, tenant_uuid).await?.is_none();
    drop(conn);
    let mut has_failed = false;
    if !ids.is_empty() {
        let mut tx = core.db.begin().await?;
        let unsent = store::begin(&mut tx, &ids, now, now.plus_secs(LEASE_SECS)).await?;
        tx.commit_unaudited("a claim of background work").await?;
        for notice in unsent {
            let id = notice.shown.notice_id;
            let target = match is_deleted {
                true => None,
                false => target_of(core, tenant_uuid, notice.shown.notice_type).await?,
            };
            let Some(url) = target else {
                settle(core, id, None, None, Some("the setting was switched off")).await?;
                continue;
            };
            let attempts = notice.attempts;
            let message = Message {
                event_type: "notice",
                id: notice.notice_uuid,
                body: body(notice)?,
            };
            let sent = supplier_oauth::post(core, &url, secret.as_ref(), &message).await;
            let now = core.clock.now();
            match sent {
                Ok(()) => settle(core, id, Some(now), None, None).await?,
                Err(refused) => {
                    has_failed = true;
                    let delay = delay_secs(attempts, refused.retry_after_secs);
                    let again = Some(now.plus_secs(delay)).filter(|_| attempts < TRIES);
                    settle(core, id, None, again, Some(&refused.message)).await?;
                }
            }
        }
    }
    let due = store::next_due(&mut core.db.read().await?, tenant_uuid, Channel::Webhook).await?;
    // A receiver that failed gets no request for a moment, also if more is due.
    let rested = core
        .clock
        .now()
        .plus_secs(if has_failed { FIRST_DELAY_SECS } else { 0 });
    Ok(due.map_or(Done::Finished, |due| Done::RunAt(due.max(rested))))
}

/// The URL that the setting names now.
async fn target_of(
    core: &Core,
    tenant_uuid: TenantUuid,
    notice_type: NoticeType,
) -> Result<Option<String>> {
    let mut conn = core.db.read().await?;
    let setting =
        settings_store::find(&mut conn, tenant_uuid, notice_type, Channel::Webhook).await?;
    Ok(setting
        .filter(|setting| setting.enabled)
        .and_then(|setting| setting.target))
}

fn body(notice: Unsent) -> Result<String> {
    let mut body =
        serde_json::to_value(NotificationResponse::from(notice.shown)).map_err(Error::internal)?;
    // Receivers have no read state.
    if let Some(members) = body.as_object_mut() {
        members.remove("readAt");
        members.insert("eventType".to_owned(), Value::from("notice"));
    }
    serde_json::to_string(&body).map_err(Error::internal)
}

async fn settle(
    core: &Core,
    notice_id: i64,
    sent_at: Option<Timestamp>,
    again_at: Option<Timestamp>,
    error: Option<&str>,
) -> Result<()> {
    let mut tx = core.db.begin().await?;
    store::settle(&mut tx, notice_id, sent_at, again_at, error).await?;
    tx.commit_unaudited("the row holds its own outcome").await
}

/// Exponential backoff with jitter, and no sooner than the receiver asks for.
fn delay_secs(attempts: i64, retry_after_secs: Option<i64>) -> i64 {
    let doubled = attempts.saturating_sub(1).clamp(0, 5) * 2;
    let base = (FIRST_DELAY_SECS << doubled).min(LONGEST_DELAY_SECS);
    let jitter = i64::from(u32::from_le_bytes(hub_base::sealing::random())) % (base / 5 + 1);
    (base + jitter)
        .max(retry_after_secs.unwrap_or_default())
        .min(LONGEST_DELAY_SECS)
}
