//! What hubs run, what is published about it, and who is exposed.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::sync::atomic::Ordering;

use hub_base::db::sql;
use hub_core::tasks::Done;
use hub_exposure::feeds::{self, ImportError, Imported};
use hub_identity::authz::permission::Role;
use hub_protocol::packages::{Package, PackageList, SoftwareReport};
use hub_tests::app::{perform, set_clock};
use hub_tests::release::{make_app, make_app_release};
use hub_tests::{
    Backend, Call, Client, Maker, Options, Recipe, Reply, SimulatedHub, Tenant, TestApp,
    on_each_database,
};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::notices::World;

pub const LIST: &str = "/tenant/vulnerabilities";
const CVE: &str = "CVE-2023-5678";
const SECOND: i64 = 1_000_000;

pub fn package(name: &str, version: &str) -> Package {
    Package {
        name: name.to_owned(),
        version: version.to_owned(),
        architecture: Some("arm64".to_owned()),
        source: None,
        source_version: None,
    }
}

pub fn image(packages: Vec<Package>) -> PackageList {
    PackageList {
        distribution: "debian".to_owned(),
        distribution_version: "12".to_owned(),
        packages,
    }
}

/// An image with this version of openssl, through a binary package of another name.
pub fn image_with(openssl: &str) -> PackageList {
    let library = Package {
        source: Some("openssl".to_owned()),
        ..package("libssl3", openssl)
    };
    image(vec![package("bash", "5.2.15-2"), library])
}

fn report_of(list: &PackageList) -> SoftwareReport {
    SoftwareReport {
        packages_sha256: hex::encode(Sha256::digest(list.canonical())),
        package_list: Some(list.clone()),
        kernel: Some("6.1.0-18-arm64".to_owned()),
        bluez: Some("5.66".to_owned()),
        agent: "1.4.0".to_owned(),
        adapter_firmware: BTreeMap::new(),
    }
}

async fn report(hub: &SimulatedHub, report: &Value) -> Reply {
    let path = format!("/v1/hubs/{}/packages", hub.hub_uuid);
    hub.client.post(&path).json(report).call().await
}

pub async fn runs(hub: &SimulatedHub, list: &PackageList) {
    let said: Value = report(hub, &json!(report_of(list)))
        .await
        .expect(200)
        .data();
    assert_eq!(said["packageListWanted"], false);
}

/// A record of OSV: versions of a package before `fixed` are affected, or all.
pub fn record(cve: &str, package: &str, fixed: Option<&str>, modified: &str) -> Value {
    let mut events = vec![json!({"introduced": "0"})];
    events.extend(fixed.map(|fixed| json!({"fixed": fixed})));
    json!({
        "id": format!("DEBIAN-{cve}"),
        "upstream": [cve],
        "summary": format!("Something is wrong with {package}"),
        "modified": modified,
        "published": "2026-01-01T00:00:00Z",
        "severity": [{"type": "CVSS_V3", "score": "CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:U/C:H/I:H/A:H"}],
        "affected": [{
            "package": {"ecosystem": "Debian:12", "name": package},
            "ranges": [{"type": "ECOSYSTEM", "events": events}],
        }],
    })
}

/// KEV's catalog of a day such as 2026-01-05.
pub fn catalog(cves: &[&str], day: &str) -> Value {
    let known = |cve: &&str| {
        json!({
            "cveID": cve, "vendorProject": "v", "product": "p", "vulnerabilityName": "n",
            "dateAdded": "2026-01-05", "shortDescription": "d", "requiredAction": "a",
            "dueDate": "2026-01-26", "knownRansomwareCampaignUse": "Known",
        })
    };
    json!({
        "title": "CISA Catalog of Known Exploited Vulnerabilities",
        "catalogVersion": day.replace('-', "."),
        "dateReleased": format!("{day}T12:00:00.000Z"),
        "count": cves.len(),
        "vulnerabilities": cves.iter().map(known).collect::<Vec<_>>(),
    })
}

