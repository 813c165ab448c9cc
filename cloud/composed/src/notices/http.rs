//! `/tenant/notification-settings`, `/app/notifications` and `/me/notifications`.

use aide::axum::ApiRouter;
use aide::axum::routing::{get_with, post_with, put_with};
use axum::extract::State;
use hub_base::db::Slice;
use hub_base::error::{Error, Result};
use hub_core::Core;
use hub_core::http::answer::Answer;
use hub_core::http::extract::{Json, Path};
use hub_core::http::operation::{operation, operation_failing};
use hub_core::http::page::{Listed, Page};
use hub_identity::authz::{Authorized, Caller, EndUser, UserScope, permission as perm};
use hub_protocol::{HubUuid, TenantUuid, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::settings_store::{self, Setting};
use super::store::Shown;
use super::{Channel, Given, MAX_SETTINGS, MAX_TARGET_CHARS, NoticeType, Severity, Threshold};
use crate::Parts;

const TAG: &str = "tenant-notifications";

pub fn routes() -> ApiRouter<Parts> {
    ApiRouter::new()
        .api_route(
            "/tenant/notification-settings",
            get_with(
                settings,
                operation(
                    "notificationSettings.list",
                    TAG,
                    "The notification settings of the tenant, by type and channel",
                ),
            )
            .put_with(
                put,
                operation_failing(
                    &[503],
                    "notificationSettings.put",
                    TAG,
                    "Set one type and channel of notices",
                ),
            ),
        )
        .api_route(
            "/tenant/notification-settings/bulk",
            post_with(
                put_many,
                operation_failing(
                    &[503],
                    "notificationSettings.putMany",
                    TAG,
                    "Set several types and channels of notices, all or none",
                ),
            ),
        )
        .api_route(
            "/app/notifications",
            get_with(
                list,
                operation(
                    "appNotifications.list",
                    "app",
                    "Notices of the caller's tenants, newest first",
                ),
            ),
        )
        .api_route(
            "/app/notifications/{notificationId}/read",
            put_with(
                read,
                operation("appNotifications.read", "app", "Mark a notice as read"),
            ),
        )
        .api_route(
            "/me/notifications",
            get_with(
                list,
                operation(
                    "me.notifications",
                    "public",
                    "As `/app/notifications`, for any client",
                ),
            ),
        )
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NotificationPath {
    /// The id of the notice.
    pub notification_id: i64,
}

/// A setting of notices. Each type and channel has one.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UpsertNotificationSettingRequest {
    /// The type of the notices.
    #[serde(rename = "type")]
    notice_type: NoticeType,
    /// The channel.
    channel: Channel,
    /// Whether notices are sent.
    enabled: bool,
    /// The recipient: for EMAIL an address, or all who manage the tenant when absent; for WEBHOOK
    /// the URL to call; for IN_APP none.
    #[schemars(length(max = MAX_TARGET_CHARS), regex(pattern = hub_protocol::patterns::LINE))]
    target: Option<String>,
    /// The threshold; each type has a default, except DEVICE_THRESHOLD.
    threshold: Option<Threshold>,
}

impl From<UpsertNotificationSettingRequest> for Given {
    fn from(request: UpsertNotificationSettingRequest) -> Self {
        let UpsertNotificationSettingRequest {
            notice_type,
            channel,
            enabled,
            target,
            threshold,
        } = request;
        Self {
            notice_type,
            channel,
            enabled,
            target,
            threshold,
        }
    }
}

/// A setting of notices.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NotificationSettingResponse {
    /// The type of the notices.
    #[serde(rename = "type")]
    notice_type: NoticeType,
    /// The channel.
    channel: Channel,
    /// Whether notices are sent.
    enabled: bool,
    /// The recipient. Users who may not change the setting see the origin of a URL alone.
    target: Option<String>,
    /// The threshold; null for the default.
    threshold: Option<Threshold>,
    /// When it was last changed; null for what holds because nobody has set it.
    updated_at: Option<Timestamp>,
}

impl NotificationSettingResponse {
    fn new(setting: &Setting, caller: &Caller) -> Self {
        Self {
            notice_type: setting.notice_type,
            channel: setting.channel,
            enabled: setting.enabled,
            target: setting.shown_target(caller.may::<perm::NotificationsWrite>()),
            threshold: setting.threshold(),
            updated_at: setting.updated_at,
        }
    }
}

