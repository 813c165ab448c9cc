//! `GET /app/devices/{deviceInstanceId}/sensor-data/export`.

use aide::OperationOutput;
use aide::axum::ApiRouter;
use aide::axum::routing::get_with;
use aide::generate::GenContext;
use aide::openapi::{MediaType, Operation, Response as ApiResponse};
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use hub_base::budget::Holder;
use hub_base::error::{Error, Result};
use hub_core::Core;
use hub_core::http::answer::{hold_answer, typed_response};
use hub_core::http::extract::{Path, Query};
use hub_core::http::file::{attachment_in_parts, attachment_response};
use hub_core::http::operation::operation_failing;
use hub_devices::device_instances::http::DevicePath;
use hub_identity::authz::EndUser;
use hub_protocol::Timestamp;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::table::ParquetFile;
use super::{FileForm, ValueFile, Writer};
use crate::Parts;
use crate::end_users;

/// The memory of one file: events that are read at once, and their rows.
const BYTES: usize = 8 * 1024 * 1024;

pub fn routes() -> ApiRouter<Parts> {
    ApiRouter::new().api_route(
        "/app/devices/{deviceInstanceId}/sensor-data/export",
        get_with(
            export,
            operation_failing(
                &[503],
                "appDevices.exportSensorData",
                "app",
                "The values of a device as a file, oldest first",
            ),
        ),
    )
}

/// The wanted file.
#[derive(Debug, Deserialize, JsonSchema)]
struct ExportQuery {
    /// The form of the file; `ndjson` when absent.
    format: Option<FileForm>,
    /// Only values observed at this time or later.
    from: Option<Timestamp>,
    /// Only values observed before this time.
    to: Option<Timestamp>,
}

/// A file, sent while it is read.
struct Export(ValueFile, FileForm);

impl IntoResponse for Export {
    fn into_response(self) -> Response {
        let Self(file, form) = self;
        let name = format!("device-{}.{}", file.device_instance_id, form.extension());
        let parts = stream::try_unfold(file, |mut file| async move {
            let part = file.next().await?;
            Ok::<_, Error>(part.map(|part| (part, file)))
        });
        attachment_in_parts(form.media_type(), &name, parts)
    }
}

impl OperationOutput for Export {
    type Inner = ();
    fn inferred_responses(
        _: &mut GenContext,
        _: &mut Operation,
    ) -> Vec<(Option<u16>, ApiResponse)> {
        let description = "NDJSON has an item of `sensor-data` a line. CSV and Parquet have a row for each value: `observedAt`, \
                           `receivedAt`, `hubUuid`, `rssiDbm`, `quantity`, `value` (numbers; 1 and 0 of booleans), `text`, `unit`.";
        let schema = json!({"type": "string", "description": "The file."});
        let mut response =
            attachment_response(FileForm::Ndjson.media_type(), description, schema.clone());
        for form in [FileForm::Csv, FileForm::Parquet] {
            let other = typed_response(form.media_type(), description, schema.clone());
            let content: Vec<(String, MediaType)> = other.content.into_iter().collect();
            response.content.extend(content);
        }
        vec![(Some(200), response)]
    }
}

async fn export(
    EndUser { scope, .. }: EndUser,
    State(core): State<Core>,
    Path(DevicePath { device_instance_id }): Path<DevicePath>,
    Query(ExportQuery { format, from, to }): Query<ExportQuery>,
) -> Result<Export> {
    let mut conn = core.db.read().await?;
    let person = end_users::of_caller(&core, &mut conn, &scope).await?;
    end_users::device(&mut conn, &person, device_instance_id).await?;
    drop(conn);
    let holder = Holder {
        group: scope.user_uuid().0,
        member: None,
    };
    let held = hold_answer(&core, holder, BYTES)?;
    let form = format.unwrap_or(FileForm::Ndjson);
    let writer = match form {
        FileForm::Ndjson => Writer::Ndjson,
        FileForm::Csv => Writer::Csv { has_header: false },
        FileForm::Parquet => {
            let file = ParquetFile::new().map_err(Error::internal)?;
            Writer::Parquet(Box::new(file))
        }
    };
    let file = ValueFile {
        core,
        scope,
        device_instance_id,
        from,
        to,
        writer,
        after: Some(0),
        _held: held,
    };
    Ok(Export(file, form))
}
