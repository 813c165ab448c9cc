//! Signing in with a browser at a certified OpenID Connect provider, which knows the service as a
//! confidential client and requires PKCE.

use hub_tests::issuer::{Browser, Provider, browser_settings};
use hub_tests::{Backend, Call, Client, Options, Reply, TestApp, on_each_database};
use reqwest::Url;
use reqwest::header::{COOKIE, HeaderName, SET_COOKIE};
use serde_json::Value;

const CALLBACK: &str = "/auth/oidc/callback";

/// The cookies that an answer sets, as they are sent back.
fn cookies(reply: &Reply) -> String {
    let set = reply
        .headers
        .get_all(SET_COOKIE)
        .iter()
        .map(|cookie| cookie.to_str().expect("text"));
    let pairs: Vec<&str> = set.filter_map(|cookie| cookie.split(';').next()).collect();
    pairs.join("; ")
}

/// A browser at the service, and where the provider sent it back to.
async fn visit(app: &TestApp, name: &str) -> (Client, Url) {
    let client = app.client().without_redirects();
    let begun = client
        .get("/auth/oidc/login?returnTo=/console/hubs")
        .call()
        .await
        .expect(303);
    let page = Url::parse(begun.header("location")).expect("a URL");
    let back = Browser::default().visit(&page, name, CALLBACK).await;
    (client.header(COOKIE, &cookies(&begun)), back)
}

async fn come_back(client: &Client, back: &Url) -> Reply {
    client
        .get(&format!("{CALLBACK}?{}", back.query().expect("an answer")))
        .call()
        .await
        .expect(303)
}

on_each_database!(people_of_a_certified_provider_sign_in);
async fn people_of_a_certified_provider_sign_in(backend: Backend) {
    let Some(mut provider) = Provider::start().await else {
        return;
    };
    let settings = browser_settings(&provider.url);
    let app = TestApp::with(
        backend,
        Options {
            settings,
            ..Options::default()
        },
    )
    .await;
    let mut pages = Vec::new();
    for name in ["ada", "admin"] {
        let (client, back) = visit(&app, name).await;
        let reply = come_back(&client, &back).await;
        assert_eq!(reply.header("location"), "/console/hubs");
        // A code works once.
        let again = come_back(&client, &back).await;
        assert_eq!(
            again.header("location"),
            "/console/hubs?signInError=SIGN_IN_FAILED"
        );
        let page = app
            .client()
            .header(HeaderName::from_static("sec-fetch-site"), "same-origin");
        let page = page.header(COOKIE, &cookies(&reply));
        let session: Value = page
            .post("/auth/session/refresh")
            .call()
            .await
            .expect(200)
            .data();
        let person = app
            .client()
            .bearer(session["accessToken"].as_str().expect("a token"));
        let profile: Value = person.get("/app/profile").call().await.expect(200).data();
        assert_eq!(profile["email"], format!("{name}@example.com"));
        person
            .get("/platform/tenants")
            .call()
            .await
            .expect(if name == "admin" { 200 } else { 403 });
        pages.push((page, person));
    }

    // The code of one sign-in is no use in another.
    let (client, back) = visit(&app, "ada").await;
    let (_, other) = visit(&app, "ben").await;
    let of = |page: &Url, name: &str| {
        page.query_pairs()
            .find(|(key, _)| key == name)
            .expect("a member")
            .1
            .into_owned()
    };
    let mut mixed = back.clone();
    mixed
        .query_pairs_mut()
        .clear()
        .append_pair("code", &of(&other, "code"));
    mixed
        .query_pairs_mut()
        .append_pair("state", &of(&back, "state"))
        .append_pair("iss", &provider.url);
    assert_eq!(
        come_back(&client, &mixed).await.header("location"),
        "/console/hubs?signInError=SIGN_IN_FAILED"
    );
    // This provider says who it is, so an answer without that is not its own.
    let mut silent = back.clone();
    silent
        .query_pairs_mut()
        .clear()
        .append_pair("code", &of(&back, "code"));
    silent
        .query_pairs_mut()
        .append_pair("state", &of(&back, "state"));
    assert_eq!(
        come_back(&client, &silent).await.header("location"),
        "/console/hubs?signInError=OTHER_ISSUER"
    );

    // Whoever is signed in stays so without the provider.
    provider.kill().await;
    for (page, person) in &pages {
        page.post("/auth/session/refresh").call().await.expect(200);
        person.get("/app/profile").call().await.expect(200);
    }
    let failed = come_back(&client, &back).await;
    assert_eq!(
        failed.header("location"),
        "/console/hubs?signInError=SIGN_IN_FAILED"
    );
}