/// A notice.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NotificationResponse {
    /// The id of the notice.
    #[schemars(range(min = 1))]
    notification_id: i64,
    /// The type of the notice.
    #[serde(rename = "type")]
    notice_type: NoticeType,
    /// The event in a few words.
    title: String,
    /// Details; empty without any.
    body: String,
    /// The severity.
    severity: Severity,
    /// The tenant.
    tenant_uuid: Option<TenantUuid>,
    /// The hub it is about; of several hubs null.
    hub_uuid: Option<HubUuid>,
    /// The device it is about.
    device_instance_id: Option<i64>,
    /// When the caller read it; null while they have not.
    read_at: Option<Timestamp>,
    /// When it was made.
    created_at: Timestamp,
}

impl From<Shown> for NotificationResponse {
    fn from(shown: Shown) -> Self {
        Self {
            notification_id: shown.notice_id,
            notice_type: shown.notice_type,
            title: shown.title,
            body: shown.body,
            severity: shown.severity,
            tenant_uuid: Some(shown.tenant_uuid),
            hub_uuid: shown.hub_uuid,
            device_instance_id: shown.device_instance_id,
            read_at: shown.read_at,
            created_at: shown.created_at,
        }
    }
}

async fn settings(
    auth: Authorized<perm::NotificationsRead>,
    State(core): State<Core>,
) -> Result<Answer<Vec<NotificationSettingResponse>>> {
    let settings =
        settings_store::list(&mut core.db.read().await?, auth.scope.tenant_uuid()).await?;
    Ok(Answer(
        settings
            .iter()
            .map(|setting| NotificationSettingResponse::new(setting, &auth.caller))
            .collect(),
    ))
}

async fn put(
    auth: Authorized<perm::NotificationsWrite>,
    State(core): State<Core>,
    Json(request): Json<UpsertNotificationSettingRequest>,
) -> Result<Answer<NotificationSettingResponse>> {
    let settings = super::put(&core, &auth.scope, vec![request.into()], |_, name| {
        name.to_owned()
    })
    .await?;
    let setting = settings
        .first()
        .ok_or_else(|| Error::internal("no setting was stored"))?;
    Ok(Answer(NotificationSettingResponse::new(
        setting,
        &auth.caller,
    )))
}

async fn put_many(
    auth: Authorized<perm::NotificationsWrite>,
    State(core): State<Core>,
    Json(requests): Json<Vec<UpsertNotificationSettingRequest>>,
) -> Result<Answer<Vec<NotificationSettingResponse>>> {
    match requests.len() {
        0 => return Err(Error::field("body", "must have at least one setting")),
        count if count > MAX_SETTINGS => {
            return Err(Error::field(
                "body",
                format!("must have at most {MAX_SETTINGS} settings"),
            ));
        }
        _ => {}
    }
    let given = requests.into_iter().map(Given::from).collect();
    let settings = super::put(&core, &auth.scope, given, |index, name| {
        format!("[{index}].{name}")
    })
    .await?;
    Ok(Answer(
        settings
            .iter()
            .map(|setting| NotificationSettingResponse::new(setting, &auth.caller))
            .collect(),
    ))
}

async fn list(
    EndUser { scope, .. }: EndUser,
    State(core): State<Core>,
    page: Page,
) -> Result<Listed<NotificationResponse>> {
    let (notices, total) = super::list(&core, &scope, page.slice()).await?;
    Ok(page.listed(
        notices
            .into_iter()
            .map(NotificationResponse::from)
            .collect(),
        total,
    ))
}

async fn read(
    EndUser { scope, .. }: EndUser,
    State(core): State<Core>,
    Path(NotificationPath { notification_id }): Path<NotificationPath>,
) -> Result<Answer<()>> {
    super::mark_read(&core, &scope, notification_id).await?;
    Ok(Answer(()))
}

/// Notices that a person sees, newest first.
pub async fn exported(core: &Core, scope: &UserScope, slice: Slice) -> Result<Vec<impl Serialize>> {
    let (notices, _) = super::list(core, scope, slice).await?;
    Ok(notices
        .into_iter()
        .map(NotificationResponse::from)
        .collect::<Vec<_>>())
}
