//! `/app/device-ui`: the forms of a supplier, and what becomes of what a person enters.

use std::time::{Duration, Instant};

use hub_base::db::sql;
use hub_tests::devices::make_model;
use hub_tests::supplier::{End, access_token};
use hub_tests::{
    Backend, Call, Client, Person, Reply, SimulatedHub, SupplierAnswer, Tenant, on_each_database,
};
use serde_json::{Value, json};
use uuid::Uuid;

use super::supplier_links::Linking;

const INVOKE: &str = "/app/device-ui/invoke";
const ENDPOINTS: &str = "/tenant/external-endpoints";
const PROOF: &str = "/.well-known/hub-verify.txt";

/// A person with a hub of a supplier that has a form, and an endpoint that it sends to.
struct World {
    linking: Linking,
    hub: SimulatedHub,
    endpoint: String,
    form: i64,
}

async fn hub_of(linking: &Linking, tenant: &Tenant, person: &Person) -> SimulatedHub {
    let body = json!({"ownerUserUuid": person.login.user_uuid});
    let code: Value = tenant
        .client
        .post("/tenant/hubs/claim-codes")
        .json(&body)
        .call()
        .await
        .expect(200)
        .data();
    let code = code["claimCode"].as_str().expect("a code");
    SimulatedHub::claim_with(&linking.app.client(), code, &Uuid::new_v4().to_string()).await
}

async fn make_endpoint(tenant: &Tenant, base_url: &str) -> Value {
    let auth = json!({"type": "HEADER", "name": "X-Key", "value": "the key of the endpoint"});
    let body = json!({"name": "Places", "baseUrl": base_url, "verify_method": "WELL_KNOWN", "authConfig": auth});
    tenant
        .client
        .post(ENDPOINTS)
        .json(&body)
        .call()
        .await
        .expect(200)
        .data()
}

async fn make_form(tenant: &Tenant, kind: &str, endpoint: &str) -> i64 {
    let submit = |method: &str, path: &str| json!({"externalEndpointId": endpoint, "path": path, "method": method});
    let headers = json!({"X-Form": "place", "aUTHORIZATION": "Bearer of the form", "Host": "elsewhere.example.com",
        "Accept-Encoding": "gzip", "Transfer-Encoding": "chunked", "X-Hub-UUID": "another hub"});
    let steps = json!([
        {"id": "place", "title": "Where?", "submit": submit("POST", "/v1/places?kind=room"), "external_headers": headers},
        {"id": "look", "title": "Look", "submit": submit("GET", "/v1/places?kind=room")},
        {"id": "up", "title": "Up", "submit": submit("PUT", "/../../other")},
        {"id": "done", "title": "Done"},
        {"id": "number", "title": "Which?", "submit": submit("POST", "/v1/places?kind=number"), "fields": {
            "type": "object", "properties": {"floor": {"type": "integer", "maximum": 9}}, "required": ["floor"]}},
    ]);
    let model = make_model(tenant, "Lamp").await;
    let body = json!({"deviceUuid": model, "kind": kind, "name": "Set up", "configJson": {"steps": steps}});
    let made: Value = tenant
        .client
        .post("/tenant/device-ui-schemas")
        .json(&body)
        .call()
        .await
        .expect(200)
        .data();
    made["deviceUiId"].as_i64().expect("an id")
}

impl World {
    async fn new(backend: Backend) -> Self {
        let linking = Linking::new(backend).await;
        let hub = hub_of(&linking, &linking.tenant, &linking.person).await;
        let made = make_endpoint(&linking.tenant, &format!("{}/api/", linking.supplier.url)).await;
        let endpoint = made["id"].as_str().expect("a uuid").to_owned();
        let form = make_form(&linking.tenant, "SETUP", &endpoint).await;
        let token = made["verify_token"].as_str().expect("a token").to_owned();
        linking.supplier.say(
            PROOF,
            SupplierAnswer {
                body: token,
                ..SupplierAnswer::html(200)
            },
        );
        linking
            .supplier
            .say_otherwise(SupplierAnswer::json(201, json!({"placeId": 7})));
        Self {
            linking,
            hub,
            endpoint,
            form,
        }
    }

    /// One whose endpoint is proved, and whose person has linked their account.
    async fn ready(backend: Backend) -> Self {
        let world = Self::new(backend).await;
        world.verify().await;
        world.linking.link().await;
        world.linking.supplier.take_all();
        world
    }

    async fn verify(&self) {
        let path = format!("{ENDPOINTS}/{}/verify", self.endpoint);
        let verified: Value = self
            .linking
            .tenant
            .client
            .post(&path)
            .call()
            .await
            .expect(200)
            .data();
        assert_eq!(verified["domain_verified"], true, "{verified}");
    }

