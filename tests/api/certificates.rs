//! Certificates for hubs: what is in them, what is not taken for a request, when they end, and how
//! the authorities behind them change.

use std::sync::atomic::Ordering;

use hub_base::db::sql;
use hub_core::config::Settings;
use hub_fleet::certificates;
use hub_protocol::Timestamp;
use hub_protocol::certificate::CertificateIssueResponse;
use hub_tests::app::set_clock;
use hub_tests::certificates::{Openssl, request};
use hub_tests::process::program;
use hub_tests::{
    Backend, Call, Options, Person, SimulatedHub, Tenant, TestApp, on_each_database, on_postgres,
};
use serde_json::{Value, json};
use uuid::Uuid;

const DAY_SECS: i64 = 24 * 3600;

async fn bundle(hub: &SimulatedHub) -> String {
    let reply = hub
        .client
        .get("/v1/hubs/ca-bundle")
        .call()
        .await
        .expect(200);
    assert_eq!(reply.header("content-type"), "application/x-pem-file");
    reply.body
}

fn count(text: &str, part: &str) -> usize {
    text.matches(part).count()
}

/// How many certificates of hubs are on record, and how many of them are revoked.
async fn on_record(app: &TestApp) -> (i64, i64) {
    let mut conn = app.app.db.read().await.expect("a connection");
    sql("SELECT COUNT(*), COUNT(revoked_at) FROM hub_certificates")
        .one(&mut conn)
        .await
        .expect("counts")
}

async fn authorities(app: &TestApp) -> i64 {
    let mut conn = app.app.db.read().await.expect("a connection");
    let (count,): (i64,) = sql("SELECT COUNT(*) FROM certificate_authorities")
        .one(&mut conn)
        .await
        .expect("a count");
    count
}

/// A service whose hubs' tokens outlive their certificates, at a time that the test moves.
async fn at_any_time(backend: Backend) -> (TestApp, impl Fn(i64)) {
    let (clock, micros) = set_clock(Timestamp::from_micros(1_800_000_000_000_000));
    let settings = Settings {
        hub_token_lifetime: Some("1000d".to_owned()),
        ..Settings::default()
    };
    let app = TestApp::with(
        backend,
        Options {
            clock: Some(clock),
            settings,
        },
    )
    .await;
    let pass = move |secs: i64| {
        micros.fetch_add(secs * 1_000_000, Ordering::Relaxed);
    };
    (app, pass)
}

