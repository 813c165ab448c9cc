//! Refreshing the tokens of supplier links: once for all who ask, whatever fails; and how links end
//! when the supplier does not answer.

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use hub_base::db::sql;
use hub_core::tasks::Done;
use hub_people::supplier_links;
use hub_tests::supplier::access_token;
use hub_tests::{Backend, Call, Client, SupplierAnswer, TestApp, on_each_database};
use serde_json::{Value, json};
use uuid::Uuid;

use super::supplier_links::Linking;

/// How many ask at once, of each replica.
const READERS: usize = 500;

fn path(id: i64) -> String {
    format!("/app/supplier-links/{id}/access-token")
}

fn refused() -> SupplierAnswer {
    SupplierAnswer::json(400, json!({"error": "invalid_grant"}))
}

/// The token, which is there.
async fn read(linking: &Linking, id: i64) -> String {
    let token: Value = linking.token(id).await.expect(200).data();
    token["access_token"].as_str().expect("a token").to_owned()
}

/// The grants that the supplier was asked for.
fn grants(linking: &Linking) -> Vec<String> {
    linking
        .supplier
        .take("/token")
        .iter()
        .map(|asked| asked.form["grant_type"].clone())
        .collect()
}

on_each_database!(a_thousand_readers_refresh_a_token_once);
async fn a_thousand_readers_refresh_a_token_once(backend: Backend) {
    let linking = Linking::new(backend).await;
    let replica = TestApp::replica_of(&linking.app, linking.options.clone()).await;
    let id = linking.link().await;
    assert_eq!(grants(&linking), ["authorization_code"]);
    // Five minutes and a second before it expires it is good.
    linking.pass(3600 - 301);
    assert_eq!(read(&linking, id).await, access_token(1));
    assert!(grants(&linking).is_empty());
    linking.pass(1);
    // Slow enough for all to come while it runs, and for some to come after it.
    linking.supplier.say_once(
        "/token",
        SupplierAnswer {
            after: Duration::from_millis(700),
            ..issued(2, 3600)
        },
    );
    let user = linking.user();
    let users: Vec<Client> = vec![user.clone(), user.at(&replica.url)];
    let readers = (0..READERS * 2).map(|number| {
        let request = users[number % 2].get(&path(id));
        async move { patiently(request).await["access_token"].clone() }
    });
    let tokens = join_all(readers).await;
    assert!(
        tokens.iter().all(|token| *token == access_token(2)),
        "all get the new one"
    );
    let asked = linking.supplier.take("/token");
    assert_eq!(asked.len(), 1, "one refresh");
    assert_eq!(asked[0].form["refresh_token"], "the-refresh-token-0001");
    let entries = "SELECT COUNT(*) FROM audit_logs WHERE action = 'supplier_link.read_token'";
    assert_eq!(
        linking.scalar(entries).await,
        1 + 2 * READERS as i64,
        "each reading has its entry"
    );

    // A token that lives shorter than the five minutes is refreshed by each who comes later, and
    // still once by all who come together.
    linking.pass(3600);
    linking.supplier.say(
        "/token",
        SupplierAnswer {
            after: Duration::from_secs(2),
            ..issued(3, 60)
        },
    );
    let user = linking.user();
    let readers = (0..50).map(|_| user.get(&path(id)).call());
    for reply in join_all(readers).await {
        reply.expect(200);
    }
    assert_eq!(grants(&linking).len(), 1);
    read(&linking, id).await;
    assert_eq!(grants(&linking).len(), 1);
}

/// The answer, once a busy database has room: it says when to come again.
async fn patiently(request: reqwest::RequestBuilder) -> Value {
    loop {
        let reply = request
            .try_clone()
            .expect("a request without a stream")
            .call()
            .await;
        match reply.status.as_u16() {
            503 => tokio::time::sleep(Duration::from_secs(1)).await,
            _ => return reply.expect(200).data(),
        }
    }
}

fn issued(number: usize, expires_in: i64) -> SupplierAnswer {
    let tokens = json!({"access_token": access_token(number), "token_type": "Bearer", "expires_in": expires_in,
        "refresh_token": format!("the-refresh-token-{number:04}")});
    SupplierAnswer::json(200, tokens)
}

