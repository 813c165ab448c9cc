//! What was heard of a device over time: its values, raw and in buckets, the hubs that received it,
//! and when it was silent. It is read from stored events. Rollups by the hour make long periods
//! fast; they follow the log, and events that are in no rollup yet are read themselves. Values by
//! the hour of another service are in rollups alone.

mod buckets;
mod hour;
pub mod http;
mod import;
mod listening;
mod reader;
mod receptions;
mod rollup;
mod sensor_data;
mod spans;
mod store;
mod timeline;

pub use hour::hour_of;
pub use http::{SensorDataQuery, SensorDataResponse, values};
pub use reader::Device;
pub use rollup::{Changed, forget, forget_of_hub, recount, roll_up};
pub use sensor_data::{ItemValue, SensorItemResponse, read as items};

const HOUR_SECS: i64 = 3600;
const DAY_SECS: i64 = 24 * 3600;
/// Events that one request reads at most.
const MAX_EVENTS: i64 = 100_000;
