//! All operations of this client, each with the parameters and members that it uses. A test
//! compares `ALL` with the OpenAPI document of the service.

use crate::call::{Operation, Shape, record};
use crate::records::*;
use crate::session::Session;

const PAGE: &[&str] = &["page", "size"];

const fn get(path: &'static str) -> Operation {
    Operation::new("GET", path)
}

const fn post(path: &'static str) -> Operation {
    Operation::new("POST", path)
}

const fn put(path: &'static str) -> Operation {
    Operation::new("PUT", path)
}

const fn patch(path: &'static str) -> Operation {
    Operation::new("PATCH", path)
}

const fn delete(path: &'static str) -> Operation {
    Operation::new("DELETE", path)
}

const SESSION: Shape = Shape::Record(record::<Session>);

pub static SIGN_IN_METHODS: Operation =
    get("/auth/methods").response(Shape::Record(record::<SignInMethods>));
pub static REGISTER: Operation = post("/auth/register")
    .request(&["email", "password"])
    .response(SESSION);
pub static LOG_IN: Operation = post("/auth/login")
    .request(&["email", "password", "otp"])
    .response(SESSION);
pub static REFRESH: Operation = post("/auth/refresh")
    .request(&["refreshToken"])
    .response(SESSION);
pub static LOG_OUT: Operation = post("/auth/logout").request(&["refreshToken"]);

const TENANT: Shape = Shape::Record(record::<Tenant>);

pub static TENANTS: Operation = get("/tenant/tenants").response(TENANT);
pub static CREATE_TENANT: Operation = post("/tenant/tenants").request(&["name"]).response(TENANT);
pub static CALLER: Operation =
    get("/tenant/test").response(Shape::Members(&["tenantUuid", "tenantName"]));

pub static HUBS: Operation = get("/tenant/hubs")
    .query(PAGE)
    .response(Shape::Record(record::<Hub>));
pub static HUB: Operation =
    get("/tenant/hubs/{hubUuid}").response(Shape::Record(record::<HubDetail>));
pub static RELEASE_HUB: Operation = delete("/tenant/hubs/{hubUuid}");
pub static READMIT_HUB: Operation = post("/tenant/hubs/{hubUuid}/readmit")
    .request(&["validForSeconds"])
    .response(Shape::Record(record::<HubDetail>));
pub static HUB_JOBS: Operation = get("/tenant/hubs/{hubUuid}/jobs")
    .query(PAGE)
    .response(Shape::Record(record::<Job>));
pub static HUB_JOB: Operation =
    get("/tenant/hub-monitoring/{hubUuid}/jobs/{jobUuid}").response(Shape::Record(record::<Job>));
pub static INSTALL_APP: Operation =
    post("/tenant/hubs/{hubUuid}/jobs/app-install").request(&["appReleaseUuid", "force"]);
pub static MOVE_HUB: Operation =
    post("/tenant/hubs/{hubUuid}/jobs/move").request(&["serviceUrl", "claimCode"]);
pub static HUB_LOGS: Operation = get("/tenant/hubs/{hubUuid}/logs")
    .query(&["page", "size", "from", "to"])
    .response(Shape::Record(record::<HubLog>))
    .large_records();
pub static HUB_LOG_STREAM: Operation =
    get("/tenant/stream/hubs/{hubUuid}/logs").response(Shape::Record(record::<HubLog>));
const BLOCK: Shape = Shape::Record(record::<HubBlock>);
pub static BLOCK_HUB: Operation = post("/platform/hubs/{hub_uuid}/block").response(BLOCK);
pub static UNBLOCK_HUB: Operation = post("/platform/hubs/{hub_uuid}/unblock").response(BLOCK);

const CLAIM_CODE: Shape = Shape::Record(record::<ClaimCode>);

pub static CLAIM_CODES: Operation = get("/tenant/hubs/claim-codes")
    .query(PAGE)
    .response(CLAIM_CODE);
pub static CREATE_CLAIM_CODE: Operation = post("/tenant/hubs/claim-codes")
    .request(&[
        "validForSeconds",
        "maxUses",
        "bundleUuid",
        "hubIdentifier",
        "ownerUserUuid",
        "note",
        "allowReclaim",
    ])
    .response(CLAIM_CODE);
pub static REVOKE_CLAIM_CODE: Operation = delete("/tenant/hubs/claim-codes/{claimCode}");

