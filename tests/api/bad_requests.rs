//! Queries, paths, headers and bytes that nobody should send, as `bad_input` does with bodies.

use hub_tests::{Backend, Call, Client, Person, TestApp, on_each_database};
use reqwest::Method;
use reqwest::header::{AUTHORIZATION, HeaderName, HeaderValue};
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::bad_input::{Expect, constraint, kinds, on_both_databases};
use crate::contract::document::{Operation, operations};
use crate::contract::world::{Objects, World};

/// What a query value can be that nobody means, percent-encoded.
const QUERY_VALUES: [&str; 16] = [
    "",
    "abc",
    "-1",
    "0",
    "101",
    "1.5",
    "1e3",
    "9223372036854775807",
    "9223372036854775808",
    "%00",
    "%ff",
    "%F0%9F%90%9D",
    "%27%3B--",
    "2026-13-01T00:00:00Z",
    "0001-01-01T00:00:00Z",
    "00000000-0000-0000-0000-000000000000",
];

#[tokio::test(flavor = "multi_thread")]
async fn invalid_query_is_refused() {
    on_both_databases(async |world, trials| {
        for operation in operations() {
            let caller = world.rightful_caller(&operation);
            let long = "x".repeat(10_000);
            for name in operation.parameters("query").into_keys() {
                let schema = operation.query_schema(name).unwrap_or(&Value::Null);
                let is_number = kinds(schema)
                    .iter()
                    .any(|kind| matches!(*kind, "integer" | "number"));
                let is_strict =
                    constraint(schema, "enum").is_some() || constraint(schema, "format").is_some();
                for value in QUERY_VALUES.into_iter().chain([long.as_str()]) {
                    let path = world.path_of(&operation, Objects::Real).await;
                    let method: Method = operation.method.parse().expect("a method");
                    // Some need something in their query already.
                    let sign = if path.contains('?') { '&' } else { '?' };
                    let request = caller.request(method, &format!("{path}{sign}{name}={value}"));
                    let nonsense =
                        matches!(value, "abc" | "%00" | "%ff" | "%F0%9F%90%9D" | "%27%3B--")
                            || value.len() > 100;
                    let expect = match nonsense && (is_number || is_strict) {
                        true => Expect::Field(name.to_owned()),
                        false => Expect::Answered,
                    };
                    let shown: String = value.chars().take(40).collect();
                    trials
                        .send(
                            format!("{}?{name}={shown}", operation.name()),
                            request,
                            expect,
                        )
                        .await;
                }
                let path = world.path_of(&operation, Objects::Real).await;
                let sign = if path.contains('?') { '&' } else { '?' };
                let twice = caller.get(&format!("{path}{sign}{name}=1&{name}=2&unknown=&&=&a=b=c"));
                if operation.method == "GET" {
                    trials
                        .send(
                            format!("{}?{name} twice", operation.name()),
                            twice,
                            Expect::Answered,
                        )
                        .await;
                }
            }
        }
        let hubs = &world.tenant.client;
        for (query, expect) in [
            ("page=-1", Expect::Field("page".to_owned())),
            ("size=0", Expect::Field("size".to_owned())),
            ("size=-5", Expect::Field("size".to_owned())),
            ("size=101", Expect::Status(200)),
            ("page=0", Expect::Status(200)),
            ("page=9223372036854775807", Expect::Field("page".to_owned())),
            ("page=1&size=9223372036854775807", Expect::Status(200)),
        ] {
            trials
                .send(
                    query.to_owned(),
                    hubs.get(&format!("/tenant/hubs/claim-codes?{query}")),
                    expect,
                )
                .await;
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn unknown_path_is_refused() {
    on_both_databases(async |world, trials| {
        for operation in operations()
            .iter()
            .filter(|operation| !operation.path_parameters().is_empty())
        {
            let caller = world.rightful_caller(operation);
            for name in operation.path_parameters() {
                let lower = name.to_lowercase();
                // Suppliers name their actions and advisories themselves, a partner its projects,
                // and publishers their vulnerabilities.
                let is_text =
                    ["actionId", "projectId", "vulnerabilityId", "advisoryId"].contains(&name);
                let must_parse = (lower.ends_with("uuid") || lower.ends_with("id")) && !is_text;
                for value in [
                    "x",
                    "-1",
                    "%00",
                    "%ff",
                    "%2e%2e%2f",
                    "%27%20OR%201=1",
                    "9223372036854775808",
                    &"x".repeat(5000),
                ] {
                    let mut path = operation.path.replace(&format!("{{{name}}}"), value);
                    let others = Operation {
                        path: path.clone(),
                        ..operation.clone()
                    };
                    path = world.path_of(&others, Objects::Real).await;
                    let method: Method = operation.method.parse().expect("a method");
                    let mut request = caller.request(method, &path);
                    if let Some(body) = world.body(operation).await {
                        request = request.json(&body);
                    }
                    // A number is well-formed, and names nothing.
                    let expect = match must_parse && value != "-1" {
                        true => Expect::Field(name.to_owned()),
                        false => Expect::Answered,
                    };
                    let shown: String = value.chars().take(40).collect();
                    trials
                        .send(
                            format!("{} with {name} = {shown}", operation.name()),
                            request,
                            expect,
                        )
                        .await;
                }
            }
        }
        for path in [
            "//",
            "/%00",
            "/v1",
            "/tenant/",
            "/%ff",
            "/healthz/",
            "/HEALTHZ",
        ] {
            trials
                .send(
                    path.to_owned(),
                    world.tenant.client.get(path),
                    Expect::Status(404),
                )
                .await;
        }
        for (method, path) in [
            ("DELETE", "/healthz"),
            ("PROPFIND", "/tenant/hubs/claim-codes"),
            ("TRACE", "/v1/hubs/claim"),
        ] {
            let request = world
                .tenant
                .client
                .request(method.parse().expect("a method"), path);
            trials
                .send(format!("{method} {path}"), request, Expect::Status(405))
                .await;
        }
    })
    .await;
}

fn raw_header(client: &Client, name: HeaderName, value: &[u8]) -> Client {
    let mut client = client.clone();
    client.headers.insert(
        name,
        HeaderValue::from_bytes(value).expect("a header value"),
    );
    client
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_header_is_refused() {
    on_both_databases(async |world, trials| {
        let tenant_header = HeaderName::from_static("x-tenant-uuid");
        let long = format!("Bearer {}", "a.".repeat(15_000));
        let token = world.tenant.owner.login.access_token.clone();
        let authorizations: [&[u8]; 15] = [
            b"",
            b" ",
            b"Bearer",
            b"Bearer ",
            b"Bearer  ",
            b"Basic YTpi",
            b"Bearer \xff\xfe",
            "Bearer \u{fc}".as_bytes(),
            b"Bearer a b c",
            b"Bearer ..",
            b"Bearer eyJhbGciOiJub25lIn0.e30.",
            b"Bearer eyJhbGciOiJFUzI1NiIsImtpZCI6IicgT1IgMT0xIn0.e30.AAAA",
            token.as_bytes(),
            b"Bearer null",
            long.as_bytes(),
        ];
        let mut leaver = Person::register(&world.app.client()).await.client;
        for value in ["one", "another"] {
            leaver
                .headers
                .append("idempotency-key", HeaderValue::from_static(value));
        }
        let expect = Expect::Field("Idempotency-Key".to_owned());
        trials
            .send(
                "DELETE /auth/sessions".to_owned(),
                leaver.delete("/auth/sessions"),
                expect,
            )
            .await;
        // One ends the logins of its caller, who then cannot try the others.
        for operation in operations()
            .into_iter()
            .filter(|operation| operation.id() != "session.deleteAll")
        {
            let kind = operation.access().split(':').next().unwrap_or_default();
            let name_of_operation = operation.name();
            // Another tenant in the path than in the header is refused before anything else is
            // looked at.
            let path = operation
                .path
                .replace("{tenantUuid}", &world.tenant.tenant_uuid.to_string());
            let operation = Operation { path, ..operation };
            let caller = world.rightful_caller(&operation);
            // Signed requests have no such header.
            if !matches!(kind, "public" | "hmac") {
                for value in authorizations {
                    let caller = raw_header(&caller, AUTHORIZATION, value);
                    let request = world.request(&caller, &operation, Objects::Unknown).await;
                    let shown = String::from_utf8_lossy(value)
                        .chars()
                        .take(40)
                        .collect::<String>();
                    let what = format!("{name_of_operation}, Authorization: {shown:?}");
                    trials.send(what, request, Expect::Status(401)).await;
                }
            }
            if kind == "tenant" {
                // An empty one is none.
                let expect = match name_of_operation.contains("{tenantUuid}") {
                    true => Expect::Answered,
                    false => Expect::Status(403),
                };
                let without = raw_header(&caller, tenant_header.clone(), b"");
                let request = world.request(&without, &operation, Objects::Unknown).await;
                trials
                    .send(
                        format!("{name_of_operation}, X-Tenant-UUID: empty"),
                        request,
                        expect,
                    )
                    .await;
                for value in [
                    b"x".as_slice(),
                    b"\xff\xfe",
                    b"null",
                    b"00000000",
                    b"a,b",
                    &[b'a'; 10_000],
                ] {
                    let caller = raw_header(&caller, tenant_header.clone(), value);
                    let request = world.request(&caller, &operation, Objects::Unknown).await;
                    let shown = String::from_utf8_lossy(value)
                        .chars()
                        .take(40)
                        .collect::<String>();
                    let what = format!("{name_of_operation}, X-Tenant-UUID: {shown:?}");
                    trials
                        .send(what, request, Expect::Field("X-Tenant-UUID".to_owned()))
                        .await;
                }
            }
            for (name, field) in [
                ("idempotency-key", "Idempotency-Key"),
                ("content-encoding", "Content-Encoding"),
                ("x-tenant-uuid", "X-Tenant-UUID"),
            ] {
                let mut caller = caller.clone();
                for value in ["one", "another"] {
                    caller.headers.append(name, HeaderValue::from_static(value));
                }
                let request = world
                    .request_without_body(&caller, &operation, Objects::Unknown)
                    .await;
                let what = format!("{name_of_operation}, {name} twice");
                trials
                    .send(what, request, Expect::Field(field.to_owned()))
                    .await;
            }
            for (name, value) in [
                ("idempotency-key", b"".as_slice()),
                ("idempotency-key", b"\xff\xfe"),
                ("idempotency-key", &[b'k'; 5_000]),
                ("last-event-id", b"yesterday"),
                ("last-event-id", b"\xff"),
                ("if-none-match", b"\"\xff"),
                ("if-none-match", b"*"),
                ("x-request-id", b"\xff"),
                ("accept", b"nothing/at-all"),
                ("expect", b"the unexpected"),
                ("range", b"bytes=5-1"),
                ("origin", b"null"),
                ("x-forwarded-for", b"\xff, ::1, 'x'"),
            ] {
                // Objects that are not there: some requests would change what later ones need.
                let objects = if operation.method == "GET" {
                    Objects::Real
                } else {
                    Objects::Unknown
                };
                let caller = raw_header(&caller, HeaderName::from_static(name), value);
                let request = world
                    .request_without_body(&caller, &operation, objects)
                    .await;
                let request = if operation.method == "GET" {
                    request
                } else {
                    request.json("not what it wants")
                };
                let what = format!(
                    "{name_of_operation}, {name}: {:?}",
                    String::from_utf8_lossy(&value[..value.len().min(20)])
                );
                trials.send(what, request, Expect::Answered).await;
            }
        }
    })
    .await;
}

on_each_database!(bytes_that_are_not_http_are_refused);
/// Some of it never gets as far as a request: then the connection may just end.
async fn bytes_that_are_not_http_are_refused(backend: Backend) {
    let world = World::new(backend).await;
    let address = world.app.url.trim_start_matches("http://").to_owned();
    let large = format!(
        "GET /healthz HTTP/1.1\r\nHost: a\r\nX-Large: {}\r\n\r\n",
        "x".repeat(1 << 20)
    );
    let many = format!(
        "GET /healthz HTTP/1.1\r\nHost: a\r\n{}\r\n",
        "A: b\r\n".repeat(5_000)
    );
    let token = &world.hub.credentials.access_token;
    let short = format!(
        "POST /v1/ble/events HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {token}\r\n\
         Content-Type: application/json\r\nContent-Length: 1000\r\n\r\n{{\"batchUuid\""
    );
    let requests: [&[u8]; 12] = [
        b"\0\0\0\0",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"GET\r\n\r\n",
        b"GET /healthz HTTP/9.9\r\n\r\n",
        b"GET /\xff\xfe HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nHost: a\r\nA\0B: c\r\n\r\n",
        b"POST /v1/hubs/claim HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n",
        b"POST /v1/hubs/claim HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello!",
        b"POST /v1/hubs/claim HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        short.as_bytes(),
        large.as_bytes(),
        many.as_bytes(),
    ];
    for request in requests {
        let mut stream = TcpStream::connect(&address).await.expect("a connection");
        // The service may have stopped listening to it half-way.
        let _ = stream.write_all(request).await;
        let _ = stream.shutdown().await;
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer).await;
        let answer = String::from_utf8_lossy(&answer);
        let shown = String::from_utf8_lossy(&request[..request.len().min(60)]);
        assert!(
            answer.is_empty() || answer.starts_with("HTTP/1.1 4"),
            "{shown:?} was answered {answer}"
        );
    }
    world.app.client().get("/readyz").call().await.expect(200);
}

on_each_database!(a_head_that_could_be_read_in_two_ways_is_refused);
async fn a_head_that_could_be_read_in_two_ways_is_refused(backend: Backend) {
    let app = TestApp::new(backend).await;
    let address = app.url.trim_start_matches("http://").to_owned();
    let headers = |count: usize| "X-Many: 1\r\n".repeat(count);
    for (head, expected) in [
        ("Host: a\r\n".to_owned(), "200"),
        (format!("Host: a\r\n{}", headers(60)), "200"),
        (String::new(), "400 Host"),
        ("Host: a\r\nHost: a\r\n".to_owned(), "400 Host"),
        ("Host: a b\r\n".to_owned(), "400 Host"),
        (
            "Host: a\r\nIdempotency-Key: 1\r\nIdempotency-Key: 2\r\n".to_owned(),
            "400 Idempotency-Key",
        ),
        (format!("Host: a\r\n{}", headers(70)), "431 HEAD_TOO_LARGE"),
        (
            format!("Host: a\r\nX-Large: {}\r\n", "x".repeat(50 * 1024)),
            "431 HEAD_TOO_LARGE",
        ),
    ] {
        let mut stream = TcpStream::connect(&address).await.expect("a connection");
        let request = format!("GET /healthz HTTP/1.1\r\n{head}Connection: close\r\n\r\n");
        stream
            .write_all(request.as_bytes())
            .await
            .expect("it is sent");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.expect("an answer");
        let (status, what) = expected.split_once(' ').unwrap_or((expected, ""));
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {status} ")),
            "{head:?} was answered {answer}"
        );
        assert!(
            answer.contains(what) && answer.to_lowercase().contains("x-request-id: "),
            "{head:?}: {answer}"
        );
    }
}
