//! The loopback redirect endpoint of one login: `/callback` on a free port of this machine. A
//! request without the `state` of this login is refused and changes nothing.

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

use crate::authn::oidc::client::{self, Issuer};
use crate::authn::oidc::redirect::Parameters;

/// Time for the browser to fetch the final page.
const FINAL_PAGE_TIMEOUT: Duration = Duration::from_secs(2);

pub struct Callback {
    port: u16,
    state: String,
    redirects: mpsc::Receiver<Redirect>,
    finished: CancellationToken,
    serving: JoinHandle<()>,
}

/// The redirect of the browser, with the authorization code or the reason why there is none.
pub struct Redirect {
    pub code: Result<String, String>,
    pub page: Page,
}

/// The pending response to the browser.
pub struct Page(oneshot::Sender<bool>);

impl Page {
    pub fn show(self, is_logged_in: bool) {
        // The send fails if the user closed the window, which is no error.
        let _ = self.0.send(is_logged_in);
    }
}

struct ExpectedRedirect {
    state: String,
    issuer: String,
    sends_iss: bool,
    redirects: mpsc::Sender<Redirect>,
    is_received: AtomicBool,
}

impl Callback {
    pub async fn listen(issuer: &Issuer) -> Result<Self, String> {
        let failed =
            |error: std::io::Error| format!("cannot listen for the browser on 127.0.0.1: {error}");
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.map_err(failed)?;
        let port = listener.local_addr().map_err(failed)?.port();
        let state = super::secret();
        let (sender, redirects) = mpsc::channel(1);
        let expected = ExpectedRedirect {
            state: state.clone(),
            issuer: issuer.name().to_owned(),
            sends_iss: issuer.sends_iss(),
            redirects: sender,
            is_received: AtomicBool::new(false),
        };
        let router = Router::new()
            .route("/callback", get(receive))
            .with_state(Arc::new(expected));
        let finished = CancellationToken::new();
        let stop = finished.clone().cancelled_owned();
        let serving = tokio::spawn(async move {
            let _ = axum::serve(listener, router)
                .with_graceful_shutdown(stop)
                .await;
        });
        Ok(Self {
            port,
            state,
            redirects,
            finished,
            serving,
        })
    }

    pub fn redirect_uri(&self) -> String {
        format!("http://127.0.0.1:{}/callback", self.port)
    }

    pub fn state(&self) -> &str {
        &self.state
    }

    /// Waits for the redirect of the browser.
    pub async fn redirect(&mut self) -> Redirect {
        match self.redirects.recv().await {
            Some(redirect) => redirect,
            // Unreachable: the server holds the sender for as long as `self` lives.
            None => std::future::pending().await,
        }
    }

    /// Lets the browser fetch the final page, then stops listening.
    pub async fn finish(self) {
        self.finished.cancel();
        let _ = tokio::time::timeout(FINAL_PAGE_TIMEOUT, self.serving).await;
    }
}

async fn receive(
    State(expected): State<Arc<ExpectedRedirect>>,
    RawQuery(query): RawQuery,
) -> Response {
    let Ok(parameters) = Parameters::read(query.as_deref().unwrap_or_default()) else {
        return page(
            StatusCode::BAD_REQUEST,
            "The address of this page repeats a parameter. Start the login again.",
        );
    };
    let state = parameters.state.as_deref().unwrap_or_default();
    if verify_slices_are_equal(state.as_bytes(), expected.state.as_bytes()).is_err() {
        return page(
            StatusCode::BAD_REQUEST,
            "This login is not the one that the terminal waits for. Open the address shown in the terminal.",
        );
    }
    if expected.is_received.swap(true, Ordering::Relaxed) {
        return page(
            StatusCode::CONFLICT,
            "This login is complete already; see the terminal.",
        );
    }
    let code = code_of(parameters, &expected);
    let (sender, receiver) = oneshot::channel();
    let _ = expected
        .redirects
        .send(Redirect {
            code,
            page: Page(sender),
        })
        .await;
    match receiver.await {
        Ok(true) => page(
            StatusCode::OK,
            "You are logged in. Close this window and continue in the terminal.",
        ),
        _ => page(
            StatusCode::BAD_REQUEST,
            "The login failed. The terminal shows the reason.",
        ),
    }
}

fn code_of(parameters: Parameters, expected: &ExpectedRedirect) -> Result<String, String> {
    if !parameters.is_from(&expected.issuer, expected.sends_iss) {
        return Err(
            "another issuer redirected the browser and its code was ignored; run `hub-cloud login` again".to_owned()
        );
    }
    match (parameters.error, parameters.code) {
        (Some(error), _) => {
            let reason = client::refusal(&error, parameters.error_description.as_deref());
            Err(format!("{} refused the login: {reason}", expected.issuer))
        }
        (None, Some(code)) if !code.is_empty() => Ok(code),
        _ => Err(format!(
            "{} redirected the browser without a code; run `hub-cloud login` again",
            expected.issuer
        )),
    }
}

fn page(status: StatusCode, text: &str) -> Response {
    let html = format!(
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><title>hub-cloud login</title></head>\
         <body style=\"font-family: sans-serif; margin: 4em\"><p>{text}</p></body></html>"
    );
    let headers = [
        ("cache-control", "no-store"),
        (
            "content-security-policy",
            "default-src 'none'; style-src 'unsafe-inline'",
        ),
        ("referrer-policy", "no-referrer"),
    ];
    (status, headers, Html(html)).into_response()
}
