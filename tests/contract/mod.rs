//! What the service promises as a whole, checked against what it says of itself: every endpoint,
//! everyone who may call it, every change recorded, the same schema on both databases.

mod accounts;
mod answers;
mod authorization;
mod beside;
mod bundles;
mod catalog;
mod client;
pub mod document;
pub mod dump;
mod end_users;
mod exposure;
mod isolation;
mod mandates;
mod page;
pub mod pipelines;
mod schema;
mod specification;
mod statuses;
mod suppliers;
pub mod world;