const DEVICE: Shape = Shape::Record(record::<Device>);

pub static DEVICES: Operation = get("/tenant/devices")
    .query(&[
        "page",
        "size",
        "q",
        "online",
        "activationStatus",
        "deviceUuid",
        "hubUuid",
    ])
    .response(DEVICE);
pub static DEVICE_BY_ID: Operation = get("/tenant/devices/{deviceInstanceId}").response(DEVICE);

const BLE_EVENT: Shape = Shape::Record(record::<BleEvent>);

pub static BLE_EVENTS: Operation = get("/tenant/ble/events")
    .query(&["page", "size", "from", "to", "hubUuid", "deviceInstanceId"])
    .response(BLE_EVENT);
pub static BLE_EVENT_STREAM: Operation = get("/tenant/stream/ble/events")
    .query(&["view"])
    .response(BLE_EVENT);
pub static HISTORY: Operation = get("/tenant/history").response(Shape::Record(record::<History>));
pub static HISTORY_FILES: Operation = get("/tenant/history/files")
    .query(&["page", "size", "from", "to"])
    .response(Shape::Record(record::<HistoryFile>));

pub static VULNERABILITIES: Operation = get("/tenant/vulnerabilities")
    .query(&["page", "size", "q", "hubUuid", "severity", "exploited"])
    .response(Shape::Record(record::<Vulnerability>));
pub static VULNERABLE_HUBS: Operation = get("/tenant/vulnerabilities/{vulnerabilityId}/hubs")
    .query(PAGE)
    .response(Shape::Record(record::<VulnerableHub>));
pub static PUT_STATEMENT: Operation = put("/tenant/vulnerabilities/{vulnerabilityId}/statement")
    .request(&[
        "status",
        "justification",
        "impactStatement",
        "actionStatement",
        "releaseUuid",
    ]);
pub static VULNERABILITY_REPORT: Operation =
    get("/tenant/vulnerabilities/{vulnerabilityId}/report").query(&["form"]);

const DEPENDENCY_TRACK_PATH: &str = "/tenant/dependency-track";
const DEPENDENCY_TRACK_SERVER: Shape = Shape::Record(record::<DependencyTrack>);

pub static DEPENDENCY_TRACK: Operation =
    get(DEPENDENCY_TRACK_PATH).response(DEPENDENCY_TRACK_SERVER);
pub static SET_DEPENDENCY_TRACK: Operation = put(DEPENDENCY_TRACK_PATH)
    .request(&["url", "project", "apiKey"])
    .response(DEPENDENCY_TRACK_SERVER);
pub static REMOVE_DEPENDENCY_TRACK: Operation = delete(DEPENDENCY_TRACK_PATH);

pub static VULNERABILITY_EVIDENCE: Operation =
    get("/tenant/vulnerabilities/{vulnerabilityId}/evidence");
pub static KEY_SET: Operation = get("/.well-known/jwks.json");
pub static OPENVEX: Operation = get("/tenant/vulnerabilities/openvex");

/// The members of an own advisory.
pub const ADVISORY_MEMBERS: &[&str] = &[
    "id",
    "title",
    "description",
    "severity",
    "cvssVector",
    "aliases",
    "references",
    "affected",
];

pub static ADVISORIES: Operation = get("/tenant/advisories")
    .query(PAGE)
    .response(Shape::Members(ADVISORY_MEMBERS));
pub static CREATE_ADVISORY: Operation = post("/tenant/advisories").request(ADVISORY_MEMBERS);

const APP: Shape = Shape::Record(record::<App>);
const RELEASE: Shape = Shape::Record(record::<AppRelease>);

pub static APPS: Operation = get("/tenant/apps").query(PAGE).response(APP);
pub static CREATE_APP: Operation = post("/tenant/apps")
    .request(&["name", "description"])
    .response(APP);
pub static APP_RELEASES: Operation = get("/tenant/apps/{appUuid}/releases")
    .query(PAGE)
    .response(RELEASE);
pub static CREATE_APP_RELEASE: Operation = post("/tenant/apps/{appUuid}/releases")
    .request(&["manifest", "signature"])
    .response(RELEASE);
pub static UPDATE_APP_RELEASE: Operation =
    patch("/tenant/apps/{appUuid}/releases/{releaseUuid}").request(&["supportedUntil"]);
