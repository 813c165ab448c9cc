//! `/tenant/floor-plans`.

use aide::axum::ApiRouter;
use aide::axum::routing::get_with;
use aide::generate::GenContext;
use aide::openapi::{Operation, Response as ApiResponse};
use aide::{OperationInput, OperationOutput};
use axum::extract::{FromRef, FromRequest, Request, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use hub_base::error::{Error, Result};
use hub_core::Core;
use hub_core::http::answer::{Answer, Created, NoContent, typed_response};
use hub_core::http::check::Check;
use hub_core::http::describe::headers;
use hub_core::http::etag::{IfNoneMatch, not_modified};
use hub_core::http::extract::{Json, Path};
use hub_core::http::file::{ReceivedFile, describe_received};
use hub_core::http::operation::{operation, operation_failing};
use hub_core::http::patch::{self, Change};
use hub_identity::authz::{Authorized, permission as perm};
use hub_protocol::{HubUuid, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use uuid::Uuid;

use super::image::{ImageType, MAX_IMAGE_BYTES};
use super::{Given, MAX_HUBS, MAX_NAME_CHARS, Plan, Position, metres};
use crate::Parts;

const TAG: &str = "tenant-floor-plans";
const MAX_WIDTH_METRES: f64 = 10_000.0;
const MILLIONTHS: f64 = 1_000_000.0;

pub fn routes() -> ApiRouter<Parts> {
    ApiRouter::new()
        .api_route(
            "/tenant/floor-plans",
            get_with(
                list,
                operation("floorPlans.list", TAG, "Floor plans, newest first"),
            )
            .post_with(
                create,
                operation_failing(&[409], "floorPlans.create", TAG, "Create a floor plan"),
            ),
        )
        .api_route(
            "/tenant/floor-plans/{floorPlanUuid}",
            get_with(get, operation("floorPlans.get", TAG, "One floor plan"))
                .patch_with(
                    update,
                    operation(
                        "floorPlans.update",
                        TAG,
                        "Change a floor plan, or place its hubs",
                    ),
                )
                .delete_with(
                    delete,
                    operation("floorPlans.delete", TAG, "Delete a floor plan"),
                ),
        )
        .api_route(
            "/tenant/floor-plans/{floorPlanUuid}/image",
            get_with(
                get_image,
                operation("floorPlans.getImage", TAG, "The image of a floor plan"),
            )
            .put_with(
                put_image,
                operation(
                    "floorPlans.putImage",
                    TAG,
                    "Replace the image of a floor plan",
                ),
            ),
        )
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FloorPlanPath {
    /// The id of the floor plan.
    pub floor_plan_uuid: Uuid,
}

/// The position of a hub on a plan.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FloorPlanHub {
    /// The hub.
    hub_uuid: HubUuid,
    /// The distance from the left, as a part of the width. Six decimals are kept.
    #[schemars(range(min = 0, max = 1))]
    x: f64,
    /// The distance from the top, as a part of the height. Six decimals are kept.
    #[schemars(range(min = 0, max = 1))]
    y: f64,
}

/// A new floor plan. Its image is put afterwards.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FloorPlanCreateRequest {
    /// Display name.
    #[schemars(length(min = 1, max = MAX_NAME_CHARS), regex(pattern = hub_protocol::patterns::FILLED_LINE))]
    name: String,
    /// The width of the area in the image, in metres. The millimetre is kept.
    #[schemars(range(min = 0.001, max = MAX_WIDTH_METRES))]
    width_metres: Option<f64>,
    /// The positions of hubs of the tenant, each hub at most once.
    #[schemars(length(max = MAX_HUBS))]
    hubs: Option<Vec<FloorPlanHub>>,
}

/// A member of a floor plan that a change can remove.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "FloorPlanRemovable")]
enum Removable {
    WidthMetres,
}

/// The most members that a change names to remove: each of them once.
const MAX_CLEAR: usize = 1;

/// A change of a floor plan. What is absent or null stays.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FloorPlanUpdateRequest {
    /// Display name.
    #[schemars(length(min = 1, max = MAX_NAME_CHARS), regex(pattern = hub_protocol::patterns::FILLED_LINE))]
    name: Option<String>,
    /// The width of the area in the image, in metres.
    #[serde(default)]
    #[schemars(range(min = 0.001, max = MAX_WIDTH_METRES))]
    width_metres: Change<f64>,
    /// The positions of hubs of the tenant, each hub at most once. They replace all previous ones.
    #[schemars(length(max = MAX_HUBS))]
    hubs: Option<Vec<FloorPlanHub>>,
    /// The members whose stored values are removed.
    #[schemars(length(max = MAX_CLEAR))]
    clear: Option<Vec<Removable>>,
}

