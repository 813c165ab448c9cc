//! Values by the hour of another service: `POST /tenant/devices/{deviceInstanceId}/sensor-data`.

use hub_identity::authz::permission::Role;
use hub_protocol::Timestamp;
use hub_tests::{Backend, Call, Client, Tenant, on_each_database};
use serde_json::{Value, json};

use super::device_history::{self, HOUR, World};

const DAY: i64 = 24 * HOUR;

/// A time of the day that ended when the test began.
fn at(secs: i64) -> Timestamp {
    device_history::at(secs - DAY)
}

/// A bucket of an hour as a service answers it.
fn bucket(hour: i64, quantity: &str, [min, mean, max]: [f64; 3], last: Value) -> Value {
    json!({
        "from": at(hour * HOUR), "to": at((hour + 1) * HOUR), "quantity": quantity,
        "unit": if quantity == "temperature" { json!("Cel") } else { Value::Null },
        "count": 60, "min": min, "max": max, "mean": mean, "last": last,
    })
}

fn of_text(hour: i64, last: &str) -> Value {
    json!({"from": at(hour * HOUR), "to": at((hour + 1) * HOUR), "quantity": "button", "unit": null,
           "count": 2, "min": null, "max": null, "mean": null, "last": last})
}

/// The owner, signed in.
fn owner(world: &World) -> Client {
    let tenant = &world.tenant;
    tenant.owner.client.clone().tenant(tenant.tenant_uuid)
}

on_each_database!(values_of_another_service_continue_in_the_charts);
async fn values_of_another_service_continue_in_the_charts(backend: Backend) {
    let world = World::new(backend).await;
    let path = world.path("sensor-data");
    let client = owner(&world);
    let import = async |values: &[Value]| -> Value {
        let body = json!({"values": values});
        let reply = client.post(&path).json(&body).call().await;
        reply.expect(200).data()
    };
    // The hub has heard the device in the third hour.
    let heard = [(2 * HOUR + 60 - DAY, -60, json!({"temperature": 30}))];
    world.hear(&world.hub, &heard).await;
    world.roll_up().await;
    let values = [
        bucket(0, "temperature", [19.5, 20.25, 21.0], json!(20.5)),
        of_text(0, "press"),
        bucket(1, "temperature", [-40.0, 0.1, 85.0], json!(-3)),
        bucket(2, "temperature", [1.0, 1.0, 1.0], json!(1)),
        of_text(2, "double_press"),
    ];
    assert_eq!(import(&values).await, json!({"imported": 4, "leftOut": 1}));
    assert_eq!(import(&values).await, json!({"imported": 0, "leftOut": 5}));
    let period = format!("every=1h&from={}&to={}", at(0), at(3 * HOUR));
    let shown = world.get(&format!("sensor-data?{period}")).await;
    let expected = [1, 0, 2, 4].map(|at| values[at].clone());
    let of_hub = |value: &Value| value["last"] == json!(30);
    let imported: Vec<&Value> = shown.iter().filter(|value| !of_hub(value)).collect();
    assert_eq!(imported, expected.iter().collect::<Vec<_>>());
    assert_eq!(shown.iter().filter(|value| of_hub(value)).count(), 1);

    // What the hub hears of these hours later is added to them.
    let heard = [(HOUR + 60 - DAY, -60, json!({"temperature": 90}))];
    world.hear(&world.hub, &heard).await;
    world.roll_up().await;
    let hour = format!("every=1h&from={}&to={}", at(HOUR), at(2 * HOUR));
    let shown = world.get(&format!("sensor-data?{hour}")).await;
    assert_eq!(
        (&shown[0]["count"], &shown[0]["max"]),
        (&json!(61), &json!(90.0))
    );
    // A day has them too, and nothing else says that a hub heard the device.
    let day = format!("every=1d&from={}&to={}", at(0), at(DAY));
    let shown = world
        .get(&format!("sensor-data?{day}&quantity=button"))
        .await;
    assert_eq!(
        (&shown[0]["count"], &shown[0]["last"]),
        (&json!(4), &json!("double_press"))
    );
    let items = world.get("sensor-data").await;
    assert_eq!(items.len(), 2, "events are those of the hub");
    let receptions = format!("receptions?from={}&to={}", at(0), at(HOUR));
    assert_eq!(world.get(&receptions).await, Vec::<Value>::new());
    let timeline = format!("timeline?from={}&to={}", at(0), at(DAY));
    let timeline = world.get(&timeline).await;
    assert_eq!(timeline[0]["from"], json!(at(HOUR + 60)), "{timeline:?}");

    let entries: Value = client
        .get("/tenant/audit-logs?action=device.values.import")
        .call()
        .await
        .expect(200)
        .data();
    let entries = entries["content"].as_array().expect("a list");
    let details: Vec<&Value> = entries.iter().map(|entry| &entry["detail"]).collect();
    let detail = json!({"values": 4, "from": at(0), "to": at(3 * HOUR)});
    assert_eq!(details, [&detail], "once, for what was stored");
}

