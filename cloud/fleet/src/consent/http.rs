//! `/tenant/consent-settings`, `/tenant/consent-records`, `/app/consent` and
//! `/app/consent-settings`.

use aide::axum::ApiRouter;
use aide::axum::routing::{delete_with, get_with};
use axum::extract::State;
use hub_base::db::Conn;
use hub_base::error::{Error, Result};
use hub_core::Core;
use hub_core::http::answer::Answer;
use hub_core::http::check::{Check, filled, is_web_address};
use hub_core::http::extract::{Json, Path, Query};
use hub_core::http::operation::{operation, operation_failing};
use hub_core::http::page::{Listed, Page};
use hub_identity::authz::{Authorized, EndUser, permission as perm};
use hub_people::supplier_links::http::SupplierPath;
use hub_protocol::{HubUuid, TenantUuid, Timestamp, UserUuid};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::store::{self, RecordRow, SettingRow};
use super::{ConsentStatus, Grant, MAX_RETENTION_DAYS, NewSetting, Purpose};
use crate::Parts;
use crate::hubs::Hubs;

const TAG: &str = "tenant-consent";
const MAX_VERSION_CHARS: usize = 64;
const MAX_TEXT_BYTES: usize = 64 * 1024;
const MAX_URL_CHARS: usize = 2000;
const MAX_TITLE_CHARS: usize = 200;
const MAX_KEY_CHARS: usize = 64;
const MAX_PURPOSES: usize = 64;

pub fn routes() -> ApiRouter<Parts> {
    ApiRouter::new()
        .api_route(
            "/tenant/consent-settings",
            get_with(
                setting,
                operation_failing(
                    &[404],
                    "consentSettings.get",
                    TAG,
                    "What users are asked to consent to",
                ),
            )
            .post_with(
                put_setting,
                operation_failing(&[409], "consentSettings.put", TAG, "Put a version in force"),
            ),
        )
        .api_route(
            "/tenant/consent-records",
            get_with(
                records,
                operation(
                    "consentRecords.list",
                    TAG,
                    "What users have granted, newest first",
                ),
            ),
        )
        .api_route(
            "/app/consent-settings/{supplierUuid}",
            get_with(
                setting_of_supplier,
                operation(
                    "appConsentSettings.get",
                    "app",
                    "What a supplier asks the caller to consent to",
                ),
            ),
        )
        .api_route(
            "/app/consent",
            get_with(
                own,
                operation(
                    "appConsent.list",
                    "app",
                    "What the caller has granted, newest first",
                ),
            )
            .post_with(
                grant,
                operation_failing(
                    &[404, 409],
                    "appConsent.grant",
                    "app",
                    "Consent to what a supplier asks for",
                ),
            ),
        )
        .api_route(
            "/app/consent/{consentId}",
            delete_with(
                withdraw,
                operation("appConsent.withdraw", "app", "Withdraw a consent"),
            ),
        )
        .api_route(
            "/app/consent/{consentId}/retention",
            get_with(
                retention,
                operation(
                    "appConsent.getRetention",
                    "app",
                    "For how long events are kept",
                ),
            )
            .put_with(
                set_retention,
                operation_failing(
                    &[409],
                    "appConsent.putRetention",
                    "app",
                    "Set for how long events are kept",
                ),
            ),
        )
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConsentPath {
    /// The id of the consent.
    pub consent_id: i64,
}

/// A version of the consent text. A version that a user has granted keeps its text, its URL and its
/// purposes.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConsentSettingRequest {
    /// The name of the version. It is in force from now on; consents to others are outdated.
    #[schemars(length(min = 1, max = MAX_VERSION_CHARS), regex(pattern = hub_protocol::patterns::FILLED_LINE))]
    version: String,
    /// The text, of 64 KiB at most.
    #[schemars(length(min = 1, max = MAX_TEXT_BYTES), regex(pattern = hub_protocol::patterns::LINES))]
    text: String,
    /// The URL of further information, with `https` or `http`.
    #[schemars(length(max = MAX_URL_CHARS), regex(pattern = hub_protocol::patterns::LINE))]
    url: Option<String>,
    /// The purposes of the use of data.
    #[schemars(length(min = 1, max = MAX_PURPOSES))]
    purposes: Vec<Purpose>,
    /// Whether users may claim hubs by themselves; false when absent.
    self_pairing: Option<bool>,
    /// Whether hubs of users who have not granted the required purposes report no BLE events.
    enforce: bool,
}