on_each_database!(certificate_names_its_hub_whatever_the_request_contains);
async fn certificate_names_its_hub_whatever_the_request_contains(backend: Backend) {
    let app = TestApp::new(backend).await;
    let tenant = Tenant::create(&app.client()).await;
    let (hub, other) = (
        SimulatedHub::claim(&tenant).await,
        SimulatedHub::claim(&tenant).await,
    );
    let uuid = hub.hub_uuid.to_string();
    for new_key in [
        &["ec", "-pkeyopt", "ec_paramgen_curve:P-256"][..],
        &["ec", "-pkeyopt", "ec_paramgen_curve:P-384"],
        &["rsa:2048"],
        &["ed25519"],
    ] {
        let openssl = Openssl::new();
        let subject = format!("/O=Somebody/CN={}", other.hub_uuid);
        let names = format!(
            "subjectAltName=DNS:{0},URI:urn:uuid:{0},email:a@example.com",
            other.hub_uuid
        );
        let csr = openssl.request(
            new_key,
            &[
                "-subj",
                &subject,
                "-addext",
                &names,
                "-addext",
                "basicConstraints=critical,CA:true",
                "-addext",
                "extendedKeyUsage=serverAuth",
                "-addext",
                "nsComment=unheard of",
            ],
        );
        let issued: CertificateIssueResponse =
            hub.ask_for_certificate(&csr).await.expect(200).data();
        let now_secs = app.app.clock.now().as_secs();
        let (is_good, said) = openssl.verifies(&issued, &bundle(&hub).await, now_secs);
        assert!(is_good, "{new_key:?}: {said}");
        openssl.run(&[
            "verify",
            "-x509_strict",
            "-CAfile",
            "bundle.pem",
            "certificate.pem",
        ]);
        let (is_server, said) = openssl.try_run(&[
            "verify",
            "-purpose",
            "sslserver",
            "-CAfile",
            "bundle.pem",
            "-untrusted",
            "chain.pem",
            "certificate.pem",
        ]);
        assert!(!is_server, "{said}");

        let text = openssl.run(&[
            "x509",
            "-in",
            "certificate.pem",
            "-noout",
            "-text",
            "-nameopt",
            "RFC2253",
        ]);
        for part in [
            &format!("Subject: CN={uuid}\n"),
            &format!("DNS:{uuid}, URI:urn:uuid:{uuid}\n"),
            "TLS Web Client Authentication\n",
            "Key Usage: critical\n                Digital Signature\n",
            "CA:FALSE",
            "Subject Key Identifier",
            "Authority Key Identifier",
            "Issuer: CN=hub-cloud hubs ",
        ] {
            assert!(text.contains(part), "no {part} in {text}");
        }
        assert!(
            !text.contains(&other.hub_uuid.to_string()) && !text.contains("example.com"),
            "{text}"
        );
        let serial = openssl.run(&["x509", "-in", "certificate.pem", "-noout", "-serial"]);
        assert_eq!(
            serial.trim(),
            format!("serial={}", issued.serial_number.to_uppercase())
        );
        let key_of_certificate =
            openssl.run(&["x509", "-in", "certificate.pem", "-noout", "-pubkey"]);
        assert_eq!(
            key_of_certificate,
            openssl.run(&["pkey", "-in", "key.pem", "-pubout"])
        );
        assert_eq!(
            issued.not_after.as_secs() - issued.not_before.as_secs(),
            90 * DAY_SECS
        );
        assert!(
            (0..600).contains(&(now_secs - issued.not_before.as_secs())),
            "{}",
            issued.not_before
        );
        assert!(issued.not_before <= app.app.clock.now());

        let chain = openssl.run(&["x509", "-in", "chain.pem", "-noout", "-text"]);
        assert!(
            chain.contains("CA:TRUE, pathlen:0") && chain.contains("Certificate Sign, CRL Sign"),
            "{chain}"
        );
        let root = openssl.run(&["x509", "-in", "bundle.pem", "-noout", "-text"]);
        assert!(
            root.contains("CA:TRUE, pathlen:1") && root.contains("Certificate Sign, CRL Sign"),
            "{root}"
        );
    }
    assert_eq!(
        (authorities(&app).await, on_record(&app).await),
        (2, (4, 0))
    );
    let page = tenant
        .client
        .get("/tenant/audit-logs?action=hub_certificate.issue")
        .call()
        .await
        .expect(200);
    assert!(
        page.body.contains(&uuid) && page.body.contains("serialNumber"),
        "{}",
        page.body
    );
}

