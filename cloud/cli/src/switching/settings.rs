//! Endpoints, dashboards, notices, consent and trade secrets; and what people have to do
//! themselves.

use std::collections::BTreeSet;

use hub_client::operations;
use serde_json::{Value, json};

use super::archive;
use super::importer::Import;
use super::report::some;
use crate::config::{members, set, text};
use crate::failure::Failure;

/// External endpoints without their secrets.
pub async fn endpoints(import: &mut Import<'_>) -> Result<(), Failure> {
    const KIND: &str = "external endpoints";
    let old = archive::records(import.directory, "endpoints.ndjson")?;
    if old.is_empty() {
        return Ok(());
    }
    let here = import
        .client
        .list::<Value>(operations::ENDPOINTS.call())
        .await?;
    let here: BTreeSet<String> = here.iter().map(|endpoint| text(endpoint, "name")).collect();
    for endpoint in old {
        let name = text(&endpoint, "name");
        if here.contains(&name) {
            import.report.there(KIND);
            continue;
        }
        let sends = format!("external endpoints: {name}: {}", text(&endpoint, "baseUrl"));
        import.report.sends.push(sends);
        let body = members(&endpoint, &["name", "baseUrl", "verify_method"]);
        let key = format!("endpoint/{}", text(&endpoint, "id"));
        let call = operations::CREATE_ENDPOINT.call().body(body);
        import.create(KIND, &name, &key, call).await?;
        let secret = match endpoint.get("authConfig") {
            None | Some(Value::Null) => "",
            Some(_) => " and enter its secret",
        };
        import.report.todo.push(format!(
            "prove the domain of the external endpoint {name}{secret}"
        ));
    }
    Ok(())
}

/// Dashboards, with the devices that are here.
pub async fn dashboards(import: &mut Import<'_>) -> Result<(), Failure> {
    const KIND: &str = "dashboards";
    let here = import
        .client
        .list::<Value>(operations::DASHBOARDS.call())
        .await?;
    let here: BTreeSet<String> = here.iter().map(|one| text(one, "name")).collect();
    for dashboard in archive::records(import.directory, "dashboards.ndjson")? {
        let name = text(&dashboard, "name");
        let key = format!("dashboard/{}", text(&dashboard, "dashboardUuid"));
        if here.contains(&name) {
            import.report.there(KIND);
            continue;
        }
        // Somebody has deleted it since.
        if import.journal.id(&key).is_some() {
            continue;
        }
        let mut body = members(&dashboard, operations::DASHBOARD_MEMBERS);
        let (mut tiles, mut dropped) = (Vec::new(), 0_u64);
        for tile in dashboard
            .get("tiles")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
        {
            let old = tile.get("deviceInstanceId").and_then(Value::as_i64);
            match old.and_then(|old| import.devices.get(&old)) {
                Some(new) => {
                    let mut tile = tile.clone();
                    set(&mut tile, "deviceInstanceId", Some(Value::from(*new)));
                    tiles.push(tile);
                }
                None => dropped += 1,
            }
        }
        set(&mut body, "tiles", Some(Value::Array(tiles)));
        if dropped > 0 {
            import.report.left.push(format!(
                "dashboards: {name}: {dropped} tiles are of devices that are not here"
            ));
        }
        let call = operations::CREATE_DASHBOARD.call().body(body);
        if import.create(KIND, &name, &key, call).await?.is_some() {
            import.journal.done(&key, Value::Null)?;
        }
    }
    Ok(())
}

