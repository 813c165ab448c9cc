//! What the service promises as a whole, checked against what it says of itself: every endpoint,
//! everyone who may call it, every change recorded, the same schema on both databases.

mod answers;
mod authorization;
mod catalog;
pub mod document;
mod dump;
mod isolation;
mod page;
mod schema;
mod specification;
mod statuses;
pub mod world;
