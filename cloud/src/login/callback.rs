//! Where the browser comes back to with the code: one path on a free port of this machine, for one login. What does not carry the login's `state` is turned away and changes nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use aws_lc_rs::constant_time::verify_slices_are_equal;
use axum::Router;
use axum::extract::{RawQuery, State};
use axum::http::StatusCode;
use axum::response::{Html, IntoResponse, Response};
use axum::routing::get;
use tokio::net::TcpListener;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::issuer::{self, Issuer};

/// The browser gets this long to fetch the last page.
const LAST_PAGE: Duration = Duration::from_secs(2);

pub struct Callback {
    port: u16,
    state: String,
    arrivals: mpsc::Receiver<Arrival>,
    finished: CancellationToken,
    serving: JoinHandle<()>,
}

/// The browser has come back.
pub struct Arrival {
    pub code: Result<String, String>,
    pub page: Page,
}

/// The browser, waiting to be told.
pub struct Page(oneshot::Sender<bool>);

impl Page {
    pub fn show(self, is_logged_in: bool) {
        // Who closed the window need not be told.
        let _ = self.0.send(is_logged_in);
    }
}

struct Expected {
    state: String,
    issuer: String,
    names_itself: bool,
    arrivals: mpsc::Sender<Arrival>,
    has_arrived: AtomicBool,
}

/// The parameters of the redirect (RFC 6749, 4.1.2; RFC 9207).
#[derive(Default)]
struct Parameters {
    state: Option<String>,
    code: Option<String>,
    iss: Option<String>,
    error: Option<String>,
    error_description: Option<String>,
}

impl Callback {
    pub async fn listen(issuer: &Issuer) -> Result<Self, String> {
        let failed = |error: std::io::Error| format!("cannot listen for the browser on 127.0.0.1: {error}");
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.map_err(failed)?;
        let port = listener.local_addr().map_err(failed)?.port();
        let state = super::secret();
        let (sender, arrivals) = mpsc::channel(1);
        let expected = Expected {
            state: state.clone(),
            issuer: issuer.name().to_owned(),
            names_itself: issuer.names_itself(),
            arrivals: sender,
            has_arrived: AtomicBool::new(false),
        };
        let router = Router::new().route("/callback", get(arrive)).with_state(Arc::new(expected));
        let finished = CancellationToken::new();
        let stop = finished.clone().cancelled_owned();
        let serving = tokio::spawn(async move {
            let _ = axum::serve(listener, router).with_graceful_shutdown(stop).await;
        });
        Ok(Self { port, state, arrivals, finished, serving })
    }

    pub fn redirect_uri(&self) -> String {
        format!("http://127.0.0.1:{}/callback", self.port)
    }

    pub fn state(&self) -> &str {
        &self.state
    }

    /// Waits for the browser.
    pub async fn arrival(&mut self) -> Arrival {
        match self.arrivals.recv().await {
            Some(arrival) => arrival,
            // The server lives as long as this does.
            None => std::future::pending().await,
        }
    }

    /// Lets the browser fetch its last page, and stops listening.
    pub async fn finish(self) {
        self.finished.cancel();
        let _ = tokio::time::timeout(LAST_PAGE, self.serving).await;
    }
}

async fn arrive(State(expected): State<Arc<Expected>>, RawQuery(query): RawQuery) -> Response {
    let Ok(parameters) = Parameters::read(query.as_deref().unwrap_or_default()) else {
        return page(StatusCode::BAD_REQUEST, "This page was called with parameters that contradict each other.");
    };
    let state = parameters.state.as_deref().unwrap_or_default();
    if verify_slices_are_equal(state.as_bytes(), expected.state.as_bytes()).is_err() {
        return page(
            StatusCode::BAD_REQUEST,
            "This is not the login that the terminal waits for. Open the address that it shows.",
        );
    }
    if expected.has_arrived.swap(true, Ordering::Relaxed) {
        return page(StatusCode::CONFLICT, "This login has been answered already; see the terminal.");
    }
    let code = parameters.code(&expected);
    let (sender, receiver) = oneshot::channel();
    let _ = expected.arrivals.send(Arrival { code, page: Page(sender) }).await;
    match receiver.await {
        Ok(true) => page(StatusCode::OK, "You are logged in. This window may be closed; the terminal goes on."),
        _ => page(StatusCode::BAD_REQUEST, "The login failed. The terminal says why."),
    }
}

impl Parameters {
    /// Each at most once (RFC 6749, 3.1).
    fn read(query: &str) -> Result<Self, ()> {
        let mut read = Self::default();
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            let place = match &*name {
                "state" => &mut read.state,
                "code" => &mut read.code,
                "iss" => &mut read.iss,
                "error" => &mut read.error,
                "error_description" => &mut read.error_description,
                _ => continue,
            };
            if place.replace(value.into_owned()).is_some() {
                return Err(());
            }
        }
        Ok(read)
    }

    fn code(self, expected: &Expected) -> Result<String, String> {
        let is_theirs = match &self.iss {
            Some(iss) => *iss == expected.issuer,
            None => !expected.names_itself,
        };
        if !is_theirs {
            return Err("another issuer than the one asked sent the browser back; nothing was taken from it".to_owned());
        }
        match (self.error, self.code) {
            (Some(error), _) => {
                let reason = issuer::refusal(&error, self.error_description.as_deref());
                Err(format!("{} refused the login: {reason}", expected.issuer))
            }
            (None, Some(code)) if !code.is_empty() => Ok(code),
            _ => Err(format!("{} sent the browser back without a code; run `hub-cloud login` again", expected.issuer)),
        }
    }
}

fn page(status: StatusCode, text: &str) -> Response {
    let html = format!(
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><title>hub-cloud login</title></head>\
         <body style=\"font-family: sans-serif; margin: 4em\"><p>{text}</p></body></html>"
    );
    let headers = [
        ("cache-control", "no-store"),
        ("content-security-policy", "default-src 'none'; style-src 'unsafe-inline'"),
        ("referrer-policy", "no-referrer"),
    ];
    (status, headers, Html(html)).into_response()
}