on_each_database!(refreshes_that_fail_lose_nothing);
async fn refreshes_that_fail_lose_nothing(backend: Backend) {
    let linking = Linking::new(backend).await;
    let id = linking.link().await;
    linking.supplier.take("/token");
    linking.pass(3600 - 100);
    // While the token is good, the supplier's trouble is not the app's.
    for said in [
        SupplierAnswer::html(500),
        SupplierAnswer::html(200),
        SupplierAnswer::json(400, json!({"error": "invalid_client"})),
    ] {
        linking.supplier.say("/token", said);
        assert_eq!(read(&linking, id).await, access_token(1));
        let tries = grants(&linking).len();
        assert!((1..=2).contains(&tries), "{tries}");
        assert_eq!(read(&linking, id).await, access_token(1));
        assert!(
            grants(&linking).is_empty(),
            "a supplier that failed is left alone for a while"
        );
        linking.pass(6);
    }
    linking.pass(100);
    assert_eq!(
        linking.token(id).await.expect(502).problem().code,
        "SUPPLIER_FAILED"
    );
    assert_eq!(
        linking.token(id).await.expect(502).problem().code,
        "SUPPLIER_FAILED"
    );
    linking.pass(6);
    linking.supplier.say("/token", SupplierAnswer::never());
    assert_eq!(
        linking.token(id).await.expect(504).problem().code,
        "SUPPLIER_TIMED_OUT"
    );
    assert_eq!(
        linking.token(id).await.expect(504).problem().code,
        "SUPPLIER_TIMED_OUT"
    );

    // An answer that is lost is asked for again, with the token that the server has replaced.
    linking.pass(6);
    linking.supplier.behave();
    linking.supplier.take("/token");
    linking.supplier.say_once("/token", SupplierAnswer::lost());
    let after = read(&linking, id).await;
    let asked = linking.supplier.take("/token");
    assert_eq!(asked.len(), 2);
    assert!(
        asked
            .iter()
            .all(|asked| asked.form["refresh_token"] == "the-refresh-token-0001"),
        "{asked:?}"
    );
    assert_ne!(after, access_token(1));

    // A server that does not rotate leaves the refresh token in force.
    linking.pass(3500);
    let kept =
        json!({"access_token": access_token(90), "token_type": "Bearer", "expires_in": 3600});
    linking
        .supplier
        .say_once("/token", SupplierAnswer::json(200, kept));
    assert_eq!(read(&linking, id).await, access_token(90));
    let first = linking.supplier.take("/token").remove(0).form["refresh_token"].clone();
    linking.pass(3500);
    read(&linking, id).await;
    assert_eq!(
        linking.supplier.take("/token").remove(0).form["refresh_token"],
        first
    );

    // The supplier has ended the link: its user has to link the account again.
    linking.pass(3500);
    linking.supplier.say("/token", refused());
    read(&linking, id).await;
    assert_eq!(grants(&linking).len(), 1, "a refusal is final");
    linking.pass(101);
    assert_eq!(
        linking.token(id).await.expect(409).problem().code,
        "SUPPLIER_LINK_EXPIRED"
    );
    assert!(grants(&linking).is_empty());
    linking.supplier.behave();
    assert_eq!(linking.link().await, id, "the same link");
    read(&linking, id).await;

    // Without a configuration there is nobody to ask.
    linking.pass(3500);
    let owner = linking
        .tenant
        .owner
        .as_platform_admin(&linking.app)
        .tenant(linking.tenant.tenant_uuid);
    owner
        .delete("/tenant/supplier-oauth-config")
        .call()
        .await
        .expect(200);
    read(&linking, id).await;
    linking.pass(101);
    linking.token(id).await.expect(502);
}

on_each_database!(a_refresh_that_was_killed_delays_the_next_and_no_more);
async fn a_refresh_that_was_killed_delays_the_next_and_no_more(backend: Backend) {
    let linking = Linking::new(backend).await;
    let id = linking.link().await;
    linking.pass(3500);
    // As a process leaves it that is killed while it waits for the supplier.
    let until = linking.app.app.clock.now().plus_secs(30);
    let mut tx = linking.app.app.db.begin().await.expect("a transaction");
    sql("UPDATE supplier_links SET lease_uuid = $1, lease_until = $2")
        .bind((Uuid::new_v4(), until))
        .execute(&mut tx)
        .await
        .expect("a lease");
    tx.commit_unaudited("a test's own set-up")
        .await
        .expect("a commit");
    linking.supplier.take("/token");
    let user = linking.user();
    let waiting = tokio::spawn(user.get(&path(id)).call());
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert!(
        !waiting.is_finished() && linking.supplier.take("/token").is_empty(),
        "the lease is respected"
    );
    linking.pass(31);
    let token: Value = waiting.await.expect("an answer").expect(200).data();
    assert_eq!(token["access_token"], access_token(2));
    assert_eq!(grants(&linking).len(), 1);
}

on_each_database!(a_reader_that_leaves_loses_no_token);
async fn a_reader_that_leaves_loses_no_token(backend: Backend) {
    let linking = Linking::new(backend).await;
    let id = linking.link().await;
    linking.pass(3500);
    linking.supplier.say_once(
        "/token",
        SupplierAnswer {
            after: Duration::from_millis(600),
            ..issued(7, 3600)
        },
    );
    let user = linking.user();
    let leaving = user.get(&path(id)).timeout(Duration::from_millis(200));
    leaving.try_call().await.expect_err("it leaves");
    tokio::time::sleep(Duration::from_millis(800)).await;
    assert_eq!(read(&linking, id).await, access_token(7));
    assert_eq!(
        linking.supplier.take("/token").len(),
        2,
        "the code, and one refresh"
    );
}

