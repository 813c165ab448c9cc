//! `/tenant/floor-plans`: images of where hubs are, and where on them.

use hub_identity::authz::permission::Role;
use hub_tests::{Backend, Call, Client, SimulatedHub, Tenant, TestApp, on_each_database};
use reqwest::header::{CONTENT_ENCODING, CONTENT_TYPE, IF_NONE_MATCH};
use serde_json::{Value, json};

const PATH: &str = "/tenant/floor-plans";
const PNG: &[u8] =
    b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x02\x80\0\0\x01\xe0\x08\x06\0\0\0 and the rest";
const WEBP: &[u8] = b"RIFF\x1a\0\0\0WEBPVP8X\x0a\0\0\0\0\0\0\0\x7f\x02\0\xdf\x01\0";

async fn made(client: &Client, body: &Value) -> Value {
    client.post(PATH).json(body).call().await.expect(201).data()
}

fn at(plan: &Value) -> String {
    format!("{PATH}/{}", plan["floorPlanUuid"].as_str().expect("a uuid"))
}

async fn read(client: &Client, plan: &Value) -> Value {
    client.get(&at(plan)).call().await.expect(200).data()
}

on_each_database!(hubs_are_placed_moved_and_taken_away);
async fn hubs_are_placed_moved_and_taken_away(backend: Backend) {
    let app = TestApp::new(backend).await;
    let tenant = Tenant::create(&app.client()).await;
    let hubs = [
        SimulatedHub::claim(&tenant).await,
        SimulatedHub::claim(&tenant).await,
    ];
    let plan = made(
        &tenant.client,
        &json!({"name": " Hall 3 ", "widthMetres": 41.5}),
    )
    .await;
    assert_eq!(
        (&plan["name"], &plan["widthMetres"], &plan["hubs"]),
        (&json!("Hall 3"), &json!(41.5), &json!([]))
    );
    assert_eq!(plan["image"], Value::Null);

    let place =
        |hub: &SimulatedHub, x: f64, y: f64| json!({"hubUuid": hub.hub_uuid, "x": x, "y": y});
    let both = json!({"hubs": [place(&hubs[1], 0.25, 1.0), place(&hubs[0], 0.0, 0.123_456_7)]});
    let placed: Value = tenant
        .client
        .patch(&at(&plan))
        .json(&both)
        .call()
        .await
        .expect(200)
        .data();
    let mut expected = [place(&hubs[0], 0.0, 0.123_457), place(&hubs[1], 0.25, 1.0)];
    expected.sort_by_key(|hub| hub["hubUuid"].as_str().map(str::to_owned));
    assert_eq!(placed["hubs"], json!(expected));
    assert_eq!(placed["name"], "Hall 3");
    assert_eq!(read(&tenant.client, &plan).await, placed);
    let listed: Vec<Value> = tenant.client.get(PATH).call().await.expect(200).data();
    assert_eq!(listed, std::slice::from_ref(&placed));

    // What is absent or null stays; what `clear` names is taken away.
    let unchanged = json!({"widthMetres": null, "name": null, "hubs": null, "clear": null});
    let patch = tenant.client.patch(&at(&plan)).json(&unchanged);
    let kept: Value = patch.call().await.expect(200).data();
    assert_eq!(kept["widthMetres"], placed["widthMetres"]);
    for (change, field) in [
        (json!({"clear": ["name"]}), "clear[0]"),
        (
            json!({"clear": ["widthMetres"], "widthMetres": 2}),
            "clear[0]",
        ),
    ] {
        let patch = tenant.client.patch(&at(&plan)).json(&change);
        let problem = patch.call().await.expect(400).problem();
        assert_eq!(problem.errors[0].field, field);
    }
    let change = json!({"clear": ["widthMetres"], "name": "Hall 4"});
    let changed: Value = tenant
        .client
        .patch(&at(&plan))
        .json(&change)
        .call()
        .await
        .expect(200)
        .data();
    assert_eq!(
        (&changed["name"], &changed["widthMetres"]),
        (&json!("Hall 4"), &Value::Null)
    );
    assert_eq!(changed["hubs"], placed["hubs"]);

    // A hub that is released is on no plan any more, and is not placed again.
    tenant
        .client
        .delete(&format!("/tenant/hubs/{}", hubs[1].hub_uuid))
        .call()
        .await
        .expect(204);
    let left = read(&tenant.client, &plan).await;
    assert_eq!(left["hubs"], json!([place(&hubs[0], 0.0, 0.123_457)]));
    let problem = tenant
        .client
        .patch(&at(&plan))
        .json(&both)
        .call()
        .await
        .expect(400)
        .problem();
    assert_eq!(problem.errors[0].field, "hubs[0].hubUuid");

    let none: Value = tenant
        .client
        .patch(&at(&plan))
        .json(&json!({"hubs": []}))
        .call()
        .await
        .expect(200)
        .data();
    assert_eq!(none["hubs"], json!([]));
    tenant.client.delete(&at(&plan)).call().await.expect(204);
    tenant.client.get(&at(&plan)).call().await.expect(404);
    let audit: Value = tenant
        .client
        .get("/tenant/audit-logs?size=100")
        .call()
        .await
        .expect(200)
        .data();
    let entries = audit["content"].as_array().expect("a page").iter();
    let actions: Vec<&str> = entries
        .rev()
        .filter_map(|entry| entry["action"].as_str())
        .collect();
    let of_plans: Vec<&str> = actions
        .into_iter()
        .filter(|action| action.starts_with("floor_plan"))
        .collect();
    let updates = ["floor_plan.update"; 3];
    assert_eq!(
        of_plans,
        [&["floor_plan.create"][..], &updates, &["floor_plan.delete"]].concat()
    );
}