pub static RELEASE_FILE_URL: Operation =
    get("/tenant/apps/{appUuid}/releases/{releaseUuid}/file-url").response(Shape::Members(&[
        "url",
        "sizeBytes",
        "sha256",
    ]));
const RELEASE_DOCUMENT_PATH: &str =
    "/tenant/apps/{appUuid}/releases/{releaseUuid}/documents/{document}";
pub static RELEASE_DOCUMENT: Operation = get(RELEASE_DOCUMENT_PATH);
pub static PUT_RELEASE_DOCUMENT: Operation = put(RELEASE_DOCUMENT_PATH);

const POLICY: Shape = Shape::Record(record::<Policy>);

pub static POLICIES: Operation = get("/tenant/agent-update-policies")
    .query(PAGE)
    .response(POLICY);
pub static POLICY_BY_UUID: Operation =
    get("/tenant/agent-update-policies/{policyUuid}").response(POLICY);
pub static HALT_ROLLOUT: Operation =
    post("/tenant/agent-update-policies/{policyUuid}/rollout/halt").response(POLICY);
pub static RESUME_ROLLOUT: Operation =
    post("/tenant/agent-update-policies/{policyUuid}/rollout/resume").response(POLICY);
pub static PLATFORM_POLICIES: Operation = get("/platform/agent-update-policies")
    .query(&["scope", "page", "size"])
    .response(POLICY);
pub static HALT_PLATFORM_ROLLOUT: Operation =
    post("/platform/agent-update-policies/{policyUuid}/rollout/halt").response(POLICY);
pub static RESUME_PLATFORM_ROLLOUT: Operation =
    post("/platform/agent-update-policies/{policyUuid}/rollout/resume").response(POLICY);

/// The members of a pipeline's definition.
pub const PIPELINE_MEMBERS: &[&str] = &[
    "name",
    "description",
    "enabled",
    "source",
    "steps",
    "destination",
    "delivery",
];
const PIPELINE: Shape = Shape::Record(record::<Pipeline>);
const PIPELINES_PATH: &str = "/tenant/data-pipelines";
const PIPELINE_PATH: &str = "/tenant/data-pipelines/{pipelineUuid}";

pub static PIPELINES: Operation = get(PIPELINES_PATH).response(PIPELINE);
pub static PIPELINE_DOCUMENTS: Operation =
    get(PIPELINES_PATH).response(Shape::Members(PIPELINE_MEMBERS));
pub static CREATE_PIPELINE: Operation = post(PIPELINES_PATH)
    .request(PIPELINE_MEMBERS)
    .response(PIPELINE);
pub static REPLACE_PIPELINE: Operation = put(PIPELINE_PATH)
    .request(PIPELINE_MEMBERS)
    .response(PIPELINE);
pub static DELETE_PIPELINE: Operation = delete(PIPELINE_PATH);

/// The members of a route's definition.
pub const ROUTE_MEMBERS: &[&str] = &["rules", "otherwise"];

pub static ROUTE: Operation = get("/tenant/ble/route").response(Shape::Members(ROUTE_MEMBERS));
pub static REPLACE_ROUTE: Operation = put("/tenant/ble/route").request(ROUTE_MEMBERS);

/// The members of a device model, without its parts.
pub const MODEL_MEMBERS: &[&str] = &[
    "name",
    "brand",
    "model",
    "category",
    "description",
    "aliases",
    "imageUrl",
    "autoRegister",
    "expectedIntervalSeconds",
    "referencePowerDbm",
    "supportedUntil",
    "metrics",
];
const MODELS_PATH: &str = "/tenant/device-catalog";
const MODEL_PATH: &str = "/tenant/device-catalog/{deviceUuid}";

pub static MODELS: Operation = get(MODELS_PATH)
    .query(PAGE)
    .response(Shape::Members(MODEL_MEMBERS));
pub static CREATE_MODEL: Operation = post(MODELS_PATH).request(MODEL_MEMBERS);
pub static CREATE_MODEL_FROM_TEMPLATE: Operation =
    post(MODELS_PATH).request(&["template", "autoRegister"]);
pub static UPDATE_MODEL: Operation = patch(MODEL_PATH).request(MODEL_MEMBERS);

pub static DEVICE_LIBRARY: Operation = get("/public/device-library")
    .query(PAGE)
    .response(Shape::Members(&["key"]));

pub const IDENTIFIER_MEMBERS: &[&str] = &["conditions", "label", "notes"];

