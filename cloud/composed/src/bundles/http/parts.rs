//! The parts of a bundle: `/apps`, `/devices` and `/pipelines`.

use aide::axum::ApiRouter;
use aide::axum::routing::get_with;
use axum::extract::State;
use hub_base::error::Result;
use hub_core::Core;
use hub_core::http::answer::Answer;
use hub_core::http::check::Check;
use hub_core::http::extract::{Json, Path};
use hub_core::http::operation::{operation, operation_failing};
use hub_identity::authz::{Authorized, permission as perm};
use hub_protocol::{AppUuid, ReleaseUuid};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::super::parts::{self, AppRef, DeviceRef, MAX_QUANTITY};
use super::super::store::parts::{AppPart, DevicePart};
use super::TAG;
use crate::Parts;
use crate::bundles::http::BundlePath;

pub fn routes() -> ApiRouter<Parts> {
    ApiRouter::new()
        .api_route(
            "/tenant/supplier-bundles/{bundleUuid}/apps",
            get_with(apps, operation("bundles.apps", TAG, "The apps of a bundle")).put_with(
                put_apps,
                operation_failing(
                    &[409],
                    "bundles.putApps",
                    TAG,
                    "Replace the apps of a draft",
                ),
            ),
        )
        .api_route(
            "/tenant/supplier-bundles/{bundleUuid}/devices",
            get_with(
                devices,
                operation("bundles.devices", TAG, "The device models of a bundle"),
            )
            .put_with(
                put_devices,
                operation_failing(
                    &[409],
                    "bundles.putDevices",
                    TAG,
                    "Replace the device models of a draft",
                ),
            ),
        )
        .api_route(
            "/tenant/supplier-bundles/{bundleUuid}/pipelines",
            get_with(
                pipelines,
                operation("bundles.pipelines", TAG, "The pipelines of a bundle"),
            )
            .put_with(
                put_pipelines,
                operation_failing(
                    &[409],
                    "bundles.putPipelines",
                    TAG,
                    "Replace the pipelines of a draft",
                ),
            ),
        )
}

/// An app of a bundle.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BundleAppRefRequest {
    /// An app of the tenant.
    app_uuid: AppUuid,
    /// A READY release of the app. When absent, each hub gets the newest one of the channel that it
    /// can run.
    app_release_uuid: Option<ReleaseUuid>,
    /// `stable` when absent: versions without a suffix. Of another channel also those whose suffix
    /// begins with its name: 1.4.0-beta.2 is in `beta`. Not together with a release.
    #[schemars(regex(pattern = "^[a-z0-9-]{1,64}$"))]
    channel: Option<String>,
}

/// A device model of a bundle.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BundleDeviceRefRequest {
    /// A device model of the tenant.
    device_uuid: Uuid,
    /// The number of such devices that belong to a hub; 1 when absent.
    #[schemars(range(min = 1, max = MAX_QUANTITY))]
    quantity: Option<i64>,
}

/// An app of a bundle.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BundleAppResponse {
    /// The app.
    app_uuid: AppUuid,
    /// The name of the app.
    name: String,
    /// The release; null for the newest one of the channel.
    app_release_uuid: Option<ReleaseUuid>,
    /// The channel, if one was named.
    channel: Option<String>,
}

impl From<AppPart> for BundleAppResponse {
    fn from(part: AppPart) -> Self {
        let AppPart {
            app_uuid,
            name,
            release_uuid,
            channel,
            ..
        } = part;
        Self {
            app_uuid,
            name,
            app_release_uuid: release_uuid,
            channel,
        }
    }
}

/// A device model of a bundle, or at a hub.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BundleDeviceResponse {
    /// The device model.
    device_uuid: Uuid,
    /// The name of the device model.
    name: String,
    /// The number of such devices that belong to a hub.
    #[schemars(range(min = 1))]
    quantity: i64,
}

impl From<DevicePart> for BundleDeviceResponse {
    fn from(part: DevicePart) -> Self {
        let DevicePart {
            device_uuid,
            name,
            quantity,
            ..
        } = part;
        Self {
            device_uuid,
            name,
            quantity,
        }
    }
}

