//! The parts of an export that are lists and single objects.

use hub_client::{Call, Operation, operations};
use serde_json::{Value, json};

use super::archive::{self, CONFIGURATION, NewFile, STATEMENTS};
use super::exporter::Export;
use super::pages::Pages;
use super::{history, release_files};
use crate::config;
use crate::failure::{Failure, TRY_LATER};

/// All parts of an export.
pub async fn all(export: &mut Export<'_>) -> Result<(), Failure> {
    export.object("tenant", operations::CALLER.call()).await?;
    export.object("people", operations::PERSONAS.call()).await?;
    export.configuration().await?;
    let lists: [(&str, &'static Operation, &'static str); 13] = [
        ("models", &operations::MODELS, "deviceUuid"),
        (
            "device-versions",
            &operations::VERSIONS,
            "deviceVersionUuid",
        ),
        ("endpoints", &operations::ENDPOINTS, "id"),
        ("pipelines", &operations::PIPELINE_DOCUMENTS, "pipelineUuid"),
        ("dashboards", &operations::DASHBOARDS, "dashboardUuid"),
        ("notice-settings", &operations::NOTICE_SETTINGS, ""),
        ("update-policies", &operations::POLICIES, "policyUuid"),
        ("consent-records", &operations::CONSENT_RECORDS, "consentId"),
        ("mandates", &operations::MANDATES, "mandateUuid"),
        ("trade-secrets", &operations::TRADE_SECRETS, "quantity"),
        ("api-keys", &operations::API_KEYS, "apiKeyId"),
        ("vulnerabilities", &operations::VULNERABILITIES, "id"),
        ("advisories", &operations::ADVISORIES, "id"),
    ];
    for (part, operation, id) in lists {
        export.list(part, operation.call(), id).await?;
    }
    export
        .object("consent-setting", operations::CONSENT_SETTING.call())
        .await?;
    let supplier = operations::SUPPLIER_OAUTH_CONFIG.call();
    export.object("supplier-oauth-config", supplier).await?;
    let server = operations::DEPENDENCY_TRACK.call();
    export.object("dependency-track", server).await?;
    export.statements().await?;
    export.floor_plans().await?;
    export.releases().await?;
    release_files::export(export).await?;
    let hubs = export.hubs().await?;
    let devices = export
        .list("devices", operations::DEVICES.call(), "deviceInstanceId")
        .await?;
    history::export(export, &hubs, &devices).await
}

