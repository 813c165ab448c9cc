//! All tests of the whole product. The folders mirror the service's URLs.

mod admin;
mod api;
mod check;
mod contract;
mod demo;
mod keys;
mod mail;
mod release;
mod secrets;
mod settings;
mod system;
mod tasks;