fn checked(
    name: Option<String>,
    width_metres: Change<f64>,
    hubs: Option<Vec<FloorPlanHub>>,
) -> Result<Given> {
    let mut check = Check::new();
    if let Some(name) = &name {
        check.required("name", name, MAX_NAME_CHARS);
    }
    let width_millimetres = match width_metres {
        Change::Keep => Change::Keep,
        Change::Clear => Change::Clear,
        Change::Set(metres) => {
            let is_width = (0.001..=MAX_WIDTH_METRES).contains(&metres);
            check.that(is_width, "widthMetres", "must be 0.001 to 10000 metres");
            Change::Set((metres * 1000.0).round() as i64)
        }
    };
    let too_many = format!("must have at most {MAX_HUBS} hubs");
    check.that(
        hubs.as_ref().is_none_or(|hubs| hubs.len() <= MAX_HUBS),
        "hubs",
        too_many,
    );
    for (at, hub) in hubs.iter().flatten().take(MAX_HUBS).enumerate() {
        for (name, part) in [("x", hub.x), ("y", hub.y)] {
            check.that(
                (0.0..=1.0).contains(&part),
                format!("hubs[{at}].{name}"),
                "must be 0 to 1",
            );
        }
    }
    check.done()?;
    let millionths = |part: f64| (part * MILLIONTHS).round() as i64;
    let position = |FloorPlanHub { hub_uuid, x, y }| Position {
        hub_uuid,
        x: millionths(x),
        y: millionths(y),
    };
    let hubs = hubs.map(|hubs| hubs.into_iter().map(position).collect());
    Ok(Given {
        name: name.map(|name| name.trim().to_owned()),
        width_millimetres,
        hubs,
    })
}

/// The properties of an image.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FloorPlanImage {
    /// Its media type.
    media_type: String,
    /// Its size.
    #[schemars(range(min = 1))]
    size_bytes: i64,
    /// Its width, in pixels; null if it was not read.
    #[schemars(range(min = 1))]
    width_pixels: Option<i64>,
    /// Its height, in pixels; null if it was not read.
    #[schemars(range(min = 1))]
    height_pixels: Option<i64>,
    /// Its SHA-256 digest, in lower-case hex.
    #[schemars(regex(pattern = hub_protocol::patterns::SHA256))]
    sha256: String,
}

/// A floor plan.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FloorPlanResponse {
    /// The id of the plan.
    floor_plan_uuid: Uuid,
    /// Display name.
    name: String,
    /// The width of the area in the image, in metres; null if it is not known.
    width_metres: Option<f64>,
    /// The properties of the response of `/image`; null if the plan has no image.
    image: Option<FloorPlanImage>,
    /// The positions of hubs of the tenant. A released hub is removed from all plans.
    hubs: Vec<FloorPlanHub>,
    /// When it was created.
    created_at: Timestamp,
    /// When it was last changed by somebody.
    updated_at: Timestamp,
}

impl From<Plan> for FloorPlanResponse {
    fn from(Plan { row, hubs }: Plan) -> Self {
        let image = match (row.image_type, row.image_bytes, row.image_hash) {
            (Some(media_type), Some(size_bytes), Some(sha256)) => Some(FloorPlanImage {
                media_type,
                size_bytes,
                width_pixels: row.image_width,
                height_pixels: row.image_height,
                sha256,
            }),
            _ => None,
        };
        let part = |millionths: i64| millionths as f64 / MILLIONTHS;
        let hub = |Position { hub_uuid, x, y }| FloorPlanHub {
            hub_uuid,
            x: part(x),
            y: part(y),
        };
        Self {
            floor_plan_uuid: row.floor_plan_uuid,
            name: row.name,
            width_metres: metres(row.width_millimetres),
            image,
            hubs: hubs.into_iter().map(hub).collect(),
            created_at: row.created_at,
            updated_at: row.updated_at,
        }
    }
}

/// The bytes of an image, with the memory that they take.
pub struct ImageBody(ReceivedFile);

impl<S> FromRequest<S> for ImageBody
where
    S: Send + Sync,
    Core: FromRef<S>,
{
    type Rejection = Error;

    async fn from_request(request: Request, state: &S) -> Result<Self> {
        let core = Core::from_ref(state);
        ReceivedFile::read(&core, request, MAX_IMAGE_BYTES)
            .await
            .map(Self)
    }
}

impl OperationInput for ImageBody {
    fn operation_input(_: &mut GenContext, operation: &mut Operation) {
        describe_received(
            operation,
            "A PNG, JPEG or WebP image of at most 2 MiB, whatever `Content-Type` says.",
        );
    }
}

fn binary(media_type: &str) -> ApiResponse {
    typed_response(
        media_type,
        "The image.",
        json!({"type": "string", "format": "binary"}),
    )
}

