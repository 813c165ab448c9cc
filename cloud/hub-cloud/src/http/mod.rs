//! The roof of HTTP: the router over all subjects, its description, the console, TLS and the access
//! log.

mod accept;
pub mod access_log;
pub mod console;
pub mod head;
pub mod health;
pub mod hygiene;
mod middleware;
pub mod openapi;
pub mod router;
mod security_txt;
pub mod serve;
pub mod tls;
mod trace;
