//! A NATS server with JetStream.

use std::sync::Arc;

use aws_lc_rs::signature::{Ed25519KeyPair, KeyPair};
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

use crate::Failure;
use crate::tests::brokers::{Broker, certificates, has};
use crate::tests::{Target, event, message, outgoing_with, reading};

async fn start(config: &str) -> Broker {
    start_without_streams(&format!("jetstream {{store_dir: \"DIR/js\"}}\n{config}")).await
}

async fn start_without_streams(config: &str) -> Broker {
    let config = config.to_owned();
    Broker::start("nats-server", |dir, port| {
        certificates(dir);
        let path = dir.display().to_string();
        let config = format!(
            "host: 127.0.0.1\nport: {port}\nmax_payload: 10000\n{}",
            config.replace("DIR", &path)
        );
        std::fs::write(dir.join("nats.conf"), config).expect("a file");
        vec!["-c".to_owned(), format!("{path}/nats.conf")]
    })
    .await
}

/// Asks the API of JetStream.
async fn ask(port: u16, subject: &str, body: &str) -> Value {
    let mut stream = BufReader::new(
        TcpStream::connect(("127.0.0.1", port))
            .await
            .expect("a connection"),
    );
    let request = format!(
        "CONNECT {{\"verbose\":false}}\r\nSUB answer 1\r\nPUB {subject} answer {}\r\n{body}\r\n",
        body.len()
    );
    stream
        .write_all(request.as_bytes())
        .await
        .expect("a request");
    let mut line = String::new();
    while !line.starts_with("MSG") {
        line.clear();
        stream.read_line(&mut line).await.expect("an answer");
    }
    let length = line
        .split_whitespace()
        .last()
        .and_then(|word| word.parse().ok())
        .expect("a length");
    let mut answer = vec![0; length];
    stream.read_exact(&mut answer).await.expect("an answer");
    serde_json::from_slice(&answer).expect("JSON")
}

async fn stored(port: u16) -> Value {
    ask(port, "$JS.API.STREAM.INFO.readings", "").await["state"]["messages"].clone()
}

#[tokio::test]
async fn events_are_stored_once_whatever_is_repeated() {
    if !has("nats-server") {
        return;
    }
    let broker = start("").await;
    let config =
        json!({"name": "readings", "subjects": ["readings.>"], "storage": "memory"}).to_string();
    ask(broker.port, "$JS.API.STREAM.CREATE.readings", &config).await;
    let url = format!("nats://127.0.0.1:{}", broker.port);
    let target = Target::new(
        json!({"kind": "NATS", "url": url, "subject": "readings.{{deviceInstanceId}}"}),
    );
    let events: Vec<_> = (0..100).map(|device| reading(device, 1.5)).collect();
    for _ in 0..3 {
        assert_eq!(
            target.send(&message("first", events.clone())).await.result,
            Ok(())
        );
        assert_eq!(target.connections.idle(), 1);
    }
    assert_eq!(stored(broker.port).await, 100);
    assert_eq!(
        target
            .send(&message("second", events[..1].to_vec()))
            .await
            .result,
        Ok(())
    );
    assert_eq!(stored(broker.port).await, 101);
    let last = ask(
        broker.port,
        "$JS.API.STREAM.MSG.GET.readings",
        "{\"last_by_subj\":\"readings.0\"}",
    )
    .await;
    let data = base64::Engine::decode(
        &base64::engine::general_purpose::STANDARD,
        last["message"]["data"].as_str().expect("data"),
    );
    let data: Value = serde_json::from_slice(&data.expect("base64")).expect("JSON");
    assert_eq!(data, Value::Object(reading(0, 1.5)));

    // No stream takes it; a message is too long; a subject cannot be made.
    let elsewhere = Target::new(json!({"kind": "NATS", "url": url, "subject": "elsewhere"}));
    let result = elsewhere
        .send(&message("third", events[..1].to_vec()))
        .await
        .result;
    assert!(
        matches!(result, Err(Failure::Receiver { .. })),
        "{result:?}"
    );
    for body in [
        json!({}),
        json!({"deviceInstanceId": "a b"}),
        json!({"deviceInstanceId": ">"}),
        json!({"deviceInstanceId": 1, "x": "y".repeat(20_000)}),
    ] {
        let result = target
            .send(&message("fourth", vec![event(body)]))
            .await
            .result;
        assert!(matches!(result, Err(Failure::Message { .. })), "{result:?}");
    }
}

