//! The least HTTP/1.1 that a load generator needs: requests are bytes built in advance, responses
//! are read for status and length only. The generator shares the machine with the service, so CPU
//! it saves is available to the service.

use std::io;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

pub struct Connection {
    stream: TcpStream,
    buffer: Vec<u8>,
}

impl Connection {
    /// `url` is `http://ADDRESS`.
    pub async fn open(url: &str) -> io::Result<Self> {
        let stream = TcpStream::connect(url.trim_start_matches("http://")).await?;
        stream.set_nodelay(true)?;
        Ok(Self {
            stream,
            buffer: Vec::with_capacity(4096),
        })
    }

    /// Sends a whole request; answers the status of its answer.
    pub async fn send(&mut self, request: &[u8]) -> io::Result<u16> {
        self.stream.write_all(request).await?;
        self.buffer.clear();
        loop {
            if self.stream.read_buf(&mut self.buffer).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            let Some(head_end) = find(&self.buffer, b"\r\n\r\n") else {
                continue;
            };
            let head = std::str::from_utf8(&self.buffer[..head_end]).map_err(io::Error::other)?;
            let status = head
                .get(9..12)
                .and_then(|status| status.parse().ok())
                .ok_or(io::ErrorKind::InvalidData)?;
            let length = head
                .split("\r\n")
                .find_map(|line| line.strip_prefix("content-length: "))
                .and_then(|length| length.parse().ok())
                .unwrap_or(0_usize);
            while self.buffer.len() < head_end + 4 + length {
                if self.stream.read_buf(&mut self.buffer).await? == 0 {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
            }
            return Ok(status);
        }
    }
}

fn find(bytes: &[u8], pattern: &[u8]) -> Option<usize> {
    bytes
        .windows(pattern.len())
        .position(|window| window == pattern)
}

/// An upload as bytes, whose batch uuid can be changed in place.
#[derive(Clone)]
pub struct UploadRequest {
    bytes: Vec<u8>,
    batch_uuid_at: usize,
}

impl UploadRequest {
    /// `events` is a JSON array.
    pub fn new(access_token: &str, events: &str) -> Self {
        let before = "{\"batchUuid\":\"";
        let body = format!("{before}{}\",\"events\":{events}}}", uuid::Uuid::nil());
        let head = format!(
            "POST /v1/ble/events HTTP/1.1\r\nhost: bench\r\nauthorization: Bearer {access_token}\r\n\
             content-type: application/json\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        let batch_uuid_at = head.len() + before.len();
        Self {
            bytes: (head + &body).into_bytes(),
            batch_uuid_at,
        }
    }

    /// The request, as a batch of its own.
    pub fn fresh(&mut self) -> &[u8] {
        let uuid = uuid::Uuid::now_v7();
        let place = &mut self.bytes[self.batch_uuid_at..self.batch_uuid_at + 36];
        uuid.hyphenated().encode_lower(place);
        &self.bytes
    }
}