pub static IDENTIFIERS: Operation = get("/tenant/device-catalog/{deviceUuid}/identifiers")
    .response(Shape::Members(IDENTIFIER_MEMBERS));
pub static CREATE_IDENTIFIER: Operation =
    post("/tenant/device-catalog/{deviceUuid}/identifiers").request(IDENTIFIER_MEMBERS);
pub static UPDATE_IDENTIFIER: Operation =
    patch("/tenant/device-catalog/{deviceUuid}/identifiers/{id}").request(&["label", "notes"]);
pub static DELETE_IDENTIFIER: Operation =
    delete("/tenant/device-catalog/{deviceUuid}/identifiers/{id}");

const OF_MODEL: &[&str] = &["deviceUuid", "page", "size"];

pub const PROTOCOL_MEMBERS: &[&str] = &["name", "kind", "definition", "tests"];

pub static PROTOCOLS: Operation = get("/tenant/device-protocols")
    .query(OF_MODEL)
    .response(Shape::Members(PROTOCOL_MEMBERS))
    .large_records();
pub static CREATE_PROTOCOL: Operation = post("/tenant/device-protocols").request(&[
    "deviceUuid",
    "name",
    "kind",
    "definition",
    "tests",
]);
pub static UPDATE_PROTOCOL: Operation =
    patch("/tenant/device-protocols/{deviceProtocolId}").request(PROTOCOL_MEMBERS);
pub static DELETE_PROTOCOL: Operation = delete("/tenant/device-protocols/{deviceProtocolId}");

pub const VERSION_MEMBERS: &[&str] = &[
    "version",
    "hardwareVersion",
    "firmwareVersion",
    "notes",
    "released",
    "deviceProtocolId",
];

pub static VERSIONS: Operation = get("/tenant/device-versions")
    .query(OF_MODEL)
    .response(Shape::Members(VERSION_MEMBERS));
pub static CREATE_VERSION: Operation = post("/tenant/device-versions").request(&[
    "deviceUuid",
    "version",
    "hardwareVersion",
    "firmwareVersion",
    "notes",
    "released",
    "deviceProtocolId",
]);
pub static UPDATE_VERSION: Operation =
    patch("/tenant/device-versions/{deviceVersionUuid}").request(VERSION_MEMBERS);
pub static DELETE_VERSION: Operation = delete("/tenant/device-versions/{deviceVersionUuid}");

pub const FORM_MEMBERS: &[&str] = &["name", "kind", "locale", "configJson"];

pub static FORMS: Operation = get("/tenant/device-ui-schemas")
    .query(OF_MODEL)
    .response(Shape::Members(FORM_MEMBERS))
    .large_records();
pub static CREATE_FORM: Operation = post("/tenant/device-ui-schemas").request(&[
    "deviceUuid",
    "name",
    "kind",
    "locale",
    "configJson",
]);
pub static UPDATE_FORM: Operation =
    patch("/tenant/device-ui-schemas/{deviceUiId}").request(FORM_MEMBERS);
pub static DELETE_FORM: Operation = delete("/tenant/device-ui-schemas/{deviceUiId}");

pub const MANUAL_MEMBERS: &[&str] = &["title", "format", "locale", "content", "url"];

pub static MANUALS: Operation = get("/tenant/manuals")
    .query(OF_MODEL)
    .response(Shape::Members(MANUAL_MEMBERS))
    .large_records();
pub static CREATE_MANUAL: Operation =
    post("/tenant/manuals").request(&["deviceUuid", "title", "format", "locale", "content", "url"]);
pub static UPDATE_MANUAL: Operation =
    patch("/tenant/manuals/{deviceManualId}").request(MANUAL_MEMBERS);
pub static DELETE_MANUAL: Operation = delete("/tenant/manuals/{deviceManualId}");

pub const ACTION_MEMBERS: &[&str] = &[
    "actionId",
    "name",
    "description",
    "deviceUuid",
    "confirm",
    "parameters",
    "transport",
];

pub static ACTIONS: Operation = get("/tenant/action-definitions")
    .query(PAGE)
    .response(Shape::Members(ACTION_MEMBERS))
    .large_records();
pub static CREATE_ACTION: Operation = post("/tenant/action-definitions").request(ACTION_MEMBERS);
pub static UPDATE_ACTION: Operation = patch("/tenant/action-definitions/{actionId}").request(&[
    "name",
    "description",
    "deviceUuid",
    "confirm",
    "parameters",
    "transport",
]);

