//! Requests and answers, a file for each who asks.

pub mod apps;
pub mod downloads;
pub mod installer;
pub mod platform;
pub mod protocol;
pub mod tenant;
