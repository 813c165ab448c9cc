//! What `hub-agent` and `hub-cloud` say to each other, as types both compile against.
//! Nothing here reads, writes or waits: no I/O, no clock, no configuration.

pub mod ble;
pub mod certificate;
pub mod check;
pub mod claim;
pub mod envelope;
pub mod hub;
pub mod ids;
pub mod job;
pub mod release;
pub mod telemetry;
pub mod time;

pub use envelope::{Data, FieldError, Problem};
pub use ids::{AppUuid, BatchUuid, HubJobUuid, HubUuid, PersonaUuid, ReleaseUuid, TenantUuid, UserUuid};
pub use time::Timestamp;
