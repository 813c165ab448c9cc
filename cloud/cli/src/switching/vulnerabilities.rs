//! Own advisories, statements on vulnerabilities, and the server of Dependency-Track.

use std::collections::{BTreeMap, BTreeSet};

use hub_client::operations;
use serde_json::{Value, json};

use super::archive::{self, STATEMENTS};
use super::devices;
use super::importer::Import;
use super::report::some;
use crate::config::{State, members, set, text};
use crate::failure::Failure;

/// The environment variable with the key of Dependency-Track.
const KEY_VARIABLE: &str = "HUB_SECRET_DEPENDENCY_TRACK";
const ADVISORIES: &str = "advisories";
const ADVISORIES_FILE: &str = "advisories.ndjson";

/// Advisories about apps and models that are here.
pub async fn advisories(import: &mut Import<'_>, state: &State) -> Result<(), Failure> {
    let mut old = archive::records(import.directory, ADVISORIES_FILE)?;
    if old.is_empty() {
        return Ok(());
    }
    // The list begins with the newest.
    old.reverse();
    let apps = apps(import, state)?;
    let models = devices::models(import, state)?;
    let call = operations::ADVISORIES.call();
    let here = import.client.list::<Value>(call).await?;
    let here: BTreeSet<String> = here.iter().map(|one| text(one, "id")).collect();
    for advisory in old {
        let id = text(&advisory, "id");
        let key = format!("advisory/{id}");
        if here.contains(&id) {
            import.report.there(ADVISORIES);
            continue;
        }
        // Somebody has deleted it since.
        if import.journal.id(&key).is_some() {
            continue;
        }
        let mut body = members(&advisory, operations::ADVISORY_MEMBERS);
        if let Value::Object(members) = &mut body {
            members.retain(|_, value| !value.is_null());
            // The vector gives it.
            if members.contains_key("cvssVector") {
                members.remove("severity");
            }
        }
        let Some(affected) = affected(&advisory, &apps, &models) else {
            let message = format!("{ADVISORIES}: {id}: an app or a model of it is not here");
            import.report.failed.push(message);
            continue;
        };
        set(&mut body, "affected", Some(Value::Array(affected)));
        let call = operations::CREATE_ADVISORY.call().body(body);
        if import.create(ADVISORIES, &id, &key, call).await?.is_some() {
            import.journal.done(&key, Value::Null)?;
        }
    }
    Ok(())
}

/// Apps of this tenant by their ids in the export. In a plan, one that will be created has its old
/// id.
fn apps(import: &Import<'_>, state: &State) -> Result<BTreeMap<String, String>, Failure> {
    let mut found = BTreeMap::new();
    for app in archive::records(import.directory, "apps.ndjson")? {
        let old = text(&app, "appUuid");
        let reference = json!(format!("${{app:{}}}", text(&app, "name")));
        match (state.names.resolved(reference), import.is_plan) {
            (Ok(Value::String(new)), _) => drop(found.insert(old, new)),
            (_, true) => drop(found.insert(old.clone(), old)),
            (_, false) => {}
        }
    }
    Ok(found)
}

/// What an advisory affects, with the ids of this tenant; none if something is not here.
fn affected(
    advisory: &Value,
    apps: &BTreeMap<String, String>,
    models: &BTreeMap<String, String>,
) -> Option<Vec<Value>> {
    let items = advisory.get("affected").and_then(Value::as_array);
    let mut found = Vec::new();
    for item in items.into_iter().flatten() {
        let mut item = item.clone();
        for (member, ids) in [("appUuid", apps), ("deviceUuid", models)] {
            let old = text(&item, member);
            if !old.is_empty() {
                let new = ids.get(&old)?;
                set(&mut item, member, Some(Value::from(new.as_str())));
            }
        }
        found.push(item);
    }
    Some(found)
}

/// What a statement is about: a vulnerability, and a release or all hubs.
type Subject = (String, Option<String>);

/// Statements of a document of OpenVEX as requests of the API, without their releases. A product
/// that is the tenant itself stands for all hubs.
fn read(document: &Value, tenant: &str) -> Vec<(Subject, Value)> {
    const NAMES: [(&str, &str); 4] = [
        ("status", "status"),
        ("justification", "justification"),
        ("impact_statement", "impactStatement"),
        ("action_statement", "actionStatement"),
    ];
    let statements = document.get("statements").and_then(Value::as_array);
    let mut found = Vec::new();
    for statement in statements.into_iter().flatten() {
        let vulnerability = statement.get("vulnerability").map(|one| text(one, "name"));
        let product = statement.pointer("/products/0").map(|one| text(one, "@id"));
        let (Some(vulnerability), Some(product)) = (vulnerability, product) else {
            continue;
        };
        let product = product.trim_start_matches("urn:uuid:").to_owned();
        let release = Some(product).filter(|product| product != tenant);
        let given = NAMES.iter().filter_map(|(name, member)| {
            let value = statement.get(*name)?;
            Some(((*member).to_owned(), value.clone()))
        });
        let given = Value::Object(given.collect());
        found.push(((vulnerability, release), given));
    }
    found
}

/// The ids of vulnerabilities that the service has found here, and of own advisories; in a plan
/// also of those that will be created.
async fn known(import: &Import<'_>) -> Result<BTreeSet<String>, Failure> {
    let client = &import.client;
    let mut found = client
        .list::<Value>(operations::VULNERABILITIES.call())
        .await?;
    found.extend(match import.is_plan {
        true => archive::records(import.directory, ADVISORIES_FILE)?,
        false => client.list(operations::ADVISORIES.call()).await?,
    });
    Ok(found.iter().map(|one| text(one, "id")).collect())
}

