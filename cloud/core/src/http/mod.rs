//! The ground of HTTP, which every endpoint shares: extractors, pages, bodies, answers,
//! descriptions. It knows no route.

pub mod answer;
pub mod asset;
pub mod body;
pub mod browser;
pub mod check;
pub mod client_address;
pub mod compression;
pub mod connection;
pub mod describe;
pub mod etag;
pub mod extract;
pub mod file;
pub mod idempotency;
pub mod items;
pub mod json;
pub mod message_page;
pub mod operation;
pub mod outgoing;
pub mod page;
pub mod patch;
pub mod remainder;
pub mod signature;
mod strict;
