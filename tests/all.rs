//! All tests of the whole product. The folders mirror the service's URLs.

mod admin;
mod api;
mod check;
mod cli;
mod contract;
mod demo;
mod disk;
mod installed;
mod keys;
mod logs;
mod mail;
mod migrations;
mod monitoring;
mod paces;
mod release;
mod retention;
mod scripts;
mod secrets;
mod sessions;
mod settings;
mod steps;
mod structure;
mod system;
mod tables;
mod tasks;