/// An image with its tag, or the tag alone where the client has the image.
pub struct ImageAnswer {
    etag: String,
    image: Option<(ImageType, Vec<u8>)>,
}

impl IntoResponse for ImageAnswer {
    fn into_response(self) -> Response {
        let mut response = match self.image {
            Some((kind, image)) => ([(header::CONTENT_TYPE, kind.name())], image).into_response(),
            None => StatusCode::NOT_MODIFIED.into_response(),
        };
        if let Ok(etag) = HeaderValue::from_str(&self.etag) {
            response.headers_mut().insert(header::ETAG, etag);
        }
        response.headers_mut().insert(
            header::CACHE_CONTROL,
            HeaderValue::from_static("private, no-cache"),
        );
        response
    }
}

impl OperationOutput for ImageAnswer {
    type Inner = ();
    fn inferred_responses(
        _: &mut GenContext,
        _: &mut Operation,
    ) -> Vec<(Option<u16>, ApiResponse)> {
        let mut response = binary(ImageType::Jpeg.name());
        for other in [ImageType::Png, ImageType::Webp] {
            response.content.extend(binary(other.name()).content);
        }
        vec![
            (
                Some(200),
                ApiResponse {
                    headers: headers(&["ETag"]),
                    ..response
                },
            ),
            (Some(304), not_modified()),
        ]
    }
}

async fn list(
    auth: Authorized<perm::HubsRead>,
    State(core): State<Core>,
) -> Result<Answer<Vec<FloorPlanResponse>>> {
    let plans = super::list(&mut core.db.read().await?, &auth.scope).await?;
    Ok(Answer(
        plans.into_iter().map(FloorPlanResponse::from).collect(),
    ))
}

async fn create(
    auth: Authorized<perm::HubsWrite>,
    State(core): State<Core>,
    Json(request): Json<FloorPlanCreateRequest>,
) -> Result<Created<FloorPlanResponse>> {
    let FloorPlanCreateRequest {
        name,
        width_metres,
        hubs,
    } = request;
    let given = checked(
        Some(name),
        width_metres.map_or(Change::Keep, Change::Set),
        hubs,
    )?;
    Ok(Created(
        super::create(&core, &auth.scope, given).await?.into(),
    ))
}

async fn get(
    auth: Authorized<perm::HubsRead>,
    State(core): State<Core>,
    Path(FloorPlanPath { floor_plan_uuid }): Path<FloorPlanPath>,
) -> Result<Answer<FloorPlanResponse>> {
    Ok(Answer(
        super::get(&mut core.db.read().await?, &auth.scope, floor_plan_uuid)
            .await?
            .into(),
    ))
}

async fn update(
    auth: Authorized<perm::HubsWrite>,
    State(core): State<Core>,
    Path(FloorPlanPath { floor_plan_uuid }): Path<FloorPlanPath>,
    Json(request): Json<FloorPlanUpdateRequest>,
) -> Result<Answer<FloorPlanResponse>> {
    let FloorPlanUpdateRequest {
        name,
        mut width_metres,
        hubs,
        clear,
    } = request;
    let mut check = Check::new();
    patch::clear(&mut check, clear, MAX_CLEAR, |Removable::WidthMetres| {
        width_metres.clear()
    });
    check.done()?;
    let given = checked(name, width_metres, hubs)?;
    Ok(Answer(
        super::update(&core, &auth.scope, floor_plan_uuid, given)
            .await?
            .into(),
    ))
}

async fn delete(
    auth: Authorized<perm::HubsWrite>,
    State(core): State<Core>,
    Path(FloorPlanPath { floor_plan_uuid }): Path<FloorPlanPath>,
) -> Result<NoContent> {
    super::delete(&core, &auth.scope, floor_plan_uuid).await?;
    Ok(NoContent)
}

async fn get_image(
    auth: Authorized<perm::HubsRead>,
    State(core): State<Core>,
    Path(FloorPlanPath { floor_plan_uuid }): Path<FloorPlanPath>,
    known: IfNoneMatch,
) -> Result<ImageAnswer> {
    let (etag, image) = super::image(
        &mut core.db.read().await?,
        &auth.scope,
        floor_plan_uuid,
        &known,
    )
    .await?;
    Ok(ImageAnswer { etag, image })
}

async fn put_image(
    auth: Authorized<perm::HubsWrite>,
    State(core): State<Core>,
    Path(FloorPlanPath { floor_plan_uuid }): Path<FloorPlanPath>,
    ImageBody(file): ImageBody,
) -> Result<Answer<FloorPlanResponse>> {
    Ok(Answer(
        super::put_image(&core, &auth.scope, floor_plan_uuid, file.bytes.to_vec())
            .await?
            .into(),
    ))
}
