//! What the commands beside `run` do.

pub mod check;
pub mod claim;
pub mod scan;
mod scan_table;
pub mod status;