/// TLS in front of a broker: the address at which it begins before the broker is heard.
async fn behind_tls(broker: &Broker) -> std::net::SocketAddr {
    let certificates = CertificateDer::pem_file_iter(broker.file("cert.pem")).expect("a file");
    let certificates = certificates
        .collect::<Result<_, _>>()
        .expect("certificates");
    let key = PrivateKeyDer::from_pem_file(broker.file("key.pem")).expect("a key");
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions");
    let config = config
        .with_no_client_auth()
        .with_single_cert(certificates, key)
        .expect("a configuration");
    let (acceptor, port) = (
        tokio_rustls::TlsAcceptor::from(Arc::new(config)),
        broker.port,
    );
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0")
        .await
        .expect("a listener");
    let address = listener.local_addr().expect("an address");
    tokio::spawn(async move {
        let (stream, _) = listener.accept().await.expect("a connection");
        let mut secure = acceptor.accept(stream).await.expect("TLS at once");
        let mut plain = TcpStream::connect(("127.0.0.1", port))
            .await
            .expect("the broker");
        let _ = tokio::io::copy_bidirectional(&mut secure, &mut plain).await;
    });
    address
}

/// Servers before 2.10 cannot begin with TLS themselves.
#[tokio::test]
async fn server_that_begins_with_tls_is_reached() {
    if !has("nats-server") {
        return;
    }
    let broker = start("").await;
    let address = behind_tls(&broker).await;
    let known = outgoing_with(Some(broker.file("ca.pem")));
    let definition = |at: &str| json!({"kind": "NATS", "url": format!("tls://{at}"), "subject": "a", "tlsFirst": true});
    let sent = message("msg", vec![event(json!({"a": 1}))]);
    let result = Target::with(known.clone(), definition(&address.to_string()))
        .send(&sent)
        .await
        .result;
    assert_eq!(
        result,
        Err(Failure::receiver(
            "no stream of the server takes this subject"
        ))
    );
    // A server that speaks first is not understood.
    let plain = definition(&format!("127.0.0.1:{}", broker.port));
    let result = Target::with(known, plain).send(&sent).await.result;
    assert!(
        matches!(&result, Err(Failure::Receiver { reason, .. }) if reason.contains("TLS")),
        "{result:?}"
    );
}

#[tokio::test]
async fn server_with_tls_and_credentials_is_believed_and_believes() {
    if !has("nats-server") {
        return;
    }
    let tls = "tls {cert_file: \"DIR/cert.pem\", key_file: \"DIR/key.pem\"}\n";
    for (config, right, wrong) in [
        (
            "authorization {token: \"right\"}",
            json!({"type": "BEARER", "token": "right"}),
            json!({"type": "BEARER", "token": "wrong"}),
        ),
        (
            "authorization {user: \"me\", password: \"right\"}",
            json!({"type": "BASIC", "username": "me", "password": "right"}),
            json!({"type": "BASIC", "username": "me", "password": "wrong"}),
        ),
    ] {
        let broker = start(&format!("{tls}{config}")).await;
        let known = outgoing_with(Some(broker.file("ca.pem")));
        let definition = |auth: Value| json!({"kind": "NATS", "url": format!("tls://127.0.0.1:{}", broker.port), "subject": "a", "auth": auth});
        let sent = message("msg", vec![event(json!({"a": 1}))]);
        // The connection is made, and no stream takes the subject.
        let result = Target::with(known.clone(), definition(right.clone()))
            .send(&sent)
            .await
            .result;
        assert_eq!(
            result,
            Err(Failure::receiver(
                "no stream of the server takes this subject"
            ))
        );
        let result = Target::with(known, definition(wrong))
            .send(&sent)
            .await
            .result;
        assert!(
            matches!(result, Err(Failure::Credentials { .. })),
            "{result:?}"
        );
        let result = Target::with(outgoing_with(None), definition(right))
            .send(&sent)
            .await
            .result;
        assert!(
            matches!(&result, Err(Failure::Receiver { reason, .. }) if reason.contains("TLS")),
            "{result:?}"
        );
    }
}

/// A key pair of NATS: its public key, and its seed.
fn key_pair(prefix: u8) -> (Ed25519KeyPair, String, String) {
    let seed: [u8; 32] = hub_base::sealing::random();
    let pair = Ed25519KeyPair::from_seed_unchecked(&seed).expect("a key");
    let encode = |content: &[u8]| {
        let checksum = super::keys::crc16(content).to_le_bytes();
        data_encoding::BASE32_NOPAD.encode(&[content, &checksum].concat())
    };
    let public = encode(&[&[prefix], pair.public_key().as_ref()].concat());
    let head = [18 << 3 | prefix >> 5, (prefix & 31) << 3];
    let seed = encode(&[head.as_slice(), &seed].concat());
    (pair, public, seed)
}