pub async fn import_file(app: &TestApp, path: &Path) -> Result<Imported, ImportError> {
    feeds::import(&app.app, path, |_| {}).await
}

pub async fn import(app: &TestApp, json: &Value) -> Imported {
    let mut file = tempfile::NamedTempFile::new().expect("a file");
    file.write_all(json.to_string().as_bytes())
        .expect("written");
    import_file(app, file.path()).await.expect("an import")
}

/// Matches all lists: on a busy machine that takes more than one turn.
pub async fn match_lists(app: &TestApp) {
    loop {
        let done = perform(&app.app, "exposure.match", json!({})).await;
        if !matches!(done, Done::RunAt(at) if at <= app.app.clock.now()) {
            break;
        }
    }
}

pub async fn get(client: &Client, path: &str) -> Value {
    client.get(path).call().await.expect(200).data()
}

pub async fn ids(client: &Client, query: &str) -> Vec<String> {
    let listed = get(client, &format!("{LIST}{query}")).await;
    let listed = listed.as_array().expect("a list").iter();
    listed
        .map(|one| one["id"].as_str().expect("an id").to_owned())
        .collect()
}

async fn count(app: &TestApp, statement: &'static str) -> i64 {
    let mut conn = app.app.db.read().await.expect("a connection");
    sql(statement).scalar(&mut conn).await.expect("a number")
}

on_each_database!(lists_are_shared_and_equal_reports_change_nothing);
async fn lists_are_shared_and_equal_reports_change_nothing(backend: Backend) {
    let app = TestApp::new(backend).await;
    let tenant = Tenant::create(&app.client()).await;
    let hubs = [
        SimulatedHub::claim(&tenant).await,
        SimulatedHub::claim(&tenant).await,
    ];
    let path = format!("/tenant/hubs/{}/packages", hubs[0].hub_uuid);
    let none = get(&tenant.client, &path).await;
    assert_eq!(
        (&none["system"], &none["packages"]["content"]),
        (&Value::Null, &json!([]))
    );

    let list = image_with("3.0.11-1");
    let alone = SoftwareReport {
        package_list: None,
        ..report_of(&list)
    };
    let said: Value = report(&hubs[0], &json!(alone)).await.expect(200).data();
    assert_eq!(said, json!({"packageListWanted": true}));
    runs(&hubs[0], &list).await;
    // Another hub, and the same one again, need no list any more.
    for hub in [&hubs[0], &hubs[1], &hubs[1]] {
        let said: Value = report(hub, &json!(alone)).await.expect(200).data();
        assert_eq!(said, json!({"packageListWanted": false}));
    }
    assert_eq!(count(&app, "SELECT COUNT(*) FROM package_lists").await, 1);
    assert_eq!(count(&app, "SELECT COUNT(*) FROM hub_software").await, 2);

    let shown = get(&tenant.client, &path).await;
    assert_eq!(shown["system"]["distributionVersion"], "12");
    assert_eq!(shown["system"]["kernel"], "6.1.0-18-arm64");
    assert_eq!(shown["packages"]["totalElements"], 2);
    assert_eq!(shown["packages"]["content"][1], json!(list.packages[1]));
    let found = get(&tenant.client, &format!("{path}?q=OPENSSL")).await;
    assert_eq!(found["packages"]["content"], json!([list.packages[1]]));

    // What differs begins a row; the one before it has an end.
    let newer = SoftwareReport {
        kernel: Some("6.1.0-20-arm64".to_owned()),
        ..alone
    };
    report(&hubs[0], &json!(newer)).await.expect(200);
    assert_eq!(count(&app, "SELECT COUNT(*) FROM hub_software").await, 3);
    let ended = "SELECT COUNT(*) FROM hub_software WHERE ended_at IS NOT NULL";
    assert_eq!(count(&app, ended).await, 1);

    let other = Tenant::create(&app.client()).await;
    other.client.get(&path).call().await.expect(404);
    let foreign = format!("/v1/hubs/{}/packages", hubs[1].hub_uuid);
    hubs[0]
        .client
        .post(&foreign)
        .json(&newer)
        .call()
        .await
        .expect(403);
}

