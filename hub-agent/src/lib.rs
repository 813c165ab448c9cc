//! What the programs of this crate say to each other. Each program's own parts are its own.

pub mod helper_api;
pub mod launch;
pub mod size;
