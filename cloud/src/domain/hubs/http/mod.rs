//! Requests and answers about hubs: those hubs send themselves, and those of the people who run them.

pub mod platform;
pub mod protocol;
pub mod tenant;
