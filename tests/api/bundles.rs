//! `/tenant/supplier-bundles/**` and `/app/bundle-catalog`: what suppliers write and people see.
//! What claims make of it is in `bundle_claims`.

use hub_base::db::sql;
use hub_identity::authz::permission::Role;
use hub_tests::{Backend, Call, Client, Person, Tenant, TestApp, devices, on_each_database};
use serde_json::{Value, json};
use uuid::Uuid;

use super::bundle_claims::{BUNDLES, Setting, draft, path_of, published, uuid};
use super::device_catalog::get;
use super::pipelines::{http, made};

on_each_database!(a_bundle_is_written_published_and_archived);
async fn a_bundle_is_written_published_and_archived(backend: Backend) {
    let setting = Setting::new(backend).await;
    let client = &setting.tenant.client;
    let body = json!({"name": " Hall ", "description": "a\nb", "autoApply": true, "unknown": [1]});
    let new: Value = client
        .post(BUNDLES)
        .json(&body)
        .call()
        .await
        .expect(200)
        .data();
    let expected = json!({
        "bundleUuid": new["bundleUuid"], "name": "Hall", "description": "a\nb", "status": "DRAFT", "autoApply": true,
        "appCount": 0, "deviceCount": 0, "pipelineCount": 0, "createdAt": new["createdAt"], "publishedAt": null,
        "archivedAt": null,
    });
    assert_eq!(new, expected);
    let path = path_of(&new);
    assert_eq!(get(client, &path).await, new);

    let changes = json!({"name": null, "description": " ", "autoApply": false});
    let changed: Value = client
        .patch(&path)
        .json(&changes)
        .call()
        .await
        .expect(200)
        .data();
    assert_eq!(
        (&changed["name"], &changed["description"]),
        (&json!("Hall"), &Value::Null)
    );
    assert_eq!(changed["autoApply"], json!(false));

    let app = setting.app_with_release("logger", "1.0.0").await;
    let model = devices::make_model(&setting.tenant, "Thermometer").await;
    let pipeline = uuid(&made(client, &http()).await["pipelineUuid"]);
    let apps = client
        .put(&format!("{path}/apps"))
        .json(&json!([{"appUuid": app.app, "channel": "beta"}]))
        .call()
        .await;
    let apps: Value = apps.expect(200).data();
    assert_eq!(
        apps,
        json!([{"appUuid": app.app, "name": "logger", "appReleaseUuid": null, "channel": "beta"}])
    );
    let pinned = json!([{"appUuid": app.app, "appReleaseUuid": app.release}]);
    client
        .put(&format!("{path}/apps"))
        .json(&pinned)
        .call()
        .await
        .expect(200);
    let models = client
        .put(&format!("{path}/devices"))
        .json(&json!([{"deviceUuid": model}]))
        .call()
        .await
        .expect(200);
    assert_eq!(
        models.data::<Value>(),
        json!([{"deviceUuid": model, "name": "Thermometer", "quantity": 1}])
    );
    client
        .put(&format!("{path}/pipelines"))
        .json(&json!([pipeline]))
        .call()
        .await
        .expect(200);
    let listed = get(client, &format!("{path}/apps")).await;
    assert_eq!(
        listed[0]["appReleaseUuid"],
        json!(app.release),
        "a list is replaced whole"
    );
    assert_eq!(
        get(client, &format!("{path}/pipelines")).await,
        json!([pipeline])
    );
    let full = get(client, &path).await;
    assert_eq!(
        [
            &full["appCount"],
            &full["deviceCount"],
            &full["pipelineCount"]
        ],
        [1, 1, 1].map(|n| json!(n)).each_ref()
    );

    client
        .post(&format!("{path}/archive"))
        .call()
        .await
        .expect(409);
    let live: Value = client
        .post(&format!("{path}/publish"))
        .call()
        .await
        .expect(200)
        .data();
    assert_eq!(live["status"], "PUBLISHED");
    for request in [
        client.patch(&path).json(&json!({"name": "x"})),
        client.delete(&path),
        client.put(&format!("{path}/apps")).json(&json!([])),
        client.put(&format!("{path}/devices")).json(&json!([])),
        client.put(&format!("{path}/pipelines")).json(&json!([])),
        client.post(&format!("{path}/publish")),
    ] {
        let problem = request.call().await.expect(409).problem();
        assert!(
            problem.code == "BUNDLE_STATE" && problem.message.contains("PUBLISHED"),
            "{problem:?}"
        );
    }
    // What it has stays for as long as hubs get it.
    let refused = client
        .delete(&format!("/tenant/data-pipelines/{pipeline}"))
        .call()
        .await
        .expect(409)
        .problem();
    assert_eq!(refused.code, "PIPELINE_IN_USE");
    let refused = client
        .delete(&format!("/tenant/device-catalog/{model}"))
        .call()
        .await
        .expect(409)
        .problem();
    assert_eq!(refused.code, "MODEL_IN_USE");
    let old: Value = client
        .post(&format!("{path}/archive"))
        .call()
        .await
        .expect(200)
        .data();
    assert_eq!(
        (&old["status"], old["archivedAt"].is_null()),
        (&json!("ARCHIVED"), false)
    );
    client
        .post(&format!("{path}/publish"))
        .call()
        .await
        .expect(409);
    client
        .post(&format!("{path}/archive"))
        .call()
        .await
        .expect(409);
    client
        .delete(&format!("/tenant/data-pipelines/{pipeline}"))
        .call()
        .await
        .expect(204);
    client
        .delete(&format!("/tenant/device-catalog/{model}"))
        .call()
        .await
        .expect(200);
    assert_eq!(get(client, &path).await["pipelineCount"], 0);

    let other = draft(client, json!({})).await;
    assert_eq!(get(client, BUNDLES).await.as_array().map(Vec::len), Some(2));
    let drafts = client
        .get(&format!("{BUNDLES}?status=DRAFT&size=1"))
        .call()
        .await
        .expect(200);
    assert_eq!(drafts.header("x-total-count"), "1");
    assert_eq!(drafts.data::<Value>()[0], other);
    client
        .get(&format!("{BUNDLES}?status=LIVE"))
        .call()
        .await
        .expect(400);
    client.delete(&path_of(&other)).call().await.expect(200);
    client.get(&path_of(&other)).call().await.expect(404);
    let log = get(client, "/tenant/audit-logs?size=100").await.to_string();
    for verb in [
        "create",
        "update",
        "set_apps",
        "set_devices",
        "set_pipelines",
        "publish",
        "archive",
        "delete",
    ] {
        assert!(
            log.contains(&format!("supplier_bundle.{verb}")),
            "{verb} is not in the log"
        );
    }
}