impl ConsentSettingRequest {
    fn checked(self) -> Result<NewSetting> {
        let mut check = Check::new();
        check.required("version", &self.version, MAX_VERSION_CHARS);
        check.that(!self.text.trim().is_empty(), "text", "must not be empty");
        check.that(
            self.text.len() <= MAX_TEXT_BYTES,
            "text",
            "must have at most 64 KiB",
        );
        check.lines("text", Some(&self.text), MAX_TEXT_BYTES);
        check.line("url", self.url.as_deref(), MAX_URL_CHARS);
        let url = filled(self.url.as_deref());
        check.that(
            url.is_none_or(is_web_address),
            "url",
            "must be a URL with https or http",
        );
        let count = self.purposes.len();
        check.that(
            (1..=MAX_PURPOSES).contains(&count),
            "purposes",
            format!("must have 1 to {MAX_PURPOSES} items"),
        );
        for (index, purpose) in self.purposes.iter().enumerate().take(MAX_PURPOSES) {
            let field = |name: &str| format!("purposes[{index}].{name}");
            let message = "must be 1 to 64 letters, digits, dots, dashes and underscores";
            check.that(is_key(&purpose.key), field("key"), message);
            let is_first = !self
                .purposes
                .iter()
                .take(index)
                .any(|other| other.key == purpose.key);
            check.that(is_first, field("key"), "repeats the key of another purpose");
            check.required(&field("title"), &purpose.title, MAX_TITLE_CHARS);
            let days = purpose
                .default_retention_days
                .is_none_or(|days| (1..=MAX_RETENTION_DAYS).contains(&days));
            check.that(
                days,
                field("defaultRetentionDays"),
                format!("must be from 1 to {MAX_RETENTION_DAYS}"),
            );
        }
        let can_enforce = !self.enforce || self.purposes.iter().any(|purpose| purpose.required);
        check.that(can_enforce, "enforce", "needs a purpose that is required");
        check.done()?;
        Ok(NewSetting {
            url: url.map(str::to_owned),
            version: self.version.trim().to_owned(),
            text: self.text,
            purposes: self.purposes,
            self_pairing: self.self_pairing.unwrap_or(false),
            enforce: self.enforce,
        })
    }
}

fn is_key(text: &str) -> bool {
    let is_char = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    (1..=MAX_KEY_CHARS).contains(&text.len()) && text.bytes().all(is_char)
}

/// A version of the consent text.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConsentSettingResponse {
    /// The supplier.
    supplier_uuid: TenantUuid,
    /// The name of the version.
    version: String,
    /// The text.
    text: String,
    /// The URL of further information.
    url: Option<String>,
    /// The purposes of the use of data.
    purposes: Vec<Purpose>,
    /// Whether users may claim hubs by themselves.
    self_pairing: bool,
    /// Whether hubs of users who have not granted the required purposes report no BLE events.
    enforce: bool,
    /// When the version was created.
    created_at: Timestamp,
    /// When it was last changed or put in force.
    updated_at: Timestamp,
}

impl ConsentSettingResponse {
    fn new(supplier_uuid: TenantUuid, row: SettingRow) -> Result<Self> {
        Ok(Self {
            purposes: row.purposes()?,
            supplier_uuid,
            version: row.version,
            text: row.text,
            url: row.url,
            self_pairing: row.self_pairing,
            enforce: row.enforce,
            created_at: row.created_at,
            updated_at: row.updated_at,
        })
    }
}

/// A grant of consent.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConsentGrantRequest {
    /// The supplier.
    supplier_uuid: TenantUuid,
    /// The version that the person has read, which has to be the one in force.
    #[schemars(length(max = MAX_VERSION_CHARS))]
    version: String,
    /// The keys of the purposes that the person grants; all that are required among them.
    #[schemars(length(max = MAX_PURPOSES))]
    purposes: Vec<String>,
    /// The hub of the person for which it is; for all of their hubs of this supplier when absent.
    hub_uuid: Option<HubUuid>,
}

