//! Mail on its way, to a real mail server.

use std::time::Duration;

use hub_base::db::sql;
use hub_cloud::upkeep;
use hub_core::config::Settings;
use hub_tests::mail::{USER, token_in, waiting};
use hub_tests::{
    Backend, Call, Client, Cloud, MailServer, Options, Person, Tenant, TestApp, on_each_database,
};
use serde_json::{Value, json};

const PATIENCE: Duration = Duration::from_secs(60);

async fn invite(tenant: &Tenant, email: &str) {
    let body = json!({"email": email, "role": "EDITOR"});
    tenant
        .client
        .post("/tenant/personas/invite")
        .json(&body)
        .call()
        .await
        .expect(200);
}

fn text<'a>(mail: &'a Value, part: &str) -> &'a str {
    mail[part]
        .as_str()
        .unwrap_or_else(|| panic!("no {part} in {mail}"))
}

on_each_database!(mail_is_delivered_after_outages_of_mail_server_and_service);
/// Over STARTTLS with a log-in; kept while the mail server is away, and while the service itself
/// is.
async fn mail_is_delivered_after_outages_of_mail_server_and_service(backend: Backend) {
    let Some(mut server) = MailServer::start().await else {
        return;
    };
    let certificate = server.certificate.display().to_string();
    let url = server.url();
    let settings = [
        "--smtp-url",
        &url,
        "--mail-from",
        "Hübs <hubs@example.com>",
        "--public-url",
        "https://hubs.example.com/",
    ];
    let mut service = Cloud::start_in(backend, &settings, &[("SSL_CERT_FILE", &certificate)]).await;
    let anyone = Client::new(&service.url);
    let tenant = Tenant::create(&anyone).await;
    let guest = Person::register(&anyone).await;
    invite(&tenant, &guest.email).await;
    let mail = server.mail_to(&guest.email).await;
    assert_eq!(
        (&mail["encrypted"], &mail["user"]),
        (&json!(true), &json!(USER))
    );
    assert_eq!(
        (text(&mail, "sender"), text(&mail, "kind")),
        ("hubs@example.com", "multipart/alternative")
    );
    let headers = &mail["headers"];
    assert_eq!(text(headers, "from"), "Hübs <hubs@example.com>");
    assert_eq!(
        text(headers, "subject"),
        "Invitation to a tenant",
        "no words of anybody else"
    );
    assert_eq!(text(headers, "auto-submitted"), "auto-generated");
    assert!(
        text(headers, "message-id").ends_with("@example.com>") && headers["date"].is_string(),
        "{headers}"
    );
    let token = token_in(text(&mail, "text"));
    for part in ["text", "html"] {
        let part = text(&mail, part);
        let link = format!("https://hubs.example.com/public/invitations/{token}");
        assert!(
            part.contains(&link) && part.contains(&tenant.owner.email) && part.contains("EDITOR"),
            "{part}"
        );
        assert!(part.contains("unverified e-mail address"), "{part}");
    }
    assert!(!text(&mail, "html").contains("src=") && !text(&mail, "html").contains("<script"));
    guest
        .client
        .post("/invitations/accept")
        .json(&json!({"token": token}))
        .call()
        .await
        .expect(200);

    server.stop().await;
    let late = Person::register(&anyone).await;
    invite(&tenant, &late.email).await;
    let body = json!({"email": guest.email});
    anyone
        .post("/auth/password/forgot")
        .json(&body)
        .call()
        .await
        .expect(204);
    service.crash().await;
    server.go_on().await;
    let mut mails = [server.next().await, server.next().await];
    mails.sort_by_key(|mail| mail["recipients"] != json!([late.email]));
    let [invitation, forgot] = &mails[..] else {
        panic!("two mails")
    };
    let token = token_in(text(invitation, "text"));
    late.client
        .post("/invitations/accept")
        .json(&json!({"token": token}))
        .call()
        .await
        .expect(200);
    assert_eq!(forgot["recipients"], json!([guest.email]));
    let body =
        json!({"token": token_in(text(forgot, "text")), "newPassword": "a password of the mail's"});
    anyone
        .post("/auth/password/reset")
        .json(&body)
        .call()
        .await
        .expect(204);
    let body = json!({"email": guest.email, "password": "a password of the mail's"});
    anyone
        .post("/auth/login")
        .json(&body)
        .call()
        .await
        .expect(200);
}