on_each_database!(members_do_what_their_role_allows);
async fn members_do_what_their_role_allows(backend: Backend) {
    let setting = Setting::new(backend).await;
    let tenant = &setting.tenant;
    let (viewer, editor) = (
        tenant.member(Role::Viewer).await,
        tenant.member(Role::Editor).await,
    );
    let bundle = draft(&editor, json!({})).await;
    let path = path_of(&bundle);
    get(&viewer, &path).await;
    viewer
        .post(BUNDLES)
        .json(&json!({"name": "x"}))
        .call()
        .await
        .expect(403);
    viewer
        .put(&format!("{path}/apps"))
        .json(&json!([]))
        .call()
        .await
        .expect(403);
    // Hubs would install what it has.
    editor
        .post(&format!("{path}/publish"))
        .call()
        .await
        .expect(403);
    let operator = tenant.member(Role::Operator).await;
    operator
        .post(&format!("{path}/publish"))
        .call()
        .await
        .expect(200);
    editor
        .post(&format!("{path}/archive"))
        .call()
        .await
        .expect(403);
    operator
        .post(&format!("{path}/archive"))
        .call()
        .await
        .expect(200);
    let key = tenant.api_key(json!({"scopes": ["bundles:read"]})).await;
    get(&key.client, &path).await;
    key.client
        .post(BUNDLES)
        .json(&json!({"name": "x"}))
        .call()
        .await
        .expect(403);
    let key = tenant.api_key(json!({"scopes": ["bundles:*"]})).await;
    draft(&key.client, json!({})).await;

    let stranger = Tenant::create(&setting.app.client()).await.client;
    let own = draft(&stranger, json!({})).await;
    for request in [
        stranger.get(&path),
        stranger.patch(&path).json(&json!({"name": "x"})),
        stranger.delete(&path),
        stranger.post(&format!("{path}/publish")),
        stranger.post(&format!("{path}/archive")),
        stranger.get(&format!("{path}/apps")),
        stranger.put(&format!("{path}/apps")).json(&json!([])),
        stranger.get(&format!("{path}/devices")),
        stranger.put(&format!("{path}/devices")).json(&json!([])),
        stranger.get(&format!("{path}/pipelines")),
        stranger.put(&format!("{path}/pipelines")).json(&json!([])),
    ] {
        request.call().await.expect(404);
    }
    assert_eq!(get(&stranger, BUNDLES).await, json!([own]));
}