on_each_database!(report_that_is_wrong_names_the_field);
async fn report_that_is_wrong_names_the_field(backend: Backend) {
    let app = TestApp::new(backend).await;
    let tenant = Tenant::create(&app.client()).await;
    let hub = SimulatedHub::claim(&tenant).await;
    let list = image_with("3.0.11-1");
    let good = json!(report_of(&list));
    let with = |change: &dyn Fn(&mut Value)| {
        let mut changed = good.clone();
        change(&mut changed);
        changed
    };
    let many: Vec<Value> = (0..20_001)
        .map(|number| json!({"name": format!("p{number}"), "version": "1"}))
        .collect();
    for (wrong, field) in [
        (
            with(&|report| report["packagesSha256"] = json!("00".repeat(32))),
            "packagesSha256",
        ),
        (
            with(&|report| report["packagesSha256"] = json!("no digits")),
            "packagesSha256",
        ),
        (with(&|report| report["kernel"] = json!("a\nb")), "kernel"),
        (with(&|report| report["agent"] = json!(" ")), "agent"),
        (
            with(&|report| report["packageList"]["packages"][1]["name"] = json!("a\tb")),
            "packageList.packages[1].name",
        ),
        (
            with(&|report| {
                report["packageList"]["packages"][0]["version"] = json!("1".repeat(201))
            }),
            "packageList.packages[0].version",
        ),
        (
            with(&|report| report["packageList"]["packages"] = json!(many)),
            "packageList.packages",
        ),
        (
            with(&|report| report["packageList"]["distribution"] = json!("")),
            "packageList.distribution",
        ),
    ] {
        let problem = report(&hub, &wrong).await.expect(400).problem();
        assert_eq!(problem.errors[0].field, field, "{:?}", problem.errors);
    }
    assert_eq!(count(&app, "SELECT COUNT(*) FROM package_lists").await, 0);
}