/// A service in this process, whose work is done.
async fn service(backend: hub_tests::Backend, url: &str) -> TestApp {
    let settings = Settings {
        smtp_url: Some(url.to_owned()),
        mail_from: Some("hubs@example.com".to_owned()),
        ..Settings::default()
    };
    let app = TestApp::with(
        backend,
        Options {
            settings,
            ..Options::default()
        },
    )
    .await;
    tokio::spawn(upkeep::run(app.app.clone()));
    app
}

/// What went wrong with the mail that waits, once something has.
async fn last_error(app: &TestApp) -> String {
    let failed = async {
        loop {
            let mut conn = app.app.db.read().await.expect("a connection");
            let query = "SELECT last_error FROM tasks WHERE kind = 'mail.send' \
                         AND last_error IS NOT NULL";
            let errors: Vec<(String,)> = sql(query).all(&mut conn).await.expect("rows");
            if let Some((error,)) = errors.into_iter().next() {
                return error;
            }
            drop(conn);
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(PATIENCE, failed)
        .await
        .expect("a failure in time")
}

on_each_database!(mail_is_kept_when_the_operator_can_fix_the_cause);
async fn mail_is_kept_when_the_operator_can_fix_the_cause(backend: Backend) {
    let Some(mut plain) = MailServer::start_plain().await else {
        return;
    };
    let Some(encrypted) = MailServer::start().await else {
        return;
    };
    let wrong_password = plain.url().replace("p%40ss", "wrong");
    // Its certificate is none that this process trusts.
    for (url, reason) in [(wrong_password, "535"), (encrypted.url(), "certificate")] {
        let app = service(backend, &url).await;
        let tenant = Tenant::create(&app.client()).await;
        invite(&tenant, "ada@example.com").await;
        let error = last_error(&app).await;
        assert!(
            error.contains(reason) && !error.contains("ss:w/rd"),
            "{error}"
        );
        assert_eq!(waiting(&app).await.len(), 1, "it is kept");
    }
    assert_eq!(plain.next().await, json!({"wrong_login": true}));
}

on_each_database!(words_of_a_stranger_stay_a_strangers);
/// No header has them, and no link is in them.
async fn words_of_a_stranger_stay_a_strangers(backend: Backend) {
    let Some(mut server) = MailServer::start_plain().await else {
        return;
    };
    let app = service(backend, &server.url()).await;
    let stranger = Tenant::create(&app.client()).await;
    let path = format!("/tenant/tenants/{}", stranger.tenant_uuid);
    let name = json!({"name": "Pay at https://evil.example/now\u{2028}Bcc: eve@evil.example <a href='//evil.example'>"});
    stranger
        .client
        .patch(&path)
        .json(&name)
        .call()
        .await
        .expect(200);
    let header = json!({"name": "Acme\r\nBcc: eve@evil.example"});
    stranger
        .client
        .patch(&path)
        .json(&header)
        .call()
        .await
        .expect(400);
    invite(&stranger, "ben@example.com").await;
    let mail = server.mail_to("ben@example.com").await;
    assert!(
        text(&mail, "text").contains("> Pay at https: //evil. example/now"),
        "{mail}"
    );
    assert!(
        !mail.to_string().contains("evil.example") && !text(&mail, "html").contains("<a href='"),
        "{mail}"
    );
    for part in ["text", "html"] {
        assert!(
            text(&mail, part).contains("unverified e-mail address"),
            "{mail}"
        );
    }
}

on_each_database!(permanent_refusal_ends_a_mail_and_temporary_refusal_retries_it);
async fn permanent_refusal_ends_a_mail_and_temporary_refusal_retries_it(backend: Backend) {
    let Some(mut server) = MailServer::start_plain().await else {
        return;
    };
    let app = service(backend, &server.url()).await;
    let tenant = Tenant::create(&app.client()).await;
    for email in ["refused-ada@example.com", "content-ada@example.com"] {
        invite(&tenant, email).await;
        assert_eq!(server.next().await, json!({"refused": email}));
    }
    invite(&tenant, "jörg@example.com").await;
    invite(&tenant, "later-ada@example.com").await;
    let mail = server.mail_to("later-ada@example.com").await;
    assert_eq!(mail["encrypted"], false);
    let gone = async {
        while !waiting(&app).await.is_empty() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(PATIENCE, gone)
        .await
        .expect("nothing waits any more");
    // Only an address with an account gets a mail.
    let person = Person::register(&app.client()).await;
    for email in ["nobody@example.com", &person.email] {
        let body = json!({"email": email});
        app.client()
            .post("/auth/password/forgot")
            .json(&body)
            .call()
            .await
            .expect(204);
    }
    let mail = server.mail_to(&person.email).await;
    assert!(
        text(&mail, "text").contains("POST /auth/password/reset"),
        "no public-url, no link: {mail}"
    );
}
