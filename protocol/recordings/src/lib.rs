//! Reads recordings of BLE advertisements: Android's and Linux's HCI logs (btsnoop), captures of
//! HCI and of sniffers (pcap, pcapng), diagnostics of Home Assistant, and the project's own traces.
//! A recording comes from outside: every length is checked, nothing panics, and what is held of it
//! is bounded. Opens no file.
//!
//! A module imports only from earlier lines:
//!
//! ```layers
//! bytes error order
//! advertising_data clock input report
//! found trace
//! hci home_assistant link_layer
//! link
//! packet
//! btsnoop pcap pcapng
//! capture
//! recording
//! lib
//! ```

mod advertising_data;
mod btsnoop;
mod bytes;
mod capture;
mod clock;
mod error;
mod found;
mod hci;
mod home_assistant;
mod input;
mod link;
mod link_layer;
mod order;
mod packet;
mod pcap;
mod pcapng;
mod recording;
mod report;
mod trace;

pub use advertising_data::parse as parse_advertising_data;
pub use error::RecordingError;
pub use recording::{Format, Recording};
pub use report::{PassedOver, Report};
