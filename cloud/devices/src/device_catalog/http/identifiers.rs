//! `/tenant/device-catalog/{deviceUuid}/identifiers`.

use aide::axum::ApiRouter;
use aide::axum::routing::{get_with, patch_with};
use axum::extract::State;
use hub_base::error::{Error, Result};
use hub_core::Core;
use hub_core::http::answer::{Answer, Empty};
use hub_core::http::check::Check;
use hub_core::http::extract::{Json, Path};
use hub_core::http::operation::{operation, operation_failing};
use hub_identity::authz::{Authorized, permission as perm};
use hub_protocol::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::super::identifiers::{self, Condition, ConditionKind, MAX_VALUE_CHARS, NewIdentifier};
use super::super::store::identifiers::IdentifierRow;
use super::super::{MAX_NAME_CHARS, MAX_TEXT_CHARS, filled};
use super::TAG;
use crate::Parts;
use crate::device_catalog::http::DeviceModelPath;

pub fn routes() -> ApiRouter<Parts> {
    ApiRouter::new()
        .api_route(
            "/tenant/device-catalog/{deviceUuid}/identifiers",
            get_with(
                list,
                operation(
                    "deviceIdentifiers.list",
                    TAG,
                    "Identifiers of a device model, oldest first",
                ),
            )
            .post_with(
                create,
                operation_failing(
                    &[409],
                    "deviceIdentifiers.create",
                    TAG,
                    "Say how advertisements of a device model look",
                ),
            ),
        )
        .api_route(
            "/tenant/device-catalog/{deviceUuid}/identifiers/{id}",
            patch_with(
                update,
                operation(
                    "deviceIdentifiers.update",
                    TAG,
                    "Change label and notes of an identifier",
                ),
            )
            .delete_with(
                delete,
                operation("deviceIdentifiers.delete", TAG, "Delete an identifier"),
            ),
        )
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeviceIdentifierPath {
    /// The device model.
    pub device_uuid: Uuid,
    /// The id of the identifier.
    pub id: i64,
}

/// A pattern of the advertisements of a device model. Identifiers of one model are alternatives.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeviceMatchIdentifierResponse {
    /// The id of the identifier.
    #[schemars(range(min = 1))]
    id: i64,
    /// The model.
    device_uuid: Uuid,
    /// The conditions, all of which must hold.
    conditions: Vec<Condition>,
    /// How many bits of an advertisement they fix. Of the identifiers that an advertisement fits,
    /// the one with the most decides which model it is of.
    #[schemars(range(min = 0))]
    specificity: i64,
    /// Display label.
    label: Option<String>,
    /// Free-text notes.
    notes: Option<String>,
    /// When it was created.
    created_at: Timestamp,
}

impl From<IdentifierRow> for DeviceMatchIdentifierResponse {
    fn from(row: IdentifierRow) -> Self {
        let IdentifierRow {
            device_identifier_id: id,
            device_uuid,
            conditions,
            specificity,
            label,
            notes,
            created_at,
        } = row;
        Self {
            id,
            device_uuid,
            conditions: conditions.0,
            specificity,
            label,
            notes,
            created_at,
        }
    }
}

/// An identifier to create: several `conditions`, or the members of a single one.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct CreateDeviceMatchIdentifierRequest {
    /// Up to 8 conditions, all of which must hold.
    #[schemars(length(min = 1, max = 8))]
    conditions: Option<Vec<Condition>>,
    /// The subject of a single condition.
    kind: Option<ConditionKind>,
    /// The required value of a single condition, in the form of the kind.
    #[schemars(length(min = 1, max = MAX_VALUE_CHARS))]
    value: Option<String>,
    /// The bits of a single condition that count, as many bytes in hexadecimal.
    #[schemars(length(max = MAX_VALUE_CHARS))]
    mask: Option<String>,
    /// Display label.
    #[schemars(length(max = MAX_NAME_CHARS), regex(pattern = hub_protocol::patterns::LINE))]
    label: Option<String>,
    /// Free-text notes.
    #[schemars(length(max = MAX_TEXT_CHARS), regex(pattern = hub_protocol::patterns::LINES))]
    notes: Option<String>,
}

