//! Recognition of the device model that sent a frame.
//!
//! An [`Identifier`] is a set of conditions that must all hold. An identifier is reduced to the
//! bits that it fixes; their number is its specificity. A [`Recogniser`] finds the identifiers that
//! a frame may fit by what they fix, so that its cost does not grow with their number.

mod conditions;
mod index;

pub use conditions::Identifier;
pub use index::{Recognised, Recogniser, Tie};
