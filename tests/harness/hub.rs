//! A hub that exists only as its requests.

use hub_base::clock::Clock;
use hub_protocol::ble::{Advertisement, BleEvent, BleEventUpload, BleUploadResult, Payload};
use hub_protocol::claim::{HubAccess, HubCredentials};
use hub_protocol::{BatchUuid, HubUuid};
use serde_json::json;
use uuid::Uuid;

use crate::client::{Call, Client, Reply};
use crate::people::Tenant;

#[derive(Clone)]
pub struct SimulatedHub {
    pub hub_uuid: HubUuid,
    pub device_instance_id: String,
    pub credentials: HubCredentials,
    /// Carries the access token.
    pub client: Client,
}

impl SimulatedHub {
    /// New hardware, claimed for the tenant.
    pub async fn claim(tenant: &Tenant) -> Self {
        let code = tenant.claim_code().await;
        let anyone = Client::new(&tenant.client.url);
        Self::claim_with(&anyone, &code, &Uuid::new_v4().to_string()).await
    }

    pub async fn claim_with(client: &Client, claim_code: &str, device_instance_id: &str) -> Self {
        let body = json!({"claimCode": claim_code, "deviceInstanceId": device_instance_id});
        let credentials: HubCredentials = client
            .post("/v1/hubs/claim")
            .json(&body)
            .call()
            .await
            .expect(201)
            .data();
        Self {
            hub_uuid: credentials.hub_uuid,
            device_instance_id: device_instance_id.to_owned(),
            client: client.bearer(&credentials.access_token),
            credentials,
        }
    }

    /// A new access token in place of the old one.
    pub async fn refresh(&mut self) {
        self.refresh_in(None).await;
    }

    /// As [`Self::refresh`], by the machine in this boot.
    pub async fn refresh_in(&mut self, boot_id: Option<&str>) {
        let body = json!({"refreshToken": self.credentials.refresh_token, "bootId": boot_id});
        let access: HubAccess = self
            .client
            .post("/v1/hubs/refresh")
            .json(&body)
            .call()
            .await
            .expect(200)
            .data();
        self.client = self.client.bearer(&access.access_token);
        self.credentials.access_token = access.access_token;
        self.credentials.expires_at = access.expires_at;
    }

    pub async fn upload(&self, upload: &BleEventUpload) -> Reply {
        self.client.post("/v1/ble/events").json(upload).call().await
    }

    /// Uploads so many events, and fails the test unless all are stored.
    pub async fn upload_events(&self, count: usize) -> BleEventUpload {
        let upload = events(count);
        let result: BleUploadResult = self.upload(&upload).await.expect(201).data();
        assert_eq!(
            (result.accepted, result.duplicate),
            (count as i64, false),
            "{result:?}"
        );
        upload
    }
}

/// A batch of events, each one of its kind.
pub fn events(count: usize) -> BleEventUpload {
    let observed_at = Clock::System.now();
    let event = |index: usize| BleEvent {
        event_uuid: Some(Uuid::now_v7()),
        observed_at: observed_at.plus_micros(index as i64),
        traceparent: None,
        payload: Advertisement {
            adapter_address: Some("00:1A:7D:DA:71:13".to_owned()),
            address: format!("C0:00:00:00:{:02X}:{:02X}", index / 256 % 256, index % 256),
            address_type: Some("random".to_owned()),
            rssi: Some(-40 - (index % 50) as i16),
            manufacturer_data: [("0499".to_owned(), Payload(index.to_be_bytes().to_vec()))].into(),
            ..Advertisement::default()
        },
    };
    BleEventUpload {
        batch_uuid: BatchUuid::new(),
        events: (0..count).map(event).collect(),
    }
}
