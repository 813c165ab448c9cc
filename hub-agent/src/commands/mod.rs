//! The commands beside `run`.

pub mod check;
pub mod claim;
pub mod output;
mod reading;
pub mod scan;
mod scan_table;
pub mod status;
