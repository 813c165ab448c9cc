//! A caller over HTTP: where to, and with which headers. Answers are read whole, so that a failed
//! assertion can show them.

use std::sync::Once;
use std::time::Duration;

use hub_protocol::{Problem, TenantUuid};
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Method, RequestBuilder, StatusCode};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::documented;
use crate::secrets::{self, NotedRequest};

/// Makes the process's one TLS provider the default.
pub fn install_tls() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    });
}

/// For services that are reached without TLS. It reads none of the machine's authorities, which
/// takes longer than most tests' requests. The service closes idle connections after half a minute;
/// on a busy machine a request may be sent on one that is being closed, unless we close it first.
pub fn plain_builder() -> reqwest::ClientBuilder {
    reqwest::Client::builder()
        .no_proxy()
        .tls_certs_only([])
        .pool_idle_timeout(Duration::from_secs(5))
}

#[derive(Clone)]
pub struct Client {
    pub http: reqwest::Client,
    pub url: String,
    pub headers: HeaderMap,
}

impl Client {
    pub fn new(url: &str) -> Self {
        install_tls();
        let http = plain_builder()
            .timeout(Duration::from_secs(60))
            .build()
            .expect("a client");
        Self {
            http,
            url: url.to_owned(),
            headers: HeaderMap::new(),
        }
    }

    /// The same caller, to whom redirects are answers.
    pub fn without_redirects(&self) -> Self {
        let http = plain_builder().redirect(reqwest::redirect::Policy::none());
        let http = http
            .timeout(Duration::from_secs(60))
            .build()
            .expect("a client");
        Self {
            http,
            ..self.clone()
        }
    }

    /// The same caller at another replica.
    pub fn at(&self, url: &str) -> Self {
        Self {
            url: url.to_owned(),
            ..self.clone()
        }
    }

    pub fn bearer(&self, token: &str) -> Self {
        self.header(AUTHORIZATION, &format!("Bearer {token}"))
    }

    pub fn tenant(&self, tenant_uuid: TenantUuid) -> Self {
        self.header(
            HeaderName::from_static("x-tenant-uuid"),
            &tenant_uuid.to_string(),
        )
    }

    pub fn header(&self, name: HeaderName, value: &str) -> Self {
        let mut client = self.clone();
        client
            .headers
            .insert(name, HeaderValue::from_str(value).expect("a header value"));
        client
    }

    pub fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.http
            .request(method, format!("{}{path}", self.url))
            .headers(self.headers.clone())
    }

    pub fn get(&self, path: &str) -> RequestBuilder {
        self.request(Method::GET, path)
    }

    pub fn post(&self, path: &str) -> RequestBuilder {
        self.request(Method::POST, path)
    }

    pub fn patch(&self, path: &str) -> RequestBuilder {
        self.request(Method::PATCH, path)
    }

    pub fn put(&self, path: &str) -> RequestBuilder {
        self.request(Method::PUT, path)
    }

    pub fn delete(&self, path: &str) -> RequestBuilder {
        self.request(Method::DELETE, path)
    }
}

/// Sends a request and reads the whole answer.
pub trait Call {
    fn call(self) -> impl Future<Output = Reply> + Send;
    /// As `call`, where the service may be unreachable.
    fn try_call(self) -> impl Future<Output = reqwest::Result<Reply>> + Send;
}

impl Call for RequestBuilder {
    async fn call(self) -> Reply {
        self.try_call().await.expect("an answer")
    }

    async fn try_call(self) -> reqwest::Result<Reply> {
        let (http, request) = self.build_split();
        let request = request?;
        let asked = format!("{} {}", request.method(), request.url());
        let (method, path) = (request.method().clone(), request.url().path().to_owned());
        let noted = NotedRequest::of(&request);
        let response = http.execute(request).await?;
        let (status, headers) = (response.status(), response.headers().clone());
        let is_stream = headers
            .get(CONTENT_TYPE)
            .is_some_and(|media_type| media_type == "text/event-stream");
        // A stream has no end to wait for.
        let body = if is_stream {
            Default::default()
        } else {
            response.bytes().await?
        };
        let body = String::from_utf8_lossy(&body).into_owned();
        let json: Option<Value> = serde_json::from_str(&body).ok();
        secrets::note(&noted, json.as_ref());
        let answer = documented::Answer {
            status: status.as_u16(),
            headers: &headers,
            body: &body,
            json: json.as_ref(),
        };
        if let Err(fault) = documented::check(&method, &path, &answer) {
            panic!("{asked} was answered otherwise than the API's description says: {fault}");
        }
        Ok(Reply {
            asked,
            status,
            headers,
            body,
        })
    }
}

/// An answer.
#[derive(Clone, Debug)]
pub struct Reply {
    /// Method and URL of the request.
    pub asked: String,
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: String,
}

impl Reply {
    /// Fails the test, showing the answer, unless it has this status.
    #[track_caller]
    pub fn expect(self, status: u16) -> Self {
        assert_eq!(
            self.status.as_u16(),
            status,
            "{} was answered: {}",
            self.asked,
            self.body
        );
        self
    }

    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| {
            panic!("{}: {error}, in {}: {}", self.asked, self.status, self.body)
        })
    }

    /// The payload of `{"data": ...}`.
    #[track_caller]
    pub fn data<T: DeserializeOwned>(&self) -> T {
        let mut json = self.json();
        serde_json::from_value(json["data"].take())
            .unwrap_or_else(|error| panic!("{}: {error}, in {}", self.asked, self.body))
    }

    /// The body of a failure. Fails the test unless it is the one that all failures have.
    #[track_caller]
    pub fn problem(&self) -> Problem {
        let problem: Problem = serde_json::from_str(&self.body).unwrap_or_else(|error| {
            panic!("{}: {error}, in {}: {}", self.asked, self.status, self.body)
        });
        assert!(!problem.message.is_empty(), "{}: no message", self.asked);
        let code = &problem.code;
        let is_code = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
        assert!(
            !code.is_empty() && code.chars().all(is_code),
            "{}: the code is `{code}`",
            self.asked
        );
        assert_eq!(
            self.header("x-request-id"),
            problem.request_id,
            "{}: the request's id",
            self.asked
        );
        problem
    }

    /// A header's value, empty when there is none.
    pub fn header(&self, name: &str) -> &str {
        self.headers
            .get(name)
            .and_then(|value| value.to_str().ok())
            .unwrap_or_default()
    }
}