/// The fields that a refusal names.
async fn refused(client: &Client, path: &str, body: &Value) -> Vec<String> {
    let request = if path == BUNDLES {
        client.post(path)
    } else {
        client.put(path)
    };
    let problem = request.json(body).call().await.expect(400).problem();
    problem
        .errors
        .into_iter()
        .map(|error| error.field)
        .collect()
}

on_each_database!(what_is_wrong_is_named);
async fn what_is_wrong_is_named(backend: Backend) {
    let setting = Setting::new(backend).await;
    let client = &setting.tenant.client;
    for (field, body) in [
        ("name", json!({})),
        ("name", json!({"name": " "})),
        ("name", json!({"name": "a\u{0}b"})),
        ("name", json!({"name": "a\nb"})),
        ("name", json!({"name": "x".repeat(201)})),
        ("name", json!({"name": 7})),
        (
            "description",
            json!({"name": "x", "description": "a\u{7}b"}),
        ),
        (
            "description",
            json!({"name": "x", "description": "x".repeat(2001)}),
        ),
        ("autoApply", json!({"name": "x", "autoApply": "yes"})),
    ] {
        assert_eq!(refused(client, BUNDLES, &body).await, [field], "{body}");
    }
    let path = path_of(&draft(client, json!({})).await);
    let refused_name = client
        .patch(&path)
        .json(&json!({"name": ""}))
        .call()
        .await
        .expect(400)
        .problem();
    assert_eq!(refused_name.errors[0].field, "name");

    // Nothing that is another tenant's can be named, and it answers as what does not exist.
    let stranger = Setting::beside(&setting).await;
    let theirs = stranger.app_with_release("spy", "1.0.0").await;
    let their_model = devices::make_model(&stranger.tenant, "Camera").await;
    let their_pipeline = uuid(&made(&stranger.tenant.client, &http()).await["pipelineUuid"]);
    let own = setting.app_with_release("logger", "1.0.0").await;
    let other = setting.app_with_release("router", "1.0.0").await;
    let waiting = setting
        .release_without_file(own.app, "logger", "1.1.0")
        .await;
    let one = |uuid: Value| json!([{"appUuid": uuid}]);
    let app = |release: Value| json!([{"appUuid": own.app, "appReleaseUuid": release}]);
    let with = |channel: Value| json!([{"appUuid": own.app, "channel": channel}]);
    let both = json!([{"appUuid": own.app, "appReleaseUuid": own.release, "channel": "stable"}]);
    for (part, field, body) in [
        ("apps", "[0].appUuid", json!([{}])),
        ("apps", "[0].appUuid", one(json!("x"))),
        ("apps", "[0].appUuid", one(json!(Uuid::new_v4()))),
        ("apps", "[0].appUuid", one(json!(theirs.app))),
        (
            "apps",
            "[0].appUuid",
            json!([{"appUuid": theirs.app, "appReleaseUuid": theirs.release}]),
        ),
        ("apps", "[0].appReleaseUuid", app(json!(theirs.release))),
        ("apps", "[0].appReleaseUuid", app(json!(other.release))),
        ("apps", "[0].appReleaseUuid", app(waiting)),
        ("apps", "[0].appReleaseUuid", app(json!(Uuid::new_v4()))),
        ("apps", "[0].channel", with(json!("Stable"))),
        ("apps", "[0].channel", with(json!("a_b"))),
        ("apps", "[0].channel", with(json!("%"))),
        ("apps", "[0].channel", with(json!("a\u{0}"))),
        ("apps", "[0].channel", both),
        (
            "apps",
            "[1].appUuid",
            json!([{"appUuid": own.app}, {"appUuid": own.app}]),
        ),
        (
            "apps",
            "body",
            Value::Array(
                (0..51)
                    .map(|_| json!({"appUuid": Uuid::new_v4()}))
                    .collect(),
            ),
        ),
        ("apps", "body", json!({"appUuid": own.app})),
        (
            "devices",
            "[0].deviceUuid",
            json!([{"deviceUuid": their_model}]),
        ),
        (
            "devices",
            "[0].deviceUuid",
            json!([{"deviceUuid": Uuid::new_v4()}]),
        ),
        (
            "devices",
            "[0].quantity",
            json!([{"deviceUuid": their_model, "quantity": 0}]),
        ),
        (
            "devices",
            "[0].quantity",
            json!([{"deviceUuid": their_model, "quantity": -1}]),
        ),
        (
            "devices",
            "[0].quantity",
            json!([{"deviceUuid": their_model, "quantity": 10_001}]),
        ),
        (
            "devices",
            "[0].quantity",
            json!([{"deviceUuid": their_model, "quantity": 1.5}]),
        ),
        (
            "devices",
            "body",
            Value::Array(
                (0..101)
                    .map(|_| json!({"deviceUuid": Uuid::new_v4()}))
                    .collect(),
            ),
        ),
        ("pipelines", "[0]", json!([their_pipeline])),
        ("pipelines", "[0]", json!(["x"])),
        ("pipelines", "[1]", json!([their_pipeline, their_pipeline])),
        (
            "pipelines",
            "body",
            Value::Array((0..101).map(|_| json!(Uuid::new_v4())).collect()),
        ),
    ] {
        assert_eq!(
            refused(client, &format!("{path}/{part}"), &body).await,
            [field],
            "{part} {body}"
        );
        assert_eq!(get(client, &format!("{path}/{part}")).await, json!([]));
    }
    // An app without a release would refuse every claim.
    let empty = setting.app("empty").await;
    client
        .put(&format!("{path}/apps"))
        .json(&one(json!(empty)))
        .call()
        .await
        .expect(200);
    let problem = client
        .post(&format!("{path}/publish"))
        .call()
        .await
        .expect(409)
        .problem();
    assert!(
        problem.code == "BUNDLE_NOT_INSTALLABLE" && problem.message.contains("empty"),
        "{problem:?}"
    );
    client
        .put(&format!("{path}/apps"))
        .json(&with(json!("beta")))
        .call()
        .await
        .expect(200);
    client
        .post(&format!("{path}/publish"))
        .call()
        .await
        .expect(200);
}