/// Settings of notices that nobody has set here.
pub async fn notices(import: &mut Import<'_>) -> Result<(), Failure> {
    const KIND: &str = "notice settings";
    let target = |setting: &Value| (text(setting, "type"), text(setting, "channel"));
    let is_set = |setting: &Value| !text(setting, "updatedAt").is_empty();
    let call = operations::NOTICE_SETTINGS.call();
    let here = import.client.list::<Value>(call).await?;
    let here: BTreeSet<(String, String)> =
        here.iter().filter(|one| is_set(one)).map(target).collect();
    for setting in archive::records(import.directory, "notice-settings.ndjson")? {
        if !is_set(&setting) {
            continue;
        }
        let (notice, channel) = target(&setting);
        let title = format!("{notice} {channel}");
        if here.contains(&(notice, channel)) {
            import.report.there(KIND);
            continue;
        }
        let target = text(&setting, "target");
        if !target.is_empty() {
            let sends = format!("notice settings: {title}: {target}");
            import.report.sends.push(sends);
        }
        let mut body = members(&setting, operations::NOTICE_MEMBERS);
        if let Value::Object(members) = &mut body {
            members.retain(|_, value| !value.is_null());
        }
        let call = operations::PUT_NOTICE_SETTING.call().body(body);
        import
            .create(KIND, &title, &format!("notice/{title}"), call)
            .await?;
    }
    Ok(())
}

/// The text that people consent to, if there is none here. Their consent was to the other service.
pub async fn consent(import: &mut Import<'_>) -> Result<(), Failure> {
    const KIND: &str = "consent texts";
    let old = archive::records(import.directory, "consent-setting.ndjson")?;
    let Some(old) = old.first() else {
        return Ok(());
    };
    let here = import
        .client
        .call::<Value>(operations::CONSENT_SETTING.call())
        .await;
    match here {
        Ok(_) => import.report.there(KIND),
        Err(error) if error.status() == Some(404) => {
            let body = members(old, operations::CONSENT_SETTING_MEMBERS);
            let version = text(old, "version");
            let call = operations::PUT_CONSENT_SETTING.call().body(body);
            import
                .create(KIND, &version, &format!("consent/{version}"), call)
                .await?;
        }
        Err(error) => return Err(error.into()),
    }
    Ok(())
}

pub async fn trade_secrets(import: &mut Import<'_>) -> Result<(), Failure> {
    const KIND: &str = "trade secrets";
    let old = archive::records(import.directory, "trade-secrets.ndjson")?;
    if old.is_empty() {
        return Ok(());
    }
    let call = operations::TRADE_SECRETS.call();
    if !import.client.list::<Value>(call).await?.is_empty() {
        import.report.there(KIND);
        return Ok(());
    }
    let secrets: Vec<Value> = old
        .iter()
        .map(|one| members(one, &["quantity", "reason"]))
        .collect();
    let body = json!({"tradeSecrets": secrets});
    let call = operations::PUT_TRADE_SECRETS.call().body(body);
    import
        .create(KIND, "all", "trade-secrets", call)
        .await
        .map(drop)
}

/// What no program can do for people.
pub fn people(import: &mut Import<'_>) -> Result<(), Failure> {
    let directory = import.directory;
    let mut todo = Vec::new();
    for record in archive::records(directory, "people.ndjson")? {
        let members = record.get("members").and_then(Value::as_array);
        let members: Vec<String> = members.into_iter().flatten().map(member).collect();
        if members.len() > 1 {
            todo.push(format!("invite the members: {}", some(&members)));
        }
    }
    let keys: Vec<String> = archive::records(directory, "api-keys.ndjson")?
        .iter()
        .filter(|key| key.get("active") == Some(&Value::Bool(true)))
        .map(|key| text(key, "name"))
        .collect();
    if !keys.is_empty() {
        todo.push(format!("create new API keys: {}", some(&keys)));
    }
    if !archive::records(directory, "supplier-oauth-config.ndjson")?.is_empty() {
        let text =
            "enter the supplier configuration with its secrets (supplier-oauth-config.ndjson)";
        todo.push(text.to_owned());
    }
    for (file, status, what) in [
        ("consent-records.ndjson", "GRANTED", "consents"),
        ("mandates.ndjson", "IN_FORCE", "mandates"),
    ] {
        let records = archive::records(directory, file)?;
        let held = records.iter().filter(|one| text(one, "status") == status);
        match held.count() {
            0 => {}
            number => todo.push(format!("ask people to grant {number} {what} anew")),
        }
    }
    import.report.todo.extend(todo);
    Ok(())
}

fn member(record: &Value) -> String {
    let names = ["email", "nickname", "personaUuid"].map(|name| text(record, name));
    let name = names.into_iter().find(|name| !name.is_empty());
    format!("{} ({})", name.unwrap_or_default(), text(record, "role"))
}