pub static ENDPOINTS: Operation =
    get("/tenant/external-endpoints").response(Shape::Members(&["id", "name"]));

pub const BUNDLE_MEMBERS: &[&str] = &["name", "description", "autoApply"];

pub static BUNDLES: Operation = get("/tenant/supplier-bundles")
    .query(&["status", "page", "size"])
    .response(Shape::Members(&[
        "bundleUuid",
        "name",
        "description",
        "autoApply",
        "status",
    ]));
pub static CREATE_BUNDLE: Operation = post("/tenant/supplier-bundles").request(BUNDLE_MEMBERS);
pub static UPDATE_BUNDLE: Operation =
    patch("/tenant/supplier-bundles/{bundleUuid}").request(BUNDLE_MEMBERS);
pub static PUBLISH_BUNDLE: Operation = post("/tenant/supplier-bundles/{bundleUuid}/publish");
const BUNDLE_APPS_PATH: &str = "/tenant/supplier-bundles/{bundleUuid}/apps";
const BUNDLE_DEVICES_PATH: &str = "/tenant/supplier-bundles/{bundleUuid}/devices";
const BUNDLE_PIPELINES_PATH: &str = "/tenant/supplier-bundles/{bundleUuid}/pipelines";
const BUNDLE_APP: &[&str] = &["appUuid", "appReleaseUuid", "channel"];
const BUNDLE_DEVICE: &[&str] = &["deviceUuid", "quantity"];

pub static BUNDLE_APPS: Operation = get(BUNDLE_APPS_PATH).response(Shape::Members(BUNDLE_APP));
pub static REPLACE_BUNDLE_APPS: Operation = put(BUNDLE_APPS_PATH).request(BUNDLE_APP);
pub static BUNDLE_DEVICES: Operation =
    get(BUNDLE_DEVICES_PATH).response(Shape::Members(BUNDLE_DEVICE));
pub static REPLACE_BUNDLE_DEVICES: Operation = put(BUNDLE_DEVICES_PATH).request(BUNDLE_DEVICE);
pub static BUNDLE_PIPELINES: Operation = get(BUNDLE_PIPELINES_PATH);
pub static REPLACE_BUNDLE_PIPELINES: Operation = put(BUNDLE_PIPELINES_PATH);

pub static HEALTH: Operation = get("/healthz").response(Shape::Members(&["version"]));
pub static PERSONAS: Operation =
    get("/tenant/personas").response(Shape::Members(&["members", "invitations"]));
pub static API_KEYS: Operation =
    get("/tenant/api-keys").response(Shape::Members(&["apiKeyId", "name", "active"]));
pub static AUDIT_LOGS: Operation = get("/tenant/audit-logs").query(&["page", "size", "from", "to"]);
pub static SUPPLIER_OAUTH_CONFIG: Operation = get("/tenant/supplier-oauth-config");
pub static CONSENT_SETTING: Operation =
    get("/tenant/consent-settings").response(Shape::Members(CONSENT_SETTING_MEMBERS));
pub static PUT_CONSENT_SETTING: Operation =
    post("/tenant/consent-settings").request(CONSENT_SETTING_MEMBERS);
pub static CONSENT_RECORDS: Operation =
    get("/tenant/consent-records").response(Shape::Members(&["consentId", "status"]));
pub static MANDATES: Operation =
    get("/tenant/mandates").response(Shape::Members(&["mandateUuid", "status"]));
pub static TRADE_SECRETS: Operation =
    get("/tenant/trade-secrets").response(Shape::Members(&["quantity", "reason"]));
pub static PUT_TRADE_SECRETS: Operation = put("/tenant/trade-secrets").request(&["tradeSecrets"]);

pub const CONSENT_SETTING_MEMBERS: &[&str] = &[
    "version",
    "text",
    "url",
    "purposes",
    "selfPairing",
    "enforce",
];

pub static UPDATE_HUB: Operation =
    patch("/tenant/hubs/{hubUuid}").request(&["hubIdentifier", "description", "country"]);
pub static HUB_APPS: Operation = get("/tenant/hubs/{hubUuid}/apps");
pub static HUB_TELEMETRY: Operation = get("/tenant/hubs/{hubUuid}/telemetry")
    .query(&["page", "size", "from", "to"])
    .response(Shape::Members(&["hubTelemetryId", "receivedAt"]))
    .large_records();

