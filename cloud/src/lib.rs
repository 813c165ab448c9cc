//! hub-cloud: gives hubs their identity, takes in what they hear, and serves the people who run them.
//!
//! | where | what |
//! |---|---|
//! | `http` | what endpoints share; all routes are in `http/router.rs` |
//! | `authn`, `authz` | who calls, and what they may do |
//! | `domain` | the subjects: accounts, tenants, hubs, BLE events, ... |
//! | `bus` | how replicas tell each other what is new |
//! | `ingest` | the writer behind every upload of a hub |
//! | `db` | one text of SQL for SQLite and PostgreSQL |
//! | `mail` | mail that goes out |
//! | `tasks` | background work |
//! | `admin` | what the command line does that no endpoint may |
//! | `login` | what a person does at the command line to get tokens of the external issuer |
//! | `release` | what the maker of a release does at the command line |
//! | `demo` | all of it on one machine, with a view |

pub mod admin;
pub mod app;
pub mod authn;
pub mod authz;
pub mod bus;
pub mod clock;
pub mod config;
pub mod db;
pub mod demo;
pub mod domain;
pub mod error;
pub mod http;
pub mod ingest;
pub mod login;
pub mod mail;
pub mod release;
pub mod sealing;
pub mod tasks;
