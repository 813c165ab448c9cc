//! What the programs of this crate share. Everything else belongs to one program.

pub mod durable;
pub mod helper_api;
pub mod launch;
pub mod size;
