//! A hub that waits for its desired state, on a connection of its own.

use hub_protocol::HubUuid;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::fleet::Hub;

pub struct Waiter {
    pub hub_uuid: HubUuid,
    stream: TcpStream,
    head: String,
    state_etag: String,
    config_etag: String,
}

/// What the service answered.
pub struct Answer {
    pub status: u16,
    etag: Option<String>,
    pub body: Vec<u8>,
}

impl Waiter {
    /// Connects, and learns what the desired state is now.
    pub async fn open(url: &str, hub: &Hub) -> Self {
        let stream = TcpStream::connect(url.trim_start_matches("http://"))
            .await
            .expect("a connection");
        stream.set_nodelay(true).expect("a socket's option");
        let head = format!(
            "host: bench\r\nauthorization: Bearer {}\r\n",
            hub.access_token
        );
        let none = "\"none\"".to_owned();
        let mut waiter = Self {
            hub_uuid: hub.hub_uuid,
            stream,
            head,
            state_etag: none.clone(),
            config_etag: none,
        };
        assert_eq!(waiter.desired_state(0).await.status, 200);
        waiter
    }

    /// Asks for the desired state, and waits so long for a change of it.
    pub async fn desired_state(&mut self, wait_secs: u32) -> Answer {
        let path = format!("/v1/hubs/{}/desired-state?wait={wait_secs}", self.hub_uuid);
        let answer = self.get(&path, &self.state_etag.clone()).await;
        self.state_etag = answer
            .etag
            .clone()
            .unwrap_or(std::mem::take(&mut self.state_etag));
        answer
    }

    /// Asks for the scan configuration as an agent does. The answer's revision is in its tag.
    pub async fn scan_config(&mut self) -> (u16, i64) {
        let answer = self
            .get("/v1/hubs/scan-config", &self.config_etag.clone())
            .await;
        self.config_etag = answer
            .etag
            .clone()
            .unwrap_or(std::mem::take(&mut self.config_etag));
        let revision = self
            .config_etag
            .trim_matches('"')
            .split('.')
            .next()
            .and_then(|digits| digits.parse().ok());
        (answer.status, revision.expect("a revision"))
    }

    async fn get(&mut self, path: &str, etag: &str) -> Answer {
        let request = format!(
            "GET {path} HTTP/1.1\r\n{}accept-encoding: zstd, gzip\r\nif-none-match: {etag}\r\n\r\n",
            self.head
        );
        self.stream
            .write_all(request.as_bytes())
            .await
            .expect("a request sent");
        let mut answer = Vec::new();
        let head_end = loop {
            assert_ne!(
                self.stream.read_buf(&mut answer).await.expect("an answer"),
                0,
                "the service hung up"
            );
            if let Some(end) = memchr::memmem::find(&answer, b"\r\n\r\n") {
                break end + 4;
            }
        };
        let head = String::from_utf8_lossy(&answer[..head_end]).into_owned();
        let header = |name: &str| {
            head.lines()
                .find_map(|line| line.strip_prefix(name))
                .map(str::trim)
        };
        let status = head
            .get(9..12)
            .and_then(|status| status.parse().ok())
            .expect("a status");
        let length = header("content-length:")
            .and_then(|length| length.parse().ok())
            .unwrap_or(0_usize);
        while answer.len() < head_end + length {
            assert_ne!(
                self.stream.read_buf(&mut answer).await.expect("a body"),
                0,
                "the service hung up"
            );
        }
        Answer {
            status,
            etag: header("etag:").map(str::to_owned),
            body: answer.split_off(head_end),
        }
    }
}
