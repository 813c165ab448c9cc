//! Reads BLE advertisements: the device model that sent a frame, and the content of the frame. The
//! service and the agent both use this crate, so that both read a frame to the same bits. No I/O;
//! nothing here panics on what a frame or a definition contains.

pub mod advertisement;
pub mod builtin;
mod bytes;
pub mod catalog;
pub mod company;
mod crypto;
pub mod encrypted_data;
pub mod frame;
pub mod language;
pub mod library;
pub mod matching;
pub mod measurement;
pub mod outcome;
pub mod quantity;
pub mod resolvable;
mod scripted;
pub mod service;

pub use builtin::Builtin;
pub use frame::{Address, AddressType, Frame};
pub use language::{Decoder, DefinitionError};
pub use measurement::{Kind, Measurement, Value};
pub use outcome::{BindKey, Facts, Identity, Keys, Outcome, Sequence};
pub use quantity::Quantity;
pub use scripted::rounded;