on_each_database!(image_is_what_its_bytes_say);
async fn image_is_what_its_bytes_say(backend: Backend) {
    let app = TestApp::new(backend).await;
    let tenant = Tenant::create(&app.client()).await;
    let plan = made(&tenant.client, &json!({"name": "Hall"})).await;
    let path = format!("{}/image", at(&plan));
    let put = |image: Vec<u8>| {
        tenant
            .client
            .put(&path)
            .header(CONTENT_TYPE, "text/html")
            .body(image)
            .call()
    };
    tenant.client.get(&path).call().await.expect(404);

    let shown: Value = put(PNG.to_vec()).await.expect(200).data();
    assert_eq!(
        (&shown["image"]["mediaType"], &shown["image"]["sizeBytes"]),
        (&json!("image/png"), &json!(PNG.len()))
    );
    assert_eq!(
        (
            &shown["image"]["widthPixels"],
            &shown["image"]["heightPixels"]
        ),
        (&json!(640), &json!(480))
    );
    // 4,000 x 4,000 pixels are accepted, and one line more is not.
    let mut large = PNG.to_vec();
    large[16..20].copy_from_slice(&4000_u32.to_be_bytes());
    for (height, status) in [(4000_u32, 200), (4001, 400), (0, 400), (u32::MAX, 400)] {
        large[20..24].copy_from_slice(&height.to_be_bytes());
        put(large.clone()).await.expect(status);
    }
    put(PNG[..20].to_vec()).await.expect(400);
    put(PNG.to_vec()).await.expect(200);
    let reply = tenant.client.get(&path).send().await.expect("an answer");
    let header = |name: &str| reply.headers()[name].to_str().expect("text").to_owned();
    assert_eq!(
        (header("content-type"), header("x-content-type-options")),
        ("image/png".into(), "nosniff".into())
    );
    assert!(
        header("content-security-policy").contains("sandbox")
            && header("cache-control").contains("private")
    );
    let etag = header("etag");
    assert_eq!(reply.bytes().await.expect("a body"), PNG);
    tenant
        .client
        .get(&path)
        .header(IF_NONE_MATCH, &etag)
        .call()
        .await
        .expect(304);

    let other: Value = put(WEBP.to_vec()).await.expect(200).data();
    assert_eq!(other["image"]["mediaType"], "image/webp");
    let reply = tenant
        .client
        .get(&path)
        .header(IF_NONE_MATCH, &etag)
        .send()
        .await
        .expect("an answer");
    assert_eq!(
        (
            reply.status().as_u16(),
            reply.bytes().await.expect("a body").as_ref()
        ),
        (200, WEBP)
    );

    // Markup could run scripts, so nothing is believed but the bytes.
    for image in [
        &b"<svg xmlns='http://www.w3.org/2000/svg'><script/></svg>"[..],
        b"GIF89a",
        b"",
    ] {
        let problem = put(image.to_vec()).await.expect(400).problem();
        assert_eq!(problem.errors[0].field, "body");
    }
    let largest = |bytes: usize| [PNG, &vec![0; bytes - PNG.len()]].concat();
    put(largest(2 * 1024 * 1024)).await.expect(200);
    put(largest(2 * 1024 * 1024 + 1)).await.expect(413);
    let packed = tenant
        .client
        .put(&path)
        .header(CONTENT_ENCODING, "gzip")
        .body(PNG)
        .call()
        .await;
    packed.expect(415);
    assert_eq!(
        read(&tenant.client, &plan).await["image"]["sizeBytes"],
        2 * 1024 * 1024,
        "nothing refused was stored"
    );

    // Who may only look may not change it, and other tenants see nothing of it.
    let viewer = tenant.member(Role::Viewer).await;
    viewer.get(&path).call().await.expect(200);
    viewer.put(&path).body(PNG).call().await.expect(403);
    let stranger = Tenant::create(&app.client()).await;
    stranger.client.get(&path).call().await.expect(404);
    stranger
        .client
        .put(&path)
        .body(PNG)
        .call()
        .await
        .expect(404);
    stranger
        .client
        .patch(&at(&plan))
        .json(&json!({"name": "Mine"}))
        .call()
        .await
        .expect(404);
    stranger.client.delete(&at(&plan)).call().await.expect(404);
}