/// A person's consent.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConsentRecordResponse {
    /// The id of the consent.
    #[schemars(range(min = 1))]
    consent_id: i64,
    /// The supplier.
    supplier_uuid: TenantUuid,
    /// The person.
    user_uuid: UserUuid,
    /// The version.
    version: String,
    /// The keys of the purposes.
    purposes: Vec<String>,
    /// The hub for which it is; null for all of the person's hubs of this supplier.
    hub_uuid: Option<HubUuid>,
    /// Whether it is in force.
    status: ConsentStatus,
    /// When it was granted.
    granted_at: Timestamp,
    /// When it was withdrawn.
    withdrawn_at: Option<Timestamp>,
    /// A JWS of all of it as it was granted, signed with a key of `/.well-known/jwks.json`.
    receipt: String,
    /// The number of BLE events deleted by the person's retention.
    #[schemars(range(min = 0))]
    deleted_events: i64,
}

impl ConsentRecordResponse {
    fn new(row: RecordRow) -> Result<Self> {
        Ok(Self {
            purposes: row.purposes()?,
            status: row.status(),
            consent_id: row.consent_id,
            supplier_uuid: row.tenant_uuid,
            user_uuid: row.user_uuid,
            version: row.version,
            hub_uuid: row.hub_uuid,
            granted_at: row.granted_at,
            withdrawn_at: row.withdrawn_at,
            receipt: row.receipt,
            deleted_events: row.deleted_events,
        })
    }
}

/// The retention that a person sets for their events.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RetentionUpdateRequest {
    /// Days.
    #[schemars(range(min = 1, max = MAX_RETENTION_DAYS))]
    retention_days: i64,
}

/// The retention of a person's events.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RetentionSettingResponse {
    /// The id of the consent.
    #[schemars(range(min = 1))]
    consent_id: i64,
    /// Days; null for the supplier's own retention.
    retention_days: Option<i64>,
    /// The beginning of its validity.
    effective_from: Option<Timestamp>,
    /// The number of BLE events deleted by it.
    #[schemars(range(min = 0))]
    deleted_events: i64,
}

impl From<RecordRow> for RetentionSettingResponse {
    fn from(row: RecordRow) -> Self {
        Self {
            consent_id: row.consent_id,
            retention_days: row.retention_days,
            effective_from: row.retention_from,
            deleted_events: row.deleted_events,
        }
    }
}

/// The requested version.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct SettingQuery {
    /// The version; the one in force when absent.
    #[schemars(length(max = MAX_VERSION_CHARS), regex(pattern = hub_protocol::patterns::LINE))]
    version: Option<String>,
    /// The supplier, which is the tenant of the request: another one is refused.
    #[expect(
        dead_code,
        reason = "`Authorized` reads it, for every operation of a tenant"
    )]
    supplier_uuid: Option<TenantUuid>,
}

/// The supplier of the records.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct RecordsQuery {
    /// The supplier, which is the tenant of the request: another one is refused.
    #[expect(
        dead_code,
        reason = "`Authorized` reads it, for every operation of a tenant"
    )]
    supplier_uuid: Option<TenantUuid>,
}

async fn setting(
    auth: Authorized<perm::ConsentRead>,
    State(core): State<Core>,
    Query(query): Query<SettingQuery>,
) -> Result<Answer<ConsentSettingResponse>> {
    let mut check = Check::new();
    check.line("version", query.version.as_deref(), MAX_VERSION_CHARS);
    check.done()?;
    let tenant_uuid = auth.scope.tenant_uuid();
    let version = filled(query.version.as_deref());
    let row = super::setting(&mut core.db.read().await?, tenant_uuid, version).await?;
    Ok(Answer(ConsentSettingResponse::new(tenant_uuid, row)?))
}

async fn put_setting(
    auth: Authorized<perm::ConsentManage>,
    State(hubs): State<Hubs>,
    Json(request): Json<ConsentSettingRequest>,
) -> Result<Answer<ConsentSettingResponse>> {
    let row = super::put_setting(&hubs, &auth.scope, request.checked()?).await?;
    Ok(Answer(ConsentSettingResponse::new(
        auth.scope.tenant_uuid(),
        row,
    )?))
}