fn shown<T, R: From<T>>(parts: Vec<T>) -> Answer<Vec<R>> {
    Answer(parts.into_iter().map(R::from).collect())
}

/// Returns the apps in the order in which they were set.
async fn apps(
    auth: Authorized<perm::BundlesRead>,
    State(core): State<Core>,
    Path(BundlePath { bundle_uuid }): Path<BundlePath>,
) -> Result<Answer<Vec<BundleAppResponse>>> {
    parts::apps(&core, &auth.scope, bundle_uuid)
        .await
        .map(shown)
}

/// Sets at most 50 apps.
async fn put_apps(
    auth: Authorized<perm::BundlesWrite>,
    State(core): State<Core>,
    Path(BundlePath { bundle_uuid }): Path<BundlePath>,
    Json(requests): Json<Vec<BundleAppRefRequest>>,
) -> Result<Answer<Vec<BundleAppResponse>>> {
    let mut check = Check::new();
    for (place, request) in requests.iter().enumerate() {
        let Some(channel) = &request.channel else {
            continue;
        };
        let field = format!("[{place}].channel");
        check.word(&field, channel);
        check.that(
            !channel.contains('_'),
            field.as_str(),
            "must not contain underscores",
        );
        check.that(
            request.app_release_uuid.is_none(),
            field.as_str(),
            "must not be given together with a release",
        );
    }
    check.done()?;
    let read = |request: BundleAppRefRequest| {
        let BundleAppRefRequest {
            app_uuid,
            app_release_uuid,
            channel,
        } = request;
        AppRef {
            app_uuid,
            release_uuid: app_release_uuid,
            channel,
        }
    };
    let apps: Vec<AppRef> = requests.into_iter().map(read).collect();
    parts::put_apps(&core, &auth.scope, bundle_uuid, &apps)
        .await
        .map(shown)
}

/// Returns the devices in the order in which they were set.
async fn devices(
    auth: Authorized<perm::BundlesRead>,
    State(core): State<Core>,
    Path(BundlePath { bundle_uuid }): Path<BundlePath>,
) -> Result<Answer<Vec<BundleDeviceResponse>>> {
    parts::devices(&core, &auth.scope, bundle_uuid)
        .await
        .map(shown)
}

/// Sets at most 100 devices.
async fn put_devices(
    auth: Authorized<perm::BundlesWrite>,
    State(core): State<Core>,
    Path(BundlePath { bundle_uuid }): Path<BundlePath>,
    Json(requests): Json<Vec<BundleDeviceRefRequest>>,
) -> Result<Answer<Vec<BundleDeviceResponse>>> {
    let mut check = Check::new();
    for (place, request) in requests.iter().enumerate() {
        let fits = request
            .quantity
            .is_none_or(|quantity| (1..=MAX_QUANTITY).contains(&quantity));
        check.that(
            fits,
            format!("[{place}].quantity"),
            format!("must be between 1 and {MAX_QUANTITY}"),
        );
    }
    check.done()?;
    let read = |request: BundleDeviceRefRequest| DeviceRef {
        device_uuid: request.device_uuid,
        quantity: request.quantity.unwrap_or(1),
    };
    let devices: Vec<DeviceRef> = requests.into_iter().map(read).collect();
    parts::put_devices(&core, &auth.scope, bundle_uuid, &devices)
        .await
        .map(shown)
}

/// Returns the pipelines in the order in which they were set.
async fn pipelines(
    auth: Authorized<perm::BundlesRead>,
    State(core): State<Core>,
    Path(BundlePath { bundle_uuid }): Path<BundlePath>,
) -> Result<Answer<Vec<Uuid>>> {
    parts::pipelines(&core, &auth.scope, bundle_uuid)
        .await
        .map(Answer)
}

/// Pipelines of the tenant, at most 100.
async fn put_pipelines(
    auth: Authorized<perm::BundlesWrite>,
    State(core): State<Core>,
    Path(BundlePath { bundle_uuid }): Path<BundlePath>,
    Json(pipelines): Json<Vec<Uuid>>,
) -> Result<Answer<Vec<Uuid>>> {
    parts::put_pipelines(&core, &auth.scope, bundle_uuid, pipelines)
        .await
        .map(Answer)
}