impl CreateDeviceMatchIdentifierRequest {
    fn checked(self) -> Result<NewIdentifier> {
        check_texts(self.label.as_deref(), self.notes.as_deref())?;
        let (label, notes) = (filled(self.label), filled(self.notes));
        let together = |member| {
            Err(Error::field(
                member,
                "must not be given together with `conditions`",
            ))
        };
        match (self.conditions, self.kind, self.value, self.mask) {
            (Some(conditions), None, None, None) => {
                NewIdentifier::checked(conditions, label, notes)
            }
            (Some(_), Some(_), ..) => together("kind"),
            (Some(_), _, Some(_), _) => together("value"),
            (Some(_), ..) => together("mask"),
            (None, Some(kind), Some(value), mask) => {
                NewIdentifier::single(Condition { kind, value, mask }, label, notes)
            }
            (None, Some(_), None, _) => Err(Error::field("value", "is required with `kind`")),
            (None, None, Some(_), _) | (None, None, None, Some(_)) => {
                Err(Error::field("kind", "is required"))
            }
            (None, None, None, None) => Err(Error::field(
                "conditions",
                "is required, or `kind` and `value`",
            )),
        }
    }
}

fn check_texts(label: Option<&str>, notes: Option<&str>) -> Result<()> {
    let mut check = Check::new();
    check.line("label", label, MAX_NAME_CHARS);
    check.lines("notes", notes, MAX_TEXT_CHARS);
    check.done()
}

/// Changes to make. An absent or null member leaves the stored value unchanged, and empty text
/// removes it. Other conditions need another identifier.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct UpdateDeviceMatchIdentifierRequest {
    /// Display label.
    #[schemars(length(max = MAX_NAME_CHARS), regex(pattern = hub_protocol::patterns::LINE))]
    label: Option<String>,
    /// Free-text notes.
    #[schemars(length(max = MAX_TEXT_CHARS), regex(pattern = hub_protocol::patterns::LINES))]
    notes: Option<String>,
}

/// All identifiers; a model has at most 512.
async fn list(
    auth: Authorized<perm::CatalogRead>,
    State(core): State<Core>,
    Path(DeviceModelPath { device_uuid }): Path<DeviceModelPath>,
) -> Result<Answer<Vec<DeviceMatchIdentifierResponse>>> {
    let rows = identifiers::list(&mut core.db.read().await?, &auth.scope, device_uuid).await?;
    Ok(Answer(
        rows.into_iter()
            .map(DeviceMatchIdentifierResponse::from)
            .collect(),
    ))
}

/// The request is refused with 409 while an advertisement could fit this identifier and one of
/// another model equally well.
async fn create(
    auth: Authorized<perm::CatalogWrite>,
    State(core): State<Core>,
    Path(DeviceModelPath { device_uuid }): Path<DeviceModelPath>,
    Json(request): Json<CreateDeviceMatchIdentifierRequest>,
) -> Result<Answer<DeviceMatchIdentifierResponse>> {
    let row = identifiers::create(&core, &auth.scope, device_uuid, request.checked()?).await?;
    Ok(Answer(row.into()))
}

async fn update(
    auth: Authorized<perm::CatalogWrite>,
    State(core): State<Core>,
    Path(DeviceIdentifierPath { device_uuid, id }): Path<DeviceIdentifierPath>,
    Json(request): Json<UpdateDeviceMatchIdentifierRequest>,
) -> Result<Answer<DeviceMatchIdentifierResponse>> {
    let UpdateDeviceMatchIdentifierRequest { label, notes } = request;
    check_texts(label.as_deref(), notes.as_deref())?;
    let row = identifiers::update(&core, &auth.scope, device_uuid, id, label, notes).await?;
    Ok(Answer(row.into()))
}

async fn delete(
    auth: Authorized<perm::CatalogWrite>,
    State(core): State<Core>,
    Path(DeviceIdentifierPath { device_uuid, id }): Path<DeviceIdentifierPath>,
) -> Result<Empty> {
    identifiers::delete(&core, &auth.scope, device_uuid, id).await?;
    Ok(Empty)
}