on_each_database!(imports_of_values_are_bounded_and_checked);
async fn imports_of_values_are_bounded_and_checked(backend: Backend) {
    let world = World::new(backend).await;
    world.set_time(90);
    let path = world.path("sensor-data");
    let client = owner(&world);
    let good = |hour: i64| bucket(hour, "temperature", [1.0, 2.0, 3.0], json!(2));
    let refused = async |body: &Value, field: &str| {
        let reply = client.post(&path).json(body).call().await.expect(400);
        let fields: Vec<String> = reply
            .problem()
            .errors
            .into_iter()
            .map(|one| one.field)
            .collect();
        assert!(fields.iter().any(|one| one == field), "{field}: {fields:?}");
    };
    for (member, wrong) in [
        ("from", json!(at(HOUR + 1))),
        ("from", json!(at(DAY))),
        ("from", json!(at(400 * DAY))),
        ("quantity", json!(" ")),
        ("quantity", json!("q".repeat(101))),
        ("quantity", json!("a\nb")),
        ("count", json!(0)),
        ("count", json!(i64::MAX)),
        ("mean", json!(3.5)),
        ("mean", json!(0.5)),
        ("last", json!([1])),
        ("last", Value::Null),
        ("last", json!("x".repeat(256))),
    ] {
        let mut value = good(0);
        value[member] = wrong;
        let body = json!({"values": [good(1), value]});
        refused(&body, &format!("values[1].{member}")).await;
    }
    let mut without_max = good(0);
    without_max["max"] = Value::Null;
    refused(&json!({"values": [without_max]}), "values[0].min").await;
    refused(&json!({"values": [good(0), good(0)]}), "values[1].quantity").await;
    refused(&json!({"values": []}), "values").await;
    let many: Vec<Value> = (0..5001)
        .map(|_| json!({"from": at(0), "quantity": "q", "count": 1, "last": 1}))
        .collect();
    refused(&json!({"values": many}), "values").await;

    // The greatest numbers are stored, summed and read.
    let greatest = |hour: i64| bucket(hour, "temperature", [f64::MAX; 3], json!(f64::MAX));
    let import = async |values: Vec<Value>| -> Value {
        let body = json!({"values": values});
        client
            .post(&path)
            .json(&body)
            .call()
            .await
            .expect(200)
            .data()
    };
    import(vec![greatest(0), greatest(1)]).await;
    let period = format!("every=1d&from={}&to={}", at(0), at(DAY));
    let shown = world.get(&format!("sensor-data?{period}")).await;
    assert_eq!(shown[0]["max"], json!(f64::MAX));
    // Hours that upkeep would delete are left out.
    let old = import(vec![good(-500 * 24), good(-401 * 24), good(-300 * 24)]).await;
    assert_eq!(old, json!({"imported": 1, "leftOut": 2}));
    // An hour has 64 quantities.
    let hour = 7;
    let many = (0..70).map(|at| bucket(hour, &format!("q{at:02}"), [1.0; 3], json!(1)));
    assert_eq!(
        import(many.collect()).await,
        json!({"imported": 64, "leftOut": 6})
    );

    // Who manages the tenant imports; others do not know of the device.
    let body = json!({"values": [good(8)]});
    let key = &world.tenant.client;
    key.post(&path).json(&body).call().await.expect(403);
    let mut tenant = world.tenant.clone();
    tenant.client = client.clone();
    let operator = tenant.member(Role::Operator).await;
    operator.post(&path).json(&body).call().await.expect(403);
    let other = Tenant::create(&world.app.client()).await;
    other
        .client
        .post(&path)
        .json(&body)
        .call()
        .await
        .expect(404);
    let mut statuses = Vec::new();
    for _ in 0..150 {
        statuses.push(
            other
                .client
                .post(&path)
                .json(&body)
                .call()
                .await
                .status
                .as_u16(),
        );
    }
    assert!(statuses.contains(&429) && statuses.iter().all(|one| [404, 429].contains(one)));
    assert_eq!(
        import(vec![good(8)]).await["imported"],
        1,
        "another tenant's limit"
    );
}
