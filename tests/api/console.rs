//! The files of the web console. In a browser, the console is tried by tests/console/run.

use std::io::Read;

use flate2::read::GzDecoder;
use hub_tests::{Backend, Call, TestApp, on_each_database};

on_each_database!(console_is_one_page_with_files_of_its_own);
async fn console_is_one_page_with_files_of_its_own(backend: Backend) {
    let app = TestApp::new(backend).await;
    let client = app.client().without_redirects();
    let to = client
        .http
        .get(format!("{}/", client.url))
        .send()
        .await
        .expect("an answer");
    assert_eq!(
        (to.status().as_u16(), to.headers()["location"].as_bytes()),
        (303, b"/console".as_slice())
    );

    let page = client.get("/console").call().await.expect(200);
    assert_eq!(page.header("content-type"), "text/html; charset=utf-8");
    assert_eq!(
        page.header("cache-control"),
        "no-cache",
        "an update is seen at the next visit"
    );
    // The description has the first of them for all.
    for path in [
        "/console/",
        "/console/t/anything/hubs",
        "/console/index.html",
        "/console/assets/a/b.js",
    ] {
        let answer = client
            .http
            .get(format!("{}{path}", client.url))
            .send()
            .await
            .expect("an answer");
        assert_eq!(answer.status(), 200, "{path}");
        assert_eq!(answer.text().await.expect("a body"), page.body, "{path}");
    }
    assert!(
        !page.body.contains("style=") && !page.body.contains("<style"),
        "{}",
        page.body
    );

    client
        .get("/console")
        .header("if-none-match", page.header("etag"))
        .call()
        .await
        .expect(304);

    let mut files = 0;
    for part in page
        .body
        .split('"')
        .filter(|part| part.starts_with("/console/"))
    {
        let file = client.get(part).call().await.expect(200);
        assert_eq!(
            file.header("cache-control"),
            "public, max-age=31536000, immutable",
            "{part}"
        );
        assert_eq!(file.header("x-content-type-options"), "nosniff", "{part}");
        assert!(!file.body.is_empty(), "{part}");
        let known = client
            .get(part)
            .header("if-none-match", file.header("etag"))
            .call()
            .await
            .expect(304);
        assert_eq!(known.header("etag"), file.header("etag"), "{part}");
        let packed = client
            .http
            .get(format!("{}{part}", client.url))
            .header("accept-encoding", "gzip");
        let packed = packed.send().await.expect("an answer");
        assert_eq!(packed.headers()["content-encoding"], "gzip", "{part}");
        let mut plain = String::new();
        let bytes = packed.bytes().await.expect("a body");
        GzDecoder::new(bytes.as_ref())
            .read_to_string(&mut plain)
            .expect("text");
        assert_eq!(plain, file.body, "{part}");
        files += 1;
    }
    assert!(files >= 3, "a script, a style and an icon: {}", page.body);
    let gone = client
        .get("/console/assets/index-of-an-older-version.js")
        .call()
        .await
        .expect(404);
    assert_eq!(gone.problem().code, "NOT_FOUND");
}

on_each_database!(console_runs_nothing_but_its_own_files);
async fn console_runs_nothing_but_its_own_files(backend: Backend) {
    let app = TestApp::new(backend).await;
    // Of a file too: a worker has the policy that it came with.
    let client = app.client();
    for path in [
        "/console",
        "/console/t/anything",
        "/console/assets/unknown.js",
    ] {
        let answer = client
            .http
            .get(format!("{}{path}", client.url))
            .send()
            .await
            .expect("an answer");
        let policy = answer.headers()["content-security-policy"]
            .to_str()
            .expect("text")
            .to_owned();
        let policy: Vec<&str> = policy.split("; ").collect();
        for rule in [
            "default-src 'none'",
            "script-src 'self'",
            "style-src 'self'",
            "connect-src 'self'",
            "img-src 'self' data:",
            "frame-ancestors 'none'",
            "require-trusted-types-for 'script'",
        ] {
            assert!(policy.contains(&rule), "{path}: {rule}");
        }
        assert!(
            !policy
                .iter()
                .any(|rule| rule.contains("unsafe") || rule.contains("http")),
            "{path}"
        );
    }
}