async fn records(
    auth: Authorized<perm::ConsentRecordsRead>,
    State(core): State<Core>,
    page: Page,
    _: Query<RecordsQuery>,
) -> Result<Listed<ConsentRecordResponse>> {
    let (rows, total) = store::list(&mut core.db.read().await?, &auth.scope, page.slice()).await?;
    Ok(page.listed(
        rows.into_iter()
            .map(ConsentRecordResponse::new)
            .collect::<Result<_>>()?,
        total,
    ))
}

async fn setting_of_supplier(
    _: EndUser,
    State(core): State<Core>,
    Path(SupplierPath { supplier_uuid }): Path<SupplierPath>,
) -> Result<Answer<ConsentSettingResponse>> {
    let row = super::setting(&mut core.db.read().await?, supplier_uuid, None).await?;
    Ok(Answer(ConsentSettingResponse::new(supplier_uuid, row)?))
}

async fn own(
    EndUser { scope, .. }: EndUser,
    State(core): State<Core>,
    page: Page,
) -> Result<Listed<ConsentRecordResponse>> {
    let (rows, total) =
        store::list_own(&mut core.db.read().await?, scope.user_uuid(), page.slice()).await?;
    Ok(page.listed(
        rows.into_iter()
            .map(ConsentRecordResponse::new)
            .collect::<Result<_>>()?,
        total,
    ))
}

async fn grant(
    EndUser { scope, .. }: EndUser,
    State(hubs): State<Hubs>,
    Json(request): Json<ConsentGrantRequest>,
) -> Result<Answer<ConsentRecordResponse>> {
    let ConsentGrantRequest {
        supplier_uuid,
        version,
        purposes,
        hub_uuid,
    } = request;
    if purposes.len() > MAX_PURPOSES {
        return Err(Error::field(
            "purposes",
            format!("must have at most {MAX_PURPOSES} items"),
        ));
    }
    let row = super::grant(
        &hubs,
        &scope,
        Grant {
            supplier_uuid,
            version,
            purposes,
            hub_uuid,
        },
    )
    .await?;
    Ok(Answer(ConsentRecordResponse::new(row)?))
}

async fn withdraw(
    EndUser { scope, .. }: EndUser,
    State(hubs): State<Hubs>,
    Path(ConsentPath { consent_id }): Path<ConsentPath>,
) -> Result<Answer<()>> {
    super::withdraw(&hubs, &scope, consent_id).await?;
    Ok(Answer(()))
}

async fn retention(
    EndUser { scope, .. }: EndUser,
    State(core): State<Core>,
    Path(ConsentPath { consent_id }): Path<ConsentPath>,
) -> Result<Answer<RetentionSettingResponse>> {
    let row = super::own(&mut core.db.read().await?, &scope, consent_id).await?;
    Ok(Answer(row.into()))
}

async fn set_retention(
    EndUser { scope, .. }: EndUser,
    State(hubs): State<Hubs>,
    Path(ConsentPath { consent_id }): Path<ConsentPath>,
    Json(request): Json<RetentionUpdateRequest>,
) -> Result<Answer<RetentionSettingResponse>> {
    let days = request.retention_days;
    if !(1..=MAX_RETENTION_DAYS).contains(&days) {
        return Err(Error::field(
            "retentionDays",
            format!("must be from 1 to {MAX_RETENTION_DAYS}"),
        ));
    }
    Ok(Answer(
        super::set_retention(&hubs, &scope, consent_id, days)
            .await?
            .into(),
    ))
}

/// A consent with the retention that the person has set.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ExportedConsent {
    #[serde(flatten)]
    record: ConsentRecordResponse,
    retention_days: Option<i64>,
}

/// The consents of a person with ids above `after`, each with its id.
pub async fn exported(
    conn: &mut Conn,
    user_uuid: UserUuid,
    after: i64,
    limit: i64,
) -> Result<Vec<(i64, ExportedConsent)>> {
    let rows = store::own_after(conn, user_uuid, after, limit).await?;
    let exported = |row: RecordRow| {
        let (id, retention_days) = (row.consent_id, row.retention_days);
        Ok((
            id,
            ExportedConsent {
                record: ConsentRecordResponse::new(row)?,
                retention_days,
            },
        ))
    };
    rows.into_iter().map(exported).collect()
}
