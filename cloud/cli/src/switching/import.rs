//! `hub import tenant`: creates what another tenant had. What is there stays as it is.

use std::collections::BTreeMap;

use hub_client::Client;
use serde_json::json;

use super::archive::{self, Manifest};
use super::args::ImportTenantOptions;
use super::importer::Import;
use super::journal::Journal;
use super::report::Report;
use super::{
    Caller, caller, configuration, devices, releases, settings, sites, values, vulnerabilities,
};
use crate::connect::in_tenant;
use crate::failure::Failure;
use crate::global::Global;
use crate::terminal::{confirm, note, print, print_json};
use crate::text::printable;

pub async fn import(global: &Global, options: &ImportTenantOptions) -> Result<(), Failure> {
    let directory = options.directory.as_path();
    note("Checking the files ...");
    let (manifest, digest) = archive::open(directory)?;
    let client = in_tenant(global).await?.patient();
    let here = caller(&client).await?;
    check_tenant(&client, &manifest, &here)?;
    let path = archive::beside(directory, &format!("{}.import.ndjson", here.tenant_uuid))?;
    let head = json!({
        "format": archive::FORMAT, "manifest": digest, "tenantUuid": here.tenant_uuid,
        "serviceUrl": client.service().to_string(),
    });
    let mut import = Import {
        client,
        directory,
        tenant_uuid: here.tenant_uuid,
        is_plan: true,
        makes_claim_codes: options.claim_codes,
        journal: Journal::read(path, head)?,
        report: Report::default(),
        hubs: BTreeMap::new(),
        devices: BTreeMap::new(),
        releases: BTreeMap::new(),
    };
    let what = format!(
        "The export of the tenant {} at {}, of {}, with {} files, is imported into {} at {}.",
        printable(&manifest.begun.tenant_name),
        printable(&manifest.begun.service_url),
        manifest.begun.began_at,
        manifest.files.len(),
        printable(&here.tenant_name),
        import.client.service()
    );
    if !global.json {
        note(&what);
    }
    run(&mut import, &manifest).await?;
    if options.dry_run || import.report.changes_nothing() {
        return finish(global, &import, &manifest, options.dry_run);
    }
    if !global.json {
        import.report.print_counts(true)?;
    }
    let what = "These objects are created; pipelines and bundles take effect immediately.";
    confirm(what, options.consent.yes)?;
    import.journal.start()?;
    import.is_plan = false;
    import.report = Report::default();
    import.hubs.clear();
    import.devices.clear();
    import.releases.clear();
    if let Err(failure) = run(&mut import, &manifest).await {
        let message = format!(
            "{}; the import is not finished, run the same command again to continue",
            failure.message
        );
        return Err(Failure { message, ..failure });
    }
    finish(global, &import, &manifest, false)
}

/// A tenant is not imported into itself.
fn check_tenant(client: &Client, manifest: &Manifest, here: &Caller) -> Result<(), Failure> {
    let is_same = manifest.begun.tenant_uuid == here.tenant_uuid
        && manifest.begun.service_url == client.service().to_string();
    match is_same {
        false => Ok(()),
        true => Err(Failure::usage(
            "this is the tenant that was exported; choose another one with --tenant, --profile or \
             --service-url",
        )),
    }
}

fn finish(
    global: &Global,
    import: &Import<'_>,
    manifest: &Manifest,
    is_dry: bool,
) -> Result<(), Failure> {
    let report = &import.report;
    if global.json {
        print_json(&report.json(import.is_plan))?;
    } else {
        report.print_counts(import.is_plan)?;
        report.print_todo()?;
        let is_of_history = |path: &str| {
            let folders = ["events/", "telemetry/", "logs/", "audit/"];
            folders.iter().any(|folder| path.starts_with(folder))
        };
        let history = manifest
            .files
            .iter()
            .filter(|file| is_of_history(&file.path));
        let records: u64 = history.filter_map(|file| file.records).sum();
        note(&format!(
            "Events, telemetry, logs and the audit log, {records} records, are not imported: keep the folder."
        ));
        print(match (is_dry, report.changes_nothing()) {
            (true, _) => "Nothing was changed (--dry-run).\n",
            (false, true) => "Nothing to create.\n",
            (false, false) => "Done.\n",
        })?;
    }
    match report.failed.len() {
        0 => Ok(()),
        number => Err(Failure::failed(format!(
            "{number} objects could not be created; correct the cause and run the same command again"
        ))),
    }
}

/// Creates everything, in the order in which objects name each other.
async fn run(import: &mut Import<'_>, manifest: &Manifest) -> Result<(), Failure> {
    let old_tenant = manifest.begun.tenant_uuid.to_string();
    sites::hubs(import).await?;
    settings::endpoints(import).await?;
    let (documents, mut state) = configuration::read(import).await?;
    let first = ["apps", "models", "actions"];
    configuration::import(import, &mut state, &documents, &first).await?;
    releases::import(import, &mut state).await?;
    devices::import(import, &state).await?;
    let second = ["pipelines", "route", "bundles"];
    configuration::import(import, &mut state, &documents, &second).await?;
    vulnerabilities::advisories(import, &state).await?;
    vulnerabilities::statements(import, &old_tenant).await?;
    vulnerabilities::dependency_track(import).await?;
    settings::dashboards(import).await?;
    sites::floor_plans(import).await?;
    sites::policies(import).await?;
    settings::notices(import).await?;
    settings::consent(import).await?;
    settings::trade_secrets(import).await?;
    settings::people(import)?;
    values::import(import, manifest.begun.began_at).await
}
