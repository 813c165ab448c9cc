//! The scope of end users, which every handler of `/app` takes.

use axum::Router;
use axum::body::Body;
use axum::http::{Request, StatusCode};
use axum::routing::get;
use hub_identity::authz::EndUser;
use hub_tests::{Backend, Call, Person, SimulatedHub, Tenant, TestApp, on_each_database};
use tower::ServiceExt;

/// A handler of `/app` that answers whose scope it was given.
fn probe(app: &TestApp) -> Router {
    let handler = |end_user: EndUser| async move { end_user.scope.user_uuid().to_string() };
    Router::new()
        .route("/app/probe", get(handler))
        .with_state(app.app.people())
}

async fn ask(app: &TestApp, headers: &[(&str, &str)]) -> (StatusCode, String) {
    let mut request = Request::get("/app/probe");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let request = request.body(Body::empty()).expect("a request");
    let response = probe(app).oneshot(request).await.expect("a response");
    let status = response.status();
    let body = axum::body::to_bytes(response.into_body(), 64 * 1024)
        .await
        .expect("a body");
    (status, String::from_utf8(body.to_vec()).expect("text"))
}

on_each_database!(each_end_user_gets_their_own_scope_and_nobody_else_gets_one);
async fn each_end_user_gets_their_own_scope_and_nobody_else_gets_one(backend: Backend) {
    let app = TestApp::new(backend).await;
    let (one, other) = (
        Person::register(&app.client()).await,
        Person::register(&app.client()).await,
    );
    let bearer = |token: &str| format!("Bearer {token}");
    for person in [&one, &other] {
        let (status, user_uuid) = ask(
            &app,
            &[("authorization", &bearer(&person.login.access_token))],
        )
        .await;
        assert_eq!(
            (status, user_uuid),
            (StatusCode::OK, person.login.user_uuid.to_string())
        );
    }
    let tenant = Tenant::create(&app.client()).await;
    let hub = SimulatedHub::claim(&tenant).await;
    let key = tenant.api_key(serde_json::json!({"scopes": ["*"]})).await;
    for headers in [
        vec![],
        vec![("authorization", bearer("garbage"))],
        vec![("authorization", bearer(&hub.credentials.access_token))],
        vec![("x-api-key", key.raw.clone())],
    ] {
        let headers: Vec<(&str, &str)> = headers
            .iter()
            .map(|(name, value)| (*name, value.as_str()))
            .collect();
        assert_eq!(
            ask(&app, &headers).await.0,
            StatusCode::UNAUTHORIZED,
            "{headers:?}"
        );
    }
    let body = serde_json::json!({"refreshToken": one.login.refresh_token});
    app.client()
        .post("/auth/logout")
        .json(&body)
        .call()
        .await
        .expect(204);
    let ended = ask(&app, &[("authorization", &bearer(&one.login.access_token))]).await;
    assert_eq!(ended.0, StatusCode::UNAUTHORIZED, "the login has ended");
}
