//! A client of hub-cloud: calls with retries, sessions, pages, and streams that resume. The
//! operations are in `operations`, which a test compares with the OpenAPI document of the service.
//! It prints nothing and stores nothing.
//!
//! ```no_run
//! # async fn example() -> Result<(), hub_client::Error> {
//! use hub_client::{Client, Credential, Hub, ServiceUrl, operations};
//! let url = ServiceUrl::parse("https://hubs.example.com", false)?;
//! let client = Client::new(url, Credential::ApiKey("hmk_…".to_owned()))?;
//! let client = client.in_tenant("0198c5d1-0000-7000-8000-000000000000".parse().expect("a uuid"));
//! for hub in client.list::<Hub>(operations::HUBS.call()).await? {
//!     println!("{} {}", hub.hub_uuid, hub.status);
//! }
//! let mut events = client.follow(operations::BLE_EVENT_STREAM.call());
//! loop {
//!     println!("{:?}", events.next().await?);
//! }
//! # }
//! ```

mod call;
mod client;
mod error;
pub mod operations;
mod records;
mod session;
mod stream;
mod url;

pub use call::{Call, Operation, Shape};
pub use client::{Client, cause, now};
pub use error::Error;
pub use records::*;
pub use session::{AccessTokens, Credential, Session, SessionTokens};
pub use stream::{Event, Stream};
pub use url::{ServiceUrl, is_loopback};