on_each_database!(invalid_certificate_request_is_refused_by_name);
async fn invalid_certificate_request_is_refused_by_name(backend: Backend) {
    let app = TestApp::new(backend).await;
    let hub = SimulatedHub::claim(&Tenant::create(&app.client()).await).await;
    let openssl = Openssl::new();
    let weak = |new_key: &[&str]| openssl.request(new_key, &["-subj", "/CN=x"]);
    let (_, good) = request();
    // The signature is in the last lines.
    let end = good.rfind("\n-----END").expect("an end");
    let forged = format!("{}AAAA{}", &good[..end - 8], &good[end - 4..]);
    for (csr, reason) in [
        (String::new(), "PKCS#10"),
        ("hello".to_owned(), "PKCS#10"),
        (good.replace("CERTIFICATE REQUEST", "PUBLIC KEY"), "PKCS#10"),
        (good.replacen("-----\nM", "-----\nA", 1), "PKCS#10"),
        (forged, "csr"),
        (format!("{}{good}", "x".repeat(20_000)), "16 KiB"),
        (weak(&["rsa:1024"]), "2,048"),
        (
            weak(&["ec", "-pkeyopt", "ec_paramgen_curve:secp521r1"]),
            "P-256",
        ),
        (
            weak(&["ec", "-pkeyopt", "ec_paramgen_curve:secp256k1"]),
            "P-256",
        ),
        (
            openssl.request(&["rsa:2048"], &["-subj", "/CN=x", "-sha1"]),
            "SHA-256",
        ),
    ] {
        let problem = hub.ask_for_certificate(&csr).await.expect(400).problem();
        let error = problem.errors.first().expect("a field");
        assert!(
            error.field == "csr" && problem.message.contains(reason),
            "{problem:?}: {csr}"
        );
    }
    let path = format!("/v1/hubs/{}/certificates", hub.hub_uuid);
    for body in [
        json!({}),
        json!({"csr": 7}),
        json!({"csr": null}),
        json!({"csr": ["x"]}),
    ] {
        let problem = hub
            .client
            .post(&path)
            .json(&body)
            .call()
            .await
            .expect(400)
            .problem();
        assert_eq!(
            problem.errors.first().expect("a field").field,
            "csr",
            "{body}"
        );
    }
    assert_eq!(on_record(&app).await, (0, 0));
}

on_each_database!(certificates_per_hub_and_day_are_limited);
async fn certificates_per_hub_and_day_are_limited(backend: Backend) {
    let (app, pass) = at_any_time(backend).await;
    let tenant = Tenant::create(&app.client()).await;
    let (hub, neighbour) = (
        SimulatedHub::claim(&tenant).await,
        SimulatedHub::claim(&tenant).await,
    );
    let (_, csr) = request();
    for _ in 0..20 {
        hub.ask_for_certificate(&csr).await.expect(200);
        pass(60);
    }
    let reply = hub.ask_for_certificate(&csr).await.expect(429);
    assert_eq!(
        (reply.problem().code.as_str(), reply.header("retry-after")),
        ("RATE_LIMITED", "85200")
    );
    neighbour.ask_for_certificate(&csr).await.expect(200);
    pass(85_200);
    hub.ask_for_certificate(&csr).await.expect(200);
    hub.ask_for_certificate(&csr).await.expect(429);
}

on_each_database!(certificates_are_revoked_with_their_hubs_credentials);
async fn certificates_are_revoked_with_their_hubs_credentials(backend: Backend) {
    let app = TestApp::new(backend).await;
    let tenant = Tenant::create(&app.client()).await;
    let admin = Person::register(&app.client())
        .await
        .as_platform_admin(&app);
    let hub = SimulatedHub::claim(&tenant).await;
    let neighbour = SimulatedHub::claim(&tenant).await;
    for hub in [&hub, &hub, &neighbour] {
        hub.certificate().await;
    }
    // Claimed again, it has other credentials.
    let code = tenant.claim_code().await;
    let hub = SimulatedHub::claim_with(&app.client(), &code, &hub.device_instance_id).await;
    assert_eq!(on_record(&app).await, (3, 2));
    hub.certificate().await;
    admin
        .post(&format!("/platform/hubs/{}/block", hub.hub_uuid))
        .call()
        .await
        .expect(200);
    assert_eq!(on_record(&app).await, (4, 3));
    let (_, csr) = request();
    hub.ask_for_certificate(&csr).await.expect(401);
    tenant
        .owner
        .client
        .delete(&format!("/tenant/tenants/{}", tenant.tenant_uuid))
        .call()
        .await
        .expect(200);
    assert_eq!(on_record(&app).await, (4, 4));
    neighbour.ask_for_certificate(&csr).await.expect(401);
}