on_each_database!(exposed_hub_is_found_and_fixed_by_another_list);
async fn exposed_hub_is_found_and_fixed_by_another_list(backend: Backend) {
    let app = TestApp::new(backend).await;
    let tenant = Tenant::create(&app.client()).await;
    let (old, new) = (
        SimulatedHub::claim(&tenant).await,
        SimulatedHub::claim(&tenant).await,
    );
    runs(&old, &image_with("3.0.11-1")).await;
    runs(&new, &image_with("3.0.13-1")).await;
    import(
        &app,
        &record(CVE, "openssl", Some("3.0.13-1"), "2026-01-02T00:00:00Z"),
    )
    .await;
    import(
        &app,
        &record("CVE-2023-0001", "bash", None, "2026-01-02T00:00:00Z"),
    )
    .await;
    match_lists(&app).await;

    let listed = get(&tenant.client, LIST).await;
    assert_eq!(listed.as_array().map(Vec::len), Some(2), "{listed}");
    let found = get(&tenant.client, &format!("{LIST}?q=cve-2023-5678")).await;
    assert_eq!(
        (
            &found[0]["id"],
            &found[0]["severity"],
            &found[0]["exploited"]
        ),
        (&json!(CVE), &json!("CRITICAL"), &json!(false))
    );
    assert_eq!(
        found[0]["packages"],
        json!([{"ecosystem": "Debian:12", "name": "openssl", "version": "3.0.11-1", "fixedIn": "3.0.13-1"}])
    );
    let hubs = |exposed: i64, not_affected: i64, fixed: i64, updating: i64| json!({"exposed": exposed, "notAffected": not_affected, "fixed": fixed, "updating": updating});
    assert_eq!(found[0]["hubs"], hubs(1, 0, 0, 0));
    assert_eq!(listed[1]["packages"][0]["fixedIn"], Value::Null);
    assert_eq!(listed[1]["hubs"], hubs(2, 0, 0, 0));
    let of = |hub: &SimulatedHub| format!("?hubUuid={}", hub.hub_uuid);
    assert_eq!(ids(&tenant.client, &of(&old)).await.len(), 2);
    assert_eq!(ids(&tenant.client, &of(&new)).await, ["CVE-2023-0001"]);
    assert_eq!(ids(&tenant.client, "?q=openssl").await, [CVE]);
    assert!(ids(&tenant.client, "?severity=LOW").await.is_empty());

    let path = format!("{LIST}/{CVE}/hubs");
    let affected = get(&tenant.client, &path).await;
    assert_eq!(affected.as_array().map(Vec::len), Some(1));
    assert_eq!(affected[0]["hubUuid"], json!(old.hub_uuid));
    assert_eq!(affected[0]["status"], "EXPOSED");

    // Exploited, as soon as CISA says so.
    assert!(ids(&tenant.client, "?exploited=true").await.is_empty());
    import(&app, &catalog(&[CVE], "2026-01-05")).await;
    match_lists(&app).await;
    assert_eq!(ids(&tenant.client, "?exploited=true").await, [CVE]);

    // The hub gets another image.
    runs(&old, &image_with("3.0.13-1")).await;
    match_lists(&app).await;
    let affected = get(&tenant.client, &path).await;
    assert_eq!(affected[0]["status"], "FIXED");
    let found = get(&tenant.client, &format!("{LIST}?q={CVE}")).await;
    assert_eq!(found[0]["hubs"], hubs(0, 0, 1, 0));
    // A hub that left is nobody's concern.
    tenant
        .client
        .delete(&format!("/tenant/hubs/{}", old.hub_uuid))
        .call()
        .await
        .expect(204);
    assert_eq!(get(&tenant.client, &path).await, json!([]));

    let other = Tenant::create(&app.client()).await;
    assert!(ids(&other.client, "").await.is_empty());
    other.client.get(&path).call().await.expect(404);
    let foreign = format!("{LIST}{}", of(&new));
    other.client.get(&foreign).call().await.expect(404);
    let admin = tenant.owner.as_platform_admin(&app);
    let all = get(&admin, "/platform/vulnerabilities?q=CVE-2023-0001").await;
    assert_eq!(
        (&all[0]["tenants"], &all[0]["hubs"]),
        (&json!(1), &json!(1))
    );
    assert_eq!(
        get(&admin, "/platform/vulnerabilities?exploited=true").await[0]["id"],
        CVE
    );
}