on_each_database!(bundles_are_counted);
async fn bundles_are_counted(backend: Backend) {
    let app = TestApp::new(backend).await;
    let client = Tenant::create(&app.client()).await.client;
    let first = draft(&client, json!({})).await;
    for _ in 1..200 {
        draft(&client, json!({})).await;
    }
    let body = json!({"name": "one too many"});
    let problem = client
        .post(BUNDLES)
        .json(&body)
        .call()
        .await
        .expect(409)
        .problem();
    assert_eq!(problem.code, "TOO_MANY_BUNDLES");
    client.delete(&path_of(&first)).call().await.expect(200);
    client.post(BUNDLES).json(&body).call().await.expect(200);
    let drafts: Vec<Value> = client
        .get(&format!("{BUNDLES}?size=100"))
        .call()
        .await
        .expect(200)
        .data();
    for (place, bundle) in drafts.iter().take(21).enumerate() {
        let path = path_of(bundle);
        client
            .patch(&path)
            .json(&json!({"autoApply": true}))
            .call()
            .await
            .expect(200);
        let reply = client.post(&format!("{path}/publish")).call().await;
        if place < 20 {
            reply.expect(200);
        } else {
            assert_eq!(reply.expect(409).problem().code, "TOO_MANY_BUNDLES");
        }
    }
}

