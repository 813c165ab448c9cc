//! What every crate of the service stands on: clock, errors, database, sealing, bus, budgets.
//!
//! A module imports only from earlier lines:
//!
//! ```layers
//! bucket clock paths request_id seldom surge
//! error
//! budget db metrics revisions turns
//! bodies sealing
//! bus
//! storage
//! ```

pub mod bodies;
pub mod bucket;
pub mod budget;
pub mod bus;
pub mod clock;
pub mod db;
pub mod error;
pub mod metrics;
pub mod paths;
pub mod request_id;
pub mod revisions;
pub mod sealing;
pub mod seldom;
pub mod storage;
pub mod surge;
pub mod turns;