/// The members of a device that are set when it is registered, without its keys.
pub const DEVICE_MEMBERS: &[&str] = &[
    "deviceUuid",
    "name",
    "address",
    "addressType",
    "beacon",
    "serialNumber",
    "deviceVersionUuid",
    "labels",
    "calibration",
];

pub static CREATE_DEVICE: Operation = post("/tenant/devices")
    .request(DEVICE_MEMBERS)
    .response(DEVICE);
pub static UPDATE_DEVICE: Operation = patch("/tenant/devices/{deviceInstanceId}")
    .request(&[
        "name",
        "serialNumber",
        "deviceVersionUuid",
        "labels",
        "calibration",
    ])
    .response(DEVICE);
pub static ACTIVATE_DEVICE: Operation =
    post("/tenant/devices/{deviceInstanceId}/activate").response(DEVICE);
pub static SUSPEND_DEVICE: Operation =
    post("/tenant/devices/{deviceInstanceId}/suspend").response(DEVICE);
pub static DEVICE_VALUES: Operation =
    get("/tenant/devices/{deviceInstanceId}/sensor-data").query(&["from", "to", "every"]);
pub static IMPORT_DEVICE_VALUES: Operation = post("/tenant/devices/{deviceInstanceId}/sensor-data")
    .request(&["values"])
    .response(Shape::Members(&["imported", "leftOut"]));

pub static DASHBOARDS: Operation =
    get("/tenant/dashboards").response(Shape::Members(DASHBOARD_MEMBERS));
pub static CREATE_DASHBOARD: Operation = post("/tenant/dashboards").request(DASHBOARD_MEMBERS);

pub const DASHBOARD_MEMBERS: &[&str] = &["name", "onOverview", "tiles"];

const FLOOR_PLANS_PATH: &str = "/tenant/floor-plans";
const FLOOR_PLAN_MEMBERS: &[&str] = &["name", "widthMetres", "hubs"];
const FLOOR_PLAN: Shape =
    Shape::Members(&["floorPlanUuid", "name", "widthMetres", "image", "hubs"]);

pub static FLOOR_PLANS: Operation = get(FLOOR_PLANS_PATH).response(FLOOR_PLAN);
pub static CREATE_FLOOR_PLAN: Operation = post(FLOOR_PLANS_PATH)
    .request(FLOOR_PLAN_MEMBERS)
    .response(FLOOR_PLAN);
pub static UPDATE_FLOOR_PLAN: Operation = patch("/tenant/floor-plans/{floorPlanUuid}")
    .request(FLOOR_PLAN_MEMBERS)
    .response(FLOOR_PLAN);
pub static FLOOR_PLAN_IMAGE: Operation = get("/tenant/floor-plans/{floorPlanUuid}/image");
pub static PUT_FLOOR_PLAN_IMAGE: Operation = put("/tenant/floor-plans/{floorPlanUuid}/image");

/// The members of a notice setting.
pub const NOTICE_MEMBERS: &[&str] = &["type", "channel", "enabled", "target", "threshold"];

pub static NOTICE_SETTINGS: Operation =
    get("/tenant/notification-settings").response(Shape::Members(NOTICE_MEMBERS));
pub static PUT_NOTICE_SETTING: Operation =
    put("/tenant/notification-settings").request(NOTICE_MEMBERS);

/// The members of an update policy's terms.
pub const POLICY_MEMBERS: &[&str] = &[
    "scope",
    "hubUuid",
    "channel",
    "version",
    "autoUpdate",
    "window",
    "rollout",
];

pub static PUT_POLICY: Operation = put("/tenant/agent-update-policies").request(POLICY_MEMBERS);

pub static CREATE_ENDPOINT: Operation =
    post("/tenant/external-endpoints").request(&["name", "baseUrl", "verify_method"]);