on_each_database!(bad_plans_are_refused_beside_their_fields);
async fn bad_plans_are_refused_beside_their_fields(backend: Backend) {
    let app = TestApp::new(backend).await;
    let tenant = Tenant::create(&app.client()).await;
    let hub = SimulatedHub::claim(&tenant).await;
    let foreign = SimulatedHub::claim(&Tenant::create(&app.client()).await).await;
    let plan = made(&tenant.client, &json!({"name": "Hall"})).await;
    let here = |x: f64| json!({"hubUuid": hub.hub_uuid, "x": x, "y": 0.5});
    let cases = [
        (json!({"name": " "}), "name"),
        (json!({"name": "x".repeat(201)}), "name"),
        (json!({"widthMetres": 0}), "widthMetres"),
        (json!({"widthMetres": 10_000.5}), "widthMetres"),
        (json!({"hubs": [here(1.000_001)]}), "hubs[0].x"),
        (json!({"hubs": [here(-0.1)]}), "hubs[0].x"),
        (json!({"hubs": [here(0.1), here(0.2)]}), "hubs[1].hubUuid"),
        (
            json!({"hubs": [here(0.1), {"hubUuid": foreign.hub_uuid, "x": 0, "y": 0}]}),
            "hubs[1].hubUuid",
        ),
        (json!({"hubs": vec![here(0.1); 501]}), "hubs"),
        (json!({"colour": "red"}), "colour"),
    ];
    for (body, field) in cases {
        let problem = tenant
            .client
            .patch(&at(&plan))
            .json(&body)
            .call()
            .await
            .expect(400)
            .problem();
        assert_eq!(problem.errors[0].field, field, "{body}");
    }
    tenant
        .client
        .post(PATH)
        .json(&json!({"name": "x", "hubs": [here(2.0)]}))
        .call()
        .await
        .expect(400);
    assert_eq!(read(&tenant.client, &plan).await, plan);
    for number in 1..20 {
        made(&tenant.client, &json!({"name": format!("Hall {number}")})).await;
    }
    let problem = tenant
        .client
        .post(PATH)
        .json(&json!({"name": "One more"}))
        .call()
        .await
        .expect(409)
        .problem();
    assert_eq!(problem.code, "TOO_MANY_FLOOR_PLANS");
}

on_each_database!(plans_go_with_their_tenant);
async fn plans_go_with_their_tenant(backend: Backend) {
    let app = TestApp::new(backend).await;
    let tenant = Tenant::create(&app.client()).await;
    let hub = SimulatedHub::claim(&tenant).await;
    let hubs = json!([{"hubUuid": hub.hub_uuid, "x": 0.5, "y": 0.5}]);
    let plan = made(&tenant.client, &json!({"name": "Hall", "hubs": hubs})).await;
    tenant
        .client
        .put(&format!("{}/image", at(&plan)))
        .body(PNG)
        .call()
        .await
        .expect(200);
    tenant
        .client
        .delete(&format!("/tenant/tenants/{}", tenant.tenant_uuid))
        .call()
        .await
        .expect(200);
    let mut conn = app.app.db.read().await.expect("a connection");
    for table in ["floor_plans", "floor_plan_images", "floor_plan_hubs"] {
        let count = match table {
            "floor_plans" => hub_base::db::sql("SELECT COUNT(*) FROM floor_plans"),
            "floor_plan_images" => hub_base::db::sql("SELECT COUNT(*) FROM floor_plan_images"),
            _ => hub_base::db::sql("SELECT COUNT(*) FROM floor_plan_hubs"),
        };
        let count: i64 = count.scalar(&mut conn).await.expect("a number");
        assert_eq!(count, 0, "{table}");
    }
}
