//! People's accounts: registering, logging in, keeping a login alive, and the keys their tokens are checked with.

pub mod http;