/// Every operation above.
pub static ALL: &[&Operation] = &[
    &SIGN_IN_METHODS,
    &REGISTER,
    &LOG_IN,
    &REFRESH,
    &LOG_OUT,
    &TENANTS,
    &CREATE_TENANT,
    &CALLER,
    &HUBS,
    &HUB,
    &RELEASE_HUB,
    &READMIT_HUB,
    &HUB_JOBS,
    &HUB_JOB,
    &INSTALL_APP,
    &MOVE_HUB,
    &HUB_LOGS,
    &HUB_LOG_STREAM,
    &BLOCK_HUB,
    &UNBLOCK_HUB,
    &CLAIM_CODES,
    &CREATE_CLAIM_CODE,
    &REVOKE_CLAIM_CODE,
    &DEVICES,
    &DEVICE_BY_ID,
    &BLE_EVENTS,
    &BLE_EVENT_STREAM,
    &HISTORY,
    &HISTORY_FILES,
    &VULNERABILITIES,
    &VULNERABLE_HUBS,
    &PUT_STATEMENT,
    &VULNERABILITY_REPORT,
    &DEPENDENCY_TRACK,
    &SET_DEPENDENCY_TRACK,
    &REMOVE_DEPENDENCY_TRACK,
    &VULNERABILITY_EVIDENCE,
    &KEY_SET,
    &OPENVEX,
    &ADVISORIES,
    &CREATE_ADVISORY,
    &APPS,
    &CREATE_APP,
    &APP_RELEASES,
    &CREATE_APP_RELEASE,
    &UPDATE_APP_RELEASE,
    &RELEASE_FILE_URL,
    &RELEASE_DOCUMENT,
    &PUT_RELEASE_DOCUMENT,
    &POLICIES,
    &POLICY_BY_UUID,
    &HALT_ROLLOUT,
    &RESUME_ROLLOUT,
    &PLATFORM_POLICIES,
    &HALT_PLATFORM_ROLLOUT,
    &RESUME_PLATFORM_ROLLOUT,
    &PIPELINES,
    &PIPELINE_DOCUMENTS,
    &CREATE_PIPELINE,
    &REPLACE_PIPELINE,
    &DELETE_PIPELINE,
    &ROUTE,
    &REPLACE_ROUTE,
    &MODELS,
    &CREATE_MODEL,
    &CREATE_MODEL_FROM_TEMPLATE,
    &UPDATE_MODEL,
    &DEVICE_LIBRARY,
    &IDENTIFIERS,
    &CREATE_IDENTIFIER,
    &UPDATE_IDENTIFIER,
    &DELETE_IDENTIFIER,
    &PROTOCOLS,
    &CREATE_PROTOCOL,
    &UPDATE_PROTOCOL,
    &DELETE_PROTOCOL,
    &VERSIONS,
    &CREATE_VERSION,
    &UPDATE_VERSION,
    &DELETE_VERSION,
    &FORMS,
    &CREATE_FORM,
    &UPDATE_FORM,
    &DELETE_FORM,
    &MANUALS,
    &CREATE_MANUAL,
    &UPDATE_MANUAL,
    &DELETE_MANUAL,
    &ACTIONS,
    &CREATE_ACTION,
    &UPDATE_ACTION,
    &ENDPOINTS,
    &BUNDLES,
    &CREATE_BUNDLE,
    &UPDATE_BUNDLE,
    &PUBLISH_BUNDLE,
    &BUNDLE_APPS,
    &REPLACE_BUNDLE_APPS,
    &BUNDLE_DEVICES,
    &REPLACE_BUNDLE_DEVICES,
    &BUNDLE_PIPELINES,
    &REPLACE_BUNDLE_PIPELINES,
    &HEALTH,
    &PERSONAS,
    &API_KEYS,
    &AUDIT_LOGS,
    &SUPPLIER_OAUTH_CONFIG,
    &CONSENT_SETTING,
    &PUT_CONSENT_SETTING,
    &CONSENT_RECORDS,
    &MANDATES,
    &TRADE_SECRETS,
    &PUT_TRADE_SECRETS,
    &UPDATE_HUB,
    &HUB_APPS,
    &HUB_TELEMETRY,
    &CREATE_DEVICE,
    &UPDATE_DEVICE,
    &ACTIVATE_DEVICE,
    &SUSPEND_DEVICE,
    &DEVICE_VALUES,
    &IMPORT_DEVICE_VALUES,
    &DASHBOARDS,
    &CREATE_DASHBOARD,
    &FLOOR_PLANS,
    &CREATE_FLOOR_PLAN,
    &UPDATE_FLOOR_PLAN,
    &FLOOR_PLAN_IMAGE,
    &PUT_FLOOR_PLAN_IMAGE,
    &NOTICE_SETTINGS,
    &PUT_NOTICE_SETTING,
    &PUT_POLICY,
    &CREATE_ENDPOINT,
];