/// A token that a key of NATS has signed.
fn token(issuer: &(Ed25519KeyPair, String, String), subject: &str, nats: Value) -> String {
    let encode = |bytes: &[u8]| {
        base64::Engine::encode(&base64::engine::general_purpose::URL_SAFE_NO_PAD, bytes)
    };
    let header = json!({"typ": "JWT", "alg": "ed25519-nkey"}).to_string();
    let claims = json!({"jti": hex::encode(hub_base::sealing::random::<16>()), "iat": 1_769_851_800,
        "iss": issuer.1, "sub": subject, "name": "test", "nats": nats});
    let text = format!(
        "{}.{}",
        encode(header.as_bytes()),
        encode(claims.to_string().as_bytes())
    );
    let signature = encode(issuer.0.sign(text.as_bytes()).as_ref());
    format!("{text}.{signature}")
}

const OPERATOR: u8 = 14 << 3;
const ACCOUNT: u8 = 0;
const USER: u8 = 20 << 3;

#[tokio::test]
async fn users_with_keys_sign_the_challenge_of_the_server() {
    if !has("nats-server") {
        return;
    }
    let (_, public, seed) = key_pair(USER);
    let (_, _, other) = key_pair(USER);
    let users = format!("authorization: {{users: [{{nkey: {public}}}]}}");
    let broker = start(&users).await;
    let send = async |auth: Value| {
        let target = Target::new(json!({"kind": "NATS", "subject": "a", "auth": auth,
            "url": format!("nats://127.0.0.1:{}", broker.port)}));
        let sent = target.send(&message("msg", vec![reading(1, 1.5)])).await;
        sent.result.expect_err("no stream takes it")
    };
    let accepted = send(json!({"type": "NKEY", "seed": seed})).await;
    assert!(accepted.into_reason().contains("no stream"));
    let refused = send(json!({"type": "NKEY", "seed": other})).await;
    assert!(
        matches!(refused, Failure::Credentials { .. }),
        "{refused:?}"
    );
}

#[tokio::test]
async fn credentials_files_are_those_of_users_of_an_account() {
    if !has("nats-server") {
        return;
    }
    let (operator, account) = (key_pair(OPERATOR), key_pair(ACCOUNT));
    let (user, other) = (key_pair(USER), key_pair(USER));
    let of_operator = json!({"type": "operator", "version": 2});
    let limits = json!({"subs": -1, "data": -1, "payload": -1, "imports": -1, "exports": -1,
        "wildcards": true, "conn": -1, "leaf": -1});
    let of_account = json!({"type": "account", "version": 2, "limits": limits});
    let of_user = json!({"type": "user", "version": 2, "subs": -1, "data": -1, "payload": -1});
    let config = format!(
        "operator: {}\nresolver: MEMORY\nresolver_preload: {{{}: {}}}\nsystem_account: {}\n",
        token(&operator, &operator.1, of_operator),
        account.1,
        token(&operator, &account.1, of_account),
        account.1
    );
    let broker = start_without_streams(&config).await;
    let jwt = token(&account, &user.1, of_user);
    let file = |seed: &str| {
        format!(
            "-----BEGIN NATS USER JWT-----\n{jwt}\n------END NATS USER JWT------\n\nIMPORTANT.\n\n\
             -----BEGIN USER NKEY SEED-----\n{seed}\n------END USER NKEY SEED------\n"
        )
    };
    let send = async |credentials: String| {
        let auth = json!({"type": "CREDENTIALS", "credentials": credentials});
        let target = Target::new(json!({"kind": "NATS", "subject": "a", "auth": auth,
            "url": format!("nats://127.0.0.1:{}", broker.port)}));
        let sent = target.send(&message("msg", vec![reading(1, 1.5)])).await;
        sent.result.expect_err("no stream takes it")
    };
    let accepted = send(file(&user.2)).await;
    assert!(
        accepted.clone().into_reason().contains("no stream"),
        "{accepted:?}"
    );
    let refused = send(file(&other.2)).await;
    assert!(
        matches!(refused, Failure::Credentials { .. }),
        "{refused:?}"
    );
}