on_each_database!(replicas_that_create_the_root_concurrently_agree_on_one);
async fn replicas_that_create_the_root_concurrently_agree_on_one(backend: Backend) {
    let app = TestApp::new(backend).await;
    let replica = TestApp::replica_of(&app, Options::default()).await;
    let tenant = Tenant::create(&app.client()).await;
    let mut asking = Vec::new();
    for index in 0..8 {
        let mut hub = SimulatedHub::claim(&tenant).await;
        if index % 2 == 1 {
            hub.client = hub.client.at(&replica.url);
        }
        asking.push(tokio::spawn(async move {
            (hub.certificate().await.issued, bundle(&hub).await)
        }));
    }
    let (openssl, now_secs) = (Openssl::new(), app.app.clock.now().as_secs());
    for asked in asking {
        let (issued, bundle) = asked.await.expect("an answer");
        assert_eq!(count(&bundle, "BEGIN CERTIFICATE"), 2);
        let (is_good, said) = openssl.verifies(&issued, &bundle, now_secs);
        assert!(is_good, "{said}");
    }
    assert_eq!(authorities(&app).await, 2);
}

on_each_database!(new_root_takes_over_and_the_old_one_stays_while_needed);
async fn new_root_takes_over_and_the_old_one_stays_while_needed(backend: Backend) {
    let (app, pass) = at_any_time(backend).await;
    let hub = SimulatedHub::claim(&Tenant::create(&app.client()).await).await;
    let now_secs = || app.app.clock.now().as_secs();
    let openssl = Openssl::new();
    let good = |issued: &CertificateIssueResponse, bundle: &str| {
        openssl.verifies(issued, bundle, now_secs()).0
    };
    let before = hub.certificate().await.issued;
    let old_bundle = bundle(&hub).await;

    assert!(
        certificates::rotate_root(&app.app)
            .await
            .expect("a new root")
    );
    assert!(
        !certificates::rotate_root(&app.app)
            .await
            .expect("one is enough"),
        "the first is waiting"
    );
    // Published, and not used yet.
    let both = bundle(&hub).await;
    assert_eq!(count(&both, "BEGIN CERTIFICATE"), 4);
    // The roots first, and of each kind the newest.
    let parts = |bundle: &str| -> Vec<String> {
        bundle
            .split_inclusive("-----END CERTIFICATE-----\n")
            .map(str::to_owned)
            .collect()
    };
    let (old, all) = (parts(&old_bundle), parts(&both));
    assert_eq!(
        (old.len(), [&all[1], &all[3]]),
        (2, [&old[0], &old[1]]),
        "{both}"
    );
    assert_eq!(old[1], before.chain);
    let meanwhile = hub.certificate().await.issued;
    assert_eq!(meanwhile.chain, before.chain);
    pass(61);
    let after = hub.certificate().await.issued;
    assert_ne!(after.chain, before.chain);
    for issued in [&before, &meanwhile, &after] {
        assert!(good(issued, &both));
        let at = now_secs().to_string();
        openssl.run(&[
            "verify",
            "-attime",
            &at,
            "-CAfile",
            "bundle.pem",
            "certificate.pem",
        ]);
    }
    assert!(!good(&after, &old_bundle) && good(&before, &old_bundle));

    pass(80 * DAY_SECS);
    let last = hub.certificate().await.issued;
    assert_eq!(count(&bundle(&hub).await, "BEGIN CERTIFICATE"), 4);
    pass(11 * DAY_SECS);
    let only_new = bundle(&hub).await;
    assert!(
        count(&only_new, "BEGIN CERTIFICATE") == 2
            && good(&last, &only_new)
            && !good(&before, &both)
    );

    // Expired certificates stay on record for a month, and the old authorities with them.
    certificates::upkeep(&app.app, 100).await.expect("upkeep");
    assert_eq!((authorities(&app).await, on_record(&app).await.0), (4, 4));
    pass(31 * DAY_SECS);
    assert!(!certificates::upkeep(&app.app, 100).await.expect("upkeep"));
    assert_eq!((authorities(&app).await, on_record(&app).await.0), (2, 1));
    // What issues is replaced before what it issues could outlive it.
    pass(130 * DAY_SECS);
    certificates::upkeep(&app.app, 100).await.expect("upkeep");
    pass(61);
    let renewed = hub.certificate().await.issued;
    assert!(renewed.chain != after.chain && good(&renewed, &bundle(&hub).await));
    let renewed_bundle = bundle(&hub).await;
    assert_eq!(
        parts(&renewed_bundle)[0],
        parts(&only_new)[0],
        "under the same root"
    );
    assert!(
        renewed_bundle.ends_with(&format!("{}{}", renewed.chain, after.chain)),
        "{renewed_bundle}"
    );
}