on_each_database!(statement_decides_how_hubs_stand);
async fn statement_decides_how_hubs_stand(backend: Backend) {
    let maker = Maker::new();
    let mut options = Options::default();
    options.settings.release_keys = Some(maker.keys());
    let app = TestApp::with(backend, options).await;
    let tenant = Tenant::create(&app.client()).await;
    let (plain, special) = (
        SimulatedHub::claim(&tenant).await,
        SimulatedHub::claim(&tenant).await,
    );
    let list = image_with("3.0.11-1");
    runs(&plain, &list).await;
    runs(&special, &list).await;
    import(
        &app,
        &record(CVE, "openssl", Some("3.0.13-1"), "2026-01-02T00:00:00Z"),
    )
    .await;
    match_lists(&app).await;
    let app_uuid = make_app(&tenant, "logger").await;
    let release = make_app_release(
        &tenant,
        app_uuid,
        &maker,
        &Recipe::app("logger", "1.0.0", 1),
    )
    .await;
    let release = release["releaseUuid"].clone();
    let installed = json!({"apps": [{"appUuid": app_uuid, "releaseUuid": release, "version": "1.0.0",
        "state": "RUNNING", "since": "2026-01-31T08:00:00Z"}]});
    let path = format!("/v1/hubs/{}/installed-apps", special.hub_uuid);
    special
        .client
        .put(&path)
        .json(&installed)
        .call()
        .await
        .expect(204);
    let of_release = format!("?releaseUuid={}", release.as_str().expect("a uuid"));
    assert_eq!(ids(&tenant.client, &of_release).await, [CVE]);
    let nobodys = format!("?releaseUuid={}", plain.hub_uuid);
    assert!(ids(&tenant.client, &nobodys).await.is_empty());

    let path = format!("{LIST}/{CVE}/statement");
    for (wrong, field) in [
        (json!({"status": "not_affected"}), "justification"),
        (json!({"status": "affected"}), "actionStatement"),
        (
            json!({"status": "fixed", "justification": "component_not_present"}),
            "justification",
        ),
        (
            json!({"status": "fixed", "releaseUuid": plain.hub_uuid}),
            "releaseUuid",
        ),
        (json!({"status": "NOT_AFFECTED"}), "status"),
    ] {
        let problem = tenant.client.put(&path).json(&wrong).call().await;
        assert_eq!(problem.expect(400).problem().errors[0].field, field);
    }
    let all = json!({"status": "not_affected", "impactStatement": "Nothing here speaks TLS."});
    let reader = tenant.member(Role::Viewer).await;
    reader.put(&path).json(&all).call().await.expect(403);
    tenant.client.put(&path).json(&all).call().await.expect(200);
    let one =
        json!({"status": "affected", "actionStatement": "Update it.", "releaseUuid": release});
    let stated: Value = tenant
        .client
        .put(&path)
        .json(&one)
        .call()
        .await
        .expect(200)
        .data();
    assert!(
        stated["author"]
            .as_str()
            .is_some_and(|author| author.starts_with("USER:"))
    );

    let hubs = get(&reader, &format!("{LIST}/{CVE}/hubs")).await;
    let status_of = |hub: &SimulatedHub| {
        let hubs = hubs.as_array().expect("a list");
        let found = hubs
            .iter()
            .find(|one| one["hubUuid"] == json!(hub.hub_uuid));
        found.expect("the hub").clone()
    };
    assert_eq!(status_of(&plain)["status"], "NOT_AFFECTED");
    assert_eq!(
        status_of(&plain)["statement"]["impactStatement"],
        "Nothing here speaks TLS."
    );
    assert_eq!(status_of(&special)["status"], "EXPOSED");
    let counts = get(&tenant.client, LIST).await[0]["hubs"].clone();
    assert_eq!(
        counts,
        json!({"exposed": 1, "notAffected": 1, "fixed": 0, "updating": 0})
    );
    // An update is on its way.
    let newer = make_app_release(
        &tenant,
        app_uuid,
        &maker,
        &Recipe::app("logger", "1.0.1", 2),
    )
    .await;
    let newer = serde_json::from_value(newer["releaseUuid"].clone()).expect("a uuid");
    tenant.install(&special, newer).await;
    let counts = get(&tenant.client, LIST).await[0]["hubs"].clone();
    assert_eq!(
        counts,
        json!({"exposed": 0, "notAffected": 1, "fixed": 0, "updating": 1})
    );
    let unknown = format!("{LIST}/CVE-1999-1/statement");
    tenant
        .client
        .put(&unknown)
        .json(&all)
        .call()
        .await
        .expect(404);

    let markdown = tenant
        .client
        .get(&format!("{LIST}/{CVE}/report"))
        .call()
        .await;
    let markdown = markdown.expect(200);
    assert!(markdown.header("content-type").starts_with("text/markdown"));
    for part in [
        "no legal advice",
        "Early warning, 24 hours",
        "openssl",
        "Nothing here speaks TLS.",
    ] {
        assert!(markdown.body.contains(part), "{part}: {}", markdown.body);
    }
    let csaf = tenant
        .client
        .get(&format!("{LIST}/{CVE}/report?form=csaf"))
        .call()
        .await;
    let csaf = csaf.expect(200).json();
    assert_eq!(csaf["document"]["csaf_version"], "2.0");
    assert_eq!(csaf["document"]["notes"][3]["title"], "Countries");
    assert_eq!(csaf["document"]["tracking"]["status"], "draft");
    assert_eq!(csaf["vulnerabilities"][0]["cve"], CVE);
    assert_eq!(
        csaf["vulnerabilities"][0]["product_status"]["known_not_affected"],
        json!(["PACKAGE-0001"])
    );
    let wrong = tenant
        .client
        .get(&format!("{LIST}/{CVE}/report?form=pdf"))
        .call()
        .await;
    assert_eq!(wrong.expect(400).problem().errors[0].field, "form");
}

