//! The messages between `hub-agent` and `hub-cloud`, as types that both compile against. Nothing
//! here does I/O, reads a clock or knows a configuration.

pub mod ble;
pub mod certificate;
pub mod check;
pub mod claim;
pub mod command;
pub mod envelope;
pub mod hub;
pub mod ids;
pub mod job;
pub mod pace;
pub mod packages;
pub mod patterns;
pub mod release;
pub mod scan_config;
#[cfg(feature = "signing")]
pub mod signing;
pub mod telemetry;
mod text_enum;
pub mod time;
pub mod trace_context;

pub use envelope::{Data, FieldError, Problem};
pub use ids::{
    AppUuid, BatchUuid, HubJobUuid, HubUuid, PersonaUuid, ReleaseUuid, TenantUuid, UserUuid,
};
pub use time::Timestamp;
pub use trace_context::TraceContext;
