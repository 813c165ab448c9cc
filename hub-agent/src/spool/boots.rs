//! The clock offsets of this boot and of earlier ones, with which the times of records are
//! corrected before they are sent.

use uuid::Uuid;

use super::segment::CORRECT_ABOVE_MICROS;
use super::store::{Store, StoreError};
use crate::clock::{Clock, Offset};

/// Stores this boot's offset, so that its records can be corrected after a reboot.
pub fn remember(store: &mut Store, clock: &Clock, offset: Offset) -> Result<(), StoreError> {
    if !offset.known {
        return Ok(());
    }
    match store.boot_offset(clock.boot())? {
        Some(before) if (before - offset.micros).abs() <= CORRECT_ABOVE_MICROS / 2 => Ok(()),
        _ => store.set_boot_offset(clock.boot(), offset.micros),
    }
}

/// The difference between the time of day and the time since boot, in this boot or an earlier one.
pub fn offset_micros(store: &mut Store, clock: &Clock, boot: Uuid) -> Result<i64, StoreError> {
    if boot == clock.boot() {
        return Ok(clock.offset().micros);
    }
    if let Some(offset) = store.boot_offset(boot)? {
        return Ok(offset);
    }
    // The time was never known in that boot. It ended before this boot began: that is the latest
    // possible offset.
    let end_micros = store.boot_end_micros(boot)?.unwrap_or(0);
    let offset = clock.offset().micros.saturating_sub(end_micros);
    store.set_boot_offset(boot, offset)?;
    Ok(offset)
}
