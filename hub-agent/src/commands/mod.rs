//! What the commands beside `run` do.

pub mod claim;
pub mod status;