    fn body(&self, step: &str, values: Value) -> Value {
        json!({"hubUuid": self.hub.hub_uuid, "deviceUiId": self.form, "stepId": step, "values": values})
    }

    async fn invoke(&self, step: &str, values: Value) -> Reply {
        self.post(&self.linking.user(), &self.body(step, values))
            .await
    }

    async fn post(&self, caller: &Client, body: &Value) -> Reply {
        caller.post(INVOKE).json(body).call().await
    }
}

on_each_database!(a_step_goes_to_the_supplier_with_the_persons_token);
async fn a_step_goes_to_the_supplier_with_the_persons_token(backend: Backend) {
    let world = World::ready(backend).await;
    let supplier = &world.linking.supplier;
    let values = json!({"room": "Hall\r\nX-Other: 1", "lamps": [1, 2.5], "more": {"é": null}});
    let reply = world.invoke("place", values.clone()).await.expect(200);
    assert_eq!(
        (reply.header("x-upstream-status"), reply.body.as_str()),
        ("201", r#"{"data":{"placeId":7}}"#)
    );
    let asked = supplier.take_all();
    assert_eq!(asked.len(), 1, "{asked:?}");
    let asked = &asked[0];
    assert_eq!(
        (
            asked.method.as_str(),
            asked.path.as_str(),
            asked.query.as_str()
        ),
        ("POST", "/api/v1/places", "kind=room")
    );
    let body: Value = serde_json::from_slice(&asked.body).expect("JSON");
    assert_eq!(body, values);
    let bearer = format!("Bearer {}", access_token(1));
    let hub_uuid = world.hub.hub_uuid.to_string();
    for (name, value) in [
        ("authorization", bearer.as_str()),
        ("content-type", "application/json"),
        ("x-form", "place"),
        ("x-key", "the key of the endpoint"),
        ("x-hub-uuid", &hub_uuid),
        ("x-request-id", reply.header("x-request-id")),
    ] {
        let values: Vec<_> = asked.headers.get_all(name).iter().collect();
        assert_eq!(values, [value], "{name}");
    }
    assert!(
        !asked.headers.contains_key("x-other") && !asked.headers.contains_key("accept-encoding")
    );
    assert!(
        supplier
            .url
            .ends_with(asked.headers["host"].to_str().expect("text"))
    );
    let headers = format!("{:?}", asked.headers);
    assert!(
        !headers.contains(&world.linking.person.login.access_token)
            && !headers.contains("of the form"),
        "{headers}"
    );

    // What has no body goes into the query.
    world
        .invoke("look", json!({"room": "a&b=c", "floor": 2, "on": true}))
        .await
        .expect(200);
    let asked = supplier.take_all().remove(0);
    assert_eq!((asked.method.as_str(), asked.body.len()), ("GET", 0));
    assert_eq!(asked.query, "kind=room&floor=2&on=true&room=a%26b%3Dc");
    let long = world
        .invoke("look", json!({"room": "x".repeat(3000)}))
        .await
        .expect(400)
        .problem();
    assert_eq!(long.errors[0].field, "values");
    // A path stays at the server that was proved.
    world.invoke("up", json!({})).await.expect(200);
    assert_eq!(supplier.take_all()[0].path, "/other");

    // The token is refreshed first where it is about to expire.
    world.linking.pass(3600 - 200);
    world.invoke("place", json!({})).await.expect(200);
    let asked = supplier.take("/api/v1/places").remove(0);
    assert_eq!(
        asked.headers["authorization"],
        format!("Bearer {}", access_token(2))
    );
    let entries = "SELECT COUNT(*) FROM audit_logs WHERE action = 'device_ui.invoke'";
    assert_eq!(
        world.linking.scalar(entries).await,
        5,
        "a step that was never sent is one of them"
    );
}

on_each_database!(an_endpoint_that_misbehaves_is_reported);
async fn an_endpoint_that_misbehaves_is_reported(backend: Backend) {
    let world = World::ready(backend).await;
    let supplier = &world.linking.supplier;
    let text = |status: u16, body: &str| SupplierAnswer {
        body: body.to_owned(),
        ..SupplierAnswer::json(status, json!({}))
    };
    // What it refuses with a reason is an answer, and so is nothing where all is well.
    for (said, status, body) in [
        (
            SupplierAnswer::json(422, json!({"room": "is taken"})),
            "422",
            r#"{"data":{"room":"is taken"}}"#,
        ),
        (
            SupplierAnswer::json(404, json!({"no": "place"})),
            "404",
            r#"{"data":{"no":"place"}}"#,
        ),
        (text(200, ""), "200", r#"{"data":{}}"#),
        (text(204, ""), "204", r#"{"data":{}}"#),
    ] {
        supplier.say("/api/v1/places", said);
        let reply = world.invoke("place", json!({})).await.expect(200);
        assert_eq!(
            (reply.header("x-upstream-status"), reply.body.as_str()),
            (status, body)
        );
    }
    for (said, code) in [
        (SupplierAnswer::html(200), "ENDPOINT_FAILED"),
        (SupplierAnswer::html(404), "ENDPOINT_FAILED"),
        (text(400, ""), "ENDPOINT_FAILED"),
        (SupplierAnswer::html(500), "ENDPOINT_FAILED"),
        (
            SupplierAnswer::json(503, json!({"why": "hunter2"})),
            "ENDPOINT_FAILED",
        ),
        (SupplierAnswer::json(429, json!({})), "ENDPOINT_FAILED"),
        (
            SupplierAnswer::json(401, json!({"why": "hunter2"})),
            "ENDPOINT_REFUSED",
        ),
        (SupplierAnswer::json(403, json!({})), "ENDPOINT_REFUSED"),
        (SupplierAnswer::redirect(), "ENDPOINT_FAILED"),
        (SupplierAnswer::json(200, json!([])), "ENDPOINT_FAILED"),
        (text(200, "{\"a\": 1} more"), "ENDPOINT_FAILED"),
        (SupplierAnswer::lost(), "ENDPOINT_FAILED"),
        (SupplierAnswer::endless(End::Never), "ENDPOINT_FAILED"),
    ] {
        supplier.say("/api/v1/places", said.clone());
        let reply = world.invoke("place", json!({})).await.expect(502);
        assert_eq!(reply.problem().code, code, "{said:?}");
        assert!(
            !reply.body.contains("hunter2") && !reply.body.contains("sorry"),
            "{}",
            reply.body
        );
    }
    for said in [SupplierAnswer::never(), SupplierAnswer::endless(End::Drips)] {
        supplier.say("/api/v1/places", said);
        let began = Instant::now();
        assert_eq!(
            world
                .invoke("place", json!({}))
                .await
                .expect(504)
                .problem()
                .code,
            "ENDPOINT_TIMED_OUT"
        );
        assert!(
            began.elapsed() < Duration::from_secs(25),
            "{:?}",
            began.elapsed()
        );
    }
    // An address that became one of the service's own network is judged when it is called.
    for base_url in ["http://169.254.169.254/latest", "http://127.0.0.1:9"] {
        let mut tx = world
            .linking
            .app
            .app
            .db
            .begin()
            .await
            .expect("a transaction");
        sql("UPDATE external_endpoints SET base_url = $1")
            .bind(base_url)
            .run(&mut tx)
            .await
            .expect("an update");
        tx.commit_unaudited("a test").await.expect("a commit");
        let reply = world.invoke("place", json!({})).await.expect(502);
        assert_eq!(reply.problem().code, "ENDPOINT_FAILED");
        assert!(!reply.body.contains("169.254"), "{}", reply.body);
    }
}

on_each_database!(nothing_is_sent_for_who_may_not_or_to_where_nobody_proved);
async fn nothing_is_sent_for_who_may_not_or_to_where_nobody_proved(backend: Backend) {
    let world = World::new(backend).await;
    let linking = &world.linking;
    let user = linking.user();
    let invoke = async |step: &str, status: u16| {
        world
            .invoke(step, json!({}))
            .await
            .expect(status)
            .problem()
            .code
    };
    assert_eq!(invoke("place", 409).await, "SUPPLIER_LINK_REQUIRED");
    linking.link().await;
    assert_eq!(invoke("place", 409).await, "EXTERNAL_ENDPOINT_NOT_VERIFIED");
    world.verify().await;
    assert_eq!(invoke("done", 409).await, "STEP_SENDS_NOTHING");
    assert_eq!(invoke("nowhere", 404).await, "NOT_FOUND");

    let second = Tenant::create(&linking.app.client()).await;
    let foreign_form = make_form(
        &second,
        "SETUP",
        make_endpoint(&second, &linking.supplier.url).await["id"]
            .as_str()
            .expect("a uuid"),
    )
    .await;
    let other = Person::register(&linking.app.client()).await;
    let foreign_hub = hub_of(linking, &linking.tenant, &other).await;
    let good = world.body("place", json!({}));
    let with = |member: &str, value: Value| {
        let mut body = good.clone();
        body[member] = value;
        body
    };
    let unknown = world
        .post(&user, &with("hubUuid", json!(Uuid::new_v4())))
        .await
        .expect(404)
        .problem()
        .message;
    let foreign = world
        .post(&user, &with("hubUuid", json!(foreign_hub.hub_uuid)))
        .await
        .expect(404)
        .problem()
        .message;
    assert_eq!(foreign, unknown);
    let theirs = world
        .post(&other.client, &good)
        .await
        .expect(404)
        .problem()
        .message;
    assert_eq!(theirs, unknown, "somebody else's hub");
    let unknown = world
        .post(&user, &with("deviceUiId", json!(4_242_424_242_i64)))
        .await
        .expect(404)
        .problem()
        .message;
    let foreign = world
        .post(&user, &with("deviceUiId", json!(foreign_form)))
        .await
        .expect(404)
        .problem()
        .message;
    assert_eq!(foreign, unknown, "a form of another supplier");
    for (member, value) in [
        ("stepId", json!("")),
        ("stepId", json!("x".repeat(201))),
        ("values", json!({"a": "x".repeat(70_000)})),
        ("values", json!([])),
        ("values", Value::Null),
        ("hubUuid", json!("mine")),
        ("deviceUiId", json!("1")),
    ] {
        let problem = world
            .post(&user, &with(member, value.clone()))
            .await
            .expect(400)
            .problem();
        assert_eq!(problem.errors[0].field, member, "{value}");
    }
    for (values, place) in [
        (json!({"floor": 10}), "/values/floor"),
        (json!({}), "/values"),
    ] {
        let problem = world
            .post(&user, &world.body("number", values))
            .await
            .expect(400)
            .problem();
        assert_eq!(problem.errors[0].field, place);
    }
    let key = linking
        .tenant
        .api_key(json!({"scopes": ["*"]}))
        .await
        .client;
    for nobody in [linking.app.client(), key, world.hub.client.clone()] {
        world.post(&nobody, &good).await.expect(401);
    }
    assert!(
        linking.supplier.take("/api/v1/places").is_empty(),
        "nothing of all that was sent"
    );
    let entries = "SELECT COUNT(*) FROM audit_logs WHERE action = 'device_ui.invoke'";
    assert_eq!(
        linking.scalar(entries).await,
        1,
        "the one that met an endpoint without a proof"
    );

    // A person may send so many in a minute.
    let now = linking.app.app.clock.now();
    while linking
        .app
        .app
        .turns
        .device_ui
        .count(linking.person.login.user_uuid.0, now)
        .is_ok()
    {}
    world.invoke("place", json!({})).await.expect(429);
    linking.pass(1);
    world.invoke("place", json!({})).await.expect(200);
}

on_each_database!(forms_that_set_up_devices_are_those_of_the_hubs_supplier);
async fn forms_that_set_up_devices_are_those_of_the_hubs_supplier(backend: Backend) {
    let world = World::new(backend).await;
    let linking = &world.linking;
    let client = linking.user();
    let path = format!("/app/device-ui/setup/{}", world.hub.hub_uuid);
    make_form(&linking.tenant, "CONTROL", &world.endpoint).await;
    let second = Tenant::create(&linking.app.client()).await;
    make_endpoint(&second, &linking.supplier.url).await;
    let setup: Value = client.get(&path).call().await.expect(200).data();
    assert_eq!(setup["hubUuid"], json!(world.hub.hub_uuid));
    assert_eq!(setup["supplierUuid"], json!(linking.tenant.tenant_uuid));
    let forms = setup["forms"].as_array().expect("a list");
    assert_eq!(forms.len(), 1, "{forms:?}");
    assert_eq!(
        (&forms[0]["deviceUiId"], &forms[0]["name"]),
        (&json!(world.form), &json!("Set up"))
    );
    assert_eq!(forms[0]["configJson"]["steps"][0]["id"], "place");
    assert!(
        !forms[0].to_string().contains("of the form"),
        "a credential of the form is not kept"
    );

    let without = hub_of(linking, &second, &linking.person).await;
    let path_without = format!("/app/device-ui/setup/{}", without.hub_uuid);
    let problem = client.get(&path_without).call().await.expect(404).problem();
    assert_eq!(problem.code, "NO_DEVICE_UI");
    let other = Person::register(&linking.app.client()).await;
    let foreign = other.client.get(&path).call().await.expect(404).problem();
    let unknown = format!("/app/device-ui/setup/{}", Uuid::new_v4());
    let unknown = other
        .client
        .get(&unknown)
        .call()
        .await
        .expect(404)
        .problem();
    assert_eq!(
        (foreign.code.as_str(), foreign.message),
        ("NOT_FOUND", unknown.message)
    );
}
