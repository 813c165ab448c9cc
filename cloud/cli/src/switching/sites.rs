//! Hubs, which claim anew, and what names them: floor plans and update policies.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

use hub_client::operations;
use serde_json::{Value, json};

use super::archive::{self, failed};
use super::importer::Import;
use super::report::some;
use crate::config::{members, set, text};
use crate::failure::Failure;

const CODE_VALID_SECS: i64 = 30 * 86_400;

/// Finds the hubs that have claimed here by their hardware identity, and gives them the names that
/// they had. The others get claim codes, if that is wanted.
pub async fn hubs(import: &mut Import<'_>) -> Result<(), Failure> {
    let mut here = BTreeMap::new();
    for hub in import.client.list::<Value>(operations::HUBS.call()).await? {
        here.insert(text(&hub, "deviceInstanceId"), hub);
    }
    let details: BTreeMap<String, Value> =
        archive::records(import.directory, "hub-details.ndjson")?
            .into_iter()
            .map(|hub| (text(&hub, "hubUuid"), hub))
            .collect();
    let mut waiting = Vec::new();
    for listed in archive::records(import.directory, "hubs.ndjson")? {
        let old = text(&listed, "hubUuid");
        let hub = details.get(&old).unwrap_or(&listed);
        match here.get(&text(hub, "deviceInstanceId")) {
            Some(claimed) => {
                let new = text(claimed, "hubUuid");
                import.hubs.insert(old.clone(), new.clone());
                import.report.there("hubs");
                name_hub(import, hub, claimed, (old.as_str(), new.as_str())).await?;
            }
            None => {
                claim_code(import, hub, &old).await?;
                waiting.push(hub_title(hub));
            }
        }
    }
    if waiting.is_empty() {
        return Ok(());
    }
    let codes = codes_file(import)?;
    let how = match import.makes_claim_codes || codes.exists() {
        true => format!("their codes are in {}", codes.display()),
        false => "--claim-codes makes a code for each".to_owned(),
    };
    import.report.todo.push(format!(
        "{} hubs have not claimed here: {}; {how}. Then run the import again, for their floor plans, \
         routes and policies",
        waiting.len(),
        some(&waiting)
    ));
    Ok(())
}

fn hub_title(hub: &Value) -> String {
    let names = ["hubIdentifier", "hostname", "deviceInstanceId"];
    let names = names.map(|member| text(hub, member));
    names
        .into_iter()
        .find(|name| !name.is_empty())
        .unwrap_or_default()
}

/// Label, description and country of a hub, where it has none here.
async fn name_hub(
    import: &mut Import<'_>,
    hub: &Value,
    claimed: &Value,
    (old, new): (&str, &str),
) -> Result<(), Failure> {
    let key = format!("hub/{old}");
    if import.journal.id(&key).is_some() {
        return Ok(());
    }
    let call = operations::HUB.call().path("hubUuid", new);
    let detail: Value = import.client.call(call).await?;
    let mut body = json!({});
    for (member, at) in [
        ("hubIdentifier", claimed),
        ("description", &detail),
        ("country", &detail),
    ] {
        let name = text(hub, member);
        if text(at, member).is_empty() && !name.is_empty() {
            set(&mut body, member, Some(Value::from(name)));
        }
    }
    if body.as_object().is_some_and(|members| !members.is_empty()) {
        let call = operations::UPDATE_HUB
            .call()
            .path("hubUuid", new)
            .body(body);
        let title = hub_title(hub);
        let made = import.create("names of hubs", &title, &key, call).await?;
        if made.is_none() {
            return Ok(());
        }
    }
    match import.is_plan {
        true => Ok(()),
        false => import.journal.done(&key, Value::from(new)),
    }
}

/// The file of claim codes: beside the folder, as the journal is.
fn codes_file(import: &Import<'_>) -> Result<PathBuf, Failure> {
    let suffix = format!("{}.claim-codes.tsv", import.tenant_uuid);
    archive::beside(import.directory, &suffix)
}

async fn claim_code(import: &mut Import<'_>, hub: &Value, old: &str) -> Result<(), Failure> {
    let key = format!("claim/{old}");
    let is_blocked = text(hub, "status") == "BLOCKED";
    if !import.makes_claim_codes || is_blocked || import.journal.id(&key).is_some() {
        return Ok(());
    }
    let label = Some(text(hub, "hubIdentifier")).filter(|label| !label.is_empty());
    let call = operations::CREATE_CLAIM_CODE.call().body(json!({
        "maxUses": 1, "validForSeconds": CODE_VALID_SECS, "hubIdentifier": label,
        "note": format!("moves from another service, where it was {old}"),
    }));
    let made = import
        .create("claim codes", &hub_title(hub), &key, call)
        .await?;
    let Some(made) = made else { return Ok(()) };
    let path = codes_file(import)?;
    let line = format!(
        "{}\t{}\t{}\n",
        text(&made, "claimCode"),
        text(hub, "deviceInstanceId"),
        hub_title(hub).replace(['\t', '\n', '\r'], " ")
    );
    OpenOptions::new()
        .append(true)
        .create(true)
        .mode(0o600)
        .open(&path)
        .and_then(|mut file| file.write_all(line.as_bytes()))
        .map_err(|error| failed(&path, error))?;
    import.journal.done(&key, Value::Null)
}