on_each_database!(a_link_ends_whatever_the_supplier_does);
async fn a_link_ends_whatever_the_supplier_does(backend: Backend) {
    let linking = Linking::new(backend).await;
    let perform = async |id: i64| {
        let payload = json!({"supplierLinkId": id});
        let kind = supplier_links::REVOKE;
        hub_tests::app::perform(&linking.app.app, kind, payload).await
    };
    let sealed = "SELECT COUNT(*) FROM supplier_links WHERE sealed_access_token IS NOT NULL";
    for said in [SupplierAnswer::never(), SupplierAnswer::html(500)] {
        let id = linking.link().await;
        linking.supplier.say("/revoke", said);
        let began = Instant::now();
        let ended = linking
            .user()
            .delete(&format!("/app/supplier-links/{id}"))
            .call()
            .await
            .expect(200);
        assert_eq!(ended.data::<Value>()["revokedAtSupplier"], false);
        assert!(
            began.elapsed() < Duration::from_secs(20),
            "{:?}",
            began.elapsed()
        );
        linking.token(id).await.expect(404);
        assert!(linking.links().await.is_empty());
        // The supplier is asked again until it does.
        assert_eq!(linking.scalar(sealed).await, 1);
        linking.pass(20);
        assert!(matches!(perform(id).await, Done::RunAt(_)));
        linking.supplier.behave();
        linking.supplier.take("/revoke");
        assert_eq!(perform(id).await, Done::Finished);
        assert_eq!(
            (
                linking.supplier.take("/revoke").len(),
                linking.scalar(sealed).await
            ),
            (2, 0)
        );
        assert_eq!(
            perform(id).await,
            Done::Finished,
            "doing it twice does no harm"
        );
    }
    // A day later the tokens are deleted all the same.
    let id = linking.link().await;
    linking.supplier.say("/revoke", SupplierAnswer::html(500));
    linking
        .user()
        .delete(&format!("/app/supplier-links/{id}"))
        .call()
        .await
        .expect(200);
    linking.pass(24 * 3600);
    assert_eq!(perform(id).await, Done::Finished);
    assert_eq!(linking.scalar(sealed).await, 0);
    linking.pass(90 * 24 * 3600);
    let now = linking.app.app.clock.now();
    supplier_links::upkeep(&linking.app.app.db, now, 100)
        .await
        .expect("upkeep");
    assert_eq!(
        linking.scalar("SELECT COUNT(*) FROM supplier_links").await,
        0
    );
}

on_each_database!(links_are_bounded_and_end_with_their_supplier);
async fn links_are_bounded_and_end_with_their_supplier(backend: Backend) {
    let linking = Linking::new(backend).await;
    let mut waiting = linking.begin(&linking.user(), None).await;
    for number in 0..20 {
        linking.supplier.say(
            "/me",
            SupplierAnswer::json(200, json!({"sub": format!("user {number}")})),
        );
        linking.link().await;
    }
    let body = json!({"supplierUuid": linking.tenant.tenant_uuid});
    let reply = linking
        .user()
        .post("/app/supplier-link/authorize")
        .json(&body)
        .call()
        .await
        .expect(409);
    assert_eq!(reply.problem().code, "TOO_MANY_SUPPLIER_LINKS");
    // One that was begun before is no way around it, and leaves no tokens behind.
    linking
        .supplier
        .say("/me", SupplierAnswer::json(200, json!({"sub": "one more"})));
    let state = waiting.remove("state").expect("a state");
    let query = [
        ("code", "code"),
        ("state", state.as_str()),
        ("iss", linking.supplier.url.as_str()),
    ];
    let back = linking.come_back(&query).await.expect(303);
    assert_eq!(
        linking.complete(&back).await.expect(409).problem().code,
        "TOO_MANY_SUPPLIER_LINKS"
    );
    assert_eq!(linking.supplier.take("/revoke").len(), 2);
    let links = linking.links().await;
    assert_eq!(links.len(), 20);

    let begun = {
        let id = links[0]["id"].as_i64().expect("an id");
        linking
            .user()
            .delete(&format!("/app/supplier-links/{id}"))
            .call()
            .await
            .expect(200);
        linking.begin(&linking.user(), None).await
    };
    let path = format!("/tenant/tenants/{}", linking.tenant.tenant_uuid);
    linking
        .tenant
        .owner
        .as_platform_admin(&linking.app)
        .delete(&path)
        .call()
        .await
        .expect(200);
    assert!(linking.links().await.is_empty());
    linking
        .token(links[1]["id"].as_i64().expect("an id"))
        .await
        .expect(404);
    let query = [
        ("code", "code"),
        ("state", begun["state"].as_str()),
        ("iss", linking.supplier.url.as_str()),
    ];
    linking.come_back(&query).await.expect(400);
    let sealed = "SELECT COUNT(*) FROM supplier_links WHERE sealed_access_token IS NOT NULL \
                  OR sealed_refresh_token IS NOT NULL OR status = 'ACTIVE'";
    assert_eq!(linking.scalar(sealed).await, 0);
    linking
        .user()
        .post("/app/supplier-link/authorize")
        .json(&body)
        .call()
        .await
        .expect(404);
}
