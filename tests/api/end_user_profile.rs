//! `/app/profile`.

use hub_tests::{Backend, Call, Person, Tenant, TestApp, on_each_database};
use serde_json::{Value, json};

const PATH: &str = "/app/profile";

on_each_database!(people_change_their_own_profile);
async fn people_change_their_own_profile(backend: Backend) {
    let app = TestApp::new(backend).await;
    let (one, other) = (
        Person::register(&app.client()).await,
        Person::register(&app.client()).await,
    );
    let put = async |body: Value| -> Value {
        one.client
            .put(PATH)
            .json(&body)
            .call()
            .await
            .expect(200)
            .data()
    };
    let first: Value = one.client.get(PATH).call().await.expect(200).data();
    assert_eq!(
        (&first["userUuid"], &first["email"]),
        (&json!(one.login.user_uuid), &json!(one.email))
    );
    assert!(
        first["nickname"].is_null() && first["createdAt"].is_string(),
        "{first}"
    );
    let given = json!({
        "nickname": "Ada", "locale": "pt-BR", "timeZone": "Europe/Lisbon", "phone": "+4930901820",
        "avatarUrl": "https://example.com/ada.png"
    });
    let changed = put(given.clone()).await;
    for (name, value) in given.as_object().expect("an object") {
        assert_eq!(&changed[name], value, "{name}");
    }
    assert_eq!(
        put(json!({"nickname": null})).await,
        changed,
        "what is absent or null stays"
    );
    let without = put(json!({"phone": " ", "locale": ""})).await;
    assert_eq!(
        (&without["phone"], &without["locale"], &without["nickname"]),
        (&json!(null), &json!(null), &json!("Ada"))
    );
    let read: Value = one.client.get(PATH).call().await.expect(200).data();
    assert_eq!(read, without);
    let of_other: Value = other.client.get(PATH).call().await.expect(200).data();
    assert!(of_other["nickname"].is_null(), "{of_other}");
}

on_each_database!(bad_members_of_a_profile_are_named);
async fn bad_members_of_a_profile_are_named(backend: Backend) {
    let app = TestApp::new(backend).await;
    let person = Person::register(&app.client()).await;
    for (member, bad) in [
        ("nickname", json!("a\nb")),
        ("nickname", json!("a".repeat(81))),
        ("locale", json!("de_DE")),
        ("timeZone", json!("Europe//Berlin")),
        ("timeZone", json!("../etc")),
        ("timeZone", json!("Europe/Atlantis")),
        ("timeZone", json!("europe/berlin")),
        ("phone", json!("030 901820")),
        ("phone", json!("+0123456")),
        ("avatarUrl", json!("javascript:alert(1)")),
        ("avatarUrl", json!(7)),
    ] {
        let problem = person
            .client
            .put(PATH)
            .json(&json!({member: bad}))
            .call()
            .await
            .expect(400)
            .problem();
        assert_eq!(problem.errors[0].field, member, "{bad}");
    }
}

on_each_database!(audit_names_what_changed_of_a_profile_and_no_values);
async fn audit_names_what_changed_of_a_profile_and_no_values(backend: Backend) {
    let app = TestApp::new(backend).await;
    let tenant = Tenant::create(&app.client()).await;
    let admin = Person::register(&app.client())
        .await
        .as_platform_admin(&app);
    let body = json!({"phone": "+4930901820"});
    tenant
        .owner
        .client
        .put(PATH)
        .json(&body)
        .call()
        .await
        .expect(200);
    let path = format!(
        "/platform/audit-logs?actorUuid={}&size=100",
        tenant.owner.login.user_uuid
    );
    let logged = admin.get(&path).call().await.expect(200).json().to_string();
    assert!(
        logged.contains("user.update_profile") && logged.contains("\"phone\""),
        "{logged}"
    );
    assert!(!logged.contains("4930901820"), "{logged}");
}