on_each_database!(older_or_cut_feed_takes_nothing_away);
async fn older_or_cut_feed_takes_nothing_away(backend: Backend) {
    let app = TestApp::new(backend).await;
    let tenant = Tenant::create(&app.client()).await;
    let hub = SimulatedHub::claim(&tenant).await;
    runs(&hub, &image_with("3.0.11-1")).await;
    let new = record(CVE, "openssl", Some("3.0.13-1"), "2026-01-02T00:00:00Z");
    assert_eq!(import(&app, &new).await.stored, 1);
    let old = record(CVE, "openssl", Some("3.0.9-1"), "2026-01-01T00:00:00Z");
    assert_eq!(import(&app, &old).await.stored, 0);
    assert_eq!(import(&app, &new).await.stored, 0);
    match_lists(&app).await;
    assert_eq!(ids(&tenant.client, "").await, [CVE]);

    let folder = tempfile::tempdir().expect("a folder");
    let cut = folder.path().join("all.zip");
    std::fs::write(&cut, b"PK\x03\x04\x14\0\0\0 and no more").expect("a file");
    let error = import_file(&app, &cut)
        .await
        .expect_err("a refusal")
        .to_string();
    assert!(error.contains("cut off"), "{error}");
    let text = folder.path().join("text");
    std::fs::write(&text, b"no JSON").expect("a file");
    import_file(&app, &text).await.expect_err("a refusal");
    let empty = tempfile::tempdir().expect("a folder");
    import_file(&app, empty.path())
        .await
        .expect_err("a refusal");

    // A catalog that is older says nothing.
    import(&app, &catalog(&[CVE], "2026-01-05")).await;
    import(&app, &catalog(&[], "2026-01-04")).await;
    assert_eq!(count(&app, "SELECT COUNT(*) FROM known_exploited").await, 1);
    // What was withdrawn exposes nobody.
    let mut withdrawn = record(CVE, "openssl", Some("3.0.13-1"), "2026-01-03T00:00:00Z");
    withdrawn["withdrawn"] = json!("2026-01-03T00:00:00Z");
    // One file of several records that cannot all be read.
    std::fs::write(folder.path().join("a.json"), withdrawn.to_string()).expect("a file");
    std::fs::write(folder.path().join("b.json"), b"{\"id\": 7}").expect("a file");
    let imported = import_file(&app, folder.path()).await.expect("an import");
    assert_eq!((imported.stored, imported.refused), (1, 1));
    match_lists(&app).await;
    assert!(ids(&tenant.client, "").await.is_empty());
}