impl Export<'_> {
    /// A file of one record; of none, if there is no such object.
    async fn object(&mut self, part: &str, call: Call) -> Result<(), Failure> {
        let answer = self.client.call::<Value>(call).await;
        let mut file = NewFile::create(self.directory, &format!("{part}.ndjson"))?;
        match answer {
            Ok(record) => file.line(&record)?,
            Err(error) if error.status() == Some(404) => {}
            Err(error) => {
                file.discard();
                return self.leave_out(part, error);
            }
        }
        self.keep(file)
    }

    /// A file of all records of a list. Returns their ids.
    async fn list(
        &mut self,
        part: &str,
        call: Call,
        id: &'static str,
    ) -> Result<Vec<String>, Failure> {
        let mut file = NewFile::create(self.directory, &format!("{part}.ndjson"))?;
        let mut ids = Vec::new();
        let client = self.client.clone();
        let mut pages = Pages::new(&client, call, id);
        loop {
            match pages.next().await {
                Ok(None) => break,
                Ok(Some(records)) => {
                    for record in records {
                        file.line(&record)?;
                        ids.push(config::text(&record, id));
                    }
                }
                Err(error) => {
                    file.discard();
                    self.leave_out(part, error)?;
                    return Ok(Vec::new());
                }
            }
        }
        self.keep(file)?;
        Ok(ids)
    }

    /// The configuration in the form of `hub export`, which the import reads.
    async fn configuration(&mut self) -> Result<(), Failure> {
        let state = match config::read_state(&self.client).await {
            Ok(state) => state,
            Err(failure) if failure.exit_code == TRY_LATER => return Err(failure),
            Err(failure) => {
                self.refuse(CONFIGURATION, failure.message);
                return Ok(());
            }
        };
        let folder = self.directory.join(CONFIGURATION);
        archive::make_folder(&folder)?;
        for name in config::write_all(&folder, &state)? {
            self.keep_finished(&format!("{CONFIGURATION}/{name}"))?;
        }
        Ok(())
    }

    /// What the tenant states about vulnerabilities, as a document of OpenVEX.
    async fn statements(&mut self) -> Result<(), Failure> {
        match self.client.file(operations::OPENVEX.call()).await {
            Ok(document) => {
                let mut file = NewFile::create(self.directory, STATEMENTS)?;
                file.write(&document)?;
                self.keep(file)
            }
            // Nothing is stated.
            Err(error) if error.status() == Some(404) => Ok(()),
            Err(error) => self.leave_out("statements", error),
        }
    }

    async fn floor_plans(&mut self) -> Result<(), Failure> {
        let call = operations::FLOOR_PLANS.call();
        for id in self.list("floor-plans", call, "floorPlanUuid").await? {
            let call = operations::FLOOR_PLAN_IMAGE
                .call()
                .path("floorPlanUuid", &id);
            match self.client.file(call).await {
                Ok(image) => {
                    let name = format!("floor-plan-images/{id}");
                    let mut file = NewFile::create(self.directory, &name)?;
                    file.write(&image)?;
                    self.keep(file)?;
                }
                Err(error) if error.status() == Some(404) => {}
                Err(error) => return self.leave_out("floor-plan-images", error),
            }
        }
        Ok(())
    }

    async fn releases(&mut self) -> Result<(), Failure> {
        let apps = self
            .list("apps", operations::APPS.call(), "appUuid")
            .await?;
        let calls = apps
            .iter()
            .map(|app| operations::APP_RELEASES.call().path("appUuid", app));
        self.lists("releases", calls.collect(), "releaseUuid").await
    }

    /// A file of the records of several lists.
    pub async fn lists(
        &mut self,
        part: &str,
        calls: Vec<Call>,
        id: &'static str,
    ) -> Result<(), Failure> {
        let mut file = NewFile::create(self.directory, &format!("{part}.ndjson"))?;
        let client = self.client.clone();
        for call in calls {
            let mut pages = Pages::new(&client, call, id);
            loop {
                match pages.next().await {
                    Ok(None) => break,
                    Ok(Some(records)) => records.iter().try_for_each(|one| file.line(one))?,
                    // It was deleted meanwhile.
                    Err(error) if error.status() == Some(404) => break,
                    Err(error) => {
                        file.discard();
                        return self.leave_out(part, error);
                    }
                }
            }
        }
        self.keep(file)
    }

    /// Hubs with their details, and the apps that they should have. Returns their ids.
    async fn hubs(&mut self) -> Result<Vec<String>, Failure> {
        let hubs = self
            .list("hubs", operations::HUBS.call(), "hubUuid")
            .await?;
        for (part, operation) in [
            ("hub-details", &operations::HUB),
            ("hub-apps", &operations::HUB_APPS),
        ] {
            let mut file = NewFile::create(self.directory, &format!("{part}.ndjson"))?;
            for hub in &hubs {
                let call = operation.call().path("hubUuid", hub);
                match self.client.call::<Value>(call).await {
                    // A list of apps does not say of which hub it is.
                    Ok(apps @ Value::Array(_)) => {
                        file.line(&json!({"hubUuid": hub, "apps": apps}))?;
                    }
                    Ok(detail) => file.line(&detail)?,
                    Err(error) if error.status() == Some(404) => {}
                    Err(error) => {
                        file.discard();
                        self.leave_out(part, error)?;
                        return Ok(hubs);
                    }
                }
            }
            self.keep(file)?;
        }
        Ok(hubs)
    }
}
