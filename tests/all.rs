//! All tests of the whole product. The folders mirror the service's URLs.

mod api;
mod contract;
mod tasks;