on_each_database!(vulnerability_is_told_of_once);
async fn vulnerability_is_told_of_once(backend: Backend) {
    let world = World::with(backend, Default::default()).await;
    world
        .set(json!({"type": "VULNERABILITY_FOUND", "channel": "IN_APP", "enabled": true}))
        .await;
    world.scan().await;
    let told = || async {
        let mut conn = world.app.app.db.read().await.expect("a connection");
        let titles: Vec<String> = sql("SELECT title FROM notices ORDER BY notice_id")
            .scalars(&mut conn)
            .await
            .expect("titles");
        titles
    };
    let hub = SimulatedHub::claim(&world.tenant).await;
    world.micros.fetch_add(SECOND, Ordering::Relaxed);
    runs(&hub, &image_with("3.0.11-1")).await;
    import(
        &world.app,
        &record(CVE, "openssl", None, "2026-01-02T00:00:00Z"),
    )
    .await;
    match_lists(&world.app).await;
    world.pass(1, &[]).await;
    assert_eq!(told().await, [format!("{CVE} affects what hubs run")]);
    // Another hub that is exposed to it is nothing new.
    let other = SimulatedHub::claim(&world.tenant).await;
    runs(&other, &image_with("3.0.12-1")).await;
    match_lists(&world.app).await;
    world.pass(2, &[]).await;
    assert_eq!(told().await.len(), 1);
    // A first import finds many, which are one notice.
    let folder = tempfile::tempdir().expect("a folder");
    for number in 0..40 {
        let many = record(
            &format!("CVE-2024-{number:04}"),
            "bash",
            None,
            "2026-01-02T00:00:00Z",
        );
        let file = folder.path().join(format!("{number}.json"));
        std::fs::write(file, many.to_string()).expect("a file");
    }
    import_file(&world.app, folder.path())
        .await
        .expect("an import");
    match_lists(&world.app).await;
    world.pass(2, &[]).await;
    let told = told().await;
    assert_eq!(told.len(), 2, "{told:?}");
    assert_eq!(told[1], "40 vulnerabilities affect what hubs run");
}

on_each_database!(what_hubs_ran_goes_with_the_audit_log);
async fn what_hubs_ran_goes_with_the_audit_log(backend: Backend) {
    let start = "2026-01-31T08:00:00Z".parse().expect("a time");
    let (clock, micros) = set_clock(start);
    let mut options = Options {
        clock: Some(clock),
        ..Options::default()
    };
    options.settings.audit_retention = Some("10d".to_owned());
    options.settings.hub_token_lifetime = Some("1000d".to_owned());
    let app = TestApp::with(backend, options).await;
    let tenant = Tenant::create(&app.client()).await;
    let hub = SimulatedHub::claim(&tenant).await;
    import(&app, &record(CVE, "openssl", None, "2026-01-02T00:00:00Z")).await;
    runs(&hub, &image_with("3.0.11-1")).await;
    match_lists(&app).await;
    micros.fetch_add(SECOND, Ordering::Relaxed);
    runs(&hub, &image_with("3.0.13-1")).await;
    match_lists(&app).await;
    let numbers = || async {
        (
            count(&app, "SELECT COUNT(*) FROM hub_software").await,
            count(&app, "SELECT COUNT(*) FROM package_lists").await,
            count(&app, "SELECT COUNT(*) FROM exposures").await,
        )
    };
    assert_eq!(numbers().await, (2, 2, 2));
    perform(&app.app, "retention.software", json!({})).await;
    assert_eq!(numbers().await, (2, 2, 2), "it is not old yet");
    micros.fetch_add(11 * 24 * 3600 * SECOND, Ordering::Relaxed);
    perform(&app.app, "retention.software", json!({})).await;
    // What a hub runs now stays, however long it has.
    assert_eq!(numbers().await, (1, 1, 1));
}

on_each_database!(tenants_see_which_feeds_are_there);
async fn tenants_see_which_feeds_are_there(backend: Backend) {
    let app = TestApp::new(backend).await;
    let tenant = Tenant::create(&app.client()).await;
    let reader = tenant.member(Role::Viewer).await;
    let path = format!("{LIST}/feeds");
    assert_eq!(get(&reader, &path).await, json!([]));
    import(&app, &record(CVE, "openssl", None, "2026-01-02T00:00:00Z")).await;
    let feeds = get(&reader, &path).await;
    assert_eq!(feeds.as_array().map(Vec::len), Some(1));
    assert_eq!(
        (&feeds[0]["feed"], &feeds[0]["records"]),
        (&json!("Debian"), &json!(1))
    );
    assert_eq!(feeds[0]["newestAt"], "2026-01-02T00:00:00.000000Z");
    assert!(feeds[0]["importedAt"].is_string(), "{feeds}");
}
