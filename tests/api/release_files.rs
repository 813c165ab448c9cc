//! Files of releases on their way in and out: whole or not at all, in pieces, under URLs that
//! nobody can make or stretch.

use std::sync::atomic::Ordering;

use hub_base::clock::Clock;
use hub_core::config::Settings;
use hub_tests::app::set_clock;
use hub_tests::release::{
    self, LargeFile, make_agent, make_app, make_app_release, sha256, stored_files, upload,
};
use hub_tests::{
    Backend, Call, Client, Cloud, Maker, Options, Recipe, SimulatedHub, Tenant, TestApp,
    on_each_database, s3,
};
use reqwest::header::{CONTENT_ENCODING, HeaderName, IF_NONE_MATCH, IF_RANGE, RANGE};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::releases::Place;

fn url_of(made: &Value) -> String {
    made["uploadUrl"].as_str().expect("a URL").to_owned()
}

on_each_database!(file_with_another_digest_is_refused);
async fn file_with_another_digest_is_refused(backend: Backend) {
    let place = Place::new(backend).await;
    let recipe = Recipe {
        file: vec![7; 3_000_000],
        ..Recipe::agent("1.0.0", 1)
    };
    let made: Value = place.create_agent_release(&recipe).await.expect(201).data();
    let client = place.app.client();
    let send = async |file: Vec<u8>| client.put(&url_of(&made)).body(file).call().await;
    let mut altered = recipe.file.clone();
    altered[2_999_999] ^= 1;
    assert_eq!(
        send(altered).await.expect(400).problem().code,
        "WRONG_DIGEST"
    );
    for length in [0, 1, 2_999_999, 3_000_001] {
        assert_eq!(
            send(vec![7; length]).await.expect(400).problem().code,
            "WRONG_SIZE",
            "{length}"
        );
    }
    // Without a length that could be looked at first.
    for length in [2_999_999, 3_000_001, 20_000_000] {
        let parts = vec![7_u8; length]
            .chunks(500_000)
            .map(|part| Ok::<_, std::io::Error>(part.to_vec()))
            .collect::<Vec<_>>();
        let body = reqwest::Body::wrap_stream(futures_util::stream::iter(parts));
        let reply = client
            .put(&url_of(&made))
            .body(body)
            .call()
            .await
            .expect(400);
        assert_eq!(reply.problem().code, "WRONG_SIZE", "{length}");
    }
    let packed = client
        .put(&url_of(&made))
        .header(CONTENT_ENCODING, "gzip")
        .body(recipe.file.clone());
    assert_eq!(
        packed.call().await.expect(415).problem().code,
        "UNSUPPORTED_ENCODING"
    );
    assert!(stored_files(place.app.data_dir()).is_empty());
    let seen = place
        .tenant
        .client
        .get("/tenant/agent-releases")
        .call()
        .await
        .expect(200);
    assert_eq!(seen.header("x-total-count"), "0");
    send(recipe.file.clone()).await.expect(200);
    assert_eq!(
        stored_files(place.app.data_dir()),
        [made["releaseUuid"].as_str().expect("a uuid")]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn interrupted_upload_leaves_nothing_and_can_be_repeated() {
    let place = Place::new(Backend::Sqlite).await;
    let recipe = Recipe {
        file: vec![7; 2_000_000],
        ..Recipe::agent("1.0.0", 1)
    };
    let made: Value = place.create_agent_release(&recipe).await.expect(201).data();
    let address = place.app.url.trim_start_matches("http://").to_owned();
    for ends_politely in [true, false] {
        let mut stream = TcpStream::connect(&address).await.expect("a connection");
        let head = format!(
            "PUT {} HTTP/1.1\r\nHost: a\r\nContent-Length: 2000000\r\n\r\n",
            url_of(&made)
        );
        stream.write_all(head.as_bytes()).await.expect("a head");
        stream
            .write_all(&recipe.file[..1_500_000])
            .await
            .expect("a part");
        // Until the part is being written.
        wait_for_files(&place, 1).await;
        if ends_politely {
            stream.shutdown().await.expect("an end");
            let mut answer = String::new();
            stream.read_to_string(&mut answer).await.expect("an answer");
            assert!(
                answer.is_empty() || answer.contains("INCOMPLETE_BODY"),
                "{answer}"
            );
        }
        drop(stream);
        wait_for_files(&place, 0).await;
    }
    // Several at once, of which none harms the others. Two have a turn.
    let client = place.app.client();
    let uploads = (0..4).map(|_| upload(&client, &made, &recipe.file));
    let replies = futures_util::future::join_all(uploads).await;
    assert!(
        replies
            .iter()
            .all(|reply| matches!(reply.status.as_u16(), 200 | 409 | 503)),
        "{replies:?}"
    );
    assert!(
        replies.iter().any(|reply| reply.status == 200),
        "{replies:?}"
    );
    assert_eq!(stored_files(place.app.data_dir()).len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn slow_uploads_do_not_delay_others() {
    let place = Place::new(Backend::Sqlite).await;
    let app_uuid = make_app(&place.tenant, "logger").await;
    let recipe = Recipe {
        file: vec![7; 2_000_000],
        ..Recipe::app("logger", "1.0.0", 1)
    };
    let path = format!("/tenant/apps/{app_uuid}/releases");
    let body = place.maker.body(&recipe, json!({}));
    let made: Value = place
        .tenant
        .client
        .post(&path)
        .json(&body)
        .call()
        .await
        .expect(201)
        .data();
    let head = format!(
        "PUT {} HTTP/1.1\r\nHost: a\r\nContent-Length: 2000000\r\n\r\n",
        url_of(&made)
    );
    let mut begun = Vec::new();
    for _ in 0..2 {
        let mut stream = TcpStream::connect(place.app.url.trim_start_matches("http://"))
            .await
            .expect("a connection");
        stream.write_all(head.as_bytes()).await.expect("a head");
        stream.write_all(b"a part").await.expect("a part");
        begun.push(stream);
    }
    wait_for_files(&place, 2).await;
    let reply = upload(&place.app.client(), &made, &recipe.file)
        .await
        .expect(503);
    assert!(reply.problem().code == "TOO_MANY_UPLOADS" && !reply.header("retry-after").is_empty());
    assert!(
        reply.problem().message.contains("this tenant"),
        "{}",
        reply.body
    );
    // Another tenant and the platform go on.
    let other = Tenant::create(&place.app.client()).await;
    let of_other = make_app(&other, "logger").await;
    make_app_release(&other, of_other, &place.maker, &recipe).await;
    make_agent(
        &place.admin,
        &place.maker,
        &Recipe::agent("1.0.0", 1),
        json!({}),
    )
    .await;
    drop(begun);
    wait_for_files(&place, 2).await;
    upload(&place.app.client(), &made, &recipe.file)
        .await
        .expect(200);
}

/// Until so many lie in the store, drafts included.
async fn wait_for_files(place: &Place, count: usize) {
    for _ in 0..200 {
        if stored_files(place.app.data_dir()).len() == count {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    panic!(
        "there are still {:?} in the store, not {count}",
        stored_files(place.app.data_dir())
    );
}

/// A READY agent's release of these bytes, and a URL of its file.
async fn file_url(place: &Place, file: &[u8]) -> String {
    let recipe = Recipe {
        file: file.to_vec(),
        ..Recipe::agent("1.0.0", 1)
    };
    let made = make_agent(&place.admin, &place.maker, &recipe, json!({})).await;
    asset_url(&place.tenant.client, &made).await
}

async fn asset_url(client: &Client, made: &Value) -> String {
    let path = format!(
        "/tenant/downloads/asset-url?category=HUB_AGENT&assetId={}",
        made["assetId"]
    );
    client.get(&path).call().await.expect(200).json()["data"]["url"]
        .as_str()
        .expect("a URL")
        .to_owned()
}

on_each_database!(file_is_downloaded_whole_or_by_ranges);
async fn file_is_downloaded_whole_or_by_ranges(backend: Backend) {
    let place = Place::new(backend).await;
    let file: Vec<u8> = (0..300_000_u32)
        .flat_map(|n| (n % 251).to_le_bytes())
        .collect();
    let url = file_url(&place, &file).await;
    let client = place.app.client();
    let get = async |headers: &[(HeaderName, &str)]| {
        let request = headers
            .iter()
            .fold(client.get(&url), |request, (name, value)| {
                request.header(name, *value)
            });
        let response = request.send().await.expect("an answer");
        let status = response.status().as_u16();
        let headers = response.headers().clone();
        let text = move |name: &str| {
            headers
                .get(name)
                .and_then(|value| value.to_str().ok())
                .unwrap_or("")
                .to_owned()
        };
        (status, text, response.bytes().await.expect("a body"))
    };
    let (status, header, body) = get(&[]).await;
    let etag = format!("\"{}\"", sha256(&file));
    assert!(status == 200 && body == file);
    assert_eq!(
        (header("etag"), header("accept-ranges").as_str()),
        (etag.clone(), "bytes")
    );
    assert_eq!(
        (header("content-length"), header("content-type").as_str()),
        (file.len().to_string(), "application/octet-stream")
    );
    for (range, expected) in [
        ("bytes=0-0", 0..1),
        ("bytes=70000-139999", 70_000..140_000),
        ("bytes=1199999-", 1_199_999..1_200_000),
        ("bytes=-70000", 1_130_000..1_200_000),
        ("bytes=1000000-9999999", 1_000_000..1_200_000),
    ] {
        let (status, header, body) = get(&[(RANGE, range)]).await;
        assert!(
            status == 206 && body == file[expected.clone()],
            "{range}: {status}, {} bytes",
            body.len()
        );
        let place = format!("bytes {}-{}/1200000", expected.start, expected.end - 1);
        assert_eq!(
            (header("content-range"), header("content-length")),
            (place, expected.len().to_string())
        );
        assert_eq!(header("etag"), etag);
    }
    for range in ["bytes=1200000-", "bytes=-0", "bytes=99999999999999999999-"] {
        let (status, header, body) = get(&[(RANGE, range)]).await;
        assert_eq!(
            (status, header("content-range").as_str()),
            (416, "bytes */1200000")
        );
        assert!(String::from_utf8_lossy(&body).contains("RANGE_NOT_SATISFIABLE"));
    }
    for range in ["bytes=5-1", "bytes=0-1,3-4", "lines=1-2", "bytes=x-"] {
        assert_eq!(get(&[(RANGE, range)]).await.0, 200, "{range}");
    }
    assert_eq!(get(&[(RANGE, "bytes=1-2"), (IF_RANGE, &etag)]).await.0, 206);
    for condition in ["\"another\"", "Sat, 21 Nov 2026 08:00:00 GMT"] {
        assert_eq!(
            get(&[(RANGE, "bytes=1-2"), (IF_RANGE, condition)]).await.0,
            200
        );
    }
    let (status, _, body) = get(&[(IF_NONE_MATCH, &etag)]).await;
    assert!(status == 304 && body.is_empty());
    let head = client
        .request(reqwest::Method::HEAD, &url)
        .call()
        .await
        .expect(200);
    assert_eq!(head.header("content-length"), file.len().to_string());
}

on_each_database!(signed_urls_cannot_be_forged_or_extended);
async fn signed_urls_cannot_be_forged_or_extended(backend: Backend) {
    let (clock, micros) = set_clock(Clock::System.now());
    let place = Place::with_clock(backend, Some(clock)).await;
    let url = file_url(&place, b"a file").await;
    let client = place.app.client();
    let code = async |url: &str| client.get(url).call().await.expect(403).problem().code;
    let (path, query) = url.split_once('?').expect("a query");
    let (expires, signature) = query.split_once("&signature=").expect("a signature");
    let expires: i64 = expires
        .trim_start_matches("expires=")
        .parse()
        .expect("seconds");
    let other = Recipe {
        file: b"another file".to_vec(),
        ..Recipe::agent("2.0.0", 2)
    };
    let other = make_agent(&place.admin, &place.maker, &other, json!({})).await;
    let other_url = asset_url(&place.tenant.client, &other).await;
    let other_path = other_url.split('?').next().expect("a path");
    let awaited: Value = place
        .create_agent_release(&Recipe::agent("3.0.0", 3))
        .await
        .expect(201)
        .data();
    let flipped = if signature.starts_with('0') { "1" } else { "0" };
    for forged in [
        path.to_owned(),
        format!("{path}?expires={expires}"),
        format!("{path}?signature={signature}"),
        format!("{path}?expires={}&signature={signature}", expires + 1),
        format!(
            "{path}?expires={expires}&signature={flipped}{}",
            &signature[1..]
        ),
        format!("{path}?expires={expires}&signature={}", &signature[..62]),
        format!("{path}?expires={expires}&signature=zz"),
        format!("{path}x?{query}"),
        format!("{other_path}?{query}"),
        // For another use.
        url_of(&awaited),
    ] {
        assert_eq!(code(&forged).await, "INVALID_URL_SIGNATURE", "{forged}");
    }
    let put = client
        .put(&url)
        .body("x")
        .call()
        .await
        .expect(403)
        .problem();
    assert_eq!(
        put.code, "INVALID_URL_SIGNATURE",
        "a URL to download from takes nothing"
    );
    client
        .get(&format!("{path}?expires=soon&signature={signature}"))
        .call()
        .await
        .expect(400);
    client
        .put("/installer/stable.json")
        .body("x")
        .call()
        .await
        .expect(403);
    micros.fetch_add(299_000_000, Ordering::Relaxed);
    client.get(&url).call().await.expect(200);
    micros.fetch_add(1_000_000, Ordering::Relaxed);
    assert_eq!(code(&url).await, "URL_EXPIRED");
    micros.fetch_add(3_300_000_000, Ordering::Relaxed);
    let late = client
        .put(&url_of(&awaited))
        .body("x")
        .call()
        .await
        .expect(403);
    assert_eq!(late.problem().code, "URL_EXPIRED");
}

#[tokio::test(flavor = "multi_thread")]
async fn replicas_accept_each_others_signed_urls() {
    let maker = Maker::new();
    let settings = Settings {
        release_keys: Some(maker.keys()),
        public_url: Some("https://hubs.example.com/".to_owned()),
        ..Settings::default()
    };
    let app = TestApp::with(
        Backend::Sqlite,
        Options {
            settings: settings.clone(),
            ..Options::default()
        },
    )
    .await;
    let replica = TestApp::replica_of(
        &app,
        Options {
            settings,
            ..Options::default()
        },
    )
    .await;
    let tenant = Tenant::create(&app.client()).await;
    let app_uuid = make_app(&tenant, "logger").await;
    let recipe = Recipe::app("logger", "1.0.0+build.7", 1);
    let path = format!("/tenant/apps/{app_uuid}/releases");
    let made: Value = tenant
        .client
        .post(&path)
        .json(&maker.body(&recipe, json!({})))
        .call()
        .await
        .expect(201)
        .data();
    let url = url_of(&made);
    let path = url
        .strip_prefix("https://hubs.example.com")
        .expect("the public URL");
    replica
        .client()
        .put(path)
        .body(recipe.file.clone())
        .call()
        .await
        .expect(200);
    let hub = SimulatedHub::claim(&tenant).await;
    let path = format!(
        "/v1/apps/{}/manifest",
        made["releaseUuid"].as_str().expect("a uuid")
    );
    let offer = hub
        .client
        .at(&replica.url)
        .get(&path)
        .call()
        .await
        .expect(200)
        .json();
    let url = offer["data"]["downloadUrl"]
        .as_str()
        .expect("a URL")
        .to_owned();
    let path = url
        .strip_prefix("https://hubs.example.com")
        .expect("the public URL");
    assert_eq!(
        app.client()
            .get(path)
            .call()
            .await
            .expect(200)
            .body
            .as_bytes(),
        recipe.file
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn deleting_a_tenant_deletes_its_files() {
    let place = Place::new(Backend::Sqlite).await;
    let app_uuid = make_app(&place.tenant, "logger").await;
    let made = make_app_release(
        &place.tenant,
        app_uuid,
        &place.maker,
        &Recipe::app("logger", "1.0.0", 1),
    )
    .await;
    let hub = SimulatedHub::claim(&place.tenant).await;
    let path = format!(
        "/v1/apps/{}/manifest",
        made["releaseUuid"].as_str().expect("a uuid")
    );
    let offer = hub.client.get(&path).call().await.expect(200).json();
    let url = offer["data"]["downloadUrl"].as_str().expect("a URL");
    let tenant = format!("/tenant/tenants/{}", place.tenant.tenant_uuid);
    place
        .tenant
        .owner
        .client
        .delete(&tenant)
        .call()
        .await
        .expect(200);
    place.app.client().get(url).call().await.expect(404);
}

/// `bench release` does the same with 500 MiB.
#[tokio::test(flavor = "multi_thread")]
async fn files_are_streamed_with_bounded_memory() {
    let maker = Maker::new();
    let keys = maker.keys().display().to_string();
    let cloud = Cloud::start(Backend::Sqlite, &["--release-keys", &keys]).await;
    let tenant = Tenant::create(&Client::new(&cloud.url)).await;
    let app_uuid = make_app(&tenant, "logger").await;
    let hub = SimulatedHub::claim(&tenant).await;
    let http = release::patient_client();
    let up_and_down = async |file: LargeFile, counter: u64| {
        let body = file.release(
            &maker,
            &Recipe::app("logger", &format!("1.0.{counter}"), counter),
        );
        let path = format!("/tenant/apps/{app_uuid}/releases");
        let made: Value = tenant
            .client
            .post(&path)
            .json(&body)
            .call()
            .await
            .expect(201)
            .data();
        file.upload(&http, &format!("{}{}", cloud.url, url_of(&made)))
            .await;
        let path = format!(
            "/v1/apps/{}/manifest",
            made["releaseUuid"].as_str().expect("a uuid")
        );
        let offer = hub.client.get(&path).call().await.expect(200).json();
        let url = format!(
            "{}{}",
            cloud.url,
            offer["data"]["downloadUrl"].as_str().expect("a URL")
        );
        assert_eq!(file.download(&http, &url).await, file.sha256());
    };
    // What is made once is not counted.
    up_and_down(LargeFile { mebibytes: 2 }, 1).await;
    let before = cloud.resident_bytes();
    let mut peak = before;
    let large = up_and_down(LargeFile { mebibytes: 64 }, 2);
    let mut large = std::pin::pin!(large);
    while tokio::time::timeout(std::time::Duration::from_millis(20), &mut large)
        .await
        .is_err()
    {
        peak = peak.max(cloud.resident_bytes());
    }
    assert!(
        peak - before < 16 << 20,
        "grew by {} KiB",
        (peak - before) / 1024
    );
}

on_each_database!(files_can_be_stored_in_s3);
/// The store is another machine's: the service as a process, whose environment says where.
async fn files_can_be_stored_in_s3(backend: Backend) {
    let server = s3::S3Server::start().await;
    let maker = Maker::new();
    let keys = maker.keys().display().to_string();
    let files = format!("s3://{}/hubs/eu", s3::BUCKET);
    let settings = ["--release-keys", &keys, "--files", &files];
    let cloud = Cloud::start_in(backend, &settings, &server.environment()).await;
    let client = Client::new(&cloud.url);
    let tenant = Tenant::create(&client).await;
    let app_uuid = make_app(&tenant, "logger").await;
    // More than two parts.
    let file: Vec<u8> = (0..3_000_000_u32).flat_map(u32::to_le_bytes).collect();
    let recipe = Recipe {
        file,
        ..Recipe::app("logger", "1.0.0", 1)
    };
    let path = format!("/tenant/apps/{app_uuid}/releases");
    let made: Value = tenant
        .client
        .post(&path)
        .json(&maker.body(&recipe, json!({})))
        .call()
        .await
        .expect(201)
        .data();
    let mut altered = recipe.file.clone();
    altered[11_000_000] ^= 1;
    assert_eq!(
        upload(&client, &made, &altered)
            .await
            .expect(400)
            .problem()
            .code,
        "WRONG_DIGEST"
    );
    assert_eq!(
        server.files(),
        Vec::<std::path::PathBuf>::new(),
        "nothing is left of it"
    );
    upload(&client, &made, &recipe.file).await.expect(200);
    let release_uuid = made["releaseUuid"].as_str().expect("a uuid");
    let key = format!("hubs/eu/releases/{release_uuid}");
    assert!(server.object(&key).expect("an object") == recipe.file);
    let hub = SimulatedHub::claim(&tenant).await;
    let offer = hub
        .client
        .get(&format!("/v1/apps/{release_uuid}/manifest"))
        .call()
        .await
        .expect(200)
        .json();
    let url = offer["data"]["downloadUrl"].as_str().expect("a URL");
    assert!(
        url.starts_with(&format!("{}/{}/{key}?", server.url, s3::BUCKET))
            && url.contains("X-Amz-Expires=300"),
        "{url}"
    );
    let get = client.http.get(url).header(RANGE, "bytes=6000000-6999999");
    let response = get.send().await.expect("an answer");
    assert_eq!(response.status(), 206);
    assert!(response.bytes().await.expect("a piece") == recipe.file[6_000_000..7_000_000]);
    let forged = url.replace(&key, "hubs/eu/releases/other");
    assert_eq!(
        client
            .http
            .get(forged)
            .send()
            .await
            .expect("an answer")
            .status(),
        403
    );
}