on_each_database!(people_see_published_bundles_of_all_suppliers);
async fn people_see_published_bundles_of_all_suppliers(backend: Backend) {
    const CATALOG: &str = "/app/bundle-catalog";
    let setting = Setting::new(backend).await;
    let client = &setting.tenant.client;
    let person = Person::register(&setting.app.client()).await;
    let app = setting.app_with_release("logger", "1.0.0").await;
    let model = devices::make_model(&setting.tenant, "Thermometer").await;
    let pipeline = uuid(&made(client, &http()).await["pipelineUuid"]);
    let parts = json!({"apps": [{"appUuid": app.app}], "devices": [{"deviceUuid": model, "quantity": 3}],
        "pipelines": [pipeline]});
    let bundle = published(client, json!({"name": "Hall"}), &parts).await;
    draft(client, json!({})).await;
    let other = Tenant::create(&setting.app.client()).await;
    let theirs = published(&other.client, json!({"name": "Yard"}), &json!({})).await;

    let listed = person
        .client
        .get(&format!("{CATALOG}?size=1&page=2"))
        .call()
        .await
        .expect(200);
    assert_eq!(listed.header("x-total-count"), "2");
    let mut expected = bundle.clone();
    expected["supplierUuid"] = json!(setting.tenant.tenant_uuid);
    expected["supplierName"] = json!(format!("Tenant of {}", setting.tenant.owner.email));
    expected["apps"] = json!([{"appUuid": app.app, "name": "logger", "description": null}]);
    expected["devices"] = json!([{"deviceUuid": model, "name": "Thermometer", "quantity": 3}]);
    expected["linked"] = json!(false);
    assert_eq!(listed.data::<Value>(), json!([expected]));
    let one = format!(
        "{CATALOG}/{}",
        bundle["bundleUuid"].as_str().expect("a uuid")
    );
    assert_eq!(get(&person.client, &one).await, expected);

    let mut tx = setting.app.app.db.begin().await.expect("a transaction");
    sql(
        "INSERT INTO supplier_links (link_uuid, tenant_uuid, user_uuid, scope, status, token_auth, \
         version, linked_at) VALUES ($1, $2, $3, 'openid', 'ACTIVE', 'BASIC', 1, $4)",
    )
    .bind((
        Uuid::new_v4(),
        setting.tenant.tenant_uuid,
        person.login.user_uuid,
        setting.app.app.clock.now(),
    ))
    .execute(&mut tx)
    .await
    .expect("a link");
    tx.commit_unaudited("a test's own set-up")
        .await
        .expect("a commit");
    assert_eq!(get(&person.client, &one).await["linked"], true);
    let stranger = Person::register(&setting.app.client()).await;
    assert_eq!(get(&stranger.client, &one).await["linked"], false);
    let elsewhere = format!(
        "{CATALOG}/{}",
        theirs["bundleUuid"].as_str().expect("a uuid")
    );
    assert_eq!(get(&person.client, &elsewhere).await["linked"], false);

    client
        .post(&format!("{}/archive", path_of(&bundle)))
        .call()
        .await
        .expect(200);
    person.client.get(&one).call().await.expect(404);
    let path = format!("/tenant/tenants/{}", other.tenant_uuid);
    other.owner.client.delete(&path).call().await.expect(200);
    person.client.get(&elsewhere).call().await.expect(404);
    assert_eq!(get(&person.client, CATALOG).await, json!([]));
}
