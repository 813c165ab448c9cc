//! Where the demo's values go without `--send-to`: a receiver on this machine that takes them all.

use std::net::Ipv4Addr;

use axum::Router;
use axum::http::StatusCode;
use bytes::Bytes;
use tokio::net::TcpListener;

use super::Failure;
use super::demo_dir::{self, DemoDir};

pub struct Receiver {
    listener: TcpListener,
    pub url: String,
}

impl Receiver {
    /// Listens on the port of the last start if it is free, so that the pipeline finds it again.
    pub async fn bind(demo_dir: &DemoDir) -> Result<Self, Failure> {
        let failed = |error: std::io::Error| {
            Failure(format!("cannot listen on a port of this machine: {error}"))
        };
        let last = demo_dir.read(demo_dir::RECEIVER_PORT)?;
        let last = last.and_then(|text| String::from_utf8(text).ok()?.trim().parse::<u16>().ok());
        let listener = match TcpListener::bind((Ipv4Addr::LOCALHOST, last.unwrap_or(0))).await {
            Ok(listener) => listener,
            Err(_) => TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
                .await
                .map_err(failed)?,
        };
        let address = listener.local_addr().map_err(failed)?;
        let port = address.port().to_string();
        demo_dir.write(demo_dir::RECEIVER_PORT, port.as_bytes())?;
        Ok(Self {
            listener,
            url: format!("http://{address}/values"),
        })
    }

    /// Takes what comes, for as long as the demo runs.
    pub async fn run(self) {
        let taken = async |_: Bytes| StatusCode::NO_CONTENT;
        let router = Router::new().route("/values", axum::routing::post(taken));
        if let Err(error) = axum::serve(self.listener, router).await {
            tracing::error!(%error, "the receiver of the demo has stopped");
        }
    }
}
