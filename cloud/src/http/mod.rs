//! HTTP: what every endpoint shares. The routes themselves are on one page, in `router`.

pub mod answer;
mod around;
pub mod body;
pub mod check;
pub mod client_address;
pub mod etag;
pub mod extract;
pub mod health;
pub mod hygiene;
pub mod items;
pub mod metrics;
pub mod openapi;
pub mod page;
mod remainder;
pub mod request_id;
pub mod router;
pub mod serve;
pub mod tls;