/// On the command line, beside a service that serves, with the master key replaced meanwhile.
#[tokio::test(flavor = "multi_thread")]
async fn command_line_shows_and_replaces_the_root() {
    let app = TestApp::new(Backend::Sqlite).await;
    let run = async |arguments: &[&str]| {
        let file = app.sqlite_file().expect("a file");
        let mut command = tokio::process::Command::new(program("hub-cloud"));
        command
            .args(arguments)
            .args(["--master-key", hub_tests::app::MASTER_KEY, "--data-dir"]);
        command.arg(file.parent().expect("a folder"));
        let output = command.output().await.expect("it ends");
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    assert!(
        run(&["ca", "list"])
            .await
            .contains("no authority exists yet")
    );
    let hub = SimulatedHub::claim(&Tenant::create(&app.client()).await).await;
    hub.certificate().await;
    let listed = run(&["ca", "list"]).await;
    assert!(
        count(&listed, "in use, expires ") == 2 && listed.contains("1 unexpired hub certificates"),
        "{listed}"
    );
    let json: Value = serde_json::from_str(&run(&["ca", "list", "--json"]).await).expect("JSON");
    let issuing = json["authorities"]
        .as_array()
        .expect("a list")
        .iter()
        .find(|one| one["isRoot"] == false);
    let issuing = issuing.expect("an issuing authority");
    assert!(
        issuing["isSigning"] == true && issuing["certificates"] == 1,
        "{json}"
    );
    assert!(run(&["ca", "rotate"]).await.contains("in one minute"));
    assert!(
        run(&["ca", "rotate"])
            .await
            .contains("already about to take over")
    );
    let listed = run(&["ca", "list"]).await;
    assert!(
        count(&listed, "in use, expires ") == 2 && count(&listed, "in use from ") == 2,
        "{listed}"
    );
    assert_eq!(
        count(&bundle(&hub).await, "BEGIN CERTIFICATE"),
        4,
        "two roots, and the authority below each"
    );
    // Nobody but the service opens a key of theirs.
    let keys = run(&["keys", "list"]).await;
    assert!(
        keys.contains("seals and opens, 6 secrets"),
        "a signing key, a claim code, four authorities: {keys}"
    );
    let hub_uuid = Uuid::new_v4();
    let path = format!("/v1/hubs/{hub_uuid}/certificates");
    let reply = hub
        .client
        .post(&path)
        .json(&json!({"csr": request().1}))
        .call()
        .await
        .expect(403);
    assert_eq!(reply.problem().code, "OTHER_HUB");
}

on_postgres!(issuing_a_certificate_does_not_deadlock_with_deleting_the_tenant);
/// Both want the tenant and the hub: the one that comes second waits, and neither is given up.
async fn issuing_a_certificate_does_not_deadlock_with_deleting_the_tenant(backend: Backend) {
    let app = TestApp::new(backend).await;
    let hub = SimulatedHub::claim(&Tenant::create(&app.client()).await).await;
    // As a deletion does it: first the tenant, then its hubs.
    let mut deletion = app.app.db.begin().await.expect("a transaction");
    let tenants = sql("SELECT tenant_uuid FROM tenants FOR UPDATE")
        .execute(&mut deletion)
        .await;
    assert_eq!(tenants.expect("the tenant"), 1);
    let asking = tokio::spawn(async move { hub.ask_for_certificate(&request().1).await });
    tokio::time::sleep(std::time::Duration::from_millis(500)).await;
    let hubs = sql("SELECT hub_uuid FROM hubs FOR UPDATE")
        .execute(&mut deletion)
        .await;
    assert_eq!(hubs.expect("the hub"), 1);
    deletion
        .commit_unaudited("a test's own")
        .await
        .expect("a commit");
    asking.await.expect("an answer").expect(200);
}