/// The hubs of a plan that are here, at their places.
fn placed(import: &Import<'_>, plan: &Value) -> Vec<Value> {
    let hubs = plan.get("hubs").and_then(Value::as_array);
    let here = |hub: &Value| {
        let new = import.hubs.get(&text(hub, "hubUuid"))?;
        Some(json!({"hubUuid": new, "x": hub.get("x"), "y": hub.get("y")}))
    };
    hubs.into_iter().flatten().filter_map(here).collect()
}

pub async fn floor_plans(import: &mut Import<'_>) -> Result<(), Failure> {
    const KIND: &str = "floor plans";
    let call = operations::FLOOR_PLANS.call();
    let mut here: BTreeMap<String, Value> = BTreeMap::new();
    for plan in import.client.list::<Value>(call).await? {
        here.insert(text(&plan, "name"), plan);
    }
    let mut plans = archive::records(import.directory, "floor-plans.ndjson")?;
    // The list begins with the newest.
    plans.reverse();
    for plan in plans {
        let (old, name) = (text(&plan, "floorPlanUuid"), text(&plan, "name"));
        let key = format!("floor-plan/{old}");
        let is_ours = import.journal.has_begun(&key);
        let hubs = placed(import, &plan);
        let made = match here.get(&name) {
            Some(_) if !is_ours => {
                import.report.there(KIND);
                continue;
            }
            Some(there) => {
                import.report.there(KIND);
                place_further(import, there, hubs, &name).await?;
                there.clone()
            }
            // Somebody has deleted or renamed it since.
            None if import.journal.id(&key).is_some() => continue,
            None => {
                let mut body = members(&plan, &["name", "widthMetres"]);
                set(&mut body, "hubs", Some(Value::Array(hubs)));
                let call = operations::CREATE_FLOOR_PLAN.call().body(body);
                match import.create(KIND, &name, &key, call).await? {
                    Some(made) => made,
                    None => continue,
                }
            }
        };
        let path = import.directory.join(format!("floor-plan-images/{old}"));
        let has_image = made.get("image").is_some_and(|image| !image.is_null());
        if path.is_file() && !has_image && import.journal.id(&key).is_none() {
            let bytes = std::fs::read(&path).map_err(|error| failed(&path, error))?;
            let call = operations::PUT_FLOOR_PLAN_IMAGE
                .call()
                .path("floorPlanUuid", text(&made, "floorPlanUuid"))
                .bytes(bytes);
            let kind = "images of floor plans";
            if import.create(kind, &name, &key, call).await?.is_none() {
                continue;
            }
        }
        if import.is_plan {
            continue;
        }
        if import.journal.id(&key).is_none() {
            import.journal.done(&key, Value::Null)?;
        }
    }
    Ok(())
}

/// Places the hubs that have claimed since the plan was created.
async fn place_further(
    import: &mut Import<'_>,
    there: &Value,
    hubs: Vec<Value>,
    name: &str,
) -> Result<(), Failure> {
    let mut all = there
        .get("hubs")
        .and_then(Value::as_array)
        .cloned()
        .unwrap_or_default();
    let placed: BTreeSet<String> = all.iter().map(|hub| text(hub, "hubUuid")).collect();
    let further: Vec<Value> = hubs
        .into_iter()
        .filter(|hub| !placed.contains(&text(hub, "hubUuid")))
        .collect();
    if further.is_empty() {
        return Ok(());
    }
    import.report.created("hubs on floor plans");
    if import.is_plan {
        return Ok(());
    }
    all.extend(further);
    let call = operations::UPDATE_FLOOR_PLAN
        .call()
        .path("floorPlanUuid", text(there, "floorPlanUuid"))
        .body(json!({"hubs": all}));
    import.send("floor plans", name, call).await.map(drop)
}

/// The policy of the tenant and those of hubs, where there is none.
pub async fn policies(import: &mut Import<'_>) -> Result<(), Failure> {
    const KIND: &str = "update policies";
    let call = operations::POLICIES.call();
    let target = |policy: &Value| (text(policy, "scope"), text(policy, "hubUuid"));
    let here = import.client.list::<Value>(call).await?;
    let here: BTreeSet<(String, String)> = here.iter().map(target).collect();
    for policy in archive::records(import.directory, "update-policies.ndjson")? {
        let mut body = members(&policy, operations::POLICY_MEMBERS);
        match text(&policy, "scope").as_str() {
            "UNIT" => {}
            "HUB" => match import.hubs.get(&text(&policy, "hubUuid")) {
                Some(new) => set(&mut body, "hubUuid", Some(Value::from(new.as_str()))),
                // It is among the hubs that have to claim.
                None => continue,
            },
            // That of the platform, which the tenant only reads.
            _ => continue,
        }
        if here.contains(&target(&body)) {
            import.report.there(KIND);
            continue;
        }
        let title = text(&policy, "scope").to_lowercase();
        let key = format!("policy/{}", text(&policy, "policyUuid"));
        let call = operations::PUT_POLICY.call().body(body);
        import.create(KIND, &title, &key, call).await?;
    }
    Ok(())
}
