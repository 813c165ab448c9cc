//! hub-cloud: gives hubs their identity, accepts what they upload, and serves the people who
//! operate them.
//!
//! The modules form layers; ARCHITECTURE.md lists them in order.

pub mod admin;
pub mod app;
pub mod audit;
pub mod authn;
pub mod authz;
pub mod bodies;
pub mod budget;
pub mod bus;
pub mod clock;
pub mod config;
pub mod core;
pub mod db;
pub mod demo;
pub mod destinations;
pub mod domain;
pub mod error;
pub mod http;
pub mod ingest;
pub mod login;
pub mod mail;
pub mod metrics;
pub mod observe;
pub mod outbox;
pub mod outgoing;
pub mod pace;
pub mod release;
pub mod replicas;
pub mod request_id;
pub mod retention;
pub mod revisions;
pub mod scripts;
pub mod sealing;
pub mod steps;
pub mod storage;
pub mod tasks;
pub mod turns;
pub mod upkeep;