/// Statements about vulnerabilities that the service has found here, or that are own advisories.
pub async fn statements(import: &mut Import<'_>, old_tenant: &str) -> Result<(), Failure> {
    const KIND: &str = "statements";
    let path = import.directory.join(STATEMENTS);
    if !path.is_file() {
        return Ok(());
    }
    let old = read(&archive::read_document(&path)?, old_tenant);
    let here = match import.client.file(operations::OPENVEX.call()).await {
        Ok(document) => {
            let document: Value = serde_json::from_slice(&document)?;
            read(&document, &import.tenant_uuid.to_string())
        }
        Err(error) if error.status() == Some(404) => Vec::new(),
        Err(error) => return Err(error.into()),
    };
    let here: BTreeMap<Subject, Value> = here.into_iter().collect();
    let known = known(import).await?;
    let (mut not_found, mut of_no_release) = (BTreeSet::new(), BTreeSet::new());
    for ((vulnerability, old_release), mut body) in old {
        let key = match &old_release {
            Some(release) => format!("statement/{vulnerability}/{release}"),
            None => format!("statement/{vulnerability}"),
        };
        let release = match &old_release {
            None => None,
            Some(old) => match import.releases.get(old) {
                Some(new) => Some(new.clone()),
                None => {
                    of_no_release.insert(vulnerability);
                    continue;
                }
            },
        };
        let subject = (vulnerability, release);
        if let Some(there) = here.get(&subject) {
            import.report.there(KIND);
            if *there != body {
                let message = format!("{KIND}: {}: it is here and differs", subject.0);
                import.report.left.push(message);
            }
            continue;
        }
        let (vulnerability, release) = subject;
        // It was deleted with its advisory.
        if import.journal.id(&key).is_some() {
            continue;
        }
        if !known.contains(&vulnerability) {
            not_found.insert(vulnerability);
            continue;
        }
        set(&mut body, "releaseUuid", release.map(Value::from));
        let call = operations::PUT_STATEMENT
            .call()
            .path("vulnerabilityId", &vulnerability)
            .body(body);
        let made = import.create(KIND, &vulnerability, &key, call).await?;
        if made.is_some() {
            import.journal.done(&key, Value::Null)?;
        }
    }
    if !not_found.is_empty() {
        let not_found: Vec<String> = not_found.into_iter().collect();
        import.report.todo.push(format!(
            "the service has not found these vulnerabilities here; when hubs have reported what \
             they run, run the import again, for the statements on them: {}",
            some(&not_found)
        ));
    }
    if !of_no_release.is_empty() {
        let of_no_release: Vec<String> = of_no_release.into_iter().collect();
        import.report.todo.push(format!(
            "statements on these vulnerabilities are about releases that are not here; publish \
             them, then run the import again: {}",
            some(&of_no_release)
        ));
    }
    Ok(())
}

/// The server of Dependency-Track, if its key is in the environment.
pub async fn dependency_track(import: &mut Import<'_>) -> Result<(), Failure> {
    const KIND: &str = "Dependency-Track";
    let old = archive::records(import.directory, "dependency-track.ndjson")?;
    let Some(old) = old.first().filter(|old| !text(old, "url").is_empty()) else {
        return Ok(());
    };
    let (url, project) = (text(old, "url"), text(old, "project"));
    let call = operations::DEPENDENCY_TRACK.call();
    let here: Value = import.client.call(call).await?;
    if !text(&here, "url").is_empty() {
        import.report.there(KIND);
        if (text(&here, "url"), text(&here, "project")) != (url, project) {
            let message = format!("{KIND}: it is here and differs");
            import.report.left.push(message);
        }
        return Ok(());
    }
    let key = "dependency-track";
    // Somebody has removed it since.
    if import.journal.id(key).is_some() {
        return Ok(());
    }
    let secret = std::env::var(KEY_VARIABLE).ok();
    let Some(secret) = secret.filter(|secret| !secret.is_empty()) else {
        import.report.todo.push(format!(
            "{KIND}: set the environment variable {KEY_VARIABLE} to the API key of {url}, then \
             run the import again"
        ));
        return Ok(());
    };
    import.report.sends.push(format!("{KIND}: {url}"));
    let body = json!({"url": url, "project": project, "apiKey": secret});
    let call = operations::SET_DEPENDENCY_TRACK.call().body(body);
    match import.create(KIND, &url, key, call).await? {
        Some(_) => import.journal.done(key, Value::Null),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_are_about_releases_or_all_hubs() {
        let statement = |about: &str| {
            json!({"vulnerability": {"name": "CVE-1"}, "timestamp": "2026-01-31T08:00:00Z",
                   "products": [{"@id": format!("urn:uuid:{about}")}],
                   "status": "not_affected", "impact_statement": "No."})
        };
        let document = json!({"statements": [statement("tenant"), statement("release"), {}]});
        let given = json!({"status": "not_affected", "impactStatement": "No."});
        let cve = "CVE-1".to_owned();
        assert_eq!(
            read(&document, "tenant"),
            [
                ((cve.clone(), None), given.clone()),
                ((cve, Some("release".to_owned())), given)
            ]
        );
    }

    #[test]
    fn advisories_about_what_is_not_here_are_not_created() {
        let ids = |old: &str| BTreeMap::from([(old.to_owned(), "new".to_owned())]);
        let advisory = json!({"affected": [{"appUuid": "app", "versions": []}]});
        assert_eq!(
            affected(&advisory, &ids("app"), &ids("model")),
            Some(vec![json!({"appUuid": "new", "versions": []})])
        );
        assert_eq!(affected(&advisory, &ids("other"), &ids("model")), None);
    }
}
