//! HTTP: what every endpoint shares. The routes are next to their handlers; `router` merges them.

mod accept;
pub mod access_log;
pub mod answer;
pub mod body;
pub mod check;
pub mod client_address;
pub mod compression;
pub mod connection;
pub mod describe;
pub mod etag;
pub mod extract;
pub mod head;
pub mod health;
pub mod hygiene;
pub mod idempotency;
pub mod items;
pub mod json;
mod middleware;
pub mod openapi;
pub mod operation;
pub mod page;
pub mod paths;
mod remainder;
pub mod router;
pub mod serve;
mod strict;
pub mod tls;
